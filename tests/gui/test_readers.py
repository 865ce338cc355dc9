"""Reading tiles in threads: what comes first, what is never read, and the end."""

import threading
import time

import numpy as np
import pytest

from hgviz.gui.grid import Viewport
from hgviz.gui.tiles import Key, Part, Readers, Source, Tiles, wanted
from hgviz.maps import Rule

FREE = Rule(1.0, ("tanh",), (None,))


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
def slow():
    return Slow()


@pytest.fixture
def readers():
    cache, came, wrong = Tiles(), [], []
    one = Readers(cache, lambda call: call(), came.extend, wrong.append, count=1)
    one.came, one.wrong = came, wrong
    yield one
    one.close()


def keys_of(slow, row):
    source = Source(slow, 0, FREE)
    return [Key(source, 0, row, column) for column in range(8)]


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_what_was_asked_for_last_comes_first_and_what_nobody_wants_is_not_read(readers, slow):
    readers.want(readers.tiles.parts(keys_of(slow, 0)))
    assert slow.begun.wait(60)
    readers.want(readers.tiles.parts(keys_of(slow, 1)))
    readers.want(readers.tiles.parts(keys_of(slow, 5)))
    slow.go.set()
    until(lambda: len(readers.came) == 9)
    assert slow.asked == [(0, 0), *((5, column) for column in range(8))]


def test_a_part_that_is_being_read_is_not_read_twice(slow):
    cache, came = Tiles(), []
    both = Readers(cache, lambda call: call(), came.extend, print, count=2)
    keys = keys_of(slow, 0)[:1]
    both.want(cache.parts(keys))
    assert slow.begun.wait(60)
    both.want(cache.parts(keys))
    slow.go.set()
    until(lambda: came)
    both.close()
    assert slow.asked == [(0, 0)]


def test_what_is_stored_waits_for_no_product_and_a_core_is_left_but_in_a_hurry(slow):
    cache, came = Tiles(), []
    both = Readers(cache, lambda call: call(), came.extend, print, count=2)
    keys = keys_of(slow, 0)
    both.want(cache.parts(keys))
    assert slow.begun.wait(60)
    both.want(cache.parts(keys), stored=iter([Part(keys[5])]))
    until(lambda: came == [Part(keys[5])])
    assert slow.asked == [(0, 0)]
    both.want(cache.parts(keys), hurry=True)
    until(lambda: len(slow.asked) == 2)
    slow.go.set()
    until(lambda: len(came) == 9)
    both.close()


def test_nothing_is_said_and_no_thread_stays_after_closing(readers, slow):
    readers.want(readers.tiles.parts(keys_of(slow, 0)))
    assert slow.begun.wait(60)
    threading.Timer(0.05, slow.go.set).start()
    readers.close()
    assert len(slow.asked) == 1 and not readers.came
    assert not any(thread.is_alive() for thread in readers._threads)
    readers.want(readers.tiles.parts(keys_of(slow, 1)))
    assert len(slow.asked) == 1


def test_parts_that_come_faster_than_they_are_heard_come_together(slow):
    cache, calls, came = Tiles(), [], []
    one = Readers(cache, calls.append, came.append, print, count=1)
    slow.go.set()
    one.want(cache.parts(keys_of(slow, 0)))
    until(lambda: len(slow.asked) == 8 and len(cache) == 8 and len(one._unheard) == 8)
    assert len(calls) == 1
    calls[0]()
    assert [part.key.j for part in came[0]] == list(range(8))
    one.close()


def test_a_map_that_cannot_be_read_says_so_once(readers):
    class Broken(Slow):
        def read(self, *args, **named):
            raise ValueError("damaged")

    readers.want(readers.tiles.parts(keys_of(Broken(), 0)))
    until(lambda: readers.wrong)
    time.sleep(0.05)
    assert [str(one) for one in readers.wrong] == ["damaged"]


def test_an_order_that_cannot_be_worked_out_is_said_and_the_next_one_is_read(readers, slow):
    def broken():
        raise ValueError("no such tile")
        yield

    slow.go.set()
    readers.want(broken())
    until(lambda: readers.wrong)
    readers.want(readers.tiles.parts(keys_of(slow, 0)))
    until(lambda: len(readers.came) == 8)
    assert [str(one) for one in readers.wrong] == ["no such tile"]


def test_what_threads_read_is_what_is_read_at_once():
    random = np.random.default_rng(0)

    class Random(Slow):
        weights = random.random((2048, 2048), np.float32)

        def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
            return self.weights[slice(*rows), slice(*columns)].copy()

    source = Source(Random(), 0, FREE)
    keys = wanted(source, Viewport.fitted((2048, 2048), (2048, 2048)))
    cache, came = Tiles(), []
    many = Readers(cache, lambda call: call(), came.extend, print, count=4)
    many.want(cache.parts(keys))
    until(lambda: len(came) == 64)
    many.close()
    for key in keys:
        (top, bottom), (left, right) = key.ranges
        assert np.array_equal(cache.get(key).values, Random.weights[top:bottom, left:right])
        assert cache.get(key).whole


def test_a_part_of_a_coarse_tile_is_read_alone(readers, slow):
    slow.go.set()
    key = Key(Source(slow, 0, FREE), 0, 1, 1)
    readers.want(iter([Part(key, 0, 0)]))
    until(lambda: readers.came)
    assert readers.came == [Part(key, 0, 0)]
