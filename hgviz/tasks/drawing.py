"""Figures for papers: what each is drawn of, made ready, and the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from hgviz.core import Capture, HeadId, HgvizError, progress
from hgviz.language import counted
from hgviz.study import Sweep
from hgviz.tasks.charting import activation_chart, activations_of, pair_chart
from hgviz.tasks.dissecting import neurons_chart
from hgviz.tasks.files import capture_at, study_at
from hgviz.tasks.heads import rollout_capture
from hgviz.tasks.profiling import profile_chart
from hgviz.tasks.pruning_charts import chart
from hgviz.tasks.studies import sweep_at
from hgviz.tasks.study_charts import sweep_chart

if TYPE_CHECKING:
    from hgviz.analysis.roles import HeadRole
    from hgviz.figures import Content, Panel, Spec
    from hgviz.figures.output import Preview
    from hgviz.study import Study

Facts = Mapping[HeadId, "HeadRole"]
Of = Union[Capture, "Study", Sweep]
NAMED = ("map", "links")  # kinds that say what their head does
ROLES = 4096  # tokens up to which figures do


def figure(
    spec: Spec,
    of: Of | Sequence[Of],
    path: str | Path,
    facts: Facts | None = None,
    *,
    numbers: bool = False,
) -> str:
    """Draw a figure for a paper: PDF, SVG, PNG, PGF as path ends, or .csv for its numbers.

    of: what it is drawn of, as FIGURES says. facts: what is known of the heads, measured where it
    is needed. numbers: as in draw. Errors: HgvizError.
    """
    ready = panel(spec, of, facts)
    return draw(ready, path, numbers=numbers)


def draw(ready: Panel, path: str | Path, *, numbers: bool = False) -> str:
    """Draw what panel made ready; numbers: also write them beside it, as FIG.csv.
    Errors: HgvizError."""
    from hgviz.figures import output

    progress(0, 1, f"drawing {Path(path).name}")
    done = output.draw(ready, path)
    if numbers:
        output.write_numbers(ready, done)
    return str(done)


def preview(ready: Panel, dots: float) -> Preview:
    """What panel made ready as a screen of so many dots per inch shows it. Errors: HgvizError."""
    from hgviz.figures import output

    progress(0, 1, "drawing")
    return output.preview(ready, dots)


def sources_of(
    kind: str, files: Sequence[str | Path], items: Sequence[int] = (0,)
) -> list[Capture | Study | Sweep]:
    """What a figure of this kind is drawn of: captures, which text of each of them, studies, or the
    folder of a sweep.

    Errors: HgvizError for files that hold something else.
    """
    from hgviz.figures import kind_of

    if kind_of(kind).of == "sweep":
        return [sweep_at(one) for one in files]
    if kind_of(kind).of in ("study", "studies"):
        return [study_at(one) for one in files]
    return [capture_at(one, items[min(at, len(items) - 1)]) for at, one in enumerate(files)]


def spec_from(kind: str, options: Mapping[str, Any], of: Sequence[Capture | Study | Sweep]) -> Spec:
    """The figure that some options ask for. Errors: HgvizError, as figures.spec.spec_of."""
    from hgviz.figures.spec import spec_of

    return spec_of(kind, options, [one for one in of if isinstance(one, Capture)])


def panel(spec: Spec, of: Of | Sequence[Of], facts: Facts | None = None) -> Panel:
    """A figure ready to be drawn, of and facts as in figure. Errors: HgvizError where there are too
    many or too few captures or studies, or one lacks what is shown."""
    from hgviz.figures import Panel, kind_of

    some = list(of) if isinstance(of, Sequence) else [of]
    kind = kind_of(spec.kind)
    captures = [one for one in some if isinstance(one, Capture)]
    sweeps = [one for one in some if isinstance(one, Sweep)]
    studies = [one for one in some if not isinstance(one, Capture | Sweep)]
    _require(kind.of, kind.name, captures, studies, sweeps)
    spec, captures = _of_tokens(spec, captures)
    content: Content
    match kind.name:
        case "compare":
            content = pair_chart(captures[0], captures[1], spec.selection)
        case "activation":
            names = [name for one in captures for name in activations_of(one)]
            content = activation_chart(names)
        case "neurons":
            content = neurons_chart(captures[0], spec.selection, spec.order)
        case "profile":
            content = profile_chart(captures, spec.metrics, facts)
        case "curve" | "scores":
            content = chart(kind.name, studies, spec.methods, spec.axis)
        case "seeds" | "budgets":
            content = sweep_chart(kind.name, sweeps[0], spec.methods)
        case _:
            content = _looked(spec, captures[0], facts)
    files = tuple(one.path for one in some)
    items = tuple(one.item for one in captures) or (0,)
    return Panel(spec, content, files, items if len(set(items)) > 1 else items[0])


def _of_tokens(spec: Spec, captures: list[Capture]) -> tuple[Spec, list[Capture]]:
    """Captures with tokens for slots where a figure is of these, or where they have them already,
    which its command then says."""
    from hgviz.analysis.composition import has_slots, is_of_tokens, of_tokens

    if not spec.tokens:
        return replace(spec, tokens=any(map(is_of_tokens, captures))), captures
    if not any(map(has_slots, captures)):
        return spec, [of_tokens(one) for one in captures]
    return spec, [of_tokens(one) if has_slots(one) else one for one in captures]


def _looked(spec: Spec, capture: Capture, facts: Facts | None) -> Content:
    """A capture with what the figure says of its heads."""
    from hgviz.figures import Looked

    chosen = spec.selection
    if spec.kind == "rollout":
        query = chosen.query
        within = query is not None and 0 <= query < len(capture.main)
        return Looked(rollout_capture(capture, spec.recipe, query if within else None))
    if spec.kind == "levels":
        layers = _followed(spec, capture)
        found = facts or _measured(capture, layers)
        return Looked(capture, {head: one for head, one in found.items() if head.layer in layers})
    if spec.kind in NAMED:
        return Looked(capture, _named(spec, capture, facts))
    return Looked(capture)


def _named(spec: Spec, capture: Capture, facts: Facts | None) -> Facts:
    """What is known of the heads that are named: the same whether it was known before or not, so
    that the same figure is drawn by the window and by the command line."""
    heads = spec.links.heads if spec.kind == "links" and spec.links.heads else ()
    heads = heads or (spec.selection.head_id,)
    if len(heads) > 1 or long(capture):
        return {}
    head = heads[0]
    if facts and head in facts:
        return {head: facts[head]}
    if not 0 <= head.layer < len(capture.maps):
        return {}  # said by what draws it
    return _measured(capture, {head.layer})


def _followed(spec: Spec, capture: Capture) -> set[int]:
    """The layers of which a figure of all levels has to know what their heads do: those of the
    heads that are chosen, and of a stage where none is, all whose heads may be its clearest."""
    from hgviz.figures.levels import stages_of  # loads matplotlib

    chosen = {one.layer for one in (spec.selection.head_id, *spec.heads)}
    found: set[int] = set()
    for stage in stages_of(capture):
        some = chosen.intersection(stage)
        if not some or not long(capture):
            found |= some or set(stage)
    return found


def long(capture: Capture) -> bool:
    """Whether a figure says nothing of what its heads do: to find out takes longer than to draw."""
    return max(map(len, capture.spans), default=0) > ROLES


def _measured(capture: Capture, layers: Collection[int]) -> Facts:
    """The facts of the heads of some layers: of whole ones, so that the numbers are those of all
    to the last bit."""
    from hgviz.analysis.roles import roles

    some = (one if at in layers else None for at, one in enumerate(capture.maps))
    return roles(replace(capture, maps=tuple(some)))


def _require(
    of: str, kind: str, captures: Sequence[Capture], studies: Sequence[Study],
    sweeps: Sequence[Sweep],
) -> None:  # fmt: skip
    """Errors: HgvizError where a kind is drawn of something else."""
    wanted = {
        "capture": ("one capture", len(captures) == 1 and not studies),
        "pair": ("two captures, A and B", len(captures) == 2 and not studies),
        "captures": ("captures", bool(captures) and not studies),
        "study": ("one study", len(studies) == 1 and not captures),
        "studies": ("studies", bool(studies) and not captures),
        "sweep": ("the folder of one study", len(sweeps) == 1 and not captures and not studies),
    }
    words, given = wanted[of]
    if not given or (sweeps and of != "sweep"):
        there = [
            counted(len(some), name)
            for name, some in (("capture", captures), ("study", studies), ("folder", sweeps))
            if some
        ]
        raise HgvizError(
            f"a figure of kind {kind} is of {words}: "
            + (f"it was given {' and '.join(there) or 'nothing'}".replace("studys", "studies")),
            "Give it what it shows",
        )


__all__ = ["draw", "figure", "long", "panel", "preview", "sources_of", "spec_from"]
