"""What a figure of an attribution shows, as tasks make it: where one answer comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hgviz.core import HeadId, Integers, Prompt
from hgviz.figures.charts import Place, Row
from hgviz.figures.paper.axes import Many


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What every token of a text adds to the answer (tokens,); name: which text, "" where there is
    one. More tokens of the text than values: the answer does not hear of the rest."""

    name: str
    prompt: Prompt
    values: Many


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """The keys of a head, spans (keys, 2) of the tokens of each, and columns of numbers (keys,)."""

    prompt: Prompt
    spans: Integers
    columns: tuple[tuple[str, Many], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Where an answer comes from: its tokens, its heads, its layers, or the keys of a head; one of
    the four. places: the layers of the model, of heads and layers; off: the heads that are off.

    asked: what follows the model in the command `hgviz attribute` that finds it. table: the
    numbers, names of columns first. title, more, notes, about as in Curves.
    """

    texts: tuple[Share, ...] = ()
    heads: Mapping[HeadId, float] = field(default_factory=dict)
    layers: Mapping[int, float] = field(default_factory=dict)
    keys: Beside | None = None
    places: tuple[Place, ...] = ()
    off: frozenset[HeadId] = frozenset()
    asked: tuple[str, ...] = ()
    table: tuple[Row, ...] = ()
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, the names of columns first."""
        return list(self.table)


__all__ = ["Answer", "Beside", "Share"]
