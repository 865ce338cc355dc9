"""All attention maps of a capture composed into one, from output tokens to input tokens.

Attention rollout (Abnar and Zuidema 2020, arXiv:2005.00928) takes a residual layer x + f(x) for the
matrix r I + (1 - r) A, where A is its attention map and r the residual share, and multiplies the
matrices of all layers. Shortening and upsampling are matrices as well. So a model of any form is a
list of sums, which `sums_of` writes down once: the positions of a level are a weighted sum of
operators applied to earlier positions. `Rollout` walks this list forwards, with one vector, to find
what the rows of each sum add up to, and backwards, with the rows that are asked for. The matrix of
the whole model is never formed, unless all of its rows are asked for.

Operators are matrices: A @ values forwards, rows @ A backwards. Those that pool, spread or shift
positions are sparse, the residual path is None, and maps of layers are read in blocks.

Shapes: n positions of a level, m positions of the level below it, r rows asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # loads scipy.sparse when it is first asked for
from numpy.typing import NDArray

from hgviz.analysis.alignment import unit_spans
from hgviz.core import (
    Capture,
    Floats,
    Integers,
    Layer,
    Level,
    Prompt,
    Role,
    RolloutOptions,
    Step,
    progress,
    progress_as,
    progress_within,
    readonly,
)
from hgviz.errors import require
from hgviz.maps import DenseMap, SlotMap, Tiled

Array = NDArray[Any]

FULL_LIMIT = 8192  # rows that are composed in one call
CACHED_CELLS = 1 << 25  # cells of fused maps that are kept in memory, 256 MB
CACHED_ROWS = 64  # single rows that are kept in memory
BLOCK = 256  # rows that are read or composed at a time
ENDS = 64  # values at each end of a vector that may differ from all between; see Attention
NOTE = "computing attention rollout"
SHORTENED_FORMS = ("official", "windowed", "dynamic", "patches")


# --- operators ------------------------------------------------------------------------------------


def _sparse(
    shape: tuple[int, int], outputs: Integers, inputs: Integers, sizes: Array | int = 1
) -> Any:
    """A matrix of shape (outputs, inputs) of these cells, each 1 / size: a number or (cells,)."""
    return scipy.sparse.csr_array((np.ones(len(outputs)) / sizes, (outputs, inputs)), shape)


class Attention:
    """The map of a layer with its heads fused, (queries, keys), read in blocks of rows.

    Rows of |A| are divided by their sums: that changes only rounding where a row is a distribution,
    and makes shares of signed weights. Signed options take the weights as they are. queries leaves
    out rows that stand for padding.
    """

    __array_ufunc__ = None  # so that rows @ A calls __rmatmul__

    def __init__(self, capture: Capture, layer: Layer, options: RolloutOptions) -> None:
        layer_map = capture.maps[layer.index]
        assert layer_map is not None
        self.map, self.options = layer_map, options
        active = [head for head in layer_map.heads if (layer.index, head) not in capture.off]
        named = [head for head in active if (layer.index, head) in options.heads]
        self.heads = named or active
        self.queries = len(capture.spans[layer.level])
        self.is_causal = layer.causal and layer.role == "self"
        self._blocks: list[Array] | None = None
        # every row is a distribution to rounding, and so is their mean: softmax, nothing masked
        activations = dict(zip(layer.heads, layer.activations, strict=False))
        prompts = capture.query_prompt(layer.index), capture.key_prompt(layer.index)
        masks = [prompt.attention_mask for prompt in prompts]
        self.sums_to_one = (
            options.fuse == "mean"
            and not options.signed
            and isinstance(layer_map, Tiled)
            and not isinstance(layer_map, SlotMap)
            and all(activations.get(head) == "softmax" for head in self.heads)
            and all(mask is None or bool(np.all(mask)) for mask in masks)
        )

    @property
    def block_count(self) -> int:
        """How many blocks of rows there are."""
        return -(-self.queries // BLOCK)

    def keep_in_memory(self) -> None:
        """Fuse all blocks now and keep them."""
        blocks = []
        for number in range(self.block_count):
            blocks.append(self._block(number))
            progress(0, 1, NOTE)
        self._blocks = blocks

    def __matmul__(self, values: Array) -> Array:
        """(keys,) -> (queries,)

        Where rows add up to 1 and the values are the same but for some at their ends, A is read
        only at these ends. This is what makes rows of very long texts cheap.
        """
        keys, constant = len(values), values[len(values) // 2]
        if self.sums_to_one and self._blocks is None and keys >= 2 * ENDS + 2:
            different = np.flatnonzero(values != constant)
            first = int(different[different < ENDS].max(initial=-1)) + 1
            last = int(different[different >= keys - ENDS].min(initial=keys))
            if not ((different >= first) & (different < last)).any():
                return self._apply_ends(values, float(constant), ((0, first), (last, keys)))
        out = np.zeros(self.queries)
        for number in range(self.block_count):
            block = self._block(number)
            out[number * BLOCK : number * BLOCK + len(block)] = block @ values[: block.shape[1]]
            progress(0, 1, NOTE)
        return out

    def _apply_ends(
        self, values: Array, constant: float, ends: tuple[tuple[int, int], ...]
    ) -> Array:
        """A v = c - A (c - v), which needs only the columns where v differs from c."""
        out = np.full(self.queries, constant)
        for start, stop in ends:
            for head in self.heads if start < stop else ():
                less = (constant - values[start:stop]) / len(self.heads)
                columns = self.map.read(head, (0, self.queries), (start, stop))
                out -= columns.astype(np.float64) @ less
                progress(0, 1, NOTE)
        return out

    def __rmatmul__(self, rows: Array) -> Array:
        """(r, queries) -> (r, keys); blocks in which all rows are 0 are not read."""
        out = np.zeros((len(rows), self.map.shape[2]))
        is_needed = np.any(rows, axis=0)
        for number in range(self.block_count):
            queries = slice(number * BLOCK, (number + 1) * BLOCK)
            if is_needed[queries].any():
                block = self._block(number)
                out[:, : block.shape[1]] += rows[:, queries] @ block
                progress(0, 1, NOTE)
        return out

    def _block(self, number: int) -> Array:
        """Rows of the fused map, (up to BLOCK, keys); of a causal map only the keys they see."""
        if self._blocks is not None:
            return self._blocks[number]
        start, stop = number * BLOCK, min((number + 1) * BLOCK, self.queries)
        keys = min(stop, self.map.shape[2]) if self.is_causal else self.map.shape[2]
        blocks = (self.map.read(head, (start, stop), (0, keys)) for head in self.heads)
        if self.options.signed or self.sums_to_one:
            total = np.zeros((stop - start, keys))
            for block in blocks:
                total += block
            return total / len(self.heads) if self.options.signed else _shares(total)
        fuse = {"max": np.maximum, "min": np.minimum}.get(self.options.fuse, np.add)
        shares = (_shares(block) for block in blocks)
        total = next(shares)
        for block in shares:
            total = fuse(total, block)
        return total / len(self.heads) if fuse is np.add else _shares(total)


def inverse(sums: Array) -> Array:
    """1 / sum, and 0 where a sum is not above 0, so that rows of zeros stay zero."""
    return np.divide(1.0, sums, out=np.zeros(sums.shape), where=sums > 0)


def _shares(weights: Array) -> Array:
    size = np.abs(weights, dtype=np.float64)
    return size * inverse(size.sum(axis=1))[:, None]


# --- the structure of a model ---------------------------------------------------------------------


class Term(NamedTuple):
    """share * operator @ source, a summand of a sum; None is the residual path."""

    share: float
    source: Sum
    operator: Any


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """The positions of a level, at one place of a model, as a sum of terms; without terms, tokens.

    level: 0 at full resolution. start: an earlier sum; the row sums of this one are measured as if
    those of `start` were 1. divided: rows are divided by these row sums, so that what is lost on
    the way, such as the zeros of a causal shift, is made up for.
    """

    level: int
    length: int
    terms: tuple[Term, ...] = ()
    start: Sum | None = None
    divided: bool = False


def sums_of(capture: Capture, options: RolloutOptions | None = None) -> list[Sum]:
    """The structure of the model of a capture as sums, in order of computation.

    Those without terms are the tokens of the text; of an encoder-decoder those of the source, then
    those of the target. The last one is what the model answers with. Layers whose heads are all off
    and layers that only cut a text into segments have no part.
    Raises HgvizError for a partial capture, maps that do not fit the text, slots of unknown tokens,
    levels of an unknown form, and heads in options that the capture does not have.
    """
    options = options or RolloutOptions()
    builder = _Builder(_require_composable(capture, options), options)
    if capture.target is not None:
        builder.add_two_texts()
    elif capture.spec.form == "patches":
        builder.add_patches()
    else:
        builder.add_level(0, builder.add(0, len(capture.main)))
    return builder.sums


class _Builder:
    """Writes down the sums of one capture."""

    def __init__(self, capture: Capture, options: RolloutOptions) -> None:
        self.capture, self.spec, self.spans = capture, capture.spec, capture.spans
        self.options = options
        self.sums: list[Sum] = []
        self.attention = {
            layer.index: Attention(capture, layer, options)
            for layer in self.spec.layers
            if not layer.cuts
            and any((layer.index, head) not in capture.off for head in layer.heads)
        }

    def add(
        self,
        level: int,
        length: int,
        *terms: tuple[Sum, Any],
        start: Sum | None = None,
        divided: bool = True,
    ) -> Sum:
        """Append a sum. Of two terms the first is the residual path; without a start it is neither
        measured nor divided."""
        shares = ((), (1.0,), (self.options.residual_share, self.options.attention_share))[
            len(terms)
        ]
        summands = tuple(Term(share, *term) for share, term in zip(shares, terms, strict=True))
        start = None if self.options.signed else start
        divided = divided and self.options.divides and start is not None
        self.sums.append(Sum(level, length, summands, start, divided))
        return self.sums[-1]

    def add_layer(self, layer: Layer, node: Sum, source: Sum, start: Sum | None = None) -> Sum:
        """A residual layer whose queries are `node` and whose keys are `source`."""
        terms = (node, None), (source, self.attention[layer.index])
        return self.add(node.level, node.length, *terms, start=start, divided=False)

    def add_layers(self, layers: Iterable[Layer], node: Sum) -> Sum:
        """Layers of self-attention that follow each other."""
        for layer in layers:
            node = self.add_layer(layer, node, node)
        return node

    def layers(self, role: str, level: int) -> list[Layer]:
        """Layers of a role whose queries lie on a level, in order, those with a head on."""
        return [
            layer
            for layer in self.spec.layers
            if (layer.role, layer.level) == (role, level) and layer.index in self.attention
        ]

    # --- Hourglass, and models of one level -------------------------------------------------------

    def add_level(self, level: int, entry: Sum) -> Sum:
        """A level of an Hourglass with the levels below it (Nawrot et al. 2021), for which an
        ordinary stack of layers is the innermost level.

        The official form measures row sums from where it shortens, the others from `entry`.
        """
        waist = min((layer.index for layer in self.spec.layers if layer.level > level), default=0)
        layers = self.layers("self", level)
        skip = self.add_layers((layer for layer in layers if layer.index < waist), entry)
        node = skip
        if level + 1 < len(self.spec.levels):
            is_official = self.spec.form == "official"
            start = skip if is_official else entry
            short, spread = self.add_shortening(level, skip, start)
            inner = self.add_level(level + 1, short)
            node = self.add_upsampling(skip, inner, spread, start, is_official)
        return self.add_layers((layer for layer in layers if layer.index >= waist), node)

    def add_shortening(self, level: int, skip: Sum, start: Sum) -> tuple[Sum, Any]:
        """The first sum of the level below `level`: P S x, or r P S x + (1 - r) A S x, where S
        shifts, P pools and A attends. Returns it and the operator that spreads it back."""
        count, shift = len(self.spans[level + 1]), self.spec.levels[level + 1].shift
        outer, inner = (self.spec.levels[at].stride for at in (level, level + 1))
        if outer is None or inner is None:
            pool, spread = self.segments(level + 1, skip.length)
        else:
            factor, tokens = inner // outer, np.arange(skip.length)
            spread = _sparse((skip.length, count), tokens, tokens // factor)
            tokens = tokens[: count * factor - shift]
            pool = _sparse((count, skip.length), (tokens + shift) // factor, tokens, factor)
        attending = []
        for layer in self.layers("down", level + 1)[:1]:
            attention = self.attention[layer.index]
            keys = attention.map.shape[2]
            tokens = np.arange(min(skip.length, keys - shift))
            shifting = _sparse((keys, skip.length), tokens + shift, tokens)
            attending = [(self.add(level, keys, (skip, shifting)), attention)]
        return self.add(level + 1, count, (skip, pool), *attending, start=start), spread

    def add_upsampling(
        self, skip: Sum, inner: Sum, spread: Any, start: Sum, is_official: bool
    ) -> Sum:
        """The sums that bring `inner` back to the length of `skip`: spread, added to the residual
        path and attended to; the official form adds the residual path once more at the end."""

        def add(*terms: tuple[Sum, Any], divided: bool = True) -> Sum:
            return self.add(skip.level, skip.length, *terms, start=start, divided=divided)

        up = self.layers("up", skip.level)
        node = add((inner, spread))
        if up or not is_official:
            node = add((skip, None), (node, None), divided=not is_official)
        if up and is_official and self.spec.upsampling == "none":
            node = skip
        if up:
            attended = add((inner, self.attention[up[0].index]))
            node = add((node, None), (attended, None), divided=not is_official)
        return add((skip, None), (node, None)) if is_official else node

    def segments(self, level: int, tokens: int) -> tuple[Any, Any]:
        """Pooling into segments of unequal length behind a null group, and spreading (Nawrot et al.
        2023): the mean of a segment, of tokens that are not masked, is read from its last token
        on. The null group has no tokens, so that its row is zero."""
        starts, stops = self.spans[level][1:].T
        segment, token = np.repeat(np.arange(len(stops)), stops - starts), np.arange(tokens)
        inside = token[: len(segment)]
        if (mask := self.capture.prompt.attention_mask) is not None:
            segment, inside = segment[mask[: len(segment)]], inside[mask[: len(segment)]]
        sizes = np.bincount(segment + 1, minlength=len(stops) + 1)
        pool = _sparse((len(sizes), tokens), segment + 1, inside, sizes[segment + 1])
        last_closed = np.searchsorted(stops, token + 1, side="right")
        return pool, _sparse((tokens, len(sizes)), token, last_closed)

    # --- patches, and two texts -------------------------------------------------------------------

    def add_patches(self) -> None:
        """A Byte Latent Transformer (Pagnoni et al. 2024): patches are made of the bytes inside and
        attend to each other, and bytes look back at them from every layer of the decoder.

        A patch stands in as many positions as it has parts where bytes and patches attend to each
        other; its mean goes on. Of layers that look down, the last one counts.
        """
        spec, inner = self.spec, len(self.spec.levels) - 1
        waist = max((layer.index for layer in spec.layers if layer.role == "down"), default=-1)
        tokens = self.add(0, len(self.capture.main))
        layers = self.layers("self", 0)
        node = self.add_layers((layer for layer in layers if layer.index < waist), tokens)
        starts, stops = self.spans[inner].T
        parts, sizes = spec.levels[1].parts, stops - starts
        count = len(sizes) * parts
        part, patch = np.arange(count), np.repeat(np.arange(len(sizes)), sizes)
        outputs = (patch[:, None] * parts + np.arange(parts)).ravel()
        inputs = np.repeat(np.arange(len(patch)), parts)
        pool = _sparse((count, tokens.length), outputs, inputs, np.repeat(sizes, sizes * parts))
        mean = _sparse((len(sizes), count), part // parts, part, parts)
        repeat = _sparse((count, len(sizes)), part, part // parts)
        down = [(node, self.attention[waist])] if waist in self.attention else []
        short = self.add(1, count, (node, pool), *down, start=tokens)
        deep = self.add(inner, len(sizes), (short, mean))
        deep = self.add_layers(self.layers("self", inner), deep)
        deep = self.add(1, count, (deep, repeat), start=tokens, divided=False)
        for layer in sorted(layers + self.layers("up", 0), key=lambda layer: layer.index):
            if layer.index > waist:
                source = deep if layer.role == "up" else node
                node = self.add_layer(layer, node, source, tokens)

    def add_two_texts(self) -> None:
        """A decoder over the target, with the encoder of the source where there is one."""
        source = self.add(0, len(self.capture.prompt))
        source = self.add_layers(self.layers("self", 0), source)
        target = self.add(0, len(self.capture.main))
        for layer in self.spec.layers:
            if layer.level == 1 and layer.index in self.attention:
                is_cross = layer.role == "cross"
                target = self.add_layer(layer, target, source if is_cross else target)


def _require_composable(capture: Capture, options: RolloutOptions) -> Capture:
    """The capture, with tokens for keys where these are slots. Raises HgvizError as sums_of."""
    spec = capture.spec
    for head in options.heads:
        reason = "it is switched off" if head in spec.heads else "the model does not have it"
        is_on = head in spec.heads and head not in capture.off
        require(is_on, f"rollout cannot use head {head}: {reason}", "Choose heads that are on")
    absent = ", ".join(str(at) for at, layer_map in enumerate(capture.maps) if layer_map is None)
    require(
        not absent,
        f"attention rollout needs every layer: layers {absent} are not captured yet",
        "Complete the capture first",
    )
    for layer, layer_map in zip(spec.layers, capture.maps, strict=True):
        sizes = len(capture.spans[layer.level]), len(capture.spans[layer.key_level])
        shape = layer_map.shape[1:] if layer_map is not None else sizes
        require(
            layer.role not in ("self", "cross") or shape == sizes,
            f"rollout cannot use layer {layer.index}: its maps are {shape[0]} x {shape[1]}, "
            f"not {sizes[0]} x {sizes[1]} as the text",
            "Capture the text again",
        )
    if has_slots(capture):
        return of_tokens(capture)
    require(
        len(spec.levels) == 1 or spec.two_texts or spec.form in SHORTENED_FORMS,
        f"attention rollout does not support the levels of a {spec.form or spec.family} model: "
        f"it supports those of the forms {', '.join(SHORTENED_FORMS)}",
        "Inspect its layers one by one",
    )
    return capture


# --- rollout --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class RolloutRows:
    """Rows of all maps composed, weights float32 (r, columns), and which way they took.

    level_shares (levels - 1, 2, r): how much of a row goes the long way through a shorter level and
    those below it, copied back to the positions of a group and looked up from there. With mass from
    nothing, what is lost further out on the way back counts as gone through.
    nothing (r,): what comes from no token. source (r,): what comes from the source text of a
    decoder, else None. parts: of a single row, by level, float32 (columns,) what went no further in
    than there; () for models of one level.
    """

    weights: Floats
    level_shares: Array
    nothing: Floats | None = None
    source: Floats | None = None
    parts: tuple[Floats, ...] = ()


def rollout(
    capture: Capture,
    rows: tuple[int, int] | None = None,
    options: RolloutOptions | None = None,
) -> Floats:
    """How much each input token contributes to each output token, float32 (rows, tokens).

    rows: half-open, None for all. Where a decoder looks at another text, rows are tokens of the
    target and columns those of the source, then of the target; given states of an encoder count as
    source tokens. Every row adds up to 1, less where a row of a map has no key at all; a causal
    model looks at no later token. With the option `nothing` one column more says what comes from
    no token, and rows add up to 1 with it. For few rows nothing larger than (rows, columns) is
    multiplied. Raises HgvizError as sums_of, for rows outside the text and for more than 8,192.
    """
    composed = Rollout(capture, options).rows(rows)
    if options is None or not options.nothing:
        return composed.weights
    assert composed.nothing is not None
    return readonly(np.column_stack([composed.weights, composed.nothing]), np.float32)


class Rollout:
    """All maps of a capture composed, to read any rows of; see rollout."""

    def __init__(self, capture: Capture, options: RolloutOptions | None = None) -> None:
        self.capture, self.options = capture, options or RolloutOptions()
        self.sums = sums_of(capture, self.options)
        operators = [term.operator for node in self.sums for term in node.terms]
        self._attention = [operator for operator in operators if isinstance(operator, Attention)]
        self._levels = 1 + max(node.level for node in self.sums)
        self._is_measured = False
        self._scales: dict[Sum, Array] = {}  # what rows are multiplied by
        self._masses: dict[Sum, Array] = {}  # row sums, where a level is left for the one above
        self._rows: dict[int, RolloutRows] = {}
        self._blocks: list[RolloutRows] = []
        self._whole: RolloutRows | None = None

    def rows(self, rows: tuple[int, int] | None = None) -> RolloutRows:
        """Rows of the composed map, None for all. Raises HgvizError for rows outside the text and
        for more than 8,192."""
        start, stop = _row_bounds(rows, len(self.capture.main))
        chosen = np.zeros((stop - start, len(self.capture.main)))
        chosen[np.arange(stop - start), np.arange(start, stop)] = 1
        return self._result(*self._backward(chosen))

    def row(self, row: int) -> RolloutRows:
        """A single row with its parts by level; the latest ones are cached."""
        if row not in self._rows:
            tokens = len(self.capture.main)
            _row_bounds((row, row + 1), tokens)
            chosen = np.zeros((self._levels, tokens))
            chosen[0, row] = 1
            parts, shares = self._backward(chosen, by_level=True)
            composed = self._result(
                parts.sum(axis=0, keepdims=True), shares.sum(axis=2, keepdims=True)
            )
            if len(composed.level_shares):
                levels = tuple(readonly(part, np.float32) for part in parts)
                composed = replace(composed, parts=levels)
            while len(self._rows) >= CACHED_ROWS:
                del self._rows[next(iter(self._rows))]
            self._rows[row] = composed
        return self._rows[row]

    def all_rows(self) -> RolloutRows:
        """All rows, cached; composed in blocks, so that a call after a cancelled one goes on."""
        stop = _row_bounds(None, len(self.capture.main))[1]
        if self._whole is None:
            while (start := BLOCK * len(self._blocks)) < stop:
                end = min(start + BLOCK, stop)
                progress(start, stop, NOTE)
                with progress_within(start, end, stop):
                    self._blocks.append(self.rows((start, end)))

            def join(name: str, axis: int = -1) -> Any:
                arrays = [getattr(block, name) for block in self._blocks]
                return None if arrays[0] is None else readonly(np.concatenate(arrays, axis))

            joined = join("weights", 0), join("level_shares"), join("nothing"), join("source")
            self._whole, self._blocks = RolloutRows(*joined), []
        return self._whole

    def _result(self, rows: Array, shares: Array) -> RolloutRows:
        weights, source = readonly(rows, np.float32), None
        if self.options.signed:
            return RolloutRows(weights, shares[:0])
        nothing = readonly(np.maximum(0, 1 - rows.sum(axis=1)), np.float64)
        if self.capture.target is not None:
            source = readonly(rows[:, : len(self.capture.prompt)].sum(axis=1), np.float64)
        return RolloutRows(weights, shares, nothing, source)

    # --- walking the sums -------------------------------------------------------------------------

    def _measure(self) -> None:
        """Keep the maps in memory if they are small, and find the row sums: forwards from each
        start, the innermost one first, with a vector of ones."""
        shapes = [attention.map.shape for attention in self._attention]
        if sum(queries * keys for _, queries, keys in shapes) <= CACHED_CELLS:
            for attention in self._attention:
                attention.keep_in_memory()
        places = {node: at for at, node in enumerate(self.sums)}
        last = {node.start: at for at, node in enumerate(self.sums) if node.start is not None}
        for start in sorted(last, key=lambda node: -places[node]):
            masses = {start: np.ones(start.length)}
            for node in self.sums[places[start] + 1 : last[start] + 1]:
                mass = np.zeros(node.length)
                for share, source, operator in node.terms:
                    values = masses[source]
                    mass += share * (values if operator is None else operator @ values)
                    if source.level > node.level:
                        self._masses.setdefault(source, masses[source])
                if node.divided:
                    mass = mass * self._scales.setdefault(node, inverse(mass))
                masses[node] = mass
        self._is_measured = True

    def _backward(self, rows: Array, by_level: bool = False) -> tuple[Array, Array]:
        """Rows (r, n) at the end of the model times all of its sums, (r, columns), and the shares
        of levels. by_level: rows stand for levels, and what reaches a level moves to its row."""
        counter = itertools.count(1)
        blocks = sum(attention.block_count for attention in self._attention)

        def count(step: Step) -> Step:  # finding row sums reads a few blocks more
            return replace(step, done=min(next(counter), blocks), total=blocks + 1)

        with progress_as(count):
            if not self._is_measured:
                self._measure()
            return self._walk_back(rows, by_level)

    def _walk_back(self, rows: Array, by_level: bool) -> tuple[Array, Array]:
        shares = np.zeros((self._levels - 1, 2, len(rows)))
        reached = {self.sums[-1]: rows}
        for node in reversed(self.sums):
            if not node.terms or node not in reached:
                continue
            out = reached.pop(node)
            if node in self._scales:
                out = out * self._scales[node]
            for share, source, operator in node.terms:
                part, level = share * (out if operator is None else out @ operator), source.level
                if level > node.level and not self.options.signed:
                    is_attention = isinstance(operator, Attention)
                    shares[level - 1, int(is_attention)] += part @ self._masses[source]
                if by_level and level:
                    part[level] = part[: level + 1].sum(axis=0)
                    part[:level] = 0
                if source in reached:
                    reached[source] += part
                else:
                    reached[source] = part
        tokens = [node for node in self.sums if not node.terms]
        nothing = [np.zeros((len(rows), node.length)) for node in tokens]
        return np.concatenate(list(map(reached.get, tokens, nothing)), axis=1), shares


def _row_bounds(rows: tuple[int, int] | None, tokens: int) -> tuple[int, int]:
    """The first row and the one after the last."""
    start, stop = rows or (0, tokens)
    require(
        0 <= start < stop <= tokens,
        f"rows {start}:{stop} are outside this text: it has tokens 0 to {tokens - 1:,}",
        "Give START:END with END excluded",
    )
    require(
        stop - start <= FULL_LIMIT,
        f"a rollout of {stop - start:,} by {tokens:,} tokens is too large: "
        f"the limit is {FULL_LIMIT:,} rows at a time",
        "Choose fewer rows",
    )
    return start, stop


# --- a rollout in words, and as a capture ---------------------------------------------------------


def describe_shares(capture: Capture, rows: RolloutRows, row: int | None = None) -> str:
    """How much of the rows, on average, went through each level, in a sentence.

    row: the token whose row alone they are, None for all. "" where there is one level and nothing
    is lost.
    """
    parts, levels = [], capture.spec.levels
    for level, share in zip(levels[1:], rows.level_shares, strict=False):
        both = zip(share, ("by upsampling", "by attention"), strict=True)
        ways = [f"{_percent(part)} {name}" for part, name in both if part.any()]
        more = f" ({', '.join(ways)})" if len(ways) > 1 else ""
        parts.append(f"{_percent(share.sum(axis=0))} passes through {level.label}{more}")
    if rows.source is not None:
        parts.append(f"{_percent(rows.source)} comes from the source")
    if rows.nothing is not None and rows.nothing.mean() > 1e-6:
        parts.append(f"{_percent(rows.nothing)} comes from no token, such as the causal shift")
    unit = capture.main.unit
    of = "Of an output, on average" if row is None else f"Of the output at {unit} {row:,}"
    sentence = f"{of}, {'; '.join(parts)}." if parts else ""
    if row is None or not rows.parts:
        return sentence
    distances = zip(levels, mean_distances(capture, rows.parts, row), strict=True)
    ways = [
        f"{distance:,.0f} {'through' if level.index else 'at'} {level.label}"
        for level, distance in distances
        if not np.isnan(distance)
    ]
    return f"{sentence} Mean distance in {unit}s: {', '.join(ways)}."


def mean_distances(capture: Capture, parts: Sequence[Floats], row: int) -> tuple[float, ...]:
    """How far from a row the tokens lie that each part of it comes from, on average, in tokens.

    parts as in RolloutRows; NaN for a part without weight.
    """
    distance = np.abs(np.arange(len(capture.main)) - row)
    sums = [float(part.sum(dtype=np.float64)) for part in parts]
    return tuple(
        float(distance @ part / total) if total > 0 else float("nan")
        for part, total in zip(parts, sums, strict=True)
    )


def _percent(shares: Floats) -> str:
    """Of the mean: 46 %, 0.4 %."""
    value = 100 * float(np.mean(shares))
    return "0 %" if value == 0 else "<0.1 %" if value < 0.1 else f"{value:.{int(value < 1)}f} %"


def rollout_capture(
    capture: Capture, weights: Floats, options: RolloutOptions, sentence: str = ""
) -> Capture:
    """A capture of one layer with one head whose map is a rollout, for what reads captures.

    weights (rows, columns) as of rollout. Where a decoder looks at another text, the keys are the
    tokens of the source, then of the target. sentence: more to say in the name of the layer.
    """
    main, is_pair = capture.main, capture.target is not None
    layers = [layer for layer in capture.spec.layers if capture.prompt_of(layer.level) is main]
    is_causal = not is_pair and all(layer.causal for layer in layers if layer.window is None)
    name = "; ".join(filter(None, (f"rollout: {options.label}", sentence)))
    role: Role = "cross" if is_pair else "self"
    levels = (Level(0), Level(1, sequence="target"))[: 1 + is_pair]
    read = main
    if is_pair:  # both texts as one, the second after a line end
        first = capture.prompt
        moved = np.where(main.spans >= 0, main.spans + len(first.text) + 1, -1)
        read = Prompt(
            f"{first.text}\n{main.text}",
            readonly(np.concatenate([first.ids, main.ids])),
            (*first.pieces, *main.pieces),
            readonly(np.concatenate([first.spans, moved])),
        )
    layer = Layer(0, name, role, int(is_pair), 0, (0,), ("softmax",), is_causal)
    return Capture(
        replace(capture.spec, levels=levels, layers=(layer,), form="", upsampling=""),
        read,
        tuple(readonly(unit_spans(len(text))) for text in (read, main)[: 1 + is_pair]),
        (DenseMap(weights[None], (0,), signed=options.signed, causal=is_causal),),
        made=capture.made,
        target=main if is_pair else None,
        logits=capture.logits,
        path=capture.path,
    )


# --- slots read as tokens -------------------------------------------------------------------------


def has_slots(capture: Capture) -> bool:
    """Whether layers look at slots, mixtures of all tokens (Linformer, Wang et al. 2020)."""
    return any(level.sequence == "slots" for level in capture.spec.levels)


def is_of_tokens(capture: Capture) -> bool:
    """Whether tokens stand in the place of slots; see of_tokens."""
    return any(isinstance(layer_map, SlotMap) for layer_map in capture.maps)


def of_tokens(capture: Capture) -> Capture:
    """A capture with the tokens that slots are mixed of as keys: how much of the value of each
    comes to each query, signed. Nothing is computed before it is read.

    Raises HgvizError where keys are no slots, and where the capture lacks their mixtures.
    """
    if is_of_tokens(capture):
        return capture
    require(
        has_slots(capture),
        "the keys of this model are tokens: "
        "only a projected sequence (Linformer) has slots to expand into tokens",
        "Use its maps as they are",
    )
    mixtures: list[Any] = [getattr(layer_map, "mixture", None) for layer_map in capture.maps]
    pairs = list(zip(capture.maps, mixtures, strict=True))
    require(
        all(mixture is not None for layer_map, mixture in pairs if layer_map is not None),
        "this capture does not contain the projection of tokens to slots: "
        "it was made by an earlier version",
        "Capture the text again",
    )
    maps = tuple(None if slots is None else SlotMap(slots, mixture) for slots, mixture in pairs)
    layers = tuple(replace(layer, key_level=layer.level) for layer in capture.spec.layers)
    spec = replace(capture.spec, levels=(Level(0),), layers=layers)
    return replace(capture, spec=spec, spans=capture.spans[:1], maps=maps)


def of_slots(capture: Capture) -> Capture:
    """The capture that of_tokens was given."""
    maps = tuple(m.whole if isinstance(m, SlotMap) else m for m in capture.maps)
    slots = unit_spans(max(m.shape[2] for m in maps if m is not None))
    layers = tuple(replace(layer, key_level=1) for layer in capture.spec.layers)
    spec = replace(capture.spec, levels=(Level(0), Level(1, sequence="slots")), layers=layers)
    return replace(capture, spec=spec, spans=(*capture.spans, readonly(slots)), maps=maps)
