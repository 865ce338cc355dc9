"""Figures of a capture in words: what is true of the weights that they show."""

from __future__ import annotations

import numpy as np

from hgviz.core import Capture, HeadId, finish
from hgviz.figures.content import Facts, Looked
from hgviz.figures.kinds.image import image_of, overlays, query_of
from hgviz.figures.kinds.matrix import zooms_of
from hgviz.figures.kinds.rollout import STANDS_FOR
from hgviz.figures.kinds.stages import Stage, stage_of, stages_of
from hgviz.figures.paper.frame import (
    activation_of,
    level_name,
    map_of,
    query_in,
    signed_head,
    token_in,
)
from hgviz.figures.spec import Spec, points
from hgviz.figures.words import spoken
from hgviz.figures.words.peaks import LARGE, Peak, Peaks, peaks_of, row_peaks
from hgviz.figures.words.tables import names_of
from hgviz.language import counted, listed
from hgviz.maps.links import Links, linked

MOST = 3  # of several tokens that are named
WAYS = 400  # characters of the ways that an answer took


def of_map(spec: Spec, looked: Looked) -> str:
    """The map of one head."""
    capture, head = looked.capture, spec.selection.head_id
    map_of(capture, *head)
    whole = f"Attention map of {_head(capture, looked.facts, head)}"
    return spoken.joined(
        [
            f"{whole}, {spoken.texts_of(capture, head.layer)}",
            *_of_weights(spec, capture, head),
            spoken.heads_off(capture),
            spoken.heads_streaming(capture),
        ]
    )


def of_image(spec: Spec, looked: Looked) -> str:
    """Where a query looks in its image."""
    capture, query = looked.capture, query_of(spec, looked.capture)
    where = "all queries" if query is None else f"query {capture.prompt.pieces[query]}"
    rows, columns = image_of(capture).grid or (0, 0)
    whole = (
        f"Where {where} look{'' if query is None else 's'} in an image{spoken.model_of(capture)}"
    )
    said = []
    for one in overlays(spec, capture):
        if one.head in capture.off:
            continue
        row, column = divmod(int(one.grid.argmax()), columns)
        most = spoken.said(float(one.grid.max()))
        added = f", {spoken.percent(float(one.added.sum()))} on none" if len(one.added) else ""
        said.append(f"head {one.head} most at row {row}, column {column}, {most}{added}")
    return spoken.joined(
        [
            f"{whole} of {rows:,} × {columns:,} patches",
            spoken.upper("; ".join(said)),
            spoken.heads_off(capture),
            spoken.heads_streaming(capture),
        ]
    )


def of_rollout(spec: Spec, looked: Looked) -> str:
    """The one map of a composed capture."""
    capture = looked.capture
    name, _, rest = capture.spec.layers[0].name.partition(": ")
    how, _, ways = rest.partition("; ")
    whole = f"{spoken.upper(name or STANDS_FOR)}{spoken.model_of(capture)} composed to one"
    return spoken.joined(
        [
            f"{whole} ({spoken.visible(how)}), {spoken.texts_of(capture, 0)}" if how else whole,
            *_of_weights(spec, capture, HeadId(0, 0)),
            spoken.visible(ways, WAYS),
            spoken.heads_off(capture),
            spoken.heads_streaming(capture),
        ]
    )


def of_wall(_: Spec, looked: Looked) -> str:
    """All maps of a capture."""
    capture = looked.capture
    layers = [one for one in capture.spec.layers if one.heads]
    heads = [HeadId(one.index, head) for one in layers for head in one.heads]
    on = [head for head in heads if head not in capture.off]
    whole = f"Small maps of all {counted(len(heads), 'head')} in "
    signed = sum(signed_head(capture, *head) for head in on)
    return spoken.joined(
        [
            f"{whole}{counted(len(layers), 'layer')}{spoken.model_of(capture)}, "
            f"{spoken.texts_of(capture)}",
            _sharpest(capture, on),
            f"The weights of {signed:,} of them can be below 0" if signed else "",
            f"Switched off: {spoken.named(capture.off)}" if capture.off else "",
            spoken.heads_streaming(capture),
        ]
    )


