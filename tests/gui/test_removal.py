"""Removing heads for good from the window: the dialog before, while it runs, and with its proof."""

import errno
import shlex
import time

import pytest
import tqdm
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from hgviz import cli, settings, tasks
from hgviz.core import HeadId, HgvizError, parse_heads, progress
from hgviz.gui.removal import Removal, change
from hgviz.gui.sentences import named
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
def slow(monkeypatch):
    """A comparison that takes long enough to be stopped."""
    real = pruning.largest_difference

    def waits(*given):
        for _ in range(200):
            time.sleep(0.01)
            progress(0, 1, "comparing logits")
        return real(*given)

    monkeypatch.setattr(pruning, "largest_difference", waits)


@pytest.fixture
def asking(scored, tmp_path, switch_off):
    """The dialog over the page, with three heads off; it writes to tmp_path / "out"."""
    switch_off(OFF)
    scored.prune.live.remove.click()
    dialog = scored.commands.removing.dialog
    dialog.folder.setText(str(tmp_path / "out"))
    QApplication.processEvents()
    return dialog


def shown(dialog):
    """All that the card says."""
    return "\n".join(
        getattr(one, "full", "") or one.text()
        for one in dialog.findChildren(QLabel)
        if one.isVisible()
    )


def test_removing_needs_a_checkpoint_and_heads_that_are_off(pruning):
    action = pruning.frame.actions_by_name["remove_heads"]
    assert not action.isEnabled() and action.toolTip() == "No head is switched off"
    pruning.commands.run("switch_head")
    assert action.isEnabled()
    pruning.session.put(activation="tanh")
    assert "exchanged" in action.toolTip()


def test_the_dialog_says_what_goes_and_the_keyboard_stays_in_it(asking, scored):
    assert asking.isVisible() and asking.title.text() == "Remove 3 of 10 heads for good"
    assert "Layer 2 keeps no head and only adds its bias." in shown(asking)
    assert "story.txt" in shown(asking)
    asking.forms["smaller"].setFocus()
    QTest.keyClick(asking.forms["smaller"], Qt.Key.Key_Down)
    assert asking.wish.form == "zeroed"
    seen = set()
    for _ in range(12):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        assert asking.isAncestorOf(QApplication.focusWidget())
        seen.add(QApplication.focusWidget())
    assert {asking.compensate, asking.folder, asking.go, asking.away, asking.copy} <= seen
    asking.folder.clear()
    assert not asking.go.isEnabled()
    QTest.keyClick(asking, Qt.Key.Key_Escape)
    assert asking.isHidden() and scored.commands.removing.dialog is None


def test_return_removes_the_heads_and_shows_the_proof_of_the_task(
    asking, scored, short_checkpoint, story, tmp_path, until
):
    asking.folder.setFocus()
    QTest.keyClick(asking.folder, Qt.Key.Key_Return)
    assert asking.running and asking.stop.isVisible() and not asking.asking.isEnabled()
    until(lambda: not asking.running)
    again = tasks.prune(short_checkpoint, OFF, tmp_path / "again", data=story)
    said = shown(asking)
    assert asking.title.text() == "3 heads are removed"
    for before, after in (again.parameters, again.size):
        assert f"{before:,}" in said and f"{after:,}" in said and change(before, after) in said
    assert "1 text at once" in said and "16 texts at once" in said and "times as fast" in said
    assert "logits" in said and "texts from story.txt" in said and str(tmp_path / "out") in said
    assert asking.default is asking.open_it and asking.open_it.hasFocus()
    QTest.keyClick(asking.open_it, Qt.Key.Key_Return)
    session = scored.session
    until(lambda: session.checkpoint == str(tmp_path / "out") and not busy(scored))
    assert len(session.spec.heads) == 7 and not session.off
    assert session.capture.spec.digest == session.model.spec.digest
    assert str(tmp_path / "out") in scored.commands.opened_before


