"""The docks: this head, its top keys, notable heads, and how weights are coloured."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from hgviz import palettes
from hgviz.analysis.metrics import METRICS
from hgviz.analysis.roles import notable_heads, top_keys
from hgviz.core import Display, HeadId, Selection
from hgviz.gui.panels import MOST, DisplayPanel, HeadPanel, NotablePanel, TopKeysPanel
from hgviz.gui.sentences import measured
from hgviz.tasks.heads import role_evidence, role_sentence
from tests.gui.screen import session_of, showing, shown

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
