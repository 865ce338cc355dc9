"""Segments of unequal length: all maps made one, and which way the parts of an answer took."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis.operators import Segments
from hgviz.analysis.resolution import Rollout, rollout
from hgviz.core import Capture, HeadId, RolloutOptions, readonly
from hgviz.maps import DenseMap
from hgviz.models.config import parse_config
from tests.making import byte_prompt

TEXT = "every word is a segment and so is what a model finds"
N = len(TEXT)
ENDS = {
    "words": [at for at, one in enumerate(TEXT) if one == " "],
    "none": [],
    "every token": list(range(N)),
    "the first and the last": [0, N - 1],
    "of threes": list(range(0, N, 3)),
}


def make(name, heads=2, mask=None, seed=0):
    """A capture of random maps with these boundaries."""
    config = parse_config({
        "family": "dynamic", "n_layers": [2, 3, 1], "vocab_size": 256, "d_model": 4,
        "n_heads": heads, "boundaries": "learned",
    })  # fmt: skip
    ends = np.zeros(N, bool)
    ends[ENDS[name]] = True
    prompt = replace(byte_prompt(TEXT), boundaries=readonly(ends), attention_mask=mask)
    spans, random = config.spans(N, boundaries=ends), np.random.default_rng(seed)
    maps = []
    for layer in config.layers:
        size = len(spans[layer.level])
        weights = np.tril(random.random((heads, size, size)) ** 4 + 1e-3)
        weights /= weights.sum(2, keepdims=True)
        maps.append(DenseMap(weights.astype(np.float32), layer.heads, causal=True))
    return Capture(config.spec("m", "", 0), prompt, spans, tuple(maps))


def dense(capture, off=frozenset()):
    """R by matrices and loops of its own; a layer whose heads are all off
    adds nothing."""
    ends = [*np.flatnonzero(capture.prompt.boundaries)]
    n, m = len(capture.prompt), 1 + len(ends)
    keep = capture.prompt.attention_mask
    weights, before = np.zeros((m, n)), -1
    for s, end in enumerate(ends):
        inside = [t for t in range(before + 1, end + 1) if keep is None or keep[t]]
        for t in inside:
            weights[s + 1, t] = 1 / len(inside)
        before = end
    read = np.zeros((n, m))
    for t in range(n):
        read[t, sum(end <= t for end in ends)] = 1

    def layer(one):
        on = [h for h in one.heads if HeadId(one.index, h) not in off]
        size = capture.maps[one.index].shape[1]
        if not on:
            return np.eye(size)
        fused = sum(capture.maps[one.index].read(h).astype(float) for h in on) / len(on)
        return (rn(fused) + np.eye(size)) / 2

    def stack(name, rows):
        for one in capture.spec.layers:
            if one.name.startswith(name):
                rows = layer(one) @ rows
        return rows

    first = stack("pre", np.eye(n))
    below = stack("middle", np.eye(m)) @ rn(weights) @ first
    return stack("post", rn(first / 2 + rn(read @ below) / 2))


def rn(matrix):
    sums = matrix.sum(1, keepdims=True)
    return np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums > 0)


@pytest.mark.parametrize("name", ENDS)
def test_all_maps_made_one_are_those_of_the_dense_matrices(name):
    capture = make(name)
    found, wanted = rollout(capture), dense(capture)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    assert (np.triu(found, 1) == 0).all()
    np.testing.assert_allclose(rollout(capture, (N // 2, N // 2 + 3)), wanted[N // 2 : N // 2 + 3],
                               atol=1e-6)  # fmt: skip


def test_heads_that_are_off_and_tokens_that_are_masked_have_no_part():
    mask = np.ones(N, bool)
    mask[[2, 3, 20]] = False
    capture = make("words", mask=mask)
    np.testing.assert_allclose(rollout(capture), dense(capture), atol=1e-6)
    off = frozenset({HeadId(2, 0), HeadId(3, 0), HeadId(3, 1)})
    capture = replace(make("words"), off=off)
    np.testing.assert_allclose(rollout(capture), dense(capture, off), atol=1e-6)


@pytest.mark.parametrize("name", ENDS)
def test_what_comes_from_the_null_group_comes_from_nothing(name):
    capture = make(name)
    found = Rollout(capture, RolloutOptions(nothing=True)).rows()
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    if name != "every token":  # which then has a segment of its own from the first on
        assert found[0, -1] > 0.1 or 0 in ENDS[name]
    composed = Rollout(capture).composed()
    (crossing,) = composed.crossings
    assert (crossing.looked_up == 0).all() and (crossing.looked_down == 0).all()
    one = Rollout(capture).one(N - 1)
    np.testing.assert_allclose(sum(one.levels), one.weights[0], atol=1e-6)


@pytest.mark.parametrize("name", ENDS)
def test_pooling_and_reading_have_their_transposes(name):
    capture, random = make(name), np.random.default_rng(0)
    way = Segments(N, capture.spans[1])
    rows, values = random.random((3, way.count)), random.random(N)
    np.testing.assert_allclose(way.unpooled(rows) @ values, rows @ way.pool(values), atol=1e-12)
    rows, values = random.random((3, N)), random.random(way.count)
    np.testing.assert_allclose(way.unspread(rows) @ values, rows @ way.spread(values), atol=1e-12)
    read = [capture.position(1, token) for token in range(N)]
    np.testing.assert_array_equal(way.spread(np.arange(way.count)), read)


def test_a_part_of_a_text_has_the_segments_that_end_within_it():
    spans = make("of threes").spans[1]
    for length in (1, 2, 4, 5, N):
        way = Segments(length, spans)
        assert way.count == 1 + sum(0 < end <= length for _, end in spans)
        assert way.spread(np.arange(way.count)).shape == (length,)


def test_a_token_has_the_row_of_the_last_segment_that_was_closed_by_then():
    capture = make("the first and the last")
    assert [capture.position(1, t) for t in (0, 1, N - 2, N - 1)] == [1, 1, 1, 2]
    assert make("none").position(1, N - 1) == 0
    assert [capture.row_token(2, row) for row in range(3)] == [None, 0, N - 1]
    for row in (1, 2):
        assert capture.row(2, capture.row_token(2, row)) == row
