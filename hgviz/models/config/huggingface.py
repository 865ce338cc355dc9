"""What a model of the package transformers is: its config.json, and what a short pass told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec

from hgviz.core import Goal, Integers, Layer, Level, Modality, ModelSpec
from hgviz.models.config.shared import own_spans, spread

ENTRY = "hgviz"  # in a config.json: what is left of a model that is written without some heads
Number = Annotated[int, msgspec.Meta(ge=0, le=2**16)]
Some = Annotated[int, msgspec.Meta(ge=1, le=2**16)]


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The heads that a layer has left, of so many in so many groups of keys; name: the module that
    attends. A group stays as long as one of its heads does. Where none is left, zeros of the first
    stay, since no modelling code computes without any."""

    name: str
    heads: tuple[Number, ...]
    of: Some
    groups: Some

    def __post_init__(self) -> None:
        """Errors: ValueError for numbers that no such layer has."""
        if self.of % self.groups:
            raise ValueError(f"{self.of} heads do not share {self.groups} groups of keys")
        if list(self.heads) != sorted({*self.heads} & {*range(self.of)}):
            raise ValueError(f"its heads are not numbers of {self.of}, each once and in order")

    @property
    def shared(self) -> int:
        """How many heads of the whole layer read the same keys."""
        return self.of // self.groups

    @property
    def keys(self) -> list[int]:
        """By head, the place of its group among those that are left."""
        left = dict.fromkeys(head // self.shared for head in self.heads)
        places = {group: place for place, group in enumerate(left)}
        return [places[head // self.shared] for head in self.heads]

    @property
    def sizes(self) -> tuple[int, int]:
        """How many heads and groups its module computes."""
        return max(1, len(self.heads)), max(1, len({*self.keys}))

    @property
    def even(self) -> bool:
        """Whether all its groups have equally many heads."""
        heads, groups = self.sizes
        return self.keys == [place * groups // heads for place in range(len(self.heads))]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What config.json says of a model without some heads: what is left of each layer."""

    layers: tuple[Kept, ...]


@dataclass(frozen=True)
class TransformersConfig:
    """A model of transformers, whose class `made` reads `data`, a config.json.

    asks: whether it asks transformers for attention; else its softmaxes are seen on their way.
    own: its layers as they attend by themselves; products: by layer, the module that what heads
    give goes through, outputs: its weights in the file, "" where none was seen; unattending: by
    name, what those of its layers are made of that do not attend, as Mamba's; apart: numbers of
    calls for attention, in order, that are no layers, since they attend to no text. kept: what is
    left of each layer, () of a whole model; alone: why no other program opens one that is not
    whole, "" where transformers does. box: the model that the layers were found in, with the
    tensors it has, until somebody takes it.
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
    modality: Modality = "text"
    asks: bool = True
    own: tuple[Layer, ...] = ()
    products: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    alone: str = ""
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
        whole = max((one.of for one in self.kept), default=self.n_heads)
        return stated if isinstance(stated, int) and stated > 0 else self.width // whole

    @property
    def stated(self) -> dict[str, Any]:
        """What transformers reads of its config.json."""
        return {key: value for key, value in self.data.items() if key != ENTRY}

    @property
    def levels(self) -> tuple[Level, ...]:
        """The text, and the decoder's where there are two."""
        both = self.form == "encoder-decoder"
        return (Level(0), Level(1, sequence="target")) if both else (Level(0),)

    def keys(self) -> dict[str, Any]:
        """What tells it from other models besides its tensors."""
        changed = {"activations": self.activations, "norms": dict(self.norms), "top_k": self.top_k}
        if self.activations == ("softmax",):
            return dict(self.data)
        return {**self.data, ENTRY: {**self.data.get(ENTRY, {}), **changed}}

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Every position stands for itself, in its own text."""
        return own_spans(self.levels, source=tokens, target=target)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.width, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form, goal=self.goal, labels=self.labels,
            modality=self.modality,
        )  # fmt: skip
