"""Dialogs: keys, focus, wrong input, preferences; search, help pages, the log."""

import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl, qWarning
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLabel
from shiboken6 import isValid

from hgviz import settings
from hgviz.core import HeadId, HgvizError
from hgviz.errors import LabelError
from hgviz.gui import dialogs, log, theme
from hgviz.gui.across import ReachDialog, ReachRequest
from hgviz.gui.dialogs import ErrorDialog, Form, MeasureDialog, Preferences, Question, TextDialog
from hgviz.gui.export import ExportDialog
from hgviz.gui.help import Explanation, title, topics
from hgviz.gui.palette import CommandPalette, Entry
from hgviz.gui.removal import Removal, RemoveDialog
from hgviz.gui.sides import CompareDialog
from hgviz.gui.sources import shown_error
from hgviz.settings import Settings

ERROR = HgvizError(
    "this checkpoint could not be opened: config.json says dim 192; the weights say 256",
    "Set dim to 256, or choose another file",
    "tensor expected found",
)
LABELS = LabelError("unknown", ("good",), ("positive", "negative"), {"good": "positive"})
REMOVAL = {"off": frozenset({HeadId(0, 0)}), "out": "new"}


# how each dialog is made: from the program, some with what their buttons call
DIALOGS = {
    "error": lambda it, then: ErrorDialog(it.frame, ERROR, ("Open…", then)),
    "question": lambda it, then: Question(it.frame, "Q", ["S."], {"Cancel": None, "Quit": then}),
    "about": lambda it, then: dialogs.About(it.frame),
    "licences": lambda it, then: dialogs.Licences(it.frame),
    "text": lambda it, then: TextDialog(it.frame, "old", it.session.spec),
    "activation": lambda it, then: dialogs.ExchangeDialog(it.frame, "m", "", None),
    "write": lambda it, then: dialogs.WriteDialog(
        it.frame, "a", "token", 9, dialogs.WritingOptions()
    ),
    "measure": lambda it, then: MeasureDialog(it.frame, frozenset(), 4, None),
    "labels": lambda it, then: dialogs.LabelsDialog(it.frame, "a.tsv", LABELS),
    "preferences": lambda it, then: Preferences(it.frame, then),
    "help": lambda it, then: Explanation(it.frame, "keys"),
    "remove": lambda it, then: RemoveDialog(it.frame, Removal("a", it.session.spec, **REMOVAL)),
    "compare": lambda it, then: CompareDialog(it.frame, it.session, {"/a/b": "b"}, "model"),
    "export": lambda it, then: ExportDialog(it.frame, it.session, it.lanes),
    "reach": lambda it, then: ReachDialog(it.frame, ReachRequest(("/a/m",), "A text.")),
}
ACCEPTED = (
    "error", "question", "activation", "write", "measure", "labels", "compare", "remove", "reach",
)  # fmt: skip


@pytest.fixture
def make(opened):
    """Make one of DIALOGS; what it hands on is appended to make.answers."""
    opened.frame.activateWindow()
    opened.frame.toolbar.models.setFocus()
    QApplication.processEvents()

    def make_one(name):
        def answer(*parts):
            make_one.answers.append(parts)

        dialog = DIALOGS[name](opened, answer)
        dialog.then = dialog.then or (answer if name != "question" else None)
        return dialog

    make_one.answers = []
    yield make_one
    for dialog in opened.frame.findChildren(QDialog):
        dialog.reject()
    QApplication.processEvents()


def show(dialog):
    dialog.open()
    QApplication.processEvents()
    QApplication.processEvents()
    return dialog


def press(key, held=Qt.KeyboardModifier.NoModifier):
    QTest.keyClick(QApplication.focusWidget(), key, held)
    QApplication.processEvents()


def is_open(dialog):
    return isValid(dialog) and dialog.isVisible()


# --- every dialog ---------------------------------------------------------------------------------


