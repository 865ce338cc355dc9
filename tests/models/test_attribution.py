"""The passes that pruning uses beside captum, which runs the whole model for each number."""

import pytest
import torch
from captum.attr import FeatureAblation, Saliency

from hgviz.models.blocks import Pass, finish_steps
from hgviz.models.measures.variants import Variants, attentions
from tests.models.test_variants import MODELS, losses, tokens_of

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


def test_ablation_by_captum_is_minus_what_leave_one_out_finds(case):
    variants, tokens, loss = case
    gates = torch.ones(1, len(variants.heads), dtype=torch.float64)
    found = FeatureAblation(by_gates(variants, tokens, loss)).attribute(gates)
    found = found.reshape(3, len(variants.heads))
    whole, logits = variants.whole(tokens)
    for heads, each in variants.one_by_one(whole):
        for head, one in zip(heads, each, strict=True):
            column = found[:, variants.heads.index(head)]
            assert (column - (loss(logits) - loss(one))).abs().max() <= 1e-11 * (
                1 + found.abs().max()
            )


def test_saliency_by_captum_is_the_slope_of_the_gate(case):
    variants, tokens, loss = case
    through = by_gates(variants, tokens, loss)
    slopes = variants.slopes(tokens, loss).gates
    for row in range(3):
        gates = torch.ones(1, len(variants.heads), dtype=torch.float64, requires_grad=True)
        found = Saliency(lambda given, row=row: through(given)[:, row]).attribute(gates, abs=False)
        assert (found[0] - slopes[row]).abs().max() <= 1e-11 * max(1, slopes.abs().max())
