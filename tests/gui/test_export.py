"""Figures: the dialog that writes them, the command that draws them again, and their files."""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QBuffer, QCoreApplication, QEvent, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QWidget

from hgviz import settings, tasks
from hgviz.__main__ import main
from hgviz.analysis.roles import roles
from hgviz.core import Display, HeadId, Selection, progress
from hgviz.figures import Spec, labels, points
from hgviz.figures.levels import stages_of
from hgviz.figures.output import Preview
from hgviz.gui import export
from hgviz.gui.export import (
    DOTS,
    ExportDialog,
    ExportRequest,
    FigureCache,
    FileLinks,
    PagePicture,
    command_for,
    offer_of,
    offers,
)
from hgviz.gui.jobs import Lanes
from hgviz.gui.layouts import followed
from hgviz.gui.view import Notice
from hgviz.session import Session, SideB
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


def test_the_preview_at_the_resolution_of_the_file_is_the_file(desk, until, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "DOTS", float(labels.DOTS))
    dialog = ask(desk, last=("icml", "png"))
    until(lambda: is_drawn(dialog) and dialog.preview.picture.width == pytest.approx(234))
    spec = dialog.choices.spec
    tasks.figure(spec, desk.session.capture, tmp_path / "map.png", desk.session.facts)
    seen, rgb = dialog.preview.picture.image, QImage.Format.Format_RGB888
    assert seen.convertToFormat(rgb) == QImage(str(tmp_path / "map.png")).convertToFormat(rgb)


def test_a_page_at_100_percent_has_96_px_an_inch(desk, until):
    dialog = ask(desk, last=("nature", "pdf"))
    until(lambda: is_drawn(dialog) and dialog.preview.picture.width < 300)
    picture, size = dialog.preview.picture, dialog.preview.page.pixmap().deviceIndependentSize()
    assert size.width() == pytest.approx(89 / 25.4 * DOTS, abs=2)
    assert size.height() == pytest.approx(picture.height / 72 * DOTS, abs=2)
    words = dialog.measures.full
    assert words.startswith("89 × ") and f"smallest text {picture.smallest:.3g} pt" in words


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
    fine = PagePicture(QImage(), 396, 200, 6.5, ())
    assert export.warning(fine) == export.notes(fine) == ""
    small = export.warning(replace(fine, smallest=4.2))
    assert "4.2 pt" in small and "Too small" in small
    note = "each cell is the largest of 2 × 2 weights"
    said = export.notes(replace(fine, notes=(note, note, "dashed: below zero.")))
    assert said == "Each cell is the largest of 2 × 2 weights. Dashed: below zero."
    assert "smallest" not in export.measures(replace(fine, smallest=None), "acl")
    for width, size in (("neurips", "5.50 × 2.78 in"), ("nature2", "140 × 71 mm"),
                        ("12cm", "14.0 × 7.1 cm"), ("252 pt", "396 × 200 pt")):  # fmt: skip
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


def test_a_wrong_width_is_said_and_nothing_is_exported(quick, until):
    dialog = ask(quick)
    choose(dialog.choices.width_, "")
    for width in ("5 km", "0.1in", "900cm", "nan", "", "80mm"):
        dialog.choices.length.setText(width)
        is_right = width == "80mm"
        until(lambda right=is_right: dialog.default.isEnabled() == right == dialog.copy.isEnabled())
        assert dialog.choices.refused.isVisible() == (not is_right and bool(width)), width
    until(lambda: dialog.measures.full.startswith("80 ×"))


def test_kinds_that_lack_something_say_what(quick, short):
    def lacking():
        """The words of each kind that cannot be desk."""
        dialog = ask(quick)
        kind = dialog.choices.kind
        dialog.reject()
        every = {kind.itemData(at): at for at in range(kind.count())}
        model = kind.model()
        return {name: kind.itemText(at) for name, at in every.items()
                if not model.item(at).isEnabled()}  # fmt: skip

    found = lacking()
    assert not found.keys() & {"map", "rollout", "activation"}
    assert "choose a B" in found["compare"] and "Prune" in found["scores"]
    quick.session.put(capture_b=short, study=make_study(curves=0))
    found = lacking()
    assert not found.keys() & {"compare", "scores"} and "draw the curve" in found["curve"]


