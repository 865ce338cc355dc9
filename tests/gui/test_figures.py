"""Every pane exports and copies what it shows, and the command that draws it again."""

import errno
import os
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

from hgviz import settings, tasks
from hgviz.__main__ import main
from hgviz.analysis.roles import roles
from hgviz.core import Display, HeadId, Selection, progress
from hgviz.figures.levels import stages_of
from hgviz.gui import export
from hgviz.gui.export import (
    ExportDialog,
    ExportRequest,
    FigureCache,
    FileLinks,
    command_for,
    offer_of,
    offers,
)
from hgviz.gui.layouts import followed
from hgviz.gui.view import View
from hgviz.session import Other, Session
from hgviz.store import open_capture, write_capture
from tests.gui.screen import busy, error_dialogs
from tests.making import make_capture
from tests.studying import make_study

LOOKS = "map", "links", "neurons", "across", "heads"
TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


def export_to(drawn, wish, path):
    drawn.commands.exporting.export_to(wish, path)


@pytest.fixture(scope="module")
def short():
    return make_capture(TEXT, strides=(1, 2), heads=3)


@pytest.fixture
def drawn(program, short):
    """A program with a short text, everything drawn."""
    program.session.put(capture=short, selection=Selection(4, 2, 40, 20))
    program.settle()
    return program


def dialog_of(program):
    return next(one for one in program.frame.findChildren(ExportDialog) if one.isVisible())


@contextmanager
def exporting(program, view=None):
    """The dialog in which a view, or what is on screen, is exported."""
    if view is None:
        program.commands.run("export")
    else:
        program.commands.run_for(view, "export")
    yield dialog_of(program)
    dialog_of(program).reject()


def said(dialog):
    return " ".join(one.text() for one in dialog.findChildren(QLabel) if one.isVisible())


def clipboard():
    return QGuiApplication.clipboard()


# --- which figure ---------------------------------------------------------------------------------


def test_every_pane_gives_its_figure_or_says_in_words_that_it_has_none(program):
    session, study = program.session, make_study()
    tiny = make_capture("Sand ran down.", strides=(1, 2), heads=2)
    session.put(capture=tiny, beside=tiny, other=Other("head"), selection=Selection(0, 0, 5, 2))
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
                    lacks = f"{view.title} has no figure of its own" in told
                    kinds[view.title] = None if lacks else words[words.index("--kind") + 1]
    assert {
        "Hourglass": "wall", "Map": "map", "Links": "links", "Neurons": "neurons",
        "Attention rollout": "rollout", "All heads": "profile", "Text": "levels",
        "Follow": "levels", "Compare": "compare", "Heads": "scores", "Pruning curve": "curve",
        "This head": None, "Score": None, "Sides": None, "Predictions that changed": None,
    }.items() <= kinds.items()  # fmt: skip


def test_every_pane_that_has_no_figure_says_why(program):
    for view in program.views:
        own = type(view).figureless is not View.figureless
        draws = type(view).figure is not View.figure
        assert own or draws, f"{view.title} says that nothing is captured, whatever is"
        assert view.figureless and not view.figureless.endswith("."), view.title


