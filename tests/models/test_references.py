"""Logits and maps of the own families beside other implementations: the official Hourglass and
Nawrot's segments from their descriptions, torch's layers, and equations of papers."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.analysis.composition import of_tokens, rollout
from hgviz.core import HgvizError
from hgviz.files import resource
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.attention import weights
from hgviz.models.config import config_json, parse_config
from hgviz.models.dynamic import find_spikes, segment_means
from hgviz.models.hourglass import Hierarchy, hierarchy_from_depth, parse_hierarchy
from hgviz.models.layers import Tokens
from hgviz.models.run import CaptureRecorder, Run
from hgviz.models.trials import GateGradientRecorder
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.building import (
    PLAIN,
    make_config,
    make_hourglass,
    make_transformer,
    make_unattending,
    opened,
)
from tests.models.references import Official, run_segments
from tests.models.test_heads_off import tokens_of


def maps_of(model, ids, mask=None):
    """The logits of a text, and the maps (heads, queries, keys) of every layer in order."""
    records = {}
    recorder = CaptureRecorder(records.__setitem__)
    logits = model.trace(model.from_ids(ids, mask), observers=[recorder])
    assert list(records) == [layer.index for layer in model.spec.layers]
    every = [LazyMap(records[layer.index], layer.heads) for layer in model.spec.layers]
    return logits, [
        np.stack([maps.read(head) for head in maps.heads])
        if maps.heads else np.zeros(maps.shape) for maps in every
    ]  # fmt: skip


def ids_of(*shape, seed=0):
    return torch.randint(23, shape, generator=torch.Generator().manual_seed(seed))


def close(found, wanted, tolerance=1e-10):
    torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)


# --- the official Hourglass -----------------------------------------------------------------------

ONE, NESTED = "1@1 2@3 1@1", "1@1 1@2 1@6 1@2 2@1"
AVERAGE = {"downsampling": "average", "upsampling": "repeat"}
BOTH = {"causal": False}
OFFICIAL = {  # hierarchy, other keys, length, side of the padding
    "both ways, nested, ragged": (NESTED, BOTH, 15, None),
    "attention on linear, attention on repeat": (
        ONE, {"attention_downsampling": "linear", "attention_upsampling": "repeat"}, 13, None,
    ),
    "rotary, both ways, ragged": (NESTED, {"positions": "rotary"} | BOTH, 17, None),
    "wider inside, attention on linear and on nothing": (
        NESTED, {"widths": (12, 20, 8), "attention_downsampling": "linear",
                 "attention_upsampling": "none"}, 13, None,
    ),
    "wider inside, average, repeat": (NESTED, {"widths": (12, 16, 20)} | AVERAGE, 15, None),
    "attention on nothing, padded at the right": (
        NESTED, {"attention_upsampling": "none"}, 15, "right",
    ),
    "padded at the left": (NESTED, {"positions": "rotary"}, 15, "left"),
    "both ways, padded, linear": (ONE, {"downsampling": "linear"} | BOTH, 14, "right"),
}  # fmt: skip


def official(config, weights):
    """The reference with the weights of a model."""
    shape, sides = config.shape, {"down": "downsampling", "up": "upsampling"}
    resampling = {
        side: (True, getattr(config, f"attention_{key}"))
        if getattr(config, key) == "attention" else (False, getattr(config, key))
        for side, key in sides.items()
    }  # fmt: skip
    return Official(
        weights, (shape.pre, shape.middle, shape.post), shape.factors, config.n_heads,
        **resampling, positions=config.positions, causal=config.causal,
    )  # fmt: skip


@pytest.mark.parametrize("case", OFFICIAL)
def test_an_hourglass_is_that_of_the_description(tmp_path, case):
    hierarchy, keys, length, side = OFFICIAL[case]
    module = make_hourglass(make_config(hierarchy=hierarchy, **keys))
    model = opened(tmp_path, module, "float64")
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    reference = official(module.config, weights)
    ids, mask = np.random.default_rng(0).integers(0, 23, length), None
    if side is not None:
        real = np.arange(length) < length - 5
        mask = real if side == "right" else real[::-1].copy()
    logits, maps = maps_of(model, ids, mask)
    assert np.abs(logits - reference.logits(ids, mask)).max() < 1e-9
    for one, other in zip(maps, reference.maps, strict=True):
        assert one.shape == other.shape and scaled_error(one, other) < 1e-5


# --- torch's own layers ---------------------------------------------------------------------------


def torch_layer(block, first, kind, cross):
    """torch.nn's encoder or decoder layer with the weights of a block."""
    make = torch.nn.TransformerDecoderLayer if cross else torch.nn.TransformerEncoderLayer
    layer = make(12, 2, 20, 0.0, kind, batch_first=True, norm_first=first).double().eval()
    pairs, norms = [(layer.self_attn, block.attn)], [block.ln_attn, block.ln_ff]
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


