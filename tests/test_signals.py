"""Signals stop every command in one way: it says what is kept, and ends as shells expect."""

import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from hgviz.cli import terminal
from hgviz.cli.terminal import Stopped
from hgviz.core import progress
from hgviz.files import resource
from hgviz.jobs import interrupt_on_signals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

TEXT = "The hourglass reads letters, then pairs, then words. " * 200
LANGUAGE = """
[model]
hierarchy = "1@1 1@2 1@1"
d_model = 32
n_heads = 2
d_ff = 64
[data]
train = ["text.txt"]
valid = "text.txt"
[recipe]
steps = 100000
save_every = 2
"""


@pytest.fixture
def start(tmp_path):
    """Start hgviz in a folder of its own, with signals that are ignored where it starts from."""
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "plan.toml").write_text(LANGUAGE)
    header, *rows = resource("sample/reviews.tsv").read_text("utf-8").splitlines()
    (tmp_path / "rows.tsv").write_text("\n".join([header, *rows * 10]), "utf-8")
    started = []

    def begin(*words: str, ignored: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        def ignore() -> None:
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        process = subprocess.Popen(
            [sys.executable, "-m", "hgviz", *words], cwd=tmp_path, text=True, preexec_fn=ignore,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def computes(process: subprocess.Popen[str], _: Path) -> bool:
    """Whether it has loaded torch, and so is past its imports."""
    maps = Path(f"/proc/{process.pid}/maps")
    return "libtorch_cpu" in maps.read_text() if maps.exists() else True


def shows(process: subprocess.Popen[str]) -> bool:
    """Whether a window has opened its sample, the only file of HDF5 there is."""
    with suppress(OSError):
        files = [os.readlink(one) for one in Path(f"/proc/{process.pid}/fd").iterdir()]
        return any(one.endswith(".h5") for one in files)
    return False


def layers(_: subprocess.Popen[str], folder: Path) -> bool:
    """Whether a capture has begun its second layer, and so kept its first."""
    return (folder / "a.h5.part" / "layer-001.h5").exists()


def there(name: str, _: subprocess.Popen[str], folder: Path) -> bool:
    return (folder / name).exists()


CAPTURE = ("capture", "sample/hourglass", "--text-file", "text.txt", "-o", "a.h5")
STUDY = ("--data", "sample/reviews.tsv", "-o", "a.h5", "--method", "shapley")
TRAIN = ("train", "plan.toml", "-o", "out")
PRUNE = ("prune", "sample/hourglass", "--off", "0.0", "--data", "text.txt", "-o", "out")
COMPARE = ("compare", "sample/softmax", "sample/ymish", "--data", "rows.tsv")
GIVEN = {"text.txt", "plan.toml", "rows.tsv"}
IGNORED = (signal.SIGINT, signal.SIGQUIT)  # by a shell, of what a script puts in the background


@pytest.mark.parametrize(
    ("words", "begun", "number", "ignored", "kept", "left"),
    [
        (CAPTURE, layers, signal.SIGINT, IGNORED, "a.h5.part", {"a.h5.part"}),
        (CAPTURE, layers, signal.SIGTERM, (), "a.h5.part", {"a.h5.part"}),
        (CAPTURE, layers, signal.SIGHUP, (), "a.h5.part", {"a.h5.part"}),
        (("importance", "sample/softmax", *STUDY), computes, signal.SIGTERM, (), "", None),
        (TRAIN, partial(there, "out/state.pt"), signal.SIGTERM, IGNORED, "out", {"out"}),
        (PRUNE, partial(there, ".out.new"), signal.SIGTERM, (), "Nothing was left in out", set()),
        (COMPARE, computes, signal.SIGTERM, (), "", set()),
    ],
    ids=["capture-int", "capture-term", "capture-hup", "importance", "train", "prune", "compare"],
)
def test_a_command_stops_says_what_is_kept_and_ends_as_shells_expect(
    start, tmp_path, words, begun, number, ignored, kept, left
):
    process, end = start(*words, ignored=ignored), time.monotonic() + 90
    while not begun(process, tmp_path) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    last = said.splitlines()[-1]  # on a slow machine lines before it tell how far it is
    assert last.startswith("Stopped.") and kept in last and "Traceback" not in said
    if left is not None:
        assert {one.name for one in tmp_path.iterdir()} - GIVEN == left


def test_what_nohup_starts_outlives_its_terminal(start, tmp_path):
    process = start("info", "sample/hourglass", ignored=(signal.SIGHUP,))
    while process.poll() is None:
        process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_window_closes_in_order_and_keeps_what_is_open(start, tmp_path, monkeypatch, number):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("DISPLAY", ":none")
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    process, end = start(ignored=IGNORED), time.monotonic() + 60
    while not shows(process) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1)  # between the file that is opened and the window that has it
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + number, "")
    assert [one.name for one in (tmp_path / "home").rglob("last.hgviz")]


def test_signals_are_as_they_were_afterwards():
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with pytest.raises(KeyboardInterrupt), interrupt_on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    assert before == {one: signal.getsignal(one) for one in before}


def test_a_stop_that_python_loses_stops_all_the_same():
    """What is raised in the callback of a weak reference goes nowhere."""
    ended = []

    class Kept:
        pass

    def task():
        for number in range(3):
            one = Kept()
            weakref.finalize(one, lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(0.1)))
            del one
            ended.append(number)
            progress(number, 3)

    with interrupt_on_signals() as came, pytest.raises(Stopped, match="Half of it is kept"):
        terminal.run(task, "Working", "Half of it is kept")
    assert ended == [0] and not came
