"""The page of a study: what it shows, live, by keys, and when its folder goes wrong."""

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.core import finish
from hgviz.gui import sources, studyruns
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.help import find
from hgviz.gui.samples import FIRST
from hgviz.gui.sides import model_of
from hgviz.gui.studies import COLUMNS, SweepPage
from hgviz.resources import resource
from hgviz.store import open_capture
from hgviz.store.sweep import SweepFolder
from hgviz.sweep import Cell, Standing

STUDY = """
title = "Which activation"
question = "Does one need fewer heads?"
asks = ["score", "curve", "compare"]
seeds = {seeds}
activations = ["softmax", "ymish"]
methods = ["michel"]
[[models]]
name = "small"
family = "bert"
[[data]]
name = "reviews"
valid = "reviews.tsv"
"""
RIGHT = {"count": 8, "bits": "f0"}


def planned(seeds=(1, 2), models=("small",), methods=("michel", "random")):
    """The cells of such a study, those first that others need."""
    cells = []
    for model in models:
        for seed in seeds:
            trained = []
            for activation in ("softmax", "ymish"):
                place = {
                    "data": "reviews", "model": model, "activation": activation, "seed": str(seed),
                }  # fmt: skip
                train = Cell("train", {"plan": {"data": {}}, "of": place}, (), {}, place)
                given = {"trained": train.key}
                measure = Cell("measure", {**given, "arrays": ["change"]}, (train.key,), {}, place)
                cells += [train, Cell("score", given, (train.key,), {}, place), measure]
                cells += [
                    Cell("curve", {**given, "method": one}, (train.key, measure.key), {},
                         {**place, "method": one})
                    for one in methods
                ]  # fmt: skip
                trained.append(train.key)
            a, b = trained
            given = {"a": {"trained": a}, "b": {"trained": b}}
            cells.append(Cell("compare", given, (a, b), {}, place))
    return cells


def found_by(cell):
    """What such a cell might find."""
    value = 0.8 + 0.01 * int(cell.place["seed"]) + 0.02 * (cell.place["activation"] == "ymish")
    curve = {
        "method": cell.place.get("method", ""), "seed": 0, "unit": "accuracy", "examples": 8,
        "order": [], "off": [0, 2, 4], "values": [value, value - 0.1, 0.5], "loss": [0.4] * 3,
        "change": [0.0] * 3,
    }  # fmt: skip
    return {
        "train": {"metric": "accuracy", "value": value},
        "score": {"metric": "accuracy", "value": value, "low": value - 0.02, "high": value + 0.02,
                  "loss": 0.4, "total": 8, "parameters": 1000, "right": RIGHT},
        "measure": {"heads": 4, "examples": 8, "arrays": ["change"]},
        "curve": {"heads": 4, "curves": [curve]},
        "compare": {"answers": {"difference": {"value": 0.012, "low": -0.01, "high": 0.03},
                                "agreement": 0.9}, "metrics": []},
    }[cell.work]  # fmt: skip


def finish_cell(folder, cell, host="node01"):
    """Keep what a cell found."""
    folder.keep(cell.key, found_by(cell), {"seconds": 2.0, "host": host})


@pytest.fixture
def folder(tmp_path):
    """A study of 22 cells of which nothing is done yet."""
    found = SweepFolder(tmp_path / "study")
    found.write_plan(STUDY.format(seeds=[1, 2]), planned())
    return found


@pytest.fixture
def begun(folder):
    """The same: a seed is done, one cell failed."""
    cells = folder.cells()
    for cell in cells:
        if cell.place["seed"] == "1":
            finish_cell(folder, cell)
    second = [one for one in cells if one.place["seed"] == "2"]
    folder.fail(second[5].key, "the loss is no number. Lower the rate", "Traceback: NaN")
    return folder


@pytest.fixture
def studied(program, begun):
    """A program on the page of that study, everything drawn."""
    show(program, begun)
    return program


def show(program, folder):
    """Open a folder and draw it."""
    program.commands.show_sweep(tasks.sweep_at(folder.path), str(folder.path))
    QApplication.processEvents()
    program.settle()


# --- the page of a study: what it shows, live, by keys, and when its folder goes wrong ------------


@pytest.fixture
def impatient(monkeypatch):
    """Looks follow each other at once."""
    monkeypatch.setattr(studyruns, "OFTEN", 0.02)
    monkeypatch.setattr(studyruns, "SELDOM", 0.02)


