"""hgviz importance and hgviz curve: what they print, keep and refuse, in one line each."""

import csv
import json
from typing import get_args

import h5py
import numpy as np
import pytest

from hgviz import tasks
from hgviz.analysis.importance import LEARNED, METHODS
from hgviz.cli import pruning
from hgviz.core import finish
from hgviz.models import open_model
from hgviz.models.surgery import proof
from hgviz.resources import resource
from hgviz.store import is_study, open_study
from tests.models.building import write_checkpoint, write_transformer
from tests.test_evaluate import TEXT, classifier, rows
from tests.test_evaluate import run as run

MEASURED = [name for name in get_args(pruning.Method) if name not in LEARNED]
KEYS = {"head", "score", "low", "high", "rank"}


@pytest.fixture
def model(tmp_path):
    return classifier(tmp_path / "model", n_heads=4, n_layers=2, d_model=16)


@pytest.fixture
def data(tmp_path):
    return rows(tmp_path, 60)


def measured(run, *arguments):
    code, out, err = run("importance", *arguments)
    assert code == 0, err
    return out


def refused(run, *arguments):
    """Exit code 1, one line of words, nothing on standard output."""
    code, out, err = run(*arguments)
    assert code == 1 and not out and err.count("\n") == 1 and "Traceback" not in err
    return err


def test_the_command_line_knows_every_score_that_needs_no_training():
    assert {*MEASURED} == set(METHODS) - set(LEARNED)


@pytest.mark.parametrize("method", MEASURED)
def test_every_score_is_printed_as_the_contract_says(run, tmp_path, model, data, method):
    out = tmp_path / "s.h5"
    arguments = [model, "--data", data, "--method", method, "-o", out, "--permutations", "2"]
    found = json.loads(measured(run, *arguments, "--json"))
    assert all(set(one) == KEYS for one in found)
    assert [one["rank"] for one in found] == list(range(1, 9))
    assert {one["head"] for one in found} == {f"{i}.{j}" for i in (0, 1) for j in range(4)}
    assert all(one["low"] <= one["score"] <= one["high"] for one in found)
    table = measured(run, *arguments)
    assert METHODS[method].label.lower() in table and "60 examples of rows.tsv" in table


