"""A Byte Latent Transformer in the window: bytes, patches and bytes as an hourglass."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hgviz import tasks
from hgviz.core import HeadId, Selection, finish
from hgviz.gui.follow import Wish, follow
from hgviz.gui.grid import rule_of
from hgviz.gui.hourglass import HourglassView
from hgviz.gui.jobs import GOING
from hgviz.gui.layouts import Room, arrange, stages, visits
from hgviz.gui.view import VIEWS
from hgviz.gui.view import view as view_of
from hgviz.models import open_model
from tests.gui.showing import shown
from tests.models import patches as blt

TEXT = "The river broke its banks."


def busy(program):
    return any(one.state in GOING for one in program.session.work)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(mode, text) -> a capture."""

    @cache
    def find(mode="two parts", text=TEXT):
        folder = blt.write(
            tmp_path_factory.mktemp("blt") / "m", "BltForCausalLM", **blt.MODES[mode]
        )
        model = open_model(folder)
        return finish(tasks.capture(model, model.tokenize(text)))

    return find


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("mode, text, layer", [
    ("two parts", TEXT, 4), ("two parts", TEXT, 7), ("one part", TEXT, 5), ("two parts", "a", 9),
    ("no patcher", TEXT, 2), ("all layers look down", TEXT, 3),
])  # fmt: skip
def test_views_show_it(qtbot, made, kind, mode, text, layer):
    capture = made(mode, text)
    chosen = Selection(layer, 1, len(text) - 1)
    with shown(view_of(kind), (900, 700), capture=capture, selection=chosen) as (view, _):
        assert not view.grab().toImage().isNull()


def test_every_layer_has_a_row_from_bytes_to_patches_and_back(qtbot, made):
    capture = made()
    assert [(one.level, len(one.rows)) for one in visits(capture.spec)] == [
        (0, 4), (1, 0), (2, 2), (0, 3),
    ]  # fmt: skip
    layout = arrange(capture.spec, [len(one) for one in capture.spans], Room(900, 700))
    assert [one.layer for one in layout.rows] == list(range(11))
    again = layout.row(9)  # a map from bytes to patches, in the middle of a stay at bytes
    assert again.kind == "full" and again.cells[0][1].width < again.cells[0][1].height
    with shown(HourglassView, (900, 700), capture=capture) as (view, _):
        assert "grows back" in view.head.note.text()


def test_a_letter_is_followed_past_what_cuts_the_text(made):
    capture = made()
    way = stages(capture.spec)
    assert [(one.level, one.layers) for one in way] == [(0, (2, 3)), (2, (5, 6)), (0, (8, 10))]
    last = len(capture.prompt) - 1
    told = finish(follow(capture, way, last, Wish(Selection(5, 0, last), {}, {}), str))
    closed = int(capture.spans[2][-1, 1])
    assert ("in no segment yet" in told.chips[0]) is (closed <= last)
    assert "takes most from" in told.chips[1]


@pytest.mark.parametrize("mode", ["one part", "two parts"])
def test_no_cell_of_a_map_between_levels_counts_as_unseen_that_has_weight(made, mode):
    capture = made(mode)
    for layer in capture.spec.layers:
        one, rule = capture.maps[layer.index], rule_of(capture, HeadId(layer.index, 0))
        seen = (
            np.tril(np.ones(one.shape[1:], bool)) if rule.causal else np.ones(one.shape[1:], bool)
        )
        assert not one.read(0)[~seen].any(), layer.name
