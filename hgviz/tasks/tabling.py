"""The tables and figures of a sweep's report: what is reached, what is left, how alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from hgviz.analysis.replicates import Spread, known
from hgviz.language import p, percent, signed
from hgviz.tasks.answering import count_of, gap, less
from hgviz.tasks.findings import LOWER, RANDOM, Beside, Findings
from hgviz.tasks.plotting import (
    ORDERS,
    budget,
    budgets_chart,
    differences_chart,
    said,
    seeds_chart,
)
from hgviz.tasks.wording import picture

if TYPE_CHECKING:
    from hgviz.figures.content.document import Block
    from hgviz.figures.content.laboratory import Plots
    from hgviz.figures.content.seeds import Seeds

AXES = ("Data", "Model", "Activation")
AXES_OF_ONE = 4  # pairs of axes of one picture of a report
Chart = TypeVar("Chart", "Plots", "Seeds")
EACH_SEED = 5  # seeds up to which each has a column


# --- what is reached ------------------------------------------------------------------------------


def reached(found: Findings) -> list[Block]:
    from hgviz.figures.content.document import Heading, Table

    if not found.reached:
        return []
    seeds, where = found.sweep.names("seed"), _varying(found)
    each = seeds if len(seeds) <= EACH_SEED else ()
    rows = []
    for one in found.reached:
        by_seed = dict(zip(one.seeds, one.score.values, strict=False))
        rows.append((
            *where(one.setting),
            *(less(by_seed.get(seed, math.nan), one.metric) for seed in each),
            less(one.score.mean, one.metric), _ends(one.score, one.metric),
            str(len(one.seeds)) + (f" of {len(one.seeds) + one.lacking}" if one.lacking else ""),
            f"{one.loss.mean:.3f}", f"{one.parameters:,}",
        ))  # fmt: skip
    metric = found.reached[0].metric
    columns = (*where(AXES), *(f"Seed {one}" for one in each), "Mean",
               "95 % over seeds", "Seeds", "Loss", "Parameters")  # fmt: skip
    texts = ", ".join(
        f"{one.texts:,} of {one.setting[0]}"
        for one in {each.setting[0]: each for each in found.reached}.values()
    )
    blocks: list[Block] = [
        Heading("What is reached"),
        picture("seeds", _untitled(seeds_chart(found)), f"{said(metric)} of every model and seed."),
        Table(columns, tuple(rows), frozenset(range(len(where(AXES)))),
              f"{said(metric)}; on {texts}. Loss: nats, the mean over seeds."),
    ]  # fmt: skip
    if found.apart:
        told = [
            (
                *where(one.setting), one.base, gap(one.difference.mean, one.metric),
                _gap_ends(one.difference, one.metric), count_of(one.difference), p(one.p),
                p(one.adjusted), _verdict(one.told, one.difference),
            )
            for one in found.apart
        ]  # fmt: skip
        overs = {one.over for one in found.apart}
        how = (
            "p: exact, of random signs over texts, one for all seeds of a text."
            if overs == {"texts"}
            else "p: Student's over seeds, or of random signs over texts where answers are right "
            "or wrong."
        )
        columns = (*where(AXES), "Against", "Difference", "95 % over seeds",
                   "Seeds", "p", "Adjusted", "")  # fmt: skip
        blocks.append(Table(
            columns, tuple(told), frozenset({*range(len(where(AXES)) + 1), len(columns) - 1}),
            f"Differences in {'bits per byte' if metric in LOWER else 'points'}, paired by seed. "
            f"{how} Adjusted for {len(told)} comparisons (Benjamini and Hochberg).",
        ))  # fmt: skip
    return blocks


def _varying(found: Findings) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """What of a setting a table has columns for: all that varies in the grid, or the model."""
    axes = ("data", "model", "activation")
    kept = [at for at, axis in enumerate(axes) if len(found.sweep.names(axis)) > 1] or [1]
    return lambda setting: tuple(setting[at] for at in kept)


def _untitled(chart: Chart) -> Chart:
    """Below a heading a figure needs no title of its own."""
    return replace(chart, title="", more="")


def _ends(one: Spread, metric: str) -> str:
    if known(one.low) is None:
        return "–"
    return f"{less(one.low, metric)} to {less(one.high, metric)}"


def _gap_ends(one: Spread, metric: str) -> str:
    if known(one.low) is None:
        return "–"
    return f"{gap(one.low, metric)} to {gap(one.high, metric)}"


def _verdict(told: bool, one: Spread) -> str:
    if len(one.values) < 2:
        return "one run" if len(one.values) else "none"
    return "told apart" if told else "not told apart"


# --- what is left ---------------------------------------------------------------------------------


def left(found: Findings) -> list[Block]:
    from hgviz.figures.content.document import Heading, Table

    if not found.left:
        return []
    blocks: list[Block] = [Heading("What is left as heads go")]
    for start in range(0, len(found.settings), AXES_OF_ONE):
        some = found.settings[start : start + AXES_OF_ONE]
        chart = _untitled(budgets_chart(found, settings=some))
        blocks.append(picture("budgets", chart, f"{said(found.unit)} as heads are switched off, "
                              "the least needed first by every method."))  # fmt: skip
    names, where = tuple(map(budget, found.measures)), _varying(found)
    rows = tuple(
        (*where(one.setting), _method(one.method), *(_around(each, found.unit) for each in one.at),
         str(len(one.seeds)) + (f" of {len(one.seeds) + one.lacking}" if one.lacking else ""))
        for one in found.left
    )  # fmt: skip
    blocks.append(Table(
        (*where(AXES), "Method", *names, "Seeds"), rows, frozenset(range(len(where(AXES)) + 1)),
        f"{said(found.unit)} with such a share of heads off, and in the mean along the curve: "
        f"means over seeds ± half of their interval of 95 %. {_shares(found)}",
    ))  # fmt: skip
    for rows_, base in ((found.beside, ""), (found.random, RANDOM)):
        if rows_:
            than = ORDERS if base else rows_[0].base
            drawn = differences_chart(found, base)
            blocks.append(picture("seeds", drawn, f"What methods leave more than {than}."))
            blocks.append(_beside(rows_, than, bool(base)))
    if found.ranks:
        ranked = tuple(
            (_method(name), *(_rank(one) for one in some)) for name, some in found.ranks.items()
        )
        count = len(next(iter(found.ranks.values()))[0].values)
        blocks.append(Table(
            ("Method", *names), ranked, frozenset({0}),
            f"Mean ranks over {count} runs that have all methods, 1 for what leaves the most, ± "
            "half of their interval of 95 %; equal ones share theirs.",
        ))  # fmt: skip
    return blocks


def _beside(some: Sequence[Beside], than: str, random: bool) -> Block:
    from hgviz.figures.content.document import Table

    rows = tuple(
        (one.method, budget(one.budget), gap(one.difference.mean, ""),
         _gap_ends(one.difference, ""), count_of(one.difference), p(one.p), p(one.adjusted),
         _verdict(one.told, one.difference))
        for one in some
    )  # fmt: skip
    how = (
        "p: how often random orders, one of each run, do as well in the mean (one-sided)"
        if random
        else "p: of random signs, one for each run, two-sided"
    )
    return Table(
        ("Method", "Heads off", f"More than {than}", "95 % over runs", "Runs", "p", "Adjusted", ""),
        rows, frozenset({0, 7}),
        f"Points more than {than} in the same runs. {how}. Adjusted for {len(rows)} comparisons.",
    )  # fmt: skip


def _method(name: str) -> str:
    return ORDERS if name == RANDOM else name


def _around(one: Spread, metric: str) -> str:
    if known(one.mean) is None:
        return "–"
    half = f" ± {100 * (one.high - one.mean):.1f}" if known(one.low) is not None else ""
    return f"{less(one.mean, metric).removesuffix(' %')}{half}"


def _rank(one: Spread) -> str:
    if known(one.mean) is None:
        return "–"
    return f"{one.mean:.2f}" + (
        f" ± {one.high - one.mean:.2f}" if known(one.low) is not None else ""
    )


def _shares(found: Findings) -> str:
    """Where budgets were read: at points that were measured."""
    told = []
    for asked, (low, high) in zip(found.measures, found.shares, strict=False):
        if known(low) is None:
            told.append(f"{budget(asked)} was not measured")
        elif max(abs(low - (asked or 0)), abs(high - (asked or 0))) > 0.005:
            where = percent(low) if high - low < 0.005 else f"{percent(low)} to {percent(high)}"
            told.append(f"{budget(asked)} was read at {where}")
    near = "Each budget is read at the nearest point that was measured"
    return f"{near}: {', '.join(told)}." if told else f"{near}."


# --- how alike ------------------------------------------------------------------------------------


def alike(found: Findings) -> list[Block]:
    from hgviz.figures.content.document import Heading, Table
    from hgviz.tasks.wording import label

    if not found.alike:
        return []
    names = [name for name in found.alike[0].metrics if any(
        known(one.metrics[name].mean) is not None for one in found.alike if name in one.metrics
    )]  # fmt: skip
    rows: list[tuple[str, ...]] = [
        ("same answers", *(percent(one.agreement.mean) if known(one.agreement.mean) is not None
                           else "–" for one in found.alike))
    ]  # fmt: skip
    for name in names:
        some = [one.metrics.get(name) for one in found.alike]
        rows.append((label(name), *("–" if one is None else _change(one) for one in some)))
    columns = ("", *(", ".join(one.setting[1:]) for one in found.alike))
    return [
        Heading(f"How alike: each activation beside {found.alike[0].base}"),
        Table(columns, tuple(rows), frozenset({0}),
              "Means over seeds ± half of their interval of 95 %: the share of the same answers, "
              "and what metrics of heads change by."),
    ]  # fmt: skip


def _change(one: Spread) -> str:
    if known(one.mean) is None:
        return "–"
    half = one.high - one.mean
    return signed(one.mean) + (f" ± {half:.2g}" if known(half) is not None else "")


__all__ = ["alike", "left", "reached"]
