"""What is open, chosen and shown, without any window, and the files that keep it."""

import dataclasses
import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import Display, HeadId, HgvizError, Item, MetricEstimate, Selection
from hgviz.files import resource
from hgviz.session import Session, SideB, document
from hgviz.session.document import (
    FORMAT,
    Document,
    is_session,
    read_document,
    write_document,
)
from hgviz.session.navigation import (
    clearest,
    step_head,
    step_item,
    step_layer,
    step_level,
    step_token,
    strongest_key,
)
from hgviz.study import Mask
from tests.making import make_capture


@pytest.fixture
def session(capture):
    session = Session()
    session.put(capture=capture)
    return session


def test_a_change_is_said_once_for_each_field_after_all_are_set():
    session, said = Session(), []
    session.changed.connect(lambda name: said.append((name, session.dark, session.text)))
    session.put(dark=True, text="abc")
    session.put(selection=session.selection, mode=session.mode, dark=True)  # nothing changes
    assert said == [("text", True, "abc"), ("dark", True, "abc")]
    with pytest.raises(AttributeError, match="selektion"):
        session.put(selektion=None)


def test_a_new_capture_brings_spec_text_and_a_sensible_selection(session, capture):
    chosen = session.selection
    assert session.spec == capture.spec and session.text == capture.prompt.text
    assert capture.spec.layers[chosen.layer].role == "self"
    assert 0 < chosen.query < len(capture.prompt) - 1
    assert set(session.opened) == {level.index for level in capture.spec.levels}
    session.select(layer=6, head=3)
    assert session.opened[capture.spec.layers[6].level] == HeadId(6, 3)
    before = dict(session.opened)  # a resampling head is not the open head of a level
    session.select(layer=next(one.index for one in capture.spec.layers if one.role == "down"))
    assert session.opened == before
    assert not session.stale
    session.put(text="something else")
    assert session.stale
    partial = Session()  # an interrupted capture shows the last layer that it reached
    done = (*capture.maps[:2], *(None for _ in capture.maps[2:]))
    partial.put(capture=dataclasses.replace(capture, maps=done))
    assert partial.selection.layer == 1


@pytest.mark.parametrize("wild", [-5, 10_000])
def test_a_selection_outside_the_capture_is_brought_inside(session, capture, wild):
    session.put(selection=Selection(wild, wild, wild, wild))
    chosen = session.selection
    assert 0 <= chosen.layer < len(capture.spec.layers)
    assert chosen.head in capture.spec.layers[chosen.layer].heads
    assert 0 <= chosen.query < len(capture.prompt) > chosen.key >= 0


def test_another_capture_of_the_model_keeps_the_head_and_drops_what_was_of_the_text(
    session, capture
):
    last = Selection(len(capture.maps) - 1, 0, 9)
    session.put(hover=last, facts={HeadId(0, 0): "fact"})
    session.put(capture=dataclasses.replace(capture, path="a.h5"))
    assert session.hover == last
    session.select(layer=3, head=2, query=5)
    session.put(capture=dataclasses.replace(capture, maps=capture.maps[:4] + (None,) * 9))
    assert session.selection == Selection(3, 2, 5)
    session.select(key=1)
    session.put(capture=make_capture("Another text, shorter."))
    assert session.selection.head_id == HeadId(3, 2) and session.selection.key is None
    assert session.facts == {}
    session.put(capture=make_capture("Another text.", strides=(1,)))
    assert session.hover is None


@pytest.mark.parametrize(
    ("text", "number", "grew"),
    [("It was late and dark", None, True), ("It was", None, False), ("x", None, False),
     ("It was late and dark", 1, False)],
)  # fmt: skip
def test_only_a_text_that_is_gone_on_with_keeps_what_is_known(text, number, grew):
    """Cut short, changed, or another text of a corpus that begins alike is another text."""
    before, after = make_capture("It was late"), make_capture(text)
    if number is not None:
        before, after = corpus(before, 0), corpus(after, number)
    session = Session()
    session.put(capture=before, facts={HeadId(0, 0): "fact"})
    session.select(layer=3, head=2, query=2, key=1)
    session.put(capture=after, **({"written": 11} if grew else {}))
    assert session.grew == grew and session.selection.head_id == HeadId(3, 2)
    assert session.facts == ({HeadId(0, 0): "fact"} if grew else {})
    assert session.written == (11 if grew else None)
    assert session.text == text and not session.stale
    if grew:
        assert session.selection == Selection(3, 2, 2, 1)


