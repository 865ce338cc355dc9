"""hgviz evaluate and hgviz compare: scores as worked out by hand and by transformers, two models
or captures on one text and on data of every goal, their report, and what is refused in one
line."""

import csv
import json
import math
import re
import shutil
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file
from scipy.special import log_softmax
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

from hgviz import examples, tasks
from hgviz.analysis import statistics
from hgviz.analysis.statistics import bits_per_byte, wilson
from hgviz.core import HeadId, HgvizError, MetricEstimate, Prompt
from hgviz.figures.output import Document, Notes, Table, write_report
from hgviz.files import resource
from hgviz.models import open_model, pruning
from hgviz.models.huggingface import quiet
from hgviz.models.prompts import prompts_like
from hgviz.models.text import TokenizerPlan, train_tokenizer
from hgviz.store import open_capture, open_study, write_capture, write_study
from hgviz.tasks.comparison_report import report_page
from tests.gui.kinds import listener, translator
from tests.making import make_capture
from tests.models.building import write_checkpoint, write_transformer
from tests.models.test_data import texts, theirs
from tests.models.test_data import tokenizer as word_tokenizer
from tests.models.zoo import write
from tests.progress import cancelled, with_steps
from tests.studying import TEXT, classifier, make_study, rows


def speaker(folder, goal):
    """A model of bytes that says what follows, or one of words that guesses masks."""
    if goal == "next":
        return write_checkpoint(folder, vocab_size=256)
    coder = train_tokenizer(TokenizerPlan("words", least=1), [TEXT], 1)
    write_transformer(
        folder, vocab_size=coder.size, family="bert", n_layers=1, max_positions=12,
        dtype=torch.float32,
    )  # fmt: skip
    coder.save(folder)
    return folder


# --- classes --------------------------------------------------------------------------------------


def test_a_classifier_is_scored_as_by_hand_and_its_interval_narrows(run, facts, tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path, 700)
    model, off = open_model(folder), frozenset({HeadId(0, 1)})
    for heads in (frozenset(), off):
        right, losses = [], []
        for line in path.read_text().splitlines()[1:]:
            text, label = line.split("\t")
            logits = model.run(model.tokenize(text).ids, off=heads).logits.astype(float)
            wanted = model.spec.labels.index(label)
            right.append(logits.argmax() == wanted)
            losses.append(-log_softmax(logits)[wanted])
        found, steps = with_steps(tasks.evaluate, model, path, off=heads)
        assert found.right == tuple(right)
        assert found.loss == pytest.approx(np.mean(losses), rel=1e-4)
        ends = wilson(sum(right), 700)
        assert found.score == MetricEstimate("accuracy", sum(right) / 700, *ends, 700, 700, heads)
        live = [step.value for step in steps if step.value is not None]
        assert [score.seen for score in live] == [32, 288, 544, 700]
        widths = [score.high - score.low for score in live]
        assert widths == sorted(widths, reverse=True)
        assert all(score.low <= score.value <= score.high for score in live)
    said = facts("evaluate", folder, "--data", path, "--off", "0.1")
    names = {"metric", "value", "low", "high", "loss", "seen", "total", "off", "f1", "mcc"}
    assert set(said) == names and said["value"] == found.score.value
    code, out, _ = run("evaluate", folder, "--data", path)
    assert code == 0 and out.startswith("model: accuracy ")
    assert " on 700; loss " in out and "MCC" in out


def test_a_limit_draws_the_same_examples_and_batches_have_at_most_so_many(facts, tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path, 90)
    model = open_model(folder)
    every, some = (
        tasks.examples_from(model, path, limit=most, batch_size=7) for most in (None, 40)
    )
    assert (len(some), some.among) == (40, 90)
    assert {row.text for row in some.rows} == {every.rows[at].text for at in every.order[:40]}
    for sample in (every, some, some.part(range(20))):
        sizes = [len(batch.rows) for block in sample.blocks() for batch in block]
        assert max(sizes) <= 7 and sum(sizes) == len(sample)
    usual = facts("evaluate", folder, "--data", path, "--limit", 40)
    assert usual["total"] == 40
    small = facts("evaluate", folder, "--data", path, "--limit", 40, "--batch-size", 3)
    assert small.pop("loss") == pytest.approx(usual.pop("loss"), rel=1e-5) and small == usual
    (tmp_path / "long.tsv").write_text("text\tlabel\n" + "cat " * 40 + "\tyes\ncat\tno\n")
    said = facts("evaluate", folder, "--data", tmp_path / "long.tsv")
    assert (said["total"], said["cut"]) == (2, 1)


def test_an_early_score_does_not_depend_on_the_order_of_the_file():
    """All right answers at the head of the file: the first score must not be 1."""
    prompts = [Prompt("", np.array([row]), ("a",), np.array([[0, 1]])) for row in range(1000)]
    asked = []

    def answer(batch):
        asked.extend(batch.ids[:, 0])
        return np.zeros(len(batch.rows)), np.zeros(len(batch.rows), np.int64)

    texts = examples.classification_examples(prompts, [0] * 500 + [1] * 500, ("no", "yes"), None)
    first = cancelled(statistics.evaluate, answer, texts)[0].value
    assert first.low < 0.5 < first.high
    assert min(asked) < 500 < max(asked)
    sample = texts.sample(10)
    assert (len(sample), sample.among) == (10, 1000) and texts.sample(1000) is texts
    assert [sample.rows[row] for row in sample.order] == [texts.rows[at] for at in texts.order[:10]]


def test_class_ids_are_read_as_the_names_are_and_said(run, refusal, facts, tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path)
    named = facts("evaluate", folder, "--data", path)
    text = path.read_text().replace("\tno", "\t0").replace("\tyes", "\t1")
    path.write_text(text)
    code, out, err = run("evaluate", folder, "--data", path, "--json")
    assert (code, json.loads(out)) == (0, named)
    assert err.splitlines()[-1] == "Labels are class IDs: 0 = no, 1 = yes."
    path.write_text(text.replace("\t1", "\t2").replace("\t0", "\t1"))
    assert "--labels 1=no,2=yes" in refusal("evaluate", folder, "--data", path)
    assert facts("evaluate", folder, "--data", path, "--labels", "1=no,2=yes") == named


# --- language models ------------------------------------------------------------------------------


SENTENCES = ["the cat sat", "the dög sat on the log", "on the mat", "the cat and the dog", "sat"]


def table(path, labels, column="sentence"):
    """The same texts beside other labels, as the ending of the file says."""
    found = zip(SENTENCES * 2, labels * 2, strict=True)
    if path.suffix == ".jsonl":
        lines = [json.dumps({"label": label, column: text}) for text, label in found]
    else:
        between = "\t" if path.suffix == ".tsv" else ","
        lines = [between.join(pair) for pair in [(column, "label"), *found]]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def nats_of(model, data):
    """How surprised a model of bytes is by all of a text but its first byte."""
    data = np.frombuffer(data, np.uint8).astype(np.int64)
    logits = model.run(data[:-1]).logits.astype(float)
    return -log_softmax(logits, -1)[np.arange(len(data) - 1), data[1:]].sum()


