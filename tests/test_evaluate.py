"""hgviz evaluate: scores beside those worked out by hand and by transformers, that early ones are
fair, and what it refuses in one line."""

import json
import math

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from scipy.special import log_softmax

from hgviz import examples, tasks
from hgviz.analysis import statistics
from hgviz.analysis.statistics import bits_per_byte, wilson
from hgviz.core import HeadId, HgvizError, MetricEstimate, Prompt
from hgviz.models import open_model, pruning
from hgviz.models.huggingface import quiet
from hgviz.models.prompts import prompts_like
from hgviz.models.text import TokenizerPlan, train_tokenizer
from hgviz.store import open_study
from tests.models.building import write_checkpoint, write_transformer
from tests.models.zoo import write
from tests.progress import cancelled, with_steps
from tests.studying import TEXT, classifier, rows


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
    assert (said["metric"], said["seen"], said["off"]) == ("accuracy", 700, ["0.1"])
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
    assert run("evaluate", folder, "--data", path, "--json", "--quiet") == (0, out, "")
    path.write_text(text.replace("\t1", "\t2").replace("\t0", "\t1"))
    assert "--labels 1=no,2=yes" in refusal("evaluate", folder, "--data", path)
    assert facts("evaluate", folder, "--data", path, "--labels", "1=no,2=yes") == named


# --- language models ------------------------------------------------------------------------------


SENTENCES = ["the cat sat", "the dög sat on the log", "on the mat", "the cat and the dog", "sat"]


def table(path, labels, column="sentence"):
    """The same texts beside other labels, as the ending of the file says."""
    found = zip(SENTENCES * 8, labels * 8, strict=True)
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


def verbs(model, out):
    """Every verb that scores a model on data; out: where they write."""
    study = out.with_suffix(".h5")
    return (
        ("evaluate", model), ("importance", model, "-o", study), ("curve", study, model),
        ("compare", model, model), ("prune", model, "--off", "0.0", "-o", out),
    )  # fmt: skip


