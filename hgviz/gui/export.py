"""Exporting a figure: what can be drawn, how, with a preview."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from PySide6.QtCore import QPoint, QRect, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QGuiApplication,
    QImage,
    QPixmap,
    QResizeEvent,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QFormLayout,
    QGraphicsOpacityEffect,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from hgviz import settings, tasks
from hgviz.analysis.composition import is_of_tokens
from hgviz.analysis.importance import METHODS
from hgviz.core import Capture, Display, HeadId, HgvizError, progress, progress_as
from hgviz.errors import require
from hgviz.figures import spec as figures
from hgviz.figures.spec import Kind, Spec
from hgviz.files import SAMPLE
from hgviz.gui import sentences, theme
from hgviz.gui.dialogs import MARGIN, Form, ask_where, note
from hgviz.gui.help import Explanation
from hgviz.gui.jobs import Lanes, Runner
from hgviz.gui.language import tr
from hgviz.gui.layouts import followed
from hgviz.gui.view import BAR_AFTER, Empty, View
from hgviz.gui.widgets import Button, Check, IconButton, Picker, Segments, Words, hbox, label, vbox
from hgviz.palettes import PALETTES, SCALES, matching_palette
from hgviz.tasks.attribution import Attribution, Method
from hgviz.tasks.figures import activations_of

if TYPE_CHECKING:
    from hgviz.analysis.roles import HeadRole
    from hgviz.figures import Panel
    from hgviz.figures.output import Preview
    from hgviz.models.model import Model
    from hgviz.session import Session
    from hgviz.study import Study, Sweep

LABELS: dict[str, str] = {
    "tokens": "Attribution to tokens",
    "layers": "Attribution to layers",
    "heads": "Attribution to heads",
    "attention": "Attribution to the keys of a head",
}


class AnswerFigure(Protocol):
    """What models were asked, which no file holds."""

    def panel(self, spec: Spec) -> Panel:
        """A figure of it made ready. Errors: HgvizError."""

    def command(self, spec: Spec, out: str) -> str:
        """The command that asks the models again. Errors: HgvizError."""


@dataclass(frozen=True, slots=True, eq=False)
class AttributionFigure:
    """What a model was asked about a text and what was found."""

    found: Attribution
    capture: Capture
    says: str  # the token asked about
    model: Model | None
    checkpoint: str  # where the model lies
    activation: str = ""  # what its own was exchanged for

    def panel(self, spec: Spec) -> Panel:
        """A figure of it made ready; spec.methods: which of LABELS. Errors: HgvizError."""
        method, chosen = cast(Method, spec.methods[0]), spec.selection
        progress(0, 1, "Reading the attribution")
        keys = None
        if method == "attention":
            keys = tasks.key_scores(self.found, self.capture, chosen.head_id, chosen.query)
        given = tasks.prompt_options(self.model, self.capture)
        if given and self.activation:
            given = *given, "--activation", self.activation
        return tasks.attribution_panel(
            spec, [(self.found, self.says)], self.capture, method, keys=keys,
            query=chosen.query, given=given, model=self.checkpoint,
        )  # fmt: skip

    def command(self, spec: Spec, out: str) -> str:
        """The command that asks again, of the model where it lies. Errors: HgvizError."""
        ready = self.panel(spec)
        asked = getattr(ready.content, "asked", ())
        models = [self.checkpoint or figures.MISSING["answer"][0]]
        return figures.answer_command(ready.spec, asked, models, Path(out).name)


def answered(session: Session) -> AttributionFigure | None:
    """What was found of the text on screen; None where nobody asked."""
    capture, found = session.capture, session.explained
    if capture is None or found is None or not found.is_of(capture):
        return None
    asked, model, says = found.question, session.model, ""
    if asked.position is not None:
        says = sentences.namer(capture)(asked.number)
        if model is not None:  # in the words that the command has
            says = tasks.token_name(model, asked.number)
    return AttributionFigure(found, capture, says, model, session.checkpoint, session.activation)


def with_ending(path: str, asked: str) -> tuple[str, str]:
    """A path as it was typed, with the ending of the format asked for where it has none of a
    figure (fig1.2, fig.txt); and the format that its name says."""
    try:
        return path, figures.format_of(path)
    except HgvizError:
        return f"{path}.{asked}", asked


def require_free(path: str, numbers: bool, ended: bool) -> None:
    """Require that only files that the user agreed to replace are replaced.

    The dialog that asks where to asks about the figure alone: its numbers are replaced with it, and
    never without it. ended: its ending was added, so that nobody was asked about the figure either.

    Errors: HgvizError where another file would go.
    """
    figure = Path(path)
    files = [figure] * ended + [figures.csv_beside(figure)] * (numbers and not os.path.exists(path))
    taken = " and ".join(one.name for one in files if os.path.exists(one))
    verb = "exist" if " and " in taken else "exists"
    require(not taken, f"{taken} already {verb}", "Give the figure another name")


Of = tuple["Capture | Study | Sweep", ...] | AnswerFigure  # what a figure is drawn of


class FigureCache:
    """The figures of one dialog. What is drawn last is kept: to compose all maps of a long text
    takes much longer than to set the result in another width. Used in one lane alone.
    """

    def __init__(self, facts: Mapping[HeadId, HeadRole]) -> None:
        self._facts = facts
        self._kept: tuple[Spec, Of, Panel] | None = None

    def panel(self, spec: Spec, of: Of) -> Panel:
        """A figure made ready. Errors: HgvizError."""
        content = replace(spec, width="", format="", title=None, display=Display())
        kept = self._kept
        if kept is not None and kept[0] == content and kept[1] is of:
            return replace(kept[2], spec=spec)
        ready = tasks.panel(spec, of, self._facts) if isinstance(of, tuple) else of.panel(spec)
        self._kept = content, of, ready
        return ready

    def page(self, spec: Spec, of: Of, dots: float) -> Preview:
        """Draw a figure as a screen shows it. Errors: HgvizError."""
        with progress_as(lambda step: replace(step, value=None)):  # measures, and no pages
            return tasks.preview(self.panel(spec, of), dots)

    def export(
        self, spec: Spec, of: Of, path: str, numbers: bool = False, ended: bool = False
    ) -> str:
        """Write a figure; numbers: also as CSV; ended as in require_free. Errors: HgvizError."""
        require_free(path, numbers, ended)
        return tasks.draw(self.panel(spec, of), path, numbers=numbers)


# --- offers ---------------------------------------------------------------------------------------

MAPS = ("map", "compare")  # the maps of one head: their query is a mark as their key is
CELLS = {"seeds": "score", "budgets": "curve"}  # which of a study a figure of it is drawn of
HOW = {
    "CAPTURE.h5": "save the capture under that name first (Ctrl+S)",
    "A.h5": "save the capture under that name first (Ctrl+S)",
    "B.h5": "save B under that name first (File, Save comparison capture…)",
    "STUDY.h5": "save the importance scores under that name first (Analyse)",
}


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure with what it would show."""

    name: str
    label: str
    spec: Spec
    of: Of = ()  # what it is drawn of
    why: str = ""  # what it lacks, "" where it can be drawn


