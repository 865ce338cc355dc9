"""What models are built from, by family: the keys of config.json, and the layers they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hgviz.errors import no_attention_error
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

__all__ = [
    "FAMILIES", "PRESETS", "Attending", "Config", "DynamicConfig", "Family", "HourglassConfig",
    "LSTMConfig", "TransformerConfig", "TransformersConfig", "Unattending",
    "WindowConfig",
    "attending", "head_width", "norms_of", "spread",
]  # fmt: skip
