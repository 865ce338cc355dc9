"""Captures for the tests of figures: many shapes, many scripts."""

from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from hgviz.core import Capture, Layer, Level, ModelSpec, Prompt, readonly, slot_prompt
from hgviz.figures import Looked, Panel, output
from tests.making import byte_prompt, make_capture

SEA = "The hourglass was used at sea. When the sand of the hourglass had run down, the bell rang."
HOSTILE = (
    "$x^2$ {}\\input{/etc/passwd} <b>&amp;</b> %s\n\t\x00\x1b\u202eevil\u202c \u200b\ufeff "
    "모래시계 مرحبا שלום 👩\u200d👩\u200d👧 🏳️ é e\u0301 नमस्ते \U0001f9ff\U000e0041 €"
)


@dataclass(frozen=True)
class Dense:
    """Random weights in the open."""

    weights: np.ndarray  # (heads, queries, keys)
    heads: tuple[int, ...]
    signed: bool = False

    @property
    def shape(self):
        return self.weights.shape

    def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
        found = self.weights[self.heads.index(head)]
        found = found[self._part(rows), self._part(columns)]
        side = 1 << zoom
        high, wide = (-(-n // side) * side for n in found.shape)
        padded = np.zeros((high, wide), np.float32)
        padded[: found.shape[0], : found.shape[1]] = found
        return padded.reshape(high // side, side, wide // side, side).max((1, 3))

    @staticmethod
    def _part(interval):
        return interval if isinstance(interval, slice) else slice(*(interval or (None,)))


def plain(
    words: list[str], layers: int = 3, heads: int = 4, special: bool = True, seed: int = 0
) -> Capture:
    """A one-level bidirectional model on word pieces, [CLS] and [SEP] around them."""
    text, spans, pieces = "", [], []
    for word in words:
        spans.append((len(text), len(text) + len(word)))
        pieces.append(word)
        text += word + ("" if word.endswith("-") else " ")
    if special:
        spans, pieces = [(-1, -1), *spans, (-1, -1)], ["[CLS]", *pieces, "[SEP]"]
    count = len(spans)
    prompt = Prompt(text, readonly(np.arange(count)), tuple(pieces), readonly(np.array(spans)))
    numbers = tuple(range(heads))
    spec = ModelSpec(
        family="transformer", name="plain", levels=(Level(0),), width=8, vocabulary=99,
        layers=tuple(
            Layer(n, f"encoder.{n}", "self", 0, 0, numbers, ("softmax",) * heads, False)
            for n in range(layers)
        ),
    )  # fmt: skip
    random = np.random.default_rng(seed)
    at = np.arange(count)
    return Capture(
        spec=spec, prompt=prompt, spans=(np.stack([at, at + 1], 1),),
        maps=tuple(
            Dense(random.dirichlet(np.full(count, 0.3), (heads, count)).astype("f4"), numbers)
            for _ in range(layers)
        ),
    )  # fmt: skip


def ragged() -> Capture:
    """Heads 1 and 3 of the middle layer are left, none of the last."""
    whole = plain(["one", "two", "three", "four"])
    kept = {0: (0, 1, 2, 3), 1: (1, 3), 2: ()}
    layers = tuple(
        Layer(one.index, one.name, "self", 0, 0, heads, ("softmax",) * len(heads), False)
        for one, heads in zip(whole.spec.layers, kept.values(), strict=True)
    )
    maps = tuple(Dense(whole.maps[n].weights[list(heads)], heads) for n, heads in kept.items())
    spec = ModelSpec("transformer", "ragged", whole.spec.levels, layers, 8, 99)
    return Capture(spec=spec, prompt=whole.prompt, spans=whole.spans, maps=maps)


def paired(source: Prompt, target: Prompt, encoder: bool = True, seed: int = 0) -> Capture:
    """An encoder of one layer and a decoder of two, or the decoder alone, with three heads each."""
    rows = [("encoder.0", "self", 0, 0)] if encoder else []
    for n in range(2):
        rows += [(f"decoder.{n}", "self", 1, 1), (f"decoder.{n}.cross", "cross", 1, 0)]
    layers = tuple(
        Layer(i, name, role, level, key, (0, 1, 2), ("softmax",) * 3, role == "self" and level == 1)
        for i, (name, role, level, key) in enumerate(rows)
    )
    levels = (Level(0), Level(1, sequence="target"))
    form = "encoder-decoder" if encoder else "decoder"
    spec = ModelSpec("transformer", "paired", levels, layers, 8, 99, form=form)
    lengths, random = (len(source), len(target)), np.random.default_rng(seed)
    maps = []
    for one in layers:
        shape = 3, lengths[one.level], lengths[one.key_level]
        weights = random.dirichlet(np.full(shape[2], 0.3), shape[:2])
        weights = np.tril(weights) if one.causal else weights * seen(source)[: shape[2]]
        total = np.maximum(weights.sum(-1, keepdims=True), 1e-9)
        maps.append(Dense((weights / total).astype("f4"), (0, 1, 2)))
    spans = tuple(np.stack([np.arange(n), np.arange(n) + 1], 1) for n in lengths)
    return Capture(spec=spec, prompt=source, spans=spans, maps=tuple(maps), target=target)


def seen(prompt: Prompt) -> np.ndarray:
    """1 for real tokens, 0 for padding."""
    mask = prompt.attention_mask
    return np.ones(len(prompt)) if mask is None else mask.astype(float)


def states(count: int) -> Prompt:
    """What stands for an encoder's states, the last of them padding."""
    return replace(
        slot_prompt(count), pieces=tuple(f"state {n}" for n in range(count)),
        states=np.zeros((count, 8), np.float32), attention_mask=np.arange(count) < count - 1,
    )  # fmt: skip


def projected(words: list[str], count: int = 5) -> Capture:
    """A model whose keys are the rows of a projected sequence."""
    base = plain(words, layers=2)
    layers = tuple(replace(one, key_level=1) for one in base.spec.layers)
    levels = (Level(0), Level(1, sequence="slots"))
    random = np.random.default_rng(1)
    shape = 4, len(base.prompt)
    maps = tuple(
        Dense(random.dirichlet(np.full(count, 0.3), shape).astype("f4"), (0, 1, 2, 3))
        for _ in layers
    )
    at = np.arange(count)
    spans = (base.spans[0], np.stack([at, at + 1], 1))
    spec = replace(base.spec, levels=levels, layers=layers)
    return replace(base, spec=spec, maps=maps, spans=spans)


def mixed(words: list[str]) -> Capture:
    """In each layer a head of softmax, and three whose weights can be negative."""
    base = plain(words, layers=2)
    kinds = ("softmax", "ymish", "tanh", "selu")
    layers = tuple(replace(one, activations=kinds) for one in base.spec.layers)
    random = np.random.default_rng(2)
    count = len(base.prompt)
    maps = []
    for one in base.maps:
        weights = random.normal(size=(4, count, count)).astype("f4") * [[[0]], [[1]], [[1]], [[3]]]
        weights[0] = one.weights[0]
        maps.append(Dense(weights.astype("f4"), (0, 1, 2, 3), signed=True))
    return replace(base, spec=replace(base.spec, layers=layers), maps=tuple(maps))


TEXTS = {
    "one letter": "a",
    "two letters": "ab",
    "short": "The sand ran.",
    "sea": SEA,
    "hostile": HOSTILE,
    "no spaces": "x" * 90,
    "Hangul": "모래시계는 바다에서 쓰였다.",
    "Arabic": "كانت الساعة الرملية تستخدم في البحر",
    "lines": "a\n\n\nb\n" * 12,
    "long": SEA * 4,
}


def _of_two(first, second, encoder=True):
    """Of two texts, made when asked for."""
    return lambda: paired(first(), second(), encoder=encoder)


def _korean():
    return plain(["이", "영화", "는", "정말", "재미있었", "다"]).prompt


def _english():
    return plain(SEA.split()).prompt


def _one(special=True):
    return plain(["a"], special=special).prompt


MAKERS = {
    **{name: partial(make_capture, text) for name, text in TEXTS.items()},
    "signed": lambda: make_capture(SEA, signed=True),
    "windowed": lambda: make_capture(SEA, windowed=True),
    "deep": lambda: make_capture(SEA, strides=(1, 2, 4, 8, 16), heads=2),
    "many heads": lambda: make_capture(SEA, heads=13),
    "words": lambda: plain(SEA.split()),
    "long names": lambda: plain(["Donaudampfschiff" * 20, "b", "W" * 300, "c"]),
    "many layers": lambda: plain(["a", "b"], layers=24, heads=16),
    "ragged": ragged,
    "two texts": _of_two(_korean, _english),
    "one and many": _of_two(lambda: plain(SEA.split() * 3).prompt, lambda: _one(special=False)),
    "many and one": _of_two(lambda: _one(special=False), _english),
    "states": _of_two(lambda: states(9), _korean, encoder=False),
    "slots": lambda: projected(SEA.split()),
    "mixed": lambda: mixed(["internationalisation", "##s", "of", "b", "재미있었습니다"]),
    "one signed": lambda: mixed([]),
}


@cache
def capture_of(name: str) -> Capture:
    """One of every kind there is, made when a test first asks for it, not when tests are listed."""
    return MAKERS[name]()


def draw(spec, capture, path):
    """Write a figure of a capture of which nothing is known but itself."""
    return output.draw(Panel(spec, Looked(capture), (capture.path,), capture.item), path)


# kinds that are drawn of a capture as it is
KINDS = ("map", "links", "wall", "levels")

__all__ = [
    "HOSTILE", "KINDS", "MAKERS", "SEA", "TEXTS", "Dense", "byte_prompt", "capture_of", "draw",
    "mixed", "paired", "plain", "projected", "ragged", "states",
]  # fmt: skip