def hits_of(model, data):
    """How many next bytes are the likeliest."""
    data = np.frombuffer(data, np.uint8).astype(np.int64)
    return int((model.run(data[:-1]).logits.argmax(-1) == data[1:]).sum())


def test_bits_per_byte_are_those_by_hand(run, tmp_path):
    """Of windows that share a byte, and of texts one by one: nothing is padding."""
    folder, path = speaker(tmp_path / "model", "next"), tmp_path / "text.txt"
    path.write_text(TEXT * 12, "utf-8")
    model, data = open_model(folder), path.read_bytes()
    found, count = tasks.evaluate(model, path), len(data) - 1
    nats = sum(nats_of(model, data[start : start + 1025]) for start in range(0, count, 1024))
    assert found.score.metric == "bits_per_byte"
    assert found.score.value == pytest.approx(nats / math.log(2) / count, rel=1e-5)
    assert found.score.seen == found.score.total == count
    assert found.score.low < found.score.value < found.score.high
    assert found.perplexity == pytest.approx(math.exp(nats / count), rel=1e-4)
    code, out, _ = run("evaluate", folder, "--data", path)
    hits = sum(hits_of(model, data[start : start + 1025]) for start in range(0, count, 1024))
    assert found.accuracy == pytest.approx(hits / count)
    assert code == 0 and out.startswith("model: loss ") and " bits per byte (" in out
    assert f"; next-token accuracy {100 * hits / count:.1f} %, on " in out
    found = tasks.evaluate(model, table(tmp_path / "some.tsv", list("abcde")))
    nats = sum(nats_of(model, text.encode()) for text in SENTENCES)
    count = sum(len(text.encode()) - 1 for text in SENTENCES)
    assert found.score.value == pytest.approx(nats / math.log(2) / count, rel=1e-5)


def test_pieces_are_scored_by_the_bytes_they_stand_for(tmp_path):
    coder = train_tokenizer(TokenizerPlan("words", least=1), [TEXT], 0)
    write_transformer(
        tmp_path / "model", vocab_size=coder.size, family="gpt2", n_layers=1, max_positions=8,
        dtype=torch.float32,
    )  # fmt: skip
    coder.save(tmp_path / "model")
    path = tmp_path / "text.txt"
    path.write_text("cat sat on dög mat the log and the cat", "utf-8")
    model = open_model(tmp_path / "model")
    with torch.no_grad():
        model.module.embed.token.weight.zero_()  # equal odds for every piece
    found = tasks.evaluate(model, path)
    size = len(" sat on dög mat the log and the cat".encode())
    assert found.score.value == pytest.approx(9 * math.log2(coder.size) / size, rel=1e-5)


