"""The families of models: the module that each configuration builds."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from hgviz.errors import HgvizError
from hgviz.models.config import (
    Config,
    DynamicConfig,
    HourglassConfig,
    LSTMConfig,
    TransformerConfig,
    TransformersConfig,
    WindowConfig,
)
from hgviz.models.families.dynamic import Dynamic
from hgviz.models.families.hourglass import Hourglass
from hgviz.models.families.lstm import LSTM
from hgviz.models.families.transformer import Transformer
from hgviz.models.families.window import Window
from hgviz.models.layers import Network

MODULES: dict[type[Config], type[Network]] = {
    HourglassConfig: Hourglass,
    DynamicConfig: Dynamic,
    TransformerConfig: Transformer,
    LSTMConfig: LSTM,
    WindowConfig: Window,
}


def build(config: Config) -> Network:
    """The module that a configuration describes, its weights as torch initialises them."""
    return MODULES[type(config)](config)


def outline(config: Config) -> Network:
    """The module that a configuration describes, its tensors without memory (on "meta").

    Raises HgvizError for a model of transformers, whose modules are not hgviz's.
    """
    if isinstance(config, TransformersConfig):
        raise HgvizError(
            f"this is not done with {config.family} so far: "
            "it asks for modules of hgviz's own, and this model runs through transformers",
            "Look at it, score it, switch heads off, and prune it with --form smaller or zeroed",
        )
    with torch.device("meta"), _WithoutInitialization():
        return build(config)


def shapes_of(config: Config) -> dict[str, tuple[int, ...]]:
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
