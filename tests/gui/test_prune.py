"""The Prune page at work: a mask, its live score, what is measured and what changed."""

import errno
import math
import shlex
import time
from dataclasses import replace

import numpy as np
import pytest
import tqdm
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from hgviz import cli, tasks
from hgviz.analysis.importance import SliceScore, score_slices, slices_of
from hgviz.core import HeadId, MetricEstimate, Selection, progress
from hgviz.files import resource
from hgviz.gui import trials as gui_trials
from hgviz.gui.changes import MEASURES, slice_columns
from hgviz.gui.dialogs import LabelsDialog, PatchDialog
from hgviz.gui.removal import ProofDialog, RemoveDialog, change
from hgviz.models import checkpoints as own
from hgviz.models import pruning
from hgviz.session.document import SideB
from hgviz.study import Mask
from tests.gui.kinds import write_tiny
from tests.gui.screen import busy, error_dialogs, errors

OFF = frozenset({HeadId(0, 0), HeadId(2, 1)})


def settled(program, until):
    until(lambda: program.session.trial.done and program.session.trial.off == program.session.off)
    program.settle()


def open_classifier(program):
    """Open the bundled classifier, without a text."""
    path = str(resource("sample/softmax"))
    program.session.put(model=tasks.load(path, "cpu"), checkpoint=path)


def test_an_empty_page_offers_one_next_step_and_the_live_score_is_what_the_task_gives(
    pruning, tiny, story, until
):
    page, session, actions = pruning.prune, pruning.session, pruning.frame.actions_by_name
    assert actions[page.live.empty.actions[0][0]].isEnabled()
    assert not any(view.empty.actions for view in (page.curve, page.changed))
    pruning.commands.use_data(str(story))
    until(lambda: session.trial is not None and session.trial.done)
    pruning.settle()
    assert page.curve.empty.actions == (("measure_heads", "Measure…"),)
    assert page.changed.empty.actions == (("switch_head", "Switch this head off"),)
    heads = session.spec.heads
    for off in (*(frozenset(heads[:count]) for count in range(1, len(heads))), OFF):
        pruning.commands.pruning.switch(off)  # the newest mask wins
    settled(pruning, until)
    trial = session.trial
    assert trial.off == OFF
    trials = gui_trials.prepare(tiny, "", "cpu", str(story))
    found = tasks.try_heads(trials, OFF)
    assert (trial.scores, trial.slices) == (found.scores, found.slices) and len(trial.scores) > 2
    assert np.array_equal(trial.now.predictions, found.now.predictions)
    live, loss = page.live, found.losses[-1]
    assert live.value.text() == f"{loss.value:.3f}" and live.value.isEnabled()
    assert live.interval.text() == f"{loss.low:.3f} to {loss.high:.3f}"
    assert live.perplexity.text().startswith(f"perplexity {math.exp(loss.value):.4g} (")
    lost, won = found.slices[0].lost, found.slices[0].won
    assert f"{lost:,} newly wrong, {won:,} newly right" in live.lines["Changed"].full


def test_heads_are_measured_while_a_mask_is_scored(scored, until):
    commands, session = scored.commands, scored.session
    commands.pruning.measure(frozenset({"loss_change", "change"}))
    assert commands.pruning.measuring
    commands.pruning.switch(OFF)
    until(lambda: not commands.pruning.measuring and session.study and session.trial.done)
    scored.settle()
    assert session.score == "loo" and session.trial.off == OFF
    shades = scored.prune.heads.bar.shades
    assert len(shades.heads) == len(session.spec.heads) and "per byte" in shades.unit


