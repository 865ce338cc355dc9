"""Heads switched off and scored again."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtGui import QUndoCommand, QUndoGroup, QUndoStack

from hgviz import core, settings, tasks
from hgviz.analysis.importance import METHODS, MaskTrial
from hgviz.core import Cancelled, Capture, HeadSet, HgvizError, ModelSpec, Step, progress
from hgviz.errors import LabelError, require
from hgviz.examples import EACH, WINDOW
from hgviz.gui import sources
from hgviz.gui.actions import BY_NAME
from hgviz.gui.headgrid import place_noun
from hgviz.gui.jobs import Runner
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted
from hgviz.gui.sources import name_of
from hgviz.gui.view import Empty
from hgviz.session import PatchedTexts, Session
from hgviz.study import SCORE, Mask, Study

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials
    from hgviz.tasks.measurements import Patching

# --- trial of a set of heads ----------------------------------------------------------------------

Fields = dict[str, Any]  # of a session, by name

FIRST = ("loo", SCORE)  # what colours the wall unless something else is chosen
POINTS = 25  # of a curve; random orders have fewer
# what is tried, drawn at random where there is more
EXAMPLES = {"classes": 4000, "tags": 4000, "ends": 1000, "states": 1000, "masked": 400}
TOKENS = 32 * WINDOW  # of a language model
# of their blocks: a score shows soon, and grows in small steps
SIZES = {"next": (1, 2, 4)} | dict.fromkeys((*EACH, "masked"), (32, 64))
SHORT = 256  # tokens: as many shorter windows as have these together stand for one


class NewestFirst:
    """Work that goes before what runs in the same lane; only the newest is kept."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], Any]] = deque(maxlen=1)  # safe between threads

    def put(self, work: Callable[[], Any]) -> None:
        """Have it done next, in place of one that waits or runs."""
        self._waiting.append(work)

    def clear(self) -> None:
        """Nothing is urgent any more, and what is under way ends."""
        self._waiting.append(lambda: None)

    def run(self, listener: core.Listener) -> None:
        """Do what is urgent now, until there is nothing; newer work cancels what runs."""
        outer = core.cancel_condition()
        while self._waiting:
            work = self._waiting.popleft()
            newer = core.cancelled_if(lambda: bool(self._waiting) or outer())
            with suppress(Cancelled), newer, core.listening(listener):
                work()


def prepare(
    model: Model | None,
    checkpoint: str,
    device: str,
    data: str,
    study: Study | None = None,
    labels: Mapping[str, str] | None = None,
) -> Trials:
    """Make a model ready to be evaluated on a file, loading it first where it is not open.

    labels: the model's class of each label of the file. study: one that is open; where the file has
    the examples it was made of, those are evaluated. Errors: as tasks.trials_on.
    """
    if model is None:
        what = "There is no model to evaluate: a capture has no weights"
        require(checkpoint, what, "Open the checkpoint it was made with")
        model = tasks.load(checkpoint, device)
    progress(0, 1, f"reading {Path(data).name}")
    examples = tasks.examples_from(model, data, labels=labels)
    measured = None if study is None else examples.sample(len(study))
    if measured is None or study is None or measured.digest != study.data_digest:
        most = EXAMPLES.get(examples.asked)
        measured = examples.sample(most) if most else examples.sample_of(TOKENS)
    progress(0, 1, "checking that heads have an effect")
    sizes = SIZES[measured.asked]
    if measured.asked == "next":
        each = max(1, int(SHORT / measured.lengths.mean()))
        sizes = tuple(each * size for size in sizes)
    return tasks.trials_on(model, measured, sizes=sizes)


def evaluate(trials: Trials, off: HeadSet) -> MaskTrial:
    """Evaluate the model without some heads; the progress carries the MaskTrial so far."""
    trial = tasks.try_heads(trials, off)
    progress(trial.total, trial.total, "", trial)
    return trial


def evaluate_model(
    model: Model, data: str, labels: Mapping[str, str] | None, off: HeadSet
) -> MaskTrial:
    """Evaluate a model without some heads on a file. Errors: as tasks.trials_on."""
    return tasks.try_heads(prepare(model, "", "", data, labels=labels), off)


