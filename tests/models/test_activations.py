"""Every activation against its closed form and its derivative, under every kind of mask."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.maps import Rule
from hgviz.maps.rule import Relative
from hgviz.models import attention
from hgviz.models.attention import attend, factors, weigh, weights
from tests.closeness import scaled_error
from tests.models.running import attended, captured_layer

NORMS = [None, "l2", "l2-literal"]
MASKS = ["none", "padding", "causal", "both", "rows without keys"]
quick = settings(max_examples=150, deadline=None, derandomize=True)
PLAIN = [name for name, row in ACTIVATIONS.items() if row.statistic == "none"]


def draw(*shape, seed=0):
    """Float64 numbers around 0."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def mask(kind, queries=5, keys=5):
    """bool (1, 1, queries, keys), or None."""
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if kind == "none":
        return None
    if kind in ("causal", "both"):
        seen = seen.tril()
    if kind in ("padding", "both"):
        seen = seen & (torch.arange(keys) >= 2)  # with causal, two rows see nothing
    if kind == "rows without keys":
        seen = seen & (torch.arange(queries) % 2 == 0)[:, None]
    return seen[None, None]


def k_of(name):
    """What topk needs."""
    return 2 if name == "topk" else None


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, value, slope",
    [
        ("tanh", math.tanh, lambda x: 1 - math.tanh(x) ** 2),
        ("swish", lambda x: x / (1 + math.exp(-x)),
         lambda x: (1 + math.exp(-x) + x * math.exp(-x)) / (1 + math.exp(-x)) ** 2),
        ("elu", lambda x: x if x > 0 else math.exp(x) - 1, lambda x: 1 if x > 0 else math.exp(x)),
        ("selu",
         lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * (math.exp(x) - 1)),
         lambda x: 1.0507009873554805 * (1 if x > 0 else 1.6732632423543772 * math.exp(x))),
        ("leaky_relu", lambda x: x if x > 0 else 0.1 * x, lambda x: 1 if x > 0 else 0.1),
        ("ymish", lambda x: x * math.tanh(abs(x)),
         lambda x: math.tanh(abs(x)) + abs(x) / math.cosh(x) ** 2),
    ],
)  # fmt: skip
def test_value_and_slope_of_one_score_are_those_of_the_table(name, value, slope):
    scores = torch.tensor([-30.0, -3.0, -1.2, -0.5, -1e-3, 1e-3, 0.5, 1.2, 3.0, 30.0]).double()
    scores = scores[:, None].requires_grad_()
    found = weigh(scores, None, name)
    found.sum().backward()
    for x, y, dy in zip(scores[:, 0].tolist(), found[:, 0].tolist(), scores.grad[:, 0].tolist(),
                        strict=True):  # fmt: skip
        assert y == pytest.approx(value(x), rel=1e-12, abs=1e-15)
        assert dy == pytest.approx(slope(x), rel=1e-12, abs=1e-15)


def test_ymish_has_the_facts_of_its_table():
    """f'(0) = 0, f' at most 1.19968 where x tanh x = 1, f' -> 1, |f| <= min(|x|, x^2)."""
    x = torch.linspace(-8, 8, 100_001, dtype=torch.float64)[:, None].requires_grad_()
    found = weigh(x, None, "ymish")
    found.sum().backward()
    assert float(x.grad[50_000]) == pytest.approx(0, abs=1e-14)
    assert float(x.grad[-1]) == pytest.approx(1, abs=1e-5)
    at = x.grad.argmax()
    assert float(x.grad[at]) == pytest.approx(1.19968, abs=1e-5)
    assert abs(float(x.detach()[at])) == pytest.approx(1.19968, abs=1e-4)
    size, found = x.detach().abs(), found.detach()
    assert (found.abs() <= torch.minimum(size, size**2) + 1e-15).all()


