"""Heads measured into a study, and pruning curves: what they hold, that they go on where they were
stopped, and what hgviz importance and hgviz curve print and refuse."""

import csv
import shutil
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hgviz import cli, tasks
from hgviz.analysis.importance import METHODS, importance, random_curves_beside
from hgviz.core import HeadId, HgvizError, listening
from hgviz.files import file_lock
from hgviz.models import open_model, pruning
from hgviz.models.trials import Trials
from hgviz.store import is_study, open_study, write_capture
from hgviz.study import NO_PREDICTION, UNKNOWN
from hgviz.tasks import measurements
from tests.models.building import write_checkpoint
from tests.progress import after, cancelled, steps_of
from tests.store.samples import same
from tests.studying import TEXT, classifier, make_study, rows

NEEDS = {"gradient", "token_gradient", "loss_change", "change", "alone", "shapley"}


def trials_on(folder, data, **keys):
    return tasks.trials_of(open_model(folder), data, **keys)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Folders of classifiers and their rows, by name: two heads in one layer, and eight in two."""
    home = tmp_path_factory.mktemp("importance")
    classifier(home / "model")
    classifier(home / "wide", n_heads=4, n_layers=2, d_model=16)
    rows(home, 60)
    return home


@pytest.fixture(scope="module")
def data(home):
    return home / "rows.tsv"


@pytest.fixture
def trials(home, data):
    return trials_on(home / "model", data)


@pytest.fixture
def unhurried(monkeypatch):
    """Every step reports the study so far."""
    monkeypatch.setattr(measurements, "OFTEN", 0)


def count_calls(monkeypatch, trials):
    """The names of the passes of some trials, as they are called."""
    calls = []
    for name in ("baseline", "gate_gradients", "without_each", "without"):
        method = getattr(type(trials), name)

        def count(self, *arguments, _method=method, _name=name, **keys):
            calls.append(_name)
            return _method(self, *arguments, **keys)

        monkeypatch.setattr(type(trials), name, count)
    return calls


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
        loss = study.loss + study.arrays["loss_change"][:, at]
        change = study.arrays["change"][:, at]
        np.testing.assert_allclose(loss, trial.now.loss, atol=1e-5)
        assert ((change == -1).sum(), (change == 1).sum()) == (
            trial.slices[0].lost, trial.slices[0].won,
        )  # fmt: skip
    # of two heads in one layer each is alone where the other is off
    np.testing.assert_allclose(
        study.arrays["alone"], study.arrays["loss_change"][:, ::-1], atol=1e-5
    )


def test_a_language_model_is_measured_with_its_curves(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT * 12, "utf-8")
    model = write_checkpoint(tmp_path / "lm", vocab_size=256)
    trials = trials_on(model, tmp_path / "text.txt")
    study = tasks.importance(trials, {"gradient", "loss_change"})
    assert study.asked == "next" and study.sizes.sum() > 0
    assert len(study.loss) == study.places[-1] > len(study) > 1
    assert np.isfinite(study.arrays["loss_change"]).all()
    found = tasks.curve(trials, study, random=2)
    assert len(found.curves) == 3 and found.curves[0].unit == "next_token_accuracy"


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


def test_a_study_is_saved_while_it_grows_and_when_it_is_stopped(
    home, tmp_path, unhurried, monkeypatch
):
    trials = trials_on(home / "model", rows(tmp_path, 70))
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


def test_a_second_process_that_measures_into_one_file_is_refused(trials, tmp_path):
    out = tmp_path / "a.h5"
    with file_lock(out), pytest.raises(HgvizError, match=r"/a\.h5 is being written by another"):
        tasks.study(trials, {"gradient"}, out)
    tasks.study(trials, {"gradient"}, out)
    assert [*tmp_path.iterdir()] == [out]


def test_a_study_of_something_else_is_not_touched(trials, data, tmp_path):
    out, model = tmp_path / "a.h5", trials.model
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
        assert "is a study of" in str(error.value) and "--force" in str(error.value)
        assert out.read_bytes() == before
    tasks.study(trials, {"loss_change"}, out)
    assert [*open_study(out).arrays] == ["gradient", "loss_change"]
    tasks.study(trials, {"loss_change"}, out, seed=5, force=True)
    assert "gradient" not in open_study(out).arrays


# --- curves ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(home, data):
    """Trials of a classifier of eight heads in two layers, and its study."""
    trials = trials_on(home / "wide", data)
    return trials, tasks.importance(trials, {"gradient", "loss_change"}, "rows.tsv")


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


def test_the_points_of_a_curve_are_timed_where_they_are_asked_to_be(wide, monkeypatch):
    trials, study = wide
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
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


def test_what_cannot_be_timed_is_told_and_the_curve_stays(wide, trials, tmp_path, monkeypatch):
    other, (trials, study) = trials, wide
    found = tasks.curve(trials, study, "loo", random=0)
    with pytest.raises(HgvizError, match="another model"):
        tasks.curve_times(other, found, found.curves[0])

    def refuse(*_):
        raise HgvizError("this model cannot be made smaller: its heads share everything")

    monkeypatch.setattr(pruning, "remove_heads", refuse)
    path = tmp_path / "s.h5"
    with pytest.raises(HgvizError, match="share everything"):
        tasks.keeping(path, partial(tasks.curve, trials, study, "loo", random=0, timed=True))
    assert [one.times for one in open_study(path).curves] == [None]


def test_heads_that_have_to_stay_stay_and_their_curves_are_told_apart(wide):
    trials, study = wide
    for least in (1, 0, 1):
        study = tasks.curve(trials, study, "loo", random=20, least=least)
    short, long = sorted(
        (one for one in study.curves if one.method == "loo"), key=lambda one: len(one.order)
    )
    assert [sum(head.layer == layer for head in short.order) for layer in (0, 1)] == [3, 3]
    assert len(long.order) == len(study.heads) == 8
    for one in (short, long):
        beside = random_curves_beside(study, one)
        assert len(beside) == 20 and {len(other.order) for other in beside} == {len(one.order)}
    drawn = tasks.study_chart("curve", [study]).panels[0].lines
    assert {line.label for line in drawn} == {"loo", "loo, 2 stay"}


def test_what_was_not_measured_makes_no_order(wide, data):
    trials, study = wide
    with pytest.raises(HgvizError, match="no head can be removed"):
        tasks.curve(trials, study, "loo", random=20, least=100)
    for method in ("shapley", "gates", "nonsense"):
        with pytest.raises(HgvizError):
            tasks.curve(trials, study, method)
    one = tasks.trials_of(trials.model, data, limit=1)
    with pytest.raises(HgvizError, match="too few"):
        tasks.curve(one, tasks.importance(one, {"gradient"}))


# --- the commands ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_study(home, data):
    """A study of the classifier of eight heads by two methods."""
    for method in ("michel", "loo"):
        words = ("importance", home / "wide", "--data", data, "--method", method)
        words = [*map(str, words), "-o", str(home / "s.h5")]
        assert cli.main(words, cli.Window(None, None)) == 0
    return home / "s.h5"


@pytest.fixture
def study(whole_study, tmp_path):
    """A study that a test may change."""
    return Path(shutil.copy(whole_study, tmp_path))


def test_scores_are_printed_by_rank_and_methods_accumulate(
    facts, output, home, data, study, tmp_path
):
    measured = {"loss", "gradient", "token_gradient", "loss_change", "change"}
    assert set(open_study(study).measured()) == measured
    command = ("importance", home / "wide", "--data", data, "-o", study)
    found = facts(*command, "--method", "shapley", "--permutations", "2")
    assert all(set(one) == {"head", "score", "low", "high", "rank"} for one in found)
    assert [one["rank"] for one in found] == list(range(1, 9))
    assert {one["head"] for one in found} == {f"{i}.{j}" for i in (0, 1) for j in range(4)}
    assert all(one["low"] <= one["score"] <= one["high"] for one in found)
    words = output(*command, "--method", "loo")
    assert METHODS["loo"].label.lower() in words and "60 examples of rows.tsv" in words
    assert "points" in words and "McNemar" in words and "…" not in words
    first = facts(*command)
    assert first == facts(*command, "--method", "michel") != facts(*command, "--method", "signed")
    out = tmp_path / "few.h5"
    command = ("importance", home / "wide", "--data", data, "-o", out)
    assert "20 examples" in output(*command, "--limit", 20) and len(open_study(out)) == 20
    assert facts("curve", out, home / "wide", "--data", data)["examples"] == 10


def test_an_interrupted_study_is_kept_and_gone_on_with(
    run, home, data, tmp_path, unhurried, monkeypatch
):
    out, old, calls = tmp_path / "s.h5", Trials.gate_gradients, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > 1:  # the first is timed
            raise KeyboardInterrupt
        return old(*arguments)

    monkeypatch.setattr(Trials, "gate_gradients", interrupted)
    command = ("importance", home / "wide", "--data", data, "-o", out)
    code, printed, said = run(*command, "--quiet")
    assert code == 130 and not printed and said.count("\n") == 1
    assert "saved in" in said and is_study(out) and open_study(out).answered.all()
    monkeypatch.setattr(Trials, "gate_gradients", old)
    _, _, said = run(*command)
    assert said.startswith("Measuring gradient") and " of 8 heads on 60 examples: about " in said
    assert open_study(out).measured()["gradient"] == 1


def test_info_says_what_a_study_holds(refusal, facts, home, study, data):
    told = facts("info", study)
    assert told["kind"] == tasks.kind_of(study) == "study" and told["complete"] is True
    assert (told["data"], told["items"], told["asked"]) == ("rows.tsv", 60, "classes")
    assert told["provenance"]["model"] == open_model(home / "wide").spec.digest
    assert {one["what"]: one["share"] for one in told["measured"]}["gradient"] == 1
    assert [len(told[key]) for key in ("levels", "layers", "curves", "masks")] == [1, 2, 0, 0]
    with h5py.File(study, "r+") as file:
        file.attrs["format_version"] = np.array([0, 3])
    for words in (("info", study), ("curve", study, home / "wide", "--data", data)):
        error = refusal(*words)
        assert "format version 0.3" in error and "older hgviz" in error


def test_a_curve_is_printed_kept_and_timed(
    refusal, facts, output, tmp_path, study, home, data, monkeypatch
):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    arguments = ["curve", study, home / "wide", "--data", data, "--method", "loo"]
    told = facts(*arguments)
    assert told["randoms"] == 20 and [one["off"] for one in told["points"]] == list(range(9))
    assert told["k_low"] <= told["k"] <= 8 and 0 < told["p"] <= 1
    assert len(told["order"]) == 8 and told["examples"] == 30
    assert all(one["random_low"] <= one["random_high"] for one in told["points"])
    assert {(one["ms"], one["whole_ms"]) for one in told["points"]} == {(None, None)}
    assert len(open_study(study).curves) == 21
    draw = ["figure", study, "--kind", "curve", "--axis", "time", "-o", tmp_path / "f.csv"]
    error = refusal(*draw)
    assert "has no times" in error and "--time" in error
    words = output(*arguments)
    assert "k*: " in words and "random middle" in words
    words = output(*arguments, "--time")
    assert "whole ms" in words and "on one core" in words
    points = facts(*arguments)["points"]
    assert all(one["ms"] > 0 and one["whole_ms"] > 0 for one in points)
    output(*draw)
    drawn = csv.DictReader((tmp_path / "f.csv").read_text().splitlines())
    assert [float(row["Milliseconds per pass"]) for row in drawn] == pytest.approx(
        [one["ms"] for one in points]
    )  # and no random order
    for least, heads in (("1", 6), ("0", 8)):  # the one asked for, not the newest
        assert len(facts(*arguments, "--least", least)["order"]) == heads


@pytest.fixture(scope="module")
def wrong(home, whole_study, tmp_path_factory):
    """A folder with another model, a capture and damaged data beside a study."""
    folder = tmp_path_factory.mktemp("wrong")
    for name, content in {
        "empty": "", "header": "sentence\tlabel\n", "short": "sentence\tlabel\nthe cat\n",
        "unknown": "sentence\tlabel\nthe cat\tmaybe\n",
    }.items():  # fmt: skip
        (folder / f"{name}.tsv").write_text(content)
    write_capture(
        folder / "c.h5", tokens=["a", "b"], layers=[{"weights": [[[1.0, 0.0], [0.5, 0.5]]]}]
    )
    (folder / "fewer").mkdir()
    rows(folder / "fewer", 50)
    classifier(folder / "other", seed=7)
    shutil.copy(whole_study, folder)
    for name, path in (("MODEL", home / "wide"), ("rows.tsv", home / "rows.tsv")):
        (folder / name).symlink_to(path)
    return folder


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("importance MODEL --data empty.tsv -o new.h5", 1, "empty"),
        ("importance MODEL --data header.tsv -o new.h5", 1, "no rows"),
        ("importance MODEL --data unknown.tsv -o new.h5", 1, "maybe"),
        ("importance MODEL --data short.tsv -o new.h5", 1, ""),
        ("importance MODEL --data rows.tsv -o new.h5 --off 9.0", 1, "no head 9.0"),
        ("importance MODEL --data rows.tsv -o new.h5 --off first", 1, "does not name a head"),
        ("importance MODEL --data rows.tsv -o new.h5 --off 0.*,1.*", 1, "All heads are off: "),
        ("importance MODEL --data rows.tsv -o new.h5 --method gates", 2, "name folders by --gates"),
        ("importance MODEL --data rows.tsv -o c.h5", 1, "not a study"),
        ("importance MODEL --data rows.tsv -o MODEL", 1, "is a folder"),
        ("importance MODEL --data rows.tsv -o none/s.h5", 1, "cannot be written"),
        ("importance MODEL --data rows.tsv -o s.h5 --method gates", 1, "--gates DIR"),
        ("importance MODEL --data rows.tsv -o s.h5 --off 0.0", 1, "other heads switched off"),
        ("importance MODEL --data rows.tsv -o s.h5 --limit 9", 1, "other examples"),
        ("importance other --data rows.tsv -o s.h5", 1, "it is of wide on rows.tsv"),
        ("curve s.h5 other --data rows.tsv", 1, "a study of another model"),
        ("curve s.h5 MODEL --data fewer/rows.tsv", 1, "other examples"),
        ("curve c.h5 MODEL --data rows.tsv", 1, "not a study"),
        ("curve s.h5 MODEL --data rows.tsv --method shapley", 1, "Compute head importance with"),
        ("curve s.h5 MODEL --data rows.tsv --method best", 1, "Unknown score 'best'"),
        ("curve s.h5 MODEL --data rows.tsv --random 3", 2, "20"),
        ("map s.h5 --layer 0 --head 0 -o a.npy", 1, "is not a capture"),
    ],
)
def test_what_cannot_be_measured_is_one_line(refusal, wrong, monkeypatch, words, code, message):
    def contents():
        return {path: path.is_dir() or path.read_bytes() for path in wrong.iterdir()}

    monkeypatch.chdir(wrong)
    before = contents()
    assert message in refusal(*words.split(), code=code)
    assert contents() == before
