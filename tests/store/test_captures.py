"""Captures go into files and come back; interrupted and killed ones lose nothing that was done."""

import errno
import gzip
import os
import re
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.core import HeadId, HgvizError, Item
from hgviz.store import (
    Writer,
    captures,
    describe,
    hdf5,
    is_capture,
    open_capture,
    schema,
    write_capture,
    write_study,
)
from tests.making import byte_prompt
from tests.store import samples
from tests.store.samples import (
    SAMPLES,
    TEXTS,
    add_text,
    contents,
    make_corpus,
    same,
    start_corpus,
    write_corpus,
)
from tests.studying import make_study

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def small():
    return samples.small()


@pytest.fixture(scope="module")
def texts():
    return make_corpus()


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_capture_comes_back_as_it_was(tmp_path, name):
    capture = SAMPLES[name]()
    path = write_capture(tmp_path / "a.h5", capture)
    opened = open_capture(path)
    same(capture, opened)
    assert opened.complete and opened.path == str(path) and is_capture(path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]
    for layer in range(len(capture.maps)):
        assert opened.query_prompt(layer).pieces == capture.query_prompt(layer).pieces
        assert opened.key_prompt(layer).pieces == capture.key_prompt(layer).pieces
    assert contents(write_capture(tmp_path / "again.h5", opened)) == contents(path)


@settings(max_examples=15, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_text_comes_back(tmp_path_factory, text):
    capture = samples.small(text, heads=1)
    path = write_capture(tmp_path_factory.mktemp("text") / "a.h5", capture)
    same(capture, open_capture(path))


@pytest.mark.parametrize("sample", sorted((ROOT / "tests/store/versions").glob("*.gz")), ids=str)
def test_a_file_of_this_version_gives_the_weights_that_its_model_had(tmp_path, sample):
    """Row 5, column 2 of head 1 and the last row, column 0 of head 0, of every layer."""
    weights = [
        (0.4336826205253601, 0.018167810514569283), (0.08381013572216034, 0.04164285212755203),
        (0.249759703874588, 0.09112736582756042), (0.7046197056770325, 0.08497990667819977),
        (0.09175395220518112, 0.0767684355378151),
    ]  # fmt: skip
    path = tmp_path / sample.stem
    path.write_bytes(gzip.decompress(sample.read_bytes()))
    with h5py.File(path) as file:
        assert tuple(file.attrs["format_version"]) == schema.CAPTURE_VERSION
    opened = open_capture(path)
    assert opened.prompt.text == "Old files open." and opened.off == {HeadId(0, 1)}
    found = [(one.read(1)[5, 2], one.read(0)[-1, 0]) for one in opened.maps]
    np.testing.assert_allclose(found, weights, rtol=1e-5)
    np.testing.assert_allclose(opened.logits[3, :2], [0.04331774, 1.2583278], rtol=1e-6)
    for one in opened.maps:
        summary = one.summary(1)
        assert summary.peak == pytest.approx(one.read(1).max(), rel=1e-5)
        assert 0 < summary.quantile(0.5) <= summary.quantile(1.0)


def test_the_examples_of_the_document_read_the_same_map_and_scores(tmp_path, monkeypatch):
    capture = samples.small("An example. " * 9, heads=1)
    write_capture(tmp_path / "capture.h5", capture)
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path / "study.h5", make_study())
    document = (ROOT / "docs/reference/file-format.md").read_text("utf-8")
    without, through, scores = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    names = {}
    exec(without, names)
    np.testing.assert_allclose(names["weights"], capture.maps[0].read(0), atol=1e-5)
    exec(through, names)
    assert (names["weights"] == capture.maps[0].read(0, (0, 512), (0, 512), zoom=1)).all()
    exec(scores, names)
    assert [one["rank"] for one in names["scores"]] == list(range(1, 19))


def test_logits_of_many_tokens_stay_in_the_file(tmp_path, capture, monkeypatch):
    monkeypatch.setattr(schema, "LOGITS_IN_MEMORY", 1000)
    logits = np.random.default_rng(0).normal(size=(len(capture.prompt), 5000)).astype(np.float32)
    path = write_capture(tmp_path / "a.h5", replace(capture, logits=logits))
    found = open_capture(path).logits
    assert not isinstance(found, np.ndarray)
    assert (len(found), found.shape, found.nbytes) == (len(logits), logits.shape, logits.nbytes)
    assert (np.asarray(found) == logits).all()
    for at in (3, slice(2, 7), np.array([5, 1, 5]), (slice(None), 4)):
        assert (found[at] == logits[at]).all()
    again = open_capture(write_capture(tmp_path / "b.h5", open_capture(path)))
    assert (np.asarray(again.logits) == logits).all()


