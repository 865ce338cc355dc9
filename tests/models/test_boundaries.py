"""Boundaries that are given, and texts that a model of segments goes on with."""

import json

import numpy as np
import pytest
import torch

from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model, prompts
from hgviz.models.generation import Writing, chosen
from hgviz.store import describe, open_capture
from hgviz.tasks import capture, generate
from tests.models.building import write_transformer

TEXT = "two words, and more words: 강 흐르다 ends"
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


def ends(model, how):
    return [
        *map(
            int,
            np.flatnonzero(prompts.with_boundaries(model, model.tokenize(TEXT), how).boundaries),
        )
    ]


def test_boundaries_are_given_in_words(model, folders, tmp_path):
    prompt, count = model.tokenize(TEXT), len(TEXT.encode())
    assert ends(model, "fixed:7") == [*range(0, count, 7)]
    spaces = [at for at, one in enumerate(TEXT.encode()) if one == 32]
    assert ends(model, "whitespace") == spaces
    by_model = open_model(folders["whitespace"]).segmented(prompt).boundaries
    assert np.flatnonzero(by_model).tolist() == spaces
    (tmp_path / "a.json").write_text(json.dumps([1, 0] * (count // 2) + [1] * (count % 2)))
    (tmp_path / "a.txt").write_text("10" * (count // 2) + "1\n" * (count % 2))
    evens = [*range(0, count, 2)]
    assert ends(model, str(tmp_path / "a.json")) == ends(model, str(tmp_path / "a.txt")) == evens


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("fixed:0", "at least 1"),
        ("fixed", "no file has that name"),
        ("fixed:", "at least 1"),
        ("words", "whitespace"),
    ],
)
def test_words_that_say_no_boundaries_are_one_error(model, how, said):
    with pytest.raises(HgvizError) as error:
        prompts.with_boundaries(model, model.tokenize(TEXT), how)
    assert said in " ".join((error.value.what, error.value.do))


@pytest.mark.parametrize(
    "data", [b"[1, 2]", b"[1", b"01x1", b"[]", b"", b"\xff\x00", b"[1e99]", b"{}"]
)
def test_files_that_hold_no_boundaries_are_one_error(model, data, tmp_path):
    (tmp_path / "b").write_bytes(data)
    with pytest.raises(HgvizError, match="boundaries"):
        prompts.with_boundaries(model, model.tokenize(TEXT), str(tmp_path / "b"))


def test_ids_without_a_text_have_no_white_space(model):
    from hgviz.models.text import Bare

    with pytest.raises(HgvizError, match="no text"):
        prompts.with_boundaries(model, Bare().decode(np.arange(3)), "whitespace")


# --- captures -------------------------------------------------------------------------------------


def test_a_capture_keeps_where_segments_end_and_whether_that_was_given(model, tmp_path):
    prompt = model.tokenize(TEXT)
    own = capture(model, prompt, tmp_path / "own.h5")
    found = model.segmented(prompt).boundaries
    assert own.prompt.boundaries is None and len(own.spans[1]) == 1 + found.sum()
    assert own.maps[2].shape[1:] == (1 + found.sum(),) * 2
    given = capture(model, prompts.with_boundaries(model, prompt, "fixed:5"), tmp_path / "given.h5")
    assert given.spans[1][:4].tolist() == [[-1, -1], [0, 1], [1, 6], [6, 11]]
    again = open_capture(tmp_path / "given.h5")
    said = [describe(tmp_path / f"{one}.h5")["boundaries"] for one in ("own", "given")]
    assert said == ["found by the model", "given"]
    np.testing.assert_array_equal(again.prompt.boundaries, np.arange(len(prompt)) % 5 == 0)
    np.testing.assert_array_equal(
        again.logits, model.run(prompt.ids, boundaries=again.prompt.boundaries).logits
    )
    assert again.prompt.digest == given.prompt.digest != own.prompt.digest
    for index, one in enumerate(again.maps):
        assert one.verify_max_abs < 1e-5
        np.testing.assert_array_equal(one.read(1), given.maps[index].read(1))
        assert (one.factors.rule.relative.unit, again.query_spans(index).shape[0]) == (
            -1,
            one.shape[1],
        )


def test_a_head_that_is_off_moves_the_boundaries_that_the_model_finds(model):
    prompt = model.tokenize(TEXT)
    off = frozenset({HeadId(0, 0), HeadId(0, 1), HeadId(1, 0), HeadId(1, 1)})
    other = capture(model, prompt, off=off)
    np.testing.assert_array_equal(other.spans[1], model.spans(model.segmented(prompt, off))[1])
    assert other.maps[2].shape[1] == len(other.spans[1])
    given = model.cut(prompt, model.segmented(prompt).boundaries)
    same = capture(model, given, off=off)
    np.testing.assert_array_equal(same.spans[1], model.spans(prompt)[1])


# --- going on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["learned", "fixed", "whitespace"])
def test_a_text_gone_on_with_gives_what_a_pass_over_all_of_it_gives(folders, kind):
    model = open_model(folders[kind], dtype="float64")
    prompt = model.tokenize("two words")
    writing, random = Writing(model, prompt), np.random.default_rng(2)
    for step in range(20):
        token = 32 if step % 6 == 3 else chosen(writing.logits, random, 1.5)
        writing.add(token)
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