@pytest.mark.parametrize(
    "first, kind, positions", [(False, "relu", "learned"), (True, "gelu", "sinusoidal")]
)
@torch.no_grad()
def test_an_encoder_decoder_equals_torchs_own_layers(first, kind, positions):
    model = make_transformer(
        form="encoder-decoder", norm_first=first, final_norm=first, feed_forward=kind,
        positions=positions, max_positions=9, decoder_layers=3,
    )  # fmt: skip
    source, target = ids_of(3, 7), ids_of(3, 5, seed=1)
    keep = torch.ones(3, 7, dtype=torch.bool)
    keep[1, 5:] = keep[2, :2] = False
    tokens, records = Tokens(target, source=Tokens(source, keep)), {}
    memory, x = model.embed(tokens.source), model.embed(tokens)
    for block in [part for name, part in model.encoder.items() if name != "ln_out"]:
        memory = torch_layer(block, first, kind, False)(memory, src_key_padding_mask=~keep)
    memory = model.encoder["ln_out"](memory) if first else memory
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for block in model.decoder.values():
        layer, before = torch_layer(block, first, kind, True), x
        x = layer(x, memory, tgt_mask=future, memory_key_padding_mask=~keep)
    if not first:  # the last map of the first text
        own = layer.norm1(before + layer.self_attn(before, before, before, attn_mask=future)[0])
        cross = layer.multihead_attn(own, memory, memory, average_attn_weights=False)[1][0]
        one = Tokens(target[:1], source=Tokens(source[:1], keep[:1]))
        model(one, Run(observers=[CaptureRecorder(records.__setitem__)]))
        maps = LazyMap(records[max(records)], (0, 1))
        assert maps.shape == (2, 5, 7)
        assert max(scaled_error(maps.read(head), cross[head]) for head in (0, 1)) < 1e-6
    x = model.ln_f(x) if first else x
    close(model(tokens), x @ model.embed.token.weight.T)


# --- classifiers ----------------------------------------------------------------------------------

LABELLED = {"labels": ["no", "yes", "maybe"], "max_positions": 16}


@pytest.mark.parametrize("pooler", ["shared", "separate"])
def test_one_cls_is_bert_to_the_bit(pooler):
    bert = make_transformer(family="bert", goal="classes", **LABELLED)
    keep = torch.ones(2, 9, dtype=torch.bool)
    keep[1, 6:] = False
    tokens = Tokens(ids_of(2, 9), keep, ids_of(2, 9) % 2)
    keys = {"family": "yubert", "cls": 1, "activations": "softmax", "pooler": pooler}
    yubert = parse_config({**config_json(bert.config), **keys}).build().double()
    new = "pooler.0." if pooler == "separate" else "pooler."
    state = bert.state_dict().items()
    yubert.load_state_dict({name.replace("pooler.", new): value for name, value in state})
    assert torch.equal(yubert(tokens), bert(tokens))


