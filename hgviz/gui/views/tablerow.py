"""A table that is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

Table = list[list[str]]


def span(first: int, last: int) -> str:
    """One cell by its number, several as Python writes a range."""
    return str(first) if last <= first else f"{first}:{last + 1}"


def _number(value: float | None) -> str:
    return "" if value is None or value != value else repr(float(value))