@pytest.mark.parametrize("width", ["acl2", "77mm"])
def test_the_last_width_and_format_come_first(quick, width):
    choices = ask(quick, last=(width, "svg")).choices
    assert (choices.spec.width, choices.spec.format) == (width, "svg")
    assert choices.length.isVisible() == (width == "77mm")


def test_the_window_is_free_while_a_page_is_drawn(desk, until, monkeypatch):
    """What is chosen in the meantime arrives at once: the page is desk in a lane."""
    go, draw = Event(), tasks.preview

    def held(ready, dots):
        progress(0, 1)
        assert go.wait(60)
        return draw(ready, dots)

    monkeypatch.setattr(tasks, "preview", held)
    dialog = ask(desk)
    dialog.measures.say("5 × 4 in")  # of another page
    choose(dialog.choices.form, "svg")
    assert dialog.choices.use.text() == export.USES["svg"] and dialog.preview.picture is None
    until(lambda: not dialog.measures.full)  # whatever was there before is of another choice
    assert dialog.preview.fade.isEnabled() and not dialog.notes.isVisible()
    go.set()
    until(lambda: is_drawn(dialog))
    assert not dialog.preview.fade.isEnabled()


@pytest.fixture
def drawn(program, short):
    """A program with a short text, everything drawn."""
    program.session.put(capture=short, selection=Selection(4, 2, 40, 20))
    program.settle()
    return program


def dialog_of(program):
    return next(one for one in program.frame.findChildren(ExportDialog) if one.isVisible())


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
                    lacks = f"{view.title} has no figure of its own. {view.figureless}." == told
                    kinds[view.title] = None if lacks else words[words.index("--kind") + 1]
    assert {
        "Hourglass": "wall", "Map": "map", "Links": "links", "Neurons": "neurons",
        "Attention rollout": "rollout", "All heads": "profile", "Text": "levels",
        "Follow": "levels", "Compare": "compare", "Heads": "scores", "Pruning curve": "curve",
        "This head": None, "Score": None, "Sides": None, "Predictions that changed": None,
    }.items() <= kinds.items()  # fmt: skip


def test_a_map_that_is_zoomed_in_is_exported_whole_and_says_so(drawn):
    view = drawn.inspect.map
    for zoomed in (True, False):
        view.canvas._look(view.canvas.view.zoomed(4, 10, 10)) if zoomed else view.fit()
        drawn.commands.run_for(view, "export")
        words = " ".join(one.text() for one in dialog_of(drawn).findChildren(QLabel))
        assert ("Map is zoomed in on screen; its figure shows all of it." in words) == zoomed
        dialog_of(drawn).reject()


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
    by_kind = {one.spec.kind: one.spec for one in offers(session, ())}
    assert by_kind["rollout"].selection.key is None  # a key is of one head
    session.put(capture=make_capture("Another text.", strides=(1, 2), heads=3))
    assert marks() == (None, None)


def test_the_heads_of_a_figure_cover_every_stage_of_a_long_text(short, monkeypatch):
    """So that nobody waits until all heads are measured: the clearest that is known, else one."""
    session = session_of(short, facts=roles(short), selection=Selection(4, 2, 40, 20))
    assert followed(session) == tuple(session.opened.values())
    monkeypatch.setattr("hgviz.tasks.figures.MOST_TOKENS", 10)
    every = followed(session)
    assert all({one.layer for one in every}.intersection(stage) for stage in stages_of(short))
    for one in {*every} - {*session.opened.values()}:
        (stage,) = [some for some in stages_of(short) if one.layer in some]
        facts = session.facts
        assert facts[one].score == max(f.score for f in facts.values() if f.head.layer in stage)
    assert offers(session, ())[3].spec.heads == every
    session.put(facts={})
    assert len(followed(session)) == len(every)


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


@pytest.mark.parametrize(
    "kind", ["map", "links", "wall", "levels", "rollout", "compare", "profile", "neurons"]
)
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


