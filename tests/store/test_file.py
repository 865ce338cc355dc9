"""A capture goes into a file and comes back; interrupted ones lose nothing; full disks say so."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from hgviz.core import Capture, HeadId, HgvizError
from hgviz.maps import DenseMap, LazyMap
from hgviz.store import (
    Writer,
    describe,
    hdf5,
    is_capture,
    open_capture,
    schema,
    write_capture,
)
from tests.making import byte_prompt, make_capture
from tests.maps.test_lazy import bits


@pytest.fixture(scope="module")
def small() -> Capture:
    return make_capture("A small text, captured. ", strides=(1, 2), heads=2)


def start(path, capture, **options) -> Writer:
    """A writer for a capture."""
    return Writer(path, capture, **options)


def same(a: Capture, b: Capture) -> None:
    """Everything equal, the maps to the last bit."""
    assert (a.spec, a.off, a.made) == (b.spec, b.off, b.made)
    assert (a.prompt.text, a.prompt.pieces) == (b.prompt.text, b.prompt.pieces)
    assert a.prompt.digest == b.prompt.digest
    assert (a.prompt.spans == b.prompt.spans).all()
    assert all((x == y).all() for x, y in zip(a.spans, b.spans, strict=True))
    assert (a.logits is None) == (b.logits is None)
    assert a.logits is None or (a.logits == b.logits).all()
    for x, y in zip(a.maps, b.maps, strict=True):
        assert (x.shape, x.heads, x.signed) == (y.shape, y.heads, y.signed)
        for head in x.heads:
            assert (x.read(head) == y.read(head)).all()
            coarse = (z.read(head, zoom=2, reduce="mean") for z in (x, y))
            assert np.array_equal(*coarse)
            one, two = x.summary(head), y.summary(head)
            np.testing.assert_allclose(one.thumb, two.thumb, rtol=1e-3, atol=1e-7)
            assert (one.rowmax == two.rowmax).all() and (one.entropy == two.entropy).all()
        if isinstance(x, LazyMap):
            assert x.verify_max_abs == y.verify_max_abs


@pytest.mark.parametrize(
    "options", [{}, {"signed": True}, {"windowed": True}, {"relative": True}, {"logits": False}]
)
def test_a_capture_comes_back_as_it_was(tmp_path, options):
    capture = make_capture("Hourglasses. " * 6, heads=2, **options)
    path = write_capture(tmp_path / "a.h5", capture)
    opened = open_capture(path)
    same(capture, opened)
    assert opened.complete and opened.path == str(path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]
    same(opened, open_capture(write_capture(tmp_path / "again.h5", opened)))


@pytest.mark.parametrize(
    "text", ["e", "👩‍👩‍👧 שלום עולם\u202e x", "a\0b\0", "<b>$x$</b>\n\t", "x" * 600]
)
def test_any_text_comes_back(tmp_path, text):
    capture = make_capture(text, strides=(1, 2), heads=1)
    same(capture, open_capture(write_capture(tmp_path / "a.h5", capture)))


def test_what_a_tokenizer_says_comes_back(tmp_path, small):
    prompt = replace(
        small.prompt,
        attention_mask=np.arange(len(small.prompt)) > 2,
        token_type_ids=np.arange(len(small.prompt)),
        pieces=tuple("\ud800\0" for _ in small.prompt.ids),
    )
    off = frozenset([HeadId(1, 0), HeadId(0, 1)])
    made = replace(small.made, versions=(("torch", "2.13"),), seed=None, masking="compat")
    capture = replace(small, prompt=prompt, off=off, made=made)
    same(capture, open_capture(write_capture(tmp_path / "a.h5", capture)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_queries_and_keys_stay_in_their_number_format(tmp_path, small, dtype):
    def cast(values):
        return bits(values) if dtype == "bfloat16" else values.astype(dtype)

    parts = [(one.factors, one.heads) for one in small.maps]
    maps = tuple(
        LazyMap(replace(one, q=cast(one.q), k=cast(one.k), dtype=dtype), heads)
        for one, heads in parts
    )
    capture = replace(small, maps=maps)
    opened = open_capture(write_capture(tmp_path / "a.h5", capture))
    same(capture, opened)
    assert opened.maps[0].factors.q.dtype == maps[0].factors.q.dtype


def test_removed_heads_leave_their_layer_and_the_numbers_of_the_others(tmp_path, small):
    first, second, *others = small.spec.layers
    layers = (replace(first, heads=(3, 7)), replace(second, heads=(), activations=()), *others)
    factors = small.maps[1].factors
    none = replace(
        factors, q=factors.q[:0], k=factors.k[:0], stat=factors.stat[:0],
        rule=replace(factors.rule, activations=(), norms=()), proof_values=factors.proof_values[:0],
    )  # fmt: skip
    maps = (LazyMap(small.maps[0].factors, (3, 7)), LazyMap(none, ()), *small.maps[2:])
    capture = replace(small, spec=replace(small.spec, layers=layers), maps=maps)
    path = write_capture(tmp_path / "a.h5", capture)
    same(capture, open_capture(path))
    assert [row["heads"] for row in describe(path)["layers"][:2]] == [2, 0]


@pytest.mark.parametrize("form", ["float32", "float16", "bits"])
def test_weights_that_cannot_be_computed_are_stored(tmp_path, small, form):
    array = np.random.default_rng(0).random((2, 600, 600)).astype(np.float32)
    array = bits(array) if form == "bits" else array.astype(form)
    spec = replace(small.spec, layers=small.spec.layers[:1], levels=small.spec.levels[:1])
    maps = (DenseMap(array, (0, 1), causal=True),)
    capture = replace(small, spec=spec, maps=maps, spans=small.spans[:1])
    path = write_capture(tmp_path / "a.h5", capture)
    same(capture, open_capture(path))
    with h5py.File(path) as file:
        assert file["layers/000/weights"].id.get_num_chunks() == 2 * 6
    same(capture, open_capture(write_capture(tmp_path / "b.h5", open_capture(path))))


def test_the_file_is_at_most_half_again_as_large_as_what_it_must_hold(tmp_path):
    capture = make_capture("The quick brown fox. " * 98, heads=2)  # 2,058 letters
    path = write_capture(tmp_path / "a.h5", capture)
    parts = [one.factors for one in capture.maps]
    needed = sum(one.q.nbytes + one.k.nbytes + one.stat.nbytes for one in parts)
    with h5py.File(path) as file:
        thumbs = sum(one["thumb"].id.get_storage_size() for one in file["layers"].values())
    size = path.stat().st_size - thumbs
    print(f"{size / needed:.3f} times q, k and statistics")
    assert size <= 1.5 * needed
    assert size <= sum(np.prod(one.shape) * 2 for one in capture.maps) / 4


def test_the_file_opens_in_any_reader_of_hdf5(tmp_path, small):
    path = write_capture(tmp_path / "a.h5", small)
    with h5py.File(path) as file:
        assert file.attrs["format"] == b"hgviz-capture"
        assert file.attrs["format_version"].tolist() == list(schema.CAPTURE_VERSION)
        assert file.attrs["complete"] == 1
        assert json.loads(bytes(file["spec"][:]))["family"] == "hourglass"
        layer = file["layers/002"]
        assert layer.attrs["role"] == b"down" and layer.attrs["committed"] == 1
        assert layer["thumb"].chunks is None  # one read, whatever the heads
        assert (layer["q"][:] == small.maps[2].factors.q).all()
        file.visititems(lambda name, one: _no_surprises(one))


def _no_surprises(one):
    if isinstance(one, h5py.Dataset):
        assert h5py.check_vlen_dtype(one.dtype) is None
        assert one.fletcher32 or (one.chunks is None and one.nbytes <= 64 << 10)


def test_it_says_what_it_holds(tmp_path, small):
    path = write_capture(tmp_path / "a.h5", small)
    found = json.loads(json.dumps(describe(path)))
    assert (found["kind"], found["family"], found["items"]) == ("capture", "hourglass", 1)
    assert found["complete"] is True and found["empty_rows"] == "zeros"
    assert found["levels"][1] == {"index": 1, "stride": 2, "key_shift": 1, "sequence": "source"}
    down = found["layers"][2]
    assert (down["role"], down["level"], down["key_level"], down["heads"]) == ("down", 1, 0, 2)
    assert (down["queries"], down["keys"]) == small.maps[2].shape[1:]
    assert down["activations"] == ["softmax", "softmax"]
    assert found["provenance"]["producer"] == "hgviz tests"


# --- interrupted ----------------------------------------------------------------------------------


def test_an_interrupted_capture_opens_and_is_gone_on_with(tmp_path, small):
    path = tmp_path / "a.h5"
    with pytest.raises(KeyboardInterrupt), start(path, small) as writer:
        for index in (0, 2):
            writer.add(index, small.maps[index].factors)
        raise KeyboardInterrupt
    part = tmp_path / "a.h5.part"
    opened = open_capture(part)
    assert [one is not None for one in opened.maps][:4] == [True, False, True, False]
    assert not opened.complete and not describe(part)["complete"]
    assert describe(part)["layers"][1]["queries"] is None
    assert (opened.maps[2].read(1) == small.maps[2].read(1)).all()
    with start(path, small) as writer:
        assert writer.committed == {0, 2}
        for index, one in enumerate(small.maps):
            if index not in writer.committed:
                writer.add(index, one.factors)
        writer.finish(small.logits, small.made.seconds)
    assert not part.exists()
    same(small, open_capture(path))


def test_an_empty_folder_is_a_capture_without_layers(tmp_path, small):
    part = tmp_path / "a.h5.part"
    part.mkdir()
    opened = open_capture(part)
    assert opened.maps == () and not opened.complete and is_capture(part)
    assert describe(part)["layers"] == [] and describe(part)["complete"] is False
    same(small, open_capture(write_capture(tmp_path / "a.h5", small)))


def test_a_capture_that_failed_before_its_first_layer_leaves_nothing(tmp_path, small):
    with pytest.raises(RuntimeError), start(tmp_path / "a.h5", small):
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_what_a_killed_capture_left_before_its_first_layer_asks_for_no_force(tmp_path, small):
    path, part = tmp_path / "a.h5", tmp_path / "a.h5.part"
    start(path, small)  # and never ended
    assert [one.name for one in part.iterdir()]
    other = replace(small, prompt=byte_prompt("Another text, captured. "))
    with pytest.raises(RuntimeError), start(path, other) as writer:
        assert writer.committed == set()
        raise RuntimeError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change,named",
    [
        ({"prompt": byte_prompt("Another text, captured. ")}, "text"),
        ({"off": frozenset([HeadId(0, 0)])}, "heads switched off"),
        ({"made": "compat"}, "masking"),
        ({"made": "bfloat16"}, "number format"),
        ({"spec": "other"}, "model"),
    ],
)
def test_what_is_left_of_another_capture_is_not_gone_on_with(tmp_path, small, change, named):
    path = tmp_path / "a.h5"
    with pytest.raises(RuntimeError), start(path, small) as writer:
        writer.add(0, small.maps[0].factors)
        raise RuntimeError
    changes = {
        "compat": {"made": replace(small.made, masking="compat")},
        "bfloat16": {"made": replace(small.made, dtype="bfloat16")},
        "other": {"spec": replace(small.spec, digest="1" * 64)},
    }
    value = next(iter(change.values()))
    other = replace(small, **(changes[value] if isinstance(value, str) else change))
    with pytest.raises(HgvizError, match=f"another {named}|another set of {named}"):
        start(path, other)
    assert open_capture(tmp_path / "a.h5.part").maps[0] is not None
    with start(path, other, force=True) as writer:
        assert writer.committed == set()


def test_a_file_that_exists_is_replaced_only_by_force(tmp_path, small):
    path = write_capture(tmp_path / "a.h5", small)
    before = path.read_bytes()
    with pytest.raises(HgvizError, match="exists already"):
        write_capture(path, small)
    assert path.read_bytes() == before
    write_capture(path, replace(small, logits=None), force=True)
    assert open_capture(path).logits is None
    with pytest.raises(HgvizError, match="is a folder"):
        write_capture(tmp_path, small, force=True)


def test_a_capture_with_missing_layers_is_not_saved_as_one(tmp_path, small):
    with pytest.raises(HgvizError, match="not complete"):
        write_capture(tmp_path / "a.h5", replace(small, maps=(None, *small.maps[1:])))


def test_a_file_can_be_replaced_by_a_change_of_itself(tmp_path, small):
    path = write_capture(tmp_path / "a.h5", small)
    opened = open_capture(path)
    write_capture(path, replace(opened, logits=None), force=True)
    assert (opened.maps[1].read(1) == open_capture(path).maps[1].read(1)).all()


KILLED = """
import sys
from tests.store.test_file import start
from tests.making import make_capture
capture = make_capture("A small text, captured. " * 20, strides=(1, 2), heads=2)
print("made", flush=True)
while True:
    with start(sys.argv[1], capture, force=True) as writer:
        for index, one in enumerate(capture.maps):
            if index not in writer.committed:
                writer.add(index, one.factors)
                print(index, flush=True)
        writer.finish(capture.logits)
        print("finished", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.027, 0.04, 0.08, 0.1])
