"""Rows of a table in which every two values of different columns meet."""

import itertools
import random


def pairwise(columns, allowed=lambda row: True, seed=0):
    """Dictionaries of one value a column; all allowed pairs of values occur in some row.

    columns: {name: values}. allowed: which rows make sense. Deterministic for a seed.
    """
    draw, names = random.Random(seed), list(columns)
    numbers = {name: range(len(columns[name])) for name in names}
    missing = {
        (a, i, b, j)
        for a, b in itertools.combinations(names, 2)
        for i, j in itertools.product(numbers[a], numbers[b])
    }
    rows = []
    while missing:
        a, i, b, j = min(missing)
        best, covered = None, {(a, i, b, j)}
        for _ in range(60):
            row = {name: draw.choice(numbers[name]) for name in names} | {a: i, b: j}
            if not allowed({name: columns[name][at] for name, at in row.items()}):
                continue
            pairs = {
                (c, row[c], d, row[d]) for c, d in itertools.combinations(names, 2)
            } & missing  # fmt: skip
            if best is None or len(pairs) > len(covered):
                best, covered = row, pairs
        if best is not None:  # no row that is allowed has this pair
            rows.append({name: columns[name][at] for name, at in best.items()})
        missing -= covered
    return rows
