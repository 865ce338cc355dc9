"""How results cross from the lanes to the GUI thread, and the lanes themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Qt, Signal, Slot

from hgviz.jobs import Runner


class Bridge(QObject):
    """One long-lived object of the GUI thread: a call posted from any thread runs there."""

    _crossing = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._closed = False
        self._crossing.connect(self._arrive, Qt.ConnectionType.QueuedConnection)

    def post(self, call: Callable[[], object]) -> None:
        """Run a call in the GUI thread, soon."""
        if not self._closed:
            self._crossing.emit(call)

    def close(self) -> None:
        """Drop whatever is still on its way: the window it was meant for is going."""
        self._closed = True

    @Slot(object)
    def _arrive(self, call: Callable[[], object]) -> None:
        if not self._closed:
            call()


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes and the way back: engine runs what uses the model, files HDF5 and figures, map
    what the map on screen waits for, facts what measures all heads, for minutes where texts are
    long, while nobody waits. watch looks at folders of studies, which may be of another machine and
    slow to answer; recovery writes down what is open.
    """

    bridge: Bridge = field(default_factory=Bridge)
    engine: Runner = field(default_factory=lambda: Runner("engine"))
    files: Runner = field(default_factory=lambda: Runner("files"))
    map: Runner = field(default_factory=lambda: Runner("map"))
    facts: Runner = field(default_factory=lambda: Runner("facts"))
    watch: Runner = field(default_factory=lambda: Runner("watch"))
    recovery: Runner = field(default_factory=lambda: Runner("recovery"))

    def close(self) -> None:
        """Cancel everything but files that somebody asked for, and wait for the threads to end."""
        self.bridge.close()
        for lane in (self.engine, self.files, self.map, self.facts, self.watch, self.recovery):
            lane.shutdown()
        # else Python would delete it, in whatever thread it happens to look for garbage
        self.bridge.deleteLater()
