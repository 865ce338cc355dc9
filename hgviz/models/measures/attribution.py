"""captum's methods on heads, through the passes that pruning uses.

A head is a feature: its gate is 1, its baseline 0. What perturbs gates of 0 and 1 reuses what the
whole model left behind (variants.py); what needs slopes goes through the layers as captum does.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from captum.attr import (
    FeatureAblation,
    LayerGradientXActivation,
    LayerIntegratedGradients,
    ShapleyValueSampling,
)
from torch import Tensor

from hgviz.models.blocks import Network, Pass, Tokens, finish_steps
from hgviz.models.measures.variants import Variants, attentions, gates_of, times_of

Losses = Callable[[Tensor], Tensor]  # logits -> (B,)


def ablation(variants: Variants, tokens: Tokens, losses: Losses) -> Tensor:
    """(B, heads): what each text's loss falls by when a head is switched off; - leave-one-out."""
    gates = torch.ones(1, len(variants.heads), dtype=torch.float64)
    return _transposed(FeatureAblation(_by_gates(variants, tokens, losses)).attribute(gates))


def shapley(
    variants: Variants, tokens: Tokens, losses: Losses, samples: int = 25, seed: int = 0
) -> Tensor:
    """(B, heads): Shapley values of the loss over heads, from so many random orders.

    For each text they sum to L(all) - L(none).
    """
    gates = torch.ones(1, len(variants.heads), dtype=torch.float64)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = ShapleyValueSampling(_by_gates(variants, tokens, losses)).attribute(
            gates, n_samples=samples
        )
    return _transposed(found)


def gradient_x_activation(variants: Variants, tokens: Tokens, losses: Losses) -> Tensor:
    """(B, heads): c . dL / dc summed over tokens, which is the slope of the loss with the gate."""
    method = LayerGradientXActivation(*_through(variants.module, tokens, losses))
    found = method.attribute(_gate(variants.module, tokens), attribute_to_layer_input=True)
    return _by_head(variants.module, found)


def integrated_gradients(
    variants: Variants, tokens: Tokens, losses: Losses, steps: int = 50
) -> Tensor:
    """(B, heads): slopes along the way of one layer's heads from nothing to what they give.

    The heads of a layer sum to L - L(layer off), up to the error of so many steps.
    """
    parts = []
    forward, layers = _through(variants.module, tokens, losses)
    for layer in layers:
        method = LayerIntegratedGradients(forward, layer)
        found = method.attribute(
            _gate(variants.module, tokens), n_steps=steps, attribute_to_layer_input=True
        )
        parts.append(found)
    return _by_head(variants.module, parts)


# --- what captum is given -------------------------------------------------------------------------


def _by_gates(variants: Variants, tokens: Tokens, losses: Losses) -> Callable[[Tensor], Tensor]:
    """gates (1, heads) of 0 and 1 -> (1, B) losses, by what the whole pass left behind."""
    whole, _ = variants.whole(tokens)
    heads = variants.heads

    def forward(gates: Tensor) -> Tensor:
        off = {head for head, gate in zip(heads, gates[0].tolist(), strict=True) if not gate}
        return losses(variants.without(whole, off))[None]

    return forward


def _transposed(found: Tensor) -> Tensor:
    """What captum gives for (1, heads) and outputs (1, B), which it flattens, as (B, heads)."""
    return found.reshape(-1, found.shape[-1])


class _Gated(torch.nn.Module):
    """A pass of fixed tokens whose input (B, 1) is one gate of all heads: 1, and 0 as baseline."""

    def __init__(self, module: Network, tokens: Tokens, losses: Losses) -> None:
        super().__init__()
        self.module, self.tokens, self.losses = module, tokens, losses

    def forward(self, gate: Tensor) -> Tensor:
        tokens = times_of(self.tokens, len(gate) // len(_given(self.tokens)))
        gates = {layer: one * gate for layer, one in gates_of(self.module, len(gate)).items()}
        run = Pass(gates=gates, readout=True)
        return self.losses(finish_steps(self.module.steps(tokens, run)))


def _through(
    module: Network, tokens: Tokens, losses: Losses
) -> tuple[_Gated, list[torch.nn.Module]]:
    return _Gated(module, tokens, losses), [one.o for one in attentions(module)]


def _given(tokens: Tokens) -> Tensor:
    given = tokens.ids if tokens.ids is not None else tokens.states
    assert given is not None
    return given


def _gate(module: Network, tokens: Tokens) -> Tensor:
    kind = next(module.parameters())
    return torch.ones(len(_given(tokens)), 1, dtype=kind.dtype, device=kind.device)


def _by_head(module: Network, found: list[Tensor]) -> Tensor:
    """(B, n, H * D) of each layer, summed over tokens and widths -> (B, heads)."""
    parts = [
        part.unflatten(-1, (-1, layer.d_head)).sum((1, 3))
        for part, layer in zip(found, attentions(module), strict=True)
    ]
    return torch.cat(parts, dim=1).detach()
