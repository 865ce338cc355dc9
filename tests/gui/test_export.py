"""The dialog before a figure is written: what it offers, shows, says and writes."""

import errno
import os
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QBuffer, QCoreApplication, QEvent, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QWidget

from hgviz import tasks
from hgviz.core import Display, Selection, Step, finish
from hgviz.figures import FORMATS, WIDTHS, Spec, points
from hgviz.figures.paper import style
from hgviz.figures.preview import Preview
from hgviz.gui import export
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.export import DOTS, Drafts, ExportDialog, Picture, Wish
from hgviz.gui.help import Explanation
from hgviz.gui.jobs import GOING, Lanes
from hgviz.gui.widgets import Words
from hgviz.session import Session
from tests.making import make_capture
from tests.studying import make_study

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


@pytest.fixture(scope="module")
def short():
    return make_capture(TEXT, strides=(1, 2), heads=3)


class Desk:
    """A window without panes, a session, and lanes: all that the dialog needs."""

    def __init__(self, **fields):
        self.frame, self.session, self.lanes = QWidget(), Session(), Lanes()
        self.session.put(**fields)
        self.frame.resize(1600, 1000)
        self.frame.show()

    def close(self):
        self.lanes.close()
        self.frame.close()
        self.frame.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def drawn(app, short):
    """A desk with a short text, a head, a query and a key."""
    one = Desk(capture=short, selection=Selection(4, 2, 40, 20))
    yield one
    one.close()


@pytest.fixture
def quick(drawn, monkeypatch):
    """The same where no test looks at what is drawn: blank pages of the width that is asked."""

    def blank(ready, dots):
        yield Step(0, 1)
        wide = points(ready.spec.width)
        png = QBuffer()
        image = QImage(round(wide / 72 * dots), 100, QImage.Format.Format_RGB32)
        image.save(png, "PNG")
        return Preview(png.data().data(), dots, wide, 100 / dots * 72, 6.5, ())

    monkeypatch.setattr(tasks, "preview", blank)
    return drawn


def exporting(drawn, **more):
    """The dialog of the map."""
    session = drawn.session
    spec = Spec("map", session.selection, session.display)
    dialog = ExportDialog(drawn.frame, session, drawn.lanes, [spec], **more)
    dialog.open()
    return dialog


def shown(dialog):
    return dialog.preview.sheet.picture is not None and not dialog._wait.isActive()


def choose(picker, name):
    picker.setCurrentIndex(picker.findData(name))


# --- the dialog before a figure is written: what it offers, shows, says and writes ----------------


def pixels(image):
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.array(image.constBits(), np.uint8).reshape(image.height(), -1)  # its own
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3)


def said(dialog):
    return [one.text() for one in dialog.card.findChildren(QLabel) if one.isVisible()]


# --- the page -------------------------------------------------------------------------------------


def test_what_is_shown_at_the_dots_of_a_file_is_the_file(drawn, until, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "DOTS", float(style.DOTS))
    dialog = exporting(drawn, last=("icml", "png"))
    until(lambda: shown(dialog) and dialog.preview.sheet.picture.width == pytest.approx(234))
    seen = pixels(dialog.preview.sheet.picture.image)
    spec = dialog.choices.spec
    finish(tasks.figure(spec, drawn.session.capture, tmp_path / "map.png", drawn.session.facts))
    with Image.open(tmp_path / "map.png") as image:
        assert np.array_equal(seen, np.array(image.convert("RGB")))
    dialog.finish()


def test_a_page_at_100_percent_has_96_px_an_inch(drawn, until):
    dialog = exporting(drawn, last=("nature", "pdf"))
    until(lambda: shown(dialog) and dialog.preview.sheet.picture.width < 300)
    sheet = dialog.preview.sheet
    assert sheet.paper.width() == pytest.approx(89 / 25.4 * DOTS, abs=2)
    height = sheet.picture.height
    assert sheet.paper.height() == pytest.approx(height / 72 * DOTS, abs=2)
    words = dialog.measures.full
    assert words.startswith("89 × ") and " mm" in words and "252 × " in words
    assert f"smallest text {sheet.picture.smallest:.3g} pt" in words
    dialog.finish()


