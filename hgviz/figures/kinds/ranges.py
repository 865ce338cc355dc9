"""How far the numbers of figures go, so that those of one sheet can share their ranges.

Weights share one range of colours: from 0 to the largest of all, to both sides of 0 where they are
signed. Charts of one kind share the range of an axis that says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hgviz.core import Floats, Map, Selection, replace
from hgviz.figures.content import Looked, Panel
from hgviz.figures.content.charts import Curves, Scores
from hgviz.figures.content.laboratory import Plots, Three
from hgviz.figures.content.profiles import Profile
from hgviz.figures.kinds import curve, image, plots, profile, scores
from hgviz.figures.kinds.stages import stage_of, stages_of
from hgviz.figures.paper.frame import map_of, query_in
from hgviz.figures.spec import Spec

WEIGHTS, DIFFERENCES = "weights", "differences"
CELLS = 256  # along a map whose largest weight is looked for
Range = tuple[float, float]
Reach = Mapping[str, Range]  # what the numbers are -> from where to where they go


def nothing(_: Spec, __: Any) -> Reach:
    """Of what shares no range with another figure."""
    return {}


def of_map(spec: Spec, looked: Looked) -> Reach:
    """The weights of the selected head."""
    head = spec.selection.head_id
    if head in looked.capture.off:
        return {}
    return {WEIGHTS: _ends([_coarse(map_of(looked.capture, *head), head.head)])}


def of_image(spec: Spec, looked: Looked) -> Reach:
    """The weights of the heads that are shown, over the patches."""
    found = image.overlays(spec, looked.capture)
    return {WEIGHTS: _ends(one.grid for one in found if one.head not in looked.capture.off)}


def of_rollout(spec: Spec, looked: Looked) -> Reach:
    """The weights of the one map there is."""
    return of_map(replace(spec, selection=Selection()), looked)


def of_wall(_: Spec, looked: Looked) -> Reach:
    """The weights of all heads that are on."""
    capture = looked.capture
    heads = (one for one in capture.spec.heads if one not in capture.off)
    return {WEIGHTS: _ends(_coarse(map_of(capture, *head), head.head) for head in heads)}


def of_levels(spec: Spec, looked: Looked) -> Reach:
    """The weights of the rows that are shown."""
    capture = looked.capture
    query = query_in(capture.main, spec.selection.query)
    stages = (stage_of(spec, capture, looked.facts, layers, query) for layers in stages_of(capture))
    return {WEIGHTS: _ends(one.weights for one in stages)}


def of_three(_: Spec, chart: Three) -> Reach:
    """The weights of A and B, and by how much they differ; where they are signed, both."""
    if chart.signed:
        return {WEIGHTS: _ends(chart.maps)}
    return {WEIGHTS: _ends(chart.maps[:2]), DIFFERENCES: _ends(chart.maps[2:])}


def of_curves(_: Spec, chart: Curves) -> Reach:
    """The y axis."""
    return {f"curve: {chart.up}": curve.ends_of(chart)[2:]}


def of_scores(_: Spec, chart: Scores) -> Reach:
    """The y axis."""
    return {f"scores: {chart.up}": scores.ends_of(chart)}


def of_plots(_: Spec, chart: Plots) -> Reach:
    """The y axis of each pair of axes."""
    found: dict[str, Range] = {}
    for one in chart.plots:
        found = _joined([found, {f"plots: {one.up}": plots.ends_of(one)[2:]}])
    return found


def of_profile(_: Spec, chart: Profile) -> Reach:
    """The y axis of each metric."""
    return {f"profile: {one.label}": profile.ends_of(one) for one in chart.metrics}


def shared(panels: Sequence[Panel], reaches: Sequence[Reach]) -> list[Panel]:
    """The panels, with one range for all that show the same; reaches: how far those of each go."""
    joined = _joined(reaches)
    return [
        _within(one, {name: joined[name] for name in reach})
        for one, reach in zip(panels, reaches, strict=True)
    ]


def _within(panel: Panel, ranges: Reach) -> Panel:
    """A panel whose numbers are shown over these ranges."""
    content = panel.content
    limits = next((one for name, one in ranges.items() if name != DIFFERENCES), None)
    if isinstance(content, Plots) and ranges:
        drawn = (replace(one, limits=ranges[f"plots: {one.up}"]) for one in content.plots)
        return replace(panel, content=replace(content, plots=tuple(drawn)))
    if isinstance(content, Profile) and ranges:
        metrics = (replace(one, limits=ranges[f"profile: {one.label}"]) for one in content.metrics)
        return replace(panel, content=replace(content, metrics=tuple(metrics)))
    if limits is None:
        return panel
    if WEIGHTS in ranges:
        limits = 0.0, _size(limits)
    if DIFFERENCES in ranges and isinstance(content, Three):
        panel = replace(panel, content=replace(content, apart=_size(ranges[DIFFERENCES])))
    spec = panel.spec
    return replace(panel, spec=replace(spec, display=replace(spec.display, limits=limits)))


def _joined(some: Iterable[Reach]) -> dict[str, Range]:
    found: dict[str, Range] = {}
    for reach in some:
        for name, (low, high) in reach.items():
            least, most = found.get(name, (low, high))
            found[name] = min(low, least), max(high, most)
    return found


def _coarse(one: Map, head: int) -> Floats:
    """A map whose cells are the largest of many weights, by magnitude where they are signed."""
    zoom = max(0, int(np.ceil(np.log2(max(*one.shape[1:], 1) / CELLS))))
    return one.read(head, zoom=zoom)


def _ends(weights: Iterable[Floats]) -> Range:
    found = [one[np.isfinite(one)] for one in weights]
    low = min((float(one.min(initial=0)) for one in found), default=0.0)
    return low, max((float(one.max(initial=0)) for one in found), default=0.0)


def _size(ends: Range) -> float:
    """The largest magnitude; 1 where all is 0."""
    return max(abs(ends[0]), abs(ends[1])) or 1.0
