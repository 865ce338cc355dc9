"""What a capture says about itself: model, text, levels and how it was made."""

from __future__ import annotations

from dataclasses import asdict, fields
from types import NoneType
from typing import Any, TypeVar, get_args

import h5py
import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.core import (
    NO_STREAMING,
    Goal,
    HeadId,
    HeadSet,
    Integers,
    Layer,
    Level,
    Modality,
    ModelSpec,
    Prompt,
    Provenance,
    Role,
    Side,
    Signal,
    Streaming,
    readonly,
)
from hgviz.store import schema
from hgviz.store.arrays import Stored
from hgviz.store.hdf5 import Refused, dataset, has, numbers, parsed, plain_dataset, subgroup, text

Built = TypeVar("Built")
LARGE = 64 << 20  # bytes of logits that are not read when a file is opened
MOST_NAME = 200  # characters of what a model, a layer, a class or a version is called
EMPTY_SPEC = ModelSpec("", "", (), (), 0, 0)
EMPTY_PROMPT = Prompt("", np.empty(0, np.int64), (), np.empty((0, 2), np.int64))

_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "float": (int, float),
    "int | None": (int, NoneType),
    "Role": (str,),
    "Goal": (str,),
    "Side": (str,),
    "Modality": (str,),
}


def read_spec(file: h5py.File) -> ModelSpec:
    """The model."""
    data = parsed(file, "spec")
    require(isinstance(data, dict), "its spec is not a table")
    for cls, rows in ((Level, data.get("levels")), (Layer, data.get("layers"))):
        require(isinstance(rows, list), f"its spec has no list of {cls.__name__.lower()}s")
        for index, row in enumerate(rows):
            name = f"{cls.__name__.lower()} {index} of its spec"
            _typed(cls, row, name)
            require(row["index"] == index, f"{name} says that it is number {row['index']}")
    _typed(ModelSpec, data, "its spec")
    _check_levels(data)
    _check_goal(data)
    for row in data["layers"]:
        _check_layer(row, len(data["levels"]))
    try:
        return spec_from(data)
    except (KeyError, TypeError) as error:
        raise Refused(f"its spec lacks something ({error})") from None


def spec_row(spec: ModelSpec) -> dict[str, Any]:
    """The table of a spec, in the fewest words: older versions tell it so."""
    data = asdict(spec)
    for layer in data["layers"]:
        if layer["shared"] == 1:
            del layer["shared"]
        if not layer["cuts"]:
            del layer["cuts"]
    for level in data["levels"]:
        if level["parts"] == 1:
            del level["parts"]
    return data


def spec_from(data: dict[str, Any]) -> ModelSpec:
    """The spec that its table describes; keys that a later version may add are passed over."""
    lists = ("heads", "activations")
    labels = tuple(data.get("labels", ()))
    levels = tuple(_build(Level, one) for one in data["levels"])
    layers = tuple(
        _build(Layer, {**one, **{name: tuple(one[name]) for name in lists}})
        for one in data["layers"]
    )
    return _build(ModelSpec, {**data, "levels": levels, "layers": layers, "labels": labels})


def _build(cls: type[Built], data: dict[str, Any]) -> Built:
    known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: plain(value) for name, value in data.items() if name in known})


def plain(value: Any) -> Any:
    """A name as it can be shown anywhere: of one line, not endless, nothing that moves other text;
    other values as they are."""
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return tuple(map(plain, value))
    if not isinstance(value, str):
        return value
    return "".join(one if one.isprintable() else "\ufffd" for one in value[:MOST_NAME])


def _typed(cls: type[Any], row: Any, name: str) -> None:
    """Numbers are numbers and names are names, for every field that is there."""
    require(isinstance(row, dict), f"{name} is not a table")
    for field in fields(cls):
        wanted = _TYPES.get(str(field.type))
        if wanted is None or field.name not in row:
            continue
        value = row[field.name]
        good = isinstance(value, wanted) and not isinstance(value, bool)
        require(good, f"{field.name} of {name} is {value!r:.40}")