@pytest.mark.parametrize("goal", ["next", "masked"])
def test_a_language_model_reads_the_texts_of_a_table_alone_and_says_how_many(
    run, facts, tmp_path, goal, monkeypatch
):
    """In every command that scores one: other labels and another format change no number."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    model, study, out = speaker(tmp_path / "model", goal), tmp_path / "s.h5", tmp_path / "out"
    files = [
        table(tmp_path / "some.tsv", ["0", "1", "0", "1", "1"]),
        table(tmp_path / "same.jsonl", ["zzzzqq", "", "no", "yes", "a long label"], "text"),
    ]
    found, same = (facts("evaluate", model, "--data", data) for data in files)
    assert found == same
    if goal == "next":  # by hand: each text by itself, no byte of a label
        assert (found["windows"], found["texts"]) == (10, 10)
        assert found["total"] == 2 * sum(len(one.encode()) - 1 for one in SENTENCES)
    else:
        assert found["metric"] == "masked_accuracy"
    amount = f"{found['windows']} windows of {found['texts']} texts"
    commands = [("evaluate", model), ("importance", model, "-o", study)]
    if goal == "next":
        commands += [("curve", study, model), ("compare", model, model),
                     ("prune", model, "--off", "0.0", "-o", out)]  # fmt: skip
    for words in commands:
        code, said, error = run(*words, "--data", files[0])
        assert code == 0, error
        assert amount in " ".join(said.split()), words[0]


READ_TEXTS = [
    ("rows.tsv", "abc\tpos\nabcd\tneg\n", "", "text column of"),
    ("rows.tsv", "abc\tpos\nabcd\tneg\n", "0", 2 + 3),  # a number: there is no header
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n2\tabcd\t\n", "phrase", 2 + 3),
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n", "words", "has no column 'words'"),
    ("rows.tsv", "abc\nabcd\n", "", 2 + 3),  # one column is the text
    ("rows.tsv", "text\tlabel\nabc\tpos\n\tneg\n", "", "line 3, column text is missing or empty"),
    ("rows.tsv", "text\tlabel\n", "", "has a header but no rows"),
    ("rows.txt", "text\tlabel\nabc\tpos\n", "", 18),  # as it stands
    ("rows.txt", "", "", "is empty"),
    ("rows.txt", "a", "", "too short to score"),
]


def test_a_column_of_texts_is_found_or_asked_for(facts, refusal, tmp_path):
    model = speaker(tmp_path / "model", "next")
    for name, content, column, expected in READ_TEXTS:
        (tmp_path / name).write_text(content)
        words = ["evaluate", model, "--data", tmp_path / name]
        words += ["--text-column", column] if column else []
        if isinstance(expected, int):
            assert facts(*words)["total"] == expected, content
        else:
            assert expected in refusal(*words), content
    classes = classifier(tmp_path / "classifier")
    for content, expected in (
        ("", "is empty"), ("sentence\tlabel\nthe cat\n", "line 2, column label is missing"),
        ("sentence\tlabel\nthe cat\tmaybe\n", "line 2, column label: the label 'maybe' is unknown"),
    ):  # fmt: skip
        (tmp_path / "rows.tsv").write_text(content)
        assert expected in refusal("evaluate", classes, "--data", tmp_path / "rows.tsv")


def test_windows_are_no_longer_than_a_rotary_model_is_made_for(tmp_path):
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=40,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    with quiet():
        transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "llama")
    model = open_model(tmp_path / "llama")
    assert model.spec.max_positions is None  # it reads longer texts, too
    (tmp_path / "a.txt").write_text("The sand had run down. " * 9)
    read = tasks.examples_from(model, tmp_path / "a.txt")
    assert max(len(row.ids) for row in read.rows) == 40


# --- encoder-decoders, scored on the second texts of a table --------------------------------------


WORDS = ("[PAD]", "[UNK]", "</s>", "<s>", "the", "cat", "sat", "on", "a", "mat", "dog", "ran",
         "home", "it", "was", "late")  # fmt: skip
PAIRS = [
    ("the cat sat on a mat", "it was late"), ("the dog ran home", "the dog sat on a mat"),
    ("it was late", "the cat"), ("a cat ran", "home it was late"),
]  # fmt: skip
KINDS = [("t5", "T5ForConditionalGeneration"), ("bart", "BartForConditionalGeneration")]


@pytest.fixture(scope="module")
def folder(trained):
    """Writes an encoder-decoder with a tokenizer, once."""
    return lambda kind, name: trained(kind, name, tokenizer, decoder_start_token_id=0)


def tokenizer():
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({one: at for at, one in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    return made


@pytest.fixture
def pairs(tmp_path):
    """A table of texts and what they become."""
    lines = ["text\ttarget", *("\t".join(pair) for pair in PAIRS)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path / "pairs.tsv"


def surprise(net, inputs):
    """Nats of all second texts, and how many tokens they have, as transformers has them."""
    begin, nats, count = net.config.decoder_start_token_id, 0.0, 0
    for given, (_, second) in zip(inputs, PAIRS, strict=True):
        wanted = torch.tensor([tokenizer().encode(second).ids])
        before = torch.cat([torch.tensor([[begin]]), wanted[:, :-1]], 1)
        with torch.no_grad():
            logits = net(**given, decoder_input_ids=before).logits[0].double()
        nats += float(torch.nn.functional.cross_entropy(logits, wanted[0], reduction="sum"))
        count += wanted.shape[1]
    return nats, count


@pytest.mark.parametrize("kind, name", KINDS)
def test_a_score_is_that_of_transformers_and_of_the_run_that_is_captured(
    folder, pairs, tmp_path, kind, name
):
    path = folder(kind, name)
    model, net = open_model(path), getattr(transformers, name).from_pretrained(path).eval()
    inputs = [{"input_ids": torch.tensor([tokenizer().encode(one).ids])} for one, _ in PAIRS]
    nats, count = surprise(net, inputs)
    facts = tasks.evaluate(model, pairs).to_dict()
    size = sum(len(second) for _, second in PAIRS)
    assert (facts["metric"], facts["windows"]) == ("bits_per_byte", len(PAIRS))
    assert facts["value"] == pytest.approx(nats / np.log(2) / size, rel=1e-5)
    assert facts["loss"] == pytest.approx(nats / count, rel=1e-5)
    first, second = PAIRS[1]
    source, target = tasks.read_prompts(model, first, target=second)
    captured = tasks.capture(model, source, target=target)
    (tmp_path / "one.tsv").write_text(f"text\ttarget\n{first}\t{second}\n")
    assert captured.target.ids.tolist() == [0, *tokenizer().encode(second).ids]
    assert (captured.target.pieces[0], captured.target.label(0)) == ("[PAD]", "[PAD]")
    assert captured.target.text == second and captured.target.spans[0].tolist() == [-1, -1]
    score = tasks.evaluate(model, tmp_path / "one.tsv").to_dict()["value"]
    assert bits_per_byte(captured) == pytest.approx(score, rel=1e-5)
    assert prompts_like(model, captured)[1] is captured.target
    rows = [{"question": first, "reply": second} for first, second in PAIRS]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    named = tasks.evaluate(model, tmp_path / "a.jsonl", "question", "reply")
    assert named.to_dict()["value"] == facts["value"]
    (tmp_path / "b.tsv").write_text("text\tlabel\nthe cat\tgood\n")
    with pytest.raises(HgvizError, match="has no targets"):
        tasks.evaluate(model, tmp_path / "b.tsv")


def test_every_head_of_encoder_and_decoder_is_scored_and_pruned(run, folder, pairs, tmp_path):
    path, study = folder(*KINDS[0]), tmp_path / "loo.h5"
    whole = tasks.evaluate(open_model(path), pairs).to_dict()["value"]
    words = ("importance", path, "--data", pairs, "-o", study, "--method", "loo")
    assert run(*words)[0] == 0 and open_study(study).spec.two_texts
    off = frozenset({HeadId(0, 1), HeadId(3, 2)})
    masked = tasks.evaluate(open_model(path), pairs, off=off).to_dict()["value"]
    assert masked != pytest.approx(whole, rel=1e-6)
    tasks.prune(path, off, tmp_path / "out", form="zeroed", data=pairs)
    pruned = tasks.evaluate(open_model(tmp_path / "out"), pairs).to_dict()["value"]
    assert pruned == pytest.approx(masked, rel=1e-6)
    trials = tasks.trials_of(open_model(path), pairs)
    assert tasks.curve(trials, open_study(study), "loo", random=1, most=3).curves
    assert run("compare", path, tmp_path / "out", "--data", pairs)[0] == 0
    model = open_model(folder("bart", "BartModel"))  # its states, by how far they move
    facts = tasks.evaluate(model, pairs).to_dict()
    assert (facts["metric"], facts["value"]) == ("cosine_distance", pytest.approx(0, abs=1e-6))
    for head in off:  # of the encoder, and of the decoder
        assert tasks.evaluate(model, pairs, off=frozenset({head})).to_dict()["value"] > 1e-5


@pytest.mark.parametrize("kind, name", [("bart", "Bart")])
def test_answers_are_found_in_a_text_that_the_decoder_reads_again(folder, tmp_path, kind, name):
    path, right, rows = folder(kind, f"{name}ForQuestionAnswering"), [], []
    net = getattr(transformers, f"{name}ForQuestionAnswering").from_pretrained(path).eval()
    for first, second in PAIRS:
        answers = {"text": [first.split()[1]], "answer_start": [first.index(" ") + 1]}
        rows.append({"question": second, "context": first, "answers": answers})
        with torch.no_grad():
            out = net(input_ids=torch.tensor([tokenizer().encode(second, first).ids]))
        wanted = len(second.split()) + 1
        right += [int(one.argmax()) == wanted for one in (out.start_logits, out.end_logits)]
    data = tmp_path / "a.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    facts = tasks.evaluate(open_model(path), data).to_dict()
    assert (facts["metric"], facts["total"]) == ("end_accuracy", 2 * len(PAIRS))
    assert facts["value"] == pytest.approx(np.mean(right))


@pytest.mark.parametrize("kind, name", [
    ("bart", "Bart"), ("t5", "T5"), ("bigbird_pegasus", "BigBirdPegasus"),
])  # fmt: skip
def test_classifiers_whose_decoder_reads_the_text_again_are_those_of_transformers(
    folder, tmp_path, kind, name, monkeypatch
):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    name = f"{name}ForSequenceClassification"
    path = folder(kind, name)
    model = open_model(path)
    net = getattr(transformers, name).from_pretrained(path).eval()
    assert model.spec.goal == "classes" and model.spec.reads_twice
    given = [tokenizer().encode(first).ids for first, _ in PAIRS]
    logits = []
    for (text, _), ids in zip(PAIRS, given, strict=True):
        with torch.no_grad():
            logits.append(net(torch.tensor([ids])).logits[0].numpy())
        prompt, target = tasks.read_prompts(model, text)
        capture = tasks.capture(model, prompt, target=target)
        assert np.abs(capture.logits - logits[-1]).max() < 1e-5
        assert capture.target.ids.tolist()[1:] == ids[:-1] and capture.target.spans[0, 0] == -1
    width = max(map(len, given))
    ids, mask = np.zeros((2, len(given), width), int)
    for row, one in enumerate(given):
        ids[row, : len(one)], mask[row, : len(one)] = one, 1
    assert np.abs(model.run(ids, attention_mask=mask).logits - np.array(logits)).max() < 1e-5
    # the premise and what it is to imply, with an end in the middle
    both = np.array([given[0] + given[1]])
    with torch.no_grad():
        assert np.abs(net(torch.tensor(both)).logits.numpy() - model.run(both).logits).max() < 1e-5
    with pytest.raises(HgvizError, match="predicts at the last end token"):
        model.run(both[:, :3])
    data = tmp_path / "a.tsv"
    rows = [f"{text}\tLABEL_{row % 2}" for row, (text, _) in enumerate(PAIRS)]
    data.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    facts = tasks.evaluate(model, data).to_dict()
    right = [int(one.argmax()) == row % 2 for row, one in enumerate(logits)]
    assert (facts["metric"], facts["value"]) == ("accuracy", pytest.approx(np.mean(right)))
    off = frozenset({HeadId(0, 1), HeadId(3, 2)})
    masked = model.run(given[0], off=off).logits
    assert np.abs(masked - logits[0]).max() > 1e-4
    form = "smaller" if model.config.uses_interface else "zeroed"
    tasks.prune(path, off, tmp_path / "out", form, data=data)
    assert np.abs(open_model(tmp_path / "out").run(given[0]).logits - masked).max() < 1e-5


def test_what_a_model_of_sound_writes_is_scored_beside_the_sound(tmp_path):
    sizes = {"max_source_positions": 50, "max_target_positions": 40, "num_mel_bins": 16}
    name = "WhisperForConditionalGeneration"
    path = write(tmp_path / "m", "whisper", name, decoder_start_token_id=3, **sizes)
    tokenizer().save(str(path / "tokenizer.json"))
    sounds = np.random.default_rng(0).normal(size=(len(PAIRS), 16, 100)).astype(np.float32)
    for at, sound in enumerate(sounds):
        np.save(tmp_path / f"{at}.npy", sound)
    lines = [f"{at}.npy\t{second}\n" for at, (_, second) in enumerate(PAIRS)]
    (tmp_path / "a.tsv").write_text("audio\ttarget\n" + "".join(lines))
    found = tasks.evaluate(open_model(path), tmp_path / "a.tsv")
    net = transformers.WhisperForConditionalGeneration.from_pretrained(path).eval()
    nats, count = surprise(net, [{"input_features": torch.tensor(one)[None]} for one in sounds])
    assert found.to_dict()["loss"] == pytest.approx(nats / count, rel=1e-5)


# --- two models compared --------------------------------------------------------------------------


SENTENCE = "the cat sat on the mat"


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """A small Hourglass on bytes, and another seed of it."""
    folder = tmp_path_factory.mktemp("letters")
    keys = {"vocab_size": 256, "dtype": torch.float32}
    return write_checkpoint(folder / "a", **keys), write_checkpoint(folder / "b", seed=1, **keys)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A small classifier over words, another seed of it, and labelled rows."""
    folder = tmp_path_factory.mktemp("words")
    return classifier(folder / "a"), classifier(folder / "b", seed=1), rows(folder)