def key_of(session, work, **place):
    return session.sweep.of(work, **place)[0].cell.key


def test_without_a_study_there_are_four_modes(program):
    modes = program.frame.toolbar.modes
    shown = [name for name in modes.names if not modes._group.button(
        modes.names.index(name)).isHidden()]  # fmt: skip
    assert shown == ["inspect", "follow", "prune", "compare"]
    program.session.put(mode="sweep")
    assert program.frame.pages.currentWidget() is program.empty


def test_a_folder_that_is_opened_shows_its_cells(program, begun, until):
    program.commands.open_path(str(begun.path))
    until(lambda: program.session.sweep is not None)
    program.settle()
    assert program.session.mode == "sweep"
    assert program.frame.pages.currentWidget() is program.sweep
    page = program.sweep
    assert page.summary.head.title.text() == "Which activation"
    assert page.summary.counts.full == "11 done, 5 waiting, 1 failed, 5 blocked"
    assert "the loss is no number" in page.cells.as_text()
    assert program.frame.windowTitle().startswith("Which activation")


def test_what_is_asked_off_the_thread_is_what_is_asked_here(studied, until):
    page = studied.sweep
    views = [one for one in page.views if one.isVisible()]
    there = [one.as_text() for one in views]
    for one in views:
        one.refresh()
    until(lambda: not studied.lanes.files.jobs and not studied.lanes.facts.jobs)
    QApplication.processEvents()
    assert [one.as_text() for one in views] == there and len(views) >= 4


def test_the_grid_follows_the_folder_whoever_writes_it(studied, begun, until, impatient):
    session = studied.session
    key = key_of(session, "train", seed="2", activation="softmax")
    cell = next(one for one in begun.cells() if one.key == key)
    studied.commands.watching.look()
    finish_cell(begun, cell, "node02")
    until(lambda: session.sweep.counts["done"] == 12)
    until(lambda: "12 done" in studied.sweep.summary.counts.full)


def test_cells_are_sorted_walked_and_opened_by_keys(studied):
    table, session = studied.sweep.cells.table, studied.session
    table.setFocus()
    table.sortByColumn(COLUMNS.index("State"), Qt.SortOrder.DescendingOrder)
    names, *rows = studied.sweep.cells.as_table()
    states = [row[names.index("State")] for row in rows]
    assert len(rows) == 22 and states.index("waiting") < states.index("done")
    QTest.keyClick(table, Qt.Key.Key_Home)
    QTest.keyClick(table, Qt.Key.Key_Down)
    studied.settle()
    assert session.cell == session.sweep.standings[table.number].cell.key
    assert studied.sweep.cell.place.text() in studied.frame.chosen_words.full
    studied.commands.choose_cell(key_of(session, "compare", seed="2"))
    assert session.sweep.standings[table.number].cell.key == session.cell
    asked = []
    studied.sweep.cells.asked.connect(asked.append)
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert asked == ["open_cell"]


def test_each_state_has_an_icon_and_a_word(studied):
    rows, column = studied.sweep.cells.table.rows, COLUMNS.index("State")
    by_state = {}
    for number, standing in enumerate(rows.standings):
        icon = rows.data(rows.index(number, column), Qt.ItemDataRole.DecorationRole)
        assert rows.data(rows.index(number, column), Qt.ItemDataRole.DisplayRole)
        by_state[standing.state] = icon.cacheKey()
    assert len(set(by_state.values())) == len(by_state) == 4


def test_a_cell_that_failed_has_its_details_folded(studied):
    page, session = studied.sweep, studied.session
    key = next(one.cell.key for one in session.sweep.standings if one.state == "failed")
    studied.commands.choose_cell(key)
    studied.settle()
    assert page.cell.details.isHidden() and page.cell.open.isHidden()
    page.cell.fold.click()
    assert page.cell.details.isVisible() and "Traceback" in page.cell.details.toPlainText()


def test_the_command_that_runs_the_study_is_copied(studied):
    session = studied.session
    studied.sweep.summary.run.click()
    words = shlex.split(QGuiApplication.clipboard().text())
    out = session.sweep.path
    assert words == ["hgviz", "study", "run", session.sweep_file, "-o", out, "--again"]


