"""Whatever is opened, no view shows anything of the model before it: neither pictures nor words."""

from dataclasses import replace
from threading import Event

import pytest
import torch
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from hgviz.core import HeadId, progress
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.sessions import losses
from hgviz.gui.view import LOOKS
from hgviz.session.document import SideB
from hgviz.store import write_capture
from tests.gui.kinds import write_tiny
from tests.gui.screen import busy
from tests.making import make_capture
from tests.models.building import write_transformer

TEXT = "Quizzical zebras vex the jocund sphinx."
BESIDE = "A text that somebody put beside."
MASK = "without zebras"
OFF = frozenset({HeadId(0, 0), HeadId(1, 1)})
PAGES = (*(("inspect", look) for look in LOOKS), ("follow", ""), ("prune", ""), ("compare", ""))
# what is of no model: how weights are coloured, which jobs run, and runs in a folder of their own
PLAIN = ("DisplayPanel", "CapturingView", "studies")
MARKS = ("uizzical", "zebra", "jocund", "sphinx", "amaryllis", MASK, "quagga")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A: reads bytes; bare: has no tokenizer; both have two heads in each of three layers."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("amaryllis", "broken"):
        write_tiny(folder / name, max_positions=256)
    (folder / "broken" / "model.safetensors").write_bytes(b"no weights")
    keys = {"form": "decoder", "vocab_size": 300, "d_model": 16, "n_layers": 3, "d_ff": 32}
    write_transformer(folder / "beech", dtype=torch.float32, **keys)
    write_capture(folder / "cypress.h5", make_capture())
    story = folder / "quagga.txt"
    story.write_text("The jocund sphinx rang, and zebras ran down. " * 12, encoding="utf-8")
    return folder


def quiet(program):
    """Whether neither work nor any question of a view is on its way."""
    lanes = program.lanes
    lanes = (lanes.engine, lanes.files, lanes.facts, lanes.map)
    return not busy(program) and not any(lane.jobs for lane in lanes)


def rest(program, until):
    """Wait until nothing is on its way, also what is asked for only after a look at the events."""
    for _ in range(3):
        QTest.qWait(10)
        until(lambda: quiet(program))


def walk(program, until, look):
    """Every page and look, as long as it takes until what is there is drawn."""
    for mode, name in PAGES:
        program.session.put(mode=mode, **({"look": name} if name else {}))
        for table in program.prune.tables if mode == "prune" else ("",):
            if table:
                program.prune.show_table(table)
            rest(program, until)
            look()


def compare(program, until):
    """Ask where the answer of A comes from, and put another text beside the one at hand."""
    session = program.session
    program.commands.attribute()
    until(lambda: quiet(program) and session.explained is not None)
    program.commands.comparing.choose(SideB("text", text=BESIDE))
    until(lambda: session.capture_b is not None and session.capture_b.off == OFF and quiet(program))


def measure(program, models, until):
    """Have A on screen with all that can be known of it."""
    session, commands = program.session, program.commands
    program.complete()
    session.put(text=TEXT)
    commands.open_path(str(models / "amaryllis"))
    until(lambda: session.capture is not None and session.capture.complete and session.facts)
    commands.use_data(str(models / "quagga.txt"))
    until(lambda: session.trial is not None and session.trial.done)
    commands.pruning.switch(OFF)
    until(lambda: session.trial.done and session.trial.off == OFF)
    commands.pruning.keep()
    session.put(masks=(replace(session.masks[0], name=MASK),))
    commands.pruning.measure(frozenset({"gradient"}), curve=True)
    until(lambda: quiet(program) and session.study is not None and session.study.curves)
    compare(program, until)


def words(widget):
    """All that a widget says on screen, to the eye and to the ear."""
    for one in (widget, *widget.findChildren(QWidget)):
        if one.isVisible():
            yield from (one.accessibleName(), one.accessibleDescription(), one.toolTip())
            if isinstance(one, (QLabel, QAbstractButton)):
                yield one.text()
            yield str(getattr(one, "full", ""))


def drawn(program):
    """The numbers and words of every view of a model whose picture is on screen, by its kind."""
    kinds = {f"{type(one).__module__}.{type(one).__name__}": one for one in program.views}
    return {
        kind: (one.as_table(), one.as_text())
        for kind, one in kinds.items()
        if one.isVisible() and one.drawn and not any(name in kind for name in PLAIN)
    }


def faults(program, title, seen):
    """What is on screen though it is of A."""
    assert title in program.frame.windowTitle()
    said = {*words(program.frame), program.frame.chosen_words.full}
    wrong = [f"{mark} in {line}" for mark in MARKS for line in said if mark in line]
    wrong += [kind for kind, one in drawn(program).items() if any(one) and one == seen.get(kind)]
    return wrong


