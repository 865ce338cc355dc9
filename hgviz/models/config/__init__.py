"""What models are built from, by family: the keys of config.json, and the layers they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hgviz.models.config.hourglass import HourglassConfig, HourglassKeys
from hgviz.models.config.shared import Keys, head_width, norms_of, spread
from hgviz.models.config.transformer import PRESETS, TransformerConfig, TransformerKeys

Config = HourglassConfig | TransformerConfig


@dataclass(frozen=True, slots=True)
class Family:
    """A family as config.json names it: its configuration, the keys that are read and checked
    first, and what is meant where they are left out.
    """

    config: type[Config]
    keys: type[Keys]
    preset: Mapping[str, Any] = field(default_factory=dict)


# families.MODULES has the module that each configuration builds
FAMILIES: dict[str, Family] = {
    "hourglass": Family(HourglassConfig, HourglassKeys),
    **{name: Family(TransformerConfig, TransformerKeys, keys) for name, keys in PRESETS.items()},
}

__all__ = [
    "FAMILIES", "PRESETS", "Config", "Family", "HourglassConfig", "TransformerConfig",
    "head_width", "norms_of", "spread",
]  # fmt: skip
