"""How all maps become one: what a person chooses of a Recipe."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from hgviz.core import HeadId, Off
from hgviz.gui.across_parts.bars import MEANT
from hgviz.gui.heads_parts.metrics import Cited, explanation
from hgviz.gui.language import tr
from hgviz.gui.views import sayings
from hgviz.gui.widgets import Picker
from hgviz.recipe import FUSES, Fuse, Recipe

FUSED = (
    ("mean", "Mean of heads", "Heads of a layer count alike"),
    ("max", "Largest head", "Of each cell the head that looks there most"),
    ("min", "Smallest head", "Of each cell the head that looks there least"),
    ("one", "This head", "In its layer the selected head alone; in others the mean"),
)
RESIDUAL = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
FUSING = (
    "How the heads of a layer become one map",
    Cited("A = mean_h A_h, max_h A_h, min_h A_h", "Abnar and Zuidema 2020; across.md"),
)
STAYING = (
    "How much of every sum is what was there before attention",
    Cited("Â = α I + (1 − α) A", "Abnar and Zuidema 2020"),
)
SIGNED = "Weights below zero stay so: the product of A + I", MEANT["product"][1]


class Choices(QWidget):
    """Three controls in a row; `changed` says that one of them was used."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.fuse, self.residual = Picker(), Picker()
        for at, (name, said, why) in enumerate(FUSED):
            self.fuse.addItem(tr(said), name)
            self.fuse.setItemData(at, tr(why), Qt.ItemDataRole.ToolTipRole)
        for share in RESIDUAL:
            self.residual.addItem(tr("{share} residual", share=sayings.share(share)), share)
        self.residual.setCurrentIndex(RESIDUAL.index(0.5))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        for box, name, (meaning, cited), wide in (
            (self.fuse, tr("Heads"), FUSING, 146),
            (self.residual, tr("Residual share"), STAYING, 132),
        ):
            box.setAccessibleName(name)
            box.setToolTip(explanation(tr(meaning), cited))
            box.setFixedWidth(wide)
            box.currentIndexChanged.connect(self._chosen)
            row.addWidget(box)
        self.signed = _switch(tr("Signed"), *SIGNED)
        self.signed.toggled.connect(self._chosen)
        row.addWidget(self.signed)

    def recipe(self, head: HeadId, off: Off) -> Recipe:
        """What is chosen; head: the selected one, off: those that are switched off."""
        chosen = self.fuse.currentData()
        heads = (head,) if chosen == "one" and head not in off else ()
        if self.signed.isChecked():
            return Recipe(heads=heads, signed=True)
        fuse: Fuse = chosen if chosen in FUSES else "mean"
        return Recipe(fuse, heads, self.residual.currentData())

    def _chosen(self, _: object) -> None:
        plain = not self.signed.isChecked()
        for at in (1, 2):  # a signed product is of means
            self.fuse.model().item(at).setEnabled(plain)  # type: ignore[attr-defined]
        self.residual.setEnabled(plain)
        self.changed.emit()


def _switch(text: str, meaning: str, cited: Cited) -> QToolButton:
    out = QToolButton()
    out.setText(text)
    out.setCheckable(True)
    out.setFixedHeight(28)
    out.setToolTip(explanation(tr(meaning), cited))
    return out
