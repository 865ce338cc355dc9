"""Where a figure is written: asked, refused, in place of what, and though the window closes."""

from __future__ import annotations

import errno
import os

import pytest
from PySide6.QtWidgets import QFileDialog

from hgviz.core import Selection, Step, replace
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.export import Drafts, ExportDialog, Wish
from hgviz.gui.jobs import GOING
from tests.making import make_capture

TEXT = "The hourglass was used at sea."


@pytest.fixture
def drawn(program):
    """A program with a short text, everything drawn."""
    capture = make_capture(TEXT, strides=(1, 2), heads=2)
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


def test_whoever_asks_where_to_and_cancels_finds_the_dialog_as_it_was(drawn, until, tmp_path):
    drawn.commands.run("export")
    dialog = dialog_of(drawn)
    dialog.choices.title_.choose("own")
    dialog.choices.own.setText("Mine")
    until(lambda: dialog.preview.sheet.picture is not None)
    dialog.default.click()
    asked_where(drawn).reject()
    until(lambda: not any(one.isVisible() for one in drawn.frame.findChildren(QFileDialog)))
    assert dialog.isVisible() and dialog.choices.spec.title == "Mine"
    assert dialog.default.isEnabled() and dialog.preview.sheet.picture is not None
    dialog.default.click()
    asking = asked_where(drawn)
    asking.fileSelected.emit(str(tmp_path / "map.pdf"))
    asking.reject()
    until(lambda: quiet(drawn))
    assert not dialog.isVisible() and (tmp_path / "map.pdf").exists()


def test_a_figure_that_cannot_be_written_is_said(drawn, until, tmp_path):
    drawn.commands._export_to(a_wish(drawn), str(tmp_path / "no" / "map.svg"))
    assert "folder" in refused(drawn, until).error.what


def test_a_disk_that_refuses_is_said_and_leaves_nothing(drawn, until, tmp_path, monkeypatch):
    (tmp_path / "map.svg").write_text("the figure before")
    for code, why in ((errno.ENOSPC, "full"), (errno.EROFS, "Read-only")):

        def refuse(*some, code=code):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", refuse)
        drawn.commands._export_to(a_wish(drawn), str(tmp_path / "map.svg"))
        wrong = refused(drawn, until)
        assert "map.svg could not be written" in wrong.error.what
        assert why in wrong.error.why and wrong.error.do and not wrong.error.details
        assert [one.name for one in tmp_path.iterdir()] == ["map.svg"]
        assert (tmp_path / "map.svg").read_text() == "the figure before"
        wrong.finish()


def test_a_window_that_closes_has_its_figures_written_and_nothing_else(drawn, until, tmp_path):
    """One that is on its way, and one that waits for it; a preview is given up."""
    from threading import Event

    begun, go = Event(), Event()

    def held():
        begun.set()
        assert go.wait(20)
        yield Step(0, 1)
        raise AssertionError("it was not given up")

    drawn.lanes.files.submit("preview", "Preview", held())
    assert begun.wait(20)
    for name in ("one.svg", "two.pdf"):
        drawn.commands._export_to(a_wish(drawn, numbers=name == "two.pdf"), str(tmp_path / name))
    go.set()
    drawn.frame.close()
    found = sorted(one.name for one in tmp_path.iterdir())
    assert found == ["one.svg", "two.csv", "two.pdf"]


def test_files_that_nobody_was_asked_about_stay(drawn, until, tmp_path):
    (tmp_path / "map.csv").write_text("notes of somebody")
    wish = a_wish(drawn, numbers=True)
    drawn.commands._export_to(wish, str(tmp_path / "map.svg"))
    wrong = refused(drawn, until)
    assert wrong.error.what == "map.csv is there already"
    wrong.finish()
    assert (tmp_path / "map.csv").read_text() == "notes of somebody"
    (tmp_path / "map.svg").write_text("a figure, asked about")
    drawn.commands._export_to(wish, str(tmp_path / "map.svg"))
    until(lambda: quiet(drawn))
    assert "4.1" in (tmp_path / "map.csv").read_text()


def test_a_figure_has_the_ending_of_one(drawn, until, tmp_path):
    names = ["fig1.2", "map.txt"]
    for name in names:
        drawn.commands._export_to(a_wish(drawn), str(tmp_path / name))
    until(lambda: quiet(drawn))
    assert sorted(one.name for one in tmp_path.iterdir()) == [f"{name}.svg" for name in names]
    drawn.commands._export_to(a_wish(drawn), str(tmp_path / "fig1.2"))
    wrong = refused(drawn, until)
    assert wrong.error.what == "fig1.2.svg is there already"
    wrong.finish()
    drawn.commands._export_to(a_wish(drawn, numbers=True), str(tmp_path / f"{'a' * 300}.svg"))
    wrong = refused(drawn, until)
    assert wrong.error.why == "its name is too long" and not wrong.error.details
    wrong.finish()
