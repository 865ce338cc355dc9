"""The stylesheet of the window: what Fusion's palette alone cannot say, in the theme's colours."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hgviz.gui.theme import Theme

# Widgets are named by a "kind" property: quiet, filled, link, segment, pane, raised, chip, ...
SHEET = Template("""
QMainWindow, QDialog { background: $window; }
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
QListView { background: transparent; border: 0; outline: 0; }
QListView[kind="topics"] { border: 1px solid transparent; border-radius: 6px; padding: 3px; }
QListView[kind="topics"]:focus { border: 1px solid $press; }
QListView[kind="topics"]::item { padding: 5px 8px; border-radius: 4px; color: $text; }
QListView[kind="topics"]::item:hover { background: $hover; }
QListView[kind="topics"]::item:selected { background: $tint; color: $text; }
QTextBrowser { background: $pane; color: $text; border: 1px solid $line; border-radius: 6px; }
QTextBrowser:focus { border: 1px solid $press; }

QWidget[kind="pane"] { background: $pane; }
QFrame[kind="toolbar"] { background: $pane; border: 0; border-bottom: 1px solid $line; }
QFrame[kind="raised"] { background: $raised; border: 0; border-bottom: 1px solid $line; }
QFrame[kind="float"] { background: $pane; border: 1px solid $edge; border-radius: 10px; }
QFrame[kind="card"] { background: $raised; border: 1px solid $line; border-radius: 8px; }
QFrame[kind="line"] { background: $line; border: 0; }
QFrame[kind="drop"] { background: $press; border: 0; }
QLabel[kind="secondary"] { color: $secondary; }
QLabel[kind="mark"] { color: $mark_text; }
QLabel[kind="warning"] { color: $warning; }
QLabel[kind="bad"] { color: $bad; }
QLabel[kind="chip"] { background: $hover; color: $text; border-radius: 9px; padding: 1px 8px;
    min-height: 16px; }
QLabel[kind="side"] { background: $text; color: $pane; border-radius: 5px; padding: 3px 9px; }
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
