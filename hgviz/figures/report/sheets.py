"""A report on sheets of A4: one PDF, its text and lines as text and lines."""

from __future__ import annotations

from io import BytesIO

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from hgviz.figures import provenance
from hgviz.figures.content import document
from hgviz.figures.content.document import Block, Document, Picture, Table
from hgviz.figures.paper import style
from hgviz.figures.paper.labels import elide, visible, wrapped
from hgviz.figures.paper.page import Page
from hgviz.figures.pictures import composed
from hgviz.figures.spec import POINTS
from hgviz.palettes import PAPER

WIDTH, HEIGHT = 595.28, 841.89  # A4, in points
MARGIN, FOOT = 54.0, 44.0
ROOM = WIDTH - 2 * MARGIN
TITLE, HEAD, BODY, CELL = 16.0, 11.0, 8.5, 7.0
LEADING = 1.42
GAP = 9.0  # between columns of a table
LINES = 4  # of a cell, at most


def written(report: Document, record: dict[str, str]) -> bytes:
    """The file; record: what it says of where it comes from."""
    buffer = BytesIO()
    with PdfPages(buffer, metadata=provenance.metadata("pdf", record)) as pages:
        flow = _Flow(pages, report.title)
        flow.lines(report.title, TITLE, bold=True)
        flow.down(2)
        flow.lines(report.subtitle, BODY, colour=PAPER.secondary)
        flow.down(8)
        for at, block in enumerate(report.blocks):
            flow.block(block, report.blocks[at + 1] if at + 1 < len(report.blocks) else None)
        flow.down(14)
        flow.lines(f"{record['program']} · {record['command']}", CELL, colour=PAPER.secondary)
        flow.end()
    return buffer.getvalue()


