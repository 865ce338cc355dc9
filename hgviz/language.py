"""Numbers and small sentences for people, in English."""

from __future__ import annotations

import math
from collections.abc import Iterable

LONGEST = 220  # characters of an example


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


def counted(count: int, noun: str) -> str:
    """1 token, 32,768 tokens."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(words: Iterable[str], most: int | None = None) -> str:
    """Words as a sentence lists them: a, b and c; of more than `most`, how many more there are."""
    found = list(words)
    if most is not None and len(found) > most:
        found = [*found[: most - 1], f"{len(found) - most + 1:,} more"]
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def cut(text: str) -> str:
    """A text on one line, no longer than LONGEST."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
