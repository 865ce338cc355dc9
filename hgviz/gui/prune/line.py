"""A curve as it is drawn: what is saved at each point, its random band, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hgviz.analysis import curves
from hgviz.gui.language import tr
from hgviz.study import Curve, Study

if TYPE_CHECKING:
    from hgviz.session import Session

ORDERS = {
    "score": "cheapest first",
    "parameters": "cheapest first, per parameter",
    "flops": "cheapest first, per FLOP",
}


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve with its band. x (points,), its own and the band's: what is saved at each point, or
    milliseconds there, which random orders lack."""

    curve: Curve
    band: curves.Band
    x: np.ndarray
    band_x: np.ndarray
    each: np.ndarray  # (H + 1,): x of every number of heads off, in the curve's order
    timed: bool  # whether x is milliseconds, as they were measured: not in order
    label: str
    allowed: int
    proven: int

    @property
    def ends(self) -> tuple[float, float]:
        """Where its axis begins and ends."""
        if not self.timed:
            return 0.0, float(self.each[-1])
        low, high = float(self.x.min()), float(self.x.max())
        room = 0.04 * (high - low) or 0.5
        return low - room, high + room


def curve_of(session: Session) -> Curve | None:
    """The newest curve of the chosen score, of those along which most heads go."""
    mine = [
        one
        for one in (session.study.curves if session.study is not None else ())
        if (one.method, one.key, one.normalise) == (session.score, session.per, "")
    ]
    return max(reversed(mine), key=lambda one: len(one.order), default=None)


def line_of(session: Session, axis: str) -> Line | None:
    """The curve of the chosen score with its random band, as far as it is drawn."""
    study, one = session.study, curve_of(session)
    if study is None or one is None:
        return None
    # one that is still being drawn is no order yet; none has times
    drawn = [other for other in curves.beside(study, one) if other.removed[-1] == len(other.order)]
    band = curves.band([] if axis == "time" else drawn)
    each = _each(study, one, axis)
    # random orders save what the mean of them does: the share of heads, also of their cost
    share = band.removed / max(1, len(one.order))
    band_x = band.removed if axis == "heads" else share
    x = each[one.removed] if axis != "time" or one.times is None else one.times[:, 1]
    allowed, proven = curves.allowed(one)
    return Line(
        one, band, x, band_x, each, axis == "time", tr(ORDERS[session.per]), allowed, proven
    )


def _each(study: Study, one: Curve, axis: str) -> np.ndarray:
    if axis == "heads":
        return np.arange(len(one.order) + 1)
    if axis == "time" and one.times is not None:
        return np.interp(np.arange(len(one.order) + 1), one.removed, one.times[:, 1])
    costs = study.parameters if axis == "parameters" else study.flops
    if costs is None:
        return np.linspace(0, 1, len(one.order) + 1)
    cost = dict(zip(study.heads, np.asarray(costs, float), strict=True))
    total = np.cumsum([0.0, *(cost[head] for head in one.order)])
    return total / max(float(sum(cost.values())), 1e-30)


def allowed_words(line: Line) -> str:
    """42 can go: less than 1 point lost, at 95 % 36."""
    if not line.allowed:
        return tr("none can go without losing more than 1 point")
    if line.proven == line.allowed:
        return tr("{n} can go: at most 1 point lost, at 95 %", n=line.allowed)
    if not line.proven:
        return tr("{n} can go: at most 1 point lost; at 95 % none", n=line.allowed)
    return tr(
        "{n} can go: at most 1 point lost; at 95 % {sure} of them", n=line.allowed, sure=line.proven
    )


def said(line: Line) -> str:
    """The picture in words."""
    whole, bare = (100 * float(line.curve.values[at]) for at in (0, -1))
    return " · ".join((
        tr("whole model {whole:.1f} % right, without heads {bare:.1f} %", whole=whole, bare=bare),
        allowed_words(line),
    ))  # fmt: skip


def point_words(line: Line, at: int) -> str:
    """What was measured at a point: 12 heads off: 57.8 % (57.1 to 58.5), and its times."""
    one = line.curve
    count = int(one.removed[at])
    ends = {
        "value": 100 * float(one.values[at]),
        "low": 100 * float(one.low[at]),
        "high": 100 * float(one.high[at]),
    }
    said = (
        tr("1 head off: {value:.1f} % ({low:.1f} to {high:.1f})", **ends)
        if count == 1
        else tr("{n:,} heads off: {value:.1f} % ({low:.1f} to {high:.1f})", n=count, **ends)
    )
    if one.times is None:
        return said
    whole, smaller = one.times[at]
    timed = tr(
        "{smaller:.3g} ms without them, {whole:.3g} ms whole, measured in turns",
        smaller=smaller, whole=whole,
    )  # fmt: skip
    return f"{said}\n{timed}"


def point_rows(line: Line) -> list[list[str]]:
    """A row for every point of the curve, then for the middle of random orders and its band."""
    one, band = line.curve, line.band
    times = one.times if one.times is not None else np.zeros((len(one.removed), 0))
    rows = []
    for at, count in enumerate(one.removed):
        numbers = (
            line.x[at], one.values[at], one.low[at], one.high[at], one.change[at],
            one.change_low[at], one.change_high[at], *times[at],
        )  # fmt: skip
        rows.append([line.label, f"{count}", *(f"{number:.6g}" for number in numbers)])
    for at, count in enumerate(band.removed):
        numbers = (line.band_x[at], band.middle[at], band.low[at], band.high[at])
        said = tr("random orders: {n} (10 to 90 %)", n=band.orders)
        rows.append([said, f"{count}", *(f"{number:.6g}" for number in numbers)])
    return [[*row, *[""] * (11 - len(row))] for row in rows]
