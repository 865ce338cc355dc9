"""Heads measured into a study: every array, gone on with, kept at a stop, and curves along it."""

import dataclasses
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.analysis.importance import METHODS, importance, random_curves_beside
from hgviz.core import HeadId, HgvizError, listening
from hgviz.models import open_model, pruning
from hgviz.store import open_study
from hgviz.study import NO_PREDICTION, UNKNOWN, PruningCurve, Study
from hgviz.tasks import measurements
from tests.models.building import write_checkpoint
from tests.progress import after, cancelled, steps_of
from tests.store.samples import same
from tests.studying import make_study
from tests.test_evaluate import TEXT, classifier, rows

# --- what a study says ----------------------------------------------------------------------------


def test_no_array_of_a_study_can_be_written():
    study = make_study()
    assert study.arrays and not any(one.flags.writeable for one in study.arrays.values())
    for one in (study, *study.learned, *study.curves):
        arrays = [getattr(one, each.name) for each in fields(one)]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        assert arrays and not any(array.flags.writeable for array in arrays)


def test_what_fills_an_array_goes_on_behind_a_study():
    loss = np.zeros(9, np.float32)
    study = make_study()
    growing = type(study)(
        study.spec, study.heads, "classes", "accuracy", study.places, study.wanted, study.lengths,
        loss, study.given,
    )  # fmt: skip
    loss[3] = 1
    assert growing.loss[3] == 1


@given(st.integers(1, 30), st.sampled_from(["classes", "next", "masked"]), st.integers(0, 99))
def test_places_of_examples_are_those_between_their_ends(examples, asked, seed):
    study = make_study(seed, examples, asked)
    rows = np.random.default_rng(seed).random(examples) < 0.5
    expected = np.zeros(len(study.wanted), bool)
    for row in np.flatnonzero(rows):
        expected[study.places[row] : study.places[row + 1]] = True
    assert (study.places_of(rows) == expected).all()
    assert (study.places_of(np.flatnonzero(rows)) == expected).all()
    assert len(study) == examples and study.counts.sum() == len(study.wanted)


def test_what_was_not_asked_is_not_right():
    study = make_study(1, 20, done=0.5)
    assert not study.right[10:].any() and study.answered.tolist() == [True] * 10 + [False] * 10
    assert (study.given[10:] == NO_PREDICTION).all()


def test_a_curve_knows_what_is_off_at_each_step():
    one: PruningCurve = make_study().curves[0]
    assert one.off(0) == frozenset()
    assert one.off(3) == {*one.order[:3]}
    with pytest.raises(AttributeError):
        one.seed = 1


# --- measuring ------------------------------------------------------------------------------------


NEEDS = {"gradient", "token_gradient", "loss_change", "change", "alone", "shapley"}


@pytest.fixture
def trials(tmp_path):
    return trials_on(classifier(tmp_path / "model"), rows(tmp_path, 70))


def trials_on(folder, data, **keys):
    return tasks.trials_of(open_model(folder), data, **keys)


def language_model(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 12, "utf-8")
    return trials_on(write_checkpoint(tmp_path / "lm", vocab_size=256), path)


def test_every_array_is_measured_and_every_score_is_made_of_them(trials):
    study = tasks.importance(trials, NEEDS, "rows.tsv", seed=4, permutations=3)
    assert study.answered.all() and (study.arrays["change"] != UNKNOWN).all()
    for name in NEEDS - {"change"}:
        assert np.isfinite(study.arrays[name]).all()
    assert study.arrays["shapley"].shape == (3, 2) and study.made.seed == 4
    for name in ("signed", "michel", "michel-token", "fisher", "loo", "all-but-one", "shapley"):
        assert sorted(importance(study, name).rank) == [1, 2]
    np.testing.assert_allclose(
        study.arrays["shapley"].sum(1), study.arrays["shapley"].sum(1)[0], atol=1e-6
    )


def test_leaving_one_out_is_what_trying_it_gives(trials):
    study = tasks.importance(trials, {"loss_change", "change"})
    for at, head in enumerate(study.heads):
        trial = tasks.try_heads(trials, frozenset({head}))
        every = trial.slices[0]
        np.testing.assert_allclose(
            study.loss + study.arrays["loss_change"][:, at], trial.now.loss, atol=1e-5
        )
        assert (study.arrays["change"][:, at] == -1).sum() == every.lost
        assert (study.arrays["change"][:, at] == 1).sum() == every.won


def test_scores_of_a_language_model_are_measured(tmp_path):
    study = tasks.importance(language_model(tmp_path), NEEDS - {"shapley"})
    assert study.asked == "next" and study.sizes.sum() > 0
    assert len(study.loss) == study.places[-1] > len(study)
    assert np.isfinite(study.arrays["loss_change"]).all()


def count_calls(monkeypatch, trials):
    called = []
    for name in ("baseline", "gate_gradients", "without_each", "without"):
        old = getattr(type(trials), name)

        def counting(self, *arguments, _old=old, _name=name, **keys):
            called.append(_name)
            return _old(self, *arguments, **keys)

        monkeypatch.setattr(type(trials), name, counting)
    return called


def test_a_study_that_is_complete_is_not_measured_again(trials, monkeypatch):
    study = tasks.importance(trials, NEEDS, permutations=2)
    called = count_calls(monkeypatch, trials)
    same(tasks.importance(trials, NEEDS, permutations=2, known=study), study)
    assert not called
    more = tasks.importance(trials, {"shapley"}, permutations=3, known=study)
    assert set(called) == {"without", "baseline"} and len(more.arrays["shapley"]) == 3
    np.testing.assert_array_equal(more.arrays["shapley"][:2], study.arrays["shapley"])
    whole = tasks.importance(trials, NEEDS, permutations=3)
    np.testing.assert_array_equal(more.arrays["shapley"], whole.arrays["shapley"])


