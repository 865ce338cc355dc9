"""Opening, capturing, saving and exporting in a real window."""

import functools
import time
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest
from PySide6.QtWidgets import QApplication, QFileDialog

from hgviz.core import Capture, HeadId, HgvizError, Selection, progress
from hgviz.files import resource
from hgviz.gui import commands, sources
from hgviz.gui.actions import ACTIONS, CAPTURE
from hgviz.gui.dialogs import ExchangeDialog, MeasureDialog, WriteDialog, WritingOptions
from hgviz.gui.sides import CompareDialog
from hgviz.gui.sources import FIRST
from hgviz.session import SideB
from hgviz.store import open_capture
from tests.gui.screen import busy, errors


def test_texts_of_every_script_are_captured_and_drawn_and_an_empty_one_is_refused(
    with_model, until
):
    for text in ("x", "שלום עולם", "👩‍👩‍👧 é 한국어\n\ttab", "a" * 700):
        with_model.commands.prompting.capture_text(text)
        until(lambda: not busy(with_model))
        assert with_model.session.capture.prompt.text == text
        for mode in ("inspect", "follow"):
            with_model.session.put(mode=mode)
            with_model.settle()
        assert not errors(with_model)
    before = with_model.session.capture
    with_model.commands.prompting.capture_text("")
    until(lambda: errors(with_model))
    assert "empty" in str(errors(with_model)[0]).lower()
    assert with_model.session.capture is before
    assert with_model.session.stale


def test_a_capture_is_saved_or_the_error_is_shown(opened, until, tmp_path):
    path = tmp_path / "saved.h5"
    opened.commands._save(opened.session.capture, str(path))
    until(lambda: not busy(opened))
    assert open_capture(path).prompt.text == opened.session.text
    assert str(path) in opened.frame.chosen_words.full
    opened.commands._save(opened.session.capture, str(tmp_path / "no" / "saved.h5"))
    until(lambda: errors(opened))
    assert opened.session.capture is not None


def slow(capture, go, layers=13):
    """A capture whose last layer waits until it may go on."""
    maps, step = [None] * layers, (0, layers)
    for index in range(layers):
        maps[index] = capture.maps[index]
        time.sleep(0.005)
        while index == layers - 1 and not go.is_set():
            time.sleep(0.005)
            progress(*step)
        step = index + 1, layers, "", replace(capture, maps=tuple(maps))
        progress(*step)
    return sources.CaptureRequest("somewhere"), None, capture


@pytest.fixture
def capturing(opened, capture, monkeypatch, until):
    """A slow capture under way, some layers done; the last waits for `go`."""
    opened.go = Event()
    monkeypatch.setattr(sources, "capture_text", lambda *_: slow(capture, opened.go))
    opened.session.put(checkpoint="somewhere", capture=None, spec=None)
    opened.commands.run("capture")
    until(lambda: opened.session.capture is not None)
    return opened


def test_finished_layers_are_shown_before_the_rest(capturing, until):
    assert not capturing.session.capture.complete
    assert capturing.frame.pages.currentWidget() is capturing.inspect
    until(lambda: "of 13" in capturing.session.work[-1].note)
    work = capturing.session.work[-1]
    assert work.keeps == f"keeps {work.done:.0f} finished layers"
    capturing.session.put(selection=Selection(0, 0, 5))
    assert capturing.inspect.tabbed.stack.currentWidget() is capturing.inspect.map
    capturing.session.put(selection=Selection(12, 0, 5))
    assert capturing.inspect.tabbed.stack.currentWidget() is capturing.inspect.capturing
    capturing.go.set()
    until(lambda: not busy(capturing))
    assert capturing.session.capture.complete
    assert capturing.inspect.tabbed.stack.currentWidget() is capturing.inspect.map


def test_stop_keeps_the_layers_that_are_done(capturing, until):
    capturing.inspect.capturing._stop.click()
    until(lambda: not capturing.lanes.engine.jobs)
    QApplication.processEvents()
    found: Capture = capturing.session.capture
    assert found.maps[0] is not None and not found.complete
    until(lambda: capturing.session.work[-1].state == "stopped")
    assert not capturing.frame.actions_by_name["save"].isEnabled()


def test_a_window_closed_while_it_works_stops_its_lanes(capturing):
    capturing.close()
    assert not capturing.frame.isVisible()
    assert not capturing.lanes.engine.jobs


