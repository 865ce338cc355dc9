"""The configuration of a model of the package transformers: its config.json, and what a pass over a
few tokens shows of its layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import Goal, Integers, Layer, Level, Modality, ModelSpec, readonly
from hgviz.models.layers import Configuration, Count, own_spans, spread_activations
from hgviz.models.patches import Patches

# families whose answers padding changes: Funnel pools it, and classifiers of XLNet read the last
# position, even where that is padding
UNPADDED = ("funnel", "xlnet")
ENTRY = "hgviz"  # the key of config.json under which Entry stands
HeadNumber = Annotated[int, msgspec.Meta(ge=0, le=2**16)]
HeadCount = Annotated[int, msgspec.Meta(ge=1, le=2**16)]


class RemainingHeads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The heads of a layer after pruning.

    name: the module that attends. of, groups: the numbers of heads and key groups before. A group
    remains as long as one of its heads does. Of a layer without heads, zeros of the first remain,
    since no modelling code computes with none.
    """

    name: str
    heads: tuple[HeadNumber, ...]
    of: HeadCount
    groups: HeadCount

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that no layer has."""
        if self.of % self.groups:
            raise ValueError(f"{self.of} heads cannot share {self.groups} key groups")
        if list(self.heads) != sorted({*self.heads} & {*range(self.of)}):
            raise ValueError(f"its heads are not in order, each once, from 0 to {self.of - 1}")

    @property
    def shared(self) -> int:
        """The number of heads before pruning that read the same keys."""
        return self.of // self.groups

    @property
    def keys(self) -> list[int]:
        """By head, the place of its key group among the remaining ones."""
        groups = dict.fromkeys(head // self.shared for head in self.heads)
        places = {group: place for place, group in enumerate(groups)}
        return [places[head // self.shared] for head in self.heads]

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of heads and key groups that the module computes."""
        return max(1, len(self.heads)), max(1, len({*self.keys}))

    @property
    def is_even(self) -> bool:
        """Whether all key groups have equally many heads."""
        heads, groups = self.sizes
        even = [place * groups // heads for place in range(len(self.heads))]
        return heads % groups == 0 and self.keys == even


def why_hgviz_only(remaining: Sequence[RemainingHeads], names: Collection[str]) -> str:
    """Why no class of transformers has what remains of these layers; names: of all tensors."""
    if len({layer.sizes for layer in remaining}) > 1:
        return "layers keep different numbers of heads"
    if not all(layer.is_even for layer in remaining):
        return "key groups keep different numbers of heads"
    if any(name.endswith("relative_attention_bias.weight") for name in names):
        return "its relative position table covers all heads and is shared between layers"
    return "transformers computes the width of its heads from their number"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What config.json says under ENTRY: the remaining heads of every layer of a pruned model, and
    activations, norms and top_k as in hgviz's own config.json."""

    layers: tuple[RemainingHeads, ...] = ()
    activations: str | tuple[str | tuple[str, ...], ...] = ("softmax",)
    norms: dict[str, str] = {}
    top_k: Count | None = None

    def activation_keys(self) -> dict[str, Any]:
        """The fields of a TransformersConfig that say the activations."""
        names = self.activations
        names = (names,) if isinstance(names, str) else names
        return {"activations": names, "norms": self.norms, "top_k": self.top_k}

    def to_dict(self) -> dict[str, Any]:
        """The fields that are not as without an entry."""
        fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return fields


@dataclass(frozen=True, slots=True)
class Pooling:
    """How a Funnel-Transformer pools its text by two between blocks of layers, and repeats the last
    block's positions for all tokens (Dai et al. 2020, arXiv 2006.03236).

    blocks: the number of layers of each. after: layers after the repetition; None where the last
    block's positions are the output. queries: whether the first layer of a block attends to the
    level above; else its keys are pooled too. separate_cls: whether the first token is a position
    of its own on every level. truncated: whether pooling then leaves out the last position.
    """

    blocks: tuple[int, ...]
    after: int | None = None
    queries: bool = True
    separate_cls: bool = True
    truncated: bool = True

    @classmethod
    def of(cls, net: Any) -> Pooling:
        """That of a Funnel in transformers."""
        config = net.config
        sizes = zip(config.block_sizes, config.block_repeats, strict=True)
        has_decoder = any(name.split(".")[-1] == "decoder" for name, _ in net.named_modules())
        return cls(
            tuple(size * times for size, times in sizes),
            config.num_decoder_layers if has_decoder else None,
            config.pool_q_only, config.separate_cls, config.truncate_seq,
        )  # fmt: skip

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full resolution first."""
        return tuple(
            Level(i, 2**i, apart=int(self.separate_cls and i > 0)) for i in range(len(self.blocks))
        )

    @property
    def places(self) -> list[tuple[int, int]]:
        """(level, level of the keys) of every layer, in order of computation."""
        places = []
        for block, count in enumerate(self.blocks):
            above = int(self.queries and block > 0)
            places += [(block, block - above), *[(block, block)] * (count - 1)][:count]
        return places + [(0, 0)] * (self.after or 0)

    def spans(self, tokens: int) -> tuple[Integers, ...]:
        """Per level, the tokens [start, end) of each position (positions, 2) of a text."""
        starts = np.arange(tokens, dtype=np.int64)
        levels = [np.stack([starts, starts + 1], axis=1)]
        for _ in self.blocks[1:]:
            above = levels[-1]
            groups = self._groups(len(above))
            levels.append(np.stack([above[groups[:, 0], 0], above[groups[:, 1] - 1, 1]], axis=1))
        return tuple(map(readonly, levels))

    def _groups(self, count: int) -> Integers:
        """The positions [start, end) (m, 2) of a level of so many that are pooled for each of the
        next; a single one, or [CLS] and one more, are not pooled."""
        if count <= 1 + self.separate_cls:
            starts = np.arange(count, dtype=np.int64)
            return np.stack([starts, starts + 1], axis=1)
        stop = count - (self.separate_cls and self.truncated)
        starts = np.arange(int(self.separate_cls), stop, 2, dtype=np.int64)
        pairs = np.stack([starts, np.minimum(starts + 2, stop)], axis=1)
        return np.concatenate([np.array([[0, 1]]), pairs]) if self.separate_cls else pairs


class TransformersConfig(Configuration, frozen=True, kw_only=True):
    """A model of transformers: the class `class_name`, which reads `data`, the
    config.json without ENTRY.

    uses_interface: whether it asks transformers for attention; else its softmaxes are observed.
    own_layers: its layers with the softmax of transformers. output_modules: by layer, the module of
    the output projection; output_weights: the name of its weights in the file; "" where unknown.
    transposed: weights that its class keeps transposed, by their names in the bare model.
    remaining: the heads of each layer after pruning, () of a model with all heads; hgviz_only: why
    no other program opens a pruned model, "" where transformers does. unattending: (name, parts) of
    layers that do not attend, as Mamba's. skipped_calls: the numbers of calls for attention that
    are no layers, since they attend to no text. pooling, patches: of a Funnel or a Byte Latent
    Transformer. cross: whether it is a decoder alone, which attends to states of an encoder.
    """

    class_name: str
    data: Mapping[str, Any]
    goal: Goal
    form: str
    labels: tuple[str, ...] = ()
    segments: int = 0
    modality: Modality = "text"
    uses_interface: bool = True
    own_layers: tuple[Layer, ...] = ()
    output_modules: tuple[str, ...] = ()
    output_weights: tuple[str, ...] = ()
    transposed: frozenset[str] = frozenset()
    remaining: tuple[RemainingHeads, ...] = ()
    hgviz_only: str = ""
    unattending: tuple[tuple[str, str], ...] = ()
    skipped_calls: frozenset[int] = frozenset()
    pooling: Pooling | None = None
    patches: Patches | None = None
    cross: bool = False
    activations: Any = ("softmax",)
    norms: Mapping[str, str] = {}
    top_k: Count | None = None

    @property
    def context_length(self) -> int | None:
        """The longest text that config.json says the model is made for, None where it says none."""
        text = self.data.get("text_config") or self.data
        length = text.get("max_position_embeddings")
        return length if isinstance(length, int) and length > 0 else None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The attention layers, in order of computation."""
        layers = []
        for layer in self.own_layers:
            count = self.remaining[layer.index].of if self.remaining else len(layer.heads)
            names = spread_activations(self.activations, layer.index, count)
            layers.append(replace(layer, activations=tuple(names[head] for head in layer.heads)))
        return tuple(layers)

    @property
    def n_heads(self) -> int:
        """The number of heads of a layer before pruning, to which activations are spread."""
        if self.remaining:
            return max(layer.of for layer in self.remaining)
        return max((len(layer.heads) for layer in self.own_layers), default=1)

    @property
    def d_head(self) -> int:
        """The width of a head."""
        stated = self.data.get("head_dim")
        return stated if isinstance(stated, int) and stated > 0 else self.d_model // self.n_heads

    @property
    def levels(self) -> tuple[Level, ...]:
        """The resolutions, full resolution first; the decoder's text comes second."""
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
        """Whether a decoder attends to another text, or to given states of an encoder."""
        return self.cross or self.form == "encoder-decoder"

    @property
    def unpadded(self) -> bool:
        """Whether the texts of a batch must have one length."""
        return self.family in UNPADDED

    @property
    def replaces_softmax(self) -> bool:
        """Whether its activations are others than in transformers."""
        return (tuple(self.activations), dict(self.norms)) != (("softmax",), {})

    @property
    def entry(self) -> Entry:
        """What its config.json says under ENTRY."""
        if not self.replaces_softmax:
            return Entry(self.remaining)
        return Entry(self.remaining, self.activations, dict(self.norms), self.top_k)

    def keys(self) -> dict[str, Any]:
        """The content of its config.json."""
        entry = self.entry.to_dict()
        return {**self.data, **({ENTRY: entry} if entry else {})}

    def spans(
        self, tokens: int, target: int = 0, boundaries: NDArray[np.bool_] | None = None
    ) -> tuple[Integers, ...]:
        """Per level, the tokens [start, end) of each position (positions, 2) of a text.

        boundaries (tokens,): the last bytes of patches; None: every byte.
        """
        if self.pooling is not None:
            return self.pooling.spans(tokens)
        if self.patches is not None:
            return self.patches.spans(tokens, boundaries)
        return own_spans(self.levels, source=tokens, target=target)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """The ModelSpec of a model with this configuration."""
        upsampling = ""
        if self.patches is not None:
            upsampling = "none"
        elif self.pooling is not None and self.form == "funnel" and len(self.levels) > 1:
            upsampling = "repeat"
        spec = super().spec(name, digest, parameters)
        return replace(spec, labels=self.labels, modality=self.modality, upsampling=upsampling)
