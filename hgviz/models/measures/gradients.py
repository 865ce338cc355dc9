"""How a loss or a logit changes with the scores and the weights of every head.

One pass and its way back give dL/dc of what each head gives, c = A V; what is wanted of single
cells follows from it, a few rows at a time, and no map is ever whole: dL/dA = dL/dc V^T, and
dL/dS = dL/dA through mask, norm and activation, whose rows do not know each other. Shapes: H heads,
Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from hgviz.core import HeadId, HeadSet, HgvizError, Integers, Prompt
from hgviz.examples import IGNORE_INDEX, Batch
from hgviz.models.attention import HeadGroup, head_groups
from hgviz.models.layers import Network, Tokens
from hgviz.models.measures.trials import tokens_of
from hgviz.models.measures.variants import GateGradientRecorder, attention_layers
from hgviz.models.model import Model
from hgviz.models.run import Run

Quantity = Callable[[Tensor], Tensor]  # logits (1, ...) -> one number
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Slopes:
    """Some rows of the heads of a layer that are alike; all arrays (h, rows, K), 0 where not seen.

    heads: their numbers; rows: from the first up to the last but one. scores: scaled, before mask,
    norm and activation; for linear attention phi(q) . phi(k). at_weights: dL/dA, at_scores: dL/dS.
    seen (rows, K): the cells that exist.
    """

    heads: tuple[int, ...]
    rows: range
    scores: Array
    weights: Array
    at_scores: Array
    at_weights: Array
    seen: NDArray[np.bool_]


# --- what is asked --------------------------------------------------------------------------------


def logit(number: int, position: int = -1) -> Quantity:
    """One logit: of a class, or of a token at a position. Errors: HgvizError for none."""

    def of(logits: Tensor) -> Tensor:
        row = logits[0]
        if row.ndim == 2:
            _require("position", position, len(row), -len(row))
            row = row[position]
        _require("logit", number, len(row))
        return row[number]

    return of


def loss(wanted: Any) -> Quantity:
    """Cross-entropy in nats, summed: wanted is a class, or tokens (n,), -100 where none is."""

    def of(logits: Tensor) -> Tensor:
        flat, labels = _asked(logits, wanted)
        return F.cross_entropy(flat, labels, reduction="sum")

    return of


def log_odds(wanted: Any) -> Quantity:
    """ln p / (1 - p) of what is wanted, summed; wanted as in loss. Its slopes do not vanish where
    the model is sure, as those of the loss do, which are 1 - p times these.
    """

    def of(logits: Tensor) -> Tensor:
        flat, labels = _asked(logits, wanted)
        flat, labels = flat[labels != IGNORE_INDEX], labels[labels != IGNORE_INDEX][:, None]
        others = flat.scatter(1, labels, -torch.inf)
        return (flat.gather(1, labels)[:, 0] - others.logsumexp(1)).sum()

    return of


def _asked(logits: Tensor, wanted: Any) -> tuple[Tensor, Tensor]:
    """Logits (places, answers) and what is wanted there. Errors: HgvizError where these differ."""
    flat = logits.flatten(0, -2)
    labels = torch.as_tensor(np.atleast_1d(np.asarray(wanted, np.int64)), device=flat.device)
    if len(flat) != len(labels):
        raise HgvizError(
            f"{len(labels):,} answers are wanted: the model gives {len(flat):,}", "Give each"
        )
    name = "class" if len(flat) == 1 else "token"
    _require(name, int(labels.max()), flat.shape[-1], IGNORE_INDEX)
    return flat, labels


def next_token(ids: Integers) -> Quantity:
    """What a language model is trained for: the loss of every token after the first, in nats."""
    return loss(np.append(np.asarray(ids, np.int64)[1:], IGNORE_INDEX))


# --- what is found --------------------------------------------------------------------------------


class Gradients:
    """One pass over one text and its way back. value: of what was asked.

    Heads that are off have slopes of 0: nothing goes through them.
    """

    def __init__(
        self, module: Network, tokens: Tokens, quantity: Quantity, off: HeadSet = frozenset()
    ) -> None:
        recorder = GateGradientRecorder()
        with torch.enable_grad():
            value = quantity(module(tokens, Run(off, observers=(recorder,))))
            contexts = (
                recorder.contexts
            )  # (1, H, Q, D), of layers that do not weigh by their own code
            some = list(contexts.values())
            found = torch.autograd.grad(value, some, allow_unused=True) if some else ()
        self.value = float(value.detach())
        self._calls = recorder.calls
        self._layers = {layer.index: layer for layer in attention_layers(module)}
        self._given = {
            index: torch.zeros_like(context) if slope is None else slope
            for (index, context), slope in zip(contexts.items(), found, strict=True)
        }

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of layers, in order of computation."""
        return tuple(sorted(self._calls))

    def blocks(self, layer: int) -> Iterator[Slopes]:
        """A layer, a few rows of the heads of one kind at a time; rows of all heads in order."""
        for one in self._alike(layer):
            for rows, _ in one.row_blocks():
                yield self._slopes(layer, one, range(int(rows[0]), int(rows[-1]) + 1))

    def rows(self, layer: int, rows: range) -> Slopes:
        """Some rows of all heads of a layer, in its order; four arrays of heads x rows x keys.

        Errors: HgvizError for rows that are not there.
        """
        self._require(layer, rows)
        parts = [self._slopes(layer, one, rows) for one in self._alike(layer)]
        if len(parts) == 1:
            return parts[0]
        order = np.argsort([place for one in self._alike(layer) for place in one.heads])
        numbers = [number for part in parts for number in part.heads]
        scores, weights, at_scores, at_weights = (
            np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("scores", "weights", "at_scores", "at_weights")
        )
        heads = tuple(numbers[at] for at in order)
        return Slopes(heads, rows, scores, weights, at_scores, at_weights, parts[0].seen)

    def shape(self, layer: int) -> tuple[int, int, int]:
        """Heads, queries and keys of a layer."""
        call = self._calls[layer]
        return call.q.shape[1], call.q.shape[2], call.k.shape[2]

    def head(self, head: HeadId, rows: range | None = None) -> Slopes:
        """Some rows of one head, or all. Errors: HgvizError for a head or rows that are not there.

        Holds four arrays of rows x keys.
        """
        if head.layer in self._given.keys() - self._calls.keys():
            raise HgvizError(
                f"there are no slopes of head {head}: "
                "its model adds numbers to scores that no mask says",
                "Name a head of another layer",
            )
        there = self._layers[head.layer].heads if head.layer in self._calls else ()
        if head.head not in there:
            raise HgvizError(f"this model has no head {head}", "Run `hgviz info` on it")
        place = there.index(head.head)
        group = next(each for each in self._alike(head.layer) if place in each.heads)
        only = next(one for one in group.single_heads() if one.heads == (place,))
        asked = range(only.q.shape[-2]) if rows is None else rows
        self._require(head.layer, asked)
        return self._slopes(head.layer, only, asked)

    def _require(self, layer: int, rows: range) -> None:
        queries = self.shape(layer)[1]
        if rows.step != 1 or rows.start < 0 or not rows.start < rows.stop <= queries:
            raise HgvizError(f"rows {rows.start}:{rows.stop} are not there: 0:{queries} are")

    def _alike(self, layer: int) -> Iterator[HeadGroup]:
        call = self._calls[layer]
        return head_groups(call.q.detach(), call.k.detach(), call.rule, call.relative)

    def _slopes(self, layer: int, one: HeadGroup, rows: range) -> Slopes:
        call, given = self._calls[layer], self._given[layer]
        at = torch.arange(rows.start, rows.stop, device=given.device)
        with torch.no_grad():
            scores, seen = one.scores(at, call.keep)
            empty = ~seen.any(-1, keepdim=True)
            reached = one.of_layer(given)[..., at, :] @ one.values(call.v.detach()).transpose(
                -1, -2
            )
            at_weights = torch.where(seen, reached, 0.0)
        with torch.enable_grad():
            leaf = scores.detach().clone().requires_grad_()
            weights = one.weigh(leaf, seen)
            (at_scores,) = torch.autograd.grad(weights, leaf, at_weights)
        at_scores = torch.where(seen & ~empty, at_scores, 0.0)
        heads = self._layers[layer].heads
        return Slopes(
            tuple(heads[place] for place in one.heads),
            rows,
            _numpy(torch.where(seen, scores, 0.0)[0]),
            _numpy(weights[0]),
            _numpy(at_scores[0]),
            _numpy(at_weights[0]),
            _numpy(seen[0, 0]),
        )


