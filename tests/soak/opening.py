"""Opens changed files the way the program does, and says of each how that ended.

Run as a process of its own, with little memory: GOOD CANARY KIND SEED FIRST END. Each input is
announced and judged on a line of its own, so that whoever reads knows which one did not return.
KIND is one kind of change, or "captures", "models" or "studies" for all of these in turn.
"""

import ctypes
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MEMORY = 2 * 2**30
IN_ACCESS, IN_OPEN = 0x1, 0x20
TEXTS = ("the cat sat.", "a" * 60 + "b", "나는 \U0001f600 \u202e$x$ <b>\0", "a" * 600)


class Watch:
    """Files that nothing may open: Python's own opens are heard of by an audit hook, those of
    libraries by the kernel."""

    def __init__(self, canary: Path) -> None:
        self.allowed: tuple[str, ...] | None = None
        self.opened: list[str] = []
        self._made: list[str] = []
        self._canary = canary
        self._before = sorted(canary.iterdir())
        library = ctypes.CDLL(None, use_errno=True)
        self._events = library.inotify_init1(os.O_NONBLOCK)
        for path in self._before:
            library.inotify_add_watch(self._events, os.fsencode(path), IN_ACCESS | IN_OPEN)
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "tempfile.mkdtemp":  # the program's own, for copies
            self._made.append(str(arguments[0]))
        if self.allowed is None or event not in ("open", "subprocess.Popen", "os.system"):
            return
        path = arguments[0]
        if isinstance(path, int):
            return
        whole = os.path.abspath(os.fsdecode(path)) if event == "open" else f"{event} {path}"
        if not whole.startswith((*self.allowed, *self._made)):
            self.opened.append(whole)

    @contextmanager
    def only(self, folder: Path) -> Iterator[None]:
        """Within, files of this folder and of the program itself may be opened."""
        program = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), os.devnull, "/proc",
                   "/sys/fs/cgroup")  # fmt: skip
        self.allowed = (str(folder), *program)
        try:
            yield
        finally:
            self.allowed = None

    def found(self) -> list[str]:
        """What was opened or made that should not have been."""
        found, self.opened = self.opened, []
        try:
            if self._events >= 0 and os.read(self._events, 4096):
                found.append("the canary, by a library")
        except BlockingIOError:
            pass
        if sorted(self._canary.iterdir()) != self._before:
            found.append("something was made beside the canary")
        return found


def open_as_the_program_does(path: Path) -> None:
    """What `hgviz info` and the window do with a path somebody opens."""
    from hgviz import tasks

    kind = tasks.kind_of(path)
    if kind == "capture":
        _capture(path)
    elif kind == "study":
        _study(path)
    else:
        _checkpoint(path)


def _capture(path: Path) -> None:
    from hgviz import tasks
    from hgviz.store import open_capture

    json.dumps(tasks.info(path))
    opened = open_capture(path)
    if len(opened.items) > 1:
        opened = open_capture(path, 1)
    str(opened.main.digest), [opened.prompt.label(i) for i in range(len(opened.prompt))]
    for layer, one in enumerate(opened.maps):
        if one is None:
            continue
        opened.query_spans(layer), opened.key_spans(layer)
        for head in one.heads[:2]:
            one.summary(head)
            one.read(head)
            one.read(head, zoom=1)
            one.read(head, reduce="mean", zoom=1)
            one.overview(head, zoom=3)
            one.overview(head, zoom=5, reduce="mean")


def _study(path: Path) -> None:
    from hgviz import tasks
    from hgviz.analysis.importance import (
        importance,
        mean_along,
        random_band,
        random_curves_beside,
        removable_heads,
    )
    from hgviz.store import open_study

    found = tasks.info(path)
    json.dumps(found)
    opened = open_study(path)
    for method in found["methods"]:
        json.dumps(importance(opened, method).to_rows())
    for one in opened.curves:
        removable_heads(one)
        mean_along(one.removed, one.values)
        random_band(random_curves_beside(opened, one))


def _checkpoint(path: Path) -> None:
    from hgviz.models import open_model

    model = open_model(path)
    for text in TEXTS:
        tell(lambda text=text: model.tokenize(text))
    tell(lambda: model.from_ids([0, 1, 2]))


def tell(work: Any) -> None:
    """Do it; one error for people is as good as none."""
    from hgviz.core import HgvizError

    try:
        work()
    except HgvizError as error:
        check(error)


def check(error: Any) -> None:
    """An error for people: what and why, each of one line that can be shown."""
    for part in (error.what, error.what, error.do):
        odd = [one for one in part if one != " " and not one.isprintable()]
        assert not odd, f"{odd[:3]!r} in {part!r}"
        assert len(part) < 600, f"{len(part)} characters: {part[:80]!r}"
    assert error.what and error.what, error.args
    told = (error.details, error.what, repr(error.__cause__), repr(error.__context__))
    assert not any("MemoryError" in one or "fit in memory" in one for one in told), told


def judge(path: Path) -> tuple[str, str]:
    """How opening ended: opened, refused, or wrong with what."""
    from hgviz.core import HgvizError

    try:
        try:
            open_as_the_program_does(path)
        except HgvizError as error:
            check(error)
            return "refused", str(error)[-100:]
    except BaseException:
        return "wrong", "".join(traceback.format_exc(limit=-6))[-2500:]
    return "opened", ""


def main(good: str, canary: str, kind: str, seed: str, first: str, end: str) -> None:
    import numpy as np

    from tests.soak import captures, models, studies

    groups = {"captures": captures.CHANGES, "models": models.CHANGES, "studies": studies.CHANGES}
    makers = {name: make for group in groups.values() for name, make in group.items()}
    own = next(name for name, group in groups.items() if kind == name or kind in group)
    kinds = [*groups[kind]] if kind in groups else [kind]  # in turn
    for warm in sorted(Path(good, own).iterdir()):  # what is imported late is imported now
        if not warm.name.endswith(".part"):
            open_as_the_program_does(warm)
    watch = Watch(Path(canary))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work = Path(tempfile.mkdtemp(dir=Path(canary).parent))
    os.chdir(work)
    for number in range(int(first), int(end)):
        one = kinds[number % len(kinds)]
        random = np.random.default_rng([int(seed), sorted(makers).index(one), number])
        folder = work / "in"
        folder.mkdir()
        path, why = None, ""
        try:
            path = makers[one](random, Path(good, own), folder, Path(canary))
        except (OSError, ValueError, LookupError, TypeError, RuntimeError) as error:
            why = f"{type(error).__name__}: {error}"  # HDF5 will not write everything
        watch.found()
        print(json.dumps({"number": number}), flush=True)
        started = time.monotonic()
        said = ("unmade", why)
        if path is not None:
            with watch.only(folder):
                said = judge(path)
        seconds = time.monotonic() - started
        outside = watch.found()
        verdict = ("wrong", f"opened {outside}") if outside else said
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        line = {"number": number, "verdict": verdict[0], "why": verdict[1], "seconds": seconds,
                "peak": peak}  # fmt: skip
        print(json.dumps(line), flush=True)
        shutil.rmtree(folder)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(*sys.argv[1:])