def test_softmax_and_topk_have_the_slopes_of_a_softmax():
    """dA_j / ds_l = A_j (delta_jl - A_l), on the keys that are kept."""
    scores = draw(6)
    for name in ("softmax", "topk"):
        a = weigh(scores[None], None, name, k=k_of(name))[0]
        found = torch.autograd.functional.jacobian(
            lambda s, name=name: weigh(s[None], None, name, k=k_of(name))[0], scores
        )
        assert torch.allclose(found, a.diag() - a[:, None] * a, atol=1e-15)


def test_linear_weighs_by_features_over_their_sum():
    q, k = draw(1, 1, 4, 3), draw(1, 1, 6, 3, seed=1)
    phi = [torch.nn.functional.elu(x) + 1 for x in (q, k)]
    scores = phi[0] @ phi[1].mT
    expected = scores / (scores.sum(-1, keepdim=True) + 1e-6)
    assert torch.allclose(weigh(scores, None, "linear"), expected, atol=1e-15)
    rule = Rule(0.3, ("linear",), (None,))
    assert torch.allclose(weights(q, k, rule), expected, atol=1e-15)  # never scaled


@pytest.mark.parametrize("causal", [False, True])
def test_kernels_are_the_kernel_over_its_sum(causal):
    """Tsai et al. 2019, eq. 2, with the scale of dot products in every kernel."""
    q, k = draw(2, 3, 7, 4), draw(2, 3, 7, 4, seed=1)
    seen = torch.ones(7, 7).tril() if causal else torch.ones(7, 7)
    closed = {
        "softmax": torch.exp(q @ k.mT / 2),
        "rbf": torch.exp(-((q[..., None, :] - k[..., None, :, :]) ** 2).sum(-1) / 4),
        "poly2": (q @ k.mT) ** 2,
    }
    for name, kernel in closed.items():
        kernel = kernel * seen
        found = weights(q, k, Rule(0.5, (name,) * 3, (None,) * 3, causal=causal))
        assert (found - kernel / kernel.sum(-1, keepdim=True)).abs().max() < 1e-12
    found = weights(q, k, Rule(0.5, ("raw",) * 3, (None,) * 3, causal=causal))
    assert (found - q @ k.mT / 2 * seen).abs().max() < 1e-15 and (found < 0).any()


@pytest.mark.parametrize("causal", [False, True])
def test_rows_that_may_look_at_nothing_are_their_closed_forms(causal):
    """softmax1 (Miller 2023), softpick (Zuhri et al. 2025) and sigmoid (Ramapuram et al. 2024)."""
    q, k, v = (draw(2, 3, 7, 4, seed=seed) for seed in range(3))
    seen = torch.ones(7, 7).tril() if causal else torch.ones(7, 7)
    s, n = q @ k.mT, seen.sum(-1, keepdim=True)
    excess = s.exp() - 1
    closed = {
        "softmax1": s.exp() / (1 + (s.exp() * seen).sum(-1, keepdim=True)),
        "softpick": excess.relu() / ((excess.abs() * seen).sum(-1, keepdim=True) + 1e-8),
        "sigmoid": 1 / (1 + n * (-s).exp()),
    }
    for name, expected in closed.items():
        rule = Rule(1.0, (name,) * 3, (None,) * 3, causal=causal)
        assert (weights(q, k, rule) - expected * seen).abs().max() < 1e-14
        assert (attend(q, k, v, rule) - (expected * seen) @ v).abs().max() < 1e-14


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["softmax1", "softpick", "sigmoid"])
def test_scores_of_any_size_give_weights_and_slopes_that_are_numbers(name, dtype):
    top = min(torch.finfo(dtype).max / 8, 1e30)
    scores = torch.tensor([
        [0.0, 0.0, 0.0], [-top, 0.0, top], [-top, -top, -1.0], [700.0, 600.0, -700.0],
        [1e-3, -1e-3, 0.0],
    ]).to(dtype).requires_grad_()  # fmt: skip
    found = weigh(scores, None, name)
    found.sum().backward()
    assert ((found >= 0) & (found <= 1)).all() and scores.grad.isfinite().all()
    if name != "sigmoid":
        assert (found.sum(-1) <= 1 + 2 * torch.finfo(dtype).eps).all()
    if name == "softpick":
        assert (found[0] == 0).all() and (found[2] == 0).all()


