"""The dialog before a figure is written: the choices at the left, the page at the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from hgviz.core import Task
from hgviz.gui import log, theme
from hgviz.gui.exporting import saying
from hgviz.gui.exporting.choices import Choices
from hgviz.gui.exporting.drafts import Drafts
from hgviz.gui.exporting.offers import Offer, command_for, file_name, name_of, offers
from hgviz.gui.exporting.preview import DOTS, Picture, PreviewPane
from hgviz.gui.help import Explanation
from hgviz.gui.language import tr
from hgviz.gui.overlay import MARGIN, Overlay
from hgviz.gui.widgets import Button, IconButton, Segments, Words, label

if TYPE_CHECKING:
    from hgviz.figures import Spec
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.exporting.drafts import Of
    from hgviz.session import Session

LARGEST = QSize(1180, 860)  # px of the card
LEFT = 344  # px of the choices
WAIT = 60  # ms: what is typed in one go is drawn once
SIZES = (("full", "100 %", ""), ("fit", "Fit", ""))


@dataclass(frozen=True, slots=True)
class Wish:
    """A figure that somebody wants as a file. numbers: also as CSV beside it."""

    spec: Spec
    of: Of
    drafts: Drafts
    name: str
    numbers: bool = False


class ExportDialog(Overlay):
    """What to draw, how wide, in which format; the page as it will be; its command.

    shown: what panes show, the one at hand first. said: what has to be said before anything else,
    such as that the pane at hand has no figure.
    """

    chosen = Signal(object)  # a Wish; it stays open until it is known where to
    kept = Signal(str, str)  # width and format, to begin with the next time

    def __init__(
        self,
        over: QWidget,
        session: Session,
        lanes: Lanes,
        shown: Sequence[Spec] = (),
        said: str = "",
        last: tuple[str, str] = ("neurips", "pdf"),
    ) -> None:
        super().__init__(over)
        self._session, self._lanes = session, lanes
        self._drafts = Drafts(session.facts)
        found = offers(session, shown)
        first = name_of(shown[0]) if shown else ""
        self.choices = Choices(found, first, session.display, *last)
        head = QHBoxLayout()
        head.addWidget(label(tr("Export figure"), factor=1.15, weight=600))
        head.addStretch(1)
        self.help = IconButton("info", tr("What am I looking at?"))
        self.help.clicked.connect(self._explain)
        head.addWidget(self.help)
        self.body.addLayout(head)
        if said:
            note = label(said, kind="secondary")
            note.setWordWrap(True)
            self.body.addWidget(note)
        self.body.addSpacing(4)
        across = QHBoxLayout()
        across.setSpacing(24)
        across.addWidget(self._left())
        across.addLayout(self._right(), 1)
        self.body.addLayout(across, 1)
        self.body.addSpacing(8)
        self.body.addLayout(self._bottom())
        self._wait = QTimer(self, singleShot=True, interval=WAIT)
        self._wait.timeout.connect(self._ask)
        self.choices.changed.connect(self._changed)
        self.closed.connect(self._forget)
        self.preview.stopped.connect(self._stop)
        self.preview.resumed.connect(self._ask)

    def open(self) -> None:
        """Draw the first page at once."""
        super().open()
        self.choices.kind.setFocus(Qt.FocusReason.PopupFocusReason)
        self._ask()

    def place(self) -> None:
        """As large as the window allows: the page wants to be seen."""
        room = QSize(self.width() - 2 * MARGIN, self.height() - 2 * MARGIN)
        size = LARGEST.boundedTo(room)
        self.card.setFixedWidth(size.width())
        left, top = (self.width() - size.width()) // 2, (self.height() - size.height()) // 2
        self.card.setGeometry(left, top, size.width(), size.height())

    # --- its parts --------------------------------------------------------------------------------

    def _left(self) -> QWidget:
        room = QScrollArea()
        room.setFrameShape(QFrame.Shape.NoFrame)
        room.setWidgetResizable(True)
        room.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        room.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        room.setWidget(self.choices)
        self.choices.setAutoFillBackground(False)
        room.viewport().setAutoFillBackground(False)
        room.setFixedWidth(LEFT)
        self.choices.reached.connect(lambda one: room.ensureWidgetVisible(one, 0, 8))
        return room

    def _right(self) -> QVBoxLayout:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(label(tr("Preview"), weight=600))
        head.addStretch(1)
        self.size_ = Segments([(name, tr(words), icon) for name, words, icon in SIZES])
        self.size_.setAccessibleName(tr("Size of the preview"))
        self.size_.chosen.connect(self._sized)
        head.addWidget(self.size_)
        self.preview = PreviewPane()
        self.preview.aged.connect(self._age)
        self.measures = Words(kind="secondary")
        self.measures.setAccessibleName(tr("Size of the figure"))
        self.sign = QLabel()
        self.sign.setPixmap(theme.pixmap("warning", 16, theme.current().warning))
        self.warning = label(kind="warning", factor=0.92)
        self.notes = label(kind="secondary", factor=0.92)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.warning, 1)
        said = QWidget()  # keeps its room, so that the page stays where it is
        said.setMinimumHeight(2 * self.warning.fontMetrics().height())
        lines = QVBoxLayout(said)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        lines.addLayout(row)
        lines.addWidget(self.notes)
        lines.addStretch(1)
        for one in (self.warning, self.notes):
            one.setWordWrap(True)
            one.setAlignment(Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout()
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self.preview, 1)
        column.addWidget(self.measures)
        column.addWidget(said)
        self._say_of(None)
        return column

    def _bottom(self) -> QHBoxLayout:
        self.copy = Button(tr("Copy command"), "copy")
        self.copy.setToolTip(tr("Copy the command that draws this figure again"))
        self.copy.clicked.connect(self._copy)
        self.told = Words(factor=0.92, kind="secondary")
        self.default = Button(tr("Export…"), "export", kind="filled")
        self.default.clicked.connect(self._accept)
        cancel = Button(tr("Cancel"))
        cancel.clicked.connect(self.finish)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.copy)
        row.addWidget(self.told, 1)
        row.addWidget(self.default)
        row.addWidget(cancel)
        return row

    # --- the page ---------------------------------------------------------------------------------

    def _changed(self) -> None:
        self.told.say("")
        self._wait.start()

    def _ask(self) -> None:
        """Have the page drawn; what is under way is of what was wanted before."""
        self._wait.stop()
        offer, wrong = self.choices.offer, self.choices.wrong
        self.default.setEnabled(not offer.why and not wrong)
        self.copy.setEnabled(not offer.why and not wrong)
        if offer.why or wrong:
            self._lanes.files.cancel(self._key)
        if offer.why:
            self._nothing(offer)
        if offer.why or wrong:
            self.preview.pause()
            self._say_of(None)
            return
        spec = self.choices.spec
        self.preview.begin()
        dots = DOTS * self.devicePixelRatioF()
        self._lanes.files.submit(
            self._key, tr("Preview"), _drawn(self._drafts, spec, offer.of, dots),
            on_step=self.preview.step, on_done=partial(self._show, spec),
            on_error=self._failed, post=self._lanes.bridge.post,
        )  # fmt: skip

    def _stop(self) -> None:
        """Give up what is being drawn; the file can be written all the same."""
        self._lanes.files.cancel(self._key)
        self.preview.hold()

    def _show(self, spec: Spec, picture: Picture) -> None:
        self.preview.show_picture(picture)
        self.preview.sheet.setAccessibleDescription(tr(self.choices.offer.label))
        self.default.setEnabled(True)
        self._say_of(picture, spec.width)

    def _failed(self, error: BaseException) -> None:
        log.record(error)
        self.preview.show_error(error)
        self.default.setEnabled(False)
        self._say_of(None)

    def _age(self) -> None:
        """Say no more of a page that another takes the place of."""
        self._say_of(None)

    def _nothing(self, offer: Offer) -> None:
        why = tr(offer.why)
        self.preview.say(tr("{name}: not yet", name=tr(offer.label)), why[:1].upper() + why[1:])

    def _say_of(self, picture: Picture | None, width: str = "") -> None:
        """What there is to know of a page, None for no page."""
        self.measures.say("" if picture is None else saying.measures(picture, width))
        for box, words in ((self.warning, saying.warning), (self.notes, saying.notes)):
            box.setText("" if picture is None else words(picture))
            box.setVisible(bool(box.text()))
        self.sign.setVisible(bool(self.warning.text()))

    def _sized(self, name: str) -> None:
        self.preview.fit(name == "fit")

    @property
    def _key(self) -> str:
        return f"preview {id(self)}"

    def _forget(self) -> None:
        self._wait.stop()
        self._lanes.files.cancel(self._key)

    def _explain(self) -> None:
        Explanation(self.window(), "export").open()

    # --- what people do ---------------------------------------------------------------------------

    def _copy(self) -> None:
        spec = self.choices.spec
        name = file_name(self._session, spec)
        command = command_for(self.choices.offer.of, spec, name)
        QGuiApplication.clipboard().setText(command.words)
        self.told.say(saying.copied(command))
        self.kept.emit(spec.width, spec.format)

    def _accept(self) -> None:
        self._wait.stop()
        spec, offer = self.choices.spec, self.choices.offer
        wish = Wish(
            spec, offer.of, self._drafts, file_name(self._session, spec),
            self.choices.numbers.isChecked(),
        )  # fmt: skip
        self.kept.emit(spec.width, spec.format)
        self.chosen.emit(wish)


def _drawn(drafts: Drafts, spec: Spec, of: Of, dots: float) -> Task[Picture]:
    """Return the page as the screen shows it, read from its PNG in the lane."""
    page = yield from drafts.preview(spec, of, dots)
    image = QImage.fromData(page.png)
    return Picture(image, page.width, page.height, page.smallest, page.notes)
