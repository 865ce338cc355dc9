"""The hourglass and the rows stand where they should, for every model and every room."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPointF

from hgviz.core import HeadId
from hgviz.gui.layouts import (
    LARGEST,
    PAD,
    HourglassRoom,
    hourglass_layout,
    level_stays,
    rows_layout,
)
from tests.making import make_flat, make_spec

STRIDES = st.sampled_from([(1,), (1, 2), (1, 3), (1, 2, 4), (1, 3, 6), (1, 2, 4, 8), (1, 2, 12)])


def laid(spec, width=592, height=678, tokens=136, **room):
    lengths = [-(-tokens // level.stride) for level in spec.levels]
    return hourglass_layout(spec, lengths, HourglassRoom(width, height, **room))


@settings(deadline=None)
@given(
    strides=STRIDES,
    heads=st.integers(1, 40),
    shared=st.integers(1, 8),
    windowed=st.booleans(),
    width=st.integers(90, 2000),
    height=st.integers(100, 1500),
    tokens=st.integers(1, 5000),
    full=st.integers(60, 100),
)
def test_nothing_overlaps_and_all_is_inside(
    strides, heads, shared, windowed, width, height, tokens, full
):
    spec = make_spec(strides, heads, windowed=windowed)
    spec = replace(spec, layers=tuple(replace(one, shared=shared) for one in spec.layers))
    layout = laid(spec, width, height, tokens, full_label=full)
    assert layout.top >= 28 and layout.bottom <= layout.height
    for row in layout.rows:
        for _, cell in row.cells:
            left = layout.edge(cell.y() + cell.height() / 2)
            assert 91 <= left <= cell.x() and cell.right() <= layout.width - 48 + 1
            assert layout.top < cell.y() and cell.bottom() < layout.bottom
    assert [one.level for one in layout.labels] == [one.level for one in level_stays(spec)]
    if height >= 300:
        for above, below in zip(layout.labels, layout.labels[1:], strict=False):
            assert above.top + above.height <= below.top
    for made in (layout, rows_layout(spec, width, height)):
        assert [row.layer for row in made.rows] == list(range(len(spec.layers)))
        for above, below in zip(made.rows, made.rows[1:], strict=False):
            assert above.top + above.height < below.top
        for row in made.rows:
            assert [head.head for head, _ in row.cells] == list(range(heads))
            for (head, a), (_, b) in zip(row.cells, row.cells[1:], strict=False):
                assert a.right() < b.x() and made.head_at(a.center()) == head
        heads_walked = {made.step(HeadId(0, 0), down, right)
                        for down in range(len(spec.layers)) for right in range(heads)}  # fmt: skip
        assert heads_walked == set(spec.heads)


@pytest.mark.parametrize("width", [300, 592, 900])
@pytest.mark.parametrize("strides", [(1, 2), (1, 2, 4, 8)])
def test_thumbnails_are_square_and_shrink_with_the_level(strides, width):
    spec = make_spec(strides, 6)
    layout = laid(spec, width, 700)
    size = {
        spec.layers[row.layer].level: row.height
        for row in layout.rows
        if row.kind == "square" and row.cells[0][1].width() == row.height
    }
    assert 12 <= size[0] <= LARGEST and size[0] == layout.size
    assert size == {level: max(12, round(size[0] * 0.7**level)) for level in range(len(strides))}


@pytest.mark.parametrize(
    ("layers", "heads", "width", "height", "least", "most"),
    [
        (13, 6, 592, 678, 42, 46),  # as high as there is room
        (4, 6, 947, 1100, 120, LARGEST),  # few heads fill a large pane
        (48, 32, 592, 640, 12, 12),  # many scroll
    ],
)
def test_cells_are_as_large_as_their_pane_allows(layers, heads, width, height, least, most):
    layout = laid(make_flat(layers, heads), width, height)
    assert least <= layout.size <= most
    assert (layout.height > height) == (layers == 48)
    rows = rows_layout(make_flat(layers, heads), width, height)
    assert rows.width <= max(width, 48 + heads * 14 + 60)
    assert rows.rows[0].height >= (84 if layers == 4 else 15)


def test_full_resampling_maps_keep_their_proportion_and_windowed_ones_are_strips():
    layout = laid(make_spec((1, 2, 4), 6))
    for number, ratio in ((2, 2.0), (10, 0.5)):
        row, inner = layout.row(number), layout.row(3)
        for _, cell in row.cells:
            assert cell.width() == pytest.approx(ratio * cell.height(), abs=1)
        assert row.cells[0][1].x() >= inner.cells[0][1].x()
        assert row.cells[-1][1].right() <= inner.cells[-1][1].right()
    strips = [row for row in laid(make_spec((1, 2, 4), 6, windowed=True)).rows
              if row.kind == "strip"]  # fmt: skip
    assert [(row.layer, row.height) for row in strips] == [(2, 14), (4, 14), (8, 14), (10, 14)]


def test_residual_paths_join_the_two_stays_at_a_level():
    layout = laid(make_spec((1, 2, 4), 6))
    assert [one.level for one in layout.residuals] == [0, 1]
    for one in layout.residuals:
        before, after = (band.box for band in layout.bands if band.level == one.level)
        assert before.y() < one.top <= before.bottom()
        assert after.y() <= one.bottom < after.bottom()
        assert one.lane > one.edge == before.right()


def test_one_level_has_a_plain_outline_in_the_middle_and_no_residual_path():
    layout = laid(make_flat(1, 8), 592, 640)
    assert not layout.residuals and not layout.lines
    assert len({x for x, _ in layout.outline}) == 2
    assert layout.top - 28 == pytest.approx(640 - 10 - layout.bottom, abs=1)


def test_pruned_heads_leave_gaps_and_key_groups_stand_apart():
    spec = make_spec((1, 2), 6)
    pruned = replace(spec.layers[4], heads=(1, 4))
    gaps = laid(replace(spec, layers=(*spec.layers[:4], pruned, *spec.layers[5:])))
    assert [head.head for head, _ in gaps.row(4).cells] == [1, 4]
    assert gaps.box(HeadId(4, 4)) == laid(spec).box(HeadId(4, 4))
    rows = rows_layout(make_flat(3, (6, 0, 3)), 600, 500)
    assert [len(row.cells) for row in rows.rows] == [6, 0, 3] and rows.box(HeadId(2, 5)) is None
    assert rows.box(HeadId(2, 2)).left() == rows.box(HeadId(0, 2)).left()
    assert rows.step(HeadId(0, 5), 1, 0) == HeadId(2, 2)  # a layer without heads is passed over
    for made in (laid(make_flat(2, 8, shared=4)), rows_layout(make_flat(2, 8, shared=4), 592, 400)):
        lefts = [box.left() for _, box in made.row(0).cells]
        steps = [b - a for a, b in zip(lefts, lefts[1:], strict=False)]
        assert steps[3] > steps[0] and [*steps[:3], *steps[4:]] == pytest.approx([steps[0]] * 6)


def test_rows_that_go_to_another_level_are_lower(tiny):
    made = rows_layout(tiny.spec, 600, 700)
    ways = {row.kind: row.height for row in made.rows}
    assert ways["down"] == ways["up"] < ways[""]
    assert [group.name for group in made.groups] == ["1:1", "1:2", "1:1"]


def test_the_edge_follows_the_slant():
    layout = laid(make_spec((1, 2), 6), 592, 640)
    outer, inner = layout.bands[0].box, layout.bands[1].box
    middle = (outer.bottom() + inner.y()) / 2
    assert layout.edge(outer.y()) == outer.x() < layout.edge(middle) < inner.x()
    assert layout.head_at(QPointF(0, 0)) is None
    assert outer.x() + PAD == layout.box(HeadId(0, 0)).x()
