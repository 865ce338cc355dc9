"""Reports on sweeps: every number from the cells, nothing said that is not so."""

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
from hgviz.tasks.study_results import results_of
from tests.figures.flaws import flaws, texts
from tests.sweeps import make_sweep, study_file, without, write


def keys(sweep, work, **place):
    return [one.cell.key for one in sweep.of(work, **place)]


def changed(sweep, key, **found):
    """The same sweep, some facts of one cell others."""
    return replace(sweep, standings=tuple(
        replace(one, found={**one.found, **found}) if one.cell.key == key else one
        for one in sweep.standings
    ))  # fmt: skip


# --- what cells come to ---------------------------------------------------------------------------


def test_scores_over_seeds_are_those_of_the_cells():
    sweep = make_sweep()
    found = results_of(sweep)
    by_hand = {}
    for one in sweep.of("score"):
        by_hand.setdefault(one.cell.place["activation"], []).append(one.found)
    for row in found.scores:
        values = np.array([one["value"] for one in by_hand[row.setting[2]]])
        assert row.score.values.tolist() == values.tolist() and row.seeds == ("1", "2", "3")
        low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
        assert (row.score.low, row.score.high) == pytest.approx((low, high))
    (pair,) = found.score_differences
    rights = {
        name: np.array([unpacked(one["right"]) for one in some]).astype(int)
        for name, some in by_hand.items()
    }
    more = rights["ymish"] - rights["softmax"]
    assert pair.base == "softmax" and pair.over == "texts"
    assert pair.difference.values == pytest.approx(more.mean(1))
    assert pair.p == sign_test_of_counts(more.sum(0))


def test_budgets_are_read_at_points_and_averaged_over_seeds():
    sweep = make_sweep()
    found = results_of(sweep)
    assert found.budgets == (0.25, 0.5, 0.75, None)
    for row in found.pruning:
        data, model, activation = row.setting
        cells = sweep.of("curve", data=data, model=model, activation=activation, method=row.method)
        curves = [np.array([c["values"] for c in one.found["curves"]]) for one in cells]
        for at, point in enumerate((3, 6, 9)):  # of 0, 2 ... 24 heads
            wanted = [some[:, point].mean() for some in curves]
            assert row.at[at].values == pytest.approx(wanted)
        area = [np.trapezoid(some.mean(0)) / 12 for some in curves]
        assert row.at[3].values == pytest.approx(area)


def test_methods_are_paired_by_model_and_seed_and_adjusted_together():
    found = results_of(make_sweep(("small", "large")))
    values = {
        (row.setting, row.method, seed): row.at[1].values[at]
        for row in found.pruning for at, seed in enumerate(row.seeds)
    }  # fmt: skip
    for one in found.method_differences:
        if one.budget == 0.5:
            wanted = [values[s, m, seed] - values[s, "michel", seed]
                      for s, m, seed in values if m == one.method]  # fmt: skip
            assert sorted(one.difference.values) == pytest.approx(sorted(wanted))
    p = np.array([one.p for one in found.method_differences])
    assert len(p) == 8  # two methods, three budgets and the area
    wanted = stats.false_discovery_control(p)
    assert [one.adjusted for one in found.method_differences] == pytest.approx(wanted)
    assert np.mean([found.ranks[name][1].mean for name in found.ranks]) == pytest.approx(2.5)


def test_one_seed_has_no_interval_and_tells_nothing_apart(tmp_path):
    found = results_of(make_sweep(seeds=(1,), methods=("michel",)))
    assert all(math.isnan(one.score.low) for one in found.scores)
    assert not any(one.is_significant for one in found.score_differences)
    make_sweep(seeds=(1,), folder=tmp_path / "s")
    tasks.study_report(tmp_path / "s", tmp_path / "r.html")
    assert ">nan" not in (tmp_path / "r.html").read_text("utf-8").lower()


def test_models_are_held_against_the_first_where_there_is_one_activation():
    found = results_of(make_sweep(("small", "large"), activations=("softmax",)))
    (pair,) = found.score_differences
    assert (pair.axis, pair.base, pair.setting[1]) == ("model", "small", "large")


