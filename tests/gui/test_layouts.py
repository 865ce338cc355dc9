"""The hourglass stands where it should, for every model and every room."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPointF

from hgviz.core import HeadId
from hgviz.gui.layouts import LARGEST, PAD, HourglassRoom, hourglass_layout, level_stays
from tests.making import make_spec

STRIDES = st.sampled_from([(1,), (1, 2), (1, 3), (1, 2, 4), (1, 3, 6), (1, 2, 4, 8), (1, 2, 12)])


def lengths(spec, tokens=136):
    return [-(-tokens // one.stride) for one in spec.levels]


def flat(layers, heads):
    """A model of one level."""
    spec = make_spec((1,), heads)
    stack = (replace(spec.layers[0], index=n, name=f"{n}") for n in range(layers))
    return replace(spec, layers=tuple(stack))


@settings(deadline=None)
@given(
    strides=STRIDES,
    heads=st.integers(1, 40),
    windowed=st.booleans(),
    width=st.integers(90, 2000),
    height=st.integers(100, 1500),
    tokens=st.integers(1, 5000),
)
def test_rows_never_overlap_and_all_is_inside(strides, heads, windowed, width, height, tokens):
    spec = make_spec(strides, heads, windowed=windowed)
    room = HourglassRoom(width, height)
    layout = hourglass_layout(spec, lengths(spec, tokens), room)
    assert [row.layer for row in layout.rows] == list(range(len(spec.layers)))
    for above, below in zip(layout.rows, layout.rows[1:], strict=False):
        assert above.top + above.height < below.top
    assert layout.top >= room.title
    assert layout.bottom <= layout.height
    for row in layout.rows:
        assert [head.head for head, _ in row.cells] == list(range(heads))
        for (_, a), (_, b) in zip(row.cells, row.cells[1:], strict=False):
            assert a.right() < b.x()
    for head, cell in layout.cells():
        left = layout.edge(cell.y() + cell.height() / 2)
        assert room.label - 1 <= left <= cell.x()
        assert cell.right() <= layout.width - room.right + 1
        assert layout.top < cell.y() and cell.bottom() < layout.bottom
        assert layout.head_at(cell.center()) == head


@settings(deadline=None)
@given(strides=STRIDES, heads=st.integers(1, 16), width=st.integers(300, 900))
def test_thumbnails_are_square_and_shrink_with_the_level(strides, heads, width):
    spec = make_spec(strides, heads)
    layout = hourglass_layout(spec, lengths(spec), HourglassRoom(width, 700))
    size = {}
    for row in layout.rows:
        for _, cell in row.cells:
            if row.kind == "square":
                assert cell.width() == cell.height()
                size[spec.layers[row.layer].level] = cell.width()
    assert 12 <= size[0] <= LARGEST
    sizes = [size[level] for level in sorted(size)]
    assert sizes == sorted(sizes, reverse=True)
    for level, one in size.items():
        assert one == max(12, round(size[0] * 0.7**level))


def test_the_picture_fills_the_pane_of_the_design():
    spec = make_spec((1, 2, 4), 6, windowed=True)
    layout = hourglass_layout(spec, lengths(spec), HourglassRoom(592, 678, label=108))
    assert 60 <= layout.size <= LARGEST
    assert (layout.width, layout.height) == (592, 678)


def test_full_resampling_maps_keep_their_proportion_and_fit_the_waist():
    spec = make_spec((1, 2, 4), 6)
    layout = hourglass_layout(spec, lengths(spec), HourglassRoom(592, 678))
    down, up = layout.row(2), layout.row(10)
    inner = layout.row(3)
    for _, cell in down.cells:
        assert cell.width() == pytest.approx(2 * cell.height(), abs=1)
    for _, cell in up.cells:
        assert cell.height() == pytest.approx(2 * cell.width(), abs=1)
    for row in (down, up):
        assert row.cells[0][1].x() >= inner.cells[0][1].x()
        assert row.cells[-1][1].right() <= inner.cells[-1][1].right()


def test_windowed_resampling_is_a_strip_of_14_px():
    spec = make_spec((1, 2, 4), 6, windowed=True)
    layout = hourglass_layout(spec, lengths(spec), HourglassRoom(592, 678))
    assert {row.height for row in layout.rows if row.kind == "strip"} == {14}
    assert [row.layer for row in layout.rows if row.kind == "strip"] == [2, 4, 8, 10]


def test_residual_paths_join_the_two_stays_at_a_level():
    spec = make_spec((1, 2, 4), 6)
    layout = hourglass_layout(spec, lengths(spec), HourglassRoom(592, 678))
    assert [one.level for one in layout.residuals] == [0, 1]
    for one in layout.residuals:
        before, after = (band.box for band in layout.bands if band.level == one.level)
        assert before.y() < one.top <= before.bottom()
        assert after.y() <= one.bottom < after.bottom()
        assert one.lane > one.edge == before.right()


def test_one_level_has_a_plain_outline_and_no_residual_path():
    spec = flat(12, 12)
    layout = hourglass_layout(spec, [136], HourglassRoom(592, 640))
    assert not layout.residuals and not layout.lines
    assert len({x for x, _ in layout.outline}) == 2


def test_one_layer_stands_in_the_middle():
    layout = hourglass_layout(flat(1, 8), [136], HourglassRoom(592, 640, title=28, bottom=10))
    assert layout.top - 28 == pytest.approx(640 - 10 - layout.bottom, abs=1)


def test_many_layers_and_heads_scroll_and_stay_12_px():
    layout = hourglass_layout(flat(48, 32), [136], HourglassRoom(592, 640))
    assert layout.size >= 12
    assert layout.height > 640


def test_ragged_heads_leave_gaps():
    spec = make_spec((1, 2), 6)
    ragged = replace(spec.layers[4], heads=(1, 4))
    whole = hourglass_layout(spec, lengths(spec), HourglassRoom(592, 640))
    pruned = replace(spec, layers=(*spec.layers[:4], ragged, *spec.layers[5:]))
    gaps = hourglass_layout(pruned, lengths(spec), HourglassRoom(592, 640))
    assert [head.head for head, _ in gaps.row(4).cells] == [1, 4]
    assert gaps.box(HeadId(4, 4)) == whole.box(HeadId(4, 4))


@settings(deadline=None)
@given(strides=STRIDES, height=st.integers(300, 1200), full=st.integers(60, 100))
def test_names_of_levels_do_not_overlap(strides, height, full):
    spec = make_spec(strides, 6)
    layout = hourglass_layout(spec, lengths(spec), HourglassRoom(592, height, full_label=full))
    assert [one.level for one in layout.labels] == [one.level for one in level_stays(spec)]
    for above, below in zip(layout.labels, layout.labels[1:], strict=False):
        assert above.top + above.height <= below.top


def test_the_edge_follows_the_slant():
    spec = make_spec((1, 2), 6)
    layout = hourglass_layout(spec, lengths(spec), HourglassRoom(592, 640))
    outer, inner = layout.bands[0].box, layout.bands[1].box
    middle = (outer.bottom() + inner.y()) / 2
    assert layout.edge(outer.y()) == outer.x()
    assert outer.x() < layout.edge(middle) < inner.x()
    assert layout.head_at(QPointF(0, 0)) is None
    assert outer.x() + PAD == layout.box(HeadId(0, 0)).x()
