"""Attention without the map, for activations of a score alone and for top-k, beside dense maps."""

import pytest
import torch

from hgviz.activations import ACTIVATIONS
from hgviz.maps import Rule
from hgviz.models import attention
from hgviz.models.attention import FUSED, attend
from tests.models.dense import dense_context, dense_maps


def operands(dtype=torch.float64, queries=300, keys=300, groups=4, batch=2):
    random = torch.Generator().manual_seed(0)

    def draw(heads, length):
        return torch.randn(batch, heads, length, 8, generator=random, dtype=torch.float64).to(dtype)

    return draw(4, queries), draw(groups, keys), draw(groups, keys)


def padding(keys=300):
    keep = torch.ones(2, keys, dtype=torch.bool)
    keep[0, :40] = False
    keep[1, 200:] = False
    return keep


def by_maps(q, k, v, rule, keep=None):
    """The context from whole maps in float64."""
    return dense_context(dense_maps(q, k, rule, keep), v, rule, keep)


def rule_of(name, norm, **options):
    return Rule(8**-0.5, (name,) * 4, (norm,) * 4, **options)


@torch.inference_mode()
@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_a_context_by_blocks_is_that_of_the_map(name, causal, padded, monkeypatch):
    calls, pointwise = [], attention._attend_pointwise
    monkeypatch.setattr(
        attention, "_attend_pointwise", lambda *given: calls.append(1) or pointwise(*given)
    )
    keep = padding() if padded else None
    for norm, groups in ((None, 4), ("l2", 2)):
        q, k, v = operands(groups=groups)
        rule = rule_of(name, norm, causal=causal)
        torch.testing.assert_close(
            attend(q, k, v, rule, keep=keep), by_maps(q, k, v, rule, keep),
            rtol=0, atol=1e-12,
        )  # fmt: skip
    assert len(calls) == 3  # one for all heads, and one for each key group


@torch.inference_mode()
def test_single_precision_and_rectangles():
    q, k, v = operands(torch.float32, 400, 200)
    rule = rule_of("ymish", "l2")
    exact = by_maps(q, k, v, rule)
    torch.testing.assert_close(attend(q, k, v, rule).double(), exact, rtol=0, atol=1e-6)


@torch.inference_mode()
def test_what_blocks_cannot_do_goes_by_rows(monkeypatch):
    monkeypatch.setattr(attention, "_attend_pointwise", None)
    q, k, v = operands()
    for rule in (
        rule_of("tanh", "l2-literal"), rule_of("tanh", None, band=(5, 5)),
        rule_of("softpick", None),
        rule_of("selu", None, softcap=3.0),
        rule_of("tanh", None, causal=True).with_streaming(range(4), (2, 5)),
    ):  # fmt: skip
        rows = attend(q, k, v, rule)
        torch.testing.assert_close(rows, by_maps(q, k, v, rule), rtol=0, atol=1e-12)
    with torch.inference_mode(False), torch.enable_grad():
        assert (
            attend(*(part.clone() for part in operands()), rule_of("tanh", None)).isfinite().all()
        )


@torch.inference_mode()
@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"band": (3, 0)}, {"softcap": 2.0}, {"causal": True, "stride_q": 3},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("padded", [False, True])
def test_the_values_of_the_largest_scores_are_enough(options, padded):
    queries = 100 if "stride_q" in options else 300
    q, k, v = operands(queries=queries, groups=2)
    rule = rule_of("topk", None, top_k=7, **options)
    keep = padding() if padded else None
    torch.testing.assert_close(
        attend(q, k, v, rule, keep=keep), by_maps(q, k, v, rule, keep), rtol=0, atol=1e-12
    )


@torch.inference_mode()
@pytest.mark.parametrize("top_k", [1, 3, 400])
def test_equal_scores_share_their_place(top_k):
    q, k, v = operands()
    k = k.round()
    k[:, :, 10:200] = k[:, :, 9:10]
    rule = rule_of("topk", None, top_k=top_k, causal=True)
    torch.testing.assert_close(attend(q, k, v, rule), by_maps(q, k, v, rule), rtol=0, atol=1e-12)


def test_functions_in_place_are_the_activations():
    scores = torch.linspace(-90, 90, 5001, dtype=torch.float64)
    for name, function in FUSED.items():
        expected = ACTIVATIONS[name].apply(scores, None, torch)
        torch.testing.assert_close(function(scores.clone()), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name, norm, options", [
    ("ymish", "l2", {"causal": True}), ("tanh", None, {}), ("topk", None, {"top_k": 5}),
    ("softmax1", None, {"causal": True}), ("softpick", None, {"band": (9, 4)}),
    ("poly2", "l2-literal", {}), ("selu", None, {"causal": True, "stride_k": 2}),
])  # fmt: skip
def test_maps_computed_again_give_the_same_gradients(name, norm, options, monkeypatch):
    monkeypatch.setattr(attention, "RECOMPUTE_CELLS", 0)
    monkeypatch.setattr(attention, "ROWS", 16)
    operands_ = operands(queries=60, keys=30 if "stride_k" in options else 60, groups=2)
    keep = padding(60)[:, : operands_[1].shape[2]] if name == "ymish" else None
    rule, slopes = rule_of(name, norm, **options), []
    for compute in (attend, by_maps):
        leaves = [part.clone().requires_grad_() for part in operands_]
        context = compute(*leaves, rule, keep=keep)
        assert compute is by_maps or "RecomputedAttention" in ancestors(context.grad_fn)
        (context * torch.linspace(-1, 1, context.shape[-1])).sum().backward()
        slopes.append([leaf.grad for leaf in leaves])
    for ours, exact in zip(*slopes, strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-9, atol=1e-11)


def ancestors(function):
    """The names of all functions that a gradient goes through."""
    if function is None:
        return ""
    return type(function).__name__ + "".join(ancestors(part) for part, _ in function.next_functions)
