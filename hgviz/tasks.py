"""The verbs: what the two faces ask for. Each is a generator of steps that returns its result.

Heavy packages are imported when a verb needs them, so that importing this module costs nothing.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hgviz import __version__
from hgviz.core import (
    Capture,
    Floats,
    HeadId,
    HgvizError,
    Map,
    ModelSpec,
    Off,
    Prompt,
    Provenance,
    Step,
    Task,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hgviz.analysis.evaluation import Evaluation
    from hgviz.analysis.heads import HeadFacts
    from hgviz.figures import Spec
    from hgviz.maps import Factors
    from hgviz.models.model import Model
    from hgviz.models.training import Report

Path_ = str | Path


# --- opening --------------------------------------------------------------------------------------


def kind_of(path: Path_) -> Literal["checkpoint", "capture"]:
    """What a path holds, judged by content. Errors: HgvizError naming what can be opened."""
    from hgviz.models.cache import settled
    from hgviz.store import is_capture

    path = settled(path)
    if not os.path.lexists(path):
        raise HgvizError(f"there is no {path}", "no file or folder has that name", "Check the path")
    if is_capture(path):
        return "capture"
    from hgviz.models.readers import recognises

    if recognises(path):
        return "checkpoint"
    raise HgvizError(
        f"{path} cannot be opened",
        "it is neither a capture (.h5) nor a checkpoint folder with config.json and weights",
        "Choose the folder that holds config.json, or a file that hgviz capture wrote",
    )


def load(
    path: Path_,
    device: str = "auto",
    dtype: str = "float32",
    masking: str | None = None,
    activation: str | None = None,
) -> Task[Model]:
    """Open a checkpoint; activation: another one for all its heads, see models.replacement."""
    yield Step(0, 1, "loading torch")
    from hgviz.models import open_model

    yield Step(0.5, 1, f"reading {Path(path).name}")
    return open_model(path, device, dtype, masking, activation)


def info(path: Path_) -> dict[str, Any]:
    """What a path holds, as `hgviz info --json` prints it."""
    if kind_of(path) == "capture":
        from hgviz.store import describe

        return describe(path)
    from hgviz.models import open_model

    model = open_model(path)
    spec = model.spec
    levels = [
        {"index": one.index, "stride": one.stride, "key_shift": one.shift, "sequence": one.sequence}
        for one in spec.levels
    ]
    layers = [
        {
            "index": one.index, "name": one.name, "role": one.role, "level": one.level,
            "key_level": one.key_level, "heads": len(one.heads), "queries": None, "keys": None,
            "activations": list(one.activations),
        }
        for one in spec.layers
    ]  # fmt: skip
    return {
        "kind": "checkpoint", "family": spec.family, "name": spec.name, "form": spec.form,
        "width": spec.width, "vocabulary": spec.vocabulary, "parameters": spec.parameters,
        "max_positions": spec.max_positions, "goal": spec.goal, "labels": list(spec.labels),
        "levels": levels, "layers": layers, "items": 0,
        "complete": True, "masking": model.masking, "provenance": {"checkpoint": spec.digest},
    }  # fmt: skip


def prompt_from(
    model: Model,
    text: str | None = None,
    text_file: Path_ | None = None,
    ids_file: Path_ | None = None,
    pair: str | None = None,
    target: str | None = None,
) -> tuple[Prompt, Prompt | None]:
    """What a model is to read: the text and, where there is a decoder with a second, its text.

    One of text, text_file and ids_file is given; pair is a second text for the same input. For a
    decoder over given states the first is what stands for these. Errors: HgvizError naming what
    is wrong, and what a model of this form needs.
    """
    from hgviz.models import prompts

    return prompts.given(model, text, text_file, ids_file, pair, target)


def heads_from(text: str, spec: ModelSpec) -> Off:
    """The heads named by "3.5,4.*"; the empty string names none.

    Raises HgvizError for a name that is no head of this model.
    """
    known = {layer.index: layer.heads for layer in spec.layers}
    chosen: set[HeadId] = set()
    for item in filter(None, (part.strip() for part in text.split(","))):
        layer, dot, head = item.partition(".")
        if not (dot and layer.isdecimal() and (head == "*" or head.isdecimal())):
            raise HgvizError(
                f"{item!r} does not name a head",
                "a head is LAYER.HEAD, such as 3.5, or LAYER.* for a whole layer",
                "Separate several by commas",
            )
        heads = known.get(int(layer), ())
        wanted = heads if head == "*" else (int(head),)
        if int(layer) not in known or not set(wanted) <= set(heads):
            raise HgvizError(
                f"this model has no head {item}",
                f"its layers are 0 to {len(spec.layers) - 1}"
                + (f" and layer {layer} has heads {', '.join(map(str, heads))}" if heads else ""),
                "Run `hgviz info` on it to see every layer",
            )
        chosen.update(HeadId(int(layer), one) for one in wanted)
    return frozenset(chosen)


# --- capturing ------------------------------------------------------------------------------------


def capture(
    model: Model,
    prompt: Prompt,
    out: Path_ | None = None,
    off: Off = frozenset(),
    force: bool = False,
    target: Prompt | None = None,
) -> Task[Capture]:
    """Run a model on a prompt and keep what every layer attended with.

    Without `out` everything stays in memory and each Step carries the Capture so far; with it each
    layer goes to OUT.part at once, and the finished file is opened. A stopped capture loses
    nothing it had committed.
    """
    started = time.perf_counter()
    blank = Capture(
        spec=model.spec,
        prompt=prompt,
        spans=model.spans(prompt, target),
        maps=(None,) * len(model.spec.layers),
        off=off,
        made=_provenance(model),
        target=target,
    )
    if out is None:
        return (yield from _capture_in_memory(model, blank, started))
    return (yield from _capture_to_file(model, blank, Path(out), force, started))


def _capture_in_memory(model: Model, blank: Capture, started: float) -> Task[Capture]:
    from hgviz.maps import LazyMap, settled

    maps: list[Map | None] = list(blank.maps)
    layers = _Traced(model, blank)
    for index, factors in layers:
        maps[index] = LazyMap(settled(factors), model.spec.layers[index].heads)
        so_far = replace(blank, maps=tuple(maps))
        yield Step(index + 1, len(maps), f"layer {index}", so_far)
    made = replace(blank.made, seconds=time.perf_counter() - started)
    return replace(blank, maps=tuple(maps), logits=layers.logits, made=made)


def _capture_to_file(
    model: Model, blank: Capture, out: Path, force: bool, started: float
) -> Task[Capture]:
    from hgviz.store import Writer, open_capture

    total = len(blank.maps)
    with Writer(
        out, blank.spec, blank.prompt, blank.spans, blank.off, blank.made, force, blank.target
    ) as writer:
        layers = _Traced(model, blank)
        for index, factors in layers:
            if index not in writer.committed:
                writer.add(index, factors, settle=True)
            yield Step(index + 1, total, f"layer {index} is on disk")
        path = writer.finish(layers.logits, seconds=time.perf_counter() - started)
    return open_capture(path)


class _Traced:
    """The layers of one forward pass as they are done; logits when the last one was."""

    def __init__(self, model: Model, blank: Capture) -> None:
        self.model, self.blank = model, blank
        self.logits: NDArray[Any] | None = None

    def __iter__(self) -> Iterator[tuple[int, Factors]]:
        tapped: dict[int, Factors] = {}
        blank = self.blank
        steps = self.model.trace(blank.prompt, blank.target, off=blank.off, tap=tapped.__setitem__)
        while True:
            try:
                index = next(steps)
            except StopIteration as end:
                self.logits = end.value
                return
            yield index, tapped.pop(index)


def _provenance(model: Model) -> Provenance:
    packages = ("torch", "numpy", "h5py")
    return Provenance(
        producer=f"hgviz {__version__}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        device=model.device,
        dtype=model.dtype,
        versions=(
            ("python", platform.python_version()),
            *((package, version(package)) for package in packages),
        ),
        checkpoint=model.spec.digest,
        masking=model.masking,
    )


def save(capture: Capture, path: Path_, force: bool = False) -> Task[str]:
    """Write a capture that is in memory to a file."""
    from hgviz.store import write_capture

    yield Step(0, 1, f"writing {Path(path).name}")
    return str(write_capture(path, capture, force=force))


def convert(path: Path_, out: Path_, force: bool = False) -> Task[ModelSpec]:
    """Write any checkpoint as hgviz's own folder; force: into one that is not empty."""
    yield Step(0, 2, "loading torch")
    from hgviz.models import conversion, readers

    conversion.require_free(Path(out), force)
    found = readers.read(path)
    yield Step(1, 2, f"writing {Path(out).name}")
    return conversion.write(found, Path(out))


