"""The options of figures of links: which queries and heads, and which of their links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hgviz.cli.options import interval

if TYPE_CHECKING:
    from hgviz.core import Capture
    from hgviz.maps.linking import Linking

Queries = Annotated[
    str,
    typer.Option(metavar="3,5:8|all", help="Links: tokens that have some, in place of --query."),
]
Together = Annotated[
    Literal["each", "mean", "sum", "max"],
    typer.Option(help="Links: of each of --heads, or of their mean, sum or largest weight."),
]
Most = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Links: the N strongest of each query, 0 for all; 10."),
]
Mass = Annotated[
    float,
    typer.Option(min=0, max=1, metavar="P", help="Links: as few as have a part P of the weight."),
]
Least = Annotated[float, typer.Option(min=0, metavar="W", help="Links: of weight W or more.")]
Words = Annotated[
    bool, typer.Option("--words", help="Links: between words: rows averaged, columns added.")
]
Special = Annotated[bool, typer.Option("--special/--no-special", help="Links: special tokens.")]
Values = Annotated[
    bool, typer.Option("--values", help="Links: weight x |v W_O|, what a key has to give.")
]
Across = Annotated[
    bool, typer.Option("--across", help="Links: the texts run across, for CJK and for pages.")
]


def linking_of(capture: Capture, layer: int, queries: str, heads: str, **given: Any) -> Linking:
    """What the options ask for. Errors: HgvizError for heads and tokens that are not there."""
    from hgviz.core import heads_named
    from hgviz.maps.linking import Linking

    if given["most"] is None:
        given["most"] = 0 if given["mass"] or given["least"] else Linking().most
    named = tuple(sorted(heads_named(heads, capture.spec.layers)))
    layer = named[0].layer if named else layer
    count = len(capture.query_prompt(layer)) if layer < len(capture.spec.layers) else 0
    tokens = tuple(range(count)) if queries == "all" else tokens_named(queries, count)
    return Linking(heads=named, queries=tokens, **given)


def tokens_named(text: str, count: int) -> tuple[int, ...]:
    """3,5:8 as 3, 5, 6, 7; of an interval that leaves the count of tokens only where it ends."""
    found: list[int] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        if not part.isdecimal() and ":" not in part:
            raise typer.BadParameter(f"{part!r} is no token; tokens are 3, 5:8, or all.")
        asked = range(int(part), int(part) + 1) if part.isdecimal() else interval(part)
        found += asked if asked.stop <= count else asked[-1:]
    return tuple(found)
