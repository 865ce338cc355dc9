"""Hourglasses of other programs, read under hgviz's neutral names (docs/reference/opens.md).

- lucidrains' package hourglass-transformer-pytorch (PyPI, 0.0.6): a state dict; config.json gives
  the arguments of HourglassTransformerLM that weights do not show.
- dynamic-pooling (Nawrot et al. 2023, arXiv 2211.09761): a checkpoint_last.pt with weights,
  arguments and vocabulary.
- the official Hourglass in trax (Nawrot et al. 2021, arXiv 2110.13711): an exported .npz. trax
  keeps weights in a pickle, which is never opened here.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from hgviz.errors import require
from hgviz.files import (
    CONFIG,
    JSON_LIMIT,
    WEIGHT_SUFFIXES,
    path_errors,
    quoted,
    read_object,
    short_path,
)
from hgviz.language import join_words
from hgviz.models.config import parse_config, parse_keys
from hgviz.models.dynamic import DynamicConfig
from hgviz.models.hourglass import HourglassConfig, hierarchy_from_depth, parse_hierarchy
from hgviz.models.layers import Configuration, Count, Heads
from hgviz.models.tensors import (
    Checkpoint,
    Shapes,
    Source,
    config_file,
    dims,
    fit_checkpoint,
    read_pickle,
    read_tensors,
    read_weights,
    require_finite,
    state_dict,
    strip_prefixes,
    weights_of,
)
from hgviz.models.text import (
    ALPHABET,
    MOST_TOKENIZER,
    TOKENIZER,
    Pieces,
    read_regular,
    tokenizer_file,
)

# --- lucidrains' hourglass-transformer-pytorch ----------------------------------------------------

LUCIDRAINS = "hourglass-transformer-pytorch"
EXAMPLES = {
    "heads": "8 (or the actual number)", "causal": "true or false",
    "shorten_factor": "2, or [3, 2] for one per level",
}  # fmt: skip
LUCIDRAINS_NAMES = {
    "embed.token.weight": "token_emb.weight", "embed.position.weight": "pos_emb.weight",
    "lm_head.weight": "to_logits.weight", "lm_head.bias": "to_logits.bias",
}  # fmt: skip
LUCIDRAINS_PARTS = {
    "ln_attn": "0.norm", "attn.q": "0.fn.to_q", "attn.o": "0.fn.to_out", "ln_ff": "1.norm",
    "ff.in": "1.fn.0", "ff.out": "1.fn.3",
}  # fmt: skip
RESAMPLERS = {  # (stage, whether the tensor is of its linear map): module
    ("down", True): "downsample", ("down", False): "attn_resampling_pre_valley.layers.0",
    ("up", True): "upsample", ("up", False): "attn_resampling_post_valley.layers.0",
}  # fmt: skip


class LucidrainsKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of HourglassTransformerLM in config.json; None where it leaves one out."""

    model_type: Literal["hourglass-transformer-pytorch"]
    num_tokens: Count | None = None
    dim: Count | None = None
    max_seq_len: Count | None = None
    depth: int | list[Any] | None = None
    shorten_factor: int | list[int] | None = None
    heads: Heads | None = None
    dim_head: Count | None = None
    attn_resampling: bool | None = None
    updown_sample_type: Literal["naive", "linear"] | None = None
    causal: bool | None = None
    masking: Literal["strict", "compat"] = "compat"


def read_lucidrains(path: Path) -> Checkpoint:
    """A state dict of hourglass-transformer-pytorch beside its config.json.

    What config.json leaves out is read from the weights where they show it. Raises HgvizError for
    what is missing, damaged or does not fit.
    """
    where, weights = config_file(path), weights_of(path)
    stored = read_weights(weights)
    file_names = dict(zip(strip_prefixes(stored), stored, strict=True))
    shapes = {name: tuple(stored[file].shape) for name, file in file_names.items()}
    table = shapes.get("token_emb.weight", ())
    require(
        len(table) == 2 and min(table) > 0,
        "these weights are of another model: "
        f"they have no token_emb.weight, unlike every state dict of {LUCIDRAINS}",
        "Choose another file",
    )
    keys = parse_keys(read_object(where), LucidrainsKeys, short_path(where))
    config = _lucidrains_config(msgspec.structs.asdict(keys), shapes, short_path(where))
    levels = len(config.shape.factors)

    def source_of(name: str) -> Source:
        source = _lucidrains_source(name, levels)
        return replace(source, name=file_names.get(source.name, source.name))

    return fit_checkpoint(config, stored, weights, source_of)


