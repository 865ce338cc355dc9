"""Heads that share queries and keys: the same scores as ordinary heads, in float64."""

import json

import numpy as np
import pytest
import torch

from hgviz.core import HeadId, HgvizError
from hgviz.models import checkpoints, open_model
from hgviz.models.checkpoints import save
from hgviz.models.config import outline, shapes_of
from hgviz.models.head_weights import query_key_products
from hgviz.models.layers import Attention
from hgviz.models.model import module_of
from hgviz.models.pruning import remove_heads
from hgviz.models.run import CaptureRecorder
from hgviz.tasks import capture
from tests.closeness import scaled_error
from tests.models.building import write_transformer
from tests.models.folders import own_bert, own_gpt2
from tests.models.test_heads_off import given

KINDS = {
    "bert": lambda at: own_bert(at, goal="masked"),
    "classifier": own_bert,
    "gpt2": own_gpt2,
    "encoder-decoder": write_transformer,
    "decoder with cross": lambda at: write_transformer(at, form="decoder", cross=True),
    "slots": lambda at: write_transformer(
        at, family="yubert", labels=["a", "b"], slots=4, max_positions=20, vocab_size=23
    ),
    "Linformer": lambda at: write_transformer(
        at, form="encoder", goal="masked", slots=4, max_positions=20, slots_sharing="none"
    ),
    "quadratic": lambda at: write_transformer(at, form="decoder", positions="quadratic"),
    "kernels": lambda at: write_transformer(at, form="decoder", activations=["poly2", "raw"]),
    "activations": lambda at: write_transformer(
        at, form="encoder", goal="masked", n_heads=4, top_k=2,
        activations=["softmax", "ymish", "tanh", "topk"],
    ),
}  # fmt: skip


def without_biases(path):
    """The same model, its queries and keys without biases."""
    found = checkpoints.read(path)
    biases = [name for name in found.tensors if name.endswith((".q.bias", ".k.bias"))]
    zeros = {name: torch.zeros_like(found.tensors[name]) for name in biases}
    save(path, found.config, {**found.tensors, **zeros})
    return path


def write_shared(path, out):
    """The same model in float64 with heads that share queries and keys, each mixing its own part of
    those of all heads: its scores are those of the model (Cordonnier et al. 2020, section 4)."""
    found = checkpoints.read(path)
    tensors = {name: one.double() for name, one in found.tensors.items()}
    for name, part in outline(found.config).named_modules():
        if not isinstance(part, Attention):
            continue
        split = len(part.layer.heads), part.d_head
        q, k = (tensors[f"{name}.{side}.weight"].unflatten(0, split) for side in "qk")
        b_q, b_k = (
            tensors.pop(f"{name}.{side}.bias", torch.zeros(split).double()).view(split)
            for side in "qk"
        )
        tensors[f"{name}.key_bias.weight"] = torch.einsum("hk,hkd->hd", b_q, k)
        tensors[f"{name}.query_bias.weight"] = torch.einsum("hk,hkd->hd", b_k, q)
        tensors[f"{name}.query_bias.bias"] = (b_q * b_k).sum(1)
        tensors[f"{name}.mix"] = torch.eye(split[0]).double().repeat_interleave(split[1], 1)
    config = found.config.replace(shared_width=found.config.d_model)
    assert {name: tuple(one.shape) for name, one in tensors.items()} == shapes_of(config)
    save(out, config, tensors)
    return out


def maps(model):
    """The weights of every layer for one text, and its logits."""
    found = {}
    ids = {name: one[0] for name, one in given(model).items()}
    if model.takes_states:
        prompt = model.from_states(ids["encoder_states"])
        target = model.from_ids(ids["ids"])
    else:
        prompt = model.from_ids(ids["ids"])
        both = model.spec.form == "encoder-decoder"
        target = model.from_ids(ids["decoder_ids"]) if both else None
    logits = model.trace(prompt, target, observers=[CaptureRecorder(found.__setitem__, dense=True)])
    return [found[at].values for at in sorted(found)], logits


