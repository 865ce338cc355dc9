"""The activations of attention: one row each, written once for numpy and torch.

ymish is x tanh|x|, linear attention weighs by
phi(q) . phi(k) over its sum (Katharopoulos et al. 2020, phi = elu + 1), the rest are the standard
functions. Attention is a kernel over its sum (Tsai et al. 2019): softmax is exp(q . k), rbf
exp(-|q - k|^2 / 2), which a row cannot tell from exp(q . k - |k|^2 / 2), both scaled, poly2
(q . k)^2, and raw q . k itself, over no sum since it may be negative. Masked keys never pass
through these functions: whoever calls them sets masked weights to exactly 0 afterwards, since
f(mask value) is not 0 for most of them.

Three let a row look at nothing. softmax1 is exp(s_j) / (1 + sum_k exp(s_k)) (Miller 2023,
"Attention Is Off By One"): a sink of logit 0. softpick is relu(exp(s_j) - 1) over the sum of
|exp(s_k) - 1| and epsilon (Zuhri et al. 2025, "Softpick: No Attention Sink, No Massive Activations
with Rectified Softmax"). They keep it in range by the largest score m of the row, exp(s - m) -
exp(-m), and add epsilon after that; here it is kept in range by the logarithm of the sum, epsilon
is 1e-8 beside exp(s) itself, and no weight differs by more than 2 epsilon. sigmoid is
sigmoid(s_j - log n) (Ramapuram et al. 2024, "Theory, Analysis, and Best Practices for Sigmoid
Self-Attention"), n being how many keys the row sees: the length of the text, as in the paper, where
all see all; but neither the padding of a batch nor, in a causal model, tokens to come count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, Literal

from hgviz.errors import require

SELU_SCALE = 1.0507009873554805
SELU_ALPHA = 1.6732632423543772
LEAK = 0.1
NORM_EPSILON = 1e-9
SUM_EPSILON = 1e-6
SQUARES_EPSILON = NORM_EPSILON**2
SOFTPICK_EPSILON = 1e-8
LOG_ZERO = -60.0  # the logarithm of what is too small to count, in half precision too

Pooling = Literal["max", "magnitude", "after"]


@dataclass(frozen=True, slots=True)
class Activation:
    """One attention activation and its facts.

    apply(scores, stat, xp): weights from scaled scores (..., q, k); stat (..., q, 1) is the row
    statistic or None where none is needed or it was applied already (subtracted from the scores
    for the log-sum-exp, divided by for the sum); a score of 0 weighs 0 unless statistic is "lse".
    statistic: which number per row it needs; "sum" is of the scores to a power, to which epsilon is
    added. logs(scores, xp): of which numbers the log-sum-exp is subtracted, and of which it is;
    None for the scores, both times. sink: a logit that takes part in it and has no key.
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
    logs: Callable[[Any, Any], tuple[Any, Any]] | None = None
    sink: float | None = None

    @property
    def softmax(self) -> bool:
        """Whether a weight is e to the score less the statistic, so that a row and its sinks sum to
        1."""
        return self.statistic == "lse" and self.logs is None

    def split(self, scores: Any, xp: Any) -> tuple[Any, Any]:
        """What the log-sum-exp of a row is subtracted from, and what it is taken of."""
        return (scores, scores) if self.logs is None else self.logs(scores, xp)

    def divisor(self, stat: Any) -> Any:
        """What scores are divided by, of the sum of their row; their power is the weight."""
        whole = stat + self.epsilon
        return whole if self.power == 1 else whole ** (1 / self.power)


def _softmax(scores: Any, stat: Any, xp: Any) -> Any:
    return xp.exp(scores if stat is None else scores - stat)


def _log_excess(scores: Any, xp: Any) -> tuple[Any, Any]:
    """log(e^s - 1) where that is above 0, and log|e^s - 1|, neither of which overflows."""
    positive, zero = scores > 0, scores == 0
    size = xp.abs(xp.where(zero, 0 * scores + 1, scores))
    whole = xp.where(positive, scores, 0 * scores) + xp.log(-xp.expm1(-size))
    terms = xp.where(zero, 0 * scores + LOG_ZERO, whole)
    return xp.where(positive, terms, 0 * scores - float("inf")), terms


def _sigmoid(scores: Any, stat: Any, xp: Any) -> Any:
    x = scores if stat is None else scores - stat
    positive = x > 0
    small = xp.exp(xp.where(positive, -x, x))
    return xp.where(positive, 0 * small + 1, small) / (1 + small)


def _elu(scores: Any, stat: Any, xp: Any) -> Any:
    positive = scores > 0
    return xp.where(positive, scores, xp.expm1(xp.where(positive, 0 * scores, scores)))


