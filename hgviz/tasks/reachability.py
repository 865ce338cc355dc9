"""How far the outputs of models reach back, what that costs, and how long passes take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import ModelSpec, Prompt, progress
from hgviz.errors import require

if TYPE_CHECKING:
    from hgviz.models.model import Model

Matrix = NDArray[np.float64]
SHARES = (0.1, 0.01)  # of the largest mean influence, below which influence has faded
TURNS = 5  # of timed passes
LEAST_SECONDS = 0.02  # of a turn: shorter passes are repeated


@dataclass(frozen=True, eq=False)
class Reach:
    """The influence of every token on every output of a model, as sizes of gradients.

    own (n, n): outputs by the tokens of the text they stand in. source (n, m): outputs of a decoder
    by the tokens of the encoder's text, or by the states it is given; None without these.
    of: what an output is, "logits" or "states".
    """

    spec: ModelSpec
    prompt: Prompt
    own: Matrix
    of: str = "logits"
    source: Matrix | None = None
    target: Prompt | None = None

    @property
    def main(self) -> Prompt:
        """The text that outputs stand in."""
        return self.prompt if self.target is None else self.target

    @property
    def matrix(self) -> Matrix:
        """(n, n) own, or (n, m + n) source and own side by side."""
        return self.own if self.source is None else np.concatenate([self.source, self.own], axis=1)

    @property
    def later(self) -> float:
        """The largest influence of a later token on an output."""
        return float(np.triu(self.own, 1).max(initial=0.0))

    @property
    def is_causal(self) -> bool:
        """Whether the influence of later tokens is exactly 0."""
        return self.later == 0.0

    @property
    def farthest(self) -> int:
        """The largest distance in tokens with any influence."""
        rows, columns = np.nonzero(self.own)
        return int(np.abs(rows - columns).max(initial=0))

    @property
    def is_full(self) -> bool:
        """Whether every output depends on all tokens, or on all up to its own if causal."""
        possible = np.ones(self.own.shape, bool)
        return bool((self.own != 0)[np.tril(possible) if self.is_causal else possible].all())

    @property
    def lag(self) -> int:
        """The most tokens right before an output that do not influence it although earlier do."""
        lags = [0]
        for row in range(len(self.own)):
            earlier = np.flatnonzero(self.own[row, :row])
            lags += [row - 1 - int(earlier[-1])] if len(earlier) else []
        return max(lags)

    @cached_property
    def profile(self) -> Matrix:
        """(n,): the mean influence by distance; unless causal, of tokens on both sides."""

        def means(sign: int) -> Matrix:
            distances = range(len(self.own))
            return np.array([np.diagonal(self.own, sign * at).mean() for at in distances])

        return means(-1) if self.is_causal else (means(-1) + means(1)) / 2

    @property
    def shares(self) -> Matrix:
        """(n,): the profile over its largest value."""
        return self.profile / (self.profile.max(initial=0.0) or 1.0)

    @property
    def steady(self) -> int:
        """The number of distances whose means are over at least an eighth of the outputs."""
        return len(self.own) - len(self.own) // 8

    def fades(self, share: float) -> int | None:
        """The distance from which influence stays below a share of the largest mean.

        Only steady distances count; share 0 is where all influence is exactly 0. None where it
        does not fade.
        """
        values = self.shares[: self.steady] if share else self.shares
        strong = np.flatnonzero(values >= share if share else values > 0)
        distance = int(strong[-1]) + 1 if len(strong) else 0
        return distance if distance < len(values) else None

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz reach --json` prints it."""
        return {
            "model": self.spec.name, "family": self.spec.family,
            "parameters": self.spec.parameters, "tokens": len(self.own), "of": self.of,
            "causal": self.is_causal, "later": self.later, "farthest": self.farthest,
            "whole": self.is_full, "lag": self.lag,
            **{f"below_{100 * share:g}_percent": self.fades(share) for share in SHARES},
            "zero_from": self.fades(0.0),
        }  # fmt: skip

    def describe(self, name: str) -> str:
        """How far a model of this name reaches, in a sentence."""
        is_near = self.farthest < len(self.own) - 1
        if self.is_causal:
            reach = "but not each on all earlier tokens"
            if is_near:
                reach = f"or on one more than {self.farthest:,} back"
            elif self.is_full:
                reach = "and each depends on all tokens up to its own"
            parts = [f"no output depends on a later token, {reach}"]
        elif is_near:
            parts = [f"no output depends on a token more than {self.farthest:,} away"]
        else:
            each = "each" if self.is_full else "not each"
            parts = [f"outputs depend on later tokens, {each} on all tokens"]
        if self.lag:
            parts.append(f"outputs do not depend on up to {self.lag:,} tokens right before them")
        faded, zero = self.fades(0.01), self.fades(0.0)
        if zero is not None:
            parts.append(f"influence is exactly 0 from {zero:,} tokens apart")
        elif faded is not None:
            parts.append(f"influence is below 1 % of its maximum from {faded:,} tokens apart")
        else:
            parts.append(
                f"influence is above 1 % of its maximum at {self.steady - 1:,} tokens apart"
            )
        return f"{name}: {'; '.join(parts)}."


