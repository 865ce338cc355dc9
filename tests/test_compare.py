"""hgviz compare: models and captures beside each other, what it writes, what it refuses."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.files import resource
from hgviz.models import open_model, pruning
from hgviz.models.prompts import prompts_like
from hgviz.store import write_study
from tests.gui.kinds import listener, translator
from tests.models.building import write_checkpoint, write_transformer
from tests.studying import make_study
from tests.test_evaluate import classifier, rows

TEXT = "the cat sat on the mat"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A pruned model is timed as shortly as can be."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """A small Hourglass on bytes, trained on nothing, and another seed of it."""
    folder = tmp_path_factory.mktemp("letters")
    keys = {"vocab_size": 256, "dtype": torch.float32}
    return write_checkpoint(folder / "a", **keys), write_checkpoint(folder / "b", seed=1, **keys)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A small classifier over words, and another seed of it."""
    folder = tmp_path_factory.mktemp("words")
    return classifier(folder / "a"), classifier(folder / "b", seed=1)


@pytest.fixture(scope="module")
def captured(letters, tmp_path_factory):
    """Captures of both models on one text, and of one on another."""
    folder = tmp_path_factory.mktemp("captured")
    for name, model, text in (
        ("a", letters[0], TEXT), ("b", letters[1], TEXT), ("other", letters[0], "the old cat sat")
    ):  # fmt: skip
        model = open_model(model)
        tasks.capture(model, model.tokenize(text), folder / f"{name}.h5")
    return folder


# --- maps -----------------------------------------------------------------------------------------


def test_two_models_on_one_text(facts, letters):
    found = facts("compare", *letters, "--text", TEXT)
    assert found["kind"] == "maps" and found["a"]["tokens"] == len(TEXT)
    assert found["a"]["model"] == "a" and found["b"]["model"] == "b"
    assert found["a"]["text"] == found["b"]["text"]
    sides = []
    for path in letters:
        model = open_model(path)
        sides.append(tasks.capture(model, model.tokenize(TEXT)))
    assert [one["head"] for one in found["heads"]] == [str(head) for head in sides[0].spec.heads]
    for one in found["heads"]:
        head = HeadId(*map(int, one["head"].split(".")))
        a, b = (
            side.maps[head.layer].read(head.head)[side.query_spans(head.layer)[:, 0] >= 0]
            for side in sides
        )
        assert one["largest"] == pytest.approx(np.abs(a - b).max(), abs=1e-6)
    logits = np.abs(sides[0].logits - sides[1].logits)
    assert found["logits"]["largest"] == pytest.approx(logits.max(), rel=1e-5)
    assert (found["only_a"], found["only_b"], found["notes"]) == ([], [], [])


def test_captures_give_what_their_models_give(facts, letters, captured):
    models = facts("compare", *letters, "--text", TEXT)
    files = facts("compare", captured / "a.h5", captured / "b.h5")
    mixed = facts("compare", captured / "a.h5", letters[1])
    for found in (files, mixed):
        assert found["logits"] == pytest.approx(models["logits"], rel=1e-5)
        for one, other in zip(found["heads"], models["heads"], strict=True):
            numbers = {name: x for name, x in one.items() if isinstance(x, float)}
            assert numbers == pytest.approx({name: other[name] for name in numbers}, abs=1e-6)


def test_a_model_is_no_different_from_itself(run, letters):
    code, out, err = run("compare", letters[0], letters[0], "--text", TEXT)
    assert (code, err) == (0, "")
    assert "each: largest 0; relative 0; mean 0; JS 0; below 0 0 0" in out
    assert f"Logits at {len(TEXT)} of {len(TEXT)} places: at most 0 apart" in out


def test_another_activation_heads_that_are_off_and_pruned_heads_change_b(
    run, facts, letters, tmp_path
):
    found = facts("compare", letters[0], letters[0], "--text", TEXT, "--activation", "ymish")
    first = found["heads"][0]
    assert (first["activation_a"], first["activation_b"]) == ("softmax", "ymish")
    assert first["negative_a"] == 0 < first["negative_b"]
    off = facts("compare", letters[0], letters[0], "--text", TEXT, "--off", "0.0")
    assert (off["a"]["off"], off["b"]["off"]) == ([], ["0.0"])
    assert off["heads"][0]["largest"] == 0 and off["logits"]["largest"] > 0
    gone = frozenset({HeadId(0, 0), HeadId(2, 0), HeadId(2, 1)})
    tasks.prune(letters[0], gone, tmp_path / "less")
    pair = letters[0], tmp_path / "less", "--text", TEXT
    assert "Only in A: 3 heads, 0.0, 2.*." in run("compare", *pair)[1]
    found = facts("compare", *pair)
    assert found["only_a"] == ["0.0", "2.0", "2.1"] and found["only_b"] == []
    # a narrower product adds in another order on some processors: equal but for rounding
    assert found["heads"][0]["head"] == "0.1" and found["heads"][0]["largest"] < 1e-6


