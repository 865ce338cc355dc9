"""The official Hourglass once more, in numpy, from its description alone.

Nawrot et al. 2021 and the text of its official code: pre-norm blocks, a norm after every stack,
attention in Transformer-XL's form, resampling attention over all earlier positions, the residual
of each level entering twice. Nothing of hgviz is used but the names of the weights.
"""

import numpy as np


class Official:
    """weights: float64 arrays by neutral names, which are read in the order in which trax flattens
    its own. counts outside in, such as ((2, 1), 3, (1, 2)) of (before, middle, after). down, up:
    (whether it attends, its base), of average | linear and repeat | linear | none. maps: of every
    layer (heads, queries, keys), after a call of logits."""

    def __init__(self, weights, counts, factors, heads, *, down=(True, "average"),
                 up=(True, "linear"), positions="relative", causal=True):  # fmt: skip
        self.w, self.heads, self.causal, self.positions = weights, heads, causal, positions
        (self.pre, self.middle, self.post), self.factors = counts, factors
        self.down, self.up, self.maps = down, up, []

    def logits(self, ids, real=None):
        """(n, vocabulary); real (n,) is False for padding."""
        self.maps = []
        x = self.w["embed.token.weight"][ids]
        if self.positions == "learned":
            x = x + self.w["embed.position.weight"][: len(ids)]
        real = np.ones(len(ids), bool) if real is None else real
        return self.dense("lm_head", self.level(0, x, real, 1))

    def level(self, number, x, real, total):
        """One level and everything inside it; total is its shortening so far."""
        if number == len(self.factors):
            return self.stack("middle", self.middle, x, real, total)
        k, n = self.factors[number], len(x)
        shift, missing = k - 1 if self.causal else 0, -n % k
        x = self.stack(f"pre.{number}", self.pre[number], x, real, total)
        r, full = np.pad(x, ((0, missing), (0, 0))), np.pad(real, (0, missing))
        shifted = np.pad(r, ((shift, 0), (0, 0)))[: len(r)]
        # the zeros of the shift are averaged in and attended to; they are no tokens, though
        counted = np.concatenate([np.ones(shift, bool), full])[: len(r)]
        tokens = np.pad(full, (shift, 0))[: len(r)].reshape(-1, k).any(1)
        short = self.shorten(f"down.{number}", shifted, counted, k, total)
        short = self.level(number + 1, short, tokens, total * k)
        x = self.lengthen(f"up.{number}", short, r, tokens, k, total)
        x = (self.norm(f"up.{number}.ln_out", x) + r)[:n]
        return self.stack(f"post.{number}", self.post[number], x, real, total)

    def stack(self, name, count, x, real, total):
        at = np.arange(len(x))
        for block in (f"{name}.{i}" for i in range(count)):
            y = self.norm(f"{block}.ln_attn", x)
            x = self.fed(block, x + self.attention(
                f"{block}.attn", y, y, real, at <= at[:, None], (at - at[:, None]) * total,
                at * total, at * total,
            ))  # fmt: skip
        return self.norm(f"{name}.ln_out", x)

    def shorten(self, name, x, counted, k, total):
        attends, base = self.down
        y = np.where(counted[:, None], self.norm(f"{name}.ln_in", x) if attends else x, 0.0)
        groups = y.reshape(-1, k, y.shape[1])
        if base == "linear":
            q = self.dense(f"{name}.proj", groups.reshape(len(groups), -1))
        else:
            q = groups.sum(1) / np.maximum(1, counted.reshape(-1, k).sum(1))[:, None]
            q = self.resized(name, q)
        if not attends:
            return q
        q, y = self.norm(f"{name}.ln_query", q), self.norm(f"{name}.ln_in", x)
        i, j = k * np.arange(len(q)), np.arange(len(y))
        shift = k - 1 if self.causal else 0
        return self.fed(name, q + self.attention(
            f"{name}.attn", q, y, counted, j < i[:, None] + k, (j - i[:, None]) * total,
            i * total, (j - shift) * total,
        ))  # fmt: skip

    def lengthen(self, name, x, r, groups, k, total):
        attends, base = self.up
        y = self.norm(f"{name}.ln_in", x) if attends else x
        if base == "linear":
            u = self.dense(f"{name}.proj", y).reshape(len(r), -1)
        else:
            u = np.zeros(r.shape) if base == "none" else np.repeat(self.resized(name, y), k, axis=0)
        u = u * np.repeat(groups, k)[:, None]
        if not attends:
            return u
        u = self.norm(f"{name}.ln_query", u) + r
        i, j = np.arange(len(u)), k * np.arange(len(y))
        return self.fed(name, u + self.attention(
            f"{name}.attn", u, y, groups, j <= i[:, None], j - i[:, None], i * total, j * total,
        ))  # fmt: skip

    def resized(self, name, x):
        """States at the width of another level, where its own differs."""
        return self.dense(f"{name}.resize", x) if f"{name}.resize.weight" in self.w else x

    def fed(self, name, x):
        h = self.dense(f"{name}.ff.in", self.norm(f"{name}.ln_ff", x))
        gelu = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        return x + self.dense(f"{name}.ff.out", gelu)

    def attention(self, name, x, context, keep, earlier, distance, at_query, at_key):
        """Of x over a context; earlier: the keys that a causal model sees, distances in tokens."""
        r = u = v = 0.0
        if self.positions == "relative":
            size = x.shape[1]
            angles = distance[..., None] * 10000.0 ** (-np.arange(0, size, 2) / size)
            phi = np.concatenate([np.sin(angles), np.cos(angles)], -1)
            r = self.split(self.dense(f"{name}.r", phi))
        q, k, values = (
            self.split(self.dense(f"{name}.{part}", given))
            for part, given in (("q", x), ("k", context), ("v", context))
        )
        if self.positions == "rotary":
            q, k = turned(q, at_query), turned(k, at_key)
        if self.positions == "relative":
            u, v = self.w["rel.content_bias"], self.w["rel.position_bias"]
            scores = np.einsum("qhe,khe->hqk", q + u, k) + np.einsum("qhe,qkhe->hqk", q + v, r)
        else:
            scores = np.einsum("qhe,khe->hqk", q, k)
        seen = keep & (earlier | (not self.causal))
        scores = np.where(seen, scores / np.sqrt(q.shape[-1]), -np.inf)
        weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e9))
        self.maps.append(weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300))
        out = np.einsum("hqk,khe->qhe", self.maps[-1], values)
        return self.dense(f"{name}.o", out.reshape(len(x), -1))

    def split(self, x):
        return x.reshape(*x.shape[:-1], self.heads, -1)

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def dense(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]


def turned(heads, tokens):
    """Rotary positions: each pair (2c, 2c + 1) of (n, H, D) turned by its token times f_c."""
    width = heads.shape[-1]
    angles = tokens[:, None, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    a, b, out = heads[..., 0::2], heads[..., 1::2], np.empty_like(heads)
    out[..., 0::2] = a * np.cos(angles) - b * np.sin(angles)
    out[..., 1::2] = a * np.sin(angles) + b * np.cos(angles)
    return out
