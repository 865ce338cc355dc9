"""Captures and studies that are killed or stopped at random moments lose nothing.

`python -m tests.soak.test_kills FOLDER SEED COUNT KIND` kills captures of one "text" or of a
"corpus": a process without other threads, which may fork. Half of the moments lie anywhere in a
capture, half within the merge of its parts.
"""

import hashlib
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest

from hgviz import store, tasks
from hgviz.models import open_model
from hgviz.store import open_capture
from hgviz.store.studies import SweepFolder
from tests.models.building import write_checkpoint
from tests.soak.good import MODEL

FEW, MANY = 4, int(os.environ.get("KILLED_CAPTURES", 200))
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes fork and die on POSIX")


# --- captures: the process that kills -------------------------------------------------------------

TEXT = "A capture that somebody kills. " * 8
TEXTS = ("Short. ", "Another one. " * 3, TEXT, "The last of them. ")
LONG = 100  # tokens: the third of the texts is kept layer by layer


class Announced(set):
    """The committed parts of a capture; each addition is written to a pipe."""

    def __init__(self, parts, pipe):
        super().__init__(parts)
        self.pipe = pipe

    def add(self, part):
        super().add(part)
        os.write(self.pipe, f"part {part}\n".encode())


def run_capture(path, model, pipe=None, force=False):
    """Capture a text, or a corpus (model, file), as the commands do; write its stages to a pipe."""
    is_corpus = isinstance(model, tuple)
    if pipe is not None:
        writer = store.CorpusWriter if is_corpus else store.Writer
        start, finish = writer.__init__, writer.finish

        def begin(self, *values, **more):
            start(self, *values, **more)
            self.committed = Announced(self.committed, pipe)

        def merge(self, *values, **more):
            os.write(pipe, b"merging 0\n")
            result = finish(self, *values, **more)
            os.write(pipe, b"finished 0\n")
            return result

        writer.__init__, writer.finish = begin, merge
    if is_corpus:
        store.captures.LONG_TEXT = LONG
        tasks.capture_corpus(*model, path, force=force)
    else:
        tasks.capture(model, model.tokenize(TEXT), path, force=force)


class Capturing:
    """A process that captures, and what it has announced: {(stage, number): time}."""

    def __init__(self, path, model, force=False):
        self._ears, mouth = os.pipe()
        self._rest, self.heard = b"", {}
        self.process = os.fork()
        if self.process == 0:
            code = 1
            try:
                os.write(mouth, b"begun 0\n")
                run_capture(path, model, mouth, force)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(mouth)

    def listen(self, until=None):
        """Wait until a stage is announced, or for the end."""
        while until not in {stage for stage, _ in self.heard}:
            if not select.select([self._ears], [], [], 60)[0]:
                return
            data = os.read(self._ears, 4096)
            if not data:
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                stage, number = line.decode().split()
                self.heard.setdefault((stage, int(number)), time.monotonic())

    def end(self):
        """The exit status, once it has ended."""
        self.listen()
        os.close(self._ears)
        return os.waitpid(self.process, 0)[1]

    @property
    def parts(self):
        """The numbers of the committed layers or texts."""
        return {number for stage, number in self.heard if stage == "part"}


def contents(path):
    """Everything in a capture that does not say when it was made."""
    found = {}

    def add(name, one):
        values = {f"{name}@{key}": value for key, value in one.attrs.items()}
        if isinstance(one, h5py.Dataset):
            values[name] = one[...]
        for key, value in values.items():
            array = np.asarray(value)
            found[key] = array.dtype.str, array.shape, array.tobytes()

    with h5py.File(path, "r") as file:
        add("/", file)
        file.visititems(add)
        made = json.loads(bytes(file["made"][...]))
    found["made"] = {k: v for k, v in made.items() if k not in ("created", "seconds")}
    found.pop("made@crc32", None)
    return found


