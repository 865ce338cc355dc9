"""Gates of heads that training learns: what multiplies a head's context, and how it is settled.

Three of them: hard-concrete gates (Louizos et al. 2018; Voita et al. 2019), differentiable subset
pruning (Li, Cotterell, Sachan 2021) and causal gating (Nam et al. 2025, arXiv 2505.13737).
Shapes: B texts, H heads that are on, in order of computation. All of it is computed in float64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from hgviz.models.training.plan import Gating

# --- hard-concrete gates --------------------------------------------------------------------------

BETA = 0.33  # the temperature of the concrete distribution
LOW, HIGH = -0.1, 1.1  # it is stretched to these and clipped to 0 and 1
NONZERO = -BETA * math.log(-LOW / HIGH)  # 0.7913


def hard_concrete(log_a: Tensor, u: Tensor) -> Tensor:
    """A gate of 0 to 1 drawn by u, uniform in (0, 1); 0 and 1 have probabilities of their own."""
    s = torch.sigmoid((u.log() - torch.log1p(-u) + log_a) / BETA)
    return ((HIGH - LOW) * s + LOW).clamp(0, 1)


def settled_concrete(log_a: Tensor) -> Tensor:
    """The gate at test time; 0 where log_a <= -ln 11 = -2.398, 1 where it is at least ln 11."""
    return ((HIGH - LOW) * torch.sigmoid(log_a) + LOW).clamp(0, 1)


def odds_of_open(log_a: Tensor) -> Tensor:
    """The probability that a drawn gate is not 0."""
    return torch.sigmoid(log_a + NONZERO)


# --- differentiable subsets -----------------------------------------------------------------------

HOTTEST, COLDEST = 1e3, 1e-8
LEAST = 1e-20  # of 1 - p, before its logarithm


def heat(done: float) -> float:
    """The temperature after a share of the training: from 1000 to 1e-8, by equal factors."""
    return HOTTEST * (COLDEST / HOTTEST) ** done


def subset(w: Tensor, keep: int, tau: float, u: Tensor) -> Tensor:
    """A soft choice of so many heads, (..., H) that sums to keep; u as in hard_concrete.

    Gumbel's noise makes it a draw without replacement as tau falls to 0.
    """
    r = w - (-u.log()).log()
    total = p = torch.softmax(r / tau, -1)
    for _ in range(keep - 1):
        r = r + (1 - p).clamp(min=LEAST).log()
        p = torch.softmax(r / tau, -1)
        total = total + p
    return total


def top(w: Tensor, keep: int) -> Tensor:
    """1 for so many of the highest, 0 for the others."""
    return torch.zeros_like(w).index_fill(0, w.topk(keep).indices, 1.0)


# --- what is learnt -------------------------------------------------------------------------------


class Gates(nn.Module):
    """What is learnt of each head, and the gates it makes.

    values (sets, H). passes: gates are drawn for so many passes of a batch. folded: whether the
    stored model has its gates in its weights.
    """

    sets = 1
    initial = 0.0
    folded = True

    def __init__(self, table: Gating, heads: int) -> None:
        super().__init__()
        self.table = table
        self.values = nn.Parameter(torch.full((self.sets, heads), self.initial))

    @property
    def wide(self) -> Tensor:
        """values in float64."""
        return self.values.double()

    def passes(self, done: float) -> int:
        """How many passes of a batch there are after a share of the training."""
        return 1

    def drawn(self, number: int, u: Tensor, done: float) -> Tensor:
        """Gates (B, H) of a pass, by u (B, H) uniform in (0, 1)."""
        raise NotImplementedError

    def penalty(self, done: float) -> Tensor:
        """What is added to the loss in nats."""
        return self.wide.new_zeros(())

    def settled(self) -> Tensor:
        """Gates (H,) at test time."""
        raise NotImplementedError

    def learned(self) -> dict[str, Tensor]:
        """(H,) by the methods of study.Learned."""
        raise NotImplementedError

    def closed(self) -> Tensor:
        """Bool (H,): the heads that can be switched off."""
        return self.settled() == 0

    def roles(self) -> dict[str, Tensor]:
        """Bool (H,) by the name of a role: which heads have it."""
        return {"open": ~self.closed(), "closed": self.closed()}


class Concrete(Gates):
    """Gates that a penalty on their being open closes; values are log a."""

    initial = 2.0  # nearly open: the model begins as it was

    def drawn(self, number: int, u: Tensor, done: float) -> Tensor:
        return hard_concrete(self.wide[0], u)

    def penalty(self, done: float) -> Tensor:
        return self.table.pressure * odds_of_open(self.wide[0]).sum()

    def settled(self) -> Tensor:
        return settled_concrete(self.wide[0].detach())

    def learned(self) -> dict[str, Tensor]:
        return {"gates": self.settled()}


class Subset(Gates):
    """A choice of so many heads; values are the weights w."""

    # ln 1e-20 = -46 keeps a head from being drawn again as long as r differ by less: w by 20,
    # Gumbel's noise by hardly more
    widest = 10.0

    def drawn(self, number: int, u: Tensor, done: float) -> Tensor:
        with torch.no_grad():
            self.values.clamp_(-self.widest, self.widest)
        return subset(self.wide[0], self.table.keep, heat(done), u)

    def settled(self) -> Tensor:
        return top(self.wide[0].detach(), self.table.keep)

    def learned(self) -> dict[str, Tensor]:
        return {"subset": self.wide[0].detach()}


class Causal(Gates):
    """Gates of sigmoid(values) of a model that stays as it is, pushed on and pushed off.

    Both fits begin with the same one that nothing pushes, a third of the training. A head is
    facilitating where it stays on when pushed off, interfering where it goes off when pushed on,
    irrelevant where it follows: the largest of off, 1 - on and on (1 - off).
    """

    sets = 2
    folded = False
    begin = 1 / 3
    widest = 4.0  # nothing pushes a gate beyond sigmoid(4) = 0.982, or below 0.018

    def passes(self, done: float) -> int:
        return 1 if done < self.begin else 2

    def drawn(self, number: int, u: Tensor, done: float) -> Tensor:
        # both are one until they are pushed, so their mean is either and both learn the same
        one = self.wide.mean(0) if done < self.begin else self.wide[number]
        return torch.sigmoid(one).expand_as(u)

    def penalty(self, done: float) -> Tensor:
        if done < self.begin:
            return super().penalty(done)
        on, off = self.wide.clamp(-self.widest, self.widest).sum(1)
        return self.table.pressure * (off - on)

    def settled(self) -> Tensor:
        return torch.sigmoid(self.wide[0].detach())

    def learned(self) -> dict[str, Tensor]:
        on, off = torch.sigmoid(self.wide.detach())
        return {"causal-on": on, "causal-off": off}

    def closed(self) -> Tensor:
        return self.settled() < 0.5

    def roles(self) -> dict[str, Tensor]:
        on, off = torch.sigmoid(self.wide.detach())
        each = torch.stack([off, 1 - on, on * (1 - off)]).argmax(0)
        names = ("facilitating", "interfering", "irrelevant")
        return {name: each == number for number, name in enumerate(names)}


METHODS: dict[str, type[Gates]] = {"gates": Concrete, "subset": Subset, "causal": Causal}
