"""Slopes at scores and weights: those of plain autograd through dense maps, and closed forms."""

import numpy as np
import pytest
import torch

from hgviz.core import HeadId, HgvizError
from hgviz.models.blocks import Pass, Tokens, finish_steps
from hgviz.models.measures import gradients
from hgviz.models.measures.variants import attentions
from tests.models.building import make_config, make_hourglass, make_transformer
from tests.models.test_variants import LABELS, MODELS

ACTIVATIONS = [
    "softmax", "topk", "softmax1", "softpick", "sigmoid", "tanh", "swish", "selu", "elu",
    "leaky_relu", "ymish", "linear",
]  # fmt: skip
SOME = [
    *MODELS[::2],
    *(
        (name, make_transformer(form="encoder", activations=name, top_k=3, **LABELS))
        for name in ACTIVATIONS
    ),
    (
        "normed",
        make_transformer(form="encoder", activations="ymish", norms={"ymish": "l2"}, **LABELS),
    ),
    ("relative", make_hourglass(make_config(causal=True, positions="relative"))),
]
NAMES = [name for name, _ in SOME]


def text(model, length=11):
    """One text with padding at its end, two where the model reads two."""
    random = torch.Generator().manual_seed(2)

    def one(length):
        ids = torch.randint(0, 23, (1, length), generator=random)
        return Tokens(ids, (torch.arange(length) < length - 2)[None])

    if getattr(model.config, "form", "") != "encoder-decoder":
        return one(length)
    target, source = one(length), one(length - 3)
    return Tokens(target.ids, target.keep, source=source)