# --- looking --------------------------------------------------------------------------------------


def measure(capture: Capture) -> Task[dict[HeadId, HeadFacts]]:
    """What every head does, in numbers and words."""
    from hgviz.analysis import heads

    return (yield from heads.measure(capture))


def rollout(capture: Capture, rows: tuple[int, int] | None = None) -> Task[Floats]:
    """All maps composed into one token-to-token map, models.md A.8."""
    from hgviz.analysis import resolution

    yield Step(0, 1, "composing all maps")
    return resolution.rollout(capture, rows)


def figure(
    spec: Spec,
    capture: Capture,
    path: Path_,
    command: str = "",
    facts: Mapping[HeadId, HeadFacts] | None = None,
) -> Task[str]:
    """Draw a figure for a paper; facts: what is known of the heads, measured where it is needed."""
    from hgviz import figures

    if not facts and spec.kind == "levels":
        facts = yield from measure(capture)
    yield Step(0, 1, f"drawing {Path(path).name}")
    return str(figures.draw(spec, capture, path, facts=facts, command=command))


# --- training and scoring -------------------------------------------------------------------------


def train(config: Path_, out: Path_) -> Task[Report]:
    """Train a model from a TOML file into a folder; started again, it goes on where it was."""
    yield Step(0, 1, "loading torch")
    from hgviz.models import training

    return (yield from training.train(training.read_plan(config), out))


