"""What the heads of each layer compare tokens by: the products W_QK of queries and keys.

Shapes: H heads, R terms (H D of ordinary heads), d width.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.core import Layer
from hgviz.models.families import outline
from hgviz.models.layers import Attention
from hgviz.models.tensors import Checkpoint

if TYPE_CHECKING:
    from hgviz.models.model import Model

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Products:
    """W_QK of the heads of a layer, q^T diag(mix_h) k: q (R, d), mix (H, R), k (R, d), float64.

    width: how wide the queries of all its heads are together, H D. notes: what W_QK leaves out.
    """

    layer: Layer
    q: Array
    mix: Array
    k: Array
    width: int
    notes: tuple[str, ...] = ()


def checkpoint_of(model: Model) -> Checkpoint:
    """An open model as the checkpoint it was read from; of its weights nothing is copied."""
    tensors = dict(model.module.state_dict())
    return Checkpoint(model.config, tensors, model.spec.digest, Path())


def products(found: Checkpoint) -> tuple[Products, ...]:
    """Those of every layer that has heads and makes scores of queries and keys."""
    modules = outline(found.config).named_modules()
    layers = [(part, name) for name, part in modules if isinstance(part, Attention)]
    made = []
    for part, name in sorted(layers, key=lambda one: one[0].layer.index):
        heads, width = len(part.layer.heads), part.d_head
        if not heads or f"{name}.k.weight" not in found.tensors:
            continue
        q, k = (_numbers(found.tensors[f"{name}.{side}.weight"]) for side in "qk")
        shared = found.tensors.get(f"{name}.mix")
        mix = np.repeat(np.eye(heads), width, axis=1) if shared is None else _numbers(shared)
        made.append(Products(part.layer, q, mix, k, heads * width, _notes(part)))
    return tuple(made)


def _numbers(tensor: Tensor) -> Any:
    return tensor.detach().double().cpu().numpy()


def _notes(part: Attention) -> tuple[str, ...]:
    said = {
        "queries and keys are as they are before rotary positions turn them": part.rotary,
        "scores by positions come on top": part.relative or part.places is not None,
        "other scores are mixed in": part.synthesis is not None,
        "linear attention weighs features of them": any(
            ACTIVATIONS[name].features for name in part.rule.activations
        ),
    }
    return tuple(words for words, holds in said.items() if holds)
