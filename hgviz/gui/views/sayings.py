"""What is said of a cell or a row of a map: in a sentence, on the card beside the cell."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

import numpy as np

from hgviz.core import Floats, HeadId
from hgviz.gui import sentences, theme
from hgviz.gui.grid import Names
from hgviz.gui.language import tr
from hgviz.gui.views import gutter, words
from hgviz.maps import Rule
from hgviz.maps.rule import Near

HINT = "Point at a cell to read it; click to keep its query."
END = Template(
    '<tr><td style="$note;padding-right:8px">$name</td>'
    '<td align="right" style="padding-right:8px">$glyph</td><td>$place</td></tr>'
)
CARD = Template(
    '<span style="$big">$value</span>&nbsp;&nbsp;<span style="$note">$what</span>'
    '<table cellspacing="0" cellpadding="1" style="margin-top:4px">$ends</table>'
)
MARK = Template('<span style="font-family:$family;font-weight:600;color:$colour">$text</span>')
BOLD = Template('<span style="font-weight:600;color:$colour">$text</span>')


@dataclass(frozen=True, slots=True)
class Reading:
    """One row of a head's whole map, and the column looked at.

    weights (keys,): the row; seen: whether the query could look there; off: it is switched off;
    near: how many first and latest keys it sees, None for all.
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
    near: Near = None

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
            return tr("Head {head} is switched off: it adds nothing to {query}.",
                      head=self.head, query=query)  # fmt: skip
        if self.column is None:
            strongest = int(np.abs(self.weights).argmax())
            if self.weights[strongest] == 0:
                return tr("{query} looks at nothing here.", query=query)
            said = (
                "{query} weighs {key} most: {amount}{away}. {sum}"
                if self.signed
                else "{query} looks at {key} most: {amount}{away}. {sum}"
            )
            amount = self._amount(float(self.weights[strongest]))
            return self._said(said, query, strongest, amount)
        if not self.seen:
            key = _mark(self.columns.glyph(self.column))
            return tr("{key} is not seen from {query}: {why}.", key=key, query=query,
                      why=self._why())  # fmt: skip
        if self.weight == 0:
            return self._said("{query} puts nothing on {key}{away}. {sum}", query, self.column)
        if not self.signed:
            said = "{query} puts {amount} of its weight on {key}{away}. {sum}"
            return self._said(said, query, self.column, _bold(share(self.weight)))
        said = (
            "{query} adds {amount} of {key}{away}. {sum}"
            if self.weight > 0
            else "{query} takes away {amount} of {key}{away}. {sum}"
        )
        return self._said(said, query, self.column, _bold(words.weight(abs(self.weight), 3)))

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
            what = tr("is taken away") if self.weight < 0 else tr("is added")
            what = what if self.weight else tr("no weight")
        else:
            value, what = words.weight(self.weight), tr("of this row’s weight")
        ends = "".join(
            END.substitute(
                note=note,
                name=name,
                glyph=_mark(names.glyph(cell)),
                place=sentences.marked_up(names.place(cell)),
            )
            for name, names, cell in (
                (tr("from"), self.rows, self.row),
                (tr("to"), self.columns, self.column),
            )
        )
        return CARD.substitute(big=big, value=_escaped(value), note=note, what=what, ends=ends)

    def _said(self, said: str, query: str, column: int, amount: str = "") -> str:
        """A sentence about the query and a key, filled in."""
        key, away = _mark(self.columns.glyph(column)), self._away(column)
        return tr(said, query=query, key=key, amount=amount, away=away, sum=self._sum())

    def _amount(self, weight: float) -> str:
        if self.signed:
            return _bold(words.with_sign(weight))
        return _bold(tr("{share} of its weight", share=share(weight)))

    def _sum(self) -> str:
        if not self.signed:
            return tr("The whole row adds up to {sum:.3f}.", sum=self.total)
        positive = float(np.maximum(self.weights, 0).sum(dtype=np.float64))
        negative = float(np.minimum(self.weights, 0).sum(dtype=np.float64))
        total = _escaped(gutter.sums(negative, positive, 3))
        return tr("The row adds up to {sum}.", sum=total)

    def _away(self, column: int) -> str:
        """How far a key is from the query, in words."""
        query, key = (
            int(names.spans[cell, 1]) - 1
            for names, cell in ((self.rows, self.row), (self.columns, column))
        )
        if query < 0 or key < 0 or self.rows.prompt is not self.columns.prompt:
            return ""
        if query == key:
            same = self.rows.spans[self.row, 0] == self.columns.spans[column, 0]
            return tr(", itself") if same else ""
        far = words.counted(abs(query - key), self.rows.prompt.unit)
        return tr(" {far} back" if key < query else " {far} ahead", far=far)

    def _why(self) -> str:
        start = int(self.columns.spans[self.column or 0, 0])
        same = self.rows.prompt is self.columns.prompt
        after = same and start >= 0 and start >= int(self.rows.spans[self.row, 1])
        if after:
            return tr("it comes after the query")
        if self.near is not None and not self._padded:
            return tr("the head sees the first keys and the latest alone")
        return tr("it is masked")

    @property
    def _padded(self) -> bool:
        return int(self.columns.spans[self.column or 0, 0]) < 0


def hidden(rule: Rule) -> str:
    """Why some cells of a map are not seen, for the chip on it; empty where all are."""
    if rule.causal and rule.whole:
        return tr("not seen: comes after the query")
    if rule.nearest is not None:
        sink, recent = rule.nearest
        return tr("not seen: neither of the first {sink:,} nor the latest {recent:,}",
                  sink=sink, recent=recent)  # fmt: skip
    if not rule.whole:
        return tr("not seen: outside its window")
    padded = rule.keep is not None and not rule.keep.all()
    return tr("not seen: padding") if padded else ""


def share(weight: float) -> str:
    """A part in per cent: 89 %, 0.4 %, <0.1 %."""
    percent = 100 * weight
    if weight == 0:
        return words.percent("0")
    if percent < 0.1:
        return words.percent("<0.1")
    return words.percent(f"{percent:.0f}" if percent >= 1 else f"{percent:.1f}")


def _mark(text: str) -> str:
    """A glyph of the text: monospaced, in the colour of the selection."""
    now = theme.current()
    family = ",".join(f"'{name}'" for name in theme.MONO)
    colour = now.mark_text.name()
    return MARK.substitute(family=family, colour=colour, text=sentences.marked_up(text))


def _bold(text: str) -> str:
    now = theme.current()
    said = _escaped(text).replace(" ", "&nbsp;")
    return BOLD.substitute(colour=now.text.name(), text=said)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
