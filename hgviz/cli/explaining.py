"""The verb that says where an answer comes from."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    DRAWN,
    Activation,
    AsJson,
    BesideNumbers,
    Checkpoint,
    Device,
    FigureTitle,
    FigureWidth,
    Off,
    Target,
    TextPair,
    ends_in,
    require_drawable,
    require_unread,
)
from hgviz.errors import require
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.core import Capture, HeadId, Prompt
    from hgviz.models.model import Model
    from hgviz.tasks.explaining import Attribution, KeyScores, Question

Method = Literal["tokens", "layers", "heads", "attention"]


def attribute(
    model: Checkpoint,
    text: Annotated[str | None, typer.Option(metavar="T", help="The text itself.")] = None,
    text_pair: TextPair = None,
    target: Target = None,
    text_file: Annotated[Path | None, typer.Option(metavar="F", help="Text in UTF-8.")] = None,
    ids: Annotated[
        Path | None, typer.Option(metavar="F.json", help="Ids, as hgviz capture reads them.")
    ] = None,
    target_class: Annotated[
        list[str] | None,
        typer.Option(
            metavar="C",
            help="Of a classifier: its name or number; else the likeliest. Of a figure several.",
        ),
    ] = None,
    token: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Of a language model: what it says at this token; the last."
        ),
    ] = None,
    says: Annotated[
        list[str] | None,
        typer.Option(
            metavar="T|ID",
            help="Which token it says there; else what follows, or the likeliest at the end. Of a "
            "figure several.",
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            help="tokens, layers: integrated gradients; heads: conductance; attention: one head's "
            "weights beside gradient x attention."
        ),
    ] = "tokens",
    head: Annotated[
        str, typer.Option(metavar="3.5", help="Which head --method attention is about.")
    ] = "0.0",
    query: Annotated[
        int | None,
        typer.Option(metavar="Q", min=0, help="The token it looks from; else --token, or all."),
    ] = None,
    steps: Annotated[int, typer.Option(metavar="S", min=2, help="Points of the path.")] = 256,
    baseline: Annotated[
        Literal["mean", "blank", "zero"],
        typer.Option(help="Where the path begins: the average token, a mask or space, nothing."),
    ] = "blank",
    off: Off = "",
    activation: Activation = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf|.json",
            callback=ends_in(".json", *DRAWN),
            help="Where to: a figure for a paper (.pdf, .svg, .png, .pgf), its numbers "
            "(.csv), or all that is known (.json).",
        ),
    ] = None,
    width: FigureWidth = "neurips",
    title: FigureTitle = None,
    numbers: BesideNumbers = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Attribute one output of a model to its tokens, layers or heads, by captum.

    Attributions add up to the change of the answer between a text that says nothing and this one,
    up to the error that is told; more steps make it smaller.
    """
    from hgviz import tasks
    from hgviz.core import Display
    from hgviz.figures import Spec, points

    if sum(one is not None for one in (text, text_file, ids)) != 1:
        raise typer.BadParameter("Give exactly one of --text, --text-file and --ids.")
    if ids is not None and (text_pair is not None or target is not None):
        raise typer.BadParameter("--text-pair and --target go with a text; --ids holds them all.")
    drawn = out is not None and out.name.lower().endswith(DRAWN)
    require_unread(out, model, text_file, ids)
    require_drawable(out if drawn else None, model, text_file, ids, numbers=numbers)
    if drawn:
        points(width)  # before any work
    named = list(dict.fromkeys([*(target_class or ()), *(says or ())])) or [None]
    if len(named) > 1 and not (drawn and method == "tokens"):
        raise typer.BadParameter("Several answers are for a figure of tokens: -o FIG.pdf.")
    loaded = terminal.run(
        partial(tasks.load, model, device, activation=activation), f"Opening {model.name}"
    )
    chosen = tasks.heads_from(off, loaded.spec)
    one = _head(head, loaded) if method == "attention" else None
    given = tasks.prompt_from(loaded, text, text_file, ids, text_pair, target)
    seen = terminal.run(
        partial(tasks.capture, loaded, given[0], off=chosen, target=given[1]), "Reading"
    )
    questions = [
        _question(loaded, seen, name if target_class else None, token, name if says else None,
                  steps, baseline)
        for name in named
    ]  # fmt: skip
    question = questions[0]
    at = query if query is not None else question.position
    if one is not None and at is not None and at >= (count := len(seen.query_prompt(one.layer))):
        raise typer.BadParameter(f"The text has {count:,} tokens, from 0; there is no token {at}.")
    every = [
        terminal.run(
            partial(
                tasks.explain, loaded, *_ordered(given, each), chosen, layers=method == "layers"
            ),
            "Attributing",
        )
        for each in questions
    ]
    found = every[0]
    facts = _facts(loaded, found, seen.main, model, method)
    beside = None
    if one is not None:
        beside = terminal.run(partial(tasks.head_beside, found, seen, one, at), "Reading the head")
        facts |= {"head": str(one), "query": at, "agreement": _agreement(beside)}
    rows = tasks.attribution_rows(found, seen, method, beside)
    facts[ROWS[method]] = rows
    if drawn and out is not None:
        classes = loaded.spec.goal == "classes"
        panel = tasks.attribution_panel(
            Spec("attribution", display=Display(scale="linear"), width=width, title=title),
            found, seen, method,
            says=facts["answer"].get("says", ""), beside=beside, query=at,
            given=_given(text, text_file, ids, text_pair, target, activation), model=str(model),
            others=[
                (each, "" if classes else tasks.said_by(loaded, each.question.number))
                for each in every[1:]
            ],
        )  # fmt: skip
        terminal.run(partial(tasks.draw, panel, out, numbers=numbers), "Drawing")
    elif out is not None:
        terminal.write_facts(out, facts, rows)
    if as_json:
        print(json.dumps(facts))
    elif out is None:
        terminal.show(facts)
    else:
        table = out.name.lower().endswith((".json", ".csv"))
        size = counted(len(every) * len(rows), "row")
        what = size if table else "where the answer comes from"
        terminal.say(f"{out}: {what}.")


