"""Removing heads from a model for good, with its proof."""

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

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QRadioButton,
    QWidget,
)

from hgviz import settings, tasks
from hgviz.core import HeadId, HeadSet, HgvizError, ModelSpec, Step
from hgviz.gui import dialogs, theme
from hgviz.gui.dialogs import ask_for
from hgviz.gui.jobs import GOING, Jobs, Lanes
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.gui.sentences import named
from hgviz.gui.sources import shown_error
from hgviz.gui.widgets import Button, Picker, Progress, Words, hbox, label, vbox

if TYPE_CHECKING:
    from hgviz.models.pruning import Compensation, Form, Proof
    from hgviz.session import Session

# --- runner ---------------------------------------------------------------------------------------


REMOVE = "remove-heads"
STOPPED = "Stopped: nothing was written"


@dataclass(frozen=True, slots=True)
class Removal:
    """Heads to remove from a checkpoint: in which form, made up for how, proved on what ("": the
    reviews that come with hgviz), with which class of each label, and written where."""

    checkpoint: str
    spec: ModelSpec
    off: HeadSet
    data: str = ""
    form: Form = "smaller"
    compensate: Compensation = "none"
    out: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> tuple[int, ...]:
        """The layers that lose every head they have."""
        return tuple(
            layer.index
            for layer in self.spec.layers
            if layer.heads and all(HeadId(layer.index, head) in self.off for head in layer.heads)
        )

    @property
    def command(self) -> str:
        """The command line that does the same."""
        words = ["hgviz", "prune", self.checkpoint, "--off", named(self.off, self.spec.layers)]
        words += ["--form", self.form] * (self.form != "smaller")
        words += ["--compensate", self.compensate] * (self.compensate != "none")
        words += ["--data", self.data] * bool(self.data)
        named_ = ",".join(f"{label}={name}" for label, name in self.labels.items())
        words += ["--labels", named_] * bool(self.labels)
        return shlex.join([*words, "-o", self.out])

    def write(self) -> Proof:
        """What does it."""
        data = self.data or None
        return tasks.prune(
            self.checkpoint,
            self.off,
            self.out,
            self.form,
            self.compensate,
            data=data,
            labels=self.labels or None,
        )


def free(out: Path) -> Path:
    """The path, or the same with a number where there is something already."""
    numbered = (out.with_name(f"{out.name}-{n}") for n in count(2))
    return next(one for one in chain((out,), numbered) if not os.path.lexists(one))


def _left(out: str) -> str:
    """The folder, "" where there is nothing in it."""
    there = Path(out).is_dir() and any(Path(out).iterdir())
    return out if there else ""


