"""Keys in slots, and scores that are synthesised."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from torch import Tensor

from hgviz import tasks
from hgviz.analysis.mixed import of_tokens
from hgviz.analysis.resolution import rollout
from hgviz.core import HgvizError
from hgviz.maps import DenseMap, LazyMap, Mixed
from hgviz.models.attention import weights
from hgviz.models.layers import Tokens
from hgviz.models.mechanisms import Synthesis
from hgviz.models.model import open_model
from hgviz.models.run import Run
from hgviz.models.transformer import SCORES
from hgviz.models.trials import GateGradientRecorder
from hgviz.store import open_capture, write_capture
from tests.models.building import PLAIN, make_transformer, write_transformer

HEADS, WIDTH, LONGEST, SLOTS = PLAIN["n_heads"], PLAIN["d_model"], 11, 4
HEAD = WIDTH // HEADS
SHARING = ("none", "headwise", "kv", "layerwise")
KEYS = {"form": "encoder", "goal": "states", "max_positions": LONGEST, "slots": SLOTS}


def projections(model, sharing):
    """E and F of layer 1, (H, r, L) each, and their biases (H, r)."""
    block = model.middle["1"]
    part = {"none": block.attn.mixtures, "layerwise": model.projection}.get(
        sharing, block.projection
    )
    assert hasattr(part, "v") == (sharing in ("none", "headwise"))
    both = part.k, part.v if hasattr(part, "v") else part.k
    for one in both:
        assert len(one.weight) == (HEADS if sharing == "none" else 1)
        bias = torch.zeros(HEADS, SLOTS).double() if one.bias is None else one.bias
        yield one.weight.expand(HEADS, -1, -1), bias.expand(HEADS, -1)


def projected(attention, name, x):
    state = attention.state_dict()
    weight = state[f"{name}.weight"].reshape(HEADS, HEAD, WIDTH)
    return torch.einsum("nd,hed->hne", x, weight) + state[f"{name}.bias"].reshape(HEADS, 1, HEAD)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sharing", SHARING)
def test_keys_and_values_are_projected_as_the_paper_says(sharing, bias, padded):
    model = make_transformer(**KEYS, slots_sharing=sharing, slots_bias=bias)
    attention, n = model.middle["1"].attn, 7
    x, recorder = torch.randn(1, n, WIDTH).double(), GateGradientRecorder()
    keep = torch.arange(n)[None] < 5 if padded else None
    given = model.middle["1"].projection or model.projection
    found = attention(x, x, keep, None, Run(observers=[recorder]), given)
    (e, e_bias), (f, f_bias) = projections(model, sharing)
    q, k, v = (projected(attention, name, x[0]) for name in "qkv")
    if padded:
        k, v = (torch.where(keep[0][:, None], one, 0.0) for one in (k, v))
    k = torch.einsum("hrn,hne->hre", e[..., :n], k) + e_bias[..., None]
    v = torch.einsum("hrn,hne->hre", f[..., :n], v) + f_bias[..., None]
    maps = torch.softmax(torch.einsum("hie,hre->hir", q, k) / HEAD**0.5, -1)
    whole = weights(recorder.calls[1].q, recorder.calls[1].k, attention.rule)[0]
    torch.testing.assert_close(whole, maps, rtol=0, atol=1e-9)
    state = attention.state_dict()
    heads = torch.einsum("hir,hre->ihe", maps, v).flatten(1)
    closed = heads @ state["o.weight"].T + state["o.bias"]
    torch.testing.assert_close(found[0], closed, rtol=0, atol=1e-9)


def test_headwise_sharing_without_key_biases_is_projecting_the_tokens():
    # E (X W) = (E X) W: what YUBERT projects before the heads are split, kv projects after
    before = make_transformer(**KEYS, slots_shared=False)
    after = make_transformer(**KEYS, slots_sharing="kv")
    state = before.state_dict()
    for name in [one for one in state if one.endswith("projection.weight")]:
        state[name.replace("projection.weight", "projection.k.weight")] = state.pop(name)[None]
    for name in [one for one in state if one.endswith(("attn.k.bias", "attn.v.bias"))]:
        state[name] = torch.zeros_like(state[name])
    after.load_state_dict(state)
    before.load_state_dict({name: state.get(name, one) for name, one in
                            before.state_dict().items()})  # fmt: skip
    text = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    torch.testing.assert_close(before(text), after(text), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sharing", SHARING)
def test_padding_never_reaches_the_slots(sharing):
    model = make_transformer(**KEYS, slots_sharing=sharing, slots_bias=True)
    text, keep = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]]), torch.arange(8)[None] < 5
    other = torch.where(keep, text, text + 1)
    found, changed = (model(Tokens(one, keep))[0, :5] for one in (text, other))
    assert torch.equal(found, changed)
    torch.testing.assert_close(found, model(text[:, :5])[0], rtol=0, atol=1e-12)


# --- the tokens behind slots ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """captured(sharing): a model, and the capture of a text whose last tokens are padding."""
    done = {}

    def make(sharing):
        if sharing not in done:
            folder = tmp_path_factory.mktemp(sharing)
            write_transformer(folder / "m", **KEYS, slots_sharing=sharing)
            model = open_model(folder / "m", dtype="float64")
            prompt = model.from_ids([3, 1, 4, 1, 5, 9, 2, 6], [1] * 6 + [0] * 2)
            tasks.capture(model, prompt, folder / "a.h5")
            done[sharing] = model, open_capture(folder / "a.h5")
        return done[sharing]

    return make


@pytest.mark.parametrize("sharing", ["tokens", *SHARING])
def test_a_map_of_tokens_is_the_map_times_the_mixture_of_values(captured, sharing):
    model, capture = captured(sharing)
    tokens = of_tokens(capture)
    assert [one.shape for one in capture.maps] == [(HEADS, 8, SLOTS)] * 2
    assert [one.shape for one in tokens.maps] == [(HEADS, 8, 8)] * 2
    if sharing == "tokens":
        f = model.module.projection.weight.expand(HEADS, -1, -1)
    else:
        _, (f, _) = projections(model.module, sharing)
    for head in range(HEADS):
        found, slots = tokens.maps[1].read(head), capture.maps[1].read(head)
        expected = slots.astype(np.float64) @ f[head, :, :8].detach().numpy()
        expected[:, 6:] = 0
        np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_array_equal(tokens.maps[1].read(head, (2, 5), (1, 4)), found[2:5, 1:4])
    assert tokens.maps[1].signed and tokens.key_prompt(1) == capture.prompt
    assert tokens.maps[0].summary(0).peak == pytest.approx(np.abs(tokens.maps[0].read(0)).max())


def test_large_maps_of_tokens_are_read_by_tiles(captured):
    random = np.random.default_rng(0)
    _, capture = captured("none")
    slots = capture.maps[0]
    p, f = random.random((2, 600, 5)), random.normal(size=(2, 5, 600)).astype("f4")
    one = Mixed(DenseMap(p.astype("f4"), slots.heads), f)
    expected = p[1].astype("f4").astype("f8") @ f[1]
    np.testing.assert_allclose(one.read(1), expected, atol=1e-6)
    np.testing.assert_array_equal(one.read(1, (250, 300), (500, 600)), one.read(1)[250:300, 500:])
    folded = one.read(1, zoom=3)
    blocks = one.read(1).reshape(75, 8, 75, 8)
    assert np.array_equal(np.abs(folded), np.abs(blocks).max((1, 3)))


@pytest.mark.parametrize("sharing, kept", [
    ("tokens", 1), ("layerwise", 1), ("kv", 2), ("headwise", 2), ("none", 2),
])  # fmt: skip
def test_a_file_keeps_each_mixture_once(captured, sharing, kept):
    _, capture = captured(sharing)
    with h5py.File(capture.path) as file:
        parts = [one["mixture"] for one in file["layers"].values()]
        assert len({h5py.h5o.get_info(one.id).addr for one in parts}) == kept
        assert {len(one) for one in parts} == {HEADS if sharing == "none" else 1}


def test_dense_captures_and_copies_know_their_tokens_too(captured, tmp_path):
    model, capture = captured("none")
    dense = tasks.capture(model, capture.prompt, tmp_path / "d.h5", dense=True)
    write_capture(tmp_path / "c.h5", capture)
    for other in (dense, open_capture(tmp_path / "d.h5"), open_capture(tmp_path / "c.h5")):
        np.testing.assert_allclose(
            of_tokens(other).maps[1].read(1), of_tokens(capture).maps[1].read(1), atol=1e-6
        )


@pytest.mark.parametrize("sharing", ["tokens", "none"])
def test_rollout_multiplies_the_maps_of_tokens(captured, sharing):
    _, capture = captured(sharing)
    whole = np.eye(8)
    for one in of_tokens(capture).maps:
        heads = np.abs([one.read(head).astype(np.float64) for head in one.heads])
        mean = (heads / heads.sum(2, keepdims=True)).mean(0)
        whole = 0.5 * (mean @ whole + whole)
    found = rollout(capture)
    np.testing.assert_allclose(found, whole, atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    rows = tasks.rollout(capture, (3, 5))
    np.testing.assert_allclose(rows, found[3:5], atol=1e-6)


def test_what_is_not_known_is_said_in_one_line(captured):
    _, capture = captured("kv")
    bare = (LazyMap(replace(one.factors, mixture=None), one.heads) for one in capture.maps)
    before = replace(capture, maps=tuple(bare))
    for call in (of_tokens, rollout):
        with pytest.raises(HgvizError, match="does not say which tokens") as found:
            call(before)
        assert "\n" not in str(found.value)
    tokens = of_tokens(capture)
    assert of_tokens(tokens) is tokens
    with pytest.raises(HgvizError, match="looks at tokens already"):
        of_tokens(replace(tokens, maps=capture.maps))


@pytest.mark.parametrize("keys, words", [
    ({"slots": 0, "slots_sharing": "kv"}, "give slots as well"),
    ({"slots_bias": True}, "choose a slots_sharing"),
    ({"slots_sharing": "rowwise"}, "slots_sharing"),
    ({"slots_sharing": "kv", "form": "decoder", "goal": "next"}, "never causal"),
    ({"slots_sharing": "none", "positions": "rotary"}, "no angle"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(keys, words):
    with pytest.raises(HgvizError) as caught:
        make_transformer(**{**KEYS, **keys})
    assert words in str(caught.value) and "\n" not in str(caught.value)


# --- scores that are synthesised ------------------------------------------------------------------


RANK = 3
FORMS = ("dense", "random", "fixed", "factorised", "dot+dense", "random+dot+factorised+fixed")
ENCODER = {"form": "encoder", "goal": "states", "max_positions": LONGEST, "rank": RANK}
DECODER = {"form": "decoder", "max_positions": LONGEST, "rank": RANK}


def scores_of(state: dict[str, Tensor], form: str, x: Tensor) -> Tensor:
    """(H, n, n) of one text x (n, d), as the paper writes them, from the tensors of a layer."""
    n = len(x)

    def of(name: str, *shape: int) -> Tensor:
        return state[name].reshape(HEADS, *shape)

    if form == "dot":
        q, k = (
            torch.einsum("nd,hed->hne", x, of(f"{one}.weight", HEAD, WIDTH))
            + of(f"{one}.bias", 1, HEAD)
            for one in "qk"
        )
        return torch.einsum("hie,hje->hij", q, k) / HEAD**0.5
    at = f"synthesis.{form}."
    if form == "dense":
        first = torch.einsum("nd,hed->hne", x, of(f"{at}q.weight", HEAD, WIDTH))
        hidden = torch.relu(first + of(f"{at}q.bias", 1, HEAD))
        second = of(f"{at}k.weight", HEAD, LONGEST)
        whole = torch.einsum("hie,hej->hij", hidden, second) + of(f"{at}k.bias", 1, LONGEST)
        return whole[:, :, :n]
    if form == "factorised":
        r1, r2 = (of(f"{at}{one}.weight", RANK, LONGEST) for one in "qk")
        return torch.einsum("hei,hej->hij", r1, r2)[:, :n, :n]
    # R[i, j]: the row of a query is a column of what is kept
    return of(f"{at}q.weight", LONGEST, LONGEST).transpose(1, 2)[:, :n, :n]


def weights_of(state: dict[str, Tensor], forms: list[str], x: Tensor, causal: bool) -> Tensor:
    """softmax of the weighted sum, (H, n, n)."""
    each = torch.stack([scores_of(state, form, x) for form in forms])
    shares = torch.ones(HEADS, 1).double()
    if len(forms) > 1:
        mix = torch.exp(state["synthesis.mix"])
        shares = mix / mix.sum(1, keepdim=True)
    whole = torch.einsum("fhij,hf->hij", each, shares)
    if causal:
        whole = whole.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -torch.inf)
    return torch.softmax(whole, -1)


@pytest.mark.parametrize("keys", [ENCODER, DECODER], ids=["encoder", "decoder"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_its_closed_form(form, keys):
    model = make_transformer(**keys, scores=form)
    attention = model.middle["1"].attn
    x, recorder = torch.randn(1, 7, WIDTH).double(), GateGradientRecorder()
    found = attention(x, x, None, None, Run(observers=[recorder]))
    maps = weights(recorder.calls[1].q, recorder.calls[1].k, attention.rule)[0]
    state = attention.state_dict()
    expected = weights_of(state, form.split("+"), x[0], "form" in keys and keys is DECODER)
    torch.testing.assert_close(maps, expected, rtol=0, atol=1e-9)
    values = torch.einsum("nd,hed->hne", x[0], state["v.weight"].reshape(HEADS, HEAD, WIDTH))
    heads = torch.einsum(
        "hij,hje->ihe", expected, values + state["v.bias"].reshape(HEADS, 1, HEAD)
    ).flatten(1)
    closed = heads @ state["o.weight"].T + state["o.bias"]
    torch.testing.assert_close(found[0], closed, rtol=0, atol=1e-9)


def test_all_scores_that_can_be_named_can_be_built():
    whole = Synthesis(SCORES, HEADS, WIDTH, HEAD, LONGEST, RANK, 1.0)
    assert {*whole.state_dict()} > {f"{name}.q.weight" for name in SCORES[1:]}
    assert "fixed.q.weight" not in dict(whole.named_parameters())


def opened(folder, **keys):
    return open_model(write_transformer(folder, **keys), dtype="float64")


@pytest.mark.parametrize("form", FORMS)
def test_a_capture_is_read_again_from_its_file(tmp_path, form):
    model = opened(tmp_path / "model", **DECODER, scores=["dot", form])
    prompt = model.from_ids([1, 2, 3, 4, 5, 6])
    capture = tasks.capture(model, prompt, tmp_path / "a.h5")
    again = open_capture(tmp_path / "a.h5")
    assert [one.scores for one in again.spec.layers] == ["dot", form]
    dense = tasks.capture(model, prompt, dense=True)
    for kept, one, other in zip(again.maps, capture.maps, dense.maps, strict=True):
        assert kept.verify_max_abs < 1e-6
        assert np.array_equal(kept.read(1), one.read(1))
        np.testing.assert_allclose(one.read(1), other.read(1), atol=1e-6)


@pytest.mark.parametrize("form, same", [
    ("random", True), ("fixed", True), ("factorised", True), ("random+factorised", True),
    ("dense", False), ("dot+fixed", False),
])  # fmt: skip
def test_maps_of_places_alone_are_the_same_for_every_text_of_one_length(tmp_path, form, same):
    model = opened(tmp_path / "model", **ENCODER, scores=form)
    one, other = (
        tasks.capture(model, model.from_ids(ids)).maps[1].read(0)
        for ids in ([1, 2, 3, 4, 5, 6], [9, 8, 7, 6, 5, 4])
    )
    assert np.array_equal(one, other) == same


def test_padding_is_never_looked_at(tmp_path):
    model = opened(tmp_path / "model", **ENCODER, scores="random+dense")
    keep = [1, 1, 1, 0, 0]
    found = model.run([1, 2, 3, 4, 5], keep).logits[:3]
    np.testing.assert_allclose(found, model.run([1, 2, 3]).logits, atol=1e-12)
    capture = tasks.capture(model, model.from_ids([1, 2, 3, 4, 5], keep))
    assert not capture.maps[0].read(0)[:, 3:].any()


def test_cross_attention_meets_tokens_whatever_the_scores():
    model = make_transformer(max_positions=LONGEST, scores="random")
    assert [one.scores for one in model.config.layers] == ["random"] * 2 + ["random", "dot"] * 2
    assert model.decoder["0"].cross.synthesis is None


def test_heads_may_weigh_synthesised_scores_by_any_activation(tmp_path):
    model = opened(
        tmp_path / "m", **ENCODER, scores="dense", activations=["ymish", "topk"], top_k=2
    )
    capture = tasks.capture(model, model.from_ids([1, 2, 3, 4]))
    assert capture.maps[0].signed
    assert ((capture.maps[0].read(1) > 0).sum(1) == 2).all()


@pytest.mark.parametrize("keys, words", [
    ({"scores": "dence", "max_positions": 9}, "no scores 'dence'"),
    ({"scores": "dot+", "max_positions": 9}, "no scores ''"),
    ({"scores": "dense"}, "need max_positions"),
    ({"scores": "dense+dense", "max_positions": 9}, "each of its scores once"),
    ({"scores": ["dense"] * 3, "max_positions": 9}, "each of the 2 layers"),
    ({"scores": "dense", "max_positions": 9, "activations": "linear"}, "synthesised scores have"),
    ({"scores": "dense", "max_positions": 9, "activations": "rbf"}, "synthesised scores have"),
    ({"scores": 3, "max_positions": 9}, "scores"),
    ({"scores": "factorised", "rank": 0, "max_positions": 9}, "rank"),
    ({"scores": "dense", "max_positions": 9, "slots": 3, "form": "encoder", "goal": "states"},
     "no places"),
])  # fmt: skip
def test_what_cannot_be_synthesised_is_refused_in_one_line(keys, words):
    with pytest.raises(HgvizError) as caught:
        make_transformer(**{"form": "decoder", **keys})
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_text_that_is_too_long_is_refused(tmp_path):
    model = opened(tmp_path / "model", **DECODER, scores="random")
    with pytest.raises(HgvizError, match="positions for 11"):
        model.run(range(12))
