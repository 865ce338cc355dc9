"""Heads measured into a study, pruning curves, heads removed for good, and mask files: what they
hold, that they resume where they were stopped, and what the commands print and refuse."""

import csv
import json
import math
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import tqdm
import transformers
import typer
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import hgviz
from hgviz import cli, tasks
from hgviz.analysis.importance import METHODS, importance, random_curves_beside
from hgviz.cli.options import command_words
from hgviz.core import HeadId, HgvizError, listening
from hgviz.errors import HgvizWarning
from hgviz.files import file_lock, find_sample, resource
from hgviz.maskfile import read_heads, read_mask
from hgviz.models import open_model, pruning
from hgviz.models.layers import Tokens
from hgviz.models.tensors import read_tensors
from hgviz.models.training import read_plan
from hgviz.models.trials import Trials
from hgviz.store import is_study, open_capture, open_study, write_capture
from hgviz.study import NO_PREDICTION, UNKNOWN
from hgviz.tasks import measurements
from hgviz.tasks.pruning import kept_count
from tests.closeness import scaled_error
from tests.models import references
from tests.models.building import split, write_bert, write_checkpoint, write_gpt2, write_transformer
from tests.models.test_checkpoints import ARGUMENTS, GIVEN
from tests.models.test_heads_off import KINDS, chosen, logits
from tests.progress import after, cancelled, steps_of
from tests.store.samples import same
from tests.studying import classifier, make_study, rows

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


