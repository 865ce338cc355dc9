"""Studies on disk: what was written is read, and a stranger's file is one clear line."""

import errno
import gzip
import os
import shutil
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.core import HeadId, HgvizError
from hgviz.store import (
    is_capture,
    is_study,
    open_capture,
    open_study,
    schema,
    studies,
    write_capture,
    write_study,
)
from hgviz.study import Study
from tests.store.damage import restate, swap
from tests.studying import OPTIONAL, make_study

STUDIES = Path(__file__).parent / "studies"
TIMES = [[1.730953, 1.049186], [1.919801, 1.558168], [1.401688, 1.147349], [1.392633, 1.254712]]


def same(one, other):
    """Field by field, arrays with their types, NaN equal to NaN."""
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            if field.name != "path":
                same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple) and len(one) == len(other) and any(map(is_dataclass, one)):
        for pair in zip(one, other, strict=True):
            same(*pair)
    else:
        assert one == other


# --- round trips ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    examples=st.integers(1, 40),
    asked=st.sampled_from(["classes", "next", "masked"]),
    done=st.floats(0, 1),
    without=st.sets(st.sampled_from(OPTIONAL)),
    off=st.sets(st.sampled_from([(0, 0), (3, 1)])),
    curves=st.integers(0, 3),
)
def test_what_was_written_is_read(tmp_path_factory, **keys):
    path = tmp_path_factory.mktemp("study") / "a.h5"
    one = make_study(**keys)
    write_study(path, one)
    same(one, open_study(path))
    assert is_study(path) and not is_capture(path)


def test_large_arrays_come_in_chunks_with_checksums(tmp_path):
    path = write_study(tmp_path / "a.h5", make_study(examples=5000))
    with h5py.File(path) as file:
        assert file["gradient"].chunks and file["gradient"].fletcher32
        assert file["places"].shape == (5001,) and file["saved_parameters"].chunks is None
        assert "crc32" in file["saved_parameters"].attrs
    opened = open_study(path)
    same(make_study(examples=5000), opened)
    with pytest.raises(ValueError, match="read-only"):
        opened.arrays["gradient"][0, 0] = 1


def test_what_is_infinite_is_not_measured(tmp_path):
    one = make_study()
    gradient, loss = one.arrays["gradient"].copy(), one.loss.copy()
    gradient[2, 1] = loss[3] = np.inf
    written = replace(one, arrays={**one.arrays, "gradient": gradient}, loss=loss)
    opened = open_study(write_study(tmp_path / "a.h5", written))
    assert (
        np.isnan(opened.arrays["gradient"][2, 1]) and np.isnan(opened.arrays["gradient"]).sum() == 1
    )
    assert list(opened.answered) == [at != 3 for at in range(len(loss))]


def test_a_file_that_is_there_is_not_touched_without_force(tmp_path):
    path = write_study(tmp_path / "a.h5", make_study())
    before = path.read_bytes()
    with pytest.raises(HgvizError, match="exists already"):
        write_study(path, make_study(1))
    assert path.read_bytes() == before
    write_study(path, make_study(1), force=True)
    same(make_study(1), open_study(path))
    with pytest.raises(HgvizError, match="is a folder"):
        write_study(tmp_path, make_study(1), force=True)


def test_a_full_disk_leaves_the_old_study_whole(tmp_path, monkeypatch):
    path = write_study(tmp_path / "a.h5", make_study())
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(HgvizError, match="disk is full"):
        write_study(path, make_study(1), force=True)
    monkeypatch.undo()
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_study_of_every_version_opens_and_says_what_it_said(tmp_path):
    major, minor = schema.STUDY_VERSION
    found = []
    for number in range(minor + 1):
        path = tmp_path / f"{number}.h5"
        path.write_bytes(gzip.decompress((STUDIES / f"{major}.{number}.h5.gz").read_bytes()))
        found.append(open_study(path))
    opened = found[0]
    assert list(opened.places) == [0, 3, 3, 6, 8, 10, 13, 16] and opened.asked == "next"
    assert opened.measured()["gradient"] == 5 / 7 and opened.off == {HeadId(0, 1)}
    assert np.nansum(opened.arrays["loss_change"]) == pytest.approx(-8.537521, rel=1e-5)
    assert np.nansum(opened.arrays["gradient"]) == pytest.approx(2.3058913, rel=1e-5)
    assert list(opened.given[:4]) == [60, 250, 66, 213]
    one = opened.curves[0]
    assert one.order[:2] == (HeadId(4, 1), HeadId(4, 0)) and one.seed == 7
    np.testing.assert_allclose(one.values, [0.87975883, 0.62339, 0.06349824, 0.5509554], rtol=1e-6)
    assert opened.masks[2].score.high == np.inf and opened.learned[0].method == "gates"
    assert [one.change for one in found[1].masks] == [None, (0.1, -0.05, 0.2), None]
    timed = [one.times for one in found[2].curves]
    assert [one is None for one in timed] == [False, True]
    np.testing.assert_allclose(timed[0], TIMES, rtol=1e-6)
    assert found[2].texts == 0 and (found[3].texts, found[3].amount()) == (3, "7 examples")
    assert found[4].saved_flops.shape == (18, 3)


