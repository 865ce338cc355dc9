"""State dicts of the package hourglass-transformer-pytorch: their names, and what they tell.

The package is lucidrains' (PyPI, 0.0.6); models.md A.5 says how it computes and D how its names
map to the neutral ones. Which heads a matrix holds, whether it is causal and how far an average
shortens cannot be seen in weights: config.json must say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from hgviz.core import HgvizError
from hgviz.files import CONFIG
from hgviz.models.config import HourglassConfig
from hgviz.models.formats.files import Shapes, dims
from hgviz.models.formats.readers import PACKAGE, converted
from hgviz.models.hierarchy import from_depth

PREFIXES = ("module.", "net.")

Value = TypeVar("Value")
Count = Annotated[int, msgspec.Meta(ge=1, le=2**24)]
Heads = Annotated[int, msgspec.Meta(ge=1, le=2**12)]


class _Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of HourglassTransformerLM as config.json gives them; None: not given."""

    model_type: Literal["hourglass-transformer-pytorch"]
    num_tokens: Count | None = None
    dim: Count | None = None
    max_seq_len: Count | None = None
    depth: int | list[Any] | None = None
    shorten_factor: int | list[int] | None = None
    heads: Heads | None = None
    dim_head: Count | None = None
    attn_resampling: bool | None = None
    updown_sample_type: Literal["naive", "linear"] | None = None
    causal: bool | None = None
    masking: Literal["strict", "compat"] = "compat"


@dataclass(frozen=True, slots=True)
class Settled:
    """The configuration, and what to say if the weights do not fit it."""

    config: HourglassConfig
    why: str = ""
    do: str = ""


def stripped(tensors: Mapping[str, Value]) -> dict[str, Value]:
    """Names without the prefixes that wrappers put before every one of them."""
    found = dict(tensors)
    while prefix := next(
        (p for p in PREFIXES if found and all(n.startswith(p) for n in found)), ""
    ):
        found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
    return found


def settle(data: dict[str, Any], shapes: Shapes, where: str) -> Settled:
    """The configuration that config.json states and, where it is silent, that the weights show.

    Errors: HgvizError naming every key that neither says, and for what cannot be built.
    """
    if len(shapes.get("token_emb.weight", ())) != 2:
        raise HgvizError(
            "these weights are of another model: "
            f"they hold no token_emb.weight, as every state dict of {PACKAGE} does",
            "Choose another file",
        )
    stated = converted(data, _Stated, where)
    seen = _seen(shapes)
    given = {name: getattr(stated, name) for name in _Stated.__struct_fields__}
    known = {name: seen.get(name) if one is None else one for name, one in given.items()}
    _settle_heads(known, seen.pop("inner"), where)
    _require(known, where)
    why, do = _difference(given, seen, shapes)
    return Settled(_config(known), why, do)


def source(name: str, config: HourglassConfig) -> tuple[str, int, int]:
    """Where the package keeps a neutral tensor: its name there, and which of how many row blocks.

    Source: models.md D; to_kv holds the keys' rows and then the values'.
    """
    levels = len(config.hierarchy.factors)
    if name in _PLAIN:
        return _PLAIN[name], 0, 1
    if name.startswith("ln_f."):
        inner = "norm_out" if levels else "norm"
        return f"transformer.{inner}.{name.removeprefix('ln_f.')}", 0, 1
    place, rest = _place(name, levels)
    if rest.startswith("proj."):
        return f"{place}.{rest}", 0, 1
    if rest in ("attn.k.weight", "attn.v.weight"):
        return f"{place}.0.fn.to_kv.weight", int(rest == "attn.v.weight"), 2
    module, _, kind = rest.rpartition(".")
    return f"{place}.{_MODULES[module]}.{kind}", 0, 1


# --- names ----------------------------------------------------------------------------------------

_PLAIN = {
    "embed.token.weight": "token_emb.weight",
    "embed.position.weight": "pos_emb.weight",
    "lm_head.weight": "to_logits.weight",
    "lm_head.bias": "to_logits.bias",
}
_MODULES = {
    "ln_attn": "0.norm",
    "attn.q": "0.fn.to_q",
    "attn.o": "0.fn.to_out",
    "ln_ff": "1.norm",
    "ff.in": "1.fn.0",
    "ff.out": "1.fn.3",
}
_RESAMPLERS = {
    "down": ("downsample", "attn_resampling_pre_valley.layers.0"),
    "up": ("upsample", "attn_resampling_post_valley.layers.0"),
}


def _top(level: int) -> str:
    return "transformer" + ".valley_transformer" * level


def _place(name: str, levels: int) -> tuple[str, str]:
    """The module that holds a tensor, and the rest of its neutral name."""
    stack, *rest = name.split(".")
    if stack == "middle":
        return f"{_top(levels)}.layers.{rest[0]}", ".".join(rest[1:])
    level = _top(int(rest[0]))
    if stack in _RESAMPLERS:
        base, attention = _RESAMPLERS[stack]
        inner = base if rest[1] == "proj" else attention
        return f"{level}.{inner}", ".".join(rest[1:])
    return f"{level}.{stack}_transformer.layers.{rest[1]}", ".".join(rest[2:])


# --- what weights tell ----------------------------------------------------------------------------


