"""How far models reach and what that costs: measured, counted, timed, and as a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import ModelSpec, Prompt, progress
from hgviz.errors import require

if TYPE_CHECKING:
    from hgviz.figures import Panel, Spec
    from hgviz.figures.charts import Plots
    from hgviz.models.model import Model

SEED = 0  # of tokens that are drawn
DEEPEST = 1e-8  # share that a figure shows
TURNS = 5
LEAST_SECONDS = 0.02  # that one turn takes: shorter passes are repeated
Matrix = NDArray[np.float64]
SHARES = (0.1, 0.01)  # of the strongest distance, below which a distance counts as faded


@dataclass(frozen=True, eq=False)
class Reach:
    """What was measured of a model. own (n, n): outputs by the tokens of the text they stand in;
    source (n, m): by those of a decoder's other text, or by given states, None where there is none.
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
        """Outputs by all that they could depend on: (n, n), or the source first (n, m + n)."""
        parts = [one for one in (self.source, self.own) if one is not None]
        return np.concatenate(parts, axis=1)

    @property
    def later(self) -> float:
        """The largest influence of a later token on an output."""
        return float(np.triu(self.own, 1).max(initial=0.0))

    @property
    def causal(self) -> bool:
        """Whether no output depends on a later token: exactly, not nearly."""
        return self.later == 0.0

    @property
    def farthest(self) -> int:
        """The largest distance in tokens over which anything reaches."""
        rows, columns = np.nonzero(self.own)
        return int(np.abs(rows - columns).max(initial=0))

    @property
    def whole(self) -> bool:
        """Whether every output depends on all that it could: all tokens, or all before it."""
        could = np.tril(np.ones(self.own.shape, bool)) if self.causal else np.ones_like(self.own)
        return bool((self.own != 0)[could.astype(bool)].all())

    @property
    def lag(self) -> int:
        """How many tokens right before its own some output does not hear of, though it hears of
        earlier ones."""
        most = 0
        for row in range(len(self.own)):
            heard = np.flatnonzero(self.own[row, :row])
            most = max(most, row - 1 - int(heard[-1])) if len(heard) else most
        return most

    @cached_property
    def profile(self) -> Matrix:
        """(n,): the mean influence over a distance, of tokens before; of both sides where a model
        reads both ways."""
        sums = np.array([np.diagonal(self.own, -at).mean() for at in range(len(self.own))])
        if not self.causal:
            other = np.array([np.diagonal(self.own, at).mean() for at in range(len(self.own))])
            sums = (sums + other) / 2
        return sums

    @property
    def shares(self) -> Matrix:
        """(n,): the profile over its largest value."""
        return self.profile / (self.profile.max(initial=0.0) or 1.0)

    @property
    def steady(self) -> int:
        """How many distances, from 0 on, are means over an eighth of the outputs or more: what is
        further apart are a few pairs."""
        return len(self.own) - len(self.own) // 8

    def fades(self, share: float) -> int | None:
        """The distance from which on influence stays below a share of the strongest, as far as
        distances are steady; share 0: from which on all of it is exactly 0. None where it does not.
        """
        values = self.shares[: self.steady] if share else self.shares
        strong = np.flatnonzero(values >= share if share else values > 0)
        found = int(strong[-1]) + 1 if len(strong) else 0
        return found if found < len(values) else None

    def facts(self) -> dict[str, Any]:
        """The numbers, fit for JSON."""
        return {
            "model": self.spec.name, "family": self.spec.family,
            "parameters": self.spec.parameters, "tokens": len(self.own), "of": self.of,
            "causal": self.causal, "later": self.later, "farthest": self.farthest,
            "whole": self.whole, "lag": self.lag,
            **{f"below_{100 * share:g}_percent": self.fades(share) for share in SHARES},
            "zero_from": self.fades(0.0),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Times:
    """Median seconds of a forward pass: a row for each model, a column for each length."""

    lengths: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]

    def grows(self, at: int) -> float | None:
        """The power of the length that the times of a model grow by, at the last two lengths."""
        if len(self.lengths) < 2:
            return None
        (short, long), (fast, slow) = self.lengths[-2:], self.seconds[at][-2:]
        return math.log(slow / fast) / math.log(long / short)


