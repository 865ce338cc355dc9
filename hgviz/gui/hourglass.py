"""The picture of a model: every layer with the maps of its heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QPoint, QRectF, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget

from hgviz import palettes, tasks
from hgviz.analysis.metrics import METRICS, applicable
from hgviz.analysis.roles import HeadRole
from hgviz.core import Capture, HeadId, Layer, Map, ModelSpec, progress
from hgviz.gui import sentences, theme
from hgviz.gui.atlas import Atlas, Thumb, compose, thumb
from hgviz.gui.headgrid import HeadCard, HeadGrid, HourglassScene
from hgviz.gui.language import tr
from hgviz.gui.layouts import FLAT
from hgviz.gui.sentences import explained, measured, metric_name
from hgviz.gui.tables import Table
from hgviz.gui.view import View
from hgviz.gui.widgets import PaneHead, Picker, hbox, label, tip, vbox
from hgviz.tasks.heads import role_sentence

if TYPE_CHECKING:
    from hgviz.figures import Spec
    from hgviz.session import Session

# --- shades ---------------------------------------------------------------------------------------


MAPS = "Maps"
BAR, HIGH = 40, 10  # px of the ramp
ROOMY = 560  # px of pane from which on there is room for the ramp
NARROW = 400  # px of pane below which the choice is in the menu alone
WIDEST = 150  # px of the list of metrics
TITLE = "Colour heads by"


@dataclass(frozen=True, slots=True)
class MetricShades:
    """A metric of all heads that have it; label: what it is called."""

    metric: str
    label: str
    values: Mapping[HeadId, float]
    missing: int

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest."""
        return min(self.values.values()), max(self.values.values())

    def shares(self) -> dict[HeadId, float]:
        """Return each head's value as a share: 0 for the smallest, 1 for the largest."""
        low, high = self.ends
        over = high - low
        return {head: (v - low) / over if over else 0.5 for head, v in self.values.items()}

    def sentence(self, ends: bool = True) -> str:
        """Such as "0.09 to 1.00; clear: 24 without it"; ends False: the range is seen beside it."""
        low, high = (measured(self.metric, one) for one in self.ends)
        said = [tr("{low} to {high}", low=low, high=high)] if ends else []
        if self.missing:
            said.append(tr("clear: {n:,} without it", n=self.missing))
        return "; ".join(said)


def shades_of(facts: Mapping[HeadId, HeadRole], metric: str, unit: str) -> MetricShades | None:
    """The numbers of a metric; None for none, or where no head has it."""
    values = {head: one.metrics[metric] for head, one in facts.items() if metric in one.metrics}
    if not values:
        return None
    return MetricShades(metric, metric_name(metric, unit), values, len(facts) - len(values))


