"""What a capture of the sample costs on disk and how exact it is, on 2,048 bytes of English.

Sizes are bytes of the file without thumbnails; "factors" are q, k and the row statistics.
Exactness: tiles read from the file, and the weights a float32 softmax of the same model gives, both
against float64, over every layer.
"""

import tempfile
from pathlib import Path
from pydoc_data.topics import topics

from exactness import FLOOR, errors
from table import line

from hgviz import tasks
from hgviz.files import resource
from hgviz.store import open_capture

BYTES = 2048


def main():
    """Print sizes with their limits, then the errors of each layer."""
    model = tasks.load(resource("sample/hourglass"), "cpu")
    prompt, _ = tasks.read_prompts(model, "".join(topics.values()).encode()[:BYTES].decode())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "capture.h5"
        tasks.capture(model, prompt, out)
        sizes(out)
        for layer in open_capture(out).maps:
            compared(layer)


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
    rest = size - found["thumbnails"]
    line(f"file of {BYTES:,} bytes of text", f"{size / 1e6:.2f} MB")
    line("thumbnails in it", f"{found['thumbnails'] / 1e6:.2f} MB")
    line("the rest / q, k, statistics", f"{rest / found['factors']:.3f}", "1.5")
    line("float16 maps / the rest", f"{found['maps'] / rest:.2f}", "at least 4")


def compared(layer):
    """Largest error of the tiles of a layer beside that of a float32 softmax."""
    own, theirs, share = errors(layer)
    limit = max(2 * theirs, FLOOR)
    where = f"{len(layer.heads)} heads of {layer.shape[1]:,} x {layer.shape[2]:,}"
    line(f"tiles off float64, {where}", f"{own:.1e}", f"{limit:.1e}")
    if share > 1:
        line("  over 1e-5 or 1e-4 of the row's largest", f"{share:.2f}", "1")


if __name__ == "__main__":
    main()
