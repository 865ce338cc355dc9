"""Byte Latent Transformers give what the package transformers gives, and texts that models cut into
patches or segments."""

import json
from functools import cache

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model, prompts
from hgviz.models.generation import Writing, choose_token
from hgviz.models.patches import Patches
from hgviz.models.text import Bare
from hgviz.store import describe, open_capture
from hgviz.tasks import capture
from tests.closeness import scaled_error
from tests.models import zoo
from tests.models.building import write_checkpoint, write_transformer
from tests.models.zoo import MODES, bytes_of

LENGTHS = (1, 2, 3, 8, 33)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """mode -> (what makes the reference, folder), each written when it is first asked for."""

    @cache
    def find(mode, name="BltModel"):
        path = zoo.write_blt(tmp_path_factory.mktemp("blt") / "m", name, **MODES[mode])
        return lambda: zoo.build_blt(name, **MODES[mode]), path

    return find


# --- outputs and maps -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_outputs_and_maps_are_those_of_transformers(models, mode):
    theirs, folder = models(mode)
    ours, exact, single = open_model(folder, dtype="float64"), theirs(), theirs()
    for length in LENGTHS:
        ids = bytes_of(length)
        made = tasks.capture(ours, ours.from_ids(ids))
        wanted = zoo.run_blt(exact, ids[None])[0]
        assert np.abs(made.logits - wanted).max() < 1e-9
        sizes, maps = [len(one) for one in made.spans], zoo.maps_of_blt(single, ids)
        for layer, one, other in zip(made.spec.layers, made.maps, maps, strict=True):
            rows, columns = sizes[layer.level], sizes[layer.key_level]
            assert one.shape == (4, rows, columns)
            found = np.stack([one.read(head) for head in layer.heads])
            assert scaled_error(found, other[:, :rows, :columns]) < 1e-5
            assert scaled_error(found.sum(2), 1) < 1e-5  # nothing is left out that it looks at


@pytest.mark.parametrize("mode", ["two parts", "short patches", "no patcher"])
def test_texts_side_by_side_are_read_as_each_alone(models, mode):
    theirs, folder = models(mode)
    ours, counts = open_model(folder, dtype="float64"), [17, 9, 1, 16]
    ids = np.stack([bytes_of(17, seed) for seed in range(4)])
    keep = np.arange(17) < np.array(counts)[:, None]
    found = ours.run(ids, keep).logits
    for row, count in enumerate(counts):
        alone = ours.run(ids[row, :count]).logits
        assert np.abs(found[row, :count] - alone).max() < 1e-9
    if mode != "short patches":  # transformers reads the last byte of a text otherwise in a batch
        wanted = zoo.run_blt(theirs(), ids, keep=keep)
        assert np.abs(found - wanted)[keep].max() < 1e-9


@pytest.mark.parametrize("mode", ["three parts", "no patcher", "all layers look down"])
def test_boundaries_that_are_given_are_lengths_of_patches_to_transformers(models, mode):
    theirs, folder = models(mode)
    ours, ids = open_model(folder, dtype="float64"), bytes_of(20)
    closes = np.arange(20) % 4 == 0
    made = tasks.capture(ours, ours.from_ids(ids, boundaries=closes))
    lengths = zoo.lengths_of(closes)
    wanted = zoo.run_blt(theirs(), ids[None], lengths[None])[0]
    assert np.abs(made.logits - wanted).max() < 1e-9
    assert np.abs(ours.run(ids, boundaries=closes).logits - wanted).max() < 1e-9
    assert made.spans[-1].tolist() == [[0, 1], [1, 5], [5, 9], [9, 13], [13, 17]]
    skipped = ours.config.patches.patcher or 0
    maps = zoo.maps_of_blt(theirs(), ids, lengths)[skipped - len(made.maps) :]
    for layer in made.spec.layers[len(made.maps) - len(maps) :]:
        one, other = made.maps[layer.index], maps[layer.index - len(made.maps)]
        found = np.stack([one.read(head) for head in layer.heads])
        assert scaled_error(found, other[:, : found.shape[1], : found.shape[2]]) < 1e-5


def test_spans_and_places_of_all_layers_follow_from_the_configuration():
    one, two = Patches(1, 2, 1, 2, parts=1), Patches(None, 2, 1, 2, down=True, up=False, parts=2)
    assert [level.label for level in one.levels] == ["1:1", "segments"]
    assert [level.label for level in two.levels] == ["1:1", "parts", "segments"]
    own, down, up = ("self", 0, 0), ("down", 1, 0), ("up", 0, 1)
    assert one.places == [own, own, own, down, ("self", 1, 1), up, own, up, own]
    assert two.places == [own, down, own, down, ("self", 2, 2), up, own, own]
    closes = np.array([1, 0, 1, 0], bool)
    assert [spans.tolist() for spans in two.spans(4, closes)] == [
        [[0, 1], [1, 2], [2, 3], [3, 4]], [[0, 1], [0, 1], [1, 3], [1, 3]], [[0, 1], [1, 3]],
    ]  # fmt: skip
    assert one.spans(3, None)[1].tolist() == [[0, 1], [1, 2], [2, 3]]


