"""Tiles: a picture put together from the pieces of a map, and what is written along its axes."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from hgviz.core import Signal
from hgviz.gui import tiles
from hgviz.gui.grid import MapAxis, Names, Viewport
from hgviz.gui.sentences import word_spans
from hgviz.gui.tiles import Key, Readers, Source, Tiles
from hgviz.maps import DenseMap, Factors, LazyMap, Rule, recompute_statistics
from hgviz.maps.overview import UNSIGNED_ERROR
from hgviz.maps.tiles import build_pyramid, storage_request, survey
from hgviz.models.signals import prompt_of_signal
from tests.making import make_capture

CAUSAL = Rule(1.0, ("softmax",), (None,), causal=True)
FREE = Rule(1.0, ("tanh",), (None,))


def source_of(array, rule=CAUSAL, signed=False):
    return Source(DenseMap(array[None], (0,), signed), 0, rule, None)


def fill(cache, keys, view=None):
    """Read tiles; of a view only what is on screen."""
    for part in cache.parts(keys, view):
        cache.read(part)


def whole(source, view):
    cache = Tiles()
    fill(cache, cache.lacking(source, view))
    return tiles.compose(cache, source, view)


def at_place(scale, place, cells):
    """A part of a square map at so many pixels to a cell."""
    view = Viewport.fitted((cells, cells), (200, 300))
    along = (axis.at(scale, 0).moved_to(round(place * scale)) for axis in (view.down, view.across))
    return Viewport(*along)


def random_map(size, causal=True, seed=0):
    weights = np.random.default_rng(seed).random((size, size), np.float32)
    return np.tril(weights) if causal else weights


@pytest.mark.parametrize("signed", [False, True])
def test_a_pixel_is_the_largest_of_its_cells_and_a_cell_the_same_in_all_its_pixels(signed):
    for shape, room in (
        ((5, 5), (33, 33)), ((513, 513), (500, 512)), ((7, 2000), (300, 300)),
        ((2500, 40), (400, 300)), ((1200, 12), (300, 300)),  # one cell across and four down
    ):  # fmt: skip
        array = np.random.default_rng(0).random(shape, np.float32) * (2 if signed else 1) - signed
        source, view = source_of(array, FREE, signed), Viewport.fitted(shape, room)
        pixels = tiles.spread(whole(source, view), view)
        assert pixels.shape == view.size == tuple(axis.size for axis in view.axes)
        high, low = (_reduced(reduce, array, view) for reduce in (np.maximum, np.minimum))
        assert np.array_equal(pixels, np.where(high >= -low, high, low) if signed else high), shape
        part = view.part((1, 4, 2, 5))
        assert np.array_equal(tiles.spread(whole(source, part), part), pixels[1:4, 2:5]), shape


def _reduced(reduce, array, view):
    """The pixels of a map by the rule, an axis after the other."""
    for number, axis in enumerate(view.axes):
        starts = axis.bounds()[:-1]
        if axis.scale >= 1:
            array = np.take(array, starts, axis=number)
        else:
            array = reduce.reduceat(array, starts, axis=number)
    return array


def test_the_ring_around_a_view_is_what_lies_next_to_it():
    source = source_of(random_map(2048, causal=False), FREE)
    view = Viewport.fitted((2048, 2048), (200, 200)).zoomed(60, 0, 0)
    view = replace(view, down=view.down.at(1.0, 0).moved_to(600), across=view.across.at(
        1.0, 0).moved_to(600))  # fmt: skip
    here = {(key.i, key.j) for key in tiles.wanted(source, view)}
    around = {(key.i, key.j) for key in tiles.around(source, view)}
    assert here == {(2, 2), (2, 3), (3, 2), (3, 3)}
    assert around == {(i, j) for i in range(1, 5) for j in range(1, 5)} - here


def test_the_cache_forgets_what_was_not_used_for_longest():
    source = source_of(random_map(1024, causal=False), FREE)
    one = 256 * 256 * 4
    cache = Tiles(limit=3 * one)
    keys = [Key(source, 0, i, 0) for i in range(4)]
    fill(cache, keys[:3])
    cache.get(keys[0])
    fill(cache, keys[3:])
    assert cache.get(keys[1]) is None
    assert all(cache.get(keys[n]) is not None for n in (0, 2, 3))
    assert cache.size == 3 * one
    cache.drop([source])
    assert cache.size == 0 and len(cache) == 0


# --- what is kept in the capture, and what is on screen -------------------------------------------


def test_stored_levels_are_shown_first_and_are_close_to_the_exact_ones():
    random, rows = np.random.default_rng(0), 8192
    q, k = (random.normal(size=(1, rows, 8)).astype(np.float32) for _ in range(2))
    rule = Rule(0.5, ("softmax",), (None,), causal=True)
    none = np.zeros(0, np.int64), np.zeros((1, 0, rows), np.float32)
    factors = recompute_statistics(Factors(q, k, np.zeros((1, rows), np.float32), rule, *none))
    bare = LazyMap(factors, (0,))
    found = survey(bare, 0, storage_request(bare))
    pyramid = build_pyramid(bare, found)
    layer = LazyMap(factors, (0,), pyramids=lambda place: pyramid)
    source = Source(layer, 0, rule, bare.fold(found.cells, 3))
    view, cache = at_place(1 / 20, 3000, rows), Tiles()
    keys = tiles.wanted(source, view)
    for part in cache.sketches(keys):
        cache.read(part)
    near = tiles.compose(cache, source, view)
    assert tiles.quality(cache, source, view) == "near"
    fill(cache, keys)
    assert tiles.quality(cache, source, view) == "exact"
    exact = tiles.compose(cache, source, view)
    assert not np.isnan(near).any() and not np.array_equal(near, exact)
    assert np.allclose(near, exact, rtol=UNSIGNED_ERROR, atol=1e-7)


@pytest.mark.parametrize("rule", [CAUSAL, FREE], ids=["causal", "free"])
def test_wherever_one_goes_the_picture_is_the_one_that_is_read_at_once(rule):
    dice, cache = np.random.default_rng(0), Tiles()
    source = source_of(random_map(2600, rule is CAUSAL), rule)
    for _ in range(8):
        view = at_place(dice.choice([1, 1 / 2, 1 / 3, 1 / 6]), dice.integers(0, 2600), 2600)
        fill(cache, cache.lacking(source, view), view)
        assert tiles.quality(cache, source, view) == "exact"
        assert np.array_equal(tiles.compose(cache, source, view), whole(source, view))


# --- reading in threads ---------------------------------------------------------------------------


class Slow:
    """A map of 2,048 x 2,048 cells whose reads wait to be let go."""

    shape, heads, signed = (1, 2048, 2048), (0,), False

    def __init__(self):
        self.asked, self.go, self.begun = [], threading.Event(), threading.Event()

    def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
        self.asked.append((rows[0] // 256, columns[0] // 256))
        self.begun.set()
        assert self.go.wait(60)
        return np.ones((rows[1] - rows[0], columns[1] - columns[0]), np.float32)


@pytest.fixture
def readers():
    """A reader in a thread: what came and went wrong is in .came and .wrong."""
    came, wrong = [], []
    readers = Readers(Tiles(), lambda call: call(), came.extend, wrong.append, count=1)
    readers.came, readers.wrong = came, wrong
    yield readers
    readers.close()


def parts_of(source, row):
    return Tiles().parts([Key(Source(source, 0, FREE), 0, row, column) for column in range(8)])


def test_the_newest_request_is_read_first_and_stale_ones_not_at_all(readers, until):
    slow = Slow()
    readers.want(parts_of(slow, 0))
    assert slow.begun.wait(60)
    readers.want(parts_of(slow, 1))
    readers.want(parts_of(slow, 5))
    slow.go.set()
    until(lambda: len(readers.came) == 9)
    assert slow.asked == [(0, 0), *((5, column) for column in range(8))]


def test_a_map_that_cannot_be_read_says_so_once(readers, until):
    class Broken(Slow):
        def read(self, *args, **named):
            raise ValueError("damaged")

    readers.want(parts_of(Broken(), 0))
    until(lambda: readers.wrong)
    time.sleep(0.05)
    assert [str(one) for one in readers.wrong] == ["damaged"]


# --- axes and viewports ---------------------------------------------------------------------------


TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


def names_of(text, layer=0):
    capture = make_capture(text, heads=1)
    return Names(capture.prompt, word_spans(capture.prompt), capture.query_spans(layer))


def texts(marks):
    return [label.text for label in marks.labels]


def test_words_come_first_then_lines_and_then_numbers():
    names = names_of(TEXT)
    found = texts(names.marks(MapAxis(len(names), 600, 4.0), 1.0))
    assert found[:4] == ["The", "hourglass", "was", "used"] and "at" not in found
    lines = names_of("\n".join(["a line of some words"] * 40))
    assert texts(lines.marks(MapAxis(len(lines), 840, 1.0), 1.0))[:2] == ["line 1", "line 2"]
    names = names_of("abc " * 300)
    numbers = texts(names.marks(MapAxis(len(names), 300, 0.25), 1.0))
    assert numbers == ["0", "200", "400", "600", "800", "1,000"]


# --- viewports ------------------------------------------------------------------------------------


@given(some.integers(1, 5000), some.integers(20, 700), some.integers(0, 4))
def test_every_cell_belongs_to_exactly_one_pixel_of_the_whole(cells, room, turns):
    along = MapAxis(cells, room, Viewport.fitted((cells, cells), (room, room)).down.scale)
    bounds = along.bounds()
    assert bounds[0] == 0 and bounds[-1] == cells
    assert len(bounds) == along.size + 1
    if along.scale < 1:
        assert (np.diff(bounds) > 0).all()


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


def test_a_missing_tile_shows_a_coarser_one_and_never_nothing():
    source = source_of(random_map(1024, causal=False), FREE)
    cache = Tiles()
    fill(cache, [Key(source, 2, 0, 0)])
    found = tiles.compose(cache, source, Viewport.fitted((1024, 1024), (1100, 1100)))
    coarse = source.map.read(0, zoom=2)
    assert np.array_equal(found, np.kron(coarse, np.ones((4, 4), np.float32)))


def test_no_read_of_a_long_map_asks_for_much_at_once():
    class Counting:
        shape, heads, signed = (1, 131_072, 131_072), (0,), False
        largest = 0

        def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
            sizes = [-(-(b - a) // (1 << zoom)) for a, b in (rows, columns)]
            self.largest = max(self.largest, max(b - a for a, b in (rows, columns)))
            return np.zeros(sizes, np.float32)

    source = Source(Counting(), 0, CAUSAL)
    view = Viewport.fitted((131_072, 131_072), (544, 544))
    found = whole(source, view)
    assert found.shape == (544, 544)
    assert source.map.largest <= tiles.MOST_READ


class Counting:
    """A random map that says which cells were asked for, and how often."""

    shape, heads, signed = (1, 3000, 2600), (0,), False

    def __init__(self):
        self.map = DenseMap(np.random.default_rng(3).random(self.shape, np.float32), (0,), False)
        self.asked = np.zeros(self.shape[1:], np.int32)

    def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
        self.asked[slice(*rows), slice(*columns)] += 1
        return self.map.read(head, rows, columns, zoom, reduce)
