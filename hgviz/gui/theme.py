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

# --- sheet ----------------------------------------------------------------------------------------


# Widgets are named by a "kind" property: quiet, filled, link, segment, pane, raised, chip, ...
SHEET = Template("""
QMainWindow, QDialog { background: $window; }
QDialog[kind="form"] { background: $pane; }
QDialog[kind="clear"] { background: transparent; }
QMenuBar { background: $window; border: 0; border-bottom: 1px solid $line; padding: 2px 8px; }
QMenuBar::item { background: transparent; padding: 3px 8px; border-radius: 6px; }
QMenuBar::item:selected, QMenuBar::item:pressed { background: $hover; color: $text; }
QMenu { background: $pane; border: 1px solid $edge; padding: 4px; }
QMenu::item { padding: 5px 28px 5px 10px; border-radius: 4px; }
QMenu::item:selected { background: $tint; color: $text; }
QMenu::item:disabled { color: $secondary; background: transparent; }
QMenu::icon { padding-left: 8px; }
QMenu::separator { height: 1px; background: $line; margin: 4px 6px; }
QToolTip { background: $pane; color: $text; border: 1px solid $edge; padding: 4px 6px; }
QStatusBar { background: $window; border-top: 1px solid $line; }
QStatusBar::item { border: 0; }
QSplitter::handle { background: $line; }
QScrollArea, QStackedWidget { border: 0; background: transparent; }
QScrollArea[kind="ground"] { background: $window; border: 1px solid $line; border-radius: 6px; }
QScrollArea[kind="ground"]:focus { border: 1px solid $press; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: $edge; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 24px; }
QScrollBar::handle:horizontal { min-width: 24px; }
QScrollBar::handle:hover { background: $secondary; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QAbstractScrollArea::corner { background: transparent; border: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QPushButton { background: $pane; color: $text; border: 1px solid $edge; border-radius: 6px;
    padding: 0 11px; min-height: 26px; }
QPushButton:hover { background: $hover; }
QPushButton:pressed { background: $line; }
QPushButton:disabled { color: $secondary; border-color: $line; background: $raised; }
QPushButton:focus { border: 1px solid $press; }
QPushButton[kind="filled"] { background: $press; color: $on_press; border-color: $press; }
QPushButton[kind="filled"]:focus { border: 2px solid $text; padding: 0 10px; min-height: 24px; }
QPushButton[kind="filled"]:hover { background: $press_hover; border-color: $press_hover; }
QPushButton[kind="filled"]:disabled { background: $hover; color: $secondary; border-color: $line; }
QPushButton[kind="link"] { background: transparent; border: 1px solid transparent;
    padding: 0 4px; text-align: left; }
QPushButton[kind="link"]:focus { border: 1px solid $press; }
QPushButton[kind="link"]:hover { background: $hover; }
QDialog QPushButton, QFrame[kind="float"] QPushButton { min-height: 30px; padding: 0 14px; }
QFrame[kind="float"] QPushButton[kind="filled"]:focus { min-height: 28px; padding: 0 13px; }
QFrame[kind="float"] QPushButton[kind="segment"] { min-height: 24px; padding: 0; }

QToolButton { background: transparent; border: 1px solid transparent; border-radius: 6px; }
QToolButton:hover { background: $hover; }
QToolButton:pressed, QToolButton:checked { background: $line; }
QToolButton:focus { border: 1px solid $press; }
QToolButton::menu-indicator { image: none; }

QFrame[kind="segments"] { background: $hover; border: 1px solid $line; border-radius: 6px; }
QPushButton[kind="segment"] { background: transparent; border: 1px solid transparent;
    border-radius: 5px; padding: 0; min-height: 24px; }
QPushButton[kind="segment"]:hover { color: $press; }
QPushButton[kind="segment"]:checked { background: $chosen; border: 1px solid $edge; color: $text; }
QPushButton[kind="segment"]:disabled { color: $edge; }
QPushButton[kind="segment"]:focus { border: 1px solid $press; }

QLineEdit, QPlainTextEdit, QAbstractSpinBox { background: $pane; color: $text;
    border: 1px solid $edge; border-radius: 6px; padding: 0 8px; selection-background-color: $press;
    selection-color: $on_press; }
QLineEdit, QAbstractSpinBox { min-height: 26px; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { width: 0; border: 0; }
QAbstractSpinBox QLineEdit { border: 0; padding: 0 6px; background: transparent; }
QAbstractSpinBox:disabled { color: $secondary; background: $raised; border-color: $line; }
QPushButton::menu-indicator { image: none; width: 0; }
QPlainTextEdit { padding: 6px; }
QLineEdit:focus, QPlainTextEdit:focus, QAbstractSpinBox:focus { border: 1px solid $press; }
QComboBox { background: $pane; color: $text; border: 1px solid $edge; border-radius: 6px;
    padding: 0 8px; min-height: 26px; }
QComboBox:hover { background: $hover; }
QComboBox:focus { border: 1px solid $press; }
QComboBox::drop-down { border: 0; width: 22px; }
QComboBox::down-arrow { image: none; }
QComboBox QAbstractItemView { background: $pane; border: 1px solid $edge; padding: 4px;
    selection-background-color: $tint; selection-color: $text; }

QLineEdit:disabled, QComboBox:disabled { color: $secondary; background: $raised;
    border-color: $line; }
QCheckBox { spacing: 8px; }
QCheckBox::indicator { width: 14px; height: 14px; border: 1px solid $secondary;
    border-radius: 4px; background: $pane; }
QCheckBox::indicator:hover { border-color: $press; }
QCheckBox::indicator:checked { background: $press; border-color: $press; }
QCheckBox:focus { color: $press; }
QCheckBox::indicator:focus { border: 1px solid $press; }
QCheckBox::indicator:disabled { border-color: $line; background: $raised; }
QCheckBox:disabled { color: $secondary; }
QRadioButton::indicator { width: 12px; height: 12px; border: 1px solid $secondary;
    border-radius: 7px; background: $pane; }
QRadioButton::indicator:checked { width: 6px; height: 6px; border: 4px solid $press; }
QRadioButton::indicator:focus { border-color: $press; }
QRadioButton::indicator:disabled { border-color: $line; }

QTabBar { background: $raised; }
QTabBar::tab { background: transparent; color: $secondary; border: 0;
    border-bottom: 2px solid transparent; padding: 6px 12px; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $press; }
QTabBar::tab:hover { color: $text; }
QTabBar::tab:selected:focus { color: $press; background: $tint; }
QTabWidget::pane { border: 0; }
QTableView[kind="table"] { background: $pane; border: 1px solid transparent; outline: 0;
    selection-background-color: $mark_tint; selection-color: $text; }
QTableView[kind="table"]:focus { border: 1px solid $press; }
QTableView[kind="table"]::item { padding: 0 8px; border: 0; }
QTableView[kind="table"]::item:hover { background: $hover; }
QTableView[kind="table"]::item:selected {
    background: $mark_tint; color: $text; }
QTableView[kind="table"] QHeaderView { background: $pane; border: 0; }
QTableView[kind="table"] QHeaderView::section { background: $raised; color: $secondary;
    border: 0; padding: 4px 8px; border-bottom: 1px solid $line; border-top: 1px solid $line; }
QTableView[kind="table"] QHeaderView::section:hover { color: $press; }
QTableView[kind="rows"] { background: transparent; border: 1px solid transparent; outline: 0;
    border-radius: 6px; selection-background-color: transparent; }
QTableView[kind="rows"]:focus { border: 1px solid $press; }
QTableView[kind="rows"]::item { border: 0; border-radius: 6px; margin: 0 7px; }
QTableView[kind="rows"]::item:hover { background: $hover; }
QTableView[kind="rows"]::item:selected { background: $mark_tint; color: $text; }
QListView { background: transparent; border: 0; outline: 0; }
QListView[kind="topics"] { border: 1px solid transparent; border-radius: 6px; padding: 3px; }
QListView[kind="topics"]:focus { border: 1px solid $press; }
QListView[kind="topics"]::item { padding: 5px 8px; border-radius: 4px; color: $text; }
QListView[kind="topics"]::item:hover { background: $hover; }
QListView[kind="topics"]::item:selected { background: $tint; color: $text; }
QTextBrowser { background: $pane; color: $text; border: 1px solid $line; border-radius: 6px; }
QTextBrowser:focus { border: 1px solid $press; }

QMainWindow > QTabBar::tab { padding: 6px 7px; }
QMainWindow::separator { background: $line; width: 1px; height: 1px; }
QDockWidget { color: $text; }
QDockWidget::title { background: $raised; border-bottom: 1px solid $line; padding: 8px 12px; }
QDockWidget::close-button, QDockWidget::float-button { subcontrol-origin: margin;
    subcontrol-position: top right; top: 7px; width: 18px; height: 18px; border-radius: 4px; }
QDockWidget::close-button { right: 10px; }
QDockWidget::float-button { right: 34px; }
QDockWidget::close-button:hover, QDockWidget::float-button:hover { background: $hover; }
QDockWidget::close-button:focus, QDockWidget::float-button:focus { border: 1px solid $press; }
QDockWidget > QAbstractButton:focus { border: 1px solid $press; }
QDockWidget > QWidget, QDockWidget QScrollArea { background: $pane; border: 0; }
QWidget[kind="pane"] { background: $pane; }
QFrame[kind="toolbar"] { background: $pane; border: 0; border-bottom: 1px solid $line; }
QFrame[kind="raised"] { background: $raised; border: 0; border-bottom: 1px solid $line; }
QFrame[kind="float"] { background: $pane; border: 1px solid $edge; border-radius: 10px; }
QDialog[kind="float"] { background: $pane; border: 1px solid $edge; }
QFrame[kind="card"] { background: $raised; border: 1px solid $line; border-radius: 8px; }
QFrame[kind="line"] { background: $line; border: 0; }
QLabel[kind="secondary"], QLabel:disabled { color: $secondary; }
QLabel[kind="mark"] { color: $mark_text; }
QLabel[kind="warning"] { color: $warning; }
QLabel[kind="bad"] { color: $bad; }
QLabel[kind="chip"] { background: $hover; color: $text; border-radius: 9px; padding: 1px 8px;
    min-height: 16px; }
QLabel[kind="side"] { background: $text; color: $pane; border-radius: 5px; padding: 3px 9px; }
QLabel[kind="page"] { border: 1px solid $edge; }
QLabel[kind="key"] { background: $pane; color: $secondary; border: 1px solid $edge;
    border-radius: 4px; padding: 0 5px; }
QPushButton[kind="find"] { color: $secondary; text-align: left; }
""")


