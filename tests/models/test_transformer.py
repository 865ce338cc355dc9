"""The plain Transformer against torch's own layers, and YUBERT against what it must equal."""

import math

import numpy as np
import pytest
import torch

from hgviz.core import HeadId, HgvizError
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.config import config_json, parse_config
from hgviz.models.layers import Tokens
from hgviz.models.run import CaptureRecorder, Run
from hgviz.models.transformer import sinusoids
from tests.models.building import make_transformer, write_transformer

WIDTH, HEADS, FF, VOCABULARY = 12, 2, 20, 23
ENCODER = {"form": "encoder", "goal": "states", "segments": 2}
BOTH = {"form": "encoder-decoder"}
SIX = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]


def ids(*shape, seed=0):
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


# --- against torch.nn -----------------------------------------------------------------------------


def theirs(block, first, kind, cross):
    """torch.nn's encoder or decoder layer with the weights of a block."""
    make = torch.nn.TransformerDecoderLayer if cross else torch.nn.TransformerEncoderLayer
    layer = make(WIDTH, HEADS, FF, 0.0, kind, batch_first=True, norm_first=first).double().eval()
    pairs = [(layer.self_attn, block.attn)]
    norms = [block.ln_attn, block.ln_ff]
    if cross:
        pairs.append((layer.multihead_attn, block.cross))
        norms.insert(1, block.ln_cross)
    with torch.no_grad():
        for there, here in pairs:
            parts = (here.q, here.k, here.v)
            there.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
            there.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
            there.out_proj.load_state_dict(here.o.state_dict())
        for number, norm in enumerate(norms, 1):
            getattr(layer, f"norm{number}").load_state_dict(norm.state_dict())
        layer.linear1.load_state_dict(block.ff["in"].state_dict())
        layer.linear2.load_state_dict(block.ff["out"].state_dict())
    return layer


def own_layers(stack):
    return [block for name, block in stack.items() if name != "ln_out"]


