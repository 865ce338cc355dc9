"""B: chosen over its map or in the dialog, captured, stopped, refused; the command of a report."""

from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from hgviz import tasks
from hgviz.core import HeadId, Selection
from hgviz.gui import sides as comparing
from hgviz.gui.jobs import Jobs, Lanes
from hgviz.gui.sides import CompareDialog, SideBar, Sides
from hgviz.models import open_model
from hgviz.session import Session, SideB
from hgviz.store import write_capture
from tests.gui.screen import busy, choose
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
def bench(app, model, checkpoint, until):
    """The Compare page of a session with a capture of TEXT, without a window: what brings B, and
    the labels of both sides."""
    session, lanes, errors, view = Session(), Lanes(), [], SideBar()
    session.put(model=model, checkpoint=str(checkpoint), capture=captured(model), mode="compare")
    brings = Sides(session, lanes, Jobs(session, lanes, errors.append), errors.append)
    view.bind(session, lanes)
    bench = SimpleNamespace(session=session, lanes=lanes, sides=brings, errors=errors, view=view)

    def choose(kind, *args, head=None, **fields):
        """Have another B, and wait for all of it."""
        brings.choose(SideB(kind, *args, **fields), head)
        until(lambda: not busy(bench))
        view.settle()
        return session.capture_b

    bench.choose = choose
    yield bench
    view.unbind()
    lanes.close()
    for widget in (view, view.a, view.b):
        widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def dialog(bench):
    """Open the dialog that asks for B over a window; what it answers is in bench.answers."""
    window = QWidget()
    window.resize(900, 600)
    window.show()
    bench.answers = []

    def ask(kind=""):
        more = {"/some/model": "model"}
        then = lambda *answer: bench.answers.append(answer)  # noqa: E731
        return CompareDialog(window, bench.session, more, kind, then)

    yield ask
    window.close()
    window.deleteLater()


def test_the_same_checkpoint_stands_beside_itself_with_another_activation(bench):
    a, said = bench.session.capture, []
    bench.view.explained.connect(said.append)
    b = bench.choose("activation", "ymish")
    assert b.prompt is a.prompt and b.spec.layers[0].activations[0] == "ymish"
    assert bench.session.capture is a and bench.session.activation == ""
    alone = open_model(bench.session.checkpoint, activation="ymish")
    assert np.array_equal(tasks.capture(alone, a.prompt).logits, b.logits)
    assert (bench.view.a.name.text(), bench.view.b.name.text()) == ("softmax", "ymish")
    assert "softmax replaced by ymish" in said[-1]


@pytest.mark.parametrize(
    ("other", "head", "names", "words", "note"),
    [
        (SideB("off", off=frozenset({HeadId(0, 1)})), None,
         ("with all heads", "without head 0.1"), "without 1 head", "head 0.1 off in B only"),
        (SideB("head"), HeadId(2, 0), ("head 0.0", "head 2.0"), "", "Two levels of one model"),
        (SideB("head"), None, ("A", "B"), "", "The same head on both sides"),
        (SideB("text", text="At sea."), None, ("this text", "the other text"), "on “At·sea.”",
         "One model on two texts."),
    ],
)  # fmt: skip
def test_the_sides_are_named_by_what_differs(bench, other, head, names, words, note):
    said = []
    bench.view.explained.connect(said.append)
    bench.session.put(selection=Selection(0, 0, 5))
    bench.choose(other.kind, head=head, text=other.text, off=other.off)
    assert (bench.view.a.name.text(), bench.view.b.name.text()) == names
    assert words in bench.view.b.words.full and note in said[-1]


def test_b_follows_a_once_its_page_is_shown_again_and_keeps_its_own_text(bench, model, until):
    session, first = bench.session, bench.choose("text", text="Used at sea.")
    assert first.prompt.text == "Used at sea."
    session.put(mode="inspect")
    session.put(capture=captured(model, "Another text at sea."))
    assert not busy(bench) and session.capture_b is first
    session.put(mode="compare")
    until(lambda: session.capture_b is not first and not busy(bench))
    assert (
        session.capture_b.prompt.text == "Used at sea." and session.text == "Another text at sea."
    )
    bench.choose("activation", "tanh")
    session.put(capture=captured(model, "It follows."))
    until(lambda: session.capture_b.prompt.text == "It follows." and not busy(bench))


