"""Where a pass of a Byte Latent Transformer of transformers ends its patches (Pagnoni et al. 2024,
arXiv 2412.09871): where it is told to, else where its patcher says, each text as it is cut alone.

Shapes: B batch, n bytes, P patches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hgviz.models.layers import Tokens
from hgviz.models.pretrained_config import Patches


@dataclass(slots=True)
class Cut:
    """How one pass cuts its texts. patcher: what says where patches end, None where nothing does;
    given: bool (B, n), the bytes that close a patch, None where the patcher is asked; keep (B, n),
    False for padding; embedded (B, n, d): embeddings in place of those of the bytes; ends: the
    bytes that close a patch, when it is known."""

    patches: Patches
    patcher: Any
    told: Any
    given: Tensor | None
    keep: Tensor | None
    embedded: Tensor | None
    ends: Tensor | None = None

    def lengths(self, ids: Tensor, entropies: Tensor | None = None) -> Tensor:
        """The lengths (B, P) of the patches of texts (B, n), whose patcher says these entropies
        (B, n) of what follows; from now on the ends are known."""
        self.ends = self._closes(ids, entropies)
        return lengths_of(self.ends)

    def sizes(self, computed: bool) -> tuple[int, ...]:
        """Positions by level; computed: with the patch that nothing closes, which is none."""
        assert self.ends is not None
        closed = self.ends.sum(1)
        count = int(closed.max()) + 1 if computed else int(closed[0])
        return self.patches.lengths(self.ends.shape[1], count)

    def _closes(self, ids: Tensor, entropies: Tensor | None) -> Tensor:
        if self.given is not None or entropies is None:
            whole = torch.ones_like(ids, dtype=torch.bool)
            closes = whole if self.given is None else self.given
            closes = closes if self.keep is None else closes & self.keep
        else:
            closes, stops = torch.zeros_like(ids, dtype=torch.bool), [ids.shape[1]] * len(ids)
            if self.keep is not None:
                places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
                stops = (self.keep * places).amax(1).clamp(min=1).tolist()
            for row, stop in enumerate(stops):
                ends = self._alone(entropies[row, :stop]).cumsum(0)[:-1].long()
                closes[row, ends[(ends > 0) & (ends <= stop)] - 1] = True
        return closes.index_fill(1, torch.tensor([0], device=closes.device), True)

    def _alone(self, entropies: Tensor) -> Tensor:
        """The lengths (P,) that the patcher makes of entropies (n,) of one text."""
        code = sys.modules[type(self.patcher).__module__]
        found = torch.ones_like(entropies, dtype=torch.long)[None]
        if self.told.patch_size is not None:
            found = self.patcher.patch_lengths_from_entropies(
                entropies[None], len(entropies), self.told.patch_size,
                self.told.patching_threshold,
            )  # fmt: skip
        lengths: Tensor = code.process_patch_lengths(found, self.told.max_patch_length)[0]
        return lengths


def patcher_of(net: Any, patches: Patches | None) -> Any:
    """The part of a model that decides where patches end, None where nothing does."""
    if patches is None or patches.patcher is None:
        return None
    return getattr(net, "model", net).patcher


def cut_of(net: Any, patches: Patches, tokens: Tokens) -> Cut:
    """What a pass knows of its patches before any byte is read."""
    given = tokens.boundaries, tokens.keep, tokens.embedded
    return Cut(patches, patcher_of(net, patches), net.config, *given)


def lengths_of(closes: Tensor) -> Tensor:
    """(B, P): how long the patches are that bytes (B, n) close, and the one after the last, which
    goes on behind the text. Texts with fewer have some of no byte behind that."""
    place, length = closes.cumsum(1), closes.shape[1]
    starts = closes.new_full(
        (len(closes), int(place[:, -1].max()) + 2), length + 1, dtype=torch.long
    )
    starts[:, 0] = 0
    text, at = closes.nonzero(as_tuple=True)
    starts[text, place[text, at]] = at + 1
    return starts.diff(dim=1)


def tell_patches(
    net: Any, patches: Patches, table: nn.Module, now: Callable[[], Cut | None]
) -> None:
    """Let a model's patcher give the lengths that the pass of now has, and its table the embeddings
    that the pass was given, to which the model adds those of hashes."""

    def embedded(module: nn.Module, given: Any, found: Tensor) -> Tensor | None:
        cut = now()
        return None if cut is None or cut.embedded is None else cut.embedded.clone()

    table.register_forward_hook(embedded)
    if (patcher := patcher_of(net, patches)) is None:
        return
    own = patcher.forward

    def forward(ids: Tensor, **named: Any) -> Any:
        entropies, lengths, logits = own(ids, **named)
        cut = now()
        return entropies, lengths if cut is None else cut.lengths(ids, entropies), logits

    patcher.forward = forward