@pytest.mark.parametrize("biases", [True, False], ids=["biases", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_maps_stay_what_they_were(tmp_path, kind, biases):
    path = KINDS[kind](tmp_path / "own")
    path = path if biases else without_biases(path)
    own = open_model(path, dtype="float64")
    new = open_model(write_shared(path, tmp_path / "shared"), dtype="float64")
    apart = own.run(**given(own)).logits - new.run(**given(new)).logits
    assert np.abs(apart).max() < 1e-9
    one, other = maps(own), maps(new)
    for a, b in zip(one[0], other[0], strict=True):
        assert np.abs(a - b).max() < 1e-9
    assert np.abs(one[1] - other[1]).max() < 1e-9
    assert new.spec.heads == own.spec.heads
    assert new.spec.digest != own.spec.digest
    assert new.spec.parameters == sum(t.numel() for t in checkpoints.read(tmp_path / "shared")
                                      .tensors.values())  # fmt: skip


def test_scores_are_the_formula(tmp_path):
    path = write_shared(own_gpt2(tmp_path / "own"), tmp_path / "shared")
    found = checkpoints.read(path)
    own = checkpoints.read(tmp_path / "own").tensors
    name, width = "middle.0.attn", 8
    (one, _), tensors = query_key_products(found), found.tensors
    for head in range(3):
        part = slice(head * width, (head + 1) * width)
        assert one.mix[head].tolist() == [float(part.start <= i < part.stop) for i in range(24)]
        bias = own[f"{name}.q.bias"][part].double()
        wanted = bias @ own[f"{name}.k.weight"][part].double()
        assert torch.allclose(tensors[f"{name}.key_bias.weight"][head], wanted, atol=1e-15)
    x = np.random.default_rng(0).normal(size=(5, 24))
    q, k = (own[f"{name}.{side}.weight"].double().numpy() for side in "qk")
    c = tensors[f"{name}.key_bias.weight"].numpy()
    scores = [
        x @ one.q.T @ np.diag(mix) @ one.k @ x.T + x @ at
        for mix, at in zip(one.mix, c, strict=True)
    ]
    for head, score in enumerate(scores):
        part = slice(head * width, (head + 1) * width)
        own_bias = own[f"{name}.q.bias"][part].double().numpy()
        wanted = (x @ q[part].T + own_bias) @ (k[part] @ x.T)  # b_K is left out: the same in a row
        np.testing.assert_allclose(score, wanted, atol=1e-12)


@pytest.mark.parametrize("activation", ["ymish", "tanh", "topk:3"])
def test_another_activation_sees_the_biases_that_softmax_does_not(tmp_path, activation):
    path = own_bert(tmp_path / "own")
    new = write_shared(path, tmp_path / "shared")
    one, other = (open_model(at, dtype="float64", activation=activation) for at in (path, new))
    ids = np.arange(9)
    assert np.abs(one.run(ids).logits - other.run(ids).logits).max() < 1e-9


def test_heads_are_sliced_and_switched_off_as_any_others(tmp_path):
    path = write_shared(own_bert(tmp_path / "own"), tmp_path / "shared")
    off = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 1), HeadId(1, 2)})
    small = remove_heads(checkpoints.read(path), off)
    save(tmp_path / "small", small.config, small.tensors)
    masked = open_model(path, dtype="float64")
    sliced = open_model(tmp_path / "small", dtype="float64")
    apart = masked.run(**given(masked), off=off).logits - sliced.run(**given(sliced)).logits
    assert np.abs(apart).max() < 1e-12
    assert [one.mix.shape for one in query_key_products(small)] == [
        (2, 24)
    ]  # of the layer with heads
    assert sliced.spec.parameters < masked.spec.parameters


def test_a_capture_holds_what_gives_the_maps_again(tmp_path):
    model = open_model(
        write_shared(own_bert(tmp_path / "own"), tmp_path / "shared"), dtype="float64"
    )
    prompt = model.from_ids(np.arange(11))
    captured = capture(model, prompt)
    dense = {}
    model.trace(prompt, observers=[CaptureRecorder(dense.__setitem__, dense=True)])
    for at, known in enumerate(captured.maps):
        for head in range(3):
            assert scaled_error(known.read(head), dense[at].values[head]) < 1e-6


def test_gradients_flow_as_in_ordinary_heads(tmp_path):
    own = checkpoints.read(own_bert(tmp_path / "own"))
    new = checkpoints.read(write_shared(tmp_path / "own", tmp_path / "shared"))
    slopes = []
    for one in (own, new):
        module = module_of(one.config, one.tensors, "cpu", torch.float64)
        value = module.embed.token.weight.requires_grad_()
        module(torch.arange(9)[None])[0, 0].backward()
        slopes.append(value.grad)
    assert torch.allclose(slopes[0], slopes[1], atol=1e-9)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"positions": "rotary"}, "of each head by itself"),
        ({"activations": "linear"}, "not only products"),
    ],
)
def test_a_config_that_contradicts_itself_is_refused(tmp_path, keys, why):
    path = write_shared(write_transformer(tmp_path / "own"), tmp_path / "shared")
    where = path / "config.json"
    where.write_text(json.dumps({**json.loads(where.read_text()), **keys}))
    with pytest.raises(HgvizError, match=why):
        open_model(path)


def test_digests_of_models_that_share_nothing_are_what_they_were(tmp_path):
    path = write_transformer(tmp_path / "own")
    before = open_model(path).spec.digest
    where = path / "config.json"
    data = json.loads(where.read_text())
    assert data.pop("shared_width") == 0
    where.write_text(json.dumps(data))
    assert open_model(path).spec.digest == before