# --- models without attention ---------------------------------------------------------------------


def test_an_lstm_computes_what_its_equations_say():
    model, ids = make_unattending(family="lstm", n_layers=2), ids_of(2, 11)
    x, width = model.token_embedding.weight[ids], model.config.d_model
    for layer in range(2):
        into, again = (getattr(model.lstm, f"weight_{name}_l{layer}") for name in ("ih", "hh"))
        bias = getattr(model.lstm, f"bias_ih_l{layer}") + getattr(model.lstm, f"bias_hh_l{layer}")
        hidden = cell = torch.zeros(len(x), width, dtype=torch.float64)
        states = []
        for at in range(x.shape[1]):
            i, f, g, o = (x[:, at] @ into.T + hidden @ again.T + bias).chunk(4, dim=1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            states.append(hidden)
        x = torch.stack(states, dim=1)
    close(model(ids), model.lm_head(x), 1e-9)


@pytest.mark.parametrize(
    "keys", [{"window": 4, "feed_forward": "silu"}, {"window": 5, "causal": False}], ids=str
)
def test_a_window_is_a_convolution(keys):
    model, ids = make_unattending(family="window", **keys), ids_of(2, 11)
    config, x = model.config, model.token_embedding.weight[ids]
    act = F.silu if config.feed_forward == "silu" else F.gelu
    for layer in model.middle:
        right = 0 if config.causal else config.radius
        normed = F.pad(layer.ln(x), (0, 0, config.radius, right))
        kernel = layer.mix.weight.unflatten(1, (config.window, -1)).transpose(1, 2)  # (d, d, w)
        x = x + act(F.conv1d(normed.mT, kernel, layer.mix.bias).mT)
    close(model(ids), model.lm_head(model.ln_f(x)), 1e-9)


# --- segments -------------------------------------------------------------------------------------

BOUNDARIES = {
    "whitespace": {"boundaries": "whitespace"},
    "learned": {"boundaries": "learned", "feed_forward": "gelu"},
    "entropy": {"boundaries": "entropy", "d_head": 4},
    "flat": {"boundaries": "learned", "n_layers": [3]},
}
N = 26
IDS = np.random.default_rng(5).integers(0, 23, (3, N))
IDS[:, 4::7] = 3  # some whitespace


def make_segments(kind, seed=5, **changes):
    """A model whose predictors close some segments in every text."""
    keys = {"family": "dynamic", "n_layers": [2, 2, 1], "whitespace_id": 3, **BOUNDARIES[kind]}
    return make_transformer(seed, **{**keys, **changes})


def formulas(model, ids, boundaries=None):
    """Logits, maps and boundaries in plain loops."""
    tensors = {name: part.numpy() for name, part in model.state_dict().items()}
    return run_segments(tensors, config_json(model.config), ids, boundaries)


@pytest.mark.parametrize("kind", BOUNDARIES)
def test_logits_maps_and_boundaries_are_those_of_the_formulas(tmp_path, kind):
    module = make_segments(kind)
    model, tokens = opened(tmp_path, module, "float64"), Tokens(torch.as_tensor(IDS))
    logits = module(tokens).detach().numpy()  # of all three, whose segments differ in number
    np.testing.assert_allclose(model.run(IDS).logits, logits, atol=1e-12)
    if kind != "flat":
        ends = module.boundaries(tokens).numpy()
        assert ((ends.sum(1) > 3) & (ends.sum(1) < N - 3)).all()
    for row, ids in enumerate(IDS):
        wanted, maps, boundaries = formulas(module, ids)
        if kind != "flat":
            np.testing.assert_array_equal(ends[row], boundaries)
        np.testing.assert_allclose(logits[row], wanted, atol=1e-9)
        for one, other in zip(maps_of(model, ids)[1], maps, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_means_of_segments_and_their_gradient_are_those_of_the_dense_matrix():
    """Of the boundaries, too: weights 1 - (s - number of the segment), divided by their sums."""
    x = torch.randn(2, 9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    soft = torch.tensor([[0, 1, 0, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 0, 0, 0, 0, 1]]).double()
    one, other = soft.clone().requires_grad_(), soft.clone().requires_grad_()
    apart = torch.arange(4) - (other.cumsum(1) - other)[..., None]
    shares = torch.where(apart == 0, 1 - apart, 0.0)
    shares = shares / (shares.sum(1, keepdim=True) + 1e-9)
    wanted, found = torch.einsum("bns,bnd->bsd", shares, x), segment_means(x, one)
    close(found, wanted, 1e-12)
    slopes = torch.randn_like(found)
    ours, theirs = (
        torch.autograd.grad((part * slopes).sum(), leaf)[0]
        for part, leaf in ((found, one), (wanted, other))
    )
    assert theirs.abs().max() > 0.01
    close(ours, theirs, 1e-12)
    # what is masked is in no mean
    x, closes = torch.arange(1.0, 7).double()[None, :, None], torch.tensor([[0, 0, 1, 0, 1, 0.0]])
    keep = torch.tensor([[1, 0, 1, 1, 1, 1]]).bool()
    close(segment_means(x, closes.double(), keep)[0, :, 0], torch.tensor([2, 4.5]).double(), 1e-8)
    assert segment_means(x, torch.zeros(1, 6)).shape == (1, 0, 1)


def test_boundaries_are_drawn_while_training_and_cost_what_the_prior_says():
    model = make_segments("learned", prior=0.25).requires_grad_(True).train()
    ids = torch.tensor(IDS)
    torch.manual_seed(0)
    logits, cost = model.learn(ids)
    assert not torch.equal(logits, model.learn(ids)[0]) and cost > 0
    cost.backward()
    out = model.down[0].boundary["out"]
    assert model.down[0].boundary["in"].weight.grad.abs().max() > 0
    assert torch.equal(model.eval()(ids), model(ids))
    out.weight.data.zero_()
    costs = []
    for logit in (-1.1, -9.0, 9.0):  # about a quarter, none, all
        out.bias.data.fill_(logit)
        costs.append(model.train().learn(ids.repeat(20, 1))[1].item())
    assert costs == sorted(costs)
    # -log P of none of 26 at 1/4, over 26
    assert costs[1] == pytest.approx(-np.log(0.75), abs=0.02)


def test_entropy_rises_where_it_is_above_all_of_the_tokens_before():
    values = np.array([[1.0, 2, 2, 3, 1, 2, 4]])
    assert find_spikes(values, 1).astype(int).tolist() == [[1, 1, 0, 1, 0, 1, 1]]
    assert find_spikes(values, 2).astype(int).tolist() == [[1, 1, 0, 1, 0, 0, 1]]
    model = make_segments("entropy").requires_grad_(True).train()
    _, cost = model.learn(torch.as_tensor(IDS))
    cost.backward()
    assert model.down[0].boundary["out"].bias.grad is not None and cost > 0
    with pytest.raises(HgvizError, match="cannot be trained"):
        make_segments("learned", boundaries="unigram").train().learn(torch.as_tensor(IDS))


# --- several widths -------------------------------------------------------------------------------

WIDE_CLS = {
    "family": "bert", "goal": "classes", "labels": ["no", "yes"], "cls_width": 20,
    "max_positions": 16,
}  # fmt: skip


@pytest.mark.parametrize("keys", [
    {}, {"cls": 2, "norm_first": True, "final_norm": True},
], ids=str)  # fmt: skip
def test_a_wide_cls_is_projected_into_and_out_of_every_layer(keys):
    """By the formulas of WideCLS, around the blocks of a model without."""
    module = make_transformer(**WIDE_CLS, **keys)
    tokens, count = tokens_of(module), module.config.cls
    logits = module(tokens)
    x = module.embed(tokens)
    wide = module.widen(x[:, :count])
    for block in module.middle.values():
        own, block.wide = block.wide, None
        y = block(torch.cat([own.into(wide), x[:, count:]], 1), tokens, None, None, Run())
        wide = wide + own.out(y[:, :count])
        if not module.config.norm_first:
            mean, deviation = wide.mean(-1, keepdim=True), wide.std(-1, False, keepdim=True)
            scaled = (wide - mean) / (deviation**2 + module.config.norm_eps).sqrt()
            wide = scaled * own.ln.weight + own.ln.bias
        x = y
    if module.config.final_norm:
        wide = module.ln_f(wide)
    states = torch.tanh(module.head.pooler(wide))
    expected = module.head.classifier(states.flatten(1))
    assert states.shape[-1] == 20
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


# --- hierarchies ----------------------------------------------------------------------------------


def test_a_string_and_a_depth_tuple_say_the_same():
    shape = parse_hierarchy("2@1 1@3 4@6 1@3 2@1")
    assert shape == hierarchy_from_depth((2, (1, 4, 1), 2), (3, 2))
    assert shape == parse_hierarchy("1@3 4@6 1@3", vanilla=(2, 2))
    assert (shape.pre, shape.middle, shape.post, shape.factors) == ((2, 1), 4, (2, 1), (3, 2))
    assert shape.strides == (1, 3, 6)
    nested = hierarchy_from_depth([1, [1, 2, 1], 2], 2)  # one factor for every level
    assert nested == parse_hierarchy("1@1 1@2 2@4 1@2 2@1")
    assert hierarchy_from_depth(3) == parse_hierarchy("3@1")
    # 12 d^2 n / K + 2 n^2 d / K^2 multiply-adds of a layer
    flat = 12 * 64 * 100 + 2 * 10_000 * 8
    assert parse_hierarchy("1@1").cost(100, 8) == flat
    whole = parse_hierarchy("1@1 1@2 1@1").cost(100, 8)
    assert whole == 2 * flat + 12 * 64 * 50 + 2 * 2500 * 8


few = st.integers(0, 4)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(2, 4)), max_size=4), few, few, few)
def test_every_hierarchy_comes_back_from_its_string(inner, middle, first, last):
    counts, middle = tuple(count for count, _ in inner[1:]), middle + 1
    factors = tuple(factor for _, factor in inner)
    pre, post = ((first, *counts), (last, *counts)) if inner else ((), ())
    shape = Hierarchy(pre, middle, post, factors)
    assert parse_hierarchy(str(shape)) == shape


