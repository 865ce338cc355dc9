"""A model's score while it grows: texts in one random order, so that an early score is unbiased.

Whoever looks early and stops when the score pleases is not corrected for: intervals hold for a
number of texts chosen beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis import scores
from hgviz.core import HgvizError, Off, Prompt, Score, Step, Task

FIRST, MOST = 32, 256  # texts until the first score, and between later ones
BATCH = 32
TOKENS = 8192  # in one batch of windows
WINDOW = 1024  # tokens a language model sees at once
MASKED_WINDOW = 128
MASK_SHARE = 0.15
SEED = 0

Run = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]  # ids, mask (B, n) -> logits
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a model scored; fields that its task does not have are None.

    loss: nats per text or token. right: per text in the order of the file. cut: texts longer than
    the model reads, of which it saw the beginning.
    """

    score: Score
    loss: float
    f1: float | None = None
    mcc: float | None = None
    perplexity: float | None = None
    right: tuple[bool, ...] = ()
    cut: int = 0

    def facts(self) -> dict[str, Any]:
        """As `hgviz evaluate --json` prints it."""
        one = self.score
        found: dict[str, Any] = {
            "metric": one.metric, "value": one.value, "low": one.low, "high": one.high,
            "loss": self.loss, "seen": one.seen, "total": one.total,
            "off": [str(head) for head in sorted(one.off)],
        }  # fmt: skip
        found |= {end: None for end in ("low", "high") if not math.isfinite(found[end])}
        extra = {"f1": self.f1, "mcc": self.mcc, "perplexity": self.perplexity}
        found |= {name: value for name, value in extra.items() if value is not None}
        return found | ({"cut": self.cut} if self.cut else {})


# --- classes --------------------------------------------------------------------------------------


def classify(
    run: Run,
    prompts: Callable[[int], Prompt],
    wanted: Sequence[int],
    classes: int,
    limit: int | None = None,
    off: Off = frozenset(),
) -> Task[Evaluation]:
    """Accuracy of a classifier; prompts(i) is text i, wanted[i] the number of its class.

    Each Step carries the Score so far. limit: how many tokens the model reads.
    """
    total, cut = len(wanted), 0
    target = np.asarray(wanted, np.int64)
    given = np.full(total, -1, np.int64)
    losses = np.zeros(total)
    order, seen = np.random.default_rng(SEED).permutation(total), 0
    while seen < total:
        some = order[seen : seen + (MOST if seen else FIRST)]
        texts = [prompts(int(row)) for row in some]
        cut += sum(limit is not None and len(text) > limit for text in texts)
        ids = [_cut(text, limit) for text in texts]
        for part in _batches(ids):
            logits = run(*_padded([ids[i] for i in part]))
            rows = some[part]
            given[rows] = logits.argmax(-1)
            losses[rows] = scores.surprise(logits, target[rows])
        seen += len(some)
        right = int((given == target).sum())
        score = Score("accuracy", right / seen, *scores.wilson(right, seen), seen, total, off)
        yield Step(seen, total, told(score), score)
    table = scores.confusion(target, given, classes)
    hits = tuple(bool(one) for one in given == target)
    return Evaluation(
        score, float(losses.mean()), scores.f1(table), scores.matthews(table), None, hits, cut
    )


def _cut(text: Prompt, limit: int | None) -> Integers:
    """The ids of a text, the last special token kept where the text is cut."""
    if limit is None or len(text) <= limit:
        return text.ids
    last = text.ids[-1:] if text.spans[-1, 0] < 0 else text.ids[limit - 1 : limit]
    return np.concatenate([text.ids[: limit - 1], last])


def _batches(ids: Sequence[Integers]) -> Iterator[list[int]]:
    """Texts of much the same length together, so that little is padding."""
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def _padded(ids: Sequence[Integers]) -> tuple[NDArray[Any], NDArray[Any]]:
    longest = max(map(len, ids))
    found = np.zeros((len(ids), longest), np.int64)
    mask = np.zeros(found.shape, bool)
    for i, one in enumerate(ids):
        found[i, : len(one)] = one
        mask[i, : len(one)] = True
    return found, mask


# --- bits -----------------------------------------------------------------------------------------


