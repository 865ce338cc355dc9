"""What an Hourglass is built from: the keys of config.json, and the layers they make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from hgviz.core import HgvizError, Layer, Level
from hgviz.maps.rule import Rule
from hgviz.models.hierarchy import Hierarchy

Form = Literal["official", "windowed"]


@dataclass(frozen=True, slots=True)
class HourglassConfig:
    """What an Hourglass is built from; the keys of config.json, with its defaults.

    downsampling: average | linear | attention; upsampling: repeat | linear | attention;
    attention_downsampling (average | linear) and attention_upsampling (repeat | linear | none) are
    the bases that resampling attention starts from. positions: learned | relative | rotary | none.
    activations: one name for the model, one per head, or one list per layer.
    masking "compat" computes masks as hourglass-transformer-pytorch does (models.md A.9).
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
    masking: Literal["strict", "compat"] = "strict"
    shift_offset: int = field(
        default=0, repr=False
    )  # added to the shift k - 1; tests show the leak

    def __post_init__(self) -> None:
        if not self.d_head:
            if self.d_model % self.n_heads:
                raise HgvizError(
                    f"{self.n_heads} heads do not divide the width {self.d_model}",
                    f"{self.d_model} / {self.n_heads} is not a whole number",
                    "Change n_heads or d_model, or give d_head",
                )
            object.__setattr__(self, "d_head", self.d_model // self.n_heads)
        if not self.d_ff:
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        if self.positions == "rotary" and self.d_head % 2:
            raise HgvizError(
                f"rotary positions cannot turn heads of width {self.d_head}",
                "they turn pairs of numbers",
                "Choose an even width per head",
            )
        if self.positions == "relative" and self.d_model % 2:
            raise HgvizError(f"relative positions need an even width, not {self.d_model}")
        if self.positions == "learned" and not self.max_positions:
            raise HgvizError("learned positions need max_positions, the longest text")

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        found: list[Layer] = []

        def add(name: str, role: Any, level: int, key_level: int, window: int | None) -> None:
            heads, index = self.n_heads, len(found)
            causal = self.causal and window is None
            found.append(
                Layer(
                    index, name, role, level, key_level, tuple(range(heads)),
                    self._activations(index), causal, window,
                )
            )  # fmt: skip

        windowed = self.form == "windowed"
        shape = self.hierarchy
        for level, count in enumerate(shape.pre):
            for i in range(count):
                add(f"pre.{level}.{i}", "self", level, level, None)
            if self.downsampling == "attention":
                window = shape.factors[level] if windowed else None
                add(f"down.{level}", "down", level + 1, level, window)
        for i in range(shape.middle):
            add(f"middle.{i}", "self", len(shape.pre), len(shape.pre), None)
        for level in reversed(range(len(shape.post))):
            if self.upsampling == "attention":
                window = shape.factors[level] if windowed else None
                add(f"up.{level}", "up", level, level + 1, window)
            for i in range(shape.post[level]):
                add(f"post.{level}.{i}", "self", level, level, None)
        return tuple(found)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full first."""
        shifts = (0, *((k - 1 if self.causal else 0) for k in self.hierarchy.factors))
        pairs = zip(self.hierarchy.strides, shifts, strict=True)
        return tuple(Level(i, stride, shift) for i, (stride, shift) in enumerate(pairs))

    def _activations(self, index: int) -> tuple[str, ...]:
        given = self.activations
        if given and not isinstance(given[0], str):
            given = given[index]
        return tuple(given) if len(given) > 1 else tuple(given) * self.n_heads

    def rule(self, layer: Layer) -> Rule:
        """How scores become weights in a layer."""
        strides = self.hierarchy.strides
        return Rule(
            scale=self.d_head**-0.5,
            activations=layer.activations,
            norms=tuple("l2" if name == "ymish" else None for name in layer.activations),
            stride_q=strides[layer.level],
            stride_k=strides[layer.key_level],
            causal=layer.causal,
            windowed=layer.window is not None,
            empty_rows="uniform" if self.masking == "compat" else "zeros",
        )
