"""The tab Attention rollout: one map and bars; what is chosen, pointed at, missing."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from hgviz import tasks
from hgviz.analysis.composition import rollout
from hgviz.core import HeadId, RolloutOptions, Selection
from hgviz.gui import sentences
from hgviz.gui.across import AcrossView, ReachDialog
from hgviz.gui.export import ExportDialog
from tests.analysis.planting import hourglass, letters, plant, translated
from tests.gui import screen
from tests.models.building import write_unattending

TEXT = "The hourglass was used at sea. When the sand had run down, the bell was rung."


@pytest.fixture
def shown(app):
    """Draw a view of a capture, off screen: (view, session)."""
    with ExitStack() as views:

        def show(capture, **fields):
            return views.enter_context(
                screen.shown(AcrossView, (760, 640), capture=capture, **fields)
            )

        yield show


def small(**kind):
    return hourglass(letters(TEXT[:22]), (1, 2, 6), **kind)


def test_the_map_is_the_rollout_and_the_bars_are_its_row(shown):
    capture = small()
    view, _ = shown(capture, selection=Selection(0, 0, 15))
    wanted = rollout(capture)
    opened = view._across.opened
    np.testing.assert_allclose(opened.sources[0].map.read(0), wanted, atol=1e-7)
    *bands, points = view.bars.chart.plots[0].parts
    np.testing.assert_allclose(points.y, wanted[15], atol=1e-7)
    np.testing.assert_allclose(bands[-1].high[1::4], wanted[15], atol=1e-7)  # they are stacked
    assert "Top sources of the output" in view.canvas.sentence.text()
    outer, inner = view._across.row.level_shares.sum(axis=1)[:, 0]
    shares = {"stayed at 1:1": 1 - outer, "went to 1:2": outer - inner, "went to 1:6": inner}
    for way, share in shares.items():
        assert f"{sentences.share(round(share, 6))} {way}, from" in view.canvas.sentence.text()
    parts = np.stack(view._across.row.parts)
    np.testing.assert_allclose(parts.sum(0), wanted[15], atol=1e-7)
    assert "via 1:6" in points.words(3)
    assert view.canvas.panes[0].cross.row == 15


def test_the_bars_are_copied_as_a_table_and_left_out_of_a_small_pane(shown):
    view, session = shown(small(), selection=Selection(0, 0, 15, 8))
    assert view.bars.chosen == 8 and view.bars.isVisibleTo(view)
    view.bars.picked.emit(9)
    view._follow()
    assert session.selection.key == view.bars.chosen == 9
    titles, *rows = view.as_table()
    found = [float(row[titles.index("Rollout")]) for row in rows]
    assert found == pytest.approx(view._across.row.weights[0])
    view.resize(500, 300)
    view._fit_parts()
    assert not view.bars.isVisibleTo(view)


def test_choices_make_another_map_and_are_what_a_figure_draws(shown):
    capture = small()
    view, session = shown(capture, selection=Selection(0, 1, 15))
    for box, index, recipe in (
        (view.fuse, 1, RolloutOptions(fuse="max")),
        (view.fuse, 2, RolloutOptions(fuse="min")),
        (view.fuse, 3, RolloutOptions(heads=(HeadId(0, 1),))),
        (view.residual, 5, RolloutOptions(residual=0.9, heads=(HeadId(0, 1),))),
    ):
        box.setCurrentIndex(index)
        view.settle()
        found = view._across.opened.sources[0].map.read(0)
        np.testing.assert_allclose(found, rollout(capture, options=recipe), atol=1e-7)
        assert view.figure(session).recipe == recipe


def test_the_signed_product_is_signed_and_leaves_out_what_does_not_go_with_it(shown):
    random = np.random.default_rng(0)
    capture = plant(letters(TEXT[:9]), [random.normal(size=(2, 9, 9))], causal=False, signed=True)
    view, _ = shown(capture, selection=Selection(0, 0, 4, 2))
    for is_signed in (True, False):
        view.signed.setChecked(is_signed)
        view.settle()
        assert view._across.opened.sources[0].signed == is_signed
        assert view.residual.isEnabled() != is_signed
        assert ("(product of all layers)" in view.canvas.sentence.text()) == is_signed


def test_a_click_chooses_answer_and_token_and_the_arrows_move_them(shown):
    view, session = shown(small(), selection=Selection(0, 0, 15))
    view.canvas.clicked.emit(12, 3)
    assert (session.selection.query, session.selection.key) == (12, 3)
    view.settle()
    assert "9 tokens back" in view.canvas.sentence.text()
    QTest.keyClick(view.canvas, Qt.Key.Key_Down)
    assert session.selection.query == 13
    QTest.keyClick(view.canvas, Qt.Key.Key_Escape)
    assert session.selection.key is None
    view.canvas.pointed.emit((8, 2))
    assert (session.hover.query, session.hover.key) == (8, 2)
    view.canvas.pointed.emit(None)
    assert session.hover is None


def test_a_decoder_has_the_source_first_and_says_its_share(shown):
    capture = translated(letters(TEXT[:7]), letters(TEXT[:5]))
    layer = next(one.index for one in capture.spec.layers if one.role == "cross")
    view, session = shown(capture, selection=Selection(layer, 0, 3))
    assert view._across.opened.sources[0].shape == (5, 12)
    assert "comes from the source" in view.canvas.sentence.text()
    view.canvas.clicked.emit(2, 4)  # a token of the source
    assert (session.selection.query, session.selection.key) == (2, 4)
    view.canvas.clicked.emit(2, 9)  # of the target, which this layer has no key for
    assert (session.selection.query, session.selection.key) == (2, None)
    session.put(selection=Selection(0, 0, 6, 1))  # in the encoder: the last answer is shown
    view.settle()
    assert view._across.query == 4
    view.canvas.clicked.emit(2, 2)
    assert session.selection.query == 6


def test_what_cannot_be_composed_is_said_in_the_pane(shown):
    capture = small()
    partial = replace(capture, maps=(*capture.maps[:-1], None))
    view, _ = shown(partial)
    words = [label.text() for label in view._notice.findChildren(QLabel)]
    assert any("rollout needs every layer" in one for one in words)
    empty, _ = shown(None)
    assert empty._notice.said[0][0] == "No attention rollout yet"


# --- reach ----------------------------------------------------------------------------------------


def measured_reach(program, until, *paths, text="The bell was rung."):
    """Ask for the reach of the model at hand and of other checkpoints; the dialog that follows."""
    program.commands.run("measure_reach")
    (dialog,) = program.frame.findChildren(ReachDialog)
    for path in paths:
        dialog.add(str(path))
    dialog.text.setText(text)
    dialog.default.click()

    def dialogs():
        found = program.frame.findChildren(ReachDialog) + program.frame.findChildren(ExportDialog)
        return [one for one in found if one is not dialog and one.isVisible()]

    until(lambda: not screen.busy(program) and dialogs())
    return dialogs()[0]


def test_the_reach_of_models_with_and_without_attention_is_that_of_the_command(
    with_model, tmp_path, until
):
    write_unattending(tmp_path, family="lstm", vocab_size=256)
    shown = measured_reach(with_model, until, tmp_path / "config.json")
    assert isinstance(shown, ExportDialog)
    until(lambda: shown.preview.picture is not None)
    figure = shown.choices.offer.of
    for path, reach in zip(figure.request.models, figure.reaches, strict=True):
        model = tasks.load(path, "cpu", dtype="float64")
        wanted = tasks.reach(model, model.tokenize("The bell was rung."))
        np.testing.assert_array_equal(reach.own, wanted.own)
    command = figure.command(shown.choices.spec, "reach.pdf")
    assert command == (
        f"hgviz reach {with_model.session.checkpoint} {tmp_path} "
        "--text 'The bell was rung.' -o reach.pdf"
    )
    shown.reject()


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [("nothing", "A text.", "nothing"), ("", "a" * 1025, "1,025 tokens")],
)
def test_what_cannot_be_measured_comes_back_with_its_reason(
    with_model, tmp_path, until, path, text, words
):
    added = [tmp_path / path] if path else []
    again = measured_reach(with_model, until, *added, text=text)
    assert isinstance(again, ReachDialog)
    assert words in again.wrong.text() and again.text.text() == text
    again.text.setText("Another text.")
    assert not again.wrong.text()
    again.reject()


def test_reach_needs_a_model_and_a_text(program):
    program.commands.run("measure_reach")
    (dialog,) = program.frame.findChildren(ReachDialog)
    assert "checkpoint" in dialog.wrong.text() and not dialog.default.isEnabled()
    dialog.add("a.safetensors")
    dialog.text.clear()
    assert "text" in dialog.wrong.text()
    dialog._remove(0)
    assert not dialog.models
    dialog.reject()
