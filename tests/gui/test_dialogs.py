"""Dialogs: keys, focus, wrong input, preferences; search, help pages, the log."""

import ast
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl, qWarning
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLabel
from shiboken6 import isValid

import hgviz
from hgviz import settings
from hgviz.analysis.importance import MaskTrial
from hgviz.core import HeadId, HgvizError
from hgviz.errors import LabelError
from hgviz.files import resource
from hgviz.gui import dialogs, log, palette, theme
from hgviz.gui.across import ReachDialog, ReachRequest
from hgviz.gui.actions import ACTIONS
from hgviz.gui.dialogs import ErrorDialog, Form, MeasureDialog, Preferences, Question, TextDialog
from hgviz.gui.export import ExportDialog
from hgviz.gui.help import GUIDE, Explanation, find, linked, title, topics
from hgviz.gui.palette import LOCAL, CommandPalette, Entry
from hgviz.gui.removal import Removal, RemoveDialog
from hgviz.gui.sentences import measured
from hgviz.gui.sides import CompareDialog
from hgviz.gui.sources import shown_error
from hgviz.gui.view import View
from hgviz.gui.window import LETTERS
from hgviz.settings import Settings

ERROR = HgvizError(
    "this checkpoint could not be opened: config.json says dim 192; the weights say 256",
    "Set dim to 256, or choose another file",
    "tensor expected found",
)
LABELS = LabelError("unknown", ("good",), ("positive", "negative"), {"good": "positive"})

GUI = Path(hgviz.__file__).parent / "gui"

PRESSED = re.compile(r"\b(?:(?:Ctrl|Alt|Shift)\+)+(?:F\d+|PgUp|PgDown|[A-Za-z0-9]+|[.,?])")
# which group of LOCAL says what the keys of a class do
SAID = {
    "RowTable": "Tables",
    "ChartWidget": "Pruning curve",
    "FollowCanvas": "Follow",
    "HeadGrid": "Head grid",
    "MapCanvas": "Maps",
    "LinkCanvas": "Links",
    "ImageCanvas": "Images",
}


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
    "remove": lambda it, then: RemoveDialog(it.frame, removal_of(it.session.spec)),
    "compare": lambda it, then: CompareDialog(it.frame, it.session, {"/a/b": "b"}, "model"),
    "export": lambda it, then: ExportDialog(it.frame, it.session, it.lanes),
    "reach": lambda it, then: ReachDialog(it.frame, ReachRequest(("/a/m",), "A text.")),
}
ACCEPTED = (
    "error", "question", "activation", "write", "measure", "labels", "compare", "remove", "reach",
)  # fmt: skip


def removal_of(spec):
    return Removal("a", spec, frozenset({HeadId(0, 0)}), out="new")


def test_measuring_says_what_each_score_costs(opened):
    for seconds, costs in (
        (0.0, "about 2 evaluations|about 12 evaluations|about 143 evaluations"),
        (0.5, "about 1 s|about 6 s|about 72 s"),
    ):
        trial = MaskTrial(frozenset(), SimpleNamespace(asked="classes"), seconds=seconds)
        dialog = MeasureDialog(opened.frame, frozenset({"token_gradient"}), 24, trial)
        assert {*costs.split("|"), "measured"} <= {*texts(dialog)}


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


def texts(dialog):
    return [label.text() for label in dialog.findChildren(QLabel) if label.text()]


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


# --- search ---------------------------------------------------------------------------------------


@pytest.fixture
def finder(opened):
    one = CommandPalette(opened.frame, opened.session)
    one.open()
    yield one
    if isValid(one):
        one.close()


def shown(finder):
    return [entry for entry, _ in finder.found]


def test_every_action_head_and_setting_is_there(opened):
    found = palette.entries(opened.session)
    values = {kind: [one.value for one in found if one.kind == kind] for kind in
              ("action", "head", "setting")}  # fmt: skip
    assert set(values["action"]) == {one.name for one in ACTIONS} - {"find"}
    assert values["setting"] == [name for name, *_ in dialogs.offered()]
    assert set(values["head"]) == set(opened.session.spec.heads)


def test_the_words_of_the_field_find_what_they_mean_or_the_nearest(opened, finder):
    for query, kind, value in (
        ("previous token", "metric", "previous"),
        ("attention sink", "metric", "first"),
        ("export pdf", "action", "export"),
        ("font size", "setting", "interface_scale"),
        ("ablate", "action", "switch_head"),
    ):
        finder.field.setText(query)
        assert (kind, value) in [(one.kind, one.value) for one in shown(finder)[:4]], query
        assert finder.nothing.isHidden()
    facts = opened.session.facts
    for words, metric in (("previous", "previous"), ("sink", "first")):
        best = max(facts, key=lambda head, name=metric: facts[head].metrics.get(name, -1))
        finder.field.setText(words)
        line = next(one for one in shown(finder) if one.words.startswith("Best at"))
        assert line.value == best
        assert line.words.endswith(f": {best}, {measured(metric, facts[best].metrics[metric])}")
    for query, near in (("promps zzz", None), ("perplxity", "choose_data")):
        finder.field.setText(query)
        assert query in finder.nothing.text() and not finder.nothing.isHidden()
        assert 0 < len(shown(finder)) <= palette.NEAREST
        assert near is None or near in [one.value for one in shown(finder)]
        finder.field.setText("")
        assert finder.nothing.isHidden()


