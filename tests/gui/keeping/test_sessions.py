"""Sessions in a real window: what is saved comes back, in another window and at the next start."""

import json
import shutil

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from hgviz import settings
from hgviz.core import HeadId, Selection
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.program import Program
from hgviz.gui.sessions import last
from hgviz.gui.sources import placed
from hgviz.gui.window import Window
from hgviz.session import saved
from hgviz.session.other import Other

TEXT = "A sailor turned the glass."


@pytest.fixture
def another(app):
    """Programs in windows of their own, closed at the end."""
    made = []

    def make():
        frame = Window()
        frame.resize(1600, 1000)
        frame.show()
        made.append(Program(frame))
        QApplication.processEvents()
        return made[-1]

    yield make
    for one in made:
        one.close()
        one.frame.close()
        one.frame.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def capture_of(program, checkpoint, until):
    session = program.session
    session.put(text=TEXT)
    program.commands.open_path(str(checkpoint))
    until(lambda: session.capture is not None and session.capture.complete and session.facts)


def save(program, path, until):
    program.commands.sessions.save(str(path))
    until(lambda: program.commands.sessions.file == str(path))


def quiet(program):
    return not any(one.state in ("waiting", "running") for one in program.session.work)


def test_a_capture_comes_back_as_it_was_left(opened, kept, another, until, tmp_path):
    opened.commands.open_path(str(kept))
    until(lambda: opened.session.capture.path == str(kept) and quiet(opened))
    session = opened.session
    session.put(selection=Selection(2, 1, 20, 10), look="links", mode="follow")
    session.put(off=frozenset({HeadId(0, 1)}))
    opened.commands.pruning.keep()
    save(opened, tmp_path / "one.hgviz", until)
    found = saved.read(tmp_path / "one.hgviz")
    assert found.capture.path == "kept.h5" and found.text == ""
    second = another()
    second.commands.open_path(str(tmp_path / "one.hgviz"))
    until(lambda: second.session.masks and quiet(second))
    for name in ("selection", "look", "mode", "off", "display", "masks", "text"):
        assert getattr(second.session, name) == getattr(session, name), name
    assert second.session.capture.path == str(kept)
    assert second.session.recent[:1] == (str(tmp_path / "one.hgviz"),)


def test_a_text_is_captured_again_and_b_with_it(program, checkpoint, another, until, tmp_path):
    capture_of(program, checkpoint, until)
    session = program.session
    session.put(off=frozenset({HeadId(1, 0)}))
    program.commands.run("capture")
    until(lambda: session.capture.off == session.off and quiet(program))
    program.commands.comparing.choose(Other("activation", "ymish"))
    until(lambda: session.beside is not None and quiet(program))
    session.put(selection=Selection(1, 1, 12, 3))
    save(program, tmp_path / "one.hgviz", until)
    second = another()
    second.commands.open_path(str(tmp_path / "one.hgviz"))
    until(lambda: second.session.beside is not None and quiet(second))
    assert second.session.capture.main.text == TEXT
    assert second.session.capture.off == {HeadId(1, 0)}
    assert second.session.checkpoint == str(checkpoint)
    assert second.session.other == Other("activation", "ymish")
    assert second.session.mode == "compare"
    assert second.session.selection == session.selection


def test_a_text_too_long_for_its_model_is_cut_and_the_mask_stays(
    program, checkpoint, until, tmp_path
):
    short = tmp_path / "short"
    shutil.copytree(checkpoint, short)
    keys = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps(keys | {"max_positions": 16}))
    blank = saved.Saved(saved.FORMAT, saved.VERSION, text=TEXT, off=("1.0",))
    file, session = tmp_path / "one.hgviz", program.session
    saved.write(placed(blank, {"model": str(short)}, str(file)), file)
    program.commands.open_path(str(file))
    until(lambda: session.capture is not None and session.capture.complete and quiet(program))
    assert session.capture.main.text == session.text == TEXT[:16]
    assert session.off == session.capture.off == {HeadId(1, 0)}
    assert "16 bytes" in program.frame.chosen_words.full
    assert not program.frame.findChildren(ErrorDialog)


def test_what_is_missing_is_said_and_the_rest_opens(
    program, checkpoint, kept, another, until, tmp_path
):
    capture_of(program, checkpoint, until)
    program.commands.open_path(str(kept))
    until(lambda: program.session.capture.path == str(kept) and quiet(program))
    program.session.put(checkpoint=str(checkpoint))
    save(program, tmp_path / "one.hgviz", until)
    kept.unlink()
    second = another()
    second.commands.open_path(str(tmp_path / "one.hgviz"))
    until(lambda: second.session.capture is not None and quiet(second))
    (said,) = second.frame.findChildren(ErrorDialog)
    assert said.error.why == f"Capture: {kept}"
    assert second.session.checkpoint == str(checkpoint) and second.session.capture.path == ""


