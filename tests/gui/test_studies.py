"""Studies: of the heads of one model, and of many runs."""

import shlex
import shutil

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

from hgviz import tasks
from hgviz.core import HeadId
from hgviz.figures import FIGURES
from hgviz.gui import studyruns
from hgviz.gui.export import drawn_of
from hgviz.maskfile import read_mask
from hgviz.store import open_study, write_study
from hgviz.store.studies import SweepFolder
from tests.gui.kinds import write_tiny
from tests.gui.screen import busy, error_dialogs, errors
from tests.studying import make_sweep, study_file, without, write

OFF = frozenset({HeadId(0, 0), HeadId(2, 1)})


@pytest.fixture(scope="session")
def measured(tiny, story, tmp_path_factory):
    """A study of the tiny hourglass on the story, with a curve."""
    trials = tasks.trials_of(tiny, story)
    study = tasks.importance(trials, {"gradient"}, "story.txt")
    study = tasks.curve(trials, study, "michel", random=2, most=4)
    return write_study(tmp_path_factory.mktemp("studies") / "heads.h5", study)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """A folder with another model."""
    return write_tiny(tmp_path_factory.mktemp("others") / "stranger", hierarchy="1@1")


def said(view):
    """What a pane says in place of its picture."""
    return "\n".join(one.text() for one in view._notice.findChildren(QLabel))


def open_file(program, path, until):
    program.commands.open_path(str(path))
    QApplication.processEvents()
    until(lambda: not busy(program))
    program.settle()


def open_model(program, path, until):
    open_file(program, path, until)
    until(lambda: program.session.capture is not None and not busy(program))


def score(program, path, until):
    """Score the model on a text."""
    program.commands.pruning.use(str(path))
    until(lambda: program.session.trial is not None and program.session.trial.done)


# --- by itself ------------------------------------------------------------------------------------


def test_a_study_is_shown_without_its_model_and_stays_when_that_opens(
    program, measured, short_checkpoint, until
):
    program.open_first([str(measured)])
    until(lambda: program.session.study is not None)
    program.settle()
    session, page = program.session, program.prune
    assert page.isVisible() and session.mode == "prune" and not error_dialogs(program)
    assert session.score == "michel"  # which has a curve
    assert len(page.heads.bar.shades.heads) == len(session.study.heads)
    assert page.curve.line.curve.order == open_study(measured).curves[0].order
    assert "heads.h5: tiny on story.txt" in said(page.live)
    open_model(program, short_checkpoint, until)
    program.settle()
    assert session.checkpoint == str(short_checkpoint) and session.study is not None
    assert session.mode == "prune" and "Choose data" in said(page.live)


# --- with its model -------------------------------------------------------------------------------


def test_a_study_is_extended_on_its_own_data_and_replaced_on_other_data(
    program, measured, short_checkpoint, story, tmp_path, until
):
    open_model(program, short_checkpoint, until)
    open_file(program, measured, until)
    session, pruning = program.session, program.commands.pruning
    assert session.checkpoint == str(short_checkpoint) and session.mode == "prune"
    score(program, story, until)
    assert pruning.known is session.study
    program.commands.run("keep_mask")
    pruning.switch(OFF)
    until(lambda: session.trial.done and session.trial.off == OFF)
    program.commands.run("keep_mask")
    pruning.measure(frozenset({"gradient", "token_gradient"}))
    until(lambda: not pruning.measuring)
    assert np.allclose(
        session.study.arrays["gradient"], open_study(measured).arrays["gradient"], atol=1e-4
    )
    assert "token_gradient" in session.study.arrays and len(session.study.curves) == 3
    other = tmp_path / "other.txt"
    other.write_text("Another text, about nothing. " * 40, encoding="utf-8")
    score(program, other, until)
    assert session.study is not None and pruning.known is None
    whole, pair = session.masks
    assert whole.score is None and pair.score == session.trial.losses[-1]
    pruning.measure(frozenset({"gradient"}))
    until(lambda: not pruning.measuring)
    assert session.study.path == "" and not session.study.curves


def test_a_study_of_a_sample_is_extended_on_the_same_rows(
    program, tiny, short_checkpoint, story, tmp_path, until
):
    trials = tasks.trials_of(tiny, story, limit=3)
    study = tasks.importance(trials, {"gradient"}, "story.txt")
    open_model(program, short_checkpoint, until)
    open_file(program, write_study(tmp_path / "a.h5", study), until)
    score(program, story, until)
    assert program.commands.pruning.known is not None


def test_a_saved_study_opens_with_its_masks_and_numbers(
    program, short_checkpoint, story, tmp_path, until
):
    open_model(program, short_checkpoint, until)
    session, pruning = program.session, program.commands.pruning
    score(program, story, until)
    pruning.measure(frozenset({"gradient"}))
    until(lambda: session.study is not None and not pruning.measuring)
    pruning.switch(OFF)
    until(lambda: session.trial.done and session.trial.off == OFF)
    program.commands.run("keep_mask")
    program.commands.run("save_mask")
    (dialog,) = program.frame.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "mask.json"))
    assert read_mask(f"@{tmp_path / 'mask.json'}", session.spec) == (OFF, frozenset())
    before, masks = session.study, session.masks
    path = tmp_path / "saved.h5"
    program.commands._save_study(str(path))
    until(lambda: path.exists() and not busy(program))
    assert drawn_of(session, FIGURES["scores"])[0].path == str(path)  # the command of its figure
    session.put(unsaved=True)
    assert drawn_of(session, FIGURES["scores"])[0].path == ""  # of more than the file has
    pruning.drop("2 off")
    open_file(program, path, until)
    assert session.masks == masks and session.masks[0].name == "2 off"
    assert np.array_equal(session.study.arrays["gradient"], before.arrays["gradient"])
    assert session.study.data_digest == before.data_digest and pruning.known is not None


