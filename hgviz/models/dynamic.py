"""The dynamic-pooling Hourglass (Nawrot et al. 2023, arXiv 2211.09761): segments of unequal length.

A boundary is the last token of a segment; the model may predict boundaries itself. The mean of a
segment is added to the tokens from its last one on, so that no position sees a later token; tokens
after the last boundary are in no segment. Post-norm, Transformer-XL positions of distance i - j at
both levels. Shapes: B batch, n tokens, S segments, d width.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, cast

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.core import Integers, Layer, Level, ModelSpec, readonly
from hgviz.errors import require
from hgviz.models.layers import (
    NON_LINEARITIES,
    Attention,
    AttentionConfiguration,
    Count,
    FeedForward,
    Network,
    RelativeBiases,
    ResidualBlock,
    Tokens,
    as_tokens,
    own_spans,
)
from hgviz.models.run import Run

Boundaries = Literal["fixed", "whitespace", "entropy", "unigram", "learned"]
PREDICTED = ("entropy", "unigram", "learned")  # boundaries of a trained predictor
SPACE = 32  # as a byte
EPSILON = 1e-9  # added to the size of a segment

Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


# --- configuration --------------------------------------------------------------------------------


class DynamicConfig(AttentionConfiguration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Configuration of a dynamic-pooling Hourglass; the fields are the keys of config.json.

    n_layers: (before, middle, after): layers over tokens, over segments, over tokens; (n,) or
    (n, 0, 0): a plain Transformer. boundaries: "fixed": every shorten_factor-th token from the
    first on; "whitespace": the token whitespace_id (32 for bytes); "learned", "entropy", "unigram":
    predicted, by a network trained towards a share `prior` of tokens, towards spikes of the entropy
    of the model's predictions above the spikes_left tokens before, or towards the cuts of a
    tokenizer. temperature: of the relaxed samples in training ("learned").
    """

    n_layers: tuple[Annotated[int, msgspec.Meta(ge=0, le=1000)], ...]
    family: Literal["dynamic"] = "dynamic"
    boundaries: Boundaries = "learned"
    shorten_factor: Count = 2
    whitespace_id: Annotated[int, msgspec.Meta(ge=0, le=2**24)] | None = None
    spikes_left: Count = 2
    temperature: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 0.5
    prior: Share = 0.2
    feed_forward: Literal["relu", "gelu"] = "relu"

    def __post_init__(self) -> None:
        AttentionConfiguration.__post_init__(self)
        counts = self.n_layers
        if self.boundaries == "whitespace" and self.whitespace_id is None:
            self._set("whitespace_id", SPACE if self.vocab_size == 256 else None)
        space = self.whitespace_id
        self.refuse((
            (len(counts) not in (1, 3),
             "n_layers needs one number, or three: layers before, inside and after shortening"),
            (not sum(counts) or (len(counts) == 3 and not counts[1] and counts[2]),
             "n_layers needs at least one layer, and one inside if any come after"),
            (self.d_model % 2, f"relative positions need an even width, not {self.d_model}"),
            (self.boundaries == "whitespace" and space is None,
             "whitespace needs whitespace_id, the token that closes a segment"),
            (space is not None and space >= self.vocab_size,
             f"whitespace_id is {space}, but the largest id is {self.vocab_size - 1:,}"),
        ))  # fmt: skip

    @property
    def form(self) -> str:
        """The variant: "dynamic", or an empty string for a plain Transformer."""
        return "dynamic" if self.shortens else ""

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one: always true."""
        return True

    @property
    def shortens(self) -> bool:
        """Whether any layer reads segments."""
        return len(self.n_layers) == 3 and self.n_layers[1] > 0

    @property
    def predicts(self) -> bool:
        """Whether the model predicts boundaries."""
        return self.shortens and self.boundaries in PREDICTED

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The attention layers, in order of computation."""
        return tuple(
            self.layer(index, name=name, role="self", level=level, key_level=level, causal=True)
            for index, (name, level) in enumerate(self.layer_table())
        )

    def layer_table(self) -> list[tuple[str, int]]:
        """(name, level) of every attention layer, in order of computation."""
        if not self.shortens:
            return [(f"middle.{i}", 0) for i in range(sum(self.n_layers[:1]))]
        parts = zip(("pre.0", "middle", "post.0"), (0, 1, 0), self.n_layers, strict=True)
        return [(f"{name}.{i}", level) for name, level, count in parts for i in range(count)]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Level 0 is the tokens; level 1 the null group and the segments."""
        return (Level(0), Level(1, stride=None)) if self.shortens else (Level(0),)

    def spans(
        self, tokens: int, target: int = 0, boundaries: NDArray[np.bool_] | None = None
    ) -> tuple[Integers, ...]:
        """Per level, the tokens [start, end) of each position (positions, 2) of a text.

        boundaries (tokens,): True where a token closes a segment. The span of the null group is
        (-1, -1); tokens after the last boundary are in no segment.
        """
        full = own_spans((Level(0),), source=tokens)
        if not self.shortens:
            return full
        ends = np.flatnonzero(() if boundaries is None else boundaries) + 1
        starts = np.concatenate([[0], ends[:-1]])[: len(ends)]
        segments = np.stack([starts, ends], axis=1).astype(np.int64)
        return *full, readonly(np.concatenate([np.full((1, 2), -1, np.int64), segments]))

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """The ModelSpec of a model with this configuration."""
        upsampling = "repeat" if self.shortens else ""
        return replace(super().spec(name, digest, parameters), upsampling=upsampling)

    def build(self) -> Dynamic:
        """A model with this configuration and torch's initial weights."""
        return Dynamic(self)


