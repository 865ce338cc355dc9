"""hgviz importance and hgviz curve: what they print, keep and refuse, in one line each."""

import csv
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from hgviz import cli, tasks
from hgviz.analysis.importance import METHODS
from hgviz.models import open_model, pruning
from hgviz.models.trials import Trials
from hgviz.store import is_study, open_study, write_capture
from hgviz.tasks import measurements
from tests.test_evaluate import classifier, rows

MEASURED = sorted(name for name, method in METHODS.items() if not method.learned)
KEYS = {"head", "score", "low", "high", "rank"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a classifier, its data, and a study of it by two methods."""
    home = tmp_path_factory.mktemp("importance")
    model = classifier(home / "model", n_heads=4, n_layers=2, d_model=16)
    for method in ("michel", "loo"):
        words = ("importance", model, "--data", rows(home, 60), "--method", method)
        assert cli.main([*map(str, words), "-o", str(home / "s.h5")], cli.Window(None, None)) == 0
    return home


@pytest.fixture
def model(home):
    return home / "model"


@pytest.fixture
def data(home):
    return home / "rows.tsv"


@pytest.fixture
def study(home, tmp_path):
    """A study that a test may change."""
    return Path(shutil.copy(home / "s.h5", tmp_path))


# --- importance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", MEASURED)
def test_every_score_is_printed_as_the_contract_says(facts, output, tmp_path, model, data, method):
    out = tmp_path / "s.h5"
    arguments = [model, "--data", data, "--method", method, "-o", out, "--permutations", "2"]
    found = facts("importance", *arguments)
    assert all(set(one) == KEYS for one in found)
    assert [one["rank"] for one in found] == list(range(1, 9))
    assert {one["head"] for one in found} == {f"{i}.{j}" for i in (0, 1) for j in range(4)}
    assert all(one["low"] <= one["score"] <= one["high"] for one in found)
    words = output("importance", *arguments)
    assert METHODS[method].label.lower() in words and "60 examples of rows.tsv" in words


def test_methods_accumulate_and_the_sizes_of_slopes_are_the_first(
    facts, output, study, model, data
):
    assert set(open_study(study).measured()) == {
        "loss", "gradient", "token_gradient", "loss_change", "change",
    }  # fmt: skip
    command = ("importance", model, "--data", data, "-o", study)
    words = output(*command, "--method", "loo")
    assert "points" in words and "McNemar" in words and "\u2026" not in words
    first = facts(*command)
    assert first == facts(*command, "--method", "michel")
    assert first != facts(*command, "--method", "signed")
    assert facts("curve", study, model, "--data", data)["method"] == "michel"


def test_only_some_examples_are_measured(refusal, facts, output, tmp_path, model, data):
    out = tmp_path / "s.h5"
    assert "20 examples" in output("importance", model, "--data", data, "-o", out, "--limit", 20)
    assert len(open_study(out)) == 20
    assert "other examples" in refusal("importance", model, "--data", data, "-o", out)
    assert facts("curve", out, model, "--data", data)["examples"] == 10


def test_an_interrupted_study_is_kept_and_gone_on_with(
    run, output, tmp_path, model, data, monkeypatch
):
    monkeypatch.setattr(measurements, "OFTEN", 0)
    out, old, calls = tmp_path / "s.h5", Trials.gate_gradients, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > 1:  # the first is timed
            raise KeyboardInterrupt
        return old(*arguments)

    monkeypatch.setattr(Trials, "gate_gradients", interrupted)
    code, printed, said = run("importance", model, "--data", data, "-o", out, "--quiet")
    assert code == 130 and not printed and said.count("\n") == 1
    assert "kept in" in said and is_study(out) and open_study(out).answered.all()
    monkeypatch.setattr(Trials, "gate_gradients", old)
    _, _, said = run("importance", model, "--data", data, "-o", out)
    assert said.startswith("Measuring gradient") and " of 8 heads on 60 examples: about " in said
    assert open_study(out).measured()["gradient"] == 1


def test_info_says_what_a_study_holds(refusal, facts, output, study, model, data):
    told = facts("info", study)
    assert told["kind"] == tasks.kind_of(study) == "study" and told["complete"] is True
    assert (told["data"], told["items"], told["asked"]) == ("rows.tsv", 60, "classes")
    assert told["provenance"]["model"] == open_model(model).spec.digest
    assert told["provenance"]["data"] and told["methods"][0] == "signed"
    assert {one["what"]: one["share"] for one in told["measured"]}["gradient"] == 1
    assert [len(told[key]) for key in ("levels", "layers", "curves", "masks")] == [1, 2, 0, 0]
    shared = {"family", "levels", "layers", "items", "complete", "provenance"}
    assert shared <= set(tasks.info(model)) & set(told)
    words = output("info", study)
    assert "kind: study" in words and "data: rows.tsv" in words
    with h5py.File(study, "r+") as file:
        file.attrs["format_version"] = np.array([0, 3])
    for words in (("info", study), ("curve", study, model, "--data", data)):
        error = refusal(*words)
        assert "format version 0.3" in error and "older hgviz" in error


# --- curves ---------------------------------------------------------------------------------------


def test_a_curve_is_printed_and_kept(facts, output, study, model, data):
    arguments = ["curve", study, model, "--data", data, "--method", "loo"]
    told = facts(*arguments)
    assert told["randoms"] == 20 and [one["off"] for one in told["points"]] == list(range(9))
    assert told["k_low"] <= told["k"] <= 8 and 0 < told["p"] <= 1
    assert len(told["order"]) == 8 and told["examples"] == 30
    assert all(one["random_low"] <= one["random_high"] for one in told["points"])
    assert len(open_study(study).curves) == 21
    words = output(*arguments)
    assert "k*: " in words and "random middle" in words
    assert facts(*arguments, "--least", 1)["randoms"] == 20
    for least, heads in (("0", 8), ("1", 6)):  # the one that is asked for, not the newest
        assert len(facts(*arguments, "--least", least)["order"]) == heads
    assert facts("info", study)["curves"][0]["heads"] == 8


def test_a_curve_is_timed_where_it_is_asked_for(
    refusal, facts, output, tmp_path, study, model, data, monkeypatch
):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    figure, arguments = tmp_path / "f.csv", ["curve", study, model, "--data", data]
    points = facts(*arguments)["points"]
    assert {(one["ms"], one["whole_ms"]) for one in points} == {(None, None)}
    draw = ["figure", study, "--kind", "curve", "--axis", "time", "-o", figure]
    error = refusal(*draw)
    assert "has no times" in error and "--time" in error
    words = output(*arguments, "--time")
    assert "whole ms" in words and "on one core" in words
    points = facts(*arguments)["points"]
    assert all(one["ms"] > 0 and one["whole_ms"] > 0 for one in points)
    output(*draw)
    with figure.open() as file:
        drawn = [float(row["Milliseconds of one pass"]) for row in csv.DictReader(file)]
    assert drawn == pytest.approx([one["ms"] for one in points])  # and no random order


# --- what is refused ------------------------------------------------------------------------------


BAD_DATA = {
    "empty": "", "header": "sentence\tlabel\n", "unknown": "sentence\tlabel\nthe cat\tmaybe\n",
    "short": "sentence\tlabel\nthe cat\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("importance MODEL --data empty.tsv -o new.h5", 1, "empty"),
        ("importance MODEL --data header.tsv -o new.h5", 1, "no rows"),
        ("importance MODEL --data unknown.tsv -o new.h5", 1, "maybe"),
        ("importance MODEL --data short.tsv -o new.h5", 1, ""),
        ("importance MODEL --data DATA -o new.h5 --off 9.0", 1, "no head 9.0"),
        ("importance MODEL --data DATA -o new.h5 --off first", 1, "does not name a head"),
        ("importance MODEL --data DATA -o new.h5 --off 0.*,1.*", 1, "All heads are off: "),
        ("importance MODEL --data DATA -o new.h5 --method gates", 2, "name them by --gates"),
        ("importance MODEL --data DATA -o c.h5", 1, "not a study"),
        ("importance MODEL --data DATA -o MODEL", 1, "is a folder"),
        ("importance MODEL --data DATA -o none/s.h5", 1, "cannot be written"),
        ("importance MODEL --data DATA -o s.h5 --method gates", 1, "--gates DIR"),
        ("importance MODEL --data DATA -o s.h5 --off 0.0", 1, "other heads switched off"),
        ("importance other --data DATA -o s.h5", 1, "it is of model on rows.tsv"),
        ("curve s.h5 other --data DATA", 1, "a study of another model"),
        ("curve s.h5 MODEL --data fewer/rows.tsv", 1, "other examples"),
        ("curve c.h5 MODEL --data DATA", 1, "not a study"),
        ("curve none.h5 MODEL --data DATA", 1, "no file"),
        ("curve s.h5 MODEL --data DATA --method shapley", 1, "Measure the heads by this method"),
        ("curve s.h5 MODEL --data DATA --method best", 1, "Unknown score 'best'"),
        ("curve s.h5 MODEL --data DATA --random 3", 2, "20"),
        ("map s.h5 --layer 0 --head 0 -o a.npy", 1, "is no capture"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    refusal, tmp_path, study, model, data, capture, monkeypatch, words, code, message
):
    monkeypatch.chdir(tmp_path)
    for name, content in BAD_DATA.items():
        Path(f"{name}.tsv").write_text(content)
    write_capture("c.h5", capture)
    Path("fewer").mkdir()
    rows(Path("fewer"), 50)
    classifier(Path("other"), seed=7)
    before = Path("c.h5").read_bytes(), study.read_bytes()
    words = words.replace("MODEL", str(model)).replace("DATA", str(data))
    assert message in refusal(*words.split(), code=code)
    assert (Path("c.h5").read_bytes(), study.read_bytes()) == before
    assert not Path("new.h5").exists()


def test_a_study_of_something_else_is_replaced_where_that_is_asked_for(output, study, data):
    other = classifier(study.parent / "other", seed=7)
    output("importance", other, "--data", data, "-o", study, "--force")
    assert open_study(study).spec.name == "other"
