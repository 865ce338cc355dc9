"""Masks that are rules: what transformers asks a mask for, without its numbers.

A `Mask` says which keys a query sees, and turns into numbers only where model code computes with
it. Shapes: B batch, Q queries, K keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

FAR = 1 << 30  # of a band that is open on one side


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Which keys a query sees: the fields of a Rule, and keep (B, K), False for padded keys."""

    causal: bool = False
    band: tuple[int, int] | None = None
    chunk: int | None = None
    keep: Tensor | None = None

    def both(self, other: MaskRule) -> MaskRule | None:
        """What two see in common; None where one number cannot say it."""
        bands = [one.band for one in (self, other) if one.band is not None]
        chunks = {one.chunk for one in (self, other) if one.chunk is not None}
        if len(chunks) > 1:
            return None
        keeps = [one.keep for one in (self, other) if one.keep is not None]
        keep = None if not keeps else keeps[0] if len(keeps) == 1 else keeps[0] & keeps[1]
        band = None
        if bands:
            band = min(one[0] for one in bands), min(one[1] for one in bands)
        return MaskRule(self.causal or other.causal, band, next(iter(chunks), None), keep)


def rule_of(function: Any) -> MaskRule | None:
    """What a function of transformers.masking_utils lets be seen; None for what is not known here.

    They are closures: their names say which, their cells of how many tokens.
    """
    name = getattr(function, "__qualname__", "").partition(".<locals>")[0]
    closure = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if closure else ()
    cells = {key: cell.cell_contents for key, cell in zip(names, closure, strict=True)}
    if name == "causal_mask_function":
        return MaskRule(causal=True)
    if name == "bidirectional_mask_function":
        return MaskRule()
    if name == "sliding_window_overlay":
        return MaskRule(band=(int(cells["sliding_window"]) - 1, FAR))
    if name == "sliding_window_bidirectional_overlay":
        return MaskRule(band=(int(cells["sliding_window"]),) * 2)
    if name == "chunked_overlay" and not bool(torch.as_tensor(cells["left_padding"]).any()):
        return MaskRule(chunk=int(cells["chunk_size"]))
    if name == "padding_mask_function":
        return MaskRule(keep=cells["padding_mask"].bool())
    if name != "and_masks":
        return None
    found: MaskRule | None = MaskRule()
    for one in map(rule_of, cells["mask_functions"]):
        found = None if found is None or one is None else found.both(one)
    return found


class Mask(torch.Tensor):
    """An additive mask (B, 1, Q, K) that holds no numbers, only how they are made (given)."""

    given: dict[str, Any]

    @staticmethod
    def __new__(cls, given: dict[str, Any], dtype: torch.dtype) -> Mask:
        shape = (given["batch_size"], 1, given["q_length"], given["kv_length"])
        made: Mask = torch.Tensor._make_wrapper_subclass(
            cls, shape, dtype=dtype, device=given["device"]
        )
        made.given = given
        return made

    @cached_property
    def rule(self) -> MaskRule | None:
        """The keys that these queries see; None where a Rule cannot say it."""
        found = rule_of(self.given["mask_function"])
        keep = self.given["attention_mask"]
        if found is not None and keep is not None:
            found = found.both(MaskRule(keep=keep.bool()))
        if int(self.given["q_offset"]) == 0:
            return found
        # the queries follow tokens whose keys are in a cache: a last one sees them all
        if self.given["q_length"] == 1 and found and found.band is None and found.chunk is None:
            return MaskRule(keep=found.keep)
        return seen(self.numbers())

    def numbers(self) -> Tensor:
        """0 where a key is seen, else the lowest number."""
        from transformers.masking_utils import eager_mask

        found: Tensor = eager_mask(
            dtype=self.dtype, allow_is_bidirectional_skip=False, **self.given
        )
        return found

    def __repr__(self, *, tensor_contents: Any = None) -> Any:  # type: ignore[override]
        return f"Mask{tuple(self.shape)}"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return args[0]

        def dense(value: Any) -> Any:
            if isinstance(value, Mask):
                return value.numbers()
            if isinstance(value, tuple | list):
                return type(value)(map(dense, value))
            return value

        return func(*dense(args), **{key: dense(one) for key, one in (kwargs or {}).items()})


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Any = None,
    attention_mask: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    use_vmap: bool = False,
    device: Any = "cpu",
    **_: Any,
) -> Tensor:
    """The registered function for masks; see transformers.masking_utils.eager_mask."""
    given = {
        "batch_size": batch_size, "q_length": q_length, "kv_length": kv_length,
        "q_offset": q_offset, "kv_offset": kv_offset, "mask_function": mask_function,
        "attention_mask": attention_mask, "use_vmap": use_vmap, "device": device,
    }  # fmt: skip
    return Mask(given, dtype)


def seen(mask: Tensor) -> MaskRule | None:
    """What a mask of numbers lets be seen, where all rows see the same keys, or those up to their
    own too; None for any other."""
    seen = mask if mask.dtype == torch.bool else mask > -1e4
    if mask.dtype != torch.bool and not ((mask == 0) | (mask <= -1e4)).all():
        return None
    if seen.dim() != 4 or not (seen == seen[:, :1]).all():
        return None
    queries, keys = seen.shape[-2:]
    keep = seen.any(-2)[:, 0]
    causal = queries == keys and not bool(seen[..., 0, 1:].any())
    wanted = keep[:, None, None].expand(seen.shape[0], 1, queries, keys)
    if causal:
        wanted = wanted.tril()
    return MaskRule(causal=causal, keep=keep) if torch.equal(wanted, seen[:, :1]) else None
