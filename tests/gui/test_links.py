"""The look Links: what it shows and says, several queries and heads, any text."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, Selection
from hgviz.figures import labels
from hgviz.figures.output import compose
from hgviz.gui import links as curve
from hgviz.gui import theme
from hgviz.gui.links import KEY, QUERY, LinksView, end_label
from hgviz.maps import LazyMap, with_statistics
from hgviz.maps.links import link_side
from hgviz.session import Session
from tests.gui import kinds
from tests.gui.screen import picture, session_of, showing
from tests.making import make_capture

pytestmark = pytest.mark.usefixtures("app")


@pytest.fixture(scope="module")
def words():
    """An encoder on word pieces."""
    return kinds.bert()


def at(view, side, place):
    """The middle of a unit on screen."""
    return view.canvas.plan.box(side, place).center()


def mouse(view, kind, spot, keys=Qt.KeyboardModifier.NoModifier):
    button = Qt.MouseButton.LeftButton
    event = QMouseEvent(kind, spot, view.canvas.viewport().mapToGlobal(spot), button, button, keys)
    QApplication.sendEvent(view.canvas.viewport(), event)


def click(view, side, place, keys=Qt.KeyboardModifier.NoModifier):
    spot = at(view, side, place)
    mouse(view, QEvent.Type.MouseButtonPress, spot, keys)
    mouse(view, QEvent.Type.MouseButtonRelease, spot, keys)
    view.settle()


def press(view, key, keys=Qt.KeyboardModifier.NoModifier):
    QApplication.sendEvent(view.canvas, QKeyEvent(QEvent.Type.KeyPress, key, keys))
    view.settle()


def links(view):
    return view.data.links


@pytest.fixture
def view(words):
    """The links of a query of head 1.2."""
    with showing(LinksView, session_of(words, 1, 2, 4), 704, 700) as view:
        yield view


def test_the_strongest_keys_of_the_query_are_linked_and_copied_with_their_weights(view, words):
    row = words.maps[1].read(2)[4]
    (strand,) = links(view).strands[4]
    assert strand.keys.tolist() == np.argsort(-row, kind="stable")[:5].tolist()
    assert view.head.title.text() == "Head 1.2"
    assert "5 links with" in view.sentence.full and "of the weight" in view.sentence.full
    titles, *rows = view.as_table()
    weights = {int(one[titles.index("Key position")]): float(one[-1]) for one in rows}
    assert weights == pytest.approx({key: row[key] for key in strand.keys.tolist()})


def test_a_click_chooses_with_ctrl_one_more_with_shift_all_between(view, words):
    session = view.session
    click(view, QUERY, 7)
    assert session.selection.query == 7 and sorted(links(view).strands) == [7]
    click(view, QUERY, 3, Qt.KeyboardModifier.ControlModifier)
    assert session.selection.query == 3 and sorted(links(view).strands) == [3, 7]
    assert view.head.note.full == "2 tokens"
    whole = words.maps[1].read(2)
    np.testing.assert_allclose(links(view).joint[0], whole[[3, 7]].mean(0), rtol=1e-6)
    click(view, QUERY, 7, Qt.KeyboardModifier.ControlModifier)
    assert sorted(links(view).strands) == [3]
    click(view, QUERY, 6, Qt.KeyboardModifier.ShiftModifier)
    assert sorted(links(view).strands) == [3, 4, 5, 6] and session.selection.query == 3
    click(view, KEY, 9)
    assert session.selection.key == 9 and view.canvas.plan.scene.key == 9


def test_dragging_chooses_several_and_another_pane_one(view):
    mouse(view, QEvent.Type.MouseButtonPress, at(view, QUERY, 5))
    for place in (6, 8):
        mouse(view, QEvent.Type.MouseMove, at(view, QUERY, place))
    mouse(view, QEvent.Type.MouseButtonRelease, at(view, QUERY, 8))
    view.settle()
    assert sorted(links(view).strands) == [5, 6, 7, 8]
    view.session.select(query=2)
    view.settle()
    assert sorted(links(view).strands) == [2]


def test_keys_move_the_query_along_the_text_and_escape_shows_all(view, words):
    session = view.session
    press(view, Qt.Key.Key_Down)
    assert session.selection.query == 5
    press(view, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    assert sorted(links(view).strands) == [4, 5]
    press(view, Qt.Key.Key_Right)
    assert session.selection.key is not None
    press(view, Qt.Key.Key_Escape)
    assert session.selection.query is None
    assert len(links(view).strands) == words.maps[1].shape[1]
    assert view.head.note.full == "every query in view"


def test_the_pointer_shows_another_querys_links_and_who_looks_at_a_key(view):
    session = view.session
    before = picture(view.canvas)
    mouse(view, QEvent.Type.MouseMove, at(view, QUERY, 8))
    assert session.hover.query == 8
    view.settle()
    assert sorted(view.data.hot.strands) == [8] and sorted(links(view).strands) == [4]
    assert view.sentence.full.startswith(f"“{end_label(links(view).queries, 8)}”: ")
    assert (picture(view.canvas) != before).any()
    key = int(links(view).strands[4][0].keys[0])
    mouse(view, QEvent.Type.MouseMove, at(view, KEY, key))
    assert session.hover.key == key and session.hover.query == 4
    QApplication.sendEvent(view.canvas.viewport(), QEvent(QEvent.Type.Leave))
    assert session.hover is None and view.canvas.hot is None


def test_several_heads_have_a_colour_each_or_are_one(view):
    mean = view.bar.toggles["mean"]
    assert not mean.isVisible() and not view.legend.isVisible()
    view.bar.heads.setCurrentIndex(1)
    view.settle()
    assert mean.isVisible() and len(links(view).heads) == 6
    assert [one.name for one in view.canvas.plan.scene.colours] == [f"1.{n}" for n in range(6)]
    assert len({one.above.name() for one in view.canvas.plan.scene.colours}) == 6
    assert all(one.above.name() in view.legend.text() for one in view.canvas.plan.scene.colours)
    view.bar.heads.setCurrentIndex(2)
    mean.setChecked(True)
    view.settle()
    assert view.head.title.text() == "18 heads: mean" and links(view).single
    assert not view.legend.isVisible()


def test_heads_are_chosen_by_number_and_wrong_numbers_are_named(view):
    view.bar.heads.setCurrentIndex(3)
    for text, heads in (("2.*,1.0", 7), ("  ", 1), ("9.9", 0), ("0.1", 1)):
        view.bar.named.setText(text)
        view.bar.named.editingFinished.emit()
        view.settle()
        assert view.bar.isVisible() and view.canvas.isVisible() == (heads > 0)
        if heads:
            assert len(links(view).heads) == heads and view.data.error is None
        else:
            assert view.data.error.what.startswith("this model has no head 9.9: ")
            assert view.figure(view.session) is None


def test_tokens_merge_into_words_and_special_tokens_can_be_hidden(view, words):
    session = view.session
    many = len(links(view).keys)
    view.bar.toggles["words"].setChecked(True)
    view.settle()
    merged = [end_label(links(view).keys, at) for at in range(len(links(view).keys))]
    assert len(merged) < many and "unforgettable" in merged
    view.bar.toggles["special"].setChecked(False)
    view.settle()
    keys = links(view).keys
    assert "[CLS]" not in [end_label(keys, at) for at in range(len(keys))]
    assert "on special tokens, hidden" in view.sentence.full
    session.select(query=0)
    view.settle()
    assert view.sentence.full.startswith("The query is a special token")


def test_values_are_offered_where_they_were_kept(words):
    norms = np.full((6, words.maps[0].shape[2]), 2.0, np.float32)
    maps = tuple(LazyMap(replace(m.factors, value_norms=norms), m.heads) for m in words.maps)
    with showing(LinksView, session_of(replace(words, maps=maps), 1, 2, 4), 704, 700) as view:
        plain, values = links(view).strands[4][0], view.bar.toggles["values"]
        values.setChecked(True)
        view.settle()
        assert (links(view).strands[4][0].weights == 2 * plain.weights).all()
        view.session.put(capture=words)  # the next capture has none
        view.settle()
        assert not values.isEnabled() and "capture the text again" in values.toolTip()
        assert view.data.error is not None and not view.canvas.isVisible()


def test_weights_below_zero_are_dashed_in_another_hue_and_a_head_that_is_off_says_so(words):
    signed = kinds.bert(activations="ymish")
    with showing(LinksView, session_of(signed, 1, 2, 4), 704, 700) as view:
        assert links(view).signed and "dashed: below zero" in view.sentence.full
        (head,) = view.canvas.plan.scene.colours
        assert head.above != head.below
        view.session.put(capture=replace(words, off=frozenset({HeadId(1, 2)})))
        view.session.put(selection=Selection(1, 2, 4))
        view.settle()
        assert view.sentence.full == "Head 1.2 is switched off."
        assert view.canvas.plan.scene.colours[0].off


CAPTURES = {
    "hourglass": lambda: make_capture("The sand runs down. " * 3, heads=2),
    "two texts": kinds.translator,
    "states": kinds.listener,
    "slots": kinds.yubert,
    "one token": lambda: make_capture("x", strides=(1,), heads=1),
    "signed": lambda: kinds.bert(activations=kinds.SIX),
    "pair": lambda: kinds.bert(pair=kinds.PAIR),
    "cjk": lambda: make_capture("沙漏读字。모래", strides=(1, 2), heads=2),
    "hostile": lambda: make_capture("a\u202eb\x00<b>$x_1$\n\t\u200f\U0001f600 ", (1,), 1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dark"), [*((name, False) for name in CAPTURES), ("signed", True)]
)
def test_any_capture_is_shown(name, dark, app):
    theme.apply(app, dark=dark)
    capture = CAPTURES[name]()
    session = session_of(capture, len(capture.maps) - 1, 0, 0)
    with showing(LinksView, session, 420, 300) as view:
        for layer in {0, len(capture.maps) // 2, len(capture.maps) - 2} - {-1}:
            session.select(layer=layer)
            view.settle()
            assert view.data.error is None and view.canvas.isVisible()
        view.bar.toggles["words"].setChecked(True)
        view.settle()
        assert picture(view.canvas).std() > 1
        view.bar.heads.setCurrentIndex(2)  # all heads of one query, then one head of all
        view.settle()
        drawn = [view.figure(session)]
        view.show_all()
        view.settle()
        view.bar.heads.setCurrentIndex(0)
        view.settle()
        drawn.append(view.figure(session))
        with labels.figure_settings():
            assert all(compose(spec, capture).height > 0 for spec in drawn)


def test_nothing_captured_is_said():
    with showing(LinksView, Session(), 704, 700) as view:
        assert view.empty[0] == "No links to show yet"
    partial = kinds.bert()
    partial = replace(partial, maps=(*partial.maps[:2], None))
    with showing(LinksView, session_of(partial, 2, 0, 1), 704, 700) as view:
        assert view.empty[0] == "Layer 2 is not captured yet"


def test_long_texts_are_read_where_they_are_in_view():
    capture = make_capture("The sand runs down and down. " * 60, strides=(1,), heads=1)
    session = session_of(capture, 0, 0, 900)
    with showing(LinksView, session, 704, 500) as view:
        first, stop = view.canvas.in_view()
        assert first <= 900 < stop and stop - first < 60  # it scrolled there
        QApplication.processEvents()
        assert view.canvas.verticalScrollBar().isVisible()
        view.show_all()
        view.settle()
        known = links(view).strands.keys()
        assert len(known) < 100 and set(range(*view.canvas.in_view())) <= known
        bar = view.canvas.verticalScrollBar()
        bar.setValue(0)
        view.settle()
        assert set(range(*view.canvas.in_view())) <= links(view).strands.keys()
        session.select(query=1700)
        view.settle()
        assert view.canvas.in_view()[0] <= 1700 < view.canvas.in_view()[1]


@pytest.mark.parametrize("way", [Qt.Key.Key_Up, Qt.Key.Key_Down, None])
def test_one_key_or_a_click_goes_to_a_far_key_and_the_page_says_which(way):
    capture = make_capture("The sand. " + "runs down and down and " * 40, strides=(1,), heads=6)
    factors = capture.maps[0].factors
    factors = replace(factors, rule=replace(factors.rule, causal=False))
    every = LazyMap(with_statistics(factors), tuple(range(6)))
    capture = replace(capture, maps=(every, *capture.maps[1:]))
    with showing(LinksView, session_of(capture, 0, 2, 450), 704, 400) as view:
        view.bar.limit.setCurrentIndex(2)
        view.settle()
        far_keys = view.canvas.plan.far_keys()
        far = next(one for one in far_keys if one.before == (way != Qt.Key.Key_Down))
        words = picture(view.canvas)[
            int(far.box.top()) + 3 : int(far.box.bottom()) - 3, int(far.box.right()) - 50 :
        ]
        assert (np.ptp(words, axis=(0, 1)) > 60).any()  # the keys are written
        if way is None:
            mouse(view, QEvent.Type.MouseButtonPress, far.box.center())
            view.settle()
        else:
            press(view, way, Qt.KeyboardModifier.ControlModifier)
        first, stop = view.canvas.plan.shown(KEY)
        assert first <= far.place < stop and view.canvas.plan.scene.key == far.place
        assert view.session.selection.key == links(view).keys.token(far.place)


def test_a_key_chosen_elsewhere_scrolls_into_view():
    capture = make_capture("The sand runs down and down. " * 40, strides=(1,), heads=1)
    with showing(LinksView, session_of(capture, 0, 0, 900), 704, 400) as view:
        view.session.select(key=3)
        view.settle()
        assert view.canvas.plan.shown(KEY)[0] <= 3


def test_the_figure_has_the_queries_and_words_of_the_view(view, words):
    session = view.session
    click(view, QUERY, 7, Qt.KeyboardModifier.ControlModifier)
    view.bar.toggles["words"].setChecked(True)
    view.settle()
    spec = view.figure(session)
    assert spec.kind == "links" and spec.links == view.data.options
    assert spec.links.queries == (4, 7) and spec.links.words


def test_bytes_of_one_character_are_named_each():
    capture = make_capture("沙 a", strides=(1,), heads=1)
    side = link_side(capture, 0, "key", words=False, special=True)
    assert [end_label(side, at) for at in range(len(side))] == ["<E6>", "<B2>", "<99>", "·", "a"]


@settings(max_examples=40, deadline=None)
@given(*[st.floats(-5000, 5000)] * 2)
def test_the_part_of_a_curve_in_view_lies_on_the_curve(first, last):
    a, b = QPointF(40, first), QPointF(300, last)
    found = curve.visible_curve(a, b, 100.0, 500.0)
    if found is None:
        assert max(first, last) < 100 or min(first, last) > 500
        return
    ends = [found.elementAt(at) for at in range(4)]
    found = [QPointF(one.x, one.y) for one in ends]
    along = [one.y() for one in found]
    assert min(along) >= 100 - 1e-3 or min(first, last) >= 100 - 1e-3
    assert max(along) <= 500 + 1e-3 or max(first, last) <= 500 + 1e-3
    bend = QPointF(130, 0)
    ends = np.linspace(0, 1, 4001)
    points = np.array([(p.x(), p.y()) for p in map(_point(a, a + bend, b - bend, b), ends)])
    for one in (0.0, 0.3, 0.5, 0.9, 1.0):
        spot = _point(*found)(one)
        distance = np.hypot(*(points - [spot.x(), spot.y()]).T).min()
        assert distance <= 1e-3 * max(1.0, abs(last - first))


def _point(a, b, c, d):
    def point(t):
        s = 1 - t
        return a * s**3 + b * (3 * s * s * t) + c * (3 * s * t * t) + d * t**3

    return point


def test_the_actions_of_the_looks_switch_to_links_and_back(program, capture):
    program.session.put(capture=capture)
    program.commands.run("look_links")
    program.settle()
    assert program.session.look == "links"
    view = next(one for one in program.inspect.looks if one.name == "links")
    assert view.isVisible() and view.data is not None
    program.commands.run("look_map")
    assert program.session.look == "map" and not view.isVisible()
