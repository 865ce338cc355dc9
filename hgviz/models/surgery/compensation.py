"""What the heads that stay, and b_O, can make up for when others go; folded into the weights.

"mean": b_O takes over what each head gives on the mean. "lsq": real gates on the heads that stay,
by least squares (Kwon et al. 2022, 4.3), layer after layer: what a layer gives behind layers that
are pruned and gated already is fitted to what it gave in the whole model. Shapes: P positions of
all texts, H heads, D head width, d width.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hgviz.core import HeadId, HeadSet, HgvizError, Layer, ModelSpec
from hgviz.models.layers import Attention, Network, Tokens
from hgviz.models.measures.variants import ExternalLayer, attention_modules
from hgviz.models.run import Run
from hgviz.models.surgery.proof import count

Compensation = Literal["none", "mean", "lsq"]
DAMP = 1.0  # Kwon et al.'s: gates stay at 1 where the texts do not tell


@torch.inference_mode()
def means(
    module: Network, spec: ModelSpec, off: HeadSet, texts: Sequence[Tokens]
) -> Iterator[dict[HeadId, Tensor]]:
    """Mean contexts (D,) of these heads in the whole model, over all real positions of its texts.

    Yields them after every batch.
    """
    layers = [layer for layer in spec.layers if any(head.layer == layer.index for head in off)]
    parts = _parts(module, {layer.index for layer in layers})
    sums = {layer.index: torch.tensor(0.0, dtype=torch.float64) for layer in layers}
    counts = dict.fromkeys(sums, 0)
    for text in texts:
        found = _given(module, text, Run(), [parts[layer.index] for layer in layers])
        for layer, given in zip(layers, found, strict=True):
            c = _positions(given, spec, layer, text).unflatten(-1, (len(layer.heads), -1))
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
    module: Network, spec: ModelSpec, off: HeadSet, texts: Sequence[Tokens]
) -> Iterator[dict[HeadId, float]]:
    """Gates of the heads that stay, from the first layer on that loses one.

    They minimise |sum_h x_h c_h W_O^h - a|^2 + |x - 1|^2 over the positions of the texts, a the
    same sum in the whole model: what LSMR with damp 1 comes to. Yields after every layer. Errors:
    HgvizError where the product behind the heads of such a layer is not known.
    """
    first = min(head.layer for head in off)
    fitted = {one.index: one for one in spec.layers[first:] if {*one.heads} - _gone(off, one)}
    parts = _parts(module, fitted)
    found: dict[HeadId, float] = {}
    for layer in fitted.values():
        kept = [head for head in layer.heads if HeadId(layer.index, head) not in off]
        solved = _fit(module, spec, off, texts, parts[layer.index], kept, found)
        found |= {HeadId(layer.index, h): x for h, x in zip(kept, solved, strict=True)}
        yield dict(found)


# --- inside ---------------------------------------------------------------------------------------


def _gone(off: HeadSet, layer: Layer) -> set[int]:
    return {head.head for head in off if head.layer == layer.index}


def _parts(module: Network, wanted: Collection[int]) -> dict[int, Attention | ExternalLayer]:
    """What attends in some layers, by their numbers, each with a product of its own."""
    every: Sequence[Any] = attention_modules(module) or getattr(module, "projected", list)()
    uses = [one.o for one in every]
    parts = {one.layer.index: one for one in every if uses.count(one.o) == 1}
    if missing := sorted({*wanted} - {*parts}):
        raise _unknown(missing[0])
    return parts


def _unknown(layer: int) -> HgvizError:
    return HgvizError(
        f"what layer {layer} loses is not made up for: "
        "hgviz did not see a product behind its heads that is this layer's alone",
        "Choose --compensate none",
    )


class _Enough(Exception):
    """A pass has come as far as it was for."""


def _given(
    module: Network, text: Tokens, run: Run, parts: Sequence[Attention | ExternalLayer]
) -> list[Tensor]:
    """What goes into the products behind heads, (B, Q, H * D) of each part; the pass ends with the
    last of them."""
    pieces: dict[nn.Module, list[Tensor]] = {part.o: [] for part in parts}
    last = parts[-1]

    def hear(product: nn.Module, given: tuple[Tensor, ...]) -> None:
        pieces[product].append(given[0])

    def stop(*_: Any) -> None:
        raise _Enough

    hooks = [part.o.register_forward_pre_hook(hear) for part in parts]
    ends = last if isinstance(last, Attention) else last.o  # whose o reads a long text in pieces
    hooks.append(ends.register_forward_hook(stop))
    try:
        with contextlib.suppress(_Enough):
            module(text, run)
    finally:
        for hook in hooks:
            hook.remove()
    found = [torch.cat(pieces[part.o], -2) for part in parts]
    for part, one in zip(parts, found, strict=True):
        if one.dim() != 3 or len(one) != count(text):  # laid out otherwise
            raise _unknown(part.layer.index)
    return found


def _fit(
    module: Network,
    spec: ModelSpec,
    off: HeadSet,
    texts: Sequence[Tokens],
    part: Attention | ExternalLayer,
    kept: Sequence[int],
    before: Mapping[HeadId, float],
) -> list[float]:
    layer, width = part.layer, part.d_head
    whole = part.o.weight.double()  # (d, H * D)
    columns = [
        place * width + i for place, h in enumerate(layer.heads) if h in kept for i in range(width)
    ]
    weight = whole[:, columns]  # (d, h * D)
    inner = torch.zeros(len(columns), len(columns), dtype=torch.float64, device=weight.device)
    cross = torch.zeros(len(columns), weight.shape[0], dtype=torch.float64, device=weight.device)
    for text in texts:
        gated = _gated(module, spec, off, before, text)
        a, c = (
            _positions(_given(module, text, run, [part])[0], spec, layer, text).double()
            for run in (Run(), gated)
        )
        c = c[:, columns]
        inner += c.T @ c
        cross += c.T @ (a @ whole.T)

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
    off: HeadSet,
    gates: Mapping[HeadId, float],
    text: Tokens,
) -> Run:
    like = next(module.parameters())
    factors = {
        layer.index: like.new_tensor(
            [[gates.get(HeadId(layer.index, head), 1.0) for head in layer.heads]]
        )
        for layer in spec.layers
        if any(head.layer == layer.index for head in gates)
    }
    return Run(off, gates=factors)


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
