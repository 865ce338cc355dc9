"""Session files: a round trip, paths that move with them, and files from strangers."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import HgvizError
from hgviz.session import places, saved
from hgviz.session.saved import (
    FORMAT,
    VERSION,
    Beside,
    Chosen,
    Place,
    Saved,
    SavedMask,
)

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
FULL = Saved(
    FORMAT,
    VERSION,
    model=Place("../models/tiny"),
    activation="ymish",
    text="a text\nof two lines",
    off=("1.0", "2.1"),
    masks=(SavedMask("two off", ("1.0", "2.1")),),
    beside=Beside("model", place=Place("sample/ymish", "hgviz")),
    chosen=Chosen(2, 1, 60, 29, "3.1"),
)


def refused(path):
    with pytest.raises(HgvizError) as error:
        saved.read(path)
    assert error.value.what == f"{path.name} cannot be opened as a session"
    assert error.value.why and "\n" not in error.value.why
    return error.value.why


def test_a_session_survives_the_round_trip(tmp_path):
    path = tmp_path / "deep" / "one.hgviz"
    saved.write(FULL, path)
    assert saved.read(path) == FULL
    assert [one.name for one in path.parent.iterdir()] == ["one.hgviz"]
    assert saved.is_session(path) and not saved.is_session(tmp_path / "none.hgviz")


@given(names, names)
def test_any_text_survives(tmp_path_factory, text, second):
    path = tmp_path_factory.mktemp("sessions") / "one.hgviz"
    one = Saved(FORMAT, VERSION, text=text, second=second)
    saved.write(one, path)
    assert saved.read(path).text == text and saved.read(path) == one


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "truncated"),
        (b"\x89HDF", ""),
        (b"[]", ""),
        (b'{"format": "else", "version": 1}', ""),
        (b'{"format": "hgviz session", "version": 2}', "version 2"),
        (b'{"format": "hgviz session", "version": 1, "item": -1}', ""),
        (b'{"format": "hgviz session", "version": 1, "chosen": {"layer": 1e99}}', ""),
        (b'{"format": "hgviz session", "version": 1, "text": 3}', "expected `str`"),
        (b'{"format": "hgviz session", "version": 1, "layout": {"size": [1, 99999999]}}', ""),
        (b'{"format": "hgviz session", "version": 1, "future": %s}' % (b"[" * 2000), "nested"),
        (b"[" * 100_000 + b"]" * 100_000, "nested"),
    ],
)
def test_what_is_no_session_is_refused_in_one_line(tmp_path, content, why):
    path = tmp_path / "bad.hgviz"
    path.write_bytes(content)
    assert why in refused(path)


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "C:/x", "~/x", "\\\\host\\share", "//host/share", "file:///etc", "a\0b", ""],
)
def test_no_path_in_a_session_is_absolute(tmp_path, path):
    file = tmp_path / "bad.hgviz"
    file.write_text(json.dumps({"format": FORMAT, "version": 1, "model": {"path": path}}))
    assert "the path of its model" in refused(file)


def test_what_comes_with_hgviz_leads_nowhere_else(tmp_path):
    file = tmp_path / "bad.hgviz"
    place = {"path": "sample/../../../etc", "of": "hgviz"}
    file.write_text(json.dumps({"format": FORMAT, "version": 1, "model": place}))
    assert "leads out" in refused(file)


def test_a_file_that_is_too_large_or_no_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "LARGEST", 1 << 20)
    large = tmp_path / "large.hgviz"
    large.write_bytes(b" " * ((1 << 20) + 1))
    assert "larger than 1 MB" in refused(large)
    pipe = tmp_path / "pipe.hgviz"
    os.mkfifo(pipe)
    assert "no regular file" in refused(pipe)  # and nobody waits for a writer


def test_what_a_newer_minor_version_adds_is_left_aside(tmp_path):
    path = tmp_path / "one.hgviz"
    path.write_text(json.dumps({"format": FORMAT, "version": 1, "future": {"a": [1]}}))
    assert saved.read(path) == Saved(FORMAT, VERSION)


def test_places_move_with_the_folder(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "work").mkdir(parents=True)
    (here / "models").mkdir()
    model = here / "models" / "weights.h5"
    model.write_bytes(b"weights")
    place = places.place_of(str(model), here / "work" / "one.hgviz")
    assert place.path == "../models/weights.h5"
    here.rename(there)
    found = places.path_of(place, there / "work" / "one.hgviz")
    assert found == str(there / "models" / "weights.h5")
    assert places.is_at(place, there / "work" / "one.hgviz")
    assert not places.is_at(place, here / "work" / "one.hgviz")


def test_what_comes_with_hgviz_is_found_by_name(tmp_path):
    from hgviz.resources import resource

    place = places.place_of(str(resource("sample/hourglass")), tmp_path / "one.hgviz")
    assert place == Place("sample/hourglass", "hgviz")
    assert places.path_of(place, "/anywhere/one.hgviz") == str(resource("sample/hourglass"))
    assert places.place_of("bert-base-uncased", tmp_path / "a.hgviz").of == "cache"
    assert places.place_of("", tmp_path / "a.hgviz") is None
