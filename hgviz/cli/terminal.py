"""What the command line puts on a terminal and on disk: bars, lines, tables, errors, arrays.

Light to import, as hgviz.cli is: numpy and rich come when they are needed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from hgviz.errors import HgvizError
from hgviz.files import open_atomic
from hgviz.jobs import signals_received

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table
    from rich.text import Text

    from hgviz.core import Step

Result = TypeVar("Result")

MINUTE = 60.0  # s between two lines of a long task where no bar is seen
STDOUT = Path("-")  # the name of standard output, where a command takes it as a file
quiet = False  # whether bars and remarks are left out; set by --quiet


class Stopped(HgvizError):
    """The user stopped the work. kept: a sentence on what is saved of it."""

    def __init__(self, kept: str = "") -> None:
        super().__init__("Stopped", kept)


def run(
    work: Callable[[], Result], title: str, kept: str = "", where: Path | None = None
) -> Result:
    """Call a function with a bar on standard error that shows its progress; kept says what an
    interruption leaves, said only where that is there, such as not before the first layer."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from hgviz.core import listening

    console = Console(stderr=True)
    words = TextColumn("{task.description}", markup=False)
    parts = (words, BarColumn(), TimeRemainingColumn())
    has_bar = console.is_terminal and not quiet
    with Progress(*parts, console=console, transient=True, disable=not has_bar) as bar:
        line = bar.add_task(title, total=None)
        told = time.monotonic()

        def show(step: Step) -> None:
            nonlocal told
            if signals_received:
                raise KeyboardInterrupt
            if not console.is_terminal and time.monotonic() - told > MINUTE:
                told = time.monotonic()
                part = f" ({step.done / step.total:.0%})" if step.total else ""
                remark(f"{title}{part}{': ' if step.note else ''}{step.note}")
            note = plain(f"{title}: {step.note}") if step.note else title
            bar.update(line, completed=step.done, total=step.total or None, description=note)

        try:
            with listening(show):
                return work()
        except KeyboardInterrupt:  # the work has taken away what it must not leave
            left = where is None or where.exists()
            raise Stopped(kept if left else "nothing was saved") from None


def write(
    path: Path,
    array: NDArray[np.floating],
    name: str = "array",
    describe: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Write an array as .npy, .csv or .npz in one move, so that a full disk leaves no half file, or
    as CSV on standard output.

    name: of the array in a .npz; describe: returns what else is put there, such as the tokens.
    """
    import numpy as np

    if path == STDOUT:
        np.savetxt(sys.stdout, array, fmt="%.9g", delimiter=",")
        return
    with _replacing(path) as file:
        if path.suffix.lower() == ".npy":
            np.save(file, array)
        elif path.suffix.lower() == ".npz":
            facts: dict[str, Any] = {name: array, **describe()}
            np.savez(file, **facts)
        else:
            np.savetxt(file, array, fmt="%.9g", delimiter=",")
    say(f"{path}: {' x '.join(f'{size:,}' for size in array.shape)}, {array.dtype}.")


def write_facts(path: Path, facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write facts as .json, or the rows of their table as .csv, in one move, or the rows as CSV on
    standard output."""
    import csv
    import io
    import json

    lines = io.StringIO(newline="")
    writer = csv.DictWriter(lines, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    if path == STDOUT:
        sys.stdout.write(lines.getvalue())
        return
    with _replacing(path) as file:
        if path.suffix.lower() == ".json":
            file.write(json.dumps(facts, indent=1, allow_nan=False).encode() + b"\n")
        else:
            file.write(lines.getvalue().encode())


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes its place when all is written."""
    try:
        with open_atomic(path) as file:
            yield file
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise HgvizError(f"{path} could not be written: {why}", "Choose another folder") from error


def show(facts: dict[str, Any]) -> None:
    """Facts for people: lists of records as tables, everything else that says anything as lines."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for name, value in facts.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            heading, table = _table(name, value)
            console.print("", heading, *([table, ""] if table.columns else [""]), sep="\n")
        elif isinstance(value, dict):
            show(value)
        elif _cell(value):
            console.print(Text(f"{_words(name)}: {_cell(value)}"))


def _table(name: str, records: list[dict[str, Any]]) -> tuple[Text, Table]:
    """A heading that says what all records share, and a table of what differs."""
    from rich.table import Table
    from rich.text import Text

    columns = {key: [_cell(record[key]) for record in records] for key in records[0]}
    alike = {key for key, cells in columns.items() if len(set(cells)) == 1}
    shared = "; ".join(
        f"{_words(key)} {cells[0]}" for key, cells in columns.items() if key in alike and cells[0]
    )
    table = Table(*(_words(key) for key in columns if key not in alike), box=None, pad_edge=False)
    for cells in zip(*(columns[key] for key in columns if key not in alike), strict=True):
        table.add_row(*map(Text, cells))
    name = _words(name)
    if len(records) == 1:
        return Text(f"1 {name.removesuffix('s')}: {shared}"), table
    return Text(f"{len(records)} {name}; each: {shared}" if shared else f"{name}"), table


def say(line: str) -> None:
    """One line on standard output."""
    print(plain(line))


def quote(text: str, on_error: bool = False) -> None:
    """A text on standard output, line by line as it is, without escape sequences.

    on_error: on standard error in its place, where numbers go to standard output.
    """
    for line in text.splitlines():
        print(_printable(line.expandtabs()), file=sys.stderr if on_error else sys.stdout)


def complain(line: str) -> None:
    """One line on standard error, where there still is one: a closed terminal takes none."""
    with suppress(OSError):
        print(plain(line), file=sys.stderr)


def remark(line: str) -> None:
    """One line on standard error that is no error, unless the command is to be quiet."""
    if not quiet:
        complain(line)


def plain(value: object) -> str:
    """One line without the escape sequences that a stranger's file may have put into a name."""
    return _printable(" ".join(str(value).split()))


def _printable(line: str) -> str:
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line)


def _words(key: str) -> str:
    return plain(key).replace("_", " ")


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3g}"
        case list() | tuple():
            return ", ".join(dict.fromkeys(map(plain, value)))
        case _:
            return plain(value)
