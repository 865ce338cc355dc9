"""What the configurations of all families share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError, Integers, Level, readonly
from hgviz.maps.rule import Norm

Count = Annotated[int, msgspec.Meta(ge=1, le=2**24)]
Width = Annotated[int, msgspec.Meta(ge=1, le=2**20)]
Heads = Annotated[int, msgspec.Meta(ge=1, le=2**12)]
Chosen = Annotated[int, msgspec.Meta(ge=0, le=2**20)]  # 0: from the other widths
Depth = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Sizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What config.json says of every family; what is left out has the Config's default."""

    vocab_size: Count
    d_model: Width
    model_type: Literal["hgviz"] = "hgviz"
    max_positions: Count | None = None

    def arguments(self) -> dict[str, Any]:
        """What the configuration is made of: these keys, lists as tuples."""
        found = {name: _frozen(getattr(self, name)) for name in self.__struct_fields__}
        del found["model_type"]
        return found


class Keys(Sizes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What it says of families that attend."""

    n_heads: Heads
    d_head: Chosen = 0
    d_ff: Chosen = 0
    activations: str | list[str | list[str]] = "softmax"
    norms: dict[str, str] = {}
    top_k: Count | None = None

    def arguments(self) -> dict[str, Any]:
        """As of all families, one activation as a list of it."""
        found = super().arguments()
        if isinstance(self.activations, str):
            found["activations"] = (self.activations,)
        return found


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def spread(activations: tuple[Any, ...], layer: int, heads: int) -> tuple[str, ...]:
    """The activation of each head of a layer, from what config.json says.

    One name for the model, a list for the heads of every layer, or one list per layer. A list
    shorter than the heads goes over them in equal blocks (models.md B.3).
    """
    given = activations
    if given and not isinstance(given[0], str):
        given = given[layer]
    return tuple(given[head * len(given) // heads] for head in range(heads))


def own_spans(levels: Iterable[Level], **sizes: int) -> tuple[Integers, ...]:
    """(positions, 2) of each level, whose sequence has so many: each stands for itself."""
    ends = [np.arange(sizes[level.sequence], dtype=np.int64) for level in levels]
    return tuple(readonly(np.stack([end, end + 1], axis=1)) for end in ends)


def norms_of(names: tuple[str, ...], norms: Mapping[str, str]) -> tuple[Norm, ...]:
    """The norm of each head's scores: what norms says of its activation, else what goes with it."""
    # names nobody knows are refused later, in words
    own = {name: row.norm or "none" for name, row in ACTIVATIONS.items()}
    found = [norms.get(name, own.get(name, "none")) for name in names]
    return tuple(None if norm == "none" else norm for norm in found)  # type: ignore[misc]


def head_width(d_model: int, n_heads: int, d_head: int) -> int:
    """d_head, or the width over the heads. Raises HgvizError where that is no whole number."""
    if not d_head and d_model % n_heads:
        raise HgvizError(
            f"{n_heads} heads do not divide the width {d_model}: "
            f"{d_model} / {n_heads} is not a whole number",
            "Change n_heads or d_model, or give d_head",
        )
    return d_head or d_model // n_heads


def require_kept(kept: tuple[tuple[int, ...], ...], layers: int, heads: int) -> None:
    if kept and len(kept) != layers:
        why = f"kept needs the heads of each of the {layers} layers that attend"
    elif any([*one] != sorted({*one} & {*range(heads)}) for one in kept):
        why = f"kept lists the numbers of heads, each once, from 0 to {heads - 1}"
    else:
        return
    raise HgvizError(f"this model cannot be built: {why}", "Correct its configuration")


def require_even(positions: str, d_head: int) -> None:
    if positions == "rotary" and d_head % 2:
        raise HgvizError(
            f"rotary positions cannot turn heads of width {d_head}: they turn pairs of numbers",
            "Choose an even width per head",
        )
