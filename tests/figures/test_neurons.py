"""Neurons: products add up to scores, weights are those of the map, colours mean the same on both
sides of 0, and nothing overlaps."""

import csv
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from hgviz import palettes, tasks
from hgviz.core import HeadId, HgvizError, Selection
from hgviz.figures import Spec, labels
from hgviz.figures.output import compose
from hgviz.tasks.dissecting import MOST, neurons_chart
from tests.figures.flaws import require_tidy, texts
from tests.figures.texts import SEA, TEXTS, capture_of
from tests.gui import kinds
from tests.making import make_capture


@cache
def made(name):
    return kinds.KINDS[name]()


CAPTURES = {
    "softmax": lambda: capture_of("sea"),
    "signed": lambda: make_capture(SEA, signed=True),
    "windowed": lambda: make_capture(SEA, windowed=True),
    "relative": lambda: make_capture(SEA, relative=True),
    **{name: lambda name=name: made(name) for name in kinds.KINDS},
}


def every_layer(capture):
    for layer in capture.spec.layers:
        if layer.heads:
            last = len(capture.query_prompt(layer.index)) - 1
            yield Selection(layer.index, layer.heads[-1], last // 2)
            yield Selection(layer.index, layer.heads[0])


@pytest.mark.parametrize("name", CAPTURES)
def test_products_add_up_to_what_they_are_said_to_and_weights_are_the_map_s(name):
    capture = CAPTURES[name]()
    for chosen in every_layer(capture):
        chart = neurons_chart(capture, chosen)
        sums = [stage for stage in chart.stages if stage.kind in ("product", "position")]
        assert len(sums) == len(chart.products)
        for one, total in zip(chart.products, sums, strict=True):
            np.testing.assert_array_equal(one.values, one.left * one.right)
            np.testing.assert_allclose(one.values.sum(1), total.values, rtol=1e-9, atol=1e-9)
        query = chosen.query
        row = len(capture.query_prompt(chosen.layer)) - 1 if query is None else query
        row = min(capture.row(chosen.layer, row), capture.maps[chosen.layer].shape[1] - 1)
        wanted = capture.maps[chosen.layer].read(chosen.head, (row, row + 1))[0]
        largest = max(1.0, np.abs(wanted).max(initial=0))
        apart = np.abs(chart.stages[-1].values - wanted[chart.columns])
        assert apart.max(initial=0) < 1e-5 * largest
        left_out = np.delete(wanted, chart.columns)
        least = np.abs(chart.stages[-1].values).min(initial=np.inf)
        assert (np.abs(left_out) <= least + 1e-6).all()


def test_a_score_is_the_sum_of_products_over_the_root_of_their_number():
    capture = capture_of("sea")
    chart = neurons_chart(capture, Selection(0, 1, 30))
    score = next(one for one in chart.stages if one.kind == "score")
    width = len(chart.products[0].left)
    np.testing.assert_allclose(
        score.values, chart.products[0].values.sum(1) / width**0.5, rtol=1e-9
    )
    seen = np.exp(score.values - score.values.max())
    assert len(chart.columns) == 31  # all that it sees: the weights are softmax of these alone
    np.testing.assert_allclose(chart.stages[-1].values, seen / seen.sum(), atol=1e-6)


def test_of_many_keys_the_strongest_are_drawn_in_the_order_of_the_text():
    capture = capture_of("sea")
    chosen = Selection(0, 4, 89)
    chart = neurons_chart(capture, chosen)
    weights = capture.maps[0].read(4, (89, 90))[0]
    assert len(chart.columns) == MOST and (np.diff(chart.columns) > 0).all()
    assert set(chart.columns.tolist()) == set(np.argsort(-weights, kind="stable")[:MOST].tolist())
    share = 100 * weights[chart.columns].sum() / weights.sum()
    assert any(f"{share:.3g} % of all" in note for note in chart.notes)
    by_weight = neurons_chart(capture, chosen, "weight")
    assert (np.diff(np.abs(by_weight.stages[-1].values)) <= 1e-9).all()
    assert by_weight.marked == 0


def test_no_number_lies_on_the_line_beside_it():
    chart = neurons_chart(capture_of("sea"), Selection(0, 1, 30))
    values = np.resize([-0.000113, 0.987, -6.29e-5], len(chart.spans))
    chart = replace(chart, stages=tuple(replace(one, values=values) for one in chart.stages))
    with labels.figure_settings():
        page = compose(Spec("neurons", width="icml2"), chart)
        boxes = [box for words, box in texts(page) if words in ("−0.000113", "0.987", "−6.29e−5")]
    zeros = {
        float(path.vertices[0, 0])
        for lines in page.axes.collections
        for path in lines.get_paths()
        if len(path.vertices) == 2 and np.ptp(path.vertices[:, 0]) == 0
    }
    assert len(zeros) == len(chart.stages) and len(boxes) == len(zeros) * len(values)
    assert not [box for box in boxes for x in zeros if box[0] < x + 1 < box[2] + 1]


def test_the_key_that_is_chosen_is_framed():
    capture = capture_of("sea")
    chart = neurons_chart(capture, Selection(0, 0, 20, 7))
    assert chart.columns[chart.marked] == 7
    unseen = neurons_chart(capture, Selection(0, 0, 20, 40))
    assert unseen.marked is None


def page_of(chart, width="acl"):
    with labels.figure_settings():
        page = compose(Spec("neurons", width=width), chart)
        return page, texts(page)


def test_colours_are_symmetric_about_nothing():
    capture = capture_of("sea")
    chart = neurons_chart(capture, Selection(0, 1, 9))
    page, _ = page_of(chart, "neurips")
    table = palettes.colours(palettes.matching_palette("", True))
    wanted = [chart.products[0].left[None], chart.products[0].right, chart.products[0].values]
    rasters = [np.asarray(one.get_array()) for one in page.axes.images[:3]]
    for values in wanted:
        limit = np.abs(values).max()
        painted = palettes.paint(
            palettes.palette_coordinates(values, (-limit, limit), "sqrt", True), table
        )
        same = [one for one in rasters if one.shape == painted.shape]
        assert any(np.abs(one.astype(int) - painted).max() <= 1 for one in same)
    low, high = table[0], table[-1]
    assert low[2] > low[0] and high[0] > high[2]  # blue below, red above


WIDTHS = ("1.6in", "acl", "icml", "neurips")


STRANGE = ["one letter", "two letters", "hostile", "Hangul", "Arabic", "long"]


@pytest.mark.parametrize("name", STRANGE)
def test_no_two_texts_overlap_whatever_they_say(name):
    capture = make_capture(TEXTS[name])
    for layer, width in zip((3, 12), WIDTHS[:2] if len(name) % 2 else WIDTHS[2:], strict=True):
        require_tidy(page_of(neurons_chart(capture, Selection(layer, 2)), width)[0], width)


@pytest.mark.parametrize("name", kinds.KINDS)
def test_no_two_texts_overlap_whatever_the_model_is(name):
    capture = made(name)
    widths = WIDTHS[:2] if len(name) % 2 else WIDTHS[2:]
    for chosen, width in zip(every_layer(capture), widths, strict=False):
        require_tidy(page_of(neurons_chart(capture, chosen), width)[0], width)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_two_texts_overlap_where_positions_are_relative(width):
    capture = make_capture(SEA[:40], relative=True)
    chart = neurons_chart(capture, Selection(1, 3, 22, 9))
    require_tidy(page_of(chart, width)[0], width)


def test_a_long_text_is_as_quick_to_draw_as_its_keys():
    capture = make_capture("The sand ran. " * 293, strides=(1,), heads=2, logits=False)
    chart = neurons_chart(capture, Selection(0, 1))
    assert len(chart.columns) == MOST
    assert any("of 4,102 it sees" in note for note in chart.notes)


def test_every_element_is_in_the_table(tmp_path):
    spec = Spec("neurons", Selection(0, 1, 20))
    path = tasks.figure(spec, capture_of("sea"), tmp_path / "f.csv")
    with open(path) as file:
        rows = list(csv.DictReader(file))
    assert [int(row["column"]) for row in rows] == list(range(21))
    width = sum(name.startswith("q × k ") for name in rows[0])
    for row in rows:
        products = [float(row[f"q × k {at}"]) for at in range(width)]
        assert sum(products) == pytest.approx(float(row["q·k"]), abs=1e-4)
        assert products[3] == pytest.approx(float(row["q 3"]) * float(row["k 3"]), abs=1e-5)


def test_a_head_that_is_off_says_so():
    capture = replace(capture_of("sea"), off=frozenset({HeadId(0, 1)}))
    chart = neurons_chart(capture, Selection(0, 1, 20))
    assert "This head is switched off." in chart.notes


@pytest.mark.parametrize(
    ("name", "chosen", "said"),
    [
        ("words", Selection(0, 0, 3), "holds weights alone"),
        ("sea", Selection(99, 0), "no layer 99"),
        ("sea", Selection(0, 77), "no head 77"),
        ("sea", Selection(0, 0, 4000), "no token 4000"),
        ("sea", Selection(0, 0, 3, 4000), "no token 4000"),
    ],
)
def test_what_cannot_be_taken_apart_is_told(name, chosen, said):
    with pytest.raises(HgvizError, match=said):
        neurons_chart(capture_of(name), chosen)
    with pytest.raises(HgvizError, match="no order 'size'"):
        neurons_chart(capture_of("sea"), Selection(), "size")