wide = st.lists(st.floats(-80, 80, width=64), min_size=1, max_size=40)


@quick
@given(wide)
def test_softpick_is_that_of_its_authors_within_epsilon(row):
    """Their code: epsilon is added after the largest score was taken away."""
    s = torch.tensor(row).double()
    m = s.max()
    shifted = (s - m).exp() - (-m).exp()
    theirs = shifted.relu() / (shifted.abs().sum() + 1e-8)
    assert (weigh(s[None], None, "softpick")[0] - theirs).abs().max() < 2e-8


@quick
@given(wide)
def test_softmax1_is_softmax_beside_a_key_of_score_0_and_a_sink_of_0(row):
    s = torch.tensor(row).double()[None]
    found = weigh(s, None, "softmax1")
    beside = torch.cat([s, torch.zeros(1, 1, dtype=s.dtype)], 1).softmax(-1)[:, :-1]
    assert torch.allclose(found, beside, rtol=1e-13, atol=0)
    sunk = weigh(s, None, "softmax", sinks=torch.zeros(1, 1))
    assert torch.allclose(found, sunk, rtol=1e-13, atol=0)


def test_sigmoid_of_equal_scores_of_0_is_a_little_less_than_even():
    """The bias of the paper: weights of a model at its start add up to about 1."""
    found = weigh(torch.zeros(1, 50).double(), None, "sigmoid")
    assert torch.allclose(found, torch.full_like(found, 1 / 51), rtol=1e-14)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_numpy_and_torch_give_the_same(name):
    row, scores = ACTIVATIONS[name], draw(1, 7, 9) * 5
    stat = None if row.statistic == "none" else scores.abs().sum(-1, keepdim=True)
    ours = row.apply(scores.numpy(), None if stat is None else stat.numpy(), np)
    np.testing.assert_allclose(ours, row.apply(scores, stat, torch).numpy(), rtol=1e-13, atol=1e-15)
    if row.features is not None:
        features = row.features(scores.numpy(), np)
        assert (features > 0).all()
        np.testing.assert_allclose(features, row.features(scores, torch).numpy(), rtol=1e-14)
    for ours, theirs in zip(row.split(scores.numpy(), np), row.split(scores, torch), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-14, atol=1e-15)
    if row.of_keys is not None:
        added = row.of_keys(scores.numpy(), np)
        np.testing.assert_allclose(added, row.of_keys(scores, torch).numpy(), rtol=1e-14)


# --- derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_weighing_has_its_derivative(name, norm, kind):
    scores = draw(1, 2, 5, 5)
    if name == "linear":  # scores of features are positive
        scores = scores.abs() + 0.1
    keep = mask(kind)
    scores.requires_grad_()
    assert gradcheck(lambda s: weigh(s, keep, name, norm, k_of(name)), scores)


@pytest.mark.parametrize("kind", ["none", "padding", "causal", "both", "all padded"])
@pytest.mark.parametrize(
    "names", [*((name,) * 2 for name in ACTIVATIONS), ("softmax", "linear"), ("topk", "ymish")]
)
def test_attending_has_its_derivative(names, kind):
    norms = tuple("l2" if name == "ymish" else None for name in names)
    rule = Rule(0.6, names, norms, causal=kind in ("causal", "both"), top_k=2)
    keep = torch.arange(5)[None] >= 2 if kind in ("padding", "both") else None
    if kind == "all padded":
        keep = torch.zeros(1, 5, dtype=torch.bool)
    parts = [draw(1, 2, 5, 3, seed=seed).requires_grad_() for seed in range(3)]
    assert gradcheck(lambda q, k, v: attend(q, k, v, rule, keep=keep), parts)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_rows_without_keys_and_rows_of_zeros_have_gradients_that_are_numbers(name, norm):
    for scores, keep in ((draw(1, 1, 5, 5), mask("rows without keys")),
                         (draw(1, 1, 5, 5), torch.zeros(1, 1, 5, 5, dtype=torch.bool)),
                         (torch.zeros(1, 1, 5, 5).double(), mask("causal")),
                         (torch.full((1, 1, 5, 5), -900.0).float(), mask("padding"))):  # fmt: skip
        scores.requires_grad_()
        found = weigh(scores, keep, name, norm, k_of(name))
        assert found.isfinite().all() and (found[~keep.expand_as(found)] == 0).all()
        found.sum().backward()
        assert scores.grad.isfinite().all()


