"""What a capture of the sample costs on disk and how exact it is, on 2,048 bytes of English.

Sizes are bytes of the file without thumbnails; "factors" are q, k and the row statistics.
Exactness: tiles read from the file, and the weights a float32 softmax of the same model gives, both
against float64, over every layer.
"""

import tempfile
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

from hgviz import tasks
from hgviz.core import finish
from hgviz.resources import resource
from hgviz.store import open_capture

BYTES = 2048


def main():
    """Print sizes with their limits, then the errors of each layer."""
    model = finish(tasks.load(resource("sample/hourglass"), "cpu"))
    prompt, _ = tasks.prompt_from(model, "".join(topics.values()).encode()[:BYTES].decode())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "capture.h5"
        finish(tasks.capture(model, prompt, out))
        sizes(out)
        errors(model, prompt, open_capture(out))


def sizes(out):
    """Bytes against factors and against float16 maps."""
    import h5py

    found = {"factors": 0, "thumbnails": 0, "maps": 0}
    with h5py.File(out) as file:
        for layer in file["layers"].values():
            found["factors"] += sum(layer[name].nbytes for name in ("q", "k", "stat"))
            found["thumbnails"] += layer["thumb"].id.get_storage_size()
            heads, queries, keys = len(layer["q"]), layer["q"].shape[1], layer["k"].shape[1]
            found["maps"] += 2 * heads * queries * keys
    size = out.stat().st_size
    print(f"{'file of ' + format(BYTES, ',') + ' bytes of text':40}{size / 1e6:9.2f} MB")
    print(f"{'thumbnails in it':40}{found['thumbnails'] / 1e6:9.2f} MB")
    rest = size - found["thumbnails"]
    print(f"{'the rest / q, k, statistics':40}{rest / found['factors']:9.3f}    at most 1.5")
    print(f"{'float16 maps / the rest':40}{found['maps'] / rest:9.2f}    at least 4")


def errors(model, prompt, capture):
    """Largest error of tiles and of the float32 softmax, per layer, against float64."""
    tapped = {}
    list(model.trace(prompt, tap=tapped.__setitem__))
    print(f"{'layer':>5}{'tile error':>14}{'model error':>14}{'limit':>14}   holds")
    for index, factors in tapped.items():
        exact, single = (weights(factors, dtype) for dtype in (np.float64, np.float32))
        tile = np.stack([capture.maps[index].read(head) for head in capture.maps[index].heads])
        own, theirs = np.abs(tile - exact), np.abs(single - exact).max()
        limit = max(2 * theirs, 5e-7)
        scale = np.maximum(1e-5, 1e-4 * exact.max(-1, keepdims=True))
        holds = own.max() <= limit and (own <= scale).all()
        print(f"{index:5}{own.max():14.2e}{theirs:14.2e}{limit:14.2e}   {'yes' if holds else 'NO'}")


def weights(factors, dtype):
    """The softmax maps of a layer, computed plainly in one dtype."""
    rule = factors.rule
    scores = factors.q.astype(dtype) @ factors.k.astype(dtype).swapaxes(-1, -2) * dtype(rule.scale)
    seen = rule.sees(np.arange(scores.shape[-2]), np.arange(scores.shape[-1]))
    scores = np.where(seen, scores, -np.inf)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


if __name__ == "__main__":
    main()
