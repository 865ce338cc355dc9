"""Charts of studies and of two models: each number where it is, nothing overlaps, a CSV has all."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hgviz import tasks
from hgviz.analysis import importance as analysed
from hgviz.core import HeadId, HgvizError, Selection
from hgviz.figures import Panel, Spec, labels
from hgviz.figures.charts import Line, Plot, Plots, Strip, Strips
from hgviz.figures.labels import wrap
from hgviz.figures.matrices import Grid, Grids
from hgviz.figures.output import compose, draw
from hgviz.figures.page import Axes, Page, round_ticks
from hgviz.study import PruningCurve
from hgviz.tasks.charting import activation_chart, pair_chart
from tests.figures.flaws import flaws, texts
from tests.figures.texts import MAKERS, capture_of
from tests.studying import make_study

METHODS = ("signed", "michel", "loo", "fisher", "shapley")


def curve(study, method, seed=0):
    """A curve that falls from 90 % to 50 %, sooner for some seeds."""
    order = tuple(np.random.default_rng(seed).permutation(np.array(study.heads)).tolist())
    heads = tuple(type(study.heads[0])(*one) for one in order)
    removed = np.arange(len(heads) + 1)
    values = 0.9 - 0.4 * (removed / len(heads)) ** (1 + seed % 4)
    values = values.astype(np.float32)
    change = values - values[0]
    rows = np.arange(0, len(study), 2)
    return PruningCurve(
        method, heads, removed, values, values - 0.05, values + 0.05, 1 - values, change,
        change - 0.06, change + 0.06, rows, seed,
    )  # fmt: skip


def study_of(methods=METHODS, seed=0, randoms=20, **more):
    """A study with a curve of each method, and random ones."""
    one = make_study(seed, **more)
    lines = [curve(one, name, number) for number, name in enumerate(methods)]
    lines += [curve(one, "random", number + 100) for number in range(randoms)]
    return replace(one, curves=tuple(lines))


def timed(study, *names):
    """The same, the curves of these methods timed: faster with fewer heads, but for noise."""
    noise = np.random.default_rng(0)

    def times(one):
        smaller = 30 - one.removed + noise.normal(size=len(one.removed))
        return np.stack([np.full(len(smaller), 30.0), smaller], 1).astype(np.float32)

    curves = (
        replace(one, times=times(one)) if one.method in names else one for one in study.curves
    )
    return replace(study, curves=tuple(curves))


def page_of(kind, chart, width="icml"):
    with labels.figure_settings():
        page = compose(Spec(kind, width=width), chart)
        return page, texts(page)


CASES = {
    "one curve": ("curve", [study_of(("loo",))], {}),
    "three together": ("curve", [study_of(METHODS[:3])], {}),
    "a panel each": ("curve", [study_of()], {}),
    "three studies": ("curve", [study_of(seed=seed) for seed in range(3)], {}),
    "over FLOPs": ("curve", [study_of(METHODS[:2])], {"axis": "flops"}),
    "over milliseconds": ("curve", [timed(study_of(METHODS[:2]), *METHODS[:2])], {"axis": "time"}),
    "a language model": ("curve", [study_of(("loo",), asked="next")], {}),
    "no random order": ("curve", [study_of(("loo",), randoms=0)], {}),
    "scores": ("scores", [study_of()], {"methods": ["shapley"]}),
}


@pytest.mark.parametrize("name", CASES)
def test_no_chart_has_a_flaw(name):
    kind, studies, more = CASES[name]
    chart = tasks.chart(kind, studies, **more)
    for width in ("1.6in", "icml", "neurips" if len(name) % 2 else "nature2"):
        page, _ = page_of(kind, chart, width)
        assert flaws(page) == [], width


def test_a_chart_says_where_it_comes_from(tmp_path):
    one = replace(study_of(), path="/home/ann/study.h5")
    path = tasks.figure(Spec("scores", methods=("loo",)), one, tmp_path / "f.png")
    with Image.open(path) as image:
        said = image.info["Description"]
    for part in (f"checkpoint: {one.spec.digest}", f"data digest: {one.data_digest}", "loo",
                 "command: hgviz figure study.h5 --kind scores --method loo"):  # fmt: skip
        assert part in said
    assert "/home" not in said


def test_the_numbers_of_curves_are_those_of_the_study(tmp_path):
    one = study_of(("loo",))
    mine, band = one.curves[0], analysed.random_band(one.curves[1:])
    path = tasks.figure(Spec("curve"), one, tmp_path / "f.csv")
    with open(path) as file:
        rows = list(csv.DictReader(file))
    drawn = [row for row in rows if row["line"] == "loo"]
    assert [float(row["Accuracy, %"]) for row in drawn] == pytest.approx(100 * mine.values)
    assert [float(row["low"]) for row in drawn] == pytest.approx(100 * mine.low)
    assert [float(row["Heads switched off"]) for row in drawn] == mine.removed.tolist()
    most, least = analysed.removable_heads(mine)
    assert [row["marked"] for row in drawn if row["marked"]] == [f"{most}, at least {least}"]
    others = [row for row in rows if row["line"] != "loo"]
    assert [float(row["high"]) for row in others] == pytest.approx(100 * band.high)


def test_times_are_drawn_as_they_were_measured_without_random_orders():
    one = timed(study_of(METHODS[:2]), "michel")
    chart = tasks.chart("curve", [one], axis="time")  # of the one that has them
    (panel,) = chart.panels
    (line,) = panel.lines
    at = [each.method for each in one.curves].index("michel")
    assert line.label == "michel" and line.x.tolist() == one.curves[at].times[:, 1].tolist()
    assert (np.diff(line.x) > 0).any() and (np.diff(line.x) < 0).any()  # as noisy as they are
    assert panel.band is None and not chart.banded and "not timed" in chart.notes[1]
    with pytest.raises(HgvizError, match="signed has no times"):
        tasks.chart("curve", [one], ["signed"], axis="time")


def test_several_studies_are_drawn_as_changes_of_their_own_whole_models():
    studies = [study_of(("loo", "signed"), seed=seed) for seed in range(3)]
    found = tasks.chart("curve", studies)
    assert [panel.title for panel in found.panels] == ["loo", "signed"]
    for number, line in enumerate(found.panels[0].lines):
        assert line.y == pytest.approx(100 * studies[number].curves[0].change)
    assert len({line.label for line in found.panels[0].lines}) == 3
    assert "60 random orders" in found.banded


def test_bits_of_a_language_model_are_losses_over_the_bytes_of_the_same_rows():
    one = study_of(("loo",), asked="next")
    mine = one.curves[0]
    rows = one.places_of(mine.rows)
    found = tasks.chart("curve", [one]).panels[0].lines[0]
    nats = mine.loss.astype(float) * rows.sum()
    assert found.y == pytest.approx(nats / np.log(2) / one.sizes[mine.rows].sum())
    assert found.low is None


def test_scores_are_drawn_from_the_most_needed_on_and_hollow_where_they_may_be_nothing():
    one = study_of()
    found = tasks.chart("scores", [one], ["shapley"])
    assert found.value.tolist() == sorted(found.value)  # low is needed
    page, _ = page_of("scores", found)
    hollow = [line for line in page.axes.lines if line.get_markeredgewidth() > 0.5
              and line.get_marker() not in ("None", "")]  # fmt: skip
    zero = int(((found.low <= 0) & (found.high >= 0)).sum())
    assert 0 < zero < len(one.heads)
    assert sum(len(line.get_xdata()) for line in hollow) == zero


def test_data_lie_where_axes_say():
    axes = Axes(None, 10, 20, 100, 50, 0, 10, -1, 1)
    assert axes.points(np.array([0.0, 10.0]), np.array([-1.0, 1.0])) == [(10, 70), (110, 20)]


@pytest.mark.parametrize(
    ("kind", "methods"), [("curve", ["gates"]), ("curve", ["nonsense"]), ("scores", ["nonsense"])]
)
def test_what_was_not_measured_is_said(kind, methods):
    with pytest.raises(HgvizError):
        tasks.chart(kind, [study_of()], methods)


def test_a_study_without_curves_says_how_to_measure_one():
    with pytest.raises(HgvizError, match="no curve"):
        tasks.chart("curve", [replace(make_study(), curves=())])


# --- charts of two models -------------------------------------------------------------------------


WIDTHS = (240.0, 487.0)


def laid_out(kind, chart, width):
    with labels.figure_settings():
        page = Page(width)
        chart.draw(page, Spec(kind))
        return page, texts(page)


def checked(kind, chart, width):
    page, found = laid_out(kind, chart, width)
    assert flaws(page) == []
    return page, found


def lines_of(*values):
    x = np.arange(9.0)
    return tuple(Line(f"model {n}", x, np.asarray(y, float)) for n, y in enumerate(values))


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize(
    "values",
    [np.linspace(0, 1, 9), np.zeros(9), 1e-7 * np.arange(9), np.r_[np.nan, 5e4 * np.ones(8)]],
)
def test_plots_fit_whatever_the_numbers(values, width):
    plot = Plot("Where scores lie", "|score|", "Cells, %", lines_of(values, values / 2))
    plots = Plots((plot, plot), "Shaded.", title="A title", more="of two", notes=("A note.",))
    checked("plots", plots, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_strips_fit_with_heads_of_any_size(width):
    nothing, one = np.full(4, np.nan), (np.nan, -np.inf, np.inf)
    strips = (
        Strip("Entropy of |A|", "nats", (np.ones(4), nothing), ((1.0, 0.9, 1.1), one)),
        Strip("Row sum", "", (np.ones(4), -np.arange(4.0)), ((1, 1, 1), (-1.5, -2, -1))),
        Strip("Mean |dM/dS|", "nats", (np.zeros(3), np.zeros(2)), ((0, 0, 0), (0, 0, 0))),
    )
    checked("strips", Strips(strips, ("softmax", "x" * 200), notes=("A note.",)), width)


@pytest.mark.parametrize(("heads", "width"), [(1, 487.0), (6, 240.0), (90, 487.0)])
def test_grids_thin_their_names(heads, width):
    names = tuple(f"{n // 6}.{n % 6}" for n in range(heads))
    values = np.random.default_rng(0).random((heads, heads))
    values[0, 0] = np.nan
    grid = Grid("Within A", values, names, names, "Head of A", "Head of A")
    checked("grids", Grids((grid, grid, grid), "Distance"), width)


@pytest.mark.parametrize(("name", "width"), list(zip(list(MAKERS)[::3], WIDTHS * 9, strict=False)))
def test_pairs_of_any_text_fit(name, width):
    capture = capture_of(name)
    layer = next(one for one in capture.spec.layers if one.heads)
    chart = pair_chart(capture, capture, Selection(layer.index, layer.heads[-1]))
    assert not chart.maps[2].any()
    checked("three", chart, width)


def test_levels_of_an_hourglass_meet_on_tokens(capture):
    layers = {one.level: one for one in capture.spec.layers if one.role == "self"}
    one, other = layers[0], layers[max(layers)]
    selection = Selection(one.index, one.heads[0])
    chart = pair_chart(
        capture, capture, replace(selection, beside=HeadId(other.index, other.heads[0]))
    )
    assert chart.shape == capture.maps[one.index].shape[1:]
    own = capture.maps[one.index].read(one.heads[0])
    assert np.array_equal(chart.maps[0], own)
    # a row of the upper level is that of the token's group
    upper = capture.maps[other.index].read(other.heads[0])
    assert chart.maps[1][0].sum() == pytest.approx(upper[0].sum(), abs=1e-5)
    checked("three", chart, 487.0)


def test_activations_are_drawn_with_what_must_be_known_of_them():
    _, found = checked("plots", activation_chart(["softmax", "ymish", "linear", "topk"]), 487.0)
    said = " ".join(words for words, _ in found)
    assert "of a row of two keys" in said and "rows of length 1" in said


def test_ticks_are_written_with_all_their_digits():
    assert [words for _, words in round_ticks(0, 1.25, 120, 16)] == [
        "0.00", "0.25", "0.50", "0.75", "1.00", "1.25",
    ]  # fmt: skip
    assert [words for _, words in round_ticks(-4, 4, 240, 26)][0] == "−4"
    assert round_ticks(2, 2, 100, 20) == [(2, "2")]


# --- reports --------------------------------------------------------------------------------------


def test_a_text_is_wrapped_without_losing_a_word():
    with labels.figure_settings():
        words = "A sentence of several words that goes on and on and on until it is long"
        found = wrap(words, 100.0, 8.5)
        assert " ".join(found) == words and len(found) > 2
        assert all(labels.text_width(one, 8.5) <= 100 for one in found)
        assert wrap("", 100.0, 8.5) == [""]
        assert wrap("x" * 400, 100.0, 8.5)[0].endswith("…")


def test_numbers_of_a_chart_are_all_in_its_csv(tmp_path):
    chart = activation_chart(["tanh"])
    path = tmp_path / "shapes.csv"
    draw(Panel(Spec("activation"), chart), path)
    assert len(path.read_text().splitlines()) == 1 + 2 * len(chart.plots[0].lines[0].x)
