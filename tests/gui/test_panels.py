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
from tests.gui.screen import picture, session_of, showing, shown

pytestmark = pytest.mark.usefixtures("app")


def test_the_role_its_evidence_and_every_metric_are_told(session):
    facts = session.facts[HeadId(12, 5)]
    with showing(HeadPanel, session, 304, 400) as view:
        assert view.sentence.text() == role_sentence(facts)
        assert view.evidence.text() == role_evidence(facts)
        assert view.count.text() == "Ticks: all 54 self-attention heads"
        for name in tuple(METRICS)[:5]:
            named, ticks, value = view.lines[[*METRICS].index(name)]
            assert value.text() == measured(name, facts.metrics[name])
            assert "{" not in named.full and named.full
            assert "of 54" in ticks.toolTip()
            assert value.geometry().right() <= 304 - 16


def test_the_dot_stands_between_the_smallest_and_the_largest(session):
    with showing(HeadPanel, session, 304, 400) as view:
        _, ticks, _ = view.lines[0]
        values = [one.metrics["focus"] for one in session.facts.values() if one.kind == "self"]
        assert ticks.place(min(values)) == 6
        assert ticks.place(max(values)) == ticks.width() - 6
        picture(ticks)


def test_before_heads_are_measured_the_dock_says_so(capture):
    with showing(HeadPanel, session_of(capture), 304, 400) as view:
        assert not view.content.isVisible()


def test_the_five_strongest_keys_are_listed(session, capture):
    with showing(TopKeysPanel, session, 304, 240) as view:
        found = top_keys(capture, session.selection)
        assert [one.weight for one in view.list.rows] == [weight for _, _, weight in found]
        assert [one.token for one in view.list.rows] == [token for token, _, _ in found]
        assert "position 60" in view.where.full
        for one in view.list.rows:
            assert one.inside == one.glyph or not one.inside.strip("·")
        picture(view.list)


def test_at_a_shorter_level_all_letters_of_a_key_are_shown(session):
    session.put(selection=Selection(5, 1, 60))
    with showing(TopKeysPanel, session, 304, 240) as view:
        assert len(view.query.text()) == 4
        assert "letters 57 to 60" in view.where.full
        assert any(len(one.glyph) == 4 for one in view.list.rows)


def test_the_zeros_of_the_shift_are_named(session):
    session.put(selection=Selection(2, 0, 0))
    with showing(TopKeysPanel, session, 304, 240) as view:
        assert {one.glyph for one in view.list.rows} >= {"∅"}


def test_a_click_on_a_key_chooses_it(session, qtbot):
    with showing(TopKeysPanel, session, 304, 240) as view:
        spot = view.list.visualRect(view.list.order.index(1, 0)).center()
        qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert session.selection.key == view.list.rows[1].token


def test_the_notable_heads_open_by_a_click_or_enter(session, qtbot):
    with showing(NotablePanel, session, 304, 320) as view:
        expected = [one.head for one in notable_heads(session.facts, MOST)]
        assert [row.role.head for row in view.list.rows] == expected
        assert view.list.order.index(0, 0).data() == view.list.rows[0].words()
        before = picture(view.list)
        spot = view.list.visualRect(view.list.order.index(1, 0)).center()
        qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert session.selection.head_id == expected[1]
        assert (picture(view.list) != before).any()
        qtbot.keyClick(view.list, Qt.Key.Key_Down)
        qtbot.keyClick(view.list, Qt.Key.Key_Return)
        assert session.selection.head_id == expected[2]
        view.list.list_rows([replace(view.list.rows[0], small=None)])
        picture(view.list)


def test_a_partial_capture_lists_what_is_there(capture, session):
    session.put(capture=replace(capture, maps=(*capture.maps[:6], *[None] * 7)))
    session.put(selection=Selection(12, 0, 3))
    with showing(TopKeysPanel, session, 304, 240) as view:
        assert not view.content.isVisible()


# --- the panel that says how weights become colours -----------------------------------------------


def test_the_display_panel_shows_the_display_of_the_session(app):
    display = Display("magma", (0.0, 0.5), "log")
    with shown(DisplayPanel, (304, 160), display=display) as (view, _):
        assert view.palettes.currentData() == "magma"
        assert view.scale.choice == "log"
        assert view.top.text() == "0.5"


def test_every_control_of_the_display_panel_writes_one_field(app):
    with shown(DisplayPanel, (304, 160)) as (view, session):
        view.palettes.activated.emit(view.palettes.findData("cividis"))
        view.scale.chosen.emit("linear")
        view.shared.setChecked(True)
        view.top.setText("0.2")
        view.top.editingFinished.emit()
        assert session.display == Display("cividis", (0.0, 0.2), "linear", True)
        view.top.setText("")
        view.top.editingFinished.emit()
        assert session.display.limits is None


def test_the_display_panel_offers_every_unsigned_palette(app):
    with shown(DisplayPanel, (304, 160)) as (view, _):
        offered = [view.palettes.itemData(at) for at in range(view.palettes.count())]
        assert offered == [one.name for one in palettes.PALETTES.values() if not one.signed]
        assert not view.palettes.itemIcon(0).isNull()
