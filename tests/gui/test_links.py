"""The look Links: what it shows and says, several queries and heads, any text."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, Selection
from hgviz.gui.links import KEY, QUERY, LinksView, end_label
from hgviz.maps import LazyMap, with_statistics
from tests.gui import kinds
from tests.gui.screen import picture, session_of, showing
from tests.making import make_capture

pytestmark = pytest.mark.usefixtures("app")

PLAIN, SHIFT, CONTROL = (getattr(Qt.KeyboardModifier, f"{name}Modifier")
                         for name in ("No", "Shift", "Control"))  # fmt: skip


@pytest.fixture(scope="module")
def words():
    """An encoder on word pieces."""
    return kinds.bert()


@pytest.fixture
def view(words):
    """The links of a query of head 1.2."""
    with shown(words, 1, 2, 4) as view:
        yield view


def shown(capture, *chosen, height=700):
    """The view of a capture with a head and a query chosen."""
    return showing(LinksView, session_of(capture, *chosen), 704, height)


def mouse(view, kind, spot, keys=PLAIN):
    kind, button = getattr(QEvent.Type, kind), Qt.MouseButton.LeftButton
    event = QMouseEvent(kind, spot, view.canvas.viewport().mapToGlobal(spot), button, button, keys)
    QApplication.sendEvent(view.canvas.viewport(), event)


def drag(view, side, *places, keys=PLAIN):
    """Press the mouse on a unit, move it over others, and let go."""
    spots = [view.canvas.plan.box(side, place).center() for place in places]
    mouse(view, "MouseButtonPress", spots[0], keys)
    for spot in spots[1:]:
        mouse(view, "MouseMove", spot)
    mouse(view, "MouseButtonRelease", spots[-1], keys)
    view.settle()


def press(view, key, keys=PLAIN):
    QApplication.sendEvent(view.canvas, QKeyEvent(QEvent.Type.KeyPress, key, keys))
    view.settle()


def queries(view):
    """The places of the queries that have links."""
    return sorted(view.links.strands)


def test_the_strongest_keys_of_the_query_are_linked_and_copied_with_their_weights(view, words):
    row = words.maps[1].read(2)[4]
    strongest = np.argsort(-row, kind="stable")[:5].tolist()
    assert view.head.title.text() == "Head 1.2"
    said = view.sentence.full
    assert "5 links with" in said and "of the weight, strongest “" in said
    titles, *rows = view.as_table()
    assert titles[2:4] == ["Key position", "Key"]
    assert {int(one[2]): float(one[-1]) for one in rows} == pytest.approx(
        {key: row[key] for key in strongest}
    )


def test_a_click_chooses_with_ctrl_one_more_with_shift_or_a_drag_all_between(view, words):
    session = view.session
    drag(view, QUERY, 7)
    assert session.selection.query == 7 and queries(view) == [7]
    drag(view, QUERY, 3, keys=CONTROL)
    assert session.selection.query == 3 and queries(view) == [3, 7]
    assert view.head.note.full == "2 tokens"
    assert view.figure(session).links.queries == (3, 7)
    drag(view, QUERY, 7, keys=CONTROL)
    assert queries(view) == [3]
    drag(view, QUERY, 6, keys=SHIFT)
    assert queries(view) == [3, 4, 5, 6] and session.selection.query == 3
    drag(view, KEY, 9)
    assert session.selection.key == 9 and view.canvas.plan.scene.key == 9
    drag(view, QUERY, 5, 6, 8)
    assert queries(view) == [5, 6, 7, 8]
    session.select(query=2)  # in another pane
    view.settle()
    assert queries(view) == [2]


def test_keys_move_the_query_along_the_text_and_escape_shows_all(view, words):
    session = view.session
    press(view, Qt.Key.Key_Down)
    assert session.selection.query == 5
    press(view, Qt.Key.Key_Up, SHIFT)
    assert queries(view) == [4, 5]
    press(view, Qt.Key.Key_Right)
    assert session.selection.key is not None
    press(view, Qt.Key.Key_Escape)
    assert session.selection.query is session.selection.key is None
    assert len(view.links.strands) == words.maps[1].shape[1]
    assert view.head.note.full == "all queries in view"


def test_the_pointer_shows_another_querys_links_and_who_looks_at_a_key(view):
    session, before, boxes = view.session, picture(view.canvas), view.canvas.plan.box
    mouse(view, "MouseMove", boxes(QUERY, 8).center())
    assert session.hover.query == 8
    view.settle()
    assert sorted(view.data.hot.strands) == [8] and queries(view) == [4]
    assert view.sentence.full.startswith(f"“{end_label(view.links.queries, 8)}”: ")
    assert (picture(view.canvas) != before).any()
    key = int(view.links.strands[4][0].keys[0])
    mouse(view, "MouseMove", boxes(KEY, key).center())
    assert (session.hover.query, session.hover.key) == (4, key)
    QApplication.sendEvent(view.canvas.viewport(), QEvent(QEvent.Type.Leave))
    assert session.hover is None and view.canvas.hot is None


def test_heads_are_chosen_by_number_and_wrong_numbers_are_named(view):
    view.bar.heads.setCurrentIndex(3)
    for text, heads in (("2.*,1.0", 7), ("  ", 1), ("9.9", None)):
        view.bar.named.setText(text)
        view.bar.named.editingFinished.emit()
        view.settle()
        assert view.canvas.isVisible() == (heads is not None)
        assert heads is None or len(view.links.heads) == heads
    assert view.error.text().startswith("This model has no head 9.9: ")
    assert view.figure(view.session) is view.as_table() is None


def test_values_are_offered_where_they_were_kept(words):
    norms = np.full((6, words.maps[0].shape[2]), 2.0, np.float32)
    maps = tuple(LazyMap(replace(m.factors, value_norms=norms), m.heads) for m in words.maps)
    with shown(replace(words, maps=maps), 1, 2, 4) as view:
        plain = view.links.strands[4][0].weights
        view.bar.toggles["values"].setChecked(True)
        view.settle()
        assert (view.links.strands[4][0].weights == 2 * plain).all()
        view.session.put(capture=words)  # the next capture has none
        view.settle()
        assert view.error.isVisible() and not view.canvas.isVisible()


def test_weights_below_zero_are_dashed_in_another_hue_and_a_head_that_is_off_says_so(words):
    with shown(kinds.bert(activations="ymish"), 1, 2, 4) as view:
        assert view.links.signed and "dashed: negative" in view.sentence.full
        (head,) = view.canvas.plan.scene.colours
        assert head.above != head.below
        view.session.put(capture=replace(words, off=frozenset({HeadId(1, 2)})))
        view.session.put(selection=Selection(1, 2, 4))
        view.settle()
        assert view.sentence.full == "Head 1.2 is switched off."
        assert view.canvas.plan.scene.colours[0].off


def test_long_texts_are_read_where_they_are_in_view():
    capture = make_capture("The sand runs down and down. " * 60, strides=(1,), heads=1)
    with shown(capture, 0, 0, 900, height=500) as view:
        canvas = view.canvas
        first, stop = canvas.in_view()
        assert first <= 900 < stop and stop - first < 60  # it scrolled there
        view.show_all()
        view.settle()
        assert len(queries(view)) < 100 and {*range(*canvas.in_view())} <= {*queries(view)}
        press(view, Qt.Key.Key_Home)
        assert canvas.in_view()[0] == 0 and {*range(*canvas.in_view())} <= {*queries(view)}
        view.session.select(query=1700)
        view.settle()
        assert canvas.in_view()[0] <= 1700 < canvas.in_view()[1]
        view.session.select(key=3)  # in another pane
        view.settle()
        assert canvas.plan.shown(KEY)[0] <= 3


@pytest.mark.parametrize("way", [Qt.Key.Key_Up, None])
def test_one_key_or_a_click_goes_to_a_far_key_and_the_page_says_which(way):
    capture = make_capture("The sand. " + "runs down and down and " * 40, strides=(1,), heads=6)
    factors = capture.maps[0].factors
    factors = replace(factors, rule=replace(factors.rule, causal=False))
    every = LazyMap(with_statistics(factors), tuple(range(6)))
    capture = replace(capture, maps=(every, *capture.maps[1:]))
    with shown(capture, 0, 2, 450, height=400) as view:
        view.bar.limit.setCurrentIndex(2)
        view.settle()
        far_keys = view.canvas.plan.far_keys()
        far = next(one for one in far_keys if one.before)
        if way is None:
            mouse(view, "MouseButtonPress", far.box.center())
            view.settle()
        else:
            press(view, way, CONTROL)
        first, stop = view.canvas.plan.shown(KEY)
        assert first <= far.place < stop and view.canvas.plan.scene.key == far.place
        assert view.session.selection.key == view.links.keys.token(far.place)
