"""Activation patching: the context of one head, taken from a run on another text.

Of two texts of equal length, a clean and a corrupted one, and two answers: how much of the logit
difference comes back when a head of the corrupted run gets its context from the clean run
(denoising), and how much is lost the other way (noising). Every later layer is computed anew, as in
the causal tracing of Meng et al. (2022, arXiv:2202.05262); Wang et al. (2023, arXiv:2211.00593)
measure heads by the same logit difference.

Shapes: B batch, H heads, Q queries, D head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from hgviz.core import HeadId, HeadSet
from hgviz.errors import require
from hgviz.models.layers import Network, Tokens, attention_layers, repeat_batch
from hgviz.models.run import AttentionCall, Observer, Run
from hgviz.models.trials import SIDE_BY_SIDE, BaselinePass, HeadAblation


class HeadPatch(Observer):
    """Gives copy i of a text the context of the head at places[i] of a layer from another run.

    source: the contexts (1, H, Q, D) of the layer in that run.
    """

    def __init__(self, layer: int, places: Sequence[int], source: Tensor) -> None:
        self.layer, self.places, self.source = layer, [*places], source

    def on_attention(self, call: AttentionCall, context: Tensor) -> Tensor | None:
        """Replace the contexts of the layer."""
        if call.layer != self.layer:
            return None
        patched = context.clone()
        patched[range(len(self.places)), self.places] = self.source[0, self.places]
        return patched


def patch_each(
    module: Network,
    source: Tokens,
    texts: Tokens,
    measure: Callable[[Tensor], Tensor],
    off: HeadSet = frozenset(),
) -> Iterator[tuple[tuple[HeadId, ...], Tensor]]:
    """Run texts with one head at a time patched from a run on source, of the same shape (1, n).

    measure: of logits (B, n, vocabulary) or (B, classes) a number (B,) each. Gives some heads of a
    layer, and the number with each of them patched by itself.
    """
    clean, baseline = (_recorded(HeadAblation(module, off), one) for one in (source, texts))
    size = max(1, SIDE_BY_SIDE // max(1, math.prod(texts.shape)))
    for layer in attention_layers(module):
        require(
            layer.index in clean.contexts,
            f"layer {layer.index} cannot be patched: it computes its context with its own code",
            "Use a model whose attention hgviz computes, such as GPT-2, BERT or Llama",
        )
        places = [
            place for place, head in enumerate(layer.heads)
            if HeadId(layer.index, head) not in off
        ]  # fmt: skip
        for start in range(0, len(places), size):
            chosen = places[start : start + size]
            patch = HeadPatch(layer.index, chosen, clean.contexts[layer.index])
            repeated = texts.map(partial(repeat_batch, times=len(chosen)))
            run = Run(
                off, observers=(patch,), reused=baseline.outputs_before(layer.index, len(chosen))
            )
            with torch.inference_mode():
                logits = module(repeated, run)
            heads = tuple(HeadId(layer.index, layer.heads[place]) for place in chosen)
            yield heads, measure(logits)


@torch.inference_mode()
def _recorded(ablation: HeadAblation, tokens: Tokens) -> BaselinePass:
    """A pass that computes every position of the last block."""
    recorder = BaselinePass(tokens)
    ablation.module(tokens, ablation.run_everywhere(recorder))
    return recorder
