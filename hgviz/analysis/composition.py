"""All maps of a capture as one linear operator, and what goes the long way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.analysis.fusion import HELD, Fused, inverse
from hgviz.analysis.operators import Array, Between, Groups, Halves, Segments, shifted, unshifted
from hgviz.core import Capture, RolloutOptions

# --- one level ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """How much of each row goes from a level into the shorter one below it, and back.

    Shares of the whole row, (rows,) each. Up: copied to the positions of a group, or looked at;
    down: pooled, or looked at. Both ways add up to the same. With mass from nothing, what is lost
    further out on the way back counts as gone through.
    """

    copied: Array
    looked_up: Array
    pooled: Array
    looked_down: Array

    @property
    def through(self) -> Array:
        """What takes the long way through the levels below."""
        return self.copied + self.looked_up


class Level:
    """A level and everything below it as one linear operator on its n positions.

    Every normalization of rows becomes a fixed vector of scales, found by sending a vector of ones
    through once; after that a few rows can be sent through backwards without forming a matrix.
    """

    def __init__(self, net: Net, level: int, length: int) -> None:
        self.length, self.recipe = length, net.recipe
        self.pre, self.post = net.stacks(level)
        self.scales: dict[str, Array] = {}
        self.inner: Level | None = None
        if level + 1 < len(net.levels):
            self.way = net.way(level, length)
            self.padded = self.way.padded
            self.down, self.up = net.between(level)
            self.official, self.spreads = net.official, net.spreads
            self.inner = Level(net, level + 1, self.way.count)

    def measure(self) -> None:
        """Find the scales, from the innermost level out; before anything is sent through."""
        if self.inner is None:
            return
        self.inner.measure()
        ones = np.ones(self.length)
        # the official form normalises the level alone, the windowed one with its pre layers
        if not self.official:
            ones = _stack(self.pre, ones)
        self.skip_mass = np.pad(ones, (0, self.padded - self.length))
        self._through(ones)

    def right(self, values: Array) -> Array:
        """R v, (n,) -> (n,)"""
        values = _stack(self.pre, values)
        if self.inner is not None:
            values = self._through(values)
        return _stack(self.post, values)

    def left(self, rows: Array, told: list[Crossing] | None = None) -> Array:
        """X R, (r, n) -> (r, n); told: takes what went through each level below, outside in."""
        rows = _stack_left(self.post, rows)
        if self.inner is not None:
            rows = self._through_left(rows, told)
        return _stack_left(self.pre, rows)

    def _rn(self, name: str, values: Array) -> Array:
        if name not in self.scales:
            self.scales[name] = inverse(values) if self.recipe.divides else np.ones(len(values))
        return values * self.scales[name]

    def _through(self, values: Array) -> Array:
        """Down, the inner level, up and the residual paths, applied to a vector (n,)."""
        assert self.inner is not None
        keep, look = self.recipe.keep, self.recipe.look
        skip = np.pad(values, (0, self.padded - self.length))  # E v
        short = self.way.pool(skip)
        if self.down is not None:
            looked = self.down.right(shifted(skip, self.way.shift))
            short = keep * short + look * looked
        inner = self.inner.right(self._rn("short", short))
        if "spread" not in self.scales:
            self.inner_mass = inner
        out = self._rn("spread", self.way.spread(inner))
        if not self.official:
            out = self._rn("joined", keep * skip + look * out)
        elif self.up is not None:
            out = keep * skip + look * out if self.spreads else skip
        if self.up is not None:
            looked = self.up.right(inner)
            # a model that writes computes no row of padding; what it would hold is cut off below
            looked = np.pad(looked, (0, len(out) - len(looked)))
            out = keep * out + look * self._rn("looked", looked)
            out = out if self.official else self._rn("out", out)
        if self.official:
            out = self._rn("out", look * out + keep * skip)
        return out[: self.length]

    def _through_left(self, rows: Array, told: list[Crossing] | None) -> Array:
        """The same for rows X (r, n), from the end to the beginning."""
        assert self.inner is not None
        skip, copied, looked = self._parted(rows)
        place = len(told) if told is not None else 0
        short = self.inner.left(copied + looked, told)
        pooled, attended = self._lengthened(short)
        if told is not None:
            up = copied @ self.inner_mass, looked @ self.inner_mass
            told.insert(place, Crossing(*up, pooled @ self.skip_mass, attended @ self.skip_mass))
        whole: Array = skip + pooled + attended
        return whole[:, : self.length]

    def _parted(self, rows: Array) -> tuple[Array, Array, Array]:
        """Rows at the end of a level as what stayed (r, N), and what was copied to it or looked up
        by it from below, (r, m) each."""
        assert self.inner is not None
        keep, look = self.recipe.keep, self.recipe.look
        out = np.pad(rows, ((0, 0), (0, self.padded - self.length)))
        skip, looked = np.zeros_like(out), np.zeros((len(rows), self.inner.length))
        if self.official:
            out = out * self.scales["out"]
            skip += keep * out
            out = look * out
        if self.up is not None:
            out = out if self.official else out * self.scales["out"]
            looked += self.up.left(look * out * self.scales["looked"])
            out = keep * out
        if not self.official:
            out = out * self.scales["joined"]
            skip += keep * out
            out = look * out
        elif self.up is not None:
            skip += keep * out if self.spreads else out
            out = look * out if self.spreads else np.zeros_like(out)
        return skip, self.way.unspread(out * self.scales["spread"]), looked

    def _lengthened(self, short: Array) -> tuple[Array, Array]:
        """Rows (r, m) over the shortened level as rows (r, N): by pooling, and by attention."""
        short = short * self.scales["short"]
        attended = np.zeros((len(short), self.padded))
        if self.down is not None:
            looked = self.down.left(self.recipe.look * short)
            attended = unshifted(looked, self.way.shift)
            short = self.recipe.keep * short
        return self.way.unpooled(short), attended

    def apart(self, rows: Array) -> list[Array]:
        """X R as a sum: for each level from this one in, (r, n), what went no further than it."""
        rows = _stack_left(self.post, rows)
        if self.inner is None:
            return [_stack_left(self.pre, rows)]
        skip, copied, looked = self._parted(rows)
        found = [skip[:, : self.length]]
        for short in self.inner.apart(copied + looked):
            pooled, attended = self._lengthened(short)
            found.append((pooled + attended)[:, : self.length])
        together = _stack_left(self.pre, np.concatenate(found))
        return np.split(together, len(found))


def _stack(layers: list[Fused], values: Array) -> Array:
    for layer in layers:
        looked = layer.right(values)
        values = layer.recipe.look * looked + layer.recipe.keep * values
    return values


def _stack_left(layers: list[Fused], rows: Array) -> Array:
    for layer in reversed(layers):
        looked = layer.left(rows)
        rows = layer.recipe.look * looked + layer.recipe.keep * rows
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
        self.source, self.length, self.recipe = source, target, net.recipe

    def measure(self) -> None:
        """Nothing: rows keep their sums by themselves."""

    def left(self, rows: Array, told: list[Crossing] | None = None) -> Array:
        """X R, (r, target) -> (r, source + target); told: nothing, there are no levels below."""
        keep, look = self.recipe.keep, self.recipe.look
        found = np.zeros((len(rows), self.source))
        for layer in reversed(self.layers):
            looked = layer.left(rows)
            if layer.cross:
                found += look * looked
                rows = keep * rows
            else:
                rows = look * looked + keep * rows
        source = _stack_left(self.encoder, found)
        return np.concatenate([source, rows], axis=1)


# --- one way back ---------------------------------------------------------------------------------


class Funnel:
    """A text that is pooled level by level, and spread once from the last of them over all tokens
    (Dai et al. 2020), as a linear operator.

    With P the pooling and D the map of the first layer of a level, S = rn(1/2 (D + P)), or P where
    no layer looks down; over B, A the layers before and after, B_1, B_2 .. those of the levels and
    U the spreading: R = A rn(1/2 (I + U B_2 S_2 B_1 S_1)) B.
    """

    def __init__(self, net: Net, tokens: int) -> None:
        self.length, self.recipe = tokens, net.recipe
        self.before, self.after = net.stacks(0)
        inner = range(1, len(net.levels))
        self.ways = [net.halves(level) for level in inner]
        self.downs = [net.between(level - 1)[0] for level in inner]
        self.stacks = [
            [layer for layer in net.of_level(level) if layer is not down]
            for level, down in zip(inner, self.downs, strict=True)
        ]
        self.masses: list[Array] = []  # of the rows of each level, as it is pooled
        self.scales: list[Array] = []

    def measure(self) -> None:
        """Find the scales, from the tokens in; before anything is sent through."""
        keep, look = self.recipe.keep, self.recipe.look
        values = skip = _stack(self.before, np.ones(self.length))
        for way, down, layers in zip(self.ways, self.downs, self.stacks, strict=True):
            self.masses.append(values)
            short = way.pool(values)
            if down is not None:
                looked = down.right(values)
                short = keep * short + look * looked
            values = _stack(layers, short * self._scale(short))
        spread = self.ways[-1].spread(values, self.length)
        self._scale(keep * skip + look * spread)

    def _scale(self, values: Array) -> Array:
        self.scales.append(inverse(values) if self.recipe.divides else np.ones(len(values)))
        return self.scales[-1]

    def left(self, rows: Array, told: list[Crossing] | None = None) -> Array:
        """X R, (r, n) -> (r, n); told: takes what went through each level, outside in."""
        keep, look = self.recipe.keep, self.recipe.look
        rows = _stack_left(self.after, rows)
        rows = rows * self.scales[-1]
        deep, crossed = self.ways[-1].unspread(look * rows), []
        for level in reversed(range(len(self.ways))):
            way, down = self.ways[level], self.downs[level]
            deep = _stack_left(self.stacks[level], deep)
            deep, looked = deep * self.scales[level], np.zeros((len(rows), way.length))
            if down is not None:
                looked = down.left(look * deep)
                deep = keep * deep
            pooled, mass = way.unpooled(deep), self.masses[level]
            deep = pooled + looked
            none = np.zeros(len(rows))
            crossed.append(Crossing(deep @ mass, none, pooled @ mass, looked @ mass))
        if told is not None:
            told += reversed(crossed)
        return _stack_left(self.before, keep * rows + deep)


class Patched:
    """A text that patches are made of, layers between these, and tokens that look back at patches
    from every layer of a decoder (Pagnoni et al. 2024), as a linear operator.

    With P the mean of each patch and D the last map down, J the mean of the parts of a patch and G
    the layers between, S = rn(1/2 (D + P)) and Y = K G J S B, where K repeats a patch for each of
    its parts and B are the layers before: every map U up makes 1/2 (R + U Y) of R, which begins as
    B. Layers that only cut the text have no part in it.
    """

    def __init__(self, net: Net, tokens: int) -> None:
        self.length, self.recipe, inner = tokens, net.recipe, len(net.levels) - 1
        spans = net.spans[inner][net.spans[inner][:, 1] <= tokens]
        self.parts = net.levels[1].parts
        self.sizes, self.inside = spans[:, 1] - spans[:, 0], int(spans[-1, 1])
        downs = [one.index for one in net.layers if one.role == "down"]
        waist = max(downs, default=-1)
        mine = [one for one in net.layers if one.level == 0 and not one.cuts]
        self.before = net.layers_of([one.index for one in mine if one.index < waist])
        self.after = net.layers_of([one.index for one in mine if one.index > waist])
        self.down = next(iter(net.layers_of(downs[-1:])), None)
        between = [one.index for one in net.layers if one.level == inner and one.role == "self"]
        self.between = net.layers_of(between)
        self.up = {one.index for one in net.layers if one.role == "up"}

    def measure(self) -> None:
        """Find the scales, from the tokens in; before anything is sent through."""
        keep, look = self.recipe.keep, self.recipe.look
        self.mass = _stack(self.before, np.ones(self.length))
        short = np.repeat(self.pool(self.mass), self.parts)
        if self.down is not None:
            looked = self.down.right(self.mass)
            short = keep * short + look * looked
        self.scale = inverse(short) if self.recipe.divides else np.ones(len(short))
        self.short = (short * self.scale).reshape(-1, self.parts).mean(axis=1)
        self.deep = _stack(self.between, self.short)

    def pool(self, values: Array) -> Array:
        """P v, (n, ...) -> (patches, ...)"""
        starts, wide = np.cumsum(self.sizes) - self.sizes, values[: self.inside]
        sizes = self.sizes.reshape(-1, *[1] * (values.ndim - 1))
        found: Array = np.add.reduceat(wide, starts, axis=0) / sizes
        return found

    def left(self, rows: Array, told: list[Crossing] | None = None) -> Array:
        """X R, (r, n) -> (r, n); told: takes what went through each level, outside in."""
        keep, look = self.recipe.keep, self.recipe.look
        deep = np.zeros((len(rows), len(self.sizes) * self.parts))
        for layer in reversed(self.after):
            looked = layer.left(look * rows)
            rows = keep * rows
            if layer.index in self.up:
                deep += looked
            else:
                rows = rows + looked
        patches = deep.reshape(len(rows), -1, self.parts).sum(axis=2)
        through, none = patches @ self.deep, np.zeros(len(rows))
        patches = _stack_left(self.between, patches)
        inner = Crossing(through, none, patches @ self.short, none)
        parts = np.repeat(patches / self.parts, self.parts, axis=1) * self.scale
        looked = np.zeros((len(rows), self.length))
        if self.down is not None:
            looked = self.down.left(look * parts)
            parts = keep * parts
        pooled = np.zeros_like(looked)
        whole = parts.reshape(len(rows), -1, self.parts).sum(axis=2)
        pooled[:, : self.inside] = np.repeat(whole / self.sizes, self.sizes, axis=1)
        if told is not None:
            told.append(Crossing(none, through, pooled @ self.mass, looked @ self.mass))
            told += [inner] * (self.parts > 1)
        return _stack_left(self.before, rows + pooled + looked)


# --- one capture ----------------------------------------------------------------------------------


class Net:
    """Which layers stand where: before, between and after the levels of a capture."""

    def __init__(self, capture: Capture, recipe: RolloutOptions) -> None:
        spec, self.recipe = capture.spec, recipe
        self.official = spec.form not in ("windowed", "dynamic")
        self.spreads = spec.upsampling != "none"
        self.funnels = spec.form == "funnel" and len(spec.levels) > 1
        self.patched = spec.form == "patches"
        self.levels, self.layers = spec.levels, spec.layers
        self.spans, self.keep = capture.spans, capture.prompt.attention_mask
        # a layer that has no heads, or none that is on, adds nothing that looks anywhere
        self.fused = {
            layer.index: Fused(capture, layer, recipe)
            for layer in spec.layers
            if any((layer.index, head) not in capture.off for head in layer.heads)
            and not layer.cuts
        }

    @property
    def blocks(self) -> int:
        """How many blocks of rows one pass over all layers reads."""
        return sum(one.blocks for one in self.fused.values())

    def hold(self) -> None:
        """Keep the fused maps, where they are not too large together."""
        cells = sum(one.map.shape[1] * one.map.shape[2] for one in self.fused.values())
        for one in self.fused.values() if cells <= HELD else ():
            one.hold()

    def way(self, level: int, length: int) -> Between:
        """Between so many positions of a level and those of the one below it."""
        above, below = self.levels[level].stride, self.levels[level + 1].stride
        if above is None or below is None:
            return Segments(length, self.spans[level + 1], self.keep)
        return Groups(length, below // above, self.levels[level + 1].shift)

    def halves(self, level: int) -> Halves:
        """Between a level and the one above it, of which it is the half."""
        one = self.levels[level]
        return Halves(self.spans[level - 1], self.spans[level], one.stride or 1, one.apart)

    def of_level(self, level: int) -> list[Fused]:
        """The layers whose queries lie on a level, in order."""
        return self.layers_of([one.index for one in self.layers if one.level == level])

    def stacks(self, level: int) -> tuple[list[Fused], list[Fused]]:
        """The self-attention layers of a level before and after the levels below it."""
        waist = min((one.index for one in self.layers if one.level > level), default=0)
        own = [one for one in self.layers if one.level == level and one.role == "self"]
        before = [one.index for one in own if one.index < waist]
        after = [one.index for one in own if one.index > waist or not waist]
        return self.layers_of(before), self.layers_of(after)

    def between(self, level: int) -> tuple[Fused | None, Fused | None]:
        """The layers that attend from the level below to this one, and back."""
        down = [o.index for o in self.layers if o.role == "down" and o.key_level == level]
        up = [o.index for o in self.layers if o.role == "up" and o.level == level]
        return next(iter(self.layers_of(down)), None), next(iter(self.layers_of(up)), None)

    def layers_of(self, indices: list[int]) -> list[Fused]:
        """Those of these layers that have a head on."""
        return [self.fused[index] for index in indices if index in self.fused]
