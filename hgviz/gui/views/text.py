"""The text at every resolution, coloured by what the chosen letter looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from hgviz import palettes
from hgviz.core import Capture, Display, Floats, HeadId, Level, Off, Selection, Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui.controls import Button, PaneHead, Words, label
from hgviz.gui.views import words
from hgviz.gui.views.base import View
from hgviz.gui.views.cells import Line
from hgviz.gui.views.strip import LEFT, Strip, Tokens
from hgviz.gui.views.tiles import rule_of, seen
from hgviz.session import Session

NOTE = "the selected {unit}, and what it looks at, at every resolution"
MOST_ROWS = 1024  # queries that a mean is taken over
KEYS = (("← / →", "letter"), ("J / K", "layer"), ("H / L", "head"))


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What a request brings."""

    capture: Capture
    lines: tuple[Line, ...]
    display: Display
    queries: Tokens | None


class TextStrip(View):
    """One row per level. Click: the query; Alt+click: the key; drag: the mean of several."""

    title: ClassVar[str] = "Text"
    icon: ClassVar[str] = "text"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "selection", "hover", "opened", "display", "off", "text",
    )  # fmt: skip
    empty: tuple[str, str] = (
        "No text yet",
        "Write one, and see what every letter looks at.",
    )
    empty_actions: tuple[tuple[str, str], ...] = (("edit_text", "Edit text…"),)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._queries: Tokens | None = None
        self._shown: Shown | None = None
        self.head = PaneHead("Text", NOTE.format(unit="letter"))
        self.edit = Button("Edit text…", "edit")
        self.edit.clicked.connect(self._edit)
        self.capture_button = Button("Capture", "capture")
        self.capture_button.clicked.connect(self._capture)
        self.head.add(self.edit, self.capture_button)
        self.strip = Strip()
        self.strip.pointed.connect(self._point)
        self.strip.queried.connect(self._query)
        self.strip.keyed.connect(self._key)
        self.strip.opened.connect(self._open)
        self.legend = Words(factor=0.92, kind="secondary")
        self._foot = QWidget()
        self._foot.setFixedHeight(36)
        row = QHBoxLayout(self._foot)
        row.setContentsMargins(LEFT, 0, 16, 8)
        row.setSpacing(8)
        row.addWidget(self.legend, 1)
        self._units = []
        for number, (keys, what) in enumerate(KEYS):
            row.addSpacing(8 if number else 0)
            row.addWidget(label(keys, factor=0.85, weight=500, kind="key"))
            said = label(what, factor=0.92, kind="secondary")
            row.addWidget(said)
            self._units.append(said)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.strip, 1)
        column.addWidget(self._foot)
        self.setFocusProxy(self.strip)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Shown] | None:
        """Read what the chosen letters give in the head open at each level."""
        capture = session.capture
        if capture is None or not len(capture.prompt):
            return None
        chosen = session.looked_at
        heads = [
            (level, head)
            for level in capture.spec.levels
            if level.sequence == "source"
            and (head := session.opened.get(level.index)) is not None
            and capture.maps[head.layer] is not None
        ]
        queries = self._several(chosen)
        off = session.off | capture.off
        return _read(capture, heads, queries, chosen.key, session.display, off)

    def draw(self, result: Shown) -> None:
        """Show the rows."""
        assert self.session is not None
        self._shown = result
        unit = words.unit(result.capture.prompt)
        self.head.note.say(NOTE.format(unit=unit))
        self._units[0].setText(unit)
        self.strip.show_lines(
            result.capture.prompt, result.lines, result.display, self.session.selection.head_id
        )
        self.strip.show_queries(result.queries, follow=self.session.hover is None)
        self.legend.say(self._legend(result))

    def noticed(self, name: str) -> None:
        """Forget a mean when one query is chosen elsewhere."""
        if name == "selection" and self.session is not None and self._queries is not None:
            if self.session.selection.query != self._queries[1]:
                self._queries = None
        elif name == "capture":
            self._queries = None

    def figure(self, session: Session) -> Spec | None:
        """The letter through all levels on paper."""
        if session.capture is None:
            return None
        return Spec(
            kind="levels",
            selection=session.selection,
            display=session.display,
            heads=tuple(session.opened.values()),
        )

    def respond(self) -> None:
        """A low strip has no room for the legend."""
        self._foot.setVisible(not self.spine)

    # --- inside -----------------------------------------------------------------------------------

    def _several(self, chosen: Selection) -> Tokens | None:
        if chosen.query is None:
            return None
        if self._queries is not None and self._queries[1] == chosen.query:
            return self._queries
        return chosen.query, chosen.query

    def _legend(self, result: Shown) -> str:
        assert self.session is not None
        unit = words.unit(result.capture.prompt)
        if self.session.stale:
            return "Text before: it was edited since. Capture it to see the new one."
        if result.queries is None:
            return f"Click a {unit} to see what it looks at."
        parts = []
        first, last = result.queries
        if first != last:
            parts.append(f"The mean of {words.counted(last - first + 1, unit)}.")
        signed = any(line.signed for line in result.lines)
        parts.append("Red: added, blue: taken away." if signed else "Brighter: looked at more.")
        if len(result.lines) > 1:
            parts.append(
                "Each resolution shows the head last opened there (dashed in the hourglass)."
            )
        return "    ".join(parts)

    def _edit(self) -> None:
        self.asked.emit("edit_text")

    def _capture(self) -> None:
        self.asked.emit("capture")

    def _point(self, token: int | None) -> None:
        if self.session is None:
            return
        chosen = self.session.selection
        hover = None if token is None or chosen.query is None else replace(chosen, key=token)
        self.session.put(hover=hover)

    def _query(self, tokens: Tokens) -> None:
        if self.session is None:
            return
        self._queries = tokens if tokens[0] != tokens[1] else None
        changed = self.session.selection.query != tokens[1]
        self.session.put(hover=None, selection=replace(self.session.selection, query=tokens[1]))
        if not changed:
            self.refresh()

    def _key(self, token: int) -> None:
        if self.session is not None:
            self.session.put(selection=replace(self.session.selection, key=token))

    def _open(self, head: HeadId) -> None:
        if self.session is not None:
            chosen = replace(self.session.selection, layer=head.layer, head=head.head)
            self.session.put(selection=chosen)


