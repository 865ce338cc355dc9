"""The page of a study: what it shows, live, by keys, and when its folder goes wrong."""

import shlex
import shutil
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.gui import sources, studyruns
from hgviz.store.studies import SweepFolder
from tests.gui.screen import errors
from tests.sweeps import make_sweep, study_file, without, write

SCORE = {"metric": "accuracy", "value": 0.84, "low": 0.82, "high": 0.86, "loss": 0.4, "total": 8,
         "parameters": 1000, "right": {"count": 8, "bits": "f0"}}  # fmt: skip
SEEDS, METHODS = (1, 2), ("michel",)
MADE = {"seconds": 2.0, "host": "node02"}


@pytest.fixture(scope="module")
def results():
    """The sweep of such a study with every cell done."""
    return make_sweep(seeds=SEEDS, methods=METHODS)


@pytest.fixture
def folder(tmp_path, results):
    """A study of 22 cells of which nothing is done yet."""
    blank = without(results, *(one.cell.key for one in results.standings))
    write(tmp_path / "study", study_file(seeds=SEEDS, methods=METHODS), blank.standings)
    return SweepFolder(tmp_path / "study")


@pytest.fixture
def begun(folder, results):
    """The same with one seed done; of the other the training with ymish failed."""
    for one in results.standings:
        if one.cell.place["seed"] == "1":
            folder.keep(one.cell.key, one.found, dict(MADE))
    (failed,) = results.of("train", seed="2", activation="ymish")
    folder.fail(failed.cell.key, "the loss is no number. Lower the rate", "Traceback: NaN")
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


@pytest.fixture
def impatient(monkeypatch):
    """Looks follow each other at once."""
    monkeypatch.setattr(studyruns, "OFTEN", 0.02)
    monkeypatch.setattr(studyruns, "SELDOM", 0.02)


def key_of(session, work, **place):
    return session.sweep.of(work, **place)[0].cell.key


def test_a_folder_that_is_opened_shows_its_cells(program, begun, until):
    program.commands.open_path(str(begun.path))
    until(lambda: program.session.sweep is not None)
    program.settle()
    assert program.frame.pages.currentWidget() is program.sweep
    page = program.sweep
    assert page.summary.head.title.text() == "Which activation, which heads"
    assert page.summary.counts.full == "11 done, 5 waiting, 1 failed, 5 blocked"
    assert "the loss is no number" in page.cells.as_text()


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
    studied.commands.choose_cell(key_of(session, "compare", seed="2"))
    assert table.chosen.cell.key == session.cell
    asked = []
    studied.sweep.cells.asked.connect(asked.append)
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert asked == ["open_cell"]


def test_the_command_that_runs_the_study_is_copied(studied):
    session = studied.session
    studied.sweep.summary.run.click()
    words = shlex.split(QGuiApplication.clipboard().text())
    out = session.sweep.path
    assert words == ["hgviz", "study", "run", session.sweep_file, "-o", out, "--again"]


def test_a_deleted_folder_leaves_its_last_numbers_and_a_warning(studied, begun, until, impatient):
    shutil.rmtree(begun.path)
    studied.commands.watching.look()
    until(lambda: studied.session.sweep_trouble)
    studied.settle()
    assert studied.sweep.summary.trouble.isVisible()
    assert studied.session.sweep.counts["done"] == 11
    assert not errors(studied)


def test_a_damaged_result_is_named_once_and_closes_nothing(program, begun, until):
    cell = next(one for one in begun.plan().cells if begun.is_done(one.key))
    begun.result_at(cell.key).write_text("{")
    program.commands.open_path(str(begun.path))
    until(lambda: errors(program))
    (error,) = errors(program)
    assert cell.key in error.what and program.frame.isVisible()


def test_a_study_file_that_was_not_run_shows_its_cells_and_makes_no_folder(program, tmp_path):
    path = tmp_path / "asked.toml"
    path.write_text(
        'asks = ["score"]\nseeds = [1, 2]\n[[models]]\nname = "tiny"\nfamily = "bert"\n'
        'goal = "classes"\nd_model = 16\nn_heads = 2\nn_layers = 1\nmax_positions = 32\n'
        '[tokenizer]\nkind = "wordpiece"\nsize = 300\n[recipe]\nsteps = 1\n[[data]]\n'
        'train = ["sample/reviews.tsv"]\nvalid = "sample/reviews.tsv"\n'
    )
    found = sources.look(str(path))
    program.commands.show_sweep(found.sweep, found.path)
    program.settle()
    assert program.sweep.summary.counts.full == "4 waiting"
    assert program.session.sweep.path == str(tmp_path / "asked")
    assert not (tmp_path / "asked").exists()


def test_every_view_gives_its_values_as_a_table(studied):
    page, session = studied.sweep, studied.session
    studied.commands.choose_cell(session.sweep.of("score", seed="1")[0].cell.key)
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
    assert "the loss is no number. Lower the rate" in [row[-1] for row in page.cells.as_table()]
    mean = [row for row in page.reached.as_table() if "mean" in row]
    assert len(mean) == 2 and mean[0][-1] == ""  # one seed has no interval


# --- what a run found -----------------------------------------------------------------------------

CURVE = {"unit": "accuracy", "values": [0.9, 0.5]}
ANSWERS = {"difference": {"low": -0.02, "value": -0.012, "high": -0.004}, "agreement": 0.951}


@pytest.mark.parametrize(("work", "found", "words"), [
    ("score", {"metric": "accuracy", "value": 0.875, "low": 0.8, "high": 0.93},
     "accuracy 87.5 %, 80.0 to 93.0 %"),
    ("measure", {"heads": 24, "examples": 1200}, "24 heads on 1,200 examples"),
    ("curve", {"curves": [CURVE]}, "from 90.0 % to 50.0 % with all heads off"),
    ("compare", {"answers": ANSWERS}, "−1.2 points (−2.0 to −0.4), 95 % of answers alike"),
    ("compare", {"answers": 3}, ""),
])  # fmt: skip
def test_what_a_run_found_is_told(work, found, words):
    run = SimpleNamespace(cell=SimpleNamespace(work=work), found=found)
    assert studyruns.value(run) == words
