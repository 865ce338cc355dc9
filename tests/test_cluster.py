"""Cells here, on workers, and where both fail. Clusters are processes of their own."""

import gc
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from functools import partial

import pytest

from hgviz import cluster
from hgviz.cluster.owned import gpus, jobqueue, slurm
from hgviz.core import HgvizError, listening
from hgviz.tasks.sweeping import give_up
from tests.progress import cancelled, steps_of
from tests.sweeps import cell, folder_of, tries, work_in

SERVE = """
import sys, distributed
from hgviz.cluster.owned import local
if __name__ == "__main__":
    with local({workers}) as owner:
        print(owner.scheduler_address, flush=True)
        sys.stdin.read()
"""


def serve(path, workers=2):
    """A process with a scheduler and workers of its own, and where it is."""
    script = path / "serve.py"
    script.write_text(SERVE.format(workers=workers))
    process = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    return process, process.stdout.readline().strip()


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """Two workers, which start anew when they are killed."""
    process, address = serve(tmp_path_factory.mktemp("there"))
    yield address
    process.communicate("")


def computed(folder, cells, scheduler=""):
    """How cells stand after a run, and what was said of each that ended."""
    steps = steps_of(
        cluster.run, cells, work_in(folder.path), scheduler, (), str(folder.path),
        partial(give_up, folder),
    )  # fmt: skip
    said = [step.value for step in steps if step.value is not None]
    return folder.sweep(), said


# --- in this process ------------------------------------------------------------------------------


def test_cells_wait_for_what_they_need(tmp_path):
    first, other = cell(1), cell(2)
    last = cell(10, needs=(first, other))
    folder = folder_of(tmp_path, [last, first, other])
    sweep, said = computed(folder, [last, first, other])
    assert sweep.complete and folder.found(last.key) == {"sum": 13}
    assert [one.given["number"] for one, _ in said] == [1, 2, 10]


def test_where_a_cell_raises_the_rest_completes(tmp_path):
    bad, good = cell(1, "fail"), cell(2)
    after, later = cell(3, needs=(bad,)), cell(4, needs=(good,))
    last = cell(5, needs=(after,))
    cells = [bad, good, after, later, last]
    folder = folder_of(tmp_path, cells)
    sweep, said = computed(folder, cells)
    assert [one.state for one in sweep.standings] == [
        "failed",
        "done",
        "blocked",
        "done",
        "blocked",
    ]
    assert len(tries(folder, bad)) == 1
    assert "ValueError: this one never works" in sweep.standings[0].line
    assert sweep.standings[2].line == sweep.standings[4].line == "do: seed 1 failed"
    assert said.count((bad, "failed")) == 1 and len(said) == 3


def test_a_run_goes_on_where_the_last_one_ended(tmp_path):
    cells = [cell(number) for number in range(3)]
    folder = folder_of(tmp_path, cells)
    cluster.run(cells[:2], work_in(tmp_path))
    before = [os.stat(folder.result_at(one.key)) for one in cells[:2]]
    sweep, _ = computed(folder, cells)
    assert sweep.complete and [len(tries(folder, one)) for one in cells] == [1, 1, 1]
    after = [os.stat(folder.result_at(one.key)) for one in cells[:2]]
    assert [(a.st_ino, a.st_mtime_ns) for a in before] == [(a.st_ino, a.st_mtime_ns) for a in after]


def test_a_full_disk_stops_the_run(tmp_path):
    cells = [cell(1), cell(2, "full"), cell(3)]
    folder = folder_of(tmp_path, cells)
    for _ in range(4):
        with pytest.raises(HgvizError, match="the disk is full.*is kept in"):
            computed(folder, cells)
    assert folder.is_done(cells[0].key) and not folder.is_done(cells[2].key)
    (tmp_path / "room").touch()
    sweep, _ = computed(folder, cells)
    assert sweep.complete and len(tries(folder, cells[0])) == 1


def test_a_run_that_is_closed_gives_its_cell_back(tmp_path):
    one = cell(1, "wait")
    folder = folder_of(tmp_path, [one])
    for _ in range(4):
        work = work_in(tmp_path)
        cancelled(cluster.run, [one], work, when=lambda step: step.note.endswith("waiting"))
        assert folder.sweep().standings[0].state == "waiting"
    (tmp_path / "go").touch()
    assert computed(folder, [one])[0].complete


