"""hgviz importance and hgviz curve: what they print, keep and refuse, in one line each."""

import csv
from pathlib import Path

import h5py
import numpy as np
import pytest

from hgviz import tasks
from hgviz.analysis.importance import METHODS
from hgviz.files import resource
from hgviz.models import open_model, pruning
from hgviz.models.trials import Trials
from hgviz.store import is_study, open_study, write_capture
from hgviz.tasks import studying
from tests.test_evaluate import TEXT, classifier, rows, speaker

MEASURED = sorted(name for name, method in METHODS.items() if not method.learned)
KEYS = {"head", "score", "low", "high", "rank"}


@pytest.fixture
def model(tmp_path):
    return classifier(tmp_path / "model", n_heads=4, n_layers=2, d_model=16)


@pytest.fixture
def data(tmp_path):
    return rows(tmp_path, 60)


@pytest.mark.parametrize("method", MEASURED)
def test_every_score_is_printed_as_the_contract_says(facts, output, tmp_path, model, data, method):
    out = tmp_path / "s.h5"
    arguments = [model, "--data", data, "--method", method, "-o", out, "--permutations", "2"]
    found = facts("importance", *arguments)
    assert all(set(one) == KEYS for one in found)
    assert [one["rank"] for one in found] == list(range(1, 9))
    assert {one["head"] for one in found} == {f"{i}.{j}" for i in (0, 1) for j in range(4)}
    assert all(one["low"] <= one["score"] <= one["high"] for one in found)
    table = output("importance", *arguments)
    assert METHODS[method].label.lower() in table and "60 examples of rows.tsv" in table


def test_where_no_method_is_named_the_sizes_of_slopes_are_measured(facts, tmp_path, model, data):
    out = tmp_path / "s.h5"
    first = facts("importance", model, "--data", data, "-o", out)
    assert first == facts("importance", model, "--data", data, "-o", out, "--method", "michel")
    assert first != facts("importance", model, "--data", data, "-o", out, "--method", "signed")
    assert facts("curve", out, model, "--data", data)["method"] == "michel"


def test_methods_accumulate_and_nothing_is_measured_twice(output, tmp_path, model, data):
    out = tmp_path / "s.h5"
    for method in ("signed", "loo", "signed"):
        output("importance", model, "--data", data, "--method", method, "-o", out)
    assert set(open_study(out).measured()) == {
        "loss", "gradient", "token_gradient", "loss_change", "change",
    }  # fmt: skip
    table = output("importance", model, "--data", data, "--method", "loo", "-o", out)
    assert "points" in table and "McNemar" in table and "\u2026" not in table


def test_only_some_examples_are_measured(refusal, facts, output, tmp_path, model, data):
    out = tmp_path / "s.h5"
    assert "20 examples" in output("importance", model, "--data", data, "-o", out, "--limit", 20)
    assert len(open_study(out)) == 20
    assert "other examples" in refusal("importance", model, "--data", data, "-o", out)
    assert facts("curve", out, model, "--data", data)["examples"] == 10


def test_the_sample_classifier_is_measured(facts, tmp_path):
    model, data = resource("sample/softmax"), resource("sample/reviews.tsv")
    out = tmp_path / "s.h5"
    words = (model, "--data", data, "-o", out, "--limit", 100, "--method", "loo")
    found = facts("importance", *words)
    assert {one["head"] for one in found[:2]} == {"2.4", "0.0"} and len(found) == 24


@pytest.mark.parametrize("goal", ["next", "masked"])
def test_models_of_language_are_measured(facts, tmp_path, goal):
    text, out = tmp_path / "text.txt", tmp_path / "s.h5"
    text.write_text(TEXT * 3, "utf-8")
    model = speaker(tmp_path / "model", goal)
    found = facts("importance", model, "--data", text, "-o", out, "--method", "loo")
    assert found and open_study(out).asked == goal


# --- info -----------------------------------------------------------------------------------------


def test_info_says_what_a_study_holds(refusal, facts, output, tmp_path, model, data):
    out = tmp_path / "s.h5"
    output("importance", model, "--data", data, "-o", out)
    told = facts("info", out)
    assert told["kind"] == "study" and told["complete"] is True
    assert (told["data"], told["items"], told["asked"]) == ("rows.tsv", 60, "classes")
    assert told["provenance"]["model"] == open_model(model).spec.digest
    assert told["provenance"]["data"] and told["methods"][0] == "signed"
    assert {one["what"]: one["share"] for one in told["measured"]}["gradient"] == 1
    assert [len(told[key]) for key in ("levels", "layers", "curves", "masks")] == [1, 2, 0, 0]
    shared = {"family", "levels", "layers", "items", "complete", "provenance"}
    assert shared <= set(tasks.info(model)) & set(told)
    words = output("info", out)
    assert "kind: study" in words and "data: rows.tsv" in words
    error = refusal("map", out, "--layer", 0, "--head", 0, "-o", tmp_path / "a.npy")
    assert "is no capture" in error and tasks.kind_of(out) == "study"
    with h5py.File(out, "r+") as file:
        file.attrs["format_version"] = np.array([0, 3])
    for words in (("info", out), ("curve", out, model, "--data", data)):
        error = refusal(*words)
        assert "format version 0.3" in error and "older hgviz" in error


# --- curves ---------------------------------------------------------------------------------------


