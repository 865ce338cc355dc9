"""Sessions: what is saved comes back, also at the next start; recent, dropped and unsaved files."""

from types import SimpleNamespace

from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import settings
from hgviz.core import HeadId, Selection, progress
from hgviz.files import resource
from hgviz.gui import sessions
from hgviz.gui.dialogs import ErrorDialog, Question
from hgviz.gui.jobs import JobsPopup
from hgviz.gui.sessions import last, losses, sorted_out
from hgviz.session.document import SideB
from hgviz.study import Mask
from tests.gui.screen import busy
from tests.studying import make_sweep

TEXT = "A sailor turned the glass."


def save(program, path, until):
    program.commands.sessions.save(str(path))
    until(lambda: program.commands.sessions.file == str(path))


def test_a_text_is_captured_again_with_b_also_where_its_capture_is_gone(
    program, checkpoint, capture_file, new_program, until, tmp_path
):
    session = program.session
    session.put(text=TEXT)
    program.commands.open_path(str(checkpoint))
    until(lambda: session.capture is not None and session.capture.complete and session.facts)
    session.put(off=frozenset({HeadId(1, 0)}))
    program.commands.run("capture")
    until(lambda: session.capture.off == session.off and not busy(program))
    program.commands.comparing.choose(SideB("activation", "ymish"))
    until(lambda: session.capture_b is not None and not busy(program))
    session.put(selection=Selection(1, 1, 12, 3), look="links")
    program.commands.pruning.keep()
    save(program, tmp_path / "one.hgviz", until)
    second = new_program()
    second.commands.open_path(str(tmp_path / "one.hgviz"))
    until(lambda: second.session.capture_b is not None and not busy(second))
    assert second.session.capture.main.text == TEXT
    assert second.session.capture.off == {HeadId(1, 0)}
    names = "checkpoint", "comparison", "mode", "look", "selection", "off", "display", "masks"
    for name in names:
        assert getattr(second.session, name) == getattr(session, name), name
    second.close()
    program.commands.open_path(str(capture_file))
    until(lambda: session.capture.path == str(capture_file) and not busy(program))
    session.put(checkpoint=str(checkpoint))
    save(program, tmp_path / "two.hgviz", until)
    capture_file.unlink()
    third = new_program()
    third.commands.open_path(str(tmp_path / "two.hgviz"))
    until(lambda: third.session.capture is not None and not busy(third))
    (said,) = third.frame.findChildren(ErrorDialog)
    assert said.error.what.endswith(f"Capture: {capture_file}")
    assert third.session.checkpoint == str(checkpoint) and third.session.capture.path == ""


def test_the_last_session_comes_back_at_the_next_start_unless_it_ended_the_program(
    new_program, capture_file, until
):
    program = new_program()
    program.open_first([str(capture_file)])
    until(lambda: program.session.capture is not None and not busy(program))
    program.session.put(selection=Selection(1, 0, 15, 4))
    program.close()
    program = new_program()
    program.open_first([])
    until(lambda: program.session.capture is not None and not busy(program))
    assert program.session.capture.path == str(capture_file)
    assert program.session.selection == Selection(1, 0, 15, 4)
    assert program.commands.sessions.file == ""  # nobody saved it under a name
    assert last().exists() and not last().with_suffix(".opening").exists()
    program.close()
    program = new_program()
    program.commands.show_found = lambda found: None  # it gets no further, as if it had crashed
    program.commands.sessions.open_last(print)
    until(lambda: last().with_suffix(".opening").exists())
    assert not last().exists()
    program.close()
    last().with_suffix(".opening").unlink(missing_ok=True)
    last().write_bytes(b"broken")
    program, asked = new_program(), []
    program.commands.open_example = asked.append
    program.open_first([])
    until(lambda: asked == ["inspect"])
    assert program.frame.findChild(ErrorDialog) is None


