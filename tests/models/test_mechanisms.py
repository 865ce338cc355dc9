"""Scores and keys that are not those of tokens: quadratic positions, slots, synthesised scores and
heads that share queries and keys, each beside the formulas of its paper."""

import h5py
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgviz import tasks
from hgviz.analysis.composition import of_tokens, rollout
from hgviz.core import HgvizError
from hgviz.models import checkpoints, open_model
from hgviz.models.attention import weights
from hgviz.models.layers import Tokens
from hgviz.models.run import CaptureRecorder, Run
from hgviz.models.trials import GateGradientRecorder
from hgviz.store import open_capture, write_capture
from tests.models.building import (
    PLAIN,
    make_transformer,
    opened,
    own_gpt2,
    texts_for,
    write_shared,
    write_transformer,
)

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


def close(found, wanted, tolerance=1e-9):
    torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)


def draw(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- quadratic positions --------------------------------------------------------------------------

QUADRATIC = {"d_model": 24, "n_heads": 6, "positions": "quadratic", "content": False}
FORMS = {"decoder": {"form": "decoder"}, "encoder": {"form": "encoder", "goal": "masked"}}
CENTRES = {"decoder": [-4, -2, -1, 0, -3, -5], "encoder": [-1, 0, 1, 2, -2, 3]}


def places_of(form, centres=None, spread=None, **keys):
    """A model of which every head looks at places alone."""
    model = make_transformer(**QUADRATIC, **FORMS[form], **keys)
    with torch.no_grad():
        for layer in model.middle.values():
            if centres is not None:
                layer.attn.places.centre.copy_(torch.tensor(centres))
                layer.attn.places.spread.fill_(spread)
    return model


@pytest.mark.parametrize("form", FORMS)
def test_a_layer_of_places_alone_is_its_gaussians_over_their_sums(form):
    attention = places_of(form).middle["0"].attn
    _, maps, _ = attend(attention, torch.zeros(1, 11, 24).double())
    far = torch.arange(11)[None] - torch.arange(11)[:, None].double()
    sides = zip(attention.places.spread, attention.places.centre, strict=True)
    for head, (spread, centre) in enumerate(sides):  # a spread is 1 / sigma
        wanted = torch.exp(-(spread**2) / 2 * (far - centre) ** 2)
        wanted = wanted.tril() if form == "decoder" else wanted
        close(maps[head], wanted / wanted.sum(-1, keepdim=True))


@pytest.mark.parametrize("form", FORMS)
def test_narrow_heads_are_a_convolution(form):
    """As many taps as heads, W_O W_V of a head each (Cordonnier et al. 2020, theorem 1); where a
    tap falls out of the text, it takes the token at the edge."""
    centres, x = CENTRES[form], draw(1, 17, 24)
    attention = places_of(form, centres, 1e3).middle["0"].attn
    out, _, state = attend(attention, x)
    taps = torch.einsum(
        "ohd,hdi->hoi", state["o.weight"].unflatten(1, (6, 4)),
        state["v.weight"].unflatten(0, (6, 4)),
    )[np.argsort(centres)]  # fmt: skip
    bias = state["o.bias"] + state["o.weight"] @ state["v.bias"]
    x = F.pad(x.mT, (-min(centres), max(centres)), mode="replicate")
    close(out, F.conv1d(x, taps.permute(1, 2, 0), bias).mT[0])


# --- slots ----------------------------------------------------------------------------------------

SLOTS = 4
SHARING = ("none", "headwise", "kv", "layerwise")
KEYS = {"form": "encoder", "goal": "states", "max_positions": LONGEST, "slots": SLOTS}


def projections(model, sharing):
    """E and F of layer 1, (H, r, L) each, and their biases (H, r)."""
    block = model.middle["1"]
    part = {"none": block.attn.mixtures, "layerwise": model.projection}.get(
        sharing, block.projection
    )
    assert hasattr(part, "v") == (sharing in ("none", "headwise"))
    for side in (part.k, part.v if hasattr(part, "v") else part.k):
        assert len(side.weight) == (HEADS if sharing == "none" else 1)
        bias = torch.zeros(HEADS, SLOTS).double() if side.bias is None else side.bias
        yield side.weight.expand(HEADS, -1, -1), bias.expand(HEADS, -1)


@pytest.mark.parametrize("bias, padded", [(False, False), (True, True)])
@pytest.mark.parametrize("sharing", SHARING)
def test_keys_and_values_are_projected_as_the_paper_says(sharing, bias, padded):
    model = make_transformer(**KEYS, slots_sharing=sharing, slots_bias=bias)
    attention, x = model.middle["1"].attn, draw(1, 7, WIDTH)
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


@pytest.mark.parametrize("keys", [
    *({"slots_sharing": sharing, "slots_bias": True} for sharing in SHARING),
    {"slots_shared": True}, {"slots_shared": False},
], ids=str)  # fmt: skip
def test_padding_never_reaches_the_slots(keys):
    model = make_transformer(**KEYS, **keys)
    text, keep = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]]), torch.arange(8)[None] < 5
    changed = torch.where(keep, text, text + 1)
    found, other = (model(Tokens(one, keep))[0, :5] for one in (text, changed))
    assert torch.equal(found, other)
    close(found, model(text[:, :5])[0], 1e-12)