@pytest.mark.parametrize("kind", ["relu", "gelu"])
@pytest.mark.parametrize("first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_an_encoder_decoder_equals_torchs_own_layers(first, kind, positions):
    model = make_transformer(
        **BOTH, norm_first=first, final_norm=first, feed_forward=kind, positions=positions,
        max_positions=9, decoder_layers=3,
    )  # fmt: skip
    source, target = ids(3, 7), ids(3, 5, seed=1)
    keep = torch.ones(3, 7, dtype=torch.bool)
    keep[1, 5:] = keep[2, :2] = False
    given = Tokens(target, source=Tokens(source, keep))
    with torch.no_grad():
        memory = model.embed(given.source)
        for block in own_layers(model.encoder):
            memory = theirs(block, first, kind, False)(memory, src_key_padding_mask=~keep)
        x = model.embed(given)
        if first:
            memory = model.encoder["ln_out"](memory)
        future = torch.ones(5, 5, dtype=torch.bool).triu(1)
        for block in own_layers(model.decoder):
            layer = theirs(block, first, kind, True)
            x = layer(x, memory, tgt_mask=future, memory_key_padding_mask=~keep)
        if first:
            x = model.ln_f(x)
        expected = x @ model.embed.token.weight.T
        torch.testing.assert_close(model(given), expected, rtol=0, atol=1e-10)


def test_cross_attention_maps_equal_torchs_own():
    model = make_transformer(**BOTH, n_layers=1)
    source, target = ids(1, 6), ids(1, 4, seed=1)
    found = {}
    model(
        Tokens(target, source=Tokens(source)), Run(observers=[CaptureRecorder(found.__setitem__)])
    )
    layer = next(one for one in model.config.layers if one.role == "cross")
    block = model.decoder["0"]
    with torch.no_grad():
        memory = model.encoder["0"]
        memory = memory(model.embed(Tokens(source)), Tokens(source), None, None, Run())
        x = model.embed(Tokens(target))
        x = block.ln_attn(x + block.attn(x, x, None, None, Run()))
        reference = theirs(block, False, "relu", True).multihead_attn
        weights = reference(x, memory, memory, average_attn_weights=False)[1][0]
    maps = LazyMap(found[layer.index], layer.heads)
    assert maps.shape == (HEADS, 4, 6)
    for head in layer.heads:
        np.testing.assert_allclose(maps.read(head), weights[head].numpy(), atol=1e-6)


def test_sinusoids_are_vaswanis():
    found = sinusoids(torch.arange(50), 6, torch.float64)
    for position in (0, 1, 7, 49):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert found[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert found[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)


# --- what a token can reach -----------------------------------------------------------------------


def reach(model, tokens, x):
    """R[i, j] = max |d (y_i . w) / d x_j|, for embeddings x (1, n, d)."""
    x = x.detach().requires_grad_()
    y = model.from_embeddings(x, tokens)[0]
    w = torch.randn(y.shape[-1], dtype=y.dtype, generator=torch.Generator().manual_seed(3))
    rows = []
    for i in range(len(y)):
        (gradient,) = torch.autograd.grad(y[i] @ w, x, retain_graph=True)
        rows.append(gradient[0].abs().amax(-1))
    return torch.stack(rows)


@pytest.mark.parametrize("activation", ["softmax", "ymish", "tanh"])
@pytest.mark.parametrize("first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "none"])
def test_a_decoder_never_sees_the_future(positions, first, activation):
    model = make_transformer(
        form="decoder", positions=positions, norm_first=first, max_positions=9,
        activations=activation,
    )  # fmt: skip
    given = Tokens(ids(1, 8))
    found = reach(model, given, model.embed(given))
    assert (found.triu(1) == 0).all()
    assert (found[torch.ones_like(found).tril().bool()] > 0).all()


def test_the_target_of_an_encoder_decoder_never_sees_its_own_future_and_all_of_the_source():
    model = make_transformer(**BOTH)
    given = Tokens(ids(1, 6), source=Tokens(ids(1, 4, seed=1)))
    assert (reach(model, given, model.embed(given)).triu(1) == 0).all()
    model.embed.token.weight.requires_grad_()
    source = torch.tensor([[20, 21, 22, 19]])
    y = model(Tokens(torch.tensor([[1, 2, 3]]), source=Tokens(source)))
    hidden = torch.randn(VOCABULARY, dtype=y.dtype)
    (gradient,) = torch.autograd.grad((y[0, 0] * hidden).sum(), model.embed.token.weight)
    assert (gradient[source[0]].abs().amax(-1) > 0).all()


def test_an_encoder_sees_everything():
    model = make_transformer(**ENCODER)
    given = Tokens(ids(1, 6))
    assert (reach(model, given, model.embed(given)) > 0).all()


@pytest.mark.parametrize("activation", ["softmax", "ymish", "selu", "linear", "topk"])
@pytest.mark.parametrize("form", ["encoder", "decoder"])
def test_a_padded_text_gives_what_it_gives_alone(form, activation):
    goal = "masked" if form == "encoder" else "next"
    model = make_transformer(
        form=form, goal=goal, positions="none", activations=activation, top_k=3
    )
    text = torch.tensor([[19, 4, 7, 10, 13]])  # a token twice would score alike: top-k has a tie
    alone = model(text)[0]
    for left in (0, 3):
        padded = torch.nn.functional.pad(text, (left, 3 - left))
        keep = torch.zeros_like(padded, dtype=torch.bool)
        keep[:, left : left + 5] = True
        found = model(Tokens(padded, keep))[0, left : left + 5]
        torch.testing.assert_close(found, alone, rtol=0, atol=1e-12)


# --- heads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["softmax", "ymish"])
def test_a_head_switched_off_is_a_head_cut_out(activation):
    keys = {**ENCODER, "n_heads": 3, "activations": activation}
    model = make_transformer(**keys)
    small = parse_config({**config_json(model.config), "kept": [[0, 2], [1]]}).build().double()
    state = model.state_dict()
    for layer, heads in (("middle.0", [0, 2]), ("middle.1", [1])):
        rows = torch.cat([torch.arange(4) + 4 * head for head in heads])
        for part in "qkv":
            for kind in ("weight", "bias"):
                name = f"{layer}.attn.{part}.{kind}"
                state[name] = state[name][rows]
        name = f"{layer}.attn.o.weight"
        state[name] = state[name][:, rows]
    small.load_state_dict(state)
    off = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 2)})
    text = ids(2, 7)
    torch.testing.assert_close(small(text), model(text, Run(off)), rtol=0, atol=1e-12)
    assert small.config.layers[1].heads == (1,)