def captured(path, text, out, **options):
    """Capture a text by a checkpoint into a file, which is returned."""
    model = open_model(path, **options)
    tasks.capture(model, model.tokenize(text), out)
    return out


# --- maps -----------------------------------------------------------------------------------------


def test_two_models_on_one_text_by_name_and_by_their_captures(run, facts, letters, tmp_path):
    found = facts("compare", *letters, "--text", SENTENCE, "-o", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == found
    assert found["kind"] == "maps" and found["a"]["tokens"] == len(SENTENCE)
    assert (found["a"]["model"], found["b"]["model"]) == ("a", "b")
    files = [captured(path, SENTENCE, tmp_path / f"{path.name}.h5") for path in letters]
    sides = [open_capture(file) for file in files]
    assert [one["head"] for one in found["heads"]] == [str(head) for head in sides[0].spec.heads]
    for one in found["heads"]:
        layer, head = map(int, one["head"].split("."))
        a, b = (side.maps[layer].read(head)[side.query_spans(layer)[:, 0] >= 0] for side in sides)
        assert one["largest"] == pytest.approx(np.abs(a - b).max(), abs=1e-6)
    logits = np.abs(sides[0].logits - sides[1].logits)
    assert found["logits"]["largest"] == pytest.approx(logits.max(), rel=1e-5)
    assert (found["only_a"], found["only_b"], found["notes"]) == ([], [], [])
    for pair in (files, (files[0], letters[1])):
        same = facts("compare", *pair)
        assert same["logits"] == pytest.approx(found["logits"], rel=1e-5)
        for one, other in zip(same["heads"], found["heads"], strict=True):
            numbers = {name: x for name, x in one.items() if isinstance(x, float)}
            assert numbers == pytest.approx({name: other[name] for name in numbers}, abs=1e-6)
    code, out, _ = run("compare", *files, "-o", tmp_path / "out.csv")
    assert code == 0 and out.endswith(f"out.csv: {len(found['heads'])} heads.\n")
    table = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [one["head"] for one in table] == [one["head"] for one in found["heads"]]
    code, out, err = run("compare", letters[0], letters[0], "--text", SENTENCE)
    assert (code, err) == (0, "") and "largest 0; relative 0; mean 0; JS 0; below 0 0 0" in out
    assert f"Logits at {len(SENTENCE)} of {len(SENTENCE)} positions: at most 0 apart" in out


def test_another_activation_heads_off_and_pruned_heads_change_b(
    run, facts, letters, tmp_path, monkeypatch
):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    twice = "compare", letters[0], letters[0], "--text", SENTENCE
    first = facts(*twice, "--activation", "ymish")["heads"][0]
    assert (first["activation_a"], first["activation_b"]) == ("softmax", "ymish")
    assert first["negative_a"] == 0 < first["negative_b"]
    off = facts(*twice, "--off", "0.0")
    assert (off["a"]["off"], off["b"]["off"]) == ([], ["0.0"])
    assert off["heads"][0]["largest"] == 0 and off["logits"]["largest"] > 0
    tasks.prune(letters[0], "0.0,2.*", tmp_path / "less")
    pair = "compare", letters[0], tmp_path / "less", "--text", SENTENCE
    assert "Only in A: 3 heads, 0.0, 2.*." in run(*pair)[1]
    found = facts(*pair)
    assert found["only_a"] == ["0.0", "2.0", "2.1"] and found["only_b"] == []
    # a narrower product adds in another order on some processors: equal but for rounding
    assert found["heads"][0]["head"] == "0.1" and found["heads"][0]["largest"] < 1e-6


def test_texts_and_tokenizers_that_differ_meet_at_the_tokens_they_share(
    facts, letters, words, tmp_path
):
    found = facts(
        "compare", captured(letters[0], SENTENCE, tmp_path / "a.h5"),
        captured(letters[0], "the old cat sat", tmp_path / "b.h5"),
    )  # fmt: skip
    assert "texts differ: 11 shared tokens, of 22 in A and 15" in found["notes"][0]
    found = facts("compare", letters[0], words[0], "--text", SENTENCE)
    assert "tokens differ: 6 shared tokens, of 22 in A and 8" in found["notes"][0]
    assert found["logits"] is None and "different goals, next and classes" in found["notes"][-1]


def test_a_text_of_two_is_read_again_beside_its_capture(run, facts, tmp_path):
    write_transformer(
        tmp_path / "both", form="encoder-decoder", vocab_size=256, dtype=torch.float32
    )
    options = ("--text", "the cat", "--target", "die Katze")
    assert run("capture", tmp_path / "both", *options, "-o", tmp_path / "a.h5")[0] == 0
    found = facts("compare", tmp_path / "a.h5", tmp_path / "both")
    assert found["a"]["text"] == found["b"]["text"] and found["logits"]["largest"] == 0
    assert {one["role"] for one in found["heads"]} == {"self", "cross"}
    models = facts("compare", tmp_path / "both", tmp_path / "both", *options)
    assert [one["head"] for one in found["heads"]] == [one["head"] for one in models["heads"]]
    assert all(one["largest"] < 1e-6 for one in found["heads"])  # a file keeps rounded sums


def test_weights_that_are_no_numbers_stay_json(run, facts, letters, tmp_path):
    shutil.copytree(letters[0], tmp_path / "broken")
    tensors = load_file(tmp_path / "broken" / "model.safetensors")
    for name, factor in (("q", 1e37), ("k", 1e3)):  # scores beyond float32
        tensors[f"middle.0.attn.{name}.weight"] *= factor
    save_file(tensors, tmp_path / "broken" / "model.safetensors")
    options = (letters[0], tmp_path / "broken", "--text", SENTENCE)
    found = facts("compare", *options)
    assert found["heads"][0]["largest"] == 0
    assert any(one["largest"] is None and one["broken"] for one in found["heads"])
    assert found["logits"] is None
    assert found["notes"][-1] == "logits contain NaN or infinite values"
    assert found["notes"][-2].startswith("rows with NaN or infinite weights are left out in ")
    code, out, _ = run("compare", *options)
    assert code == 0 and "nan" not in out


def test_a_model_reads_the_text_of_a_capture_in_its_own_way(letters):
    text = "The fish was not wonderful, but the evening was."
    hourglass, reviews = open_model(letters[0]), open_model(resource("sample/softmax"))
    a = tasks.capture(reviews, tasks.read_prompts(reviews, text)[0])
    same = tasks.capture_like(open_model(resource("sample/ymish")), a)
    assert same.prompt is a.prompt and same.spec.name != a.spec.name  # the very same tokens
    b = tasks.capture_like(hourglass, a)
    assert b.prompt.text == text and len(b.prompt) == len(text.encode())
    assert tasks.capture_like(reviews, b).prompt.pieces == a.prompt.pieces
    without = tasks.capture_like(hourglass, b, frozenset({HeadId(0, 0)}))
    assert np.array_equal(tasks.capture_like(hourglass, b).logits, b.logits)
    assert without.off == {HeadId(0, 0)} and not np.array_equal(without.logits, b.logits)
    for like in (translator(), listener()):  # the decoder's own text; states are no text
        prompt, target = prompts_like(hourglass, like)
        assert target is None and prompt.text == like.target.text
    ids = tasks.capture(hourglass, hourglass.from_ids(np.array([65, 66, 67])))
    assert prompts_like(hourglass, ids)[0] is ids.prompt
    long = tasks.capture(hourglass, hourglass.tokenize("good " * 400))
    with pytest.raises(HgvizError, match="too long"):
        prompts_like(reviews, long)


# --- answers --------------------------------------------------------------------------------------


def test_two_classifiers_on_labelled_rows(run, facts, words, tmp_path):
    *pair, data = words
    found = facts("compare", *pair, "--data", data, "-o", tmp_path / "all.json")
    alone = [tasks.evaluate(open_model(path), data) for path in pair]
    assert [found["score_a"], found["score_b"]] == [one.to_dict() for one in alone]
    right = np.array([one.right for one in alone])
    paired(found, *right)
    assert found["agreement"] == pytest.approx((right[0] == right[1]).mean())  # of two classes
    kept = json.loads((tmp_path / "all.json").read_text())
    assert len(kept["examples"]) == found["differing"] == int((right[0] != right[1]).sum())
    assert found["examples"] == kept["examples"][:20]
    lines = data.read_text().splitlines()[1:]
    for one in kept["examples"]:
        text, label = lines[one["example"]].split("\t")
        assert (one["text"], one["wanted"]) == (text, label)
        assert one["a"] != one["b"] and label in (one["a"], one["b"])
    code, out, _ = run("compare", *pair, "--data", data, "-o", tmp_path / "out.csv")
    assert code == 0 and "B minus A: " in out and "McNemar's p" in out and "examples" in out
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + found["differing"]
    same = run("compare", pair[0], pair[0], "--data", data)[1]
    assert "B minus A: +0 points" in same and "100.0 %; 0 differ." in same


def test_two_language_models_in_bits(run, facts, letters, tmp_path):
    (tmp_path / "text.txt").write_text(SENTENCE * 100)
    found = facts("compare", *letters, "--data", tmp_path / "text.txt")
    bits = found["score_b"]["value"] - found["score_a"]["value"]
    assert found["score_a"]["metric"] == "bits_per_byte"
    assert found["difference"]["value"] == pytest.approx(bits, abs=1e-5)
    assert found["difference"]["low"] < bits < found["difference"]["high"]
    code, out, _ = run("compare", *letters, "--data", tmp_path / "text.txt")
    assert code == 0 and " bits per byte (" in out and "' '" in out
    same = facts("compare", letters[0], letters[0], "--data", tmp_path / "text.txt", "--off", "0.*")
    whole = tasks.evaluate(open_model(letters[0]), tmp_path / "text.txt")
    assert same["score_a"] == whole.to_dict() and same["score_b"]["off"] == ["0.0", "0.1"]


LETTERS = [*"abcdefghijklmnopqrstuvwxyz?.", "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]


def spelt():
    """Letters between [CLS] and [SEP], pairs with token types."""
    ids = {one: at for at, one in enumerate(LETTERS)}
    made = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Split(Regex("."), "isolated"),
    ])  # fmt: skip
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(one, ids[one]) for one in ("[CLS]", "[SEP]")],
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Writes a model once, with a tokenizer of words or of letters, or a processor of images."""
    kept = {}

    def made(kind, name, reads=word_tokenizer, **changes):
        key = kind, name, str(reads), str(changes)
        if key not in kept:
            kept[key] = write(tmp_path_factory.mktemp("model") / kind, kind, name, **changes)
            if reads is not None:
                reads().save(str(kept[key] / "tokenizer.json"))
        return kept[key]

    return made


def paired(found, a, b):
    """What is said of answers, beside which of them are right by hand."""
    a, b = np.array(a), np.array(b)
    assert found["score_a"]["value"] == pytest.approx(a.mean())
    assert found["score_b"]["value"] == pytest.approx(b.mean())
    assert (found["a_only"], found["b_only"]) == (int((a & ~b).sum()), int((b & ~a).sum()))
    assert found["difference"]["value"] == pytest.approx(b.mean() - a.mean())
    assert found["difference"]["low"] < found["difference"]["value"] < found["difference"]["high"]
    assert 0 < found["p"] <= 1 and found["notes"] == []


def tagged(place, rows):
    data = place / "tags.jsonl"
    data.write_text("\n".join(
        json.dumps({"tokens": row, "ner_tags": [f"LABEL_{len(word) % 2}" for word in row]})
        for row in rows
    ))  # fmt: skip
    return data


def asked(place, rows):
    data = place / "questions.jsonl"
    with data.open("w") as file:
        for row in rows:
            context, start = " ".join(row), len(" ".join(row[:2])) + 1
            answers = {"text": [" ".join(row[2:4])], "answer_start": [start]}
            one = {"question": "who did it", "context": context, "answers": answers}
            file.write(json.dumps(one) + "\n")
    return data


def test_classes_of_tokens_meet_word_by_word_whatever_the_tokens_are(facts, trained, tmp_path):
    names = ("RobertaForTokenClassification", "BertForTokenClassification")
    a = trained("roberta", names[0])
    b = trained("bert", names[1], spelt, max_position_embeddings=96)
    rows = texts(30)
    found = facts("compare", a, b, "--data", tagged(tmp_path, rows))
    given = []
    for path, name, reads in ((a, names[0], word_tokenizer()), (b, names[1], spelt())):
        mine = []
        for row in rows:
            read = reads.encode(" ".join(row))
            with torch.no_grad():
                logits = theirs(path, name)(input_ids=torch.tensor([read.ids])).logits[0]
            starts = [sum(len(one) + 1 for one in row[:at]) for at in range(len(row))]
            first = [[start for start, _ in read.offsets].index(at, 1) for at in starts]
            mine += logits[first].argmax(-1).tolist()
        given.append(np.array(mine))
    wanted = np.array([len(word) % 2 for row in rows for word in row])
    paired(found, given[0] == wanted, given[1] == wanted)
    assert found["agreement"] == pytest.approx((given[0] == given[1]).mean())
    assert found["score_a"]["metric"] == "tag_accuracy"
    words = [word for row in rows for word in row]
    for one in found["examples"]:
        assert one["text"].split()[-1] in words and one["a"] != one["b"]
        assert one["wanted"] == f"LABEL_{len(one['text'].split()[-1]) % 2}"


def test_words_that_one_side_does_not_reach_are_not_paired(run, facts, trained, tmp_path):
    a = trained("roberta", "RobertaForTokenClassification")
    b = trained("bert", "BertForTokenClassification", spelt, max_position_embeddings=24)
    found = facts("compare", a, b, "--data", tagged(tmp_path, texts(20)))
    totals = [found[f"score_{side}"]["total"] for side in "ab"]
    read = [sum(len(word) for word in row) for row in texts(20)]
    assert totals[0] == sum(map(len, texts(20))) and found["score_b"]["cut"] == sum(
        letters + 2 > 24 for letters in read
    )
    begun = [sum(sum(map(len, row[:at])) < 22 for at in range(len(row))) for row in texts(20)]
    assert totals[1] == sum(begun)  # of 24 positions [CLS] and [SEP] take two
    assert found["notes"] == [
        "predictions are paired at "
        f"{totals[1]:,} shared positions, of {totals[0]:,} in A and {totals[1]:,} in B"
    ]
    assert (
        "Predictions are paired at"
        in run("compare", a, b, "--data", tagged(tmp_path, texts(20)))[1]
    )


def ends_by_hand(path, name, reads, rows):
    """Where answers begin and end in their texts by a model of transformers, and whether that is
    right: two of each question."""
    other, where, right = theirs(path, name), [], []
    for row in rows:
        context, start = " ".join(row), len(" ".join(row[:2])) + 1
        wanted = start, start + len(" ".join(row[2:4]))
        read = reads.encode("who did it", context)
        with torch.no_grad():
            out = other(input_ids=torch.tensor([read.ids]),
                        token_type_ids=torch.tensor([read.type_ids]))  # fmt: skip
        for end, logits in enumerate((out.start_logits[0], out.end_logits[0])):
            at = int(logits.argmax())
            special, second = read.special_tokens_mask[at], read.sequence_ids[at] == 1
            place = (-1 if at == 0 else -2) if special else read.offsets[at][end]
            where.append((second, place))
            right.append(second and not special and place == wanted[end])
    return where, right


def test_answers_meet_by_the_characters_they_begin_and_end_at(facts, trained, tmp_path):
    rows = texts(40)
    name = "ElectraForQuestionAnswering"
    a, b = trained("electra", name), trained("electra", name, spelt, max_position_embeddings=96)
    found = facts("compare", a, b, "--data", asked(tmp_path, rows))
    (one, right), (other, won) = (
        ends_by_hand(path, name, reads, rows)
        for path, reads in ((a, word_tokenizer()), (b, spelt()))
    )
    paired(found, right, won)
    assert found["score_a"]["metric"] == "end_accuracy" and found["score_a"]["total"] == 80
    assert found["agreement"] == pytest.approx(
        np.mean([x == y for x, y in zip(one, other, strict=True)])
    )
    for each in found["examples"]:
        assert each["wanted"].split()[0] == ("to" if each["place"] else "from")
    same = facts("compare", a, a, "--data", asked(tmp_path, rows))
    assert (same["agreement"], same["differing"]) == (1, 0)


def pooled(path, name, reads, rows):
    """(rows, width): the mean state of each text by a model of transformers."""
    model = theirs(path, name)
    ids = [torch.tensor([reads.encode(" ".join(row)).ids]) for row in rows]
    with torch.no_grad():
        return torch.stack([model(one).last_hidden_state[0].double().mean(0) for one in ids])


def test_states_of_two_encoders_are_compared_by_their_cosine(facts, trained, tmp_path):
    rows, data = texts(40), tmp_path / "a.txt"
    data.write_text("\n".join(map(" ".join, rows)))
    a, b = trained("distilbert", "DistilBertModel"), trained("bert", "BertModel", spelt)
    found = facts("compare", a, b, "--data", data)
    one = pooled(a, "DistilBertModel", word_tokenizer(), rows)
    other = pooled(b, "BertModel", spelt(), rows)
    moved = 1 - torch.nn.functional.cosine_similarity(one, other)
    assert found["score_b"]["metric"] == "cosine_distance_to_a"
    assert found["score_b"]["value"] == pytest.approx(float(moved.mean()), rel=1e-5)
    half = 1.96 * float(moved.std()) / len(rows) ** 0.5
    assert found["score_b"]["high"] == pytest.approx(float(moved.mean()) + half, rel=0.02)
    near = torch.nn.functional.normalize(other, dim=1) @ torch.nn.functional.normalize(one, dim=1).T
    own = (near.argmax(1) == torch.arange(40)).double().mean()
    assert found["agreement"] == pytest.approx(float(own)) and found["p"] is None
    # a model beside itself with heads off moves as evaluating it says
    found = facts("compare", a, a, "--data", data, "--off", "0.1,1.2", "--limit", 10)
    off = frozenset({HeadId(0, 1), HeadId(1, 2)})
    alone = tasks.evaluate(open_model(a), data, off=off, limit=10)
    assert found["score_b"]["value"] == pytest.approx(alone.score.value, rel=1e-4)
    assert found["score_b"]["off"] == ["0.1", "1.2"] and found["score_b"]["total"] == 10
    model, text = open_model(a), " ".join(rows[0])  # on one text, token by token
    states = [torch.tensor(model.run(model.tokenize(text).ids, off=one).logits).double()
              for one in (frozenset(), off)]  # fmt: skip
    moved = 1 - torch.nn.functional.cosine_similarity(*states)
    found = facts("compare", a, a, "--text", text, "--off", "0.1,1.2")["logits"]
    assert found["moved"] == pytest.approx(float(moved.mean()), rel=1e-4)


# --- images and sounds ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A table of images of two classes in a trained beside it."""
    place, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    (place / "files").mkdir()
    lines = ["image,label"]
    for at in range(8):
        values = random.integers(0, 255, (40, 48, 3)).astype(np.uint8)
        Image.fromarray(values).save(place / "files" / f"{at}.png")
        lines.append(f"files/{at}.png,{'cat' if at % 2 else 'dog'}")
    (place / "a.csv").write_text("\n".join(lines))
    return place