def kill_captures(folder, seed, count, kind="text"):
    """Kill captures and print what became of them as JSON."""
    import torch

    torch.set_num_threads(1)
    root, chance = Path(folder), np.random.default_rng(int(seed))
    size = {"vocab_size": 256, "d_model": 32, "n_heads": 4, "d_ff": 32}
    model = open_model(write_checkpoint(root / "model", hierarchy="2@1 4@2 2@1", **size))
    if kind == "corpus":
        (root / "corpus.txt").write_text("\n".join(TEXTS))
        model = model, root / "corpus.txt"
    reference = root / "reference.h5"
    run_capture(reference, model)
    spent = []
    for number in range(5):
        capture = Capturing(root / f"timed-{number}.h5", model)
        assert capture.end() == 0
        stages = [capture.heard[stage, 0] for stage in ("begun", "merging", "finished")]
        spent.append((stages[2] - stages[0], stages[2] - stages[1]))
    durations = np.median(spent, axis=0)
    tally, wrong = Counter(), []
    for number in range(int(count)):
        path, merging = root / f"{number}.h5", number % 2
        capture = Capturing(path, model)
        capture.listen("merging" if merging else "begun")
        time.sleep(chance.uniform(0, 1.02 * durations[merging]))
        os.kill(capture.process, signal.SIGKILL)
        capture.end()
        try:
            tally[check_killed(path, capture, model, reference)] += 1
        except Exception as error:
            wrong.append(f"{number}: {type(error).__name__}: {error}")
    print(json.dumps({"tally": tally, "wrong": wrong}))


def check_killed(path, capture, model, reference):
    """Whether the file was whole, in part, or nothing yet; it holds what was committed, and goes
    on to the same file."""
    part, expected = path.with_name(f"{path.name}.part"), contents(reference)
    whole = path.exists()
    if whole:
        assert open_capture(path).complete
        assert contents(path) == expected, "another content"
    else:
        assert ("finished", 0) not in capture.heard, "it was finished and is not there"
        assert part.exists() or not capture.parts, "nothing is there"
    result = "whole" if whole else "in part" if part.exists() else "nothing yet"
    if result == "in part":
        items = [item.number for item in open_capture(part).items]
        assert not items or capture.parts <= {*items}, "a text is lost"
        for number in capture.parts if items else (0,):
            found, good = open_capture(part, number), open_capture(reference, number)
            for layer in range(len(good.maps)) if items else capture.parts:
                for head in good.maps[layer].heads:
                    same = np.array_equal(found.maps[layer].read(head), good.maps[layer].read(head))
                    assert same, f"layer {layer}"
    if not whole or part.exists():
        again = Capturing(path, model, force=whole)
        assert again.end() == 0, "going on failed"
        assert whole or not capture.parts & again.parts, "committed again"
    assert contents(path) == expected, "another content"
    left = [file.name for file in path.parent.glob(f"{path.name}*") if file != path]
    assert not left, left
    path.unlink()
    return result


# --- captures: the tests --------------------------------------------------------------------------