def _read(
    capture: Capture,
    heads: list[tuple[Level, HeadId]],
    queries: Tokens | None,
    key: int | None,
    display: Display,
    off: Off,
) -> Task[Shown]:
    lines = []
    for number, (level, head) in enumerate(heads):
        yield Step(number, len(heads), "Reading the text's weights")
        lines.append(_line(capture, level, head, queries, key, head in off))
    weights = [line.weights for line in lines if line.weights is not None]
    most = max((_reach(one) for one in weights), default=0.0)
    lines = [replace(line, limits=_limits(line, display, most)) for line in lines]
    return Shown(capture, tuple(lines), display, queries)


def _line(
    capture: Capture,
    level: Level,
    head: HeadId,
    queries: Tokens | None,
    key: int | None,
    off: bool,
) -> Line:
    layer = capture.maps[head.layer]
    assert layer is not None
    real = capture.key_spans(head.layer)
    count = int(np.count_nonzero(real[:, 1] > 0))  # padding stands at the end
    line = Line(level.label, head, real[:count], signed=layer.signed, off=off)
    if queries is None:
        return line
    first, last = (min(capture.row(head.layer, one), layer.shape[1] - 1) for one in queries)
    first = max(first, last + 1 - MOST_ROWS)
    weights = layer.read(head.head, rows=(first, last + 1)).mean(axis=0)[:count]
    cells = np.arange(count)
    inside = seen(
        rule_of(capture, head.layer),
        np.array([[first, last + 1]]),
        np.stack([cells, cells + 1], axis=1),
    )[0]
    column = None if key is None else capture.column(head.layer, key)
    return replace(
        line,
        weights=weights,
        seen=inside,
        chosen=last if last < count else None,
        key=column if column is not None and column < count else None,
    )


def _limits(line: Line, display: Display, most: float) -> tuple[float, float]:
    if display.limits is not None:
        return palettes.limits_of(*display.limits, line.signed)
    reach = most if display.shared or line.weights is None else _reach(line.weights)
    return palettes.limits_of(-reach, reach, line.signed)


def _reach(weights: Floats) -> float:
    return float(np.abs(weights).max(initial=0.0))
