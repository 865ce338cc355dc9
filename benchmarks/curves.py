"""Which score tells best which heads can go? SST-2, classifiers of three seeds, every score.

Give the folder that holds SST-2's train.tsv and dev.tsv, and one to keep models and studies in
(an hour on one core; stopped, it goes on). Without them there is nothing to measure.
"""

import sys
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from hgviz import tasks
from hgviz.analysis.importance import (
    METHODS,
    changes,
    importance,
    mean_along,
    random_band,
    random_chance,
    random_curves_beside,
    removable_heads,
)
from hgviz.analysis.statistics import (
    benjamini_hochberg,
    spearman,
    student_interval,
    student_test,
)

SEEDS = (1, 2, 3)
MEASURED = {one.needs for one in METHODS.values() if not one.learned} | {"change"}
ORDERS = 8  # of Shapley values; one costs as much as leave-one-out of all heads twice over
SHARES = (0.25, 0.5, 0.75)  # of all heads, off
PLAN = """
[model]
family = "bert"
goal = "classes"
d_model = 128
n_heads = 8
n_layers = 4
max_positions = 64
segments = 0

[tokenizer]
kind = "wordpiece"
size = 8000

[data]
train = ["{data}/train.tsv"]
valid = "{data}/dev.tsv"

[recipe]
epochs = 3
batch = 64
rate = 7e-4
warmup = 300
dropout = 0.1
token_dropout = 0.1
seed = {seed}
threads = 1
evaluate_every = 500
"""
GATES = """
[model]
from = "{model}"

[data]
train = ["{data}/train.tsv"]
valid = "{data}/dev.tsv"

[recipe]
steps = 300
batch = 32
warmup = 10
seed = {run}
threads = 1
evaluate_every = 1000

[gates]
method = "gates"
lambda = 0.02
"""


def main():
    """Train and measure what is not there yet; print the tables."""
    if len(sys.argv) < 3:
        print("skipped: give the folder of SST-2 and one for the models")
        return
    data, out = (Path(one).resolve() for one in sys.argv[1:3])
    studies = [measured(data, out, seed) for seed in SEEDS]
    each(studies)
    means(studies)
    differences(studies)
    agreement(studies)


# --- what is measured -----------------------------------------------------------------------------


def measured(data, out, seed):
    """The study of one seed: every score, and its curve beside random orders that all share."""
    folder, file = out / f"model-{seed}", out / f"study-{seed}.h5"
    trained(PLAN.format(data=data, seed=seed), folder, "model.safetensors")
    told = [out / f"gates-{seed}-{run}" for run in SEEDS]
    for place, run in zip(told, SEEDS, strict=True):
        trained(GATES.format(model=folder, data=data, run=run), place, "gates.json")
    model = tasks.load(folder, "cpu")
    trials = tasks.trials_of(model, data / "dev.tsv")
    study = tasks.study(trials, MEASURED, file, "dev.tsv", seed, ORDERS)
    study = tasks.with_learned(study, tasks.learned(told, model.spec))
    for method in METHODS:
        study = tasks.keeping(file, partial(tasks.curve, trials, study, method))
        print(f"seed {seed}: {method}", file=sys.stderr, flush=True)
    return study


def trained(plan, folder, result):
    """Train, unless it is there."""
    if not (folder / result).exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.toml").write_text(plan)
        tasks.train(folder / "plan.toml", folder)


# --- what is told ---------------------------------------------------------------------------------


def curve_of(study, method):
    """The curve of a method."""
    return next(one for one in study.curves if one.method == method)


def facts(study, method):
    """k*, its lower bound, the accuracies at SHARES, the lead over random orders, its p."""
    one = curve_of(study, method)
    randoms = random_curves_beside(study, one)
    at = [int(round(share * len(one.order))) for share in SHARES]
    values = [float(one.values[list(one.removed).index(count)]) for count in at]
    band = random_band(randoms)
    # between the points that both have
    _, at, its = np.intersect1d(one.removed, band.removed, return_indices=True)
    lead = mean_along(one.removed[at], one.values[at].astype(float) - band.middle[its])
    return [*removable_heads(one), *values, lead, random_chance(one, randoms)]


def each(studies):
    """A line for every method and seed."""
    print("| score | seed | k* | at least | 25 % off | 50 % | 75 % | lead | p |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for method in METHODS:
        for seed, study in zip(SEEDS, studies, strict=True):
            most, least, *values, lead, p = facts(study, method)
            told = " | ".join(f"{100 * value:.1f}" for value in values)
            print(
                f"| {method} | {seed} | {most} | {least} | {told} | {100 * lead:+.1f} | {p:.2f} |"
            )
    print()


def means(studies):
    """A line for every method: the mean over seeds, with its interval."""
    print("| score | k* | 25 % off | 50 % | 75 % | lead | seeds above random |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for method in METHODS:
        found = np.array([facts(study, method) for study in studies])
        told = [f"{found[:, 0].mean():.1f}"]
        told += [interval(100 * found[:, column]) for column in (2, 3, 4, 5)]
        told.append(f"{(found[:, 6] < 0.05).sum()} of {len(studies)}")
        print(f"| {method} | {' | '.join(told)} |")
    middle = np.array([random_facts(study) for study in studies])
    told = [f"{middle[:, 0].mean():.1f}", *(interval(100 * one) for one in middle.T[1:]), "0", ""]
    print(f"| random, the middle of 20 | {' | '.join(told)} |\n")


def random_facts(study):
    """The median k* of random orders, and their middle at SHARES."""
    randoms = random_curves_beside(study, curve_of(study, "loo"))
    band = random_band(randoms)
    at = np.searchsorted(band.removed, [round(share * len(study.heads)) for share in SHARES])
    return [float(np.median([removable_heads(one)[0] for one in randoms])), *band.middle[at]]


def interval(values):
    """Mean and half the width of Student's interval, of one number a seed."""
    found = student_interval(values)
    return f"{found.mean:.1f} ± {found.high - found.mean:.1f}"


def differences(studies):
    """The pairs of methods whose leads differ, paired over seeds, and how many there are."""
    leads = {one: np.array([facts(study, one)[5] for study in studies]) for one in METHODS}
    pairs = [*combinations(METHODS, 2)]
    apart = np.array([leads[one] - leads[other] for one, other in pairs])
    p = np.array([student_test(row) for row in apart])
    adjusted = benjamini_hochberg(p)
    same = (np.abs(np.sign(apart).sum(1)) == len(studies)).sum()
    print(f"{len(pairs)} pairs of scores; in {same} the same one leads in every seed, in "
          f"{(p < 0.05).sum()} p < 0.05, adjusted in {(adjusted < 0.05).sum()}")  # fmt: skip
    for at in np.argsort(p):
        if p[at] < 0.05:
            one, other = pairs[at]
            print(f"- {one} - {other}: {interval(100 * apart[at])}, p {p[at]:.3f}, adjusted "
                  f"{adjusted[at]:.2f}")  # fmt: skip
    print()


def agreement(studies):
    """Rank correlation of every score with exact losses and with lost answers, all rows."""
    print("| score | with the loss that leave-one-out adds | with the answers that it costs |")
    print("|---|---:|---:|")
    for method in METHODS:
        need = [importance(study, method).need for study in studies]
        exact = [importance(study, "loo") for study in studies]
        cost = [-changes(study).change for study in studies]
        told = [
            " ".join(f"{spearman(a, b):+.2f}" for a, b in zip(need, other, strict=True))
            for other in ([one.need for one in exact], cost)
        ]
        print(f"| {method} | {' | '.join(told)} |")


if __name__ == "__main__":
    main()
