"""Colour maps and scales, named once: the screen, the figures and the thumbnails all read these.

Unsigned maps start at 0. Signed maps are symmetric about 0 and grow steadily darker (on the dark
theme: lighter) to both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, readonly

Scale = Literal["linear", "sqrt", "log"]
Limits = tuple[float, float]
Colours = NDArray[np.uint8]

SCALES: dict[str, str] = {"linear": "Linear", "sqrt": "Square root", "log": "Logarithm"}
OPACITY = 0.7  # of colours over an image
LUMA = np.array([0.299, 0.587, 0.114])  # of ITU-R BT.601: an image in grey
SMALLEST = 1e-300  # difference of limits that has ticks; below, steps between them are not normal
LOG_DECADES = 4  # a logarithmic scale is linear below 10^-4 of its limit, so that 0 has a place


class Stop(NamedTuple):
    """A colour at a place in 0..1, for either theme."""

    at: float
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class Palette:
    """One colour map: its stops, or where cmap has a published one, for both themes."""

    name: str
    label: str
    signed: bool
    source: str = ""
    stops: tuple[Stop, ...] = ()


PALETTES: dict[str, Palette] = {
    row.name: row
    for row in (
        Palette("viridis", "Viridis", False, source="cmap.data.bids:viridis"),
        Palette("cividis", "Cividis", False, source="cmap.data.cividis:cividis"),
        Palette("magma", "Magma", False, source="cmap.data.bids:magma"),
        Palette(
            "blue-red",
            "Blue and red",
            True,
            stops=(
                Stop(0.00, "0B3C6F", "A9D4FF"),
                Stop(0.20, "2B74B8", "4C97DE"),
                Stop(0.38, "8FBCE0", "234E78"),
                Stop(0.50, "F7F7F5", "191B1F"),
                Stop(0.62, "E7A987", "7C3725"),
                Stop(0.80, "C14A2A", "E77047"),
                Stop(1.00, "76160F", "FFC2A1"),
            ),
        ),
    )
}

# Okabe and Ito 2008, without the yellow that paper does not carry: lines and marks.
CATEGORICAL = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# the same hues, lighter, for a dark ground
CATEGORICAL_DARK = (
    "#4FA8E8", "#F2803F", "#2BC79C", "#E3A0C6", "#A5DAF8", "#F3BE4A", "#FFFFFF",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageColours:
    """Colours of a figure page apart from the data: paper, text, lines and marks."""

    paper: str = "#FFFFFF"
    text: str = "#1A1E23"
    secondary: str = "#525C68"
    line: str = "#C2C8D0"
    mark: str = "#E8590C"
    mark_text: str = "#B5390A"
    unseen: str = "#F0F2F4"
    hatch: str = "#C9CED6"
    band: str = "#E3E7EC"
    band_line: str = "#A3ACB8"
    silhouette: tuple[str, str, str] = ("#E6ECF3", "#D3DEEA", "#BFCFE1")


LIGHT_PAGE = PageColours()
# the same on a dark page, for reports that are read on a screen
DARK_PAGE = PageColours(
    "#15181C", "#E6E9ED", "#A3ACB8", "#3A424D", "#FF8A4C", "#FF9E66", "#23282F", "#434C58",
    "#2C323A", "#6B7684", ("#1F2A36", "#26364A", "#2E445E"),
)  # fmt: skip


def matching_palette(name: str, signed: bool) -> str:
    """The name where that palette is signed as the data are, else the first palette that is."""
    if name in PALETTES and PALETTES[name].signed == signed:
        return name
    return next(row.name for row in PALETTES.values() if row.signed == signed)


@lru_cache(maxsize=16)
def colours(name: str, dark: bool = False) -> Colours:
    """uint8 (256, 3): the colours of a palette, lowest first; KeyError for an unknown name."""
    palette = PALETTES[name]
    if not palette.stops:
        # not by its name: to make its catalogue takes longer than the first picture does
        table = np.asarray(resolve_name(palette.source))
        return readonly(np.rint(table * 255), np.uint8)
    places = [stop.at for stop in palette.stops]
    ends = np.array([_channels(stop.dark if dark else stop.light) for stop in palette.stops])
    at = np.linspace(0, 1, 256)
    table = np.stack([np.interp(at, places, ends[:, channel]) for channel in range(3)], axis=1)
    return readonly(np.rint(table), np.uint8)


def palette_coordinates(
    values: Any, limits: Limits, scale: str = "sqrt", signed: bool = False
) -> Floats:
    """float32 in 0..1, the shape of values: coordinates of the values in the palette.

    Values outside limits go to the ends; NaN stays NaN. Signed: 0 lies at 1/2, the limit is the
    larger magnitude of limits, and the scale is applied to the magnitude on both sides.
    """
    values = np.asarray(values)
    if values.dtype != np.float32:  # a map on screen is large, and float32 places it well enough
        values = values.astype(np.float64)
    if signed:
        limit = max(abs(limits[0]), abs(limits[1]))
        bent = _bend(_part(np.abs(values), 0.0, limit), scale)
        sided: Floats = (0.5 + 0.5 * np.sign(values) * bent).astype(np.float32, copy=False)
        return sided
    placed: Floats = _bend(_part(values, *limits), scale).astype(np.float32, copy=False)
    return placed


def paint(placed: Floats, table: Colours) -> Colours:
    """uint8 (..., 3): the colours of places in 0..1; NaN gets the lowest colour."""
    steps = np.nan_to_num(placed) * (len(table) - 1) + 0.5
    painted: Colours = table[steps.astype(np.intp)]
    return painted


def overlay(picture: Colours, colours: Colours) -> Colours:
    """uint8 (height, width, 3): colours of patches (rows, columns, 3) over a picture in grey."""
    height, width = picture.shape[:2]
    rows = np.arange(height) * colours.shape[0] // height
    columns = np.arange(width) * colours.shape[1] // width
    mixed = OPACITY * colours[rows][:, columns] + (1 - OPACITY) * (picture @ LUMA)[..., None]
    return np.asarray(mixed + 0.5, np.uint8)


def limits_of(low: float, high: float, signed: bool) -> Limits:
    """The limits that show data between low and high: from 0, or symmetric about it."""
    if signed:
        reach = max(abs(low), abs(high)) or 1.0
        return -reach, reach
    return 0.0, high if high > 0 else 1.0


def ticks(
    limits: Limits, scale: str = "sqrt", signed: bool = False, gap: float = 0.1
) -> tuple[float, ...]:
    """Values to write beside a colour bar, rising: its ends, 0 where it lies inside, round numbers.

    No two lie closer than gap, as a part of the bar.
    """
    if signed:
        reach = max(abs(limits[0]), abs(limits[1]))
        upper = ticks((0.0, reach), scale, gap=min(2 * gap, 1.0))
        return tuple(-value for value in reversed(upper[1:])) + upper
    low, high = limits
    chosen = [low, high] if high > low else [low]
    for value in _round_numbers(low, high, scale, gap):
        where = palette_coordinates([value], limits, scale)[0]
        if all(abs(where - one) >= gap for one in palette_coordinates(chosen, limits, scale)):
            chosen.append(value)
    return tuple(sorted(chosen))


def even_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers in equal steps from low to high, at most so many: what an axis says."""
    if not high - low > SMALLEST:
        return [low]
    rough = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * one for one in (*_STEPS, 10.0) if power * one >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [step * n for n in range(first, math.floor(high / step + 1e-9) + 1)]


