"""Files of strangers: every trick is one clear line, and nothing outside the file is touched."""

import errno
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pytest

from hgviz.core import HgvizError
from hgviz.store import is_capture, is_study, open_capture, open_study
from hgviz.store.hdf5 import StoredRuns
from hgviz.study import Study
from tests.store.samples import damage, put, refused, said, same, small, write_sample

# --- damage of HDF5, in any file ------------------------------------------------------------------

ELSEWHERE = h5py.ExternalLink("b.h5", "/")
BOMB = {"data": np.zeros(50_000_000, "u1"), "compression": "gzip", "chunks": (10_000_000,)}


def virtual(file):
    layout = h5py.VirtualLayout((2, 24, 32), "f4")
    layout[...] = h5py.VirtualSource("b.h5", "q", (2, 24, 32))
    del file["layers/000/q"]
    file.create_virtual_dataset("layers/000/q", layout)


def packed(chunk, name="layers/000/weights"):
    """A change of the packed bytes of one chunk."""
    return lambda file: file[name].id.write_direct_chunk((0,) * file[name].ndim, chunk)


def of_layers(**keys):
    return said(lambda spec: spec["layers"][0].update(**keys))


CUT = lambda old: old[..., :-1]  # noqa: E731
FEWER = lambda old: old[:-1]  # noqa: E731
LATER = lambda old: old + 10**6  # noqa: E731
NEXT = lambda old: old + 1  # noqa: E731
DOUBLE = lambda old: old.astype("f8")  # noqa: E731
BACKWARDS = lambda old: old[::-1]  # noqa: E731
ZEROS = zlib.compress(bytes(1 << 26), 9)
WIDE = {"shape": (3, 999, 5), "dtype": "u1", "chunks": (1, 9, 5), "compression": "gzip"}
MANY = {"shape": (2, 1 << 20, 1 << 20), "dtype": "f4"}
LINK, OTHER, SHAPE = "is a link", "refers to data in another file", "has the shape"
HELD, NUMBERS, FIT = "more than the file holds", "must be", "is invalid"
RULE, TEXT = "a rule that this hgviz does not support", "it refers to text or tokens"
BELONGS, NAMED, WRITTEN = "has a wrong type", "in its spec", "not match its checksum"
UNLIKE, CELLS, MISSING = "only one of its spec and its texts", "not 262144 bytes long", "is missing"

