"""The Inspect page: its docks, and the panels in them."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from hgviz import palettes, settings
from hgviz.analysis.metrics import METRICS
from hgviz.analysis.roles import notable_heads, top_keys
from hgviz.core import Display, HeadId, Selection
from hgviz.gui.inspect import InspectPage, WindowLayout
from hgviz.gui.panels import MOST, DisplayPanel, HeadPanel, NotablePanel, TopKeysPanel
from hgviz.gui.sentences import measured
from hgviz.session.document import Layout
from hgviz.tasks.heads import role_evidence, role_sentence
from tests.gui.screen import session_of, showing, shown

Area = Qt.DockWidgetArea


def docks_shown(page):
    """The docks whose panels are seen: not those behind another tab."""
    QApplication.processEvents()
    return [title for title, dock in page.docks.items() if dock.widget().widget().isVisible()]


def test_the_docks_are_the_same_after_a_low_window(opened):
    page = opened.inspect
    page.tabifyDockWidget(page.docks["Head details"], page.docks["Top keys"])
    for size in ((1100, 700), (1600, 1000)):
        opened.frame.resize(*size)
        QApplication.processEvents()
    assert page.docks["Top keys"] in page.tabifiedDockWidgets(page.docks["Head details"])


def test_the_arrangement_is_kept_for_the_next_start_and_reset(opened):
    page = opened.inspect
    page.addDockWidget(Area.LeftDockWidgetArea, page.docks["Display"])
    opened._keep_settings()
    other = InspectPage()
    WindowLayout(opened.frame, other).restore(settings.load())
    assert other.dockWidgetArea(other.docks["Display"]) == Area.LeftDockWidgetArea
    other.deleteLater()
    opened.commands.run("reset_layout")
    assert page.dockWidgetArea(page.docks["Display"]) == Area.RightDockWidgetArea
    before = page.state()
    page.restore(before[:40])  # a damaged one changes nothing
    assert page.state() == before


@pytest.mark.parametrize("size", [(1600, 1000), (1100, 700)])
def test_docks_are_hidden_and_come_back_by_a_key(opened, size):
    opened.frame.resize(*size)
    QApplication.processEvents()
    before = docks_shown(opened.inspect)
    opened.frame.activateWindow()
    for now in ([], before):
        QTest.keyClick(opened.frame, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
        assert docks_shown(opened.inspect) == now


def test_no_widget_is_left_behind_when_texts_come_and_go(opened):
    page, counts = opened.inspect, []
    for _ in range(4):
        for there in (True, False):
            page.show_texts(there)
            QTest.qWait(20)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        counts.append(len(page.findChildren(QWidget)))
    assert len(set(counts[1:])) == 1, counts


def test_a_session_brings_its_layout_and_is_never_larger_than_the_screen(opened):
    laying, page = opened.laying, opened.inspect
    opened.frame.resize(1100, 700)
    page.docks["Display"].setFloating(True)
    QApplication.processEvents()
    wanted = laying.layout()
    page.arrange()
    laying.lay_out(wanted)
    assert page.docks["Display"].isFloating()
    laying.lay_out(Layout(size=(32000, 32000)))
    room = opened.frame.screen().availableGeometry().size()
    assert opened.frame.width() <= max(room.width(), 1100)
    laying.lay_out(Layout(size=(1, 1), docks="no base64"))
    assert opened.frame.width() >= 1100


pytestmark = pytest.mark.usefixtures("app")


def test_the_role_its_evidence_and_every_metric_are_told(session, capture):
    facts = session.facts[HeadId(12, 5)]
    with showing(HeadPanel, session, 304, 400) as view:
        assert view.sentence.text() == role_sentence(facts)
        assert view.evidence.text() == role_evidence(facts)
        assert view.count.text() == "Ticks: all 54 self-attention heads"
        for metric, (name, ticks, value) in zip(METRICS, view.lines, strict=False):
            assert value.text() == measured(metric, facts.metrics[metric])
            assert name.full and "{" not in name.full and "of 54" in ticks.toolTip()
    with showing(HeadPanel, session_of(capture), 304, 400) as view:
        assert not view.content.isVisible()  # not measured yet


@pytest.mark.parametrize(
    ("selection", "glyph", "where"),
    [
        (Selection(12, 5, 60), 1, "position 60"),
        (Selection(5, 1, 60), 4, "tokens 57 to 60"),
        (Selection(2, 0, 0), 1, ""),
    ],
)
def test_the_five_strongest_keys_are_listed_with_their_words(
    session, capture, selection, glyph, where
):
    session.put(selection=selection)
    with showing(TopKeysPanel, session, 304, 240) as view:
        found = [(token, weight) for token, _, weight in top_keys(capture, session.selection)]
        assert [(one.token, one.weight) for one in view.list.rows] == found
        assert len(view.query.text()) == glyph and where in view.where.full
        for one in view.list.rows:
            assert one.inside in ("", one.glyph) or not one.inside.strip("·")
        assert {len(one.glyph) for one in view.list.rows} <= {1, glyph}
        assert ("∅" in {one.glyph for one in view.list.rows}) == (selection.query == 0)


def test_a_click_on_a_key_chooses_it_and_a_layer_that_is_not_there_lists_none(
    session, capture, qtbot
):
    with showing(TopKeysPanel, session, 304, 240) as view:
        spot = view.list.visualRect(view.list.order.index(1, 0)).center()
        qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert session.selection.key == view.list.rows[1].token
        session.put(capture=replace(capture, maps=(*capture.maps[:6], *[None] * 7)))
        session.put(selection=Selection(12, 0, 3))
        view.settle()
        assert not view.content.isVisible()


def test_the_notable_heads_open_by_a_click_or_enter(session, qtbot):
    with showing(NotablePanel, session, 304, 320) as view:
        expected = [one.head for one in notable_heads(session.facts, MOST)]
        assert [row.role.head for row in view.list.rows] == expected
        assert str(expected[0]) in view.list.order.index(0, 0).data()
        spot = view.list.visualRect(view.list.order.index(1, 0)).center()
        qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert session.selection.head_id == expected[1]
        qtbot.keyClick(view.list, Qt.Key.Key_Down)
        qtbot.keyClick(view.list, Qt.Key.Key_Return)
        assert session.selection.head_id == expected[2]


# --- the panel that says how weights become colours -----------------------------------------------


def test_the_display_panel_shows_the_display_and_writes_one_field_each(app):
    with shown(DisplayPanel, (304, 160), display=Display("magma", (0.0, 0.5), "log")) as (view, s):
        shown_now = view.palettes.currentData(), view.scale.choice, view.top.text()
        assert shown_now == ("magma", "log", "0.5")
        offered = [view.palettes.itemData(at) for at in range(view.palettes.count())]
        assert offered == [one.name for one in palettes.PALETTES.values() if not one.signed]
        view.palettes.activated.emit(view.palettes.findData("cividis"))
        view.scale.chosen.emit("linear")
        view.shared.setChecked(True)
        view.top.setText("0.2")
        view.top.editingFinished.emit()
        assert s.display == Display("cividis", (0.0, 0.2), "linear", True)
        for text in ("", "0", "-1"):
            view.top.setText(text)
            view.top.editingFinished.emit()
            assert s.display.limits is None
