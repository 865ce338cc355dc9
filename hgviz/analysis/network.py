"""All maps of a capture as a graph, and how much can flow through it from an answer to its tokens.

Abnar and Zuidema 2020, attention flow: every position of every layer is a node, what a sum
x + f(x) takes from each of its parts is the capacity of an edge. Pooling, resampling attention and
up-sampling are sums, too, so that an Hourglass is one graph; a decoder has its encoder in it.
"""

from __future__ import annotations

import numpy as np

from hgviz.analysis.composition import Net, Patched
from hgviz.analysis.flow import Edges, Graph, flow
from hgviz.analysis.fusion import Fused, inverse
from hgviz.analysis.operators import Array
from hgviz.analysis.resolution import bounds, composable
from hgviz.core import Capture, Floats, HgvizError, Step, Task, readonly
from hgviz.recipe import Recipe

MOST = 1024  # tokens that one graph is made of


def attention_flow(
    capture: Capture, rows: tuple[int, int], recipe: Recipe | None = None
) -> Task[Floats]:
    """How much can flow at most from some answers to each token, float32 (rows, columns).

    rows and columns as in rollout. Every number is at most 1, a row does not add up to anything:
    it says for each token how wide the way to it is, alone. The steps carry what is known of the
    first row so far, NaN elsewhere; tokens are tried from the one asked for outwards. Capacities
    are |A|, fused and shared by the recipe. Errors: as rollout, and HgvizError for a signed recipe
    and more than 1,024 tokens that can have a part.
    """
    recipe = recipe or Recipe()
    capture = composable(capture, recipe)
    first, last = bounds(rows, len(capture.main))
    if recipe.signed:
        raise HgvizError(
            "there is no flow of a signed product",
            "how much an edge takes cannot be below zero",
            "Ask for one of the two",
        )
    network = Network(capture, recipe, last)
    before = network.before
    found = np.zeros((last - first, before + len(capture.main)), np.float32)
    total = (last - first) * network.columns
    for place, row in enumerate(range(first, last)):
        told = np.full(found.shape[1], np.nan, np.float32)
        for number, column in enumerate(network.order(row)):
            done = place * network.columns + number
            yield Step(done, total, "measuring the flow", told if place == 0 else None)
            told[column] = network.flow(row, column)
        found[place] = np.nan_to_num(told, nan=0.0)
    return readonly(found, np.float32)


