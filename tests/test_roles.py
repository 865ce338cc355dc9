"""hgviz heads: what every head is for, of captures and models, on one text and on many."""

import csv

import pytest

from hgviz import tasks
from hgviz.models import open_model
from hgviz.store import open_capture, write_study
from hgviz.tasks.heads import CaptureCache
from tests.models.building import write_checkpoint
from tests.studying import make_study

KEYS = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}
TEXTS = ["Some words, and some more.", "It was late; the ship had gone.", "Words, words, words."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small Hourglass, a file of texts, the capture of these, an empty file and a study."""
    found = tmp_path_factory.mktemp("heads")
    write_checkpoint(found / "model", **KEYS)
    (found / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    (found / "empty.txt").touch()
    write_study(found / "study.h5", make_study())
    model = open_model(found / "model")
    tasks.capture_corpus(model, found / "texts.txt", found / "texts.h5")
    return found


def test_a_capture_of_many_texts_and_the_model_on_the_same_file_say_the_same(folder, facts):
    captured = facts("heads", folder / "texts.h5")
    modelled = facts("heads", folder / "model", "--corpus", folder / "texts.txt")
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


def test_one_text_of_many_is_what_it_is_alone(folder, facts):
    alone = facts("heads", folder / "texts.h5", "--item", 1)
    words = ("heads", folder / "model", "--text", TEXTS[1])
    other, off = facts(*words)["heads"], facts(*words, "--off", "0.*")["heads"]
    assert alone["texts"] == 1 and alone["tokens"] == len(TEXTS[1])
    for one, same in zip(alone["heads"], other, strict=True):
        assert one["focus"] == pytest.approx(same["focus"], abs=1e-6)
        assert one["variance"] is None  # nothing to compare it with
    assert other[0]["focus"] == off[0]["focus"] and other[-1]["focus"] != off[-1]["focus"]


def test_the_table_is_written_and_the_rest_is_said(folder, run, tmp_path):
    out = tmp_path / "heads.csv"
    code, said, _ = run("heads", folder / "texts.h5", "-o", out)
    assert code == 0 and "on 3 texts" in said and "No word is rare" in said
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    spec = open_capture(folder / "texts.h5").spec
    assert [one["head"] for one in rows] == list(map(str, spec.heads))
    assert all("query" in one["examples"] for one in rows if one["role"] != "one key")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("model", 2, "exactly one of --text"),
        ("model --text a --corpus b.txt", 2, "exactly one of --text"),
        ("model --text a --item 0", 2, "--item is for"),
        ("model --corpus texts.txt --target b", 2, "go with --text"),
        ("model --corpus texts.txt -o x.txt", 2, "does not end in"),
        ("texts.h5 --text a", 2, "has its own texts"),
        ("nothing", 1, ""),
        ("empty.txt", 1, ""),
        ("model --corpus empty.txt", 1, ""),
        ("model --corpus none.txt", 1, ""),
        ("texts.h5 --item 7", 1, ""),
        ("study.h5", 1, "is a study"),
    ],
)
def test_what_cannot_be_measured_is_one_line(folder, refusal, monkeypatch, words, code, message):
    monkeypatch.chdir(folder)
    assert message in refusal("heads", *words.split(), code=code)


def test_captures_that_do_not_fit_are_made_again(folder, monkeypatch):
    made, first = [], open_capture(folder / "texts.h5")
    monkeypatch.setattr("hgviz.tasks.heads.CACHE_NUMBERS", 2 * 5 * 8 * 40)
    cached = CaptureCache(lambda number: made.append(number) or first)
    for number in (0, 1, 2, 0, 1, 2):
        assert cached(number) is first
    assert made[:3] == [0, 1, 2] and 0 not in made[3:] and made[3:]
