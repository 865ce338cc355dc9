"""What is written along the axes."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from hgviz import palettes
from hgviz.core import Display
from hgviz.gui import ink
from hgviz.gui.grid import Along, Names
from hgviz.gui.sentences import word_spans
from tests.making import make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


def names_of(text, layer=0):
    capture = make_capture(text, heads=1)
    return Names(capture.prompt, word_spans(capture.prompt), capture.query_spans(layer))


def texts(marks):
    return [label.text for label in marks.labels]


def test_words_of_eleven_pixels_are_written():
    names = names_of(TEXT)
    found = texts(names.marks(Along(len(names), 600, 4.0), 1.0))
    assert found[:4] == ["The", "hourglass", "was", "used"]
    assert "at" not in found and "sea." in found


def test_from_twelve_pixels_every_token_is_written():
    names = names_of("a bé.")
    found = names.marks(Along(len(names), 600, 12.0), 1.0)
    assert texts(found) == ["a", "·", "b", "<C3>", "<A9>", "."]
    assert found.labels[0].middle == 6


def test_below_words_come_lines_and_then_numbers():
    lines = names_of("\n".join(["a line of some words"] * 40))
    assert texts(lines.marks(Along(len(lines), 840, 1.0), 1.0))[:2] == ["line 1", "line 2"]
    names = names_of("abc " * 300)
    assert texts(names.marks(Along(len(names), 300, 0.25), 1.0)) == [
        "0",
        "200",
        "400",
        "600",
        "800",
        "1,000",
    ]


def test_the_chosen_word_is_always_there_and_makes_room_for_itself():
    names = names_of(TEXT)
    token = TEXT.index(" at ") + 1
    marks = names.marks(Along(len(names), 600, 4.0), 1.0, chosen=token)
    chosen = [label for label in marks.labels if label.chosen]
    assert [label.text for label in chosen] == ["at"]
    middles = [label.middle for label in marks.labels]
    assert min(np.diff(middles)) >= 11


def test_a_coarser_level_is_named_by_its_tokens():
    names = names_of(TEXT, layer=5)
    assert names.glyph(0) == "T" and names.glyph(1) == "he·h"
    assert names.place(1) == "letters 1 to 4"
    assert texts(names.marks(Along(len(names), 600, 16.0), 1.0))[1] == "he·h"


def test_padding_has_no_name():
    names = names_of("abcde", layer=10)
    padded = np.flatnonzero(names.spans[:, 1] < 0)
    for cell in padded:
        assert names.glyph(int(cell)) == "" and "no part" in names.place(int(cell))


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("text", ["a", " ", "\n\n", "word", "שלום " * 9, "x" * 500])
def test_any_text_has_marks_at_any_scale(text, scale):
    names = names_of(text)
    along = Along(len(names), 300, scale)
    marks = names.marks(along, 1.0, chosen=len(names) - 1)
    assert all(0 <= label.middle <= 300 for label in marks.labels)


def test_values_beneath_a_flat_bar_keep_apart(app):
    written = []
    table = palettes.colours(palettes.suited("viridis", True))

    class Sheet(QPainter):
        def drawText(self, place, text):
            written.append((place.x(), place.x() + self.fontMetrics().horizontalAdvance(text)))

    for reach, wide in itertools.product((0.844, 0.906, 0.512, 1.0), (140, 363, 420)):
        written.clear()
        scene = SimpleNamespace(
            table=lambda dark: table, limits=(-reach, reach), display=Display(), signed=True
        )  # fmt: skip
        image = QImage(500, 60, QImage.Format.Format_ARGB32)
        with Sheet(image) as painter:
            ink.flat_bar(painter, QRectF(20, 10, wide, 9), scene)
        written.sort()
        assert len(written) >= 3
        assert all(a[1] < b[0] for a, b in itertools.pairwise(written))
