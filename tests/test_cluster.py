"""Cells on workers, and where workers, schedulers and disks fail. Clusters are processes."""

import gc
import os
import socket
import subprocess
import sys
from contextlib import closing
from functools import partial
from types import SimpleNamespace

import pytest
from distributed import Reschedule

from hgviz import cluster
from hgviz.core import HgvizError, listening
from hgviz.tasks.studies import compute_here, fail_without_worker
from tests.progress import cancelled, steps_of
from tests.sweeps import cell, folder_of, tries, work_in

SERVE = """
import sys
from hgviz.cluster import local_workers
if __name__ == "__main__":
    with local_workers({workers}) as owner:
        print(owner.scheduler_address, flush=True)
        sys.stdin.read()
"""
SLURM = """
import signal, sys
from hgviz.cluster import slurm_jobs
if __name__ == "__main__":
    before = signal.getsignal(signal.SIGINT)
    with slurm_jobs(sys.argv[1]) as owner:
        print(owner.job_script(), len(owner.worker_spec), "jobs")
    assert signal.getsignal(signal.SIGINT) is before  # dask_jobqueue takes Ctrl+C for itself
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
"""
PROFILE = """
jobs: 4
cores: 8
memory: 16GB
queue: gpu
walltime: '02:00:00'
interface: lo
job_extra_directives: ['--gpus=1']
"""
HERE = os.environ | {"PYTHONPATH": os.getcwd()}


