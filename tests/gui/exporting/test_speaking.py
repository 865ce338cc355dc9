"""The dialog before a figure is written, in Korean, and what it says of itself."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from hgviz.gui import language
from hgviz.gui.exporting import saying
from hgviz.gui.exporting.preview import Picture
from hgviz.gui.helping.explaining import Explanation
from tests.gui.exporting.conftest import choose, exporting, shown


def test_the_dialog_is_explained_over_itself(quick):
    dialog = exporting(quick)
    dialog.help.click()
    page = next(one for one in quick.frame.findChildren(Explanation) if one.isVisible())
    assert page.topic == "export" and "Export a figure" in page.view.toPlainText()
    page.finish()
    assert dialog.isVisible()
    dialog.finish()


def test_the_dialog_speaks_korean_and_its_figures_english(quick, until):
    language.choose("ko")
    language.missed = set()
    try:
        dialog = exporting(quick)
        until(lambda: shown(dialog))
        for picker in (dialog.choices.form, dialog.choices.width_, dialog.choices.kind):
            for at in reversed(range(picker.count())):
                if picker.model().item(at).isEnabled():
                    picker.setCurrentIndex(at)
        dialog.choices.length.setText("5 km")
        choose(dialog.choices.width_, "")
        assert dialog.choices.refused.text() == "그림의 너비가 아닙니다: '5 km'. 예: 3.25in, 89mm."
        choose(dialog.choices.width_, "acl")
        until(lambda: shown(dialog) and dialog.measures.full.startswith("3.03"))
        assert "가장 작은 글자 6.5 pt" in dialog.measures.full
        assert dialog.default.text() == "내보내기…"
        dialog.copy.click()
        assert dialog.told.full.startswith("복사함.")
        assert QApplication.clipboard().text().startswith("hgviz figure")
        dialog.finish()
        assert not language.missed
    finally:
        language.missed = None
        language.choose("en")


@pytest.mark.parametrize("note", [
    "each cell is the largest of 4 × 4 weights", "each cell is the largest of 2 × 2 weights, or of "
    "fewer", "each cell is the largest of 64 elements", "each bar is the sum of 12 tokens",
    "dashed: below zero", "43 % of the weight lies on special tokens, left out",
    "links: the 10 strongest of each query and head", "links: all of each query",
    "2 links end outside of what is shown", "off: 3.5 is switched off",
])  # fmt: skip
def test_what_was_reduced_is_said_in_korean(note):
    language.choose("ko")
    language.missed = set()
    try:
        words = saying.notes(Picture(QImage(), 396, 200, 6.5, (note,)))
        assert not language.missed and not any(one.isascii() and one.isalpha() for one in words)
    finally:
        language.missed = None
        language.choose("en")
