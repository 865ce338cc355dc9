"""Trials with heads off on examples, beside whole runs."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from hgviz.core import HeadId, HgvizError
from hgviz.examples import classification_examples, masked_token_examples, next_token_examples
from hgviz.models import open_model
from hgviz.models.run import Observer, Run
from hgviz.models.text import Bytes
from hgviz.models.trials import (
    CACHE_BYTES,
    EXCERPT,
    HeadAblation,
    Trials,
    batch_tokens,
    predictions_of,
)
from tests.closeness import scaled_error
from tests.models.building import write_checkpoint, write_transformer
from tests.models.zoo import write

TEXT = "the cat sat on the mat and the dog sat on the log. " * 9


def classifier(folder):
    random = np.random.default_rng(3)
    write_transformer(
        folder, vocab_size=256, form="encoder", goal="classes", labels=["a", "b"], n_layers=3
    )
    prompts = [Bytes().encode(TEXT[:length]) for length in random.integers(3, 30, 50)]
    return classification_examples(prompts, list(random.integers(0, 2, 50)), ("a", "b"), None)


def hourglass(folder):
    write_checkpoint(folder, vocab_size=256, causal=True, hierarchy="1@1 2@2 1@1")
    return next_token_examples([Bytes().encode(TEXT)], length=64)


def encoder(folder):
    write_transformer(folder, vocab_size=256, form="encoder", goal="masked")
    return masked_token_examples([Bytes().encode(TEXT)], 0)


@pytest.fixture(params=[classifier, hourglass, encoder])
def case(request, tmp_path):
    """A model in float64 and what it is scored on."""
    examples = request.param(tmp_path / "model")
    return open_model(tmp_path / "model", dtype="float64"), examples


def by_run(model, batch, off):
    logits = model.run(batch.ids, batch.mask if not batch.mask.all() else None, off=off).logits
    asked = batch.asked
    chances = log_softmax(logits[asked].astype(float), -1)
    loss = -np.take_along_axis(chances, batch.wanted[asked][:, None], -1)[:, 0]
    return loss, logits[asked].argmax(-1)


def batches(one):
    return [batch for block in one.blocks for batch in block]


@pytest.mark.parametrize("cache_bytes", [CACHE_BYTES, 1])
def test_predictions_with_heads_off_are_those_of_a_whole_run(case, cache_bytes):
    model, examples = case
    one = Trials(model, examples, cache_bytes=cache_bytes)
    seen = np.zeros(len(examples.wanted), int)
    for batch in batches(one):
        for off in (set(), {one.heads[-1]}, {one.heads[0], one.heads[3]}, set(one.heads)):
            loss, answers = one.without(batch, off)
            expected, likeliest = by_run(model, batch, off)
            assert scaled_error(loss, expected) <= 1e-6
            assert (answers == likeliest).all()
        seen[examples.where(batch)] += 1
    assert (seen == 1).all()
    assert any(baseline.outputs for baseline, _ in one._cache.values()) == (cache_bytes > 1)
    for row in range(min(len(examples), 12)):  # each may lie in memory where another lay
        batch = examples.batch([row])
        assert scaled_error(one.baseline(batch)[0], by_run(model, batch, set())[0]) <= 1e-6
        del batch


def test_heads_off_from_the_start_are_off_in_the_baseline(case):
    model, examples = case
    first = HeadId(0, 0)
    one = Trials(model, examples, frozenset({first}))
    batch, other = one.blocks[0][0], one.heads[2]
    assert first not in one.heads
    for found, off in (
        (one.baseline(batch), {first}),
        (one.without(batch, {other}), {first, other}),
    ):
        assert scaled_error(found[0], by_run(model, batch, off)[0]) <= 1e-6
    each = dict(one.without_each(batch))
    assert set(each) == set(one.heads)
    assert scaled_error(each[other][0], by_run(model, batch, {first, other})[0]) <= 1e-6


def test_gate_gradients_of_a_text_are_the_same_in_any_batch(case):
    model, examples = case
    one = Trials(model, examples)
    batch = one.blocks[0][0]
    slopes, sizes = one.gate_gradients(batch)
    assert slopes.shape == sizes.shape == (len(batch.rows), len(one.heads))
    assert (np.abs(slopes) <= sizes * (1 + 1e-6) + 1e-9).all()
    alone = one.gate_gradients(examples.batch(batch.rows[:1]))[0]
    assert np.abs(alone - slopes[:1]).max() <= 1e-5 * np.abs(slopes).max()


@pytest.mark.parametrize("without_effect", [0, 1, 999])
def test_an_excerpt_proves_that_heads_have_an_effect(case, without_effect, monkeypatch):
    model, examples = case
    one, seen, ablate = Trials(model, examples), [], HeadAblation.ablate

    def watched(ablation, baseline, off):  # heads that do nothing in so many passes
        seen.append(tuple(baseline.tokens.ids.shape))
        return ablate(ablation, baseline, () if len(seen) <= without_effect else off)

    monkeypatch.setattr(HeadAblation, "ablate", watched)
    if without_effect == 999:
        with pytest.raises(HgvizError, match="switching off layer 0 changes nothing"):
            one.require_effect()
    else:
        one.require_effect()
    shape = one.blocks[0][0].ids.shape
    excerpt = (1, min(EXCERPT, shape[1]))
    layers = sum(1 for layer in model.spec.layers if layer.heads)
    assert seen == [excerpt] * layers if not without_effect else seen[0] == excerpt
    assert not without_effect or seen[-1] == shape


class Contexts(Observer):
    """Records the contexts (queries, D) of every head of a text, or puts others in their place."""

    def __init__(self, others=None):
        self.found, self.others = {}, others or {}

    def on_attention(self, call, context):
        context = context.clone()
        for (layer, place), other in self.others.items():
            if layer == call.layer:
                context[0, place] = other[np.arange(context.shape[2]) % len(other)]
        self.found |= {(call.layer, place): one for place, one in enumerate(context[0])}
        return context


def read_by_itself(model, examples, row, others=None):
    """The losses and the contexts of one text, of no batch and by no short cut."""
    batch, seen = examples.batch([row]), Contexts(others)
    with torch.inference_mode():
        logits = model.module(batch_tokens(batch, "cpu"), Run(observers=[seen]))
    return predictions_of(logits, batch)[0], seen.found


@pytest.mark.parametrize(
    ("ablation", "cache_bytes"), [("mean", CACHE_BYTES), ("resample", CACHE_BYTES), ("resample", 1)]
)
def test_means_and_other_examples_take_the_place_of_heads_that_are_off(case, ablation, cache_bytes):
    model, examples = case
    if len(examples) == 1:  # the text of a masked language model, in parts
        examples = masked_token_examples([Bytes().encode(TEXT[at:90]) for at in (0, 20, 43)], 0)
    one = Trials(model, examples, frozenset({HeadId(0, 0)}), cache_bytes, ablation=ablation, seed=4)
    whole = [read_by_itself(model, examples, row)[1] for row in range(len(examples))]
    means = {head: torch.cat([text[head] for text in whole]).mean(0)[None] for head in whole[0]}
    offs = [set(), {one.heads[1]}, {one.heads[-1], one.heads[2]}]
    for batch in batches(one)[:2]:
        each = dict(one.without_each(batch))
        alone = dict(one.without_each(batch, alone=True))
        others = [{HeadId(1, head) for head in model.spec.layers[1].heads} - {HeadId(1, 1)}]
        found = [one.without(batch, off)[0] for off in offs]
        found += [each[one.heads[1]][0], each[one.heads[-1]][0], alone[HeadId(1, 1)][0]]
        places = np.cumsum([0, *np.diff(examples.places)[batch.rows]])
        for at, row in list(enumerate(batch.rows))[:5]:
            source = means if ablation == "mean" else whole[one._partners[row]]
            for values, off in zip(found, [*offs, offs[1], {one.heads[-1]}, *others], strict=True):
                replaced = {head: source[head] for head in {(0, 0), *map(tuple, off)}}
                expected, _ = read_by_itself(model, examples, int(row), replaced)
                got = values[places[at] : places[at + 1]]
                assert scaled_error(got, expected) <= 1e-6
    assert sorted(one._partners) == [*range(len(examples))]
    assert (one._partners != np.arange(len(examples))).all()


def test_slopes_towards_the_mean_are_the_change_of_the_loss_with_a_gate(case):
    model, examples = case
    one = Trials(model, examples, ablation="mean")
    batch, head = batches(one)[0], one.heads[2]
    slopes, _ = one.gate_gradients(batch)
    tokens, found = one._tokens(batch), []
    gates = torch.ones(1, len(model.spec.layers[head.layer].heads), dtype=torch.float64)
    for gate in (1.001, 0.999):
        gates[0, head.head] = gate
        run = Run(gates={head.layer: gates}, replacement=one._replacement(batch))
        found.append(predictions_of(model.module(tokens, run).detach(), batch)[0].sum(dtype=float))
    assert slopes[:, 2].sum() == pytest.approx((found[0] - found[1]) / 0.002, rel=1e-3, abs=1e-4)


def test_what_cannot_be_replaced_is_said_in_one_line(case, tmp_path):
    model, examples = case
    single = Trials(model, examples.part(np.arange(1)), ablation="resample")
    with pytest.raises(HgvizError, match="there is one example"):
        single.without(batches(single)[0], {single.heads[0]})
    bloom = open_model(write(tmp_path / "bloom", "bloom", "BloomForCausalLM", vocab_size=256))
    own = Trials(bloom, next_token_examples([Bytes().encode(TEXT)], length=32), ablation="mean")
    with pytest.raises(HgvizError, match="heads of layer 0 can only be set to zero"):
        own.without(batches(own)[0], {own.heads[0]})