def test_a_dialog_fits_has_a_name_tab_and_escape_and_gives_the_focus_back(make, opened):
    opened.frame.resize(1100, 700)
    before = QApplication.focusWidget()
    for name in DIALOGS:
        dialog = show(make(name))
        assert isinstance(dialog, Form) and dialog.isModal() and opened.frame._scrim.isVisible()
        spoken = QAccessible.queryAccessibleInterface(dialog)
        assert spoken.role() == QAccessible.Role.Dialog and spoken.text(QAccessible.Text.Name)
        assert opened.frame.geometry().contains(dialog.geometry()), name
        for label in dialog.findChildren(QLabel):
            if label.isVisible() and label.wordWrap():  # no words are clipped
                assert label.height() >= label.heightForWidth(label.width()), (name, label.text())
        seen = set()
        for _ in range(12):
            assert dialog.isAncestorOf(QApplication.focusWidget()), name
            seen.add(QApplication.focusWidget())
            press(Qt.Key.Key_Tab)
        assert len(seen) > 1 or name == "licences"
        dialog.default.setFocus()
        press(Qt.Key.Key_Escape)
        assert not is_open(dialog) and not opened.frame._scrim.isVisible(), name
        assert QApplication.focusWidget() is before and not make.answers, name


def test_return_accepts_a_dialog_also_after_a_file_dialog(make):
    for number, name in enumerate(ACCEPTED, 1):
        dialog = show(make(name))
        file = QFileDialog(dialog)
        dialogs._open(file, lambda path: None)
        QApplication.processEvents()
        file.reject()
        QApplication.processEvents()
        assert dialog.isAncestorOf(QApplication.focusWidget()), name
        press(Qt.Key.Key_Return)
        assert not is_open(dialog) and len(make.answers) == number, name


# --- texts ----------------------------------------------------------------------------------------


def test_a_long_text_is_complete_though_only_its_beginning_is_shown(program):
    answers = []
    dialog = TextDialog(program.frame, "before", None)
    dialog.ask(lambda *texts: answers.append(texts))
    data, pasted = QMimeData(), "one long line " * 650_000
    data.setText(pasted)
    cursor = dialog.edit.textCursor()
    cursor.setPosition(3)
    dialog.edit.setTextCursor(cursor)
    dialog.edit.insertFromMimeData(data)
    dialog.check()
    assert len(dialog.edit.toPlainText()) == 100_001 and dialog.edit.isReadOnly()
    assert dialog.count.text() == "9,100,006 characters; only the beginning is shown"
    dialog.default.click()
    assert answers == [("bef" + pasted + "ore", "")]


# --- preferences ----------------------------------------------------------------------------------


def test_a_choice_acts_at_once_and_is_kept(opened):
    opened.commands.run("preferences")
    (preferences,) = opened.frame.findChildren(Preferences)
    QTest.keyClick(preferences.controls["theme"], Qt.Key.Key_D)
    assert theme.current().dark and settings.load().theme == "dark"
    palettes = preferences.controls["palette"]
    palettes.setCurrentIndex(palettes.findData("magma"))
    assert opened.session.display.palette == settings.load().palette == "magma"
    QTest.keyClick(preferences.controls["restore"], Qt.Key.Key_Space)
    assert not settings.load().restore
    preferences.reset()
    assert settings.load() == Settings()
    preferences.reject()


# --- search ---------------------------------------------------------------------------------------


def test_the_words_of_the_search_find_what_they_mean_and_return_does_it(opened):
    session, facts = opened.session, opened.session.facts
    best = max(facts, key=lambda head: facts[head].metrics.get("previous", -1))
    for words, kind, value in (
        ("previous token", "metric", "previous"),
        ("previous", "head", best),
        ("export pdf", "action", "export"),
        ("font size", "setting", "interface_scale"),
        ("ablate", "action", "switch_head"),
        ("perplxity", "action", "choose_data"),  # the nearest
        ("head 5.1", "head", HeadId(5, 1)),
    ):
        opened.commands.run("find")
        finder = next(x for x in opened.frame.findChildren(CommandPalette) if x.isVisible())
        finder.field.setText(words)
        found = [(entry.kind, entry.value) for entry, _ in finder.found]
        assert (kind, value) in found[:12] and finder.nothing.isHidden() == (words != "perplxity")
        if words == "head 5.1":
            QTest.keyClick(finder.field, Qt.Key.Key_Return)
        finder.close()
    assert session.selection.head_id == HeadId(5, 1)
    opened.commands.run("find")
    finder = opened.frame.findChildren(CommandPalette)[-1]
    for kind, value in (("metric", "entropy"), ("action", "look_links")):
        finder.chosen.emit(Entry("", "", kind=kind, value=value))
    finder.close()
    assert (session.shade, session.look) == ("entropy", "links")


# --- pages ----------------------------------------------------------------------------------------