# --- on workers -----------------------------------------------------------------------------------


def test_workers_find_what_one_process_finds_though_one_dies(tmp_path, there):
    cells = [cell(number) for number in range(6)]
    cells += [cell(10, "die once", needs=cells[:3]), cell(12, "fail")]
    cells += [cell(13, needs=(cells[6],)), cell(14, needs=(cells[7],))]
    folder = folder_of(tmp_path, cells)
    sweep, _ = computed(folder, cells, there)
    states = [one.state for one in sweep.standings]
    assert states == ["done"] * 7 + ["failed", "done", "blocked"]
    assert "never works" in sweep.standings[7].line and len(tries(folder, cells[6])) > 1
    assert folder.found(cells[8].key) == {"sum": 13 + 10 + 0 + 1 + 2}


def test_a_cell_at_which_every_worker_dies_is_given_up(tmp_path, there):
    bad = cell(1, "die")
    cells = [bad, cell(2, needs=(bad,))]
    folder = folder_of(tmp_path, cells)
    sweep, _ = computed(folder, cells, there)
    assert [one.state for one in sweep.standings] == ["failed", "blocked"]
    assert "died each time" in sweep.standings[0].line and 3 <= len(tries(folder, bad)) <= 4


def test_a_full_disk_of_a_worker_stops_the_run(tmp_path, there):
    cells = [cell(1), cell(2, "full")]
    folder = folder_of(tmp_path, cells)
    with pytest.raises(HgvizError, match="the disk is full"):
        computed(folder, cells, there)
    (tmp_path / "room").touch()
    assert computed(folder, cells, there)[0].complete


def test_workers_that_do_not_see_the_folder_are_told_before_any_cell(tmp_path, there, monkeypatch):
    one = cell(1)
    folder = folder_of(tmp_path, [one])
    monkeypatch.setattr(cluster.os.path, "exists", os.path.lexists)
    monkeypatch.setattr("distributed.Client.run", lambda *_: {"tcp://far": False, "tcp://b": True})
    with pytest.raises(HgvizError, match="worker tcp://far does not see .* 1 of 2 workers"):
        computed(folder, [one], there)
    assert not tries(folder, one) and not list(tmp_path.glob(".seen-*"))


def test_workers_with_another_hgviz_are_told_before_any_cell(tmp_path, there, monkeypatch):
    one = cell(1)
    folder = folder_of(tmp_path, [one])
    monkeypatch.setattr(cluster, "__version__", "99")
    with pytest.raises(HgvizError, match=r"worker tcp://\S+ has hgviz \d.*the run is of hgviz 99"):
        computed(folder, [one], there)
    assert not tries(folder, one)


def test_a_worker_that_comes_later_with_another_hgviz_does_not_begin(tmp_path):
    one = cell(1)
    folder = folder_of(tmp_path, [one])
    with pytest.raises(HgvizError, match="Install the same version"):
        cluster.whole(work_in(tmp_path), one, "98")
    assert not tries(folder, one)


def test_a_scheduler_that_goes_away_is_told_and_what_is_done_is_kept(tmp_path):
    process, address = serve(tmp_path, 1)
    cells = [cell(1), cell(2, "wait")]
    folder = folder_of(tmp_path / "study", cells)

    def kill(step):
        if step.done == 1 and tries(folder, cells[1]):
            process.kill()
            process.communicate()

    gone = pytest.raises(HgvizError, match=f"{address} went away.*1 of 2 cells are done")
    with gone as told, listening(kill):
        cluster.run(cells, work_in(folder.path), address, (), str(folder.path))
    assert "run the same command" in told.value.do
    assert folder.is_done(cells[0].key)
    (folder.path / "go").touch()
    assert computed(folder, cells)[0].complete and len(tries(folder, cells[0])) == 1


def test_a_scheduler_that_is_not_there_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER", 0.3)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(HgvizError, match=f"there is no scheduler at {nobody}") as told:
        cluster.run([cell(1)], work_in(tmp_path), nobody)
    assert "\n" not in str(told.value)
    assert "rrno" not in str(told.value) and "nothing listens at port" in told.value.what


