"""How all maps of a capture are made one: which heads count, and how much stays as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hgviz.core import HeadId, HgvizError

Fuse = Literal["mean", "max", "min"]
FUSES: dict[str, str] = {"mean": "mean", "max": "largest", "min": "smallest"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """models.md A.8 with its choices; the default is the mean of heads and half of every sum.

    fuse: what the heads of a layer become, their mean or, cell by cell, the largest or smallest of
    them, the rows then divided by their sums. heads: a layer of which some are named counts these
    alone. residual: how much of every sum x + f(x) is x. nothing: what comes from no token, such as
    the zeros of a causal shift, is kept apart instead of being given to the tokens. signed: weights
    below zero stay below zero, and nothing is divided: the product of A + I.
    """

    fuse: Fuse = "mean"
    heads: tuple[HeadId, ...] = ()
    residual: float = 0.5
    nothing: bool = False
    signed: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.residual <= 1:
            raise HgvizError(
                f"the residual path cannot be {self.residual:g} of a sum",
                "it is a part of it, 0 for none and 1 for all",
                "Choose a number from 0 to 1; 0.5 is usual",
            )
        if self.fuse not in FUSES:
            raise HgvizError(
                f"heads are not fused by {self.fuse!r}", f"they are by {', '.join(FUSES)}",
                "Choose one of these",
            )  # fmt: skip
        clash = self.fuse != "mean", self.residual != 0.5, self.nothing
        if self.signed and any(clash):
            taken = ("the largest or smallest head", "another residual share", "mass from nothing")
            raise HgvizError(
                f"the signed product does not go with {taken[clash.index(True)]}",
                "it is the product of A + I, where A is the mean of the heads and nothing is "
                "divided",
                "Leave one of the two out",
            )

    @property
    def keep(self) -> float:
        """What x is multiplied with in a sum."""
        return 1.0 if self.signed else self.residual

    @property
    def look(self) -> float:
        """What attention is multiplied with in a sum."""
        return 1.0 if self.signed else 1 - self.residual

    @property
    def divides(self) -> bool:
        """Whether what is lost on the way is made up for by dividing rows by their sums."""
        return not (self.signed or self.nothing)

    @property
    def label(self) -> str:
        """In a few words: "mean of the heads, half residual"."""
        heads = f"{FUSES[self.fuse]} of the heads"
        if self.heads:
            named = ", ".join(map(str, self.heads))
            heads = f"head{'s' * (len(self.heads) > 1)} {named}, elsewhere the {heads}"
        if self.signed:
            return f"signed product, {heads}"
        share = "half" if self.residual == 0.5 else f"{self.residual:.0%}".replace("%", " %")
        return f"{heads}, {share} residual" + ", with mass from nothing" * self.nothing
