"""What the tokens of a text are, and which tokens the rows and columns of a map stand for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, Integers, Prompt

Bools = NDArray[np.bool_]

_STOPS = frozenset(",.;:!?…،؛؟。、，！？；：")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# wide stops end a sentence without a space after them
_SENTENCE_END = re.compile(r"[.!?…؟](?=\s|\Z)|[。！？]|\n")
_VOWELS = frozenset("aeiouyäöüáéíóúàèìòùâêîôûåøæœ")
_SPECIAL = re.compile(r"\[[A-Z]+\]|</?[a-z]+>|<\|[a-z]+\|>")
COMMON_WORDS = 500  # of a corpus; all others are rare (Voita et al. 2019)

# --- tokens of a text -----------------------------------------------------------------------------


class TokenReading:
    """The tokens of a prompt with their words and sentences; every array has one entry per token.

    Indices are -1 where there is no such token.

    Attributes:
        unit: "token", "state" for the states of an encoder, "slot" for the rows of a projected
            sequence; has_characters: whether each is a byte or a single character of a text.
        ids: token ids, -1 for slots and states.
        real: the attention mask of the prompt, or None.
        end: the last token that is no padding.
        special: special tokens such as [CLS] and [SEP]; opening are those before the first word,
            separator all others.
        segment: which text of a pair a token belongs to.
        word: number of the word; word_first and word_end are its tokens first..end-1, spelling is
            equal for equal words, whatever their capitals.
        sentence_first: the first token of the sentence.
        same_before: the newest earlier token with the same id.
        grams: by size 1 to 3, a number for the last `size` tokens together.
    """

    def __init__(self, prompt: Prompt, lexicon: Lexicon | None = None) -> None:
        """Read a prompt; without a lexicon no word is rare."""
        count, text = len(prompt), prompt.text
        self.unit = prompt.unit
        self.has_characters = prompt.has_characters
        self.ids = np.where(self.unit == "token", np.asarray(prompt.ids, np.int64), -1)
        self.index = np.arange(count)
        self.real = prompt.attention_mask
        real = np.ones(count, bool) if self.real is None else self.real
        self.end = int(self.index[real].max(initial=-1))
        spans = np.asarray(prompt.spans, np.int64).reshape(-1, 2)
        is_special = spans[:, 0] < 0
        if is_special.all():  # ids without a text: only the names of the tokens tell
            names = [_SPECIAL.fullmatch(piece) is not None for piece in prompt.pieces]
            is_special = np.array(names, bool)
        self.special = is_special & real
        self.opening = self.special & np.logical_and.accumulate(self.special)
        self.separator = self.special & ~self.opening
        kinds = prompt.token_type_ids
        self.segment = np.zeros(count, np.int64) if kinds is None else np.asarray(kinds, np.int64)
        # of a token such as " the" the first character that is no space decides
        pieces = [text[start:end] if start >= 0 else "" for start, end in spans]
        characters = [(piece.lstrip() or piece)[:1] for piece in pieces]
        self.is_space = np.array([char.isspace() for char in characters], bool)
        self.is_stop = np.array([char in _STOPS for char in characters], bool)
        self.is_capital = np.array([char.isupper() for char in characters], bool)
        self.is_digit = np.array([char.isdigit() for char in characters], bool)
        self.is_vowel = np.array([char.lower() in _VOWELS for char in characters], bool)
        word_of_character, words = _words(text)
        numbers: dict[str, int] = {}
        spellings = [numbers.setdefault(word, len(numbers)) for word in words]
        word = _first_within(word_of_character, spans)
        self.spelling = np.append(np.array(spellings, np.int64), -1)[word]
        self.word_first, self.word_end = _runs(word)
        self.starts_word = self.word_first == self.index
        # a token may hold several words, of which only the first is its own
        self.word = np.where(word >= 0, np.cumsum(self.starts_word) - 1, -1)
        sentence = _first_within(_sentence_numbers(text), spans)
        self.starts_sentence = (sentence >= 0) & (np.diff(sentence, prepend=-1) != 0)
        self.sentence_first = self.newest(self.starts_sentence)
        self.same_before = _same_before(self.ids)
        self.grams = {size: _grams(self.ids, size) for size in (1, 2, 3)}
        self._uses: NDArray[np.float64] | None = None
        if lexicon is not None:  # of the word of each token
            uses = [*(lexicon.uses(word) for word in words), np.inf]
            self._uses = np.array(uses, float)[word]
        self._rarest: dict[bool, tuple[Integers, Integers]] = {}

    def newest(self, members: Bools) -> Integers:
        """For each token the newest member up to and including it."""
        return np.maximum.accumulate(np.where(members, self.index, -1), dtype=np.int64)

    def rarest_word(self, causal: bool) -> tuple[Integers, Integers]:
        """For each token the tokens first..end-1 of the rarest word of its sentence, the earliest
        of several; causal: of its words so far."""
        if causal not in self._rarest:
            chosen = np.full(len(self.index), -1, np.int64)
            if self._uses is not None:
                for tokens in np.split(
                    self.index, np.flatnonzero(np.diff(self.sentence_first)) + 1
                ):
                    lowest = np.minimum.accumulate(self._uses[tokens])
                    is_lower = lowest < np.concatenate([[np.inf], lowest[:-1]])[: len(lowest)]
                    rarest = np.maximum.accumulate(np.where(is_lower, tokens, -1))
                    chosen[tokens] = rarest if causal else rarest[-1:]
            first, end = self.word_first[chosen], self.word_end[chosen]
            has_word = chosen >= 0
            self._rarest[causal] = np.where(has_word, first, -1), np.where(has_word, end, -1)
        return self._rarest[causal]


class Lexicon:
    """How often each word is used in a corpus, capitals ignored; the most frequent are common."""

    def __init__(self, texts: Iterable[str], common: int = COMMON_WORDS) -> None:
        self._counts: Counter[str] = Counter()
        for text in texts:
            self._counts.update(_words(text)[1])
        self._common = {word for word, _ in self._counts.most_common(common)}

    @property
    def rare(self) -> int:
        """The number of different words that are rare."""
        return len(self._counts) - len(self._common)

    def uses(self, word: str) -> float:
        """How often a word is used, infinity for a common one."""
        return float("inf") if word in self._common else float(self._counts[word])


def _same_before(ids: Integers) -> Integers:
    order = np.argsort(ids, kind="stable")
    before = np.full(len(order), -1, np.int64)
    is_same = ids[order[1:]] == ids[order[:-1]]
    before[order[1:][is_same]] = order[:-1][is_same]
    return before


def _grams(ids: Integers, size: int) -> Integers:
    numbers = np.full(len(ids), -1, np.int64)
    if len(ids) >= size:
        windows = np.lib.stride_tricks.sliding_window_view(ids, size)
        numbers[size - 1 :] = np.unique(windows, axis=0, return_inverse=True)[1].ravel()
    return numbers


def _words(text: str) -> tuple[Integers, list[str]]:
    """For each character the number of its word or -1, and the words in lower case."""
    numbers, words = np.full(len(text), -1, np.int64), list[str]()
    for match in _WORD.finditer(text):
        numbers[slice(*match.span())] = len(words)
        words.append(match.group().lower())
    return numbers, words


def _sentence_numbers(text: str) -> Integers:
    """For each character the number of its sentence, -1 for what stands between sentences."""
    numbers = np.full(len(text), -1, np.int64)
    ends = [
        match.end() for match in _SENTENCE_END.finditer(text)
        # a small letter goes on with the sentence, as after an abbreviation
        if match.group() == "\n" or not text[match.end() : match.end() + 39].lstrip()[:1].islower()
    ]  # fmt: skip
    start = count = 0
    for end in [*ends, len(text)]:
        if first := _WORD.search(text, start, end):
            numbers[first.start() : end] = count
            count += 1
        start = end
    return numbers


def _first_within(numbers: Integers, spans: Integers) -> Integers:
    """The first number >= 0 among the characters of each token."""
    first = np.full(len(spans), -1, np.int64)
    for token, (start, end) in enumerate(spans):
        inside = numbers[start:end] if start >= 0 else numbers[:0]
        inside = inside[inside >= 0]
        if len(inside):
            first[token] = inside[0]
    return first


def _runs(numbers: Integers) -> tuple[Integers, Integers]:
    """First token and end of the run of equal numbers around each token."""
    first, end = np.full((2, len(numbers)), -1, np.int64)
    edges = np.flatnonzero(np.diff(numbers, prepend=-2, append=-2))
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        if numbers[a] >= 0:
            first[a:b], end[a:b] = a, b
    return first, end


# --- rows and columns of a map --------------------------------------------------------------------


class Layout:
    """The rows and columns of a layer's maps and the tokens that they stand for.

    Attributes:
        query, key: (rows, 2) and (columns, 2) half-open spans of tokens, (-1, -1) for padding.
        newest_token: (rows,) the newest token of each row.
        own_column: (rows,) the newest column of the row's own tokens.
        step: columns per row of a layer that shortens, 1 everywhere else.
        query_tokens, key_tokens: the texts of the rows and of the columns; is_cross where these
            are not the same.
        stride: tokens per row, None where segments differ in length.
        segments: the role of a layer between tokens and segments of unequal length, or "";
            parts: columns for each segment.
    """

    def __init__(self, capture: Capture, layer: int, readings: dict[str, TokenReading]) -> None:
        """Lay out a layer; readings, by sequence, are reused and added to."""
        spec = capture.spec.layers[layer]
        rows, columns = (capture.spec.levels[level] for level in (spec.level, spec.key_level))
        for level in (rows, columns):
            if level.sequence not in readings:
                readings[level.sequence] = TokenReading(capture.prompt_of(level.index))
        self.layer = layer
        self.query_tokens, self.key_tokens = readings[rows.sequence], readings[columns.sequence]
        self.is_cross = self.query_tokens is not self.key_tokens
        self.role, self.causal, self.window = spec.role, spec.causal, spec.window
        self.query, self.key = capture.query_spans(layer), capture.key_spans(layer)
        self.newest_token = np.maximum(self.query[:, 1] - 1, 0)
        is_down = spec.role == "down"
        self.step = (rows.stride or 1) // (columns.stride or 1) if is_down else 1
        self.stride, self.parts = rows.stride, columns.parts
        is_uneven = None in (rows.stride, columns.stride)
        self.segments = spec.role if is_uneven and spec.role in ("down", "up") else ""
        if spec.role == "self":
            self.own_column = np.arange(len(self.query))
        else:
            own = [capture.column(layer, int(token)) for token in self.newest_token]
            self.own_column = np.array(own, np.int64)

    @property
    def real(self) -> Bools:
        """(rows,) True for the rows that stand for a token that is no padding."""
        real: Bools = self.query[:, 0] >= 0
        mask = self.query_tokens.real
        return real if mask is None else real & mask[self.newest_token]

    def block(self, rows: slice, columns: slice) -> Block:
        """A rectangle of the map."""
        return Block(self, rows, columns)


class Block:
    """A rectangle of a layer's maps; methods return bool (rows, columns): the keys of a kind.

    seen: the cells that exist and stand for tokens.
    """

    def __init__(self, layout: Layout, rows: slice, columns: slice) -> None:
        self.layout = layout
        self.query_tokens, self.key_tokens = layout.query_tokens, layout.key_tokens
        self.rows, self.columns = (np.arange(part.start, part.stop) for part in (rows, columns))
        self.query, self.key = layout.query[rows], layout.key[columns]
        self.newest_token, self.own_column = layout.newest_token[rows], layout.own_column[rows]
        exists = self.key[:, 0] >= 0
        if self.key_tokens.real is not None:
            exists &= self._contains(self.key_tokens.real)
        seen = np.broadcast_to(exists, (len(self.rows), len(exists)))
        if layout.causal:
            seen = seen & (self.key[:, 1] <= self.query[:, 1:])
        if layout.window and layout.role == "down":
            seen = seen & (self.columns // layout.window == self.rows[:, None])
        if layout.window and layout.role == "up":
            seen = seen & (self.columns == self.rows[:, None] // layout.window)
        if layout.segments == "down":  # each segment sees its own tokens
            seen = seen & (self.key[:, 0] >= self.query[:, :1])
        if layout.segments == "up":  # each token sees the last segment that has ended
            own = self.own_column[:, None] // layout.parts
            seen = seen & (self.columns // layout.parts == own)
        self.seen: Bools = seen

    @property
    def special(self) -> Bools:
        """(columns,) the keys that stand for a special token."""
        return self._contains(self.key_tokens.special)

    @property
    def distance(self) -> Floats:
        """float32 (rows, columns): tokens between the newest of the query and of the key."""
        return np.abs(np.subtract(self.query[:, 1:], self.key[:, 1], dtype=np.float32))

    @property
    def earlier(self) -> Bools:
        """Keys that end before the query begins."""
        return self.key[:, 1] <= self.query[:, :1]

    def before(self, first: int, last: int | None = None) -> Bools:
        """Positions `first` to `last` rows before the query's own."""
        offset, step = self.own_column[:, None] - self.columns, self.layout.step
        last = first if last is None else last
        return (offset >= first * step) & (offset < (last + 1) * step)

    def same_place(self) -> Bools:
        """Keys as far through their text as the query is through its own."""
        rows, columns = len(self.layout.query), len(self.layout.key)
        first, end = self.rows * columns // rows, -(-(self.rows + 1) * columns // rows)
        return (self.columns >= first[:, None]) & (self.columns < end[:, None])

    def other_text(self) -> Bools:
        """Keys of the other text of a pair."""
        segment = self.key_tokens.segment
        if segment.min(initial=0) == segment.max(initial=0):
            return np.zeros(self.seen.shape, bool)
        own = segment[self.newest_token][:, None]
        return np.not_equal(segment[np.maximum(self.key[:, 1] - 1, 0)], own)

    def newest_of_group(self) -> Bools:
        """The newest column of the query's own tokens."""
        return np.equal(self.columns, self.own_column[:, None])

    def oldest_of_group(self) -> Bools:
        """The oldest column of the query's own tokens."""
        if self.layout.segments:
            return np.equal(self.key[:, 0], self.query[:, :1])
        return np.equal(self.columns, self.own_column[:, None] - (self.layout.step - 1))

    def has_token(self, tokens: Integers) -> Bools:
        """Keys that contain the token tokens[t], t the newest token of the query."""
        token = tokens[self.newest_token][:, None]
        return (self.key[:, 0] <= token) & (token < self.key[:, 1])

    def has_token_between(self, first: Integers, end: Integers) -> Bools:
        """Keys that contain one of the tokens first[t] .. end[t] - 1."""
        a, b = first[self.newest_token][:, None], end[self.newest_token][:, None]
        return (self.key[:, 0] < b) & (self.key[:, 1] > a) & (a >= 0)

    def with_member(self, members: Bools) -> Bools:
        """Keys that contain a token of a kind, whatever the query."""
        return np.broadcast_to(self._contains(members), self.seen.shape)

    def with_second_member(self, members: Callable[[TokenReading], Bools]) -> Bools:
        """Keys that contain the first, third, fifth ... member of the text."""
        tokens = members(self.key_tokens)
        return self.with_member(tokens & (np.cumsum(tokens) % 2 == 1))

    def _contains(self, members: Bools) -> Bools:
        sums = np.concatenate([[0], np.cumsum(members)])
        return sums[np.maximum(self.key[:, 1], 0)] > sums[np.maximum(self.key[:, 0], 0)]

    def matching(self, kinds: Integers, wanted: Integers) -> Bools:
        """Keys that contain a token whose kind is wanted[t]; kind -1 matches nothing."""
        kind = wanted[self.newest_token][:, None]
        matches = np.zeros(self.seen.shape, bool)
        width = int((self.key[:, 1] - self.key[:, 0]).max(initial=0))
        for offset in range(width):
            token = self.key[:, 0] + offset
            exists = (self.key[:, 0] >= 0) & (token < self.key[:, 1])
            matches |= np.where(exists, kinds[np.where(exists, token, 0)], -1) == kind
        return matches & (kind >= 0)

    def same_token(self) -> Bools:
        """Keys that contain the query's newest token, itself among them."""
        return self.matching(self.key_tokens.ids, self.query_tokens.ids)

    def after_same(self, size: int) -> Bools:
        """Earlier keys that follow an earlier occurrence of the last `size` tokens."""
        grams = self.key_tokens.grams[size]
        return self.matching(np.concatenate([[-1], grams[:-1]]), grams) & self.earlier

    def same_word(self) -> Bools:
        """The same word wherever it stood before."""
        spelling = self.key_tokens.spelling
        is_before = self.key[:, 1] <= self.key_tokens.word_first[self.newest_token][:, None]
        return self.matching(spelling, spelling) & is_before

    def rarest_word(self) -> Bools:
        """The rarest word of the query's sentence; in causal maps of what it sees of it."""
        return self.has_token_between(*self.key_tokens.rarest_word(self.layout.causal))

    def previous_word(self) -> Bools:
        """The word before that of the query."""
        words, is_first = self.key_tokens.word, self.key_tokens.starts_word
        firsts = np.append(np.flatnonzero(is_first), -1)
        ends = np.append(self.key_tokens.word_end[is_first], -1)
        before = np.where(words > 0, words - 1, -1)
        return self.has_token_between(firsts[before], ends[before])
