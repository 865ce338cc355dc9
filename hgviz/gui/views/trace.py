"""What one letter looks at on its way through all levels: numbers and words, no Qt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hgviz import tasks
from hgviz.core import Capture, Floats, HeadId, HgvizError, Map, Prompt, Selection, Step, Task
from hgviz.gui.atlas import Thumb, thumb
from hgviz.gui.language import tr
from hgviz.gui.sentences import shown, word_at, word_spans
from hgviz.gui.views import signs, words
from hgviz.gui.views.stages import Stage
from hgviz.gui.views.verdict import Verdict, of_text, of_token

if TYPE_CHECKING:
    from hgviz.analysis.heads import HeadFacts

ARCS = 5  # strongest keys of a stage
SOURCES = 3  # named in the sentence beneath the last row
UNSEEN = {"": "nothing", " ": "space", "\n": "line end", "\t": "tab"}


@dataclass(frozen=True, slots=True)
class Look:
    """One stage: the weights of the letter's own position in one head.

    weights (keys,): None where the layers are not captured. seen: how many keys it sees.
    top: the strongest keys, position and weight, strongest first.
    """

    head: HeadId | None
    weights: Floats | None
    seen: int
    signed: bool
    top: tuple[tuple[int, float], ...]
    name: str
    role: str
    small: Thumb | None

    @property
    def most(self) -> float:
        """The largest weight by magnitude."""
        return float(np.abs(self.weights).max(initial=0)) if self.weights is not None else 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything the picture says about one letter. chips: one per crossing, "" for none."""

    token: int
    looks: tuple[Look, ...]
    chips: tuple[str, ...]
    together: Floats | None
    sentence: str
    verdict: Verdict
    level: int = 0

    @property
    def expected(self) -> tuple[tuple[str, float], ...]:
        """What the model says in the end, the likeliest first."""
        return self.verdict.answers


@dataclass(frozen=True, slots=True)
class Wish:
    """The heads to follow: the selected one, those opened last, and what is known of all."""

    selection: Selection
    opened: Mapping[int, HeadId]
    facts: Mapping[HeadId, HeadFacts]


def follow(
    capture: Capture,
    way: Sequence[Stage],
    token: int,
    wish: Wish,
    name_of: Callable[[int], str],
) -> Task[Trace]:
    """Read one row per stage, then compose all levels for this one letter.

    The steps carry the trace without its last row as soon as it is there: that row takes longest.
    """
    looks, chips = [], []
    for number, stage in enumerate(way):
        yield Step(number, len(way) + 1, "following")
        looks.append(_look(capture, stage, token, wish))
        if number:
            chips.append(_chip(capture, way[number - 1], stage, token))
    level = way[0].own if way else 0
    main = capture.prompt_of(level) is capture.main
    told = of_token(capture, token, name_of) if main else of_text(capture)
    first = Trace(token, tuple(looks), tuple(chips), None, "", told, level)
    yield Step(len(way), len(way) + 1, "composing all levels", first)
    task = _together(capture, token, level)
    while True:
        try:
            next(task)
        except StopIteration as end:
            together, sentence = end.value
            return replace(first, together=together, sentence=sentence)
        # Again with the value: of steps that come fast only the newest is told.
        yield Step(len(way), len(way) + 1, "composing all levels", first)


def quoted(text: str) -> str:
    """A piece of text in a sentence: in quotation marks, or a word for what cannot be seen."""
    return tr(UNSEEN[text]) if text in UNSEEN else f"“{shown(text, 12)}”"


# --- one stage ------------------------------------------------------------------------------------


def _look(capture: Capture, stage: Stage, token: int, wish: Wish) -> Look:
    heads = [
        HeadId(index, head)
        for index in stage.layers
        if capture.maps[index] is not None
        for head in capture.spec.layers[index].heads
        if HeadId(index, head) not in capture.off
    ]
    if not heads:
        why = "" if stage.kind == "text" else tr("not captured")
        return Look(None, None, 0, False, (), "", why, None)
    head = chosen(heads, stage, wish)
    facts, layer = wish.facts.get(head), capture.spec.layers[head.layer]
    row = capture.position(stage.own, token)
    weights = _row(capture, head, row)
    causal = capture.spec.layers[stage.layers[0]].causal
    seen = min(row + 1, len(weights)) if causal else len(weights)
    order = np.argsort(-np.abs(weights), kind="stable")[:ARCS]
    return Look(
        head, weights, seen, signs.signed(capture, head),
        tuple((int(key), float(weights[key])) for key in order if weights[key] != 0),
        tr("head {head}", head=head), tr(facts.role) if facts is not None else "",
        thumb(capture, _map(capture, head.layer), layer, head.head),
    )  # fmt: skip


def chosen(heads: Sequence[HeadId], stage: Stage, wish: Wish) -> HeadId:
    """The selected head, the one last opened at this level, or the one with the clearest role."""
    for one in (wish.selection.head_id, wish.opened.get(stage.level)):
        if one in heads:
            return one
    return max(heads, key=lambda one: wish.facts[one].clarity if one in wish.facts else 0.0)


def _map(capture: Capture, layer: int) -> Map:
    found = capture.maps[layer]
    assert found is not None  # only heads of captured layers are asked for
    return found


def _row(capture: Capture, head: HeadId, row: int) -> Floats:
    read: Floats = _map(capture, head.layer).read(head.head, rows=(row, row + 1))[0]
    return read


# --- between two stages ---------------------------------------------------------------------------


