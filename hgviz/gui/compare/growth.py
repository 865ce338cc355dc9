"""How B learns: its score on what was held out, step by step, beside the score of A."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz.gui import theme
from hgviz.gui.compare.told import GUIDE
from hgviz.gui.controls import tip
from hgviz.gui.heads.metrics import explanation
from hgviz.gui.language import tr
from hgviz.gui.prune import chart
from hgviz.gui.views.words import counted, percent

SCORES = {
    "accuracy": ("Accuracy", True),
    "masked_accuracy": ("Masked tokens guessed", True),
    "bits_per_byte": ("Bits per byte", False),
}
MEANS = {  # what a score is, and how it is computed
    "accuracy": ("The share of answers that are right", "Σ_i [argmax_c P(c | x_i) = y_i] / n"),
    "masked_accuracy": (
        "The share of masked tokens that the model guesses",
        "Σ_t [argmax_v P(v | x ∖ x_t) = x_t] / n",
    ),
    "bits_per_byte": (
        "Bits per byte: what the model needs on average to tell the next byte; less is better",
        "−Σ_t log₂ P(x_t | x_<t) / bytes",
    ),
}
LEAST = 20  # steps along the axis


def explained(metric: str) -> str:
    """What a score means, its formula and its source; "" for one that nobody named."""
    if metric not in MEANS:
        return ""
    means, formula = MEANS[metric]
    return explanation(tr(means), formula, GUIDE)


def scored(metric: str, value: float) -> str:
    """93.8 % of an accuracy, 2.412 bits per byte."""
    words, share = SCORES.get(metric, (metric, False))
    if share:
        return percent(f"{100 * value:.1f}")
    if metric == "bits_per_byte":
        return tr("{bits} bits per byte", bits=f"{value:.3f}")
    return f"{value:.3f} {words}"


class GrowthChart(QWidget):
    """A as a dashed line, B as a line that grows from where the exchange left it."""

    def __init__(self) -> None:
        super().__init__()
        self.figure, self.names, self.total = "accuracy", ("A", "B"), 0
        self.whole: float | None = None
        self.points: list[tuple[int, float]] = []
        self.setFixedHeight(210)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("How B learns"))

    def sizeHint(self) -> QSize:
        """What it likes."""
        return QSize(560, 210)

    def begin(self, a: str, b: str, total: int) -> None:
        """A new training; total: its steps, 0 where they are not known."""
        self.names, self.total, self.whole, self.points = (a, b), total, None, []
        self.update()

    def add(self, metric: str, before: Mapping[str, Mapping[str, float]], step: int, value: float
            ) -> None:  # fmt: skip
        """The newest score of B, and what both scored before the first step."""
        self.figure = metric
        self.setToolTip(tip(explained(metric)))
        if not self.points and metric in before.get("original", {}):
            self.whole = before["original"][metric]
            start = before.get("exchanged", before["original"])[metric]
            self.points.append((0, start))
        if isfinite(value) and (not self.points or self.points[-1][0] < step):
            newest = self.points[-1][1] if self.points else None
            if value != newest or step - self.points[-1][0] >= LEAST:
                self.points.append((step, value))
        self.setAccessibleDescription(self.words)
        self.update()

    @property
    def words(self) -> str:
        """A softmax 96.5 %; B ymish 61.0 % before, 69.5 % after 60 steps."""
        if not self.points:
            return ""
        (_, first), (step, last) = self.points[0], self.points[-1]
        before = {"b": self.names[1], "before": scored(self.figure, first)}
        said = [tr("{b} {before} before", **before)]
        if step:
            now = {"now": scored(self.figure, last), "steps": counted(step, "step")}
            said = [tr("{b} {before} before, {now} after {steps}", **before, **now)]
        if self.whole is not None:
            said.insert(0, f"{self.names[0]} {scored(self.figure, self.whole)}")
        return "; ".join(said)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The frame, A's line, B's line with its last value."""
        if not self.points:
            return
        now, (title, share) = theme.current(), SCORES.get(self.figure, (self.figure, False))
        values = [value for _, value in self.points]
        values += [self.whole] if self.whole is not None else []
        room = max(0.02 if share else 0.05, 0.12 * (max(values) - min(values)))
        low, high = max(0.0, min(values) - room), max(values) + room
        high = min(1.0, high) if share else high
        last_step, last = self.points[-1]
        end = max(LEAST, round(1.15 * last_step))  # it may be stopped long before its end
        end = max(last_step, min(end, self.total)) if self.total else end
        box = QRectF(56, 14, self.width() - 72, self.height() - 58)
        axes = chart.Axes(box, 0, end, low, high)
        said = chart.percent if share else _number
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            ticks = chart.ticks(0, end, 6), chart.ticks(low, high, 5)
            words = tr("{score} on held-out data, by step", score=tr(title))
            chart.frame(painter, axes, *ticks, chart.count, said, words)
            below = self.whole is None or last <= self.whole
            if self.whole is not None:
                line = axes.line([(0, self.whole), (end, self.whole)])
                chart.stroke(painter, line, now.text, 1, Qt.PenStyle.DashLine)
                y = axes.y(self.whole) + (-10 if below else 10)
                y = max(box.top() + 6, min(y, box.bottom() - 6))
                chart.note(painter, self.names[0], now.text, QPointF(box.left() + 6, y), box, 500)
            chart.stroke(painter, axes.line(self.points), now.press)
            x, y = axes.x(last_step), axes.y(last)
            painter.setBrush(now.press)
            painter.drawEllipse(QPointF(x, y), 3, 3)
            side = QPointF(x + 8, max(box.top() + 6, y + (12 if below else -12)))
            chart.note(painter, self.names[1], now.press, side, box)


def _number(value: float) -> str:
    return f"{value:.4g}"


__all__ = ["GrowthChart", "explained", "scored"]
