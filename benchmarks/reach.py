"""Five ways of bringing tokens together, with equal numbers of parameters and random weights.

An LSTM, word windows, attention, linear attention, an Hourglass: what a forward pass takes at
growing lengths, by turns on one thread; by which power it grows at the end; the multiply-adds that
mix positions, as counted from the configuration; and whether any output of 128 tokens depends on a
later one.
--lengths 256,1024,4096 chooses others.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from table import heading, line

from hgviz.models import open_model
from hgviz.models.attribution import mixing_costs
from hgviz.models.checkpoints import save
from hgviz.models.config import parse_config
from hgviz.tasks import pass_times, reach
from hgviz.tasks.reachability import random_prompts

WIDE = {"vocab_size": 256, "d_model": 128}
HEADS = {**WIDE, "n_heads": 4, "positions": "rotary"}
MODELS = {
    "LSTM, 2 layers": {"vocab_size": 256, "d_model": 192, "family": "lstm", "n_layers": 2},
    "window of 9, 4 layers": {**WIDE, "family": "window", "window": 9, "n_layers": 4},
    "attention, 3 layers": {
        **HEADS, "family": "transformer", "form": "decoder", "norm_first": True, "n_layers": 3,
    },
    "linear attention, 3 layers": {
        **HEADS, "family": "transformer", "form": "decoder", "norm_first": True, "n_layers": 3,
        "activations": "linear",
    },
    "Hourglass 1@1 1@4 1@1": {
        **HEADS, "hierarchy": "1@1 1@4 1@1", "downsampling": "average", "upsampling": "repeat",
    },
}  # fmt: skip
REACHED = 128


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default="256,1024,4096", help="tokens, separated by commas")
    lengths = [int(one) for one in parser.parse_args().lengths.split(",")]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        places = [made(Path(folder) / str(at), keys) for at, keys in enumerate(MODELS.values())]
        models = [open_model(one) for one in places]
        found = pass_times(models, lengths, 15)
        for at, (name, model) in enumerate(zip(MODELS, models, strict=True)):
            heading(f"{name}, {model.spec.parameters:,} parameters")
            for length, seconds in zip(lengths, found.seconds[at], strict=True):
                work = sum(one.work for one in mixing_costs(model.config, length))
                line(f"{length:,} tokens", f"{1000 * seconds:.1f} ms")
                line(f"{length:,} tokens, mixing, multiply-adds", f"{work / 1e6:.0f} M")
            if len(lengths) > 1:
                line("grows as n to the", f"{found.growth(at):.2f}")
        heading(f"reach over {REACHED} tokens")
        for name, place in zip(MODELS, places, strict=True):
            model = open_model(place, dtype="float64")
            one = reach(model, *random_prompts(model, REACHED))
            line(f"{name}: gradient by a later token", f"{one.later:g}", "at most 0")
            line(f"{name}: furthest token", f"{one.farthest}")


def made(folder, keys):
    """A checkpoint with the weights that torch gives a new model."""
    config = parse_config(keys)
    save(folder, config, config.build().state_dict())
    return folder


if __name__ == "__main__":
    main()
