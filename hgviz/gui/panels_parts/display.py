"""How weights become colours: palette, scale, the top of the scale."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from PySide6.QtCore import QLocale, QSize
from PySide6.QtGui import QDoubleValidator, QIcon, QImage, QPixmap
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from hgviz import palettes
from hgviz.core import Display, Task
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.views.choosing import scale_choice
from hgviz.gui.widgets import Check, Picker, label
from hgviz.session import Session

SWATCH = QSize(48, 12)


class DisplayPanel(View):
    """Writes session.display. Signed weights always have their own palette, about zero."""

    title: ClassVar[str] = "Display"
    topic: ClassVar[str] = "display"
    icon: ClassVar[str] = "palette"
    figureless = "It sets the colours of the others"
    needs: ClassVar[tuple[str, ...]] = ("display", "dark")
    lane: ClassVar[Literal["files", "engine", "here"]] = "here"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.palettes = Picker()
        self.palettes.setIconSize(SWATCH)
        self.palettes.setAccessibleName(tr("Palette"))
        for row in palettes.PALETTES.values():
            if not row.signed:
                self.palettes.addItem(tr(row.label), row.name)
        self.palettes.activated.connect(self._choose_palette)
        self.scale = scale_choice()
        self.scale.chosen.connect(self._choose_scale)
        self.shared = Check(tr("One scale for all heads"))
        self.shared.toggled.connect(self._choose_shared)
        self.top = QLineEdit()
        self.top.setPlaceholderText(tr("from the data"))
        self.top.setAccessibleName(tr("Top of the scale"))
        numbers = QDoubleValidator(0.0, 1e9, 6, self.top)
        numbers.setLocale(QLocale.c())
        self.top.setValidator(numbers)
        self.top.editingFinished.connect(self._choose_top)
        grid = QGridLayout(self.content)
        grid.setContentsMargins(16, 10, 16, 12)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        for row, (words, widget) in enumerate(
            (("Palette", self.palettes), ("Scale", self.scale), ("Top", self.top))
        ):
            grid.addWidget(label(tr(words), kind="secondary"), row, 0)
            grid.addWidget(widget, row, 1)
        grid.addWidget(self.shared, 3, 0, 1, 2)
        grid.setColumnStretch(1, 1)
        grid.setRowStretch(4, 1)

    def request(self, session: Session) -> Task[Display] | None:
        """The display as it is."""
        return _now(session.display)

    def draw(self, result: Display) -> None:
        """Show it without saying that anything changed."""
        self._swatches()
        name = palettes.suited(result.palette, False)
        self.palettes.setCurrentIndex(self.palettes.findData(name))
        self.scale.choose(result.scale)
        self.shared.blockSignals(True)
        self.shared.setChecked(result.shared)
        self.shared.blockSignals(False)
        self.shared.setEnabled(result.limits is None)
        self.top.setText("" if result.limits is None else f"{result.limits[1]:g}")

    def as_table(self) -> list[list[str]] | None:
        """Every setting with its value."""
        names = [tr(one) for one in ("Palette", "Scale", "Top", "One scale for all heads")]
        scale = tr(palettes.SCALES[self.scale.choice])
        top = self.top.text() or tr("from the data")
        shared = tr("on") if self.shared.isChecked() else tr("off")
        values = [self.palettes.currentText(), scale, top, shared]
        return [[tr("Setting"), tr("Value")], *map(list, zip(names, values, strict=True))]

    def _swatches(self) -> None:
        dark = theme.current().dark
        for at in range(self.palettes.count()):
            table = palettes.colours(self.palettes.itemData(at), dark)
            row = np.ascontiguousarray(table[np.linspace(0, 255, SWATCH.width()).astype(int)])
            strip = QImage(row.data, len(row), 1, 3 * len(row), QImage.Format.Format_RGB888)
            self.palettes.setItemIcon(at, QIcon(QPixmap.fromImage(strip.scaled(SWATCH))))

    def _choose_palette(self, at: int) -> None:
        self._put(palette=self.palettes.itemData(at))

    def _choose_scale(self, name: str) -> None:
        self._put(scale=name)

    def _choose_shared(self, on: bool) -> None:
        self._put(shared=on)

    def _choose_top(self) -> None:
        try:
            top = float(self.top.text())
        except ValueError:
            top = 0.0
        good = math.isfinite(top) and top > 0
        self._put(limits=(0.0, top) if good else None)

    def _put(self, **changes: object) -> None:
        if self.session is not None:
            self.session.put(display=replace(self.session.display, **changes))  # type: ignore[arg-type]


def _now(display: Display) -> Task[Display]:
    yield from ()
    return display
