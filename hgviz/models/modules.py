"""Queries and keys of any torch module, by the names of its projections."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from hgviz.errors import require


def layers_of_module(
    module: nn.Module,
    inputs: Any,
    q: str,
    k: str,
    head_width: int,
    causal: bool = False,
) -> list[dict[str, Any]]:
    """Run a module once and return the queries and keys of its layers, as write_capture takes them.

    inputs: what it is called with: a tensor, or a dict of tensors by argument. q, k: the names of
    the projections, with * for the layer; each returns (1, n, heads * head_width), or fewer heads
    of keys. causal: whether later keys are masked. Raises HgvizError.
    """
    queries, keys = _modules_like(module, q, "q"), _modules_like(module, k, "k")
    require(
        len(queries) == len(keys),
        f"q and k must name equally many modules: {q!r} names {len(queries)}, {k!r} {len(keys)}",
    )
    require(head_width > 0, "head_width is missing", "Give head_width, such as 64")
    found: dict[nn.Module, Tensor] = {}

    def keep(one: nn.Module, _: Any, output: Tensor) -> None:
        found[one] = output

    with ExitStack() as hooks, torch.inference_mode():
        for one in (*queries.values(), *keys.values()):
            hooks.callback(one.register_forward_hook(keep).remove)
        module(**inputs) if isinstance(inputs, Mapping) else module(inputs)
    return [
        {
            "q": _by_head(found, one, head_width), "k": _by_head(found, other, head_width),
            "causal": causal, "name": name,
        }
        for (name, one), other in zip(queries.items(), keys.values(), strict=True)
    ]  # fmt: skip


def _modules_like(module: nn.Module, pattern: str, side: str) -> dict[str, nn.Module]:
    """The modules whose names a pattern with * names, in the order they stand in."""
    found = {name: one for name, one in module.named_modules() if fnmatchcase(name, pattern)}
    require(
        found,
        f"{type(module).__name__} has no module named {pattern!r}",
        f'Give the name of its {side} projections, with * for the layer: {side}="layers.*.{side}"',
    )
    return found


def _by_head(found: Mapping[nn.Module, Tensor], one: nn.Module, width: int) -> Any:
    """What a projection returned, as (heads, n, width)."""
    output = found.get(one)
    shape = None if output is None else tuple(output.shape)
    fits = shape is not None and len(shape) == 3 and shape[0] == 1 and shape[2] % width == 0
    require(
        fits,
        f"a projection returned {shape}, not (1, n, heads * {width})",
        "Run the module on one text, and check head_width",
    )
    assert output is not None
    return output[0].unflatten(-1, (-1, width)).transpose(0, 1).float().cpu().numpy()
