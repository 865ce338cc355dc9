"""A link as a curve from a query to a key, and the part of it that is in view."""

from __future__ import annotations

from math import asin, sin

from PySide6.QtCore import QPointF

Curve = tuple[QPointF, QPointF, QPointF, QPointF]  # start, two control points, end


def in_view(a: QPointF, b: QPointF, low: float, high: float) -> Curve | None:
    """The part of a link's curve that lies between low and high along the text: start, two control
    points, end; None for none. What is far out of view would take long to stroke.

    Along the text the curve goes as 3 t^2 - 2 t^3, which is turned round by a sine.
    """
    first, last = a.y(), b.y()
    if max(first, last) < low or min(first, last) > high:
        return None
    bend = QPointF((b.x() - a.x()) / 2, 0)
    whole = (a, a + bend, b - bend, b)
    if first == last:
        return whole
    parts = sorted((one - first) / (last - first) for one in (low, high))
    ends = [0.5 - sin(asin(1 - 2 * min(1.0, max(0.0, one))) / 3) for one in parts]
    if ends == [0.0, 1.0]:
        return whole
    return between(whole, *ends)


def between(curve: Curve, start: float, end: float) -> Curve:
    """The part of a cubic curve between two of its parameters: its blossom at each corner."""

    def blossom(*at: float) -> QPointF:
        points = list(curve)
        for one in at:
            points = [p * (1 - one) + q * one for p, q in zip(points, points[1:], strict=False)]
        return points[0]

    return (
        blossom(start, start, start), blossom(start, start, end),
        blossom(start, end, end), blossom(end, end, end),
    )  # fmt: skip
