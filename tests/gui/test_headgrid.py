"""The wall of heads: where cells stand, and what clicks, drags and keys do to them."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, Layer, Level, ModelSpec
from hgviz.gui.headgrid import HeadWall, Shade, Shades, colour, text_colour
from hgviz.gui.layouts import HIGH, lay
from hgviz.language import decimals
from hgviz.palettes import luminance
from tests.gui.screen import colour_at


def flat(layers, heads):
    """An encoder of so many layers; heads: how many each has, or one number of all."""
    counts = heads if isinstance(heads, tuple) else (heads,) * layers
    made = tuple(
        Layer(n, f"layer {n}", "self", 0, 0, tuple(range(count)), ("softmax",) * count, False)
        for n, count in enumerate(counts)
    )
    return ModelSpec("bert", "flat", (Level(0),), made, 64, 100)


@pytest.fixture
def wall(app):
    """A wall of 4 x 6 heads in a window, and what it asked for."""
    one = HeadWall("Heads")
    one.resize(600, 500)
    one.show_model(flat(4, 6))
    one.set_room(500)
    one.asked = []

    def switched(off, along):
        one.asked.append((off, along))
        one.show_off(off)

    one.switched.connect(switched)
    one.chosen.connect(one.show_cursor)
    one.show()
    yield one
    one.close()
    one.deleteLater()


def at(wall, layer, head):
    return wall.wall.box(HeadId(layer, head)).center().toPoint()


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (4, 6), (48, 32)])
@pytest.mark.parametrize("width", [320, 1200])
def test_every_head_has_a_cell_of_its_own(layers, heads, width):
    spec = flat(layers, heads)
    made = lay(spec, width, 700)
    boxes = [box for row in made.rows for _, box in row.cells]
    assert len(boxes) == layers * heads
    for row in made.rows:
        for (one, box), (_, other) in zip(row.cells, row.cells[1:], strict=False):
            assert box.right() < other.left() and made.head_at(box.center()) == one
    assert all(a.top + a.height < b.top for a, b in zip(made.rows, made.rows[1:], strict=False))
    assert made.width <= max(width, 48 + heads * 14 + 60)


def test_cells_of_layers_with_fewer_heads_keep_their_columns():
    made = lay(flat(3, (6, 0, 3)), 600, 500)
    assert [len(row.cells) for row in made.rows] == [6, 0, 3]
    assert made.box(HeadId(2, 2)).left() == made.box(HeadId(0, 2)).left()
    assert made.box(HeadId(2, 5)) is None


def test_rows_that_go_to_another_level_are_lower(tiny):
    made = lay(tiny.spec, 600, 700)
    ways = {row.kind: row.height for row in made.rows}
    assert ways["down"] == ways["up"] < ways[""] == HIGH
    assert [group.name for group in made.groups] == ["1:1", "1:2", "1:1"]


def test_a_click_switches_a_head_off_and_on_again(wall):
    QTest.mouseClick(wall, Qt.MouseButton.LeftButton, pos=at(wall, 1, 2))
    assert wall.off == {HeadId(1, 2)} and wall.at == HeadId(1, 2)
    QTest.mouseClick(wall, Qt.MouseButton.LeftButton, pos=at(wall, 1, 2))
    assert wall.off == frozenset()
    QTest.mouseClick(wall, Qt.MouseButton.RightButton, pos=at(wall, 1, 2))
    QTest.mouseClick(wall, Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    assert wall.off == frozenset()


def test_a_drag_paints_one_direction_and_is_one_stroke(wall):
    wall.show_off(frozenset({HeadId(0, 2)}))
    QTest.mousePress(wall, Qt.MouseButton.LeftButton, pos=at(wall, 0, 0))
    for head in (1, 2, 3):
        QTest.mouseMove(wall, at(wall, 0, head))
        QApplication.processEvents()
    QTest.mouseRelease(wall, Qt.MouseButton.LeftButton, pos=at(wall, 0, 3))
    assert wall.off == {HeadId(0, head) for head in range(4)}
    assert [along for _, along in wall.asked] == [False, True, True]
    QTest.mouseMove(wall, at(wall, 0, 5))
    assert HeadId(0, 5) not in wall.off


def test_shift_takes_a_whole_layer(wall):
    shift = Qt.KeyboardModifier.ShiftModifier
    QTest.mouseClick(wall, Qt.MouseButton.LeftButton, shift, at(wall, 2, 3))
    assert wall.off == {HeadId(2, head) for head in range(6)}
    QTest.keyClick(wall, Qt.Key.Key_Space, shift)
    assert wall.off == frozenset()


def test_the_keyboard_walks_and_switches(wall):
    wall.setFocus()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Space):
        QTest.keyClick(wall, key)
    assert wall.at == HeadId(1, 2) and wall.off == {HeadId(1, 2)}
    QTest.keyClick(wall, Qt.Key.Key_End)
    assert wall.at == HeadId(1, 5)
    QTest.keyClick(wall, Qt.Key.Key_Right)
    for _ in range(9):
        QTest.keyClick(wall, Qt.Key.Key_Up)
    assert wall.at == HeadId(0, 5)
    assert "Head 0.5" in wall.accessibleDescription()


def test_the_keyboard_passes_over_layers_without_heads(wall):
    wall.show_model(flat(3, (6, 0, 3)))
    wall.show_cursor(HeadId(0, 5))
    QTest.keyClick(wall, Qt.Key.Key_Down)
    assert wall.at == HeadId(2, 2)


def test_a_head_that_is_off_shows_the_colour_of_its_score_at_its_edge(wall):
    head = HeadId(1, 1)
    wall.show_shades(Shades("Loss change", "bits", 4.0, {head: Shade(4.0, 3.5, 4.5, False)}))
    wall.show_off(frozenset({head}))
    box = wall.wall.box(head)
    seen = colour_at(wall, box.left() + 4, box.center().y())
    assert np.abs(np.subtract(seen, colour(1.0, False).getRgb()[:3])).max() < 12


@pytest.mark.parametrize("dark", [False, True])
def test_needed_is_red_harmful_blue_and_every_number_readable(dark):
    needed, harmful, free = (colour(part, dark) for part in (1.0, -1.0, 0.0))
    assert needed.red() > needed.blue() and harmful.blue() > harmful.red()
    assert abs(free.red() - free.blue()) < 8
    for part in np.linspace(-1, 1, 41):
        ground = colour(part, dark)
        a, b = (luminance(np.array(one.getRgb()[:3])) for one in (ground, text_colour(ground)))
        assert (max(a, b) + 0.05) / (min(a, b) + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("value", "said"),
    [(14.04, "+14.0"), (-0.26, "−0.3"), (0.0, "0"), (0.01, "+<0.1"), (512.3, "+512")],
)
def test_numbers_have_signs_and_a_real_minus(value, said):
    assert decimals(value, 1, signed=True) == said


def test_a_score_whose_interval_has_zero_says_that_it_may_be_nothing():
    head = HeadId(0, 0)
    one = Shade(0.4, -0.1, 0.9, True)
    shades = Shades("Loss change", "bits", 4.0, {head: one, HeadId(0, 1): replace(one, zero=False)})
    assert shades.number(head) == "≈ 0" and shades.colour(head, False) == colour(0.0, False)
    assert "may be nothing" in shades.words(head)
    assert shades.number(HeadId(0, 1)) == "+0.4"
    assert shades.number(HeadId(3, 3)) == "" and shades.colour(HeadId(3, 3), False) is None


def test_only_the_cells_that_change_are_painted_again(wall, monkeypatch):
    painted = []
    monkeypatch.setattr(wall, "_cell", lambda painter, head, box: painted.append(head))
    wall.repaint()
    assert len(painted) == 24
    painted.clear()
    wall.show_off(frozenset({HeadId(2, 3)}))
    wall.show_cursor(HeadId(2, 3))
    QApplication.processEvents()
    assert HeadId(2, 3) in painted and HeadId(0, 0) in painted and len(set(painted)) <= 18
