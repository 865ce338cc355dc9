"""Half of the heads removed for good: what a smaller checkpoint saves, measured beside the whole.

Two minutes on one core. The sample's classifiers and an encoder of 6 layers of 8 heads with random
weights; every other head goes. Times are medians of processor time on one thread, taking turns.
"""

import sys
import tempfile
from pathlib import Path

import torch
from table import heading, line

from hgviz import tasks
from hgviz.core import HeadId
from hgviz.files import resource
from hgviz.models.checkpoints import save
from hgviz.models.config import parse_config

SIX_BY_EIGHT = {
    "family": "transformer", "form": "encoder", "goal": "classes", "labels": ["a", "b"],
    "vocab_size": 1000, "d_model": 512, "n_heads": 8, "n_layers": 6, "d_ff": 2048,
}  # fmt: skip


def every_other(layers):
    """Half of the heads of each layer."""
    return frozenset(HeadId(one.index, head) for one in layers for head in one.heads[1::2])


def random_encoder(folder):
    """A checkpoint of an encoder with random weights."""
    torch.manual_seed(0)
    config = parse_config(SIX_BY_EIGHT)
    save(folder, config, config.build().state_dict())
    return folder


def main():
    """Print what each model saves."""
    with tempfile.TemporaryDirectory() as folder:
        models = [resource(f"sample/{name}") for name in ("softmax", "ymish", "mixed")]
        models = [*map(Path, sys.argv[1:])] or [*models, random_encoder(Path(folder) / "6x8")]
        for path in models:
            spec = tasks.load(path, "cpu").spec
            out = Path(folder) / f"{path.name} smaller"
            proof = tasks.prune(path, every_other(spec.layers), out)
            heading(f"{path.name}, half of its {len(spec.heads)} heads removed")
            line("largest difference of logits", f"{proof.difference:.1e}", "at most 1e-5")
            line("parameters", "{1:,} of {0:,}".format(*proof.parameters))
            for one in proof.latency:
                limit = "at least 1.0" if one.batch == 16 else ""
                times = f"{one.before:.2f} to {one.after:.2f} ms"
                line(f"batch of {one.batch}: {times}, times as fast", f"{one.ratio:.2f}", limit)


if __name__ == "__main__":
    main()
