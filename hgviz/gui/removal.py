"""Pruning heads from a checkpoint, with the proof that the result is the masked model."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QGridLayout, QLabel, QLineEdit, QRadioButton, QWidget

from hgviz import settings, tasks
from hgviz.core import HeadId, HeadSet, ModelSpec
from hgviz.gui import dialogs, theme
from hgviz.gui.dialogs import ask_for
from hgviz.gui.jobs import Runner
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted, layers, named
from hgviz.gui.sources import name_of, shown_error
from hgviz.gui.widgets import Button, Picker, Words, hbox, label, make

if TYPE_CHECKING:
    from hgviz.models.pruning import Compensation, Form, Proof

REMOVE = "remove-heads"


@dataclass(frozen=True, slots=True)
class Removal:
    """Heads to prune from a checkpoint."""

    checkpoint: str
    spec: ModelSpec
    off: HeadSet
    data: str = ""  # what it is verified on, "" for the reviews that come with hgviz
    form: Form = "smaller"
    compensate: Compensation = "none"
    out: str = ""  # the new folder
    labels: Mapping[str, str] = field(default_factory=dict)  # the class of each

    @property
    def empty(self) -> tuple[int, ...]:
        """The layers that lose every head they have."""
        attending = (layer for layer in self.spec.layers if layer.heads)
        return tuple(
            layer.index for layer in attending
            if self.off.issuperset(HeadId(layer.index, head) for head in layer.heads)
        )  # fmt: skip

    @property
    def command(self) -> str:
        """The command line that does the same."""
        labels = ",".join(f"{label}={name}" for label, name in self.labels.items())
        options = {
            "--form": self.form if self.form != "smaller" else "",
            "--compensate": self.compensate if self.compensate != "none" else "",
            "--data": self.data, "--labels": labels, "-o": self.out,
        }  # fmt: skip
        words = ["hgviz", "prune", self.checkpoint, "--off", named(self.off, self.spec.layers)]
        return shlex.join([*words, *(part for row in options.items() if row[1] for part in row)])

    def write(self) -> Proof:
        return tasks.prune(
            self.checkpoint, self.off, self.out, self.form, self.compensate,
            data=self.data or None, labels=self.labels or None,
        )  # fmt: skip


def free(out: Path) -> Path:
    """The path, or the same with a number where there is something already."""
    numbered = (out.with_name(f"{out.name}-{n}") for n in count(2))
    return next(one for one in chain((out,), numbered) if not os.path.lexists(one))


class RemovalRunner(Runner):
    """Asks how to prune the heads that are off, does it in the engine lane, and shows the proof."""

    _out = ""  # the folder that is written

    def ask(self) -> None:
        """Ask how to prune the model that is open and where to save it."""
        session = self.session
        assert session.spec is not None
        if session.job(REMOVE):
            self.commands.say(tr("Pruning is already running"))
            return
        name = f"{name_of(session.checkpoint)}-without-{len(session.off)}"
        removal = Removal(
            session.checkpoint, session.spec, session.off, session.data,
            out=str(free(Path(settings.load().folder or Path.home()) / name)),
            labels=self.commands.pruning.labels.get((session.checkpoint, session.data), {}),
        )  # fmt: skip
        RemoveDialog(self.window, removal).ask(self._start)

    def _start(self, removal: Removal) -> None:
        def failed(error: BaseException) -> None:
            words = " ".join(map(tr, shown_error(error).lines))
            RemoveDialog(self.window, removal, words).ask(self._start)

        self._out = removal.out
        title = tr("Pruning {heads}", heads=counted(len(removal.off), "head"))
        self.working.start(self.lanes.engine, REMOVE, title, removal.write, self._done, failed)

    def stop(self) -> None:
        """Stop after the current step, and report what was written once the lane is free."""
        self.working.stop(REMOVE)
        folder = Path(self._out)

        def is_filled() -> bool:
            return folder.is_dir() and any(folder.iterdir())

        def stopped(is_filled: bool) -> None:
            """The folder may have got its name before the stop came."""
            words = "Pruning had already finished: {path} was written"
            words = words if is_filled else "Stopped: nothing was written"
            self.commands.say(tr(words, path=folder))

        self.lanes.engine.submit(REMOVE, "Stopping", is_filled, on_done=stopped)

    def _done(self, proof: Proof) -> None:
        path = str(proof.path)
        open_it, compare = self.commands.open_path, self.commands.compare_pruned
        ProofDialog(self.window, proof, partial(open_it, path), partial(compare, path)).open()


# --- dialogs --------------------------------------------------------------------------------------

FORMS: tuple[tuple[Form, str, str], ...] = (
    ("smaller", "Smaller", "without the weights of these heads; opens in hgviz"),
    ("zeroed", "Zeroed", "the original files with these weights at 0; opens in any program"),
)
COMPENSATIONS = (
    ("none", "None"),
    ("mean", "Add the mean output of the heads to the bias"),
    ("lsq", "Rescale the remaining heads by least squares"),
)
REVIEWS = "reviews that come with hgviz"
LISTED = 8  # files that are named
OPENS = {"smaller": "Open the smaller model", "zeroed": "Open the zeroed model"}


class RemoveDialog(dialogs.Form):
    """How to prune heads, and where to save the model. error: what went wrong the last time."""

    wide = 640

    def __init__(
        self,
        window: QWidget,
        removal: Removal,
        error: str = "",
    ) -> None:
        off, heads = len(removal.off), len(removal.spec.heads)
        words = tr(
            "Writes a new folder and verifies it against this model before saving. {name} is not "
            "changed.", name=name_of(removal.checkpoint),
        )  # fmt: skip
        super().__init__(window, tr("Prune {n} of {total} heads", n=off, total=heads), words)
        self._removal, self.failure = removal, error
        if removal.empty:
            self.body.addWidget(dialogs.note(empty_words(removal.empty, removal.spec), "warning"))
        self.forms: dict[Form, QRadioButton] = {}
        choices = make(QGridLayout, horizontalSpacing=12, verticalSpacing=4)
        choices.setColumnStretch(1, 1)
        for at, (name, title, description) in enumerate(FORMS):
            button = self.forms[name] = make(
                QRadioButton, tr(title), checked=name == removal.form,
                accessibleDescription=tr(description),
            )  # fmt: skip
            choices.addWidget(button, at, 0)
            choices.addWidget(Words(tr(description), factor=0.92, kind="secondary"), at, 1)
        self.row(tr("Format"), choices)
        self.compensate = Picker()
        choices = [(how, tr(title)) for how, title in COMPENSATIONS]
        self.compensate.offer(choices, removal.compensate)
        self.row(tr("Compensation"), self.compensate)
        data = Words(name_of(removal.data) if removal.data else tr(REVIEWS), kind="secondary")
        data.setToolTip(removal.data)
        self.row(tr("Verified on"), data)
        name = tr("New folder")
        self.folder = make(
            QLineEdit, removal.out, accessibleName=name, textChanged=self.check_changed
        )
        choose = Button(tr("Choose…"), accessibleDescription=name, clicked=self._choose)
        self.row(tr("New folder"), hbox(None, (self.folder, 1), choose, spacing=8))
        self.copy = Button(tr("Copy as command"), "copy", kind="link", clicked=self._copy)
        self.offer(Button(tr("Prune and save"), kind="filled"), self.copy)
        self.first = self.folder if error else self.default

    @property
    def removal(self) -> Removal:
        form = next(name for name, button in self.forms.items() if button.isChecked())
        how, out = self.compensate.currentData(), self.folder.text().strip()
        return replace(self._removal, form=form, compensate=how, out=out)

    def answer(self) -> tuple[Removal]:
        return (self.removal,)

    def problem(self) -> str:
        return "" if self.folder.text().strip() else tr("Choose a new folder.")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.removal.command)
        self.copy.setText(tr("Copied"))

    def _choose(self) -> None:
        mode = QFileDialog.FileMode.Directory
        ask_for(self, tr("Choose a folder for the pruned model"), mode, self._placed)

    def _placed(self, path: str) -> None:
        """Take an empty folder itself, and in any other one a new folder."""
        with suppress(OSError):  # a folder that cannot be listed is reported when it is written to
            if not any(Path(path).iterdir()):
                self.folder.setText(path)
                return
        self.folder.setText(str(Path(path) / (Path(self.folder.text()).name or "pruned")))


class ProofDialog(dialogs.Form):
    """What a pruned model was verified on, and how much smaller and faster it is."""

    wide = 640

    def __init__(
        self,
        window: QWidget,
        proof: Proof,
        open_it: Callable[[], object],
        compare: Callable[[], object],
    ) -> None:
        title = tr("Pruned {heads}", heads=counted(len(proof.off), "head"))
        super().__init__(window, title)
        self.then = open_it
        sign = QLabel()
        sign.setPixmap(theme.pixmap("check", 16, theme.current().good))
        verified = dialogs.note(agreement(proof), "", 1.0)
        top = Qt.AlignmentFlag.AlignTop
        self.body.addLayout(hbox(None, (sign, 0, top), (verified, 1), spacing=8))
        if proof.empty:
            self.body.addWidget(dialogs.note(empty_words(proof.empty, proof.spec), "warning"))
        grid = make(QGridLayout, horizontalSpacing=24, verticalSpacing=6)
        grid.setColumnStretch(3, 1)
        for at, cells in enumerate(proof_rows(proof)):
            for column, words in enumerate(cells):
                is_name = at == 0 or column == 0
                cell = label(words, factor=0.92 if is_name else 1.0, kind="secondary" * is_name)
                side = theme.TO_RIGHT if column in (1, 2) else theme.TO_LEFT
                grid.addWidget(cell, at, column, side)
        self.body.addSpacing(4)
        self.body.addLayout(grid)
        for words in remarks(proof):
            self.body.addWidget(dialogs.note(words))
        path = Words(str(proof.path), factor=0.92)
        path.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        path.setAccessibleName(tr("New folder"))
        self.body.addWidget(path)
        beside = Button(tr("Compare with the original"), "compare")
        beside.clicked.connect(self.reject)
        beside.clicked.connect(compare)
        self.offer(Button(tr(OPENS[proof.form]), kind="filled"), beside, close="Close")


# --- words ----------------------------------------------------------------------------------------


def agreement(proof: Proof) -> str:
    """How far the logits are from those of the masked model, and on how many texts."""
    read = proof.read
    source = tr(read.source) if read.source == REVIEWS else read.source
    texts = counted(read.count, "text")
    if read.asked != "classes":
        texts = tr("{n:,} of {all:,} windows of {texts:,} texts",
                   n=read.count, all=read.examples, texts=read.texts)  # fmt: skip
    compared = tr("Compared on {texts} from {source}.", texts=texts, source=source)
    if not proof.difference:
        return f"{tr('The logits equal those of the masked model exactly.')} {compared}"
    rough = "" if proof.rough is None else tr(" ({rough:.1e} in float32)", rough=proof.rough)
    differs = tr(
        "The logits differ from those of the masked model by at most {most:.1e} in {dtype}{rough} "
        "(limit {limit:.1e}).",
        most=proof.difference, dtype=proof.dtype, limit=proof.limit, rough=rough,
    )  # fmt: skip
    return f"{differs} {compared}"


def proof_rows(proof: Proof) -> list[tuple[str, str, str, str]]:
    """What was measured before and after: a row of heads, then a row for each measure."""
    rows = [("", tr("Before"), tr("After"), "")]
    for words, (before, after) in (("Parameters", proof.parameters), ("Bytes", proof.size)):
        rows.append((tr(words), f"{before:,}", f"{after:,}", change(before, after)))
    for one in proof.latency:
        words, before, after = tr("Batch size {n}", n=one.batch), one.before, one.after
        rows.append((words, f"{before:.2f} ms", f"{after:.2f} ms", f"{one.ratio:.2f}×"))
    return rows


def remarks(proof: Proof) -> list[str]:
    """What the rows are of, and what the new folder lacks."""
    words = "Times: median per forward pass, PyTorch float32, one core."
    if proof.form == "zeroed":
        words = "No speed-up: the zeroed heads are still computed."
    found = [tr(words)]
    if proof.opens:
        found.append(tr(f"{proof.opens[0].upper()}{proof.opens[1:]}."))
    if proof.left_out:
        files = ", ".join(proof.left_out[:LISTED]) + "…" * (len(proof.left_out) > LISTED)
        found.append(tr("Not copied: {files}.", files=files))
    return found


def change(before: int, after: int) -> str:
    """The change as −4.7 %, or "unchanged"."""
    part = f"{100 * (after / before - 1):+.1f} %".replace("-", "−")
    return part if before != after else tr("unchanged")


def empty_words(empty: tuple[int, ...], spec: ModelSpec) -> str:
    """Which layers have no heads left."""
    if {layer.index for layer in spec.layers if layer.heads} <= set(empty):
        return tr("No heads are left, so there is no attention.")
    words = "{layers} have no heads left and only add their bias."
    if len(empty) == 1:
        words = "{layers} has no heads left and only adds its bias."
    names = layers(empty)
    return tr(words, layers=f"{names[:1].upper()}{names[1:]}")