def read_on(
    run: Run, text: Prompt, limit: int | None = None, off: Off = frozenset()
) -> Task[Evaluation]:
    """Bits per byte of a language model on a text, windows side by side.

    Windows share one token with the next, so every token but the very first is predicted once,
    from at most so many before it as the model reads, and at most 1,024.
    """
    real = text.spans[:, 0] >= 0
    ids, ends = text.ids[real], _byte_ends(text.text)[text.spans[real, 1]]
    if len(ids) < 2:
        raise HgvizError("the text is too short to score", "nothing follows its first token")
    length = min(limit or WINDOW, WINDOW)
    starts = np.arange(0, len(ids) - 1, length)
    sums: list[float] = []
    sizes: list[float] = []
    seen, total = 0, len(ids) - 1
    for group in _windows(starts, len(ids), length):
        rows = np.stack([ids[start : start + length + 1] for start in group])
        logits = run(rows[:, :-1], np.ones_like(rows[:, :-1], bool))
        sums += list(scores.surprise(logits, rows[:, 1:]).sum(-1))
        last = np.minimum(np.asarray(group) + length, total)
        sizes += list((ends[last] - ends[group]).astype(float))
        seen += rows[:, 1:].size
        # bytes of one character share their span: such a window counts none of its own
        size = max(sum(sizes), 1.0)
        value = scores.bits_per_byte(sum(sums), 1) / size
        low, high = scores.ratio_interval(list(np.array(sums) / np.log(2)), sizes)
        score = Score("bits_per_byte", value, max(low, 0.0), high, seen, total, off)
        yield Step(seen, total, told(score), score)
    nats = sum(sums)
    return Evaluation(score, nats / total, perplexity=scores.perplexity(nats, total))


def _byte_ends(text: str) -> Integers:
    """(characters + 1,): how many bytes of UTF-8 the first so many characters take."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = 1 + (codes > 0x7F) + (codes > 0x7FF) + (codes > 0xFFFF)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _windows(starts: Integers, tokens: int, length: int) -> Iterator[list[int]]:
    """Batches of windows in a random order; the last one, which is shorter, by itself."""
    whole = [int(one) for one in starts if one + length < tokens]
    rest = [int(one) for one in starts if one + length >= tokens]
    mixed = [whole[i] for i in np.random.default_rng(SEED).permutation(len(whole))]
    size = max(1, TOKENS // length)
    yield from (mixed[i : i + size] for i in range(0, len(mixed), size))
    yield from ([one] for one in rest)


# --- masked tokens --------------------------------------------------------------------------------


def fill_in(
    run: Run, text: Prompt, mask_id: int, limit: int | None = None, off: Off = frozenset()
) -> Task[Evaluation]:
    """Masked accuracy on a text: 15 % of its tokens read the mask, always the same ones."""
    special = text.spans[:, 0] < 0
    if special.all():
        raise HgvizError("the text is too short to score", "it has no tokens of its own")
    first = text.ids[: int(special.argmin())]
    last = text.ids[len(special) - int(special[::-1].argmin()) :]
    ids = text.ids[~special]
    length = max(min(limit or MASKED_WINDOW, MASKED_WINDOW) - len(first) - len(last), 1)
    random = np.random.default_rng(SEED)
    asked = random.random(len(ids)) < MASK_SHARE
    if not asked.any():
        asked[random.integers(len(ids))] = True
    starts = random.permutation(np.arange(0, len(ids), length))
    right = seen = 0
    nats, total = 0.0, int(asked.sum())
    for group in np.array_split(starts, -(-len(starts) // BATCH)):
        pieces = [slice(one, one + length) for one in group]
        rows = [np.concatenate([first, np.where(asked[p], mask_id, ids[p]), last]) for p in pieces]
        logits = run(*_padded(rows))
        for row, piece in enumerate(pieces):
            at = np.flatnonzero(asked[piece])
            found, wanted = logits[row, len(first) + at], ids[piece][at]
            right += int((found.argmax(-1) == wanted).sum())
            nats += float(scores.surprise(found, wanted).sum())
            seen += len(at)
        share = right / max(seen, 1)
        score = Score("masked_accuracy", share, *scores.wilson(right, seen), seen, total, off)
        yield Step(seen, total, told(score), score)
    return Evaluation(score, nats / total)


def told(score: Score) -> str:
    """A score in words."""
    if score.metric == "bits_per_byte":
        part = f" of the first {score.seen:,} tokens" if score.seen < score.total else ""
        around = f" ({score.low:.3f} to {score.high:.3f})" if np.isfinite(score.high) else ""
        return f"{score.value:.3f} bits per byte{around}{part}"
    count = f"{score.seen:,} of {score.total:,}" if score.seen < score.total else f"{score.total:,}"
    around = f"{100 * score.low:.1f} to {100 * score.high:.1f} %"
    return f"{score.metric.replace('_', ' ')} {100 * score.value:.1f} % ({around}) on {count}"
