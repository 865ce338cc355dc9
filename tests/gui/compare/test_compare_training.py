"""B trained for a while from the window: asked, watched, left, stopped, compared."""

from types import SimpleNamespace

import pytest
from PySide6.QtWidgets import QWidget

from hgviz import tasks
from hgviz.core import HgvizError, Step, finish
from hgviz.gui.bridge import Lanes
from hgviz.gui.compare.growth import Growth, scored
from hgviz.gui.compare.training import TrainDialog
from hgviz.gui.compare.tuning import TUNE, Tuning
from hgviz.gui.plots import Line, Mark, Points
from hgviz.gui.working import Working
from hgviz.models import open_model
from hgviz.session import Session


@pytest.fixture(scope="module")
def model(checkpoint):
    """The tiny checkpoint, open."""
    return open_model(checkpoint)


@pytest.fixture
def bench(app, model, checkpoint, tmp_path):
    """A session with a capture, what trains B, and a text to learn from."""
    session, lanes, errors, compared = Session(), Lanes(), [], []
    prompt = model.tokenize("The hourglass was used at sea.")
    session.put(model=model, checkpoint=str(checkpoint), mode="compare")
    session.put(capture=finish(tasks.capture(model, prompt)))
    over = QWidget()
    over.resize(1000, 800)
    over.show()
    working = Working(session, lanes, errors.append)
    tuning = Tuning(over, session, lanes, working, compared.append)
    text = tmp_path / "text.txt"
    text.write_text("The hourglass was used at sea.\n" * 200, "utf-8")
    yield SimpleNamespace(
        session=session, lanes=lanes, tuning=tuning, compared=compared, text=text,
        out=tmp_path / "trained", working=working,
    )  # fmt: skip
    if tuning.dialog is not None:
        tuning.dialog.running = False
        tuning.dialog.finish()
    lanes.close()
    over.close()
    over.deleteLater()


def asked(bench, steps=3):
    """The dialog, filled in."""
    bench.tuning.ask()
    dialog = bench.tuning.dialog
    dialog.data.setText(str(bench.text))
    dialog.out.setText(str(bench.out))
    dialog.span._group.button(1).click()
    dialog.steps.setValue(steps)
    return dialog


def test_b_learns_and_stands_beside_a(bench, until):
    dialog = asked(bench)
    assert dialog.activation.currentData() == "ymish" and dialog.wish.steps == 3
    dialog.go.click()
    assert bench.session.at_work and not dialog.form.isEnabled()
    until(lambda: not bench.tuning.running)
    assert open_model(bench.out).spec.layers[0].activations[0] == "ymish"
    assert dialog.growth.whole is not None and [p[0] for p in dialog.growth.points] == [0, 3]
    assert "after 3 steps" in dialog.told.text() and "for A" in dialog.told.text()
    assert dialog.beside.isVisible() and not dialog.go.isVisible()
    dialog.beside.click()
    assert bench.compared == [str(bench.out)] and bench.tuning.dialog is None


def test_stop_keeps_what_is_learnt_and_a_dialog_that_was_left_comes_back(bench, until):
    dialog = asked(bench, steps=1_000_000)
    dialog.go.click()
    until(lambda: bench.tuning._begun)
    dialog.away.click()
    assert not dialog.isVisible() and bench.tuning.running
    bench.tuning.ask()
    assert dialog.isVisible() and bench.tuning.dialog is dialog
    dialog.away.click()
    bench.tuning.stop()
    until(lambda: not bench.tuning.running)
    assert dialog.isVisible() and (bench.out / "model.safetensors").exists()
    assert "It is kept in" in dialog.told.text()


def test_what_has_not_begun_is_given_up_and_leaves_nothing(bench, until):
    dialog = asked(bench)
    dialog.go.click()
    dialog.halt.click()
    assert "nothing was kept" in dialog.told.text() and dialog.go.isVisible()
    until(lambda: not bench.lanes.engine.jobs)
    bench.lanes.engine.shutdown()
    assert not bench.out.exists()


@pytest.mark.parametrize(("data", "wrong"), [(None, "cannot be read"), ("short", "too short")])
def test_what_cannot_be_learnt_from_is_said_under_the_choices(bench, until, data, wrong):
    bench.text.unlink() if data is None else bench.text.write_text(data, "utf-8")
    dialog = asked(bench)
    dialog.go.click()
    until(lambda: not bench.tuning.running)
    words = dialog.told.text()
    assert dialog.go.isVisible() and dialog.told.property("kind") == "bad"
    assert wrong in words or "no file" in words or "no such" in words.lower()
    assert not bench.out.exists()


def test_without_data_or_a_folder_there_is_nothing_to_start(bench):
    dialog = asked(bench)
    dialog.data.setText("  ")
    assert not dialog.go.isEnabled()
    dialog.data.setText("x")
    dialog.out.setText("")
    assert not dialog.go.isEnabled()
    dialog._put_in("/somewhere")
    assert dialog.out.text() == "/somewhere/trained" and dialog.go.isEnabled()


def test_the_job_is_listed_with_what_stop_keeps(bench, until):
    dialog = asked(bench, steps=1_000_000)
    dialog.go.click()
    work = next(one for one in bench.session.work if one.key == TUNE)
    assert work.keeps == "keeps what is learnt"
    until(lambda: bench.tuning._begun)
    bench.tuning.stop()
    until(lambda: not bench.tuning.running)


def test_the_chart_has_both_scores():
    growth = Growth("A softmax", "B ymish", 1000)
    assert growth.chart().plots == ()
    before = {"original": {"accuracy": 0.965}, "exchanged": {"accuracy": 0.61}}
    for step in range(1, 81):
        value = float("nan") if step < 20 else 0.6 + 0.1 * (step // 20)
        growth.add("accuracy", before, step, value)
    assert growth.points == [(0, 0.61), (20, 0.7), (40, 0.8), (60, 0.6 + 0.1 * 3), (80, 1.0)]
    chart = growth.chart()
    assert chart.words == "A softmax 96.5 %; B ymish 61.0 % before, 100.0 % after 80 steps"
    (plot,) = chart.plots
    (line,), (whole,) = plot.of(Line), plot.of(Mark)
    assert list(zip(line.x, line.y, strict=True)) == growth.points and whole.value == 0.965
    assert plot.x.high >= 80 and plot.y.low < 0.61 and plot.y.high == 1.0
    assert plot.of(Points)[0].told(1) == "B ymish: 70.0 % after 20 steps"
    growth = Growth()
    growth.add("bits_per_byte", {"original": {"bits_per_byte": 2.5}}, 4, 2.4)
    assert growth.words.endswith("2.400 bits per byte after 4 steps") and growth.whole == 2.5
    assert scored("accuracy", 0.5) == "50.0 %"


def test_a_step_of_another_kind_is_only_said(bench):
    dialog = asked(bench)
    assert isinstance(dialog, TrainDialog)
    dialog.show_step(Step(0, 1, "loading torch"))
    assert dialog.told.text() == "Loading torch"
    dialog.show_error(HgvizError("it failed", "for a reason", "try again"))
    assert dialog.told.text() == "it failed. For a reason. Try again."
    assert dialog.chart.isHidden()  # nothing was measured