# --- heads and what is measured of them -----------------------------------------------------------

OFF = {HeadId(2, 0), HeadId(4, 1), HeadId(5, 3), HeadId(7, 2), HeadId(10, 1)}


def test_heads_that_are_off_are_zeros_before_their_product(models):
    ours, ids = open_model(models("two parts")[1], dtype="float64"), bytes_of(33)
    closes = ours.segmented(ours.from_ids(ids)).boundaries
    found = ours.run(ids, off=OFF, boundaries=closes).logits
    hooks = []
    for layer, head in OFF:
        name = ours.config.output_modules[layer]

        def zero(module, given, head=head):
            given[0].unflatten(-1, (4, -1))[..., head, :] = 0

        hooks.append(ours.module.net.get_submodule(name).register_forward_pre_hook(zero))
    wanted = ours.run(ids, boundaries=closes).logits
    for one in hooks:
        one.remove()
    assert np.abs(found - wanted).max() < 1e-12
    assert np.abs(found - ours.run(ids).logits).max() > 1e-3


@pytest.mark.parametrize("given", [None, np.arange(12) % 5 == 0])
def test_a_text_goes_on_between_the_ends_that_the_model_finds(models, given):
    ours = open_model(models("two parts", "BltForCausalLM")[1], dtype="float64")
    prompt = ours.from_ids(bytes_of(12), boundaries=given)
    off = frozenset({HeadId(0, 1), HeadId(7, 0)})
    found = tasks.generate(ours, prompt, 9, off=off)
    ids = found.prompt.ids
    own = ours.segmented(ours.from_ids(ids), off).boundaries
    wanted = own if given is None else np.concatenate([given, own[12:]])
    assert found.spans[-1][:, 1].tolist() == (np.flatnonzero(wanted) + 1).tolist()
    for stop in range(12, 21):
        said = ours.run(ids[:stop], boundaries=wanted[:stop], off=off).logits[-1]
        assert said.argmax() == ids[stop]
    assert (found.prompt.boundaries is None) is (given is None)
    for layer, one in zip(found.spec.layers, found.maps, strict=True):
        assert one.shape[1:] == (len(found.spans[layer.level]), len(found.spans[layer.key_level]))


# --- segments of a text ---------------------------------------------------------------------------

TEXT = "two words, and more words: 강 흐르다 ends"
COUNT = len(TEXT.encode())
SEGMENTS = {"family": "dynamic", "vocab_size": 256, "n_layers": [2, 2, 1], "dtype": torch.float32}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("dynamic")
    return {
        kind: write_transformer(root / kind, boundaries=kind, shorten_factor=4, **SEGMENTS)
        for kind in ("learned", "fixed", "whitespace")
    }


@pytest.fixture(scope="module")
def dynamic(folders):
    return open_model(folders["learned"])


def ends(prompt):
    return np.flatnonzero(prompt.boundaries).tolist()