def test_heads_that_are_off_from_the_start_have_no_numbers(tmp_path):
    folder, data = classifier(tmp_path / "model", n_heads=3), rows(tmp_path, 40)
    trials = trials_on(folder, data, off=frozenset({HeadId(0, 1)}))
    study = tasks.importance(trials, NEEDS, out=tmp_path / "a.h5", permutations=2)
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
    for stop in {1, 2, steps // 2, steps - 1}:
        heard = cancelled(tasks.importance, trials, needs, permutations=2, when=after(stop))
        resumed = tasks.importance(trials, needs, permutations=2, known=heard[-1].value)
        same(replace(resumed, made=whole.made), whole)


def test_a_study_is_saved_while_it_grows_and_when_it_is_stopped(
    home, tmp_path, unhurried, monkeypatch
):
    trials = trials_on(home / "model", rows(tmp_path, 70))
    out, second, saved = tmp_path / "a.h5", after(2), []
    cancelled(
        tasks.importance, trials, {"gradient"}, out=out,
        when=lambda step: not out.exists() and second(step),
    )  # fmt: skip
    study = open_study(out)
    assert 0 < study.answered.sum() < len(study.loss)
    assert np.isnan(study.loss[study.given == NO_PREDICTION]).all()
    tasks.importance(trials, {"gradient"}, out=out)
    assert open_study(out).answered.all()
    for name in ("SAVED", "SHARE"):
        monkeypatch.setattr(measurements, name, 0)
    grown = tmp_path / "b.h5"
    with listening(lambda step: saved.append(grown.exists() and open_study(grown).answered.any())):
        tasks.importance(trials, {"gradient"}, out=grown)
    assert any(saved)


def test_a_second_process_that_measures_into_one_file_is_refused(trials, tmp_path):
    out = tmp_path / "a.h5"
    with file_lock(out), pytest.raises(HgvizError, match=r"/a\.h5 is being written by another"):
        tasks.importance(trials, {"gradient"}, out=out)
    tasks.importance(trials, {"gradient"}, out=out)
    assert [*tmp_path.iterdir()] == [out]


def test_a_study_of_something_else_is_not_touched(trials, data, tmp_path):
    out, model = tmp_path / "a.h5", trials.model
    tasks.importance(trials, {"gradient"}, out=out)
    before = out.read_bytes()
    for words, changed, seed in (
        ("another model", trials_on(classifier(tmp_path / "other", seed=1), data), 0),
        ("other examples", tasks.trials_of(model, data, limit=9), 0),
        ("other heads switched off", tasks.trials_of(model, data, off={HeadId(0, 0)}), 0),
        ("another ablation", tasks.trials_of(model, data, ablation="mean"), 0),
        ("another seed", trials, 5),
    ):
        with pytest.raises(HgvizError, match=words) as error:
            tasks.importance(changed, {"gradient"}, out=out, seed=seed)
        assert "is a study of" in str(error.value) and "--force" in str(error.value)
        assert out.read_bytes() == before
    tasks.importance(trials, {"loss_change"}, out=out)
    assert [*open_study(out).arrays] == ["gradient", "loss_change"]
    tasks.importance(trials, {"loss_change"}, out=out, seed=5, force=True)
    assert "gradient" not in open_study(out).arrays


# --- curves ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(home, data):
    """Trials of a classifier of eight heads in two layers, and its study."""
    trials = trials_on(home / "wide", data)
    return trials, tasks.importance(trials, {"gradient", "loss_change"}, "rows.tsv")


def test_a_curve_is_measured_once_on_other_rows_than_its_order_was_made_from(wide, monkeypatch):
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
    called = count_calls(monkeypatch, trials)
    same(tasks.curve(trials, found, "loo", random=3), found)
    assert not called
    more = tasks.curve(trials, found, "signed", random=4)
    assert [(each.method, each.seed) for each in more.curves[4:]] == [("signed", 0), ("random", 4)]


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
    drawn = tasks.study_chart("curve", [study]).panels[""]
    assert {line.label for line in drawn} == {"loo", "loo, 2 stay"}


def test_the_points_of_a_curve_are_timed_where_they_are_asked_to_be(wide, monkeypatch):
    trials, study = wide
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    plain = tasks.curve(trials, study, "loo", random=1)
    assert [one.times for one in plain.curves] == [None] * 2
    stopped = cancelled(tasks.curve, trials, plain, "loo", random=1, timed=True, when=after(2))
    assert "0 of 8 heads off" in stopped[1].note  # all points or none
    ran, built = [], pruning.runner_without

    def watched(model, off):
        run = built(model, off)
        return lambda text: ran.append((off, text.shape[0], torch.get_num_threads())) or run(text)

    monkeypatch.setattr(pruning, "runner_without", watched)
    found = tasks.curve(trials, plain, "loo", random=1, timed=True)
    one, other = found.curves
    assert one.times.shape == (9, 2) and (one.times > 0).all() and other.times is None
    assert {count for _, count, _ in ran} == {16} and {threads for *_, threads in ran} == {1}
    turns = [frozenset(), one.off(0)] * 2  # before it counts, and once
    for count in range(1, 9):
        turns += [frozenset(), one.off(count)] * 2
    assert [off for off, *_ in ran] == turns
    same(tasks.curve(trials, found, "loo", random=1, timed=True), found)
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
    output(*draw)
    drawn = csv.DictReader((tmp_path / "f.csv").read_text().splitlines())
    assert [float(row["Milliseconds per pass"]) for row in drawn] == pytest.approx(
        [one["ms"] for one in points]
    )  # and no random order
    # the order that is requested, not the newest
    assert len(facts(*arguments, "--least", "1")["order"]) == 6


@pytest.fixture(scope="module")
def wrong(home, whole_study, tmp_path_factory):
    """A folder with another model, a capture and damaged data beside a study."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "empty.tsv").touch()
    (folder / "unknown.tsv").write_text("sentence\tlabel\nthe cat\tmaybe\n")
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
        ("importance MODEL --data unknown.tsv -o new.h5", 1, "maybe"),
        ("importance MODEL --data rows.tsv -o new.h5 --off 0.*,1.*", 1, "All heads are off: "),
        ("importance MODEL --data rows.tsv -o new.h5 --method gates", 2, "name folders by --gates"),
        ("importance MODEL --data rows.tsv -o c.h5", 1, "not a study"),
        ("importance MODEL --data rows.tsv -o MODEL", 1, "is a folder"),
        ("importance MODEL --data rows.tsv -o s.h5 --method gates", 1, "--gates DIR"),
        ("importance other --data rows.tsv -o s.h5", 1, "it is of wide on rows.tsv"),
        ("curve s.h5 other --data rows.tsv", 1, "a study of another model"),
        ("curve s.h5 MODEL --data fewer/rows.tsv", 1, "other examples"),
        ("curve s.h5 MODEL --data rows.tsv --method shapley", 1, "Compute head importance with"),
        ("curve s.h5 MODEL --data rows.tsv --method best", 1, "Unknown score 'best'"),
        ("curve s.h5 MODEL --data rows.tsv --random 3", 2, "20"),
    ],
)
def test_what_cannot_be_measured_is_one_line(refusal, wrong, monkeypatch, words, code, message):
    def contents():
        return {path: path.is_dir() or path.read_bytes() for path in wrong.iterdir()}

    monkeypatch.chdir(wrong)
    before = contents()
    assert message in refusal(*words.split(), code=code)
    assert contents() == before


# --- heads removed for good -----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Timing as short as can be, and no thread that watches bars."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)


# --- every form of every family -------------------------------------------------------------------


WRITTEN = (  # one of each family, and of each way in which weights of heads lie in a file
    "classifier", "gpt2", "mixed hourglass", "windowed, linear down", "shared", "linformer",
    "synthesizer", "wide cls", "encoder-decoder", "yubert", "ragged", "decoder with cross",
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "form"),
    [*((kind, "smaller") for kind in WRITTEN), ("classifier", "zeroed"), ("hourglass", "zeroed"),
     ("shared", "zeroed"), ("encoder-decoder", "zeroed")],
)  # fmt: skip
def test_what_is_written_is_the_masked_model(tmp_path, kind, form):
    path = KINDS[kind](tmp_path / "whole")
    before = open_model(path).spec
    off = chosen(before)
    found = tasks.prune(path, off, tmp_path / "out", form=form)
    assert found.difference <= 1e-5
    assert np.abs(logits(tmp_path / "out") - logits(path, off)).max() < 1e-12
    assert scaled_error(logits(tmp_path / "out", dtype="float32"), logits(path, off)) < 1e-5
    after = open_model(tmp_path / "out").spec
    assert (before.parameters, after.parameters) == found.parameters
    weights = [load_file(whole / "model.safetensors") for whole in (path, tmp_path / "out")]
    assert tuple(sum(one.nbytes for one in held.values()) for held in weights) == found.size
    assert [one.batch for one in found.latency] == ([1, 16] if form == "smaller" else [])
    empty = [one.index for one in after.layers if not one.heads]
    assert list(found.empty) == [
        one.index for one in before.layers
        if all(HeadId(one.index, head) in off for head in one.heads)
    ]  # fmt: skip
    assert empty == (list(found.empty) if form == "smaller" else [])
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("kind", "form", "how"),
    [("classifier", "smaller", "mean"), ("hourglass", "zeroed", "mean"),
     ("hourglass", "smaller", "lsq")],
)  # fmt: skip
def test_compensated_models_prove_themselves_too(tmp_path, kind, form, how):
    path = KINDS[kind](tmp_path / "whole")
    off = chosen(open_model(path).spec, empty=False)
    found = tasks.prune(path, off, tmp_path / "out", form=form, compensate=how)
    assert found.difference <= 1e-5 and found.compensation == how
    assert np.abs(logits(tmp_path / "out") - logits(path, off)).max() > 1e-6


def test_a_smaller_model_is_captured_and_shown_like_any_other(tmp_path):
    path = write_checkpoint(tmp_path / "whole", vocab_size=256, hierarchy="1@1 1@2 1@4 1@2 1@1")
    found = tasks.prune(path, "0.1,2.*,4.0", tmp_path / "out")
    heads = tasks.info(tmp_path / "out")["layers"]
    assert [one["heads"] for one in heads] == [1, 2, 0, 2, 1, 2, 2, 2, 2]
    model = open_model(tmp_path / "out")
    tasks.capture(model, model.tokenize("Some words."), tmp_path / "c.h5")
    opened = open_capture(tmp_path / "c.h5")
    assert opened.maps[2].shape[0] == 0
    whole = open_model(path)
    off = found.off
    seen = tasks.capture(whole, whole.tokenize("Some words."), off=off)
    for one, other in zip(opened.maps, seen.maps, strict=True):
        for head in one.heads:
            assert scaled_error(one.read(head), other.read(head)) < 1e-5
    tasks.generate(model, model.tokenize("So"), 4)


# --- what opens it --------------------------------------------------------------------------------


def sentence_transformer(folder):
    """A sentence encoder as sentence-transformers keeps it: transformers' BERT and its parts."""
    config = transformers.BertConfig(
        vocab_size=43, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=12, max_position_embeddings=40,
    )  # fmt: skip
    transformers.BertModel(config).eval().save_pretrained(folder)
    kind = "sentence_transformers.models"
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{kind}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{kind}.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Dense", "type": f"{kind}.Dense"},
    ]
    files = {
        "modules.json": json.dumps(modules).encode(), "2_Dense/config.json": b"{}",
        "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
        "2_Dense/model.safetensors": b"weights of the dense part",
        "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n", "README.md": b"what it is",
        "modeling.py": b"raise SystemExit", ".gitattributes": b"*.bin filter=lfs",
        "pytorch_model.bin": b"the whole model", "onnx/model.onnx": b"the whole model",
        "onnx/config.json": b"{}", "openvino/openvino_model.bin": b"the whole model",
        "checkpoint-5/model.safetensors": b"the whole model, earlier",
        ".git/config": b"secret", ".cache/x": b"",
    }  # fmt: skip
    for name, held in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(held)
    return folder


