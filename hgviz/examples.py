"""What a model is scored on: texts, or windows of one, and what is wanted at their places.

numpy only. A place is where something is asked of the model: the class of a text, of a picture or
of a token, the token after a token, a masked token, where an answer begins or ends, which picture
belongs to a text, or what a model without answers makes of a text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Integers, Prompt
from hgviz.errors import HgvizError
from hgviz.language import counted

Asked = Literal["classes", "tags", "ends", "next", "masked", "states"]
EACH: tuple[Asked, ...] = ("classes", "tags", "ends", "states")  # of examples, no windows

IGNORE_INDEX = -100  # wanted at a place where nothing is asked
SEED = 0
FIRST, MOST = 32, 256  # texts until the first score, and between later ones
TEXTS = 32  # in one batch
TOKENS = 8192  # in one batch of windows
WINDOW = 1024  # tokens that a language model sees at once
MASKED_WINDOW = 128
MASK_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Example:
    """A text as a model is given it: ids (n,) and wanted, (1,) its class, (n,) tokens or classes of
    them, or (2,) the tokens where its answer begins and ends.

    text and spans (n, 2) are for people, as in Prompt. size: bytes of what is wanted of it. source:
    the number of the text that a window is of, or of a question. kinds (n,): token types. signal: a
    picture or a sound, of which ids only count the positions. first: what the encoder of an
    encoder-decoder reads, of which nothing is wanted.
    """

    ids: Integers
    wanted: Integers
    text: str
    spans: Integers
    size: float = 0.0
    source: int = 0
    kinds: Integers | None = None
    signal: Floats | None = None
    first: Example | None = None

    def identity(self) -> Iterator[bytes]:
        """All that tells it from others."""
        yield self.ids.tobytes() + b"|" + self.wanted.tobytes() + b"|"
        if self.signal is not None:
            yield self.signal.tobytes()
        if self.first is not None:
            yield from self.first.identity()


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples by number, side by side: ids, mask (B, n), wanted (B,) classes, (B, n) tokens or
    (B, 2) ends; kinds (B, n), signals (B, ...) and what encoders read where examples have them."""

    rows: Integers
    ids: Integers
    mask: NDArray[np.bool_]
    wanted: Integers
    kinds: Integers | None = None
    signals: Floats | None = None
    first: Batch | None = None

    @property
    def asked(self) -> NDArray[np.bool_]:
        """Where something is wanted, the shape of wanted."""
        asked: NDArray[np.bool_] = self.wanted != IGNORE_INDEX
        return asked


