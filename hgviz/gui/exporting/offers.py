"""What of what is open can be drawn for a paper, why the rest cannot, and the command for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hgviz.analysis.mixed import is_of_tokens
from hgviz.core import Capture, Display, finish, replace
from hgviz.gui.exporting.answers import LABELS, NO_ANSWER, Answered, answered, answers
from hgviz.gui.language import tr
from hgviz.gui.views.stages import followed
from hgviz.tasks.charting import activations_of

if TYPE_CHECKING:
    from hgviz.figures import Kind, Spec
    from hgviz.gui.exporting.drafts import Of
    from hgviz.session import Session
    from hgviz.study import Study
    from hgviz.sweep import Sweep

NO_CAPTURE = "capture a text first"
NO_B = "choose a B to compare with first"
NO_STUDY = "measure the heads on the Prune page first"
NO_CELL = "run the study until some of its cells are done"
NO_CURVE = "draw the curve on the Prune page first"
MAPS = ("map", "compare")  # the maps of one head: their query is a mark as their key is
CELLS = {"seeds": "score", "budgets": "curve"}  # which of a study a figure of it is drawn of
HOW = {
    "CAPTURE.h5": "save the capture under that name first (Ctrl+S)",
    "A.h5": "save the capture under that name first (Ctrl+S)",
    "B.h5": "save B under that name first (File, Save B…)",
    "STUDY.h5": "save what was measured under that name first (Analyse)",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A kind of figure with what it would show; name: of it alone; of: what it is drawn of; why:
    what it lacks, "" where it can be drawn."""

    name: str
    label: str
    spec: Spec
    of: Of = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """The command that draws a figure; lacks: what has to be saved before it can, in words."""

    words: str
    lacks: str = ""


def offers(session: Session, shown: Sequence[Spec]) -> tuple[Offer, ...]:
    """Every kind; of those that panes show, what they show."""
    from hgviz.figures import ANSWER, FIGURES

    tokens = session.capture is not None and is_of_tokens(session.capture)
    by_name = {name_of(spec): spec for spec in reversed(shown)}
    specs = {one: by_name.get(one) or _usual(session, one) for one in FIGURES}
    found = [
        Offer(one.name, one.label, replace(specs[one.name], tokens=tokens),
              drawn_of(session, one), why_not(session, one))
        for one in FIGURES.values()
        if one.of != "sweep" or session.sweep is not None
    ]  # fmt: skip
    if (answer := answered(session)) is None:
        spec = _usual(session, ANSWER.name)
        return (*found, Offer(ANSWER.name, ANSWER.label, spec, why=NO_ANSWER))
    every = {name_of(one): by_name.get(name_of(one), one)
             for one in answers(answer, session.selection)}  # fmt: skip
    return (*found, *(Offer(name, LABELS[one.methods[0]], one, answer)
                      for name, one in every.items()))  # fmt: skip


def offer_of(session: Session, spec: Spec) -> Offer:
    """What a pane shows, as an offer."""
    return next(one for one in offers(session, (spec,)) if one.name == name_of(spec))


def name_of(spec: Spec) -> str:
    """map; of answers, which can be looked at in several ways, also the way."""
    return " ".join((spec.kind, *spec.methods)) if spec.kind == "attribution" else spec.kind


def why_not(session: Session, kind: Kind) -> str:
    """What is missing for a kind of figure, "" for nothing."""
    if kind.of in ("study", "studies"):
        if session.study is None or not _scored(session):
            return NO_STUDY
        return NO_CURVE if kind.name == "curve" and not _traced(session) else ""
    if kind.of == "sweep":
        some = () if session.sweep is None else session.sweep.of(CELLS[kind.name])
        return "" if any(one.state == "done" for one in some) else NO_CELL
    if session.capture is None:
        return NO_CAPTURE
    return NO_B if kind.of == "pair" and session.beside is None else ""


def drawn_of(session: Session, kind: Kind) -> tuple[Capture | Study | Sweep, ...]:
    """The captures or studies that a kind of figure is drawn of; both sides where it takes both."""
    if kind.of == "sweep":
        return () if session.sweep is None else (session.sweep,)
    if kind.of in ("study", "studies"):
        study = session.study
        if study is not None and session.unsaved:  # no command finds in its file what is drawn
            study = replace(study, path="")
        return () if study is None else (study,)
    a, b = session.capture, session.beside
    if a is None:
        return ()
    if b is None or kind.of == "capture" or (kind.of == "captures" and not _adds(kind, a, b)):
        return (a,)
    return a, b


def command_for(of: Of, spec: Spec, out: str) -> Command:
    """The command that draws a figure to a file so named; what it reads is named with its folder,
    so that it runs wherever it is pasted."""
    from hgviz.figures import kind_of
    from hgviz.figures.provenance import MISSING, command_of, known_name
    from hgviz.resources import SAMPLE

    if isinstance(of, Answered):
        return Command(finish(of.command(spec, out)))
    known = [(one.path, known_name(one.path)) for one in of]
    files = [name if name.startswith(f"{SAMPLE}/") else path for path, name in known]
    missing = MISSING[kind_of(spec.kind).of]
    names = dict.fromkeys(
        missing[at % len(missing)] for at, path in enumerate(files or [""]) if not path
    )
    lacks = "; ".join(tr("it reads {name}: {how}", name=name, how=tr(HOW[name])) for name in names)
    items = tuple(one.item for one in of if isinstance(one, Capture)) or (0,)
    item = items if len(set(items)) > 1 else items[0]
    return Command(command_of(spec, files, item, out), lacks)


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
    """A figure that no pane shows now: of the head and the letter at hand."""
    from hgviz.figures import Spec

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
    from hgviz.figures.options import used

    return kind != "attribution" and "palette" in used(kind)


def signed(offer: Offer) -> bool:
    """Whether what a figure colours may be below zero: queries and keys always may."""
    if isinstance(offer.of, Answered):
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


def _scored(session: Session) -> bool:
    from hgviz.analysis.importance import METHODS

    return any(one.measured(session.study) for one in METHODS.values())


def _traced(session: Session) -> bool:
    """Whether the chosen score has a curve, or where none is chosen, any has."""
    curves = session.study.curves if session.study is not None else ()
    return any(one.method != "random" and session.score in ("", one.method) for one in curves)


__all__ = [
    "Command", "Offer", "coloured", "command_for", "drawn_of", "file_name", "name_of", "offer_of",
    "offers", "signed", "why_not",
]  # fmt: skip
