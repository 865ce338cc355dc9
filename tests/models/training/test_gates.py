"""Gates: the closed forms of what is drawn, of what is settled and of what pushes them."""

import itertools
import math

import pytest
import torch

from hgviz.models.training.gates import (
    Causal,
    Concrete,
    Subset,
    hard_concrete,
    heat,
    odds_of_open,
    settled_concrete,
    subset,
    top,
)
from hgviz.models.training.plan import Gating

SEVERAL = torch.tensor([-3.0, -1.0, 0.0, 0.7, 2.5], dtype=torch.float64)
TEMPERATURES = (1e3, 10.0, 1.0, 0.1, 1e-3, 1e-8)


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def beyond(log_a, t):
    """P(g > t) of 0 <= t < 1: the share of u whose s, stretched, is above t."""
    s = (t + 0.1) / 1.2
    return torch.sigmoid(log_a - 0.33 * math.log(s / (1 - s)))


# --- hard-concrete gates --------------------------------------------------------------------------


def test_a_drawn_gate_is_0_and_1_as_often_as_its_distribution_says():
    count = 100_000
    drawn = hard_concrete(SEVERAL, uniform(count, len(SEVERAL)))
    assert ((drawn >= 0) & (drawn <= 1)).all()
    closed, opened = 1 - beyond(SEVERAL, 0.0), torch.sigmoid(SEVERAL - 0.33 * math.log(11))
    for found, wanted in (((drawn == 0), closed), ((drawn == 1), opened)):
        error = (wanted * (1 - wanted) / count).sqrt()
        assert ((found.double().mean(0) - wanted).abs() < 4 * error).all()


def test_the_mean_of_a_drawn_gate_is_the_integral_over_its_distribution():
    count, grid = 100_000, (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    drawn = hard_concrete(SEVERAL, uniform(count, len(SEVERAL), seed=1))
    wanted = torch.stack([
        torch.sigmoid(one - 0.33 * torch.logit((grid + 0.1) / 1.2)).mean() for one in SEVERAL
    ])  # fmt: skip
    assert ((drawn.mean(0) - wanted).abs() < 4 * drawn.std(0) / count**0.5).all()


def test_what_an_open_gate_costs_is_the_probability_that_it_is_not_0():
    assert torch.allclose(odds_of_open(SEVERAL), beyond(SEVERAL, 0.0), rtol=1e-14, atol=0)
    assert math.isclose(odds_of_open(torch.tensor(0.0)).item(), 1 / (1 + math.exp(-0.7913)),
                        rel_tol=1e-4)  # fmt: skip
    table = Gating("gates", pressure=0.3)
    gates = Concrete(table, 5)
    with torch.no_grad():
        gates.values.copy_(SEVERAL)
    assert torch.isclose(gates.penalty(0.5), 0.3 * beyond(SEVERAL, 0.0).sum(), rtol=1e-6)


def test_at_test_time_a_gate_is_0_up_to_minus_ln_11_and_1_from_ln_11():
    edge = math.log(11)
    assert round(edge, 3) == 2.398
    log_a = torch.tensor([-9, -edge - 1e-9, -edge + 1e-6, edge - 1e-6, edge + 1e-9, 9]).double()
    found = settled_concrete(log_a)
    assert found[:2].tolist() == [0, 0]
    assert found[-2:].tolist() == [1, 1]
    assert ((found[2:4] > 0) & (found[2:4] < 1)).all()
    assert settled_concrete(torch.zeros(1)).item() == 0.5


def test_the_slope_of_a_drawn_gate_is_its_central_difference():
    log_a = SEVERAL.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: hard_concrete(x, uniform(5, seed=3)), log_a)


# --- differentiable subsets -----------------------------------------------------------------------


@pytest.mark.parametrize("tau", TEMPERATURES)
@pytest.mark.parametrize("keep", [1, 3, 7])
def test_a_subset_sums_to_what_is_kept_at_every_temperature(tau, keep):
    w = torch.linspace(-10, 10, 9, dtype=torch.float64)
    for some in (w, torch.zeros_like(w)):
        soft = subset(some, keep, tau, uniform(50, 9))
        assert torch.allclose(soft.sum(-1), torch.full((50,), float(keep)).double(), atol=1e-12)
        assert (soft >= 0).all()


