"""Pruning heads from the window: the dialog before it, the proof after it."""

import errno
import shlex
import time

import pytest
import tqdm
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from hgviz import cli, tasks
from hgviz.core import HeadId, progress
from hgviz.gui.removal import ProofDialog, RemoveDialog, change
from hgviz.models import checkpoints as own
from hgviz.models import pruning
from tests.gui.screen import busy

OFF = frozenset({HeadId(0, 0), HeadId(2, 0), HeadId(2, 1)})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Timing as short as can be."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)  # a thread that watches bars


@pytest.fixture
def ask(scored, tmp_path, switch_off):
    """Ask how to prune three heads into tmp_path / "out"; gives the dialog."""
    switch_off(OFF)

    def open_dialog():
        scored.prune.live.remove.click()
        dialog = shown_dialog(scored, RemoveDialog)
        dialog.folder.setText(str(tmp_path / "out"))
        QApplication.processEvents()
        return dialog

    return open_dialog


def shown_dialog(program, kind):
    """The dialog of a kind that is open, or None."""
    return next((one for one in program.frame.findChildren(kind) if one.isVisible()), None)


def words_of(dialog):
    """All that a dialog says."""
    return "\n".join(
        getattr(one, "full", "") or one.text()
        for one in dialog.findChildren(QLabel)
        if one.isVisible()
    )


@pytest.fixture
def pruned(scored, until):
    """Wait for what comes of a removal: the proof, or the question again."""

    def wait(kind=ProofDialog):
        until(lambda: shown_dialog(scored, kind) is not None)
        return shown_dialog(scored, kind)

    return wait


def test_the_dialog_says_what_goes_and_return_shows_the_proof_of_the_task(
    ask, scored, short_checkpoint, story, tmp_path, pruned, until
):
    asking = ask()
    assert asking.title.text() == "Prune 3 of 10 heads"
    assert "Layer 2 has no heads left and only adds its bias." in words_of(asking)
    assert "story.txt" in words_of(asking)
    asking.forms["smaller"].setFocus()
    for key, form in ((Qt.Key.Key_Down, "zeroed"), (Qt.Key.Key_Up, "smaller")):
        QTest.keyClick(asking.forms[asking.removal.form], key)
        assert asking.removal.form == form
    QTest.keyClick(asking.folder, Qt.Key.Key_Return)
    scored.commands.run("remove_heads")
    assert "already" in scored.frame.chosen_words.full
    proof = pruned()
    again = tasks.prune(short_checkpoint, OFF, tmp_path / "again", data=story)
    words = words_of(proof)
    assert proof.title.text() == "Pruned 3 heads"
    for before, after in (again.parameters, again.size):
        assert f"{before:,}" in words and f"{after:,}" in words and change(before, after) in words
    assert "Batch size 1\n" in words and "Batch size 16\n" in words and "×" in words
    assert "logits" in words and "texts from story.txt" in words
    assert str(tmp_path / "out") in words
    QTest.keyClick(proof, Qt.Key.Key_Return)
    session = scored.session
    until(lambda: session.checkpoint == str(tmp_path / "out") and not busy(scored))
    assert len(session.spec.heads) == 7 and not session.off
    assert session.capture.spec.digest == session.model.spec.digest
    assert str(tmp_path / "out") in scored.commands.recent.names


def test_the_copied_command_writes_the_same_weights(ask, tmp_path, pruned, capfd):
    asking = ask()
    asking.forms["zeroed"].setChecked(True)
    asking.compensate.setCurrentIndex(asking.compensate.findData("lsq"))
    asking.copy.click()
    assert asking.copy.text() == "Copied"
    words = shlex.split(QGuiApplication.clipboard().text())
    assert words[:2] == ["hgviz", "prune"]
    asking.default.click()
    assert pruned().default.text() == "Open the zeroed model"
    words[-1] = str(tmp_path / "by command")
    assert cli.main(words[1:], cli.Window(None, None)) == 0, capfd.readouterr().err
    weights = [tmp_path / one / "model.safetensors" for one in ("out", "by command")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_stop_leaves_no_folder_and_a_pruned_model_is_compared_with_its_source(
    ask, scored, short_checkpoint, tmp_path, pruned, until
):
    def endless(*given):
        while True:
            time.sleep(0.01)
            progress(0, 1, "comparing logits")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "largest_difference", endless)
        ask().default.click()
        until(lambda: any(tmp_path.iterdir()))  # the folder without its name
        scored.commands.drop("remove-heads")
        until(lambda: not busy(scored) and scored.frame.chosen_words.full.startswith("Stopped"))
    assert scored.frame.chosen_words.full == "Stopped: nothing was written"
    assert not list(tmp_path.iterdir())
    ask().default.click()
    buttons = pruned().findChildren(QPushButton)
    next(one for one in buttons if one.text() == "Compare with the original").click()
    session = scored.session
    until(lambda: session.capture_b is not None and not busy(scored))
    assert session.mode == "compare" and not session.off and not session.capture.off
    assert session.checkpoint == str(short_checkpoint)
    assert session.comparison.path == str(tmp_path / "out")
    assert len(session.capture_b.spec.heads) == 7


def _taken(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()


def _full(tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(own, "write_atomic", refuse)


def _other(tmp_path, monkeypatch):
    real = pruning.remove_heads
    more = {HeadId(1, 0)}
    monkeypatch.setattr(pruning, "remove_heads", lambda found, off: real(found, off | more))


def test_an_error_is_one_line_in_the_dialog_which_asks_again(ask, tmp_path, pruned):
    again = ask()
    for number, (spoil, says) in enumerate((
        (_taken, "is not empty"),
        (_full, "no space left on device"),
        (_other, "differ from the masked model"),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        again.folder.setText(str(folder / "out"))
        assert again.wrong.isHidden(), says
        with pytest.MonkeyPatch.context() as spoiled:
            spoil(folder, spoiled)
            before = sorted(one.name for one in folder.rglob("*"))
            again.default.click()
            again = pruned(RemoveDialog)
        assert says in again.wrong.text().lower() and "\n" not in again.wrong.text()
        assert "Traceback" not in again.wrong.text() and again.first is again.folder
        assert sorted(one.name for one in folder.rglob("*")) == before
    again.folder.setText(str(tmp_path / "elsewhere"))
    assert again.wrong.isHidden()
    again.default.click()
    assert pruned().title.text() == "Pruned 3 heads"
