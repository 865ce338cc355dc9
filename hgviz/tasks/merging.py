"""Several folders of sweeps as one: read together, or merged into a new one."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import HgvizError, Step, Task
from hgviz.sweep import AXES, Standing, State, Sweep
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.store.sweep import SweepFolder

DIGITS = 7  # of numbers that are given away: as many as a float32 has
# of a cell that is there several times, the one that tells most
BEST: dict[State, int] = {"done": 0, "running": 1, "failed": 2, "waiting": 3, "blocked": 4}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A cell that is done in two folders with other numbers. most: how far two numbers are apart at
    most; NaN where they are not of one shape, or other things than numbers differ."""

    label: str
    key: str
    most: float


@dataclass(frozen=True, slots=True)
class Together:
    """Folders read as one sweep. names: of the folders, without where they lie; files: their study
    files, each once; twice: cells of other settings at a place of the grid where one stands
    already, which tables leave out. Of a conflict the first folder's numbers are taken."""

    sweep: Sweep
    names: tuple[str, ...]
    files: tuple[str, ...]
    conflicts: tuple[Conflict, ...] = ()
    twice: int = 0


def together(paths: Sequence[Path_]) -> Together:
    """Read folders as one. Errors: HgvizError for one that is no folder of a study, or damaged."""
    from hgviz.store.sweep import SweepFolder

    sweeps = [SweepFolder(one).sweep() for one in paths]
    files = dict.fromkeys(text for one in paths for text in SweepFolder(one).files())
    return joined(sweeps, tuple(files))


def joined(sweeps: Sequence[Sweep], files: tuple[str, ...] = ()) -> Together:
    """Sweeps that are in memory as one: the cells of all, each once, as the first has them."""
    best: dict[str, Standing] = {}
    conflicts: dict[str, Conflict] = {}
    for one in (standing for sweep in sweeps for standing in sweep.standings):
        key, before = one.cell.key, best.get(one.cell.key)
        if before is None or BEST[one.state] < BEST[before.state]:
            best[key] = one
        elif before.state == one.state == "done" and before.found != one.found:
            most = apart(before.found, one.found)
            if most:
                conflicts.setdefault(key, Conflict(one.cell.label, key, most))
    places = [(one.cell.work, *map(one.cell.place.get, AXES)) for one in best.values()
              if one.cell.work not in ("train", "measure")]  # fmt: skip
    first = sweeps[0]
    whole = first if len(sweeps) == 1 else replace(
        first, standings=tuple(best.values()), changed=sum(one.changed for one in sweeps)
    )  # fmt: skip
    names = tuple(Path(one.path).name for one in sweeps)
    twice = len(places) - len(set(places))
    return Together(whole, names, files, tuple(conflicts.values()), twice)


def apart(one: Any, other: Any) -> float:
    """How far two results are apart in any number; NaN where they differ in something else."""
    match one, other:
        case dict(), dict() if one.keys() == other.keys():
            return _most(apart(one[key], other[key]) for key in one)
        case list(), list() if len(one) == len(other):
            return _most(map(apart, one, other))
        case (int() | float(), int() | float()):
            same = one == other or (math.isnan(one) and math.isnan(other))
            return 0.0 if same else abs(one - other)
    return 0.0 if one == other else math.nan


def _most(values: Iterator[float]) -> float:
    some = list(values)
    return math.nan if any(map(math.isnan, some)) else max(some, default=0.0)


# --- into one folder ------------------------------------------------------------------------------


