"""The nouns: what a model is made of, what was captured, what is chosen and how it is shown, and
how work reports its progress.

Standard library and numpy only. Every type is frozen, every array handed out is read-only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from hgviz.errors import HgvizError as HgvizError
from hgviz.errors import no_attention_error

# --- texts ----------------------------------------------------------------------------------------

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Modality = Literal["text", "image", "audio"]

SLOT = "slot {}"
SPACES = "▁␣"  # how names of tokens write a space
_BYTE = re.compile("<(?:0x)?([0-9A-F]{2})>")  # the name of a byte that is no character


def readonly(array: Any, dtype: Any = None) -> NDArray[Any]:
    """The array as a read-only view; the caller's own array stays writable."""
    view = np.asarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class Signal:
    """A picture or a sound as a model reads it, in place of ids.

    values: pixels (channels, height, width), frames (mel bins, frames) or samples (samples,), as
    its processor makes them. picture (height, width, 3) uint8: what is seen of them. grid: rows and
    columns of the patches, which are the model's last positions. seconds: how long a sound is.
    """

    values: Floats
    picture: NDArray[np.uint8] | None = None
    grid: tuple[int, int] | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text as the model reads it.

    spans (tokens, 2): half-open character offsets into text, (-1, -1) for special tokens, empty for
    a token that reads none of its characters. attention_mask: True where a token is real.
    position_ids: the position of each token, None where the model counts them.
    states (tokens, width): an encoder's states, given in place of a text; ids are then 0.
    boundaries: True where a token closes a segment, whatever a model that reads segments thinks;
    None: it finds them itself. signal: a picture or a sound, whose patches or frames stand for
    tokens; ids are then 0.
    """

    text: str
    ids: Integers
    pieces: tuple[str, ...]
    spans: Integers
    attention_mask: NDArray[np.bool_] | None = None
    token_type_ids: Integers | None = None
    states: Floats | None = None
    boundaries: NDArray[np.bool_] | None = None
    signal: Signal | None = None
    position_ids: Integers | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, count: int) -> Prompt:
        """The first tokens alone, with the whole text."""
        names = ("ids", "pieces", "spans", "attention_mask", "token_type_ids", "boundaries",
                 "position_ids")  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        cut: dict[str, Any] = {name: x[:count] for name, x in values.items() if x is not None}
        return replace(self, **cut)

    @property
    def unit(self) -> str:
        """What one position is called: token, or state, frame, position or slot without a text."""
        if self.states is not None:
            return "state"
        if self.signal is not None:
            return "position" if self.signal.grid else "frame"
        # ids alone have no text either, but nobody calls those slots
        is_slots = self.pieces[:1] == (SLOT.format(0),) and (self.spans[:, 0] < 0).all()
        return "slot" if is_slots else "token"

    @property
    def has_characters(self) -> bool:
        """Whether each token is one character or byte of a text."""
        starts, ends = self.spans.T
        whole = len(self) > 0 and bool((starts >= 0).all() and (ends - starts <= 1).all())
        return whole and self.unit == "token" and all(map(_is_character, {*self.pieces}))

    @property
    def last(self) -> int:
        """The last position that is no padding, and no part of a sound that has ended before."""
        count = len(self)
        if self.attention_mask is not None and self.attention_mask.any():
            return int(np.flatnonzero(self.attention_mask)[-1])
        if self.signal is None or self.signal.picture is not None or self.signal.grid:
            return count - 1
        values = np.moveaxis(self.signal.values, np.argmax(self.signal.values.shape), 0)
        values = values.reshape(len(values), -1)
        ends = np.flatnonzero((values != values[-1:]).any(axis=1)).max(initial=-1) + 1
        return ceil(count * (ends or len(values)) / len(values)) - 1

    @property
    def digest(self) -> str:
        """A fingerprint of what the model was given."""
        parts = [np.asarray(self.ids, np.int64).tobytes()]
        for extra in (self.attention_mask, self.token_type_ids):
            parts.append(b"" if extra is None else np.asarray(extra, np.int64).tobytes())
        if self.position_ids is not None:
            parts.append(b"positions" + np.asarray(self.position_ids, np.int64).tobytes())
        if self.states is not None:
            parts.append(np.asarray(self.states, np.float32).tobytes())
        if self.boundaries is not None:
            parts.append(b"boundaries" + np.asarray(self.boundaries, np.uint8).tobytes())
        if self.signal is not None:
            parts.append(np.asarray(self.signal.values, np.float32).tobytes())
        return hashlib.sha256(b"|".join(parts)).hexdigest()

    def continues(self, other: Prompt) -> bool:
        """Whether this is the other text, or that and what was written after it."""
        given = len(other)
        if len(self) <= given:
            return self.digest == other.digest
        text = self.states is None and self.signal is None
        return text and bool((self.ids[:given] == other.ids).all())

    def label(self, token: int) -> str:
        """What a token reads: its characters, or its own name where it is a special token, shares
        its characters with the token before or after it, or has none."""
        start, end = self.spans[token]
        if start < 0:
            return self.pieces[token]
        near = self.spans[max(token - 1, 0) : token + 2]
        shared = (near[:, 0] < end) & (start < near[:, 1]) & (near[:, 0] >= 0)
        text = self.text[start:end]
        alone = shared.sum() == 1 and "\N{REPLACEMENT CHARACTER}" not in text
        return text if alone else normalize("NFC", token_text(self.pieces[token]))

    def labels(self) -> list[str]:
        """The label of each token."""
        return [self.label(token) for token in range(len(self))]

    def words(self, start: int, end: int) -> str:
        """The characters that tokens start..end-1 stand for; of one token its label."""
        start = max(start, 0)
        spans = self.spans[start:end]
        if len(spans) == 1 and spans[0, 0] >= 0:
            return self.label(start)
        spans = spans[spans[:, 0] >= 0]
        return self.text[spans[:, 0].min() : spans[:, 1].max()] if len(spans) else ""

    def byte_counts(self) -> NDArray[np.float64]:
        """(tokens,) Bytes of UTF-8 of the text that each token spells.

        White space in no token counts to the token after it. Tokens that share characters, such as
        the bytes of one, divide them by what each spells.
        """
        counts = np.zeros(len(self))
        plain = np.flatnonzero(self.spans[:, 0] >= 0)
        if not len(plain):
            return counts
        starts, ends = self.spans[plain].T
        last = np.maximum.accumulate(ends)
        shared = np.append(False, (starts[1:] < last[:-1]) & (starts[1:] < ends[1:]))
        first = np.flatnonzero(~shared)
        sizes = np.diff(first, append=len(plain))
        groups = np.repeat(np.arange(len(first)), sizes)
        before = _byte_ends(self.text)
        stop = before[np.maximum.reduceat(last, first)]
        start = np.minimum(before[np.minimum.reduceat(starts, first)], stop)
        begin = np.minimum(np.append(0, stop[:-1]), start)
        pieces = [self.pieces[at] for at in plain]
        several = sizes[groups] > 1
        spelled = np.ones(len(plain))
        spelled[several] = [_bytes_of_piece(pieces[at]) for at in np.flatnonzero(several)]
        # a tokenizer may put a space of its own before a text or a word
        extra = (sizes > 1) & (np.add.reduceat(spelled, first) == stop - start + 1)
        spelled[first[extra]] -= [pieces[at].startswith(tuple(SPACES)) for at in first[extra]]
        total = np.maximum(np.add.reduceat(spelled, first), 1.0)
        counts[plain] = spelled * ((stop - start) / total)[groups]
        counts[plain[first]] += start - begin
        return counts


def slot_prompt(count: int) -> Prompt:
    """A prompt of positions "slot 0", "slot 1" and so on, for the rows of a projected sequence."""
    return textless_prompt(tuple(map(SLOT.format, range(count))))


def textless_prompt(pieces: tuple[str, ...]) -> Prompt:
    """A prompt of named positions without text: ids 0, spans (-1, -1)."""
    nowhere = np.full((len(pieces), 2), -1, np.int64)
    return Prompt("", readonly(np.zeros(len(pieces), np.int64)), pieces, readonly(nowhere))


def _is_character(piece: str) -> bool:
    return len(piece) <= 1 or _BYTE.fullmatch(piece) is not None


def token_text(piece: str) -> str:
    """The text of a token without the marks of its tokenizer (▁, ##, </w>)."""
    plain = re.sub(f"[{SPACES}]", " ", _BYTE.sub(r"<\1>", piece)).removesuffix("</w>")
    return plain.removeprefix("##") or piece


@cache
def _bytes_of_piece(piece: str) -> int:
    """How many bytes of UTF-8 a token spells by its name."""
    return len(_BYTE.sub(" ", re.sub(f"[{SPACES}↵␍⇥]", " ", token_text(piece))).encode())


def _byte_ends(text: str) -> Integers:
    """(characters + 1,): how many bytes of UTF-8 the first so many characters take."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = 1 + (codes > 0x7F) + (codes > 0x7FF) + (codes > 0xFFFF)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


# --- the model ------------------------------------------------------------------------------------

Role = Literal["self", "down", "up", "cross"]
Side = Literal["source", "target", "slots"]
Goal = Literal["next", "masked", "classes", "tags", "ends", "states"]
Reduce = Literal["max", "mean"]
Interval = slice | range | tuple[int, int] | None


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
    def own_name(self) -> str:
        """What a model calls a layer that it numbers otherwise, as "layers.3" of the only layer
        that attends in a hybrid model; "" where both numbers are one."""
        parts = self.name.split(".")
        first = next((at for at, part in enumerate(parts) if part.isdecimal()), len(parts))
        numbers = [*takewhile(str.isdecimal, parts[first:])]
        if not numbers or numbers == [str(self.index)]:
            return ""
        return ".".join(parts[:first] + numbers).removeprefix("model.")

    @property
    def groups(self) -> dict[int, tuple[int, ...]]:
        """The heads of each key group that has any, by its number."""
        found: dict[int, tuple[int, ...]] = {}
        for head in self.heads:
            found[head // self.shared] = (*found.get(head // self.shared, ()), head)
        return found


@dataclass(frozen=True, slots=True)
class HeadCost:
    """Cost of one head: (parameters, FLOPs per position) of its queries and output, and of the
    keys and values of its key group.

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

    upsampling "none": going up, attention alone brings the inner level back.
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


HeadSet = frozenset[HeadId]
# what takes the place of the context of a head that is off: zeros; its mean over the examples (mean
# ablation, Wang et al. 2023); that of another example (resample ablation, Chan et al. 2022)
Ablation = Literal["zero", "mean", "resample"]


@dataclass(frozen=True, slots=True)
class Streaming:
    """Heads that see only the first keys of a text and the latest ones (StreamingLLM, Xiao et al.
    2023; of some heads of a model: DuoAttention, Xiao et al. 2024).

    sink: so many of the first keys; recent: so many up to the row's own, which is one of them.
    Padded keys do not count.
    """

    heads: HeadSet = frozenset()
    sink: int = 4
    recent: int = 256

    @property
    def window(self) -> tuple[int, int]:
        """Sink and window size: how many first and how many latest keys a streaming head sees."""
        return self.sink, self.recent

    def places(self, layer: int, heads: Sequence[int]) -> tuple[int, ...]:
        """The indices of the streaming heads among the heads of a layer."""
        return tuple(at for at, head in enumerate(heads) if HeadId(layer, head) in self.heads)

    def describe(self) -> str:
        """Streaming heads with their sink and window sizes, or an empty string."""
        named = ", ".join(map(str, sorted(self.heads)))
        return f"{named} (first {self.sink}, latest {self.recent})" if named else ""

    def to_dict(self) -> dict[str, Any]:
        """Streaming heads, sink and window size for tables and figures; {} if no head streams."""
        if not self.heads:
            return {}
        named = [str(head) for head in sorted(self.heads)]
        return {"streaming": named, "sink": self.sink, "recent": self.recent}


NO_STREAMING = Streaming()


def parse_heads(text: str, layers: Iterable[Layer]) -> HeadSet:
    """The heads named by "3.5,4.*,5.g1": head 5 of layer 3, all heads of layer 4, and those of key
    group 1 of layer 5; the empty string names none.

    A layer has its number or the model's own name: "decoder.0.cross.5". Raises HgvizError for
    other names.
    """
    if not (known := {layer.index: layer for layer in layers}) and text.strip():
        raise no_attention_error()
    numbers = {layer.name: str(layer.index) for layer in known.values()}
    chosen: set[HeadId] = set()
    for item in filter(None, (part.strip() for part in text.split(","))):
        layer, dot, head = item.rpartition(".")
        layer = numbers.get(layer, layer)
        number = head.removeprefix("g")
        if not (dot and layer.isdecimal() and (head == "*" or number.isdecimal())):
            raise HgvizError(
                f"{item!r} does not name a head: "
                "write LAYER.HEAD, such as 3.5, LAYER.* for all heads of a layer, or LAYER.gGROUP "
                "for a key group; LAYER may be a name that `hgviz info` shows",
                "Separate several heads by commas",
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
                f"this model has no head {item}: its layers are 0 to {len(known) - 1}{there}",
                "Run `hgviz info` on it to list its heads",
            )
        named = {HeadId(int(layer), one) for one in wanted}
        if twice := sorted(named & chosen):
            raise HgvizError(f"head {twice[0]} is named twice", "Name each head once")
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
    off: HeadSet = frozenset()
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

    @property
    def texts(self) -> tuple[str, str]:
        """The text and the second one, "" for none: the decoder's, or the other of a pair."""
        prompt = self.prompt
        if self.target is not None:
            return prompt.text, self.target.text
        types = prompt.token_type_ids
        if types is None or not (types == 1).any():
            return prompt.text, ""
        tokens = np.flatnonzero((types == 1) & (prompt.spans[:, 0] >= 0))
        start = int(prompt.spans[tokens[0], 0]) if len(tokens) else len(prompt.text)
        line_break = prompt.text.rfind("\n", 0, start)  # joins a pair
        if line_break < 0:
            return prompt.text, ""
        return prompt.text[:line_break], prompt.text[line_break + 1 :]

    @property
    def place_in_corpus(self) -> tuple[int, int] | None:
        """Which text of how many this is, counted from 1; None for a text alone."""
        numbers = [item.number for item in self.items]
        return (numbers.index(self.item) + 1, len(numbers)) if self.item in numbers else None

    @property
    def first_generated(self) -> int | None:
        """The first token of the main text that the model wrote itself, None for none."""
        count = re.match(r"\d+ tokens after (\d+)", self.made.generated)
        return int(count[1]) if count else None

    def continues(self, earlier: Capture) -> bool:
        """Whether this is of the same text as an earlier capture, or of that and what follows."""
        if earlier.spec != self.spec or (earlier.target is None) != (self.target is None):
            return False
        if self.items and self.item != earlier.item:
            return False
        same_source = self.target is None or self.prompt.digest == earlier.prompt.digest
        return same_source and self.main.continues(earlier.main)

    def prompt_of(self, level: int) -> Prompt:
        """The text whose tokens the spans of a level count."""
        sequence = self.spec.levels[level].sequence
        if sequence == "slots":
            return slot_prompt(len(self.spans[level]))
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


def _newest(spans: Integers, position: int) -> int | None:
    end = int(spans[position, 1])
    return end - 1 if end > 0 else None


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """A metric with its confidence interval; still being measured while seen < total."""

    metric: str
    value: float
    low: float
    high: float
    seen: int
    total: int
    off: HeadSet = frozenset()


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


# --- how all maps become one ----------------------------------------------------------------------

HeadFusion = Literal["mean", "max", "min"]
HEAD_FUSIONS: dict[str, str] = {"mean": "mean", "max": "maximum", "min": "minimum"}


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """How the attention maps of all layers are composed into one (Abnar and Zuidema 2020).

    fuse: what the heads of a layer become, their mean or, cell by cell, the largest or smallest of
    them, the rows then divided by their sums. heads: a layer of which some are named counts these
    alone. residual: how much of every sum x + f(x) is x. nothing: what comes from no token, such as
    the zeros of a causal shift, is kept apart instead of being given to the tokens. signed: weights
    below zero stay below zero, and nothing is divided: the product of A + I.
    """

    fuse: HeadFusion = "mean"
    heads: tuple[HeadId, ...] = ()
    residual: float = 0.5
    nothing: bool = False
    signed: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.residual <= 1:
            raise HgvizError(
                f"the residual weight cannot be {self.residual:g}: it is between 0 and 1",
                "Choose a number from 0 to 1; 0.5 is usual",
            )
        if self.fuse not in HEAD_FUSIONS:
            raise HgvizError(
                f"unknown head fusion {self.fuse!r}: there are {', '.join(HEAD_FUSIONS)}",
                "Choose one of these",
            )
        clash = self.fuse != "mean", self.residual != 0.5, self.nothing
        if self.signed and any(clash):
            taken = ("the maximum or minimum", "another residual weight", "mass from no token")
            raise HgvizError(
                f"the signed product cannot be combined with {taken[clash.index(True)]}: "
                "it is the product of A + I, where A is the mean of the heads, not normalised",
                "Leave one of the two out",
            )

    @property
    def residual_share(self) -> float:
        """What x is multiplied with in a sum."""
        return 1.0 if self.signed else self.residual

    @property
    def attention_share(self) -> float:
        """What attention is multiplied with in a sum."""
        return 1.0 if self.signed else 1 - self.residual

    @property
    def divides(self) -> bool:
        """Whether what is lost on the way is made up for by dividing rows by their sums."""
        return not (self.signed or self.nothing)

    @property
    def label(self) -> str:
        """In a few words: "mean of the heads, half residual"."""
        heads = f"{HEAD_FUSIONS[self.fuse]} of the heads"
        if self.heads:
            named = ", ".join(map(str, self.heads))
            heads = f"head{'s' * (len(self.heads) > 1)} {named}, elsewhere the {heads}"
        if self.signed:
            return f"signed product, {heads}"
        share = "half" if self.residual == 0.5 else f"{self.residual:.0%}".replace("%", " %")
        return f"{heads}, {share} residual" + ", with mass from no token" * self.nothing


# --- progress -------------------------------------------------------------------------------------


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


def cancel_condition() -> Callable[[], bool]:
    """The function that says whether the work of this thread is cancelled, for helper threads."""
    return _is_cancelled.get()


def raise_if_cancelled() -> None:
    """Raise Cancelled if the work is to stop. Cheap: called between blocks of rows."""
    if _is_cancelled.get()():
        raise Cancelled