def test_a_study_of_many_runs_comes_back_on_its_page(program, new_program, until, tmp_path):
    make_sweep(seeds=(1,), methods=("michel",), folder=tmp_path / "many")
    program.commands.open_path(str(tmp_path / "many"))
    until(lambda: program.session.sweep is not None and not busy(program))
    cell = program.session.sweep.standings[2].cell.key
    program.session.put(cell=cell)
    save(program, tmp_path / "one.hgviz", until)
    second = new_program()
    second.commands.open_path(str(tmp_path / "one.hgviz"))
    until(lambda: second.session.sweep is not None and not busy(second))
    assert second.session.mode == "sweep" and second.session.sweep.title
    assert second.session.cell == cell


# --- closing asks where something would be lost; what runs shows, and stops, on every page --------


def forever():
    for at in range(10**9):
        progress(min(at * 0.001, 5), 10, "on the way")


def start(program, key="report", title="Report on A and B"):
    lane = program.lanes.facts
    program.commands.working.start(lane, key, title, forever, print, keeps="keeps nothing")


def test_closing_asks_about_work_that_is_not_done(opened, until):
    start(opened)
    until(lambda: opened.session.work[-1].state == "running")
    for button in (-1, 0):  # stay, then quit
        opened.commands.run("quit")
        dialog = question(opened, until)
        assert opened.frame.isVisible() and opened._open
        dialog.buttons[button].click()
        QApplication.processEvents()
    assert not opened.frame.isVisible() and not opened._open


def test_the_closing_dialog_lists_what_would_be_lost(opened):
    session, working = opened.session, opened.commands.working
    assert losses(session, working, True) == ()
    session.put(masks=(Mask("a", frozenset()), Mask("b", frozenset())))
    assert losses(session, working, False) == ("Not saved: 2 masks.",)
    lasts = SimpleNamespace(lasts=lambda key: True)
    start(opened, "save x", "Saving x")
    assert losses(session, lasts, True) == ()
    assert losses(session, working, True)[0].startswith("Not finished: saving x")
    working.stop("save x")
    for key in ("capture", "score-b"):  # the next start does them again
        start(opened, key, "Capturing 20 letters")
        assert losses(session, working, True) == ()
        working.stop(key)


