"""The list of keys that the looks Neurons and Attribution share."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from hgviz.gui.grid import Names
from hgviz.gui.tables import HEAD, HIGH, KeyList, where
from tests.making import byte_prompt


class Plain(KeyList):
    """A list that paints nothing."""

    def told_at(self, place):
        return ""


@pytest.fixture
def keys(app, qtbot):
    """A hundred keys, the newest first, ten of them on screen."""
    one = Plain()
    qtbot.addWidget(one)
    one.resize(300, HEAD + 10 * HIGH)
    one.show()
    one.put_in_order(np.arange(100)[::-1])
    one.picked.connect(one.choose)
    return one


def test_a_click_chooses_the_key_of_its_row_wherever_the_list_is(keys):
    def click(y):
        place = QPoint(20, y)
        QTest.mousePress(keys.viewport(), Qt.MouseButton.LeftButton, pos=place)
        return keys.chosen

    assert click(HEAD + HIGH + 3) == 98
    keys.verticalScrollBar().setValue(50 * HIGH)
    assert click(HEAD + HIGH + 3) == 48
    assert click(HEAD - 3) == 48  # the titles choose nothing
    keys.put_in_order(np.arange(2))
    assert keys.column_at(HEAD + 2 * HIGH) is None


def test_arrows_and_pages_walk_the_list_and_keep_the_key_in_sight(keys):
    for key, column in (
        (Qt.Key.Key_Up, 99), (Qt.Key.Key_Up, 99), (Qt.Key.Key_Down, 98),
        (Qt.Key.Key_PageDown, 88), (Qt.Key.Key_PageUp, 98), (Qt.Key.Key_PageUp, 99),
    ):  # fmt: skip
        QTest.keyClick(keys, key)
        assert keys.chosen == column
    for _ in range(12):
        QTest.keyClick(keys, Qt.Key.Key_PageDown)
        top = keys._place(keys.chosen) * HIGH - keys.verticalScrollBar().value()
        assert 0 <= top <= keys.page - HIGH
    assert keys.chosen == 0
    keys.put_in_order(np.zeros(0, np.int64))
    QTest.keyClick(keys, Qt.Key.Key_Down)
    assert keys.chosen == 0


def test_a_key_is_named_by_its_number_and_its_word():
    prompt = byte_prompt("a word")
    spans = np.array([[0, 1], [2, 3], [2, 4], [-1, -1]])
    names = Names(prompt, np.array([[0, 1], [2, 6]]), spans)
    assert [where(names, one) for one in range(4)] == ["0", "2 word", "2–3 word", "place 3"]
