"""The verbs of study files: run many cells, see how they stand, report on what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgviz import terminal
from hgviz.cli.options import AsJson, Scheduler

if TYPE_CHECKING:
    from hgviz.core import Task
    from hgviz.sweep import Sweep

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder that hgviz study run wrote into.")
]


def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="What is asked of what.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where to.")],
    scheduler: Scheduler = "",
    part: Annotated[
        str, typer.Option(metavar="K/N", help="Only the K-th of N parts: N machines share it.")
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Try cells once more that were given up.")
    ] = False,
) -> None:
    """Run what is missing of a study file: models x data x activations x seeds x methods.

    Stopped or killed, the same command goes on; what is done is not computed again. A cell that
    fails three times is given up, and the others go on.
    """
    from hgviz import tasks

    task = tasks.run_sweep(file, out, scheduler, again, _part(part))
    kept = f"What was done is kept in {out}; the same command goes on from there"
    sweep = terminal.run(_telling(task), "Running", kept)
    _tell(sweep, out)
    if sweep.counts["failed"]:
        raise typer.Exit(1)


def status(folder: Folder, as_json: AsJson = False) -> None:
    """How the cells of a study stand: done, running, waiting, failed and why."""
    from hgviz import tasks

    sweep = tasks.sweep_at(folder)
    if as_json:
        print(json.dumps(_facts(sweep)))
        return
    _tell(sweep, folder)


def _telling(task: Task[Sweep]) -> Task[Sweep]:
    """The task, with a line for each cell that is given up."""
    while True:
        try:
            step = next(task)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if step.value is not None and step.value[1] == "failed":
            terminal.complain(f"Given up: {step.value[0].label}.")
        yield step


def _part(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not text:
        return 1, 1
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise typer.BadParameter(f"{text!r} is no part; 2/3 is the second of three.")
    return int(number), int(of)


def _tell(sweep: Sweep, folder: Path) -> None:
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(sweep.counts.items()))
    terminal.say(f"{folder}: {terminal.counted(len(sweep.standings), 'cell')}: {counts}.")
    if sweep.changed:
        terminal.say(
            f"{terminal.counted(sweep.changed, 'result')} of other models, data or settings "
            "than the study asks for now; they are kept."
        )
    for one in sweep.standings:
        if one.state == "running":
            terminal.say(f"Running on {one.host}: {one.cell.label}, {one.share:.0%}, {one.note}")
        if one.state == "failed":
            terminal.say(f"Failed: {one.cell.label}. {one.line}")
    if sweep.counts["failed"]:
        terminal.say("Try these once more: hgviz study run STUDY.toml -o DIR --again")


def _facts(sweep: Sweep) -> dict[str, Any]:
    return {
        "kind": "sweep", "title": sweep.title, "complete": sweep.complete,
        "counts": dict(sweep.counts), "left": sweep.left, "changed": sweep.changed,
        "cells": [
            {
                "key": one.cell.key, "work": one.cell.work, **one.cell.place, "state": one.state,
                "share": one.share, "seconds": one.seconds, "host": one.host, "line": one.line,
            }
            for one in sweep.standings
        ],
    }  # fmt: skip


STUDY_VERBS = (run, status)

__all__ = ["STUDY_VERBS", "run", "status"]
