"""Six numbers of a head, against closed forms and against plain numpy."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis import metrics as module
from hgviz.analysis.comparison import compare
from hgviz.analysis.metrics import PAIR, measure_heads, metrics_for, peers
from hgviz.core import Capture, HeadId, Layer, Level, ModelSpec
from hgviz.maps import DenseMap
from tests.making import byte_prompt, make_capture


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


def measured(capture, head=FIRST):
    """What is said of a head."""
    known = {}
    measure_heads(capture, [head], known)
    return known[head]


def test_a_uniform_map_spreads_over_all_keys_with_one_pattern():
    found = measured(of_map(np.full((16, 16), 1 / 16))).values
    assert found["entropy"] == pytest.approx(np.log(16), abs=1e-5)
    assert found["rank"] == pytest.approx(1 / 16, rel=1e-6)
    assert found["near_zero"] == 0 and found["negative_mass"] == 0
    assert found["row_sum"] == pytest.approx(1) and found["focus"] == pytest.approx(1 / 16)


def test_of_many_rows_blocks_are_taken_from_the_first_to_the_last():
    rows = np.arange(50 * module.BLOCK_ROWS + 7)
    found = module.spread_rows(rows, module.EXACT_CELLS // (4 * module.BLOCK_ROWS))
    assert found[0] == 0 and found[-1] == rows[-1] and len(found) == 3 * module.BLOCK_ROWS + 7
    assert np.array_equal(module.spread_rows(rows[:5], 1), rows[:5])


def test_an_identity_looks_at_one_key_and_has_full_rank():
    found = measured(of_map(np.eye(12))).values
    assert found["entropy"] == 0 and found["focus"] == 1
    assert found["rank"] == pytest.approx(1)
    assert found["near_zero"] == pytest.approx(11 / 12)


def test_half_of_what_is_taken_away_is_negative_mass():
    matrix = np.tile([1.0, -1.0], (8, 4))
    found = measured(of_map(matrix, activation="ymish")).values
    assert found["negative_mass"] == pytest.approx(0.5) and found["row_sum"] == pytest.approx(
        0, abs=1e-7
    )
    assert found["entropy"] == pytest.approx(np.log(8), abs=1e-5)


def test_cells_after_the_query_are_not_near_zero():
    matrix = np.tril(np.ones((10, 10)))
    assert measured(of_map(matrix, causal=True)).values["near_zero"] == 0


def test_a_head_of_zeros_has_no_entropy_and_rows_without_numbers_are_left_out():
    found = measured(of_map(np.zeros((6, 6))))
    assert np.isnan(found.values["entropy"]) and np.isnan(found.values["near_zero"])
    assert found.values["row_sum"] == 0 and found.values["rank"] == 0
    broken = np.eye(6)
    broken[2, 3] = np.nan
    found = measured(of_map(broken))
    assert found.rows == 5 and found.of == 6 and found.values["focus"] == 1


@pytest.mark.parametrize("signed", [False, True])
def test_they_are_those_of_a_comparison(signed):
    capture = make_capture("The hourglass was used at sea. " * 6, signed=signed)
    heads = [HeadId(0, 0), HeadId(1, 3), HeadId(4, 1), HeadId(2, 2)]
    known = {}
    measure_heads(capture, heads, known)
    told = {one.head: one for one in compare(capture, capture).heads}
    for head in heads:
        mine, other = known[head].values, told[head]
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
    found = measured(capture, HeadId(0, 1)).values
    assert found["row_sum"] == pytest.approx(whole.sum(1).mean(), rel=1e-5)
    assert found["focus"] == pytest.approx(shares.max(1).mean(), rel=1e-5)
    assert found["entropy"] == pytest.approx(spread.mean(), rel=1e-5)


def test_of_long_maps_rows_spread_evenly_are_measured(monkeypatch):
    monkeypatch.setattr(module, "EXACT_CELLS", 1 << 16)
    monkeypatch.setattr(module, "BLOCK_ROWS", 16)
    capture = make_capture("The hourglass was used at sea. " * 40)
    found = measured(capture)
    assert found.of == 1240 and 32 <= found.rows <= 64
    whole = capture.maps[0].read(0)
    assert found.values["row_sum"] == pytest.approx(float(whole.sum(1).mean()), rel=1e-3)


def test_what_is_known_is_not_measured_again():
    capture = make_capture("The hourglass.")
    known = {}
    measure_heads(capture, [HeadId(0, 0)], known)
    measure_heads(replace(capture, maps=(None,) * 9), [HeadId(0, 0)], known)
    measure_heads(replace(capture, maps=(None, *capture.maps[1:])), [HeadId(0, 1)], known)
    assert [*known] == [HeadId(0, 0)] and {*known[HeadId(0, 0)].values} == {*metrics_for(PAIR)}


def test_heads_are_told_beside_those_of_their_kind():
    capture = make_capture("The hourglass.", strides=(1, 2))
    roles = {layer.index: layer.role for layer in capture.spec.layers}
    assert {roles[one.layer] for one in peers(capture, HeadId(0, 0))} == {"self"}
    down = next(one.index for one in capture.spec.layers if one.role == "down")
    assert {roles[one.layer] for one in peers(capture, HeadId(down, 0))} == {"down", "up"}
