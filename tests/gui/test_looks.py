"""The looks Attention rollout, Attribution and Neurons: what they show, follow, copy and lack."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from hgviz import tasks
from hgviz.analysis.composition import rollout
from hgviz.core import HeadId, RolloutOptions, Selection
from hgviz.gui import sentences
from hgviz.gui.across import AcrossView, ReachDialog
from hgviz.gui.attribution import (
    AttributionView,
    choices,
    current_question,
)
from hgviz.gui.charts import Points
from hgviz.gui.export import ExportDialog
from hgviz.gui.heads import HeadsView
from hgviz.gui.neurons import NeuronView
from hgviz.maps import DenseMap
from hgviz.models import open_model
from tests.analysis.planting import hourglass, letters, plant
from tests.gui.kinds import write_tiny
from tests.gui.screen import busy, choose, session_of, showing, shown
from tests.making import make_capture, make_image_capture
from tests.models.building import write_checkpoint, write_unattending

TEXT = "The hourglass was used at sea. When the sand had run down, the bell was rung."


def small():
    """A capture of three levels whose rollout is known."""
    return hourglass(letters(TEXT[:22]), (1, 2, 6))


def rolled(capture, **fields):
    """The tab Attention rollout of a capture: (view, session)."""
    return shown(AcrossView, (760, 640), capture=capture, **fields)


def test_the_map_is_the_rollout_and_the_bars_are_its_row(app):
    capture = small()
    with rolled(capture, selection=Selection(0, 0, 15, 8)) as (view, session):
        wanted = rollout(capture)
        np.testing.assert_allclose(view._across.opened.sources[0].map.read(0), wanted, atol=1e-7)
        *bands, points = view.bars.chart.plots[0].parts
        np.testing.assert_allclose(points.y, wanted[15], atol=1e-7)
        np.testing.assert_allclose(bands[-1].high[1::4], wanted[15], atol=1e-7)  # stacked
        said = view.canvas.sentence.text
        assert "Top sources of the output" in said() or "tokens back" in said()
        parts = np.stack(view._across.row.parts)
        np.testing.assert_allclose(parts.sum(0), wanted[15], atol=1e-7)
        assert "via 1:6" in points.words(3) and view.canvas.panes[0].cross.row == 15
        assert view.bars.chosen == 8 and view.bars.isVisibleTo(view)
        view.bars.picked.emit(9)
        assert session.selection.key == 9
        titles, *rows = view.as_table()
        found = [float(row[titles.index("Rollout")]) for row in rows]
        assert found == pytest.approx(view._across.row.weights[0])
        session.select(key=None)
        view.settle()
        outer, inner = view._across.row.level_shares.sum(axis=1)[:, 0]
        shares = {"stayed at 1:1": 1 - outer, "went to 1:2": outer - inner, "went to 1:6": inner}
        for way, share in shares.items():
            assert f"{sentences.share(round(share, 6))} {way}, from" in said()


def test_choices_make_another_map_and_are_what_a_figure_draws(app):
    capture = small()
    with rolled(capture, selection=Selection(0, 1, 15)) as (view, session):
        for box, index, recipe in (
            (view.fuse, 1, RolloutOptions(fuse="max")),
            (view.fuse, 3, RolloutOptions(heads=(HeadId(0, 1),))),
            (view.residual, 5, RolloutOptions(residual=0.9, heads=(HeadId(0, 1),))),
        ):
            box.setCurrentIndex(index)
            view.settle()
            found = view._across.opened.sources[0].map.read(0)
            np.testing.assert_allclose(found, rollout(capture, options=recipe), atol=1e-7)
            assert view.figure(session).recipe == recipe
    random = np.random.default_rng(0)
    capture = plant(letters(TEXT[:9]), [random.normal(size=(2, 9, 9))], causal=False, signed=True)
    with rolled(capture, selection=Selection(0, 0, 4, 2)) as (view, _):
        for is_signed in (True, False):
            view.signed.setChecked(is_signed)
            view.settle()
            assert view._across.opened.sources[0].signed == is_signed
            assert view.residual.isEnabled() != is_signed
            assert ("(product of all layers)" in view.canvas.sentence.text()) == is_signed


def test_a_click_chooses_answer_and_token_and_the_arrows_move_them(app):
    with rolled(small(), selection=Selection(0, 0, 15)) as (view, session):
        view.canvas.clicked.emit(12, 3)
        assert (session.selection.query, session.selection.key) == (12, 3)
        view.settle()
        assert "9 tokens back" in view.canvas.sentence.text()
        QTest.keyClick(view.canvas, Qt.Key.Key_Down)
        assert session.selection.query == 13
        QTest.keyClick(view.canvas, Qt.Key.Key_Escape)
        assert session.selection.key is None
        view.canvas.pointed.emit((8, 2))
        assert (session.hover.query, session.hover.key) == (8, 2)


# --- reach ----------------------------------------------------------------------------------------


def test_the_reach_of_models_with_and_without_attention_is_that_of_the_command(
    with_model, tmp_path, until
):
    frame = with_model.frame
    write_unattending(tmp_path, family="lstm", vocab_size=256)
    with_model.commands.run("measure_reach")
    (asking,) = frame.findChildren(ReachDialog)
    asking.add(str(tmp_path / "config.json"))
    asking.text.setText("The bell was rung.")
    asking.default.click()
    until(lambda: not busy(with_model) and frame.findChildren(ExportDialog))
    (dialog,) = frame.findChildren(ExportDialog)
    until(lambda: dialog.preview.picture is not None)
    figure = dialog.choices.offer.of
    for path, reach in zip(figure.request.models, figure.reaches, strict=True):
        model = tasks.load(path, "cpu", dtype="float64")
        wanted = tasks.reach(model, model.tokenize("The bell was rung."))
        np.testing.assert_array_equal(reach.own, wanted.own)
    command = figure.command(dialog.choices.spec, "reach.pdf")
    words = "--text 'The bell was rung.' -o reach.pdf"
    assert command == f"hgviz reach {with_model.session.checkpoint} {tmp_path} {words}"
    dialog.reject()


# --- attribution ----------------------------------------------------------------------------------


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
        assert current_question(session).number == other
        view.settle()
        assert "another output" in view.complete.text()
        session.put(selection=Selection(0, 1, 3))
        question = current_question(session)
        assert (question.position, question.number) == (3, capture.prompt.ids[4])


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


def test_attribution_and_neurons_without_their_data_say_what_is_missing(app, asked_of):
    model, capture, found = asked_of
    dense = DenseMap(np.zeros((2, 20, 20), np.float32), (0, 1))
    with shown(AttributionView, **fields_of(asked_of, explained=None)) as (view, session):
        assert view.agreement.text().startswith("Compute attributes")
        for other, title in (
            (replace(capture, logits=None), "This capture has no output"),
            (replace(capture, spec=replace(capture.spec, goal="states")), "hidden states"),
            (make_image_capture(), "mage"),
        ):
            session.put(capture=other)
            view.settle()
            assert title in " ".join(map(str, view.empty[:2]))
    for kind in (AttributionView, NeuronView):
        with shown(kind) as (view, _):
            assert view.empty.actions[0][0] == "capture"
    weights = replace(capture, maps=(dense, *capture.maps[1:]))
    with shown(NeuronView, capture=weights, selection=Selection(0, 0, 3)) as (view, session):
        assert view.empty[0] == "This capture has weights only"
        session.put(capture=replace(capture, maps=(None, *capture.maps[1:])))
        view.settle()
        assert "not captured yet" in view.empty[0]


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
    until(lambda: not busy(program))
    assert program.session.explained is None or program.session.explained.layers is None


# --- neurons --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "layer"),  # 0: of a level, 2: down, 8: up
    [({"signed": True}, 8), ({"relative": True}, 0), ({"windowed": True}, 2)],
)
def test_the_weights_are_those_of_the_map(app, kind, layer):
    capture = make_capture(**kind)
    with shown(NeuronView, capture=capture, selection=Selection(layer, 1, 61, 20)) as (view, _):
        row = capture.row(layer, 61)
        wanted = capture.maps[layer].read(1, (row, row + 1))[0]
        one = view.found.anatomy
        largest = np.nanmax(np.abs(one.stage("score")), initial=1.0)
        # tiles and statistics are float32: a score of 8 is itself off by some 1e-6 there
        assert np.abs(one.weights - wanted).max() <= 1e-6 * max(1.0, largest / 4)
        assert view.keys.rows == list(range(len(wanted)))
        titles, *rows = view.as_table()
        weights = [float(row[titles.index("Weight")]) for row in rows]
        assert np.array_equal(weights, one.weights)


def test_a_key_is_chosen_by_mouse_and_keyboard_in_either_order(app, capture):
    with shown(NeuronView, capture=capture, selection=Selection(0, 1, 30)) as (view, session):
        QTest.mouseClick(view.order._group.button(1), Qt.MouseButton.LeftButton)
        order = np.argsort(-np.abs(view.found.anatomy.weights), kind="stable").tolist()
        assert view.keys.rows == order and view.keys.chosen == order[0]
        view.keys.scrollToTop()
        place = view.keys.visualRect(view.keys.order.index(4, 0)).center()
        QTest.mouseClick(view.keys.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert session.selection.key == order[4]
        view.keys.setFocus()
        QTest.keyClick(view.keys, Qt.Key.Key_Down)
        assert (session.selection.query, session.selection.key) == (30, order[5])
        view.keys.pointed.emit(7)
        assert session.hover == Selection(0, 1, 30, 7)
        view.keys.pointed.emit(None)
        assert session.hover is None


def test_reach_needs_a_model_and_a_text(program):
    program.commands.run("measure_reach")
    (dialog,) = program.frame.findChildren(ReachDialog)
    assert "checkpoint" in dialog.wrong.text() and not dialog.default.isEnabled()
    dialog.add("a.safetensors")
    dialog.text.clear()
    assert "text" in dialog.wrong.text()
    dialog._remove(0)
    assert not dialog.models
    dialog.reject()


# --- the look of all heads ------------------------------------------------------------------------


TEXTS = ("Some words, and some more.", "It was late; the ship had gone.", "Words, words, words.")


pytestmark = pytest.mark.usefixtures("app")


@pytest.fixture(scope="module")
def few_heads():
    """A short text at two levels."""
    return make_capture("It thinks where there is little to read. " * 2, (1, 2), heads=3)


@pytest.fixture
def session(few_heads):
    return session_of(few_heads, layer=3, head=1, query=40, facts=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A capture of three texts."""
    folder = tmp_path_factory.mktemp("corpus")
    keys = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}
    write_checkpoint(folder / "model", **keys)
    (folder / "texts.txt").write_text("\n".join(TEXTS), "utf-8")
    return tasks.capture_corpus(open_model(folder / "model"), folder / "texts.txt", folder / "c.h5")


