"""A figure on screen before it is written, at 100 % or fitted."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QStackedLayout, QWidget

from hgviz.core import HgvizError, Step
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.view import Notice
from hgviz.gui.views.busy import BAR_AFTER, Busy

EDGE = 12  # px of ground around the paper
FADED = 0.35  # of a page that another takes the place of
DOTS = 96.0  # logical px per inch at 100 %


@dataclass(frozen=True, slots=True)
class Picture:
    """A page that was drawn. width and height: in points; smallest: its smallest text, in points;
    notes: what was reduced, chosen and left out."""

    image: QImage
    width: float
    height: float
    smallest: float | None
    notes: tuple[str, ...]


class Sheet(QWidget):
    """The paper, at 100 % or as large as there is room."""

    def __init__(self) -> None:
        super().__init__()
        self.picture: Picture | None = None
        self.old = False  # whether another page is on its way
        self._room: QSize | None = None
        self.setAccessibleName(tr("Preview of the figure"))

    def show_picture(self, picture: Picture) -> None:
        """Show a page."""
        self.picture, self.old = picture, False
        self._fit()

    def age(self) -> None:
        """The page is of what was chosen before."""
        self.old = True
        self.update()

    def keep_within(self, room: QSize | None) -> None:
        """Be no larger than this; None: at 100 %."""
        self._room = room
        self._fit()

    @property
    def scale(self) -> float:
        """How large it is shown: 1 for 100 %."""
        page, room = self._page, self._room
        if room is None or page.isEmpty():
            return 1.0
        return min(1.0, (room.width() - 2 * EDGE) / page.width(),
                   (room.height() - 2 * EDGE) / page.height())  # fmt: skip

    @property
    def paper(self) -> QRect:
        """Where the paper lies, in logical px."""
        size = self._page * max(self.scale, 0.01)
        left, top = (max(EDGE, (all_ - one) // 2)
                     for all_, one in ((self.width(), size.width()),
                                       (self.height(), size.height())))  # fmt: skip
        return QRect(left, top, size.width(), size.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the page, at 100 % each pixel of it as one of the screen, and its edge."""
        if self.picture is None:
            return
        box, ratio = self.paper, self.devicePixelRatioF()
        image = QImage(self.picture.image)  # shares its pixels
        if self.scale != 1:
            image = image.scaled(
                box.size() * ratio, Qt.AspectRatioMode.IgnoreAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )  # fmt: skip
        image.setDevicePixelRatio(ratio)
        with QPainter(self) as painter:
            painter.setOpacity(FADED if self.old else 1)
            painter.drawImage(box.topLeft(), image)
            painter.setOpacity(1)
            painter.setPen(QPen(theme.current().edge, 1))
            painter.drawRect(box.adjusted(-1, -1, 0, 0))

    @property
    def _page(self) -> QSize:
        """The size of the page at 100 %, in logical px."""
        if self.picture is None:
            return QSize(0, 0)
        return (self.picture.image.size().toSizeF() / self.devicePixelRatioF()).toSize()

    def _fit(self) -> None:
        if self._room is None:
            self.setMinimumSize(self._page + QSize(2 * EDGE, 2 * EDGE))
        else:
            self.setMinimumSize(0, 0)
        self.updateGeometry()
        self.update()


class PreviewPane(QWidget):
    """The paper on its ground, to be scrolled; what is busy or wrong by the house pattern.

    aged: what is there is of another choice, and what was said of it too. stopped and resumed: what
    somebody wants of the work under way.
    """

    aged = Signal()
    stopped = Signal()
    resumed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.sheet = Sheet()
        self._fitted = False
        self.room = QScrollArea()
        self.room.setProperty("kind", "ground")
        self.room.setFrameShape(QFrame.Shape.NoFrame)
        self.room.setWidgetResizable(True)
        self.room.setWidget(self.sheet)
        self.room.setAccessibleName(tr("Preview"))
        self.room.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.room.viewport().setAutoFillBackground(False)
        self.sheet.setAutoFillBackground(False)
        self.room.viewport().installEventFilter(self)
        self.room.installEventFilter(self)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.room)
        self._notice: Notice | None = None
        self._busy = Busy(self)
        self._busy.stopped.connect(self.stopped)
        self._busy.resumed.connect(self.resumed)
        self._late = QTimer(self, singleShot=True, interval=BAR_AFTER)
        self._late.timeout.connect(self._age)

    @property
    def error(self) -> bool:
        """Whether it says what is wrong."""
        return self._stack.currentWidget() is self._notice and self._notice is not None

    def begin(self) -> None:
        """Something is being drawn; what was drawn before stays meanwhile, faded if for long."""
        self._busy.begin()
        self._late.start()

    def step(self, step: Step) -> None:
        """So much of it is done."""
        self._busy.step(step)

    def pause(self) -> None:
        """Nothing is being drawn any more."""
        self._busy.stop()
        self._late.stop()

    def hold(self) -> None:
        """The work was stopped: what was drawn before stays, faded."""
        self._late.stop()
        self._age()
        self._busy.hold(False)

    def show_picture(self, picture: Picture) -> None:
        """Show a page."""
        self.pause()
        self.sheet.show_picture(picture)
        self._stack.setCurrentWidget(self.room)

    def show_error(self, error: BaseException) -> None:
        """Say what is wrong, in three lines."""
        self.pause()
        if isinstance(error, HgvizError):
            what, *rest = map(tr, error.lines)
        else:
            what, rest = tr("This figure could not be drawn"), [f"{type(error).__name__}: {error}"]
        self._say(Notice.of_error(what.rstrip("."), *rest[:2]))

    def say(self, title: str, words: str) -> None:
        """Say why there is nothing to see."""
        self.pause()
        self._say(Notice(title, words))

    def fit(self, fitted: bool) -> None:
        """Show the whole page, or the page at 100 %."""
        self._fitted = fitted
        self.sheet.keep_within(self.room.viewport().size() if fitted else None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the room there is; scroll with the arrows."""
        if watched is self.room.viewport() and event.type() == QEvent.Type.Resize and self._fitted:
            self.sheet.keep_within(self.room.viewport().size())
        if watched is self.room and event.type() in (
            QEvent.Type.FocusIn, QEvent.Type.FocusOut
        ):  # fmt: skip
            self.update()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the busy bar along the top."""
        super().resizeEvent(event)
        self._busy.place()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ground, and blue around it where it has the keyboard."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            here = self.room.hasFocus()
            painter.setPen(QPen(now.press if here else now.line, 1))
            painter.setBrush(now.window)
            painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)

    def _age(self) -> None:
        """What is there is of another choice: a page fades, an error goes."""
        self.sheet.age()
        self._stack.setCurrentWidget(self.room)
        self.aged.emit()

    def _say(self, notice: Notice) -> None:
        if self._notice is not None:
            self._stack.removeWidget(self._notice)
            self._notice.deleteLater()
        self._notice = notice
        self._stack.addWidget(notice)
        self._stack.setCurrentWidget(notice)


__all__ = ["DOTS", "Picture", "PreviewPane", "Sheet"]
