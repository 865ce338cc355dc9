"""All maps composed, as a capture of one head: what reads, draws and compares maps can read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.analysis.resolution import Composed, Crossing, Rollout, bounds
from hgviz.core import (
    Capture,
    Floats,
    Integers,
    Layer,
    Level,
    Prompt,
    Step,
    Task,
    readonly,
    replace,
)
from hgviz.maps import DenseMap
from hgviz.recipe import Recipe

ROWS = 256  # composed at a time, so that it can be stopped in between
NAME = "all maps"


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """All maps of a capture composed to one, and which way what its rows are made of took.

    capture: of a single layer with a single head, whose map this is. Where a decoder reads another
    text, the keys are the source's tokens, then the target's. of: the capture that was composed.
    """

    capture: Capture
    recipe: Recipe
    way: Composed
    of: Capture

    def told(self, row: int | None = None) -> Capture:
        """The same as a capture that says of itself which way a row took, None for all of them."""
        (layer,) = self.capture.spec.layers
        if said := ways(self.of, self.way, row):
            layer = replace(layer, name=f"{layer.name}; {said}")
        spec = replace(self.capture.spec, layers=(layer,))
        return replace(self.capture, spec=spec, path=self.of.path)


def ways(capture: Capture, way: Composed, row: int | None = None) -> str:
    """In a sentence how much of a row, or of all on average, took the long way; "" for one level.

    way has the rows it is asked about, the first of them is row 0 of its own.
    """
    prompt = capture.main
    of = "Of an answer, on average" if row is None else f"Of the answer at {prompt.unit} {row:,}"
    at = slice(None) if row is None else slice(row, row + 1)
    said = []
    for number, one in enumerate(way.crossings):
        label = capture.spec.levels[number + 1].label
        both = (one.copied[at], "copied back"), (one.looked_up[at], "looked up")
        parts = [f"{_percent(part)} {name}" for part, name in both if part.any()]
        more = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        said.append(f"{_percent(one.through[at])} took the way through {label}{more}")
    if way.source is not None:
        said.append(f"{_percent(way.source[at])} comes from the source")
    if way.nothing is not None and way.nothing[at].mean() > 1e-6:
        said.append(f"{_percent(way.nothing[at])} from nothing, such as zeros of the causal shift")
    return f"{of}, {'; '.join(said)}." if said else ""


def _percent(part: Floats) -> str:
    """Of the mean: 46 %, 0.4 %."""
    value = 100 * float(np.mean(part))
    return "0 %" if value == 0 else "<0.1 %" if value < 0.1 else f"{value:.{int(value < 1)}f} %"


def together(
    capture: Capture, recipe: Recipe | None = None, rollout: Rollout | None = None
) -> Task[Together]:
    """Compose all maps. Errors: as resolution.rollout; of more than 8,192 tokens there is none."""
    recipe = recipe or Recipe()
    first, last = bounds(None, len(capture.main))
    yield Step(0, last, "composing all maps")
    rollout = rollout or Rollout(capture, recipe)
    parts = []
    for start in range(first, last, ROWS):
        yield Step(start, last, "composing all maps")
        parts.append(rollout.composed((start, min(start + ROWS, last))))
    way = _joined(parts)
    return Together(as_capture(capture, way.weights, recipe), recipe, way, capture)


def as_capture(capture: Capture, weights: Floats, recipe: Recipe) -> Capture:
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


__all__ = ["NAME", "Together", "as_capture", "joined", "together", "ways"]