# --- the picture ----------------------------------------------------------------------------------


@pytest.fixture
def view(session):
    with showing(HeadsView, session, 704, 620) as view:
        yield view


def titles_of(view):
    return [column.title for column in view.table.columns]


def test_every_head_is_a_point_at_its_two_numbers(view, few_heads):
    choose(view.across, "entropy")
    choose(view.up, "convolution")
    facts, (plot,) = view.measures.roles.heads, view.chart.chart.plots
    heads = set()
    for part in plot.of(Points):
        for at, (head, x, y) in enumerate(zip(part.keys, part.x, part.y, strict=True)):
            heads.add(head)
            metrics = facts[head].metrics
            assert (x, y) == (metrics["entropy"], metrics["convolution"])
            assert part.shape == few_heads.spec.layers[head.layer].level
            assert str(head) in part.words(at) and (facts[head].role or "no s") in part.words(at)
    assert heads == {head for head, one in facts.items() if "convolution" in one.metrics}
    looks = {(one.shape, one.colour, one.hollow) for one in plot.of(Points)}
    assert len(looks) == len(plot.of(Points)) == len({one.name for one in plot.of(Points)})


# --- the table ------------------------------------------------------------------------------------


def test_missing_numbers_are_dashes_sort_last_and_all_are_copied_in_full(view, session):
    for title, dash in (("Convolution-like", "–"), ("Mean max weight", None)):
        column = titles_of(view).index(title)
        view.table.sortByColumn(column, Qt.SortOrder.DescendingOrder)
        said = [view.table.model().index(row, column).data() for row in range(len(session.facts))]
        dashes = [at for at, one in enumerate(said) if one == dash]
        assert bool(dashes) == bool(dash)
        assert dashes == list(range(len(said) - len(dashes), len(said)))
    lines = [line.split("\t") for line in view.as_text().split("\n")]
    assert lines[0] == titles_of(view) and len(lines) == len(session.facts) + 1
    values = [float(one[column]) for one in lines[1:]]
    assert values == sorted(values, reverse=True)
    facts = {str(head): one for head, one in view.measures.roles.heads.items()}
    assert all(facts[one[0]].metrics["focus"] == float(one[column]) for one in lines[1:])


