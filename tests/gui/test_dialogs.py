"""Dialogs: keys, focus, one at a time, what they say of wrong input; errors, texts, preferences."""

from types import SimpleNamespace

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLabel
from shiboken6 import isValid

from hgviz import settings
from hgviz.analysis.importance import MaskTrial
from hgviz.core import HeadId, HgvizError
from hgviz.errors import LabelError
from hgviz.gui import dialogs, theme
from hgviz.gui.across import ReachDialog, ReachRequest
from hgviz.gui.dialogs import (
    About,
    ErrorDialog,
    ExchangeDialog,
    Form,
    LabelsDialog,
    Licences,
    MeasureDialog,
    Preferences,
    Question,
    TextDialog,
    WriteDialog,
    WritingOptions,
)
from hgviz.gui.export import ExportDialog
from hgviz.gui.help import Explanation
from hgviz.gui.removal import Removal, RemoveDialog
from hgviz.gui.sides import CompareDialog
from hgviz.settings import Settings

ERROR = HgvizError(
    "this checkpoint could not be opened: config.json says dim 192; the weights say 256",
    "Set dim to 256, or choose another file",
    "tensor expected found",
)
LABELS = LabelError("unknown", ("good",), ("positive", "negative"), {"good": "positive"})

# how each dialog is made: from the program and what is called where it is accepted
DIALOGS = {
    "error": lambda it, then: ErrorDialog(it.frame, ERROR, ("Open…", then)),
    "question": lambda it, then: Question(it.frame, "Q", ["S."], {"Cancel": None, "Quit": then}),
    "about": lambda it, then: About(it.frame),
    "licences": lambda it, then: Licences(it.frame),
    "text": lambda it, then: TextDialog(it.frame, "old", it.session.spec, then=then),
    "activation": lambda it, then: ExchangeDialog(it.frame, "m", "", None, then),
    "write": lambda it, then: WriteDialog(it.frame, "a text", "token", 9, WritingOptions(), then),
    "measure": lambda it, then: MeasureDialog(it.frame, frozenset(), 4, None, then),
    "labels": lambda it, then: LabelsDialog(it.frame, "a.tsv", LABELS, then),
    "preferences": lambda it, then: Preferences(it.frame, then),
    "help": lambda it, then: Explanation(it.frame, "keys"),
    "remove": lambda it, then: RemoveDialog(it.frame, removal_of(it.session.spec), then),
    "compare": lambda it, then: CompareDialog(it.frame, it.session, {"/a/b": "b"}, "model", then),
    "export": lambda it, then: ExportDialog(it.frame, it.session, it.lanes),
    "reach": lambda it, then: ReachDialog(it.frame, ReachRequest(("/a/m",), "A text."), then),
}
ACCEPTED = (
    "error", "question", "activation", "write", "measure", "labels", "compare", "remove", "reach",
)  # fmt: skip


def removal_of(spec):
    return Removal("a", spec, frozenset({HeadId(0, 0)}), out="new")


@pytest.mark.parametrize(("seconds", "costs"), [
    (0.0, "about 2 evaluations|about 12 evaluations|about 143 evaluations"),
    (0.5, "about 1 s|about 6 s|about 72 s"),
])  # fmt: skip
def test_measuring_says_what_each_score_costs(opened, seconds, costs):
    trial = MaskTrial(frozenset(), SimpleNamespace(asked="classes"), seconds=seconds)
    dialog = MeasureDialog(opened.frame, frozenset({"token_gradient"}), 24, trial)
    said = [one.text() for one in dialog.findChildren(QLabel)]
    assert all(cost in said for cost in (*costs.split("|"), "measured"))


@pytest.fixture
def make(opened):
    """Make one of DIALOGS; what it hands on is appended to make.answers."""
    opened.frame.activateWindow()
    opened.frame.toolbar.models.setFocus()
    QApplication.processEvents()

    def make_one(name):
        return DIALOGS[name](opened, lambda *answer: make_one.answers.append(answer))

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


def texts(dialog):
    return [label.text() for label in dialog.findChildren(QLabel) if label.text()]


# --- every dialog ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIALOGS)
def test_a_dialog_has_a_role_a_name_tab_and_escape_and_gives_the_focus_back(make, opened, name):
    before = QApplication.focusWidget()
    dialog = show(make(name))
    assert isinstance(dialog, Form) and dialog.isModal() and opened.frame._scrim.isVisible()
    spoken = QAccessible.queryAccessibleInterface(dialog)
    assert spoken.role() == QAccessible.Role.Dialog and spoken.text(QAccessible.Text.Name)
    assert opened.frame.geometry().contains(dialog.geometry())
    seen = set()
    for _ in range(12):
        assert dialog.isAncestorOf(QApplication.focusWidget())
        seen.add(QApplication.focusWidget())
        press(Qt.Key.Key_Tab)
    assert len(seen) > 1 or name == "licences"
    dialog.default.setFocus()
    press(Qt.Key.Key_Escape)
    assert not is_open(dialog) and not opened.frame._scrim.isVisible()
    assert QApplication.focusWidget() is before and not make.answers