def test_of_bits_less_is_better_and_p_is_over_seeds():
    sweep = make_sweep()
    for number, key in enumerate(keys(sweep, "score")):
        value = 2.0 + 0.01 * (number % 3) - 0.5 * (number >= 3)
        sweep = changed(sweep, key, metric="bits_per_byte", value=value, right=packed([]))
    found = results_of(sweep)
    assert found.score_differences[0].over == "seeds" and found.score_differences[0].is_significant
    chart = tasks.sweep_chart("seeds", sweep)
    assert chart.up == "Bits per byte" and max(one.mean for one in chart.marks()) < 3


# --- what is not there ----------------------------------------------------------------------------


def test_a_failed_baseline_leaves_nothing_to_compare_with(tmp_path):
    sweep = make_sweep()
    gone = keys(sweep, "score", activation="softmax")
    failed = without(sweep, *gone, state="failed", line="it would not learn")
    found = results_of(failed)
    assert found.score_differences == () and len(found.scores) == 1
    write(tmp_path / "s", study_file(), failed.standings)
    told = tasks.study_report(tmp_path / "s", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Unfinished cells" in page and page.count("it would not learn") == 3
    assert len(told["missing"]) == 3


def test_missing_seeds_are_counted_and_pairs_are_of_what_both_have():
    sweep = make_sweep()
    gone = keys(sweep, "score", activation="ymish", seed="2")
    gone += keys(sweep, "curve", activation="softmax", seed="1", method="loo")
    found = results_of(without(sweep, *gone))
    (pair,) = found.score_differences
    assert len(pair.difference.values) == 2
    reached = {one.setting[2]: one for one in found.scores}
    assert reached["ymish"].missing == 1 and reached["ymish"].seeds == ("1", "3")
    loo = {
        one.budget: len(one.difference.values)
        for one in found.method_differences
        if one.method == "loo"
    }
    assert set(loo.values()) == {5}
    (left,) = (one for one in found.pruning if one.method == "loo" and one.setting[2] == "softmax")
    assert left.missing == 1 and left.seeds == ("2", "3")


@pytest.mark.parametrize("state", ["waiting", "failed"])
def test_where_nothing_is_done_one_line_says_so(state, tmp_path, refusal):
    sweep = make_sweep(seeds=(1,))
    every = [one.cell.key for one in sweep.standings]
    gone = without(sweep, *every, state=state, line="no room")
    write(tmp_path / "s", study_file(seeds=(1,)), gone.standings)
    told = refusal("study", "report", tmp_path / "s", "-o", tmp_path / "r.html")
    assert "has nothing to report" in told
    assert ("no room" in told) is (state == "failed") and not (tmp_path / "r.html").exists()
    for kind in ("seeds", "budgets"):
        with pytest.raises(HgvizError, match="nothing to draw"):
            tasks.sweep_chart(kind, gone)


@pytest.mark.parametrize(
    ("work", "broken"),
    [
        ("score", {"value": "high"}), ("score", {"right": {"bits": "zz", "count": 3}}),
        ("score", {"parameters": None}), ("curve", {"curves": []}), ("curve", {"curves": 3}),
        ("curve", {"heads": 2}), ("compare", {"answers": []}), ("compare", {"metrics": [{}]}),
        ("curve", {"curves": [{"off": [0, 1], "values": [float("nan"), 1.0], "unit": "a"}]}),
    ],
)  # fmt: skip
def test_a_damaged_result_is_named(work, broken):
    sweep = make_sweep(seeds=(1,))
    key = keys(sweep, work)[0]
    with pytest.raises(HgvizError, match="damaged") as error:
        results_of(changed(sweep, key, **broken))
    assert key in error.value.do


def test_a_study_that_asks_for_no_scores_has_no_such_figure():
    sweep = make_sweep(seeds=(1,))
    less = replace(sweep, standings=tuple(
        one for one in sweep.standings if one.cell.work != "score"))  # fmt: skip
    with pytest.raises(HgvizError, match="does not ask"):
        tasks.sweep_chart("seeds", less)
    with pytest.raises(HgvizError, match="unknown curve of this study .gates."):
        tasks.sweep_chart("budgets", sweep, ("gates",))


# --- the report -----------------------------------------------------------------------------------


def test_the_same_results_give_the_same_bytes_wherever_they_lie(tmp_path):
    pages = []
    for name in ("here", "there"):
        make_sweep(("small",), ("ymish",), (1, 2), ("loo",), tmp_path / name / "s")
        out = tmp_path / name / "r.html"
        tasks.study_report(tmp_path / name / "s", out, f"hgviz study report {out}")
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]
    assert str(tmp_path).encode() not in pages[0] and str(Path.home()).encode() not in pages[0]