def opens(program, path, until):
    program.commands.open_path(str(path))
    rest(program, until)
    for dialog in program.frame.findChildren(ErrorDialog):
        dialog.reject()
    rest(program, until)


@pytest.mark.timeout(300)
def test_nothing_of_another_model_is_shown_and_measurements_come_back_with_theirs(
    program, models, until
):
    session, seen, wrong = program.session, {}, []
    measure(program, models, until)
    walk(program, until, lambda: (program.settle(), seen.update(drawn(program))))
    assert len(seen) >= 19
    lost = "The importance scores of amaryllis are not saved."
    names = ("study", "unsaved", "masks", "data", "score", "off", "undo")
    kept = {name: getattr(session, name) for name in names}
    digest, before = session.trial.examples.digest, session.capture
    opens(program, models / "broken", until)  # everything stays
    assert "amaryllis" in program.frame.windowTitle() and session.capture is before
    assert {name: getattr(session, name) for name in names} == kept
    opens(program, models / "amaryllis", until)
    assert {name: getattr(session, name) for name in names} == kept
    compare(program, until)
    for path, title, page in (
        (models / "beech", "beech", {"mode": "prune"}),
        (models / "cypress.h5", "test", {"mode": "compare"}),
    ):
        session.put(**page)
        rest(program, until)
        opens(program, path, until)
        walk(program, until, lambda title=title: wrong.extend(faults(program, title, seen)))
        assert not wrong, "\n".join(dict.fromkeys(wrong))
        assert session.study is None and not session.data and not session.masks
        assert lost in losses(session, program.commands.working, True)
        program.commands.sessions.open_together({"model": str(models / "amaryllis")})
        until(lambda: session.checkpoint.endswith("amaryllis") and quiet(program))
        until(lambda: session.trial is not None and session.trial.done)
        assert {name: getattr(session, name) for name in names} == kept
        assert session.trial.examples.digest == digest and session.trial.off == OFF
        assert lost not in losses(session, program.commands.working, True)
        compare(program, until)


def test_the_answer_of_a_job_for_another_model_is_dropped(with_model, models, until):
    """Jobs that run while a capture of another model is opened."""
    session, working, go, came = with_model.session, with_model.commands.working, Event(), []

    def slow():
        progress(0, 1)
        go.wait(20)
        return "of A"

    working.start(with_model.lanes.engine, "asked-of-a", "Slow", slow, came.append, bound=True)
    working.start(with_model.lanes.facts, "of-no-model", "Slow", slow, came.append)
    with_model.commands.open_path(str(models / "cypress.h5"))
    until(lambda: session.capture is not None and session.capture.path.endswith("cypress.h5"))
    go.set()
    until(lambda: quiet(with_model))
    assert came == ["of A"]  # the one that is of no model
    assert session.model is None and session.checkpoint == ""


DRAWN = {
    "HourglassView", "MapView", "LinksView", "NeuronView", "AttributionView", "AcrossView",
    "HeadsView", "TextStrip", "HeadPanel", "TopKeysPanel", "FollowView", "LiveView",
    "CurveView", "ChangedView", "SlicesView", "CompareView", "NumbersView", "TextsView",
}  # fmt: skip


@pytest.fixture
def measured(program, models, until):
    """Model A with everything measured; what each view says of it is in program.seen."""
    measure(program, models, until)
    program.seen = {}
    walk(program, until, lambda: (program.settle(), program.seen.update(drawn(program))))
    assert {name.rpartition(".")[2] for name in program.seen} >= DRAWN
    return program


def test_everything_stays_when_a_checkpoint_does_not_open_or_is_opened_again(
    measured, models, until
):
    session = measured.session
    names = ("study", "masks", "off", "undo")
    before = {name: getattr(session, name) for name in (*names, "capture")}
    opens(measured, models / "broken", until)
    assert "amaryllis" in measured.frame.windowTitle()
    assert {name: getattr(session, name) for name in before} == before
    walk(measured, until, lambda: _as_before(measured))
    opened = session.models
    opens(measured, models / "amaryllis", until)
    assert all(getattr(session, name) == before[name] for name in names)
    assert session.models == opened
    session.put(mode="prune")
    rest(measured, until)
    _as_before(measured, "LiveView", "CurveView", "prune.HeadsView")


def _as_before(program, *names):
    """Whatever is on screen says what it said."""
    now = drawn(program)
    for name, value in program.seen.items():
        if name in now and (not names or name.endswith(names)):
            assert now[name] == value, name
