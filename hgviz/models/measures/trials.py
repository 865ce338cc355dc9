"""A model on its examples, again and again with other heads off.

What the whole model made of each batch on its way is kept, as far as memory goes, so that a trial
begins at the first layer that differs from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hgviz.core import (
    NO_STREAMING,
    Floats,
    HeadCost,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    Streaming,
)
from hgviz.errors import require
from hgviz.examples import IGNORE_INDEX, Batch, Examples
from hgviz.models.layers import Tokens
from hgviz.models.measures.variants import BaselinePass, HeadAblation
from hgviz.models.model import Model

KEEP = 1 << 30  # bytes
PIECE = 64  # tokens
CELLS = 1 << 24  # places x vocabulary whose probabilities are held at once
SAME = 1e-9  # between cosines that are equal


Answer = tuple[Floats, Integers]  # (places,) each: nats of surprise, the likeliest class or token


class Trials:
    """The answers of a model to examples, whole and with heads off.

    off: heads that are off in the whole model already; streaming: that see fewer keys in all of
    them. blocks: batches in the order of the examples, of the sizes that Examples.blocks takes; a
    score is fair after each block. keep: bytes for parts of the whole model's passes.
    """

    def __init__(
        self,
        model: Model,
        examples: Examples,
        off: HeadSet = frozenset(),
        keep: int = KEEP,
        sizes: Sequence[int] = (),
        streaming: Streaming = NO_STREAMING,
    ) -> None:
        self.model, self.examples = model, examples
        self.blocks = tuple(map(tuple, examples.blocks(sizes)))
        self._variants = HeadAblation(model.module, off, streaming)
        self._kept: dict[bytes, tuple[BaselinePass, Answer]] = {}  # by the examples of a batch
        self._room = keep
        self._states: Tensor | None = None  # (examples, d) of the whole model, of unit length

    @cached_property
    def weights(self) -> tuple[HeadCost, ...] | None:
        """The weights of one head of each layer; None where they do not go by heads."""
        from hgviz.models.surgery.removal import head_weights

        return head_weights(self.model.module)

    @property
    def off(self) -> HeadSet:
        """The heads that are off in the whole model already."""
        return self._variants.off

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """The heads that can be switched off, in order of computation."""
        return tuple(head for head in self._variants.heads if head not in self.off)

    def whole(self, batch: Batch) -> Answer:
        """What the whole model answers."""
        return self._known(batch)[1]

    def without(self, batch: Batch, off: Collection[HeadId]) -> Answer:
        """What it answers with these heads off."""
        if not frozenset(off) - self.off:
            return self.whole(batch)
        return self._answered(self._variants.ablate(self._known(batch)[0], off), batch)

    def one_by_one(self, batch: Batch, alone: bool = False) -> Iterator[tuple[HeadId, Answer]]:
        """What it answers without each head, the last layers first.

        alone: what it answers when a head is the only one of its layer that is on.
        """
        whole, _ = self._variants.baseline(self._tokens(batch))
        for heads, logits in self._variants.ablate_each(whole, alone):
            for head, one in zip(heads, logits, strict=True):
                yield head, self._answered(one, batch)

    def slopes(self, batch: Batch) -> tuple[Floats, Floats]:
        """G (B, heads), dL / dx of the summed loss of each text with each gate; and the sums over
        tokens of the sizes of its parts."""
        require(
            self.examples.asked != "states",
            "this model has no slopes to score heads by: "
            "it gives hidden states, which move from the whole model's by nothing where all "
            "heads are on, and by as little around there",
            "Choose --method loo, all-but-one or shapley",
        )
        wanted = torch.tensor(batch.wanted, device=self.model.device)

        def losses(logits: Tensor) -> Tensor:
            each = F.cross_entropy(
                logits.flatten(0, -2), wanted.flatten(), ignore_index=IGNORE_INDEX, reduction="none"
            )
            return each.unflatten(0, (len(logits), -1)).sum(1)

        found = self._variants.gate_gradients(self._tokens(batch), losses)
        return _numpy(found.gates.float()), _numpy(found.tokens.float())

    def require_effect(self) -> None:
        """Switch off each layer and see that something changes; a mask that is ignored is no mask.

        A change anywhere is proof, so a piece of one text is asked first. Layers that add nothing
        (no heads, or an output matrix of zeros) are passed over. Errors: HgvizError naming the
        layer whose heads do nothing.
        """
        tokens = self._tokens(self.blocks[0][0])
        if self._variants.find_unused_layer(_piece(tokens)) is None:
            return
        if (layer := self._variants.find_unused_layer(tokens)) is not None:
            raise HgvizError(
                f"switching off layer {layer} changes nothing: so no head of it can be tried",
                "Report this model: its heads are not where hgviz looks for them",
            )

    def _known(self, batch: Batch) -> tuple[BaselinePass, Answer]:
        rows = batch.rows.tobytes()
        if rows not in self._kept:
            whole, logits = self._variants.baseline(self._tokens(batch))
            outputs = whole.outputs  # all that a trial looks at where it begins
            size = sum(one.nbytes for one in outputs.values())
            if size > self._room:
                outputs, size = {}, 0
            self._room -= size
            self._kept[rows] = (
                BaselinePass(whole.tokens, outputs=outputs),
                self._answered(logits, batch),
            )
        return self._kept[rows]

    def _answered(self, found: Tensor, batch: Batch) -> Answer:
        if self.examples.asked == "states":
            moved, nearest = known_again(pooled(found, batch), self._all_states(), batch)
            return moved, self.examples.wanted[nearest]
        if self.examples.asked == "ends":  # no answer begins or ends in padding
            keep = torch.tensor(batch.mask, device=found.device)[:, None]
            found = found.masked_fill(~keep, torch.finfo(found.dtype).min)
        return answered(found, batch)

    @torch.inference_mode()
    def states(self, batch: Batch) -> Tensor:
        """(B, d) What the whole model makes of each example of a batch, see pooled."""
        _, found = self._variants.baseline(self._tokens(batch))
        return pooled(found, batch)

    def _all_states(self) -> Tensor:
        """(examples, d) What the whole model makes of each example."""
        if self._states is None:
            parts: dict[int, Tensor] = {}
            for batch in (one for block in self.blocks for one in block):
                parts |= dict(zip(batch.rows.tolist(), self.states(batch), strict=True))
            self._states = torch.stack([parts[row] for row in range(len(self.examples))])
        return self._states

    @property
    def _net(self) -> Any:
        """The model of transformers itself."""
        return self.model.module.net

    def _tokens(self, batch: Batch) -> Tokens:
        return tokens_of(batch, self.model.device, next(self.model.module.parameters()).dtype)


def tokens_of(batch: Batch, device: str, dtype: torch.dtype = torch.float32) -> Tokens:
    """A batch of examples as a model reads it."""
    keep = None if batch.mask.all() else torch.tensor(batch.mask, device=device)
    kinds = None if batch.kinds is None else torch.tensor(batch.kinds, device=device)
    signal = None
    if batch.signals is not None:
        signal = torch.tensor(batch.signals, device=device, dtype=dtype)
    source = None if batch.first is None else tokens_of(batch.first, device, dtype)
    ids = torch.tensor(batch.ids, device=device)
    return Tokens(ids, keep, kinds, source=source, signal=signal)


def pooled(states: Tensor, batch: Batch) -> Tensor:
    """(B, d) The mean of states (B, n, d) over what is real, of unit length, as sentence encoders
    are read (Reimers and Gurevych 2019); states (B, d) as they are."""
    whole = states.double()
    if whole.ndim == 3:
        keep = torch.tensor(batch.mask, device=states.device)[..., None].to(whole)
        keep = keep if keep.shape[1] == whole.shape[1] else torch.ones_like(whole[..., :1])
        whole = (whole * keep).sum(1) / keep.sum(1)
    return F.normalize(whole, dim=-1)


def known_again(found: Tensor, states: Tensor, batch: Batch) -> Answer:
    """By how much states (B, d) moved, 1 - cosine to those of the whole model (examples, d), and
    the number of the example whose is the nearest now."""
    near = found @ states.mT
    own = torch.tensor(batch.rows, device=found.device)
    at = near.gather(1, own[:, None])[:, 0]
    # of texts that are alike, a text is its own nearest
    best = torch.where(at >= near.max(1).values - SAME, own, near.argmax(1))
    return _numpy((1 - at).clamp(min=0).float()), _numpy(best)


@torch.inference_mode()
def answered(logits: Tensor, batch: Batch) -> Answer:
    """The answers at the places of a batch; logits (B, classes), (B, n, vocabulary), or (B, 2, n)
    of where answers begin and end."""
    asked = torch.tensor(batch.asked, device=logits.device)
    wanted = torch.tensor(batch.wanted[batch.asked], device=logits.device)
    flat = logits[asked]  # (places, answers)
    loss, given = [], []
    for part, right in zip(
        flat.split(max(1, CELLS // flat.shape[-1])),
        wanted.split(max(1, CELLS // flat.shape[-1])),
        strict=True,
    ):
        loss.append(F.cross_entropy(part.double(), right, reduction="none"))
        given.append(part.argmax(-1))
    return _numpy(torch.cat(loss).float()), _numpy(torch.cat(given))


def _piece(tokens: Tokens) -> Tokens:
    """The beginning of the first text; of a picture or a sound, all; and of what it is read
    beside."""
    ids, keep = tokens.ids, tokens.keep
    assert ids is not None
    if tokens.signal is not None:
        return Tokens(ids[:1], signal=tokens.signal[:1])
    source = None if tokens.source is None else _piece(tokens.source)
    return Tokens(ids[:1, :PIECE], None if keep is None else keep[:1, :PIECE], source=source)


def _numpy(x: Tensor) -> Any:
    return x.cpu().numpy()
