"""Where cells of a study stand, and what many small ones are drawn as."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from hgviz.gui.sweeps import about
from hgviz.gui.sweeps.layout import NONE, lay_out
from hgviz.gui.sweeps.raster import draw, geometry, paint
from hgviz.sweep import Cell, Standing
from tests.gui.sweeps.conftest import found_by, planned

MODELS = tuple(f"size {number}" for number in range(10))


def many():
    return planned(range(40), MODELS, tuple(f"method {number}" for number in range(8)))


def test_rows_are_activations_and_columns_kinds_methods_and_seeds():
    layout = lay_out(planned())
    assert [row[2] for row in layout.rows] == ["softmax", "ymish"]
    assert [name for name, *_ in layout.blocks] == [*about.KINDS]
    assert [name for name, *_ in layout.groups] == ["", "", "change", "michel", "random", ""]
    assert [one.seed for one in layout.columns[:4]] == ["1", "2", "1", "2"]
    assert (layout.at[0, -2:] == NONE).all()  # the first activation is beside nothing
    for number, (row, column) in enumerate(layout.places):
        assert layout.at[row, column] == number


def test_two_cells_of_one_place_both_have_a_column():
    place = {"model": "a", "seed": "1"}
    layout = lay_out([Cell("do", {"x": one}, (), {}, place) for one in (1, 2)])
    assert sorted(layout.at.ravel()) == [0, 1]


def test_arrows_skip_places_without_a_cell_and_stop_at_the_edge():
    layout = lay_out(planned())
    last = int(layout.at[1, -1])
    assert layout.step(last, 0, -1) == last
    assert layout.step(int(layout.at[0, 0]), 1, 0) == layout.at[0, 1]
    assert layout.ends(int(layout.at[0, 3]), True) == layout.at[0, -3]


@pytest.mark.parametrize("size", [(3000, 500), (300, 120), (60, 30)])
def test_every_cell_has_a_place_that_is_found_again(size):
    layout = lay_out(many())
    geo = geometry(layout, *size)
    for number in range(0, len(layout.places), 97):
        row, column = map(int, layout.places[number])
        box = geo.box(row, column)
        rows, columns = geo.under(box.center().x(), box.center().y())
        assert rows[0] <= row < rows[1] and columns[0] <= column < columns[1]
    assert geo.together == (size[0] < 3000)


def picture(app, standings, size):
    layout = lay_out([one.cell for one in standings])
    geo = geometry(layout, *size)
    image = QImage(*(one + 2 for one in geo.size), QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    draw(painter, layout, standings, geo, 1.0)
    painter.end()
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4)
    return pixels.copy(), layout, geo


def test_one_failure_among_many_that_are_drawn_together_is_seen(app):
    cells = many()
    good = [Standing(one, "done", {}) for one in cells]
    bad = [*good]
    bad[1234] = Standing(cells[1234], "failed", line="no")
    (before, _, geo), (after, layout, _) = (picture(app, one, (300, 100)) for one in (good, bad))
    assert geo.together
    changed = np.argwhere((before != after).any(-1))
    box = geo.box(*map(int, layout.places[1234]))
    assert len(changed) and all(box.contains(float(x), float(y)) for y, x in changed)


def test_each_state_has_a_form_of_its_own(app):
    """In grey, too: nobody needs to see red and green."""
    seen = set()
    for state in about.STATES:
        image = QImage(24, 24, QImage.Format.Format_ARGB32)
        image.fill(0xFFFFFFFF)
        painter = QPainter(image)
        paint(painter, QRectF(2, 2, 20, 20), state, 0.5)
        painter.end()
        grey = image.convertToFormat(QImage.Format.Format_Grayscale8)
        values = np.frombuffer(grey.constBits(), np.uint8).reshape(24, -1)[:, :24].astype(int)
        seen.add(tuple((np.abs(values - np.median(values)) > 12).ravel()))
    assert len(seen) == len(about.STATES)


def test_what_cells_found_is_said_in_words():
    by = {one.work: Standing(one, "done", found_by(one), seconds=75.0) for one in planned()}
    assert about.short(by["score"]) == "84.0"
    assert about.value(by["score"]).startswith("accuracy 84.0")
    assert about.value(by["measure"]) == "4 heads on 8 examples"
    assert "to 50.0" in about.value(by["curve"])
    assert about.value(by["compare"]).startswith("+1.2 points (−1.0 to +3.0)")
    assert ("Took", "75 s") in about.facts(by["train"])


@pytest.mark.parametrize("found", [{}, {"metric": 3}, {"curves": []}, {"answers": None}])
def test_results_of_another_version_are_shown_without_what_they_lack(found):
    for one in planned():
        assert about.value(Standing(one, "done", found)) == ""
        assert about.short(Standing(one, "done", found)) == ""