def merge_sweeps(
    paths: Sequence[Path_], out: Path_, models: bool = False, numbers: bool = False
) -> Task[Together]:
    """Write folders as one: all cells of their plans, of each the first result there is.

    models: also the models that were trained, which cells that are still to be done need. numbers:
    only what reports and figures are made from, to be kept or given away: DIGITS digits, nothing
    measured of single heads, no names of machines and folders. The folder is there whole or not at
    all. Errors: HgvizError for folders that cannot be read, and for a name where something is.
    """
    from hgviz.store.sweep import SweepFolder

    target = Path(out).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise HgvizError(
            f"{out} is there already", "studies are merged into a new folder", "Choose another name"
        )
    found = together(paths)
    folders = [SweepFolder(one) for one in paths]
    cells = [one.cell for one in found.sweep.standings]
    if numbers:
        cells = [
            replace(one, paths={name: Path(path).name for name, path in one.paths.items()})
            for one in cells
        ]
    with _whole(target) as place:
        merged = SweepFolder(place)
        merged.write_plan(found.files[0], cells, more=found.files[1:])
        for number, cell in enumerate(cells):
            yield Step(number, len(cells), f"copying {cell.label}")
            having = [one for one in folders if one.is_done(cell.key)]
            having += [one for one in folders if one.is_given_up(cell.key)]
            for source in having[:1]:
                for path in source.files_of(cell.key, models and not numbers):
                    if not numbers:
                        _copy(source, path, place)
                    elif path.suffix == ".json":
                        _copy_numbers(source, path, place)
    return found


def _copy(source: SweepFolder, path: Path, place: Path) -> None:
    """One file of a folder. Errors: HgvizError for a link, which could lead anywhere."""
    if path.is_symlink() or not path.is_file():
        raise HgvizError(
            f"{path} is not a file of a study", "it is a link, or something else than a file",
            "Delete it and run the study again",
        )  # fmt: skip
    to = place / path.relative_to(source.path)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


def _copy_numbers(source: SweepFolder, path: Path, place: Path) -> None:
    """A result without where it was computed, its numbers to DIGITS. Errors: HgvizError."""
    from hgviz.store.files import whole_text
    from hgviz.store.strangers import read_object
    from hgviz.store.sweep import MOST_RESULT

    told = read_object(path, MOST_RESULT)
    parts = [one for one in (told, told.get("made")) if isinstance(one, dict)]
    for part, name in product(parts, ("host", "pid", "details")):
        part.pop(name, None)
    to = place / path.relative_to(source.path)
    to.parent.mkdir(parents=True, exist_ok=True)
    whole_text(to, json.dumps(_rounded(told), sort_keys=True), lasting=False)


def _rounded(told: Any) -> Any:
    match told:
        case dict():
            return {name: _rounded(one) for name, one in told.items()}
        case list():
            return [_rounded(one) for one in told]
        case float():
            return float(f"{told:.{DIGITS}g}")
    return told


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A folder beside the one that is wanted, which becomes it at the end."""
    from hgviz.store.files import writing

    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            yield place
            place.chmod(0o777 & ~_mask())
            if target.is_dir():
                target.rmdir()
            os.replace(place, target)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _mask() -> int:
    """What new files may not be, as the process has it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def said_of_merging(found: Together) -> tuple[str, ...]:
    """What to know of folders that were read as one, in sentences."""
    told = []
    if len(found.files) > 1:
        told.append(
            f"The folders are of {len(found.files)} study files: here are the cells of all."
        )
    if found.conflicts:
        shapes = sum(math.isnan(one.most) for one in found.conflicts)
        most = max((one.most for one in found.conflicts if not math.isnan(one.most)), default=0.0)
        other = f", {shapes:,} of them of another shape" if shapes else ""
        told.append(
            f"{len(found.conflicts):,} cells have other numbers in another folder, at most "
            f"{most:.3g} apart{other}; those of the first folder that has them are taken."
        )
    if found.twice:
        told.append(
            f"{found.twice:,} cells stand where one of other settings stands already: tables and "
            "figures leave them out."
        )
    return tuple(told)


def facts(found: Together) -> Mapping[str, Any]:
    """What is said of folders that were read as one, as JSON."""
    return {
        "folders": list(found.names), "study_files": len(found.files), "twice": found.twice,
        "conflicts": [
            {"key": one.key, "cell": one.label, "most": None if math.isnan(one.most) else one.most}
            for one in found.conflicts
        ],
    }  # fmt: skip


__all__ = [
    "Conflict", "Together", "apart", "facts", "joined", "merge_sweeps", "said_of_merging",
    "together",
]  # fmt: skip
