"""How long forward passes take, of several models by turns."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from hgviz.core import HgvizError, progress
from hgviz.models.model import Model

SEED = 0
LEAST = 0.02  # seconds that one turn takes at least: shorter passes are repeated


def timed(models: Sequence[Model], lengths: Sequence[int], turns: int = 5) -> list[list[float]]:
    """Median seconds of a forward pass: a row for each model, a column for each length.

    Texts are tokens drawn at random. Models and lengths take turns, so that what else the machine
    does befalls all alike. Errors: HgvizError for lengths that a model does not read.
    """
    for model in models:
        most = model.spec.max_positions
        if most is not None and max(lengths) > most:
            raise HgvizError(
                f"{model.spec.name} reads at most {most:,} tokens: "
                f"times of {max(lengths):,} were asked for",
                "Choose shorter lengths",
            )
    seconds: list[list[list[float]]] = [[[] for _ in lengths] for _ in models]
    passes = [[0 for _ in lengths] for _ in models]
    for turn in range(-1, turns):  # the first turn warms up, and says how long a pass takes
        for at, length in enumerate(lengths):
            progress(max(turn, 0) * len(lengths) + at, turns * len(lengths), f"{length:,} tokens")
            for number, model in enumerate(models):
                one = _pass(model, length, passes[number][at])
                if turn < 0:
                    passes[number][at] = max(1, int(LEAST / max(one, 1e-9)))
                else:
                    seconds[number][at].append(one)
    return [[median(some) for some in row] for row in seconds]


def _pass(model: Model, length: int, times: int) -> float:
    """Seconds of one pass, the mean of so many; of one where times is 0."""
    random = np.random.default_rng(SEED)
    ids = random.integers(0, model.spec.vocabulary, length)
    count = max(times, 1)
    second: dict[str, Any] = {"decoder_ids": ids} if model.spec.form == "encoder-decoder" else {}
    if model.takes_states:
        second = {"encoder_states": random.normal(size=(length, model.spec.width))}
    start = perf_counter()
    for _ in range(count):
        model.run(ids, **second)
    return (perf_counter() - start) / count


__all__ = ["timed"]
