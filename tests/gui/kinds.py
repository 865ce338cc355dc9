"""Captures of every kind of model on word pieces, made without a model: structured, not trained."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from hgviz.core import Capture, Prompt, Provenance, slot_prompt
from hgviz.maps import Factors, LazyMap, Rule
from hgviz.models.transformer import PRESETS, TransformerConfig
from tests.making import WIDTH, make_factors
from tests.models.building import write_checkpoint

ENGLISH = "The film is not very good, but the actors were simply unforgettable."
PAIR = "Nobody liked the plot."
GERMAN = "Der Film ist nicht sehr gut, aber die Schauspieler waren unvergesslich."
SIX = ["softmax", "ymish", "tanh", "swish", "elu", "leaky_relu"]
LONGEST = 6  # characters of a word piece


def pieces(text: str, pair: str | None = None, special: bool = True) -> Prompt:
    """A text as word pieces; with [CLS] and [SEP] where special, with token types for a pair."""
    out: list[tuple[str, tuple[int, int], int]] = [("[CLS]", (-1, -1), 0)] if special else []
    for kind, (one, start) in enumerate(((text, 0), (pair, len(text) + 1))):
        for word in re.finditer(r"\w+|[^\w\s]", one or ""):
            for at in range(word.start(), word.end(), LONGEST):
                end = min(at + LONGEST, word.end())
                name = ("" if at == word.start() else "##") + (one or "")[at:end]
                out.append((name, (start + at, start + end), kind))
        if special and one is not None:
            out.append(("[SEP]", (-1, -1), kind))
    return Prompt(
        text=text if pair is None else f"{text}\n{pair}",
        ids=np.array([ord(name[0]) if name[0] != "[" else 1 for name, _, _ in out], np.int64),
        pieces=tuple(name for name, _, _ in out),
        spans=np.array([span for _, span, _ in out], np.int64).reshape(-1, 2),
        token_type_ids=None if pair is None else np.array([kind for _, _, kind in out], np.int64),
    )


def make_kind(
    prompt: Prompt,
    target: Prompt | None = None,
    logits: np.ndarray | None = None,
    name: str = "model",
    seed: int = 0,
    **keys: object,
) -> Capture:
    """A capture by a Transformer of such a configuration; keys are those of config.json."""
    keys = {"n_heads": 6, "n_layers": 3, "vocab_size": 300, "d_ff": 64, **keys}
    activations = keys.pop("activations", "softmax")
    given = tuple(activations) if isinstance(activations, list) else (activations,)
    config = TransformerConfig(**keys, activations=given, d_model=keys["n_heads"] * WIDTH)  # type: ignore[arg-type]
    spec = config.spec(name, "0" * 64, 110_000_000)
    spans = config.spans(len(prompt), 0 if target is None else len(target))
    blank = Capture(spec, prompt, spans, (None,) * len(spec.layers), target=target)
    random = np.random.default_rng(seed)
    maps = []
    for layer in spec.layers:
        queries, keys_ = len(spans[layer.level]), len(spans[layer.key_level])
        known = blank.key_prompt(layer.index)
        if layer.heads:
            factors = make_factors(random, queries, keys_, layer, spec, known)
        else:
            factors = _nothing(queries, keys_)
        maps.append(LazyMap(factors, layer.heads))
    made = Provenance(producer="hgviz tests", created="2026-11-20T12:00:00Z", seconds=0.02)
    return replace(blank, maps=tuple(maps), logits=logits, made=made)


def _nothing(queries: int, keys: int) -> Factors:
    """Of a layer whose heads were all pruned."""
    q, k = (np.zeros((0, count, WIDTH), np.float32) for count in (queries, keys))
    stat, rows = np.zeros((0, queries), np.float32), np.zeros(0, np.int64)
    return Factors(q, k, stat, Rule(1.0, (), ()), rows, np.zeros((0, 0, keys), np.float32))


def bert(text: str = ENGLISH, pair: str | None = None, **keys: object) -> Capture:
    """An encoder that fills in masked tokens."""
    return make_kind(
        pieces(text, pair), name="bert-like", **{**PRESETS["bert"], "family": "bert", **keys}
    )


def classifier(text: str = ENGLISH, **keys: object) -> Capture:
    """An encoder that says positive, 97 %."""
    more = {"goal": "classes", "labels": ("negative", "positive"), "transform": False}
    logits = np.array([-1.7, 1.776], np.float32)
    return make_kind(
        pieces(text), logits=logits, name="classifier",
        **{**PRESETS["bert"], "family": "bert", **more, **keys},
    )  # fmt: skip


def yubert(text: str = ENGLISH, **keys: object) -> Capture:
    """A classifier whose sequence is projected to eight slots."""
    return classifier(
        text, **{"family": "yubert", "cls": 4, "slots": 8, "activations": "ymish", **keys}
    )


def gpt2(text: str = ENGLISH, **keys: object) -> Capture:
    """A decoder alone."""
    prompt = pieces(text, special=False)
    logits = np.random.default_rng(5).normal(size=(len(prompt), 300)).astype(np.float32) * 2
    return make_kind(
        prompt, logits=logits, name="gpt2-like", **{**PRESETS["gpt2"], "family": "gpt2", **keys}
    )


def translator(text: str = ENGLISH, target: str = GERMAN, **keys: object) -> Capture:
    """An encoder-decoder."""
    logits = np.random.default_rng(5).normal(size=(len(pieces(target)), 300)).astype(np.float32)
    return make_kind(
        pieces(text), pieces(target), logits=logits, name="translator",
        **{"form": "encoder-decoder", **keys},
    )  # fmt: skip


def listener(states: int = 9, target: str = GERMAN, **keys: object) -> Capture:
    """A decoder that attends to given states."""
    blank = slot_prompt(states)
    given = replace(
        blank,
        pieces=tuple(f"state {n}" for n in range(states)),
        states=np.zeros((states, 8), np.float32),
    )
    return make_kind(
        given, pieces(target), name="listener", **{"form": "decoder", "cross": True, **keys}
    )


def write_tiny(folder: Path, **keys: object) -> Path:
    """A checkpoint of an Hourglass that reads bytes, with two heads in each of five layers."""
    fixed = {"vocab_size": 256, "d_model": 16, "positions": "rotary", "dtype": torch.float32}
    return write_checkpoint(folder, **{"hierarchy": "1@1 1@2 1@1", **fixed, **keys})


KINDS = {
    "bert": bert,
    "pair": lambda **keys: bert(ENGLISH, PAIR, **keys),
    "classifier": classifier,
    "six": lambda **keys: classifier(activations=SIX, **keys),
    "ymish": lambda **keys: classifier(activations="ymish", **keys),
    "yubert": yubert,
    "gpt2": gpt2,
    "translator": translator,
    "listener": listener,
}
