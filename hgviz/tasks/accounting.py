"""The report of a sweep: its answer, its tables, what is missing, and how all was made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import HgvizError, Step, Task
from hgviz.sweep import Standing, Sweep
from hgviz.tasks.answering import answers, name_of
from hgviz.tasks.concluding import conclude
from hgviz.tasks.findings import Findings
from hgviz.tasks.findings import facts as numbers_of
from hgviz.tasks.opening import Path_
from hgviz.tasks.plotting import about
from hgviz.tasks.sweeping import sweep_at
from hgviz.tasks.tabling import alike, left, reached

if TYPE_CHECKING:
    from hgviz.figures.content.document import Block, Document

MOST_LINES = 60  # cells that are told one by one
SHORT = 12  # digits of a digest that are shown


def sweep_report(
    path: Path_, out: Path_, command: str = "hgviz study report"
) -> Task[dict[str, Any]]:
    """Write the folder of a sweep as a report (.html or .pdf); gives its facts.

    The same results give the same bytes, wherever the folder lies. Errors: HgvizError for what is
    no folder of a study, and where no cell is done.
    """
    from hgviz.figures.report import require, write

    require(Path(out))
    yield Step(0, 3, "reading")
    sweep, found = read_report(path)
    yield Step(1, 3, f"writing {Path(out).name}")
    write(document(sweep, found), Path(out), command)
    return report_facts(sweep, found)


def sweep_answers(sweep: Sweep) -> tuple[str, ...]:
    """What a study that is complete answers, in sentences; () before, and one that says why not
    where a result cannot be used."""
    if not sweep.complete:
        return ()
    try:
        return answers(conclude(sweep))
    except HgvizError as error:
        return (" ".join(error.lines),)


def read_report(path: Path_) -> tuple[Sweep, Findings]:
    """A sweep, and what it comes to. Errors: HgvizError, also where no cell is done."""
    sweep = sweep_at(path)
    if not sweep.counts["done"]:
        raise _nothing(sweep)
    return sweep, conclude(sweep)


def report_facts(sweep: Sweep, found: Findings) -> dict[str, Any]:
    """Every number of a report, as JSON."""
    return {
        "kind": "sweep_report", "title": sweep.title, "question": sweep.asked.question,
        "answers": list(answers(found)), "complete": sweep.complete, "counts": dict(sweep.counts),
        **numbers_of(found),
        "missing": [{"cell": one.cell.label, "key": one.cell.key, "state": one.state,
                     "line": one.line} for one in sweep.standings if one.state != "done"],
        "environment": dict(_environment(sweep)), "digests": dict(_digests(sweep)),
    }  # fmt: skip


def document(sweep: Sweep, found: Findings) -> Document:
    """The report, block by block."""
    from hgviz.figures.content.document import Document, Heading, Points

    unfinished = len(sweep.standings) - sweep.counts["done"]
    short = [*answers(found)]
    if unfinished:
        short.append(
            f"{unfinished:,} of {len(sweep.standings):,} cells are not done, so all of this may "
            "change; what is missing stands below."
        )
    blocks = [
        Heading("In short"), Points(tuple(short)), *reached(found), *left(found),
        *alike(found), *_missing(sweep), *_meaning(found), *_made(sweep),
    ]  # fmt: skip
    question = sweep.asked.question or "Many runs that answer one question."
    subtitle = (
        f"{question} Every number comes from the cells of this study, by the command at its end."
    )
    return Document(sweep.title or "A study", subtitle, tuple(blocks), about(found))


def _nothing(sweep: Sweep) -> HgvizError:
    failed = [one for one in sweep.standings if one.state == "failed"]
    why = f"all that ended failed: {failed[0].line}" if failed else "no cell of it is done"
    return HgvizError(
        f"{Path(sweep.path).name} has nothing to report", why,
        "See hgviz study status; hgviz study run computes what is missing",
    )  # fmt: skip


# --- what is missing ------------------------------------------------------------------------------


def _missing(sweep: Sweep) -> list[Block]:
    from hgviz.figures.content.document import Heading, Points, Table, Words

    gone = [one for one in sweep.standings if one.state != "done"]
    blocks: list[Block] = []
    if gone:
        states = Counter(one.state for one in gone)
        rows = tuple(_row(one) for one in gone[:MOST_LINES])
        more = len(gone) - len(rows)
        caption = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        caption += f"; {more:,} more are not listed." if more else "."
        blocks = [
            Heading("What is missing"),
            Table(("Cell", "State", "Why"), rows, frozenset({0, 1, 2}), caption),
        ]
    if not sweep.changed:
        return blocks
    if not blocks:
        blocks = [Heading("What is missing"), Words("No cell is missing.")]
    note = f"{sweep.changed:,} results are of other models, data or settings than the study asks "
    return [*blocks, Points((f"{note}for now; they are left out.",))]


def _row(one: Standing) -> tuple[str, str, str]:
    return one.cell.label, one.state, one.line


# --- what numbers mean, and how they were made ----------------------------------------------------


def _meaning(found: Findings) -> list[Block]:
    from hgviz.figures.content.document import Heading, Points

    seeds = found.sweep.names("seed")
    trained = bool(found.sweep.of("train"))
    told = []
    if len(seeds) < 2:
        told.append(
            "There is one seed, so no score has an interval over seeds and no two models are told "
            "apart: another seed may move any number."
        )
    else:
        over = "where the mean of many more trainings like these would lie"
        if not trained:
            over = "of one checkpoint: seeds only draw which examples make an order and which not"
        told.append(
            f"Intervals of 95 % are over {len(seeds)} seeds, {over}, were they normal (Student). "
            "Of few seeds they are wide."
        )
    if found.apart:
        told.append(
            "p over texts says whether the models at hand differ on more texts like these; the "
            "interval over seeds, whether other seeds would. Two are told apart where both do: the "
            "adjusted p is below 0.05, and the interval leaves out 0."
        )
    if found.left:
        told.append(
            "A run is one model with one seed. Orders and curves are of different halves of the "
            "examples; nothing is read between points that were measured."
        )
    return [Heading("What the numbers mean"), Points(tuple(told), quiet=True)]


def _made(sweep: Sweep) -> list[Block]:
    from hgviz.figures.content.document import Code, Heading, Table, Words
    from hgviz.store.sweep import SweepFolder

    return [
        Heading("How it was made"), Words("The study file", quiet=True),
        Code(tuple(SweepFolder(sweep.path).content().strip().splitlines())),
        Table(("Environment", ""), tuple(_environment(sweep)), frozenset({0, 1}),
              "As the cells were computed."),
        Table(("Digest", "SHA-256"), tuple((k, v[:SHORT]) for k, v in _digests(sweep)),
              frozenset({0, 1}), f"Of data and models, the first {SHORT} digits."),
    ]  # fmt: skip


def _environment(sweep: Sweep) -> list[tuple[str, str]]:
    """Where, with what and how long cells were computed."""
    done = [one for one in sweep.standings if one.state == "done"]
    versions: dict[str, dict[str, None]] = {}
    for one in done:
        told = one.made.get("versions", {})
        some = {"hgviz": one.made.get("program", ""), **(told if isinstance(told, dict) else {})}
        for name, version in some.items():
            if version:
                versions.setdefault(str(name), {})[str(version)] = None
    devices = sorted({str(_device(one)) for one in done} - {""})
    told = [
        *((name, ", ".join(sorted(some))) for name, some in versions.items()),
        ("device", ", ".join(devices)), ("threads of a cell", str(sweep.asked.threads)),
        ("hosts", ", ".join(sorted({one.host for one in done} - {""}))),
        ("cells", f"{len(done):,} of {len(sweep.standings):,}"),
        ("seconds of computing", f"{sum(one.seconds for one in done):,.1f}"),
    ]  # fmt: skip
    return [(name, value) for name, value in told if value]


def _device(one: Standing) -> Any:
    given = one.cell.given
    return given.get("device") or given.get("plan", {}).get("recipe", {}).get("device", "")


def _digests(sweep: Sweep) -> list[tuple[str, str]]:
    """What identifies the data, and the models of every place of the grid."""
    found: dict[str, str] = {}
    for one in sweep.standings:
        place, given = one.cell.place, one.cell.given
        if isinstance(given.get("data"), str):
            found.setdefault(f"data {place.get('data', '')}", given["data"])
        model = (one.found or {}).get("model")
        if isinstance(model, str) and one.state == "done":
            name = name_of((place.get("data", ""), place.get("model", ""),
                            place.get("activation", "")), sweep)  # fmt: skip
            trained = f", seed {place.get('seed', '')}" if "trained" in given else ""
            found.setdefault(f"model {name}{trained}", model)
    return list(found.items())


__all__ = ["document", "read_report", "report_facts", "sweep_answers", "sweep_report"]
