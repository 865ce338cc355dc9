"""Results of studies: every number from the cells, what is missing, the page and the figures."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hgviz import tasks
from hgviz.analysis.statistics import sign_test_of_counts
from hgviz.core import HgvizError
from hgviz.figures import Spec, labels
from hgviz.figures.output import compose
from hgviz.tasks.studies import packed, unpacked
from hgviz.tasks.study_results import StudyResults
from tests.figures.flaws import flaws, texts
from tests.sweeps import make_sweep, study_file, without, write


@pytest.fixture(scope="module")
def sweep():
    """Two activations of one model, three seeds, three methods and random orders."""
    return make_sweep()


@pytest.fixture(scope="module")
def results(sweep):
    return StudyResults(sweep)


def keys(sweep, work, **place):
    return [one.cell.key for one in sweep.of(work, **place)]


def changed(sweep, key, **result):
    """The same sweep with another result of one cell."""
    return replace(sweep, standings=tuple(
        replace(one, found={**one.found, **result}) if one.cell.key == key else one
        for one in sweep.standings
    ))  # fmt: skip


# --- numbers --------------------------------------------------------------------------------------


def test_scores_are_means_of_seeds_and_their_difference_is_paired(sweep, results):
    values, right = {}, {}
    for row in results.scores:
        cells = [one.found for one in sweep.of("score", activation=row["activation"])]
        one = values[row["activation"]] = np.array([cell["value"] for cell in cells])
        right[row["activation"]] = np.array([unpacked(cell["right"]) for cell in cells]).astype(int)
        assert row["score"].values.tolist() == one.tolist() and row["seeds"] == ["1", "2", "3"]
        interval = stats.t.interval(0.95, 2, one.mean(), stats.sem(one))
        assert (row["score"].low, row["score"].high) == pytest.approx(interval)
    mixed = StudyResults(make_sweep(activations=("ymish",), seeds=(10, 2, 1), methods=("loo",)))
    assert mixed.scores[0]["seeds"] == mixed.pruning[0]["seeds"] == ["1", "2", "10"]
    (row,) = results.score_differences
    assert (row["base"], row["over"]) == ("softmax", "texts")
    assert row["difference"].values == pytest.approx(values["ymish"] - values["softmax"])
    assert row["p"] == sign_test_of_counts((right["ymish"] - right["softmax"]).sum(0))


def test_budgets_are_read_at_points_and_averaged_over_seeds(sweep, results):
    assert results.budgets == (0.25, 0.5, 0.75, None)
    for row in results.pruning:
        place = {axis: row[axis] for axis in ("data", "model", "activation", "method")}
        cells = [one.found["curves"] for one in sweep.of("curve", **place)]
        curves = [np.mean([curve["values"] for curve in one], axis=0) for one in cells]
        for at, point in enumerate((3, 6, 9)):  # of 0, 2 ... 24 heads
            assert row["at"][at].values == pytest.approx([curve[point] for curve in curves])
        areas = [np.trapezoid(curve) / 12 for curve in curves]
        assert row["at"][3].values == pytest.approx(areas)


def test_methods_are_paired_by_model_and_seed_and_adjusted_together():
    results = StudyResults(make_sweep(("small", "large")))
    values = {
        (row["model"], row["activation"], seed, row["method"]): row["at"][1].values[at]
        for row in results.pruning for at, seed in enumerate(row["seeds"])
    }  # fmt: skip
    for rows, base in ((results.method_differences, "michel"),
                       (results.random_differences, "random")):  # fmt: skip
        for row in rows:
            if row["budget"] == 0.5:
                expected = [value - values[*unit, base] for (*unit, method), value in values.items()
                            if method == row["method"]]  # fmt: skip
                assert sorted(row["difference"].values) == pytest.approx(sorted(expected))
        assert len(rows) == 4 * (len(results.methods) - 1 - (base != "random"))
        adjusted = stats.false_discovery_control([row["p"] for row in rows])
        assert [row["adjusted"] for row in rows] == pytest.approx(adjusted)
    assert np.mean([ranks[1].mean for ranks in results.ranks.values()]) == pytest.approx(2.5)


def test_of_one_activation_models_are_compared_with_the_first():
    (row,) = StudyResults(make_sweep(("small", "large"), ("softmax",))).score_differences
    assert (row["axis"], row["base"], row["model"]) == ("model", "small", "large")


def test_of_bits_less_is_better_and_p_is_over_seeds(sweep):
    for number, key in enumerate(keys(sweep, "score")):
        value = 2.0 + 0.01 * (number % 3) - 0.5 * (number >= 3)
        sweep = changed(sweep, key, metric="bits_per_byte", value=value, right=packed([]))
    (row,) = StudyResults(sweep).score_differences
    assert row["over"] == "seeds" and row["significant"]
    chart = tasks.sweep_chart("seeds", sweep)
    assert chart.up == "Bits per byte" and max(mark.mean for mark in chart.marks()) < 3


def test_one_seed_has_no_interval_and_no_difference():
    results = StudyResults(make_sweep(seeds=(1,), methods=("michel",)))
    assert all(math.isnan(row["score"].low) for row in results.scores)
    assert not any(row["significant"] for row in results.score_differences)


def test_missing_seeds_are_counted_and_pairs_are_of_what_both_have(sweep):
    gone = keys(sweep, "score", activation="ymish", seed="2")
    gone += keys(sweep, "curve", activation="softmax", seed="1", method="loo")
    results = StudyResults(without(sweep, *gone))
    score = {row["activation"]: row for row in results.scores}["ymish"]
    assert (score["missing"], score["seeds"]) == (1, ["1", "3"])
    assert len(results.score_differences[0]["difference"].values) == 2
    rows = [row for row in results.method_differences if row["method"] == "loo"]
    assert {len(row["difference"].values) for row in rows} == {5}
    pruned = {(row["method"], row["activation"]): row for row in results.pruning}["loo", "softmax"]
    assert (pruned["missing"], pruned["seeds"]) == (1, ["2", "3"])
    failed = without(sweep, *keys(sweep, "score", activation="softmax"), state="failed")
    assert not StudyResults(failed).score_differences and len(StudyResults(failed).scores) == 1


@pytest.mark.parametrize(
    ("work", "result"),
    [
        ("score", {"value": "high"}), ("score", {"right": {"bits": "zz", "count": 3}}),
        ("score", {"right": {"bits": "00"}}), ("score", {"parameters": None}),
        ("curve", {"curves": []}), ("curve", {"curves": 3}), ("curve", {"heads": 2}),
        ("curve", {"curves": [{"off": [0, 1], "values": [float("nan"), 1.0], "unit": "a"}]}),
        ("curve", {"curves": [{"off": [1, 0], "values": [1.0, 1.0], "unit": "a"}]}),
        ("compare", {"answers": []}), ("compare", {"metrics": [{}]}),
    ],
)  # fmt: skip
def test_a_damaged_result_is_named(sweep, work, result):
    key = keys(sweep, work)[0]
    with pytest.raises(HgvizError, match="damaged") as error:
        StudyResults(changed(sweep, key, **result)).to_dict()
    assert key in error.value.do


# --- the report -----------------------------------------------------------------------------------


def test_a_report_has_every_number_and_says_how_it_was_made(tmp_path, refusal, facts):
    sweep, out = make_sweep(folder=tmp_path / "s"), tmp_path / "r.html"
    numbers = facts("study", "report", tmp_path / "s", "-o", out)
    page = out.read_text("utf-8").replace("&lt;", "<").replace("&#x27;", "'")
    for words in ("Does an activation other than softmax", "hgviz study report s -o r.html",
                  "torch", "2.6.0", "alpha", "90.0", "3 seeds"):  # fmt: skip
        assert words in page, words
    assert numbers == json.loads(json.dumps(StudyResults(sweep).to_dict()))
    assert numbers["environment"]["seconds of computing"] == "90.0" and numbers["complete"]
    assert facts("study", "report", tmp_path / "s") == numbers
    refusal("study", "report", tmp_path / "s", code=2)


def test_the_same_results_give_the_same_bytes_wherever_they_lie(tmp_path):
    pages = []
    for name in ("here", "there"):
        make_sweep(("small",), ("ymish",), (1,), ("loo",), tmp_path / name / "s")
        out = tmp_path / name / "r.html"
        tasks.study_report(tmp_path / name / "s", out, f"hgviz study report {out}")
        pages.append(out.read_bytes())
    assert pages[0] == pages[1] and b">nan" not in pages[0].lower()
    assert str(tmp_path).encode() not in pages[0] and str(Path.home()).encode() not in pages[0]


def test_parts_that_are_copied_together_are_the_whole(tmp_path, sweep):
    for name, seeds in (("one", "12"), ("two", "3")):
        missing = [one.cell.key for one in sweep.standings if one.cell.place["seed"] not in seeds]
        write(tmp_path / name, study_file(), without(sweep, *missing).standings)
    shutil.copytree(tmp_path / "two/cells", tmp_path / "one/cells", dirs_exist_ok=True)
    results = tasks.read_results(tmp_path / "one")
    assert results.to_dict() == StudyResults(make_sweep(folder=tmp_path / "whole")).to_dict()


@pytest.mark.parametrize("state", ["waiting", "failed"])
def test_what_is_not_done_is_said(state, tmp_path, refusal, sweep):
    some = without(sweep, *keys(sweep, "score"), state=state, line="no room")
    write(tmp_path / "some", study_file(), some.standings)
    missing = tasks.study_report(tmp_path / "some", tmp_path / "some.html")["missing"]
    page = (tmp_path / "some.html").read_text("utf-8")
    assert "Unfinished cells" in page and len(missing) == 6
    assert page.count("no room") == 6 * (state == "failed")
    every = [one.cell.key for one in sweep.standings]
    none = without(sweep, *every, state=state, line="no room")
    write(tmp_path / "none", study_file(), none.standings)
    line = refusal("study", "report", tmp_path / "none", "-o", tmp_path / "none.html")
    assert "has nothing to report" in line and ("no room" in line) is (state == "failed")
    assert not (tmp_path / "none.html").exists()
    for kind in ("seeds", "budgets"):
        with pytest.raises(HgvizError, match="nothing to draw"):
            tasks.sweep_chart(kind, none)
    less = tuple(one for one in sweep.standings if one.cell.work != "score")
    with pytest.raises(HgvizError, match="does not ask"):
        tasks.sweep_chart("seeds", replace(sweep, standings=less))
    with pytest.raises(HgvizError, match="unknown curve of this study .gates."):
        tasks.sweep_chart("budgets", sweep, ("gates",))


# --- figures --------------------------------------------------------------------------------------

GRIDS = {
    "two": {},
    "many": {"activations": ("softmax", "ymish", "a very long name of an activation", "topk")},
    "sizes": {"models": ("small", "large"), "activations": ("softmax", "ymish", "topk")},
    "one seed": {"seeds": (1,), "methods": ("loo",)},
}  # fmt: skip


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("kind", ["seeds", "budgets"])
def test_no_figure_of_a_study_has_a_flaw(name, kind):
    chart = tasks.sweep_chart(kind, make_sweep(**GRIDS[name]))
    for width in ("1.6in", "acl", "nature2"):
        with labels.figure_settings():
            page = compose(Spec(kind, width=width), chart)
            assert flaws(page) == [], width
            assert texts(page)


def test_the_numbers_of_figures_are_those_of_the_results(sweep, results):
    chart = tasks.sweep_chart("seeds", sweep)
    for row, (mark,) in zip(results.scores, zip(*chart.facets[0].marks, strict=True), strict=True):
        ends = [100 * end for end in (row["score"].mean, row["score"].low, row["score"].high)]
        assert [mark.mean, mark.low, mark.high] == pytest.approx(ends)
    rows = {(row["activation"], row["method"]): row["at"][1] for row in results.pruning}
    for plot, setting in zip(
        tasks.sweep_chart("budgets", sweep).plots, results.settings, strict=True
    ):
        for line in plot.lines:
            half = rows[setting[2], {"random orders": "random"}.get(line.label, line.label)]
            at = np.flatnonzero(np.isclose(line.x, 0.5))[0]
            assert (line.y[at], line.high[at]) == pytest.approx((100 * half.mean, 100 * half.high))
    (curve,) = sweep.of("curve", method="loo")[0].found["curves"]
    points = {name: curve[name][::2] for name in ("off", "values")}
    key = keys(sweep, "curve", method="loo")[0]
    chart = tasks.sweep_chart("budgets", changed(sweep, key, curves=[{**curve, **points}]), ["loo"])
    assert len(chart.plots[0].lines[0].x) == len(points["off"])  # what all seeds have


def test_an_interval_wider_than_the_axis_is_said():
    sweep = make_sweep(seeds=(1, 2))
    for number, key in enumerate(keys(sweep, "score")):
        sweep = changed(sweep, key, value=0.7 + 0.1 * (number % 2))
    chart = tasks.sweep_chart("seeds", sweep)
    wide = stats.t.ppf(0.975, 1) * 5  # points, of two seeds ten points apart
    assert chart.marks()[0].high - chart.marks()[0].mean == pytest.approx(wide)
    with labels.figure_settings():
        page = compose(Spec("seeds", width="acl"), chart)
        assert any("beyond the axis" in text.get_text() for text in page.axes.texts)
        assert flaws(page) == []
