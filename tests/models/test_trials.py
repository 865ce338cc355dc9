"""Trials with heads off beside whole runs, and gradients of gates beside differences and captum."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from captum.attr import FeatureAblation, Saliency

from hgviz.analysis.scores import surprise
from hgviz.core import HeadId, HgvizError
from hgviz.examples import classification_examples, masked_token_examples, next_token_examples
from hgviz.models import open_model, trials
from hgviz.models.layers import Tokens, attention_modules
from hgviz.models.run import Run
from hgviz.models.text import Bytes
from hgviz.models.trials import CACHE_BYTES, EXCERPT, BlockAblation, HeadAblation, Trials
from tests.closeness import scaled_error
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    write_checkpoint,
    write_transformer,
)

LABELS = {"goal": "classes", "labels": ["a", "b", "c"]}


def hourglasses():
    """Every way to shorten and to grow."""
    downs = ({}, {"downsampling": "linear"}, {"attention_downsampling": "average"})
    for form, down in itertools.product(("official", "windowed"), downs):
        config = make_config(form=form, hierarchy="1@1 1@2 1@4 1@2 1@1", causal=True, **down)
        yield f"{form} {down or ''}", make_hourglass(config)


def transformers():
    """Encoder, classifier, decoder and both, pre- and post-norm, several activations."""
    for first in (True, False):
        yield f"encoder {first}", make_transformer(form="encoder", goal="masked", norm_first=first)
        yield (
            f"classifier {first}",
            make_transformer(form="encoder", norm_first=first, n_layers=3, cls=2, **LABELS),
        )
        yield f"decoder {first}", make_transformer(form="decoder", norm_first=first, n_layers=3)
        yield f"both {first}", make_transformer(form="encoder-decoder", norm_first=first)
    yield "ymish", make_transformer(form="encoder", activations="ymish", **LABELS)
    yield "bert", make_transformer(family="bert", max_positions=16, pooler="shared", **LABELS)
    yield "gpt2", make_transformer(family="gpt2", max_positions=16)
    slots = {"slots": 5, "max_positions": 16, "norms": {"ymish": "l2"}, "activations": "ymish"}
    yield "yubert", make_transformer(family="yubert", **slots, **LABELS)
    yield "rotary", make_transformer(form="encoder", positions="rotary", **LABELS)
    kept = ((0, 2), (), (1,))
    yield "ragged", make_transformer(form="encoder", n_layers=3, n_heads=3, kept=kept, **LABELS)
    kept = ((0, 2), ())
    yield "nothing to read", make_transformer(form="encoder", n_heads=3, kept=kept, **LABELS)


MODELS = {name: model.requires_grad_(False) for name, model in (*hourglasses(), *transformers())}
every_model = pytest.mark.parametrize("name", MODELS)
some_models = pytest.mark.parametrize("name", list(MODELS)[::3])


def tokens_of(model, batch=3, length=11):
    """A padded batch, two texts where the model reads two."""
    random = torch.Generator().manual_seed(1)

    def text(length):
        ids = torch.randint(0, 23, (batch, length), generator=random)
        ends = torch.tensor([length, length - 2, length - 5])[:batch]
        return Tokens(ids, torch.arange(length) < ends[:, None])

    if getattr(model.config, "form", "") != "encoder-decoder":
        return text(length)
    target, source = text(length), text(length - 3)
    return Tokens(target.ids, target.keep, source=source)


def masked(model, tokens, off):
    """A whole pass with heads off."""
    with torch.inference_mode():
        return model(tokens, Run(frozenset(off)))


def each_off(ablation, tokens):
    """(head, logits) of every head off by itself."""
    for heads, variants in ablation.ablate_each(ablation.baseline(tokens)[0]):
        yield from zip(heads, variants, strict=True)


@every_model
def test_each_head_off_is_a_whole_pass_without_it(name, monkeypatch):
    model, started = MODELS[name], []
    tokens, ablation = tokens_of(model), HeadAblation(model)
    seen = set()
    for head, logits in each_off(ablation, tokens):
        assert (logits - masked(model, tokens, {head})).abs().max() <= 1e-12
        seen.add(head)
    assert seen == set(ablation.heads)
    # the same where the feed-forward begins with products of the baseline
    first_product = BlockAblation._first_product
    monkeypatch.setattr(
        BlockAblation, "_first_product", lambda *given: started.append(1) or first_product(*given)
    )
    monkeypatch.setattr(trials, "saves_time", lambda *given: True)
    for head, logits in each_off(HeadAblation(model), tokens):
        assert (logits - masked(model, tokens, {head})).abs().max() <= 1e-10
    assert started


@some_models
def test_heads_that_are_off_already_stay_off(name):
    model, head = MODELS[name], HeadId(0, 1)
    tokens = tokens_of(model)
    for other, logits in each_off(HeadAblation(model, frozenset({head})), tokens):
        assert other != head
        assert (logits - masked(model, tokens, {head, other})).abs().max() <= 1e-12


def test_single_precision_changes_no_answer():
    sizes = {"d_model": 48, "d_ff": 96, "n_heads": 4, "n_layers": 4}
    model = make_transformer(form="encoder", **sizes, **LABELS).float()
    tokens = tokens_of(model)
    for head, logits in each_off(HeadAblation(model), tokens):
        expected = masked(model, tokens, {head})
        assert scaled_error(logits, expected) <= 1e-5
        assert torch.equal(logits.argmax(-1), expected.argmax(-1))


def losses(logits):
    """(B,) The surprise of class or token 1 everywhere."""
    flat = logits.flatten(0, -2)
    nats = F.cross_entropy(flat, torch.ones(len(flat), dtype=torch.long), reduction="none")
    return nats.unflatten(0, (len(logits), -1)).sum(1)


def by_gates(model, tokens):
    """The losses as a function of the gates (1, heads) of all heads, in a whole pass."""
    layers = [part.layer for part in attention_modules(model)]

    def forward(gates):
        parts = gates.double().split([len(layer.heads) for layer in layers], dim=1)
        by_layer = {x.index: part.expand(3, -1) for x, part in zip(layers, parts, strict=True)}
        return losses(model(tokens, Run(gates=by_layer)))[None]

    return forward


@every_model
def test_the_gradient_of_a_gate_is_its_central_difference(name):
    model, step = MODELS[name], 1e-5
    tokens, ablation = tokens_of(model), HeadAblation(model)
    found, forward = ablation.gate_gradients(tokens, losses).gates, by_gates(model, tokens)
    for at in range(0, len(ablation.heads), max(1, len(ablation.heads) // 4)):
        more, less = torch.ones(2, 1, len(ablation.heads), dtype=torch.float64)
        more[0, at] += step
        less[0, at] -= step
        difference = (forward(more) - forward(less))[0] / (2 * step)
        assert (found[:, at] - difference).abs().max() <= 1e-6 * max(1, found.abs().max())


@some_models
def test_gates_and_ablation_beside_captum(name):
    model = MODELS[name]
    tokens, ablation = tokens_of(model), HeadAblation(model)
    forward, whole = by_gates(model, tokens), losses(masked(model, tokens, ()))
    gates = torch.ones(1, len(ablation.heads), dtype=torch.float64)
    ablated = FeatureAblation(forward).attribute(gates).reshape(3, -1)
    for head, logits in each_off(ablation, tokens):
        column = ablated[:, ablation.heads.index(head)]
        change = whole - losses(logits)
        assert (column - change).abs().max() <= 1e-11 * (1 + ablated.abs().max())
    slopes = ablation.gate_gradients(tokens, losses).gates
    for row in range(3):
        saliency = Saliency(lambda x, row=row: forward(x)[:, row])
        found = saliency.attribute(gates.requires_grad_(), abs=False)[0]
        assert (found - slopes[row]).abs().max() <= 1e-11 * max(1, slopes.abs().max())


@some_models
def test_a_layer_whose_absence_changes_nothing_is_found(name, monkeypatch):
    model, tokens = MODELS[name], tokens_of(MODELS[name])
    assert HeadAblation(model).find_unused_layer(tokens) is None
    ablate = HeadAblation.ablate
    monkeypatch.setattr(
        HeadAblation, "ablate", lambda one, baseline, off: ablate(one, baseline, ())
    )
    assert HeadAblation(model).find_unused_layer(tokens) == 0


# --- trials on examples ---------------------------------------------------------------------------


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
    return surprise(logits[asked], batch.wanted[asked]), logits[asked].argmax(-1)


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
