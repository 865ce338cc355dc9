"""Figures: the dialog that writes them, the command that draws them again, and their files."""

import shlex
from dataclasses import replace
from threading import Event

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLabel

from hgviz import tasks
from hgviz.__main__ import main
from hgviz.core import Display, HeadId, Selection, progress
from hgviz.figures import Spec
from hgviz.figures.output import Preview
from hgviz.gui import export
from hgviz.gui.export import (
    ExportDialog,
    ExportRequest,
    FigureCache,
    command_for,
    offers,
)
from hgviz.gui.view import Notice
from hgviz.session import Session
from hgviz.session.document import SideB
from hgviz.store import open_capture, write_capture
from tests.gui.screen import busy, choose, error_dialogs
from tests.making import make_capture
from tests.studying import make_study

LOOKS = "map", "links", "neurons", "across", "heads"
TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


@pytest.fixture(scope="module")
def short():
    return make_capture(TEXT, strides=(1, 2), heads=3)


@pytest.fixture
def drawn(program, short):
    """A program with a short text, everything drawn."""
    program.session.put(capture=short, selection=Selection(4, 2, 40, 20))
    program.settle()
    return program


def ask(program):
    """Open the dialog for the figure of the map."""
    session = program.session
    spec = Spec("map", session.selection, session.display)
    dialog = ExportDialog(program.frame, session, program.lanes, [spec])
    dialog.open()
    return dialog


def is_drawn(dialog):
    return dialog.preview.picture is not None and not dialog.preview._wait.isActive()


# --- the page -------------------------------------------------------------------------------------


def test_an_error_stands_in_place_of_the_page(drawn, until, short):
    maps = (*short.maps[:4], None, *short.maps[5:])
    drawn.session.put(capture=replace(short, maps=maps))
    dialog = ask(drawn)
    until(lambda: dialog.preview.findChildren(Notice))
    words = " ".join(one.text() for one in dialog.findChildren(QLabel))
    assert "layer 4" in words.lower() and not dialog.default.isEnabled()
    choose(dialog.choices.kind, "activation")
    until(lambda: is_drawn(dialog) and dialog.preview.page.isVisible())
    assert dialog.default.isEnabled()


def test_small_text_and_reduced_maps_are_said():
    fine = Preview(b"", 96, 396, 200, 6.5, ())
    assert export.warning(fine) == export.notes(fine) == ""
    assert "4.2 pt" in export.warning(replace(fine, smallest=4.2))
    notes = ("each cell is a sum", "each cell is a sum", "dashed: negative weights.")
    words = export.notes(replace(fine, notes=notes))
    assert words == "Each cell is a sum. Dashed: negative weights."
    for width, size in (("neurips", "5.50 × 2.78 in"), ("12cm", "14.0 × 7.1 cm"),
                        ("252 pt", "396 × 200 pt")):  # fmt: skip
        assert export.measures(fine, width).startswith(size)


# --- what is chosen -------------------------------------------------------------------------------


def test_the_figure_has_every_choice(drawn, until):
    chosen = []
    dialog = ask(drawn)
    dialog.chosen.connect(chosen.append)
    choices = dialog.choices
    choose(choices.kind, "levels")
    choose(choices.width_, "")
    choices.length.setText("100 mm")
    choose(choices.form, "svg")
    choices.title_.choose("own")
    choices.own.setText("What heads do")
    choices.colours.setChecked(False)
    choices.numbers.setChecked(True)
    until(lambda: is_drawn(dialog) and dialog.default.isEnabled())
    dialog.default.click()
    (wish,) = chosen
    spec = wish.spec
    assert (spec.kind, spec.width, spec.format) == ("levels", "100 mm", "svg")
    assert spec.title == "What heads do" and spec.display == Display()
    # of several layers: the query at hand, and no key of one head's map
    assert spec.selection == replace(drawn.session.selection, key=None)
    assert wish.numbers and wish.name.endswith("-levels.svg")


# --- which figure ---------------------------------------------------------------------------------


def test_every_pane_gives_its_figure_or_says_in_words_that_it_has_none(program):
    session, study = program.session, make_study()
    tiny = make_capture("Sand ran down.", strides=(1, 2), heads=2)
    session.put(
        capture=tiny, capture_b=tiny, comparison=SideB("head"), selection=Selection(0, 0, 5, 2)
    )
    curve = replace(study.curves[0], method="signed")
    study = replace(study, curves=(curve, *study.curves[1:]))
    session.put(study=study, score="signed")
    kinds = {}
    for mode in ("inspect", "follow", "prune", "compare"):
        session.put(mode=mode)
        for look in LOOKS if mode == "inspect" else ("map",):
            session.put(look=look)
            program.settle()
            for view in program.views:
                if view.isVisible() and view.title not in kinds:
                    program.commands.run_for(view, "copy_command")
                    told = program.frame.chosen_words.full
                    words = shlex.split(QGuiApplication.clipboard().text())
                    lacks = f"{view.title} has no figure. {view.figureless}." == told
                    kinds[view.title] = None if lacks else words[words.index("--kind") + 1]
    assert {
        "Hourglass": "wall", "Map": "map", "Links": "links", "Neurons": "neurons",
        "Attention rollout": "rollout", "All heads": "profile", "Text": "levels",
        "Follow": "levels", "Compare": "compare", "Heads": "scores", "Pruning curve": "curve",
        "Head details": None, "Score": None, "Sides": None, "Predictions that changed": None,
    }.items() <= kinds.items()  # fmt: skip


# --- the command ----------------------------------------------------------------------------------