def below(folder):
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def test_a_zeroed_sentence_encoder_opens_where_the_original_did(run, tmp_path):
    """With its pooling, and without other files in which the heads would be on."""
    path, out = sentence_transformer(tmp_path / "whole"), tmp_path / "out"
    whole = {
        "onnx/model.onnx", "openvino/openvino_model.bin", "pytorch_model.bin",
        "checkpoint-5/model.safetensors",
    }  # fmt: skip
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "card.md").write_text("a blob, as in a cache")
    (path / "card.md").symlink_to(tmp_path / "shared" / "card.md")
    (path / "nowhere.md").symlink_to(tmp_path / "gone")
    (path / "around").symlink_to(path)
    code, said, err = run("prune", path, "--off", "0.1", "--form", "zeroed", "-o", out, "--json")
    assert code == 0, err
    links = {"nowhere.md", "around"}
    assert set(json.loads(said)["left_out"]) == whole | links
    hidden = {".git/config", ".cache/x"}
    assert below(out) == below(path) - whole - hidden
    assert not (out / "card.md").is_symlink()
    for one in below(out) - {"model.safetensors"}:
        assert (out / one).read_bytes() == (path / one).read_bytes()
    for part in json.loads((out / "modules.json").read_text()):
        assert (out / part["path"] / "config.json").exists()
    ids = np.arange(18).reshape(2, 9) % 20
    with torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(out).eval()(torch.tensor(ids))
    masked = open_model(path).run(ids, off=frozenset({HeadId(0, 1)})).logits
    assert scaled_error(theirs.last_hidden_state.numpy(), masked) < 1e-5
    code, said, _ = run("prune", path, "--off", "0.1", "--form", "zeroed", "-o", tmp_path / "two")
    assert "Not copied (weights of the full model, links): around, checkpoint-5/model" in said
    assert "x as fast" not in said and "takes as long as before" in said


