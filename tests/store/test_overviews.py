"""Coarse levels of large maps: kept, read without a product, and not believed."""

import shutil
import zlib
from dataclasses import replace

import h5py
import numpy as np
import pytest

from hgviz.core import Capture, HgvizError, Layer, Level, ModelSpec
from hgviz.maps import DenseMap, LazyMap, Rule, recompute_statistics
from hgviz.maps.overview import SIGNED_ERROR, UNSIGNED_ERROR
from hgviz.store import Writer, open_capture, write_capture
from hgviz.store.arrays import StoredRuns
from tests.making import byte_prompt
from tests.maps.test_lazy import make
from tests.store.damage import swap

TOKENS = 4100
NAMES, NORMS = ("softmax", "linear", "topk"), (None, None, None)


def large(names=NAMES, norms=NORMS, proof=0.0) -> Capture:
    """One layer of a long text; its keys are slots, so that the maps are quickly made."""
    prompt = byte_prompt("a" * TOKENS)
    rule = Rule(0.4, names, norms, causal=False, top_k=3 if "topk" in names else None)
    rows = np.array([0, 300, TOKENS - 1])
    values = np.full((len(names), 3, 70), proof, np.float32)
    found = replace(make(rule, TOKENS, 70, width=4), proof_rows=rows, proof_values=values)
    heads = tuple(range(len(names)))
    layer = Layer(0, "middle.0", "self", 0, 1, heads=heads, activations=names, causal=False)
    ends = np.arange(TOKENS)
    spans = (np.stack([ends, ends + 1], 1), np.stack([np.arange(70), np.arange(70) + 1], 1))
    levels = (Level(0), Level(1, sequence="slots"))
    spec = ModelSpec("yubert", "large", levels, (layer,), 8, 256, goal="next")
    return Capture(spec, prompt, spans, (LazyMap(found, heads),))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_capture(tmp_path_factory.mktemp("large") / "a.h5", large())


@pytest.fixture
def path(tmp_path, written):
    return shutil.copy(written, tmp_path / "a.h5")


def test_an_overview_comes_from_the_file_and_agrees_with_the_map(written):
    one = open_capture(written).maps[0]
    with h5py.File(written) as file:
        assert sorted(file["layers/000/max"]) == ["3", "4", "5", "6"]
        assert sorted(file["layers/000/mean"]) == ["4", "5", "6"]
    for head in one.heads:
        exact, found = one.read(head, (99, 3000), zoom=4), one.overview(head, (99, 3000), zoom=4)
        limit = 1.001 * UNSIGNED_ERROR * np.abs(exact) + 1.2e-6 * exact.max()
        assert found.shape == exact.shape and (np.abs(found - exact) <= limit).all()
        exact = one.read(head, zoom=5, reduce="mean")
        found = one.overview(head, zoom=5, reduce="mean")
        assert (np.abs(found - exact) <= 1.001 * UNSIGNED_ERROR * exact + 1e-6 * exact.max()).all()
        assert one.overview(head, zoom=2) is None
    one.factors = None  # no product is taken
    assert one.overview(0, zoom=9).shape == (9, 1)


def test_signed_and_dense_maps_have_overviews_too(tmp_path):
    capture = large(("ymish", "elu"), ("l2", None))
    dense = DenseMap(np.stack([capture.maps[0].read(head) for head in (0, 1)]), (0, 1), signed=True)
    for maps in (capture.maps[0], dense):
        out = tmp_path / f"{type(maps).__name__}.h5"
        one = open_capture(write_capture(out, replace(capture, maps=(maps,)))).maps[0]
        exact, found = one.read(0, zoom=5), one.overview(0, zoom=5)
        limit = 1.001 * SIGNED_ERROR * np.abs(exact) + 1.2e-6 * np.abs(exact).max()
        assert (found < 0).any() and (np.abs(found - exact) <= limit).all()


def test_statistics_settled_while_writing_are_those_settled_before(tmp_path):
    whole = large()
    factors = whole.maps[0].factors
    factors = replace(factors, stat=factors.stat + np.float32(1e-4))
    with Writer(tmp_path / "a.h5", whole) as writer:
        writer.add(0, factors, settle=True)
        writer.finish()
    before = replace(whole, maps=(LazyMap(recompute_statistics(factors), whole.maps[0].heads),))
    write_capture(tmp_path / "b.h5", before)
    one, two = (open_capture(tmp_path / name).maps[0] for name in ("a.h5", "b.h5"))
    assert one.verify_max_abs == pytest.approx(two.verify_max_abs, abs=1e-6)
    for head in one.heads:
        assert (one.factors.stat[head] == two.factors.stat[head]).all()
        assert (one.read(head) == two.read(head)).all()
        rows = one.summary(head).rowmax, two.summary(head).rowmax
        np.testing.assert_allclose(*rows, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(one.read(0).sum(1), 1, atol=1e-6)


def test_a_changed_number_is_noticed_by_what_is_computed_from_it(path):
    with h5py.File(path, "r+") as file:  # fletcher32 is written anew, so only the crc can tell
        file["layers/000/q"][1, 300, 2] += 1
    one = open_capture(path).maps[0]
    one.read(0), one.read(1, (0, 256)), one.read(1, (512, TOKENS))
    for rows in ((290, 291), (0, 257), None):
        with pytest.raises(HgvizError, match="not what was written"):
            one.read(1, rows)
    stat = one.factors.stat
    assert isinstance(stat, StoredRuns) and stat[1, 300] == stat[1][300]
    assert stat[np.int64(0), np.int64(5)] == stat[0][5]


def test_a_file_without_checksums_of_runs_compares_whole_heads(path, written):
    with h5py.File(path, "r+") as file:
        del file["layers/000/runs"]
        file["layers/000/q"][1, 300, 2] += 1
    one, same = (open_capture(one).maps[0] for one in (path, written))
    assert (one.read(0, (5, 9)) == same.read(0, (5, 9))).all()
    with pytest.raises(HgvizError, match="not what was written"):
        one.read(1, (5, 9))


def put(at, value):
    def change(old):
        old[at] = value
        return old

    return change


PACKED = {"shape": (3, 999, 5), "dtype": "u1", "chunks": (1, 9, 5), "compression": "gzip"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max/9", h5py.ExternalLink("/etc/passwd", "/")),
        ("max/4", PACKED),
        ("mean/4", np.zeros((3, 257, 5), "u1")),
        ("ranges", put((0, 0), [2.0, 1.0])),
        ("ranges", put((1, 1), np.nan)),
        ("runs", lambda old: old[:, 1:]),
        ("max", np.zeros(3)),
    ],
)
def test_levels_that_are_not_as_they_should_be_are_refused(path, name, value):
    swap(path, f"layers/000/{name}", value)
    with pytest.raises(HgvizError, match="cannot be read") as caught:
        open_capture(path)
    assert "layers/000" in caught.value.what


def test_a_bomb_in_a_level_is_refused_when_it_is_read(path):
    with h5py.File(path, "r+") as file:
        bomb = zlib.compress(bytes(1 << 26), 9)
        file["layers/000/max/3"].id.write_direct_chunk((0, 0, 0), bomb)
    one = open_capture(path).maps[0]
    with pytest.raises(HgvizError, match="cannot be read"):
        one.overview(0, zoom=3)
    assert one.overview(1, zoom=3) is not None