NAMES = ("--labels", "cat=LABEL_1,dog=LABEL_0")
VIT = "ViTForImageClassification"


@pytest.fixture(scope="module")
def seers(trained):
    """Two ViTs of one grid, the second of another size and normalisation, and one of another."""

    def seeing(size, patch, **how):
        path = trained("vit", VIT, None, image_size=size, patch_size=patch)
        side = {"height": size, "width": size}
        transformers.ViTImageProcessor(size=side, **how).save_pretrained(path)
        return path

    other = {"image_mean": [0.2, 0.4, 0.6], "image_std": [0.3, 0.3, 0.3]}
    return seeing(32, 8), seeing(16, 4, **other), seeing(32, 16)


def test_maps_of_two_models_on_one_image(run, facts, seers, pictures, tmp_path):
    image = pictures / "files" / "3.png"
    found = facts("compare", *seers[:2], "--image", image)
    sides = []
    for path in seers[:2]:
        model = open_model(path)
        sides.append(tasks.capture(model, model.from_signal(image)))
    assert [one["head"] for one in found["heads"]] == [str(one) for one in sides[0].spec.heads]
    for one in found["heads"]:
        layer, head = map(int, one["head"].split("."))
        a, b = (side.maps[layer].read(head) for side in sides)
        assert one["largest"] == pytest.approx(np.abs(a - b).max(), abs=1e-6)
        assert one["rows"] == 17
    assert found["logits"]["largest"] == pytest.approx(
        np.abs(sides[0].logits - sides[1].logits).max(), rel=1e-5
    )
    assert found["notes"] == [] and found["a"]["tokens"] == 17
    assert "17 positions" in run("compare", *seers[:2], "--image", image)[1]


