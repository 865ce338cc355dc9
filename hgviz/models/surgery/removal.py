"""Heads taken out of a checkpoint for good: sliced away, or left without a word to say.

What a layer gives is sum over heads of c_h W_O^h + b_O, so a head whose columns of W_O are zero is
a head that is off, and so is one whose rows of W_Q, W_K, W_V are gone with these columns; b_O stays
(pruning.md, Removal). Both write the same logits as a mask. Shapes: H heads, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from hgviz.core import HeadCost, HeadId, HeadSet, HgvizError, Layer
from hgviz.models.config import Config, TransformersConfig, attending
from hgviz.models.families import outline
from hgviz.models.layers import Attention, Network
from hgviz.models.tensors import Checkpoint, digest_of

OUT, BIAS = "weight", "bias"


def smaller(found: Checkpoint, off: HeadSet) -> Checkpoint:
    """The checkpoint without these heads: fewer numbers, in hgviz's own form.

    Models of transformers stay in their own. The heads that stay keep their numbers, and so do
    layers, even those without heads. Biases of relative attention that all layers share stay whole.
    Errors: HgvizError for unknown heads, and for models of transformers whose weights do not go by
    heads.
    """
    if isinstance(found.config, TransformersConfig):
        from hgviz.models.surgery import slices

        layers = [one for one, *_ in _layers(found.config, off)]
        return _made(found, *slices.smaller(found.config, found.tensors, layers, off))
    tensors, kept = dict(found.tensors), []
    for layer, name, of_all in _layers(found.config, off):
        places = [i for i, head in enumerate(layer.heads) if HeadId(layer.index, head) not in off]
        kept.append(tuple(layer.heads[i] for i in places))
        for part in found.tensors:
            within = part.removeprefix(name.removesuffix("o."))
            if within != part and within.split(".")[0] not in of_all:
                tensors[part] = _of_heads(tensors[part], len(layer.heads), places)
        output = tensors[f"{name}{OUT}"]
        tensors[f"{name}{OUT}"] = _of_heads(output.T, len(layer.heads), places).T.contiguous()
    whole: Any = attending(found.config)
    config: Config = replace(whole, kept=tuple(kept))
    return _made(found, config, tensors)


def head_weights(network: Network) -> tuple[HeadCost, ...] | None:
    """The weights of one head of each layer, as `smaller` removes them; None where it does not."""
    if isinstance(network.config, TransformersConfig):
        from hgviz.models.surgery import slices

        try:
            return slices.head_weights(cast(Any, network))
        except HgvizError:
            return None
    parts = sorted(
        (part for part in network.modules() if isinstance(part, Attention)),
        key=lambda part: part.layer.index,
    )
    return tuple(map(_weights_of_one, parts))


def zeroed(found: Checkpoint, off: HeadSet) -> Checkpoint:
    """The checkpoint with zeros in the columns of W_O that belong to these heads.

    Errors: HgvizError for unknown heads, and for layers that share these columns with others of
    which the heads stay.
    """
    made = scaled(found, dict.fromkeys(off, 0.0))
    if isinstance(found.config, TransformersConfig):
        outputs = found.config.outputs
        for at, head in sorted((one.layer, one.head) for one in off):
            for other, name in enumerate(outputs):
                if name == outputs[at] and HeadId(other, head) not in off:
                    raise HgvizError(
                        f"head {at}.{head} of this model is not removed alone: "
                        f"layer {at} shares its weights with layer {other}",
                        f"Remove {other}.{head} too",
                    )
    return made


def without(found: Checkpoint, off: HeadSet) -> Checkpoint:
    """The checkpoint without these heads: smaller where weights go by heads, else zeroed.

    Errors: HgvizError for unknown heads.
    """
    try:
        return smaller(found, off)
    except HgvizError:
        return zeroed(found, off)


def scaled(found: Checkpoint, gates: Mapping[HeadId, float]) -> Checkpoint:
    """The checkpoint with what these heads give multiplied, in the columns of W_O."""
    tensors = dict(found.tensors)
    for layer, name, _ in _layers(found.config, frozenset(gates)):
        factors = [gates.get(HeadId(layer.index, head), 1.0) for head in layer.heads]
        if set(factors) <= {1.0}:
            continue
        weight = tensors[f"{name}{OUT}"]
        blocks = weight.double().unflatten(1, (len(factors), -1))  # (d, H, D)
        new = blocks * torch.tensor(factors, dtype=torch.float64)[:, None]
        tensors[f"{name}{OUT}"] = new.flatten(1).to(weight.dtype)
    return _made(found, found.config, tensors)


def shifted(found: Checkpoint, means: Mapping[HeadId, Tensor]) -> Checkpoint:
    """The checkpoint with W_O^h m_h added to b_O for each of these heads; m (D,) is what the head
    gives on the mean, which it then says for ever once it is off."""
    tensors = dict(found.tensors)
    for layer, name, _ in _layers(found.config, frozenset(means)):
        if not any(head.layer == layer.index for head in means):
            continue
        weight, bias = tensors[f"{name}{OUT}"], tensors.get(f"{name}{BIAS}")
        if bias is None:
            raise HgvizError(
                "what heads give on the mean cannot be kept: "
                f"layer {layer.index} has no bias behind its heads that could say it",
                "Choose --compensate lsq, or none",
            )
        blocks = weight.double().unflatten(1, (len(layer.heads), -1))
        more = [
            blocks[:, place] @ means[HeadId(layer.index, head)].double()
            for place, head in enumerate(layer.heads)
            if HeadId(layer.index, head) in means
        ]
        tensors[f"{name}{BIAS}"] = (bias.double() + sum(more)).to(bias.dtype)
    return _made(found, found.config, tensors)


# --- inside ---------------------------------------------------------------------------------------


def _layers(config: Config, off: HeadSet) -> list[tuple[Layer, str, tuple[str, ...]]]:
    """Every layer with what the names of its output's matrix and bias begin with, such as
    middle.0.attention.o., and what in there does not go by heads.

    Errors: HgvizError for heads it lacks.
    """
    parts: dict[int, tuple[str, tuple[str, ...]]]
    if isinstance(config, TransformersConfig):
        unseen = sorted({one.layer for one in off if not config.outputs[one.layer]})
        if unseen:
            raise HgvizError(
                f"layer {unseen[0]} of this model is not changed: "
                "hgviz did not see what its heads are put together by",
                "Leave its heads on",
            )
        parts = {at: (name.removesuffix(OUT), ()) for at, name in enumerate(config.outputs)}
    else:
        parts = {
            part.layer.index: (f"{name}.o.", part.of_all)
            for name, part in outline(config).named_modules()
            if isinstance(part, Attention)
        }
    layers = config.layers
    known = {HeadId(layer.index, head) for layer in layers for head in layer.heads}
    if unknown := sorted(off - known):
        raise HgvizError(
            f"this model has no head {unknown[0]}: its layers are 0 to {len(layers) - 1}",
            "Run `hgviz info` on it to see every layer",
        )
    return [(layer, *parts[layer.index]) for layer in layers]


def _weights_of_one(part: Attention) -> HeadCost:
    """Of a layer of hgviz's own families, whose heads all have keys of their own."""
    sides: tuple[list[int], list[int]] = ([0, 0], [0, 0])
    for name, one in part.state_dict().items():
        of = name.split(".")[0]
        if of not in part.of_all or name == f"o.{OUT}":
            size = one.numel() // max(1, len(part.layer.heads))
            side = sides[of in ("k", "v", "mixtures")]
            side[0] += size
            side[1] += size * min(2, one.dim())  # a bias is only added
    queries, keys = ((size, flops) for size, flops in sides)
    return HeadCost(queries, keys, 2 * part.d_head)


def _of_heads(tensor: Tensor, heads: int, places: Sequence[int]) -> Tensor:
    """(H * D, ...) -> (h * D, ...): the rows of the heads at some places."""
    if len(places) == heads:
        return tensor
    return tensor.unflatten(0, (heads, -1))[list(places)].flatten(0, 1)


def _made(found: Checkpoint, config: Config, tensors: dict[str, Tensor]) -> Checkpoint:
    return replace(found, config=config, tensors=tensors, digest=digest_of(config, tensors))
