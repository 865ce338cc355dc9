"""How the bundled classifiers attend, which differ in their activations alone; writes a CSV.

    python classifiers.py

For each of 200 bundled reviews and each layer: how much of the [CLS] row lies on function words,
of absolute weights, of weights above and below zero, and of absolute weights times the length of
the head's output for the token, means over heads; even: what a row of equal weights puts there;
distance: the mean Jensen-Shannon distance between rows of two heads of the layer.
"""

import csv
from pathlib import Path

import numpy as np

import hgviz
from hgviz.analysis.metrics import distances
from hgviz.files import find_sample

WORDS = """
a about all also an and any anybody as at be been both but by can could did do does else every
everybody for from had has have he her him his i if in is it its just like me my no nobody not of
on one or other others our out said says she should so some somebody such than that the their them
then there they think this thought to told too very was we were what when which who will with
would you your
"""
FUNCTION_WORDS = frozenset(WORDS.split())
MODELS = ("softmax", "ymish", "mixed")
TEXTS = 200
FIELDS = (
    "text", "model", "layer", "absolute", "positive", "negative", "output", "even", "distance",
)  # fmt: skip


def share(weights, background):
    """The share of weights (heads, keys) on some keys, the mean over heads."""
    total = weights.sum(1)
    return float(np.mean(weights[:, background].sum(1) / np.where(total, total, 1.0)))


def rows(number, name, capture):
    """What each layer of a capture looks at from its first token."""
    pieces = [piece.lower().removeprefix("##") for piece in capture.prompt.pieces]
    background = np.array([piece in FUNCTION_WORDS for piece in pieces])
    for layer, maps in enumerate(capture.maps):
        whole = np.stack([maps.read(head) for head in maps.heads])
        weights, sizes = whole[:, 0], np.abs(whole[:, 0])
        shares = np.abs(whole) / np.abs(whole).sum(-1, keepdims=True)
        pairs = np.triu_indices(len(whole), 1)
        yield {
            "text": number, "model": name, "layer": layer,
            "absolute": share(sizes, background),
            "positive": share(np.maximum(weights, 0), background),
            "negative": share(np.maximum(-weights, 0), background),
            "output": share(sizes * maps.value_norms, background),
            "even": float(background.mean()),
            "distance": float(distances(shares, shares)[pairs].mean()),
        }  # fmt: skip


def main():
    """Measure the models on the same reviews."""
    path = find_sample("sample/reviews.tsv")
    texts = [line.split("\t")[0] for line in path.read_text("utf-8").splitlines()[1 : TEXTS + 1]]
    with Path("classifiers.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, FIELDS)
        table.writeheader()
        for name in MODELS:
            model = hgviz.open_model(f"sample/{name}", device="cpu")
            for number, text in enumerate(texts):
                for row in rows(number, name, hgviz.capture(model, text, progress=None)):
                    table.writerow({
                        key: f"{value:.4f}" if isinstance(value, float) else value
                        for key, value in row.items()
                    })  # fmt: skip


if __name__ == "__main__":
    main()
