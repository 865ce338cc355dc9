"""The strongest attention weights of queries and heads, as links between tokens or words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hgviz.core import (
    Capture,
    Floats,
    HeadId,
    HgvizError,
    Integers,
    Map,
    Prompt,
    Selection,
    progress,
    readonly,
)
from hgviz.maps.lazy import has_negative_weights

NOTHING = -1
JOINTS, POINTS = "'’", ".,"  # inside words, and inside numbers
# written without spaces: no word of theirs ends where a run of letters does
UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The tokens or words (units) along one side of a map, in order.

    edges (units + 1,): the positions between which each lies; tokens (units, 2): the tokens behind
    it, half-open, (-1, -1) for padding and the zeros of a shift; special (units,): whether it is a
    special token, or none; shown (n,): the units that are to be seen.
    """

    prompt: Prompt
    edges: Integers
    tokens: Integers
    special: NDArray[np.bool_]
    shown: Integers

    def __len__(self) -> int:
        return len(self.shown)

    def place(self, position: int) -> int | None:
        """The index among the visible units of the unit at a position; None if it is hidden."""
        unit = int(np.searchsorted(self.edges, position, side="right")) - 1
        at = int(np.searchsorted(self.shown, unit))
        return at if at < len(self.shown) and self.shown[at] == unit else None

    def rows(self, place: int) -> tuple[int, int]:
        """The positions (first, stop) of the visible unit at an index."""
        unit = self.shown[place]
        return int(self.edges[unit]), int(self.edges[unit + 1])

    def token(self, place: int) -> int | None:
        """The last token of the visible unit at an index; None for padding."""
        end = int(self.tokens[self.shown[place], 1])
        return end - 1 if end > 0 else None

    def words(self, place: int) -> str:
        """The text of the visible unit at an index, the name of a special token, "" for padding."""
        start, end = (int(one) for one in self.tokens[self.shown[place]])
        if start < 0:
            return ""
        found = self.prompt.words(start, end)
        return found.strip() or found or " ".join(self.prompt.pieces[start:end]).strip()


def link_side(capture: Capture, layer: int, axis: str, words: bool, special: bool) -> Side:
    """The units of the queries or keys (axis "query" or "key") of a layer.

    words: the tokens of a word are one unit. special: special tokens, padding and the zeros of a
    shift are visible, too.
    """
    query = axis == "query"
    prompt = capture.query_prompt(layer) if query else capture.key_prompt(layer)
    spans = capture.query_spans(layer) if query else capture.key_spans(layer)
    none = _none(prompt, spans)
    firsts = np.arange(len(spans))
    if words and len(spans):
        number = _numbers(prompt, spans, none)
        firsts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    edges = np.append(firsts, len(spans))
    lasts = edges[1:] - 1
    tokens = np.stack([spans[firsts, 0], spans[lasts, 1]], axis=1).reshape(-1, 2)
    hidden = none[firsts] if len(firsts) else np.zeros(0, bool)
    shown = np.arange(len(firsts)) if special else np.flatnonzero(~hidden)
    return Side(prompt, readonly(edges), readonly(tokens), readonly(hidden), readonly(shown))


def _none(prompt: Prompt, spans: Integers) -> NDArray[np.bool_]:
    """(positions,): whether nothing of the text is behind a position; slots and states are all of
    theirs.
    """
    empty = spans[:, 1] <= 0
    if prompt.unit in ("slot", "state") or not (prompt.spans[:, 0] >= 0).any():
        return empty
    written = np.append(0, np.cumsum(prompt.spans[:, 0] >= 0))
    start, end = np.clip(spans, 0, len(prompt)).T
    found: NDArray[np.bool_] = empty | (written[end] == written[start])
    return found


def _numbers(prompt: Prompt, spans: Integers, none: NDArray[np.bool_]) -> Integers:
    """(positions,): the number of the word that the newest token of each ends in; of special
    tokens, and of what has no characters, numbers of their own.
    """
    word = words_of(prompt.text)
    found = -2 - np.arange(len(spans))
    there = np.flatnonzero(~none)
    ends = prompt.spans[spans[there, 1] - 1]
    real = ends[:, 1] > ends[:, 0]
    last = ends[real, 1] - 1
    found[there[real]] = word[last]
    return found