def patch_between(
    model: Model | None, path: str, activation: str, texts: PatchedTexts, off: HeadSet
) -> tuple[Model, Patching]:
    """Open the model where it is not, and patch its heads. Errors: as tasks.patching."""
    if model is None:
        model = tasks.load(path, settings.load().device, activation=activation or None)
    clean, corrupted = (model.tokenize(text) for text in (texts.clean, texts.corrupted))
    answer, wrong = (tasks.answer_number(model, name) for name in (texts.answer, texts.wrong))
    return model, tasks.patching(model, clean, corrupted, answer, wrong, off)


def measure_around(urgent: NewestFirst, measure: Callable[[], Study]) -> Study:
    """Measure heads, and do what is urgent at every report of progress inside, whose study is
    handed on as a new object. A report may be skipped where many come, so the trial that was done
    last is handed on again with those that have no study.
    """
    tell = core.current_listener()
    done: MaskTrial | None = None

    def between_passes(step: Step) -> None:
        nonlocal done
        tell(replace(step, value=done if step.value is None else replace(step.value)))

        def trial(other: Step) -> None:  # how far the study is goes with it
            nonlocal done
            if isinstance(other.value, MaskTrial) and other.value.done:
                done = other.value
            tell(replace(step, value=other.value))

        urgent.run(trial)

    with core.listening(between_passes):
        return measure()


def drawn(study: Study) -> str:
    """Which score of a study to show first: the best of those that have a curve."""
    score = best(study, "")
    curves = [one.method for one in study.curves if one.method in METHODS]
    measured = [one for one in curves if METHODS[one].is_measured(study)]
    return score if score in curves or not measured else measured[-1]


def best(study: Study, chosen: str) -> str:
    """The score that colours the heads: the chosen one, else the best there is."""
    there = []
    for name, one in METHODS.items():
        values = study.arrays.get(one.needs)
        if one.is_measured(study) and (values is None or np.isfinite(values).any()):
            there.append(name)
    return next((one for one in (chosen, *FIRST, *there) if one in there), "")


# --- steps that can be undone ---------------------------------------------------------------------

MAX_STEPS = 200


class HeadsCommand(QUndoCommand):
    """A step to other values of some fields of a session: heads that are off, or masks.

    merged: whether it is undone together with the step before. before: their values, by default
    those that the session has.
    """

    def __init__(
        self,
        session: Session,
        words: str,
        merged: bool,
        after: Fields,
        before: Fields | None = None,
    ) -> None:
        super().__init__(words)
        self._session, self._merged, self._after = session, merged, after
        self._before = before or {name: getattr(session, name) for name in after}

    def id(self) -> int:
        return 1

    def mergeWith(self, newer: QUndoCommand) -> bool:
        assert isinstance(newer, HeadsCommand)
        if newer._merged:
            self._after = newer._after
        return newer._merged

    def undo(self) -> None:
        self._put(self._before)

    def redo(self) -> None:
        self._put(self._after)

    def forget_scores(self) -> None:
        for fields in (self._before, self._after):
            if "masks" in fields:
                fields["masks"] = _unscored(fields["masks"])

    def _put(self, fields: Fields) -> None:
        """Put the fields; masks keep scores that were measured since."""
        if "masks" in fields:
            scored = {mask.off: mask for mask in self._session.masks if mask.score is not None}
            masks = (replace(scored.get(one.off, one), name=one.name) for one in fields["masks"])
            fields = {**fields, "masks": tuple(masks)}
        self._session.put(**fields)


def _unscored(masks: tuple[Mask, ...]) -> tuple[Mask, ...]:
    return tuple(Mask(mask.name, mask.off) for mask in masks)


# --- trials ---------------------------------------------------------------------------------------

OFTEN = 0.1  # s: numbers that run change at most so often
KEPT = 32  # finished trials that are shown again at once
TRIAL, DATA, MEASURE, CURVE, PATCH = "trial", "data", "measure-heads", "curve", "patch"
LONG = (MEASURE, CURVE)