def _selu(scores: Any, stat: Any, xp: Any) -> Any:
    positive = scores > 0
    below = SELU_ALPHA * xp.expm1(xp.where(positive, 0 * scores, scores))
    return SELU_SCALE * xp.where(positive, scores, below)


def _over_sum(scores: Any, stat: Any, xp: Any) -> Any:
    return scores if stat is None else scores / (stat + SUM_EPSILON)


def _squared(scores: Any, stat: Any, xp: Any) -> Any:
    squares = scores * scores
    return squares if stat is None else squares / (stat + SQUARES_EPSILON)


def _elu_plus_one(x: Any, xp: Any) -> Any:
    positive = x > 0
    return xp.where(positive, x + 1, xp.exp(xp.where(positive, 0 * x, x)))


ACTIVATIONS: dict[str, Activation] = {
    row.name: row
    for row in (
        Activation("softmax", "softmax", False, "max", "lse", _softmax),
        Activation("topk", "softmax of the k largest", False, "max", "lse", _softmax),
        Activation("softmax1", "softmax1 (sum + 1)", False, "max", "lse", _softmax, sink=0.0),
        Activation(
            "softpick", "softpick (rectified softmax)", False, "max", "lse", _softmax,
            logs=_log_excess, sink=log(SOFTPICK_EPSILON),
        ),
        Activation(
            "sigmoid", "sigmoid", False, "max", "lse", _sigmoid, logs=lambda s, xp: (s, 0 * s)
        ),
        Activation("tanh", "tanh", True, "magnitude", "none", lambda s, _, xp: xp.tanh(s)),
        Activation(
            "swish", "swish", True, "after", "none",
            lambda s, _, xp: s * (0.5 + 0.5 * xp.tanh(0.5 * s)),  # s sigmoid(s), no overflow
        ),
        Activation("selu", "SELU", True, "after", "none", _selu),
        Activation("elu", "ELU", True, "after", "none", _elu),
        Activation(
            "leaky_relu", "leaky ReLU (0.1)", True, "after", "none",
            lambda s, _, xp: xp.where(s > 0, s, LEAK * s),
        ),
        Activation(
            "ymish", "ymish, x·tanh|x|", True, "magnitude", "none",
            lambda s, _, xp: s * xp.tanh(xp.abs(s)), norm="l2",
        ),
        Activation(
            "linear", "linear attention (elu + 1)", False, "max", "sum", _over_sum, _elu_plus_one
        ),
        Activation(
            "rbf", "Gaussian kernel (rbf)", False, "max", "lse", _softmax,
            of_keys=lambda k, xp: -0.5 * (k * k).sum(-1),
        ),
        Activation(
            "poly2", "polynomial kernel, x²", False, "after", "sum", _squared,
            power=2, epsilon=SQUARES_EPSILON,
        ),
        Activation("raw", "linear kernel, raw scores", True, "magnitude", "none", lambda s, *_: s),
    )
}  # fmt: skip

# one for each sixth of the heads: "split, activate, concat"
SIX_ACTIVATIONS = ("softmax", "selu", "elu", "leaky_relu", "swish", "ymish")


def parse_activations(text: str) -> tuple[tuple[str, ...], dict[str, str], int | None]:
    """The activations that a text names, the norms of their scores, and the k of topk.

    "ymish", "topk:8" (which keeps 8 keys), "ymish:l2-literal" (the norm of its scores), or a list
    "softmax,ymish" whose names go over the heads of each layer in equal blocks.
    Raises HgvizError for what cannot be read; models check names of norms.
    """

    def require_readable(condition: object, why: str) -> None:
        require(
            condition,
            f"the activation {text[:80]!r} cannot be used: {why}",
            "Write NAME, NAME:NORM or topk:K, or several of these with commas, for equal blocks of "
            "heads",
        )

    names: list[str] = []
    suffixes: dict[str, str] = {}
    for item in text.split(","):
        name, colon, suffix = item.strip().partition(":")
        require_readable(
            name in ACTIVATIONS,
            f"{name[:40]!r} is unknown; choose from {', '.join(ACTIVATIONS)}",
        )
        if name == "topk":
            is_count = suffix.isascii() and suffix.isdecimal() and len(suffix) < 9 and int(suffix)
            require_readable(is_count, "topk needs a number of keys, as in topk:8")
        require_readable(suffix or not colon, f"{name}: has no norm after the colon")
        is_same = suffixes.setdefault(name, suffix) == suffix
        require_readable(is_same, f"{name} is given in two variants; a model has one")
        names.append(name)
    norms = {name: suffix for name, suffix in suffixes.items() if suffix}
    count = norms.pop("topk", None)
    return tuple(names), norms, None if count is None else int(count)