class MetricBar(QWidget):
    """The list of metrics and, where there is room, the ramp of colours with its ends."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.picker = Picker()
        self.picker.setAccessibleName(tr(TITLE))
        self.picker.setToolTip(tr(TITLE))
        self.picker.addItem(tr(MAPS), "")
        self.picker.activated.connect(lambda at: self.chosen.emit(self.picker.itemData(at)))
        self.ramp = Ramp()
        hbox(self, self.ramp, self.picker, spacing=8)
        self._offered: tuple[tuple[str, str], ...] = (("", tr(MAPS)),)
        self.hide()

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """The names that can be chosen, with what they are called."""
        return self._offered

    def show_metrics(
        self, facts: Mapping[HeadId, HeadRole], unit: str, now: MetricShades | None, palette: str
    ) -> None:
        """Offer what says something of these heads; mark what colours them."""
        names = applicable(one.metrics for one in facts.values())
        offered = (("", tr(MAPS)), *((name, metric_name(name, unit)) for name in names))
        with QSignalBlocker(self.picker):
            if offered != self._offered:
                self._offered = offered
                self.picker.clear()
                for name, title in offered:
                    self.picker.addItem(title, name)
                    why = explained(name, unit) if name else ""
                    self.picker.setItemData(
                        self.picker.count() - 1, why, Qt.ItemDataRole.ToolTipRole
                    )
            at = self.picker.findData(now.metric if now is not None else "")
            self.picker.setCurrentIndex(max(0, at))
        told = tr(TITLE)
        if now is not None:
            chosen = tr("Colour heads by: {metric}", metric=f"{now.label}, {now.sentence()}")
            told = "\n".join([chosen, explained(now.metric, unit)])
        self.picker.setToolTip(told)
        said = self.picker.fontMetrics().horizontalAdvance(self.picker.currentText())
        self.picker.setFixedWidth(min(WIDEST, said + 46))
        self.ramp.show_shades(now, palette)
        self.respond()

    @property
    def roomy(self) -> bool:
        """Whether the pane has room for the ramp, too."""
        return self._room >= ROOMY

    @property
    def _room(self) -> int:
        pane = self.parentWidget()
        return pane.width() if pane is not None else 0

    def respond(self) -> None:
        """As much as the pane has room for."""
        self.setVisible(len(self._offered) > 1 and self._room >= NARROW)
        self.ramp.setVisible(self.ramp.shades is not None and self.roomy)


class Ramp(QWidget):
    """The colours of a palette from the smallest number to the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(28)
        self.setMinimumWidth(BAR)
        self.shades: MetricShades | None = None
        self._palette = ""

    def show_shades(self, shades: MetricShades | None, palette: str) -> None:
        """Another metric or palette."""
        self.shades, self._palette = shades, palette
        if shades is not None:
            low, high = self._ends()
            metrics = self.fontMetrics()
            self.setFixedWidth(BAR + metrics.horizontalAdvance(low + high) + 12)
            self.setAccessibleName(f"{shades.label}, {shades.sentence()}")
        self.update()

    def _ends(self) -> tuple[str, str]:
        assert self.shades is not None  # asked for only where there are some
        low, high = (measured(self.shades.metric, one) for one in self.shades.ends)
        return low, high

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.shades is None:
            return
        now = theme.current()
        table = palettes.colours(palettes.matching_palette(self._palette, False), now.dark)
        row = np.ascontiguousarray(table[None])
        low, high = self._ends()
        side = Qt.AlignmentFlag.AlignVCenter
        with QPainter(self) as painter:
            painter.setFont(theme.font(0.85))
            painter.setPen(now.secondary)
            box = QRectF(self.rect())
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | side, low)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | side, high)
            metrics = painter.fontMetrics()
            left = metrics.horizontalAdvance(low) + 6
            right = self.width() - metrics.horizontalAdvance(high) - 6
            image = QImage(row.data, 256, 1, 768, QImage.Format.Format_RGB888)
            top = (self.height() - HIGH) / 2
            painter.drawImage(QRectF(left, top, right - left, HIGH), image)


# --- hourglass ------------------------------------------------------------------------------------


NAMED = 16  # layers without a map that a tooltip lists
GHOST = 128  # positions of a model that no text was captured with yet


@dataclass(frozen=True, slots=True)
class HourglassData:
    """What a request found: the small maps for later, and the atlas of this size and theme."""

    thumbs: dict[HeadId, Thumb]
    source: dict[int, Map]
    atlas: Atlas
    asked: tuple[Any, ...]