def test_nobody_looks_at_a_page_that_is_hidden(studied, begun, until, impatient, monkeypatch):
    looks = []
    look = studyruns.tasks.sweep_at
    monkeypatch.setattr(studyruns.tasks, "sweep_at",
                        lambda *given: looks.append(1) or look(*given))  # fmt: skip
    studied.session.put(mode="inspect")
    until(lambda: not studied.lanes.watch.jobs)
    looks.clear()
    studied.commands.watching.look()
    for _ in range(20):
        QApplication.processEvents()
    assert not looks
    studied.session.put(mode="sweep")
    studied.commands.watching.look()
    until(lambda: looks)


def test_a_folder_that_is_deleted_leaves_what_was_seen_with_a_word(
    studied, begun, until, impatient
):
    shutil.rmtree(begun.path)
    studied.commands.watching.look()
    until(lambda: studied.session.sweep_trouble)
    studied.settle()
    assert studied.sweep.summary.trouble.isVisible()
    assert studied.session.sweep.counts["done"] == 11
    assert not [one for one in studied.frame.findChildren(ErrorDialog) if one.isVisible()]


def test_a_file_that_is_no_study_file_is_said_in_a_dialog(program, tmp_path, until):
    path = tmp_path / "a.toml"

    def dialogs():
        return [one for one in program.frame.findChildren(ErrorDialog) if one.isVisible()]

    for content in ("asks = 3", "[[models]]", "title = ", "\x00", '[model]\nfamily = "bert"'):
        path.write_text(content)
        program.commands.open_path(str(path))
        until(dialogs)
        lines = dialogs()[0].error.lines
        assert len(lines) == 3 and all(lines) and program.session.sweep is None
        dialogs()[0].finish()
        QApplication.processEvents()


def test_a_damaged_result_is_said_once_and_closes_nothing(program, begun, until):
    cell = next(one for one in begun.cells() if begun.is_done(one.key))
    begun.result_at(cell.key).write_text("{")
    program.commands.open_path(str(begun.path))

    def dialogs():
        return [one for one in program.frame.findChildren(ErrorDialog) if one.isVisible()]

    until(lambda: dialogs() or program.session.sweep is not None)
    if dialogs():
        assert cell.key in dialogs()[0].error.what
        dialogs()[0].finish()


def test_charts_have_a_mark_for_each_activation_and_a_line_for_each_method(studied):
    page = studied.sweep
    content = page.reached._found.content
    assert content.groups == ("softmax", "ymish") and len(content.marks()) == 2
    assert page.reached.figure(studied.session).kind == "seeds"
    page.show_chart("budgets")
    studied.settle()
    lines = {one.label for plot in page.budgets._found.content.plots for one in plot.lines}
    assert lines == {"michel", "random orders"}
    QTest.mouseMove(page.budgets.chart, page.budgets.chart.where(0).toPoint())
    QApplication.processEvents()
    assert page.budgets.chart.card.isVisible() and "of heads off" in page.budgets.chart.card.text


def test_nothing_done_is_said_where_charts_will_be(program, folder):
    show(program, folder)
    page = program.sweep
    assert page.reached.empty[0] == "No model is scored yet"
    assert page.summary.counts.full == "22 waiting"
    assert page.reached.figure(program.session) is None


def test_a_study_that_is_closed_takes_its_mode_with_it(studied):
    studied.commands.run("close_sweep")
    assert studied.session.sweep is None and studied.session.mode == "inspect"
    assert studied.frame.pages.currentWidget() is studied.empty


def test_a_study_file_that_was_not_run_shows_what_would_be(program, tmp_path, until):
    path = tmp_path / "asked.toml"
    path.write_text(
        'asks = ["score"]\nseeds = [1, 2]\n[[models]]\nname = "tiny"\nfamily = "bert"\n'
        'goal = "classes"\nd_model = 16\nn_heads = 2\nn_layers = 1\nmax_positions = 32\n'
        '[tokenizer]\nkind = "wordpiece"\nsize = 300\n[recipe]\nsteps = 1\n[[data]]\n'
        'train = ["sample/reviews.tsv"]\nvalid = "sample/reviews.tsv"\n'
    )
    found = finish(sources.look(str(path)))
    program.commands.show_sweep(found.sweep, found.path)
    program.settle()
    assert program.sweep.summary.counts.full == "4 waiting"
    assert program.session.sweep.path == str(tmp_path / "asked")
    assert not (tmp_path / "asked").exists()


