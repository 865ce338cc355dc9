"""A pane at work: a bar, then words and Stop; what is stopped says so and can go on."""

import threading
import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz.core import Step
from hgviz.gui.jobs import Lanes
from hgviz.gui.view import View
from hgviz.gui.widgets import label
from hgviz.session import Session, Work


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
        return self._task()

    def _task(self):
        for at in range(4):
            while at >= self.go:
                yield Step(at, 4, "", "abcd"[:at] or None)
                time.sleep(0.005)
            yield Step(at + 1, 4, "letters", "abcd"[: at + 1])
        return "abcd"

    def draw(self, result):
        self.seen = result


@pytest.fixture
def slow(app):
    lanes, session, view = Lanes(), Session(), Slow()
    view.resize(500, 300)
    view.bind(session, lanes)
    view.show()
    yield view
    view.unbind()
    lanes.close()
    view.close()
    view.deleteLater()


def test_work_is_stopped_and_goes_on(slow, until):
    until(lambda: slow._busy.told.isVisible())
    assert slow._busy.button.text() == "Stop" and slow.seen == "ab"
    QTest.keyClick(slow._busy.button, Qt.Key.Key_Space)
    assert slow._busy._words.full == "Stopped at 50 %: this is a part of it"
    assert slow._busy.button.text() == "Go on" and slow.seen == "ab"
    slow.go = 4
    QTest.mouseClick(slow._busy.button, Qt.MouseButton.LeftButton)
    until(lambda: slow.seen == "abcd")
    until(lambda: slow._busy.told.isHidden())
    assert slow.asked_for == 2


def test_work_that_says_nothing_can_be_stopped_too(slow, until):
    slow.go = 0
    slow.refresh()
    until(lambda: slow._busy.told.isVisible())
    slow._busy.button.click()
    assert "nothing is drawn yet" in slow._busy._words.full


def test_short_work_shows_nothing(slow, until):
    slow.go = 4
    until(lambda: slow.seen == "abcd")
    assert slow._busy.told.isHidden()


class Late(View):
    """Says which B it was asked for, and which there is when that is drawn."""

    title = "Late"
    needs = ("beside",)

    def __init__(self):
        super().__init__()
        self.reading, self.pairs = threading.Event(), []

    def request(self, session):
        return self._task(session.beside)

    def _task(self, beside):
        yield Step(0, 1)
        self.reading.set()
        return beside

    def draw(self, result):
        self.pairs.append((result, self.session.beside))


def test_what_was_read_of_one_capture_is_not_drawn_beside_another(app, until):
    lanes, session, view = Lanes(), Session(), Late()
    first, then = object(), object()
    session.put(beside=first)
    view.bind(session, lanes)
    view.show()
    view._ask()
    assert view.reading.wait(5)
    time.sleep(0.05)  # what was read is on its way to this thread, which has not looked yet
    session.put(beside=then)
    until(lambda: view.pairs)
    assert view.pairs == [(then, then)]
    view.unbind()
    lanes.close()
    view.close()
    view.deleteLater()


class Patient(View):
    """Says what a head does, once that is measured."""

    title = "Patient"
    needs = ("facts", "work")
    lane = "here"
    empty = ("Not measured yet", "")

    def request(self, session):
        return self._task() if session.facts else None

    def _task(self):
        yield Step(0, 1)

    def draw(self, result):
        pass


def test_what_is_measured_within_a_second_is_not_said_to_be_missing(app, until):
    lanes, session, view = Lanes(), Session(), Patient()
    session.put(work=(Work("measure", "Measuring heads", state="running"),))
    view._patience.setInterval(200)
    view.bind(session, lanes)
    view.show()
    until(lambda: view._patience.isActive())
    assert not view.drawn and view._notice is None
    session.put(facts={"head": "what it does"})
    until(lambda: view.drawn)
    assert view._notice is None and not view._patience.isActive()
    session.put(facts={})
    until(lambda: view._notice is not None)
    assert view._notice.isVisible()
    view.unbind()
    lanes.close()
    view.close()
    view.deleteLater()


# --- a view that nobody sees keeps no lane busy ---------------------------------------------------


class Endless(View):
    """Works until it is stopped."""

    needs = ("text",)
    lane = "facts"

    def request(self, session):
        while True:
            time.sleep(0.001)
            yield Step(0, 1)

    def draw(self, result):
        raise AssertionError("it never comes to an end")


def test_what_a_hidden_view_works_on_is_dropped_once_it_is_of_what_was(app, until):
    session, lanes, view = Session(), Lanes(), Endless()
    view.bind(session, lanes)
    view.show()
    until(lambda: lanes.facts.jobs)
    view.hide()
    assert lanes.facts.jobs  # leaving for a moment loses nothing
    session.put(text="another")
    until(lambda: not lanes.facts.jobs)
    view.show()
    until(lambda: lanes.facts.jobs)
    view.unbind()
    lanes.close()
