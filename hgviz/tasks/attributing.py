"""Where an answer comes from, as rows of a table and as a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hgviz.core import Capture, HgvizError, token_text
from hgviz.language import decimals

if TYPE_CHECKING:
    from hgviz.core import ModelSpec, Prompt
    from hgviz.figures import Panel, Spec
    from hgviz.models.model import Model
    from hgviz.tasks.explaining import Attribution, KeyScores

Method = Literal["tokens", "layers", "heads", "attention"]
NAMES = ("attention", "gradient_x_attention", "integrated_gradients")
TITLES = ("Attention", "Gradient × attention", "Integrated gradients")
STARTS = {"mean": "the average token", "blank": "blanks", "zero": "nothing"}
STEPS, BASELINE = 256, "blank"  # that the command takes where none are given
MOST = 32  # keys that a figure has


# --- rows -----------------------------------------------------------------------------------------


def attribution_rows(
    found: Attribution, seen: Capture, method: Method, beside: KeyScores | None = None
) -> list[dict[str, Any]]:
    """The numbers of a method, a dictionary for each token, head, layer or key; beside: of the
    method attention."""
    if beside is not None:
        return _keys(beside, seen)
    if method == "heads":
        return [{"head": str(one), "conductance": value} for one, value in found.heads.items()]
    if method == "layers":
        layers = seen.spec.layers
        return [
            {"layer": index, "name": layers[index].name, "attribution": value}
            for index, value in (found.layers or {}).items()
        ]
    return [
        {"side": side, "token": at, "text": prompt.label(at), "attribution": float(value)}
        for side, prompt, values in _texts(found, seen)
        for at, value in enumerate(values)
    ]


def _texts(found: Attribution, seen: Capture) -> list[tuple[str, Prompt, np.ndarray]]:
    if seen.target is not None and found.source is not None:
        return [("target", seen.target, found.tokens), ("source", seen.prompt, found.source)]
    return [("", seen.main, found.tokens)]


def _keys(beside: KeyScores, seen: Capture) -> list[dict[str, Any]]:
    prompt, spans = seen.key_prompt(beside.head.layer), seen.key_spans(beside.head.layer)
    columns: list[Any] = [beside.attention, beside.slope, beside.tokens]
    return [
        {
            "column": column,
            "text": prompt.words(*spans[column].tolist()) or prompt.label(int(spans[column, 0])),
            **{
                name: None if values is None else float(values[at])
                for name, values in zip(NAMES, columns, strict=True)
            },
        }
        for at, column in enumerate(beside.columns.tolist())
    ]


# --- a figure -------------------------------------------------------------------------------------


def attribution_panel(
    spec: Spec,
    found: Attribution,
    seen: Capture,
    method: Method,
    *,
    says: str = "",
    beside: KeyScores | None = None,
    query: int | None = None,
    given: Sequence[str] = (),
    model: str = "",
    others: Sequence[tuple[Attribution, str]] = (),
) -> Panel:
    """A figure of what was found, ready to be drawn.

    says: the token that was asked about, in words; beside: of the method attention, for a
    query where one asks. given: the words of the command line for what was given to the model, as
    given_words has them; model: where it lies. others: of the method tokens, further answers to
    the same text, each with what it says. Errors: HgvizError for layers that nobody walked through.
    """
    from hgviz.figures import Panel
    from hgviz.figures.attribution import Answer, KeyBars, Share
    from hgviz.tasks.profiling import places_of

    if method == "layers" and not found.layers:
        raise HgvizError(
            "the layers were not walked through: each takes a walk of its own", "Ask for them"
        )
    if method == "attention" and beside is None:
        raise HgvizError("no head was read beside its attention", "Name one")
    every: dict[str, Attribution] = {}
    for one, word in ((found, says), *others):
        name = _answer(one, seen, word)
        every[f"{name}, {one.question.number}" if name in every else name] = one
    rows = [
        {**({"answer": answer} if others else {}), **row}
        for answer, one in every.items()
        for row in attribution_rows(one, seen, method, beside)
    ]
    names = list(rows[0]) if rows else []
    table = [tuple(names), *(tuple(_plain(row[name]) for name in names) for row in rows)]
    title, more = _titled(list(every), found, seen, method, beside)
    parts: dict[str, Any] = {}
    if method == "tokens":
        parts["texts"] = tuple(
            Share(_side(answer if others else "", side), prompt, _heard(one, seen, values, side))
            for answer, one in every.items()
            for side, prompt, values in _texts(one, seen)
        )
    elif beside is not None:
        kept = _strongest(beside)
        layer = beside.head.layer
        columns = zip(TITLES, (beside.attention, beside.slope, beside.tokens), strict=True)
        parts["keys"] = KeyBars(
            seen.key_prompt(layer), seen.key_spans(layer)[beside.columns[kept]],
            tuple((name, values[kept]) for name, values in columns if values is not None),
        )  # fmt: skip
    else:
        parts["heads" if method == "heads" else "layers"] = getattr(found, method)
        parts["places"] = tuple(places_of(seen))
    chart = Answer(
        off=found.off,
        asked=asked_words(list(every.values()), seen.spec, method, beside, query, given),
        table=tuple(table), title=title, more=more, notes=tuple(_notes(every, method, beside)),
        about=_about(list(every.values()), seen, method), **parts,
    )  # fmt: skip
    return Panel(spec, chart, (model,))


def _plain(value: Any) -> Any:
    return math.nan if value is None else value if isinstance(value, str | float) else str(value)


def _side(answer: str, side: str) -> str:
    """What a text is called, of several answers or of two texts."""
    return ", ".join(filter(None, (answer and f"“{answer}”", side)))


def _heard(found: Attribution, seen: Capture, values: np.ndarray, side: str) -> np.ndarray:
    """The values of the tokens that the answer hears of: a model of what is next reads no more."""
    question = found.question
    if question.position is None or seen.spec.goal != "next" or side == "source":
        return values
    return values[: question.position + 1]


def _strongest(beside: KeyScores) -> np.ndarray:
    """Of many keys those that some column has among its largest, in the order of the text."""
    sizes = [np.abs(one) for one in (beside.attention, beside.slope, beside.tokens)
             if one is not None]  # fmt: skip
    parts = [one / (np.nanmax(one, initial=0.0) or 1.0) for one in sizes]
    most = np.nan_to_num(np.max(parts, axis=0)) if len(beside.columns) else np.zeros(0)
    found: np.ndarray = np.sort(np.argsort(-most, kind="stable")[:MOST])
    return found


# --- in words -------------------------------------------------------------------------------------


def _answer(found: Attribution, seen: Capture, says: str) -> str:
    """What an answer is called: its class, or the token."""
    question, labels = found.question, seen.spec.labels
    if question.position is not None:
        return says or f"token {question.number}"
    return labels[question.number] if question.number < len(labels) else str(question.number)


def _titled(
    answers: list[str], found: Attribution, seen: Capture, method: Method, beside: KeyScores | None
) -> tuple[str, str]:
    """Which answers, and how it was asked."""
    question = found.question
    where = ""
    if question.position is not None:
        where = f" after “{seen.main.label(question.position)}”"
    how = {
        "tokens": "integrated gradients",
        "layers": "integrated gradients of each layer",
        "heads": "conductance of each head",
        "attention": f"head {beside.head}" if beside is not None else "",
    }[method]
    named = [f"“{one}”" for one in answers]
    if len(named) == 1:
        return f"What {named[0]}{where} comes from", how
    return f"What {', '.join(named[:-1])} and {named[-1]}{where} come from", how


def _notes(every: Mapping[str, Attribution], method: Method, beside: KeyScores | None) -> list[str]:
    notes, found = [], next(iter(every.values()))
    if beside is not None:
        if len(beside.columns) > MOST:
            notes.append(f"The {MOST} keys that count most of {len(beside.columns):,}.")
        rest = ("gradient × attention", "integrated gradients")
        said = [f"{decimals(value, signed=True)} with {name}"
                for value, name in zip(beside.agreements, rest, strict=False)
                if not math.isnan(value)]  # fmt: skip
        if said:
            notes.append(f"Rank correlation of attention (Spearman, of sizes): {', '.join(said)}.")
    if method == "layers":
        notes.append("Each layer by itself: what the answer loses without what the layer attends "
                     "in this text; they do not add up.")  # fmt: skip
    if found.off:
        notes.append(f"Switched off: {', '.join(str(one) for one in sorted(found.off))}.")
    if len(every) == 1:
        return [*notes, complete(found)]
    return [*notes, *(f"“{answer}”: {complete(one)}" for answer, one in every.items())]


def complete(found: Attribution) -> str:
    """How far the sum of the tokens is from what it should be, after how many steps."""
    size = 100 * found.error
    percent = f"{size:.2g} %" if size < 99.5 else f"{size:,.0f} %"
    if size < 1e-3 or math.isinf(size):
        percent = "less than 0.001 %" if size < 1e-3 else "all of it"
    return (
        f"The tokens add up to {decimals(found.total, 3, signed=True)}; the answer changes by "
        f"{decimals(found.change, 3, signed=True)}, from {decimals(found.start, 3)} with "
        f"{STARTS[found.question.baseline]} to {decimals(found.value, 3)}: {percent} is missing "
        f"after {found.question.steps:,} steps."
    )


def _about(every: Sequence[Attribution], seen: Capture, method: Method) -> dict[str, str]:
    from hgviz.figures.spec import bare_name

    found, question = every[0], every[0].question
    return {
        "model": bare_name(seen.spec.name),
        "checkpoint": seen.spec.digest,
        "method": method,
        "answer": ", ".join(str(one.question.number) for one in every),
        "position": "" if question.position is None else str(question.position),
        "path": f"{question.steps} steps from {question.baseline}",
        "value": ", ".join(f"{one.value:.4g}" for one in every),
        "start": ", ".join(f"{one.start:.4g}" for one in every),
        "error": ", ".join("" if math.isinf(one.error) else f"{one.error:.2g}" for one in every),
        "text": found.prompt.digest,
        "target": found.target.digest if found.target is not None else "",
        "off": ", ".join(str(head) for head in sorted(found.off)),
    }


# --- as a command ---------------------------------------------------------------------------------


def asked_words(
    every: Sequence[Attribution],
    spec: ModelSpec,
    method: Method,
    beside: KeyScores | None = None,
    query: int | None = None,
    given: Sequence[str] = (),
) -> tuple[str, ...]:
    """What follows the model in the command that finds it again: what it was given, and what was
    asked of it, one answer or several."""
    found, question = every[0], every[0].question
    words = [*(given or ("--ids", "IDS.json"))]
    words += [] if question.position is None else ["--token", str(question.position)]
    for number in (one.question.number for one in every):
        if question.position is not None:
            words += ["--says", f"{number:02d}"]  # one digit would be read as that digit
        else:
            named = number < len(spec.labels)
            words += ["--target-class", spec.labels[number] if named else str(number)]
    words += [] if method == "tokens" else ["--method", method]
    if beside is not None:
        words += ["--head", str(beside.head)]
        words += [] if query is None else ["--query", str(query)]
    words += [] if question.steps == STEPS else ["--steps", str(question.steps)]
    words += [] if question.baseline == BASELINE else ["--baseline", question.baseline]
    if found.off:
        words += ["--off", ",".join(str(head) for head in sorted(found.off))]
    return tuple(words)


def said_by(model: Model, number: int) -> str:
    """What a token of a model reads, by its id; its name where it is a special token."""
    named = model.tokenizer.decode(np.array([number], np.int64))
    return named.label(0) if named.spans[0, 0] >= 0 else token_text(named.pieces[0])


def given_words(model: Model | None, seen: Capture) -> tuple[str, ...]:
    """The words that give a model the texts of a capture; a stand-in where no words do, as for
    texts that the model wrote itself."""
    from hgviz.models import prompts

    prompt, target = seen.prompt, seen.target
    text, pair = prompt.text, None
    if prompt.token_type_ids is not None and np.any(prompt.token_type_ids) and "\n" in text:
        text, pair = text.split("\n", 1)
    second = None if target is None else target.text
    if model is None or prompt.states is not None or "\0" in text:
        return ()
    try:
        again = prompts.read_prompts(model, text, None, None, pair, second)
    except HgvizError:
        return ()
    same = [
        a is None and b is None or (a is not None and b is not None and a.digest == b.digest)
        for a, b in zip(again, (prompt, target), strict=True)
    ]
    words = ["--text", text]
    words += [] if pair is None else ["--text-pair", pair]
    words += [] if second is None else ["--target", second]
    return tuple(words) if all(same) else ()


__all__ = [
    "MOST", "NAMES", "Method", "asked_words", "attribution_panel", "attribution_rows", "complete",
    "given_words", "said_by",
]  # fmt: skip
