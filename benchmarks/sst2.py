"""Does the activation of attention matter? Small classifiers, alike but for it, on SST-2.

Give the folder that holds SST-2's train.tsv and dev.tsv, and one to keep the models in (half an
hour on one core; stopped, it goes on). Without them there is nothing to measure.
"""

import json
import sys
from pathlib import Path

from hgviz import tasks
from hgviz.analysis.scores import mcnemar
from hgviz.core import finish

VARIANTS = {
    "softmax": 'activations = "softmax"',
    "tanh": 'activations = "tanh"',
    "ymish": 'activations = "ymish"',
    "six": 'activations = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]',
    "topk": 'activations = "topk"\ntop_k = 8',
    "linear": 'activations = "linear"',
    "projected": 'activations = "softmax"\nslots = 16',
    "2 CLS": 'activations = "softmax"\ncls = 2',
    "4 CLS": 'activations = "softmax"\ncls = 4',
    "swish": 'activations = "swish"',
    "elu": 'activations = "elu"',
    "selu": 'activations = "selu"',
    "leaky_relu": 'activations = "leaky_relu"',
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
    """Train what is not there yet, score it all on dev, print the tables."""
    if len(sys.argv) < 3:
        print("skipped: give the folder of SST-2 and one for the models")
        return
    data, out = (Path(one).resolve() for one in sys.argv[1:3])
    for seed in SEEDS:
        for name, variant in VARIANTS.items():
            trained(PLAN.format(variant=variant, data=data, seed=seed), out, name, seed)
    found = {name: [scored(out, data, name, seed) for seed in SEEDS] for name in VARIANTS}
    for name, ones in found.items():
        table(name, ones, found["softmax"])
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
        finish(tasks.train(folder / "plan.toml", folder))


def scored(out, data, name, seed):
    """What one model scores on dev, its parameters and the minutes it took."""
    folder = out / f"{name.replace(' ', '-')}-{seed}"
    model = finish(tasks.load(folder, "cpu"))
    seconds = json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["seconds"]
    return finish(tasks.evaluate(model, data / "dev.tsv")), model.spec.parameters, seconds / 60


def table(name, ones, base):
    """A line for each seed, and one for all."""
    for seed, (found, parameters, minutes), (other, *_) in zip(SEEDS, ones, base, strict=True):
        score = found.score
        lost = sum(b and not a for a, b in zip(found.right, other.right, strict=True))
        won = sum(a and not b for a, b in zip(found.right, other.right, strict=True))
        print(
            f"{name:8} seed {seed}  {100 * score.value:.1f} % "
            f"({100 * score.low:.1f} to {100 * score.high:.1f})  loss {found.loss:.3f}  "
            f"F1 {found.f1:.3f}  Matthews {found.mcc:.3f}  {parameters:,} parameters  "
            f"{minutes:.1f} min  against softmax: +{won} -{lost}, p {mcnemar(lost, won):.2f}"
        )
    mean = sum(found.score.value for found, *_ in ones) / len(ones)
    print(f"{name:8} mean of {len(ones)} seeds {100 * mean:.1f} %\n")


if __name__ == "__main__":
    main()