def test_changed_predictions_are_listed_and_open_their_text(scored, until, switch_off):
    switch_off(scored.session.spec.heads[:6])
    view, trial = scored.prune.changed, scored.session.trial
    for kind, rows in (("lost", trial.slices[0].lost), ("won", trial.slices[0].won), ("all", 1)):
        view.which.choose(kind)
        scored.settle()
        assert len(view.table.rows) >= min(rows, 2000)
    session = scored.session
    view.table.selectRow(0)
    QTest.keyClick(view.table, Qt.Key.Key_Return)
    assert session.mode == "inspect"
    until(lambda: session.capture is not None and session.facts)
    off, text = session.off, session.capture.prompt.text
    assert text in trial.examples.rows[0].text and session.capture.off == off
    for heads in (frozenset(), off):
        scored.commands.run("before_after")
        assert session.capture.off == heads and session.off == off
        assert session.capture.prompt.text == text
        until(lambda: session.facts)


def test_bad_data_is_named_and_labels_that_the_model_does_not_know_are_assigned(
    program, until, tmp_path
):
    path = tmp_path / "few.tsv"
    open_classifier(program)
    path.write_text("sentence\tlabel\nfine\n", encoding="utf-8")
    program.commands.use_data(str(path))
    until(lambda: errors(program))
    assert "line 2" in errors(program)[0].what
    assert program.session.data == "" and program.session.trial is None
    error_dialogs(program)[0].reject()
    path.write_text("sentence\tlabel\n" + "A fine film.\tgood\nA dull film.\tbad\n" * 2, "utf-8")
    program.commands.use_data(str(path))
    until(lambda: program.frame.findChildren(LabelsDialog))
    (dialog,) = program.frame.findChildren(LabelsDialog)
    assert [*dialog.lists] == ["bad", "good"] and not dialog.default.isEnabled()
    for name, which in (("bad", "negative"), ("good", "positive")):
        dialog.lists[name].setCurrentText(which)
    dialog.default.click()
    until(lambda: program.session.trial is not None and program.session.trial.done)
    wanted = [row.wanted[0] for row in program.session.trial.examples.rows]
    assert [program.session.spec.labels[one] for one in wanted] == ["positive", "negative"] * 2
    path.write_text("sentence\tlabel\nA fine film.\t1\nA dull film.\t0\n", "utf-8")
    program.commands.pruning.labels.clear()
    program.commands.use_data(str(path))
    until(lambda: "class IDs" in program.prune.live.sample[2].full)


def test_heads_that_are_off_are_off_on_every_page(pruning, tiny, short_checkpoint, tmp_path, until):
    session, commands = pruning.session, pruning.commands
    head, text = HeadId(1, 0), "The bell rang, and the sand ran down."
    other = write_tiny(tmp_path / "other", seed=1)
    pruning.complete()
    session.put(text=text, mode="inspect")
    commands.run("capture")
    until(lambda: session.facts and not pruning.lanes.engine.jobs)
    session.put(mode="prune")
    commands.pruning.switch({head})
    assert not session.capture.off  # nobody looks at it
    session.put(mode="inspect")
    until(lambda: session.capture.off == {head} and session.facts)
    pruning.settle()
    assert "1 head off" in pruning.inspect.hourglass.head.note.full
    commands.comparing.choose(SideB("model", path=str(other)), None)
    until(lambda: session.capture_b is not None and session.capture_b.complete)
    pruning.settle()
    pruned = tasks.capture(tiny, tiny.tokenize(text), off={head})
    for one, off in ((HeadId(2, 1), False), (head, True)):
        session.put(selection=Selection(*one))
        pruning.settle()
        maps = pruning.compare.maps._opened.sources[2].map
        a, b = (side.maps[one.layer].read(one.head) for side in (pruned, session.capture_b))
        assert np.allclose(maps.read(one.head), -b if off else a - b, atol=1e-6)


# --- the list of masks ----------------------------------------------------------------------------

MORE = OFF | {HeadId(1, 0)}


