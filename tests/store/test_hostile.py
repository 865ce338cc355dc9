"""Files from strangers: every trick is one clear line, and nothing outside the file is touched."""

import errno
import os
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
from h5py._objects import phil

from hgviz.core import Capture, HgvizError
from hgviz.maps import DenseMap
from hgviz.store import is_capture, open_capture, write_capture
from tests.making import make_capture
from tests.store.damage import restate, swap
from tests.store.test_file import start


@pytest.fixture(scope="module")
def capture() -> Capture:
    return make_capture("A file from a stranger. " * 8, strides=(1, 2), heads=2, logits=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory, capture) -> Path:
    return write_capture(tmp_path_factory.mktemp("good") / "a.h5", capture)


@pytest.fixture
def path(tmp_path, written) -> Path:
    return Path(shutil.copy(written, tmp_path))


def refused(path, *words) -> HgvizError:
    """Opening and reading everything ends in one clear line."""
    with pytest.raises(HgvizError) as caught:
        opened = open_capture(path)
        for one in opened.maps:
            for head in one.heads:
                one.read(head)
                one.summary(head)
    error = caught.value
    assert str(path) in error.what and error.do
    assert "\n" not in str(error) and "Traceback" not in str(error)
    for word in words:
        assert word in error.what
    return error


# --- not captures, and broken ones ----------------------------------------------------------------


@pytest.mark.parametrize(
    "content,word",
    [(b"", "empty"), (b"PK\x03\x04 zip", "not an HDF5"), (b"\x89HDF\r\n\x1a\n" + b"\xff" * 99, "")],
)
def test_other_files_are_told_apart(tmp_path, content, word):
    wrong = tmp_path / "a.h5"
    wrong.write_bytes(content)
    refused(wrong, word)
    assert is_capture(wrong) is content.startswith(b"\x89HDF")


def test_what_is_not_there_or_not_a_file_is_told(tmp_path):
    with pytest.raises(HgvizError, match="there is no"):
        open_capture(tmp_path / "none.h5")
    refused(tmp_path, "no root.h5")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "not a regular file")
        assert not is_capture(tmp_path / "pipe")
        os.mkfifo(tmp_path / "manifest.json")
        assert not is_capture(tmp_path)


def test_other_hdf5_files_are_not_captures(tmp_path):
    wrong = tmp_path / "a.h5"
    with h5py.File(wrong, "w") as file:
        file["x"] = 1
    assert not is_capture(wrong)
    refused(wrong, "missing")
    with h5py.File(wrong, "w") as file:
        file.attrs["format"] = np.bytes_("hgviz-study")
    assert not is_capture(wrong)
    refused(wrong, "not a capture")


