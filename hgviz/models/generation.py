"""A model that goes on with a text: it reads what it has written, at one row of every layer a
token."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hgviz.core import HgvizError, Off, Prompt, readonly
from hgviz.maps.rule import Factors
from hgviz.models.config import TransformerConfig, TransformersConfig
from hgviz.models.dense import Weights
from hgviz.models.model import Model
from hgviz.models.past import NotIncremental, Past
from hgviz.models.texts.continuing import continued

CHOOSE = "Choose a model that was trained to say the next token, such as GPT-2"


class Writing:
    """A text under way: `read` gives the model what is there, `add` a token more; `logits`
    (vocabulary,) is what it then says comes next.

    A token costs O(length): keys and values of the tokens before it are kept. Its rows, and its
    logits, are those of a pass over the whole text but for the order in which sums are rounded.
    Where that is not known of a model of transformers, or the first token that is added proves
    otherwise, the whole text is read for every token.
    target: the decoder's text so far, where there are two; it is the one that grows.
    Errors: HgvizError for models that cannot write, and for padding in the text to go on with.
    """

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        target: Prompt | None = None,
        off: Off = frozenset(),
    ) -> None:
        require_writer(model)
        self.model, self.prompt, self.target, self.off = model, prompt, target, off
        self.given = prompt if target is None else target
        _require_no_padding(self.given)
        self.added: list[int] = []
        self.logits: NDArray[Any] = np.empty(0)
        self._past = Past()
        self._whole = not model.module.incremental
        self._proven = not isinstance(model.config, TransformersConfig)
        self._seen: dict[int, Factors | Weights] = {}
        self._ends: NDArray[np.bool_] | None = None

    def read(self) -> Generator[int, None, None]:
        """Read the text that is there; yields the index of each layer when it is done."""
        yield from self._follow(self.given)

    def add(self, token: int) -> None:
        """Read one token more."""
        kinds = self.given.token_type_ids
        one = Prompt("", readonly([token], np.int64), ("",), readonly([[-1, -1]], np.int64))
        one = one if kinds is None else replace(one, token_type_ids=readonly(kinds[-1:]))
        for _ in self._follow(one):
            pass
        self.added.append(token)

    def _follow(self, tokens: Prompt) -> Generator[int, None, None]:
        if not self._whole:
            try:
                yield from self._on(tokens)
            except NotIncremental:
                self._whole = True
        if self._whole:
            yield from self._again(tokens)

    def _on(self, tokens: Prompt) -> Generator[int, None, None]:
        logits = yield from self.model.trace(*self._texts(tokens), off=self.off, past=self._past)
        self._past.length += len(tokens)
        self.logits = logits[-1]
        if not self._proven and tokens is not self.given:
            whole = yield from self.model.trace(*self._texts(self._until(tokens)), off=self.off)
            if not _close(self.logits, whole[-1], self.model.dtype):
                raise NotIncremental
            self._proven = True

    def _again(self, tokens: Prompt) -> Generator[int, None, None]:
        text = self.model.segmented(self._until(tokens), self.off)
        seen = dict[int, Factors | Weights]()
        tap = seen.__setitem__
        logits = yield from self.model.trace(*self._texts(text), off=self.off, tap=tap)
        self._seen, self.logits, self._past.length = seen, logits[-1], len(text)
        self._ends = text.boundaries

    def _until(self, tokens: Prompt) -> Prompt:
        """The whole text with these tokens at its end; after given boundaries the model's own."""
        added = () if tokens is self.given else (*self.added, *tokens.ids)
        kinds = self.given.token_type_ids
        kinds = None if kinds is None else np.pad(kinds, (0, len(added)), "edge")
        text = self.model.from_ids([*self.given.ids, *added], token_type_ids=kinds)
        if (told := self.given.boundaries) is None:
            return text
        own = self.model.segmented(text, self.off).boundaries
        assert own is not None
        return replace(text, boundaries=readonly(np.concatenate([told, own[len(told) :]])))

    def _texts(self, text: Prompt) -> tuple[Prompt, Prompt | None]:
        return (text, None) if self.target is None else (self.prompt, text)

    @property
    def room(self) -> int | None:
        """How many tokens more the model has positions for; None for as many as one likes."""
        most = self.model.spec.max_positions
        return None if most is None else most - self._past.length

    @property
    def text(self) -> Prompt:
        """The text so far, with its characters; boundaries where some were given."""
        text = continued(self.model.tokenizer, self.given, self.added)
        return text if self.given.boundaries is None else self.segmented(text)

    def segmented(self, text: Prompt) -> Prompt:
        """The text so far with the boundaries between which it was read, where there are any."""
        if self._whole:
            return replace(text, boundaries=self._ends)
        ends = [one.cpu().numpy() for one in self._past.boundaries]
        return replace(text, boundaries=readonly(np.concatenate(ends))) if ends else text

    def factors(self, layer: int) -> Factors | Weights:
        """What a layer attended with so far, as views: rows that come change nothing in them."""
        return self._seen[layer] if self._whole else self._past.factors(layer)


def _close(one: NDArray[Any], two: NDArray[Any], dtype: str) -> bool:
    """Whether logits agree in half of the digits that numbers of a dtype have."""
    scale = max(1.0, float(np.abs(two).max()))
    return bool(np.abs(one - two).max() <= torch.finfo(getattr(torch, dtype)).eps ** 0.5 * scale)


def chosen(logits: NDArray[Any], random: np.random.Generator | None, temperature: float) -> int:
    """The token to go on with: the likeliest, or drawn from softmax(logits / temperature).

    Errors: HgvizError for logits that are no numbers.
    """
    if not np.isfinite(logits.max()):  # NaN is the largest of all
        raise HgvizError(
            "this model does not say what comes next",
            "what it gives are no numbers",
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
        why = "" if config.causal else "it reads both ways, so that no token is the next"
    elif config.slots:
        why = "projected sequences cannot write: every row of theirs mixes later tokens"
    elif goal == "classes":
        why = "it is a classifier: it gives classes and no tokens"
    elif config.form == "encoder":
        why = "it reads both ways, so that no token is the next"
    else:
        why = "" if goal == "next" else "it gives hidden states and no tokens"
    if why:
        raise HgvizError("this model cannot write", why, CHOOSE)


def _require_no_padding(prompt: Prompt) -> None:
    if prompt.attention_mask is not None and not prompt.attention_mask.all():
        raise HgvizError(
            "a text with padding cannot be gone on with",
            f"{int((~prompt.attention_mask).sum()):,} of its tokens are masked",
            "Leave them and the attention_mask out",
        )
    if prompt.position_ids is not None:
        raise HgvizError(
            "a text with position_ids cannot be gone on with", "", "Leave the position_ids out"
        )


__all__ = ["Writing", "chosen", "require_writer"]
