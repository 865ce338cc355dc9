"""Another language: the window opens again in it, with what was open, in the same process."""

import signal

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from hgviz import settings
from hgviz.core import HeadId, Selection
from hgviz.gui import app as starting
from hgviz.gui import language
from hgviz.gui.keeping.closing import ClosingDialog
from hgviz.gui.keeping.preferences import Preferences
from hgviz.gui.window import Window


@pytest.fixture
def english():
    """English before and after, and Ctrl+C as it was."""
    interrupt = signal.getsignal(signal.SIGINT)
    yield
    language.choose("en")
    signal.signal(signal.SIGINT, interrupt)


def programs(monkeypatch):
    """The programs that come to be in windows, the newest last."""
    made = []
    furnish = starting.Starter.furnish

    def furnished(self):
        furnish(self)
        made.append(self.program)

    monkeypatch.setattr(starting.Starter, "furnish", furnished)
    return made


def choose(program, code):
    """A language in the preferences, as a person chooses one."""
    program.commands.run("preferences")
    control = program.frame.findChildren(Preferences)[-1].controls["language"]
    control.setCurrentIndex(control.findData(code))


def quiet(program):
    return not any(one.state in ("waiting", "running") for one in program.session.work)


class Walk(QTimer):
    """Steps of a person while the application runs: each is tried until it is done."""

    def __init__(self, *steps):
        super().__init__()
        self.left = [*steps]
        self.ticks = 0
        self.timeout.connect(self.tick)
        self.start(5)

    def tick(self):
        self.ticks += 1
        if self.ticks > 2000:
            QApplication.exit(3)
        elif self.left and self.left[0]() is not False:
            self.left.pop(0)


def test_the_window_comes_back_in_another_language(app, english, monkeypatch, tmp_path, kept):
    made, seen = programs(monkeypatch), {}

    def first():
        if not made or not quiet(made[0]) or made[0].session.capture is None:
            return False
        one = made[0]
        one.session.put(
            mode="follow", selection=Selection(1, 1, 5, 3), off=frozenset({HeadId(0, 0)})
        )
        seen["menu"] = one.frame.menuBar().actions()[0].text()
        seen["old"] = [one.frame, one.inspect.map, one.inspect.strip, one.status]
        seen["size"] = one.frame.size()
        choose(one, "ko")
        return True

    def second():
        if len(made) < 2 or not quiet(made[1]) or made[1].session.capture is None:
            return False
        one = made[1]
        if one.session.selection.query is None:
            return False
        seen["new"] = one.frame.menuBar().actions()[0].text()
        seen["gone"] = [isValid(old) for old in seen["old"]]
        seen["session"] = (
            one.session.capture.path,
            one.session.mode,
            one.session.selection,
            one.session.off,
        )
        seen["again"] = one.frame.size()
        seen["windows"] = [top for top in QApplication.topLevelWidgets() if isinstance(top, Window)]
        seen["title"] = one.frame.toolbar.finder.text()
        one.frame.close()
        return True

    walk = Walk(first, second)
    assert starting.window([kept]) == 0
    walk.stop()
    assert walk.left == []
    assert (seen["menu"], seen["new"]) == ("&File", "파일(&F)")
    assert seen["gone"] == [False] * 4
    assert len(seen["windows"]) == 1
    path, mode, chosen, off = seen["session"]
    assert (path, mode, chosen) == (str(kept), "follow", Selection(1, 1, 5, 3))
    assert off == frozenset({HeadId(0, 0)})
    assert seen["again"] == seen["size"]
    assert settings.load().language == "ko"


def test_what_would_be_lost_is_asked_about_first(opened, english, monkeypatch):
    asked = []
    monkeypatch.setattr("hgviz.gui.keeping.closing.losses", lambda *_: ("Something.",))
    choose(opened, "ko")
    QApplication.processEvents()
    asked = opened.frame.findChildren(ClosingDialog)[-1]
    assert opened.frame.isVisible() and not opened.frame.again
    asked.default.click()  # stay
    assert opened.frame.isVisible() and opened._open and not opened.frame.again
    opened._speak()
    opened.frame.findChildren(ClosingDialog)[-1]._confirm()
    assert opened.frame.again and not opened._open and not opened.frame.isVisible()


def test_the_language_at_hand_opens_nothing_again(opened, english):
    choose(opened, "en")
    QApplication.processEvents()
    assert opened.frame.isVisible() and opened._open
