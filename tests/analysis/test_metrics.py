"""Metrics of heads against closed forms, plain numpy and whole maps."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from hgviz.analysis import metrics
from hgviz.analysis.comparison import MetricCollector, metric_changes
from hgviz.analysis.tokens import Layout
from hgviz.core import HeadId, Layer, Level, ModelSpec
from tests.analysis.planting import even_rows, letters, plant

FIRST = HeadId(0, 0)
N = 12
IDENTITY = np.eye(N)
UNIFORM = np.full((N, N), 1 / N)
HALVES = np.where(np.arange(N) % 2, 0.5, -0.5) * np.ones((N, 1))
WITH_NAN = np.where(np.arange(N * N).reshape(N, N) == 27, np.nan, IDENTITY)


def measured_pair(matrix, causal=False):
    """What is measured for PAIR of one head that weighs so."""
    capture = plant(letters("a" * len(matrix)), [matrix[None]], causal=causal, signed=True)
    return metrics.measure(capture, metrics.metrics_for(metrics.PAIR))[FIRST]


# --- two heads, by whole rows ---------------------------------------------------------------------


@pytest.mark.parametrize(("matrix", "causal", "wanted"), [
    (UNIFORM, False, {"entropy": np.log(N), "rank": 1 / N, "near_zero": 0, "negative_mass": 0,
                      "row_sum": 1, "focus": 1 / N}),
    (IDENTITY, False, {"entropy": 0, "rank": 1, "near_zero": 1 - 1 / N, "focus": 1}),
    (HALVES, False, {"entropy": np.log(N), "negative_mass": 0.5, "row_sum": 0}),
    (np.tril(UNIFORM), True, {"near_zero": 0}),  # cells after the query are none
    (0 * UNIFORM, False, {"entropy": np.nan, "near_zero": np.nan, "row_sum": 0, "rank": 0}),
    (WITH_NAN, False, {"focus": 1, "row_sum": 1, "rank": 1}),
])  # fmt: skip
def test_known_maps_have_the_numbers_they_must(matrix, causal, wanted):
    found = measured_pair(matrix, causal)
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=1e-6, nan_ok=True)
    assert (found.rows, found.all_rows) == (N - np.isnan(matrix).any(), N)


def test_of_many_rows_blocks_are_taken_from_the_first_to_the_last():
    size = metrics.BLOCK_ROWS
    blocks = metrics.row_blocks(50 * size + 7, 10, 4 * 10 * size)
    assert [block.stop - block.start for block in blocks] == [size, size, size, 7]
    assert (blocks[0].start, blocks[-1].stop) == (0, 50 * size + 7)
    assert metrics.row_blocks(5, 1) == [slice(0, 5)]


# --- a text, with gradients -----------------------------------------------------------------------


@dataclass
class Rows:
    """Rows of all heads of a layer."""

    scores: np.ndarray
    weights: np.ndarray
    at_scores: np.ndarray
    at_weights: np.ndarray
    seen: np.ndarray


class PlantedPass:
    """A pass with planted maps {layer: (heads, Q, K)}, and slopes where these matter."""

    def __init__(self, maps, scores=None, at_scores=None, at_weights=None, seen=None):
        self.maps = {layer: np.asarray(values, float) for layer, values in maps.items()}
        ones = {layer: np.ones_like(values) for layer, values in self.maps.items()}
        self.parts = scores or self.maps, self.maps, at_scores or self.maps, at_weights or ones
        self.seen = seen

    def shape(self, layer):
        return self.maps[layer].shape

    def rows(self, layer, rows):
        part = slice(rows.start, rows.stop)
        seen = np.ones(self.maps[layer].shape[1:], bool) if self.seen is None else self.seen
        return Rows(*(values[layer][:, part] for values in self.parts), seen[part])


def spec_of(maps, activation="softmax"):
    """A model whose layers have these maps."""
    layers = tuple(
        Layer(index, f"layer.{index}", "self", 0, 0, tuple(range(len(values))),
              (activation,) * len(values), False)
        for index, values in enumerate(maps.values())
    )  # fmt: skip
    return ModelSpec("transformer", "planted", (Level(0, 1),), layers, 8, 23, "0" * 64)


def text_of(maps, **slopes):
    return metrics.measure_text(PlantedPass(maps, **slopes), spec_of(maps))


def measured(*maps, **slopes):
    return text_of({0: np.stack(maps)}, **slopes)


def test_slopes_count_where_something_depends_on_a_row():
    at_weights, at_scores = np.zeros((2, 2, N, N))
    at_weights[:, :3] = 2.0
    at_scores[0, :3] = 0.5
    at_scores[1, 0, 0], at_scores[1, 1] = 1.0, 1e-4
    found = measured(UNIFORM, UNIFORM, at_scores={0: at_scores}, at_weights={0: at_weights})
    slope = np.array([0.5, (1 + N * 1e-4) / (3 * N)])
    assert np.allclose(found.values["slope"], slope)
    assert np.allclose(found.values["small"], [0, 1 - 1 / (3 * N)])
    assert np.allclose(found.values["passed"], slope / 2)
    assert np.allclose(found.cells.sum(1), 3 * N)


def test_blocks_of_rows_give_what_the_whole_map_gives(monkeypatch):
    random, seen = np.random.default_rng(0), np.tril(np.ones((40, 40), bool))
    maps = {layer: random.normal(size=(heads, 40, 40)) * seen for layer, heads in ((0, 3), (1, 2))}
    slopes = {layer: random.normal(size=values.shape) ** 5 for layer, values in maps.items()}
    planted = PlantedPass(maps, at_scores=slopes, at_weights=slopes, seen=seen)
    whole = metrics.measure_text(planted, spec_of(maps, "tanh"))
    monkeypatch.setattr(metrics, "WEIGHTS_AT_ONCE", 3 * 40 * 7)
    parts = metrics.measure_text(planted, spec_of(maps, "tanh"))
    for name in metrics.metrics_for(metrics.REPORT):
        assert np.allclose(whole.values[name], parts.values[name], rtol=1e-12), name
    for name in ("apart", "cells", "at_scores", "at_weights"):
        assert np.allclose(getattr(whole, name), getattr(parts, name), rtol=1e-12), name
    size = np.abs(slopes[0][1])
    assert np.isclose(whole.values["small"][1], (size[seen] < 1e-3 * size.max()).mean())


def collected(texts, spec):
    found = MetricCollector(spec)
    for text in texts:
        found.add(text)
    return found.metrics()


def test_means_over_texts_have_intervals_and_pairs():
    maps, random = {0: np.stack([IDENTITY, UNIFORM])}, np.random.default_rng(1)
    text, spec, texts, others = text_of(maps), spec_of(maps), [], []
    for noise, shift in random.normal(size=(30, 2)):
        values = {name: value + noise for name, value in text.values.items()}
        texts.append(replace(text, values=values))
        other = {name: value + 0.01 * shift for name, value in values.items()}
        others.append(replace(text, values=other | {"row_sum": values["row_sum"] + 1}))
    a, b = collected(texts, spec), collected(others, spec)
    assert a.texts == 30 and a.heads == (HeadId(0, 0), HeadId(0, 1))
    rows = np.array([one.values["entropy"] for one in texts])
    value, low, high = a.of_heads("entropy")
    half = 1.959964 * rows.std(0, ddof=1) / np.sqrt(30)
    assert np.allclose([value, high - value, value - low], [rows.mean(0), half, half])
    changes = {change.name: change for change in metric_changes(a, b)}
    assert changes["row_sum"].difference[0] == pytest.approx(1) and changes["row_sum"].differs
    entropy = changes["entropy"]  # noise of both sides is the same and does not count
    assert not entropy.differs and entropy.difference[2] - entropy.difference[0] < 0.01
    assert all(change.exact and change.p == 1.0 for change in metric_changes(a, a))
    alone = collected([text], spec)
    (change, *_) = metric_changes(alone, alone)
    assert np.isinf(change.difference[2]) and not change.differs
    assert change.to_dict()["difference_low"] is None and change.to_dict()["p"] is None


# --- convolution-likeness -------------------------------------------------------------------------


STEP = 7  # rows of a block


def kernels(*texts, causal=False):
    """The kernels of heads over texts, each an array (heads, n, n)."""
    captures = [plant(letters("x" * text.shape[1]), [text], causal=causal) for text in texts]
    found = metrics.Kernels(len(texts[0]))
    for step in (found.add, found.compare):
        for capture in captures:
            rows = capture.maps[0].shape[1]
            blocks = [slice(at, min(at + STEP, rows)) for at in range(0, rows, STEP)]
            step(capture.maps[0], Layout(capture, 0, {}), blocks)
    return found.kernels()


def dense(texts, causal):
    """Written from its definition, on whole maps: score, centre, width."""
    reach = max(map(len, texts)) - 1
    offsets = np.arange(-reach, reach + 1)
    mass, pairs = np.zeros((2, len(offsets)))
    masks = [np.tril(np.ones_like(one)) if causal else np.ones_like(one) for one in texts]
    maps = [even_rows(np.abs(one)) for one in texts]
    for one, mask in zip(maps, masks, strict=True):
        for at, offset in enumerate(offsets):
            if abs(offset) < len(one):
                mass[at] += np.trace(one, offset)
                pairs[at] += np.trace(mask, offset)
    p = np.where(pairs > 0, mass / np.maximum(pairs, 1), 0)
    scores = []
    for one, mask in zip(maps, masks, strict=True):
        i, j = np.indices(one.shape)
        apart = (one - even_rows(p[j - i + reach] * mask)) ** 2
        scores.append(1 - apart.sum() / ((one - even_rows(mask)) ** 2).sum())
    centre = (p * offsets).sum() / p.sum()
    return np.mean(scores), centre, np.sqrt((p * (offsets - centre) ** 2).sum() / p.sum())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(2, 30), min_size=1, max_size=3), st.booleans())
def test_any_maps_of_any_texts_equal_the_formula_on_whole_maps(seed, sizes, causal):
    random = np.random.default_rng(seed)
    texts = [random.normal(size=(2, n, n)) ** 3 for n in sizes]  # signed
    texts = [np.tril(one) if causal else one for one in texts]
    for head, found in enumerate(kernels(*texts, causal=causal)):
        wanted = dense([one[head] for one in texts], causal)
        # a score far below 0 has a denominator near it
        np.testing.assert_allclose(found[:3], wanted, atol=1e-5, rtol=1e-5)


# --- distances between heads ----------------------------------------------------------------------


def likeness(*maps):
    capture = plant(letters("x" * maps[0].shape[1]), list(maps), causal=False)
    found = metrics.HeadDistances(
        [HeadId(i, h) for i, one in enumerate(maps) for h in range(len(one))]
    )
    found.add(capture.maps, Layout(capture, 0, {}))
    return found


def test_distances_are_scipys_over_the_rows_that_are_read(monkeypatch):
    n, maps = 70, np.random.default_rng(1).gamma(0.2, size=(4, 70, 70))
    found = likeness(maps).distances()
    rows = np.unique(np.linspace(0, n - 1, metrics.LIKENESS_ROWS).round().astype(int))
    wanted = [[jensenshannon(a[rows], b[rows], base=2, axis=1).mean() for b in maps] for a in maps]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    monkeypatch.setattr(metrics, "WEIGHTS_AT_ONCE", 1)
    np.testing.assert_array_equal(likeness(maps).distances(), found)
