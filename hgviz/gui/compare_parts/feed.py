"""Having the tiles read that A, B and A − B lack on screen, by one set of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from hgviz.gui import tiles
from hgviz.gui.heatmap import Canvas
from hgviz.gui.opened import Compared
from hgviz.gui.tiles import Key, Part, Tiles
from hgviz.gui.views.readers import Readers
from hgviz.gui.views.supply import QUICK, REST

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes


class Feed(QObject):
    """Keeps three canvases in tiles: A and B first, for of these A − B is made where they are."""

    outgrown = Signal()  # weights are larger than the colours allowed for
    came = Signal()  # more was read
    added_up = Signal()  # what the rows add up to is known

    def __init__(self, cache: Tiles, canvases: Sequence[Canvas]) -> None:
        super().__init__(canvases[0])
        self.cache, self._canvases = cache, canvases
        self._compared: Compared | None = None
        self._screen: tuple[object, ...] = ()
        self._ahead = False
        self._adding = False  # or added up
        self._lanes: Lanes | None = None
        self._readers: Readers | None = None
        self._rest = QTimer(self, singleShot=True, interval=REST)
        self._rest.timeout.connect(self._look_ahead)

    def start(self, lanes: Lanes, on_error: Callable[[BaseException], None]) -> None:
        """Read off the GUI thread from now on."""
        self._lanes, self._on_error = lanes, on_error
        self._readers = Readers(self.cache, lanes.bridge.post, self._came, on_error)

    def stop(self) -> None:
        """Wait for what is being read; nothing comes any more."""
        self._rest.stop()
        if self._readers is not None and self._lanes is not None:
            self._readers.close()
            self._lanes.files.cancel(self._key)
        self._readers, self._compared = None, None

    def want(self, compared: Compared) -> None:
        """Have the tiles read that the screen lacks; whatever was on order is forgotten."""
        if self._readers is None or self._lanes is None:
            return
        if compared is not self._compared:
            self._compared, self._screen = compared, ()
            self._lanes.files.cancel(self._key)
            self._adding = compared.masses is not None
        view = self._canvases[0].view
        if view is None:
            return
        screen = tiles.screen(compared.sources[0], view)
        if screen != self._screen or self._ahead:
            self._screen = screen
            self._read(ahead=False)
        self._add_up()
        self._rest.start()

    def _add_up(self) -> None:
        """Once the screen is exact: sums take as long as the whole difference."""
        if self._adding or self._compared is None or self._lanes is None:
            return
        if all(one.quality == "exact" for one in self._canvases[: len(self._compared.shown)]):
            self._adding = True
            self._lanes.files.submit(
                self._key, "Compare", self._compared.add_up(), on_done=self._summed,
                on_error=self._on_error, post=self._lanes.bridge.post,
            )  # fmt: skip

    def forget(self) -> None:
        """Nothing is compared any more."""
        self._compared, self._screen = None, ()
        self._rest.stop()
        if self._readers is not None and self._lanes is not None:
            self._readers.want(iter(()))
            self._lanes.files.cancel(self._key)

    @property
    def _key(self) -> str:
        return f"feed {id(self)}"

    def _read(self, ahead: bool) -> None:
        """What is on screen first; ahead: then what lies around it."""
        self._ahead = ahead
        view = self._canvases[0].view
        if self._readers is None or self._compared is None or view is None:
            return
        sources = self._compared.shown
        # from afar A and B are there as they are stored, while A − B is nowhere
        far = view.zoom > QUICK and all(one.lowest is not None for one in sources[:2])
        screen = _order([self.cache.lacking(one, view) for one in sources], far)
        whole = _order([tiles.wanted(one, view) for one in sources], far)
        ring = _order([tiles.around(one, view) for one in sources]) if ahead else []
        work = [self.cache.parts(screen, view), self.cache.parts(whole)]
        if view.zoom <= QUICK:
            work.append(self.cache.parts(ring))
            screen = screen + ring
        self._readers.want(chain.from_iterable(work), stored=self.cache.sketches(screen))

    def _look_ahead(self) -> None:
        self._read(ahead=True)

    def _came(self, parts: list[Part]) -> None:
        compared = self._compared
        if compared is None:
            return
        for canvas in self._canvases:
            canvas.renew(parts)
        self._add_up()
        self.came.emit()
        larger = [compared.saw(self.cache, one.key) for one in parts]  # every one of them
        if any(larger):
            self.outgrown.emit()

    def _summed(self, result: None) -> None:
        self.added_up.emit()


def _order(wanted: Sequence[list[Key]], last_first: bool = False) -> list[Key]:
    """Tiles of A and B in turn, then those of A − B, which is made of them; or the other way."""
    sides = [one for pair in zip_longest(*wanted[:2]) for one in pair if one is not None]
    rest = [key for keys in wanted[2:] for key in keys]
    return rest + sides if last_first else sides + rest
