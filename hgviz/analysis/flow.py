"""Maximum flow between groups of nodes that matrices of capacities join.

Push-relabel with exact labels: everything that can still reach the sink is pushed one step closer
to it, whole groups at a time, then the distances are measured anew, until what is left cannot get
there. Goldberg and Tarjan 1988, first phase, which is all that the value takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.operators import Array

LEAST = 1e-13  # what is less than this is rounding, where the whole is 1
Node = tuple[int, int]  # group, place
Labels = list[NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Capacities (places of start, places of end), float64, from each place to each."""

    start: int
    end: int
    capacity: Array


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Groups of so many nodes, and the edges between two groups at a time."""

    sizes: tuple[int, ...]
    edges: tuple[Edges, ...]


def flow(graph: Graph, source: Node, sink: Node) -> float:
    """The largest flow from a node to another, exact to rounding.

    float64 arithmetic; infinite capacities are not allowed. Takes some tens of sweeps over the
    matrices that lie between.
    """
    if source == sink:
        return np.inf
    return _Pushing(graph, source, sink).run()


class _Pushing:
    """One flow on its way: what is left of every edge, and what waits at every node."""

    def __init__(self, graph: Graph, source: Node, sink: Node) -> None:
        self.sizes, self.sink = graph.sizes, sink
        # for every edge what is left of it, and for the way back what has gone along it
        self.left = [(one.start, one.end, one.capacity.copy()) for one in graph.edges]
        self.gone = [np.zeros(one.capacity.shape) for one in graph.edges]
        self.waiting = [np.zeros(size) for size in graph.sizes]
        self.leaving: list[list[int]] = [[] for _ in graph.sizes]
        self.arriving: list[list[int]] = [[] for _ in graph.sizes]
        for number, one in enumerate(graph.edges):
            self.leaving[one.start].append(number)
            self.arriving[one.end].append(number)
        group, place = source
        for number in self.leaving[group]:  # the source lets go of all it can
            _, end, left = self.left[number]
            self.waiting[end] += left[place]
            self.gone[number][place] = 0.0  # nothing comes back to it
            left[place] = 0.0
        self.source = source

    def run(self) -> float:
        """Push until nothing that waits can reach the sink."""
        while True:
            labels = self._labels()
            farthest = max(
                (int(label[self._active(label, at)].max(initial=0)) for at, label in _each(labels)),
                default=0,
            )
            if not farthest:
                return float(self.waiting[self.sink[0]][self.sink[1]])
            for label in range(farthest, 0, -1):
                for group, _ in _each(labels):
                    self._push(group, label, labels)

    def _active(self, label: NDArray[np.int64], group: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (self.waiting[group] > LEAST) & (label > 0)
        return found

    def _labels(self) -> Labels:
        """How many edges each node is from the sink at least, 0 at the sink, -1 beyond reach.

        Measured as far out as anything waits.
        """
        labels: Labels = [np.full(size, -1) for size in self.sizes]
        group, place = self.sink
        labels[group][place] = 0
        waiting = [np.flatnonzero(one > LEAST) for one in self.waiting]
        front: dict[int, NDArray[np.int64]] = {group: np.array([place])}
        distance = 0
        while front and any((labels[at][one] < 0).any() for at, one in enumerate(waiting)):
            distance += 1
            found: dict[int, NDArray[np.int64]] = {}
            for at, nodes in front.items():
                for other, open_ in self._towards(at, nodes, labels):
                    if not len(open_):
                        continue
                    labels[other][open_] = distance
                    before = found.get(other)
                    found[other] = open_ if before is None else np.concatenate([before, open_])
            front = found
        labels[self.source[0]][self.source[1]] = -1
        return labels

    def _towards(
        self, group: int, nodes: NDArray[np.int64], labels: Labels
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The nodes without a label from which something can still go to one of these."""
        for number in self.arriving[group]:
            start, _, left = self.left[number]
            fresh = np.flatnonzero(labels[start] < 0)
            if len(fresh):
                yield start, fresh[(left[np.ix_(fresh, nodes)] > LEAST).any(axis=1)]
        for number in self.leaving[group]:
            end = self.left[number][1]
            fresh = np.flatnonzero(labels[end] < 0)
            if len(fresh):
                yield end, fresh[(self.gone[number][np.ix_(nodes, fresh)] > LEAST).any(axis=0)]

    def _push(self, group: int, label: int, labels: Labels) -> None:
        """Everything that waits at the nodes of a label, as far as edges to the next one go."""
        nodes = np.flatnonzero((labels[group] == label) & (self.waiting[group] > LEAST))
        if not len(nodes):
            return
        for number in self.leaving[group]:
            _, end, left = self.left[number]
            self._send(nodes, group, end, label, labels, left, self.gone[number], back=False)
        for number in self.arriving[group]:
            start, _, left = self.left[number]
            self._send(nodes, group, start, label, labels, self.gone[number], left, back=True)

    def _send(
        self, nodes: NDArray[np.int64], group: int, other: int, label: int, labels: Labels,
        room: Array, undone: Array, *, back: bool,
    ) -> None:  # fmt: skip
        """Along the edges of one block; room is what they take, undone what then can come back."""
        ends = np.flatnonzero(labels[other] == label - 1)
        if not len(ends):
            return
        cells = np.ix_(ends, nodes) if back else np.ix_(nodes, ends)
        open_ = room[cells].T if back else room[cells]
        total = open_.sum(axis=1)
        part = np.minimum(1.0, self.waiting[group][nodes] / np.maximum(total, LEAST))
        sent = open_ * part[:, None]  # each edge in proportion to what it takes
        moved = sent.T if back else sent
        room[cells] -= moved
        undone[cells] += moved
        self.waiting[group][nodes] -= sent.sum(axis=1)
        self.waiting[other][ends] += sent.sum(axis=0)


def _each(labels: Labels) -> Iterator[tuple[int, NDArray[np.int64]]]:
    yield from enumerate(labels)


__all__ = ["Edges", "Graph", "flow"]
