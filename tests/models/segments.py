"""The dynamic-pooling Hourglass again, in plain loops over tokens.

Nothing is shared with hgviz.models but the names of the tensors. float64, one text at a time.
"""

import math

import numpy as np


def forward(tensors, config, ids, boundaries=None):
    """(logits (n, vocabulary), maps: (heads, queries, keys) of each layer, boundaries [0 or 1])"""
    text = _Text(tensors, config)
    x = [text.named("embed.token.weight")[one] for one in ids]
    counts = list(config["n_layers"])
    if len(counts) == 1:
        x = text.stack("middle", counts[0], x)
        return text.answers(x), text.maps, []
    x = text.stack("pre.0", counts[0], x)
    if boundaries is None:
        boundaries = text.closing(ids, x)
    segments, open_ = [], []
    for token, closes in zip(x, boundaries, strict=True):
        open_.append(token)
        if closes:
            segments.append(sum(open_) / (len(open_) + 1e-9))
            open_ = []
    groups = [text.named("down.0.null"), *segments]
    groups = [text.norm("down.0.ln", one) for one in groups]
    groups = text.stack("middle", counts[1], groups)
    closed, back = 0, []
    for token, closes in zip(x, boundaries, strict=True):
        closed += int(closes)
        back.append(groups[closed] + token)
    return text.answers(text.stack("post.0", counts[2], back)), text.maps, list(boundaries)


class _Text:
    def __init__(self, tensors, config):
        self.tensors, self.config, self.maps = tensors, config, []
        self.heads = config["n_heads"]
        self.width = config.get("d_head") or config["d_model"] // self.heads

    def named(self, name):
        return np.asarray(self.tensors[name], np.float64)

    def linear(self, name, x):
        return self.named(f"{name}.weight") @ x + self.named(f"{name}.bias")

    def norm(self, name, x):
        centred = x - x.mean()
        scaled = centred / math.sqrt((centred**2).mean() + 1e-5)
        return scaled * self.named(f"{name}.weight") + self.named(f"{name}.bias")

    def bend(self, x):
        if self.config.get("feed_forward", "relu") == "relu":
            return np.maximum(x, 0)
        return np.array([one * 0.5 * (1 + math.erf(one / math.sqrt(2))) for one in x])

    def answers(self, x):
        return np.array([self.linear("lm_head", one) for one in x])

    def closing(self, ids, x):
        kind = self.config["boundaries"]
        if kind == "fixed":
            return [int(t % self.config["shorten_factor"] == 0) for t in range(len(ids))]
        if kind == "whitespace":
            return [int(one == self.config["whitespace_id"]) for one in ids]
        found = []
        for one in x:
            hidden = self.bend(self.linear("down.0.boundary.in", one))
            logit = float(self.linear("down.0.boundary.out", hidden)[0])
            found.append(int(1 / (1 + math.exp(-logit)) > 0.5))
        return found

    def stack(self, name, count, x):
        for index in range(count):
            x = self.layer(f"{name}.{index}", x)
        return x

    def layer(self, name, x):
        attended = self.attention(f"{name}.attn", x)
        x = [self.norm(f"{name}.ln_attn", a + b) for a, b in zip(x, attended, strict=True)]
        out = []
        for one in x:
            hidden = self.bend(self.linear(f"{name}.ff.in", one))
            out.append(self.norm(f"{name}.ln_ff", one + self.linear(f"{name}.ff.out", hidden)))
        return out

    def attention(self, name, x):
        size, d = self.width, self.config["d_model"]
        q, k, v = ([self.linear(f"{name}.{part}", one) for one in x] for part in "qkv")
        r = [self.linear(f"{name}.r", _phi(t, d)) for t in range(len(x))]
        u, w = self.named("rel.content_bias"), self.named("rel.position_bias")
        maps = np.zeros((self.heads, len(x), len(x)))
        found = []
        for i in range(len(x)):
            parts = []
            for h in range(self.heads):
                at = slice(h * size, (h + 1) * size)
                scores = [
                    ((q[i][at] + u[h]) @ k[j][at] + (q[i][at] + w[h]) @ r[i - j][at])
                    / math.sqrt(size)
                    for j in range(i + 1)
                ]
                powers = [math.exp(one - max(scores)) for one in scores]
                for j in range(i + 1):
                    maps[h, i, j] = powers[j] / sum(powers)
                parts.append(sum(maps[h, i, j] * v[j][at] for j in range(i + 1)))
            found.append(self.linear(f"{name}.o", np.concatenate(parts)))
        self.maps.append(maps)
        return found


def _phi(t, d):
    angles = [t / 10000 ** (2 * c / d) for c in range(d // 2)]
    return np.array([*map(math.sin, angles), *map(math.cos, angles)])