# --- invariants -----------------------------------------------------------------------------------

numbers = st.floats(-50, 50, width=64)
rows = st.lists(numbers, min_size=1, max_size=40).map(lambda x: torch.tensor(x).double())
# a row of norm 1e-3 feels the 1e-9 of its own formula by up to 1.2e-6
rows = rows.filter(lambda x: float(torch.linalg.vector_norm(x)) >= 1.2e-3)


@quick
@given(rows, st.floats(1e-2, 1e4))
def test_ymish_of_normalised_rows_is_bounded_odd_and_blind_to_scale(row, scale):
    found = weigh(row[None], None, "ymish", "l2")
    assert math.tanh(1) - 1e-6 <= float(found.abs().sum()) <= 1 + 1e-6
    assert (weigh(-row[None], None, "ymish", "l2") + found).abs().max() <= 1e-6
    if scale * row.norm() >= 1.2e-3:
        assert scaled_error(weigh(scale * row[None], None, "ymish", "l2"), found) <= 1e-6


@quick
@given(rows, st.sampled_from(PLAIN), st.integers(0, 9))
def test_a_loss_of_normalised_scores_does_not_change_along_them(row, name, seed):
    """sum_j s_j dL/ds_j = 0, since L(c s) = L(s)."""
    row = (row / row.norm()).requires_grad_()
    loss = (weigh(row[None], None, name, "l2") * draw(1, len(row), seed=seed)).sum()
    loss.backward()
    assert abs(float(row.detach() @ row.grad)) <= 1e-6


@quick
@given(rows, st.sampled_from(list(ACTIVATIONS)), st.sampled_from(NORMS), st.integers(1, 9))
def test_masked_keys_change_nothing(row, name, norm, more):
    row = row.abs() if name == "linear" else row
    alone = weigh(row[None], None, name, norm, k_of(name))
    longer = torch.cat([draw(more, seed=1) * 100, row, draw(more, seed=2) * 100])[None]
    keep = torch.zeros(len(longer[0]), dtype=torch.bool)
    keep[more:-more] = True
    found = weigh(longer, keep[None], name, norm, k_of(name))
    assert (found[:, ~keep] == 0).all()
    assert torch.allclose(found[:, keep], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "linear"])
def test_k_keeps_the_largest_of_any_activation(name):
    scores = torch.tensor([[0.5, -3.0, 2.0, -0.1, 1.0, -2.0]]).double()
    softmax = ACTIVATIONS[name].statistic == "lse"
    kept = weigh(scores, None, name, k=3)[0] != 0
    assert kept.tolist() == [[False, True, True, False, False, True],
                             [True, False, True, False, True, False]][softmax]  # fmt: skip
    normalised, whole = (weigh(scores, None, name, "l2", k)[0] for k in (3, 6))
    if ACTIVATIONS[name].statistic == "none":  # the norm is that of all keys
        assert torch.equal(normalised[kept], whole[kept])


def test_a_mask_that_is_added_is_refused():
    with pytest.raises(HgvizError, match="a mask of keys is boolean"):
        weigh(draw(2, 3), torch.full((2, 3), -1e9), "softmax")


# --- linear attention -----------------------------------------------------------------------------