def test_a_page_larger_than_its_room_is_scrolled_or_fitted(quick, until):
    quick.frame.resize(1100, 700)
    QApplication.processEvents()
    dialog = exporting(quick)
    choose(dialog.choices.width_, "ieee2")
    until(lambda: shown(dialog) and dialog.preview.sheet.picture.width > 500)  # not the one before
    QApplication.processEvents()
    room = dialog.preview.room
    bar = room.horizontalScrollBar()
    assert bar.maximum() > 0 and dialog.preview.sheet.scale == 1
    room.setFocus()
    QTest.keyClick(room, Qt.Key.Key_Right)
    assert bar.value() > 0
    dialog.size_.choose("fit")
    dialog.size_.chosen.emit("fit")
    QApplication.processEvents()
    assert bar.maximum() == 0 and dialog.preview.sheet.scale < 1
    assert room.viewport().rect().contains(dialog.preview.sheet.paper)
    dialog.finish()


def test_the_newest_choice_wins_and_what_is_stale_is_never_shown(quick, until, monkeypatch):
    begun, blank = [], tasks.preview

    def held(ready, dots):
        begun.append(ready.spec.width)
        while ready.spec.width == "neurips":  # as long as somebody wants it
            yield Step(0, 1)
            time.sleep(0.001)
        return (yield from blank(ready, dots))

    monkeypatch.setattr(tasks, "preview", held)
    dialog = exporting(quick)
    until(lambda: begun == ["neurips"])
    pictures = []
    show = dialog.preview.show_picture
    monkeypatch.setattr(
        dialog.preview, "show_picture",
        lambda picture: (pictures.append(picture.width), show(picture)),
    )  # fmt: skip
    for name in ("acl", "nature", "ieee"):  # in one go
        choose(dialog.choices.width_, name)
    until(lambda: pictures)
    assert pictures == [pytest.approx(252.0)] and begun == ["neurips", "ieee"]
    dialog.finish()


def test_a_dialog_that_is_closed_draws_nothing_more(quick, until):
    dialog = exporting(quick)
    dialog.finish()
    assert not any(job.title == "Preview" for job in quick.lanes.files.jobs)


def test_what_cannot_be_drawn_is_said_in_the_place_of_the_page(drawn, until, short):
    maps = (*short.maps[:4], None, *short.maps[5:])
    drawn.session.put(capture=replace(short, maps=maps))
    dialog = exporting(drawn)
    until(lambda: dialog.preview.error)
    words = " ".join(said(dialog))
    assert "layer 4" in words.lower() and not dialog.default.isEnabled()
    choose(dialog.choices.kind, "activation")
    until(lambda: shown(dialog) and not dialog.preview.error)
    assert dialog.default.isEnabled()
    dialog.finish()


def test_an_error_nobody_expected_is_said_too(drawn, until, monkeypatch):
    def broken(ready, dots):
        yield Step(0, 1)
        raise ValueError("no such font")

    monkeypatch.setattr(tasks, "preview", broken)
    dialog = exporting(drawn)
    until(lambda: dialog.preview.error)
    assert any("no such font" in one for one in said(dialog))
    assert not dialog.default.isEnabled()
    dialog.finish()


def test_small_text_and_reduced_maps_are_said():
    fine = Picture(QImage(), 396, 200, 6.5, ())
    assert export.warning(fine) == export.notes(fine) == ""
    small = export.warning(replace(fine, smallest=4.2))
    assert "4.2 pt" in small and "Too small" in small
    note = "each cell is the largest of 2 × 2 weights"
    said = export.notes(replace(fine, notes=(note, note, "dashed: below zero.")))
    assert said == "Each cell is the largest of 2 × 2 weights. Dashed: below zero."
    assert "smallest" not in export.measures(replace(fine, smallest=None), "acl")