@dataclass(frozen=True)
class Examples:
    """All that a model is scored on.

    order: in which it is looked at, drawn once, so that every beginning is a fair sample. cut: how
    many texts are longer than the model reads, of which it sees the beginning. among: how many
    there were where these are a sample, drawn with SEED; 0 where they are all. even: whether those
    side by side have to be of one length, for models that read padding. note: what is said of how
    their classes were found. batch_size: the most examples of a batch, None for TEXTS texts or
    TOKENS tokens of windows.
    """

    asked: Asked
    rows: tuple[Example, ...]
    order: Integers
    labels: tuple[str, ...] = ()
    cut: int = 0
    among: int = 0
    even: bool = False
    note: str = ""
    batch_size: int | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def places(self) -> Integers:
        """(len + 1,): where the places of each example begin among all, and how many there are."""
        counts = [int((row.wanted != IGNORE_INDEX).sum()) for row in self.rows]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @cached_property
    def wanted(self) -> Integers:
        """(places,): what is wanted at every place."""
        return np.concatenate([row.wanted[row.wanted != IGNORE_INDEX] for row in self.rows])

    @cached_property
    def lengths(self) -> Integers:
        """(len,): tokens of each example."""
        return np.array([len(row.ids) for row in self.rows], np.int64)

    @cached_property
    def texts(self) -> int:
        """How many texts they are windows of."""
        return len({row.source for row in self.rows})

    @cached_property
    def digest(self) -> str:
        """A fingerprint of what is asked."""
        found = hashlib.sha256(self.asked.encode())
        for row in self.rows:
            for part in row.identity():
                found.update(part)
        return found.hexdigest()

    def part(self, rows: Sequence[int] | Integers) -> Examples:
        """Some examples by number, in ascending order, looked at in the same order as here."""
        chosen = np.unique(np.asarray(rows, np.int64))
        place = np.full(len(self), IGNORE_INDEX)
        place[chosen] = np.arange(len(chosen))
        order = place[self.order]
        some = tuple(self.rows[row] for row in chosen)
        chosen = order[order != IGNORE_INDEX]
        return replace(self, rows=some, order=chosen, cut=0, among=0)

    def sample(self, most: int) -> Examples:
        """At most so many of them, the first in order."""
        if len(self) <= most:
            return self
        return replace(self.part(self.order[:most]), among=len(self))

    def sample_of(self, tokens: int) -> Examples:
        """At most as many of them as have so many tokens, on the mean; at least one."""
        return self.sample(max(1, int(tokens / self.lengths.mean())))

    def blocks(self, sizes: Sequence[int] = ()) -> Iterator[list[Batch]]:
        """Batches in order; a score is fair after each list of them, not within.

        sizes: how many examples the first block has, the second and so on, the last number again
        and again; left out, what is quick as a whole.
        """
        if not sizes:
            most = max(1, int(TOKENS / self.lengths.mean()))
            sizes = (most,) if self.asked == "next" else (FIRST, MOST)
        start = 0
        for size in chain(sizes, repeat(sizes[-1])):
            if start >= len(self):
                return
            some = self.order[start : start + size]
            start += len(some)
            yield self.batches(some)

    def batches(self, rows: Integers) -> list[Batch]:
        """Some examples in batches, by length."""
        windows, signals = self.asked == "next", self.rows[0].signal is not None
        by_length = rows[np.argsort(self.lengths[rows], kind="stable")]
        parts = [by_length]
        if windows or signals or self.even:  # of one length: nothing is padding
            parts = np.split(by_length, np.flatnonzero(np.diff(self.lengths[by_length])) + 1)
        if self.batch_size or not windows:  # similar lengths together: little is padding
            size = self.batch_size or TEXTS
            parts = [part[i : i + size] for part in parts for i in range(0, len(part), size)]
        return [self.batch(part) for part in parts]

    def batch(self, rows: Sequence[int] | Integers) -> Batch:
        """Some examples side by side."""
        found = _side_by_side([self.rows[int(row)] for row in rows], np.asarray(rows, np.int64))
        one_each, wanted = self.asked in ("classes", "states"), found.wanted
        wanted = wanted[:, 0] if one_each else wanted[:, :2] if self.asked == "ends" else wanted
        return replace(found, wanted=wanted)

    def where(self, batch: Batch) -> Integers:
        """The numbers of a batch's places among all, in the order of batch.wanted[batch.asked]."""
        starts, stops = self.places[batch.rows], self.places[batch.rows + 1]
        return np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])


def _side_by_side(some: Sequence[Example], numbers: Integers) -> Batch:
    """Examples as a batch, wanted (B, n) of all."""
    longest = max(len(one.ids) for one in some)
    ids = np.zeros((len(some), longest), np.int64)
    mask = np.zeros(ids.shape, bool)
    wanted = np.full(ids.shape, IGNORE_INDEX, np.int64)
    for i, one in enumerate(some):
        ids[i, : len(one.ids)], mask[i, : len(one.ids)] = one.ids, True
        wanted[i, : len(one.wanted)] = one.wanted
    kinds, signals, first = None, None, None
    if some[0].kinds is not None:
        kinds = np.zeros_like(ids)
        for i, one in enumerate(some):
            kinds[i, : len(one.ids)] = 0 if one.kinds is None else one.kinds
    if some[0].signal is not None:
        signals = np.stack([one.signal for one in some if one.signal is not None])
    if some[0].first is not None:
        first = _side_by_side([one.first for one in some if one.first is not None], numbers)
    return Batch(numbers, ids, mask, wanted, kinds, signals, first)


def classification_examples(
    prompts: Sequence[Prompt], wanted: Sequence[int], labels: Sequence[str], limit: int | None
) -> Examples:
    """Examples with one class each: texts, pictures or sounds and the numbers of their classes.

    labels: names of the classes; limit: how many tokens the model reads."""
    return _of_prompts("classes", prompts, [[one] for one in wanted], labels, limit)


