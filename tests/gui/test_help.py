"""Search, help pages, the log, and the keys that they name."""

import ast
import re
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl, qWarning
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

import hgviz
from hgviz.core import HeadId
from hgviz.files import resource
from hgviz.gui import dialogs, log, palette
from hgviz.gui.actions import ACTIONS
from hgviz.gui.help import GUIDE, Explanation, find, linked, title, topics
from hgviz.gui.palette import LOCAL, CommandPalette, Entry
from hgviz.gui.sentences import measured
from hgviz.gui.sources import shown_error
from hgviz.gui.view import View
from hgviz.gui.window import LETTERS


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


@pytest.mark.parametrize(
    ("query", "kind", "value"),
    [
        ("previous token", "metric", "previous"),
        ("induction", "metric", "induction"),
        ("attention sink", "metric", "first"),
        ("export pdf", "action", "export"),
        ("theme", "setting", "theme"),
        ("font size", "setting", "interface_scale"),
        ("ablate", "action", "switch_head"),
        ("rollout", "action", "look_across"),
    ],
)
def test_the_words_of_the_field_find_what_they_mean(finder, query, kind, value):
    finder.field.setText(query)
    assert (kind, value) in [(one.kind, one.value) for one in shown(finder)[:4]]
    assert finder.nothing.isHidden()


@pytest.mark.parametrize("metric", ["previous", "induction", "first"])
def test_a_behaviour_finds_the_head_that_does_most_of_it(opened, finder, metric):
    facts = opened.session.facts
    best = max(facts, key=lambda head: facts[head].metrics.get(metric, -1))
    finder.field.setText({"first": "sink"}.get(metric, metric))
    line = next(one for one in shown(finder) if one.words.startswith("Best at"))
    assert line.value == best
    assert line.words.endswith(f": {best}, {measured(metric, facts[best].metrics[metric])}")


@pytest.mark.parametrize(
    ("query", "near"), [("qqqqqqq", None), ("promps zzz", None), ("perplxity", "choose_data")]
)
def test_where_nothing_matches_it_says_so_and_offers_the_nearest(finder, query, near):
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


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        (Entry("", "", kind="head", value=HeadId(1, 1)), "selection.head_id", HeadId(1, 1)),
        (Entry("", "", kind="metric", value="entropy"), "shade", "entropy"),
        (Entry("", "", kind="action", value="look_links"), "look", "links"),
    ],
)
def test_an_entry_leads_to_what_it_names(opened, entry, field, value):
    opened.commands.run("find")
    (finder,) = opened.frame.findChildren(CommandPalette)
    finder.chosen.emit(entry)
    finder.close()
    at = opened.session
    for name in field.split("."):
        at = getattr(at, name)
    assert at == value


def test_what_cannot_be_done_says_why_and_does_nothing(finder):
    chosen = []
    finder.chosen.connect(chosen.append)
    for words, said in (("stop the model", "Nothing is running"), ("zoom in, zoom out", "Maps")):
        finder.field.setText(words)
        assert said in finder.list.item(0).text()
        QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert not chosen and finder.isVisible()


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


def test_every_page_links_to_pages_that_are_there():
    for one in resource("help").glob("*.md"):
        text = one.read_text("utf-8")
        assert text.startswith("# ") and len(text.split()) >= 40, one
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert link.startswith("http") or there(one.stem, link), f"{one}: {link}"


def test_the_keys_that_pages_name_are_those_of_actions_or_panes():
    known = {key for one in ACTIONS for key in one.keys}
    known |= {f"Alt+{letter}" for letter in LETTERS.values()}
    known |= {key for _, _, *keys in LOCAL for key in keys}
    for one in sorted(resource("help").glob("*.md")):
        named = PRESSED.findall(one.read_text("utf-8"))
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
    assert "nobody thought of this" in logged() and "test_help.py" in logged()
    assert str(log.file()) in shown.do
    assert "nobody thought of this" in shown.what and "test_help.py" in shown.details
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
