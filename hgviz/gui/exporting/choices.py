"""What can be chosen of a figure: kind, width, format, title, colours, and what lies beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QGridLayout, QLabel, QLineEdit, QSizePolicy, QWidget

from hgviz.core import Display, replace
from hgviz.figures.spec import FORMATS, WIDTHS
from hgviz.gui.exporting import saying
from hgviz.gui.exporting.offers import coloured, signed
from hgviz.gui.language import tr
from hgviz.gui.widgets import Check, Picker, Segments, label

if TYPE_CHECKING:
    from hgviz.figures import Spec
    from hgviz.gui.exporting.offers import Offer

OTHER = ""  # the width that is typed
TITLES = (("usual", "As it is", ""), ("own", "Own", ""), ("none", "None", ""))


class Choices(QWidget):
    """A form. `changed`: another figure is wanted; `reached`: a field that has the keyboard."""

    changed = Signal()
    reached = Signal(QWidget)

    def __init__(
        self, offers: Sequence[Offer], first: str, display: Display, width: str, form: str
    ) -> None:
        super().__init__()
        self._offers, self._display = {one.name: one for one in offers}, display
        self._row = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 12, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(1, 1)
        self.kind = self._kinds(offers, first)
        self._add(tr("Figure"), self.kind)
        self.width_, self.length = self._widths(width)
        self._add(tr("Width"), self.width_)
        self._add("", self.length)
        self.refused = self._note("bad")
        self.form = Picker()
        for name, words in FORMATS.items():
            self.form.addItem(tr(words), name)
        self.form.setCurrentIndex(max(0, self.form.findData(form)))
        self._add(tr("Format"), self.form)
        self.use = self._note()
        self.use.setMinimumHeight(2 * self.use.fontMetrics().height())
        self.title_ = Segments([(name, tr(words), icon) for name, words, icon in TITLES])
        self._add(tr("Title"), self.title_)
        self.own = QLineEdit()
        self.own.setPlaceholderText(tr("What the figure is called"))
        self.own.setAccessibleName(tr("Own title"))
        self._add("", self.own)
        self.colours = Check(tr("As on screen"))
        self.colours.setChecked(True)
        self._add(tr("Colours"), self.colours)
        self.coloured = self._note()
        self.numbers = Check(tr("Numbers (CSV)"))
        self.numbers.setToolTip(tr("Every number of the figure, in a file beside it"))
        self._add(tr("Beside it"), self.numbers)
        self._grid.setRowStretch(self._row, 1)
        for picker in (self.kind, self.width_, self.form):
            picker.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            picker.setSizeAdjustPolicy(
                Picker.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
            )
            picker.setMinimumContentsLength(8)
            picker.currentIndexChanged.connect(self._again)
        for line in (self.length, self.own):
            line.textChanged.connect(self._again)
        self.title_.chosen.connect(self._again)
        self.colours.toggled.connect(self._again)
        self._fit()

    @property
    def offer(self) -> Offer:
        """The kind that is chosen, and what it would show."""
        return self._offers[self.kind.currentData()]

    @property
    def width_asked(self) -> str:
        """The name of a preset, or the length that was typed."""
        name: str = self.width_.currentData()
        return name or self.length.text().strip()

    @property
    def wrong(self) -> str:
        """Why nothing can be drawn so wide; "" where it can."""
        return saying.wrong_width(self.width_asked)

    @property
    def spec(self) -> Spec:
        """The figure as it is wanted."""
        titles = {"usual": self.offer.spec.title, "own": self.own.text().strip(), "none": ""}
        title = titles[self.title_.choice]
        if self.title_.choice == "own" and not title:
            title = None  # nothing typed yet
        spec = replace(
            self.offer.spec, width=self.width_asked, format=self.form.currentData(), title=title
        )
        usual = coloured(spec.kind) and not self.colours.isChecked()
        return replace(spec, display=Display()) if usual else spec

    # --- inside -----------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Tell where the keyboard is, so that it can be scrolled to."""
        if event.type() == QEvent.Type.FocusIn and isinstance(watched, QWidget):
            self.reached.emit(watched)
        return super().eventFilter(watched, event)

    def _kinds(self, offers: Sequence[Offer], first: str) -> Picker:
        """All kinds; those that cannot be drawn now say what they lack."""
        out = Picker()
        model = out.model()
        assert isinstance(model, QStandardItemModel)
        for at, one in enumerate(offers):
            words = f"{tr(one.label)} ({tr(one.why)})" if one.why else tr(one.label)
            out.addItem(words, one.name)
            out.setItemData(at, words, Qt.ItemDataRole.ToolTipRole)
            model.item(at).setEnabled(not one.why)
        can = [at for at, one in enumerate(offers) if not one.why]
        wanted = out.findData(first)
        out.setCurrentIndex(wanted if wanted >= 0 else next(iter(can), 0))
        metrics = out.fontMetrics()
        longest = max(metrics.horizontalAdvance(out.itemText(at)) for at in range(out.count()))
        out.view().setMinimumWidth(longest + 32)
        return out

    def _widths(self, width: str) -> tuple[Picker, QLineEdit]:
        out, length = Picker(), QLineEdit()
        for name, (size, words) in WIDTHS.items():
            out.addItem(f"{tr(words)}: {size}", name)
        out.addItem(tr("Another width…"), OTHER)
        length.setPlaceholderText(tr("3.25in, 89mm, 12cm or 252pt"))
        length.setAccessibleName(tr("Another width"))
        if width not in WIDTHS and not saying.wrong_width(width):
            length.setText(width)
        out.setCurrentIndex(
            out.findData(
                OTHER if length.text() else width if width in WIDTHS else next(iter(WIDTHS))
            )
        )
        return out, length

    def _add(self, words: str, box: QWidget) -> None:
        if words:
            name = label(words)
            name.setBuddy(box)
            name.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
            self._grid.addWidget(name, self._row, 0)
            if not box.accessibleName():
                box.setAccessibleName(words)
        self._grid.addWidget(box, self._row, 1)
        box.installEventFilter(self)
        self._row += 1

    def _note(self, kind: str = "secondary") -> QLabel:
        out = label(kind=kind, factor=0.92)
        out.setWordWrap(True)
        out.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(out, self._row, 1)
        self._row += 1
        return out

    def _again(self) -> None:
        self._fit()
        self.changed.emit()

    def _fit(self) -> None:
        """What is chosen says what else there is to choose."""
        self.kind.setToolTip(self.kind.currentText())
        typed, own = self.width_.currentData() == OTHER, self.title_.choice == "own"
        self.length.setVisible(typed)
        self.own.setVisible(own)
        empty = typed and not self.length.text().strip()
        self.refused.setText("" if empty else self.wrong)
        self.refused.setVisible(bool(self.refused.text()))
        form = self.form.currentData()
        self.use.setText(tr(saying.USES.get(form, "")))
        maps = coloured(self.offer.spec.kind)
        self.colours.setEnabled(maps)
        shown = self._display if self.colours.isChecked() else Display()
        words = saying.colours(shown, signed(self.offer))
        self.coloured.setText(words if maps else tr("It has colours of its own"))


__all__ = ["Choices"]