def test_a_zeroed_model_may_be_written_into_its_own_folder_which_has_to_be_its_own(
    tmp_path, monkeypatch
):
    path = sentence_transformer(tmp_path / "whole")
    tasks.prune(path, "0.1", path / "half", form="zeroed")
    assert not [one for one in below(path / "half") if "half" in one]
    again = tasks.prune(path, "0.1", path / "other", form="zeroed")
    assert "half/model.safetensors" in again.left_out
    monkeypatch.setattr("hgviz.models.checkpoints.COPY_LIMIT", 5)
    with pytest.raises(HgvizError, match="contains more than a model"):
        tasks.prune(path, "0.1", tmp_path / "out", form="zeroed")
    assert not (tmp_path / "out").exists()


def test_shards_stay_shards(tmp_path):
    path, out = write_gpt2(tmp_path / "whole"), tmp_path / "out"
    split(path)
    found = tasks.prune(path, "0.1,1.2", out, form="zeroed")
    assert {one.name for one in out.iterdir()} == {one.name for one in path.iterdir()}
    assert found.size[0] == found.size[1]


def test_state_dicts_of_the_package_keep_their_names(tmp_path):
    path = references.write_package(
        tmp_path / "whole", references.build_package(**ARGUMENTS), GIVEN
    )
    (weights,) = (one for one in path.iterdir() if one.suffix in (".pt", ".safetensors"))
    held = read_tensors(weights)
    weights.unlink()
    renamed = {f"module.{name}": one.contiguous().clone() for name, one in held.items()}
    torch.save(renamed, path / "trained.pt")
    tasks.prune(path, "0.1,1.*", tmp_path / "out", form="zeroed")
    after = read_tensors(tmp_path / "out" / "trained.pt")
    assert after.keys() == renamed.keys()
    changed = [name for name in after if not torch.equal(after[name], renamed[name])]
    assert len(changed) == 2 and all("to_out.weight" in name for name in changed)


