"""What one map weighs more than another, and maps on other cells than their own."""

import numpy as np
import pytest

from hgviz.core import HgvizError
from hgviz.maps import Axis, Difference, LazyMap, Projected, Rule
from tests.maps.test_lazy import make


def two(queries=600, keys=530, activations=("softmax", "ymish")):
    maps = []
    for seed, activation in enumerate(activations):
        rule = Rule(0.9, (activation,), ("l2" if activation == "ymish" else None,), causal=True)
        maps.append(LazyMap(make(rule, queries, keys, seed=seed), (seed,)))
    return maps


def largest(values, zoom):
    """The largest of each block by magnitude, of equal ones the positive; cell by cell."""
    step = 1 << zoom
    rows, columns = (-(-size // step) for size in values.shape)
    found = np.zeros((rows, columns), np.float32)
    for i in range(rows):
        for j in range(columns):
            cells = values[i * step : (i + 1) * step, j * step : (j + 1) * step].ravel()
            found[i, j] = max(cells, key=lambda one: (abs(one), one))
    return found


@pytest.mark.parametrize("zoom", [1, 9])
def test_a_cell_from_afar_is_the_largest_difference_in_it_never_that_of_the_largest(zoom):
    a, b = two()
    found = Difference(a, b, {0: 1}).read(0, zoom=zoom)
    np.testing.assert_array_equal(found, largest(a.read(0) - b.read(1), zoom))
    assert (found != a.read(0, zoom=zoom) - b.read(1, zoom=zoom)).any()


def test_maps_of_other_sizes_have_no_difference_and_other_heads_are_refused():
    a, b = two()
    with pytest.raises(ValueError, match="cannot be subtracted"):
        Difference(a, two(600, 529)[1], {0: 1})
    with pytest.raises(HgvizError, match="no head 1"):
        Difference(a, b, {0: 1}).read(1)
    with pytest.raises(HgvizError, match="no head 5"):
        Difference(a, b, {0: 5}).read(0)


# --- other cells ----------------------------------------------------------------------------------


def matrices(rows, columns, shape):
    """Averaging and adding as two matrices, written from what an axis says."""
    down, across = np.zeros((len(rows), shape[0])), np.zeros((shape[1], len(columns)))
    for cell in range(len(rows)):
        positions = rows.positions[rows.offsets[cell] : rows.offsets[cell + 1]]
        for one in positions:
            down[cell, one] += 1 / len(positions)
    for cell in range(len(columns)):
        for one in columns.positions[columns.offsets[cell] : columns.offsets[cell + 1]]:
            across[one, cell] += 1 / np.count_nonzero(columns.positions == one)
    return down, across


def drawn(random, positions, cells):
    """An axis of some positions in each cell, some of none, one position between left out."""
    counts = random.integers(0, 4, cells)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.minimum(offsets, positions - 1)
    numbers = np.delete(np.arange(positions), positions // 2)
    return Axis(numbers[: offsets[-1]], offsets)


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_averaged_and_columns_added(seed):
    random = np.random.default_rng(seed)
    a, _ = two(700, 620)
    rows, columns = drawn(random, 700, 420), drawn(random, 620, 390)
    found = Projected(a, rows, columns)
    down, across = matrices(rows, columns, (700, 620))
    expected = down @ a.read(0).astype(np.float64) @ across
    np.testing.assert_allclose(found.read(0), expected, atol=1e-6)
    np.testing.assert_allclose(
        found.read(0, (200, 300), (250, 390)), expected[200:300, 250:390], atol=1e-6
    )


def test_an_axis_knows_its_cells_and_what_they_reach():
    axis = Axis(np.array([2, 3, 3, 7]), np.array([0, 2, 2, 3, 4]))
    assert axis.there.tolist() == [True, False, True, True]
    assert axis.shares.tolist() == [1.0, 0.5, 0.5, 1.0]
    assert axis.cells.tolist() == [-1, -1, 0, 0, -1, -1, -1, 3]
    assert axis.reach(np.array([[0, 1], [1, 2], [1, 4], [0, 9]])).tolist() == [
        [2, 4], [0, 0], [3, 8], [2, 8],
    ]  # fmt: skip