def test_heads_stay_off_as_long_as_the_model_is_the_same(capture):
    off, session = frozenset({HeadId(0, 0), HeadId(3, 2)}), Session()
    session.put(capture=dataclasses.replace(capture, off=off))  # a first capture says which
    assert session.off == off
    renamed = dataclasses.replace(capture.spec, name="elsewhere")
    session.put(capture=dataclasses.replace(make_capture("Another text"), spec=renamed))
    assert session.off == off
    other = dataclasses.replace(capture.spec, digest="another")
    session.put(model=None, capture=None, spec=other)
    assert session.off == frozenset()


# --- navigation -----------------------------------------------------------------------------------


def test_heads_go_round_layers_stop_and_levels_go_to_the_head_last_opened(session, capture):
    heads = len(capture.spec.layers[0].heads)
    session.select(layer=6, head=4)
    session.select(layer=0, head=heads - 1)
    assert step_head(session, 1).head == 0 and step_head(session, -1).head == heads - 2
    assert step_layer(session, -1).layer == 0 and step_layer(session, 1).layer == 1
    session.put(selection=step_level(session, 1))
    assert session.selection.layer in (3, 9)
    assert step_level(session, 1).head_id == HeadId(6, 4)
    assert step_level(session, -1).head_id == HeadId(0, heads - 1)


def test_a_step_goes_by_the_stride_of_its_level_and_stops_at_the_ends(session, capture):
    last = len(capture.prompt) - 1
    for layer, query, by, wanted in (
        (6, 16, 1, 20), (6, 16, -1, 12), (0, 16, 1, 17), (0, 0, -1, 0), (0, last, 1, last),
    ):  # fmt: skip
        session.select(layer=layer, head=0, query=query)
        assert step_token(session, by, "query").query == wanted


def test_the_strongest_key_is_the_largest_weight_of_the_row(capture):
    row = capture.maps[0].read(0, rows=(50, 51))[0]
    assert strongest_key(capture, Selection(0, 0, 50)) == int(np.argmax(np.abs(row)))
    chosen = clearest(capture, [HeadId(0, 0)])
    assert chosen.head_id == HeadId(0, 0) and chosen.key == strongest_key(capture, chosen)
    assert clearest(capture, []) is None


@pytest.mark.parametrize("text", ["a", "ab", "שלום 👩‍👩‍👧 hello"])
def test_tiny_and_strange_texts_can_be_stepped_through(text):
    session = Session()
    session.put(capture=make_capture(text))
    for layer in range(len(session.spec.layers)):
        session.select(layer=layer)
        for by in (1, -1, 1, 1, 1):
            session.put(selection=step_token(session, by, "query"))
            session.put(selection=step_token(session, by, "key"))
        assert clearest(session.capture, [session.selection.head_id]) is not None


def test_nothing_open_can_be_stepped_too():
    session = Session()
    assert step_head(session, 1) == step_layer(session, 1) == step_level(session, 1) == Selection()
    assert step_token(session, 1, "query") == Selection()


def corpus(capture, item=1, numbers=(0, 1, 4)):
    items = tuple(Item(number, f"text {number}", 6) for number in numbers)
    return dataclasses.replace(capture, item=item, items=items)


def test_the_texts_of_a_corpus_follow_each_other_and_end(session, capture):
    assert step_item(session, 1) is None and capture.place_in_corpus is None
    session.put(capture=corpus(capture))
    assert (step_item(session, -1), step_item(session, 1)) == (0, 4)
    assert session.capture.place_in_corpus == (2, 3)
    session.put(capture=corpus(capture, item=4))
    assert step_item(session, 1) is None
    session.put(capture=corpus(capture, item=7))
    assert step_item(session, 1) is None and session.capture.place_in_corpus is None


# --- files ----------------------------------------------------------------------------------------


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
OFF = frozenset({HeadId(1, 0), HeadId(2, 1)})
HEAD = '{"format": "hgviz session", "version": 2'


def refused(path):
    with pytest.raises(HgvizError) as error:
        read_document(path)
    assert error.value.what.startswith(f"{path.name} cannot be opened as a session: ")
    assert "\n" not in error.value.what
    return error.value.what