def serve(path, workers=2):
    """A process with a scheduler and workers of its own, and its address."""
    script = path / "serve.py"
    script.write_text(SERVE.format(workers=workers))
    process = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=HERE
    )
    return process, process.stdout.readline().strip()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A scheduler with two workers, which start anew when they are killed."""
    process, address = serve(tmp_path_factory.mktemp("cluster"))
    yield address
    process.communicate("")


@pytest.fixture(params=["here", "workers"])
def scheduler(request):
    return "" if request.param == "here" else request.getfixturevalue("address")


def run(folder, cells, scheduler=""):
    """Compute the cells that are not done."""
    cells = [one for one in cells if not folder.is_done(one.key)]
    work, path = work_in(folder.path), str(folder.path)
    if scheduler:
        cluster.compute(cells, work, scheduler, path, partial(fail_without_worker, path))
    else:
        compute_here(cells, work)
    return folder.sweep()


def test_cells_follow_what_they_need_and_the_rest_completes_where_one_fails(tmp_path, scheduler):
    numbers = [cell(number) for number in range(4)]
    bad = cell(4, "fail")
    total = cell(5, needs=numbers)
    after = cell(6, needs=(bad,))
    cells = [*numbers, bad, total, after, cell(7, needs=(total,)), cell(8, needs=(after,))]
    folder = folder_of(tmp_path, cells)
    values = [step.value for step in steps_of(run, folder, cells, scheduler) if step.value]
    standings = folder.sweep().standings
    states = ["done"] * 4 + ["failed", "done", "blocked", "done", "blocked"]
    assert [one.state for one in standings] == states
    assert [one.found["sum"] for one in standings if one.found] == [0, 1, 2, 3, 11, 18]
    assert "ValueError: this one never works" in standings[4].line
    assert standings[6].line == standings[8].line == "do: seed 4 failed"
    assert len(values) == 7 and [one for one, is_done in values if not is_done] == [bad]
    assert all(len(tries(folder, one.cell)) == (one.state != "blocked") for one in standings)


def test_a_study_goes_on_elsewhere_and_computes_nothing_twice(tmp_path, address):
    cells = [cell(number) for number in range(6)]
    cells.append(cell(6, needs=cells))
    folder = folder_of(tmp_path, cells)
    for count, scheduler in ((2, ""), (4, address), (5, ""), (7, address)):
        before = {one: os.stat(one).st_mtime_ns for one in folder.path.glob("cells/*/*.json")}
        run(folder, cells[:count], scheduler)
        assert all(os.stat(one).st_mtime_ns == time for one, time in before.items())
    assert folder.sweep().complete and folder.found(cells[6].key) == {"sum": 21}
    assert {len(tries(folder, one)) for one in cells} == {1}


def test_a_full_disk_ends_the_run_and_fails_no_cell(tmp_path, scheduler):
    cells = [cell(1), cell(2, "full"), cell(3, needs=(cell(2, "full"),))]
    folder = folder_of(tmp_path, cells)
    for _ in range(2):
        with pytest.raises(HgvizError, match="the disk is full.*is kept in"):
            run(folder, cells, scheduler)
    assert {one.state for one in folder.sweep().standings} <= {"done", "waiting"}
    (tmp_path / "room").touch()
    assert run(folder, cells, scheduler).complete and len(tries(folder, cells[0])) <= 2


def test_a_run_that_is_cancelled_leaves_its_cell_waiting(tmp_path, scheduler):
    one = cell(1, "wait")
    folder = folder_of(tmp_path, [one])
    cancelled(run, folder, [one], scheduler, when=lambda step: bool(tries(folder, one)))
    assert folder.sweep().standings[0].state == "waiting"
    (tmp_path / "go").touch()
    assert run(folder, [one], scheduler).complete


def test_a_cell_is_computed_again_when_its_worker_dies_and_given_up_in_the_end(tmp_path, address):
    once, always = cell(1, "die once"), cell(2, "die")
    cells = [once, always, cell(3, needs=(once,)), cell(4, needs=(always,))]
    folder = folder_of(tmp_path, cells)
    sweep = run(folder, cells, address)
    assert [one.state for one in sweep.standings] == ["done", "failed", "done", "blocked"]
    assert "died each time" in sweep.standings[1].line and folder.found(cells[2].key) == {"sum": 4}
    assert len(tries(folder, once)) > 1 and 3 <= len(tries(folder, always)) <= 8


def test_a_worker_that_closes_gives_its_cell_back(tmp_path, monkeypatch):
    one = cell(1)
    folder = folder_of(tmp_path, [one])
    monkeypatch.setattr(
        "distributed.get_worker", lambda: SimpleNamespace(status=SimpleNamespace(name="closing"))
    )
    with pytest.raises(Reschedule):
        cluster.compute_on_worker(work_in(tmp_path), one, cluster.__version__)
    assert folder.sweep().standings[0].state == "waiting" and not tries(folder, one)


def test_a_cell_that_was_done_before_its_worker_died_is_done(tmp_path):
    cells = [cell(1), cell(2)]
    folder = folder_of(tmp_path, cells)
    run(folder, cells[:1])
    assert [fail_without_worker(tmp_path, one) for one in cells] == [True, False]


# --- refusals -------------------------------------------------------------------------------------


def test_workers_that_do_not_fit_are_refused_before_any_cell(tmp_path, address, monkeypatch):
    one = cell(1)
    folder = folder_of(tmp_path, [one])
    with monkeypatch.context() as patch:
        patch.setattr("distributed.Client.run", lambda *_: {"tcp://far": False, "tcp://b": True})
        with pytest.raises(HgvizError, match="worker tcp://far does not see .* 1 of 2 workers"):
            run(folder, [one], address)
    monkeypatch.setattr(cluster, "__version__", "99")
    with pytest.raises(HgvizError, match=r"worker tcp://\S+ has hgviz \d.*the run is of hgviz 99"):
        run(folder, [one], address)
    with pytest.raises(HgvizError, match="Install the same version"):  # of one that comes later
        cluster.compute_on_worker(work_in(tmp_path), one, "98")
    assert not tries(folder, one) and not list(tmp_path.glob(".seen-*"))


def test_what_is_done_stays_when_the_scheduler_goes_away(tmp_path):
    process, address = serve(tmp_path, 1)
    cells = [cell(1), cell(2, "wait")]
    folder = folder_of(tmp_path / "study", cells)

    def kill(step):
        if step.done == 1 and tries(folder, cells[1]):
            process.kill()
            process.communicate()

    gone = pytest.raises(HgvizError, match=f"{address} went away.*1 of 2 cells are done")
    with gone as error, listening(kill):
        run(folder, cells, address)
    assert "run the same command" in error.value.do
    (folder.path / "go").touch()
    assert run(folder, cells).complete and len(tries(folder, cells[0])) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
def test_a_scheduler_that_does_not_answer_is_one_line(tmp_path, host):
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(HgvizError, match=f"no scheduler at tcp://{host}:{port}: ") as error:
        run(folder_of(tmp_path, [cell(1)]), [cell(1)], f"tcp://{host}:{port}")
    assert "\n" not in str(error.value) and "rrno" not in str(error.value)


NO_SCHEDULERS = (
    "local", "local:", "local:0", "local:-1", "local:x", "local:1025", "tcp:", "tcp:host", "slurm:",
    "ray://a", "8786", "",
)  # fmt: skip


@pytest.mark.parametrize("name", NO_SCHEDULERS)
def test_what_is_no_scheduler_is_refused(name):
    with pytest.raises(HgvizError, match="there is no scheduler .*local:N, tcp://host:8786"):
        cluster.require_scheduler(name)


def test_without_dask_the_extra_is_named(monkeypatch):
    for name in ("local:1", "local:1024", "tcp://host", "tls://host:1", "slurm:a.yaml"):
        cluster.require_scheduler(name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HgvizError, match=r"pip install 'hgviz\[cluster\]'"):
        cluster.require_scheduler("local:2")


# --- clusters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("visible", "devices"), [("3,5", ["3", "5", "3"]), ("", [None, None, None])]
)
def test_every_visible_gpu_has_a_worker_by_turns(monkeypatch, visible, devices):
    made = {}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr("distributed.SpecCluster", lambda **options: made.update(options))
    cluster.local_workers("3")
    rows = [made["workers"][number]["options"]["env"] for number in range(3)]
    assert [env.get("CUDA_VISIBLE_DEVICES") for env in rows] == devices


@pytest.mark.skipif(not os.path.exists("/sys/class/net/lo"), reason="the interface of Linux")
def test_a_profile_of_slurm_becomes_the_script_of_its_jobs(tmp_path):
    for name, line in (("sbatch", "echo Submitted batch job 1"), ("scancel", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o700)
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE)
    done = subprocess.run(
        [sys.executable, "-c", SLURM, profile], capture_output=True, text=True, check=True,
        cwd=tmp_path, env=HERE | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    for option in ("-p gpu", "--cpus-per-task=8", "--mem=15G", "-t 02:00:00", "--gpus=1"):
        assert f"#SBATCH {option}" in done.stdout
    assert "--nthreads 8" in done.stdout and "4 jobs" in done.stdout and not done.stderr


@pytest.mark.filterwarnings("ignore:unclosed cluster")
@pytest.mark.parametrize(
    ("content", "what"),
    [(None, r"cannot read .*no such file"), (b"", "is no profile"), (b"\xff\xfe", "is no profile"),
     (b"[1, 2]", "is no profile"), (b"jobs: many", "is no profile"), (b"a: [", "is no profile"),
     (b"jobs: 1", "no cluster by"), (b"cores: 1\nmemory: 1GB\nnonsense: 3", "no cluster by")],
)  # fmt: skip
def test_what_is_no_profile_is_one_line(tmp_path, content, what):
    path = tmp_path / "profile.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(HgvizError, match=what) as error:
        cluster.slurm_jobs(str(path))
    assert "\n" not in str(error.value)
    del error
    gc.collect()  # dask_jobqueue leaves what it could not make
