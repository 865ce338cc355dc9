"""hgviz evaluate: what it measures, that early scores are fair, and what it refuses in one line."""

import json
import math

import numpy as np
import pytest
import torch
import transformers
from scipy.special import log_softmax

from hgviz import examples, tasks
from hgviz.analysis import statistics
from hgviz.analysis.statistics import wilson
from hgviz.core import HeadId, MetricEstimate, Prompt
from hgviz.models import open_model
from hgviz.models.huggingface import quiet
from hgviz.models.text import TokenizerPlan, train_tokenizer
from tests.models.building import write_checkpoint, write_transformer
from tests.progress import cancelled, with_steps

TEXT = "the cat sat on the mat and the dög sat on the log. " * 4
WORDS = ["the", "cat", "sat", "on", "mat", "and", "dog", "log"]


def classifier(folder, labels=("no", "yes"), **keys):
    """A random classifier over words, with its tokenizer."""
    coder = train_tokenizer(TokenizerPlan("words", least=1), [TEXT, "dog"], 1)
    write_transformer(
        folder, vocab_size=coder.size, family="bert", goal="classes", labels=list(labels),
        **{"n_layers": 1, "max_positions": 12, "dtype": torch.float32, **keys},
    )  # fmt: skip
    coder.save(folder)
    return folder


def rows(folder, count=100, labels=("no", "yes")):
    random = np.random.default_rng(5)
    path = folder / "rows.tsv"
    lines = [
        f"{' '.join(random.choice(WORDS, random.integers(1, 9)))}\t{random.choice(labels)}"
        for _ in range(count)
    ]
    path.write_text("sentence\tlabel\n" + "\n".join(lines) + "\n")
    return path


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
    assert " on 700; loss " in out and "Matthews" in out


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
    windows = tasks.examples_from(open_model(speaker(tmp_path / "lm", "next")), path, batch_size=2)
    assert max(len(batch.rows) for block in windows.blocks() for batch in block) == 2


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
    assert err.splitlines()[-1] == "Labels are class ids: 0 is no, 1 is yes."
    assert run("evaluate", folder, "--data", path, "--json", "--quiet") == (0, out, "")
    path.write_text(text.replace("\t1", "\t2").replace("\t0", "\t1"))
    assert "--labels 1=no,2=yes" in refusal("evaluate", folder, "--data", path)
    assert facts("evaluate", folder, "--data", path, "--labels", "1=no,2=yes") == named


def test_long_texts_are_cut_and_numbers_name_classes_without_names(facts, tmp_path):
    folder, path = classifier(tmp_path / "model", ("LABEL_0", "LABEL_1")), tmp_path / "rows.tsv"
    path.write_text("text\tlabel\n" + "cat " * 40 + "\t1\ncat\t0\n")
    said = facts("evaluate", folder, "--data", path)
    assert (said["total"], said["cut"]) == (2, 1)


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


def test_a_masked_language_model_guesses_the_same_masks_every_time(facts, tmp_path):
    model, path = speaker(tmp_path / "model", "masked"), tmp_path / "text.txt"
    path.write_text(TEXT * 5, "utf-8")
    told, again = (facts("evaluate", model, "--data", path) for _ in range(2))
    assert told == again and told["metric"] == "masked_accuracy"
    tokens = 20 * 14  # sentences of 13 words and a full stop
    assert told["seen"] == told["total"] == pytest.approx(0.15 * tokens, rel=0.4)


def verbs(model, out):
    """Every verb that scores a model on data; out: where they write."""
    study = out.with_suffix(".h5")
    return (
        ("evaluate", model), ("importance", model, "-o", study), ("curve", study, model),
        ("compare", model, model), ("prune", model, "--off", "0.0", "-o", out),
    )  # fmt: skip


