"""The Compare page: its values as tables, and blinking."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStyle

from hgviz.core import HeadId, Selection
from hgviz.gui.compare import CompareView, NumbersView, TextsView
from hgviz.gui.sides import Sides, Told
from hgviz.session import Session
from tests.gui.compare.test_compare_rows import TEXT, session_of
from tests.gui.viewing import showing
from tests.making import make_capture

TOLD = Told("softmax", "ymish")


@pytest.fixture
def pair():
    """Two captures of one text, the second signed."""
    return make_capture(TEXT), make_capture(TEXT, seed=1, signed=True)


# --- values as tables -----------------------------------------------------------------------------


def test_the_maps_give_every_weight_on_screen(app, pair):
    a, b = pair
    with showing(CompareView, session_of(a, b, HeadId(1, 2)), 1600, 610) as view:
        header, *rows = view.as_table()
        assert header == ["Query", "Query text", "Key", "Key text", "A", "B", "A − B"]
        assert len(rows) == len(TEXT) * (len(TEXT) + 1) // 2  # a causal map
        mine, its = a.maps[1].read(2), b.maps[1].read(2)
        for query, asks, key, answers, *weights in (rows[0], rows[700], rows[-1]):
            cell = int(query), int(key)
            assert (asks, answers) == tuple(TEXT[one].replace(" ", "·") for one in cell)
            expected = mine[cell], its[cell], mine[cell] - its[cell]
            assert [float(one) for one in weights] == pytest.approx([float(x) for x in expected])


def test_from_afar_the_maps_give_the_largest_of_the_cells_of_a_pixel(app):
    a, b = (make_capture("sand " * 260, strides=(1,), heads=1, seed=seed) for seed in range(2))
    with showing(CompareView, session_of(a, b, query=3), 900, 420) as view:
        rows = view.as_table()[1:]
        whole = a.maps[0].read(0)
        query, _, key, _, weight, *_ = next(one for one in rows if ":" in one[0] and one[4])
        (top, bottom), (left, right) = (map(int, one.split(":")) for one in (query, key))
        assert float(weight) == pytest.approx(float(whole[top:bottom, left:right].max()))


def test_a_head_that_b_lacks_leaves_its_columns_empty(app):
    a, b = make_capture(TEXT), make_capture(TEXT, heads=2)
    with showing(CompareView, session_of(a, b, HeadId(0, 5)), 1600, 610) as view:
        first = view.as_table()[1]
        assert first[4] and first[5:] == ["", ""]
    with showing(TextsView, session_of(a, b, HeadId(0, 5)), 900, 190) as view:
        assert view.as_table()[1][3] and view.as_table()[1][4:] == ["", ""]


def test_the_text_gives_the_row_of_the_query(app, pair):
    with showing(TextsView, session_of(*pair), 1600, 190) as view:
        header, *rows = view.as_table()
        assert header == ["Key", "Key text in A", "Key text in B", "A", "B", "A − B"]
        assert len(rows) == len(TEXT) and rows[41][3:] == ["", "", ""]  # after query 40
        weights = pair[0].maps[0].read(0, (40, 41))[0]
        assert [float(one[3]) for one in rows[:41]] == pytest.approx(weights[:41].tolist())
        assert view.as_text() == view.words.text()


def test_the_numbers_give_both_heads_and_their_places(app, pair):
    with showing(NumbersView, session_of(*pair, HeadId(1, 1)), 1600, 108) as view:
        rows = view.as_table()[1:]
        assert len(rows) == 12 and rows[0][1:3] == ["A", "1.1"] and rows[1][1:3] == ["B", "1.1"]
        entropy = view.pairs["entropy"]
        assert float(rows[0][3]) == entropy._sides[0][1].value("entropy")
        assert f"place {rows[0][4]} of {rows[0][5]}" in entropy.words
        assert view.as_text().count("\n") == 5


def test_the_sides_say_what_they_are(app, pair):
    session = session_of(*pair)
    with showing(Sides, session, 900, 10) as view:
        assert [one[0] for one in view.as_table()] == ["Side", "A", "B"]
        session.put(beside=None)
        assert view.as_table() is None
        view.a.deleteLater()
        view.b.deleteLater()


def test_there_is_no_table_of_nothing(app):
    for kind in (CompareView, NumbersView, TextsView):
        with showing(kind, Session(), 900, 300) as view:
            assert view.as_table() is None


# --- motion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", [False, True])
def test_blinking_turns_when_asked_and_by_itself_only_where_things_may_move(
    app, pair, moves, monkeypatch
):
    hint = QStyle.StyleHint.SH_Widget_Animation_Duration
    with showing(CompareView, session_of(*pair), 1600, 610) as view:
        kind = type(view.trio.style())
        other = kind.styleHint
        monkeypatch.setattr(
            kind, "styleHint",
            lambda self, one, *rest: 200 * moves if one == hint else other(self, one, *rest),
        )  # fmt: skip
        view._choose_way("blink")
        assert view.trio._blinking.isActive() == moves
        first = [one.isVisible() for one in view.trio.panes]
        view._choose_way("blink")  # pressed once more
        assert [one.isVisible() for one in view.trio.panes][:2] == first[1::-1]
        view._choose_way("beside")
        assert not view.trio._blinking.isActive()


def test_blinking_hands_the_keyboard_on(app, pair):
    with showing(CompareView, session_of(*pair), 1600, 610) as view:
        view.activateWindow()
        a, b, _ = view.trio.panes
        a.setFocus()
        view._choose_way("blink")
        for one in (b, a, b):
            view.trio._swap()
            assert one.hasFocus() and one.isVisible()
        view._choose_way("beside")
        assert b.hasFocus() and a.isVisible()


def test_a_card_in_the_place_of_a_map_takes_no_keyboard(app):
    a, b = make_capture(TEXT), make_capture(TEXT, heads=2)
    session = session_of(a, b, HeadId(0, 5))
    with showing(CompareView, session, 1600, 610) as view:
        reached = [bool(one.focusPolicy() & Qt.FocusPolicy.TabFocus) for one in view.trio.panes]
        assert reached == [True, False, False]
        session.put(selection=Selection(0, 0, 40))
        view.settle()
        assert all(one.focusPolicy() & Qt.FocusPolicy.TabFocus for one in view.trio.panes)
