"""Whatever is done at the window, in whatever order: nothing breaks, stays behind or grows."""

import ctypes
import gc
import logging
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, qInstallMessageHandler
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication

from hgviz import settings, tasks
from hgviz.core import HgvizError
from hgviz.gui.actions import ACTIONS
from hgviz.gui.window import application
from hgviz.jobs import Job
from tests.gui.conftest import app, new_program, program, until  # noqa: F401 - fixtures
from tests.soak.good import TINY
from tests.soak.monkey import LONGEST, Larder, Monkey

SEED = int(os.environ.get("MONKEY_SEED", 1))  # that of a failure, to see it again
FEW, MANY, EACH = 60, int(os.environ.get("MONKEY_STEPS", 5000)), 500
CAPTURES = int(os.environ.get("MONKEY_CAPTURES", 1000))
OF_MODULE = 150  # objects of a module that is imported late, and stays
MEMORY = {"steps": 150 << 20, "captures": 50 << 20}  # bytes that may be held in addition
MODES = ("inspect", "follow", "prune", "compare")
LOOKS = ("map", "links", "neurons", "attribution", "across", "heads")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells")


# --- what must not grow, and what must not happen -------------------------------------------------


class Census(NamedTuple):
    """How much there is: objects that Python's collector knows, imported modules, open files but
    fonts, bytes in RAM after free memory was given back."""

    widgets: int
    objects: int
    modules: int
    threads: int
    files: tuple[str, ...]
    memory: int

    @classmethod
    def take(cls) -> Self:
        """Count now, after everything that waits for deletion is deleted."""
        for _ in range(2):
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        files = []
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # the list of what is open
                files.append(os.readlink(f"/proc/self/fd/{number}"))
        fonts = (".ttf", ".otf", ".ttc", ".cache")
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            len(QApplication.allWidgets()), len(gc.get_objects()), len(sys.modules),
            len(os.listdir("/proc/self/task")),
            tuple(file for file in files if file[:1] == "/" and not file.endswith(fonts)),
            pages * os.sysconf("SC_PAGE_SIZE"),
        )  # fmt: skip

    def __str__(self) -> str:
        return (
            f"{self.widgets} widgets, {self.objects:,} objects of {self.modules:,} modules, "
            f"{self.threads} threads, {len(self.files)} files, {self.memory / 2**20:.0f} MB"
        )


@contextmanager
def faults():
    """Collect exceptions of slots, threads and lanes that are no HgvizError, and warnings of Qt."""
    found: list[str] = []

    def uncaught(kind, error, trace):
        found.append("".join(traceback.format_exception(kind, error, trace)))

    def ignored(lost):
        found.append(f"{lost.err_msg or 'ignored'}: {lost.object!r}: {lost.exc_value!r}")

    def in_thread(lost):
        uncaught(lost.exc_type, lost.exc_value, lost.exc_traceback)

    def of_qt(kind, context, words):
        if not words.startswith("This plugin does not support"):  # what is impossible off screen
            found.append(f"Qt: {words}")

    tell = Job._tell

    def of_lanes(job, listener, value):
        if isinstance(value, BaseException) and not isinstance(value, HgvizError):
            found.append(f"{job.title}: {''.join(traceback.format_exception(value))}")
        tell(job, listener, value)

    log, handler = logging.getLogger("hgviz.window"), logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(handler.format(record))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "excepthook", uncaught)
        patch.setattr(sys, "unraisablehook", ignored)
        patch.setattr(threading, "excepthook", in_thread)
        patch.setattr(Job, "_tell", of_lanes)
        log.addHandler(handler)
        before = qInstallMessageHandler(of_qt)
        try:
            yield found
        finally:
            qInstallMessageHandler(before)
            log.removeHandler(handler)


# --- a person's folders ---------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder that takes everything that is written without asking."""
    for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        place = tmp_path / name.lower()
        place.mkdir()
        monkeypatch.setenv(name, str(place))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "xdg_cache_home"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "home")
    settings.save(settings.Settings(folder=str(tmp_path / "home")))
    return tmp_path


@pytest.fixture
def monkey(qapp, home, monkeypatch):
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: True)  # nobody is there to see it
    application()  # with all that it sets, such as how memory is kept
    for name in ("larder", "out"):
        (home / name).mkdir()
    monkey = Monkey(SEED, Larder.fill(home / "larder"), home / "out")
    yield monkey
    monkey.end()


# --- steps at random ------------------------------------------------------------------------------


def take_steps(monkey, steps, each):
    """A census after each so many steps, when the window is closed."""
    found = []
    with faults() as wrong:
        try:
            for at in range(1, steps + 1):
                monkey.step()
                assert not wrong, wrong[0]
                if at == steps or at % each == 0:
                    monkey.end()
                    found.append(Census.take())
                    print(f"{at:6,} steps: {found[-1]}")
                    assert not wrong, wrong[0]
        except Exception as error:
            last = "\n  ".join(monkey.log)
            words = f"seed {SEED}, step {monkey.number}, after\n  {last}\n{error}"
            raise AssertionError(words) from error
    return found


