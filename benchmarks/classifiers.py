"""What the cards of the three classifiers say, measured again on the 2,000 rows of reviews.tsv.

Ten minutes on one core: accuracy with all heads, without each layer's, without random ones, and
which heads link words (the share of weight from some words to others, beside that of an even row).
"""

import random
import re
import runpy
import sys
from pathlib import Path

import numpy as np

from hgviz import tasks
from hgviz.analysis.roles import roles as head_roles
from hgviz.core import HeadId
from hgviz.files import resource
from hgviz.models.data import read_rows

NAMES = ("softmax", "ymish", "mixed")
SHARES, SEEDS = (0.25, 0.5, 0.75), 10
LINKED, NAMED = 100, 60  # texts that heads are measured on
TURNING = {
    "not", "never", "hardly", "nobody", "neither", "nor", "unlike", "anything", "doubt", "deny",
    "wrong", "disagree", "cannot", "lie", "opposite", "changed", "back",
}  # fmt: skip
SAMPLE = resource("sample")


def accuracy(model, off=frozenset()):
    """The share of right answers on all rows, with its interval."""
    score = tasks.evaluate(model, SAMPLE / "reviews.tsv", off=off).score
    return score.value, score.low, score.high


def of_layers(model):
    """Accuracy without the heads of each layer, then without any."""
    layers = model.spec.layers
    every = [{HeadId(one.index, head) for head in one.heads} for one in layers]
    found = {
        one.name: accuracy(model, frozenset(off)) for one, off in zip(layers, every, strict=True)
    }
    return found | {"all": accuracy(model, frozenset().union(*every))}


def at_random(model, share):
    """Accuracies without so large a share of all heads, drawn with each seed."""
    heads = [HeadId(one.index, head) for one in model.spec.layers for head in one.heads]
    count = round(share * len(heads))
    draws = [frozenset(random.Random(seed).sample(heads, count)) for seed in range(SEEDS)]
    return [accuracy(model, off)[0] for off in draws]


# --- what heads link ------------------------------------------------------------------------------


def links(model, texts):
    """{relation: {head: (share of weight, share of an even row)}}, means over texts."""
    lexicon = runpy.run_path(str(SAMPLE / "reviews.py"))  # leaves no __pycache__ there
    pairs = [lexicon["ANY"], lexicon["WHOLES"], lexicon["VERBS"]]
    pairs += [pair for things in lexicon["SCENES"].values() for pair in things.values()]
    opinions = set(re.findall(r"[a-z]+", " ".join(pairs)))
    sums = {}
    for text in texts:
        capture = tasks.capture(model, model.tokenize(text))
        pieces = [one.lower() for one in capture.prompt.pieces]
        wholes = [i for i, one in enumerate(pieces) if one in lexicon["SCENES"]]
        words = [i for i, one in enumerate(pieces) if one in opinions]
        turns = [i for i, one in enumerate(pieces) if one in TURNING]
        relations = {
            "[CLS] to the whole": ([0], wholes),
            "[CLS] to opinions": ([0], words),
            "[CLS] to turning words": ([0], turns),
            "the whole to opinions": (wholes, words),
            "opinions to the whole": (words, wholes),
            "opinions to turning words": (words, turns),
            "turning words to opinions": (turns, words),
        }
        for layer in capture.spec.layers:
            for head in layer.heads:
                map_ = np.abs(capture.maps[layer.index].read(head))
                rows = map_ / np.maximum(map_.sum(-1, keepdims=True), 1e-9)
                for name, (queries, keys) in relations.items():
                    if queries and keys:
                        share = rows[np.ix_(queries, keys)].sum(-1).mean()
                        one = sums.setdefault(name, {}).setdefault(HeadId(layer.index, head), [])
                        one.append((share, len(keys) / len(pieces)))
    return {
        name: {head: tuple(np.mean(one, axis=0)) for head, one in found.items()}
        for name, found in sums.items()
    }


def roles(model, texts):
    """{head: (the role that most texts agree on, the share of texts, mean weight there)}."""
    found = {}
    for text in texts:
        capture = tasks.capture(model, model.tokenize(text))
        for head, fact in head_roles(capture).items():
            if fact.role:
                found.setdefault(head, {}).setdefault(fact.role, []).append(fact.score)
    best = {head: max(one, key=lambda role: len(one[role])) for head, one in found.items()}
    return {
        head: (role, len(found[head][role]) / len(texts), float(np.mean(found[head][role])))
        for head, role in sorted(best.items())
        if 2 * len(found[head][role]) > len(texts)
    }


def main():
    """Print what the cards say."""
    rows = read_rows(SAMPLE / "reviews.tsv")
    for name in sys.argv[1:] or NAMES:
        path = Path(name)
        model = tasks.load(path if path.exists() else resource(f"sample/{name}"), "cpu")
        print(f"\n{name}: {model.spec.parameters:,} parameters")
        print("  all heads {:.2%} ({:.2%} to {:.2%})".format(*accuracy(model)))
        for layer, one in of_layers(model).items():
            print(f"  without {layer}: {one[0]:.1%}")
        for share in SHARES:
            found = at_random(model, share)
            mean = sum(found) / len(found)
            print(f"  without {share:.0%}: {mean:.1%} ({min(found):.1%} to {max(found):.1%})")
        for relation, heads in links(model, rows.texts[:LINKED]).items():
            best = sorted(heads, key=lambda one: -heads[one][0])[:4]
            words = ", ".join(f"{one} {heads[one][0]:.2f}" for one in best)
            print(f"  {relation}: {words} (an even row {heads[best[0]][1]:.2f})")
        for head, (role, share, weight) in roles(model, rows.texts[:NAMED]).items():
            print(f"  {head}: {role} in {share:.0%} of texts, {weight:.2f} of its weight")


if __name__ == "__main__":
    main()
