"""What every head does over a corpus: of a capture of many texts, or of a model and a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hgviz.core import Capture, HeadSet, HgvizError, Prompt, progress
from hgviz.tasks.capturing import capture as capture_text
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.analysis.roles import CorpusRoles
    from hgviz.analysis.tokens import Lexicon
    from hgviz.models.data import Corpus
    from hgviz.models.model import Model


CACHE_NUMBERS = 1 << 26  # of captures that are cached for the second pass
CACHE_CAPTURES = 512
INDEX_CHARACTERS = 40  # the index of a corpus keeps at least so many of a text


def roles_of_capture(capture: Capture, alone: bool = False) -> CorpusRoles:
    """What every head does over all texts of the file that a capture is of, or on its own text.

    alone: only its own text, though there are others. What 256 MB do not hold is opened again for
    the second pass.
    """
    from hgviz.analysis.roles import corpus_roles

    if alone or len(capture.items) < 2:
        return corpus_roles(lambda number: capture, [capture.item])
    from hgviz.store import open_capture

    numbers = [one.number for one in capture.items]
    # a list of all texts in each of them would be a square of it
    opened = CaptureCache(lambda number: replace(open_capture(capture.path, number), items=()))
    progress(0, len(numbers), "reading the texts")
    return corpus_roles(opened, numbers, _lexicon(capture))


def roles_of_model(model: Model, corpus: Path_, off: HeadSet = frozenset()) -> CorpusRoles:
    """The same of a model on every text of a file; nothing is written.

    The model reads a text again for the second pass where 256 MB do not hold what it attended with.
    Errors: HgvizError for a file or a text that cannot be read, naming its line.
    """
    from hgviz.analysis.roles import corpus_roles
    from hgviz.analysis.tokens import Lexicon
    from hgviz.models.prompts import corpus_prompts, read_corpus_for

    progress(0, 1, "reading the texts")
    read = read_corpus_for(model, corpus)
    for number, one in enumerate(read.texts):
        prompt, target = corpus_prompts(model, read, number)
        if not len(prompt if target is None else target):
            raise HgvizError(f"{read.name}, line {one.line:,} has no tokens", "Take it out")
    numbers = range(len(read.texts))
    lexicon = Lexicon(one.text for one in read.texts) if len(numbers) > 1 else None
    opened = CaptureCache(partial(_captured, model, read, off))
    return corpus_roles(opened, numbers, lexicon)


def roles_of_text(
    model: Model, prompt: Prompt, target: Prompt | None = None, off: HeadSet = frozenset()
) -> CorpusRoles:
    """The same of a model on one text."""
    captured = capture_text(model, prompt, off=off, target=target, logits=False)
    return roles_of_capture(captured)


class CaptureCache:
    """Captures by number: the first, as many as 256 MB hold, are made once, others at each call."""

    def __init__(self, make: Callable[[int], Capture]) -> None:
        self._make, self._captures, self._room = make, dict[int, Capture](), CACHE_NUMBERS

    def __call__(self, number: int) -> Capture:
        if number in self._captures:
            return self._captures[number]
        capture = self._make(number)
        layers = len(capture.spec.layers)
        # queries and keys of every layer
        self._room -= 2 * layers * capture.spec.width * max(map(len, capture.spans))
        if self._room >= 0 and len(self._captures) < CACHE_CAPTURES:
            self._captures[number] = capture
        return capture


def _captured(model: Model, read: Corpus, off: HeadSet, number: int) -> Capture:
    from hgviz.models.prompts import corpus_prompts

    prompt, target = corpus_prompts(model, read, number)
    return capture_text(model, prompt, off=off, target=target, logits=False)


def _lexicon(capture: Capture) -> Lexicon:
    """How often words are used; the index keeps only the beginnings of long texts."""
    from hgviz.analysis.tokens import Lexicon
    from hgviz.store import open_capture

    longest = max(len(one.text) for one in capture.items)
    cut = [
        one.number
        for one in capture.items
        if len(one.text) == longest and longest >= INDEX_CHARACTERS
    ]
    whole = {number: _text(open_capture(capture.path, number)) for number in cut}
    return Lexicon(whole.get(one.number, one.text) for one in capture.items)


def _text(capture: Capture) -> str:
    return capture.prompt.text


__all__ = ["roles_of_capture", "roles_of_model", "roles_of_text"]
