"""What an export proves of itself: the same logits as the masked model, smaller, and how fast.

Shapes: B batch, n tokens.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from hgviz.core import HeadSet, HgvizError, ModelSpec
from hgviz.examples import Asked, Examples, describe_sample
from hgviz.models.layers import Network, Tokens
from hgviz.models.measures.trials import tokens_of
from hgviz.models.run import Run

Form = Literal["smaller", "zeroed"]
Runner = Callable[[Tokens], Tensor]  # texts to logits, on the CPU

MOST = 1e-5  # between logits of the masked model and of the export
BATCHES = (1, 16)
TIMED = 128  # tokens of a text that is timed
CELLS = 1 << 26  # logits that are held at once
DRAWN = 16  # texts that are drawn where none are given
ROUNDS, SECONDS = (
    (5, 60),
    2.0,
)  # of timing: at least and at most so many, or as many as take so long


@dataclass(frozen=True, slots=True)
class Latency:
    """Median processor time of one pass on one thread, in milliseconds."""

    batch: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.before / self.after


@dataclass(frozen=True, slots=True)
class Read:
    """What is compared on: batches of so many examples that source has, windows of so many texts
    of a language model."""

    batches: tuple[Tokens, ...]
    source: str
    asked: Asked
    examples: int
    texts: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """An export beside the model it came from.

    difference: the largest of abs(logits of the masked model - logits of the export) on so many
    texts or windows of what was `read` from source, both computed in dtype; rough: the same in
    float32 where dtype is float64, because logits this large agree no better there. largest: the
    largest logit. parameters, size and latency are before and after; before is the whole model,
    nothing off. latency is of passes in float32, none of zeroed weights, which take as long as
    others; size is bytes of tensors in the checkpoint's precision. empty: the layers that have no
    head any more. opens: of a smaller model of transformers, what opens it, and why nothing else
    does. left_out: files that are not in a copy: they may hold weights of the whole model.
    """

    form: Form
    path: Path
    spec: ModelSpec
    off: HeadSet
    compensation: str
    difference: float
    largest: float
    dtype: str
    texts: int
    source: str
    parameters: tuple[int, int]
    size: tuple[int, int]
    latency: tuple[Latency, ...]
    read: Read
    empty: tuple[int, ...] = ()
    opens: str = ""
    left_out: tuple[str, ...] = ()
    rough: float | None = None

    @property
    def amount(self) -> str:
        """What logits were compared on, in words."""
        return describe_sample(self.read.asked, self.read.examples, self.read.texts, self.texts)

    @property
    def limit(self) -> float:
        """What the difference may be at most."""
        return MOST

    def facts(self) -> dict[str, Any]:
        """What JSON says of it."""
        return {
            "form": self.form, "path": str(self.path), "off": sorted(map(str, self.off)),
            "heads": len(self.spec.heads) - len(self.off), "compensation": self.compensation,
            "difference": self.difference, "largest": self.largest, "dtype": self.dtype,
            "texts": self.texts, "source": self.source, "compared": self.amount,
            "parameters": list(self.parameters), "bytes": list(self.size),
            "latency": [
                {"batch": one.batch, "before": one.before, "after": one.after, "ratio": one.ratio}
                for one in self.latency
            ],
            "runtime": "PyTorch", "timed": "float32", "threads": 1,
            "empty_layers": list(self.empty), "left_out": list(self.left_out),
            **({"opens": self.opens} if self.opens else {}),
        }  # fmt: skip


# --- runners --------------------------------------------------------------------------------------


def runner(module: Network, off: HeadSet = frozenset()) -> Runner:
    """A model on texts, these heads off; texts are given the precision of its weights."""
    kind = next(module.parameters()).dtype

    @torch.inference_mode()
    def run(text: Tokens) -> Tensor:
        return module(precise(text, kind), Run(off))

    return run


def precise(text: Tokens, kind: torch.dtype) -> Tokens:
    """Texts whose given states, if there are any, are of some precision."""
    source = None if text.source is None else precise(text.source, kind)
    states = None if text.states is None else text.states.to(kind)
    return replace(text, states=states, source=source)


# --- what is measured -----------------------------------------------------------------------------


def differences(
    one: Runner, other: Runner, texts: Iterable[Tokens]
) -> Iterator[tuple[float, float]]:
    """The largest difference of their logits so far and the largest logit, after each batch; rows
    of padding, which nobody reads, do not count. Where rows are positions of several tokens, as of
    a Funnel without its decoder, all do."""
    apart, largest = 0.0, 0.0
    for text in texts:
        for row, (a, b) in enumerate(zip(one(text), other(text), strict=True)):
            keep = None if text.keep is None or a.ndim == 1 else text.keep[row]
            real = ... if keep is None or len(keep) != len(a) else keep
            found = float((a[real] - b[real]).abs().max())
            apart = math.inf if math.isnan(found) else max(apart, found)
            largest = max(largest, float(a[real].abs().max()))
        yield apart, largest


def require_close(difference: float) -> None:
    """Errors: HgvizError for an export that gives other logits."""
    if not difference <= MOST:
        raise HgvizError(
            f"the export differs from the masked model by {difference:.1e}: "
            f"its logits may be {MOST:.0e} off, so nothing was kept",
            "Report this model",
        )


def latencies(before: Runner, after: Runner, texts: Sequence[Tokens]) -> Iterator[Latency]:
    """How long both take on each of some batches, taking turns."""
    for text in texts:
        *_, found = rounds(before, after, text)
        yield found


def rounds(before: Runner, after: Runner, text: Tokens) -> Iterator[Latency]:
    """How long both take on a batch, taking turns: the medians so far, after each round."""
    took: tuple[list[float], list[float]] = ([], [])
    _turns(before, after, text)
    least, most = ROUNDS
    start = time.thread_time()
    while len(took[0]) < most:
        if len(took[0]) >= least and time.thread_time() - start > SECONDS:
            break
        for times, one in zip(took, _turns(before, after, text), strict=True):
            times.append(one)
        first, second = (1e3 * statistics.median(times) for times in took)
        yield Latency(count(text), first, second)


def _turns(before: Runner, after: Runner, text: Tokens) -> tuple[float, float]:
    """Seconds of one pass of each, on one thread: then processor time is what one waits for, on a
    quiet machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        start = time.thread_time()
        before(text)
        middle = time.thread_time()
        after(text)
        return middle - start, time.thread_time() - middle
    finally:
        torch.set_num_threads(threads)


