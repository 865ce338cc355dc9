"""Funnel-Transformers give what the package transformers gives, and show how they got there."""

from functools import cache

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model, pruning
from hgviz.models.attribution import measure_reach
from hgviz.models.checkpoints import read
from hgviz.models.layers import Tokens
from hgviz.models.model import module_of
from hgviz.models.pruning import zero_heads
from tests.models import reference
from tests.models.folders import wordpiece

SIZES = {
    "vocab_size": 43, "block_sizes": [2, 1, 2], "num_decoder_layers": 2, "d_model": 16,
    "n_head": 3, "d_head": 6, "d_inner": 20, "attention_type": "factorized",
}  # fmt: skip
CLASSES = {"id2label": {0: "a", 1: "b", 2: "c"}}
# name: (class, configuration); the other form of attention has no texts of four tokens there
CASES = {
    "full": ("FunnelModel", {}),
    "base": ("FunnelBaseModel", {}),
    "masked": ("FunnelForMaskedLM", {}),
    "classes": ("FunnelForSequenceClassification", CLASSES),
    "largest": ("FunnelModel", {"pooling_type": "max"}),
    "keys pooled": ("FunnelModel", {"pool_q_only": False}),
    "all alike": ("FunnelModel", {"separate_cls": False}),
    "not truncated": ("FunnelBaseModel", {"truncate_seq": False}),
    "none of it": ("FunnelForMaskedLM", {
        "pool_q_only": False, "separate_cls": False, "truncate_seq": False,
        "tie_word_embeddings": False, "hidden_act": "relu",
    }),
    "one block": ("FunnelModel", {"block_sizes": [2], "num_decoder_layers": 0}),
    "four blocks": ("FunnelModel", {"block_sizes": [1, 1, 1, 1], "num_decoder_layers": 1}),
    "repeated": ("FunnelModel", {"block_repeats": [1, 2, 1]}),
    "shifted": ("FunnelModel", {"attention_type": "relative_shift"}),
}  # fmt: skip
LENGTHS = (1, 2, 3, 4, 5, 8, 17)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """name -> (reference, folder), each built when it is first asked for."""

    @cache
    def find(name):
        found = reference.library()
        kind, options = CASES[name]
        torch.manual_seed(0)
        theirs = getattr(found, kind)(found.FunnelConfig(**{**SIZES, **options})).double().eval()
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter += 0.15 * torch.randn_like(parameter)
        folder = tmp_path_factory.mktemp("funnel") / name.replace(" ", "-")
        theirs.save_pretrained(folder)
        wordpiece().save(str(folder / "tokenizer.json"))
        return theirs, folder

    return find


def asked(length, seed=0):
    """A batch with less and less that counts, of three token types."""
    random = np.random.default_rng(seed)
    ids, types = random.integers(0, 43, (3, length)), random.integers(0, 3, (3, length))
    counts = np.array([length, max(1, length - 2), max(1, length // 2)])
    return ids, np.arange(length) < counts[:, None], types


# --- logits and maps ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_maps_are_those_of_transformers(models, name):
    theirs, folder = models(name)
    ours = open_model(folder, dtype="float64")
    for length in LENGTHS if name != "shifted" else LENGTHS[4:]:
        ids, mask, types = asked(length)
        wanted, maps = reference.answer(theirs, ids, mask, types, maps=True)
        found = ours.run(ids, mask, types).logits
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 1e-9
        made = tasks.capture(ours, ours.from_ids(ids[1], mask[1], types[1]))
        assert len(made.maps) == len(maps) == len(made.spec.layers)
        sizes = [len(one) for one in made.spans]
        for layer, one, other in zip(made.spec.layers, made.maps, maps, strict=True):
            assert one.shape[1:] == (sizes[layer.level], sizes[layer.key_level])
            for head in layer.heads:
                np.testing.assert_allclose(one.read(head), other[1, head], atol=1e-5)


@pytest.mark.parametrize("name", ["full", "all alike"])
def test_spans_are_the_tokens_that_a_position_is_pooled_of(models, name):
    """By what the pooling of transformers itself lets through of each token."""
    theirs, folder = models(name)
    config, structure = open_model(folder).config, theirs.encoder.attention_structure
    for length in range(1, 19):
        reach = torch.eye(length)[None]
        for level, spans in enumerate(config.spans(length)):
            if level and reach.shape[1] > 1 + config.pooling.separate_cls:
                reach = structure.pool_tensor(reach)
            behind = [(row > 0).nonzero().flatten() for row in reach[0]]
            assert [[int(one[0]), int(one[-1]) + 1] for one in behind] == spans.tolist()
            assert len(spans) == reach.shape[1], level


# --- what a capture says --------------------------------------------------------------------------


def test_the_levels_keep_cls_apart_and_tokens_find_their_positions(models, tmp_path):
    ours = open_model(models("full")[1])
    made = tasks.capture(ours, ours.from_ids(np.arange(12)), out=tmp_path / "c.h5")
    assert [one.label for one in made.spec.levels] == ["1:1", "1:2", "1:4"]
    assert [one.role for one in made.spec.layers] == [
        "self", "self", "down", "down", "self", "self", "self",
    ]  # fmt: skip
    assert made.spans[1].tolist() == [[0, 1], [1, 3], [3, 5], [5, 7], [7, 9], [9, 11]]
    assert made.spans[2].tolist() == [[0, 1], [1, 5], [5, 9]]
    assert [made.position(1, token) for token in range(12)] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]
    assert [made.position(2, token) for token in range(12)] == [0, *[1] * 4, *[2] * 7]
    for layer in range(len(made.maps)):
        for row in range(made.maps[layer].shape[1]):
            assert made.row(layer, made.row_token(layer, row)) == row


def test_heads_that_are_off_give_nothing(models):
    ours = open_model(models("full")[1], dtype="float64")
    ids, off = asked(9)[0], {HeadId(0, 1), HeadId(2, 0), HeadId(6, 2)}
    whole, said = read(models("full")[1]), ours.run(ids, off=off).logits
    pruned = zero_heads(whole, frozenset(off))
    module = module_of(pruned.config, pruned.tensors, "cpu", torch.float64)
    found = module(Tokens(torch.from_numpy(ids))).detach().numpy()
    np.testing.assert_allclose(found, said, atol=1e-12)
    assert np.abs(said - ours.run(ids).logits).max() > 1e-3


def test_the_proof_counts_every_position_where_tokens_are_pooled(models):
    whole, off = read(models("base")[1]), frozenset({HeadId(0, 1), HeadId(2, 0)})
    few = zero_heads(whole, off)
    one, other = (
        module_of(each.config, each.tensors, "cpu", torch.float64) for each in (whole, few)
    )
    ids, keep, _ = asked(9)
    texts = [Tokens(torch.from_numpy(ids), torch.from_numpy(keep))]
    masked, zeroed = pruning.runner(one, off), pruning.runner(other)
    difference, largest = pruning.largest_difference(masked, zeroed, texts)
    assert difference < 1e-12 < largest
    assert pruning.largest_difference(pruning.runner(one), zeroed, texts)[0] > 1e-3


# --- what cannot be -------------------------------------------------------------------------------


def test_what_needs_tokens_at_the_end_says_that_there_are_none(models):
    ours = open_model(models("base")[1])
    with pytest.raises(HgvizError, match="no tokens"):
        measure_reach(ours, ours.from_ids(asked(9)[0][0]))
    ours = open_model(models("full")[1])
    found = measure_reach(ours, ours.from_ids(asked(9)[0][0]))
    assert found.own.shape == (9, 9) and (found.own[1:, 1:] > 0).all()
