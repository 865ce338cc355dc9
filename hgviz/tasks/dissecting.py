"""Figures of neurons: one query and its keys, taken apart and made ready to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hgviz.core import Capture, HgvizError, Integers, Selection

if TYPE_CHECKING:
    from hgviz.figures.attribution import Neurons, Products
    from hgviz.maps.anatomy import Anatomy, ElementProducts

MOST = 32  # keys that are drawn
ORDERS = ("text", "weight")
SHOWN = ("product", "position", "score", "normed", "weight")  # of the stages


def neurons_chart(capture: Capture, chosen: Selection, order: str = "text") -> Neurons:
    """One query of a head with the keys it sees, from its elements to its weights.

    The last token asks where no query is chosen; the strongest key is marked where no key is. Of
    many keys those with the largest weights are drawn. order: as they stand in the text, or the
    largest weight first. Errors: HgvizError for a head or a token that is not there, and for maps
    that were kept as weights alone.
    """
    from hgviz.figures.attribution import Neurons, ScoreStep
    from hgviz.figures.cells import head_details, map_of, token_in
    from hgviz.figures.spec import describe_capture
    from hgviz.maps import LazyMap, SlotMap
    from hgviz.maps.anatomy import dissect

    one = map_of(capture, chosen.head_id)
    if isinstance(one, SlotMap):
        raise HgvizError(
            "queries meet slots in this model: the tokens behind them come after",
            "Look at its slots",
        )
    if not isinstance(one, LazyMap):
        raise HgvizError(
            "this capture holds weights alone: the queries and keys they came from are not there",
            "Capture the text again, without --dense",
        )
    if order not in ORDERS:
        raise HgvizError(f"there is no order {order!r}: there are {', '.join(ORDERS)}")
    prompt, keys = capture.query_prompt(chosen.layer), capture.key_prompt(chosen.layer)
    query = prompt.last if chosen.query is None else token_in(prompt, chosen.query)
    row = min(capture.row(chosen.layer, query), one.shape[1] - 1)
    found = dissect(one, chosen.head, row)
    columns = _columns(found, order)
    spans = capture.key_spans(chosen.layer)
    asked = None
    if chosen.key is not None:
        asked = capture.column(chosen.layer, token_in(keys, chosen.key))
    shown = {
        "layer": f"{chosen.layer} ({capture.spec.layers[chosen.layer].name})",
        "head": str(chosen.head),
        "query": f"{query} (row {row})",
    }
    return Neurons(
        (prompt, np.asarray(capture.query_spans(chosen.layer)[row])), keys, spans[columns],
        columns, tuple(_products(found, columns)),
        tuple(
            ScoreStep(stage.kind, stage.title, stage.values[columns])
            for stage in found.stages if stage.kind in SHOWN
        ),
        _marked(found, columns, asked), title=f"Head {chosen.head_id}",
        more=head_details(capture, chosen.head_id, f"{prompt.unit} {query:,} asks"),
        notes=tuple(_notes(capture, chosen, found, columns)),
        about=describe_capture(capture, shown),
    )  # fmt: skip


def _columns(found: Anatomy, order: str) -> Integers:
    """The keys that are drawn: those seen, of many the strongest."""
    sizes = np.abs(found.weights)
    there = np.flatnonzero(found.seen | (sizes > 0))
    strongest: Integers = there[np.argsort(-sizes[there], kind="stable")][:MOST]
    return np.sort(strongest) if order == "text" else strongest


def _marked(found: Anatomy, columns: Integers, asked: int | None) -> int | None:
    """The place of the key that is asked for, else of the strongest."""
    if asked is not None:
        there = np.flatnonzero(columns == asked)
        return int(there[0]) if len(there) else None
    return int(np.abs(found.weights[columns]).argmax()) if len(columns) else None


def _products(found: Anatomy, columns: Integers) -> list[Products]:
    """q and k, and, where positions are relative, what stands for the distance."""
    from hgviz.figures.attribution import Products

    query = found.query
    near = query.with_keys(found.keys[columns])
    products = Products(_signs(*query.names), near.left, near.right, near.products)
    each = [query.with_distances(range(at, at + 1)) for at in columns.tolist()]
    far: list[ElementProducts] = [one for one in each if one is not None]
    # one number has a column of its own already, but where there is nothing beside it
    if not far or (len(far[0].left) == 1 and near.products.any()):
        return [products]
    right, values = (np.concatenate(parts) for parts in
                     ([one.right for one in far], [one.products for one in far]))  # fmt: skip
    apart = Products(_signs(*query.position_names), far[0].left, right, values)
    return [products, apart] if near.products.any() else [apart]


def _signs(left: str, right: str) -> tuple[str, str, str]:
    """What is multiplied, and how the product is called."""
    return left, right, f"({left}) × {right}" if "+" in left else f"{left} × {right}"


# --- in words -------------------------------------------------------------------------------------


def _notes(capture: Capture, chosen: Selection, found: Anatomy, columns: Integers) -> list[str]:
    notes = []
    sizes = np.abs(found.weights)
    seen = int((found.seen | (sizes > 0)).sum())
    if len(columns) < seen:
        share = 100 * float(sizes[columns].sum() / sizes.sum()) if sizes.sum() else 0.0
        signed = " of their sizes" if (found.weights < 0).any() else ""
        notes.append(f"The {len(columns)} keys with the largest weights of {seen:,} it sees: "
                     f"{share:.3g} % of all{signed}.")  # fmt: skip
    if found.query.activation.of_keys is not None:
        notes.append("The last element is −½|k|², beside 1.")
    if found.filled:
        notes.append("The query sees no key, and its row is filled evenly.")
    if chosen.head_id in capture.off:
        notes.append("This head is switched off.")
    return notes


__all__ = ["MOST", "ORDERS", "neurons_chart"]