ILLEGAL = [  # a hierarchy, or a depth and factors; what is wrong
    (("2@1 1-2 2@1",), "it is not a list of LAYERS@FACTOR"),
    (("1@2 1@2",), "the number of stages must be odd"),
    (("1@3 4@6 1@3",), "it starts with a shortened stage, but vanilla_layers"),
    (("1@1 1@2 1@3",), "its factors are not symmetric"),
    (("1@1 1@2 1@3 1@2 1@1",), "factor 3 is not a multiple of the factor 2 around it"),
    (("1@1 0@2 1@1",), "it needs an innermost layer, and at most 1,000 layers in all"),
    (("1@1 1@131072 1@1",), "it shortens by more than 65,536"),
    (((1, 2), 2), "a depth must be a number or (before, inner, after)"),
    (((1, (1, 2, 1), 1), (2,)), "shorten_factor (2,) must be a number >= 2 for each"),
]


def test_an_illegal_hierarchy_is_refused_in_one_line():
    for given_, why in ILLEGAL:
        read = parse_hierarchy if len(given_) == 1 else hierarchy_from_depth
        with pytest.raises(HgvizError) as error:
            read(*given_)
        line = f"the hierarchy {given_[0]!r} is invalid: {why}"
        assert str(error.value).startswith(line) and "\n" not in str(error.value)