# --- proofs that fail, and bad input --------------------------------------------------------------


def test_an_export_that_gives_other_logits_leaves_nothing_behind(tmp_path, monkeypatch):
    path = write_bert(tmp_path / "whole")
    slice_ = pruning.remove_heads
    more = {HeadId(1, 2)}
    monkeypatch.setattr(pruning, "remove_heads", lambda found, off: slice_(found, off | more))
    with pytest.raises(HgvizError, match=r"differ from the masked model by \d"):
        tasks.prune(path, "0.1", tmp_path / "deep" / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["whole"]


def test_a_prune_that_is_stopped_leaves_nothing_behind(tmp_path):
    path, out = write_bert(tmp_path / "whole"), tmp_path / "out"
    cancelled(tasks.prune, path, "0.1", out, when=lambda step: step.note.startswith("comparing"))
    assert [one.name for one in tmp_path.iterdir()] == ["whole"]


def test_logits_that_are_no_numbers_prove_nothing():
    nan = torch.full((1, 2), torch.nan)
    difference, _ = pruning.largest_difference(lambda text: nan, lambda text: nan, [Tokens(nan)])
    assert math.isinf(difference)


def test_large_logits_are_compared_in_float64(tmp_path, monkeypatch):
    runner = pruning.runner

    def rounding(module, off=frozenset()):
        """A machine on which float32 products of another size come out otherwise."""
        run = runner(module, off)
        exact = off or next(module.parameters()).dtype == torch.float64
        return run if exact else lambda text: run(text) * (1 + 1e-6)

    monkeypatch.setattr(pruning, "runner", rounding)
    path = write_transformer(tmp_path / "whole", dtype=torch.float32, form="decoder")
    held = load_file(path / "model.safetensors")
    held["embed.token.weight"] *= 1e4
    save_file(held, path / "model.safetensors")
    found = tasks.prune(path, "0.1", tmp_path / "out")
    assert found.dtype == "float64" and found.rough > 1e-5 >= found.difference


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--off 5.1", 1, "this model has no head 5.1"),
        ("--off 0.1,0.1", 1, "head 0.1 is named twice"),
        ("--off first", 1, "'first' does not name a head"),
        ("", 2, ""),
        ("--off 0.1 --keep 3", 2, ""),
        ("--off 0.1 --method loo", 2, ""),
    ],
)
def test_what_cannot_be_pruned_is_one_line(tmp_path, refusal, words, code, message):
    path, out = write_bert(tmp_path / "whole"), tmp_path / "out"
    error = refusal("prune", path, *words.split(), "-o", out, code=code)
    assert message.lower() in error.lower() and not out.exists()


