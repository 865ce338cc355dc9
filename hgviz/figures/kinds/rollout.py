"""All maps composed to one: the answer down, the tokens it comes from across."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hgviz.core import HgvizError
from hgviz.figures.content import Looked
from hgviz.figures.kinds import matrix
from hgviz.figures.paper.frame import map_of, zoom_for
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec

QUANTILE, EARLY = 0.995, 8  # of weights that have a colour each; part of the rows that see little
STANDS_FOR = "all maps"  # what the one layer of a composed capture is called


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the one map of a composed capture on the page. Errors: HgvizError for any other."""
    layers = looked.capture.spec.layers
    if len(layers) != 1 or not layers[0].name.startswith(STANDS_FOR):
        raise HgvizError(
            "this capture is not composed: "
            "a figure of all maps is drawn of what composing them gave",
            "Compose it first: tasks.figure does so",
        )
    name, _, rest = layers[0].name.partition(": ")
    how, _, ways = rest.partition("; ")
    chosen = replace(spec.selection, layer=0, head=0)
    if spec.display.limits is None:
        spec = replace(spec, display=replace(spec.display, limits=_limits(page, looked)))
    matrix.compose(
        page, replace(spec, selection=chosen), looked,
        named=(f"{name.capitalize()} composed", how), told=(ways,) if ways else (),
    )  # fmt: skip


def _limits(page: Page, looked: Looked) -> tuple[float, float] | None:
    """Up to where colours reach: the first rows see little, so that their weights are the largest
    of all, and all else would look alike. None where they are not much larger.
    """
    one = map_of(looked.capture, 0, 0)
    weights = one.read(one.heads[0], zoom=zoom_for(max(one.shape[1:]), page.width))
    later = weights[len(weights) // EARLY :]
    some = np.abs(later[np.isfinite(later) & (later != 0)])
    high = float(np.quantile(some, QUANTILE)) if some.size else 0.0
    if not 0 < 1.5 * high < np.abs(weights).max():
        return None
    high = float(f"{high:.2g}")
    return (-high if (weights < 0).any() else 0.0, high)
