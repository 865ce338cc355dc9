"""Having the tiles read that a canvas needs, and at rest those it may need next."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from hgviz.gui import tiles
from hgviz.gui.heatmap import Canvas
from hgviz.gui.tiles import Part, Source
from hgviz.gui.views.opened import Opened, Opener
from hgviz.gui.views.readers import Readers

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes

REST = 150  # ms without a movement before anything is read ahead
QUICK = 2  # zooms up to which is computed ahead; above, only what is stored is read
AT_ONCE = 1  # zooms up to which a screen is computed before anybody has seen what is stored


class Supply(QObject):
    """Keeps a canvas in tiles. None of it waits: what comes is shown when it is there."""

    outgrown = Signal()  # weights are larger than the colours allowed for
    came = Signal()  # more was read
    added_up = Signal()  # what the rows add up to is known

    def __init__(self, canvas: Canvas, opener: Opener) -> None:
        super().__init__(canvas)
        self._canvas, self._opener = canvas, opener
        self._opened: Opened | None = None
        self._screen: tuple[object, ...] = ()  # what was asked for last,
        self._ahead = False  # and whether more than that
        self._left: Source | None = None  # what came of it was not painted any more
        self._lanes: Lanes | None = None
        self._readers: Readers | None = None
        self._rest = QTimer(self, singleShot=True, interval=REST)
        self._rest.timeout.connect(self._look_ahead)

    def start(self, lanes: Lanes, on_error: Callable[[BaseException], None]) -> None:
        """Read off the GUI thread from now on."""
        self._lanes, self._on_error = lanes, on_error
        self._readers = Readers(self._canvas.cache, lanes.bridge.post, self._came, on_error)

    def stop(self) -> None:
        """Wait for what is being read; nothing comes any more."""
        self._rest.stop()
        if self._readers is not None and self._lanes is not None:
            self._readers.close()
            for lane in (self._lanes.map, self._lanes.files):
                lane.cancel(self._key)
        self._readers, self._opened = None, None

    def want(self, opened: Opened, hurry: bool = False) -> None:
        """Have the tiles read that the screen lacks; whatever was on order is forgotten.

        hurry: the window waits, for all of it or for what is stored.
        """
        if self._readers is None or self._lanes is None:
            return
        if opened is not self._opened:
            self._opened = opened
            scene, left, self._left = self._canvas.scene, self._left, None
            if scene is not None and scene.source is opened.source is left:
                self._canvas.compose(afresh=True)  # come back to before another one was shown
            self._lanes.files.cancel(self._key)
            if opened.unfinished:
                self._lanes.files.submit(
                    self._key, "Map", opened.add_up(), on_done=self._added_up,
                    on_error=self._on_error, post=self._lanes.bridge.post,
                )  # fmt: skip
        view = self._canvas.view
        screen = () if view is None else (hurry, *tiles.screen(opened.source, view))
        if screen != self._screen or self._ahead:
            self._screen = screen
            self._read([], hurry)
        self._rest.start()

    @property
    def at_hand(self) -> bool:
        """Whether what is read in a moment is there: all of a screen, or what is stored of it."""
        cache, view = self._canvas.cache, self._canvas.view
        if self._opened is None or view is None:
            return False
        lacking = cache.lacking(self._opened.source, view)
        if view.zoom <= AT_ONCE:
            return not lacking
        return next(cache.sketches(lacking), None) is None

    @property
    def _key(self) -> str:
        return f"supply {id(self)}"

    def _read(self, beside: list[Opened], hurry: bool = False) -> None:
        """What is on screen first, then around it, then the same part of other heads; in a hurry
        what is on screen alone.
        """
        self._ahead = bool(beside)
        cache, view = self._canvas.cache, self._canvas.view
        if self._readers is None or self._opened is None or view is None:
            return
        source = self._opened.source
        ring = tiles.around(source, view) if beside else []
        others = [
            key
            for one in beside if one.source.shape == source.shape
            for key in cache.lacking(one.source, view)
        ]  # fmt: skip
        wanted, soon = cache.lacking(source, view), view.zoom <= AT_ONCE
        # in a hurry nothing competes with what is stored
        work = [cache.parts(wanted, view)] if soon or not hurry else []
        if not hurry:
            work.append(cache.parts(tiles.wanted(source, view)))
        if view.zoom <= QUICK:
            work += [cache.parts(ring), cache.parts(others, view)]
        self._readers.want(
            chain.from_iterable(work),
            stored=cache.sketches(wanted + ring + others),
            hurry=hurry and soon,
        )

    def _look_ahead(self) -> None:
        if self._opened is None or self._lanes is None:
            return
        self._lanes.map.submit(
            self._key, "Map", self._opener.beside(self._opened),
            on_done=self._read, post=self._lanes.bridge.post, on_error=lambda _: None,
        )  # fmt: skip

    def _came(self, parts: list[Part]) -> None:
        opened, scene = self._opened, self._canvas.scene
        if opened is None or scene is None or scene.source is opened.source:
            self._canvas.renew(parts)
        else:  # another head is shown in a moment: nobody would see it
            self._left = scene.source
        self.came.emit()
        if opened is not None:
            larger = [opened.saw(self._canvas.cache, one.key) for one in parts]  # every one of them
            if any(larger):
                self.outgrown.emit()

    def _added_up(self, result: None) -> None:
        self.added_up.emit()
