"""B: chosen over its map or in the dialog, captured, stopped, refused; the command of a report."""

import shlex
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from hgviz import tasks
from hgviz.core import HeadId, Selection
from hgviz.gui import sides as comparing
from hgviz.gui.commands import report_command
from hgviz.gui.jobs import Jobs, Lanes
from hgviz.gui.sides import CompareDialog, SideBar, Sides
from hgviz.models import open_model
from hgviz.session import Other, Session
from hgviz.store import write_capture
from tests.gui.screen import busy
from tests.making import make_capture

TEXT = "The hourglass was used at sea, and on the sea."


@pytest.fixture(scope="module")
def model(checkpoint):
    """The tiny checkpoint, open."""
    return open_model(checkpoint)


def captured(model, text=TEXT):
    """A text captured in memory."""
    return tasks.capture(model, model.tokenize(text))


@pytest.fixture
def bench(app, model, checkpoint):
    """A session with a capture of TEXT on the Compare page, and what brings B; no window."""
    session, lanes, errors = Session(), Lanes(), []
    session.put(model=model, checkpoint=str(checkpoint), capture=captured(model), mode="compare")
    working = Jobs(session, lanes, errors.append)
    brings = Sides(session, lanes, working, errors.append)
    yield SimpleNamespace(session=session, lanes=lanes, comparing=brings, errors=errors)
    brings.close()
    lanes.close()


@pytest.fixture
def sides(bench):
    """The two seats over a session."""
    view = SideBar()
    view.bind(bench.session, bench.lanes)
    view.settle()
    yield view
    view.unbind()
    for widget in (view, view.a, view.b):
        widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def over(app):
    """Something for a dialog to stand over."""
    widget = QWidget()
    widget.resize(900, 600)
    widget.show()
    yield widget
    widget.close()
    widget.deleteLater()


def choose(bench, until, other, head=None):
    """Have another B, and wait for all of it."""
    bench.comparing.choose(other, head)
    until(lambda: not busy(bench))


def test_the_same_checkpoint_stands_beside_itself_with_another_activation(bench, sides, until):
    a = bench.session.capture
    choose(bench, until, Other("activation", "ymish"))
    b = bench.session.beside
    assert b.prompt is a.prompt and b.spec.layers[0].activations[0] == "ymish"
    assert bench.session.capture is a and bench.session.activation == ""
    alone = open_model(bench.session.checkpoint, activation="ymish")
    wanted = tasks.capture(alone, a.prompt)
    assert np.array_equal(wanted.logits, b.logits)
    said = []
    sides.explained.connect(said.append)
    sides.settle()
    assert (sides.a.name.text(), sides.b.name.text()) == ("softmax", "ymish")
    assert "softmax exchanged for ymish" in said[-1]


def test_another_text_stands_beside_the_first_and_stays_when_that_changes(bench, model, until):
    choose(bench, until, Other("text", text="Used at sea."))
    first = bench.session.beside
    assert first.prompt.text == "Used at sea."
    bench.session.put(capture=captured(model, "Another text at sea."))
    until(lambda: bench.session.beside is not first and not busy(bench))
    assert bench.session.beside.prompt.text == "Used at sea."
    assert bench.session.text == "Another text at sea."


def test_b_is_not_captured_while_its_page_is_hidden(bench, model, until):
    choose(bench, until, Other("activation", "tanh"))
    bench.session.put(mode="inspect")
    bench.session.put(capture=captured(model, "It waits."))
    assert not busy(bench) and bench.session.beside.prompt.text == TEXT
    bench.session.put(mode="compare")
    until(lambda: not busy(bench))
    assert bench.session.beside.prompt.text == "It waits."


def test_a_capture_file_becomes_b_and_a_missing_one_leaves_b(bench, until, tmp_path):
    path = tmp_path / "other.h5"
    write_capture(path, make_capture("The hourglass was used."))
    choose(bench, until, Other("model", path=str(path)))
    assert bench.session.beside.path == str(path)
    kept, before = bench.session.beside, bench.session.other
    choose(bench, until, Other("model", path=str(tmp_path / "nothing.h5")))
    assert len(bench.errors) == 1 and "there is no" in str(bench.errors[0])
    assert bench.session.beside is kept and bench.session.other == before


def test_without_a_checkpoint_b_can_be_a_file_or_another_head_only(bench, over, until):
    bench.session.put(checkpoint="", model=None)
    bench.comparing.choose(Other("activation", "ymish"))
    assert "checkpoint" in str(bench.errors[0]) and bench.session.other is None
    dialog = CompareDialog(over, bench.session, {})
    dialog.kinds._group.button(0).click()
    assert not dialog.default.isEnabled() and "checkpoint" in dialog.wrong.text()
    dialog.kinds._group.button(4).click()
    dialog.head.setText("0.1")
    assert dialog.default.isEnabled()