def test_the_list_leads_to_every_page_and_links_from_one_to_the_next(program):
    dialog = Explanation(program.frame, "welcome", listed=True)
    dialog.open()
    QApplication.processEvents()
    assert dialog.list.count() == len(topics()) and dialog.list.hasFocus()
    assert dialog.list.currentItem().text() == title("welcome")
    QTest.keyClick(dialog.list, Qt.Key.Key_Down)
    assert dialog.topic == "keys" and title("keys") in dialog.view.toPlainText()
    dialog._follow(QUrl("files.md"))
    assert dialog.topic == "files" and dialog.list.currentItem().text() == title("files")
    dialog._follow(QUrl("no-such-page.md"))
    assert dialog.topic == "files" and "no-such-page.md" in dialog.said.text()


# --- the log --------------------------------------------------------------------------------------


def surprise():
    try:
        raise ZeroDivisionError("nobody thought of this")
    except ZeroDivisionError as error:
        return error


def test_unforeseen_errors_are_logged_and_said_as_before(monkeypatch, capfd):
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    error, other = surprise(), ValueError("in another thread")
    log.start()
    shown = shown_error(error)
    assert str(log.file()) in shown.do and "nobody thought of this" in shown.what
    assert Path(__file__).name in shown.details and capfd.readouterr().err == ""
    sys.excepthook(type(error), error, error.__traceback__)
    qWarning("a word from Qt")
    threading.excepthook(threading.ExceptHookArgs((ValueError, other, None, None)))
    log.stop()
    said, logged = capfd.readouterr().err, log.file().read_text("utf-8")
    for words in ("nobody thought of this", "a word from Qt", "in another thread"):
        assert words in logged and words in said
    assert Path(__file__).name in logged and said.count("a word from Qt") == 1


def test_a_disk_that_refuses_is_no_error(monkeypatch, tmp_path, capfd):
    (tmp_path / "taken").write_text("a file where the folder should be")
    monkeypatch.setattr(log, "file", lambda: tmp_path / "taken" / "hgviz.log")
    log.start()
    log.record(surprise())
    log.stop()
    assert capfd.readouterr().err == ""


def texts(dialog):
    return [label.text() for label in dialog.findChildren(QLabel) if label.text()]


def test_two_dialogs_are_never_open_at_once(make, opened):
    """An error waits for the dialog before it, also for one that asks for a file."""
    file = QFileDialog(opened.frame)
    dialogs._open(file, lambda path: None)
    first, second = show(make("error")), show(make("help"))
    mode = opened.session.mode
    for shown, waiting in ((file, first), (first, second)):
        assert is_open(shown) and not is_open(waiting)
        QTest.keyClick(opened.frame, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
        shown.reject()
        QApplication.processEvents()
    assert is_open(second) and opened.session.mode == mode


def test_wrong_input_is_explained_and_not_accepted(make):
    for name, spoil, reason in (
        ("text", lambda form: form.edit.clear(), "The text is empty"),
        ("measure", lambda form: [box.setChecked(False) for box in form.boxes], "Choose a score."),
        ("labels", lambda form: form.lists["good"].setCurrentIndex(-1), "Choose a class for good."),
        ("compare", lambda form: form.paths.clear(), "Choose a checkpoint or a capture."),
        ("remove", lambda form: form.folder.clear(), "Choose a new folder."),
    ):
        dialog = show(make(name))
        assert dialog.default.isEnabled() and dialog.wrong.isHidden(), name
        if name == "remove":
            dialog.folder.setFocus()  # with the keyboard on the button, Return would be for Cancel
        spoil(dialog)
        dialog.check()
        assert dialog.wrong.isVisible() and dialog.wrong.text() == reason
        press(Qt.Key.Key_Return)
        assert is_open(dialog) and not make.answers, name
        dialog.reject()
        QApplication.processEvents()


def test_an_error_has_a_title_its_reason_what_to_do_and_folded_details(program):
    dialog = ErrorDialog(program.frame, ERROR)
    dialog.open()
    assert [words for words in texts(dialog) if words != "Details"][:3] == [
        "This checkpoint could not be opened",
        "config.json says dim 192; the weights say 256.",
        "Set dim to 256, or choose another file.",
    ]
    assert dialog.details.isHidden()
    dialog.fold.click()
    assert dialog.details.isVisible()
    dialog._copy()
    assert "tensor expected found" in QGuiApplication.clipboard().text()


@pytest.fixture
def finder(opened):
    one = CommandPalette(opened.frame, opened.session)
    one.open()
    yield one
    if isValid(one):
        one.close()


def shown(finder):
    return [entry for entry, _ in finder.found]
