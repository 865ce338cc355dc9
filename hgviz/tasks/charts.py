"""What figures show: pairs of heads, activations, profiles, neurons, reach, similarity, studies.

This module loads matplotlib: it is imported where a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from string import ascii_uppercase

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.analysis.alignment import Alignment, GridAxis, SharedGrid, counterpart
from hgviz.analysis.importance import (
    BAND,
    METHODS,
    bits_per_byte,
    importance,
    random_curves_beside,
    removable_heads,
    saved_share,
)
from hgviz.analysis.metrics import HEADS, metrics_for, row_blocks, signed_heads
from hgviz.analysis.roles import HeadRole, corpus_roles, roles
from hgviz.core import Capture, HeadId, HgvizError, Integers, Prompt, Selection, progress_within
from hgviz.errors import choose, require
from hgviz.figures.attribution import Neurons, Products, ScoreStep
from hgviz.figures.cells import head_details, is_signed, map_of, seen_cells, token_in
from hgviz.figures.charts import (
    Curves,
    Grid,
    Grids,
    Line,
    MetricValues,
    Place,
    Plot,
    Plots,
    Profile,
    ProfileSide,
    Reaches,
    Scores,
    Square,
)
from hgviz.figures.heatmap import Edge, Three
from hgviz.figures.page import Many
from hgviz.figures.spec import Chart, Panel, Spec, bare_name, describe_capture
from hgviz.language import counted
from hgviz.maps import DenseMap, Difference, LazyMap, Projected, SlotMap
from hgviz.maps.anatomy import Anatomy, dissect
from hgviz.maps.tiles import one_thread
from hgviz.study import PruningCurve, Study
from hgviz.tasks.head_similarity import SHARES, ModelRedundancy, Redundancy
from hgviz.tasks.heads import sample_words
from hgviz.tasks.reachability import Reach, Times, names_of

Cells = NDArray[np.bool_]
Facts = Mapping[HeadId, HeadRole]


# --- two heads ------------------------------------------------------------------------------------

MOST_CELLS = 620  # of a side of a map; larger maps are pooled
MOST_MASKED = 1 << 22  # cells that are masked one by one


def pair_chart(a: Capture, b: Capture, selection: Selection) -> Three:
    """A head of A, the head of B beside it, and A - B, on the grid of the tokens that both share.

    selection.beside: another head of B. Raises HgvizError where a capture lacks the head, or both
    share no token.
    """
    head_a = selection.head_id
    map_a = map_of(a, head_a)
    head_b = counterpart(a, b, head_a, selection.beside)
    if head_b is None:
        what = f"B has no head that corresponds to {head_a} of A"
        raise HgvizError(what, "Choose a head of B")
    map_b = map_of(b, head_b)
    grid = SharedGrid.of(Alignment(a, b), head_a, head_b)
    require(all(grid.shape), "these two captures share no token", "Capture the same text with both")
    rows, columns = grid.rows, grid.columns
    if not grid.is_identity:
        map_a, map_b = Projected(map_a, rows.a, columns.a), Projected(map_b, rows.b, columns.b)
    zoom = max(0, int(np.ceil(np.log2(max(grid.shape) / MOST_CELLS))))
    difference = Difference(map_a, map_b, {head_a.head: head_b.head}, off=grid.heads_off)
    weights = tuple(
        maps.read(head.head, zoom=zoom)
        for maps, head in ((map_a, head_a), (map_b, head_b), (difference, head_a))
    )
    in_a, in_b = (_masked_cells(grid, side, zoom) for side in (0, 1))
    in_both = in_a & in_b
    if not grid.is_identity:
        in_both = _pool(np.outer(rows.in_both, columns.in_both), zoom) & (in_a | in_b)
    notes = [] if grid.is_identity else ["Hatched: in only one of the two."]
    notes += [
        f"Head {head} is off in {side} and counts as 0 in A − B."
        for side, head, off in zip("AB", (head_a, head_b), grid.heads_off, strict=True)
        if off
    ]
    return Three(
        (weights[0], weights[1], weights[2]),
        (in_a, in_b, in_both),
        grid.shape,
        zoom,
        is_signed(a, head_a) or is_signed(b, head_b),
        _edge(a.query_prompt(head_a.layer), rows),
        _edge(a.key_prompt(head_a.layer), columns),
        (a.spec.name, b.spec.name),
        title=f"Head {head_a}" if head_a == head_b else f"Head {head_a} of A, {head_b} of B",
        notes=tuple(notes),
        about={
            "model": f"{a.spec.name}, {b.spec.name}",
            "checkpoint": f"{a.spec.digest}, {b.spec.digest}",
            "heads": f"{head_a}, {head_b}",
            "text": f"{a.main.digest}, {b.main.digest}",
        },
    )


def _edge(prompt: Prompt, axis: GridAxis) -> Edge:
    return Edge(prompt, np.where(axis.a.there[:, None], axis.spans[0], -1))


def _masked_cells(grid: SharedGrid, side: int, zoom: int) -> Cells:
    """Which cells of 2^zoom one side has."""
    capture, head = (grid.a, grid.head_a) if side == 0 else (grid.b, grid.head_b)
    if grid.is_identity:
        return seen_cells(capture, head.layer, zoom)
    rows, columns = ((axis.a, axis.b)[side] for axis in (grid.rows, grid.columns))
    cells = np.outer(rows.there, columns.there)
    if cells.size <= MOST_MASKED:
        own = DenseMap(seen_cells(capture, head.layer).astype(np.float32)[None], (0,), False)
        cells &= Projected(own, rows, columns).read(0) > 0
    return _pool(cells, zoom)


def _pool(cells: Cells, zoom: int) -> Cells:
    for axis in (0, 1):
        starts = np.arange(0, cells.shape[axis], 1 << zoom)
        cells = np.logical_or.reduceat(cells, starts, axis=axis)
    return cells


# --- activations ----------------------------------------------------------------------------------

STEP = 1e-5  # of the central difference
MOST_SCORE, SCORES = 4.0, 321  # range and number of the scores that are drawn


def activation_chart(names: Sequence[str]) -> Plots:
    """Activations and their derivatives over scores, side by side."""
    kinds = list(dict.fromkeys(names))
    require(kinds, "there are no heads, and so no activation to draw")
    x = np.linspace(-MOST_SCORE, MOST_SCORE, SCORES)
    weights, slopes = (
        tuple(Line(ACTIVATIONS[name].label, x, function(name, x)) for name in kinds)
        for function in (weight_of_score, slope_of_score)
    )
    notes = []
    for statistic, score in (("lse", 0), ("sum", 1)):
        labels = [ACTIVATIONS[name].label for name in kinds
                  if ACTIVATIONS[name].statistic == statistic]  # fmt: skip
        if labels:
            notes.append(f"{', '.join(labels)}: a row of two keys, the other of score {score}.")
    if "ymish" in kinds:
        notes.append("ymish is applied to rows of norm 1, so its scores are between −1 and 1.")
    return Plots(
        (
            Plot("Weight", "Score", "Weight", weights),
            Plot("Derivative", "Score", "d weight / d score", slopes, most=1.0),
        ),
        title="Attention activations",
        notes=tuple(notes),
        about={"activations": ", ".join(kinds)},
    )


def weight_of_score(name: str, scores: Many) -> Many:
    """The weights (n,) of a key with such scores.

    Of activations whose rows share a sum, beside one other key: of score 0 for exponentials, so
    that softmax is the logistic function, and of 1 for kernels and powers.
    """
    activation, statistic = ACTIVATIONS[name], None
    if activation.statistic == "lse":
        scores, terms = activation.split(scores, np)
        statistic = np.logaddexp(terms, activation.split(np.zeros(1), np)[1])
        if activation.sink is not None:
            statistic = np.logaddexp(statistic, activation.sink)
    elif activation.statistic == "sum":
        if activation.features is not None:
            scores = np.maximum(scores, 0.0)  # products of feature maps are never negative
        statistic = scores**activation.power + 1.0
    weights: Many = np.asarray(activation.apply(scores, statistic, np), float)
    return weights


def slope_of_score(name: str, scores: Many) -> Many:
    """The derivatives (n,) of weight_of_score, by central differences."""
    rise = weight_of_score(name, scores + STEP) - weight_of_score(name, scores - STEP)
    return rise / (2 * STEP)


# --- spectra --------------------------------------------------------------------------------------

MOST_SIDE = 2048  # positions of a map whose singular values are taken at once
HELD = 0.9  # of their sum


def spectrum_chart(captures: Sequence[Capture], head: HeadId) -> Plots:
    """The cumulative singular values of a head's map in each capture (Wang et al. 2020, figure 1).

    Raises HgvizError for captures without the head, and for maps of more than 2,048 positions.
    """
    lines, notes = [], []
    for name, capture in zip(_side_names(captures), captures, strict=True):
        maps = capture.maps[head.layer] if head.layer < len(capture.maps) else None
        if maps is None or head.head not in maps.heads:
            what = f"head {head} is not in the capture of {name}"
            raise HgvizError(what, "Choose a head by --head; `hgviz info` lists them")
        require(
            max(maps.shape[1:]) <= MOST_SIDE,
            f"the map of head {head} has {maps.shape[1]:,} x {maps.shape[2]:,} weights: "
            f"singular values are computed for at most {MOST_SIDE:,} positions",
            "Capture a shorter text",
        )
        with one_thread():
            sizes = np.linalg.svd(maps.read(head.head).astype(float), compute_uv=False)
        held = np.cumsum(sizes) / (sizes.sum() or 1.0)
        count = min(int(np.searchsorted(held, HELD)) + 1, len(held))
        lines.append(Line(name, np.arange(1.0, len(held) + 1), held))
        of = f"{name}: " if len(captures) > 1 else ""
        notes.append(f"{of}{count:,} of {len(held):,} values hold {100 * HELD:.0f} % of the sum.")
    plot = Plot("", "Singular values, largest first", "Cumulative share", tuple(lines),
                limits=(0.0, 1.0))  # fmt: skip
    about = _profile_about(captures, ()) | {"head": str(head)}
    return Plots((plot,), title=f"Singular values of head {head}", notes=tuple(notes), about=about)


# --- profiles -------------------------------------------------------------------------------------

ALWAYS = ("entropy", "distance", "positive", "negative")  # shown where they have values
PLACES = ("first", "previous", "same", "next", "last", "separators", "diagonal")
LEAST_SHARE = 0.25  # of a head's attention to a place, from which the place is shown
MOST_METRICS = 6  # where none is named
SLOW = ("rare", "convolution", "centre", "width", "variance", "nearest")  # take another pass


def profile_chart(
    captures: Sequence[Capture], metrics: Sequence[str] = (), facts: Facts | None = None
) -> Profile:
    """Metrics of all heads over the layers of captures.

    metrics: names of METRICS; without any, entropy, distance and the sums of signed heads, then the
    places that some head gives a quarter of its attention, six in all. facts: of the one capture,
    where they are measured already. Raises HgvizError for a metric that is unknown or has no value
    for these heads, and for captures without heads.
    """
    known = metrics_for(HEADS)
    for name in metrics:
        choose(name, known, "metric")
    sides = _profile_sides(captures)
    what = "there are no heads to profile: none is captured, or all are removed"
    require(any(side.heads for side in sides), what)
    is_slow = any(name in SLOW for name in metrics)
    if facts and len(captures) == 1 and not is_slow and facts.keys() >= {*sides[0].heads}:
        facts_by_side = [facts]
    else:
        facts_by_side = []
        for number, capture in enumerate(captures):
            with progress_within(number, number + 1, len(captures)):
                measured_roles = (
                    corpus_roles({0: capture}.__getitem__, [0]).heads if is_slow else roles(capture)
                )
            facts_by_side.append(measured_roles)
    unit = captures[0].main.unit
    unit = "token" if unit in ("slot", "state") else unit

    def values(name: str) -> tuple[Many, ...]:
        pairs = zip(sides, facts_by_side, strict=True)
        return tuple(
            np.array([facts[head].metrics[name] for head in side.heads], float)
            for side, facts in pairs
        )

    measured = {name: MetricValues(name, metric.named(unit), values(name))
                for name, metric in known.items()}  # fmt: skip
    with_values = [name for name, metric in measured.items()
                   if np.isfinite(np.concatenate(metric.values)).any()]  # fmt: skip
    for name in metrics:
        require(
            name in with_values,
            f"the metric {name!r} has no values for these heads: those that have are "
            f"{', '.join(with_values)}",
            "Choose one of these",
        )
    names = dict.fromkeys(metrics) or _default_metrics(measured, with_values, sides)
    chosen = [measured[name] for name in names]
    title = "Layer by layer"
    more = f"{sides[0].name}  ·  {len(sides[0].layers):,} layers, {len(sides[0].heads):,} heads"
    if len(sides) > 1:
        title = f"{', '.join(side.name[:1] for side in sides[:-1])} and {sides[-1].name[:1]}"
        more = "layer by layer"
    return Profile(
        sides, tuple(chosen), title=title, more=more,
        notes=tuple(_profile_notes(captures, sides, chosen)),
        about=_profile_about(captures, metrics),
    )  # fmt: skip


def _default_metrics(
    measured: Mapping[str, MetricValues], with_values: Sequence[str], sides: Sequence[ProfileSide]
) -> list[str]:
    """ALWAYS, then the places with the largest share of any head that is on, in their order."""
    always = [name for name in ALWAYS if name in with_values]
    shares = {}
    for name in PLACES:
        pairs = zip(sides, measured[name].values, strict=True)
        on = np.concatenate([values[~side.off] for side, values in pairs])
        shares[name] = float(np.nanmax(on, initial=0.0))
    places = [name for name in PLACES if shares[name] >= LEAST_SHARE]
    places = sorted(places, key=lambda name: -shares[name])[: max(0, MOST_METRICS - len(always))]
    return [*always, *sorted(places, key=PLACES.index)]


def _profile_sides(captures: Sequence[Capture]) -> tuple[ProfileSide, ...]:
    sides = []
    for name, capture in zip(_side_names(captures), captures, strict=True):
        heads = tuple(
            HeadId(layer, head)
            for layer, maps in enumerate(capture.maps) if maps is not None
            for head in maps.heads
        )  # fmt: skip
        off = np.array([head in capture.off for head in heads], bool)
        sides.append(ProfileSide(name, tuple(places_of(capture)), heads, off))
    return tuple(sides)


def _side_names(captures: Sequence[Capture]) -> list[str]:
    """The model's name of one capture; of several a letter, with the names of models or files where
    these differ, else the number of heads that are off."""
    models = [bare_name(capture.spec.name) for capture in captures]
    if len(captures) == 1:
        return models
    letters = [*ascii_uppercase, *map(str, range(27, len(captures) + 1))][: len(captures)]
    for names in (models, [bare_name(capture.path) for capture in captures]):
        if all(names) and len(set(names)) == len(names):
            return [f"{letter}  {name}" for letter, name in zip(letters, names, strict=True)]
    return [
        f"{letter}  {len(capture.off):,} switched off" if capture.off else letter
        for letter, capture in zip(letters, captures, strict=True)
    ]


def places_of(capture: Capture) -> list[Place]:
    """The layers of a model as figures name them."""
    spec, levels = capture.spec, capture.spec.levels

    def rank(level: int) -> int:
        """How coarse a level is among those of its text."""
        sequence = levels[level].sequence
        return [one.index for one in levels if one.sequence == sequence].index(level)

    def level_name(level: int) -> str:
        if spec.two_texts:
            return {"source": "encoder", "target": "decoder"}.get(levels[level].sequence, "")
        return levels[level].label

    return [
        Place(
            layer.index, layer.name, layer.role, level_name(layer.level), rank(layer.level),
            rank(layer.key_level), levels[layer.level].sequence,
            capture.maps[layer.index] is not None,
        )
        for layer in spec.layers
    ]  # fmt: skip


def _profile_notes(
    captures: Sequence[Capture], sides: Sequence[ProfileSide], metrics: Sequence[MetricValues]
) -> list[str]:
    notes = ["A mark is a head; a line is the mean of the heads of a layer."]
    if count := sum(int(side.off.sum()) for side in sides):
        notes.append(f"Hollow: {counted(count, 'head')} switched off, not in the mean.")
    for capture, side in zip(captures, sides, strict=True):
        of_side = f" of {side.name[:1]}" if len(sides) > 1 else ""
        if missing := [layer.index for layer in side.layers if not layer.known]:
            layers = f"Layers {missing[0]} to {missing[-1]} are"
            layers = layers if len(missing) > 1 else f"Layer {missing[0]} is"
            notes.append(f"{layers} not captured{of_side}.")
        rows, keys = max(
            (maps.shape[1:] for maps in capture.maps if maps is not None), default=(0, 0)
        )
        read = sum(block.stop - block.start for block in row_blocks(rows, keys))
        if sample := sample_words(read, rows):
            notes.append(f"{sample.removeprefix('; ').capitalize()}{of_side}.")
    has_signed = any(
        any(signed_heads(layer, maps))
        for capture in captures
        for layer, maps in zip(capture.spec.layers, capture.maps, strict=True)
        if maps is not None
    )
    if has_signed and any(metric.name not in ("positive", "negative") for metric in metrics):
        notes.append("Signed weights count by magnitude, each row divided by its sum of "
                     "magnitudes, except in the sums of either sign.")  # fmt: skip
    return notes


def _profile_about(captures: Sequence[Capture], metrics: Sequence[str]) -> dict[str, str]:
    def unique(values: Sequence[str]) -> str:
        return ", ".join(dict.fromkeys(filter(None, values)))

    return {
        "model": unique([bare_name(capture.spec.name) for capture in captures]),
        "checkpoint": unique([capture.spec.digest for capture in captures]),
        "metrics": ", ".join(metrics),
        "text": unique([capture.prompt.digest for capture in captures]),
        "target": unique(
            [capture.target.digest for capture in captures if capture.target is not None]
        ),
        "off": "; ".join(
            ", ".join(map(str, sorted(capture.off))) for capture in captures if capture.off
        ),
    }


# --- neurons --------------------------------------------------------------------------------------

MOST_KEYS = 32  # that are drawn
ORDERS = ("text", "weight")
STEPS_SHOWN = ("product", "position", "score", "normed", "weight")  # kinds of maps.anatomy


def neurons_chart(capture: Capture, selection: Selection, order: str = "text") -> Neurons:
    """One query of a head with the keys it sees, from vector elements to weights.

    The last token is the query where none is selected; the strongest key is marked where none is.
    Of many keys those with the largest weights are drawn, in the order of the text or of their
    weights. Raises HgvizError for a head or token that does not exist, and for dense maps.
    """
    head, layer = selection.head_id, selection.layer
    maps = map_of(capture, head)
    require(
        not isinstance(maps, SlotMap),
        "queries attend to slots in this model, not to tokens",
        "Show its slots",
    )
    if not isinstance(maps, LazyMap):
        what = "this capture holds only weights, without queries and keys"
        raise HgvizError(what, "Capture the text again, without --dense")
    require(order in ORDERS, f"unknown order {order!r}: there are {', '.join(ORDERS)}")
    prompt, keys = capture.query_prompt(layer), capture.key_prompt(layer)
    query = token_in(prompt, selection.query)
    row = min(capture.row(layer, query), maps.shape[1] - 1)
    anatomy = dissect(maps, selection.head, row)
    sizes = np.abs(anatomy.weights)
    seen = np.flatnonzero(anatomy.seen | (sizes > 0))
    columns: Integers = seen[np.argsort(-sizes[seen], kind="stable")][:MOST_KEYS]
    columns = np.sort(columns) if order == "text" else columns
    marked = int(sizes[columns].argmax()) if len(columns) else None
    if selection.key is not None:
        key = capture.column(layer, token_in(keys, selection.key))
        marked = next(iter(np.flatnonzero(columns == key).tolist()), None)
    notes = {
        _strongest_note(anatomy, columns, len(seen)): len(columns) < len(seen),
        "The last element is −½|k|², times 1.": anatomy.query.activation.of_keys is not None,
        "The query sees no key; its row is uniform.": anatomy.filled,
        "This head is switched off.": head in capture.off,
    }
    about = {
        "layer": f"{layer} ({capture.spec.layers[layer].name})",
        "head": str(selection.head),
        "query": f"{query} (row {row})",
    }
    return Neurons(
        (prompt, np.asarray(capture.query_spans(layer)[row])),
        keys,
        capture.key_spans(layer)[columns],
        columns,
        tuple(_products(anatomy, columns)),
        tuple(
            ScoreStep(stage.kind, stage.title, stage.values[columns])
            for stage in anatomy.stages
            if stage.kind in STEPS_SHOWN
        ),
        marked,
        title=f"Head {head}",
        more=head_details(capture, head, f"query {prompt.unit} {query:,}"),
        notes=tuple(note for note, applies in notes.items() if applies),
        about=describe_capture(capture, about),
    )


def _strongest_note(anatomy: Anatomy, columns: Integers, seen: int) -> str:
    sizes = np.abs(anatomy.weights)
    share = 100 * float(sizes[columns].sum() / sizes.sum()) if sizes.sum() else 0.0
    of_sizes = " of the magnitudes" if (anatomy.weights < 0).any() else ""
    return (
        f"The {len(columns)} keys with the largest weights of {seen:,} it sees: "
        f"{share:.3g} % of the total{of_sizes}."
    )


def _products(anatomy: Anatomy, columns: Integers) -> list[Products]:
    """The products of q and k and, with relative positions, of q and each distance."""

    def titles(left: str, right: str) -> tuple[str, str, str]:
        return left, right, f"({left}) × {right}" if "+" in left else f"{left} × {right}"

    query = anatomy.query
    by_key = query.with_keys(anatomy.keys[columns])
    content = Products(titles(*query.names), by_key.left, by_key.right, by_key.products)
    distances = (query.with_distances(range(column, column + 1)) for column in columns.tolist())
    by_distance = [products for products in distances if products is not None]
    # a single number a key is a step of its own already, unless it is all there is
    if not by_distance or (len(by_distance[0].left) == 1 and by_key.products.any()):
        return [content]
    position = Products(
        titles(*query.position_names),
        by_distance[0].left,
        np.concatenate([products.right for products in by_distance]),
        np.concatenate([products.products for products in by_distance]),
    )
    return [content, position] if by_key.products.any() else [position]


# --- reach and similarity -------------------------------------------------------------------------

LEAST_SHOWN = 1e-8  # share of influence that a figure shows
SIMILARITIES = {  # by whether they are of weights: in words, and their limits
    True: ("Cosine similarity of W_QK of two heads: 0 nothing in common, 1 identical", (-1.0, 1.0)),
    False: ("Jensen-Shannon distance of the maps of two heads: 0 identical, 1 nothing in common",
            (0.0, 1.0)),
}  # fmt: skip


def reach_panel(
    spec: Spec,
    reaches: Sequence[Reach],
    times: Times | None = None,
    options: Sequence[str] = (),
    models: Sequence[str | Path] = (),
) -> Panel:
    """A figure of reach and times.

    options: those of the command line that give the text and the lengths; models: the paths.
    """
    names = names_of(reaches)
    squares, lines = [], []
    for name, reach in zip(names, reaches, strict=True):
        squares.append(Square(name, reach.own / (reach.own.max(initial=0.0) or 1.0)))
        if (source := reach.source) is not None:
            shares = source / (source.max(initial=0.0) or 1.0)
            squares.append(Square(f"{name}, by source token", shares, "Source token"))
        shares = reach.shares[: reach.steady]
        lines.append(Line(name, np.arange(len(shares), dtype=float), shares))
    values = np.concatenate([line.y for line in lines])
    limits = (LEAST_SHOWN, 2.0) if values[values > 0].min(initial=1.0) < LEAST_SHOWN else None
    plots = [
        Plot("Influence over distance", "Tokens apart", "Relative gradient", tuple(lines),
             limits=limits, log=(False, True))
    ]  # fmt: skip
    notes = ["Influence: mean gradient at each distance, relative to the largest mean."]
    notes += ["Lines end where it is exactly 0."] if (values == 0).any() else []
    if times is not None:
        lengths = np.array(times.lengths, float)
        ticks = tuple((float(length), f"{length:,}") for length in times.lengths)
        timed = tuple(
            Line(name, lengths, 1000 * np.array(seconds))
            for name, seconds in zip(names, times.seconds, strict=True)
        )
        plots.append(
            Plot("Time of a forward pass", "Tokens", "Milliseconds", timed, ticks, log=(True, True))
        )
        notes.append("Times are medians; the models are timed in turns.")
    tokens = dict.fromkeys(f"{len(reach.main):,}" for reach in reaches)
    content = Reaches(
        tuple(squares),
        Plots(tuple(plots), notes=tuple(notes)),
        tuple(options),
        title="Reach of outputs",
        more=f"{' and '.join(tokens)} tokens",
        notes=tuple(reach.describe(name) for name, reach in zip(names, reaches, strict=True)),
        about={
            "model": ", ".join(bare_name(reach.spec.name) for reach in reaches),
            "checkpoint": ", ".join(reach.spec.digest for reach in reaches),
            "text": ", ".join(dict.fromkeys(reach.prompt.digest for reach in reaches)),
        },
    )
    return Panel(spec, content, tuple(map(str, models)))


def redundancy_panel(
    spec: Spec, measured: ModelRedundancy, sources: Sequence[str | Path] = ()
) -> Panel:
    """A figure of redundancy; sources: the paths of the checkpoint or of the captures."""
    layers, is_of_weights = measured.layers, measured.is_of_weights
    grids = []
    for layer in layers:
        heads = tuple(str(head.head) for head in layer.heads)
        grids.append(Grid(f"Layer {layer.layer.index}", layer.alike, heads, heads, "Head", "Head"))
    unit, limits = SIMILARITIES[is_of_weights]
    ribbon = "Shaded: range over layers." if is_of_weights and len(grids) > 1 else ""
    plots = Plots((_plots_of_weights if is_of_weights else _plots_of_maps)(layers), ribbon=ribbon)
    content = Grids(
        tuple(grids), unit, limits, plots,
        title="Similarity of heads", more=bare_name(measured.name),
        notes=measured.notes,
        about={"model": bare_name(measured.name), "checkpoint": measured.digest},
    )  # fmt: skip
    return Panel(spec, content, tuple(map(str, sources)))


def _plots_of_weights(layers: Sequence[Redundancy]) -> tuple[Plot, ...]:
    """The number of singular values by layer, and the share of energy that the largest hold."""
    spectra = [layer.stacked for layer in layers if layer.stacked is not None]
    counts: dict[str, list[float]] = {"all": [spectrum.most for spectrum in spectra]}
    for share in SHARES[::-1]:
        counts[f"for {100 * share:.0f} %"] = [spectrum.ranks()[share] for spectrum in spectra]
    longest = max(len(spectrum.values) for spectrum in spectra)
    shares = np.stack([
        np.pad(spectrum.captured, (0, longest - len(spectrum.values)), mode="edge")
        for spectrum in spectra
    ])  # fmt: skip
    ends = (shares.min(0), shares.max(0)) if len(shares) > 1 else (None, None)
    mean = Line("mean over layers", np.arange(1, longest + 1, dtype=float), shares.mean(0), *ends)
    across, up = "Dimensions, largest first", "Share of energy"
    return (
        _plot_by_layer("Dimensions of all heads", "Dimensions", layers, counts),
        Plot("Cumulative energy", across, up, (mean,), most=1.0),
    )


def _plots_of_maps(layers: Sequence[Redundancy]) -> tuple[Plot, ...]:
    """The mean distance of two heads of each layer, and that of the most similar two."""
    distances = {
        "mean of all pairs": [layer.mean for layer in layers],
        "most similar pair": [layer.pairs[0][2] if layer.pairs else np.nan for layer in layers],
    }
    return tuple(
        _plot_by_layer(name.capitalize(), "Distance", layers, {name: values}, most=1.0)
        for name, values in distances.items()
    )


def _plot_by_layer(
    title: str, up: str, layers: Sequence[Redundancy], lines: Mapping[str, Sequence[float]],
    most: float = 0.0,
) -> Plot:  # fmt: skip
    """Lines over layers, with the numbers of at most a dozen of these."""
    numbers = [layer.layer.index for layer in layers]
    ticks = tuple((float(number), str(number)) for number in numbers[:: -(-len(numbers) // 12)])
    x = np.array(numbers, float)
    drawn = tuple(Line(name, x, np.array(values, float)) for name, values in lines.items())
    return Plot(title, "Layer", up, drawn, ticks, most=most)


# --- studies --------------------------------------------------------------------------------------

X_LABELS = {
    "heads": "Heads switched off",
    "parameters": "Parameters of heads removed",
    "flops": "FLOPs of heads removed",
    "time": "Milliseconds per pass",
}
MOST_TOGETHER = 4  # methods in one pair of axes; more have a panel each


def study_chart(
    kind: str, studies: Sequence[Study], methods: Sequence[str] = (), axis: str = "heads"
) -> Chart:
    """The chart of studies of one of two kinds, "scores" of the first study and method, or "curve".

    axis: one of figures.spec.AXES. Raises HgvizError for what was not measured.
    """
    if kind == "scores":
        return scores_chart(studies[0], *methods[:1])
    return curves_chart(studies, methods, axis)


def scores_chart(study: Study, method: str = "") -> Scores:
    """Heads by one score, most important first; method "": the first that was measured."""
    measured = (row.name for row in METHODS.values() if row.is_measured(study))
    scores = importance(study, method or next(measured, "signed"))
    row = scores.method
    order = [head for head in np.argsort(scores.rank) if scores.rank[head]]
    groups, names = _groups(study)
    direction = "" if row.needed > 0 else ", low for important heads"
    return Scores(
        tuple(str(study.heads[head]) for head in order),
        scores.score[order], scores.low[order], scores.high[order],
        tuple(groups[head] for head in order), names,
        f"{row.label}, {row.unit}" if row.unit else row.label,
        title=f"Importance of {len(order)} heads",
        more=f"{study.spec.name}, {row.name}",
        notes=(f"{row.formula}{direction}; {study.amount(scores.rows)} of {study.data}, "
               "95 % intervals",),
        about=_studies_about([study], row.name),
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


def curves_chart(
    studies: Sequence[Study], methods: Sequence[str] = (), axis: str = "heads"
) -> Curves:
    """Pruning curves over the band of random orders.

    Of one study the score itself, a few methods in one pair of axes; of several the change from
    each whole model, a panel for each method and a line for each study, over the band of all their
    random orders. Raises HgvizError where there is no curve.
    """
    is_change, is_timed = len(studies) > 1, axis == "time"
    by_study = [_newest_curves(study, methods, axis) for study in studies]
    first, study = next(iter(by_study[0].values())), studies[0]
    unit = "bits per byte"
    if is_score := bits_per_byte(study, first) is None:
        unit = first.unit.replace("_", " ")

    def line(study: Study, curve: PruningCurve, label: str) -> Line:
        k, k_low = removable_heads(curve)
        marked = f"{k}" if is_change else f"{k}, at least {k_low}"
        mark, y = int(np.searchsorted(curve.removed, k)), _y(study, curve, is_change)
        return Line(label, _x(study, curve, axis), *y, mark, marked)

    lines: dict[str, tuple[Line, ...]] = {}
    for study_, curves, model in zip(studies, by_study, _model_names(studies), strict=True):
        for name, curve in curves.items():
            label = model if is_change else name
            lines[name] = (*lines.get(name, ()), line(study_, curve, label))
    randoms = [
        (study, curve)
        for study, curves in zip(studies, by_study, strict=True)
        for curve in random_curves_beside(
            study, max(curves.values(), key=lambda curve: len(curve.order))
        )
    ]
    band = None if is_timed or not randoms else _band(randoms, axis, is_change)
    every_line = [line for panel in lines.values() for line in panel]
    shown = {"": tuple(every_line)} if not is_change and len(lines) <= MOST_TOGETHER else lines
    notes = [f"{study.amount(len(first.rows))} of {study.data}, not used for the orders"]
    if is_score and (is_timed or any(len(panel) > 1 for panel in shown.values())):
        # the ribbons of these lines would hide each other
        widths = [line.high[1:] - line.low[1:] for line in every_line
                  if line.low is not None and line.high is not None]  # fmt: skip
        half = float(np.median(np.concatenate(widths))) / 2
        notes[0] += f"; 95 % interval of a point: about ± {half:.1f}"
    if is_timed:
        notes.append("Median time of pruned models on 16 texts, on one core, in the order in "
                     "which heads are removed; random orders not timed")  # fmt: skip
    up = f"Change of {unit}" if is_change else unit.capitalize()
    return Curves(
        shown, X_LABELS[axis], up + (", points" if is_change else ", %") * is_score, band,
        banded=f"middle 80 % of {len(randoms)} random orders, and their median" if band else "",
        mark="k*",
        marked=f"at most 1 point of {first.unit.replace('_', ' ')} lost",
        percent=axis in ("parameters", "flops"),
        timed=is_timed,
        title="Pruning curve",
        more=f"{len(studies)} models" if is_change else study.spec.name,
        notes=tuple(notes),
        about=_studies_about(studies, ", ".join(lines)),
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
        f"the study has no pruning curve{f' of {missing[0]}' if missing else ''}",
        "Run hgviz curve, with --method for the score",
    )
    return curves


def _y(study: Study, curve: PruningCurve, is_change: bool) -> tuple[Many, Many | None, Many | None]:
    """The score in per cent, or its change in points, with its interval; of language models bits
    per byte without one."""
    if (bits := bits_per_byte(study, curve)) is not None:
        return bits - bits[0] if is_change else bits, None, None
    names = ("change", "change_low", "change_high") if is_change else ("values", "low", "high")
    y, low, high = (100 * getattr(curve, name).astype(float) for name in names)
    return y, low, high


def _x(study: Study, curve: PruningCurve, axis: str) -> Many:
    if axis == "heads":
        return curve.removed.astype(float)
    if axis != "time":
        return saved_share(study, curve, axis)[curve.removed]
    if curve.times is None:
        do = "Run hgviz curve with --time, or draw the curve over heads"
        raise HgvizError(f"the curve of {curve.method} has no times", do)
    return curve.times[:, 1].astype(float)


def _band(randoms: Sequence[tuple[Study, PruningCurve]], axis: str, is_change: bool) -> Line:
    """The median and quantiles of random orders at the numbers of heads that all of them have.

    Over parameters or FLOPs these are at the mean of what such orders save.
    """
    common = reduce(np.intersect1d, (curve.removed for _, curve in randoms))
    at = [np.searchsorted(curve.removed, common) for _, curve in randoms]
    pairs = list(zip(randoms, at, strict=True))
    y = [_y(study, curve, is_change)[0][points] for (study, curve), points in pairs]
    x = [_x(study, curve, axis)[points] for (study, curve), points in pairs]
    low, median, high = np.quantile(y, [BAND[0], 0.5, BAND[1]], axis=0)
    return Line("", np.mean(x, axis=0), median, low, high)


def _model_names(studies: Sequence[Study]) -> list[str]:
    """The names of the models, with a number where two have the same."""
    names = [study.spec.name for study in studies]
    return [
        name if name and names.count(name) == 1 else f"{name or 'model'} ({number})"
        for number, name in enumerate(names, 1)
    ]


def _studies_about(studies: Sequence[Study], methods: str) -> dict[str, str]:
    """What identifies the studies, for the metadata of a file."""
    return {
        "model": ", ".join(study.spec.name for study in studies),
        "checkpoint": ", ".join(study.spec.digest for study in studies),
        "data": ", ".join(dict.fromkeys(study.data for study in studies)),
        "data digest": ", ".join(dict.fromkeys(study.data_digest for study in studies)),
        "seed": ", ".join(str(study.seed) for study in studies),
        "methods": methods,
    }
