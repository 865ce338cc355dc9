"""What a figure of neurons shows, as tasks make it: one query with its keys, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hgviz.core import Integers, Prompt
from hgviz.figures.charts import Row
from hgviz.figures.paper.axes import Many


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """left (d,) times right (keys, d), element by element = values (keys, d), and what all three
    are called.
    """

    names: tuple[str, str, str]
    left: Many
    right: Many
    values: Many


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A number of every key on the way to its weight (keys,); NaN for none."""

    kind: str
    title: str
    values: Many


@dataclass(frozen=True, slots=True, eq=False)
class Neurons:
    """One row of a head, taken apart for the keys that are drawn.

    query: the token it is of, and its text; keys: the text of the keys, spans (keys, 2) the tokens
    of each, columns (keys,) their numbers in the map. marked: the key that is looked at, a place
    among these. products: as they are added up, stages: what comes of it, the weight last. title,
    more, notes, about as in Curves.
    """

    query: tuple[Prompt, Integers]
    keys: Prompt
    spans: Integers
    columns: Integers
    products: tuple[Products, ...]
    stages: tuple[Stage, ...]
    marked: int | None = None
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each key: what comes of it, then every element of the query, of
        the key and of their products."""
        names = ["column", "key", *(one.title for one in self.stages)]
        for one in self.products:
            names += [f"{name} {at}" for name in one.names for at in range(len(one.left))]
        found: list[Row] = [tuple(names)]
        for at, (column, (start, end)) in enumerate(zip(self.columns, self.spans, strict=True)):
            said = self.keys.words(int(start), int(end)) if end > 0 else ""
            row: list[object] = [
                str(column),
                said or (self.keys.label(int(start)) if end > 0 else ""),
            ]
            row += [one.values[at] for one in self.stages]
            for each in self.products:
                row += [*each.left, *each.right[at], *each.values[at]]
            found.append(tuple(row))
        return found


__all__ = ["Neurons", "Products", "Stage"]
