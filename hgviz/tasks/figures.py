"""Figures for papers: what each kind shows, made ready, and its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.analysis.composition import has_slots, is_of_tokens, of_tokens
from hgviz.core import Capture, HgvizError, progress
from hgviz.figures.spec import CaptureFacts, Content, Panel, Spec, kind_of
from hgviz.language import counted
from hgviz.study import Study, Sweep
from hgviz.tasks.files import capture_at, study_at
from hgviz.tasks.heads import layer_roles, rollout_capture
from hgviz.tasks.studies import sweep_at
from hgviz.tasks.study_results import sweep_chart

if TYPE_CHECKING:
    from hgviz.figures.output import Preview
    from hgviz.tasks.charts import Facts

Source = Capture | Study | Sweep
MOST_TOKENS = 4096  # of texts whose figures name the roles of heads: longer ones take too long
SOURCES = {  # of a kind of figure: in words, the type, and the least and the largest number
    "capture": ("one capture", Capture, 1, 1),
    "pair": ("two captures, A and B", Capture, 2, 2),
    "captures": ("captures", Capture, 1, None),
    "study": ("one study", Study, 1, 1),
    "studies": ("studies", Study, 1, None),
    "sweep": ("the folder of one study", Sweep, 1, 1),
}


def draw(panel: Panel, path: str | Path, *, numbers: bool = False) -> str:
    """Write a figure; numbers: also write its numbers beside it, as FIG.csv. Returns the path."""
    from hgviz.figures import output

    progress(0, 1, f"drawing {Path(path).name}")
    file = output.draw(panel, path)
    if numbers:
        output.write_numbers(panel, file)
    return str(file)


def preview(panel: Panel, dots: float) -> Preview:
    """A figure as a screen of so many dots per inch shows it."""
    from hgviz.figures import output

    progress(0, 1, "drawing")
    return output.preview(panel, dots)


def sources_of(kind: str, files: Sequence[str | Path], items: Sequence[int] = (0,)) -> list[Source]:
    """The captures, studies or folders that a figure of this kind shows.

    items: the text of each capture; the last one goes for the rest. Raises HgvizError for files
    that hold something else.
    """
    source_type = SOURCES[kind_of(kind).of][1]
    if source_type is Capture:
        numbers = [*items, *[items[-1]] * len(files)]
        return [capture_at(file, number) for file, number in zip(files, numbers, strict=False)]
    return [(sweep_at if source_type is Sweep else study_at)(file) for file in files]


def panel(spec: Spec, sources: Source | Sequence[Source], facts: Facts | None = None) -> Panel:
    """A figure that is ready to be drawn.

    facts: the roles of the heads of the capture, measured where they are needed and not given.
    Raises HgvizError for sources that the kind does not show, and for what they lack.
    """
    from hgviz.tasks import charts

    given = list(sources) if isinstance(sources, Sequence) else [sources]
    kind = kind_of(spec.kind)
    _require_sources(kind.of, kind.name, given)
    captures = [source for source in given if isinstance(source, Capture)]
    studies = [source for source in given if isinstance(source, Study)]
    spec, captures = _with_tokens(spec, captures)
    chosen = spec.selection
    contents: dict[str, Callable[[], Content]] = {
        "compare": lambda: charts.pair_chart(captures[0], captures[1], chosen),
        "activation": lambda: charts.activation_chart(activations_of(*captures)),
        "neurons": lambda: charts.neurons_chart(captures[0], chosen, spec.order),
        "spectrum": lambda: charts.spectrum_chart(captures, chosen.head_id),
        "profile": lambda: charts.profile_chart(captures, spec.metrics, facts),
    }
    content: Content
    if kind.name in contents:
        content = contents[kind.name]()
    elif studies:
        content = charts.study_chart(kind.name, studies, spec.methods, spec.axis)
    elif isinstance(given[0], Sweep):
        content = sweep_chart(kind.name, given[0], spec.methods)
    else:
        content = _capture_content(spec, captures[0], facts)
    files = tuple(source.path for source in given)
    items = tuple(capture.item for capture in captures) or (0,)
    return Panel(spec, content, files, items if len(set(items)) > 1 else items[0])


def activations_of(*captures: Capture) -> tuple[str, ...]:
    """The activations of the heads of captures, in order."""
    layers = [layer for capture in captures for layer in capture.spec.layers]
    return tuple(dict.fromkeys(name for layer in layers for name in layer.activations))


def _require_sources(of: str, kind: str, sources: Sequence[Source]) -> None:
    words, source_type, least, most = SOURCES[of]
    fits = all(isinstance(source, source_type) for source in sources)
    if not fits or len(sources) < least or (most is not None and len(sources) > most):
        nouns = {"capture": Capture, "study": Study, "folder": Sweep}
        counts = {noun: sum(isinstance(one, type_) for one in sources)
                  for noun, type_ in nouns.items()}  # fmt: skip
        given = " and ".join(counted(count, noun) for noun, count in counts.items() if count)
        raise HgvizError(
            f"a figure of kind {kind} needs {words}: "
            f"it was given {given.replace('studys', 'studies') or 'nothing'}",
            "Choose other files or another kind",
        )


def _with_tokens(spec: Spec, captures: list[Capture]) -> tuple[Spec, list[Capture]]:
    """Captures of slots with tokens for keys, where the figure asks for tokens; the spec of a
    figure of captures that have tokens already asks for them, so that its command does."""
    if not spec.tokens:
        return replace(spec, tokens=any(map(is_of_tokens, captures))), captures
    expand_all = not any(map(has_slots, captures))  # raises HgvizError
    return spec, [of_tokens(one) if expand_all or has_slots(one) else one for one in captures]


def _capture_content(spec: Spec, capture: Capture, facts: Facts | None) -> CaptureFacts:
    """A capture with the roles of the heads that the figure names, measured where they are not
    given, so that the window and the command line draw the same figure."""
    if spec.kind == "rollout":
        query = spec.selection.query
        is_token = query is not None and 0 <= query < len(capture.main)
        return CaptureFacts(rollout_capture(capture, spec.recipe, query if is_token else None))
    layers = _named_layers(spec, capture)
    named = {head: role for head, role in (facts or {}).items() if head.layer in layers}
    return CaptureFacts(capture, named or layer_roles(capture, layers) if layers else {})


def _named_layers(spec: Spec, capture: Capture) -> set[int]:
    """The layers whose roles a figure needs: that of the only head that is shown; of all levels, of
    a stage without a selected head all, since it shows the head with the clearest role."""
    if spec.kind in ("map", "links"):
        heads = spec.links.heads if spec.kind == "links" else ()
        head, *others = heads or (spec.selection.head_id,)
        return set() if others or is_long(capture) else {head.layer}
    layers: set[int] = set()
    if spec.kind == "levels":
        from hgviz.figures.levels import stages_of

        selected = {head.layer for head in (spec.selection.head_id, *spec.heads)}
        for stage in stages_of(capture):
            if not (chosen := selected.intersection(stage)):
                layers |= set(stage)
            elif not is_long(capture):
                layers |= chosen
    return layers


def is_long(capture: Capture) -> bool:
    """Whether measuring the roles of a text's heads takes longer than drawing its figure."""
    return max(map(len, capture.spans), default=0) > MOST_TOKENS
