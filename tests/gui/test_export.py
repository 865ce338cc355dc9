"""Figures: the dialog that writes them, the command that draws them again, and their files."""

import shlex
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QBuffer, QCoreApplication, QEvent
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget

from hgviz import tasks
from hgviz.__main__ import main
from hgviz.core import Display, HeadId, Selection, progress
from hgviz.figures import Spec, points
from hgviz.figures.output import Preview
from hgviz.gui import export
from hgviz.gui.export import (
    ExportDialog,
    ExportRequest,
    FigureCache,
    command_for,
    offers,
)
from hgviz.gui.jobs import Lanes
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
def desk(app, short):
    """What the dialog needs: a window without panes, lanes, and a session of a short text."""
    desk = SimpleNamespace(frame=QWidget(), session=Session(), lanes=Lanes())
    desk.session.put(capture=short, selection=Selection(4, 2, 40, 20))
    desk.frame.resize(1600, 1000)
    desk.frame.show()
    yield desk
    for dialog in desk.frame.findChildren(ExportDialog):
        dialog.reject()
    desk.lanes.close()
    desk.frame.close()
    desk.frame.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def quick(desk, monkeypatch):
    """The same where no test looks at what is desk: blank pages of the width that is asked."""

    def blank(ready, dots):
        progress(0, 1)
        wide = points(ready.spec.width)
        png = QBuffer()
        image = QImage(round(wide / 72 * dots), 100, QImage.Format.Format_RGB32)
        image.save(png, "PNG")
        return Preview(png.data().data(), dots, wide, 100 / dots * 72, 6.5, ())

    monkeypatch.setattr(tasks, "preview", blank)
    return desk


def ask(desk, **more):
    """Open the dialog for the figure of the map."""
    session = desk.session
    spec = Spec("map", session.selection, session.display)
    dialog = ExportDialog(desk.frame, session, desk.lanes, [spec], **more)
    dialog.open()
    return dialog


def is_drawn(dialog):
    return dialog.preview.picture is not None and not dialog.preview._wait.isActive()


# --- the page -------------------------------------------------------------------------------------


def test_an_error_stands_in_place_of_the_page(desk, until, short):
    maps = (*short.maps[:4], None, *short.maps[5:])
    desk.session.put(capture=replace(short, maps=maps))
    dialog = ask(desk)
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


def test_the_figure_has_every_choice(quick, until):
    chosen, kept = [], []
    dialog = ask(quick)
    dialog.chosen.connect(chosen.append)
    dialog.kept.connect(lambda *form: kept.append(form))
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
    assert spec.selection == replace(quick.session.selection, key=None)
    assert wish.numbers
    assert wish.name.endswith("-levels.svg") and kept == [("100 mm", "svg")]
    assert dialog.isVisible()  # until it is known where to


@pytest.fixture
def drawn(program, short):
    """A program with a short text, everything drawn."""
    program.session.put(capture=short, selection=Selection(4, 2, 40, 20))
    program.settle()
    return program


def clipboard():
    return QGuiApplication.clipboard()


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
                    told, words = program.frame.chosen_words.full, shlex.split(clipboard().text())
                    lacks = f"{view.title} has no figure. {view.figureless}." == told
                    kinds[view.title] = None if lacks else words[words.index("--kind") + 1]
    assert {
        "Hourglass": "wall", "Map": "map", "Links": "links", "Neurons": "neurons",
        "Attention rollout": "rollout", "All heads": "profile", "Text": "levels",
        "Follow": "levels", "Compare": "compare", "Heads": "scores", "Pruning curve": "curve",
        "Head details": None, "Score": None, "Sides": None, "Predictions that changed": None,
    }.items() <= kinds.items()  # fmt: skip


# --- the command ----------------------------------------------------------------------------------


def session_of(a, b=None, **fields):
    """A session with a capture or two."""
    session = Session()
    session.put(capture=a, **fields)
    if b is not None:
        session.put(capture_b=b)
    return session


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two captures as they lie in files whose folder has a space in its name."""
    folder = tmp_path_factory.mktemp("my captures")
    found = []
    for name, seed in (("a", 0), ("b", 1)):
        path = folder / f"{name} one.h5"
        write_capture(path, make_capture(TEXT[:30], strides=(1, 2), heads=3, seed=seed))
        found.append(open_capture(path))
    return found


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


@pytest.mark.parametrize("kind", ["map", "levels", "compare", "neurons"])
def test_a_copied_command_draws_the_bytes_of_the_export(kind, files, tmp_path, monkeypatch):
    a, b = files if kind == "compare" else (files[0], None)
    session = session_of(a, b, display=Display("magma", (0.0, 0.4), "log"))
    session.put(selection=Selection(4, 2, 20, 9, HeadId(4, 1) if b else None))
    assert_command_draws(session, kind, tmp_path, monkeypatch, width="100mm", title="What “it” is")


def test_a_command_names_what_has_to_be_saved_first(short, files):
    offer = offers(session_of(short), ())[0]
    found = command_for(offer.of, offer.spec, "map.pdf")
    assert " CAPTURE.h5 " in found.words and "CAPTURE.h5: save the capture" in found.lacks
    both = session_of(files[0], short)
    offer = next(one for one in offers(both, ()) if one.name == "compare")
    found = command_for(offer.of, offer.spec, "compare.pdf")
    assert " B.h5 " in found.words and files[0].path in found.words
    assert "save B" in found.lacks and "A.h5" not in found.lacks


# --- the picture ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(checkpoint):
    """A session whose model was asked where its answer comes from."""
    model = tasks.load(str(checkpoint), "cpu")
    prompt, _ = tasks.read_prompts(model, "Sand ran.")
    capture = tasks.capture(model, prompt)
    session = session_of(capture, model=model, checkpoint=str(checkpoint))
    session.put(selection=Selection(0, 0, 5, 2))
    question = tasks.default_question(capture.spec.goal, capture.logits, capture.main, 5)
    question = replace(question, steps=32)
    found = tasks.attribute(model, capture.prompt, question, layers=True)
    session.put(explained=found)
    return session


@pytest.mark.parametrize(("way", "title"), [("tokens", "Where “it” is from"), ("attention", None)])
def test_a_command_that_asks_again_draws_the_bytes_of_the_export(
    way, title, asked, tmp_path, monkeypatch
):
    name = f"attribution {way}"
    assert_command_draws(asked, name, tmp_path, monkeypatch, width="acl", title=title)


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