def _check_levels(data: dict[str, Any]) -> None:
    for row in data["levels"]:
        stride, shift = row.get("stride", 1), row.get("shift", 0)
        good = (stride is None or stride >= 1) and 0 <= shift < 1 << 31
        require(good, f"level {row['index']} of its spec has stride {stride} and shift {shift}")
        apart = row.get("apart", 0)
        require(apart in (0, 1), f"level {row['index']} of its spec has {apart} tokens apart")
        parts = row.get("parts", 1)
        require(parts >= 1, f"level {row['index']} of its spec has {parts} parts of a segment")
        sequence = row.get("sequence", "source")
        require(sequence in get_args(Side), f"its spec knows a sequence {sequence!r:.40}")


def _check_goal(data: dict[str, Any]) -> None:
    goal, labels = data.get("goal", "next"), data.get("labels", [])
    require(goal in get_args(Goal), f"its spec has a goal {goal!r:.40}")
    modality = data.get("modality", "text")
    require(modality in get_args(Modality), f"its spec reads {modality!r:.40}")
    good = isinstance(labels, list) and all(isinstance(one, str) for one in labels)
    require(good, "the labels of its spec are no names")


def _check_layer(row: dict[str, Any], levels: int) -> None:
    name = f"layer {row['index']} of its spec"
    for key in ("level", "key_level", "role", "name", "heads", "activations", "causal"):
        require(key in row, f"{name} has no {key}")
    for key in ("level", "key_level"):
        require(0 <= row[key] < levels, f"{name} is on level {row[key]} of {levels}")
    require(row["role"] in get_args(Role), f"{name} has the role {row['role']!r:.40}")
    shared = row.get("shared", 1)
    require(shared >= 1, f"{name} has {shared} heads that share keys")
    cuts = row.get("cuts", False)
    require(isinstance(cuts, bool), f"{name} says {cuts!r:.40} of whether it cuts segments")
    heads, activations = row["heads"], row["activations"]
    good = isinstance(heads, list) and all(type(one) is int and one >= 0 for one in heads)
    require(good and len(set(heads)) == len(heads), f"{name} does not number its heads")
    good = isinstance(activations, list) and len(activations) == len(heads)
    good = good and all(isinstance(one, str) and one in ACTIVATIONS for one in activations)
    require(good, f"{name} has other activations than this hgviz knows")


def read_off(file: h5py.File) -> HeadSet:
    """The heads switched off."""
    return _heads(parsed(file, "off"), "heads switched off")


def read_streaming(file: h5py.File, spec: ModelSpec) -> Streaming:
    """The heads that saw the first keys and the latest."""
    if not has(file, "streaming"):
        return NO_STREAMING
    data = parsed(file, "streaming")
    require(isinstance(data, dict), "what it says of heads that stream is not a table")
    sink, recent = data.get("sink"), data.get("recent")
    good = type(sink) is int and type(recent) is int
    good = good and 0 <= sink < 1 << 31 and 1 <= recent < 1 << 31
    require(good, f"its heads that stream see {sink!r:.20} first and {recent!r:.20} latest keys")
    heads = _heads(data.get("heads"), "heads that stream")
    there = {HeadId(one.index, head) for one in spec.layers if one.can_stream for head in one.heads}
    require(heads <= there, "its heads that stream are not those of a causal layer")
    return Streaming(heads, sink, recent)


def _heads(rows: Any, what: str) -> HeadSet:
    good = isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 2 and all(type(one) is int for one in row)
        for row in rows
    )
    require(good, f"its list of {what} is no list of heads")
    return frozenset(HeadId(*row) for row in rows)


def read_made(file: h5py.File) -> Provenance:
    """How the capture was made."""
    data = parsed(file, "made")
    _typed(Provenance, data, "its provenance")
    versions = data.pop("versions", [])
    good = isinstance(versions, list) and all(
        isinstance(row, list) and [type(one) for one in row] == [str, str] for row in versions
    )
    require(good, "its list of versions is not one")
    return _build(Provenance, {**data, "versions": tuple(tuple(map(plain, v)) for v in versions)})


