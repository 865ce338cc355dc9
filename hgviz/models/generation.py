"""A model that goes on with a text, token by token."""

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

CHOOSE = "Choose a model that was trained to say the next token, such as GPT-2"


class Writing:
    """A text under way: `logits` (vocabulary,) is what the model says comes next, `add` reads a
    token more.

    A model of transformers reads a token with its own cache of keys and values, in O(length) time,
    unless its first token there gives other logits than a pass over the whole text. All others
    read the whole text for every token.
    target: the decoder's text so far, where there are two; it is the one that grows.
    Raises HgvizError for models that cannot write, and for padding in the text to go on with.
    """

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        target: Prompt | None = None,
        off: HeadSet = frozenset(),
    ) -> None:
        require_writer(model)
        self.model, self.prompt, self.target, self.off = model, prompt, target, off
        self.given = prompt if target is None else target
        _require_no_padding(self.given)
        self.added: list[int] = []
        self._cache = Cache() if getattr(model.module, "can_cache", False) else None
        self.logits = self._of_text()

    def add(self, token: int) -> None:
        """Read one token more."""
        self.added.append(token)
        self.logits = self._of_text() if self._cache is None else self._of_token(token)

    def _of_text(self) -> NDArray[Any]:
        text = self._so_far
        logits = None if self._cache is None else self._cached(self.model.tokens(text))
        if logits is not None:
            return logits
        prompt, target = (text, None) if self.target is None else (self.prompt, text)
        found: NDArray[Any] = self.model.trace(prompt, target, off=self.off)[-1]
        return found

    def _of_token(self, token: int) -> NDArray[Any]:
        kinds = self.given.token_type_ids
        device = self.model.device
        one = Tokens(
            torch.tensor([[token]], device=device),
            segments=None if kinds is None else torch.tensor(kinds[None, -1:], device=device),
        )
        logits, cache = self._cached(one), self._cache
        if logits is not None and len(self.added) > 1:
            return logits
        self._cache = None
        whole = self._of_text()
        if logits is None or not _close(logits, whole, self.model.dtype):
            return whole
        self._cache = cache  # its model code does know of it
        return logits

    def _cached(self, tokens: Tokens) -> NDArray[Any] | None:
        """Logits after tokens that follow those in the cache; None, and no cache from now on, for
        a model that has none or fails with it."""
        assert self._cache is not None
        try:
            follows = replace(tokens, cache=self._cache)
            logits = self.model.logits(follows, Run(self.off))
        except (HgvizError, RuntimeError, ValueError, TypeError, IndexError, AttributeError):
            self._cache = None
            return None
        if self._cache.state is None:
            self._cache = None
        found: NDArray[Any] = logits[0, -1]
        return found

    @property
    def _so_far(self) -> Prompt:
        """What the model reads: after boundaries that were given, the model's own."""
        kinds = self.given.token_type_ids
        kinds = None if kinds is None else np.pad(kinds, (0, len(self.added)), "edge")
        text = self.model.from_ids([*self.given.ids, *self.added], token_type_ids=kinds)
        return self._segmented(text)

    def _segmented(self, text: Prompt) -> Prompt:
        if (ends := self.given.boundaries) is None:
            return text
        own = self.model.segmented(text, self.off).boundaries
        assert own is not None
        return replace(text, boundaries=readonly(np.concatenate([ends, own[len(ends) :]])))

    @property
    def room(self) -> int | None:
        """How many tokens more the model has positions for; None for as many as one likes."""
        most = self.model.spec.max_positions
        return None if most is None else most - len(self.given) - len(self.added)

    @property
    def text(self) -> Prompt:
        """The text so far, with its characters; boundaries where some were given."""
        return self._segmented(continue_prompt(self.model.tokenizer, self.given, self.added))


def _close(one: NDArray[Any], two: NDArray[Any], dtype: str) -> bool:
    """Whether logits agree in half of the digits that numbers of a dtype have."""
    scale = max(1.0, float(np.abs(two).max()))
    return bool(np.abs(one - two).max() <= torch.finfo(getattr(torch, dtype)).eps ** 0.5 * scale)


def chosen(logits: NDArray[Any], random: np.random.Generator | None, temperature: float) -> int:
    """The token to go on with: the likeliest, or drawn from softmax(logits / temperature).

    Errors: HgvizError for logits that are no numbers.
    """
    require(
        np.isfinite(logits.max()),
        "this model does not say what comes next: what it gives are no numbers",
        "Try --dtype float32, or another checkpoint",
    )
    if random is None:
        return int(logits.argmax())
    scaled = (logits.astype(np.float64) - logits.max()) / temperature
    sums = np.exp(scaled).cumsum()
    found = np.searchsorted(sums, random.random() * sums[-1], side="right")
    return int(min(found, np.searchsorted(sums, sums[-1])))  # a product may be rounded up


def require_writer(model: Model) -> None:
    """Errors: HgvizError for a model that does not say the next token."""
    config, goal = model.config, model.spec.goal
    if isinstance(config, TransformersConfig):
        why = "" if goal == "next" else "it does not give the next token"
        why = "it is a classifier: it gives classes and no tokens" if goal == "classes" else why
    elif not isinstance(config, TransformerConfig):
        why = (
            ""
            if getattr(config, "causal", False)
            else "it reads both ways, so that no token is the next"
        )
    elif config.slots:
        why = "projected sequences cannot write: every row of theirs mixes later tokens"
    elif goal == "classes":
        why = "it is a classifier: it gives classes and no tokens"
    elif config.form == "encoder":
        why = "it reads both ways, so that no token is the next"
    else:
        why = "" if goal == "next" else "it gives hidden states and no tokens"
    if why:
        raise HgvizError(f"this model cannot write: {why}", CHOOSE)


def _require_no_padding(prompt: Prompt) -> None:
    if prompt.attention_mask is not None and not prompt.attention_mask.all():
        raise HgvizError(
            "a text with padding cannot be gone on with: "
            f"{int((~prompt.attention_mask).sum()):,} of its tokens are masked",
            "Leave them and the attention_mask out",
        )
    if prompt.position_ids is not None:
        raise HgvizError(
            "a text with position_ids cannot be gone on with", "Leave the position_ids out"
        )


__all__ = ["Writing", "chosen", "require_writer"]
