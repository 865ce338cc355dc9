"""Folders that the package transformers writes: what all families of it share.

A family (bert.py, gpt2.py) says how its config.json reads and where its files keep each neutral
tensor (models.md D); here names are stripped, shapes are compared and tensors are taken over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import torch
from torch import Tensor

from hgviz.core import Goal, HgvizError
from hgviz.models.config import FunnelConfig, TransformerConfig
from hgviz.models.formats.checkpoint import Checkpoint, checked, require_depth, shapes_of
from hgviz.models.formats.files import Shapes, require_fit
from hgviz.models.formats.readers import (
    located,
    plain,
    quoted,
    read_config,
    shown,
    weights_of,
)
from hgviz.models.formats.shards import read_weights
from hgviz.models.formats.source import Source

MOST_LABELS = 10_000
NON_LINEARITIES = {
    "gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu",
}  # fmt: skip


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """What every family's config.json says; transformers' own defaults, other keys are ignored."""

    architectures: list[str] | None = None
    add_cross_attention: bool = False
    tie_word_embeddings: bool = True
    position_embedding_type: str | None = None
    pruned_heads: dict[str, list[int]] | None = None
    id2label: dict[str, str | int] | None = None
    num_labels: int | None = None


Built = TypeVar("Built", TransformerConfig, FunnelConfig)


class Family(Protocol[Built]):
    """One family of transformers; a module."""

    PREFIX: str  # before the names of the model within one with a head, such as "bert."
    OUTER: tuple[str, ...]  # how the names of heads begin, which never have the prefix
    EMBEDDING: str  # the matrix that every model of the family has
    HEAD: str  # the vocabulary's matrix; tied to the embedding where it is left out
    INSTEAD: dict[str, str]  # a tensor, and the one that is used in its place where it is there
    BUFFERS: re.Pattern[str]  # names that are no weights

    def settle(self, data: dict[str, Any], names: Collection[str], where: str) -> Built:
        """The configuration that a config.json and the tensors' names describe."""
        ...

    def source(self, name: str, config: Built) -> Source:
        """Where the family keeps a neutral tensor."""
        ...

    def harmless(self, config: Built) -> re.Pattern[str]:
        """Names of weights that a model of this goal does not use."""
        ...


def read(path: Path, family: Family[Built]) -> Checkpoint:
    """A folder of one family. Errors: HgvizError for what is missing, damaged or does not fit."""
    where, weights = located(path)[0], weights_of(path)
    data = read_config(where)
    names = _named(weights, read_weights(weights, lambda one: _buffer(one, family)), family)
    config = _tied(family.settle(data, names, shown(where)), family, names)
    require_depth(weights, config, names)
    wanted = shapes_of(config)
    sources = {name: family.source(name, config) for name in wanted}
    _require_fit(weights, family, config, sources, wanted, names)
    tensors = {name: one.take(names[one.name][1]) for name, one in sources.items()}
    kept = {name: replace(one, name=names[one.name][0]) for name, one in sources.items()}
    return checked(config, tensors, weights, kept)


# --- names ----------------------------------------------------------------------------------------

_Named = Mapping[str, tuple[str, Tensor]]


def _buffer(name: str, family: Family[Any]) -> bool:
    return bool(family.BUFFERS.fullmatch(_canonical(name, family)))


def _canonical(name: str, family: Family[Any]) -> str:
    """A name without the wrapper's and the model's prefix, and with norms' names of today."""
    name = name.removeprefix("module.").removeprefix(family.PREFIX)
    return re.sub(r"\.beta$", ".bias", re.sub(r"\.gamma$", ".weight", name))


def _named(weights: Path, held: Mapping[str, Tensor], family: Family[Any]) -> _Named:
    """Tensors by canonical name, each with the name that the file gives it."""
    found: dict[str, tuple[str, Tensor]] = {}
    for name, tensor in held.items():
        canonical = _canonical(name, family)
        if canonical in found:
            raise HgvizError(
                f"{shown(weights)} holds one tensor twice",
                f"{plain(found[canonical][0])} and {plain(name)} are the same to this model",
                "Leave out the one that is not meant",
            )
        found[canonical] = (name, tensor)
    for name, other in family.INSTEAD.items():
        if other in found:
            found[name] = found.pop(other)
    if family.EMBEDDING not in found:
        raise HgvizError(
            f"{shown(weights)} holds the weights of another model",
            f"there is no {family.EMBEDDING} in it, which config.json lets expect",
            "Put the config.json beside them that came with these weights",
        )
    return found


def _tied(config: Built, family: Family[Built], names: _Named) -> Built:
    """With the vocabulary's matrix that the file holds, unless it repeats the embedding."""
    if config.goal not in ("next", "masked") or family.HEAD not in names or not config.tied:
        return config
    same = torch.equal(names[family.HEAD][1], names[family.EMBEDDING][1])
    return config if same else replace(config, tied=False)