def contrasting_colour(rgb: Any) -> Colours:
    """uint8 (..., 3): black or white, whichever contrasts more with the colour rgb."""
    light = luminance(rgb)
    # contrast (L + 0.05) / 0.05 against black, 1.05 / (L + 0.05) against white
    black = (light + 0.05) ** 2 > 0.05 * 1.05
    white = np.where(black, np.uint8(0), np.uint8(255))
    return np.repeat(white[..., None], 3, axis=-1)


def luminance(rgb: Any) -> NDArray[np.float64]:
    """Relative luminance 0..1 of sRGB colours (..., 3) in 0..255 (WCAG 2)."""
    part = np.asarray(rgb, np.float64) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    light: NDArray[np.float64] = linear @ np.array([0.2126, 0.7152, 0.0722])
    return light


def _part(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    if not high > low:
        return np.zeros_like(values)
    # halves first: the difference of two finite limits may not be finite
    half = float(high) / 2 - float(low) / 2
    if half == 0:  # limits next to each other: their half is no number
        return np.where(values > low, 1.0, np.where(np.isnan(values), np.nan, 0.0))
    if not 1e-37 < half < 1e37:  # beyond float32
        values = values.astype(np.float64)
    with np.errstate(over="ignore"):  # far outside tiny limits: that goes to the end as well
        return np.clip((values / 2 - low / 2) / half, 0.0, 1.0)


def _bend(part: NDArray[np.float64], scale: str) -> NDArray[np.float64]:
    if scale == "sqrt":
        return np.sqrt(part)
    if scale == "log":
        floor = 10.0**-LOG_DECADES
        bent: NDArray[np.float64] = np.log1p(part / floor) / math.log1p(1 / floor)
        return bent
    if scale != "linear":
        raise ValueError(f"unknown scale {scale!r}")
    return part


def _round_numbers(low: float, high: float, scale: str, gap: float) -> list[float]:
    """Candidates for ticks strictly between low and high, the roundest first; none where these are
    too near each other to be divided."""
    reach = max(abs(low), abs(high))
    if not SMALLEST < high - low < math.inf:
        return []
    if scale == "linear":
        steps = (float(f"{digit}e{power}") for power in _powers(high - low, 6) for digit in _STEPS)
        step = min(one for one in steps if one >= max(gap, 0.15) * (high - low))
        found = [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
    else:
        digits = (1.0,) if scale == "log" else (1.0, 5.0, 2.5, 7.5)
        found = [float(f"{digit}e{power}") for digit in digits for power in _powers(reach, 6)]
        found = [0.0, *found, *(-value for value in found)]
    return [value for value in found if low < value < high]


_STEPS = (1.0, 2.0, 2.5, 5.0)


def _powers(reach: float, count: int) -> range:
    top = math.floor(math.log10(reach)) + 1
    return range(top, top - count, -1)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[0:2], 16), int(colour[2:4], 16), int(colour[4:6], 16)


__all__ = [
    "CATEGORICAL", "CATEGORICAL_DARK", "DARK_PAGE", "LIGHT_PAGE", "PALETTES", "PageColours",
    "Palette", "SCALES", "Scale", "colours", "contrasting_colour", "even_ticks", "limits_of",
    "luminance", "matching_palette", "paint", "palette_coordinates", "ticks",
]  # fmt: skip
