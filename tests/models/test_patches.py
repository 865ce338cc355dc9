"""Byte Latent Transformers give what the package transformers gives, and their bytes, patches and
bytes are levels."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.tokens import Layout
from hgviz.core import HeadId, HgvizError
from hgviz.figures.levels import stages_of
from hgviz.maps import DenseMap, LazyMap
from hgviz.models import open_model
from hgviz.models.attribution import AnswerLogit, score_gradients
from hgviz.models.layers import Tokens
from hgviz.models.patches import Patches, patch_lengths
from hgviz.models.run import Run
from hgviz.models.trials import HeadAblation
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models import patches as blt
from tests.models.patches import MODES, ids_of

LENGTHS = (1, 2, 3, 8, 33)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """mode -> (what makes the reference, folder), each written when it is first asked for."""

    @cache
    def find(mode, name="BltModel"):
        folder = tmp_path_factory.mktemp("blt") / "m"
        return lambda: blt.build(name, **MODES[mode]), blt.write(folder, name, **MODES[mode])

    return find


def captured(model, prompt, **more):
    return tasks.capture(model, prompt, **more)


# --- outputs and maps -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_outputs_and_maps_are_those_of_transformers(models, mode):
    theirs, folder = models(mode)
    ours, exact, single = open_model(folder, dtype="float64"), theirs(), theirs()
    for length in LENGTHS:
        ids = ids_of(length)
        made = captured(ours, ours.from_ids(ids))
        wanted = blt.answer(exact, ids[None])[0]
        assert np.abs(made.logits - wanted).max() < 1e-9
        assert np.abs(ours.run(ids).logits - wanted).max() < 1e-9
        sizes = [len(one) for one in made.spans]
        for layer, one, other in zip(
            made.spec.layers, made.maps, blt.maps(single, ids), strict=True
        ):
            rows, columns = sizes[layer.level], sizes[layer.key_level]
            assert one.shape == (4, rows, columns)
            found = np.stack([one.read(head) for head in layer.heads])
            assert scaled_error(found, other[:, :rows, :columns]) < 1e-5
            assert scaled_error(found.sum(2), 1) < 1e-5  # nothing is left out that it looks at


def test_only_layers_between_bytes_and_patches_keep_weights(models):
    theirs, folder = models("two parts", "BltForCausalLM")
    ours, ids = open_model(folder), ids_of(20)
    made = captured(ours, ours.from_ids(ids))
    assert scaled_error(made.logits, blt.answer(theirs(), ids[None])[0]) < 5e-5
    for layer, one in zip(made.spec.layers, made.maps, strict=True):
        assert isinstance(one, LazyMap if layer.role == "self" else DenseMap)


@pytest.mark.parametrize("mode", MODES)
def test_texts_side_by_side_are_read_as_each_alone(models, mode):
    theirs, folder = models(mode)
    ours, counts = open_model(folder, dtype="float64"), [17, 9, 1, 16]
    ids = np.stack([ids_of(17, seed) for seed in range(4)])
    keep = np.arange(17) < np.array(counts)[:, None]
    found = ours.run(ids, keep).logits
    for row, count in enumerate(counts):
        alone = ours.run(ids[row, :count]).logits
        assert np.abs(found[row, :count] - alone).max() < 1e-9
    if mode != "short patches":  # transformers reads the last byte of a text otherwise in a batch
        wanted = blt.answer(theirs(), ids, keep=keep)
        assert np.abs(found - wanted)[keep].max() < 1e-9


# --- where patches end ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_boundaries_that_are_given_are_lengths_of_patches_to_transformers(models, mode):
    theirs, folder = models(mode)
    ours, ids = open_model(folder, dtype="float64"), ids_of(20)
    closes = np.arange(20) % 4 == 0
    made, lengths = captured(ours, ours.from_ids(ids, boundaries=closes)), blt.lengths_of(closes)
    wanted = blt.answer(theirs(), ids[None], lengths[None])[0]
    assert np.abs(made.logits - wanted).max() < 1e-9
    assert np.abs(ours.run(ids, boundaries=closes).logits - wanted).max() < 1e-9
    assert made.spans[-1].tolist() == [[0, 1], [1, 5], [5, 9], [9, 13], [13, 17]]
    maps = blt.maps(theirs(), ids, lengths)[-len(made.maps) + (ours.config.patches.patcher or 0) :]
    for layer in made.spec.layers[len(made.maps) - len(maps) :]:
        one, other = made.maps[layer.index], maps[layer.index - len(made.maps)]
        found = np.stack([one.read(head) for head in layer.heads])
        assert scaled_error(found, other[:, : found.shape[1], : found.shape[2]]) < 1e-5


def test_its_own_boundaries_given_to_it_change_nothing(models):
    ours = open_model(models("two parts")[1])
    prompt = ours.from_ids(ids_of(33))
    told = ours.segmented(prompt)
    assert told.boundaries is not None and 3 < told.boundaries.sum() < 33
    one, other = captured(ours, prompt), captured(ours, told)
    assert np.array_equal(one.logits, other.logits)
    assert one.spans[-1][:, 1].tolist() == (np.flatnonzero(told.boundaries) + 1).tolist()
    assert [len(spans) for spans in one.spans] == [
        33,
        2 * told.boundaries.sum(),
        told.boundaries.sum(),
    ]


def test_the_first_byte_is_a_patch_whatever_is_given(models):
    ours = open_model(models("two parts")[1])
    ids = ids_of(9)
    few, given = np.zeros(9, bool), np.arange(9) == 0
    made = captured(ours, ours.from_ids(ids, boundaries=few))
    assert made.prompt.boundaries.tolist() == given.tolist()
    assert made.spans[-1].tolist() == [[0, 1]]
    assert np.array_equal(made.logits, ours.run(ids, boundaries=given).logits)


def test_lengths_of_texts_with_fewer_patches_end_behind_the_text():
    closes = torch.tensor([[1, 0, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 0, 1]], dtype=torch.bool)
    assert patch_lengths(closes).tolist() == [[1, 2, 3, 0], [1, 5, 0, 0], [1, 1, 3, 1]]


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


@pytest.mark.parametrize("mode", ["one part", "three parts"])
def test_every_byte_finds_the_patch_that_its_decoder_looks_at(models, mode):
    ours = open_model(models(mode)[1])
    made = captured(ours, ours.from_ids(ids_of(33)))
    parts = made.spec.levels[1].parts
    up = next(one.index for one in made.spec.layers if one.role == "up")
    weights = made.maps[up].read(0)
    for token in range(33):
        column = made.column(up, token)
        seen = np.flatnonzero(weights[token])
        assert seen.tolist() == list(range(column - parts + 1, column + 1))
    assert not made.null(1) and made.position(len(made.spans) - 1, 0) == 0


def test_no_byte_hears_of_a_later_one(models):
    ours, ids = open_model(models("two parts")[1], dtype="float64"), ids_of(33)
    whole = ours.run(ids).logits
    for stop in (1, 5, 12, 32):
        assert np.abs(ours.run(ids[:stop]).logits - whole[:stop]).max() < 1e-9


# --- heads and what is measured of them -----------------------------------------------------------


OFF = {HeadId(2, 0), HeadId(4, 1), HeadId(5, 3), HeadId(7, 2), HeadId(10, 1)}


def test_heads_that_are_off_are_zeros_before_their_product(models):
    ours, ids = open_model(models("two parts")[1], dtype="float64"), ids_of(33)
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


def test_heads_of_the_patcher_decide_where_patches_end(models):
    ours = open_model(models("two parts")[1])
    prompt, off = ours.from_ids(ids_of(33)), {HeadId(0, 0), HeadId(1, 2)}
    one, other = captured(ours, prompt), captured(ours, prompt, off=frozenset(off))
    assert one.spans[-1].tolist() != other.spans[-1].tolist()
    assert [layer.cuts for layer in one.spec.layers] == [True, True, *[False] * 9]
    closes = ours.segmented(prompt, off).boundaries
    assert np.array_equal(other.logits, ours.run(prompt.ids, off=off).logits)
    assert np.array_equal(other.logits, ours.run(prompt.ids, boundaries=closes, off=off).logits)


def test_variants_of_a_batch_are_those_of_each_text(models):
    ours = open_model(models("two parts", "BltForCausalLM")[1])
    ids = np.stack([ids_of(17, seed) for seed in range(2)])
    keep = np.arange(17) < np.array([17, 8])[:, None]
    variants = HeadAblation(ours.module)
    whole, _ = variants.baseline(Tokens(torch.from_numpy(ids), torch.from_numpy(keep)))
    for heads, logits in variants.ablate_each(whole):
        for head, one in zip(heads, logits.numpy(), strict=True):
            wanted = ours.run(ids, keep, off={head}).logits
            assert np.abs(one - wanted)[keep].max() < 1e-4, head


def test_slopes_of_what_cuts_a_text_are_zero(models):
    ours = open_model(models("two parts", "BltForCausalLM")[1])
    given = Tokens(torch.from_numpy(ids_of(17)[None]))
    slopes = HeadAblation(ours.module).gate_gradients(
        given, lambda logits: logits.square().mean((1, 2))
    )
    assert not slopes.gates[0, :8].any() and (slopes.tokens[0, 8:] > 0).all()


def test_slopes_of_weights_are_known_where_a_rule_says_the_mask(models):
    ours = open_model(models("two parts", "BltForCausalLM")[1])
    ids = ids_of(9)
    answer, off = AnswerLogit(3, 8), frozenset({HeadId(4, 0)})
    found = score_gradients(ours, ours.from_ids(ids), answer, off=off)
    assert found.head(HeadId(5, 0)).weights.shape[-2:] == found.shape(5)[1:]
    with pytest.raises(HgvizError, match="no slopes of head 4.0"):
        found.head(HeadId(4, 0))


def test_embeddings_that_are_given_stand_for_those_of_bytes(models):
    ours = open_model(models("two parts")[1])
    given = ours.tokens(ours.from_ids(ids_of(17)))
    whole = ours.module(given)
    embedded = ours.module.token_embedding(given.ids)
    assert torch.equal(ours.module(replace(given, embedded=embedded)), whole)
    other = ours.module(replace(given, embedded=2 * embedded), Run())
    assert (other - whole).abs().max() > 1e-3


# --- files ----------------------------------------------------------------------------------------


def test_a_file_holds_the_levels_and_what_cuts(models, tmp_path):
    ours = open_model(models("two parts")[1])
    prompt = ours.from_ids(ids_of(33))
    one = captured(ours, prompt)
    captured(ours, prompt, out=tmp_path / "c.h5")
    other = open_capture(tmp_path / "c.h5")
    assert other.spec == one.spec and other.spec.levels[1].parts == 2
    assert all(map(np.array_equal, other.spans, one.spans))
    for mine, theirs in zip(one.maps, other.maps, strict=True):
        assert scaled_error(mine.read(1), theirs.read(1)) < 1e-6


def test_of_a_patcher_without_layers_patches_are_its_own(tmp_path):
    changes = {"patcher_config": {**blt.PART, "vocab_size": 256, "num_hidden_layers": 0}}
    theirs = blt.build(**changes)
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    assert json.loads(file.read_text())["patcher_config"]["num_hidden_layers"] == 0
    ours, ids = open_model(tmp_path, dtype="float64"), ids_of(33)
    assert not any(one.cuts for one in ours.spec.layers)
    assert np.abs(ours.run(ids).logits - blt.answer(theirs, ids[None])[0]).max() < 1e-9
    assert 1 < ours.segmented(ours.from_ids(ids)).boundaries.sum() < 33


@pytest.mark.parametrize("given", [None, np.arange(12) % 5 == 0])
def test_a_text_goes_on_between_the_ends_that_the_model_finds(models, given):
    ours = open_model(models("two parts", "BltForCausalLM")[1], dtype="float64")
    prompt = ours.from_ids(ids_of(12), boundaries=given)
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


@pytest.mark.parametrize("mode", ["two parts", "all layers look down"])
def test_of_layers_that_change_an_answer_each_does(models, mode):
    ours = open_model(models(mode, "BltForCausalLM")[1])
    ids = torch.from_numpy(ids_of(33)[None])
    assert HeadAblation(ours.module).find_unused_layer(Tokens(ids)) is None
    whole, without = ours.run(ids[0]).logits, []
    for layer in ours.spec.layers:
        closes = ours.segmented(ours.from_ids(ids[0])).boundaries
        off = {HeadId(layer.index, head) for head in layer.heads}
        if np.array_equal(ours.run(ids[0], boundaries=closes, off=off).logits, whole):
            without.append(layer.name.removeprefix("model."))
    idle = ["local_encoder.cross_attn_layers.0"] * (mode == "all layers look down")
    patcher = [f"patcher.layers.{at}.self_attn" for at in range(2)]
    assert without == [*patcher, *idle]


# --- its levels, as figures and metrics read them -------------------------------------------------


def captured_ids(models, mode, length):
    model = open_model(models(mode)[1], dtype="float64")
    return captured(model, model.from_ids(ids_of(length)))


def test_the_stages_of_a_letter_are_bytes_patches_and_bytes(models):
    assert stages_of(captured_ids(models, "two parts", 12)) == [[2, 3], [5, 6], [8, 10]]
    found = stages_of(captured_ids(models, "all layers look down", 12))
    assert found[-2:] == [[6, 7], [9, 11]]


@pytest.mark.parametrize("mode", ["one part", "three parts"])
def test_a_layer_between_bytes_and_patches_sees_what_has_weight(models, mode):
    capture = captured_ids(models, mode, 33)
    for layer in capture.spec.layers:
        if layer.role not in ("down", "up"):
            continue
        one = capture.maps[layer.index]
        layout = Layout(capture, layer.index, {})
        block = layout.block(slice(0, one.shape[1]), slice(0, one.shape[2]))
        assert np.array_equal(block.seen, one.read(0) > 0)
        if layer.role == "down":
            ends = [np.flatnonzero(row) for row in block.seen]
            assert block.oldest_of_group().nonzero()[1].tolist() == [seen[0] for seen in ends]
            assert block.newest_of_group().nonzero()[1].tolist() == [seen[-1] for seen in ends]
