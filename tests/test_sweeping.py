"""Running study files: what is computed, what is told of what changed, and how it stands."""

import json
import os
import subprocess
import sys

import pytest

from hgviz import cli
from hgviz.core import HgvizError, finish
from hgviz.resources import resource
from hgviz.store.sweep import SweepFolder
from hgviz.tasks import info, kind_of, run_sweep
from hgviz.tasks.sweeping import open_sweep
from tests.sweeping import STUDY, cell, folder_of

STUDY_OF_TWO = """
seeds = [1, 2]
[[models]]
name = "small"
checkpoint = "{model}"
[[data]]
name = "reviews"
valid = "rows.tsv"
"""


@pytest.fixture
def run(capfd):
    """Run a command line; gives exit code, standard output and standard error."""

    def call(*arguments):
        code = cli.main([str(one) for one in arguments], cli.Window(print, print))
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def file(tmp_path):
    """A study file of a sample, with ten rows of its own."""
    rows = resource("sample/reviews.tsv").read_text("utf-8").splitlines()
    (tmp_path / "rows.tsv").write_text("\n".join(rows[:11]) + "\n")
    path = tmp_path / "study.toml"
    path.write_text(STUDY_OF_TWO.format(model="sample/softmax"))
    return path


def test_a_study_tells_what_changed_and_keeps_what_it_has(file, run):
    out = file.parent / "out"
    code, said, told = run("study", "run", file, "-o", out)
    assert code == 0 and not told and "1 cell: 1 done" in said
    (before,) = out.glob("cells/*/*.json")
    inode = before.stat().st_ino
    assert run("study", "run", file, "-o", out)[0] == 0 and before.stat().st_ino == inode
    rows = file.parent / "rows.tsv"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    code, said, told = run("study", "run", file, "-o", out)
    line = "1 result of other models, data or settings than the study asks for now (rows.tsv"
    assert code == 0 and told.startswith(line) and told.count("\n") == 1 and line in said
    assert before.stat().st_ino == inode and len(list(out.glob("cells/*/*.json"))) == 2
    sweep = SweepFolder(out).sweep()
    assert (sweep.changed, sweep.changes) == (1, ("rows.tsv",)) and sweep.complete
    assert kind_of(out) == "sweep" and info(out)["cells"] == 1 and info(out)["changed"] == 1


def test_a_file_that_changes_after_it_was_planned_fails_its_cell(file):
    out = file.parent / "out"
    with pytest.raises(StopIteration) as ended:
        task = run_sweep(file, out)
        while True:
            step = next(task)
            if not step.value:
                continue
            (file.parent / "rows.tsv").write_text("sentence\tlabel\nother\t1\nrows\t0\n")
    (one,) = ended.value.value.standings
    assert one.state == "failed" and "rows.tsv has changed since the study was planned" in one.line


def test_a_misspelt_activation_of_a_checkpoint_is_told_before_anything_is_computed(file):
    file.write_text("activations = ['', 'sotfmax']\n" + file.read_text())
    with pytest.raises(HgvizError, match="there is no activation 'sotfmax'|no activation"):
        finish(run_sweep(file, file.parent / "out"))
    assert not (file.parent / "out").exists()


def test_a_model_that_can_be_trained_is_planned_and_a_family_left_out_is_told(file):
    keys = "d_model = 16\nn_heads = 2\nn_layers = 2\nmax_positions = 32\n"
    data = '[[data]]\ntrain = ["rows.tsv"]\nvalid = "rows.tsv"\n[recipe]\nsteps = 1\n'
    model = "[[models]]\nname = 'tiny'\n"
    file.write_text(f"{model}family = 'yubert'\n{keys}{data}")  # whose goal is classes
    (train, score) = finish(open_sweep(file)).standings
    assert (train.cell.work, score.cell.work) == ("train", "score")
    file.write_text(model + keys + data)
    with pytest.raises(HgvizError, match="knows no n_layers. Give its family"):
        finish(open_sweep(file))


