"""Captures on a GPU, where torch finds one (CUDA or MPS), against the same on the CPU.

A causal model with random weights, 2 layers of 12 heads of width 64, in float32 and bfloat16: time
of the forward pass and of captures, and how far the maps are from those of the CPU's capture. Then
surveys of one head by torch and by numpy, whose time tells what hgviz.models.surveying.LEAST
should be, for weights that are spread and for a head with one large weight in every row, whose
tile numpy is asked for; and the screens that the window shows of it, by torch and by numpy, cold.
Wall time, taken in turn, medians. `--device cpu` tries the script where
there is no GPU.
"""

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from exactness import FLOOR, errors
from table import line

LENGTHS = 2048, 8192
COMPARED = 2048  # tokens at which whole maps are compared
SURVEYED = 512, 1024, 2048, 8192, 32768
SCREEN = 800, 1000  # height and width
LAYERS, HEADS, WIDTH = 2, 12, 64
ROUNDS = 5


def main():
    """Print a line for each figure, or say that there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "mps", "cpu"))
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--surveyed", type=int, nargs="+", default=SURVEYED)
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
    for length in options.surveyed:
        for peaked in (False, True):
            surveys(device, length, peaked)
        screens(device, length)


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

    from hgviz.models.formats.checkpoint import build, save
    from hgviz.models.formats.own import parse_config

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


def surveys(device, length, peaked):
    """What is stored of one head's map beside its factors, by torch and by numpy."""
    from hgviz.maps.summary import to_store
    from hgviz.maps.survey import survey
    from hgviz.models.surveying import surveyed

    maps = one_head(length, peaked)
    wanted = to_store(maps, (0, length // 2, length - 1))
    where = f"{device}, a {'peaked' if peaked else 'spread'} head, {length:,} tokens"
    mine, theirs = surveyed(maps, 0, wanted, device), survey(maps, 0, wanted)
    if mine is None:
        line(f"{where}: survey by torch", "no memory")
        return
    taken = {"torch": [], "numpy": []}
    for _ in range(ROUNDS):
        taken["torch"].append(seconds(lambda: surveyed(maps, 0, wanted, device), device))
        taken["numpy"].append(seconds(lambda: survey(maps, 0, wanted), device))
    torch, numpy = (statistics.median(taken[name]) for name in ("torch", "numpy"))
    line(f"{where}: survey by torch", f"{1000 * torch:.1f} ms")
    line(f"{where}: the same by numpy / by torch", f"{numpy / torch:.2f}")
    off = max(float(np.abs(getattr(mine, one) - getattr(theirs, one)).max())
              for one in ("cells", "top", "rows"))  # fmt: skip
    line(f"{where}: weights of torch off numpy's", f"{off:.1e}", "1e-5")


def screens(device, length):
    """A screen of a head at the end of its map, at every zoom that it has, computed anew."""
    from hgviz.models import tiling

    read = tiling.reader("cpu:0" if device == "cpu" else device)
    for zoom in range(4):
        height, width = (side << zoom for side in SCREEN)
        if max(height, width) > length:
            return
        place = 0, (length - height, length), (length - width, length), zoom
        taken, off = {"torch": [], "numpy": []}, 0.0
        read(one_head(length, False), *place)  # what is loaded once
        for _ in range(ROUNDS):
            mine, theirs = one_head(length, False), one_head(length, False)
            taken["torch"].append(seconds(partial(read, mine, *place), device))
            taken["numpy"].append(seconds(partial(theirs.read, *place), device))
            off = max(off, float(np.abs(read(mine, *place) - theirs.read(*place)).max()))
        torch, numpy = (statistics.median(taken[name]) for name in ("torch", "numpy"))
        where = f"{device}, a screen of {length:,} tokens at {1 << zoom}x"
        line(f"{where}: by torch", f"{1000 * torch:.1f} ms")
        line(f"{where}: by numpy, one thread / by torch", f"{numpy / torch:.2f}")
        line(f"{where}: weights of torch off numpy's", f"{off:.1e}", "1e-5")


def one_head(length, peaked):
    """The map of a causal head; peaked: every row has nearly all its weight on one key."""
    from hgviz.maps import Factors, LazyMap, Rule, measured

    q, k = np.random.default_rng(0).normal(size=(2, 1, length, WIDTH)).astype(np.float32)
    rule = Rule(WIDTH**-0.5, ("softmax",), (None,), causal=True)
    rows, proof = np.zeros(0, np.int64), np.zeros((1, 0, length), np.float32)
    stat = np.zeros((1, length), np.float32)
    return LazyMap(measured(Factors(4 * k if peaked else q, k, stat, rule, rows, proof)), (0,))


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
