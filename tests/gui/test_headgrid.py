"""The grid of heads: what clicks, drags and keys do, what it says, and where heads stand."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId
from hgviz.gui.headgrid import HeadGrid, Scores, Shade, Shades
from hgviz.gui.layouts import (
    HourglassRoom,
    hourglass_layout,
    level_stays,
    rows_layout,
)
from tests.gui.screen import picture
from tests.making import make_flat, make_spec

LEFT, SHIFT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def grid(app):
    """A grid of 4 x 6 heads in a window, and what it asked for."""
    one = HeadGrid("Heads", walks=True, switches=True)
    one.resize(600, 500)
    one.show_picture(Scores(make_flat(4, 6), Shades()))
    one.mark(HeadId(0, 0))
    one.asked = []

    def switched(off, along):
        one.asked.append((off, along))
        one.show_off(off)

    one.switched.connect(switched)
    one.picked.connect(one.mark)
    one.show()
    yield one
    one.close()
    one.deleteLater()


def at(grid, layer, head):
    return grid.where(HeadId(layer, head)).center()


def heads(*names):
    return {HeadId(*map(int, name.split("."))) for name in names}


def test_a_click_switches_a_head_and_shift_its_layer(grid):
    view = grid.viewport()
    QTest.mouseClick(view, LEFT, pos=at(grid, 1, 2))
    assert grid.off == heads("1.2") and grid.chosen == HeadId(1, 2)
    QTest.mouseClick(view, LEFT, pos=at(grid, 1, 2))
    QTest.mouseClick(view, Qt.MouseButton.RightButton, pos=at(grid, 1, 2))
    QTest.mouseClick(view, LEFT, pos=QPoint(3, 3))
    assert not grid.off
    QTest.mouseClick(view, LEFT, SHIFT, at(grid, 2, 3))
    assert grid.off == {HeadId(2, head) for head in range(6)}
    QTest.keyClick(grid, Qt.Key.Key_Space, SHIFT)
    assert not grid.off


def test_a_drag_paints_one_direction_and_is_one_stroke(grid):
    view = grid.viewport()
    grid.show_off(frozenset(heads("0.2")))
    QTest.mousePress(view, LEFT, pos=at(grid, 0, 0))
    for head in (1, 2, 3):
        QTest.mouseMove(view, at(grid, 0, head))
        QApplication.processEvents()
    QTest.mouseRelease(view, LEFT, pos=at(grid, 0, 3))
    assert grid.off == heads("0.0", "0.1", "0.2", "0.3")
    assert [along for _, along in grid.asked] == [False, True, True]
    QTest.mouseMove(view, at(grid, 0, 5))
    assert HeadId(0, 5) not in grid.off


def test_the_keyboard_walks_and_switches(grid):
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Space):
        QTest.keyClick(grid, key)
    assert grid.chosen == HeadId(1, 2) and grid.off == heads("1.2")
    for key, head in ((Qt.Key.Key_End, (1, 5)), (Qt.Key.Key_Right, (1, 5)),
                      (Qt.Key.Key_Home, (1, 0))):  # fmt: skip
        QTest.keyClick(grid, key)
        assert grid.chosen == head
    for _ in range(9):
        QTest.keyClick(grid, Qt.Key.Key_Up)
    assert grid.chosen == HeadId(0, 0)
    assert grid.accessibleDescription().startswith("Head 0.0") and "1 of 24" in (
        grid.accessibleDescription()
    )


def test_the_chosen_head_is_in_view_and_the_one_pointed_at_ringed(grid):
    grid.resize(600, 150)
    grid.mark(HeadId(3, 5))
    assert grid.viewport().rect().contains(grid.where(HeadId(3, 5)))
    before = picture(grid.viewport())
    QTest.mouseMove(grid.viewport(), at(grid, 3, 2))
    assert grid.ringed == HeadId(3, 2) and (picture(grid.viewport()) != before).any()


# --- key groups and names of layers ---------------------------------------------------------------


def test_heads_that_share_keys_are_bracketed_and_say_so(grid):
    plain = picture(grid.viewport())
    grid.show_picture(Scores(make_flat(4, 6, shared=3), Shades()))
    assert "key group 1.g1: heads 3 to 5 share their keys" in grid.words(HeadId(1, 4))
    top = grid.where(HeadId(0, 0)).top()
    assert (picture(grid.viewport())[top - 6 : top] != plain[top - 6 : top]).any()


# --- colours --------------------------------------------------------------------------------------


def test_a_score_whose_interval_has_zero_says_that_it_may_be_nothing():
    scores = {HeadId(0, 0): Shade(0.4, -0.1, 0.9), HeadId(0, 1): Shade(0.4, 0.1, 0.9)}
    shades = Shades("Loss change", "bits", (-4.0, 4.0), scores)
    numbers = [shades.number(HeadId(0, head)) for head in range(3)]
    assert numbers == ["≈ 0", "+0.4", ""] and shades.colour(HeadId(0, 2), False) is None
    assert shades.colour(HeadId(0, 0), False) == shades.colour_of(0.0, False)
    assert "not significant" in shades.words(HeadId(0, 0))
    needed, harmful = (shades.colour_of(score, False) for score in (4.0, -4.0))
    assert needed.red() > needed.blue() and harmful.blue() > harmful.red()
    root, straight = (replace(shades, bend=bend) for bend in (0.5, 1.0))
    assert root.colour_of(1.0, False) == straight.colour_of(2.0, False)  # (1 / 4) ** 0.5


# --- where heads stand ----------------------------------------------------------------------------


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
