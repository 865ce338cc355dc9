"""The Follow page: what it reads of a token, where its stages are, keys and clicks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from hgviz.analysis.composition import rollout
from hgviz.core import HeadId, Selection
from hgviz.gui import sentences, theme
from hgviz.gui.follow import (
    FollowOptions,
    FollowView,
    follow,
    lay_out,
    margins,
    quoted_token,
)
from hgviz.gui.layouts import stages
from hgviz.gui.textrows import CellTexts
from tests.gui.screen import picture, session_of, showing
from tests.making import make_capture

pytestmark = pytest.mark.usefixtures("app")

SEA = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
CAPTURES = {
    strides: make_capture(SEA, strides=strides)
    for strides in ((1,), (1, 2), (1, 2, 4), (1, 3, 6), (1, 2, 4, 12, 24))
}
OPTIONS = FollowOptions(
    Selection(12, 5, 60), {0: HeadId(12, 5), 1: HeadId(9, 4), 2: HeadId(5, 1)}, {}
)


def lay(capture, token, size=(1600, 858)):
    texts = [CellTexts.of_tokens(capture.prompt_of(one.index), 12) for one in capture.spec.levels]
    return lay_out(capture, stages(capture.spec), token, texts, size)


def trace(capture, token=60, **options):
    return follow(capture, stages(capture.spec), token, replace(OPTIONS, **options))


@pytest.fixture
def view(capture):
    with showing(FollowView, session_of(capture), 1600, 900) as view:
        yield view


# --- the page -------------------------------------------------------------------------------------


def test_clicks_choose_a_token_or_a_head_and_arrows_move_the_token(view):
    session, canvas = view.session, view.canvas
    assert view.head.note.full.endswith("(token 60) through the 1:4 bottleneck and back")
    strip, row = canvas.scene.layout.strips[1], canvas.scene.trace.rows[1]
    for x, y in ((sum(strip.cell(20)) / 2, strip.top + 5), (strip.right + 30, strip.top + 16)):
        QTest.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPointF(x, y).toPoint())
    assert session.selection.query == 40 and session.selection.head_id == row.head
    view.settle()
    for key, token in ((Qt.Key.Key_Right, 41), (Qt.Key.Key_Left, 40)):
        QTest.keyClick(canvas, key)
        assert session.selection.query == token
        view.settle()
    assert view.token.text() == sentences.shown(session.capture.prompt.label(40))


def test_pointing_at_a_cell_says_its_weight(view):
    layout, rows = view.canvas.scene.layout, view.canvas.scene.trace.rows
    (key, weight), seen, masked = rows[0].top[0], rows[0].seen, "masked (causal)"
    for strip, position, words in (
        (layout.strips[0], key, f"{weight:.3f}"), (layout.strips[0], seen, masked),
        (layout.rollout, seen, masked),
    ):  # fmt: skip
        place = QPointF(sum(strip.cell(position)) / 2, strip.top + 5)
        assert view.canvas.words_at(place).endswith(words)


def test_tiny_and_strange_texts_are_drawn(app):
    theme.apply(app, dark=True)
    for text in ("H", "Ünï — 한 🙂 שלום\tx\n."):
        with showing(FollowView, session_of(make_capture(text, signed=True), query=0)) as view:
            assert picture(view.canvas.viewport()).std() > 1


# --- where strips are -----------------------------------------------------------------------------


@settings(deadline=None)
@given(
    strides=st.sampled_from(list(CAPTURES)),
    token=st.integers(0, len(SEA) - 1),
    width=st.integers(300, 2400),
    height=st.integers(300, 1400),
)
def test_strips_are_inside_apart_and_hold_the_token(strides, token, width, height):
    capture = CAPTURES[strides]
    layout = lay(capture, token, (width, height))
    left, right = margins(stages(capture.spec))
    first, last = layout.rollout.tokens
    assert 0 <= first <= token < last <= len(SEA) and first % strides[-1] == 0
    for above, below in zip(layout.strips, layout.strips[1:], strict=False):
        assert above.bottom + 56 < below.top
    assert layout.rollout.bottom < layout.height
    for strip, own in zip(layout.strips, layout.own, strict=True):
        assert left - 0.01 <= strip.left
        assert strip.right <= max(width - right, left + 80) + 0.01
        spans = capture.spans[strip.level][strip.first :][: len(strip.lefts)]
        places = np.array([[strip.ruler.x(end) for end in span] for span in spans.tolist()])
        assert np.allclose(places[1:], np.stack([strip.lefts, strip.rights], 1)[1:])
        cell = strip.cell(own)
        assert strip.at(sum(cell) / 2, strip.top + 1) == own


# --- what is read of a token ----------------------------------------------------------------------


def test_each_stage_reads_the_row_of_the_token():
    sea = make_capture(SEA, signed=True)
    for stage, row in zip(stages(sea.spec), trace(sea).rows, strict=True):
        position = sea.position(stage.level, 60)
        weights = sea.maps[row.head.layer].read(row.head.head)[position]
        assert np.allclose(row.weights, weights, atol=1e-6) and row.signed
        assert row.seen == position + 1
        order = np.argsort(-np.abs(weights), kind="stable")
        assert [key for key, _ in row.top] == order[: len(row.top)].tolist()
        assert row.most == pytest.approx(np.abs(weights).max(), abs=1e-6)


def test_resampling_names_what_it_weighs():
    sea = CAPTURES[1, 2, 4]
    weights = np.mean([sea.maps[2].read(head)[30] for head in range(6)], axis=0)
    best = int(weights.argmax())
    start, end = sea.key_spans(2)[best]
    key = quoted_token(sea.prompt.words(start, end)) if start >= 0 else "padding at the start"
    own = quoted_token(sea.prompt.words(*sea.spans[1][30]))
    assert trace(sea).chips[0] == f"{own} attends most to {key} {weights[best]:.2f}"
    assert "attends most to" in trace(sea).chips[2]
    pooled = trace(sea, token=61).chips[0]
    assert pooled.endswith(f"; {quoted_token(SEA[61])} is pooled into the next group")
    windowed = make_capture(SEA, windowed=True)
    chips = trace(windowed).chips
    weights = np.mean([windowed.maps[2].read(head)[30] for head in range(6)], axis=0)
    parts = [f"{quoted_token(SEA[at])} {weights[at + 1]:.2f}" for at in (59, 60)]
    assert chips[0] == " + ".join(parts)
    assert "goes to" in chips[2] and chips[3].endswith("and one more")


def test_a_partial_capture_shows_what_is_there():
    sea = CAPTURES[1, 2, 4]
    maps = tuple(
        None if n > 5 or sea.spec.layers[n].role in ("down", "up") else one
        for n, one in enumerate(sea.maps)
    )
    part = trace(replace(sea, maps=maps, logits=None))
    assert [row.weights is None for row in part.rows] == [False, False, False, True, True]
    assert part.rows[3].role == "not captured" and part.verdict.answers == ()
    assert part.chips[0] == f"{quoted_token(SEA[59])} + {quoted_token(SEA[60])}"
    assert part.rollout is None and "every layer" in part.sentence
    with showing(FollowView, session_of(replace(sea, maps=maps), layer=3), 1600, 900) as view:
        picture(view.canvas.viewport())


def test_the_last_row_is_the_rollout_and_the_answers_are_the_softmax_of_the_logits():
    sea = CAPTURES[1, 2, 4]
    found = trace(sea)
    row = rollout(sea, (60, 61))[0]
    assert np.array_equal(found.rollout, row)
    assert found.sentence.startswith(f"Attention rollout (with residual): itself {row[60]:.2f}, “")
    odds = np.exp(sea.logits[60].astype(np.float64))
    odds /= odds.sum()
    assert [int(name) for name, _ in found.verdict.answers] == list(np.argsort(-odds)[:4])
    assert [part for _, part in found.verdict.answers] == pytest.approx(sorted(odds)[::-1][:4])


def test_a_late_answer_is_drawn_with_its_own_capture(capture):
    session = session_of(capture)
    with showing(FollowView, session, 1600, 890) as view:
        late = view.request(session)()
        session.put(capture=make_capture(strides=(1,)))
        view.draw(late)
        picture(view)
        assert view.canvas.scene.trace.capture is capture
        view.settle()
        assert view.canvas.scene.trace.capture is session.capture
