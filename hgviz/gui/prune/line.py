"""A curve as it is drawn: what is saved at each point, its random band, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hgviz.analysis import curves
from hgviz.gui.prune.shades import PER
from hgviz.study import Curve, Study

if TYPE_CHECKING:
    from hgviz.session import Session


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
    words = (
        "cheapest first" if session.per == "score" else f"cheapest first, per {PER[session.per]}"
    )
    return Line(one, band, x, band_x, each, axis == "time", words, allowed, proven)


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
    if line.proven == line.allowed and line.allowed:
        return f"{line.allowed} can go: at most 1 point lost, at 95 %"
    if not line.allowed:
        return "none can go without losing more than 1 point"
    sure = f"{line.proven} of them" if line.proven else "none"
    return f"{line.allowed} can go: at most 1 point lost; at 95 % {sure}"


def said(line: Line) -> str:
    """The picture in a sentence."""
    one = line.curve
    return (
        f"The whole model has {100 * one.values[0]:.1f} % right, without its heads "
        f"{100 * one.values[-1]:.1f} %; {allowed_words(line)}."
    )