@pytest.mark.parametrize("sharing", ["tokens", *SHARING])
def test_the_tokens_behind_slots_are_kept_read_and_rolled_out(sharing, tmp_path):
    model = opened(tmp_path / "m", make_transformer(**KEYS, slots_sharing=sharing), "float64")
    prompt = model.from_ids([3, 1, 4, 1, 5, 9, 2, 6], [1] * 6 + [0] * 2)
    tasks.capture(model, prompt, tmp_path / "a.h5")
    capture = open_capture(tmp_path / "a.h5")
    tokens, maps = of_tokens(capture), capture.maps[1]
    assert [one.shape for one in capture.maps] == [(HEADS, 8, SLOTS)] * 2
    assert [one.shape for one in tokens.maps] == [(HEADS, 8, 8)] * 2
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
    assert tokens.maps[0].summary(0).peak == pytest.approx(np.abs(tokens.maps[0].read(0)).max())
    assert of_tokens(tokens) is tokens
    with h5py.File(capture.path) as file:  # each mixture is stored once
        parts = [layer["mixture"] for layer in file["layers"].values()]
        stored = len({h5py.h5o.get_info(part.id).addr for part in parts})
        assert stored == (1 if sharing in ("tokens", "layerwise") else 2)
        assert {len(part) for part in parts} == {HEADS if sharing == "none" else 1}
    dense = tasks.capture(model, capture.prompt, tmp_path / "d.h5", dense=True)
    write_capture(tmp_path / "c.h5", capture)
    for other in (dense, open_capture(tmp_path / "d.h5"), open_capture(tmp_path / "c.h5")):
        found = of_tokens(other).maps[1].read(1)
        np.testing.assert_allclose(found, tokens.maps[1].read(1), atol=1e-6)
    product = np.eye(8)
    for one in tokens.maps:
        heads = np.abs([one.read(head).astype(np.float64) for head in one.heads])
        mean = (heads / heads.sum(2, keepdims=True)).mean(0)
        product = 0.5 * (mean @ product + product)
    np.testing.assert_allclose(rollout(capture), product, atol=1e-6)
    np.testing.assert_allclose(tasks.rollout(capture, (3, 5)), product[3:5], atol=1e-6)


# --- synthesised scores ---------------------------------------------------------------------------

RANK = 3
MIXES = ("dense", "fixed", "dot+dense", "random+dot+factorised+fixed")
ENCODER = {"form": "encoder", "goal": "states", "max_positions": LONGEST, "rank": RANK}
DECODER = {"form": "decoder", "max_positions": LONGEST, "rank": RANK}


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


@pytest.mark.parametrize("keys", [ENCODER, DECODER], ids=["encoder", "decoder"])
@pytest.mark.parametrize("form", MIXES)
def test_every_form_is_its_closed_form(form, keys):
    attention, x = make_transformer(**keys, scores=form).middle["1"].attn, draw(1, 7, WIDTH)
    out, maps, state = attend(attention, x)
    forms = form.split("+")
    shares = torch.softmax(state["synthesis.mix"], 1) if len(forms) > 1 else torch.ones(HEADS, 1)
    parts = torch.stack([scores_of(state, one, x[0]) for one in forms])
    scores = torch.einsum("fhij,hf->hij", parts, shares.double())
    if keys is DECODER:
        scores = scores.masked_fill(torch.ones(7, 7).triu(1).bool(), -torch.inf)
    close(maps, torch.softmax(scores, -1))
    close(out, output(state, torch.softmax(scores, -1), projected(state, "v", x[0])))