def test_typing_narrows_and_return_goes_to_the_head(opened, finder):
    QTest.keyClicks(finder.field, "head 5.1")
    assert shown(finder)[0].words == "Go to head 5.1"
    gone = []
    finder.chosen.connect(gone.append)
    QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert [(one.kind, one.value) for one in gone] == [("head", HeadId(5, 1))]
    assert not finder.isVisible()


def test_an_entry_leads_to_what_it_names(opened):
    session = opened.session
    for kind, value in (("head", HeadId(1, 1)), ("metric", "entropy"), ("action", "look_links")):
        opened.commands.run("find")
        finder = opened.frame.findChildren(CommandPalette)[-1]
        finder.chosen.emit(Entry("", "", kind=kind, value=value))
        finder.close()
    assert session.selection.head_id == HeadId(1, 1)
    assert (session.shade, session.look) == ("entropy", "links")


def test_what_cannot_be_done_says_why_and_does_nothing(finder):
    chosen = []
    finder.chosen.connect(chosen.append)
    for words, said in (("stop the model", "Nothing is running"), ("zoom in, zoom out", "Maps")):
        finder.field.setText(words)
        assert said in finder.list.item(0).text()
        QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert not chosen and finder.isVisible()


# --- keys -----------------------------------------------------------------------------------------


def test_every_class_that_handles_keys_has_a_group_in_the_list_of_keys():
    taking = {
        node.name
        for path in GUI.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(getattr(one, "name", "") == "keyPressEvent" for one in node.body)
    }
    assert taking == set(SAID)
    assert set(SAID.values()) <= {where for where, *_ in LOCAL}


# --- pages ----------------------------------------------------------------------------------------


def views():
    """Every kind of view that has a name of its own on screen."""
    found, left = [], [View]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if kind.title and kind.__module__.startswith("hgviz."):
            found.append(kind)
    return sorted(set(found), key=lambda kind: kind.__qualname__)


def test_every_view_has_a_page_of_help(program):
    assert not [kind for kind in views() if not find(kind.topic)]


def there(topic, link):
    """Whether a link of a page leads somewhere; the guide is only where it was written."""
    return linked(topic, link) == GUIDE or find(linked(topic, link)) is not None


def test_pages_link_to_pages_that_are_there_and_name_keys_of_actions_or_panes():
    known = {key for one in ACTIONS for key in one.keys}
    known |= {f"Alt+{letter}" for letter in LETTERS.values()}
    known |= {key for _, _, *keys in LOCAL for key in keys}
    for one in sorted(resource("help").glob("*.md")):
        text = one.read_text("utf-8")
        assert text.startswith("# ") and len(text.split()) >= 40, one
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert link.startswith("http") or there(one.stem, link), f"{one}: {link}"
        named = PRESSED.findall(text)
        pressed = {key for key in named if not key.endswith(("click", "drag", "wheel"))}
        assert pressed <= known, f"{one}: {pressed - known}"


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


@pytest.fixture
def logged(monkeypatch):
    """The log at work, and what it holds, with the hooks that Python has by itself."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    log.start()
    yield lambda: log.file().read_text("utf-8") if log.file().exists() else ""
    log.stop()


def surprise():
    try:
        raise ZeroDivisionError("nobody thought of this")
    except ZeroDivisionError as error:
        return error


def test_an_unforeseen_error_is_logged_with_its_traceback(logged, capfd):
    shown = shown_error(surprise())
    assert "nobody thought of this" in logged() and Path(__file__).name in logged()
    assert str(log.file()) in shown.do
    assert "nobody thought of this" in shown.what and Path(__file__).name in shown.details
    assert capfd.readouterr().err == ""


def test_hooks_write_and_say_what_they_said_before(logged, monkeypatch, capfd):
    error = surprise()
    sys.excepthook(type(error), error, error.__traceback__)
    qWarning("a word from Qt")
    other = ValueError("in another thread")
    threading.excepthook(threading.ExceptHookArgs((ValueError, other, None, None)))
    said = capfd.readouterr().err
    for words in ("nobody thought of this", "a word from Qt", "in another thread"):
        assert words in logged() and said.count(words) >= 1
    assert said.count("a word from Qt") == 1


def test_the_log_is_bounded(logged, monkeypatch):
    monkeypatch.setattr(log, "MOST", 2000)
    for _ in range(50):
        log.record(surprise())
    files = sorted(log.file().parent.iterdir())
    assert len(files) == log.KEPT + 1 and all(one.stat().st_size < 4000 for one in files)


def test_a_disk_that_refuses_is_no_error(monkeypatch, tmp_path, capfd):
    (tmp_path / "taken").write_text("a file where the folder should be")
    monkeypatch.setattr(log, "file", lambda: tmp_path / "taken" / "hgviz.log")
    log.start()
    log.record(surprise())
    log.stop()
    assert capfd.readouterr().err == ""
