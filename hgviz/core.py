"""The nouns: what a model is made of, what was captured, what is chosen and how it is shown.

Standard library and numpy only. Every type is frozen, every array handed out is read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.errors import HgvizError, no_attention
from hgviz.prompt import Floats, Integers, Modality, Prompt, Signal, pictured, readonly, slots

Role = Literal["self", "down", "up", "cross"]
Side = Literal["source", "target", "slots"]
Goal = Literal["next", "masked", "classes", "tags", "ends", "states"]
Reduce = Literal["max", "mean"]
Interval = slice | range | tuple[int, int] | None


# --- the model ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Level:
    """One resolution of a model.

    stride: tokens per position, None where segments differ in length.
    shift: the causal shift (k - 1) applied before shortening INTO this level, in positions of the
    level above; 0 at full resolution and in bidirectional models. sequence: whose tokens its spans
    count; "slots" are rows that a projected sequence is mixed into, no tokens. apart: 1 where the
    first token is a position of its own, before groups of stride tokens. parts: how many positions
    stand for each segment.
    """

    index: int
    stride: int | None = 1
    shift: int = 0
    sequence: Side = "source"
    apart: int = 0
    parts: int = 1

    @property
    def label(self) -> str:
        """Named like the scale of a geographical map: 1:1, 1:2, 1:4; segments have none."""
        if self.stride:
            return f"1:{self.stride}"
        return "segments" if self.parts == 1 else "parts"


@dataclass(frozen=True, slots=True)
class Layer:
    """Whatever attends, numbered in order of computation.

    level is the level of its queries, key_level that of its keys; heads are the head numbers it
    has (a sliced checkpoint keeps the old numbers); activations has one name per head;
    window is the number of positions of the finer side that meet in one window of windowed
    resampling, None elsewhere. scores: "dot", or what makes them in place of tokens (Synthesizer).
    shared: how many heads read the same keys: head h those of key group h // shared. cuts: whether
    it only decides where segments end: it is beside what makes the answer.
    """

    index: int
    name: str
    role: Role
    level: int
    key_level: int
    heads: tuple[int, ...]
    activations: tuple[str, ...]
    causal: bool
    window: int | None = None
    scores: str = "dot"
    shared: int = 1
    cuts: bool = False

    @property
    def can_stream(self) -> bool:
        """Whether its queries have latest keys, so that its heads can stream; see Streaming."""
        return self.causal and self.window is None

    @property
    def groups(self) -> dict[int, tuple[int, ...]]:
        """The heads of each key group that has any, by its number."""
        found: dict[int, tuple[int, ...]] = {}
        for head in self.heads:
            found[head // self.shared] = (*found.get(head // self.shared, ()), head)
        return found


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """What a layer's heads are made of: (parameters, FLOPs per position) of the queries and the
    output of one head, and of the keys and values of one key group.

    keys are (0, 0) where no group is ever removed. width: the numbers of a query and a value
    together. keeps_one: whether a layer without heads keeps the weights of one, zeroed.
    """

    queries: tuple[int, int]
    keys: tuple[int, int]
    width: int
    keeps_one: bool = False


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a model is, without its weights.

    upsampling "none": going up, attention alone brings the inner level back (models.md A.4).
    goal: what it gives: logits of the next token or of masked tokens (positions, vocabulary), of
    classes (classes,) named by labels, of the class of each token, its tag (positions, classes), of
    where an answer begins and ends (2, positions), or its last hidden states (positions, width).
    modality: what it reads; of an encoder-decoder, its encoder. form: of a model of transformers
    encoder, decoder or encoder-decoder.
    """

    family: str
    name: str
    levels: tuple[Level, ...]
    layers: tuple[Layer, ...]
    width: int
    vocabulary: int
    digest: str = ""
    parameters: int = 0
    max_positions: int | None = None
    form: str = ""
    upsampling: str = ""
    goal: Goal = "next"
    labels: tuple[str, ...] = ()
    modality: Modality = "text"

    @property
    def two_texts(self) -> bool:
        """Whether a decoder attends to a second text."""
        return any(level.sequence == "target" for level in self.levels)

    @property
    def reads_twice(self) -> bool:
        """Whether its decoder reads the text of its encoder again, one token later, and answers
        about that, as classifiers of BART and T5 do."""
        return self.form == "encoder-decoder" and self.goal in ("classes", "tags", "ends")

    @property
    def needs_target(self) -> bool:
        """Whether a second text has to be given with each."""
        return self.two_texts and not self.reads_twice

    @property
    def answers(self) -> bool:
        """Whether data can say how good its answers are, or how far they move: of models that read
        two inputs, encoder-decoders alone."""
        return not self.two_texts or self.form == "encoder-decoder"

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """Every head, in order of computation."""
        return tuple(HeadId(layer.index, head) for layer in self.layers for head in layer.heads)