def _given(
    text: str | None,
    text_file: Path | None,
    ids: Path | None,
    pair: str | None,
    target: str | None,
    activation: str | None,
) -> tuple[str, ...]:
    """What the model was given, as words of a command; files are named without their folders."""
    given = {
        "--text": text, "--text-file": None if text_file is None else text_file.name,
        "--ids": None if ids is None else ids.name,
        "--text-pair": pair, "--target": target, "--activation": activation,
    }  # fmt: skip
    return tuple(word for name, value in given.items() if value is not None
                 for word in (name, value))  # fmt: skip


ROWS = {"tokens": "tokens", "layers": "layers", "heads": "heads", "attention": "keys"}


def _ordered(given: Any, question: Question) -> tuple[Prompt, Question, Prompt | None]:
    return given[0], question, given[1]


def _head(name: str, model: Model) -> HeadId:
    from hgviz import tasks

    found = tasks.heads_from(name, model.spec)
    if len(found) != 1:
        raise typer.BadParameter("--head names one head, such as 3.5.")
    return next(iter(found))


def _question(
    model: Model,
    seen: Capture,
    label: str | None,
    token: int | None,
    says: str | None,
    steps: int,
    baseline: str,
) -> Question:
    """What is asked, by names or numbers. Errors: HgvizError, BadParameter for none such."""
    from dataclasses import replace

    from hgviz import tasks
    from hgviz.tasks.explaining import Question

    goal, classes = model.spec.goal, model.spec.goal == "classes"
    require(
        goal != "states",
        "this model gives hidden states, no answer: "
        "an attribution says where one number comes from",
        "Open the model with its classifier or its language model",
    )
    if classes and (token is not None or says is not None):
        raise typer.BadParameter("--token and --says are for language models; use --target-class.")
    if not classes and label is not None:
        raise typer.BadParameter("--target-class is for classifiers; use --token and --says.")
    if token is not None and token >= len(seen.main):
        raise typer.BadParameter(f"The text has {len(seen.main):,} tokens, from 0; there is no "
                                 f"token {token}.")  # fmt: skip
    found = tasks.question_of(goal, seen.logits, seen.main, token)
    assert found is not None
    if label is not None:
        found = Question(_class(model, label))
    if says is not None:
        found = replace(found, number=_said(model, says))
    return replace(found, steps=steps, baseline=baseline)


def _class(model: Model, name: str) -> int:
    labels = model.spec.labels
    if name in labels:
        return labels.index(name)
    if name.isdecimal() and int(name) < len(labels):
        return int(name)
    raise typer.BadParameter(f"There is no class {name!r}; there are {', '.join(labels)}.")


def _said(model: Model, name: str) -> int:
    if name.isdecimal() and len(name) > 1 and int(name) < model.spec.vocabulary:
        return int(name)
    prompt = model.tokenizer.encode(name)
    real = [int(one) for one, (start, _) in zip(prompt.ids, prompt.spans, strict=True)
            if start >= 0]  # fmt: skip
    if len(real) != 1:
        raise typer.BadParameter(f"{name!r} is {len(real)} tokens; --says takes one, or its id.")
    return real[0]


def _facts(
    model: Model, found: Attribution, prompt: Prompt, path: Path, method: str
) -> dict[str, Any]:
    """What was asked and how well it was answered."""
    from hgviz import tasks

    question = found.question
    if question.position is None:
        answer = {"class": question.number, "label": model.spec.labels[question.number]}
    else:
        answer = {
            "at": question.position, "after": prompt.label(question.position),
            "token": question.number, "says": tasks.said_by(model, question.number),
        }  # fmt: skip
    return {
        "model": path.name, "method": method, "answer": answer, "steps": question.steps,
        "baseline": question.baseline, "value": found.value, "start": found.start,
        "change": found.change, "sum": found.total,
        "error": None if math.isinf(found.error) else found.error,
    }  # fmt: skip


def _agreement(beside: KeyScores) -> dict[str, float | None]:
    """Spearman's rank correlations of sizes."""
    pairs = "attention_and_gradient", "attention_and_tokens", "gradient_and_tokens"
    told = (None if math.isnan(one) else one for one in beside.agreements)
    return dict(zip(pairs, told, strict=True))
