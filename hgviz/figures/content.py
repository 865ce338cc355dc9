"""What figures are drawn of, as tasks make it ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from hgviz.core import Capture, HeadId
from hgviz.figures.spec import Spec


class Fact(Protocol):
    """What a figure asks of the facts about a head."""

    @property
    def role(self) -> str:
        """What it does, in a few words."""
        ...

    @property
    def score(self) -> float:
        """How clearly it does so."""
        ...


Facts = Mapping[HeadId, Fact]


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """A capture that is looked at, and what is known of its heads."""

    capture: Capture
    facts: Facts = field(default_factory=dict)


class Charted(Protocol):
    """What has its own numbers, and says what identifies them."""

    @property
    def about(self) -> Mapping[str, str]:
        """What identifies the data, for the file."""
        ...

    def rows(self) -> list[tuple[Any, ...]]:
        """The table of the numbers, the names of its columns first."""
        ...


Content: TypeAlias = "Looked | Charted"


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One figure ready to be drawn. files: the captures or studies it is of, by name, for the
    command that draws it again; item: which text of all of them, or of each.
    """

    spec: Spec
    content: Content
    files: tuple[str, ...] = ()
    item: int | tuple[int, ...] = 0