@dataclass(frozen=True, slots=True)
class Times:
    """Median seconds of a forward pass: a row for each model, a column for each length."""

    lengths: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]

    def growth(self, model: int) -> float | None:
        """The exponent p of seconds ~ length^p between the last two lengths."""
        if len(self.lengths) < 2:
            return None
        (short, long), (fast, slow) = self.lengths[-2:], self.seconds[model][-2:]
        return math.log(slow / fast) / math.log(long / short)


def reach(model: Model, prompt: Prompt, target: Prompt | None = None) -> Reach:
    """The reach of a model on a text, or on both texts of an encoder-decoder.

    Only a model in float64 tells small influence from none. Errors as measure_reach.
    """
    from hgviz.models.attribution import measure_reach

    gradients = measure_reach(model, prompt, target)
    return Reach(model.spec, prompt, gradients.own, gradients.of, gradients.source, target)


def random_prompts(model: Model, count: int, seed: int = 0) -> tuple[Prompt, Prompt | None]:
    """A text of random tokens, or two for an encoder-decoder, or random states and a text.

    Raises HgvizError for more tokens than the model reads.
    """
    random = np.random.default_rng(seed)

    def tokens() -> Prompt:
        return model.from_ids(random.integers(0, model.spec.vocabulary, count))

    if model.takes_states:
        return model.from_states(random.normal(size=(count, model.spec.width))), tokens()
    return tokens(), tokens() if model.spec.needs_target else None


def pass_times(models: Sequence[Model], lengths: Sequence[int], turns: int = TURNS) -> Times:
    """Median seconds of a forward pass over random tokens.

    Models and lengths take turns, so that other work of the machine affects all alike. Raises
    HgvizError for lengths that a model does not read.
    """
    lengths = sorted(set(lengths))
    require(
        lengths and lengths[0] >= 1 and turns >= 1,
        "there is nothing to time: lengths and turns are at least 1",
        "Give 1 or more",
    )
    for model in models:
        limit = model.spec.max_positions
        require(
            limit is None or lengths[-1] <= limit,
            f"{model.spec.name} reads at most {limit} tokens: "
            f"a length of {lengths[-1]:,} cannot be timed",
            "Choose shorter lengths",
        )
    shape = len(models), len(lengths)
    passes, seconds = np.ones(shape, int), np.zeros((turns + 1, *shape))
    for turn in range(turns + 1):  # the first turn warms up, and says how long a pass takes
        for column, length in enumerate(lengths):
            done = max(turn - 1, 0) * len(lengths) + column
            progress(done, turns * len(lengths), f"{length:,} tokens")
            for row, model in enumerate(models):
                count = passes[row, column]
                seconds[turn, row, column] = _seconds_of_passes(model, length, count) / count
        if turn == 0:
            passes = np.maximum(1, LEAST_SECONDS / np.maximum(seconds[0], 1e-9)).astype(int)
    medians = np.median(seconds[1:], axis=0)
    return Times(tuple(lengths), tuple(map(tuple, medians.tolist())))


def _seconds_of_passes(model: Model, length: int, count: int) -> float:
    random = np.random.default_rng(0)
    ids = random.integers(0, model.spec.vocabulary, length)
    second: dict[str, Any] = {"decoder_ids": ids} if model.spec.form == "encoder-decoder" else {}
    if model.takes_states:
        second = {"encoder_states": random.normal(size=(length, model.spec.width))}
    start = perf_counter()
    for _ in range(count):
        model.run(ids, **second)
    return perf_counter() - start


# --- results --------------------------------------------------------------------------------------


def reach_facts(
    models: Sequence[Model], reaches: Sequence[Reach], times: Times | None = None
) -> dict[str, Any]:
    """The reach of each model, the costs of its layers for these texts, and times, for JSON."""
    from hgviz.models.attribution import mixing_costs

    names = names_of(reaches)
    facts: dict[str, Any] = {
        "reach": [
            {**reach.to_dict(), "model": name} for name, reach in zip(names, reaches, strict=True)
        ],
        "mixing": [
            {"model": name, **asdict(cost)}
            for name, model, reach in zip(names, models, reaches, strict=True)
            for cost in mixing_costs(model.config, len(reach.main), len(reach.prompt))
        ],
    }
    if times is not None:
        lengths = [str(length) for length in times.lengths]
        facts["milliseconds"] = [
            {
                "model": name,
                **dict(zip(lengths, (1000 * seconds for seconds in row), strict=True)),
                "grows_as_n_to_the": times.growth(number),
            }
            for number, (name, row) in enumerate(zip(names, times.seconds, strict=True))
        ]
    return facts


def names_of(reaches: Sequence[Reach]) -> list[str]:
    """The names of models, numbered where two are the same."""
    names: list[str] = []
    for reach in reaches:
        name = reach.spec.name or reach.spec.family
        names.append(f"{name}, {names.count(name) + 1}" if name in names else name)
    return names