def _chip(capture: Capture, before: Stage, stage: Stage, token: int) -> str:
    """How resampling weighed, in a few words."""
    if stage.level == before.level or stage.beside:
        return ""
    mine, other = (capture.spec.levels[one.level] for one in (stage, before))
    inward = words.coarseness(mine) > words.coarseness(other)
    said = _weighed(capture, before, stage, token, inward)
    spans, position = capture.spans[stage.level], capture.position(stage.level, token)
    if inward and not spans[position, 0] <= token < spans[position, 1]:
        where = "{name} is left out" if mine.apart else "{name} joins the next"
        if mine.stride is None and position + 1 == len(spans):
            where = "{name} is in no segment yet"
        said += f"; {tr(where, name=quoted(capture.prompt.label(token)))}"
    return said


def _weighed(capture: Capture, before: Stage, stage: Stage, token: int, inward: bool) -> str:
    index = stage.entries[-1] if stage.entries else None
    if index is not None and capture.spec.layers[index].level != stage.level:
        index = None  # of a level between, that nothing stays at
    if index is None or capture.maps[index] is None or not capture.spec.layers[index].heads:
        return _pooled(capture, stage, token) if inward else _given(capture, before, stage, token)
    layer = capture.spec.layers[index]
    if layer.window is not None and layer.role == "up":
        return _given(capture, before, stage, token)
    weights = np.mean(
        [_row(capture, HeadId(index, head), capture.row(index, token)) for head in layer.heads],
        axis=0,
    )
    own = _text(capture, capture.query_spans(index)[capture.row(index, token)])
    keys = capture.key_spans(index)
    if layer.window is not None:
        start = capture.row(index, token) * layer.window
        parts = range(start, min(start + layer.window, len(weights)))
        said = [f"{_text(capture, keys[c])} {words.weight(float(weights[c]))}" for c in parts]
        return " + ".join(said[-4:])
    best = int(np.abs(weights).argmax())
    return tr("{name} takes most from {other} {weight}", name=own,
              other=_text(capture, keys[best]), weight=words.weight(weights[best]))  # fmt: skip


def _pooled(capture: Capture, stage: Stage, token: int) -> str:
    """What one position was made of, where no attention weighed it."""
    start, end = (int(o) for o in capture.spans[stage.level][capture.position(stage.level, token)])
    if end - start > 4:
        return _text(capture, np.array([start, end]))
    return " + ".join(quoted(capture.prompt.label(one)) for one in range(start, end))


def _given(capture: Capture, before: Stage, stage: Stage, token: int) -> str:
    """Who receives a shortened position."""
    spans, prompt = capture.spans, capture.prompt
    mine = capture.position(before.level, token)
    source = _text(capture, spans[before.level][mine])
    position = capture.position(stage.level, token)
    own = _text(capture, spans[stage.level][position])
    upper, lower = (capture.spec.levels[one.level].stride for one in (before, stage))
    plain = tr("{source} goes to {name}", source=source, name=own)
    if not upper or not lower:
        return plain
    times, apart = upper // lower, capture.spec.levels[before.level].apart
    more = (times - 1) * lower
    if (position - apart) // times + apart != mine:
        return tr("{name} was left out and gets nothing back", name=own)
    if position < apart:
        return plain
    if (position - apart) % times:
        return tr("{source} goes to {name} and {many} more", source=source, name=own,
                  many=words.number(times - 1))  # fmt: skip
    following = tr(prompt.unit) if more == 1 else words.number(more)
    return tr("{source} goes to {name} and the next {many}", source=source, name=own,
              many=following)  # fmt: skip


def _text(capture: Capture, span: Floats) -> str:
    start, end = (int(one) for one in span)
    if start < 0:
        return tr("the empty start")
    return quoted(capture.prompt.words(start, end) or capture.prompt.label(start))


# --- all levels together --------------------------------------------------------------------------


def _together(capture: Capture, token: int, level: int) -> Task[tuple[Floats | None, str]]:
    prompt = capture.prompt_of(level)
    if prompt is not capture.main:
        return None, tr("All maps together lead to the target: choose one of its tokens.")
    try:
        rows = yield from tasks.rollout(capture, (token, token + 1))
    except HgvizError as error:
        return None, " ".join(map(tr, error.lines))
    before = rows.shape[1] - len(prompt)  # columns of the source come first
    found, source = rows[0][before:], rows[0][:before]
    said = [tr("itself {share}", share=words.weight(float(found[token])))]
    said += _sources(prompt, found, token, SOURCES - int(before > 0))
    if before:
        share = words.weight(float(source.sum(dtype=np.float64)))
        best = ", ".join(_sources(capture.prompt, source, None, 2))
        said.append(tr("the source {share} ({best})", share=share, best=best))
    told = "All maps multiplied, residual paths included. Where the answer comes from: {sources}."
    return found, tr(told, sources=", ".join(said))


def _sources(prompt: Prompt, found: Floats, token: int | None, most: int) -> list[str]:
    """The tokens that most of an answer comes from, with their shares."""
    spans = word_spans(prompt)
    order = [int(one) for one in np.argsort(-found, kind="stable") if found[one] > 0]
    return [
        f"{_in_word(prompt, spans, one)} {words.weight(float(found[one]))}"
        for one in [key for key in order if key != token][:most]
    ]


def _in_word(prompt: Prompt, spans: np.ndarray, token: int) -> str:
    at = word_at(spans, token)
    label = prompt.label(token)
    if at is None or prompt.spans[token, 0] < 0:
        return quoted(label)
    word = prompt.words(*at).strip()
    if word == label.strip():
        return quoted(label)
    return tr("{name} of {word}", name=quoted(label), word=quoted(word))
