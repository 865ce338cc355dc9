"""What is hatched is exactly what the rule of the layer does not let a query see."""

import numpy as np
import pytest

from hgviz.core import HeadId, Selection, Streaming, replace
from hgviz.figures import Spec
from hgviz.figures.content.unseen import reason, seen_cells
from hgviz.maps import LazyMap
from tests.figures.texts import SEA, draw, plain
from tests.making import make_capture


def rule_sees(capture, layer):
    """By strides, as the model itself has it."""
    one = capture.spec.layers[layer]
    stride_q = capture.spec.levels[one.level].stride
    stride_k = capture.spec.levels[one.key_level].stride
    _, queries, keys = capture.maps[layer].shape
    i, j = np.arange(queries)[:, None] * stride_q, np.arange(keys)[None] * stride_k
    group = max(stride_q, stride_k)
    return (i // group == j // group) if one.window else (j < i + stride_q)


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("length", [64, 61, 5, 1])
def test_seen_is_what_the_rule_says_for_every_real_query(length, windowed):
    capture = make_capture(SEA[:length], windowed=windowed)
    for layer in range(len(capture.spec.layers)):
        real = capture.query_spans(layer)[:, 1] > 0
        seen = seen_cells(capture, layer)
        np.testing.assert_array_equal(seen[real], rule_sees(capture, layer)[real])
        assert not seen[~real].any()


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("zoom", [1, 2, 3, 7])
def test_a_larger_cell_is_seen_where_any_of_it_is(zoom, windowed):
    capture = make_capture(SEA[:75], windowed=windowed)
    side = 1 << zoom
    for layer in range(len(capture.spec.layers)):
        fine = seen_cells(capture, layer)
        high, wide = (-(-n // side) * side for n in fine.shape)
        padded = np.zeros((high, wide), bool)
        padded[: fine.shape[0], : fine.shape[1]] = fine
        pooled = padded.reshape(high // side, side, wide // side, side).any((1, 3))
        seen = seen_cells(capture, layer, zoom)
        assert seen.shape == pooled.shape
        assert (seen >= pooled).all()
        if capture.spec.layers[layer].window is None:
            np.testing.assert_array_equal(seen, pooled)


def test_padded_tokens_are_not_seen():
    capture = plain(["a", "b", "c"])
    assert seen_cells(capture, 0).all()
    assert reason(capture, [HeadId(0, 0)]) == ""
    mask = np.array([True, True, True, False, False])
    padded = replace(capture, prompt=replace(capture.prompt, attention_mask=mask))
    seen = seen_cells(padded, 0)
    assert seen[:3, :3].all()
    assert not seen[:, 3:].any()
    assert not seen[3:].any()
    assert reason(padded, [HeadId(0, 0)]) == "not seen: padding"


def test_the_reason_is_said():
    assert reason(make_capture("abcd"), [HeadId(0, 0)]) == "not seen: comes after the query"
    assert (
        reason(make_capture("abcd", windowed=True), [HeadId(2, 0)])
        == "not seen: outside the window"
    )
    assert reason(make_capture("a"), [HeadId(0, 0)]) == ""


@pytest.mark.parametrize("zoom", [0, 1, 3])
def test_heads_that_stream_see_the_first_keys_and_the_latest_alone(zoom):
    capture = make_capture(SEA[:75])
    one = capture.maps[0]
    rule = one.factors.rule.streamed((1,), (3, 9))
    streams = LazyMap(replace(one.factors, rule=rule), one.heads)
    capture = replace(capture, maps=(streams, *capture.maps[1:]))
    assert np.array_equal(seen_cells(capture, 0, zoom, head=0), seen_cells(capture, 0, zoom))
    n, side = one.shape[1], 1 << zoom
    padded = np.zeros((-(-n // side) * side,) * 2, bool)
    padded[:n, :n] = rule.of(1).sees(np.arange(n), np.arange(n))
    pooled = padded.reshape(len(padded) // side, side, -1, side).any((1, 3))
    assert np.array_equal(seen_cells(capture, 0, zoom, head=1), pooled)
    why = "not seen: comes after the query, or neither among the first keys nor the latest"
    assert reason(capture, [HeadId(0, 1)]) == why
    assert reason(capture, [HeadId(0, 0)]) == "not seen: comes after the query"


def test_a_figure_of_a_head_that_streams_hatches_what_it_does_not_see(tmp_path):
    capture = make_capture(SEA[:75])
    one = capture.maps[0]
    few = Streaming(frozenset({HeadId(0, 1)}), 3, 9)
    rule = one.factors.rule.streamed((1,), few.near)
    streams = LazyMap(replace(one.factors, rule=rule), one.heads)
    capture = replace(capture, maps=(streams, *capture.maps[1:]), streaming=few)
    spec = Spec("map", Selection(0, 1, 40))
    path = tmp_path / "map.svg"
    draw(spec, capture, path)
    said = path.read_text()
    assert "neither among the first keys nor the latest" in said
    assert "0.1 (first 3, latest 9)" in said
