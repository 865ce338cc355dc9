"""The Follow page in a real window: steps, keys, clicks, and what it paints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, finish
from hgviz.gui import theme
from hgviz.gui.follow import FollowView
from hgviz.session import Session
from tests.gui.viewing import picture, session_of, showing
from tests.making import make_capture


@pytest.fixture(autouse=True)
def dressed(app):
    return app


def press(view, key):
    event = QKeyEvent(QEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view.trail, event)


def click(view, x, y):
    button = Qt.MouseButton.LeftButton
    event = QMouseEvent(
        QEvent.Type.MouseButtonPress, QPointF(x, y), QPointF(x, y), button, button,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(view.trail.viewport(), event)


def test_it_says_which_letter_is_followed(capture):
    with showing(FollowView, session_of(capture, query=6), 1600, 900) as view:
        assert view._letter.text() == "u"
        assert view.head.note.full == "in hourglass (letter 6) down to the waist and back up"


def test_a_click_on_a_strip_chooses_the_letter(capture):
    session = session_of(capture)
    with showing(FollowView, session, 1600, 900) as view:
        strip = view.trail.story.course.strips[1]
        left, right = strip.cell(20)
        click(view, (left + right) / 2, strip.top + 5)
        assert session.selection.query == 40
        assert session.selection.head_id == HeadId(12, 5)


def test_a_click_on_a_head_selects_it(capture):
    session = session_of(capture)
    with showing(FollowView, session, 1600, 900) as view:
        strip, head = view.trail.story.course.strips[2], view.trail.looks[2].head
        click(view, strip.right - 10, strip.top - 30)
        assert session.selection.head_id == head


def test_arrows_move_the_letter_one_at_a_time(capture):
    session = session_of(capture, layer=5, query=60)
    with showing(FollowView, session, 1600, 900) as view:
        press(view, Qt.Key.Key_Right)
        assert session.selection.query == 61
        view.settle()
        press(view, Qt.Key.Key_Left)
        assert session.selection.query == 60


def test_the_keys_of_the_page_are_kept_from_the_shortcuts(capture):
    with showing(FollowView, session_of(capture), 1600, 900) as view:
        for key, kept in ((Qt.Key.Key_Right, True), (Qt.Key.Key_J, False)):
            event = QKeyEvent(QEvent.Type.ShortcutOverride, key, Qt.KeyboardModifier.NoModifier)
            event.ignore()
            QApplication.sendEvent(view.trail, event)
            assert event.isAccepted() == kept


def test_the_strongest_key_has_the_brightest_cell(capture):
    with showing(FollowView, session_of(capture), 1600, 900) as view:
        pixels = picture(view.trail.viewport()).astype(int)
        strip, look = view.trail.story.course.strips[4], view.trail.looks[4]
        left, _ = strip.cell(look.top[0][0])
        bright = pixels[int(strip.top) + 3, int(left) + 2]
        assert np.abs(bright - [253, 231, 37]).max() <= 3  # the end of viridis


def test_the_thread_is_orange_from_stage_to_stage(capture):
    with showing(FollowView, session_of(capture), 1600, 900) as view:
        pixels = picture(view.trail.viewport()).astype(int)
        mark = np.array(theme.current().mark.getRgb()[:3])
        for one in view.trail.story.course.crossings:
            x = (sum(one.thread[:2]) / 2 + sum(one.thread[2:]) / 2) / 2
            middle = pixels[int((one.top + one.bottom) / 2), int(x)]
            assert np.abs(middle - mark).max() < 25


def test_a_long_text_shows_a_window_around_the_letter():
    capture = make_capture("The hourglass was used at sea. " * 40)
    with showing(FollowView, session_of(capture, query=900), 900, 600) as view:
        first, last = view.trail.story.course.shown
        assert first <= 900 < last and last - first < 150


def test_a_low_window_scrolls(capture):
    with showing(FollowView, session_of(capture), 900, 500) as view:
        assert view.trail.verticalScrollBar().maximum() > 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("text", ["H", "Hi", "Ünï — 한 🙂 שלום\tx\n."])
def test_tiny_and_strange_texts_are_drawn(app, text, dark):
    theme.apply(app, dark)
    try:
        for signed in (False, True):
            capture = make_capture(text, signed=signed)
            with showing(FollowView, session_of(capture, query=0), 900, 600) as view:
                assert view.trail.story is not None
                picture(view.trail.viewport())
    finally:
        theme.apply(app, False)


def test_a_partial_capture_is_followed_as_far_as_it_goes(capture):
    part = replace(
        capture, maps=tuple(one if n < 6 else None for n, one in enumerate(capture.maps))
    )
    with showing(FollowView, session_of(part, layer=3), 1600, 900) as view:
        assert view.trail.looks[4].weights is None
        picture(view.trail.viewport())


def test_what_comes_of_a_capture_that_is_gone_is_drawn_as_its_own(capture):
    session = session_of(capture)
    with showing(FollowView, session, 1600, 890) as view:
        late = finish(view.request(session))
        session.put(capture=make_capture(strides=(1,)))
        view.draw(late)
        picture(view)
        assert len(view.trail.story.way) == len(late.looks)
        view.settle()
        assert view.trail.story.capture is session.capture


def test_without_a_capture_there_is_a_sentence():
    with showing(FollowView, Session(), 900, 600) as view:
        assert not view.content.isVisible()


def test_the_figure_is_of_all_levels_with_these_heads(capture):
    session = session_of(capture)
    with showing(FollowView, session, 1600, 900) as view:
        spec = view.figure(session)
        assert spec.kind == "levels" and spec.heads[-1] == HeadId(12, 5) and len(spec.heads) == 5


def test_pointing_at_a_cell_tells_its_weight(capture):
    with showing(FollowView, session_of(capture), 1600, 900) as view:
        strip, look = view.trail.story.course.strips[0], view.trail.looks[0]
        key, weight = look.top[0]
        assert view.trail._said(strip, key).endswith(f"{weight:.3f}")
        assert "not seen" in view.trail._said(strip, look.seen)
