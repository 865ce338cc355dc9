"""The families of models: the module that each configuration builds."""

from __future__ import annotations

from hgviz.models.config import (
    Config,
    DynamicConfig,
    HourglassConfig,
    LSTMConfig,
    TransformerConfig,
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
