"""Metrics of heads against closed forms, plain numpy and whole maps."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.analysis import comparison, metrics
from hgviz.analysis.comparison import compare
from hgviz.analysis.tokens import Layout
from hgviz.core import Capture, HeadId, Layer, Level, ModelSpec
from hgviz.maps import DenseMap
from tests.analysis.planting import letters, plant
from tests.making import byte_prompt, make_capture

# --- two heads, by whole rows ---------------------------------------------------------------------


def of_map(matrix, causal=False, activation="softmax"):
    """A capture of one head that weighs so."""
    n = len(matrix)
    layer = Layer(0, "one", "self", 0, 0, (0,), (activation,), causal)
    spec = ModelSpec("plain", "plain", (Level(0),), (layer,), 8, 256)
    prompt = byte_prompt("a" * n)
    spans = np.stack([np.arange(n), np.arange(n) + 1], 1)
    whole = DenseMap(np.asarray(matrix, np.float32)[None], (0,), bool((matrix < 0).any()), causal)
    return Capture(spec, prompt, (spans,), (whole,))


FIRST = HeadId(0, 0)


def numbers_of(capture, head=FIRST):
    """What is said of a head."""
    return metrics.measure(capture, metrics.metrics_for(metrics.PAIR), [head])[head]


def test_a_uniform_map_spreads_over_all_keys_with_one_pattern():
    found = numbers_of(of_map(np.full((16, 16), 1 / 16)))
    assert found["entropy"] == pytest.approx(np.log(16), abs=1e-5)
    assert found["rank"] == pytest.approx(1 / 16, rel=1e-6)
    assert found["near_zero"] == 0 and found["negative_mass"] == 0
    assert found["row_sum"] == pytest.approx(1) and found["focus"] == pytest.approx(1 / 16)


def test_of_many_rows_blocks_are_taken_from_the_first_to_the_last():
    count, size = 50 * metrics.BLOCK_ROWS + 7, metrics.BLOCK_ROWS
    blocks = metrics.row_blocks(count, 10, 4 * 10 * size)
    assert [block.stop - block.start for block in blocks] == [size, size, size, 7]
    assert (blocks[0].start, blocks[-1].stop) == (0, count)
    assert metrics.row_blocks(5, 1) == [slice(0, 5)]


def test_an_identity_looks_at_one_key_and_has_full_rank():
    found = numbers_of(of_map(np.eye(12)))
    assert found["entropy"] == 0 and found["focus"] == 1
    assert found["rank"] == pytest.approx(1)
    assert found["near_zero"] == pytest.approx(11 / 12)


def test_half_of_what_is_taken_away_is_negative_mass():
    matrix = np.tile([1.0, -1.0], (8, 4))
    found = numbers_of(of_map(matrix, activation="ymish"))
    assert found["negative_mass"] == pytest.approx(0.5) and found["row_sum"] == pytest.approx(
        0, abs=1e-7
    )
    assert found["entropy"] == pytest.approx(np.log(8), abs=1e-5)


def test_cells_after_the_query_are_not_near_zero():
    matrix = np.tril(np.ones((10, 10)))
    assert numbers_of(of_map(matrix, causal=True))["near_zero"] == 0


def test_a_head_of_zeros_has_no_entropy_and_rows_without_numbers_are_left_out():
    found = numbers_of(of_map(np.zeros((6, 6))))
    assert np.isnan(found["entropy"]) and np.isnan(found["near_zero"])
    assert found["row_sum"] == 0 and found["rank"] == 0
    broken = np.eye(6)
    broken[2, 3] = np.nan
    found = numbers_of(of_map(broken))
    assert found.rows == 5 and found.all_rows == 6 and found["focus"] == 1


@pytest.mark.parametrize("signed", [False, True])
def test_they_are_those_of_a_comparison(signed):
    capture = make_capture("The hourglass was used at sea. " * 6, signed=signed)
    heads = [HeadId(0, 0), HeadId(1, 3), HeadId(4, 1), HeadId(2, 2)]
    measured = metrics.measure(capture, metrics.metrics_for(metrics.PAIR), heads)
    told = {one.head: one for one in compare(capture, capture).heads}
    for head in heads:
        mine, other = measured[head], told[head]
        for name in ("entropy", "near_zero", "negative_mass"):
            assert mine[name] == pytest.approx(
                getattr(other, name.removesuffix("_mass"))[0], rel=1e-4, abs=1e-6
            )
        size = min(other.rank_rows, other.columns)
        assert mine["rank"] == pytest.approx(other.rank[0] / size, rel=1e-3)


def test_row_by_row_they_are_what_plain_numpy_finds():
    capture = make_capture("One two three four five six. " * 5, signed=True)
    whole = capture.maps[0].read(1).astype(float)
    sizes = np.abs(whole)
    shares = sizes / sizes.sum(1, keepdims=True)
    spread = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(1)
    found = numbers_of(capture, HeadId(0, 1))
    assert found["row_sum"] == pytest.approx(whole.sum(1).mean(), rel=1e-5)
    assert found["focus"] == pytest.approx(shares.max(1).mean(), rel=1e-5)
    assert found["entropy"] == pytest.approx(spread.mean(), rel=1e-5)


def test_of_long_maps_rows_spread_evenly_are_measured(monkeypatch):
    monkeypatch.setattr(metrics, "EXACT_CELLS", 1 << 16)
    monkeypatch.setattr(metrics, "BLOCK_ROWS", 16)
    capture = make_capture("The hourglass was used at sea. " * 40)
    found = numbers_of(capture)
    assert found.all_rows == 1240 and 32 <= found.rows <= 64
    whole = capture.maps[0].read(0)
    assert found["row_sum"] == pytest.approx(float(whole.sum(1).mean()), rel=1e-3)


def test_heads_that_are_not_captured_are_left_out():
    capture = make_capture("The hourglass.")
    part = replace(capture, maps=(None, *capture.maps[1:]))
    measured = metrics.measure(part, metrics.metrics_for(metrics.PAIR))
    assert [*measured] == [head for head in capture.spec.heads if head.layer]
    assert {*measured[HeadId(1, 0)]} == {*metrics.metrics_for(metrics.PAIR)}


def test_heads_are_told_beside_those_of_their_kind():
    capture = make_capture("The hourglass.", strides=(1, 2))
    roles = {layer.index: layer.role for layer in capture.spec.layers}
    assert {roles[one.layer] for one in metrics.peers(capture, HeadId(0, 0))} == {"self"}
    down = next(one.index for one in capture.spec.layers if one.role == "down")
    assert {roles[one.layer] for one in metrics.peers(capture, HeadId(down, 0))} == {"down", "up"}


# --- a text, with gradients -----------------------------------------------------------------------


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
    return metrics.measure_text(Given(given, **more), spec_of(given))


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
    assert np.allclose(found.spectra[1], np.eye(metrics.SINGULAR)[0])
    assert np.allclose(found.spectra[4], sizes[: metrics.SINGULAR] / sizes[0])
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
    whole = metrics.measure_text(given, spec_of(maps, "tanh"))
    monkeypatch.setattr(metrics, "WEIGHTS_AT_ONCE", 3 * 40 * 7)
    parts = metrics.measure_text(given, spec_of(maps, "tanh"))
    for name in metrics.metrics_for(metrics.REPORT):
        assert np.allclose(whole.values[name], parts.values[name], rtol=1e-12), name
    for name in ("spectra", "apart", "cells", "at_scores", "at_weights"):
        assert np.allclose(getattr(whole, name), getattr(parts, name), rtol=1e-12), name
    size = np.abs(slopes[0][1])[seen]
    assert np.isclose(whole.values["small"][1], (size < 1e-3 * np.abs(slopes[0][1]).max()).mean())


def test_maps_of_other_shapes_are_not_compared():
    maps = {0: np.stack([IDENTITY, SINK]), 1: np.eye(N)[None, : N // 2]}
    found = metrics.measure_text(Given(maps), spec_of(maps))
    assert np.isnan(found.apart[:2, 2]).all() and np.isfinite(found.apart[:2, :2]).all()
    assert np.isnan(found.values["apart"][2])  # a head alone in its layer
    other = metrics.measure_text(Given({0: UNIFORM[None]}), spec_of({0: UNIFORM[None]}))
    assert np.isfinite(metrics.distances_between(found, other)[:2, 0]).all()
    assert np.isnan(metrics.distances_between(found, other)[2, 0])


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
    one = metrics.measure_text(Given(maps), spec)
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
    a = gathered([metrics.measure_text(Given(maps), spec_of(maps))], spec_of(maps))
    found = comparison.metric_changes(a, a)[0]
    assert np.isinf(found.difference[2]) and not found.differs
    assert found.to_dict()["difference_low"] is None and found.to_dict()["p"] is None


def test_distances_between_models_need_maps_of_one_shape():
    maps, other = {0: IDENTITY[None]}, {0: np.eye(5)[None]}
    one = metrics.measure_text(Given(maps), spec_of(maps))
    small = metrics.measure_text(Given(other), spec_of(other))
    beside = comparison.NanMean()
    beside.add(metrics.distances_between(one, small))
    assert beside.value() is None
    sink = metrics.measure_text(Given({0: SINK[None]}), spec_of(maps))
    beside.add(metrics.distances_between(one, sink))
    assert np.allclose(beside.value(), (N - 1) / N)


# --- convolution-likeness -------------------------------------------------------------------------


STEP = 7  # rows of a block


def kernels(*texts, causal=False):
    """The kernels of heads over texts, each an array (heads, n, n)."""
    captures = [plant(letters("x" * one.shape[1]), [one], causal=causal) for one in texts]
    found = metrics.Kernels(len(texts[0]))
    for step in (found.add, found.compare):
        for capture in captures:
            known, layout = capture.maps[0], Layout(capture, 0, {})
            rows = known.shape[1]
            blocks = [slice(at, min(at + STEP, rows)) for at in range(0, rows, STEP)]
            step(known, layout, blocks)
    return found.kernels()


def even_rows(values):
    return values / values.sum(-1, keepdims=True)


def toeplitz(n, kernel, offsets, causal=False):
    """(1, n, n): a kernel at every row, what falls out of the map left out, rows of sum 1."""
    out = np.zeros((n, n))
    for weight, offset in zip(kernel, offsets, strict=True):
        out += weight * np.eye(n, k=offset)
    return even_rows(np.tril(out) if causal else out)[None]


def dense(texts, causal):
    """Written from its definition, on whole maps: score, centre, width."""
    reach = max(len(one) for one in texts) - 1
    offsets = np.arange(-reach, reach + 1)
    mass, pairs = np.zeros(len(offsets)), np.zeros(len(offsets))
    masks = [np.tril(np.ones_like(one)) if causal else np.ones_like(one) for one in texts]
    maps = [even_rows(np.abs(one)) for one in texts]
    for one, mask in zip(maps, masks, strict=True):
        for at, offset in enumerate(offsets):
            mass[at] += np.trace(one, offset) if abs(offset) < len(one) else 0
            pairs[at] += np.trace(mask, offset) if abs(offset) < len(one) else 0
    p = np.where(pairs > 0, mass / np.maximum(pairs, 1), 0)
    scores = []
    for one, mask in zip(maps, masks, strict=True):
        i, j = np.indices(one.shape)
        wanted = even_rows(p[j - i + reach] * mask)
        apart, uneven = (one - wanted) ** 2, (one - even_rows(mask)) ** 2
        scores.append(1 - apart.sum() / uneven.sum())
    centre = (p * offsets).sum() / p.sum()
    width = np.sqrt((p * (offsets - centre) ** 2).sum() / p.sum())
    return np.mean(scores), centre, width


def test_the_identity_is_a_kernel_of_no_width():
    (one,) = kernels(np.eye(20)[None])
    assert one[:3] == pytest.approx((1, 0, 0)) and one.is_convolution


@pytest.mark.parametrize("offset", [-1, 1, -3])
def test_looking_at_one_distance_is_a_kernel_there(offset):
    n = 24
    weights = np.eye(n, k=offset)
    weights[weights.sum(1) == 0] = 1 / n  # rows that have no such key are even
    (one,) = kernels(weights[None])
    assert one.score > 0.9
    inside = [row for row in range(n) if 0 <= row + offset < n]
    (exact,) = kernels(np.eye(n, k=offset)[None])  # rows without weight are none
    assert exact[:3] == pytest.approx((1, offset, 0)) and exact.is_convolution and len(inside) < n


def test_a_causal_previous_token_head_is_a_kernel_but_for_its_first_row():
    n = 16
    weights = np.eye(n, k=-1)
    weights[0, 0] = 1
    (one,) = kernels(weights[None], causal=True)
    # p(0) = 1/n and p(-1) = 1, so that every other row has 1/(n + 1) at itself
    p = np.array([1 / n, 1])
    assert one.centre == pytest.approx(-1 / p.sum())
    apart = (n - 1) * 2 / (n + 1) ** 2
    rows = np.arange(1, n + 1)
    uneven = ((1 - 1 / rows) ** 2 + (rows - 1) / rows**2).sum()
    assert one.score == pytest.approx(1 - apart / uneven) and one.is_convolution


def test_even_maps_have_no_kernel():
    (one,) = kernels(np.full((1, 9, 9), 1 / 9))
    assert np.isnan(one.score) and not one.is_convolution
    (one,) = kernels(even_rows(np.tril(np.ones((9, 9))))[None], causal=True)
    assert np.isnan(one.score)


def test_a_sink_is_no_kernel():
    sink = np.zeros((30, 30))
    sink[:, 0] = 1
    for causal in (False, True):
        (one,) = kernels(sink[None], causal=causal)
        assert one.score < 0.5 and not one.is_convolution
        assert one[:3] == pytest.approx(dense([sink], causal))


def test_a_map_of_one_kernel_is_told_from_one_that_only_looks_like_it_at_the_edges():
    # Cordonnier's quadratic encoding, alpha 1.7 and centre 2 of 11 positions: 0.943 by the edges
    far = np.arange(11) - np.arange(11)[:, None]
    (one,) = kernels(even_rows(np.exp(-1.7 * (far - 2.0) ** 2))[None])
    assert one.score == pytest.approx(0.943, abs=5e-4) and one.is_convolution
    kernel, offsets = [0.2, 0.5, 0.3], [-2, -1, 0]
    (causal,) = kernels(toeplitz(40, kernel, offsets, causal=True), causal=True)
    assert causal.score > 0.99
    assert causal.centre == pytest.approx(-0.9, abs=0.1) and causal.width < 1


def test_the_reference_values_of_eleven_positions():
    n, random = 11, np.random.default_rng(0)
    far = np.arange(n) - np.arange(n)[:, None]
    before, sink = np.eye(n, k=-1), np.zeros((n, n))
    before[0, 0] = sink[:, 0] = 1
    scores = {
        "itself": kernels(np.eye(n)[None])[0].score,
        "before": kernels(before[None], causal=True)[0].score,
        "Gaussian": kernels(even_rows(np.exp(-1.7 * (far - 2.0) ** 2))[None])[0].score,
        "sink": kernels(sink[None])[0].score,
    }
    wanted = {"itself": 1.0, "before": 0.98, "Gaussian": 0.943, "sink": 0.36}
    assert scores == pytest.approx(wanted, abs=5e-3)
    maps = even_rows(np.exp(random.normal(size=(8, 64, 64))))
    assert max(one.score for one in kernels(maps)) < 0.3
    maps = even_rows(np.tril(np.exp(random.normal(size=(8, 64, 64)))))
    assert max(one.score for one in kernels(maps, causal=True)) < 0.3


def test_a_wide_kernel_is_not_called_convolution_like():
    offsets = list(range(-6, 7))
    (one,) = kernels(toeplitz(60, [1] * 13, offsets))
    assert one.score > 0.9 and one.width == pytest.approx(np.std(offsets), abs=0.3)
    assert not one.is_convolution


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


def test_what_varies_between_texts_is_the_content():
    still = np.eye(12)[None]
    (one,) = kernels(still, still[:, :9, :9])
    assert one.variance == 0
    first, second = np.eye(12), np.eye(12)[:, ::-1]
    (one,) = kernels(first[None], second[None])
    # every cell that only one of the two has varies by 1/4
    assert one.variance == pytest.approx(24 / 144 / 4)
    (one,) = kernels(still)
    assert np.isnan(one.variance)


def test_a_text_of_one_token_and_maps_of_zeros_say_nothing():
    (one,) = kernels(np.ones((1, 1, 1)))
    assert np.isnan(one.score)
    (one,) = kernels(np.zeros((1, 5, 5)))
    assert all(np.isnan(one))
