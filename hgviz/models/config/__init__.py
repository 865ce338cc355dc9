"""What models are built from, by family: the keys of config.json, and the layers they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, get_args

import msgspec

from hgviz.activations import ACTIVATIONS
from hgviz.errors import HgvizError, no_attention_error, require
from hgviz.files import CONFIG, printable, quoted
from hgviz.maps.rule import Norm
from hgviz.models.config.dynamic import DynamicConfig, DynamicKeys
from hgviz.models.config.hourglass import HourglassConfig, HourglassKeys
from hgviz.models.config.huggingface import TransformersConfig
from hgviz.models.config.shared import Sizes, head_width, norms_of, spread
from hgviz.models.config.transformer import PRESETS, TransformerConfig, TransformerKeys
from hgviz.models.config.unattending import (
    LSTMConfig,
    LSTMKeys,
    Unattending,
    WindowConfig,
    WindowKeys,
)

Attending = HourglassConfig | TransformerConfig | DynamicConfig | TransformersConfig
Config = Attending | LSTMConfig | WindowConfig
NORMS = ("none", *get_args(get_args(Norm)[0]))

Keys = TypeVar("Keys")


@dataclass(frozen=True, slots=True)
class Family:
    """A family as config.json names it: its configuration, the keys that are read and checked
    first, and what is meant where they are left out.
    """

    config: type[Config]
    keys: type[Sizes]
    preset: Mapping[str, Any] = field(default_factory=dict)


def attending(config: Config) -> Attending:
    """A configuration whose layers attend. Errors: HgvizError for any other."""
    if isinstance(config, Unattending):
        raise no_attention_error(config.family)
    return config


# families.MODULES has the module that each configuration builds
FAMILIES: dict[str, Family] = {
    "hourglass": Family(HourglassConfig, HourglassKeys),
    "dynamic": Family(DynamicConfig, DynamicKeys),
    **{name: Family(TransformerConfig, TransformerKeys, keys) for name, keys in PRESETS.items()},
    "lstm": Family(LSTMConfig, LSTMKeys),
    "window": Family(WindowConfig, WindowKeys),
}

# --- config.json ----------------------------------------------------------------------------------


def parse_config(data: Mapping[str, Any], where: str = CONFIG) -> Config:
    """The configuration that the keys of hgviz's own config.json describe; where: its file.

    Raises HgvizError for keys that are unknown, missing or of another type, and for models that
    cannot be built.
    """
    family = data.get("family", "hourglass")
    kind = FAMILIES.get(family) if isinstance(family, str) else None
    if kind is None:
        raise HgvizError(
            f"{where} does not describe a model hgviz can build: "
            f"family: it is {quoted(family)}, and hgviz knows {', '.join(FAMILIES)}",
            f"Correct {where}",
        )
    config = kind.config(**parse_keys({**kind.preset, **data}, kind.keys, where).arguments())
    if not isinstance(config, Unattending):
        require_activations(config, where)
    return config


def config_json(config: Config) -> dict[str, Any]:
    """Every key of config.json that describes a configuration of hgviz's own."""
    keys = FAMILIES[config.family].keys.__struct_fields__
    found = {one.name: getattr(config, one.name) for one in fields(config) if one.name in keys}
    if isinstance(config, HourglassConfig):
        found["hierarchy"] = str(config.hierarchy)
    return {"model_type": "hgviz", "family": config.family, **found}


def parse_keys(data: Mapping[str, Any], kind: type[Keys], where: str) -> Keys:
    """The struct that keys of a config.json describe. Raises HgvizError naming the first that is
    wrong."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        why, _, key = str(error).replace("`", "").partition(" - at $")
        why = why.replace("Object missing required field", "it lacks")
        why = why.replace("Object contains unknown field", "hgviz knows no")
        place = f"{key.strip('.')}: " if key else ""
        raise HgvizError(
            f"{where} does not describe a model hgviz can build: {place}{printable(why)}",
            f"Correct {where}",
        ) from None


def require_activations(config: Attending, where: str) -> None:
    """Raise HgvizError for activations, norms or a top_k that no model can use."""
    given, heads = config.activations, config.n_heads
    by_layer = any(isinstance(one, tuple) for one in given)
    lists: tuple[Any, ...] = given if by_layer else (given,)
    layers = len(replace(config, activations=("softmax",)).layers)
    fitting = all(isinstance(one, tuple) and one and heads % len(one) == 0 for one in lists)
    names = {name for one in lists if isinstance(one, tuple) for name in one}
    unknown = sorted({*names, *config.norms} - {*ACTIVATIONS})
    norms = sorted({*config.norms.values()} - {*NORMS})
    faults = {
        f"a list of lists needs one list for each of the {layers} layers":
            by_layer and len(lists) != layers,
        f"a list needs a number of names that divides the {heads} heads": not fitting,
        f"there is no activation {''.join(unknown[:1])[:40]!r}": unknown,
        f"there is no norm {''.join(norms[:1])[:40]!r}; norms are {', '.join(NORMS)}": norms,
        "topk needs top_k, the number of keys each query keeps":
            "topk" in names and not config.top_k,
    }  # fmt: skip
    for why, is_wrong in faults.items():
        what = f"the activations in {where} cannot be used: {why}"
        require(not is_wrong, what, f"Choose from {', '.join(ACTIVATIONS)}")


__all__ = [
    "FAMILIES", "NORMS", "PRESETS", "Attending", "Config", "DynamicConfig", "Family",
    "HourglassConfig", "LSTMConfig", "TransformerConfig", "TransformersConfig", "Unattending",
    "WindowConfig", "attending", "config_json", "head_width", "norms_of", "parse_config",
    "parse_keys", "require_activations", "spread",
]  # fmt: skip