def test_no_folder_is_replaced_and_all_heads_may_go(tmp_path, run):
    path, out = write_bert(tmp_path / "whole"), tmp_path / "out"
    out.mkdir()
    (out / "mine").touch()
    for off, where, force, message in (
        ("0.1", out, False, "out is not empty"),
        ("0.1", path, False, "whole is not empty"),
        ("0.1", path, True, "is the model itself"),
        ("0.1", tmp_path, True, "is not empty"),
        ("", tmp_path / "none", False, "no head is named"),
    ):
        with pytest.raises(HgvizError, match=message):
            tasks.prune(path, off, where, force=force)
    (out / "mine").unlink()
    code, said, error = run("prune", path, "--off", "0.*,1.*", "-o", out)
    assert code == 0 and "No head is left: the model has no attention." in said
    assert error.startswith("Verifying with 256 examples of ") and "saved, out opens in " in error
    tasks.prune(path, "0.1,1.0", out, force=True)
    assert len(open_model(out).spec.heads) == 4
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "whole"]


def test_a_study_chooses_the_least_needed_heads(tmp_path, refusal, facts):
    model, data, study = write_bert(tmp_path / "m"), tmp_path / "rows.tsv", tmp_path / "study.h5"
    data.write_text("the cat sat\tfor\nun cat\tagainst\nthe the\tfor\nsat\tagainst\n")
    trials = tasks.trials_of(open_model(model), data)
    tasks.importance(trials, {"gradient"}, "rows.tsv", out=study)
    off = tasks.heads_of_study(study, model, "50%")
    assert off == frozenset(importance(open_study(study), "michel").least_needed[:3])
    told = facts("prune", model, "--study", study, "--keep", "50%", "-o", tmp_path / "out")
    assert told["off"] == sorted(map(str, off)) and told["heads"] == 3
    assert told["difference"] <= 1e-5 and len(told["latency"]) == 2
    other = write_bert(tmp_path / "other", seed=1)
    error = refusal("prune", other, "--study", study, "--keep", "3", "-o", tmp_path / "no")
    assert error.startswith("study.h5 is about another model: ")


def test_keep_is_a_number_or_a_share():
    spec = open_model(resource("sample/softmax")).spec
    assert [kept_count(one, spec) for one in ("0", "7", "24", "50%", "33.3 %")] == [0, 7, 24, 12, 8]
    for wrong in ("", "-1", "25", "101%", "half", "50%%", "nan%", "3.5"):
        with pytest.raises(HgvizError, match="neither a whole number nor a percentage"):
            kept_count(wrong, spec)


# --- mask files -----------------------------------------------------------------------------------


DATA = ("--data", "sample/reviews.tsv")
COMMANDS = {  # all that take --off, without it
    "attribute": ("sample/softmax", "--text", "a"),
    "capture": ("sample/softmax", "--text", "a", "-o", "x.h5"),
    "compare": ("sample/softmax", "sample/softmax", "--text", "a"),
    "evaluate": ("sample/softmax", *DATA),
    "heads": ("sample/softmax", "--text", "a"),
    "importance": ("sample/softmax", *DATA, "-o", "x.h5"),
    "prune": ("sample/softmax", "-o", "x"),
}


@pytest.fixture
def mask(tmp_path, monkeypatch):
    """Write a mask of sample/softmax; returns what --off takes."""
    monkeypatch.chdir(tmp_path)
    digest = tasks.digest_of(find_sample("sample/softmax"))

    def write(**fields):
        (tmp_path / "mask.json").write_text(json.dumps({"model": digest} | fields))
        return "@mask.json"

    return write


def test_every_command_refuses_the_mask_of_another_model(refusal, mask, tmp_path):
    group = typer.main.get_command(cli.app)
    with group.make_context("hgviz", [], resilient_parsing=True) as context:
        commands = {name: group.get_command(context, name) for name in cli.verbs()}
    options = {name: str([one.opts for one in verb.params]) for name, verb in commands.items()}
    assert {name for name, opts in options.items() if "--off" in opts} == COMMANDS.keys()
    off = mask(heads=["0.1"], model="f" * 64)
    for verb, words in COMMANDS.items():
        error = refusal(verb, *words, "--off", off)
        assert "mask.json is a mask of another model" in error and "ffffffffffff" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mask.json"]


