"""Captures on a GPU, where torch finds one (CUDA or MPS), against the same on the CPU.

A causal model with random weights, 2 layers of 12 heads of width 64, in float32 and bfloat16: time
of the forward pass and of captures, and how far the maps are from those of the CPU's capture. Wall
time, taken in turn, medians. `--device cpu` tries the script where there is no GPU.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from exactness import FLOOR, errors
from table import line

LENGTHS = 2048, 8192
COMPARED = 2048  # tokens at which whole maps are compared
LAYERS, HEADS, WIDTH = 2, 12, 64
ROUNDS = 5


def main():
    """Print a line for each figure, or say that there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "mps", "cpu"))
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    options = parser.parse_args()
    device = options.device or found()
    if device is None:
        print("skipped: torch finds no GPU here, neither CUDA nor MPS")
        return
    print(f"{device}: {described(device)}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        write(path / "model", max(*options.lengths, COMPARED))
        for dtype in ("float32", "bfloat16"):
            compared(path, device, dtype)
            for length in options.lengths:
                times(path, device, dtype, length)


def found():
    """The device that torch has beside the CPU, or None."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def described(device):
    """What the device calls itself."""
    import torch

    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return "as torch counts it"


def write(folder, length):
    """A checkpoint of random weights."""
    import torch

    from hgviz.models.checkpoint import build, save
    from hgviz.models.own import parse_config

    width = HEADS * WIDTH
    config = parse_config({
        "family": "transformer", "form": "decoder", "vocab_size": 256, "d_model": width,
        "n_heads": HEADS, "d_ff": 4 * width, "n_layers": LAYERS, "max_positions": length,
    })  # fmt: skip
    torch.manual_seed(0)
    state = build(config).state_dict()
    for name, values in state.items():
        if name.endswith(("attn.q.weight", "attn.k.weight")):
            values *= 3  # scores that spread by 3 or so, as those of trained models
    save(folder, config, state)


def opened(path, device, dtype, length):
    """The model, and a random text."""
    from hgviz.models import open_model

    model = open_model(path / "model", device, dtype)
    return model, model.from_ids(np.random.default_rng(0).integers(0, 256, length))


# --- how near -------------------------------------------------------------------------------------


def compared(path, device, dtype):
    """Maps of the device against float64 of its own operands, and against the CPU's maps.

    Two devices round differently, and so do two formats: what the device's maps may differ from
    the CPU's is twice what those differ from the CPU's in the next finer format.
    """
    mine = captured(path, device, dtype)
    cpu = captured(path, "cpu", dtype)
    finer = captured(path, "cpu", "float64" if dtype == "float32" else "float32")
    off, theirs = map(max, zip(*(errors(one)[:2] for one in mine.maps), strict=True))
    limit = max(2 * theirs, FLOOR)
    line(f"{device}, {dtype}: tiles off float64", f"{off:.1e}", f"{limit:.1e}")
    limit = max(2 * difference(cpu, finer), FLOOR)
    line(f"{device}, {dtype}: maps off the CPU's", f"{difference(mine, cpu):.1e}", f"{limit:.1e}")


def captured(path, device, dtype):
    """A capture in memory."""
    from hgviz import tasks
    from hgviz.core import finish

    return finish(tasks.capture(*opened(path, device, dtype, COMPARED)))


def difference(one, other):
    """The largest difference of any weight of two captures."""
    pairs = zip(one.maps, other.maps, strict=True)
    return max(
        float(np.abs(mine.read(head) - theirs.read(head)).max())
        for mine, theirs in pairs
        for head in mine.heads
    )


# --- how fast -------------------------------------------------------------------------------------


def times(path, device, dtype, length):
    """Forward pass, capture in memory and to a file."""
    from hgviz import tasks
    from hgviz.core import finish

    model, prompt = opened(path, device, dtype, length)
    works = {
        "forward": lambda: model.run(prompt.ids),
        "without the pyramid": lambda: finish(tasks.capture(model, prompt)),
        "with the pyramid": lambda: finish(tasks.capture(model, prompt, path / "c.h5", force=True)),
    }
    taken = {name: [] for name in works}
    for _ in range(ROUNDS + 1):
        for name, work in works.items():
            taken[name].append(seconds(work, device))
    # the first of each warms up
    medians = {name: statistics.median(ones[1:]) for name, ones in taken.items()}
    where = f"{device}, {dtype}, {length:,} tokens"
    line(f"{where}: forward pass", f"{1000 * medians['forward']:.1f} ms")
    for name in list(works)[1:]:
        line(f"{where}: capture {name} / forward", f"{medians[name] / medians['forward']:.2f}")


def seconds(work, device):
    """Wall time, with what the device still has to do."""
    import torch

    wait = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(device, lambda: None)
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
