"""The histogram of a head gives limits of colours without its map."""

import numpy as np
import pytest

from hgviz.maps import DenseMap, pyramid
from hgviz.maps.survey import Histogram, Summary
from hgviz.store import open_capture, write_capture
from tests.making import make_capture


def test_a_quantile_is_the_magnitude_that_the_share_does_not_exceed():
    values = np.linspace(0.001, 1.0, 1000, dtype=np.float32).reshape(50, 20)
    for signed in (False, True):
        shown = np.where(np.arange(20) % 2, -values, values) if signed else values
        within = pyramid.Range.of(shown, signed)
        found = Histogram.of(pyramid.encode(shown, within), within)
        assert found.counts.sum() == 1000
        for share in (0.05, 0.5, 0.99, 1.0):
            assert found.quantile(share) == pytest.approx(share, rel=0.06 if signed else 0.03)


def test_a_map_of_zeros_has_no_limits():
    found = DenseMap(np.zeros((1, 4, 4), np.float32), (0,)).summary(0)
    assert found.peak == found.quantile(1.0) == found.quantile(0.5) == 0.0


def test_shares_beyond_the_ends_are_the_ends():
    one = Summary(*(np.array(values, np.float32) for values in ([[0.5, 1.0]], [1.0], [0.7])))
    assert one.quantile(7) == pytest.approx(1.0, rel=0.03) and one.quantile(-1) == 0.0


@pytest.mark.parametrize("signed", [False, True])
def test_a_stored_histogram_counts_the_finest_kept_cells(tmp_path, monkeypatch, signed):
    monkeypatch.setattr(pyramid, "_SMALL", 16)  # levels as of a long text
    capture = make_capture("x. " * 367, (1,), 1, signed=signed, logits=False)
    opened = open_capture(write_capture(tmp_path / "a.h5", capture))
    for one in opened.maps:
        summary, cells = one.summary(0), np.abs(one.read(0, zoom=3))
        assert summary.hist is not None and summary.hist.counts.sum() == cells.size
        assert summary.peak == pytest.approx(cells.max(), rel=1e-5)
        seen = np.quantile(cells, 0.9)
        assert summary.quantile(0.9) == pytest.approx(seen, rel=0.08)
        plain = make_small(one)
        assert plain.hist is None and plain.quantile(1.0) == pytest.approx(summary.peak, rel=0.06)


def make_small(one):
    """The summary that is computed anew, from the map itself."""
    return DenseMap(one.read(0)[None], (0,), signed=one.signed).summary(0)