@pytest.mark.timeout(600)
def test_a_monkey_finds_nothing_that_breaks(monkey, home):
    before = Census.take()
    (after,) = take_steps(monkey, FEW, FEW)
    assert after.widgets == before.widgets and sorted(after.files) == sorted(before.files)
    assert not [*(home / "tmpdir").iterdir()]


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_five_thousand_steps_break_nothing_and_leave_nothing(monkey, home, capsys):
    with capsys.disabled():
        found = take_steps(monkey, MANY, EACH)
    warm, last = found[min(1, len(found) - 1)], found[-1]
    objects = last.objects - warm.objects - OF_MODULE * (last.modules - warm.modules)
    wrong = {
        "actions never done": [one.name for one in ACTIONS if not monkey.done[one.name]],
        "widgets left": [one.widgets for one in found if one.widgets],
        "threads more": max(0, last.threads - warm.threads),
        "files open": [one for one in last.files if one not in warm.files],
        "objects more": max(0, objects - warm.objects // 50),
        "bytes more": max(0, last.memory - warm.memory - MEMORY["steps"]),
        "files left": [*(home / "tmpdir").iterdir()],
    }
    assert not {name: one for name, one in wrong.items() if one}


# --- many captures, many windows, every cell of a study -------------------------------------------


def open_captures(monkey, wrong, turns):
    """Open captures of every kind by turns, on every page and with every look; a census."""
    session, paths = monkey.program.session, monkey.larder.captures
    for turn in turns:
        lap, at = divmod(turn, len(paths))
        monkey.program.commands.open_path(paths[at])
        monkey.rest(LONGEST)
        session.put(mode=MODES[lap % 4], look=LOOKS[lap // 4 % 6])
        monkey.rest(LONGEST)
        assert not wrong, f"{paths[at]}, {session.mode}, {session.look}: {wrong[0]}"
        assert session.capture.path == paths[at]
    return Census.take()


def assert_no_more(before, after):
    """A hidden pane may still hold the capture that it showed last, and what it said of it."""
    assert after.threads <= before.threads
    assert len(after.files) <= len(before.files) + 2, sorted(after.files)
    assert after.widgets <= before.widgets + 8


@pytest.mark.timeout(600)
def test_opened_captures_leave_no_file_open_and_no_widget(monkey):
    laps = range(len(monkey.larder.captures))
    monkey.begin()
    monkey.rest(LONGEST)
    with faults() as wrong:
        open_captures(monkey, wrong, laps)
        monkey.program.recovery.keep()  # its thread begins with the first change that is kept
        monkey.rest(LONGEST)
        assert_no_more(Census.take(), open_captures(monkey, wrong, laps))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_thousand_captures_take_no_more_memory_than_the_first(monkey, capsys):
    warm = len(monkey.larder.captures) * len(MODES) * len(LOOKS)  # everything was shown once
    monkey.begin()
    monkey.rest(LONGEST)
    with faults() as wrong:
        found = [open_captures(monkey, wrong, range(warm))]
        for first in range(0, CAPTURES, 100):
            found.append(open_captures(monkey, wrong, range(first, first + 100)))
            with capsys.disabled():
                print(f"{first + 100:5,}: {found[-1]}")
    assert max(one.memory for one in found) - found[0].memory < MEMORY["captures"]
    assert_no_more(found[0], found[-1])


FIFTY_WINDOWS = """
import gc, sys
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from hgviz.files import resource
from hgviz.gui.selftest import opened
from hgviz.gui.sources import FIRST
left = []
for number in range(50):
    with opened(resource(FIRST), dark=number % 2) as (program, frame):
        program.session.put(look='heads')
        program.settle()
        assert frame.grab().width() and 'pyqtgraph' in sys.modules
    del program, frame
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    left.append(len(QApplication.allWidgets()))
print(left[1], left[-1])
"""


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_fifty_windows_with_charts_open_and_close_and_the_program_ends_well():
    command = [sys.executable, "-X", "faulthandler", "-c", FIFTY_WINDOWS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    first, last = map(int, done.stdout.split())
    assert last <= first


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_kind_of_cell_of_a_study_is_opened(program, tmp_path, until):  # noqa: F811
    path, session, commands = tmp_path / "tiny.toml", program.session, program.commands
    path.write_text(TINY)
    tasks.run_sweep(path, tmp_path / "tiny")
    commands.open_path(str(path))
    until(lambda: session.sweep is not None and session.sweep.complete)
    shown = {
        "train": lambda: session.capture is not None and session.capture.complete,
        "curve": lambda: session.study is not None and session.mode == "prune",
        "score": lambda: session.capture is not None and session.mode == "inspect",
        "compare": lambda: session.capture_b is not None and session.mode == "compare",
    }
    for work, is_shown in shown.items():
        session.put(mode="sweep")
        session.put(cell=session.sweep.of(work)[0].cell.key)
        QApplication.processEvents()
        commands.run("open_cell")
        until(is_shown)
        assert program.frame.toolbar.models.name.full.startswith("tiny")
