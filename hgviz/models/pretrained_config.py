"""What a model of the package transformers is: its config.json, and what a short pass told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import Goal, Integers, Layer, Level, Modality, ModelSpec, Role, readonly
from hgviz.models.layers import Configuration, Count, own_spans, spread_activations

# families whose answers padding changes: a Funnel pools it, and classifiers of XLNet read the last
# position, whatever stands there
EVEN = ("funnel", "xlnet")
ENTRY = "hgviz"  # in a config.json: what transformers has no word for
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
        laid = [place * groups // heads for place in range(len(self.heads))]
        return not heads % groups and self.keys == laid


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What config.json says under ENTRY. layers: what is left of each, of a model without some
    heads; the others: what its softmaxes are exchanged for, as in hgviz's own config.json."""

    layers: tuple[Kept, ...] = ()
    activations: str | tuple[str | tuple[str, ...], ...] = ("softmax",)
    norms: dict[str, str] = {}
    top_k: Count | None = None

    def exchanged(self) -> dict[str, Any]:
        """The fields of a TransformersConfig that say the activations, one as a list of it."""
        given = self.activations
        names = (given,) if isinstance(given, str) else given
        return {"activations": names, "norms": self.norms, "top_k": self.top_k}

    def written(self) -> dict[str, Any]:
        """What config.json holds of it: what is not as it is without an entry."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return found


@dataclass(frozen=True, slots=True)
class Pooling:
    """How a Funnel-Transformer pools its text by two between blocks of layers (Dai et al. 2020,
    arXiv 2006.03236), and spreads the last of them over all tokens again.

    blocks: how many layers each has; after: those that follow the spreading, None where the last
    block's positions are what the model gives. queries: the first layer of a block looks from the
    pooled positions at those above; else its keys are pooled as well. apart: the first token,
    [CLS], stays a position of its own on every level; truncated: each pooling then leaves the last
    position out.
    """

    blocks: tuple[int, ...]
    after: int | None = None
    queries: bool = True
    apart: bool = True
    truncated: bool = True

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full first."""
        return tuple(
            Level(i, 2**i, apart=int(self.apart and i > 0)) for i in range(len(self.blocks))
        )

    @property
    def places(self) -> list[tuple[int, int]]:
        """(level, level of the keys) of every layer, in order of computation."""
        found = []
        for block, count in enumerate(self.blocks):
            above = int(self.queries and block > 0)
            found += [(block, block - above), *[(block, block)] * (count - 1)][:count]
        return found + [(0, 0)] * (self.after or 0)

    def groups(self, count: int) -> Integers:
        """(m, 2): which positions of a level of so many are pooled for each of the next, half-open;
        a single one, or [CLS] and one more, stay as they are."""
        if count <= 1 + self.apart:
            starts = np.arange(count, dtype=np.int64)
            return np.stack([starts, starts + 1], axis=1)
        stop = count - (self.apart and self.truncated)
        starts = np.arange(int(self.apart), stop, 2, dtype=np.int64)
        found = np.stack([starts, np.minimum(starts + 2, stop)], axis=1)
        return np.concatenate([np.array([[0, 1]]), found]) if self.apart else found

    def spans(self, tokens: int) -> tuple[Integers, ...]:
        """The tokens behind every position of every level, for a text of so many tokens."""
        own = np.arange(tokens, dtype=np.int64)
        found = [np.stack([own, own + 1], axis=1)]
        for _ in self.blocks[1:]:
            above, groups = found[-1], self.groups(len(found[-1]))
            found.append(np.stack([above[groups[:, 0], 0], above[groups[:, 1] - 1, 1]], axis=1))
        return tuple(map(readonly, found))


@dataclass(frozen=True, slots=True)
class Patches:
    """How a Byte Latent Transformer reads its text by patches of unequal length (Pagnoni et al.
    2024, arXiv 2412.09871).

    patcher, encoder, between, decoder: how many layers of each; the patcher's are those of a small
    model that decides where patches begin, None where every byte is one. down, up: whether patches
    look at each layer of the encoder and each layer of the decoder at patches, else the last and
    the first one alone. parts: in how many positions encoder and decoder see a patch; where these
    are several, they are a level of their own, each of all bytes of its patch.

    A boundary is a byte that closes a patch. The first one always does: the decoder gives every
    byte the last patch that is closed by then. What comes after the last boundary is computed, and
    read by no byte: it is no position.
    """

    patcher: int | None
    encoder: int
    between: int
    decoder: int
    down: bool = False
    up: bool = True
    parts: int = 1

    @property
    def levels(self) -> tuple[Level, ...]:
        """Bytes, the parts of patches where there are several, and patches."""
        if self.parts == 1:
            return (Level(0), Level(1, stride=None))
        return (Level(0), Level(1, stride=None, parts=self.parts), Level(2, stride=None))

    @property
    def places(self) -> list[tuple[Role, int, int]]:
        """Role, level and level of the keys of every layer, in order of computation."""
        own: tuple[Role, int, int] = ("self", 0, 0)
        inner = len(self.levels) - 1
        found = [own] * (self.patcher or 0)
        for layer in range(self.encoder):
            last = layer == self.encoder - 1
            found += [own, ("down", 1, 0)] if self.down or last else [own]
        found += [("self", inner, inner)] * self.between
        for layer in range(self.decoder):
            found += [("up", 0, 1), own] if self.up or not layer else [own]
        return found

    def lengths(self, tokens: int, patches: int) -> tuple[int, ...]:
        """How many positions every level has."""
        return (tokens, patches * self.parts, patches)[: len(self.levels)]

    def spans(self, tokens: int, boundaries: NDArray[np.bool_] | None) -> tuple[Integers, ...]:
        """The bytes behind every position of every level; boundaries (tokens,), None: all."""
        own = np.arange(tokens, dtype=np.int64)
        closes = np.ones(tokens, bool) if boundaries is None else np.array(boundaries, bool)
        closes[:1] = True
        ends = np.flatnonzero(closes) + 1
        patches = np.stack([np.concatenate([[0], ends])[: len(ends)], ends], axis=1)
        found = (np.stack([own, own + 1], axis=1), patches.repeat(self.parts, axis=0), patches)
        return tuple(readonly(one, np.int64) for one in found[: len(self.levels)])


