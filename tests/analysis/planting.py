"""Captures whose maps are planted: dense arrays that do a known thing."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hgviz.core import Capture, Layer, Level, ModelSpec, Prompt, readonly
from hgviz.maps import DenseMap
from hgviz.models.config import parse_config
from hgviz.models.pretrained_config import Pooling, TransformersConfig
from tests.making import byte_prompt, layer_shape, level_spans, make_spec


def planted(weights: np.ndarray, signed: bool = False) -> DenseMap:
    """A dense map (heads, queries, keys) whose heads have the numbers from 0."""
    return DenseMap(np.asarray(weights, np.float32), tuple(range(len(weights))), signed)


def letters(text: str) -> Prompt:
    """A text of single letters."""
    ids = np.array([ord(one) for one in text], np.int64)
    return replace(pieces(*text), ids=ids)


def pieces(*parts: str) -> Prompt:
    """A text of given pieces, each its own token."""
    ends = np.cumsum([len(part) for part in parts])
    spans = np.stack([ends - [len(part) for part in parts], ends], axis=1)
    known = sorted(set(parts))
    ids = np.array([known.index(part) for part in parts], np.int64)
    return Prompt("".join(parts), ids, parts, spans)


def spaced(words: Sequence[str]) -> Prompt:
    """A text with each word its own token, a space before all but the first."""
    return pieces(*[("" if at == 0 else " ") + word for at, word in enumerate(words)])


def tagged(*parts: str) -> Prompt:
    """Word pieces of parts such as [CLS], film, ##s; special ones stand for no characters."""
    texts = ["" if part[0] == "[" else part.removeprefix("##") for part in parts]
    gaps = [" " * (part[0] != "[" and not part.startswith("##")) for part in parts]
    ends = np.cumsum([len(gap + text) for gap, text in zip(gaps, texts, strict=True)])
    spans = np.stack([ends - [len(text) for text in texts], ends], axis=1)
    spans[[part[0] == "[" for part in parts]] = -1
    text = "".join(gap + text for gap, text in zip(gaps, texts, strict=True))
    ids = np.array([sorted(set(parts)).index(part) for part in parts], np.int64)
    return Prompt(text, ids, tuple(parts), spans)


def even_rows(values: np.ndarray) -> np.ndarray:
    """Rows divided by their sums."""
    return values / np.maximum(values.sum(-1, keepdims=True), 1e-300)


def plant(prompt: Prompt, maps: list[np.ndarray], *, causal=True, signed=False) -> Capture:
    """A plain stack of self-attention layers with the given maps (heads, n, n)."""
    layers = tuple(
        Layer(i, f"middle.{i}", "self", 0, 0, tuple(range(len(one))), ("softmax",) * len(one),
              causal)
        for i, one in enumerate(maps)
    )  # fmt: skip
    spec = ModelSpec("test", "test", (Level(0),), layers, 8, 256)
    spans = level_spans(len(prompt), (1,), causal)
    return Capture(spec, prompt, spans, tuple(planted(one, signed) for one in maps))


def translated(
    source: Prompt,
    target: Prompt,
    maps: dict[str, np.ndarray] | None = None,
    *,
    encoder=2,
    decoder=2,
    heads=2,
    signed=False,
) -> Capture:
    """An encoder-decoder, or a decoder alone where encoder is 0; maps by name, else random."""
    rows = [(f"encoder.{i}", "self", 0, 0) for i in range(encoder)]
    for i in range(decoder):
        rows += [(f"decoder.{i}", "self", 1, 1), (f"decoder.{i}.cross", "cross", 1, 0)]
    layers = tuple(
        Layer(i, name, role, level, key_level, tuple(range(heads)),
              ("tanh" if signed else "softmax",) * heads, role == "self" and level == 1)
        for i, (name, role, level, key_level) in enumerate(rows)
    )  # fmt: skip
    levels = (Level(0), Level(1, sequence="target"))
    form = "encoder-decoder" if encoder else "decoder"
    spec = ModelSpec("transformer", "test", levels, layers, 8, 256, form=form)
    sizes = len(source), len(target)
    random = np.random.default_rng(0)
    made = []
    for layer in layers:
        shape = (heads, sizes[layer.level], sizes[layer.key_level])
        raw = random.normal(size=shape) if signed else random.gamma(0.3, size=shape) + 1e-9
        raw = np.tril(raw) if layer.causal else raw
        even = raw if signed else raw / raw.sum(-1, keepdims=True)
        made.append(planted((maps or {}).get(layer.name, even), signed))
    spans = tuple(np.stack([np.arange(n), np.arange(n) + 1], axis=1) for n in sizes)
    return Capture(spec, source, spans, tuple(made), target=target)