def test_masks_come_back_and_go_by_a_key_and_lose_scores_with_other_data(
    scored, switch_off, until, tmp_path
):
    session, pruning = scored.session, scored.commands.pruning
    scored.commands.run("keep_mask")  # the whole model
    for off in (OFF, MORE):
        switch_off(off)
        scored.commands.run("keep_mask")
    scored.settle()
    table = scored.prune.heads.masks.list
    table.setFocus()
    table.selectRow(1)
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert session.off == OFF and table.hasFocus()
    QTest.keyClick(table, Qt.Key.Key_Delete)
    assert [one.name for one in session.masks] == ["Full model", "3 off"]
    first = session.masks[1].score
    other = tmp_path / "other.txt"
    other.write_text("Another text that is read here. " * 12, encoding="utf-8")
    before = pruning.trials
    pruning.use(str(other))
    until(lambda: pruning.trials is not None and pruning.trials is not before)
    assert [one.name for one in session.masks] == ["Full model", "3 off"] and session.undo
    assert session.masks[1].score is None
    pruning.switch(MORE)
    settled(scored, until)
    assert session.masks[1].score.total == session.trial.total != first.total


# --- undo -----------------------------------------------------------------------------------------

ONE, TWO = frozenset({HeadId(0, 0)}), frozenset({HeadId(0, 0), HeadId(1, 1)})


def test_masks_and_heads_are_taken_back_in_the_order_they_were_done(opened):
    pruning, session = opened.commands.pruning, opened.session
    pruning.switch(ONE)
    pruning.keep()
    pruning.switch(frozenset({HeadId(1, 1)}))
    pruning.switch(TWO, merged=True)  # the same stroke
    pruning.drop("1 off")
    seen = []
    for name in (*["undo"] * 4, *["redo"] * 4):
        opened.commands.run(name)
        seen.append((len(session.masks), len(session.off)))
    assert seen == [(1, 2), (1, 1), (0, 1), (0, 0), (0, 1), (1, 1), (1, 2), (0, 2)]
    assert not opened.frame.actions_by_name["redo"].isEnabled()
    score = MetricEstimate("accuracy", 0.5, 0.4, 0.6, 10, 10)
    session.put(masks=(Mask("a", ONE), Mask("b", TWO)))
    pruning.drop("b")
    session.put(masks=(Mask("a", ONE, score),))
    opened.commands.run("undo")  # with the score that is known by now
    assert session.masks == (Mask("a", ONE, score), Mask("b", TWO))


# --- patching -------------------------------------------------------------------------------------


def test_heads_are_patched_between_two_texts_and_colour_the_grid(program, until):
    session, heads = program.session, program.prune.heads
    open_classifier(program)
    program.commands.run("patch_heads")
    (dialog,) = program.frame.findChildren(PatchDialog)
    assert dialog.problem() == "Fill in all four fields."
    asked = "a good film", "a bad film", "positive", "negative"
    for field, text in zip(dialog.fields, asked, strict=True):
        field.setText(text)
    dialog.default.click()
    until(lambda: session.patching is not None)
    program.settle()
    model = session.model
    texts, answers = map(model.tokenize, asked[:2]), (1, 0)
    found = tasks.patching(model, *texts, *answers)
    np.testing.assert_array_equal(session.patching.denoised, found.denoised)
    rows = {row[0]: float(row[2]) for row in heads.as_table()[1:]}
    expected = {str(head): 100 * x for head, x in zip(found.heads, found.denoised, strict=True)}
    assert rows == pytest.approx(expected, rel=1e-4)
    assert heads.colour.currentData() == "denoised" and heads.figure(session) is None
    program.commands.run("patch_heads")  # asks again with what was asked last
    dialog = program.frame.findChildren(PatchDialog)[-1]
    dialog.fields[1].setText("a very bad film")
    dialog.default.click()
    until(lambda: errors(program))
    assert "the texts differ in length" in str(errors(program)) and session.patching is not None


# --- predictions that change, by class and slice --------------------------------------------------


RIGHT, LOSS = MEASURES["right"], MEASURES["loss"]