def test_the_pane_with_the_keyboard_is_drawn(drawn):
    drawn.inspect.hourglass.take_focus()
    QTest.keyClick(drawn.frame, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert dialog_of(drawn).choices.kind.currentData() == "wall"


def test_a_map_that_is_zoomed_in_is_exported_whole_and_says_so(drawn):
    with exporting(drawn, drawn.inspect.map) as dialog:
        assert "zoomed in" not in said(dialog)
    canvas = drawn.inspect.map.canvas
    canvas._look(canvas.view.zoomed(4, 10, 10))
    assert drawn.inspect.map.zoomed
    with exporting(drawn, drawn.inspect.map) as dialog:
        assert "Map is zoomed in on screen; its figure shows all of it." in said(dialog)
    drawn.inspect.map.fit()
    assert not drawn.inspect.map.zoomed


@pytest.mark.parametrize("look", ["map", "across"])  # shown by a pane, and by none
def test_the_key_chosen_in_the_map_of_a_head_is_not_marked_across_layers(drawn, look):
    session = drawn.session
    session.put(look=look)
    drawn.settle()
    specs = [one.figure(session) for one in drawn.inspect.looks if one.name == look]
    by_kind = {one.spec.kind: one.spec for one in offers(session, specs)}
    assert session.selection.key == 20
    assert by_kind["map"].selection.key == 20
    assert by_kind["rollout"].selection.key is None


def test_a_map_is_marked_where_somebody_chose_a_cell_in_the_head_shown(program, until):
    def marks():
        spec = program.inspect.map.figure(program.session)
        beside = {one.spec.kind: one.spec for one in offers(program.session, ())}
        assert beside["map"].selection == spec.selection
        return spec.selection.query, spec.selection.key

    session = program.session
    program.commands.run("open_sample")
    until(lambda: session.capture is not None and session.facts and not busy(program))
    assert session.selection.query is not None and marks() == (None, None)
    session.put(capture=make_capture(TEXT, strides=(1, 2), heads=3))
    assert session.selection.query is not None and marks() == (None, None)
    session.select(query=12)
    assert marks() == (12, None)
    session.select(key=3)
    assert marks() == (12, 3)
    program.commands.run("next_head")
    assert (session.selection.query, session.selection.key) == (12, None)  # a key is of one head
    assert marks() == (None, None)
    session.select(query=12, key=3)  # the same tokens, chosen again here
    assert marks() == (12, 3)
    program.commands.run("last_head")
    assert marks() == (12, None)
    session.put(hover=session.selection)
    session.put(capture=make_capture("Another text.", strides=(1, 2), heads=3))
    assert marks() == (None, None)


def test_the_heads_of_a_figure_cover_every_stage_of_a_long_text(short, monkeypatch):
    """So that nobody waits until all heads are measured: the clearest that is known, else one."""
    facts = roles(short)
    session = session_of(short, facts=facts, selection=Selection(4, 2, 40, 20))
    assert followed(session) == tuple(session.opened.values())
    monkeypatch.setattr("hgviz.tasks.figures.MOST_TOKENS", 10)
    every = followed(session)
    layers = {one.layer for one in every}
    assert all(layers.intersection(stage) for stage in stages_of(short))
    added = [one for one in every if one not in session.opened.values()]
    for one in added:
        (stage,) = [some for some in stages_of(short) if one.layer in some]
        assert facts[one].score == max(f.score for f in facts.values() if f.head.layer in stage)
    assert added and offers(session, ())[3].spec.heads == every
    session.put(facts={})
    assert len(followed(session)) == len(every)


# --- the command ----------------------------------------------------------------------------------


def session_of(a, b=None, **fields):
    """A session with a capture or two."""
    session = Session()
    session.put(capture=a, **fields)
    if b is not None:
        session.put(beside=b)
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


COLOURED = Display("magma", (0.0, 0.4), "log")


@pytest.mark.parametrize(
    "kind", ["map", "links", "wall", "levels", "rollout", "compare", "profile", "neurons"]
)
def test_a_copied_command_draws_the_bytes_of_the_export(kind, files, tmp_path, monkeypatch):
    a, b = files
    session = session_of(a, b if kind == "compare" else None, display=COLOURED)
    session.put(selection=Selection(4, 2, 20, 9, HeadId(4, 1) if kind == "compare" else None))
    offer = next(one for one in offers(session, ()) if one.name == kind)
    spec, of = replace(offer.spec, width="100mm", format="svg", title="What “it” is"), offer.of
    command = command_for(of, spec, "again.svg")
    assert not command.lacks
    (tmp_path / "exported").mkdir()
    path = tmp_path / "exported" / "again.svg"
    FigureCache(session.facts).export(spec, of, str(path))
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(command.words)
    assert program == "hgviz" and main(words) == 0
    assert (tmp_path / "again.svg").read_bytes() == path.read_bytes()


def test_a_command_names_what_has_to_be_saved_first(short, files):
    offer = offers(session_of(short), ())[0]
    found = command_for(offer.of, offer.spec, "map.pdf")
    assert " CAPTURE.h5 " in found.words and "CAPTURE.h5: save the capture" in found.lacks
    both = session_of(files[0], short)
    offer = next(one for one in offers(both, ()) if one.name == "compare")
    found = command_for(offer.of, offer.spec, "compare.pdf")
    assert " B.h5 " in found.words and files[0].path in found.words
    assert "save B" in found.lacks and "A.h5" not in found.lacks


def test_copy_as_command_copies_what_draws_the_pane(drawn, files):
    settings.save(settings.Settings(figure_width="acl", figure_format="svg"))
    drawn.session.put(capture=files[0], selection=Selection(4, 2, 20, 9))
    drawn.settle()
    drawn.frame.setFocus()
    control = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(drawn.frame, Qt.Key.Key_C, control)
    words = shlex.split(clipboard().text())
    assert words[:3] == ["hgviz", "figure", files[0].path]
    assert words[words.index("--kind") + 1] == "map"
    assert words[words.index("--width") + 1] == "acl" and words[-1].endswith(".svg")
    assert "hgviz figure" in drawn.frame.chosen_words.full
    drawn.session.put(capture=make_capture(TEXT, strides=(1, 2), heads=3))
    drawn.settle()
    drawn.commands.run("copy_command")
    assert "save the capture under that name first" in drawn.frame.chosen_words.full
    before = clipboard().text()
    display = next(one for one in drawn.views if one.title == "Display")
    drawn.commands.run_for(display, "copy_command")
    assert drawn.frame.chosen_words.full == (
        "Display has no figure of its own. It sets the colours of the others."
    )
    assert clipboard().text() == before
    settings.save(settings.Settings())


# --- saved ----------------------------------------------------------------------------------------


def test_a_capture_that_is_saved_knows_its_file_and_nothing_else_changes(drawn, until, tmp_path):
    session = drawn.session
    session.put(text="edited since", shade="")
    before = (session.selection, session.facts, session.text, session.capture.maps)
    shown = drawn.inspect.map.canvas.grab().toImage()
    drawn.commands._save(drawn.session.capture, str(tmp_path / "mine.h5"))
    until(lambda: not busy(drawn))
    assert session.capture.path == str(tmp_path / "mine.h5")
    assert (session.selection, session.facts, session.text, session.capture.maps) == before
    drawn.settle()
    assert drawn.inspect.map.canvas.grab().toImage() == shown
    spec = drawn.inspect.map.figure(session)
    command = command_for(offer_of(session, spec).of, spec, "map.pdf")
    assert str(tmp_path / "mine.h5") in command.words and not command.lacks


# --- the picture ----------------------------------------------------------------------------------


def copied(view):
    view.copy()
    return clipboard().image()


def test_a_copied_pane_has_no_ring_and_nothing_that_the_pointer_does(drawn):
    for view in (drawn.inspect.map, drawn.inspect.hourglass, drawn.inspect.strip):
        drawn.frame.setFocus()
        QApplication.processEvents()
        plain = copied(view)
        assert plain.size() == view.size() * view.devicePixelRatioF()
        view.take_focus()
        typed = QApplication.focusWidget()
        assert typed is view or view.isAncestorOf(typed)
        assert copied(view) == plain
        assert QApplication.focusWidget() is typed  # the keyboard is where it was
        place = QPointF(view.width() / 2, view.height() / 2)
        under = view.childAt(place.toPoint()) or view
        there = QPointF(under.mapFrom(view, place.toPoint()))
        QApplication.sendEvent(under, QEnterEvent(there, there, there))
        under.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, True)
        QTest.mouseMove(under, there.toPoint())
        drawn.settle()
        assert copied(view) == plain
        under.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
        QApplication.sendEvent(under, QEvent(QEvent.Type.Leave))


