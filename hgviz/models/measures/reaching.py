"""The reach of a model, measured: the gradient of every output by the embedding of every token.

An output is a vector, so what is followed back is one number of it, its product with a normal
vector v that is the same for all: the length of that gradient, squared, is on the mean over v the
sum of squares of all gradients of the vector's elements. Shapes: B copies of the text, n outputs,
m tokens, d width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hgviz.core import HgvizError, Prompt, progress
from hgviz.errors import require
from hgviz.models.layers import Tokens
from hgviz.models.model import Model
from hgviz.models.run import Observer, Run

Matrix = NDArray[np.float64]

SEED = 1  # of v
MOST = 1024  # tokens: each is an output to follow back
ROOM = 1 << 25  # numbers held at once, about: a quarter of a GB in float64
PER_LAYER = 24  # numbers that a layer keeps of every element it gives, about


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """own (n, n) and source (n, m) as analysis.reach.Reach has them, of "logits" or "states"."""

    own: Matrix
    source: Matrix | None
    of: str


def measure(model: Model, prompt: Prompt, target: Prompt | None = None) -> Measured:
    """R[i, j] = |d (v . y_i) / d e_j|: y_i the logits at i, or the last states of a model that
    gives no logits of tokens; e_j the embedding of token j, before positions are added.

    Some outputs at a time, each in a copy of the text of its own, so that memory does not grow with
    the square of the text. Errors: HgvizError as of Model.trace, and for more than 1,024 tokens.
    """
    given = model.tokens(prompt, target)
    require(
        model.spec.form != "base",
        "the outputs of this model are no tokens: "
        "it ends with positions of several, and reach is from token to token",
        "Choose a model that comes back to all tokens, such as a Funnel with its decoder",
    )
    length = len(prompt if target is None else target)
    longest = max(length, len(prompt))
    if longest > MOST:
        raise HgvizError(
            f"the text has {longest:,} tokens: "
            f"every output is followed back by itself, and that is done for up to {MOST:,}",
            "Give a shorter text, or --tokens",
        )
    copies = _copies(model, length, longest)
    own: Matrix = np.zeros((length, length))
    source: Matrix | None = None
    for start in range(0, length, copies):
        progress(start, length, f"output {start:,} of {length:,}")
        rows = torch.arange(start, min(start + copies, length), device=model.device)
        found = _rows(model, given, rows)
        own[start : start + len(rows)] = _numbers(found[0])
        if len(found) > 1:
            source = np.zeros((length, len(prompt))) if source is None else source
            source[start : start + len(rows)] = _numbers(found[1])
    return Measured(own, source, "states" if _of_states(model) else "logits")


class LastStates(Observer):
    """Keeps what the last block with a layer of attention returns, (B, n, d)."""

    found: Tensor

    def finished_block(self, index: int, x: Any, output: Any) -> None:
        """Keep the states of a block; it may return more beside them."""
        self.found = output[0] if isinstance(output, tuple) else output


def _rows(model: Model, given: Tokens, rows: Tensor) -> list[Tensor]:
    """Some rows (B, n) of R, and (B, m) by the other text."""
    with torch.inference_mode(False), torch.enable_grad():
        leaves: list[Tensor] = []
        tokens = _copied(model, given, len(rows), leaves)
        states = LastStates()
        outputs = model.module(tokens, Run(observers=(states,)))
        if _of_states(model):
            outputs = states.found
        elif model.spec.goal == "ends":
            outputs = outputs.transpose(1, 2)  # (B, 2, n): of each token two
        chosen = outputs[torch.arange(len(rows), device=rows.device), rows]  # (B, V)
        generator = torch.Generator().manual_seed(SEED)
        v = torch.randn(chosen.shape[-1], generator=generator, dtype=torch.float64).to(chosen)
        slopes = torch.autograd.grad((chosen @ v).sum(), leaves)
    return [torch.linalg.vector_norm(one, dim=-1) for one in slopes]


def _copied(model: Model, given: Tokens, copies: int, leaves: list[Tensor]) -> Tokens:
    """So many copies of a text; adds to leaves the embeddings that gradients are taken by."""
    repeat = (copies, -1)
    keep = None if given.keep is None else given.keep.expand(repeat)
    kinds = None if given.segments is None else given.segments.expand(repeat)
    if given.states is not None:
        leaves.append(_leaf(given.states, copies))
        return Tokens(keep=keep, states=leaves[-1])
    assert given.ids is not None
    leaves.append(_leaf(model.module.table(given.ids), copies))
    places = None if given.positions is None else given.positions.expand(repeat)
    ids = given.ids.expand(repeat)
    found = Tokens(ids, keep, kinds, embedded=leaves[-1], positions=places)
    if given.source is None:
        return found
    return replace(found, source=_copied(model, given.source, copies, leaves))


def _leaf(embedded: Tensor, copies: int) -> Tensor:
    return embedded.detach().expand(copies, -1, -1).clone().requires_grad_()


def _of_states(model: Model) -> bool:
    """A classifier answers once for a whole text: its last states are what speaks of tokens."""
    return model.spec.goal == "classes"


def _copies(model: Model, length: int, longest: int) -> int:
    """How many copies of a text at once."""
    spec = model.spec
    depth = len(spec.layers) or getattr(model.config, "n_layers", 1)
    elements = longest * (PER_LAYER * depth * spec.width + spec.vocabulary)
    return int(min(max(1, ROOM // (elements + len(spec.heads) * longest**2)), length))


def _numbers(found: Tensor) -> Matrix:
    return found.detach().double().cpu().numpy()


__all__ = ["MOST", "Measured", "measure"]
