"""A curve as it is drawn: what is saved at each point, its random band, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hgviz.analysis import curves
from hgviz.core import Off
from hgviz.gui import plots
from hgviz.gui.language import tr
from hgviz.gui.plots import Axis, Band, Chart, Mark, Note, Plot, Points, Slider
from hgviz.study import Curve, Study

if TYPE_CHECKING:
    from hgviz.session import Session

TITLES = {
    "heads": "heads switched off",
    "parameters": "parameters of heads, saved",
    "flops": "FLOPs of heads, saved",
    "time": "milliseconds of one pass, as measured: one core, 16 texts at once",
}
ELSEWHERE = "The mask is not on this curve; click or press Right to come back to it"


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
        if one.method == session.score
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
    band_x = band.removed.astype(float)
    if axis in ("parameters", "flops") and drawn:
        band_x = np.mean([curves.saved(study, other, axis) for other in drawn], axis=0)[
            band.removed
        ]
    x = each[one.removed] if axis != "time" or one.times is None else one.times[:, 1]
    allowed, proven = curves.allowed(one)
    return Line(one, band, x, band_x, each, axis == "time", tr("cheapest first"), allowed, proven)


def stop_of(line: Line, off: Off) -> int | None:
    """How many heads a mask switches off along the order; None where it is another one."""
    return len(off) if line.curve.off(len(off)) == off else None


def chart_of(line: Line, axis: str, off: Off) -> Chart:
    """The curve over what is saved, its band and floor; the slider is at the mask."""
    one, band = line.curve, line.band
    whole = float(one.values[0])
    floor = whole - curves.POINT
    lowest = [*one.values, *one.low, *band.low, *band.high, floor]
    high = max(*one.values, *band.high, whole)
    room = max(0.005, (high - min(lowest)) * 0.06)
    low, high = max(0.0, min(lowest) - room), min(1.0, high + room)
    x0, x1 = line.ends
    words = {"heads": plots.count, "time": "{:g}".format}.get(axis, plots.percent)
    air = 0.0 if line.timed else 0.012 * (x1 - x0)
    across = Axis(
        x0 - air,
        x1 + air,
        tr(TITLES[axis]),
        words,
        whole=axis == "heads",
        end=x1 if axis == "heads" else None,
    )
    up = Axis(low, high, words=plots.percent)
    parts: list[plots.Part] = []
    if band.orders:
        parts += [
            Band(line.band_x, band.low, band.high, "secondary", 0.22),
            plots.Line(line.band_x, band.middle, "secondary", 1.2),
        ]
    parts.append(Mark("y", floor, "bad", 1.2, "dot"))
    allowed = float(line.each[line.allowed])
    if line.allowed:
        parts.append(plots.Line([allowed, allowed], [whole, low], "good", 1.5, "dot"))
    parts += [
        plots.Line(line.x, one.values),
        Points(line.x, one.values, told=partial(point_words, line)),
        Note(allowed_words(line), ((allowed, low + 0.08 * (high - low)),), "good"),
    ]
    spread = np.linspace(x0, x1, 9)
    parts.append(
        Note(tr("1 point below the whole model"), tuple((x, floor) for x in spread[::-1]), "bad")
    )
    if len(one.values) > 2:
        near = range(len(one.values) * 3 // 4, 0, -1)
        places = tuple((float(line.x[at]), float(one.values[at])) for at in near)
        parts.append(Note(line.label, places, "press"))
    if band.orders and len(line.band_x) > 2:
        said = tr("random orders: {n} (10 to 90 %)", n=band.orders)
        places = tuple(zip(line.band_x.tolist(), band.low.tolist(), strict=True))
        parts.append(Note(said, places, "secondary", 500))
    if line.timed:
        said = tr("random orders are not timed")
        parts.append(Note(said, tuple((x, floor) for x in spread), "secondary", 500))
    at = stop_of(line, off)
    said = tr(ELSEWHERE) if at is None else tr("‹  {n} off  ›", n=at)
    return Chart(
        (Plot(across, up, tuple(parts)),), f"{picture_words(line)} · {mark_words(line, at)}",
        slider=Slider(line.each, at, said, line.allowed), of=(axis, one.order), reads="x",
    )  # fmt: skip


def mark_words(line: Line, at: int | None) -> str:
    """Where the slider is, and what was measured nearest to it."""
    if at is None:
        return tr(ELSEWHERE)
    nearest = int(np.abs(line.curve.removed - at).argmin())
    mark = tr("The mark: {n} of {total} off", n=at, total=len(line.curve.order))
    return f"{mark} · {point_words(line, nearest)}".replace("\n", " · ")


def _each(study: Study, one: Curve, axis: str) -> np.ndarray:
    if axis == "heads":
        return np.arange(len(one.order) + 1)
    if axis == "time" and one.times is not None:
        return np.interp(np.arange(len(one.order) + 1), one.removed, one.times[:, 1])
    return (
        curves.saved(study, one, axis) if axis != "time" else np.linspace(0, 1, len(one.order) + 1)
    )


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


def picture_words(line: Line) -> str:
    """The picture in words; a curve that is being drawn, or was stopped, as far as it is."""
    one = line.curve
    whole, last = (100 * float(one.values[at]) for at in (0, -1))
    said = "whole model {whole:.1f} % right, without heads {last:.1f} %"
    if one.removed[-1] < len(one.order):
        said = "whole model {whole:.1f} % right, with {n:,} heads off {last:.1f} %, so far"
    said = tr(said, whole=whole, last=last, n=int(one.removed[-1]))
    return f"{said} · {allowed_words(line)}"


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
