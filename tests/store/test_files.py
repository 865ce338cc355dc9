"""What HDF5 writes through: nothing that goes wrong leaves it before HDF5 is done."""

import os
import signal

import h5py
import numpy as np
import pytest

from hgviz.store import files
from hgviz.store.files import Sink, whole_hdf5


def write(path, data):
    with whole_hdf5(path) as file:
        for number, one in enumerate(data):
            file[f"group {number}/numbers"] = one


@pytest.mark.parametrize("method", ["seek", "tell", "write", "truncate"])
def test_ctrl_c_while_hdf5_writes_is_raised_once_it_is_done(tmp_path, monkeypatch, method):
    """Noticed where a method begins, before its first line: a signal is sent to ourselves there."""
    path, called, at = tmp_path / "a.h5", 0, 0

    def interrupted(self, *values):
        nonlocal called
        called += 1
        if called == at:
            os.kill(os.getpid(), signal.SIGINT)
        return true(self, *values)

    true, data = getattr(Sink, method), np.random.default_rng(0).random((5, 300))
    monkeypatch.setattr(Sink, method, interrupted)
    monkeypatch.setattr(files, "CALLED", files.CALLED | {interrupted.__code__})
    write(path, data)
    most, whole = called, path.read_bytes()
    path.unlink()
    assert most
    for at in range(1, most + 1):  # noqa: B007
        called = 0
        with pytest.raises(KeyboardInterrupt):
            write(path, data)
        assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    at = 0
    write(path, data)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), OSError("full")])
def test_what_is_raised_inside_of_a_write_is_the_error_of_the_file(tmp_path, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(files.os, "write", fails)
    with pytest.raises(type(error)) as caught:
        write(tmp_path / "a.h5", np.ones((2, 3)))
    assert caught.value is error and error.__cause__ is not error
    assert not list(tmp_path.iterdir())


def test_ctrl_c_elsewhere_is_raised_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt), whole_hdf5(tmp_path / "a.h5") as file:
        file["one"] = 1
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("it went on")
    assert not list(tmp_path.iterdir())


def test_what_was_not_written_is_read_as_zeros(tmp_path):
    sink = Sink(tmp_path / "a")
    sink.write(b"abc")
    sink.seek(1)
    room = bytearray(b"x" * 6)
    assert sink.readinto(room) == 6 and room == b"bc\0\0\0\0"
    sink.close()


def test_hdf5_reads_back_what_it_wrote(tmp_path):
    with whole_hdf5(tmp_path / "a.h5") as file:
        file.create_dataset("one", data=np.arange(10), chunks=(5,), fletcher32=True)
        file.flush()
        file["one"].refresh()
        assert file["one"][...].tolist() == list(range(10))
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["one"][...].tolist() == list(range(10))
