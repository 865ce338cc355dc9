"""hgviz evaluate: what it measures, that early scores are fair, and what it refuses in one line."""

import json
import math

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from hgviz import examples, tasks
from hgviz.analysis import statistics
from hgviz.analysis.statistics import wilson
from hgviz.core import HeadId, MetricEstimate, Prompt
from hgviz.models import open_model
from hgviz.models.text import TokenizerPlan, train_tokenizer
from tests.models.building import write_checkpoint, write_transformer
from tests.progress import cancelled, steps_of

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


def by_hand(folder, path, off=frozenset()):
    """Whether each row is right, one text at a time, and its surprise."""
    model = open_model(folder)
    found = []
    for line in path.read_text().splitlines()[1:]:
        text, label = line.split("\t")
        logits = model.run(model.tokenize(text).ids, off=off).logits.astype(float)
        wanted = model.spec.labels.index(label)
        odds = np.exp(logits - logits.max())
        found.append((logits.argmax() == wanted, -math.log(odds[wanted] / odds.sum())))
    return found


def test_class_ids_are_read_as_the_names_are_and_said(run, refusal, facts, tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path)
    named = facts("evaluate", folder, "--data", path)
    text = path.read_text().replace("\tno", "\t0").replace("\tyes", "\t1")
    path.write_text(text)
    code, out, err = run("evaluate", folder, "--data", path, "--json")
    assert (code, json.loads(out)) == (0, named)
    assert err.splitlines()[-1] == "Labels are class ids: 0 is no, 1 is yes."
    path.write_text(text.replace("\t1", "\t2").replace("\t0", "\t1"))
    assert "--labels 1=no,2=yes" in refusal("evaluate", folder, "--data", path)
    assert facts("evaluate", folder, "--data", path, "--labels", "1=no,2=yes") == named


def test_a_classifier_is_scored_as_by_hand(tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path)
    off = frozenset({HeadId(0, 1)})
    for heads in (frozenset(), off):
        found = tasks.evaluate(open_model(folder), path, off=heads)
        hand = by_hand(folder, path, heads)
        right = sum(one for one, _ in hand)
        assert found.right == tuple(one for one, _ in hand)
        assert found.loss == pytest.approx(np.mean([one for _, one in hand]), rel=1e-4)
        low, high = wilson(right, 100)
        assert found.score == MetricEstimate("accuracy", right / 100, low, high, 100, 100, heads)


def test_the_score_is_live_and_its_interval_narrows(tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path, 700)
    steps = steps_of(tasks.evaluate, open_model(folder), path)
    live = [step.value for step in steps if step.value is not None]
    assert [one.seen for one in live] == [32, 288, 544, 700]
    widths = [one.high - one.low for one in live]
    assert widths == sorted(widths, reverse=True)
    assert all(one.low <= one.value <= one.high for one in live)


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


def test_a_score_is_told_in_json_and_in_words(run, facts, tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path)
    told = facts("evaluate", folder, "--data", path, "--off", "0.1,0.0")
    names = {"metric", "value", "low", "high", "loss", "seen", "total", "off", "f1", "mcc"}
    assert set(told) == names
    assert (told["metric"], told["seen"], told["off"]) == ("accuracy", 100, ["0.0", "0.1"])
    code, out, _ = run("evaluate", folder, "--data", path)
    assert code == 0 and out.startswith("model: accuracy ")
    assert " on 100; loss " in out and "Matthews" in out


def test_a_text_too_long_is_cut_and_counted(run, tmp_path):
    folder, path = classifier(tmp_path / "model"), tmp_path / "rows.tsv"
    path.write_text("text\tlabel\n" + "cat " * 40 + "\tyes\ncat\tno\n")
    _, out, _ = run("evaluate", folder, "--data", path, "--json")
    assert json.loads(out)["cut"] == 1


def test_numbers_name_the_classes_of_a_model_that_has_no_names_for_them(facts, tmp_path):
    folder = classifier(tmp_path / "model", ("LABEL_0", "LABEL_1"))
    assert facts("evaluate", folder, "--data", rows(tmp_path, 40, ("0", "1")))["total"] == 40


def test_a_language_model_is_scored_in_bits_per_byte(run, tmp_path):
    folder = write_checkpoint(tmp_path / "model", vocab_size=256)
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 12, "utf-8")
    found = tasks.evaluate(open_model(folder), path)
    data = np.frombuffer(path.read_bytes(), np.uint8).astype(np.int64)
    model, nats = open_model(folder), 0.0
    for start in range(0, len(data) - 1, 1024):
        part = data[start : start + 1025]
        logits = model.run(part[:-1]).logits.astype(float)
        nats -= log_softmax(logits, -1)[np.arange(len(part) - 1), part[1:]].sum()
    assert found.score.metric == "bits_per_byte"
    assert found.score.value == pytest.approx(nats / math.log(2) / (len(data) - 1), rel=1e-5)
    assert found.score.seen == found.score.total == len(data) - 1
    assert found.score.low < found.score.value < found.score.high
    assert found.perplexity == pytest.approx(math.exp(nats / (len(data) - 1)), rel=1e-4)
    code, out, _ = run("evaluate", folder, "--data", path)
    assert code == 0 and " bits per byte (" in out


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


# --- texts of a table -----------------------------------------------------------------------------

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


def verbs(model, out):
    """Every verb that scores a model on data; out: where they write."""
    study = out.with_suffix(".h5")
    return (
        ("evaluate", model), ("importance", model, "-o", study), ("curve", study, model),
        ("compare", model, model), ("prune", model, "--off", "0.0", "-o", out),
    )  # fmt: skip