@dataclass(frozen=True, slots=True)
class Command:
    """The command that draws a figure; lacks: what has to be saved before it can, in words."""

    words: str
    lacks: str = ""


def offers(session: Session, shown: Sequence[Spec]) -> tuple[FigureKind, ...]:
    """Every kind; of those that panes show, what they show."""
    tokens = session.capture is not None and is_of_tokens(session.capture)
    by_name = {name_of(spec): spec for spec in reversed(shown)}
    specs = {one: by_name.get(one) or _usual(session, one) for one in figures.FIGURES}
    found = [
        FigureKind(one.name, one.label, replace(specs[one.name], tokens=tokens),
                   drawn_of(session, one), why_not(session, one))
        for one in figures.FIGURES.values()
        if one.of != "sweep" or session.sweep is not None
    ]  # fmt: skip
    if (answer := answered(session)) is None:
        kind, why = figures.ANSWERS["attribution"], "compute attribution first"
        return (*found, FigureKind(kind.name, kind.label, _usual(session, kind.name), why=why))
    lacks = {"layers": answer.found.layers is None, "attention": answer.found.slopes is None}
    display = Display(scale="linear")
    for method, words in LABELS.items():
        if not lacks.get(method):
            spec = Spec("attribution", session.selection, display, methods=(method,))
            name = name_of(spec)
            found.append(FigureKind(name, words, by_name.get(name, spec), answer))
    return tuple(found)


def name_of(spec: Spec) -> str:
    """map; of answers, which can be looked at in several ways, also the way."""
    return " ".join((spec.kind, *spec.methods)) if spec.kind == "attribution" else spec.kind