def part(name, change, by="label", n=200, more=0.1):
    """A slice whose change has an interval of 4 points."""
    ends = (change, change - 0.02, change + 0.02)
    losses = tuple((mean, mean - 0.1, mean + 0.1) for mean in (0.5, 0.5 + more))
    spread = (more, more - 0.05, more + 0.05)
    now = (0.8 + change, 0.7, 0.95)
    return SliceScore(by, name, n, 400, (0.8, 0.75, 0.85), now, 9, 5, ends, losses, spread)


PARTS = (part("", -0.05, "all", 600), part("no", -0.1, n=100), part("yes", 0.05, n=300),
         part("so", 0.0, n=0))  # fmt: skip


def numbers(cells):
    return [float(cell) for cell in cells]


def test_panes_give_tables_and_the_slider_of_the_curve_is_the_mask_over_any_axis(
    traced, switch_off, until
):
    switch_off(traced.session.study.curves[0].off(2))
    page, session = traced.prune, traced.session
    names, *rows = page.heads.as_table()
    assert {HeadId(*map(int, row[0].split("."))) for row in rows if row[1] == "1"} == session.off
    first = page.heads.bar.shades.heads[session.spec.heads[0]]
    assert numbers(rows[0][2:5]) == pytest.approx((first.value, first.low, first.high), rel=1e-5)

    trial = session.trial
    names, *rows = page.live.as_table()
    grown = [[one.seen, one.value, one.low, one.high] for one in trial.losses]
    assert [*map(numbers, rows[: len(grown)])] == grown
    totals = {row[0]: row[1:] for row in rows[len(grown) :]}
    assert numbers(totals["difference"]) == list(trial.slices[0].loss_change)

    curve, band = page.curve.line.curve, page.curve.line.band
    names, *rows = page.curve.as_table()
    assert len(rows) == len(curve.removed) + len(band.removed)
    assert [int(row[1]) for row in rows[: len(curve.removed)]] == curve.removed.tolist()
    assert float(rows[1][3]) == pytest.approx(float(curve.values[1]), rel=1e-5)

    view = page.curve
    switch_off(())
    chart, order = view.chart, session.study.curves[0].order
    assert chart.chart.slider.at == 0
    QTest.keyClick(chart, Qt.Key.Key_Right)
    QTest.keyClick(chart, Qt.Key.Key_Right)
    assert session.off == frozenset(order[:2]) and chart.chart.slider.at == 2
    traced.commands.pruning.switch(frozenset(order[-1:]))
    assert chart.chart.slider.at is None  # another mask than any on the curve
    traced.commands.pruning.switch(frozenset())

    time = view.axis._group.button(view.axis.names.index("time"))
    assert not time.isEnabled() and "--time" in time.toolTip()
    one, *others = session.study.curves
    ends = np.arange(len(one.removed), dtype=np.float32)
    one = replace(one, times=np.stack([9 + 0 * ends, 9 - ends / len(ends)], axis=1))
    session.put(study=replace(session.study, curves=(one, *others)))
    traced.settle()
    view.axis.choose("time")
    traced.settle()
    assert np.array_equal(view.line.x, one.times[:, 1]) and view.line.band.orders == 0
    across = chart.chart.plots[0].x
    assert across.low < view.line.x.min() and view.line.x.max() < across.high
    QTest.keyClick(chart, Qt.Key.Key_Right)
    assert session.off == one.off(1) and chart.chart.slider.at == 1
    for axis in ("parameters", "flops"):
        view.axis.choose(axis)
        traced.settle()
        assert view.line.band.orders == 20 and view.line.each[-1] == pytest.approx(1.0)
    settled(traced, until)


def test_a_change_is_better_worse_or_not_significant():
    words = [RIGHT.verdict(one) for one in PARTS]
    assert words == ["worse", "worse", "better", "not significant"]
    assert LOSS.verdict(PARTS[0]) == "worse"
    assert LOSS.ends(PARTS[0])[0] == pytest.approx(0.1 / np.log(2))
    titles, *rows = (
        [column.words(one) for column in slice_columns(PARTS, RIGHT, "text", "1 head off")]
        for one in PARTS
    )
    assert titles[3:] == ["80.0 %", "75.0 %", "−5.00", "−7.00 to −3.00", "worse"]
    assert rows[0][5:7] == ["−10.00", "−12.00 to −8.00"] and rows[2][3:7] == ["–"] * 4
    assert [RIGHT.signed(value) for value in (0.0, -1.2, 0.001)] == ["0", "−1.20", "+<0.01"]


