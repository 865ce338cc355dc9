"""What the model says of the text in the end: a class, the next token, a masked token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hgviz import tasks
from hgviz.core import Capture, Prompt
from hgviz.gui.language import tr
from hgviz.gui.sentences import shown
from hgviz.gui.views import words

if TYPE_CHECKING:
    from hgviz.models.model import Model

MOST = 4  # answers that are listed
COMPARED = 8  # tokens of a capture that a tokenizer has to read in the same way
BLANKS = {" ": "space", "\n": "line end", "\t": "tab"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The likeliest answers, with their shares, and what they answer; goal as ModelSpec's."""

    goal: str
    answers: tuple[tuple[str, float], ...] = ()

    def sentence(self) -> str:
        """Such as "positive 97 %"; "" where there is nothing to say."""
        return f"{self.answers[0][0]} {words.share(self.answers[0][1])}" if self.answers else ""

    def question(self, noun: str) -> str:
        """What the answers answer, before a list of them."""
        if self.goal == "classes":
            return tr("The model says:")
        if self.goal == "tags":
            return tr("This {unit} is:", unit=tr(noun))
        if self.goal == "masked":
            return tr("In place of this {unit} it expects:", unit=tr(noun))
        return tr("Next {unit} it expects:", unit=tr(noun))


def of_text(capture: Capture) -> Verdict:
    """The classes of a classifier, the likeliest first; nothing for other models."""
    goal = capture.spec.goal
    if goal != "classes" or capture.logits is None or np.ndim(capture.logits) != 1:
        return Verdict(goal)
    labels = capture.spec.labels
    odds = shares(capture.logits)
    best = np.argsort(-odds, kind="stable")[:MOST]
    named = (labels[one] if one < len(labels) else tr("class {number}", number=one) for one in best)
    return Verdict(goal, tuple(zip(named, map(float, odds[best]), strict=True)))


def of_token(capture: Capture, token: int, name_of: Callable[[int], str]) -> Verdict:
    """What is expected after a token, or in its place; of a classifier, its classes."""
    goal, logits = capture.spec.goal, capture.logits
    if goal == "classes":
        return of_text(capture)
    if goal in ("states", "ends") or logits is None or np.ndim(logits) != 2 or token >= len(logits):
        return Verdict(goal)
    odds = shares(logits[token])
    best = np.argsort(-odds, kind="stable")[:MOST]
    labels = capture.spec.labels
    if goal == "tags" and len(labels) == len(odds):
        name_of = labels.__getitem__
    return Verdict(goal, tuple((name_of(int(one)), float(odds[one])) for one in best))


def shares(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Softmax of some logits, in float64."""
    scores = np.asarray(logits, np.float64)
    odds = np.exp(scores - scores.max())
    found: NDArray[np.float64] = odds / odds.sum()
    return found


def namer(capture: Capture, model: Model | None = None) -> Callable[[int], str]:
    """How a token of the vocabulary is called: as the text has it, as a byte, or as the tokenizer
    of its model has it."""
    prompts = [one for one in (capture.prompt, capture.target) if one is not None]
    known = {int(i): p.label(n) for p in prompts if p.states is None for n, i in enumerate(p.ids)}
    by_byte = capture.spec.vocabulary <= 256 and _of_bytes(capture.main)

    def name_of(token: int) -> str:
        text = known.get(token, chr(token) if by_byte and token < 128 else "")
        text = text or ("" if by_byte else spoken(capture, model, token))
        if text in BLANKS:
            return tr(BLANKS[text])
        byte = tr("byte {number}", number=token) if by_byte else f"#{token}"
        return shown(text, 12) or byte

    return name_of


def spoken(capture: Capture, model: Model | None, token: int) -> str:
    """What a token reads by the tokenizer of a model, "" without one that reads as the capture
    does."""
    ids = capture.main.ids[:COMPARED]
    if model is None or model.tokenizer.decode(ids).pieces != capture.main.pieces[:COMPARED]:
        return ""
    text = tasks.said_by(model, token)
    return "" if text == str(token) else text


def _of_bytes(prompt: Prompt) -> bool:
    """Whether the ids of a text are its bytes: another small vocabulary counts otherwise."""
    letters = ((n, int(one)) for n, one in enumerate(prompt.ids) if one < 128)
    return prompt.unit == "letter" and all(prompt.label(n) == chr(one) for n, one in letters)
