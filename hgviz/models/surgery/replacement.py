"""A model whose attention uses another activation than it was trained with."""

from __future__ import annotations

from dataclasses import replace

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.models.config import NORMS, Attending, Config, attending, require_activations
from hgviz.models.tensors import Checkpoint, digest_of

GRAMMAR = (
    "NAME, NAME:NORM or topk:K; several, separated by commas, go over the heads in equal blocks"
)


def replaced(found: Checkpoint, activation: str) -> Checkpoint:
    """The checkpoint with another activation in all its layers, and so another digest.

    activation: see with_activation. Errors: HgvizError.
    """
    config = with_activation(found.config, activation)
    return replace(found, config=config, digest=digest_of(config, found.tensors))


def with_activation(config: Config, activation: str) -> Attending:
    """A configuration with the activations that a text names, for all heads of all layers.

    Errors: HgvizError as named, for activations that the model cannot have, and for models that do
    not attend.
    """
    names, norms, count = named(activation)
    changed = replace(attending(config), activations=names, norms=norms, top_k=count)
    require_activations(changed, f"{activation[:80]!r}")
    return changed


def named(activation: str) -> tuple[tuple[str, ...], dict[str, str], int | None]:
    """The activations that a text names, the norms of their scores, and the k of topk.

    "ymish", "topk:8" (which keeps 8 keys), "ymish:l2-literal" (the norm of its scores), or a list
    "softmax,ymish" whose names go over the heads of each layer in equal blocks (models.md B.3).
    Errors: HgvizError for what cannot be read.
    """
    names: list[str] = []
    suffixes: dict[str, set[str]] = {}
    for item in activation.split(","):
        name, colon, rest = item.strip().partition(":")
        if name not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise _unread(activation, f"there is no activation {name[:40]!r}; there are {known}")
        if colon or name == "topk":
            _require_suffix(activation, name, rest)
        names.append(name)
        suffixes.setdefault(name, set()).add(rest)
    if twice := [name for name, given in suffixes.items() if len(given) > 1]:
        raise _unread(activation, f"{twice[0]} stands there in two ways, and a model has one")
    chosen = {name: one for name, (one,) in suffixes.items() if one}
    count = chosen.pop("topk", None)
    return tuple(names), chosen, None if count is None else int(count)


def _require_suffix(activation: str, name: str, text: str) -> None:
    if name == "topk":
        if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text)):
            raise _unread(activation, "the activation topk needs a number of keys, as in topk:8")
    elif text not in NORMS:
        raise _unread(
            activation, f"the norms are {', '.join(NORMS)}, and there is no {text[:40]!r}"
        )


def _unread(activation: str, why: str) -> HgvizError:
    return HgvizError(
        f"the activation {activation[:80]!r} cannot be used: {why}", f"Write it as {GRAMMAR}"
    )
