"""Pruning curves: measured on other examples than their order, resumed, timed, and refused."""

from functools import partial

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.importance import METHODS, importance, random_curves_beside
from hgviz.core import HgvizError
from hgviz.models import pruning
from hgviz.store import open_study
from hgviz.study import Study
from tests.progress import after, cancelled
from tests.store.samples import same
from tests.test_evaluate import classifier, rows
from tests.test_measurements import NEEDS, count_calls, language_model, trials_on


@pytest.fixture
def wide(tmp_path):
    """A classifier of eight heads in two layers, and its study."""
    folder = classifier(tmp_path / "wide", n_heads=4, n_layers=2, d_model=16)
    trials = trials_on(folder, rows(tmp_path, 60))
    return trials, tasks.importance(trials, {"gradient", "loss_change"})


def test_a_curve_is_measured_on_other_rows_than_its_order_was_made_from(wide):
    trials, study = wide
    found = tasks.curve(trials, study, "loo", random=3)
    one, *randoms = found.curves
    assert one.method == "loo" and [r.seed for r in randoms] == [1, 2, 3]
    assert len(one.rows) == 30 and list(one.removed) == list(range(9))
    others = np.setdiff1d(np.arange(60), one.rows)
    assert one.order == importance(study, "loo", rows=others).least_needed
    assert random_curves_beside(found, one) == tuple(randoms)
    part = trials.examples.part(one.rows)
    for at in (0, 3, 8):
        without = type(trials)(trials.model, part)
        trial = tasks.try_heads(without, one.off(at))
        assert one.values[at] == pytest.approx(trial.scores[-1].value)
        assert one.loss[at] == pytest.approx(trial.now.loss.mean(), abs=1e-5)
    assert len({r.values[-1] for r in (one, *randoms)}) == 1


def test_curves_that_are_there_are_not_measured_again(wide, monkeypatch):
    trials, study = wide
    found = tasks.curve(trials, study, "loo", random=2)
    called = count_calls(monkeypatch, trials)
    again = tasks.curve(trials, found, "loo", random=2)
    same(again, found)
    assert not called
    more = tasks.curve(trials, found, "signed", random=3)
    assert [(c.method, c.seed) for c in more.curves] == [
        ("loo", 0), ("random", 1), ("random", 2), ("signed", 0), ("random", 3),
    ]  # fmt: skip


def test_a_curve_grows_and_what_was_stopped_is_measured_anew(wide):
    trials, study = wide
    five = after(5)
    heard = cancelled(
        tasks.curve, trials, study, "loo", random=1,
        when=lambda step: step.value is not None and five(step),
    )  # fmt: skip
    grown = [step.value for step in heard if step.value is not None]
    assert [len(one.curves[0].removed) for one in grown[:4]] == [1, 2, 3, 4]
    so_far = grown[4]
    found = tasks.curve(trials, so_far, "loo", random=1)
    assert [len(one.removed) for one in found.curves] == [9, 9]