class HourglassView(View):
    """All heads of a model as one picture whose waist is where the text is shortest."""

    title = "Hourglass"
    topic = "hourglass"
    needs = ("spec", "capture", "display", "dark", "shade", "facts", "roles", "off")
    watches = ("selection", "opened", "hover", "work", "model")
    empty = (
        "Open a model to look inside",
        "Drop a checkpoint folder here, or start with the sample: a small Hourglass that reads "
        "text letter by letter.",
    )
    empty_actions = (("open_sample", "Open sample model"), ("open_folder", "Open a checkpoint…"))

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.head = PaneHead(tr(self.title))
        self.export = self.export_button()
        self.shade = MetricBar()
        self.shade.chosen.connect(self.shaded)
        self.head.add(self.shade, self.export)
        self.glass = HeadGrid()
        self._card = HeadCard(self.glass.viewport())
        self._picture: HourglassData | None = None
        column = vbox(self.content, self.head, (self.glass, 1))
        self.mapless = label(factor=0.92, kind="secondary", wrap=True)
        self.mapless.setContentsMargins(16, 4, 16, 8)
        self.mapless.hide()
        column.addWidget(self.mapless)
        self.glass.picked.connect(self.select_head)
        self.glass.hovered.connect(self._hover)
        self.glass.asked_menu.connect(self._menu)
        self.glass.rearranged.connect(self.refresh)

    # --- the view ---------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], HourglassData] | None:
        """The small maps of every layer that is there, as one image."""
        if session.spec is None:
            return None
        self._stage(session)
        if session.capture is None:
            return lambda: None
        sizes, shades = self.glass.sizes(), self._shades(session)
        shares = shades.shares() if shades else None
        asked = (
            session.display.palette, theme.current().dark, session.display.shared,
            self._flat, tuple(sorted(sizes.items())), shares,
        )  # fmt: skip
        return partial(_pictures, session.capture, sizes, asked, self._picture)

    def draw(self, result: HourglassData | None) -> None:
        """Show the atlas, unless it is the one on screen already."""
        if result is None:
            self._picture = None
            self.glass.show_atlas(Atlas.empty())
        elif self._picture is None or result.atlas is not self._picture.atlas:
            self._picture = result
            self.glass.show_atlas(result.atlas)

    def noticed(self, name: str) -> None:
        """Move the frames at once; the pictures follow."""
        if name in ("selection", "opened", "hover"):
            self._mark()
        elif self.session is not None and self.session.spec is not None:
            self._stage(self.session)

    def figure(self, session: Session) -> Spec | None:
        """The wall of all heads."""
        if session.capture is None:
            return None
        from hgviz.figures import Spec

        return Spec(kind="wall", selection=session.selection, display=session.display)

    def as_table(self) -> list[list[str]] | None:
        """One row for each head, with the numbers of its card and of its colour."""
        thumbs = self._picture.thumbs if self._picture is not None else {}
        return head_table(self.session, thumbs) if self.session is not None else None

    export_wanted = Signal()  # the map of the head that is chosen
    shaded = Signal(str)  # the metric that is to colour heads, "" for their maps

    # --- inside -----------------------------------------------------------------------------------

    def _shades(self, session: Session) -> MetricShades | None:
        """The numbers that colour heads, None where their maps are shown."""
        facts = session.roles.heads if session.roles is not None else session.facts
        unit = session.capture.main.unit if session.capture is not None else "letter"
        found = shades_of(facts, session.shade, unit)
        self.shade.show_metrics(facts, unit, found, session.display.palette)
        return found

    @property
    def _flat(self) -> bool:
        return self.glass.layout_ is not None and self.glass.layout_.size < FLAT

    def _stage(self, session: Session) -> None:
        """Lay out what is known without reading a map."""
        spec, capture = session.spec, session.capture
        if spec is None:
            return
        if capture is not None and capture.spec.layers != spec.layers:
            capture = None
        missing = _missing(spec, capture)
        running = any(one.state == "running" and one.keeps for one in session.work)
        off = session.off | (capture.off if capture is not None else frozenset())
        self.glass.show_scene(
            HourglassScene(
                spec,
                _lengths(spec, capture),
                _nouns(spec, capture),
                missing,
                min(missing) if missing and running and capture is not None else None,
                frozenset(one.index for one in spec.layers if _only(one)),
                capture is None,
                sentences.of_text(capture).sentence() if capture is not None else "",
                off,
            )
        )
        shrinks = any(one.stride != 1 for one in spec.levels)
        self.head.title.setText(tr(self.title) if shrinks else tr("Layers"))
        told = self._shades(session)
        notes = [
            _note(spec, capture, running),
            tr("exchanged, not trained again") if session.activation else "",
            tr("colour: focus") if self._flat else "",
            tr("without {heads}", heads=sentences.counted(len(off), "head")) if off else "",
        ]
        note = "; ".join(filter(None, notes))
        self.head.note.say(note if told is None else told.sentence(not self.shade.roomy))
        others = () if session.model is None else tasks.blocks_without_attention(session.model)
        self.mapless.setText(mapless_words(others))
        self.mapless.setToolTip(tip(mapless_names(others)))
        self.mapless.setVisible(bool(others))
        self._mark()

    def _mark(self) -> None:
        if self.session is None or self.session.spec is None:
            return
        hover = self.session.hover
        captured = self.session.capture is not None
        chosen = self.session.selection.head_id
        facts = self.session.facts.get(chosen)
        name = tr("Head {head}", head=chosen)
        said = f"{name}: {tr(role_sentence(facts))}" if facts is not None else name
        self.glass.setAccessibleDescription(said if captured else "")
        self.glass.mark(
            self.session.selection.head_id if captured else None,
            self.session.opened if captured else {},
            hover.head_id if hover is not None else None,
        )

    def _hover(self, head: HeadId | None) -> None:
        if self.session is None:
            return
        now = None
        if head is not None:
            now = self.session.at(head)
        if now != self.session.hover:
            self.session.put(hover=now)
        where = self.glass.where(head) if head is not None else None
        if head is None or where is None or self.session.spec is None:
            self._card.hide()
        else:
            self._card.tell(self.session, head, self._of(head))
            self._card.stand_by(where)

    def _of(self, head: HeadId) -> Thumb | None:
        return self._picture.thumbs.get(head) if self._picture is not None else None

    def _menu(self, head: HeadId | None, where: QPoint) -> None:
        menu = self.menu(head)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(where)

    def menu(self, head: HeadId | None) -> QMenu:
        """What can be done with a head, or with the whole picture."""
        menu = QMenu(self)
        if head is not None:
            menu.addAction(tr("Go to head {head}", head=head), partial(self.select_head, head))
            export = menu.addAction(theme.icon("export"), tr("Export map…"))
            export.triggered.connect(partial(self.select_head, head))
            export.triggered.connect(self.export_wanted)
            menu.addSeparator()
        choices = self.shade.choices
        inside = menu.addMenu(tr(TITLE)) if len(choices) > 1 else None
        for name, title in choices if inside is not None else ():
            one = inside.addAction(title, partial(self.shaded.emit, name))
            one.setCheckable(True)
            one.setChecked(self.session is not None and self.session.shade == name)
        menu.addAction(theme.icon("copy"), tr("Copy picture"), self.copy)
        return menu