def test_what_somebody_chose_is_no_warning(drawn, until):
    """The ten strongest links are a choice; only text too small to read is wrong."""
    drawn.frame.resize(1100, 700)
    dialog = exporting(drawn)
    choose(dialog.choices.kind, "links")
    until(lambda: shown(dialog) and dialog.notes.isVisible())
    assert "the 10 strongest" in dialog.notes.text() and "Reduced" not in dialog.notes.text()
    assert not dialog.warning.isVisible() and not dialog.sign.isVisible()
    page = dialog.preview.sheet.picture
    dialog._say_of(replace(page, smallest=4.0), "acl")
    QApplication.processEvents()
    assert dialog.warning.isVisible() and dialog.sign.isVisible() and dialog.notes.isVisible()
    for one in (dialog.warning, dialog.notes):
        assert one.height() >= one.heightForWidth(one.width())
    dialog.finish()


@pytest.mark.parametrize(
    ("width", "unit", "size"),
    [("neurips", "in", "5.50 × 2.78 in"), ("nature2", "mm", "140 × 71 mm"),
     ("12cm", "cm", "14.0 × 7.1 cm"), ("252", "in", "5.50 × 2.78 in"),
     ("252 pt", "pt", "396 × 200 pt")],
)  # fmt: skip
def test_a_size_is_said_in_the_unit_it_was_asked_in(width, unit, size):
    assert export.unit_of(width) == unit
    words = export.measures(Picture(QImage(), 396, 200, 6.5, ()), width)
    assert words.startswith(size) and words.count("pt") == 2


# --- what is chosen -------------------------------------------------------------------------------


def test_a_figure_takes_what_is_chosen(quick, until):
    chosen, kept = [], []
    dialog = exporting(quick)
    dialog.chosen.connect(chosen.append)
    dialog.kept.connect(lambda *some: kept.append(some))
    choices = dialog.choices
    choose(choices.kind, "levels")
    choose(choices.width_, "")
    choices.length.setText("100 mm")
    choose(choices.form, "svg")
    choices.title_.choose("own")
    choices.own.setText("What heads do")
    choices.colours.setChecked(False)
    choices.numbers.setChecked(True)
    until(lambda: shown(dialog) and dialog.default.isEnabled())
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
    dialog.finish()


def test_a_title_is_as_it_is_own_or_none(quick):
    dialog = exporting(quick)
    choices = dialog.choices
    assert choices.spec.title is None
    choices.title_.choose("own")
    choices._again()
    assert choices.own.isVisible() and choices.spec.title is None  # nothing typed yet
    choices.own.setText("  Mine ")
    assert choices.spec.title == "Mine"
    choices.title_.choose("none")
    choices._again()
    assert choices.spec.title == "" and not choices.own.isVisible()
    dialog.finish()


def test_colours_are_those_on_screen_unless_the_usual_are_wanted(quick):
    display = Display("magma", (0.0, 0.5), "log")
    quick.session.put(display=display)
    dialog = exporting(quick)
    assert dialog.choices.spec.display == display
    assert "Magma" in dialog.choices.coloured.text() and "0.5" in dialog.choices.coloured.text()
    dialog.choices.colours.setChecked(False)
    assert dialog.choices.spec.display == Display()
    choose(dialog.choices.kind, "activation")
    assert not dialog.choices.colours.isEnabled()
    dialog.finish()


def test_colours_are_named_as_they_are_drawn(quick):
    """A map with weights below zero is never in viridis, whatever is chosen for the others."""
    quick.session.put(capture=make_capture(TEXT, strides=(1, 2), heads=3, signed=True))
    dialog = exporting(quick)
    assert "Viridis" not in dialog.choices.coloured.text()
    quick.session.put(capture=make_capture(TEXT, strides=(1, 2), heads=3))
    dialog.finish()
    dialog = exporting(quick)
    assert "Viridis" in dialog.choices.coloured.text()
    choose(dialog.choices.kind, "neurons")
    assert "Viridis" not in dialog.choices.coloured.text()
    dialog.finish()


