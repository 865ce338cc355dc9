"""What a stranger wrote for text and tokens is plain text in the window, however long it is."""

from __future__ import annotations

from PySide6.QtGui import Qt
from PySide6.QtWidgets import QApplication, QLabel

from hgviz.core import Selection, finish
from hgviz.gui import sources
from tests.making import make_capture, stranger


def test_markup_controls_and_millions_of_characters_are_plain_text(program):
    capture = stranger(make_capture("abcdefghij" * 4, (1, 2), 2))
    found = finish(sources.measure(capture))
    program.session.put(capture=capture, facts=found.facts)
    program.settle()
    for token in range(8):
        program.session.put(selection=Selection(1, 0, token, 4))
        program.settle()
        QApplication.processEvents()
        for said, rich in texts():
            assert not {"\0", "\x1b", "\u202e"} & {*said}, said[:80]
            assert len(said) < 5000, said[:80]
            assert not rich or ("<img" not in said and "<b>x" not in said), said[:80]


def texts():
    """What labels, titles and tips show, and whether Qt takes it for markup."""
    for widget in QApplication.allWidgets():
        yield widget.toolTip(), Qt.mightBeRichText(widget.toolTip())
        yield widget.windowTitle(), False
        yield widget.accessibleName(), False
        if isinstance(widget, QLabel):
            form, said = widget.textFormat(), widget.text()
            auto = form == Qt.TextFormat.AutoText and Qt.mightBeRichText(said)
            yield said, auto or form == Qt.TextFormat.RichText
