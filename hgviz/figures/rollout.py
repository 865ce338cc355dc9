"""All maps composed to one: the answer down, the tokens it comes from across."""

from __future__ import annotations

from dataclasses import replace

from hgviz.core import HgvizError
from hgviz.figures import matrix
from hgviz.figures.content import Looked
from hgviz.figures.page import Page
from hgviz.figures.spec import Spec

STANDS_FOR = "all maps"  # what the one layer of a composed capture is called


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the one map of a composed capture on the page. Errors: HgvizError for any other."""
    layers = looked.capture.spec.layers
    if len(layers) != 1 or not layers[0].name.startswith(STANDS_FOR):
        raise HgvizError(
            "this capture is not composed",
            "a figure of all maps is drawn of what composing them gave",
            "Compose it first: tasks.figure does so",
        )
    name, _, rest = layers[0].name.partition(": ")
    how, _, ways = rest.partition("; ")
    chosen = replace(spec.selection, layer=0, head=0)
    matrix.compose(
        page, replace(spec, selection=chosen), looked,
        named=(f"{name.capitalize()} composed", how), told=(ways,) if ways else (),
    )  # fmt: skip
