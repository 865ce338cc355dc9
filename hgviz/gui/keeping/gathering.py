"""From what is open to a session in a file, and from its file to what is there of it."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hgviz.core import HgvizError, Step, Task
from hgviz.session import places, saved
from hgviz.session.saved import (
    Beside,
    Chosen,
    Layout,
    Place,
    Saved,
    SavedMask,
    SavedScore,
    Shown,
)

if TYPE_CHECKING:
    from hgviz.session import Session
    from hgviz.study import Mask

NAMES = {
    "model": "Model", "capture": "Capture", "ids": "Token ids", "study": "Study",
    "unsaved": "Scores", "data": "Data",
    "beside": "B", "sweep": "Study of runs",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checked:
    """A session file, the paths of what it names that are there, by what they are for, and those
    of what is missing."""

    file: str
    saved: Saved
    paths: dict[str, str]
    missing: dict[str, str]


def gather(session: Session, layout: Layout) -> tuple[Saved, dict[str, str]]:
    """What a session has, and the paths of what lies elsewhere, by what they are for.

    A capture without a file is left to its model and text.
    """
    a, other, study = session.capture, session.other, session.study
    in_file = a is not None and bool(a.path)
    beside = None
    if other is not None:
        beside = Beside(
            other.kind, other.activation, Place("") if other.path else None, other.text,
            other.second, _names(other.off),
        )  # fmt: skip
    chosen, look = session.selection, session.display
    found = Saved(
        saved.FORMAT,
        saved.VERSION,
        activation=session.activation,
        item=a.item if a is not None and in_file else 0,
        text="" if in_file and not session.stale else session.text,
        second="" if in_file and not session.stale else session.second,
        off=_names(session.off),
        masks=tuple(map(_mask, session.masks)),
        scored=session.trial.examples.digest if session.trial is not None else "",
        beside=beside,
        score=session.score,
        cell=session.cell,
        chosen=Chosen(
            chosen.layer, chosen.head, chosen.query, chosen.key,
            "" if chosen.beside is None else str(chosen.beside),
        ),
        shown=Shown(
            look.palette, look.limits, look.scale, look.shared, session.mode, session.look,
            session.shade,
        ),
        layout=layout,
    )  # fmt: skip
    paths = {
        "model": session.checkpoint,
        "capture": a.path if a is not None else "",
        "ids": session.ids,
        "study": study.path if study is not None else "",
        "data": session.data,
        "beside": other.path if other is not None else "",
        "sweep": _runs(session),
    }
    return found, {name: path for name, path in paths.items() if path}


def placed(found: Saved, paths: dict[str, str], file: str) -> Saved:
    """A session with the places of its paths beside its file."""
    for name, path in paths.items():
        found = found.moved(name, places.place_of(path, file))
    return found


def saving(found: Saved, paths: dict[str, str], file: str) -> Task[str]:
    """Write a session. Errors: HgvizError where its place cannot be written."""
    yield Step(0, 1, "writing the session")
    try:
        return saved.write(placed(found, paths, file), file)
    except OSError as error:
        raise HgvizError(
            f"{os.path.basename(file)} could not be written",
            error.strerror or str(error),
            "Choose another place",
        ) from None


def checking(file: str) -> Task[Checked]:
    """Read a session, and look at what it names. Errors: HgvizError for what is no session."""
    yield Step(0, 1, "reading the session")
    found = saved.read(file)
    there: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, place in found.places.items():
        yield Step(0, 1, f"looking for {place.path}")
        path = places.path_of(place, file)
        (there if places.is_at(place, file) else missing)[name] = path
    return Checked(file, found, there, missing)


def _mask(one: Mask) -> SavedMask:
    score = one.score
    if score is not None and math.isfinite(score.value + score.low + score.high):
        numbers = score.value, score.low, score.high, score.seen, score.total
        return SavedMask(one.name, _names(one.off), SavedScore(score.metric, *numbers, one.change))
    return SavedMask(one.name, _names(one.off))


def _runs(session: Session) -> str:
    """The folder of the study of many runs, its file where there is none yet."""
    one = session.sweep
    if one is None:
        return ""
    return one.path if os.path.isdir(one.path) else session.sweep_file


def _names(heads: frozenset[object]) -> tuple[str, ...]:
    return tuple(str(one) for one in sorted(heads))  # type: ignore[type-var]


__all__ = ["NAMES", "Checked", "checking", "gather", "placed", "saving"]
