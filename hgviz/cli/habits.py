"""The verb that says what every head is for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    Activation,
    AsJson,
    Device,
    Off,
    Target,
    TextPair,
    ends_in,
    require_unread,
)
from hgviz.files import find_sample
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.analysis.roles import CorpusRoles
    from hgviz.core import Capture


def heads(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", parser=find_sample, help="A capture (.h5), or a checkpoint."
        ),
    ],
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="F.txt|.tsv|.csv|.jsonl",
            parser=find_sample,
            help="Of a checkpoint: the texts, one a line, or rows with a column of texts.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="T", help="Of a checkpoint: a text.")] = None,
    text_pair: TextPair = None,
    target: Target = None,
    text_file: Annotated[Path | None, typer.Option(metavar="F", help="Text in UTF-8.")] = None,
    item: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Only this text of a capture of many."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT.json|.csv",
            callback=ends_in(".json", ".csv"),
            help="Everything; .csv: a row for each head.",
        ),
    ] = None,
    off: Off = "",
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Report the role of each head, its metrics and its best examples.

    Over all texts of a capture or of a corpus, or on one text. Every row of texts up to 8,192
    tokens is read, of longer ones rows spread evenly.
    """
    from hgviz import tasks
    from hgviz.core import HgvizError

    kind = tasks.kind_of(source)
    if kind == "study":
        raise HgvizError(
            f"{source} is a study: it holds what heads are worth, not where they look",
            "Give a capture, or the checkpoint with --corpus",
        )
    captured = kind == "capture"
    given = sum(one is not None for one in (corpus, text, text_file))
    if captured and (given or off or activation is not None):
        raise typer.BadParameter("A capture has its own texts, heads and activations.")
    if not captured and given != 1:
        raise typer.BadParameter("Give exactly one of --corpus, --text and --text-file.")
    if not captured and item is not None:
        raise typer.BadParameter("--item is for a capture of many texts.")
    if (text_pair, target) != (None, None) and text is None and text_file is None:
        raise typer.BadParameter("--text-pair and --target go with --text or --text-file.")
    require_unread(out, source, corpus, text_file)
    if captured:
        work = partial(tasks.habits, _opened(source, item), alone=item is not None)
    else:
        words = (text, text_file, text_pair, target)
        work = partial(_of_model, source, corpus, words, off, activation, device)
    _say(terminal.run(work, "Measuring heads"), out, as_json)


def _opened(path: Path, item: int | None) -> Capture:
    from hgviz.store import open_capture

    return open_capture(path, item or 0)


def _of_model(
    path: Path, corpus: Path | None, words: Any, off: str, activation: str | None, device: Any
) -> CorpusRoles:
    from hgviz import tasks

    model = terminal.run(
        partial(tasks.load, path, device, activation=activation), f"Opening {path.name}"
    )
    chosen = tasks.heads_from(off, model.spec)
    if corpus is not None:
        return tasks.habits_of_model(model, corpus, chosen)
    text, text_file, pair, target = words
    prompt, second = tasks.prompt_from(model, text, text_file, None, pair, target)
    return tasks.habits_of_text(model, prompt, second, chosen)


def _say(found: CorpusRoles, out: Path | None, as_json: bool) -> None:
    from hgviz.tasks.evidence import roles_to_dict

    told = roles_to_dict(found)
    if out is not None:
        terminal.write_facts(out, told, list(_rows(told)))
    if as_json:
        print(json.dumps(told, indent=1, allow_nan=False))
        return
    texts = counted(found.texts, "text")
    tokens = counted(found.tokens, "token")
    terminal.say(f"{counted(len(found.heads), 'head')} on {texts}, {tokens} together.")
    if told["heads"]:
        terminal.show({"heads": [_line(one) for one in told["heads"]]})
    for note in found.notes:
        terminal.say(f"{note[0].upper()}{note[1:]}.")
    if out is not None:
        terminal.say(f"Everything is in {out}.")


def _line(head: dict[str, Any]) -> dict[str, Any]:
    """What a terminal has room for; --json and -o have the rest."""
    shown = ("focus", "positional", "offset", "convolution")
    return {
        "head": head["head"],
        "level": head["level"],
        "role": head["role"],
        "score": head["score"] or None,
        **{name: head[name] for name in shown},
        "nearest": head["nearest_head"],
    }


def _rows(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A head a row; what it shows and its examples in words."""
    said: dict[str, Callable[[list[dict[str, Any]]], str]] = {
        "named": lambda found: "; ".join(f"{one['words']}: {one['evidence']}" for one in found),
        "examples": lambda found: "; ".join(
            f"text {one['text']}, query {one['query']}, key {one['key']}: {one['share']:.3f}"
            for one in found
        ),
    }
    for head in told["heads"]:
        yield {name: said[name](value) if name in said else value for name, value in head.items()}