def test_a_wrong_width_is_said_and_nothing_is_exported(quick, until):
    dialog = exporting(quick)
    choose(dialog.choices.width_, "")
    for width in ("5 km", "0.1in", "900cm", "-3in", "nan", "", "1e99mm"):
        dialog.choices.length.setText(width)
        until(lambda: not dialog.default.isEnabled() and not dialog.copy.isEnabled())
        words = dialog.choices.refused.text()
        assert bool(words) == bool(width) == dialog.choices.refused.isVisible(), width
        assert dialog.measures.full == ""
    dialog.choices.length.setText("80mm")
    until(lambda: shown(dialog) and dialog.default.isEnabled())
    until(lambda: dialog.measures.full.startswith("80 ×"))
    assert not dialog.choices.refused.isVisible()
    dialog.finish()


def test_kinds_that_lack_something_say_what(quick, short):
    def offered():
        dialog = exporting(quick)
        kind = dialog.choices.kind
        found = {
            kind.itemData(at): (kind.model().item(at).isEnabled(), kind.itemText(at))
            for at in range(kind.count())
        }
        dialog.finish()
        return found

    found = offered()
    assert found["map"][0] and found["rollout"][0] and found["activation"][0]
    assert not found["compare"][0] and "choose a B" in found["compare"][1]
    assert not found["scores"][0] and "Prune" in found["scores"][1]
    quick.session.put(beside=short, study=make_study(curves=0))
    found = offered()
    assert found["compare"][0] and found["scores"][0]
    assert not found["curve"][0] and "draw the curve" in found["curve"][1]


def test_a_kind_that_cannot_be_drawn_cannot_be_chosen_by_the_keyboard(quick):
    dialog = exporting(quick)
    kind = dialog.choices.kind
    kind.setFocus()
    for _ in range(kind.count() + 2):
        QTest.keyClick(kind, Qt.Key.Key_Down)
        assert kind.model().item(kind.currentIndex()).isEnabled()
    dialog.finish()


@pytest.mark.parametrize("width", ["acl2", "77mm"])
def test_the_last_width_and_format_come_first(quick, width):
    kept = []
    dialog = exporting(quick, last=(width, "svg"))
    assert (dialog.choices.spec.width, dialog.choices.spec.format) == (width, "svg")
    assert dialog.choices.length.isVisible() == (width == "77mm")
    dialog.kept.connect(lambda *some: kept.append(some))
    dialog.copy.click()
    assert kept == [(width, "svg")]
    dialog.finish()


def test_a_width_that_was_kept_by_somebody_else_may_be_wrong(quick):
    for width, form in (("wide", "pdf"), ("", ""), ("1mm", "docx")):
        last = width, form
        dialog = ExportDialog(quick.frame, quick.session, quick.lanes, [], last=last)
        assert dialog.choices.width_.currentData() in WIDTHS
        assert dialog.choices.form.currentData() in FORMATS
        dialog.deleteLater()


# --- as a stranger uses it ------------------------------------------------------------------------


def test_everything_is_reached_by_the_keyboard_and_has_a_name(quick, until):
    dialog = exporting(quick)
    dialog.choices.title_.choose("own")
    choose(dialog.choices.width_, "")
    dialog.choices.length.setText("9cm")
    until(lambda: shown(dialog) and dialog.default.isEnabled())
    assert dialog.choices.kind.hasFocus()
    reached = []
    for _ in range(40):
        here = QApplication.focusWidget()
        if here in reached:
            break
        reached.append(here)
        dialog.focusNextPrevChild(True)
    wanted = [
        dialog.choices.kind, dialog.choices.width_, dialog.choices.length, dialog.choices.form,
        dialog.choices.own, dialog.choices.colours, dialog.choices.numbers,
        dialog.preview.room, dialog.copy, dialog.default,
    ]  # fmt: skip
    at = [reached.index(one) for one in wanted]
    assert at == sorted(at)  # from the top left
    for one in reached:
        assert one.accessibleName() or getattr(one, "text", str)(), type(one).__name__
    dialog.finish()


