"""Looks at the folder of a study again and again, whoever runs it, while somebody sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from hgviz import tasks
from hgviz.core import HgvizError, Step, Task
from hgviz.gui import log
from hgviz.gui.language import tr

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.session import Session
    from hgviz.sweep import Sweep

KEY = "watch"
OFTEN, SELDOM = 1.0, 5.0  # s from the end of a look to the next: while cells run, and else
PART = 10  # a look that takes long is followed by so many times of rest


class Watching(QObject):
    """Keeps session.sweep true. seen: whether anybody would notice; else nothing is looked at."""

    def __init__(self, session: Session, lanes: Lanes, seen: Callable[[], bool]) -> None:
        super().__init__()
        self.session, self.lanes, self.seen = session, lanes, seen
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.look)
        session.changed.connect(self._heard)

    def close(self) -> None:
        """Look no more."""
        self.session.changed.disconnect(self._heard)
        self._timer.stop()
        self.deleteLater()

    def look(self) -> None:
        """Look now, unless nobody sees it or there is nothing yet."""
        sweep = self.session.sweep
        if sweep is None:
            return
        if not self.seen():
            self._timer.start(round(1000 * OFTEN))
            return
        self.lanes.watch.submit(
            KEY, "looking at a study", _looked(sweep), on_done=self._looked,
            on_error=self._failed, post=self.lanes.bridge.post,
        )  # fmt: skip

    def _heard(self, name: str) -> None:
        if name == "sweep" and not self._timer.isActive():
            self._timer.start(round(1000 * OFTEN))

    def _looked(self, found: tuple[Sweep, float]) -> None:
        sweep, spent = found
        now = self.session.sweep
        if now is None or now.path != sweep.path:
            return
        self.session.put(sweep=sweep, sweep_trouble="")
        often = SELDOM if sweep.complete else OFTEN
        self._timer.start(round(1000 * max(often, PART * spent)))

    def _failed(self, error: BaseException) -> None:
        """What was seen last stays, with a word about it."""
        log.record(error)
        lines = error.lines if isinstance(error, HgvizError) else (str(error),)
        sweep = self.session.sweep
        begun = sweep is not None and any(one.state != "waiting" for one in sweep.standings)
        self.session.put(sweep_trouble=" ".join(map(tr, lines[:2])) if begun else "")
        self._timer.start(round(1000 * SELDOM if begun else 1000 * OFTEN))


def _looked(before: Sweep) -> Task[tuple[Sweep, float]]:
    """The study as it stands, and how many seconds it took to see."""
    yield Step(0, 1)
    begun = time.monotonic()
    return tasks.sweep_at(before.path, before), time.monotonic() - begun
