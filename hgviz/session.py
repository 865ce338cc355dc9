"""What is open, chosen and shown: one value that everything in the window listens to.

Owned by the GUI thread. No Qt, no torch, no h5py: a test needs none of them to move a selection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from psygnal import Signal

from hgviz.core import Capture, Display, HeadId, Layer, ModelSpec, Off, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hgviz.analysis.heads import HeadFacts
    from hgviz.models.model import Model

Mode = Literal["inspect", "follow"]
ROWS = 512  # of a head, at most, are looked at to find its best query
FIELDS = (
    "model", "spec", "capture", "selection", "hover", "opened", "facts", "display", "off", "mode",
    "text", "dark", "work", "checkpoint",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Work:
    """A job as people see it. state: waiting, running, done, stopped or failed."""

    key: str
    title: str
    done: float = 0.0
    total: float = 0.0
    note: str = ""
    left: float | None = None
    keeps: str = ""
    state: Literal["waiting", "running", "done", "stopped", "failed"] = "waiting"


class Session:
    """What is open (model, spec, capture, text), chosen (selection, opened, hover) and shown.

    `put` is the only way to change a field; `changed` then says its name. opened: the head last
    opened at each level, by level index. hover: what the pointer is over, for all panes at once.
    """

    changed = Signal(str)

    def __init__(self) -> None:
        self.model: Model | None = None
        self.spec: ModelSpec | None = None
        self.capture: Capture | None = None
        self.selection = Selection()
        self.hover: Selection | None = None
        self.opened: Mapping[int, HeadId] = {}
        self.facts: Mapping[HeadId, HeadFacts] = {}
        self.display = Display()
        self.off: Off = frozenset()
        self.mode: Mode = "inspect"
        self.text = ""
        self.dark = False
        self.work: tuple[Work, ...] = ()
        self.checkpoint = ""

    @property
    def stale(self) -> bool:
        """Whether the text was edited since the capture on screen."""
        return self.capture is not None and self.capture.prompt.text != self.text

    @property
    def looked_at(self) -> Selection:
        """The query and key under the pointer in any pane, else the chosen ones."""
        hover = self.hover
        return hover if hover is not None and hover.query is not None else self.selection

    def put(self, **fields: Any) -> None:
        """Set fields, bring the dependent ones in line, then say once each which ones changed."""
        unknown = set(fields) - set(FIELDS)
        if unknown:
            raise AttributeError(f"a session has no {', '.join(sorted(unknown))}")
        before = {name: getattr(self, name) for name in FIELDS}
        for name, value in fields.items():
            setattr(self, name, value)
        if "capture" in fields:
            self._take_capture(before["capture"], fields)
        if self.capture is None and self.model is not None and "spec" not in fields:
            self.spec = self.model.spec
        self.selection = self._clamped(self.selection)
        self._open()
        for name, old in before.items():
            new = getattr(self, name)
            if new is not old and (name in ("capture", "model") or new != old):
                self.changed.emit(name)

    def select(self, **fields: Any) -> None:
        """Change a part of the selection: select(query=3)."""
        self.put(selection=replace(self.selection, **fields))

    def heads(self, level: int) -> tuple[HeadId, ...]:
        """The self-attention heads of a level, in order of computation."""
        return tuple(
            HeadId(layer.index, head)
            for layer in (self.spec.layers if self.spec else ())
            if layer.role == "self" and layer.level == level
            for head in layer.heads
        )

    def _take_capture(self, old: Capture | None, fields: Mapping[str, Any]) -> None:
        new = self.capture
        if new is None:
            self.facts = {} if "facts" not in fields else self.facts
            return
        if "spec" not in fields:
            self.spec = new.spec
        if "text" not in fields:
            self.text = new.prompt.text
        if "off" not in fields:
            self.off = new.off
        if "opened" not in fields and (old is None or old.spec != new.spec):
            self.opened = {}
        if old is None or old.prompt.digest != new.prompt.digest or old.spec != new.spec:
            if "facts" not in fields:
                self.facts = {}
            if "selection" not in fields:
                self.selection = self._fresh(old, new)

    def _fresh(self, old: Capture | None, new: Capture) -> Selection:
        """A first selection for a new capture: the head at hand where it exists, a middle letter.

        The middle: there is something before it to look back at, and something after it.
        """
        query = len(new.prompt) * 3 // 5 if len(new.prompt) else None
        if old is not None and old.spec == new.spec:
            return replace(self.selection, query=query, key=None)
        layers = [one for one in reversed(new.spec.layers) if one.role == "self"]
        there = (one for one in layers if new.maps[one.index] is not None)
        layer = next(there, layers[0] if layers else None)
        if layer is None or not layer.heads:
            return Selection(query=query)
        return Selection(layer.index, layer.heads[0], query)

    def _clamped(self, chosen: Selection) -> Selection:
        if self.spec is None or not self.spec.layers:
            return chosen
        layer = self.spec.layers[_within(chosen.layer, len(self.spec.layers))]
        head = _nearest(chosen.head, layer.heads)
        query, key = chosen.query, chosen.key
        if self.capture is not None:
            tokens = len(self.capture.prompt)
            query = None if query is None or not tokens else _within(query, tokens)
            key = None if key is None or not tokens else _within(key, tokens)
        return replace(chosen, layer=layer.index, head=head, query=query, key=key)

    def _open(self) -> None:
        """Record the chosen head at its level; every level has some head open."""
        if self.spec is None or not self.spec.layers:
            return
        opened = dict(self.opened)
        for level in self.spec.levels:
            heads = self.heads(level.index)
            if heads and opened.get(level.index) not in heads:
                opened[level.index] = heads[0]
        layer = self.spec.layers[self.selection.layer]
        if layer.role == "self" and layer.heads:
            opened[layer.level] = self.selection.head_id
        self.opened = opened


def step_head(session: Session, by: int) -> Selection:
    """The head `by` places along its layer, going round."""
    layer = _layer(session)
    if layer is None or not layer.heads:
        return session.selection
    at = layer.heads.index(_nearest(session.selection.head, layer.heads))
    return replace(session.selection, head=layer.heads[(at + by) % len(layer.heads)])


def step_layer(session: Session, by: int) -> Selection:
    """The same head, `by` layers on in order of computation, layers without heads left out."""
    layers = [one for one in (session.spec.layers if session.spec else ()) if one.heads]
    here = next((n for n, one in enumerate(layers) if one.index == session.selection.layer), 0)
    if not layers:
        return session.selection
    return replace(session.selection, layer=layers[_within(here + by, len(layers))].index)


def step_level(session: Session, by: int) -> Selection:
    """The head last opened at the level `by` steps further in (1) or out (-1)."""
    layer = _layer(session)
    if layer is None or session.spec is None:
        return session.selection
    level = _within(layer.level + by, len(session.spec.levels))
    head = session.opened.get(level)
    if level == layer.level or head is None:
        return session.selection
    return replace(session.selection, layer=head.layer, head=head.head)


def step_token(session: Session, by: int, field: Literal["query", "key"]) -> Selection:
    """The query or key `by` positions of its own level along, as a token.

    At a shortened level one step goes to the next position, which is several letters on.
    """
    capture, layer, chosen = session.capture, _layer(session), session.selection
    if capture is None or layer is None or not len(capture.prompt):
        return chosen
    now = getattr(chosen, field)
    if now is None:
        now = chosen.query if chosen.query is not None else len(capture.prompt) - 1
    level = layer.level if field == "query" else layer.key_level
    spans = capture.spans[level]
    at = _within(capture.position(level, now) + by, len(spans))
    token = int(spans[at, 1]) - 1
    if token < 0 or token >= len(capture.prompt):
        return chosen
    return replace(chosen, query=token) if field == "query" else replace(chosen, key=token)


def strongest_key(capture: Capture, chosen: Selection) -> int | None:
    """The token the chosen query looks at most in the chosen head; reads one row."""
    layer = capture.maps[chosen.layer]
    if layer is None or chosen.query is None:
        return None
    row = capture.row(chosen.layer, chosen.query)
    weights = np.abs(layer.read(chosen.head, rows=(row, row + 1))[0])
    for column in np.argsort(-weights, kind="stable")[:2]:
        token = capture.column_token(chosen.layer, int(column))
        if token is not None:
            return token
    return None


def clearest(capture: Capture, heads: Sequence[HeadId]) -> Selection | None:
    """Which of these heads to show first, and at which query: where most weight goes furthest.

    Weight counts with the square root of how far it goes, as a part of the text; only rows of the
    middle half are looked at, which have something before them and something after.
    """
    best, told = None, -1.0
    for one in heads:
        found = capture.maps[one.layer]
        if found is None or not len(capture.prompt):
            continue
        _, queries, keys = found.shape
        first = queries // 4
        last = min(max(queries * 3 // 4, first + 1), first + ROWS)
        weights = np.abs(found.read(one.head, rows=(first, last)))
        away = np.arange(first, last)[:, None] / queries - np.arange(keys) / keys
        rows = (weights * np.sqrt(np.abs(away))).max(axis=1)
        query = capture.row_token(one.layer, first + int(rows.argmax()))
        if query is not None and query < len(capture.prompt) and rows.max() > told:
            best, told = Selection(one.layer, one.head, query), float(rows.max())
    return best and replace(best, key=strongest_key(capture, best))


def _layer(session: Session) -> Layer | None:
    if session.spec is None or not session.spec.layers:
        return None
    return session.spec.layers[session.selection.layer]


def _within(value: int, length: int) -> int:
    return max(0, min(value, length - 1))


def _nearest(head: int, heads: tuple[int, ...]) -> int:
    return min(heads, key=lambda one: (abs(one - head), one)) if heads else 0
