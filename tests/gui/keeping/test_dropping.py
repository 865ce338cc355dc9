"""Files dropped on the window: what one means, and several together."""

import shutil

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent

from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.sessions import planned


def drop(program, *paths):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(one)) for one in paths])
    none = Qt.KeyboardModifier.NoModifier
    program.frame.dropEvent(
        QDropEvent(QPointF(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
    )


def quiet(program):
    return not any(one.state in ("waiting", "running") for one in program.session.work)


@pytest.mark.parametrize(
    ("found", "page", "deed", "paths"),
    [
        ([("a.hgviz", "session"), ("b.h5", "capture")], "inspect", "open", {"file": "a.hgviz"}),
        ([("a.h5", "capture")], "inspect", "open", {"file": "a.h5"}),
        ([("a.h5", "capture"), ("b.h5", "capture")], "inspect", "together",
         {"capture": "a.h5", "beside": "b.h5"}),
        ([("m", "checkpoint"), ("a.h5", "capture")], "inspect", "together",
         {"capture": "a.h5", "beside": "m"}),
        ([("m", "checkpoint"), ("t.tsv", "texts")], "inspect", "together",
         {"model": "m", "data": "t.tsv"}),
        ([("s.h5", "study"), ("m", "checkpoint")], "inspect", "together",
         {"model": "m", "study": "s.h5"}),
        ([("s.h5", "study")], "inspect", "open", {"file": "s.h5"}),
        ([("t.txt", "texts")], "prune", "data", {"file": "t.txt"}),
        ([("t.txt", "texts")], "inspect", "corpus", {"file": "t.txt"}),
        ([("t.json", "ids")], "inspect", "ids", {"file": "t.json"}),
        ([("x.pdf", "nothing")], "inspect", "nothing", {}),
    ],
)  # fmt: skip
def test_what_files_mean(found, page, deed, paths):
    plan = planned(found, True, page)
    assert (plan.deed, plan.paths) == (deed, paths)
    aside = {path for path, _ in found} - set(paths.values())
    assert all(one in plan.said for one in aside)


def test_texts_without_a_model_say_what_they_need():
    plan = planned([("t.txt", "texts")], False, "inspect")
    assert plan.deed == "nothing" and "needs a model" in plan.said


def test_two_captures_are_a_and_b(program, kept, until, tmp_path):
    other = shutil.copy(kept, tmp_path / "other.h5")
    drop(program, kept, other)
    session = program.session
    until(lambda: session.beside is not None and quiet(program))
    assert (session.capture.path, session.beside.path) == (str(kept), str(other))
    assert session.mode == "compare"


def test_a_model_and_data_are_opened_together(program, checkpoint, until, tmp_path):
    text = tmp_path / "wiki.txt"
    text.write_text("The hourglass was turned. " * 60)
    drop(program, checkpoint, text)
    session = program.session
    until(lambda: session.trial is not None and session.trial.done and quiet(program), 240)
    assert session.checkpoint == str(checkpoint) and session.data == str(text)
    assert session.mode == "prune"


def test_what_cannot_be_opened_together_leaves_what_was_there(opened, until, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    before = opened.session.capture
    drop(opened, tmp_path / "a", tmp_path / "b")
    until(lambda: opened.frame.findChildren(ErrorDialog) and quiet(opened))
    assert opened.session.capture is before and before is not None


def test_what_is_nothing_is_said_in_a_line(program, until, tmp_path):
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(b"%PDF")
    drop(program, tmp_path / "a.pdf", tmp_path / "b.pdf")
    until(lambda: "something that hgviz opens" in program.frame.chosen_words.full)
    assert program.session.capture is None and not program.frame.findChildren(ErrorDialog)