def evaluate(
    model: Model,
    data: Path_,
    text_column: str = "",
    label_column: str = "",
    off: Off = frozenset(),
) -> Task[Evaluation]:
    """Score a model: a classifier on labelled rows, a language model on a text.

    Each Step carries the Score so far: texts come in one random order, so it is unbiased and its
    interval shrinks. Errors: HgvizError for data that cannot be used and labels it never learnt.
    """
    from hgviz.analysis import evaluation
    from hgviz.models import text as texts
    from hgviz.models.labelled import read_rows

    spec, encode = model.spec, model.tokenizer.encode
    if spec.two_texts or spec.goal == "states":
        raise HgvizError(
            "this model cannot be scored",
            "it needs a second text" if spec.two_texts else "it gives hidden states, no answers",
            "Choose a classifier, a language model or a masked language model",
        )

    def run(ids: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
        return model.run(ids, mask if not mask.all() else None, off=off).logits

    yield Step(0, 1, f"reading {Path(data).name}")
    limit = spec.max_positions
    if spec.goal == "classes":
        rows = read_rows(data, text_column, label_column)
        wanted = rows.numbers(spec.labels)
        return (
            yield from evaluation.classify(
                run, lambda row: encode(rows.texts[row]), wanted, len(spec.labels), limit, off
            )
        )
    prompt = encode(texts.read_text(data))
    if spec.goal == "masked":
        named = encode("[MASK]")  # what stands for a hidden token, by the tokenizer's own name
        masks = [int(one) for one, piece in zip(named.ids, named.pieces, strict=True)
                 if piece in ("[MASK]", "<mask>")]  # fmt: skip
        if not masks:
            raise HgvizError("the tokenizer has no [MASK]", "", "Use the model's own tokenizer")
        return (yield from evaluation.fill_in(run, prompt, masks[0], limit, off))
    return (yield from evaluation.read_on(run, prompt, limit, off))


__all__ = [
    "capture", "convert", "evaluate", "figure", "heads_from", "info", "kind_of", "load", "measure",
    "prompt_from", "rollout", "save", "train",
]  # fmt: skip