class HeadId(NamedTuple):
    """A head of a layer; sorts in order of computation and prints as 3.5."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"


Off = frozenset[HeadId]


@dataclass(frozen=True, slots=True)
class Streaming:
    """Heads that see only the first keys of a text and the latest ones (StreamingLLM, Xiao et al.
    2023; of some heads of a model: DuoAttention, Xiao et al. 2024).

    sink: so many of the first keys; recent: so many up to the row's own, which is one of them.
    Padded keys do not count.
    """

    heads: Off = frozenset()
    sink: int = 4
    recent: int = 256

    @property
    def near(self) -> tuple[int, int]:
        """How many first and how many latest keys."""
        return self.sink, self.recent

    def places(self, layer: int, heads: Sequence[int]) -> tuple[int, ...]:
        """Where they stand among the heads of a layer."""
        return tuple(at for at, head in enumerate(heads) if HeadId(layer, head) in self.heads)

    @property
    def told(self) -> str:
        """Which heads see how many keys, "" for none."""
        named = ", ".join(map(str, sorted(self.heads)))
        return f"{named} (first {self.sink}, latest {self.recent})" if named else ""

    def facts(self) -> dict[str, Any]:
        """What it says of itself, for tables and figures; nothing where no head streams."""
        if not self.heads:
            return {}
        named = [str(head) for head in sorted(self.heads)]
        return {"streaming": named, "sink": self.sink, "recent": self.recent}


NO_STREAMING = Streaming()


def heads_named(text: str, layers: Iterable[Layer]) -> Off:
    """The heads named by "3.5,4.*,5.g1", of a layer's key group 1 all; the empty string names none.

    Errors: HgvizError for others.
    """
    if not (known := {layer.index: layer for layer in layers}) and text.strip():
        raise no_attention()
    chosen: set[HeadId] = set()
    for item in filter(None, (part.strip() for part in text.split(","))):
        layer, dot, head = item.partition(".")
        number = head.removeprefix("g")
        if not (dot and layer.isdecimal() and (head == "*" or number.isdecimal())):
            raise HgvizError(
                f"{item!r} does not name a head",
                "a head is LAYER.HEAD, such as 3.5; LAYER.* is a whole layer, LAYER.gGROUP the "
                "heads of a key group",
                "Separate several by commas",
            )
        one = known.get(int(layer))
        heads = () if one is None else one.heads
        wanted = heads if head == "*" else (int(number),)
        if one is not None and number != head:
            wanted = one.groups.get(int(number), (-1,))
        if one is None or not set(wanted) <= set(heads):
            there = f"heads {', '.join(map(str, heads))}" if heads else "no heads"
            there = f" and layer {layer} has {there}" if int(layer) in known else ""
            raise HgvizError(
                f"this model has no head {item}",
                f"its layers are 0 to {len(known) - 1}{there}",
                "Run `hgviz info` on it to see every layer",
            )
        named = {HeadId(int(layer), one) for one in wanted}
        if twice := sorted(named & chosen):
            raise HgvizError(f"head {twice[0]} is named twice", "", "Name each head once")
        chosen |= named
    return frozenset(chosen)


# --- what was read and what was seen --------------------------------------------------------------


class Map(Protocol):
    """The attention maps of one layer, read tile by tile."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)"""
        ...

    @property
    def heads(self) -> tuple[int, ...]:
        """The head numbers, in stored order."""
        ...

    @property
    def signed(self) -> bool:
        """Whether weights can be negative."""
        ...

    def read(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats:
        """float32 (rows / 2^zoom, columns / 2^zoom); see hgviz.maps."""
        ...


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a capture was made; stored with it and printed into figures.

    seed: what was drawn at random; generated: how much of the text the model itself wrote after
    how much, and how, "" for a text as it was given. dense: whether weights were kept themselves.
    """

    producer: str = ""
    created: str = ""
    device: str = "cpu"
    dtype: str = "float32"
    seed: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    checkpoint: str = ""
    masking: str = "strict"
    seconds: float = 0.0
    dense: bool = False
    generated: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A text of a corpus that was captured in one file: its number, how many tokens it has, and
    what its line called it, such as its class.
    """

    number: int
    text: str
    tokens: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Capture:
    """The attention of every head of one model on one text.

    prompt is the text of the levels whose sequence is "source", target that of those whose
    sequence is "target", None where there is no decoder with a second text.
    spans[level] (positions, 2): the half-open range of tokens that each position stands for,
    (-1, -1) for null groups and padding. maps[layer] is a Map, or None for a layer that an
    interrupted capture has not reached. logits (positions, vocabulary) or None; those of a large
    file stay in it and are read where they are sliced, all of them by numpy.asarray. items: all
    texts of the corpus that was captured with it, of which it is number item; empty for a text
    alone. off and streaming: the heads that were switched off, and those that saw few keys.
    """

    spec: ModelSpec
    prompt: Prompt
    spans: tuple[Integers, ...]
    maps: tuple[Map | None, ...]
    off: Off = frozenset()
    logits: NDArray[Any] | None = None
    made: Provenance = field(default_factory=Provenance)
    path: str = ""
    target: Prompt | None = None
    item: int = 0
    items: tuple[Item, ...] = ()
    streaming: Streaming = NO_STREAMING

    def __repr__(self) -> str:
        tokens, heads = len(self.main), len(self.spec.heads)
        return f"<capture of {self.spec.name or 'a model'}: {tokens:,} tokens, {heads:,} heads>"

    @property
    def complete(self) -> bool:
        """Whether every layer is there."""
        return bool(self.maps) and all(one is not None for one in self.maps)

    @property
    def main(self) -> Prompt:
        """The text that the model speaks about: a decoder's own, else the only one."""
        return self.target if self.target is not None else self.prompt

    def prompt_of(self, level: int) -> Prompt:
        """The text whose tokens the spans of a level count."""
        sequence = self.spec.levels[level].sequence
        if sequence == "slots":
            return slots(len(self.spans[level]))
        return self.prompt if sequence == "source" or self.target is None else self.target

    def query_prompt(self, layer: int) -> Prompt:
        """The text that a layer's queries come from: Selection.query counts its tokens."""
        return self.prompt_of(self.spec.layers[layer].level)

    def key_prompt(self, layer: int) -> Prompt:
        """The text that a layer's keys come from: Selection.key counts its tokens."""
        return self.prompt_of(self.spec.layers[layer].key_level)

    def query_spans(self, layer: int) -> Integers:
        """(rows, 2): the tokens behind each row of a layer's map, (-1, -1) for padding."""
        return self._fitted(self.spans[self.spec.layers[layer].level], layer, axis=1)

    def null(self, level: int) -> bool:
        """Whether a level begins with a null group, which stands for no token."""
        spans = self.spans[level]
        return self.spec.levels[level].stride is None and not bool((spans[:1, 0] >= 0).any())

    def key_spans(self, layer: int) -> Integers:
        """(columns, 2): the tokens behind each column; a down map's columns are shifted."""
        one = self.spec.layers[layer]
        spans = self.spans[one.key_level]
        if one.role == "down":
            null = np.full((self.spec.levels[one.level].shift, 2), -1, np.int64)
            spans = np.concatenate([null, spans])
        return self._fitted(spans, layer, axis=2)

    def row(self, layer: int, token: int) -> int:
        """The row of a layer's map that speaks for a token."""
        return self.position(self.spec.layers[layer].level, token)

    def column(self, layer: int, token: int) -> int:
        """The column of a layer's map that stands for a token."""
        one = self.spec.layers[layer]
        shift = self.spec.levels[one.level].shift if one.role == "down" else 0
        return self.position(one.key_level, token) + shift

    def row_token(self, layer: int, row: int) -> int | None:
        """The newest token behind a row, None for padding; row(layer, that token) == row."""
        return _newest(self.query_spans(layer), row)

    def column_token(self, layer: int, column: int) -> int | None:
        """The newest token behind a column, None for padding and the zeros of the shift."""
        return _newest(self.key_spans(layer), column)

    def position(self, level: int, token: int) -> int:
        """The position of a level that speaks for a token."""
        if (one := self.spec.levels[level]).stride is not None:
            return min((token - one.apart) // one.stride + one.apart, len(self.spans[level]) - 1)
        # the last that is closed by then: what the model gives the token from below
        ends = self.spans[level][:, 1]
        closed = np.flatnonzero((ends > 0) & (ends <= token + 1))
        return int(closed[-1]) if len(closed) else 0

    def _fitted(self, spans: Integers, layer: int, axis: int) -> Integers:
        one = self.maps[layer]
        if one is None:
            return readonly(spans)
        fitted = np.full((one.shape[axis], 2), -1, np.int64)
        fitted[: len(spans)] = spans[: len(fitted)]
        return readonly(fitted)


@dataclass(frozen=True, slots=True)
class Score:
    """A measured score with its interval; live while seen < total."""

    metric: str
    value: float
    low: float
    high: float
    seen: int
    total: int
    off: Off = frozenset()


# --- what is chosen and how it is shown -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """What is chosen. query and key are TOKENS; Capture.row and .column find their cells.

    They count the tokens of Capture.query_prompt and key_prompt of the layer: in cross-attention
    two different texts. key None: no key chosen. beside: a second head to compare with.
    """

    layer: int = 0
    head: int = 0
    query: int | None = None
    key: int | None = None
    beside: HeadId | None = None

    @property
    def head_id(self) -> HeadId:
        """The chosen head."""
        return HeadId(self.layer, self.head)


@dataclass(frozen=True, slots=True)
class Display:
    """How weights become colours. limits None: from the data; scale: linear, sqrt, log."""

    palette: str = "viridis"
    limits: tuple[float, float] | None = None
    scale: Literal["linear", "sqrt", "log"] = "sqrt"
    shared: bool = False


# --- work -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """How far long work is: done of total, a note, and a first result where there is one."""

    done: float
    total: float
    note: str = ""
    value: Any = None


Listener = Callable[[Step], None]


class Cancelled(BaseException):
    """The result of the work under way is no longer wanted.

    Not an Exception, so that code which turns errors into results does not turn this into one.
    """


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_is_cancelled: ContextVar[Callable[[], bool]] = ContextVar("is_cancelled", default=lambda: False)


def progress(done: float, total: float, note: str = "", value: Any = None) -> None:
    """Report how far the work is to whoever listens; raises Cancelled if it is to stop."""
    raise_if_cancelled()
    listener = _listener.get()
    if listener is not None:
        listener(Step(done, total, note, value))
        raise_if_cancelled()


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Call the listener at each call of progress inside; it may raise Cancelled. None: nobody."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def current_listener() -> Listener:
    """What progress calls here, for listeners that pass on what they hear; at least nothing."""
    return _listener.get() or (lambda step: None)


@contextmanager
def progress_as(change: Callable[[Step], Step]) -> Iterator[None]:
    """Report the progress made inside as `change` returns it, as a part of longer work."""
    outer = current_listener()
    with listening(lambda step: outer(change(step))):
        yield


def progress_within(start: float, stop: float, total: float) -> AbstractContextManager[None]:
    """Report the progress made inside as that from start to stop of longer work."""

    def scaled(step: Step) -> Step:
        share = min(step.done / step.total, 1.0) if step.total else 0.0
        return replace(step, done=start + (stop - start) * share, total=total)

    return progress_as(scaled)


@contextmanager
def cancelled_if(condition: Callable[[], bool]) -> Iterator[None]:
    """Raise Cancelled inside, at the next call of progress, once the condition holds."""
    token = _is_cancelled.set(condition)
    try:
        yield
    finally:
        _is_cancelled.reset(token)


def cancellation() -> Callable[[], bool]:
    """The condition under which the work of this thread is cancelled, for threads that help it."""
    return _is_cancelled.get()


def raise_if_cancelled() -> None:
    """Raise Cancelled if the work is to stop. Cheap: called between blocks of rows."""
    if _is_cancelled.get()():
        raise Cancelled


def _newest(spans: Integers, position: int) -> int | None:
    end = int(spans[position, 1])
    return end - 1 if end > 0 else None


__all__ = [
    "Cancelled", "Capture", "Display", "Floats", "Goal", "HeadId", "HgvizError", "Integers",
    "Interval", "Item", "Layer", "Level", "Listener", "Map", "Modality", "ModelSpec", "Off",
    "Prompt", "Provenance", "Reduce", "Role", "Score", "Selection", "Signal", "Step",
    "cancellation", "cancelled_if", "current_listener", "heads_named", "listening", "pictured",
    "progress", "progress_as", "progress_within", "raise_if_cancelled", "readonly", "replace",
    "slots",
]  # fmt: skip