def test_slices_grow_with_the_score_and_are_copied(scored, until):
    page, seen = scored.prune, []
    page.show_table("slices")
    scored.commands.pruning.switch(frozenset({HeadId(0, 0), HeadId(2, 1)}))
    table = page.slices.table

    def is_done():
        seen.extend(row.n for row in table.rows[:1])
        return scored.session.trial.done

    until(lambda: scored.session.trial.scores)
    until(is_done)
    scored.settle()
    trial = scored.session.trial
    assert seen == sorted(seen) and table.rows[0].n == trial.total
    which = slices_of(trial.examples)
    assert tuple(table.rows) == score_slices(trial.examples, trial.before, trial.now, which)
    page.slices.copy()
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert len(lines) == len(which) + 1 and lines[1][2] == f"{trial.total:,}"


def test_undo_has_the_same_heads_off_with_another_activation_but_not_another_model(opened, capture):
    session = opened.session
    for path, undo in (("one", "opening another model"), ("two", "")):
        session.put(checkpoint="one", capture=capture)
        opened.commands.pruning.switch(ONE)
        other = replace(capture.spec, digest=f"another {path}")
        session.put(model=None, capture=None, spec=other, checkpoint=path)
        assert session.off == frozenset() and session.undo == undo
        opened.commands.run("undo")
        assert session.off == (ONE if undo else frozenset())


# --- heads removed for good -----------------------------------------------------------------------


GONE = frozenset({HeadId(0, 0), HeadId(2, 0), HeadId(2, 1)})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Timing as short as can be."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)  # a thread that watches bars


@pytest.fixture
def ask(scored, tmp_path, switch_off):
    """Ask how to prune three heads into tmp_path / "out"; gives the dialog."""
    switch_off(GONE)

    def open_dialog():
        scored.prune.live.remove.click()
        dialog = shown_dialog(scored, RemoveDialog)
        dialog.folder.setText(str(tmp_path / "out"))
        QApplication.processEvents()
        return dialog

    return open_dialog


def shown_dialog(program, kind):
    """The dialog of a kind that is open, or None."""
    return next((one for one in program.frame.findChildren(kind) if one.isVisible()), None)


def words_of(dialog):
    """All that a dialog says."""
    return "\n".join(
        getattr(one, "full", "") or one.text()
        for one in dialog.findChildren(QLabel)
        if one.isVisible()
    )


@pytest.fixture
def pruned(scored, until):
    """Wait for what comes of a removal: the proof, or the question again."""

    def wait(kind=ProofDialog):
        until(lambda: shown_dialog(scored, kind) is not None)
        return shown_dialog(scored, kind)

    return wait


def test_the_dialog_says_what_goes_and_return_shows_the_proof_of_the_task(
    ask, scored, short_checkpoint, story, tmp_path, pruned, until
):
    asking = ask()
    assert asking.title.text() == "Prune 3 of 10 heads"
    assert "Layer 2 has no heads left and only adds its bias." in words_of(asking)
    assert "story.txt" in words_of(asking)
    asking.forms["smaller"].setFocus()
    for key, form in ((Qt.Key.Key_Down, "zeroed"), (Qt.Key.Key_Up, "smaller")):
        QTest.keyClick(asking.forms[asking.removal.form], key)
        assert asking.removal.form == form
    QTest.keyClick(asking.folder, Qt.Key.Key_Return)
    scored.commands.run("remove_heads")
    assert "already" in scored.frame.chosen_words.full
    proof = pruned()
    again = tasks.prune(short_checkpoint, GONE, tmp_path / "again", data=story)
    words = words_of(proof)
    assert proof.title.text() == "Pruned 3 heads"
    for before, after in (again.parameters, again.size):
        assert f"{before:,}" in words and f"{after:,}" in words and change(before, after) in words
    assert "Batch size 1\n" in words and "Batch size 16\n" in words and "×" in words
    assert "logits" in words and "texts from story.txt" in words
    assert str(tmp_path / "out") in words
    QTest.keyClick(proof, Qt.Key.Key_Return)
    session = scored.session
    until(lambda: session.checkpoint == str(tmp_path / "out") and not busy(scored))
    assert len(session.spec.heads) == 7 and not session.off
    assert session.capture.spec.digest == session.model.spec.digest
    assert str(tmp_path / "out") in scored.commands.recent.names


