"""A model on its examples, again and again with other heads off.

What the whole model made of each batch on its way is kept, as far as memory goes, so that a trial
begins at the first layer that differs from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hgviz.core import NO_STREAMING, Floats, HeadId, HgvizError, Integers, Off, Streaming
from hgviz.examples import NOTHING, Batch, Examples
from hgviz.models.blocks import Known, Tokens
from hgviz.models.measures.variants import Whole, variants_of
from hgviz.models.model import Model

KEEP = 1 << 30  # bytes
PIECE = 64  # tokens
CELLS = 1 << 24  # places x vocabulary whose probabilities are held at once


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
        off: Off = frozenset(),
        keep: int = KEEP,
        sizes: Sequence[int] = (),
        streaming: Streaming = NO_STREAMING,
    ) -> None:
        self.model, self.examples = model, examples
        self.blocks = tuple(map(tuple, examples.blocks(sizes)))
        self._variants = variants_of(model.module, off, streaming)
        self._kept: dict[bytes, tuple[Whole, Answer]] = {}  # by the examples of a batch
        self._room = keep

    @property
    def off(self) -> Off:
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
        return answered(self._variants.without(self._known(batch)[0], off), batch)

    def one_by_one(self, batch: Batch, alone: bool = False) -> Iterator[tuple[HeadId, Answer]]:
        """What it answers without each head, the last layers first.

        alone: what it answers when a head is the only one of its layer that is on.
        """
        whole, _ = self._variants.whole(self._tokens(batch))
        for heads, logits in self._variants.one_by_one(whole, alone):
            for head, one in zip(heads, logits, strict=True):
                yield head, answered(one, batch)

    def slopes(self, batch: Batch) -> tuple[Floats, Floats]:
        """G (B, heads), dL / dx of the summed loss of each text with each gate; and the sums over
        tokens of the sizes of its parts."""
        wanted = torch.tensor(batch.wanted, device=self.model.device)

        def losses(logits: Tensor) -> Tensor:
            each = F.cross_entropy(
                logits.flatten(0, -2), wanted.flatten(), ignore_index=NOTHING, reduction="none"
            )
            return each.unflatten(0, (len(logits), -1)).sum(1)

        found = self._variants.slopes(self._tokens(batch), losses)
        return _numpy(found.gates.float()), _numpy(found.tokens.float())

    def require_effect(self) -> None:
        """Switch off each layer and see that something changes; a mask that is ignored is no mask.

        A change anywhere is proof, so a piece of one text is asked first. Layers that add nothing
        (no heads, or an output matrix of zeros) are passed over. Errors: HgvizError naming the
        layer whose heads do nothing.
        """
        tokens = self._tokens(self.blocks[0][0])
        if self._variants.without_effect(_piece(tokens)) is None:
            return
        if (layer := self._variants.without_effect(tokens)) is not None:
            raise HgvizError(
                f"switching off layer {layer} changes nothing",
                "so no head of it can be tried",
                "Report this model: its heads are not where hgviz looks for them",
            )

    def _known(self, batch: Batch) -> tuple[Whole, Answer]:
        rows = batch.rows.tobytes()
        if rows not in self._kept:
            whole, logits = self._variants.whole(self._tokens(batch))
            outputs = whole.known.outputs  # all that a trial looks at where it begins
            size = sum(one.nbytes for one in outputs.values())
            if size > self._room:
                outputs, size = {}, 0
            self._room -= size
            self._kept[rows] = Whole(whole.tokens, Known(outputs)), answered(logits, batch)
        return self._kept[rows]

    def _tokens(self, batch: Batch) -> Tokens:
        ids = torch.tensor(batch.ids, device=self.model.device)
        keep = None
        if not batch.mask.all():
            keep = torch.tensor(batch.mask, device=self.model.device)
        return Tokens(ids, keep)


@torch.inference_mode()
def answered(logits: Tensor, batch: Batch) -> Answer:
    """The answers at the places of a batch; logits (B, classes) or (B, n, vocabulary)."""
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
    """The beginning of the first text."""
    ids, keep = tokens.ids, tokens.keep
    assert ids is not None
    return Tokens(ids[:1, :PIECE], None if keep is None else keep[:1, :PIECE])


def _numpy(x: Tensor) -> Any:
    return x.cpu().numpy()