def why_not(session: Session, kind: Kind) -> str:
    """What is missing for a kind of figure, "" for nothing."""
    if kind.of in ("study", "studies"):
        study, score = session.study, session.score
        if study is None or not any(one.is_measured(study) for one in METHODS.values()):
            return "compute head importance on the Prune page first"
        drawn = {one.method for one in study.curves} - {"random"}
        is_drawn = score in drawn if score else bool(drawn)
        no_curve = kind.name == "curve" and not is_drawn
        return "compute the pruning curve on the Prune page first" if no_curve else ""
    if kind.of == "sweep":
        cells = () if session.sweep is None else session.sweep.of(CELLS[kind.name])
        is_done = any(one.state == "done" for one in cells)
        return "" if is_done else "finish some runs of the study first"
    if session.capture is None:
        return "run a model on a text first"
    no_b = kind.of == "pair" and session.capture_b is None
    return "choose what to compare with first" if no_b else ""


def drawn_of(session: Session, kind: Kind) -> tuple[Capture | Study | Sweep, ...]:
    """The captures or studies that a kind of figure is drawn of; both sides where it takes both."""
    if kind.of == "sweep":
        return () if session.sweep is None else (session.sweep,)
    if kind.of in ("study", "studies"):
        study = session.study
        if study is not None and session.unsaved:  # no command finds in its file what is drawn
            study = replace(study, path="")
        return () if study is None else (study,)
    a, b = session.capture, session.capture_b
    if a is None:
        return ()
    if b is None or kind.of == "capture" or (kind.of == "captures" and not _adds(kind, a, b)):
        return (a,)
    return a, b


def command_for(of: Of, spec: Spec, out: str) -> Command:
    """The command that draws a figure to a file so named; what it reads is named with its folder,
    so that it runs wherever it is pasted."""
    if not isinstance(of, tuple):
        return Command(of.command(spec, out))
    known = [(one.path, figures.known_name(one.path)) for one in of]
    files = [name if name.startswith(f"{SAMPLE}/") else path for path, name in known]
    missing = figures.MISSING[figures.kind_of(spec.kind).of]
    names = [missing[at % len(missing)] for at, path in enumerate(files or [""]) if not path]
    lacks = "; ".join(
        tr("it reads {name}: {how}", name=name, how=tr(HOW[name])) for name in dict.fromkeys(names)
    )
    items = tuple(one.item for one in of if isinstance(one, Capture)) or (0,)
    item = items if len(set(items)) > 1 else items[0]
    return Command(figures.figure_command(spec, files, item, out), lacks)


def file_name(session: Session, spec: Spec) -> str:
    """What a figure's file is called, unless somebody wants another name."""
    of = session.capture or session.study
    made = of.spec.name if of is not None else ""
    if spec.kind in CELLS and session.sweep is not None:
        made = session.sweep.title
    headed = spec.kind in ("map", "compare", "neurons") or "attention" in spec.methods
    head = f"-{spec.selection.head_id}" if headed else ""
    plain = "".join(one if one.isalnum() or one in "-_." else "-" for one in made)
    return f"{plain or 'capture'}-{spec.kind}{head}.{spec.format}"


def _usual(session: Session, kind: str) -> Spec:
    """A figure that no pane shows now: of the head and the token at hand."""
    heads = followed(session) if kind == "levels" else ()
    methods = (session.score,) if kind in ("scores", "curve") and session.score else ()
    display = session.display if coloured(kind) else Display()
    chosen = session.marked
    if kind not in MAPS:  # of the query at hand; a key is marked in figures of its head alone
        key = chosen.key if kind == "neurons" else None
        chosen = replace(chosen, query=session.selection.query, key=key)
    return Spec(kind, chosen, display, heads=heads, methods=methods)


def coloured(kind: str) -> bool:
    """Whether a kind of figure has the colours of maps."""
    return kind != "attribution" and "palette" in figures.options_of(kind)


def signed(offer: FigureKind) -> bool:
    """Whether what a figure colours may be below zero: queries and keys always may."""
    if not isinstance(offer.of, tuple):
        return False
    layer = offer.spec.selection.layer if offer.spec.kind in ("map", "compare") else None
    maps = [one.maps for one in offer.of if isinstance(one, Capture)]
    return offer.spec.kind == "neurons" or any(
        one is not None and one.signed
        for each in maps for at, one in enumerate(each) if layer in (None, at)
    )  # fmt: skip


def _adds(kind: Kind, a: Capture, b: Capture) -> bool:
    """Whether a figure of several captures shows more with B, which may be A itself."""
    if a.maps is b.maps:
        return False
    return kind.name != "activation" or not {*activations_of(b)} <= {*activations_of(a)}


# --- preview --------------------------------------------------------------------------------------

EDGE = 12  # px around the page
FADED = 0.35  # opacity of a page that another one replaces soon
DOTS = 96.0  # logical px per inch at 100 %
WAIT = 60  # ms: what is typed in one go is drawn once


