"""The hourglass and the rows stand where they should, for every model and every room."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.core import HeadId
from hgviz.gui.layouts import (
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
