"""What a Funnel-Transformer is built from (Dai et al. 2020, arXiv 2006.03236)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from hgviz.core import Goal, HgvizError, Integers, Layer, Level, ModelSpec, readonly
from hgviz.maps.rule import Rule
from hgviz.models.config.shared import Depth, Keys, head_width, norms_of, require_kept, spread

KINDS, CLS = 3, 2  # token types: those of two texts, and [CLS]'s, which is the same as any
MOST_BLOCKS = 16

Decoders = Annotated[int, msgspec.Meta(ge=0, le=1000)]


class FunnelKeys(Keys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    n_layers: list[Depth]
    family: Literal["funnel"] = "funnel"
    form: Literal["funnel", "base"] = "funnel"
    decoder_layers: Decoders = 0
    pooling: Literal["mean", "max"] = "mean"
    pool_queries: bool = True
    apart: bool = True
    truncated: bool = True
    feed_forward: Literal["gelu", "gelu_tanh", "relu", "silu"] = "gelu_tanh"
    norm_eps: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1e-9
    goal: Literal["masked", "classes", "states"] = "states"
    labels: list[str] = []
    tied: bool = True
    kept: list[list[int]] = []

    def arguments(self) -> dict[str, Any]:
        """As the shared keys; the family is the configuration's own."""
        found = super().arguments()
        del found["family"]
        return found


@dataclass(frozen=True, slots=True)
class FunnelConfig:
    """What a Funnel-Transformer is built from; the keys of config.json, with its defaults.

    n_layers: of each block; between two blocks the text is pooled by two. form: "funnel", whose
    decoder of decoder_layers spreads the last block's positions over the tokens again and adds what
    the first block gave; "base", which gives the last block's positions. pooling: what a
    position is of the two above it. pool_queries: the first layer of a block looks from the pooled
    positions at those above; else its keys are pooled as well. apart: the first token, [CLS], stays
    a position of its own on every level; truncated: each pooling then leaves the last position out.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    n_layers: tuple[int, ...]
    form: Literal["funnel", "base"] = "funnel"
    decoder_layers: int = 0
    d_head: int = 0
    d_ff: int = 0
    pooling: Literal["mean", "max"] = "mean"
    pool_queries: bool = True
    apart: bool = True
    truncated: bool = True
    feed_forward: Literal["gelu", "gelu_tanh", "relu", "silu"] = "gelu_tanh"
    norm_eps: float = 1e-9
    max_positions: int | None = None
    activations: tuple[Any, ...] = ("softmax",)
    norms: Mapping[str, str] = field(default_factory=dict)
    top_k: int | None = None
    goal: Goal = "states"
    labels: tuple[str, ...] = ()
    tied: bool = True
    kept: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_head", head_width(self.d_model, self.n_heads, self.d_head))
        object.__setattr__(self, "d_ff", self.d_ff or 4 * self.d_model)
        wrong = (
            (not 1 <= len(self.n_layers) <= MOST_BLOCKS,
             f"n_layers needs a number for each block, of which there are 1 to {MOST_BLOCKS}"),
            (self.d_model % 2, f"relative positions need an even width, not {self.d_model}"),
            (self.goal == "classes" and not self.labels, "a classifier has labels"),
            (self.goal == "masked" and self.form == "base",
             "only with its decoder it has a position for every masked token"),
            (self.decoder_layers and self.form == "base",
             "a model without its decoder has no decoder_layers"),
        )  # fmt: skip
        for failed, why in wrong:
            if failed:
                raise HgvizError("this model cannot be built", why, "Correct its configuration")
        require_kept(self.kept, len(self._places()), self.n_heads)

    @property
    def family(self) -> str:
        """What kind of model this is."""
        return "funnel"

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one: never."""
        return False

    @property
    def segments(self) -> int:
        """How many token types it tells apart."""
        return KINDS

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        found = []
        for index, (name, level, key_level) in enumerate(self._places()):
            heads = self.kept[index] if self.kept else tuple(range(self.n_heads))
            names = spread(self.activations, index, self.n_heads)
            role: Literal["self", "down"] = "self" if level == key_level else "down"
            chosen = tuple(names[head] for head in heads)
            found.append(Layer(index, name, role, level, key_level, heads, chosen, causal=False))
        return tuple(found)

    def _places(self) -> list[tuple[str, int, int]]:
        """(name, level, key level) of every layer that attends."""
        found, last = [], len(self.n_layers) - 1
        for block, count in enumerate(self.n_layers):
            stack = "middle" if block == last else f"pre.{block}"
            for i in range(count):
                down = block and not i and self.pool_queries
                name = f"down.{block - 1}" if down else f"{stack}.{i}"
                found.append((name, block, block - 1 if down else block))
        return found + [(f"post.0.{i}", 0, 0) for i in range(self.decoder_layers)]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full first."""
        return tuple(
            Level(i, 2**i, apart=int(self.apart and i > 0)) for i in range(len(self.n_layers))
        )

    def rule(self, layer: Layer) -> Rule:
        """How scores become weights in a layer."""
        return Rule(
            scale=self.d_head**-0.5,
            activations=layer.activations,
            norms=norms_of(layer.activations, self.norms),
            top_k=self.top_k,
            stride_q=2**layer.level,
            stride_k=2**layer.key_level,
        )

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

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """The tokens behind every position of every level, for a text of so many tokens."""
        own = np.arange(tokens, dtype=np.int64)
        found = [np.stack([own, own + 1], axis=1)]
        for _ in self.n_layers[1:]:
            above, groups = found[-1], self.groups(len(found[-1]))
            found.append(np.stack([above[groups[:, 0], 0], above[groups[:, 1] - 1, 1]], axis=1))
        return tuple(map(readonly, found))

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.d_model, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form, goal=self.goal, labels=self.labels,
            upsampling="repeat" if self.form == "funnel" and len(self.n_layers) > 1 else "",
        )  # fmt: skip
