"""The preferences, made from the fields of Settings that have a title; each acts at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLineEdit, QScrollArea, QWidget

from hgviz import settings
from hgviz.figures import FORMATS, WIDTHS
from hgviz.gui.language import tr
from hgviz.gui.overlay import MARGIN, Overlay
from hgviz.gui.widgets import Button, Check, Picker, label
from hgviz.palettes import PALETTES, SCALES
from hgviz.settings import Settings

# where the values of a field stand that its type does not say, by its extra "from": value and words
SOURCES: dict[str, Callable[[], dict[str, str]]] = {
    "palettes": lambda: {one.name: one.label for one in PALETTES.values() if not one.signed},
    "devices": lambda: {
        "auto": "Auto", "cpu": "CPU", "cuda": "GPU (CUDA)", "mps": "GPU (Apple)",
    },
    "widths": lambda: {name: f"{tr(words)}: {long}" for name, (long, words) in WIDTHS.items()},
    "formats": lambda: dict(FORMATS),
}  # fmt: skip
WORDS = SCALES | {  # of values in types
    "auto": "Auto", "light": "Light", "dark": "Dark",
    "right": "At the right", "left": "At the left", "hidden": "Hidden",
}  # fmt: skip


EDGE, FRAME = 24, 170  # px: at the sides of the rows, and above and below them in a window


class Preferences(Overlay):
    """A row for each setting: its title, its control, what it does. changed: a field, its value."""

    changed = Signal(str, object)
    wide = 560

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.controls: dict[str, QWidget] = {}
        self.body.addWidget(label(tr("Preferences"), factor=1.15, weight=600))
        inside = QWidget()
        self._grid = grid = QGridLayout(inside)
        grid.setContentsMargins(0, 8, 8, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        kept = settings.load()
        for name, kind, meta in offered():
            self._add(name, kind, meta, getattr(kept, name))
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(inside)
        for one in (inside, self._scroll.viewport()):
            one.setAutoFillBackground(False)
        self.body.addWidget(self._scroll, 1)
        self.body.addSpacing(8)
        close, back = Button(tr("Close")), Button(tr("Back to the defaults"), kind="link")
        close.clicked.connect(self.finish)
        back.clicked.connect(self._reset)
        self.default = close
        row = QHBoxLayout()
        row.addWidget(back)
        row.addStretch(1)
        row.addWidget(close)
        self.body.addLayout(row)

    def place(self) -> None:
        """All settings where there is room, else as many, to be scrolled."""
        wide = min(self.wide, self.width() - 2 * MARGIN) - 2 * EDGE
        need = self._grid.totalHeightForWidth(wide) + 2
        self._scroll.setMinimumHeight(max(0, min(self.height() - FRAME, need)))
        super().place()

    def _add(self, name: str, kind: Any, meta: Meta, value: Any) -> None:
        row = self._grid.rowCount()
        control = _control(kind, meta, value, partial(self.changed.emit, name))
        title, description = tr(meta.title or name), tr(meta.description or "")
        control.setAccessibleName(title)
        control.setAccessibleDescription(description)
        self.controls[name] = control
        if isinstance(control, Check):
            control.setText(title)
            self._grid.addWidget(control, row, 0, 1, 2)
        else:
            shown = label(title)
            shown.setBuddy(control)
            self._grid.addWidget(shown, row, 0)
            self._grid.addWidget(control, row, 1)
        if description:
            said = label(description, factor=0.92, kind="secondary")
            said.setWordWrap(True)
            indent = 22 if isinstance(control, Check) else 0
            said.setContentsMargins(indent, 0, 0, 4)
            column = 0 if isinstance(control, Check) else 1
            self._grid.addWidget(said, row + 1, column, 1, 2 - column)

    def _reset(self) -> None:
        for name, *_ in offered():
            _show(self.controls[name], getattr(Settings(), name))


def offered() -> list[tuple[str, Any, Meta]]:
    """The settings that people choose: name, type and what is said of it, in order."""
    found = []
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        kind, *more = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
        meta = next((one for one in more if isinstance(one, Meta) and one.title), None)
        if meta is not None:
            found.append((name, kind, meta))
    return found


def _control(kind: Any, meta: Meta, value: Any, chosen: Callable[[Any], None]) -> QWidget:
    """What a value of a type is changed with: a box to tick, a list, or a line to write in."""
    if kind is bool:
        box = Check()
        box.setChecked(value)
        box.toggled.connect(chosen)
        return box
    values = {str(one): WORDS.get(one, one) for one in get_args(kind)}
    if get_origin(kind) is not Literal:
        source = (meta.extra or {}).get("from", "")
        values = SOURCES[source]() if source in SOURCES else {}
    if not values:
        field = QLineEdit(str(value))
        field.editingFinished.connect(lambda: chosen(field.text()))
        return field
    values.setdefault(str(value), str(value))  # one that was chosen elsewhere, such as 3.25in
    out = Picker()
    for one, words in values.items():
        out.addItem(tr(words), one)
    out.setCurrentIndex(out.findData(value))
    out.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    out.currentIndexChanged.connect(lambda at: chosen(out.itemData(at)))
    return out


def _show(control: QWidget, value: Any) -> None:
    """Show another value, which says that it changed."""
    if isinstance(control, Check):
        control.setChecked(value)
    elif isinstance(control, Picker):
        control.setCurrentIndex(control.findData(value))
    elif isinstance(control, QLineEdit):
        control.setText(value)
        control.editingFinished.emit()


__all__ = ["SOURCES", "Preferences", "offered"]