def test_copy_as_command_copies_what_draws_the_pane_in_the_last_size_and_format(drawn):
    settings.save(settings.Settings(figure_width="acl", figure_format="svg"))
    drawn.commands.run("copy_command")
    words = shlex.split(clipboard().text())
    assert words[:2] == ["hgviz", "figure"] and words[words.index("--kind") + 1] == "map"
    assert words[words.index("--width") + 1] == "acl" and words[-1].endswith(".svg")
    assert "save the capture under that name first" in drawn.frame.chosen_words.full
    settings.save(settings.Settings())


# --- saved ----------------------------------------------------------------------------------------


def test_a_capture_that_is_saved_knows_its_file_and_nothing_else_changes(drawn, until, tmp_path):
    session = drawn.session
    session.put(text="edited since")
    before = (session.selection, session.facts, session.text, session.capture.maps)
    drawn.commands._save(drawn.session.capture, str(tmp_path / "mine.h5"))
    until(lambda: not busy(drawn))
    assert session.capture.path == str(tmp_path / "mine.h5")
    assert (session.selection, session.facts, session.text, session.capture.maps) == before
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
        place = view.rect().center()
        under = view.childAt(place) or view
        there = QPointF(under.mapFrom(view, place))
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
    def sides(b, *names):
        of = {one.name: len(one.of) for one in offers(session_of(short, b), ())}
        return [of[name] for name in names]

    signed = make_capture(TEXT, strides=(1, 2), heads=3, signed=True)
    assert sides(signed, "map", "compare", "profile", "activation") == [1, 2, 2, 2]
    same = make_capture(TEXT, strides=(1, 2), heads=3, seed=1)
    assert sides(same, "activation") == [1]
    assert sides(short, "compare", "profile") == [2, 1]  # two heads of one


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


def test_the_export_dialog_stays_when_the_file_dialog_is_cancelled(drawn, until, tmp_path):
    drawn.commands.run("export")
    dialog = dialog_of(drawn)
    for is_cancelled in (True, False):
        dialog.default.click()
        (asking,) = [one for one in drawn.frame.findChildren(QFileDialog) if one.isVisible()]
        if not is_cancelled:
            asking.fileSelected.emit(str(tmp_path / "map.pdf"))
        asking.reject()
        until(lambda: not busy(drawn))
        assert (dialog in drawn.frame.findChildren(ExportDialog)) == is_cancelled
    assert (tmp_path / "map.pdf").exists()


def test_an_exported_file_is_opened_or_shown_in_its_folder(drawn, until, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(export.QDesktopServices, "openUrl", lambda url: opened.append(url))
    for name in ("a & b.svg", "again.svg"):
        export_map(drawn, tmp_path / name)
        until(lambda name=name: (tmp_path / name).exists() and not busy(drawn))
    (links,) = drawn.frame.findChildren(FileLinks)
    assert links.isVisible() and "again.svg" in links.text()
    for link in re.findall('href="([^"]+)"', links.text()):
        links.linkActivated.emit(link)
    assert [url.toLocalFile() for url in opened] == [str(tmp_path / "again.svg"), str(tmp_path)]


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


def test_a_file_beside_the_figure_is_not_overwritten(drawn, until, tmp_path):
    (tmp_path / "map.csv").write_text("notes of somebody")
    export_map(drawn, tmp_path / "map.svg", numbers=True)
    error = refused(drawn, until)
    assert error.what == "map.csv is there already"
    assert (tmp_path / "map.csv").read_text() == "notes of somebody"
    (tmp_path / "map.svg").write_text("a figure, asked about")
    export_map(drawn, tmp_path / "map.svg", numbers=True)
    until(lambda: not busy(drawn))
    assert "4.2" in (tmp_path / "map.csv").read_text()


def test_the_ending_of_the_format_is_added_to_other_names(drawn, until, tmp_path):
    names = ["fig1.2", "map.txt"]
    for name in names:
        export_map(drawn, tmp_path / name)
    until(lambda: not busy(drawn))
    assert sorted(one.name for one in tmp_path.iterdir()) == [f"{name}.svg" for name in names]
    export_map(drawn, tmp_path / "fig1.2")
    error = refused(drawn, until)
    assert error.what == "fig1.2.svg is there already"
    export_map(drawn, tmp_path / f"{'a' * 300}.svg", numbers=True)
    error = refused(drawn, until)
    assert error.what.endswith("File name too long") and not error.details
    assert error.do == "Choose a shorter name"
