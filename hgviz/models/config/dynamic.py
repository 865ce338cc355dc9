"""What a dynamic-pooling Hourglass is built from (Nawrot et al. 2023, arXiv 2211.09761)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import HgvizError, Integers, Layer, Level, ModelSpec, readonly
from hgviz.maps.rule import Rule
from hgviz.models.config.shared import (
    Count,
    Keys,
    head_width,
    norms_of,
    require_kept,
    spread,
)

Boundaries = Literal["fixed", "whitespace", "entropy", "unigram", "learned"]
PREDICTED = ("entropy", "unigram", "learned")  # where the model has a predictor of its own
SPACE = 32  # the byte

Layers = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class DynamicKeys(Keys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    n_layers: list[Layers]
    family: Literal["dynamic"] = "dynamic"
    boundaries: Boundaries = "learned"
    shorten_factor: Count = 2
    whitespace_id: Annotated[int, msgspec.Meta(ge=0, le=2**24)] | None = None
    spikes_left: Count = 2
    temperature: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 0.5
    prior: Share = 0.2
    feed_forward: Literal["relu", "gelu"] = "relu"
    kept: list[list[int]] = []

    def arguments(self) -> dict[str, Any]:
        """As the shared keys; the family is the configuration's own."""
        found = super().arguments()
        del found["family"]
        return found


@dataclass(frozen=True, slots=True)
class DynamicConfig:
    """What a dynamic-pooling Hourglass is built from; the keys of config.json, with its defaults.

    n_layers: (before, between, after), how many layers read all tokens, segments, all tokens; (n,)
    or (n, 0, 0): none reads segments, a plain Transformer. boundaries: what closes a segment:
    "fixed", every shorten_factor-th token from the first on; "whitespace", the token whitespace_id
    (32 for bytes); "learned", "entropy" and "unigram": a small network that says it of every token,
    trained to close a share `prior` of them, as the entropy of the model's own answers rises above
    that of the spikes_left tokens before, or as a tokenizer cuts. temperature: of its relaxed
    choices while it is trained ("learned"). activations, norms, top_k, kept: as for an Hourglass.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    n_layers: tuple[int, ...]
    d_head: int = 0
    d_ff: int = 0
    boundaries: Boundaries = "learned"
    shorten_factor: int = 2
    whitespace_id: int | None = None
    spikes_left: int = 2
    temperature: float = 0.5
    prior: float = 0.2
    feed_forward: Literal["relu", "gelu"] = "relu"
    max_positions: int | None = None
    activations: tuple[Any, ...] = ("softmax",)
    norms: Mapping[str, str] = field(default_factory=dict)
    top_k: int | None = None
    kept: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_head", head_width(self.d_model, self.n_heads, self.d_head))
        object.__setattr__(self, "d_ff", self.d_ff or 4 * self.d_model)
        if self.boundaries == "whitespace" and self.whitespace_id is None:
            object.__setattr__(self, "whitespace_id", SPACE if self.vocab_size == 256 else None)
        self._require_sound()
        require_kept(self.kept, len(self._places()), self.n_heads)

    def _require_sound(self) -> None:
        counts, space = self.n_layers, self.whitespace_id
        wrong = (
            (len(counts) not in (1, 3),
             "n_layers needs three numbers, the layers before, between and after, or one"),
            (not sum(counts) or (len(counts) == 3 and not counts[1] and counts[2]),
             "n_layers needs a layer, and none comes after segments that no layer reads"),
            (self.d_model % 2, f"relative positions need an even width, not {self.d_model}"),
            (self.boundaries == "whitespace" and space is None,
             "whitespace needs whitespace_id, the token that closes a segment"),
            (space is not None and space >= self.vocab_size,
             f"whitespace_id is {space}, and ids end at {self.vocab_size - 1:,}"),
        )  # fmt: skip
        for failed, why in wrong:
            if failed:
                raise HgvizError(f"this model cannot be built: {why}", "Correct its configuration")

    @property
    def family(self) -> str:
        """What kind of model this is."""
        return "dynamic"

    @property
    def form(self) -> str:
        """How it resamples: by segments whose ends it finds, or not at all."""
        return "dynamic" if self.shortens else ""

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one: always."""
        return True

    @property
    def shortens(self) -> bool:
        """Whether any layer reads segments."""
        return len(self.n_layers) == 3 and self.n_layers[1] > 0

    @property
    def predicts(self) -> bool:
        """Whether a network of its own says where segments end."""
        return self.shortens and self.boundaries in PREDICTED

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        found = []
        for index, (name, level) in enumerate(self._places()):
            heads = self.kept[index] if self.kept else tuple(range(self.n_heads))
            names = spread(self.activations, index, self.n_heads)
            chosen = tuple(names[head] for head in heads)
            found.append(Layer(index, name, "self", level, level, heads, chosen, causal=True))
        return tuple(found)

    def _places(self) -> list[tuple[str, int]]:
        """(name, level) of every layer that attends."""
        if not self.shortens:
            return [(f"middle.{i}", 0) for i in range(self.n_layers[0])]
        parts = zip(("pre.0", "middle", "post.0"), (0, 1, 0), self.n_layers, strict=True)
        return [(f"{name}.{i}", level) for name, level, count in parts for i in range(count)]

    @property
    def levels(self) -> tuple[Level, ...]:
        """All tokens, then the null group and the segments."""
        return (Level(0), Level(1, stride=None)) if self.shortens else (Level(0),)

    def rule(self, layer: Layer) -> Rule:
        """How scores become weights in a layer."""
        return Rule(
            scale=self.d_head**-0.5,
            activations=layer.activations,
            norms=norms_of(layer.activations, self.norms),
            top_k=self.top_k,
            causal=True,
        )

    def spans(
        self, tokens: int, target: int = 0, boundaries: NDArray[np.bool_] | None = None
    ) -> tuple[Integers, ...]:
        """The tokens behind every position of every level, for a text of so many tokens.

        boundaries (tokens,): True where a token closes a segment. The null group has none, and what
        comes after the last boundary is in no segment.
        """
        own = np.arange(tokens, dtype=np.int64)
        every = readonly(np.stack([own, own + 1], axis=1))
        if not self.shortens:
            return (every,)
        ends = own[:0] if boundaries is None else np.flatnonzero(boundaries) + 1
        starts = np.concatenate([[0], ends[:-1]])[: len(ends)]
        segments = np.stack([starts, ends], axis=1).astype(np.int64)
        return every, readonly(np.concatenate([np.full((1, 2), -1, np.int64), segments]))

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.d_model, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form,
            upsampling="repeat" if self.shortens else "",
        )  # fmt: skip