def words_of(text: str) -> Integers:
    """(characters,) The word number of each character; spaces belong to the word after them.

    A word is a run of letters and digits with what stands inside of it (don't, 3.14); all other
    characters are words by themselves, and so are those of scripts written without spaces.
    """
    out = np.empty(len(text), np.int64)
    number, inside = 0, False
    for at, character in enumerate(text):
        kind = _kind(character)
        if kind == "joint":
            near = text[at - 1 : at] + text[at + 1 : at + 2]
            whole = str.isdigit if character in POINTS else str.isalpha
            kind = "letter" if inside and len(near) == 2 and whole(near) else "sign"
        number += not (inside and kind == "letter")
        inside = kind == "letter"
        out[at] = number
    spaces = np.array([one.isspace() for one in text], bool)
    for at in np.flatnonzero(spaces)[::-1]:
        if at + 1 < len(text):
            out[at] = out[at + 1]
    return out


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    """letter, joint or sign."""
    if character in JOINTS or character in POINTS:
        return "joint"
    code = ord(character)
    if any(first <= code <= last for first, last in UNSPACED):
        return "sign"
    whole = character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    return "letter" if whole else "sign"


# --- links ----------------------------------------------------------------------------------------

Fuse = Literal["each", "mean", "sum", "max"]
FUSES: tuple[Fuse, ...] = get_args(Fuse)
CELLS = 1 << 22  # of one head that are held at once, but for at least a row

