"""A report: what it says, block by block, before it is written as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hgviz.figures.charts import Chart


@dataclass(frozen=True, slots=True)
class Heading:
    """What the blocks after it are about."""

    words: str


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph."""

    words: str
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """Sentences that stand by themselves."""

    points: tuple[str, ...]
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words under the names of columns; text: the columns that hold no numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: frozenset[int] = frozenset({0})
    caption: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A chart; caption: what it shows, below it."""

    kind: Literal["curve", "scores", "plots", "strips", "grids", "three", "seeds", "budgets"]
    chart: Chart
    caption: str


Block = Heading | Words | Points | Table | Picture


@dataclass(frozen=True, slots=True)
class Document:
    """A report. about: what identifies what it is made from, for the file."""

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
    about: Mapping[str, str] = field(default_factory=dict)
