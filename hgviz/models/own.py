"""hgviz's own config.json: checked when it is read, complete when it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Literal, get_args

import msgspec

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.maps.rule import Norm
from hgviz.models.config import PRESETS, Config, HourglassConfig, TransformerConfig
from hgviz.models.hierarchy import parse_hierarchy
from hgviz.models.readers import CONFIG, converted

Count = Annotated[int, msgspec.Meta(ge=1, le=2**24)]
Width = Annotated[int, msgspec.Meta(ge=1, le=2**20)]
Heads = Annotated[int, msgspec.Meta(ge=1, le=2**12)]
Chosen = Annotated[int, msgspec.Meta(ge=0, le=2**20)]  # 0: from the other widths
Depth = Annotated[int, msgspec.Meta(ge=1, le=1000)]
NORMS = ("none", *get_args(get_args(Norm)[0]))


class _Shared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What config.json says of either family; what is left out has the Config's default."""

    vocab_size: Count
    d_model: Width
    n_heads: Heads
    model_type: Literal["hgviz"] = "hgviz"
    d_head: Chosen = 0
    d_ff: Chosen = 0
    max_positions: Count | None = None
    activations: str | list[str | list[str]] = "softmax"
    norms: dict[str, str] = {}
    top_k: Count | None = None


class _Hourglass(_Shared, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hierarchy: str
    family: Literal["hourglass"] = "hourglass"
    vanilla_layers: tuple[int, int] | None = None
    form: Literal["official", "windowed"] = "official"
    downsampling: Literal["average", "linear", "attention"] = "attention"
    upsampling: Literal["repeat", "linear", "attention"] = "attention"
    attention_downsampling: Literal["average", "linear"] = "average"
    attention_upsampling: Literal["repeat", "linear", "none"] = "linear"
    positions: Literal["learned", "relative", "rotary", "none"] = "relative"
    causal: bool = True
    masking: Literal["strict", "compat"] = "strict"
    kept: list[list[int]] = []


class _Transformer(_Shared, frozen=True, kw_only=True, forbid_unknown_fields=True):
    n_layers: Depth
    family: Literal["transformer", "bert", "gpt2", "yubert"]
    form: Literal["encoder", "decoder", "encoder-decoder"] = "encoder-decoder"
    decoder_layers: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    cross: bool = False
    norm_first: bool = False
    norm_eps: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1e-5
    final_norm: bool = False
    embed_norm: bool = False
    positions: Literal["learned", "sinusoidal", "rotary", "none"] = "sinusoidal"
    segments: Annotated[int, msgspec.Meta(ge=0, le=2**16)] = 0
    feed_forward: Literal["gelu", "gelu_tanh", "relu", "silu"] = "relu"
    scaled: bool = True
    depth_scaled: bool = False
    goal: Literal["next", "masked", "classes", "states"] = "next"
    labels: list[str] = []
    transform: bool = False
    tied: bool = True
    cls: Annotated[int, msgspec.Meta(ge=1, le=512)] = 1
    pooler: Literal["none", "shared", "separate"] = "shared"
    slots: Chosen = 0
    slots_shared: bool = True
    kept: list[list[int]] = []


def parse_config(data: Mapping[str, Any], where: str = CONFIG) -> Config:
    """The configuration that the keys of hgviz's own config.json describe.

    Errors: HgvizError for unknown or missing keys, wrong types, and models that cannot be built.
    """
    family = data.get("family", "hourglass")
    if family == "hourglass":
        return _hourglass(data, where)
    preset = PRESETS.get(family, {}) if isinstance(family, str) else {}
    own = converted({**preset, **data}, _Transformer, where)
    named = {f.name: getattr(own, f.name) for f in fields(TransformerConfig)}
    named["activations"] = _activations(own.activations)
    named["labels"] = tuple(own.labels)
    named["kept"] = tuple(map(tuple, own.kept))
    config = TransformerConfig(**named)
    require_activations(config, where)
    return config


def _hourglass(data: Mapping[str, Any], where: str) -> HourglassConfig:
    own = converted(dict(data), _Hourglass, where)
    shared = (f.name for f in fields(HourglassConfig) if f.name in own.__struct_fields__)
    named = {name: getattr(own, name) for name in shared}
    named["hierarchy"] = parse_hierarchy(own.hierarchy, own.vanilla_layers)
    named["activations"] = _activations(own.activations)
    named["kept"] = tuple(map(tuple, own.kept))
    config = HourglassConfig(**named)
    require_activations(config, where)
    return config


def config_json(config: Config) -> dict[str, Any]:
    """The keys of config.json that describe a configuration, none left out."""
    found: dict[str, Any] = {"model_type": "hgviz", "family": config.family}
    kind = _Hourglass if isinstance(config, HourglassConfig) else _Transformer
    for one in fields(config):
        if one.name in kind.__struct_fields__:
            found[one.name] = getattr(config, one.name)
    if isinstance(config, HourglassConfig):
        found["hierarchy"] = str(config.hierarchy)
    return found


def _activations(given: str | list[str | list[str]]) -> tuple[Any, ...]:
    if isinstance(given, str):
        return (given,)
    return tuple(one if isinstance(one, str) else tuple(one) for one in given)


def require_activations(config: Config, where: str) -> None:
    """Errors: HgvizError for activations, norms or a top_k that cannot be used."""
    given, heads = config.activations, config.n_heads
    lists = given if any(isinstance(one, tuple) for one in given) else (given,)
    names = {name for one in lists for name in one} if lists is not given or given else set()
    unknown = sorted({*names, *config.norms} - {*ACTIVATIONS})
    layers = len(replace(config, activations=("softmax",)).layers)
    if lists is given and len(lists) != layers:
        why = f"a list of lists needs one list for each of the {layers} layers"
    elif not all(isinstance(one, tuple) and one and heads % len(one) == 0 for one in lists):
        why = f"a list needs a number of names that divides the {heads} heads"
    elif unknown:
        why = f"there is no activation {unknown[0][:40]!r}"
    elif wrong := sorted({*config.norms.values()} - {*NORMS}):
        why = f"there is no norm {wrong[0][:40]!r}; norms are {', '.join(NORMS)}"
    elif "topk" in names and not config.top_k:
        why = "topk needs top_k, the number of keys each query keeps"
    else:
        return
    raise HgvizError(
        f"the activations in {where} cannot be used", why, f"Choose from {', '.join(ACTIVATIONS)}"
    )
