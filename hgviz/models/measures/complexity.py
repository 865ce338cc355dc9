"""What it costs a model to bring the tokens of a text together, and over how many steps.

Counted from its configuration (models.md C): the multiply-adds with which positions are mixed. What
every position goes through by itself, such as projections and feed-forwards, grows with n alone in
all of them and is left out; of an LSTM, whose mixture is its matrices, these are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from math import ceil
from typing import Any

from hgviz.activations import ACTIVATIONS
from hgviz.core import Layer
from hgviz.models.config import Config, LSTMConfig, WindowConfig, attending

GATES = 8  # products of width x width of an LSTM's token: four gates, of input and state each


@dataclass(frozen=True, slots=True)
class Mixing:
    """Some layers that mix n positions in one way.

    way, at: how, and at which resolution. layers: how many of them there are. path: over how many
    steps the first token comes to the last by such layers alone, steps of an LSTM's state else
    layers; sequential: how many operations of one layer wait for each other. order: how the work
    of a layer grows, as people write it; work: multiply-adds of all these layers. lag: how many of
    the newest tokens are not in yet. known: False where the size depends on the text.
    """

    way: str
    at: str
    layers: int
    path: int
    sequential: int
    order: str
    work: int
    lag: int = 0
    known: bool = True

    def facts(self) -> dict[str, Any]:
        """As a row of a table; what depends on the text is None."""
        found = asdict(self)
        known = found.pop("known")
        return found if known else found | {"work": None, "lag": None}


def mixings(config: Config, tokens: int, source: int = 0) -> tuple[Mixing, ...]:
    """All ways in which a model mixes so many tokens, in order of computation; layers that follow
    each other and mix alike are one. source: the tokens of a second text, else as many."""
    if isinstance(config, LSTMConfig):
        work = GATES * config.n_layers * tokens * config.d_model**2
        path = max(tokens - 1, 0)
        return (Mixing("LSTM", "1:1", config.n_layers, path, tokens, "n d²", work),)
    if isinstance(config, WindowConfig):
        work = config.n_layers * tokens * config.window * config.d_model**2
        needed = ceil(max(tokens - 1, 0) / config.radius)
        way = f"window of {config.window}"
        return (Mixing(way, "1:1", config.n_layers, needed, 1, "n w d²", work),)
    return tuple(_merged(_of_layers(config, tokens, source or tokens)))


def _of_layers(config: Config, tokens: int, source: int) -> Iterator[Mixing]:
    given = attending(config)
    levels = given.levels
    texts = {"source": tokens, "target": tokens, "slots": getattr(given, "slots", 0)}
    two = any(level.sequence == "target" for level in levels)
    if two:
        texts["source"] = source

    def size(level: int) -> int:
        one = levels[level]
        return ceil(texts[one.sequence] / (one.stride or 1))

    for layer in given.layers:
        sides = levels[layer.level], levels[layer.key_level]
        queries, keys = size(layer.level), size(layer.key_level)
        known = all(one.stride is not None for one in sides)
        lag = max((one.stride or 1) - 1 if one.shift else 0 for one in sides)
        named = [one.sequence if two else one.label for one in reversed(sides)]
        at = " → ".join(dict.fromkeys(named))
        if sides[1].sequence == "slots":
            at = f"{keys:,} slots"
        for way, heads in _ways(layer):
            width = heads * given.d_head
            if way == "linear attention":
                # keys times values, and queries times what that gives
                work, order = (queries + keys) * width * given.d_head, "n d_head d"
            elif layer.window is not None:
                work, order = 2 * max(queries, keys) * width, "n d"
            else:
                work, order = 2 * queries * keys * width, _order(layer, sides)
            yield Mixing(way, at, 1, 1, 1, order, work, lag, known)


def _ways(layer: Layer) -> Iterator[tuple[str, int]]:
    """How the heads of a layer mix, and how many do so."""
    names = ["linear attention" if ACTIVATIONS[name].features else "attention"
             for name in layer.activations]  # fmt: skip
    if layer.window is not None:
        names = [f"attention within {layer.window}"] * len(names)
    for name in dict.fromkeys(names):
        yield name, names.count(name)


def _order(layer: Layer, sides: tuple[Any, Any]) -> str:
    if layer.role == "cross":
        return "n m d"
    if sides[1].sequence == "slots":
        return "n r d"
    strides = [one.stride for one in sides]
    if None in strides:
        return "n s d" if strides[0] != strides[1] else "s² d"
    if strides[0] == strides[1]:
        return "n² d" if strides[0] == 1 else f"(n/{strides[0]})² d"
    parts = ["n" if one == 1 else f"n/{one}" for one in strides]
    return f"{parts[0]} · {parts[1]} d"


def _merged(found: Iterator[Mixing]) -> Iterator[Mixing]:
    for _, rows in groupby(found, lambda one: (one.way, one.at, one.order)):
        some = list(rows)
        first = some[0]
        yield Mixing(
            first.way, first.at, len(some), first.path, first.sequential, first.order,
            sum(one.work for one in some), first.lag, first.known,
        )  # fmt: skip


__all__ = ["Mixing", "mixings"]
