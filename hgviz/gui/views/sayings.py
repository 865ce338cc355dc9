"""What is said of a cell or a row of a map: in a sentence, on the card beside the cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.core import Floats, HeadId
from hgviz.gui import theme
from hgviz.gui.views import gutter, naming, words
from hgviz.gui.views.axes import Names
from hgviz.maps import Rule

HINT = "Point at a cell to read it; click to keep its query."


@dataclass(frozen=True, slots=True)
class Reading:
    """One row of a head's whole map, and the column looked at.

    weights (keys,): the row; seen: whether the query could look there; off: it is switched off.
    """

    head: HeadId
    rows: Names
    columns: Names
    row: int
    weights: Floats
    column: int | None = None
    seen: bool = True
    signed: bool = False
    off: bool = False

    @property
    def weight(self) -> float:
        """The weight at the column; 0 without one."""
        return float(self.weights[self.column]) if self.column is not None else 0.0

    @property
    def total(self) -> float:
        """What the row adds up to."""
        return float(self.weights.sum(dtype=np.float64))

    def sentence(self) -> str:
        """HTML: "s puts 89 % of its weight on . 31 letters back. The row adds up to 1.000."."""
        query = _mark(self.rows.glyph(self.row))
        if self.off:
            return f"Head {self.head} is switched off: it adds nothing to {query}."
        if self.column is None:
            strongest = int(np.abs(self.weights).argmax())
            if self.weights[strongest] == 0:
                return f"{query} looks at nothing here."
            key = _mark(self.columns.glyph(strongest))
            amount = self._amount(float(self.weights[strongest]))
            verb = "weighs" if self.signed else "looks at"
            return f"{query} {verb} {key} most: {amount}{self._away(strongest)}. {self._sum()}"
        key = _mark(self.columns.glyph(self.column))
        if not self.seen:
            return f"{key} is not seen from {query}: {self._why()}."
        if self.weight == 0:
            said = f"{query} puts nothing on {key}"
        elif self.signed:
            does = "adds" if self.weight > 0 else "takes away"
            said = f"{query} {does} {_bold(words.weight(abs(self.weight), 3))} of {key}"
        else:
            said = f"{query} puts {_bold(share(self.weight))} of its weight on {key}"
        return f"{said}{self._away(self.column)}. {self._sum()}"

    def card(self) -> str:
        """HTML: the weight, large, and the two ends."""
        now = theme.current()
        if self.column is None:
            return ""
        note = f"color:{now.secondary.name()}"
        big = f"font-size:{theme.font(1.55).pixelSize()}px;font-weight:600"
        if not self.seen:
            value, what = "–", self._why()
        elif self.signed:
            value = words.with_sign(self.weight, 2)
            what = "is taken away" if self.weight < 0 else "is added"
            what = what if self.weight else "no weight"
        else:
            value, what = words.weight(self.weight), "of this row’s weight"
        ends = "".join(
            f'<tr><td style="{note};padding-right:8px">{name}</td>'
            f'<td align="right" style="padding-right:8px">{_mark(names.glyph(cell))}</td>'
            f"<td>{naming.marked_up(names.place(cell))}</td></tr>"
            for name, names, cell in (
                ("from", self.rows, self.row),
                ("to", self.columns, self.column),
            )
        )
        return (
            f'<span style="{big}">{_escaped(value)}</span>&nbsp;&nbsp;'
            f'<span style="{note}">{what}</span>'
            f'<table cellspacing="0" cellpadding="1" style="margin-top:4px">{ends}</table>'
        )

    def _amount(self, weight: float) -> str:
        return _bold(words.with_sign(weight) if self.signed else f"{share(weight)} of its weight")

    def _sum(self) -> str:
        if not self.signed:
            return f"The whole row adds up to {self.total:.3f}."
        positive = float(np.maximum(self.weights, 0).sum(dtype=np.float64))
        negative = float(np.minimum(self.weights, 0).sum(dtype=np.float64))
        return f"The row adds up to {_escaped(gutter.sums(negative, positive, 3))}."

    def _away(self, column: int) -> str:
        """How far a key is from the query, in words."""
        query, key = (
            int(names.spans[cell, 1]) - 1
            for names, cell in ((self.rows, self.row), (self.columns, column))
        )
        if query < 0 or key < 0 or self.rows.prompt is not self.columns.prompt:
            return ""
        if query == key:
            return (
                ", itself" if self.rows.spans[self.row, 0] == self.columns.spans[column, 0] else ""
            )
        way = "back" if key < query else "ahead"
        return f" {words.counted(abs(query - key), self.rows.prompt.unit)} {way}"

    def _why(self) -> str:
        start = int(self.columns.spans[self.column or 0, 0])
        same = self.rows.prompt is self.columns.prompt
        after = same and start >= 0 and start >= int(self.rows.spans[self.row, 1])
        return "it comes after the query" if after else "it is masked"


def hidden(rule: Rule) -> str:
    """Why some cells of a map are not seen, for the chip on it; empty where all are."""
    if rule.causal:
        return "not seen: comes after the query"
    if rule.windowed:
        return "not seen: outside its window"
    return "not seen: padding" if rule.keep is not None and not rule.keep.all() else ""


def of_block(block: tuple[int, int, int, int], values: Floats | None, signed: bool) -> str:
    """HTML: what the rows of (top, bottom, left, right) have in it; values None: too many."""
    top, bottom, left, right = block
    size = f"{bottom - top:,} × {right - left:,} cells"
    if values is None:
        return f"{size} are selected."
    mean = float(values.sum(dtype=np.float64)) / max(1, bottom - top)
    largest = float(values.flat[np.abs(values).argmax()])
    if signed:
        said = f"a row adds up to {words.with_sign(mean)} here on average, the largest is"
        return _escaped(f"{size}: {said} {words.with_sign(largest)}.")
    said = f"a row has {share(mean)} of its weight here on average, the largest is"
    return _escaped(f"{size}: {said} {words.weight(largest)}.")


def share(weight: float) -> str:
    """A part in per cent: 89 %, 0.4 %, <0.1 %."""
    percent = 100 * weight
    if weight == 0:
        return "0 %"
    if percent < 0.1:
        return "<0.1 %"
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.1f} %"


def _mark(text: str) -> str:
    """A glyph of the text: monospaced, in the colour of the selection."""
    now = theme.current()
    family = ",".join(f"'{name}'" for name in theme.MONO)
    colour = now.mark_text.name()
    return (
        f'<span style="font-family:{family};font-weight:600;color:{colour}">'
        f"{naming.marked_up(text)}</span>"
    )


def _bold(text: str) -> str:
    now = theme.current()
    said = _escaped(text).replace(" ", "&nbsp;")
    return f'<span style="font-weight:600;color:{now.text.name()}">{said}</span>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
