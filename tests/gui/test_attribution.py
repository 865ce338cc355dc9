"""The look Attribution: what it offers, asks, shows, and says where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from hgviz import tasks
from hgviz.core import HeadId, Selection
from hgviz.gui.actions import BY_NAME
from hgviz.gui.attribution import AttributionView, agreement_words, asked, choices, complete_words
from hgviz.language import decimals
from hgviz.models import open_model
from hgviz.tasks.attribution import KeyScores
from tests.gui.kinds import write_tiny
from tests.gui.screen import shown
from tests.making import make_capture, make_image_capture


@pytest.fixture(scope="module")
def asked_of(tmp_path_factory):
    """A tiny hourglass, its capture of a text, and where an answer comes from."""
    folder = write_tiny(tmp_path_factory.mktemp("models") / "tiny")
    model = open_model(folder)
    capture = tasks.capture(model, model.tokenize("the sea and the sand"))
    question = tasks.default_question("next", capture.logits, capture.main, 12)
    found = tasks.attribute(model, capture.prompt, replace(question, steps=32), layers=True)
    return model, capture, found


def fields_of(asked_of, query=12, **more):
    model, capture, found = asked_of
    return {"model": model, "capture": capture, "explained": found, "checkpoint": "tiny",
            "question": found.question, "selection": Selection(0, 1, query), **more}  # fmt: skip


def test_the_answers_offered_are_the_next_token_and_the_likeliest(app, asked_of):
    _, capture, found = asked_of
    with shown(AttributionView, **fields_of(asked_of)) as (view, session):
        offered = [view.answer.itemText(at) for at in range(view.answer.count())]
        assert len(offered) == 8 and any("(actual)" in one for one in offered)
        assert view.answer.currentData() == found.question.number == capture.prompt.ids[13]
        other = next(number for number, _ in choices(capture, found.question)
                     if number != found.question.number)  # fmt: skip
        view.answer.setCurrentIndex(view.answer.findData(other))
        view.answer.activated.emit(0)
        assert asked(session).number == other
        view.settle()
        assert "another output" in view.complete.text()
        session.put(selection=Selection(0, 1, 3))
        assert asked(session).position == 3 and asked(session).number == capture.prompt.ids[4]


def test_the_keys_show_attention_slopes_and_attributions_and_are_copied_in_full(app, asked_of):
    _, capture, found = asked_of
    with shown(AttributionView, **fields_of(asked_of)) as (view, session):
        scores = view.report.scores
        assert scores.columns.tolist() == list(range(13))  # a causal head sees no more
        row = capture.maps[0].read(1, (12, 13))[0, :13]
        assert np.array_equal(scores.attention, row.astype(float))
        assert np.allclose(scores.tokens, found.tokens[:13], rtol=0, atol=1e-12)
        assert f"{scores.agreements[0]:+.2f}".replace("-", "−") in view.agreement.text()
        view.copy()
        rows = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()[1:]]
        numbers = np.array([row[3:] for row in rows], float).T
        assert np.array_equal(numbers, [scores.attention, scores.slope, scores.tokens])
        QTest.mouseClick(view.rows._group.button(1), Qt.MouseButton.LeftButton)
        view.settle()
        assert len(view.report.scores.columns) == len(capture.main)
        view.bars.picked.emit(5)
        assert session.selection.key == 5
        view.bars.setFocus()
        QTest.keyClick(view.bars, Qt.Key.Key_Down)
        assert session.selection.key == 6


def test_the_wall_opens_heads_and_gives_their_conductance(app, asked_of):
    with shown(AttributionView, **fields_of(asked_of)) as (view, session):
        amount = decimals(session.explained.heads[HeadId(2, 1)], 2, signed=True)
        assert f"Conductance: {amount} of the output" in view.grid.words(HeadId(2, 1))
        place = view.grid.where(HeadId(2, 1)).center()
        QTest.mouseClick(view.grid.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert session.selection.head_id == HeadId(2, 1) and session.selection.query is not None


def test_the_completeness_of_an_attribution_is_shown_and_too_few_keys_agree_on_nothing(asked_of):
    _, _, found = asked_of
    said = complete_words(found)
    assert "32 steps" in said and f"{found.value:.3f}".replace("-", "−") in said
    rough = complete_words(replace(found, tokens=found.tokens * 3))
    assert rough.endswith("More steps reduce it.")
    two = np.array([0.5, 0.5])
    few = KeyScores(HeadId(0, 0), 1, np.arange(2), two, two, two)
    assert "Too few keys" in agreement_words(few)


def test_a_view_without_its_data_says_what_is_missing(app, asked_of):
    model, capture, found = asked_of
    with shown(AttributionView, (240, 160), **fields_of(asked_of, explained=None)) as (
        view,
        session,
    ):
        assert view.agreement.text().startswith("Compute attributes")
        states = replace(capture, spec=replace(capture.spec, goal="states"))
        session.put(capture=states)
        view.settle()
        assert "hidden states" in view.empty[0]
        session.put(capture=replace(capture, logits=None))
        view.settle()
        assert view.empty[0] == "This capture has no output"
    with shown(AttributionView, capture=make_capture(text="short text")) as (view, _):
        assert view.empty[0] == "Attribution needs the model"
    with shown(AttributionView) as (view, _):
        assert view.empty.actions[0][0] == "capture"
    with shown(AttributionView, capture=make_image_capture()) as (view, session):
        assert "images" in view.empty.text and "images" in BY_NAME["attribute"].why_off(session)


def test_the_window_asks_the_model_and_stops(program, checkpoint, until):
    program.session.put(text="the sea and the sand")
    program.commands.open_path(str(checkpoint))
    until(lambda: program.session.capture is not None and program.session.capture.complete)
    program.session.put(selection=Selection(0, 1, 9), model=None)
    program.commands.run("attribute")
    until(lambda: program.session.explained is not None and program.session.explained.layers)
    found = program.session.explained
    assert found.is_of(program.session.capture) and found.question.position == 9
    assert program.session.look == "attribution" and program.session.model is not None
    program.session.put(explained=None)
    program.commands.run("attribute")
    program.commands.run("stop_attributing")
    until(lambda: not any(one.state in ("waiting", "running") for one in program.session.work))
    assert program.session.explained is None or program.session.explained.layers is None