def assert_command_draws(session, name, folder, monkeypatch, **look):
    """Check that the command of a figure draws the bytes that its export writes."""
    offer = next(one for one in offers(session, ()) if one.name == name)
    spec, path = replace(offer.spec, format="svg", **look), folder / "exported" / "again.svg"
    path.parent.mkdir()
    FigureCache(session.facts).export(spec, offer.of, str(path))
    command = command_for(offer.of, spec, "again.svg")
    program, *words = shlex.split(command.words)
    monkeypatch.chdir(folder)
    assert program == "hgviz" and not command.lacks and main(words) == 0
    assert (folder / "again.svg").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", ["map", "compare"])
def test_a_copied_command_draws_the_bytes_of_the_export(kind, tmp_path, monkeypatch):
    folder, session = tmp_path / "my captures", Session()
    folder.mkdir()
    for seed, side in enumerate(("capture", "capture_b") if kind == "compare" else ("capture",)):
        path = folder / f"{side} one.h5"
        write_capture(path, make_capture(TEXT[:30], strides=(1, 2), heads=3, seed=seed))
        session.put(**{side: open_capture(path)})
    beside = HeadId(4, 1) if kind == "compare" else None
    session.put(display=Display("magma", (0.0, 0.4), "log"))
    session.put(selection=Selection(4, 2, 20, 9, beside))
    assert_command_draws(session, kind, tmp_path, monkeypatch, width="100mm", title="What “it” is")


def test_a_command_that_asks_again_draws_the_bytes_of_the_export(checkpoint, tmp_path, monkeypatch):
    model, session = tasks.load(str(checkpoint), "cpu"), Session()
    prompt, _ = tasks.read_prompts(model, "Sand ran.")
    capture = tasks.capture(model, prompt)
    session.put(capture=capture, model=model, checkpoint=str(checkpoint))
    session.put(selection=Selection(0, 0, 5, 2))
    question = tasks.default_question(capture.spec.goal, capture.logits, capture.main, 5)
    question = replace(question, steps=32)
    session.put(explained=tasks.attribute(model, capture.prompt, question, layers=True))
    for way in ("tokens", "attention"):
        folder = tmp_path / way
        folder.mkdir()
        assert_command_draws(session, f"attribution {way}", folder, monkeypatch, width="acl")


# --- where a figure is written --------------------------------------------------------------------


def refused(program, until):
    """The error that is shown, once it is; its dialog is closed."""
    until(lambda: error_dialogs(program))
    (dialog,) = error_dialogs(program)
    dialog.reject()
    return dialog.error


def export_map(program, path, numbers=False):
    spec = replace(program.inspect.map.figure(program.session), format="svg")
    of = (program.session.capture,)
    request = ExportRequest(spec, of, FigureCache({}), "map.svg", numbers)
    program.commands.exporting.export_to(request, str(path))


def test_the_dialog_of_a_zoomed_map_stays_when_the_file_dialog_is_cancelled(drawn, until, tmp_path):
    view = drawn.inspect.map
    view.canvas._look(view.canvas.view.zoomed(4, 10, 10))
    drawn.commands.run_for(view, "export")
    (dialog,) = (one for one in drawn.frame.findChildren(ExportDialog) if one.isVisible())
    assert any("is zoomed in" in one.text() for one in dialog.findChildren(QLabel))
    for is_cancelled in (True, False):
        dialog.default.click()
        (asking,) = [one for one in drawn.frame.findChildren(QFileDialog) if one.isVisible()]
        if not is_cancelled:
            asking.fileSelected.emit(str(tmp_path / "map.pdf"))
        asking.reject()
        until(lambda: not busy(drawn))
        assert (dialog in drawn.frame.findChildren(ExportDialog)) == is_cancelled
    assert (tmp_path / "map.pdf").exists()


def test_figures_on_their_way_are_written_though_the_window_closes(drawn, until, tmp_path):
    """One that is on its way, and one that waits for it; a preview is given up."""
    begun, go = Event(), Event()

    def held():
        begun.set()
        assert go.wait(20)
        progress(0, 1)
        raise AssertionError("it was not given up")

    drawn.lanes.files.submit("preview", "Preview", held)
    assert begun.wait(20)
    for name in ("one.svg", "two.pdf"):
        export_map(drawn, tmp_path / name, numbers=name == "two.pdf")
    go.set()
    drawn.frame.close()
    found = sorted(one.name for one in tmp_path.iterdir())
    assert found == ["one.svg", "two.csv", "two.pdf"]


def test_a_figure_overwrites_nothing_unasked_and_gets_the_ending_of_its_format(
    drawn, until, tmp_path
):
    (tmp_path / "map.csv").write_text("notes of somebody")
    export_map(drawn, tmp_path / "map.svg", numbers=True)
    assert refused(drawn, until).what == "map.csv already exists"
    assert (tmp_path / "map.csv").read_text() == "notes of somebody"
    (tmp_path / "map.svg").write_text("a figure, asked about")
    names = ["fig1.2", "map.txt"]
    export_map(drawn, tmp_path / "map.svg", numbers=True)
    for name in names:
        export_map(drawn, tmp_path / name)
    until(lambda: not busy(drawn))
    assert "4.2" in (tmp_path / "map.csv").read_text()
    assert all((tmp_path / f"{name}.svg").exists() for name in names)
    export_map(drawn, tmp_path / "fig1.2")
    assert refused(drawn, until).what == "fig1.2.svg already exists"
    export_map(drawn, tmp_path / f"{'a' * 300}.svg", numbers=True)
    error = refused(drawn, until)
    assert error.what.endswith("File name too long") and not error.details
    assert error.do == "Choose a shorter name"
