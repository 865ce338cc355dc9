"""Figures and comparisons for notebooks, shown in place as SVG.

This module imports fast: torch, matplotlib and h5py load when they are needed, Qt never.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeGuard

from hgviz import tasks
from hgviz.analysis.composition import of_tokens
from hgviz.core import Capture, HeadId, Modality, parse_heads
from hgviz.errors import choose, require
from hgviz.figures import FIGURES, Spec
from hgviz.figures.spec import option_words, options_of, spec_of
from hgviz.files import find_sample
from hgviz.maskfile import read_heads
from hgviz.tasks import reachability
from hgviz.tasks.heads import layer_roles, role_sentence

if TYPE_CHECKING:
    from hgviz.analysis.comparison import Disagreement
    from hgviz.figures import Panel
    from hgviz.models.model import Model
    from hgviz.study import Study

Facts = dict[str, Any]
Head = int | str | tuple[int, int]
# options whose names differ from those of the command line
COMMAND_NAMES = {"methods": "method", "metrics": "metric"}
COMMON = ("layer", "head", "query", "key", "width", "title")  # that every kind takes
OTHER_OPTIONS = "Other options of figure() are kind, text, item and " + ", ".join(COMMON)


class Figure:
    """A figure that a notebook shows in place.

    captures: the captures that it shows; other figures of them need not run the model again.
    """

    def __init__(
        self,
        make_panel: Callable[[], Panel],
        find_facts: Callable[[], Facts],
        captures: Sequence[Capture] = (),
    ) -> None:
        self.captures = tuple(captures)
        self._make_panel, self._find_facts = make_panel, find_facts
        self._path = Path("figure.pdf")

    @property
    def capture(self) -> Capture:
        """The capture it shows, of two the first. Raises HgvizError for a figure of studies."""
        require(self.captures, "this figure is of studies, not of a capture")
        return self.captures[0]

    @cached_property
    def facts(self) -> Facts:
        """The numbers of the figure, ready for JSON; computed when first used."""
        return self._find_facts()

    @property
    def command(self) -> str:
        """The command that reproduces it, in the folder of its files, to the file last saved."""
        from hgviz.figures import output

        return output.command(self._panel, self._path)

    def save(self, path: str | Path) -> Path:
        """Write the figure as PDF, SVG, PNG or PGF by the ending of path, its numbers as .csv.

        Raises HgvizError.
        """
        self._path = Path(tasks.draw(self._panel, path))
        return self._path

    @cached_property
    def _panel(self) -> Panel:
        return self._make_panel()

    @cached_property
    def _svg(self) -> str:
        with TemporaryDirectory() as folder:
            return Path(tasks.draw(self._panel, Path(folder) / "figure.svg")).read_text("utf-8")

    def _repr_svg_(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        names = ", ".join(one.spec.name or "a capture" for one in self.captures) or "files"
        return f"<hgviz figure of {names}; save('figure.pdf') writes it>"


def figure(
    source: Capture | Model | str | Path,
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
    """Draw a figure of a capture, of a model on a text, or of a study, or of the path of one.

    Args:
        kind: map, links, wall, levels, rollout, neurons, profile or activation; for studies, curve
            or scores.
        text, pair, target: the input of a model.
        off, activation: heads to switch off, "3.5,4.*", and another activation for all heads.
        head: its index in the layer, or "LAYER.HEAD", such as "12.5".
        query, key: indices of tokens.
        item: index of the text in a corpus.
        options: the options of `hgviz figure` for the kind, with the same names:
            queries=[3, 5], heads="12.5,11.*", most=4, residual=0.5, palette="magma",
            limits=(0, 0.5), methods=["loo"].

    Raises HgvizError, and TypeError for an option that the kind does not have.

        hgviz.figure("sample/softmax", text="The soup was not good.", head="1.2").save("map.pdf")
    """
    from hgviz.figures.cells import map_of

    asked = {"query": query, "key": key, "width": width, "title": title, **options}
    study = _study_at(source)
    if study is not None:
        return _figure_of_study(study, "curve" if kind == "map" else kind, asked)
    kinds = [name for name, row in FIGURES.items() if row.of in ("capture", "captures")]
    asked = _options(kind, kinds, asked)
    shown = as_capture(source, text, pair, target, item, off, activation, device)
    shown = of_tokens(shown) if asked.get("tokens") else shown
    spec = spec_of(kind, _layer_and_head(shown, layer, head) | asked, [shown])
    if kind in ("map", "links", "levels", "neurons"):  # an error here, not when it is shown
        map_of(shown, spec.selection.head_id)
    return Figure(lambda: tasks.panel(spec, [shown]), lambda: _facts(spec, shown), [shown])


def compare(
    a: Capture | Model | str | Path,
    b: Capture | Model | str | Path,
    text: str | None = None,
    *,
    data: str | Path | None = None,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
    limit: int | None = None,
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
) -> Figure | Disagreement:
    """Draw a head of A, one of B and their difference; or compare their predictions on data.

    Args:
        a, b: captures, models or paths of either; a model reads text, or the text of the other
            side where that is a capture.
        data: labelled rows, or a text file, on which both models are scored, or on `limit` examples
            of it. labels: maps labels of the data to classes of the models.
        beside: the head of B, by default that of A.
        off, activation: for B only, so that compare(m, m, text, off="3.5") shows the effect of a
            head on the others.
        options: palette, scale and limits.

    Returns:
        A Figure, whose `facts` are what `hgviz compare --json` prints of all heads. With data a
        Disagreement: both scores (shares from 0 to 1, or bits per byte), the difference with its
        95 % interval, McNemar's p, and `to_dict()`.

    Raises HgvizError, and TypeError for other options.

        hgviz.compare("sample/softmax", "sample/ymish", "The soup was not good.", head="1.2")
        hgviz.compare("sample/softmax", "sample/ymish", data="sample/reviews.tsv").to_dict()
    """
    if data is not None:
        require(
            text is None and not (is_capture(a) or is_capture(b)),
            "only models are scored on data: texts and captures are compared by their maps",
            "Give two models, and data without a text",
        )
        models = as_model(a, device), as_model(b, device, activation=activation)
        return tasks.compare_answers(
            *models, find_sample(data), text_column, label_column,
            read_heads(off, models[1].spec), limit, (labels, labels),
        )  # fmt: skip
    asked = _options("compare", ["compare"], {"width": width, "title": title, **options})
    is_a, is_b = is_capture(a), is_capture(b)
    if is_a and not is_b and text is None:
        side_a = as_capture(a, item=item)
        side_b = _capture_like(b, side_a, off, activation, device)
    elif is_b and not is_a and text is None:
        side_b = as_capture(b, item=item, off=off, activation=activation)
        side_a = _capture_like(a, side_b, "", None, device)
    else:  # of two captures the first refuses a text
        text_a, text_b = text if is_b or not is_a else None, None if is_b else text
        side_a = as_capture(a, text_a, pair, target, item, "", None, device)
        side_b = as_capture(b, text_b, pair, target, item, off, activation, device)
    if beside is not None:
        asked["beside"] = str(_head(side_b, None, beside))
    sides = [side_a, side_b]
    spec = spec_of("compare", _layer_and_head(side_a, layer, head) | asked, sides)
    return Figure(
        lambda: tasks.panel(spec, sides), lambda: tasks.compare(side_a, side_b).to_dict(), sides
    )


def reach(
    *models: Model | str | Path,
    text: str | None = None,
    target: str | None = None,
    tokens: int | None = None,
    lengths: Sequence[int] | None = None,
    width: str = "neurips",
    title: str | None = None,
) -> Figure:
    """Measure which tokens each output of some models depends on, as `hgviz reach` does.

    models: of any architecture, as paths or open. text, and target of an encoder-decoder, or a
    number of random tokens; lengths: also time passes of these lengths. facts: what --json prints.
    Raises HgvizError.
    """
    require(
        models and (text is None) != (tokens is None),
        "the input is missing: it is a text, or a number of random tokens",
        "Give one or more models, and text= or tokens=",
    )
    opened = [as_model(model, dtype="float64") for model in models]
    measured = []
    for model in opened:
        if text is None:
            prompts = reachability.random_prompts(model, tokens or 0)
        else:
            has_target = model.spec.form == "encoder-decoder"
            prompts = tasks.read_prompts(model, text, target=target if has_target else None)
        measured.append(tasks.reach(model, *prompts))
    seconds = None
    if lengths is not None:
        seconds = tasks.pass_times([as_model(model) for model in models], lengths)
    words = option_words([
        ("--text", text), ("--target", target), ("--tokens", tokens),
        ("--lengths", None if lengths is None else ",".join(map(str, lengths))),
    ])  # fmt: skip
    paths = [str(find_sample(model)) if _is_path(model) else "" for model in models]
    spec = Spec("reach", width=width, title=title)
    panel = tasks.reach_panel(spec, measured, seconds, words, paths)
    facts = tasks.reach_facts(opened, measured, seconds)
    return Figure(lambda: panel, lambda: facts)


def redundancy(
    source: Model | Capture | str | Path | Sequence[Capture | str | Path],
    *,
    width: str = "neurips",
    title: str | None = None,
) -> Figure:
    """Measure how similar the heads of each layer are: by the weights of a model or its path, or by
    the maps of captures or their paths.

    facts: what `hgviz redundancy --json` prints. Raises HgvizError.
    """
    sources = source if isinstance(source, Sequence) and not isinstance(source, str) else [source]
    captures = [as_capture(one) for one in sources if is_capture(one)]
    require(
        len(captures) == len(sources) if captures else len(sources) == 1,
        "these sources cannot be combined: "
        "heads are compared by the weights of one model, or by the maps of captures",
        "Give one model, or only captures",
    )
    first: Any = sources[0]
    if captures:
        measured = tasks.redundancy_of_captures(captures)
    else:
        measured = tasks.redundancy(find_sample(first) if isinstance(first, str) else first)
    paths = [os.fspath(one) if _is_path(one) else getattr(one, "path", "") for one in sources]
    panel = tasks.redundancy_panel(Spec("redundancy", width=width, title=title), measured, paths)
    return Figure(lambda: panel, measured.to_dict, captures)


# --- sources --------------------------------------------------------------------------------------


def _is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(source, str | os.PathLike)


def is_capture(source: Any) -> bool:
    """Whether it is a capture, or the path of one."""
    if not _is_path(source):
        return isinstance(source, Capture)
    return os.path.lexists(find_sample(source)) and tasks.kind_of(os.fspath(source)) == "capture"


def _study_at(source: Any) -> Study | None:
    """The study at a path, None where there is none."""
    if _is_path(source) and os.path.isfile(source):
        path = os.fspath(source)
        return tasks.study_at(path) if tasks.kind_of(path) == "study" else None
    return None


def as_capture(
    source: Any,
    text: str | None = None,
    pair: str | None = None,
    target: str | None = None,
    item: int = 0,
    off: str = "",
    activation: str | None = None,
    device: str = "cpu",
) -> Capture:
    """A capture, the one at a path, or what a model makes of a text. Raises HgvizError."""
    if is_capture(source):
        for name, value in (("text", text), ("off", off), ("activation", activation)):
            require(
                not value,
                f"a capture takes no {name}: its text and model are fixed",
                f"Give a model instead, or leave out {name}",
            )
        if isinstance(source, Capture):
            return source
        return tasks.capture_at(find_sample(source), item)
    _require_model(source)  # before a text is missed
    require_input(text)
    model = as_model(source, device, activation=activation)
    prompt, second = tasks.read_prompts(model, text=text, pair=pair, target=target)
    heads_off = read_heads(off, model.spec)
    return tasks.capture(model, prompt, off=heads_off, target=second)


def _capture_like(
    source: Any, like: Capture, off: str, activation: str | None, device: str
) -> Capture:
    """What a model makes of the text of a capture."""
    _require_model(source)
    model = as_model(source, device, activation=activation)
    return tasks.capture_like(model, like, read_heads(off, model.spec))


def as_model(
    source: Any,
    device: str = "cpu",
    dtype: str = "float32",
    activation: str | None = None,
    reads: Modality = "text",
    tokenizer: Any = None,
) -> Model:
    """An open model: the one given, the one at a path, or one of transformers in memory.

    Raises HgvizError for anything else."""
    if _is_path(source):
        return tasks.load(find_sample(source), device, dtype, activation=activation, reads=reads)
    if hasattr(source, "save_pretrained"):
        from hgviz.models.huggingface import quiet

        with TemporaryDirectory(prefix="hgviz-") as place:
            folder = Path(place) / type(source).__name__
            with quiet():
                for part in filter(None, (source, tokenizer)):
                    part.save_pretrained(folder)
            return tasks.load(folder, device, dtype, activation=activation, reads=reads)
    require(
        hasattr(source, "trace"),
        f"{source!r:.40} is not a model that hgviz can open: it is neither a path, an open model, "
        "nor a model of transformers",
        "Name its projections: hgviz.capture(model, inputs, q=..., k=...)",
    )
    require(
        activation is None,
        "the activation of an open model cannot be replaced",
        "Give the path of the model instead",
    )
    model: Model = source
    return model


def require_input(*inputs: Any) -> None:
    """Require something that a model reads. Raises HgvizError."""
    require(
        any(one is not None for one in inputs),
        "a model needs a text",
        'Add one, such as text="The sand ran down."',
    )


def _require_model(source: Any) -> None:
    """Require a model, or a path that holds something. Raises HgvizError."""
    if _is_path(source):
        tasks.kind_of(os.fspath(source))
        return
    require(
        hasattr(source, "trace"),
        f"{source!r:.40} cannot be drawn",
        "Give a capture, a model, or the path of a capture, checkpoint or study",
    )


# --- options --------------------------------------------------------------------------------------


def _options(kind: str, kinds: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a kind by their names on the command line, without those that are None.

    Raises HgvizError for an unknown kind, TypeError for options that it does not have.
    """
    choose(kind, kinds, "kind of figure")
    names = COMMAND_NAMES | ({"fuse": "together"} if kind == "links" else {})
    options = {names.get(name, name): value for name, value in given.items()}
    if unknown := sorted(set(options) - set(options_of(kind)) - set(COMMON)):
        raise TypeError(f"a figure of kind {kind} has no option {unknown[0]!r}. {OTHER_OPTIONS}.")
    return {name: value for name, value in options.items() if value is not None}


