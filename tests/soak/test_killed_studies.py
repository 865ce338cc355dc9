"""Studies whose processes are killed or stopped: the numbers of one that was left alone."""

import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import time

import pytest

from hgviz.store.studies import SweepFolder
from tests.soak.sweeps import MODEL

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.name != "posix", reason="processes are killed by signals of POSIX"),
]

ASKED = """
asks = ["score", "curve"]
seeds = [1, 2]
activations = ["softmax", "ymish"]
methods = ["michel", "loo"]
tokenizer = {kind = "wordpiece", size = 400}
recipe = {steps = 60, batch = 8, save_every = 5}
curve = {limit = 40, points = 4, random = 4}
"""
DATA = """
[[data]]
train = ["sample/reviews.tsv"]
valid = "sample/reviews.tsv"
"""
STUDY = ASKED + MODEL + DATA


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A study file."""
    path = tmp_path_factory.mktemp("study") / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def alone(file):
    """What it finds when nobody disturbs it."""
    done = started(file, file.parent / "alone")
    err = errors(done)
    assert done.returncode == 0 and not err, err
    assert sorted(one.name for one in file.parent.iterdir()) == ["alone", "study.toml"]
    return found(file.parent / "alone")


def started(file, out, *options, room=None):
    """`hgviz study run` in a group of processes of its own; room: bytes of a file at most, for all
    of them, which the system tells as it tells of a full disk."""

    def limit():
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return subprocess.Popen(
        [sys.executable, "-m", "hgviz", "study", "run", file, "-o", out, *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.getcwd()}, cwd=file.parent,
        preexec_fn=limit,
    )  # fmt: skip


def errors(process, timeout=None):
    """What a process wrote on standard error until it ended, without the lines on its progress."""
    _, said = process.communicate(timeout=timeout)
    return "".join(one for one in said.splitlines(True) if not one.startswith("Running"))


def found(out):
    """What cells found, and the bytes of models."""
    sweep = SweepFolder(out).sweep()
    assert sweep.complete
    cells = {one.cell.key: one.found for one in sweep.standings}
    models = {
        path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in out.glob("models/*/*") if path.name in ("model.safetensors", "tokenizer.json")
    }  # fmt: skip
    return cells, models


def results(out):
    """The result files that are there, as the system knows them."""
    seen = {path: path.stat() for path in out.glob("cells/*/*.json") if path.name.count(".") == 1}
    return {path: (one.st_ino, one.st_mtime_ns) for path, one in seen.items()}


def group(process):
    """The processes that it started and that are there, itself included."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-g", str(process.pid), "-s", str(process.pid)],
        capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    return [int(one.split()[0]) for one in listed if "Z" not in one.split()[1]]


def is_gone(process):
    """Whether it and all that it started end; a killed process may take a moment to."""
    end = time.monotonic() + 20
    while group(process) and time.monotonic() < end:
        time.sleep(0.05)
    return not group(process)


def training(out, since):
    """Whether a training that is not done has left a snapshot since then."""
    seen = (one.stat() for one in out.glob("models/*/state.pt"))
    return any(one.st_mtime > since for one in seen)


def workers(process):
    """The processes of dask's workers of a run."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "-s", str(process.pid)], capture_output=True, text=True
    ).stdout.splitlines()
    return [int(one.split()[0]) for one in listed if "spawn_main" in one]


def test_a_killed_worker_changes_no_number(file, alone, tmp_path):
    process = started(file, tmp_path / "out", "--scheduler", "local:2")
    killed, begun = set(), time.time()
    while len(killed) < 3 and process.poll() is None:
        fresh = [pid for pid in workers(process) if pid not in killed]
        if training(tmp_path / "out", begun) and fresh:
            os.kill(fresh[0], signal.SIGKILL)
            killed.add(fresh[0])
        time.sleep(0.5)
    err = errors(process)
    assert process.returncode == 0 and not err, err
    assert len(killed) > 1 and found(tmp_path / "out") == alone
    assert is_gone(process)


@pytest.mark.parametrize("options", [(), ("--scheduler", "local:2")])
def test_a_killed_study_goes_on_and_computes_nothing_twice(file, alone, tmp_path, options):
    chance = random.Random(len(options))
    before = {}
    for number in range(60):
        process = started(file, tmp_path / "out", *options)
        try:
            process.wait(chance.uniform(3, 9) * (1 + number / 4))  # a slow machine gets on, too
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert is_gone(process)
        now = results(tmp_path / "out")
        assert before.items() <= now.items()
        before = now
        if process.returncode == 0:
            break
    assert found(tmp_path / "out") == alone


@pytest.mark.parametrize("options", [(), ("--scheduler", "local:2")])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_study_that_is_stopped_ends_soon_and_says_what_it_keeps(
    file, alone, tmp_path, options, number
):
    for _ in range(4):
        process = started(file, tmp_path / "out", *options)
        begun = time.time()
        while not training(tmp_path / "out", begun) and process.poll() is None:
            time.sleep(0.02)
        if process.poll() is not None:
            break
        # Ctrl+C goes to all that the terminal runs
        os.killpg(process.pid, number) if number == signal.SIGINT else os.kill(process.pid, number)
        err = errors(process, timeout=60)
        assert process.returncode == 128 + number and err.count("\n") == 1, err
        assert err.startswith("Stopped. What was done is kept in")
        assert is_gone(process)
    assert not SweepFolder(tmp_path / "out").sweep().counts["failed"]
    process = started(file, tmp_path / "out", *options)
    process.communicate()
    assert found(tmp_path / "out") == alone


@pytest.mark.parametrize("options", [(), ("--scheduler", "local:2")])
def test_a_full_disk_ends_it_with_one_line_and_it_goes_on(file, alone, tmp_path, options):
    for room in (2_000, 6_000, 20_000):  # bytes of a file: of a result, a tokenizer, a snapshot
        process = started(file, tmp_path / "out", *options, room=room)
        err = errors(process)
        assert process.returncode == 1 and err.count("\n") == 1 and "disk is full" in err
        assert is_gone(process)
    process = started(file, tmp_path / "out", *options)
    process.communicate()
    assert found(tmp_path / "out") == alone
