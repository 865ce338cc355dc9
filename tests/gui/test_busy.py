"""A pane at work: a bar, then words and Stop; what is stopped says so and can go on."""

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz.core import Step
from hgviz.gui.bridge import Lanes
from hgviz.gui.controls import label
from hgviz.gui.views.base import View
from hgviz.session import Session


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
    assert slow._busy._words.full == "Stopped at 50\u202f%: this is a part of it"
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