class PreviewPane(View):
    """The page that a form asks for, at 100 % or as large as there is room."""

    title = "Preview"
    topic = "export"
    wait = WAIT

    noted = Signal(object)  # a Preview that is shown, or None for none of these choices
    failed = Signal()

    def __init__(self, choices: FigureForm, drafts: FigureCache) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground, False)
        self._choices, self._drafts = choices, drafts
        self.picture: Preview | None = None
        self._fits = False
        self.page = label(kind="page")
        self.page.setAccessibleName(tr("Preview of the figure"))
        self.page.hide()
        self.fade = QGraphicsOpacityEffect(self.page, opacity=FADED)
        self.fade.setEnabled(False)
        self.page.setGraphicsEffect(self.fade)
        room = QScrollArea(alignment=Qt.AlignmentFlag.AlignCenter)
        room.setProperty("kind", "ground")
        room.setWidget(self.page)
        room.setAccessibleName(tr("Preview"))
        room.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        room.viewport().setAutoFillBackground(False)
        vbox(self.content, room)
        self._late = QTimer(self, singleShot=True, interval=BAR_AFTER)
        self._late.timeout.connect(self._age)

    def request(self, session: Session) -> Callable[[], Preview] | Empty:
        """Draw the page; the one before stays, and fades if that takes long."""
        offer, spec = self._choices.offer, self._choices.spec
        if why := tr(offer.why):
            title = tr("{name} is not available yet", name=tr(offer.label))
            return Empty(title, why[:1].upper() + why[1:])
        self._late.start()
        return partial(self._drafts.page, spec, offer.of, DOTS * self.devicePixelRatioF())

    def draw(self, result: Preview) -> None:
        self._late.stop()
        self.picture = result
        self.fade.setEnabled(False)
        self._draw_page()
        self.page.setAccessibleDescription(tr(self._choices.offer.label))
        self.noted.emit(result)

    def show_error(self, error: BaseException) -> None:
        self._late.stop()
        super().show_error(error)
        self.noted.emit(None)
        self.failed.emit()

    def cancel(self) -> None:
        self._wait.stop()
        self._late.stop()
        self._drop()

    def show_whole(self, fits: bool) -> None:
        """Show the whole page, or the page at 100 %."""
        self._fits = fits
        self._draw_page()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._fits:
            self._draw_page()

    def _draw_page(self) -> None:
        """Put the page on screen, at 100 % each pixel of it as one of the screen."""
        if self.picture is None:
            return
        image, ratio = QImage.fromData(self.picture.png), self.devicePixelRatioF()
        room = (self.size() - QSize(2 * EDGE, 2 * EDGE)) * ratio
        if self._fits and image.size().boundedTo(room) != image.size():
            shape, how = Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode
            image = image.scaled(room, shape, how.SmoothTransformation)
        image.setDevicePixelRatio(ratio)
        self.page.setPixmap(QPixmap.fromImage(image))
        self.page.adjustSize()
        self.page.show()

    def _stop_work(self) -> None:
        """Drawing was stopped, though the file can be written: the page before stays, faded."""
        super()._stop_work()
        self._late.stop()
        self._age()

    def _age(self) -> None:
        self.fade.setEnabled(True)
        self._stack.setCurrentWidget(self.content)
        self.noted.emit(None)


LEGIBLE = 5.0  # points: journals print nothing smaller
DECIMALS = {"in": 2, "mm": 0, "cm": 1, "pt": 0}

# what a format is for, where its name does not say it
USES = {
    "pdf": "Vector graphics with embedded fonts, for LaTeX, Word and journals.",
    "svg": "Vector graphics with editable text, for web pages, Inkscape and Illustrator.",
    "png": "Pixels, for slides, e-mail and programs without vector graphics.",
    "pgf": "LaTeX code: \\input sets its text in the font of the paper.",
}


def measures(picture: Preview, width: str) -> str:
    """5.50 × 4.21 in · 396 × 303 pt · smallest text 6.5 pt; in the unit of a preset or a length."""
    length = figures.WIDTHS[width][0] if width in figures.WIDTHS else width.strip().lower()
    unit = next((unit for unit in DECIMALS if length.endswith(unit)), "in")
    wide, high = (f"{one / figures.UNITS[unit]:.{DECIMALS[unit]}f}"
                  for one in (picture.width, picture.height))  # fmt: skip
    parts = [f"{wide} × {high} {unit}"]
    if unit != "pt":
        parts.append(f"{picture.width:.0f} × {picture.height:.0f} pt")
    if picture.smallest is not None:
        parts.append(tr("smallest text {n} pt", n=f"{picture.smallest:.3g}"))
    return "   ·   ".join(parts)