# --- what can be ----------------------------------------------------------------------------------


def test_digests_of_what_is_bundled_stay():
    softmax = open_model(resource("sample/softmax")).spec.digest
    assert softmax.startswith("b6adc29d6186dd60")  # as it was first published
    capture = open_capture(resource("sample/first.h5"))
    assert open_model(resource("sample/hourglass")).spec.digest == capture.spec.digest


HEADS, WIDTH, LONGEST = PLAIN["n_heads"], PLAIN["d_model"], 11
HEAD = WIDTH // HEADS


def attend(attention, x, keep=None, projection=None):
    """The output (n, d) of a layer for x (1, n, d), its maps (H, n, K), and its tensors."""
    recorder = GateGradientRecorder()
    out = attention(x, x, keep, None, Run(observers=[recorder]), projection)
    (call,) = recorder.calls.values()
    maps = weights(call.q, call.k, attention.rule, relative=call.relative)[0]
    return out[0], maps, attention.state_dict()


def projected(state, name, x):
    """(H, n, D)"""
    weight = state[f"{name}.weight"].reshape(HEADS, HEAD, WIDTH)
    return torch.einsum("nd,hed->hne", x, weight) + state[f"{name}.bias"].reshape(HEADS, 1, HEAD)


def output(state, maps, values):
    """(n, d) of maps (H, n, K) and values (H, K, D)."""
    heads = torch.einsum("hir,hre->ihe", maps, values).flatten(1)
    return heads @ state["o.weight"].T + state["o.bias"]