def read_prompt(file: h5py.File, name: str = "prompt") -> Prompt:
    """A text and its tokens."""
    group = subgroup(file, name)
    sizes = {"two": 2}
    found = {name: dataset(group, name, row, sizes) for name, row in schema.PROMPT.items()}
    values = {name: None if one is None else numbers(one) for name, one in found.items()}
    content, pieces = text(group, "text"), parsed(group, "pieces")
    good = isinstance(pieces, list) and all(isinstance(one, str) for one in pieces)
    require(good and len(pieces) == sizes["tokens"], "it does not name every token")
    spans = _spans(values["spans"], len(content))
    optional = ("attention_mask", "token_type_ids", "states", "boundaries", "position_ids")
    mask, types, states, ends, places = (values[one] for one in optional)
    return Prompt(
        text=content,
        ids=readonly(values["ids"]),
        pieces=tuple(pieces),
        spans=spans,
        attention_mask=None if mask is None else readonly(mask, bool),
        token_type_ids=None if types is None else readonly(types),
        states=None if states is None else readonly(states),
        boundaries=None if ends is None else readonly(ends, bool),
        signal=_signal(group, sizes["tokens"]),
        position_ids=None if places is None else readonly(places),
    )


def _signal(group: h5py.Group, tokens: int) -> Signal | None:
    """A picture or a sound, None where the prompt is a text."""
    if not has(group, "signal"):
        return None
    held, sizes = plain_dataset(group, "signal", ("f4",)), {"two": 2, "three": 3, "one": 1}
    require(1 <= len(held.shape) <= 3, "its picture or sound has other axes than one can have")
    found = {name: dataset(group, name, row, sizes) for name, row in schema.SIGNAL.items()}
    values = {name: None if one is None else numbers(one) for name, one in found.items()}
    signal, grid, picture = numbers(held), values["grid"], values["picture"]
    seconds = float(numbers(found["seconds"])[0])
    require(bool(np.isfinite(signal).all()), "its picture or sound is no numbers")
    require(0 <= seconds < 1e6, f"its sound is {seconds} s long")
    rows, columns = (0, 0) if grid is None else map(int, grid)
    good = grid is None or (0 < rows <= tokens and columns > 0 and rows * columns <= tokens)
    require(good, "the patches of its picture are not its tokens")
    shown = None if picture is None else readonly(picture)
    return Signal(readonly(signal), shown, (rows, columns) if rows else None, seconds)


def read_target(file: h5py.File, spec: ModelSpec) -> Prompt | None:
    """The decoder's text, None where there is one text only."""
    there = has(file, "target")
    require(there == spec.two_texts, "its spec and its texts disagree about a second text")
    return read_prompt(file, "target") if there else None


def read_levels(
    file: h5py.File, spec: ModelSpec, prompt: Prompt, target: Prompt | None
) -> tuple[Integers, ...]:
    """The tokens behind every position of every level, each within its own sequence."""
    group, out = subgroup(file, "levels"), []
    sizes = {"source": len(prompt), "target": 0 if target is None else len(target)}
    for level in spec.levels:
        row = (("positions", "two"), ("i8",), True)
        found = dataset(group, f"{level.index}/spans", row, {"two": 2})
        values = np.empty((0, 2), np.int64) if found is None else numbers(found)
        # slots are no tokens: as many as there are
        out.append(_spans(values, sizes.get(level.sequence, len(values))))
    return tuple(out)


def read_logits(file: h5py.File, path: str, spec: ModelSpec) -> Any:
    """What the model gave, None where it was not kept; of many tokens it stays in the file."""
    if not has(file, "output/logits"):
        return None
    shapes = {
        "classes": ("classes",), "tags": ("positions", "classes"), "ends": ("two", "positions"),
    }  # fmt: skip
    shape = shapes.get(spec.goal, ("positions", "vocabulary"))
    sizes = {"two": 2} | ({"classes": len(spec.labels)} if spec.labels else {})
    found = dataset(file, "output/logits", (shape, ("f4", "f8"), True), sizes)
    if found is None:
        return None
    if found.chunks is not None and found.size * found.dtype.itemsize > LARGE:
        return Stored(found, path)
    return readonly(numbers(found))


def _spans(values: Any, limit: int) -> Integers:
    start, end = values[:, 0], values[:, 1]
    none = (start == -1) & (end == -1)
    good = none | ((start >= 0) & (start <= end) & (end <= limit))
    require(bool(good.all()), "it points at text or tokens that are not there")
    return readonly(values)


def require(good: bool, what: str) -> None:
    if not good:
        raise Refused(what)
