"""Numbers and text of both sides, cell by cell, and what is said of them."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from hgviz.analysis.alignment import Alignment
from hgviz.analysis.meeting import Meeting
from hgviz.core import HeadId, Selection, finish
from hgviz.gui import compare, textrows, theme
from hgviz.gui.compare import NumbersView, Reader, TextsView, rows_of
from hgviz.gui.sentences import share
from hgviz.gui.sides import Told
from hgviz.gui.textrows import glyphs
from hgviz.gui.view import Notice
from hgviz.maps import Projected
from hgviz.session import Session
from hgviz.session.other import Other
from tests.gui.kinds import bert, gpt2, translator
from tests.gui.viewing import picture, showing
from tests.making import make_capture

TEXT = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
TOLD = Told("softmax", "ymish")

FIRST = HeadId(0, 0)


def pair_of(a, b, head=FIRST, other=None, query=40, key=None):
    """A row of two heads."""
    return textrows.read(Meeting.of(Alignment(a, b), head, other or head), query, key)


def session_of(a, b, head=FIRST, query=40, beside=None, kind="model"):
    """A session that compares two captures."""
    session = Session()
    session.put(capture=a, mode="compare")
    session.put(beside=b, other=Other(kind))
    session.put(selection=Selection(head.layer, head.head, query, beside=beside))
    return session


# --- a row of both --------------------------------------------------------------------------------


def test_on_one_text_a_row_is_that_of_the_map_and_the_difference_is_exact():
    a, b = make_capture(TEXT), make_capture(TEXT, seed=1, signed=True)
    pair = pair_of(a, b, HeadId(1, 2))
    mine, its = a.maps[1].read(2, (40, 41))[0], b.maps[1].read(2, (40, 41))[0]
    assert np.array_equal(pair.a.weights, mine) and np.array_equal(pair.b.weights, its)
    assert np.array_equal(pair.difference, mine - its) and pair.signed
    assert pair.query == 40 and not pair.a.seen[41:].any() and pair.a.seen[:41].all()
    assert [one.text for one in pair.names[0].glyphs(0, 9)] == [
        one.text for one in glyphs(a.prompt, 0, 9)
    ]


@pytest.mark.parametrize("heads", [(HeadId(0, 1), HeadId(5, 2)), (HeadId(5, 2), HeadId(0, 1))])
def test_of_two_levels_rows_are_those_of_the_maps_laid_on_tokens(heads):
    a = make_capture(TEXT)
    meeting = Meeting.of(Alignment(a, a), *heads)
    pair = textrows.read(meeting, 40, 7)
    for half, head, edge in ((pair.a, heads[0], "a"), (pair.b, heads[1], "b")):
        axes = [getattr(one, edge) for one in (meeting.rows, meeting.columns)]
        whole = Projected(a.maps[head.layer], *axes)
        assert np.array_equal(half.weights, whole.read(head.head, (40, 41))[0])
        assert half.weights.sum() == pytest.approx(1, abs=1e-5)
    assert len(pair.difference) == len(TEXT) and (pair.query, pair.key) == (40, 7)


def test_of_other_tokens_pieces_are_compared_and_what_only_one_has_is_told_apart():
    a, b = make_capture("Good old sea, good sea."), gpt2("Good old sea, bad sea.")
    meeting = Meeting.of(Alignment(a, b), HeadId(0, 0), HeadId(0, 0))
    pair = textrows.read(meeting, 10, None)
    rows = rows_of(pair, TOLD)
    assert (rows[0].there != rows[1].there).any() and rows[2].there.any()
    assert np.array_equal(rows[2].there, rows[0].there & rows[1].there)
    for names in pair.names:
        written = "".join(one.text for one in names.glyphs(0, len(meeting.columns)))
        assert written.replace("·", "").startswith("Goodoldsea,")
        assert (names.widths > 0).sum() == names.there.sum()


def test_a_row_that_b_lacks_is_shown_for_a_alone():
    a, b = make_capture("The old sea was wide."), make_capture("The sea was wide.")
    pair = pair_of(a, b, query=5)  # in "old"
    assert pair.b is None and pair.difference is None and pair.a.weights.sum() > 0.99
    rows = rows_of(pair, TOLD)
    assert rows[1].weights is None and "one side" in rows[2].told
    assert "B has no such row" in compare.sentence(pair, TOLD)


def test_bytes_of_one_character_share_what_is_written():
    text = "é한🙂 a"
    a = make_capture(text)
    names = pair_of(a, a, query=3).names[0]
    found = names.glyphs(0, len(a.prompt))
    assert [one.text for one in found] == ["é", "한", "🙂", "·", "a"]
    assert [(one.first, one.last) for one in found] == [(0, 2), (2, 5), (5, 9), (9, 10), (10, 11)]
    assert names.glyphs(6, 8)[0].first == 5


def test_a_text_of_one_letter_and_no_query_can_be_read():
    a = make_capture("a")
    assert pair_of(a, a, query=0).a.weights.tolist() == [1.0]
    blank = pair_of(a, a, query=None)
    assert blank.a is None and blank.row is None and compare.sentence(blank, TOLD) == ""
    assert compare.status(blank, TOLD) == ""


# --- in words -------------------------------------------------------------------------------------


def test_a_row_that_looks_at_one_key_is_said_so():
    pair = pair_of(make_capture(TEXT), make_capture(TEXT, seed=3, signed=True), query=60)
    stop = np.zeros(len(TEXT), np.float32)
    stop[29], stop[58] = 0.89, 0.11
    sides = np.where(np.arange(len(TEXT)) < 31, [(-1) ** n for n in range(len(TEXT))], 0)
    pair = replace(
        pair, a=replace(pair.a, weights=stop, signed=False),
        b=replace(pair.b, weights=(sides / 31).astype(np.float32), signed=True),
    )  # fmt: skip
    assert compare.sentence(pair, TOLD) == (
        "With softmax, “s” puts 89 % of its weight on the full stop after “sea”. With ymish, the "
        "row spreads over about 31 letters, and 48 % of its mass is negative; there it weighs the "
        "full stop −0.032."
    )
    even = replace(pair, a=replace(pair.a, weights=np.full(len(TEXT), 0.01, np.float32)), b=pair.a)
    assert "spreads over about 90 letters, with 1 % of its weight on “T” in “The”" in (
        compare.sentence(even, TOLD)
    )
    nothing = replace(pair, b=replace(pair.b, weights=np.zeros(len(TEXT), np.float32)))
    assert "With ymish, the row looks at nothing." in compare.sentence(nothing, TOLD)


def test_facts_of_a_row_are_closed_forms():
    uniform = compare.Facts.of(np.full(8, 1 / 8, np.float32))
    assert uniform.spread == pytest.approx(8) and uniform.share == pytest.approx(1 / 8)
    signed = compare.Facts.of(np.array([1, -1, 2, 0], np.float32))
    assert (signed.mass, signed.top, signed.share, signed.negative) == (4, 2, 0.5, 0.25)
    assert compare.Facts.of(np.zeros(3, np.float32)).mass == 0


def test_the_status_bar_says_what_a_cell_weighs_on_both_sides():
    a, b = make_capture(TEXT), make_capture(TEXT, seed=3, signed=True)
    pair = pair_of(a, b, query=60, key=29)
    said = compare.status(pair, TOLD).split("   ·   ")
    mine, its = float(pair.a.weights[29]), float(pair.b.weights[29])
    assert said[:2] == ["query 60 “s”", "key 29 “.”"]
    assert said[2].startswith("softmax ") and said[3].startswith("ymish ")
    assert said[4].startswith("difference ")
    if abs(mine - its) >= 0.001:
        assert float(said[4].split()[-1].replace("−", "-")) == pytest.approx(mine - its, abs=6e-4)


def test_what_models_say_of_the_text_is_told_where_there_are_logits():
    a, b = make_capture(TEXT), make_capture(TEXT, seed=1)
    said = compare.of_text(a, b, TOLD)
    assert said.startswith("This text: ") and " bits per byte with softmax, " in said
    assert "B kept no logits" in compare.of_text(a, replace(b, logits=None), TOLD)
    assert "A kept no logits" in compare.of_text(replace(a, logits=None), b, TOLD)
    bare = [replace(one, logits=None) for one in (a, b)]
    assert compare.of_text(*bare, TOLD) == ""
    assert compare.same(a, b) == "same text" and compare.same(a, bert()) == "two texts"
    assert compare.same(make_capture(TEXT), gpt2(TEXT)) == "same text, other tokens"


# --- the views ------------------------------------------------------------------------------------


def test_numbers_of_both_heads_stand_among_those_of_all(app):
    a, b = make_capture(TEXT), make_capture(TEXT, seed=1, signed=True)
    session = session_of(a, b, HeadId(1, 1))
    with showing(NumbersView, session, 1600, 108) as view:
        one = view.pairs["negative"]
        assert one.spoken(one._sides[0][1]) == "0 %"
        assert "%" in one.spoken(one._sides[1][1]) != "0 %"
        assert len(one._sides[0][1].values("entropy")) == 54
        view.pairs["entropy"].clearFocus()
        assert "all 54 self-attention heads; the dot: head 1.1" in view.head.note.full
        assert "A, head 1.1" in view.pairs["entropy"].toolTip()
        before = view.pairs["entropy"].spoken(one._sides[0][1])
        session.put(selection=Selection(0, 3, 40))  # known: drawn without being asked for
        assert view.pairs["entropy"]._sides[0][1].head == HeadId(0, 3)
        assert before != "–"
        mark = np.array(theme.current().mark.getRgb()[:3])
        assert (np.abs(picture(view).astype(int) - mark).max(-1) < 8).sum() > 100  # twelve dots


def test_numbers_of_a_head_that_b_lacks_say_so(app):
    a, b = make_capture(TEXT), make_capture(TEXT, heads=2)
    with showing(NumbersView, session_of(a, b, HeadId(0, 5)), 900, 108) as view:
        assert "B has no such head" in view.pairs["focus"].toolTip()
        view.pairs["entropy"].clearFocus()
        assert "54 self-attention" in view.head.note.full


def test_the_rows_of_text_take_clicks(app):
    a, b = make_capture(TEXT), make_capture(TEXT, seed=1)
    session = session_of(a, b)
    with showing(TextsView, session, 1600, 190) as view:
        rows = view.rows
        x = 122 + (rows.ruler.x(50) + rows.ruler.x(51)) / 2
        place = QPointF(x, rows.bands[1].center().y()).toPoint()
        QTest.mouseClick(rows, Qt.MouseButton.LeftButton, pos=place)
        assert session.selection.query == 50
        QTest.mouseClick(rows, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier, place)
        assert session.selection.key == 50
        view.settle()
        assert view._pair.query == view._pair.key == 50
        QTest.mouseMove(rows, place)
        assert view.words.text()


def test_a_click_in_cross_attention_chooses_the_key(app):
    a, b = translator(), translator(activations="ymish")
    layer = next(one.index for one in a.spec.layers if one.role == "cross")
    session = session_of(a, b, HeadId(layer, 0), query=3)
    with showing(TextsView, session, 1400, 190) as view:
        view.rows.queried.emit(5)
        assert session.selection.query == 3 and session.selection.key == 5


@pytest.mark.parametrize("size", [(1600, 190), (900, 158), (500, 164)])
def test_a_long_text_scrolls_to_the_query_under_its_overview(app, size):
    a = make_capture(TEXT * 6, strides=(1,))
    session = session_of(a, make_capture(TEXT * 6, strides=(1,), signed=True), query=400)
    with showing(TextsView, session, *size) as view:
        rows = view.rows
        assert rows.ruler.scrolls and 0 <= rows.ruler.x(400) <= rows.ruler.room
        before = rows.ruler.offset
        rows._slide(122.0)
        assert rows.ruler.offset < before
        assert rows.bands[-1].bottom() <= rows.height()


def test_texts_with_nothing_in_common_are_shown_and_said(app):
    a, b = make_capture("abcabc"), make_capture("xyzxyz")
    with showing(TextsView, session_of(a, b, query=3), 900, 190) as view:
        assert "none in common" in view.head.note.full
        assert "B has no such row" in view.words.text()
        assert view.rows.rows[2].told


def test_a_head_that_b_lacks_leaves_the_row_of_a(app):
    a, b = make_capture(TEXT), make_capture(TEXT, heads=2)
    with showing(TextsView, session_of(a, b, HeadId(0, 5)), 900, 190) as view:
        assert view.rows.rows[0].weights is not None and "no such head" in view.rows.rows[1].told
        assert "B has no such head" in view.words.text()


def test_layers_that_are_not_captured_yet_and_nothing_beside_are_no_error(app):
    a = make_capture(TEXT)
    part = replace(a, maps=(None, *a.maps[1:]))
    for one, other in ((part, a), (a, part), (part, part)):
        session = session_of(one, other)
        for kind in (TextsView, NumbersView):
            with showing(kind, session, 900, 190) as view:
                assert no_error(view)
                session.put(beside=None)
                view.settle()
                assert no_error(view)


def no_error(view):
    """Whether a pane shows its picture or its empty state: the notice of an error says neither."""
    return not any(one.isVisible() and one.said is None for one in view.findChildren(Notice))


def test_dark_and_light_are_drawn_differently(app):
    session = session_of(make_capture(TEXT), make_capture(TEXT, seed=1, signed=True))
    found = []
    for dark in (False, True):
        theme.apply(app, dark)
        with showing(TextsView, session, 900, 190) as view:
            found.append(picture(view))
    theme.apply(app, False)
    assert found[0].mean() > 150 > found[1].mean()


def test_the_reader_opens_a_meeting_once():
    a, b = make_capture(TEXT), make_capture(TEXT, seed=1)
    reader, session = Reader(), session_of(a, b)
    first = finish(reader.read(a, b, session.selection, TOLD, session.display))
    again = finish(reader.read(a, b, replace(session.selection, query=9), TOLD, session.display))
    assert again.pair.meeting is first.pair.meeting and again.of_text == first.of_text
    other = finish(reader.read(b, a, session.selection, TOLD, session.display))
    assert other.pair.meeting.a is b


def test_shares_are_whole_only_where_they_are():
    assert [share(one) for one in (0, 0.001, 0.52, 0.999, 1)] == [
        "0 %", "<1 %", "52 %", ">99 %", "100 %",
    ]  # fmt: skip