@pytest.mark.parametrize("goal", ["next", "masked"])
def test_a_language_model_reads_the_texts_of_a_table_alone_and_says_how_many(run, tmp_path, goal):
    """In every verb that scores one: other labels and another format change no number."""
    model = speaker(tmp_path / "model", goal)
    files = [
        table(tmp_path / "some.tsv", ["0", "1", "0", "1", "1"]),
        table(tmp_path / "other.tsv", ["zzzzqq", "", "no", "yes", "a long label"]),
        table(tmp_path / "same.csv", ["a", "b", "c", "d", "e"], "text"),
        table(tmp_path / "same.jsonl", ["a", "b", "c", "d", "e"], "text"),
    ]
    first, *rest = found = [[], [], [], []]
    for number, (data, said) in enumerate(zip(files, found, strict=True)):
        for verb in verbs(model, tmp_path / str(number))[: 5 if number < 2 else 1]:
            code, out, err = run(*verb, "--data", data, "--json")
            assert code == 0, err
            said.append(json.loads(out))
            if verb[0] in ("compare", "prune"):
                for name in ("latency", "path", "source", "data"):
                    said[-1].pop(name, None)
    assert all(said == first[: len(said)] for said in rest)
    evaluated, compared = first[0], first[3]
    if goal == "next":  # by hand: each text by itself, no byte of a label
        assert (evaluated["windows"], evaluated["texts"]) == (40, 40)
        assert evaluated["total"] == 8 * sum(len(one.encode()) - 1 for one in SENTENCES)
    assert compared["score_b"]["texts"] == evaluated["texts"]
    amount = f"{evaluated['windows']} windows of {evaluated['texts']} texts"
    for verb in verbs(model, tmp_path / "out"):
        code, out, err = run(*verb, "--data", files[0])
        assert code == 0, err
        assert amount in " ".join(out.split()), verb[0]


READ_TEXTS = [
    ("rows.tsv", "abc\tpos\nabcd\tneg\n", "", "does not say which column is the text"),
    ("rows.tsv", "abc\tpos\nabcd\tneg\n", "0", 2 + 3),  # a number: there is no header
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n2\tabcd\t\n", "", "does not say which column"),
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n2\tabcd\t\n", "phrase", 2 + 3),
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n2\tabcd\t\n", "1", 2 + 3),
    ("rows.tsv", "id\tphrase\tlabel\n1\tabc\tpos\n", "words", "has no column 'words'"),
    ("rows.tsv", "abc\nabcd\n", "", 2 + 3),  # one column is the text
    ("rows.tsv", "text\tlabel\nabc\tpos\n\tneg\n", "", "line 3, column text is missing or empty"),
    ("rows.tsv", "text\tlabel\n", "", "has a header and no rows"),
    ("rows.txt", "text\tlabel\nabc\tpos\n", "", 18),  # as it stands
    ("rows.txt", "", "", "is empty"),
    ("rows.txt", "a", "", "too short to score"),
]  # fmt: skip


def test_a_column_of_texts_is_found_or_asked_for(run, tmp_path):
    model = speaker(tmp_path / "model", "next")
    for name, content, column, expected in READ_TEXTS:
        (tmp_path / name).write_text(content)
        options = ("--text-column", column) if column else ()
        code, out, err = run("evaluate", model, "--data", tmp_path / name, "--json", *options)
        if isinstance(expected, int):
            assert code == 0 and json.loads(out)["total"] == expected, content
        else:
            assert code == 1 and expected in err and err.count("\n") == 1, content


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "is empty"),
        ("sentence\tlabel\nthe cat\tmaybe\n", "line 2, column label: the label 'maybe' is unknown"),
        ("sentence\tlabel\nthe cat\n", "line 2, column label is missing"),
        (None, "could not be read"),
    ],
)
def test_rows_that_cannot_be_read_are_one_clear_line(refusal, tmp_path, data, message):
    folder, path = classifier(tmp_path / "model"), tmp_path / "rows.tsv"
    if data is not None:
        path.write_text(data)
    assert message in refusal("evaluate", folder, "--data", path)


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