def gradients(
    model: Model,
    prompt: Prompt,
    quantity: Quantity,
    target: Prompt | None = None,
    off: HeadSet = frozenset(),
) -> Gradients:
    """How what is asked of a text (two for an encoder-decoder) changes with every score and weight.

    A quantity is logit(...), loss(...), log_odds(...) or next_token(...). Errors: HgvizError as of
    Model.trace, and for what the model does not give.
    """
    return Gradients(model.module, model.tokens(prompt, target), quantity, off)


def of_example(model: Model, batch: Batch, off: HeadSet = frozenset()) -> Gradients:
    """The slopes of the log odds of what is wanted of an example, a batch of one."""
    tokens = tokens_of(batch, model.device, next(model.module.parameters()).dtype)
    return Gradients(model.module, tokens, log_odds(batch.wanted[0]), off)


def _require(name: str, asked: int, count: int, least: int = 0) -> None:
    if not least <= asked < count:
        raise HgvizError(f"this model gives no {name} {asked}: it gives {count:,}")


def _numpy(x: Tensor) -> Any:
    wide = x if x.dtype in (torch.float64, torch.bool) else x.float()
    return wide.detach().cpu().numpy()


__all__ = [
    "Gradients", "Quantity", "Slopes", "gradients", "log_odds", "logit", "loss", "next_token",
    "of_example",
]  # fmt: skip
