"""Byte Latent Transformers, tiny and random, and what the package transformers makes of them."""

import warnings

import numpy as np
import torch

from tests.models import reference

HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
PART = {**HEADS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
THRESHOLD = 4.97  # nats that some bytes are less sure than of what follows
MODES = {  # ways to cut a text, and to look between bytes and patches
    "one part": {"cross_attn_k": 1},
    "two parts": {},
    "three parts": {"cross_attn_k": 3},
    "short patches": {"max_patch_length": 2},
    "bytes by themselves": {"patching_mode": "byte"},
    "no patcher": {"patch_in_forward": False},
    "all layers look down": {"down": True},
    "the first layer looks up": {"up": False},
}


def build(name="BltModel", seed=0, *, cross_attn_k=2, down=False, up=True, **changes):
    """A model with no parameter at its initial 0 or 1."""
    found = reference.library()
    torch.manual_seed(seed)
    own = {**PART, "vocab_size": 256, "cross_attn_k": cross_attn_k, "hidden_size_global": 32}
    sizes = {
        "vocab_size": 256, "cross_attn_k": cross_attn_k, "encoder_hash_byte_group_vocab": 120,
        "encoder_hash_byte_group_size": [2, 3], "local_attention_window_len": 6,
        "patching_threshold": THRESHOLD,
        "patcher_config": {**PART, "vocab_size": 256, "sliding_window": 5},
        "encoder_config": {**own, "cross_attn_all_layers": down},
        "decoder_config": {**own, "cross_attn_all_layers": up}, "global_config": PART,
    }  # fmt: skip
    model = getattr(found, name)(found.BltConfig(**{**sizes, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def write(folder, name="BltModel", **changes):
    """A folder of such a model."""
    build(name, **changes).save_pretrained(folder)
    return folder


@torch.no_grad()
def answer(model, ids, lengths=None, keep=None):
    """What it gives (B, n, ...) in float64; with the masks of its eager code a patch of no byte
    would be NaN there."""
    model = model.double()
    model.set_attn_implementation("sdpa")
    more = {} if lengths is None else {"patch_lengths": torch.as_tensor(lengths)}
    if keep is not None:
        more["attention_mask"] = torch.as_tensor(keep).long()
    out = model(torch.as_tensor(ids), use_cache=False, **more)
    return (out.last_hidden_state if out.get("logits") is None else out.logits).numpy()


@torch.no_grad()
def maps(model, ids, lengths=None):
    """The softmaxes (H, Q, K) of every layer of a text, in order of computation."""
    found = []

    def seen(module, given, out):
        found.append(out[1][0].numpy())

    hooks = [
        one.register_forward_hook(seen)
        for one in model.modules()
        if type(one).__name__ in ("BltSelfAttention", "BltCrossAttention")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_attn_implementation("eager")
        more = {} if lengths is None else {"patch_lengths": torch.as_tensor(lengths)[None]}
        model(torch.as_tensor(ids)[None], use_cache=False, **more)
    for one in hooks:
        one.remove()
    return found


def lengths_of(closes):
    """The lengths of the patches of a text that these bytes close, and of what comes after."""
    starts = [0, *(np.flatnonzero(closes) + 1)]
    return np.diff([*starts, len(closes)])


def ids_of(length, seed=0):
    return np.random.default_rng([length, seed]).integers(0, 256, length)