def normal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- slots ----------------------------------------------------------------------------------------

SLOT_COUNT = 4
SHARING = ("none", "headwise", "kv", "layerwise")
KEYS = {"form": "encoder", "goal": "states", "max_positions": LONGEST, "slots": SLOT_COUNT}


def projections(model, sharing):
    """E and F of layer 1, (H, r, L) each, and their biases (H, r)."""
    block = model.middle["1"]
    part = {"none": block.attn.mixtures, "layerwise": model.projection}.get(
        sharing, block.projection
    )
    assert hasattr(part, "v") == (sharing in ("none", "headwise"))
    for side in (part.k, part.v if hasattr(part, "v") else part.k):
        assert len(side.weight) == (HEADS if sharing == "none" else 1)
        bias = torch.zeros(HEADS, SLOT_COUNT).double() if side.bias is None else side.bias
        yield side.weight.expand(HEADS, -1, -1), bias.expand(HEADS, -1)


@pytest.mark.parametrize("bias, padded", [(False, False), (True, True)])
@pytest.mark.parametrize("sharing", SHARING)
def test_keys_and_values_are_projected_as_the_paper_says(sharing, bias, padded):
    model = make_transformer(**KEYS, slots_sharing=sharing, slots_bias=bias)
    attention, x = model.middle["1"].attn, normal(1, 7, WIDTH)
    keep = torch.arange(7)[None] < 5 if padded else None
    out, maps, state = attend(attention, x, keep, model.middle["1"].projection or model.projection)
    q, k, v = (projected(state, name, x[0]) for name in "qkv")
    if padded:
        k, v = (torch.where(keep[0][:, None], part, 0.0) for part in (k, v))
    (e, e_bias), (f, f_bias) = projections(model, sharing)
    k = torch.einsum("hrn,hne->hre", e[..., :7], k) + e_bias[..., None]
    v = torch.einsum("hrn,hne->hre", f[..., :7], v) + f_bias[..., None]
    wanted = torch.softmax(torch.einsum("hie,hre->hir", q, k) / HEAD**0.5, -1)
    close(maps, wanted)
    close(out, output(state, wanted, v))