def warning(picture: Preview) -> str:
    """What is too small; "" for nothing."""
    if picture.smallest is None or picture.smallest >= LEGIBLE:
        return ""
    words = (
        "The smallest text is {n:.3g} pt; journals require at least {least:g} pt. "
        "Choose a wider figure."
    )
    return tr(words, n=picture.smallest, least=LEGIBLE)


def notes(picture: Preview) -> str:
    """What was reduced, chosen and left out, as its file says it; "" for nothing."""
    return " ".join(
        f"{one[:1].upper()}{one[1:]}{'' if one.endswith('.') else '.'}"
        for one in map(tr, dict.fromkeys(picture.notes))
    )


def wrong_width(width: str) -> str:
    """Why this is no width for a figure; "" for one that is."""
    try:
        figures.points(width)
    except HgvizError as error:
        return f"{tr(error.lines[0])} {tr(error.lines[-1])}"
    return ""


def colours(display: Display, signed: bool) -> str:
    """Viridis, square root, up to 0.8; signed: whether weights may be below zero."""
    palette = PALETTES[matching_palette(display.palette, signed)]
    parts = [tr(palette.label), tr(SCALES[display.scale].lower())]
    if display.limits is not None:
        parts.append(tr("up to {n:g}", n=display.limits[1]))
    return ", ".join(parts)


def copied(command: Command) -> str:
    """What the status says once a command is on the clipboard."""
    if command.lacks:
        return tr("Copied; {lacks}", lacks=command.lacks)
    return tr("Copied the command of this figure")


# --- form -----------------------------------------------------------------------------------------

OTHER = ""  # the width that is typed
TITLES = (("usual", "Default"), ("own", "Custom"), ("none", "None"))


class FigureForm(QWidget):
    """What to draw, how wide, in which format."""

    changed = Signal()  # another figure is wanted

    def __init__(
        self, offers: Sequence[FigureKind], first: str, display: Display, width: str, form: str
    ) -> None:
        super().__init__()
        self._offers, self._display = {one.name: one for one in offers}, display
        self._rows = QFormLayout(
            labelAlignment=theme.TO_LEFT, horizontalSpacing=12, verticalSpacing=8
        )
        vbox(self, self._rows, 1, margins=(0, 0, 12, 0))
        self.kind, self.width_, self.form = (Picker(characters=8) for _ in range(3))
        self.length = QLineEdit(placeholderText=tr("3.25in, 89mm, 12cm or 252pt"))
        self.length.setAccessibleName(tr("Another width"))
        self.own = QLineEdit(placeholderText=tr("Title of the figure"))
        self.own.setAccessibleName(tr("Custom title"))
        self._offer_kinds(offers, first)
        self._row(tr("Figure"), self.kind)
        self._offer_widths(width)
        self._row(tr("Width"), self.width_, self.length)
        self.refused = self._note("bad")
        self.form.offer(((name, tr(words)) for name, words in figures.FORMATS.items()), form)
        self._row(tr("Format"), self.form)
        self.use = self._note()
        self.use.setMinimumHeight(2 * self.use.fontMetrics().height())
        self.title_ = Segments(TITLES)
        self._row(tr("Title"), self.title_, self.own)
        self.colours = Check(tr("As on screen"))
        self.colours.setChecked(True)
        self._row(tr("Colours"), self.colours)
        self.coloured = self._note()
        self.numbers = Check(tr("Numbers (CSV)"))
        self.numbers.setToolTip(tr("All values of the figure, in a second file"))
        self._row(tr("Also save"), self.numbers)
        for picker in (self.kind, self.width_, self.form):
            picker.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            picker.currentIndexChanged.connect(self._again)
        for line in (self.length, self.own):
            line.textChanged.connect(self._again)
        self.title_.chosen.connect(self._again)
        self.colours.toggled.connect(self._again)
        self._fit()

    @property
    def offer(self) -> FigureKind:
        """The kind that is chosen, and what it would show."""
        return self._offers[self.kind.currentData()]

    @property
    def width_asked(self) -> str:
        """The name of a preset, or the length that was typed."""
        return self.width_.currentData() or self.length.text().strip()

    @property
    def spec(self) -> Spec:
        """The figure as it is wanted."""
        own = self.own.text().strip() or None  # nothing typed yet
        title = {"usual": self.offer.spec.title, "own": own, "none": ""}[self.title_.choice]
        form, spec = self.form.currentData(), self.offer.spec
        usual = coloured(spec.kind) and not self.colours.isChecked()
        display = Display() if usual else spec.display
        return replace(spec, width=self.width_asked, format=form, title=title, display=display)

    def _offer_kinds(self, offers: Sequence[FigureKind], first: str) -> None:
        """Offer all kinds; those that cannot be drawn now say what they lack."""
        words = [f"{tr(one.label)} ({tr(one.why)})" if one.why else tr(one.label) for one in offers]
        names = [one.name for one in offers]
        drawable = (one.name for one in offers if not one.why)
        chosen = first if first in names else next(drawable, "")
        self.kind.offer(zip(names, words, words, strict=True), chosen)
        model = self.kind.model()
        assert isinstance(model, QStandardItemModel)
        for at, one in enumerate(offers):
            model.item(at).setEnabled(not one.why)
        longest = max(map(self.kind.fontMetrics().horizontalAdvance, words))
        self.kind.view().setMinimumWidth(longest + 32)

    def _offer_widths(self, width: str) -> None:
        if width not in figures.WIDTHS and not wrong_width(width):
            self.length.setText(width)
        presets = [(name, f"{tr(words)}: {size}") for name, (size, words) in figures.WIDTHS.items()]
        chosen = OTHER if self.length.text() else width
        if chosen not in (OTHER, *figures.WIDTHS):
            chosen = next(iter(figures.WIDTHS))
        self.width_.offer([*presets, (OTHER, tr("Another width…"))], chosen)

    def _row(self, words: str, field: QWidget, more: QWidget | None = None) -> None:
        field.setAccessibleName(words)
        self._rows.addRow(words, field)
        if more is not None:
            self._rows.addRow("", more)

    def _note(self, kind: str = "secondary") -> QLabel:
        out = note("", kind)
        out.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._rows.addRow("", out)
        return out

    def _again(self) -> None:
        self._fit()
        self.changed.emit()

    def _fit(self) -> None:
        self.kind.setToolTip(self.kind.currentText())
        is_typed = self.width_.currentData() == OTHER
        self._rows.setRowVisible(self.length, is_typed)
        self._rows.setRowVisible(self.own, self.title_.choice == "own")
        is_entered = not is_typed or self.length.text().strip()
        self.refused.setText(wrong_width(self.width_asked) if is_entered else "")
        self._rows.setRowVisible(self.refused, bool(self.refused.text()))
        self.use.setText(tr(USES.get(self.form.currentData(), "")))
        maps = coloured(self.offer.spec.kind)
        self.colours.setEnabled(maps)
        display = self._display if self.colours.isChecked() else Display()
        words = colours(display, signed(self.offer))
        self.coloured.setText(words if maps else tr("This figure has fixed colours"))


