"""Heads measured into a study: every array, resumed after a stop, and saved while it grows."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.analysis.importance import importance
from hgviz.core import HeadId, HgvizError, listening
from hgviz.models import open_model
from hgviz.store import open_study
from hgviz.study import NO_PREDICTION, UNKNOWN
from hgviz.tasks import measurements
from tests.models.building import write_checkpoint
from tests.progress import after, cancelled, steps_of
from tests.store.samples import same
from tests.studying import make_study
from tests.test_evaluate import TEXT, classifier, rows

NEEDS = {"gradient", "token_gradient", "loss_change", "change", "alone", "shapley"}


@pytest.fixture
def trials(tmp_path):
    return trials_on(classifier(tmp_path / "model"), rows(tmp_path, 70))


@pytest.fixture
def unhurried(monkeypatch):
    """Every step reports the study so far."""
    monkeypatch.setattr(measurements, "OFTEN", 0)


def trials_on(folder, data, **keys):
    return tasks.trials_of(open_model(folder), data, **keys)


def language_model(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 12, "utf-8")
    return trials_on(write_checkpoint(tmp_path / "lm", vocab_size=256), path)


def count_calls(monkeypatch, trials):
    """The names of the passes of some trials, as they are called."""
    called = []
    for name in ("baseline", "gate_gradients", "without_each", "without"):
        method = getattr(type(trials), name)

        def count(self, *arguments, _method=method, _name=name, **keys):
            called.append(_name)
            return _method(self, *arguments, **keys)

        monkeypatch.setattr(type(trials), name, count)
    return called


# --- what a study holds ---------------------------------------------------------------------------


def test_no_array_of_a_study_can_be_written_but_it_shows_what_fills_it():
    study = make_study()
    for one in (study, *study.learned, *study.curves):
        arrays = [getattr(one, field.name) for field in fields(one)]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        assert arrays and not any(array.flags.writeable for array in arrays)
    assert study.arrays and not any(array.flags.writeable for array in study.arrays.values())
    loss = np.zeros(len(study.loss), np.float32)
    growing = replace(study, loss=loss)
    loss[3] = 1
    assert growing.loss[3] == 1
    curve = study.curves[0]
    assert curve.off(0) == frozenset() and curve.off(3) == {*curve.order[:3]}
    part = make_study(1, 20, done=0.5)
    assert not part.right[10:].any() and part.answered.tolist() == [True] * 10 + [False] * 10


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


# --- measuring ------------------------------------------------------------------------------------


def test_every_array_is_measured_and_is_what_switching_heads_off_gives(trials):
    study = tasks.importance(trials, NEEDS, "rows.tsv", seed=4, permutations=3)
    assert study.answered.all() and (study.arrays["change"] != UNKNOWN).all()
    assert all(np.isfinite(study.arrays[name]).all() for name in NEEDS - {"change"})
    assert study.arrays["shapley"].shape == (3, 2) and study.made.seed == 4
    for name in ("signed", "michel", "michel-token", "fisher", "loo", "all-but-one", "shapley"):
        assert sorted(importance(study, name).rank) == [1, 2]
    sums = study.arrays["shapley"].sum(1)
    np.testing.assert_allclose(sums, sums[0], atol=1e-6)
    for at, head in enumerate(study.heads):
        trial = tasks.try_heads(trials, frozenset({head}))
        loss, change = (
            study.loss + study.arrays["loss_change"][:, at],
            study.arrays["change"][:, at],
        )
        np.testing.assert_allclose(loss, trial.now.loss, atol=1e-5)
        assert ((change == -1).sum(), (change == 1).sum()) == (
            trial.slices[0].lost, trial.slices[0].won,
        )  # fmt: skip
    # of two heads in one layer each is alone where the other is off
    np.testing.assert_allclose(
        study.arrays["alone"], study.arrays["loss_change"][:, ::-1], atol=1e-5
    )


def test_a_language_model_is_measured(tmp_path):
    study = tasks.importance(language_model(tmp_path), NEEDS - {"shapley"})
    assert study.asked == "next" and study.sizes.sum() > 0
    assert len(study.loss) == study.places[-1] > len(study)
    assert np.isfinite(study.arrays["loss_change"]).all()


def test_heads_that_are_off_from_the_start_have_no_numbers(tmp_path):
    folder, data = classifier(tmp_path / "model", n_heads=3), rows(tmp_path, 40)
    trials = trials_on(folder, data, off=frozenset({HeadId(0, 1)}))
    study = tasks.study(trials, NEEDS, tmp_path / "a.h5", permutations=2)
    same(study, replace(open_study(tmp_path / "a.h5"), path=""))
    for name in NEEDS - {"change"}:
        assert np.isnan(study.arrays[name][:, 1]).all()
        assert np.isfinite(study.arrays[name][:, [0, 2]]).all()
    assert (study.arrays["change"][:, 1] == UNKNOWN).all()
    assert importance(study, "signed").rank[1] == 0


def test_a_part_of_the_examples_is_the_same_each_time(tmp_path):
    folder, data = classifier(tmp_path / "model"), rows(tmp_path, 60)
    one, other = (trials_on(folder, data, limit=20).examples for _ in range(2))
    assert len(one) == 20 and one.digest == other.digest
    every = trials_on(folder, data, limit=200).examples
    assert len(every) == 60
    chosen = sorted(every.order[:20])
    assert [row.text for row in one.rows] == [every.rows[at].text for at in chosen]


def test_a_model_without_probabilities_is_refused(trials, monkeypatch):
    old = type(trials).baseline
    monkeypatch.setattr(type(trials), "baseline", lambda *a: (old(*a)[0] * np.nan, old(*a)[1]))
    with pytest.raises(HgvizError, match="no probabilities"):
        tasks.importance(trials, {"gradient"})


# --- resuming -------------------------------------------------------------------------------------


def test_what_is_measured_is_not_measured_again(trials, monkeypatch):
    study = tasks.importance(trials, NEEDS, permutations=2)
    called = count_calls(monkeypatch, trials)
    same(tasks.importance(trials, NEEDS, permutations=2, known=study), study)
    assert not called
    more = tasks.importance(trials, {"shapley"}, permutations=3, known=study)
    assert set(called) == {"without", "baseline"} and len(more.arrays["shapley"]) == 3
    whole = tasks.importance(trials, NEEDS, permutations=3)
    np.testing.assert_array_equal(more.arrays["shapley"], whole.arrays["shapley"])
    np.testing.assert_array_equal(more.arrays["shapley"][:2], study.arrays["shapley"])


@pytest.mark.parametrize("needs", [{"gradient"}, {"change", "loss_change"}, {"alone"}, {"shapley"}])
def test_a_study_that_was_stopped_is_resumed(trials, unhurried, needs):
    whole = tasks.importance(trials, needs, permutations=2)
    steps = len(steps_of(tasks.importance, trials, needs, permutations=2))
    for stop in range(1, steps):
        heard = cancelled(tasks.importance, trials, needs, permutations=2, when=after(stop))
        resumed = tasks.importance(trials, needs, permutations=2, known=heard[-1].value)
        same(replace(resumed, made=whole.made), whole)


def test_arrays_add_up_in_a_file(trials, tmp_path):
    out = tmp_path / "a.h5"
    tasks.study(trials, {"gradient"}, out, "rows.tsv")
    first = open_study(out)
    tasks.study(trials, {"loss_change"}, out)
    second = open_study(out)
    assert [*first.arrays] == ["gradient"] and [*second.arrays] == ["gradient", "loss_change"]
    assert first.data == second.data == "rows.tsv"
    np.testing.assert_array_equal(second.arrays["gradient"], first.arrays["gradient"])


def test_a_study_is_saved_while_it_grows_and_when_it_is_stopped(
    trials, tmp_path, unhurried, monkeypatch
):
    out, second, saved = tmp_path / "a.h5", after(2), []
    cancelled(
        tasks.study, trials, {"gradient"}, out,
        when=lambda step: not out.exists() and second(step),
    )  # fmt: skip
    study = open_study(out)
    assert 0 < study.answered.sum() < len(study.loss)
    assert np.isnan(study.loss[study.given == NO_PREDICTION]).all()
    tasks.study(trials, {"gradient"}, out)
    assert open_study(out).answered.all()
    for name in ("SAVED", "SHARE"):
        monkeypatch.setattr(measurements, name, 0)
    grown = tmp_path / "b.h5"
    with listening(lambda step: saved.append(grown.exists() and open_study(grown).answered.any())):
        tasks.study(trials, {"gradient"}, grown)
    assert any(saved)


def test_an_error_leaves_what_was_measured(trials, tmp_path, unhurried, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(type(trials), "gate_gradients", fail)
    with pytest.raises(MemoryError):
        tasks.study(trials, {"gradient"}, tmp_path / "a.h5")
    assert open_study(tmp_path / "a.h5").answered.all()


def test_a_study_of_something_else_is_not_touched(trials, tmp_path):
    out, model, data = tmp_path / "a.h5", trials.model, tmp_path / "rows.tsv"
    tasks.study(trials, {"gradient"}, out)
    before = out.read_bytes()
    for words, changed, seed in (
        ("another model", trials_on(classifier(tmp_path / "other", seed=1), data), 0),
        ("other examples", tasks.trials_of(model, data, limit=9), 0),
        ("other heads switched off", tasks.trials_of(model, data, off={HeadId(0, 0)}), 0),
        ("another ablation", tasks.trials_of(model, data, ablation="mean"), 0),
        ("another seed", trials, 5),
    ):
        with pytest.raises(HgvizError, match=words) as error:
            tasks.study(changed, {"gradient"}, out, seed=seed)
        assert "was not touched" in str(error.value) and "--force" in str(error.value)
        assert out.read_bytes() == before
    tasks.study(trials, {"loss_change"}, out, seed=5, force=True)
    assert "gradient" not in open_study(out).arrays
