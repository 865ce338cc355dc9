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
from h5py._objects import phil

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


def nest(file):
    del file["levels/1"]
    group = file.create_group("levels/1")
    for _ in range(3000):
        group = group.create_group("g")


def packed(chunk, name="layers/000/weights"):
    """A change of the packed bytes of one chunk."""
    return lambda file: file[name].id.write_direct_chunk((0,) * file[name].ndim, chunk)


def of_layers(**keys):
    return said(lambda spec: spec["layers"][0].update(**keys))


def of_levels(at=1, **keys):
    return said(lambda spec: spec["levels"][at].update(**keys))


CUT = lambda old: old[..., :-1]  # noqa: E731
FEWER = lambda old: old[:-1]  # noqa: E731
LATER = lambda old: old + 10**6  # noqa: E731
DOUBLE = lambda old: old.astype("f8")  # noqa: E731
BACKWARDS = lambda old: old[::-1]  # noqa: E731
WIDE = {"shape": (3, 999, 5), "dtype": "u1", "chunks": (1, 9, 5), "compression": "gzip"}
MANY = {"shape": (2, 1 << 20, 1 << 20), "dtype": "f4"}
LAYER_9 = said(lambda spec: spec["layers"].append(dict(spec["layers"][0], index=9)))
LINK, OTHER, SHAPE = "a link to somewhere else", "takes its data from another file", "has the shape"
HELD, RULE, NUMBERS = (
    "more than the file holds",
    "a rule that this hgviz does not know",
    "have to be",
)
FIT, TEXT, BELONGS = "does not fit", "it points at text or tokens", "is not what belongs there"
NAMED = "its spec says"

