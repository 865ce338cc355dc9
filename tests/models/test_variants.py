"""Variants of a model with heads off: what is reused gives what a whole masked pass gives."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from hgviz.core import HeadId
from hgviz.models.blocks import Attention, Pass, Tokens, finish_steps
from hgviz.models.measures.variants import Begun, Variants, attentions
from tests.closeness import scaled_error
from tests.models.building import make_config, make_hourglass, make_transformer

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


MODELS = [*hourglasses(), *transformers()]


def tokens_of(model, batch=3, length=11):
    """A padded batch, two texts where the model reads two."""
    random = torch.Generator().manual_seed(1)

    def text(length):
        ids = torch.randint(0, 23, (batch, length), generator=random)
        ends = torch.tensor([length, length - 2, length - 5])
        return Tokens(ids, torch.arange(length) < ends[:, None])

    if getattr(model.config, "form", "") != "encoder-decoder":
        return text(length)
    target, source = text(length), text(length - 3)
    return Tokens(target.ids, target.keep, source=source)


def masked(model, tokens, off):
    """A whole pass with heads off."""
    with torch.inference_mode():
        return finish_steps(model.steps(tokens, Pass(frozenset(off))))


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_each_head_by_itself_is_what_a_masked_pass_gives(name, model):
    tokens, variants, seen = tokens_of(model), Variants(model), set()
    whole, logits = variants.whole(tokens)
    assert (logits - masked(model, tokens, ())).abs().max() <= 1e-12
    for heads, logits in variants.one_by_one(whole):
        for head, found in zip(heads, logits, strict=True):
            assert (found - masked(model, tokens, {head})).abs().max() <= 1e-12
            seen.add(head)
    assert seen == set(variants.heads)


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_a_feed_forward_is_begun_from_the_whole_pass(name, model, monkeypatch):
    begun, without = [], Begun.without
    monkeypatch.setattr(Begun, "without", lambda *given: begun.append(1) or without(*given))
    monkeypatch.setattr("hgviz.models.measures.variants._pays", lambda *given: True)
    tokens, variants = tokens_of(model), Variants(model)
    for heads, logits in variants.one_by_one(variants.whole(tokens)[0]):
        for head, found in zip(heads, logits, strict=True):
            assert (found - masked(model, tokens, {head})).abs().max() <= 1e-10
    assert begun


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_any_heads_together_are_what_a_masked_pass_gives(name, model):
    tokens, variants = tokens_of(model), Variants(model)
    (whole, _), heads = variants.whole(tokens), variants.heads
    for off in ({heads[0]}, {heads[-1], heads[1]}, set(heads[1::2]), set(heads), set()):
        assert (variants.without(whole, off) - masked(model, tokens, off)).abs().max() <= 1e-12


@pytest.mark.parametrize(("name", "model"), MODELS[::3], ids=[name for name, _ in MODELS[::3]])
def test_a_head_alone_is_what_is_left_when_the_others_of_its_layer_are_off(name, model):
    tokens, variants = tokens_of(model), Variants(model)
    for heads, logits in variants.one_by_one(variants.whole(tokens)[0], alone=True):
        for head, found in zip(heads, logits, strict=True):
            others = {one for one in variants.heads if one.layer == head.layer and one != head}
            assert (found - masked(model, tokens, others)).abs().max() <= 1e-12


@pytest.mark.parametrize(("name", "model"), MODELS[::3], ids=[name for name, _ in MODELS[::3]])
def test_heads_that_are_off_already_stay_off(name, model):
    tokens, head = tokens_of(model), HeadId(0, 1)
    variants = Variants(model, frozenset({head}))
    whole, _ = variants.whole(tokens)
    for heads, logits in variants.one_by_one(whole):
        assert head not in heads
        for one, found in zip(heads, logits, strict=True):
            assert (found - masked(model, tokens, {head, one})).abs().max() <= 1e-12


@pytest.mark.parametrize("cls", [1, 2])
@pytest.mark.parametrize("activation", ["softmax", "tanh", "topk", "elu"])
def test_few_queries_attend_without_keys_and_values(activation, cls):
    model = make_transformer(
        form="encoder", n_heads=1, activations=activation, top_k=3, cls=cls, **LABELS
    )
    last, made = attentions(model)[-1], []
    for part in (last.k, last.v):
        part.register_forward_hook(lambda *given: made.append(given))
    tokens = tokens_of(model)
    _, logits = Variants(model).whole(tokens)
    assert not made
    assert (logits - masked(model, tokens, ())).abs().max() <= 1e-12
    assert len(made) == 2


def test_single_precision_changes_no_answer():
    model = make_transformer(
        form="encoder", d_model=48, d_ff=96, n_heads=4, n_layers=4, **LABELS
    ).float()
    tokens, variants = tokens_of(model), Variants(model)
    for heads, logits in variants.one_by_one(variants.whole(tokens)[0]):
        for head, found in zip(heads, logits, strict=True):
            expected = masked(model, tokens, {head})
            assert scaled_error(found, expected) <= 1e-5
            assert torch.equal(found.argmax(-1), expected.argmax(-1))


def losses(model):
    """(B,) of logits: the surprise of class or token 1 everywhere."""

    def of(logits):
        flat = logits.flatten(0, -2)
        each = F.cross_entropy(flat, torch.ones(len(flat), dtype=torch.long), reduction="none")
        return each.unflatten(0, (len(logits), -1)).sum(1)

    return of


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_the_gradient_of_a_gate_is_its_central_difference(name, model):
    model.requires_grad_(False)
    tokens, variants, loss = tokens_of(model), Variants(model), losses(model)
    found = variants.slopes(tokens, loss).gates
    layers = {p.layer.index: p.layer for p in model.modules() if isinstance(p, Attention)}
    step = 1e-5
    for at, head in list(enumerate(variants.heads))[:: max(1, len(variants.heads) // 4)]:
        ends = []
        for sign in (1, -1):
            gates = torch.ones(3, len(layers[head.layer].heads), dtype=torch.float64)
            gates[:, layers[head.layer].heads.index(head.head)] += sign * step
            run = Pass(gates={head.layer: gates}, readout=True)
            ends.append(loss(finish_steps(model.steps(tokens, run))))
        difference = (ends[0] - ends[1]) / (2 * step)
        assert (found[:, at] - difference).abs().max() <= 1e-6 * max(1, found.abs().max())


@pytest.mark.parametrize(("name", "model"), MODELS[::3], ids=[name for name, _ in MODELS[::3]])
def test_a_layer_whose_absence_changes_nothing_is_found(name, model):
    tokens, variants = tokens_of(model), Variants(model)
    assert variants.without_effect(tokens) is None

    class Deaf(Variants):
        def without(self, whole, off):
            return super().without(whole, ())

    assert Deaf(model).without_effect(tokens) == 0