# --- dialog ---------------------------------------------------------------------------------------

LARGEST = QSize(1180, 860)  # px of the dialog
LEFT = 344  # px of the form
SIZES = (("full", "100 %"), ("fit", "Fit"))


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A figure that somebody wants as a file. numbers: also as CSV beside it."""

    spec: Spec
    of: Of
    drafts: FigureCache
    name: str
    numbers: bool = False


class ExportDialog(Form):
    """What to draw, how wide, in which format; the page as it will be; its command.

    shown: what panes show, the current one first. said: a note about the current pane. answer: a
    figure of what models were just asked, in place of these.
    """

    chosen = Signal(object)  # an ExportRequest; it stays open until the file has a name
    kept = Signal(str, str)  # width and format, to begin with the next time

    def __init__(
        self,
        window: QWidget,
        session: Session,
        lanes: Lanes,
        shown: Sequence[Spec] = (),
        said: str = "",
        last: tuple[str, str] = ("neurips", "pdf"),
        answer: FigureKind | None = None,
    ) -> None:
        super().__init__(window, tr("Export figure" if answer is None else answer.label))
        self._session, self._drafts = session, FigureCache(session.facts)
        first = name_of(shown[0]) if shown else ""
        kinds = offers(session, shown) if answer is None else (answer,)
        self.choices = FigureForm(kinds, first, session.display, *last)
        self.choices.changed.connect(self._ask)
        self.first = self.choices.kind
        self.help = IconButton("info", tr("About this dialog"), clicked=self._explain)
        self.preview = PreviewPane(self.choices, self._drafts)
        self.preview.noted.connect(self._show_notes)
        self.preview.failed.connect(lambda: self.default.setEnabled(False))
        self.size_ = Segments(SIZES, tr("Size of the preview"))
        self.size_.chosen.connect(lambda name: self.preview.show_whole(name == "fit"))
        self.measures = Words(kind="secondary")
        self.measures.setAccessibleName(tr("Size of the figure"))
        self.sign = QLabel()
        self.sign.setPixmap(theme.pixmap("warning", 16, theme.current().warning))
        self.warning, self.notes = note("", "warning"), note("")
        for one in (self.warning, self.notes):
            one.setAlignment(Qt.AlignmentFlag.AlignTop)
        about = tr("Copy the command that draws this figure")
        self.copy = Button(tr("Copy command"), "copy", toolTip=about, clicked=self._copy)
        self.told = Words(factor=0.92, kind="secondary")
        self._lay_out(said)
        self.preview.bind(session, lanes)
        self.finished.connect(self.preview.unbind)
        self._ask()

    def _lay_out(self, said: str) -> None:
        self.body.removeWidget(self.title)
        self.body.addLayout(hbox(None, (self.title, 1), self.help))
        if said:
            self.body.addWidget(note(said, factor=1.0))
        left = QScrollArea(widgetResizable=True)
        left.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        left.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        left.setWidget(self.choices)
        for widget in (self.choices, left.viewport()):
            widget.setAutoFillBackground(False)
        left.setFixedWidth(LEFT)
        head = hbox(None, label(tr("Preview"), weight=600), 1, self.size_, spacing=8)
        top = Qt.AlignmentFlag.AlignTop
        warning_row = hbox(None, (self.sign, 0, top), (self.warning, 1), spacing=8)
        below = QWidget()  # keeps its room, so that the page stays where it is
        below.setMinimumHeight(2 * self.warning.fontMetrics().height())
        vbox(below, warning_row, self.notes, 1, spacing=4)
        right = vbox(None, head, (self.preview, 1), self.measures, below, spacing=8)
        self.body.addSpacing(4)
        self.body.addLayout(hbox(None, left, (right, 1), spacing=24), 1)
        self.default = Button(
            tr("Export…"), "export", kind="filled", default=True, clicked=self._export
        )
        cancel = Button(tr("Cancel"), clicked=self.reject)
        self.body.addSpacing(8)
        row = hbox(None, self.copy, (self.told, 1), self.default, cancel, spacing=8)
        self.body.addLayout(row)

    def place(self) -> None:
        """Put it in the middle of the window, as large as the window allows."""
        over = self.parentWidget().window().geometry()
        box = QRect(QPoint(), LARGEST.boundedTo(over.size() - QSize(2 * MARGIN, 2 * MARGIN)))
        box.moveCenter(over.center())
        self.setGeometry(box)

    def _ask(self) -> None:
        """Have the page drawn; what is being drawn is of an earlier choice."""
        self.told.say("")
        is_wrong = bool(wrong_width(self.choices.width_asked))
        can_draw = not (self.choices.offer.why or is_wrong)
        self.default.setEnabled(can_draw)
        self.copy.setEnabled(can_draw)
        if not can_draw:
            self._show_notes(None)
        (self.preview.cancel if is_wrong else self.preview.refresh)()

    def _show_notes(self, picture: Preview | None) -> None:
        """Show the size of a page and what is to know of it; None for no page."""
        self.measures.say("" if picture is None else measures(picture, self.choices.width_asked))
        for box, words in ((self.warning, warning), (self.notes, notes)):
            box.setText("" if picture is None else words(picture))
            box.setVisible(bool(box.text()))
        self.sign.setVisible(bool(self.warning.text()))

    def _explain(self) -> None:
        """Show the page of help in place of the dialog, which comes back after it."""
        page = Explanation(self.parentWidget(), "export")
        page.finished.connect(self.open)
        self.hide()
        page.open()

    def _copy(self) -> None:
        spec = self.choices.spec
        command = command_for(self.choices.offer.of, spec, file_name(self._session, spec))
        QGuiApplication.clipboard().setText(command.words)
        self.told.say(copied(command))
        self.kept.emit(spec.width, spec.format)

    def _export(self) -> None:
        spec, numbers = self.choices.spec, self.choices.numbers.isChecked()
        name = file_name(self._session, spec)
        self.kept.emit(spec.width, spec.format)
        self.chosen.emit(ExportRequest(spec, self.choices.offer.of, self._drafts, name, numbers))


OTHERS = "You can export another figure:"
STAYS = 20_000  # ms that links to a file are offered


class FileLinks(QLabel):
    """Links to a file that was written, for a while: open it, or show it in its folder."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.linkActivated.connect(lambda link: QDesktopServices.openUrl(QUrl(link)))
        self._goes = QTimer(self, singleShot=True, interval=STAYS)
        self._goes.timeout.connect(self.hide)

    def offer(self, path: str) -> None:
        """Offer a file in place of the one before."""
        file = Path(path).absolute()
        places = ((file, tr("Open")), (file.parent, tr("Show in folder")))
        links = [f'<a href="{place.as_uri()}">{words}</a>' for place, words in places]
        self.setText(f"{escape(file.name)}: {' · '.join(links)}")
        self.show()
        self._goes.start()


