"""What HDF5 writes through, and packed chunks that HDF5 and our own reader read alike."""

import os
import signal
from dataclasses import replace

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.maps import Grouped, LazyMap
from hgviz.store import hdf5, open_capture, write_capture
from hgviz.store.captures import capture_of
from hgviz.store.hdf5 import Sink, Stored, create_packed, whole_hdf5, write_chunks

DTYPES = "u1", "<u2", "<f2", "<f4", "<f8"
RANDOM = np.random.default_rng(0)
VALUES = {
    "bits": lambda shape, dtype, random: np.frombuffer(
        random.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape),
    "sparse": lambda shape, dtype, random: (random.random(shape) > 0.99).astype(dtype),
    "minus": lambda shape, dtype, random: np.full(shape, -0.0).astype(dtype),
    "zeros": lambda shape, dtype, random: np.zeros(shape, dtype),
}  # fmt: skip


@given(st.sampled_from(DTYPES), st.sampled_from([*VALUES]), st.integers(0, 99), st.data())
def test_numbers_come_back_bit_by_bit_from_hdf5_and_from_any_slice(dtype, kind, seed, data):
    shape = data.draw(st.tuples(*[st.integers(1, n) for n in (3, 40, 30)]))
    sides = data.draw(st.tuples(*[st.integers(1, n) for n in shape[1:]]))
    values = VALUES[kind](shape, dtype, np.random.default_rng(seed))
    with h5py.File("packed", "w", driver="core", backing_store=False) as file:
        target = create_packed(file, "one", shape, dtype, sides)
        for place in range(shape[0]):
            write_chunks(target, place, values[place])
        assert target[...].tobytes() == values.tobytes()
        if kind == "zeros":
            assert target.id.get_storage_size() == 0
        reader = Stored(target, "packed")
        assert reader[...].tobytes() == values.tobytes()
        at = tuple(
            data.draw(st.integers(0, n - 1) | st.slices(n).filter(lambda s: s.step in (None, 1)))
            for n in shape[: data.draw(st.integers(1, 3))]
        )
        found, expected = reader[at], values[at]
        assert found.shape == expected.shape and found.tobytes() == expected.tobytes()


def test_a_long_text_takes_a_seventh_more_than_its_queries_and_shared_keys(tmp_path):
    tokens, heads = 8192, 8
    q, k = (RANDOM.normal(size=(n, tokens, 64)).astype("f4") for n in (heads, 2))
    whole = capture_of(["a"] * tokens, [{"q": q, "k": k, "causal": True}])
    one = whole.maps[0]
    shared = LazyMap(replace(one.factors, k=Grouped(k, heads)), one.heads)
    path = write_capture(tmp_path / "a.h5", replace(whole, maps=(shared,)))
    with h5py.File(path) as file:
        texts = sum(file[f"prompt/{name}"].nbytes for name in ("text", "pieces", "ids", "spans"))
        texts += file["levels/0/spans"].nbytes
    assert (path.stat().st_size - texts) / (q.nbytes + k.nbytes) < 1.145
    opened = open_capture(path).maps[0]
    assert (opened.read(5, (8000, 8192), (0, 999)) == one.read(5, (8000, 8192), (0, 999))).all()
    assert opened.verify_max_abs < 1e-6


# --- the way to the disk --------------------------------------------------------------------------


def write(path, data):
    with whole_hdf5(path) as file:
        for number, values in enumerate(data):
            file[f"group {number}/numbers"] = values


@pytest.fixture
def interruptible():
    """SIGINT as Python handles it, though whoever started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_hdf5_writes_is_raised_once_it_is_done(interruptible, tmp_path, monkeypatch):
    """Noticed where a method begins, before its first line: a signal is sent to ourselves there."""
    path, called, at = tmp_path / "a.h5", 0, 0

    def interrupted(self, *values):
        nonlocal called
        called += 1
        if called == at:
            os.kill(os.getpid(), signal.SIGINT)
        return true(self, *values)

    true, data = Sink.write, RANDOM.random((5, 300))
    monkeypatch.setattr(Sink, "write", interrupted)
    monkeypatch.setattr(hdf5, "SINK_CODE", hdf5.SINK_CODE | {interrupted.__code__})
    write(path, data)
    calls, whole = called, path.read_bytes()
    path.unlink()
    assert calls
    for at in range(1, calls + 1):  # noqa: B007
        called = 0
        with pytest.raises(KeyboardInterrupt):
            write(path, data)
        assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    at = 0
    write(path, data)
    assert path.read_bytes() == whole
