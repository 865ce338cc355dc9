"""Checkpoints: configuration and weights of each format, and hgviz's own folder written."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import torch
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.models import package
from hgviz.models.config import HourglassConfig
from hgviz.models.files import read_tensors, require_finite, require_fit
from hgviz.models.hierarchy import parse_hierarchy
from hgviz.models.hourglass import Hourglass
from hgviz.models.readers import (
    CONFIG,
    WEIGHTS,
    converted,
    located,
    path_errors,
    read_config,
    shown,
    weights_of,
)

USABLE = tuple(name for name in ACTIVATIONS if name != "topk")  # the config has no place for its k


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model as read: its configuration, and its weights by neutral names (models.md D).

    digest: sha256 of both, whatever file they came from. folder: where a tokenizer.json may lie.
    """

    config: HourglassConfig
    tensors: dict[str, Tensor]
    digest: str
    folder: Path


def save(folder: str | Path, config: HourglassConfig, tensors: Mapping[str, Tensor]) -> None:
    """Write hgviz's own folder: config.json, and model.safetensors in the tensors' own dtypes.

    Each file is whole or not there. Errors: HgvizError where the folder cannot be written.
    """
    from safetensors.torch import save as packed

    folder = Path(folder)
    kept = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    with path_errors(folder, "could not be written"):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / WEIGHTS, packed(kept))
        _write(folder / CONFIG, (json.dumps(_config_json(config), indent=2) + "\n").encode())


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


# --- hgviz's own folder ---------------------------------------------------------------------------

Count = Annotated[int, msgspec.Meta(ge=1, le=2**24)]
Width = Annotated[int, msgspec.Meta(ge=1, le=2**20)]
Heads = Annotated[int, msgspec.Meta(ge=1, le=2**12)]
Chosen = Annotated[int, msgspec.Meta(ge=0, le=2**20)]  # 0: from the other widths


class _Own(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """config.json of hgviz's own folder; what is left out has HourglassConfig's default."""

    vocab_size: Count
    d_model: Width
    n_heads: Heads
    hierarchy: str
    model_type: Literal["hgviz"] = "hgviz"
    family: Literal["hourglass"] = "hourglass"
    vanilla_layers: tuple[int, int] | None = None
    form: Literal["official", "windowed"] = "official"
    d_head: Chosen = 0
    d_ff: Chosen = 0
    downsampling: Literal["average", "linear", "attention"] = "attention"
    upsampling: Literal["repeat", "linear", "attention"] = "attention"
    attention_downsampling: Literal["average", "linear"] = "average"
    attention_upsampling: Literal["repeat", "linear", "none"] = "linear"
    positions: Literal["learned", "relative", "rotary", "none"] = "relative"
    max_positions: Count | None = None
    causal: bool = True
    activations: str | list[str | list[str]] = "softmax"
    masking: Literal["strict", "compat"] = "strict"


_SHARED = tuple(f.name for f in fields(HourglassConfig) if f.name in _Own.__struct_fields__)


def parse_config(data: Mapping[str, Any], where: str = CONFIG) -> HourglassConfig:
    """The configuration that the keys of hgviz's own config.json describe.

    Errors: HgvizError for unknown or missing keys, wrong types, and models that cannot be built.
    """
    own = converted(dict(data), _Own, where)
    shape = parse_hierarchy(own.hierarchy, own.vanilla_layers)
    named = {name: getattr(own, name) for name in _SHARED}
    activations = _activations(own.activations)
    config = HourglassConfig(**{**named, "hierarchy": shape, "activations": activations})
    _require_activations(config, where)
    return config


def _config_json(config: HourglassConfig) -> dict[str, Any]:
    kept = {name: getattr(config, name) for name in _SHARED}
    return {
        "model_type": "hgviz",
        "family": "hourglass",
        **kept,
        "hierarchy": str(config.hierarchy),
    }


def _activations(given: str | list[str | list[str]]) -> tuple[Any, ...]:
    if isinstance(given, str):
        return (given,)
    return tuple(one if isinstance(one, str) else tuple(one) for one in given)


def _require_activations(config: HourglassConfig, where: str) -> None:
    given = config.activations
    lists = given if any(isinstance(one, tuple) for one in given) else (given,)
    if lists is given and len(lists) != len(replace(config, activations=("softmax",)).layers):
        why = "a list of lists needs one list per layer"
    elif not all(isinstance(one, tuple) and len(one) in (1, config.n_heads) for one in lists):
        why = f"a list needs one name, or one for each of the {config.n_heads} heads"
    elif unknown := [name for one in lists for name in one if name not in USABLE]:
        why = f"there is no activation {unknown[0][:40]!r}"
    else:
        return
    raise HgvizError(
        f"the activations in {where} cannot be used", why, f"Choose from {', '.join(USABLE)}"
    )


def read_own(path: Path) -> Checkpoint:
    """hgviz's own folder. Errors: HgvizError for what is missing, damaged or does not fit."""
    where, weights = located(path)[0], weights_of(path)
    tensors = read_tensors(weights)
    data = read_config(where)
    position = tensors.get("embed.position.weight")
    if position is not None and position.dim() == 2 and data.get("max_positions") is None:
        data["max_positions"] = len(position)  # the weights say it where the config does not
    config = parse_config(data, shown(where))
    require_fit(weights, shapes_of(config), {name: tuple(t.shape) for name, t in tensors.items()})
    return _checkpoint(config, tensors, weights)


# --- hourglass-transformer-pytorch ----------------------------------------------------------------


def read_package(path: Path) -> Checkpoint:
    """A state dict of hourglass-transformer-pytorch. Errors: HgvizError as read_own."""
    where, weights = located(path)[0], weights_of(path)
    found = package.stripped(read_tensors(weights))
    shapes = {name: tuple(tensor.shape) for name, tensor in found.items()}
    settled = package.settle(read_config(where), shapes, shown(where))
    wanted = shapes_of(settled.config)
    sources = {name: package.source(name, settled.config) for name in wanted}
    expected = {
        source: (parts * wanted[name][0], *wanted[name][1:])
        for name, (source, _, parts) in sources.items()
    }
    require_fit(weights, expected, shapes, settled.why, settled.do)
    tensors = {
        name: found[source].chunk(parts)[part] for name, (source, part, parts) in sources.items()
    }
    return _checkpoint(settled.config, tensors, weights)


# --- inside ---------------------------------------------------------------------------------------


def shapes_of(config: HourglassConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a model, by neutral names; no tensor is made."""
    with torch.device("meta"):
        model = Hourglass(config)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _checkpoint(config: HourglassConfig, tensors: dict[str, Tensor], weights: Path) -> Checkpoint:
    require_finite(weights, tensors)
    return Checkpoint(config, tensors, _digest(config, tensors), weights.parent)


def _digest(config: HourglassConfig, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(_config_json(config), sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.view(torch.uint8).numpy().data)
    return digest.hexdigest()
