"""The files that were opened last: remembered, offered, and taken off the list where they went."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz import settings
from hgviz.core import Step, Task
from hgviz.gui.samples import samples
from hgviz.models.formats.cache import is_there
from hgviz.resources import resource

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.session import Session


class Opened(dict[str, str]):
    """The name of everything that was opened since the start, and of what comes with hgviz, by
    path. told: hears of every path that is opened, also again."""

    def __init__(self, told: Callable[[str], None]) -> None:
        super().__init__(samples())
        self._told = told

    def __setitem__(self, path: str, name: str) -> None:
        super().__setitem__(path, name)
        self._told(path)


class Recent:
    """Keeps session.recent and session.gone, and, through keep, the setting behind them."""

    def __init__(self, session: Session, lanes: Lanes, keep: Callable[..., Any]) -> None:
        self.session, self.lanes, self._keep = session, lanes, keep
        session.put(recent=settings.load().recent)

    def add(self, path: str) -> None:
        """A path was opened. What comes with hgviz has a place of its own in the menus."""
        if path in samples() or Path(path).is_relative_to(resource("sample")):
            return
        path = os.path.abspath(path) if os.path.lexists(path) else path
        self.session.put(gone=self.session.gone - {path})
        self._put(settings.newest(self.session.recent, path))

    def remove(self, path: str) -> None:
        """Forget one of them."""
        self._put(tuple(one for one in self.session.recent if one != path))

    def clear(self) -> None:
        """Forget all of them."""
        self._put(())

    def look(self) -> None:
        """See which of them are still there; a disk that sleeps must not hold up the window."""
        if self.session.recent:
            self.lanes.files.submit(
                "recent", "Looking for files", _gone(self.session.recent),
                on_done=self._looked, post=self.lanes.bridge.post,
            )  # fmt: skip

    def _looked(self, gone: frozenset[str]) -> None:
        self.session.put(gone=gone)

    def _put(self, recent: tuple[str, ...]) -> None:
        if recent != self.session.recent:
            self.session.put(recent=recent, gone=self.session.gone & set(recent))
            self._keep(recent=recent)


def _gone(paths: tuple[str, ...]) -> Task[frozenset[str]]:
    yield Step(0, 1)
    return frozenset(one for one in paths if not os.path.lexists(one) and not is_there(one))


def place_of(path: str) -> str:
    """The folder that a path lies in, as people write it."""
    home, folder = str(Path.home()), str(Path(path).parent)
    inside = folder == home or folder.startswith(home + os.sep)
    return "~" + folder[len(home) :] if inside else folder


__all__ = ["Opened", "Recent", "place_of"]
