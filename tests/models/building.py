"""Small models with random weights, and checkpoints of them in hgviz's own form."""

import torch

from hgviz.models.checkpoints import save
from hgviz.models.config import parse_config
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


# --- the plain Transformer ------------------------------------------------------------------------

PLAIN = {"vocab_size": 23, "d_model": 12, "n_heads": 2, "d_ff": 20, "n_layers": 2}


def make_transformer(seed=0, **keys):
    """A float64 Transformer with no parameter at its initial 0 or 1; keys as config.json's."""
    return _made(seed, {**PLAIN, "family": "transformer", **keys})


def _made(seed, keys):
    config = parse_config(keys)
    torch.manual_seed(seed)
    model = config.build().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def write_transformer(folder, seed=0, dtype=torch.float64, **keys):
    """hgviz's own folder with such a model; family "transformer" unless keys say another."""
    model = make_transformer(seed, **keys)
    tensors = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    save(folder, model.config, tensors)
    return folder


# --- models without attention ---------------------------------------------------------------------


def make_unattending(seed=0, **keys):
    """A float64 model of the family "lstm" or "window", as make_transformer."""
    return _made(seed, {"vocab_size": 23, "d_model": 12, "n_layers": 2, **keys})


def write_unattending(folder, seed=0, dtype=torch.float64, **keys):
    """hgviz's own folder with such a model."""
    model = make_unattending(seed, **keys)
    tensors = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    save(folder, model.config, tensors)
    return folder
