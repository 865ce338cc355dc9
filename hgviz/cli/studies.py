"""The verbs of study files: run the cells, show their states, report the results."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
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
ALL_SEEDS = "all seeds"


def _require_scheduler(address: str) -> str:
    """Require a scheduler that can be reached, before any work. Raises HgvizError."""
    if address:
        from hgviz.cluster import require_scheduler

        require_scheduler(address)
    return address


Scheduler = Annotated[
    str,
    typer.Option(
        "--scheduler",
        metavar="S",
        callback=_require_scheduler,
        help="Where it is computed: local:N for N workers on this machine, tcp://host:8786, "
        "slurm:profile.yaml; here when left out.",
    ),
]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder that hgviz study run wrote into.")
]


def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="What is asked of what.")],
    out: OutFolder,
    scheduler: Scheduler = "",
    part: Annotated[
        str, typer.Option(metavar="K/N", help="Only the K-th of N parts: N machines share it.")
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Compute cells that failed once more.")
    ] = False,
) -> None:
    """Run what is missing of a study: models x data x activations x seeds x methods.

    Stopped or killed, the same command goes on; what is done is not computed again. Where a cell
    fails, the others go on.
    """
    from hgviz import tasks

    work = partial(tasks.run_sweep, file, out, scheduler, again, _part(part))
    resume = f"What was done is kept in {out}; the same command goes on from there"
    sweep = terminal.run(partial(_run_with_lines, work), "Running", resume)
    _show(sweep, out)
    if sweep.counts["failed"]:
        raise typer.Exit(1)


def status(folder: Folder, as_json: AsJson = False) -> None:
    """Show which runs of a study are done, waiting or failed, and why."""
    from hgviz import tasks

    sweep = tasks.sweep_at(folder)
    if as_json:
        print(json.dumps(_facts(sweep)))
    else:
        _show(sweep, folder)


def report(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT.html", help="Output page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the results of a study as one page of charts and tables.

    --json prints every number, with or without -o.
    """
    from hgviz import tasks

    if out is None and not as_json:
        raise typer.BadParameter("-o is missing: where to write, such as -o study.html.")
    if out is None:
        print(json.dumps(tasks.read_results(folder).to_dict()))
        return
    command = shlex.join(["hgviz", "study", "report", str(folder), "-o", str(out)])
    facts = terminal.run(partial(tasks.study_report, folder, out, command), "Writing")
    if as_json:
        print(json.dumps(facts))
    else:
        terminal.say(f"{out}: the report.")


def _run_with_lines(work: Callable[[], Sweep]) -> Sweep:
    """Run a study, with a line for each cell that fails and for results of other settings."""
    from hgviz.core import Step, progress_as
    from hgviz.study import Sweep

    def print_line(step: Step) -> Step:
        if isinstance(step.value, tuple) and not step.value[1]:
            terminal.complain(f"Failed: {step.value[0].label}.")
        elif isinstance(step.value, Sweep) and step.value.changed:
            terminal.complain(_changed(step.value))
        return step

    with progress_as(print_line):
        return work()


def _part(text: str) -> tuple[int, int]:
    """K/N as two numbers. Raises BadParameter."""
    number, slash, of = text.partition("/")
    if not text:
        return 1, 1
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise typer.BadParameter(f"{text!r} is no part; 2/3 is the second of three.")
    return int(number), int(of)


def _show(sweep: Sweep, folder: Path) -> None:
    """Print the states of all cells, their grid, and why cells failed or are blocked."""
    counts = ", ".join(
        f"{sweep.counts[state]:,} {state}" for state in STATES if sweep.counts[state]
    )
    terminal.say(f"{folder}: {counted(len(sweep.standings), 'cell')}: {counts}.")
    if not sweep.complete:
        terminal.show({"kinds": _kinds(sweep), "done, of how many": _grid(sweep)})
    if sweep.changed:
        terminal.say(_changed(sweep))
    for cell in sweep.standings:
        if cell.state == "failed":
            terminal.say(f"Failed: {cell.cell.label}. {cell.line}")
    blocked = Counter(cell.line for cell in sweep.standings if cell.state == "blocked")
    for line, count in blocked.items():
        terminal.say(f"Blocked: {counted(count, 'cell')}, since {line}.")
    if sweep.counts["failed"]:
        terminal.say("Try these once more: hgviz study run STUDY.toml -o DIR --again")


def _changed(sweep: Sweep) -> str:
    changes = f" ({', '.join(sweep.changes)} changed)" if sweep.changes else ""
    return (
        f"{counted(sweep.changed, 'result')} of other models, data or settings than the "
        f"study asks for now{changes}; they are kept."
    )


def _kinds(sweep: Sweep) -> list[dict[str, Any]]:
    """How many cells of each kind are in which state."""
    kinds = dict.fromkeys(cell.cell.work for cell in sweep.standings)
    counts = {kind: Counter(cell.state for cell in sweep.of(kind)) for kind in kinds}
    states = [state for state in STATES if sweep.counts[state]]
    return [
        {"kind": kind, "cells": count.total(), **{state: count[state] for state in states}}
        for kind, count in counts.items()
    ]


def _grid(sweep: Sweep) -> list[dict[str, Any]]:
    """Data, models and activations as rows, seeds as columns."""
    seeds = sweep.names("seed")
    columns = [f"seed {seed}" for seed in seeds] if len(seeds) <= MOST_SEEDS else []
    rows: dict[tuple[str, ...], dict[str, list[Standing]]] = {}
    for cell in sweep.standings:
        row = rows.setdefault(tuple(cell.cell.place.get(axis, "") for axis in ROWS), {})
        column = f"seed {cell.cell.place.get('seed', '')}" if columns else ALL_SEEDS
        row.setdefault(column, []).append(cell)
    return [
        dict(zip(ROWS, names, strict=True))
        | {column: _state(row.get(column, [])) for column in columns or [ALL_SEEDS]}
        for names, row in rows.items()
    ]


def _state(cells: Sequence[Standing]) -> str:
    """2/3, 1 failed: how many of some cells are done, and how many never will be."""
    counts = Counter(cell.state for cell in cells)
    more = [f"{counts[state]} {state}" for state in ("failed", "blocked") if counts[state]]
    return ", ".join([f"{counts['done']}/{len(cells)}", *more]) if cells else ""


def _facts(sweep: Sweep) -> dict[str, Any]:
    """As `hgviz study status --json` prints it."""
    return {
        "kind": "sweep", "title": sweep.title, "complete": sweep.complete,
        "counts": dict(sweep.counts), "changed": sweep.changed,
        "changes": list(sweep.changes),
        "cells": [
            {
                "key": cell.cell.key, "work": cell.cell.work, **cell.cell.place,
                "state": cell.state, "seconds": cell.seconds, "host": cell.host, "line": cell.line,
            }
            for cell in sweep.standings
        ],
    }  # fmt: skip


STUDY_VERBS = (run, status, report)