def head_table(session: Session, thumbs: dict[HeadId, Thumb]) -> Table | None:
    """Every head of a model: its level, what it does, and the numbers on its card and of its
    colour."""
    spec = session.spec
    if spec is None:
        return None
    unit = session.capture.main.unit if session.capture is not None else "letter"
    facts = session.roles.heads if session.roles is not None else session.facts
    shade = [session.shade] if session.shade in METRICS else []
    metrics = dict.fromkeys(("focus", "entropy", *shade))
    out = [[tr("Head"), tr("Level"), tr("Role"), *(metric_name(one, unit) for one in metrics)]]
    for head in spec.heads:
        known, small = facts.get(head), thumbs.get(head)
        numbers = dict(known.metrics) if known is not None else {}
        if small is not None:
            numbers.setdefault("focus", small.focus)
        role = tr(known.role) if known is not None else "" if small else tr("not captured yet")
        values = (numbers.get(one, np.nan) for one in metrics)
        cells = ("" if np.isnan(value) else repr(float(value)) for value in values)
        out.append([str(head), sentences.ends(spec, head.layer), role, *cells])
    return out


def _pictures(
    capture: Capture,
    sizes: dict[HeadId, tuple[int, int]],
    asked: tuple[Any, ...],
    before: HourglassData | None,
) -> HourglassData:
    """Thumbnails layer by layer, those already made kept, then the one image of them all."""
    palette, dark, shared, flat, _, shares = asked
    thumbs: dict[HeadId, Thumb] = {}
    source = {n: one for n, one in enumerate(capture.maps) if one is not None}
    new = False
    for index, one in source.items():
        layer = capture.spec.layers[index]
        for head in layer.heads:
            name = HeadId(index, head)
            if before is not None and before.source.get(index) is one and name in before.thumbs:
                thumbs[name] = before.thumbs[name]
            else:
                thumbs[name] = thumb(capture, one, layer, head)
                new = True
        progress(index + 1, len(capture.maps), "drawing the hourglass")
    if before is not None and not new and before.asked == asked and before.source == source:
        return before
    atlas = compose(thumbs, sizes, palette, dark=dark, shared=shared, flat=flat, shares=shares)
    return HourglassData(thumbs, source, atlas, asked)


