"""gates.json and what becomes of it: runs of several trainings, scores of a study."""

import numpy as np
import pytest

from hgviz import tasks
from hgviz.analysis.importance import importance
from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.training import train
from hgviz.models.training.learned import read_learned
from tests.models.training.planting import CAUSAL, INTERFERES, SOLVES, plan


@pytest.mark.parametrize("gates", [CAUSAL, {"method": "gates", "lambda": 0.05}])
def test_learnt_gates_are_scores_of_a_study(planted, tmp_path, gates):
    for seed in (1, 2):
        recipe = {"seed": seed, "steps": 60}
        finish(train(plan(planted, gates, recipe), tmp_path / str(seed)))
    model = open_model(planted / "model")
    trials = finish(tasks.trials_of(model, planted / "dev.tsv"))
    measured = finish(tasks.importance(trials, {"loss_change"}))
    for _ in range(2):  # again: the same runs, not more of them
        both = tasks.learned([tmp_path / "1", tmp_path / "2" / "gates.json"], model.spec)
        measured = tasks.with_learned(measured, both)
    assert {len(one.runs) for one in measured.learned} == {2}
    found, exact = (importance(measured, one) for one in (gates["method"], "loo"))
    assert found.heads[int(np.argmin(found.rank))] == SOLVES
    assert exact.least[0] == INTERFERES
    assert found.rank[1] == exact.rank[1] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "holds no gates"),
        ("not json", "holds no gates"),
        ('{"gates_version": 9, "method": "gates", "heads": [], "off": "", "learned": {}, '
         '"models": []}', "newer version"),
        ('{"gates_version": 1, "method": "gates", "heads": ["0.0"], "off": "", "learned": {}, '
         '"models": []}', "of another model"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_gates_of_a_model_is_one_clear_line(planted, tmp_path, text, message):
    (tmp_path / "gates.json").write_text(text)
    with pytest.raises(HgvizError, match=message) as caught:
        read_learned([tmp_path], open_model(planted / "model").spec)
    assert "\n" not in str(caught.value)


def test_gates_that_are_not_there_are_one_clear_line(planted, tmp_path):
    with pytest.raises(HgvizError, match="cannot read"):
        read_learned([tmp_path], open_model(planted / "model").spec)