@pytest.mark.parametrize("sharing", ["tokens", "none", "layerwise"])
def test_the_tokens_behind_slots_are_kept_read_and_rolled_out(sharing, tmp_path):
    model = opened(tmp_path / "m", make_transformer(**KEYS, slots_sharing=sharing), "float64")
    prompt = model.from_ids([3, 1, 4, 1, 5, 9, 2, 6], [1] * 6 + [0] * 2)
    tasks.capture(model, prompt, tmp_path / "a.h5")
    capture = open_capture(tmp_path / "a.h5")
    tokens, maps = of_tokens(capture), capture.maps[1]
    if sharing == "tokens":
        f = model.module.projection.weight.expand(HEADS, -1, -1)
    else:
        _, (f, _) = projections(model.module, sharing)
    for head in range(HEADS):
        found = tokens.maps[1].read(head)
        wanted = maps.read(head).astype(np.float64) @ f[head, :, :8].detach().numpy()
        wanted[:, 6:] = 0
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        np.testing.assert_array_equal(tokens.maps[1].read(head, (2, 5), (1, 4)), found[2:5, 1:4])
    assert tokens.maps[1].signed and tokens.key_prompt(1) == capture.prompt
    tasks.capture(model, capture.prompt, tmp_path / "d.h5", dense=True)
    found = of_tokens(open_capture(tmp_path / "d.h5")).maps[1].read(1)
    np.testing.assert_allclose(found, tokens.maps[1].read(1), atol=1e-6)
    product = np.eye(8)
    for one in tokens.maps:
        heads = np.abs([one.read(head).astype(np.float64) for head in one.heads])
        mean = (heads / heads.sum(2, keepdims=True)).mean(0)
        product = 0.5 * (mean @ product + product)
    np.testing.assert_allclose(rollout(capture), product, atol=1e-6)


# --- synthesised scores ---------------------------------------------------------------------------

RANK = 3
MIXES = ("dense", "fixed", "random+dot+factorised+fixed")
SYNTHETIC_ENCODER = {"form": "encoder", "goal": "states", "max_positions": LONGEST, "rank": RANK}
SYNTHETIC_DECODER = {"form": "decoder", "max_positions": LONGEST, "rank": RANK}


def scores_of(state, form, x):
    """(H, n, n) of one text x (n, d), as the paper writes them, from the tensors of a layer."""
    n, at = len(x), f"synthesis.{form}."

    def of(name, *shape):
        return state[at + name].reshape(HEADS, *shape)

    if form == "dot":
        q, k = (projected(state, name, x) for name in "qk")
        return torch.einsum("hie,hje->hij", q, k) / HEAD**0.5
    if form == "dense":
        first = torch.einsum("nd,hed->hne", x, of("q.weight", HEAD, WIDTH))
        hidden = torch.relu(first + of("q.bias", 1, HEAD))
        second = torch.einsum("hie,hej->hij", hidden, of("k.weight", HEAD, LONGEST))
        return (second + of("k.bias", 1, LONGEST))[:, :, :n]
    if form == "factorised":
        r1, r2 = (of(f"{name}.weight", RANK, LONGEST) for name in "qk")
        return torch.einsum("hei,hej->hij", r1, r2)[:, :n, :n]
    # R[i, j]: the row of a query is a column of what is stored
    return of("q.weight", LONGEST, LONGEST).transpose(1, 2)[:, :n, :n]


@pytest.mark.parametrize("keys", [SYNTHETIC_ENCODER, SYNTHETIC_DECODER], ids=["encoder", "decoder"])
@pytest.mark.parametrize("form", MIXES)
def test_every_form_is_its_closed_form(form, keys):
    attention, x = make_transformer(**keys, scores=form).middle["1"].attn, normal(1, 7, WIDTH)
    out, maps, state = attend(attention, x)
    forms = form.split("+")
    shares = torch.softmax(state["synthesis.mix"], 1) if len(forms) > 1 else torch.ones(HEADS, 1)
    parts = torch.stack([scores_of(state, one, x[0]) for one in forms])
    scores = torch.einsum("fhij,hf->hij", parts, shares.double())
    if keys is SYNTHETIC_DECODER:
        scores = scores.masked_fill(torch.ones(7, 7).triu(1).bool(), -torch.inf)
    close(maps, torch.softmax(scores, -1))
    close(out, output(state, torch.softmax(scores, -1), projected(state, "v", x[0])))


