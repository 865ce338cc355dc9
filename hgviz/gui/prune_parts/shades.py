"""What the cells say: the score of every head as a number, a colour and words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from PySide6.QtGui import QColor

from hgviz import palettes
from hgviz.analysis.importance import METHODS, Method, importance
from hgviz.core import HeadId, Integers, ModelSpec, Step, Task
from hgviz.examples import EACH
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.explained import explained
from hgviz.gui.views.words import counted
from hgviz.study import Study

EXPONENT = 0.7  # of the colour: small scores stay visible
SCALES = ((1.0, ""), (1e3, "thousandths"), (1e6, "millionths"))
# a score of bits, or of something else, as many times as SCALES say
BITS = {
    "": "bits per {noun}",
    "thousandths": "thousandths of a bit per {noun}",
    "millionths": "millionths of a bit per {noun}",
}
OTHERS = {
    "": "{unit}", "thousandths": "thousandths of {unit}", "millionths": "millionths of {unit}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shade:
    """A head's score. value: in the unit of the wall, NaN where it is not measured; zero: whether
    its interval includes 0; part: on how much of the data, "" for all of it."""

    value: float
    low: float
    high: float
    zero: bool
    part: str = ""


@dataclass(frozen=True, slots=True)
class Shades:
    """The scores of all heads under one colour scale, symmetric about 0 up to limit; label, unit
    part, on how much of the data the numbers are, and told, which explains the score."""

    label: str = ""
    unit: str = ""
    limit: float = 1.0
    heads: Mapping[HeadId, Shade] = field(default_factory=dict)
    told: str = ""
    part: str = ""

    def colour(self, head: HeadId, dark: bool) -> QColor | None:
        """The colour of a cell, None where nothing was measured."""
        one = self.heads.get(head)
        if one is None or math.isnan(one.value):
            return None
        return colour(0.0 if one.zero else one.value / self.limit, dark)

    def number(self, head: HeadId) -> str:
        """What a cell says: +4.2, ≈ 0, nothing."""
        one = self.heads.get(head)
        if one is None or math.isnan(one.value):
            return ""
        return "≈ 0" if one.zero else written(one.value)

    def words(self, head: HeadId) -> str:
        """Such as: +4.2 (3.9 to 4.5) thousandths of a bit per byte; for tooltips."""
        one = self.heads.get(head)
        if one is None or math.isnan(one.value):
            return tr("not measured")
        parts = {
            "value": written(one.value), "low": written(one.low), "high": written(one.high),
            "unit": self.unit,
        }  # fmt: skip
        said = "{value} ({low} to {high}) {unit}"
        said = "{value} ({low} to {high}) {unit}: may be nothing" if one.zero else said
        return ", ".join(filter(None, (tr(said, **parts), one.part)))


def colour(part: float, dark: bool) -> QColor:
    """The colour of a part of the limit, -1 to 1."""
    part = max(-1.0, min(1.0, part))
    bent = math.copysign(abs(part) ** EXPONENT, part)
    table = np.asarray(palettes.colours("blue-red", dark))
    red, green, blue = table[round((0.5 + 0.5 * bent) * (len(table) - 1))].tolist()
    return QColor(red, green, blue)


def ink(ground: QColor) -> QColor:
    """Black or white on a colour, whichever contrasts more."""
    return QColor(
        *(
            int(one)
            for one in palettes.readable(np.array([ground.red(), ground.green(), ground.blue()]))
        )
    )


def written(value: float) -> str:
    """Two digits that matter, a sign and a real minus: +14.0, −0.3, 0."""
    if not math.isfinite(value):
        return "?"
    if value == 0:
        return "0"
    size = abs(value)
    said = f"{size:,.0f}" if size >= 100 else f"{size:.1f}" if size >= 0.95 else f"{size:.1f}"
    if float(said.replace(",", "")) == 0:
        said = "<0.1"
    return ("−" if value < 0 else "+") + said


def offered(study: Study | None) -> tuple[Method, ...]:
    """The scores that a study has."""
    return tuple(one for one in METHODS.values() if study is not None and one.measured(study))


def shades(study: Study, method: str) -> Task[Shades]:
    """The scores of all heads by a method."""
    yield Step(0, 1)
    found = importance(study, method)
    one, needed = found.method, found.method.needed
    bits = one.unit == "nats"
    factor = needed / math.log(2) if bits else float(needed)
    values, ends = found.score * factor, np.sort([found.low * factor, found.high * factor], axis=0)
    known = np.abs(values[np.isfinite(values)])
    most = float(known.max()) if len(known) else 0.0
    scale, name = next(
        ((number, said) for number, said in SCALES if most * number >= 1), SCALES[-1]
    )
    unit = (
        tr(BITS[name], noun=tr(place_noun(study.asked, study.spec)))
        if bits
        else tr(OTHERS[name], unit=one.unit or tr(one.label).lower())
    )
    seen, total, noun = _seen(study, one)
    heads = {
        head: Shade(
            float(values[at] * scale), float(ends[0][at] * scale), float(ends[1][at] * scale),
            bool(ends[0][at] <= 0 <= ends[1][at]), _part(seen[at : at + 1], total, noun),
        )
        for at, head in enumerate(study.heads)
    }  # fmt: skip
    part = _part(seen[[head not in study.off for head in study.heads]], total, noun)
    return Shades(tr(one.label), unit, max(most * scale, 1e-12), heads, explained(method), part)


def _seen(study: Study, method: Method) -> tuple[Integers, int, str]:
    """(H,): on how many examples, or random orders, each head is measured; how many there are; and
    what they are called."""
    values = getattr(study, method.needs, None)
    if values is None:  # learned by training
        return np.zeros(len(study.heads), int), 0, ""
    noun = place_noun("classes", study.spec) if study.asked in EACH else "window"
    if len(values) == len(study.wanted):
        values = values[study.places[:-1][np.diff(study.places) > 0]]  # the first of each
    noun = "order" if method.needs == "shapley" else noun
    return (~np.isnan(values)).sum(0), len(values), noun


def _part(seen: Integers, total: int, noun: str) -> str:
    """on 96 of 872 texts, on 64 to 96 of 872 texts; "" where all heads are measured on all."""
    if not len(seen) or seen.min() == total:
        return ""
    least, most = (f"{number:,}" for number in (seen.min(), seen.max()))
    some = least if least == most else tr("{low} to {high}", low=least, high=most)
    return tr("on {some} of {all}", some=some, all=counted(total, noun))


def place_noun(asked: str, spec: ModelSpec | None) -> str:
    """What is counted: text, byte, hidden token."""
    if asked in ("classes", "states"):
        return "text" if spec is None or spec.modality == "text" else spec.modality
    token = "byte" if spec is not None and spec.vocabulary == 256 else "token"
    return f"hidden {token}" if asked == "masked" else token
