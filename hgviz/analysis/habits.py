"""What every head does over one text or many: metrics, roles, kernels, likeness and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from hgviz.analysis.gathered import EXAMPLES, Example, Gathered, Passage
from hgviz.analysis.heads import HeadFacts, add_rows, facts_of, sampled, sums_of, words_for
from hgviz.analysis.metrics import (
    HEADS,
    METRICS,
    HeadDistances,
    HeadMetrics,
    Kernel,
    Kernels,
    metrics_for,
    row_blocks,
    signed_heads,
)
from hgviz.analysis.saying import Named
from hgviz.analysis.tokens import Layout, Lexicon, TokenReading
from hgviz.core import (
    Capture,
    HeadId,
    Layer,
    Map,
    ModelSpec,
    Prompt,
    Step,
    progress,
    progress_as,
    progress_within,
)
from hgviz.language import decimals

LIKENED = 64  # texts, spread evenly over a corpus, on which heads are put beside each other
AROUND = 24  # characters of a text that are quoted on either side
_EACH = 2  # examples from one text of many
_FINDING = 0.6  # of the time goes into the first of the two passes

Opener = Callable[[int], Capture]


@dataclass(frozen=True, slots=True)
class Habits:
    """What is known of every head over some texts.

    texts: how many there were; tokens: of all of them; notes: sentences on what was not measured.
    """

    spec: ModelSpec
    facts: Mapping[HeadId, HeadFacts]
    texts: int
    tokens: int = 0
    notes: tuple[str, ...] = ()

    def told(self) -> dict[str, Any]:
        """As `hgviz heads --json` prints it."""
        return {
            "texts": self.texts,
            "tokens": self.tokens,
            "metrics": {name: one.named("token") for name, one in metrics_for(HEADS).items()},
            "heads": [_told(one, self.spec) for _, one in sorted(self.facts.items())],
            "notes": list(self.notes),
        }


def measure(opened: Opener, numbers: Sequence[int], lexicon: Lexicon | None = None) -> Habits:
    """What every head does over the texts that opened(number) gives, of one model.

    Reads every map twice, in blocks of 256 rows; one of them is held at a time, of all heads of a
    layer by 1,024 keys, or of one head by all keys. Of texts above 8,192 tokens rows spread evenly
    are read. While it goes on, Steps after 1, 2, 4 ... texts carry the Habits so far. lexicon: how
    often words are used in all of the texts; without it no word is rare.
    """
    many = len(numbers) > 1
    total = float(len(numbers))
    found = _Found(many)
    likened = _spread(numbers)
    for done, number in enumerate(numbers):
        capture = opened(number)
        readings = _readings(capture, lexicon)
        with _part(_FINDING * done, _FINDING * (done + 1), total, _note(done, numbers)):
            found.gather(capture, number, readings, number in likened)
        if done + 1 < len(numbers) and (done + 1) & done == 0:
            so_far = found.habits(done + 1)
            progress(_FINDING * (done + 1), total, _note(done, numbers), so_far)
    wanted = found.examples()
    for done, number in enumerate(numbers):
        capture = opened(number)
        found.quote(capture, wanted.get(number, ()))
        start = _FINDING * total + (1 - _FINDING) * done
        with _part(start, start + 1 - _FINDING, total, _note(done, numbers)):
            found.compare(capture, _readings(capture, lexicon))
    return found.habits(len(numbers), lexicon)


def _part(start: float, stop: float, total: float, note: str) -> AbstractContextManager[None]:
    """Report the progress made inside as that from start to stop of the work, under one note."""

    def scaled(step: Step) -> Step:
        share = min(step.done / step.total, 1.0) if step.total else 0.0
        return Step(start + (stop - start) * share, total, note)

    return progress_as(scaled)


def _note(done: int, numbers: Sequence[int]) -> str:
    return f"text {done + 1:,} of {len(numbers):,}" if len(numbers) > 1 else "measuring heads"


def _spread(numbers: Sequence[int]) -> frozenset[int]:
    step = max(1.0, len(numbers) / LIKENED)
    return frozenset(numbers[int(at * step)] for at in range(min(len(numbers), LIKENED)))


def _readings(capture: Capture, lexicon: Lexicon | None) -> dict[str, TokenReading]:
    levels = capture.spec.levels
    return {one.sequence: TokenReading(capture.prompt_of(one.index), lexicon) for one in levels}


# --- of one layer ---------------------------------------------------------------------------------


class _Habit:
    """What is being found of a layer; layout and capture: of its latest text."""

    def __init__(self, layer: Layer, known: Map, capture: Capture, layout: Layout) -> None:
        self.layer, self.heads = layer, known.heads
        self.capture, self.layout = capture, layout
        self.signed = signed_heads(layer, known)
        self.gathered: Gathered | None = None
        alone = layer.role == "self" and not layout.is_cross and layout.key_tokens.unit != "slot"
        self.kernels = Kernels(len(known.heads)) if alone else None
        self.sampled = False

    def gather(self, known: Map, number: int, many: bool) -> None:
        layout = self.layout
        blocks = row_blocks(*known.shape[1:])
        self.sampled |= bool(sampled(blocks, known.shape[1]))
        sums = sums_of(layout, known, self.signed)
        weight = 0.5 if self.kernels else 1.0
        for done, rows in enumerate(blocks):
            progress(weight * done / len(blocks), 1)
            add_rows(sums, known, rows)
        if self.gathered is None:
            self.gathered = Gathered(sums.signed)
        self.gathered.add(sums, number, _EACH if many else EXAMPLES)
        if self.kernels:
            with progress_within(weight, 1, 1):
                self.kernels.add(known, layout, blocks)

    def facts(self, texts: int, known: Map | None) -> Iterator[tuple[HeadId, HeadFacts]]:
        """With what the kernels say, as soon as they do."""
        assert self.gathered is not None  # made only to be gathered
        more = f"; over {texts:,} texts" if texts > 1 else ""
        if texts > 1 and self.sampled:
            more += ", on rows spread evenly over the long ones"
        elif self.sampled and known is not None:
            more = sampled(row_blocks(*known.shape[1:]), known.shape[1])
        words = words_for(self.capture, self.layout, more, texts)
        found = facts_of(self.layer, self.heads, self.gathered, self.layout, words)
        kernels = self.kernels.kernels() if self.kernels else [None] * len(self.heads)
        for (head, facts), kernel in zip(found, kernels, strict=True):
            yield head, facts if kernel is None else _with(facts, kernel, self.layout, more)


def _with(facts: HeadFacts, kernel: Kernel, layout: Layout, more: str) -> HeadFacts:
    """Add what a head's kernel says, in tokens where positions are so many tokens each."""
    values = {"convolution": kernel.score, "variance": kernel.variance}
    if layout.stride is not None:
        values |= {"centre": kernel.centre * layout.stride, "width": kernel.width * layout.stride}
    there = {name: value for name, value in values.items() if value == value}
    metrics = HeadMetrics({**facts.metrics, **there})
    named = facts.named
    if kernel.is_convolution:
        unit = layout.key_tokens.unit if layout.stride == 1 else "position"
        evidence = (
            f"{100 * kernel.score:.0f} % of what tells its rows apart is one kernel: "
            f"{decimals(kernel.centre, 1, signed=True)} {unit}s, ±{kernel.width:.1f}{more}"
        )
        named = (*named, Named("convolution", "convolution-like", evidence, kernel.score))
    in_order = HeadMetrics({name: metrics[name] for name in METRICS if name in metrics})
    return replace(facts, metrics=in_order, named=named)