@dataclass(frozen=True)
class TransformersConfig:
    """A model of transformers, whose class `made` reads `data`, a config.json.

    asks: whether it asks transformers for attention; else its softmaxes are seen on their way.
    own: its layers as they attend by themselves; products: by layer, the module that what heads
    give goes through, outputs: its weights in the file, "" where none was seen; unattending: by
    name, what those of its layers are made of that do not attend, as Mamba's; apart: numbers of
    calls for attention, in order, that are no layers, since they attend to no text. pooling: how
    its text is pooled, patches: how it is read by patches, None where every layer attends to all
    tokens. cross: whether it is a decoder
    alone that attends to given states of an encoder. turned: the weights that its class keeps
    transposed, by their names without that of the bare model before them. kept: what is
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
    pooling: Pooling | None = None
    patches: Patches | None = None
    cross: bool = False
    turned: frozenset[str] = frozenset()
    activations: tuple[str, ...] = ("softmax",)
    norms: Mapping[str, str] = field(default_factory=dict)
    top_k: int | None = None
    box: list[Any] = field(default_factory=list, compare=False, repr=False)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        found = []
        for one in self.own:
            whole = self.kept[one.index].of if self.kept else len(one.heads)
            names = spread_activations(self.activations, one.index, whole)
            found.append(replace(one, activations=tuple(names[head] for head in one.heads)))
        return tuple(found)

    @property
    def n_heads(self) -> int:
        """How many heads a list of activations has to fit, those that are gone too."""
        whole = (one.of for one in self.kept) if self.kept else (len(one.heads) for one in self.own)
        return max(whole, default=1)

    @property
    def d_head(self) -> int:
        """The width of a head."""
        stated = self.data.get("head_dim")
        return stated if isinstance(stated, int) and stated > 0 else self.width // self.n_heads

    @property
    def stated(self) -> dict[str, Any]:
        """What transformers reads of its config.json."""
        return {key: value for key, value in self.data.items() if key != ENTRY}

    @property
    def levels(self) -> tuple[Level, ...]:
        """The text and where it is pooled, and the decoder's where there are two."""
        if self.pooling is not None:
            return self.pooling.levels
        if self.patches is not None:
            return self.patches.levels
        return (Level(0), Level(1, sequence="target")) if self.two_texts else (Level(0),)

    @property
    def shortens(self) -> bool:
        """Whether it reads segments of unequal length."""
        return self.patches is not None

    @property
    def two_texts(self) -> bool:
        """Whether a decoder attends to another text, or to the states of its encoder."""
        return self.cross or self.form == "encoder-decoder"

    @property
    def even(self) -> bool:
        """Whether texts side by side have to be of one length."""
        return self.family in EVEN

    @property
    def exchanged(self) -> bool:
        """Whether its heads weigh otherwise than transformers has them."""
        return (self.activations, dict(self.norms)) != (("softmax",), {})

    @property
    def entry(self) -> Entry:
        """What its config.json says under ENTRY."""
        if not self.exchanged:
            return Entry(self.kept)
        return Entry(self.kept, self.activations, dict(self.norms), self.top_k)

    def keys(self) -> dict[str, Any]:
        """What tells it from other models besides its tensors, as its config.json has it."""
        entry = self.entry.written()
        return {**self.stated, **({ENTRY: entry} if entry else {})}

    def spans(
        self, tokens: int, target: int = 0, boundaries: NDArray[np.bool_] | None = None
    ) -> tuple[Integers, ...]:
        """Every position stands for itself, in its own text, for those that it is pooled of, or for
        the segment that boundaries (tokens,) close."""
        if self.pooling is not None:
            return self.pooling.spans(tokens)
        if self.patches is not None:
            return self.patches.spans(tokens, boundaries)
        return own_spans(self.levels, source=tokens, target=target)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.width, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form, goal=self.goal, labels=self.labels,
            modality=self.modality,
            upsampling="none" if self.patches else "repeat" if self.pooling
            and self.form == "funnel" and len(self.levels) > 1 else "",
        )  # fmt: skip

    def replace(self, **changes: Any) -> TransformersConfig:
        """The same with other values of some fields."""
        return replace(self, **changes)


Config = Configuration | TransformersConfig
