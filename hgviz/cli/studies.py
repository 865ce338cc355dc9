"""The commands of study files: compute the runs, show their states, report the results."""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgviz.cli import terminal
from hgviz.cli.options import AsJson, OutFolder
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.study import Standing, State, Sweep

STATES: tuple[State, ...] = ("done", "waiting", "failed", "blocked")
ROWS = ("data", "model", "activation")
MOST_SEEDS = 10  # columns; of more seeds one column for all

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Output folder of hgviz study run.")]


def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="Study file.")],
    out: OutFolder,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Compute with N workers on this machine."),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="S",
            help="Compute with the workers of a scheduler: tcp://host:8786 or slurm:profile.yaml; "
            "local:N is --workers N.",
        ),
    ] = "",
    part: Annotated[
        str, typer.Option(metavar="K/N", help="Compute part K of N, to share a study.")
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="Retry failed runs.")] = False,
) -> None:
    """Compute the missing runs of a study: models x data x activations x seeds x methods.

    After an interruption, run the same command to resume; finished runs are not computed again. A
    failed run does not stop the others.
    """
    from hgviz import tasks
    from hgviz.core import Step, progress_as

    def print_line(step: Step) -> Step:
        """Print a line for each run that fails, and for results of other settings."""
        if isinstance(step.value, tuple):
            cell, is_done = step.value
            if not is_done:
                terminal.complain(f"Failed: {cell.label}.")
        elif step.value is not None and step.value.changed:
            terminal.complain(_changed(step.value))
        return step

    if workers is not None and scheduler:
        raise typer.BadParameter("Give --workers or --scheduler, not both.")
    scheduler = scheduler if workers is None else f"local:{workers}"
    number, slash, parts = (part or "1/1").partition("/")
    is_part = slash and number.isdecimal() and parts.isdecimal()
    if not (is_part and 1 <= int(number) <= int(parts)):
        raise typer.BadParameter(f"{part!r} is not a part; write K/N, such as 2/3.")

    def work() -> Sweep:
        with progress_as(print_line):
            return tasks.run_sweep(file, out, scheduler, again, (int(number), int(parts)))

    resume = f"Progress is saved in {out}; run the same command to resume"
    sweep = terminal.run(work, "Running", resume)
    _show(sweep, out)
    if sweep.counts["failed"]:
        raise typer.Exit(1)


def status(folder: Folder, as_json: AsJson = False) -> None:
    """Show which runs of a study are done, waiting or failed, and why."""
    from hgviz import tasks

    sweep = tasks.sweep_at(folder)
    if not as_json:
        _show(sweep, folder)
        return
    cells = [
        {
            "key": one.cell.key, "work": one.cell.work, **one.cell.place, "state": one.state,
            "seconds": one.seconds, "host": one.host, "line": one.line,
        }
        for one in sweep.standings
    ]  # fmt: skip
    facts = {
        "kind": "sweep", "title": sweep.title, "complete": sweep.complete,
        "counts": dict(sweep.counts), "changed": sweep.changed, "changes": list(sweep.changes),
        "cells": cells,
    }  # fmt: skip
    print(json.dumps(facts))


def report(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT.html", help="Output file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the results of a study as one page of charts and tables.

    --json prints every number, with or without -o.
    """
    from hgviz import tasks

    if out is None and not as_json:
        raise typer.BadParameter("-o is missing: name an output file, such as -o study.html.")
    if out is None:
        facts = tasks.read_results(folder).to_dict()
    else:
        command = shlex.join(["hgviz", "study", "report", str(folder), "-o", str(out)])
        facts = terminal.run(partial(tasks.study_report, folder, out, command), "Drawing")
    if as_json:
        print(json.dumps(facts))
    else:
        terminal.say(f"{out}: report.")


def _show(sweep: Sweep, folder: Path) -> None:
    """Print the states of all runs, their grid, and why runs failed or are blocked."""
    states = [state for state in STATES if sweep.counts[state]]
    counts = ", ".join(f"{sweep.counts[state]:,} {state}" for state in states)
    terminal.say(f"{folder}: {counted(len(sweep.standings), 'run')}: {counts}.")
    if not sweep.complete:
        kinds: dict[str, Counter[str]] = defaultdict(Counter)
        for one in sweep.standings:
            kinds[one.cell.work][one.state] += 1
        rows = [
            {"kind": kind, "runs": count.total(), **{state: count[state] for state in states}}
            for kind, count in kinds.items()
        ]
        terminal.show({"kinds": rows, "runs done": _grid(sweep)})
    if sweep.changed:
        terminal.say(_changed(sweep))
    for one in sweep.standings:
        if one.state == "failed":
            terminal.say(f"Failed: {one.cell.label}. {one.line}")
    blocked = Counter(one.line for one in sweep.standings if one.state == "blocked")
    for line, number in blocked.items():
        terminal.say(f"Blocked: {counted(number, 'run')}, because {line}.")
    if sweep.counts["failed"]:
        terminal.say("Retry them: hgviz study run STUDY.toml -o DIR --again")


def _changed(sweep: Sweep) -> str:
    changes = f" ({', '.join(sweep.changes)} changed)" if sweep.changes else ""
    return (
        f"{counted(sweep.changed, 'result')} of other models, data or settings than the study "
        f"file has now{changes}: not used, but kept."
    )


def _grid(sweep: Sweep) -> list[dict[str, Any]]:
    """Data, models and activations as rows, seeds as columns; of many seeds one column."""
    seeds = sweep.names("seed")
    is_wide = 0 < len(seeds) <= MOST_SEEDS
    columns = [f"seed {seed}" for seed in seeds] if is_wide else ["all seeds"]
    rows: dict[tuple[str, ...], dict[str, list[Standing]]] = {}
    for one in sweep.standings:
        names = tuple(one.cell.place.get(axis, "") for axis in ROWS)
        column = f"seed {one.cell.place.get('seed', '')}" if is_wide else "all seeds"
        rows.setdefault(names, {}).setdefault(column, []).append(one)
    return [
        dict(zip(ROWS, names, strict=True)) | {name: _state(row.get(name, ())) for name in columns}
        for names, row in rows.items()
    ]


def _state(cells: Sequence[Standing]) -> str:
    """2/3, 1 failed: how many runs are done, and how many failed or are blocked."""
    counts = Counter(cell.state for cell in cells)
    more = [f"{counts[state]} {state}" for state in ("failed", "blocked") if counts[state]]
    return ", ".join([f"{counts['done']}/{len(cells)}", *more]) if cells else ""


STUDY_VERBS = (run, status, report)
