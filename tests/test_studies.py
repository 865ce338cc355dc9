"""Study files: what is wrong in them, their cells, how they run, and how they stand."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from hgviz.core import HgvizError, listening
from hgviz.files import resource
from hgviz.store.studies import SweepFolder, open_study, read_study_file
from hgviz.study import Cell, Source
from hgviz.tasks import info, kind_of, run_sweep
from hgviz.tasks.studies import WORK, find_changes, open_sweep, plan
from tests.progress import cancelled
from tests.sweeps import STUDY, cell, folder_of

DOCS = Path(__file__).parents[1] / "docs"
WORKED = DOCS / "studies"
MODEL = '[[models]]\nname = "a"\ncheckpoint = "sample/softmax"\n'
DATA = '[[data]]\nvalid = "rows.tsv"\n'
BOTH = MODEL + DATA
ROWS = "sentence\tlabel\ngood\t1\nbad\t0\n"


@pytest.fixture
def folder(tmp_path):
    """A folder with the data and the checkpoints that study files ask for."""
    for name in ("softmax", "ymish"):
        (tmp_path / name).symlink_to(resource(f"sample/{name}"))
    for name in ("train.tsv", "dev.tsv", "rows.tsv", "wikitext2-test.txt", "wikitext2-valid.txt"):
        (tmp_path / name).write_text(ROWS)
    return tmp_path


def read(folder, content):
    path = folder / "study.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_study_file(path)


def planned(folder, content):
    return plan(read(folder, content), folder)


def worked(name, *changes):
    """The text of a worked study, with (old, new) changes."""
    text = (WORKED / f"{name}.toml").read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


# --- study files ----------------------------------------------------------------------------------


def test_a_study_file_has_defaults(folder):
    asked = read(folder, BOTH)
    assert asked.asks == ("score",) and asked.seeds == (0,) and asked.activations == ("",)
    assert asked.data == (Source("rows.tsv"),) and asked.threads == 1 and not asked.title


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "models"), (b"\x89PNG\r\n\x1a\n\0\0", "is not a study file"), (MODEL, "data"),
        (DATA, "models"), ("models = []\n" + DATA, r"no \[\[models\]\]"),
        ("data = []\n" + MODEL, r"no \[\[data\]\]"), ("[[models", "is not a study file"),
        ("seed = 1\n" + BOTH, "seed"), (BOTH + 'file = "x"', "file"),
        (MODEL + "[[data]]\n", "valid"), ("models = 3\n" + DATA, "models"),
        ("[[models]]\ncheckpoint = 'x'\n" + DATA, "needs a name"),
        ("[[models]]\nname = ''\n" + DATA, "needs a name"),
        (MODEL + BOTH, r"two of \[\[models\]\] have one name"),
        (BOTH + DATA, r"two of \[\[data\]\] have one name"),
        ("asks = []\n" + BOTH, "asks is empty"),
        ("asks = ['scoer']\n" + BOTH, "asks cannot be 'scoer'. Choose among score, curve"),
        ("asks = ['curve']\n" + BOTH, "curves need methods"),
        ("asks = ['compare']\n" + BOTH, "at least two activations"),
        ("seeds = []\n" + BOTH, "seeds is empty"), ("seeds = [1.5]\n" + BOTH, "seeds"),
        ("seeds = [1, 1]\n" + BOTH, "a seed stands twice"),
        ("seeds = [-1]\n" + BOTH, "seeds are numbers from 0 on"),
        ("seeds = 3\n" + BOTH, "seeds: expected a list in brackets, got a whole number"),
        ("activations = []\n" + BOTH, "activations is empty"),
        ("activations = ['ymish', 'ymish']\n" + BOTH, "activation stands twice"),
        ("methods = ['loo', 'loo']\n" + BOTH, "a method stands twice"),
        ("threads = 0\n" + BOTH, "threads begin at 1"),
        ("device = 'auto'\n" + BOTH, "device is one of cpu, cuda, mps"),
        (BOTH + "[curve]\npoints = 1\n", "too small a number"),
        (BOTH + "[curve]\nbudgets = [1.5]\n", "budgets are shares"),
        (BOTH + "[curve]\nbudgets = [nan]\n", "budgets are shares"),
        (BOTH + "[curve]\nstep = 1\n", r"\[curve\] has no key step. Its keys.*points"),
        ("device = 'cpu'\nmethod = []\n" + BOTH, "no key method. Its keys.*methods"),
        (b"\xff\xfe\0", "[Ii]t is not text"), ("a = " + "[" * 5000 + "]" * 5000, "is not a study"),
        ("#" * (1 << 20) + "\n" + BOTH, "longer than 1 MB"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_study_file_is_one_line(folder, content, what):
    with pytest.raises(HgvizError, match=what) as error:
        read(folder, content)
    assert "\n" not in str(error.value)


def test_a_study_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    for path, what in ((tmp_path / "no.toml", "No such file"), (tmp_path, "cannot read")):
        with pytest.raises(HgvizError, match=what):
            read_study_file(path)


# --- cells ----------------------------------------------------------------------------------------


def test_the_key_of_a_cell_is_of_what_decides_its_result():
    one = Cell("score", {"a": 1, "b": 2}, (), {"data": "/here"}, {"seed": "1"})
    assert one.key == Cell("score", {"b": 2, "a": 1}, (), {"data": "/there"}).key
    assert len({one.key, Cell("score", {"a": 1}).key, Cell("train", {"a": 1, "b": 2}).key}) == 3
    assert one.key != Cell("score", {"a": 1, "b": 2}, ("0" * 24,)).key
    assert one.label == "score: seed 1"
    with pytest.raises(ValueError, match="JSON"):
        Cell("score", {"a": float("nan")})


SHOWN = re.findall(r"```toml\n(.*?)```", (DOCS / "how-to/study.md").read_text("utf-8"), re.DOTALL)
WORKED_FILES = sorted(file.stem for file in WORKED.glob("*.toml"))


@pytest.mark.parametrize("content", [*map(worked, WORKED_FILES), *SHOWN])
def test_the_files_of_the_pages_are_planned_and_each_cell_follows_what_it_needs(folder, content):
    asked, cells, keys = read(folder, content), planned(folder, content), set()
    for one in cells:
        assert one.key not in keys and keys.issuperset(one.needs)
        assert one.key == Cell(one.work, one.given, one.needs).key  # nothing was added since
        keys.add(one.key)
    models = len(asked.models) * len(asked.seeds) * len(asked.activations) * len(asked.data)
    trained = sum(one.work == "train" for one in cells)
    assert trained == (0 if "checkpoint" in asked.models[0] else models) and asked.title
    # two models: a score, which no seed changes; three seeds of each: two measurements, two curves
    # and random orders. One that is trained: three seeds of two activations, and their comparison
    if content in SHOWN:
        assert len(cells) == [2 + 2 * 3 * 5, 3 * (2 * 2 + 1)][SHOWN.index(content)]


def test_a_model_may_have_a_recipe_of_its_own_and_a_device_that_is_not_here(folder):
    change = "segments = 0\n", "segments = 0\n[models.recipe]\nrate = 5e-4\n"
    text = worked("which-activation").replace(*change, 1)
    cells = [one for one in planned(folder, 'device = "cuda"\n' + text) if one.work == "train"]
    recipes = {one.place["model"]: one.given["plan"]["recipe"] for one in cells}
    rates = {name: recipe["rate"] for name, recipe in recipes.items()}
    assert rates == {"width 24": 5e-4, "width 48": 2e-3, "width 96": 2e-3}
    assert {recipe["device"] for recipe in recipes.values()} == {"cuda"}


SPELLED = [
    ("d_model", "d_modle", "hgviz knows no d_modle"), ('"bert"', '"brt"', "family: it is 'brt'"),
    ("n_heads = 6", "n_heads = 5", "48 / 5 is not a whole number"),
    ("steps", "stepz", "unknown field `stepz` - at `$.recipe`"),
    ('"michel"', '"mitchel"', "Unknown method of a study 'mitchel'"),
    ("train.tsv", "trian.tsv", "trian.tsv"),
    ("[[data]]", '[[data]]\nlabel_column = "mood"', "train.tsv has no column 'mood'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "what"), SPELLED)
def test_a_mistake_shows_before_anything_is_trained(old, new, what, folder):
    (folder / "dev.tsv").write_text(ROWS.replace("label", "mood"))
    with pytest.raises(HgvizError) as error:
        planned(folder, worked("which-score", (old, new)))
    assert what in " ".join(error.value.lines)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (BOTH + "[recipe]\nstepz = 3", "[recipe] of this study cannot be used: "),
        (BOTH + "[recipe]\nsteps = 3\nrate = -1.0", "> 0.0 - at `$.recipe.rate`"),
        (BOTH + "[recipe]\nminutes = 3", "does not train for minutes"),
        (BOTH + '[tokenizer]\nkind = "letters"', "[tokenizer] of this study cannot be used"),
        (BOTH + 'label_column = "lable"', "rows.tsv has no column 'lable'"),
        (BOTH + 'text_column = "lable"', "rows.tsv has no column 'lable'"),
        (MODEL + "n_heads = 2\n" + DATA, "is a checkpoint, so it takes no n_heads"),
        ("activations = [{name = 'x', top_k = 1}]\n" + BOTH, "exchanged by a name alone"),
        ("activations = [{top_k = 1}]\n" + BOTH, "activation of this study has no name"),
        ("activations = ['', 'sotfmax']\n" + BOTH, "sotfmax"),
    ],
)
def test_a_mistake_in_a_study_of_checkpoints_shows_before_anything_runs(content, what, folder):
    with pytest.raises(HgvizError) as error:
        run_sweep_of(folder, content)
    assert what in " ".join(error.value.lines) and "\n" not in str(error.value)
    assert not (folder / "out").exists()


def run_sweep_of(folder, content):
    read(folder, content)
    return run_sweep(folder / "study.toml", folder / "out")


def test_what_is_right_can_be_planned(folder, monkeypatch):
    for content in (BOTH + "[recipe]\nsteps = 3", BOTH + 'label_column = "1"\ntext_column = "0"'):
        assert len(planned(folder, content)) == 1
    keys = "n_heads = 2\nn_layers = 2\nd_model = 16\nmax_positions = 32\n"
    data = '[[data]]\ntrain = ["rows.tsv"]\nvalid = "rows.tsv"\n[recipe]\nsteps = 1\n'
    model = "[[models]]\nname = 'tiny'\n"
    cells = planned(folder, f"{model}family = 'yubert'\n{keys}{data}")  # whose goal is classes
    assert [one.work for one in cells] == ["train", "score"]
    with pytest.raises(HgvizError, match="knows no n_layers. Give its family"):
        planned(folder, model + keys + data)
    monkeypatch.setattr("hgviz.tasks.studies.MOST_CELLS", 1)
    with pytest.raises(HgvizError, match="has 2 cells.*at most 1"):
        planned(folder, f"{model}family = 'yubert'\n{keys}{data}")


def test_models_that_differ_in_their_tokenizer_alone_share_no_cell(folder):
    for name in ("one", "other"):
        shutil.copytree(resource("sample/softmax"), folder / name)

    def score_of(checkpoint):
        return planned(folder, BOTH.replace("sample/softmax", checkpoint))[0]

    keys = {score_of(name).key for name in ("sample/softmax", "one", "other")}
    assert len(keys) == 1  # the same model, wherever it lies
    words = folder / "other" / "tokenizer.json"
    facts = json.loads(words.read_text("utf-8"))
    facts["normalizer"] = None if facts["normalizer"] else {"type": "Lowercase"}
    words.write_text(json.dumps(facts))
    changed = score_of("other")
    assert changed.key not in keys
    out = folder_of(folder / "out", [changed])
    shutil.copy(folder / "one" / "tokenizer.json", words)  # it is another one by then
    with pytest.raises(HgvizError, match="has changed since the study was planned"):
        WORK["score"](out, changed)


# --- running --------------------------------------------------------------------------------------

TWO_SEEDS = 'seeds = [1, 2]\n[[data]]\nname = "reviews"\nvalid = "rows.tsv"\n' + MODEL
CURVES = """
asks = ["curve"]
methods = ["michel", "loo"]
[curve]
limit = 8
points = 3
random = 1
"""


@pytest.fixture
def file(folder):
    """A study file of a sample, with ten rows."""
    rows = resource("sample/reviews.tsv").read_text("utf-8").splitlines()
    (folder / "rows.tsv").write_text("\n".join(rows[:11]) + "\n")
    read(folder, TWO_SEEDS)
    return folder / "study.toml"


def test_a_study_names_what_changed_and_keeps_its_results(file, run):
    out = file.parent / "out"
    code, printed, error = run("study", "run", file, "-o", out)
    assert code == 0 and not error and "1 cell: 1 done" in printed
    (before,) = out.glob("cells/*/*.json")
    inode = before.stat().st_ino
    assert run("study", "run", file, "-o", out)[0] == 0 and before.stat().st_ino == inode
    rows = file.parent / "rows.tsv"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    code, printed, error = run("study", "run", file, "-o", out)
    line = "1 result of other models, data or settings than the study asks for now (rows.tsv"
    assert code == 0 and error.startswith(line) and error.count("\n") == 1 and line in printed
    assert before.stat().st_ino == inode and len(list(out.glob("cells/*/*.json"))) == 2
    file.write_text(TWO_SEEDS.replace("[[data]]", "threads = 2\n[[data]]"))
    sweep = run_sweep(file, out)
    assert sweep.changed == 2 and sweep.changes == ("rows.tsv", "settings of score")
    assert kind_of(out) == "sweep" and info(out)["cells"] == 1 and info(out)["changed"] == 2


def test_what_changed_is_named_where_it_changed(folder):
    def cells(file="d", rate=1, columns=()):
        files, plan = {"valid": file}, {"rate": rate}
        train = Cell("train", {"plan": plan, "files": files}, (), {"valid": "/a/dev.tsv"})
        given = {"trained": train.key, "data": "e", "columns": [*columns]}
        return train, Cell("score", given, (train.key,), {"data": "/a/rows.tsv"})

    out = folder_of(folder / "out", cells())
    for now, changes in (
        (cells(), ()), (cells(file="x"), ("dev.tsv",)), (cells(rate=2), ("settings of train",)),
        (cells(columns=["a"]), ("settings of score",)), (cells()[:1], ("what is asked",)),
    ):  # fmt: skip
        assert find_changes(out, now) == changes


def test_parts_and_a_stopped_run_add_up_to_the_study(file):
    """Two parts copied together, and a run that was stopped, have the numbers of one run."""
    file.write_text(CURVES.replace("[curve]", TWO_SEEDS + "[curve]").replace("michel", "signed"))
    whole = run_sweep(file, file.parent / "whole")
    ended = []
    cancelled(
        run_sweep, file, file.parent / "stopped",
        when=lambda step: ended.append(isinstance(step.value, tuple)) or sum(ended) == 3,
    )  # fmt: skip
    parts = [run_sweep(file, file.parent / f"part-{n}", part=(n, 2)) for n in (1, 2)]
    assert sum(part.counts["done"] for part in parts) == len(whole.standings)
    shutil.copytree(file.parent / "part-2/cells", file.parent / "part-1/cells", dirs_exist_ok=True)
    assert sum(ended) == 3 and whole.complete
    for name in ("stopped", "part-1"):
        sweep = run_sweep(file, file.parent / name)
        assert [one.found for one in sweep.standings] == [one.found for one in whole.standings]
    keys = [one.cell.key for one in whole.standings if one.cell.place["seed"] == "1"]
    found = [open_study(SweepFolder(whole.path).result_at(key, ".h5")) for key in keys]
    arrays = {name for study in found for name in study.arrays}
    assert {"gradient", "loss_change", "change"} <= arrays
    assert all(study.answered.all() for study in found)
    methods = {curve.method for study in found for curve in study.curves}
    assert methods == {"signed", "loo", "random"}


def test_a_file_that_changes_after_it_was_planned_fails_its_cell(file):
    def change(step):
        if step.value:
            (file.parent / "rows.tsv").write_text("sentence\tlabel\nother\t1\nrows\t0\n")

    with listening(change):
        (one,) = run_sweep(file, file.parent / "out").standings
    assert one.state == "failed" and "rows.tsv has changed since the study was planned" in one.line


def test_a_disk_that_takes_nothing_leaves_the_study_as_it_was(file, monkeypatch):
    def fail(number, words):
        def refuse(*_, **__):
            raise OSError(number, words)

        return refuse

    out = file.parent / "out"
    with monkeypatch.context() as patch:
        full = fail(28, "No space left on device")
        patch.setattr("hgviz.store.studies.write_atomic", full)
        with pytest.raises(HgvizError, match="disk is full"):
            run_sweep(file, out)
    assert [one.name for one in out.iterdir()] == ["cells"]
    assert run_sweep(file, out).complete
    before = sorted(out.rglob("*"))
    monkeypatch.setattr(os, "replace", fail(30, "Read-only file system"))
    with pytest.raises(HgvizError, match="cannot be written: read-only|read-only"):
        run_sweep(file, out)
    assert sorted(out.rglob("*")) == before


def test_wrong_folders_and_parts_are_refused(file, refusal):
    for out, what in ((file.parent / "rows.tsv", "is a file"), (file.parent, "other things")):
        with pytest.raises(HgvizError, match=f"{what}: a study has a folder"):
            run_sweep(file, out)
    out = file.parent / "out"
    for part in ("0/2", "3/2", "x", "1", "1/", "/2", "-1/2"):
        assert "is no part" in refusal("study", "run", file, "-o", out, "--part", part, code=2)
    assert "no scheduler" in refusal("study", "run", file, "-o", out, "--scheduler", "ray")
    assert not out.exists()


# --- how cells stand ------------------------------------------------------------------------------


def test_how_a_study_stands_is_a_table_and_lines(tmp_path, run, facts):
    cells = [cell(number) for number in range(3)]
    cells.append(cell(3, needs=(cells[2],)))
    folder = folder_of(tmp_path, cells)
    folder.keep(cells[0].key, {}, {"seconds": 100})
    folder.fail(cells[2].key, "It cannot be done.")
    code, printed, error = run("study", "status", tmp_path)
    assert code == 0 and not error
    assert "4 cells: 1 done, 1 waiting, 1 failed, 1 blocked." in printed
    assert "Failed: do: seed 2. It cannot be done." in printed
    assert "Blocked: 1 cell, since do: seed 2 failed." in printed and "--again" in printed
    states = facts("study", "status", tmp_path)
    assert states["counts"] == {"done": 1, "waiting": 1, "failed": 1, "blocked": 1}
    assert [one["state"] for one in states["cells"]] == ["done", "waiting", "failed", "blocked"]
    assert states["kind"] == "sweep" and not states["complete"]


def test_a_study_file_is_opened_with_the_folder_of_its_name(file, refusal):
    assert [one.state for one in open_sweep(file).standings] == ["waiting"]
    out = file.with_suffix("")
    run_sweep(file, out)
    assert open_sweep(file).complete and open_sweep(out).complete
    line = refusal("evaluate", out, "--data", "sample/reviews.tsv")
    assert "is the folder of a study of many runs" in line
    file.write_text(STUDY)
    assert "hgviz study run" in refusal("info", file)