def test_what_is_no_folder_of_a_study_is_told_as_what_it_is(file):
    told = {"study.toml": "it is a file", ".": "it has no plan.json", "no": "no such folder"}
    for name, why in told.items():
        with pytest.raises(HgvizError, match=f"not the folder of a study. .*{why[3:]}"):
            SweepFolder(file.parent / name).sweep()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(file):
    file.parent.chmod(0o500)
    try:
        with pytest.raises(HgvizError, match="cannot be written.*ermission"):
            finish(run_sweep(file, file.parent / "out"))
    finally:
        file.parent.chmod(0o700)


def test_a_system_that_is_read_only_is_told(file, monkeypatch):
    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    out = file.parent / "out"
    finish(run_sweep(file, out))
    before = sorted(out.rglob("*"))
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(HgvizError, match="cannot be written. Read-only|read-only"):
        finish(run_sweep(file, out))
    assert sorted(out.rglob("*")) == before


def test_a_disk_that_is_full_before_the_plan_is_no_obstacle_later(file, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    out = file.parent / "out"
    with monkeypatch.context() as patch:
        patch.setattr("hgviz.store.sweep.whole_text", full)
        with pytest.raises(HgvizError, match="disk is full"):
            finish(run_sweep(file, out))
    assert [one.name for one in out.iterdir()] == ["cells"]
    assert finish(run_sweep(file, out)).complete


@pytest.mark.parametrize("place", ["a file", "a full folder"])
def test_a_folder_of_other_things_is_left_alone(file, place):
    out = file.parent / "rows.tsv" if place == "a file" else file.parent
    with pytest.raises(HgvizError, match="a study has a folder"):
        finish(run_sweep(file, out))


@pytest.mark.parametrize("part", ["0/2", "3/2", "x", "1", "1/", "/2", "-1/2"])
def test_a_part_that_is_none_is_wrong_use(file, run, part):
    code, _, told = run("study", "run", file, "-o", file.parent / "out", "--part", part)
    assert code == 2 and "is no part" in told and not (file.parent / "out").exists()


def test_how_a_study_stands_is_a_table_and_lines(tmp_path, run):
    cells = [cell(number) for number in range(3)]
    cells.append(cell(3, needs=(cells[2],)))
    folder = folder_of(tmp_path, cells)
    folder.keep(cells[0].key, {}, {"seconds": 100})
    folder.fail(cells[2].key, "It cannot be done.")
    code, said, told = run("study", "status", tmp_path)
    assert code == 0 and not told
    assert "4 cells: 1 done, 1 waiting, 1 failed, 1 blocked." in said
    assert "Failed: do: seed 2. It cannot be done." in said
    assert "Blocked: 1 cell, since do: seed 2 failed." in said and "--again" in said
    told = json.loads(run("study", "status", tmp_path, "--json")[1])
    assert told["counts"] == {"done": 1, "waiting": 1, "failed": 1, "blocked": 1}
    assert [one["state"] for one in told["cells"]] == ["done", "waiting", "failed", "blocked"]
    assert told["kind"] == "sweep" and not told["complete"]


def test_a_study_where_one_model_is_asked_for_is_told(tmp_path, run):
    folder_of(tmp_path / "study", [cell(1)])
    code, _, told = run("evaluate", tmp_path / "study", "--data", "sample/reviews.tsv")
    assert code == 1 and "is the folder of a study of many runs" in told and told.count("\n") == 1
    (tmp_path / "a.toml").write_text(STUDY)
    code, _, told = run("info", tmp_path / "a.toml")
    assert code == 1 and "hgviz study run" in told and told.count("\n") == 1


def test_help_loads_no_cluster():
    code = (
        "import sys; from hgviz import cli\n"
        "try: cli.main(sys.argv[1:], cli.Window(print, print))\n"
        "except SystemExit: pass\n"
        "heavy = {'dask', 'distributed', 'torch', 'numpy', 'msgspec'} & sys.modules.keys()\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    for words in (["--help"], ["study", "run", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert "Usage" in done.stdout and done.stderr.strip() == "[]"
