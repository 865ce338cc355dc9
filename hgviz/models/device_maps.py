"""The weights of whole maps on the device of a model, where that is not the CPU.

They are those of the tiles, but for the rounding of float32. Where that could show, the tiles
themselves are taken, since it is these that are looked at later.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any, TypeGuard

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.maps.lazy import HARMLESS, ROUNDED, LazyMap
from hgviz.maps.rule import Diagonals, plain
from hgviz.maps.tiles import TILE, Blocks, Tiled, Visit, in_threads, tile_blocks
from hgviz.models.attention import visible
from hgviz.models.devices import out_of_memory
from hgviz.models.mechanisms import DistanceScores

LEAST = 1 << 20  # cells of a map that is worth starting kernels for; benchmarks/device.py tells
CELLS = 1 << 24  # weighed at a time, but for at least a tile's rows: 64 MB, a few times over


def blocks_on(device: str) -> Blocks:
    """How surveys get at the weights of a map on a device; by tiles for the CPU.

    Another device computes softmaxes of q and k, causal, windowed, padded, or with relative
    positions; all other maps, and small ones, are read by tiles.
    """
    if device == "cpu":
        return tile_blocks

    def visit_on_device(
        maps: Tiled, place: int, visit: Visit, rows: NDArray[np.bool_] | None = None
    ) -> None:
        if not is_for_device(maps, place, device):
            tile_blocks(maps, place, visit, rows)
            return
        try:
            with in_full, torch.no_grad():
                head = DeviceHead(maps, place, device)
                for part, columns in head.parts():
                    weights = head.weights(part, columns)
                    visit(torch, part.start, [(columns.start, weights, None)])
        except RuntimeError as error:
            if out_of_memory(error):
                raise MemoryError from error
            raise

    return visit_on_device


def is_for_device(maps: Tiled, place: int, device: str) -> TypeGuard[LazyMap]:
    """Whether a head is large, its weights exp(score - statistic), in numbers that a device has."""
    if not isinstance(maps, LazyMap) or maps.shape[1] * maps.shape[2] < LEAST:
        return False
    rule = maps.factors.rule
    known = device != "mps" or maps.factors.dtype != "float64"
    known = known and rule.softcap is None and not isinstance(rule.relative, Diagonals)
    return known and maps.is_softmax(place) and maps.keeps_all_keys(place) and not rule.norms[place]


class _InFull:
    """Products of float32 in float32, not in TF32, in any thread while at least one is in here;
    afterwards whatever was chosen before. The choice is the whole process's.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, ""

    def __enter__(self) -> None:
        matmul = torch.backends.cuda.matmul
        with self._lock:
            if not self._inside:
                self._before, matmul.fp32_precision = matmul.fp32_precision, "ieee"
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                torch.backends.cuda.matmul.fp32_precision = self._before


in_full = _InFull()


class DeviceHead:
    """One head on a device, padded to whole tiles with rows and keys that do not exist."""

    def __init__(self, maps: LazyMap, place: int, device: str) -> None:
        self.maps, self.place = maps, place
        factors, rule = maps.factors, maps.factors.rule
        self.rule, self.keys, self.scale = rule.of(place), maps.shape[2], rule.scale_of(place)
        dtype = np.float64 if factors.dtype == "float64" else np.float32

        def put(values: NDArray[Any], outside: float = 0) -> Tensor:
            over = [(0, -len(values) % TILE), *[(0, 0)] * (values.ndim - 1)]
            return torch.tensor(np.pad(values, over, constant_values=outside), device=device)

        def term(values: NDArray[Any]) -> Tensor:
            return torch.tensor(plain(values[place], dtype), device=device)[None]

        self.q, self.k = (put(plain(x[place], dtype)) for x in (factors.q, factors.k))
        self.content, self.distances = self.q, None
        if rule.relative is not None:
            terms = rule.relative.map(term)
            content, position = terms.query_terms(self.q[None, None])
            self.content, self.position = content[0, 0], position
            sizes = len(self.q), len(self.k)
            self.distances = DistanceScores(terms, rule, *sizes, self.q.device)
        of_keys = ACTIVATIONS[rule.activations[place]].of_keys
        if of_keys is not None:  # what keys add to any product, as one more column
            self.content = F.pad(self.content, (0, 1), value=1.0)
            self.k = torch.cat([self.k, of_keys(self.k, torch)[:, None]], 1)
        # a weight near 1 feels the rounding of a large statistic: the rest follows
        stat = np.asarray(factors.stat[place], np.float64)
        high = stat.astype(dtype)
        low = np.subtract(stat, high, where=np.isfinite(stat), out=np.zeros_like(stat))
        self.stat = [put(high, np.inf)[:, None]]
        if low.any():
            self.stat.append(put(low.astype(dtype))[:, None])
        # how far the score of a weight may be off, see hgviz.maps.settled
        size = np.abs(stat, where=np.isfinite(stat), out=np.zeros_like(stat))
        self.rounded = put((ROUNDED * np.maximum(size, 1)).astype(dtype))[:, None]
        self.keep = put(np.ones(self.keys, bool) if rule.keep is None else rule.keep)[None]

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Some rows, and the columns in which they can have weights, in whole tiles."""
        step = max(1, CELLS // len(self.k) // TILE) * TILE
        for top in range(0, len(self.q), step):
            bottom = min(top + step, len(self.q))
            first = self.rule.reach(top, self.keys)[0] // TILE * TILE
            stop = -(-self.rule.reach(bottom - 1, self.keys)[1] // TILE) * TILE
            first = first if self.distances is None else 0  # these go from the first key on
            if first < stop:
                yield slice(top, bottom), slice(first, stop)

    def weights(self, rows: slice, columns: slice) -> Tensor:
        """The weights of a part (rows, columns); its heavy tiles as numpy has them.

        A heavy tile has a weight in which the rounding of its score shows. Statistics are settled
        by totals: what is off between a tile and the total of its row is off in what is shown.
        """
        i = torch.arange(rows.start, rows.stop, device=self.q.device)
        j = torch.arange(columns.start, columns.stop, device=self.q.device)
        logs = self.content[rows] @ self.k[columns].T
        if self.distances is not None:
            logs += self.distances.scores(self.position[:, :, rows], i, len(j))[0, 0]
        logs *= self.scale
        for statistic in self.stat:
            logs -= statistic[rows]
        weights = logs.masked_fill_(~visible(self.rule, i, j, self.keep)[0, 0], -torch.inf).exp_()
        tiles = weights.unflatten(1, (-1, TILE)).unflatten(0, (-1, TILE))  # (i, TILE, j, TILE)
        rounded = self.rounded[rows].view(-1, TILE, 1)
        heavy = ((tiles.amax(3) * rounded).amax(1) > HARMLESS).nonzero().tolist()

        by_numpy: list[NDArray[Any] | None] = [None] * len(heavy)

        def read(number: int) -> None:
            down, across = heavy[number]
            with np.errstate(invalid="ignore", over="ignore"):
                at = rows.start // TILE + down, columns.start // TILE + across
                by_numpy[number] = self.maps.weights(self.place, *at)

        in_threads(read, len(heavy))
        for (down, across), tile in zip(heavy, by_numpy, strict=True):
            assert tile is not None
            tiles[down, : tile.shape[0], across, : tile.shape[1]].copy_(torch.from_numpy(tile))
        return weights