class RemovalRunner:
    """Asks, runs the removal in the engine lane, and shows in the dialog what came of it.

    The dialog may be left while it runs; it comes back with the proof, or with what went wrong.
    """

    def __init__(
        self,
        window: QWidget,
        session: Session,
        lanes: Lanes,
        working: Jobs,
        open_path: Callable[[str], None],
        labels: Mapping[tuple[str, str], Mapping[str, str]],
    ) -> None:
        self.window, self.session, self.lanes, self.working = window, session, lanes, working
        self._open_path, self._labels = open_path, labels
        self.dialog: RemoveDialog | None = None
        self._out = ""

    def ask(self) -> None:
        """Show the dialog, or the one that is at work already."""

        if self.dialog is None:
            session = self.session
            assert session.spec is not None
            name = f"{name_of(session.checkpoint)}-without-{len(session.off)}"
            out = str(free(Path(settings.load().folder or Path.home()) / name))
            labels = self._labels.get((session.checkpoint, session.data), {})
            wish = Removal(
                session.checkpoint, session.spec, session.off, session.data, out=out, labels=labels
            )
            self.dialog = RemoveDialog(self.window, wish)
            self.dialog.wanted.connect(self._start)
            self.dialog.stopped.connect(self.stop)
            self.dialog.opened.connect(self._open_path)
            self.dialog.finished.connect(self._closed)
        if not self.dialog.isVisible():
            self.dialog.open()

    def _start(self, wish: Removal) -> None:
        others = [one.title for one in self.session.work if one.state in GOING]
        self._out = wish.out
        self._show().show_running(others[0] if others else "")
        count = len(wish.off)
        title = f"Removing {count} heads for good" if count > 1 else "Removing 1 head for good"
        self.working.start(
            self.lanes.engine, REMOVE, title, wish.write, self._done, self._failed, self._stepped
        )

    def stop(self) -> None:
        """Stop after the step that is under way, and say so once the lane has let go of it."""
        self.working.stop(REMOVE)
        if self.dialog is not None:
            self.dialog.show_stopping()
        self.lanes.engine.submit(
            REMOVE, "Stopping", partial(_left, self._out), on_done=self._stopped,
            post=self.lanes.bridge.post,
        )  # fmt: skip

    def _stepped(self, step: Step) -> None:
        if self.dialog is not None:
            self.dialog.show_step(step)

    def _done(self, proof: Proof) -> None:
        self._show().show_proof(proof)

    def _failed(self, error: BaseException) -> None:
        self._show().show_error(shown_error(error))

    def _stopped(self, written: str) -> None:
        """There is a folder after all where it was named before the stop came."""
        dialog = self.dialog
        if dialog is None:
            return
        said = tr("It was written to {path} before it could be stopped", path=written)
        dialog.show_asking(said if written else tr(STOPPED))
        if not dialog.isVisible():  # nobody looks at it: the next one asks anew
            dialog.deleteLater()
            self.dialog = None

    def _show(self) -> RemoveDialog:
        """The dialog in sight: it may have been left."""
        assert self.dialog is not None
        if not self.dialog.isVisible():
            self.dialog.open()
        return self.dialog

    def _closed(self) -> None:
        """Forget the dialog, unless it was only hidden while the removal runs."""
        if self.dialog is not None and not self.dialog.running:
            self.dialog.deleteLater()
            self.dialog = None


# --- removal --------------------------------------------------------------------------------------


FORMS: tuple[tuple[Form, str, str], ...] = (
    ("smaller", "Smaller", "their weights are gone; hgviz opens it"),
    ("zeroed", "Zeroed", "the original files with zeros in them; any program opens it"),
)
COMPENSATIONS = (
    ("none", "Nothing"),
    ("mean", "The bias takes over what they give on the mean"),
    ("lsq", "Factors for the heads that stay, by least squares"),
)
WRITES = (
    "Writes a new folder; {name} stays as it is. What was written is opened again and compared "
    "with this model, before the folder gets its name."
)
REVIEWS = "reviews that come with hgviz"
SHOWN = 8  # files of a line
OPENS = {"smaller": "Open the smaller model", "zeroed": "Open the zeroed model"}


