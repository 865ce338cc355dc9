"""The families of models by their names in config.json, which is read and written here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from hgviz.activations import ACTIVATIONS
from hgviz.errors import HgvizError, require
from hgviz.files import CONFIG, printable, quoted
from hgviz.maps.rule import Norm
from hgviz.models.baselines import LSTMConfig, WindowConfig
from hgviz.models.dynamic import DynamicConfig
from hgviz.models.hourglass import HourglassConfig
from hgviz.models.layers import AttentionConfiguration, Configuration, Network
from hgviz.models.pretrained_config import TransformersConfig
from hgviz.models.transformer import PRESETS, TransformerConfig

NORMS = ("none", *get_args(get_args(Norm)[0]))
FAMILIES: dict[str, type[Configuration]] = {  # PRESETS has what some of them leave out
    "hourglass": HourglassConfig,
    "dynamic": DynamicConfig,
    **dict.fromkeys(PRESETS, TransformerConfig),
    "lstm": LSTMConfig,
    "window": WindowConfig,
}

Keys = TypeVar("Keys")


def parse_config(data: Mapping[str, Any], where: str = CONFIG) -> Configuration:
    """The configuration that the keys of hgviz's own config.json describe; where: its file.

    Raises HgvizError for keys that are unknown, missing or of another type, and for models that
    cannot be built.
    """
    family = data.get("family", "hourglass")
    kind = FAMILIES.get(family) if isinstance(family, str) else None
    if kind is None:
        raise HgvizError(
            f"{where} is invalid: the family is {quoted(family)}, "
            f"and hgviz supports {', '.join(FAMILIES)}",
            f"Correct {where}",
        )
    config = parse_keys({**PRESETS.get(family, {}), **data}, kind, where)
    if isinstance(config, AttentionConfiguration):
        require_activations(config, where)
    return config


def config_json(config: Any) -> dict[str, Any]:
    """Every key of config.json that describes a configuration of hgviz's own."""
    keys = msgspec.structs.asdict(config)
    keys.pop("vanilla_layers", None)  # the hierarchy has them
    return {"model_type": "hgviz", "family": config.family} | keys


def parse_keys(data: Mapping[str, Any], kind: type[Keys], where: str) -> Keys:
    """The struct that keys of a config.json describe. Raises HgvizError naming the first that is
    wrong."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise HgvizError(f"{where} is invalid: {wrong_key(error)}", f"Correct {where}") from None


def wrong_key(error: msgspec.ValidationError) -> str:
    """The key that msgspec found wrong, and why: "recipe: unknown key steeps"."""
    why, _, key = str(error).replace("`", "").partition(" - at $")
    why = why.replace("Object missing required field", "missing key")
    why = why.replace("Object contains unknown field", "unknown key")
    return f"{key.strip('.')}: {printable(why)}" if key else printable(why)


def require_activations(config: Any, where: str) -> None:
    """Raise HgvizError for activations, norms or a top_k that no model can use."""
    activations, heads = config.activations, config.n_heads
    by_layer = any(isinstance(part, tuple) for part in activations)
    lists: tuple[Any, ...] = activations if by_layer else (activations,)
    layers = len(config.replace(activations=("softmax",)).layers)
    fitting = all(isinstance(row, tuple) and row and heads % len(row) == 0 for row in lists)
    names = {name for row in lists if isinstance(row, tuple) for name in row}
    unknown = sorted({*names, *config.norms} - {*ACTIVATIONS})
    norms = sorted({*config.norms.values()} - {*NORMS})
    faults = {
        f"a list of lists needs one list for each of the {layers} layers":
            by_layer and len(lists) != layers,
        f"the number of names must divide the {heads} heads": not fitting,
        f"unknown activation {''.join(unknown[:1])[:40]!r}": unknown,
        f"unknown norm {''.join(norms[:1])[:40]!r}; norms are {', '.join(NORMS)}": norms,
        "topk needs top_k, the number of keys each query keeps":
            "topk" in names and not config.top_k,
    }  # fmt: skip
    for why, is_wrong in faults.items():
        what = f"the activations in {where} are invalid: {why}"
        require(not is_wrong, what, f"Choose from {', '.join(ACTIVATIONS)}")


def outline(config: Configuration) -> Network:
    """The module that a configuration describes, its tensors without memory (on "meta").

    Raises HgvizError for a model of transformers, whose modules are not hgviz's.
    """
    if isinstance(config, TransformersConfig):
        raise HgvizError(
            f"this is not supported for {config.family}: "
            "it needs a model that hgviz builds itself, and this one runs in transformers",
            "Inspect it, score it, switch heads off, or prune it with --form smaller or zeroed",
        )
    with torch.device("meta"), _WithoutInitialization():
        return config.build()


def shapes_of(config: Configuration) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a model, by neutral names; no tensor is made."""
    return {name: tuple(tensor.shape) for name, tensor in outline(config).state_dict().items()}


class _WithoutInitialization(TorchFunctionMode):
    """Skips torch.nn.init: on "meta", normal numbers go through torch's compiler, and to load that
    takes as long as torch itself."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))
