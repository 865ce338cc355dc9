"""Captures made without a model: random, but structured enough to look at.

Heads in turn look at the previous position, at themselves, at the last full stop, near by, at
random, and at the first position.
"""

from dataclasses import replace

import numpy as np

from hgviz.core import (
    Capture,
    Integers,
    Layer,
    Level,
    ModelSpec,
    Prompt,
    Provenance,
    Signal,
    readonly,
)
from hgviz.maps import DenseMap, Factors, LazyMap, Relative, Rule

TEXT = (
    "The hourglass reads letters, then pairs, then words. It thinks where there is little to "
    "read, and says it letter by letter. Every head looks somewhere else. "
) * 3
WIDTH = 32


def level_spans(tokens: int, strides: tuple[int, ...], causal: bool) -> tuple[Integers, ...]:
    """The tokens of each position of every level, as an Hourglass has them, without torch."""
    ends = [np.arange(0, tokens, stride, dtype=np.int64) for stride in strides]
    return tuple(
        np.stack([np.maximum(first - stride + 1, 0), first + 1], axis=1)
        if causal
        else np.stack([first, np.minimum(first + stride, tokens)], axis=1)
        for stride, first in zip(strides, ends, strict=True)
    )


def make_capture(
    text: str = TEXT,
    strides: tuple[int, ...] = (1, 2, 4),
    heads: int = 6,
    seed: int = 0,
    signed: bool = False,
    windowed: bool = False,
    relative: bool = False,
    logits: bool = True,
) -> Capture:
    """A causal hourglass such as 2@1 1@2 3@4 1@2 2@1 on the bytes of a text."""
    prompt = byte_prompt(text)
    spec = make_spec(strides, heads, signed, windowed)
    random = np.random.default_rng(seed)
    maps = tuple(
        LazyMap(
            make_factors(random, *layer_shape(spec, layer, len(prompt)), layer, spec, prompt,
                         relative=relative and layer.window is None),
            layer.heads,
        )
        for layer in spec.layers
    )  # fmt: skip
    return Capture(
        spec=spec,
        prompt=prompt,
        spans=level_spans(len(prompt), strides, causal=True),
        maps=maps,
        logits=random.normal(size=(len(prompt), 256)).astype(np.float32) if logits else None,
        made=Provenance(producer="hgviz tests", created="2026-11-20T12:00:00Z", seed=seed),
    )


def byte_prompt(text: str) -> Prompt:
    """The UTF-8 bytes of a text; every byte of a character stands for that character."""
    ids = list(text.encode())
    starts = [at for at, character in enumerate(text) for _ in character.encode()]
    return Prompt(
        text=text,
        ids=np.array(ids, np.int64),
        pieces=tuple(chr(one) if one < 128 else f"<{one:02X}>" for one in ids),
        spans=np.array([(at, at + 1) for at in starts], np.int64).reshape(-1, 2),
    )