# --- strangers ------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path) -> Path:
    study = make_study(examples=30)
    arrays = {**study.arrays, "context_norm": study.arrays["gradient"]}
    return write_study(tmp_path / "a.h5", replace(study, arrays=arrays))


def refused(path, *words) -> HgvizError:
    with pytest.raises(HgvizError) as caught:
        open_study(path)
    error = caught.value
    assert str(path) in error.what and error.do
    assert "\n" not in str(error) and len(str(error)) < 400 + len(str(path))
    for word in words:
        assert word in error.what
    return error


@pytest.mark.parametrize(
    "content,word", [(b"", "empty"), (b"PK\x03\x04 zip", "not an HDF5"), (b"\x89HDF\r\n\x1a\n", "")]
)
def test_other_files_are_told_apart(tmp_path, content, word):
    wrong = tmp_path / "b.h5"
    wrong.write_bytes(content)
    refused(wrong, word)
    assert not is_study(wrong)


def test_a_capture_is_no_study_and_the_other_way(tmp_path, path, capture):
    other = write_capture(tmp_path / "b.h5", capture)
    refused(other, "not a study of hgviz")
    assert not is_study(other)
    with pytest.raises(HgvizError, match="not a capture of hgviz"):
        open_capture(path)
    refused(tmp_path, "one file")
    with pytest.raises(HgvizError, match="there is no"):
        open_study(tmp_path / "none.h5")


@pytest.mark.parametrize(
    "version,word",
    [((1, 9), ""), ((2, 0), "a newer hgviz"), ((0, 7), "an older hgviz"), ((1,), "1 numbers")],
)
def test_a_study_of_another_version_is_told(path, version, word):
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = np.array(version)
        file["something new"] = [1, 2]
    if word:
        refused(path, "format version", word)
    else:
        assert open_study(path).arrays["context_norm"].shape == (30, 18)