def test_a_capture_file_becomes_b_and_a_missing_one_leaves_b(bench, tmp_path):
    path = tmp_path / "other.h5"
    write_capture(path, make_capture("The hourglass was used."))
    kept = bench.choose("model", path=str(path))
    assert kept.path == str(path) and bench.view.b.name.text() != bench.view.a.name.text()
    before = bench.session.comparison
    assert bench.choose("model", path=str(tmp_path / "nothing.h5")) is kept
    assert len(bench.errors) == 1 and bench.session.comparison == before
    b = bench.choose("model", "tanh", path=bench.session.checkpoint)
    assert b.spec.layers[0].activations[0] == "tanh" and b.main.text == TEXT


def test_without_a_checkpoint_b_can_be_a_file_or_another_head_only(bench, dialog):
    bench.session.put(checkpoint="", model=None)
    bench.sides.choose(SideB("activation", "ymish"))
    assert "checkpoint" in str(bench.errors[0]) and bench.session.comparison is None
    form = dialog("activation")
    assert not form.default.isEnabled() and "checkpoint" in form.wrong.text()
    form.kinds._group.button(4).click()
    form.head.setText("0.1")
    assert form.default.isEnabled()


def test_stop_leaves_the_b_that_was_there_and_nothing_removes_it(bench, until):
    session, view, there = bench.session, bench.view, []
    kept = bench.choose("activation", "tanh")
    view.paired.connect(there.append)
    view.stopped.connect(bench.sides.stop)
    bench.sides.choose(SideB("activation", "elu"))
    view.settle()
    assert not view.b.stop.isHidden() and "Running model for B" in view.b.words.full
    view.b.stop.click()
    until(lambda: not bench.lanes.engine.jobs)
    QApplication.processEvents()
    view.settle()
    assert session.capture_b is kept and session.comparison == SideB("activation", "tanh")
    assert view.b.stop.isHidden() and there[-1] is True
    bench.sides.forget()
    view.settle()
    assert session.capture_b is None and there[-1] is False
    assert view.b.name.text() == "not chosen"


def test_a_b_on_its_way_is_shown_once_it_has_the_head_and_when_it_is_whole(bench, monkeypatch):
    monkeypatch.setattr(comparing, "QUIET", -1.0)
    seen, session = [], bench.session
    session.changed.connect(lambda name: name == "capture_b" and seen.append(session.capture_b))
    session.put(selection=Selection(0, 0, 5))
    bench.choose("activation", "tanh")
    assert 1 <= len(seen) <= 2 and seen[-1].complete
    assert all(one.maps[0] is not None for one in seen)


def test_the_dialog_returns_the_chosen_b(bench, dialog):
    form = dialog("activation")
    form.open()
    choose(form.activations, "elu")
    form.head.setText("7.3")  # of a model that may have more heads
    QTest.keyClick(form.default, Qt.Key.Key_Return)
    assert bench.answers == [(SideB("activation", "elu"), HeadId(7, 3))]


@pytest.mark.parametrize(
    ("kind", "words", "wrong", "answer"),
    [
        ("off", "0.9", "no head 0.9", None), ("off", "x", "does not name", None),
        ("off", "", "off in A.", None), ("off", "0.0,0.0", "twice", None),
        ("off", "0.1, 2.*", "", (SideB("off", off=frozenset(map(HeadId, (0, 2, 2), (1, 0, 1)))),
                                 None)),
        ("head", "", "Enter the head", None), ("head", "x", "does not name", None),
        ("head", "9.9", "has no", None), ("head", "2.0", "", (SideB("head"), HeadId(2, 0))),
        ("text", "", "empty", None), ("text", "Ah.", "", (SideB("text", text="Ah."), None)),
    ],
)  # fmt: skip
def test_the_dialog_says_what_is_wrong(bench, dialog, kind, words, wrong, answer):
    form = dialog(kind)
    field = {"off": form.heads, "head": form.head, "text": form.texts[0]}[kind]
    (field.setText if kind != "text" else field.setPlainText)(words)
    form.check()
    assert wrong in form.wrong.text() and form.default.isEnabled() == (answer is not None)
    if answer is not None:
        form.default.click()
        assert bench.answers == [answer]
