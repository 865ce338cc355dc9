"""A capture whose keys are slots, with the tokens in their place that slots are mixed of."""

from __future__ import annotations

from hgviz.core import Capture, HgvizError, Level, Map, replace
from hgviz.maps import Mixed


def has_slots(capture: Capture) -> bool:
    """Whether what its layers look at are mixtures of all tokens."""
    return any(level.sequence == "slots" for level in capture.spec.levels)


def of_tokens(capture: Capture) -> Capture:
    """The same with tokens for keys: how much of the value of each comes to each query, signed.

    Nothing is computed before it is read. Errors: HgvizError where keys are no slots, and where the
    capture does not say what these are mixed of.
    """
    if not has_slots(capture):
        raise HgvizError(
            "this model looks at tokens already",
            "only a projected sequence has slots that are mixed of them",
            "Look at its maps as they are",
        )
    layers = tuple(replace(one, key_level=one.level) for one in capture.spec.layers)
    spec = replace(capture.spec, levels=(Level(0),), layers=layers)
    maps = tuple(map(_mixed, capture.maps))
    return replace(capture, spec=spec, spans=capture.spans[:1], maps=maps)


def _mixed(one: Map | None) -> Map | None:
    if one is None:
        return None
    mixture = getattr(one, "mixture", None)
    if mixture is None:
        raise HgvizError(
            "this capture does not say which tokens its slots are mixed of",
            "it was made before captures kept that",
            "Capture the text again",
        )
    return Mixed(one, mixture)


__all__ = ["has_slots", "of_tokens"]