def _layer_and_head(capture: Capture, layer: int | None, head: Head | None) -> dict[str, int]:
    """The head as options; none where none is chosen."""
    if layer is None and head is None:
        return {}
    chosen = _head(capture, layer, head)
    return {"layer": chosen.layer, "head": chosen.head}


def _head(capture: Capture, layer: int | None, head: Head | None) -> HeadId:
    """A head as a number in a layer, "12.5" or (12, 5); 0.0 by default."""
    if isinstance(head, str) and "." in head:
        heads = parse_heads(head, capture.spec.layers)
        require(len(heads) == 1, f"{head!r} names {len(heads)} heads", "Name one head")
        return next(iter(heads))
    if isinstance(head, tuple):
        return HeadId(*head)
    require(
        not isinstance(head, str) or head.isdecimal(),
        f"{head!r} does not name a head",
        "Write 5, or 3.5 with the layer",
    )
    return HeadId(layer or 0, int(head or 0))


# --- facts ----------------------------------------------------------------------------------------


def _facts(spec: Spec, capture: Capture) -> Facts:
    """What identifies a figure, the role and metrics of its head, and of links every one."""
    from hgviz.figures import output

    facts: Facts = dict(output.record(tasks.panel(spec, capture), [], Path("figure.svg")))
    head = spec.selection.head_id
    if spec.kind in ("map", "links"):
        role = layer_roles(capture, {head.layer}).get(head)
        if role is not None:
            metrics = {str(name): float(value) for name, value in role.metrics.items()}
            facts |= {"role": role.role, "sentence": role_sentence(role), "metrics": metrics}
    if spec.kind == "links":
        facts["links"] = _links(spec, capture)
    return facts


def _links(spec: Spec, capture: Capture) -> list[Facts]:
    """Every link: query and key by token and in words, the head, the weight."""
    from hgviz.maps.links import find_links

    links = find_links(capture, spec.selection, spec.links)
    heads = [links.fuse] if links.single and len(links.heads) > 1 else list(map(str, links.heads))
    return [
        {
            "query": links.queries.token(query), "from": links.queries.words(query),
            "key": links.keys.token(key), "to": links.keys.words(key), "head": head,
            "weight": weight,
        }
        for query, strands in links.strands.items()
        for head, strand in zip(heads, strands, strict=True)
        for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True)
    ]  # fmt: skip


def _figure_of_study(study: Study, kind: str, options: Mapping[str, Any]) -> Figure:
    kinds = [name for name, row in FIGURES.items() if row.of in ("study", "studies")]
    spec = spec_of(kind, _options(kind, kinds, options))
    chart = tasks.study_chart(kind, [study], spec.methods, spec.axis)

    def facts() -> Facts:
        names, *rows = chart.rows()
        return {**chart.about, "rows": [dict(zip(names, row, strict=True)) for row in rows]}

    return Figure(lambda: tasks.panel(spec, [study]), facts)
