"""What is said of a cell of a study: what it found, how it stands, where and how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hgviz.gui.views.words import counted
from hgviz.sweep import Cell, Standing, State

KINDS = {
    "train": "Train", "score": "Score", "measure": "Measure heads", "curve": "Curves",
    "compare": "Compare",
}  # fmt: skip
STATES: tuple[State, ...] = ("done", "running", "waiting", "failed", "blocked")
OPENS = {
    "train": "Open the model", "score": "Open the model on its data",
    "measure": "Open its heads in Prune", "curve": "Open its curves in Prune",
    "compare": "Open both in Compare",
}  # fmt: skip
THIN = "\u202f"


def kind(work: str) -> str:
    """Curves, Measure heads: what a kind of cell is called."""
    return KINDS.get(work, work[:1].upper() + work[1:])


def sub(cell: Cell) -> str:
    """Which of several of a kind it is: a method, or what of heads is measured; "" for one."""
    arrays = cell.given.get("arrays", ())
    return cell.place.get("method", "") or (str(arrays[0]).replace("_", " ") if arrays else "")


def where(cell: Cell) -> str:
    """small, ymish, seed 1, michel: its place in the grid."""
    place = cell.place
    parts = [place.get(one, "") for one in ("data", "model", "activation")]
    parts += [f"seed {place['seed']}"] if place.get("seed") else []
    return ", ".join(filter(None, [*parts, sub(cell)]))


def amount(metric: str, value: float) -> str:
    """87.5 % for a share that is right, 1.432 for bits or nats."""
    if metric in ("accuracy", "f1", "mcc"):
        return f"{100 * value:.1f}{THIN}%".replace("-", "−")
    return f"{value:.3f}".replace("-", "−")


def short(one: Standing) -> str:
    """What a cell found, in a few digits; "" where that is no number."""
    found = one.found or {}
    try:
        if one.cell.work in ("train", "score"):
            return amount(str(found["metric"]), float(found["value"])).removesuffix(f"{THIN}%")
        if one.cell.work == "compare":
            return f"{100 * float(found['answers']['difference']['value']):+.1f}".replace("-", "−")
    except (KeyError, TypeError, ValueError):
        return ""
    return ""


def value(one: Standing) -> str:
    """What a cell found, in words."""
    try:
        return _value(one.cell.work, one.found or {})
    except (KeyError, TypeError, ValueError, IndexError):  # of another version: the rest is said
        return ""


def _value(work: str, found: Mapping[str, Any]) -> str:
    if work in ("train", "score"):
        metric = str(found["metric"])
        said = f"{metric.replace('_', ' ')} {amount(metric, float(found['value']))}"
        if "low" in found and "high" in found:
            low, high = (amount(metric, float(found[side])) for side in ("low", "high"))
            said += f", {low.removesuffix(f'{THIN}%')} to {high}"
        return said
    if work == "measure":
        return f"{counted(int(found['heads']), 'head')} on {counted(found['examples'], 'example')}"
    if work == "curve":
        curves = found["curves"]
        first, last = curves[0]["values"][0], curves[0]["values"][-1]
        unit = str(curves[0]["unit"])
        metric = "accuracy" if unit == "accuracy" else unit
        many = f"{len(curves)} orders" if len(curves) > 1 else f"from {amount(metric, first)}"
        return many if len(curves) > 1 else f"{many} to {amount(metric, last)} with all heads off"
    if work == "compare":
        answers = found["answers"]
        apart = answers["difference"]
        low, mid, high = (100 * float(apart[one]) for one in ("low", "value", "high"))
        agree = f"{100 * float(answers['agreement']):.0f}{THIN}%"
        return (f"{mid:+.1f} points ({low:+.1f} to {high:+.1f}), {agree} of answers alike").replace(
            "-", "−"
        )
    return ""


def stands(one: Standing) -> str:
    """How it stands, in a line."""
    if one.state == "running":
        return f"running, {one.share:.0%}".replace("%", f"{THIN}%")
    if one.state == "waiting" and one.tries:
        return f"waiting for try {one.tries + 1}"
    return {"blocked": "cannot run", "failed": "given up"}.get(one.state, one.state)


def facts(one: Standing) -> list[tuple[str, str]]:
    """Everything known of it, name and words."""
    rows = [("State", stands(one)), ("Found", value(one)), ("Now", one.note)]
    rows += [("Why", one.line)]
    rows += [("Took" if one.state == "done" else "Took so far", seconds(one.seconds))]
    rows += [("On", one.host), ("Tries", f"{one.tries} of 3" if one.tries else "")]
    return [(name, words) for name, words in rows if words]


def seconds(count: float) -> str:
    """0.4 s, 12 s, 3 min, 2.1 h; "" for none."""
    if count <= 0:
        return ""
    if count < 10:
        return f"{count:.1f} s"
    if count < 90:
        return f"{count:.0f} s"
    return f"{count / 60:.0f} min" if count < 5400 else f"{count / 3600:.1f} h"


def line_of(one: Standing) -> str:
    """Name, state and what it found, in one line for the status bar and screen readers."""
    found = value(one) if one.state == "done" else one.line or one.note
    head = f"{kind(one.cell.work)}: {where(one.cell)}"
    return "   ·   ".join(filter(None, (head, stands(one), found)))
