"""What shell scripts use: tokens, arrays in three formats, standard input and output, the guide."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import hgviz
from hgviz.files import guide_pages
from hgviz.models import open_model
from tests.models.folders import write_bert, write_gpt2
from tests.models.zoo import write

TEXT = "The sand ran down; déjà vu 砂."


# --- tokens ---------------------------------------------------------------------------------------


def test_tokens_spell_the_text_and_have_the_rows_of_every_level(facts, output, tmp_path):
    told = facts("tokens", "sample/hourglass", "--text", TEXT)
    rows = told["tokens"]
    assert told["text"] == TEXT and told["target"] is None
    assert [row["position"] for row in rows] == [*range(len(rows))]
    assert [row["id"] for row in rows] == [*TEXT.encode()]  # a model of bytes
    for row in rows:
        assert row["start"] + 1 == row["end"] <= len(TEXT)
        assert (row["level_1"], row["level_2"]) == (row["position"] // 2, row["position"] // 4)
    letters = {row["start"]: TEXT[row["start"] : row["end"]] for row in rows}
    assert "".join(letters[at] for at in sorted(letters)) == TEXT
    out = tmp_path / "t.csv"
    assert output("tokens", "sample/hourglass", "--text", TEXT, "-o", out) == (
        f"{out}: {len(rows)} tokens.\n"
    )
    lines = out.read_text("utf-8")
    read = [*csv.DictReader(lines.splitlines())]
    assert read == [{name: str(value) for name, value in row.items()} for row in rows]
    assert output("tokens", "sample/hourglass", "--text", TEXT, "-o", "-") == lines


def test_tokens_of_a_pair_of_ids_and_of_a_capture(run, facts, refusal, tmp_path):
    bert, saved, ids = write_bert(tmp_path / "bert"), tmp_path / "a.h5", tmp_path / "ids.json"
    pair = ("--text", "the cat", "--text-pair", "sat")
    told = facts("tokens", bert, *pair)
    prompt = open_model(bert).tokenize("the cat", "sat")
    assert [row["id"] for row in told["tokens"]] == prompt.ids.tolist()
    assert [row["piece"] for row in told["tokens"]] == [*prompt.pieces]
    assert told["tokens"][0] == {
        "position": 0, "id": int(prompt.ids[0]), "piece": "[CLS]", "start": None, "end": None,
    }  # fmt: skip
    assert run("capture", bert, *pair, "-o", saved)[0] == 0
    assert facts("tokens", saved) == told
    ids.write_text(json.dumps({"input_ids": prompt.ids.tolist()}))
    again = facts("tokens", bert, "--ids", ids)["tokens"]
    assert [row["piece"] for row in again] == [*prompt.pieces]
    assert (
        "the cat" not in run("tokens", bert, *pair)[1] and "[CLS]" in run("tokens", bert, *pair)[1]
    )
    for words, said in (
        ((saved, "--text", "a"), "is a capture, which has its text"),
        ((bert,), "exactly one"),
        ((bert, "--text", "a", "-o", "a.json"), "does not end in .csv"),
        ((bert, "--ids", ids, "--text-pair", "a"), "--ids holds them all"),
    ):
        assert said in refusal("tokens", *words, code=2)


def test_tokens_of_a_source_and_its_target(facts, tmp_path):
    t5 = write(tmp_path / "t5", "t5", "T5ForConditionalGeneration")
    (tmp_path / "ids.json").write_text('{"input_ids": [5, 6, 1], "decoder_input_ids": [0, 7]}')
    rows = facts("tokens", t5, "--ids", tmp_path / "ids.json")["tokens"]
    told = [(row["text"], row["position"], row["id"], row["start"]) for row in rows]
    source = [("source", at, id_, None) for at, id_ in enumerate((5, 6, 1))]
    assert told == [*source, ("target", 0, 0, None), ("target", 1, 7, None)]


# --- arrays ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def capture_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("shell") / "a.h5"
    hgviz.capture("sample/hourglass", "The sea at noon", out=path, device="cpu")
    return path


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("map FILE --head 3.1 --rows 2:7 --columns 1:4", "map"),
        ("map FILE --head 3.1 --rows 3:7 --zoom 1 --reduce mean", "map"),
        ("logits FILE", "logits"),
        ("rollout FILE --rows 2:5 --nothing", "rollout"),
        ("logits sample/softmax --text film", "logits"),
    ],
)
def test_arrays_are_the_same_in_every_format(run, output, capture_file, tmp_path, words, name):
    asked = [str(capture_file) if word == "FILE" else word for word in words.split()]
    for ending in ("npy", "csv", "npz"):
        assert run(*asked, "-o", tmp_path / f"a.{ending}")[0] == 0
    array = np.load(tmp_path / "a.npy")
    text = (tmp_path / "a.csv").read_text()
    assert output(*asked, "-o", "-") == text
    read = np.loadtxt(text.splitlines(), np.float32, delimiter=",").reshape(array.shape)
    np.testing.assert_array_equal(read, array)
    with np.load(tmp_path / "a.npz") as stored:
        np.testing.assert_array_equal(stored[name], array)
        if array.ndim == 2:
            assert len(stored["tokens"]) == len(array)
        if name != "logits":
            assert len(stored["key_tokens"]) == array.shape[1]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".npy", ".npz"]


def test_a_npz_names_the_head_the_cells_and_the_classes(run, capture_file, tmp_path):
    out = tmp_path / "a.npz"
    text = "The sea at noon"
    assert (
        run("map", capture_file, "--head", "0.1", "--rows", "2:7", "--zoom", "1", "-o", out)[0] == 0
    )
    with np.load(out) as stored:
        assert str(stored["head"]) == "0.1"
        assert stored["rows"].tolist() == [2, 4, 6]
        assert stored["tokens"].tolist() == [text[2:4], text[4:6], text[6:8]]
        assert "".join(stored["key_tokens"]) == text
    capture = hgviz.open_capture(capture_file)
    inner = next(one.index for one in capture.spec.layers if one.level == one.key_level == 1)
    assert run("map", capture_file, "--head", f"{inner}.0", "-o", out)[0] == 0
    with np.load(out) as stored:
        np.testing.assert_array_equal(stored["map"], capture.maps[inner].read(0))
        assert stored["tokens"].tolist() == [
            capture.prompt.words(*span) for span in capture.query_spans(inner).tolist()
        ]
    assert run("logits", "sample/softmax", "--text", "film", "-o", out)[0] == 0
    with np.load(out) as stored:
        assert stored["labels"].tolist() == [*open_model("resources/sample/softmax").spec.labels]
        assert stored["tokens"].tolist() == ["[CLS]", "film", "[SEP]"]


def test_what_a_model_writes_does_not_mix_with_numbers(run, tmp_path):
    gpt2 = write_gpt2(tmp_path / "gpt2")
    code, out, error = run("logits", gpt2, "--text", "the", "--generate", 2, "-o", "-")
    assert code == 0 and error
    rows = np.loadtxt(out.splitlines(), delimiter=",")
    assert rows.shape[1] == open_model(gpt2).spec.vocabulary


# --- the guide ------------------------------------------------------------------------------------


def test_the_guide_is_listed_and_shown(output, refusal):
    listed = dict(line.split(": ", 1) for line in output("docs").splitlines())
    assert listed.keys() == guide_pages().keys() and len(listed) > 20
    assert listed["how-to/train"] == "Train small models"
    assert not [title for title in listed.values() if not title or title.startswith(("#", "<"))]
    for name in ("how-to/train", "train", "train.md"):
        assert output("docs", name) == guide_pages()["how-to/train"].read_text("utf-8")
    assert output("docs", "opens").startswith("# What opens as a model")
    assert output("docs", "models").startswith("# Models of transformers")
    assert "Did you mean how-to/train?" in refusal("docs", "trian")
    for name in ("xyz", "../README", "/etc/passwd"):
        assert "There is no page" in refusal("docs", name)


# --- standard input and output --------------------------------------------------------------------


def shell(command, text=b"", **more):
    """Run a command as a shell does, without the settings that make Python write at once."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    line = command.replace("hgviz", f"{sys.executable} -m hgviz")
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], input=text, capture_output=True, timeout=100,
        env=environment | {"HGVIZ_DEVICE": "cpu"}, **more,
    )  # fmt: skip


