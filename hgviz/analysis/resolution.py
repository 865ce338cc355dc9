"""Between resolutions: pooling, spreading, and where each answer comes from through all levels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from hgviz.analysis.composition import Crossing, Decoder, Funnel, Level, Net, Patched
from hgviz.analysis.mixed import has_slots, of_tokens
from hgviz.analysis.operators import pool, spread
from hgviz.core import (
    Capture,
    Floats,
    HgvizError,
    Interval,
    RolloutOptions,
    Step,
    progress_as,
    readonly,
)

FULL_LIMIT = 8192  # rows


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """Some rows of all maps composed, float32 (rows, columns), and what of each took which way.

    crossings: into each shorter level and back, outside in. nothing (rows,): what came from no
    token. source (rows,): what came from the other text, None where there is none. levels: of a
    single row, for each level (columns,) the part that went no further in than there.
    """

    weights: Floats
    crossings: tuple[Crossing, ...] = ()
    nothing: Floats | None = None
    source: Floats | None = None
    levels: tuple[Floats, ...] = ()


class Rollout:
    """All maps of a capture multiplied once, to give any rows; see rollout."""

    def __init__(self, capture: Capture, recipe: RolloutOptions | None = None) -> None:
        self.recipe = recipe or RolloutOptions()
        capture = composable(capture, self.recipe)
        self.tokens = len(capture.main)
        self.before = 0 if capture.target is None else len(capture.prompt)
        self._net = net = Net(capture, self.recipe)
        self.level: Level | Decoder | Funnel | Patched
        if capture.target is not None:
            self.level = Decoder(net, self.before, self.tokens)
        elif net.funnels:
            self.level = Funnel(net, self.tokens)
        elif net.patched:
            self.level = Patched(net, self.tokens)
        else:
            self.level = Level(net, 0, self.tokens)
        self._measured = False

    def rows(self, rows: Interval = None) -> Floats:
        """float32 (rows, columns); errors and meaning as rollout."""
        found = self.composed(rows)
        if not self.recipe.nothing:
            return found.weights
        assert found.nothing is not None
        return readonly(np.column_stack([found.weights, found.nothing]), np.float32)

    def composed(self, rows: Interval = None) -> Composed:
        """Some rows, without a column for nothing, and which way they took.

        Its progress counts blocks of rows, about one pass over the maps."""
        done, blocks = itertools.count(1), self._net.blocks  # a little more for finding scales

        def counted(step: Step) -> Step:
            return replace(step, done=min(next(done), blocks), total=blocks + 1)

        with progress_as(counted):
            return self._composed(rows)

    def one(self, row: int) -> Composed:
        """A single row, and from which level of the model its parts come."""
        found = self.composed((row, row + 1))
        if not (found.crossings and isinstance(self.level, Level)):
            return found
        chosen = np.zeros((1, self.tokens))
        chosen[0, row] = 1
        apart = self.level.apart(chosen)
        return replace(found, levels=tuple(readonly(one[0], np.float32) for one in apart))

    def _composed(self, rows: Interval) -> Composed:
        start, stop = bounds(rows, self.tokens)
        chosen = np.zeros((stop - start, self.tokens))
        chosen[np.arange(stop - start), np.arange(start, stop)] = 1
        told: list[Crossing] = []
        if not self._measured:
            self._net.hold()
            self.level.measure()
            self._measured = True
        found = self.level.left(chosen, told)
        nothing = source = None
        if not self.recipe.signed:
            nothing = readonly(np.maximum(0, 1 - found.sum(axis=1)), np.float64)
            if self.before:
                source = readonly(found[:, : self.before].sum(axis=1), np.float64)
        crossings = () if self.recipe.signed else tuple(told)
        return Composed(readonly(found, np.float32), crossings, nothing, source)


def rollout(
    capture: Capture, rows: Interval = None, recipe: RolloutOptions | None = None
) -> Floats:
    """Where each output position's answer comes from: all maps multiplied, residuals included.

    float32 (rows, tokens); rows is half-open, None for all. Where a decoder looks at another
    text, rows are tokens of the target and columns those of the source, then of the target:
    self-attention, cross-attention and the encoder behind it are composed by the same rule, and an
    encoder's given states count as source tokens. Every row adds up to 1, less where a row of a
    map has no key at all; a causal model looks at no later token. Of a projected sequence the maps
    are those of the tokens that its slots are mixed of. For few rows nothing larger than (rows,
    columns) is multiplied.
    Row-normalised, a = 1/2, mean over the heads that are on; signed maps as |A| divided
    by their row sums. recipe chooses otherwise; with nothing, one column more says what comes from
    no token, and rows add up to 1 with it. Errors: HgvizError for a partial capture, slots of
    unknown tokens, levels of unknown form, rows outside the text, more than 8,192 rows at once,
    and heads that the capture does not have.
    """
    composable(capture, recipe or RolloutOptions())  # before any map is read
    bounds(rows, len(capture.main))
    return Rollout(capture, recipe).rows(rows)


def bounds(rows: Interval, tokens: int) -> tuple[int, int]:
    """The first row and the one after the last. Errors: HgvizError for rows outside the text."""
    if rows is None:
        rows = slice(0, tokens)
    elif isinstance(rows, tuple):
        rows = slice(*rows)
    elif isinstance(rows, range):
        rows = slice(rows.start, rows.stop, rows.step)
    start, stop, step = rows.indices(tokens)
    if step != 1 or start >= stop or (rows.stop or 0) > tokens:
        raise HgvizError(
            f"rows {rows.start}:{rows.stop} are not rows of this text: "
            f"it has {tokens:,} tokens, and A:B counts from 0 and leaves B out",
            "Choose rows within it",
        )
    if stop - start > FULL_LIMIT:
        raise HgvizError(
            f"a map of {stop - start:,} by {tokens:,} tokens does not fit into memory: "
            f"up to {FULL_LIMIT:,} rows at a time do",
            "Choose fewer rows",
        )
    return start, stop


def composable(capture: Capture, recipe: RolloutOptions) -> Capture:
    """A capture as its maps can be made one: of tokens, where they are over slots.

    Errors: HgvizError where they cannot.
    """
    spec = capture.spec
    there = {one for one in spec.heads if one not in capture.off}
    if unknown := [one for one in recipe.heads if one not in there]:
        raise HgvizError(
            f"head {unknown[0]} cannot be counted: "
            + ("it is switched off" if unknown[0] in spec.heads else "this model has no such head"),
            "Name heads that are on",
        )
    missing = [str(i) for i, one in enumerate(capture.maps) if one is None]
    if missing:
        raise HgvizError(
            "all levels together need every layer: "
            f"layers {', '.join(missing)} are not captured yet",
            "Capture the text to its end",
        )
    for layer, one in zip(spec.layers, capture.maps, strict=True):
        sizes = len(capture.spans[layer.level]), len(capture.spans[layer.key_level])
        if layer.role in ("self", "cross") and one is not None and one.shape[1:] != sizes:
            raise HgvizError(
                f"layer {layer.index} cannot be composed with the others: "
                f"its maps are {one.shape[1]} x {one.shape[2]}, the text {sizes[0]} x {sizes[1]}",
                "Capture the text again",
            )
    if has_slots(capture):
        return of_tokens(capture)
    forms = ("official", "windowed", "dynamic", "funnel", "patches")
    if len(spec.levels) > 1 and not spec.two_texts and spec.form not in forms:
        raise HgvizError(
            f"the levels of a {spec.form or spec.family} model cannot be composed: "
            f"only forms that come back to all tokens can: {', '.join(forms)}",
            "Look at its layers one by one",
        )
    return capture


__all__ = [
    "FULL_LIMIT", "Composed", "Crossing", "Rollout", "bounds", "composable", "pool",
    "rollout", "spread",
]  # fmt: skip
