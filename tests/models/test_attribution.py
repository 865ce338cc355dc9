"""captum on heads: the numbers of plain captum, and those of the passes that pruning uses."""

from __future__ import annotations

import pytest
import torch
from captum.attr import FeatureAblation

from hgviz.models.blocks import Pass, finish_steps
from hgviz.models.measures import attribution
from hgviz.models.measures.variants import Variants, attentions
from tests.models.test_variants import MODELS, losses, masked, tokens_of

SOME = MODELS[::3]
NAMES = [name for name, _ in SOME]


@pytest.fixture(params=SOME, ids=NAMES)
def case(request):
    """Variants of a model, a padded batch of three texts, and their losses."""
    model = request.param[1].requires_grad_(False)
    return Variants(model), tokens_of(model), losses(model)


def by_gates(variants, tokens, loss):
    """What plain captum would be given: a whole pass with real gates."""
    layers = [(one.layer.index, len(one.layer.heads)) for one in attentions(variants.module)]

    def forward(gates):
        parts = gates.double().split([heads for _, heads in layers], dim=1)
        run = Pass(gates={
            layer: part.expand(3, -1) for (layer, _), part in zip(layers, parts, strict=True)
        })  # fmt: skip
        return loss(finish_steps(variants.module.steps(tokens, run)))[None]

    return forward


def test_ablation_is_that_of_plain_captum_and_minus_leave_one_out(case):
    variants, tokens, loss = case
    found = attribution.ablation(variants, tokens, loss)
    gates = torch.ones(1, len(variants.heads), dtype=torch.float64)
    plain = FeatureAblation(by_gates(variants, tokens, loss)).attribute(gates)
    assert found.shape == (3, len(variants.heads))
    assert (found - plain.reshape(found.shape)).abs().max() <= 1e-11 * (1 + found.abs().max())
    whole, logits = variants.whole(tokens)
    for heads, each in variants.one_by_one(whole):
        for head, one in zip(heads, each, strict=True):
            column = found[:, variants.heads.index(head)]
            assert (column - (loss(logits) - loss(one))).abs().max() <= 1e-11 * (
                1 + found.abs().max()
            )


def test_gradient_x_activation_is_the_slope_of_the_gate(case):
    variants, tokens, loss = case
    found = attribution.gradient_x_activation(variants, tokens, loss)
    slopes = variants.slopes(tokens, loss).gates
    assert (found - slopes).abs().max() <= 1e-12 * max(1, slopes.abs().max())


def test_shapley_values_sum_to_what_all_heads_do(case):
    variants, tokens, loss = case
    found = attribution.shapley(variants, tokens, loss, samples=3)
    none = loss(masked(variants.module, tokens, set(variants.heads)))
    everything = loss(masked(variants.module, tokens, ()))
    # captum adds them up in float32
    assert (found.sum(1) - (everything - none)).abs().max() <= 1e-6 * (1 + everything.abs().max())
    assert torch.equal(found, attribution.shapley(variants, tokens, loss, samples=3))


def test_integrated_gradients_of_a_layer_sum_to_what_it_does(case):
    variants, tokens, loss = case
    found = attribution.integrated_gradients(variants, tokens, loss, steps=256)
    everything = loss(masked(variants.module, tokens, ()))
    for layer in {head.layer for head in variants.heads}:
        heads = {head for head in variants.heads if head.layer == layer}
        columns = [variants.heads.index(head) for head in heads]
        change = everything - loss(masked(variants.module, tokens, heads))
        assert (found[:, columns].sum(1) - change).abs().max() <= 1e-3 * everything.abs().max()