def _arguments_shown(shapes: Shapes) -> dict[str, Any]:
    """The arguments that names and shapes of weights show; inner: the width of all heads."""
    tokens, dim = shapes["token_emb.weight"]
    queries = [shape for name, shape in shapes.items() if name.endswith(".to_q.weight")]
    shown: dict[str, Any] = {
        "num_tokens": tokens, "dim": dim, "depth": _depth(shapes, "transformer"),
        "inner": next((shape[0] for shape in queries if len(shape) == 2), None),
    }  # fmt: skip
    if positions := shapes.get("pos_emb.weight"):
        shown["max_seq_len"] = positions[0]
    if isinstance(shown["depth"], list):
        maps, top = list[int](), "transformer"
        while shape := shapes.get(f"{top}.downsample.proj.weight"):
            maps.append(shape[-1] // dim)
            top += ".valley_transformer"
        shown["attn_resampling"] = any("attn_resampling_pre_valley." in name for name in shapes)
        shown["updown_sample_type"] = "linear" if maps else "naive"
        shown["shorten_factor"] = maps or None
    return shown


def _depth(shapes: Shapes, module: str) -> Any:
    """The argument depth: a number of layers, or [before, inner, after]."""

    def layers(stack: str) -> int:
        found = (re.match(rf"{re.escape(stack)}\.layers\.(\d+)\.", name) for name in shapes)
        return len({match[1] for match in found if match})

    valley = f"{module}.valley_transformer"
    if not any(name.startswith(f"{valley}.") for name in shapes):
        return layers(module)
    before, after = (layers(f"{module}.{stack}_transformer") for stack in ("pre", "post"))
    return [before, _depth(shapes, valley), after]


def _lucidrains_config(stated: Mapping[str, Any], shapes: Shapes, where: str) -> HourglassConfig:
    """The configuration that config.json states and, where it is silent, the weights show."""
    shown = _arguments_shown(shapes)
    inner = shown.pop("inner")
    keys: dict[str, Any] = {
        key: shown.get(key) if value is None else value for key, value in stated.items()
    }
    for key, other in (("heads", "dim_head"), ("dim_head", "heads")):
        if keys[key] is None and keys[other] is not None and inner is not None:
            require(
                inner % keys[other] == 0,
                f"{other} {keys[other]} does not divide the width of the heads: "
                f"to_q.weight has {inner} rows, not a multiple of {keys[other]}",
                f"Correct {other} in {where}",
            )
            keys[key] = inner // keys[other]
    flat = isinstance(keys["depth"], int)
    require(
        not (flat and keys["shorten_factor"]),
        f"{where} gives a shorten_factor to a model that does not shorten: "
        f"its depth is the number {keys['depth']}",
        "Leave shorten_factor out, or give depth as [before, inner, after]",
    )
    needless = {"shorten_factor", "attn_resampling", "updown_sample_type"} if flat else set()
    needless |= {"dim_head"} if keys["heads"] is None else set()  # it follows from heads
    missing = [key for key, value in keys.items() if value is None and key not in needless]
    require(
        not missing,
        f"{where} does not state {join_words(missing)}, which weights do not show",
        "Add " + ", ".join(f'"{key}": {EXAMPLES.get(key, 512)}' for key in missing),
    )
    down, up = ("linear", "linear") if keys["updown_sample_type"] == "linear" else (
        "average", "repeat")  # fmt: skip
    attends = bool(keys["attn_resampling"])
    return HourglassConfig(
        vocab_size=keys["num_tokens"], d_model=keys["dim"], n_heads=keys["heads"],
        d_head=keys["dim_head"],
        hierarchy=str(hierarchy_from_depth(keys["depth"], keys["shorten_factor"])),
        form="windowed", downsampling="attention" if attends else down,  # type: ignore[arg-type]
        upsampling="attention" if attends else up,  # type: ignore[arg-type]
        attention_downsampling=down, attention_upsampling=up,  # type: ignore[arg-type]
        positions="learned", max_positions=keys["max_seq_len"], causal=keys["causal"],
        masking=keys["masking"],
    )  # fmt: skip


def _lucidrains_source(name: str, levels: int) -> Source:
    """Where the package keeps a neutral tensor; to_kv holds the rows of keys, then of values."""
    if name in LUCIDRAINS_NAMES:
        return Source(LUCIDRAINS_NAMES[name])
    stack, number, *rest = name.split(".", 2)
    if stack == "ln_f":
        return Source(f"transformer.{'norm_out' if levels else 'norm'}.{number}")
    part = rest[0]
    depth = levels if stack == "middle" else int(number)
    if stack == "middle":
        module = f"layers.{number}"
    elif (stack, True) in RESAMPLERS:
        module = RESAMPLERS[stack, part.startswith("proj.")]
    else:
        layer, part = part.split(".", 1)
        module = f"{stack}_transformer.layers.{layer}"
    module = f"transformer{'.valley_transformer' * depth}.{module}"
    if part.startswith("proj."):
        return Source(f"{module}.{part}")
    if part in ("attn.k.weight", "attn.v.weight"):
        return Source(f"{module}.0.fn.to_kv.weight", int(part == "attn.v.weight"), 2)
    part, _, kind = part.rpartition(".")
    return Source(f"{module}.{LUCIDRAINS_PARTS[part]}.{kind}")


# --- Nawrot's dynamic-pooling ---------------------------------------------------------------------

NAWROT_FILE, NAWROT_MARKS = "checkpoint_last.pt", (b"model_config", b"model_state")
NAWROT_ADVICE = "Open a checkpoint saved by dynamic-pooling, or convert it with that program"
BOUNDARIES = {  # none: no layer reads them
    "none": "learned", "fixed": "fixed", "whitespaces": "whitespace", "entropy": "entropy",
    "unigram": "unigram", "gumbel": "learned",
}  # fmt: skip
NAWROT_KEYS = {  # of the checkpoint: of config.json
    "n_token": "vocab_size", "n_head": "n_heads", "d_model": "d_model", "d_head": "d_head",
    "d_inner": "d_ff", "activation_function": "feed_forward", "fixed_sf": "shorten_factor",
    "spikes_left": "spikes_left", "temp": "temperature", "prior": "prior",
}  # fmt: skip
NAWROT_NAMES = {  # beginnings of neutral names: of the checkpoint's
    "embed.token.": "word_emb.", "rel.content_bias": "r_w_bias", "rel.position_bias": "r_r_bias",
    "down.0.null": "null_group", "down.0.ln.": "down_ln.",
    "down.0.boundary.in.": "boundary_predictor.boundary_predictor.0.",
    "down.0.boundary.out.": "boundary_predictor.boundary_predictor.2.", "lm_head.": "final_cast.",
}  # fmt: skip
NAWROT_PARTS = {
    "attn.r": "dec_attn.r_net", "attn.o": "dec_attn.o_net", "ln_attn": "dec_attn.layer_norm",
    "ff.in": "pos_ff.CoreNet.0", "ff.out": "pos_ff.CoreNet.3", "ln_ff": "pos_ff.layer_norm",
}  # fmt: skip


class Vocab:
    """Stands for utils.vocabulary.Vocab of dynamic-pooling: its fields, and none of its code."""

    idx2sym: Any = None


def nawrot_file(path: Path) -> Path | None:
    """The checkpoint of dynamic-pooling at a path, which holds its own configuration; None for any
    other path, and where a config.json says how the weights are read."""
    folder, file = (path, path / NAWROT_FILE) if path.is_dir() else (path.parent, path)
    if (folder / CONFIG).exists() or file.suffix not in WEIGHT_SUFFIXES[1:] or not file.is_file():
        return None
    with suppress(OSError, zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, KeyError):
        with zipfile.ZipFile(file) as archive:
            pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            with archive.open(pickles[0] if pickles else "") as pickle:
                start = pickle.read(JSON_LIMIT)
        return file if all(mark in start for mark in NAWROT_MARKS) else None
    return None


def read_nawrot(path: Path) -> Checkpoint:
    """A checkpoint of dynamic-pooling, with its vocabulary as tokenizer. Raises HgvizError for what
    is missing, damaged or does not fit."""
    file = nawrot_file(path) or weights_of(path)
    with path_errors(file):
        content = read_pickle(file, [argparse.Namespace, (Vocab, "utils.vocabulary.Vocab")])
    has_state = isinstance(content, Mapping) and isinstance(content.get("model_state"), Mapping)
    _require_nawrot(has_state, file, "it has no model_state")
    state = {
        name.removeprefix("module."): tensor  # of a model that was trained on several devices
        for name, tensor in state_dict(file, content["model_state"]).items()
        if not name.endswith("pos_emb.inv_freq")  # a buffer, which is computed
    }
    if "null_group" in state and state["null_group"].shape[:-1] == (1, 1):
        state["null_group"] = state["null_group"][0, 0]
    symbols: Any = getattr(content.get("vocab"), "idx2sym", None)
    config = _nawrot_config(file, content, symbols)
    is_vocabulary = (
        isinstance(symbols, list)
        and all(isinstance(symbol, str) and len(symbol) == 1 for symbol in symbols)
        and len({*symbols}) == len(symbols) == config.vocab_size
        and not any("\ud800" <= symbol <= "\udfff" for symbol in symbols)
    )
    return fit_checkpoint(
        config, state, file, partial(_nawrot_source, shortens=config.form == "dynamic"),
        said_by="its model_config", do=NAWROT_ADVICE, rewritable=False,
        tokenizer=character_tokenizer(symbols) if is_vocabulary else None,
    )  # fmt: skip


def character_tokenizer(symbols: list[str]) -> bytes:
    """A tokenizer.json of single characters, in the order of their ids."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    ids = {symbol: number for number, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.WordLevel(ids, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer.to_str().encode()


def _nawrot_config(file: Path, content: Mapping[Any, Any], symbols: Any) -> DynamicConfig:
    """The configuration that a checkpoint states: its model_config, and before that its args."""
    said: dict[Any, Any] = {}
    for name in ("args", "model_config"):
        part = content.get(name)
        values = vars(part) if isinstance(part, argparse.Namespace) else part
        said |= values if isinstance(values, Mapping) else {}
    kind: Any = said.get("boundaries_type")
    depth = said.get("model_config")
    known = isinstance(kind, str) and kind in BOUNDARIES
    kinds = ", ".join(BOUNDARIES)
    unknown = f"its boundaries_type is {quoted(kind)}, and hgviz supports {kinds}"
    _require_nawrot(known, file, unknown)
    pre_norm = "pre_lnorm is set, which dynamic-pooling itself cannot run"
    _require_nawrot(not said.get("pre_lnorm"), file, pre_norm)
    text = depth.replace(" ", "") if isinstance(depth, str) else ""
    match = re.fullmatch(r"\[(\d{1,10}),\((\d{1,10}),\),(\d{1,10})\]", text)
    form = f'its model_config is {quoted(depth)}, not of the form "[2, (8,), 2]"'
    _require_nawrot(match, file, form)
    assert match is not None
    before, between, after = map(int, match.groups())
    layers = [before, between, after] if between or after else [before]
    unlike = f"its boundaries_type {kind} contradicts its model_config {layers}"
    _require_nawrot((kind == "none") == (len(layers) == 1), file, unlike)
    keys = {key: said[name] for name, key in NAWROT_KEYS.items() if said.get(name) is not None}
    unsized = "it has no fixed_sf, the number of tokens in a segment"
    _require_nawrot(kind != "fixed" or "shorten_factor" in keys, file, unsized)
    if kind == "whitespaces":
        has_space = isinstance(symbols, list) and " " in symbols
        keys["whitespace_id"] = symbols.index(" ") if has_space else None
    keys |= {"family": "dynamic", "n_layers": layers, "boundaries": BOUNDARIES[kind]}
    config = parse_config(keys, short_path(file))
    assert isinstance(config, DynamicConfig)
    return config


def _nawrot_source(name: str, shortens: bool) -> Source:
    """Where dynamic-pooling keeps a neutral tensor; qkv_net holds queries, keys and values."""
    for start, theirs in NAWROT_NAMES.items():
        if name.startswith(start):
            return Source(theirs + name.removeprefix(start))
    match = re.fullmatch(r"(pre\.0|middle|post\.0)\.(\d+)\.(.+)\.(weight|bias)", name)
    assert match is not None
    stack, layer, part, kind = match.groups()
    stacks = {"pre.0": 0, "middle": int(shortens), "post.0": 2}
    module = f"layers.{stacks[stack]}.{layer}"
    if part in NAWROT_PARTS:
        return Source(f"{module}.{NAWROT_PARTS[part]}.{kind}")
    third = ("attn.q", "attn.k", "attn.v").index(part)
    return Source(f"{module}.dec_attn.qkv_net.{kind}", third, 3)


def _require_nawrot(condition: object, file: Path, why: str) -> None:
    what = f"{short_path(file)} cannot be read as a dynamic-pooling model: {why}"
    require(condition, what, NAWROT_ADVICE)


# --- the official Hourglass in trax ---------------------------------------------------------------

BEGIN = "[BOS]"  # what token 0 is called where texts are bytes
TRAX_NEEDED = {"embed.token.weight": 2, "rel.content_bias": 2, "pre.0.ln_out.weight": 1}


def read_trax(
    path: Path,
    hierarchy: str | None = None,
    attention_upsampling: Literal["repeat", "none"] | None = None,
    tokenizer: Path | None = None,
) -> Checkpoint:
    """The official weights, an .npz with neutral names as docs/reference/opens.md says.

    hierarchy: "5@1 24@3 5@1", or as trax has it "24@3", where weights do not show how far it
    shortens. attention_upsampling: what attention on the way up begins with where that is no linear
    map. tokenizer: a tokenizer.json or its folder; else the one beside the file, or bytes for 256
    ids. trax shifts ids by one, with 0 before them: here every text begins with token 0 instead.
    Raises HgvizError for what is damaged, does not fit, or is not said.
    """
    tensors = read_tensors(path)
    require_finite(path, tensors)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    config = _trax_config(path, shapes, hierarchy, attention_upsampling)
    return fit_checkpoint(
        config, tensors, path, said_by="the model that its names describe",
        do="Export it again as described in docs/reference/opens.md", rewritable=False,
        tokenizer=_trax_tokenizer(path.parent, tokenizer, config.vocab_size),
    )  # fmt: skip


def _trax_config(
    path: Path, shapes: Shapes, hierarchy: str | None, attention_upsampling: str | None
) -> Configuration:
    """The configuration that names and shapes show, with what was said of the rest."""
    for name, axes in TRAX_NEEDED.items():
        require(
            len(shapes.get(name, ())) == axes,
            f"{short_path(path)} is not a trax Hourglass: "
            f"{name} is {dims(shapes[name]) if name in shapes else 'missing'}",
            "Export the weights under the names in docs/reference/opens.md",
        )
    (vocabulary, width), (heads, d_head) = shapes["embed.token.weight"], shapes["rel.content_bias"]
    inner = (shape[0] for name, shape in shapes.items() if name.endswith(".ff.in.weight") and shape)
    keys: dict[str, Any] = {
        "vocab_size": vocabulary, "d_model": width, "n_heads": heads, "d_head": d_head,
        "d_ff": next(inner, 0),
    }  # fmt: skip
    for stage, base in (("down", "average"), ("up", "repeat")):
        base = "linear" if f"{stage}.0.proj.weight" in shapes else base
        attends = f"{stage}.0.attn.q.weight" in shapes
        keys |= {f"{stage}sampling": base} if not attends else {
            f"{stage}sampling": "attention", f"attention_{stage}sampling": base}  # fmt: skip
    is_open = keys.get("attention_upsampling") == "repeat"
    attends = keys["upsampling"] == "attention"
    require(
        is_open or not attention_upsampling,
        f"{short_path(path)} does not fit --attention-upsampling {attention_upsampling}: "
        + ("its upsampling starts with a linear map" if attends else "it has no attention there"),
        "Leave this option out",
    )
    shown, keys["hierarchy"] = _trax_hierarchy(path, shapes, width, hierarchy)
    missing = {}
    if "K" in keys["hierarchy"]:
        missing["the shortening factors"] = f'--hierarchy "{shown}" with a number for each K'
    if attention_upsampling:
        keys["attention_upsampling"] = attention_upsampling
    elif is_open:
        missing["the input of attention upsampling"] = (
            "--attention-upsampling repeat (NaiveUpsampling) or none (NoUpsampling)"
        )
    require(
        not missing,
        f"the weights of {short_path(path)} do not show {' and '.join(missing)}",
        f"Run hgviz convert with {' and '.join(missing.values())}",
    )
    return parse_config(keys, short_path(path))


def _trax_hierarchy(path: Path, shapes: Shapes, width: int, said: str | None) -> tuple[str, str]:
    """The hierarchy that weights show, with K in place of factors that they do not, and the one
    that is meant. Raises HgvizError for one that does not fit them."""

    def count(name: str) -> int:
        """How many tensors there are of a name with a running number."""
        return next(i for i in range(len(shapes) + 1) if name.format(i) not in shapes)

    def factor(level: int) -> int:
        """How far linear maps shorten or lengthen; 0 without one."""
        down, up = (shapes.get(f"{stage}.{level}.proj.weight", ()) for stage in ("down", "up"))
        return (down[-1] if down else up[0] if up else 0) // width

    levels = range(count("pre.{}.ln_out.weight"))
    pre, post = (
        tuple(count(f"{stack}.{level}.{{}}.ln_attn.weight") for level in levels)
        for stack in ("pre", "post")
    )
    middle, factors = count("middle.{}.ln_attn.weight"), [factor(level) for level in levels]
    strides = ["1"]
    for level in levels:
        is_known = factors[level] and strides[-1].isdecimal()
        strides.append(str(int(strides[-1]) * factors[level]) if is_known else f"K{level + 1}")
    counts = zip([*pre, middle, *reversed(post)], [*strides, *strides[-2::-1]], strict=True)
    shown = " ".join(f"{layers}@{stride}" for layers, stride in counts)
    if said is None:
        return shown, shown
    outer = re.match(r"\s*\d+@1(\s|$)", said)  # trax leaves out the full-resolution layers
    meant = parse_hierarchy(said, None if outer else (pre[0], post[0]))
    fits = (meant.pre, meant.middle, meant.post) == (pre, middle, post)
    pairs = zip(factors, meant.factors, strict=False)
    require(
        fits and all(known in (0, factor) for known, factor in pairs),
        f"{short_path(path)} does not fit the hierarchy {str(meant)!r}: its weights have {shown!r}",
        "Correct --hierarchy",
    )
    return shown, str(meant)


def _trax_tokenizer(folder: Path, path: Path | None, vocabulary: int) -> bytes | None:
    """A tokenizer.json whose texts begin with token 0 and have no other special token; None without
    a tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    place = path or folder
    file = tokenizer_file(place) if place.is_dir() else place
    missing = f"the folder {short_path(place)} has no {TOKENIZER}"
    require(file or path is None, missing, "Give the file itself")
    if file is None and vocabulary != 256:
        return None
    if file is None:  # one token for each byte, but for 0
        bytes_ = {char: byte for char, byte in ALPHABET.items() if byte}
        tokenizer = Tokenizer(models.BPE({BEGIN: 0} | bytes_, [], unk_token=BEGIN))
        tokenizer.add_special_tokens([BEGIN])
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    else:
        # a file that is asked for may be called anything
        data = read_regular(file, MOST_TOKENIZER) if file == path else None
        pieces = Pieces(file, vocabulary, data)
        pieces.require_fit()
        tokenizer = Tokenizer.from_buffer(pieces.json)
    name = tokenizer.id_to_token(0)
    what = f"{short_path(place)} has no token 0, with which texts of trax begin"
    require(name is not None, what, "Use the model's own tokenizer")
    begin = {"SpecialToken": {"id": name, "type_id": 0}}
    first, second = ({"Sequence": {"id": text, "type_id": 0}} for text in "AB")
    processor = {
        "type": "TemplateProcessing", "single": [begin, first], "pair": [begin, first, second],
        "special_tokens": {name: {"id": name, "ids": [0], "tokens": [name]}},
    }  # fmt: skip
    made = {**json.loads(tokenizer.to_str()), "post_processor": processor}
    return json.dumps(made, ensure_ascii=False).encode()
