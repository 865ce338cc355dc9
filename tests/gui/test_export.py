"""The dialog before a figure is written: what it offers, shows, says and writes."""

import time
from dataclasses import replace
from threading import Event, current_thread, main_thread
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QBuffer, QCoreApplication, QEvent
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from hgviz import tasks
from hgviz.core import Display, Selection, progress
from hgviz.figures import Spec, labels, points
from hgviz.figures.output import Preview
from hgviz.gui import export
from hgviz.gui.export import DOTS, ExportDialog, PagePicture
from hgviz.gui.jobs import Lanes
from hgviz.gui.view import Notice
from hgviz.gui.widgets import Words
from hgviz.session import Session
from tests.gui.screen import choose
from tests.making import make_capture
from tests.studying import make_study

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


@pytest.fixture(scope="module")
def short():
    return make_capture(TEXT, strides=(1, 2), heads=3)


@pytest.fixture
def drawn(app, short):
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
def quick(drawn, monkeypatch):
    """The same where no test looks at what is drawn: blank pages of the width that is asked."""

    def blank(ready, dots):
        progress(0, 1)
        wide = points(ready.spec.width)
        png = QBuffer()
        image = QImage(round(wide / 72 * dots), 100, QImage.Format.Format_RGB32)
        image.save(png, "PNG")
        return Preview(png.data().data(), dots, wide, 100 / dots * 72, 6.5, ())

    monkeypatch.setattr(tasks, "preview", blank)
    return drawn


def ask(drawn, **more):
    """Open the dialog for the figure of the map."""
    session = drawn.session
    spec = Spec("map", session.selection, session.display)
    dialog = ExportDialog(drawn.frame, session, drawn.lanes, [spec], **more)
    dialog.open()
    return dialog


def shown(dialog):
    return dialog.preview.picture is not None and not dialog._wait.isActive()


def said(dialog):
    return [one.text() for one in dialog.findChildren(QLabel) if one.isVisible()]


# --- the page -------------------------------------------------------------------------------------


def test_the_preview_at_the_resolution_of_the_file_is_the_file(drawn, until, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "DOTS", float(labels.DOTS))
    dialog = ask(drawn, last=("icml", "png"))
    until(lambda: shown(dialog) and dialog.preview.picture.width == pytest.approx(234))
    spec = dialog.choices.spec
    tasks.figure(spec, drawn.session.capture, tmp_path / "map.png", drawn.session.facts)
    seen, rgb = dialog.preview.picture.image, QImage.Format.Format_RGB888
    assert seen.convertToFormat(rgb) == QImage(str(tmp_path / "map.png")).convertToFormat(rgb)


def test_a_page_at_100_percent_has_96_px_an_inch(drawn, until):
    dialog = ask(drawn, last=("nature", "pdf"))
    until(lambda: shown(dialog) and dialog.preview.picture.width < 300)
    picture, size = dialog.preview.picture, dialog.preview.page.pixmap().deviceIndependentSize()
    assert size.width() == pytest.approx(89 / 25.4 * DOTS, abs=2)
    assert size.height() == pytest.approx(picture.height / 72 * DOTS, abs=2)
    words = dialog.measures.full
    assert words.startswith("89 × ") and " mm" in words and "252 × " in words
    assert f"smallest text {picture.smallest:.3g} pt" in words


def test_only_the_newest_choice_is_drawn(quick, until, monkeypatch):
    begun, blank = [], tasks.preview

    def held(ready, dots):
        begun.append(ready.spec.width)
        while ready.spec.width == "neurips":  # as long as somebody wants it
            progress(0, 1)
            time.sleep(0.001)
        return blank(ready, dots)

    monkeypatch.setattr(tasks, "preview", held)
    dialog = ask(quick)
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


def test_an_error_stands_in_place_of_the_page(drawn, until, short):
    maps = (*short.maps[:4], None, *short.maps[5:])
    drawn.session.put(capture=replace(short, maps=maps))
    dialog = ask(drawn)
    until(lambda: dialog.preview.findChildren(Notice))
    words = " ".join(said(dialog))
    assert "layer 4" in words.lower() and not dialog.default.isEnabled()
    choose(dialog.choices.kind, "activation")
    until(lambda: shown(dialog) and dialog.preview.page.isVisible())
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


