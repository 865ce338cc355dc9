"""The folder OUT.part of a verb whose work is cut into cells: what it is of, and their results.

    asked.json         {"of": {...}, "pace": {...}}: what must not be mixed, by the words people
                       know; seconds of one piece of work, so that it is cut alike the next time
    cells/AB/KEY.json  as in store.sweep; KEY.npz: the arrays of a cell

The folder that a capture grows in may hold such cells, too.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import HgvizError
from hgviz.store import schema
from hgviz.store.files import TEMPORARY, whole_bytes, writing
from hgviz.store.sweep import CELLS, KEY, SweepFolder
from hgviz.store.tries import is_alive

ASKED, ARRAYS = "asked.json", ".npz"
MOST_ASKED = 1 << 20  # bytes
Arrays = Mapping[str, NDArray[Any]]


class PortionFolder(SweepFolder):
    """The folder beside an output. of: what its results are of, by names that are shown to people.

    pace: seconds that a piece of work takes, by its name, as measured where it was begun. Errors:
    HgvizError where a folder is of something else, unless force, which begins anew.
    """

    def __init__(self, out: str | Path, of: Mapping[str, Any], force: bool = False) -> None:
        out = Path(out).resolve()
        super().__init__(out.with_name(out.name + schema.PART))
        self.of = json.loads(json.dumps(of))
        told = _read(self.path / ASKED)
        was = told.get("of")
        if not force and isinstance(was, dict):
            self._require_same(was)
        if force or was != self.of:
            clear(self.path)
            told = {}
        pace = told.get("pace", {})
        self.pace = {name: float(seconds) for name, seconds in pace.items()}

    def _require_same(self, was: Mapping[str, Any]) -> None:
        other = [name for name in self.of if was.get(name) != self.of[name]]
        if other:
            raise HgvizError(
                f"{self.path} holds unfinished work of another {' and another '.join(other)}",
                "going on with it would mix the two",
                "Finish that one, choose another name, or remove it",
            )

    def begin_cells(self, keys: Collection[str]) -> set[str]:
        """Have room for some cells; which of them are done. Tries of earlier runs do not count."""
        told = json.dumps({"of": self.of, "pace": self.pace}, indent=1)
        with writing(self.path):
            for key in keys:
                self.result_at(key).parent.mkdir(parents=True, exist_ok=True)
            whole_bytes(self.path / ASKED, told.encode())
        done = {key for key in keys if self.is_done(key)}
        for key in set(keys) - done:
            self.result_at(key, ".failed.json").unlink(missing_ok=True)
            if not is_alive(self._running(key)):
                self.result_at(key, ".running.json").unlink(missing_ok=True)
        return done

    def why_failed(self, key: str) -> str:
        """Why a cell was given up, in one line."""
        return str(_read(self.result_at(key, ".failed.json")).get("line", ""))

    def forget(self, keys: Collection[str]) -> None:
        """These cells are in the output now; the folder goes with the last one."""
        _remove(self.path, set(keys))


def write_arrays(folder: SweepFolder, key: str, arrays: Arrays) -> None:
    """What a cell measured. Errors: HgvizError where it cannot be written."""
    packed = io.BytesIO()
    np.savez(packed, **dict[str, Any](arrays))
    path = folder.result_at(key, ARRAYS)
    with writing(path, "what is done is kept"):
        whole_bytes(path, packed.getvalue())


def read_arrays(folder: SweepFolder, key: str) -> dict[str, NDArray[Any]]:
    """The same. Errors: HgvizError for a file that is damaged."""
    path = folder.result_at(key, ARRAYS)
    try:
        with np.load(path, allow_pickle=False) as found:
            return dict(found)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        folder.result_at(key).unlink(missing_ok=True)  # the next time it is computed again
        raise HgvizError(
            f"{path} is damaged", "it is not what was measured", "Run the same command again"
        ) from error


def clear(part: Path) -> None:
    """Remove all cells of a folder, and the folder itself where nothing else is in it."""
    _remove(part, None)


def _remove(part: Path, keys: set[str] | None) -> None:
    for file in part.glob(f"{CELLS}/??/*"):
        key = file.name.partition(".")[0]
        if KEY.fullmatch(key) and (keys is None or key in keys):
            file.unlink(missing_ok=True)
    for folder in (*part.glob(f"{CELLS}/??"), part / CELLS):
        with suppress(OSError):
            folder.rmdir()
    if not (part / CELLS).exists():
        for name in (ASKED, ASKED + TEMPORARY):
            (part / name).unlink(missing_ok=True)
        with suppress(OSError):
            part.rmdir()


def _read(path: Path) -> dict[str, Any]:
    """A small file of ours; nothing where there is none that can be read."""
    try:
        if path.stat().st_size > MOST_ASKED:
            return {}
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


__all__ = ["PortionFolder", "clear", "read_arrays", "write_arrays"]
