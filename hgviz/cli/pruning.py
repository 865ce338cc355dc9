"""The verbs about heads: what each is worth, and what is lost when many are switched off."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    Activation,
    AsJson,
    Checkpoint,
    Data,
    Device,
    LabelColumn,
    Labels,
    Off,
    TextColumn,
    no_other,
)
from hgviz.language import counted, number

if TYPE_CHECKING:
    from hgviz.analysis.importance import Importance
    from hgviz.core import HeadSet as Heads
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials
    from hgviz.study import PruningCurve, Study

POINTS = "what the share of right answers changes by; p: McNemar's, adjusted over all heads"


def known_method(name: str | None) -> str | None:
    """The name of a score. Raises BadParameter for one that METHODS does not have."""
    from hgviz.analysis.importance import METHODS

    if name is not None and name not in METHODS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, METHODS))}.")
    return name


def importance(
    model: Checkpoint,
    data: Data,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="STUDY.h5", callback=no_other, help="Where to.")
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            callback=known_method,
            help="michel, the default: the sizes of slopes; signed: the loss change they predict; "
            "michel-token, bertology, fisher: other means of slopes; "
            "loo: the exact one; all-but-one: only this head in its layer; shapley: in random "
            "orders; gates: what trainings learned, by --gates.",
        ),
    ] = None,
    gates: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="What hgviz train wrote about gates; once for each run."),
    ] = None,
    text_column: TextColumn = "",
    label_column: LabelColumn = "",
    labels: Labels = None,
    off: Off = "",
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only so many examples, drawn once.")
    ] = None,
    permutations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Random orders of Shapley values.")
    ] = 20,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Of whatever is drawn.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Begin STUDY.h5 anew.")] = False,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the importance of each head and save it in a study file.

    Another --method on the same model and data adds to the study; what is there is not measured
    again. A study that was interrupted is gone on with. Scores have intervals of 95 %.
    """
    from hgviz import tasks
    from hgviz.analysis.importance import METHODS
    from hgviz.analysis.importance import importance as scored
    from hgviz.study import measured_together

    loaded = _load(model, device, activation)
    name = method or _score(loaded)
    learned = tasks.learned(gates or [], loaded.spec)
    if METHODS[name].learned and not learned and (force or not out.exists()):
        raise typer.BadParameter(f"{name} is what trainings learned: name them by --gates.")
    columns = text_column, label_column, labels
    trials = _trials(loaded, data, columns, _heads(off, loaded), limit)
    score = METHODS[name]
    wanted = () if score.learned else measured_together(score.needs)
    work = partial(tasks.study, trials, wanted, out, data.name, seed, permutations, force)
    kept = f"What was measured is kept in {out}; the same command goes on from there"
    if learned:
        measure = work
        work = partial(tasks.keeping, out, lambda: tasks.with_learned(measure(), learned))
    study = terminal.run(work, "Measuring heads", kept)
    found = scored(study, name)
    if as_json:
        print(json.dumps(found.to_rows()))
    else:
        terminal.show(_table(study, found))
        terminal.say(f"{out}: {counted(len(study.heads), 'head')} of {model.name}.")