class Exporter(Runner):
    """Exports and copies what the current pane shows."""

    def export(self) -> None:
        """Show the figure of the pane at hand before it is written, and ask where to."""
        view = self.commands.pane()
        panes = sorted(self.commands.visible_panes(), key=lambda one: one is not view)
        shown = [one.figure(self.session) for one in panes]
        said = ""
        if view is not None and shown[0] is None:
            said = f"{_lacking(view)} {tr(OTHERS)}"
        elif view is not None and view.zoomed:
            words = "{name} is zoomed in; its figure shows all of it."
            said = tr(words, name=tr(view.title))
        self._open([one for one in shown if one], said)

    def show_answer(self, spec: Spec, figure: AnswerFigure) -> None:
        """Show a figure of what models were just asked, and offer to export it."""
        kind = figures.ANSWERS[spec.kind]
        self._open(answer=FigureKind(kind.name, kind.label, spec, figure))

    def _open(
        self, shown: Sequence[Spec] = (), said: str = "", answer: FigureKind | None = None
    ) -> None:
        kept = settings.load()
        dialog = ExportDialog(
            self.window, self.session, self.lanes, shown, said,
            (kept.figure_width, kept.figure_format), answer,
        )  # fmt: skip
        dialog.chosen.connect(partial(self._export, dialog))
        dialog.kept.connect(
            lambda width, form: self.commands.keep(figure_width=width, figure_format=form)
        )
        dialog.open()

    def copy(self) -> None:
        view = self.commands.pane()
        if view is not None:
            view.copy()
            self.commands.say(tr("Copied a picture: {title}", title=tr(view.title)))

    def copy_table(self) -> None:
        """Copy the values of the pane at hand, cells apart by tabs: spreadsheets take that."""
        view = self.commands.pane()
        table = view.as_table() if view is not None and view.drawn else None
        if view is None or table is None:
            self.commands.say(tr("This pane has no values to copy as a table"))
            return
        QGuiApplication.clipboard().setText("\n".join(map("\t".join, table)))
        words = "Copied a table of {rows:,} rows: {title}"
        self.commands.say(tr(words, rows=len(table) - 1, title=tr(view.title)))

    def copy_command(self) -> None:
        """Copy the command that draws the figure of the pane at hand."""
        view = self.commands.pane()
        found = view.figure(self.session) if view is not None else None
        if found is None:
            nothing = tr("Nothing on screen can be drawn")
            self.commands.say(nothing if view is None else _lacking(view))
            return
        kept = settings.load()
        width = "neurips" if wrong_width(kept.figure_width) else kept.figure_width
        spec = replace(found, width=width, format=kept.figure_format)
        offer = next(one for one in offers(self.session, (spec,)) if one.name == name_of(spec))
        command = command_for(offer.of, spec, file_name(self.session, spec))
        self.commands.copy_words(command.words, copied(command) if command.lacks else "")

    def _export(self, dialog: ExportDialog, wish: ExportRequest) -> None:
        """Ask where to; the dialog goes once that is known, and is there as it was until then."""
        kinds = tr("Figures (*.{ending})", ending=wish.spec.format)

        def chosen(path: str) -> None:
            dialog.reject()
            self.export_to(wish, path)

        ask_where(dialog, tr("Export figure"), kinds, wish.name, chosen)

    def export_to(self, wish: ExportRequest, typed: str) -> None:
        self.commands.remember(typed)
        path, form = with_ending(typed, wish.spec.format)
        spec = replace(wish.spec, format=form)
        work = partial(wish.drafts.export, spec, wish.of, path, wish.numbers, path != typed)
        title, done = (
            tr("Export {name}", name=Path(path).name),
            partial(self._exported, wish.numbers),
        )
        self.working.start(self.lanes.files, f"export {path}", title, work, done, lasting=True)

    def _exported(self, numbers: bool, path: str) -> None:
        words = "Exported {path} and its numbers" if numbers else "Exported {path}"
        self.commands.say(tr(words, path=path))
        bar = self.window.statusBar()
        links = bar.findChild(FileLinks)
        if links is None:
            links = FileLinks()
            bar.insertWidget(1, links)
        links.offer(path)


def _lacking(view: View) -> str:
    """What is said where the pane at hand cannot be drawn, never another one in its place."""
    title = tr(view.title or "This pane")
    said = tr("{title} has no figure.", title=title)
    return f"{said} {tr(view.figureless)}." if view.figureless else said
