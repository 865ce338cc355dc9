"""What a notebook asks for: figures and comparisons that it shows in place, as SVG.

Importing this costs little; torch, matplotlib and h5py are loaded when they are needed, Qt never.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hgviz import tasks
from hgviz.core import Capture, HgvizError
from hgviz.notebook.given import (
    Head,
    captured,
    captured_alike,
    chosen_of,
    head_of,
    is_capture,
    options_of,
    study_at,
)
from hgviz.notebook.reaching import measured
from hgviz.notebook.repeating import repeated
from hgviz.tasks.evidence import role_sentence
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.figures import Panel, Spec
    from hgviz.models.model import Model
    from hgviz.study import Study

Facts = dict[str, Any]


class Figure:
    """A figure that a notebook shows in place. facts: its numbers, and where they come from;
    captures: what it shows, so that another figure need not run the model again.
    """

    def __init__(
        self,
        write: Callable[[Path_], str],
        command: Callable[[Path], str],
        facts: Callable[[], Facts],
        captures: tuple[Capture, ...] = (),
    ) -> None:
        self.captures = captures
        self._write, self._find, self._command = write, facts, command
        self._saved = Path("figure.pdf")
        self._svg = ""
        self._facts: Facts | None = None

    @property
    def capture(self) -> Capture:
        """What it shows: the capture, of two the first. Errors: HgvizError for other figures."""
        if not self.captures:
            raise HgvizError("this figure is of studies: it shows no capture alone")
        return self.captures[0]

    @property
    def facts(self) -> Facts:
        """The numbers behind the figure, fit for JSON; measured when they are asked for."""
        if self._facts is None:
            self._facts = self._find()
        return self._facts

    @property
    def command(self) -> str:
        """The command that draws it, in the folder of its files, as what it was last saved as."""
        return self._command(self._saved)

    def save(self, path: Path_) -> Path:
        """Write the figure as PDF, SVG, PNG or PGF by the ending of path, its numbers as .csv.

        Errors: HgvizError.
        """
        self._saved = Path(self._write(path))
        return self._saved

    def _repr_svg_(self) -> str:
        if not self._svg:
            with TemporaryDirectory() as folder:
                self._svg = Path(self._write(Path(folder) / "figure.svg")).read_text("utf-8")
        return self._svg

    def __repr__(self) -> str:
        names = ", ".join(one.spec.name or "a capture" for one in self.captures) or "files"
        return f"<hgviz figure of {names}; save('figure.pdf') writes it>"


def figure(
    given: Capture | Model | Path_,
    kind: str = "map",
    *,
    text: str | None = None,
    pair: str | None = None,
    target: str | None = None,
    layer: int | None = None,
    head: Head | None = None,
    query: int | None = None,
    key: int | None = None,
    item: int = 0,
    width: str = "neurips",
    title: str | None = None,
    off: str = "",
    activation: str | None = None,
    device: str = "cpu",
    **options: Any,
) -> Figure:
    """A figure of a capture, of a model on a text, or of a study; all are also given as paths.

    kind: map, links, wall, levels, rollout, neurons, profile, activation; of studies curve and
    scores. text: what a model reads, pair and target a second one; off: heads switched off
    meanwhile, "3.5,4.*"; activation: another one for all heads. head: its number in the layer, or
    both as "12.5". query, key: tokens. item: which text of a corpus. options: those that `hgviz
    figure --help` has for the kind, by the same names: queries=[3, 5], heads="12.5,11.*",
    most=4, residual=0.5, palette="magma", limits=(0, 0.5), methods=["loo"]. Errors: HgvizError, for
    names that are none TypeError.
    """
    from hgviz.figures import FIGURES
    from hgviz.figures.cells import map_of

    given_ = {"query": query, "key": key, "width": width, "title": title, **options}
    study = study_at(given)
    if study is not None:
        return _of_study(study, "curve" if kind == "map" else kind, given_)
    kinds = [k for k, row in FIGURES.items() if row.of in ("capture", "captures")]
    asked = options_of(kind, kinds, given_)
    one = captured(given, text, pair, target, item, off, activation, device)
    one = tasks.of_tokens(one) if asked.get("tokens") else one
    spec = tasks.spec_from(kind, {**chosen_of(one, layer, head), **asked}, [one])
    if kind in ("map", "links", "levels", "neurons"):  # said here, not when it is shown
        map_of(one, spec.selection.head_id)
    return Figure(*_ways(spec, [one]), lambda: _facts(spec, one), (one,))


def compare(
    a: Capture | Model | Path_,
    b: Capture | Model | Path_,
    text: str | None = None,
    *,
    pair: str | None = None,
    target: str | None = None,
    layer: int | None = None,
    head: Head | None = None,
    beside: Head | None = None,
    item: int = 0,
    width: str = "neurips",
    title: str | None = None,
    off: str = "",
    activation: str | None = None,
    device: str = "cpu",
    **options: Any,
) -> Figure:
    """A head of A, that of B (beside, where it is another) and their difference, on one scale.

    a, b: captures, models or paths of either; a model reads text, or the text of the other side
    where that is a capture. off, activation: of B alone, so that compare(m, m, text, off="3.5")
    shows what a head does to the others. options: palette=, scale= and limits=. facts: what `hgviz
    compare --json` says of all heads. Errors: HgvizError, for names that are none TypeError.
    """
    asked = options_of("compare", ["compare"], {"width": width, "title": title, **options})
    first, second = is_capture(a), is_capture(b)
    if first and not second and text is None:
        one = captured(a, None, None, None, item, "", None, device)
        other = captured_alike(b, one, off, activation, device)
    elif second and not first and text is None:
        other = captured(b, None, None, None, item, off, activation, device)
        one = captured_alike(a, other, "", None, device)
    else:
        words = text if second or not first else None, None if second else text
        one = captured(a, words[0], pair, target, item, "", None, device)
        other = captured(b, words[1], pair, target, item, off, activation, device)
    if beside is not None:
        asked["beside"] = str(head_of(other, None, beside))
    spec = tasks.spec_from("compare", {**chosen_of(one, layer, head), **asked}, [one, other])

    def facts() -> Facts:
        return tasks.compare(one, other).to_dict()

    return Figure(*_ways(spec, [one, other]), facts, (one, other))


def capture(
    model: Model | Path_,
    text: str,
    *,
    pair: str | None = None,
    target: str | None = None,
    off: str = "",
    activation: str | None = None,
    device: str = "cpu",
) -> Capture:
    """Run a model on a text and keep what every head attended with, in memory. Errors: HgvizError.

    For many figures of one run: figure(capture, ...) shows it without running it again.
    """
    return captured(model, text, pair, target, 0, off, activation, device)


def reach(
    *models: Model | Path_,
    text: str | None = None,
    target: str | None = None,
    tokens: int | None = None,
    lengths: Sequence[int] | None = None,
    width: str = "neurips",
    title: str | None = None,
) -> Figure:
    """How far every output of some models depends on what they read, as `hgviz reach` measures it.

    Models of any family, as paths or open. text, and target of an encoder-decoder, or so many
    tokens at random; lengths: also time passes of so many tokens. facts: what --json says.
    Errors: HgvizError.
    """
    return _of_panel(*measured(models, text, target, tokens, lengths, width, title))


def redundancy(
    given: Model | Capture | Path_ | Sequence[Capture | Path_],
    *,
    width: str = "neurips",
    title: str | None = None,
) -> Figure:
    """How much the heads of each layer repeat each other: of a model or the path of one by its
    weights, of captures or their paths by their maps.

    facts: what `hgviz redundancy --json` says, with all numbers. Errors: HgvizError.
    """
    return _of_panel(*repeated(given, width, title))


# --- what is known --------------------------------------------------------------------------------


def _facts(spec: Spec, capture: Capture) -> Facts:
    """Where a figure comes from, what its head does, and of links every one."""
    from hgviz.figures import output

    found: Facts = dict(output.record(tasks.panel(spec, capture), [], Path("figure.svg")))
    chosen = spec.selection.head_id
    if spec.kind in ("map", "links"):
        alone = (one if at == chosen.layer else None for at, one in enumerate(capture.maps))
        known = tasks.measure(replace(capture, maps=tuple(alone))).get(chosen)
        if known is not None:
            numbers = {str(name): float(value) for name, value in known.metrics.items()}
            found |= {"role": known.role, "sentence": role_sentence(known), "metrics": numbers}
    if spec.kind == "links":
        found["links"] = _links(spec, capture)
    return found


def _links(spec: Spec, capture: Capture) -> list[Facts]:
    """Every link: query and key by token and in words, the head, the weight."""
    from hgviz.maps.links import find_links

    links = find_links(capture, spec.selection, spec.links)
    names = [links.fuse] if links.single and len(links.heads) > 1 else list(map(str, links.heads))
    return [
        {
            "query": links.queries.token(place), "from": links.queries.words(place),
            "key": links.keys.token(key), "to": links.keys.words(key), "head": name,
            "weight": weight,
        }
        for place, many in links.strands.items()
        for name, strand in zip(names, many, strict=True)
        for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True)
    ]  # fmt: skip


def _of_panel(panel: Panel, facts: Facts, captures: tuple[Capture, ...] = ()) -> Figure:
    """A figure that is made ready, whose command asks models again."""

    def command(path: Path) -> str:
        from hgviz.figures import output

        return output.command(panel, path)

    return Figure(lambda path: tasks.draw(panel, path), command, lambda: facts, captures)


def _of_study(study: Study, kind: str, options: Mapping[str, Any]) -> Figure:
    from hgviz.figures import FIGURES

    charts = [k for k, row in FIGURES.items() if row.of in ("study", "studies")]
    spec = tasks.spec_from(kind, options_of(kind, charts, options), [])
    one = tasks.chart(kind, [study], spec.methods, spec.axis)

    def facts() -> Facts:
        names, *rows = one.rows()
        return {**one.about, "rows": [dict(zip(names, row, strict=True)) for row in rows]}

    return Figure(*_ways(spec, [study]), facts)


def _ways(
    spec: Spec, of: Sequence[Capture | Study]
) -> tuple[Callable[[Path_], str], Callable[[Path], str]]:
    """What writes a figure, and what says the command that does."""

    def write(path: Path_) -> str:
        return tasks.figure(spec, of, path)

    def command(path: Path) -> str:
        from hgviz.figures import output

        return output.command(tasks.panel(spec, of), path)

    return write, command


__all__ = ["Figure", "capture", "compare", "figure", "reach", "redundancy"]
