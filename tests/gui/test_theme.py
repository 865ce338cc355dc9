"""Colours, fonts and icons."""

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage

from hgviz.gui import theme
from hgviz.gui.actions import ACTIONS


def contrast(one: QColor, other: QColor) -> float:
    """The contrast ratio of WCAG 2."""

    def light(colour: QColor) -> float:
        parts = (colour.redF(), colour.greenF(), colour.blueF())
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("one", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_all_text_reaches_a_contrast_of_4_5(one):
    grounds = (one.window, one.pane, one.raised, one.hover)
    for ink in (one.text, one.secondary, one.press, one.mark_text, one.good, one.bad, one.warning):
        for ground in grounds[:3]:
            assert contrast(ink, ground) >= 4.5, (ink.name(), ground.name())
    assert contrast(one.text, one.hover) >= 4.5
    assert contrast(one.on_press, one.press) >= 4.5
    assert contrast(one.mark_text, one.mark_tint) >= 4.5
    assert all(contrast(one.text, tint) >= 4.5 for tint in one.silhouette)


def test_every_icon_of_an_action_is_drawn_in_the_colour_of_text(app):
    for name in {action.icon for action in ACTIONS}:
        image = theme.pixmap(name, 64).toImage().convertToFormat(QImage.Format.Format_RGBA8888)
        pixels = np.array(image.constBits(), np.uint8).reshape(-1, 4)
        solid = np.unique(pixels[pixels[:, 3] == 255], axis=0)
        assert solid.tolist() == [list(theme.current().text.getRgb())], name