def test_every_cut_file_is_refused(path):
    whole = path.read_bytes()
    for size in range(9, len(whole) - 1, len(whole) // 9):
        path.write_bytes(whole[:size])
        refused(path)


def test_random_damage_is_an_error_of_ours_or_harmless(path):
    whole, good = path.read_bytes(), make_study(examples=30)
    random = np.random.default_rng(1)
    for _ in range(60):
        damaged = bytearray(whole)
        at = int(random.integers(8, len(whole)))
        damaged[at : at + 4] = random.bytes(len(damaged[at : at + 4]))
        path.write_bytes(damaged)
        try:
            opened = open_study(path)
        except HgvizError as error:
            assert "\n" not in str(error)
        else:
            same(opened.arrays["loss_change"], good.arrays["loss_change"])


def test_a_changed_number_is_noticed(path):
    with h5py.File(path, "r+") as file:
        file["loss_change"][3, 4] += 1
    refused(path, "not what was written")


@pytest.mark.parametrize(
    "name", ["spec", "loss", "arrays", "curves", "curves/000/values", "learned/000"]
)
def test_links_to_other_files_are_not_followed(path, tmp_path, name):
    other = Path(shutil.copy(path, tmp_path / "b.h5"))
    swap(path, name, h5py.ExternalLink(str(other), name))
    refused(path, "a link to somewhere else")
    with h5py.File(path, "r+") as file:
        del file[name]
        file[name] = h5py.SoftLink("/" + name)
    refused(path, "a link to somewhere else")


def test_other_storage_is_not_read(path, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(999))
    outside = {"shape": (30,), "dtype": "i8", "external": [(str(secret), 0, 240)]}
    swap(path, "lengths", outside)
    refused(path, "another file")


@pytest.mark.parametrize("shape,chunks", [((1 << 40,), None), ((1 << 40,), (1 << 16,))])
def test_more_numbers_than_the_file_holds_are_not_believed(path, shape, chunks):
    swap(path, "wanted", {"shape": shape, "dtype": "i8", "chunks": chunks})
    refused(path, "more than the file holds")


def test_filters_and_text_of_variable_length_are_refused(path):
    swap(path, "lengths", lambda old: {"data": old, "compression": "gzip"})
    refused(path, "compressed")
    swap(path, "lengths", {"data": "text"})
    refused(path, "holds object")


def put(value, at=0):
    def change(old):
        old[at] = value
        return old

    return change


@pytest.mark.parametrize(
    "name,change,word",
    [
        ("loss", put(np.nan), "losses and answers disagree"),
        ("loss", put(np.inf), "infinite"),
        ("gradient", put(-np.inf), "infinite"),
        ("given", put(-1), "losses and answers disagree"),
        ("given", put(7), "answers"),
        ("wanted", put(-1), "numbers that are not 0 or more"),
        ("change", put(5), "numbers that are not -1, 0, 1 or -128"),
        ("places", put(1), "places"),
        ("places", lambda old: old[::-1], "places"),
        ("places", lambda old: old[:1], "places"),
        ("lengths", put(-1), "numbers that are not 0 or more"),
        ("saved_flops", put(np.nan), "numbers that are not finite"),
        ("saved_parameters", put([-1, 0, 0]), "sizes"),
        ("heads", put([9, 9]), "heads that its model does not have"),
        ("heads", put([0, 1]), "twice"),
        ("heads", lambda old: old[::-1], "order of computation"),
        ("gradient", lambda old: old[:, :-1], "shape"),
        ("loss_change", lambda old: old[:-1], "shape"),
        ("arrays/context_norm", lambda old: old[:, :-1], "shape"),
        ("arrays/context_norm", put(np.inf), "infinite"),
        ("arrays/context_norm", lambda old: old.astype("f8"), "holds"),
        ("alone", lambda old: old.astype("f8"), "holds"),
        ("change", lambda old: old.astype("f4"), "holds"),
        ("lengths", None, "missing"),
        ("curves/000/order", put([0, 7]), "heads"),
        ("curves/000/order", lambda old: np.vstack([old[:1], old[:-1]]), "twice"),
        ("curves/000/removed", lambda old: old[::-1], "numbers that are not from 0 upwards"),
        ("curves/000/removed", put(99, -1), "along its order"),
        ("curves/000/values", put(np.nan), "not finite"),
        ("curves/000/loss", put(np.inf), "not finite"),
        ("curves/000/rows", put(99, -1), "other examples"),
        ("curves/000/times", put([1, np.nan]), "times"),
        ("curves/000/times", put([0, 1]), "times"),
        ("curves/000/times", lambda old: old[:-1], "shape"),
        ("curves/000/times", lambda old: old[:, :1], "shape"),
        ("curves/000", None, "missing"),
        ("learned/000/runs", put(np.nan), "not finite"),
        ("learned/000/runs", lambda old: old[:, 1:], "shape"),
    ],
)
def test_numbers_that_lie_are_refused(path, name, change, word):
    swap(path, name, change)
    refused(path, word)


@pytest.mark.parametrize(
    "name,change",
    [
        ("about", lambda one: [1]),
        ("about", lambda one: one.update(asked="everything")),
        ("about", lambda one: one.update(metric=None)),
        ("about", lambda one: one.update(labels="no")),
        ("about", lambda one: one.update(labels=[1, 2])),
        ("about", lambda one: one.update(texts=-1)),
        ("about", lambda one: one.update(texts="three")),
        ("about", lambda one: one.update(labels=["only"])),
        ("about", lambda one: one.update(seed=1 << 70)),
        ("about", lambda one: one.update(seed=True)),
        ("off", lambda one: [[9, 9]]),
        ("off", lambda one: [[0, 0, 0]]),
        ("spec", lambda one: one.update(layers=[])),
        ("made", lambda one: one.update(device=3)),
        ("masks", lambda one: {"a": 1}),
        ("masks", lambda one: [["a", [[9, 9]], None]]),
        ("masks", lambda one: [["a", [[0]], None]]),
        ("masks", lambda one: [[1, [], None]]),
        ("masks", lambda one: [["a", [], [1]]]),
        ("masks", lambda one: [["a", [], ["m", float("nan"), 0, 1, 3, 4]]]),
        ("masks", lambda one: [["a", [], ["m", 10**400, 0, 1, 3, 4]]]),
        ("masks", lambda one: [["a", [], ["m", 0.5, 0, 1, 5, 4]]]),
        ("masks", lambda one: [["a", [], ["m", 0.5, True, 1, 3, 4]]]),
        ("masks", lambda one: one[:2]),
        ("mask_changes", lambda one: {"a": 1}),
        ("mask_changes", lambda one: [None, None]),
        ("mask_changes", lambda one: [None, [0.1, 0.0], None]),
        ("mask_changes", lambda one: [None, [0.1, 0.0, True], None]),
        ("mask_changes", lambda one: [None, [0.1, float("nan"), 0.2], None]),
        ("mask_changes", lambda one: [None, [0.1, -2, 0.2], None]),
    ],
)
def test_documents_that_lie_are_refused(path, name, change):
    restate(path, name, change)
    refused(path)


def test_names_of_a_stranger_are_short_and_of_one_line(path):
    restate(path, "about", lambda one: one.update(data="a\n\x1b[2J" + "x" * 10**6))
    restate(path, "masks", lambda one: [["\u202e" + "y" * 999, [], None]])
    restate(path, "mask_changes", lambda one: [None])
    opened = open_study(path)
    assert opened.data == "a\ufffd\ufffd[2J" + "x" * 194
    assert opened.masks[0].name == "\ufffd" + "y" * 199


def test_thousands_of_curves_are_counted_before_they_are_read(path):
    with h5py.File(path, "r+") as file:
        for number in range(2, studies.PART_LIMIT + 2):
            file["curves"].create_group(f"{number:03}")
    refused(path, "curves")


def test_a_study_without_curves_masks_or_what_was_learnt_opens(path):
    with h5py.File(path, "r+") as file:
        for name in ("curves", "masks", "learned"):
            del file[name]
    opened = open_study(path)
    assert isinstance(opened, Study) and opened.curves == opened.masks == opened.learned == ()