def test_a_job_that_fails_shows_its_error_and_keeps_the_capture(opened, monkeypatch, until):
    def broken(*_):
        progress(0, 1)
        raise HgvizError("the text is too long: it has 9 bytes", "Shorten it")

    before = opened.session.capture
    monkeypatch.setattr(sources, "capture_text", broken)
    opened.session.put(checkpoint="somewhere")
    opened.commands.run("capture")
    until(lambda: errors(opened))
    assert errors(opened)[0].do == "Shorten it"
    assert opened.session.capture is before


def test_the_most_alike_head_of_b_is_put_beside_the_one_that_is_looked_at(opened, until):
    session = opened.session
    b = replace(session.capture)
    session.put(capture_b=b, comparison=SideB("model", path="b.h5"))
    session.put(selection=Selection(2, 1, 5, beside=HeadId(2, 0)))
    opened.commands.run("pair_alike")
    until(lambda: session.selection.beside == HeadId(2, 1))
    assert "distance 0" in opened.frame.chosen_words.full


def test_the_bundled_pair_comes_with_both_accuracies_and_ends_with_its_model(program, until):
    session, sides = program.session, program.compare.sides
    program.commands.run("bundled_pair")
    until(lambda: session.trial_b is not None and not busy(program))
    program.settle()
    for side, trial in ((sides.a, session.trial), (sides.b, session.trial_b)):
        score = trial.scores[-1]
        assert score.seen == 2000 and f"{100 * score.value:.1f} % (" in side.words.full
    assert "nothing in common" in program.compare.maps.head.note.full
    program.commands.comparing.choose(SideB("head"), HeadId(0, 1))
    assert session.trial_b is None  # it was of the model before
    dialog = CompareDialog(program.frame, session, program.commands.opened_before, "model")
    assert dialog.answer()[0].path == str(resource("sample/ymish"))
    program.commands.open_path(program.commands.sample)
    until(lambda: session.spec is not None and session.spec.name == "hourglass")
    assert session.comparison is None and session.trial_b is None


def test_the_sample_opens_on_what_measuring_finds_clearest():
    """It is known beforehand, so that its picture need not wait."""
    first = str(resource(FIRST))
    shown = sources.look(first)
    found = sources.measure(shown.capture)
    assert not shown.facts
    assert (shown.selection, shown.opened) == (found.selection, found.opened)


# an action, where it asks for something, who acts on the answer, and the answer
LATE = (
    ("exchange", ExchangeDialog, "commands.choose_a", ("tanh",)),
    ("measure_heads", MeasureDialog, "commands.pruning.measure", (("loo",), True)),
    ("choose_data", QFileDialog, "commands.use_data", ("a.tsv",)),
    ("corpus", QFileDialog, "commands.prompting.keep_corpus", ("a.txt",)),
    ("write", WriteDialog, "commands.prompting.write_so", (WritingOptions(),)),
    ("compare_with", CompareDialog, "commands.choose_side", (SideB("activation", "tanh"), None)),
    ("save_study", QFileDialog, "commands._save_study", ("a.h5",)),
)


@pytest.fixture
def asked(with_model, monkeypatch):
    """Asks for an action that can be done: gives what answers its dialog, and what then acted."""

    def ask(name, kind, actor, answer):
        monkeypatch.setattr(
            commands, "BY_NAME", {one.name: one._replace(needs=(CAPTURE,)) for one in ACTIONS}
        )
        *path, last = actor.split(".")
        acted = []
        owner = functools.reduce(getattr, path, with_model)
        monkeypatch.setattr(owner, last, lambda *got: acted.append(got))
        spec, digest = with_model.session.spec, with_model.session.spec.digest
        study = SimpleNamespace(spec=spec, data_digest=digest, known=None)
        monkeypatch.setattr(with_model.session, "study", study if name == "save_study" else None)
        with_model.commands.run(name)
        (dialog,) = with_model.frame.findChildren(kind)
        send = dialog.fileSelected.emit if kind is QFileDialog else dialog.then
        return lambda: send(*answer), acted

    return ask


@pytest.mark.parametrize("late", LATE, ids=lambda late: late[0])
def test_an_answer_acts_only_while_its_action_can_be_done_with_the_same_model(
    asked, with_model, late
):
    session, said = with_model.session, with_model.frame.chosen_words
    answer, acted = asked(*late)
    answer()
    assert acted == [late[3]]
    capture, session.capture = session.capture, None
    answer()
    assert acted == [late[3]] and said.full == "Run a model on a text first"
    session.capture, session.checkpoint = capture, "another"
    if late[0] == "save_study":
        session.study = SimpleNamespace(spec=session.spec, data_digest="another")
    answer()
    assert acted == [late[3]] and said.full.startswith("Not done")
