"""Many texts go into one file and come back by their numbers; interrupted ones lose nothing."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest

from hgviz.core import HgvizError, Item
from hgviz.store import (
    CorpusWriter,
    Writer,
    captures,
    describe,
    is_capture,
    open_capture,
    schema,
    write_capture,
)
from tests.making import make_capture
from tests.store.test_file import same

TEXTS = ("A first text. ", "Another one. ", "The third, which is longer than others. ")


@pytest.fixture(scope="module")
def texts():
    return [make_capture(text, strides=(1, 2), heads=2, relative=True) for text in TEXTS]


def start(path, texts, force=False, digest="a"):
    """A writer for some captures of one model."""
    one = texts[0]
    items = tuple(
        Item(number, text.prompt.text, len(text.prompt), f"kind {number % 2}")
        for number, text in enumerate(texts)
    )
    return CorpusWriter(path, replace(one, items=items), digest, force)


def add(writer, number, text, layers=None):
    """Write one text, or some of its layers."""
    with writer.item(number, text) as one:
        for index, maps in enumerate(text.maps[:layers]):
            if index not in one.committed:
                one.add(index, maps.factors)
        if layers is not None:
            raise KeyboardInterrupt
        one.finish(text.logits)


def write(path, texts, **options):
    """A file of them all."""
    with start(path, texts, **options) as writer:
        for number, text in enumerate(texts):
            if number not in writer.committed:
                add(writer, number, text)
        return writer.finish()


def contents(path):
    """Everything in a file, by name."""
    found = {}
    with h5py.File(path) as file:

        def keep(name, one):
            found[name] = one[...].tobytes() if isinstance(one, h5py.Dataset) else None
            found.update({f"{name}@{key}": str(value) for key, value in one.attrs.items()})

        file.visititems(keep)
    return found


@pytest.fixture
def path(tmp_path, texts):
    return write(tmp_path / "a.h5", texts)


def test_every_text_comes_back_by_its_number(path, texts):
    for number, text in enumerate(texts):
        opened = open_capture(path, number)
        same(text, opened)
        assert opened.item == number and opened.complete
        assert [one.text for one in opened.items] == [one.prompt.text for one in texts]
        assert opened.items[1] == Item(1, TEXTS[1], len(TEXTS[1]), "kind 1")
    assert [one.name for one in path.parent.iterdir()] == ["a.h5"]


def test_it_says_how_many_texts_it_holds(path):
    found = describe(path)
    assert (found["items"], found["tokens_of_items"]) == (3, sum(map(len, TEXTS)))
    assert found["complete"] and is_capture(path)


def test_a_text_that_is_not_there_is_one_clear_line(path, tmp_path, texts):
    with pytest.raises(HgvizError, match="there is no text 3 in .*a.h5") as error:
        open_capture(path, 3)
    assert error.value.what.endswith("it holds 3 texts, numbered 0 to 2")
    alone = write_capture(tmp_path / "one.h5", texts[0])
    with pytest.raises(HgvizError, match="there is no text 1") as error:
        open_capture(alone, 1)
    assert error.value.what.endswith("it holds 1 text, numbered 0")
    assert error.value.do == "Choose text 0"
    with pytest.raises(HgvizError, match="there is no text -1"):
        open_capture(path, -1)


def test_terms_that_all_texts_share_are_stored_once(tmp_path, texts):
    path = write(tmp_path / "b.h5", [texts[0], texts[1], texts[0]])
    with h5py.File(path) as file:
        terms = [file[f"items/{number:05}/layers/000/relative"].id for number in range(3)]
        assert terms[0] == terms[2] != terms[1]
    same(texts[0], open_capture(path, 2))


@pytest.mark.parametrize("longest", [2048, 16], ids=["short", "long"])
def test_an_interrupted_corpus_opens_and_is_gone_on_with(
    tmp_path, texts, path, monkeypatch, longest
):
    monkeypatch.setattr(captures, "LONG_TEXT", longest)
    out, part = tmp_path / "b.h5", tmp_path / "b.h5.part"
    with pytest.raises(KeyboardInterrupt), start(out, texts) as writer:
        add(writer, 0, texts[0])
        add(writer, 1, texts[1])
        add(writer, 2, texts[2], layers=2)
    opened = open_capture(part, 1)
    same(texts[1], opened)
    assert not describe(part)["complete"] and is_capture(part)
    if longest == 16:  # a long text is kept layer by layer
        opened = open_capture(part, 2)
        assert [one is not None for one in opened.maps][:3] == [True, True, False]
    with pytest.raises(HgvizError, match="there is no text 7"):
        open_capture(part, 7)
    with start(out, texts) as writer:
        assert writer.committed == {0, 1}
        add(writer, 2, texts[2])
        writer.finish()
    assert contents(out) == contents(path) and not part.exists()


def test_a_damaged_text_of_an_interrupted_corpus_is_made_again(tmp_path, texts):
    out = tmp_path / "b.h5"
    with pytest.raises(KeyboardInterrupt), start(out, texts) as writer:
        add(writer, 0, texts[0])
        add(writer, 1, texts[1])
        raise KeyboardInterrupt
    one = tmp_path / "b.h5.part" / "item-00001.h5"
    one.write_bytes(one.read_bytes()[:4000])
    with start(out, texts) as writer:
        assert writer.committed == {0}


def test_what_is_left_of_another_corpus_is_not_gone_on_with(tmp_path, texts):
    out = tmp_path / "b.h5"
    with pytest.raises(KeyboardInterrupt), start(out, texts) as writer:
        add(writer, 0, texts[0])
        raise KeyboardInterrupt
    with pytest.raises(HgvizError, match="with another corpus"):
        start(out, texts, digest="b")
    with pytest.raises(HgvizError, match="with another text"):
        write_capture(out, texts[0])
    with start(out, texts, digest="b", force=True) as writer:
        assert writer.committed == set()


def test_a_corpus_that_failed_before_its_first_text_leaves_nothing(tmp_path, texts):
    with pytest.raises(RuntimeError), start(tmp_path / "b.h5", texts):
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_replaced_only_by_force(path, texts):
    with pytest.raises(HgvizError, match="exists already"):
        start(path, texts)
    write(path, texts[:2], force=True)
    assert len(open_capture(path).items) == 2


def test_no_texts_and_too_many_are_refused(tmp_path, texts):
    with pytest.raises(HgvizError, match="0 texts are not captured in one file"):
        CorpusWriter(tmp_path / "b.h5", texts[0], "a")


@pytest.mark.parametrize(
    "index",
    [
        {}, "x", [1], [[0, "a", 1]], [[1, "a", 1, ""]], [[0, "a", -1, ""]], [[0, "a", True, ""]],
        [[0, None, 1, ""]], [[0, "a", 1, ""]] * 2, [[0, "a", 1, ""]] * 100_001,
    ],
)  # fmt: skip
def test_an_index_that_lies_is_refused(path, index):
    with h5py.File(path, "r+") as file:
        del file["index"]
        file["index"] = np.frombuffer(json.dumps(index).encode(), "u1")
    with pytest.raises(HgvizError, match="index|no list"):
        open_capture(path)


def test_texts_that_the_index_promises_must_be_there(path):
    with h5py.File(path, "r+") as file:
        del file["items/00001"]
    open_capture(path, 0)
    with pytest.raises(HgvizError, match="items/00001 is missing"):
        open_capture(path, 1)


def test_long_texts_are_cut_in_the_index(texts):
    item = Item(0, "x" * 10_000, 10_000, "y" * 1000)
    with h5py.File("cut", "w", driver="core", backing_store=False) as file:
        schema.write_root(file, replace(texts[0], items=(item,)))
        (read,) = schema.read_root(file)["items"]
    assert (len(read.text), len(read.label)) == (2000, 200)


# --- what a kill leaves behind --------------------------------------------------------------------


def left(path, capture, write_, monkeypatch):
    """A finished file whose parts were not removed."""
    with monkeypatch.context() as patched:
        patched.setattr(captures, "remove_part", lambda part: None)
        write_(path, capture)
    part = captures.part_of(path)
    assert path.exists() and part.exists()
    return part


@pytest.mark.parametrize("many", [False, True])
def test_parts_that_stay_beside_a_finished_file_are_seen_to_be_done(
    tmp_path, texts, monkeypatch, many
):
    given, write_ = (texts, write) if many else (texts[0], write_capture)
    part = left(tmp_path / "b.h5", given, write_, monkeypatch)
    opened = open_capture(part)  # what it was made into
    assert opened.complete and opened.path == str(tmp_path / "b.h5")
    assert describe(part)["complete"]
    (part / "manifest.json").unlink()  # removal had begun
    next(iter(part.glob("*-000*.h5"))).unlink()
    assert open_capture(part).complete
    with pytest.raises(HgvizError, match="exists already"):
        write_(tmp_path / "b.h5", given)
    assert not part.exists()


def test_parts_of_a_new_capture_beside_an_old_file_are_not_taken_for_done(tmp_path, texts):
    path, text = tmp_path / "b.h5", texts[0]
    write_capture(path, text)
    made = replace(text.made, created="later")
    with (
        pytest.raises(KeyboardInterrupt),
        Writer(path, replace(text, made=made), force=True) as writer,
    ):
        writer.add(0, text.maps[0].factors)
        raise KeyboardInterrupt
    assert not open_capture(tmp_path / "b.h5.part").complete
    with Writer(path, text, force=True) as writer:
        assert writer.committed == {0} and writer.capture.made.created == "later"


def test_parts_of_another_version_of_the_format_are_refused(tmp_path, texts):
    with pytest.raises(KeyboardInterrupt), Writer(tmp_path / "b.h5", texts[0]) as writer:
        writer.add(0, texts[0].maps[0].factors)
        raise KeyboardInterrupt
    manifest = tmp_path / "b.h5.part" / "manifest.json"
    said = json.loads(manifest.read_text())
    for version in ([1, 2], 7):
        manifest.write_text(json.dumps(said | {"format version": version}))
        with pytest.raises(HgvizError, match="another format version"):
            Writer(tmp_path / "b.h5", texts[0])