def sheet(theme: Theme) -> str:
    """The stylesheet in the colours of one theme."""
    colours = {
        name: getattr(theme, name).name()
        for name in theme._fields
        if hasattr(getattr(theme, name), "name") and name != "scrim"
    }
    return SHEET.substitute(colours)


# --- theme ----------------------------------------------------------------------------------------


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
    values = iter(QColor(f"#{one}") for one in colours.split())
    found: dict[str, object] = {}
    for name in Theme._fields[1:]:
        if name == "silhouette":
            found[name] = tuple(next(values) for _ in range(3))
        else:
            found[name] = scrim if name == "scrim" else next(values)
    return Theme(dark=dark, **found)  # type: ignore[arg-type]


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
    """The theme in use."""
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


def palette(theme: Theme) -> QPalette:
    """The theme as Qt's own palette, which widgets and styles read."""
    role = QPalette.ColorRole
    out = QPalette()
    for one, colour in {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.pane,
        role.AlternateBase: theme.raised,
        role.Text: theme.text,
        role.PlaceholderText: theme.secondary,
        role.Button: theme.pane,
        role.ButtonText: theme.text,
        role.BrightText: theme.bad,
        role.ToolTipBase: theme.pane,
        role.ToolTipText: theme.text,
        role.Highlight: theme.press,
        role.HighlightedText: theme.on_press,
        role.Link: theme.press,
        role.LinkVisited: theme.press,
        role.Light: theme.raised,
        role.Midlight: theme.hover,
        role.Mid: theme.line,
        role.Dark: theme.edge,
        role.Shadow: theme.edge,
        role.Accent: theme.press,
    }.items():
        out.setColor(one, colour)
    faint = QColor(theme.secondary)
    faint.setAlpha(140)
    for one in (role.WindowText, role.Text, role.ButtonText):
        out.setColor(QPalette.ColorGroup.Disabled, one, faint)
    return out


def faint(colour: QColor, alpha: float) -> QColor:
    """The colour, part of it."""
    out = QColor(colour)
    out.setAlphaF(alpha)
    return out


# --- type -----------------------------------------------------------------------------------------


def font(factor: float = 1.0, weight: int = 400) -> QFont:
    """The system's font at a factor of its size, figures all of one width."""
    return _sized(QApplication.font(), factor, weight)


def mono(factor: float = 1.0, weight: int = 400) -> QFont:
    """The font of the text itself: one width for every letter."""
    out = _sized(QApplication.font(), factor, weight)
    out.setFamilies(list(MONO))
    out.setStyleHint(QFont.StyleHint.Monospace)
    return out


def _sized(base: QFont, factor: float, weight: int) -> QFont:
    out = QFont(base)
    out.setPixelSize(max(SMALLEST, round(QFontInfo(base).pixelSize() * factor)))
    out.setWeight(QFont.Weight(weight))
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
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(source.replace("currentColor", colour).encode())).render(
        painter, QRectF(0, 0, size * ratio, size * ratio)
    )
    painter.end()
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