# --- many texts -----------------------------------------------------------------------------------


def test_every_text_of_a_corpus_comes_back_by_its_number(tmp_path, texts):
    path = write_corpus(tmp_path / "a.h5", [*texts, texts[0]])
    for number, text in enumerate((*texts, texts[0])):
        opened = open_capture(path, number)
        same(text, opened)
        assert opened.item == number and opened.complete
        assert [item.text for item in opened.items] == [*TEXTS, TEXTS[0]]
        assert opened.items[1] == Item(1, TEXTS[1], len(TEXTS[1]), "kind 1")
    found = describe(path)
    assert (found["items"], found["tokens_of_items"]) == (4, sum(map(len, (*TEXTS, TEXTS[0]))))
    assert found["complete"] and is_capture(path)
    with h5py.File(path) as file:  # terms that texts share are stored once
        terms = [file[f"items/{number:05}/layers/000/relative"].id for number in (0, 1, 3)]
        assert terms[0] == terms[2] != terms[1]


def test_a_text_that_is_not_there_is_one_clear_line(tmp_path, texts):
    path = write_corpus(tmp_path / "a.h5", texts)
    alone = write_capture(tmp_path / "one.h5", texts[0])
    rows = (
        (path, 3, "it holds 3 texts, numbered 0 to 2", "Choose one of them"),
        (path, -1, "it holds 3 texts, numbered 0 to 2", "Choose one of them"),
        (alone, 1, "it holds 1 text, numbered 0", "Choose text 0"),
    )
    for file, number, words, do in rows:
        with pytest.raises(HgvizError, match=f"there is no text {number} in ") as caught:
            open_capture(file, number)
        assert caught.value.what.endswith(words) and caught.value.do == do


@pytest.mark.parametrize("longest", [2048, 16], ids=["short", "long"])
def test_an_interrupted_corpus_opens_and_is_gone_on_with(tmp_path, texts, monkeypatch, longest):
    monkeypatch.setattr(captures, "LONG_TEXT", longest)
    out, part = tmp_path / "b.h5", tmp_path / "b.h5.part"
    with pytest.raises(KeyboardInterrupt), start_corpus(out, texts) as writer:
        add_text(writer, 0, texts[0])
        add_text(writer, 1, texts[1])
        add_text(writer, 2, texts[2], layers=2)
    same(texts[1], open_capture(part, 1))
    assert not describe(part)["complete"] and is_capture(part)
    if longest == 16:  # a long text is kept layer by layer
        opened = open_capture(part, 2)
        assert [one is not None for one in opened.maps][:3] == [True, True, False]
    with pytest.raises(HgvizError, match="there is no text 7"):
        open_capture(part, 7)
    damaged = part / "item-00001.h5"
    damaged.write_bytes(damaged.read_bytes()[:4000])
    with start_corpus(out, texts) as writer:
        assert writer.committed == {0}
        add_text(writer, 1, texts[1])
        add_text(writer, 2, texts[2])
        writer.finish()
    assert contents(out) == contents(write_corpus(tmp_path / "a.h5", texts)) and not part.exists()


# --- interrupted ----------------------------------------------------------------------------------


def interrupted(path, capture, layers=1):
    """What is left of a capture after so many layers."""
    with pytest.raises(KeyboardInterrupt), Writer(path, capture) as writer:
        for index in range(layers):
            writer.add(index, capture.maps[index].factors)
        raise KeyboardInterrupt
    return captures.part_of(path)


def test_an_interrupted_capture_opens_and_is_gone_on_with(tmp_path, small):
    path = tmp_path / "a.h5"
    part = interrupted(path, small, 3)
    layer = part / "layer-001.h5"
    layer.write_bytes(layer.read_bytes()[:3000])  # a damaged one is made again
    opened = open_capture(part)
    assert [one is not None for one in opened.maps][:4] == [True, False, True, False]
    assert not opened.complete and not describe(part)["complete"]
    assert describe(part)["layers"][1]["queries"] is None
    assert (opened.maps[2].read(1) == small.maps[2].read(1)).all()
    with pytest.raises(ValueError, match="were not added"), Writer(path, small) as writer:
        assert writer.committed == {0, 2}
        writer.finish()
    later = replace(small, made=replace(small.made, created="later"))
    with Writer(path, later) as writer:
        assert writer.capture.made.created == small.made.created
    same(small, open_capture(write_capture(path, later)), ("path", "made", "items", "item"))
    assert not part.exists()