@pytest.mark.parametrize("needs", [{"gradient"}, {"change", "loss_change"}, {"alone"}, {"shapley"}])
def test_a_study_that_was_stopped_goes_on_where_it_was(trials, monkeypatch, needs):
    monkeypatch.setattr(measurements, "OFTEN", 0)
    whole = tasks.importance(trials, needs, permutations=2)
    steps = len(steps_of(tasks.importance, trials, needs, permutations=2))
    for stop in range(1, steps, 2):
        heard = cancelled(tasks.importance, trials, needs, permutations=2, when=after(stop))
        so_far = heard[-1].value
        gone_on = tasks.importance(trials, needs, permutations=2, known=so_far)
        same(replace(gone_on, made=whole.made), whole)


def test_methods_accumulate_in_a_file(trials, tmp_path):
    out = tmp_path / "a.h5"
    tasks.study(trials, {"gradient"}, out, "rows.tsv")
    first = open_study(out)
    assert "loss_change" not in first.arrays and first.data == "rows.tsv"
    tasks.study(trials, {"loss_change"}, out)
    second = open_study(out)
    assert "loss_change" in second.arrays and second.data == "rows.tsv"
    np.testing.assert_array_equal(second.arrays["gradient"], first.arrays["gradient"])


def test_a_study_that_is_stopped_keeps_what_it_has(trials, tmp_path, monkeypatch):
    monkeypatch.setattr(measurements, "OFTEN", 0)
    out = tmp_path / "a.h5"
    second = after(2)
    cancelled(
        tasks.study, trials, {"gradient"}, out,
        when=lambda step: not out.exists() and second(step),
    )  # fmt: skip
    kept = open_study(out)
    assert 0 < kept.answered.sum() < len(kept.loss)
    assert np.isnan(kept.loss[kept.given == NO_PREDICTION]).all()
    tasks.study(trials, {"gradient"}, out)
    assert open_study(out).answered.all()


def test_a_study_is_written_while_it_grows(trials, tmp_path, monkeypatch):
    for name in ("OFTEN", "SAVED", "SHARE"):
        monkeypatch.setattr(measurements, name, 0)
    out, grown = tmp_path / "a.h5", []

    def look(step):
        grown.append(out.exists() and open_study(out).answered.any())

    with listening(look):
        tasks.study(trials, {"gradient"}, out)
    assert any(grown)


def test_an_error_keeps_what_was_measured(trials, tmp_path, monkeypatch):
    monkeypatch.setattr(measurements, "OFTEN", 0)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(type(trials), "gate_gradients", fail)
    with pytest.raises(MemoryError):
        tasks.study(trials, {"gradient"}, tmp_path / "a.h5")
    assert open_study(tmp_path / "a.h5").answered.all()


def test_a_study_of_something_else_is_not_touched(trials, tmp_path):
    out = tmp_path / "a.h5"
    tasks.study(trials, {"gradient"}, out)
    before = out.read_bytes()
    model, data = trials.model, tmp_path / "rows.tsv"
    other = classifier(tmp_path / "other", seed=1)
    for words, changed, seed in (
        ("another model", trials_on(other, data), 0),
        ("other examples", tasks.trials_of(model, data, limit=9), 0),
        ("other heads switched off", tasks.trials_of(model, data, off={HeadId(0, 0)}), 0),
        ("another seed", trials, 5),
    ):
        with pytest.raises(HgvizError, match=words) as caught:
            tasks.study(changed, {"gradient"}, out, seed=seed)
        assert "was not touched" in str(caught.value) and "--force" in str(caught.value)
        assert out.read_bytes() == before
    tasks.study(trials, {"loss_change"}, out, seed=5, force=True)
    assert "gradient" not in open_study(out).arrays


def test_heads_that_are_off_from_the_start_have_no_numbers(tmp_path):
    folder, data = classifier(tmp_path / "model", n_heads=3), rows(tmp_path, 40)
    off = frozenset({HeadId(0, 1)})
    trials = trials_on(folder, data, off=off)
    study = tasks.study(trials, NEEDS, tmp_path / "a.h5", permutations=2)
    same(study, dataclasses.replace(open_study(tmp_path / "a.h5"), path=""))
    for name in NEEDS - {"change"}:
        assert np.isnan(study.arrays[name][:, 1]).all()
        assert np.isfinite(study.arrays[name][:, [0, 2]]).all()
    assert (study.arrays["change"][:, 1] == UNKNOWN).all()
    assert importance(study, "signed").rank[1] == 0


def test_a_part_of_the_examples_is_the_same_each_time(tmp_path):
    folder, data = classifier(tmp_path / "model"), rows(tmp_path, 60)
    one, other = (trials_on(folder, data, limit=20) for _ in range(2))
    assert len(one.examples) == 20 and one.examples.digest == other.examples.digest
    assert len(trials_on(folder, data, limit=200).examples) == 60
    every = trials_on(folder, data).examples
    texts = [row.text for row in every.rows]
    assert {row.text for row in one.examples.rows} == {texts[at] for at in every.order[:20]}
    assert [row.text for row in one.examples.rows] == [
        text for at, text in enumerate(texts) if at in every.order[:20]
    ]


def test_a_model_without_probabilities_is_told(trials, monkeypatch):
    old = type(trials).baseline
    monkeypatch.setattr(type(trials), "baseline", lambda *a: (old(*a)[0] * np.nan, old(*a)[1]))
    with pytest.raises(HgvizError, match="no probabilities"):
        tasks.importance(trials, {"gradient"})


# --- curves ---------------------------------------------------------------------------------------


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
