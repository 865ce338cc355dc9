"""Figures of what heads were measured by in words: profiles, and one query element by element."""

from __future__ import annotations

import numpy as np

from hgviz.figures.content.answers import Answer
from hgviz.figures.content.charts import Many
from hgviz.figures.content.elements import Neurons
from hgviz.figures.content.profiles import Measured, Profile, Side
from hgviz.figures.spec import Spec
from hgviz.figures.words import spoken
from hgviz.figures.words.charted import titled
from hgviz.language import counted

MOST = 3  # that are named at either end


def of_profile(_: Spec, chart: Profile) -> str:
    """Of every metric the heads and the layers where it is largest and smallest."""
    several = len(chart.sides) > 1
    found = []
    for metric in chart.metrics:
        told = [
            f"{spoken.visible(side.name, spoken.NAME)}: {words}" if several else words
            for number, side in enumerate(chart.sides)
            if (words := _extremes(metric, side, number))
        ]
        found.append(f"{spoken.upper(metric.label)}: {'; '.join(told) or 'nothing'}")
    return spoken.joined([titled(chart.title, chart.more), *found])


def of_neurons(_: Spec, chart: Neurons) -> str:
    """Which key gets most, and which elements of the marked key count most."""
    start, end = (int(one) for one in chart.query[1])
    asked = spoken.tokens_of(chart.query[0], start, end)
    count = counted(len(chart.spans), "key")
    whole = f"{titled(chart.title, chart.more)}: query {asked} and {count}, element by element"
    found = [whole]
    weights = chart.stages[-1].values if chart.stages else np.zeros(0)
    if np.isfinite(weights).any():
        at = int(np.nanargmax(np.abs(weights)))
        weight = spoken.said(float(weights[at]))
        found.append(f"The largest weight is {weight}, on key {_key(chart, at)}")
    if chart.marked is not None:
        found.append(f"Marked: key {_key(chart, chart.marked)}{_elements(chart, chart.marked)}")
    return spoken.joined(found)


def _extremes(metric: Measured, side: Side, number: int) -> str:
    """The heads that are on where a metric is largest and smallest, and the layer."""
    values = np.where(side.off, np.nan, metric.values[number])
    if not np.isfinite(values).any():
        return ""
    most, least = int(np.nanargmax(values)), int(np.nanargmin(values))
    words = f"most in head {side.heads[most]}, {spoken.said(float(values[most]))}"
    if values[least] < values[most]:
        words += f", least in head {side.heads[least]}, {spoken.said(float(values[least]))}"
    means = {one.index: side.mean(metric.values[number], one.index) for one in side.layers}
    means = {layer: mean for layer, mean in means.items() if np.isfinite(mean)}
    if len(set(means.values())) > 1:
        top = max(means, key=means.__getitem__)
        words += f"; its mean is largest in layer {top}, {spoken.said(means[top])}"
    return words


def _key(chart: Neurons, at: int) -> str:
    return spoken.tokens_of(chart.keys, *(int(one) for one in chart.spans[at]))


def _elements(chart: Neurons, at: int) -> str:
    """The elements that add most to what a key scores, and take most from it."""
    found = []
    for one in chart.products:
        values = one.values[at]
        if not len(values) or not np.isfinite(values).all():
            continue
        most, least = int(values.argmax()), int(values.argmin())
        words = f"; of {one.names[2]} element {most} is the largest, "
        words += spoken.said(float(values[most]))
        if values[least] < 0:
            words += f", element {least} the least, {spoken.said(float(values[least]))}"
        found.append(f"{words}, their sum {spoken.said(float(values.sum()))}")
    return "".join(found)


def of_answer(_: Spec, chart: Answer) -> str:
    """What adds most to an answer and what speaks most against it: tokens, heads, layers, keys."""
    found = [titled(chart.title, chart.more)]
    for share in chart.texts:
        names = [
            f"{share.prompt.unit} {spoken.tokens_of(share.prompt, at, at + 1)}"
            for at in range(len(share.values))
        ]
        of = "for" if share.name.startswith("“") else "of the"  # an answer, or a text
        where = f"{of} {spoken.visible(share.name, spoken.NAME)}: " if share.name else ""
        found.append(spoken.upper(f"{where}{_ends(names, share.values)}"))
    for kind, numbers in (("head", chart.heads), ("layer", chart.layers)):
        if numbers:
            values = np.array(list(numbers.values()), np.float64)
            found.append(spoken.upper(_ends([f"{kind} {one}" for one in numbers], values)))
    if chart.keys is not None:
        names = [
            f"key {spoken.tokens_of(chart.keys.prompt, int(a), int(b))}"
            for a, b in chart.keys.spans
        ]
        found += [f"{name}: {_ends(names, values)}" for name, values in chart.keys.columns]
    return spoken.joined(found)


def _ends(names: list[str], values: Many) -> str:
    """The largest of some numbers, and the least where that is below 0."""
    real = np.flatnonzero(np.isfinite(values))
    if not len(real):
        return "nothing"
    order = real[np.argsort(-values[real], kind="stable")]
    most = [
        f"{names[at]}, {spoken.said(float(values[at]))}"
        for at in order[:MOST]
        if values[at] > 0 or at == order[0]
    ]
    words = f"most from {'; '.join(most)}"
    below = [f"{names[at]}, {spoken.said(float(values[at]))}" for at in order[::-1][:MOST]
             if values[at] < 0]  # fmt: skip
    words += f"; most against from {'; '.join(below)}" if below else ""
    return f"{words}; their sum is {spoken.said(float(values[real].sum()))}"
