"""hgviz evaluate: what it measures, that early scores are fair, and what it refuses in one line."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from hgviz import cli, examples, tasks
from hgviz.analysis import evaluation, scores
from hgviz.core import HeadId, HgvizError, Prompt, Score, finish
from hgviz.models import open_model
from hgviz.models.training import Vocabulary
from hgviz.models.training.vocabulary import train_coder
from tests.models.building import write_checkpoint, write_transformer

TEXT = "the cat sat on the mat and the dög sat on the log. " * 4
WORDS = ["the", "cat", "sat", "on", "mat", "and", "dog", "log"]


def nobody(*_):
    raise AssertionError("this verb needs no window")


@pytest.fixture
def run(capfd):
    """Run a command line; gives exit code, standard output and standard error."""

    def call(*arguments):
        code = cli.main([str(one) for one in arguments], cli.Window(nobody, nobody))
        return code, *capfd.readouterr()

    return call


def classifier(folder, labels=("no", "yes"), **keys):
    """A random classifier over words, with its tokenizer."""
    coder = train_coder(Vocabulary("words", least=1), [TEXT, "dog"], 1)
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


def test_a_classifier_is_scored_as_by_hand(tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path)
    off = frozenset({HeadId(0, 1)})
    for heads in (frozenset(), off):
        found = finish(tasks.evaluate(open_model(folder), path, off=heads))
        hand = by_hand(folder, path, heads)
        right = sum(one for one, _ in hand)
        assert found.right == tuple(one for one, _ in hand)
        assert found.loss == pytest.approx(np.mean([one for _, one in hand]), rel=1e-4)
        low, high = scores.wilson(right, 100)
        assert found.score == Score("accuracy", right / 100, low, high, 100, 100, heads)


def test_the_score_is_live_and_its_interval_narrows(tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path, 700)
    steps = list(tasks.evaluate(open_model(folder), path))
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

    texts = examples.labelled(prompts, [0] * 500 + [1] * 500, ("no", "yes"), None)
    steps = evaluation.evaluate(answer, texts)
    first = next(steps).value
    assert first.low < 0.5 < first.high
    assert min(asked) < 500 < max(asked)
    steps.close()


def test_json_has_what_the_contract_names(run, tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path)
    code, out, _ = run("evaluate", folder, "--data", path, "--json", "--off", "0.1,0.0")
    facts = json.loads(out)
    assert code == 0
    names = {"metric", "value", "low", "high", "loss", "seen", "total", "off", "f1", "mcc"}
    assert set(facts) == names
    assert (facts["metric"], facts["seen"], facts["off"]) == ("accuracy", 100, ["0.0", "0.1"])


def test_words_say_the_interval(run, tmp_path):
    folder, path = classifier(tmp_path / "model"), rows(tmp_path)
    code, out, _ = run("evaluate", folder, "--data", path)
    assert code == 0
    assert out.startswith("model: accuracy ") and " on 100; loss " in out and "Matthews" in out


def test_a_text_too_long_is_cut_and_counted(run, tmp_path):
    folder, path = classifier(tmp_path / "model"), tmp_path / "rows.tsv"
    path.write_text("text\tlabel\n" + "cat " * 40 + "\tyes\ncat\tno\n")
    _, out, _ = run("evaluate", folder, "--data", path, "--json")
    assert json.loads(out)["cut"] == 1


def test_numbers_name_the_classes_of_a_model_that_has_no_names_for_them(run, tmp_path):
    folder = classifier(tmp_path / "model", ("LABEL_0", "LABEL_1"))
    code, out, _ = run("evaluate", folder, "--data", rows(tmp_path, 40, ("0", "1")), "--json")
    assert (code, json.loads(out)["total"]) == (0, 40)


def test_a_language_model_is_scored_in_bits_per_byte(run, tmp_path):
    folder = write_checkpoint(tmp_path / "model", vocab_size=256)
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 12, "utf-8")
    found = finish(tasks.evaluate(open_model(folder), path))
    data = np.frombuffer(path.read_bytes(), np.uint8).astype(np.int64)
    model, nats = open_model(folder), 0.0
    for start in range(0, len(data) - 1, 1024):
        part = data[start : start + 1025]
        logits = model.run(part[:-1]).logits.astype(float)
        nats += scores.surprise(logits, part[1:]).sum()
    assert found.score.metric == "bits_per_byte"
    assert found.score.value == pytest.approx(nats / math.log(2) / (len(data) - 1), rel=1e-5)
    assert found.score.seen == found.score.total == len(data) - 1
    assert found.score.low < found.score.value < found.score.high
    assert found.perplexity == pytest.approx(math.exp(nats / (len(data) - 1)), rel=1e-4)
    code, out, _ = run("evaluate", folder, "--data", path)
    assert code == 0 and " bits per byte (" in out


def test_pieces_are_scored_by_the_bytes_they_stand_for(tmp_path):
    coder = train_coder(Vocabulary("words", least=1), [TEXT], 0)
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
    found = finish(tasks.evaluate(model, path))
    size = len(" sat on dög mat the log and the cat".encode())
    assert found.score.value == pytest.approx(9 * math.log2(coder.size) / size, rel=1e-5)


def test_a_masked_language_model_guesses_the_same_masks_every_time(run, tmp_path):
    coder = train_coder(Vocabulary("words", least=1), [TEXT], 1)
    write_transformer(
        tmp_path / "model", vocab_size=coder.size, family="bert", n_layers=1, max_positions=12,
        dtype=torch.float32,
    )  # fmt: skip
    coder.save(tmp_path / "model")
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 5, "utf-8")
    found = [run("evaluate", tmp_path / "model", "--data", path, "--json")[1] for _ in range(2)]
    assert found[0] == found[1]
    facts = json.loads(found[0])
    tokens = len(coder.rows([TEXT * 5], None)[0]) - 2
    assert facts["metric"] == "masked_accuracy"
    assert facts["seen"] == facts["total"] == pytest.approx(0.15 * tokens, rel=0.4)


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
def test_bad_rows_are_one_clear_line(run, tmp_path, data, message):
    folder, path = classifier(tmp_path / "model"), tmp_path / "rows.tsv"
    if data is not None:
        path.write_text(data)
    code, out, err = run("evaluate", folder, "--data", path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert message in err


def test_a_checkpoint_that_answers_nothing_cannot_be_scored(tmp_path):
    write_transformer(tmp_path / "model", form="encoder", goal="states", dtype=torch.float32)
    with pytest.raises(HgvizError, match="cannot be scored"):
        finish(tasks.evaluate(open_model(tmp_path / "model"), rows(tmp_path)))


def test_an_empty_text_is_one_clear_line(run, tmp_path):
    folder = write_checkpoint(tmp_path / "model", vocab_size=256)
    for data, message in (("", "is empty"), ("a", "too short to score")):
        (tmp_path / "text.txt").write_text(data)
        code, _, err = run("evaluate", folder, "--data", tmp_path / "text.txt")
        assert (code, err.count("\n")) == (1, 1) and message in err
