"""Where a checkpoint's files keep each tensor: what is needed to read it, and to write it back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file keeps a neutral tensor: its name, which of how many blocks of rows of it, and
    whether it lies transposed there."""

    name: str
    part: int = 0
    parts: int = 1
    turned: bool = False

    def shape(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the whole tensor in the file."""
        whole = (self.parts * wanted[0], *wanted[1:])
        return whole[::-1] if self.turned else whole

    def take(self, tensor: Tensor) -> Tensor:
        """The neutral tensor out of the file's."""
        whole = tensor.T if self.turned else tensor
        return whole if not whole.dim() else whole.chunk(self.parts)[self.part].contiguous()

    def put(self, tensor: Tensor, new: Tensor) -> Tensor:
        """The file's tensor with another neutral tensor in it."""
        whole = tensor.T if self.turned else tensor
        if not whole.dim():
            return new.to(tensor.dtype)
        blocks = [*whole.chunk(self.parts)]
        blocks[self.part] = new.to(tensor.dtype)
        found = blocks[0] if self.parts == 1 else torch.cat(blocks)
        return (found.T if self.turned else found).contiguous()
