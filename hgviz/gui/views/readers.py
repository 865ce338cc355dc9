"""Threads that read tiles: what was asked for last comes first, what nobody wants is not read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import chain
from threading import Condition, Thread

from hgviz.gui.tiles import Part, Tiles
from hgviz.jobs import Post

PAUSE = 0.012  # s between two times that parts are said, while there are more to come


class Readers:
    """Reads tiles into a cache and says which parts came, or what went wrong.

    Both are said through `post`, several parts at once when they come faster than they are heard.
    Every product is on one thread (hgviz.maps.tiles). The last thread leaves its core to the
    window: it reads what is stored, which so never waits for a product, and computes only in a
    hurry.
    """

    def __init__(
        self,
        tiles: Tiles,
        post: Post,
        on_parts: Callable[[list[Part]], None],
        on_error: Callable[[BaseException], None],
        count: int = 0,
    ) -> None:
        self.tiles, self._post = tiles, post
        self._on_parts, self._on_error = on_parts, on_error
        self._count = count or max(2, os.cpu_count() or 2)
        self._threads: list[Thread] = []
        self._turn = Condition()
        self._stored: Iterator[Part] = iter(())
        self._work: Iterator[Part] = iter(())
        self._hurry = False
        self._busy: set[Part | None] = set()
        self._unheard: list[Part] = []
        self._posted = False
        self._said = 0.0
        self._closed = False

    def want(
        self, work: Iterator[Part], stored: Iterator[Part] | None = None, hurry: bool = False
    ) -> None:
        """Read these parts, in this order, each taken from the iterator when its time has come;
        those that are stored before all others. hurry: the window has nothing else to do.

        Takes the place of whatever was wanted before; what is being read is still finished.
        """
        with self._turn:
            self._work, self._stored, self._hurry = work, stored or iter(()), hurry
            if not self._threads and not self._closed:
                self._threads = [
                    Thread(target=self._run, args=(number,), name=f"tiles {number}", daemon=True)
                    for number in range(self._count)
                ]
                for thread in self._threads:
                    thread.start()
            self._turn.notify_all()

    def close(self) -> None:
        """Wait for what is being read; nothing is said from now on."""
        with self._turn:
            self._closed, self._work, self._stored = True, iter(()), iter(())
            self._turn.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        while not self._closed:
            part = None
            try:
                part = self._next(number)
                if part is not None:
                    self.tiles.read(part)
                    self._tell(part)
            except BaseException as error:  # a panic in a Rust library is no Exception
                self._fail(error)
            finally:
                with self._turn:
                    self._busy.discard(part)

    def _next(self, number: int) -> Part | None:
        """The next part for a thread, once there is one; None when it is time to go."""
        leaves = 0 < number == self._count - 1
        with self._turn:
            while not self._closed:
                work = chain(self._stored, () if leaves and not self._hurry else self._work)
                part = next((one for one in work if one not in self._busy), None)
                if part is not None:
                    self._busy.add(part)
                    return part
                self._say()
                self._turn.wait()
        return None

    def _tell(self, part: Part) -> None:
        with self._turn:
            self._unheard.append(part)
            if time.monotonic() - self._said >= PAUSE:
                self._say()

    def _say(self) -> None:
        if self._unheard and not self._posted:
            self._posted, self._said = True, time.monotonic()
            self._post(self._hear)

    def _hear(self) -> None:
        with self._turn:
            parts, self._unheard = self._unheard, []
            self._posted = False
        if not self._closed:
            self._on_parts(parts)

    def _fail(self, error: BaseException) -> None:
        with self._turn:
            self._work = self._stored = iter(())  # the rest would fail alike
        self._post(lambda: None if self._closed else self._on_error(error))
