"""Colours, fonts, icons and the style sheet, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from string import Template
from typing import NamedTuple

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontInfo,
    QGuiApplication,
    QIcon,
    QPaintDevice,
    QPainter,
    QPalette,
    QPen,
    QPixmap,
)
from PySide6.QtWidgets import QApplication

from hgviz.files import resource

TO_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter  # where words stand in a box
TO_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTRE = Qt.AlignmentFlag.AlignCenter
SMALLEST = 11  # px: nothing is set smaller
BODY = 13  # px: the size the design is drawn at, and the least the body has
MONO = ("JetBrains Mono", "DejaVu Sans Mono", "Menlo", "Consolas", "Liberation Mono")


class Theme(NamedTuple):
    """The colours of one theme, named by what they are for.

    A named tuple because a dataclass of this size takes 9 ms to make, and the first paint waits.
    """

    dark: bool
    window: QColor
    pane: QColor
    raised: QColor
    hover: QColor
    line: QColor
    edge: QColor
    text: QColor
    secondary: QColor
    press: QColor
    on_press: QColor
    tint: QColor
    mark: QColor
    mark_text: QColor
    mark_tint: QColor
    good: QColor
    bad: QColor
    warning: QColor
    unseen: QColor
    unseen_hatch: QColor
    silhouette: tuple[QColor, QColor, QColor]
    scrim: QColor
    press_hover: QColor
    chosen: QColor


def _theme(dark: bool, colours: str, scrim: QColor) -> Theme:
    values = [QColor(f"#{one}") for one in colours.split()]
    return Theme._make([dark, *values[:19], tuple(values[19:22]), scrim, *values[22:]])


LIGHT = _theme(
    False,
    "F3F4F6 FFFFFF F8F9FA ECEFF3 DEE2E7 C2C8D0 1A1E23 525C68 0B5FCC FFFFFF E3EEFC E8590C B5390A "
    "FDEBDD 14683D B42318 8A5A00 F0F2F4 C9CED6 E6ECF3 D3DEEA BFCFE1 0A53B3 FFFFFF",
    QColor(26, 30, 35, 90),
)
DARK = _theme(
    True,
    "15171A 1C1F23 24282D 2A2F35 30353C 48505A E7EAEE A6AFBA 74B4FF 0D1420 1D3450 FF8A3D FF9A56 "
    "452714 5CC48D FF8A80 E0B04A 202429 3A4048 232A33 2B3744 354758 8DC1FF 3F474F",
    QColor(0, 0, 0, 140),
)

_theme_now = LIGHT


def current() -> Theme:
    return _theme_now


def apply(app: QApplication, dark: bool) -> None:
    """Put the application into one theme; nothing is painted between the old and the new."""
    global _theme_now
    if app.property("theme") == dark:
        return
    _theme_now = DARK if dark else LIGHT
    with _unpainted(app):
        if app.property("theme") is None:
            app.setStyle("Fusion")
            app.setFont(_system_font())
        app.setProperty("theme", dark)
        app.setStyleSheet("")  # one sheet straight over another took five times as long
        app.setPalette(palette(_theme_now))
        app.setStyleSheet(sheet(_theme_now))


@contextmanager
def undressed(app: QApplication) -> Iterator[None]:
    """While widgets are put together: the stylesheet is off, and put on all of them at the end.

    With it on, Qt dresses a widget and all inside it anew each time that they get a parent: pages
    took two and a half times as long. Nothing is painted in between.
    """
    worn = app.styleSheet()
    with _unpainted(app):
        app.setStyleSheet("")
        try:
            yield
        finally:
            app.setStyleSheet(worn)


@contextmanager
def _unpainted(app: QApplication) -> Iterator[None]:
    tops = [one for one in app.topLevelWidgets() if one.isVisible()]
    for top in tops:
        top.setUpdatesEnabled(False)
    try:
        yield
    finally:
        for top in tops:
            top.setUpdatesEnabled(True)


def sheet(theme: Theme) -> str:
    """The stylesheet in the colours of one theme."""
    template = Template(resource("window.qss").read_text(encoding="utf-8"))
    colours = {name: one for name, one in theme._asdict().items() if isinstance(one, QColor)}
    return template.substitute({name: colour.name() for name, colour in colours.items()})


# the roles of Qt's palette that have a colour
ROLES = {
    "window": "Window", "text": "WindowText Text ButtonText ToolTipText", "line": "Mid",
    "raised": "AlternateBase Light", "pane": "Base Button ToolTipBase", "edge": "Dark Shadow",
    "secondary": "PlaceholderText", "press": "Highlight Link LinkVisited Accent",
    "on_press": "HighlightedText", "hover": "Midlight", "bad": "BrightText",
}  # fmt: skip


def palette(theme: Theme) -> QPalette:
    """The theme as Qt's own palette, which widgets and styles read."""
    role, out = QPalette.ColorRole, QPalette()
    for name, roles in ROLES.items():
        for one in roles.split():
            out.setColor(role[one], getattr(theme, name))
    for one in (role.WindowText, role.Text, role.ButtonText):
        out.setColor(QPalette.ColorGroup.Disabled, one, faint(theme.secondary, 140 / 255))
    return out