def reach(model: Model, prompt: Prompt, target: Prompt | None = None) -> Reach:
    """The reach matrix of a model on a text, or on two of an encoder-decoder.

    A model in float64 keeps what is small apart from 0. Errors: HgvizError as measure_reach.
    """
    from hgviz.models.attribution import measure_reach

    found = measure_reach(model, prompt, target)
    return Reach(model.spec, prompt, found.own, found.of, found.source, target)


def drawn_tokens(model: Model, count: int, seed: int = SEED) -> tuple[Prompt, Prompt | None]:
    """A text of so many tokens at random, two for an encoder-decoder; states for a decoder alone
    that attends to given ones. Errors: HgvizError for more than the model reads."""
    random = np.random.default_rng(seed)

    def ids() -> Prompt:
        return model.from_ids(random.integers(0, model.spec.vocabulary, count))

    if model.takes_states:
        return model.from_states(random.normal(size=(count, model.spec.width))), ids()
    return ids(), ids() if model.spec.needs_target else None


def pass_times(models: Sequence[Model], lengths: Sequence[int], turns: int = TURNS) -> Times:
    """Median seconds of a forward pass over random tokens, of several models by turns.

    Models and lengths take turns, so that whatever else the machine does affects all alike. Errors:
    HgvizError for lengths that a model does not read.
    """
    lengths = sorted(set(lengths))
    require(
        lengths and lengths[0] >= 1 and turns >= 1,
        "there is nothing to time: a length and a turn are at least 1",
        "Ask 1",
    )
    for model in models:
        most = model.spec.max_positions
        require(
            most is None or lengths[-1] <= most,
            f"{model.spec.name} reads at most {most} tokens: "
            f"times of {lengths[-1]:,} were asked for",
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
    random = np.random.default_rng(SEED)
    ids = random.integers(0, model.spec.vocabulary, length)
    second: dict[str, Any] = {"decoder_ids": ids} if model.spec.form == "encoder-decoder" else {}
    if model.takes_states:
        second = {"encoder_states": random.normal(size=(length, model.spec.width))}
    start = perf_counter()
    for _ in range(count):
        model.run(ids, **second)
    return perf_counter() - start


# --- in numbers -----------------------------------------------------------------------------------


def reach_facts(
    models: Sequence[Model], found: Sequence[Reach], seconds: Times | None = None
) -> dict[str, Any]:
    """All that is known, fit for JSON: how far each model reaches, how its layers mix a text of
    this length and what that costs, and times."""
    from hgviz.models.attribution import mixing_costs

    names = names_of(found)
    mixing = [
        {"model": name, **asdict(one)}
        for name, model, measured in zip(names, models, found, strict=True)
        for one in mixing_costs(model.config, len(measured.main), len(measured.prompt))
    ]
    facts: dict[str, Any] = {
        "reach": [{**one.facts(), "model": name} for name, one in zip(names, found, strict=True)],
        "mixing": mixing,
    }
    if seconds is not None:
        facts["milliseconds"] = [
            {"model": name, **_milliseconds(seconds, at), "grows_as_n_to_the": seconds.grows(at)}
            for at, name in enumerate(names)
        ]
    return facts


def _milliseconds(seconds: Times, at: int) -> dict[str, float]:
    pairs = zip(seconds.lengths, seconds.seconds[at], strict=True)
    return {str(length): 1000 * one for length, one in pairs}


def names_of(found: Sequence[Reach]) -> list[str]:
    """What models are called, no two alike."""
    names: list[str] = []
    for one in found:
        name = one.spec.name or one.spec.family
        names.append(f"{name}, {names.count(name) + 1}" if name in names else name)
    return names


def told(name: str, one: Reach) -> str:
    """How far a model reaches, in a sentence."""
    near = one.farthest < len(one.own) - 1
    if one.causal:
        how = f"and none on one more than {one.farthest:,} before it" if near else (
            "and each on all up to its own" if one.whole else "though not each on all before it"
        )  # fmt: skip
        parts = [f"no output depends on a later token, {how}"]
    elif near:
        parts = [f"no output depends on a token more than {one.farthest:,} away"]
    else:
        parts = [
            f"outputs depend on later tokens, too, {'each' if one.whole else 'not each'} on all"
        ]
    if one.lag:
        parts.append(f"up to {one.lag:,} right before an output are not in it yet")
    faded, gone = one.fades(0.01), one.fades(0.0)
    if gone is not None:
        parts.append(f"from {gone:,} tokens on influence is exactly 0")
    elif faded is not None:
        parts.append(f"from {faded:,} tokens on influence is below 1 % of the strongest")
    else:
        apart = one.steady - 1
        parts.append(f"{apart:,} tokens apart influence is above 1 % of the strongest")
    return f"{name}: {'; '.join(parts)}."


# --- a figure -------------------------------------------------------------------------------------


def reach_panel(
    spec: Spec,
    found: Sequence[Reach],
    seconds: Times | None = None,
    given: Sequence[str] = (),
    models: Sequence[str | Path] = (),
) -> Panel:
    """A figure of what was measured, ready to be drawn. given: the words of the command line for
    the text and the lengths; models: where they lie."""
    from hgviz.figures import Panel
    from hgviz.figures.charts import Reaches, Square
    from hgviz.figures.spec import bare_name

    names = names_of(found)
    squares = []
    for name, one in zip(names, found, strict=True):
        most = one.own.max(initial=0.0) or 1.0
        squares.append(Square(name, one.own / most))
        if one.source is not None:
            most = one.source.max(initial=0.0) or 1.0
            squares.append(Square(f"{name}, by its source", one.source / most, "Source token"))
    tokens = dict.fromkeys(f"{len(one.main):,}" for one in found)
    content = Reaches(
        tuple(squares),
        _lines(names, found, seconds),
        tuple(given),
        title="How far outputs reach",
        more=f"{' and '.join(tokens)} tokens",
        notes=tuple(told(name, one) for name, one in zip(names, found, strict=True)),
        about={
            "model": ", ".join(bare_name(one.spec.name) for one in found),
            "checkpoint": ", ".join(one.spec.digest for one in found),
            "text": ", ".join(dict.fromkeys(one.prompt.digest for one in found)),
        },
    )
    return Panel(spec, content, tuple(map(str, models)))


def _lines(names: Sequence[str], found: Sequence[Reach], seconds: Times | None) -> Plots:
    """Influence over distance, and times over length."""
    from hgviz.figures.charts import Line, Plot, Plots

    faded = []
    for name, one in zip(names, found, strict=True):
        shares = one.shares[: one.steady]
        faded.append(Line(name, np.arange(len(shares), dtype=float), shares))
    every = np.concatenate([line.y for line in faded])
    least = float(every[every > 0].min(initial=1.0))
    plots = [
        Plot("Influence over distance", "Tokens apart", "Gradient, share", tuple(faded),
             limits=(DEEPEST, 2.0) if least < DEEPEST else None, log=(False, True))
    ]  # fmt: skip
    notes = ["Over distance: the mean gradient at each, as a share of the largest such mean."]
    notes += ["A line ends where it is exactly 0."] if (every == 0).any() else []
    if seconds is not None:
        x = np.array(seconds.lengths, float)
        xs = tuple((float(n), f"{n:,}") for n in seconds.lengths)
        lines = tuple(
            Line(name, x, 1000 * np.array(row))
            for name, row in zip(names, seconds.seconds, strict=True)
        )
        plots.append(
            Plot("Time of a forward pass", "Tokens", "Milliseconds", lines, xs, log=(True, True))
        )
        notes.append("Times are medians of passes that the models take by turns.")
    return Plots(tuple(plots), notes=tuple(notes))


__all__ = [
    "Times", "drawn_tokens", "names_of", "pass_times", "reach", "reach_facts", "reach_panel",
    "told",
]  # fmt: skip