@pytest.mark.parametrize("goal", ["next", "masked"])
def test_a_language_model_reads_the_texts_of_a_table_alone(run, tmp_path, goal):
    """In every verb that scores one: other labels and another format change no number."""
    model = speaker(tmp_path / "model", goal)
    files = [
        table(tmp_path / "some.tsv", ["0", "1", "0", "1", "1"]),
        table(tmp_path / "other.tsv", ["zzzzqq", "", "no", "yes", "a long label"]),
        table(tmp_path / "same.csv", ["a", "b", "c", "d", "e"], "text"),
        table(tmp_path / "same.jsonl", ["a", "b", "c", "d", "e"], "text"),
    ]
    first, *rest = found = [[], [], [], []]
    for number, (data, told) in enumerate(zip(files, found, strict=True)):
        for verb in verbs(model, tmp_path / str(number))[: 5 if number < 2 else 1]:
            code, out, err = run(*verb, "--data", data, "--json")
            assert code == 0, err
            told.append(json.loads(out))
            if verb[0] in ("compare", "prune"):
                for name in ("latency", "path", "source", "data"):
                    told[-1].pop(name, None)
    assert all(told == first[: len(told)] for told in rest)
    evaluated, compared = first[0], first[3]
    if goal == "next":  # by hand: each text by itself, no byte of a label
        assert (evaluated["windows"], evaluated["texts"]) == (40, 40)
        assert evaluated["total"] == 8 * sum(len(one.encode()) - 1 for one in SENTENCES)
    assert compared["score_b"]["texts"] == evaluated["texts"]


@pytest.mark.parametrize("goal", ["next", "masked"])
def test_every_verb_says_how_many_windows_of_how_many_texts(run, facts, tmp_path, goal):
    model = speaker(tmp_path / "model", goal)
    data = table(tmp_path / "some.tsv", ["0", "1", "0", "1", "1"])
    told = facts("evaluate", model, "--data", data)
    said = f"{told['windows']} windows of {told['texts']} texts"
    for verb in verbs(model, tmp_path / "out"):
        code, out, err = run(*verb, "--data", data)
        assert code == 0, err
        assert said in " ".join(out.split()), verb[0]
    if goal == "next":
        assert said == "40 windows of 40 texts"


def test_texts_of_a_table_are_scored_one_by_one(tmp_path):
    """As by hand, text for text, of whatever length: nothing is padding, nothing goes on."""
    model = open_model(speaker(tmp_path / "model", "next"))
    found = tasks.evaluate(model, table(tmp_path / "some.tsv", list("abcde")))
    nats = bytes_ = 0.0
    for text in SENTENCES:
        data = np.frombuffer(text.encode(), np.uint8).astype(np.int64)
        logits = model.run(data[:-1]).logits.astype(float)
        nats -= log_softmax(logits, -1)[np.arange(len(data) - 1), data[1:]].sum()
        bytes_ += len(data) - 1
    assert found.score.value == pytest.approx(nats / math.log(2) / bytes_, rel=1e-5)


def test_a_column_of_texts_is_found_or_asked_for(run, tmp_path):
    model, path = speaker(tmp_path / "model", "next"), tmp_path / "rows.tsv"

    def total(*options):
        code, out, err = run("evaluate", model, "--data", path, "--json", *options)
        return json.loads(out)["total"] if code == 0 else err

    path.write_text("abc\tpos\nabcd\tneg\n")
    assert "does not say which column is the text" in total()
    assert total("--text-column", "0") == 2 + 3  # a number means that there is no header
    path.write_text("id\tphrase\tlabel\n1\tabc\tpos\n2\tabcd\t\n")
    assert "does not say which column is the text" in total()
    assert total("--text-column", "phrase") == total("--text-column", "1") == 2 + 3
    assert "has no column 'words'" in total("--text-column", "words")
    path.write_text("abc\nabcd\n")
    assert total() == 2 + 3  # one column is the text
    path.write_text("text\tlabel\nabc\tpos\n\tneg\n")
    assert "line 3, column text is missing or empty" in total()
    path.write_text("text\tlabel\n")
    assert "has a header and no rows" in total()


def test_the_text_of_a_txt_is_read_as_it_stands(facts, tmp_path):
    model, path = speaker(tmp_path / "model", "next"), tmp_path / "rows.txt"
    path.write_text("text\tlabel\nabc\tpos\n")
    told = facts("evaluate", model, "--data", path)
    assert (told["total"], told["windows"], told["texts"]) == (18, 1, 1)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "is empty"),
        ("sentence\tlabel\nthe cat\tmaybe\n", "line 2, column label: the label 'maybe' is unknown"),
        ("sentence\tlabel\nthe cat\n", "line 2, column label is missing"),
        (None, "could not be read"),
    ],
)
def test_data_that_cannot_be_read_are_one_clear_line(refusal, tmp_path, data, message):
    folder, path = classifier(tmp_path / "model"), tmp_path / "rows.tsv"
    if data is not None:
        path.write_text(data)
    assert message in refusal("evaluate", folder, "--data", path)
    language = write_checkpoint(tmp_path / "language", vocab_size=256)
    for text, why in (("", "is empty"), ("a", "too short to score")):
        (tmp_path / "text.txt").write_text(text)
        assert why in refusal("evaluate", language, "--data", tmp_path / "text.txt")


def test_a_checkpoint_that_gives_hidden_states_is_scored_by_how_far_they_move(tmp_path):
    folder = tmp_path / "model"
    write_transformer(folder, form="encoder", goal="states", dtype=torch.float32, vocab_size=256)
    model = open_model(folder)
    assert tasks.evaluate(model, rows(tmp_path)).score.value == pytest.approx(0, abs=1e-9)
    found = tasks.evaluate(model, rows(tmp_path), off=frozenset(model.spec.heads))
    assert found.score.metric == "cosine_distance" and found.score.value > 0
