"""What files mean that are dropped on the window, one or several at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hgviz import tasks
from hgviz.core import HgvizError, Step, Task
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.session.saved import is_session

TEXTS = (".txt", ".tsv", ".csv", ".jsonl")  # what is scored on, or captured text by text
IDS = ".json"

Kind = Literal["checkpoint", "capture", "study", "session", "sweep", "texts", "ids", "nothing"]
Deed = Literal["open", "data", "corpus", "ids", "together", "nothing"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with files. paths: by what each is for, as in a session where several are opened
    together, else the one path under "file". page: which is shown. said: in a line, what was left
    aside, or why there is nothing to do."""

    deed: Deed
    paths: dict[str, str]
    page: str = ""
    said: str = ""


def sorted_out(paths: list[str]) -> Task[list[tuple[str, Kind]]]:
    """What each of some paths holds, by content; texts and ids by their ending."""
    found: list[tuple[str, Kind]] = []
    for number, path in enumerate(paths):
        yield Step(number, len(paths), f"looking at {Path(path).name}")
        found.append((path, _kind(path)))
    return found


def _kind(path: str) -> Kind:
    if is_session(path):
        return "session"
    if tasks.is_sweep_file(path):
        return "sweep"
    try:
        return tasks.kind_of(path)
    except HgvizError:
        ending = Path(path).suffix.lower()
        if not Path(path).is_file():
            return "nothing"
        return "texts" if ending in TEXTS else "ids" if ending == IDS else "nothing"


def planned(found: list[tuple[str, Kind]], has_model: bool, page: str) -> Plan:
    """What to do with what was dropped. has_model: whether a checkpoint is open; page: which."""
    by: dict[str, list[str]] = {}
    for path, kind in found:
        by.setdefault(kind, []).append(path)
    if whole := by.get("session", []) + by.get("sweep", []):
        return Plan("open", {"file": whole[0]}, said=_aside(found, {whole[0]}))
    pictures = [path for path, kind in found if kind in ("checkpoint", "capture")]
    texts, studies = by.get("texts", []), by.get("study", [])
    if pictures:
        return _together(found, pictures, texts, studies)
    if studies:
        return Plan("open", {"file": studies[0]}, said=_aside(found, {studies[0]}))
    for kind, deed in (("texts", "data" if page == "prune" else "corpus"), ("ids", "ids")):
        if kind in by:
            path = by[kind][0]
            if not has_model:
                said = "{file} needs a model to read it: open or drop one with it"
                return Plan("nothing", {}, said=tr(said, file=name_of(path)))
            return Plan(deed, {"file": path}, said=_aside(found, {path}))  # type: ignore[arg-type]
    return Plan("nothing", {}, said=_nothing(found))


def _together(
    found: list[tuple[str, Kind]], pictures: list[str], texts: list[str], studies: list[str]
) -> Plan:
    """A model or a capture, B beside it, a study and data that belong to it."""
    kinds = dict(found)
    if len(pictures) == 2 and {kinds[one] for one in pictures} == {"checkpoint", "capture"}:
        pictures.sort(key=lambda one: kinds[one] == "checkpoint")  # of a capture something is seen
    a, *others = pictures
    paths = {"model" if kinds[a] == "checkpoint" else "capture": a}
    page = ""
    if others:
        paths["beside"], page = others[0], "compare"
    if studies:
        paths["study"], page = studies[0], page or "prune"
    if texts and kinds[a] == "checkpoint":
        paths["data"], page = texts[0], page or "prune"
    said = _aside(found, set(paths.values()))
    if len(paths) == 1:
        return Plan("open", {"file": a}, said=said)
    return Plan("together", paths, page, said)


def _aside(found: list[tuple[str, Kind]], used: set[str]) -> str:
    left = [path for path, _ in found if path not in used]
    if not left:
        return ""
    names = ", ".join(name_of(one) for one in left[:3])
    if len(left) > 3:
        return tr("Left aside: {files} and others", files=names)
    return tr("Left aside: {files}", files=names)


def _nothing(found: list[tuple[str, Kind]]) -> str:
    if len(found) == 1:
        return tr(
            "{file} is nothing that hgviz opens: it takes models, captures, studies and sessions",
            file=name_of(found[0][0]),
        )
    return tr(
        "None of these is something that hgviz opens: it takes models, captures, studies and "
        "sessions"
    )


__all__ = ["Plan", "planned", "sorted_out"]