@pytest.mark.parametrize("goal", ["next", "masked"])
def test_a_language_model_reads_the_texts_of_a_table_alone_and_says_how_many(
    run, tmp_path, goal, monkeypatch
):
    """In every verb that scores one: other labels and another format change no number."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    model = speaker(tmp_path / "model", goal)
    files = [
        table(tmp_path / "some.tsv", ["0", "1", "0", "1", "1"]),
        table(tmp_path / "other.tsv", ["zzzzqq", "", "no", "yes", "a long label"]),
        table(tmp_path / "same.jsonl", ["a", "b", "c", "d", "e"], "text"),
    ]
    found = []
    for data in files:
        code, out, err = run("evaluate", model, "--data", data, "--json")
        assert code == 0, err
        found.append(json.loads(out))
    assert found[0] == found[1] == found[2]
    if goal == "next":  # by hand: each text by itself, no byte of a label
        assert (found[0]["windows"], found[0]["texts"]) == (40, 40)
        assert found[0]["total"] == 8 * sum(len(one.encode()) - 1 for one in SENTENCES)
    else:
        assert found[0]["metric"] == "masked_accuracy"
    amount = f"{found[0]['windows']} windows of {found[0]['texts']} texts"
    for verb in verbs(model, tmp_path / "out"):
        code, out, err = run(*verb, "--data", files[0])
        assert code == 0, err
        assert amount in " ".join(out.split()), verb[0]


READ_TEXTS = [
    ("rows.tsv", "abc\tpos\nabcd\tneg\n", "", "text column of"),
    ("rows.tsv", "abc\tpos\nabcd\tneg\n", "0", 2 + 3),  # a number: there is no header
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n2\tabcd\t\n", "phrase", 2 + 3),
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n2\tabcd\t\n", "1", 2 + 3),
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
def folder(tmp_path_factory):
    """Writes a model with a tokenizer, once."""
    kept = {}

    def made(kind, name):
        if name not in kept:
            path = write(tmp_path_factory.mktemp(kind) / kind, kind, name, decoder_start_token_id=0)
            tokenizer().save(str(path / "tokenizer.json"))
            kept[name] = path
        return kept[name]

    return made


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
    for content, said in (
        ("text\tlabel\nthe cat\tgood\n", "has no targets"), ("", "."),
        ("text\ttarget\nthe cat\t\n", "line 2, column target is missing or empty"),
    ):  # fmt: skip
        (tmp_path / "b.tsv").write_text(content)
        with pytest.raises(HgvizError, match=said):
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
    assert run("curve", study, path, "--data", pairs, "--method", "loo")[0] == 0
    assert run("compare", path, tmp_path / "out", "--data", pairs)[0] == 0
    model = open_model(folder("bart", "BartModel"))  # its states, by how far they move
    facts = tasks.evaluate(model, pairs).to_dict()
    assert (facts["metric"], facts["value"]) == ("cosine_distance", pytest.approx(0, abs=1e-6))
    for head in off:  # of the encoder, and of the decoder
        assert tasks.evaluate(model, pairs, off=frozenset({head})).to_dict()["value"] > 1e-5


@pytest.mark.parametrize("kind, name", [("t5", "T5"), ("bart", "Bart")])
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
    ("bart", "Bart"), ("t5", "T5"), ("bigbird_pegasus", "BigBirdPegasus"), ("mbart", "MBart"),
])  # fmt: skip
def test_classifiers_whose_decoder_reads_the_text_again_are_those_of_transformers(
    folder, tmp_path, kind, name
):
    name = f"{name}ForSequenceClassification"
    path = folder(kind, name)
    model = open_model(path)
    net = getattr(transformers, name).from_pretrained(path, attn_implementation="eager").eval()
    assert model.spec.goal == "classes" and model.spec.reads_twice
    given = [tokenizer().encode(first).ids for first, _ in PAIRS]
    logits = []
    for (text, _), ids in zip(PAIRS, given, strict=True):
        with torch.no_grad():
            out = net(torch.tensor([ids]), output_attentions=True)
        logits.append(out.logits[0].numpy())
        prompt, target = tasks.read_prompts(model, text)
        capture = tasks.capture(model, prompt, target=target)
        assert np.abs(capture.logits - logits[-1]).max() < 1e-5
        assert capture.target.ids.tolist()[1:] == ids[:-1] and capture.target.spans[0, 0] == -1
        pairs = zip(out.decoder_attentions, out.cross_attentions, strict=True)
        maps = [*out.encoder_attentions, *(one for pair in pairs for one in pair)]
        for one, wanted in zip(capture.maps, maps, strict=True):
            found = np.stack([one.read(head) for head in one.heads])
            assert np.abs(found - wanted[0].numpy()).max() < 1e-5
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
    study = tasks.importance(tasks.trials_of(model, data), {"gradient", "loss_change"})
    assert study.arrays["gradient"].any() and study.arrays["loss_change"][:, 3].any()


@pytest.mark.parametrize("name", ["SequenceClassification", "TokenClassification"])
def test_classes_of_t5gemma_read_the_text_again(folder, name):
    path = folder("t5gemma", f"T5GemmaFor{name}")
    net = getattr(transformers, f"T5GemmaFor{name}").from_pretrained(path).eval()
    ids = np.array([[4, 5, 6, 7, 2]])
    with torch.no_grad():
        logits = net(torch.tensor(ids)).logits.numpy()
    assert np.abs(open_model(path).run(ids).logits - logits).max() < 1e-5 * np.abs(logits).max()


def test_experts_are_computed_in_float64_where_float32_rounds_too_much(tmp_path, monkeypatch):
    path = write(tmp_path / "m", "mixtral", "MixtralForCausalLM")
    run = pruning.largest_difference

    def rounded(first, second, texts, note):  # by how much depends on the processor
        difference, largest = run(first, second, texts, note)
        return difference + 1e-4 * note.endswith("float32"), largest

    monkeypatch.setattr(pruning, "largest_difference", rounded)
    proof = tasks.prune(path, "0.0,0.2,0.3,1.0", tmp_path / "out")
    assert proof.dtype == "float64" and proof.rough > 1e-5 > proof.difference
    model = open_model(path, dtype="float64")
    found = tasks.reach(model, model.from_ids(np.arange(5, 14)))
    assert np.isfinite(found.own).all()


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