def asked(logits):
    """Some number that depends on every logit."""
    return (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum()


def plain(model, tokens, quantity, monkeypatch, off=frozenset()):
    """{layer: (scores, weights, dL/dS, dL/dA)} by autograd through dense maps, nothing else."""
    kept = {}

    def attend(q, k, v, rule, *, keep=None, relative=None, off=(), **_):
        from hgviz.models.weighing import alike, scored, weigh

        rows, maps, leaves = torch.arange(q.shape[2]), [None] * q.shape[1], []
        scores = [None] * q.shape[1]
        for one in alike(q, k, rule, relative):
            found, seen = scored(one, rows, keep)
            for at, place in enumerate(one.places):
                noise = torch.zeros(found.shape[-2:], dtype=q.dtype, requires_grad=True)
                shifted = found[:, at] + noise
                scores[place] = torch.where(seen[:, 0], found[:, at], 0.0)[0].detach()
                weights = weigh(shifted, seen[:, 0], one.activation, one.norm, one.rule.top_k_of(0))
                more = torch.zeros_like(noise, requires_grad=True)
                leaves.append((place, noise, more, seen[0, 0]))
                maps[place] = weights + more * seen[:, 0]
        kept[len(kept)] = (leaves, scores, [one[0].detach() for one in maps])
        context = torch.stack(maps, 1) @ v if maps else torch.zeros_like(q)
        if keep is not None and rule.empty_rows == "uniform":
            from hgviz.models.attention import _empty

            context = torch.where(
                _empty(rule, q.shape[-2], keep), v.mean(-2, keepdim=True), context
            )
        for place in off:
            context = context.index_fill(1, torch.tensor([place]), 0.0)
        return context

    with monkeypatch.context() as patch:
        patch.setattr("hgviz.models.blocks.attend", attend)
        value = quantity(finish_steps(model.steps(tokens, Pass(off))))
    found = {}
    for layer, (leaves, scores, maps) in kept.items():
        if not leaves:
            continue
        flat = [part for _, noise, more, _ in leaves for part in (noise, more)]
        slopes = torch.autograd.grad(value, flat, retain_graph=True, allow_unused=True)
        for at, (place, noise, _, _) in enumerate(leaves):
            zero = torch.zeros_like(noise)
            pair = [zero if one is None else one for one in slopes[2 * at : 2 * at + 2]]
            found[layer, place] = (scores[place], maps[place], *pair)
    return float(value.detach()), found


@pytest.mark.parametrize(("name", "model"), SOME, ids=NAMES)
def test_slopes_are_those_of_autograd_through_dense_maps(name, model, monkeypatch):
    model.requires_grad_(False)
    tokens = text(model)
    value, expected = plain(model, tokens, asked, monkeypatch)
    found = gradients.Gradients(model, tokens, asked)
    assert abs(found.value - value) <= 1e-9 * max(1, abs(value))
    seen = set()
    for layer in found.layers:
        heads = attentions(model)[layer].layer.heads
        for block in found.blocks(layer):
            for at, head in enumerate(block.heads):
                wanted = expected[layer, heads.index(head)]
                rows = slice(block.rows.start, block.rows.stop)
                for one, other in zip(
                    (block.scores, block.weights, block.at_scores, block.at_weights),
                    wanted,
                    strict=True,
                ):
                    other = other.numpy()[rows]
                    assert np.abs(one[at] - other).max() <= 1e-9 * (1 + np.abs(other).max())
                seen.add((layer, head))
    assert seen == {(one.layer.index, h) for one in attentions(model) for h in one.layer.heads}


def test_blocks_of_a_few_rows_give_what_all_rows_together_give(monkeypatch):
    model = make_transformer(form="decoder", activations="ymish", n_layers=2).requires_grad_(False)
    found = gradients.Gradients(model, text(model, 40), asked)
    monkeypatch.setattr("hgviz.models.weighing.ROWS", 16)
    blocks = list(found.blocks(1))
    assert len(blocks) == 3
    for head in (0, 1):
        whole = found.head(HeadId(1, head))
        for name in ("scores", "weights", "at_scores", "at_weights"):
            parts = np.concatenate([getattr(one, name)[head] for one in blocks])
            assert np.abs(parts - getattr(whole, name)[0]).max() <= 1e-12
    some = found.head(HeadId(1, 1), range(5, 9))
    assert np.abs(some.at_scores[0] - found.head(HeadId(1, 1)).at_scores[0][5:9]).max() <= 1e-12


@pytest.mark.parametrize("activation", ["ymish", "topk", "swish"])
def test_maps_too_large_to_keep_are_computed_again_on_the_way_back(activation, monkeypatch):
    model = make_transformer(
        form="decoder", activations=activation, top_k=4, n_layers=2
    ).requires_grad_(False)
    tokens = text(model, 40)
    kept = gradients.Gradients(model, tokens, asked)
    monkeypatch.setattr("hgviz.models.weighing.ROWS", 16)
    monkeypatch.setattr("hgviz.models.attention.AGAIN", 1)
    again = gradients.Gradients(model, tokens, asked)
    assert again.value == pytest.approx(kept.value, rel=1e-12)
    for head in (HeadId(0, 0), HeadId(1, 1)):
        one, other = kept.head(head), again.head(head)
        assert np.abs(one.at_scores - other.at_scores).max() <= 1e-12
        assert np.abs(one.at_weights - other.at_weights).max() <= 1e-12


def test_a_small_step_changes_the_loss_as_the_slope_says():
    model = make_transformer(form="encoder", activations="ymish", **LABELS).requires_grad_(False)
    tokens, part = text(model), attentions(model)[0]
    found = gradients.Gradients(model, tokens, asked)
    slopes = found.head(HeadId(0, 1))
    # scores of head 1 grow with its queries: dL/dq = scale dL/dS k
    with torch.inference_mode():
        met = found._met[0]
        step = torch.zeros_like(part.q.bias)
        step[part.d_head :] = 1e-6
        expected = part.rule.scale_of(1) * np.einsum(
            "qk,kd->", slopes.at_scores[0], met.k[0, 1].numpy()
        )
        part.q.bias += step
        more = float(asked(finish_steps(model.steps(tokens, Pass()))))
        part.q.bias -= 2 * step
        less = float(asked(finish_steps(model.steps(tokens, Pass()))))
    assert abs((more - less) / 2e-6 - expected) <= 1e-5 * (1 + abs(expected))


def test_the_slope_of_softmax_is_its_jacobian_and_sums_to_nothing():
    model = make_transformer(form="encoder", **LABELS).requires_grad_(False)
    found = gradients.Gradients(model, text(model), asked).head(HeadId(1, 0))
    a, g = found.weights[0], found.at_weights[0]
    assert np.abs(found.at_scores[0] - a * (g - (a * g).sum(1, keepdims=True))).max() <= 1e-12
    assert np.abs(found.at_scores[0].sum(1)).max() <= 1e-12


def test_the_slope_of_ymish_is_its_derivative():
    kind = {"activations": "ymish", "norms": {"ymish": "none"}}
    model = make_transformer(form="encoder", **kind, **LABELS).requires_grad_(False)
    found = gradients.Gradients(model, text(model), asked).head(HeadId(0, 0))
    s = np.abs(found.scores[0])
    expected = found.at_weights[0] * (np.tanh(s) + s / np.cosh(s) ** 2)
    assert np.abs(found.at_scores[0] - expected).max() <= 1e-12


def test_nothing_goes_through_a_head_that_is_off(monkeypatch):
    model = make_transformer(form="encoder", n_layers=2, **LABELS).requires_grad_(False)
    tokens, off = text(model), frozenset({HeadId(0, 1)})
    found = gradients.Gradients(model, tokens, asked, off)
    assert not found.head(HeadId(0, 1)).at_scores.any()
    _, expected = plain(model, tokens, asked, monkeypatch, off)
    assert np.abs(found.head(HeadId(0, 0)).at_scores[0] - expected[0, 0][2].numpy()).max() <= 1e-10


def test_what_can_be_asked():
    logits = torch.randn(1, 5, 7, dtype=torch.float64)
    assert gradients.logit(3)(logits) == logits[0, -1, 3]
    assert gradients.logit(3, 1)(logits) == logits[0, 1, 3]
    assert gradients.logit(2)(logits[:, 0]) == logits[0, 0, 2]
    ids = np.array([4, 1, 2, 6, 0])
    expected = -torch.log_softmax(logits[0], -1)[range(4), ids[1:]].sum()
    assert abs(gradients.next_token(ids)(logits) - expected) <= 1e-12
    p = torch.softmax(logits[0], -1)[range(4), ids[1:]]
    odds = gradients.log_odds(np.append(ids[1:], -100))(logits)
    assert abs(odds - torch.log(p / (1 - p)).sum()) <= 1e-12
    expected = -torch.log_softmax(logits[0, 0], -1)[5]
    assert abs(gradients.loss(5)(logits[:, 0]) - expected) <= 1e-12


@pytest.mark.parametrize(
    "quantity",
    [gradients.logit(9), gradients.logit(0, 8), gradients.loss(9), gradients.loss([1, 2])],
)
def test_what_a_model_does_not_give_is_said(quantity):
    with pytest.raises(HgvizError):
        quantity(torch.zeros(1, 5, 7) if quantity is not None else None)


def test_heads_and_rows_that_are_not_there_are_said():
    model = make_transformer(form="encoder", **LABELS).requires_grad_(False)
    found = gradients.Gradients(model, text(model), asked)
    for head, rows in ((HeadId(0, 7), None), (HeadId(9, 0), None), (HeadId(0, 0), range(0, 99))):
        with pytest.raises(HgvizError):
            found.head(head, rows)
