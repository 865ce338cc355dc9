"""Runs of a study: state, results, and watching its folder."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer

from hgviz import tasks
from hgviz.core import HgvizError, progress
from hgviz.gui import log
from hgviz.gui.jobs import Runner
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted
from hgviz.language import duration, percent, rounded_percent
from hgviz.store.studies import SweepFolder
from hgviz.study import Cell, Standing, State, Sweep
from hgviz.tasks.studies import OWN
from hgviz.tasks.study_results import RANDOM_LABEL

# --- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StudyModel:
    """A checkpoint of a study, what its attention is exchanged for, and what people call it."""

    path: str
    activation: str
    name: str


def models_of(sweep: Sweep, cell: Cell) -> list[StudyModel]:
    """The models that a cell is of: one, of a comparison A and B."""
    if cell.work == "compare":
        place = cell.place
        first = next(iter(sweep.names("activation")), "")
        of_a = {**place, "activation": first}
        return [
            _model(sweep, cell.given["a"], cell.paths.get("a checkpoint", ""), of_a),
            _model(sweep, cell.given["b"], cell.paths.get("b checkpoint", ""), place),
        ]
    given = {"trained": cell.key} if cell.work == "train" else cell.given
    return [_model(sweep, given, cell.paths.get("checkpoint", ""), cell.place)]


def _model(
    sweep: Sweep, given: Mapping[str, Any], path: str, place: Mapping[str, str]
) -> StudyModel:
    parts = [place.get("model", ""), place.get("activation", "")]
    if "trained" in given:
        parts += [f"seed {place['seed']}"] if place.get("seed") else []
        at = str(SweepFolder(sweep.path).model_at(str(given["trained"])))
        return StudyModel(at, "", " ".join(filter(None, parts)))
    activation = str(given.get("activation", ""))
    return StudyModel(path, activation, parts[0] or path)


def trained_as(sweep: Sweep | None, path: str) -> str:
    """What a checkpoint is called that a study trained, whose folder is named by a key; "" for
    another. path: of its folder, or what that is named."""
    if sweep is None:
        return ""
    keys = {one.cell.key: one.cell for one in sweep.of("train")}
    cell = keys.get(Path(path).name)
    return "" if cell is None else models_of(sweep, cell)[0].name


def scores_at(sweep: Sweep, cell: Cell) -> str:
    """Where the study lies that a run measured of one model."""
    return str(SweepFolder(sweep.path).result_at(cell.key, ".h5"))


# --- runs -----------------------------------------------------------------------------------------

KINDS = {
    "train": "Train", "score": "Score", "measure": "Measure heads", "curve": "Curves",
    "compare": "Compare",
}  # fmt: skip
STATES: tuple[State, ...] = ("done", "waiting", "failed", "blocked")
OPENS = {
    "train": "Open the model", "score": "Open the model", "compare": "Open both in Compare",
    "measure": "Open its heads in Prune", "curve": "Open its curves in Prune",
}  # fmt: skip
MEANS = {  # what every fact is, and where its formula comes from
    "Kind": "What the run does: train a model, score it, measure its heads, compute a pruning "
    "curve, or compare two models (docs/how-to/study.md).",
    "Data": "The data that the run uses, by its name under [[data]] in the study file.",
    "Model": "The model, by its name under [[models]] in the study file.",
    "Activation": "The function from scores to weights; own: the model's own (maps.md).",
    "Seed": "Random seed of the training, and of the split into examples that order the heads and "
    "examples that measure the order.",
    "Method": "The score that orders the heads, or what is measured of them (statistics.md).",
    "State": "done: has a result; waiting: no result yet; failed: ended with an error; blocked: "
    "needs a run that failed.",
    "Result": "The measured value, with its 95 % interval.",
    "Time": "Wall-clock time of the run.",
    "Host": "The machine that the run used.",
    "Error": "The last line of the error.",
}
FINDS = {  # what is found by each kind of cell
    "train": "The score on held-out data at the end of the training (docs/how-to/train.md).",
    "score": "Accuracy k / n on n examples, with Wilson's 95 % interval (Wilson 1927): "
    "(k + z²/2 ± z √(k (n − k) / n + z²/4)) / (n + z²), z = 1.96. For language models bits per "
    "byte, −Σ log₂ p / bytes (statistics.md).",
    "measure": "The number of heads measured, and of examples: G = ∂loss/∂gate of a head, or the "
    "change of the loss without it (statistics.md).",
    "curve": "The score with no heads off and with all heads off, on examples that were not used "
    "for the order (statistics.md).",
    "compare": "(c − b) / n: of n predictions b are right in A alone, c in B alone; 95 % interval "
    "by Bonett and Price (2012), with b + 1, c + 1, n + 2. Identical: the share of predictions "
    "that are the same in both (statistics.md).",
}
SHARES = ("accuracy", "masked_accuracy", "f1", "mcc")  # told in points of 100


def called(name: str) -> str:
    """A name of the grid; "own" and "random orders" are words, the rest are names."""
    return tr(name) if name in (OWN, RANDOM_LABEL) else name


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
    return f"{tr(KINDS[cell.work])}: {where(cell)}"


def amount(metric: str, value: float) -> str:
    """87.5 % for a share that is right, 1.432 for bits or nats."""
    return percent(value) if metric in SHARES else f"{value:.3f}".replace("-", "−")


def value(one: Standing) -> str:
    """What a run found, in words; "" for a result of another version."""
    try:
        return RESULT_WORDS[one.cell.work](one.found or {})
    except (KeyError, TypeError, ValueError, IndexError):
        return ""


def _score_words(found: Mapping[str, Any]) -> str:
    metric = str(found["metric"])
    words = f"{tr(metric.replace('_', ' '))} {amount(metric, float(found['value']))}"
    if "low" not in found or "high" not in found:
        return words
    low, high = (amount(metric, float(found[side])) for side in ("low", "high"))
    return tr("{score}, {low} to {high}", score=words, low=low.removesuffix(" %"), high=high)


def _importance_words(found: Mapping[str, Any]) -> str:
    heads, examples = int(found["heads"]), int(found["examples"])
    return tr("{heads} on {examples:,} examples", heads=counted(heads, "head"), examples=examples)


def _curve_words(found: Mapping[str, Any]) -> str:
    curves = found["curves"]
    if len(curves) > 1:
        return tr("{n:,} orders", n=len(curves))
    first, last = (amount(str(curves[0]["unit"]), curves[0]["values"][at]) for at in (0, -1))
    return tr("from {first} to {last} with all heads off", first=first, last=last)


def _difference_words(found: Mapping[str, Any]) -> str:
    answers, unit = found["answers"], "points"
    times, digits = 100, 1
    if dict(answers).get("score_a", {}).get("metric", "") == "bits_per_byte":
        times, digits, unit = 1, 3, "bits per byte"
    ends = {
        end: f"{times * float(answers['difference'][end]):+.{digits}f}".replace("-", "−")
        for end in ("low", "value", "high")
    }
    words = f"{{value}} {unit} ({{low}} to {{high}}), {{agree}} of predictions identical"
    return tr(words, **ends, agree=rounded_percent(float(answers["agreement"])))


RESULT_WORDS = {
    "train": _score_words, "score": _score_words, "measure": _importance_words,
    "curve": _curve_words, "compare": _difference_words,
}  # fmt: skip


def facts(one: Standing) -> list[tuple[str, str]]:
    """Everything known of it: the name of each fact, and words."""
    rows = [("State", tr(one.state)), ("Result", value(one)), ("Error", one.line)]
    rows += [("Time", duration(one.seconds)), ("Host", one.host)]
    return [(name, words) for name, words in rows if words]


def explained(fact: str, work: str = "") -> str:
    """What a fact is, with its formula and source; of a kind of cell what that finds."""
    if fact == "Result" and work in FINDS:
        return tr(FINDS[work])
    return tr(MEANS.get(fact, ""))


def line_of(one: Standing) -> str:
    """Name, state and what it found, in one line for the status bar and screen readers."""
    found = value(one) if one.state == "done" else one.line
    return "   ·   ".join(filter(None, (name(one.cell), tr(one.state), found)))


KEY = "watch"
OFTEN, SELDOM = 1.0, 5.0  # s from the end of a look to the next: while cells run, and else
PART = 10  # a look that takes long is followed by so many times of rest


class FolderWatcher(Runner):
    """Keeps session.sweep true while its page is on screen."""

    def __init__(self, commands: Any) -> None:
        super().__init__(commands)
        self._timer = QTimer(self.window, singleShot=True)
        self._timer.timeout.connect(self.look)

    def begin(self) -> None:
        """Look at the study that was opened from now on."""
        self._timer.start(round(1000 * OFTEN))

    def close(self) -> None:
        self._timer.stop()

    def look(self) -> None:
        """Look now, unless nobody sees it or there is nothing yet."""
        sweep = self.session.sweep
        if sweep is None:
            return
        if self.session.mode != "sweep" or not self.window.isVisible():
            self._timer.start(round(1000 * OFTEN))
            return
        self.lanes.watch.submit(
            KEY, "reading the study", partial(_looked, sweep),
            on_done=self._looked, on_error=self._failed,
        )  # fmt: skip

    def _looked(self, found: tuple[Sweep, float]) -> None:
        sweep, spent = found
        now = self.session.sweep
        if now is None or now.path != sweep.path:
            return
        self.session.put(sweep=sweep, sweep_trouble="")
        often = SELDOM if sweep.complete else OFTEN
        self._timer.start(round(1000 * max(often, PART * spent)))

    def _failed(self, error: BaseException) -> None:
        """What was seen last stays, with a word about it."""
        log.record(error)
        lines = error.lines if isinstance(error, HgvizError) else (str(error),)
        sweep = self.session.sweep
        begun = sweep is not None and sweep.counts["waiting"] < len(sweep.standings)
        self.session.put(sweep_trouble=" ".join(map(tr, lines[:2])) if begun else "")
        self._timer.start(round(1000 * (SELDOM if begun else OFTEN)))


def _looked(before: Sweep) -> tuple[Sweep, float]:
    """The study as it stands, and how many seconds it took to see."""
    progress(0, 1)
    begun = time.monotonic()
    return tasks.sweep_at(before.path, before), time.monotonic() - begun