@pytest.mark.parametrize("name", ACCEPTED)
def test_return_accepts_a_dialog_also_after_a_file_dialog(make, opened, name):
    dialog = show(make(name))
    file = QFileDialog(dialog)
    dialogs._open(file, lambda path: None)
    QApplication.processEvents()
    file.reject()
    QApplication.processEvents()
    assert dialog.isAncestorOf(QApplication.focusWidget())
    press(Qt.Key.Key_Return)
    assert not is_open(dialog) and len(make.answers) == 1


def test_every_dialog_fits_the_window_and_clips_no_words(make, opened):
    opened.frame.resize(1100, 700)
    for name in DIALOGS:
        dialog = show(make(name))
        assert opened.frame.geometry().contains(dialog.geometry()), name
        for label in dialog.findChildren(QLabel):
            if label.isVisible() and label.wordWrap():
                assert label.height() >= label.heightForWidth(label.width()), (name, label.text())
        dialog.reject()


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


@pytest.mark.parametrize(
    ("name", "spoil", "reason"),
    [
        ("text", lambda form: form.edit.clear(), "The text is empty"),
        ("measure", lambda form: [box.setChecked(False) for box in form.boxes], "Choose a score."),
        ("labels", lambda form: form.lists["good"].setCurrentIndex(-1), "Choose a class for good."),
        ("compare", lambda form: form.paths.clear(), "Choose a checkpoint or a capture."),
        ("remove", lambda form: form.folder.clear(), "Choose a new folder."),
    ],
)
def test_wrong_input_is_explained_and_not_accepted(make, until, name, spoil, reason):
    dialog = show(make(name))
    assert dialog.default.isEnabled() and dialog.wrong.isHidden()
    if name == "remove":
        dialog.folder.setFocus()  # with the keyboard on the button, Return would be for Cancel
    spoil(dialog)
    dialog.check()
    assert dialog.wrong.isVisible() and dialog.wrong.text() == reason
    press(Qt.Key.Key_Return)
    assert is_open(dialog) and not make.answers


# --- messages -------------------------------------------------------------------------------------


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


# --- texts ----------------------------------------------------------------------------------------


def test_a_text_of_any_script_is_captured_by_ctrl_return(make, until):
    dialog = show(make("text"))
    text = "שלום 👩‍👩‍👧\nzwei"
    dialog.edit.setPlainText(text)
    press(Qt.Key.Key_Return)
    assert is_open(dialog) and not make.answers  # a new line
    dialog.edit.setPlainText(text)
    press(Qt.Key.Key_Control, Qt.KeyboardModifier.ControlModifier)
    assert is_open(dialog)  # Ctrl alone, on the way to Ctrl+A
    press(Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    until(lambda: not is_open(dialog))
    assert make.answers == [(text, "")]


def test_a_long_text_is_complete_though_only_its_beginning_is_shown(program):
    """Laying out 9 MB would stop the window for seconds."""
    answers = []
    dialog = TextDialog(program.frame, "before", None, then=lambda *texts: answers.append(texts))
    dialog.open()
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
    again = TextDialog(program.frame, pasted, None)
    again.open()
    again.clear.click()
    again.check()
    assert again.edit.text() == "" and not again.edit.isReadOnly() and not again.clear.isVisible()


# --- preferences ----------------------------------------------------------------------------------


@pytest.fixture
def preferences(opened):
    opened.frame.activateWindow()
    QTest.keyClick(opened.frame, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    (dialog,) = opened.frame.findChildren(Preferences)
    yield dialog
    dialog.reject()


def test_a_choice_acts_at_once_and_is_kept(opened, preferences):
    control = preferences.controls["theme"]
    QTest.keyClick(control, Qt.Key.Key_D)  # one key: a box forgets the last after 400 ms
    assert theme.current().dark and settings.load().theme == "dark"
    palettes = preferences.controls["palette"]
    palettes.setCurrentIndex(palettes.findData("magma"))
    assert opened.session.display.palette == settings.load().palette == "magma"
    QTest.keyClick(preferences.controls["restore"], Qt.Key.Key_Space)
    assert not settings.load().restore
    preferences.reset()
    assert settings.load() == Settings()
