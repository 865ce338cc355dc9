"""The cache that models of transformers are given where hgviz keeps keys and values itself."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import DynamicCache


class NewRows(DynamicCache):
    """Says that `length` tokens were read, and keeps nothing: whatever attends is given the keys
    and values of the new tokens alone (see LayerPast). Model code that keeps anything else in a
    cache, such as the states of a recurrence, finds no place for it, which is an error."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **more: Any
    ) -> tuple[Tensor, Tensor]:
        """The same."""
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many tokens were read."""
        return self.length

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """How many keys there are with those of so many queries, and the first of them."""
        return self.length + query_length, 0