def test_stop_leaves_the_b_that_was_there(bench, sides, until):
    choose(bench, until, Other("activation", "tanh"))
    kept = bench.session.beside
    sides.stopped.connect(bench.comparing.stop)
    bench.comparing.choose(Other("activation", "elu"))
    sides.settle()
    assert not sides.b.stop.isHidden() and "Capturing B" in sides.b.words.full
    sides.b.stop.click()
    until(lambda: not bench.lanes.engine.jobs)
    QApplication.processEvents()
    sides.settle()
    assert bench.session.beside is kept and bench.session.other == Other("activation", "tanh")
    assert sides.b.stop.isHidden()


def test_a_b_on_its_way_is_shown_once_it_has_the_head_and_when_it_is_whole(
    bench, until, monkeypatch
):
    monkeypatch.setattr(comparing, "QUIET", -1.0)
    seen = []

    def heard(name):
        if name == "beside":
            seen.append(bench.session.beside)

    bench.session.changed.connect(heard)
    bench.session.put(selection=Selection(0, 0, 5))
    choose(bench, until, Other("activation", "tanh"))
    assert 1 <= len(seen) <= 2 and seen[-1].complete
    assert all(one.maps[0] is not None for one in seen)


def test_compare_with_nothing_removes_b(bench, sides, until):
    there = []
    sides.paired.connect(there.append)
    choose(bench, until, Other("activation", "tanh"))
    sides.settle()
    bench.comparing.forget()
    sides.settle()
    assert bench.session.beside is None and there[-2:] == [True, False]
    assert sides.b.name.text() == "nothing yet"


def test_the_dialog_returns_the_chosen_b(bench, over):
    chosen = []
    more = {"/some/model": "model"}
    dialog = CompareDialog(over, bench.session, more, then=lambda *wish: chosen.append(wish))
    dialog.open()
    assert dialog.kinds.choice == "activation"
    dialog.activations.setCurrentIndex(dialog.activations.findData("elu"))
    QTest.keyClick(dialog.default, Qt.Key.Key_Return)
    assert chosen == [(Other("activation", "elu"), None)]


@pytest.mark.parametrize(
    ("words", "wrong"),
    [("0.9", "no head 0.9"), ("x", "does not name"), ("", "off in A too"), ("0.0,0.0", "twice")],
)
def test_the_dialog_says_which_heads_cannot_be_off(bench, over, words, wrong):
    dialog = CompareDialog(over, bench.session, {}, "off")
    dialog.heads.setText(words)
    assert wrong in dialog.wrong.text() and not dialog.default.isEnabled()
    dialog.heads.setText("0.1, 2.*")
    assert dialog.default.isEnabled()
    assert dialog.answer()[0].off == {HeadId(0, 1), HeadId(2, 0), HeadId(2, 1)}
    dialog.texts[0].setPlainText("")
    dialog.kinds._group.button(2).click()
    assert not dialog.default.isEnabled() and "empty" in dialog.wrong.text()


def test_the_head_of_b_is_named_in_the_dialog(bench, over):
    answers = []
    dialog = CompareDialog(over, bench.session, {}, "head", lambda *answer: answers.append(answer))
    for text, words in (("", "Name the head"), ("x", "does not name"), ("9.9", "has no")):
        dialog.head.setText(text)
        dialog.check()
        assert words in dialog.wrong.text() and not dialog.default.isEnabled()
    dialog.head.setText("2.0")
    dialog.default.click()
    assert answers == [(Other("head"), HeadId(2, 0))]
    dialog = CompareDialog(over, bench.session, {}, "activation")
    assert dialog.answer()[1] is None
    dialog.head.setText("7.3")  # of a model that may have more heads
    assert dialog.answer()[1] == HeadId(7, 3)


# --- the command of a report ----------------------------------------------------------------------


@pytest.fixture
def session(capture):
    """A session that compares a checkpoint with itself by another activation."""
    found = Session()
    found.put(
        checkpoint="a", capture=capture, beside=capture, data="d.tsv",
        other=Other("activation", "ymish"), mode="compare",
    )  # fmt: skip
    return found


def test_the_command_of_a_report_names_both_models_and_is_copied(session, program):
    text = session.capture.main.text
    words = shlex.split(report_command(session))
    assert words[:6] == ["hgviz", "compare", "a", "a", "--data", "d.tsv"]
    assert words[6:10] == ["--activation", "ymish", "--text", text]
    assert words[-2] == "-o" and words[-1].endswith(".html")
    session.other = Other("off", off=frozenset({HeadId(0, 1)}))
    assert "--off 0.1" in report_command(session)
    session.other = Other("model", path="elsewhere", activation="tanh")
    assert report_command(session).startswith("hgviz compare a elsewhere --data d.tsv --act")
    names = ("checkpoint", "capture", "beside", "data", "other")
    program.session.put(**{name: getattr(session, name) for name in names})
    program.commands.method("report_sides")()
    assert QGuiApplication.clipboard().text() == report_command(program.session)
