"""A checkpoint trained for a while: from two models of one kind, on rows and on text."""

import json

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.formats.readers import read
from hgviz.models.training.tuning import exchange, plan_of
from hgviz.resources import resource
from tests.models.building import write_checkpoint


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A few of the bundled reviews."""
    lines = resource("sample/reviews.tsv").read_text("utf-8").splitlines()[:121]
    path = tmp_path_factory.mktemp("data") / "few.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """A tiny hourglass that reads bytes."""
    folder = tmp_path_factory.mktemp("models") / "letters"
    write_checkpoint(folder, dtype=torch.float32, vocab_size=256)
    return folder


def test_a_classifier_with_another_activation_learns_and_is_measured_before_and_after(
    rows, tmp_path
):
    out, steps = tmp_path / "tuned", []
    task = tasks.tune(resource("sample/softmax"), rows, out, "ymish", steps=3, device="cpu")
    while True:
        try:
            steps.append(next(task))
        except StopIteration as end:
            report = end.value
            break
    assert {*report.before} == {"original", "exchanged"} and report.steps == 3
    told = [one.value for one in steps if one.value and "metric" in one.value]
    assert [one["step"] for one in told] == [1, 2, 3] and told[0]["before"] == report.before
    model = open_model(out)
    assert {name for one in model.spec.layers for name in one.activations} == {"ymish"}
    parts = [(out / f"{name}.jsonl").read_text("utf-8") for name in ("train", "held-out")]
    sides = [[json.loads(line)["text"] for line in part.splitlines()] for part in parts]
    assert [*map(len, sides)] == [108, 12] and not {*sides[0]} & {*sides[1]}
    held_out = finish(tasks.evaluate(model, out / "held-out.jsonl"))
    assert held_out.score.value == pytest.approx(report.figures["accuracy"])
    whole = finish(tasks.evaluate(open_model(resource("sample/softmax")), out / "held-out.jsonl"))
    assert whole.score.value == pytest.approx(report.before["original"]["accuracy"])


def test_an_empty_file_into_a_folder_no_file_system_takes_is_one_clear_line(tmp_path):
    (tmp_path / "none.txt").write_text("")
    with pytest.raises(HgvizError, match="is empty"):
        finish(
            tasks.tune(resource("sample/softmax"), tmp_path / "none.txt", tmp_path / ("a" * 300))
        )


def test_enough_ends_it_with_what_is_learnt_by_then(letters, tmp_path):
    text, out, seen = tmp_path / "text.txt", tmp_path / "tuned", []
    text.write_text("The hourglass was used at sea.\n" * 200, "utf-8")

    def enough():
        seen.append(1)
        return len(seen) > 2

    report = finish(tasks.tune(letters, text, out, "tanh", minutes=60, device="cpu", enough=enough))
    assert report.steps == 2 and report.metric == "bits_per_byte"
    before, after = open_model(letters), open_model(out)
    ids = np.frombuffer(b"The hourglass", np.uint8).astype(np.int64)
    assert not np.array_equal(before.run(ids).logits, after.run(ids).logits)
    with pytest.raises(HgvizError, match="not empty"):
        finish(tasks.tune(letters, text, out, "tanh", steps=1))


def test_the_exchange_is_that_of_opening_with_another_activation():
    found = read(resource("sample/softmax"))
    assert exchange(found, "") == {}
    assert exchange(found, "ymish")["activations"] == ["ymish"]
    assert exchange(found, "topk:8")["top_k"] == 8
    with pytest.raises(HgvizError, match="cannot be used"):
        exchange(found, "nonsense")


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ("", "empty"),
        ("text\tlabel\ngood\tpositive\n", "only 1 rows"),
        ("text\tlabel\n" + "good\tpositive\n" * 40, "only one class"),
        ("text\tlabel\n" + "good\tyes\nbad\tno\n" * 40, "unknown"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused_and_leaves_nothing(tmp_path, data, wrong):
    path, out = tmp_path / "data.tsv", tmp_path / "out"
    path.write_text(data, "utf-8")
    with pytest.raises(HgvizError, match=wrong):
        finish(tasks.tune(resource("sample/softmax"), path, out, "ymish", steps=1))
    assert not out.exists()


def test_a_text_that_is_too_short_is_refused_and_leaves_nothing(letters, tmp_path):
    path, out = tmp_path / "data.txt", tmp_path / "out"
    path.write_text("short", "utf-8")
    with pytest.raises(HgvizError, match="too short"):
        finish(tasks.tune(letters, path, out, steps=1))
    assert not out.exists()


def test_a_text_is_cut_at_a_line_where_there_is_one(letters, tmp_path):
    path, out = tmp_path / "data.txt", tmp_path / "out"
    path.write_text("The hourglass was used at sea.\n" * 100, "utf-8")
    plan = plan_of(letters, path, out, steps=1)
    parts = [(out / f"{name}.txt").read_text("utf-8") for name in ("train", "held-out")]
    assert "".join(parts) == path.read_text("utf-8") and parts[0].endswith("\n")
    assert plan.recipe.steps == 1 and plan.recipe.minutes == 0
    assert plan.recipe.stages[0].length * 16 <= len(parts[1])
