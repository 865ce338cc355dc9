"""Does the mechanism of attention matter? Small classifiers, alike but for it, on SST-2.

Give the folder that holds SST-2's train.tsv and dev.tsv, and one to keep the models in (an hour
on one core; stopped, it goes on). Without them there is nothing to measure.
"""

import json
import sys
from pathlib import Path

import numpy as np

from hgviz import tasks
from hgviz.analysis.statistics import benjamini_hochberg, student_interval

VARIANTS = {
    "softmax": 'activations = "softmax"',
    "tanh": 'activations = "tanh"',
    "ymish": 'activations = "ymish"',
    "per-head": 'activations = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]',
    "topk": 'activations = "topk"\ntop_k = 8',
    "linear": 'activations = "linear"',
    "projected": 'activations = "softmax"\nslots = 16',
    "2 CLS": 'activations = "softmax"\ncls = 2',
    "4 CLS": 'activations = "softmax"\ncls = 4',
}
SEEDS = (1, 2, 3)
PLAN = """
[model]
family = "bert"
goal = "classes"
d_model = 96
n_heads = 6
n_layers = 2
max_positions = 64
segments = 0
{variant}

[tokenizer]
kind = "wordpiece"
size = 8000

[data]
train = ["{data}/train.tsv"]
valid = "{data}/dev.tsv"

[recipe]
epochs = 3
batch = 64
rate = 1e-3
warmup = 200
dropout = 0.1
token_dropout = 0.1
seed = {seed}
threads = 1
evaluate_every = 500
"""


FINE = """
[model]
from = "{source}"
activations = "ymish"

[data]
train = ["{data}/train.tsv"]
valid = "{data}/dev.tsv"

[recipe]
epochs = 1
batch = 64
rate = 3e-4
warmup = 100
dropout = 0.1
token_dropout = 0.1
seed = 1
threads = 1
"""


def main():
    """Train what is not there yet, score it all on dev, print the table."""
    if len(sys.argv) < 3:
        print("skipped: give the folder of SST-2 and one for the models")
        return
    data, out = (Path(one).resolve() for one in sys.argv[1:3])
    for seed in SEEDS:
        for name, variant in VARIANTS.items():
            trained(PLAN.format(variant=variant, data=data, seed=seed), out, name, seed)
    found = {name: [scored(out, data, name, seed) for seed in SEEDS] for name in VARIANTS}
    base = rights(found["softmax"])
    others = [name for name in VARIANTS if name != "softmax"]
    p = dict(zip(others, chances([rights(found[name]) - base for name in others]), strict=True))
    seeds = " | ".join(f"seed {seed}" for seed in SEEDS)
    print(f"| | {seeds} | mean | against softmax (95 %) | p, adjusted | loss | parameters |")
    print("|---|" + "---|" * (len(SEEDS) + 5))
    for name, ones in found.items():
        row(name, ones, rights(ones) - base, p.get(name))
    trained(FINE.format(source=out / "softmax-1", data=data), out, "fine", 1)
    log = (out / "fine-1" / "log.jsonl").read_text().splitlines()
    print("softmax with its activation exchanged for ymish, then one epoch more:")
    print({key: round(value, 4) for key, value in json.loads(log[-1]).items() if "acc" in key})


def trained(plan, out, name, seed):
    """Train one model, unless it is there."""
    folder = out / f"{name.replace(' ', '-')}-{seed}"
    if not (folder / "model.safetensors").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.toml").write_text(plan)
        tasks.train(folder / "plan.toml", folder)


def scored(out, data, name, seed):
    """What one model scores on dev, and its parameters."""
    model = tasks.load(out / f"{name.replace(' ', '-')}-{seed}", "cpu")
    return tasks.evaluate(model, data / "dev.tsv"), model.spec.parameters


def rights(ones):
    """(seeds, sentences): 1.0 where a model is right."""
    return np.array([found.right for found, _ in ones], float)


def chances(differences):
    """The p of each (seeds, sentences) difference, adjusted for how many are asked.

    By random signs, one for all seeds of a sentence: what the models have in common on a sentence
    counts once. Two-sided, of 20,000 draws and the one at hand.
    """
    generator = np.random.default_rng(1)
    signs = generator.choice([-1.0, 1.0], (20_000, differences[0].shape[1]))
    means = [one.mean(0) for one in differences]
    more = [(np.abs(signs @ one) >= abs(one.sum()) - 1e-9).sum() for one in means]
    return benjamini_hochberg((np.array(more) + 1) / (len(signs) + 1))


def row(name, ones, apart, p):
    """A line of the table; the interval is over sentences, for the models at hand."""
    shares = [found.score.value for found, _ in ones]
    mean = apart.mean(0)
    found = student_interval(mean)
    told = f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    cells = [name, *(f"{100 * one:.1f}" for one in shares), f"{100 * np.mean(shares):.1f}"]
    cells += ["", ""] if p is None else [told, f"{p:.2f}" if p >= 0.005 else f"{p:.4f}"]
    cells += [f"{np.mean([found.loss for found, _ in ones]):.3f}", f"{ones[0][1]:,}"]
    print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
