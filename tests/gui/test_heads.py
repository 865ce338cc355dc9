"""The look All heads: points, rows and what the chosen head is for."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from hgviz import tasks
from hgviz.gui.charts import Points
from hgviz.gui.heads import HeadsView
from hgviz.models import open_model
from tests.gui.screen import choose, session_of, showing
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
    facts, (plot,) = view.measures.roles.heads, view.chart.chart.plots
    heads = set()
    for part in plot.of(Points):
        for at, (head, x, y) in enumerate(zip(part.keys, part.x, part.y, strict=True)):
            heads.add(head)
            metrics = facts[head].metrics
            assert (x, y) == (metrics["entropy"], metrics["convolution"])
            assert part.shape == small.spec.layers[head.layer].level
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


def test_a_capture_with_some_layers_shows_what_there_is(small):
    part = replace(small, maps=(*small.maps[:2], *[None] * (len(small.maps) - 2)))
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