def test_other_texts_and_other_tokenizers_meet_where_they_can(facts, letters, words, captured):
    found = facts("compare", captured / "a.h5", captured / "other.h5")
    assert (
        found["notes"][0]
        == "the texts differ: 11 pieces are in both, of 22 tokens in A and 15 in B"
    )
    found = facts("compare", letters[0], words[0], "--text", TEXT)
    assert (
        found["notes"][0] == "the tokens differ: 6 pieces are in both, of 22 tokens in A and 8 in B"
    )
    assert found["logits"] is None and "other kinds, next and classes" in found["notes"][-1]
    assert all(one["of"] <= 6 for one in found["heads"])


def test_what_is_written_is_what_is_printed(run, facts, letters, tmp_path):
    arguments = (*letters, "--text", TEXT, "-o")
    found = facts("compare", *arguments, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == found
    code, out, _ = run("compare", *arguments, tmp_path / "out.csv")
    assert code == 0 and out.endswith(f"out.csv: {len(found['heads'])} heads.\n")
    with (tmp_path / "out.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [one["head"] for one in table] == [one["head"] for one in found["heads"]]
    assert float(table[0]["js"]) == found["heads"][0]["js"]


def test_weights_that_are_no_numbers_stay_json(run, facts, letters, tmp_path):
    shutil.copytree(letters[0], tmp_path / "broken")
    tensors = load_file(tmp_path / "broken" / "model.safetensors")
    for name, factor in (("q", 1e37), ("k", 1e3)):  # scores beyond float32
        tensors[f"middle.0.attn.{name}.weight"] *= factor
    save_file(tensors, tmp_path / "broken" / "model.safetensors")
    options = (letters[0], tmp_path / "broken", "--text", TEXT)
    found = facts("compare", *options)
    assert found["heads"][0]["largest"] == 0
    assert any(one["largest"] is None and one["broken"] for one in found["heads"])
    assert found["logits"] is None
    assert found["notes"][-1] == "their logits hold what is no number"
    assert found["notes"][-2].startswith("rows that hold what is no number are left out in ")
    code, out, _ = run("compare", *options)
    assert code == 0 and "nan" not in out


def test_texts_of_a_corpus_are_chosen_on_both_sides(refusal, facts, letters, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat\nthe dog sat\n")
    model = open_model(letters[0])
    tasks.capture_corpus(model, tmp_path / "texts.txt", tmp_path / "two.h5")
    path = tmp_path / "two.h5"
    found = facts("compare", path, path, "--item", 0, "--item-b", 1)
    assert (found["a"]["tokens"], found["b"]["tokens"]) == (7, 11)
    same = facts("compare", path, path, "--item", 1)
    assert same["a"]["tokens"] == same["b"]["tokens"] == 11
    refusal("compare", path, path, "--item", 5)


def test_a_text_of_two_is_read_again_beside_its_capture(run, facts, tmp_path):
    write_transformer(
        tmp_path / "both", form="encoder-decoder", vocab_size=256, dtype=torch.float32
    )
    options = ("--text", "the cat", "--target", "die Katze")
    assert run("capture", tmp_path / "both", *options, "-o", tmp_path / "a.h5")[0] == 0
    found = facts("compare", tmp_path / "a.h5", tmp_path / "both")
    assert found["a"]["text"] == found["b"]["text"] and found["logits"]["largest"] == 0
    assert {one["role"] for one in found["heads"]} == {"self", "cross"}
    models = facts("compare", tmp_path / "both", tmp_path / "both", *options)
    assert [one["head"] for one in found["heads"]] == [one["head"] for one in models["heads"]]
    assert all(one["largest"] < 1e-6 for one in found["heads"])  # a file keeps rounded sums


# --- answers --------------------------------------------------------------------------------------


def test_two_classifiers_on_labelled_rows(facts, words, tmp_path):
    data = rows(tmp_path)
    found = facts("compare", *words, "--data", data, "-o", tmp_path / "all.json")
    alone = [tasks.evaluate(open_model(path), data) for path in words]
    for side, one in zip("ab", alone, strict=True):
        assert found[f"score_{side}"] == one.to_dict()
    right = np.array([one.right for one in alone])
    assert found["a_only"] == int((right[0] & ~right[1]).sum())
    assert found["b_only"] == int((right[1] & ~right[0]).sum())
    assert found["agreement"] == pytest.approx((right[0] == right[1]).mean())  # of two classes
    kept = json.loads((tmp_path / "all.json").read_text())
    assert len(kept["examples"]) == found["differing"] == int((right[0] != right[1]).sum())
    assert found["examples"] == kept["examples"][:20]
    lines = data.read_text().splitlines()[1:]
    for one in kept["examples"]:
        text, label = lines[one["example"]].split("\t")
        assert (one["text"], one["wanted"]) == (text, label)
        assert one["a"] != one["b"] and label in (one["a"], one["b"])


def test_answers_in_words(run, words, tmp_path):
    data = rows(tmp_path)
    code, out, _ = run("compare", *words, "--data", data, "-o", tmp_path / "out.csv")
    assert code == 0 and "B less A: " in out and "McNemar's p" in out and "examples" in out
    with (tmp_path / "out.csv").open() as file:
        assert f" {len(list(csv.DictReader(file))):,} differ" in out
    same = run("compare", words[0], words[0], "--data", data)[1]
    assert "B less A: +0 points" in same and "100.0 %; 0 differ." in same


def test_two_language_models_in_bits(run, facts, letters, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT * 100)
    found = facts("compare", *letters, "--data", tmp_path / "text.txt")
    bits = found["score_b"]["value"] - found["score_a"]["value"]
    assert found["score_a"]["metric"] == "bits_per_byte"
    assert found["difference"]["value"] == pytest.approx(bits, abs=1e-5)
    assert found["difference"]["low"] < bits < found["difference"]["high"]
    code, out, _ = run("compare", *letters, "--data", tmp_path / "text.txt")
    assert code == 0 and " bits per byte (" in out and "' '" in out
    same = facts("compare", letters[0], letters[0], "--data", tmp_path / "text.txt", "--off", "0.*")
    whole = tasks.evaluate(open_model(letters[0]), tmp_path / "text.txt")
    assert same["score_a"] == whole.to_dict() and same["score_b"]["off"] == ["0.0", "0.1"]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("model model", 2, ""),
        ("model model --text a --data rows.tsv", 2, ""),
        ("model model --text a -o out.npy", 2, ""),
        ("a.h5 a.h5 --text a", 2, ""),
        ("a.h5 model --data rows.tsv", 2, ""),
        ("model a.h5 --activation ymish", 2, ""),
        ("model a.h5 --off 0.0", 2, ""),
        ("a.h5 model --target a", 2, ""),
        ("model model --data rows.tsv -o rows.csv", 2, ""),
        ("nowhere model --text a", 1, "nowhere"),
        ("model study.h5 --text a", 1, "is a study"),
        ("model model --text", 1, "text"),
        ("model model --text-file empty", 1, "is empty"),
        ("model words --data rows.tsv", 1, "A gives the next token and B a class"),
        ("words words --data gap.tsv", 1, "line 2, column label is missing or empty"),
        ("model model --text a --off 9.9", 1, "no head"),
        ("model model --text a -o nowhere/out.json", 1, "there is no folder"),
        ("a.h5 alien.h5", 1, "share no token"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    refusal, letters, words, captured, tmp_path, monkeypatch, line, code, message
):
    monkeypatch.chdir(tmp_path)
    write_study("study.h5", make_study())
    Path("empty").touch()
    Path("gap.tsv").write_text("sentence\tlabel\nthe cat\t\n")
    Path("rows.csv").symlink_to(rows(tmp_path))
    model = open_model(letters[0])
    tasks.capture(model, model.tokenize("xyzzy"), "alien.h5")
    paths = {"model": letters[0], "words": words[0], "a.h5": captured / "a.h5"}
    given = [paths.get(word, word) for word in line.split()]
    error = refusal("compare", *given, *[""] * (given[-1] == "--text"), code=code)
    assert message in error and ("--help` shows what it takes." in error) == (code == 2)


def test_captures_are_compared_without_torch(captured):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from hgviz.__main__ import main\n"
        f"sys.exit(main(['compare', {str(captured / 'a.h5')!r}, {str(captured / 'b.h5')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


# --- the text of one capture, read by another model -----------------------------------------------


def test_a_model_reads_the_text_of_a_capture_in_its_own_way(letters):
    text = "The fish was not wonderful, but the evening was."
    hourglass, reviews = open_model(letters[0]), open_model(resource("sample/softmax"))
    a = tasks.capture(reviews, tasks.read_prompts(reviews, text)[0])
    same = tasks.capture_like(open_model(resource("sample/ymish")), a)
    assert same.prompt is a.prompt and same.spec.name != a.spec.name  # the very same tokens
    b = tasks.capture_like(hourglass, a)
    assert b.prompt.text == text and len(b.prompt) == len(text.encode())
    assert tasks.capture_like(reviews, b).prompt.pieces == a.prompt.pieces
    without = tasks.capture_like(hourglass, b, frozenset({HeadId(0, 0)}))
    assert np.array_equal(tasks.capture_like(hourglass, b).logits, b.logits)
    assert without.off == {HeadId(0, 0)} and not np.array_equal(without.logits, b.logits)
    for like in (translator(), listener()):  # the decoder's own text; states are no text
        prompt, target = prompts_like(hourglass, like)
        assert target is None and prompt.text == like.target.text
    ids = tasks.capture(hourglass, hourglass.from_ids(np.array([65, 66, 67])))
    assert prompts_like(hourglass, ids)[0] is ids.prompt
    long = tasks.capture(hourglass, hourglass.tokenize("good " * 400))
    with pytest.raises(HgvizError, match="too long"):
        prompts_like(reviews, long)