@pytest.mark.parametrize("size", [(1100, 700), (1280, 800), (1600, 1000)])
def test_the_dialog_fits_the_window_and_clips_no_words(quick, until, size):
    quick.frame.resize(*size)
    QApplication.processEvents()
    dialog = exporting(quick)
    dialog.choices.title_.choose("own")
    choose(dialog.choices.width_, "")
    dialog.choices.length.setText("5 km")
    QApplication.processEvents()
    assert quick.frame.rect().contains(dialog.card.geometry())
    buttons = dialog.default.mapTo(dialog, dialog.default.rect().bottomRight())
    assert dialog.card.geometry().contains(buttons)
    for one in dialog.card.findChildren(QLabel):
        if one.isVisible() and one.text() and not isinstance(one, Words):
            need = one.heightForWidth(one.width()) if one.wordWrap() else one.sizeHint().height()
            assert one.height() >= need, one.text()
    inside = dialog.choices
    assert inside.width() <= inside.parentWidget().width()
    dialog.finish()


def test_what_is_made_ready_once_is_drawn_in_every_width(quick, until, monkeypatch):
    ready = []
    true = tasks.panel
    monkeypatch.setattr(
        tasks, "panel", lambda spec, *more: (ready.append(spec.kind), true(spec, *more))[1]
    )
    dialog = exporting(quick)
    until(lambda: shown(dialog))
    for name, inches in (("acl", 3.03), ("ieee2", 7.16)):
        choose(dialog.choices.width_, name)
        wide = pytest.approx(72 * inches)
        until(lambda wide=wide: dialog.preview.sheet.picture.width == wide)
    assert ready == ["map"]
    choose(dialog.choices.kind, "wall")
    until(lambda: len(ready) == 2)
    dialog.finish()


def test_the_window_is_free_while_a_page_is_drawn(drawn, until, monkeypatch):
    """What is chosen in the meantime arrives at once: the page is drawn in a lane."""
    from threading import Event, current_thread, main_thread

    go, threads = Event(), []
    true = tasks.preview

    def held(ready, dots):
        threads.append(current_thread())
        yield Step(0, 1)
        assert go.wait(60)
        return (yield from true(ready, dots))

    monkeypatch.setattr(tasks, "preview", held)
    dialog = exporting(drawn)
    until(lambda: threads)
    dialog.measures.say("5 × 4 in")  # of another page
    choose(dialog.choices.form, "svg")
    assert dialog.choices.use.text() == export.USES["svg"]
    assert isinstance(dialog.preview, QWidget) and dialog.preview.sheet.picture is None
    until(lambda: dialog.preview.sheet.old)  # whatever was there before is of another choice
    assert not dialog.measures.full and not dialog.notes.isVisible()
    go.set()
    until(lambda: shown(dialog))
    assert main_thread() not in threads and not dialog.preview.sheet.old
    dialog.finish()


# --- where a figure is written: asked, refused, in place of what, and though the window closes ----

SHORT = "The hourglass was used at sea."


@pytest.fixture
def ready(program):
    """A program with a short text, everything drawn."""
    capture = make_capture(SHORT, strides=(1, 2), heads=2)
    program.session.put(capture=capture, selection=Selection(4, 1, 20, 10))
    program.settle()
    return program


def dialog_of(program):
    return next(one for one in program.frame.findChildren(ExportDialog) if one.isVisible())


def quiet(program):
    return not any(one.state in GOING for one in program.session.work)


def asked_where(program):
    return next(one for one in program.frame.findChildren(QFileDialog) if one.isVisible())


def refused(program, until):
    """The error that is shown, once it is."""
    until(lambda: any(one.isVisible() for one in program.frame.findChildren(ErrorDialog)))
    return next(one for one in program.frame.findChildren(ErrorDialog) if one.isVisible())


def a_wish(program, **fields):
    spec = replace(program.inspect.map.figure(program.session), format="svg")
    return Wish(spec, (program.session.capture,), Drafts({}), "map.svg", **fields)


def test_whoever_asks_where_to_and_cancels_finds_the_dialog_as_it_was(ready, until, tmp_path):
    ready.commands.run("export")
    dialog = dialog_of(ready)
    dialog.choices.title_.choose("own")
    dialog.choices.own.setText("Mine")
    until(lambda: dialog.preview.sheet.picture is not None)
    dialog.default.click()
    asked_where(ready).reject()
    until(lambda: not any(one.isVisible() for one in ready.frame.findChildren(QFileDialog)))
    assert dialog.isVisible() and dialog.choices.spec.title == "Mine"
    assert dialog.default.isEnabled() and dialog.preview.sheet.picture is not None
    dialog.default.click()
    asking = asked_where(ready)
    asking.fileSelected.emit(str(tmp_path / "map.pdf"))
    asking.reject()
    until(lambda: quiet(ready))
    assert not dialog.isVisible() and (tmp_path / "map.pdf").exists()