def test_a_model_that_a_study_trained_is_called_by_its_place_on_every_page(studied):
    session = studied.session
    one = session.sweep.of("train")[0].cell
    capture = open_capture(resource(FIRST))
    assert model_of(session, capture) == capture.spec.name
    trained = replace(capture.spec, name=one.key)
    assert model_of(session, replace(capture, spec=trained)) == "small softmax seed 1"
    kept = Path(session.sweep.path) / "elsewhere" / one.key  # the folder may have been moved
    assert studyruns.trained_as(session.sweep, str(kept)) == "small softmax seed 1"
    assert studyruns.trained_as(None, one.key) == ""


def test_one_model_with_its_own_activation_is_named_not_called_own(program, tmp_path):
    place = {"data": "reviews", "model": "small", "activation": "own", "seed": "1"}
    cell = Cell("score", {"checkpoint": "small"}, (), {}, place)
    folder = SweepFolder(tmp_path / "study")
    folder.write_plan(STUDY.format(seeds=[1]), [cell])
    finish_cell(folder, cell)
    show(program, folder)
    assert "small" in program.sweep.reached.as_text()
    assert "own" not in program.sweep.reached._found.content.groups


def test_what_cells_found_is_said_in_words():
    by = {one.work: Standing(one, "done", found_by(one), seconds=75.0) for one in planned()}
    assert studyruns.value(by["score"]).startswith("accuracy 84.0")
    assert studyruns.value(by["measure"]) == "4 heads on 8 examples"
    assert "to 50.0" in studyruns.value(by["curve"])
    assert studyruns.value(by["compare"]).startswith("+1.2 points (−1.0 to +3.0)")
    assert ("Took", "75 s") in studyruns.facts(by["train"])


@pytest.mark.parametrize("found", [{}, {"metric": 3}, {"curves": []}, {"answers": None}])
def test_results_of_another_version_are_shown_without_what_they_lack(found):
    for one in planned():
        assert studyruns.value(Standing(one, "done", found)) == ""


# --- the page of a study as tables, and what its facts are ----------------------------------------


def test_every_view_gives_its_values_as_a_table(studied):
    page, session = studied.sweep, studied.session
    studied.commands.choose_cell(session.sweep.of("score", seed="1")[0].cell.key)
    for name in ("budgets", "reached"):
        page.show_chart(name)
        studied.settle()
    for view in page.views:
        names, *rows = view.as_table()
        assert rows and all(len(row) == len(names) for row in rows), view
        assert not any("\t" in cell or "\n" in cell for row in rows for cell in row)
    grid = dict(zip(*page.cells.as_table()[:2], strict=True))
    assert grid["State"] == "done" and float(grid["Value"]) == 81.0 and grid["Took, s"] == "2.0"
    facts = dict(page.cell.as_table()[1:])
    assert (facts["Metric"], facts["Low"], facts["High"]) == ("accuracy", "79.0", "83.0")
    assert "the loss is no number. Lower the rate" in [row[-1] for row in page.cells.as_table()]
    assert page.summary.as_table() == [
        ["State", "Cells"], ["done", "11"], ["waiting", "5"], ["failed", "1"],
        ["blocked", "5"],
    ]  # fmt: skip
    mean = [row for row in page.reached.as_table() if "mean" in row]
    assert len(mean) == 2 and mean[0][-1] == ""  # one seed has no interval


def test_a_study_that_is_not_there_has_no_table(program):
    assert [view.as_table() for view in program.sweep.views] == [None] * 5


def test_every_fact_says_what_it_is_and_where_from(studied):
    page = studied.sweep
    for one in studied.session.sweep.standings:
        studied.commands.choose_cell(one.cell.key)
        page.cell.settle()
        shown = [(name, words) for name, words in page.cell._facts if not name.isHidden()]
        assert shown and all(name.toolTip() and words.toolTip() for name, words in shown)
    rows, tip = page.cells.table.rows, Qt.ItemDataRole.ToolTipRole
    across = Qt.Orientation.Horizontal
    assert all(rows.headerData(at, across, tip) for at in range(rows.columnCount()))
    assert "√n" in page.reached.head.title.toolTip()


def test_a_pane_that_is_empty_says_so(program, folder):
    show(program, folder)
    page = program.sweep
    page.show_chart("budgets")
    program.settle()
    for view in (page.cell, page.reached, page.budgets):
        assert view._notice is not None


def test_every_pane_has_its_page(app):
    page = SweepPage()
    topics = [view.topic for view in page.views]
    page.deleteLater()
    assert len(set(topics)) == 5 and all(find(topic) for topic in (*topics, "export"))