def test_a_text_comes_through_a_pipe_and_json_goes_into_one(tmp_path):
    done = shell("hgviz tokens sample/softmax --text-file - --json", b"film film\n")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["text"]) == (0, b"", "film film\n")
    assert [row["piece"] for row in told["tokens"]] == ["[CLS]", "film", "film", "[SEP]"]
    captured = shell(
        f"hgviz capture sample/softmax --text-file - -o {tmp_path}/a.h5 --json", b"film"
    )
    assert json.loads(captured.stdout)["kind"] == "capture" and captured.stderr == b""
    assert hgviz.open_capture(tmp_path / "a.h5").prompt.text == "film"


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_data_comes_through_a_pipe(tmp_path, ending):
    rows = [("a good film", "positive"), ("bad, bad", "negative")]
    text = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
    if ending == "csv":
        text = "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in rows)
    if ending == "jsonl":
        text = "".join(f"{json.dumps({'text': text, 'label': label})}\n" for text, label in rows)
    told = json.loads(shell("hgviz evaluate sample/softmax --data - --json", text.encode()).stdout)
    assert told["total"] == 2 and told["metric"] == "accuracy"
    if ending == "csv":  # a text is no table for its commas
        text = "The sea, the sand, the sun."
        done = shell("hgviz evaluate sample/hourglass --data - --json", text.encode())
        assert json.loads(done.stdout)["total"] == len(text) - 1


def test_bad_standard_input_is_one_line():
    for text, said in ((b"", "standard input is empty"), (b"\xff", "is not a utf-8 text")):
        done = shell("hgviz tokens sample/softmax --text-file -", text)
        error = done.stderr.decode()
        assert (done.returncode, done.stdout, error.count("\n")) == (1, b"", 1)
        assert said in error.lower()


def test_a_reader_that_has_enough_ends_the_command_quietly(capture_file):
    done = shell(f"hgviz map {capture_file} --head 3.1 -o - | true")
    assert (done.returncode, done.stderr) == (1, b"")
    full = shell("hgviz docs train > /dev/full")
    assert full.returncode == 1 and full.stderr.count(b"\n") == 1 and b"No space" in full.stderr