def test_what_both_sides_saw_is_said_and_other_grids_are_one_line(
    refusal, facts, seers, pictures, tmp_path
):
    files = pictures / "files"
    for name, path, image in (("a", seers[0], "0.png"), ("b", seers[0], "1.png")):
        model = open_model(path)
        tasks.capture(model, model.from_signal(files / image), tmp_path / f"{name}.h5")
    # a checkpoint reads what the capture saw, and needs no file of it
    same = facts("compare", tmp_path / "a.h5", seers[0])
    assert same["logits"]["largest"] == 0 and same["notes"] == []
    assert {one["rows"] for one in same["heads"]} == {17}
    smaller = facts("compare", tmp_path / "a.h5", seers[1])
    assert smaller["logits"]["largest"] > 0 and smaller["notes"] == []
    found = facts("compare", tmp_path / "a.h5", tmp_path / "b.h5")
    assert found["notes"] == ["A reads 0.png, B reads 1.png"] and found["heads"]
    (tmp_path / "0.png").write_bytes((files / "1.png").read_bytes())
    tasks.capture(model, model.from_signal(tmp_path / "0.png"), tmp_path / "c.h5")
    found = facts("compare", tmp_path / "a.h5", tmp_path / "c.h5")
    assert found["notes"] == ["both read 0.png, but the images differ"]
    write_capture(tmp_path / "text.h5", make_capture("0.png"))
    error = refusal("compare", tmp_path / "text.h5", tmp_path / "a.h5")
    assert "A reads a text, B reads an image in 4 x 4 patches" in error
    error = refusal("compare", seers[0], seers[2], "--image", files / "0.png")
    assert "A reads an image in 4 x 4 patches, B reads an image in 2 x 2 patches" in error