class TrialRunner(Runner):
    """Keeps session.trial true to the heads that are off, in the engine lane; the newest set of
    heads wins."""

    def __init__(self, commands: Any) -> None:
        super().__init__(commands)
        session = self.session
        self.labels: dict[tuple[str, str], Mapping[str, str]] = {}  # of a checkpoint and a file
        self.trials: Trials | None = None
        self.urgent = NewestFirst()
        self.pair: tuple[Capture, Capture] | None = None  # whole, and with heads off
        self._known: dict[HeadSet, MaskTrial] = {}
        self._shown = 0.0
        self.patched_texts = PatchedTexts()  # what was asked last
        self._by_hand = False  # whether somebody chose what colours the wall
        self._curve = False  # whether one is to be drawn when the heads are measured
        self._stacks: dict[str, QUndoStack] = {}  # by the digest of a model
        self._opened: tuple[str, HeadSet] = "", frozenset()  # the checkpoint, and its heads off
        self.undo = QUndoGroup(self.lanes.bridge)
        self._use_stack()
        self.undo.undoTextChanged.connect(lambda words: session.put(undo=words))
        self.undo.redoTextChanged.connect(lambda words: session.put(redo=words))
        session.changed.connect(self._heard)

    def switch(self, off: HeadSet, merged: bool = False) -> None:
        """Have exactly these heads off. merged: undone together with the change before."""
        if off != self.session.off:
            self._push_step(_switching(self.session.off, off), merged, off=off)

    def _push_step(self, words: str, merged: bool = False, **fields: Any) -> None:
        """Put fields into the session as a step that can be undone."""
        self.undo.activeStack().push(HeadsCommand(self.session, words, merged, fields))

    def _use_stack(self) -> None:
        """Use the undo stack of the open model; for the previous checkpoint with another
        activation, push one more step that switches the same heads off."""
        session, (checkpoint, off) = self.session, self._opened
        digest = session.spec.digest if session.spec is not None else ""
        stack = self._stacks.get(digest)
        if stack is None:
            stack = self._stacks[digest] = QUndoStack(self.undo)
            stack.setUndoLimit(MAX_STEPS)
        if not digest:  # nobody knows whether it is the one before
            stack.clear()
        if stack is self.undo.activeStack():
            return
        self.undo.setActiveStack(stack)
        same = checkpoint and checkpoint == session.checkpoint
        if same and off != session.off and off <= set(session.spec.heads):
            words, after = tr("opening another model"), {"off": session.off}
            stack.push(HeadsCommand(session, words, False, after, {"off": off}))

    def keep(self) -> None:
        """Keep the heads that are off under a name, with their score."""
        session = self.session
        names = {one.name for one in session.masks}
        first = f"{len(session.off)} off" if session.off else "Full model"
        numbered = (f"{first}, {number}" for number in count(2))
        name = next(one for one in chain((first,), numbered) if one not in names)
        others = (one for one in session.masks if one.off != session.off)
        masks = (*others, _with_score(Mask(name, session.off), session.trial))
        self._push_step(f"saving mask {name}", masks=masks)

    def drop(self, name: str) -> None:
        masks = tuple(one for one in self.session.masks if one.name != name)
        self._push_step(f"deleting mask {name}", masks=masks)

    def save(self, path: str, on_done: Callable[[Any], None]) -> None:
        """Write what was measured, with the masks that were kept; it knows its file then."""
        study = self.session.study
        if study is None:
            return

        def saved(written: str) -> None:
            self.session.lies_at(study, written)
            on_done(written)

        work = partial(tasks.save, replace(study, masks=self.session.masks), path, force=True)
        self.working.write(path, work, saved)

    def patch(self, texts: PatchedTexts) -> None:
        """Patch every head between two texts, and colour the heads by what comes back."""
        session = self.session
        self.patched_texts = texts
        at_hand = session.model, session.checkpoint, session.activation

        def show(result: tuple[Model, Patching]) -> None:
            model, found = result
            session.put(model=model, patching=found, mode="prune")

        work, title = partial(patch_between, *at_hand, texts, session.off), tr("Patching heads")
        self.working.start(self.lanes.engine, PATCH, title, work, show, bound=True)

    def open_text(self, text: str, on_done: Callable[[], object]) -> None:
        """Capture a text with the whole model and with heads off, and show the latter."""
        session = self.session
        request = sources.CaptureRequest(
            session.checkpoint, text, off=session.off, device=settings.load().device,
            activation=session.activation,
        )  # fmt: skip

        def show(pair: tuple[Capture, Capture]) -> None:
            self.pair = pair
            session.put(capture=pair[1], ids="")
            on_done()

        def capture_both() -> tuple[Capture, Capture]:
            full = replace(request, off=frozenset())
            _, model, whole = sources.capture_text(full, session.model)
            return whole, sources.capture_text(request, model)[2]

        title = "Running the full and the pruned model"
        self.working.start(self.lanes.engine, "capture", title, capture_both, show, bound=True)

    def turn(self) -> str:
        """Show the other capture of the same text; what is shown then, in words, "" for none."""
        session, shown = self.session, self.session.capture
        if self.pair is None or not any(shown is one for one in self.pair):
            return ""
        other = self.pair[0] if shown is self.pair[1] else self.pair[1]
        kept = {"facts": {}, "selection": session.selection, "off": session.off}
        session.put(chosen=False, capture=other, **kept)
        words = "Pruned model: {heads} off" if other.off else "Full model"
        return tr(words, heads=counted(len(other.off), "head"))

    def use(self, data: str, scored: str = "") -> None:
        """Score the model on a file. scored: the digest of the examples that what is open was
        measured on, where that was on this file."""
        session, study = self.session, self.session.study
        self.forget()
        if study is not None and not study.path and not scored:
            session.put(study=None)  # one that was opened stays, whatever is tried
        session.put(data=data, trial=None)
        labels = self.labels.get((session.checkpoint, data))
        work = partial(
            prepare, session.model, session.checkpoint, settings.load().device, data,
            session.study, labels,
        )  # fmt: skip
        self.working.start(
            self.lanes.engine, DATA, f"Reading {name_of(data)}", work,
            partial(self._ready, scored), partial(self._unreadable, data), bound=True,
        )  # fmt: skip

    def _ready(self, scored: str, trials: Trials) -> None:
        self.trials = trials
        if self.session.model is None:
            self.session.put(model=trials.model)
        if self.known is None and trials.examples.digest != scored:
            self.session.put(masks=_unscored(self.session.masks))  # scored on other examples
            stack = self.undo.activeStack()
            for number in range(stack.count()):
                step = stack.command(number)
                assert isinstance(step, HeadsCommand)
                step.forget_scores()
        self.resume()

    def open_study(self, study: Study, alone: bool = False) -> None:
        """Show what was measured before. alone: nothing else that is open belongs to it.

        What is tried goes on where it is tried on the same examples, and else is given up.
        """
        fields: dict[str, Any] = {}
        self.stop_measuring()
        if alone:
            self.working.stop("capture")
            fields = {"capture": None, "model": None, "checkpoint": "", "activation": "",
                      "spec": study.spec}  # fmt: skip
        if alone or not self._is_of(study):
            self.forget()
            fields |= {"data": "", "trial": None}
        if alone or study.off:
            fields["off"] = study.off
        self._by_hand = False
        self.session.put(study=study, masks=study.masks, score=drawn(study), mode="prune", **fields)

    def _is_of(self, study: Study) -> bool:
        """Whether a study is of the model and the examples that are tried."""
        mine = self.trials
        return mine is not None and (
            study.spec.digest, study.data_digest, study.off, study.ablation
        ) == (mine.model.spec.digest, mine.examples.digest, mine.off, mine.ablation)  # fmt: skip

    @property
    def known(self) -> Study | None:
        """The study that measuring goes on with; None where it begins anew."""
        study = self.session.study
        return study if study is not None and self._is_of(study) else None

    def _unreadable(self, data: str, error: BaseException) -> None:
        self.session.put(data="", trial=None)
        self.labels.pop((self.session.checkpoint, data), None)
        if isinstance(error, LabelError):
            self.commands.assign_labels(data, error)
        else:
            self.commands.show_error(error)

    def forget(self) -> None:
        """Try and measure nothing any more."""
        for key in (TRIAL, DATA, *LONG):
            self.lanes.engine.cancel(key)
        for key in LONG:
            self.working.stop(key)
        self.urgent.clear()
        self.trials = self.pair = None
        self._known = {}

    def _heard(self, name: str) -> None:
        session, trial, study = self.session, self.session.trial, self.session.study
        if name == "models":
            self.forget()
        if name == "spec":
            self._use_stack()
        if name in ("checkpoint", "off"):
            self._opened = session.checkpoint, session.off
        came_back = name == "model" and session.model is not None and self.trials is None
        if came_back and session.data and not session.job(DATA):
            measured = "" if study is None else study.data_digest
            self.use(session.data, trial.examples.digest if trial is not None else measured)
        tried = trial is not None and trial.off == session.off
        if name == "off" and self.trials is not None and not tried:
            self.resume()

    def resume(self) -> None:
        """Try what is off now, at once and before whatever else is measured; parts are kept."""
        trials, off = self.trials, self.session.off
        if trials is None:
            return
        if (known := self._known.pop(off, None)) is not None:
            self._known[off] = known
            self.stop_trial()
            self.session.put(trial=known)
            return
        self.session.put(trial=MaskTrial(off, trials.examples, head_costs=trials.head_costs))
        work = partial(evaluate, trials, off)
        if self.measuring:
            self.urgent.put(work)
            return
        self.lanes.engine.submit(
            TRIAL, "Evaluating", work, on_step=self._stepped, on_done=self._tried,
            on_error=self.commands.show_error,
        )  # fmt: skip

    def stop_trial(self) -> None:
        """Leave the score as far as it came."""
        self.lanes.engine.cancel(TRIAL)
        self.urgent.clear()
        trial = self.session.trial
        if trial is not None and not trial.done:
            self.session.put(trial=replace(trial, stopped=True))

    def _stepped(self, step: Step) -> None:
        trial, now = step.value, time.monotonic()
        if not isinstance(trial, MaskTrial) or trial.off != self.session.off:
            return
        shown = self.session.trial
        if trial.done:
            self._tried(trial)
        elif shown is None or not shown.scores or now - self._shown >= OFTEN:
            self._shown = now
            self.session.put(trial=trial)

    def _tried(self, trial: MaskTrial) -> None:
        self._known[trial.off] = trial
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        if trial.off == self.session.off:
            masks = tuple(_with_score(mask, trial) for mask in self.session.masks)
            self.session.put(trial=trial, masks=masks)

    @property
    def measuring(self) -> bool:
        """Whether heads are being measured, or a curve, or timed."""
        return self.session.job(*LONG) is not None

    def measure(self, needs: frozenset[str], curve: bool = False) -> None:
        """Measure all heads; what is measured already shows while the rest is on its way."""
        if self.trials is None:
            return
        self._curve = curve
        data = name_of(self.session.data)
        work = partial(tasks.importance, self.trials, needs, data, known=self.known)
        self._start(MEASURE, "Computing head importance", work)

    def trace(self) -> None:
        """The curve of the chosen score beside random orders."""
        study = self.known
        if self.trials is None or study is None or not self.session.score:
            return
        work = partial(tasks.curve, self.trials, study, self.session.score, most=POINTS)
        self._start(CURVE, "Computing pruning curve", work)

    def colour(self, score: str) -> None:
        self._by_hand = True
        self.session.put(score=score)

    def _start(self, key: str, title: str, work: Callable[[], Study]) -> None:
        """Measure in place of the trial, which goes on within it; what is measured stays."""

        def fail(error: BaseException) -> None:
            self._go_on()
            self.commands.show_error(error)

        def grow(step: Step) -> None:
            if isinstance(step.value, Study):
                self._measured(step.value, over=False)
            else:
                self._stepped(step)

        self.lanes.engine.cancel(TRIAL)
        work = partial(measure_around, self.urgent, work)
        self.working.start(
            self.lanes.engine, key, title, work, self._measured, fail, grow, bound=True
        )
        self._go_on()

    def _go_on(self) -> None:
        """A trial that gave way to a measurement goes on within it."""
        trial = self.session.trial
        if trial is not None and not trial.done and not trial.stopped:
            self.resume()

    def stop_measuring(self) -> None:
        """Stop measuring and keep what was measured."""
        for key in LONG:
            self.working.stop(key)
        self._go_on()

    def _measured(self, study: Study, over: bool = True) -> None:
        """Colour the wall, unless somebody chose how, by the best score there is."""
        kept = self.session.score if self._by_hand or not over else ""
        self.session.put(study=study, unsaved=True, score=best(study, kept))
        if over:
            self._go_on()
            curve, self._curve = self._curve, False
            if curve:
                self.trace()

    def close(self) -> None:
        self.session.changed.disconnect(self._heard)


