"""A model that continues a text, token by token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hgviz.core import HeadSet, HgvizError, Prompt, readonly
from hgviz.errors import require
from hgviz.models.layers import Cache, Tokens
from hgviz.models.model import Model
from hgviz.models.pretrained_config import TransformersConfig
from hgviz.models.run import Run
from hgviz.models.text import continue_prompt
from hgviz.models.transformer import TransformerConfig


class Writing:
    """A text under way: `logits` (vocabulary,) are of the next token, `add` reads one more.

    A model of transformers reads a token with its own cache of keys and values, in O(length) time,
    one of linear attention with the states of its layers, in O(1), unless its first token there
    gives other logits than a pass over the whole text. All others read the whole text for every
    token. target: the decoder's text so far, where there are two; it
    is the one that grows. Raises HgvizError for models that cannot write, and for padding.
    """

    def __init__(
        self, model: Model, prompt: Prompt, target: Prompt | None = None, off: HeadSet = frozenset()
    ) -> None:
        require_writer(model)
        self.model, self.prompt, self.target, self.off = model, prompt, target, off
        self.start = _without_end(model, prompt if target is None else target)
        mask = self.start.attention_mask
        masked = 0 if mask is None else int((~mask).sum())
        require(
            not masked,
            f"a text with padding cannot be continued: {masked:,} of its tokens are masked",
            "Remove them and the attention_mask",
        )
        what = "a text with position_ids cannot be continued"
        require(self.start.position_ids is None, what, "Remove the position_ids")
        self.added: list[int] = []
        self._cache = Cache() if getattr(model.module, "can_cache", False) else None
        self.logits = self._read_text()

    def add(self, token: int) -> None:
        """Read one token more."""
        self.added.append(token)
        self.logits = self._read_text() if self._cache is None else self._read_token(token)

    @property
    def room(self) -> int | None:
        """How many tokens more the model has positions for; None for no limit."""
        limit = self.model.spec.max_positions
        return None if limit is None else limit - len(self.start) - len(self.added)

    @property
    def text(self) -> Prompt:
        """The text so far, with its characters; boundaries where the start has some."""
        return self._with_boundaries(continue_prompt(self.model.tokenizer, self.start, self.added))

    def _read_text(self) -> NDArray[Any]:
        """Logits after all of the text so far."""
        kinds = self.start.token_type_ids
        kinds = None if kinds is None else np.pad(kinds, (0, len(self.added)), "edge")
        ids = [*self.start.ids, *self.added]
        text = self._with_boundaries(self.model.from_ids(ids, token_type_ids=kinds))
        logits = None if self._cache is None else self._read_cached(self.model.tokens(text))
        if logits is not None:
            return logits
        prompt, target = (text, None) if self.target is None else (self.prompt, text)
        last: NDArray[Any] = self.model.trace(prompt, target, off=self.off)[-1]
        return last

    def _read_token(self, token: int) -> NDArray[Any]:
        """Logits after one token more, with the cache; a pass over all proves the first."""
        kinds, device, cache = self.start.token_type_ids, self.model.device, self._cache
        segments = None if kinds is None else torch.tensor(kinds[None, -1:], device=device)
        tokens = Tokens(torch.tensor([[token]], device=device), segments=segments)
        logits, cache = self._read_cached(tokens), self._cache
        if logits is not None and len(self.added) > 1:
            return logits
        self._cache = None
        expected = self._read_text()
        if logits is None:
            return expected
        # logits agree where half of the digits do that numbers of the dtype have
        share = torch.finfo(getattr(torch, self.model.dtype)).eps ** 0.5
        if np.abs(logits - expected).max() > share * max(1.0, float(np.abs(expected).max())):
            return expected
        self._cache = cache  # its model code does know of it
        return logits

    def _read_cached(self, tokens: Tokens) -> NDArray[Any] | None:
        """Logits after tokens that follow those in the cache.

        None, and no cache from now on, for a model that has none or fails with it.
        """
        assert self._cache is not None
        try:
            logits = self.model.logits(replace(tokens, cache=self._cache), Run(self.off))
        except (HgvizError, RuntimeError, ValueError, TypeError, IndexError, AttributeError):
            self._cache = None
            return None
        if self._cache.state is None:
            self._cache = None
        last: NDArray[Any] = logits[0, -1]
        return last

    def _with_boundaries(self, text: Prompt) -> Prompt:
        """The text with the boundaries of the start, and the model's own after them."""
        if (ends := self.start.boundaries) is None:
            return text
        own = self.model.add_boundaries(text, self.off).boundaries
        assert own is not None
        return replace(text, boundaries=readonly(np.concatenate([ends, own[len(ends) :]])))


def _without_end(model: Model, text: Prompt) -> Prompt:
    """A text without the end token that the model's tokenizer adds to every text, as T5's does."""
    last = int(text.ids[-1])
    if last not in model.ends or not text.text:
        return text
    ends_itself = model.tokenizer.encode(text.text).ids[-1] != last
    return text if ends_itself else text.first(len(text) - 1)


def choose_token(
    logits: NDArray[Any], random: np.random.Generator | None, temperature: float
) -> int:
    """The next token: the likeliest, or drawn from softmax(logits / temperature).

    Raises HgvizError for logits that are no numbers.
    """
    require(
        np.isfinite(logits.max()),
        "the next token cannot be chosen: the logits are NaN or infinite",
        "Try --dtype float32, or another checkpoint",
    )
    if random is None:
        return int(logits.argmax())
    scaled = (logits.astype(np.float64) - logits.max()) / temperature
    sums = np.exp(scaled).cumsum()
    token = np.searchsorted(sums, random.random() * sums[-1], side="right")
    return int(min(token, np.searchsorted(sums, sums[-1])))  # a product may be rounded up


def require_writer(model: Model) -> None:
    """Raise HgvizError for a model that does not predict the next token."""
    config, goal = model.config, model.spec.goal
    is_own = isinstance(config, TransformerConfig)
    both_ways = "it is bidirectional"
    classifier = "it is a classifier, which outputs classes, not tokens"
    why = ""
    if not is_own and not isinstance(config, TransformersConfig):
        why = "" if getattr(config, "causal", False) else both_ways
    elif isinstance(config, TransformerConfig) and config.slots:
        why = "each row of a projected sequence mixes in later tokens"
    elif goal == "classes":
        why = classifier
    elif is_own and config.form == "encoder":
        why = both_ways
    elif goal != "next":
        why = "it outputs hidden states" if is_own else "it does not predict the next token"
    do = "Choose a model trained to predict the next token, such as GPT-2"
    require(not why, f"this model cannot generate text: {why}", do)
