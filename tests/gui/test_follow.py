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
from hgviz.core import HeadId, Selection
from hgviz.gui import sentences, theme
from hgviz.gui.attribution import said
from hgviz.gui.follow import (
    FollowOptions,
    FollowView,
    follow,
    lay_out,
    margins,
    quoted_token,
    window,
)
from hgviz.gui.layouts import stages
from hgviz.gui.textrows import CellTexts
from hgviz.models.text import Bytes, Pieces
from tests.gui.kinds import gpt2
from tests.gui.screen import picture, session_of, showing
from tests.making import make_capture, make_spec
from tests.models.folders import byte_level
from tests.progress import steps_of

pytestmark = pytest.mark.usefixtures("app")


def press(view, key):
    event = QKeyEvent(QEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view.canvas, event)


def click(view, x, y):
    button = Qt.MouseButton.LeftButton
    event = QMouseEvent(
        QEvent.Type.MouseButtonPress, QPointF(x, y), QPointF(x, y), button, button,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(view.canvas.viewport(), event)


def texts_of(capture):
    return [CellTexts.of_tokens(capture.prompt_of(one.index), 12) for one in capture.spec.levels]


def said_at(view, strip, position):
    return view.canvas.words_at(QPointF(sum(strip.cell(position)) / 2, strip.top + 5))


@pytest.fixture
def view(capture):
    with showing(FollowView, session_of(capture), 1600, 900) as view:
        yield view


def test_it_says_which_letter_is_followed(capture):
    with showing(FollowView, session_of(capture, query=6), 1600, 900) as view:
        assert view.token.text() == "u"
        assert view.head.note.full == "in hourglass (letter 6) through the 1:4 bottleneck and back"


def test_a_click_on_a_strip_chooses_the_letter(view):
    session = view.session
    strip = view.canvas.scene.layout.strips[1]
    left, right = strip.cell(20)
    click(view, (left + right) / 2, strip.top + 5)
    assert session.selection.query == 40
    assert session.selection.head_id == HeadId(12, 5)


def test_a_click_on_a_head_selects_it(view):
    session = view.session
    strip, head = view.canvas.scene.layout.strips[2], view.canvas.scene.trace.rows[2].head
    click(view, strip.right + 30, strip.top + 16)
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
    pixels = picture(view.canvas.viewport()).astype(int)
    strip, look = view.canvas.scene.layout.strips[4], view.canvas.scene.trace.rows[4]
    left, _ = strip.cell(look.top[0][0])
    bright = pixels[int(strip.top) + 3, int(left) + 2]
    assert np.abs(bright - [253, 231, 37]).max() <= 3  # the end of viridis


def test_the_thread_is_orange_from_stage_to_stage(view):
    pixels = picture(view.canvas.viewport()).astype(int)
    mark = np.array(theme.current().mark.getRgb()[:3])
    for one in view.canvas.scene.layout.gaps:
        x = (sum(one.thread[:2]) / 2 + sum(one.thread[2:]) / 2) / 2
        middle = pixels[int((one.top + one.bottom) / 2), int(x)]
        assert np.abs(middle - mark).max() < 25


def test_a_long_text_shows_a_window_around_the_letter():
    capture = make_capture("The hourglass was used at sea. " * 40)
    with showing(FollowView, session_of(capture, query=900), 900, 600) as view:
        first, last = view.canvas.scene.layout.rollout.tokens
        assert first <= 900 < last and last - first < 150


@pytest.mark.parametrize(
    ("size", "layers"), [((1000, 560), 4), ((1600, 890), 6), ((2560, 1300), 12)]
)
def test_a_page_shows_each_layer_of_one_level_where_it_has_room(size, layers):
    one = gpt2()
    spec = replace(one.spec, layers=tuple(replace(one.spec.layers[0], index=n) for n in range(12)))
    capture = replace(one, spec=spec, maps=one.maps[:1] * 12)
    if layers == 6:
        capture = replace(
            capture, spec=replace(spec, layers=spec.layers[:6]), maps=one.maps[:1] * 6
        )
    with showing(FollowView, session_of(capture, 0, 0, 5), *size) as view:
        assert len(view.canvas.scene.trace.way) == layers
        pixels = picture(view.canvas.viewport()).astype(int)
        used = (np.abs(pixels - pixels[0, 0]).sum(axis=2) > 30).nonzero()
        assert np.ptp(used[0]) > 0.8 * pixels.shape[0] and np.ptp(used[1]) > 0.9 * pixels.shape[1]
        view.resize(1000, 560)
        view.settle()
        assert len(view.canvas.scene.trace.way) == 4


def test_a_low_window_scrolls(capture):
    with showing(FollowView, session_of(capture), 900, 500) as view:
        assert view.canvas.verticalScrollBar().maximum() > 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("text", ["H", "Hi", "Ünï — 한 🙂 שלום\tx\n."])
def test_tiny_and_strange_texts_are_drawn(app, text, dark):
    theme.apply(app, dark)
    for signed in (False, True):
        capture = make_capture(text, signed=signed)
        with showing(FollowView, session_of(capture, query=0), 900, 600) as view:
            assert view.canvas.scene is not None
            picture(view.canvas.viewport())


def test_a_partial_capture_is_followed_as_far_as_it_goes(capture):
    part = replace(capture, maps=(*capture.maps[:6], *[None] * 7))
    with showing(FollowView, session_of(part, layer=3), 1600, 900) as view:
        assert view.canvas.scene.trace.rows[4].weights is None
        picture(view.canvas.viewport())


def test_a_late_answer_is_drawn_with_its_own_capture(capture):
    session = session_of(capture)
    with showing(FollowView, session, 1600, 890) as view:
        late = view.request(session)()
        session.put(capture=make_capture(strides=(1,)))
        view.draw(late)
        picture(view)
        assert len(view.canvas.scene.trace.way) == len(late.rows)
        view.settle()
        assert view.canvas.scene.capture is session.capture


def test_the_figure_is_of_all_levels_with_these_heads(view):
    session = view.session
    spec = view.figure(session)
    assert spec.kind == "levels" and spec.heads[-1] == HeadId(12, 5) and len(spec.heads) == 5


def test_pointing_at_a_cell_tells_its_weight(view):
    strip, look = view.canvas.scene.layout.strips[0], view.canvas.scene.trace.rows[0]
    key, weight = look.top[0]
    assert said_at(view, strip, key).endswith(f"{weight:.3f}")
    assert "masked" in said_at(view, strip, look.seen)


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
    course = lay_out(capture, way, token, texts_of(capture), (width, height))
    left, right = margins(way)
    first, last = course.rollout.tokens
    assert 0 <= first <= token < last <= len(SEA)
    assert first % strides[-1] == 0
    for above, below in zip(course.strips, course.strips[1:], strict=False):
        assert above.bottom + 56 < below.top
    assert course.rollout.bottom < course.height
    for strip, own in zip(course.strips, course.own, strict=True):
        assert left - 0.01 <= strip.left
        assert strip.right <= max(width - right, left + 80) + 0.01
        assert np.allclose(strip.lefts[1:], strip.rights[:-1])
        cell = strip.cell(own)
        assert cell is not None and cell[0] < cell[1]
        assert strip.at(sum(cell) / 2, strip.top + 1) == own


@settings(deadline=None)
@given(token=st.integers(0, len(SEA) - 1), width=st.integers(300, 2400))
def test_a_cell_spans_exactly_the_letters_it_stands_for(token, width):
    capture = CAPTURES[1, 2, 4]
    course = lay_out(capture, stages(capture.spec), token, texts_of(capture), (width, 800))
    for strip in course.strips:
        for at in range(1, len(strip.lefts)):
            start, end = capture.spans[strip.level][strip.first + at]
            left, right = strip.lefts[at], strip.rights[at]
            assert left == pytest.approx(strip.ruler.x(start))
            assert right == pytest.approx(strip.ruler.x(end))


def test_strips_are_centred_and_narrower_where_the_text_is_shorter():
    capture = CAPTURES[1, 2, 4]
    course = lay_out(capture, stages(capture.spec), 60, texts_of(capture), (1600, 858))
    middles = [(one.left + one.right) / 2 for one in course.strips]
    assert max(middles) - min(middles) < 1
    wide = [one.right - one.left for one in course.strips]
    assert wide[0] > wide[1] > wide[2] < wide[3] < wide[4]
    assert wide[1] == wide[3]


def test_the_thread_joins_the_pooled_tokens_to_their_position_and_back():
    capture = CAPTURES[1, 2, 4]
    course = lay_out(capture, stages(capture.spec), 60, texts_of(capture), (1600, 858))
    top, first = course.gaps[0], course.strips[0]
    assert top.thread[:2] == (first.ruler.x(59), first.ruler.x(61))
    assert top.thread[2:] == course.strips[1].cell(30)
    assert top.others is None
    up, two = course.gaps[2], course.strips[3]
    assert up.thread == (*course.strips[2].cell(15), *two.cell(30))
    assert up.others[2:] == (two.cell(30)[0], two.cell(31)[1])


def test_lines_join_the_positions_that_meet():
    capture = CAPTURES[1, 2]
    course = lay_out(capture, stages(capture.spec), 40, texts_of(capture), (1600, 858))
    down, up = course.gaps
    outer, inner = course.strips[0], course.strips[1]
    for number, (above, below, known) in enumerate(down.lines):
        end = capture.spans[1][number][1]
        assert (above, below) == (outer.ruler.x(end), inner.cell(number)[1])
        assert known == (end <= 41)
    for number, (above, below, _) in enumerate(up.lines):
        assert (above, below) == (inner.cell(number)[0], outer.ruler.x(2 * number))


@settings(deadline=None)
@given(st.integers(1, 400), st.floats(10, 500), st.sampled_from([1, 2, 4, 24]), st.data())
def test_a_window_holds_the_letter_and_starts_on_a_whole_position(tokens, fits, unit, data):
    token = data.draw(st.integers(0, tokens - 1))
    first, last = window(np.arange(tokens + 1.0), token, fits, unit)
    assert 0 <= first <= token < last <= tokens
    assert first % unit == 0
    if tokens <= fits:
        assert (first, last) == (0, tokens)


def test_stages_say_in_words_what_happens():
    spec = make_spec((1, 2, 4), 6)
    way = stages(spec)
    assert [one.title(spec) for one in way] == [
        "Full resolution",
        "Shortened 1:2",
        "Shortened 1:4",
        "Upsampled 1:2",
        "Upsampled 1:1",
    ]
    assert way[0].notes(spec, 136) == ["136 positions", "layers 0 and 1"]
    assert way[1].notes(spec, 68) == ["cost 1/4", "68 positions", "layer 3"]
    assert way[2].notes(spec, 34)[0] == "bottleneck, cost 1/16"
    assert [one.entries for one in way] == [(), (2,), (4,), (8,), (10,)]
    odd = make_spec((1, 3, 24), 2)
    assert [one.title(odd) for one in stages(odd)][1:3] == [
        "Shortened 1:3",
        "Shortened 1:24",
    ]


def test_a_model_without_levels_is_followed_in_groups_of_layers():
    spec = make_spec((1,), 2)
    layers = tuple(replace(spec.layers[0], index=n) for n in range(12))
    way = stages(replace(spec, layers=layers))
    assert [one.layers for one in way] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]
    assert way[0].title(spec) == "Layers 0 to 2"
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
    for stage, look in zip(stages(sea.spec), found.rows, strict=True):
        row = sea.position(stage.level, 60)
        whole = sea.maps[look.head.layer].read(look.head.head)
        assert np.allclose(look.weights, whole[row], atol=1e-6)
        assert look.seen == row + 1
        best = [key for key, _ in look.top]
        assert best == list(np.argsort(-whole[row], kind="stable")[: len(best)])
        assert look.most == pytest.approx(whole[row].max(), abs=1e-6)


