"""What a new model begins with."""

from __future__ import annotations

import pytest
import torch

from hgviz.models.families import build
from hgviz.models.own import parse_config
from hgviz.models.training import initialise


@pytest.mark.parametrize("std", [0.02, 0.1])
def test_new_weights_have_the_spread_that_is_asked_for(std):
    keys = {"family": "bert", "vocab_size": 500, "d_model": 64, "n_heads": 4, "n_layers": 2}
    model = build(parse_config(keys))
    torch.manual_seed(0)
    initialise(model, std)
    found = dict(model.named_parameters())
    assert found["embed.token.weight"].std().item() == pytest.approx(std, rel=0.02)
    assert found["middle.0.attn.q.weight"].std().item() == pytest.approx(std, rel=0.05)
    # what is added to the residual stream is smaller by the root of twice the layers
    assert found["middle.0.attn.o.weight"].std().item() == pytest.approx(std / 2, rel=0.05)
    assert found["middle.0.attn.q.bias"].abs().max() == 0