# --- texts ----------------------------------------------------------------------------------------


def texts_of(examples: Examples, spec: ModelSpec, most: int) -> list[Tokens]:
    """Examples as batches in the order they are looked at, until there are so many tokens."""
    found: list[Tokens] = []
    for batch in (one for block in examples.blocks() for one in block):
        whole = tokens_of(batch, "cpu")
        cells = 1 if examples.asked == "classes" else batch.ids.shape[1] * max(1, spec.vocabulary)
        found += _parts(whole, max(1, CELLS // cells))
        most -= int(batch.mask.sum())
        if most <= 0:
            break
    return found


def _parts(text: Tokens, size: int) -> Iterator[Tokens]:
    """At most so many texts of a batch at a time."""
    for start in range(0, count(text), size):
        yield _part(text, slice(start, start + size))


def _part(text: Tokens, rows: slice) -> Tokens:
    def of(part: Tensor | None) -> Tensor | None:
        return None if part is None else part[rows]

    keep = of(text.keep)
    real = keep is None or bool(keep.all())
    return Tokens(
        of(text.ids), None if real else keep, of(text.segments),
        source=None if text.source is None else _part(text.source, rows), signal=of(text.signal),
    )  # fmt: skip


def drawn(spec: ModelSpec, count: int, length: int = TIMED, seed: int = 0) -> Tokens:
    """Texts of random tokens, for whatever a model reads."""
    made = torch.Generator().manual_seed(seed)
    length = min(length, spec.max_positions or length)

    def ids() -> Tensor:
        return torch.randint(spec.vocabulary, (count, length), generator=made)

    if not spec.two_texts:
        return Tokens(ids())
    if spec.form == "encoder-decoder":
        return Tokens(ids(), source=Tokens(ids()))
    states = torch.randn(count, length, spec.width, generator=made, dtype=torch.float64)
    return Tokens(ids(), source=Tokens(states=states))


def count(text: Tokens) -> int:
    """How many texts a batch has."""
    return len(_given(text))


def tokens(text: Tokens) -> int:
    """How many tokens they have, padding among them."""
    return math.prod(_given(text).shape[:2])


def _given(text: Tokens) -> Tensor:
    given = text.ids if text.ids is not None else text.states
    assert given is not None
    return given


def timed(text: Tokens, count: int) -> Tokens:
    """So many texts from the first ones of a batch, over and over, no longer than is timed."""

    def of(part: Tensor | None) -> Tensor | None:
        if part is None:
            return None
        repeats = -(-count // len(part))
        return part.repeat(repeats, *[1] * (part.ndim - 1))[:count, :TIMED]

    source = None if text.source is None else timed(text.source, count)
    return Tokens(
        of(text.ids), of(text.keep), of(text.segments), of(text.states), source,
        signal=None if text.signal is None else text.signal.repeat(
            -(-count // len(text.signal)), *[1] * (text.signal.ndim - 1)
        )[:count],
    )  # fmt: skip
