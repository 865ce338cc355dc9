"""The dialog before heads are measured: by which scores, and whether a curve follows."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QWidget

from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.prune_parts.explained import explained_all
from hgviz.gui.widgets import Button, Check, label, tip

# arrays of a study, what they are called, what they cost, whether they are measured at first
CHOICES = (
    (("gradient",), "Predicted loss change, from gradients", "about 2 scorings", True),
    (("loss_change", "change"), "Loss change, each head off by itself: exact",
     "half a scoring a head", True),
    (("token_gradient",), "Sensitivity per token", "about 2 scorings", False),
    (("alone",), "Loss change with one head alone in its layer", "half a scoring a head", False),
    (("shapley",), "Shapley values, 20 random orders", "20 scorings a head", False),
)  # fmt: skip
GRADIENTS = {"gradient", "token_gradient"}
NO_GRADIENTS = (
    "Gradient scores are undefined for this model. It gives hidden states, and how far they are "
    "from those with all heads on has no gradient where all heads are on."
)
HOW = (
    "The quickest comes first, and colours the wall while the rest is on its way. Stop keeps what "
    "is measured."
)


class MeasureDialog(Overlay):
    """Which scores to measure; what is there is kept. chosen: arrays, whether to draw the curve.

    states: whether the model gives hidden states alone, which have no gradients.
    """

    chosen = Signal(object, bool)
    wide = 620

    def __init__(self, over: QWidget, there: frozenset[str], states: bool = False) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Measure what every head is worth"), factor=1.15, weight=600))
        for words in (HOW, NO_GRADIENTS) if states else (HOW,):
            said = label(tr(words), kind="secondary")
            said.setWordWrap(True)
            self.body.addWidget(said)
        grid = QGridLayout()
        grid.setColumnStretch(0, 1)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        self.boxes: list[Check] = []
        for row, (names, words, cost, first) in enumerate(CHOICES):
            box = Check(tr(words))
            box.setToolTip(tip(explained_all(names)))
            known = set(names) <= there
            undefined = states and not GRADIENTS.isdisjoint(names)
            box.setChecked((first or known) and not undefined)
            box.setEnabled(not undefined)
            grid.addWidget(box, row, 0)
            told = tr("undefined here" if undefined else "measured" if known else cost)
            box.setAccessibleDescription(f"{told}\n{explained_all(names)}")
            grid.addWidget(label(told, factor=0.92, kind="secondary"), row, 1)
            box.toggled.connect(self._fit)
            self.boxes.append(box)
        self.curve = Check(tr("Then draw how many heads can go"))
        self.curve.setChecked(True)
        grid.addWidget(self.curve, len(CHOICES), 0)
        grid.addWidget(label(tr("21 orders"), factor=0.92, kind="secondary"), len(CHOICES), 1)
        self.body.addSpacing(8)
        self.body.addLayout(grid)
        self.body.addSpacing(8)
        self.go = Button(tr("Measure"), kind="filled")
        self.go.clicked.connect(self._accept)
        self.offer(self.go)

    def _fit(self) -> None:
        self.go.setEnabled(any(one.isChecked() for one in self.boxes))

    def _accept(self) -> None:
        needs = frozenset(
            name
            for box, (names, *_) in zip(self.boxes, CHOICES, strict=True)
            if box.isChecked()
            for name in names
        )
        curve = self.curve.isChecked()
        self.finish()
        self.chosen.emit(needs, curve)
