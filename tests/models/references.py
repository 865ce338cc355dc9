"""References that share nothing with hgviz: dense attention, two Hourglasses, a package."""

import json
import math

import numpy as np
import torch
import torch.nn.functional as F
from hourglass_transformer_pytorch import hourglass_transformer_pytorch as published
from scipy.special import erf
from torch import Tensor


def dense_maps(q, k, rule, keep=None, relative=None) -> Tensor:
    """Maps (B, H, Q, K) of q (B, H, Q, D) and k (B, G, K, D); they have gradients."""
    k = k.double().repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1)
    cells = visible_cells(rule, q.shape[2], k.shape[2], keep)
    maps = [
        head_map(dense_scores(q[:, h].double(), k[:, h], rule, relative, h), rule, h, cells[:, h])
        for h in range(q.shape[1])
    ]
    return torch.stack(maps, 1) if maps else q.new_zeros(*q.shape[:3], k.shape[2]).double()


def dense_context(maps, v, rule, keep) -> Tensor:
    """Maps times v (B, G, K, D); "uniform" rows read the mean over all keys, or their window."""
    v = v.double().repeat_interleave(maps.shape[1] // max(1, v.shape[1]), 1)
    return fill_empty(maps, rule, keep) @ v


def fill_empty(maps, rule, keep) -> Tensor:
    """The maps, with rows that see no key as rule.empty_rows says."""
    if rule.empty_rows == "zeros" or keep is None:
        return maps
    cells = visible_cells(rule, *maps.shape[2:], keep)
    bare = type(rule)(rule.scale, rule.activations, rule.norms, rule.stride_q, rule.stride_k,
                      windowed=rule.windowed)  # fmt: skip
    window = visible_cells(bare, *maps.shape[2:], None).double()
    return torch.where(cells.any(-1, keepdim=True), maps, window / window.sum(-1, keepdim=True))


def visible_cells(rule, queries, keys, keep) -> Tensor:
    """bool (B or 1, H, Q, K): the cells that exist."""
    i = torch.arange(queries)[:, None] * rule.stride_q
    j = torch.arange(keys) * rule.stride_k
    real = torch.ones(1, keys, dtype=torch.bool) if keep is None else torch.as_tensor(keep)
    earlier = j < i + rule.stride_q
    cells = earlier if rule.causal else torch.ones_like(earlier)
    if rule.windowed:
        group = max(rule.stride_q, rule.stride_k)
        cells = cells & (i // group == j // group)
    if rule.band is not None:
        cells = cells & (i - j <= rule.band[0]) & (j - i <= rule.band[1])
    if rule.chunk is not None:
        cells = cells & (i // rule.chunk == j // rule.chunk)
    cells = cells & real[:, None]
    number = real.cumsum(-1)[:, None] - 1  # of a key among the real ones
    latest = (earlier & real[:, None]).sum(-1, keepdim=True) - 1
    heads = []
    for near in rule.streaming or (None,) * len(rule.activations):
        sink, recent = near or (keys, keys)
        heads.append(cells & ((number < sink) | (number > latest - recent)))
    return torch.stack(heads, 1) if heads else cells[:, None][:, :0]


def dense_scores(q, k, rule, relative, head) -> Tensor:
    """Scaled scores (B, Q, K) of queries and keys (B, n, D) of one head."""
    scores = _scaled_scores(q, k, rule, relative, head)
    if rule.softcap is None or rule.activations[head] == "linear":  # features are no scores
        return scores
    return rule.softcap * torch.tanh(scores / rule.softcap)


def head_map(scores, rule, head, cells) -> Tensor:
    """Map (B, Q, K) of the scaled scores of one head."""
    name, norm = rule.activations[head], rule.norms[head]
    sink = 0.0 if rule.sinks is None else float(np.exp(rule.sinks[head]))
    chosen = largest(scores, cells, rule.top_k) if name == "topk" else cells
    if norm is not None:
        length = torch.linalg.vector_norm(torch.where(cells, scores, 0.0), dim=-1, keepdim=True)
        if norm == "l2":
            scores = scores / (length + 1e-9)
        else:
            scores = scores / torch.where(length > 0, length, 1.0) + 1e-9
    return dense_weights(name, torch.where(chosen, scores, 0.0), chosen, sink)


def _scaled_scores(q, k, rule, relative, head) -> Tensor:
    if rule.activations[head] == "linear":
        return (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    scores = q @ k.mT
    if rule.activations[head] == "rbf":  # exp(-|q - k|^2 / 2), without what a row has in common
        scores = scores - (k**2).sum(-1)[:, None] / 2
    distance = (
        torch.arange(k.shape[1]) * rule.stride_k - torch.arange(q.shape[1])[:, None] * rule.stride_q
    ).double()
    if relative is None:
        return scores * rule.scale
    if hasattr(relative, "curve"):
        a, c = relative.curve[head].double()
        return (scores - a * (distance - c) ** 2) * rule.scale
    if hasattr(relative, "values"):
        return (scores + relative.values[head][distance.long() - relative.lowest]) * rule.scale
    half = relative.weight.shape[-1] // 2
    angles = (distance / relative.unit)[..., None] * 10000.0 ** (
        -torch.arange(half).double() / half
    )
    phi = torch.cat([angles.sin(), angles.cos()], -1)
    r = phi @ relative.weight[head].double().T + relative.bias[head]  # (Q, K, D)
    scores = scores + (relative.content[head].double() @ k.mT)[:, None]
    scores = scores + torch.einsum("bqd,qkd->bqk", q + relative.position[head], r)
    return scores * rule.scale


def largest(scores, cells, count) -> Tensor:
    """bool: the cells whose score is among the count largest of their row, ties included."""
    ordered = scores.masked_fill(~cells, -torch.inf).sort(-1, descending=True).values
    return cells & (scores >= ordered[..., min(count, scores.shape[-1]) - 1, None])


def dense_weights(name, s, cells, sink=0.0) -> Tensor:
    """Weights of scores s (..., Q, K), which are 0 outside the cells that exist."""

    def total(x):
        return torch.where(cells, x, 0.0).sum(-1, keepdim=True)

    def share(x, y):
        return x / torch.where(y > 0, y, 1.0)

    formulas = {
        "softmax": lambda: share(s.exp(), total(s.exp()) + sink),
        "softmax1": lambda: s.exp() / (1 + total(s.exp()) + sink),
        "softpick": lambda: s.expm1().relu() / (total(s.expm1().abs()) + 1e-8),
        "sigmoid": lambda: 1 / (1 + cells.sum(-1, keepdim=True) * (-s).exp()),
        "linear": lambda: s / (total(s) + 1e-6),
        "poly2": lambda: s**2 / (total(s**2) + 1e-18),
        "raw": lambda: s,
        "tanh": lambda: s.tanh(),
        "swish": lambda: F.silu(s),
        "elu": lambda: F.elu(s),
        "selu": lambda: F.selu(s),
        "leaky_relu": lambda: F.leaky_relu(s, 0.1),
        "ymish": lambda: s * s.abs().tanh(),
    }
    formula = formulas[{"topk": "softmax", "rbf": "softmax"}.get(name, name)]
    return torch.where(cells, formula(), 0.0)


# --- the official Hourglass -----------------------------------------------------------------------


class Official:
    """weights: float64 arrays by neutral names, which are read in the order in which trax flattens
    its own. counts outside in, such as ((2, 1), 3, (1, 2)) of (before, middle, after). down, up:
    (whether it attends, its base), of average | linear and repeat | linear | none. maps: of every
    layer (heads, queries, keys), after a call of logits."""

    epsilon = 1e-6

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
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.epsilon)
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


# --- the dynamic-pooling Hourglass ----------------------------------------------------------------


def run_segments(tensors, config, ids, boundaries=None):
    """(logits (n, vocabulary), maps: (heads, queries, keys) of each layer, boundaries [0 or 1])"""
    model = Segments(tensors, config)
    logits, closes = model.read(ids, boundaries)
    return logits, model.maps, closes


class Segments(Official):
    """Nawrot et al. 2023: post-norm blocks, distances counted back, means of segments that end at
    boundaries, the null group first."""

    epsilon = 1e-5

    def __init__(self, tensors, config):
        weights = {name: np.asarray(tensor, np.float64) for name, tensor in tensors.items()}
        super().__init__(weights, ((), 0, ()), (), config["n_heads"])
        self.config = config

    def read(self, ids, boundaries):
        x, counts = self.w["embed.token.weight"][ids], self.config["n_layers"]
        if len(counts) == 1:
            return self.dense("lm_head", self.blocks("middle", counts[0], x)), []
        x = self.blocks("pre.0", counts[0], x)
        closes = np.array(self.closing(ids, x) if boundaries is None else boundaries, int)
        number, groups = np.cumsum(closes) - closes, [self.w["down.0.null"]]
        for segment in range(closes.sum()):
            tokens = x[number == segment]
            groups.append(tokens.sum(0) / (len(tokens) + 1e-9))
        short = self.blocks("middle", counts[1], self.norm("down.0.ln", np.array(groups)))
        x = self.blocks("post.0", counts[2], short[np.cumsum(closes)] + x)
        return self.dense("lm_head", x), closes.tolist()

    def closing(self, ids, x):
        kind = self.config["boundaries"]
        if kind == "fixed":
            return np.arange(len(ids)) % self.config["shorten_factor"] == 0
        if kind == "whitespace":
            return ids == self.config["whitespace_id"]
        hidden = self.bend(self.dense("down.0.boundary.in", x))
        return self.dense("down.0.boundary.out", hidden)[:, 0] > 0

    def blocks(self, name, count, x):
        at, real = np.arange(len(x)), np.ones(len(x), bool)
        for block in (f"{name}.{i}" for i in range(count)):
            earlier, distance = at <= at[:, None], at[:, None] - at
            y = self.attention(f"{block}.attn", x, x, real, earlier, distance, at, at)
            x = self.norm(f"{block}.ln_attn", x + y)
            hidden = self.bend(self.dense(f"{block}.ff.in", x))
            x = self.norm(f"{block}.ln_ff", x + self.dense(f"{block}.ff.out", hidden))
        return x

    def bend(self, x):
        if self.config.get("feed_forward", "relu") == "relu":
            return np.maximum(x, 0)
        return x / 2 * (1 + erf(x / math.sqrt(2)))


# --- the package hourglass-transformer-pytorch ----------------------------------------------------

published.math = math  # version 0.0.6 forgets to import it and fails on every ragged text


def build_package(seed=0, **arguments):
    """A model of the package in float64, no parameter at its initial 0 or 1."""
    torch.manual_seed(seed)
    model = published.HourglassTransformerLM(**arguments).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def write_package(folder, model, arguments, prefix="", name="model.pt", **extra):
    """A checkpoint as its users keep them: config.json with the arguments, and a state dict."""
    folder.mkdir(exist_ok=True)
    config = {"model_type": "hourglass-transformer-pytorch", **arguments, **extra}
    (folder / "config.json").write_text(json.dumps(config))
    state = {prefix + key: value.clone() for key, value in model.state_dict().items()}
    if name.endswith(".pt"):
        torch.save(state, folder / name)
    else:
        from safetensors.torch import save_file

        save_file(state, folder / name)
    return folder


def logits_of_package(model, ids, mask=None):
    """(batch, n, vocabulary) of ids (batch, n)."""
    keep = None if mask is None else torch.tensor(mask)
    with torch.inference_mode():
        return model(torch.tensor(ids), mask=keep).numpy()


def maps_of_package(model, ids, mask=None):
    """Every softmax of one text, (heads, queries, keys) in order of computation.

    Windows are unfolded: row g of a map going down has its weights in columns gk to gk + k - 1.
    """
    seen = []

    def keep(module, inputs, output):
        seen.append(output.numpy())

    parts = [one for one in model.modules() if isinstance(one, published.Attention)]
    hooks = [one.dropout.register_forward_hook(keep) for one in parts]
    logits_of_package(model, ids[None], None if mask is None else mask[None])
    for hook in hooks:
        hook.remove()
    return [_unfolded(one) for one in seen]


def _unfolded(weights):
    groups, heads, queries, keys = weights.shape
    if groups == 1 and queries == keys:
        return weights[0]
    full = np.zeros((heads, groups * queries, groups * keys))
    for g in range(groups):
        full[:, g * queries : (g + 1) * queries, g * keys : (g + 1) * keys] = weights[g]
    return full
