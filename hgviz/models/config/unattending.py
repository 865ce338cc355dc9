"""What models without attention are built from: an LSTM, and layers that mix windows of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import numpy as np

from hgviz.core import Goal, HgvizError, Integers, Layer, Level, ModelSpec, readonly
from hgviz.models.config.shared import Depth, Sizes


class LSTMKeys(Sizes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    n_layers: Depth
    family: Literal["lstm"]


class WindowKeys(Sizes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    n_layers: Depth
    window: Annotated[int, msgspec.Meta(ge=2, le=4096)]
    family: Literal["window"]
    causal: bool = True
    feed_forward: Literal["gelu", "gelu_tanh", "relu", "silu"] = "gelu"


@dataclass(frozen=True, slots=True)
class Unattending:
    """What both share: layers of one width over tokens, none of which has heads or maps.

    max_positions: the longest text, None for any. causal: no output depends on a later token.
    """

    vocab_size: int
    d_model: int
    n_layers: int
    max_positions: int | None = None
    causal: bool = True
    family: str = ""

    @property
    def form(self) -> str:
        """There is one of each."""
        return ""

    @property
    def goal(self) -> Goal:
        """The next token; tokens that are hidden where later ones are seen."""
        return "next" if self.causal else "masked"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends: none."""
        return ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """The text."""
        return (Level(0),)

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Every position stands for itself."""
        ends = np.arange(tokens, dtype=np.int64)
        return (readonly(np.stack([ends, ends + 1], axis=1)),)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=(), width=self.d_model,
            vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, goal=self.goal,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LSTMConfig(Unattending):
    """Layers that read a text from left to right, each with one state for all that was read."""

    family: str = "lstm"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowConfig(Unattending):
    """Layers whose every position mixes the `window` positions around it, itself one of them.

    causal: the position itself and those before it; else as many on either side, so that window
    is odd. feed_forward: the non-linearity after the mixture.
    """

    window: int
    feed_forward: Literal["gelu", "gelu_tanh", "relu", "silu"] = "gelu"
    family: str = "window"

    def __post_init__(self) -> None:
        if not self.causal and self.window % 2 == 0:
            raise HgvizError(
                f"a window of {self.window} positions has no middle: "
                "as many of its neighbours lie on either side of a position",
                "Choose an odd window, or causal = true",
            )

    @property
    def radius(self) -> int:
        """How far one layer reaches (models.md C)."""
        return self.window - 1 if self.causal else (self.window - 1) // 2
