"""The card that floats beside a head under the pointer: its name, what it does, two numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from hgviz.core import HeadId
from hgviz.gui.language import tr
from hgviz.gui.views import words
from hgviz.gui.widgets import label

if TYPE_CHECKING:
    from hgviz.gui.atlas import Thumb
    from hgviz.session import Session

OFF = 12  # px between the card and what it speaks about
DOES = {
    "down": "how positions are pooled",
    "up": "how they are spread again",
    "cross": "how the target looks at the source",
}


class HeadCard(QFrame):
    """A quiet card; the pointer goes through it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kind", "float")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._name = label(weight=600)
        self._level = label(factor=0.92, kind="chip")
        self._role = label()
        self._numbers = label(factor=0.92, kind="secondary")
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(3)
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self._name)
        top.addWidget(self._level)
        top.addStretch(1)
        column.addLayout(top)
        column.addWidget(self._role)
        column.addWidget(self._numbers)
        self.hide()

    def tell(self, session: Session, head: HeadId, small: Thumb | None) -> None:
        """Say what is known about a head."""
        spec = session.spec
        if spec is None:
            return
        layer = spec.layers[head.layer]
        facts = session.facts.get(head)
        self._name.setText(tr("Head {head}", head=head))
        self._level.setText(words.ends(spec, head.layer))
        self._level.setVisible(bool(self._level.text()))
        self._role.setText(_role(layer.role, small, facts.role if facts is not None else ""))
        self._numbers.setText(_numbers(facts.metrics if facts is not None else {}, small))
        for one in (self._role, self._numbers):
            one.setVisible(bool(one.text()))
        self.adjustSize()

    def stand_by(self, where: QRect) -> None:
        """Beside a place of the parent, inside it, never over the place."""
        room = self.parentWidget().size()
        x = where.right() + OFF
        if x + self.width() > room.width():
            x = where.left() - OFF - self.width()
        y = min(max(4, where.top()), room.height() - self.height() - 4)
        if x < 4:
            x = 4
            y = where.bottom() + OFF
            if y + self.height() > room.height():
                y = where.top() - OFF - self.height()
        self.move(x, max(4, y))
        self.show()
        self.raise_()


def _role(role: str, small: Thumb | None, said: str) -> str:
    if small is None:
        return tr("not captured yet")
    if small.kind == "only":
        return tr("one key, always 1")
    return tr(said or DOES.get(role, ""))


def _numbers(metrics: dict[str, float], small: Thumb | None) -> str:
    if small is None or small.kind == "only":
        return ""
    parts = [tr("focus {value}", value=words.weight(metrics.get("focus", small.focus)))]
    if "entropy" in metrics:
        parts.append(tr("entropy {value} nats", value=words.weight(metrics["entropy"])))
    return " · ".join(parts)