def test_a_killed_capture_always_opens_and_keeps_what_was_committed(tmp_path, delay):
    path = tmp_path / "a.h5"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdout.readline() == "made\n"
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    said = process.stdout.read().split()
    process.stdout.close()
    process.wait(timeout=100)
    last = len(said) - said[::-1].index("finished") if "finished" in said else 0
    if path.exists():
        assert open_capture(path).complete
    if (part := tmp_path / "a.h5.part").exists() and part.stat():
        opened = open_capture(part)
        for index in map(int, said[last:]):
            # the file may have been finished, and its parts removed, before that was said
            if opened.maps and len(said) - last < len(opened.maps):
                assert opened.maps[index].read(0).shape
    else:
        assert not said[last:] or path.exists()


# --- disks ----------------------------------------------------------------------------------------


class Full:
    """os.write on a disk that is full after so many bytes."""

    def __init__(self, room):
        self.room = room
        self.write = os.write

    def __call__(self, file, data):
        size = min(len(data), self.room)
        if size == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= size
        return self.write(file, data[:size])


def test_a_full_disk_says_what_stays_and_loses_nothing(tmp_path, small, monkeypatch):
    path = write_capture(tmp_path / "whole.h5", small)
    size = path.stat().st_size
    path.unlink()
    said = set()
    for room in range(0, 3 * size, size // 5):
        monkeypatch.setattr(hdf5.os, "write", Full(room))
        target = tmp_path / f"{room}.h5"
        try:
            write_capture(target, small)
        except HgvizError as error:
            said.add(error.what)
            assert "the disk is full" in error.what and str(tmp_path) in error.do
            assert not target.exists()
            part = tmp_path / f"{room}.h5.part"
            kept = re.search(r"(\d+) of \d+ layers stay", error.what)
            stay = 0 if kept is None else int(kept[1])
            assert part.exists() == (stay > 0)
            opened = open_capture(part) if part.exists() else replace(small, maps=())
            assert sum(one is not None for one in opened.maps) == stay
            monkeypatch.undo()
            same(small, open_capture(write_capture(target, small)))
        finally:
            monkeypatch.undo()
    assert any("nothing was written" in words for words in said) and len(said) > 3


@pytest.mark.skipif(os.name != "posix", reason="limits on file sizes are of POSIX systems")
def test_a_real_limit_is_told_like_a_full_disk(tmp_path):
    script = """
import resource, signal, sys
from hgviz.core import HgvizError
from hgviz.store import write_capture
from tests.making import make_capture
capture = make_capture("A small text, captured. " * 20, strides=(1, 2), heads=2)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    write_capture(sys.argv[1], capture)
except HgvizError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.h5")], capture_output=True, text=True,
        cwd=Path(__file__).parents[2], timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith("the disk is full") and "9 of 9 layers stay" in done.stdout
    assert open_capture(tmp_path / "a.h5.part").complete


def test_a_file_with_the_name_of_the_folder_to_grow_in_stays(tmp_path, small):
    (tmp_path / "a.h5.part").write_text("mine")
    with pytest.raises(HgvizError, match="a.h5.part is in the way"):
        write_capture(tmp_path / "a.h5", small, force=True)
    assert (tmp_path / "a.h5.part").read_text() == "mine"


def test_a_folder_one_cannot_write_to_is_told(tmp_path, small):
    (tmp_path / "file").touch()
    for wrong in (tmp_path / "file" / "a.h5", tmp_path / "none" / "a.h5"):
        with pytest.raises(HgvizError, match="cannot be written"):
            write_capture(wrong, small)


def test_only_its_own_files_are_removed(tmp_path, small):
    part = tmp_path / "a.h5.part"
    part.mkdir()
    (part / "notes.txt").write_text("mine")
    write_capture(tmp_path / "a.h5", small)
    assert [one.name for one in part.iterdir()] == ["notes.txt"]


def test_logits_of_a_float64_model_keep_every_digit(tmp_path, capture):
    exact = np.linspace(0, 1, 256 * len(capture.prompt)).reshape(-1, 256)
    write_capture(tmp_path / "a.h5", replace(capture, logits=exact))
    found = open_capture(tmp_path / "a.h5").logits
    assert found.dtype == np.float64 and (found == exact).all()


def test_logits_of_many_tokens_stay_in_the_file(tmp_path, capture, monkeypatch):
    monkeypatch.setattr(schema, "LOGITS_IN_MEMORY", 1000)
    logits = np.random.default_rng(0).normal(size=(len(capture.prompt), 5000)).astype(np.float32)
    write_capture(tmp_path / "a.h5", replace(capture, logits=logits))
    found = open_capture(tmp_path / "a.h5").logits
    assert not isinstance(found, np.ndarray)
    assert (len(found), found.shape, found.nbytes) == (len(logits), logits.shape, logits.nbytes)
    assert (np.asarray(found) == logits).all()
    for at in (3, slice(2, 7), np.array([5, 1, 5]), (slice(None), 4)):
        assert (found[at] == logits[at]).all()
    write_capture(tmp_path / "b.h5", open_capture(tmp_path / "a.h5"))
    assert (np.asarray(open_capture(tmp_path / "b.h5").logits) == logits).all()
    whole = (tmp_path / "a.h5").read_bytes()
    at = whole.index(logits[-1].tobytes()[:64])
    (tmp_path / "c.h5").write_bytes(whole[:at] + b"damage" + whole[at + 6 :])
    damaged = open_capture(tmp_path / "c.h5").logits
    with pytest.raises(HgvizError):
        damaged[len(logits) - 1]
