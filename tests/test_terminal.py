"""What people read: bars that never leak into pipes, tables, plain lines, whole files, errors."""

import io
import os
import signal
from functools import partial

import numpy as np
import pytest

from hgviz import errors
from hgviz.cli import terminal
from hgviz.core import HgvizError, progress


def counting(total):
    for done in range(total):
        progress(done, total, "a note")
    return "done"


def test_a_task_gives_its_result_and_writes_nothing_into_a_pipe(capfd):
    assert terminal.run(partial(counting, 3), "Counting") == "done"
    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_a_bar(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr", screen)
    terminal.run(partial(counting, 3), "Counting")
    assert "Counting" in screen.getvalue()


@pytest.fixture
def interruptible():
    """Ctrl+C as at a terminal; what runs in the background is started deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_the_task_and_says_what_is_kept(interruptible):
    ended = []

    def task():
        try:
            progress(0, 2)
            os.kill(os.getpid(), signal.SIGINT)
            progress(1, 2)
        finally:
            ended.append(True)

    with pytest.raises(HgvizError) as error:
        terminal.run(task, "Working", "The half is kept")
    assert str(error.value) == "Stopped. The half is kept."
    assert ended == [True]


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_an_array_survives_the_file(tmp_path, suffix, capsys):
    path = tmp_path / f"map{suffix}"
    array = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    terminal.write(path, array)
    load = np.load if suffix == ".npy" else lambda p: np.loadtxt(p, np.float32, delimiter=",")
    np.testing.assert_array_equal(load(path), array)
    assert "5 x 7, float32" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [path]


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


def test_facts_are_tables_and_lines(capsys):
    terminal.show(
        {
            "kind": "capture",
            "levels": [
                {"index": 0, "key_shift": 0, "sequence": "source"},
                {"index": 1, "key_shift": 1, "sequence": "source"},
            ],
            "layers": [],
            "provenance": {"device": "cpu", "seed": None},
            "complete": True,
        }
    )
    shown = capsys.readouterr().out
    assert "kind: capture" in shown and "device: cpu" in shown and "complete: yes" in shown
    assert "index  key shift\n0      0" in shown
    assert shown.count("source") == 1 and "2 levels; each: sequence source" in shown
    assert "seed" not in shown


def test_a_strangers_name_cannot_drive_the_terminal(capsys):
    name = "\x1b[2J\x1b]0;title\x07[bold]x[/bold]\nsecond\u202e"
    terminal.show({"name": name, "layers": [{"name": name}], "provenance": {name: name}})
    terminal.say(name)
    terminal.complain(name)
    out, error = capsys.readouterr()
    assert "\x1b" not in out + error and "\u202e" not in out + error
    assert "[bold]x[/bold]" in out
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (HgvizError("No.", "do"), "No. do."),
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device", "a.h5"), "a.h5: No space left on device. Free"),
        (ValueError("two\nlines"), "ValueError: two lines"),
    ],
)
def test_every_error_becomes_one_line(error, words):
    line = str(errors.to_hgviz_error(error))
    assert words in line and "\n" not in line


# --- errors ---------------------------------------------------------------------------------------


def test_an_error_is_said_in_sentences_that_leave_names_alone():
    error = HgvizError("the text is empty", "give some text")
    assert error.lines == ("The text is empty.", "Give some text.")
    asked = HgvizError("layer 0 is odd", "is it never closed?")
    assert asked.lines == ("Layer 0 is odd.", "Is it never closed?")
    assert str(asked) == "layer 0 is odd. is it never closed?"
    named = HgvizError("hourglass cannot be opened", "config.json says dim 192", "more")
    assert named.lines == ("hourglass cannot be opened.", "config.json says dim 192.")


def test_what_is_required_and_chosen_is_one_error():
    errors.require(True, "the text is empty")
    with pytest.raises(HgvizError, match=r"the text is empty\. Give some text\."):
        errors.require("", "the text is empty", "Give some text")
    assert errors.choose("tanh", ("softmax", "tanh"), "activation") == "tanh"
    with pytest.raises(HgvizError, match=r"unknown activation 'ymsh'\. Did you mean 'ymish'\?"):
        errors.choose("ymsh", ("softmax", "ymish"), "activation")
    with pytest.raises(HgvizError, match=r"unknown head 'x'\. Choose from a, b\."):
        errors.choose("x", ("a", "b"), "head")