def test_a_second_writer_of_one_file_is_refused(tmp_path, small):
    path = tmp_path / "a.h5"
    with Writer(path, small) as writer:
        writer.add(0, small.maps[0])
        with pytest.raises(HgvizError, match="a.h5.part is being written by another"):
            Writer(path, small, force=True)
        for index, one in enumerate(small.maps[1:], 1):
            writer.add(index, one)
        writer.finish()
    assert open_capture(path).complete


@pytest.mark.parametrize("start", [Writer, lambda path, one: start_corpus(path, [one])])
def test_what_failed_before_its_first_layer_leaves_nothing(tmp_path, small, start):
    start(tmp_path / "a.h5", small)  # and never ended: killed
    assert list((tmp_path / "a.h5.part").iterdir())
    other = replace(small, prompt=byte_prompt("Another text, captured. "))
    with pytest.raises(RuntimeError), start(tmp_path / "a.h5", other) as writer:
        assert writer.committed == set()
        raise RuntimeError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("named", "change"), {
    "text": lambda one: {"prompt": byte_prompt("Another text, captured. ")},
    "set of heads switched off": lambda one: {"off": frozenset([HeadId(0, 0)])},
    "masking": lambda one: {"made": replace(one.made, masking="compat")},
    "model": lambda one: {"spec": replace(one.spec, digest="1" * 64)},
}.items())  # fmt: skip
def test_what_is_left_of_another_capture_is_not_gone_on_with(tmp_path, small, change, named):
    path = tmp_path / "a.h5"
    part = interrupted(path, small)
    other = replace(small, **change(small))
    with pytest.raises(HgvizError, match=f"with another {named}: "):
        Writer(path, other)
    assert open_capture(part).maps[0] is not None
    with Writer(path, other, force=True) as writer:
        assert writer.committed == set()


def test_a_file_that_exists_is_replaced_only_by_force(tmp_path, texts):
    path = write_capture(tmp_path / "a.h5", texts[0])
    before = path.read_bytes()
    with pytest.raises(HgvizError, match="already exists"):
        write_corpus(path, texts)
    assert path.read_bytes() == before
    opened = open_capture(path)  # also by a change of itself
    write_capture(path, replace(opened, logits=None), force=True)
    assert open_capture(path).logits is None
    assert (opened.maps[1].read(1) == open_capture(path).maps[1].read(1)).all()
    with pytest.raises(HgvizError, match="is a folder"):
        write_capture(tmp_path, opened, force=True)
    with pytest.raises(HgvizError, match="not complete"):
        write_capture(tmp_path / "b.h5", replace(opened, maps=(None, *opened.maps[1:])))


@pytest.mark.parametrize("write", [lambda path, texts: write_capture(path, texts[0]), write_corpus])
def test_parts_that_stay_beside_a_finished_file_are_seen_to_be_done(
    tmp_path, texts, monkeypatch, write
):
    with monkeypatch.context() as patched:
        patched.setattr(captures, "remove_part", lambda part: None)
        path = write(tmp_path / "b.h5", texts)
    part = captures.part_of(path)
    for name in ("", "root.h5", next(iter(part.glob("*-000*.h5"))).name):
        (part / name).unlink() if name else None  # removal had begun
        opened = open_capture(part)  # what it was made into
        assert opened.complete and opened.path == str(path) and describe(part)["complete"]
    with pytest.raises(HgvizError, match="already exists"):
        write(path, texts)
    assert not part.exists() and open_capture(path).complete


def test_a_root_that_lies_is_not_believed_and_only_own_files_are_removed(tmp_path, small):
    part = tmp_path / "a.h5.part"
    for content in ("", "[", "[]", '{"format": "hgviz-capture"}', "[" * 100_000):
        part.mkdir(exist_ok=True)
        (part / "notes.txt").write_text("mine")
        with h5py.File(part / "root.h5", "w") as file:
            file["identity"] = np.frombuffer(content.encode(), "u1")
        if not content:
            (part / "root.h5").write_bytes(b"")
        assert open_capture(write_capture(tmp_path / "a.h5", small, force=True)).complete
        assert [one.name for one in part.iterdir()] == ["notes.txt"]


# --- disks ----------------------------------------------------------------------------------------


