"""What the numbers of a sweep answer, in sentences that say no more than they show."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hgviz.analysis.replicates import Spread, known
from hgviz.language import listed, p, percent, points, signed
from hgviz.sweep import Sweep
from hgviz.tasks.findings import LOWER, Apart, Beside, Findings, Reached, Setting
from hgviz.tasks.plotting import ORDERS, budget

FEW = 4  # differences that are told one by one


def answers(found: Findings) -> tuple[str, ...]:
    """The answer, a sentence for each question that was asked."""
    return (*_of_scores(found), *_of_methods(found))


# --- scores ---------------------------------------------------------------------------------------


def _of_scores(found: Findings) -> Iterator[str]:
    if not found.reached:
        return
    if not found.apart:
        yield from (_alone(one, found.sweep) for one in found.reached[:FEW])
        return
    axis = found.apart[0].axis
    rows = [one for one in found.apart if len(one.difference.values)]
    if not rows:
        yield f"No {axis} can be compared with {found.apart[0].base}: no seed has both."
        return
    base = rows[0].base
    if max(len(one.difference.values) for one in rows) < 2:
        most = max(rows, key=lambda one: abs(one.difference.mean))
        trained = any(one.trained for one in found.reached)
        which = (
            f"One seed of each says nothing of {axis}s, only of these trainings"
            if trained
            else f"These are checkpoints, so nothing is said of {axis}s trained alike"
        )
        yield (
            f"{which}: the largest "
            f"difference from {base} is {_whose(most, found.sweep)}, "
            f"{_told(most.difference, most.metric)}, adjusted p over texts {p(most.adjusted)}."
        )  # fmt: skip
        return
    told = sorted((one for one in rows if one.told), key=lambda one: one.adjusted)
    for one in told[:FEW]:
        better = (one.difference.mean > 0) is (one.metric not in LOWER)
        side = "better" if better else "worse"
        yield (
            f"{name_of(one.setting, found.sweep)} is {side} than {base}: "
            f"{_told(one.difference, one.metric)}, adjusted p {p(one.adjusted)}."
        )
    if len(told) > FEW:
        yield f"{len(told) - FEW} more are told apart from {base}; see the table."
    rest = [one for one in rows if not one.told]
    if rest:
        most = max(rest, key=lambda one: abs(one.difference.mean))
        first = f"No {axis} is" if not told else f"{len(rest)} of {len(rows)} are not"
        yield (
            f"{first} told apart from {base}: the largest such difference is "
            f"{_whose(most, found.sweep)}, {_told(most.difference, most.metric)}, adjusted p "
            f"{p(most.adjusted)}."
        )


def _alone(one: Reached, sweep: Sweep) -> str:
    value, name = less(one.score.mean, one.metric), name_of(one.setting, sweep)
    if known(one.score.low) is None:
        why = "one seed, which says nothing of others" if one.trained else "a checkpoint, as it is"
        return f"{name} reaches {value} ({why})."
    ends = f"{less(one.score.low, one.metric)} to {less(one.score.high, one.metric)}"
    return f"{name} reaches {value} ({ends} over {len(one.seeds)} seeds)."


# --- methods --------------------------------------------------------------------------------------


def _of_methods(found: Findings) -> Iterator[str]:
    budgets = [one for one in found.measures if one is not None]
    if not found.left or not budgets:
        return
    middle = budgets[len(budgets) // 2]
    base = found.beside[0].base if found.beside else ""
    if base:
        yield from _methods(found.beside, middle, base)
    if found.random:
        yield from _above(found.random, middle)


def _methods(every: tuple[Beside, ...], middle: float, base: str) -> Iterator[str]:
    rows = [one for one in every if one.budget == middle and len(one.difference.values)]
    if not rows:
        yield f"At {budget(middle)} of heads off no method can be compared with {base}."
        return
    told = [one for one in rows if one.told]
    for one in told[:FEW]:
        more = "more" if one.difference.mean > 0 else "less"
        yield (
            f"With {budget(middle)} of heads off, {one.method} leaves {more} than {base}: "
            f"{_told(one.difference, '', 'run')}, adjusted p {p(one.adjusted)}."
        )
    rest = [one for one in rows if not one.told]
    if rest:
        most = max(rest, key=lambda one: abs(one.difference.mean))
        names = listed([one.method for one in rest])
        first = f"{names} {'is' if len(rest) == 1 else 'are'} not" if told else "No method is"
        yield (
            f"{first} told apart from {base} at {budget(middle)} of heads off: the largest such "
            f"difference is {most.method}'s, {_told(most.difference, '', 'run')}, adjusted p "
            f"{p(most.adjusted)}."
        )


def _above(every: tuple[Beside, ...], middle: float) -> Iterator[str]:
    rows = [one for one in every if one.budget == middle and len(one.difference.values)]
    above = [one.method for one in rows if one.told and one.difference.mean > 0]
    rest = [one.method for one in rows if one.method not in above]
    if above:
        yield (
            f"{listed(above)} leave{'s' * (len(above) == 1)} more than {ORDERS} at "
            f"{budget(middle)} of heads off."
        )
    if rest:
        yield (
            f"{listed(rest)} {'is' if len(rest) == 1 else 'are'} not shown to leave more "
            f"than {ORDERS} at {budget(middle)} of heads off."
        )


# --- words ----------------------------------------------------------------------------------------


def name_of(setting: Setting, sweep: Sweep) -> str:
    """A setting by what varies in the grid: "small, ymish"; "small" where nothing does."""
    axes = ("data", "model", "activation")
    found = [name for name, axis in zip(setting, axes, strict=True) if len(sweep.names(axis)) > 1]
    return ", ".join(reversed(found)) or setting[1]


def less(value: float, metric: str) -> str:
    """A score: "81.2 %", "1.234"."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.3f}" if metric in LOWER else percent(value)


def gap(value: float, metric: str) -> str:
    """A difference of scores: points of shares."""
    if not math.isfinite(value):
        return "–"
    return signed(value) if metric in LOWER else points(value)


def count_of(one: Spread) -> str:
    """Of how many it is."""
    return str(len(one.values))


def _told(one: Spread, metric: str, of: str = "seed") -> str:
    """ "+1.20 points (+0.10 to +2.30 over 3 seeds)"."""
    unit = "bits per byte" if metric in LOWER else "points"
    count = len(one.values)
    if known(one.low) is None:
        return f"{gap(one.mean, metric)} {unit} (one {of})"
    ends = f"{gap(one.low, metric)} to {gap(one.high, metric)}"
    return f"{gap(one.mean, metric)} {unit} ({ends} over {count} {of}s)"


def _whose(one: Apart, sweep: Sweep) -> str:
    return f"that of {name_of(one.setting, sweep)}"


__all__ = ["answers", "count_of", "gap", "less", "name_of"]
