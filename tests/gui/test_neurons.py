"""The look Neurons: what its columns say, how it follows, what it copies, what it cannot show."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz.core import Selection
from hgviz.gui.neurons import NeuronView
from hgviz.maps import DenseMap
from tests.gui.screen import picture, shown
from tests.making import make_capture, stranger


def rows_of(view):
    text = view.as_text()
    return list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("kind", [{}, {"signed": True}, {"relative": True}, {"windowed": True}])
@pytest.mark.parametrize("layer", [0, 2, 8])  # of a level, down, up
def test_the_weights_are_those_of_the_map(app, kind, layer):
    capture = make_capture(**kind)
    with shown(NeuronView, capture=capture, selection=Selection(layer, 1, 61, 20)) as (view, _):
        row = capture.row(layer, 61)
        wanted = capture.maps[layer].read(1, (row, row + 1))[0]
        one = view.found.anatomy
        largest = np.nanmax(np.abs(one.stage("score")), initial=1.0)
        # tiles and statistics are float32: a score of 8 is itself off by some 1e-6 there
        assert np.abs(one.weights - wanted).max() <= 1e-6 * max(1.0, largest / 4)
        assert view.keys.rows == list(range(len(wanted)))


def test_the_sentence_says_every_number_on_the_way(app, capture):
    with shown(NeuronView, capture=capture, selection=Selection(0, 1, 30, 30)) as (view, _):
        one = view.found.anatomy
        said = view.sentence.text()
        for kind in ("product", "score", "exponent", "weight"):
            assert f"{one.stage(kind)[30]:.3f}".replace("-", "−") in said
        assert "32 products of q and k" in said
        hidden = view.found.sentence(31)
        assert "this key is masked" in hidden and hidden.endswith(": weight 0.")


def test_a_key_is_chosen_by_mouse_and_keyboard_in_either_order(app, capture):
    with shown(NeuronView, capture=capture, selection=Selection(0, 1, 30)) as (view, session):
        QTest.mouseClick(view.order._group.button(1), Qt.MouseButton.LeftButton)
        order = np.argsort(-np.abs(view.found.anatomy.weights), kind="stable").tolist()
        assert view.keys.rows == order and view.keys.chosen == order[0]
        view.keys.scrollToTop()
        place = view.keys.visualRect(view.keys.order.index(4, 0)).center()
        QTest.mouseClick(view.keys.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert session.selection.key == order[4]
        view.keys.setFocus()
        QTest.keyClick(view.keys, Qt.Key.Key_Down)
        assert (session.selection.query, session.selection.key) == (30, order[5])
        view.keys.pointed.emit(7)
        assert session.hover == Selection(0, 1, 30, 7)
        view.keys.pointed.emit(None)
        assert session.hover is None


def test_every_number_is_copied_in_full(app, capture):
    with shown(NeuronView, capture=capture, selection=Selection(0, 1, 30, 4)) as (view, _):
        titles, *rows = rows_of(view)
        assert [titles, *rows] == view.as_table() and {*map(len, rows)} == {len(titles)}
        one = view.found.anatomy
        weights = [float(row[titles.index("Weight")]) for row in rows]
        assert np.array_equal(weights, one.weights)
        products = np.array([row[titles.index("q·k 0") :] for row in rows], float)
        assert np.allclose(products.sum(1), one.stage("product"), rtol=0, atol=1e-12)
        assert rows[31][titles.index("Masked score")] == ""


def test_a_stranger_s_text_does_not_break_the_table(app):
    capture = stranger(make_capture(text="short text"), size=4000)
    with shown(NeuronView, capture=capture, selection=Selection(0, 1, 4, 4)) as (view, _):
        assert len({len(row) for row in rows_of(view)}) == 1 and picture(view).shape[1] == 704


def test_a_view_without_its_data_says_what_is_missing(app, capture):
    weights = np.zeros((6, 20, 20), np.float32)
    dense = replace(capture, maps=(DenseMap(weights, tuple(range(6))), *capture.maps[1:]))
    with shown(NeuronView, capture=dense, selection=Selection(0, 0, 3)) as (view, session):
        assert view.empty[0] == "This capture has weights only"
        session.put(selection=Selection(1, 0, None))
        view.settle()
        assert view.empty[0] == "No query chosen"
        session.put(capture=replace(capture, maps=(*capture.maps[:1], None, *capture.maps[2:])))
        view.settle()
        assert "not captured yet" in view.empty[0]
    with shown(NeuronView) as (view, _):
        assert view.empty.actions[0][0] == "capture"
