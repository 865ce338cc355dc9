"""Attention by every activation beside the fused softmax, side by side in one run.

8 heads of width 64, float32, the threads of torch: medians of ROUNDS taken in turn, of the forward
pass and of forward and backward pass. Memory: the largest resident memory of a process that attends
over LONG tokens, over one that has only the operands.

    python benchmarks/activations.py            at 512 and 2,048 tokens
    python benchmarks/activations.py 8192       others
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from table import heading, line

from hgviz.activations import ACTIVATIONS
from hgviz.maps import Rule
from hgviz.models.attention import attend

LENGTHS, LONG = (512, 2048), 8192
HEADS, WIDTH, ROUNDS, KEPT = 8, 64, 9, 8
LIMITS = {  # of the forward pass at 2,048 tokens, in forward passes of softmax
    "ymish": "2.0", "tanh": "2.0", "selu": "3.0", "elu": "3.0", "leaky_relu": "3.0",
    "swish": "3.0", "topk": "5.0",
}  # fmt: skip


def main():
    """Print a table for each length, and the memory of a long text."""
    for length in [int(one) for one in sys.argv[1:]] or LENGTHS:
        for causal in (False, True):
            heading(f"{length:,} tokens, {'causal' if causal else 'all keys'}")
            q, k, v = operands(length)
            works = {name: work(name, causal, q, k, v) for name in ACTIVATIONS}
            taken = in_turn(works)
            for name in ACTIVATIONS:
                forward = taken[name] / taken["softmax"]
                limit = LIMITS.get(name, "") if length == 2048 else ""
                line(f"{name}: forward / softmax", f"{forward:.2f}", *([limit] if limit else []))
            works = {name: gradients(name, causal, q, k, v) for name in ("softmax", *LIMITS)}
            taken = in_turn(works)
            for name in LIMITS:
                both = taken[name] / taken["softmax"]
                line(f"{name}: forward and backward / softmax", f"{both:.2f}")
    heading(f"memory over that of the operands, {LONG:,} tokens")
    for name in ("softmax", *LIMITS):
        for backward in (False, True):
            size = peak(name, backward) - peak("", backward)
            line(f"{name}: {'forward and backward' if backward else 'forward'}", f"{size:.0f} MB")


def operands(length):
    """q, k and v (1, HEADS, length, WIDTH)."""
    random = torch.Generator().manual_seed(0)
    shape = 1, HEADS, length, WIDTH
    return tuple(torch.randn(shape, generator=random) for _ in range(3))


def rule_of(name, causal):
    """The rule of a layer whose heads have all one activation."""
    norms = (ACTIVATIONS[name].norm,) * HEADS
    return Rule(WIDTH**-0.5, (name,) * HEADS, norms, causal=causal, top_k=KEPT)


def work(name, causal, q, k, v):
    """A function that attends once."""
    rule = rule_of(name, causal)
    return torch.inference_mode()(lambda: attend(q, k, v, rule))


def gradients(name, causal, *operands):
    """A function that attends once and computes the gradients of q, k and v."""
    rule = rule_of(name, causal)
    leaves = [each.clone().requires_grad_() for each in operands]
    return lambda: torch.autograd.grad(attend(*leaves, rule).sum(), leaves)


def in_turn(works):
    """The median time of each of some functions."""
    taken = {name: [] for name in works}
    for _ in range(ROUNDS + 1):
        for name, function in works.items():
            start = time.perf_counter()
            function()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def peak(name, backward):
    """The largest resident memory in MB of a process that attends over a long text."""
    code = f"import activations; activations.attend_once({name!r}, {backward})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=__file__.rpartition("/")[0] or ".",
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def attend_once(name, backward):
    """Attend over a long text and print the largest resident memory in MB."""
    tensors = operands(LONG)
    if name:
        (gradients if backward else work)(name, True, *tensors)()
    status = Path("/proc/self/status").read_text()  # ru_maxrss has the memory of the parent, too
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1000)


if __name__ == "__main__":
    main()