def hourglass(
    prompt: Prompt,
    strides: tuple[int, ...],
    *,
    form="official",
    causal=True,
    down=True,
    up=True,
    heads=2,
    upsampling="",
    weights=None,
) -> Capture:
    """An Hourglass with maps that weights(layer, seen) makes: (heads, queries, keys) from seen;
    down, up: whether attention shortens and lengthens."""
    spec = make_spec(strides, heads, windowed=form == "windowed")
    has_layer = {"self": True, "down": down, "up": up}
    layers = tuple(
        replace(layer, index=index, causal=causal and layer.window is None)
        for index, layer in enumerate(one for one in spec.layers if has_layer[one.role])
    )
    levels = spec.levels if causal else tuple(replace(one, shift=0) for one in spec.levels)
    spec = replace(spec, levels=levels, layers=layers, upsampling=upsampling)
    random, maps = np.random.default_rng(0), []
    for layer in layers:
        queries, keys = layer_shape(spec, layer, len(prompt))
        i = np.arange(queries)[:, None] * strides[layer.level]
        j = np.arange(keys)[None, :] * strides[layer.key_level]
        seen = np.ones((queries, keys), bool)
        if layer.causal:
            seen = j < i + strides[layer.level]
        if layer.window:
            group = max(strides[layer.level], strides[layer.key_level])
            seen = i // group == j // group
        drawn = even_rows((random.gamma(0.3, size=(heads, *seen.shape)) + 1e-9) * seen)
        maps.append(planted(weights(layer, seen) if weights else drawn))
    return Capture(spec, prompt, level_spans(len(prompt), strides, causal), tuple(maps))


SENTENCE = "every word is a segment and so is what a model finds"
SEGMENT_ENDS = {
    "words": [at for at, letter in enumerate(SENTENCE) if letter == " "],
    "none": [],
    "every token": list(range(len(SENTENCE))),
    "the first and the last": [0, len(SENTENCE) - 1],
    "of threes": list(range(0, len(SENTENCE), 3)),
}


def segmented(name: str, mask: np.ndarray | None = None) -> Capture:
    """A model with dynamic pooling and random maps, on a sentence with these segment ends."""
    config = parse_config({
        "family": "dynamic", "n_layers": [2, 3, 1], "vocab_size": 256, "d_model": 4,
        "n_heads": 2, "boundaries": "learned",
    })  # fmt: skip
    ends = np.zeros(len(SENTENCE), bool)
    ends[SEGMENT_ENDS[name]] = True
    prompt = replace(byte_prompt(SENTENCE), boundaries=readonly(ends), attention_mask=mask)
    spans = config.spans(len(SENTENCE), boundaries=ends)
    sizes = [(len(spans[layer.level]),) * 2 for layer in config.layers]
    maps = [DenseMap(one, (0, 1), causal=True) for one in distributions(sizes, True)]
    return Capture(config.spec("m", "", 0), prompt, spans, tuple(maps))


def funnel(blocks: tuple[int, ...], after: int | None = 1) -> Capture:
    """A Funnel-Transformer with random maps; after: layers of its decoder, None for no decoder."""
    text, pooling = "pooled by two, and by two again", Pooling(blocks=blocks, after=after)
    layers = tuple(
        Layer(at, f"layer {at}", "self" if level == keys else "down", level, keys, (0, 1),
              ("softmax",) * 2, causal=False)
        for at, (level, keys) in enumerate(pooling.places)
    )  # fmt: skip
    config = TransformersConfig(
        family="funnel", class_name="", data={}, d_model=4, vocab_size=256, max_positions=None,
        goal="states", form="base" if after is None else "funnel", own_layers=layers,
        pooling=pooling,
    )  # fmt: skip
    spans = config.spans(len(text))
    sizes = [(len(spans[one.level]), len(spans[one.key_level])) for one in config.layers]
    maps = [DenseMap(weights, (0, 1)) for weights in distributions(sizes)]
    return Capture(config.spec("m", "", 0), byte_prompt(text), spans, tuple(maps))


def distributions(sizes: list[tuple[int, int]], causal: bool = False) -> list[np.ndarray]:
    """Random maps of two heads whose rows add up to 1."""
    random, maps = np.random.default_rng(0), []
    for size in sizes:
        weights = random.random((2, *size)) ** 4 + 1e-3
        weights = np.tril(weights) if causal else weights
        maps.append((weights / weights.sum(2, keepdims=True)).astype(np.float32))
    return maps


def key_of(head):
    """The key of a head's role in ROLES, "" without one."""
    return head.name if head.has_role else ""
