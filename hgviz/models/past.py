"""What the layers of a model attended with so far, while the text it reads grows.

Shapes: B batch (always 1), H heads, Q queries, K keys, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.core import readonly
from hgviz.maps.rule import Factors, Grouped, Rule
from hgviz.models.attention import Bias, attend
from hgviz.models.tap import operands, statistics
from hgviz.models.weighing import alike

FIRST_ROOM = 64


class NotIncremental(Exception):
    """It is not known of a model that rows which follow others are those of a whole pass."""


class Grown:
    """Tensors put end to end along an axis, in room that doubles: what is there never changes, so
    that a view of it stays what it was."""

    def __init__(self, axis: int) -> None:
        self.axis, self.size = axis, 0
        self._room: Tensor | None = None

    def add(self, part: Tensor) -> None:
        """Put a part at the end."""
        size, old = self.size + part.shape[self.axis], self._room
        if old is None or size > old.shape[self.axis]:
            shape = list(part.shape)
            shape[self.axis] = max(2 * size, FIRST_ROOM)
            self._room = part.new_empty(shape)
            if old is not None:
                self._room.narrow(self.axis, 0, self.size).copy_(self.whole_of(old))
        assert self._room is not None
        self._room.narrow(self.axis, self.size, size - self.size).copy_(part)
        self.size = size

    @property
    def whole(self) -> Tensor:
        """All that was added, as a view."""
        assert self._room is not None
        return self.whole_of(self._room)

    def whole_of(self, room: Tensor) -> Tensor:
        """The part of some room that is filled."""
        return room.narrow(self.axis, 0, self.size)

    @property
    def array(self) -> NDArray[Any]:
        """The same as a numpy view; bfloat16 as its bits."""
        found = self.whole
        if found.dtype == torch.bfloat16:
            return readonly(found.view(torch.int16).numpy().view(np.uint16))
        return readonly(found.numpy())


class LayerPast:
    """What one layer attended with: keys and values for the rows to come, and what a capture keeps.

    The first rows come all at once and are computed as in any pass; then one follows at a time,
    and meets the keys that are there already, which costs no more than reading them.
    """

    def __init__(self) -> None:
        self._k, self._v = Grown(2), Grown(2)
        self._keep: Grown | None = None
        self._distances = Grown(1)
        self._first: Factors | None = None
        self._rule: Rule | None = None  # of the newest rows: a window may outgrow a short text
        self._rows: dict[str, Grown] = {}  # of a capture, on the CPU
        self._kept: list[NDArray[Any]] = []

    @property
    def begun(self) -> tuple[int, int]:
        """How many rows and keys there are."""
        return (self._rows["q"].size if self._rows else 0), self._k.size

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        rule: Rule,
        *,
        keep: Tensor | None,
        relative: Bias | None,
        off: Collection[int],
    ) -> Tensor:
        """As attention.attend, of rows, keys and values that follow those before; keep (B, K) is
        that of the new keys."""
        row, _ = self.begun
        self._rule = rule
        self._add_keys(k, v, keep)
        if row == 0:
            tap = self._begin
            return attend(q, k, v, rule, keep=keep, relative=relative, off=off, tap=tap)
        assert q.shape[-2] == 1
        start, stop = rule.reach(row, self._k.size)
        near, values = (one.whole[..., start:stop, :] for one in (self._k, self._v))
        seen = None if self._keep is None else self._keep.whole[:, start:stop]
        # what is hidden was left out
        plain = replace(rule, causal=False, windowed=False, band=None, chunk=None)
        content = q
        if relative is not None:
            content, near, plain = self._beside(q, near, plain, relative, row)
        found = statistics(tuple(alike(content, near, plain)), content, plain, seen)
        kinds = tuple(alike(q, k, rule))
        queries, keys = operands(kinds, q, k, rule)
        self._extend(
            {"q": queries, "k": keys, "stat": found.stat, "norm": found.norm,
             "threshold": found.threshold}
        )  # fmt: skip
        self._kept += [one.cpu().numpy() + np.array([0, row, start]) for one in found.kept]
        return attend(content, near, values, plain, keep=seen, off=off)

    def add_value_norms(self, norms: Tensor) -> None:
        """(H, K) of the keys that came last, as tap.value_norms."""
        self._extend({"value_norms": norms})

    def _add_keys(self, k: Tensor, v: Tensor, keep: Tensor | None) -> None:
        if keep is not None and self._keep is None and not self._k.size:
            self._keep = Grown(1)
        self._k.add(k)
        self._v.add(v)
        if self._keep is not None:
            every = torch.ones(len(k), k.shape[-2], dtype=torch.bool, device=k.device)
            self._keep.add(every if keep is None else keep)

    # --- relative positions -----------------------------------------------------------------------

    def _beside(
        self, q: Tensor, near: Tensor, rule: Rule, relative: Bias, row: int
    ) -> tuple[Tensor, Tensor, Rule]:
        """Operands whose plain product is the score of a row: distances ride beside the keys, and
        so does what these add themselves; the rule that is left."""
        content, position = relative.to_keys(q), relative.to_distances(q)
        named = [ACTIVATIONS[name].features is not None for name in rule.activations]
        if any(named):  # features take no part in distances, and those of -inf are 0
            featured = torch.tensor(named, device=q.device)[:, None, None]
            content = torch.where(featured, q, content)
            position = position.masked_fill(featured, -torch.inf)
        r = self._by_distance(rule, relative, row, near.shape[-2], q.device)
        queries, keys = [content, position], [near, r[None]]
        adding = [ACTIVATIONS[name].of_keys for name in rule.activations]
        for of_keys in {one for one in adding if one is not None}:
            named = [one is of_keys for one in adding]
            one = torch.tensor(named, device=q.device, dtype=q.dtype)[:, None, None]
            queries.append(
                one.expand(len(q), -1, 1, 1).masked_fill(position[..., :1].isinf(), -torch.inf)
            )
            keys.append(of_keys(near, torch)[..., None])
        names = ("softmax" if one else name for one, name in zip(adding, rule.activations,
                 strict=True))  # fmt: skip
        left = replace(rule, activations=tuple(names))
        return torch.cat(queries, -1), torch.cat(keys, -1), left

    def _by_distance(
        self, rule: Rule, relative: Bias, row: int, keys: int, device: torch.device
    ) -> Tensor:
        """What a row meets for its distance to each key (H, K, E), as positions.Distances; those
        of earlier rows are there already, from the nearest on."""
        step = min(rule.stride_q, rule.stride_k)
        a, b = rule.stride_k // step, rule.stride_q // step
        done, needed = self._distances.size, (row + 1) * b
        if needed > done:
            steps = b - 1 - torch.arange(done, needed, device=device)
            self._distances.add(relative.keys(steps * (step / relative.unit)))
        first = needed - 1  # that of key 0
        return self._distances.whole[:, first - a * (keys - 1) : first + 1 : a].flip(1)

    # --- what a capture keeps ---------------------------------------------------------------------

    def _begin(self, found: Factors) -> None:
        self._first = found
        if found.kept is not None:
            self._kept = [found.kept]
        for name in ("q", "k", "stat", "norm", "threshold"):
            values = getattr(found, name)
            values = values.stored if isinstance(values, Grouped) else values
            if values is not None:
                self._extend({name: _tensor(values, found.dtype)})

    def _extend(self, parts: dict[str, Tensor | None]) -> None:
        for name, part in parts.items():
            if part is not None:
                self._rows.setdefault(name, Grown(1)).add(part.cpu())

    def factors(self) -> Factors:
        """What a capture would have kept of the rows so far; the arrays are views. The proof is
        that of the first rows."""
        first, keys = self._first, self._k.size
        assert first is not None and self._rule is not None
        arrays: dict[str, Any] = {name: one.array for name, one in self._rows.items()}
        if isinstance(first.k, Grouped):
            arrays["k"] = Grouped(arrays["k"], first.k.shape[0])
        proof = np.pad(first.proof_values, ((0, 0), (0, 0), (0, keys - first.k.shape[1])))
        keep = None if self._keep is None else self._keep.whole[0].cpu().numpy()
        kept = None if first.kept is None else np.concatenate(self._kept)
        rule = replace(self._rule, keep=keep, relative=first.rule.relative)
        return replace(first, **arrays, proof_values=proof, rule=rule, kept=kept)


def _tensor(values: NDArray[Any], dtype: str) -> Tensor:
    if values.dtype == np.uint16:
        return torch.from_numpy(values.view(np.int16)).view(getattr(torch, dtype))
    return torch.from_numpy(values)


@dataclass(slots=True)
class Waiting:
    """A level of an Hourglass between two tokens: how many rows it has had, the last of them that
    fill no group yet (B, open, d), and the newest group from the level below (B, 1, d)."""

    rest: Tensor
    newest: Tensor
    rows: int = 0


@dataclass(slots=True)
class Past:
    """What a model knows of the tokens it has read: length of them, by layers and levels; memory
    (B, m, d), what a decoder attends to; read_once, what layers kept that read one text alone.
    recurrent: the states of an LSTM; windows: by layer, what those of the next token begin with."""

    length: int = 0
    memory: Tensor | None = None
    levels: dict[int, Waiting] = field(default_factory=dict)
    read_once: dict[int, Factors] = field(default_factory=dict)
    recurrent: tuple[Tensor, Tensor] | None = None
    windows: dict[int, Tensor] = field(default_factory=dict)
    boundaries: list[Tensor] = field(default_factory=list)  # bool (n,) of every pass, of segments
    _layers: dict[int, LayerPast] = field(default_factory=dict)

    def layer(self, index: int) -> LayerPast:
        """What a layer attended with."""
        return self._layers.setdefault(index, LayerPast())

    def factors(self, index: int) -> Factors:
        """What a capture would have kept of a layer so far."""
        if index in self.read_once:
            return self.read_once[index]
        return self._layers[index].factors()


__all__ = ["Grown", "LayerPast", "NotIncremental", "Past", "Waiting"]