# --- parts ----------------------------------------------------------------------------------------


class BackwardAttention(Attention):
    """Attention with relative positions i - j, from the query i back to the key j."""

    distance_sign = -1


class Block(ResidualBlock):
    """Post-norm self-attention and feed-forward."""

    norm_first = False

    def __init__(self, config: DynamicConfig, layer: Layer) -> None:
        super().__init__()
        rule, width = config.rule(layer), config.d_model
        self.attn = BackwardAttention(layer, rule, width, config.d_head, "relative")
        self.ln_attn, self.ln_ff = nn.LayerNorm(config.d_model), nn.LayerNorm(config.d_model)
        self.ff = FeedForward(config.d_model, config.d_ff, config.feed_forward)
        self.drop = nn.Dropout(0.0)  # training sets it

    def forward(self, x: Tensor, keep: Tensor | None, rel: RelativeBiases, run: Run) -> Tensor:
        """(B, n, d) -> (B, n, d)"""

        def compute(x: Tensor) -> Tensor:
            return self.finish(x + self.drop(self.attn(x, x, keep, rel, run)))

        return run.block(self.attn.layer.index, compute, x)


class Boundary(nn.ModuleDict):
    """Boundary predictor: a two-layer network from a state to a logit."""

    def __init__(self, config: DynamicConfig) -> None:
        width, inner = config.d_model, config.d_ff
        super().__init__({"in": nn.Linear(width, inner), "out": nn.Linear(inner, 1)})
        self.kind = config.feed_forward

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n) of states (B, n, d)"""
        return self["out"](NON_LINEARITIES[self.kind](self["in"](x)))[..., 0]


class Down(nn.Module):
    """Shorten (B, n, d) to the mean of each segment, after a learned null group."""

    def __init__(self, config: DynamicConfig) -> None:
        super().__init__()
        self.config = config
        self.null = nn.Parameter(torch.randn(config.d_model))
        self.ln = nn.LayerNorm(config.d_model)
        if config.predicts:
            self.boundary = Boundary(config)

    def boundaries(self, ids: Tensor, scores: Tensor | None) -> Tensor:
        """Boundaries (B, n), 1 where a token closes a segment, else 0.

        scores (B, n): logits of the predictor, None without one. In training, "learned" boundaries
        are sampled from a relaxed Bernoulli distribution (Maddison et al. 2017), with a
        straight-through gradient (Bengio et al. 2013).
        """
        dtype = self.null.dtype
        if self.config.boundaries == "whitespace":
            return torch.eq(ids, cast(int, self.config.whitespace_id)).to(dtype)
        if scores is None:
            positions = torch.arange(ids.shape[1], device=ids.device)
            return (positions % self.config.shorten_factor == 0).to(dtype).expand(ids.shape)
        if not (self.training and self.config.boundaries == "learned"):
            return (scores > 0).to(dtype)  # p > 1/2
        noise = torch.rand_like(scores).clamp(1e-6, 1 - 1e-6).logit()
        soft = torch.sigmoid((scores + noise) / self.config.temperature)
        return (soft > 0.5).to(dtype) + (soft - soft.detach())

    def forward(self, x: Tensor, closes: Tensor, keep: Tensor | None) -> Tensor:
        """x (B, n, d), closes (B, n), keep (B, n) -> (B, 1 + S, d), the null group first.

        S is the largest number of segments of a text; rows beyond those of a text are padding.
        """
        means = segment_means(x, closes, keep)
        return self.ln(torch.cat([self.null.expand(len(x), 1, -1), means], dim=1))


def segment_means(x: Tensor, closes: Tensor, keep: Tensor | None = None) -> Tensor:
    """(B, S, d): the mean of each segment of x (B, n, d); closes (B, n) is 1 where one ends.

    keep (B, n): False for padding, which is left out. Tokens after the last boundary are ignored.
    """
    segment = closes.cumsum(1) - closes  # the number of the segment of each token
    number = segment.detach().round().long()
    count = int(closes.detach().sum(1).max().round()) if closes.numel() else 0
    inside = number < count
    if keep is not None:
        inside = inside & keep
    exact = torch.promote_types(x.dtype, torch.float32)
    # the weight is 1; its gradient with respect to the boundaries is that of segment
    weight = (1 + (segment - segment.detach())).to(exact) * inside
    index = number.clamp(max=count)
    sizes = weight.new_zeros(len(x), count + 1).scatter_add(1, index, weight)
    sums = weight.new_zeros(len(x), count + 1, x.shape[2]).scatter_add(
        1, index[..., None].expand(x.shape), x.to(exact) * weight[..., None]
    )
    return (sums / (sizes + EPSILON)[..., None])[:, :count].to(x.dtype)


# --- model ----------------------------------------------------------------------------------------


class Dynamic(Network):
    """Token ids (B, n) -> logits (B, n, vocabulary) of the token after each position."""

    config: DynamicConfig

    def __init__(self, config: DynamicConfig) -> None:
        super().__init__(config)
        self.embed = nn.ModuleDict({"token": nn.Embedding(config.vocab_size, config.d_model)})
        self.drop = nn.Dropout(0.0)  # training sets it
        self.rel = RelativeBiases(config.n_heads, config.d_head)

        def stack(name: str) -> nn.ModuleList:
            layers = (layer for layer in config.layers if layer.name.startswith(name))
            return nn.ModuleList(Block(config, layer) for layer in layers)

        self.pre = nn.ModuleList([stack("pre.0")] if config.shortens else [])
        self.down = nn.ModuleList([Down(config)] if config.shortens else [])
        self.middle = stack("middle")
        self.post = nn.ModuleList([stack("post.0")] if config.shortens else [])
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> logits (B, n, vocabulary)"""
        tokens, run = as_tokens(tokens), run or Run()
        x = self._before(tokens, run)
        if not self.config.shortens:
            return self.lm_head(x)
        closes = self._closes(tokens, self._scores(tokens, x))
        return self._after(x, closes, tokens.keep, run)

    def boundaries(self, tokens: Tokens, run: Run | None = None) -> Tensor:
        """Boundaries bool (B, n): True where a token closes a segment."""
        run, scores = run or Run(), None
        if self.config.predicts and tokens.boundaries is None:
            scores = self._scores(tokens, self._before(tokens, run))
        return self._closes(tokens, scores) > 0.5

    def learn(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, n, vocabulary) of ids (B, n) in training, and the loss of the boundaries.

        "learned": -log Binomial(number of boundaries; n, prior) / n. "entropy": cross entropy with
        the spikes of the entropy of the predictions. Raises HgvizError for "unigram", whose
        tokenizer is not part of the model.
        """
        tokens, run, config = Tokens(ids), Run(), self.config
        x = self._before(tokens, run)
        if not config.shortens:
            return self.lm_head(x), x.new_zeros(())
        scores = self._scores(tokens, x)
        closes = self._closes(tokens, scores)
        logits = self._after(x, closes, None, run)
        if scores is None:
            return logits, x.new_zeros(())
        if config.boundaries == "entropy":
            with torch.no_grad():
                entropy = torch.distributions.Categorical(logits=logits.float()).entropy()
            spikes = find_spikes(entropy.cpu().numpy(), config.spikes_left)
            target = torch.from_numpy(spikes).to(scores)
            return logits, F.binary_cross_entropy_with_logits(scores, target)
        require(
            config.boundaries != "unigram",
            "unigram boundaries cannot be trained: "
            "they need a unigram tokenizer, which the model does not have",
            'Choose boundaries = "learned", "entropy", "whitespace" or "fixed"',
        )
        count = ids.shape[1]
        binomial = torch.distributions.Binomial(
            count, torch.tensor(config.prior, device=x.device), validate_args=False
        )
        return logits, -binomial.log_prob(closes.sum(1).float()).mean() / count

    def _before(self, tokens: Tokens, run: Run) -> Tensor:
        """States (B, n, d) after the layers before shortening."""
        x = self.embed_tokens(tokens)
        stack = self.pre[0] if self.config.shortens else self.middle
        return self._stack(stack, self.drop(x), tokens.keep, run)

    def _scores(self, tokens: Tokens, x: Tensor) -> Tensor | None:
        """Logits (B, n) of the boundary predictor, None without one or if tokens has boundaries."""
        if not self.config.predicts or tokens.boundaries is not None:
            return None
        return cast(Tensor, self._down.boundary(x))

    def _closes(self, tokens: Tokens, scores: Tensor | None) -> Tensor:
        """Boundaries (B, n), 1 or 0, those of tokens before those of the model; 0 for padding."""
        assert tokens.ids is not None
        if tokens.boundaries is None:
            closes = self._down.boundaries(tokens.ids, scores)
        else:
            closes = tokens.boundaries.to(self._down.null.dtype)
        return closes if tokens.keep is None else closes * tokens.keep

    def _after(self, x: Tensor, closes: Tensor, keep: Tensor | None, run: Run) -> Tensor:
        """Shorten x (B, n, d), upsample, and return logits (B, n, vocabulary)."""
        y = self._stack(self.middle, self._down(x, closes, keep), None, run)
        row = closes.detach().cumsum(1).round().long()  # c_t: segments closed by then
        x = x + y.gather(1, row[..., None].expand(x.shape))
        return self.lm_head(self._stack(self.post[0], x, keep, run))

    def _stack(self, blocks: nn.Module, x: Tensor, keep: Tensor | None, run: Run) -> Tensor:
        for block in cast("list[Block]", blocks):
            x = block(x, keep, self.rel, run)
        return x

    @property
    def _down(self) -> Down:
        return cast(Down, self.down[0])


def find_spikes(values: NDArray[Any], left: int) -> NDArray[np.bool_]:
    """bool (..., n): where values (..., n) exceed all of the up to `left` values before them."""
    spikes = np.ones(values.shape, bool)
    for distance in range(1, min(left, values.shape[-1] - 1) + 1):
        spikes[..., distance:] &= values[..., distance:] > values[..., :-distance]
    return spikes
