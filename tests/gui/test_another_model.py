"""Whatever is opened, no view shows anything of the model before it: neither pictures nor words."""

import time
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget

from hgviz.core import HeadId
from hgviz.gui import sources
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.samples import FIRST
from hgviz.gui.sessions import losses
from hgviz.gui.view import LOOKS
from hgviz.session.other import Other
from hgviz.store import write_capture
from tests.making import make_capture

TEXT = "Quizzical zebras vex the jocund sphinx."
BESIDE = "A text that somebody put beside."
MASK = "without zebras"
OFF = frozenset({HeadId(0, 0), HeadId(1, 1)})
PAGES = (*(("inspect", look) for look in LOOKS), ("follow", ""), ("prune", ""), ("compare", ""))
# what is of no model: how weights are coloured, which jobs run
PLAIN = ("DisplayPanel", "CapturingView")
# of runs that lie in a folder of their own, beside whatever is open
RUNS = "hgviz.gui.sweeps"
MARKS = ("uizzical", "zebra", "jocund", "sphinx", "amaryllis", MASK, "quagga")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A: reads bytes; bare: has no tokenizer; both have two heads in each of three layers."""
    import torch

    from hgviz.models.config import HourglassConfig, TransformerConfig
    from hgviz.models.families.hourglass import Hourglass
    from hgviz.models.families.transformer import Transformer
    from hgviz.models.formats.checkpoint import save
    from hgviz.models.hierarchy import parse_hierarchy

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models")
    a = HourglassConfig(
        256, 16, 2, parse_hierarchy("1@1 1@2 1@1"), positions="rotary", max_positions=256
    )
    save(folder / "amaryllis", a, Hourglass(a).state_dict())
    bare = TransformerConfig(300, 16, 2, 3, form="decoder", d_ff=32)
    save(folder / "beech", bare, Transformer(bare).state_dict())
    broken = folder / "broken"
    save(broken, a, Hourglass(a).state_dict())
    (broken / "model.safetensors").write_bytes(b"no weights")
    write_capture(folder / "cypress.h5", make_capture())
    story = folder / "quagga.txt"
    story.write_text("The jocund sphinx rang, and zebras ran down. " * 12, encoding="utf-8")
    return folder


def quiet(program):
    return not any(one.state in ("waiting", "running") for one in program.session.work) and not any(
        lane.jobs for lane in (program.lanes.engine, program.lanes.files, program.lanes.facts,
                               program.lanes.map)
    )  # fmt: skip


def turn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.005)


def walk(program, until, look=lambda: None):
    """Every page and look, as long as it takes until what is there is drawn."""
    for mode, name in PAGES:
        program.session.put(mode=mode, **({"look": name} if name else {}))
        turn(0.1)
        until(lambda: quiet(program))
        turn(0.1)
        look()
        for table in program.prune.tables if mode == "prune" else ():
            program.prune.show_table(table)
            turn(0.1)
            look()


@pytest.fixture
def measured(program, models, until):
    """A on screen with all that can be known of it; what each view says of it, in program.said."""
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
    commands.pruning.measure(frozenset({"gradient"}))
    until(lambda: quiet(program) and session.study is not None and session.score)
    commands.pruning.trace()
    until(lambda: quiet(program) and session.study.curves)
    commands.attribute()
    until(lambda: quiet(program) and session.explained is not None)
    commands.comparing.choose(Other("text", text=BESIDE))
    until(lambda: session.beside is not None and session.beside.off == OFF and quiet(program))
    program.seen = {}
    walk(program, until, lambda: program.seen.update(drawn(program)))
    return program


def views(program):
    """Every view on screen that is of a model."""
    for view in program.views:
        kind = type(view)
        if view.isVisible() and kind.__name__ not in PLAIN and RUNS not in kind.__module__:
            yield view


def name_of(view):
    return f"{type(view).__module__}.{type(view).__name__}"


def words(widget):
    """All that a widget says on screen, to the eye and to the ear."""
    said = []
    for one in (widget, *widget.findChildren(QWidget)):
        if one.isVisible():
            said += [one.accessibleName(), one.accessibleDescription(), one.toolTip()]
            if isinstance(one, (QLabel, QAbstractButton)):
                said.append(one.text())
            if hasattr(one, "full"):
                said.append(str(one.full))
    return "\n".join(filter(None, said))


def values(view):
    """The numbers and words of a view whose picture is on screen."""
    return (view.as_table(), view.as_text())


def drawn(program):
    return {name_of(view): values(view) for view in views(program) if view.drawn}


def test_all_of_a_is_on_screen_before_another_is_opened(measured):
    there = {name.rpartition(".")[2] for name in measured.seen}
    assert {"HourglassView", "MapView", "LinksView", "NeuronView", "AttributionView", "AcrossView",
            "HeadsView", "TextStrip", "HeadPanel", "WorthPanel", "LooksPanel", "FollowView",
            "LiveView", "CurveView", "ChangedView", "SlicesView", "CompareView", "NumbersView",
            "TextsView"} <= there  # fmt: skip


def check(program, title):
    """Nothing on screen is of A."""
    wrong = []
    assert title in program.frame.windowTitle()
    said = f"{program.frame.chosen_words.full}\n{program.frame.made_words.text()}"
    shown = words(program.frame)
    wrong += [f"window: {mark} in {line}" for mark in MARKS for line in shown.splitlines()
              if mark in line]  # fmt: skip
    wrong += [f"status: {mark}" for mark in MARKS if mark in said]
    for view in views(program):
        name = name_of(view)
        if view.drawn and any(values(view)) and values(view) == program.seen.get(name):
            wrong.append(f"{name} draws what it drew of A")
    return wrong


def opens(program, path, until):
    program.commands.open_path(str(path))
    turn(0.2)
    until(lambda: quiet(program))
    for one in program.frame.findChildren(ErrorDialog):
        one.finish()
    turn(0.1)


@pytest.mark.parametrize("page", ["map", "links", "heads", "follow", "prune", "compare"])
@pytest.mark.parametrize("what", ["bare", "capture", "sample"])
def test_nothing_of_another_model_is_shown(measured, models, until, what, page):
    path, title = {
        "bare": (models / "beech", "beech"),
        "capture": (models / "cypress.h5", "test"),
        "sample": (sources.resource(FIRST), "hourglass"),
    }[what]
    session = measured.session
    session.put(**({"mode": "inspect", "look": page} if page in LOOKS else {"mode": page}))
    turn(0.2)
    opens(measured, path, until)
    wrong = check(measured, title)
    walk(measured, until, lambda: wrong.extend(check(measured, title)))
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_a_checkpoint_that_does_not_open_leaves_everything_as_it_was(measured, models, until):
    before = measured.frame.windowTitle()
    session = measured.session
    kept = (session.capture, session.study, session.masks, session.off, session.history)
    opens(measured, models / "broken", until)
    assert measured.frame.windowTitle() == before and "amaryllis" in before
    assert kept == (session.capture, session.study, session.masks, session.off, session.history)
    walk(measured, until, lambda: _as_before(measured))


def test_the_same_checkpoint_again_keeps_what_was_measured_of_it(measured, models, until):
    session = measured.session
    kept = (session.study, session.masks, session.off, session.history, session.models)
    opens(measured, models / "amaryllis", until)
    assert kept == (session.study, session.masks, session.off, session.history, session.models)
    session.put(mode="prune")
    turn(0.2)
    _as_before(measured, "LiveView", "CurveView", "prune.heads.HeadsView")


def test_what_was_measured_comes_back_with_its_model(measured, models, until):
    session = measured.session
    names = ("study", "unsaved", "masks", "data", "score", "off", "history")
    kept = {name: getattr(session, name) for name in names}
    digest = session.trial.examples.digest
    opens(measured, models / "beech", until)
    assert session.study is None and not session.data
    lost = "What was measured of the heads of amaryllis is not saved."
    assert lost in losses(session, measured.commands.working, True)
    opens(measured, models / "amaryllis", until)
    until(lambda: session.trial is not None and session.trial.done)
    assert {name: getattr(session, name) for name in names} == kept
    assert session.trial.examples.digest == digest and session.trial.off == OFF
    assert lost not in losses(session, measured.commands.working, True)
    measured.commands.sessions.open_together({"model": str(models / "beech")}, "inspect")
    turn(0.2)
    until(lambda: quiet(measured))
    measured.commands.sessions.open_together({"model": str(models / "amaryllis")}, "inspect")
    turn(0.2)
    until(lambda: quiet(measured) and session.trial is not None and session.trial.done)
    assert {name: getattr(session, name) for name in ("study", "masks", "data", "off")} == {
        name: kept[name] for name in ("study", "masks", "data", "off")
    }


def _as_before(program, *names):
    """Whatever is on screen says what it said."""
    now = drawn(program)
    for name, value in program.seen.items():
        if name in now and (not names or name.endswith(names)):
            assert now[name] == value, name


def test_undo_brings_back_no_heads_of_another_model(measured, models, until):
    opens(measured, models / "beech", until)
    session = measured.session
    assert session.off == frozenset() and not session.masks and not session.history.past
    assert session.other is None or session.other.kind not in ("off", "head")


def test_a_model_without_tokenizer_says_so_and_offers_a_file_of_ids(measured, models, until):
    opens(measured, models / "beech", until)
    measured.session.put(mode="inspect", look="map")
    turn(0.2)
    view = measured.inspect.map
    assert not view.drawn and "reads no text" in words(view)
    assert any(one.property("action") == "ids" for one in view.findChildren(QAbstractButton))


def test_what_was_asked_of_another_model_is_dropped_when_it_comes(measured, models, until):
    """Jobs that run while a capture of another model is opened."""
    from threading import Event

    from hgviz.core import Step

    session, working, go, came = measured.session, measured.commands.working, Event(), []

    def slow():
        yield Step(0, 1)
        go.wait(20)
        return "of A"

    working.start(measured.lanes.engine, "asked-of-a", "Slow", slow(), came.append, bound=True)
    working.start(measured.lanes.facts, "of-no-model", "Slow", slow(), came.append)
    measured.commands.open_path(str(models / "cypress.h5"))
    until(lambda: session.capture is not None and session.capture.path.endswith("cypress.h5"))
    go.set()
    until(lambda: quiet(measured))
    turn(0.1)
    assert came == ["of A"]  # the one that is of no model
    assert session.model is None and session.checkpoint == ""
