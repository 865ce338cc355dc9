"""The official Hourglass once more, in numpy and loops, from its description alone.

Nawrot et al. 2021 and the text of its official code: pre-norm blocks, a norm after every stack,
attention in Transformer-XL's form, resampling attention over all earlier positions, the residual
of each level entering twice. Nothing of hgviz is used but the names of the weights.
"""

import math

import numpy as np


class Official:
    """weights: float64 arrays by neutral names. counts outside in, such as ((2, 1), 3, (1, 2))."""

    def __init__(
        self, weights, counts, factors, heads, *, down, up, base_down="average", base_up="linear",
        positions="relative", causal=True,
    ):  # fmt: skip
        self.w, self.heads, self.causal, self.positions = weights, heads, causal, positions
        (self.pre, self.middle, self.post), self.factors = counts, factors
        self.down = base_down if down == "attention" else down
        self.up = base_up if up == "attention" else up
        self.attends_down, self.attends_up = down == "attention", up == "attention"
        self.maps = []

    def logits(self, ids, real=None):
        """(n, vocabulary); real (n,) is False for padding."""
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
        shift = k - 1 if self.causal else 0
        x = self.stack(f"pre.{number}", self.pre[number], x, real, total)
        missing = -n % k
        r = np.concatenate([x, np.zeros((missing, x.shape[1]))])
        full = np.concatenate([real, np.zeros(missing, bool)])
        shifted = np.concatenate([np.zeros((shift, x.shape[1])), r])[: len(r)]
        # the zeros of the shift are averaged in and attended to; they are no tokens, though
        counted = np.concatenate([np.ones(shift, bool), full])[: len(r)]
        tokens = np.concatenate([np.zeros(shift, bool), full])[: len(r)]
        groups = np.array([tokens[g * k : g * k + k].any() for g in range(len(r) // k)])
        short = self.shorten(number, shifted, counted, k, total)
        short = self.level(number + 1, short, groups, total * k)
        x = self.lengthen(number, short, r, groups, k, total)[:n]
        return self.stack(f"post.{number}", self.post[number], x, real, total)

    def shorten(self, number, x, counted, k, total):
        name = f"down.{number}"
        if not self.attends_down:
            return self.pooled(name, x, counted, k)
        y = self.norm(f"{name}.ln_in", x)
        q = self.norm(f"{name}.ln_query", self.pooled(name, y, counted, k))
        z = q + self.attention(
            f"{name}.attn", q, y, counted,
            sees=lambda i, j: j < k * (i + 1),
            distance=lambda i, j: (j - k * i) * total,
            at_query=lambda i: i * k * total,
            at_key=lambda j: (j - (k - 1 if self.causal else 0)) * total,
        )  # fmt: skip
        return z + self.feed_forward(f"{name}", z)

    def pooled(self, name, x, counted, k):
        x = np.where(counted[:, None], x, 0.0)
        rows = []
        for g in range(len(x) // k):
            part = x[g * k : g * k + k]
            if self.down == "linear":
                rows.append(self.dense(f"{name}.proj", part.reshape(-1)))
            else:
                rows.append(part.sum(0) / max(1, counted[g * k : g * k + k].sum()))
        return np.array(rows)

    def lengthen(self, number, x, r, groups, k, total):
        name = f"up.{number}"
        if not self.attends_up:
            return self.norm(f"{name}.ln_out", self.spread(name, x, groups, k)) + r
        y = self.norm(f"{name}.ln_in", x)
        u = self.norm(f"{name}.ln_query", self.spread(name, y, groups, k)) + r
        z = u + self.attention(
            f"{name}.attn", u, y, groups,
            sees=lambda i, j: j <= i // k,
            distance=lambda i, j: k * j - i,
            at_query=lambda i: i * total,
            at_key=lambda j: j * k * total,
        )  # fmt: skip
        z = z + self.feed_forward(name, z)
        return self.norm(f"{name}.ln_out", z) + r

    def spread(self, name, x, groups, k):
        rows = []
        for g, row in enumerate(x):
            if self.up == "linear":
                parts = self.dense(f"{name}.proj", row).reshape(k, -1)
            else:
                parts = np.tile(row if self.up == "repeat" else 0 * row, (k, 1))
            rows.extend(parts if groups[g] else 0 * parts)
        return np.array(rows)

    def stack(self, name, count, x, real, total):
        for i in range(count):
            block = f"{name}.{i}"
            y = self.norm(f"{block}.ln_attn", x)
            x = x + self.attention(
                f"{block}.attn", y, y, real,
                sees=lambda i, j: j <= i,
                distance=lambda i, j: (j - i) * total,
                at_query=lambda i: i * total,
                at_key=lambda j: j * total,
            )  # fmt: skip
            x = x + self.feed_forward(block, x)
        return self.norm(f"{name}.ln_out", x)

    def feed_forward(self, name, x):
        h = self.dense(f"{name}.ff.in", self.norm(f"{name}.ln_ff", x))
        gelu = 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        return self.dense(f"{name}.ff.out", gelu)

    def attention(self, name, x, context, keep, *, sees, distance, at_query, at_key):
        q, k, v = (
            self.dense(f"{name}.{part}", given).reshape(len(given), self.heads, -1)
            for part, given in (("q", x), ("k", context), ("v", context))
        )
        width = q.shape[-1]
        if self.positions == "rotary":
            q = np.array([turned(row, at_query(i)) for i, row in enumerate(q)])
            k = np.array([turned(row, at_key(j)) for j, row in enumerate(k)])
        weights = np.zeros((self.heads, len(x), len(context)))
        out = np.zeros_like(q)
        for head in range(self.heads):
            for i in range(len(x)):
                scores = {}
                for j in range(len(context)):
                    if keep[j] and (sees(i, j) or not self.causal):
                        score = self.score(name, q[i, head], k[j, head], head, distance(i, j))
                        scores[j] = score / math.sqrt(width)
                top = max(scores.values(), default=0.0)
                total = sum(math.exp(score - top) for score in scores.values())
                for j, score in scores.items():
                    weights[head, i, j] = math.exp(score - top) / total
                    out[i, head] += weights[head, i, j] * v[j, head]
        self.maps.append(weights)
        return self.dense(f"{name}.o", out.reshape(len(x), -1))

    def score(self, name, q, k, head, distance):
        if self.positions != "relative":
            return q @ k
        size = self.w[f"{name}.r.weight"].shape[1]
        angles = distance * 10000.0 ** (-2 * np.arange(size // 2) / size)
        phi = np.concatenate([np.sin(angles), np.cos(angles)])
        r = self.dense(f"{name}.r", phi).reshape(self.heads, -1)[head]
        u, v = self.w["rel.content_bias"][head], self.w["rel.position_bias"][head]
        return (q + u) @ k + (q + v) @ r

    def norm(self, name, x):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(variance + 1e-6)
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def dense(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]


def turned(heads, token):
    """Rotary positions: each pair (2c, 2c + 1) of (heads, width) turned by token * f_c."""
    out = np.empty_like(heads)
    for c in range(heads.shape[1] // 2):
        angle = token * 10000.0 ** (-2 * c / heads.shape[1])
        a, b = heads[:, 2 * c], heads[:, 2 * c + 1]
        out[:, 2 * c] = a * math.cos(angle) - b * math.sin(angle)
        out[:, 2 * c + 1] = a * math.sin(angle) + b * math.cos(angle)
    return out
