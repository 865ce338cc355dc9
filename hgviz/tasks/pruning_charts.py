"""Charts of studies: the importance of every head, and scores as heads are switched off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.analysis.importance import (
    BAND,
    METHODS,
    importance,
    random_curves_beside,
    removable_heads,
    saved_share,
)
from hgviz.core import HgvizError
from hgviz.errors import require

if TYPE_CHECKING:
    from hgviz.figures.charts import Band, Chart, Curves, Line, Scores
    from hgviz.study import PruningCurve, Study

X_LABELS = {
    "heads": "Heads switched off",
    "parameters": "Parameters of heads, saved",
    "flops": "FLOPs of heads, saved",
    "time": "Milliseconds of one pass",
}
MOST_TOGETHER = 4  # methods in one pair of axes; more have a panel each


def chart(
    kind: str, studies: Sequence[Study], methods: Sequence[str] = (), axis: str = "heads"
) -> Chart:
    """The chart of some studies. kind: "curve", of the methods named or of all that have one;
    "scores", of the first study and method. axis: of figures.spec.AXES.

    Raises HgvizError for what was not measured.
    """
    if kind == "scores":
        return scores_chart(studies[0], methods[0] if methods else "")
    return curves_chart(studies, methods, axis)


# --- importance -----------------------------------------------------------------------------------


def scores_chart(study: Study, method: str = "") -> Scores:
    """Heads by one score, the most needed first; method "": the first that was measured."""
    from hgviz.figures.charts import Scores

    measured = (row.name for row in METHODS.values() if row.is_measured(study))
    scores = importance(study, method or next(measured, "signed"))
    row = scores.method
    order = [head for head in np.argsort(scores.rank) if scores.rank[head]]
    groups, names = _groups(study)
    direction = "" if row.needed > 0 else ", low where a head is needed"
    return Scores(
        tuple(str(study.heads[head]) for head in order),
        scores.score[order], scores.low[order], scores.high[order],
        tuple(groups[head] for head in order), names,
        f"{row.label}, {row.unit}" if row.unit else row.label,
        title=f"What {len(order)} heads are worth",
        more=f"{study.spec.name}, {row.name}",
        notes=(f"{row.formula}{direction}; {study.amount(scores.rows)} of {study.data}, "
               "intervals of 95 %",),
        about=_about([study], row.name),
    )  # fmt: skip


def _groups(study: Study) -> tuple[list[int], tuple[str, ...]]:
    """The number of each head's group, and the groups: levels where there are several, or layers.

    Layers that go from one level to another are groups of their own.
    """
    levels = study.spec.levels
    names = []
    for layer in study.spec.layers:
        keys, queries = levels[layer.key_level].label, levels[layer.level].label
        level = queries if layer.level == layer.key_level else f"{keys} to {queries}"
        names.append(level if len(levels) > 1 else f"layer {layer.index}")
    groups = tuple(dict.fromkeys(names))
    return [groups.index(names[head.layer]) for head in study.heads], groups


# --- pruning curves -------------------------------------------------------------------------------


def curves_chart(
    studies: Sequence[Study], methods: Sequence[str] = (), axis: str = "heads"
) -> Curves:
    """Pruning curves over the band of random orders.

    Of one study the score itself, a few methods in one pair of axes; of several the change from
    each whole model, a panel for each method and a line for each study, over the band of all their
    random orders. Raises HgvizError where there is no curve.
    """
    from hgviz.figures.charts import CurvePanel, Curves

    is_change = len(studies) > 1
    by_study = [_newest_curves(study, methods, axis) for study in studies]
    names = list(dict.fromkeys(name for curves in by_study for name in curves))
    model_names = _model_names(studies)
    lines = {
        name: tuple(
            _line(study, curves[name], axis, model if is_change else name, is_change)
            for study, curves, model in zip(studies, by_study, model_names, strict=True)
            if name in curves
        )
        for name in names
    }
    band = _band(studies, by_study, axis, is_change)
    every_line = [line for panel in lines.values() for line in panel]
    if not is_change and len(names) <= MOST_TOGETHER:
        panels = [CurvePanel(tuple(every_line), band)]
    else:
        panels = [CurvePanel(panel, band, name) for name, panel in lines.items()]
    first, study = next(iter(by_study[0].values())), studies[0]
    pairs = zip(studies, by_study, strict=True)
    random_count = sum(len(_random_curves(study, curves)) for study, curves in pairs)
    notes = [f"{study.amount(len(first.rows))} of {study.data} that made no order"]
    is_timed = axis == "time"
    has_no_ribbons = is_timed or any(len(panel.lines) > 1 for panel in panels)
    if has_no_ribbons and not _is_in_bits(study):
        notes[0] += f"; interval of 95 % of a point: about ± {_median_half_width(every_line):.1f}"
    if is_timed:
        notes.append("Medians of passes over 16 texts on one core, by models that really lack the "
                     "heads, in the order in which heads go; random orders not timed")  # fmt: skip
    return Curves(
        tuple(panels), X_LABELS[axis], _y_label(study, is_change),
        banded=f"middle 80 % of {random_count} random orders, and their median" if band else "",
        mark="k*",
        marked=f"at most 1 point of {first.unit.replace('_', ' ')} lost",
        percent=axis in ("parameters", "flops"),
        timed=is_timed,
        title="What is lost as heads go",
        more=f"{len(studies)} models" if is_change else study.spec.name,
        notes=tuple(notes),
        about=_about(studies, ", ".join(names)),
    )  # fmt: skip


def _newest_curves(study: Study, methods: Sequence[str], axis: str) -> dict[str, PruningCurve]:
    """The newest curve of each method by its label; over time and where no method is named, of
    those that were timed, if any was. Raises HgvizError for a method without a curve."""
    timed = tuple(curve for curve in study.curves if curve.times is not None)
    curves: dict[str, PruningCurve] = {}
    for curve in timed if axis == "time" and timed and not methods else study.curves:
        if curve.method != "random" and (not methods or curve.method in methods):
            rest = len(study.heads) - len(study.off) - len(curve.order)
            curves[f"{curve.method}, {rest} stay" if rest else curve.method] = curve
    measured = {curve.method for curve in curves.values()}
    missing = [method for method in methods if method not in measured]
    require(
        curves and not missing,
        f"the study has no curve{f' of {missing[0]}' if missing else ''}: "
        "a curve is measured first",
        "Run hgviz curve, with --method for the score",
    )
    return curves


def _random_curves(study: Study, curves: Mapping[str, PruningCurve]) -> tuple[PruningCurve, ...]:
    """The curves of random orders that the longest curve is compared with."""
    return random_curves_beside(study, max(curves.values(), key=lambda curve: len(curve.order)))


def _line(study: Study, curve: PruningCurve, axis: str, label: str, is_change: bool) -> Line:
    from hgviz.figures.charts import Line

    y, low, high = _y(study, curve, is_change)
    k, k_low = removable_heads(curve)
    mark = int(np.searchsorted(curve.removed, k))
    return Line(
        label, _x(study, curve, axis), y, low, high, mark,
        f"{k}" if is_change else f"{k}, at least {k_low}",
    )  # fmt: skip


def _y(study: Study, curve: PruningCurve, is_change: bool) -> tuple[Any, Any, Any]:
    """The score in per cent, or its change in points, with its interval; of language models bits
    per byte without one."""
    if _is_in_bits(study):
        assert study.sizes is not None
        places = study.places_of(curve.rows)
        bits_of_nats = float(places.sum() / study.sizes[curve.rows].sum()) / math.log(2)
        start = curve.loss[0] if is_change else 0
        return (curve.loss.astype(float) - start) * bits_of_nats, None, None
    ends = (
        (curve.change, curve.change_low, curve.change_high)
        if is_change
        else (curve.values, curve.low, curve.high)
    )
    y, low, high = (100 * end.astype(float) for end in ends)
    return y, low, high


def _is_in_bits(study: Study) -> bool:
    """Whether curves are in bits per byte: of language models whose bytes are known."""
    return study.asked != "classes" and study.sizes is not None and bool(study.sizes.sum())


def _x(study: Study, curve: PruningCurve, axis: str) -> Any:
    if axis == "heads":
        return curve.removed.astype(float)
    if axis == "time":
        if curve.times is None:
            raise HgvizError(
                f"the curve of {curve.method} has no times: they are measured where asked for",
                "Run hgviz curve with --time, or draw it over heads",
            )
        return curve.times[:, 1].astype(float)
    return saved_share(study, curve, axis)[curve.removed]


def _band(
    studies: Sequence[Study],
    by_study: Sequence[Mapping[str, PruningCurve]],
    axis: str,
    is_change: bool,
) -> Band | None:
    """Quantiles of all random orders at the numbers of heads that all of them have.

    Over parameters or FLOPs these are at the mean of what such orders save; they have no times.
    """
    from hgviz.figures.charts import Band

    randoms = [
        (study, curve)
        for study, curves in zip(studies, by_study, strict=True)
        for curve in _random_curves(study, curves)
    ]
    if not randoms or axis == "time":
        return None
    common = randoms[0][1].removed
    for _, curve in randoms:
        common = np.intersect1d(common, curve.removed)
    points = [np.searchsorted(curve.removed, common) for _, curve in randoms]
    pairs = list(zip(randoms, points, strict=True))
    y = [_y(study, curve, is_change)[0][at] for (study, curve), at in pairs]
    x = [_x(study, curve, axis)[at] for (study, curve), at in pairs]
    low, high = BAND
    return Band(np.mean(x, axis=0), *np.quantile(y, [low, 0.5, high], axis=0))


def _y_label(study: Study, is_change: bool) -> str:
    if _is_in_bits(study):
        return "Bits per byte more" if is_change else "Bits per byte"
    unit = study.curves[-1].unit.replace("_", " ")
    return f"Change of {unit}, points" if is_change else f"{unit.capitalize()}, %"


def _median_half_width(lines: Sequence[Line]) -> float:
    """Half the width of a point's interval, for lines whose ribbons would hide each other."""
    halves = [(line.high - line.low) / 2 for line in lines if line.low is not None]  # type: ignore[operator]
    return float(np.median(np.concatenate([half[1:] for half in halves])))


def _model_names(studies: Sequence[Study]) -> list[str]:
    """The names of the models, with a number where two have the same."""
    names = [study.spec.name for study in studies]
    return [
        name if name and names.count(name) == 1 else f"{name or 'model'} ({number})"
        for number, name in enumerate(names, 1)
    ]


def _about(studies: Sequence[Study], methods: str) -> dict[str, str]:
    """What identifies the studies, for the metadata of a file."""
    return {
        "model": ", ".join(study.spec.name for study in studies),
        "checkpoint": ", ".join(study.spec.digest for study in studies),
        "data": ", ".join(dict.fromkeys(study.data for study in studies)),
        "data digest": ", ".join(dict.fromkeys(study.data_digest for study in studies)),
        "seed": ", ".join(str(study.seed) for study in studies),
        "methods": methods,
    }


__all__ = ["chart"]
