"""The wall of heads: where cells stand, and what clicks, drags and keys do to them."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, Layer, Level, ModelSpec
from hgviz.gui.headgrid import HeadGrid, Scores, Shade, Shades, text_colour
from hgviz.gui.layouts import rows_layout
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
    one = HeadGrid("Heads", walks=True, switches=True)
    one.resize(600, 500)
    one.show_picture(Scores(flat(4, 6), Shades()))
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


def at(wall, layer, head):
    return wall.where(HeadId(layer, head)).center()


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (4, 6), (48, 32)])
@pytest.mark.parametrize("width", [320, 1200])
def test_every_head_has_a_cell_of_its_own(layers, heads, width):
    spec = flat(layers, heads)
    made = rows_layout(spec, width, 700)
    boxes = [box for row in made.rows for _, box in row.cells]
    assert len(boxes) == layers * heads
    for row in made.rows:
        for (one, box), (_, other) in zip(row.cells, row.cells[1:], strict=False):
            assert box.right() < other.left() and made.head_at(box.center()) == one
    assert all(a.top + a.height < b.top for a, b in zip(made.rows, made.rows[1:], strict=False))
    assert made.width <= max(width, 48 + heads * 14 + 60)


def test_cells_of_layers_with_fewer_heads_keep_their_columns():
    made = rows_layout(flat(3, (6, 0, 3)), 600, 500)
    assert [len(row.cells) for row in made.rows] == [6, 0, 3]
    assert made.box(HeadId(2, 2)).left() == made.box(HeadId(0, 2)).left()
    assert made.box(HeadId(2, 5)) is None


def test_rows_that_go_to_another_level_are_lower(tiny):
    made = rows_layout(tiny.spec, 600, 700)
    ways = {row.kind: row.height for row in made.rows}
    assert ways["down"] == ways["up"] < ways[""]
    assert [group.name for group in made.groups] == ["1:1", "1:2", "1:1"]


def test_a_click_switches_a_head_off_and_on_again(wall):
    QTest.mouseClick(wall.viewport(), Qt.MouseButton.LeftButton, pos=at(wall, 1, 2))
    assert wall.off == {HeadId(1, 2)} and wall.chosen == HeadId(1, 2)
    QTest.mouseClick(wall.viewport(), Qt.MouseButton.LeftButton, pos=at(wall, 1, 2))
    assert wall.off == frozenset()
    QTest.mouseClick(wall.viewport(), Qt.MouseButton.RightButton, pos=at(wall, 1, 2))
    QTest.mouseClick(wall.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    assert wall.off == frozenset()


def test_a_drag_paints_one_direction_and_is_one_stroke(wall):
    wall.show_off(frozenset({HeadId(0, 2)}))
    QTest.mousePress(wall.viewport(), Qt.MouseButton.LeftButton, pos=at(wall, 0, 0))
    for head in (1, 2, 3):
        QTest.mouseMove(wall.viewport(), at(wall, 0, head))
        QApplication.processEvents()
    QTest.mouseRelease(wall.viewport(), Qt.MouseButton.LeftButton, pos=at(wall, 0, 3))
    assert wall.off == {HeadId(0, head) for head in range(4)}
    assert [along for _, along in wall.asked] == [False, True, True]
    QTest.mouseMove(wall.viewport(), at(wall, 0, 5))
    assert HeadId(0, 5) not in wall.off


def test_shift_takes_a_whole_layer(wall):
    shift = Qt.KeyboardModifier.ShiftModifier
    QTest.mouseClick(wall.viewport(), Qt.MouseButton.LeftButton, shift, at(wall, 2, 3))
    assert wall.off == {HeadId(2, head) for head in range(6)}
    QTest.keyClick(wall, Qt.Key.Key_Space, shift)
    assert wall.off == frozenset()


def test_the_keyboard_walks_and_switches(wall):
    wall.setFocus()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Space):
        QTest.keyClick(wall, key)
    assert wall.chosen == HeadId(1, 2) and wall.off == {HeadId(1, 2)}
    QTest.keyClick(wall, Qt.Key.Key_End)
    assert wall.chosen == HeadId(1, 5)
    QTest.keyClick(wall, Qt.Key.Key_Right)
    for _ in range(9):
        QTest.keyClick(wall, Qt.Key.Key_Up)
    assert wall.chosen == HeadId(0, 5)
    assert "Head 0.5" in wall.accessibleDescription()


def test_the_keyboard_passes_over_layers_without_heads(wall):
    wall.show_picture(Scores(flat(3, (6, 0, 3)), Shades()))
    wall.mark(HeadId(0, 5))
    QTest.keyClick(wall, Qt.Key.Key_Down)
    assert wall.chosen == HeadId(2, 2)


def test_a_head_that_is_off_shows_the_colour_of_its_score_at_its_edge(wall):
    head = HeadId(1, 1)
    shades = Shades("Loss change", "bits", (-4.0, 4.0), {head: Shade(4.0, 3.5, 4.5)})
    wall.show_picture(Scores(flat(4, 6), shades))
    wall.show_off(frozenset({head}))
    box = wall.where(head)
    seen = colour_at(wall.viewport(), box.left() + 4, box.center().y())
    assert np.abs(np.subtract(seen, shades.colour_of(4.0, False).getRgb()[:3])).max() < 12


@pytest.mark.parametrize("dark", [False, True])
def test_needed_is_red_harmful_blue_and_every_number_readable(dark):
    needed, harmful, free = (Shades().colour_of(part, dark) for part in (1.0, -1.0, 0.0))
    assert needed.red() > needed.blue() and harmful.blue() > harmful.red()
    assert abs(free.red() - free.blue()) < 8
    for part in np.linspace(-1, 1, 41):
        ground = Shades().colour_of(part, dark)
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
    heads = {head: Shade(0.4, -0.1, 0.9), HeadId(0, 1): Shade(0.4, 0.1, 0.9)}
    shades = Shades("Loss change", "bits", (-4.0, 4.0), heads)
    assert shades.number(head) == "≈ 0"
    assert shades.colour(head, False) == shades.colour_of(0.0, False)
    assert "may be nothing" in shades.words(head)
    assert shades.number(HeadId(0, 1)) == "+0.4"
    assert shades.number(HeadId(3, 3)) == "" and shades.colour(HeadId(3, 3), False) is None


def test_only_the_cells_that_change_are_painted_again(wall, monkeypatch):
    painted = []
    monkeypatch.setattr(
        wall.picture, "paint_cell", lambda painter, head, box, is_off: painted.append(head)
    )
    wall.viewport().repaint()
    assert len(painted) == 24
    painted.clear()
    wall.show_off(frozenset({HeadId(2, 3)}))
    wall.mark(HeadId(2, 3))
    QApplication.processEvents()
    assert HeadId(2, 3) in painted and HeadId(0, 0) in painted and len(set(painted)) <= 18