AGAIN = "Capture the text again"


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Which links are looked for.

    heads: empty for the selected one; fuse: each of them for itself, or their mean, sum, or for
    every cell the weight of largest magnitude. queries: tokens; empty for the selected one.
    Of each query and head: the most strongest, 0 for all; as few as make up a share mass of what it
    weighs, 0 for all; those of at least least. words: pieces of one word are one, as query their
    mean, as key their sum; special: special tokens are there. values: weights are multiplied by
    what a key has to give, |v_j W_O| (Kobayashi et al. 2020). across: the text runs across.
    """

    heads: tuple[HeadId, ...] = ()
    queries: tuple[int, ...] = ()
    fuse: Fuse = "each"
    most: int = 10
    mass: float = 0.0
    least: float = 0.0
    words: bool = False
    special: bool = True
    values: bool = False
    across: bool = False

    @property
    def captions(self) -> tuple[str, ...]:
        """Captions that describe the limits and how heads are combined."""
        limits = []
        if self.most:
            limits.append(f"the {self.most} strongest" if self.most > 1 else "the strongest")
        if self.mass:
            limits.append(f"the fewest with {100 * self.mass:g} % of the weight")
        if self.least:
            limits.append(f"weights of at least {self.least:g}")
        drawn = ", ".join(limits) or "all"
        parts = [f"links: {drawn} per query" + (" and head" if self.fuse == "each" else "")]
        if self.fuse != "each":
            parts.append(f"the {self.fuse} over heads" if self.fuse != "max" else
                         "the largest magnitude over heads")  # fmt: skip
        if self.words:
            parts.append("words: rows averaged, columns added")
        if self.values:
            parts.append("weight × |v·W_O|, the norm of the value")
        return tuple(parts)


@dataclass(frozen=True, slots=True, eq=False)
class QueryLinks:
    """The links of one query and head: keys (n,) places among those shown, weights (n,), the
    largest magnitude first. total: what the row weighs in all, by magnitude; hidden: as much of it
    as lies on keys that are not shown.
    """

    keys: NDArray[np.int64]
    weights: Floats
    total: float
    hidden: float

    @property
    def part(self) -> float:
        """The share of the row's weight that its links have, 0 to 1."""
        return float(np.abs(self.weights).sum(dtype=np.float64)) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The links between the sides of a layer. strands: by the place of a query, one for each of
    heads, or one where they are fused. joint (strands, keys shown): the mean rows of all of these
    queries. signed: whether weights can be negative.
    """

    queries: Side
    keys: Side
    heads: tuple[HeadId, ...]
    fuse: Fuse
    strands: dict[int, tuple[QueryLinks, ...]]
    joint: Floats
    signed: bool
    values: bool

    @property
    def single(self) -> bool:
        """Whether a query has one set of links, of one head or of heads combined."""
        return self.fuse != "each" or len(self.heads) == 1

    @property
    def peak(self) -> float:
        """The largest magnitude of a link."""
        found = (strand.weights[:1] for many in self.strands.values() for strand in many)
        return max((float(abs(one[0])) for one in found if len(one)), default=0.0)


def find_links(
    capture: Capture,
    chosen: Selection,
    linking: LinkOptions,
    places: Sequence[int] | None = None,
    sides: tuple[Side, Side] | None = None,
) -> Links:
    """The links of some queries: places among those shown of the side of queries, None for the
    queries of linking, or the selected one. sides: those of the selected layer, where they are at
    hand. Rows are read a few at a time, so that no whole map is held.

    Errors: HgvizError for heads, tokens and limits that are not there, for heads that look between
    other positions, and for values where a capture has no norms of them.
    """
    _require_limits(linking)
    heads = heads_of(capture, chosen, linking)
    queries, keys = sides or link_sides(capture, chosen.layer, linking)
    wanted = places_of(capture, chosen, linking, queries) if places is None else tuple(places)
    strands: dict[int, tuple[QueryLinks, ...]] = {}
    rows = 1 if linking.fuse != "each" else len(heads)
    sums = np.zeros((rows, len(keys)))
    runs = list(_runs(queries, wanted, keys.edges[-1] if len(keys.edges) else 0))
    done, total = 0, max(1, len(runs) * len(heads))
    for run in runs:
        parts: list[tuple[Floats, Floats]] = []
        for head in heads:
            progress(done, total, f"reading head {head}")
            _add(parts, _units(capture, head, linking, queries, keys, run), linking.fuse)
            done += 1
        if linking.fuse == "mean":
            parts = [
                (one / np.float32(len(heads)), beside / np.float32(len(heads)))
                for one, beside in parts
            ]
        for at, place in enumerate(run):
            strands[place] = tuple(
                _strand(shown[at], float(beside[at]), linking) for shown, beside in parts
            )
        for strand, (shown, _) in enumerate(parts):
            sums[strand] += shown.sum(axis=0, dtype=np.float64)
    joint = (sums / max(1, len(wanted))).astype(np.float32)
    signed = any(has_negative_weights(_map(capture, one), one.head) for one in heads)
    return Links(
        queries, keys, heads, linking.fuse, strands, readonly(joint), signed, linking.values
    )


def link_sides(capture: Capture, layer: int, linking: LinkOptions) -> tuple[Side, Side]:
    """The units of the queries and of the keys of a layer."""
    queries = link_side(capture, layer, "query", linking.words, linking.special)
    return queries, link_side(capture, layer, "key", linking.words, linking.special)


def comparable_layers(capture: Capture, layer: int) -> tuple[int, ...]:
    """The captured layers whose maps have the same queries and keys as a layer, itself included."""

    def between(index: int) -> tuple[Any, ...] | None:
        one, found = capture.spec.layers[index], capture.maps[index]
        if found is None or not one.heads:
            return None
        kind = one.role if one.role in ("down", "up") else ""
        return kind, one.level, one.key_level, found.shape[1:]

    mine = between(layer)
    if mine is None:
        return ()
    return tuple(at for at in range(len(capture.maps)) if between(at) == mine)


def heads_of(capture: Capture, chosen: Selection, linking: LinkOptions) -> tuple[HeadId, ...]:
    """The heads whose links are drawn; without those that are off where heads are combined.

    Raises HgvizError for heads that do not exist, or attend between other levels or texts.
    """
    heads = linking.heads or (chosen.head_id,)
    _map(capture, chosen.head_id)
    there = comparable_layers(capture, chosen.layer)
    for one in heads:
        _map(capture, one)
        if one.layer not in there:
            raise HgvizError(
                f"heads {one} and {chosen.head_id} cannot be drawn together: "
                "they attend between different levels or texts",
                f"Choose heads of layers {', '.join(map(str, there))}",
            )
    if linking.fuse == "each":
        return heads
    return tuple(one for one in heads if one not in capture.off) or heads


def places_of(
    capture: Capture, chosen: Selection, linking: LinkOptions, queries: Side
) -> tuple[int, ...]:
    """The indices of the queries among the visible units, in order.

    Errors: HgvizError for tokens that are not there.
    """
    last = len(queries.prompt) - 1
    tokens = linking.queries or ((queries.prompt.last if chosen.query is None else chosen.query),)
    found: set[int] = set()
    for token in tokens:
        if not 0 <= token <= last:
            raise HgvizError(
                f"there is no {queries.prompt.unit} {token}: "
                f"the text has {queries.prompt.unit}s 0 to {last:,}",
                "Choose one of these",
            )
        place = queries.place(capture.row(chosen.layer, token))
        if place is not None:
            found.add(place)
    return tuple(sorted(found))


# --- inside ---------------------------------------------------------------------------------------


def _require_limits(linking: LinkOptions) -> None:
    good = {
        "the number of links must be 0 or more": linking.most >= 0,
        "the share of the weight must be between 0 and 1": 0 <= linking.mass <= 1,
        "the minimum weight must be 0 or more": linking.least >= 0,
        f"heads are combined by one of {', '.join(FUSES)}": linking.fuse in FUSES,
    }
    for rule, fine in good.items():
        if not fine:
            raise HgvizError(rule, "Choose another value")


def _map(capture: Capture, head: HeadId) -> Map:
    found = capture.maps[head.layer] if 0 <= head.layer < len(capture.maps) else None
    if found is None or head.head not in found.heads:
        if found is not None:
            heads = ", ".join(map(str, found.heads)) or "none"
            what = f"there is no head {head}: layer {head.layer} has heads {heads}"
        elif 0 <= head.layer < len(capture.maps):
            what = f"head {head} is not captured: the capture has not reached its layer"
        else:
            what = f"there is no head {head}: the layers are 0 to {len(capture.maps) - 1}"
        raise HgvizError(what, "Choose another")
    return found


def _runs(queries: Side, places: Sequence[int], keys: int) -> Iterator[tuple[int, ...]]:
    """Places side by side, whose rows are read at once; few enough to be held."""
    run: list[int] = []
    for place in places:
        if run:
            begun, (_, last), (first, stop) = queries.rows(run[0])[0], *map(
                queries.rows, (run[-1], place)
            )  # fmt: skip
            if first != last or (stop - begun) * keys > CELLS:
                yield tuple(run)
                run = []
        run.append(place)
    if run:
        yield tuple(run)


def _units(
    capture: Capture,
    head: HeadId,
    linking: LinkOptions,
    queries: Side,
    keys: Side,
    run: tuple[int, ...],
) -> tuple[Floats, Floats]:
    """(queries, keys shown) of a head between units, and (queries,) the magnitude on others. A
    head that is switched off weighs nothing.
    """
    one = _map(capture, head)
    edges = [queries.rows(place) for place in run]
    first, stop = edges[0][0], edges[-1][1]
    weights: Floats = one.read(head.head, rows=(first, stop))
    seen = np.isfinite(weights) & (head not in capture.off)  # NaN is no weight
    weights = np.where(seen, weights, np.float32(0))
    if linking.values:
        weights *= value_norms_of(one, head)
    starts = np.array([a - first for a, _ in edges])
    counts = np.array([b - a for a, b in edges])
    if (counts > 1).any():
        sums: Floats = np.add.reduceat(weights, starts, axis=0)
        weights = (sums / counts[:, None]).astype(np.float32)
    if len(keys.edges) - 1 < weights.shape[1]:
        weights = np.add.reduceat(weights, keys.edges[:-1], axis=1)
    if len(keys.shown) == weights.shape[1]:
        return weights, np.zeros(len(weights), np.float32)
    shown = weights[:, keys.shown]
    beside = np.abs(weights).sum(axis=1) - np.abs(shown).sum(axis=1)
    return shown, np.maximum(beside, 0)


def value_norms_of(one: Map, head: HeadId) -> Floats:
    """The norms (keys,) of the values of a head after W_O. Raises HgvizError where a capture lacks
    them."""
    kept = getattr(one, "value_norms", None)
    if kept is None:
        raise HgvizError(
            "this capture has no norms of values: "
            "it was made by an earlier version or by another program",
            AGAIN,
        )
    norms: Floats = np.asarray(kept[one.heads.index(head.head)], np.float32)
    if not (np.isfinite(norms).all() and (norms >= 0).all()):
        raise HgvizError(
            f"the value norms of head {head} are invalid: some are negative or not finite",
            AGAIN,
        )
    return norms


def _add(parts: list[tuple[Floats, Floats]], found: tuple[Floats, Floats], fuse: Fuse) -> None:
    """Put what a head weighs beside that of those before, or together with it."""
    if fuse == "each" or not parts:
        parts.append(found)
        return
    (shown, beside), (other, more) = parts[0], found
    if fuse == "max":
        larger: Floats = np.where(np.abs(other) > np.abs(shown), other, shown)
        parts[0] = larger, np.maximum(beside, more)
    else:
        parts[0] = shown + other, beside + more


def _strand(row: Floats, hidden: float, linking: LinkOptions) -> QueryLinks:
    size = np.abs(row)
    total = float(size.sum(dtype=np.float64)) + hidden
    there = size >= max(linking.least, float(np.finfo(np.float32).tiny))
    if linking.most and linking.most < len(row):
        there &= size >= np.partition(size, len(row) - linking.most)[len(row) - linking.most]
    keys = np.flatnonzero(there)
    keys = keys[np.argsort(-size[keys], kind="stable")]
    if linking.most:
        keys = keys[: linking.most]
    if linking.mass and len(keys):
        before = np.cumsum(size[keys], dtype=np.float64) - size[keys]
        keys = keys[before < linking.mass * total]
    return QueryLinks(keys, readonly(row[keys]), total, hidden)


__all__ = [
    "FUSES", "Fuse", "LinkOptions", "Links", "QueryLinks", "comparable_layers",
    "find_links", "heads_of", "link_sides", "places_of", "value_norms_of",
]  # fmt: skip