def test_a_figure_that_cannot_be_written_is_said(ready, until, tmp_path):
    ready.commands._export_to(a_wish(ready), str(tmp_path / "no" / "map.svg"))
    assert "folder" in refused(ready, until).error.what


def test_a_disk_that_refuses_is_said_and_leaves_nothing(ready, until, tmp_path, monkeypatch):
    (tmp_path / "map.svg").write_text("the figure before")
    for code, why in ((errno.ENOSPC, "full"), (errno.EROFS, "Read-only")):

        def refuse(*some, code=code):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", refuse)
        ready.commands._export_to(a_wish(ready), str(tmp_path / "map.svg"))
        wrong = refused(ready, until)
        assert "map.svg could not be written" in wrong.error.what
        assert why in wrong.error.why and wrong.error.do and not wrong.error.details
        assert [one.name for one in tmp_path.iterdir()] == ["map.svg"]
        assert (tmp_path / "map.svg").read_text() == "the figure before"
        wrong.finish()


def test_a_window_that_closes_has_its_figures_written_and_nothing_else(ready, until, tmp_path):
    """One that is on its way, and one that waits for it; a preview is given up."""
    from threading import Event

    begun, go = Event(), Event()

    def held():
        begun.set()
        assert go.wait(20)
        yield Step(0, 1)
        raise AssertionError("it was not given up")

    ready.lanes.files.submit("preview", "Preview", held())
    assert begun.wait(20)
    for name in ("one.svg", "two.pdf"):
        ready.commands._export_to(a_wish(ready, numbers=name == "two.pdf"), str(tmp_path / name))
    go.set()
    ready.frame.close()
    found = sorted(one.name for one in tmp_path.iterdir())
    assert found == ["one.svg", "two.csv", "two.pdf"]


def test_files_that_nobody_was_asked_about_stay(ready, until, tmp_path):
    (tmp_path / "map.csv").write_text("notes of somebody")
    wish = a_wish(ready, numbers=True)
    ready.commands._export_to(wish, str(tmp_path / "map.svg"))
    wrong = refused(ready, until)
    assert wrong.error.what == "map.csv is there already"
    wrong.finish()
    assert (tmp_path / "map.csv").read_text() == "notes of somebody"
    (tmp_path / "map.svg").write_text("a figure, asked about")
    ready.commands._export_to(wish, str(tmp_path / "map.svg"))
    until(lambda: quiet(ready))
    assert "4.1" in (tmp_path / "map.csv").read_text()


def test_a_figure_has_the_ending_of_one(ready, until, tmp_path):
    names = ["fig1.2", "map.txt"]
    for name in names:
        ready.commands._export_to(a_wish(ready), str(tmp_path / name))
    until(lambda: quiet(ready))
    assert sorted(one.name for one in tmp_path.iterdir()) == [f"{name}.svg" for name in names]
    ready.commands._export_to(a_wish(ready), str(tmp_path / "fig1.2"))
    wrong = refused(ready, until)
    assert wrong.error.what == "fig1.2.svg is there already"
    wrong.finish()
    ready.commands._export_to(a_wish(ready, numbers=True), str(tmp_path / f"{'a' * 300}.svg"))
    wrong = refused(ready, until)
    assert wrong.error.why == "its name is too long" and not wrong.error.details
    wrong.finish()


# --- what the dialog before a figure is written says of itself ------------------------------------


def test_the_dialog_is_explained_over_itself(quick):
    dialog = exporting(quick)
    dialog.help.click()
    page = next(one for one in quick.frame.findChildren(Explanation) if one.isVisible())
    assert page.topic == "export" and "Export a figure" in page.view.toPlainText()
    page.finish()
    assert dialog.isVisible()
    dialog.finish()
