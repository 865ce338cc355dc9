"""What a model is given, checked before a tensor is made of it. numpy only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import HgvizError, Integers, ModelSpec, readonly
from hgviz.models.text import require_room

READS = {"text": "text", "image": "images", "audio": "sound"}
TAKEN = "Use `hgviz capture` or `hgviz compare`, which take --{0} FILE"


def ids_and_mask(
    spec: ModelSpec, ids: Any, attention_mask: Any
) -> tuple[Integers, NDArray[np.bool_] | None]:
    """Ids and mask as arrays of the same shape, (n,) or (batch, n)."""
    found = _integers(ids, "ids")
    require_room(found.shape[-1] if found.size else 0, spec.max_positions)
    if not spec.vocabulary:
        raise HgvizError(
            f"this model reads {READS[spec.modality]} and no token ids: "
            f"its family is {spec.family}",
            TAKEN.format(spec.modality),
        )
    low, high = int(found.min()), int(found.max())
    if low < 0 or high >= spec.vocabulary:
        raise HgvizError(
            f"there is no token {low if low < 0 else high}: "
            f"this model's ids go from 0 to {spec.vocabulary - 1:,}",
            "Use the tokenizer the model was trained with",
        )
    mask = None if attention_mask is None else mask_of(attention_mask, found.shape)
    return readonly(found), mask


def mask_of(values: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A mask of 0 and 1 as booleans of that shape. Errors: HgvizError."""
    return _bits(values, shape, "attention_mask")


def boundaries_of(values: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Boundaries, 1 where a token closes a segment, as booleans of that shape. Errors:
    HgvizError."""
    return _bits(values, shape, "boundaries")


def _bits(values: Any, shape: tuple[int, ...], name: str) -> NDArray[np.bool_]:
    bits = _integers(values, name)
    if bits.shape != shape or not np.isin(bits, (0, 1)).all():
        short, several = name.rpartition("_")[2], name.endswith("s")
        raise HgvizError(
            f"the {name} {'do' if several else 'does'} not fit the ids: "
            f"{'they need' if several else 'it needs'} one 0 or 1 for each: "
            f"ids {shape}, {short} {bits.shape}"
        )
    return bits.astype(bool)


def token_types(
    spec: ModelSpec, segments: int, token_type_ids: Any, shape: tuple[int, ...]
) -> Integers | None:
    """Token types from 0 to segments - 1, of the ids' shape. Errors: HgvizError."""
    if token_type_ids is None:
        return None
    require_none({} if segments else {"token_type_ids": 1}, spec.family)
    kinds = _integers(token_type_ids, "token_type_ids")
    if kinds.shape != shape or kinds.min() < 0 or kinds.max() >= segments:
        raise HgvizError(
            "the token_type_ids do not fit the ids: "
            f"it needs one from 0 to {segments - 1} for each: ids {shape}, types {kinds.shape}"
        )
    return kinds


def positions_of(
    spec: ModelSpec, position_ids: Any, shape: tuple[int, ...], limit: int | None
) -> Integers:
    """Positions of the ids' shape, below the limit where there is one. Errors: HgvizError."""
    if limit is None:
        require_none({"position_ids": position_ids}, spec.family)
    places = _integers(position_ids, "position_ids")
    if places.shape != shape or places.min() < 0 or places.max() >= (limit or 0):
        raise HgvizError(
            "the position_ids do not fit the ids: "
            f"it needs one from 0 to {(limit or 0) - 1:,} for each: ids {shape}, "
            f"positions {places.shape}"
        )
    return places


def encoder_states(spec: ModelSpec, states: Any) -> NDArray[Any]:
    """States (m, width) or (batch, m, width), finite. Errors: HgvizError."""
    found = np.asarray(states)
    good = found.ndim in (2, 3) and found.dtype.kind == "f" and found.shape[-1] == spec.width
    with np.errstate(over="ignore"):  # captures keep them in float32
        good = good and found.size > 0 and bool(np.isfinite(found.astype(np.float32)).all())
    if not good:
        raise HgvizError(
            "the encoder states do not fit this model: "
            f"it needs finite numbers (positions, {spec.width}), these are "
            f"{found.dtype} {found.shape}"
        )
    return found


def require_none(arguments: dict[str, Any], family: str) -> None:
    """Errors: HgvizError for the first argument that is given to a model that does not take it."""
    for name, value in arguments.items():
        if value is not None:
            raise HgvizError(
                f"this model does not take {name}: its family is {family}", f"Leave {name} out"
            )


def _integers(values: Any, name: str) -> Integers:
    try:
        found = np.asarray(values)
    except ValueError:
        raise HgvizError(f"the {name} are no array: their rows differ in length") from None
    if found.size and found.dtype.kind not in "iub":
        raise HgvizError(f"the {name} are no integers: they are {found.dtype}")
    if found.ndim not in (1, 2):
        raise HgvizError(f"the {name} are no sequence: they have {found.ndim} dimensions")
    return found.astype(np.int64)