def test_a_stage_shows_the_selected_head_or_the_one_last_opened_there(sea):
    heads = [look.head for look in trace(sea).rows]
    assert heads[1:] == [HeadId(3, 0), HeadId(5, 1), HeadId(9, 4), HeadId(12, 5)]
    assert heads[0].layer in (0, 1)
    chosen = trace(sea, selection=Selection(1, 4, 60)).rows
    assert chosen[0].head == HeadId(1, 4) and chosen[4].head == HeadId(12, 5)


def test_heads_that_are_off_are_left_out(sea):
    off = frozenset(HeadId(3, head) for head in range(5))
    assert trace(replace(sea, off=off)).rows[1].head == HeadId(3, 5)


def test_windowed_resampling_names_its_shares():
    capture = make_capture(SEA, windowed=True)
    chips = trace(capture).chips
    weights = np.mean([capture.maps[2].read(head)[30] for head in range(6)], axis=0)
    a, b = (f"{one:.2f}" for one in weights[60:62])
    first, second = (quoted_token(capture.prompt.label(token)) for token in (59, 60))
    assert chips[0] == f"{first} {a} + {second} {b}"
    assert chips[2].endswith("and one more") and "goes to" in chips[2]
    assert chips[3].endswith("and one more")


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
    assert chips[0].endswith(f"; {quoted_token(SEA[61])} is pooled into the next group")
    assert "joins" not in chips[3]


