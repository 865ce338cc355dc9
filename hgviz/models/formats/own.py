"""hgviz's own config.json: checked when it is read, complete when it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.files import CONFIG, quoted
from hgviz.maps.rule import Norm
from hgviz.models.config import FAMILIES, Attending, Config, HourglassConfig, Unattending
from hgviz.models.formats.readers import converted

NORMS = ("none", *get_args(get_args(Norm)[0]))


def parse_config(data: Mapping[str, Any], where: str = CONFIG) -> Config:
    """The configuration that the keys of hgviz's own config.json describe.

    Errors: HgvizError for unknown or missing keys, wrong types, and models that cannot be built.
    """
    family = data.get("family", "hourglass")
    kind = FAMILIES.get(family) if isinstance(family, str) else None
    if kind is None:
        raise HgvizError(
            f"{where} does not describe a model hgviz can build: "
            f"family: it is {quoted(family)}, and hgviz knows {', '.join(FAMILIES)}",
            f"Correct {where}",
        )
    config = kind.config(**converted({**kind.preset, **data}, kind.keys, where).arguments())
    if not isinstance(config, Unattending):
        require_activations(config, where)
    return config


def config_json(config: Config) -> dict[str, Any]:
    """The keys of config.json that describe a configuration, none left out."""
    found: dict[str, Any] = {"model_type": "hgviz", "family": config.family}
    for one in fields(config):
        if one.name in FAMILIES[config.family].keys.__struct_fields__:
            found[one.name] = getattr(config, one.name)
    if isinstance(config, HourglassConfig):
        found["hierarchy"] = str(config.hierarchy)
    return found


def require_activations(config: Attending, where: str) -> None:
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
        f"the activations in {where} cannot be used: {why}", f"Choose from {', '.join(ACTIVATIONS)}"
    )
