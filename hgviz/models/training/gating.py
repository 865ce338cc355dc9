"""Training with heads off and with gates that are learnt: what a pass is asked for, and what stays.

Shapes: B texts, H heads that are on, in order of computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from msgspec import to_builtins
from torch import Tensor

from hgviz.core import HeadId, HeadSet, HgvizError, Layer
from hgviz.models.config import Config, TransformersConfig
from hgviz.models.formats.checkpoint import Checkpoint
from hgviz.models.layers import Network, Tokens
from hgviz.models.run import Run
from hgviz.models.surgery.removal import scaled
from hgviz.models.training.batches import random_of
from hgviz.models.training.gates import METHODS, Gates
from hgviz.models.training.objectives import Figures, Objective
from hgviz.models.training.plan import Gating

NOISE = 4  # the stream of random numbers that gates are drawn by


@dataclass(frozen=True, slots=True)
class Gated:
    """An objective under heads that are off, and gates that are learnt where there are any."""

    inner: Objective
    config: Config
    off: HeadSet
    seed: int
    gates: Gates | None = None
    layers: tuple[Layer, ...] = field(init=False)
    places: Tensor = field(init=False)  # (H,) among all heads

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", self.config.layers)
        on = [at for at, head in enumerate(self.every) if head not in self.off]
        object.__setattr__(self, "places", torch.tensor(on, dtype=torch.long))

    @property
    def every(self) -> list[HeadId]:
        """All heads, off or on."""
        return [HeadId(layer.index, head) for layer in self.layers for head in layer.heads]

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """Those that are on."""
        return tuple(head for head in self.every if head not in self.off)

    @property
    def metric(self) -> str:
        """The figure that counts."""
        return self.inner.metric

    @property
    def per_epoch(self) -> float:
        """Steps of one pass over the training data."""
        return self.inner.per_epoch

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        """The loss under gates drawn for every text, and their penalty; the log has it without."""
        gates = self.gates
        if gates is None:
            with asked(model, lambda texts: Run(self.off)):
                return self.inner.loss(model, step, done)
        total, shown = gates.penalty(done), 0.0
        passes = gates.passes(done)
        for number in range(passes):

            def run(texts: int, number: int = number) -> Run:
                shape, random = (texts, len(self.places)), random_of(self.seed, step, NOISE)
                u = torch.rand(shape, generator=random, dtype=torch.float64)
                u = u.clamp(min=torch.finfo(u.dtype).tiny)  # 0 has no logarithm
                return Run(self.off, gates=self.laid(gates.drawn(number, u, done), model))

            with asked(model, run):
                loss, one = self.inner.loss(model, step, done)
            total, shown = total.to(loss) + loss, shown + one / passes
        return total, shown

    def measure(self, model: Network, whole: bool) -> Figures:
        """Figures with gates as they are at test time, and how many heads are not closed."""
        if self.gates is None:
            return self.measured(model, whole, None)
        figures = self.measured(model, whole, self.gates.settled())
        return figures | {"heads": float((~self.gates.closed()).sum())}

    def measured(self, model: Network, whole: bool, gates: Tensor | None) -> Figures:
        """Figures with some gates (H,)."""

        def run(texts: int) -> Run:
            if gates is None:
                return Run(self.off)
            return Run(self.off, gates=self.laid(gates.expand(texts, -1), model))

        with asked(model, run):
            return self.inner.measure(model, whole)

    def laid(self, gates: Tensor, model: Network) -> dict[int, Tensor]:
        """Gates (B, H) by layer, of all heads of each; those of heads that are off say nothing."""
        counts = [len(layer.heads) for layer in self.layers]
        whole = gates.new_ones(len(gates), sum(counts)).index_copy(1, self.places, gates)
        parts = whole.to(next(model.parameters())).split(counts, 1)
        return {layer.index: part for layer, part in zip(self.layers, parts, strict=True)}

    # --- what stays -------------------------------------------------------------------------------

    def folded(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights that give by themselves what they gave with these gates, and these heads off."""
        factors = dict.fromkeys(self.off, 0.0)
        if self.gates is not None and self.gates.folded:
            factors |= dict(zip(self.heads, self.gates.settled().tolist(), strict=True))
        config = self.config
        if isinstance(config, TransformersConfig):  # a module's tensors, not a file's
            config = replace(config, outputs=tuple(f"net.{one}.weight" for one in config.products))
        whole = Checkpoint(config, dict(tensors), "", Path())
        return scaled(whole, factors).tensors

    def require_folds(self) -> None:
        """Errors: HgvizError where what stays could not be told from what was learnt, as heads have
        no columns of W_O of their own."""
        if not isinstance(self.config, TransformersConfig):
            return
        folds = self.gates is not None and self.gates.folded
        changed = {*self.every} if folds else self.off
        products = self.config.products
        for layer in sorted({head.layer for head in changed}):
            if not products[layer] or products.count(products[layer]) > 1:
                shared = f"layer {layer} shares its weights with other layers"
                raise HgvizError(
                    "this model cannot be stored with heads off or weaker: "
                    + (
                        shared
                        if products[layer]
                        else f"no product behind the heads of layer {layer} was seen"
                    ),
                    "Learn causal gates, which leave weights as they are, and take model.off out",
                )

    def closed(self) -> HeadSet:
        """The heads that the gates leave out, and those that were off."""
        if self.gates is None:
            return self.off
        return self.off | self._which(self.gates.closed())

    def roles(self) -> dict[str, HeadSet]:
        """Heads by what the gates say they do."""
        found = {} if self.gates is None else self.gates.roles()
        return {role: self._which(some) for role, some in found.items()}

    def _which(self, some: Tensor) -> HeadSet:
        return frozenset(head for head, one in zip(self.heads, some.tolist(), strict=True) if one)

    def written(self, model: Network) -> dict[str, Any]:
        """What gates.json says of gates and the held-out data."""
        assert self.gates is not None
        learned = {name: one.tolist() for name, one in self.gates.learned().items()}
        table = to_builtins(self.gates.table)
        told = {key: one for key, one in table.items() if one or key == "freeze"}
        told |= {
            "seed": self.seed,
            "heads": [str(head) for head in self.every],
            "off": named(self.closed()),
            "roles": {role: named(some) for role, some in self.roles().items()},
            "learned": {
                name: dict(zip(map(str, self.heads), values, strict=True))
                for name, values in learned.items()
            },
        }
        if not self.gates.folded:  # no stored model has these
            told["figures"] = {
                name: self.measured(model, True, torch.tensor(values, dtype=torch.float64))
                for name, values in learned.items()
            }
        return told


def named(heads: HeadSet) -> str:
    """Heads as heads_named reads them."""
    return ",".join(map(str, sorted(heads)))


def gated(inner: Objective, config: Config, off: HeadSet, seed: int, table: Gating) -> Gated:
    """An objective that learns gates. Errors: HgvizError where more heads are kept than are on."""
    on = sum(len(layer.heads) for layer in config.layers) - len(off)
    if on < 1 or table.keep > on:
        raise HgvizError(
            f"no gates can be learned for {'so few' if table.keep else 'no'} heads: "
            + (f"{on} are on" + (f" and gates.keep is {table.keep}" if table.keep else "")),
            "Change gates.keep" if table.keep else "Take model.off out",
        )
    return Gated(inner, config, off, seed, METHODS[table.method](table, on))


@contextmanager
def asked(model: Network, run: Callable[[int], Run]) -> Iterator[None]:
    """Every pass of the model, of so many texts, is asked for this."""

    def given(_: Any, args: tuple[Any, ...], keys: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        ids = args[0].ids if isinstance(args[0], Tokens) else args[0]
        assert ids is not None
        return args, {**keys, "run": run(len(ids))}

    hook = model.register_forward_pre_hook(given, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()
