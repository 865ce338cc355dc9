"""A capture of an image in patches, without a model."""

import numpy as np

from hgviz.core import Capture, Layer, Level, ModelSpec, Signal, readonly
from hgviz.maps import DenseMap
from hgviz.models.signals import prompt_of_signal


def make_image_capture(rows=4, columns=6, heads=3, added=1, seed=0, layers=2):
    """Some layers of random weights over [CLS] and patches of 8 x 8 pixels of a picture."""
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
