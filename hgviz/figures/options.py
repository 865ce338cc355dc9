"""A Spec as the words of the command line, so that a figure can say how to draw it again."""

from __future__ import annotations

from hgviz.figures.spec import Spec

HEADED = ("map", "links", "levels", "rollout", "compare", "wall")  # that look at a layer and a head


def arguments(spec: Spec, item: int = 0) -> list[str]:
    """What follows the files of `hgviz figure`; item: which text of them."""
    chosen = spec.selection
    out = ["--kind", spec.kind]
    if spec.kind in HEADED:
        out += ["--layer", str(chosen.layer), "--head", str(chosen.head)]
    if chosen.query is not None:
        out += ["--query", str(chosen.query)]
    out += ["--item", str(item)] if item else []
    if spec.kind == "rollout":
        out += spec.recipe.options
    if spec.kind == "links":
        out += spec.links.arguments
    for method in spec.methods:
        out += ["--method", method]
    out += [] if spec.axis == "heads" else ["--axis", spec.axis]
    return [*out, "--width", spec.width]
