"""Convolution-likeness against closed forms and against whole maps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.analysis.metrics import Kernels
from hgviz.analysis.tokens import Layout
from tests.analysis.planting import letters, plant

STEP = 7  # rows of a block


def kernels(*texts, causal=False):
    """The kernels of heads over texts, each an array (heads, n, n)."""
    captures = [plant(letters("x" * one.shape[1]), [one], causal=causal) for one in texts]
    found = Kernels(len(texts[0]))
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
