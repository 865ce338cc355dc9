"""hgviz heads: what every head is for, of captures and models, on one text and on many."""

import csv
import json

import pytest

from hgviz import cli, tasks
from hgviz.core import HeadId, finish
from hgviz.models import open_model
from hgviz.store import open_capture
from hgviz.tasks.observing import _Kept
from tests.models.building import write_checkpoint

KEYS = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}
TEXTS = ["Some words, and some more.", "It was late; the ship had gone.", "Words, words, words."]


@pytest.fixture
def run(capfd):
    """Run a command line; gives exit code, standard output and standard error."""

    def call(*arguments):
        code = cli.main([str(one) for one in arguments], cli.Window(None, None))
        return code, *capfd.readouterr()

    return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small Hourglass, a file of texts, and the capture of these."""
    found = tmp_path_factory.mktemp("heads")
    write_checkpoint(found / "model", **KEYS)
    (found / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    model = open_model(found / "model")
    finish(tasks.capture_corpus(model, found / "texts.txt", found / "texts.h5"))
    return found


def test_a_capture_of_many_texts_and_the_model_on_the_same_file_say_the_same(folder, run):
    code, out, _ = run("heads", folder / "texts.h5", "--json")
    assert code == 0
    captured = json.loads(out)
    code, out, _ = run("heads", folder / "model", "--corpus", folder / "texts.txt", "--json")
    assert code == 0
    modelled = json.loads(out)
    assert captured["texts"] == modelled["texts"] == 3
    assert captured["tokens"] == modelled["tokens"] == sum(map(len, TEXTS))
    for one, other in zip(captured["heads"], modelled["heads"], strict=True):
        assert (one["head"], one["role"]) == (other["head"], other["role"])
        for name in captured["metrics"]:
            if one[name] is None or other[name] is None:
                assert one[name] == other[name]
            else:
                assert one[name] == pytest.approx(other[name], abs=1e-5)
        assert {example["text"] for example in one["examples"]} <= {0, 1, 2}


def test_one_text_of_many_is_what_it_is_alone(folder, run):
    code, out, _ = run("heads", folder / "texts.h5", "--item", 1, "--json")
    assert code == 0
    alone = json.loads(out)
    code, out, _ = run("heads", folder / "model", "--text", TEXTS[1], "--json")
    assert code == 0
    assert alone["texts"] == 1 and alone["tokens"] == len(TEXTS[1])
    for one, other in zip(alone["heads"], json.loads(out)["heads"], strict=True):
        assert one["focus"] == pytest.approx(other["focus"], abs=1e-6)
        assert one["variance"] is None  # nothing to compare it with


def test_the_table_is_written_and_the_rest_is_said(folder, run, tmp_path):
    out = tmp_path / "heads.csv"
    code, said, _ = run("heads", folder / "texts.h5", "-o", out)
    assert code == 0 and "on 3 texts" in said and "No word is rare" in said
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    spec = open_capture(folder / "texts.h5").spec
    assert [one["head"] for one in rows] == list(map(str, spec.heads))
    assert all("query" in one["examples"] for one in rows if one["role"] != "one key")


def test_heads_that_are_switched_off_change_those_after_them_alone(folder, run):
    words = ("heads", folder / "model", "--text", TEXTS[0], "--json")
    whole = json.loads(run(*words)[1])["heads"]
    off = json.loads(run(*words, "--off", "0.*")[1])["heads"]
    assert whole[0]["focus"] == off[0]["focus"] and whole[-1]["focus"] != off[-1]["focus"]


@pytest.mark.parametrize(
    "more,message",
    [
        ((), "exactly one of --corpus"),
        (("--text", "a", "--corpus", "b.txt"), "exactly one of --corpus"),
        (("--text", "a", "--item", "0"), "--item is for"),
        (("--corpus", "{folder}/texts.txt", "--target", "b"), "go with --text"),
        (("--corpus", "{folder}/texts.txt", "-o", "{folder}/x.txt"), "does not end in"),
    ],
)
def test_wrong_use_is_one_line(folder, run, more, message):
    code, _, said = run("heads", folder / "model", *(one.format(folder=folder) for one in more))
    assert code == 2 and message in said and len(said.splitlines()) == 1


def test_bad_files_are_one_line(folder, run, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for words in (
        ("heads", tmp_path / "nothing"), ("heads", empty),
        ("heads", folder / "model", "--corpus", empty),
        ("heads", folder / "model", "--corpus", tmp_path / "none.txt"),
        ("heads", folder / "texts.h5", "--item", 7),
    ):  # fmt: skip
        code, _, said = run(*words)
        assert code == 1 and len(said.splitlines()) == 1 and "Traceback" not in said, words
    code, _, said = run("heads", folder / "texts.h5", "--text", "a")
    assert code == 2 and "has its own texts" in said


def test_a_study_says_what_is_wanted_instead(run, tmp_path):
    from hgviz.store import write_study
    from tests.studying import make_study

    path = tmp_path / "study.h5"
    write_study(path, make_study())
    code, _, said = run("heads", path)
    assert code == 1 and "is a study" in said and len(said.splitlines()) == 1


def test_captures_that_do_not_fit_are_made_again(folder, monkeypatch):
    asked = []
    first = open_capture(folder / "texts.h5")
    monkeypatch.setattr("hgviz.tasks.observing._HELD", 2 * 5 * 8 * 40)
    kept = _Kept(lambda number: asked.append(number) or first)
    for number in (0, 1, 2, 0, 1, 2):
        assert kept(number) is first
    assert asked[:3] == [0, 1, 2] and 0 not in asked[3:] and asked[3:]


def test_a_capture_in_memory_is_measured_too(folder):
    model = open_model(folder / "model")
    prompt, _ = tasks.prompt_from(model, TEXTS[0])
    found = finish(tasks.habits(finish(tasks.capture(model, prompt))))
    assert found.texts == 1 and HeadId(0, 0) in found.facts