def _switching(old: HeadSet, new: HeadSet) -> str:
    """The step from one set of heads off to another, in words."""
    turned = old ^ new
    heads = f"head {next(iter(turned))}" if len(turned) == 1 else f"{len(turned)} heads"
    if not new:
        return "switching all heads on"
    way = "off" if turned <= new else "on" if turned <= old else "off and on"
    return f"switching {heads} {way}"


def _with_score(mask: Mask, trial: MaskTrial | None) -> Mask:
    """A mask with what a trial of it scored, beside the whole model; without an interval of one
    text alone."""
    if trial is None or trial.off != mask.off or not trial.scores:
        return mask
    change = trial.change if all(map(math.isfinite, trial.change)) else None
    return replace(mask, score=trial.headline[-1], change=change)


# --- studies --------------------------------------------------------------------------------------

DATA_ACTIONS = (("bundled_data", "Use bundled reviews"), ("choose_data", "Choose data…"))


def about(study: Study) -> str:
    """heads.h5: softmax on reviews.tsv · 800 texts · 98.8 % right with all heads on."""
    seen, (subject, size) = study.answered, subject_words(study)
    parts = [f"{name_of(study.path)}: {subject}", size]
    if seen.any():
        share = 100 * float(study.right[seen].mean())
        words = "accuracy {share:.1f} % with all heads on"
        if study.off:
            words = "accuracy {share:.1f} % with {n:,} heads off"
        parts.append(tr(words, share=share, n=len(study.off)))
    if study.ablation != "zero":
        parts.append(tr("ablation by {kind}", kind=tr(study.ablation)))
    return " · ".join(parts)