def _seen(shapes: Shapes) -> dict[str, Any]:
    tokens, dim = shapes["token_emb.weight"]
    seen: dict[str, Any] = {"num_tokens": tokens, "dim": dim}
    if positions := shapes.get("pos_emb.weight"):
        seen["max_seq_len"] = positions[0]
    seen["depth"] = _depth(shapes, 0)
    if isinstance(seen["depth"], list):
        seen["attn_resampling"] = any("attn_resampling_pre_valley." in name for name in shapes)
        factors = _factors(shapes, dim)
        seen["updown_sample_type"] = "linear" if factors else "naive"
        if factors:
            seen["shorten_factor"] = factors
    queries = (shape for name, shape in shapes.items() if name.endswith(".to_q.weight"))
    seen["inner"] = next((shape[0] for shape in queries if len(shape) == 2), None)
    return seen


def _depth(shapes: Shapes, level: int) -> Any:
    top = _top(level)
    nested = any(name.startswith(f"{top}.{part}") for part in _OF_NESTED for name in shapes)
    if not nested or level > 16:
        return _layers(shapes, top)
    pre, post = (_layers(shapes, f"{top}.{part}_transformer") for part in ("pre", "post"))
    return [pre, _depth(shapes, level + 1), post]


_OF_NESTED = (
    "pre_transformer.",
    "post_transformer.",
    "valley_transformer.",
    "attn_",
    "downsample.",
)


def _layers(shapes: Shapes, stack: str) -> int:
    row = re.compile(re.escape(stack) + r"\.layers\.(\d+)\.")
    return len({match[1] for name in shapes if (match := row.match(name))})


def _factors(shapes: Shapes, dim: int) -> list[int]:
    factors: list[int] = []
    while shape := shapes.get(f"{_top(len(factors))}.downsample.proj.weight"):
        factors.append(shape[-1] // dim)
    return factors


# --- what config.json must say --------------------------------------------------------------------


def _settle_heads(known: dict[str, Any], inner: int | None, where: str) -> None:
    """Heads and their width from one another, as the projections show their product."""
    for one, other in (("heads", "dim_head"), ("dim_head", "heads")):
        if known[one] is None and known[other] is not None and inner is not None:
            if inner % known[other]:
                raise HgvizError(
                    f"{other} {known[other]} does not divide the width of the heads: "
                    f"to_q.weight has {inner} rows, {known[other]} times nothing whole",
                    f"Correct {other} in {where}",
                )
            known[one] = inner // known[other]


def _require(known: dict[str, Any], where: str) -> None:
    flat = isinstance(known["depth"], int)
    needless = ("shorten_factor", "attn_resampling", "updown_sample_type") if flat else ()
    if flat and known["shorten_factor"]:
        raise HgvizError(
            f"{where} gives a shorten_factor to a model that does not shorten: "
            f"its depth is the number {known['depth']}",
            "Leave shorten_factor out, or give depth as [before, inner, after]",
        )
    missing = [name for name, one in known.items() if one is None and name not in needless]
    if "heads" in missing and "dim_head" in missing:
        missing.remove("dim_head")  # it follows from heads
    if missing:
        listed = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        raise HgvizError(
            f"{where} does not say {listed}: "
            + (
                "the weights do not show it"
                if len(missing) == 1
                else "the weights do not show them"
            ),
            "Add " + ", ".join(f'"{name}": {_EXAMPLES.get(name, 512)}' for name in missing),
        )


_EXAMPLES = {
    "heads": "8 (or as many as there were)",
    "causal": "true or false",
    "shorten_factor": "2, or [3, 2] for one per level",
}


def _difference(
    given: Mapping[str, Any], seen: Mapping[str, Any], shapes: Shapes
) -> tuple[str, str]:
    """Which key to correct, told by the tensor that shows it."""
    for name, tensor in _SHOWN_BY.items():
        if given[name] not in (None, seen.get(name)) and tensor in shapes:
            return (
                f"{CONFIG} says {name} {given[name]}; {tensor} is {dims(shapes[tensor])}",
                f'Set "{name}" to {seen[name]} in {CONFIG}, or choose another file',
            )
    return "", ""


_SHOWN_BY = {
    "num_tokens": "token_emb.weight",
    "dim": "token_emb.weight",
    "max_seq_len": "pos_emb.weight",
}


def _config(known: Mapping[str, Any]) -> HourglassConfig:
    linear, resampled = known["updown_sample_type"] == "linear", bool(known["attn_resampling"])
    down, up = ("linear", "linear") if linear else ("average", "repeat")
    return HourglassConfig(
        vocab_size=known["num_tokens"],
        d_model=known["dim"],
        n_heads=known["heads"],
        d_head=known["dim_head"],
        hierarchy=from_depth(known["depth"], known["shorten_factor"]),
        form="windowed",
        downsampling="attention" if resampled else down,  # type: ignore[arg-type]
        upsampling="attention" if resampled else up,  # type: ignore[arg-type]
        attention_downsampling=down,  # type: ignore[arg-type]
        attention_upsampling=up,  # type: ignore[arg-type]
        positions="learned",
        max_positions=known["max_seq_len"],
        causal=known["causal"],
        masking=known["masking"],
    )
