"""Figures of studies: what is lost as heads go, and what every head is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import HgvizError

if TYPE_CHECKING:
    from hgviz.figures.charts import Band, Chart, Curves, Line, Scores
    from hgviz.study import PruningCurve, Study

TITLES = {
    "heads": "Heads switched off",
    "parameters": "Parameters of heads, saved",
    "flops": "FLOPs of heads, saved",
    "time": "Milliseconds of one pass",
}
TOGETHER = 4  # methods that one pair of axes shows; more have a panel each


def chart(
    kind: str,
    studies: Sequence[Study],
    methods: Sequence[str] = (),
    axis: str = "heads",
) -> Chart:
    """What a figure of some studies shows. kind: "curve", of the scores named, or of all that have
    a curve; "scores", of the first study and method.

    axis: what a curve is drawn over, of figures.spec.AXES. Errors: HgvizError for what was not
    measured.
    """
    if kind == "scores":
        return scores(studies[0], methods[0] if methods else "")
    return curves(studies, methods, axis)


# --- what every head is worth ---------------------------------------------------------------------


def scores(study: Study, method: str = "") -> Scores:
    """Heads by one score, the most needed first; method "": the first that was measured."""
    from hgviz.analysis.importance import METHODS, importance
    from hgviz.figures.charts import Scores

    name = method or next(
        (one.name for one in METHODS.values() if one.is_measured(study)), "signed"
    )
    found = importance(study, name)
    order = [at for at in np.argsort(found.rank) if found.rank[at]]
    groups, names = _groups(study)
    turned = "" if found.method.needed > 0 else ", low where a head is needed"
    unit = f", {found.method.unit}" if found.method.unit else ""
    return Scores(
        tuple(str(study.heads[at]) for at in order),
        found.score[order], found.low[order], found.high[order],
        tuple(groups[at] for at in order), names, f"{found.method.label}{unit}",
        title=f"What {len(order)} heads are worth",
        more=f"{study.spec.name}, {found.method.name}",
        notes=(f"{found.method.formula}{turned}; {study.amount(found.rows)} of {study.data}, "
         "intervals of 95 %",),
        about=_about([study], found.method.name),
    )  # fmt: skip


def _groups(study: Study) -> tuple[list[int], tuple[str, ...]]:
    """The number of each head's group and what they are: levels where there are several, or layers.

    Layers that go from one level to another are groups of their own.
    """
    levels = study.spec.levels
    names = []
    for layer in study.spec.layers:
        between = f"{levels[layer.key_level].label} to {levels[layer.level].label}"
        level = levels[layer.level].label if layer.level == layer.key_level else between
        names.append(level if len(levels) > 1 else f"layer {layer.index}")
    kinds = tuple(dict.fromkeys(names))
    return [kinds.index(names[head.layer]) for head in study.heads], kinds


# --- what is lost as heads go ---------------------------------------------------------------------


def curves(studies: Sequence[Study], methods: Sequence[str] = (), axis: str = "heads") -> Curves:
    """Curves beside the band of random orders.

    One study: the score itself, a few methods in one pair of axes, each with its interval where it
    is alone. Several: a panel for each method, a line for each study, what is lost of its own whole
    model, and the band of all their random orders. Errors: HgvizError where there is no curve.
    """
    from hgviz.figures.charts import CurvePanel, Curves

    several = len(studies) > 1
    mine = [_chosen(study, methods, axis) for study in studies]
    names = list(dict.fromkeys(name for found in mine for name in found))
    band = _band(studies, mine, axis, several)
    models = _models(studies)
    lines = {
        name: tuple(
            _line(study, found[name], axis, name if not several else models[number], several)
            for number, (study, found) in enumerate(zip(studies, mine, strict=True))
            if name in found
        )
        for name in names
    }
    together = not several and len(names) <= TOGETHER
    every = [line for some in lines.values() for line in some]
    if together:
        panels = [CurvePanel(tuple(every), band)]
    else:
        panels = [CurvePanel(some, band, name) for name, some in lines.items()]
    one = next(iter(mine[0].values()))
    bits = _bits(studies[0])
    model = studies[0].spec.name if not several else f"{len(studies)} models"
    count = sum(len(_randoms(study, found)) for study, found in zip(studies, mine, strict=True))
    timed = axis == "time"
    hidden = not bits and (timed or any(len(panel.lines) > 1 for panel in panels))
    spread = f"; {_spread(every)}" if hidden else ""
    notes: tuple[str, ...] = (
        f"{studies[0].amount(len(one.rows))} of {studies[0].data} that made no order{spread}",
    )
    if timed:
        timing = "passes over 16 texts on one core, by models that really lack the heads"
        notes += (f"Medians of {timing}, in the order in which heads go; random orders not timed",)
    return Curves(
        tuple(panels), TITLES[axis], _across(studies[0], several),
        f"middle 80 % of {count} random orders, and their median" if band else "",
        "k*", f"at most 1 point of {one.unit.replace('_', ' ')} lost",
        axis in ("parameters", "flops"), timed, title="What is lost as heads go", more=model,
        notes=notes, about=_about(studies, ", ".join(names)),
    )  # fmt: skip


def _chosen(study: Study, methods: Sequence[str], axis: str) -> dict[str, PruningCurve]:
    """The newest curve of each method, by what it is called; over time and where none is named,
    of those that were timed, if any was."""
    found: dict[str, PruningCurve] = {}
    timed = tuple(one for one in study.curves if one.times is not None)
    for one in timed if axis == "time" and timed and not methods else study.curves:
        if one.method != "random" and (not methods or one.method in methods):
            stay = len(study.heads) - len(study.off) - len(one.order)
            kept = f", {stay} stay" if stay else ""
            found[f"{one.method}{kept}"] = one
    missing = [one for one in methods if one not in {each.method for each in found.values()}]
    if missing or not found:
        of = f" of {missing[0]}" if missing else ""
        raise HgvizError(
            f"the study has no curve{of}: a curve is measured first",
            "Run hgviz curve, with --method for the score",
        )
    return found


def _randoms(study: Study, found: dict[str, PruningCurve]) -> tuple[PruningCurve, ...]:
    from hgviz.analysis import importance as analysed

    return analysed.random_curves_beside(study, max(found.values(), key=lambda one: len(one.order)))


def _line(study: Study, one: PruningCurve, axis: str, label: str, several: bool) -> Line:
    from hgviz.analysis import importance as analysed
    from hgviz.figures.charts import Line

    y, low, high = _values(study, one, several)
    most, least = analysed.removable_heads(one)
    mark = int(np.searchsorted(one.removed, most))
    marked = f"{most}" if several else f"{most}, at least {least}"
    return Line(label, _x(study, one, axis), y, low, high, mark, marked)


def _values(study: Study, one: PruningCurve, several: bool) -> tuple[Any, Any, Any]:
    """y with its interval: percent right, or points lost; bits of a language model have none."""
    if bits := _bits(study):
        rows = study.places_of(one.rows)
        assert study.sizes is not None
        factor = float(rows.sum() / study.sizes[one.rows].sum()) / math.log(2) if bits else 1.0
        return (one.loss.astype(float) - (one.loss[0] if several else 0)) * factor, None, None
    ends = (
        (one.change, one.change_low, one.change_high)
        if several
        else (one.values, one.low, one.high)
    )
    y, low, high = (100 * end.astype(float) for end in ends)
    return y, low, high


def _bits(study: Study) -> bool:
    """Whether a curve is drawn in bits per byte: of language models whose bytes are known."""
    return study.asked != "classes" and study.sizes is not None and bool(study.sizes.sum())


def _x(study: Study, one: PruningCurve, axis: str) -> Any:
    from hgviz.analysis import importance as analysed

    if axis == "heads":
        return one.removed.astype(float)
    if axis == "time":
        if one.times is None:
            raise HgvizError(
                f"the curve of {one.method} has no times: they are measured where asked for",
                "Run hgviz curve with --time, or draw it over heads",
            )
        return one.times[:, 1].astype(float)
    return analysed.saved_share(study, one, axis)[one.removed]


def _band(
    studies: Sequence[Study], mine: Sequence[dict[str, PruningCurve]], axis: str, several: bool
) -> Band | None:
    """Quantiles of all random orders, at the numbers of heads that all of them have.

    Over parameters or FLOPs they lie where so many heads do in the mean; they have no times.
    """
    from hgviz.analysis import importance as analysed
    from hgviz.figures.charts import Band

    found = [(study, one) for study, some in zip(studies, mine, strict=True)
             for one in _randoms(study, some)]  # fmt: skip
    if not found or axis == "time":
        return None
    common = found[0][1].removed
    for _, one in found:
        common = np.intersect1d(common, one.removed)
    at = [np.searchsorted(one.removed, common) for _, one in found]
    y = [
        _values(study, one, several)[0][place]
        for (study, one), place in zip(found, at, strict=True)
    ]
    x = [_x(study, one, axis)[place] for (study, one), place in zip(found, at, strict=True)]
    low, high = analysed.BAND
    return Band(np.mean(x, axis=0), *np.quantile(y, [low, 0.5, high], axis=0))


def _across(study: Study, several: bool) -> str:
    if _bits(study):
        return "Bits per byte more" if several else "Bits per byte"
    unit = study.curves[-1].unit.replace("_", " ")
    return f"Change of {unit}, points" if several else f"{unit.capitalize()}, %"


def _spread(lines: Sequence[Line]) -> str:
    """How wide an interval is, where too many lines would hide each other's."""
    halves = [(line.high - line.low) / 2 for line in lines if line.low is not None]  # type: ignore[operator]
    middle = float(np.median(np.concatenate([half[1:] for half in halves])))
    return f"interval of 95 % of a point: about ± {middle:.1f}"


def _models(studies: Sequence[Study]) -> list[str]:
    """What the models are called, with a number where two have one name."""
    names = [study.spec.name for study in studies]
    return [
        name if name and names.count(name) == 1 else f"{name or 'model'} ({number})"
        for number, name in enumerate(names, 1)
    ]


def _about(studies: Sequence[Study], methods: str) -> dict[str, str]:
    """What identifies the studies, for the file."""
    return {
        "model": ", ".join(study.spec.name for study in studies),
        "checkpoint": ", ".join(study.spec.digest for study in studies),
        "data": ", ".join(dict.fromkeys(study.data for study in studies)),
        "data digest": ", ".join(dict.fromkeys(study.data_digest for study in studies)),
        "seed": ", ".join(str(study.seed) for study in studies),
        "methods": methods,
    }


__all__ = ["chart"]