def test_a_program_that_copied_something_ends_without_an_error():
    code = (
        "from PySide6.QtWidgets import QApplication, QLabel\n"
        "from hgviz.gui.view import put_on_clipboard\n"
        "app = QApplication([])\n"
        "put_on_clipboard(QLabel('one').grab(), 'words')\n"
        "assert app.clipboard().text() == 'words' and not app.clipboard().image().isNull()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_figures_of_two_captures_have_b_where_it_differs(short):
    session = session_of(short, make_capture(TEXT, strides=(1, 2), heads=3, signed=True))
    of = {one.name: len(one.of) for one in offers(session, ())}
    assert (of["map"], of["compare"], of["profile"], of["activation"]) == (1, 2, 2, 2)
    same = session_of(short, make_capture(TEXT, strides=(1, 2), heads=3, seed=1))
    assert {one.name: len(one.of) for one in offers(same, ())}["activation"] == 1
    two_heads_of_one = session_of(short, short)
    of = {one.name: len(one.of) for one in offers(two_heads_of_one, ())}
    assert (of["compare"], of["profile"]) == (2, 1)


# --- where an answer comes from -------------------------------------------------------------------


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


def test_an_answer_can_be_drawn_once_it_is_attributed(short, asked):
    (lacks,) = [one for one in offers(session_of(short), ()) if "answer" in one.label]
    assert "attribute the answer first" in lacks.why
    names = [one.name for one in offers(asked, ()) if not one.why and "answer" in one.label]
    assert names == [f"attribution {one}" for one in ("tokens", "layers", "heads", "attention")]


@pytest.mark.parametrize("way", ["tokens", "attention"])
def test_a_command_that_asks_again_draws_the_bytes_of_the_export(way, asked, tmp_path, monkeypatch):
    offer = next(one for one in offers(asked, ()) if one.name == f"attribution {way}")
    title = "Where “it” comes from" if way == "tokens" else None
    spec = replace(offer.spec, width="acl", format="svg", title=title)
    (tmp_path / "exported").mkdir()
    path = tmp_path / "exported" / "again.svg"
    FigureCache({}).export(spec, offer.of, str(path))
    words = shlex.split(command_for(offer.of, spec, "again.svg").words)
    assert words[:3] == ["hgviz", "attribute", asked.checkpoint]
    monkeypatch.chdir(tmp_path)
    assert main(words[1:]) == 0
    assert (tmp_path / "again.svg").read_bytes() == path.read_bytes()


# --- where a figure is written --------------------------------------------------------------------


def asked_where(program):
    return next(one for one in program.frame.findChildren(QFileDialog) if one.isVisible())


def refused(program, until):
    """The error that is shown, once it is; its dialog is closed."""
    until(lambda: error_dialogs(program))
    (dialog,) = error_dialogs(program)
    dialog.reject()
    return dialog.error


def map_wish(program, **fields):
    """What exports the map, as SVG."""
    spec = replace(program.inspect.map.figure(program.session), format="svg")
    return ExportRequest(spec, (program.session.capture,), FigureCache({}), "map.svg", **fields)


def test_the_export_dialog_stays_when_the_file_dialog_is_cancelled(drawn, until, tmp_path):
    drawn.commands.run("export")
    dialog = dialog_of(drawn)
    dialog.choices.title_.choose("own")
    dialog.choices.own.setText("Mine")
    until(lambda: dialog.preview.picture is not None)
    dialog.default.click()
    asked_where(drawn).reject()
    until(lambda: not any(one.isVisible() for one in drawn.frame.findChildren(QFileDialog)))
    assert dialog.isVisible() and dialog.choices.spec.title == "Mine"
    assert dialog.default.isEnabled() and dialog.preview.picture is not None
    dialog.default.click()
    asking = asked_where(drawn)
    asking.fileSelected.emit(str(tmp_path / "map.pdf"))
    asking.reject()
    until(lambda: not busy(drawn))
    assert dialog not in drawn.frame.findChildren(ExportDialog)
    assert (tmp_path / "map.pdf").exists()


def test_an_exported_file_is_opened_or_shown_in_its_folder(drawn, until, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(export.QDesktopServices, "openUrl", lambda url: opened.append(url))
    for name in ("a & b.svg", "again.svg"):
        export_to(drawn, map_wish(drawn), str(tmp_path / name))
        until(lambda name=name: (tmp_path / name).exists() and not busy(drawn))
    (links,) = drawn.frame.findChildren(FileLinks)
    assert links.isVisible() and "again.svg" in links.text()
    for link in re.findall('href="([^"]+)"', links.text()):
        links.linkActivated.emit(link)
    assert [url.toLocalFile() for url in opened] == [str(tmp_path / "again.svg"), str(tmp_path)]


def test_a_disk_that_refuses_is_named_and_leaves_the_old_figure(
    drawn, until, tmp_path, monkeypatch
):
    (tmp_path / "map.svg").write_text("the figure before")
    for code, why in ((errno.ENOSPC, "No space left"), (errno.EROFS, "Read-only")):

        def refuse(*some, code=code):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", refuse)
        export_to(drawn, map_wish(drawn), str(tmp_path / "map.svg"))
        error = refused(drawn, until)
        assert "map.svg could not be written" in error.what
        assert why in error.what and error.do and not error.details
        assert [one.name for one in tmp_path.iterdir()] == ["map.svg"]
        assert (tmp_path / "map.svg").read_text() == "the figure before"


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
        export_to(drawn, map_wish(drawn, numbers=name == "two.pdf"), str(tmp_path / name))
    go.set()
    drawn.frame.close()
    found = sorted(one.name for one in tmp_path.iterdir())
    assert found == ["one.svg", "two.csv", "two.pdf"]


def test_a_file_beside_the_figure_is_not_overwritten(drawn, until, tmp_path):
    (tmp_path / "map.csv").write_text("notes of somebody")
    wish = map_wish(drawn, numbers=True)
    export_to(drawn, wish, str(tmp_path / "map.svg"))
    error = refused(drawn, until)
    assert error.what == "map.csv is there already"
    assert (tmp_path / "map.csv").read_text() == "notes of somebody"
    (tmp_path / "map.svg").write_text("a figure, asked about")
    export_to(drawn, wish, str(tmp_path / "map.svg"))
    until(lambda: not busy(drawn))
    assert "4.2" in (tmp_path / "map.csv").read_text()


def test_the_ending_of_the_format_is_added_to_other_names(drawn, until, tmp_path):
    names = ["fig1.2", "map.txt"]
    for name in names:
        export_to(drawn, map_wish(drawn), str(tmp_path / name))
    until(lambda: not busy(drawn))
    assert sorted(one.name for one in tmp_path.iterdir()) == [f"{name}.svg" for name in names]
    export_to(drawn, map_wish(drawn), str(tmp_path / "fig1.2"))
    error = refused(drawn, until)
    assert error.what == "fig1.2.svg is there already"
    export_to(drawn, map_wish(drawn, numbers=True), str(tmp_path / f"{'a' * 300}.svg"))
    error = refused(drawn, until)
    assert error.what.endswith("File name too long") and not error.details
    assert error.do == "Choose a shorter name"
