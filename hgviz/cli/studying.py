"""The verbs of study files: run many cells, see how they stand, report on what came out."""

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
from hgviz.cli.options import AsJson, Scheduler
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.study import Standing, State, Sweep

STATES: tuple[State, ...] = ("done", "waiting", "failed", "blocked")
ROWS = ("data", "model", "activation")
MOST_SEEDS = 10  # side by side

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
        bool, typer.Option("--again", help="Compute cells that failed once more.")
    ] = False,
) -> None:
    """Run what is missing of a study: models x data x activations x seeds x methods.

    Stopped or killed, the same command goes on; what is done is not computed again. Where a cell
    fails, the others go on.
    """
    from hgviz import tasks

    work = partial(tasks.run_sweep, file, out, scheduler, again, _part(part))
    kept = f"What was done is kept in {out}; the same command goes on from there"
    sweep = terminal.run(partial(_run_and_tell, work), "Running", kept)
    _tell(sweep, out)
    if sweep.counts["failed"]:
        raise typer.Exit(1)


def status(folder: Folder, as_json: AsJson = False) -> None:
    """Show which runs of a study are done, waiting or failed, and why."""
    from hgviz import tasks

    sweep = tasks.sweep_at(folder)
    if as_json:
        print(json.dumps(_facts(sweep)))
        return
    _tell(sweep, folder)


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
        print(json.dumps(tasks.results_facts(*tasks.study_results(folder))))
        return
    command = shlex.join(["hgviz", "study", "report", str(folder), "-o", str(out)])
    facts = terminal.run(partial(tasks.study_report, folder, out, command), "Writing")
    if as_json:
        print(json.dumps(facts))
        return
    terminal.say(f"{out}: the report.")


def _run_and_tell(work: Callable[[], Sweep]) -> Sweep:
    """Run a study, with a line for what has changed, and for each cell that fails."""
    from hgviz.core import Step, progress_as
    from hgviz.study import Sweep

    def tell(step: Step) -> Step:
        if isinstance(step.value, tuple) and step.value[1] == "failed":
            terminal.complain(f"Failed: {step.value[0].label}.")
        elif isinstance(step.value, Sweep) and step.value.changed:
            terminal.complain(_changed(step.value))
        return step

    with progress_as(tell):
        return work()


def _part(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not text:
        return 1, 1
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise typer.BadParameter(f"{text!r} is no part; 2/3 is the second of three.")
    return int(number), int(of)


def _tell(sweep: Sweep, folder: Path) -> None:
    """Print how all cells stand in some lines, with the grid of the cells."""
    counts = ", ".join(f"{sweep.counts[one]:,} {one}" for one in STATES if sweep.counts[one])
    terminal.say(f"{folder}: {counted(len(sweep.standings), 'cell')}: {counts}.")
    if not sweep.complete:
        terminal.show({"kinds": _kinds(sweep), "done, of how many": _grid(sweep)})
    if sweep.changed:
        terminal.say(_changed(sweep))
    for one in sweep.standings:
        if one.state == "failed":
            terminal.say(f"Failed: {one.cell.label}. {one.line}")
    blocked = [one for one in sweep.standings if one.state == "blocked"]
    for line, count in Counter(one.line for one in blocked).items():
        terminal.say(f"Blocked: {counted(count, 'cell')}, since {line}.")
    if sweep.counts["failed"]:
        terminal.say("Try these once more: hgviz study run STUDY.toml -o DIR --again")


def _changed(sweep: Sweep) -> str:
    what = f" ({', '.join(sweep.changes)} changed)" if sweep.changes else ""
    return (
        f"{counted(sweep.changed, 'result')} of other models, data or settings than the "
        f"study asks for now{what}; they are kept."
    )


def _kinds(sweep: Sweep) -> list[dict[str, Any]]:
    """How many cells of each kind are in which state."""
    found = dict.fromkeys(one.cell.work for one in sweep.standings)
    each = {work: Counter(one.state for one in sweep.of(work)) for work in found}
    states = [state for state in STATES if sweep.counts[state]]
    return [
        {"kind": work, "cells": each[work].total(), **{one: each[work][one] for one in states}}
        for work in found
    ]


def _grid(sweep: Sweep) -> list[dict[str, Any]]:
    """Data, models and activations as rows, seeds as columns."""
    seeds = sweep.names("seed")
    columns = dict.fromkeys(f"seed {one}" for one in seeds) if len(seeds) <= MOST_SEEDS else {}
    rows: dict[tuple[str, ...], dict[str, list[Standing]]] = {}
    for one in sweep.standings:
        row = rows.setdefault(tuple(one.cell.place.get(axis, "") for axis in ROWS), {})
        column = f"seed {one.cell.place.get('seed', '')}" if columns else "all seeds"
        row.setdefault(column, []).append(one)
    return [
        {**dict(zip(ROWS, names, strict=True)),
         **{name: _stand(row.get(name, [])) for name in columns or ("all seeds",)}}
        for names, row in rows.items()
    ]  # fmt: skip


def _stand(some: Sequence[Standing]) -> str:
    counts = Counter(one.state for one in some)
    more = [f"{counts[one]} {one}" for one in ("failed", "blocked") if counts[one]]
    return ", ".join([f"{counts['done']}/{len(some)}", *more]) if some else ""


def _facts(sweep: Sweep) -> dict[str, Any]:
    return {
        "kind": "sweep", "title": sweep.title, "complete": sweep.complete,
        "counts": dict(sweep.counts), "changed": sweep.changed,
        "changes": list(sweep.changes),
        "cells": [
            {
                "key": one.cell.key, "work": one.cell.work, **one.cell.place, "state": one.state,
                "seconds": one.seconds, "host": one.host, "line": one.line,
            }
            for one in sweep.standings
        ],
    }  # fmt: skip


STUDY_VERBS = (run, status, report)

__all__ = ["STUDY_VERBS", "report", "run", "status"]
