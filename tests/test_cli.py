"""The command line and the program: what commands do, write and refuse, what a person at a terminal
sees, which face gets what, settings that survive, and signals that end a command in one way."""

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import hgviz
from hgviz import __main__ as program
from hgviz import cli, errors, files, settings, tasks
from hgviz.cli import terminal
from hgviz.cli.terminal import Stopped
from hgviz.core import HeadId, HgvizError, progress
from hgviz.files import guide_pages, resource
from hgviz.jobs import interrupt_on_signals
from hgviz.models import open_model, pruning
from hgviz.settings import Settings
from hgviz.store import open_capture, write_capture
from hgviz.tasks import files as task_files
from tests.models.building import write_bert, write_checkpoint, write_gpt2
from tests.models.test_checkpoints import cached
from tests.models.zoo import write

TEXT = "The sand ran down; déjà vu 砂."


@pytest.fixture(scope="session")
def saved(capture, tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "saved.h5"
    write_capture(path, capture)
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory, saved):
    """Two tiny models, rows that they read, and a capture, by their names in commands below."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "rows.tsv").write_text(
        "sentence\tlabel\n" + "the cat sat\tfor\nun cat\tagainst\n" * 4
    )
    return {
        "CLASSIFIER": write_bert(folder / "bert"), "WRITER": write_gpt2(folder / "gpt2"),
        "ROWS": folder / "rows.tsv", "SAVED": saved, "NEAR": saved.with_suffix(""),
    }  # fmt: skip


# --- wrong use ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("capture model -o x.h5", ""),
        ("capture model -o x.h5 --text a --dtype int8", "'--dtype': 'int8' is not one of"),
        ("map x.h5 --layer -1 --head 0 -o x.npy", "equal to 0. See `hgviz map --help`"),
        ("map x.h5 --layer 0 --head 0 --rows 5:2 -o x.npy", ""),
        ("logits x.h5 -o x-", "does not end in .npy or .csv or .npz"),
        ("logits SAVED --text a -o x.npy", "is a capture with its own text"),
        ("map x.h5 --head 2 -o x.npy", "needs its layer: --head LAYER.2"),
        ("map x.h5 --layer 3 --head 1.2 -o x.npy", "is in layer 1, but --layer is 3"),
        ("map x.h5 --head g1 -o x.npy", "write 11.2, or 2 with --layer 11"),
        ("figure x.h5 --kind scroes -o x.pdf", "Did you mean 'scores'?"),
        ("evaluate model --data d.tsv --limt 2", "Did you mean --limit?"),
        ("reach sample/softmax --text a --seed 1", "--seed requires --tokens"),
        ("figure x.h5 --kind scores --head 1.2 -o x.pdf", "do not take --head"),
        ("study run s.toml -o out --workers 2 --scheduler local:2", "not both"),
        ("compar", "Did you mean 'compare'? See `hgviz --help`"),
        ("tokens WRITER", "exactly one"),
        ("tokens WRITER --text a -o a.json", "does not end in .csv"),
        ("tokens WRITER --ids ROWS --text-pair a", "--ids holds all inputs"),
        ("prune CLASSIFIER --off 0.0 --compensate mean -o out", "--compensate requires --data"),
        *((verb, "") for verb in sorted(cli.verbs() - {"demo", "docs", "selftest"})),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(refusal, good, words, said):
    error = refusal(*(good.get(word, word) for word in words.split()), code=2)
    assert said in error and "--help`." in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info sample/sofmax", "Did you mean sample/softmax?"),
        ("evaluate sample/softmax --data sample/review.tsv", "Did you mean sample/reviews.tsv?"),
        ("map NEAR --layer 0 --head 0 -o x.npy", "Did you mean "),
        ("map SAVED --layer 0 --head 0 --rows 0:999999 -o x.npy", ""),
        ("map SAVED --layer 0 --head 0 -o no/such/folder/x.npy", ""),
        ("map WRITER --layer 0 --head 0 -o x.npy", "is not a capture: it is a folder"),
        ("rollout SAVED --residual 2 -o x.npy", "it is between 0 and 1"),
        ("rollout SAVED --signed --fuse min -o x.npy", "cannot be combined with"),
        ("rollout SAVED --heads 99.0 -o x.npy", "no head 99.0"),
        ("figure SAVED --kind map --width wide -o x.pdf", ""),
        ("capture WRITER --text= -o x.h5", "The text is empty: it has no tokens. Give some text."),
        ("capture CLASSIFIER --text a -o x.h5 --activation nothing", "'nothing' is unknown"),
        ("capture CLASSIFIER --text a -o x.h5 --activation tanh,ymish", "divide the 3 heads"),
        ("docs trian", "Did you mean how-to/train?"),
        ("docs ../README", "There is no page"),
    ],
)
def test_what_is_not_there_is_one_line_and_exit_code_1(
    refusal, good, words, said, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert said in refusal(*(good.get(word, word) for word in words.split()))
    assert not list(tmp_path.iterdir())


# each with one place, BAD; CLASSIFIER, WRITER and ROWS are good
COMMANDS = {
    "info": "info BAD",
    "capture": "capture BAD --text a -o out.h5",
    "capture a text file": "capture WRITER --text-file BAD -o out.h5",
    "capture ids": "capture WRITER --ids BAD -o out.h5",
    "capture a corpus": "capture WRITER --corpus BAD -o out.h5",
    "capture an image": "capture WRITER --image BAD -o out.h5",
    "capture with boundaries": "capture WRITER --text a --boundaries BAD -o out.h5",
    "heads": "heads BAD",
    "attribute": "attribute BAD --text a",
    "figure of a capture": "figure BAD --kind map -o f.pdf",
    "figure of a study": "figure BAD --kind scores -o f.pdf",
    "figure of a folder": "figure BAD --kind seeds -o f.pdf",
    "evaluate": "evaluate BAD --data ROWS",
    "evaluate on data": "evaluate CLASSIFIER --data BAD",
    "reach": "reach BAD --text a",
    "redundancy": "redundancy BAD",
    "rollout": "rollout BAD -o r.npy",
    "importance": "importance BAD --data ROWS -o s.h5",
    "importance of gates": "importance CLASSIFIER --data ROWS --method gates --gates BAD -o s.h5",
    "curve": "curve BAD CLASSIFIER --data ROWS",
    "prune": "prune BAD --off 0.1 -o out",
    "prune by a study": "prune CLASSIFIER --study BAD --keep 2 -o out",
    "compare": "compare BAD CLASSIFIER --text a",
    "compare on data": "compare CLASSIFIER CLASSIFIER --data BAD",
    "study run": "study run BAD -o out",
    "study status": "study status BAD",
    "study report": "study report BAD -o r.html",
    "train": "train BAD -o out",
    "map": "map BAD --head 0.0 -o m.npy",
    "logits": "logits BAD --text a -o l.npy",
    "convert": "convert BAD -o out",
}
FILES = {
    "missing": None,
    "empty": b"",
    "noise": bytes(range(255, 0, -1)) * 9,
    "numbers": b"[1, 2",
    "damaged": b"",  # a capture that was cut
    "folder": {},
    "model": {"config.json": b'{"model_type": "gpt3"}'},
    "weights": {"config.json": b"{", "model.safetensors": b"\0" * 64},
}
TEXTS = ("capture a text file", "capture a corpus")  # any UTF-8 can be read
# several commands read each kind of file: each of them meets some of what is wrong with it
CASES = [
    (command, name) for at, command in enumerate(COMMANDS) for name in [*FILES][at % 4 :: 4]
    if command not in TEXTS or name != "numbers"
]  # fmt: skip


@pytest.mark.parametrize(("command", "name"), CASES)
def test_a_file_that_cannot_be_used_is_one_line(run, good, command, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = good["SAVED"].read_bytes()[:3000] if name == "damaged" else FILES[name]
    if isinstance(content, dict):
        (tmp_path / "bad").mkdir()
        for file, data in content.items():
            (tmp_path / "bad" / file).write_bytes(data)
    elif content is not None:
        (tmp_path / "bad").write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    words = COMMANDS[command].replace("BAD", "bad").split()
    code, out, error = run(*(good.get(word, word) for word in words))
    assert code in (1, 2) and not out, (code, out)
    assert error.count("\n") == 1 and "Unexpected error" not in error, error
    sentences = re.split(r"(?<=[.?!]) (?=[A-Z`])", error.strip())
    assert len(sentences) <= code + 1, error
    assert sorted(tmp_path.rglob("*")) == before


# --- help and errors ------------------------------------------------------------------------------


def test_help_and_version_and_the_guide(run, output):
    assert run("--version") == (0, f"hgviz {hgviz.__version__}\n", "")
    shown = output("--help").splitlines()
    named = {line.split()[1] for line in shown if line.startswith("│ ") and line[2] > " "}
    assert cli.verbs() <= named and len(cli.verbs()) == 22
    listed = dict(line.split(": ", 1) for line in output("docs").splitlines())
    assert listed.keys() == guide_pages().keys() and len(listed) > 20
    assert listed["how-to/train"] == "Train small models"
    assert not [title for title in listed.values() if not title or title.startswith(("#", "<"))]
    for name in ("how-to/train", "train", "train.md"):
        assert output("docs", name) == guide_pages()["how-to/train"].read_text("utf-8")


def test_every_help_has_an_example_and_those_of_the_sample_work(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    reviews = resource("sample/reviews.tsv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "sample").mkdir()  # fewer rows, in a file that goes before the bundled one
    (tmp_path / "sample/reviews.tsv").write_text("".join(reviews[:17]), "utf-8")
    needs_more = {"demo", "selftest", "train", "study run", "study status", "study report"}
    for name, example in cli.EXAMPLES.items():
        code, text, _ = run(*name.split(), "--help")
        assert code == 0 and f"Example: hgviz {name}" in " ".join(text.replace("│", " ").split())
        if name not in needs_more:
            assert run(*shlex.split(example), "--quiet")[0] == 0, example
            assert "-o" not in example or (tmp_path / example.split()[-1]).exists()
    for name in cli.verbs() - {"study"}:
        assert name in cli.EXAMPLES


class Panic(BaseException):
    """What a Rust library raises when it gives up."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (HgvizError("It broke", "Mend it"), "It broke. Mend it."),
        (OSError(28, "No space left on device", "a.h5"), "a.h5: No space left on device. Free"),
        (MemoryError(), "not enough memory"),
        (ValueError("odd\nand long"), "ValueError: odd and long"),
        (Panic("gone"), "gone"),
    ],
)
def test_every_error_is_one_line_and_a_traceback_only_with_debug(run, monkeypatch, error, words):
    def failing(_):
        raise error

    monkeypatch.setattr(tasks, "info", failing)
    code, out, said = run("info", "x")
    assert (code, out, len(said.splitlines())) == (1, "", 1)
    assert words.lower() in said.lower()
    for arguments in (("--debug", "info", "x"), ("info", "x", "--debug")):
        code, _, said = run(*arguments)
        assert code == 1 and "Traceback" in said and "failing" in said