@pytest.fixture
def quick(monkeypatch):
    """Each pass is timed once."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))


def test_the_points_of_a_curve_are_timed_where_they_are_asked_to_be(wide, quick, monkeypatch):
    trials, study = wide
    plain = tasks.curve(trials, study, "loo", random=2)
    assert [one.times for one in plain.curves] == [None] * 3
    stopped = cancelled(tasks.curve, trials, plain, "loo", random=2, timed=True, when=after(2))
    assert "0 of 8 heads off" in stopped[1].note  # all points or none
    ran, built = [], pruning.runner_without

    def watched(model, off):
        run = built(model, off)

        def noted(text):
            ran.append((off, text.shape[0], torch.get_num_threads()))
            return run(text)

        return noted

    monkeypatch.setattr(pruning, "runner_without", watched)
    found = tasks.curve(trials, plain, "loo", random=2, timed=True)
    one, *randoms = found.curves
    assert one.times.shape == (9, 2) and (one.times > 0).all()
    assert [other.times for other in randoms] == [None, None]
    assert {count for _, count, _ in ran} == {16} and {threads for *_, threads in ran} == {1}
    at = [off for off, *_ in ran]
    turns = [frozenset(), one.off(0)] * 2  # before it counts, and once
    for count in range(1, 9):
        turns += [frozenset(), one.off(count)] * 2
    assert at == turns
    again = tasks.curve(trials, found, "loo", random=2, timed=True)
    same(again, found)
    assert len(ran) == len(turns)


def test_a_model_in_memory_lacks_the_heads_and_answers_as_if_they_were_off(wide, monkeypatch):
    trials, study = wide
    off = frozenset(study.heads[1:6])  # the whole first layer but one, and some of the second
    text = pruning.example_batches(trials.examples, trials.model.spec, 1)[0]
    masked = pruning.runner(trials.model.module, off)(text)
    built, module_of = [], pruning.module_of
    monkeypatch.setattr(pruning, "module_of", lambda *a: built.append(module_of(*a)) or built[-1])
    smaller = pruning.runner_without(trials.model, off)(text)
    sizes = [
        sum(one.numel() for one in each.parameters()) for each in (trials.model.module, *built)
    ]
    assert sizes[0] - sizes[1] == 5 * (4 * 16 * 4 + 3 * 4)  # width 16, heads of 4; weights, biases
    torch.testing.assert_close(smaller, masked, atol=1e-5, rtol=0)
    whole = pruning.runner_without(trials.model, frozenset())(text)
    assert float((whole - masked).abs().max()) > 1e-4


def test_what_cannot_be_timed_is_told_and_the_curve_stays(wide, tmp_path, monkeypatch):
    trials, study = wide
    found = tasks.curve(trials, study, "loo", random=0)
    other = trials_on(classifier(tmp_path / "other", n_heads=2), rows(tmp_path, 60))
    with pytest.raises(HgvizError, match="another model"):
        tasks.curve_times(other, found, found.curves[0])

    def refuse(*_):
        raise HgvizError("this model cannot be made smaller: its heads share everything")

    monkeypatch.setattr(pruning, "remove_heads", refuse)
    path = tmp_path / "s.h5"
    with pytest.raises(HgvizError, match="share everything"):
        tasks.keeping(path, partial(tasks.curve, trials, study, "loo", random=0, timed=True))
    assert [one.times for one in open_study(path).curves] == [None]


def test_heads_that_have_to_stay_stay(wide):
    trials, study = wide
    found = tasks.curve(trials, study, "loo", random=2, least=1)
    for one in found.curves:
        assert [sum(head.layer == layer for head in one.order) for layer in (0, 1)] == [3, 3]


def test_a_curve_along_which_heads_stay_is_told_from_one_along_which_none_does(wide):
    trials, study = wide
    for least in (1, 0, 1):
        study = tasks.curve(trials, study, "loo", random=20, least=least)
    short, long = sorted(
        (one for one in study.curves if one.method == "loo"), key=lambda one: len(one.order)
    )
    stay = len(study.heads) - len(short.order)
    assert stay > 0 and len(long.order) == len(study.heads)
    for one in (short, long):
        beside = random_curves_beside(study, one)
        assert len(beside) == 20 and {len(other.order) for other in beside} == {len(one.order)}
    drawn = tasks.study_chart("curve", [study]).panels[0].lines
    assert {line.label for line in drawn} == {"loo", f"loo, {stay} stay"}


def test_an_order_in_which_no_head_can_go_is_refused(wide):
    with pytest.raises(HgvizError, match="no head can go"):
        tasks.curve(*wide, "loo", random=20, least=100)


def test_what_was_not_measured_makes_no_order(wide, tmp_path):
    trials, study = wide
    for method in ("shapley", "gates", "nonsense"):
        with pytest.raises(HgvizError):
            tasks.curve(trials, study, method)
    one = tasks.trials_of(trials.model, tmp_path / "rows.tsv", limit=1)
    with pytest.raises(HgvizError, match="too few"):
        tasks.curve(one, tasks.importance(one, {"gradient"}))


def test_curves_of_a_language_model_are_measured(tmp_path):
    trials = language_model(tmp_path)
    assert len(trials.examples) > 1
    study = tasks.importance(trials, {"gradient"})
    found = tasks.curve(trials, study, random=2)
    assert isinstance(found, Study) and len(found.curves) == 3
    assert found.curves[0].unit == "next_token_accuracy"


def test_every_method_needs_something_that_is_measured():
    assert {one.needs for name, one in METHODS.items() if not one.learned} < NEEDS