def test_the_copied_command_writes_the_same_weights(ask, tmp_path, pruned, capfd):
    asking = ask()
    asking.forms["zeroed"].setChecked(True)
    asking.compensate.setCurrentIndex(asking.compensate.findData("lsq"))
    asking.copy.click()
    assert asking.copy.text() == "Copied"
    words = shlex.split(QGuiApplication.clipboard().text())
    assert words[:2] == ["hgviz", "prune"]
    asking.default.click()
    assert pruned().default.text() == "Open the zeroed model"
    words[-1] = str(tmp_path / "by command")
    assert cli.main(words[1:], cli.Window(None, None)) == 0, capfd.readouterr().err
    weights = [tmp_path / one / "model.safetensors" for one in ("out", "by command")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_stop_leaves_no_folder_and_a_pruned_model_is_compared_with_its_source(
    ask, scored, short_checkpoint, tmp_path, pruned, until
):
    def endless(*given):
        while True:
            time.sleep(0.01)
            progress(0, 1, "comparing logits")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "largest_difference", endless)
        ask().default.click()
        until(lambda: any(tmp_path.iterdir()))  # the folder without its name
        scored.commands.drop("remove-heads")
        until(lambda: not busy(scored) and scored.frame.chosen_words.full.startswith("Stopped"))
    assert scored.frame.chosen_words.full == "Stopped: nothing was written"
    assert not list(tmp_path.iterdir())
    ask().default.click()
    buttons = pruned().findChildren(QPushButton)
    next(one for one in buttons if one.text() == "Compare with the original").click()
    session = scored.session
    until(lambda: session.capture_b is not None and not busy(scored))
    assert session.mode == "compare" and not session.off and not session.capture.off
    assert session.checkpoint == str(short_checkpoint)
    assert session.comparison.path == str(tmp_path / "out")
    assert len(session.capture_b.spec.heads) == 7


def _taken(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()


def _full(tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(own, "write_atomic", refuse)


def _other(tmp_path, monkeypatch):
    real = pruning.remove_heads
    more = {HeadId(1, 0)}
    monkeypatch.setattr(pruning, "remove_heads", lambda found, off: real(found, off | more))


def test_an_error_is_one_line_in_the_dialog_which_asks_again(ask, tmp_path, pruned):
    again = ask()
    for number, (spoil, says) in enumerate((
        (_taken, "is not empty"),
        (_full, "no space left on device"),
        (_other, "differ from the masked model"),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        again.folder.setText(str(folder / "out"))
        assert again.wrong.isHidden(), says
        with pytest.MonkeyPatch.context() as spoiled:
            spoil(folder, spoiled)
            before = sorted(one.name for one in folder.rglob("*"))
            again.default.click()
            again = pruned(RemoveDialog)
        assert says in again.wrong.text().lower() and "\n" not in again.wrong.text()
        assert "Traceback" not in again.wrong.text() and again.first is again.folder
        assert sorted(one.name for one in folder.rglob("*")) == before
    again.folder.setText(str(tmp_path / "elsewhere"))
    assert again.wrong.isHidden()
    again.default.click()
    assert pruned().title.text() == "Pruned 3 heads"
