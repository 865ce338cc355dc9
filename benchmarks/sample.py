"""What the cards of the bundled models and the pages about them say, measured again.

Parts: completeness, rollout, bytes, reviews. `bytes` reads the file that follows its name
(wikitext2-valid.txt, 20 minutes), or 64 kB of Python's help; `reviews` takes ten minutes.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch
from table import heading, line, run_parts

from hgviz import tasks
from hgviz.analysis.composition import Rollout, mean_distances
from hgviz.core import RolloutOptions
from hgviz.files import resource
from hgviz.maps import DenseMap
from hgviz.models.data import read_rows
from hgviz.models.objectives import bits_per_byte
from hgviz.store import open_capture
from hgviz.tasks.attribution import Question

CLASSIFIERS = "softmax", "ymish", "mixed"
REVIEWS = resource("sample/reviews.tsv")


def completeness(texts=12):
    """Share of the answer's change that integrated gradients of the tokens leave out."""
    for name in CLASSIFIERS:
        model = tasks.load(resource(f"sample/{name}"), "cpu")
        results = []
        for text in read_rows(REVIEWS).texts[:texts]:
            prompt, _ = tasks.read_prompts(model, text)
            answer = int(model.run(prompt.ids).logits.argmax())
            results.append(tasks.attribute(model, prompt, Question(answer)))
        missing = max(result.error for result in results)
        line(f"{name}: largest share missing, {texts} texts", f"{missing:.1e}", "0.001")
        line(f"{name}: most steps", f"{max(result.steps for result in results):,}")


def rollout(skipped=20):
    """Mean distance of what comes from each level, and two weights, by the options of rollout."""
    capture = open_capture(resource("sample/first.h5"))
    uniform = replace(capture, maps=tuple(map(uniform_map, capture.maps)))
    options = [
        ("mean, one half", capture, RolloutOptions()),
        ("smallest, one half", capture, RolloutOptions(fuse="min")),
        ("mean, 30 %", capture, RolloutOptions(residual=0.3)),
        ("mean, 70 %", capture, RolloutOptions(residual=0.7)),
        ("uniform maps, one half", uniform, RolloutOptions()),
    ]
    for name, maps, option in options:
        composed, rows = Rollout(maps, option), range(skipped, len(maps.main))
        distances = [mean_distances(maps, composed.row(row).parts, row) for row in rows]
        weights = composed.rows().weights[skipped:]
        heading(name)
        for level, back in zip(maps.spec.levels, np.mean(distances, axis=0), strict=True):
            line(f"tokens back, {level.label}", f"{back:.0f}")
        line("weight of the first token", f"{weights[:, 0].mean():.3f}")
        line("weight of the token itself", f"{weights.diagonal(skipped).mean():.3f}")


def uniform_map(layer):
    """A map with equal weights wherever the weight of the first head is not 0."""
    visible = np.array([layer.read(layer.heads[0]) > 0], np.float32)
    weights = visible / visible.sum(-1, keepdims=True)
    return DenseMap(np.repeat(weights, len(layer.heads), 0), layer.heads)


def bytes_():
    """Bits per byte of the bundled Hourglass at several lengths."""
    files = [Path(name) for name in sys.argv[1:] if Path(name).is_file()]
    text = files[0].read_bytes() if files else "".join(topics.values()).encode()[: 1 << 16]
    model = tasks.load(resource("sample/hourglass"), "cpu").module
    for length in (256, 512, 1024, 2048, 4096):
        bits = bits_per_byte(model, torch.frombuffer(bytearray(text), dtype=torch.uint8), length)
        line(f"bits per byte, windows of {length:,}", f"{bits:.3f}")


def reviews():
    """Accuracy of the classifiers without each layer, and without heads drawn at random."""
    for name in CLASSIFIERS:
        model = tasks.load(resource(f"sample/{name}"), "cpu")
        heads = model.spec.heads
        heading(name)
        line("accuracy", f"{accuracy(model, ()):.2%}")
        for layer in model.spec.layers:
            off = [head for head in heads if head.layer == layer.index]
            line(f"without {layer.name}", f"{accuracy(model, off):.1%}")
        for share in (0.25, 0.5, 0.75):
            count = round(share * len(heads))
            drawn = [random.Random(seed).sample(heads, count) for seed in range(10)]
            values = [accuracy(model, off) for off in drawn]
            words = f"without {count} at random ({min(values):.1%} to {max(values):.1%})"
            line(words, f"{np.mean(values):.1%}")


def accuracy(model, off):
    """Share of right answers on the reviews."""
    return tasks.evaluate(model, REVIEWS, off=frozenset(off)).score.value


if __name__ == "__main__":
    run_parts(completeness=completeness, rollout=rollout, bytes=bytes_, reviews=reviews)
