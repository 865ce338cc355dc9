"""The dock of the clearest heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QImage, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QVBoxLayout

from hgviz import palettes
from hgviz.analysis.heads import HeadFacts, worth_a_look
from hgviz.core import Capture, HeadId, Step, Task
from hgviz.gui import atlas, theme
from hgviz.gui.heads_parts.metrics import Cited, explanation
from hgviz.gui.language import tr
from hgviz.gui.panels_parts.heads import MEASURING
from hgviz.gui.view import View
from hgviz.gui.views import words
from hgviz.gui.views.choosing import CAPTURE
from hgviz.gui.widgets import Button, tip

if TYPE_CHECKING:
    from hgviz.session import Session

WORTH = 4
THUMB = 36  # px
VALUE = 44  # px: the score
SCORE = "The number is the share of a row's weight where the role says, averaged over rows"
SHARE = Cited("mean_i Σ_{j ∈ role} |a_ij| / Σ_j |a_ij|", "Voita et al. 2019; heads.md")


@dataclass(frozen=True, slots=True)
class Worth:
    """A head worth a look, with its small picture (height, width, 4)."""

    facts: HeadFacts
    level: str
    small: atlas.Pixels | None


class WorthPanel(View):
    """The clearest heads of different roles; a click opens one, a table holds them all."""

    title = "Heads worth a look"
    topic = "worth"
    icon = "table"
    figureless = "It is a list of heads: Hourglass draws all of them"
    needs = ("facts", "capture", "display", "dark", "selection")
    empty = ("No head stands out yet", "The clearest heads are listed once they are measured.")

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[WorthRow] = []
        self._column = QVBoxLayout(self.content)
        self._column.setContentsMargins(8, 6, 8, 6)
        self._column.setSpacing(1)
        self._all = Button(tr("All heads in a table"), "table", kind="link", weight=400)
        self._all.clicked.connect(self._ask_for_table)
        for _ in range(WORTH):
            row = WorthRow()
            row.clicked.connect(self._clicked)
            row.hide()
            self.rows.append(row)
            self._column.addWidget(row)
        self._column.addWidget(self._all, 0, Qt.AlignmentFlag.AlignLeft)
        self._column.addStretch(1)
        self._drawn_for: tuple[object, ...] = ()

    def request(self, session: Session) -> Task[tuple[Worth, ...]] | None:
        """The heads and their small maps."""
        self.empty_actions = CAPTURE if session.capture is None else MEASURING
        if session.capture is None or not session.facts:
            return None
        size = round(THUMB * self.devicePixelRatioF())
        return _worth(session.capture, session.facts, session.display.palette, size)

    def noticed(self, name: str) -> None:
        """Mark the chosen one at once."""
        if name == "selection" and self.session is not None:
            for row in self.rows:
                row.mark(self.session.selection.head_id)

    def draw(self, result: tuple[Worth, ...]) -> None:
        """List them."""
        for row, one in zip(self.rows, (*result, *[None] * WORTH), strict=False):
            row.setVisible(one is not None)
            if one is not None:
                row.show_head(one)
        self.noticed("selection")

    def as_table(self) -> list[list[str]] | None:
        """The heads that are listed: level, role, and the share of weight that goes there."""
        known = [one.worth for one in self.rows if one.worth is not None and not one.isHidden()]
        heads = [tr(one) for one in ("Head", "Level", "Role", "Share")]
        return [heads] + [
            [str(one.facts.head), one.level, tr(one.facts.role), repr(float(one.facts.score))]
            for one in known
        ] if known else None  # fmt: skip

    def _ask_for_table(self) -> None:
        self.asked.emit("table")

    def _clicked(self) -> None:
        row = self.sender()
        if isinstance(row, WorthRow) and row.head is not None and self.session is not None:
            self.session.select(layer=row.head.layer, head=row.head.head)


class WorthRow(QAbstractButton):
    """Thumbnail, name, level, role and score, 44 px high; marked when it is the chosen head."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(44)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.head: HeadId | None = None
        self.worth: Worth | None = None
        self._role = ""
        self._chosen = False
        self._image = QImage()

    def show_head(self, worth: Worth) -> None:
        """Show another head."""
        self.worth, self.head = worth, worth.facts.head
        self._image = QImage()  # the one of before borrowed memory that is gone
        if worth.small is not None:
            high, wide = worth.small.shape[:2]
            form = QImage.Format.Format_ARGB32_Premultiplied
            self._image = QImage(worth.small.data, wide, high, 4 * wide, form)
        self._role = tr(worth.facts.role)
        name = tr("Head {head}", head=self.head)
        self.setAccessibleName(f"{name}, {self._role}, {words.weight(worth.facts.score)}")
        self.setToolTip(tip(f"{tr(worth.facts.evidence)}\n{explanation(tr(SCORE), SHARE)}"))
        self.update()

    def mark(self, chosen: HeadId) -> None:
        """Whether it is the chosen head."""
        self._chosen = chosen == self.head
        self.setAccessibleDescription(tr("chosen") if self._chosen else "")
        self.update()

    def sizeHint(self) -> QSize:
        """As wide as the dock."""
        return QSize(240, 44)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the row."""
        if self.worth is None:
            return
        now, facts = theme.current(), self.worth.facts
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            if self._chosen or self.underMouse():
                painter.setBrush(now.mark_tint if self._chosen else now.hover)
                painter.drawRoundedRect(QRectF(self.rect()), 6, 6)
            box = QRectF(8.5, 4.5, THUMB - 1, THUMB - 1)
            painter.setBrush(now.pane)
            painter.drawRect(box)
            if not self._image.isNull():
                painter.drawImage(box, self._image)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 3, 3)
            x = box.right() + 12
            bold = theme.font(weight=600)
            name = str(facts.head)
            side = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            painter.setFont(bold)
            painter.setPen(now.mark_text if self._chosen else now.text)
            painter.drawText(QRectF(x, 2, 90, 20), side, name)
            self._chip(painter, x + QFontMetricsF(bold).horizontalAdvance(name) + 10)
            room = self.width() - x - VALUE - 12
            small = theme.font(0.92)
            role = QFontMetricsF(small).elidedText(self._role, Qt.TextElideMode.ElideRight, room)
            painter.setFont(small)
            painter.setPen(now.text if self._chosen else now.secondary)
            painter.drawText(QRectF(x, 22, room, 18), side, role)
            painter.setFont(bold)
            painter.setPen(now.text)
            right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(
                QRectF(self.width() - VALUE - 8, 22, VALUE, 18), right, words.weight(facts.score)
            )
            if self.hasFocus():
                painter.setPen(QPen(now.press, 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)

    def _chip(self, painter: QPainter, x: float) -> None:
        assert self.worth is not None
        if not self.worth.level:
            return
        now, font = theme.current(), theme.font(0.85)
        wide = QFontMetricsF(font).horizontalAdvance(self.worth.level) + 14
        box = QRectF(x, 4, wide, 17)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.pane if self._chosen else now.hover)
        painter.drawRoundedRect(box, 8.5, 8.5)
        painter.setFont(font)
        painter.setPen(now.secondary)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.worth.level)


def _worth(
    capture: Capture, facts: Mapping[HeadId, HeadFacts], palette: str, size: int
) -> Task[tuple[Worth, ...]]:
    out = []
    for number, one in enumerate(worth_a_look(facts, WORTH)):
        yield Step(number, WORTH, "drawing heads")
        layer, known = capture.spec.layers[one.head.layer], capture.maps[one.head.layer]
        small = None
        if known is not None:
            thumb = atlas.thumb(capture, known, layer, one.head.head)
            table = palettes.colours(palettes.suited(palette, thumb.signed), theme.current().dark)
            small = atlas.painted(thumb, size, size, atlas.largest(thumb), table)
        out.append(Worth(one, words.ends(capture.spec, one.head.layer), small))
    return tuple(out)