def test_every_cut_file_is_refused(path):
    whole = path.read_bytes()
    for size in range(9, len(whole) - 1, len(whole) // 9):
        path.write_bytes(whole[:size])
        refused(path)
        assert is_capture(path)


def test_random_damage_is_an_error_of_ours_or_harmless(path, capture):
    whole = bytearray(path.read_bytes())
    random = np.random.default_rng(0)
    for _ in range(25):
        damaged = bytearray(whole)
        at = int(random.integers(8, len(whole)))
        damaged[at : at + 4] = random.bytes(len(damaged[at : at + 4]))
        path.write_bytes(damaged)
        try:
            opened = open_capture(path)
            for one, expected in zip(opened.maps, capture.maps, strict=True):
                for head in one.heads:
                    assert (one.read(head) == expected.read(head)).all()
        except HgvizError:
            pass


def test_a_changed_number_is_noticed_by_the_head_it_belongs_to(path):
    with h5py.File(path, "r+") as file:  # fletcher32 is written anew, so only the crc can tell
        file["layers/001/k"][1, 3, 4] += 1
    opened = open_capture(path)
    opened.maps[1].read(0)
    with pytest.raises(HgvizError, match="not what was written"):
        opened.maps[1].read(1)


def test_a_file_cut_while_it_is_open_is_an_error_not_a_crash(path):
    opened = open_capture(path)
    os.truncate(path, 5000)
    with pytest.raises(HgvizError, match="cannot be read"):
        for one in opened.maps:
            one.read(0)


def test_what_is_not_wrong_with_the_file_is_not_called_damage(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as HDF5 does where it writes
        error = refused(path, "open for writing in another program")
        assert error.do == "Close it there first"
        assert is_capture(path)
    open_capture(path)
    for cause, why in (
        (OSError(errno.EMFILE, "Unable to open"), "Too many open files"),
        (MemoryError(), "it does not fit in memory"),
        (OSError("file is already open for write (may use <h5clear>)"), "in another program"),
    ):
        monkeypatch.setattr(h5py, "File", Mock(side_effect=cause))
        assert "apture again" not in refused(path, why).do


def test_a_file_that_was_never_completed_is_told(path):
    with h5py.File(path, "r+") as file:
        file.attrs["complete"] = 0
    refused(path, "never completed")


@pytest.mark.parametrize(
    "version,good", [((1, 9), True), ((2, 0), False), ((1,), False), ((7,) * 999, False)]
)
def test_a_newer_format_is_told_and_unknown_names_are_ignored(path, version, good):
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = np.array(version)
        file["layers/000/something new"] = [1, 2]
        file["items"] = h5py.SoftLink("/items")
    if good:
        assert open_capture(path).complete
    else:
        why = refused(path, "format version").what
        assert len(version) < 9 or len(why) < 75 + len(str(path))


# --- tricks of HDF5 -------------------------------------------------------------------------------


def test_a_link_to_another_file_is_not_followed(path, tmp_path):
    for name in ("prompt/text", "layers", "layers/000", "layers/000/q", "spec", "levels/0"):
        other = shutil.copy(path, tmp_path / "b.h5")
        swap(other, name, h5py.ExternalLink(str(path), name))
        refused(other, "a link to somewhere else")


def test_a_soft_link_is_not_followed_not_even_in_a_circle(path):
    swap(path, "layers/001", h5py.SoftLink("/layers/001"))
    refused(path, "a link to somewhere else")


def test_external_storage_is_not_read(path, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret" * 99)
    outside = {"shape": (24,), "dtype": "u1", "external": [(str(secret), 0, 24)]}
    swap(path, "prompt/text", outside)
    assert "secret" not in str(refused(path, "another file"))


def test_a_virtual_dataset_is_not_read(path, tmp_path):
    with h5py.File(path, "r+") as file:
        old = file["layers/000/q"]
        layout = h5py.VirtualLayout(old.shape, old.dtype)
        layout[...] = h5py.VirtualSource(str(tmp_path / "b.h5"), old.name, old.shape)
        del file["layers/000/q"]
        file.create_virtual_dataset("layers/000/q", layout)
    refused(path, "another file")


@pytest.mark.parametrize("chunks", [None, (1, 1024, 1024)])
def test_more_numbers_than_the_file_holds_are_not_believed(path, chunks):
    many = {"shape": (2, 1 << 20, 1 << 20), "dtype": "f4", "chunks": chunks}
    swap(path, "layers/000/q", many)
    refused(path)
    swap(path, "prompt/text", {"shape": (1 << 42,), "dtype": "u1"})
    assert path.stat().st_size < 4 << 20
    refused(path, "more than the file holds")


def test_a_compressed_bomb_is_not_unpacked(path):
    zeros = {"data": np.zeros(50_000_000, "u1"), "compression": "gzip", "chunks": (10_000_000,)}
    swap(path, "prompt/text", zeros)
    refused(path, "compressed")


def test_filters_that_captures_do_not_use_are_refused_and_plugins_never_loaded(path, tmp_path):
    swap(path, "layers/000/stat", lambda old: {"data": old, "compression": "lzf"})
    (tmp_path / "libevil.so").write_bytes(b"\x7fELF evil")
    script = """
import sys, h5py
from hgviz.core import HgvizError
from hgviz.store import open_capture
try:
    open_capture(sys.argv[1])
except HgvizError as error:
    print(error.what)
print(h5py.h5pl.size())
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "HDF5_PLUGIN_PATH": str(tmp_path)}, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert "a filter that hgviz does not use" in done.stdout and done.stdout.endswith("0\n")


def test_calls_that_h5py_leaves_without_its_lock_are_made_under_it(path, monkeypatch):
    """Those of plugins are, alone of all that hgviz makes: beside a thread that reads they led to
    damaged files and to segmentation faults."""
    held, size = [], h5py.h5pl.size
    monkeypatch.setattr(h5py.h5pl, "size", lambda: held.append(phil._is_owned()) or size())
    assert open_capture(path).complete
    assert held and all(held)


def test_text_of_variable_length_is_not_read(path):
    swap(path, "prompt/text", {"data": "text"})
    refused(path, "holds object")
    with h5py.File(path, "r+") as file:
        file.attrs["format"] = "hgviz-capture"  # h5py writes it with variable length
    refused(path, "not what belongs there")


def test_a_deep_nest_of_groups_is_not_walked(path):
    swap(path, "levels/1", None)
    with h5py.File(path, "r+") as file:
        group = file.create_group("levels/1")
        for _ in range(3000):
            group = group.create_group("g")
    refused(path, "missing")


def test_deep_json_is_refused(path):
    swap(path, "off", np.frombuffer(b"[" * 200_000, "u1"))
    refused(path, "not JSON")


# --- lies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["q", "k", "stat", "proof/values", "thumb", "rowmax"])
def test_shapes_that_do_not_fit_are_told_with_both(path, name):
    swap(path, f"layers/000/{name}", lambda old: old[..., :-1])
    error = refused(path) if name != "thumb" else None
    if error:
        assert "shape" in error.what or "rows for" in error.what


@pytest.mark.parametrize(
    "name,value",
    [
        ("heads", np.array([0, 5])), ("level", 1), ("role", np.bytes_("up")), ("stride_q", 0),
        ("stride_k", -3), ("scale", np.nan), ("activations", np.bytes_("tanh tanh")),
        ("norms", np.bytes_("l3 -")), ("empty_rows", np.bytes_("full")), ("crc32", np.array([1])),
        ("kind", np.bytes_("pickle")), ("committed", 0), ("level", "vlen"), ("level", [0, 0]),
    ],
)  # fmt: skip
def test_attributes_that_lie_are_refused(path, name, value):
    with h5py.File(path, "r+") as file:
        file["layers/000"].attrs[name] = value
    refused(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("levels"),
        lambda s: s.pop("family"),
        lambda s: s.update(layers=[{}] * 3),
        lambda s: s.update(layers={"a": 1}),
        lambda s: s["layers"][0].update(heads="01"),
        lambda s: s["layers"][0].update(heads=[0, 0]),
        lambda s: s["layers"][0].update(level=10**9),
        lambda s: s["layers"][0].update(role="sideways"),
        lambda s: s["layers"][0].update(activations=["exec", "softmax"]),
        lambda s: s["layers"][0].update(index=7),
        lambda s: s["layers"].append(dict(s["layers"][0], index=len(s["layers"]))),
        lambda s: s["levels"][1].update(stride=0),
        lambda s: s["levels"][1].update(stride="2"),
        lambda s: s["levels"][1].update(shift=-1),
        lambda s: s["levels"][1].update(shift=1 << 60),
        lambda s: s.update(width=None),
    ],
)
def test_a_spec_that_lies_is_refused(path, change):
    restate(path, "spec", lambda spec: change(spec) and None)
    refused(path)


@pytest.mark.parametrize(
    "name,change",
    [
        ("prompt/spans", lambda old: old + 10**6),
        ("prompt/spans", lambda old: old[:, ::-1]),
        ("prompt/ids", lambda old: old[:-1]),
        ("prompt/ids", lambda old: old.astype("f8")),
        ("prompt/pieces", lambda old: np.frombuffer(b"[1]", "u1")),
        ("prompt/text", lambda old: np.array([0xFF], "u1")),
        ("levels/1/spans", lambda old: old + 10**6),
        ("levels/0/spans", lambda old: np.concatenate([old, old])),
        ("off", lambda old: np.frombuffer(b"[[0]]", "u1")),
        ("made", lambda old: np.frombuffer(b'{"device": 3}', "u1")),
        ("made", lambda old: np.frombuffer(b"3", "u1")),
    ],
)
def test_a_text_that_lies_is_refused(path, name, change):
    swap(path, name, change)
    refused(path)


def dense(tmp_path, capture) -> Path:
    """A capture of one dense layer."""
    array = np.random.default_rng(0).random((2, 300, 300)).astype(np.float32)
    spec = replace(capture.spec, layers=capture.spec.layers[:1], levels=capture.spec.levels[:1])
    one = replace(capture, spec=spec, maps=(DenseMap(array, (0, 1)),), spans=capture.spans[:1])
    return write_capture(tmp_path / "dense.h5", one)


@pytest.mark.parametrize(
    "chunk,word",
    [
        (zlib.compress(b"\0" * (1 << 26)), "not 262144 bytes long"),
        (zlib.compress(b"\0" * 99), "not 262144 bytes long"),
        (b"\0" * 600_000, "a chunk of"),
        (b"not zlib", "damaged"),
        (zlib.compress(bytes(262144))[:-2], "cut short"),
    ],
)
def test_a_packed_chunk_is_unpacked_to_its_size_and_no_further(tmp_path, capture, chunk, word):
    path = dense(tmp_path, capture)
    with h5py.File(path, "r+") as file:
        file["layers/000/weights"].id.write_direct_chunk((0, 0, 0), chunk)
    refused(path, word)


def test_names_of_a_stranger_are_short_of_one_line_and_never_paths(path):
    name = "../../../etc/passwd\0<b>\n\ud800\u202e" + "x" * 10**6
    strange = {"name": name, "labels": ["\0", "fine"]}
    restate(path, "spec", lambda spec: spec | strange)
    made = {"producer": "\x1b[2J", "versions": [["numpy\t", "2" * 999]]}
    restate(path, "made", lambda one: one | made)
    opened = open_capture(path)
    assert opened.spec.name == "../../../etc/passwd\ufffd<b>\ufffd\ufffd\ufffd" + "x" * 174
    assert opened.spec.labels == ("\ufffd", "fine")
    assert opened.made.producer == "\ufffd[2J"
    assert opened.made.versions == (("numpy\ufffd", "2" * 200),)


def test_a_manifest_that_lies_is_not_believed(tmp_path, capture):
    part = tmp_path / "a.h5.part"
    for content in ("", "[", "[]", '{"format": "hgviz-capture"}', "[" * 100_000):
        part.mkdir(exist_ok=True)
        (part / "manifest.json").write_text(content)
        write_capture(tmp_path / "a.h5", capture, force=True)
        assert open_capture(tmp_path / "a.h5").complete


def test_a_damaged_layer_of_an_interrupted_capture_is_missing_and_made_again(tmp_path, capture):
    with pytest.raises(RuntimeError), start(tmp_path / "a.h5", capture) as writer:
        writer.add(0, capture.maps[0].factors)
        writer.add(1, capture.maps[1].factors)
        raise RuntimeError
    layer = tmp_path / "a.h5.part" / "layer-001.h5"
    layer.write_bytes(layer.read_bytes()[:3000])
    assert [one is not None for one in open_capture(layer.parent).maps][:2] == [True, False]
    with start(tmp_path / "a.h5", capture) as writer:
        assert writer.committed == {0}
