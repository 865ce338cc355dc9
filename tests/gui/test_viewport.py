"""The part of a map that is on screen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from hgviz.gui.grid import Along, Viewport


def test_a_cell_of_one_pixel_or_more_has_whole_pixels():
    view = Viewport.fitted((136, 136), (545, 546))
    assert view.down.scale == view.across.scale == 4
    assert view.size == (544, 544)


def test_two_tokens_are_at_most_96_px_each():
    assert Viewport.fitted((2, 2), (600, 600)).down.scale == 96
    assert Viewport.fitted((2, 2), (1200, 1200), ratio=2.0).down.scale == 192


def test_a_map_wider_than_high_keeps_square_cells():
    view = Viewport.fitted((68, 136), (544, 544))
    assert view.size == (272, 544)


def test_the_cells_of_a_band_may_be_wide():
    view = Viewport.fitted((68, 2), (544, 544), wide=6)
    assert (view.down.scale, view.across.scale) == (8, 48)


@pytest.mark.parametrize(("cells", "zoom"), [(500, 0), (600, 0), (1001, 1), (8192, 4), (131072, 8)])
def test_the_level_is_the_floor_of_the_data_px_per_screen_px(cells, zoom):
    assert Viewport.fitted((cells, cells), (500, 500)).zoom == zoom


@given(some.integers(1, 5000), some.integers(20, 700), some.integers(0, 4))
def test_every_cell_belongs_to_exactly_one_pixel_of_the_whole(cells, room, turns):
    along = Along(cells, room, Viewport.fitted((cells, cells), (room, room)).down.scale)
    bounds = along.bounds()
    assert bounds[0] == 0 and bounds[-1] == cells
    assert len(bounds) == along.size + 1
    if along.scale < 1:
        assert (np.diff(bounds) > 0).all()


@given(some.integers(300, 5000), some.integers(0, 4000), some.integers(0, 300))
def test_a_pixel_shows_the_same_cells_wherever_the_window_is(cells, start, by):
    along = Along(cells, 200, 0.13).moved_to(start)
    moved = along.moved_to(along.start + by)
    by = moved.start - along.start
    shared = along.size - by
    if shared > 0:
        assert (along.bounds()[by : by + shared] == moved.bounds()[:shared]).all()


def test_zooming_keeps_what_is_under_the_pointer():
    view = Viewport.fitted((1000, 1000), (500, 500))
    for turns in (3, 2, -1, 4):
        before = (view.down.start + 120) / view.down.scale
        view = view.zoomed(turns, 120, 333)
        after = (view.down.start + 120) / view.down.scale
        assert abs(before - after) <= 1 / view.down.scale
    assert view.down.scale == int(view.down.scale) > 1


def test_zooming_out_ends_at_the_whole_map():
    view = Viewport.fitted((1000, 1000), (500, 500))
    assert view.zoomed(3, 100, 100).zoomed(-50, 7, 7) == view


def test_panning_ends_at_the_edges():
    view = Viewport.fitted((1000, 1000), (500, 500)).zoomed(6, 0, 0)
    far = view.panned(-100_000, -100_000)
    assert far.down.shown()[1] == far.across.shown()[1] == 1000
    assert far.panned(100_000, 100_000) == view.panned(100_000, 100_000)


def test_a_resized_whole_map_stays_whole():
    view = Viewport.fitted((300, 300), (500, 500))
    assert view.resized((200, 300), 1.0) == Viewport.fitted((300, 300), (200, 300))


def test_a_cell_is_revealed_with_its_neighbours():
    view = Viewport.fitted((1000, 1000), (500, 500)).zoomed(9, 0, 0)
    down = view.down.around(700)
    first, last = down.shown()
    assert first <= 698 and last >= 702
    assert down.around(700) == down