@pytest.mark.parametrize(
    ("width", "unit", "size"),
    [("neurips", "in", "5.50 × 2.78 in"), ("nature2", "mm", "140 × 71 mm"),
     ("12cm", "cm", "14.0 × 7.1 cm"), ("252", "in", "5.50 × 2.78 in"),
     ("252 pt", "pt", "396 × 200 pt")],
)  # fmt: skip
def test_a_size_is_said_in_the_unit_it_was_asked_in(width, unit, size):
    assert export.unit_of(width) == unit
    words = export.measures(PagePicture(QImage(), 396, 200, 6.5, ()), width)
    assert words.startswith(size) and words.count("pt") == 2


# --- what is chosen -------------------------------------------------------------------------------


def test_the_figure_has_every_choice(quick, until):
    chosen, kept = [], []
    dialog = ask(quick)
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


def test_a_wrong_width_is_said_and_nothing_is_exported(quick, until):
    dialog = ask(quick)
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


def test_kinds_that_lack_something_say_what(quick, short):
    def offered():
        dialog = ask(quick)
        kind = dialog.choices.kind
        found = {
            kind.itemData(at): (kind.model().item(at).isEnabled(), kind.itemText(at))
            for at in range(kind.count())
        }
        dialog.reject()
        return found

    found = offered()
    assert found["map"][0] and found["rollout"][0] and found["activation"][0]
    assert not found["compare"][0] and "choose a B" in found["compare"][1]
    assert not found["scores"][0] and "Prune" in found["scores"][1]
    quick.session.put(beside=short, study=make_study(curves=0))
    found = offered()
    assert found["compare"][0] and found["scores"][0]
    assert not found["curve"][0] and "draw the curve" in found["curve"][1]


@pytest.mark.parametrize("width", ["acl2", "77mm"])
def test_the_last_width_and_format_come_first(quick, width):
    kept = []
    dialog = ask(quick, last=(width, "svg"))
    assert (dialog.choices.spec.width, dialog.choices.spec.format) == (width, "svg")
    assert dialog.choices.length.isVisible() == (width == "77mm")
    dialog.kept.connect(lambda *some: kept.append(some))
    dialog.copy.click()
    assert kept == [(width, "svg")]


# --- as a stranger uses it ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1100, 700), (1600, 1000)])
def test_the_dialog_fits_the_window_and_clips_no_words(quick, until, size):
    quick.frame.resize(*size)
    QApplication.processEvents()
    dialog = ask(quick)
    dialog.choices.title_.choose("own")
    choose(dialog.choices.width_, "")
    dialog.choices.length.setText("5 km")
    QApplication.processEvents()
    assert quick.frame.geometry().contains(dialog.geometry())
    buttons = dialog.default.mapTo(dialog, dialog.default.rect().bottomRight())
    assert dialog.rect().contains(buttons)
    for one in dialog.findChildren(QLabel):
        if one.isVisible() and one.text() and not isinstance(one, Words):
            need = one.heightForWidth(one.width()) if one.wordWrap() else one.sizeHint().height()
            assert one.height() >= need, one.text()
    inside = dialog.choices
    assert inside.width() <= inside.parentWidget().width()


def test_the_window_is_free_while_a_page_is_drawn(drawn, until, monkeypatch):
    """What is chosen in the meantime arrives at once: the page is drawn in a lane."""
    go, threads = Event(), []
    true = tasks.preview

    def held(ready, dots):
        threads.append(current_thread())
        progress(0, 1)
        assert go.wait(60)
        return true(ready, dots)

    monkeypatch.setattr(tasks, "preview", held)
    dialog = ask(drawn)
    until(lambda: threads)
    dialog.measures.say("5 × 4 in")  # of another page
    choose(dialog.choices.form, "svg")
    assert dialog.choices.use.text() == export.USES["svg"]
    assert isinstance(dialog.preview, QWidget) and dialog.preview.picture is None
    until(lambda: not dialog.measures.full)  # whatever was there before is of another choice
    assert dialog.preview.fade.isEnabled() and not dialog.notes.isVisible()
    go.set()
    until(lambda: shown(dialog))
    assert main_thread() not in threads and not dialog.preview.fade.isEnabled()
