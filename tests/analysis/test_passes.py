"""What a text says of heads, against closed forms and numbers computed cell by cell."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hgviz.analysis import comparison
from hgviz.analysis import metrics as passes
from hgviz.core import HeadId, Layer, Level, ModelSpec

N = 12


@dataclass
class Block:
    """Rows of all heads of a layer."""

    scores: np.ndarray
    weights: np.ndarray
    at_scores: np.ndarray
    at_weights: np.ndarray
    seen: np.ndarray


class Given:
    """A pass whose maps are given: {layer: (heads, Q, K)}, and slopes where these matter."""

    def __init__(self, maps, scores=None, at_scores=None, at_weights=None, seen=None):
        self.maps = {layer: np.asarray(one, float) for layer, one in maps.items()}
        self.scores = scores or self.maps
        self.at_scores = at_scores or self.maps
        self.at_weights = at_weights or {k: np.ones_like(v) for k, v in self.maps.items()}
        self.seen = seen

    def shape(self, layer):
        return self.maps[layer].shape

    def rows(self, layer, rows):
        part = slice(rows.start, rows.stop)
        found = (
            each[layer][:, part]
            for each in (self.scores, self.maps, self.at_scores, self.at_weights)
        )
        whole = np.ones(self.maps[layer].shape[1:], bool) if self.seen is None else self.seen
        return Block(*found, whole[part])


def spec_of(maps, activation="softmax"):
    """A model whose layers have these maps."""
    layers = tuple(
        Layer(
            index=index, name=f"layer.{index}", role="self", level=0, key_level=0,
            heads=tuple(range(len(one))), activations=(activation,) * len(one), causal=False,
        )
        for index, one in enumerate(maps.values())
    )  # fmt: skip
    return ModelSpec("transformer", "given", (Level(0, 1),), layers, 8, 23, "0" * 64)


def measured(*maps, **more):
    given = {0: np.stack(maps)}
    return passes.measure_text(Given(given, **more), spec_of(given))


IDENTITY = np.eye(N)
UNIFORM = np.full((N, N), 1 / N)
SINK = np.eye(N)[np.zeros(N, int)]
PREVIOUS = np.eye(N)[np.maximum(np.arange(N) - 1, 0)]
BAND = sum(share * np.roll(np.eye(N), step, 1) for step, share in ((0, 0.5), (1, 0.25), (-1, 0.25)))


def test_closed_forms_of_well_known_maps():
    found = measured(IDENTITY, UNIFORM, SINK, PREVIOUS, BAND)
    value = found.values
    spread = -(0.5 * np.log(0.5) + 2 * 0.25 * np.log(0.25))
    assert np.allclose(value["entropy"], [0, np.log(N), 0, 0, spread])
    assert np.allclose(value["near_zero"], [(N - 1) / N, 0, (N - 1) / N, (N - 1) / N, (N - 3) / N])
    assert np.allclose(value["row_sum"], 1)
    assert not value["negative_mass"].any()
    # a circulant map has the sizes of its Fourier transform: 1/2 + 1/2 cos
    sizes = np.sort(np.abs(0.5 + 0.5 * np.cos(2 * np.pi * np.arange(N) / N)))[::-1]
    p = sizes[sizes > 1e-12] / sizes.sum()
    # the first two rows of the previous token are the same
    previous = np.r_[np.sqrt(2), np.ones(N - 2)]
    q = previous / previous.sum()
    ranks = [N, 1, 1, np.exp(-(q * np.log(q)).sum()), np.exp(-(p * np.log(p)).sum())]
    assert np.allclose(value["rank"] * N, ranks)
    assert np.allclose(found.spectra[0], 1)
    assert np.allclose(found.spectra[1], np.eye(passes.SINGULAR)[0])
    assert np.allclose(found.spectra[4], sizes[: passes.SINGULAR] / sizes[0])
    assert np.allclose(found.spectra[3, 1:10], 1 / np.sqrt(2))


def test_distances_of_well_known_maps():
    found = measured(IDENTITY, SINK, UNIFORM, PREVIOUS).apart
    assert np.allclose(np.diag(found), 0)
    assert np.allclose(found, found.T)
    assert np.isclose(found[0, 1], (N - 1) / N)  # only the first row is shared
    m = (1 + 1 / N) / 2
    rest = 1 / (2 * N)
    mixed = -m * np.log2(m) - (N - 1) * rest * np.log2(rest)
    assert np.isclose(found[0, 2], np.sqrt(mixed - np.log2(N) / 2))


def test_weights_below_nothing():
    mixed = np.where(np.arange(N) % 4, 0.5, -1.0) * np.ones((N, 1))
    found = measured(-IDENTITY, mixed).values
    below, above = np.ceil(N / 4), 0.5 * (N - np.ceil(N / 4))
    assert np.allclose(found["negative_mass"], [1, below / (below + above)])
    assert np.allclose(found["row_sum"], [-1, above - below])
    assert np.allclose(found["entropy"][0], 0)


def test_slopes_count_where_something_depends_on_a_row():
    at_weights = np.zeros((2, N, N))
    at_weights[:, :3] = 2.0
    at_scores = np.zeros((2, N, N))
    at_scores[0, :3] = 0.5
    at_scores[1, 0, 0], at_scores[1, 1] = 1.0, 1e-4
    found = measured(
        UNIFORM, UNIFORM, at_scores={0: at_scores}, at_weights={0: at_weights}
    )  # fmt: skip
    value = found.values
    assert np.allclose(value["slope"], [0.5, (1 + N * 1e-4) / (3 * N)])
    assert np.allclose(value["small"], [0, 1 - 1 / (3 * N)])
    assert np.allclose(value["passed"], [0.25, (1 + N * 1e-4) / (6 * N)])
    assert np.allclose(found.cells.sum(1), 3 * N)


def test_cells_are_sorted_by_the_size_of_their_score():
    scores = np.zeros((1, N, N))
    scores[0, 0, :9] = [0, -0.125, 0.25, -0.5, 1, 2, -4, 8, -16]
    seen = np.zeros((N, N), bool)
    seen[0, :9] = True
    found = measured(UNIFORM, scores={0: scores}, at_scores={0: np.full((1, N, N), 3.0)}, seen=seen)
    assert np.array_equal(found.cells[0], np.ones(9))
    assert np.array_equal(found.at_scores[0], np.full(9, 3.0))


def test_blocks_of_rows_give_what_the_whole_map_gives(monkeypatch):
    random = np.random.default_rng(0)
    maps = {0: random.normal(size=(3, 40, 40)), 1: random.normal(size=(2, 40, 40))}
    slopes = {k: random.normal(size=v.shape) ** 5 for k, v in maps.items()}
    seen = np.tril(np.ones((40, 40), bool))
    maps = {k: v * seen for k, v in maps.items()}
    given = Given(maps, at_scores=slopes, at_weights=slopes, seen=seen)
    whole = passes.measure_text(given, spec_of(maps, "tanh"))
    monkeypatch.setattr(passes, "HELD", 3 * 40 * 7)
    parts = passes.measure_text(given, spec_of(maps, "tanh"))
    for name in passes.metrics_for(passes.REPORT):
        assert np.allclose(whole.values[name], parts.values[name], rtol=1e-12), name
    for name in ("spectra", "apart", "cells", "at_scores", "at_weights"):
        assert np.allclose(getattr(whole, name), getattr(parts, name), rtol=1e-12), name
    size = np.abs(slopes[0][1])[seen]
    assert np.isclose(whole.values["small"][1], (size < 1e-3 * np.abs(slopes[0][1]).max()).mean())


def test_maps_of_other_shapes_are_not_compared():
    maps = {0: np.stack([IDENTITY, SINK]), 1: np.eye(N)[None, : N // 2]}
    found = passes.measure_text(Given(maps), spec_of(maps))
    assert np.isnan(found.apart[:2, 2]).all() and np.isfinite(found.apart[:2, :2]).all()
    assert np.isnan(found.values["apart"][2])  # a head alone in its layer
    other = passes.measure_text(Given({0: UNIFORM[None]}), spec_of({0: UNIFORM[None]}))
    assert np.isfinite(passes.distances_between(found, other)[:2, 0]).all()
    assert np.isnan(passes.distances_between(found, other)[2, 0])


@pytest.mark.parametrize("empty", [np.zeros((N, N)), np.full((N, N), np.nan)])
def test_maps_that_say_nothing_do_no_harm(empty):
    found = measured(empty, IDENTITY, at_scores={0: np.zeros((2, N, N))})
    assert not np.isfinite(found.values["entropy"][0]) or found.values["entropy"][0] == 0
    assert found.values["entropy"][1] == 0
    assert np.isnan(found.values["small"][1])


# --- many texts -----------------------------------------------------------------------------------


def gathered(texts, spec):
    found = comparison.MetricCollector(spec)
    for one in texts:
        found.add(one)
    return found.metrics()


def test_means_over_texts_have_intervals_and_pairs():
    maps = {0: np.stack([IDENTITY, UNIFORM])}
    spec = spec_of(maps)
    one = passes.measure_text(Given(maps), spec)
    random = np.random.default_rng(1)
    texts, others = [], []
    for noise, shift in random.normal(size=(30, 2)):
        value = {name: values + noise for name, values in one.values.items()}
        texts.append(replace(one, values=value))
        other = {name: values + 0.01 * shift for name, values in value.items()}
        others.append(replace(one, values=other | {"row_sum": value["row_sum"] + 1}))
    a, b = gathered(texts, spec), gathered(others, spec)
    assert a.texts == 30 and a.heads == (HeadId(0, 0), HeadId(0, 1))
    each = np.array([text.values["entropy"] for text in texts])
    value, low, high = a.of_heads("entropy")
    assert np.allclose(value, each.mean(0))
    assert np.allclose(high - value, 1.959964 * each.std(0, ddof=1) / np.sqrt(30))
    assert np.allclose(value - low, high - value)
    changes = {one.name: one for one in comparison.metric_changes(a, b)}
    assert changes["row_sum"].difference[0] == pytest.approx(1)
    assert changes["row_sum"].differs and not changes["entropy"].differs
    # noise of both sides is the same and does not count
    assert changes["entropy"].difference[2] - changes["entropy"].difference[0] < 0.01
    same = comparison.metric_changes(a, a)
    assert all(one.exact and one.p == 1.0 for one in same)


def test_one_text_has_no_interval():
    maps = {0: np.stack([IDENTITY, UNIFORM])}
    a = gathered([passes.measure_text(Given(maps), spec_of(maps))], spec_of(maps))
    found = comparison.metric_changes(a, a)[0]
    assert np.isinf(found.difference[2]) and not found.differs
    assert found.facts()["difference_low"] is None and found.facts()["p"] is None


def test_distances_between_models_need_maps_of_one_shape():
    maps, other = {0: IDENTITY[None]}, {0: np.eye(5)[None]}
    one = passes.measure_text(Given(maps), spec_of(maps))
    small = passes.measure_text(Given(other), spec_of(other))
    beside = comparison.NanMean()
    beside.add(passes.distances_between(one, small))
    assert beside.value() is None
    sink = passes.measure_text(Given({0: SINK[None]}), spec_of(maps))
    beside.add(passes.distances_between(one, sink))
    assert np.allclose(beside.value(), (N - 1) / N)
