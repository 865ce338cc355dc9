"""How the options of figures are read and written: numbers, tokens, heads, a range of weights.

What is read comes from a command line or a notebook; what is written suits both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import index
from typing import Any

from hgviz.core import Capture, HeadId, HgvizError, parse_heads
from hgviz.figures.spec import Spec

Value = str | int | float | bool | list[str]


class Unfit(Exception):
    """A value that is not what an option takes."""


@dataclass(frozen=True, slots=True)
class Form:
    """What an option takes, in words; read: from (value, the spec so far, what it is drawn of) to
    what a Spec holds, or Unfit; write: back to a Value.
    """

    takes: str
    read: Callable[[Any, Spec, Sequence[Capture]], Any]
    write: Callable[[Any], Value]


def one_of(names: Iterable[str]) -> Form:
    """One of some words."""
    known = tuple(names)

    def read(value: Any, _: Spec, __: Sequence[Capture]) -> str:
        if value not in known:
            raise Unfit
        return str(value)

    return Form(f"one of {', '.join(known)}", read, str)


def number_words(value: float) -> str:
    """A number in as few digits as tell it from all others."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


# --- reading --------------------------------------------------------------------------------------


def _whole(value: Any, *_: Any) -> int:
    if isinstance(value, bool | str | float):
        raise Unfit
    try:
        found = index(value)
    except TypeError:
        raise Unfit from None
    if found < 0:
        raise Unfit
    return found


def _number(value: Any, *_: Any) -> float:
    if isinstance(value, bool | str):
        raise Unfit
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise Unfit from None
    if not isfinite(found):
        raise Unfit
    return found


def _flag(value: Any, *_: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit
    return value


def _text(value: Any, *_: Any) -> str:
    if not isinstance(value, str):
        raise Unfit
    return value


def _texts(value: Any, *_: Any) -> tuple[str, ...]:
    return tuple(_text(one) for one in _several(value))


def _limits(value: Any, *_: Any) -> tuple[float, float]:
    parts = value.split(":") if isinstance(value, str) else _several(value)
    if len(parts) != 2:
        raise Unfit
    try:
        low, high = (_number(float(one) if isinstance(one, str) else one) for one in parts)
    except ValueError:
        raise Unfit from None
    if not low < high:
        raise HgvizError(
            f"limits cannot be {number_words(low)}:{number_words(high)}: "
            "they are from where to where, the lower first",
            "Try 0:0.5, or -1:1 where weights can be negative",
        )
    return low, high


def _heads(value: Any, _: Spec, captures: Sequence[Capture]) -> tuple[HeadId, ...]:
    """Heads in the order in which they are named; those of LAYER.* in their own."""
    layers = captures[0].spec.layers
    parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else None
    parts = [_name(one) for one in _several(value)] if parts is None else parts
    parse_heads(",".join(parts), layers)  # says what is not there, and what is named twice
    return tuple(head for part in parts for head in sorted(parse_heads(part, layers)))


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    if len(pair := _several(value)) != 2:
        raise Unfit
    return f"{_whole(pair[0])}.{_whole(pair[1])}"


def _beside(value: Any, _: Spec, captures: Sequence[Capture]) -> HeadId:
    """A head of B."""
    name = _name(value)
    found = parse_heads(name, captures[-1].spec.layers)
    if len(found) != 1:
        raise HgvizError(f"{name!r} names {len(found)} heads: one is drawn beside A", "Name one")
    return next(iter(found))


def _tokens(value: Any, spec: Spec, captures: Sequence[Capture]) -> tuple[int, ...]:
    layer, capture = spec.selection.layer, captures[0]
    count = len(capture.query_prompt(layer)) if layer < len(capture.spec.layers) else 0
    if value == "all":
        return tuple(range(count))
    if not isinstance(value, str):
        return tuple(_whole(one) for one in _several(value))
    return tokens_named(value, count)


def tokens_named(text: str, count: int) -> tuple[int, ...]:
    """3,5:8 as 3, 5, 6, 7; of an interval that leaves the count of tokens only where it ends."""
    found: list[int] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        first, between, last = part.partition(":")
        if not first.isdecimal() or (between and not (last.isdecimal() and int(first) < int(last))):
            raise HgvizError(
                f"{part!r} names no tokens: tokens are 3, or 5:8 from 5 up to 8, or all",
                "Separate several by commas",
            )
        asked = range(int(first), int(last) if between else int(first) + 1)
        found += asked if asked.stop <= count else asked[-1:]
    return tuple(found)


def _several(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable):
        raise Unfit
    return list(value)


# --- writing --------------------------------------------------------------------------------------


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers as 3,5:8."""
    found: list[list[int]] = []
    for one in sorted(set(numbers)):
        if found and found[-1][1] == one:
            found[-1][1] += 1
        else:
            found.append([one, one + 1])
    return ",".join(str(a) if b == a + 1 else f"{a}:{b}" for a, b in found)


def _joined(heads: Sequence[HeadId]) -> str:
    return ",".join(map(str, heads))


def _range(limits: tuple[float, float]) -> str:
    return ":".join(map(number_words, limits))


WHOLE = Form("a whole number from 0", _whole, int)
NUMBER = Form("a number", _number, float)
FLAG = Form("true or false", _flag, bool)
TEXT = Form("a text", _text, str)
TEXTS = Form("a text, or a list of texts", _texts, list)
LIMITS = Form("from where to where, such as 0:0.5", _limits, _range)
HEADS = Form("heads, such as 3.5,4.*", _heads, _joined)
HEAD = Form("a head, such as 3.5", _beside, str)
TOKENS = Form("tokens, such as 3,5:8, or all", _tokens, _ranges)
