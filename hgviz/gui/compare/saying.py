"""A row of A beside that of B, in words: the sentence below the texts, and the status bar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.analysis.meeting import Edge
from hgviz.analysis.surprise import bits_per_byte
from hgviz.core import Capture, Floats
from hgviz.gui.compare.numbers import percent
from hgviz.gui.compare.rowpair import Half, Names, RowPair
from hgviz.gui.compare.told import Told
from hgviz.gui.views import naming, verdict
from hgviz.gui.views.words import counted, weight, with_sign

MUCH = 0.3  # of a row's weight on one key, which then is what the row does
SIGNS = {
    ".": "full stop", ",": "comma", " ": "space", "\n": "line end", ";": "semicolon", ":": "colon",
    "?": "question mark", "!": "exclamation mark", "-": "hyphen", "–": "dash", "—": "dash",
    "(": "opening bracket", ")": "closing bracket", "\t": "tab", "'": "apostrophe",
    "’": "apostrophe",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """What a row does: mass is the sum of |weights|, top the cell with the largest of them, share
    its part, spread e to the entropy, negative the part below 0."""

    mass: float
    top: int
    share: float
    spread: float
    negative: float

    @classmethod
    def of(cls, weights: Floats) -> Facts:
        """Of one row."""
        sizes = np.abs(weights).astype(float)
        mass, top = float(sizes.sum()), int(sizes.argmax()) if len(sizes) else 0
        if not mass > 0:
            return cls(0.0, top, 0.0, 0.0, 0.0)
        shares = sizes[sizes > 0] / mass
        spread = float(np.exp(-(shares * np.log(shares)).sum()))
        below = float(np.maximum(-weights, 0).sum(dtype=float)) / mass
        return cls(mass, top, float(sizes[top]) / mass, spread, below)


def sentence(pair: RowPair, told: Told, alone: bool = False) -> str:
    """With softmax, “s” puts 89 % of its weight on the full stop after “sea”. With ymish the row
    spreads over about 31 letters, and 75 % of its mass is negative; there it weighs the full stop
    +0.058. alone: B has no such head.
    """
    if pair.row is None or pair.a is None:
        return ""
    names = pair.names[0]
    asker = naming.quoted(_query(pair))
    a = Facts.of(pair.a.weights)
    one, other = (said[:1].upper() + said[1:] for said in told.within)
    first = f"{one}, {asker} {_does(a, pair.a, names, pair)}."
    if pair.b is None:
        return f"{first} B has no such {'head' if alone else 'row'}."
    b = Facts.of(pair.b.weights)
    whose = names if names.there[b.top] else pair.names[1]
    second = f"{other}, the row {_does(b, pair.b, whose, pair)}"
    if a.mass and b.mass and pair.b.there[a.top] and a.top != b.top:
        value = float(pair.b.weights[a.top])
        said = "nothing" if value == 0 else with_sign(value) if pair.signed else weight(value)
        said = "next to nothing" if "<" in said else said
        second += f"; there it weighs {_short(names, a.top)} {said}"
    return f"{first} {second}."


def _does(facts: Facts, half: Half, names: Names, pair: RowPair) -> str:
    if not facts.mass:
        return "looks at nothing"
    key = _key(names, facts.top)
    if half.signed:
        said = f"weighs {key} most, {with_sign(float(half.weights[facts.top]))}"
        if facts.share < MUCH:
            said = f"spreads over about {_many(facts.spread, pair)}"
        below = f", and {percent(facts.negative)} of its mass is negative"
        return said + (below if facts.negative else "")
    if facts.share >= MUCH:
        return f"puts {percent(facts.share)} of its weight on {key}"
    return (
        f"spreads over about {_many(facts.spread, pair)}, with {percent(facts.share)} of its weight"
        f" on {key}"
    )


def _many(spread: float, pair: RowPair) -> str:
    unit = pair.names[0].prompt.unit
    single = np.diff(pair.meeting.columns.spans[0], axis=1).max(initial=1) <= 1
    return counted(max(1, round(spread)), unit if single else "position")


def _query(pair: RowPair) -> str:
    """What asks: the tokens of A behind the row."""
    meeting = pair.meeting
    prompt = meeting.a.query_prompt(meeting.head.layer)
    assert pair.row is not None
    start, stop = (int(one) for one in meeting.rows.spans[0][pair.row])
    return naming.glyph(prompt, start, stop) if stop > start else "∅"


def _key(names: Names, cell: int) -> str:
    """the full stop after “sea”, “o” in “hourglass”, “lass”."""
    start, stop = (int(one) for one in names.spans[cell])
    prompt = names.prompt
    if not names.there[cell] or stop - start != 1:
        return naming.quoted(names.text(cell))
    where = naming.near(prompt, names.words, start)
    for link in ("in ", "after "):
        if where.startswith(link):
            where = f"{link}{naming.quoted(where.removeprefix(link))}"
    return f"{_short(names, cell)} {where}".rstrip() if where != "special" else _short(names, cell)


def _short(names: Names, cell: int) -> str:
    """the full stop, “o”."""
    start, stop = (int(one) for one in names.spans[cell])
    if names.there[cell] and stop - start == 1 and names.prompt.spans[start, 0] >= 0:
        sign = SIGNS.get(names.prompt.label(start))
        if sign:
            return f"the {sign}"
    return naming.quoted(names.text(cell))


def of_text(a: Capture, b: Capture, told: Told) -> str:
    """This text: 2.70 bits per byte with softmax, 2.95 with ymish; of classifiers their classes."""
    found = []
    for one in (a, b):
        bits, classes = bits_per_byte(one), verdict.of_text(one).sentence()
        unit = "" if bits is None else " bits per byte"
        found.append((classes if bits is None else f"{bits:.2f}", unit))
    (first, unit), (second, other) = found
    one, two = told.within
    if a is b or not (first or second):
        return ""
    what = "This text: " if same(a, b) != "two texts" else ""
    if not second:
        return f"{what}{first}{unit} {one}; B kept no logits"
    if not first:
        return f"{what}{second}{other} {two}; A kept no logits"
    return f"{what}{first}{unit} {one}, {second}{'' if unit == other else other} {two}"


def status(pair: RowPair, told: Told) -> str:
    """query 60 “s” · key 29 “.” · softmax 0.891 · ymish +0.058 · difference +0.833."""
    dot = "   ·   "
    if pair.row is None:
        return ""
    parts = [f"query {_number(pair.meeting.rows, pair.row):,} {naming.quoted(_query(pair))}"]
    if pair.key is None:
        for name, one in ((told.a, pair.a), (told.b, pair.b)):
            if one is not None:
                parts.append(f"{name} row sum {_exact(float(one.weights.sum(dtype=float)))}")
        return dot.join(parts)
    cell = pair.key
    names = pair.names[0] if pair.names[0].there[cell] else pair.names[1]
    parts.append(f"key {_number(pair.meeting.columns, cell):,} {naming.quoted(names.text(cell))}")
    for name, one in ((told.a, pair.a), (told.b, pair.b)):
        if one is None or not one.there[cell]:
            parts.append(f"{name} has none")
        else:
            value = float(one.weights[cell])
            parts.append(f"{name} {with_sign(value) if one.signed else _exact(value)}")
    if pair.difference is not None and pair.meeting.columns.both[cell]:
        parts.append(f"difference {with_sign(float(pair.difference[cell]))}")
    return dot.join(parts)


def _number(edge: Edge, cell: int) -> int:
    """The position of a cell in A, or its token where cells are tokens."""
    if edge.by_token or not edge.a.there[cell]:
        return cell
    return int(edge.a.positions[edge.a.offsets[cell]])


def same(a: Capture, b: Capture) -> str:
    """same text; same text, other tokens; another text."""
    one, other = a.main, b.main
    if one is other or (one.pieces == other.pieces and one.text == other.text):
        return "same text"
    return "same text, other tokens" if one.text and one.text == other.text else "two texts"


def _exact(value: float) -> str:
    return weight(value, 3)


__all__ = ["Facts", "of_text", "same", "sentence", "status"]
