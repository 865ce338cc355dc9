"""How B learns: its score on what was held out, step by step, beside the score of A."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from hgviz.gui import plots
from hgviz.gui.compare.told import GUIDE
from hgviz.gui.heads.metrics import explanation
from hgviz.gui.language import tr
from hgviz.gui.plots import Axis, Chart, Line, Mark, Note, Plot, Points
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


class Growth:
    """The scores of B as it learns, beside that of A.

    names: of A and B; total: the steps of the training, 0 where they are not known; whole: what A
    scores; points: B's, as (step, score), from where the exchange left it.
    """

    def __init__(self, a: str = "A", b: str = "B", total: int = 0) -> None:
        self.figure, self.names, self.total = "accuracy", (a, b), total
        self.whole: float | None = None
        self.points: list[tuple[int, float]] = []

    def add(
        self, metric: str, before: Mapping[str, Mapping[str, float]], step: int, value: float
    ) -> None:
        """The newest score of B, and what both scored before the first step."""
        self.figure = metric
        if not self.points and metric in before.get("original", {}):
            self.whole = before["original"][metric]
            start = before.get("exchanged", before["original"])[metric]
            self.points.append((0, start))
        if isfinite(value) and (not self.points or self.points[-1][0] < step):
            newest = self.points[-1][1] if self.points else None
            if value != newest or step - self.points[-1][0] >= LEAST:
                self.points.append((step, value))

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

    def chart(self) -> Chart:
        """A as a dashed line, B as a line that grows."""
        if not self.points:
            return Chart()
        title, share = SCORES.get(self.figure, (self.figure, False))
        steps, values = zip(*self.points, strict=True)
        every = [*values, *([] if self.whole is None else [self.whole])]
        room = max(0.02 if share else 0.05, 0.12 * (max(every) - min(every)))
        high = max(every) + room
        up = Axis(
            max(0.0, min(every) - room), min(1.0, high) if share else high,
            words=plots.percent if share else plots.number,
        )  # fmt: skip
        end = max(LEAST, round(1.15 * steps[-1]))  # it may be stopped long before its end
        end = max(steps[-1], min(end, self.total)) if self.total else end
        said = tr("{score} on held-out data, by step", score=tr(title))
        across = Axis(-0.012 * end, 1.012 * end, said, plots.count, whole=True)

        def told(at: int) -> str:
            now = {"now": scored(self.figure, values[at]), "steps": counted(steps[at], "step")}
            return tr("{b}: {now} after {steps}", b=self.names[1], **now)

        parts: list[plots.Part] = []
        if self.whole is not None:
            parts.append(Mark("y", self.whole))
            places = tuple((part * end, self.whole) for part in (0.02, 0.2, 0.5))
            parts.append(Note(self.names[0], places, weight=500))
        parts += [
            Line(steps, values),
            Points(steps, values, size=0.0, told=told),
            Points(steps[-1:], values[-1:], size=7.0),
            Note(self.names[1], tuple(reversed(self.points))[:4], "press"),
        ]
        return Chart((Plot(across, up, tuple(parts)),), self.words, of=self.names, reads="x")


__all__ = ["Growth", "explained", "scored"]
