"""What a capture keeps of each layer of a pass: the factors of its map, or the weights themselves.

Shapes: H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.maps.rule import Rule
from hgviz.models.devices import free_memory
from hgviz.models.factors import factors, fill_empty_rows, to_numpy, value_norms
from hgviz.models.positions import Bias
from hgviz.models.run import AttentionCall, Observer, WeightedCall
from hgviz.models.weighing import Alike, alike, in_order, per_head, scored

CELLS = 1 << 20  # of all heads, weighed at a time


@dataclass(frozen=True, slots=True)
class DenseWeights:
    """The maps of one layer: values (heads, queries, keys) in the dtype of the model, bfloat16 as
    its bits; causal: row i has none right of column i; value_norms and mixture as in Factors.
    """

    values: NDArray[Any]
    signed: bool
    causal: bool
    value_norms: NDArray[Any] | None = None
    mixture: NDArray[Any] | None = None


class CaptureRecorder(Observer):
    """Hands over what a capture keeps of each layer while the pass goes on.

    on_layer(layer, found) is called with Factors, or with Weights where `dense` asks for them or no
    rule gives the weights of a layer.
    """

    def __init__(self, on_layer: Callable[[int, Any], None], dense: bool = False) -> None:
        self._on_layer, self._dense = on_layer, dense
        self.needs_row_sums = not dense

    def attended(self, call: AttentionCall, context: Tensor) -> Tensor | None:
        """Keep factors; or weights, and let the model go on with the context that they give."""
        found: Any
        real, replacement = call.without_padding(), None
        if self._dense:
            v = per_head(real.v, real.q.shape[1])
            replacement, found = attend_by_maps(
                real.q, real.k, v, real.rule, real.keep, real.relative
            )
        else:
            found = factors(real.q, real.k, real.rule, real.keep, real.relative, real.row_sums)
        mixture = None if call.mixture is None else to_numpy(call.mixture.detach().float())
        norms = _value_norms(real.v, call.output)
        self._on_layer(call.layer, replace(found, value_norms=norms, mixture=mixture))
        return replacement if real is call else None

    def weighted(self, call: WeightedCall, context: Tensor) -> None:
        """Keep the weights."""
        found = DenseWeights(to_numpy(call.weights[0]), call.signed, call.causal)
        norms = None if call.v is None else _value_norms(call.v, call.output)
        self._on_layer(call.layer, replace(found, value_norms=norms))


def _value_norms(v: Tensor, output: nn.Linear | None) -> Any:
    return None if output is None else to_numpy(value_norms(v, output.weight))


def attend_by_maps(
    q: Tensor, k: Tensor, v: Tensor, rule: Rule, keep: Tensor | None, relative: Bias | None
) -> tuple[Tensor, DenseWeights]:
    """Context (1, H, Q, D) of q (1, H, Q, D) over k, v (1, H, K, D), and the weights that gave it.

    Errors: HgvizError where the maps would not fit the memory.
    """
    if len(q) != 1:
        raise HgvizError(f"only one text can be captured at a time: got a batch of {len(q)}")
    shape = (*q.shape[:3], k.shape[2])
    _require_room(shape[1:], q.dtype.itemsize)
    uniform = keep is not None and rule.empty_rows == "uniform"
    maps, parts = torch.empty(shape, dtype=q.dtype), []
    # no row is summed in less than float32, as in fused kernels
    exact = torch.promote_types(q.dtype, torch.float32)
    terms = None if relative is None else relative.each(lambda part: part.to(exact))
    kinds = tuple(alike(q.to(exact), k.to(exact), rule, terms))
    step = max(1, CELLS // max(1, shape[1] * shape[3]))
    for rows in torch.arange(shape[2], device=q.device).split(step) if kinds else ():
        found = in_order(rule, [_weights(one, rows, keep) for one in kinds])
        if uniform:
            found = fill_empty_rows(found[0], rule, keep, rows)[None]
        found = found.to(q.dtype)
        parts.append(found @ v)
        maps[:, :, int(rows[0]) : int(rows[-1]) + 1] = found.detach()
    square = rule.stride_q == rule.stride_k and shape[2] == shape[3]
    signed = any(ACTIVATIONS[name].signed for name in rule.activations)
    context = torch.cat(parts, dim=2) if parts else torch.zeros_like(q)
    return context, DenseWeights(to_numpy(maps[0]), signed, rule.causal and square and not uniform)


def _weights(one: Alike, rows: Tensor, keep: Tensor | None) -> Tensor:
    return one.weigh(*scored(one, rows, keep))


def _require_room(shape: tuple[int, ...], itemsize: int) -> None:
    heads, queries, keys = shape
    needed, free = heads * queries * keys * itemsize, free_memory()
    if free is not None and needed > free:
        raise HgvizError(
            f"the maps of a layer take {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free: "
            f"{heads} heads have {queries:,} x {keys:,} weights",
            "Leave --dense out: q and k are kept then, from which any weight is computed",
        )