def test_a_job_shows_and_stops_on_every_page(opened, until):
    opened.session.put(mode="compare")
    opened._listing.setInterval(0)
    start(opened)
    until(lambda: opened.chip.isVisible() and opened.session.work[-1].state == "running")
    assert opened.chip._title.full == "Report on A and B"
    QTest.mouseClick(opened.chip, Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    (popup,) = opened.frame.findChildren(JobsPopup)
    assert popup.isVisible() and "report" in popup.list._rows
    popup.close()
    opened.chip._stop.click()
    until(lambda: opened.session.work[-1].state == "stopped")
    until(lambda: not opened.chip.isVisible())


# --- files dropped on the window: what one means, and several together ----------------------------


def drop(program, *paths):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(one)) for one in paths])
    none = Qt.KeyboardModifier.NoModifier
    program.frame.dropEvent(
        QDropEvent(QPointF(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
    )


def question(program, until):
    """The question that is asked, once it is."""
    until(lambda: any(one.isVisible() for one in program.frame.findChildren(Question)))
    return next(one for one in program.frame.findChildren(Question) if one.isVisible())


def test_a_text_is_run_through_the_model_that_is_open(with_model, until, tmp_path):
    file, session = tmp_path / "mine.txt", with_model.session
    file.write_text("The sand ran down.\n")
    with_model.commands.open_path(str(file))
    asked = question(with_model, until)
    assert asked.title.text() == "mine.txt"
    assert [one.text() for one in asked.buttons][-1] == "Run tiny on this text"
    QTest.keyClick(asked, Qt.Key.Key_Return)
    until(lambda: session.capture.main.text == "The sand ran down.\n" and not busy(with_model))


def test_a_table_of_labelled_texts_is_data_of_the_prune_page(program, until, tmp_path):
    path = tmp_path / "few.tsv"
    path.write_text("sentence\tlabel\nA fine film.\tpositive\nA dull film.\tnegative\n")
    program.commands.open_path(str(resource("sample/softmax")))
    until(lambda: program.session.capture is not None and not busy(program))
    program.commands.open_path(str(path))
    until(lambda: program.session.trial is not None and program.session.trial.done)
    assert program.session.mode == "prune" and program.session.data == str(path)


def test_a_damaged_capture_is_called_damaged(program, capture_file, until):
    whole = capture_file.read_bytes()
    for content in (b"", b"x" * 40, whole[:4000]):
        capture_file.write_bytes(content)
        program.commands.open_path(str(capture_file))
        until(lambda: program.frame.findChild(ErrorDialog) is not None)
        what, do = program.frame.findChild(ErrorDialog).error.lines
        assert "kept.h5 is damaged: " in what and do.startswith("Capture the text again"), what
        program.frame.findChild(ErrorDialog).reject()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_dropped_files_that_do_not_open_leave_the_capture_that_was_open(opened, until, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    before = opened.session.capture
    drop(opened, tmp_path / "a", tmp_path / "b")
    until(lambda: opened.frame.findChildren(ErrorDialog) and not busy(opened))
    assert opened.session.capture is before and before is not None


def test_dropped_files_that_cannot_be_used_say_what_is_missing(program, until, tmp_path):
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(b"%PDF")
    drop(program, tmp_path / "a.pdf", tmp_path / "b.pdf")
    until(lambda: "unsupported file type" in program.frame.chosen_words.full)
    assert program.session.capture is None and not program.frame.findChildren(ErrorDialog)
    (tmp_path / "mine.txt").write_text("The sand ran down.")
    drop(program, tmp_path / "mine.txt")
    asked = question(program, until)
    assert asked.title.text() == "No model is open"
    assert asked.buttons[-1].text() == "Open a checkpoint folder…"


def files(program):
    """What the menu offers above its own action."""
    own = program.frame.actions_by_name["clear_recent"]
    actions = program.frame.menus["Open recent"].actions()
    return [one.text() for one in actions if one is not own and not one.isSeparator()]


def dialog(program):
    return program.frame.findChild(ErrorDialog)


def test_an_opened_file_is_remembered_until_the_list_is_cleared_and_named_when_gone(
    program, capture_file, until
):
    clear = program.frame.actions_by_name["clear_recent"]
    assert not files(program) and not clear.isEnabled()
    program.commands.open_path(str(capture_file))
    until(lambda: program.session.capture is not None)
    assert settings.load().recent == (str(capture_file),)
    assert files(program) == ["&1   kept.h5"] and clear.isEnabled()
    moved = capture_file.rename(capture_file.with_name("moved.h5"))
    program.frame.menus["Open recent"].actions()[0].trigger()
    until(lambda: dialog(program) is not None)
    assert str(capture_file) in " ".join(dialog(program).error.lines)
    moved.rename(capture_file)
    program.commands.run("clear_recent")
    assert program.session.recent == () and settings.load().recent == ()


def test_what_dropped_files_are_for(monkeypatch):
    for kinds, parts in (
        ({"b.h5": "capture", "a.hgviz": "session"}, {"session": "a.hgviz"}),
        ({"a.h5": "capture", "b.h5": "capture"}, {"capture": "a.h5", "comparison": "b.h5"}),
        ({"m": "checkpoint", "a.h5": "capture"}, {"capture": "a.h5", "comparison": "m"}),
        ({"m": "checkpoint", "t.tsv": "texts"}, {"model": "m", "data": "t.tsv"}),
        ({"s.h5": "study", "m": "checkpoint"}, {"model": "m", "study": "s.h5"}),
        ({"t.txt": "texts", "s.h5": "study", "u.txt": "texts"}, {"study": "s.h5"}),
        ({"t.json": "ids"}, {"ids": "t.json"}),
        ({"x.pdf": "nothing"}, {}),
    ):
        monkeypatch.setattr(sessions, "_kind", kinds.get)
        assert sorted_out(list(kinds)) == parts