def test_a_cold_subset_is_the_hard_top_of_weights_with_gumbels_noise():
    w, u = torch.linspace(-10, 10, 9, dtype=torch.float64), uniform(200, 9)
    for keep in (1, 4, 8):
        wanted = [top(one, keep) for one in w - (-u.log()).log()]
        assert torch.equal(subset(w, keep, 1e-8, u), torch.stack(wanted))


def test_a_hot_subset_gives_every_head_the_same():
    found = subset(torch.linspace(-10, 10, 8).double(), 2, 1e3 * 1e6, uniform(8))
    assert torch.allclose(found, torch.full((8,), 0.25).double(), atol=1e-6)


def test_a_cold_subset_draws_heads_without_putting_them_back():
    w, count = torch.tensor([0.0, 1.0, -1.0, 0.5]).double(), 50_000
    odds, drawn = torch.softmax(w, 0), subset(w, 2, 1e-6, uniform(count, 4))
    wanted = odds.clone()  # first, or second after another one
    for first, then in itertools.permutations(range(4), 2):
        wanted[then] += odds[first] * odds[then] / (1 - odds[first])
    assert ((drawn.mean(0) - wanted).abs() < 4 * (wanted * (1 - wanted) / count).sqrt()).all()


@pytest.mark.parametrize("tau", TEMPERATURES)
def test_the_slopes_of_a_subset_are_finite_at_every_temperature(tau):
    for spread in (0, 1, 10):
        w = torch.linspace(-spread, spread, 9, dtype=torch.float64).requires_grad_()
        (subset(w, 4, tau, uniform(50, 9)) * uniform(9, seed=5)).sum().backward()
        assert torch.isfinite(w.grad).all()
    w = SEVERAL.clone().requires_grad_()
    if tau >= 0.1:
        assert torch.autograd.gradcheck(lambda x: subset(x, 3, tau, uniform(5)), w)


def test_the_temperature_falls_from_1000_to_1e_8_by_equal_factors():
    assert heat(0.0) == 1e3
    assert math.isclose(heat(1.0), 1e-8)
    assert math.isclose(heat(0.25) / heat(0.5), heat(0.5) / heat(0.75))


def test_weights_stay_where_no_head_can_be_drawn_twice():
    gates = Subset(Gating("subset", keep=2), 3)
    with torch.no_grad():
        gates.values.copy_(torch.tensor([[500.0, -500.0, 0.0]]))
    drawn = gates.drawn(0, uniform(100, 3), 1.0)
    assert drawn.max() == 1
    assert gates.settled().tolist() == [1, 0, 1]


# --- causal gates ---------------------------------------------------------------------------------


def test_causal_gates_are_pushed_apart_by_lambda_after_a_fit_of_their_own():
    gates = Causal(Gating("causal", pressure=0.3), 4)
    assert gates.passes(0.2) == 1
    assert gates.penalty(0.2).item() == 0
    assert gates.passes(0.5) == 2
    with torch.no_grad():
        gates.values.copy_(torch.tensor([[0.0, 1.0, 3.9, 4.1], [0.0, -1.0, -3.9, -4.1]]))
    gates.penalty(0.5).backward()
    wanted = torch.tensor([[-0.3, -0.3, -0.3, 0], [0.3, 0.3, 0.3, 0]])
    assert torch.allclose(gates.values.grad, wanted)


def test_causal_gates_learn_the_same_until_they_are_pushed():
    gates = Causal(Gating("causal", pressure=0.3), 4)
    drawn = gates.drawn(0, uniform(5, 4), 0.1)
    assert torch.equal(drawn, torch.full((5, 4), 0.5).double())
    (drawn * torch.arange(4)).sum().backward()
    assert torch.equal(gates.values.grad[0], gates.values.grad[1])
    assert gates.values.grad[0, 1:].all()