def test_a_session_survives_the_round_trip(tmp_path):
    path = tmp_path / "deep" / "one.hgviz"
    score = MetricEstimate("accuracy", 0.5, 0.4, 0.6, 10, 20, OFF)
    document = Document(
        model=str(tmp_path / "models" / "tiny"),
        activation="ymish",
        text="a text\nof two lines",
        off=OFF,
        masks=(Mask("two off", OFF, score, (-0.1, -0.2, 0.0)),),
        comparison=SideB("model", path=str(resource("sample/ymish"))),
        selection=Selection(2, 1, 60, 29, HeadId(3, 1)),
        display=Display("magma", (0.0, 0.5)),
        mode="compare",
    )
    write_document(document, path)
    assert read_document(path) == document
    assert [one.name for one in path.parent.iterdir()] == ["one.hgviz"]
    assert is_session(path) and not is_session(tmp_path / "none.hgviz")


@given(names, names)
def test_any_text_survives(tmp_path_factory, text, second):
    path = tmp_path_factory.mktemp("sessions") / "one.hgviz"
    write_document(Document(text=text, second=second), path)
    assert read_document(path) == Document(text=text, second=second)


def test_scores_that_are_no_numbers_and_fields_of_newer_versions_are_left_out(session, tmp_path):
    score = MetricEstimate("loss", math.nan, 0.0, 1.0, 1, 2)
    session.put(masks=(Mask("a", OFF, score, (0.0, 0.0, 0.0)),))
    assert session.document.masks == (Mask("a", OFF),)
    path = tmp_path / "one.hgviz"
    path.write_text(HEAD + ', "open": {"future": {"a": [1]}}}')
    assert read_document(path) == Document()


def opening(place):
    return json.dumps({"format": FORMAT, "version": 2, "open": {"model": place}})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "truncated"), ("\x89HDF", ""), ("[]", ""),
        ('{"format": "else", "version": 2}', "'else'"),
        ('{"format": "hgviz session", "version": 1, "text": "old"}', "version 1"),
        (HEAD + ', "open": {"item": -1}}', ""),
        (HEAD + ', "open": {"selection": {"layer": 1e99}}}', ""),
        (HEAD + ', "open": {"text": 3}}', "expected `str`"),
        (HEAD + ', "open": {"mode": "future"}}', "'future'"),
        (HEAD + ', "open": {"display": {"limits": [0, 1e999]}}}', "out of range"),
        (HEAD + ', "open": {"layout": {"size": [1, 99999999]}}}', ""),
        ("[" * 100_000 + "]" * 100_000, ""),
        (HEAD + ', "future": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        *((opening(f"file:{path}"), "absolute") for path in (
            "/etc/passwd", "C:/x", "~/x", "//host/share", "file:///etc")),
        (opening("file:\\\\host\\share"), "characters"), (opening("file:a\0b"), "characters"),
        (opening("file:"), "not a valid path"), (opening("/etc/passwd"), "not a valid path"),
        (opening("sample:../../etc"), "leads out"), (opening("cache:../x"), "leads out"),
    ],
)  # fmt: skip
def test_what_is_no_session_or_leads_anywhere_is_refused_in_one_line(tmp_path, content, why):
    path = tmp_path / "bad.hgviz"
    path.write_text(content)
    assert why in refused(path)


def test_a_file_that_is_too_large_or_no_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "MAX_BYTES", 1 << 20)
    large = tmp_path / "large.hgviz"
    large.write_bytes(b" " * ((1 << 20) + 1))
    assert "larger than 1 MB" in refused(large)
    pipe = tmp_path / "pipe.hgviz"
    os.mkfifo(pipe)
    assert "not a regular file" in refused(pipe)  # and nobody waits for a writer


def test_paths_move_with_the_folder_and_names_of_models_stay(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "work").mkdir(parents=True)
    (here / "models").mkdir()
    (here / "models" / "weights.h5").write_bytes(b"weights")
    document = Document(
        capture=str(here / "models" / "weights.h5"),
        model=str(resource("sample/hourglass")),
        comparison=SideB("model", path="bert-base-uncased"),
    )
    assert document.missing.keys() == {"comparison"}  # nothing of that name in the cache
    write_document(document, here / "work" / "one.hgviz")
    here.rename(there)
    moved = read_document(there / "work" / "one.hgviz")
    assert moved.capture == str(there / "models" / "weights.h5")
    assert (moved.model, moved.comparison) == (document.model, document.comparison)
    assert document.missing.keys() == {"comparison", "capture"}
    assert moved.with_paths({"comparison": ""}).comparison is None