def test_an_error_is_said_in_sentences_that_leave_names_alone():
    error = HgvizError("the text is empty", "give some text")
    assert error.lines == ("The text is empty.", "Give some text.")
    named = HgvizError("hourglass cannot be opened", "is config.json damaged?", "more")
    assert named.lines == ("hourglass cannot be opened.", "Is config.json damaged?")
    assert str(named) == "hourglass cannot be opened. is config.json damaged?"
    errors.require(True, "the text is empty")
    with pytest.raises(HgvizError, match=r"the text is empty\. Give some text\."):
        errors.require("", "the text is empty", "Give some text")
    assert errors.choose("tanh", ("softmax", "tanh"), "activation") == "tanh"
    with pytest.raises(HgvizError, match=r"unknown activation 'ymsh'\. Did you mean 'ymish'\?"):
        errors.choose("ymsh", ("softmax", "ymish"), "activation")
    with pytest.raises(HgvizError, match=r"unknown head 'x'\. Choose from a, b\."):
        errors.choose("x", ("a", "b"), "head")


def test_what_cannot_be_read_is_said_and_not_taken_for_another_kind(saved, monkeypatch):
    def closed(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(task_files, "open", closed, raising=False)
    with pytest.raises(HgvizError) as caught:
        tasks.kind_of(saved)
    assert caught.value.what.endswith("Permission denied") and "owner" in caught.value.do


# --- a terminal -----------------------------------------------------------------------------------


def counting(total):
    for done in range(total):
        progress(done, total, "a note")
    return "done"


def test_a_task_shows_a_bar_at_a_terminal_and_nothing_in_a_pipe(monkeypatch, capfd):
    assert terminal.run(partial(counting, 3), "Counting") == "done"
    assert capfd.readouterr() == ("", "")
    screen = io.StringIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr", screen)
    terminal.run(partial(counting, 3), "Counting")
    assert "Counting" in screen.getvalue()


def test_ctrl_c_says_in_one_line_what_is_kept(run, saved, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "capture", interrupted)
    out = tmp_path / "x.h5"
    words = "capture", "sample/softmax", "--text", "a", "-o", out
    code, _, error = run(*words)
    assert (code, error) == (130, "Stopped. Nothing was saved.\n")  # before the first layer
    out.with_name("x.h5.part").touch()
    code, _, error = run(*words)
    assert code == 130 and len(error.splitlines()) == 1
    assert error.startswith("Stopped.") and "x.h5.part" in error
    monkeypatch.setattr(tasks, "info", interrupted)  # outside a task
    code, _, error = run("info", saved)
    assert (code, error.strip()) == (130, "Stopped.")


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "map.npy"
    terminal.write(path, np.zeros(3, np.float32))
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(HgvizError, match="no space left"):
        terminal.write(path, np.ones(3, np.float32))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_strangers_name_cannot_drive_the_terminal(capsys):
    name = "\x1b[2J\x1b]0;title\x07[bold]x[/bold]\nsecond\u202e"
    terminal.show({"name": name, "layers": [{"name": name}], "provenance": {name: name}})
    terminal.say(name)
    terminal.complain(name)
    out, error = capsys.readouterr()
    assert "\x1b" not in out + error and "\u202e" not in out + error
    assert "[bold]x[/bold]" in out
    assert len(error.splitlines()) == 1


# --- captures and what is read from them ----------------------------------------------------------


def test_a_text_becomes_a_capture_that_holds_what_the_model_computes(run, facts, refusal, tmp_path):
    folder, out = tmp_path / "model", tmp_path / "out.h5"
    write_checkpoint(folder, vocab_size=256)
    asked = ("capture", folder, "--text", "Hello, world.", "-o", out)
    code, said, error = run(
        *asked, "--off", "0.1,1.*", "--dtype", "float64", "--activation", "ymish"
    )
    assert (code, error) == (0, "") and "13 tokens" in said
    ids = np.frombuffer(b"Hello, world.", np.uint8).astype(np.int64)
    model = open_model(folder, dtype="float64", activation="ymish")
    heads = model.spec.layers[1].heads
    off = frozenset({HeadId(0, 1), *(HeadId(1, head) for head in heads)})
    wanted = model.run(ids, off=off).logits
    assert run("logits", out, "-o", tmp_path / "logits.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "logits.npy"), wanted, atol=1e-5)
    assert (
        facts("info", out)["off"] == sorted(map(str, off))
        and facts("info", folder)["kind"] == "checkpoint"
    )
    before = out.read_bytes()
    assert "--force" in refusal(*asked) and out.read_bytes() == before
    assert run(*asked, "--force")[0] == 0 and out.read_bytes() != before


@pytest.mark.parametrize(
    ("words", "name", "reading"),
    [
        ("map SAVED --head 2.1 --rows 3:9 --columns 2:20", "map",
         {"rows": (3, 9), "columns": (2, 20)}),
        ("map SAVED --layer 2 --head 1 --zoom 2 --reduce mean", "map",
         {"zoom": 2, "reduce": "mean"}),
        ("rollout SAVED --rows 2:5 --nothing", "rollout", None),
        ("logits sample/softmax --text film", "logits", None),
    ],
)  # fmt: skip
def test_arrays_are_the_same_in_every_format(
    run, output, good, capture, tmp_path, words, name, reading
):
    asked = [good.get(word, word) for word in words.split()]
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
    if reading:
        np.testing.assert_array_equal(array, capture.maps[2].read(1, **reading))


def test_a_npz_names_the_head_the_cells_and_the_classes(run, saved, capture, tmp_path):
    out, text = tmp_path / "a.npz", capture.prompt.text
    words = ("map", saved, "--head", "0.1", "--rows", "2:7", "--zoom", "1", "-o", out)
    assert run(*words)[0] == 0
    with np.load(out) as stored:
        assert str(stored["head"]) == "0.1" and stored["rows"].tolist() == [2, 4, 6]
        assert stored["tokens"].tolist() == [text[2:4], text[4:6], text[6:8]]
    inner = next(one.index for one in capture.spec.layers if one.level == one.key_level == 1)
    assert run("map", saved, "--head", f"{inner}.0", "-o", out)[0] == 0
    spans = capture.query_spans(inner).tolist()
    with np.load(out) as stored:
        assert stored["tokens"].tolist() == [capture.prompt.words(*span) for span in spans]
    assert run("logits", "sample/softmax", "--text", "film", "-o", out)[0] == 0
    with np.load(out) as stored:
        assert stored["labels"].tolist() == [*hgviz.open_model("sample/softmax").spec.labels]
        assert stored["tokens"].tolist() == ["[CLS]", "film", "[SEP]"]


def test_tokens_spell_the_text_and_have_the_rows_of_every_level(facts, output, tmp_path):
    rows = facts("tokens", "sample/hourglass", "--text", TEXT)["tokens"]
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


def test_tokens_of_a_pair_of_ids_of_a_capture_and_of_a_target(run, facts, good, tmp_path):
    bert, saved, ids = good["CLASSIFIER"], tmp_path / "a.h5", tmp_path / "ids.json"
    pair = ("--text", "the cat", "--text-pair", "sat")
    told = facts("tokens", bert, *pair)
    prompt = open_model(bert).tokenize("the cat", "sat")
    assert [(row["id"], row["piece"]) for row in told["tokens"]] == [
        *zip(prompt.ids.tolist(), prompt.pieces, strict=True)
    ]
    assert (told["tokens"][0]["start"], told["tokens"][0]["end"]) == (None, None)  # [CLS]
    assert run("capture", bert, *pair, "-o", saved)[0] == 0 and facts("tokens", saved) == told
    ids.write_text(json.dumps({"input_ids": prompt.ids.tolist()}))
    again = facts("tokens", bert, "--ids", ids)["tokens"]
    assert [row["piece"] for row in again] == [*prompt.pieces]
    t5 = write(tmp_path / "t5", "t5", "T5ForConditionalGeneration")
    ids.write_text('{"input_ids": [5, 6, 1], "decoder_input_ids": [0, 7]}')
    rows = facts("tokens", t5, "--ids", ids)["tokens"]
    assert [(row["text"], row["position"], row["id"]) for row in rows] == [
        ("source", 0, 5), ("source", 1, 6), ("source", 2, 1), ("target", 0, 0), ("target", 1, 7),
    ]  # fmt: skip


# --- models ---------------------------------------------------------------------------------------


def test_a_model_is_named_in_place_of_a_path(run, refusal, facts, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    cached(tmp_path / "hub", "org/small")
    told = facts("info", "org/small")
    assert (told["name"], told["family"]) == ("org/small", "bert")
    assert run("capture", "small", "--text", "the 나", "-o", "a.h5")[0] == 0
    assert open_capture("a.h5").spec.name == "org/small"
    assert run("convert", "org/small", "-o", "out") == (0, "out: bert, 11,698 parameters.\n", "")
    error = refusal("capture", "org/other", "--text", "a", "-o", "b.h5")
    assert error.startswith("There is no org/other: no file or folder has that name, and")


def test_info_names_adapters_value_heads_and_other_weights_that_are_not_read(
    refusal, facts, tmp_path
):
    folder = write_gpt2(tmp_path / "gpt2")
    assert "not_read" not in facts("info", folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "pytorch_model.bin").write_bytes(b"")
    save_file(weights | {"v_head.summary.bias": torch.ones(1)}, folder / "model.safetensors")
    save_file({"lora_A.weight": torch.ones(1)}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
    assert facts("info", folder)["not_read"] == [
        "v_head (1 tensor)", "adapter_config.json", "adapter_model.safetensors (an adapter)",
        "pytorch_model.bin",
    ]  # fmt: skip
    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / name).unlink()
    assert "is a PEFT adapter" in refusal("info", folder)
    (folder / "config.json").unlink()
    assert "its base model is 'org/base'. Merge" in refusal("info", folder)


# --- standard input and output --------------------------------------------------------------------


def shell(command, text=b"", **more):
    """Run a command as a shell does, without the settings that make Python write at once."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    line = command.replace("hgviz", f"{sys.executable} -m hgviz")
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], input=text, capture_output=True, timeout=100,
        env=environment | {"HGVIZ_DEVICE": "cpu"}, **more,
    )  # fmt: skip


def test_a_text_comes_through_a_pipe_and_json_goes_into_one():
    done = shell("hgviz tokens sample/softmax --text-file - --json", b"film film\n")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["text"]) == (0, b"", "film film\n")
    assert [row["piece"] for row in told["tokens"]] == ["[CLS]", "film", "film", "[SEP]"]


def test_an_input_that_is_empty_or_no_text_is_one_line(monkeypatch, refusal):
    for text, said in ((b"", "standard input is empty"), (b"\xff", "is not utf-8 text")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text), "utf-8"))
        words = ("tokens", "sample/softmax", "--text-file", "-")
        assert said in refusal(*words).lower()


@pytest.mark.parametrize(
    ("model", "text", "total"),
    [
        ("softmax", "text\tlabel\na good film\tpositive\nbad, bad\tnegative\n", 2),
        ("softmax", '{"text": "bad, bad", "label": "negative"}\n', 1),
        ("hourglass", "The sea, the sand, the sun.", 26),  # a text is no table for its commas
    ],
)
def test_data_comes_through_a_pipe(monkeypatch, facts, model, text, total):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert facts("evaluate", f"sample/{model}", "--data", "-")["total"] == total


def test_what_a_model_writes_does_not_mix_with_numbers(run, good):
    gpt2 = good["WRITER"]
    code, out, error = run("logits", gpt2, "--text", "the", "--generate", 2, "-o", "-")
    rows = np.loadtxt(out.splitlines(), delimiter=",")
    assert code == 0 and error and rows.shape[1] == open_model(gpt2).spec.vocabulary


def test_a_reader_that_has_enough_ends_the_command_quietly(saved):
    done = shell(f"hgviz map {saved} --head 3.1 -o - | true")
    assert (done.returncode, done.stderr) == (1, b"")
    full = shell("hgviz docs train > /dev/full")
    assert full.returncode == 1 and full.stderr.count(b"\n") == 1 and b"No space" in full.stderr


def test_a_home_that_cannot_be_written_is_not_needed(tmp_path):
    homes = "env -u XDG_CACHE_HOME -u XDG_CONFIG_HOME -u MPLCONFIGDIR HOME=/proc"
    done = shell(f"{homes} hgviz figure sample/first.h5 --kind map -o a.pdf", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"") and (tmp_path / "a.pdf").exists()


# --- the program and its faces --------------------------------------------------------------------


@pytest.fixture
def app(monkeypatch):
    """Stands in for the window and notes what it was asked for."""
    asked = ModuleType("hgviz.gui.app")
    asked.calls = []
    for name in ("window", "demo", "selftest"):
        monkeypatch.setattr(
            asked, name, lambda *given, name=name: asked.calls.append((name, *given)) or 0, False
        )
    monkeypatch.setattr(program, "_app", lambda: asked)
    return asked


@pytest.fixture
def display(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":9")


@pytest.fixture
def no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "HGVIZ_EXIT_AFTER_PAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.h5").touch()
    (tmp_path / "model").mkdir()
    (tmp_path / "map").touch()
    return tmp_path


def asked_for(app):
    return [
        (name, *map(str, given[0] if name == "window" else given)) for name, *given in app.calls
    ]


def test_shells_complete_commands_and_options(app, display, monkeypatch, capsys):
    for words, number, completed in (
        ("hgviz ev", 1, "evaluate"),
        ("hgviz map --he", 2, "--head"),
    ):
        monkeypatch.setenv(program.COMPLETION, "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(number))
        with pytest.raises(SystemExit) as done:
            program.main([])
        assert done.value.code == 0 and completed in capsys.readouterr().out.split()
    monkeypatch.setenv(program.COMPLETION, "source_zsh")
    with pytest.raises(SystemExit) as done:
        program.main([])
    assert done.value.code == 0 and program.COMPLETION in capsys.readouterr().out
    assert not app.calls


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        ([], ("window",)),
        (["one.h5"], ("window", "one.h5")),
        (["one.h5", "model"], ("window", "one.h5", "model")),
        (["./map"], ("window", "map")),
        (["demo"], ("demo", "None")),
        (["demo", "--headless", "out"], ("demo", "out")),
        (["selftest"], ("selftest",)),
    ],
)
def test_with_a_display_paths_open_the_window(arguments, call, app, display, here):
    assert program.main(arguments) == 0
    assert asked_for(app) == [call]


def test_without_a_display_the_demo_works_off_screen(app, no_display, here, capsys, monkeypatch):
    assert program.main([]) == program.main(["demo"]) == 0
    assert asked_for(app) == [("demo", "hgviz-demo")] * 2
    assert program.main(["one.h5"]) == 1
    assert "no display" in capsys.readouterr().err.splitlines()[0]
    monkeypatch.setenv("HGVIZ_EXIT_AFTER_PAINT", "1")  # a frame that is timed needs no display
    assert program.main([]) == 0
    assert asked_for(app)[2:] == [("window",)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gone.h5"], 1, "gone.h5"),
        (["one.h5", "no/where.h5"], 1, "no/where.h5"),
        ([f"./{'a' * 300}.h5"], 1, "aaa.h5"),
        (["map"], 2, "Missing argument"),  # a file named like a verb needs ./
        (["captuer"], 2, "captuer"),
    ],
)
def test_what_is_neither_verb_nor_file_is_one_line(
    app, display, here, capsys, arguments, code, said
):
    assert program.main(arguments) == code and app.calls == []
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_missing_system_library_is_one_line_with_the_command_that_helps(monkeypatch, capsys):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name == "hgviz.gui.app":
                raise ImportError("libEGL.so.1: cannot open shared object file: No such file")

    monkeypatch.delitem(sys.modules, "hgviz.gui.app", raising=False)
    monkeypatch.delattr("hgviz.gui.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        program.selftest()
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "libEGL.so.1" in line and "apt-get install" in line and "libegl1" in line


def test_stopped_before_a_face_is_there_is_one_line(app, display, monkeypatch, capsys):
    def stopped(paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "window", stopped)
    assert program.main([]) == 130
    assert capsys.readouterr().err == "Stopped.\n"


# --- what comes with hgviz ------------------------------------------------------------------------


def test_samples_are_named_from_every_folder_and_own_files_go_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("sample/hourglass", "sample/first.h5", "sample/reviews.tsv"):
        assert files.find_sample(name) == files.resource(name)
        assert files.find_sample(Path(name)).exists()
    for name in ("sample/none", "sample/../icons", "icons/open.svg", "my.h5", "", "/sample/a.h5"):
        assert files.find_sample(name) == Path(name)
    assert program.main(["info", "sample/mixed"]) == 0
    assert "family: yubert" in capsys.readouterr().out
    assert len(hgviz.figure("sample/first.h5").capture.main) == 136
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/first.h5").symlink_to(tmp_path / "gone.h5")  # a link that leads nowhere
    assert files.find_sample("sample/first.h5") == Path("sample/first.h5")
    assert files.find_sample("sample/hourglass") == files.resource("sample/hourglass")


# --- settings -------------------------------------------------------------------------------------


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(texts, texts, st.sampled_from(["auto", "light", "dark"]))
def test_settings_survive_the_round_trip(tmp_path_factory, folder, device, theme):
    path = tmp_path_factory.mktemp("settings") / "deep" / "settings.toml"
    chosen = Settings(folder=folder, device=device, theme=theme)
    settings.save(chosen, path)
    assert settings.load(path) == chosen
    assert [file.name for file in path.parent.iterdir()] == ["settings.toml"]


def test_a_broken_file_gives_defaults_and_is_kept_aside(tmp_path):
    path = tmp_path / "settings.toml"
    assert settings.load(path) == Settings()
    for content in (b"theme = ", b'theme = "blue"', b"\xff\xfe", b"folder = 3"):
        path.write_bytes(content)
        assert settings.load(path) == Settings()
        assert (tmp_path / "settings.toml.broken").read_bytes() == content
        assert not path.exists()
    path.write_text('theme = "dark"\nfuture = 1\n')  # of another version
    assert settings.load(path) == Settings(theme="dark")
    assert settings.settings_path().parts[-2:] == ("hgviz", "settings.toml")


# --- signals --------------------------------------------------------------------------------------


posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
LONG_TEXT = "The hourglass reads letters, then pairs, then words. " * 100
TRAINING = """
[model]
hierarchy = "1@1 1@2 1@1"
d_model = 32
n_heads = 2
d_ff = 64
[data]
train = ["text.txt"]
valid = "text.txt"
[recipe]
steps = 100000
save_every = 2
"""


@pytest.fixture
def start(tmp_path):
    """Start hgviz in a folder of its own, with signals that are ignored where it starts from."""
    (tmp_path / "text.txt").write_text(LONG_TEXT)
    (tmp_path / "plan.toml").write_text(TRAINING)
    started = []

    def begin(*words: str, ignored: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        def ignore() -> None:
            for number in (*IGNORED, signal.SIGTERM, signal.SIGHUP):
                is_ignored = number in ignored  # whatever these tests inherited
                signal.signal(number, signal.SIG_IGN if is_ignored else signal.SIG_DFL)

        process = subprocess.Popen(
            [sys.executable, "-m", "hgviz", *words], cwd=tmp_path, text=True, preexec_fn=ignore,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


IGNORED = (signal.SIGINT, signal.SIGQUIT)  # by a shell, of what a script puts in the background


@posix
@pytest.mark.parametrize(
    ("words", "begun", "number", "ignored", "kept", "left"),
    [
        ("capture sample/hourglass --text-file text.txt -o a.h5", "a.h5.part/layer-001.h5",
         signal.SIGINT, IGNORED, "a.h5.part", {"a.h5.part"}),
        ("train plan.toml -o out", "out/state.pt", signal.SIGTERM, IGNORED, "out", {"out"}),
        ("prune sample/hourglass --off 0.0 --data text.txt -o out", ".out.new", signal.SIGHUP, (),
         "Nothing was saved in out", set()),
    ],
    ids=["capture", "train", "prune"],
)  # fmt: skip
def test_a_command_stops_says_what_is_kept_and_ends_as_shells_expect(
    start, tmp_path, words, begun, number, ignored, kept, left
):
    process, end = start(*words.split(), ignored=ignored), time.monotonic() + 90
    while not (tmp_path / begun).exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert process.poll() is None and (tmp_path / begun).exists()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    last = said.splitlines()[-1]  # on a slow machine lines before it tell how far it is
    assert last.startswith("Stopped.") and kept in last and "Traceback" not in said
    assert {one.name for one in tmp_path.iterdir()} - {"text.txt", "plan.toml"} == left


def opens(ending, process, folder):
    """Whether a process has a file with this ending open."""
    with suppress(OSError):
        links = [os.readlink(one) for one in Path(f"/proc/{process.pid}/fd").iterdir()]
        return any(one.endswith(ending) for one in links)
    return False


@posix
def test_the_window_closes_in_order_and_keeps_what_is_open(start, tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("DISPLAY", ":none")
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    process, end = start(ignored=IGNORED), time.monotonic() + 60
    begun = partial(opens, ".h5", process, tmp_path)  # its sample
    while not begun() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1)  # between the file that is opened and the window that has it
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + signal.SIGINT, "")
    assert [one.name for one in (tmp_path / "home").rglob("last.hgviz")]


@posix
def test_what_nohup_starts_outlives_its_terminal(start):
    process = start("info", "sample/hourglass", ignored=(signal.SIGHUP,))
    while process.poll() is None:
        process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    assert process.returncode == 0


@posix
def test_a_stop_that_python_loses_stops_all_the_same_and_signals_are_as_before():
    """What is raised in the callback of a weak reference goes nowhere."""
    ended = []
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    class Kept:
        pass

    def task():
        for number in range(3):
            one = Kept()
            weakref.finalize(one, lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(0.1)))
            del one
            ended.append(number)
            progress(number, 3)

    with interrupt_on_signals() as came, pytest.raises(Stopped, match="Half of it is kept"):
        terminal.run(task, "Working", "Half of it is kept")
    assert ended == [0] and not came
    with pytest.raises(KeyboardInterrupt), interrupt_on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    assert before == {one: signal.getsignal(one) for one in before}