def test_a_damaged_mask_is_one_line(refusal, tmp_path):
    path = tmp_path / "mask.json"
    for content, said in (
        (None, "no mask file has that name"),
        ('{"heads": ["99.0"]}', "no head 99.0"),
        ('{"streaming": ["99.0"]}', "no head 99.0"),
        ('{"heads": "0.1"}', "is not a mask file: Expected `array`, got `str`"),
        ('{"head": []}', "unknown field `head`"),
        ("[]", "is not a JSON object"),
        ('{"heads": ["0.1"', "is not a JSON object"),
        ("\0\xff", "is not a JSON object"),
    ):
        if content is not None:
            path.write_text(content)
        assert said in refusal("evaluate", *COMMANDS["evaluate"], "--off", f"@{path}"), content


def test_masks_are_written_and_read_again(facts, refusal, mask, tmp_path):
    digest = tasks.digest_of(find_sample("sample/softmax"))
    asked = ("importance", "sample/softmax", *DATA, "--limit", 8, "--method", "loo", "-o", "s.h5")
    rows = facts(*asked, "--keep", "25%", "--mask", "kept.json")
    going = {row["head"] for row in rows[6:]}
    written = json.loads((tmp_path / "kept.json").read_text())
    assert written == {"heads": sorted(going), "streaming": [], "model": digest}
    proof = facts("prune", "sample/softmax", "--off", "@kept.json", "-o", "p", "--mask", "m.json")
    assert proof["off"] == written["heads"]
    assert (tmp_path / "m.json").read_bytes() == (tmp_path / "kept.json").read_bytes()
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[model]\nfrom = "{find_sample("sample/softmax")}"\noff = "@kept.json"\n'
        '[data]\ntrain = ["a"]\nvalid = "a"\n[recipe]\nsteps = 1\n'
    )
    assert read_plan(plan).model["off"].split(",") == written["heads"]
    (tmp_path / "notes.json").write_text("{}\n[]")
    for words, said, code in (
        (("--keep", "25%"), "--keep and --mask require each other", 2),
        (("--keep", "25%", "--mask", "notes.json"), "is not a JSON object", 1),
        (("--keep", "25%", "--mask", "no/x.json"), "does not exist", 1),
    ):
        assert said in refusal(*asked, *words, code=code)
    assert (tmp_path / "notes.json").read_text() == "{}\n[]"


def test_a_mask_switches_off_what_the_names_do(facts, mask):
    asked = ("evaluate", *COMMANDS["evaluate"], "--limit", 8)
    named = facts(*asked, "--off", "0.1,1.*")
    assert facts(*asked, "--off", mask(heads=["0.1", "1.*"])) == named != facts(*asked)
    found = hgviz.evaluate("sample/softmax", "sample/reviews.tsv", off="@mask.json", limit=8)
    assert found.to_dict() == named
    assert facts(*asked, "--off", mask()) == facts(*asked)
    # a command is recorded without the folder of its mask
    words = {"--off": "@/home/a/mask.json", "--text": "@/a/b"}
    assert command_words(words) == ("--off", "@mask.json", "--text", "@/a/b")


def test_streaming_heads_of_a_mask_count_where_heads_can_stream(run, output, tmp_path):
    gpt2, path, out = write_gpt2(tmp_path / "gpt2"), tmp_path / "mask.json", tmp_path / "a.h5"
    fields = {"heads": ["0.1"], "streaming": ["1.0"], "model": tasks.digest_of(gpt2)}
    path.write_text(json.dumps(fields))
    asked = ("capture", gpt2, "--text", "the cat sat", "-o", out, "--off", f"@{path}")
    assert "--streaming cannot be combined" in run(*asked, "--generate", 2)[2]
    output(*asked, "--streaming", "1.1", "--sink", 1, "--recent", 2)
    made = open_capture(out)
    assert made.off == {HeadId(0, 1)}
    assert (made.streaming.heads, made.streaming.window) == ({HeadId(1, 0), HeadId(1, 1)}, (1, 2))
    assert read_mask(f"@{path}", made.spec) == ({HeadId(0, 1)}, {HeadId(1, 0)})
    with pytest.warns(HgvizWarning, match="1 streaming head ignored"):
        assert read_heads(f"@{path}", made.spec) == {HeadId(0, 1)}
    code, _, error = run("heads", gpt2, "--text", "the cat", "--off", f"@{path}")
    assert (code, error.count("\n")) == (0, 1) and "1 streaming head ignored" in error
