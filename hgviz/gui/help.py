"""Help: the pages of resources/help, one for each pane, and the guide."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from PySide6 import QtGui
from PySide6.QtCore import QSize, QUrl
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QTextBrowser, QWidget

from hgviz.files import resource
from hgviz.gui.dialogs import Form
from hgviz.gui.language import tr
from hgviz.gui.widgets import Button, hbox, label, make

FIRST = ("welcome", "keys", "files", "sessions")  # pages of the window, before those of panes
GUIDE = "guide"  # its first page; the others are guide/... by their places in docs/
NARROW, WIDE, LIST, ROW = 680, 940, 220, 30  # px: a page, with the list of all, the list
PICTURE = re.compile(r"^ *!\[.*\n?", re.MULTILINE)  # the window itself stands behind the page


def find(topic: str) -> Path | None:
    """The file of a topic; None: there is none."""
    places = [resource(f"help/{topic}.md")]
    if topic == GUIDE or topic.startswith(f"{GUIDE}/"):
        name = f"{topic.partition('/')[2] or 'index'}.md"
        # in a checkout the guide is written, not carried along
        places = [resource(GUIDE) / name, resource("x").parents[1] / "docs" / name]
    return next((one for one in places if one.exists()), None)


def page(topic: str) -> str:
    """The Markdown of a topic; FileNotFoundError for no topic."""
    path = find(topic)
    if path is None:
        raise FileNotFoundError(topic)
    return PICTURE.sub("", path.read_text("utf-8"))


def title(topic: str) -> str:
    """What the page of a topic is headed with."""
    return page(topic).partition("\n")[0].lstrip("# ").strip()


def topics() -> list[str]:
    """All there are: those of the window, those of panes by their titles, and the guide."""
    names = [one.stem for one in resource("help").glob("*.md")]
    panes = sorted((one for one in names if one not in FIRST), key=title)
    known = (*FIRST, *panes, GUIDE)
    return [one for one in known if find(one) is not None]


class Explanation(Form):
    """A page of help, and at its left, if wanted, the list of all pages."""

    def __init__(self, window: QWidget, topic: str, listed: bool = False) -> None:
        super().__init__(window, tr("Help"))
        self.title.hide()
        self.topic = ""
        self.view = make(
            QTextBrowser, openLinks=False, minimumHeight=440, accessibleName=tr("Help page"),
            anchorClicked=self._follow,
        )  # fmt: skip
        self.list = make(QListWidget, accessibleName=tr("Help topics"))
        self.list.setFixedWidth(LIST)
        self.list.setProperty("kind", "topics")
        self.topics = topics()
        for one in self.topics:
            item = QListWidgetItem(title(one), self.list)
            item.setSizeHint(QSize(LIST - 30, ROW))
        self.list.currentRowChanged.connect(self._listed)
        self.said = label("", factor=0.92, kind="secondary")
        self.all = Button(tr("Help topics"), kind="link", clicked=self._unfold)
        self.body.addLayout(hbox(None, self.list, (self.view, 1), spacing=16), 1)
        self.offer(None, self.all, self.said, close="Close")
        self.first = self.list if listed else self.view
        self._show_list(listed)
        self.show_topic(topic)

    def show_topic(self, topic: str, heading: str = "") -> None:
        """Show the page of a topic, from a heading on, named as links name it."""
        if topic != self.topic:
            self.topic = topic
            self.view.setMarkdown(page(topic))
            dress(self.view.document())
            self.view.verticalScrollBar().setValue(0)
            self._mark()
        self.said.setText("")
        if heading:
            self._go_to(heading)

    def _show_list(self, there: bool) -> None:
        self.list.setVisible(there)
        self.all.setVisible(not there)
        self.wide = WIDE if there else NARROW

    def _unfold(self) -> None:
        self._show_list(True)
        self._mark()
        self.list.setFocus()

    def _mark(self) -> None:
        """Select the row of the page that is shown."""
        if self.topic in self.topics:
            self.list.setCurrentRow(self.topics.index(self.topic))

    def _listed(self, row: int) -> None:
        if row >= 0:
            self.show_topic(self.topics[row])

    def _follow(self, link: QUrl) -> None:
        """Other pages open here, the web in its browser."""
        if link.scheme() in ("http", "https"):
            QtGui.QDesktopServices.openUrl(link)
            return
        name = linked(self.topic, link.path())
        if find(name) is not None:
            self.show_topic(name, link.fragment())
        else:
            self.said.setText(tr("{page} is in the documentation of hgviz", page=link.path()))

    def _go_to(self, heading: str) -> None:
        document = self.view.document()
        for block in blocks(document):
            if block.blockFormat().headingLevel() and anchor(block.text()) == heading:
                self.view.setTextCursor(QtGui.QTextCursor(block))
                top = document.documentLayout().blockBoundingRect(block).top()
                self.view.verticalScrollBar().setValue(round(top))
                return


def linked(topic: str, path: str) -> str:
    """The topic that a link of a page leads to: within the guide to its pages, from a page of help
    to others of help, and where there is none of that name to the guide's."""
    if not path:
        return topic
    within = f"{GUIDE}/index" if topic == GUIDE else topic
    name = posixpath.join(posixpath.dirname(within), path.removesuffix(".md"))
    name = posixpath.normpath(name)
    return name if find(name) is not None else f"{GUIDE}/{name}"


def blocks(document: QtGui.QTextDocument) -> list[QtGui.QTextBlock]:
    """The paragraphs and headings of a document."""
    return [document.findBlockByNumber(at) for at in range(document.blockCount())]


def dress(document: QtGui.QTextDocument) -> None:
    """Room around what Markdown says: it sets headings tight upon what they head."""
    document.setDocumentMargin(16)
    cursor = QtGui.QTextCursor(document)
    for block in blocks(document):
        level, form = block.blockFormat().headingLevel(), QtGui.QTextBlockFormat()
        form.setTopMargin(18 if level > 1 else 0)
        form.setBottomMargin(3 if block.textList() else 6)
        form.setLineHeight(125, QtGui.QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setPosition(block.position())
        cursor.mergeBlockFormat(form)
        if level:
            letters = QtGui.QTextCharFormat()
            size = QtGui.QTextFormat.Property.FontSizeAdjustment
            letters.setProperty(size, 2 if level == 1 else 1)
            cursor.select(QtGui.QTextCursor.SelectionType.BlockUnderCursor)
            cursor.mergeCharFormat(letters)


def anchor(heading: str) -> str:
    """How a link names a heading: "Files opened last" is files-opened-last."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