def subject_words(study: Study) -> tuple[str, str]:
    """What was measured, and on how much: softmax on reviews.tsv; 800 texts."""
    words = tr("{model} on {data}", model=study.spec.name or tr("a model"), data=_data(study))
    return words, counted(len(study.wanted), place_noun(study.asked, study.spec))


def another_model(study: Study, spec: ModelSpec) -> HgvizError:
    """What is said where the study that is opened is not of the model that is open."""
    name, here = study.spec.name, spec.name
    why = "it measured another model than the one that is open"
    if name and name == here:
        why = f"it measured a model of the same name, {name}, with other weights"
    elif name and here:
        why = f"it measured {name}, but {here} is open"
    do = "Open the study alone, which closes the model, or open its model first"
    return HgvizError(f"{name_of(study.path)} is a study of another model: {why}", do)


def study_lacks(session: Session) -> Empty | None:
    """What a study that was opened still lacks to try heads; None where none was opened."""
    study = session.study
    if study is None or not study.path:
        return None
    if session.model is None and not session.checkpoint:
        name, helps = study.spec.name or tr("a model"), ("open_folder", "Open checkpoint folder…")
        title = tr("The model of this study, {name}, is not open", name=name)
        text = tr("Open the model to switch heads off and evaluate it. The study stays open.")
        return Empty(title, f"{about(study)}\n{text}", (helps,))
    title = tr("Choose data to evaluate the model on")
    words = "With {data}, its masks and curve continue; other data starts again."
    text = f"{about(study)}\n{tr(words, data=_data(study))}"
    return Empty(title, text, possible(session, *reversed(DATA_ACTIONS)))


def _data(study: Study) -> str:
    return study.data or tr("unnamed data")


def possible(session: Session, *actions: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Those of some actions, (name, words), that can be done now."""
    return tuple(one for one in actions if not BY_NAME[one[0]].why_off(session))
