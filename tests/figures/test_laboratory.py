"""Charts of two models: nothing overlaps or leaves the page, whatever the numbers and the width."""

import numpy as np
import pytest

from hgviz.core import HeadId, Selection, replace
from hgviz.figures import Panel, Spec, draw
from hgviz.figures.content.charts import Line
from hgviz.figures.content.laboratory import Grid, Grids, Plot, Plots, Strip, Strips
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import numbered
from hgviz.figures.paper.labels import wrapped
from hgviz.figures.paper.page import Page
from hgviz.figures.pictures import DRAWINGS
from hgviz.tasks.charting import activation_chart, pair_chart
from tests.figures.flaws import flaws, texts
from tests.figures.texts import MAKERS, capture_of

WIDTHS = (240.0, 487.0)


def page_of(kind, chart, width):
    with style.dressed():
        page = Page(width)
        DRAWINGS[kind].compose(page, Spec(kind), chart)
        return page, texts(page)


def checked(kind, chart, width):
    page, found = page_of(kind, chart, width)
    assert flaws(page) == []
    return page, found


def lines(*values):
    x = np.arange(9.0)
    return tuple(Line(f"model {n}", x, np.asarray(y, float)) for n, y in enumerate(values))


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize(
    "values",
    [np.linspace(0, 1, 9), np.zeros(9), 1e-7 * np.arange(9), np.r_[np.nan, 5e4 * np.ones(8)]],
)
def test_plots_fit_whatever_the_numbers(values, width):
    plot = Plot("Where scores lie", "|score|", "Cells, %", lines(values, values / 2))
    checked("plots", Plots((plot, plot), "A title", "of two", "Shaded.", ("A note.",)), width)


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
    assert [words for _, words in numbered(0, 1.25, 120, 16)] == [
        "0.00", "0.25", "0.50", "0.75", "1.00", "1.25",
    ]  # fmt: skip
    assert [words for _, words in numbered(-4, 4, 240, 26)][0] == "−4"
    assert numbered(2, 2, 100, 20) == [(2, "2")]


# --- reports --------------------------------------------------------------------------------------


def test_a_text_is_wrapped_without_losing_a_word():
    with style.dressed():
        words = "A sentence of several words that goes on and on and on until it is long"
        found = wrapped(words, 100.0, 8.5)
        assert " ".join(found) == words and len(found) > 2
        assert all(style.extent(one, 8.5) <= 100 for one in found)
        assert wrapped("", 100.0, 8.5) == [""]
        assert wrapped("x" * 400, 100.0, 8.5)[0].endswith("…")


def test_numbers_of_a_chart_are_all_in_its_csv(tmp_path):
    chart = activation_chart(["tanh"])
    path = tmp_path / "shapes.csv"
    draw(Panel(Spec("activation"), chart), path)
    assert len(path.read_text().splitlines()) == 1 + 2 * len(chart.plots[0].lines[0].x)
