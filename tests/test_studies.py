"""Studies: their files and what is wrong in them, their cells, how they run, here and on workers
that die, how they stand, and every number, page and figure that is made of their results."""

import gc
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Reschedule
from scipy import stats

from hgviz import cluster, tasks
from hgviz.analysis.statistics import sign_test_of_counts
from hgviz.core import HgvizError, listening
from hgviz.figures import Spec, labels
from hgviz.figures.output import compose
from hgviz.files import resource
from hgviz.store.studies import SweepFolder, open_study, read_study_file
from hgviz.study import Cell
from hgviz.tasks import info, kind_of, run_sweep
from hgviz.tasks.studies import (
    WORK,
    compute_here,
    fail_without_worker,
    find_changes,
    open_sweep,
    packed,
    plan,
    unpacked,
)
from hgviz.tasks.study_results import StudyResults
from tests.figures.flaws import flaws, texts
from tests.progress import cancelled, steps_of
from tests.studying import (
    STUDY,
    cell,
    folder_of,
    make_sweep,
    study_file,
    tries,
    without,
    work_in,
    write,
)

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


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "is not a study file"), (b"\xff\xfe\0", "[Ii]t is not text"),
        ("a = " + "[" * 5000 + "]" * 5000, "is not a study"), (None, "No such file"),
        ("#" * (1 << 20) + "\n" + BOTH, "larger than 1 MB"),
        (MODEL, "data"), ("models = []\n" + DATA, r"no \[\[models\]\]"),
        ("models = 3\n" + DATA, "models"), (MODEL + "[[data]]\n", "valid"),
        ("[[models]]\nname = ''\n" + DATA, "needs a name"),
        (MODEL + BOTH, r"two of \[\[models\]\] have the same name"),
        (BOTH + DATA, r"two of \[\[data\]\] have the same name"),
        ("asks = ['scoer']\n" + BOTH, "asks cannot be 'scoer'. Choose from score, curve"),
        ("asks = ['curve']\n" + BOTH, "curves need methods"),
        ("asks = ['compare']\n" + BOTH, "at least two activations"),
        ("seeds = []\n" + BOTH, "seeds is empty"),
        ("seeds = [1, 1]\n" + BOTH, "a seed is listed twice"),
        ("seeds = [-1]\n" + BOTH, "seeds must be 0 or more"),
        ("seeds = 3\n" + BOTH, "seeds: expected a list in brackets, got a whole number"),
        ("activations = ['ymish', 'ymish']\n" + BOTH, "activation is listed twice"),
        ("methods = ['loo', 'loo']\n" + BOTH, "a method is listed twice"),
        ("threads = 0\n" + BOTH, "threads must be 1 or more"),
        ("device = 'auto'\n" + BOTH, "device must be one of cpu, cuda, mps"),
        (BOTH + "[curve]\npoints = 1\n", "a number that is too small"),
        (BOTH + "[curve]\nbudgets = [nan]\n", "budgets must be above 0"),
        (BOTH + "[curve]\nstep = 1\n", r"\[curve\] has no key step. Its keys.*points"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_study_file_is_one_line(folder, content, what):
    with pytest.raises(HgvizError, match=what) as error:
        read_study_file(folder / "no.toml") if content is None else read(folder, content)
    assert "\n" not in str(error.value)


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
    if content in SHOWN:  # as many as the page says
        assert len(cells) == [2 + 2 * 3 * 5, 3 * (2 * 2 + 1)][SHOWN.index(content)]


def test_a_model_may_have_a_recipe_of_its_own_and_a_device_that_is_not_here(folder):
    change = "segments = 0\n", "segments = 0\n[models.recipe]\nrate = 5e-4\n"
    text = worked("which-activation").replace(*change, 1)
    cells = [one for one in planned(folder, 'device = "cuda"\n' + text) if one.work == "train"]
    recipes = {one.place["model"]: one.given["plan"]["recipe"] for one in cells}
    assert [recipe["rate"] for recipe in recipes.values()] == [5e-4, 2e-3, 2e-3]
    assert {recipe["device"] for recipe in recipes.values()} == {"cuda"}


MISTAKES = [  # a whole file, or a change of a worked study
    (("d_model", "d_modle"), "unknown key d_modle"), (('"bert"', '"brt"'), "the family is 'brt'"),
    (("n_heads = 6", "n_heads = 5"), "48 / 5 is not a whole number"),
    (("steps", "stepz"), "recipe: unknown key stepz"),
    (('"michel"', '"mitchel"'), "Unknown method of a study 'mitchel'"),
    (("train.tsv", "trian.tsv"), "trian.tsv"),
    (("[[data]]", '[[data]]\nlabel_column = "mood"'), "train.tsv has no column 'mood'"),
    (BOTH + "[recipe]\nstepz = 3", "[recipe] of this study cannot be used: "),
    (BOTH + "[recipe]\nsteps = 3\nrate = -1.0", "recipe.rate: Expected float > 0.0"),
    (BOTH + "[recipe]\nminutes = 3", "cannot train for minutes"),
    (BOTH + '[tokenizer]\nkind = "letters"', "[tokenizer] of this study cannot be used"),
    (MODEL + "n_heads = 2\n" + DATA, "which is not trained: it takes no n_heads"),
    ("activations = [{name = 'x', top_k = 1}]\n" + BOTH, "is replaced by name"),
    ("activations = [{top_k = 1}]\n" + BOTH, "activation of this study has no name"),
    ("activations = ['', 'sotfmax']\n" + BOTH, "sotfmax"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "what"), MISTAKES)
def test_a_mistake_shows_before_anything_runs(content, what, folder):
    (folder / "dev.tsv").write_text(ROWS.replace("label", "mood"))
    content = content if isinstance(content, str) else worked("which-score", content)
    with pytest.raises(HgvizError) as error:
        read(folder, content)
        run_sweep(folder / "study.toml", folder / "out")
    assert what in " ".join(error.value.lines) and "\n" not in str(error.value)
    assert not (folder / "out").exists()


def test_what_is_right_can_be_planned(folder, monkeypatch):
    for content in (BOTH + "[recipe]\nsteps = 3", BOTH + 'label_column = "1"\ntext_column = "0"'):
        assert len(planned(folder, content)) == 1
    keys = "n_heads = 2\nn_layers = 2\nd_model = 16\nmax_positions = 32\n"
    data = '[[data]]\ntrain = ["rows.tsv"]\nvalid = "rows.tsv"\n[recipe]\nsteps = 1\n'
    model = "[[models]]\nname = 'tiny'\n"
    cells = planned(folder, f"{model}family = 'yubert'\n{keys}{data}")  # whose goal is classes
    assert [one.work for one in cells] == ["train", "score"]
    with pytest.raises(HgvizError, match="unknown key n_layers. Give its family"):
        planned(folder, model + keys + data)
    monkeypatch.setattr("hgviz.tasks.studies.MOST_CELLS", 1)
    with pytest.raises(HgvizError, match="has 2 runs.*at most 1"):
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
    assert code == 0 and not error and "1 run: 1 done" in printed
    (before,) = out.glob("cells/*/*.json")
    inode = before.stat().st_ino
    assert run("study", "run", file, "-o", out)[0] == 0 and before.stat().st_ino == inode
    rows = file.parent / "rows.tsv"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    code, printed, error = run("study", "run", file, "-o", out)
    line = "1 result of other models, data or settings than the study file has now (rows.tsv"
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
        (cells(columns=["a"]), ("settings of score",)), (cells()[:1], ("requested runs",)),
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


def test_a_file_that_changes_after_it_was_planned_fails_its_cell(file):
    def change(step):
        if step.value:
            (file.parent / "rows.tsv").write_text("sentence\tlabel\nother\t1\nrows\t0\n")

    with listening(change):
        (one,) = run_sweep(file, file.parent / "out").standings
    assert one.state == "failed" and "rows.tsv has changed since the study was planned" in one.line


def test_wrong_folders_and_parts_are_refused(file, refusal):
    for out, what in ((file.parent / "rows.tsv", "is a file"), (file.parent, "other files")):
        with pytest.raises(HgvizError, match=f"{what}: a study needs"):
            run_sweep(file, out)
    out = file.parent / "out"
    for part in ("0/2", "3/2", "x", "1", "1/", "/2", "-1/2"):
        assert "is not a part" in refusal("study", "run", file, "-o", out, "--part", part, code=2)
    assert "is not a scheduler" in refusal("study", "run", file, "-o", out, "--scheduler", "ray")
    assert not out.exists()


# --- how cells stand ------------------------------------------------------------------------------


def test_how_a_study_stands_is_a_table_and_lines(tmp_path, output, facts):
    cells = [cell(number) for number in range(3)]
    cells.append(cell(3, needs=(cells[2],)))
    folder = folder_of(tmp_path, cells)
    folder.keep(cells[0].key, {}, {"seconds": 100})
    folder.fail(cells[2].key, "It cannot be done.")
    printed = output("study", "status", tmp_path)
    assert "4 runs: 1 done, 1 waiting, 1 failed, 1 blocked." in printed
    assert "Failed: do: seed 2. It cannot be done." in printed
    assert "Blocked: 1 run, because do: seed 2 failed." in printed and "--again" in printed
    states = facts("study", "status", tmp_path)
    assert [one["state"] for one in states["cells"]] == ["done", "waiting", "failed", "blocked"]
    assert states["kind"] == "sweep" and not states["complete"]


def test_a_study_file_is_opened_with_the_folder_of_its_name(file, refusal):
    assert [one.state for one in open_sweep(file).standings] == ["waiting"]
    out = file.with_suffix("")
    run_sweep(file, out)
    assert open_sweep(file).complete and open_sweep(out).complete
    line = refusal("evaluate", out, "--data", "sample/reviews.tsv")
    assert "is the folder of a study with many runs" in line
    file.write_text(STUDY)
    assert "hgviz study run" in refusal("info", file)


# --- results --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sweep():
    """Two activations of one model, three seeds, three methods and random orders."""
    return make_sweep()


@pytest.fixture(scope="module")
def results(sweep):
    return StudyResults(sweep)


def keys(sweep, work, **place):
    return [one.cell.key for one in sweep.of(work, **place)]


def changed(sweep, key, **result):
    """The same sweep with another result of one cell."""
    return replace(sweep, standings=tuple(
        replace(one, found={**one.found, **result}) if one.cell.key == key else one
        for one in sweep.standings
    ))  # fmt: skip


def test_scores_are_means_of_seeds_and_their_difference_is_paired(sweep, results):
    values, right = {}, {}
    for row in results.scores:
        cells = [one.found for one in sweep.of("score", activation=row["activation"])]
        one = values[row["activation"]] = np.array([cell["value"] for cell in cells])
        right[row["activation"]] = np.array([unpacked(cell["right"]) for cell in cells]).astype(int)
        assert row["score"].values.tolist() == one.tolist() and row["seeds"] == ["1", "2", "3"]
        interval = stats.t.interval(0.95, 2, one.mean(), stats.sem(one))
        assert (row["score"].low, row["score"].high) == pytest.approx(interval)
    mixed = StudyResults(make_sweep(activations=("ymish",), seeds=(10, 2, 1), methods=("loo",)))
    assert mixed.scores[0]["seeds"] == mixed.pruning[0]["seeds"] == ["1", "2", "10"]
    (row,) = results.score_differences
    assert (row["base"], row["over"]) == ("softmax", "texts")
    assert row["difference"].values == pytest.approx(values["ymish"] - values["softmax"])
    assert row["p"] == sign_test_of_counts((right["ymish"] - right["softmax"]).sum(0))


def test_budgets_are_read_at_points_and_averaged_over_seeds(sweep, results):
    assert results.budgets == (0.25, 0.5, 0.75, None)
    for row in results.pruning:
        place = {axis: row[axis] for axis in ("data", "model", "activation", "method")}
        cells = [one.found["curves"] for one in sweep.of("curve", **place)]
        curves = [np.mean([curve["values"] for curve in one], axis=0) for one in cells]
        for at, point in enumerate((3, 6, 9)):  # of 0, 2 ... 24 heads
            assert row["at"][at].values == pytest.approx([curve[point] for curve in curves])
        areas = [np.trapezoid(curve) / 12 for curve in curves]
        assert row["at"][3].values == pytest.approx(areas)


def test_methods_are_paired_by_model_and_seed_and_adjusted_together():
    results = StudyResults(make_sweep(("small", "large")))
    values = {
        (row["model"], row["activation"], seed, row["method"]): row["at"][1].values[at]
        for row in results.pruning for at, seed in enumerate(row["seeds"])
    }  # fmt: skip
    for rows, base in ((results.method_differences, "michel"),
                       (results.random_differences, "random")):  # fmt: skip
        for row in rows:
            if row["budget"] == 0.5:
                expected = [value - values[*unit, base] for (*unit, method), value in values.items()
                            if method == row["method"]]  # fmt: skip
                assert sorted(row["difference"].values) == pytest.approx(sorted(expected))
        assert len(rows) == 4 * (len(results.methods) - 1 - (base != "random"))
        adjusted = stats.false_discovery_control([row["p"] for row in rows])
        assert [row["adjusted"] for row in rows] == pytest.approx(adjusted)
    assert np.mean([ranks[1].mean for ranks in results.ranks.values()]) == pytest.approx(2.5)


def test_of_one_activation_models_are_compared_and_one_seed_has_no_interval():
    (row,) = StudyResults(make_sweep(("small", "large"), ("softmax",))).score_differences
    assert (row["axis"], row["base"], row["model"]) == ("model", "small", "large")
    one = StudyResults(make_sweep(seeds=(1,), methods=("michel",)))
    assert all(math.isnan(row["score"].low) for row in one.scores)
    assert not any(row["significant"] for row in one.score_differences)


def test_of_bits_less_is_better_and_p_is_over_seeds(sweep):
    for number, key in enumerate(keys(sweep, "score")):
        value = 2.0 + 0.01 * (number % 3) - 0.5 * (number >= 3)
        sweep = changed(sweep, key, metric="bits_per_byte", value=value, right=packed([]))
    (row,) = StudyResults(sweep).score_differences
    assert row["over"] == "seeds" and row["significant"]
    chart = tasks.sweep_chart("seeds", sweep)
    assert chart.up == "Bits per byte" and max(mark.mean for mark in chart.marks()) < 3


def test_missing_seeds_are_counted_and_pairs_are_of_what_both_have(sweep):
    gone = keys(sweep, "score", activation="ymish", seed="2")
    gone += keys(sweep, "curve", activation="softmax", seed="1", method="loo")
    results = StudyResults(without(sweep, *gone))
    score = {row["activation"]: row for row in results.scores}["ymish"]
    assert (score["missing"], score["seeds"]) == (1, ["1", "3"])
    assert len(results.score_differences[0]["difference"].values) == 2
    rows = [row for row in results.method_differences if row["method"] == "loo"]
    assert {len(row["difference"].values) for row in rows} == {5}
    pruned = {(row["method"], row["activation"]): row for row in results.pruning}["loo", "softmax"]
    assert (pruned["missing"], pruned["seeds"]) == (1, ["2", "3"])
    failed = without(sweep, *keys(sweep, "score", activation="softmax"), state="failed")
    assert not StudyResults(failed).score_differences and len(StudyResults(failed).scores) == 1


@pytest.mark.parametrize(
    ("work", "result"),
    [
        ("score", {"value": "high"}), ("score", {"right": {"bits": "zz", "count": 3}}),
        ("score", {"right": {"bits": "00"}}), ("score", {"parameters": None}),
        ("curve", {"curves": []}), ("curve", {"curves": 3}), ("curve", {"heads": 2}),
        ("curve", {"curves": [{"off": [0, 1], "values": [float("nan"), 1.0], "unit": "a"}]}),
        ("curve", {"curves": [{"off": [1, 0], "values": [1.0, 1.0], "unit": "a"}]}),
        ("compare", {"answers": []}), ("compare", {"metrics": [{}]}),
    ],
)  # fmt: skip
def test_a_damaged_result_is_named(sweep, work, result):
    key = keys(sweep, work)[0]
    with pytest.raises(HgvizError, match="damaged") as error:
        StudyResults(changed(sweep, key, **result)).to_dict()
    assert key in error.value.do


def test_a_report_has_every_number_and_says_how_it_was_made(tmp_path, facts):
    sweep, out = make_sweep(folder=tmp_path / "s"), tmp_path / "r.html"
    numbers = facts("study", "report", tmp_path / "s", "-o", out)
    page = out.read_text("utf-8").replace("&lt;", "<").replace("&#x27;", "'")
    for words in ("Does an activation other than softmax", "hgviz study report s -o r.html",
                  "torch", "2.6.0", "alpha", "90.0", "3 seeds"):  # fmt: skip
        assert words in page, words
    assert numbers == json.loads(json.dumps(StudyResults(sweep).to_dict()))
    assert numbers["environment"]["seconds of computation"] == "90.0" and numbers["complete"]
    assert ">nan" not in page.lower() and str(tmp_path) not in page
    (tmp_path / "there").mkdir()
    folder, again = (tmp_path / "s").rename(tmp_path / "there/s"), tmp_path / "there/r.html"
    tasks.study_report(folder, again, f"hgviz study report {tmp_path}/s -o {again}")
    assert again.read_bytes() == out.read_bytes()


def test_what_is_not_done_is_said(tmp_path, refusal, sweep):
    state = "failed"
    some = without(sweep, *keys(sweep, "score"), state=state, line="no room")
    write(tmp_path / "some", study_file(), some.standings)
    missing = tasks.study_report(tmp_path / "some", tmp_path / "some.html")["missing"]
    page = (tmp_path / "some.html").read_text("utf-8")
    assert "Unfinished runs" in page and len(missing) == 6
    assert page.count("no room") == 6
    every = [one.cell.key for one in sweep.standings]
    none = without(sweep, *every, state=state, line="no room")
    write(tmp_path / "none", study_file(), none.standings)
    line = refusal("study", "report", tmp_path / "none", "-o", tmp_path / "none.html")
    assert "has nothing to report" in line and "no room" in line
    assert not (tmp_path / "none.html").exists()
    for kind in ("seeds", "budgets"):
        with pytest.raises(HgvizError, match="nothing to draw"):
            tasks.sweep_chart(kind, none)
    less = tuple(one for one in sweep.standings if one.cell.work != "score")
    with pytest.raises(HgvizError, match="is not among the asks"):
        tasks.sweep_chart("seeds", replace(sweep, standings=less))
    with pytest.raises(HgvizError, match="unknown curve of this study .gates."):
        tasks.sweep_chart("budgets", sweep, ("gates",))


GRIDS = {
    "many": {"activations": ("softmax", "ymish", "a very long name of an activation", "topk")},
    "one seed": {"seeds": (1,), "methods": ("loo",)},
}  # fmt: skip


@pytest.mark.parametrize("name", GRIDS)
def test_no_figure_of_a_study_has_a_flaw(name):
    sweep = make_sweep(**GRIDS[name])
    for kind, widths in (("seeds", ("1.6in", "acl")), ("budgets", ("1.6in", "nature2"))):
        chart = tasks.sweep_chart(kind, sweep)
        for width in widths:
            with labels.figure_settings():
                page = compose(Spec(kind, width=width), chart)
                assert flaws(page) == [], (kind, width)
                assert texts(page)


def test_the_numbers_of_figures_are_those_of_the_results(sweep, results):
    chart = tasks.sweep_chart("seeds", sweep)
    (facet,) = chart.facets.values()
    for row, (mark,) in zip(results.scores, zip(*facet, strict=True), strict=True):
        ends = [100 * end for end in (row["score"].mean, row["score"].low, row["score"].high)]
        assert [mark.mean, mark.low, mark.high] == pytest.approx(ends)
    rows = {(row["activation"], row["method"]): row["at"][1] for row in results.pruning}
    for plot, setting in zip(
        tasks.sweep_chart("budgets", sweep).plots, results.settings, strict=True
    ):
        for line in plot.lines:
            half = rows[setting[2], {"random orders": "random"}.get(line.label, line.label)]
            at = np.flatnonzero(np.isclose(line.x, 0.5))[0]
            assert (line.y[at], line.high[at]) == pytest.approx((100 * half.mean, 100 * half.high))
    (curve,) = sweep.of("curve", method="loo")[0].found["curves"]
    points = {name: curve[name][::2] for name in ("off", "values")}
    key = keys(sweep, "curve", method="loo")[0]
    chart = tasks.sweep_chart("budgets", changed(sweep, key, curves=[{**curve, **points}]), ["loo"])
    assert len(chart.plots[0].lines[0].x) == len(points["off"])  # what all seeds have


# --- on workers -----------------------------------------------------------------------------------


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


def compute(folder, cells, scheduler=""):
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
    values = [step.value for step in steps_of(compute, folder, cells, scheduler) if step.value]
    standings = folder.sweep().standings
    states = ["done"] * 4 + ["failed", "done", "blocked", "done", "blocked"]
    assert [one.state for one in standings] == states
    assert [one.found["sum"] for one in standings if one.found] == [0, 1, 2, 3, 11, 18]
    assert "ValueError: this one never works" in standings[4].line
    assert standings[6].line == standings[8].line == "do: seed 4 failed"
    assert len(values) == 7 and [one for one, is_done in values if not is_done] == [bad]
    assert all(len(tries(folder, one.cell)) == (one.state != "blocked") for one in standings)


def test_a_full_disk_ends_the_run_and_fails_no_cell(tmp_path, scheduler):
    cells = [cell(1), cell(2, "full"), cell(3, needs=(cell(2, "full"),))]
    folder = folder_of(tmp_path, cells)
    for _ in range(2):
        with pytest.raises(HgvizError, match="the disk is full.*is saved in"):
            compute(folder, cells, scheduler)
    assert {one.state for one in folder.sweep().standings} <= {"done", "waiting"}
    (tmp_path / "room").touch()
    assert compute(folder, cells, scheduler).complete and len(tries(folder, cells[0])) <= 2


def test_a_run_that_is_cancelled_leaves_its_cell_waiting(tmp_path, scheduler):
    one = cell(1, "wait")
    folder = folder_of(tmp_path, [one])
    cancelled(compute, folder, [one], scheduler, when=lambda step: bool(tries(folder, one)))
    assert folder.sweep().standings[0].state == "waiting"
    (tmp_path / "go").touch()
    assert compute(folder, [one], scheduler).complete


def test_a_cell_is_computed_again_when_its_worker_dies_and_given_up_in_the_end(tmp_path, address):
    once, always = cell(1, "die once"), cell(2, "die")
    cells = [once, always, cell(3, needs=(once,)), cell(4, needs=(always,))]
    folder = folder_of(tmp_path, cells)
    sweep = compute(folder, cells, address)
    assert [one.state for one in sweep.standings] == ["done", "failed", "done", "blocked"]
    assert "it died" in sweep.standings[1].line and folder.found(cells[2].key) == {"sum": 4}
    assert len(tries(folder, once)) > 1 and 3 <= len(tries(folder, always)) <= 8


def test_a_worker_that_closes_gives_its_cell_back_and_one_that_was_done_is_done(
    tmp_path, monkeypatch
):
    cells = [cell(1), cell(2)]
    folder = folder_of(tmp_path, cells)
    closing = SimpleNamespace(status=SimpleNamespace(name="closing"))
    monkeypatch.setattr("distributed.get_worker", lambda: closing)
    with pytest.raises(Reschedule):
        cluster.compute_on_worker(work_in(tmp_path), cells[0], cluster.__version__)
    assert folder.sweep().standings[0].state == "waiting" and not tries(folder, cells[0])
    compute(folder, cells[:1])
    assert [fail_without_worker(tmp_path, one) for one in cells] == [True, False]


# --- schedulers that are refused ------------------------------------------------------------------


def test_workers_that_do_not_fit_are_refused_before_any_cell(tmp_path, address, monkeypatch):
    one = cell(1)
    folder = folder_of(tmp_path, [one])
    with monkeypatch.context() as patch:
        patch.setattr("distributed.Client.run", lambda *_: {"tcp://far": False, "tcp://b": True})
        with pytest.raises(HgvizError, match="worker tcp://far cannot access .* 1 of 2 workers"):
            compute(folder, [one], address)
    monkeypatch.setattr(cluster, "__version__", "99")
    with pytest.raises(HgvizError, match=r"worker tcp://\S+ has hgviz \d.*needs hgviz 99"):
        compute(folder, [one], address)
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

    gone = pytest.raises(HgvizError, match=f"{address} disconnected.*1 of 2 runs are saved")
    with gone as error, listening(kill):
        compute(folder, cells, address)
    assert "run the same command" in error.value.do
    (folder.path / "go").touch()
    assert compute(folder, cells).complete and len(tries(folder, cells[0])) == 1


def test_a_scheduler_that_does_not_answer_is_one_line(tmp_path):
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(HgvizError, match=f"no scheduler at {address}: ") as error:
        compute(folder_of(tmp_path, [cell(1)]), [cell(1)], address)
    assert "\n" not in str(error.value) and "rrno" not in str(error.value)


def test_what_is_no_scheduler_is_refused_and_without_dask_the_extra_is_named(monkeypatch):
    for name in ("local", "local:0", "local:x", "local:1025", "tcp:host", "slurm:", "ray://a", ""):
        with pytest.raises(HgvizError, match="is not a scheduler.*local:N, tcp://host:8786"):
            cluster.require_scheduler(name)
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
    [(None, r"cannot read .*no such file"), (b"\xff\xfe", "is not a cluster"), (b"", "is not a"),
     (b"[1, 2]", "is not a cluster"), (b"a: [", "is not a"), (b"jobs: 1", "cannot start")],
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
