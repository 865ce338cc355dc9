"""The look All heads: points, rows and what the chosen head is for."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from hgviz import tasks
from hgviz.analysis.metrics import METRICS
from hgviz.analysis.roles import roles
from hgviz.core import HeadId
from hgviz.gui.charts import Points
from hgviz.gui.heads import ABOUT, HeadsView
from hgviz.gui.sentences import explained, measured, metric_name
from hgviz.models import open_model
from hgviz.session import Session
from hgviz.store import open_capture
from hgviz.tasks.heads import role_words
from tests.gui.screen import choose, click_chart, place_in, point_at, session_of, showing
from tests.making import make_capture
from tests.models.building import write_checkpoint

TEXTS = ("Some words, and some more.", "It was late; the ship had gone.", "Words, words, words.")


pytestmark = pytest.mark.usefixtures("app")


@pytest.fixture(scope="module")
def small():
    """A short text at two levels."""
    return make_capture("It thinks where there is little to read. " * 2, (1, 2), heads=3)


@pytest.fixture
def session(small):
    return session_of(small, layer=3, head=1, query=40, facts=True)


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


def test_every_head_is_a_point_at_its_two_numbers(view, small):
    choose(view.across, "entropy")
    choose(view.up, "convolution")
    facts, (plot,) = view.known.roles.heads, view.chart.chart.plots
    there = [
        (head, float(x), float(y), part, at)
        for part in plot.of(Points)
        for at, (head, x, y) in enumerate(zip(part.keys, part.x, part.y, strict=True))
    ]
    assert {one[0] for one in there} == {
        head for head, one in facts.items() if "convolution" in one.metrics
    }
    for head, x, y, part, at in there:
        assert x == facts[head].metrics["entropy"]
        assert y == facts[head].metrics["convolution"]
        assert part.shape == small.spec.layers[head.layer].level
        assert str(head) in part.words(at) and (facts[head].role or "no single") in part.words(at)
    looks = {(one.shape, one.colour, one.hollow) for one in plot.of(Points)}
    assert len(looks) == len(plot.of(Points)) == len({one.name for one in plot.of(Points)})


def test_a_click_on_a_point_opens_the_head_and_every_part_follows(view, session, qtbot):
    chart = view.chart
    points, *_ = chart.chart.plots[0].of(Points)
    head, place = points.keys[0], place_in(chart, points.x[0], points.y[0])
    click_chart(chart, place)
    assert session.selection.head_id == head
    assert view.table.chosen.head == chart.chosen == head
    assert view.examples.sentence.full.startswith(f"{head}:")
    point_at(chart, place)
    assert session.hover.head_id == chart.ringed
    assert f"Head {session.hover.head_id}" in chart.card.text
    session.put(hover=None)


# --- the table ------------------------------------------------------------------------------------


def test_the_table_holds_every_number_sorts_and_opens(view, session, qtbot):
    facts, table = view.known.roles.heads, view.table
    assert table.model().rowCount() == len(facts)
    table.selectRow(0)
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert session.selection.head_id == table.chosen.head == HeadId(0, 1)
    first = [table.model().index(row, 0).data() for row in range(4)]
    assert first == ["0.0", "0.1", "0.2", "1.0"]
    column = titles_of(view).index("Focus (max)")
    table.sortByColumn(column, Qt.SortOrder.DescendingOrder)
    best = max(facts.values(), key=lambda one: one.metrics["focus"])
    first = table.model().index(0, 0)
    assert first.siblingAtColumn(column).data() == measured("focus", best.metrics["focus"])
    table.setCurrentIndex(first)
    assert str(session.selection.head_id) == first.data()
    assert view.chart.chosen == session.selection.head_id


def test_missing_numbers_are_dashes_sort_last_and_all_are_copied_in_full(view, session):
    for title, dash in (("Convolution-like", "–"), ("Focus (max)", None)):
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
    facts = {str(head): one for head, one in view.known.roles.heads.items()}
    assert all(facts[one[0]].metrics["focus"] == float(one[column]) for one in lines[1:])


def test_another_theme_or_text_keeps_choice_and_order(view, session):
    choose(view.across, "entropy")
    chosen = view.table.chosen.head
    again = view.known
    session.put(facts=dict(session.facts))
    view.settle()
    assert view.known is again  # nothing is measured twice
    assert view.table.chosen.head == chosen and view.across.currentData() == "entropy"


# --- what the chosen head is for ------------------------------------------------------------------


def test_the_chosen_head_has_its_evidence_and_examples(view, session, qtbot):
    facts = view.known.roles.heads
    head = next(one.head for one in facts.values() if len(role_words(one)) > 1 and one.examples)
    session.select(layer=head.layer, head=head.head)
    for one in role_words(facts[head]):
        assert f"{one.words}: {one.evidence}" in view.examples.evidence.text()
    examples = view.examples.examples
    assert examples.rows == list(facts[head].examples)
    assert str(facts[head].nearest) in view.examples.like.text()
    with qtbot.waitSignal(view.example) as asked:
        examples.clicked.emit(examples.order.index(0, 0))
    assert asked.args == [head, facts[head].examples[0]]
    view.examples.like.click()
    assert session.selection.head_id == facts[head].nearest


def test_examples_are_left_out_where_there_is_no_room(session):
    with showing(HeadsView, session, 500, 400) as view:
        assert view.chart.isVisible() and view.table.isVisible()
        assert not view.examples.isVisible()
        view.resize(704, 700)
        assert view.examples.isVisible()


def test_captures_without_layers_or_with_some_show_what_there_is(small):
    with showing(HeadsView, Session(), 500, 300) as view:
        assert not view.content.isVisible()
    part = replace(small, maps=(*small.maps[:2], *[None] * (len(small.maps) - 2)))
    session = session_of(part, layer=4, head=0, query=3, facts=True)
    with showing(HeadsView, session, 704, 620) as view:
        assert {head.layer for head in view.known.roles.heads} == {0, 1}
        assert "not captured" in view.examples.sentence.full
        session.select(layer=0, head=0)
        assert view.examples.sentence.full.startswith("0.0:")


def test_another_text_is_never_shown_with_the_numbers_of_the_one_before(view, session, monkeypatch):
    before = view.known
    monkeypatch.setattr("hgviz.gui.heads.AT_ONCE", 10)
    session.put(capture=make_capture("Another text. " * 6, (1, 2), heads=2))
    for _ in range(3):  # not measured yet, however often it is asked for
        view.settle()
        assert not view.content.isVisible()
    session.put(facts=roles(session.capture))
    view.settle()
    assert view.known is not before and len(view.known.roles.heads) == len(session.facts)


def test_long_texts_are_measured_in_depth_only_when_asked(session, monkeypatch, qtbot):
    monkeypatch.setattr("hgviz.gui.heads.AT_ONCE", 10)
    with showing(HeadsView, session, 704, 620) as view:
        assert view.more.isVisible() and not view.known.whole
        assert "Convolution-like" not in titles_of(view)
        view.more.click()
        view.settle()
        assert view.known.whole and not view.more.isVisible()
        assert "Convolution-like" in titles_of(view)


# --- over many texts ------------------------------------------------------------------------------


def test_all_texts_of_a_corpus_are_measured_when_asked_and_stay_for_the_next_text(corpus):
    session = session_of(corpus, layer=0, head=0, query=3, facts=True)
    with showing(HeadsView, session, 704, 620) as view:
        assert view.scope.isVisible() and view.known.roles.texts == 1
        view.scope.choose("corpus")
        view.scope.chosen.emit("corpus")
        view.settle()
        assert view.known.roles.texts == 3 and "3 texts" in view.head.note.full
        assert any(one.text > 0 for f in view.known.roles.heads.values() for one in f.examples)
        known = view.known
        session.put(capture=open_capture(corpus.path, 1))
        view.settle()
        assert view.known is known
        view.scope.choose("text")
        view.scope.chosen.emit("text")
        view.settle()
        assert view.known.roles.texts == 1


def test_examples_open_their_text_and_query(program, corpus, until):
    program.commands.open_path(corpus.path)
    until(lambda: program.session.capture is not None and program.session.facts)
    program.commands.run("table")
    assert (program.session.mode, program.session.look) == ("inspect", "heads")
    view = program.inspect.heads
    view.scope.choose("corpus")
    view.scope.chosen.emit("corpus")
    until(lambda: view.known is not None and view.known.whole and view.known.roles.texts == 3)
    assert program.session.roles is view.known.roles
    head, example = next(
        (head, one)
        for head, facts in view.known.roles.heads.items()
        for one in facts.examples
        if one.text == 2 and one.key is not None
    )
    view.example.emit(head, example)
    until(lambda: program.session.capture.item == 2)
    chosen = program.session.selection
    assert chosen.head_id == head and (chosen.query, chosen.key) == (example.query, example.key)
    assert program.session.roles is not None  # of the same corpus
    program.settle()


def test_every_metric_and_column_says_what_it_is_its_formula_and_its_source(view):
    for name, one in METRICS.items():
        meaning, formula, source = explained(name, "token").split("\n")
        assert one.formula == formula and source.endswith(one.source)
        assert meaning and metric_name(name, "token")
    about = {column.title: column.about for column in view.table.columns}
    assert all("Source: " in about[title] for title in ABOUT)
