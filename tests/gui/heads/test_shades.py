"""Heads coloured by a metric."""

from __future__ import annotations

import numpy as np
import pytest

from hgviz import palettes
from hgviz.core import HeadId
from hgviz.gui.atlas import Thumb, compose
from hgviz.gui.hourglass import HourglassView, shades_of
from tests.gui.viewing import picture, session_of, showing


@pytest.fixture(autouse=True)
def dressed(app):
    return app


@pytest.fixture
def session(capture, facts):
    session = session_of(capture)
    session.put(facts=dict(facts))
    return session


def test_the_smallest_has_the_first_colour_and_the_largest_the_last():
    heads = [HeadId(0, at) for at in range(4)]
    small = Thumb(np.zeros((2, 2), np.float32), (2, 2), None, False, 0.5)
    shares = {heads[0]: 0.0, heads[1]: 0.5, heads[2]: 1.0}
    atlas = compose(
        dict.fromkeys(heads, small), dict.fromkeys(heads, (6, 6)), "viridis", shares=shares
    )
    table = palettes.colours("viridis").astype(int)
    for head, wanted in zip(heads, (table[0], table[128], table[255]), strict=False):
        x, y, *_ = atlas.places[head]
        found = atlas.image[y + 3, x + 3].astype(int)
        assert np.abs(found[:3][::-1] - wanted).max() <= 3 and found[3] == 255
    x, y, *_ = atlas.places[heads[3]]
    assert atlas.image[y + 3, x + 3, 3] == 0  # without a number: clear


def test_any_metric_colours_the_hourglass_and_maps_come_back(session):
    with showing(HourglassView, session, 700, 714) as view:
        maps = picture(view.glass)
        asked = []
        view.shaded.connect(asked.append)
        assert view.shade.isVisible() and not view.shade.ramp.isVisible()
        view.shade.picker.activated.emit(view.shade.picker.findData("entropy"))
        assert asked == ["entropy"]
        session.put(shade="entropy")
        view.settle()
        flat = picture(view.glass)
        assert (flat != maps).any() and view.shade.ramp.isVisible()
        head = session.selection.head_id
        box = dict(view.glass.layout_.cells())[head]
        inside = flat[int(box.y) + 6 : int(box.bottom) - 6, int(box.x) + 6 : int(box.right) - 6]
        assert (inside == inside[0, 0]).all()  # one colour
        session.put(shade="")
        view.settle()
        assert (picture(view.glass) == maps).all() and not view.shade.ramp.isVisible()


def test_heads_without_the_number_are_counted_and_no_number_is_no_colour(session):
    shades = shades_of(session.facts, "previous", "letter")
    assert "clear" not in shades.sentence() and " to " in shades.sentence()
    assert shades_of(session.facts, "rare", "letter") is None
    assert shades_of({}, "focus", "letter") is None


def test_every_metric_can_be_chosen_from_the_menu_as_well(session):
    with showing(HourglassView, session, 330, 714) as view:
        assert not view.shade.isVisible()  # no room
        menu = view.menu(None)
        inside = next(one.menu() for one in menu.actions() if one.text() == "Colour heads by")
        assert [one.data()[1] for one in inside.actions()][:3] == ["", "focus", "entropy"]
        asked = []
        view.shaded.connect(asked.append)
        menu.triggered.emit(inside.actions()[2])
        assert asked == ["entropy"]
        menu.deleteLater()