# --- of all layers --------------------------------------------------------------------------------


class _Found:
    """What is being found of all layers."""

    def __init__(self, many: bool) -> None:
        self._many = many
        self._habits: dict[int, _Habit] = {}
        self._alike: dict[tuple[Any, ...], HeadDistances] = {}
        self._capture: Capture | None = None
        self._tokens = 0
        self._missing: dict[int, None] = {}
        self._passages: dict[tuple[int, Example], Example] = {}

    def gather(
        self, capture: Capture, number: int, readings: dict[str, TokenReading], likened: bool
    ) -> None:
        """The first pass over a text."""
        self._capture, layers = capture, capture.spec.layers
        self._tokens += len(capture.main)
        beside: dict[tuple[Any, ...], list[tuple[Map, int]]] = {}
        for layer in layers:
            known = capture.maps[layer.index]
            if known is None:
                self._missing[layer.index] = None
            if known is None or not known.heads:
                continue
            layout = Layout(capture, layer.index, readings)
            habit = self._habits.setdefault(layer.index, _Habit(layer, known, capture, layout))
            habit.capture, habit.layout = capture, layout
            with progress_within(layer.index, layer.index + 1, len(layers)):
                habit.gather(known, number, self._many)
            kind = (layer.role, layer.level, layer.key_level, layer.window)
            beside.setdefault(kind, []).append((known, layer.index))
        for kind, maps in beside.items() if likened else ():
            with progress_within(1, 1, 1):
                self._put_beside(kind, maps, readings)

    def _put_beside(
        self, kind: tuple[Any, ...], maps: list[tuple[Map, int]], readings: dict[str, TokenReading]
    ) -> None:
        heads = [HeadId(index, head) for one, index in maps for head in one.heads]
        assert self._capture is not None  # gather sets it
        alike = self._alike.setdefault(kind, HeadDistances(heads))
        shapes = {one.shape[1:] for one, _ in maps}
        if alike.heads == tuple(heads) and len(shapes) == 1:
            layout = Layout(self._capture, maps[0][1], readings)
            alike.add([one for one, _ in maps], layout)

    def compare(self, capture: Capture, readings: dict[str, TokenReading]) -> None:
        """The second pass over a text."""
        for layer in capture.spec.layers:
            known, habit = capture.maps[layer.index], self._habits.get(layer.index)
            if known is None or habit is None or habit.kernels is None:
                continue
            layout = Layout(capture, layer.index, readings)
            blocks = row_blocks(*known.shape[1:])
            with progress_within(layer.index, layer.index + 1, len(capture.spec.layers)):
                habit.kernels.compare(known, layout, blocks)

    def examples(self) -> dict[int, list[tuple[int, Example]]]:
        """By the number of the text, the examples that are kept, with their layers."""
        out: dict[int, list[tuple[int, Example]]] = {}
        for one in self.habits(1).facts.values():
            for example in one.examples:
                out.setdefault(example.text, []).append((one.head.layer, example))
        return out

    def quote(self, capture: Capture, wanted: Iterable[tuple[int, Example]]) -> None:
        """Keep where the examples of a text stand in it."""
        for layer, one in wanted:
            row, prompt = capture.row(layer, one.query), capture.query_prompt(layer)
            at = _passage(prompt, *capture.query_spans(layer)[row])
            to = ("", "", "")
            if one.key is not None:
                column = capture.column(layer, one.key)
                to = _passage(capture.key_prompt(layer), *capture.key_spans(layer)[column])
            self._passages[layer, one] = one._replace(at=at, to=to)

    def habits(self, texts: int, lexicon: Lexicon | None = None) -> Habits:
        """What was found so far."""
        assert self._capture is not None  # there is at least one text
        near = {
            head: one for alike in self._alike.values() for head, one in alike.nearest().items()
        }
        facts: dict[HeadId, HeadFacts] = {}
        for index, habit in self._habits.items():
            for head, one in habit.facts(texts, self._capture.maps[index]):
                examples = (self._passages.get((index, each), each) for each in one.examples)
                facts[head] = replace(one, examples=tuple(examples))
                if head in near:
                    nearest, apart = near[head]
                    metrics = HeadMetrics({**one.metrics, "nearest": apart})
                    facts[head] = replace(facts[head], metrics=metrics, nearest=nearest)
        notes = tuple(self._notes(texts, lexicon))
        return Habits(self._capture.spec, facts, texts, self._tokens, notes)

    def _notes(self, texts: int, lexicon: Lexicon | None) -> Iterator[str]:
        if self._missing:
            yield f"layers {', '.join(map(str, self._missing))} are not captured"
        if texts > 1 and lexicon is not None and not lexicon.rare:
            yield "no word is rare: these texts use at most 500 different words"
        if texts > LIKENED:
            yield f"heads are likened on {LIKENED} texts, spread evenly over all"
        if any(one.sampled for one in self._habits.values()):
            yield "of texts above 8,192 tokens rows spread evenly are measured"
        if any(any(one.signed) for one in self._habits.values()):
            yield "signed weights count by their size, every row divided by its sum"


def _passage(prompt: Prompt, start: int, end: int) -> Passage:
    """Where tokens start..end-1 stand in the text; a special token by its name alone."""
    spans = prompt.spans[start:end]
    spans = spans[spans[:, 0] >= 0]
    if not len(spans):
        return "", prompt.label(start) if 0 <= start < len(prompt) else "", ""
    first, last = int(spans[:, 0].min()), int(spans[:, 1].max())
    text = prompt.text
    return text[max(0, first - AROUND) : first], text[first:last], text[last : last + AROUND]


def _told(facts: HeadFacts, spec: ModelSpec) -> dict[str, Any]:
    layer = spec.layers[facts.head.layer]
    return {
        "head": str(facts.head),
        "layer": layer.name,
        "level": spec.levels[layer.level].label,
        "kind": facts.kind,
        "role": facts.role,
        "says": facts.sentence,
        "evidence": facts.evidence,
        "score": facts.score,
        **{name: facts.metrics.get(name) for name in metrics_for(HEADS)},
        "nearest_head": str(facts.nearest) if facts.nearest is not None else None,
        "named": [one._asdict() for one in facts.named],
        "examples": [one._asdict() for one in facts.examples],
    }
