"""What a model of the package transformers is: its config.json, and what a short pass told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hgviz.core import Goal, Integers, Layer, Level, ModelSpec
from hgviz.models.config.shared import own_spans, spread


@dataclass(frozen=True)
class TransformersConfig:
    """A model of transformers, whose class `made` reads `data`, a config.json.

    asks: whether it asks transformers for attention; else its softmaxes are seen on their way.
    own: its layers as they attend by themselves; outputs: by layer, the tensor in its file that
    what heads give is multiplied with, "" where none was seen; unattending: by name, what those of
    its layers are made of that do not attend, as Mamba's; apart: numbers of calls for attention, in
    order, that are no layers, since they attend to no text. box: the model that the layers were
    found in, with the tensors it has, until somebody takes it.
    """

    family: str
    made: str
    data: Mapping[str, Any]
    width: int
    vocab_size: int
    max_positions: int | None
    goal: Goal
    labels: tuple[str, ...]
    form: str
    segments: int = 0
    asks: bool = True
    own: tuple[Layer, ...] = ()
    outputs: tuple[str, ...] = ()
    unattending: tuple[tuple[str, str], ...] = ()
    apart: frozenset[int] = frozenset()
    activations: tuple[str, ...] = ("softmax",)
    norms: Mapping[str, str] = field(default_factory=dict)
    top_k: int | None = None
    box: list[Any] = field(default_factory=list, compare=False, repr=False)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        return tuple(
            replace(one, activations=spread(self.activations, one.index, len(one.heads)))
            for one in self.own
        )

    @property
    def n_heads(self) -> int:
        """How many heads a list of activations has to fit."""
        return max((len(one.heads) for one in self.own), default=1)

    @property
    def d_head(self) -> int:
        """The width of a head."""
        stated = self.data.get("head_dim")
        return stated if isinstance(stated, int) and stated > 0 else self.width // self.n_heads

    @property
    def levels(self) -> tuple[Level, ...]:
        """The text, and the decoder's where there are two."""
        both = self.form == "encoder-decoder"
        return (Level(0), Level(1, sequence="target")) if both else (Level(0),)

    def keys(self) -> dict[str, Any]:
        """What tells it from other models besides its tensors."""
        changed = {"activations": self.activations, "norms": dict(self.norms), "top_k": self.top_k}
        plain = self.activations == ("softmax",)
        return dict(self.data) if plain else {**self.data, "hgviz": changed}

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Every position stands for itself, in its own text."""
        return own_spans(self.levels, source=tokens, target=target)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.width, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form, goal=self.goal, labels=self.labels,
        )  # fmt: skip