def test_a_machine_that_is_not_there_is_told_in_words(tmp_path, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    with pytest.raises(HgvizError) as told:
        cluster.run([cell(1)], work_in(tmp_path), "tcp://nowhere:8786")
    assert told.value.what.endswith("no machine is called nowhere")


# --- schedulers by name ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["local", "local:", "local:0", "local:-1", "local:x", "local:99999", "tcp:", "tcp:host",
             "slurm:", "ray://a", "8786"],
)  # fmt: skip
def test_what_is_no_scheduler_is_told(name):
    with pytest.raises(HgvizError, match="there is no scheduler .*local:N, tcp://host:8786"):
        cluster.require_scheduler(name)


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HgvizError, match=r"pip install 'hgviz\[cluster\]'"):
        cluster.require_scheduler("local:2")
    cluster.require_scheduler("")


def test_every_gpu_that_is_visible_has_a_worker_by_turns(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert gpus() == ["3", "5"]
    made = {}
    monkeypatch.setattr("distributed.SpecCluster", lambda **given: made.update(given))
    from hgviz.cluster.owned import local

    local(3)
    each = [made["workers"][number]["options"]["env"] for number in range(3)]
    assert [one["CUDA_VISIBLE_DEVICES"] for one in each] == ["3", "5", "3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    local(1)
    assert made["workers"][0]["options"]["env"] == {}


def test_a_profile_of_slurm_becomes_the_script_of_its_jobs(tmp_path, monkeypatch):
    profile = tmp_path / "profile.yaml"
    profile.write_text(
        "jobs: 4\ncores: 8\nmemory: 16GB\nqueue: gpu\nwalltime: '02:00:00'\n"
        "job_extra_directives: ['--gpus=1']\n"
    )
    made = {}
    monkeypatch.setattr(jobqueue(), "SLURMCluster", lambda **given: made.update(given))
    slurm(str(profile))
    assert made["n_workers"] == 4 and made["processes"] == 1 and made["queue"] == "gpu"


SCRIPT = """
import sys
from hgviz.cluster.owned import slurm
if __name__ == "__main__":
    with slurm(sys.argv[1]) as owner:
        print(owner.job_script())
"""


@pytest.mark.skipif(not os.path.exists("/sys/class/net/lo"), reason="the interface of Linux")
def test_the_script_of_a_job_says_what_the_profile_says(tmp_path):
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho Submitted batch job 1\n")
    (tmp_path / "scancel").write_text("#!/bin/sh\n")
    for name in ("sbatch", "scancel"):
        (tmp_path / name).chmod(0o700)
    (tmp_path / "profile.yaml").write_text(
        "jobs: 1\ncores: 8\nmemory: 16GB\nqueue: gpu\nwalltime: '02:00:00'\ninterface: lo\n"
        "job_extra_directives: ['--gpus=1']\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "profile.yaml"], capture_output=True, text=True,
        cwd=tmp_path, check=True,
        env=os.environ | {"PYTHONPATH": os.getcwd(), "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    for one in ("-p gpu", "--cpus-per-task=8", "--mem=15G", "-t 02:00:00", "--gpus=1"):
        assert f"#SBATCH {one}" in done.stdout
    assert "--nthreads 8" in done.stdout and not done.stderr


@pytest.mark.filterwarnings("ignore:unclosed cluster")
@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "is no profile"), (b"\xff\xfe", "is no profile"), (b"[1, 2]", "is no profile"),
     (b"jobs: many", "is no profile"), (b"a: [", "is no profile"), (b"jobs: 1", "no cluster by"),
     (b"cores: 1\nmemory: 1GB\nnonsense: 3", "no cluster by")],
)  # fmt: skip
def test_a_profile_that_is_none_is_told_in_one_line(tmp_path, content, why):
    path = tmp_path / "profile.yaml"
    path.write_bytes(content)
    with pytest.raises(HgvizError, match=why) as told:
        slurm(str(path))
    assert "\n" not in str(told.value)
    del told
    gc.collect()  # dask_jobqueue leaves what it could not make
    with pytest.raises(HgvizError, match=r"cannot read .*no such file"):
        slurm(str(tmp_path / "nothing.yaml"))


def test_jobs_of_slurm_leave_ctrl_c_as_it_was():
    before = signal.getsignal(signal.SIGINT)
    jobqueue()
    assert signal.getsignal(signal.SIGINT) is before
