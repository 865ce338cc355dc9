"""The numbers of docs/explanation/maps.md: what answers of the bundled Hourglass are made of.

    python benchmarks/reading.py [CAPTURE.h5]

Rows after the first 20, on the first capture unless another is given. Beside the trained model
stands the same one with maps that look at everything they may see alike.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from hgviz.analysis.composition import Rollout, mean_distances
from hgviz.core import Capture, Layer, Map, RolloutOptions
from hgviz.files import resource
from hgviz.maps import DenseMap
from hgviz.store import open_capture

FIRST = 20
RECIPES = (
    RolloutOptions(),
    RolloutOptions(fuse="max"),
    RolloutOptions(fuse="min"),
    RolloutOptions(residual=0.3),
    RolloutOptions(residual=0.7),
)


def main(path: Path) -> None:
    """Print a line for each recipe, then for even maps."""
    capture = open_capture(path)
    labels = [level.label for level in capture.spec.levels]
    print(
        "recipe".ljust(44), *(f"{one} back".rjust(9) for one in labels), "through", "first", "own"
    )
    for recipe in RECIPES:
        print(line(capture, recipe))
    print(line(evened(capture), RolloutOptions(), "even maps, half residual"))
    ordered, rows = in_order(capture)
    print(f"{ordered} of {rows} rows: the further in, the further back")


def line(capture: Capture, recipe: RolloutOptions, name: str = "") -> str:
    """Mean letters back of what went to each level, what went through them, and two weights."""
    composing = Rollout(capture, recipe)
    rows = range(FIRST, len(capture.main))
    far = np.mean([back(composing, capture, row) for row in rows], axis=0)
    whole = composing.rows()
    through = " ".join(f"{float(one.mean()):.3f}" for one in whole.level_shares.sum(axis=1))
    first = whole.weights[FIRST:, 0].mean()
    own = np.diag(whole.weights)[FIRST:].mean()
    numbers = " ".join(f"{one:9.1f}" for one in far)
    return f"{name or recipe.label:44} {numbers} {through} {first:.3f} {own:.3f}"


def back(composing: Rollout, capture: Capture, row: int) -> tuple[float, ...]:
    """Of one answer, how far back its parts come from."""
    return mean_distances(capture, composing.row(row).parts, row)


def in_order(capture: Capture) -> tuple[int, int]:
    """Of how many rows the parts come from further back the further in they went."""
    composing, rows = Rollout(capture), range(FIRST, len(capture.main))
    found = sum(bool((np.diff(back(composing, capture, row)) > 0).all()) for row in rows)
    return found, len(rows)


def evened(capture: Capture) -> Capture:
    """The same capture, every row spread evenly over what it may see."""
    pairs = zip(capture.maps, capture.spec.layers, strict=True)
    return replace(capture, maps=tuple(even(one, layer) for one, layer in pairs if one is not None))


def even(one: Map, layer: Layer) -> DenseMap:
    """A map whose weights are alike wherever they are not 0."""
    seen = np.array([one.read(one.heads[0]) > 0], np.float32)
    return DenseMap(np.repeat(seen / seen.sum(-1, keepdims=True), len(one.heads), 0), one.heads)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else resource("sample/first.h5"))
