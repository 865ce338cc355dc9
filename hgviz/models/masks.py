"""Attention masks of transformers as rules.

A `Mask` says which keys a query sees, and becomes numbers only where model code computes with it.

Shapes: B batch, Q queries, K keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

UNBOUNDED = 1 << 30  # of a band that is open on one side
HIDDEN = -1e4  # numbers in masks up to this one hide a key


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Which keys a query sees: the fields of a Rule, and keep (B, K), False for padding."""

    causal: bool = False
    band: tuple[int, int] | None = None
    chunk: int | None = None
    keep: Tensor | None = None

    def intersect(self, other: MaskRule) -> MaskRule | None:
        """The keys that both let a query see; None where their chunks differ."""
        bands = [rule.band for rule in (self, other) if rule.band is not None]
        chunks = {rule.chunk for rule in (self, other) if rule.chunk is not None}
        keep = self.keep if other.keep is None else other.keep
        if self.keep is not None and other.keep is not None:
            keep = self.keep & other.keep
        if len(chunks) > 1:
            return None
        band = (min(b for b, _ in bands), min(a for _, a in bands)) if bands else None
        return MaskRule(self.causal or other.causal, band, next(iter(chunks), None), keep)


# by the function of transformers.masking_utils that makes a mask, the rule of its variables
RULES: dict[str, Callable[[dict[str, Any]], MaskRule | None]] = {
    "causal_mask_function": lambda cells: MaskRule(causal=True),
    "bidirectional_mask_function": lambda cells: MaskRule(),
    "sliding_window_overlay": lambda cells: MaskRule(
        band=(int(cells["sliding_window"]) - 1, UNBOUNDED)
    ),
    "sliding_window_bidirectional_overlay": lambda cells: MaskRule(
        band=(int(cells["sliding_window"]),) * 2
    ),
    "chunked_overlay": lambda cells: (
        None
        if bool(torch.as_tensor(cells["left_padding"]).any())
        else MaskRule(chunk=int(cells["chunk_size"]))
    ),
    "padding_mask_function": lambda cells: MaskRule(keep=cells["padding_mask"].bool()),
    "and_masks": lambda cells: _intersection(map(rule_of_function, cells["mask_functions"])),
}


def rule_of_function(function: Any) -> MaskRule | None:
    """The rule of a mask function of transformers; None for one that no MaskRule says.

    Mask functions are closures: their names are in RULES, their variables hold sizes.
    """
    name = getattr(function, "__qualname__", "").partition(".<locals>")[0]
    closure = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if closure else ()
    cells = {key: cell.cell_contents for key, cell in zip(names, closure, strict=True)}
    return RULES[name](cells) if name in RULES else None


def _intersection(rules: Any) -> MaskRule | None:
    common: MaskRule | None = MaskRule()
    for rule in rules:
        common = None if common is None or rule is None else common.intersect(rule)
    return common


def rule_of_mask(mask: Tensor | MaskRule) -> MaskRule | None:
    """The rule of a mask (B, 1, Q, K), or None.

    Of numbers or bool, rows must see all keys that are kept, or those up to their own.
    """
    if isinstance(mask, Mask | MaskRule):
        return mask.rule if isinstance(mask, Mask) else mask
    visible = mask if mask.dtype == torch.bool else mask > HIDDEN
    if mask.dtype != torch.bool and not ((mask == 0) | ~visible).all():
        return None
    if visible.dim() != 4 or not (visible == visible[:, :1]).all():
        return None
    queries, keys = visible.shape[-2:]
    keep = visible.any(-2)[:, 0]
    causal = queries == keys and not bool(visible[..., 0, 1:].any())
    expected = keep[:, None, None].expand(len(visible), 1, queries, keys)
    expected = expected.tril() if causal else expected
    return MaskRule(causal, keep=keep) if torch.equal(expected, visible[:, :1]) else None


class Mask(torch.Tensor):
    """An additive mask (B, 1, Q, K) without numbers: only the arguments that make it."""

    arguments: dict[str, Any]

    @staticmethod
    def __new__(cls, arguments: dict[str, Any], dtype: torch.dtype) -> Mask:
        shape = (arguments["batch_size"], 1, arguments["q_length"], arguments["kv_length"])
        mask: Mask = torch.Tensor._make_wrapper_subclass(
            cls, shape, dtype=dtype, device=arguments["device"]
        )
        mask.arguments = arguments
        return mask

    @cached_property
    def rule(self) -> MaskRule | None:
        """The keys that queries see; None where a MaskRule cannot say it."""
        rule, keep = (
            rule_of_function(self.arguments["mask_function"]),
            self.arguments["attention_mask"],
        )
        if rule is not None and keep is not None:
            rule = rule.intersect(MaskRule(keep=keep.bool()))
        if int(self.arguments["q_offset"]) == 0:
            return rule
        # the queries follow tokens whose keys are in a cache: a single one sees them all
        if self.arguments["q_length"] == 1 and rule and rule.band is None and rule.chunk is None:
            return MaskRule(keep=rule.keep)
        return rule_of_mask(self.numbers())

    def numbers(self) -> Tensor:
        """0 where a key is seen, else the lowest number."""
        from transformers.masking_utils import eager_mask

        numbers: Tensor = eager_mask(
            dtype=self.dtype, allow_is_bidirectional_skip=False, **self.arguments
        )
        return numbers

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

        return func(*dense(args), **{key: dense(value) for key, value in (kwargs or {}).items()})


def mask(
    batch_size: int, q_length: int, kv_length: int, dtype: torch.dtype = torch.float32, **more: Any
) -> Mask:
    """The registered function for masks; arguments as of transformers.masking_utils.eager_mask."""
    optional = {
        "q_offset": 0, "kv_offset": 0, "mask_function": None, "attention_mask": None,
        "use_vmap": False, "device": "cpu",
    }  # fmt: skip
    arguments = {key: more.get(key, default) for key, default in optional.items()}
    sizes = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length}
    return Mask(sizes | arguments, dtype)
