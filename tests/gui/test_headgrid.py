"""The grid of heads: what clicks, drags and keys do, what it says, and its colours."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId
from hgviz.gui import theme
from hgviz.gui.headgrid import HeadGrid, Scores, Shade, Shades, text_colour
from hgviz.gui.sentences import layer_name
from hgviz.language import decimals
from hgviz.palettes import luminance
from tests.gui.kinds import translator
from tests.gui.screen import colour_at, picture
from tests.making import make_flat

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


def test_a_head_that_is_off_shows_the_colour_of_its_score_at_its_edge(grid):
    head = HeadId(1, 1)
    shades = Shades("Loss change", "bits", (-4.0, 4.0), {head: Shade(4.0, 3.5, 4.5)})
    grid.show_picture(Scores(make_flat(4, 6), shades))
    grid.show_off(frozenset({head}))
    box = grid.where(head)
    seen = colour_at(grid.viewport(), box.left() + 4, box.center().y())
    assert np.abs(np.subtract(seen, shades.colour_of(4.0, False).getRgb()[:3])).max() < 12


def test_the_chosen_and_the_pointed_head_are_framed_and_in_view(grid):
    grid.resize(600, 150)
    grid.mark(HeadId(3, 5))
    box = grid.where(HeadId(3, 5))
    assert grid.viewport().rect().contains(box)
    mark = theme.current().mark.getRgb()[:3]
    ring = picture(grid.viewport())[box.center().y(), box.left() - 3 : box.left()].astype(int)
    assert (np.abs(ring - mark).max(axis=1) < 60).any()
    before = picture(grid.viewport())
    QTest.mouseMove(grid.viewport(), at(grid, 3, 2))
    assert grid.ringed == HeadId(3, 2) and (picture(grid.viewport()) != before).any()


def test_only_the_rows_that_change_are_painted_again(grid, monkeypatch):
    painted = []
    monkeypatch.setattr(grid.picture, "paint_cell", lambda p, head, *_: painted.append(head))
    grid.viewport().repaint()
    assert len(painted) == 24
    painted.clear()
    grid.show_off(frozenset({HeadId(2, 3)}))
    grid.mark(HeadId(2, 3))
    QApplication.processEvents()
    assert {head.layer for head in painted} == {0, 2}


# --- key groups and names of layers ---------------------------------------------------------------


def test_heads_that_share_keys_are_bracketed_and_say_so(grid):
    grid.mark(HeadId(3, 5))
    plain = picture(grid.viewport())
    spec = make_flat(4, 6, shared=3)
    grid.show_picture(Scores(spec, Shades()))
    assert "key group 1.g1: heads 3 to 5 share their keys" in grid.words(HeadId(1, 4))
    first, last = grid.where(HeadId(0, 0)), grid.where(HeadId(0, 2))
    y, dark = first.top() - 6, 160
    bracket = picture(grid.viewport())[y : y + 3, first.left() + 4 : last.right() - 4]
    assert (bracket.max(axis=2).min(axis=0) < dark).all()  # a line over the whole group
    assert not (plain[y : y + 3, first.left() + 4 : last.right() - 4] < dark).any()


@pytest.mark.parametrize(
    ("name", "said"),
    [("model.layers.6.self_attn", "layers.6"), ("model.layers.1.self_attn", ""), ("second", "")],
)
def test_layers_of_hybrids_bear_the_names_of_their_modules(name, said):
    spec = make_flat(2, 2)
    named = replace(spec, layers=(spec.layers[0], replace(spec.layers[1], name=name)))
    assert layer_name(named, 1) == said


def test_layers_of_encoder_decoders_bear_the_number_of_their_side(app):
    spec = translator().spec
    names = [layer_name(spec, layer.index) for layer in spec.layers]
    assert names[:3] == ["encoder 0", "encoder 1", "encoder 2"]
    assert names[3:5] == ["decoder 0", "decoder 0 cross"]
    t5 = [replace(layer, name="decoder.block.1.layer.1.EncDecAttention") for layer in spec.layers]
    assert layer_name(replace(spec, layers=tuple(t5)), 4) == "decoder 1 cross"


# --- colours --------------------------------------------------------------------------------------


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
    scores = {HeadId(0, 0): Shade(0.4, -0.1, 0.9), HeadId(0, 1): Shade(0.4, 0.1, 0.9)}
    shades = Shades("Loss change", "bits", (-4.0, 4.0), scores)
    numbers = [shades.number(HeadId(0, head)) for head in range(3)]
    assert numbers == ["≈ 0", "+0.4", ""] and shades.colour(HeadId(0, 2), False) is None
    assert shades.colour(HeadId(0, 0), False) == shades.colour_of(0.0, False)
    assert "may be nothing" in shades.words(HeadId(0, 0))