def killed(folder, count, kind):
    """What became of so many captures that a process of its own killed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.test_kills", str(folder), "1", str(count), kind],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["text", "corpus"])
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
@pytest.mark.timeout(0)
def test_killed_captures_lose_nothing(tmp_path, kind, count):
    found = killed(tmp_path, count, kind)
    assert not found["wrong"], "\n".join(found["wrong"])
    assert sum(found["tally"].values()) == count


# --- studies --------------------------------------------------------------------------------------

STUDY = f"""
asks = ["score", "curve"]
seeds = [1, 2]
activations = ["softmax", "ymish"]
methods = ["michel", "loo"]
tokenizer = {{kind = "wordpiece", size = 400}}
recipe = {{steps = 60, batch = 8, save_every = 5}}
curve = {{limit = 40, points = 4, random = 4}}
{MODEL}
[[data]]
train = ["sample/reviews.tsv"]
valid = "sample/reviews.tsv"
"""
on_one_or_two = pytest.mark.parametrize("options", [(), ("--scheduler", "local:2")])


class StudyRun:
    """`hgviz study run` in a group of processes of its own."""

    def __init__(self, file, out, *options, room=None):
        """room: the most bytes of a file; beyond it the system says what it says of a full disk."""

        def limit():
            if room is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        self.out, self.begun = out, time.time()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hgviz", "study", "run", file, "-o", out, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=file.parent, preexec_fn=limit,
        )  # fmt: skip

    def errors(self, timeout=None):
        """What it wrote on standard error until it ended, without progress; all of it has ended."""
        _, text = self.process.communicate(timeout=timeout)
        end = time.monotonic() + 20
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        assert not self.processes()
        lines = text.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("Running"))

    def processes(self, words=""):
        """The processes of its session that live, and whose command has these words."""
        command = ["ps", "-ww", "-o", "pid=,stat=,args=", "-s", str(self.process.pid)]
        rows = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        fields = [row.split(None, 2) for row in rows]
        return [int(pid) for pid, state, args in fields if "Z" not in state and words in args]

    def is_training(self):
        """Whether a training that is not done has left a snapshot since the run began."""
        files = self.out.glob("models/*/state.pt")
        return any(file.stat().st_mtime > self.begun for file in files)


def numbers(out):
    """The results of all cells, and the digests of models."""
    sweep = SweepFolder(out).sweep()
    assert sweep.complete
    models = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in ("model.safetensors", "tokenizer.json")
        for path in out.glob(f"models/*/{name}")
    }
    return {run.cell.key: run.found for run in sweep.standings}, models


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A study file, and the numbers of a run that nobody disturbs."""
    file = tmp_path_factory.mktemp("study") / "study.toml"
    file.write_text(STUDY)
    run = StudyRun(file, file.parent / "alone")
    assert not run.errors() and run.process.returncode == 0
    return file, numbers(file.parent / "alone")


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_killed_worker_changes_no_number(undisturbed, tmp_path):
    file, expected = undisturbed
    run, killed = StudyRun(file, tmp_path / "out", "--scheduler", "local:2"), set()
    while len(killed) < 3 and run.process.poll() is None:
        workers = [pid for pid in run.processes("spawn_main") if pid not in killed]
        if run.is_training() and workers:
            os.kill(workers[0], signal.SIGKILL)
            killed.add(workers[0])
        time.sleep(0.5)
    assert not run.errors() and run.process.returncode == 0 and len(killed) > 1
    assert numbers(tmp_path / "out") == expected


@pytest.mark.soak
@pytest.mark.timeout(900)
@on_one_or_two
def test_a_killed_study_goes_on_and_computes_nothing_twice(undisturbed, tmp_path, options):
    file, expected = undisturbed
    chance, before = random.Random(len(options)), {}
    for number in range(60):
        run = StudyRun(file, tmp_path / "out", *options)
        try:
            run.process.wait(chance.uniform(3, 9) * (1 + number / 4))  # a slow machine gets on, too
        except subprocess.TimeoutExpired:
            run.process.kill()
        run.errors()
        files = [path for path in run.out.glob("cells/*/*.json") if path.name.count(".") == 1]
        results = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}
        assert before.items() <= results.items()
        before = results
        if run.process.returncode == 0:
            break
    assert numbers(tmp_path / "out") == expected


@pytest.mark.soak
@pytest.mark.timeout(900)
@on_one_or_two
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_study_ends_soon_and_says_what_it_keeps(undisturbed, tmp_path, options, number):
    file, expected = undisturbed
    for _ in range(4):
        run = StudyRun(file, tmp_path / "out", *options)
        while not run.is_training() and run.process.poll() is None:
            time.sleep(0.02)
        if run.process.poll() is not None:
            break
        send = os.killpg if number == signal.SIGINT else os.kill  # Ctrl+C goes to the whole group
        send(run.process.pid, number)
        errors = run.errors(timeout=60)
        assert run.process.returncode == 128 + number and errors.count("\n") == 1, errors
        assert errors.startswith("Stopped. Progress is saved in")
    assert not SweepFolder(tmp_path / "out").sweep().counts["failed"]
    StudyRun(file, tmp_path / "out", *options).errors()
    assert numbers(tmp_path / "out") == expected


@pytest.mark.soak
@pytest.mark.timeout(900)
@on_one_or_two
def test_a_full_disk_ends_a_study_with_one_line_and_it_goes_on(undisturbed, tmp_path, options):
    file, expected = undisturbed
    for room in (2_000, 6_000, 20_000):  # bytes of a result, a tokenizer, a snapshot
        run = StudyRun(file, tmp_path / "out", *options, room=room)
        errors = run.errors()
        assert run.process.returncode == 1 and errors.count("\n") == 1 and "disk is full" in errors
    StudyRun(file, tmp_path / "out", *options).errors()
    assert numbers(tmp_path / "out") == expected


if __name__ == "__main__":
    kill_captures(*sys.argv[1:])
