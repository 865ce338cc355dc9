"""What activations, projections of tokens, and the models of three studies cost; writes costs.csv.

    python costs.py

Activations: attention alone, 12 heads of width 64, one text, one thread. Projections: encoders of
4 layers, width 256, 4 heads, 64 slots. Studies: batches of SHAPES. Times are of the processor,
medians of rounds that all take by turns, of a forward pass and of one with its gradients; memory is
what a process needs at most over one that only has the model and its text.
"""

import csv
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import torch

from hgviz.activations import ACTIVATIONS
from hgviz.maps import Rule
from hgviz.models.attention import attend
from hgviz.models.config import parse_config

STUDIES = Path(__file__).parents[1] / "studies"
LENGTHS, ROUNDS = (512, 2048), 9
NAMES = ("softmax", "linear", "tanh", "ymish", "leaky_relu", "swish", "elu", "selu", "topk")
HEADS, WIDTH = 12, 64
PROJECTIONS = {
    "no projection": {},
    "tokens, one for all layers": {"slots": 64},
    "tokens, one for each layer": {"slots": 64, "slots_shared": False},
    "keys and values, for all layers": {"slots": 64, "slots_sharing": "layerwise"},
    "keys and values, one for both": {"slots": 64, "slots_sharing": "kv"},
    "keys and values, for each layer": {"slots": 64, "slots_sharing": "headwise"},
    "keys and values, for each head": {"slots": 64, "slots_sharing": "none"},
}
SHAPES = {"hourglass-resampling": (8, 512), "hourglass-shape": (8, 512), "wider-cls": (64, 48)}
FIELDS = ("what", "name", "length", "parameters", "forward_ms", "gradient_ms", "megabytes")


def attention(name, length):
    """A function of attention alone, and the tensors whose gradients it has."""
    random = torch.Generator().manual_seed(0)
    leaves = [torch.randn(1, HEADS, length, WIDTH, generator=random) for _ in range(3)]
    norms = (ACTIVATIONS[name].norm,) * HEADS
    rule = Rule(WIDTH**-0.5, (name,) * HEADS, norms, causal=False, top_k=8)
    return lambda: attend(*leaves, rule), leaves


def projected(name, length):
    """The same of an encoder."""
    keys = {
        "family": "bert", "goal": "masked", "d_model": 256, "n_heads": 4, "n_layers": 4,
        "max_positions": length, "segments": 0,
    }  # fmt: skip
    return built(keys | PROJECTIONS[name], 1, length)


def built(keys, batch, length):
    """The same of a model and a batch of random tokens."""
    torch.manual_seed(0)
    labels = {"labels": ["0", "1"]} if keys.get("goal") == "classes" else {}
    config = parse_config({"model_type": "hgviz", "vocab_size": 256} | labels | keys)
    model = config.build().eval()
    ids = torch.randint(0, 256, (batch, length))
    return lambda: model(ids), [*model.parameters()]


def milliseconds(works):
    """The median times of functions that take turns, by name: forward, and with gradients."""
    taken = {name: ([], []) for name in works}
    for _ in range(ROUNDS + 1):
        for name, (function, leaves) in works.items():
            for with_gradients, times in enumerate(taken[name]):
                for leaf in leaves:
                    leaf.requires_grad_(bool(with_gradients))
                start = time.process_time()
                result = function()
                if with_gradients:
                    torch.autograd.grad(result.sum(), leaves, allow_unused=True)
                times.append(1000 * (time.process_time() - start))
    return {name: [statistics.median(times[1:]) for times in both] for name, both in taken.items()}


def megabytes(name, length):
    """The most memory of a process for one pass with gradients, over one without a pass."""

    def peak(passes):
        code = f"import costs; costs.run({name!r}, {length}, {passes})"
        here = Path(__file__).parent
        words = [sys.executable, "-c", code]
        return float(subprocess.run(words, cwd=here, capture_output=True, check=True).stdout)

    return peak(1) - peak(0)


def run(name, length, passes):
    """Run an encoder and print the largest resident memory in MB."""
    function, leaves = projected(name, length)
    for _ in range(passes):
        torch.autograd.grad(function().sum(), leaves, allow_unused=True)
    status = Path("/proc/self/status").read_text()  # ru_maxrss has the memory of the parent, too
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1000)


def main():
    """Measure all tables."""
    torch.set_num_threads(1)
    with Path("costs.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(FIELDS)
        for length in LENGTHS:
            works = {name: attention(name, length) for name in NAMES}
            for name, times in milliseconds(works).items():
                table.writerow(["activation", name, length, "", *(f"{t:.2f}" for t in times), ""])
            works = {name: projected(name, length) for name in PROJECTIONS}
            for name, times in milliseconds(works).items():
                size = sum(leaf.numel() for leaf in works[name][1])
                memory = f"{megabytes(name, length):.0f}"
                times = [f"{t:.2f}" for t in times]
                table.writerow(["projection", name, length, size, *times, memory])
        for study, shape in SHAPES.items():
            models = tomllib.loads((STUDIES / f"{study}.toml").read_text("utf-8"))["models"]
            works = {keys.pop("name"): built(keys, *shape) for keys in models}
            for name, times in milliseconds(works).items():
                size = sum(leaf.numel() for leaf in works[name][1])
                times = [f"{t:.2f}" for t in times]
                table.writerow([study, name, shape[1], size, *times, ""])


if __name__ == "__main__":
    main()
