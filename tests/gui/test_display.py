"""The panel that says how weights become colours."""

from hgviz import palettes
from hgviz.core import Display
from hgviz.gui.panels import DisplayPanel
from tests.gui.showing import shown


def test_it_shows_the_display_of_the_session(app):
    display = Display("magma", (0.0, 0.5), "log")
    with shown(DisplayPanel, (304, 160), display=display) as (view, _):
        assert view.palettes.currentData() == "magma"
        assert view.scale.choice == "log"
        assert view.top.text() == "0.5"


def test_every_control_writes_one_field(app):
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


def test_it_offers_every_unsigned_palette(app):
    with shown(DisplayPanel, (304, 160)) as (view, _):
        offered = [view.palettes.itemData(at) for at in range(view.palettes.count())]
        assert offered == [one.name for one in palettes.PALETTES.values() if not one.signed]
        assert not view.palettes.itemIcon(0).isNull()
