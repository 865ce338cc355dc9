"""A model whose heads share their queries and keys, made of one whose heads do not.

Of softmax and every other function of scores alike: with W_Q and W_K as they are, side by side, and
each head mixing its own part of them alone, all scores stay what they were (Cordonnier, Loukas and
Jaggi 2020, section 4). Biases meet tokens: c_h = W_K^(h)T b_Q^(h), b_h = W_Q^(h)T b_K^(h) and
e_h = b_Q^(h) . b_K^(h). Fewer terms leave the biases exact. Shapes: H heads, R terms, D head width,
d width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError, Layer
from hgviz.models.blocks import Attention
from hgviz.models.config import TransformerConfig
from hgviz.models.formats.checkpoint import Checkpoint, digest_of, outline

if TYPE_CHECKING:
    from hgviz.models.model import Model

Array = NDArray[np.float64]
Given = tuple[Array, Array, Array]  # q (R, d), mix (H, R), k (R, d)


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
    made = []
    for part, name in _parts(found):
        layer, heads, width = part.layer, len(part.layer.heads), part.d_head
        if not heads or f"{name}.k.weight" not in found.tensors:
            continue
        q, k = (_numbers(found.tensors[f"{name}.{one}.weight"]) for one in "qk")
        shared = found.tensors.get(f"{name}.mix")
        mix = np.repeat(np.eye(heads), width, axis=1) if shared is None else _numbers(shared)
        made.append(Products(layer, q, mix, k, heads * width, _notes(part)))
    return tuple(made)


def require_shareable(found: Checkpoint, width: int) -> int:
    """How many terms a layer is to have: width, or for 0 as many as change nothing.

    Errors: HgvizError for a model whose scores are more than products, and for too many terms.
    """
    config = found.config
    if not isinstance(config, TransformerConfig):
        raise _not_shared(f"models of the family {config.family} are not built from such heads")
    whole = max((one.mix.shape[1] for one in products(found)), default=0)
    if not whole:
        raise _not_shared("its layers are without queries and keys to share")
    try:
        replace(config, shared_width=whole)
    except HgvizError as error:
        raise _not_shared(error.why) from None
    if config.shared_width and not 0 < width < whole:
        raise HgvizError(
            "the heads of this model share their queries and keys already",
            f"each of its layers has {whole:,} terms",
            "Give a smaller --width",
        )
    if width > whole:
        raise HgvizError(
            f"no layer of this model needs {width:,} terms",
            f"with {whole:,} its heads are exactly what they were",
            f"Give a --width up to {whole:,}, or none",
        )
    return width or whole


def shared(found: Checkpoint, width: int, given: Sequence[Given | None]) -> Checkpoint:
    """The checkpoint with heads that share so many terms, zeros where a layer has fewer.

    given: the terms of each of products, None for those that they have.
    """
    tensors = dict(found.tensors)
    every = {one.layer.index: (one.mix, each)
             for one, each in zip(products(found), given, strict=True)}  # fmt: skip
    for part, name in _parts(found):
        q, k = (tensors[f"{name}.{one}.weight"] for one in "qk")
        wide = torch.promote_types(q.dtype, torch.float32)  # what is computed is not rounded twice
        if f"{name}.mix" not in tensors:
            biases = _biases(tensors, part, name)
            tensors |= {key: numbers.to(wide) for key, numbers in biases.items()}
        mix, terms = every.get(part.layer.index, (np.zeros((0, len(q))), None))
        parts = [q, torch.from_numpy(mix).to(q.dtype), k]
        if terms is not None:
            parts = [torch.from_numpy(one).to(wide) for one in terms]
        for side, rows in zip("qk", parts[::2], strict=True):
            tensors.pop(f"{name}.{side}.bias", None)
            tensors[f"{name}.{side}.weight"] = F.pad(rows, (0, 0, 0, width - len(rows)))
        tensors[f"{name}.mix"] = F.pad(parts[1], (0, width - parts[1].shape[1]))
    assert isinstance(found.config, TransformerConfig)
    config = replace(found.config, shared_width=width)
    return replace(found, config=config, tensors=tensors, digest=digest_of(config, tensors))


# --- inside ---------------------------------------------------------------------------------------


def _parts(found: Checkpoint) -> list[tuple[Attention, str]]:
    """Every layer that attends, and its name in the checkpoint."""
    modules = outline(found.config).named_modules()
    parts = [(part, name) for name, part in modules if isinstance(part, Attention)]
    return sorted(parts, key=lambda one: one[0].layer.index)


def _biases(tensors: dict[str, Tensor], part: Attention, name: str) -> dict[str, Tensor]:
    """What the biases of ordinary heads come to, by the names of tensors, in float64."""
    heads = len(part.layer.heads)
    split = (heads, part.d_head)
    q, k = (tensors[f"{name}.{one}.weight"].double().unflatten(0, split) for one in "qk")
    given = (tensors.get(f"{name}.{one}.bias") for one in "qk")
    b_q, b_k = (q.new_zeros(split) if one is None else one.double().view(split) for one in given)
    return {
        f"{name}.key_bias.weight": torch.einsum("hk,hkd->hd", b_q, k),
        f"{name}.query_bias.weight": torch.einsum("hk,hkd->hd", b_k, q),
        f"{name}.query_bias.bias": (b_q * b_k).sum(1),
    }


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


def _not_shared(why: str) -> HgvizError:
    return HgvizError(
        "the heads of this model cannot share their queries and keys",
        why,
        "Choose an encoder, a decoder or both with learned or sinusoidal positions",
    )
