"""The Follow page in a real window: steps, keys, clicks, and what it paints."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from hgviz.analysis.composition import rollout
from hgviz.core import HeadId, Prompt, Selection
from hgviz.gui import sentences, theme
from hgviz.gui.attribution import said
from hgviz.gui.follow import (
    ASIDE,
    FollowOptions,
    FollowRoom,
    FollowView,
    char_edges,
    follow,
    lay,
    quoted_token,
    window,
)
from hgviz.gui.layouts import stages
from hgviz.models.text import Bytes, Pieces
from tests.analysis.planting import funnel
from tests.gui.kinds import gpt2
from tests.gui.screen import picture, session_of, showing, shown
from tests.making import make_capture, make_spec
from tests.models.folders import byte_level
from tests.progress import steps_of

pytestmark = pytest.mark.usefixtures("app")


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


@pytest.fixture
def view(capture):
    with showing(FollowView, session_of(capture), 1600, 900) as view:
        yield view


def test_it_says_which_letter_is_followed(capture):
    with showing(FollowView, session_of(capture, query=6), 1600, 900) as view:
        assert view._letter.text() == "u"
        assert view.head.note.full == "in hourglass (letter 6) through the bottleneck and back"


def test_a_click_on_a_strip_chooses_the_letter(view):
    session = view.session
    strip = view.trail.story.course.strips[1]
    left, right = strip.cell(20)
    click(view, (left + right) / 2, strip.top + 5)
    assert session.selection.query == 40
    assert session.selection.head_id == HeadId(12, 5)


def test_a_click_on_a_head_selects_it(view):
    session = view.session
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


def test_the_strongest_key_has_the_brightest_cell(view):
    pixels = picture(view.trail.viewport()).astype(int)
    strip, look = view.trail.story.course.strips[4], view.trail.looks[4]
    left, _ = strip.cell(look.top[0][0])
    bright = pixels[int(strip.top) + 3, int(left) + 2]
    assert np.abs(bright - [253, 231, 37]).max() <= 3  # the end of viridis


def test_the_thread_is_orange_from_stage_to_stage(view):
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
    for signed in (False, True):
        capture = make_capture(text, signed=signed)
        with showing(FollowView, session_of(capture, query=0), 900, 600) as view:
            assert view.trail.story is not None
            picture(view.trail.viewport())


def test_a_partial_capture_is_followed_as_far_as_it_goes(capture):
    part = replace(capture, maps=(*capture.maps[:6], *[None] * 7))
    with showing(FollowView, session_of(part, layer=3), 1600, 900) as view:
        assert view.trail.looks[4].weights is None
        picture(view.trail.viewport())


def test_a_late_answer_is_drawn_with_its_own_capture(capture):
    session = session_of(capture)
    with showing(FollowView, session, 1600, 890) as view:
        late = view.request(session)()
        session.put(capture=make_capture(strides=(1,)))
        view.draw(late)
        picture(view)
        assert len(view.trail.story.way) == len(late.looks)
        view.settle()
        assert view.trail.story.capture is session.capture


def test_the_figure_is_of_all_levels_with_these_heads(view):
    session = view.session
    spec = view.figure(session)
    assert spec.kind == "levels" and spec.heads[-1] == HeadId(12, 5) and len(spec.heads) == 5


def test_pointing_at_a_cell_tells_its_weight(view):
    strip, look = view.trail.story.course.strips[0], view.trail.looks[0]
    key, weight = look.top[0]
    assert view.trail._said(strip, key).endswith(f"{weight:.3f}")
    assert "masked" in view.trail._said(strip, look.seen)


# --- where strips stand ---------------------------------------------------------------------------

SEA = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
CAPTURES = {
    strides: make_capture(SEA, strides=strides, heads=2)
    for strides in ((1,), (1, 2), (1, 2, 4), (1, 3, 6), (1, 2, 4, 12, 24))
}


@settings(deadline=None)
@given(
    strides=st.sampled_from(list(CAPTURES)),
    token=st.integers(0, len(SEA) - 1),
    width=st.integers(300, 2400),
    height=st.integers(300, 1400),
)
def test_strips_are_inside_apart_and_hold_the_letter(strides, token, width, height):
    capture = CAPTURES[strides]
    way = stages(capture.spec)
    room = FollowRoom(width, height)
    course = lay(capture, way, token, char_edges(capture), room)
    first, last = course.shown
    assert 0 <= first <= token < last <= len(SEA)
    assert first % strides[-1] == 0
    for above, below in zip(course.strips, course.strips[1:], strict=False):
        assert above.bottom + 80 < below.top
    assert course.together.bottom < course.height
    for strip, own in zip(course.strips, course.own, strict=True):
        assert room.left - 0.01 <= strip.left
        assert strip.right <= max(width - room.right, room.left + 80) + 0.01
        for (p, _, right), (q, left, _) in zip(strip.cells, strip.cells[1:], strict=False):
            assert q == p + 1 and left == pytest.approx(right)
        cell = strip.cell(own)
        assert cell is not None and cell[0] < cell[1]
        assert strip.at(sum(cell) / 2, strip.top + 1) == own


@settings(deadline=None)
@given(token=st.integers(0, len(SEA) - 1), width=st.integers(300, 2400))
def test_a_cell_spans_exactly_the_letters_it_stands_for(token, width):
    capture = CAPTURES[1, 2, 4]
    course = lay(capture, stages(capture.spec), token, char_edges(capture), FollowRoom(width, 800))
    for strip in course.strips:
        for position, left, right in strip.cells[1:]:
            start, end = capture.spans[strip.level][position]
            assert left == pytest.approx(strip.x(start))
            assert right == pytest.approx(strip.x(end))


def test_strips_are_centred_and_narrower_where_the_text_is_shorter():
    capture = CAPTURES[1, 2, 4]
    course = lay(capture, stages(capture.spec), 60, char_edges(capture), FollowRoom(1600, 858))
    middles = [(one.left + one.right) / 2 for one in course.strips]
    assert max(middles) - min(middles) < 1
    wide = [one.right - one.left for one in course.strips]
    assert wide[0] > wide[1] > wide[2] < wide[3] < wide[4]
    assert wide[1] == wide[3]
    assert course.outline[0] == (course.strips[0].right + ASIDE, course.strips[0].top - ASIDE)


def test_the_thread_joins_the_pooled_tokens_to_their_position_and_back():
    capture = CAPTURES[1, 2, 4]
    course = lay(capture, stages(capture.spec), 60, char_edges(capture), FollowRoom(1600, 858))
    top, first = course.crossings[0], course.strips[0]
    assert top.thread[:2] == (first.x(59), first.x(61))
    assert top.thread[2:] == course.strips[1].cell(30)
    assert top.others is None
    up, two = course.crossings[2], course.strips[3]
    assert up.thread == (*course.strips[2].cell(15), *two.cell(30))
    assert up.others[2:] == (two.cell(30)[0], two.cell(31)[1])


def test_lines_join_the_positions_that_meet():
    capture = CAPTURES[1, 2]
    course = lay(capture, stages(capture.spec), 40, char_edges(capture), FollowRoom(1600, 858))
    down, up = course.crossings
    outer, inner = course.strips[0], course.strips[1]
    for number, (above, below, known) in enumerate(down.lines):
        end = capture.spans[1][number][1]
        assert (above, below) == (outer.x(end), inner.cell(number)[1])
        assert known == (end <= 41)
    for number, (above, below, _) in enumerate(up.lines):
        assert (above, below) == (inner.cell(number)[0], outer.x(2 * number))


@settings(deadline=None)
@given(st.integers(1, 400), st.floats(10, 500), st.sampled_from([1, 2, 4, 24]), st.data())
def test_a_window_holds_the_letter_and_starts_on_a_whole_position(tokens, fits, unit, data):
    token = data.draw(st.integers(0, tokens - 1))
    first, last = window(np.arange(tokens + 1.0), token, fits, unit)
    assert 0 <= first <= token < last <= tokens
    assert first % unit == 0
    if tokens <= fits:
        assert (first, last) == (0, tokens)


def test_word_pieces_are_as_wide_as_their_words():
    base = make_capture("abcd")
    pieces = ("The", "hourglass", "was", "extraordinarily-long")
    spans, at = [], 0
    for one in pieces:
        spans.append((at, at + len(one)))
        at += len(one) + 1
    prompt = Prompt(" ".join(pieces), np.arange(4), pieces, np.array(spans))
    assert char_edges(replace(base, prompt=prompt)).tolist() == [0, 4, 14, 18, 31]
    assert char_edges(base).tolist() == [0, 1, 2, 3, 4]


def test_stages_say_in_words_what_happens():
    spec = make_spec((1, 2, 4), 6)
    way = stages(spec)
    assert [one.title(spec, "letter") for one in way] == [
        "Full resolution",
        "Shortened, two letters to one",
        "Shortened, four letters to one (bottleneck)",
        "Upsampled to two letters",
        "Upsampled to full resolution",
    ]
    assert way[0].note(spec, 136) == "136 positions, layers 0 and 1"
    assert way[1].note(spec, 68) == "68 positions, layer 3, a quarter of the cost"
    assert way[2].note(spec, 34) == "34 positions, layers 5 to 7, a sixteenth of the cost"
    assert way[3].note(spec, 68) == "68 positions, layer 9"
    assert [one.entries for one in way] == [(), (2,), (4,), (8,), (10,)]
    odd = make_spec((1, 3, 24), 2)
    assert [one.title(odd, "token") for one in stages(odd)][1:3] == [
        "Shortened, three tokens to one",
        "Shortened, 24 tokens to one (bottleneck)",
    ]


def test_a_model_without_levels_is_followed_in_groups_of_layers():
    spec = make_spec((1,), 2)
    layers = tuple(replace(spec.layers[0], index=n) for n in range(12))
    way = stages(replace(spec, layers=layers))
    assert [one.layers for one in way] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]
    assert way[0].title(spec, "token") == "Layers 0 to 2"
    assert len(stages(replace(spec, layers=layers[:1]))) == 1


# --- what is said of a letter ---------------------------------------------------------------------

WISH = FollowOptions(Selection(12, 5, 60), {0: HeadId(12, 5), 1: HeadId(9, 4), 2: HeadId(5, 1)}, {})


@pytest.fixture(scope="module")
def sea():
    return make_capture(SEA)


def trace(sea, token=60, **wish):
    return follow(sea, stages(sea.spec), token, replace(WISH, **wish), str)


def test_each_stage_reads_the_row_of_the_letter(sea):
    found = trace(sea)
    for stage, look in zip(stages(sea.spec), found.looks, strict=True):
        row = sea.position(stage.level, 60)
        whole = sea.maps[look.head.layer].read(look.head.head)
        assert np.allclose(look.weights, whole[row], atol=1e-6)
        assert look.seen == row + 1
        best = [key for key, _ in look.top]
        assert best == list(np.argsort(-whole[row], kind="stable")[: len(best)])
        assert look.most == pytest.approx(whole[row].max(), abs=1e-6)


def test_a_stage_shows_the_selected_head_or_the_one_last_opened_there(sea):
    heads = [look.head for look in trace(sea).looks]
    assert heads[1:] == [HeadId(3, 0), HeadId(5, 1), HeadId(9, 4), HeadId(12, 5)]
    assert heads[0].layer in (0, 1)
    chosen = trace(sea, selection=Selection(1, 4, 60)).looks
    assert chosen[0].head == HeadId(1, 4) and chosen[4].head == HeadId(12, 5)


def test_heads_that_are_off_are_left_out(sea):
    off = frozenset(HeadId(3, head) for head in range(5))
    assert trace(replace(sea, off=off)).looks[1].head == HeadId(3, 5)


def test_windowed_resampling_names_its_shares():
    capture = make_capture(SEA, windowed=True)
    chips = trace(capture).chips
    weights = np.mean([capture.maps[2].read(head)[30] for head in range(6)], axis=0)
    a, b = (f"{one:.2f}" for one in weights[60:62])
    first, second = (quoted_token(capture.prompt.label(token)) for token in (59, 60))
    assert chips[0] == f"{first} {a} + {second} {b}"
    assert chips[2].endswith("and the next two") and "goes to" in chips[2]
    assert chips[3].endswith("and the next letter")


def test_resampling_over_everything_names_the_strongest_position(sea):
    chips = trace(sea).chips
    weights = np.mean([sea.maps[2].read(head)[30] for head in range(6)], axis=0)
    best = int(weights.argmax())
    start, end = sea.key_spans(2)[best]
    named = quoted_token(sea.prompt.words(start, end)) if start >= 0 else "padding at the start"
    own = quoted_token(sea.prompt.words(*sea.spans[1][30]))
    assert chips[0] == f"{own} attends most to {named} {weights[best]:.2f}"


def test_a_letter_that_joins_the_next_position_is_told_so(sea):
    chips = trace(sea, token=61).chips
    assert chips[0].endswith(f"; {quoted_token(SEA[61])} is pooled into the next")
    assert "joins" not in chips[3]


def test_without_resampling_attention_the_pooled_letters_are_named(sea):
    maps = tuple(
        None if sea.spec.layers[n].role in ("down", "up") else one for n, one in enumerate(sea.maps)
    )
    found = trace(replace(sea, maps=maps))
    assert found.chips[0] == f"{quoted_token(SEA[59])} + {quoted_token(SEA[60])}"
    assert found.together is None and "every layer" in found.sentence


def test_the_last_row_is_the_rollout_and_says_where_it_comes_from(sea):
    found = trace(sea)
    row = rollout(sea, (60, 61))[0]
    assert np.array_equal(found.together, row)
    assert found.sentence.startswith("Attention rollout with residual connections:")
    assert f"itself {row[60]:.2f}" in found.sentence


def test_the_expected_letters_are_the_softmax_of_the_logits(sea):
    odds = np.exp(sea.logits[60].astype(np.float64))
    odds /= odds.sum()
    found = trace(sea).expected
    assert [int(name) for name, _ in found] == list(np.argsort(-odds)[:4])
    assert [share for _, share in found] == pytest.approx(sorted(odds)[::-1][:4])
    assert trace(replace(sea, logits=None)).expected == ()


def test_the_picture_is_there_before_the_last_row(sea):
    steps = steps_of(follow, sea, stages(sea.spec), 60, WISH, str)
    steps = [step for step in steps if step.value is not None]
    assert steps and steps[-1].value.together is None
    assert len(steps[0].value.looks) == 5


def test_a_partial_capture_shows_what_is_there(sea):
    maps = tuple(one if n < 6 else None for n, one in enumerate(sea.maps))
    found = trace(replace(sea, maps=maps, logits=None))
    assert [look.weights is None for look in found.looks] == [False, False, False, True, True]
    assert found.looks[3].role == "not captured"


def test_signed_weights_keep_their_sign():
    capture = make_capture(SEA, signed=True)
    found = trace(capture)
    assert all(look.signed for look in found.looks)
    for look in found.looks:
        sizes = [abs(weight) for _, weight in look.top]
        assert sizes == sorted(sizes, reverse=True)


def test_tokens_that_are_not_in_the_text_have_the_names_of_the_tokenizer(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    model = SimpleNamespace(tokenizer=Pieces(tmp_path / "tokenizer.json", 300))
    capture = replace(gpt2(), prompt=model.tokenizer.encode("the cat"))
    number, space = (model.tokenizer.id_of(one) for one in ("z", "Ġ"))
    assert sentences.namer(capture)(number) == f"#{number}"
    assert said(capture, number) == f"token {number}"
    assert (sentences.namer(capture, model)(number), said(capture, number, model)) == ("z", "“z”")
    assert sentences.namer(capture, model)(space) == "space"
    other = replace(capture, prompt=Bytes().encode("the cat"))
    assert sentences.namer(other, model)(number) == f"#{number}"  # of another tokenizer


def test_a_title_takes_the_wider_side_of_the_letter(app, monkeypatch):
    written = []

    def elided(self, words, font, room):
        written.append((words, room))
        return words

    monkeypatch.setattr("hgviz.gui.follow.FollowPainter.elided", elided)
    capture = funnel((2, 1, 2))
    for token in range(0, len(capture.prompt), 3):
        fields = {"capture": capture, "selection": Selection(0, 0, token)}
        with shown(FollowView, (640, 520), **fields) as (view, _):
            view.grab()
    rooms = [room for words, room in written if "Shortened" in words]
    assert rooms and min(rooms) > 110