# --- beside another model -------------------------------------------------------------------------


def test_a_study_of_another_model_opens_after_a_question(program, measured, stranger, until):
    open_model(program, stranger, until)
    session = program.session
    before = session.capture
    open_file(program, measured, until)
    (dialog,) = error_dialogs(program)
    assert dialog.error.what.endswith("it measured tiny, but stranger is open")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert session.capture is before and session.study is None and session.mode == "inspect"
    open_file(program, measured, until)
    (dialog,) = error_dialogs(program)
    dialog.default.click()
    program.settle()
    assert session.study is not None and session.spec.digest == session.study.spec.digest
    assert session.model is None and session.capture is None and session.checkpoint == ""
    assert "of this study, tiny, is not open" in said(program.prune.live)


# --- many runs ------------------------------------------------------------------------------------

SEEDS, METHODS = (1, 2), ("michel",)


@pytest.fixture
def studied(program, tmp_path):
    """A program on the page of a study of 22 cells with one seed done; of the other the training
    with ymish failed."""
    results = make_sweep(seeds=SEEDS, methods=METHODS)
    blank = without(results, *(one.cell.key for one in results.standings))
    write(tmp_path / "study", study_file(seeds=SEEDS, methods=METHODS), blank.standings)
    folder = SweepFolder(tmp_path / "study")
    for one in results.standings:
        if one.cell.place["seed"] == "1":
            folder.keep(one.cell.key, one.found, {"seconds": 2.0, "host": "node02"})
    (failed,) = results.of("train", seed="2", activation="ymish")
    folder.fail(failed.cell.key, "the loss is NaN. Lower the rate", "Traceback: NaN")
    program.commands.show_sweep(tasks.sweep_at(folder.path), str(folder.path))
    QApplication.processEvents()
    program.settle()
    return program


def test_cells_are_sorted_walked_and_opened_by_keys(studied):
    table, session = studied.sweep.cells.table, studied.session
    table.setFocus()
    table.sortByColumn(6, Qt.SortOrder.DescendingOrder)  # State
    names, *rows = studied.sweep.cells.as_table()
    states = [row[names.index("State")] for row in rows]
    assert len(rows) == 22 and states.index("waiting") < states.index("done")
    QTest.keyClick(table, Qt.Key.Key_Home)
    QTest.keyClick(table, Qt.Key.Key_Down)
    studied.settle()
    assert session.cell == table.chosen.cell.key
    assert studied.sweep.cell.place.text() in studied.frame.chosen_words.full
    session.put(cell=session.sweep.of("compare", seed="2")[0].cell.key)
    assert table.chosen.cell.key == session.cell
    asked = []
    studied.sweep.cells.asked.connect(asked.append)
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert asked == ["open_cell"]
    studied.sweep.summary.run.click()
    words = shlex.split(QGuiApplication.clipboard().text())
    out = session.sweep.path
    assert words == ["hgviz", "study", "run", session.sweep_file, "-o", out, "--again"]


def test_a_deleted_folder_leaves_its_last_numbers_and_a_warning(studied, until, monkeypatch):
    monkeypatch.setattr(studyruns, "OFTEN", 0.02)
    shutil.rmtree(studied.session.sweep.path)
    studied.commands.watching.look()
    until(lambda: studied.session.sweep_trouble)
    studied.settle()
    assert studied.sweep.summary.trouble.isVisible()
    assert studied.session.sweep.counts["done"] == 11
    assert not errors(studied)


def test_every_view_gives_its_values_as_a_table(studied):
    page, session = studied.sweep, studied.session
    studied.session.put(cell=session.sweep.of("score", seed="1")[0].cell.key)
    for name in ("budgets", "reached"):
        page.show_chart(name)
        studied.settle()
    for view in (page.cells, page.reached, page.budgets):
        names, *rows = view.as_table()
        assert rows and all(len(row) == len(names) for row in rows), view
        assert not any("\t" in cell or "\n" in cell for row in rows for cell in row)
    grid = dict(zip(*page.cells.as_table()[:2], strict=True))
    (train,) = session.sweep.of("train", seed="1", activation=grid["Activation"])
    assert grid["State"] == "done" and grid["Time"] == "2.0"
    assert grid["Result"].startswith(f"accuracy {100 * train.found['value']:.1f} %")
    assert "the loss is NaN. Lower the rate" in [row[-1] for row in page.cells.as_table()]
    mean = [row for row in page.reached.as_table() if "mean" in row]
    assert len(mean) == 2 and mean[0][-1] == ""  # one seed has no interval
