"""A pane at work: a bar, then words and Stop; what is stopped says so and can go on."""

import threading
import time
from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz.core import progress
from hgviz.gui.view import View
from hgviz.gui.widgets import label
from hgviz.session import Session
from tests.gui.screen import showing


class Slow(View):
    """Draws a letter a step; `go` is how many it may."""

    title = "Slow"
    needs = ("text",)

    def __init__(self):
        super().__init__()
        self.go, self.seen, self.asked_for = 2, "", 0
        self.words = label("", kind="")
        self.words.setParent(self.content)

    def request(self, session):
        self.asked_for += 1
        return self._letters

    def _letters(self):
        for at in range(4):
            while at >= self.go:
                progress(at, 4, "", "abcd"[:at] or None)
                time.sleep(0.005)
            progress(at + 1, 4, "letters", "abcd"[: at + 1])
        return "abcd"

    def draw(self, result):
        self.seen = result


@pytest.fixture
def slow(app):
    """A slow view that was shown a moment ago."""
    with showing(Slow, Session(), 500, 300, visible=False) as view:
        view.show()
        yield view


def test_work_that_is_stopped_can_be_resumed(slow, until):
    until(lambda: slow._busy.told.isVisible())
    assert slow._busy.button.text() == "Stop" and slow.seen == "ab"
    QTest.keyClick(slow._busy.button, Qt.Key.Key_Space)
    assert slow._busy._words.full == "Stopped at 50 %: partial result"
    assert slow._busy.button.text() == "Resume" and slow.seen == "ab"
    slow.go = 4
    QTest.mouseClick(slow._busy.button, Qt.MouseButton.LeftButton)
    until(lambda: slow.seen == "abcd")
    until(lambda: slow._busy.told.isHidden())
    assert slow.asked_for == 2


class Late(View):
    """Says which B it was asked for, and which there is when that is drawn."""

    title = "Late"
    needs = ("capture_b",)

    def __init__(self):
        super().__init__()
        self.reading, self.pairs = threading.Event(), []

    def request(self, session):
        return partial(self._read, session.capture_b)

    def _read(self, beside):
        progress(0, 1)
        self.reading.set()
        return beside

    def draw(self, result):
        self.pairs.append((result, self.session.capture_b))


def test_the_answer_about_an_old_b_is_not_drawn_beside_the_new_one(app, until):
    session, first, then = Session(), object(), object()
    session.put(capture_b=first)
    with showing(Late, session, visible=False) as view:
        view.show()
        view._ask()
        assert view.reading.wait(5)
        time.sleep(0.05)  # what was read is on its way to this thread, which has not looked yet
        session.put(capture_b=then)
        until(lambda: view.pairs)
        assert view.pairs == [(then, then)]


class Endless(View):
    """Works until it is stopped."""

    needs = ("text",)
    lane = "facts"

    def request(self, session):
        return self._work

    def _work(self):
        while True:
            time.sleep(0.001)
            progress(0, 1)

    def draw(self, result):
        raise AssertionError("it never comes to an end")


def test_the_work_of_a_hidden_view_is_dropped_once_its_question_is_stale(app, until):
    session = Session()
    with showing(Endless, session, visible=False) as view:
        view.show()
        facts = view._lanes.facts
        until(lambda: facts.jobs)
        view.hide()
        assert facts.jobs  # leaving for a moment loses nothing
        session.put(text="another")
        until(lambda: not facts.jobs)
        view.show()
        until(lambda: facts.jobs)
