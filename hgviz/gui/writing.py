"""The dialog before a model writes: how much, and how it chooses."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDoubleSpinBox, QGridLayout, QLabel, QSpinBox, QWidget

from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.sentences import shown
from hgviz.gui.views.words import counted
from hgviz.gui.widgets import Button, Segments, Words, label

MOST = 100_000  # tokens at a time, where the model sets no limit
END = 48  # characters of the text that are shown
WAYS = (("likeliest", "The likeliest", ""), ("chance", "By chance", ""))


@dataclass(frozen=True, slots=True)
class Writing:
    """How a model goes on with a text. seed None: always the likeliest token."""

    count: int = 64
    seed: int | None = None
    temperature: float = 1.0


class WriteDialog(Overlay):
    """How many tokens; the likeliest ones, or drawn by chance with a seed and a temperature.

    room: how many more tokens the model can read; None where nobody knows.
    """

    chosen = Signal(object)  # a Writing
    wide = 480

    def __init__(
        self, over: QWidget, text: str, unit: str, room: int | None, last: Writing
    ) -> None:
        super().__init__(over)
        most = MOST if room is None else room
        self.body.addWidget(label(tr("Let the model write"), factor=1.15, weight=600))
        said = "It goes on where the text ends, {unit} by {unit}. Stop keeps what is written."
        self.body.addWidget(_wrapped(tr(said, unit=tr(unit))))
        end = Words(kind="secondary")
        end.setFont(theme.mono(0.92))
        end.say(shown(text if len(text) <= END else "…" + text[-END:], END + 1) + "▏")
        self.body.addWidget(end)
        self.count = QSpinBox()
        self.count.setRange(min(1, most), max(1, most))
        self.count.setValue(min(last.count, most))
        self.count.setGroupSeparatorShown(True)
        self.way = Segments([(name, tr(words), icon) for name, words, icon in WAYS], wide=110)
        self.way.choose(WAYS[last.seed is not None][0])
        self.way.chosen.connect(self._fit)
        self.temperature = QDoubleSpinBox()
        self.temperature.setRange(0.05, 10.0)
        self.temperature.setSingleStep(0.1)
        self.temperature.setValue(last.temperature)
        self.temperature.setToolTip(
            tr("Below 1 the likely tokens come more often, above 1 the others")
        )
        self.seed = QSpinBox()
        self.seed.setRange(0, 2**31 - 1)
        self.seed.setValue(last.seed or 0)
        self.seed.setToolTip(tr("The same seed writes the same text"))
        for spin in (self.count, self.temperature, self.seed):
            spin.lineEdit().setTextMargins(6, 0, 6, 0)
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        self._chance: list[QWidget] = []
        for row, (words, box) in enumerate(
            (
                (tr("How many {units}", units=tr(f"{unit}s")), self.count),
                (tr("Which"), self.way),
                (tr("Temperature"), self.temperature),
                (tr("Seed"), self.seed),
            )
        ):
            name = label(words)
            name.setBuddy(box)
            box.setAccessibleName(words)
            grid.addWidget(name, row, 0)
            grid.addWidget(box, row, 1)
            if row > 1:
                self._chance += [name, box]
        self.body.addSpacing(4)
        self.body.addLayout(grid)
        if room is not None:
            left = tr("The model reads {tokens} more at most.", tokens=counted(room, unit))
            full = tr("The text is as long as the model can read: there is no room to write.")
            self.body.addWidget(_wrapped(left if room else full, "secondary" if room else "bad"))
        write = Button(tr("Write"), "edit", kind="filled")
        write.setEnabled(most > 0)
        write.clicked.connect(self._accept)
        self.offer(write)
        self._fit()

    def open(self) -> None:
        """Start with how many."""
        super().open()
        self.count.setFocus()
        self.count.selectAll()

    def _fit(self) -> None:
        """Chance alone has a temperature and a seed."""
        for one in self._chance:
            one.setEnabled(self.way.choice == "chance")

    def _accept(self) -> None:
        by_chance = self.way.choice == "chance"
        seed = self.seed.value() if by_chance else None
        self.finish()
        self.chosen.emit(Writing(self.count.value(), seed, self.temperature.value()))


def _wrapped(words: str, kind: str = "secondary") -> QLabel:
    out = label(words, kind=kind, factor=0.92)
    out.setWordWrap(True)
    return out


__all__ = ["WriteDialog", "Writing"]
