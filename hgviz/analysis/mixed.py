"""A capture whose keys are slots, with the tokens in their place that slots are mixed of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hgviz.core import Capture, HgvizError, Level, Map, readonly
from hgviz.errors import require
from hgviz.maps import SlotMap


def has_slots(capture: Capture) -> bool:
    """Whether what its layers look at are mixtures of all tokens."""
    return any(level.sequence == "slots" for level in capture.spec.levels)


def is_of_tokens(capture: Capture) -> bool:
    """Whether tokens stand in the place of slots."""
    return any(isinstance(one, SlotMap) for one in capture.maps)


def of_tokens(capture: Capture) -> Capture:
    """The same with tokens for keys: how much of the value of each comes to each query, signed.

    Nothing is computed before it is read. Errors: HgvizError where keys are no slots, and where the
    capture does not say what these are mixed of.
    """
    if is_of_tokens(capture):
        return capture
    require(
        has_slots(capture),
        "this model looks at tokens already: "
        "only a projected sequence has slots that are mixed of them",
        "Look at its maps as they are",
    )
    layers = tuple(replace(one, key_level=one.level) for one in capture.spec.layers)
    spec = replace(capture.spec, levels=(Level(0),), layers=layers)
    maps = tuple(map(_mixed, capture.maps))
    return replace(capture, spec=spec, spans=capture.spans[:1], maps=maps)


def of_slots(capture: Capture) -> Capture:
    """What of_tokens was given."""
    maps = tuple(one.whole if isinstance(one, SlotMap) else one for one in capture.maps)
    slots = max(one.shape[2] for one in maps if one is not None)
    ends = np.arange(slots, dtype=np.int64)
    layers = tuple(replace(one, key_level=1) for one in capture.spec.layers)
    levels = (Level(0), Level(1, sequence="slots"))
    spec = replace(capture.spec, levels=levels, layers=layers)
    spans = (*capture.spans, readonly(np.stack([ends, ends + 1], axis=1)))
    return replace(capture, spec=spec, spans=spans, maps=maps)


def _mixed(one: Map | None) -> Map | None:
    if one is None:
        return None
    mixture = getattr(one, "mixture", None)
    if mixture is None:
        raise HgvizError(
            "this capture does not say which tokens its slots are mixed of: "
            "it was made before captures kept that",
            "Capture the text again",
        )
    return SlotMap(one, mixture)


__all__ = ["has_slots", "is_of_tokens", "of_slots", "of_tokens"]