class _Flow:
    """Blocks below each other, on as many sheets as they take."""

    def __init__(self, pages: PdfPages, title: str) -> None:
        self._pages, self._title, self._number = pages, title, 0
        self._open()

    def block(self, block: Block, following: Block | None) -> None:
        """One block; a heading stays with the beginning of what follows."""
        match block:
            case document.Heading(words):
                self.need(60 + (self._height(following) if following else 0))
                self.down(14)
                self.lines(words, HEAD, bold=True)
                self.down(3)
            case document.Words(words, quiet):
                self.lines(words, BODY, colour=PAPER.secondary if quiet else PAPER.text)
                self.down(5)
            case document.Points(points, quiet):
                colour, size = (PAPER.secondary, CELL + 0.5) if quiet else (PAPER.text, BODY)
                for one in points:
                    self.lines(one, size, colour=colour, indent=11.0, bullet="•")
                    self.down(1 if quiet else 2)
                self.down(4)
            case document.Table():
                self._table(block)
            case document.Picture():
                self._picture(block)

    def lines(
        self,
        words: str,
        size: float,
        *,
        bold: bool = False,
        colour: str = PAPER.text,
        indent: float = 0.0,
        bullet: str = "",
    ) -> None:
        """A text in lines as wide as the sheet allows."""
        for number, line in enumerate(wrapped(words, ROOM - indent, size, bold)):
            self.need(size * LEADING)
            self._y += size * LEADING
            if bullet and not number:
                self._sheet.text(MARGIN, self._y, bullet, size=size, colour=colour)
            self._sheet.text(MARGIN + indent, self._y, line, size=size, colour=colour, bold=bold)

    def down(self, points: float) -> None:
        """Leave some room."""
        self._y += points

    def need(self, points: float) -> None:
        """Begin a new sheet where there is less room than that."""
        if self._y + points > HEIGHT - MARGIN and self._y > MARGIN:
            self.end()
            self._open()

    def end(self) -> None:
        """Write the sheet."""
        number = str(self._number)
        y = HEIGHT - FOOT + 12
        self._sheet.text(WIDTH - MARGIN, y, number, size=CELL, across="right",
                         colour=PAPER.secondary)  # fmt: skip
        if self._number > 1:
            words = elide(visible(self._title, space=" "), ROOM - 30, CELL)
            self._sheet.text(MARGIN, y, words, size=CELL, colour=PAPER.secondary)
        self._pages.savefig(self._figure)  # type: ignore[no-untyped-call]

    def _open(self) -> None:
        self._number += 1
        self._figure = Figure(figsize=(WIDTH / POINTS, HEIGHT / POINTS), dpi=POINTS)
        self._sheet = Page(WIDTH, self._figure)
        self._sheet.close(HEIGHT)
        self._sheet.put(0, 0, WIDTH, HEIGHT)
        self._y = MARGIN

    def _height(self, block: Block) -> float:
        """About how much of a block must stand below its heading."""
        return 190.0 if isinstance(block, Picture) else 30.0

    def _picture(self, picture: Picture) -> None:
        caption = wrapped(picture.caption, ROOM, CELL + 0.5)
        below = len(caption) * (CELL + 0.5) * LEADING + 8
        alone = composed(picture, ROOM)  # to see how high it is
        self.need(alone.height + below + 6)
        self.down(6)
        page = Page(ROOM, self._figure)
        composed(picture, ROOM, page)
        page.put(MARGIN, self._y, WIDTH, HEIGHT)
        self._y += page.height + 2
        self.lines(picture.caption, CELL + 0.5, colour=PAPER.secondary)
        self.down(8)

    # --- tables -----------------------------------------------------------------------------------

    def _table(self, table: Table) -> None:
        widths = _widths(table)
        self.down(4)
        head = [wrapped(one, width, CELL, True) for one, width in
                zip(table.columns, widths, strict=True)]  # fmt: skip
        rows = [
            [
                wrapped(one, width, CELL)[:LINES] if at in table.text else [one]
                for at, (one, width) in enumerate(zip(row, widths, strict=True))
            ]
            for row in table.rows
        ]
        self.need(60)
        self._row(table, head, widths, bold=True)
        for row in rows:
            if self._y + _row_height(row) > HEIGHT - MARGIN:
                self.need(HEIGHT)
                self._row(table, head, widths, bold=True)
            self._row(table, row, widths)
        if table.caption:
            self.down(3)
            self.lines(table.caption, CELL + 0.5, colour=PAPER.secondary)
        self.down(8)

    def _row(
        self, table: Table, row: list[list[str]], widths: list[float], bold: bool = False
    ) -> None:
        height = _row_height(row)
        x = MARGIN
        deep = max(map(len, row))
        for at, (lines, width) in enumerate(zip(row, widths, strict=True)):
            text = at in table.text
            first = deep - len(lines) if bold else 0
            for number, line in enumerate(lines, first):
                y = self._y + (number + 1) * CELL * 1.3
                self._sheet.text(
                    x if text else x + width, y, line, size=CELL, bold=bold,
                    across="left" if text else "right",
                    colour=PAPER.secondary if bold else PAPER.text,
                )  # fmt: skip
            x += width + GAP
        self._y += height
        ends = [(MARGIN, self._y), (MARGIN + ROOM, self._y)]
        self._sheet.lines([ends], PAPER.secondary if bold else PAPER.line, 0.5 if bold else 0.35)


def _row_height(row: list[list[str]]) -> float:
    return max(map(len, row)) * CELL * 1.3 + 4


def _widths(table: Table) -> list[float]:
    """Numbers have the room they need, words share what is left."""
    natural = []
    for at, name in enumerate(table.columns):
        cells = [style.extent(row[at], CELL) for row in table.rows]
        words = max((style.extent(one, CELL, True) for one in name.split(" ")), default=0.0)
        natural.append(max([words, *cells]) + 1)
    room = ROOM - GAP * (len(natural) - 1)
    spare = room - sum(natural)
    if spare >= 0:  # headings first, then the words
        for at, name in enumerate(table.columns):
            wanted = min(spare, max(0.0, style.extent(name, CELL, True) + 1 - natural[at]))
            natural[at] += wanted
            spare -= wanted
        share = spare / max(len(natural), 1)
        return [one + share for one in natural]
    texts = sorted(table.text, key=lambda at: natural[at])
    left = room - sum(one for at, one in enumerate(natural) if at not in table.text)
    for number, at in enumerate(texts):
        natural[at] = min(natural[at], max(left / (len(texts) - number), 20.0))
        left -= natural[at]
    return natural
