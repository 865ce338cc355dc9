"""Studies made of random numbers, of the small models of tests.making."""

import numpy as np

from hgviz.core import HeadId, MetricEstimate, Provenance
from hgviz.study import NO_PREDICTION, UNKNOWN, LearnedImportance, Mask, PruningCurve, Study
from tests.making import make_spec

OPTIONAL = ("gradient", "token_gradient", "loss_change", "change", "alone", "shapley")


def make_study(seed=0, examples=9, asked="classes", done=1.0, without=(), off=(), curves=2):
    """A study whose beginning, a share `done` of its examples, is measured."""
    random = np.random.default_rng(seed)
    spec = make_spec((1, 2), 2)
    heads = spec.heads
    counts = np.ones(examples, np.int64)
    if asked != "classes":
        counts = random.integers(0, 5, examples)
        counts[random.integers(examples)] = 3
    places = np.concatenate([[0], np.cumsum(counts)])
    total, classes = int(places[-1]), 2 if asked == "classes" else spec.vocabulary
    reached = round(done * examples)
    known = np.arange(total) < places[reached]

    def some(rows, reached, sign=1):
        values = random.normal(size=(rows, len(heads))).astype(np.float32) ** sign
        values[reached:] = np.nan
        values[:, [heads.index(HeadId(*one)) for one in off]] = np.nan
        return values

    change = random.integers(-1, 2, (total, len(heads))).astype(np.int8)
    change[places[reached] :] = UNKNOWN
    arrays = {
        "gradient": some(examples, reached),
        "token_gradient": some(examples, reached, 2),
        "loss_change": some(total, places[reached]),
        "change": change,
        "alone": some(total, places[reached]),
        "shapley": some(3, 2),
    }
    arrays = {name: values for name, values in arrays.items() if name not in without}
    return Study(
        spec=spec, heads=heads, asked=asked, metric="accuracy", places=places,
        wanted=random.integers(0, classes, total),
        lengths=random.integers(1, 9, examples),
        loss=np.where(known, random.random(total), np.nan).astype(np.float32),
        given=np.where(known, random.integers(0, classes, total), NO_PREDICTION),
        data="rows.tsv", data_digest="5" * 64,
        labels=("no", "yes") if asked == "classes" else (), seed=3,
        off=frozenset(HeadId(*one) for one in off),
        sizes=random.random(examples) if asked == "next" else None,
        saved_parameters=random.random((len(heads), 3)),
        saved_flops=random.random((len(heads), 3)),
        learned=(
            LearnedImportance(
                "gates", random.random((2, len(heads))).astype(np.float32), "two runs"
            ),
        ),
        curves=tuple(make_curve(random, heads, examples, not at % 2) for at in range(curves)),
        masks=(
            Mask("none of layer 0", frozenset(heads[:2])),
            Mask(
                "scored", frozenset(), MetricEstimate("accuracy", 0.5, 0.4, 0.6, 9, 9),
                (0.1, -0.05, 0.2),
            ),
            Mask(
                "one window", frozenset(),
                MetricEstimate("bits_per_byte", 2.0, -np.inf, np.inf, 9, 9),
            ),
        ),
        made=Provenance("hgviz 0", "2026-01-01", seed=3, versions=(("numpy", "2"),)),
        arrays=arrays,
    )  # fmt: skip


def make_curve(random, heads, examples, timed):
    """A curve along a random order of all heads but one, at some of its points."""
    order = tuple(heads[at] for at in random.permutation(len(heads))[:-1])
    removed = np.unique(np.append(random.integers(0, len(order) + 1, 4), 0))
    numbers = {
        name: random.random(len(removed)).astype(np.float32)
        for name in ("values", "low", "high", "loss", "change", "change_low", "change_high")
    }
    rows = np.flatnonzero(random.integers(0, 2, examples))
    times = random.random((len(removed), 2)).astype(np.float32) + 1 if timed else None
    return PruningCurve("random", order, removed, rows=rows, seed=7, times=times, **numbers)