def faint(colour: QColor, alpha: float) -> QColor:
    """The colour, part of it."""
    out = QColor(colour)
    out.setAlphaF(alpha)
    return out


# --- type -----------------------------------------------------------------------------------------


def font(factor: float = 1.0, weight: int = 400) -> QFont:
    """The system's font at a factor of its size, figures all of one width."""
    out = QApplication.font()
    out.setPixelSize(max(SMALLEST, round(QFontInfo(out).pixelSize() * factor)))
    out.setWeight(QFont.Weight(weight))
    return out


def mono(factor: float = 1.0, weight: int = 400) -> QFont:
    """The font of the text itself: one width for every letter."""
    out = font(factor, weight)
    out.setFamilies(list(MONO))
    out.setStyleHint(QFont.StyleHint.Monospace)
    return out


def _system_font() -> QFont:
    base = QApplication.font()
    base.setPixelSize(max(BODY, QFontInfo(base).pixelSize()))
    base.setStyleHint(QFont.StyleHint.SansSerif)
    base.setFeature(QFont.Tag.fromString("tnum"), 1)
    return base


# --- icons ----------------------------------------------------------------------------------------


def icon(name: str, colour: QColor | None = None, gap: int = 0) -> QIcon:
    """A drawing of resources/icons in one colour of the current theme; fetch again on a switch.

    gap px stay free at its right: Qt's buttons put too little between an icon and its words.
    """
    return _icon(name, (colour or _theme_now.text).name(), gap, _ratio())


def pixmap(name: str, size: int, colour: QColor | None = None) -> QPixmap:
    """A drawing of resources/icons at size px."""
    return _drawn(name, (colour or _theme_now.text).name(), size, _ratio())


@lru_cache(maxsize=256)
def _icon(name: str, colour: str, gap: int, ratio: float) -> QIcon:
    return QIcon(_drawn(name, colour, 16, ratio, gap))


def _ratio() -> float:
    """Device pixels per pixel of the finest screen."""
    app = QGuiApplication.instance()
    return app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1.0


def _drawn(name: str, colour: str, size: int, ratio: float, gap: int = 0) -> QPixmap:
    from PySide6.QtSvg import QSvgRenderer

    picture = QPixmap(QSize(round((size + gap) * ratio), round(size * ratio)))
    picture.fill(Qt.GlobalColor.transparent)
    source = resource(f"icons/{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", colour).encode()))
    with QPainter(picture) as painter:
        renderer.render(painter, QRectF(0, 0, size * ratio, size * ratio))
    picture.setDevicePixelRatio(ratio)
    return picture


def wants_dark(choice: str) -> bool:
    """The theme chosen, or with auto the system's."""
    if choice == "auto":
        return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    return choice == "dark"


# --- painting -------------------------------------------------------------------------------------


def smooth_painter(device: QPaintDevice) -> QPainter:
    """A painter whose lines and round shapes have smooth edges."""
    painter = QPainter(device)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    return painter


def write(
    painter: QPainter,
    box: QRect | QRectF,
    text: str,
    font: QFont,
    colour: QColor,
    side: Qt.AlignmentFlag = TO_LEFT,
    cut: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> int:
    """Write a line of text into a box, elided where it is too long; return its width in px."""
    painter.setFont(font)
    painter.setPen(colour)
    text = painter.fontMetrics().elidedText(text, cut, max(0, int(box.width())))
    painter.drawText(box, side | Qt.TextFlag.TextDontClip, text)
    return painter.fontMetrics().horizontalAdvance(text)


def draw_box(
    painter: QPainter,
    box: QRect | QRectF,
    radius: float,
    ground: QColor | QBrush | None = None,
    edge: QColor | None = None,
    width: float = 1.0,
) -> None:
    """Draw a box with round corners: its ground, its edge, or both."""
    painter.setBrush(Qt.BrushStyle.NoBrush if ground is None else ground)
    painter.setPen(Qt.PenStyle.NoPen if edge is None else QPen(edge, width))
    painter.drawRoundedRect(box, radius, radius)
