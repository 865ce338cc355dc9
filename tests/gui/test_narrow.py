"""Words where there is little room: none over another, none cut to nothing."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetricsF, QImage, QPainter

from hgviz.core import HeadId, Selection
from hgviz.gui import follow as trail
from hgviz.gui import textrows, theme
from hgviz.gui.follow import FollowView
from hgviz.gui.neurons import NeuronView
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import Line
from hgviz.gui.window import Chooser
from tests.analysis.test_funnel import make as make_funnel
from tests.analysis.test_segments import make
from tests.gui.neurons.test_neurons import of_kernels
from tests.gui.showing import shown


class Spy(QPainter):
    """A painter that keeps what it writes and from where to where."""

    def __init__(self, on):
        super().__init__(on)
        self.written = []

    def drawText(self, box, flags, text):
        if text:
            wide = self.fontMetrics().horizontalAdvance(text)
            self.written.append((text, box.left(), box.left() + wide))


@pytest.mark.parametrize("level", ["1:1", "segments", "target", "encoder"])
@pytest.mark.parametrize("null", [False, True])
def test_off_stands_beside_the_level_and_the_head(app, level, null):
    spans = make("words").spans[1 if null else 0]
    image = QImage(200, 40, QImage.Format.Format_RGB32)
    with Spy(image) as painter:
        line = Line(level, HeadId(1, 1), spans, off=True)
        assert line.null == null
        textrows.draw(painter, line, (0, 30), True, None)
    found = {text: (left, right) for text, left, right in painter.written if text != "∅"}
    assert {"off", "1.1"} < found.keys() and len(found) == 3
    ordered = sorted(found.values())
    for (_, right), (left, _) in zip(ordered, ordered[1:], strict=False):
        assert right <= left
    assert ordered[-1][1] <= textrows.LEFT


def test_the_size_of_a_model_gives_way_to_its_name(app):
    chooser = Chooser()
    chooser.show_model("quadratic", "12 k", {}, "")
    for wide, both in ((250, True), (110, False), (250, True)):
        chooser.resize(wide, 34)
        chooser._fit()
        assert chooser.size_words.isVisibleTo(chooser) is both
    chooser.deleteLater()


def test_the_null_group_is_there_before_any_segment(app):
    capture = make("none")
    assert len(capture.spans[1]) == 1
    with shown(TextStrip, (900, 188), capture=capture, selection=Selection(1, 1, 0)) as (view, _):
        line = view.strip.lines[1]
        assert line.null and line.chosen == 0 and line.weights.tolist() == [1.0]


def test_a_title_takes_the_wider_side_of_the_letter(app, monkeypatch):
    written = []
    monkeypatch.setattr(
        trail.Pen, "elided", lambda self, said, font, room: written.append((said, room)) or said
    )
    capture, _ = make_funnel("apart", blocks=(2, 1, 2))
    for token in range(0, len(capture.prompt), 3):
        fields = {"capture": capture, "selection": Selection(0, 0, token)}
        with shown(FollowView, (640, 520), **fields) as (view, _):
            view.grab()
    rooms = [room for said, room in written if "become" in said]
    assert rooms and min(rooms) > 110


def test_every_column_of_numbers_is_as_wide_as_its_name(app):
    capture = of_kernels(True)
    fields = {"capture": capture, "selection": Selection(0, 0, 2, 1)}
    with shown(NeuronView, (790, 400), **fields) as (view, _):
        table = view.keys
        bold = QFontMetricsF(theme.font(0.85, 600))
        stages = table.found.anatomy.stages
        assert any("|k|" in one.title for one in stages)
        for one, (_, wide) in zip(stages, table.room().columns, strict=True):
            assert bold.horizontalAdvance(one.title) <= wide - 2
