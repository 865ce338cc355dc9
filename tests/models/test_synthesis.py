"""Scores that no two tokens make, against their closed forms (Tay et al. 2021, models.md C)."""

import numpy as np
import pytest
import torch
from torch import Tensor

from hgviz import tasks
from hgviz.core import HgvizError, finish
from hgviz.models.blocks import Pass
from hgviz.models.config.transformer import SCORES
from hgviz.models.generation import Writing
from hgviz.models.model import open_model
from hgviz.models.synthesis import Synthesis
from hgviz.models.weighing import weights
from hgviz.store import open_capture
from tests.models.building import PLAIN, make_transformer, write_transformer

HEADS, WIDTH, LONGEST, RANK = PLAIN["n_heads"], PLAIN["d_model"], 11, 3
HEAD = WIDTH // HEADS
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
    x, met = torch.randn(1, 7, WIDTH).double(), {}
    found = attention(x, x, None, None, Pass(met=met))
    maps = weights(met[1].q, met[1].k, attention.rule)[0]
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
    capture = finish(tasks.capture(model, prompt, tmp_path / "a.h5"))
    again = open_capture(tmp_path / "a.h5")
    assert [one.scores for one in again.spec.layers] == ["dot", form]
    dense = finish(tasks.capture(model, prompt, dense=True))
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
        finish(tasks.capture(model, model.from_ids(ids))).maps[1].read(0)
        for ids in ([1, 2, 3, 4, 5, 6], [9, 8, 7, 6, 5, 4])
    )
    assert np.array_equal(one, other) == same


def test_padding_is_never_looked_at(tmp_path):
    model = opened(tmp_path / "model", **ENCODER, scores="random+dense")
    keep = [1, 1, 1, 0, 0]
    found = model.run([1, 2, 3, 4, 5], keep).logits[:3]
    np.testing.assert_allclose(found, model.run([1, 2, 3]).logits, atol=1e-12)
    capture = finish(tasks.capture(model, model.from_ids([1, 2, 3, 4, 5], keep)))
    assert not capture.maps[0].read(0)[:, 3:].any()


@pytest.mark.parametrize("form", ["dense", "random", "factorised+dot"])
def test_what_is_written_token_by_token_is_what_one_pass_says(tmp_path, form):
    model = opened(tmp_path / "model", **DECODER, scores=form)
    writing = Writing(model, model.from_ids([1, 2, 3]))
    finish(writing.read())
    for token in (7, 8, 9):
        writing.add(token)
    whole = finish(tasks.capture(model, model.from_ids([1, 2, 3, 7, 8, 9])))
    np.testing.assert_allclose(writing.logits, whole.logits[-1], atol=1e-12)
    for layer in range(2):
        found = writing.factors(layer)
        for name in ("q", "k", "stat"):
            expected = getattr(whole.maps[layer].factors, name)
            np.testing.assert_allclose(getattr(found, name), expected, atol=1e-6)


def test_cross_attention_meets_tokens_whatever_the_scores():
    model = make_transformer(max_positions=LONGEST, scores="random")
    assert [one.scores for one in model.config.layers] == ["random"] * 2 + ["random", "dot"] * 2
    assert model.decoder["0"].cross.synthesis is None


def test_heads_may_weigh_synthesised_scores_by_any_activation(tmp_path):
    model = opened(
        tmp_path / "m", **ENCODER, scores="dense", activations=["ymish", "topk"], top_k=2
    )
    capture = finish(tasks.capture(model, model.from_ids([1, 2, 3, 4])))
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
def test_what_cannot_be_is_refused_in_one_line(keys, words):
    with pytest.raises(HgvizError) as caught:
        make_transformer(**{"form": "decoder", **keys})
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_text_that_is_too_long_is_refused(tmp_path):
    model = opened(tmp_path / "model", **DECODER, scores="random")
    with pytest.raises(HgvizError, match="positions for 11"):
        model.run(range(12))