# of a sample: names (datasets, groups, group@attribute, or "" for the file), change, what is said
ROWS = {
    "small": [
        ("prompt/text layers layers/000/q", ELSEWHERE, LINK), ("", virtual, OTHER),
        ("layers/001", h5py.SoftLink("/layers/001"), LINK), ("layers/000/q", MANY, HELD),
        ("prompt/text", {"shape": (24,), "dtype": "u1", "external": [("b", 0, 24)]}, OTHER),
        ("prompt/text", BOMB, "is compressed"), ("prompt/text", {"data": "text"}, "holds object"),
        ("layers/000/stat", lambda old: {"data": old, "compression": "lzf"}, "unsupported filter"),
        ("@format", "hgviz-capture", BELONGS), ("@complete", 0, "it was never completed"),
        ("@format", np.bytes_("hgviz-study"), "not a capture of hgviz"),
        ("@format_version", np.array((2, 0)), "a newer hgviz is needed"),
        ("@format_version", np.array((0, 9)), "an older hgviz is needed"),
        ("@format_version", np.array((1,)), "has 1 numbers, not 2"),
        ("off", np.frombuffer(b"[" * 200_000, "u1"), "/off is not JSON"),
        ("layers/000/q layers/000/rowmax", CUT, SHAPE), ("prompt/ids", FEWER, SHAPE),
        ("", lambda file: file["prompt/ids"].__setitem__(0, 9), f"ids does {WRITTEN}"),
        ("layers/001/k", put(9, (1, 3, 4)), f"/layers/001 does {WRITTEN}"),
        ("layers/001/rowmax", put(9, (1, 3)), "summaries of /layers/001 do not match"),
        ("layers/000@heads", np.array([0, 5]), NAMED), ("layers/000@level", 1, NAMED),
        ("layers/000@activations", np.bytes_("tanh tanh"), NAMED),
        ("layers/000@stride_k", -3, "stride_k of /layers/000 is -3"),
        ("layers/000@scale", np.nan, "must be finite"),
        ("layers/000@empty_rows", np.bytes_("full"), "must be zeros or uniform"),
        ("layers/000@crc32 layers/000@summary32", np.array([1]), "for each of 2 heads"),
        ("layers/000@kind", np.bytes_("pickle"), "has the kind 'pickle'"),
        ("layers/000@committed", 0, "was never completed"),
        ("spec", said(lambda spec: spec.pop("levels") and None), "required field `levels`"),
        ("spec", of_layers(heads=[0, 0]), "invalid head numbers"),
        ("spec", of_layers(level=10**9), "is on level 1000000000 of 2"),
        ("spec", of_layers(activations=["exec", "softmax"]), "activations that"),
        ("spec", of_layers(index=7), "has the number 7"),
        ("spec", of_layers(shared=0), "0 heads that share keys"),
        ("prompt/spans levels/1/spans", LATER, TEXT),
        ("prompt/spans", lambda old: old[:, ::-1], TEXT),
        ("prompt/ids", DOUBLE, "holds float64, not i8"), ("made", said({"device": 3}), FIT),
        ("prompt/pieces", said(["a"]), "a piece for every token"),
        ("prompt/text", np.array([0xFF], "u1"), "is damaged: it is truncated, or was changed"),
    ],
    "picture": [("prompt/signal", put(np.nan), NUMBERS), ("prompt/grid", put(99), "the patches")],
    "sound": [("prompt/seconds", put(-1), "an invalid length of -1.0 s")],
    "both": [
        ("target/ids", None, f"/target/ids {MISSING}"), ("levels/1/spans", NEXT, TEXT),
        ("output/logits", lambda old: old[0], "1 dimensions instead of 2"),
        ("target", None, UNLIKE),
    ],
    "slots": [
        ("", lambda file: file.copy("prompt", "target"), UNLIKE), ("levels/1/spans", NEXT, TEXT),
    ],
    "states": [("prompt/states", FEWER, SHAPE)],
    "classes": [
        ("output/logits", FEWER, SHAPE), ("layers/000@top_k", 0, "top_k of /layers/000 is 0"),
        ("layers/000/norm layers/000/threshold layers/000/kept", None, RULE),
        ("layers/000/threshold", lambda old: old + np.float32(1), WRITTEN),
    ],
    "relative": [("layers/000/relative/bias", None, "missing or extra terms of relative")],
    "dense float32": [
        ("", packed(ZEROS), CELLS), ("", packed(zlib.compress(b"\0" * 99)), CELLS),
        ("", packed(b"\0" * 600_000), "has a chunk of 600000 bytes"),
        ("", packed(zlib.compress(bytes(262144))[:-2]), "weights is truncated"),
    ],
    "large": [
        ("", packed(ZEROS, "layers/000/q"), "q has a chunk of"),
        ("layers/000/max/9", ELSEWHERE, LINK), ("layers/000/max/4", WIDE, SHAPE),
        ("layers/000/mean/4", np.zeros((3, 257, 5), "u1"), "is not compressed"),
        ("layers/000/ranges", put([2.0, 1.0], (0, 0)), "has impossible values"),
        ("layers/000/runs", lambda old: old[:, 1:], "68 runs instead of 69"),
        ("layers/000/max", np.zeros(3), "/layers/000/max is not a group"),
    ],
    "corpus": [
        ("items/00001", None, f"/items/00001 {MISSING}"),
        *(("index", said(index), FIT) for index in (
            [[0, "a", 1]], [[1, "a", 1, ""]], [[0, "a", -1, ""]], [[0, "a", 1, ""]] * 100_001)),
    ],
    "study": [
        ("spec loss arrays curves/000/values learned/000", ELSEWHERE, LINK),
        ("wanted", {"shape": (1 << 40,), "dtype": "i8", "chunks": (1 << 16,)}, HELD),
        ("lengths", lambda old: {"data": old, "compression": "gzip"}, "is compressed"),
        ("@format_version", np.array((2, 0)), "a newer hgviz is needed"),
        ("", lambda file: file["loss_change"].__setitem__((3, 4), 9), WRITTEN),
        ("loss", put(np.nan), "its losses and answers disagree"),
        ("given", put(-1), "its losses and answers disagree"),
        ("given wanted", put(7), "answers that its model cannot give"),
        ("places", put(1), "its places"), ("places", BACKWARDS, "its places"),
        ("heads", put([9, 9]), "heads that its model does not have"),
        ("heads", put([0, 1]), "it names a head twice"),
        ("heads", BACKWARDS, "not in order of computation"),
        ("gradient arrays/context_norm learned/000/runs curves/000/times", CUT, SHAPE),
        ("gradient arrays/context_norm loss curves/000/loss", put(-np.inf), NUMBERS),
        ("saved_flops curves/000/values curves/000/low learned/000/runs", put(np.nan), NUMBERS),
        ("curves/000/removed curves/000/rows", BACKWARDS, NUMBERS),
        ("saved_parameters", put([-1, 0, 0]), "are below 0"),
        ("arrays/not-a-name", np.zeros((30, 18), "f4"), "an invalid name"),
        ("", lambda file: [file.create_group(f"curves/{at:03}") for at in range(2, 10_002)],
         "it has too many curves: 10,002"),
        ("curves/000", None, f"/curves/000 {MISSING}"),
        ("curves/000/removed", put(99, -1), "do not match its order"),
        ("curves/000/rows", put(99, -1), "a curve has examples that do not exist"),
        *(("about", said(about), FIT) for about in ([1], {"asked": "everything"}, {"texts": -1})),
        ("off", said([[9, 9]]), "heads off that do not exist"), ("off", said([[0, 0, 0]]), FIT),
        *(("masks", said(masks), FIT) for masks in (
            [["a", [], [1]]], [["a", [], ["m", float("nan"), 0, 1, 3, 4]]],
            [["a", [], ["m", 10**400, 0, 1, 3, 4]]], [["a", [], ["m", 0.5, True, 1, 3, 4]]])),
        ("masks", said(lambda masks: [["a", [[9, 9]], None], *masks[1:]]), "of another model"),
        ("masks", said(lambda masks: [["a", [], ["m", 0.5, 0, 1, 5, 4]], *masks[1:]]),
         "more examples than there are"),
        ("masks", said(lambda masks: masks[:2]), "do not match the masks"),
        ("mask_changes", said([None, [0.1, -2, 0.2], None]), "not a difference of two shares"),
    ],
}  # fmt: skip
DAMAGES = [
    (sample, name, change, sentence)
    for sample, rows in ROWS.items()
    for names, change, sentence in rows
    for name in names.split() or [""]
]


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    """What makes a copy of a sample's file, which is written once."""
    folder = tmp_path_factory.mktemp("good")

    def copied(to, name):
        path = folder / f"{name}.h5"
        good = path if path.exists() else write_sample(path, name)
        return Path(shutil.copy(good, to))

    return copied