def tagging_examples(
    prompts: Sequence[Prompt],
    wanted: Sequence[Sequence[int]],
    labels: Sequence[str],
    limit: int | None,
) -> Examples:
    """Examples with one class per token, IGNORE_INDEX where a token has none."""
    return _of_prompts("tags", prompts, wanted, labels, limit)


def question_examples(
    prompts: Sequence[Prompt], wanted: Sequence[tuple[int, int]], limit: int | None
) -> Examples:
    """Extractive question answering: the targets are the first and the last token of each answer.
    Those whose answer lies beyond the model's limit are left out, and counted as cut.

    Errors: HgvizError where none is left.
    """
    within = [limit is None or max(ends) < limit - 1 for ends in wanted]
    some = [at for at, one in enumerate(within) if one]
    if not some:
        raise HgvizError(
            "no answer lies within the model's maximum length: "
            f"it is {limit:,} tokens, and all {len(prompts):,} answers lie beyond it",
            "Use shorter texts",
        )
    kept = [prompts[at] for at in some]
    found = _of_prompts("ends", kept, [wanted[at] for at in some], (), limit)
    rows = tuple(replace(row, source=at) for row, at in zip(found.rows, some, strict=True))
    return replace(found, rows=rows, cut=found.cut + len(prompts) - len(some))


def state_examples(
    prompts: Sequence[Prompt], limit: int | None, firsts: Sequence[Prompt] = ()
) -> Examples:
    """Examples whose hidden states are compared with those of the unchanged model; the target of
    each is its own number. firsts: what an encoder reads beside each."""
    found = _of_prompts("states", prompts, [[at] for at in range(len(prompts))], (), limit)
    if not firsts:
        return found
    rows = (
        replace(row, first=_read_first(one, limit))
        for row, one in zip(found.rows, firsts, strict=True)
    )
    return replace(found, rows=tuple(rows))


def _of_prompts(
    asked: Asked,
    prompts: Sequence[Prompt],
    wanted: Sequence[Sequence[int]],
    labels: Sequence[str],
    limit: int | None,
) -> Examples:
    rows = []
    for one, places in zip(prompts, wanted, strict=True):
        ids = one.ids if one.signal is not None else _cut(one, limit)
        kinds = one.token_type_ids
        at = np.array(places, np.int64)
        at = at[: len(ids)] if asked == "tags" else at
        if asked == "tags" and len(ids) < len(one) and one.spans[-1, 0] < 0:
            at[-1] = IGNORE_INDEX  # a special token took the place of the last one that is read
        rows.append(Example(
            ids, at, one.text, one.spans[: len(ids)],
            kinds=None if kinds is None else kinds[: len(ids)],
            signal=None if one.signal is None else one.signal.values,
        ))  # fmt: skip
    cut = sum(len(one) > len(row.ids) for one, row in zip(prompts, rows, strict=True))
    return Examples(asked, tuple(rows), _shuffled(len(rows)), tuple(labels), cut)


def next_token_examples(
    texts: Sequence[Prompt], limit: int | None = None, length: int = WINDOW
) -> Examples:
    """Windows of texts in which every token is predicted once, from those before it in its text.

    Windows of a text share one token with the next, so every token but its first is wanted once,
    from at most so many before it as the model reads, and at most `length`. Errors: HgvizError
    where no text has two tokens.
    """
    length = min(limit or length, length)
    rows = []
    for source, text in enumerate(texts):
        real = text.spans[:, 0] >= 0
        ids, spans = text.ids[real], text.spans[real]
        counts = text.byte_counts()[real]
        for start in range(0, len(ids) - 1, length):
            stop = min(start + length, len(ids) - 1)
            size = float(counts[start + 1 : stop + 1].sum())
            given, wanted = ids[start:stop], ids[start + 1 : stop + 1]
            rows.append(Example(given, wanted, text.text, spans[start:stop], size, source))
    if not rows:
        raise HgvizError("the text is too short to score: nothing follows its first token")
    return Examples("next", tuple(rows), _shuffled(len(rows)))


