"""A row of A beside that of B, in words: the sentence below the texts, and the status bar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.analysis.meeting import Edge
from hgviz.analysis.surprise import bits_per_byte
from hgviz.core import Capture, Floats
from hgviz.gui import sentences
from hgviz.gui.compare_parts.rowpair import Half, Names, RowPair
from hgviz.gui.compare_parts.told import Told
from hgviz.gui.language import tr
from hgviz.gui.views import verdict, words
from hgviz.gui.views.words import counted, weight, with_sign

MUCH = 0.3  # of a row's weight on one key, which then is what the row does
TWO_TEXTS = "two texts"
SIGNS = {
    ".": "the full stop", ",": "the comma", " ": "the space", "\n": "the line end",
    ";": "the semicolon", ":": "the colon", "?": "the question mark", "!": "the exclamation mark",
    "-": "the hyphen", "–": "the dash", "—": "the dash", "(": "the opening bracket",
    ")": "the closing bracket", "\t": "the tab", "'": "the apostrophe", "’": "the apostrophe",
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
    asker = tr("{query}", query=sentences.quoted(_query(pair)))
    a = Facts.of(pair.a.weights)
    one, other = (said[:1].upper() + said[1:] for said in told.within)
    first = f"{_does(one, asker, a, pair.a, names, pair)}."
    if pair.b is None:
        return f"{first} {tr('B has no such head.') if alone else tr('B has no such row.')}"
    b = Facts.of(pair.b.weights)
    whose = names if names.there[b.top] else pair.names[1]
    second = _does(other, tr("the row"), b, pair.b, whose, pair)
    if a.mass and b.mass and pair.b.there[a.top] and a.top != b.top:
        value = float(pair.b.weights[a.top])
        said = tr("nothing") if value == 0 else with_sign(value) if pair.signed else weight(value)
        said = tr("next to nothing") if "<" in said else said
        there = "{said}; there it weighs {key} {value}"
        second = tr(there, said=second, key=_short(names, a.top), value=said)
    return f"{first} {second}."


def _does(side: str, who: str, facts: Facts, half: Half, names: Names, pair: RowPair) -> str:
    """A sentence without its full stop."""
    many, share = _many(facts.spread, pair), words.share(facts.share)
    parts = {"side": side, "who": who, "many": many, "share": share}
    parts["key"] = _key(names, facts.top)
    if not facts.mass:
        return tr("{side}, {who} looks at nothing", **parts)
    if not half.signed:
        if facts.share >= MUCH:
            return tr("{side}, {who} puts {share} of its weight on {key}", **parts)
        spread = "{side}, {who} spreads over about {many}, with {share} of its weight on {key}"
        return tr(spread, **parts)
    parts |= {
        "value": with_sign(float(half.weights[facts.top])),
        "below": words.share(facts.negative),
    }
    if facts.share < MUCH:
        if not facts.negative:
            return tr("{side}, {who} spreads over about {many}", **parts)
        spread = "{side}, {who} spreads over about {many}, and {below} of its mass is negative"
        return tr(spread, **parts)
    if not facts.negative:
        return tr("{side}, {who} weighs {key} most, {value}", **parts)
    most = "{side}, {who} weighs {key} most, {value}, and {below} of its mass is negative"
    return tr(most, **parts)


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
    return sentences.glyph(prompt, start, stop) if stop > start else "∅"


def _key(names: Names, cell: int) -> str:
    """the full stop after “sea”, “o” in “hourglass”, “lass”."""
    start, stop = (int(one) for one in names.spans[cell])
    prompt = names.prompt
    if not names.there[cell] or stop - start != 1:
        return sentences.quoted(names.text(cell))
    how, word = sentences.beside(prompt, names.words, start)
    if how == "in":
        return tr("{sign} in {word}", sign=_short(names, cell), word=sentences.quoted(word))
    if how == "after":
        return tr("{sign} after {word}", sign=_short(names, cell), word=sentences.quoted(word))
    return _short(names, cell)


def _short(names: Names, cell: int) -> str:
    """the full stop, “o”."""
    start, stop = (int(one) for one in names.spans[cell])
    if names.there[cell] and stop - start == 1 and names.prompt.spans[start, 0] >= 0:
        sign = SIGNS.get(names.prompt.label(start))
        if sign:
            return tr(sign)
    return sentences.quoted(names.text(cell))


def of_text(a: Capture, b: Capture, told: Told) -> str:
    """This text: 2.70 bits per byte with softmax, 2.95 with ymish; of classifiers their classes."""
    one, two = (bits_per_byte(side) for side in (a, b))
    first, second = _answer(a, one), _answer(b, two)
    if a is b or not (first or second):
        return ""
    if one is not None and two is not None:
        second = f"{two:.2f}"
    parts = {"a": first, "b": second, "with_a": told.within[0], "with_b": told.within[1]}
    if same(a, b) == TWO_TEXTS:
        if not second:
            return tr("{a} {with_a}; B kept no logits", **parts)
        if not first:
            return tr("{b} {with_b}; A kept no logits", **parts)
        return tr("{a} {with_a}, {b} {with_b}", **parts)
    if not second:
        return tr("This text: {a} {with_a}; B kept no logits", **parts)
    if not first:
        return tr("This text: {b} {with_b}; A kept no logits", **parts)
    return tr("This text: {a} {with_a}, {b} {with_b}", **parts)


def _answer(capture: Capture, bits: float | None) -> str:
    """2.70 bits per byte; positive 97 %; "" where there are no logits."""
    if bits is None:
        return verdict.of_text(capture).sentence()
    return tr("{bits} bits per byte", bits=f"{bits:.2f}")


def status(pair: RowPair, told: Told) -> str:
    """query 60 “s” · key 29 “.” · softmax 0.891 · ymish +0.058 · difference +0.833."""
    dot = "   ·   "
    if pair.row is None:
        return ""
    query = _number(pair.meeting.rows, pair.row)
    asker = sentences.quoted(_query(pair))
    parts = [tr("query {number:,} {token}", number=query, token=asker)]
    if pair.key is None:
        for name, one in ((told.a, pair.a), (told.b, pair.b)):
            if one is not None:
                total = _exact(float(one.weights.sum(dtype=float)))
                parts.append(tr("{name} row sum {value}", name=name, value=total))
        return dot.join(parts)
    cell = pair.key
    names = pair.names[0] if pair.names[0].there[cell] else pair.names[1]
    key, token = _number(pair.meeting.columns, cell), sentences.quoted(names.text(cell))
    parts.append(tr("key {number:,} {token}", number=key, token=token))
    for name, one in ((told.a, pair.a), (told.b, pair.b)):
        if one is None or not one.there[cell]:
            parts.append(tr("{name} has none", name=name))
        else:
            value = float(one.weights[cell])
            parts.append(f"{name} {with_sign(value) if one.signed else _exact(value)}")
    if pair.difference is not None and pair.meeting.columns.both[cell]:
        less = with_sign(float(pair.difference[cell]))
        parts.append(tr("difference {value}", value=less))
    return dot.join(parts)


def _number(edge: Edge, cell: int) -> int:
    """The position of a cell in A, or its token where cells are tokens."""
    if edge.by_token or not edge.a.there[cell]:
        return cell
    return int(edge.a.positions[edge.a.offsets[cell]])


def same(a: Capture, b: Capture) -> str:
    """same text; same text, other tokens; two texts: in English, for tr to translate."""
    one, other = a.main, b.main
    if one is other or (one.pieces == other.pieces and one.text == other.text):
        return "same text"
    return "same text, other tokens" if one.text and one.text == other.text else TWO_TEXTS


def _exact(value: float) -> str:
    return weight(value, 3)