# --- YUBERT ---------------------------------------------------------------------------------------

CLASSES = {"labels": ["no", "yes", "maybe"], "max_positions": 16}


def test_one_cls_is_bert_to_the_bit():
    bert = make_transformer(family="bert", goal="classes", **CLASSES)
    text, keep = ids(2, 9), torch.ones(2, 9, dtype=torch.bool)
    keep[1, 6:] = False
    given = Tokens(text, keep, ids(2, 9) % 2)
    for pooler in ("shared", "separate"):
        keys = {"family": "yubert", "cls": 1, "activations": "softmax", "pooler": pooler}
        yubert = parse_config({**config_json(bert.config), **keys}).build().double()
        named = {
            name.replace("pooler.", "pooler.0.") if pooler == "separate" else name: value
            for name, value in bert.state_dict().items()
        }
        yubert.load_state_dict(named)
        assert torch.equal(yubert(given), bert(given))


def test_several_cls_are_read_side_by_side():
    model = make_transformer(family="yubert", cls=3, **CLASSES)
    text = ids(2, 8)
    hidden = []
    model.ln_f = torch.nn.Identity()
    last = model.middle["1"].ln_ff
    last.register_forward_hook(lambda part, given, out: hidden.append(out))
    logits = model(text)
    pooled = [torch.tanh(model.head.pooler(hidden[0][:, i])) for i in range(3)]
    weight = model.head.classifier.weight.split(WIDTH, dim=1)
    summed = sum(one @ part.T for one, part in zip(pooled, weight, strict=True))
    torch.testing.assert_close(logits, summed + model.head.classifier.bias)


def test_equal_cls_tokens_without_positions_stay_equal():
    keys = {"cls": 3, "positions": "none", "max_positions": None}
    model = make_transformer(family="yubert", **{**CLASSES, **keys})
    text = torch.cat([torch.full((1, 3), 5), ids(1, 6)], dim=1)
    states = []
    model.middle["1"].ln_ff.register_forward_hook(lambda part, given, out: states.append(out))
    model(text)
    assert torch.allclose(states[0][0, 0], states[0][0, 2], rtol=0, atol=1e-12)


def test_fewer_tokens_than_cls_is_said():
    model = make_transformer(family="yubert", cls=4, **CLASSES)
    with pytest.raises(HgvizError, match="this classifier reads 4"):
        model(ids(1, 3))


SLOTS = {**ENCODER, "max_positions": 9, "slots": 4}


