"""The report of a study: one HTML page of two charts and tables, and the same numbers as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import HgvizError, progress
from hgviz.language import number
from hgviz.study import Sweep
from hgviz.tasks.studies import sweep_at
from hgviz.tasks.study_charts import about, axis_label, budgets_chart, seeds_chart
from hgviz.tasks.study_results import StudyResults, results_of

if TYPE_CHECKING:
    from hgviz.figures.report import Block, Document, Table

TABLES = {  # lists of the JSON, in the order of the page
    "scores": "Scores over seeds: mean [95 %]",
    "score_differences": "Differences of scores, paired by seed; p adjusted by Benjamini and "
    "Hochberg",
    "pruning": "Scores by the share of heads off, and the mean of the curve",
    "method_differences": "Differences from the first method, paired by model and seed",
    "random_differences": "Differences from random orders; p is one-sided",
    "ranks": "Mean ranks of the methods; 1 leaves the highest score",
    "agreement": "Answers and head metrics compared with the first activation",
    "missing": "Unfinished cells",
    "environment": "What the cells were computed with",
}


def study_report(
    path: str | Path, out: str | Path, command: str = "hgviz study report"
) -> dict[str, Any]:
    """Write the results of a study as a page and return them as JSON.

    The same results give the same bytes, wherever the folder lies. Raises HgvizError for what is
    not the folder of a study, and where no cell is done.
    """
    from hgviz.figures.report import require_page, write

    require_page(Path(out))
    progress(0, 2, "reading")
    sweep, results = read_results(path)
    progress(1, 2, f"writing {Path(out).name}")
    write(_page(sweep, results), Path(out), command)
    return results_facts(sweep, results)


def read_results(path: str | Path) -> tuple[Sweep, StudyResults]:
    """A study and its results. Raises HgvizError where no cell is done."""
    sweep = sweep_at(path)
    if sweep.counts["done"]:
        return sweep, results_of(sweep)
    failed = [cell for cell in sweep.standings if cell.state == "failed"]
    raise HgvizError(
        f"{Path(sweep.path).name} has nothing to report: "
        + (f"all that ended failed: {failed[0].line}" if failed else "no cell of it is done"),
        "See hgviz study status; hgviz study run computes what is missing",
    )


def results_facts(sweep: Sweep, results: StudyResults) -> dict[str, Any]:
    """Every number of a study as JSON, its unfinished cells, and what computed the others."""
    return {
        "kind": "sweep_report", "title": sweep.title, "question": sweep.asked.question,
        "complete": sweep.complete, "counts": dict(sweep.counts), **results.to_dict(),
        "missing": [
            {"cell": cell.cell.label, "key": cell.cell.key, "state": cell.state, "line": cell.line}
            for cell in sweep.standings if cell.state != "done"
        ],
        "environment": _environment(sweep),
    }  # fmt: skip


def _environment(sweep: Sweep) -> dict[str, str]:
    """Versions and hosts of the cells that are done, and their computing time."""
    done = [cell for cell in sweep.standings if cell.state == "done"]
    values: dict[str, set[str]] = defaultdict(set)
    for cell in done:
        values["hgviz"].add(str(cell.made.get("program", "")))
        for name, version in cell.made.get("versions", {}).items():
            values[name].add(str(version))
        values["device"].add(str(cell.cell.given.get("device", "")))
        values["host"].add(cell.host)
    seconds = f"{sum(cell.seconds for cell in done):,.1f}"
    joined = {name: ", ".join(sorted(found - {""})) for name, found in values.items()}
    return {name: value for name, value in joined.items() if value} | {
        "threads of a cell": str(sweep.asked.threads), "seconds of computing": seconds,
    }  # fmt: skip


# --- the page -------------------------------------------------------------------------------------


def _page(sweep: Sweep, results: StudyResults) -> Document:
    """Both charts, as far as the study asks for them, and every table that has a row."""
    from hgviz.figures.report import Document, Picture

    blocks: list[Block] = []
    if results.scores:
        caption = f"{axis_label(results.scores[0].metric)} of every model and seed."
        blocks.append(Picture("", "seeds", seeds_chart(results), caption))
    if results.pruning:
        caption = f"{axis_label(results.metric)} as heads are switched off, least important first."
        blocks.append(Picture("", "budgets", budgets_chart(results), caption))
    facts = results_facts(sweep, results)
    budgets = ["mean" if budget is None else f"{100 * budget:.3g} %" for budget in results.budgets]
    facts["ranks"] = [{"method": name, "at": ranks} for name, ranks in facts["ranks"].items()]
    facts["environment"] = [facts["environment"]]
    for name, caption in TABLES.items():
        rows = [dict(_cells("", row, budgets)) for row in facts[name]]
        if rows:
            blocks.append(_table(rows, caption))
    return Document(sweep.title, sweep.asked.question, tuple(blocks), about(results))


def _table(rows: list[dict[str, str]], caption: str) -> Table:
    from hgviz.figures.report import Table

    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple(row.get(name, "–") for name in columns) for row in rows)
    return Table("", tuple(name.replace("_", " ") for name in columns), cells, caption=caption)


def _cells(name: str, value: Any, budgets: list[str]) -> Iterable[tuple[str, str]]:
    """Columns and words of a value of the JSON; of a list "at" one column for each budget."""
    match value:
        case {"mean": mean, "low": low, "high": high}:
            ends = "" if low is None else f" [{number(low)}, {number(high)}]"
            yield name, "–" if mean is None else f"{number(mean)}{ends}"
        case Mapping():
            for key, part in value.items():
                yield from _cells(key, part, budgets)
        case list() if name == "at":
            for budget, part in zip(budgets, value, strict=True):
                yield from _cells(budget, part, budgets)
        case list():
            yield name, ", ".join(map(str, value))
        case bool():
            yield name, "yes" if value else "no"
        case int():
            yield name, f"{value:,}"
        case float():
            yield name, number(value)
        case _:
            yield name, "–" if value is None else str(value)


__all__ = ["results_facts", "study_report", "read_results"]