def seq2seq_examples(
    firsts: Sequence[Prompt], targets: Sequence[Prompt], limit: int | None
) -> Examples:
    """Examples of an encoder-decoder: every token of a target text but the first, given those
    before it and the input of the encoder. limit: how many tokens of a text it reads.

    Errors: HgvizError for a second text of which nothing is wanted.
    """
    rows = []
    for number, (first, target) in enumerate(zip(firsts, targets, strict=True), 1):
        ids, spans = target.ids[: limit and limit + 1], target.spans[: limit and limit + 1]
        if len(ids) < 2:
            raise HgvizError(
                f"second text {number} is too short to score: nothing follows its first token",
                "Complete it, or delete the line",
            )
        size = float(target.byte_counts()[1 : len(ids)].sum())
        rows.append(
            Example(
                ids[:-1],
                ids[1:],
                target.text,
                spans[:-1],
                size,
                number - 1,
                first=_read_first(first, limit),
            )
        )
    cut = sum(one.first is not None and len(one.first.ids) < len(first)
              for one, first in zip(rows, firsts, strict=True))  # fmt: skip
    return Examples("next", tuple(rows), _shuffled(len(rows)), cut=cut)


def _read_first(prompt: Prompt, limit: int | None) -> Example:
    ids = prompt.ids if prompt.signal is not None else _cut(prompt, limit)
    signal = None if prompt.signal is None else prompt.signal.values
    nothing = np.empty(0, np.int64)
    return Example(ids, nothing, prompt.text, prompt.spans[: len(ids)], signal=signal)


def masked_token_examples(
    texts: Sequence[Prompt], mask_id: int, limit: int | None = None
) -> Examples:
    """Examples with 15 % of the tokens masked and asked for, chosen with a fixed seed.

    A window in which nothing is asked is left out. Errors: HgvizError for texts without tokens of
    their own.
    """
    random, asked = np.random.default_rng(SEED), []
    for text in texts:
        own = text.spans[:, 0] >= 0
        drawn = np.zeros(len(own), bool)
        drawn[own] = random.random(int(own.sum())) < MASK_SHARE
        asked.append(drawn)
    if not any(one.any() for one in asked):
        some = [at for at, text in enumerate(texts) if (text.spans[:, 0] >= 0).any()]
        if not some:
            raise HgvizError("the text is too short to score: it has only special tokens")
        asked[some[0]][random.choice(np.flatnonzero(texts[some[0]].spans[:, 0] >= 0))] = True
    rows = [
        row
        for source, (text, drawn) in enumerate(zip(texts, asked, strict=True))
        for row in _masked_windows(text, drawn, mask_id, limit, source)
    ]
    return Examples("masked", tuple(rows), _shuffled(len(rows)))


def _masked_windows(
    text: Prompt, asked: NDArray[np.bool_], mask_id: int, limit: int | None, source: int
) -> Iterator[Example]:
    """Windows of a text (n,) in which the tokens that are asked (n,) are hidden; each between the
    special tokens with which the text begins and ends."""
    if not asked.any():
        return
    own = np.flatnonzero(text.spans[:, 0] >= 0)
    first, last = np.arange(own[0]), np.arange(own[-1] + 1, len(text))
    length = max(min(limit or MASKED_WINDOW, MASKED_WINDOW) - len(first) - len(last), 1)
    given, wanted = np.where(asked, mask_id, text.ids), np.where(asked, text.ids, IGNORE_INDEX)
    for start in range(0, len(own), length):
        part = own[start : start + length]
        if asked[part].any():
            at = np.concatenate([first, part, last])
            yield Example(given[at], wanted[at], text.text, text.spans[at], source=source)


def describe_sample(asked: Asked, examples: int, texts: int, some: int | None = None) -> str:
    """What a score is of, in words: 400 examples, or 64 windows of 12 texts; some: so many of it.

    texts: how many texts windows are of, 0 where nobody counted them.
    """
    part = "" if some in (None, examples) else f"{some:,} of "
    words = part + counted(examples, "example" if asked in EACH else "window")
    return f"{words} of {counted(texts, 'text')}" if texts and asked not in EACH else words


def _shuffled(count: int) -> Integers:
    return np.random.default_rng(SEED).permutation(count).astype(np.int64)


def _cut(text: Prompt, limit: int | None) -> Integers:
    """The ids of a text, the last special token kept where the text is cut."""
    if limit is None or len(text) <= limit:
        return text.ids
    last = text.ids[-1:] if text.spans[-1, 0] < 0 else text.ids[limit - 1 : limit]
    return np.concatenate([text.ids[: limit - 1], last])
