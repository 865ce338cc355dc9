"""The page of a study: what it shows, live, by keys, narrow, and when its folder goes wrong."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import finish
from hgviz.gui import opening, theme
from hgviz.gui.compare.told import model_of
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.sweeps import results, watching
from hgviz.gui.sweeps.table import COLUMNS
from hgviz.resources import resource
from hgviz.store import open_capture
from hgviz.store.sweep import SweepFolder
from hgviz.sweep import Cell
from tests.gui.sweeps.conftest import STUDY, finish_cell, run_cell, show


@pytest.fixture
def impatient(monkeypatch):
    """Looks follow each other at once."""
    monkeypatch.setattr(watching, "OFTEN", 0.02)
    monkeypatch.setattr(watching, "SELDOM", 0.02)


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
    assert page.summary.counts.words == "11 done, 1 running, 4 waiting, 1 failed, 5 blocked"
    assert page.failures.rows.count() == 1
    assert "the loss is no number" in page.failures.as_text()
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
    image = page.grid.canvas.grab().toImage()
    studied.settle()
    assert page.grid.canvas.grab().toImage() == image


def test_cells_are_walked_by_keys_and_told_of(studied):
    canvas, session = studied.sweep.grid.canvas, studied.session
    canvas.setFocus()
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert session.cell == session.sweep.standings[0].cell.key
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    QTest.keyClick(canvas, Qt.Key.Key_End)
    studied.settle()
    assert session.cell == key_of(session, "compare", seed="2")
    assert "Compare: reviews, small, ymish, seed 2" in studied.frame.chosen_words.full
    assert studied.sweep.cell.place.text() == "Compare: reviews, small, ymish, seed 2"
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert session.cell == ""


def test_a_click_chooses_and_a_pointer_tells(studied):
    canvas, session = studied.sweep.grid.canvas, studied.session
    where = canvas.box(1).center().toPoint()
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=where)
    assert session.cell == session.sweep.standings[1].cell.key
    QTest.mouseMove(canvas, canvas.box(4).center().toPoint())
    QApplication.processEvents()
    assert canvas.card.isVisible() and "node01" in canvas.card.text
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.rect().bottomRight())
    assert session.cell == ""


def test_the_table_says_the_same_and_chooses_the_same(studied):
    grid, session = studied.sweep.grid, studied.session
    lines = grid.as_text().split("\n")
    assert lines[0].split("\t") == list(COLUMNS) and len(lines) == 23
    assert sum("\tgiven up\t" in one for one in lines) == 1
    grid.form._group.button(1).click()
    grid.table.selectRow(3)
    assert session.cell == session.sweep.standings[3].cell.key
    studied.commands.choose_cell(session.sweep.standings[7].cell.key)
    assert grid.table.currentIndex().row() == 7


def test_a_failure_that_is_picked_is_shown_with_its_details_folded(studied):
    page = studied.sweep
    page.failures.rows.setCurrentRow(0)
    studied.settle()
    assert studied.session.cell == page.failures.rows.item(0).data(Qt.ItemDataRole.UserRole)
    assert page.cell.details.isHidden() and page.cell.again.isVisible()
    page.cell.fold.click()
    assert page.cell.details.isVisible() and "Traceback" in page.cell.details.toPlainText()


def test_the_grid_follows_the_folder_whoever_writes_it(studied, begun, until, impatient):
    session = studied.session
    key = key_of(session, "train", seed="2", activation="softmax")
    cell = next(one for one in begun.cells() if one.key == key)
    studied.commands.watching.look()
    run_cell(begun, cell, 0.9)
    until(lambda: session.sweep.of("train", seed="2")[0].share == 0.9)
    finish_cell(begun, cell, "node02")
    until(lambda: session.sweep.counts["done"] == 12)
    until(lambda: "12 done" in studied.sweep.summary.counts.words)


def test_nobody_looks_at_a_page_that_is_hidden(studied, begun, until, impatient, monkeypatch):
    looks = []
    look = watching.tasks.sweep_at
    monkeypatch.setattr(watching.tasks, "sweep_at",
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
    page.show_turn("budgets")
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
    assert page.summary.counts.words == "22 waiting"
    assert page.reached.figure(program.session) is None


def test_everything_has_its_room(studied):
    studied.commands.choose_cell(studied.session.sweep.standings[3].cell.key)
    for size in ((900, 600), (1600, 1000), (1000, 700)):
        has_its_room(studied, size)


def has_its_room(studied, size):
    studied.frame.resize(*size)
    QApplication.processEvents()
    studied.settle()
    page = studied.sweep
    toolbar = studied.frame.toolbar
    assert toolbar.modes.geometry().right() < toolbar.finder.geometry().left()
    assert page.grid.canvas.geo.size[0] <= page.grid.canvas.width()
    assert page.grid.canvas.geo.size[1] <= page.grid.canvas.height()
    wide = size[0] >= 1180
    assert page.side.isVisible() == wide
    assert page.cell.isVisible()
    for name in ("reached", "budgets") if wide else page._turns:
        page.show_turn(name)
        studied.settle()
        assert page._turns[name].isVisible()
    if not wide:
        page.show_turn("cell")


def test_another_theme_is_put_on_at_once(studied):
    before = studied.sweep.grid.canvas.grab().toImage()
    studied.session.put(dark=True)
    studied.settle()
    assert studied.sweep.grid.canvas.grab().toImage() != before
    studied.session.put(dark=False)
    studied.settle()
    assert studied.sweep.grid.canvas.grab().toImage() == before


def test_a_study_that_is_closed_takes_its_mode_with_it(studied):
    studied.commands.run("close_sweep")
    assert studied.session.sweep is None and studied.session.mode == "inspect"
    assert studied.frame.pages.currentWidget() is studied.empty


def test_ten_thousand_cells_are_placed_once_and_painted_from_one_picture(studied):
    grid = studied.sweep.grid
    layout, first = grid.cells.layout, grid.canvas
    first.grab()
    picture = first._picture
    studied.settle()
    assert grid.cells.layout is layout
    first.choose(3)
    first.grab()
    QTest.mouseMove(first, first.box(5).center().toPoint())
    assert first._picture is not None and picture is not None


def test_a_study_file_that_was_not_run_shows_what_would_be(program, tmp_path, until):
    path = tmp_path / "asked.toml"
    path.write_text(
        'asks = ["score"]\nseeds = [1, 2]\n[[models]]\nname = "tiny"\nfamily = "bert"\n'
        'goal = "classes"\nd_model = 16\nn_heads = 2\nn_layers = 1\nmax_positions = 32\n'
        '[tokenizer]\nkind = "wordpiece"\nsize = 300\n[recipe]\nsteps = 1\n[[data]]\n'
        'train = ["sample/reviews.tsv"]\nvalid = "sample/reviews.tsv"\n'
    )
    found = finish(opening.look(str(path)))
    program.commands.show_sweep(found.sweep, found.path)
    program.settle()
    assert program.sweep.summary.counts.words == "4 waiting"
    assert program.session.sweep.path == str(tmp_path / "asked")
    assert not (tmp_path / "asked").exists()


def test_a_model_that_a_study_trained_is_called_by_its_place_on_every_page(studied):
    session = studied.session
    one = session.sweep.of("train")[0].cell
    capture = open_capture(resource(opening.FIRST))
    assert model_of(session, capture) == capture.spec.name
    trained = replace(capture.spec, name=one.key)
    assert model_of(session, replace(capture, spec=trained)) == "small softmax seed 1"
    kept = Path(session.sweep.path) / "elsewhere" / one.key  # the folder may have been moved
    assert results.trained_as(session.sweep, str(kept)) == "small softmax seed 1"
    assert results.trained_as(None, one.key) == ""


@pytest.mark.parametrize("dark", [False, True])
def test_a_failure_that_is_chosen_can_be_read(studied, qapp, dark):
    theme.apply(qapp, dark)
    rows = studied.sweep.failures.rows
    studied.commands.choose_cell(rows.item(0).data(Qt.ItemDataRole.UserRole))
    studied.settle()
    box = rows.visualItemRect(rows.item(0))
    image = rows.viewport().grab().toImage()
    behind = image.pixelColor(image.width() - 3, round(image.devicePixelRatio() * box.center().y()))
    assert behind == theme.current().mark_tint  # what lists say of what is chosen, on every page


def test_one_model_with_its_own_activation_is_named_not_called_own(program, tmp_path):
    place = {"data": "reviews", "model": "small", "activation": "own", "seed": "1"}
    cell = Cell("score", {"checkpoint": "small"}, (), {}, place)
    folder = SweepFolder(tmp_path / "study")
    folder.write_plan(STUDY.format(seeds=[1]), [cell])
    finish_cell(folder, cell)
    show(program, folder)
    assert program.sweep.grid.canvas._names() == ["small"]
    assert "small" in program.sweep.reached.as_text()
    assert "own" not in program.sweep.reached._found.content.groups
