"""The verb that measures how far outputs depend on tokens, and what that costs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    DRAWN,
    AsJson,
    BesideNumbers,
    FigureTitle,
    FigureWidth,
    Target,
    ends_in,
    require_drawable,
)
from hgviz.files import find_sample
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.core import Prompt
    from hgviz.models.model import Model
    from hgviz.tasks.reaching import Times

SHOWN = ("model", "tokens", "causal", "farthest", "below_10_percent", "below_1_percent",
         "zero_from", "lag")  # fmt: skip


def lengths_of(text: str) -> tuple[int, ...]:
    """The numbers of 64,128,256."""
    parts = text.split(",")
    if not all(one.strip().isdecimal() and int(one) for one in parts):
        raise typer.BadParameter(f"{text!r} is no list of lengths, such as 64,128,256.")
    return tuple(sorted({int(one) for one in parts}))


def reach(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...",
            parser=find_sample,
            help="Checkpoints of any family, one or several.",
        ),
    ],
    text: Annotated[str | None, typer.Option(metavar="T", help="The text itself.")] = None,
    target: Target = None,
    text_file: Annotated[Path | None, typer.Option(metavar="F", help="Text in UTF-8.")] = None,
    ids: Annotated[
        Path | None, typer.Option(metavar="F.json", help="Ids, as hgviz capture reads them.")
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="In place of a text: N tokens drawn at random."),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(metavar="64,128,…", help="Also time passes over so many tokens, by turns."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf|.json|.npy",
            callback=ends_in(".json", ".npy", *DRAWN),
            help="Where to: a figure for a paper (.pdf, .svg, .png, .pgf), its numbers "
            "(.csv), all that is known (.json), or the matrix of "
            "one model (.npy).",
        ),
    ] = None,
    width: FigureWidth = "neurips",
    title: FigureTitle = None,
    numbers: BesideNumbers = False,
    as_json: AsJson = False,
) -> None:
    """Measure by gradients which tokens each output of a model depends on.

    Of models that attend and of those that do not: whether any output sees a later token (exactly),
    how far back anything reaches, where it has faded, and beside it what bringing tokens together
    costs by the model's own configuration: steps between the ends of the text, operations in
    sequence, multiply-adds. Each output is followed back by itself, in float64 on the CPU.
    """
    from hgviz import tasks
    from hgviz.figures.spec import Spec, points
    from hgviz.tasks import reaching

    if sum(one is not None for one in (text, text_file, ids, tokens)) != 1:
        raise typer.BadParameter("Give exactly one of --text, --text-file, --ids and --tokens.")
    if target is not None and text is None and text_file is None:
        raise typer.BadParameter("--target goes with a text.")
    wanted = None if lengths is None else lengths_of(lengths)
    ending = "" if out is None else out.name.lower()
    drawn = ending.endswith(DRAWN)
    require_drawable(out if drawn else None, *models, text_file, ids, numbers=numbers)
    if drawn:
        points(width)  # before any work
    if ending.endswith(".npy") and len(models) > 1:
        raise typer.BadParameter("A .npy holds the matrix of one model.")
    opened, found = [], []
    for path in models:
        opening = partial(tasks.load, path, "cpu", "float64")
        model = terminal.run(opening, f"Opening {path.name}")
        given = _given(model, text, text_file, ids, tokens, target)
        found.append(terminal.run(partial(tasks.reach, model, *given), f"Measuring {path.name}"))
        opened.append(model)
    seconds = None if wanted is None else _timed(models, wanted)
    facts = tasks.reach_facts(opened, found, seconds)
    if out is not None and drawn:
        words: dict[str, object] = {
            "--text": text, "--text-file": text_file and text_file.name, "--target": target,
            "--ids": ids and ids.name, "--tokens": tokens, "--lengths": lengths,
        }  # fmt: skip
        asked = [part for name, value in words.items() if value is not None
                 for part in (name, str(value))]  # fmt: skip
        panel = tasks.reach_panel(
            Spec("reach", width=width, title=title), found, seconds, asked, models
        )
        terminal.run(partial(tasks.draw, panel, out, numbers=numbers), "Drawing")
    elif ending.endswith(".npy") and out is not None:
        terminal.write(out, found[0].matrix)
    elif out is not None:
        terminal.write_facts(out, facts, [])
    if as_json:
        print(json.dumps(facts))
    elif out is None:
        shown = [{key: one[key] for key in SHOWN} for one in facts["reach"]]
        terminal.show({**facts, "reach": shown})
        for name, one in zip(reaching.names_of(found), found, strict=True):
            terminal.say(reaching.told(name, one))
    elif not ending.endswith(".npy"):
        terminal.say(f"{out}: how far {counted(len(found), 'model')} reach"
                     f"{'es' if len(found) == 1 else ''}.")  # fmt: skip


def _given(
    model: Model,
    text: str | None,
    text_file: Path | None,
    ids: Path | None,
    tokens: int | None,
    target: str | None,
) -> tuple[Prompt, Prompt | None]:
    """What a model reads."""
    from hgviz import tasks
    from hgviz.tasks import reaching

    if tokens is not None:
        return reaching.drawn_tokens(model, tokens)
    second = target if model.spec.form == "encoder-decoder" else None
    return tasks.prompt_from(model, text, text_file, ids, None, second)


def _timed(models: list[Path], lengths: tuple[int, ...]) -> Times:
    """Times in the precision that models are used in."""
    from hgviz import tasks

    usual = [terminal.run(partial(tasks.load, one, "cpu"), f"Opening {one.name}") for one in models]
    return terminal.run(partial(tasks.pass_times, usual, lengths), "Timing")