def test_a_curve_is_printed_and_kept(facts, output, tmp_path, model, data):
    out = tmp_path / "s.h5"
    output("importance", model, "--data", data, "-o", out, "--method", "loo")
    arguments = ["curve", out, model, "--data", data, "--method", "loo"]
    told = facts(*arguments)
    assert told["randoms"] == 20 and [one["off"] for one in told["points"]] == list(range(9))
    assert told["k_low"] <= told["k"] <= 8 and 0 < told["p"] <= 1
    assert len(told["order"]) == 8 and told["examples"] == 30
    assert all(one["random_low"] <= one["random_high"] for one in told["points"])
    assert len(open_study(out).curves) == 21
    words = output(*arguments)
    assert "k*: " in words and "random middle" in words
    assert facts(*arguments, "--least", 1)["randoms"] == 20
    for least, heads in (("0", 8), ("1", 6)):  # the one that is asked for, not the newest
        assert len(facts(*arguments, "--least", least)["order"]) == heads
    assert facts("info", out)["curves"][0]["heads"] == 8


def test_a_curve_is_timed_where_it_is_asked_for(
    refusal, facts, output, tmp_path, model, data, monkeypatch
):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    out, figure = tmp_path / "s.h5", tmp_path / "f.csv"
    output("importance", model, "--data", data, "-o", out, "--method", "loo")
    arguments = ["curve", out, model, "--data", data, "--method", "loo"]
    points = facts(*arguments)["points"]
    assert {(one["ms"], one["whole_ms"]) for one in points} == {(None, None)}
    draw = ["figure", out, "--kind", "curve", "--axis", "time", "-o", figure]
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


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("importance model --data empty.tsv -o new.h5", 1, "empty"),
        ("importance model --data header.tsv -o new.h5", 1, "no rows"),
        ("importance model --data unknown.tsv -o new.h5", 1, "maybe"),
        ("importance model --data short.tsv -o new.h5", 1, ""),
        ("importance model --data rows.tsv -o new.h5 --off 9.0", 1, "no head 9.0"),
        ("importance model --data rows.tsv -o new.h5 --off first", 1, "does not name a head"),
        ("importance model --data rows.tsv -o new.h5 --off 0.*,1.*", 1, "All heads are off: "),
        ("importance model --data rows.tsv -o new.h5 --method gates", 2, "name them by --gates"),
        ("importance model --data rows.tsv -o c.h5", 1, "not a study"),
        ("importance model --data rows.tsv -o model", 1, "is a folder"),
        ("importance model --data rows.tsv -o none/s.h5", 1, "cannot be written"),
        ("importance model --data rows.tsv -o s.h5 --method gates", 1, "--gates DIR"),
        ("curve c.h5 model --data rows.tsv", 1, "not a study"),
        ("curve none.h5 model --data rows.tsv", 1, "no file"),
        (
            "curve s.h5 model --data rows.tsv --method shapley",
            1,
            "Measure the heads by this method",
        ),
        ("curve s.h5 model --data rows.tsv --method best", 1, "Unknown score 'best'"),
        ("curve s.h5 model --data rows.tsv --random 3", 2, "20"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    refusal, output, tmp_path, model, data, capture, monkeypatch, words, code, message
):
    monkeypatch.chdir(tmp_path)
    for name, content in (
        ("empty", ""), ("header", "sentence\tlabel\n"),
        ("unknown", "sentence\tlabel\nthe cat\tmaybe\n"), ("short", "sentence\tlabel\nthe cat\n"),
    ):  # fmt: skip
        Path(f"{name}.tsv").write_text(content)
    write_capture("c.h5", capture)
    before = Path("c.h5").read_bytes()
    if " s.h5 " in words:
        output("importance", model, "--data", data, "-o", "s.h5")
    assert message in refusal(*words.split(), code=code)
    assert Path("c.h5").read_bytes() == before and not Path("new.h5").exists()


def test_a_study_of_something_else_is_refused_in_one_line(refusal, output, tmp_path, model, data):
    out = tmp_path / "s.h5"
    output("importance", model, "--data", data, "-o", out)
    before = out.read_bytes()
    other = classifier(tmp_path / "other", seed=7)
    said = refusal("importance", other, "--data", data, "-o", out)
    assert "a study of another model" in said and "it is of model on rows.tsv" in said
    said = refusal("curve", out, other, "--data", data)
    assert "a study of another model" in said and "hgviz importance" in said
    (tmp_path / "more").mkdir()
    fewer = rows(tmp_path / "more", 50)
    assert "other examples" in refusal("curve", out, model, "--data", fewer)
    said = refusal("importance", model, "--data", data, "-o", out, "--off", "0.0")
    assert "other heads switched off" in said
    assert out.read_bytes() == before
    output("importance", other, "--data", data, "-o", out, "--force")
    assert open_study(out).spec.name == "other"


def test_an_interrupted_study_is_kept_and_gone_on_with(
    run, output, tmp_path, model, data, monkeypatch
):
    monkeypatch.setattr(studying, "OFTEN", 0)
    out, old = tmp_path / "s.h5", Trials.gate_gradients

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "gate_gradients", interrupted)
    code, printed, said = run("importance", model, "--data", data, "-o", out)
    assert code == 130 and not printed and said.count("\n") == 1
    assert "kept in" in said and is_study(out) and open_study(out).answered.all()
    monkeypatch.setattr(Trials, "gate_gradients", old)
    output("importance", model, "--data", data, "-o", out)
    assert open_study(out).measured()["gradient"] == 1


def test_python_does_the_same(tmp_path, model, data):
    trials = tasks.trials_of(open_model(model), data)
    study = tasks.study(trials, {"gradient"}, tmp_path / "s.h5", data.name)
    assert study.data == "rows.tsv" and is_study(tmp_path / "s.h5")
