"""Study files: what is told of wrong ones, how they are planned and run, and how they stand."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from hgviz.core import HgvizError, listening
from hgviz.files import resource
from hgviz.store.studies import SweepFolder, read_study_file
from hgviz.study import Cell, Source
from hgviz.tasks import info, kind_of, run_sweep
from hgviz.tasks.studies import WORK, open_sweep, plan
from tests.sweeps import STUDY, cell, folder_of

# --- study files ----------------------------------------------------------------------------------


MODEL = '[[models]]\nname = "a"\ncheckpoint = "sample/softmax"\n'
DATA = '[[data]]\nvalid = "rows.tsv"\n'


def read(tmp_path, content):
    path = tmp_path / "study.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_study_file(path)


def test_a_study_file_says_what_is_left_out(tmp_path):
    asked = read(tmp_path, MODEL + DATA)
    assert asked.asks == ("score",) and asked.seeds == (0,) and asked.activations == ("",)
    assert asked.data == (Source("rows.tsv"),) and asked.threads == 1 and not asked.title


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "models"), (b"\x89PNG\r\n\x1a\n\0\0", "is not a study file"), (MODEL, "data"),
        (DATA, "models"), ("models = []\n" + DATA, r"no \[\[models\]\]"),
        ("data = []\n" + MODEL, r"no \[\[data\]\]"), ("[[models", "is not a study file"),
        ("seed = 1\n" + MODEL + DATA, "seed"), (MODEL + DATA + 'file = "x"', "file"),
        (MODEL + "[[data]]\n", "valid"), ("models = 3\n" + DATA, "models"),
        ("[[models]]\ncheckpoint = 'x'\n" + DATA, "needs a name"),
        ("[[models]]\nname = ''\n" + DATA, "needs a name"),
        (MODEL + MODEL + DATA, r"two of \[\[models\]\] have one name"),
        (MODEL + DATA + DATA, r"two of \[\[data\]\] have one name"),
        ("asks = []\n" + MODEL + DATA, "asks is empty"),
        ("asks = ['guess']\n" + MODEL + DATA, "guess"),
        ("asks = ['curve']\n" + MODEL + DATA, "curves need methods"),
        ("asks = ['compare']\n" + MODEL + DATA, "at least two activations"),
        ("seeds = []\n" + MODEL + DATA, "seeds is empty"),
        ("seeds = [1, 1]\n" + MODEL + DATA, "a seed stands twice"),
        ("seeds = [-1]\n" + MODEL + DATA, "seeds are numbers from 0 on"),
        ("seeds = [1.5]\n" + MODEL + DATA, "seeds"),
        ("activations = []\n" + MODEL + DATA, "activations is empty"),
        ("activations = ['ymish', 'ymish']\n" + MODEL + DATA, "activation stands twice"),
        ("methods = ['loo', 'loo']\n" + MODEL + DATA, "a method stands twice"),
        ("threads = 0\n" + MODEL + DATA, "threads begin at 1"),
        (MODEL + DATA + "[curve]\npoints = 1\n", "too small a number"),
        (MODEL + DATA + "[curve]\nbudgets = [1.5]\n", "budgets are shares"),
        (MODEL + DATA + "[curve]\nbudgets = [nan]\n", "budgets are shares"),
        ("seeds = 3\n" + MODEL + DATA, "seeds: expected a list in brackets, got a whole number"),
        ("asks = ['scoer']\n" + MODEL + DATA, "asks cannot be 'scoer'. Choose among score, curve"),
        (MODEL + DATA + "[curve]\nstep = 1\n", r"\[curve\] has no key step. Its keys.*points"),
        ("device = 'cpu'\nmethod = []\n" + MODEL + DATA, "no key method. Its keys.*methods"),
        (b"\xff\xfe\0", "it is not text|It is not text"),
        ("a = " + "[" * 5000 + "]" * 5000, "is not a study file"),
        ("#" * (1 << 20) + "\n" + MODEL + DATA, "longer than 1 MB"),
    ],
)  # fmt: skip
def test_every_mistake_of_a_study_file_is_one_clear_line(tmp_path, content, why):
    with pytest.raises(HgvizError, match=why) as told:
        read(tmp_path, content)
    assert "\n" not in str(told.value)


def test_a_study_file_that_is_not_there_or_a_folder_is_told(tmp_path):
    with pytest.raises(HgvizError, match="No such file"):
        read_study_file(tmp_path / "no.toml")
    with pytest.raises(HgvizError, match="cannot read"):
        read_study_file(tmp_path)


def test_the_key_of_a_cell_is_of_what_decides_its_result():
    one = Cell("score", {"a": 1, "b": 2}, (), {"data": "/here"}, {"seed": "1"})
    assert one.key == Cell("score", {"b": 2, "a": 1}, (), {"data": "/there"}).key
    assert len({one.key, Cell("score", {"a": 1}).key, Cell("train", {"a": 1, "b": 2}).key}) == 3
    assert one.key != Cell("score", {"a": 1, "b": 2}, ("0" * 24,)).key
    assert one.label == "score: seed 1"
    with pytest.raises(ValueError, match="JSON"):
        Cell("score", {"a": float("nan")})


# --- planning -------------------------------------------------------------------------------------


KEPT = Path(__file__).parents[1] / "docs" / "studies"
FILES = sorted(KEPT.glob("*.toml"))
ROWS = "sentence\tlabel\ngood\t1\nbad\t0\n"


@pytest.fixture
def beside(tmp_path):
    """A folder with the data that the study files ask for beside them."""
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_study_file_of_the_pages_can_be_planned(file, beside):
    asked = read_study_file(file)
    cells = plan(asked, beside)
    trained = [one for one in cells if one.work == "train"]
    models = len(asked.models) * len(asked.seeds) * len(asked.activations) * len(asked.data)
    assert len(trained) == (0 if "checkpoint" in asked.models[0] else models)
    seen = set()
    for one in cells:
        assert one.key not in seen and seen.issuperset(one.needs)
        seen.add(one.key)
    assert asked.title and asked.question


def test_too_many_cells_are_refused(beside, monkeypatch):
    monkeypatch.setattr("hgviz.tasks.studies.MOST_CELLS", 2)
    with pytest.raises(HgvizError, match=r"has \d+ cells.*at most 2"):
        plan(read_study_file(KEPT / "which-score.toml"), beside)


def test_the_files_that_the_page_shows_can_be_planned(beside):
    page = (KEPT.parent / "studies.md").read_text("utf-8")
    shown = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file, counts = beside / "study.toml", []
    for text in shown:
        file.write_text(text)
        counts.append(len(plan(read_study_file(file), beside)))
    # two models: a score, which no seed changes; three seeds of each: two measurements, two curves
    # and random orders. One that is trained: three seeds of two activations, and their comparison
    assert counts == [2 + 2 * 3 * 5, 3 * (2 * 2 + 1)]


def test_a_model_may_have_a_recipe_of_its_own(beside):
    text = (KEPT / "which-activation.toml").read_text("utf-8")
    file = beside / "study.toml"
    own = "segments = 0\n[models.recipe]\nrate = 5e-4\n"
    file.write_text(text.replace("segments = 0\n", own, 1))
    cells = plan(read_study_file(file), beside)
    rates = {one.place["model"]: one.given["plan"]["recipe"]["rate"]
             for one in cells if one.work == "train"}  # fmt: skip
    assert rates == {"width 24": 5e-4, "width 48": 2e-3, "width 96": 2e-3}


def test_a_study_of_gpus_can_be_planned_where_there_is_none(beside):
    text = (KEPT / "which-score.toml").read_text("utf-8")
    file = beside / "study.toml"
    file.write_text('device = "cuda"\n' + text)
    first, *_ = plan(read_study_file(file), beside)
    assert first.given["plan"]["recipe"]["device"] == "cuda"
    file.write_text('device = "auto"\n' + text)
    with pytest.raises(HgvizError, match="device is one of cpu, cuda, mps"):
        read_study_file(file)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("d_model", "d_modle", "hgviz knows no d_modle"),
        ('"bert"', '"brt"', "family: it is 'brt'"),
        ("n_heads = 6", "n_heads = 5", "48 / 5 is not a whole number"),
        ("steps", "stepz", "unknown field `stepz` - at `$.recipe`"),
        ("points", "pionts", "[curve] has no key pionts"),
        ('"michel"', '"mitchel"', "Unknown method of a study 'mitchel'"),
        ("train.tsv", "trian.tsv", "trian.tsv"),
    ],
)
def test_what_is_misspelt_shows_before_anything_is_trained(right, wrong, said, beside):
    file = beside / "study.toml"
    file.write_text((KEPT / "which-score.toml").read_text("utf-8").replace(right, wrong))
    with pytest.raises(HgvizError) as caught:
        plan(read_study_file(file), beside)
    assert said in " ".join(caught.value.lines)


OF_A_SAMPLE = """
[[models]]
name = "small"
checkpoint = "{checkpoint}"
[[data]]
valid = "rows.tsv"
{more}
"""


def asked_of(folder, checkpoint="sample/softmax", more=""):
    """A study file of a checkpoint, with rows beside it, planned."""
    (folder / "rows.tsv").write_text(ROWS)
    file = folder / "study.toml"
    file.write_text(OF_A_SAMPLE.format(checkpoint=checkpoint, more=more))
    return plan(read_study_file(file), folder)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[recipe]\nstepz = 3", "[recipe] of this study cannot be used: .*unknown field `stepz`"),
        ("[recipe]\nsteps = 3\nrate = -1.0", r"> 0\.0 - at `\$\.recipe\.rate`"),
        ("[recipe]\nminutes = 3", "does not train for minutes"),
        ('[tokenizer]\nkind = "letters"', r"\[tokenizer\] of this study cannot be used"),
    ],
)
def test_what_nobody_trains_by_is_checked_all_the_same(more, said, tmp_path):
    with pytest.raises(HgvizError) as caught:
        asked_of(tmp_path, more=more)
    assert re.search(said.replace("[recipe]", r"\[recipe\]"), " ".join(caught.value.lines))
    assert len(asked_of(tmp_path, more="[recipe]\nsteps = 3")) == 1


@pytest.mark.parametrize("name", ["label_column", "text_column"])
def test_a_column_that_is_not_there_is_said_before_anything_runs(name, tmp_path):
    with pytest.raises(HgvizError, match="rows.tsv has no column 'lable'") as caught:
        asked_of(tmp_path, more=f'{name} = "lable"')
    assert "\n" not in str(caught.value)
    for column in ("label", "1"):
        assert len(asked_of(tmp_path, more=f'label_column = "{column}"\ntext_column = "0"')) == 1


def test_columns_of_what_models_are_trained_on_are_looked_for_too(beside):
    text = (KEPT / "which-score.toml").read_text("utf-8")
    file = beside / "study.toml"
    (beside / "dev.tsv").write_text(ROWS.replace("label", "mood"))
    file.write_text(text.replace("[[data]]", '[[data]]\nlabel_column = "mood"'))
    with pytest.raises(HgvizError, match="train.tsv has no column 'mood'"):
        plan(read_study_file(file), beside)


def test_models_that_differ_in_their_tokenizer_alone_share_no_cell(tmp_path):
    for name in ("one", "other"):
        shutil.copytree(resource("sample/softmax"), tmp_path / name)
    keys = [asked_of(tmp_path, one)[0].key for one in ("sample/softmax", "one", "other")]
    assert len(set(keys)) == 1  # the same model, wherever it lies
    words = tmp_path / "other" / "tokenizer.json"
    told = json.loads(words.read_text("utf-8"))
    told["normalizer"] = None if told["normalizer"] else {"type": "Lowercase"}
    words.write_text(json.dumps(told))
    (changed,) = asked_of(tmp_path, "other")
    assert changed.key != keys[0]
    folder = SweepFolder(tmp_path / "out")
    folder.write_plan((tmp_path / "study.toml").read_text("utf-8"), [changed])
    shutil.copy(tmp_path / "one" / "tokenizer.json", words)  # it is another one by then
    with pytest.raises(HgvizError, match="has changed since the study was planned"):
        WORK["score"](folder, changed)


# --- running --------------------------------------------------------------------------------------


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

    def change(step):
        if step.value:
            (file.parent / "rows.tsv").write_text("sentence\tlabel\nother\t1\nrows\t0\n")

    with listening(change):
        (one,) = run_sweep(file, out).standings
    assert one.state == "failed" and "rows.tsv has changed since the study was planned" in one.line


def test_a_misspelt_activation_of_a_checkpoint_is_told_before_anything_is_computed(file):
    file.write_text("activations = ['', 'sotfmax']\n" + file.read_text())
    with pytest.raises(HgvizError, match="there is no activation 'sotfmax'|no activation"):
        run_sweep(file, file.parent / "out")
    assert not (file.parent / "out").exists()


def test_a_model_that_can_be_trained_is_planned_and_a_family_left_out_is_told(file):
    keys = "d_model = 16\nn_heads = 2\nn_layers = 2\nmax_positions = 32\n"
    data = '[[data]]\ntrain = ["rows.tsv"]\nvalid = "rows.tsv"\n[recipe]\nsteps = 1\n'
    model = "[[models]]\nname = 'tiny'\n"
    file.write_text(f"{model}family = 'yubert'\n{keys}{data}")  # whose goal is classes
    (train, score) = open_sweep(file).standings
    assert (train.cell.work, score.cell.work) == ("train", "score")
    file.write_text(model + keys + data)
    with pytest.raises(HgvizError, match="knows no n_layers. Give its family"):
        open_sweep(file)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(file):
    file.parent.chmod(0o500)
    try:
        with pytest.raises(HgvizError, match="cannot be written.*ermission"):
            run_sweep(file, file.parent / "out")
    finally:
        file.parent.chmod(0o700)


def test_a_system_that_is_read_only_is_told(file, monkeypatch):
    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    out = file.parent / "out"
    run_sweep(file, out)
    before = sorted(out.rglob("*"))
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(HgvizError, match="cannot be written: read-only|read-only"):
        run_sweep(file, out)
    assert sorted(out.rglob("*")) == before


def test_a_disk_that_is_full_before_the_plan_is_no_obstacle_later(file, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    out = file.parent / "out"
    with monkeypatch.context() as patch:
        patch.setattr("hgviz.store.studies.write_atomic", full)
        with pytest.raises(HgvizError, match="disk is full"):
            run_sweep(file, out)
    assert [one.name for one in out.iterdir()] == ["cells"]
    assert run_sweep(file, out).complete


@pytest.mark.parametrize("place", ["a file", "a full folder"])
def test_a_folder_of_other_things_is_left_alone(file, place):
    out = file.parent / "rows.tsv" if place == "a file" else file.parent
    with pytest.raises(HgvizError, match="a study has a folder"):
        run_sweep(file, out)


@pytest.mark.parametrize("part", ["0/2", "3/2", "x", "1", "1/", "/2", "-1/2"])
def test_a_part_that_is_none_is_wrong_use(file, refusal, part):
    out = file.parent / "out"
    assert "is no part" in refusal("study", "run", file, "-o", out, "--part", part, code=2)
    assert not out.exists()


def test_how_a_study_stands_is_a_table_and_lines(tmp_path, run, facts):
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
    told = facts("study", "status", tmp_path)
    assert told["counts"] == {"done": 1, "waiting": 1, "failed": 1, "blocked": 1}
    assert [one["state"] for one in told["cells"]] == ["done", "waiting", "failed", "blocked"]
    assert told["kind"] == "sweep" and not told["complete"]


def test_a_study_where_one_model_is_asked_for_is_told(tmp_path, refusal):
    folder_of(tmp_path / "study", [cell(1)])
    told = refusal("evaluate", tmp_path / "study", "--data", "sample/reviews.tsv")
    assert "is the folder of a study of many runs" in told
    (tmp_path / "a.toml").write_text(STUDY)
    assert "hgviz study run" in refusal("info", tmp_path / "a.toml")
