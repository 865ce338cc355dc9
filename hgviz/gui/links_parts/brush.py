"""How links are painted: one pass over what is in view."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPen

from hgviz.gui import ink, theme
from hgviz.gui.language import tr
from hgviz.gui.links_parts.curve import between, in_view
from hgviz.gui.links_parts.inks import Strands
from hgviz.gui.links_parts.plan import COLUMN, HEAD, Plan
from hgviz.gui.links_parts.scene import Scene, amount, label
from hgviz.maps.links import Links, Side

THIN, THICK = 0.8, 6.0  # px
PALE, FULL, BACK = 0.22, 0.92, 0.12  # how opaque weak links are, strong ones, and those behind
NEGATIVE = [3.0, 2.0]  # in widths of a line
EDGE = 8.0  # px beyond what is in view that curves are stroked
ALL = 0.6  # of that, where all queries have links
TAGGED = 8  # heads at most that have their number on a link
MOST = 4000  # links that are painted, the strongest
STEP = 3.0  # px between strands that end at one key
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTRE = Qt.AlignmentFlag.AlignCenter


class Brush:
    """One painting. hot: the side and place under the pointer."""

    def __init__(
        self,
        painter: QPainter,
        scene: Scene,
        plan: Plan,
        hot: tuple[int, int] | None,
        focused: bool,
    ) -> None:
        self.painter, self.scene, self.plan, self.hot = painter, scene, plan, hot
        self.focused = focused
        self.theme = theme.current()
        self.views = plan.shown(0), plan.shown(1)
        self.fonts = {
            (none, bold): theme.mono(0.92 if none else 1.0, 600 if bold else 400)
            for none in (False, True) for bold in (False, True)
        }  # fmt: skip
        self.letter = QFontMetricsF(self.fonts[False, True]).horizontalAdvance("0")

    def paint(self) -> None:
        """Links first, then what they link."""
        painter, plan = self.painter, self.plan
        painter.save()
        painter.setClipRect(QRectF(0, plan.start, 1e5, plan.room))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._links()
        self._texts()
        self._numbers()
        painter.restore()
        self._heads()
        self._stubs()

    # --- links ------------------------------------------------------------------------------------

    def _links(self) -> None:
        scene, plan = self.scene, self.plan
        found: list[tuple[bool, float, float, int, int, int]] = []
        for links in filter(None, (scene.links, scene.hot)):
            peak = max(scene.links.peak, links.peak) or 1.0
            for place, many in links.strands.items():
                for number, strand in enumerate(many):
                    for key, weight in zip(
                        strand.keys.tolist(), strand.weights.tolist(), strict=True
                    ):
                        front = self._in_front(place, key, links)
                        found.append((front, abs(weight) / peak, weight, number, place, key))
        found.sort(key=lambda one: one[:2])
        strands = len(scene.strands)
        step = min(STEP, 14 / max(1, strands))
        for front, part, weight, number, place, key in found[-MOST:]:
            if not self._near(place, key):
                continue
            beside = step * (number - (strands - 1) / 2)
            self._link(plan, place, key, weight, part, scene.strands[number], beside, front)
        if 1 < strands <= TAGGED and scene.chosen:
            self._tags(found, step)

    def _tags(self, found: list[tuple[bool, float, float, int, int, int]], step: float) -> None:
        """The number of every head, on the strongest of its links whose middle is in view."""
        painter, tagged, placed = self.painter, set[int](), list[QRectF]()
        painter.setFont(theme.font(0.85, 600))
        metrics = painter.fontMetrics()
        count = len(self.scene.strands)
        for front, _, _, number, place, key in reversed(found[-MOST:]):
            if number in tagged or not front or not self._near(place, key):
                continue
            a, b = self.plan.end(0, place), self.plan.end(1, key)
            beside = step * (number - (count - 1) / 2)
            end = b + QPointF(0, beside)
            bend = QPointF((b.x() - a.x()) / 2, 0)
            # side by side along curves of one course
            part = 0.35 + 0.4 * (number + 1) / (count + 1)
            at = between((a, a + bend, end - bend, end), part, part)[0]
            name = self.scene.strands[number].name
            box = QRectF(0, 0, metrics.horizontalAdvance(name) + 8, 16)
            box.moveCenter(at)
            inside = self.plan.start < at.y() < self.plan.start + self.plan.room
            if not inside or any(box.intersects(other) for other in placed):
                continue
            tagged.add(number)
            placed.append(box)
            painter.setPen(QPen(self.scene.strands[number].above, 1.2))
            painter.setBrush(self.theme.pane)
            painter.drawRoundedRect(box, 5, 5)
            painter.setPen(self.theme.text)
            painter.drawText(box, CENTRE, name)

    def _in_front(self, place: int, key: int, links: Links) -> bool:
        """Whether a link is one of those looked at; all are where nothing is pointed at."""
        if self.hot is None:
            return links is self.scene.shown
        side, at = self.hot
        if side == 0 and at not in links.strands and self.scene.hot is None:
            return True
        return (place if side == 0 else key) == at

    def _near(self, place: int, key: int) -> bool:
        """Whether any of a link can be in view."""
        a, b = self.plan.along(0, place), self.plan.along(1, key)
        return max(a, b) >= self.plan.start and min(a, b) <= self.plan.start + self.plan.room

    def _link(
        self,
        plan: Plan,
        place: int,
        key: int,
        weight: float,
        part: float,
        strand: Strands,
        beside: float,
        front: bool,
    ) -> None:
        a, b = plan.end(0, place), plan.end(1, key) + QPointF(0, beside)
        curve = in_view(a, b, plan.start - EDGE, plan.start + plan.room + EDGE)
        if curve is None:
            return
        path = QPainterPath(curve[0])
        path.cubicTo(*curve[1:])
        colour = strand.below if weight < 0 else strand.above
        alpha = (PALE + (FULL - PALE) * part) if front else BACK
        alpha *= (0.35 if strand.off else 1.0) * (1.0 if self.scene.chosen else ALL)
        wide = THIN + (THICK - THIN) * part
        # a line of 1 px takes a tenth of the time
        pen = QPen(ink.faint(colour, alpha), wide if wide >= 1.6 else 1.0)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if weight < 0:
            pen.setDashPattern(NEGATIVE)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.setPen(pen)
        self.painter.drawPath(path)

    # --- texts ------------------------------------------------------------------------------------

    def _texts(self) -> None:
        scene, links = self.scene, self.scene.links
        linked = {int(key) for many in scene.shown.strands.values() for one in many
                  for key in one.keys}  # fmt: skip
        for side, of in enumerate((links.queries, links.keys)):
            for place in range(*self.views[side]):
                box = self.plan.box(side, place)
                chosen = side == 0 and place in scene.chosen
                key = side == 1 and place == scene.key
                hot = self.hot == (side, place)
                self._unit(of, place, side, box, chosen, key, hot, side == 1 and place in linked)

    def _unit(
        self, of: Side, place: int, side: int, box: QRectF, chosen: bool, key: bool, hot: bool,
        linked: bool,
    ) -> None:  # fmt: skip
        painter, now = self.painter, self.theme
        inner = box.adjusted(1, 1, -1, -1)
        if chosen or hot:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.mark_tint if chosen else now.hover)
            painter.drawRoundedRect(inner, 4, 4)
        if chosen or key:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(now.mark if chosen else now.text, 1.5))
            painter.drawRoundedRect(inner, 4, 4)
        none = bool(of.special[of.shown[place]])
        bold = chosen or linked
        painter.setFont(self.fonts[none, bold])
        quiet = none or (side == 1 and self.scene.chosen and not linked)
        colour = now.mark_text if chosen else now.secondary if quiet else now.text
        painter.setPen(colour)
        room = box.width() - 8
        text = label(of, place)
        metrics = painter.fontMetrics()
        if 2 * len(text) * self.letter > room and metrics.horizontalAdvance(text) > room:
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(1, int(room)))
        painter.drawText(box.adjusted(4, 0, -4, 0), RIGHT if side == 0 else LEFT, text)

    # --- numbers ----------------------------------------------------------------------------------

    def _numbers(self) -> None:
        scene, plan = self.scene, self.plan
        links = scene.shown
        if not scene.chosen and scene.hot is None:
            links = self._pointed() or links
            if links is scene.links and self.hot is None:
                return
        painter, (first, last) = self.painter, self.views[1]
        painter.setFont(theme.font(0.85))
        painter.setPen(self.theme.text)
        if plan.numbers is not None:
            for place in {int(key) for (strand,) in links.strands.values() for key in strand.keys}:
                if first <= place < last:
                    said = amount(
                        float(links.joint[0, place]), links.signed, 3 if links.values else 2
                    )
                    row = plan.box(1, place)
                    box = QRectF(plan.numbers, row.top(), COLUMN - 6, row.height())
                    painter.drawText(box, RIGHT, said)
        self._into()

    def _pointed(self) -> Links | None:
        """Of all queries in view, the one under the pointer."""
        if self.hot is None or self.hot[0] != 0 or self.hot[1] not in self.scene.links.strands:
            return None
        one = self.scene.links
        strands = one.strands[self.hot[1]]
        joint = np.zeros_like(one.joint)
        for number, strand in enumerate(strands):
            joint[number, strand.keys] = strand.weights
        return Links(one.queries, one.keys, one.heads, one.fuse, {self.hot[1]: strands}, joint,
                     one.signed, one.values)  # fmt: skip

    def _into(self) -> None:
        """Beside the queries, what each gives the key under the pointer, or the one chosen where
        the keyboard is here."""
        chosen = (1, self.scene.key) if self.focused and self.scene.key is not None else None
        hot = self.hot or chosen
        if hot is None or hot[0] != 1 or len(self.scene.strands) != 1:
            return
        painter, plan, key = self.painter, self.plan, hot[1]
        painter.setFont(theme.font(0.85))
        for place, (strand, *_) in self.scene.links.strands.items():
            at = np.flatnonzero(strand.keys == key)
            if not len(at) or not self.views[0][0] <= place < self.views[0][1]:
                continue
            said = amount(float(strand.weights[at[0]]), self.scene.links.signed)
            box = plan.box(0, place)
            wide = painter.fontMetrics().horizontalAdvance(said) + 8
            box = QRectF(box.right() + 3, box.top() + 2, wide, box.height() - 4)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ink.faint(self.theme.pane, 0.9))
            painter.drawRoundedRect(box, 4, 4)
            painter.setPen(self.theme.text)
            painter.drawText(box, CENTRE, said)

    # --- what the columns are ---------------------------------------------------------------------

    def _heads(self) -> None:
        painter, plan, now = self.painter, self.plan, self.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(0.85, 600))
        painter.setPen(now.secondary)
        for side, title in enumerate(self.scene.titles):
            low, high = plan.sides[side]
            box = QRectF(low + 4, 0, max(high - low, 60) - 8, HEAD)
            if side == 0:
                box = QRectF(high - 64, 0, 60, HEAD)
            painter.drawText(box, LEFT if side else RIGHT, title)
        if plan.numbers is not None:
            strand = self.scene.strands[0]
            name = tr("{head} off", head=strand.name) if strand.off else strand.name
            box = QRectF(plan.numbers, 0, COLUMN - 6, HEAD)
            painter.drawText(box, RIGHT, name)
            x = box.right() - painter.fontMetrics().horizontalAdvance(name) - 19
            for colour in (strand.above, strand.below):
                painter.setPen(QPen(colour, 4))
                painter.drawLine(QPointF(x, box.center().y()), QPointF(x + 7, box.center().y()))
                x += 7
        painter.fillRect(QRectF(0, HEAD - 1, painter.viewport().width(), 1), now.line)

    def _stubs(self) -> None:
        """How many links go on beyond what is in view, and to what most."""
        painter, now, keys = self.painter, self.theme, self.scene.links.keys
        said = self.scene.beyond(self.views[1])
        for (box, place), (before, _, count, _) in zip(
            self.plan.stubs(self.scene), said, strict=True
        ):
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(now.pane)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
            arrow = "↑" if before else "↓"
            more = f" +{count - 1}" if count > 1 else ""
            painter.setPen(now.text)
            painter.setFont(theme.font(0.85, 500))
            text = f"{arrow} {label(keys, place)}{more}"
            text = painter.fontMetrics().elidedText(
                text, Qt.TextElideMode.ElideRight, int(box.width()) - 10
            )
            painter.drawText(box, CENTRE, text)
