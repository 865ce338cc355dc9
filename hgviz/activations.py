"""The activations of attention: one row each, written once for numpy and torch.

Formulas: models.md B.1 of the project's notes; ymish is x tanh|x|, linear attention weighs by
phi(q) . phi(k) over its sum (Katharopoulos et al. 2020, phi = elu + 1), the rest are the standard
functions. Attention is a kernel over its sum (Tsai et al. 2019): softmax is exp(q . k), rbf
exp(-|q - k|^2 / 2), which a row cannot tell from exp(q . k - |k|^2 / 2), both scaled, poly2
(q . k)^2, and raw q . k itself, over no sum since it may be negative. Masked keys never pass
through these functions: whoever calls them sets masked weights to exactly 0 afterwards, since
f(mask value) is not 0 for most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

SELU_SCALE = 1.0507009873554805
SELU_ALPHA = 1.6732632423543772
LEAK = 0.1
NORM_EPSILON = 1e-9
SUM_EPSILON = 1e-6
SQUARES_EPSILON = NORM_EPSILON**2

Pooling = Literal["max", "magnitude", "after"]


@dataclass(frozen=True, slots=True)
class Activation:
    """One attention activation and its facts.

    apply(scores, stat, xp): weights from scaled scores (..., q, k); stat (..., q, 1) is the row
    statistic or None where none is needed or it was applied already (subtracted from the scores
    for the log-sum-exp, divided by for the sum). statistic: which number per row it needs; "sum" is
    of the scores to a power, to which epsilon is added.
    pooling: how a reduction commutes with it, "max" (increasing), "magnitude" (odd and increasing)
    or "after" (apply first, then pool).
    norm: what the scores of a row are divided by unless a model says otherwise.
    features(x, xp): what queries and keys pass through before they meet, None for as they are;
    scores of features are not scaled by 1 / sqrt(d). of_keys(k, xp): what a key (..., d_head) adds
    to its product with any query (...,), scaled with it; None for nothing.
    """

    name: str
    label: str
    signed: bool
    pooling: Pooling
    statistic: Literal["lse", "sum", "none"]
    apply: Callable[[Any, Any, Any], Any]
    features: Callable[[Any, Any], Any] | None = None
    norm: Literal["l2"] | None = None
    of_keys: Callable[[Any, Any], Any] | None = None
    power: int = 1
    epsilon: float = SUM_EPSILON

    def divisor(self, stat: Any) -> Any:
        """What scores are divided by, of the sum of their row; their power is the weight."""
        whole = stat + self.epsilon
        return whole if self.power == 1 else whole ** (1 / self.power)


def _softmax(scores: Any, stat: Any, xp: Any) -> Any:
    return xp.exp(scores if stat is None else scores - stat)


def _tanh(scores: Any, stat: Any, xp: Any) -> Any:
    return xp.tanh(scores)


def _swish(scores: Any, stat: Any, xp: Any) -> Any:
    return scores * (0.5 + 0.5 * xp.tanh(0.5 * scores))  # x * sigmoid(x), no overflow


def _elu(scores: Any, stat: Any, xp: Any) -> Any:
    positive = scores > 0
    return xp.where(positive, scores, xp.expm1(xp.where(positive, 0 * scores, scores)))


def _selu(scores: Any, stat: Any, xp: Any) -> Any:
    positive = scores > 0
    below = SELU_ALPHA * xp.expm1(xp.where(positive, 0 * scores, scores))
    return SELU_SCALE * xp.where(positive, scores, below)


def _leaky_relu(scores: Any, stat: Any, xp: Any) -> Any:
    return xp.where(scores > 0, scores, LEAK * scores)


def _ymish(scores: Any, stat: Any, xp: Any) -> Any:
    return scores * xp.tanh(xp.abs(scores))


def _raw(scores: Any, stat: Any, xp: Any) -> Any:
    return scores


def _over_sum(scores: Any, stat: Any, xp: Any) -> Any:
    return scores if stat is None else scores / (stat + SUM_EPSILON)


def _squared(scores: Any, stat: Any, xp: Any) -> Any:
    squares = scores * scores
    return squares if stat is None else squares / (stat + SQUARES_EPSILON)


def _elu_plus_one(x: Any, xp: Any) -> Any:
    positive = x > 0
    return xp.where(positive, x + 1, xp.exp(xp.where(positive, 0 * x, x)))


def _half_square(k: Any, xp: Any) -> Any:
    return -0.5 * (k * k).sum(-1)


ACTIVATIONS: dict[str, Activation] = {
    row.name: row
    for row in (
        Activation("softmax", "softmax", False, "max", "lse", _softmax),
        Activation("topk", "softmax of the k largest", False, "max", "lse", _softmax),
        Activation("tanh", "tanh", True, "magnitude", "none", _tanh),
        Activation("swish", "swish", True, "after", "none", _swish),
        Activation("selu", "SELU", True, "after", "none", _selu),
        Activation("elu", "ELU", True, "after", "none", _elu),
        Activation("leaky_relu", "leaky ReLU (0.1)", True, "after", "none", _leaky_relu),
        Activation("ymish", "ymish, x·tanh|x|", True, "magnitude", "none", _ymish, norm="l2"),
        Activation(
            "linear", "linear attention (elu + 1)", False, "max", "sum", _over_sum, _elu_plus_one
        ),
        Activation(
            "rbf", "Gaussian kernel (rbf)", False, "max", "lse", _softmax, of_keys=_half_square
        ),
        Activation(
            "poly2", "polynomial kernel, x²", False, "after", "sum", _squared,
            power=2, epsilon=SQUARES_EPSILON,
        ),
        Activation("raw", "linear kernel, raw scores", True, "magnitude", "none", _raw),
    )
}  # fmt: skip

# one for each sixth of the heads: "split, activate, concat" (models.md B.3)
SIX = ("softmax", "selu", "elu", "leaky_relu", "swish", "ymish")