# --- reports --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(words):
    """Two classifiers, the second with another activation, and what is measured of them."""
    both = open_model(words[0]), open_model(words[1], activation="ymish")
    return both, tasks.compare_models(*both, words[2], texts=4)


class Page(HTMLParser):
    """All that a report names and says."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.words = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_data(self, data):
        self.words.append(data)


def test_one_command_makes_the_report_which_needs_nothing_from_elsewhere(
    words, compared, facts, tmp_path
):
    out, again = tmp_path / "report.html", tmp_path / "again" / "report.html"
    options = ("--activation", "ymish", "--texts", "4", "-o", out)
    told = facts("compare", *words[:2], "--data", words[2], *options)
    command = "hgviz compare a b --data rows.tsv --activation ymish --texts 4 -o report.html"
    again.parent.mkdir()
    tasks.write_report(compared[1], again, command)
    assert out.read_bytes() == again.read_bytes() and b"pytest" not in again.read_bytes()
    assert told["kind"] == "report" and told["texts"] == 4
    assert {one["metric"] for one in told["metrics"]} == {one["metric"] for one in told["heads"]}
    text = out.read_text()
    page = Page(text)
    assert not {"script", "link"} & set(page.tags)
    assert all(one.startswith(("#", "data:image/png;base64,")) for one in page.links)
    assert len(page.ids) == len(set(page.ids))
    named = {one[1:] for one in page.links if one[0] == "#"} | {*re.findall(r"url\(#(.*?)\)", text)}
    assert named <= set(page.ids)
    drawings = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(drawings) == 4
    for one in drawings:
        ElementTree.fromstring(one)
        assert "aria-label" in one[:2000]


def blocks(a, b, data, **more):
    """The blocks of the report of two models by their titles, without those that continue one."""
    page = report_page(tasks.compare_models(a, b, data, texts=2, **more))
    return {block.title: block for block in page.blocks if block.title}


def test_the_page_begins_with_both_scores_the_test_and_the_heads_that_differ_most(compared, words):
    (a, _), comparison = compared
    scores, test, heads = report_page(comparison).blocks[:3]
    for row, side in zip(scores.rows, (comparison.answers.a, comparison.answers.b), strict=False):
        ends = (side.score.value, side.score.low, side.score.high)
        assert row[1] == "{:.1f} % [{:.1f} %, {:.1f} %]".format(*(100 * end for end in ends))
    assert "McNemar" in test.columns[-1] and test.rows[0][-1].startswith(("0.", "1.", "<"))
    distances = [float(row[1]) for row in heads.rows]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] == pytest.approx(max(one.js for one in comparison.maps.heads), abs=1e-3)
    page = blocks(a, a, words[2])
    assert "Different predictions" not in page and page["Scores"].rows[2][1].startswith("0 [")
    assert all(row[3].startswith(("0 [0, 0]", "–")) for row in page["Metrics of heads"].rows)
    page = blocks(a, a, words[2], off=frozenset({HeadId(0, 1)}))
    assert page["Models"].rows[-1] == ("Heads off", "none", "0.1")


def test_models_of_bytes_are_reported_and_long_texts_are_cut(words, letters, tmp_path):
    keys = {
        "form": "encoder", "vocab_size": 256, "goal": "classes", "labels": ["no", "yes"],
        "max_positions": 16, "dtype": torch.float32,
    }  # fmt: skip
    other = open_model(write_transformer(tmp_path / "bytes", **keys | {"max_positions": 64}))
    page = blocks(open_model(words[0]), other, words[2])
    assert any("tokenize every text differently" in note for note in page["Method"].sentences)
    assert len(page["Distances between heads"].chart.grids) == 2
    short = open_model(write_transformer(tmp_path / "short", **keys))
    data = tmp_path / "data.tsv"
    data.write_text("sentence\tlabel\n" + "".join(f"{n} {'so long ' * 9}\tyes\n" for n in range(3)))
    found = tasks.compare_models(short, other, data, texts=2)
    assert len(found.captures[0].prompt) == 16
    assert any("is truncated to the maximum length of both" in one for one in found.notes)
    (tmp_path / "data.txt").write_text(f"{SENTENCE}, and so it went on. " * 12)
    page = blocks(*map(open_model, letters), tmp_path / "data.txt", text="the cat")
    assert page["Scores"].columns[1] == "Bits per byte"
    assert "“the cat”" in page["The head that differs most"].caption


def test_reports_on_tokens_answers_and_images(facts, trained, seers, pictures, tmp_path):
    tags = trained("bert", "BertForTokenClassification", spelt, max_position_embeddings=96)
    pairs = trained("electra", "ElectraForQuestionAnswering")
    image = ("--image", pictures / "files" / "2.png")
    for sides, data, more in (
        ((trained("roberta", "RobertaForTokenClassification"), tags), tagged(tmp_path, texts(6)),
         ()),
        ((pairs, pairs), asked(tmp_path, texts(6)), ("--off", "0.1")),
        (seers[:2], pictures / "a.csv", (*NAMES, *image)),
    ):  # fmt: skip
        out = tmp_path / f"{sides[0].name}.html"
        found = facts("compare", *sides, "--data", data, "--texts", 3, "-o", out, *more)
        slopes = [one["value"] for one in found["heads"] if one["metric"] == "slope"]
        assert slopes and all(one > 0 for one in slopes if one is not None)
        assert found["maps"]["heads"] and "<html" in out.read_text()[:200]


def test_a_stranger_s_text_stays_text(words, tmp_path):
    evil = "<script>alert(1)</script> </svg> &amp; \u202e $x_1$ 'good' \x07"
    blocks = (Notes(evil, (evil,)), Table(evil, (evil, evil), ((evil, evil),) * 70))
    report = Document(evil, evil, blocks)
    write_report(report, tmp_path / "evil.html", f"hgviz compare {evil}")
    page = Page((tmp_path / "evil.html").read_text())
    assert "script" not in page.tags
    assert sum(evil in one for one in page.words) > 140


def test_a_report_has_the_maps_of_layers_that_have_weights_alone(facts, trained, tmp_path):
    a = trained("bert", "BertForSequenceClassification", spelt)
    b = trained("funnel", "FunnelForSequenceClassification", spelt)
    rows = "\n".join(f"{' '.join(row)}\tLABEL_{at % 2}" for at, row in enumerate(texts(4)))
    (tmp_path / "rows.tsv").write_text(f"text\tlabel\n{rows}\n")
    out = tmp_path / "out.html"
    found = facts("compare", a, b, "--data", tmp_path / "rows.tsv", "-o", out)
    values = {(one["side"], one["head"], one["metric"]): one["value"] for one in found["heads"]}
    model, entropies = open_model(b), []
    for row in texts(4):
        capture = tasks.capture(model, model.tokenize(" ".join(row)))
        weights = capture.maps[0].read(1).astype(float)
        p = np.divide(weights, weights.sum(1, keepdims=True))
        entropies.append(-(p * np.log(np.where(p > 0, p, 1))).sum(1).mean())
    assert values["b", "0.1", "entropy"] == pytest.approx(np.mean(entropies), abs=1e-4)
    assert values["a", "0.1", "slope"] > 0 and values["b", "0.1", "slope"] is None
    assert "has no gradients" in "".join(found["notes"])
    assert "<td>–</td>" in out.read_text("utf-8")


# --- refusals -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(letters, words, trained, seers, pictures, tmp_path_factory):
    """A trained with a model of every kind, captures and damaged data, by the names below."""
    place = tmp_path_factory.mktemp("refused")
    for name, path in {
        "model": letters[0], "words": words[0], "rows.csv": words[2], "seer": seers[0],
        "states": trained("distilbert", "DistilBertModel"), "vit": seers[1],
        "wide": trained("bert", "BertModel", word_tokenizer, hidden_size=64),
        "tags": trained("roberta", "RobertaForTokenClassification"),
        "ends": trained("electra", "ElectraForQuestionAnswering"), "images": pictures / "files",
    }.items():  # fmt: skip
        (place / name).symlink_to(path)
    for name, content in {
        "empty.txt": "", "a.txt": "the sand ran\n", "gone.csv": "image,label\nno.png,LABEL_0\n",
        "tags.jsonl": '{"tokens": ["a"]}\n',
    }.items():  # fmt: skip
        (place / name).write_text(content)
    write_study(place / "study.h5", make_study())
    captured(letters[0], SENTENCE, place / "a.h5")
    captured(letters[0], "xyzzy", place / "alien.h5")
    return place


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("model model --text a --data rows.csv", 2, ""),
        ("a.h5 model --data rows.csv", 2, ""),
        ("model a.h5 --off 0.0", 2, ""),
        ("a.h5 model --target a", 2, ""),
        ("model model --data rows.csv -o rows.csv", 2, ""),
        ("model words --text film -o x.html", 2, "needs --data"),
        ("words words --data rows.csv --texts 3", 2, "for a report"),
        ("states states --image a.png --text a", 2, ""),
        ("states states --data a.txt --labels cat=X,cat=Y", 2, "'cat' is mapped to two labels"),
        ("model study.h5 --text a", 1, "is a study"),
        ("model words --data rows.csv", 1, "A outputs the next token, B a class"),
        ("model model --text a --off 9.9", 1, "no head"),
        ("a.h5 alien.h5", 1, "no token in common"),
        ("states wide --data a.txt", 1, "their width is 32 in A and 64 in B"),
        ("states tags --data a.txt", 1, "A outputs hidden states, B classes of tokens"),
        ("states states --data empty.txt", 1, "is empty"),
        ("tags tags --data a.txt", 1, "it needs a .jsonl"),
        ("ends ends --data tags.jsonl", 1, '"answer_start"'),
        ("seer vit --data gone.csv", 1, "no.png"),
        ("seer vit --data a.txt", 1, "line 1 has one column"),
        ("states states --image images/0.png", 1, "this model does not read images"),
        ("states states --data a.txt -o a.html", 1, "output hidden states"),
    ],
)
def test_what_cannot_be_compared_is_one_line(refusal, place, monkeypatch, line, code, message):
    monkeypatch.chdir(place)
    before = set(place.iterdir())
    error = refusal("compare", *line.split(), code=code)
    assert message.lower() in error.lower() and set(place.iterdir()) == before
    assert ("--help`." in error) == (code == 2)
