"""Does the activation of attention matter? Small classifiers, alike but for it, on SST-2.

Give the folder that holds SST-2's train.tsv and dev.tsv, and one to keep the models in (half an
hour on one core; stopped, it goes on). Without them there is nothing to measure.
"""

import sys
from pathlib import Path

from hgviz import tasks
from hgviz.core import finish

ACTIVATIONS = {
    "softmax": '"softmax"',
    "ymish": '"ymish"',
    "six": '["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]',
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
activations = {activations}

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


def main():
    """Train what is not there yet."""
    if len(sys.argv) < 3:
        print("skipped: give the folder of SST-2 and one for the models")
        return
    data, out = (Path(one).resolve() for one in sys.argv[1:3])
    for seed in SEEDS:
        for name, activations in ACTIVATIONS.items():
            folder = out / f"{name}-{seed}"
            if not (folder / "model.safetensors").exists():
                folder.mkdir(parents=True, exist_ok=True)
                plan = folder / "plan.toml"
                plan.write_text(PLAN.format(activations=activations, data=data, seed=seed))
                finish(tasks.train(plan, folder))


if __name__ == "__main__":
    main()