def test_without_resampling_attention_the_pooled_letters_are_named(sea):
    maps = tuple(
        None if sea.spec.layers[n].role in ("down", "up") else one for n, one in enumerate(sea.maps)
    )
    found = trace(replace(sea, maps=maps))
    assert found.chips[0] == f"{quoted_token(SEA[59])} + {quoted_token(SEA[60])}"
    assert found.rollout is None and "every layer" in found.sentence


def test_the_last_row_is_the_rollout_and_says_where_it_comes_from(sea):
    found = trace(sea)
    row = rollout(sea, (60, 61))[0]
    assert np.array_equal(found.rollout, row)
    assert found.sentence.startswith("Attention rollout (with residual):")
    assert f"itself {row[60]:.2f}" in found.sentence


def test_the_expected_letters_are_the_softmax_of_the_logits(sea):
    odds = np.exp(sea.logits[60].astype(np.float64))
    odds /= odds.sum()
    found = trace(sea).verdict.answers
    assert [int(name) for name, _ in found] == list(np.argsort(-odds)[:4])
    assert [share for _, share in found] == pytest.approx(sorted(odds)[::-1][:4])
    assert trace(replace(sea, logits=None)).verdict.answers == ()


def test_the_picture_is_there_before_the_last_row(sea):
    steps = steps_of(follow, sea, stages(sea.spec), 60, WISH, str)
    steps = [step for step in steps if step.value is not None]
    assert steps and steps[-1].value.rollout is None
    assert len(steps[0].value.rows) == 5


def test_a_partial_capture_shows_what_is_there(sea):
    maps = tuple(one if n < 6 else None for n, one in enumerate(sea.maps))
    found = trace(replace(sea, maps=maps, logits=None))
    assert [look.weights is None for look in found.rows] == [False, False, False, True, True]
    assert found.rows[3].role == "not captured"


def test_signed_weights_keep_their_sign():
    capture = make_capture(SEA, signed=True)
    found = trace(capture)
    assert all(look.signed for look in found.rows)
    for look in found.rows:
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
