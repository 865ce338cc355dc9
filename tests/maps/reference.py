"""Whole maps in float64, cell by cell from the formulas, sharing nothing with what is tested."""

import numpy as np

FORMULAS = {
    "tanh": np.tanh,
    "swish": lambda x: x / (1 + np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(np.minimum(x, 0)) - 1))
    ),
    "leaky_relu": lambda x: np.maximum(x, 0.1 * x),
    "ymish": lambda x: x * np.tanh(np.abs(x)),
    "raw": lambda x: x,
}
SOFTMAXES, SUMS = ("softmax", "topk", "rbf"), ("linear", "poly2")
OPEN = {  # rows that need not sum to 1: weights of all scores of a row that are seen, and their sum
    "softmax1": lambda s: (np.exp(s), 1 + np.exp(s).sum()),
    "softpick": lambda s: (np.maximum(np.expm1(s), 0), np.abs(np.expm1(s)).sum() + 1e-8),
    "sigmoid": lambda s: (1 / (1 + len(s) * np.exp(-s)), len(s)),
}


def visible(rule, queries: int, keys: int, head: int = 0) -> np.ndarray:
    """The cells of a head that exist."""
    seen = np.zeros((queries, keys), bool)
    near = rule.streaming[head] if rule.streaming else None
    for i in range(queries):
        for j in range(keys):
            at_q, at_k = i * rule.stride_q, j * rule.stride_k
            group = max(rule.stride_q, rule.stride_k)
            seen[i, j] = (
                (not rule.causal or at_k < at_q + rule.stride_q)
                and (not rule.windowed or at_q // group == at_k // group)
                and (rule.keep is None or rule.keep[j])
                and (rule.band is None or i - rule.band[0] <= j <= i + rule.band[1])
                and (rule.chunk is None or i // rule.chunk == j // rule.chunk)
            )
        if near is not None:  # the first and the latest of the keys that are kept
            known = [j for j in range(min(i + 1, keys)) if rule.keep is None or rule.keep[j]]
            seen[i, [j for j in range(keys) if j not in known[: near[0]] + known[-near[1] :]]] = 0
    return seen


def scores(q, k, rule, head: int, dtype) -> np.ndarray:
    """Scaled scores in a dtype, computed as a model computes them."""
    q, k = np.asarray(q, dtype), np.asarray(k, dtype)
    if rule.activations[head] == "linear":
        return q @ k.T
    # the kernel exp(-|q - k|^2 / 2), but for what all of a row have in common
    lengths = (k**2).sum(1) / 2 if rule.activations[head] == "rbf" else dtype(0)
    if rule.relative is None:
        return (q @ k.T - lengths) * dtype(rule.scale)
    one = rule.relative
    if hasattr(one, "lowest"):
        far = np.arange(len(k)) - np.arange(len(q))[:, None]
        return (q @ k.T + one.values[head][far - one.lowest]) * dtype(rule.scale)
    if hasattr(one, "curve"):
        far = np.arange(len(k)) * rule.stride_k - np.arange(len(q))[:, None] * rule.stride_q
        a, c = np.asarray(one.curve[head], np.float64)
        terms = (a * (far - c) ** 2).astype(dtype)
        return (q @ k.T - lengths - terms) * dtype(rule.scale)
    out = (q + one.content[head].astype(dtype)) @ k.T - lengths
    half = one.weight.shape[-1] // 2
    for i in range(len(q)):
        delta = (np.arange(len(k)) * rule.stride_k - i * rule.stride_q) / one.unit
        angles = delta[:, None] * 10000.0 ** (-np.arange(half) / half)
        phi = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(dtype)
        r = phi @ one.weight[head].astype(dtype).T + one.bias[head].astype(dtype)
        out[i] += r @ (q[i] + one.position[head].astype(dtype))
    return out * dtype(rule.scale)


def choose(values, seen, k: int) -> np.ndarray:
    """The k largest scores of every row, and those as large as the last of them."""
    chosen = np.zeros_like(seen)
    for i, row in enumerate(values):
        there = sorted(row[seen[i]], reverse=True)
        if there:
            chosen[i] = seen[i] & (row >= there[min(k, len(there)) - 1])
    return chosen


def statistic(values, seen, activation: str, norm) -> np.ndarray:
    """The row statistic of scores, in their dtype."""
    if activation == "linear":
        return np.where(seen, values, 0).sum(1)
    if activation == "poly2":
        return np.square(np.where(seen, values, 0)).sum(1)
    if activation in OPEN:
        rows = zip(values.astype(np.float64), seen, strict=True)
        sums = [OPEN[activation](row[there])[1] if there.any() else np.inf for row, there in rows]
        return np.log(sums).astype(values.dtype)
    if activation in SOFTMAXES:
        masked = np.where(seen, values, -np.inf)
        top = masked.max(1, initial=-np.inf)
        safe = np.where(np.isfinite(top), top, 0)
        with np.errstate(divide="ignore"):
            lse = np.log(np.exp(masked - safe[:, None]).sum(1)) + safe
        return np.where(seen.any(1), lse, np.inf)
    if norm:
        return length(values, seen)
    return np.zeros(len(values), values.dtype)


def length(values, seen) -> np.ndarray:
    """The Euclidean length of every row."""
    return np.sqrt((np.where(seen, values, 0) ** 2).sum(1))


def whole_map(q, k, rule, head: int, chosen=None) -> np.ndarray:
    """(queries, keys) float64; chosen: the cells that topk keeps, if not those in float64."""
    values = scores(q, k, rule, head, np.float64)
    values = values if rule.softcap is None else np.tanh(values / rule.softcap) * rule.softcap
    seen = visible(rule, *values.shape, head)
    sink = -np.inf if rule.sinks is None else float(rule.sinks[head])
    activation, norm = rule.activations[head], rule.norms[head]
    if norm and activation in (*SOFTMAXES, *SUMS, *OPEN):
        values = values / (length(values, seen)[:, None] + 1e-9)
    if activation == "topk":
        seen = choose(values, seen, rule.top_k) if chosen is None else chosen
    stat = statistic(values, seen, activation, norm)
    if activation == "softmax":
        stat = np.where(seen.any(1), np.logaddexp(stat, sink), np.inf)
    if activation == "linear":
        out = np.where(seen, values / (stat[:, None] + 1e-6), 0.0)
    elif activation == "poly2":
        out = np.where(seen, values**2 / (stat[:, None] + 1e-18), 0.0)
    elif activation in OPEN:
        out = np.zeros(seen.shape)
        for row, there, found in zip(values, seen, out, strict=True):
            if there.any():
                weights, total = OPEN[activation](row[there])
                total += np.exp(sink) if activation == "softmax1" else 0
                found[there] = weights if activation == "sigmoid" else weights / total
    elif activation in SOFTMAXES:
        shift = np.where(np.isinf(stat), 0, stat)[:, None]
        out = np.where(seen, np.exp(np.where(seen, values - shift, 0)), 0.0)
    else:
        values = np.where(seen, values, 0)
        values = values / (stat[:, None] + 1e-9) if norm else values
        out = np.where(seen, FORMULAS[activation](values), 0.0)
    if rule.empty_rows == "uniform":
        group = max(rule.stride_q, rule.stride_k)
        for i in np.flatnonzero(~visible(rule, *values.shape).any(1)):
            inside = np.ones(len(k), bool)
            if rule.windowed:
                inside = np.arange(len(k)) * rule.stride_k // group == i * rule.stride_q // group
            out[i, inside] = 1 / inside.sum()
    return out


def pooled(values, zoom: int, reduce: str, signed: bool) -> np.ndarray:
    """Cells of 2^zoom one after another."""
    side = 1 << zoom
    out = np.zeros([-(-size // side) for size in values.shape], np.float32)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            cell = values[i * side : (i + 1) * side, j * side : (j + 1) * side]
            if reduce == "mean":
                out[i, j] = cell.mean(dtype=np.float64)
            elif signed:
                high, low = cell.max(), cell.min()
                out[i, j] = high if high >= -low else low
            else:
                out[i, j] = cell.max()
    return out
