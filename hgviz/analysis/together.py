"""All maps composed, as a capture of one head: what reads, draws and compares maps can read it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hgviz.analysis.resolution import Composed, Crossing, Rollout, bounds
from hgviz.core import (
    Capture,
    Floats,
    Integers,
    Layer,
    Level,
    Prompt,
    RolloutOptions,
    progress,
    progress_within,
    readonly,
)
from hgviz.maps import DenseMap

KEPT = 64  # single rows that are kept
ROWS = 256  # composed at a time, so that it can be stopped in between
NAME = "all maps"


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """All maps of a capture composed to one, and which way what its rows are made of took.

    capture: of a single layer with a single head, whose map this is. Where a decoder reads another
    text, the keys are the source's tokens, then the target's. of: the capture that was composed.
    """

    capture: Capture
    recipe: RolloutOptions
    way: Composed
    of: Capture

    def told(self, row: int | None = None, way: Composed | None = None) -> Capture:
        """The same as a capture that says of itself which way a row took, None for all of them.

        way: what is known of that row, where more is than of all of them.
        """
        (layer,) = self.capture.spec.layers
        if row is not None and way is None:
            way = _cut(self.way, row)
        if said := ways(self.of, way or self.way, row):
            layer = replace(layer, name=f"{layer.name}; {said}")
        spec = replace(self.capture.spec, layers=(layer,))
        return replace(self.capture, spec=spec, path=self.of.path)


def ways(capture: Capture, way: Composed, row: int | None = None) -> str:
    """In a sentence how much of all rows on average, or of the one there is, took the long way.

    row: which of the text that is; "" where there is but one level and nothing is lost.
    """
    of = "Of an answer, on average"
    if row is not None:
        of = f"Of the answer at {capture.main.unit} {row:,}"
    said = []
    for number, one in enumerate(way.crossings):
        label = capture.spec.levels[number + 1].label
        both = (one.copied, "copied back"), (one.looked_up, "looked up")
        parts = [f"{_percent(part)} {name}" for part, name in both if part.any()]
        more = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        said.append(f"{_percent(one.through)} took the way through {label}{more}")
    if way.source is not None:
        said.append(f"{_percent(way.source)} comes from the source")
    if way.nothing is not None and way.nothing.mean() > 1e-6:
        said.append(f"{_percent(way.nothing)} from nothing, such as zeros of the causal shift")
    told = f"{of}, {'; '.join(said)}." if said else ""
    if row is None or not way.levels:
        return told
    names, unit = [one.label for one in capture.spec.levels], capture.main.unit
    parts = [
        f"what {'went to' if number else 'stayed at'} {names[number]} from {far:,.0f}"
        for number, far in enumerate(reach(capture, way.levels, row))
        if not np.isnan(far)
    ]
    return f"{told} On average, in {unit}s back, {', '.join(parts)}."


def reach(capture: Capture, levels: tuple[Floats, ...], row: int) -> tuple[float, ...]:
    """How far from a row the tokens lie that each part of it comes from, on average, in tokens.

    levels as in Composed; NaN for a part of no weight.
    """
    far = np.abs(np.arange(len(capture.main)) - row)
    sums = [float(one.sum(dtype=np.float64)) for one in levels]
    return tuple(
        float(far @ one / total) if total > 0 else float("nan")
        for one, total in zip(levels, sums, strict=True)
    )


def _percent(part: Floats) -> str:
    """Of the mean: 46 %, 0.4 %."""
    value = 100 * float(np.mean(part))
    return "0 %" if value == 0 else "<0.1 %" if value < 0.1 else f"{value:.{int(value < 1)}f} %"


class Composer:
    """Composes all maps of one capture by one recipe, and goes on where it was stopped."""

    def __init__(self, capture: Capture, recipe: RolloutOptions | None = None) -> None:
        self.capture, self.recipe = capture, recipe or RolloutOptions()
        self._rollout: Rollout | None = None
        self._parts: list[Composed] = []
        self._whole: Together | None = None
        self._rows: dict[int, Composed] = {}

    @property
    def whole(self) -> Together | None:
        """All rows, once they are composed."""
        return self._whole

    def row(self, row: int) -> Composed:
        """One row, and from which levels its parts come; nothing larger than a row is multiplied.

        Errors: as resolution.rollout.
        """
        self._begin()
        assert self._rollout is not None
        if row not in self._rows:
            while len(self._rows) >= KEPT:
                del self._rows[next(iter(self._rows))]
            self._rows[row] = self._rollout.one(row)
        return self._rows[row]

    def all(self) -> Together:
        """All rows. Errors: as resolution.rollout; more than 8,192 tokens are too many."""
        first, last = bounds(None, len(self.capture.main))
        self._begin()
        assert self._rollout is not None
        while self._whole is None:
            start = min(first + ROWS * len(self._parts), last)
            progress(start, last, "composing all maps")
            if start < last:
                stop = min(start + ROWS, last)
                with progress_within(start, stop, last):
                    self._parts.append(self._rollout.composed((start, stop)))
                continue
            way = _joined(self._parts)
            one = as_capture(self.capture, way.weights, self.recipe)
            self._whole = Together(one, self.recipe, way, self.capture)
        return self._whole

    def _begin(self) -> None:
        if self._rollout is None:
            progress(0, 1, "composing all maps")
            self._rollout = Rollout(self.capture, self.recipe)


def together(capture: Capture, recipe: RolloutOptions | None = None) -> Together:
    """Compose all maps. Errors: as resolution.rollout; of more than 8,192 tokens there is none."""
    return Composer(capture, recipe).all()


def as_capture(capture: Capture, weights: Floats, recipe: RolloutOptions) -> Capture:
    """A capture with one map (rows, columns) that stands for all of one. Its text is the same."""
    spec, main = capture.spec, capture.main
    own = [one for one in spec.layers if capture.prompt_of(one.level) is main]
    causal = all(one.causal for one in own if one.window is None and one.role != "cross")
    two = capture.target is not None
    layer = Layer(
        0, f"{NAME}: {recipe.label}", "cross" if two else "self", int(two), 0, (0,), ("softmax",),
        causal and not two,
    )  # fmt: skip
    levels = (Level(0), Level(1, sequence="target"))[: 1 + two]
    made = replace(spec, levels=levels, layers=(layer,), form="", upsampling="")
    prompt = joined(capture.prompt, main) if two else main
    spans = tuple(_each(prompt if level.sequence == "source" else main) for level in levels)
    stored = DenseMap(weights[None], (0,), signed=recipe.signed, causal=layer.causal)
    return Capture(
        made, prompt, spans, (stored,), made=capture.made, target=main if two else None,
        logits=capture.logits,
    )  # fmt: skip


def joined(one: Prompt, other: Prompt) -> Prompt:
    """Two texts as one, the second after a line end."""
    text = f"{one.text}\n{other.text}"
    moved = np.where(other.spans >= 0, other.spans + len(one.text) + 1, -1)
    return Prompt(
        text,
        readonly(np.concatenate([one.ids, other.ids])),
        (*one.pieces, *other.pieces),
        readonly(np.concatenate([one.spans, moved])),
    )


def _each(prompt: Prompt) -> Integers:
    at = np.arange(len(prompt))
    return readonly(np.stack([at, at + 1], axis=1))


def _cut(part: Composed, place: int) -> Composed:
    """One row of some."""
    at = slice(place, place + 1)
    crossings = tuple(
        Crossing(one.copied[at], one.looked_up[at], one.pooled[at], one.looked_down[at])
        for one in part.crossings
    )
    nothing = None if part.nothing is None else part.nothing[at]
    source = None if part.source is None else part.source[at]
    return Composed(part.weights[at], crossings, nothing, source)


def _joined(parts: list[Composed]) -> Composed:
    def one(values: list[Floats | None]) -> Floats | None:
        there = [value for value in values if value is not None]
        return readonly(np.concatenate(there)) if there else None

    crossings = tuple(
        Crossing(*(np.concatenate([getattr(way, name) for way in ways]) for name in
                   ("copied", "looked_up", "pooled", "looked_down")))
        for ways in zip(*(part.crossings for part in parts), strict=True)
    )  # fmt: skip
    weights = readonly(np.concatenate([part.weights for part in parts]))
    return Composed(
        weights, crossings, one([part.nothing for part in parts]),
        one([part.source for part in parts]),
    )  # fmt: skip


__all__ = ["NAME", "Composer", "Together", "as_capture", "joined", "reach", "together", "ways"]
