"""Which predictions a mask changed, as rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from hgviz.analysis.trial import Trial, Which
from hgviz.core import Step, Task
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.explained import told
from hgviz.gui.reasons import reads_text
from hgviz.gui.widgets import tip

if TYPE_CHECKING:
    from hgviz.models.model import Model

MOST = 2000  # rows: those whose loss rose most
SHOWN = 200  # characters of a text that are drawn
BITS = 1 / np.log(2)

Index = QModelIndex | QPersistentModelIndex
HEADS = {
    "classes": "Label", "next": "Next {unit}", "masked": "Hidden {unit}", "tags": "Class",
    "ends": "Position", "states": "Nearest text",
}  # fmt: skip
WHOLE = ("classes", "states", "ends")  # asked of a whole text
UNITS = {"byte": "letter"}
WORTH = ("", "", "", "", "more", "loss")  # which number of explained each column is


@dataclass(frozen=True, slots=True)
class Change:
    """A place: the text before it, what was wanted, what both gave, bits of loss before and now."""

    example: int
    before: str
    wanted: str
    whole: str
    now: str
    was_right: bool
    is_right: bool
    loss: tuple[float, float]

    @property
    def more(self) -> float:
        """Bits of loss more."""
        return self.loss[1] - self.loss[0]


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows of one kind, how many of each there are, and what the columns are called; ends: whether
    a text ends where the answer is."""

    rows: tuple[Change, ...]
    counts: dict[Which, int]
    columns: tuple[str, ...]
    most: float = 1.0
    ends: bool = False


def changes(trial: Trial, which: Which, model: Model | None) -> Task[Changes]:
    """The predictions that changed, those whose loss rose most first."""
    yield Step(0, 1)
    kinds: tuple[Which, ...] = ("lost", "won", "all")
    counts: dict[Which, int] = {kind: len(trial.changed(kind)) for kind in kinds}
    examples = trial.examples
    unit = _unit(model)
    ends = examples.asked not in WHOLE
    heads = (tr("Context") if ends else tr("Text"),
             tr(HEADS[examples.asked], unit=tr(unit)), tr("Whole model"),
             off_words(len(trial.off)), tr("More loss"), tr("Loss, bits"))  # fmt: skip
    found = trial.changed(which)
    if trial.before is None or trial.now is None or not len(found):
        return Changes((), counts, heads, ends=ends)
    more = trial.now.loss[found] - trial.before.loss[found]
    found = found[np.argsort(-more if which != "won" else more, kind="stable")][:MOST]
    say = _sayer(trial, model)
    rows = tuple(_row(trial, int(place), say) for place in found)
    most = max((abs(one.more) for one in rows), default=1.0) or 1.0
    return Changes(rows, counts, heads, most, ends)


def off_words(count: int) -> str:
    """12 heads off."""
    return tr("1 head off") if count == 1 else tr("{n:,} heads off", n=count)


def verdict(right: bool) -> str:
    """right, or wrong."""
    return tr("right") if right else tr("wrong")


def _unit(model: Model | None) -> str:
    if model is None or not reads_text(model):
        return "token"
    unit = model.tokenizer.encode("a").unit
    return UNITS.get(unit, unit)


def _sayer(trial: Trial, model: Model | None) -> Callable[[int], str]:
    """What an answer is called: a class, or a token."""
    labels = trial.examples.labels
    if trial.examples.asked in ("classes", "tags"):
        return lambda number: labels[number] if 0 <= number < len(labels) else str(number)

    if trial.examples.asked in WHOLE:
        return str

    @lru_cache(maxsize=4096)
    def token(number: int) -> str:
        if model is None:
            return str(number)
        prompt = model.tokenizer.decode(np.array([number], np.int64))
        said = sentences.name(prompt, 0)
        return tr("space") if said in (sentences.SPACE, " ") else said

    return token


def _row(trial: Trial, place: int, say: Callable[[int], str]) -> Change:
    assert trial.before is not None and trial.now is not None
    examples = trial.examples
    number = int(np.searchsorted(examples.places, place, side="right")) - 1
    one = examples.rows[number]
    if examples.asked in WHOLE:
        text = one.text
    else:
        at = np.flatnonzero(one.wanted >= 0)[place - int(examples.places[number])]
        start, end = (int(side) for side in one.spans[at])
        end = end if examples.asked == "next" else start
        text = one.text[max(0, end - SHOWN) : max(0, end)]
    wanted = int(examples.wanted[place])
    was, now = int(trial.before.given[place]), int(trial.now.given[place])
    return Change(
        number, text, say(wanted), say(was), say(now), was == wanted, now == wanted,
        (float(trial.before.loss[place]) * BITS, float(trial.now.loss[place]) * BITS),
    )  # fmt: skip


class ChangeTable(QAbstractTableModel):
    """The rows for Qt: words for screen readers, a Change for the painter."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.found = Changes((), {}, ("",) * len(WORTH))

    def show_changes(self, found: Changes) -> None:
        """Other rows."""
        self.beginResetModel()
        self.found = found
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        """How many rows."""
        return 0 if parent is not None and parent.isValid() else len(self.found.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        """How many columns."""
        return 0 if parent is not None and parent.isValid() else len(self.found.columns)

    def headerData(
        self, section: int, way: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The names of the columns."""
        if way == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.found.columns[section]
        if way == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return tip(told(WORTH[section])) if WORTH[section] else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            right = section == 5 or (section == 0 and self.found.ends)
            side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A cell."""
        row = self.found.rows[index.row()]
        if role == Qt.ItemDataRole.UserRole:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return cell_words(row, index.column())
        if index.column() == 0 and role in (
            Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole
        ):  # fmt: skip
            said = sentences.shown(row.before, 600).replace(sentences.SPACE, " ")
            return tip(said) if role == Qt.ItemDataRole.ToolTipRole else said
        return None


def row_cells(row: Change) -> list[str]:
    """A row for a spreadsheet: answers, whether they are right, bits of loss before and now."""
    return [
        cell_words(row, 0), row.wanted, row.whole, f"{int(row.was_right)}", row.now,
        f"{int(row.is_right)}", f"{row.loss[0]:.6g}", f"{row.loss[1]:.6g}",
    ]  # fmt: skip


def cell_words(row: Change, column: int) -> str:
    """What a cell says."""
    return (
        sentences.shown(row.before, SHOWN).replace(sentences.SPACE, " "),
        row.wanted,
        f"{row.whole} {verdict(row.was_right)}",
        f"{row.now} {verdict(row.is_right)}",
        f"{row.more:+.2f}".replace("-", "−"),
        f"{row.loss[0]:.2f} → {row.loss[1]:.2f}",
    )[column]