def test_a_report_says_how_it_was_made_and_has_every_number(tmp_path, refusal, facts):
    sweep = make_sweep(folder=tmp_path / "s")
    out = tmp_path / "r.html"
    told = facts("study", "report", tmp_path / "s", "-o", out)
    page = out.read_text("utf-8")
    for words in ("Does an activation other than softmax", "hgviz study report s -o r.html",
                  "torch", "2.6.0", "alpha", "90.0", "3 seeds"):  # fmt: skip
        assert words in page.replace("&lt;", "<").replace("&#x27;", "'"), words
    wanted = json.loads(json.dumps(results_of(sweep).to_dict()))
    assert {name: told[name] for name in wanted} == wanted
    assert told["environment"]["seconds of computing"] == "90.0" and told["complete"]
    assert facts("study", "report", tmp_path / "s") == told
    refusal("study", "report", tmp_path / "s", code=2)


def test_parts_that_are_copied_together_are_the_whole(tmp_path):
    sweep = make_sweep(folder=tmp_path / "whole")
    for name, seeds in (("one", "12"), ("two", "3")):
        missing = [one.cell.key for one in sweep.standings if one.cell.place["seed"] not in seeds]
        write(tmp_path / name, study_file(), without(sweep, *missing).standings)
    shutil.copytree(tmp_path / "two/cells", tmp_path / "one/cells", dirs_exist_ok=True)
    read, found = tasks.read_results(tmp_path / "one")
    assert read.complete and found.to_dict() == results_of(sweep).to_dict()


# --- figures --------------------------------------------------------------------------------------

GRIDS = {
    "two": {},
    "many": {"activations": ("softmax", "ymish", "a very long name of an activation", "topk")},
    "sizes": {"models": ("small", "large"), "activations": ("softmax", "ymish", "topk")},
    "one seed": {"seeds": (1,), "methods": ("loo",)},
    "two seeds": {"seeds": (1, 2), "methods": ("loo", "michel")},
}  # fmt: skip


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("kind", ["seeds", "budgets"])
def test_no_figure_of_a_sweep_has_a_flaw(name, kind):
    chart = tasks.sweep_chart(kind, make_sweep(**GRIDS[name]))
    for width in ("1.6in", "acl", "nature2"):
        with labels.figure_settings():
            page = compose(Spec(kind, width=width), chart)
            assert flaws(page) == [], width
            assert texts(page)


def test_the_numbers_of_figures_are_those_of_the_findings():
    sweep = make_sweep()
    found = results_of(sweep)
    chart = tasks.sweep_chart("seeds", sweep)
    for row, (mark,) in zip(found.scores, zip(*chart.facets[0].marks, strict=True), strict=True):
        assert mark.mean == pytest.approx(100 * row.score.mean)
        assert (mark.low, mark.high) == pytest.approx((100 * row.score.low, 100 * row.score.high))
    plots = tasks.sweep_chart("budgets", sweep)
    for plot, setting in zip(plots.plots, found.settings, strict=True):
        for line in plot.lines:
            method = "random" if line.label == "random orders" else line.label
            (row,) = (r for r in found.pruning if (r.setting, r.method) == (setting, method))
            at = np.flatnonzero(np.isclose(line.x, 0.5))[0]
            assert line.y[at] == pytest.approx(100 * row.at[1].mean)
            assert line.high[at] == pytest.approx(100 * row.at[1].high)


def test_an_interval_wider_than_the_axis_is_said():
    sweep = make_sweep(seeds=(1, 2))
    for number, key in enumerate(keys(sweep, "score")):
        sweep = changed(sweep, key, value=0.7 + 0.1 * (number % 2))
    chart = tasks.sweep_chart("seeds", sweep)
    wide = stats.t.ppf(0.975, 1) * 5  # points, of two seeds ten points apart
    assert chart.marks()[0].high - chart.marks()[0].mean == pytest.approx(wide)
    with labels.figure_settings():
        page = compose(Spec("seeds", width="acl"), chart)
        assert any("beyond the axis" in one.get_text() for one in page.axes.texts)
        assert flaws(page) == []