def _missing(spec: ModelSpec, capture: Capture | None) -> frozenset[int]:
    if capture is None:
        return frozenset(one.index for one in spec.layers)
    return frozenset(n for n, one in enumerate(capture.maps) if one is None)


def _lengths(spec: ModelSpec, capture: Capture | None) -> tuple[int, ...]:
    if capture is not None:
        return tuple(len(one) for one in capture.spans)
    return tuple(-(-GHOST // (one.stride or 4)) for one in spec.levels)


def _nouns(spec: ModelSpec, capture: Capture | None) -> tuple[str, ...]:
    if capture is not None:
        return tuple(capture.prompt_of(one.index).unit for one in spec.levels)
    return ("letter" if spec.vocabulary == 256 else "token",) * len(spec.levels)


def _only(layer: Layer) -> bool:
    """Whether each window of a layer has a single key, whose softmax weight is always 1."""
    return (
        layer.window is not None
        and layer.role == "up"
        and all(one in ("softmax", "topk") for one in layer.activations)
    )


def mapless_words(others: tuple[tuple[str, str], ...]) -> str:
    """24 layers have no map: MambaMixer."""
    if not others:
        return ""
    made = "; ".join(dict.fromkeys(tr(parts) for _, parts in others))
    if len(others) == 1:
        return tr("1 layer has no map: {made}", made=made)
    return tr("{n:,} layers have no map: {made}", n=len(others), made=made)


def mapless_names(others: tuple[tuple[str, str], ...]) -> str:
    """model.layers.0: MambaMixer, a line each; of many the first and how many more."""
    lines = [f"{name}: {tr(parts)}" for name, parts in others[:NAMED]]
    more = len(others) - NAMED
    return "\n".join([*lines, *([tr("and {n:,} more", n=more)] if more > 0 else ())])


def _note(spec: ModelSpec, capture: Capture | None, running: bool) -> str:
    if capture is not None and not capture.complete:
        done = sum(one is not None for one in capture.maps)
        if running:
            many = sentences.counted(len(capture.main), capture.main.unit)
            return tr("capturing {many}", many=many)
        every = sentences.counted(len(capture.maps), "layer")
        return tr("{done} of {layers} captured", done=done, layers=every)
    deepest = max((one.stride or 1 for one in spec.levels), default=1)
    layers, crossing = len(spec.layers), sum(one.role == "cross" for one in spec.layers)
    many = sentences.counted(layers, "layer")
    if any(one.stride is None for one in spec.levels):
        return tr("{layers}, shortened to segments in the middle", layers=many)
    if deepest > 1:
        said = "{layers}, shortened to 1:{stride}" if spec.form == "base" else (
            "{layers}, shortened 1:{stride} in the middle"
        )  # fmt: skip
        return tr(said, layers=many, stride=deepest)
    if crossing:
        return tr("{layers} layers, {crossing} between source and target",
                  layers=layers - crossing, crossing=crossing)  # fmt: skip
    sizes = {len(one.heads) for one in spec.layers}
    if len(sizes) > 1:
        total = sentences.counted(len(spec.heads), "head")
        return tr("{heads} in {layers}", heads=total, layers=many)
    each = sentences.counted(max(sizes, default=0), "head")
    return tr("{layers} of {heads}", layers=many, heads=each)