@pytest.fixture
def path(tmp_path, good):
    return good(tmp_path, "small")


@pytest.mark.parametrize(("sample", "name", "change", "sentence"), DAMAGES)
def test_every_damage_is_one_clear_line(tmp_path, good, sample, name, change, sentence):
    path = good(tmp_path, sample)
    damage(path, name, change)
    refused(path, sentence, item=int(sample == "corpus"), study=sample == "study")


@pytest.mark.parametrize("sample", ["small", "study"])
def test_cut_files_are_refused_and_random_damage_is_too_or_harmless(tmp_path, good, sample):
    path, study = good(tmp_path, sample), sample == "study"
    whole, open_ = path.read_bytes(), open_study if study else open_capture
    before = open_(path)
    for size in range(9, len(whole) - 1, len(whole) // 9):
        path.write_bytes(whole[:size])
        refused(path, study=study)
        assert is_capture(path)
    random = np.random.default_rng(1)
    for number in range(60 if study else 25):
        damaged, at = bytearray(whole), int(random.integers(8, len(whole)))
        damaged[at : at + 4] = random.bytes(len(damaged[at : at + 4]))
        other = tmp_path / f"{number}.h5"
        other.write_bytes(damaged)
        try:
            opened = open_(other)
            if study:
                same(opened.arrays["loss_change"], before.arrays["loss_change"])
            for maps, whole_maps in () if study else zip(opened.maps, small().maps, strict=True):
                for head in maps.heads:
                    assert (maps.read(head) == whole_maps.read(head)).all()
        except HgvizError as error:
            assert "\n" not in str(error)


# --- what is no file of ours ----------------------------------------------------------------------


@pytest.mark.parametrize(("content", "word"), [
    (b"", "empty"), (b"PK\x03\x04 zip", "not an HDF5"), (b"\x89HDF\r\n\x1a\n" + b"\xff" * 99, ""),
])  # fmt: skip
def test_other_files_are_told_apart(tmp_path, content, word):
    path = tmp_path / "a.h5"
    path.write_bytes(content)
    for study in (False, True):
        refused(path, word, study=study)
    assert is_capture(path) is content.startswith(b"\x89HDF") and not is_study(path)


def test_a_capture_is_no_study_and_the_other_way(tmp_path, good, path):
    assert not is_study(path) and "not a study of hgviz" in refused(path, study=True).what
    other = good(tmp_path, "study")
    assert is_study(other) and not is_capture(other)
    refused(other, "not a capture of hgviz")
    with h5py.File(other, "w") as file:
        file["x"] = 1
    assert not is_capture(other)
    refused(other, "missing")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX systems")
def test_what_is_not_there_or_not_a_file_is_told(tmp_path):
    refused(tmp_path, "no root.h5")
    refused(tmp_path, "a study is one file", study=True)
    for open_ in (open_capture, open_study):
        with pytest.raises(HgvizError, match="there is no"):
            open_(tmp_path / "none.h5")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")
    assert not is_capture(tmp_path / "pipe")
    os.mkfifo(tmp_path / "root.h5")
    assert not is_capture(tmp_path)


def test_a_file_cut_while_it_is_open_is_an_error_not_a_crash(path):
    opened = open_capture(path)
    os.truncate(path, 5000)
    with pytest.raises(HgvizError, match="cannot be read"):
        for maps in opened.maps:
            maps.read(0)


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


def test_plugins_are_never_loaded(path, tmp_path):
    damage(path, "layers/000/stat", lambda old: {"data": old, "compression": "lzf"})
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
    assert "unsupported filter" in done.stdout and done.stdout.endswith("0\n")


# --- what is passed over --------------------------------------------------------------------------


def test_newer_minor_versions_and_unknown_names_are_read(tmp_path, good, path):
    for file in (path, other := good(tmp_path, "study")):
        damage(file, "@format_version", np.array((1, 9)))
        damage(file, "something new", [1, 2])
    damage(path, "layers/000/something new", [1, 2])
    damage(path, "items", h5py.SoftLink("/items"))
    assert open_capture(path).complete
    for name in ("curves", "masks", "learned"):
        damage(other, name, None)
    opened = open_study(other)
    assert isinstance(opened, Study) and opened.curves == opened.masks == opened.learned == ()


def test_names_of_a_stranger_are_short_of_one_line_and_never_paths(tmp_path, good, path):
    name = "../../../etc/passwd\0<b>\n\ud800\u202e" + "x" * 10**6
    damage(path, "spec", said({"name": name, "labels": ["\0", "fine"]}))
    damage(path, "made", said({"producer": "\x1b[2J", "versions": [["numpy\t", "2" * 999]]}))
    opened = open_capture(path)
    assert opened.spec.name == "../../../etc/passwd\ufffd<b>\ufffd\ufffd\ufffd" + "x" * 174
    assert opened.spec.labels == ("\ufffd", "fine")
    assert opened.made.producer == "\ufffd[2J"
    assert opened.made.versions == (("numpy\ufffd", "2" * 200),)
    other = good(tmp_path, "study")
    damage(other, "about", said({"data": "a\n\x1b[2J" + "x" * 10**6}))
    damage(other, "masks", said([["\u202e" + "y" * 999, [], None]]))
    damage(other, "mask_changes", said([None]))
    opened = open_study(other)
    assert opened.data == "a\ufffd\ufffd[2J" + "x" * 194
    assert opened.masks[0].name == "\ufffd" + "y" * 199


def test_listed_cells_that_are_not_there_are_passed_over(tmp_path, good):
    path = good(tmp_path, "classes")
    wild = np.array([[9, 0, 0], [0, -1, 0], [0, 0, 10**6], [-(2**31), 2**31 - 1, 3]], "i4")
    damage(path, "layers/000/kept", wild)
    assert np.isfinite(open_capture(path).maps[0].read(0)).all()


# --- noticed by what is computed from it ----------------------------------------------------------


@pytest.mark.parametrize("runs", [True, False], ids=["runs", "heads"])
def test_a_changed_number_is_noticed_by_what_is_computed_from_it(tmp_path, good, runs):
    path = good(tmp_path, "large")
    with h5py.File(path, "r+") as file:  # deflate's checksum is written anew: only the crc tells
        file["layers/000/q"][1, 300, 2] += 1
        if not runs:
            del file["layers/000/runs"]
    maps = open_capture(path).maps[0]
    maps.read(0)
    stat = maps.factors.stat
    assert isinstance(stat, StoredRuns) == runs
    if runs:
        maps.read(1, (0, 256)), maps.read(1, (512, 4100))
        assert stat[1, 300] == stat[1][300] and stat[np.int64(0), np.int64(5)] == stat[0][5]
    for rows in ((290, 291), (0, 257), None):
        with pytest.raises(HgvizError, match="not match"):
            maps.read(1, rows)


def test_a_bomb_in_a_level_is_refused_when_it_is_read(tmp_path, good):
    path = good(tmp_path, "large")
    damage(path, "", packed(zlib.compress(bytes(1 << 26), 9), "layers/000/max/3"))
    maps = open_capture(path).maps[0]
    with pytest.raises(HgvizError, match="cannot be read"):
        maps.overview(0, zoom=3)
    assert maps.overview(1, zoom=3) is not None