# --- what the chosen head is for ------------------------------------------------------------------


def test_a_capture_with_some_layers_shows_what_there_is(few_heads):
    part = replace(few_heads, maps=(*few_heads.maps[:2], *[None] * (len(few_heads.maps) - 2)))
    session = session_of(part, layer=4, head=0, query=3, facts=True)
    with showing(HeadsView, session, 500, 400) as view:
        assert {head.layer for head in view.measures.roles.heads} == {0, 1}
        view.part._group.button(1).click()
        assert (
            view.examples.isVisible()
            and view.table.isVisible()
            and "not captured" in view.examples.sentence.full
        )
        session.select(layer=0, head=0)
        assert view.examples.sentence.full.startswith("0.0:")


# --- over many texts ------------------------------------------------------------------------------


def test_examples_open_their_text_and_query(program, corpus, until):
    program.commands.open_path(corpus.path)
    until(lambda: program.session.capture is not None and program.session.facts)
    program.commands.run("table")
    assert (program.session.mode, program.session.look) == ("inspect", "heads")
    view = program.inspect.heads
    until(lambda: view.measures is not None and view.measures.roles.texts == 1)
    view.scope._group.button(1).click()
    until(lambda: view.measures.whole and view.measures.roles.texts == 3)
    assert program.session.roles is view.measures.roles and "3 texts" in view.head.note.full
    head, example = next(
        (head, one)
        for head, facts in view.measures.roles.heads.items()
        for one in facts.examples
        if one.text == 2 and one.key is not None
    )
    view.example.emit(head, example)
    measures = view.measures
    until(lambda: program.session.capture.item == 2)
    chosen = program.session.selection
    assert chosen.head_id == head and (chosen.query, chosen.key) == (example.query, example.key)
    program.settle()
    assert program.session.roles is not None and view.measures is measures  # of the same corpus
    view.scope._group.button(0).click()
    until(lambda: view.measures.roles.texts == 1)