# --- heads that share queries and keys ------------------------------------------------------------


def test_heads_that_share_queries_and_keys_mix_them_each_in_its_own_way():
    """Cordonnier et al. 2020, section 4: q diag(m) k, and what each head adds by query and key."""
    attention = make_transformer(form="encoder", goal="states", shared_width=7).middle["1"].attn
    x = normal(1, 7, WIDTH)
    out, maps, state = attend(attention, x)
    q, k = (x[0] @ state[f"{side}.weight"].T for side in "qk")
    scores = torch.einsum("ie,he,je->hij", q, state["mix"], k)
    scores = scores + (x[0] @ state["key_bias.weight"].T).T[:, None]
    by_query = x[0] @ state["query_bias.weight"].T + state["query_bias.bias"]
    wanted = torch.softmax((scores + by_query.T[..., None]) / HEAD**0.5, -1)
    close(maps, wanted)
    close(out, output(state, wanted, projected(state, "v", x[0])))


# --- what cannot be -------------------------------------------------------------------------------

ENCODER, DECODER = {"form": "encoder", "goal": "states"}, {"form": "decoder"}
SLOTS = {"slots": 4, "max_positions": 9}
REFUSED = [
    *((make_config, *row) for row in (
        ({"widths": (12,)}, "each of the 2 levels"), ({"widths": (12, 7)}, "an even width, not 7"),
    )),
    *((make_transformer, *row) for row in (
        ({**DECODER, **SLOTS}, "need an encoder"),
        ({**ENCODER, **SLOTS, "slots": 99}, "at most max"),
        ({**ENCODER, **SLOTS, "positions": "rotary"}, "rotary positions cannot be used with slots"),
        ({"form": "encoder", "goal": "classes"}, "a classifier must be an encoder with labels"),
        ({**DECODER, "d_model": 13}, "13 / 2 is not a whole number"),
        ({**DECODER, "activations": "ymisch"}, "unknown activation 'ymisch'"),
        ({**ENCODER, "cls_width": 20}, "needs the goal classes"), ({"cls_width": -1}, "cls_width"),
    )),
    *((lambda **keys: make_segments("learned", **keys), *row) for row in (
        ({"n_layers": [1, 2]}, "or three"), ({"n_layers": [0, 0, 0]}, "at least one layer"),
        ({"boundaries": "whitespace", "whitespace_id": None}, "whitespace_id"),
        ({"whitespace_id": 23}, "the largest id is 22"), ({"prior": 1.5}, "prior"),
    )),
    *((make_unattending, *row) for row in (
        ({"family": "window", "window": 4, "causal": False}, "no centre"),
        ({"family": "window"}, "window"), ({"family": "lstm", "n_heads": 2}, "n_heads"),
    )),
    *((make_transformer, *row) for row in (
        ({"positions": "quadratic", "activations": "linear"}, "used with linear attention"),
        ({**KEYS, "slots_sharing": "kv", "slots": 0}, "need slots"),
        ({"shared_width": 12, "positions": "rotary"}, "cannot be used with shared_width"),
    )),
    *((lambda **keys: make_transformer(**SYNTHETIC_DECODER, **keys), *row) for row in (
        ({"scores": "dence"}, "unknown scores 'dence'"), ({"scores": "dot+"}, "unknown scores ''"),
        ({"scores": "dense", "activations": "linear"}, "synthesised scores cannot be used"),
    )),
]  # fmt: skip


def test_a_model_that_cannot_be_is_refused_in_one_line():
    for make, keys, words in REFUSED:
        with pytest.raises(HgvizError) as error:
            make(**keys)
        assert words in str(error.value) and "\n" not in str(error.value)
