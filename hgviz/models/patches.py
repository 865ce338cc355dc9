"""The bytes and patches of a Byte Latent Transformer, as levels (Pagnoni et al. 2024, arXiv
2412.09871), and where a pass ends its patches.

A boundary is the last byte of a patch. The first byte is always one, because the decoder gives
every byte the latest patch that has ended. Bytes after the last boundary make a patch that no byte
reads: it is computed, but is no position.

Shapes: B batch, n bytes, P patches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.core import Integers, Level, Role, readonly
from hgviz.models.layers import Tokens


@dataclass(frozen=True, slots=True)
class Patches:
    """The layers of a Byte Latent Transformer and the levels that they connect.

    patcher, encoder, middle, decoder: numbers of layers. The patcher is a small model that decides
    where patches end; None where every byte is a patch. down: whether patches attend to bytes after
    every layer of the encoder, not only after the last. up: whether bytes attend to patches before
    every layer of the decoder, not only before the first. parts: positions per patch in encoder and
    decoder; several are a level of their own, on which each stands for all bytes of its patch.
    """

    patcher: int | None
    encoder: int
    middle: int
    decoder: int
    down: bool = False
    up: bool = True
    parts: int = 1

    @classmethod
    def of(cls, config: Any) -> Patches:
        """Those of a configuration in transformers."""
        encoder, decoder = config.encoder_config, config.decoder_config
        patcher = config.patcher_config.num_hidden_layers
        return cls(
            patcher if config.patch_in_forward and config.patching_mode == "entropy" else None,
            encoder.num_hidden_layers, config.global_config.num_hidden_layers,
            decoder.num_hidden_layers, bool(encoder.cross_attn_all_layers),
            bool(decoder.cross_attn_all_layers), config.cross_attn_k,
        )  # fmt: skip

    @property
    def levels(self) -> tuple[Level, ...]:
        """Bytes, the parts of patches where there are several, and patches."""
        if self.parts == 1:
            return (Level(0), Level(1, stride=None))
        return (Level(0), Level(1, stride=None, parts=self.parts), Level(2, stride=None))

    @property
    def places(self) -> list[tuple[Role, int, int]]:
        """(role, level, level of the keys) of every layer, in order of computation."""
        on_bytes: tuple[Role, int, int] = ("self", 0, 0)
        top = len(self.levels) - 1
        places = [on_bytes] * (self.patcher or 0)
        for layer in range(self.encoder):
            is_last = layer == self.encoder - 1
            places += [on_bytes, ("down", 1, 0)] if self.down or is_last else [on_bytes]
        places += [("self", top, top)] * self.middle
        for layer in range(self.decoder):
            places += [("up", 0, 1), on_bytes] if self.up or layer == 0 else [on_bytes]
        return places

    def sizes(self, tokens: int, patches: int) -> tuple[int, ...]:
        """The number of positions of every level."""
        return (tokens, patches * self.parts, patches)[: len(self.levels)]

    def spans(self, tokens: int, boundaries: NDArray[np.bool_] | None) -> tuple[Integers, ...]:
        """Per level, the bytes [start, end) of each position (positions, 2).

        boundaries (tokens,): the last bytes of patches; None: every byte.
        """
        starts = np.arange(tokens, dtype=np.int64)
        closes = np.ones(tokens, bool) if boundaries is None else np.array(boundaries, bool)
        closes[:1] = True
        ends = np.flatnonzero(closes) + 1
        patches = np.stack([np.concatenate([[0], ends])[: len(ends)], ends], axis=1)
        by_level = (np.stack([starts, starts + 1], axis=1), patches.repeat(self.parts, 0), patches)
        return tuple(readonly(spans, np.int64) for spans in by_level[: len(self.levels)])


@dataclass(slots=True)
class PatchBoundaries:
    """Where one pass ends the patches of its texts.

    net_config: the configuration in transformers. patcher: its module, None without one. fixed
    (B, n): boundaries to use in place of the patcher's. keep (B, n): False for padding. embedded
    (B, n, d): embeddings to use in place of those of the bytes. ends (B, n): the boundaries, None
    until they are known.
    """

    patches: Patches
    net_config: Any
    patcher: Any
    fixed: Tensor | None
    keep: Tensor | None
    embedded: Tensor | None
    ends: Tensor | None = None

    def patch_lengths(self, ids: Tensor, entropies: Tensor | None = None) -> Tensor:
        """Set `ends` and return the lengths (B, P) of the patches of ids (B, n).

        entropies (B, n): the patcher's, of the byte that follows each; None for no patcher.
        """
        if self.fixed is not None or entropies is None:
            closes = torch.ones_like(ids, dtype=torch.bool) if self.fixed is None else self.fixed
            closes = closes if self.keep is None else closes & self.keep
        else:
            closes, stops = torch.zeros_like(ids, dtype=torch.bool), [ids.shape[1]] * len(ids)
            if self.keep is not None:
                places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
                stops = (self.keep * places).amax(1).clamp(min=1).tolist()
            for row, stop in enumerate(stops):  # each text is cut as if it were alone
                ends = self._lengths_by_entropy(entropies[row, :stop]).cumsum(0)[:-1].long()
                closes[row, ends[(ends > 0) & (ends <= stop)] - 1] = True
        self.ends = closes.index_fill(1, torch.tensor([0], device=closes.device), True)
        return patch_lengths(self.ends)

    def sizes(self, with_open_patch: bool) -> tuple[int, ...]:
        """Positions per level; with_open_patch: counting the patch after the last boundary."""
        assert self.ends is not None
        closed = self.ends.sum(1)
        count = int(closed.max()) + 1 if with_open_patch else int(closed[0])
        return self.patches.sizes(self.ends.shape[1], count)

    def _lengths_by_entropy(self, entropies: Tensor) -> Tensor:
        """The lengths (P,) of the patches of one text with these entropies (n,)."""
        config, code = self.net_config, sys.modules[type(self.patcher).__module__]
        lengths = torch.ones_like(entropies, dtype=torch.long)[None]
        if config.patch_size is not None:
            lengths = self.patcher.patch_lengths_from_entropies(
                entropies[None], len(entropies), config.patch_size, config.patching_threshold
            )
        shortened: Tensor = code.process_patch_lengths(lengths, config.max_patch_length)[0]
        return shortened


def boundaries_of(net: Any, patches: Patches, tokens: Tokens) -> PatchBoundaries:
    """The boundaries of a pass over tokens, before any byte is read."""
    inputs = tokens.boundaries, tokens.keep, tokens.embedded
    return PatchBoundaries(patches, net.config, _patcher_of(net, patches), *inputs)


def patch_lengths(closes: Tensor) -> Tensor:
    """(B, P) The lengths of patches that these bytes (B, n) close, and of the open patch behind
    them. Texts with fewer patches end in patches of no byte."""
    place, length = closes.cumsum(1), closes.shape[1]
    shape = len(closes), int(place[:, -1].max()) + 2
    starts = closes.new_full(shape, length + 1, dtype=torch.long)
    starts[:, 0] = 0
    text, at = closes.nonzero(as_tuple=True)
    starts[text, place[text, at]] = at + 1
    return starts.diff(dim=1)


def install_boundaries(
    net: Any, patches: Patches, table: nn.Module, current: Callable[[], PatchBoundaries | None]
) -> None:
    """Make a model use the boundaries and embeddings of the pass that runs, current().

    table: the embeddings of bytes; the model adds those of hashes to what it returns.
    """

    def embed(module: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        boundaries = current()
        if boundaries is None or boundaries.embedded is None:
            return None
        return boundaries.embedded.clone()

    table.register_forward_hook(embed)
    if (patcher := _patcher_of(net, patches)) is None:
        return
    own_forward = patcher.forward

    def forward(ids: Tensor, **arguments: Any) -> Any:
        entropies, lengths, logits = own_forward(ids, **arguments)
        boundaries = current()
        if boundaries is not None:
            lengths = boundaries.patch_lengths(ids, entropies)
        return entropies, lengths, logits

    patcher.forward = forward


def _patcher_of(net: Any, patches: Patches) -> Any:
    return None if patches.patcher is None else getattr(net, "model", net).patcher
