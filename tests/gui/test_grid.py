"""What is written along the axes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from hgviz.core import Signal
from hgviz.gui.grid import MapAxis, Names, Viewport
from hgviz.gui.sentences import word_spans
from hgviz.models.signals import prompt_of_signal
from tests.making import make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


def names_of(text, layer=0):
    capture = make_capture(text, heads=1)
    return Names(capture.prompt, word_spans(capture.prompt), capture.query_spans(layer))


def texts(marks):
    return [label.text for label in marks.labels]


def test_from_twelve_pixels_every_token_is_written():
    names = names_of("a bé.")
    found = names.marks(MapAxis(len(names), 600, 12.0), 1.0)
    assert texts(found) == ["a", "·", "b", "<C3>", "<A9>", "."]
    assert found.labels[0].middle == 6


def test_words_come_first_then_lines_and_then_numbers():
    names = names_of(TEXT)
    found = texts(names.marks(MapAxis(len(names), 600, 4.0), 1.0))
    assert found[:4] == ["The", "hourglass", "was", "used"] and "at" not in found
    lines = names_of("\n".join(["a line of some words"] * 40))
    assert texts(lines.marks(MapAxis(len(lines), 840, 1.0), 1.0))[:2] == ["line 1", "line 2"]
    names = names_of("abc " * 300)
    numbers = texts(names.marks(MapAxis(len(names), 300, 0.25), 1.0))
    assert numbers == ["0", "200", "400", "600", "800", "1,000"]


def test_the_chosen_word_is_always_there_and_makes_room_for_itself():
    names = names_of(TEXT)
    token = TEXT.index(" at ") + 1
    marks = names.marks(MapAxis(len(names), 600, 4.0), 1.0, chosen=token)
    chosen = [label for label in marks.labels if label.chosen]
    assert [label.text for label in chosen] == ["at"]
    middles = [label.middle for label in marks.labels]
    assert min(np.diff(middles)) >= 11


def test_a_coarser_level_is_named_by_its_tokens():
    names = names_of(TEXT, layer=5)
    assert names.glyph(0) == "T" and names.glyph(1) == "he·h"
    assert names.place(1) == "tokens 1 to 4"
    assert texts(names.marks(MapAxis(len(names), 600, 16.0), 1.0))[1] == "he·h"
    padded = names_of("abcde", layer=10)
    for cell in np.flatnonzero(padded.spans[:, 1] < 0).tolist():
        assert padded.glyph(cell) == "" and "no part" in padded.place(cell)


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("text", ["a", " ", "\n\n", "word", "שלום " * 9, "x" * 500])
def test_any_text_has_marks_at_any_scale(text, scale):
    names = names_of(text)
    along = MapAxis(len(names), 300, scale)
    marks = names.marks(along, 1.0, chosen=len(names) - 1)
    assert all(0 <= label.middle <= 300 for label in marks.labels)


# --- viewports ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "room", "more", "scales"),
    [
        ((136, 136), (545, 546), {}, (4, 4)),  # whole pixels
        ((2, 2), (600, 600), {}, (96, 96)),  # no cell is larger
        ((2, 2), (1200, 1200), {"ratio": 2.0}, (192, 192)),
        ((68, 136), (544, 544), {}, (4, 4)),  # cells of wider maps are square, too
        ((68, 2), (544, 544), {}, (8, 96)),  # those of maps far from square are not
    ],
)
def test_a_whole_map_is_fitted_into_its_room(cells, room, more, scales):
    view = Viewport.fitted(cells, room, **more)
    assert (view.down.scale, view.across.scale) == scales
    assert view.size == (cells[0] * scales[0], cells[1] * scales[1])


@pytest.mark.parametrize(("cells", "zoom"), [(500, 0), (600, 0), (1001, 1), (8192, 4), (131072, 8)])
def test_the_level_is_the_floor_of_the_data_px_per_screen_px(cells, zoom):
    assert Viewport.fitted((cells, cells), (500, 500)).zoom == zoom


@given(some.integers(1, 5000), some.integers(20, 700), some.integers(0, 4))
def test_every_cell_belongs_to_exactly_one_pixel_of_the_whole(cells, room, turns):
    along = MapAxis(cells, room, Viewport.fitted((cells, cells), (room, room)).down.scale)
    bounds = along.bounds()
    assert bounds[0] == 0 and bounds[-1] == cells
    assert len(bounds) == along.size + 1
    if along.scale < 1:
        assert (np.diff(bounds) > 0).all()


@given(some.integers(300, 5000), some.integers(0, 4000), some.integers(0, 300))
def test_a_pixel_shows_the_same_cells_wherever_the_window_is(cells, start, by):
    along = MapAxis(cells, 200, 0.13).moved_to(start)
    moved = along.moved_to(along.start + by)
    by = moved.start - along.start
    shared = along.size - by
    if shared > 0:
        assert (along.bounds()[by : by + shared] == moved.bounds()[:shared]).all()


def test_zooming_keeps_what_is_under_the_pointer_and_ends_at_the_whole_map():
    view = whole = Viewport.fitted((1000, 1000), (500, 500))
    for turns in (3, 2, -1, 4):
        before = (view.down.start + 120) / view.down.scale
        view = view.zoomed(turns, 120, 333)
        after = (view.down.start + 120) / view.down.scale
        assert abs(before - after) <= 1 / view.down.scale
    assert view.down.scale == int(view.down.scale) > 1
    far = view.panned(-100_000, -100_000)
    assert far.down.shown[1] == far.across.shown[1] == 1000
    assert view.zoomed(-50, 7, 7) == whole
    assert whole.resized((200, 300), 1.0) == Viewport.fitted((1000, 1000), (200, 300))


def test_the_axis_of_an_image_has_the_rows_of_its_patches():
    signal = Signal(np.zeros((3, 32, 48), np.float32), grid=(4, 6))
    prompt = prompt_of_signal(signal, 25)
    names = Names(prompt, word_spans(prompt), np.arange(25)[:, None] + np.arange(2))
    marks = names.marks(MapAxis(25, 100, 4.0), 1.0)
    assert texts(marks) == ["row 0", "row 1", "row 2", "row 3"]
    assert marks.ticks == (4, 28, 52, 76)  # after [CLS]
    assert texts(names.marks(MapAxis(25, 400, 16.0), 1.0))[:3] == ["[CLS]", "0,0", "0,1"]


def test_the_axis_of_a_sound_is_in_seconds():
    signal = Signal(np.zeros((80, 3000), np.float32), seconds=30.0)
    prompt = prompt_of_signal(signal, 1500)
    spans = np.arange(1500)[:, None] + np.arange(2)
    names = Names(prompt, word_spans(prompt), spans)
    whole = names.marks(MapAxis(1500, 600, 0.4), 1.0)
    assert texts(whole) == ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s"]
    assert [label.middle for label in whole.labels] == [100.0 * n for n in range(6)]
    part = names.marks(MapAxis(1500, 600, 2.0, start=150), 1.0)
    assert texts(part)[:3] == ["1.5 s", "2.0 s", "2.5 s"] and part.labels[0].middle == 0