class Network:
    """The graph of a capture up to a token, where nothing later can have a part."""

    def __init__(self, capture: Capture, recipe: Recipe, last: int) -> None:
        self.keep, self.look, self.divides = recipe.keep, recipe.look, recipe.divides
        self.net = Net(capture, recipe)
        self.before = 0 if capture.target is None else len(capture.prompt)
        self.tokens = _needed(capture, last)
        self.columns = self.before + self.tokens
        if self.columns > MOST:
            raise HgvizError(
                f"the flow through {self.columns:,} tokens takes too long",
                f"up to {MOST:,} tokens that can have a part are possible",
                "Ask for an earlier token, or capture a shorter text",
            )
        self.sizes: list[int] = []
        self.edges: list[Edges] = []
        if capture.target is None:
            self.inputs = [self._group(self.tokens)]
            start = self.inputs[0]
            way = self._funnel if self.net.funnels else self._patched
            known = self.net.funnels or self.net.patched
            self.answer = way(start) if known else self._level(0, start)
        else:
            self.inputs = [self._group(self.before), self._group(self.tokens)]
            self.answer = self._decoder()
        self.graph = Graph(tuple(self.sizes), tuple(self.edges))

    def order(self, row: int) -> list[int]:
        """The columns in the order in which they are tried: the token itself, then away from it."""
        own = self.before + np.arange(self.tokens)
        near = own[np.argsort(np.abs(np.arange(self.tokens) - row), kind="stable")]
        return [*map(int, near), *range(self.before)]

    def flow(self, row: int, column: int) -> float:
        """From an answer to a token."""
        side = int(column >= self.before and bool(self.before))
        sink = self.inputs[side], column - self.before * side
        if self.inputs[side] == self.answer:
            return float(row == sink[1])  # there is no layer
        return min(1.0, flow(self.graph, (self.answer, row), sink))

    # --- building ---------------------------------------------------------------------------------

    def _group(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def _join(self, start: int, end: int, capacity: Array) -> None:
        if capacity.any():
            self.edges.append(Edges(start, end, capacity))

    def _sum(self, size: int, *parts: tuple[float, int, Array]) -> int:
        """A group that is a sum: for each part its share, where it comes from, and by what map."""
        out = self._group(size)
        for share, group, shares in parts:
            self._join(out, group, share * shares)
        return out

    def _stack(self, layers: list[Fused], group: int) -> int:
        size = self.sizes[group]
        for one in layers:
            weights = self.look * one.corner(size, size) + self.keep * np.eye(size)
            group = self._sum(size, (1.0, group, weights))
        return group

    def _level(self, level: int, group: int) -> int:
        """The layers of a level and all below it; gives the group of its answers."""
        before, after = self.net.stacks(level)
        group = self._stack(before, group)
        if level + 1 < len(self.net.levels):
            group = self._through(level, group)
        return self._stack(after, group)

    def _through(self, level: int, skip: int) -> int:
        net, keep, look = self.net, self.keep, self.look
        length = self.sizes[skip]
        way = net.way(level, length)
        padded, count = way.padded, way.count
        down, up = net.between(level)
        own = np.eye(padded, length)
        short = way.pool(own)
        if down is not None:
            moved = np.eye(padded, length, k=-way.shift)  # S E
            short = keep * short + look * down.corner(count, padded) @ moved
        if self.divides:
            short = short * inverse(short.sum(axis=1))[:, None]
        inner = self._level(level + 1, self._sum(count, (1.0, skip, short)))
        wide = way.spread(np.eye(count))
        looked = None if up is None else up.corner(padded, count)
        return self._joined(skip, inner, own[:length], wide[:length],
                            None if looked is None else looked[:length])  # fmt: skip

    def _joined(
        self, skip: int, inner: int, own: Array, wide: Array, looked: Array | None
    ) -> int:  # fmt: skip
        """What comes back from below, and the residual paths around it: as in Level._through."""
        keep, look, length = self.keep, self.look, len(own)
        even = np.eye(length)
        if not self.net.official:
            out = self._sum(length, (keep, skip, own), (look, inner, wide))
            if looked is not None:
                out = self._sum(length, (keep, out, even), (look, inner, looked))
            return out
        if looked is None:
            return self._sum(length, (keep, skip, own), (look, inner, wide))
        first = skip
        if self.net.spreads:
            first = self._sum(length, (keep, skip, own), (look, inner, wide))
        out = self._sum(length, (keep, first, even), (look, inner, looked))
        return self._sum(length, (look, out, even), (keep, skip, own))

    def _funnel(self, group: int) -> int:
        """As composition.Funnel."""
        net, keep, look = self.net, self.keep, self.look
        before, after = net.stacks(0)
        skip = group = self._stack(before, group)
        for level in range(1, len(net.levels)):
            way, (down, _) = net.halves(level), net.between(level - 1)
            short = way.pool(np.eye(way.length))
            if down is not None:
                short = keep * short + look * down.corner(way.count, way.length)
            if self.divides:
                short = short * inverse(short.sum(axis=1))[:, None]
            group = self._sum(way.count, (1.0, group, short))
            group = self._stack([one for one in net.of_level(level) if one is not down], group)
        own, wide = keep * np.eye(self.tokens), look * way.spread(np.eye(way.count), self.tokens)
        if self.divides:
            scale = inverse(own.sum(axis=1) + wide.sum(axis=1))[:, None]
            own, wide = own * scale, wide * scale
        return self._stack(after, self._sum(self.tokens, (1.0, skip, own), (1.0, group, wide)))

    def _patched(self, group: int) -> int:
        """As composition.Patched; of patches only those that are closed by the last token."""
        keep, look, way = self.keep, self.look, Patched(self.net, self.tokens)
        skip = self._stack(way.before, group)
        count = len(way.sizes)
        short = np.repeat(way.pool(np.eye(self.tokens)), way.parts, axis=0)
        if way.down is not None:
            short = keep * short + look * way.down.corner(len(short), self.tokens)
        if self.divides:
            short = short * inverse(short.sum(axis=1))[:, None]
        group = self._sum(len(short), (1.0, skip, short))
        each = np.eye(count).repeat(way.parts, axis=0)
        if way.parts > 1:
            group = self._sum(count, (1.0, group, each.T / way.parts))
        group = self._stack(way.between, group)
        if way.parts > 1:
            group = self._sum(len(short), (1.0, group, each))
        own = np.eye(self.tokens)
        for layer in way.after:
            if layer.index in way.up:
                looked = layer.corner(self.tokens, len(short))
                skip = self._sum(self.tokens, (keep, skip, own), (look, group, looked))
            else:
                skip = self._stack([layer], skip)
        return skip

    def _decoder(self) -> int:
        source, target = self.inputs
        source = self._stack(self.net.of_level(0), source)
        for layer in self.net.of_level(1):
            if layer.cross:
                cross = layer.corner(self.tokens, self.before)
                parts = (self.look, source, cross), (self.keep, target, np.eye(self.tokens))
                target = self._sum(self.tokens, *parts)
            else:
                target = self._stack([layer], target)
        return target


def _needed(capture: Capture, last: int) -> int:
    """How many tokens can have a part in answers before `last`: all that come before, if causal."""
    spec = capture.spec
    side = len(capture.main)
    own = [one for one in spec.layers if capture.prompt_of(one.level) is capture.main]
    causal = all(one.causal for one in own if one.window is None and one.role != "cross")
    # a segment is read after its end
    shifted = all(
        one.shift or one.stride is None for one in spec.levels[1:] if one.sequence == "source"
    )
    if not (causal and (shifted or spec.two_texts)):
        return side
    widest = max((one.stride or 1) for one in spec.levels)
    return min(side, -(-last // widest) * widest)
