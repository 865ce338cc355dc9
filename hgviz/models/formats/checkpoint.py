"""Checkpoints: configuration and weights of each format, and hgviz's own folder written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from hgviz.core import HgvizError
from hgviz.files import CONFIG, path_errors, read_object, short_path, write_atomic
from hgviz.models.config import Config, HourglassConfig, TransformersConfig
from hgviz.models.families import build
from hgviz.models.formats import package
from hgviz.models.formats.files import require_finite, require_fit
from hgviz.models.formats.own import config_json, parse_config
from hgviz.models.formats.readers import WEIGHTS, located, weights_of
from hgviz.models.formats.shards import read_weights
from hgviz.models.formats.source import Source
from hgviz.models.layers import Network
from hgviz.models.texts.text import TOKENIZER


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model as read: its configuration, and its weights by neutral names (models.md D).

    digest: sha256 of both, whatever file they came from.
    weights: the file they came from, or the index of several; sources: where it keeps each tensor,
    empty where it cannot be written again. tokenizer: a tokenizer.json, of what the file itself
    says of its vocabulary. unused: the parts of the file that the model has no use for.
    """

    config: Config
    tensors: dict[str, Tensor]
    digest: str
    weights: Path
    sources: Mapping[str, Source] = field(default_factory=dict)
    tokenizer: bytes | None = None
    unused: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where its config.json lies, and maybe a tokenizer.json."""
        return self.weights.parent


def save(
    folder: str | Path,
    config: Config,
    tensors: Mapping[str, Tensor],
    tokenizer: bytes | None = None,
) -> None:
    """Write hgviz's own folder, or one of transformers: config.json, and model.safetensors in the
    tensors' own dtypes.

    tokenizer: what tokenizer.json is to hold; None writes none.
    Each file is whole or not there. Errors: HgvizError where the folder cannot be written.
    """
    from safetensors.torch import save as packed

    folder = Path(folder)
    theirs = isinstance(config, TransformersConfig)
    if isinstance(config, TransformersConfig):
        from hgviz.models.formats.transformers import filed

        tensors, told = filed(config, tensors), config.keys()
    else:
        told = config_json(config)
    kept = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    with path_errors(folder, "could not be written"):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / WEIGHTS, packed(kept, {"format": "pt"} if theirs else None))
        if tokenizer is not None:
            write_atomic(folder / TOKENIZER, tokenizer)
        write_atomic(folder / CONFIG, (json.dumps(told, indent=2) + "\n").encode())


# --- hgviz's own folder ---------------------------------------------------------------------------


def read_own(path: Path) -> Checkpoint:
    """hgviz's own folder. Errors: HgvizError for what is missing, damaged or does not fit."""
    where, weights = located(path)[0], weights_of(path)
    tensors = read_weights(weights)
    data = read_object(where)
    position = tensors.get("embed.position.weight")
    if position is not None and position.dim() == 2 and data.get("max_positions") is None:
        data["max_positions"] = len(position)  # the weights say it where the config does not
    config = parse_config(data, short_path(where))
    require_depth(weights, config, tensors)
    require_fit(weights, shapes_of(config), {name: tuple(t.shape) for name, t in tensors.items()})
    return checked(config, tensors, weights)


# --- hourglass-transformer-pytorch ----------------------------------------------------------------


def read_package(path: Path) -> Checkpoint:
    """A state dict of hourglass-transformer-pytorch. Errors: HgvizError as read_own."""
    where, weights = located(path)[0], weights_of(path)
    held = read_weights(weights)
    found = package.stripped(held)
    shapes = {name: tuple(tensor.shape) for name, tensor in found.items()}
    settled = package.settle(read_object(where), shapes, short_path(where))
    require_depth(weights, settled.config, found)
    wanted = shapes_of(settled.config)
    sources = {name: Source(*package.source(name, settled.config)) for name in wanted}
    expected = {one.name: one.shape(wanted[name]) for name, one in sources.items()}
    require_fit(weights, expected, shapes, settled.why, settled.do)
    tensors = {name: one.take(found[one.name]) for name, one in sources.items()}
    named = dict(zip(found, held, strict=True))  # as the file does, prefixes and all
    kept = {name: replace(one, name=named[one.name]) for name, one in sources.items()}
    return checked(settled.config, tensors, weights, kept)


# --- inside ---------------------------------------------------------------------------------------


def require_depth(weights: Path, config: Config, found: Collection[str]) -> None:
    """Errors: HgvizError where there are more layers than tensors.

    To name every tensor that is missing takes a module of all the layers, which takes seconds.
    """
    if len(config.layers) > len(found):
        raise HgvizError(
            f"{short_path(weights)} does not fit its config.json: "
            f"it holds {len(found):,} tensors, and config.json says {len(config.layers):,} layers",
            "Correct config.json, or choose another file",
        )


def shapes_of(config: Config) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a model, by neutral names; no tensor is made."""
    return {name: tuple(tensor.shape) for name, tensor in outline(config).state_dict().items()}


class _Undrawn(TorchFunctionMode):
    """While modules are made: no number is drawn for their weights.

    Where there is no room for any, torch draws normal ones by way of its compiler, and to load that
    took as long as torch itself.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def outline(config: Config) -> Network:
    """The module that a configuration describes, its tensors without room for a number.

    Errors: HgvizError for a model of transformers, whose modules are not hgviz's.
    """
    if isinstance(config, TransformersConfig):
        raise HgvizError(
            f"this is not done with {config.family} so far: "
            "it asks for modules of hgviz's own, and this model runs through transformers",
            "Look at it, score it, switch heads off, and prune it with --form smaller or zeroed",
        )
    with torch.device("meta"), _Undrawn():
        return build(config)


def checked(
    config: Config,
    tensors: dict[str, Tensor],
    weights: Path,
    sources: Mapping[str, Source] | None = None,
) -> Checkpoint:
    """The checkpoint of a configuration and its tensors; sources: where the file keeps them, under
    their neutral names where left out. Errors: HgvizError for NaN."""
    require_finite(weights, tensors)
    found = sources or {name: Source(name) for name in tensors}
    return Checkpoint(config, tensors, digest_of(config, tensors), weights, found)


def digest_of(config: Config, tensors: Mapping[str, Tensor]) -> str:
    """sha256 of a configuration and its tensors, by their neutral names."""
    if isinstance(config, TransformersConfig):
        return digest_of_tensors(config.keys(), tensors)
    # keys that came later are left out where they say nothing: captures made before them still fit
    later: dict[str, Any] = {
        "norms": {}, "top_k": None, "content": True, "slots_sharing": "tokens",
        "slots_bias": False, "scores": ("dot",), "rank": 8, "shared_width": 0,
    }  # fmt: skip
    if isinstance(config, HourglassConfig):
        later["kept"] = ()
    kept = {
        key: value
        for key, value in config_json(config).items()
        if key not in later or value != later[key]
    }
    return digest_of_tensors(kept, tensors)


def digest_of_tensors(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """sha256 of what a config.json says and of tensors by their names."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
