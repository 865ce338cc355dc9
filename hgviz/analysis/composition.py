"""All maps of a capture as one linear operator, models.md A.8 in its rn form.

Heads are fused by their mean, every residual path counts as one half.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hgviz.analysis.operators import Array, pool, shifted, spread, unpooled, unshifted, unspread
from hgviz.core import Capture, Layer

HELD = 1 << 25  # cells of fused maps that one composition keeps, 256 MB
ROWS = 256


class Fused:
    """The mean map of the heads of a layer that are on, read in blocks of rows.

    Rows of |A| are divided by their sums: that changes nothing but rounding where a row is a
    distribution already, and makes signed weights shares of their row.
    """

    def __init__(self, capture: Capture, layer: Layer, held: bool) -> None:
        found = capture.maps[layer.index]
        assert found is not None
        self.map = found
        self.heads = [h for h in found.heads if (layer.index, h) not in capture.off]
        self.cross = layer.role == "cross"
        self.held: list[Array] | None = list(self._read()) if held else None

    def _read(self) -> Iterator[Array]:
        queries = self.map.shape[1]
        for start in range(0, queries, ROWS):
            stop = min(start + ROWS, queries)
            whole = np.zeros((stop - start, self.map.shape[2]))
            for head in self.heads:
                whole += _normal(self.map.read(head, (start, stop)))
            yield whole / len(self.heads)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        for number, block in enumerate(self.held if self.held is not None else self._read()):
            yield slice(number * ROWS, number * ROWS + len(block)), block

    def right(self, values: Array) -> Array:
        """A v, (keys,) -> (queries,)"""
        return np.concatenate([block @ values for _, block in self._blocks()])

    def left(self, rows: Array) -> Array:
        """X A, (r, queries) -> (r, keys)"""
        out = np.zeros((len(rows), self.map.shape[2]))
        for where, block in self._blocks():
            if rows[:, where].any():
                out += rows[:, where] @ block
        return out


def _normal(weights: Array) -> Array:
    size = np.abs(weights, dtype=np.float64)
    return size * _inverse(size.sum(axis=1))[:, None]


def _inverse(sums: Array) -> Array:
    """1 / sum, 0 where a row has no mass: zero rows stay zero."""
    return np.divide(1.0, sums, out=np.zeros(sums.shape), where=sums > 0)


# --- one level ------------------------------------------------------------------------------------


class Level:
    """A level and everything below it as one linear operator on its n positions.

    Every rn of models.md A.8 becomes a fixed vector of scales, found by sending a vector of ones
    through once; after that a few rows can be sent through backwards without forming a matrix.
    """

    def __init__(self, net: Net, level: int, length: int) -> None:
        self.length = length
        self.pre, self.post = net.stacks(level)
        self.scales: dict[str, Array] = {}
        self.inner: Level | None = None
        if level + 1 < len(net.strides):
            self.factor = net.strides[level + 1] // net.strides[level]
            self.shift = net.shifts[level + 1]
            self.padded = -(-length // self.factor) * self.factor
            self.down, self.up = net.between(level)
            self.official, self.spreads = net.official, net.spreads
            self.inner = Level(net, level + 1, self.padded // self.factor)
            ones = np.ones(length)
            # the official form normalises the level alone, the windowed one with its pre layers
            self._through(ones if self.official else _stack(self.pre, ones))

    def right(self, values: Array) -> Array:
        """R v, (n,) -> (n,)"""
        values = _stack(self.pre, values)
        if self.inner is not None:
            values = self._through(values)
        return _stack(self.post, values)

    def left(self, rows: Array) -> Array:
        """X R, (r, n) -> (r, n)"""
        rows = _stack_left(self.post, rows)
        if self.inner is not None:
            rows = self._through_left(rows)
        return _stack_left(self.pre, rows)

    def _rn(self, name: str, values: Array) -> Array:
        if name not in self.scales:
            self.scales[name] = _inverse(values)
        return values * self.scales[name]

    def _through(self, values: Array) -> Array:
        """Down, the inner level, up and the residual paths, applied to a vector (n,)."""
        assert self.inner is not None
        skip = np.pad(values, (0, self.padded - self.length))  # E v
        short = pool(skip, self.factor, self.shift)
        if self.down is not None:
            short = (short + self.down.right(shifted(skip, self.shift))) / 2
        inner = self.inner.right(self._rn("short", short))
        out = self._rn("spread", spread(inner, self.factor))
        if not self.official:
            out = self._rn("joined", (skip + out) / 2)
        elif self.up is not None:
            out = (skip + out) / 2 if self.spreads else skip
        if self.up is not None:
            out = (out + self._rn("looked", self.up.right(inner))) / 2
            out = out if self.official else self._rn("out", out)
        if self.official:
            out = self._rn("out", (out + skip) / 2)
        return out[: self.length]

    def _through_left(self, rows: Array) -> Array:
        """The same for rows X (r, n), from the end to the beginning."""
        assert self.inner is not None
        out = np.pad(rows, ((0, 0), (0, self.padded - self.length)))
        skip, inner = np.zeros_like(out), np.zeros((len(rows), self.inner.length))
        if self.official:
            out = out * self.scales["out"] / 2
            skip += out
        if self.up is not None:
            out = out / 2 if self.official else out * self.scales["out"] / 2
            inner += self.up.left(out * self.scales["looked"])
        if not self.official:
            out = out * self.scales["joined"] / 2
            skip += out
        elif self.up is not None:
            skip += out / 2 if self.spreads else out
            out = out / 2 if self.spreads else np.zeros_like(out)
        inner += unspread(out * self.scales["spread"], self.factor)
        short = self.inner.left(inner) * self.scales["short"]
        if self.down is not None:
            short = short / 2
            skip += unshifted(self.down.left(short), self.shift)
        skip += unpooled(short, self.factor, self.shift)
        return skip[:, : self.length]


def _stack(layers: list[Fused], values: Array) -> Array:
    for layer in layers:
        values = (layer.right(values) + values) / 2
    return values


def _stack_left(layers: list[Fused], rows: Array) -> Array:
    for layer in reversed(layers):
        rows = (layer.left(rows) + rows) / 2
    return rows


# --- two texts ------------------------------------------------------------------------------------


class Decoder:
    """A decoder over a second text, with the encoder where there is one, as a linear operator.

    With rows R_s (source, source) of the encoder, [I] for given states, a decoder starts from
    R = [0 | I], target rows over the columns source, then target; self-attention makes of it
    1/2 (A R + R), cross-attention 1/2 (C [R_s | 0] + R).
    """

    def __init__(self, net: Net, source: int, target: int) -> None:
        self.encoder, self.layers = net.of_level(0), net.of_level(1)
        self.source, self.length = source, target

    def left(self, rows: Array) -> Array:
        """X R, (r, target) -> (r, source + target)"""
        found = np.zeros((len(rows), self.source))
        for layer in reversed(self.layers):
            if layer.cross:
                found += layer.left(rows) / 2
                rows = rows / 2
            else:
                rows = (layer.left(rows) + rows) / 2
        return np.concatenate([_stack_left(self.encoder, found), rows], axis=1)


# --- one capture ----------------------------------------------------------------------------------


class Net:
    """Which layers stand where: before, between and after the levels of a capture."""

    def __init__(self, capture: Capture) -> None:
        spec = capture.spec
        self.official = spec.form != "windowed"
        self.spreads = spec.upsampling != "none"
        self.strides = [level.stride or 0 for level in spec.levels]
        self.shifts = [level.shift for level in spec.levels]
        self.layers = spec.layers
        cells = sum(one.shape[1] * one.shape[2] for one in capture.maps if one is not None)
        # a layer that has no heads, or none that is on, adds nothing that looks anywhere
        self.fused = {
            layer.index: Fused(capture, layer, held=cells <= HELD)
            for layer in spec.layers
            if any((layer.index, head) not in capture.off for head in layer.heads)
        }

    def of_level(self, level: int) -> list[Fused]:
        """The layers whose queries lie on a level, in order."""
        return self._all([one.index for one in self.layers if one.level == level])

    def stacks(self, level: int) -> tuple[list[Fused], list[Fused]]:
        """The self-attention layers of a level before and after the levels below it."""
        waist = min((one.index for one in self.layers if one.level > level), default=0)
        own = [one for one in self.layers if one.level == level and one.role == "self"]
        before = [one.index for one in own if one.index < waist]
        after = [one.index for one in own if one.index > waist or not waist]
        return self._all(before), self._all(after)

    def between(self, level: int) -> tuple[Fused | None, Fused | None]:
        """The layers that attend from the level below to this one, and back."""
        down = [o.index for o in self.layers if o.role == "down" and o.key_level == level]
        up = [o.index for o in self.layers if o.role == "up" and o.level == level]
        return next(iter(self._all(down)), None), next(iter(self._all(up)), None)

    def _all(self, indices: list[int]) -> list[Fused]:
        return [self.fused[index] for index in indices if index in self.fused]
