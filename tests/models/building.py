"""Small models with random weights, and checkpoints of them in hgviz's own form."""

from __future__ import annotations

import torch

from hgviz.models.checkpoint import parse_config, save
from hgviz.models.hourglass import Hourglass

SMALL = {"vocab_size": 23, "d_model": 12, "n_heads": 2, "d_ff": 20, "hierarchy": "1@1 1@2 1@1"}


def make_config(**changes):
    """SMALL with changes, as config.json gives them."""
    return parse_config({**SMALL, **changes})


def make_hourglass(config, seed=0):
    """A float64 model with no parameter at its initial 0 or 1."""
    torch.manual_seed(seed)
    model = Hourglass(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def write_checkpoint(folder, seed=0, dtype=torch.float64, **changes):
    """hgviz's own folder with such a model."""
    config = make_config(**changes)
    tensors = make_hourglass(config, seed).state_dict()
    save(folder, config, {name: tensor.to(dtype) for name, tensor in tensors.items()})
    return folder
