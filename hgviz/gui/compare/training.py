"""The dialog that trains B for a while: on what, how long, where to, and how it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QSpinBox,
    QWidget,
)

from hgviz.gui.asking import TEXTS, ask_for
from hgviz.gui.charts import ChartWidget
from hgviz.gui.compare.growth import Growth, explained, scored
from hgviz.gui.compare.told import spoken, wrong
from hgviz.gui.controls import Button, Picker, Progress, Segments, label, tip
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.views.words import counted, percent

if TYPE_CHECKING:
    from hgviz.core import HgvizError, Step
    from hgviz.models.training import Report

SPANS = (("minutes", "Minutes", ""), ("steps", "Steps", ""))
RATES = (1e-4, 3e-4, 1e-3, 3e-3)
SMALL = 10_000_000  # parameters: smaller models stand higher rates
WHAT = (
    "{name} with another activation learns from a file, for a short time. A tenth of the file is "
    "held out: on this both are measured, A as it is and B as it learns."
)
MOST_MINUTES, MOST_STEPS = 24 * 60.0, 1_000_000


@dataclass(frozen=True, slots=True)
class Wish:
    """A short training: the checkpoint, what its activation is exchanged for ("": nothing), the
    file it learns from, how long (steps 0: so many minutes), how fast, and where it is kept."""

    checkpoint: str
    activation: str = ""
    data: str = ""
    minutes: float = 2.0
    steps: int = 0
    rate: float = 1e-3
    out: str = ""


class TrainDialog(Overlay):
    """Asks, and shows how both sides score while B learns. It may be left while it runs."""

    wanted = Signal(object)  # a Wish
    stopped = Signal()
    compared = Signal(str)  # the folder of what was trained
    wide = 680

    def __init__(
        self, over: QWidget, wish: Wish, name: str, own: str, offered: Sequence[tuple[str, str]]
    ) -> None:
        super().__init__(over)
        self._wish, self._own, self._out = wish, own, ""
        self.running = False
        self.body.addWidget(label(tr("Train B for a while"), factor=1.15, weight=600))
        said = label(tr(WHAT, name=name), factor=0.92, kind="secondary")
        said.setWordWrap(True)
        self.body.addWidget(said)
        self.form = QWidget()
        self._build(wish, offered)
        self.body.addWidget(self.form)
        self.growth = Growth()
        self.chart = ChartWidget(tr("How B learns"))
        self.chart.setFixedHeight(210)
        self.chart.hide()
        self.bar = Progress(4)
        self.bar.hide()
        self.told = label(factor=0.92, kind="secondary")
        self.told.setWordWrap(True)
        for one in (self.chart, self.bar, self.told):
            self.body.addWidget(one)
        self.go = Button(tr("Train"), "capture", kind="filled")
        self.go.clicked.connect(self._accept)
        self.halt = Button(tr("Stop"), "stop")
        self.halt.setToolTip(tr("What is learnt by then is kept"))
        self.halt.clicked.connect(self.stopped)
        self.beside = Button(tr("Compare"), "compare", kind="filled")
        self.beside.clicked.connect(self._compare)
        self.away = Button(tr("Cancel"))
        self.away.clicked.connect(self.finish)
        row = QHBoxLayout()
        row.addStretch(1)
        for button in (self.go, self.halt, self.beside, self.away):
            row.addWidget(button)
        self.body.addSpacing(8)
        self.body.addLayout(row)
        self.show_asking()

    def _build(self, wish: Wish, offered: Sequence[tuple[str, str]]) -> None:
        self.activation = Picker()
        for name, words in offered:
            self.activation.addItem(words, name)
        self.activation.setCurrentIndex(max(0, self.activation.findData(wish.activation)))
        self.data, self.out = QLineEdit(wish.data), QLineEdit(wish.out)
        self.data.setPlaceholderText(tr("Texts with labels for a classifier, else a text"))
        self.minutes, self.steps = QDoubleSpinBox(), QSpinBox()
        self.minutes.setRange(0.1, MOST_MINUTES)
        self.minutes.setDecimals(1)
        self.minutes.setValue(wish.minutes)
        self.steps.setRange(1, MOST_STEPS)
        self.steps.setGroupSeparatorShown(True)
        self.steps.setValue(wish.steps or 200)
        self.span = Segments([(name, tr(words), icon) for name, words, icon in SPANS], wide=84)
        self.span.setAccessibleName(tr("How long"))
        self.span.choose("steps" if wish.steps else "minutes")
        self.span.chosen.connect(self._fit)
        self.rate = Picker()
        for rate in RATES:
            self.rate.addItem(f"{rate:g}", rate)
        self.rate.setCurrentIndex(max(0, self.rate.findData(wish.rate)))
        said = "Its peak, after a short warm-up; too high a rate unlearns everything"
        self.rate.setToolTip(tr(said))
        times = QHBoxLayout()
        times.setSpacing(8)
        for spin in (self.minutes, self.steps):
            spin.lineEdit().setTextMargins(6, 0, 6, 0)
            spin.setFixedWidth(120)
            times.addWidget(spin)
        times.addWidget(self.span)
        times.addStretch(1)
        grid = QGridLayout(self.form)
        grid.setContentsMargins(0, 4, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        rows: tuple[tuple[str, Any], ...] = (
            ("Activation", self.activation),
            ("Data", self._with(self.data, "Choose…", self._choose_data)),
            ("How long", times),
            ("Learning rate", self.rate),
            ("Keep in", self._with(self.out, "Choose…", self._choose_out)),
        )
        boxes = (self.activation, self.data, self.minutes, self.rate, self.out)
        for at, ((words, one), box) in enumerate(zip(rows, boxes, strict=True)):
            name = label(tr(words))
            name.setBuddy(box)
            box.setAccessibleName(tr(words))
            grid.addWidget(name, at, 0)
            add = grid.addWidget if isinstance(one, QWidget) else grid.addLayout
            add(one, at, 1)
        self.steps.setAccessibleName(tr("How many steps"))
        for field in (self.data, self.out):
            field.textChanged.connect(self._check)
        self._fit(self.span.choice)

    def _with(self, field: QLineEdit, words: str, does: Any) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        button = Button(tr(words), "open")
        button.clicked.connect(does)
        row.addWidget(field, 1)
        row.addWidget(button)
        return row

    # --- what it shows ----------------------------------------------------------------------------

    @property
    def wish(self) -> Wish:
        """What is chosen now."""
        steps = self.steps.value() if self.span.choice == "steps" else 0
        return Wish(
            self._wish.checkpoint, self.activation.currentData(), self.data.text().strip(),
            self.minutes.value(), steps, self.rate.currentData(), self.out.text().strip(),
        )  # fmt: skip

    def show_asking(self, told: str = "") -> None:
        """The choices; told: what came of the last run."""
        self.running = False
        self.form.setEnabled(True)
        self.bar.hide()
        self._offer(self.go, self.away)
        self.away.setText(tr("Cancel"))
        self._say(told)
        self._check()

    def show_running(self, wish: Wish, other: str = "") -> None:
        """The choices as they were made; other: what it has to wait for."""
        self.running = True
        self.form.setEnabled(False)
        name = spoken(wish.activation) if wish.activation else self._own
        self.growth = Growth(f"A {self._own}", f"B {name}", wish.steps)
        self.chart.show_chart(self.growth.chart())
        self.chart.show()
        self.bar.show_part(0.0)
        self.bar.show()
        self._offer(self.halt, self.away)
        self.halt.setEnabled(True)
        self.halt.setFocus()
        self.away.setText(tr("Hide"))
        waiting = tr("Waiting for: {other}", other=tr(other))
        self._say(waiting if other else tr("Loading torch"))
        self.place()

    def show_step(self, step: Step) -> None:
        """How far it is, and what both score."""
        value = step.value if isinstance(step.value, dict) else {}
        if "metric" in value:
            before = value.get("before") or {}
            self._add(value["metric"], before, value["step"], value["held_out"])
            share = step.done / step.total if step.total else 0.0
            self.bar.show_part(share)
            part = percent(f"{100 * share:.0f}")
            said = tr("Step {step:,}, {share}.", step=value["step"], share=part)
            self._say(f"{said} {self.growth.words}")
        elif step.note:
            said = tr(step.note)
            self._say(said[:1].upper() + said[1:])

    def show_stopping(self) -> None:
        """The step that is under way ends, then all of it is measured and kept."""
        self.halt.setEnabled(False)
        self._say(tr("Keeping what is learnt"))

    def show_done(self, report: Report) -> None:
        """What came of it."""
        self.running, self._out = False, report.folder
        value, metric = report.value, report.metric
        self._add(metric, report.before, report.steps, value)
        self.bar.show_part(1.0, done=True)
        first = report.before.get("original", {}).get(metric)
        parts = {"b": scored(metric, value), "steps": counted(report.steps, "step")}
        parts["folder"] = report.folder
        said = tr("B has {b} after {steps}. It is kept in {folder}.", **parts)
        if first is not None:
            both = "B has {b} after {steps}, {a} for A. It is kept in {folder}."
            said = tr(both, a=scored(metric, first), **parts)
        self._offer(self.beside, self.away)
        self.beside.setFocus()
        self.away.setText(tr("Close"))
        self._say(said)
        self.place()

    def show_error(self, error: HgvizError) -> None:
        """What went wrong, under the choices."""
        self.show_asking()
        if not self.growth.points:
            self.chart.hide()
        self._say(wrong(error), bad=True)
        self.place()

    def finish(self) -> None:
        """Close; while it runs only hide: it comes back when it is done."""
        if self.running:
            self.leave()
        else:
            super().finish()

    # --- inside -----------------------------------------------------------------------------------

    def _add(self, metric: str, before: Any, step: int, value: float) -> None:
        self.growth.add(metric, before, step, value)
        self.chart.setToolTip(tip(explained(metric)))
        self.chart.show_chart(self.growth.chart())

    def _offer(self, *buttons: Button) -> None:
        for one in (self.go, self.halt, self.beside, self.away):
            one.setVisible(one in buttons)
        self.default = buttons[0]

    def _say(self, words: str, bad: bool = False) -> None:
        self.told.setText(words)
        self.told.setVisible(bool(words))
        self.told.setProperty("kind", "bad" if bad else "secondary")
        self.told.style().polish(self.told)

    def _fit(self, span: str) -> None:
        self.minutes.setVisible(span == "minutes")
        self.steps.setVisible(span == "steps")

    def _check(self) -> None:
        ready = bool(self.data.text().strip() and self.out.text().strip())
        self.go.setEnabled(ready)
        self.go.setToolTip("" if ready else tr("Say first what B learns from and where it is kept"))

    def _accept(self) -> None:
        self.wanted.emit(self.wish)

    def _compare(self) -> None:
        self.finish()
        self.compared.emit(self._out)

    def _choose_data(self) -> None:
        file = QFileDialog.FileMode.ExistingFile
        ask_for(self, tr("Choose what B learns from"), file, self.data.setText, tr(TEXTS))

    def _choose_out(self) -> None:
        ask_for(self, tr("Keep B in a folder of"), QFileDialog.FileMode.Directory, self._put_in)

    def _put_in(self, folder: str) -> None:
        self.out.setText(str(Path(folder) / Path(self.out.text() or "trained").name))


__all__ = ["RATES", "SMALL", "TrainDialog", "Wish"]
