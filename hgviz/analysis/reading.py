"""What each token of a text is: its word, its sentence, a capital, a full stop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Integers, Prompt

Bools = NDArray[np.bool_]

_STOPS = frozenset(",.;:!?…،؛؟。、，！？；：")
_ENDS = frozenset(".!?…؟。！？")
_WIDE_ENDS = frozenset("。！？")  # end a sentence without a space behind them
_VOWELS = frozenset("aeiouyäöüáéíóúàèìòùâêîôûåøæœ")
_APOSTROPHES = frozenset("'’")
COMMON = 500  # words of a corpus: all others are rare (Voita et al. 2019)
_SPECIAL = re.compile(r"\[[A-Z]+\]|</?[a-z]+>|<\|[a-z]+\|>")


class Reading:
    """A prompt read as a person would; every array has one entry per token.

    unit: what an entry is called: "letter" where tokens are bytes or single characters, "token",
    "state" where an encoder's states are given, "slot" for the rows of a projected sequence, whose
    ids are -1. marker: special tokens such as [CLS] and [SEP], opening: those before the first
    word, separator: all others. end: the last token that is no padding. segment: which text of a
    pair it belongs to. word numbers the words from 0, -1 outside; word_first and word_end are the
    tokens first..end-1 of each token's word, spelling is equal for equal words (capitals apart),
    sentence_first is the first token of the sentence, same_before the newest earlier token of the
    same kind, grams[n] the kind of the last n tokens together; all -1 where there is none.
    lexicon: how often words are used, without it no word is rare.
    """

    def __init__(self, prompt: Prompt, lexicon: Lexicon | None = None) -> None:
        tokens = len(prompt)
        self.unit = prompt.unit
        named = self.unit in ("letter", "token")
        self.ids = np.where(named, np.asarray(prompt.ids, np.int64), -1)
        self.numbers = np.arange(tokens)
        self.real = prompt.attention_mask
        spans = np.asarray(prompt.spans, np.int64).reshape(-1, 2)
        text = prompt.text
        real = np.ones(tokens, bool) if self.real is None else self.real
        self.end = int(self.numbers[real].max(initial=-1))
        # ids without a text have no spans: there the names of the tokens must do
        special = spans[:, 0] < 0 if (spans[:, 0] >= 0).any() else _special(prompt.pieces)
        self.marker = special & real
        self.opening = self.marker & np.logical_and.accumulate(self.marker)
        self.separator = self.marker & ~self.opening
        kinds = prompt.token_type_ids
        self.segment = np.zeros(tokens, np.int64) if kinds is None else np.asarray(kinds, np.int64)
        # of a token such as " the" the first character that is no space decides
        leads = [_lead(text, int(a), int(b)) if a >= 0 else "" for a, b in spans]
        self.space = np.array([bool(one) and one.isspace() for one in leads], bool)
        self.stop = np.array([one in _STOPS for one in leads], bool)
        self.capital = np.array([one.isupper() for one in leads], bool)
        self.digit = np.array([one.isdigit() for one in leads], bool)
        self.vowel = np.array([one.lower() in _VOWELS for one in leads], bool)
        words, spellings, spelled = _words(text)
        self._rarest: dict[bool, tuple[Integers, Integers]] = {}
        self._uses = np.array([lexicon.uses(one) for one in spelled], float) if lexicon else None
        self.word = _first_within(words, spans)
        self._word_of = self.word.copy()
        self.spelling = np.append(spellings, -1)[self.word]
        self.word_first, self.word_end = _runs(self.word)
        self.starts_word = self.word_first == self.numbers
        # a token may hold many words, of which only the first is its own
        self.word = np.where(self.word >= 0, np.cumsum(self.starts_word) - 1, -1)
        opens = _first_within(_sentences(text), spans)
        self.starts_sentence = (opens >= 0) & (np.diff(opens, prepend=-1) != 0)
        self.sentence_first = self.last(self.starts_sentence)
        self.same_before = _same_before(self.ids)
        self.grams = {size: _grams(self.ids, size) for size in (1, 2, 3)}

    def rarest(self, causal: bool) -> tuple[Integers, Integers]:
        """For each token the tokens first..end-1 of the rarest word of its sentence; causal: up to
        and including its own word. -1 where none is rare."""
        if causal not in self._rarest:
            self._rarest[causal] = self._find_rarest(causal)
        return self._rarest[causal]

    def _find_rarest(self, causal: bool) -> tuple[Integers, Integers]:
        first, end = np.full((2, len(self.numbers)), -1, np.int64)
        if self._uses is None or not len(self.numbers):
            return first, end
        sentence, rarest, fewest = -2, -1, np.inf
        best: dict[int, int] = {}  # by sentence
        for token, word in enumerate(self._word_of):
            if self.sentence_first[token] != sentence:
                sentence, rarest, fewest = int(self.sentence_first[token]), -1, np.inf
            if word >= 0 and self._uses[word] < fewest:
                rarest, fewest = token, float(self._uses[word])
            best[sentence] = rarest
            if causal and rarest >= 0:
                first[token], end[token] = self.word_first[rarest], self.word_end[rarest]
        if not causal:
            chosen = np.array([best[int(one)] for one in self.sentence_first], np.int64)
            first = np.where(chosen >= 0, self.word_first[chosen], -1)
            end = np.where(chosen >= 0, self.word_end[chosen], -1)
        return first, end

    def last(self, members: Bools) -> Integers:
        """For each token the newest member up to and including it, -1 where there is none."""
        return np.maximum.accumulate(np.where(members, self.numbers, -1), dtype=np.int64)


class Lexicon:
    """How often each word is used in a corpus, capitals apart; the most frequent are common."""

    def __init__(self, texts: Iterable[str], common: int = COMMON) -> None:
        self._counts: Counter[str] = Counter()
        for text in texts:
            self._counts.update(_words(text)[2])
        self._common = {word for word, _ in self._counts.most_common(common)}

    @property
    def rare(self) -> int:
        """How many different words are rare."""
        return len(self._counts) - len(self._common)

    def uses(self, word: str) -> float:
        """How often a word is used, infinity for a common one."""
        return float("inf") if word in self._common else float(self._counts[word])


def _special(pieces: tuple[str, ...]) -> Bools:
    return np.array([_SPECIAL.fullmatch(piece) is not None for piece in pieces], bool)


def _same_before(ids: Integers) -> Integers:
    order = np.argsort(ids, kind="stable")
    found = np.full(len(order), -1, np.int64)
    again = ids[order[1:]] == ids[order[:-1]]
    found[order[1:][again]] = order[:-1][again]
    return found


def _grams(ids: Integers, size: int) -> Integers:
    found = np.full(len(ids), -1, np.int64)
    if len(ids) >= size:
        windows = np.lib.stride_tricks.sliding_window_view(ids, size)
        found[size - 1 :] = np.unique(windows, axis=0, return_inverse=True)[1].ravel()
    return found


def _lead(text: str, start: int, end: int) -> str:
    return (text[start:end].lstrip() or text[start:end])[:1]


def _words(text: str) -> tuple[Integers, Integers, list[str]]:
    """For each character the number of its word or -1; for each word a number of its spelling, and
    the spelling."""
    numbers = np.full(len(text), -1, np.int64)
    starts: list[int] = []
    ends: list[int] = []
    inside = False
    for at, one in enumerate(text):
        joined = one in _APOSTROPHES and inside and text[at + 1 : at + 2].isalnum()
        if one.isalnum() or joined:
            if not inside:
                starts.append(at)
                ends.append(at)
            ends[-1] = at + 1
            numbers[at] = len(starts) - 1
        inside = one.isalnum() or joined
    known: dict[str, int] = {}
    spelled = [text[start:end].lower() for start, end in zip(starts, ends, strict=True)]
    kinds = [known.setdefault(one, len(known)) for one in spelled]
    return numbers, np.array(kinds, np.int64), spelled


def _sentences(text: str) -> Integers:
    """For each character the number of its sentence, -1 for the spaces before a sentence."""
    numbers = np.full(len(text), -1, np.int64)
    count, fresh = -1, True
    for at, one in enumerate(text):
        if fresh and one.isalnum():
            count, fresh = count + 1, False
        if not fresh:
            numbers[at] = count
        fresh = fresh or one == "\n" or (one in _ENDS and _ends(text, at))
    return numbers


def _ends(text: str, at: int) -> bool:
    rest = text[at + 1 : at + 40]
    behind = rest.lstrip()
    apart = text[at] in _WIDE_ENDS or not rest or rest[0].isspace()
    return apart and not behind[:1].islower()


def _first_within(numbers: Integers, spans: Integers) -> Integers:
    """The first number >= 0 among the characters of each token, -1 where there is none."""
    found = np.full(len(spans), -1, np.int64)
    for token, (start, end) in enumerate(spans):
        inside = numbers[start:end] if start >= 0 else numbers[:0]
        chosen = inside[inside >= 0]
        if len(chosen):
            found[token] = chosen[0]
    return found


def _runs(numbers: Integers) -> tuple[Integers, Integers]:
    """First token and end of the run of equal numbers around each token, -1 outside."""
    first, end = np.full(len(numbers), -1, np.int64), np.full(len(numbers), -1, np.int64)
    edges = np.flatnonzero(np.diff(numbers, prepend=-2, append=-2))
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        if numbers[a] >= 0:
            first[a:b], end[a:b] = a, b
    return first, end