def of_levels(spec: Spec, looked: Looked) -> str:
    """Where one token looks, in every stage."""
    capture, facts = looked.capture, looked.facts
    query = query_in(capture.main, spec.selection.query)
    stages = [stage_of(spec, capture, facts, layers, query) for layers in stages_of(capture)]
    asked = spoken.tokens_of(capture.main, query, query + 1)
    whole = f"Where {capture.main.unit} {asked} looks in {counted(len(stages), 'stage')}"
    return spoken.joined(
        [
            f"{whole}{spoken.model_of(capture)}, {spoken.texts_of(capture)}",
            "; ".join(_stage(capture, facts, stage) for stage in stages),
            spoken.heads_off(capture),
            spoken.heads_streaming(capture),
        ]
    )


def of_links(spec: Spec, looked: Looked) -> str:
    """The links of some queries and heads."""
    capture, first = looked.capture, spec.selection.head_id
    map_of(capture, *first)
    links = finish(linked(capture, spec.selection, spec.links))
    if len(links.heads) == 1:
        whole = f"Links of {_head(capture, looked.facts, links.heads[0])}"
    else:
        whole = f"Links of {counted(len(links.heads), 'head')}{spoken.model_of(capture)} ("
        whole += f"{listed(names_of(links), spoken.FEW)})"
    off = [head for head in links.heads if head in capture.off]
    return spoken.joined(
        [
            f"{whole}, {spoken.texts_of(capture, first.layer)}",
            _linked(links),
            f"Switched off, without a link: {spoken.named(off)}" if off else "",
        ]
    )


# --- the parts of it ------------------------------------------------------------------------------


def _head(capture: Capture, facts: Facts, head: HeadId) -> str:
    """A head, of which model, and what is known of it."""
    role = facts[head].role if head in facts else ""
    level = level_name(capture, head.layer)
    known = [f"level {level}" if level[:2] == "1:" else level, activation_of(capture, head)]
    known += [f"role: {spoken.visible(role)}" if role else ""]
    more = "; ".join(filter(None, known))
    return f"head {head}{spoken.model_of(capture)}" + (f" ({more})" if more else "")


def _of_weights(spec: Spec, capture: Capture, head: HeadId) -> list[str]:
    """What stands out in a map, what is marked in it, and how it is reduced."""
    if head in capture.off:
        return ["It is switched off, so that no weight is shown"]
    found = peaks_of(capture, head)
    rows, columns = (1 << zoom for zoom in zooms_of(capture, head, points(spec.width)))
    return [
        _peaks(capture, head.layer, found),
        _gathering(capture, head.layer, found),
        _marked(spec, capture, head),
        f"Each cell is the largest of {rows:,} × {columns:,} weights" if rows * columns > 1 else "",
    ]


def _peaks(capture: Capture, layer: int, found: Peaks) -> str:
    """The largest weight, and where weights are signed the least."""
    if found.most is None:
        return "No query sees any key"
    some = f" of the {found.rows:,} queries that see two keys or more"
    name = "The largest weight" if found.whole else "The weight of largest magnitude"
    name += some if found.rows < found.seeing else ""
    most = spoken.said(found.most.weight), _cell(capture, layer, found.most)
    words = [f"{name} is {most[0]}, from {most[1]}"]
    if found.least is not None:
        words.append(
            f"the least is {spoken.said(found.least.weight)}, from "
            f"{_cell(capture, layer, found.least)}"
        )
    return "; ".join(words)


def _gathering(capture: Capture, layer: int, found: Peaks) -> str:
    """The key that gets most of all weight."""
    if found.column is None:
        return ""
    key = _key(capture, layer, found.column).removeprefix("key ")
    return f"Key {key} gets most, {spoken.percent(found.share)} of all their weight"


def _marked(spec: Spec, capture: Capture, head: HeadId) -> str:
    """The selected query, and where it looks most."""
    chosen = spec.selection
    if chosen.query is None:
        return ""
    layer = head.layer
    row = capture.row(layer, token_in(capture.query_prompt(layer), chosen.query))
    one = map_of(capture, *head)
    weights = np.nan_to_num(one.read(head.head, (row, row + 1))[0])
    at = int(np.abs(weights).argmax())
    if not weights[at]:
        return ""
    asked = _query(capture, layer, row)
    key, weight = _key(capture, layer, at), spoken.said(float(weights[at]))
    return f"Marked: {asked}, which gives most to {key}, {weight}"


