"""Checkpoints of the program dynamic-pooling (Nawrot et al. 2023): models.md A.6, key map D.

One file holds everything: weights, the configuration as an argparse.Namespace and a dictionary, and
the vocabulary. It is read as any file of tensors, with stubs for these two classes: nothing in it
runs.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from hgviz.core import HgvizError
from hgviz.files import path_errors, quoted, short_path
from hgviz.models.config import Config, DynamicConfig
from hgviz.models.formats.checkpoint import Checkpoint, digest_of, require_depth, shapes_of
from hgviz.models.formats.files import read_pickle, require_finite, require_fit, tensors_of
from hgviz.models.formats.own import parse_config
from hgviz.models.formats.readers import self_contained, weights_of
from hgviz.models.formats.source import Source

MOST_LAYERS = 200  # characters of "[2, (8,), 2]"
DO = "Open a checkpoint that dynamic-pooling saved, or convert it with the program it came from"
KINDS = {
    "none": "learned",  # of what no layer reads
    "fixed": "fixed",
    "whitespaces": "whitespace",
    "entropy": "entropy",
    "unigram": "unigram",
    "gumbel": "learned",
}
# of the checkpoint: of config.json
NAMES = {
    "n_token": "vocab_size", "n_head": "n_heads", "d_model": "d_model", "d_head": "d_head",
    "d_inner": "d_ff", "activation_function": "feed_forward", "fixed_sf": "shorten_factor",
    "spikes_left": "spikes_left", "temp": "temperature", "prior": "prior",
}  # fmt: skip
# beginnings of neutral names: of the checkpoint's
PARTS = {
    "embed.token.": "word_emb.", "rel.content_bias": "r_w_bias", "rel.position_bias": "r_r_bias",
    "down.0.null": "null_group", "down.0.ln.": "down_ln.",
    "down.0.boundary.in.": "boundary_predictor.boundary_predictor.0.",
    "down.0.boundary.out.": "boundary_predictor.boundary_predictor.2.", "lm_head.": "final_cast.",
}  # fmt: skip
OF_LAYER = {
    "attn.r": "dec_attn.r_net", "attn.o": "dec_attn.o_net", "ln_attn": "dec_attn.layer_norm",
    "ff.in": "pos_ff.CoreNet.0", "ff.out": "pos_ff.CoreNet.3", "ln_ff": "pos_ff.layer_norm",
}  # fmt: skip
IGNORED = "pos_emb.inv_freq"  # a buffer, which is computed


class Vocab:
    """Stands for utils.vocabulary.Vocab of that program: what it held, and nothing it could do."""

    idx2sym: Any = None


def read_dynamic(path: Path) -> Checkpoint:
    """A checkpoint_last.pt. Errors: HgvizError for what is missing, damaged or does not fit."""
    file = self_contained(path) or weights_of(path)
    with path_errors(file):
        size = file.stat().st_size
        held = read_pickle(file, [argparse.Namespace, (Vocab, "utils.vocabulary.Vocab")])
    if not isinstance(held, Mapping) or not isinstance(held.get("model_state"), Mapping):
        raise _wrong(file, "it has no model_state")
    state = {_bare(name): one for name, one in tensors_of(file, held["model_state"], size).items()}
    state.pop(IGNORED, None)
    symbols: Any = getattr(held.get("vocab"), "idx2sym", None)
    config = _config(file, _said(held), symbols)
    require_depth(file, config, state)
    wanted = shapes_of(config)
    sources = {name: _source(name, config) for name in wanted}
    expected = {one.name: one.shape(wanted[name]) for name, one in sources.items()}
    if "down.0.null" in wanted:
        expected["null_group"] = (1, 1, config.d_model)
    found = {name: tuple(one.shape) for name, one in state.items()}
    require_fit(file, expected, found, do=DO, said="its model_config")
    tensors = {name: _taken(name, one, state[one.name]) for name, one in sources.items()}
    require_finite(file, tensors)
    tokenizer = characters(symbols) if _is_vocabulary(symbols, config.vocab_size) else None
    # no sources: such a file is not written again, since it holds more than tensors
    return Checkpoint(config, tensors, digest_of(config, tensors), file, {}, tokenizer)


def characters(symbols: list[str]) -> bytes:
    """A tokenizer.json of single characters, in the order of their ids."""
    rows: dict[str, Any] = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "post_processor": None,
    }  # fmt: skip
    rows["pre_tokenizer"] = {
        "type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip
    ids = {symbol: at for at, symbol in enumerate(symbols)}
    rows["model"] = {"type": "WordLevel", "vocab": ids, "unk_token": "<unk>"}
    rows["decoder"] = {"type": "Fuse"}
    return json.dumps(rows, ensure_ascii=False).encode()


# --- inside ---------------------------------------------------------------------------------------


def _said(held: Mapping[Any, Any]) -> dict[str, Any]:
    """What it says of the model: its configuration, and before that the arguments it was made
    with."""
    found: dict[str, Any] = {}
    for name in ("args", "model_config"):
        part = held.get(name)
        values = vars(part) if isinstance(part, argparse.Namespace) else part
        if isinstance(values, Mapping):
            found |= {key: value for key, value in values.items() if isinstance(key, str)}
    return found


def _config(file: Path, said: Mapping[str, Any], symbols: Any) -> DynamicConfig:
    kind = said.get("boundaries_type")
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(KINDS)
        raise _wrong(file, f"its boundaries_type is {quoted(kind)}, and hgviz knows {known}")
    if said.get("pre_lnorm"):
        raise _wrong(file, "pre_lnorm is set, and its own program cannot run such a model")
    layers = _layers(file, said.get("model_config"))
    if (kind == "none") != (len(layers) == 1):
        raise _wrong(file, f"its boundaries_type is {kind}, and its model_config {layers}")
    keys: dict[str, Any] = {"family": "dynamic", "n_layers": layers, "boundaries": KINDS[kind]}
    for name, key in NAMES.items():
        if said.get(name) is not None:
            keys[key] = said[name]
    if kind == "fixed" and "shorten_factor" not in keys:
        raise _wrong(file, "it has no fixed_sf, the number of tokens in a segment")
    if kind == "whitespaces":
        spaces = [*symbols].index(" ") if isinstance(symbols, list) and " " in symbols else None
        keys["whitespace_id"] = spaces
    found = parse_config(keys, short_path(file))
    assert isinstance(found, DynamicConfig)
    return found


def _layers(file: Path, said: Any) -> list[int]:
    """(before, between, after) of "[2, (8,), 2]"; one number where nothing is shortened."""
    try:
        if not isinstance(said, str) or len(said) > MOST_LAYERS:
            raise ValueError
        before, (between,), after = ast.literal_eval(said)
        if not all(type(one) is int and one >= 0 for one in (before, between, after)):
            raise ValueError
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise _wrong(
            file, f'its model_config is {quoted(said)}, and has the form "[2, (8,), 2]"'
        ) from None
    return [before, between, after] if between or after else [before]


def _source(name: str, config: Config) -> Source:
    for part, theirs in PARTS.items():
        if name.startswith(part):
            return Source(theirs + name.removeprefix(part))
    stacks = {"pre.0": 0, "middle": int(config.form == "dynamic"), "post.0": 2}
    found = re.fullmatch(r"(pre\.0|middle|post\.0)\.(\d+)\.(.+)\.(weight|bias)", name)
    assert found is not None
    stack, number, part, kind = found.groups()
    before = f"layers.{stacks[stack]}.{number}."
    if part in OF_LAYER:
        return Source(f"{before}{OF_LAYER[part]}.{kind}")
    third = ("attn.q", "attn.k", "attn.v").index(part)
    return Source(f"{before}dec_attn.qkv_net.{kind}", third, 3)


def _taken(name: str, source: Source, tensor: Tensor) -> Tensor:
    return tensor.flatten() if name == "down.0.null" else source.take(tensor)


def _bare(name: str) -> str:
    return name.removeprefix("module.")  # of a model that was trained on several devices


def _is_vocabulary(symbols: Any, size: int) -> bool:
    """Whether it names as many single characters as there are ids."""
    if not isinstance(symbols, list) or len(symbols) != size:
        return False
    single = all(isinstance(one, str) and len(one) == 1 for one in symbols)
    return (
        single and len({*symbols}) == size and not any("\ud800" <= s <= "\udfff" for s in symbols)
    )


def _wrong(file: Path, why: str) -> HgvizError:
    return HgvizError(f"{short_path(file)} does not describe a model hgviz can build: {why}", DO)
