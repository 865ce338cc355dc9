"""Which layer and which head of one capture stands beside one of another."""

from __future__ import annotations

from collections import Counter

from hgviz.core import Capture, HeadId, Layer, Role

Key = tuple[str, Role, int]


def layers(a: Capture, b: Capture) -> list[tuple[Layer, Layer]]:
    """The layers that both have captured, by their names, else by their numbers."""
    named = _by_name(a), _by_name(b)
    if not {*named[0]} & {*named[1]}:
        named = _by_number(a), _by_number(b)
    return [(one, named[1][key]) for key, one in named[0].items() if key in named[1]]


def _by_name(side: Capture) -> dict[Key, Layer]:
    """By name, role and how often both came before: ALBERT runs one module in all its layers."""
    found, before = {}, Counter[tuple[str, Role]]()
    for one in side.spec.layers:
        if side.maps[one.index] is not None:
            found[one.name, one.role, before[one.name, one.role]] = one
        before[one.name, one.role] += 1
    return found


def _by_number(side: Capture) -> dict[Key, Layer]:
    captured = (one for one in side.spec.layers if side.maps[one.index] is not None)
    return {("", one.role, one.index): one for one in captured}


def common(a: Capture, b: Capture, one: Layer, other: Layer) -> list[int]:
    """The numbers of the heads that two layers both have."""
    first, second = a.maps[one.index], b.maps[other.index]
    return sorted({*first.heads} & {*second.heads}) if first and second else []


def counterpart(
    a: Capture, b: Capture, head: HeadId, beside: HeadId | None = None
) -> HeadId | None:
    """The head of B that a head of A is compared with; None where B has captured no such head.

    beside: the one that was chosen, else that of the same number in the layer that meets A's.
    """
    if beside is None:
        met = (other for one, other in layers(a, b) if one.index == head.layer)
        layer = next(met, None)
        beside = None if layer is None else HeadId(layer.index, head.head)
    return beside if beside is not None and _has(b, beside) else None


def _has(capture: Capture, head: HeadId) -> bool:
    known = capture.maps[head.layer] if 0 <= head.layer < len(capture.maps) else None
    return known is not None and head.head in known.heads