def _cell(capture: Capture, layer: int, peak: Peak) -> str:
    return f"{_query(capture, layer, peak.row)} to {_key(capture, layer, peak.column)}"


def _query(capture: Capture, layer: int, row: int) -> str:
    start, end = (int(one) for one in capture.query_spans(layer)[row])
    return f"query {spoken.tokens_of(capture.query_prompt(layer), start, end)}"


def _key(capture: Capture, layer: int, column: int) -> str:
    start, end = (int(one) for one in capture.key_spans(layer)[column])
    return f"key {spoken.tokens_of(capture.key_prompt(layer), start, end)}"


def _sharpest(capture: Capture, heads: list[HeadId]) -> str:
    """The heads whose rows have the largest and the smallest peaks, where that is soon known."""
    maps = {head.layer: map_of(capture, *head) for head in heads}
    ahead = [head for head in heads if not getattr(maps[head.layer], "summarised", False)]
    size = sum(maps[head.layer].shape[1] * maps[head.layer].shape[2] for head in ahead)
    if len(heads) < 2 or size > LARGE:
        return ""
    found = {head: row_peaks(capture, head) for head in heads}
    most, least = max(heads, key=found.__getitem__), min(heads, key=found.__getitem__)
    if found[most] == found[least]:
        return ""
    return (
        f"Head {most} looks most sharply: its queries' largest weight is "
        f"{spoken.said(found[most])} in the mean; head {least} least, {spoken.said(found[least])}"
    )


def _stage(capture: Capture, facts: Facts, stage: Stage) -> str:
    """Where one stage looks most."""
    role = facts[stage.head].role if stage.head in facts else ""
    level = level_name(capture, stage.head.layer)
    name = f"head {stage.head}" + (f" ({spoken.visible(role)})" if role else "")
    name = f"{level}, {name}" if level else name
    if stage.head in capture.off:
        return f"{name}: switched off"
    size = np.where(stage.seen, np.nan_to_num(np.abs(stage.weights)), -1)
    at = int(size.argmax())
    if size[at] <= 0:
        return f"{name}: nowhere"
    start, end = (int(one) for one in stage.spans[at])
    key = spoken.tokens_of(stage.prompt, start, end)
    return f"{name}: most at {key}, {spoken.said(float(stage.weights[at]))}"


def _linked(links: Links) -> str:
    """How many links there are, the strongest of them, and how much of the weight they have."""
    strands = [
        (place, name, strand)
        for place, many in links.strands.items()
        for name, strand in zip(names_of(links), many, strict=True)
    ]
    found = [one for one in strands if len(one[2].keys)]
    if not strands:
        return "The query is a special token, which are left out"
    asked = list(dict.fromkeys(place for place, _, _ in strands))
    queries = listed((_unit(links, place, "queries") for place in asked), MOST)
    count = sum(len(strand.keys) for _, _, strand in strands)
    what = "query" if len(asked) == 1 else "queries"
    keys = counted(len(links.keys), "key")
    start = f"{counted(count, 'link')} from {what} {queries} to {keys}"
    if not found:
        return start
    place, name, strand = max(found, key=lambda one: abs(float(one[2].weights[0])))
    weight, key = spoken.said(float(strand.weights[0])), _unit(links, int(strand.keys[0]), "keys")
    by = f" by head {name}" if not links.single else ""
    by += f" from {_unit(links, place, 'queries')}" if len(asked) > 1 else ""
    words = [start, f"the strongest goes{by} to key {key}, {weight}"]
    total = sum(one.total for _, _, one in strands)
    mine = sum(one.part * one.total for _, _, one in strands)
    if total > 0:
        words.append(f"together they have {spoken.percent(mine / total)} of the weight")
    hidden = sum(one.hidden for _, _, one in strands)
    if hidden > 0 and total > 0:
        words.append(f"{spoken.percent(hidden / total)} lies on special tokens, left out")
    return "; ".join(words)


def _unit(links: Links, place: int, of: str) -> str:
    side = links.queries if of == "queries" else links.keys
    start, end = (int(one) for one in side.tokens[side.shown[place]])
    return spoken.tokens_of(side.prompt, start, end)