# --- heads that share queries and keys ------------------------------------------------------------

SLOTTED = {"slots": 4, "max_positions": 20, "vocab_size": 23}
SHARED = {
    "gpt2": own_gpt2,
    "encoder-decoder": write_transformer,
    "slots": lambda at: write_transformer(at, family="yubert", labels=["a"], **SLOTTED),
    "quadratic": lambda at: write_transformer(at, form="decoder", positions="quadratic"),
    "kernels": lambda at: write_transformer(at, form="decoder", activations=["poly2", "raw"]),
    "activations": lambda at: write_transformer(
        at, form="encoder", goal="masked", n_heads=4, top_k=2,
        activations=["softmax", "ymish", "tanh", "topk"],
    ),
}  # fmt: skip


def maps_and_logits(model):
    """The weights of every layer for one text, and its logits."""
    maps, texts = {}, {name: one[0] for name, one in texts_for(model).items()}
    if model.takes_states:
        prompt, target = model.from_states(texts["encoder_states"]), model.from_ids(texts["ids"])
    else:
        prompt = model.from_ids(texts["ids"])
        target = model.from_ids(texts["decoder_ids"]) if model.spec.two_texts else None
    logits = model.trace(prompt, target, observers=[CaptureRecorder(maps.__setitem__, dense=True)])
    return [*(maps[at].values for at in sorted(maps)), logits]


@pytest.mark.parametrize("kind", SHARED)
def test_rewritten_with_one_query_and_key_for_all_heads_a_model_stays_what_it_was(tmp_path, kind):
    own = open_model(SHARED[kind](tmp_path / "own"), dtype="float64")
    new = open_model(write_shared(tmp_path / "own", tmp_path / "shared"), dtype="float64")
    assert np.abs(own.run(**texts_for(own)).logits - new.run(**texts_for(new)).logits).max() < 1e-9
    for one, other in zip(maps_and_logits(own), maps_and_logits(new), strict=True):
        assert np.abs(one - other).max() < 1e-9
    assert new.spec.heads == own.spec.heads and new.spec.digest != own.spec.digest
    tensors = checkpoints.read(tmp_path / "shared").tensors
    assert new.spec.parameters == sum(one.numel() for one in tensors.values())


# --- what cannot be -------------------------------------------------------------------------------

REFUSED = [
    ({"positions": "quadratic", "activations": "linear"}, "cannot be used with linear attention"),
    ({**KEYS, "positions": "quadratic"}, "cannot be used with slots"),
    ({"positions": "rotary", "content": False}, "without content"),
    ({**KEYS, "slots_sharing": "kv", "slots": 0}, "need slots"),
    ({**KEYS, "slots_bias": True}, "needs slots_sharing"),
    ({**KEYS, "form": "decoder", "goal": "next"}, "need an encoder"),
    ({**KEYS, "slots_sharing": "none", "positions": "rotary"}, "cannot be used with slots"),
    ({"shared_width": 12, "positions": "rotary"}, "cannot be used with shared_width"),
    ({"shared_width": 12, "activations": "linear"}, "cannot be used with shared_width"),
    *(({"form": "decoder", "max_positions": 9, **keys}, words) for keys, words in (
        ({"scores": "dence"}, "unknown scores 'dence'"), ({"scores": "dot+"}, "unknown scores ''"),
        ({"scores": "dense", "max_positions": None}, "need max_positions"),
        ({"scores": ["dense"] * 3}, "each of the 2 self-attention layers"),
        ({"scores": "dense", "activations": "linear"}, "synthesised scores cannot be used"),
        ({"scores": 3}, "scores"), ({"scores": "factorised", "rank": 0}, "rank"),
        ({"scores": "dense", "slots": 3, "form": "encoder", "goal": "states"}, "used with slots"),
    )),
]  # fmt: skip


def test_what_cannot_be_built_is_one_line():
    for keys, words in REFUSED:
        with pytest.raises(HgvizError) as error:
            make_transformer(**keys)
        assert words in str(error.value) and "\n" not in str(error.value)