# of a sample: names (datasets, groups, group@attribute, or "" for the file), change, what is said
ROWS = {
    "small": [
        ("prompt/text layers layers/000 layers/000/q spec levels/0", ELSEWHERE, LINK),
        ("layers/001", h5py.SoftLink("/layers/001"), LINK),
        ("prompt/text", {"shape": (24,), "dtype": "u1", "external": [("b", 0, 24)]}, OTHER),
        ("", virtual, OTHER), ("layers/000/q", MANY, HELD),
        ("layers/000/q", MANY | {"chunks": (1, 1024, 1024)}, HELD),
        ("prompt/text", {"shape": (1 << 42,), "dtype": "u1"}, HELD),
        ("prompt/text", BOMB, "is compressed"),
        ("layers/000/stat", lambda old: {"data": old, "compression": "lzf"}, "a filter that"),
        ("prompt/text", {"data": "text"}, "holds object"), ("@format", "hgviz-capture", BELONGS),
        ("@format", np.bytes_("hgviz-study"), "not a capture of hgviz"),
        ("@complete", 0, "it was never completed"),
        ("@format_version", np.array((2, 0)), "a newer hgviz is needed"),
        ("@format_version", np.array((0, 9)), "an older hgviz is needed"),
        ("@format_version", np.array((1,)), "is 1 numbers and not 2"),
        ("@format_version", np.array((7,) * 999), "is 999 numbers and not 2"),
        ("", nest, "/levels/1/spans is missing"),
        ("off", np.frombuffer(b"[" * 200_000, "u1"), "/off is not JSON"),
        *((f"layers/000/{name}", CUT, SHAPE) for name in ("q", "k", "stat", "proof/values",
                                                           "rowmax")),
        ("", lambda file: file["prompt/ids"].__setitem__(0, 9), "ids is not what was written"),
        ("layers/001/k", put(9, (1, 3, 4)), "/layers/001 is not what was written"),
        ("layers/001/rowmax", put(9, (1, 3)), "summaries of /layers/001 are not what was written"),
        ("layers/000@heads", np.array([0, 5]), NAMED), ("layers/000@level", 1, NAMED),
        ("layers/000@role", np.bytes_("up"), NAMED),
        ("layers/000@level", "vlen", BELONGS), ("layers/000@level", [0, 0], BELONGS),
        ("layers/000@stride_q layers/000@stride_k", 0, "the attribute stride_"),
        ("layers/000@stride_k", -3, "stride_k of /layers/000 is -3"),
        ("layers/000@scale", np.nan, "to be finite"),
        ("layers/000@empty_rows", np.bytes_("full"), "to be zeros or uniform"),
        ("layers/000@activations", np.bytes_("tanh tanh"), NAMED),
        ("layers/000@norms", np.bytes_("l3 -"), "to be l2"),
        ("layers/000@crc32 layers/000@summary32", np.array([1]), "for each of 2 heads"),
        ("layers/000@kind", np.bytes_("pickle"), "is of the kind 'pickle'"),
        ("layers/000@committed", 0, "was never completed"),
        ("spec", said(lambda spec: spec.pop("levels") and None), "required field `levels`"),
        ("spec", said({"layers": [{}] * 3}), FIT), ("spec", LAYER_9, "/layers/009 is missing"),
        ("spec", of_layers(heads=[0, 0]), "does not number"),
        ("spec", of_layers(level=10**9), "is on level 1000000000 of 2"),
        ("spec", of_layers(role="sideways"), FIT),
        ("spec", of_layers(activations=["exec", "softmax"]), "other activations"),
        ("spec", of_layers(index=7), "says that it is number 7"),
        ("spec", of_layers(shared=0), "0 heads that share keys"),
        *(("spec", of_levels(**keys), FIT) for keys in (
            {"stride": 0}, {"stride": "2"}, {"shift": -1}, {"shift": 1 << 60})),
        ("prompt/spans", LATER, TEXT), ("prompt/spans", lambda old: old[:, ::-1], TEXT),
        ("levels/1/spans", LATER, TEXT), ("prompt/ids", FEWER, SHAPE),
        ("prompt/ids", DOUBLE, "holds float64, not i8"),
        ("prompt/pieces", said([1]), FIT), ("prompt/pieces", said(["a"]), "name every token"),
        ("prompt/text", np.array([0xFF], "u1"), "damaged, cut short, or was changed"),
        ("levels/0/spans", lambda old: np.concatenate([old, old]), "24 rows for 48 positions"),
        ("off", said([[0]]), FIT), ("made", said({"device": 3}), FIT), ("made", said(3), FIT),
    ],
    "picture": [("prompt/signal", put(np.nan), NUMBERS), ("prompt/grid", put(99), "the patches")],
    "sound": [("prompt/seconds", put(-1), "its sound is -1.0 s long")],
    "both": [
        ("target/ids", None, "/target/ids is missing"), ("target/ids", FEWER, SHAPE),
        ("target/spans", LATER, TEXT), ("levels/1/spans", lambda old: old + 1, TEXT),
        ("output/logits", lambda old: old[0], "1 dimensions instead of 2"),
        ("target", None, "disagree about a second text"),
    ],
    "slots": [
        ("", lambda file: file.copy("prompt", "target"), "disagree about a second text"),
        ("levels/1/spans", lambda old: old + 1, TEXT),
    ],
    "states": [("prompt/states", FEWER, SHAPE), ("prompt/states", DOUBLE, "holds float64")],
    "classes": [
        ("output/logits", FEWER, SHAPE),
        ("output/logits", lambda old: old[None], "2 dimensions instead of 1"),
        ("layers/000/norm layers/000/threshold layers/000/kept", None, RULE),
        ("layers/000/threshold", CUT, SHAPE),
        ("layers/000/threshold", lambda old: old + np.float32(1), "not what was written"),
        ("layers/000/kept", np.zeros((3, 2), "i4"), SHAPE),
        ("layers/000/kept", np.zeros((3, 3), "f4"), "holds float32, not i4"),
        *(("layers/000@top_k", number, f"top_k of /layers/000 is {number}")
          for number in (0, -1, 1 << 40)),
        *(("spec", said(keys), FIT) for keys in (
            {"goal": "win"}, {"labels": "no yes"}, {"labels": [1, 2, 3]})),
        *(("spec", of_levels(0, sequence=name), FIT) for name in ("sideways", None)),
    ],
    "relative": [("layers/000/relative/bias", None, "lacks a term of its relative positions")],
    "dense float32": [
        ("", packed(zlib.compress(b"\0" * (1 << 26))), "not 262144 bytes long"),
        ("", packed(zlib.compress(b"\0" * 99)), "not 262144 bytes long"),
        ("", packed(b"\0" * 600_000), "has a chunk of 600000 bytes"),
        ("", packed(b"not zlib"), "weights is damaged"),
        ("", packed(zlib.compress(bytes(262144))[:-2]), "weights is cut short"),
    ],
    "large": [
        ("", packed(zlib.compress(bytes(1 << 26), 9), "layers/000/q"), "q has a chunk of"),
        ("layers/000/max/9", ELSEWHERE, LINK), ("layers/000/max/4", WIDE, SHAPE),
        ("layers/000/mean/4", np.zeros((3, 257, 5), "u1"), "is not compressed"),
        ("layers/000/ranges", put([2.0, 1.0], (0, 0)), "numbers that no map has"),
        ("layers/000/ranges", put(np.nan, (1, 1)), "numbers that no map has"),
        ("layers/000/runs", lambda old: old[:, 1:], "68 runs instead of 69"),
        ("layers/000/max", np.zeros(3), "/layers/000/max is not a group"),
    ],
    "corpus": [
        *(("index", said(index), FIT) for index in (
            [[0, "a", 1]], [[1, "a", 1, ""]], [[0, "a", -1, ""]], [[0, "a", True, ""]],
            [[0, "a", 1, ""]] * 2, [[0, "a", 1, ""]] * 100_001)),
        ("items/00001", None, "/items/00001 is missing"),
    ],
    "study": [
        ("spec loss arrays curves curves/000/values learned/000", ELSEWHERE, LINK),
        ("loss", h5py.SoftLink("/loss"), LINK),
        ("lengths", {"shape": (30,), "dtype": "i8", "external": [("b", 0, 240)]}, OTHER),
        ("wanted", {"shape": (1 << 40,), "dtype": "i8"}, HELD),
        ("wanted", {"shape": (1 << 40,), "dtype": "i8", "chunks": (1 << 16,)}, HELD),
        ("lengths", lambda old: {"data": old, "compression": "gzip"}, "is compressed"),
        ("@format_version", np.array((2, 0)), "a newer hgviz is needed"),
        ("", lambda file: file["loss_change"].__setitem__((3, 4), 9), "not what was written"),
        ("loss", put(np.nan), "its losses and answers disagree"), ("loss", put(np.inf), NUMBERS),
        ("given", put(-1), "its losses and answers disagree"),
        ("given wanted", put(7), "other answers than its model knows"),
        ("given", put(-2), "other answers than its model knows"),
        ("wanted", put(-1), NUMBERS), ("places", put(1), "its places"),
        ("places", BACKWARDS, "its places"), ("places", lambda old: old[:1], "its places"),
        ("lengths", put(-1), NUMBERS), ("lengths", None, "/lengths is missing"),
        ("heads", put([9, 9]), "heads that its model does not have"),
        ("heads", put([0, 1]), "it names a head twice"),
        ("heads", BACKWARDS, "not in order of computation"),
        ("gradient arrays/context_norm", put(-np.inf), NUMBERS), ("change", put(5), NUMBERS),
        ("gradient arrays/context_norm learned/000/runs curves/000/times", CUT, SHAPE),
        ("loss_change curves/000/times", FEWER, SHAPE),
        ("change", lambda old: old.astype("f4"), "holds float32, not i1"),
        ("alone", DOUBLE, "holds float64, not f4"), ("saved_flops", put(np.nan), NUMBERS),
        ("saved_parameters", put([-1, 0, 0]), "sizes below 0"),
        ("arrays/not-a-name", np.zeros((30, 18), "f4"), "no name that can be"),
        ("", lambda file: [file.create_group(f"curves/{at:03}") for at in range(2, 10_002)],
         "it has 10,002 curves"),
        ("curves/000", None, "/curves/000 is missing"),
        ("curves/000/order", put([0, 7]), "heads that its model does not have"),
        ("curves/000/order", lambda old: np.vstack([old[:1], old[:-1]]), "names a head twice"),
        ("curves/000/removed curves/000/rows", BACKWARDS, NUMBERS),
        ("curves/000/removed", put(99, -1), "not along its order"),
        ("curves/000/rows", put(99, -1), "a curve is of other examples"),
        ("curves/000/values curves/000/low learned/000/runs", put(np.nan), NUMBERS),
        ("curves/000/loss", put(np.inf), NUMBERS),
        ("curves/000/times", put([1, np.nan]), NUMBERS), ("curves/000/times", put([0, 1]), NUMBERS),
        *(("about", said(about), FIT) for about in (
            [1], {"asked": "everything"}, {"labels": [1, 2]}, {"texts": -1}, {"seed": 1 << 70})),
        ("about", said({"labels": ["only"]}), "other answers than its model knows"),
        ("off", said([[9, 9]]), "other heads off than there are"), ("off", said([[0, 0, 0]]), FIT),
        ("spec", said({"layers": []}), "heads that its model does not have"),
        ("made", said({"device": 3}), FIT),
        *(("masks", said(masks), FIT) for masks in (
            [["a", [[0]], None]], [["a", [], [1]]], [["a", [], ["m", float("nan"), 0, 1, 3, 4]]],
            [["a", [], ["m", 10**400, 0, 1, 3, 4]]], [["a", [], ["m", 0.5, True, 1, 3, 4]]])),
        ("masks", said(lambda masks: [["a", [[9, 9]], None], *masks[1:]]), "of another model"),
        ("masks", said(lambda masks: [["a", [], ["m", 0.5, 0, 1, 5, 4]], *masks[1:]]),
         "more examples than there are"),
        ("masks", said(lambda masks: masks[:2]), "of other masks"),
        ("mask_changes", said([None, None]), "of other masks"),
        *(("mask_changes", said(changes), FIT) for changes in (
            [None, [0.1, 0.0], None], [None, [0.1, float("nan"), 0.2], None],
            [None, [0.1, -2, 0.2], None])),
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
            for maps, good_maps in () if study else zip(opened.maps, small_maps(), strict=True):
                for head in maps.heads:
                    assert (maps.read(head) == good_maps.read(head)).all()
        except HgvizError as error:
            assert "\n" not in str(error)


def small_maps():
    return small().maps


# --- what is no file of ours ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"", "empty"), (b"PK\x03\x04 zip", "not an HDF5"), (b"\x89HDF\r\n\x1a\n" + b"\xff" * 99, "")],
)
def test_other_files_are_told_apart(tmp_path, content, word):
    path = tmp_path / "a.h5"
    path.write_bytes(content)
    refused(path, word)
    refused(path, word, study=True)
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
    assert "a filter that hgviz does not use" in done.stdout and done.stdout.endswith("0\n")


def test_calls_that_h5py_leaves_without_its_lock_are_made_under_it(path, monkeypatch):
    """Those of plugins are, alone of all that hgviz makes: beside a thread that reads they led to
    damaged files and to segmentation faults."""
    held, size = [], h5py.h5pl.size
    monkeypatch.setattr(h5py.h5pl, "size", lambda: held.append(phil._is_owned()) or size())
    assert open_capture(path).complete
    assert held and all(held)


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
        with pytest.raises(HgvizError, match="not what was written"):
            maps.read(1, rows)


def test_a_bomb_in_a_level_is_refused_when_it_is_read(tmp_path, good):
    path = good(tmp_path, "large")
    damage(path, "", packed(zlib.compress(bytes(1 << 26), 9), "layers/000/max/3"))
    maps = open_capture(path).maps[0]
    with pytest.raises(HgvizError, match="cannot be read"):
        maps.overview(0, zoom=3)
    assert maps.overview(1, zoom=3) is not None
