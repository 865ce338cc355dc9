"""Packed chunks: HDF5's own filters read them, and so does our reader with its limit."""

import zlib
from dataclasses import replace

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import HgvizError
from hgviz.maps import Grouped, LazyMap
from hgviz.store import open_capture, write_capture
from hgviz.store.given import capture_of
from hgviz.store.packing import Packed, create, packed, write_chunks

DTYPES = "u1", "<u2", "<f2", "<f4", "<f8"


def values_of(dtype, shape, kind, seed):
    random = np.random.default_rng(seed)
    if kind == "bits":
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer(random.bytes(size), dtype).reshape(shape)
    if kind == "sparse":
        return (random.random(shape) > 0.99).astype(dtype)
    return np.full(shape, -0.0).astype(dtype) if kind == "minus" else np.zeros(shape, dtype)


@given(
    st.sampled_from(DTYPES), st.sampled_from(["bits", "sparse", "minus", "zeros"]),
    st.integers(0, 99), st.data(),
)  # fmt: skip
def test_numbers_come_back_bit_by_bit_from_hdf5_and_from_any_slice(dtype, kind, seed, data):
    shape = data.draw(st.tuples(*[st.integers(1, n) for n in (3, 40, 30)]))
    sides = data.draw(st.tuples(*[st.integers(1, n) for n in shape[1:]]))
    values = values_of(dtype, shape, kind, seed)
    with h5py.File("packed", "w", driver="core", backing_store=False) as file:
        target = create(file, "one", shape, dtype, (1, *sides))
        for place in range(shape[0]):
            write_chunks(target, place, values[place])
        assert target[...].tobytes() == values.tobytes()
        if kind == "zeros":
            assert target.id.get_storage_size() == 0
        reader = Packed(target, "packed")
        assert reader[...].tobytes() == values.tobytes()
        at = tuple(
            data.draw(st.one_of(st.integers(0, n - 1), st.slices(n).filter(_steady)))
            for n in shape[: data.draw(st.integers(1, 3))]
        )
        found, expected = reader[at], values[at]
        assert found.shape == expected.shape and found.tobytes() == expected.tobytes()


def _steady(one):
    return one.step in (None, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_noise_takes_no_more_than_its_bytes_and_a_little(dtype):
    values = values_of(dtype, (300_000,), "bits", 0)
    assert len(packed(values)) < 1.0005 * values.nbytes + 64
    assert zlib.decompress(packed(values))[:1] == values.tobytes()[:1]


def test_of_normal_numbers_the_exponents_are_saved():
    values = np.random.default_rng(0).normal(size=(256, 64)).astype("<f4")
    # sign, 1 bit, and seven of eight bits of exponents, 1.6 bits: of 32 bits 26.6 are left
    assert 0.82 < len(packed(values)) / values.nbytes < 0.85


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    random = np.random.default_rng(0)
    layer = {name: random.normal(size=(2, 600, 32)).astype("f4") for name in "qk"}
    out = tmp_path_factory.mktemp("packed") / "a.h5"
    return write_capture(out, tokens=["a"] * 600, layers=[{**layer, "causal": True}])


def bomb(size):
    return zlib.compress(bytes(1 << 26), 9)


def cut(size):
    return zlib.compress(bytes(size), 0)[:-3]


def longer(size):
    return zlib.compress(bytes(size + 1), 0)


def no_stream(size):
    return b"\x78\x01 what is this?"


@pytest.mark.parametrize("harm", [bomb, cut, longer, no_stream])
def test_queries_that_unpack_to_something_else_are_refused_when_they_are_read(path, tmp_path, harm):
    other = tmp_path / "b.h5"
    other.write_bytes(path.read_bytes())
    with h5py.File(other, "r+") as file:
        q = file["layers/000/q"]
        assert q.compression == "gzip"
        q.id.write_direct_chunk((1, 0, 0), harm(4 * int(np.prod(q.chunks))))
    one = open_capture(other).maps[0]
    one.read(0)
    with pytest.raises(HgvizError, match="cannot be read"):
        one.read(1)


def test_a_long_text_takes_a_seventh_more_than_its_queries_and_shared_keys(tmp_path):
    random, tokens, heads = np.random.default_rng(0), 8192, 8
    q, k = (random.normal(size=(n, tokens, 64)).astype("f4") for n in (heads, 2))
    layer = {"q": q, "k": k, "causal": True}
    whole = capture_of(["a"] * tokens, [layer])
    one = whole.maps[0]
    shared = LazyMap(replace(one.factors, k=Grouped(k, heads)), one.heads)
    path = write_capture(tmp_path / "a.h5", replace(whole, maps=(shared,)))
    with h5py.File(path) as file:
        texts = sum(file[f"prompt/{name}"].nbytes for name in ("text", "pieces", "ids", "spans"))
        texts += file["levels/0/spans"].nbytes
    ratio = (path.stat().st_size - texts) / (q.nbytes + k.nbytes)
    print(f"{ratio:.3f} times queries and keys")
    assert ratio < 1.145
    opened = open_capture(path).maps[0]
    assert (opened.read(5, (8000, 8192), (0, 999)) == one.read(5, (8000, 8192), (0, 999))).all()
    assert opened.verify_max_abs < 1e-6
