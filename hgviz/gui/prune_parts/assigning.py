"""The dialog for labels that a model does not know: which of its classes each of them is."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QWidget

from hgviz.errors import LabelError
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.widgets import Button, Picker, label


class LabelsDialog(Overlay):
    """One list of classes for each label of a file. chosen: the class of each label."""

    chosen = Signal(object)
    wide = 460

    def __init__(self, over: QWidget, file: str, error: LabelError) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Assign labels to classes"), factor=1.15, weight=600))
        said = tr(
            "The model does not know the labels of {file}. Choose a class for each.", file=file
        )
        self.body.addWidget(label(said, kind="secondary", factor=0.92))
        grid = QGridLayout()
        grid.setColumnStretch(1, 1)
        grid.setHorizontalSpacing(16)
        self.lists: dict[str, Picker] = {}
        for row, name in enumerate(error.labels):
            found = Picker()
            found.addItems(error.classes)
            found.setCurrentIndex(found.findText(error.likely.get(name, "")))
            found.setAccessibleName(name)
            found.currentIndexChanged.connect(self._fit)
            grid.addWidget(label(name), row, 0)
            grid.addWidget(found, row, 1)
            self.lists[name] = found
        self.body.addLayout(grid)
        self.go = Button(tr("Use these classes"), kind="filled")
        self.go.clicked.connect(self._accept)
        self._fit()
        self.offer(self.go)

    def _fit(self) -> None:
        self.go.setEnabled(all(one.currentIndex() >= 0 for one in self.lists.values()))

    def _accept(self) -> None:
        labels = {name: one.currentText() for name, one in self.lists.items()}
        self.finish()
        self.chosen.emit(labels)
