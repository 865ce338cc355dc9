"""A view that nobody sees keeps no lane busy."""

from __future__ import annotations

import time

from hgviz.core import Step
from hgviz.gui.jobs import Lanes
from hgviz.gui.view import View
from hgviz.session import Session


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
