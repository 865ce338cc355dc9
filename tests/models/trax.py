"""The official Hourglass a third time: as its own program runs it and keeps its weights.

Array operations in place of loops, dense layers as (in, out), ids shifted by one, and every weight
drawn when it is first needed, so that `flat` is in the order in which trax flattens them; nothing
of hgviz is used.
"""

import numpy as np


class Trax:
    """counts outside in, such as ((2, 1), 3, (1, 2)) of (before, middle, after).

    down, up: (whether it attends, its base), of average | linear and repeat | linear | none.
    """

    def __init__(
        self, counts=((1,), 1, (1,)), factors=(3,), down=(True, "average"), up=(True, "linear"),
        *, vocabulary=11, width=12, inner=20, heads=3, seed=0,
    ):  # fmt: skip
        self.counts, self.factors, self.down, self.up = counts, factors, down, up
        self.sizes = vocabulary, width, inner, heads
        self.random = np.random.default_rng(seed)
        self.flat, self.known, self.maps = [], {}, []
        self.logits(np.zeros(int(np.prod(factors)), int))  # draws all weights

    def logits(self, ids):
        """(n, vocabulary): row i speaks of ids[i]; n is divisible by every factor."""
        vocabulary, width, _, _ = self.sizes
        self.maps = []
        table = self.weight("embed.token.weight", vocabulary, width)
        x = self.level(0, table[np.concatenate([[0], ids[:-1]])], 1)
        return self.dense("lm_head", x, vocabulary)

    def level(self, level, x, total):
        pre, middle, post = self.counts
        if level == len(self.factors):
            return self.stack("middle", x, middle, total)
        k = self.factors[level]
        r = self.stack(f"pre.{level}", x, pre[level], total)
        shifted = np.concatenate([np.zeros((k - 1, r.shape[1])), r])[: len(r)]
        short = self.level(level + 1, self.shorten(f"down.{level}", shifted, k, total), total * k)
        x = self.norm(f"up.{level}.ln_out", self.lengthen(f"up.{level}", short, r, k, total)) + r
        return self.stack(f"post.{level}", x, post[level], total)

    def stack(self, name, x, count, total):
        for i in range(count):
            y = self.norm(f"{name}.{i}.ln_attn", x)
            x = self.fed(f"{name}.{i}", x + self.attention(f"{name}.{i}.attn", y, y, total))
        return self.norm(f"{name}.ln_out", x)

    def shorten(self, name, x, k, total):
        attends, base = self.down
        y = self.norm(f"{name}.ln_in", x) if attends else x
        groups = y.reshape(len(y) // k, k, -1)
        q = groups.mean(1)
        if base == "linear":
            q = self.dense(f"{name}.proj", groups.reshape(len(groups), -1), x.shape[1])
        if not attends:
            return q
        q = self.norm(f"{name}.ln_query", q)
        return self.fed(name, q + self.attention(f"{name}.attn", q, y, total))

    def lengthen(self, name, x, r, k, total):
        attends, base = self.up
        y = self.norm(f"{name}.ln_in", x) if attends else x
        u = np.repeat(y, k, axis=0) * (base != "none")
        if base == "linear":
            u = self.dense(f"{name}.proj", y, k * y.shape[1]).reshape(len(r), -1)
        if not attends:
            return u
        u = self.norm(f"{name}.ln_query", u) + r
        return self.fed(name, u + self.attention(f"{name}.attn", u, y, 1))

    def attention(self, name, x, context, unit):
        """unit: of distances, which on the way up are those of this level, not tokens."""
        _, width, _, heads = self.sizes
        n, m = len(x), len(context)
        rows, columns = np.arange(n)[:, None], np.arange(m)[None]
        step, back = (n // m, 1) if n > m else (1, m // n)  # of a key, of a query
        angles = ((columns * step - rows * back) * unit)[..., None] / 10000 ** (
            np.arange(0, width, 2) / width
        )
        phi = np.concatenate([np.sin(angles), np.cos(angles)], -1)
        r, q, k, v = (
            self.dense(f"{name}.{part}", given, width).reshape(*given.shape[:-1], heads, -1)
            for part, given in zip("rqkv", (phi, x, context, context), strict=True)
        )
        shape = (1, heads, 1, width // heads)
        content, position = (
            self.weight(f"rel.{one}_bias", *shape)[0, :, 0] for one in ("content", "position")
        )
        scores = np.einsum("qhe,khe->hqk", q + content, k)
        scores = scores + np.einsum("qhe,qkhe->hqk", q + position, r)
        seen = columns // back <= rows // step
        scores = np.where(seen, scores / np.sqrt(width // heads), -1e9)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        self.maps.append(weights / weights.sum(-1, keepdims=True))
        attended = np.einsum("hqk,khe->qhe", self.maps[-1], v).reshape(n, width)
        return self.dense(f"{name}.o", attended, width)

    def fed(self, name, x):
        _, width, inner, _ = self.sizes
        h = self.dense(f"{name}.ff.in", self.norm(f"{name}.ln_ff", x), inner)
        gelu = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        return x + self.dense(f"{name}.ff.out", gelu, width)

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        width = x.shape[-1]
        return scaled * self.weight(f"{name}.weight", width) + self.weight(f"{name}.bias", width)

    def dense(self, name, x, made):
        kernel = self.weight(f"{name}.weight", x.shape[-1], made)
        return x @ kernel + self.weight(f"{name}.bias", made)

    def weight(self, name, *shape):
        if name not in self.known:
            scale = 0.3 if len(shape) != 2 else 0.6 / np.sqrt(shape[0] / 10)
            one = scale * self.random.normal(size=shape) + name.endswith(("ln_out.weight",))
            self.known[name] = one
            self.flat.append(one)
        return self.known[name]

    def neutral(self):
        """The weights by neutral names, matrices as (out, in)."""
        return {name: self._neutral(name, one) for name, one in self.known.items()}

    def _neutral(self, name, one):
        if name.startswith("rel."):
            return one[0, :, 0]
        return one.T if one.ndim == 2 and name != "embed.token.weight" else one
