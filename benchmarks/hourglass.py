"""The Hourglass beside the vanilla model of the same size, and beside the published package.

Two tables, each measured in one run with the models taking turns:
  forward of hourglass-transformer-pytorch 0.0.6 and of hgviz on the same weights;
  vanilla and k = 2, 3, 4 with the same parameters at length 2,048: forward, training step, memory,
  and bits per byte on held-out English after the same steps, beside the analytic cost.
--steps N trains longer (docs/findings/shortening.md has the table of 300).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch
from table import heading, line

from hgviz.models import open_model
from hgviz.models.config import parse_config
from hgviz.models.layers import Tokens

LENGTH, HELD_OUT = 2048, 65_536
MODEL = {
    "vocab_size": 256, "d_model": 128, "n_heads": 4, "positions": "rotary",
    "downsampling": "average", "upsampling": "repeat",
}  # fmt: skip
SHAPES = {
    "vanilla": "8@1",
    "k = 2": "2@1 4@2 2@1",
    "k = 3": "2@1 4@3 2@1",
    "k = 4": "2@1 4@4 2@1",
}
PACKAGE = {
    "num_tokens": 256, "dim": 256, "max_seq_len": 2048, "heads": 8, "dim_head": 32,
    "depth": (2, 4, 2), "shorten_factor": 4, "attn_resampling": True, "causal": True,
    "updown_sample_type": "linear",
}  # fmt: skip


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="training steps of each model")
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(peak(options.memory))
        return
    torch.set_num_threads(1)
    package()
    vanilla(options.steps)


def taking_turns(works, rounds):
    """Median seconds of each piece of work, one after the other in every round."""
    taken = {name: [] for name in works}
    for round_ in range(rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if round_:  # the first warms up
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in taken.items()}


# --- the published package ------------------------------------------------------------------------


def pair():
    """The package's model and hgviz's, on the same random weights."""
    import math

    from hourglass_transformer_pytorch import hourglass_transformer_pytorch as published

    published.math = math  # version 0.0.6 forgets to import it
    torch.manual_seed(0)
    theirs = published.HourglassTransformerLM(**PACKAGE).eval()
    with tempfile.TemporaryDirectory() as folder:
        config = {"model_type": "hourglass-transformer-pytorch", **PACKAGE}
        Path(folder, "config.json").write_text(json.dumps(config))
        torch.save(theirs.state_dict(), Path(folder, "model.pt"))
        return theirs, open_model(folder, "cpu").module


def package():
    """Forward times of the package and of hgviz on the same checkpoint."""
    theirs, ours = pair()
    heading("forward, hgviz / hourglass-transformer-pytorch, depth (2, 4, 2), k = 4, width 256")
    for length in (512, 2048):
        ids = torch.randint(256, (1, length))
        with torch.inference_mode():
            difference = (theirs(ids) - ours(Tokens(ids))).abs().max()
            works = {"theirs": lambda ids=ids: theirs(ids), "ours": lambda ids=ids: ours(ids)}
            taken = taking_turns(works, 9)
        ratio = taken["ours"] / taken["theirs"]
        line(f"{length:,} tokens", f"{ratio:.2f}", "1.00")
        line("  largest difference of logits", f"{difference:.1e}")


# --- vanilla and shortened ------------------------------------------------------------------------


class Trained:
    """One model with its optimiser."""

    def __init__(self, shape):
        torch.manual_seed(0)
        self.model = parse_config({**MODEL, "hierarchy": shape}).build()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=2e-3, betas=(0.9, 0.98))

    def step(self, ids):
        """One update on ids (batch, n + 1)."""
        logits = self.model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()

    @torch.inference_mode()
    def bits(self, text):
        """Bits per byte over windows of LENGTH."""
        windows = text[: len(text) // LENGTH * LENGTH].view(-1, LENGTH)
        total = [
            torch.nn.functional.cross_entropy(self.model(one[None, :-1])[0], one[1:])
            for one in windows
        ]
        return float(torch.stack(total).mean() / np.log(2))


def vanilla(steps):
    """Train all by turns on the same bytes and tell what each cost and reached."""
    data = "".join(topics[name] for name in sorted(topics)).encode()
    text = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
    train, held_out = text[:-HELD_OUT], text[-HELD_OUT:]
    models = {name: Trained(shape) for name, shape in SHAPES.items()}
    random = np.random.default_rng(0)
    taken = {name: [] for name in models}
    for step in range(steps):
        start = int(random.integers(len(train) - LENGTH))
        ids = train[None, start : start + LENGTH + 1]
        for name, one in models.items():
            rate = 2e-3 * min(1, (step + 1) / 20) * (1 - 0.9 * step / steps)
            one.optimiser.param_groups[0]["lr"] = rate
            before = time.perf_counter()
            one.step(ids)
            taken[name].append(time.perf_counter() - before)
    ids = held_out[None, :LENGTH]
    with torch.inference_mode():
        works = {name: lambda m=one.model: m(ids) for name, one in models.items()}
        forward = taking_turns(works, 7)
    rows = {}
    for name, one in models.items():
        shape = one.model.config.shape
        rows[name] = (
            shape.cost(LENGTH, MODEL["d_model"]),
            forward[name],
            statistics.median(taken[name]),
            memory(SHAPES[name]),
            one.bits(held_out),
            sum(parameter.numel() for parameter in one.model.parameters()),
        )
    print(f"\nlength {LENGTH:,}, width 128, {steps} steps; ratios to vanilla, in the same run")
    print(
        f"{'':8}{'parameters':>12}{'cost':>8}{'forward':>9}{'step':>8}{'memory':>8}{'bits/byte':>11}"
    )
    base = rows["vanilla"]
    for name, row in rows.items():
        ratios = [a / b for a, b in zip(row[:4], base[:4], strict=True)]
        cost, first, second, third = (f"{ratio:.2f}" for ratio in ratios)
        print(f"{name:8}{row[5]:12,}{cost:>8}{first:>9}{second:>8}{third:>8}{row[4]:11.3f}")
    print(
        f"vanilla: {base[0] / 1e9:.1f} G multiply-adds, forward {base[1]:.2f} s, step "
        f"{base[2]:.2f} s, {base[3] / 1e6:.0f} MB"
    )


def memory(shape):
    """Bytes that one training step adds to the peak of a fresh process."""
    command = [sys.executable, __file__, "--memory", shape]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def peak(shape):
    """In that process, on Linux: the peak of a step over what was held before it."""
    torch.set_num_threads(1)
    one = Trained(shape)
    one.step(torch.randint(256, (1, 17)))
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak to what is held now
    before = held()
    one.step(torch.randint(256, (1, LENGTH + 1)))
    return held() - before


def held():
    """Bytes of this process at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


if __name__ == "__main__":
    main()