def test_where_no_method_is_named_the_sizes_of_slopes_are_measured(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    first = measured(run, model, "--data", data, "-o", out, "--json")
    assert first == measured(run, model, "--data", data, "-o", out, "--method", "michel", "--json")
    assert first != measured(run, model, "--data", data, "-o", out, "--method", "signed", "--json")
    code, printed, _ = run("curve", out, model, "--data", data, "--json")
    assert code == 0 and json.loads(printed)["method"] == "michel"


def test_methods_accumulate_and_nothing_is_measured_twice(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    for method in ("signed", "loo", "signed"):
        measured(run, model, "--data", data, "--method", method, "-o", out)
    assert set(open_study(out).measured()) == {
        "loss", "gradient", "token_gradient", "loss_change", "change",
    }  # fmt: skip
    table = measured(run, model, "--data", data, "--method", "loo", "-o", out)
    assert "points" in table and "McNemar" in table and "\u2026" not in table


def test_only_some_examples_are_measured(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    assert "20 examples" in measured(run, model, "--data", data, "-o", out, "--limit", 20)
    assert len(open_study(out)) == 20
    assert "other examples" in refused(run, "importance", model, "--data", data, "-o", out)
    code, facts, err = run("curve", out, model, "--data", data, "--json")
    assert code == 0 and json.loads(facts)["examples"] == 10, err


def test_the_sample_classifier_is_measured(run, tmp_path):
    model, data = resource("sample/softmax"), resource("sample/reviews.tsv")
    out = tmp_path / "s.h5"
    found = json.loads(
        measured(run, model, "--data", data, "-o", out, "--limit", 100, "--method", "loo", "--json")
    )
    assert {one["head"] for one in found[:2]} == {"2.4", "0.0"} and len(found) == 24


@pytest.mark.parametrize("goal", ["next", "masked"])
def test_models_of_language_are_measured(run, tmp_path, goal):
    text, out = tmp_path / "text.txt", tmp_path / "s.h5"
    text.write_text(TEXT * 3, "utf-8")
    if goal == "next":
        model = write_checkpoint(tmp_path / "lm", vocab_size=256)
    else:
        model = masked_model(tmp_path / "mlm")
    found = json.loads(measured(run, model, "--data", text, "-o", out, "--method", "loo", "--json"))
    assert found and open_study(out).asked == goal


def masked_model(folder):
    import torch

    from hgviz.models.training import Vocabulary
    from hgviz.models.training.vocabulary import train_coder

    coder = train_coder(Vocabulary("words", least=1), [TEXT], 1)
    write_transformer(
        folder, vocab_size=coder.size, family="bert", goal="masked", n_layers=1, max_positions=24,
        dtype=torch.float32,
    )  # fmt: skip
    coder.save(folder)
    return folder


# --- info -----------------------------------------------------------------------------------------


def test_info_says_what_a_study_holds(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    measured(run, model, "--data", data, "-o", out)
    code, printed, _ = run("info", out, "--json")
    facts = json.loads(printed)
    assert code == 0 and facts["kind"] == "study" and facts["complete"] is True
    assert (facts["data"], facts["items"], facts["asked"]) == ("rows.tsv", 60, "classes")
    assert facts["provenance"]["model"] == open_model(model).spec.digest
    assert facts["provenance"]["data"] and facts["methods"][0] == "signed"
    assert {one["what"]: one["share"] for one in facts["measured"]}["gradient"] == 1
    assert [len(facts[key]) for key in ("levels", "layers", "curves", "masks")] == [1, 2, 0, 0]
    shared = {"family", "levels", "layers", "items", "complete", "provenance"}
    assert shared <= set(tasks.info(model)) & set(facts)
    code, words, _ = run("info", out)
    assert code == 0 and "kind: study" in words and "data: rows.tsv" in words


def test_what_wants_a_capture_says_that_this_is_none(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    measured(run, model, "--data", data, "-o", out)
    said = refused(run, "map", out, "--layer", 0, "--head", 0, "-o", tmp_path / "a.npy")
    assert "is no capture" in said
    assert tasks.kind_of(out) == "study"


# --- curves ---------------------------------------------------------------------------------------


def test_a_curve_is_printed_and_kept(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    measured(run, model, "--data", data, "-o", out, "--method", "loo")
    arguments = ["curve", out, model, "--data", data, "--method", "loo"]
    code, printed, err = run(*arguments, "--json")
    facts = json.loads(printed)
    assert code == 0 and facts["randoms"] == 20, err
    assert [one["off"] for one in facts["points"]] == list(range(9))
    assert facts["k_low"] <= facts["k"] <= 8 and 0 < facts["p"] <= 1
    assert len(facts["order"]) == 8 and facts["examples"] == 30
    assert all(one["random_low"] <= one["random_high"] for one in facts["points"])
    assert len(open_study(out).curves) == 21
    code, words, _ = run(*arguments)
    assert code == 0 and "k*: " in words and "random middle" in words
    _, printed, _ = run(*arguments, "--least", 1, "--json")
    facts = json.loads(printed)
    assert len(facts["order"]) == 6 and facts["randoms"] == 20
    for least, heads in (("0", 8), ("1", 6)):  # the one that is asked for, not the newest
        _, printed, _ = run(*arguments, "--least", least, "--json")
        assert len(json.loads(printed)["order"]) == heads
    assert json.loads(run("info", out, "--json")[1])["curves"][0]["heads"] == 8


def test_a_curve_is_timed_where_it_is_asked_for(run, tmp_path, model, data, monkeypatch):
    monkeypatch.setattr(proof, "ROUNDS", (1, 1))
    out, figure = tmp_path / "s.h5", tmp_path / "f.csv"
    measured(run, model, "--data", data, "-o", out, "--method", "loo")
    arguments = ["curve", out, model, "--data", data, "--method", "loo"]
    points = json.loads(run(*arguments, "--json")[1])["points"]
    assert {(one["ms"], one["whole_ms"]) for one in points} == {(None, None)}
    draw = ["figure", out, "--kind", "curve", "--axis", "time", "-o", figure]
    code, _, err = run(*draw)
    assert code == 1 and "has no times" in err and "--time" in err
    code, words, err = run(*arguments, "--time")
    assert code == 0 and "whole ms" in words and "on one core" in words, err
    points = json.loads(run(*arguments, "--json")[1])["points"]
    assert all(one["ms"] > 0 and one["whole_ms"] > 0 for one in points)
    code, _, err = run(*draw)
    assert code == 0, err
    with figure.open() as file:
        drawn = [float(row["Milliseconds of one pass"]) for row in csv.DictReader(file)]
    assert drawn == pytest.approx([one["ms"] for one in points])  # and no random order


# --- what is refused ------------------------------------------------------------------------------


def test_a_study_of_something_else_is_refused_in_one_line(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    measured(run, model, "--data", data, "-o", out)
    before = out.read_bytes()
    other = classifier(tmp_path / "other", seed=7)
    said = refused(run, "importance", other, "--data", data, "-o", out)
    assert "a study of another model" in said and "It is of model on rows.tsv" in said
    said = refused(run, "curve", out, other, "--data", data)
    assert "a study of another model" in said and "hgviz importance" in said
    (tmp_path / "more").mkdir()
    fewer = rows(tmp_path / "more", 50)
    assert "other examples" in refused(run, "curve", out, model, "--data", fewer)
    said = refused(run, "importance", model, "--data", data, "-o", out, "--off", "0.0")
    assert "other heads switched off" in said
    assert out.read_bytes() == before
    measured(run, other, "--data", data, "-o", out, "--force")
    assert open_study(out).spec.name == "other"


def test_a_file_that_is_no_study_is_not_touched(run, tmp_path, model, data, capture):
    from hgviz.store import write_capture

    out = write_capture(tmp_path / "c.h5", capture)
    before = out.read_bytes()
    assert "not a study" in refused(run, "importance", model, "--data", data, "-o", out)
    assert "not a study" in refused(run, "curve", out, model, "--data", data)
    assert out.read_bytes() == before
    assert "No file" in refused(run, "curve", tmp_path / "none.h5", model, "--data", data)
    assert "is a folder" in refused(run, "importance", model, "--data", data, "-o", tmp_path)
    nowhere = tmp_path / "none" / "s.h5"
    said = refused(run, "importance", model, "--data", data, "-o", nowhere)
    assert "cannot be written" in said


def test_what_trainings_learned_is_asked_for_before_anything_is_measured(
    run, tmp_path, model, data
):
    out = tmp_path / "s.h5"
    code, _, err = run("importance", model, "--data", data, "-o", out, "--method", "gates")
    assert code == 2 and "name them by --gates" in err and not out.exists()


def test_a_study_of_an_older_version_is_told(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    measured(run, model, "--data", data, "-o", out)
    with h5py.File(out, "r+") as file:
        file.attrs["format_version"] = np.array([0, 3])
    for verb in (["info", out], ["curve", out, model, "--data", data]):
        said = refused(run, *verb)
        assert "format version 0.3" in said and "older hgviz" in said


@pytest.mark.parametrize(
    "content,word",
    [
        ("", "empty"),
        ("sentence\tlabel\n", "no rows"),
        ("sentence\tlabel\nthe cat\tmaybe\n", "maybe"),
        ("sentence\tlabel\nthe cat\n", ""),
    ],
)
def test_data_that_cannot_be_used_is_told(run, tmp_path, model, content, word):
    path = tmp_path / "wrong.tsv"
    path.write_text(content)
    said = refused(run, "importance", model, "--data", path, "-o", tmp_path / "s.h5")
    assert word in said and not (tmp_path / "s.h5").exists()


def test_heads_that_are_not_there_and_no_heads_at_all_are_told(run, tmp_path, model, data):
    arguments = ["importance", model, "--data", data, "-o", tmp_path / "s.h5", "--off"]
    assert "no head 9.0" in refused(run, *arguments, "9.0")
    assert "does not name a head" in refused(run, *arguments, "first")
    assert "All heads are off." in refused(run, *arguments, "0.*,1.*")
    assert not (tmp_path / "s.h5").exists()


def test_a_score_that_was_not_measured_makes_no_curve(run, tmp_path, model, data):
    out = tmp_path / "s.h5"
    measured(run, model, "--data", data, "-o", out)
    said = refused(run, "curve", out, model, "--data", data, "--method", "shapley")
    assert "Measure the heads by this method first" in said
    said = refused(run, "importance", model, "--data", data, "-o", out, "--method", "gates")
    assert "--gates DIR" in said and "by this method" not in said
    said = refused(run, "curve", out, model, "--data", data, "--method", "best")
    assert "no score named best" in said
    code, _, err = run("curve", out, model, "--data", data, "--random", 3)
    assert code == 2 and "20" in err


def test_an_interrupted_study_is_kept_and_gone_on_with(run, tmp_path, model, data, monkeypatch):
    from hgviz.models.measures.trials import Trials
    from hgviz.tasks import studying

    monkeypatch.setattr(studying, "OFTEN", 0)
    out, old = tmp_path / "s.h5", Trials.slopes

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "slopes", interrupted)
    code, printed, said = run("importance", model, "--data", data, "-o", out)
    assert code == 130 and not printed and said.count("\n") == 1
    assert "kept in" in said and is_study(out) and open_study(out).answered.all()
    monkeypatch.setattr(Trials, "slopes", old)
    measured(run, model, "--data", data, "-o", out)
    assert open_study(out).measured()["gradient"] == 1


def test_python_does_the_same(tmp_path, model, data):
    trials = finish(tasks.trials_of(open_model(model), data))
    study = finish(tasks.study(trials, {"gradient"}, tmp_path / "s.h5", data.name))
    assert study.data == "rows.tsv" and is_study(tmp_path / "s.h5")
