"""What an Hourglass is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hgviz.core import HgvizError, Integers, Layer, Level, ModelSpec
from hgviz.maps.rule import Rule
from hgviz.models.config.shared import (
    Keys,
    head_width,
    norms_of,
    require_even,
    require_kept,
    spread,
)
from hgviz.models.hierarchy import Hierarchy, level_spans, parse_hierarchy

Form = Literal["official", "windowed"]


class HourglassKeys(Keys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hierarchy: str
    family: Literal["hourglass"] = "hourglass"
    vanilla_layers: tuple[int, int] | None = None
    form: Literal["official", "windowed"] = "official"
    downsampling: Literal["average", "linear", "attention"] = "attention"
    upsampling: Literal["repeat", "linear", "attention"] = "attention"
    attention_downsampling: Literal["average", "linear"] = "average"
    attention_upsampling: Literal["repeat", "linear", "none"] = "linear"
    positions: Literal["learned", "relative", "rotary", "none"] = "relative"
    causal: bool = True
    masking: Literal["strict", "compat"] = "strict"
    kept: list[list[int]] = []

    def arguments(self) -> dict[str, Any]:
        """As the shared keys, the hierarchy read."""
        found = {**super().arguments(), "hierarchy": self._hierarchy()}
        del found["family"], found["vanilla_layers"]
        return found

    def _hierarchy(self) -> Hierarchy:
        return parse_hierarchy(self.hierarchy, self.vanilla_layers)


@dataclass(frozen=True, slots=True)
class HourglassConfig:
    """What an Hourglass is built from; the keys of config.json, with its defaults.

    downsampling: average | linear | attention; upsampling: repeat | linear | attention;
    attention_downsampling (average | linear) and attention_upsampling (repeat | linear | none) are
    the bases that resampling attention starts from. positions: learned | relative | rotary | none.
    activations: see spread; norms: {activation: l2 | l2-literal | none}; top_k: how many keys the
    activation topk keeps. masking "compat" computes masks as hourglass-transformer-pytorch does
    (models.md A.9). kept: the numbers of the heads that each layer still has, all where empty.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    hierarchy: Hierarchy
    form: Form = "official"
    d_head: int = 0
    d_ff: int = 0
    downsampling: Literal["average", "linear", "attention"] = "attention"
    upsampling: Literal["repeat", "linear", "attention"] = "attention"
    attention_downsampling: Literal["average", "linear"] = "average"
    attention_upsampling: Literal["repeat", "linear", "none"] = "linear"
    positions: Literal["learned", "relative", "rotary", "none"] = "relative"
    max_positions: int | None = None
    causal: bool = True
    activations: tuple[Any, ...] = ("softmax",)
    norms: Mapping[str, str] = field(default_factory=dict)
    top_k: int | None = None
    masking: Literal["strict", "compat"] = "strict"
    kept: tuple[tuple[int, ...], ...] = ()
    shift_offset: int = field(
        default=0, repr=False
    )  # added to the shift k - 1; tests show the leak

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_head", head_width(self.d_model, self.n_heads, self.d_head))
        object.__setattr__(self, "d_ff", self.d_ff or 4 * self.d_model)
        require_even(self.positions, self.d_head)
        if self.positions == "relative" and self.d_model % 2:
            raise HgvizError(f"relative positions need an even width, not {self.d_model}")
        if self.positions == "learned" and not self.max_positions:
            raise HgvizError("learned positions need max_positions, the longest text")
        require_kept(self.kept, len(self._places()), self.n_heads)

    @property
    def family(self) -> str:
        """What kind of model this is."""
        return "hourglass"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        found = []
        for index, (name, role, level, key_level, window) in enumerate(self._places()):
            heads = self.kept[index] if self.kept else tuple(range(self.n_heads))
            names = spread(self.activations, index, self.n_heads)
            found.append(
                Layer(
                    index, name, role, level, key_level, heads,
                    tuple(names[head] for head in heads),
                    self.causal and window is None, window,
                )
            )  # fmt: skip
        return tuple(found)

    def _places(self) -> list[tuple[str, Any, int, int, int | None]]:
        """(name, role, level, key level, window) of every layer that attends."""
        found: list[tuple[str, Any, int, int, int | None]] = []
        windowed, shape = self.form == "windowed", self.hierarchy
        for level, count in enumerate(shape.pre):
            found += [(f"pre.{level}.{i}", "self", level, level, None) for i in range(count)]
            if self.downsampling == "attention":
                window = shape.factors[level] if windowed else None
                found.append((f"down.{level}", "down", level + 1, level, window))
        inner = len(shape.pre)
        found += [(f"middle.{i}", "self", inner, inner, None) for i in range(shape.middle)]
        for level in reversed(range(len(shape.post))):
            if self.upsampling == "attention":
                window = shape.factors[level] if windowed else None
                found.append((f"up.{level}", "up", level, level + 1, window))
            count = shape.post[level]
            found += [(f"post.{level}.{i}", "self", level, level, None) for i in range(count)]
        return found

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full first."""
        shifts = (0, *((k - 1 if self.causal else 0) for k in self.hierarchy.factors))
        pairs = zip(self.hierarchy.strides, shifts, strict=True)
        return tuple(Level(i, stride, shift) for i, (stride, shift) in enumerate(pairs))

    def rule(self, layer: Layer) -> Rule:
        """How scores become weights in a layer."""
        strides = self.hierarchy.strides
        return Rule(
            scale=self.d_head**-0.5,
            activations=layer.activations,
            norms=norms_of(layer.activations, self.norms),
            top_k=self.top_k,
            stride_q=strides[layer.level],
            stride_k=strides[layer.key_level],
            causal=layer.causal,
            windowed=layer.window is not None,
            empty_rows="uniform" if self.masking == "compat" else "zeros",
        )

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """The tokens behind every position of every level, for a text of so many tokens."""
        return level_spans(tokens, self.hierarchy.strides, self.causal)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        base = self.attention_upsampling if self.upsampling == "attention" else self.upsampling
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.d_model, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form, upsampling=base,
        )  # fmt: skip