def make_spec(
    strides: tuple[int, ...], heads: int, signed: bool = False, windowed: bool = False
) -> ModelSpec:
    """Two layers outside, three in the middle, one at every level between, resampling attention."""
    inner = len(strides) - 1
    rows: list[tuple[str, str, int, int]] = []
    for level in range(inner):
        count = 2 if level == 0 else 1
        rows += [(f"pre.{level}.{i}", "self", level, level) for i in range(count)]
        rows += [(f"down.{level}", "down", level + 1, level)]
    rows += [(f"middle.{i}", "self", inner, inner) for i in range(3)]
    for level in reversed(range(inner)):
        count = 2 if level == 0 else 1
        rows += [(f"up.{level}", "up", level, level + 1)]
        rows += [(f"post.{level}.{i}", "self", level, level) for i in range(count)]
    factor = [1, *(b // a for a, b in zip(strides, strides[1:], strict=False))]
    activations = ("ymish", "tanh") if signed else ("softmax",)
    layers = tuple(
        Layer(
            index=index, name=name, role=role, level=level, key_level=key_level,
            heads=tuple(range(heads)),
            activations=tuple(activations[h % len(activations)] for h in range(heads)),
            causal=True,
            window=factor[max(level, key_level)] if windowed and level != key_level else None,
        )
        for index, (name, role, level, key_level) in enumerate(rows)
    )  # fmt: skip
    levels = tuple(Level(i, s, factor[i] - 1) for i, s in enumerate(strides))
    return ModelSpec(
        family="hourglass", name="made for tests", levels=levels, layers=layers,
        width=heads * WIDTH, vocabulary=256, digest="0" * 64, parameters=1,
        max_positions=None, form="windowed" if windowed else "official",
    )  # fmt: skip


def make_flat(layers, heads, shared=1):
    """A model of one level; heads: how many each layer has, or one number of all."""
    counts = heads if isinstance(heads, tuple) else (heads,) * layers
    one = make_spec((1,), 1)
    stack = (
        replace(one.layers[0], index=n, name=f"{n}", heads=tuple(range(count)),
                activations=("softmax",) * count, shared=shared)
        for n, count in enumerate(counts)
    )  # fmt: skip
    return replace(one, layers=tuple(stack))


def layer_shape(spec: ModelSpec, layer: Layer, tokens: int) -> tuple[int, int]:
    """(queries, keys) of a layer's maps: the finer side of resampling is padded to whole groups."""
    positions = [-(-tokens // level.stride) for level in spec.levels]
    queries, keys = positions[layer.level], positions[layer.key_level]
    factor = spec.levels[max(layer.level, layer.key_level)].stride // (
        spec.levels[min(layer.level, layer.key_level)].stride
    )
    if layer.role == "down":
        return queries, queries * factor
    if layer.role == "up":
        return keys * factor, keys
    return queries, keys


def make_factors(
    random: np.random.Generator,
    queries: int,
    keys: int,
    layer: Layer,
    spec: ModelSpec,
    prompt: Prompt,
    relative: bool = False,
) -> Factors:
    """Factors of one layer in float32, with proof rows in float64."""
    stride_q = spec.levels[layer.level].stride
    stride_k = spec.levels[layer.key_level].stride
    count = len(layer.heads)
    stops = _stops(prompt, keys, stride_k)
    pairs = [_head(h + layer.index, random, queries, keys, stride_q, stride_k, stops)
             for h in range(count)]  # fmt: skip
    q = np.stack([one[0] for one in pairs]).astype(np.float32)
    k = np.stack([one[1] for one in pairs]).astype(np.float32)
    rule = Rule(
        scale=WIDTH**-0.5,
        activations=layer.activations,
        norms=tuple("l2" if name == "ymish" else None for name in layer.activations),
        stride_q=stride_q,
        stride_k=stride_k,
        causal=layer.causal,
        windowed=layer.window is not None,
        relative=_relative(random, count, stride_q if layer.role == "up" else 1)
        if relative
        else None,
    )
    rows = np.unique(np.linspace(0, queries - 1, min(8, queries)).round().astype(np.int64))
    proof = np.zeros((count, len(rows), keys), np.float32)
    stat = np.zeros((count, queries), np.float32)
    for h in range(count):
        proof[h] = exact_rows(q[h], k[h], rule, h, rows)[0]
        for start in range(0, queries, 512):  # in float32, as a model takes them
            block = np.arange(start, min(start + 512, queries))
            stat[h, block] = exact_rows(q[h], k[h], rule, h, block, np.float32)[1]
    return Factors(q, k, stat, rule, rows, proof)


def exact_rows(q, k, rule: Rule, h: int, rows, dtype=np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Weights (rows, keys) and statistics (rows,), by the formulas of the design."""
    q, k = np.asarray(q, dtype), np.asarray(k, dtype)
    columns = np.arange(len(k))
    content = q[rows]
    scores = (content if rule.relative is None else content + rule.relative.content[h]) @ k.T
    if rule.relative is not None:
        scores = scores + exact_positions(content, rule, h, rows, columns).astype(dtype)
    scores = scores * dtype(rule.scale)
    seen = rule.sees(rows, columns)
    name = rule.activations[h]
    if name == "softmax":
        top = np.where(seen, scores, -np.inf).max(1, initial=-1e30)[:, None]
        sizes = np.where(seen, np.exp(np.minimum(scores - top, 0)), 0)
        total = sizes.sum(1)
        some = total > 0
        sums = np.where(some, total, 1)
        return sizes / sums[:, None], np.where(some, np.log(sums) + top[:, 0], np.inf)
    scores = np.where(seen, scores, 0)
    stat = np.linalg.norm(scores, axis=1) if rule.norms[h] else np.zeros(len(rows))
    if rule.norms[h]:
        scores = scores / (stat[:, None] + 1e-9)
    formulas = {
        "tanh": np.tanh,
        "ymish": lambda x: x * np.tanh(np.abs(x)),
        "swish": lambda x: x / (1 + np.exp(-x)),
        "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
        "selu": lambda x: (
            1.0507009873554805
            * np.where(x > 0, x, 1.6732632423543772 * (np.exp(np.minimum(x, 0)) - 1))
        ),
        "leaky_relu": lambda x: np.where(x > 0, x, 0.1 * x),
    }
    return np.where(seen, formulas[name](scores), 0), stat


def exact_positions(q, rule: Rule, h: int, rows, columns) -> np.ndarray:
    """(q + v) . (W phi(delta) + b), distance by distance."""
    one = rule.relative
    half = one.weight.shape[-1] // 2
    frequencies = 10000.0 ** (-np.arange(half) / half)
    steps = columns * rule.stride_k - rows[:, None] * rule.stride_q
    distinct, which = np.unique(steps, return_inverse=True)
    angles = distinct[:, None] / one.unit * frequencies
    phi = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    r = phi @ one.weight[h].astype(np.float64).T + one.bias[h]
    by_distance = (q + one.position[h]) @ r.T
    return np.take_along_axis(by_distance, which.reshape(steps.shape), axis=1)


def _relative(random: np.random.Generator, heads: int, unit: int) -> Relative:
    model = 2 * WIDTH

    def draw(*shape: int) -> np.ndarray:
        return (random.normal(size=shape) * 0.3).astype(np.float32)

    return Relative(
        draw(heads, WIDTH, model), draw(heads, WIDTH), draw(heads, WIDTH), draw(heads, WIDTH), unit
    )


def _stops(prompt: Prompt, keys: int, stride: int) -> np.ndarray:
    """True where a key stands for a full stop or a space."""
    marks = np.isin(prompt.ids, [ord("."), ord(" ")])
    marks = np.pad(marks, (0, max(0, keys * stride - len(marks))))[: keys * stride]
    return marks.reshape(keys, stride).any(1)


def _places(tokens: np.ndarray, width: int) -> np.ndarray:
    half = width // 2
    angles = tokens[:, None] * 1000.0 ** (-np.arange(half) / half)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def _head(
    kind: int,
    random: np.random.Generator,
    queries: int,
    keys: int,
    stride_q: int,
    stride_k: int,
    stops: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(q, k) of one head that looks where its kind says."""
    at_q, at_k = np.arange(queries) * stride_q, np.arange(keys) * stride_k
    noise_q = random.normal(size=(queries, WIDTH))
    noise_k = random.normal(size=(keys, WIDTH))
    kind %= 6
    if kind in (0, 1, 3):
        back, sharp = ((stride_k, 2.0), (0, 2.0), (4 * stride_k, 0.8))[min(kind, 2)]
        return sharp * _places(at_q - back, WIDTH) + 0.3 * noise_q, sharp * _places(at_k, WIDTH)
    if kind == 2:
        bump = np.where(stops, 6.0, 0.0)[:, None] * np.eye(1, WIDTH)
        return (
            0.1 * noise_q + 4.0 * np.eye(1, WIDTH) + 1.5 * _places(at_q, WIDTH),
            bump + 1.5 * _places(at_k, WIDTH),
        )
    if kind == 4:
        return 1.5 * noise_q, 1.5 * noise_k
    first = np.zeros((keys, WIDTH))
    first[0] = 5.0
    return 0.3 * noise_q + 0.3, first + 0.5 * noise_k


def stranger(capture: Capture, size: int = 4 << 20) -> Capture:
    """The same on a text of markup, controls and marks, one token of so many characters, others
    named by more of it, and a model named by markup."""
    long = "ab$<b>\u202e\0" * (size // 8)
    count = len(capture.prompt)
    some = ["<b>x</b>", "\0\x1b[2J", "\u202eabc", "$x^2$", "z "]
    parts = [some[i % 5] for i in range(count)]
    parts[4] = long
    ends = np.cumsum([len(part) for part in parts])
    spans = np.stack([ends - [len(part) for part in parts], ends], 1).astype(np.int64)
    spans[5:8] = -1
    pieces = (*parts[:5], long, "<img src=/etc/passwd>", "$\\input{x}$", *parts[8:])
    prompt = Prompt("".join(parts), capture.prompt.ids, pieces, spans)
    return replace(capture, prompt=prompt, spec=replace(capture.spec, name="<b>x</b>"))


def make_image_capture(rows=4, columns=6, heads=3, added=1, seed=0, layers=2):
    """Some layers of random weights over [CLS] and patches of 8 x 8 pixels of a picture."""
    from hgviz.models.signals import prompt_of_signal

    random = np.random.default_rng(seed)
    picture = random.integers(0, 255, (8 * rows, 8 * columns, 3)).astype(np.uint8)
    values = picture.transpose(2, 0, 1).astype(np.float32) / 255
    count = rows * columns + added
    prompt = prompt_of_signal(Signal(values, picture, (rows, columns)), count)
    found = tuple(
        Layer(at, f"layers.{at}", "self", 0, 0, tuple(range(heads)), ("softmax",) * heads, False)
        for at in range(layers)
    )
    spec = ModelSpec(
        "vit", "a vit", (Level(0),), found, 8, 0, form="encoder", goal="classes",
        labels=("cat", "dog"), modality="image",
    )  # fmt: skip
    weights = random.dirichlet(np.full(count, 0.3), (layers, heads, count)).astype(np.float32)
    maps = tuple(DenseMap(one, tuple(range(heads)), False, False) for one in weights)
    at = np.arange(count)
    spans = readonly(np.stack([at, at + 1], 1), np.int64)
    return Capture(spec, prompt, (spans,), maps, logits=np.array([0.5, 2.0], np.float32))
