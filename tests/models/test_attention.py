"""The one function that weighs: closed forms, exact zeros under the mask, known invariants."""

import math

import pytest
import torch
import torch.nn.functional as F

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.maps import LazyMap, Rule
from hgviz.models.attention import attend, factors, weigh
from tests.closeness import scaled_error
from tests.models.running import attended

CLOSED = {
    "softmax": lambda x: torch.softmax(x, -1),
    "tanh": torch.tanh,
    "swish": F.silu,
    "selu": F.selu,
    "elu": F.elu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "ymish": lambda x: x * torch.tanh(x.abs()),
}


@pytest.fixture
def scores():
    return torch.randn(2, 3, 5, 7, generator=torch.Generator().manual_seed(0)).double() * 3


@pytest.fixture
def keep():
    kept = torch.rand(2, 1, 5, 7, generator=torch.Generator().manual_seed(1)) < 0.6
    kept[0, 0, 2] = False
    return kept


@pytest.mark.parametrize("name", CLOSED)
def test_weights_are_the_closed_form(scores, name):
    assert (weigh(scores, None, name) - CLOSED[name](scores)).abs().max() < 1e-14


@pytest.mark.parametrize("norm", [None, "l2", "l2-literal"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_what_is_masked_weighs_nothing_and_changes_nothing(scores, keep, name, norm):
    k = 3 if name == "topk" else None
    weights = weigh(scores, keep, name, norm, k)
    assert (weights[~keep.expand_as(weights)] == 0.0).all()
    assert (weights[0, :, 2] == 0.0).all()
    assert weights.isfinite().all()
    wild = torch.where(keep, scores, 1e30)
    assert torch.equal(weigh(wild, keep, name, norm, k), weights)
    row, chosen = weights[1, :, 3], keep[1, 0, 3]
    alone = weigh(scores[1, :, 3][:, chosen], None, name, norm, k)
    assert (row[:, chosen] - alone).abs().max() < 1e-14


def test_ymish_of_normalised_rows_keeps_its_invariants(scores):
    """0.76159 <= sum |A| <= 1, odd, and blind to the scale of the scores."""
    weights = weigh(scores, None, "ymish", "l2")
    mass = weights.abs().sum(-1)
    assert mass.min() >= math.tanh(1.0) - 1e-8
    assert mass.max() <= 1.0
    assert (weigh(-scores, None, "ymish", "l2") + weights).abs().max() == 0.0
    assert (weigh(1e3 * scores, None, "ymish", "l2") - weights).abs().max() < 1e-8


def test_the_literal_norm_adds_its_epsilon_after_the_division(scores):
    literal = scores / torch.linalg.vector_norm(scores, dim=-1, keepdim=True) + 1e-9
    assert torch.equal(weigh(scores, None, "tanh", "l2-literal"), torch.tanh(literal))


def test_a_row_of_zeros_has_a_gradient(scores):
    zeros = torch.zeros_like(scores).requires_grad_()
    weigh(zeros, None, "ymish", "l2").sum().backward()
    assert zeros.grad.isfinite().all()


def test_the_k_largest_scores_are_kept_and_ties_with_them():
    scores = torch.tensor([[3.0, 1.0, 2.0, 2.0, 0.0]], dtype=torch.float64)
    kept = weigh(scores, None, "topk", k=2)
    assert (kept > 0).tolist() == [[True, False, True, True, False]]
    assert float(kept.sum()) == pytest.approx(1.0)
    assert torch.allclose(weigh(scores, None, "topk", k=9), torch.softmax(scores, -1))


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("relu",), "unknown attention activation 'relu'"),
        (("tanh", "l3"), "unknown norm 'l3'. Choose from l2, l2-literal"),
        (("topk",), "topk needs k"),
        (("topk", None, 0), "topk needs k"),
    ],
)
def test_what_is_unknown_is_one_line(scores, arguments, words):
    with pytest.raises(HgvizError) as caught:
        weigh(scores, None, *arguments)
    assert words in str(caught.value)


def rule_of(**changes):
    one = {"scale": 0.5, "activations": ("softmax",) * 2, "norms": (None,) * 2}
    return Rule(**{**one, **changes})


@pytest.mark.parametrize("names", [("softmax",) * 2, ("topk", "linear"), ("ymish", "elu")])
@pytest.mark.parametrize("empty", ["zeros", "uniform"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_attending_applies_the_maps_that_are_captured(empty, causal, windowed, kept, names):
    """The context is map times values, whichever kernel computed it."""
    torch.manual_seed(0)
    strides = {"stride_q": 1, "stride_k": 1}
    rows, columns = 12, 12
    if windowed:
        strides, rows, causal = {"stride_q": 3, "stride_k": 1}, 4, False
    q = torch.randn(1, 2, rows, 4).double()
    k, v = torch.randn(2, 1, 2, columns, 4).double()
    keep = torch.arange(columns)[None] >= 5 if kept else None
    kinds = {"activations": names, "norms": tuple("l2" if n == "ymish" else None for n in names)}
    rule = rule_of(causal=causal, windowed=windowed, empty_rows=empty, top_k=2, **kinds, **strides)
    context = attend(q, k, v, rule, keep=keep)
    seen = LazyMap(factors(q, k, rule, keep, None), (0, 1))
    for head in (0, 1):
        assert scaled_error(seen.read(head) @ v[0, head].numpy(), context[0, head].numpy()) < 1e-6
    off = attended(q, k, v, rule, keep=keep, off=(1,))
    assert torch.equal(off[:, 0], context[:, 0])
    assert (off[:, 1] == 0.0).all()


def test_one_text_is_captured_at_a_time():
    q = torch.zeros(2, 2, 3, 4)
    with pytest.raises(HgvizError, match="only one text can be captured at a time"):
        factors(q, q, rule_of(), None, None)


@pytest.mark.parametrize("norm", ["l2", "l2-literal"])
def test_half_precision_divides_rows_of_zeros_by_something(norm):
    """1e-9 is 0 in float16."""
    scores = torch.zeros(1, 1, 3, 4, dtype=torch.float16)
    assert (weigh(scores, None, "ymish", norm) == 0).all()
    assert weigh(scores + 2, None, "ymish", norm).dtype == torch.float16
