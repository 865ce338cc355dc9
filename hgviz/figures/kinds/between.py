"""What lies between the strips of all levels: the shape of the model, the same tokens in two of
them, the selected token on its way, and arcs to where it looks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.figures.kinds.stages import STRIP, Strip
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import Shades
from hgviz.palettes import LIGHT_PAGE

ARCS, LOWEST = 25.0, 5.0  # heights of arcs
ARC_KEYS, FAINTEST = 5, 0.02
THIN, THICK = 0.4, 2.0  # of arcs
THREAD = 3.0  # the widest it gets
APART = 7.0  # slanted lines, at least


@dataclass(frozen=True, slots=True)
class Arc:
    """From where to where along x, how high, and what part of the largest weight."""

    start: float
    end: float
    height: float
    part: float


def silhouette(page: Page, strips: list[Strip]) -> None:
    """The shape of the model behind the strips."""
    for upper, lower in zip(strips, strips[1:], strict=False):
        a, b = upper.edges[[0, -1]], lower.edges[[0, -1]]
        y0, y1 = upper.y, lower.y + STRIP
        page.polygon(
            [(a[0], y0), (a[1], y0), (a[1], y0 + STRIP), (b[1], lower.y), (b[1], y1),
             (b[0], y1), (b[0], lower.y), (a[0], y0 + STRIP)],
            LIGHT_PAGE.unseen,
        )  # fmt: skip


def meeting(page: Page, upper: Strip, lower: Strip) -> None:
    """Slanted lines between two strips: the same tokens in both."""
    coarser = max(upper, lower, key=lambda strip: strip.stage.level)
    starts = coarser.stage.spans[coarser.stage.spans[:, 1] > 0, 0]
    wanted = max(1, int((coarser.edges[-1] - coarser.edges[0]) / APART))
    chosen = starts[:: max(1, -(-len(starts) // wanted))]
    page.lines(
        [[(upper.edges[t], upper.y + STRIP + 1), (lower.edges[t], lower.y - 1)] for t in chosen],
        LIGHT_PAGE.line, 0.35,
    )  # fmt: skip


def thread(page: Page, upper: Strip, lower: Strip) -> None:
    """The selected token from strip to strip."""
    start = upper.chosen
    assert start is not None
    a, b = _narrowed(*start), _narrowed(*(lower.chosen or start))
    page.polygon(
        [(a[0], upper.y + STRIP), (a[1], upper.y + STRIP), (b[1], lower.y), (b[0], lower.y)],
        LIGHT_PAGE.mark,
    )


def arcs_of(page: Page, shades: Shades, strip: Strip, origin: float | None) -> list[Arc]:
    """From the selected cell, or from where it lies in its own text, to its strongest keys."""
    stage, cell = strip.stage, strip.chosen
    start = origin if cell is None else sum(cell) / 2
    if start is None:
        return []
    limit = max(abs(one) for one in shades.limits) or 1.0
    strength = np.where(stage.seen, np.abs(stage.weights), 0)
    if stage.column is not None:
        strength[stage.column] = 0
    found = []
    for key in np.argsort(-strength, kind="stable")[:ARC_KEYS]:
        end = sum(strip.ends(int(key))) / 2
        far = min(1.0, abs(end - start) / (0.5 * page.width))
        part = float(min(float(strength[key]) / limit, 1.0))
        if part >= FAINTEST:
            found.append(Arc(start, end, LOWEST + (ARCS - LOWEST) * far, part))
    return found


def arcs(page: Page, shades: Shades, strip: Strip, origin: float | None) -> None:
    """Arcs over a strip, wider for more weight."""
    y = strip.y - 1
    for arc in arcs_of(page, shades, strip, origin):
        high = y - arc.height * 4 / 3  # a cubic curve reaches three quarters of its controls
        page.curve(
            [(arc.start, y), (arc.start, high), (arc.end, high), (arc.end, y)],
            LIGHT_PAGE.mark, THIN + (THICK - THIN) * arc.part, 0.35 + 0.65 * arc.part,
        )  # fmt: skip
        page.polygon(_dot(arc.end, y), LIGHT_PAGE.mark)


def _narrowed(left: float, right: float) -> tuple[float, float]:
    spare = max(0.0, right - left - THREAD) / 2
    return left + spare, right - spare


def _dot(x: float, y: float, radius: float = 1.2) -> list[tuple[float, float]]:
    turn = np.linspace(0, 2 * np.pi, 13)[:-1]
    return [(x + radius * float(np.cos(t)), y + radius * float(np.sin(t))) for t in turn]