def _require_fit(
    weights: Path,
    family: Family[Built],
    config: Built,
    sources: Mapping[str, Source],
    wanted: Shapes,
    names: _Named,
) -> None:
    told = {canonical: name for canonical, (name, _) in names.items()}
    prefix = family.PREFIX if any(n.startswith(family.PREFIX) for n in told.values()) else ""

    def name_of(source: Source) -> str:
        outer = source.name.startswith(family.OUTER)
        return told.get(source.name, source.name if outer else prefix + source.name)

    expected = {name_of(one): one.shape(wanted[name]) for name, one in sources.items()}
    harmless = family.harmless(config)
    found = {
        name: tuple(tensor.shape)
        for canonical, (name, tensor) in names.items()
        if name in expected or not harmless.fullmatch(canonical)
    }
    why, do = _about_labels(config, names) or ("", "")
    require_fit(weights, expected, found, why, do)


def _about_labels(config: Built, names: _Named) -> tuple[str, str] | None:
    if config.goal != "classes" or "classifier.weight" not in names:
        return None
    name, tensor = names["classifier.weight"]
    count = len(config.labels)
    if tensor.ndim != 2 or len(tensor) == count:
        return None
    return (
        f"config.json has {count} labels, and {name} has {len(tensor)} rows, one per label",
        'Give config.json an "id2label" with a name for each row',
    )


# --- what config.json says ------------------------------------------------------------------------


def goal_of(
    stated: Stated, goals: Mapping[str, Goal], guess: Callable[[], Goal], where: str
) -> Goal:
    """What the model is for, by its architecture; by its tensors where that is not said."""
    if not stated.architectures:
        return guess()
    name = stated.architectures[0]
    if name in goals:
        return goals[name]
    raise HgvizError(
        f"{where} is of an architecture that hgviz does not read",
        f"it is {plain(name)[:60]}, and hgviz reads {', '.join(goals)}",
        "Choose another checkpoint, or save the model as one of these",
    )


def non_linearity(name: str, key: str, where: str) -> Any:
    """What hgviz calls the feed-forward's non-linearity. Errors: HgvizError for others."""
    if name in NON_LINEARITIES:
        return NON_LINEARITIES[name]
    raise HgvizError(
        f"{where} does not describe a model hgviz can build",
        f"{key} is {quoted(name)}, and hgviz computes {', '.join(NON_LINEARITIES)}",
        "Choose another checkpoint",
    )


def require_absolute(stated: Stated, where: str) -> None:
    """Errors: HgvizError for relative positions, which transformers once had for BERT."""
    kind = stated.position_embedding_type
    if kind not in (None, "absolute"):
        raise HgvizError(
            f"{where} does not describe a model hgviz can build",
            f"position_embedding_type is {quoted(kind)}, and hgviz reads absolute positions",
            "Choose another checkpoint",
        )


def require_divided(width: int, heads: int, keys: str, where: str) -> None:
    """Errors: HgvizError where the heads do not divide the width."""
    if width % heads:
        raise HgvizError(
            f"{where} does not describe a model hgviz can build",
            f"{keys}: {heads} heads do not divide the width {width}",
            f"Correct {where}",
        )


def labels_of(stated: Stated, where: str) -> tuple[str, ...]:
    """The names of the classes, in order of their numbers; transformers' names where none are."""
    given = stated.id2label
    if given is None:
        count = 2 if stated.num_labels is None else stated.num_labels
        if not 1 <= count <= MOST_LABELS:
            raise _wrong_labels(f"num_labels is {count}", where)
        return tuple(f"LABEL_{i}" for i in range(count))
    names = {key: str(one) for key, one in given.items()}
    wanted = [str(i) for i in range(len(names))]
    if not names or len(names) > MOST_LABELS or {*names} != {*wanted}:
        raise _wrong_labels("id2label does not number them 0, 1, 2 and so on", where)
    if stated.num_labels not in (None, len(names)):
        raise _wrong_labels(
            f"num_labels is {stated.num_labels} and id2label names {len(names)}", where
        )
    return tuple(names[key] for key in wanted)


def _wrong_labels(why: str, where: str) -> HgvizError:
    return HgvizError(f"the labels in {where} cannot be used", why, f"Correct {where}")


def kept_of(stated: Stated, layers: int, heads: int, where: str) -> tuple[tuple[int, ...], ...]:
    """The heads that each layer that attends still has, () where all have all.

    pruned_heads, of transformers before 5, counts layers of self-attention; cross-attention
    between them keeps every head.
    """
    if not stated.pruned_heads:
        return ()
    every = tuple(range(heads))
    kept = [every] * layers
    for key, gone in stated.pruned_heads.items():
        known = key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < layers
        if not known or not {*gone} <= {*every}:
            raise HgvizError(
                f"the pruned_heads in {where} cannot be used",
                f"there are {layers} layers of {heads} heads, and it has {quoted({key: gone})}",
                f"Correct {where}",
            )
        kept[int(key)] = tuple(head for head in every if head not in gone)
    crossed = stated.add_cross_attention
    return tuple(one for own in kept for one in ((own, every) if crossed else (own,)))


__all__ = [
    "Family", "Source", "Stated", "goal_of", "kept_of", "labels_of", "non_linearity", "read",
    "require_absolute", "require_divided",
]  # fmt: skip
