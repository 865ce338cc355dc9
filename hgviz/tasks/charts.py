"""What figures show: pairs of heads, activations, profiles, neurons, and charts of studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.importance import (
    BAND,
    METHODS,
    bits_per_byte,
    importance,
    random_curves_beside,
    removable_heads,
    saved_share,
)
from hgviz.core import Capture, HeadId, HgvizError, Integers, Selection, progress_within
from hgviz.errors import choose, require
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.analysis.alignment import GridAxis, SharedGrid
    from hgviz.analysis.roles import HeadRole
    from hgviz.figures.attribution import Neurons, Products
    from hgviz.figures.charts import (
        Curves,
        Line,
        MetricValues,
        Place,
        Plots,
        Profile,
        ProfileSide,
        Scores,
    )
    from hgviz.figures.heatmap import Edge, Three
    from hgviz.figures.page import Many
    from hgviz.figures.spec import Chart
    from hgviz.maps.anatomy import Anatomy, ElementProducts
    from hgviz.study import PruningCurve, Study

Cells = NDArray[np.bool_]
Facts = Mapping[HeadId, "HeadRole"]


# --- two heads ------------------------------------------------------------------------------------

MOST_CELLS = 620  # of a side of a map; larger maps are pooled
MOST_MASKED = 1 << 22  # cells that are masked one by one


def pair_chart(
    a: Capture, b: Capture, selection: Selection, names: tuple[str, str] = ("", "")
) -> Three:
    """A head of A, the head of B beside it, and A - B, on the grid of the tokens that both share.

    selection.beside: another head of B. Raises HgvizError where a capture lacks the head, or both
    share no token.
    """
    from hgviz.analysis.alignment import Alignment, SharedGrid, counterpart
    from hgviz.figures.cells import is_signed, map_of
    from hgviz.figures.heatmap import Three
    from hgviz.maps import Difference, Projected

    head_a = selection.head_id
    map_a = map_of(a, head_a)
    head_b = counterpart(a, b, head_a, selection.beside)
    if head_b is None:
        raise HgvizError(
            f"B has no head that corresponds to {head_a} of A",
            "Choose a head of B",
        )
    map_b = map_of(b, head_b)
    grid = SharedGrid.of(Alignment(a, b), head_a, head_b)
    require(all(grid.shape), "these two captures share no token", "Capture the same text with both")
    rows, columns = grid.rows, grid.columns
    if not grid.is_identity:
        map_a, map_b = Projected(map_a, rows.a, columns.a), Projected(map_b, rows.b, columns.b)
    zoom = max(0, int(np.ceil(np.log2(max(grid.shape) / MOST_CELLS))))
    difference = Difference(map_a, map_b, {head_a.head: head_b.head}, off=grid.heads_off)
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
        (
            map_a.read(head_a.head, zoom=zoom),
            map_b.read(head_b.head, zoom=zoom),
            difference.read(head_a.head, zoom=zoom),
        ),
        (in_a, in_b, in_both),
        grid.shape,
        zoom,
        is_signed(a, head_a) or is_signed(b, head_b),
        _edge(a.query_prompt(head_a.layer), rows),
        _edge(a.key_prompt(head_a.layer), columns),
        (names[0] or a.spec.name, names[1] or b.spec.name),
        title=f"Head {head_a}" if head_a == head_b else f"Head {head_a} of A, {head_b} of B",
        notes=tuple(notes),
        about={
            "model": f"{a.spec.name}, {b.spec.name}",
            "checkpoint": f"{a.spec.digest}, {b.spec.digest}",
            "heads": f"{head_a}, {head_b}",
            "text": f"{a.main.digest}, {b.main.digest}",
        },
    )


def _edge(prompt: object, axis: GridAxis) -> Edge:
    from hgviz.figures.heatmap import Edge

    spans: Integers = np.where(axis.a.there[:, None], axis.spans[0], -1)
    return Edge(prompt, spans)  # type: ignore[arg-type]


def _masked_cells(grid: SharedGrid, side: int, zoom: int) -> Cells:
    """Which cells of 2^zoom one side has."""
    from hgviz.figures.cells import seen_cells
    from hgviz.maps import DenseMap, Projected

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
    from hgviz.activations import ACTIVATIONS
    from hgviz.figures.charts import Line, Plot, Plots

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
    from hgviz.activations import ACTIVATIONS

    activation, statistic = ACTIVATIONS[name], None
    scores = np.asarray(scores, float)
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
    scores = np.asarray(scores, float)
    rise = weight_of_score(name, scores + STEP) - weight_of_score(name, scores - STEP)
    slopes: Many = rise / (2 * STEP)
    return slopes


# --- spectra --------------------------------------------------------------------------------------

MOST_SIDE = 2048  # positions of a map whose singular values are taken at once
HELD = 0.9  # of their sum


def spectrum_chart(captures: Sequence[Capture], head: HeadId) -> Plots:
    """The cumulative singular values of a head's map in each capture (Wang et al. 2020, figure 1).

    Raises HgvizError for captures without the head, and for maps of more than 2,048 positions.
    """
    from hgviz.figures.charts import Line, Plot, Plots
    from hgviz.maps.tiles import one_thread

    lines, notes = [], []
    for name, capture in zip(_side_names(captures), captures, strict=True):
        maps = capture.maps[head.layer] if head.layer < len(capture.maps) else None
        require(
            maps is not None and head.head in maps.heads,
            f"head {head} is not in the capture of {name}",
            "Choose a head by --head; `hgviz info` lists them",
        )
        assert maps is not None
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
    from hgviz.analysis.metrics import HEADS, metrics_for
    from hgviz.figures.charts import MetricValues, Profile

    known = metrics_for(HEADS)
    for name in metrics:
        choose(name, known, "metric")
    sides = _profile_sides(captures)
    what = "there are no heads to profile: none is captured, or all are removed"
    require(any(side.heads for side in sides), what)
    facts_by_side = [
        _facts(capture, any(name in SLOW for name in metrics), facts, number, len(captures))
        for number, capture in enumerate(captures)
    ]
    unit = captures[0].main.unit
    measured = {
        name: MetricValues(
            name,
            metric.named("token" if unit in ("slot", "state") else unit),
            tuple(
                np.array([side_facts[head].metrics[name] for head in side.heads], np.float64)
                for side, side_facts in zip(sides, facts_by_side, strict=True)
            ),
        )
        for name, metric in known.items()
    }
    with_values = [
        name
        for name, metric in measured.items()
        if any(np.isfinite(values).any() for values in metric.values)
    ]
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


def _facts(capture: Capture, is_slow: bool, facts: Facts | None, number: int, total: int) -> Facts:
    from hgviz.analysis.roles import corpus_roles, roles

    heads = (
        HeadId(layer, head)
        for layer, maps in enumerate(capture.maps)
        if maps is not None
        for head in maps.heads
    )
    if facts and total == 1 and not is_slow and all(head in facts for head in heads):
        return facts
    with progress_within(number, number + 1, total):
        return corpus_roles(lambda _: capture, [0]).heads if is_slow else roles(capture)


def _default_metrics(
    measured: Mapping[str, MetricValues], with_values: Sequence[str], sides: Sequence[ProfileSide]
) -> list[str]:
    """ALWAYS, then the places with the largest share of any head that is on, in their order."""
    always = [name for name in ALWAYS if name in with_values]
    shares = {}
    for name in PLACES:
        pairs = zip(sides, measured[name].values, strict=True)
        on = np.concatenate([values[~side.off] for side, values in pairs])
        shares[name] = float(on[np.isfinite(on)].max(initial=0.0))
    places = sorted((name for name in PLACES if shares[name] >= LEAST_SHARE),
                    key=lambda name: -shares[name])  # fmt: skip
    places = places[: max(0, MOST_METRICS - len(always))]
    return [*always, *(name for name in PLACES if name in places)]


def _profile_sides(captures: Sequence[Capture]) -> tuple[ProfileSide, ...]:
    from hgviz.figures.charts import ProfileSide

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
    from hgviz.figures.spec import bare_name

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
    from hgviz.figures.charts import Place

    spec, levels = capture.spec, capture.spec.levels
    ranks: dict[int, int] = {}  # how coarse each level is among those of its text
    for level in levels:
        ranks[level.index] = [
            other.index for other in levels if other.sequence == level.sequence
        ].index(level.index)

    def level_name(level: int) -> str:
        if spec.two_texts:
            return {"source": "encoder", "target": "decoder"}.get(levels[level].sequence, "")
        return levels[level].label

    return [
        Place(
            layer.index, layer.name, layer.role, level_name(layer.level), ranks[layer.level],
            ranks[layer.key_level], levels[layer.level].sequence,
            capture.maps[layer.index] is not None,
        )
        for layer in spec.layers
    ]  # fmt: skip


def _profile_notes(
    captures: Sequence[Capture], sides: Sequence[ProfileSide], metrics: Sequence[MetricValues]
) -> list[str]:
    from hgviz.analysis.metrics import row_blocks, signed_heads
    from hgviz.tasks.heads import sample_words

    notes = ["A mark is a head; a line is the mean of the heads of a layer."]
    if count := sum(int(side.off.sum()) for side in sides):
        notes.append(f"Hollow: {counted(count, 'head')} switched off, not in the mean.")
    for capture, side in zip(captures, sides, strict=True):
        of_side = f" of {side.name[:1]}" if len(sides) > 1 else ""
        missing = [layer.index for layer in side.layers if not layer.known]
        if len(missing) == 1:
            notes.append(f"Layer {missing[0]} is not captured{of_side}.")
        elif missing:
            notes.append(f"Layers {missing[0]} to {missing[-1]} are not captured{of_side}.")
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
    from hgviz.figures.spec import bare_name

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
    from hgviz.figures.attribution import Neurons, ScoreStep
    from hgviz.figures.cells import head_details, map_of, token_in
    from hgviz.figures.spec import describe_capture
    from hgviz.maps import LazyMap, SlotMap
    from hgviz.maps.anatomy import dissect

    head, layer = selection.head_id, selection.layer
    maps = map_of(capture, head)
    require(
        not isinstance(maps, SlotMap),
        "queries attend to slots in this model, not to tokens",
        "Show its slots",
    )
    if not isinstance(maps, LazyMap):
        raise HgvizError(
            "this capture holds only weights, without queries and keys",
            "Capture the text again, without --dense",
        )
    require(order in ORDERS, f"unknown order {order!r}: there are {', '.join(ORDERS)}")
    prompt, keys = capture.query_prompt(layer), capture.key_prompt(layer)
    query = token_in(prompt, selection.query)
    row = min(capture.row(layer, query), maps.shape[1] - 1)
    anatomy = dissect(maps, selection.head, row)
    sizes = np.abs(anatomy.weights)
    seen = np.flatnonzero(anatomy.seen | (sizes > 0))
    columns: Integers = seen[np.argsort(-sizes[seen], kind="stable")][:MOST_KEYS]
    columns = np.sort(columns) if order == "text" else columns
    if selection.key is not None:
        key = capture.column(layer, token_in(keys, selection.key))
        marked = next(iter(np.flatnonzero(columns == key).tolist()), None)
    else:
        marked = int(sizes[columns].argmax()) if len(columns) else None
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
    from hgviz.figures.attribution import Products

    def titles(left: str, right: str) -> tuple[str, str, str]:
        return left, right, f"({left}) × {right}" if "+" in left else f"{left} × {right}"

    query = anatomy.query
    by_key = query.with_keys(anatomy.keys[columns])
    content = Products(titles(*query.names), by_key.left, by_key.right, by_key.products)
    distances = [query.with_distances(range(column, column + 1)) for column in columns.tolist()]
    by_distance: list[ElementProducts] = [found for found in distances if found is not None]
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
    from hgviz.figures.charts import Scores

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
    from hgviz.figures.charts import Curves

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
        lines = {"": tuple(every_line)}
    first, study = next(iter(by_study[0].values())), studies[0]
    pairs = zip(studies, by_study, strict=True)
    random_count = sum(len(_random_curves(study, curves)) for study, curves in pairs)
    notes = [f"{study.amount(len(first.rows))} of {study.data}, not used for the orders"]
    is_timed = axis == "time"
    has_no_ribbons = is_timed or any(len(panel) > 1 for panel in lines.values())
    if has_no_ribbons and bits_per_byte(study, first) is None:
        notes[0] += f"; 95 % interval of a point: about ± {_median_half_width(every_line):.1f}"
    if is_timed:
        notes.append("Median time of pruned models on 16 texts, on one core, in the order in "
                     "which heads are removed; random orders not timed")  # fmt: skip
    return Curves(
        lines, X_LABELS[axis], _y_label(study, is_change), band,
        banded=f"middle 80 % of {random_count} random orders, and their median" if band else "",
        mark="k*",
        marked=f"at most 1 point of {first.unit.replace('_', ' ')} lost",
        percent=axis in ("parameters", "flops"),
        timed=is_timed,
        title="Pruning curve",
        more=f"{len(studies)} models" if is_change else study.spec.name,
        notes=tuple(notes),
        about=_studies_about(studies, ", ".join(names)),
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
    if (bits := bits_per_byte(study, curve)) is not None:
        return bits - bits[0] if is_change else bits, None, None
    ends = (
        (curve.change, curve.change_low, curve.change_high)
        if is_change
        else (curve.values, curve.low, curve.high)
    )
    y, low, high = (100 * end.astype(float) for end in ends)
    return y, low, high


def _x(study: Study, curve: PruningCurve, axis: str) -> Any:
    if axis == "heads":
        return curve.removed.astype(float)
    if axis == "time":
        if curve.times is None:
            raise HgvizError(
                f"the curve of {curve.method} has no times",
                "Run hgviz curve with --time, or draw the curve over heads",
            )
        return curve.times[:, 1].astype(float)
    return saved_share(study, curve, axis)[curve.removed]


def _band(
    studies: Sequence[Study],
    by_study: Sequence[Mapping[str, PruningCurve]],
    axis: str,
    is_change: bool,
) -> Line | None:
    """Quantiles of all random orders at the numbers of heads that all of them have.

    Over parameters or FLOPs these are at the mean of what such orders save; they have no times.
    """
    from hgviz.figures.charts import Line

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
    low, median, high = np.quantile(y, [BAND[0], 0.5, BAND[1]], axis=0)
    return Line("", np.mean(x, axis=0), median, low, high)


def _y_label(study: Study, is_change: bool) -> str:
    if bits_per_byte(study, study.curves[-1]) is not None:
        return "Change of bits per byte" if is_change else "Bits per byte"
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
