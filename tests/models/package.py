"""The package hourglass-transformer-pytorch as the reference: models, checkpoints and maps."""

import json
import math

import numpy as np
import torch
from hourglass_transformer_pytorch import hourglass_transformer_pytorch as published

published.math = math  # version 0.0.6 forgets to import it and fails on every ragged text


def build(seed=0, **arguments):
    """A model of the package in float64, no parameter at its initial 0 or 1."""
    torch.manual_seed(seed)
    model = published.HourglassTransformerLM(**arguments).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def write(folder, model, arguments, prefix="", name="model.pt", **extra):
    """A checkpoint as its users keep them: config.json with the arguments, and a state dict."""
    folder.mkdir(exist_ok=True)
    config = {"model_type": "hourglass-transformer-pytorch", **arguments, **extra}
    (folder / "config.json").write_text(json.dumps(config))
    state = {prefix + key: value.clone() for key, value in model.state_dict().items()}
    if name.endswith(".pt"):
        torch.save(state, folder / name)
    else:
        from safetensors.torch import save_file

        save_file(state, folder / name)
    return folder


def logits(model, ids, mask=None):
    """(batch, n, vocabulary) of ids (batch, n)."""
    keep = None if mask is None else torch.tensor(mask)
    with torch.inference_mode():
        return model(torch.tensor(ids), mask=keep).numpy()


def maps(model, ids, mask=None):
    """Every softmax of one text, (heads, queries, keys) in order of computation.

    Windows are unfolded: row g of a map going down has its weights in columns gk to gk + k - 1.
    """
    seen = []

    def keep(module, inputs, output):
        seen.append(output.numpy())

    parts = [one for one in model.modules() if isinstance(one, published.Attention)]
    hooks = [one.dropout.register_forward_hook(keep) for one in parts]
    logits(model, ids[None], None if mask is None else mask[None])
    for hook in hooks:
        hook.remove()
    return [_unfolded(one) for one in seen]


def _unfolded(weights):
    groups, heads, queries, keys = weights.shape
    if groups == 1 and queries == keys:
        return weights[0]
    full = np.zeros((heads, groups * queries, groups * keys))
    for g in range(groups):
        full[:, g * queries : (g + 1) * queries, g * keys : (g + 1) * keys] = weights[g]
    return full
