"""The order of trax's flat weights: which neutral tensor each array is (models.md A.4, D).

trax flattens its tree of layers depth first, a dense layer as its kernel (in, out) and bias, a norm
as its scale and bias. Relative attention holds the layer of distances before queries, keys and
values, then, in the first one only, the biases that all share, then the output. Source: google/trax
at 7c189c2, models/research/hourglass.py, layers/research/{resampling,rel_attention}.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from torch import Tensor

from hgviz.core import HgvizError
from hgviz.models.formats.files import dims
from hgviz.models.formats.readers import shown
from hgviz.models.hierarchy import Hierarchy, parse_hierarchy

MOST_LEVELS = 16
UNSAID = -1  # layers
BASES = ("average", "linear")  # both ways: one without weights, and a linear map

Shape = tuple[int, ...]


def named(path: Path, held: Mapping[str, Tensor], hierarchy: str | None) -> dict[str, Tensor]:
    """Arrays arr_0, arr_1, ... by their neutral names and in neutral shapes.

    hierarchy: as people say it, None where arrays have to show it. Errors: HgvizError naming the
    first array that does not fit, as far as any reading goes.
    """
    numbers = [f"arr_{i}" for i in range(len(held))]
    if missing := next((name for name in numbers if name not in held), ""):
        raise _unlike(path, f"it has {len(held):,} arrays and no {missing}")
    shapes = [tuple(held[name].shape) for name in numbers]
    if len(shapes[0]) != 2:
        raise _unlike(path, f"arr_0 is {dims(shapes[0])}, and would be tokens × width")
    walks = _walks(shapes, hierarchy)
    # of another hierarchy than the one that is said, they are told as what they are
    fits = [one for one in walks if not one.wrong] or [
        one for one in _walks(shapes, None) if not one.wrong
    ]
    if not fits:
        raise _unlike(path, max(walks, key=lambda one: len(one.names)).wrong)
    fit = next((one for one in fits if one.mirrored), fits[0])
    pairs = zip(fit.names, numbers, strict=True)
    return {name: _neutral(name, held[number]) for name, number in pairs}


@dataclass(slots=True)
class _Walk:
    """One reading of the arrays, from the first to the one that does not fit.

    counts: the layers of stacks, where they are known; else a stack goes on as long as it can.
    """

    shapes: list[Shape]
    levels: int
    down: tuple[bool, str]  # whether it attends, and its base
    up: tuple[bool, str]
    counts: dict[str, int]
    names: list[str] = field(default_factory=list)
    found: dict[str, int] = field(default_factory=dict)
    factors: dict[int, int] = field(default_factory=dict)
    heads: int = 0
    d_ff: int = 0
    wrong: str = ""

    @property
    def mirrored(self) -> bool:
        """Whether there are as many layers before as after, at every shortened level."""
        inner = range(1, self.levels)
        return all(self.found[f"pre.{i}"] == self.found[f"post.{i}"] for i in inner)

    def model(self) -> None:
        """Everything, to the last array."""
        self.take("embed.token.weight", self.shapes[0])
        levels = range(self.levels)
        for level in levels:
            self.stack(f"pre.{level}")
            self.resampling(f"down.{level}", level, *self.down)
        self.stack("middle")
        for level in reversed(levels):
            self.resampling(f"up.{level}", level, *self.up)
            self.norm(f"up.{level}.ln_out")
            self.stack(f"post.{level}")
        self.dense("lm_head", self.width, self.shapes[0][0])
        if len(self.names) < len(self.shapes):
            raise _Misfit(f"{self.there()}, and the model ends before it")

    @property
    def width(self) -> int:
        return self.shapes[0][1]

    def there(self) -> str:
        at = len(self.names)
        return f"arr_{at} is {dims(self.shapes[at])}" if at < len(self.shapes) else "it ends"

    def ahead(self, offset: int) -> Shape:
        at = len(self.names) + offset
        return self.shapes[at] if at < len(self.shapes) else ()

    def take(self, name: str, wanted: Shape) -> None:
        if self.ahead(0) != wanted:
            raise _Misfit(f"{self.there()}, where {name} would be {dims(wanted)}")
        self.names.append(name)

    def norm(self, name: str) -> None:
        self.take(f"{name}.weight", (self.width,))
        self.take(f"{name}.bias", (self.width,))

    def dense(self, name: str, given: int, made: int) -> None:
        self.take(f"{name}.weight", (given, made))
        self.take(f"{name}.bias", (made,))

    def stack(self, name: str) -> None:
        """Blocks one after the other, and a norm."""
        count = 0
        while count < self.counts[name] if name in self.counts else self.goes_on():
            self.norm(f"{name}.{count}.ln_attn")
            self.attending(f"{name}.{count}")
            count += 1
        self.found[name] = count
        self.norm(f"{name}.ln_out")

    def goes_on(self) -> bool:
        """Whether a norm and the square kernel of a layer of distances come, and not the end."""
        d = self.width
        block = [self.ahead(i) for i in range(3)] == [(d,), (d,), (d, d)]
        return block and len(self.names) + 4 < len(self.shapes)

    def attending(self, name: str) -> None:
        """Relative attention, then a norm and a feed-forward."""
        d = self.width
        for part in "rqkv":
            self.dense(f"{name}.attn.{part}", d, d)
        if not self.heads:
            shape = self.ahead(0)
            self.heads = shape[1] if len(shape) == 4 and d % shape[1] == 0 else 1
            self.take("rel.content_bias", (1, self.heads, 1, d // self.heads))
            self.take("rel.position_bias", (1, self.heads, 1, d // self.heads))
        self.dense(f"{name}.attn.o", d, d)
        self.norm(f"{name}.ln_ff")
        self.d_ff = self.d_ff or (self.ahead(0)[-1] if self.ahead(0) else d)
        self.dense(f"{name}.ff.in", d, self.d_ff)
        self.dense(f"{name}.ff.out", self.d_ff, d)

    def resampling(self, name: str, level: int, attends: bool, base: str) -> None:
        if attends:
            self.norm(f"{name}.ln_in")
        if base == "linear":
            shape, d = self.ahead(0), self.width
            whole = shape[0 if name.startswith("down") else -1] if shape else 0
            many = self.factors.setdefault(level, max(2, whole // d)) * d
            self.dense(f"{name}.proj", *((many, d) if name.startswith("down") else (d, many)))
        if attends:
            self.norm(f"{name}.ln_query")
            self.attending(name)


class _Misfit(Exception):
    """What is there, and what would be there."""


def _walks(shapes: list[Shape], hierarchy: str | None) -> list[_Walk]:
    """Every reading, each as far as it goes."""
    found = [
        _Walk(shapes, levels, down, up, counts)
        for levels, counts in _asked(hierarchy)
        for down, up in product(product((True, False), BASES), repeat=2)
    ]
    for one in found:
        try:
            one.model()
        except _Misfit as error:
            one.wrong = str(error)
    return found


def stated(hierarchy: str, vanilla: tuple[int, int]) -> Hierarchy:
    """A hierarchy as people say it, or as trax has it: without its full-resolution layers."""
    whole = re.match(r"\s*\d+@1(\s|$)", hierarchy)
    return parse_hierarchy(hierarchy, None if whole else vanilla)


def _asked(hierarchy: str | None) -> list[tuple[int, dict[str, int]]]:
    """How many levels there may be, and the layers of each stack as far as they are said."""
    if hierarchy is None:
        return [(levels, {}) for levels in range(1, MOST_LEVELS + 1)]
    shape = stated(hierarchy, (UNSAID, UNSAID))
    counts = {"middle": shape.middle}
    for level, (before, after) in enumerate(zip(shape.pre, shape.post, strict=True)):
        counts |= {f"pre.{level}": before, f"post.{level}": after}
    known = {name: count for name, count in counts.items() if count != UNSAID}
    return [(len(shape.factors), known)]


def _neutral(name: str, array: Tensor) -> Tensor:
    if name.startswith("rel."):
        return array[0, :, 0]
    dense = array.dim() == 2 and not name.startswith("embed.")
    return array.T.contiguous() if dense else array


def _unlike(path: Path, why: str) -> HgvizError:
    return HgvizError(
        f"{shown(path)} is not laid out as an Hourglass of trax",
        why,
        "Export it as docs/models.md says, and say its --hierarchy if it has another",
    )
