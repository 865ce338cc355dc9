"""Running a study file: its cells here or on a cluster, and what stands in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.cluster import HERE, Outcome, require_scheduler, run
from hgviz.core import HgvizError, progress
from hgviz.study import Cell, Standing, Sweep

if TYPE_CHECKING:
    from hgviz.store.studies import SweepFolder


def run_sweep(
    file: str | Path,
    out: str | Path,
    scheduler: str = HERE,
    again: bool = False,
    part: tuple[int, int] = (1, 1),
) -> Sweep:
    """Compute what is missing of a study file's cells into a folder, made where it is not there.

    scheduler: see hgviz.cluster. again: cells that failed are computed once more. part: (K, N),
    only the K-th of N parts of the models, so that N machines can share the work. The progress
    carries a cell and its outcome, or None; once, before the first cell, the Sweep as it stands.
    Errors: HgvizError for a file that cannot be used, and for what stops everything, such as a full
    disk: what is done by then is kept.
    """
    require_scheduler(scheduler)
    from hgviz.store.studies import SweepFolder, is_sweep, read_study_file
    from hgviz.tasks.cells import forget_models, work_in
    from hgviz.tasks.planning import plan

    asked = read_study_file(file)
    folder = SweepFolder(Path(out).resolve())
    _require_ours(folder.path)
    cells = plan(asked, Path(file).resolve().parent)
    changes = _changes(folder, cells) if is_sweep(folder.path) else ()
    folder.write_plan(Path(file).read_text(encoding="utf-8"), cells, changes=changes)
    if again:
        folder.forgive()
    sweep = folder.sweep()
    done = {one.cell.key for one in sweep.standings if one.state == "done"}
    failed = {one.cell.key for one in sweep.standings if one.state in ("failed", "blocked")}
    mine = _part(cells, *part)
    wanted = [one for one in cells if one.key not in failed and one.key in mine]
    progress(0, len(cells), f"{len(done)} of {len(cells)} cells are done", sweep)
    try:
        run(
            wanted, work_in(str(folder.path)), scheduler, done, str(folder.path),
            partial(give_up, folder),
        )  # fmt: skip
    finally:
        forget_models()
    return folder.sweep(sweep)


def give_up(folder: SweepFolder, cell: Cell) -> Outcome:
    """What becomes of a cell at which worker after worker died: it failed, unless one of them was
    done with it."""
    if folder.is_done(cell.key):
        return "done"
    if not folder.is_failed(cell.key):
        folder.fail(cell.key, "its worker died each time")
    return "failed"


def sweep_at(path: str | Path, before: Sweep | None = None) -> Sweep:
    """How the cells of a folder stand; before: how they stood, so that less is read again.

    Errors: HgvizError for what is no folder of a study.
    """
    from hgviz.store.studies import SweepFolder

    return SweepFolder(path).sweep(before)


def is_sweep_file(path: str | Path) -> bool:
    """Whether a path is a study file, by its ending, or the folder of a study."""
    from hgviz.store.studies import is_sweep

    return is_sweep(path) or (Path(path).suffix.lower() == ".toml" and Path(path).is_file())


def open_sweep(path: str | Path) -> Sweep:
    """The folder of a study as it stands; of a study file the one of its name beside it, or what
    would be computed there. Errors: HgvizError for what is neither."""
    from hgviz.store.studies import FILE, is_sweep
    from hgviz.tasks.planning import plan

    progress(0, 1, "looking at the cells")
    if is_sweep(path):
        return sweep_at(path)
    from hgviz.store.studies import read_study_file

    asked, out = read_study_file(path), Path(path).resolve().with_suffix("")
    if is_sweep(out) and (out / FILE).read_bytes() == Path(path).read_bytes():
        return sweep_at(out)
    cells = plan(asked, Path(path).resolve().parent)
    return Sweep(asked, tuple(Standing(one) for one in cells), str(out))


def _changes(folder: SweepFolder, cells: Sequence[Cell]) -> tuple[str, ...]:
    """What is another now than when the folder was planned: files by their names, or settings."""
    now = {(one.work, frozenset(one.place.items())): one for one in cells}
    keys = {one.key for one in cells}
    found = dict.fromkeys(folder.changes())
    for old in folder.cells():
        if old.key in keys:
            continue
        new = now.get((old.work, frozenset(old.place.items())))
        if new is None:
            found["what is asked"] = None
            continue
        before, after = _digests(old), _digests(new)
        others = [name for name in before if name in after and before[name] != after[name]]
        for name in others:
            found[Path(new.paths[name]).name] = None
        if not others and _settings(old) != _settings(new):
            found[f"settings of {old.work}"] = None
    return tuple(found)


def _digests(cell: Cell) -> dict[str, str]:
    """The digest of every file of a cell, by its name in paths."""
    given = cell.given
    found = dict(given.get("files", {}))
    for name in cell.paths:
        side, _, word = name.rpartition(" ")
        value = (given.get(side, {}) if side else given).get(word)
        if isinstance(value, str):
            found[name] = value
    return found


def _settings(cell: Cell) -> dict[str, Any]:
    """What decides of a cell beside its files and the models it needs."""
    beside = ("files", "data", "checkpoint", "trained", "a", "b")
    return {name: value for name, value in cell.given.items() if name not in beside}


def _part(cells: Sequence[Cell], number: int, of: int) -> frozenset[str]:
    """The cells of one of several parts; all of a model, data and seed are in one."""
    groups = sorted({_group(one) for one in cells})
    mine = set(groups[number - 1 :: of])
    return frozenset(one.key for one in cells if _group(one) in mine)


def _group(cell: Cell) -> tuple[str, ...]:
    return tuple(cell.place.get(axis, "") for axis in ("seed", "data", "model"))


def _require_ours(path: Path) -> None:
    from hgviz.store.studies import CELLS, FILE, is_sweep

    if path.exists() and not path.is_dir():
        raise HgvizError(f"{path} is a file: a study has a folder", "Choose another name")
    there = {one.name for one in path.iterdir()} if path.exists() else set()
    begun = CELLS in there and there <= {CELLS, FILE}  # ended before it had a plan: a full disk
    if there and not begun and not is_sweep(path):
        raise HgvizError(
            f"{path} holds other things: a study has a folder of its own", "Choose another folder"
        )


__all__ = ["is_sweep_file", "open_sweep", "run_sweep", "sweep_at"]
