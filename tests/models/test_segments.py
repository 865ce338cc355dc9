"""Segments of a text: boundaries that are given, captures of them, and texts that go on."""

import json

import numpy as np
import pytest
import torch

from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model, prompts
from hgviz.models.generation import Writing, choose_token
from hgviz.models.text import Bare
from hgviz.store import describe, open_capture
from hgviz.tasks import capture, generate
from tests.models.building import write_checkpoint, write_transformer

TEXT = "two words, and more words: 강 흐르다 ends"
COUNT = len(TEXT.encode())
KEYS = {"family": "dynamic", "vocab_size": 256, "n_layers": [2, 2, 1], "dtype": torch.float32}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("dynamic")
    return {
        kind: write_transformer(root / kind, boundaries=kind, shorten_factor=4, **KEYS)
        for kind in ("learned", "fixed", "whitespace")
    }


@pytest.fixture(scope="module")
def model(folders):
    return open_model(folders["learned"])


def ends(prompt):
    return np.flatnonzero(prompt.boundaries).tolist()


def test_boundaries_are_given_in_words_and_files(model, folders, tmp_path):
    prompt = model.tokenize(TEXT)
    assert ends(prompts.with_boundaries(model, prompt, "fixed:7")) == [*range(0, COUNT, 7)]
    spaces = [at for at, one in enumerate(TEXT.encode()) if one == 32]
    assert ends(prompts.with_boundaries(model, prompt, "whitespace")) == spaces
    assert ends(open_model(folders["whitespace"]).segmented(prompt)) == spaces
    (tmp_path / "a.json").write_text(json.dumps([1, 0] * (COUNT // 2) + [1] * (COUNT % 2)))
    (tmp_path / "a.txt").write_text("10" * (COUNT // 2) + "1\n" * (COUNT % 2))
    for name in ("a.json", "a.txt"):
        file = str(tmp_path / name)
        assert ends(prompts.with_boundaries(model, prompt, file)) == [*range(0, COUNT, 2)]


FILES = [b"[1, 2]", b"[1", b"01x1", b"[]", b"", b"\xff\x00", b"[1e99]", b"{}"]
WORDS = {"fixed:0": "at least 1", "fixed": "no file has that name", "fixed:": "at least 1",
         "words": "whitespace"}  # fmt: skip


def test_what_says_no_boundaries_is_one_error(model, tmp_path):
    rows = [*WORDS.items(), *((str(tmp_path / f"{at}"), "boundaries") for at in range(len(FILES)))]
    for at, data in enumerate(FILES):
        (tmp_path / f"{at}").write_bytes(data)
    for how, words in rows:
        with pytest.raises(HgvizError, match=words):
            prompts.with_boundaries(model, model.tokenize(TEXT), how)
    with pytest.raises(HgvizError, match="no text"):
        prompts.with_boundaries(model, Bare().decode(np.arange(3)), "whitespace")
    prompt = model.tokenize(TEXT)
    for wrong in ([1, 0], np.full(COUNT, 2), np.ones((2, COUNT), int), np.ones(COUNT) / 2):
        with pytest.raises(HgvizError, match="boundaries"):
            model.run(prompt.ids, boundaries=wrong)
    for folder in (
        write_checkpoint(tmp_path / "a"),
        write_transformer(tmp_path / "b", form="encoder", goal="states"),
    ):
        other = open_model(folder)
        with pytest.raises(HgvizError, match="does not take boundaries"):
            other.run([1, 2], boundaries=[0, 1])
        with pytest.raises(HgvizError, match="does not take boundaries"):
            other.cut(other.from_ids([1, 2]), [0, 1])


def test_a_prompt_is_told_its_segments(model):
    prompt = model.tokenize(TEXT)
    found, spans = model.segmented(prompt), model.spans(prompt)
    assert prompt.boundaries is None and model.segmented(found) is found
    assert found.boundaries.sum() == len(spans[1]) - 1 and spans[1][0].tolist() == [-1, -1]
    boundaries = np.isin(np.arange(COUNT), [3, 11]).astype(int)
    cut = model.cut(prompt, boundaries)
    assert model.spans(cut)[1].tolist() == [[-1, -1], [0, 4], [4, 12]]
    given = model.run(prompt.ids, boundaries=boundaries).logits
    np.testing.assert_array_equal(model.trace(cut), given)
    assert np.abs(given - model.run(prompt.ids).logits).max() > 1e-6
    assert prompt.digest != cut.digest


def test_a_capture_keeps_where_segments_end_and_whether_that_was_given(model, tmp_path):
    prompt = model.tokenize(TEXT)
    own = capture(model, prompt, tmp_path / "own.h5")
    count = 1 + model.segmented(prompt).boundaries.sum()
    assert own.prompt.boundaries is None and len(own.spans[1]) == count
    assert own.maps[2].shape[1:] == (count, count)
    given = capture(model, prompts.with_boundaries(model, prompt, "fixed:5"), tmp_path / "given.h5")
    assert given.spans[1][:4].tolist() == [[-1, -1], [0, 1], [1, 6], [6, 11]]
    again = open_capture(tmp_path / "given.h5")
    said = [describe(tmp_path / f"{name}.h5")["boundaries"] for name in ("own", "given")]
    assert said == ["found by the model", "given"]
    boundaries = again.prompt.boundaries
    np.testing.assert_array_equal(boundaries, np.arange(COUNT) % 5 == 0)
    np.testing.assert_array_equal(again.logits, model.run(prompt.ids, boundaries=boundaries).logits)
    assert again.prompt.digest == given.prompt.digest != own.prompt.digest
    for index, maps in enumerate(again.maps):
        assert maps.verify_max_abs < 1e-5
        np.testing.assert_array_equal(maps.read(1), given.maps[index].read(1))
        assert maps.factors.rule.relative.unit == -1
        assert again.query_spans(index).shape[0] == maps.shape[1]


def test_a_head_that_is_off_moves_the_boundaries_that_the_model_finds(model):
    prompt = model.tokenize(TEXT)
    off = frozenset({HeadId(0, 0), HeadId(0, 1), HeadId(1, 0), HeadId(1, 1)})
    other = capture(model, prompt, off=off)
    np.testing.assert_array_equal(other.spans[1], model.spans(model.segmented(prompt, off))[1])
    assert other.maps[2].shape[1] == len(other.spans[1])
    given = model.cut(prompt, model.segmented(prompt).boundaries)
    same = capture(model, given, off=off)
    np.testing.assert_array_equal(same.spans[1], model.spans(prompt)[1])


@pytest.mark.parametrize("kind", ["learned", "fixed", "whitespace"])
def test_a_text_gone_on_with_gives_what_a_pass_over_all_of_it_gives(folders, kind):
    model = open_model(folders[kind], dtype="float64")
    prompt = model.tokenize("two words")
    writing, random = Writing(model, prompt), np.random.default_rng(2)
    for step in range(20):
        writing.add(32 if step % 6 == 3 else choose_token(writing.logits, random, 1.5))
        whole = model.run([*prompt.ids, *writing.added])
        np.testing.assert_allclose(writing.logits, whole.logits[-1], atol=1e-10)


def test_what_was_given_stays_given_when_a_text_goes_on(model):
    prompt = prompts.with_boundaries(model, model.tokenize("two words"), "fixed:4")
    made = generate(model, prompt, 8)
    assert made.prompt.boundaries[:9].tolist() == [True, False, False, False] * 2 + [True]
    own = model.segmented(model.from_ids(made.prompt.ids)).boundaries
    assert len(made.prompt) == 17 and made.spans[1].shape[0] == 1 + made.prompt.boundaries.sum()
    assert own.shape == made.prompt.boundaries.shape
    plain = generate(model, model.tokenize("two words"), 8)
    assert plain.prompt.boundaries is None and len(plain.spans[0]) == 17