def test_a_full_disk_says_what_stays_and_loses_nothing(tmp_path, small, monkeypatch):
    size, write, lines = write_capture(tmp_path / "w.h5", small).stat().st_size, os.write, set()

    def fill(file, data):
        nonlocal room
        if (count := min(len(data), room)) == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        room -= count
        return write(file, data[:count])

    for limit in range(0, 3 * size, size // 5):
        room, target, part = limit, tmp_path / f"{limit}.h5", tmp_path / f"{limit}.h5.part"
        with monkeypatch.context() as patched:
            patched.setattr(hdf5.os, "write", fill)
            try:
                write_capture(target, small)
                continue
            except HgvizError as error:
                what, do = error.what, error.do
        lines.add(what)
        assert "the disk is full" in what and str(tmp_path) in do and not target.exists()
        kept = re.search(r"(\d+) of \d+ layers are saved", what)
        stay = 0 if kept is None else int(kept[1])
        assert part.exists() == (stay > 0)
        opened = open_capture(part) if part.exists() else replace(small, maps=())
        assert sum(one is not None for one in opened.maps) == stay
        same(small, open_capture(write_capture(target, small)))
    assert any("nothing was saved" in words for words in lines) and len(lines) > 3


# --- captures that any program makes from arrays --------------------------------------------------


RANDOM = np.random.default_rng(0)
TOKENS = ["The", " cat", " sat", " on", " it"]
Q, K = RANDOM.normal(size=(2, 2, 5, 8)).astype(np.float32)
KEEP = np.array([False, True, True, True, False])


def softmax(q, k, scale=8**-0.5, seen=True):
    scores = np.where(seen, scale * q @ k.T, -np.inf)
    powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)


def write(path, layer, tokens=TOKENS, **options):
    return write_capture(path / "one.h5", tokens=tokens, layers=[layer], **options)


@pytest.mark.parametrize(("layer", "expected"), [
    ({"q": Q, "k": K}, softmax(Q[1], K[1])), ({"q": Q.tolist(), "k": K[:1]}, softmax(Q[1], K[0])),
    ({"q": Q, "k": K, "causal": True, "keep": KEEP, "scale": 0.7},
     softmax(Q[1], K[1], 0.7, np.tri(5, dtype=bool) & KEEP)),
    ({"weights": Q[:, :, :5]}, Q[1, :, :5]),
])  # fmt: skip
def test_a_map_is_what_the_formula_says(tmp_path, layer, expected):
    capture = open_capture(write(tmp_path, layer))
    np.testing.assert_allclose(capture.maps[0].read(1), expected, atol=1e-6)
    assert capture.maps[0].signed is bool((expected < 0).any())
    assert capture.prompt.text == "The cat sat on it" and capture.prompt.label(1) == " cat"


@pytest.mark.parametrize("activation", ["softmax", "linear", "ymish", "sigmoid"])
@pytest.mark.parametrize("norm", [None, "l2", "l2-literal"])
def test_scores_of_any_activation_may_be_normalised(tmp_path, activation, norm):
    layer = {"q": Q, "k": K, "activation": activation, "norm": norm, "causal": True}
    assert open_capture(write(tmp_path, layer)).maps[0].verify_max_abs < 1e-6


@pytest.mark.parametrize(("layer", "words"), [
    ({}, "it has no 'q'"), ({"q": Q}, "it has no 'k'"), (None, "it is a NoneType"),
    ({"q": Q, "k": K[:, :4]}, "q is (2, 5, 8) and k (2, 4, 8)"),
    ({"q": Q[:, :4], "k": K[:, :4]}, "for 5 tokens"),
    ({"q": Q * np.nan, "k": K}, "not finite"),
    ({"q": Q, "k": K, "activation": "topk"}, "cannot be computed from q and k"),
    ({"q": Q, "k": K, "norm": "l3"}, "unknown norm 'l3'"),
    ({"q": Q, "k": K, "keep": [True]}, "keep is (1,)"), ({"q": Q, "k": K, "mask": None}, "'mask'"),
    ({"weights": np.ones((1, 4, 5))}, "weights are (1, 4, 5)"),
    ({"q": [[1.0], [2.0, 3.0]], "k": K}, "q is a list that numpy cannot read"),
    ({"q": Q, "k": K, "scale": np.nan}, "its scale is not a finite number"),
    ({"q": Q, "k": K, "causal": np.ones(5)}, "causal is neither True nor False"),
    ({"q": 1e30 * Q, "k": 1e30 * K}, "too large for float32"),
    ({"weights": np.full((1, 5, 5), 1e300)}, "not finite in float32"),
])  # fmt: skip
def test_a_layer_that_does_not_fit_is_named(tmp_path, layer, words):
    with pytest.raises(HgvizError) as caught:
        write(tmp_path, layer)
    assert caught.value.what.startswith("layer 0 cannot be saved") and words in str(caught.value)
    assert not list(tmp_path.iterdir())