def test_a_sequence_projected_by_the_identity_is_not_projected():
    keys = {**SLOTS, "slots": 9}
    projected = make_transformer(**keys)
    plain = parse_config({**config_json(projected.config), "slots": 0}).build().double()
    state = projected.state_dict()
    state.pop("projection.weight")
    plain.load_state_dict(state)
    with torch.no_grad():
        projected.projection.weight.copy_(torch.eye(9))
    text = ids(2, 9)
    torch.testing.assert_close(projected(text), plain(text), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_padding_never_reaches_the_slots(shared):
    model = make_transformer(**SLOTS, slots_shared=shared)
    text, keep = ids(1, 8), torch.arange(8)[None] < 5
    other = torch.where(keep, text, (text + 1) % VOCABULARY)
    found, changed = (model(Tokens(one, keep))[0, :5] for one in (text, other))
    assert torch.equal(found, changed)
    torch.testing.assert_close(found, model(text[:, :5])[0], rtol=0, atol=1e-12)


def test_projecting_before_the_heads_is_projecting_keys_and_values_alike():
    # G (X W) = (G X) W: sharing before the split is Linformer with one matrix for all heads
    model = make_transformer(**SLOTS, n_layers=1)
    attention, x = model.middle["0"].attn, torch.randn(1, 9, WIDTH).double()
    weight = model.projection.weight
    before = torch.nn.functional.linear(weight @ x, attention.k.weight)
    after = weight @ torch.nn.functional.linear(x, attention.k.weight)
    torch.testing.assert_close(before, after)


@pytest.mark.parametrize("keys, words", [
    ({"form": "decoder", "slots": 4, "max_positions": 9}, "never causal"),
    ({"form": "encoder", "goal": "states", "slots": 4}, "need max_positions"),
    ({"form": "encoder", "goal": "states", "slots": 9, "max_positions": 4}, "at most max"),
    ({"form": "encoder", "goal": "states", "slots": 4, "max_positions": 9, "positions": "rotary"},
     "rotary positions have no angle"),
    ({"form": "encoder"}, "none is the next"),
    ({"form": "decoder", "goal": "masked"}, "only an encoder fills in"),
    ({"form": "encoder", "goal": "classes"}, "a classifier is an encoder with labels"),
    ({"form": "encoder", "goal": "states", "cross": True}, "cross belongs to a decoder"),
    ({"form": "decoder", "kept": [[0]]}, "2 layers that attend"),
    ({"form": "decoder", "kept": [[0], [2]]}, "from 0 to 1"),
    ({"form": "decoder", "d_model": 13}, "2 heads do not divide"),
    ({"form": "decoder", "activations": "ymisch"}, "no activation 'ymisch'"),
    ({"form": "decoder", "activations": "topk"}, "needs top_k"),
    ({"form": "decoder", "norms": {"ymish": "l3"}}, "no norm 'l3'"),
    ({"form": "decoder", "n_layers": 10**9}, "n_layers"),
    ({"form": "sideways"}, "form"),
    ({"form": "decoder", "family": "bard"}, "family"),
])  # fmt: skip
def test_a_model_that_cannot_be_is_refused_in_one_line(keys, words):
    with pytest.raises(HgvizError) as caught:
        make_transformer(**keys)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# --- everything with everything -------------------------------------------------------------------

FORMS = {
    "encoder": ENCODER,
    "decoder": {"form": "decoder"},
    "both": BOTH,
    "given states": {"form": "decoder", "cross": True},
    "slots": SLOTS,
    "classes": {"family": "yubert", **CLASSES},
}


@pytest.mark.parametrize("form", FORMS)
def test_six_activations_over_the_heads_work_in_every_form(form, tmp_path):
    keys = {"n_heads": 6, **FORMS[form], "activations": SIX}
    model = open_model(write_transformer(tmp_path, **keys), dtype="float64")
    assert all(layer.activations == tuple(SIX) for layer in model.spec.layers)
    extra = {}
    if model.spec.form == "encoder-decoder":
        extra = {"decoder_ids": [3, 2, 1]}
    elif model.takes_states:
        extra = {"encoder_states": np.linspace(-1, 1, 36).reshape(3, 12)}
    logits = model.run([1, 2, 3, 4, 5], **extra).logits
    assert np.isfinite(logits).all()
    off = model.run([1, 2, 3, 4, 5], off={HeadId(0, 5)}, **extra).logits
    assert np.abs(off - logits).max() > 1e-6