class RemoveDialog(dialogs.Form):
    """wanted: a Removal to start; stopped: the one that runs is to stop; opened: a folder is to be
    opened. While it runs, closing only hides it."""

    wanted = Signal(object)
    stopped = Signal()
    opened = Signal(str)
    wide = 640

    def __init__(self, window: QWidget, wish: Removal) -> None:
        count, heads = len(wish.off), len(wish.spec.heads)
        title = (
            tr("Remove {n} of {total} heads for good", n=count, total=heads)
            if heads > 1
            else tr("Remove the only head for good")
        )
        super().__init__(window, title)
        self._wish = wish
        self.running = False
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)  # comes back with the proof
        self.asking, self.progress_part, self.proof_part = QWidget(), QWidget(), QWidget()
        self._build_asking()
        self._build_progress()
        self.told = _wrapped("", "bad")
        self.copy = Button(tr("Copy as command"), "copy", kind="link")
        self.copy.clicked.connect(self._copy)
        self.go = Button(tr("Remove"), kind="filled")
        self.go.clicked.connect(self._accept)
        self.stop = Button(tr("Stop"), "stop")
        self.stop.clicked.connect(self.stopped)
        self.open_it = Button("", kind="filled")
        self.open_it.clicked.connect(self._open_it)
        self.away = Button(tr("Cancel"))
        self.away.clicked.connect(self.reject)
        for one in (self.asking, self.progress_part, self.proof_part, self.told):
            self.body.addWidget(one)
        self.body.addSpacing(4)
        self.body.addLayout(
            hbox(None, self.copy, 1, self.go, self.stop, self.open_it, self.away, spacing=-1)
        )
        self.show_asking()

    @property
    def wish(self) -> Removal:
        """What is chosen now."""
        return replace(
            self._wish,
            form=next(name for name, one in self.forms.items() if one.isChecked()),
            compensate=self.compensate.currentData(),
            out=self.folder.text().strip(),
        )

    # --- what it shows ----------------------------------------------------------------------------

    def show_asking(self, told: str = "", bad: bool = False) -> None:
        """The choices, and what came of the last run."""
        self._show(self.asking, (self.go, self.away), told, "bad" if bad else "secondary")
        self.away.setText(tr("Cancel"))
        self.asking.setEnabled(True)
        self._set_default(self.go)
        self._fit()

    def show_running(self, other: str = "") -> None:
        """The choices as they were made, and how far it is; other: what it has to wait for."""
        self._show(self.asking, (self.stop, self.away))
        self.running = True
        self.progress_part.show()
        self.asking.setEnabled(False)
        self.stop.setEnabled(True)
        self.away.setText(tr("Hide"))
        self.away.setToolTip(tr("It goes on, and comes back when it is done"))
        self._set_default(self.stop)
        self.bar.show_part(0.0)
        self.note.say(tr("Waiting for: {job}", job=tr(other)) if other else tr("Starting"))
        self.stop.setFocus()

    def show_step(self, step: Step) -> None:
        """How far it is with the part that is under way."""
        part = step.done / step.total if step.total else 0.0
        note = tr(step.note)
        words = note[:1].upper() + note[1:]
        far = tr("{percent:.0f} %", percent=100 * part)
        self.note.say(f"{words} · {far}" if step.total > 1 else words)
        self.bar.show_part(part)

    def show_stopping(self) -> None:
        """The step that is under way ends first."""
        self.note.say(tr("Stopping"))
        self.stop.setEnabled(False)

    def show_error(self, error: HgvizError) -> None:
        """What went wrong in one line, under the choices."""
        self.show_asking(" ".join(map(tr, error.lines)), bad=True)
        self.folder.setFocus()

    def show_proof(self, proof: Proof) -> None:
        """What the new model proves of itself."""
        self._build_proof(proof)
        self.open_it.setText(tr(OPENS[proof.form]))
        self._show(self.proof_part, (self.open_it, self.away))
        count = len(proof.off)
        self.title.setText(
            tr("1 head is removed") if count == 1 else tr("{n} heads are removed", n=count)
        )
        self.away.setText(tr("Close"))
        self._set_default(self.open_it)
        self.open_it.setFocus()

    def _show(
        self, part: QWidget, buttons: tuple[Button, ...], told: str = "", kind: str = "secondary"
    ) -> None:
        self.running = False
        for one in (self.asking, self.progress_part, self.proof_part):
            one.setVisible(one is part)
        for button in (self.go, self.stop, self.open_it, self.away):
            button.setVisible(button in buttons)
        self.away.setToolTip("")
        self.told.setText(told)
        self.told.setVisible(bool(told))
        self.told.setProperty("kind", kind)
        self.told.style().polish(self.told)

    def _set_default(self, button: Button) -> None:
        self.default = button
        button.setDefault(True)

    # --- what it is made of -----------------------------------------------------------------------

    def _build_asking(self) -> None:
        wish = self._wish
        column = vbox(self.asking, _wrapped(tr(WRITES, name=name_of(wish.checkpoint))), spacing=8)
        if wish.empty:
            column.addWidget(_wrapped(empty_words(wish.empty, wish.spec), "warning"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        self.forms: dict[Form, QRadioButton] = {}
        group, rows = QButtonGroup(self), QGridLayout()
        rows.setHorizontalSpacing(12)
        rows.setVerticalSpacing(4)
        rows.setColumnStretch(1, 1)
        for row, (name, words, does) in enumerate(FORMS):
            one = self.forms[name] = QRadioButton(tr(words))
            one.setChecked(name == wish.form)
            one.setAccessibleDescription(tr(does))
            one.toggled.connect(self._fit)
            group.addButton(one)
            rows.addWidget(one, row, 0)
            rows.addWidget(Words(tr(does), factor=0.92, kind="secondary"), row, 1)
        self.compensate = Picker()
        for how, words in COMPENSATIONS:
            self.compensate.addItem(tr(words), how)
        self.compensate.currentIndexChanged.connect(self._fit)
        self.folder = QLineEdit(wish.out)
        self.folder.textChanged.connect(self._fit)
        choose = Button(tr("Choose…"))
        choose.clicked.connect(self._choose)
        where = hbox(None, (self.folder, 1), choose, spacing=8)
        on = name_of(wish.data) if wish.data else tr(REVIEWS)
        data = Words(on, kind="secondary")
        data.setToolTip(wish.data)
        for row, (words, part) in enumerate((
            ("Form", rows), ("Makes up for them", self.compensate), ("Proved on", data),
            ("New folder", where),
        )):  # fmt: skip
            name_ = label(tr(words))
            if isinstance(part, QWidget):
                name_.setBuddy(part)
                part.setAccessibleName(tr(words))
                grid.addWidget(part, row, 1)
            elif isinstance(part, QLayout):
                grid.addLayout(part, row, 1)
            top = Qt.AlignmentFlag.AlignTop if row == 0 else Qt.AlignmentFlag.AlignVCenter
            grid.addWidget(name_, row, 0, top)
        self.folder.setAccessibleName(tr("New folder"))
        name_.setBuddy(self.folder)
        choose.setAccessibleDescription(tr("New folder"))
        column.addSpacing(4)
        column.addLayout(grid)

    def _build_progress(self) -> None:
        self.bar = Progress()
        self.note = Words(factor=0.92, kind="secondary")
        vbox(self.progress_part, self.bar, self.note, margins=(0, 8, 0, 0), spacing=4)

    def _build_proof(self, proof: Proof) -> None:
        sign = QLabel()
        sign.setPixmap(theme.pixmap("check", 16, theme.current().good))
        top, said = Qt.AlignmentFlag.AlignTop, _wrapped(agreement(proof), "")
        column = vbox(self.proof_part, hbox(None, (sign, 0, top), (said, 1), spacing=8), spacing=8)
        if proof.empty:
            column.addWidget(_wrapped(empty_words(proof.empty, proof.spec), "warning"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(24)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(3, 1)
        right = theme.TO_RIGHT
        for row, cells in enumerate(proof_rows(proof)):
            for place, words in enumerate(cells):
                head = row == 0 or place == 0
                one = label(words, factor=0.92 if head else 1.0, kind="secondary" if head else "")
                grid.addWidget(one, row, place, right if 0 < place < 3 else right & ~right)
        column.addSpacing(4)
        column.addLayout(grid)
        for words in remarks(proof):
            column.addWidget(_wrapped(words))
        path = Words(str(proof.path), factor=0.92)
        path.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        path.setAccessibleName(tr("New folder"))
        column.addWidget(path)

    # --- what it asks for -------------------------------------------------------------------------

    def _fit(self) -> None:
        self.go.setEnabled(bool(self.folder.text().strip()))
        self.copy.setEnabled(self.go.isEnabled())
        self.copy.setText(tr("Copy as command"))

    def _accept(self) -> None:
        self.wanted.emit(self.wish)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.wish.command)
        self.copy.setText(tr("Copied"))

    def _choose(self) -> None:
        folder = QFileDialog.FileMode.Directory
        ask_for(self, tr("Choose where the new folder goes"), folder, self._placed)

    def _placed(self, path: str) -> None:
        """A folder of its own in the chosen one, unless that is empty."""
        with suppress(OSError):  # what cannot be listed is told when it is written to
            if not any(Path(path).iterdir()):
                self.folder.setText(path)
                return
        self.folder.setText(str(Path(path) / (Path(self.folder.text()).name or "pruned")))

    def _open_it(self) -> None:
        path = self.wish.out
        self.reject()
        self.opened.emit(path)


# --- words ----------------------------------------------------------------------------------------


def agreement(proof: Proof) -> str:
    """Its logits differ from those with the heads off by at most 3.8e-07 …; compared on …"""
    source = tr(proof.source) if proof.source == REVIEWS else proof.source
    many = {"n": proof.texts, "all": proof.read.examples, "texts": proof.read.texts}
    if proof.read.asked != "classes":
        said = "Compared on {n:,} of {all:,} windows of {texts:,} texts from {source}."
        compared = tr(said, **many, source=source)
    elif proof.texts == 1:
        compared = tr("Compared on 1 text from {source}.", source=source)
    else:
        compared = tr("Compared on {n:,} texts from {source}.", n=proof.texts, source=source)
    return f"{_differs(proof)} {compared}"


def _differs(proof: Proof) -> str:
    if not proof.difference:
        return tr("Its logits are exactly those with the heads off.")
    parts = {"most": proof.difference, "dtype": proof.dtype, "limit": proof.limit}
    if proof.rough is None:
        return tr(
            "Its logits differ from those with the heads off by at most {most:.1e} in {dtype}, "
            "where {limit:.1e} is the limit.", **parts,
        )  # fmt: skip
    return tr(
        "Its logits differ from those with the heads off by at most {most:.1e} in {dtype} "
        "({rough:.1e} in float32), where {limit:.1e} is the limit.", rough=proof.rough, **parts,
    )  # fmt: skip


def proof_rows(proof: Proof) -> list[tuple[str, str, str, str]]:
    """What was measured before and after: a row of heads, then a row for each measure."""
    rows = [("", tr("Before"), tr("After"), "")]
    for words, (before, after) in (("Parameters", proof.parameters), ("Bytes", proof.size)):
        rows.append((tr(words), f"{before:,}", f"{after:,}", change(before, after)))
    for one in proof.latency:
        words = tr("1 text at once") if one.batch == 1 else tr("{n} texts at once", n=one.batch)
        speed = tr("{times:.2f} times as fast", times=one.ratio)
        rows.append((words, f"{one.before:.2f} ms", f"{one.after:.2f} ms", speed))
    return rows


def remarks(proof: Proof) -> list[str]:
    """What the rows are of, and what the new folder lacks."""
    if proof.form == "zeroed":
        found = [tr("A pass takes as long as before: zeros are computed like other numbers.")]
    else:
        found = [tr("Times are medians of one pass on one core, of both in PyTorch in float32.")]
    if proof.opens:
        found.append(tr(f"{proof.opens[0].upper()}{proof.opens[1:]}."))
    if proof.left_out:
        files = ", ".join(proof.left_out[:SHOWN]) + ("…" if len(proof.left_out) > SHOWN else "")
        found.append(tr("Not copied (weights of the whole model, links): {files}.", files=files))
    return found


def change(before: int, after: int) -> str:
    """−4.7 %, as before."""
    if before == after:
        return tr("as before")
    part = f"{100 * (after / before - 1):+.1f}".replace("-", "−")
    return tr("{part} %", part=part)


def empty_words(layers: tuple[int, ...], spec: ModelSpec) -> str:
    """Layers 3 and 5 …: they lose every head, and only add their bias; or all of a model do."""
    if {layer.index for layer in spec.layers if layer.heads} <= set(layers):
        return tr("No head is left, so nothing attends any more.")
    if len(layers) == 1:
        return tr("Layer {layer} keeps no head and only adds its bias.", layer=layers[0])
    named = ", ".join(map(str, layers))
    return tr("Layers {layers} keep no head and only add their bias.", layers=named)


def _wrapped(words: str, kind: str = "secondary") -> QLabel:
    out = label(words, kind=kind, factor=0.92 if kind else 1.0, wrap=True)
    return out