def test_a_hostile_session_says_what_is_wrong(program, until, tmp_path):
    bad = tmp_path / "bad.hgviz"
    bad.write_text('{"format": "hgviz session", "version": 1, "model": {"path": "/dev/zero"}}')
    program.commands.open_path(str(bad))
    until(lambda: program.frame.findChild(ErrorDialog) is not None)
    assert "absolute" in " ".join(program.frame.findChild(ErrorDialog).error.lines)


def test_the_last_session_comes_back_at_the_next_start(another, kept, until):
    first = another()
    first.open_first([str(kept)])
    until(lambda: first.session.capture is not None and quiet(first))
    first.session.put(selection=Selection(1, 0, 15, 4))
    first.close()
    assert last().exists()
    second = another()
    second.open_first([])
    until(lambda: second.session.capture is not None and quiet(second))
    assert second.session.capture.path == str(kept)
    assert second.session.selection == Selection(1, 0, 15, 4)
    assert second.commands.sessions.file == ""  # nobody saved it under a name
    assert second.session.recent == (str(kept),)
    assert last().exists() and not last().with_suffix(".opening").exists()


def test_a_last_session_that_ended_the_program_is_not_opened_again(another, kept, until):
    first = another()
    first.open_first([str(kept)])
    until(lambda: first.session.capture is not None)
    first.close()
    second = another()
    second.commands.show_found = lambda found: None  # it gets no further
    second.commands.sessions.open_last(print)
    until(lambda: last().with_suffix(".opening").exists())
    assert not last().exists()


def test_the_sample_is_there_where_it_is_asked_for(another, kept, until):
    first = another()
    first.open_first([str(kept)])
    until(lambda: first.session.capture is not None)
    first.close()
    second = another()
    asked = []
    second._open_sample = lambda: asked.append(True)
    second.open_first([], go_on=False)
    assert asked


def test_a_path_is_opened_in_place_of_the_last_session(another, kept, until, tmp_path):
    first = another()
    first.open_first([str(kept)])
    until(lambda: first.session.capture is not None)
    first.close()
    other = shutil.copy(kept, tmp_path / "other.h5")
    second = another()
    second.open_first([str(other)])
    until(lambda: second.session.capture is not None)
    assert second.session.capture.path == str(other)


def test_nothing_comes_back_where_nobody_wants_it(another, kept, until):
    first = another()
    first.open_first([str(kept)])
    until(lambda: first.session.capture is not None)
    first.close()
    settings.save(settings.Settings(restore=False))
    second = another()
    asked = []
    second._open_sample = lambda: asked.append(True)
    second.open_first([])
    assert asked


def test_a_last_session_that_is_broken_gives_way_to_the_sample(another, until):
    last().parent.mkdir(parents=True, exist_ok=True)
    last().write_bytes(b"broken")
    one = another()
    asked = []
    one._open_sample = lambda: asked.append(True)
    one.open_first([])
    until(lambda: asked)
    assert one.frame.findChild(ErrorDialog) is None


def test_a_study_of_many_runs_comes_back_on_its_page(program, another, until, tmp_path):
    from tests.sweeps import make_sweep

    make_sweep(seeds=(1,), methods=("michel",), folder=tmp_path / "many")
    program.commands.open_path(str(tmp_path / "many"))
    until(lambda: program.session.sweep is not None and quiet(program))
    cell = program.session.sweep.standings[2].cell.key
    program.commands.choose_cell(cell)
    save(program, tmp_path / "one.hgviz", until)
    assert saved.read(tmp_path / "one.hgviz").sweep == saved.Place("many")  # it changes as it runs
    second = another()
    second.commands.open_path(str(tmp_path / "one.hgviz"))
    until(lambda: second.session.sweep is not None and quiet(second))
    assert second.session.mode == "sweep" and second.session.sweep.title
    assert second.session.cell == cell
    old = (tmp_path / "one.hgviz").read_text().replace(cell, "0" * 24)
    (tmp_path / "two.hgviz").write_text(old)  # of cells that are no more
    third = another()
    third.commands.open_path(str(tmp_path / "two.hgviz"))
    until(lambda: third.session.sweep is not None and quiet(third))
    assert third.session.cell == ""
