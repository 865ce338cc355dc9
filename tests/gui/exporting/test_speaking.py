"""What the dialog before a figure is written says of itself."""

from __future__ import annotations

from hgviz.gui.help import Explanation
from tests.gui.exporting.conftest import exporting


def test_the_dialog_is_explained_over_itself(quick):
    dialog = exporting(quick)
    dialog.help.click()
    page = next(one for one in quick.frame.findChildren(Explanation) if one.isVisible())
    assert page.topic == "export" and "Export a figure" in page.view.toPlainText()
    page.finish()
    assert dialog.isVisible()
    dialog.finish()