def test_boundaries_are_given_in_words_and_files(dynamic, folders, tmp_path):
    prompt = dynamic.tokenize(TEXT)
    assert ends(prompts.with_boundaries(dynamic, prompt, "fixed:7")) == [*range(0, COUNT, 7)]
    spaces = [at for at, one in enumerate(TEXT.encode()) if one == 32]
    assert ends(prompts.with_boundaries(dynamic, prompt, "whitespace")) == spaces
    assert ends(open_model(folders["whitespace"]).segmented(prompt)) == spaces
    (tmp_path / "a.json").write_text(json.dumps([1, 0] * (COUNT // 2) + [1] * (COUNT % 2)))
    (tmp_path / "a.txt").write_text("10" * (COUNT // 2) + "1\n" * (COUNT % 2))
    for name in ("a.json", "a.txt"):
        file = str(tmp_path / name)
        assert ends(prompts.with_boundaries(dynamic, prompt, file)) == [*range(0, COUNT, 2)]


FILES = [b"[1, 2]", b"[1", b"01x1", b"[]", b"", b"\xff\x00", b"[1e99]", b"{}"]
WORDS = {"fixed:0": "at least 1", "fixed": "there is no boundaries file", "fixed:": "at least 1",
         "words": "whitespace"}  # fmt: skip


def test_what_says_no_boundaries_is_one_error(dynamic, tmp_path):
    rows = [*WORDS.items(), *((str(tmp_path / f"{at}"), "boundaries") for at in range(len(FILES)))]
    for at, data in enumerate(FILES):
        (tmp_path / f"{at}").write_bytes(data)
    for how, words in rows:
        with pytest.raises(HgvizError, match=words):
            prompts.with_boundaries(dynamic, dynamic.tokenize(TEXT), how)
    with pytest.raises(HgvizError, match="need text"):
        prompts.with_boundaries(dynamic, Bare().decode(np.arange(3)), "whitespace")
    prompt = dynamic.tokenize(TEXT)
    for wrong in ([1, 0], np.full(COUNT, 2), np.ones((2, COUNT), int), np.ones(COUNT) / 2):
        with pytest.raises(HgvizError, match="boundaries"):
            dynamic.run(prompt.ids, boundaries=wrong)
    other = open_model(write_checkpoint(tmp_path / "a"))
    for run in (lambda: other.run([1, 2], boundaries=[0, 1]),
                lambda: other.cut(other.from_ids([1, 2]), [0, 1])):  # fmt: skip
        with pytest.raises(HgvizError, match="does not accept boundaries"):
            run()


def test_a_prompt_is_told_its_segments(dynamic):
    prompt = dynamic.tokenize(TEXT)
    found, spans = dynamic.segmented(prompt), dynamic.spans(prompt)
    assert prompt.boundaries is None and dynamic.segmented(found) is found
    assert found.boundaries.sum() == len(spans[1]) - 1 and spans[1][0].tolist() == [-1, -1]
    boundaries = np.isin(np.arange(COUNT), [3, 11]).astype(int)
    cut = dynamic.cut(prompt, boundaries)
    assert dynamic.spans(cut)[1].tolist() == [[-1, -1], [0, 4], [4, 12]]
    given = dynamic.run(prompt.ids, boundaries=boundaries).logits
    np.testing.assert_array_equal(dynamic.trace(cut), given)
    assert np.abs(given - dynamic.run(prompt.ids).logits).max() > 1e-6
    assert prompt.digest != cut.digest


def test_a_capture_keeps_where_segments_end_and_whether_that_was_given(dynamic, tmp_path):
    prompt = dynamic.tokenize(TEXT)
    own = capture(dynamic, prompt, tmp_path / "own.h5")
    count = 1 + dynamic.segmented(prompt).boundaries.sum()
    assert own.prompt.boundaries is None and len(own.spans[1]) == count
    assert own.maps[2].shape[1:] == (count, count)
    fixed = prompts.with_boundaries(dynamic, prompt, "fixed:5")
    given = capture(dynamic, fixed, tmp_path / "given.h5")
    assert given.spans[1][:4].tolist() == [[-1, -1], [0, 1], [1, 6], [6, 11]]
    again = open_capture(tmp_path / "given.h5")
    said = [describe(tmp_path / f"{name}.h5")["boundaries"] for name in ("own", "given")]
    assert said == ["found by the model", "given"]
    boundaries = again.prompt.boundaries
    np.testing.assert_array_equal(boundaries, np.arange(COUNT) % 5 == 0)
    logits = dynamic.run(prompt.ids, boundaries=boundaries).logits
    np.testing.assert_array_equal(again.logits, logits)
    assert again.prompt.digest == given.prompt.digest != own.prompt.digest
    for index, maps in enumerate(again.maps):
        assert maps.verify_max_abs < 1e-5
        np.testing.assert_array_equal(maps.read(1), given.maps[index].read(1))
        assert maps.factors.rule.relative.unit == -1
        assert again.query_spans(index).shape[0] == maps.shape[1]


def test_a_head_that_is_off_moves_the_boundaries_that_the_model_finds(dynamic):
    prompt = dynamic.tokenize(TEXT)
    off = frozenset({HeadId(0, 0), HeadId(0, 1), HeadId(1, 0), HeadId(1, 1)})
    other = capture(dynamic, prompt, off=off)
    np.testing.assert_array_equal(other.spans[1], dynamic.spans(dynamic.segmented(prompt, off))[1])
    assert other.maps[2].shape[1] == len(other.spans[1])
    given = dynamic.cut(prompt, dynamic.segmented(prompt).boundaries)
    same = capture(dynamic, given, off=off)
    np.testing.assert_array_equal(same.spans[1], dynamic.spans(prompt)[1])


@pytest.mark.parametrize("kind", ["learned", "fixed", "whitespace"])
def test_a_text_gone_on_with_gives_what_a_pass_over_all_of_it_gives(folders, kind):
    dynamic = open_model(folders[kind], dtype="float64")
    prompt = dynamic.tokenize("two words")
    writing, random = Writing(dynamic, prompt), np.random.default_rng(2)
    for step in range(20):
        writing.add(32 if step % 6 == 3 else choose_token(writing.logits, random, 1.5))
        whole = dynamic.run([*prompt.ids, *writing.added])
        np.testing.assert_allclose(writing.logits, whole.logits[-1], atol=1e-10)
