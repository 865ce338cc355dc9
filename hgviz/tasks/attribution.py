"""Attribution of an answer to tokens, layers, heads and keys: its numbers, table and figure.

Attention is not explanation (Jain and Wallace 2019): `KeyScores.agreements` are rank correlations
of what a head attends to and of what the answer comes from, over the keys that a query sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import spearman
from hgviz.core import (
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    ModelSpec,
    Prompt,
    progress,
    progress_within,
    token_text,
)
from hgviz.errors import require
from hgviz.figures.spec import Panel, Spec, bare_name, option_words
from hgviz.language import decimals, join_words
from hgviz.tasks.captures import read_prompts, require_attention

if TYPE_CHECKING:
    from hgviz.models.model import Model

Method = Literal["tokens", "layers", "heads", "attention"]
Doubles = NDArray[np.float64]

ROWS = 256  # of a map that are read at a time
LAYER_STEPS = 4  # layers are integrated one by one, each with so many times fewer steps
LEAST_STEPS = 16
BASELINE = "blank"  # the default
MOST_KEYS = 32  # that a figure shows
COLUMNS = {  # of KeyScores, with their titles in a figure
    "attention": "Attention",
    "gradient_x_attention": "Gradient × attention",
    "integrated_gradients": "Integrated gradients",
}
BASELINES = {"mean": "the mean embedding", "blank": "blank tokens", "zero": "zeros"}


@dataclass(frozen=True, slots=True)
class Question:
    """Which number of a model's output is attributed, and along which path.

    number: a class, or the id of a token at a position; position is None for classes. steps: points
    of the path, 0 for as many as it takes to be complete. baseline: where it begins, one of
    BASELINES.
    """

    number: int
    position: int | None = None
    steps: int = 0
    baseline: str = BASELINE


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """What an answer comes from.

    value, start: the answer for the text and at the beginning of the path. tokens (n,): integrated
    gradients of the text that the model answers about; source (m,): of the text that its decoder
    looks at, None without one. heads: conductance. layers: integrated gradients of the output of
    every layer that attends, None where they were not asked for. slopes: models.attribution's
    gradients of the answer by the weights of each head. steps: points of the path of tokens.
    """

    question: Question
    prompt: Prompt
    target: Prompt | None
    off: HeadSet
    value: float
    start: float
    tokens: Doubles
    source: Doubles | None
    heads: dict[HeadId, float]
    layers: dict[int, float] | None = None
    slopes: Any = None
    steps: int = 0

    @property
    def change(self) -> float:
        """The sum that the attributions of all tokens would have with infinitely many steps."""
        return self.value - self.start

    @property
    def total(self) -> float:
        """The sum that they have."""
        return float(self.tokens.sum()) + (0.0 if self.source is None else float(self.source.sum()))

    @property
    def error(self) -> float:
        """|total - change| / |change|; 0 where both are 0."""
        missing = abs(self.total - self.change)
        return missing / abs(self.change) if self.change else math.inf if missing else 0.0

    def is_of(self, capture: Capture) -> bool:
        """Whether it is about the text of a capture, with the same heads off and none streaming."""

        return (
            self.prompt.digest == capture.prompt.digest
            and _digest(self.target) == _digest(capture.target)
            and self.off == capture.off
            and not capture.streaming.heads
        )

    def by_key(self, capture: Capture, layer: int) -> Doubles | None:
        """The sums (keys,) of the tokens behind each key of a layer; NaN for padding.

        None where the keys are no tokens.
        """
        side = capture.spec.levels[capture.spec.layers[layer].key_level].sequence
        values = self.source if self.target is not None and side == "source" else self.tokens
        if side == "slots" or values is None:
            return None
        spans = capture.key_spans(layer)
        sums = np.concatenate([[0.0], np.cumsum(values)])
        start, end = spans.clip(0, len(values)).T
        return np.where(spans[:, 0] >= 0, sums[end] - sums[start], np.nan)

    def by_text(self, capture: Capture) -> list[tuple[str, Prompt, Doubles]]:
        """The name of each text, "" for a single one, the text and the values of its tokens."""
        if capture.target is not None and self.source is not None:
            return [
                ("target", capture.target, self.tokens),
                ("source", capture.prompt, self.source),
            ]
        return [("", capture.main, self.tokens)]


@dataclass(frozen=True, slots=True, eq=False)
class KeyScores:
    """The keys that a query sees in one head, or that all queries see (row None).

    columns (keys,): their columns in the map. attention (keys,): weights, the mean over all
    queries. slope (keys,): gradient times attention, the sum over queries. tokens (keys,):
    integrated gradients of the tokens behind each key, None where the keys are no tokens.
    """

    head: HeadId
    row: int | None
    columns: Integers
    attention: Doubles
    slope: Doubles
    tokens: Doubles | None

    @property
    def values(self) -> tuple[Doubles, Doubles, Doubles | None]:
        """In the order of COLUMNS."""
        return self.attention, self.slope, self.tokens

    @property
    def agreements(self) -> tuple[float, float, float]:
        """Spearman's rank correlation of the sizes of attention and slope, attention and tokens,
        slope and tokens; NaN where there are too few keys."""

        def agreement(x: Doubles, y: Doubles | None) -> float:
            return math.nan if y is None else spearman(np.abs(x), np.abs(y))

        attention, slope, tokens = self.values
        return agreement(attention, slope), agreement(attention, tokens), agreement(slope, tokens)


def _digest(prompt: Prompt | None) -> str:
    return "" if prompt is None else prompt.digest


def default_question(
    goal: str, logits: np.ndarray | None, prompt: Prompt, position: int | None
) -> Question | None:
    """The question where none is asked: the predicted class; the token that follows in the text or,
    at its end and of masked models, the predicted token. None for models without such answers."""
    if logits is None or goal == "states":
        return None
    if goal == "classes":
        return Question(int(np.argmax(logits)))
    at = prompt.last if position is None else min(position, len(prompt) - 1)
    follows = goal == "next" and at + 1 < len(prompt)
    return Question(int(prompt.ids[at + 1]) if follows else int(np.argmax(logits[at])), at)


def attribute(
    model: Model,
    prompt: Prompt,
    question: Question,
    target: Prompt | None = None,
    off: HeadSet = frozenset(),
    layers: bool = False,
) -> Attribution:
    """Attribute an answer to tokens and heads, and with layers also to layers.

    The progress carries what is ready. Raises HgvizError for an answer that does not exist, and for
    a model without attention or without answers.
    """
    from hgviz.models.attribution import AnswerLogit, AttributionPath, ScoreGradients

    require_attention(model.spec)
    progress(0, 1, "reading the text")
    answer = AnswerLogit(question.number, question.position)
    path = AttributionPath(model, prompt, answer, target, question.baseline, off)
    tokens_done = 0.4 if layers else 0.9  # share of the work
    with progress_within(0.0, tokens_done, 1.0):
        steps = question.steps
        integral = path.integrate(steps) if steps else path.integrate_until_complete()
    progress(tokens_done, 1, "gradients of every head")
    slopes = ScoreGradients(model.module, model.tokens(prompt, target), answer, off)
    attribution = Attribution(
        question, prompt, target, off, integral.value, integral.baseline, integral.tokens,
        integral.source, dict(zip(model.spec.heads, integral.heads.tolist(), strict=True)),
        slopes=slopes, steps=integral.steps,
    )  # fmt: skip
    if not layers:
        return attribution
    progress(tokens_done, 1, "integrating each layer", attribution)
    with progress_within(tokens_done, 1.0, 1.0):
        values = path.integrate_layers(steps and max(LEAST_STEPS, steps // LAYER_STEPS))
    indices = (layer.layer.index for layer in path.layers)
    return replace(attribution, layers=dict(zip(indices, values.tolist(), strict=True)))


def key_scores(
    attribution: Attribution, capture: Capture, head: HeadId, query: int | None
) -> KeyScores:
    """The keys of a head for a query (a token), or for all queries.

    Raises HgvizError for a layer that is not captured yet.
    """
    maps = capture.maps[head.layer]
    if maps is None:
        raise HgvizError(f"layer {head.layer} is not captured yet", "Wait until it is")
    row = None if query is None else capture.row(head.layer, query)
    rows = range(maps.shape[1]) if row is None else range(row, row + 1)
    keys = maps.shape[2]
    attention, slope, is_seen = np.zeros(keys), np.zeros(keys), np.zeros(keys, bool)
    for start in range(rows.start, rows.stop, ROWS):
        block = range(start, min(start + ROWS, rows.stop))
        slopes = attribution.slopes.head(head, block)
        weights = maps.read(head.head, (block.start, block.stop))
        attention += weights.sum(axis=0, dtype=np.float64) / len(rows)
        slope += (slopes.weights * slopes.at_weights)[0].sum(axis=0, dtype=np.float64)
        is_seen |= slopes.seen.any(axis=0)
        progress(block.stop - rows.start, len(rows), "reading the head")
    columns = np.flatnonzero(is_seen & (capture.key_spans(head.layer)[:, 0] >= 0))
    tokens = attribution.by_key(capture, head.layer)
    return KeyScores(
        head, row, columns, attention[columns], slope[columns],
        None if tokens is None else tokens[columns],
    )  # fmt: skip


# --- table ----------------------------------------------------------------------------------------


def attribution_rows(
    attribution: Attribution, capture: Capture, method: Method, keys: KeyScores | None = None
) -> list[dict[str, Any]]:
    """A row for each token, layer, head or key; keys: of the method attention."""
    if keys is not None:
        prompt, spans = capture.key_prompt(keys.head.layer), capture.key_spans(keys.head.layer)
        return [
            {
                "column": column,
                "text": prompt.words(*spans[column].tolist()) or prompt.label(spans[column, 0]),
                **{
                    name: None if values is None else float(values[index])
                    for name, values in zip(COLUMNS, keys.values, strict=True)
                },
            }
            for index, column in enumerate(keys.columns.tolist())
        ]
    if method == "heads":
        return [
            {"head": str(head), "conductance": value} for head, value in attribution.heads.items()
        ]
    if method == "layers":
        return [
            {"layer": index, "name": capture.spec.layers[index].name, "attribution": value}
            for index, value in (attribution.layers or {}).items()
        ]
    return [
        {"side": side, "token": index, "text": prompt.label(index), "attribution": float(value)}
        for side, prompt, values in attribution.by_text(capture)
        for index, value in enumerate(values)
    ]


# --- figure ---------------------------------------------------------------------------------------


def attribution_panel(
    spec: Spec,
    answers: Sequence[tuple[Attribution, str]],
    capture: Capture,
    method: Method,
    *,
    keys: KeyScores | None = None,
    query: int | None = None,
    given: Sequence[str] = (),
    model: str = "",
) -> Panel:
    """A figure of one answer, or of several answers by the tokens of the same text.

    Args:
        answers: each with the text of its token, "" for classes.
        keys: of the method attention; query: the token it is of, None for all.
        given: the options of the command line that give the model its text (see prompt_options).
        model: the path of the checkpoint.

    Raises HgvizError for layers that were not attributed, and for attention without keys.
    """
    from hgviz.figures.attribution import Answer, KeyBars, Share
    from hgviz.tasks.charts import places_of

    first = answers[0][0]
    what = "the layers were not attributed: each needs its own integrated gradients"
    require(method != "layers" or first.layers, what, "Attribute with layers=True")
    what = "no head is chosen to compare its attention with gradients"
    require(method != "attention" or keys is not None, what, "Name a head")
    named: dict[str, Attribution] = {}
    for attribution, text in answers:
        name = _answer_name(attribution.question, capture.spec, text)
        named[f"{name}, {attribution.question.number}" if name in named else name] = attribution
    is_single, goal = len(named) == 1, capture.spec.goal
    rows = [
        {**({} if is_single else {"answer": name}), **row}
        for name, attribution in named.items()
        for row in attribution_rows(attribution, capture, method, keys)
    ]
    parts: dict[str, Any] = {}
    if keys is not None:
        strongest = _strongest_keys(keys)
        parts["keys"] = KeyBars(
            capture.key_prompt(keys.head.layer),
            capture.key_spans(keys.head.layer)[keys.columns[strongest]],
            tuple(
                (title, values[strongest])
                for title, values in zip(COLUMNS.values(), keys.values, strict=True)
                if values is not None
            ),
        )
    elif method == "tokens":
        parts["texts"] = tuple(
            Share(
                ", ".join(filter(None, ("" if is_single else f"“{name}”", side))),
                prompt,
                # the next token depends on those up to its own
                values[: at + 1] if at is not None and goal == "next" and side != "source"
                else values,
            )
            for name, attribution in named.items()
            for at in (attribution.question.position,)
            for side, prompt, values in attribution.by_text(capture)
        )  # fmt: skip
    else:
        parts[method] = getattr(first, method)
        parts["places"] = tuple(places_of(capture))
    at = first.question.position
    after = "" if at is None else f" after “{capture.main.label(at)}”"
    attributions = list(named.values())

    def cell(value: Any) -> Any:
        if value is None:
            return math.nan
        return value if isinstance(value, str | float) else str(value)

    content = Answer(
        off=first.off,
        asked=command_words(attributions, capture.spec, method, keys, query, given),
        table=(*map(tuple, rows[:1]), *(tuple(map(cell, row.values())) for row in rows)),
        title=f"Attribution of {join_words(f'“{name}”' for name in named)}{after}",
        more={
            "tokens": "integrated gradients",
            "layers": "integrated gradients of each layer",
            "heads": "conductance of each head",
            "attention": f"head {keys.head}" if keys is not None else "",
        }[method],
        notes=tuple(_notes(named, method, keys)),
        about=_about(attributions, capture, method),
        **parts,
    )
    return Panel(spec, content, (model,))


def _answer_name(question: Question, spec: ModelSpec, text: str) -> str:
    if question.position is not None:
        return text or f"token {question.number}"
    has_label = question.number < len(spec.labels)
    return spec.labels[question.number] if has_label else str(question.number)


def _strongest_keys(keys: KeyScores) -> np.ndarray:
    """The places of the keys that are among the largest of any column, in the order of the text."""
    sizes = [np.abs(values) for values in keys.values if values is not None]
    shares = [values / (np.nanmax(values, initial=0.0) or 1.0) for values in sizes]
    most = np.nan_to_num(np.max(shares, axis=0))
    strongest: np.ndarray = np.sort(np.argsort(-most, kind="stable")[:MOST_KEYS])
    return strongest


def _notes(named: Mapping[str, Attribution], method: Method, keys: KeyScores | None) -> list[str]:
    notes, first = [], next(iter(named.values()))
    if keys is not None:
        if len(keys.columns) > MOST_KEYS:
            notes.append(f"The {MOST_KEYS} most important keys of {len(keys.columns):,}.")
        names = ("gradient × attention", "integrated gradients")
        agreements = ", ".join(
            f"{decimals(value, signed=True)} with {name}"
            for value, name in zip(keys.agreements, names, strict=False)
            if not math.isnan(value)
        )
        if agreements:
            notes.append(f"Rank correlation of attention (Spearman, of magnitudes): {agreements}.")
    if method == "layers":
        notes.append(
            "Each layer by itself: the change of the output without the layer's attention in this "
            "text; these do not add up."
        )
    if first.off:
        notes.append(f"Switched off: {', '.join(map(str, sorted(first.off)))}.")
    if len(named) == 1:
        return [*notes, completeness(first)]
    return [*notes, *(f"“{name}”: {completeness(answer)}" for name, answer in named.items())]


def completeness(attribution: Attribution) -> str:
    """The sum of the tokens, the change of the output and the completeness error, as a sentence."""
    size = 100 * attribution.error
    percent = f"{size:.2g} %" if size < 99.5 else f"{size:,.0f} %"
    if size < 1e-3 or math.isinf(size):
        percent = "less than 0.001 %" if size < 1e-3 else "100 %"
    question = attribution.question
    return (
        f"The tokens add up to {decimals(attribution.total, 3, signed=True)}; the output changes "
        f"by {decimals(attribution.change, 3, signed=True)}, from {decimals(attribution.start, 3)} "
        f"with {BASELINES[question.baseline]} to {decimals(attribution.value, 3)}: "
        f"completeness error {percent} after {attribution.steps:,} steps."
    )


def _about(attributions: Sequence[Attribution], capture: Capture, method: Method) -> dict[str, str]:
    """What identifies the figure, for the metadata of its file."""
    first = attributions[0]
    question = first.question
    return {
        "model": bare_name(capture.spec.name),
        "checkpoint": capture.spec.digest,
        "method": method,
        "answer": ", ".join(str(answer.question.number) for answer in attributions),
        "position": "" if question.position is None else str(question.position),
        "path": f"{first.steps} steps from {question.baseline}",
        "value": ", ".join(f"{answer.value:.4g}" for answer in attributions),
        "start": ", ".join(f"{answer.start:.4g}" for answer in attributions),
        "error": ", ".join(
            "" if math.isinf(answer.error) else f"{answer.error:.2g}" for answer in attributions
        ),
        "text": first.prompt.digest,
        "target": _digest(first.target),
        "off": ", ".join(map(str, sorted(first.off))),
    }


# --- command --------------------------------------------------------------------------------------


def command_words(
    attributions: Sequence[Attribution],
    spec: ModelSpec,
    method: Method,
    keys: KeyScores | None = None,
    query: int | None = None,
    given: Sequence[str] = (),
) -> tuple[str, ...]:
    """What follows the model in the `hgviz attribute` command that makes these attributions."""
    first = attributions[0]
    question = first.question
    # a single digit would be read as that digit
    answers = [
        ("--says", f"{answer.question.number:02d}")
        if question.position is not None
        else ("--target-class", _answer_name(answer.question, spec, ""))
        for answer in attributions
    ]
    options = [
        ("--token", question.position),
        *answers,
        ("--method", None if method == "tokens" else method),
        ("--head", keys and keys.head),
        ("--query", keys and query),
        ("--steps", question.steps or None),
        ("--baseline", None if question.baseline == BASELINE else question.baseline),
        ("--off", ",".join(map(str, sorted(first.off))) or None),
    ]
    return (*(given or ("--ids", "IDS.json")), *option_words(options))


def answer_number(model: Model, name: str) -> int:
    """The number of an answer: a class by its name or number, or a token by its text or id.

    A token's number of two digits or more is its id. Raises HgvizError for another name.
    """
    labels, count = model.spec.labels, model.spec.vocabulary
    if model.spec.goal == "classes":
        if name in labels:
            return labels.index(name)
        require(
            name.isdecimal() and int(name) < len(labels),
            f"there is no class {name!r}: the classes are {', '.join(labels)}",
            "Choose one of them",
        )
        return int(name)
    if name.isdecimal() and len(name) > 1 and int(name) < count:
        return int(name)
    prompt = model.tokenizer.encode(name)
    ids = [int(id_) for id_, (start, _) in zip(prompt.ids, prompt.spans, strict=True) if start >= 0]
    require(len(ids) == 1, f"{name!r} is {len(ids)} tokens, not one", "Give a token ID")
    return ids[0]


def token_name(model: Model, token: int) -> str:
    """The text of a token of a model's vocabulary, or the name of a special token."""
    decoded = model.tokenizer.decode(np.array([token], np.int64))
    return decoded.label(0) if decoded.spans[0, 0] >= 0 else token_text(decoded.pieces[0])


def prompt_options(model: Model | None, capture: Capture) -> tuple[str, ...]:
    """The options of the command line that give a model the text of a capture; none where no
    options do, as for a text that was written token by token."""
    text, second = capture.texts
    pair, target = (second or None, None) if capture.target is None else (None, second)
    if model is None or capture.prompt.states is not None or "\0" in text:
        return ()
    try:
        again = read_prompts(model, text, pair=pair, target=target)
    except HgvizError:
        return ()
    if [*map(_digest, again)] != [*map(_digest, (capture.prompt, capture.target))]:
        return ()
    return option_words([("--text", text), ("--text-pair", pair), ("--target", target)])
