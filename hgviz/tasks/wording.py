"""Numbers and charts as a report has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hgviz.analysis.bench import Change
    from hgviz.figures.content.document import Picture

LONGEST = 220  # characters of an example


def picture(kind: str, chart: object, caption: str) -> Picture:
    """A chart, and what it shows."""
    from hgviz.figures.content.document import Picture

    return Picture(kind, chart, caption)  # type: ignore[arg-type]


def label(name: str) -> str:
    """What a metric is called within a sentence."""
    from hgviz.analysis.passes import MEASURES

    words = MEASURES[name].label
    return words if words[1].isupper() or "|d" in words else f"{words[0].lower()}{words[1:]}"


def unit(name: str) -> str:
    """Its unit after a comma, "" where it has none."""
    from hgviz.analysis.passes import MEASURES

    return f", {MEASURES[name].unit}" if MEASURES[name].unit else ""


def both(one: Change, of: str, percent: bool = False) -> str:
    """A and B, and whether they differ."""
    said = share if percent else number
    a, b = said(one.a[0]), said(one.b[0])
    told = "" if one.differs else ", which shows no difference"
    return f"In A it is {a}, in B {b} {of}{told}."


def judged(one: Change) -> str:
    """Whether a metric differs, in two words."""
    if one.exact:
        return "the same"
    if not one.measured:
        return "not measured"
    return "differs" if one.differs else "not shown to differ"


def interval(one: Change) -> str:
    """The ends of a difference."""
    low, high = one.difference[1:]
    return f"{signed(low)} to {signed(high)}" if math.isfinite(low) else "–"


def number(value: float) -> str:
    """Three digits that count, with a real minus."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size < 1e-9 or abs(size - round(size)) < 1e-6 and size < 1000:
        words = f"{size:.0f}"  # what is exact but for rounding
    elif size < 1e-4:
        digits, power = f"{size:.1e}".split("e")
        words = f"{digits}e−{abs(int(power))}"
    else:
        words = f"{size:#.3g}".rstrip(".") if size < 1000 else f"{size:,.0f}"
    return f"−{words}" if value < 0 and words != "0" else words


def signed(value: float) -> str:
    """A number with its sign."""
    words = number(value)
    return f"+{words}" if value > 0 and words != "0" else words


def percent(share: float) -> str:
    """A share in percent, one decimal."""
    return f"{100 * share:.1f} %"


def share(value: float) -> str:
    """The same, "none" for what is no number."""
    return percent(value) if math.isfinite(value) else "none"


def points(share: float) -> str:
    """A difference of shares in points."""
    return f"{100 * share:+.2f}".replace("-", "−")


def p(value: float) -> str:
    """A p value."""
    if not math.isfinite(value):
        return "–"
    return "< 0.0001" if value < 0.0001 else f"{value:.3g}"


def listed(words: list[str]) -> str:
    """Words as a sentence lists them."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def cut(text: str) -> str:
    """A text on one line, no longer than LONGEST."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
