"""Small models of hgviz's own families with random weights, and checkpoints of them."""

import numpy as np
import torch

from hgviz.models import open_model
from hgviz.models.checkpoints import read, save
from hgviz.models.config import outline, parse_config, shapes_of
from hgviz.models.hourglass import Hourglass
from hgviz.models.layers import Attention

SMALL = {"vocab_size": 23, "d_model": 12, "n_heads": 2, "d_ff": 20, "hierarchy": "1@1 1@2 1@1"}
PLAIN = {"vocab_size": 23, "d_model": 12, "n_heads": 2, "d_ff": 20, "n_layers": 2}


def make_config(**changes):
    """The configuration of an Hourglass, SMALL with changes."""
    return parse_config({**SMALL, **changes})


def make_hourglass(config, seed=0):
    """A float64 Hourglass with no parameter at its initial 0 or 1."""
    return _made(config, seed, Hourglass)


def make_transformer(seed=0, **keys):
    """A float64 Transformer with no parameter at its initial 0 or 1; keys as config.json's."""
    return _made(parse_config({**PLAIN, "family": "transformer", **keys}), seed)


def make_unattending(seed=0, **keys):
    """A float64 model of the family "lstm" or "window", as make_transformer."""
    return _made(parse_config({"vocab_size": 23, "d_model": 12, "n_layers": 2, **keys}), seed)


def _made(config, seed, make=None):
    torch.manual_seed(seed)
    model = (make(config) if make else config.build()).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def write_checkpoint(folder, seed=0, dtype=torch.float64, **changes):
    """hgviz's own folder with an Hourglass."""
    return write_module(folder, make_hourglass(make_config(**changes), seed), dtype)


def write_transformer(folder, seed=0, dtype=torch.float64, **keys):
    """hgviz's own folder with such a model; family "transformer" unless keys say another."""
    return write_module(folder, make_transformer(seed, **keys), dtype)


def write_unattending(folder, seed=0, dtype=torch.float64, **keys):
    """hgviz's own folder with such a model."""
    return write_module(folder, make_unattending(seed, **keys), dtype)


def write_module(folder, module, dtype=torch.float64):
    """hgviz's own folder with a model."""
    tensors = {name: tensor.to(dtype) for name, tensor in module.state_dict().items()}
    save(folder, module.config, tensors)
    return folder


def opened(folder, module, dtype="float32"):
    """The same model from a file."""
    return open_model(write_module(folder, module, getattr(torch, dtype)), dtype=dtype)


# --- one of each kind, with six heads of four columns ---------------------------------------------

WIDTHS = {"d_model": 24, "n_heads": 6, "d_ff": 20, "vocab_size": 23}
NESTED = {"hierarchy": "1@1 1@2 1@4 1@2 1@1"}
WINDOWED = {"hierarchy": "1@1 1@2 1@1", "form": "windowed", "positions": "rotary"}
SLOTS = {"slots": 5, "max_positions": 40}
FAMILIES = {
    "hourglass": {**NESTED, "positions": "relative"},
    "bidirectional": {**NESTED, "positions": "rotary", "causal": False},
    "windowed": WINDOWED,
    "compat": {**WINDOWED, "masking": "compat", "positions": "none"},
    "encoder": {"family": "bert", "goal": "classes", "labels": ["no", "yes"]},
    "decoder": {"family": "gpt2"},
    "both": {"family": "transformer", "n_layers": 1},
    "cross": {"family": "transformer", "form": "decoder", "cross": True},
    "slots": {"family": "yubert", "labels": ["no", "yes"], **SLOTS},
    "linformer": {
        "family": "bert", "goal": "states", "transform": False, **SLOTS, "slots_bias": True,
        "slots_sharing": "headwise",
    },
    "quadratic": {"family": "transformer", "positions": "quadratic", "n_layers": 1},
    "places": {"family": "gpt2", "positions": "quadratic", "content": False},
    "synthesizer": {
        "family": "transformer", "form": "decoder", "max_positions": 40, "rank": 3,
        "scores": ["dense+random", "dot+factorised+fixed"],
    },
    "shared": {"family": "gpt2", "shared_width": 7},
    "segments": {"family": "dynamic", "n_layers": [1, 1, 1], "boundaries": "learned"},
}  # fmt: skip


def build(name, activations, **changes):
    """A float64 model of FAMILIES whose heads have such activations."""
    keys = {**WIDTHS, **FAMILIES[name], "activations": activations, "top_k": 3, **changes}
    if "hierarchy" in keys:
        return make_hourglass(make_config(**keys))
    return make_transformer(**{"n_layers": 2, **keys})


def write_shared(path, out):
    """The checkpoint at a path in float64 with heads that share queries and keys, each mixing its
    own part of those of all heads: its scores stay what they were (Cordonnier et al. 2020,
    section 4)."""
    whole = read(path)
    tensors = {name: part.double() for name, part in whole.tensors.items()}
    for name, part in outline(whole.config).named_modules():
        if not isinstance(part, Attention):
            continue
        split = len(part.layer.heads), part.d_head
        q, k = (tensors[f"{name}.{side}.weight"].unflatten(0, split) for side in "qk")
        b_q, b_k = (
            tensors.pop(f"{name}.{side}.bias", torch.zeros(split).double()).view(split)
            for side in "qk"
        )
        tensors[f"{name}.key_bias.weight"] = torch.einsum("hk,hkd->hd", b_q, k)
        tensors[f"{name}.query_bias.weight"] = torch.einsum("hk,hkd->hd", b_k, q)
        tensors[f"{name}.query_bias.bias"] = (b_q * b_k).sum(1)
        tensors[f"{name}.mix"] = torch.eye(split[0]).double().repeat_interleave(split[1], 1)
    config = whole.config.replace(shared_width=whole.config.d_model)
    assert {name: tuple(part.shape) for name, part in tensors.items()} == shapes_of(config)
    save(out, config, tensors)
    return out


def texts_for(model):
    """What Model.run takes for two texts, one of them with padding."""
    ids = np.random.default_rng(0).integers(0, 20, (2, 11))
    mask = np.arange(11) < np.array([[11], [6]])
    if model.takes_states:
        states = np.random.default_rng(1).normal(size=(2, 7, model.spec.width))
        return {"ids": ids, "attention_mask": mask, "encoder_states": states}
    both = {"decoder_ids": ids[:, :5]} if model.spec.form == "encoder-decoder" else {}
    return {"ids": ids, "attention_mask": mask, **both}