def curve(
    source: Annotated[Path, typer.Argument(metavar="STUDY", help="A study (.h5).")],
    model: Checkpoint,
    data: Data,
    method: Annotated[
        str, typer.Option(metavar="M", help="The score that orders the heads; default: michel.")
    ] = "",
    random: Annotated[
        int, typer.Option(metavar="N", min=20, help="Random orders to compare with.")
    ] = 20,
    least: Annotated[
        int, typer.Option(metavar="N", min=0, help="Heads that stay in every layer.")
    ] = 0,
    timed: Annotated[
        bool,
        typer.Option(
            "--time",
            help="Also time really smaller models along the order: a pass over 16 texts, one core.",
        ),
    ] = False,
    text_column: TextColumn = "",
    label_column: LabelColumn = "",
    labels: Labels = None,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the pruning curve: the score as heads are switched off, and for random orders.

    The order is made from one half of the study's examples and measured on the other.
    """
    from hgviz import tasks
    from hgviz.core import HgvizError
    from hgviz.store import open_study

    known = open_study(source)
    loaded = _load(model, device, activation)
    method = method or _score(loaded)
    columns = text_column, label_column, labels
    trials = _trials(loaded, data, columns, known.off, len(known))
    measure = f"Measure this one first: hgviz importance {model} --data {data} -o OTHER.h5"
    study = tasks.kept_study(source, trials, do=measure)
    if study is None:
        raise HgvizError(f"{source} is gone: another program removed it")
    work = partial(tasks.curve, trials, study, method, random, least, timed=timed)
    kept = f"What was done is kept in {source}; the same command goes on from there"
    found = terminal.run(partial(tasks.keeping, source, work), "Switching heads off", kept)
    layers = Counter(head.layer for head in found.heads if head not in found.off)
    going = sum(max(0, count - least) for count in layers.values())
    one = next(
        curve for curve in reversed(found.curves)
        if (curve.method, len(curve.order)) == (method, going)
    )  # fmt: skip
    facts = _curve_facts(found, one)
    if as_json:
        print(json.dumps(facts))
        return
    points = [
        {name.replace("_", " "): value for name, value in point.items()}
        for point in facts["points"]
    ]
    terminal.show({"points": points})
    terminal.say(_verdict(facts, one, found.amount(len(one.rows))))


def _load(model: Path, device: Any, activation: str | None) -> Model:
    from hgviz import tasks

    opening = partial(tasks.load, model, device, activation=activation)
    return terminal.run(opening, f"Opening {model.name}")


def _score(model: Model) -> str:
    """What heads are measured by where nobody says; hidden states have no slopes."""
    from hgviz.study import SCORE

    return "loo" if model.spec.goal == "states" else SCORE


def _heads(names: str, model: Model) -> Heads:
    from hgviz import tasks

    return tasks.heads_from(names, model.spec)


def _trials(
    model: Model,
    data: Path,
    columns: tuple[str, str, dict[str, str] | None],
    off: Heads,
    limit: int | None,
) -> Trials:
    from hgviz import tasks

    text, label, labels = columns
    work = partial(tasks.trials_of, model, data, text, label, off, limit, labels)
    return terminal.run(work, "Reading")


def _table(study: Study, found: Importance) -> dict[str, Any]:
    """A table of heads, the most needed first, with what is known of right and wrong."""
    from hgviz.analysis.importance import changes

    rows, change = [], changes(study)
    for fact in found.to_rows():
        at = [str(head) for head in study.heads].index(fact["head"])
        layer = study.spec.layers[study.heads[at].layer]
        row = {
            "rank": fact["rank"], "head": fact["head"], "layer": layer.name,
            "level": study.spec.levels[layer.level].label,
            **{
                name: "" if fact[name] is None else number(fact[name])
                for name in ("score", "low", "high")
            },
        }  # fmt: skip
        if "change" in study.arrays:
            row["points"] = f"{100 * change.change[at]:+.2f}"
            row["p"] = "" if change.adjusted[at] is None else number(change.adjusted[at])
        rows.append(row)
    one = found.method
    unit = f" ({one.unit})" if one.unit else ""
    stated = f", which depends on {one.stated}" if one.stated else ""
    return {
        "score": f"{one.label.lower()}{unit}: {one.formula}{stated}",
        "on": f"{study.amount(found.rows)} of {study.data}",
        "points": POINTS if "change" in study.arrays else "",
        "heads": rows,
    }


def _curve_facts(study: Study, one: PruningCurve) -> dict[str, Any]:
    """As `hgviz curve --json` prints it."""
    from hgviz.analysis.importance import (
        mean_along,
        random_band,
        random_chance,
        random_curves_beside,
        removable_heads,
    )

    randoms = random_curves_beside(study, one)
    band = random_band(randoms)
    places = {int(count): at for at, count in enumerate(band.removed)}
    points = []
    for at, count in enumerate(one.removed.tolist()):
        point = {"off": count}
        for name in ("value", "low", "high", "loss"):
            point[name] = float(getattr(one, "values" if name == "value" else name)[at])
        for name in ("low", "middle", "high"):
            there = places.get(count)
            point[f"random_{name}"] = None if there is None else float(getattr(band, name)[there])
        whole, smaller = (None, None) if one.times is None else map(float, one.times[at])
        point |= {"ms": smaller, "whole_ms": whole}
        points.append(point)
    best, sure = removable_heads(one)
    return {
        "method": one.method, "metric": one.unit,
        "examples": len(one.rows), "k": best, "k_low": sure,
        "area": mean_along(one.removed, one.values), "p": random_chance(one, randoms),
        "randoms": len(randoms),
        "order": [str(head) for head in one.order], "points": points,
    }  # fmt: skip


def _verdict(facts: dict[str, Any], one: PruningCurve, amount: str) -> str:
    timed = "" if one.times is None else (
        " ms: one pass of the model that really lacks the heads over 16 texts on one core, "
        "and of the whole model in turns with it; medians."
    )  # fmt: skip
    return (
        f"k*: {facts['k']} of {len(one.order)} heads go for at most one point of "
        f"{one.unit.replace('_', ' ')}, {facts['k_low']} where the interval's end has to stay "
        f"within it, on {amount}. Mean {facts['area']:.3f} along the curve; p {facts['p']:.3f} "
        f"that a random order does as well, from {facts['randoms']} of them.{timed}"
    )
