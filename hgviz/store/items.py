"""The texts of a corpus that are captured in one file: which there are, and where each lies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import h5py

from hgviz.core import HgvizError, Item
from hgviz.store import schema
from hgviz.store.hdf5 import Refused, has, parsed, subgroup

LONGEST, LONGEST_LABEL = 2000, 200  # characters of a text and a label that the index keeps


def index_of(items: Sequence[Item]) -> list[list[Any]]:
    """The index of some texts; long ones are cut, so that it is read in a moment."""
    longest = min(LONGEST, 40 + 6_000_000 // max(1, len(items)))
    return [
        [one.number, one.text[:longest], one.tokens, one.label[:LONGEST_LABEL]] for one in items
    ]


def read_items(file: h5py.File) -> tuple[Item, ...]:
    """The texts that an index lists; none in a file of one text. Raises Refused."""
    if not has(file, "index"):
        return ()
    rows = parsed(file, "index")
    if not isinstance(rows, list) or len(rows) > schema.MOST_ITEMS:
        raise Refused(f"its index is no list of at most {schema.MOST_ITEMS:,} texts")
    return tuple(_item(number, row) for number, row in enumerate(rows))


def _item(number: int, row: Any) -> Item:
    kinds = [type(one) for one in row] if isinstance(row, list) else []
    if kinds != [int, str, int, str] or row[0] != number or row[2] < 0:
        raise Refused(f"text {number} of its index is {json.dumps(row)[:40]}")
    label = "".join(one if one.isprintable() else "\ufffd" for one in row[3][:LONGEST_LABEL])
    return Item(number, row[1], row[2], label)


def group_of(file: h5py.File, number: int) -> h5py.Group:
    """Where a text of a corpus lies."""
    return subgroup(subgroup(file, "items"), schema.ITEM.format(number))


def require_item(path: str, number: int, items: Iterable[Item], whole: bool = True) -> None:
    """Raises HgvizError for a text that is not there, saying which are."""
    numbers = [one.number for one in items] or [0]
    if number in numbers:
        return
    texts = "1 text" if len(numbers) == 1 else f"{len(numbers):,} texts"
    raise HgvizError(
        f"there is no text {number:,} in {path}: "
        f"it holds {texts}{'' if whole else ' so far'}, numbered {_told(numbers)}",
        "Choose one of them" if len(numbers) > 1 else f"Choose text {numbers[0]:,}",
    )


def _told(numbers: Sequence[int]) -> str:
    first, last = min(numbers), max(numbers)
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"
