"""Captures for the tests of figures: many shapes, many scripts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.core import Capture, Layer, Level, ModelSpec, Prompt, readonly
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
        found = found[slice(*(rows or (None,))), slice(*(columns or (None,)))]
        side = 1 << zoom
        high, wide = (-(-n // side) * side for n in found.shape)
        padded = np.zeros((high, wide), np.float32)
        padded[: found.shape[0], : found.shape[1]] = found
        return padded.reshape(high // side, side, wide // side, side).max((1, 3))


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
        Layer(one.index, one.name, "self", 0, 0, kept[one.index], ("softmax",), False)
        for one in whole.spec.layers
    )
    maps = tuple(Dense(whole.maps[n].weights[list(heads)], heads) for n, heads in kept.items())
    spec = ModelSpec("transformer", "ragged", whole.spec.levels, layers, 8, 99)
    return Capture(spec=spec, prompt=whole.prompt, spans=whole.spans, maps=maps)


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


def captures():
    """Name -> capture, of every kind there is."""
    yield from ((name, make_capture(text)) for name, text in TEXTS.items())
    yield "signed", make_capture(SEA, signed=True)
    yield "windowed", make_capture(SEA, windowed=True)
    yield "deep", make_capture(SEA, strides=(1, 2, 4, 8, 16), heads=2)
    yield "many heads", make_capture(SEA, heads=13)
    yield "words", plain(SEA.split())
    yield "long names", plain(["Donaudampfschiff" * 20, "b", "W" * 300, "c"])
    yield "many layers", plain(["a", "b"], layers=24, heads=16)
    yield "ragged", ragged()


__all__ = ["HOSTILE", "SEA", "TEXTS", "Dense", "byte_prompt", "captures", "plain", "ragged"]
