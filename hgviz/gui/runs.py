"""What is said of a cell of a study: what it found, how it stands, where and how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hgviz.gui.language import tr
from hgviz.sweep import Cell, Standing, State
from hgviz.tasks.plotting import ORDERS, OWN

KINDS = {
    "train": "Train", "score": "Score", "measure": "Measure heads", "curve": "Curves",
    "compare": "Compare",
}  # fmt: skip
STATES: tuple[State, ...] = ("done", "waiting", "failed", "blocked")
OPENS = {
    "train": "Open the model", "score": "Open the model on its data",
    "measure": "Open its heads in Prune", "curve": "Open its curves in Prune",
    "compare": "Open both in Compare",
}  # fmt: skip
COUNTS: dict[State, str] = {
    "done": "{n:,} done", "waiting": "{n:,} waiting", "failed": "{n:,} failed",
    "blocked": "{n:,} blocked",
}  # fmt: skip
MEANS = {  # what every fact is, and where its formula comes from
    "Kind": "What the cell does: train a model, score it, measure its heads, draw a curve, or "
    "compare two models (docs/studies.md).",
    "Data": "The data it is measured on: a name of [[data]] of the study file.",
    "Model": "The model: a name of [[models]] of the study file.",
    "Activation": "What turns scores into weights; own: the model's own (docs/activations.md).",
    "Seed": "Draws the training, and which examples make an order of heads and which measure it.",
    "Method": "The score that heads are ordered by, or what is measured of them "
    "(docs/statistics.md).",
    "State": "done: its result is there; waiting: it has none yet; failed: it ended with an error; "
    "blocked: it needs a cell that failed.",
    "Found": "What it measured, with its interval of 95 %.",
    "Took": "Time of the clock that computing it took, where it was computed.",
    "On": "The machine that computed it.",
    "Why": "The last line of what it failed with.",
}
FINDS = {  # what is found by each kind of cell
    "train": "What the model reaches on its held-out data at the end of the training "
    "(docs/training.md).",
    "score": "The share k / n of n answers that is right, with Wilson's interval of 95 % (Wilson "
    "1927): (k + z²/2 ± z √(k (n − k) / n + z²/4)) / (n + z²), z = 1.96. Of language models bits "
    "per byte, −Σ log₂ p / bytes (docs/statistics.md).",
    "measure": "How many heads were measured, and on how many examples: G = ∂loss/∂gate of a head, "
    "or the change of the loss without it (docs/statistics.md).",
    "curve": "What is left as heads go, from none off to all off, on examples that did not make "
    "the order (docs/statistics.md).",
    "compare": "(c − b) / n: of n answers b are right in A alone, c in B alone; interval of 95 % "
    "by Bonett and Price (2012), with b + 1, c + 1, n + 2. Alike: the share of answers that are "
    "the same in both (docs/statistics.md).",
}
THIN = "\u202f"
SHARES = ("accuracy", "masked_accuracy", "f1", "mcc")  # told in points of 100


def kind(work: str) -> str:
    """Curves, Measure heads: what a kind of cell is called."""
    return tr(KINDS[work]) if work in KINDS else work[:1].upper() + work[1:]


def called(name: str) -> str:
    """A name of the grid; "own" and "random orders" are words, the rest are names."""
    return tr(name) if name in (OWN, ORDERS) else name


def sub(cell: Cell) -> str:
    """Which of several of a kind it is: a method, or what of heads is measured; "" for one."""
    arrays = cell.given.get("arrays", ())
    return cell.place.get("method", "") or (str(arrays[0]).replace("_", " ") if arrays else "")


def where(cell: Cell) -> str:
    """small, ymish, seed 1, michel: its place in the grid."""
    place = cell.place
    parts = [called(place.get(one, "")) for one in ("data", "model", "activation")]
    parts += [tr("seed {seed}", seed=place["seed"])] if place.get("seed") else []
    return ", ".join(filter(None, [*parts, sub(cell)]))


def name(cell: Cell) -> str:
    """Curves: small, ymish, seed 1, michel."""
    return f"{kind(cell.work)}: {where(cell)}"


def amount(metric: str, value: float) -> str:
    """87.5 % for a share that is right, 1.432 for bits or nats."""
    if metric in SHARES:
        return share(100 * value)
    return f"{value:.3f}".replace("-", "−")


def share(value: float, digits: int = 1) -> str:
    """87.5 %; 87.5% where there is no space before it."""
    number = f"{value:.{digits}f}".replace("-", "−")
    return tr("{n}\u202f%", n=number)


def numbers(one: Standing) -> tuple[str, float | None, float | None, float | None]:
    """The metric, its value, and the ends of its interval, None where there is none; of two models
    how many points of answers B is right in more than A."""
    found = one.found or {}
    try:
        if one.cell.work in ("train", "score"):
            ends = (float(found[end]) if end in found else None for end in ("low", "high"))
            return str(found["metric"]), float(found["value"]), *ends  # type: ignore[return-value]
        if one.cell.work == "compare":
            apart, unit = found["answers"]["difference"], _unit(found["answers"])
            times = 100 if unit == "points" else 1
            value, low, high = (times * float(apart[end]) for end in ("value", "low", "high"))
            return unit, value, low, high
    except (KeyError, TypeError, ValueError):  # of another version
        pass
    return "", None, None, None


def value(one: Standing) -> str:
    """What a cell found, in words."""
    try:
        return _value(one.cell.work, one.found or {})
    except (KeyError, TypeError, ValueError, IndexError):  # of another version: the rest is said
        return ""


def _value(work: str, found: Mapping[str, Any]) -> str:
    if work in ("train", "score"):
        metric = str(found["metric"])
        said = {"metric": tr(metric.replace("_", " ")), "n": amount(metric, float(found["value"]))}
        if "low" not in found or "high" not in found:
            return tr("{metric} {n}", **said)
        low, high = (amount(metric, float(found[side])) for side in ("low", "high"))
        low = low.removesuffix("%").removesuffix(THIN)
        return tr("{metric} {n}, {low} to {high}", **said, low=low, high=high)
    if work == "measure":
        heads, examples = int(found["heads"]), int(found["examples"])
        one_head = "{heads:,} head on {examples:,} examples"
        many = "{heads:,} heads on {examples:,} examples"
        return tr(one_head if heads == 1 else many, heads=heads, examples=examples)
    if work == "curve":
        return _curves(found["curves"])
    if work == "compare":
        answers, unit = found["answers"], _unit(found["answers"])
        times = 100 if unit == "points" else 1
        ends = {one: _more(times * float(answers["difference"][one]), unit)
                for one in ("low", "value", "high")}  # fmt: skip
        agree = share(100 * float(answers["agreement"]), 0)
        points = "{value} points ({low} to {high}), {agree} of answers alike"
        bits = "{value} bits per byte ({low} to {high}), {agree} of answers alike"
        return tr(points if unit == "points" else bits, **ends, agree=agree)
    return ""


def _unit(answers: Mapping[str, Any]) -> str:
    """What two models differ in: points of right answers, or bits per byte."""
    metric = dict(answers).get("score_a", {}).get("metric", "")
    return "bits_per_byte" if metric == "bits_per_byte" else "points"


def _more(value: float, unit: str) -> str:
    return (
        f"{value:+.1f}".replace("-", "−") if unit == "points" else f"{value:+.3f}".replace("-", "−")
    )


def _curves(curves: Any) -> str:
    first, last = curves[0]["values"][0], curves[0]["values"][-1]
    metric = str(curves[0]["unit"])
    if len(curves) > 1:
        return tr("{n:,} orders", n=len(curves))
    ends = {"first": amount(metric, first), "last": amount(metric, last)}
    return tr("from {first} to {last} with all heads off", **ends)


def stands(one: Standing) -> str:
    """How it stands, in a line."""
    return tr("cannot run" if one.state == "blocked" else one.state)


def why(one: Standing) -> str:
    """Why it failed, or what it waits for."""
    return one.line


def facts(one: Standing) -> list[tuple[str, str]]:
    """Everything known of it: the name of each fact, and words."""
    rows = [("State", stands(one)), ("Found", value(one)), ("Why", why(one))]
    rows += [("Took", seconds(one.seconds)), ("On", one.host)]
    return [(name, words) for name, words in rows if words]


VALUES = (
    "Kind", "Data", "Model", "Activation", "Seed", "Method", "State", "Metric", "Value", "Low",
    "High", "Took, s", "On", "Why",
)  # fmt: skip


def values(one: Standing) -> list[str]:
    """Everything known of it under VALUES, numbers as Python writes them, shares in points."""
    cell, (metric, *found) = one.cell, numbers(one)
    if metric in SHARES:
        found = [None if number is None else 100 * number for number in found]
    place = [called(cell.place.get(axis, "")) for axis in ("data", "model", "activation", "seed")]
    said = ["" if number is None else repr(round(number, 10)) for number in found]
    took = repr(round(one.seconds, 3)) if one.seconds > 0 else ""
    names = [kind(cell.work), *place, sub(cell), tr(one.state), tr(metric.replace("_", " "))]
    words = [*names, *said, took, one.host, why(one)]
    return [" ".join(word.split()) for word in words]


def explained(fact: str, work: str = "") -> str:
    """What a fact is, with its formula and source; of a kind of cell what that finds."""
    if fact == "Found" and work in FINDS:
        return tr(FINDS[work])
    return tr(MEANS.get(fact, ""))


def seconds(count: float) -> str:
    """0.4 s, 12 s, 3 min, 2.1 h; "" for none."""
    if count <= 0:
        return ""
    if count < 90:
        return tr("{n} s", n=f"{count:.1f}" if count < 10 else f"{count:.0f}")
    if count < 5400:
        return tr("{n} min", n=f"{count / 60:.0f}")
    return tr("{n} h", n=f"{count / 3600:.1f}")


def line_of(one: Standing) -> str:
    """Name, state and what it found, in one line for the status bar and screen readers."""
    found = value(one) if one.state == "done" else why(one)
    return "   ·   ".join(filter(None, (name(one.cell), stands(one), found)))
