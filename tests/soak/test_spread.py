"""Verbs of the command line by two workers of which one is killed, and killed and run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hgviz.resources import resource
from hgviz.store import open_study
from tests.store.test_study import same
from tests.test_spread import tree, unmade

ROWS, FEW = 1200, 120
OUT = {"importance": "s.h5", "shapley": "s.h5", "curve": "s.h5", "capture": "c.h5",
       "compare": "o.html"}  # fmt: skip

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(0),
    pytest.mark.skipif(os.name != "posix", reason="processes are killed"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.tsv"
    lines = resource("sample/reviews.tsv").read_text("utf-8").splitlines()[: ROWS + 1]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    few = path.with_name("few.tsv")
    few.write_text("\n".join(lines[: FEW + 1]) + "\n", "utf-8")
    return path


def words(verb, data):
    """A command that takes some tens of seconds."""
    few, model = data.with_name("few.tsv"), "sample/softmax"
    return {
        "importance": ("importance", model, "--data", data, "--method", "loo", "-o", "s.h5"),
        "shapley": ("importance", model, "--data", few, "--method", "shapley", "-o", "s.h5"),
        "curve": ("curve", "s.h5", model, "--data", few),
        "capture": ("capture", "sample/hourglass", "--corpus", few, "-o", "c.h5"),
        "compare": (
            "compare", model, "sample/ymish", "--data", data, "--texts", "120", "-o", "o.html",
        ),
    }[verb]  # fmt: skip


def started(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "hgviz", *map(str, arguments)], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip


def done(process):
    _, said = process.communicate()
    assert process.returncode == 0, said


@pytest.fixture
def folders(tmp_path, data, request):
    """Where a verb was run without a scheduler, and where it is to be run by one."""
    verb = request.param
    plain, other = tmp_path / "plain", tmp_path / "other"
    for folder in (plain, other):
        folder.mkdir()
        if verb == "curve":
            few = data.with_name("few.tsv")
            done(started(folder, "importance", "sample/softmax", "--data", few, "-o", "s.h5"))
    done(started(plain, *words(verb, data)))
    return verb, plain, other


def alike(verb, plain, other):
    one, two = (folder / OUT[verb] for folder in (plain, other))
    if verb == "capture":
        assert tree(one) == tree(two)
    elif verb == "compare":
        assert one.read_bytes() == two.read_bytes()
    else:
        same(unmade(open_study(two)), unmade(open_study(one)))
    assert not list(other.glob("*.part"))


def results(folder, verb):
    """The cells that are done, and when they were; of none where they were just put together."""
    try:
        cells = [*folder.glob(f"{OUT[verb]}.part/cells/*/*.json")]
        return {one.name: one.stat().st_mtime_ns for one in cells if one.name.count(".") == 1}
    except FileNotFoundError:
        return {}


def middle(process, folder, verb):
    """Wait until something is done; whoever computes a cell then."""
    while process.poll() is None:
        if results(folder, verb):
            for one in folder.glob(f"{OUT[verb]}.part/cells/*/*.running.json"):
                try:
                    pid = json.loads(one.read_text())["pid"]
                except (OSError, ValueError):
                    continue
                return pid
        time.sleep(0.02)
    raise AssertionError(f"it was over before its middle: {process.communicate()[1]}")


@pytest.mark.parametrize("folders", OUT, indirect=True)
def test_a_worker_that_is_killed_changes_nothing(folders, data):
    verb, plain, other = folders
    process = started(other, *words(verb, data), "--scheduler", "local:2")
    os.kill(middle(process, other, verb), signal.SIGKILL)
    done(process)
    alike(verb, plain, other)


@pytest.mark.parametrize("folders", OUT, indirect=True)
def test_what_was_killed_goes_on_with_what_it_has(folders, data):
    verb, plain, other = folders
    command = (*words(verb, data), "--scheduler", "local:2")
    process = started(other, *command)
    middle(process, other, verb)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = results(other, verb)
    assert before
    process = started(other, *command)
    while process.poll() is None:
        now = results(other, verb)
        assert all(now[name] == before[name] for name in now.keys() & before.keys())
        time.sleep(0.05)
    done(process)
    alike(verb, plain, other)
