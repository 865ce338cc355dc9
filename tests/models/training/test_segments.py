"""Models of segments learn: the loss falls, what comes out opens, and a stop changes nothing."""

import json

import pytest

from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.training import read_plan, train

TEXT = "the cat sat on the mat and the dog sat on the log. "
PLAN = """
[model]
family = "dynamic"
vocab_size = 256
d_model = 16
d_ff = 24
n_heads = 2
n_layers = [1, 1, 1]
boundaries = "{kind}"

[data]
train = ["a.txt"]
valid = "b.txt"

[recipe]
steps = 40
warmup = 4
rate = 1e-2
dropout = 0.05
initial = 0.2
save_every = 20
evaluate_every = 20
evaluate_length = 48
stages = [{{start = 0.0, length = 40, batch = 4}}]
"""


@pytest.fixture
def plan_of(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT * 20)
    (tmp_path / "b.txt").write_text("the dog sat on the mat. " * 20)

    def reading(kind):
        (tmp_path / "plan.toml").write_text(PLAN.format(kind=kind))
        return read_plan(tmp_path / "plan.toml")

    return reading


@pytest.mark.parametrize("kind", ["learned", "fixed", "whitespace", "entropy"])
def test_the_loss_falls_and_the_model_opens(plan_of, kind, tmp_path):
    report = finish(train(plan_of(kind), tmp_path / "m"))
    rows = [json.loads(line) for line in (tmp_path / "m" / "log.jsonl").read_text().splitlines()]
    assert rows[1]["held_out"] < rows[0]["held_out"] < 8 and report.value < 4.5
    model = open_model(tmp_path / "m")
    assert model.config.boundaries == kind and model.run([*TEXT.encode()]).logits.shape == (51, 256)


def test_a_stop_changes_nothing_though_boundaries_are_drawn(plan_of, tmp_path):
    plan = plan_of("learned")
    whole = finish(train(plan, tmp_path / "whole"))
    steps = train(plan, tmp_path / "stopped")
    while next(steps).value["step"] < 25:
        pass
    steps.close()
    assert finish(train(plan, tmp_path / "stopped")).figures == whole.figures


def test_boundaries_of_a_tokenizer_are_not_learned_here(plan_of, tmp_path):
    with pytest.raises(HgvizError, match="cannot be learned"):
        finish(train(plan_of("unigram"), tmp_path / "m"))