@pytest.mark.parametrize("padded", [0, 3, 40])
@pytest.mark.parametrize(
    "strides", [(1, 1, False), (1, 1, True), (4, 1, True), (1, 4, True), (4, 2, False)]
)
def test_linear_attention_in_one_pass_is_its_map_times_values(strides, padded):
    """In O(n): over sums of all keys, or over prefix sums, also down and up a level."""
    stride_q, stride_k, causal = strides
    queries, keys = 600 // stride_q, 600 // stride_k
    rule = Rule(0.5, ("linear",) * 2, (None,) * 2, stride_q, stride_k, causal)
    q, k, v = draw(2, 2, queries, 4), draw(2, 2, keys, 4, seed=1), draw(2, 2, keys, 4, seed=2)
    keep = (torch.arange(keys) >= padded).expand(2, -1) if padded else None
    found = attend(q, k, v, rule, keep=keep)
    expected = weights(q, k, rule, keep) @ v
    assert (found - expected).abs().max() < 1e-12
    assert padded < 40 or not causal or (found[:, :, : padded // stride_q] == 0).all()


def test_linear_heads_of_a_layer_leave_relative_positions_to_the_others():
    bias = Relative(
        *(draw(2, *shape, seed=s) for s, shape in enumerate([(4, 6), (4,), (4,), (4,)])), 1
    )
    q, k = draw(1, 2, 5, 4), draw(1, 2, 5, 4, seed=1)
    rule = Rule(0.5, ("linear", "softmax"), (None, None), causal=True)
    with_, without = (weights(q, k, rule, relative=one) for one in (bias, None))
    assert torch.equal(with_[:, 0], without[:, 0])
    assert not torch.equal(with_[:, 1], without[:, 1])


# --- heads that are unlike ------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("terms", [False, True])
def test_unlike_heads_attend_as_each_would_alone(causal, kept, terms):
    names = ("softmax", "topk", "linear", "softmax", "ymish", "tanh", "linear", "ymish")
    norms = tuple("l2" if name == "ymish" else None for name in names)
    rule = Rule(0.5, names, norms, causal=causal, top_k=3)
    q, k, v = (draw(2, 8, 40, 4, seed=seed) for seed in range(3))
    keep = torch.arange(40)[None] >= torch.tensor([[0], [5]]) if kept else None
    bias = Relative(*(draw(8, *s) for s in [(4, 6), (4,), (4,), (4,)]), 1) if terms else None
    whole = attend(q, k, v, rule, keep=keep, relative=bias)
    for h in range(8):
        at = slice(h, h + 1)
        one = None if bias is None else bias.map(lambda part, at=at: part[at])
        parts = (q[:, at], k[:, at], v[:, at])
        alone = attend(*parts, rule.only((h,)), keep=keep, relative=one)
        assert (whole[:, at] - alone).abs().max() < 1e-12
        by_map = weights(*parts[:2], rule.only((h,)), keep, one) @ parts[2]
        assert (alone - by_map).abs().max() < 1e-12
    off = attended(q, k, v, rule, keep=keep, relative=bias, off=(1, 6))
    assert (off[:, [1, 6]] == 0).all()
    assert torch.equal(off[:, [0, 2, 3, 4, 5, 7]], whole[:, [0, 2, 3, 4, 5, 7]])


def test_blocks_of_rows_are_put_together(monkeypatch):
    names = ("softmax", "ymish", "topk")
    rule = Rule(0.5, names, (None, "l2", None), causal=True, top_k=3)
    q, k, v = (draw(1, 3, 50, 4, seed=seed) for seed in range(3))
    keep = torch.arange(50)[None] >= 4
    whole = attend(q, k, v, rule, keep=keep)
    monkeypatch.setattr(attention, "ROWS", 7)
    assert (attend(q, k, v, rule, keep=keep) - whole).abs().max() < 1e-13


@pytest.mark.parametrize("kept", [False, True])
def test_a_layer_without_heads_attends_to_nothing(kept):
    q, k = draw(1, 0, 5, 4), draw(1, 0, 6, 4)
    keep = torch.ones(1, 6, dtype=torch.bool) if kept else None
    context, found = captured_layer(q, k, k, Rule(0.5, (), ()), keep=keep)
    assert context.shape == (1, 0, 5, 4)
    assert found.q.shape == (0, 5, 4) and found.proof_values.shape == (0, 5, 6)
    assert factors(q, k, Rule(0.5, (), ()), keep, None).stat.shape == (0, 5)
