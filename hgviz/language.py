"""Numbers and lists for people, in English: the one set of formatters."""

from __future__ import annotations

import math
from collections.abc import Iterable

LONGEST = 220  # characters of an example


def number(value: float, signed: bool = False) -> str:
    """Three significant digits with a real minus: 0.842, −1.20, 32,768; signed: with a plus."""
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
    sign = "−" if value < 0 else "+" if signed else ""
    return words if words == "0" else sign + words


def short_number(value: float, signed: bool = False) -> str:
    """At most three significant digits, for labels: 0.5, 2e4, −1.25; signed: with a plus."""
    size = abs(value)
    text = f"{size:.3g}"
    if "e" in text:
        digits, power = text.split("e")
        text = f"{digits}e{int(power)}"
    sign = "−" if value < 0 else "+" if signed and value > 0 else ""
    return sign + text.replace("e-", "e−")


def decimals(value: float, places: int = 2, signed: bool = False) -> str:
    """So many decimals, none from 100 on; 0 only where it is exact: 1.54, −0.12, <0.01, 1,540."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    sign, size = "−" if value < 0 else "+" if signed else "", abs(value)
    if size < 0.5 * 10**-places:
        return f"{sign}<{10**-places:.{places}f}"
    return sign + (f"{size:.{places}f}" if size < 100 else f"{size:,.0f}")


def percent(share: float) -> str:
    """A share in percent with one decimal: 84.2 %."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else "none"


def rounded_percent(share: float) -> str:
    """A share in whole percent: 84 %, <1 %."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def percentage_points(share: float) -> str:
    """A difference of shares in points: +0.05, −1.20, 0."""
    return decimals(100 * share, signed=True)


def p_value(value: float) -> str:
    """A p value: 0.0213, < 0.0001."""
    if not math.isfinite(value):
        return "–"
    return "< 0.0001" if value < 0.0001 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """How long something takes: 0.4 s, 12 s, 3 min, 2.1 h, 5 days; "" for nothing."""
    if seconds <= 0:
        return ""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 72 else f"{hours / 24:,.0f} days"


def format_size(count: float) -> str:
    """So many bytes: 86 MB, 1.2 GB."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


def counted(count: int, noun: str) -> str:
    """A count with its noun: 1 token, 32,768 tokens."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def join_words(words: Iterable[str], most: int | None = None) -> str:
    """Words as a sentence lists them: a, b and c; of more than `most`, how many more there are."""
    found = list(words)
    if most is not None and len(found) > most:
        found = [*found[: most - 1], f"{len(found) - most + 1:,} more"]
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def sentence(words: str) -> str:
    """Words with a capital and a full stop."""
    return f"{words[0].upper()}{words[1:].removesuffix('.')}."


def one_line(text: str) -> str:
    """A text on one line, no longer than LONGEST."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
