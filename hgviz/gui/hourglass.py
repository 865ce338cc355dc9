"""The picture of a model: every layer with the maps of its heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF

from hgviz import palettes, tasks
from hgviz.analysis.metrics import applicable
from hgviz.analysis.roles import HeadRole
from hgviz.core import Capture, HeadId, Map, ModelSpec, progress
from hgviz.figures.spec import Spec
from hgviz.gui import headgrid, ink, sentences, theme
from hgviz.gui.atlas import EXPONENT, Pixels, Thumb, paint_all, thumb
from hgviz.gui.ink import faint, hatching
from hgviz.gui.language import tr
from hgviz.gui.layouts import FLAT, HourglassLayout, HourglassRoom, LevelLabel, hourglass_layout
from hgviz.gui.sentences import counted, explained, measured, metric_name
from hgviz.gui.theme import write
from hgviz.gui.view import Empty, View
from hgviz.gui.widgets import PaneHead, Picker, label, vbox
from hgviz.session import Session

MARGIN = 16  # the padding of a pane
BAR = 56  # the longest bar of a cost
NARROW = 440  # px: below this the levels keep only their names


@dataclass(frozen=True, slots=True)
class HourglassScene:
    """A model as the Hourglass shows it: how long each level is, and which layers are there."""

    spec: ModelSpec
    lengths: tuple[int, ...]
    nouns: tuple[str, ...]  # what a position of each level is called
    missing: frozenset[int] = frozenset()  # layers not captured yet
    is_running: bool = False
    only: frozenset[int] = frozenset()  # layers whose windows hold one key: its weight is always 1
    ghost: bool = False  # nothing is captured

    @property
    def is_flat(self) -> bool:
        """Whether there is but one resolution, of one text or two."""
        return all(level.stride == 1 for level in self.spec.levels)

    @property
    def has_source(self) -> bool:
        """Whether there are two texts, and layers that read the first one."""
        return self.spec.two_texts and any(layer.level == 0 for layer in self.spec.layers)

    def ends(self) -> tuple[str, str]:
        """The words above and below the picture: input and output."""
        last = self.nouns[self.spec.layers[-1].level if self.spec.layers else 0]
        out = {
            "classes": tr("Classes"),
            "masked": tr("Masked {units}", units=tr(f"{last}s")),
            "states": tr("Hidden states"),
            "tags": tr("Classes of tokens"),
            "ends": tr("Answer span"),
        }.get(self.spec.goal, tr("Next {unit}", unit=tr(last)))
        is_source = self.has_source and self.spec.modality == "text"
        into = "Source in" if is_source else f"{sentences.READ[self.spec.modality]} in"
        return tr(into), out

    def lines(self, level: int) -> tuple[str, ...]:
        """The lines under the name of a level: positions, tokens each, cost."""
        one = self.spec.levels[level]
        if self.is_flat:
            noun = "slot" if one.sequence == "slots" else self.nouns[level]
            return () if self.ghost else (counted(self.lengths[level], noun),)
        out = [] if self.ghost else [counted(self.lengths[level], "position")]
        if one.stride is not None:
            out += [
                tr("{many} each", many=counted(one.stride, self.nouns[0])),
                tr("attention cost {part}", part=sentences.fraction(one.stride**2)),
            ]
        return tuple(out)


class Thumbnails(headgrid.HeadPicture):
    """The maps of all heads in the outline of the Hourglass, or their colours by a metric."""

    def __init__(
        self,
        scene: HourglassScene,
        data: HourglassData | None,
        shades: headgrid.Shades | None,
        roles: Mapping[HeadId, HeadRole],
    ) -> None:
        self.scene, self.spec, self.shades, self.roles = scene, scene.spec, shades, roles
        self.thumbs, self.pictures = (data.thumbs, data.pictures) if data is not None else ({}, {})

    def key(self) -> object:
        return self.scene

    def words(self, head: HeadId, is_off: bool) -> str:
        role, small = self.roles.get(head), self.thumbs.get(head)
        way = headgrid.WAYS.get(self.spec.layers[head.layer].role, "")
        about = tr((role.role if role else "") or way)
        numbers = []
        if small is None or small.kind == "only":
            about = tr("not captured yet" if small is None else "one key: weight 1")
        else:
            metrics = {"focus": small.focus, **(role.metrics if role is not None else {})}
            numbers = [tr("focus {value}", value=sentences.weight(metrics["focus"]))]
            if "entropy" in metrics:
                entropy = sentences.weight(metrics["entropy"])
                numbers.append(tr("entropy {value} nats", value=entropy))
        title = tr("Head {head}", head=head), sentences.ends(self.spec, head.layer)
        lines = [" · ".join(filter(None, line)) for line in (title, numbers)]
        groups = headgrid.key_group_words(self.spec, head)
        return "\n".join(filter(None, (lines[0], about, lines[1], groups)))

    def arrange(self, room: QSize) -> HourglassLayout:
        scene, has_details = self.scene, room.width() >= NARROW
        small = QFontMetricsF(theme.font(headgrid.NAME))
        bold = QFontMetricsF(theme.font(1.08, 600)).height()
        lines = [line for level in range(len(scene.lengths)) for line in scene.lines(level)]
        text = max(map(small.horizontalAdvance, lines)) if has_details and lines else 26
        is_bare = not has_details and scene.spec.two_texts  # the names of layers say which text
        # the residual path goes round some layers, or that of the source to a decoder
        has_path = len(scene.lengths) > 1 and (not scene.is_flat or scene.has_source)
        names = MARGIN + 20 + headgrid.names_width(scene.spec)
        space = HourglassRoom(
            room.width(),
            room.height(),
            label=names + (0 if is_bare else max(text, 40) + 12),
            right=48 if has_path else MARGIN,
            title=small.height() + 14,
            bottom=small.height() + 8 if scene.is_flat else 10,
            details=has_details,
            full_label=bold + 3 * small.lineSpacing() + 12,
            short_label=bold,
        )
        return hourglass_layout(scene.spec, scene.lengths, space)

    def paint_ground(self, painter: QPainter, layout: HourglassLayout, shown: QRectF) -> None:
        now, levels = theme.current(), self.spec.levels
        painter.setPen(QPen(now.line, 1))
        painter.setBrush(now.silhouette[0])
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in layout.outline]))
        painter.setPen(Qt.PenStyle.NoPen)
        depths = sorted({level.stride or 0 for level in levels})
        for band in layout.bands:
            if depth := depths.index(levels[band.level].stride or 0):
                painter.setBrush(now.silhouette[min(depth, 2)])
                painter.drawRect(band.box)
        painter.setPen(QPen(now.edge, 1))
        for x0, y0, x1, y1 in layout.lines:
            painter.drawLine(QPointF(x0, y0), QPointF(x1, y1))
        longest = max(layout.residuals, key=QRectF.height, default=None)
        two = self.spec.two_texts
        words = tr("encoder output" if two else "residual (skip) connection")
        for box in layout.residuals:
            ink.bypass(painter, box, words if box is longest else "")
        self._paint_ends(painter, layout)
        for side in layout.labels:
            self._paint_label(painter, side, shown)

    def _paint_ends(self, painter: QPainter, layout: HourglassLayout) -> None:
        quiet, colour = theme.font(headgrid.SMALL, 600), theme.current().secondary
        high = QFontMetricsF(theme.font(headgrid.NAME)).height()
        above, below = self.scene.ends()
        y = layout.top - high - 5
        write(painter, QRectF(MARGIN, y, 120, high), f"{above} ↓", quiet, colour)
        headgrid.draw_head_numbers(painter, layout, y + high / 2)
        under = max((one.top + one.height for one in layout.labels), default=0)
        y = layout.bottom + 5 if self.scene.is_flat else max(layout.bottom - high, under + 4)
        write(painter, QRectF(MARGIN, y, 120, high), f"{below} ↓", quiet, colour)

    def _paint_label(self, painter: QPainter, side: LevelLabel, shown: QRectF) -> None:
        """The name of a level, kept in view while any of its rows is."""
        if self.spec.two_texts and shown.width() < NARROW:
            return
        now, bold, index = theme.current(), theme.font(1.08, 600), side.band.level
        level, rows = self.spec.levels[index], side.band.box
        inside = max(side.top, min(shown.top() + 4, rows.bottom() - side.height))
        y = min(inside, max(shown.bottom() - side.height, rows.y()))
        title = sentences.level(self.spec, index)
        if self.scene.is_flat and len(self.spec.levels) == 1:
            title = tr(sentences.READ[self.spec.modality])
        title = title if ":" in title else title.capitalize()
        high = QFontMetricsF(bold).height()
        colour = now.text if side.full else now.secondary
        write(painter, QRectF(MARGIN, y, 80, high), title, bold, colour)
        if not side.full:
            return
        y, small = y + high, theme.font(headgrid.NAME)
        step = QFontMetricsF(small).lineSpacing()
        for line in self.scene.lines(index):
            write(painter, QRectF(MARGIN, y, 200, step), line, small, now.secondary)
            y += step
        if level.stride is not None and not self.scene.is_flat:
            costs = ((BAR, now.hover), (max(4, BAR / level.stride**2), now.press))
            for width, colour in costs:
                theme.draw_box(painter, QRectF(MARGIN, y + 4, width, 4), 2, colour)

    def paint_cell(self, painter: QPainter, head: HeadId, box: QRectF, is_off: bool) -> None:
        now, scene = theme.current(), self.scene
        radius = 3 if box.width() >= 28 else 1.5
        path = QPainterPath()
        path.addRoundedRect(box, radius, radius)
        is_missing = head.layer in scene.missing
        ground = self.shades.colour(head, now.dark) if self.shades and not is_missing else None
        painter.fillPath(path, ground or (now.raised if is_missing else now.pane))
        if head.layer in scene.only:
            painter.fillPath(path, QBrush(now.unseen_hatch, Qt.BrushStyle.BDiagPattern))
        elif not is_missing and self.shades is None and head in self.pictures:
            painter.save()
            painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
            painter.drawImage(box, ink.image(self.pictures[head]))
            painter.restore()
        if is_off:
            painter.fillPath(path, faint(now.pane, 0.72))
            painter.fillPath(path, hatching(painter, faint(now.secondary, 0.6)))
        painter.strokePath(path, QPen(now.edge, 1))


# --- colours by a metric --------------------------------------------------------------------------

ROOMY = 560  # px of pane from which on there is room for the colours
SLIM = 400  # px of pane below which the choice is in the palette alone
WIDEST = 150  # px of the list of metrics
TITLE = "Colour heads by"


def metric_shades(
    roles: Mapping[HeadId, HeadRole], metric: str, unit: str, palette: str
) -> headgrid.Shades | None:
    """The colours of heads by a metric; None for no metric, or where no head has it."""
    values = {head: one.metrics[metric] for head, one in roles.items() if metric in one.metrics}
    if not values:
        return None
    limits = min(values.values()), max(values.values())
    missing = len(roles) - len(values)
    low, high = (measured(metric, end) for end in limits)
    return headgrid.Shades(
        metric_name(metric, unit), "", limits,
        {head: headgrid.Shade(value, value, value) for head, value in values.items()},
        palettes.matching_palette(palette, False), 1.0, (low, high), explained(metric, unit),
        tr("no colour: {n:,} without a value", n=missing) if missing else "",
    )  # fmt: skip


def shades_words(shades: headgrid.Shades, with_ends: bool = True) -> str:
    """Such as "0.09 to 1.00; no colour: 24 without a value"."""
    ends = tr("{low} to {high}", low=shades.ends[0], high=shades.ends[1]) if with_ends else ""
    return "; ".join(filter(None, (ends, shades.part)))


NOTHING = Empty(
    "Open a model to see its attention",
    "Drop a checkpoint folder here, or start with the sample: a small Hourglass that reads text "
    "byte by byte.",
    (("open_sample", "Open sample model"), ("open_folder", "Open a checkpoint…")),
)
GHOST = 128  # positions of a model that no text was captured with yet


@dataclass(frozen=True, slots=True)
class HourglassData:
    """The thumbnails of all heads, the maps that they are of, and their pictures."""

    thumbs: dict[HeadId, Thumb]
    maps: dict[int, Map]
    pictures: dict[HeadId, Pixels]
    look: dict[str, Any]  # how these are painted, as paint_all takes it


class HourglassView(View):
    """All heads of a model in one picture, narrow where the text is shortened."""

    title, topic = "Hourglass", "hourglass"
    needs = ("spec", "capture", "display", "dark", "shade", "facts", "roles", "off")
    watches = ("selection", "opened", "hover", "work", "model")
    shaded = Signal(str)  # the metric that is to colour heads, "" for their maps

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title))
        self.metrics = Picker(tr(TITLE))
        self.metrics.activated.connect(lambda at: self.shaded.emit(self.metrics.itemData(at)))
        self.bar = headgrid.ShadeBar(is_short=True)
        self.head.add(self.bar, self.metrics, self.export_button())
        for part in (self.bar, self.metrics):
            part.hide()  # until there is known to be room for them
        self.grid = headgrid.HeadGrid(tr(self.title))
        self.data: HourglassData | None = None
        margins = (16, 4, 16, 8)
        self.mapless = label(factor=headgrid.NAME, kind="secondary", wrap=True, margins=margins)
        self.mapless.hide()
        vbox(self.content, self.head, (self.grid, 1), self.mapless)
        self.grid.picked.connect(self.select_head)
        self.grid.hovered.connect(self.hover_head)
        self.grid.rearranged.connect(self.refresh)

    def request(self, session: Session) -> Callable[[], HourglassData | None] | Empty:
        if session.spec is None:
            return NOTHING
        self._stage(session)
        if session.capture is None:
            return lambda: None
        is_coloured = self._is_small or self._shades(session) is not None
        look = {
            "sizes": {} if is_coloured else self.grid.sizes(), "dark": theme.current().dark,
            "palette": session.display.palette, "shared": session.display.shared,
        }  # fmt: skip
        return partial(_read_thumbnails, session.capture, look, self.data)

    def draw(self, result: HourglassData | None) -> None:
        if result is None or result is not self.data:
            self.data = result
            self._stage(self.session)

    def noticed(self, name: str) -> None:
        """Move the frames at once; the pictures follow."""
        if name in ("selection", "opened", "hover"):
            self._mark()
        else:
            self._stage(self.session)

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None:
            return None
        return Spec(kind="wall", selection=session.selection, display=session.display)

    def _shades(self, session: Session) -> headgrid.Shades | None:
        """The metric that colours heads, None where their maps are shown."""
        palette = session.display.palette
        return metric_shades(_roles(session), session.shade, session.unit, palette)

    @property
    def _is_small(self) -> bool:
        """Whether cells are too small for maps, and show the focus of their head."""
        return self.grid.head_layout.size < FLAT

    def _stage(self, session: Session) -> None:
        """Lay out what is known without reading a map."""
        spec, capture = session.spec, session.capture
        if spec is None:
            return
        if capture is not None and capture.spec.layers != spec.layers:
            capture = None
        scene = scene_of(session, spec, capture)
        metric = shades = self._shades(session)
        self._offer_metrics(session, metric)
        if shades is None and self._is_small and self.data is not None:
            shades = focus_shades(self.data.thumbs, session.display.palette)
        self.grid.show_picture(Thumbnails(scene, self.data, shades, session.facts))
        off = session.off | (capture.off if capture is not None else frozenset())
        self.grid.show_off(off)
        shrinks = any(level.stride != 1 for level in spec.levels)
        self.head.title.setText(tr(self.title) if shrinks else tr("Layers"))
        notes = [
            _note(spec, capture, scene.is_running),
            tr("activation replaced, not retrained") if session.activation else "",
            tr("colour: focus") if self._is_small else "",
            tr("{heads} off", heads=counted(len(off), "head")) if off else "",
        ]
        if metric is not None:
            notes = [shades_words(metric, self.bar.isHidden())]
        self.head.note.say("; ".join(filter(None, notes)))
        mapless = () if session.model is None else tasks.blocks_without_attention(session.model)
        self.mapless.setVisible(bool(mapless))
        made = "; ".join(dict.fromkeys(tr(parts) for _, parts in mapless))
        one, many = "1 layer has no map: {made}", "{n:,} layers have no map: {made}"
        self.mapless.setText(tr(one if len(mapless) == 1 else many, n=len(mapless), made=made))
        self._mark()

    def _offer_metrics(self, session: Session, shades: headgrid.Shades | None) -> None:
        """Offer the metrics that these heads have; mark the one that colours them."""
        unit = session.unit
        names = applicable(one.metrics for one in _roles(session).values())
        metrics = [(name, metric_name(name, unit), explained(name, unit)) for name in names]
        chosen = session.shade if shades is not None else ""
        self.metrics.offer([("", tr("Maps"), ""), *metrics], chosen)
        words = tr(TITLE)
        if shades is not None:
            metric = f"{shades.label}, {shades_words(shades)}"
            words = tr("Colour heads by: {metric}", metric=metric) + f"\n{shades.about}"
            self.bar.show_shades(shades)
        self.metrics.setToolTip(words)
        wide = self.metrics.fontMetrics().horizontalAdvance(self.metrics.currentText())
        self.metrics.setFixedWidth(min(WIDEST, wide + 46))
        self.metrics.setVisible(bool(metrics) and self.head.width() >= SLIM)
        self.bar.setVisible(shades is not None and self.head.width() >= ROOMY)

    def _mark(self) -> None:
        session = self.session
        hover = session.hover.head_id if session.hover is not None else None
        is_there = session.capture is not None
        opened = frozenset(session.opened.values()) if is_there else frozenset()
        self.grid.mark(session.selection.head_id if is_there else None, opened, hover)


def _roles(session: Session) -> Mapping[HeadId, HeadRole]:
    return session.roles.heads if session.roles is not None else session.facts


def focus_shades(thumbs: Mapping[HeadId, Thumb], palette: str) -> headgrid.Shades:
    """The colours of cells too small for maps: the focus of each head."""
    heads = {head: headgrid.Shade(one.focus, one.focus, one.focus)
             for head, one in thumbs.items() if one.kind != "only"}  # fmt: skip
    # the weights of some activations have no bound: the largest focus is full colour then
    limits = 0.0, max(1.0, *(one.focus for one in thumbs.values()))
    name = palettes.matching_palette(palette, False)
    return headgrid.Shades(tr("Focus"), "", limits, heads, name, EXPONENT)


def scene_of(session: Session, spec: ModelSpec, capture: Capture | None) -> HourglassScene:
    if capture is None:
        lengths = tuple(-(-GHOST // (level.stride or 4)) for level in spec.levels)
        missing = frozenset(layer.index for layer in spec.layers)
        return HourglassScene(spec, lengths, ("token",) * len(lengths), missing, ghost=True)
    missing = frozenset(n for n, one in enumerate(capture.maps) if one is None)
    is_running = any(one.state == "running" and one.keeps for one in session.work)
    upsampling = (one for one in spec.layers if one.window is not None and one.role == "up")
    only = (one.index for one in upsampling if {*one.activations} <= {"softmax", "topk"})
    lengths = tuple(map(len, capture.spans))
    nouns = tuple(capture.prompt_of(level.index).unit for level in spec.levels)
    is_running = bool(missing) and is_running
    return HourglassScene(spec, lengths, nouns, missing, is_running, frozenset(only))


def _read_thumbnails(
    capture: Capture, look: dict[str, Any], before: HourglassData | None
) -> HourglassData:
    """Thumbnails layer by layer, those already made kept, then the pictures of them all."""
    thumbs: dict[HeadId, Thumb] = {}
    maps = {n: one for n, one in enumerate(capture.maps) if one is not None}
    for index, one in maps.items():
        layer = capture.spec.layers[index]
        is_known = before is not None and before.maps.get(index) is one
        known = before.thumbs if before is not None and is_known else {}
        for number in layer.heads:
            head = HeadId(index, number)
            thumbs[head] = known.get(head) or thumb(capture, one, layer, number)
        progress(index + 1, len(capture.maps), "Drawing the hourglass")
    if before is not None and before.look == look and before.maps == maps:
        return before
    return HourglassData(thumbs, maps, paint_all(thumbs, **look), look)


def _note(spec: ModelSpec, capture: Capture | None, running: bool) -> str:
    """How much of a text is captured, or how many layers and heads there are."""
    if capture is not None and not capture.complete:
        if running:
            return tr("running on {many}", many=counted(len(capture.main), capture.main.unit))
        done = sum(one is not None for one in capture.maps)
        every = counted(len(capture.maps), "layer")
        return tr("{done} of {layers} captured", done=done, layers=every)
    number, crossing = len(spec.layers), sum(one.role == "cross" for one in spec.layers)
    deepest = max(one.stride or 1 for one in spec.levels)
    sizes = {len(one.heads) for one in spec.layers}
    if any(one.stride is None for one in spec.levels):
        words = "{layers}, shortened to segments in the middle"
    elif deepest > 1 and spec.form == "base":
        words = "{layers}, shortened to 1:{stride}"
    elif deepest > 1:
        words = "{layers}, shortened 1:{stride} in the middle"
    elif crossing:
        words = "{own} layers, {crossing} cross-attention"
    else:
        words = "{heads} in {layers}" if len(sizes) > 1 else "{layers} of {some}"
    return tr(
        words, layers=counted(number, "layer"), stride=deepest, own=number - crossing,
        crossing=crossing, heads=counted(len(spec.heads), "head"),
        some=counted(max(sizes, default=0), "head"),
    )  # fmt: skip
