"""What the heads that stay, and b_O, can make up for when others go; folded into the weights.

"mean": b_O takes over what each head gives on the mean. "lsq": real gates on the heads that stay,
by least squares (Kwon et al. 2022, 4.3), layer after layer: what a layer gives behind layers that
are pruned and gated already is fitted to what it gave in the whole model. Shapes: P positions of
all texts, H heads, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from hgviz.core import HeadId, HgvizError, Layer, ModelSpec, Off
from hgviz.models.blocks import Attention, Known, Network, Pass, Tokens, finish_steps

Compensation = Literal["none", "mean", "lsq"]
DAMP = 1.0  # Kwon et al.'s: gates stay at 1 where the texts do not tell


@torch.inference_mode()
def means(
    module: Network, spec: ModelSpec, off: Off, texts: Sequence[Tokens]
) -> Iterator[dict[HeadId, Tensor]]:
    """Mean contexts (D,) of these heads in the whole model, over all real positions of its texts.

    Yields them after every batch.
    """
    layers = [layer for layer in spec.layers if any(head.layer == layer.index for head in off)]
    sums = {layer.index: torch.tensor(0.0, dtype=torch.float64) for layer in layers}
    counts = dict.fromkeys(sums, 0)
    for text in texts:
        known = Known()
        finish_steps(module.steps(text, Pass(record=known)))
        for layer in layers:
            c = _positions(known.contexts[layer.index].transpose(1, 2), spec, layer, text)
            sums[layer.index] = sums[layer.index] + c.double().sum(0)  # (H, D)
            counts[layer.index] += len(c)
        yield {
            HeadId(layer.index, head): sums[layer.index][place] / max(1, counts[layer.index])
            for layer in layers
            for place, head in enumerate(layer.heads)
            if HeadId(layer.index, head) in off
        }


@torch.inference_mode()
def gates(
    module: Network, spec: ModelSpec, off: Off, texts: Sequence[Tokens]
) -> Iterator[dict[HeadId, float]]:
    """Gates of the heads that stay, from the first layer on that loses one.

    They minimise |sum_h x_h c_h W_O^h - a|^2 + |x - 1|^2 over the positions of the texts, a what
    the layer gave in the whole model: what LSMR with damp 1 comes to. Yields after every layer.
    """
    parts = [one for one in module.modules() if isinstance(one, Attention)]
    attentions = {one.layer.index: one for one in parts}
    if not parts:
        raise HgvizError(
            "gates are not fitted to this model",
            f"{spec.family} runs through transformers",
            "Choose --compensate mean, or none",
        )
    found: dict[HeadId, float] = {}
    for layer in spec.layers:
        kept = [head for head in layer.heads if HeadId(layer.index, head) not in off]
        if layer.index < min(head.layer for head in off) or not kept:
            continue
        solved = _fit(module, spec, off, texts, attentions[layer.index], kept, found)
        found |= {HeadId(layer.index, h): x for h, x in zip(kept, solved, strict=True)}
        yield dict(found)


def _fit(
    module: Network,
    spec: ModelSpec,
    off: Off,
    texts: Sequence[Tokens],
    attention: Attention,
    kept: Sequence[int],
    before: Mapping[HeadId, float],
) -> list[float]:
    layer, width = attention.layer, attention.d_head
    weight = attention.o.weight.double()  # (d, H * D)
    columns = [
        place * width + i for place, h in enumerate(layer.heads) if h in kept for i in range(width)
    ]
    weight = weight[:, columns]  # (d, h * D)
    inner = torch.zeros(len(columns), len(columns), dtype=torch.float64, device=weight.device)
    cross = torch.zeros(len(columns), weight.shape[0], dtype=torch.float64, device=weight.device)
    for text in texts:
        whole, pruned = Known(), Known()
        _until(module, text, Pass(record=whole), layer.index)
        _until(module, text, _gated(module, spec, off, before, text, pruned), layer.index)
        c = _positions(pruned.contexts[layer.index].transpose(1, 2), spec, layer, text)
        a = _positions(whole.attended[layer.index], spec, layer, text)
        c, a = c.double().flatten(1)[:, columns], (a - attention.o.bias).double()
        inner += c.T @ c
        cross += c.T @ a

    def blocks(x: Tensor) -> Tensor:  # (h * D, h * D) -> (h, h), sums over blocks
        return x.unflatten(0, (-1, width)).unflatten(2, (-1, width)).sum((1, 3))

    gram = blocks(inner * (weight.T @ weight))  # of what heads give, (h, h)
    aims = (cross * weight.T).unflatten(0, (-1, width)).sum((1, 2))
    rest = aims - gram.sum(1)
    damped = gram + DAMP**2 * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    solved: list[float] = (1 + torch.linalg.solve(damped, rest)).tolist()
    return solved


def _gated(
    module: Network,
    spec: ModelSpec,
    off: Off,
    gates: Mapping[HeadId, float],
    text: Tokens,
    record: Known,
) -> Pass:
    like = next(module.parameters())
    factors = {
        layer.index: like.new_tensor(
            [[gates.get(HeadId(layer.index, head), 1.0) for head in layer.heads]]
        )
        for layer in spec.layers
        if any(head.layer == layer.index for head in gates)
    }
    return Pass(off, gates=factors, record=record)


def _until(module: Network, text: Tokens, run: Pass, last: int) -> None:
    """A pass that ends with a layer."""
    for index in module.steps(text, run):
        if index == last:
            return


def _positions(x: Tensor, spec: ModelSpec, layer: Layer, text: Tokens) -> Tensor:
    """(B, Q, ...) -> (P, ...): the rows of a layer's queries that stand for real tokens."""
    level = spec.levels[layer.level]
    read = text
    if spec.two_texts and level.sequence == "source" and text.source is not None:
        read = text.source
    given = read.ids if read.ids is not None else read.states
    assert given is not None
    keep = read.keep
    if keep is None:
        keep = torch.ones(given.shape[:2], dtype=torch.bool, device=given.device)
    # a group begins with a real token, or has none
    at = (torch.arange(x.shape[1], device=keep.device) - level.apart) * (level.stride or 1)
    at, last = (at + level.apart).clamp(min=0), keep.shape[1] - 1
    return x[keep[:, at.clamp(max=last)] & (at <= last)]


__all__ = ["Compensation", "gates", "means"]
