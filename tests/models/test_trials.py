"""Trials with heads off on examples, beside whole runs."""

import numpy as np
import pytest
from scipy.special import log_softmax

from hgviz.core import HeadId, HgvizError
from hgviz.examples import classification_examples, masked_token_examples, next_token_examples
from hgviz.models import open_model
from hgviz.models.text import Bytes
from hgviz.models.trials import CACHE_BYTES, EXCERPT, HeadAblation, Trials
from tests.closeness import scaled_error
from tests.models.building import write_checkpoint, write_transformer

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