@pytest.mark.parametrize("how", ["mean", "lsq"])
def test_the_copied_command_writes_the_same_weights(asking, tmp_path, until, capfd, how):
    asking.forms["zeroed"].setChecked(True)
    asking.compensate.setCurrentIndex(asking.compensate.findData(how))
    asking.copy.click()
    assert asking.copy.text() == "Copied"
    words = shlex.split(QGuiApplication.clipboard().text())
    assert words[:2] == ["hgviz", "prune"]
    asking.go.click()
    until(lambda: not asking.running)
    assert asking.open_it.text() == "Open the zeroed model"
    words[-1] = str(tmp_path / "by command")
    assert cli.main(words[1:], cli.Window(None, None)) == 0, capfd.readouterr().err
    weights = [tmp_path / one / "model.safetensors" for one in ("out", "by command")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_stop_leaves_no_folder_and_it_can_be_asked_again(asking, scored, slow, tmp_path, until):
    asking.go.click()
    until(lambda: asking.note.full.startswith("Comparing"))
    assert list(tmp_path.iterdir())  # the folder without its name
    QTest.keyClick(asking.stop, Qt.Key.Key_Space)
    until(lambda: not asking.running)
    assert not list(tmp_path.iterdir())
    assert asking.told.text() == "Stopped: nothing was written" and asking.go.isEnabled()
    scored.commands.drop("remove-heads")  # by the list of jobs, when nothing runs: no harm
    until(lambda: not busy(scored))


def test_it_can_be_hidden_and_comes_back_with_the_proof(asking, scored, tmp_path, until):
    asking.go.click()
    QTest.keyClick(asking, Qt.Key.Key_Escape)
    assert asking.isHidden() and asking.running
    until(lambda: not asking.running)
    assert asking.isVisible() and (tmp_path / "out" / "config.json").exists()
    asking.away.click()
    assert scored.commands.removing.dialog is None


def test_the_same_dialog_is_shown_while_it_runs(asking, scored, slow, tmp_path, until):
    asking.go.click()
    asking.reject()
    scored.commands.run("remove_heads")
    assert scored.commands.removing.dialog is asking and asking.isVisible() and asking.running
    asking.reject()
    scored.commands.drop("remove-heads")
    until(lambda: scored.commands.removing.dialog is None)
    assert not list(tmp_path.iterdir())


def _taken(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()


def _unwritable(tmp_path, monkeypatch):
    (tmp_path / "out").touch()


def _full(tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(own, "write_atomic", refuse)


def _other(tmp_path, monkeypatch):
    real = pruning.remove_heads
    more = {HeadId(1, 0)}
    monkeypatch.setattr(pruning, "remove_heads", lambda found, off: real(found, off | more))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_taken, "is there and not empty"),
        (_unwritable, "is no folder"),
        (_full, "no space left on device"),
        (_other, "differs from the masked model"),
    ],
)
def test_an_error_is_one_line_in_the_dialog(asking, tmp_path, until, spoil, says):
    with pytest.MonkeyPatch.context() as spoiled:
        spoil(tmp_path, spoiled)
        before = sorted(one.name for one in tmp_path.rglob("*"))
        asking.go.click()
        until(lambda: not asking.running)
    assert says in asking.told.text().lower() and "\n" not in asking.told.text()
    assert "Traceback" not in asking.told.text() and asking.told.property("kind") == "bad"
    assert sorted(one.name for one in tmp_path.rglob("*")) == before
    assert asking.folder.hasFocus()
    asking.folder.setText(str(tmp_path / "elsewhere"))
    asking.go.click()
    until(lambda: not asking.running)
    assert asking.title.text() == "3 heads are removed"


def test_all_heads_may_be_removed(scored, tmp_path, until):
    spec = scored.session.spec
    scored.commands.pruning.switch(frozenset(spec.heads))
    scored.commands.run("remove_heads")
    dialog = scored.commands.removing.dialog
    assert "No head is left, so nothing attends any more." in shown(dialog)
    dialog.folder.setText(str(tmp_path / "out"))
    dialog.go.click()
    until(lambda: not dialog.running)
    assert "No head is left, so nothing attends any more." in shown(dialog)


def test_a_chosen_folder_that_holds_something_gets_one_inside(asking, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "one").touch()
    (tmp_path / "empty").mkdir()
    asking._placed(str(tmp_path / "full"))
    assert asking.wish.out == str(tmp_path / "full" / "out")
    asking._placed(str(tmp_path / "empty"))
    assert asking.wish.out == str(tmp_path / "empty")


def test_the_folder_offered_is_beside_what_was_opened_last(scored, monkeypatch, tmp_path):
    settings.save(settings.Settings(folder=str(tmp_path)))
    scored.commands.run("switch_head")
    scored.commands.run("remove_heads")
    assert scored.commands.removing.dialog.wish.out == str(tmp_path / "tiny-without-1")
    scored.commands.removing.dialog.reject()
    (tmp_path / "tiny-without-1").mkdir()
    scored.commands.run("remove_heads")
    assert scored.commands.removing.dialog.wish.out == str(tmp_path / "tiny-without-1-2")


def test_it_fits_the_smallest_window(asking, scored, until):
    scored.frame.resize(1100, 700)
    asking.place()

    def whole():
        QApplication.processEvents()
        assert asking.height() >= asking.layout().totalHeightForWidth(asking.width())
        assert scored.frame.geometry().contains(asking.geometry())

    whole()
    asking.show_error(HgvizError("a " * 120, "c " * 60))
    whole()
    asking.go.click()
    whole()
    until(lambda: not asking.running)
    whole()


def test_heads_of_whole_layers_are_named_by_a_star(tiny):
    spec = tiny.spec
    for off in (OFF, frozenset(spec.heads), frozenset({HeadId(1, 1)})):
        assert parse_heads(named(off, spec.layers), spec.layers) == off
    assert named(OFF, spec.layers) == "0.0,2.*"
    wish = Removal("a model", spec, OFF, out="new folder")
    assert shlex.split(wish.command) == [
        "hgviz", "prune", "a model", "--off", "0.0,2.*", "-o", "new folder",
    ]  # fmt: skip
