"""Captures of long texts: time and memory against the plain forward pass, bytes against the maps.

A causal model with random weights, 2 layers of 4 heads of width 64, float32, one thread: processor
time taken in turn, medians of ROUNDS; largest resident memory of a process of its own for each.
Give lengths to measure others, such as 131072; from there on one layer of 2 heads, once.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import heading, line

LENGTHS = (8192, 32_768)
SHORT = 4096
SHARP = 30  # times the queries of random weights: scores of spread 10, most rows one or two keys
ROUNDS = 3
WIDTH = 64


def main():
    """Print a table for each length."""
    for length in [int(one) for one in sys.argv[1:]] or LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "model", length)
            heading(f"{length:,} tokens")
            times(Path(folder), length)
            peaks(Path(folder), length)
            sizes(Path(folder) / "capture.h5")
            sharp(Path(folder), length)
    if not sys.argv[1:]:
        kinds()


def sharp(folder, length):
    """Heads each of whose rows needs its statistic settled, which is a pass over all tiles."""
    write(folder / "model", length, sharpened=SHARP)
    _, memory, file = timed(folder, length)
    line("sharp heads, capture without the pyramid / forward", f"{memory:.2f}", "1.3")
    line("sharp heads, capture with the pyramid / forward", f"{file:.2f}", "2")


def kinds():
    """Heads that no fused kernel knows whole, on a shorter text."""
    heading(f"{SHORT:,} tokens, capture in memory and to a file over the forward pass")
    relative = {
        "family": "hourglass", "hierarchy": "2@1", "positions": "relative", "form": "official",
        "max_positions": None,
    }  # fmt: skip
    cases = {
        "padded": {}, "relative": relative, "ymish": {"activations": ["ymish"]},
        "tanh": {"activations": ["tanh"]}, "topk": {"activations": ["topk"], "top_k": 32},
        "linear": {"activations": ["linear"]},
    }  # fmt: skip
    for name, keys in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "model", SHORT, **keys)
            _, memory, file = timed(Path(folder), SHORT, padding=7 if name == "padded" else 0)
            line(name, f"{memory:.2f} {file:.2f}")


def write(folder, length, sharpened=1, **keys):
    """A checkpoint of random weights, with queries that are so many times larger."""
    import torch

    from hgviz.models.checkpoints import save
    from hgviz.models.config import parse_config

    layers, heads = shape(length)
    width = heads * WIDTH
    plain = {
        "family": "transformer", "form": "decoder", "vocab_size": 256, "d_model": width,
        "n_heads": heads, "d_ff": 4 * width, "n_layers": layers, "max_positions": length,
    }  # fmt: skip
    if "hierarchy" in keys:
        del plain["n_layers"]
    config = parse_config({name: one for name, one in (plain | keys).items() if one is not None})
    torch.manual_seed(0)
    weights = config.build().state_dict()
    for name, one in weights.items():
        if ".attn.q." in name:
            one *= sharpened
    save(folder, config, weights)


def shape(length):
    """(layers, heads)"""
    return (2, 4) if length < 131_072 else (1, 2)


def times(folder, length):
    """Forward pass, capture in memory (statistics alone) and to a file (with the pyramid)."""
    forward, memory, file = timed(folder, length)
    line("forward pass", f"{forward:.2f} s")
    line("capture without the pyramid / forward", f"{memory:.2f}", "1.3")
    line("capture with the pyramid / forward", f"{file:.2f}", "2")


def timed(folder, length, padding=0):
    """Seconds of the forward pass, and what the two captures take over it."""
    model, prompt = opened(folder, length, padding)
    rounds = ROUNDS if length < 131_072 else 1
    if rounds > 1:
        seconds(plain, model, prompt, folder)  # what is loaded once
    runs = plain, kept, written
    found = [[seconds(run, model, prompt, folder) for run in runs] for _ in range(rounds)]
    forward, memory, file = (statistics.median(one) for one in zip(*found, strict=True))
    return forward, memory / forward, file / forward


def peaks(folder, length):
    """Resident memory of a forward pass and of a capture, over what one layer's q and k take."""
    forward, file = (peak(folder, length, name) for name in ("plain", "written"))
    factors = 2 * shape(length)[1] * length * WIDTH * 4 / 1e6
    line("largest memory of the forward pass", f"{forward:.0f} MB")
    limit = f"{forward + factors + 200:.0f} MB"
    line("largest memory of the capture", f"{file:.0f} MB", limit)


def sizes(path):
    """Bytes of the file against those it must hold, and against maps in float16."""
    import h5py

    must = pyramid = maps = operands = 0
    with h5py.File(path) as file:
        for layer in file["layers"].values():
            must += sum(layer[name].nbytes for name in ("q", "k", "stat"))
            operands += layer["q"].nbytes + layer["k"].nbytes
            levels = [one for name in ("max", "mean") for one in layer.get(name, {}).values()]
            pyramid += sum(one.id.get_storage_size() for one in levels)
            heads, queries, _ = layer["q"].shape
            maps += 2 * heads * queries * layer["k"].shape[1]
        logits = file["output/logits"].nbytes
    size = path.stat().st_size - logits
    line("file without logits", f"{size / 1e6:.1f} MB")
    line("of it the pyramid", f"{pyramid / 1e6:.1f} MB")
    line("the rest / q, k, statistics", f"{(size - pyramid) / must:.3f}", "1.4")
    line(
        "float16 maps / file", f"{maps / size:.0f}", "at least 80" if queries == LENGTHS[1] else ""
    )
    half = size - operands / 2
    line(
        "the same, q and k in two bytes",
        f"{maps / half:.0f}",
        "at least 150" if queries == LENGTHS[1] else "",
    )


# --- what is measured -----------------------------------------------------------------------------


def opened(folder, length, padding=0):
    """The model and a random text, whose first tokens may be padding."""
    import numpy as np
    import torch

    from hgviz.models import open_model

    torch.set_num_threads(1)
    model = open_model(folder / "model")
    mask = np.arange(length) >= padding if padding else None
    return model, model.from_ids(np.random.default_rng(0).integers(0, 256, length), mask)


def plain(model, prompt, folder):
    """The forward pass alone."""
    model.run(prompt.ids, prompt.attention_mask)


def kept(model, prompt, folder):
    """A capture in memory: q, k and statistics."""
    from hgviz import tasks

    tasks.capture(model, prompt)


def written(model, prompt, folder):
    """A capture to a file, with summaries and pyramid."""
    from hgviz import tasks

    tasks.capture(model, prompt, folder / "capture.h5", force=True)


def seconds(run, model, prompt, folder):
    """Processor time, of all threads."""
    start = time.process_time()
    run(model, prompt, folder)
    return time.process_time() - start


def peak(folder, length, name):
    """Megabytes a new process takes at most."""
    command = [sys.executable, __file__, "--alone", str(folder), str(length), name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def alone(folder, length, name):
    """One run in this process; prints its largest resident memory."""
    model, prompt = opened(Path(folder), int(length))
    {"plain": plain, "written": written}[name](model, prompt, Path(folder))
    print(largest() / 1e6)


def largest():
    """Bytes this process took at most; Linux's ru_maxrss would count what started it, too."""
    status = Path("/proc/self/status")
    if status.exists():
        rows = dict(row.split(":", 1) for row in status.read_text().splitlines())
        return int(rows["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    if sys.argv[1:2] == ["--alone"]:
        alone(*sys.argv[2:])
    else:
        main()
