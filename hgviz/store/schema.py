"""The formats "hgviz-capture" and "hgviz-study": one row for each name in a file.

A row writes, reads and checks what it names, and is listed in docs/reference/fields.md.
docs/reference/file-format.md describes how the files are laid out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, get_args

import h5py
import msgspec
import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.core import (
    NO_STREAMING,
    Ablation,
    Capture,
    HeadId,
    HeadSet,
    Integers,
    Item,
    ModelSpec,
    Prompt,
    Provenance,
    Signal,
    Streaming,
    readonly,
)
from hgviz.examples import Asked
from hgviz.maps.rule import Norm
from hgviz.store import hdf5
from hgviz.store.hdf5 import Packing, Refused, has, require, store_attributes, subgroup
from hgviz.study import ARRAYS, UNKNOWN

CAPTURE, CAPTURE_VERSION = "hgviz-capture", (1, 8)
STUDY, STUDY_VERSION = "hgviz-study", (1, 5)
ROOT, WHOLE, LAYER_FILE = "root.h5", "whole.h5", "layer-{:03}.h5"  # of a folder OUT.part
PART, ITEM, ITEM_FILE = ".part", "{:05}", "item-{:05}.h5"
ITEM_GROUPS = ("prompt", "target", "levels", "layers", "output")  # what each text has of its own
ITEM_LIMIT = 100_000
NAME_LIMIT = 200  # characters of the name of a model, layer, class or version
TEXT_LIMIT, LABEL_LIMIT, INDEX_LIMIT = 2000, 200, 6_000_000  # characters that an index keeps
LOGITS_IN_MEMORY = 64 << 20  # bytes; larger ones stay in the file

Kind = Literal["", "lazy", "dense"]


# --- JSON documents -------------------------------------------------------------------------------

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Finite = Annotated[float, msgspec.Meta(gt=-(2.0**63), lt=2.0**63)]
Share = Annotated[float, msgspec.Meta(ge=-1, le=1)]
Score = tuple[str, Finite, Finite | None, Finite | None, Count, Count]
Index = Annotated[list[tuple[int, str, Count, str]], msgspec.Meta(max_length=ITEM_LIMIT)]


class StreamingHeads(msgspec.Struct):
    """Heads that saw few keys, as in Streaming."""

    heads: HeadSet
    sink: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    recent: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]


class About(msgspec.Struct):
    """What a study says of its data, as in Study."""

    asked: Asked
    metric: str
    data: str
    data_digest: str
    labels: tuple[str, ...]
    seed: Count
    texts: Count = 0
    ablation: Ablation = "zero"


# --- rows -----------------------------------------------------------------------------------------

ALLOWED: dict[str, Callable[[Any], Any]] = {
    "finite": np.isfinite,
    "finite or NaN": lambda values: ~np.isinf(values),
    "not NaN": lambda values: ~np.isnan(values),
    "0 or more": lambda values: np.isfinite(values) & (np.asarray(values) >= 0),
    "1 or more": lambda value: 1 <= value < 1 << 31,
    "more than 0": lambda values: np.isfinite(values) & (np.asarray(values) > 0),
    "two, 0 or more": lambda values: len(values) == 2 and 0 <= min(values) <= max(values) < 1 << 31,
    "ascending from 0 or more": lambda values: (
        (values[:1] >= 0).all() and (values[1:] > values[:-1]).all()
    ),
    f"-1, 0, 1 or {UNKNOWN}": lambda values: np.isin(values, (-1, 0, 1, UNKNOWN)),
    "zeros or uniform": lambda name: name in ("zeros", "uniform"),
    "l2, l2-literal or -": lambda names: {*names} <= {None, *get_args(get_args(Norm)[0])},
}


@dataclass(frozen=True, slots=True)
class Field:
    """A dataset, or an attribute of the group ("@name"): where it lies, what it holds, and which
    attribute of which object that is.

    form: "JSON" (texts in it are cut to a short line), "JSON as it is", "text", "any" shape, or the
    dimensions by name; those of one name agree, a number is a size.
    dtypes: as h5py names them, the first is written unless the values have another of them; "bool"
    is kept as u1. source: an attribute, seen from the object that its group describes. kind: only
    in layers of that kind. axis: the one that large datasets are cut along. checksum: "own", its
    crc32 (chunks have their own); "heads" and "summary", part of an attribute of the layer.
    Of an attribute form is "text", "names" (one a head, separated by spaces, "-" for None), "flag",
    "number", "integer" or "integers".
    document: the type of JSON. allowed: what its numbers are, "any" or a name of ALLOWED.
    """

    path: str
    form: str
    dtypes: str
    source: str
    meaning: str
    required: bool = True
    kind: Kind = ""
    axis: int = 0
    checksum: Literal["own", "heads", "summary", "none"] = "own"
    packing: Packing = "never"
    document: Any = Any
    allowed: str = "any"

    @property
    def attribute(self) -> str:
        """The name of an attribute, "" of a dataset."""
        return self.path[1:] if self.path[0] == "@" else ""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions by name or size."""
        return _words(self.form)

    @property
    def types(self) -> tuple[str, ...]:
        """The types as files have them."""
        return _words(self.dtypes)


@cache
def _words(words: str) -> tuple[str, ...]:
    return tuple(words.replace("bool", "u1").split())


_OPERANDS = "f2 f4 f8 u2"
_HEADS: dict[str, Any] = {"kind": "lazy", "axis": 1, "checksum": "heads", "packing": "large"}
_TERMS: dict[str, Any] = {**_HEADS, "required": False}
_SUMMARY: dict[str, Any] = {"axis": 1, "checksum": "summary", "packing": "large"}

_OF_LAYERS = (
    Field("@kind", "text", "", "kind", '"lazy", "streaming" (lazy, with streaming heads) or '
              '"dense"'),
    Field("@name", "text", "", "layer.name", "as the spec says it, with the next four"),
    Field("@role", "text", "", "layer.role", '"self", "down", "up" or "cross"'),
    Field("@level", "integer", "", "layer.level", "the level of the queries"),
    Field("@key_level", "integer", "", "layer.key_level", "the level of the keys"),
    Field("@heads", "integers", "", "layer.heads", "the heads' numbers"),
    Field("@signed", "flag", "", "map.signed", "whether weights may be negative"),
    Field("@causal", "flag", "", "causal", "whether later keys are masked"),
    Field("@stride_q", "integer", "", "rule.stride_q", "tokens a row stands for", kind="lazy",
              allowed="1 or more"),
    Field("@stride_k", "integer", "", "rule.stride_k", "tokens a column stands for", kind="lazy",
              allowed="1 or more"),
    Field("@scale", "number", "", "rule.scale", "what q . k is multiplied by", kind="lazy",
              allowed="finite"),
    Field("@windowed", "flag", "", "rule.windowed", "whether a row sees only its own group of "
              "max(stride_q, stride_k) tokens", kind="lazy"),
    Field("@empty_rows", "text", "", "rule.empty_rows", 'what a row without a key reads: "zeros" '
              'or "uniform"', kind="lazy", allowed="zeros or uniform"),
    Field("@activations", "names", "", "rule.activations", "one per head", kind="lazy"),
    Field("@norms", "names", "", "rule.norms", 'one per head, "-" for none', kind="lazy",
              allowed="l2, l2-literal or -"),
    Field("@top_k", "integer", "", "rule.top_k", "how many keys a row of the activation topk has",
              False, "lazy", allowed="1 or more"),
    Field("@band", "integers", "", "rule.band", "(behind, ahead): a row sees columns from i - "
              "behind to i + ahead", False, "lazy", allowed="two, 0 or more"),
    Field("@chunk", "integer", "", "rule.chunk", "a row attends within its chunk of c columns",
              False, "lazy", allowed="1 or more"),
    Field("@softcap", "number", "", "rule.softcap", "c: a scaled score s becomes c tanh(s / c)",
              False, "lazy", allowed="more than 0"),
    Field("@near", "integers", "", "near", "two numbers for each head, see below; 0 0 for one that "
              "sees all", False, "lazy"),
    Field("@unit", "integer", "", "unit", "of relative positions, -1 for distances backwards",
              False, "lazy"),
    Field("@verify_max_abs", "number", "", "difference", "the largest difference between the proof "
              "rows and the tiles of the program that wrote the file", kind="lazy"),
    Field("@crc32", "integers", "", "crc32", "one per head: over its q, k, stat, norm, threshold "
              "and relative terms, in this order, those that are there", kind="lazy"),
    Field("@summary32", "integers", "", "summary32", "one per head: over its thumb, rowmax, "
              "entropy and hist", False),
    Field("@committed", "integer", "", "committed", "1, written last"),
)  # fmt: skip

CAPTURE_FIELDS: dict[str, tuple[Field, ...]] = {
    "/": (
        Field("spec", "JSON", "", "spec", "the model: family, name, levels, layers, width, ...",
              document=ModelSpec),
        Field("off", "JSON", "", "off", "heads switched off while capturing, [[layer, head], ...]",
              document=HeadSet),
        Field("streaming", "JSON", "", "streaming", "streaming heads, and how many of the first "
              "keys (sink) and the latest (recent) they attend to", False, document=StreamingHeads),
        Field("made", "JSON", "", "made", "producer, created, device, dtype, seed, versions, "
              "checkpoint, masking, generated (how many tokens the model wrote, and how)",
              document=Provenance),
        Field("index", "JSON as it is", "", "items", "in files of many texts, [[number, text, "
              "tokens, label], ...] from 0; long texts are cut", False, document=Index),
    ),
    "/prompt": (
        Field("text", "text", "", "text", "the text"),
        Field("pieces", "JSON as it is", "", "pieces", "the tokens as the tokenizer names them",
              document=tuple[str, ...]),
        Field("ids", "tokens", "i8", "ids", "the tokens' numbers in the vocabulary"),
        Field("spans", "tokens 2", "i8", "spans",
              "half-open character offsets into the text, -1 -1 for none"),
        Field("attention_mask", "tokens", "bool", "attention_mask", "0 for padding", False),
        Field("token_type_ids", "tokens", "i8", "token_type_ids", "which text of a pair", False),
        Field("position_ids", "tokens", "i8", "position_ids",
              "positions in place of the model's own", False),
        Field("states", "tokens width", "f4", "states",
              "an encoder's states in place of a text", False),
        Field("boundaries", "tokens", "bool", "boundaries", "1 where a token closes a segment",
              False),
        Field("signal", "any", "f4", "signal.values", "what the model read in place of a text: a "
              "picture (channels, height, width), a sound (mel bins, frames) or (samples,)", False,
              allowed="finite"),
        Field("picture", "height width 3", "u1", "signal.picture", "the picture as shown",
              False),
        Field("grid", "2", "i8", "signal.grid",
              "rows and columns of the patches of a picture, its last positions", False),
        Field("seconds", "1", "f8", "signal.seconds", "how long a sound is", False),
    ),
    "/levels/0": (
        Field("spans", "positions 2", "i8", "spans", "the tokens behind each position: half-open "
              "ranges, -1 -1 for none; of the prompt, the target or of slots, as the level says"),
    ),
    "/layers/000": (
        Field("q", "heads queries d_head", _OPERANDS, "factors.q", "queries as the model computed "
              "them, after rotation; phi(q) of linear attention. bfloat16 is kept as its bits; the "
              "attribute dtype names it", **_HEADS),
        Field("k", "groups keys d_head", _OPERANDS, "factors.k",
              "keys likewise; head h of H has those of group h groups // H", **_HEADS),
        Field("stat", "heads queries", "f4 f8", "factors.stat", "the number that each row is "
              "normalised by, see below", **_HEADS),
        Field("norm", "heads queries", "f4 f8", "factors.norm",
              "the norms of rows where stat is another number", **_TERMS),
        Field("threshold", "heads queries", "f4 f8", "factors.threshold", "with top_k: the "
              "least scaled score with a weight, -inf if all have one, +inf if kept lists the keys",
              **_TERMS),
        Field("relative/weight", "heads d_head model", _OPERANDS, "rule.relative.weight",
              "W of Transformer-XL positions", **{**_TERMS, "axis": 2}),
        Field("relative/bias", "heads d_head", _OPERANDS, "rule.relative.bias", "b", **_TERMS),
        Field("relative/content", "heads d_head", _OPERANDS, "rule.relative.content", "u",
              **_TERMS),
        Field("relative/position", "heads d_head", _OPERANDS, "rule.relative.position", "v",
              **_TERMS),
        Field("relative/curve", "heads 2", _OPERANDS, "rule.relative.curve",
              "in place of these, a and c of quadratic positions", **_TERMS),
        Field("relative/diagonals", "heads distances", _OPERANDS, "rule.relative.values", "in "
              "place of these, what is added to q . k by distance, from the distance on that its "
              "attribute lowest names", **_TERMS),
        Field("kept", "pairs 3", "i4", "factors.kept", "head (its place), row and column of every "
              "key of a row whose threshold is +inf", False, "lazy"),
        Field("keep", "keys", "bool", "rule.keep", "0 for padded keys", False, "lazy"),
        Field("sinks", "heads", "f4 f8", "rule.sinks", "a logit of each head that takes part in "
              "the sum of every row and has no key", False, "lazy"),
        Field("runs", "heads runs", "u4", "runs", "of large maps: the crc32 of every 256 rows of "
              "the head's q, then k, and so on, in the order of crc32", False, "lazy"),
        Field("proof/rows", "rows", "i8", "factors.proof_rows",
              "rows that were computed in float64: eight, fewer of long maps", kind="lazy"),
        Field("proof/values", "heads rows keys", "f4", "factors.proof_values",
              "their weights", kind="lazy", axis=2, checksum="none", packing="large"),
        Field("weights", "heads queries keys", _OPERANDS, "map.array",
              "the maps themselves, in chunks (1, 256, 256); those never written are zeros",
              kind="dense", checksum="none", packing="always"),
        Field("value_norms", "heads keys", "f4", "map.value_norms", "size of what a key adds to "
              "the residual stream at weight 1, |v_j W_O|", False, axis=1, packing="large"),
        Field("mixture", "mixtures keys queries", "f4", "map.mixture", "where keys are slots, the "
              "part of the value of each token in that of each slot; (1, ...) where it is the same "
              "in all heads", False, axis=2),
        Field("thumb", "heads thumb_rows thumb_columns", "f2", "summary.thumb",
              "the map, max-pooled by a power of two to at most 128 x 128 cells", **_SUMMARY),
        Field("rowmax", "heads queries", "f4", "summary.rowmax", "the largest weight of each row",
              **_SUMMARY),
        Field("entropy", "heads queries", "f4", "summary.entropy", "the entropy of each row",
              **_SUMMARY),
        Field("hist", "heads 256", "u4", "summary.hist", "of large maps, how many cells of the "
              "finest max have each code", **{**_SUMMARY, "required": False}),
        Field("max/<zoom>", "heads rows columns", "u1", "levels.max", "large maps in cells of "
              "2^zoom x 2^zoom: the largest weight, by magnitude where signed, as codes", False,
              checksum="none", packing="always"),
        Field("mean/<zoom>", "heads rows columns", "u1", "levels.mean",
              "the mean over the cell's part inside the map, as codes", False, checksum="none",
              packing="always"),
        Field("ranges", "heads 2 2", "f4", "levels.ranges",
              "floor and maximum of the codes of max, of mean", False),
        *_OF_LAYERS,
    ),
    "/output": (
        Field("logits", "as the goal says", "f4 f8", "logits", "the output of the model: (classes,)"
              ', (2, positions) of "ends", else (positions, vocabulary, classes or width)', False),
    ),
}  # fmt: skip

STUDY_FIELDS: dict[str, tuple[Field, ...]] = {
    "/": (
        Field("spec", "JSON", "", "spec", "the model, as in a capture; its digest is that of the "
              "checkpoint", document=ModelSpec),
        Field("about", "JSON", "", "about", "asked (classes, next, masked, ...), metric, data (the "
              "name of its file), data_digest (of ids and answers), labels, seed (random "
              "seed), texts (since 1.3: how many texts the windows of a language model are of, 0 "
              "of a classifier), ablation (since 1.5: zero, mean or resample: what replaces the "
              "output of a head that is off)", document=About),
        Field("off", "JSON", "", "off", "[[layer, head], ...] off in every measurement; their "
              "columns are never measured", document=HeadSet),
        Field("made", "JSON", "", "made", "producer, created, device, dtype, versions, "
              "checkpoint, ...", document=Provenance),
        Field("heads", "heads 2", "i8", "heads", "layer and head of each column, in order of "
              "computation"),
        Field("places", "starts", "i8", "places", "where the places of each example begin, and "
              "their number; a place is where a prediction is scored: a class of a text, a token"),
        Field("lengths", "examples", "i8", "lengths", "tokens", allowed="0 or more"),
        Field("sizes", "examples", "f8", "sizes", "bytes of the targets", False,
              allowed="0 or more"),
        Field("wanted", "places", "i8", "wanted", "the class or the token that is right",
              allowed="0 or more"),
        Field("given", "places", "i8", "given", "prediction of the full model, -1 where there is "
              "none yet"),
        Field("loss", "places", "f4", "loss", "its loss in nats, NaN where there is none yet",
              allowed="finite or NaN"),
        *(Field(name, f"{row.rows} heads", row.dtype, f"arrays.{name}", row.meaning, False,
                allowed=f"-1, 0, 1 or {UNKNOWN}" if row.dtype == "i1" else "finite or NaN")
          for name, row in ARRAYS.items()),
        Field("saved_parameters", "heads 3", "f8", "saved_parameters", "since 1.4: parameters that "
              "`prune` removes with each head, with its key group once all heads of that are off, "
              "and with its layer likewise, below 0 where it keeps the weights of one head", False,
              allowed="finite"),
        Field("saved_flops", "heads 3", "f8", "saved_flops", "since 1.4: FLOPs likewise", False,
              allowed="finite"),
        Field("masks", "JSON", "", "masks", "[[name, [[layer, head], ...], score], ...]; score "
              "null or [metric, value, low, high, seen, total], null for a missing end of an "
              "interval", False, document=list[tuple[str, HeadSet, Score | None]]),
        Field("mask_changes", "JSON", "", "mask_changes", "since 1.1: for each of the masks null, "
              "or [difference of its score to the full model on the same places, low, high]",
              False, document=list[tuple[float, float, float] | None]),
    ),
    "/arrays": (
        Field("<name>", "examples heads", "f4", "arrays", "measurements of a score with its own "
              "array; a name has letters, digits and underscores", False,
              allowed="finite or NaN"),
    ),
    "/learned/000": (
        Field("@method", "text", "", "method", "how training learned the importance of heads"),
        Field("runs", "runs heads", "f4", "runs", "one row per seed", allowed="finite"),
        Field("note", "text", "", "note", "how, in words"),
    ),
    "/curves/000": (
        Field("@method", "text", "", "method", "the score that orders the heads, or random"),
        Field("@unit", "text", "", "unit", "what the metric is"),
        Field("@seed", "integer", "", "seed", "of a random order"),
        Field("order", "off 2", "i8", "order", "heads in the order of removal"),
        Field("removed", "points", "i8", "removed", "how many heads were off",
              allowed="ascending from 0 or more"),
        *(Field(name, "points", "f4 f8", name, meaning, allowed=allowed)
          for name, meaning, allowed in (
              ("values", "the metric", "finite"),
              ("low", "lower end of its 95 % interval, infinite where it has none", "not NaN"),
              ("high", "upper end", "not NaN"),
              ("loss", "mean loss in nats", "finite"),
              ("change", "paired change of the metric to the full model", "finite"),
              ("change_low", "lower end of its interval", "not NaN"),
              ("change_high", "upper end", "not NaN"))),
        Field("rows", "rows", "i8", "rows", "examples that it was measured on",
              allowed="ascending from 0 or more"),
        Field("times", "points 2", "f4", "times", "since 1.2: milliseconds of one pass over 16 "
              "texts on one core, of the full model and of the one without the heads that are off",
              False, allowed="more than 0"),
    ),
}  # fmt: skip


# --- rows at work ---------------------------------------------------------------------------------


def value_of(target: Any, source: str) -> Any:
    """The attribute or key that a dotted source names, None where there is none on the way."""
    for part in source.split("."):
        has_keys = isinstance(target, Mapping)
        target = target.get(part) if has_keys else getattr(target, part, None)
    return target


def write_fields(group: h5py.Group, fields: Iterable[Field], target: Any) -> None:
    """Write what an object or a dict has of some fields, in the order of their rows."""
    for field in fields:
        if (value := value_of(target, field.source)) is not None:
            write_field(group, field, value)


def write_field(group: h5py.Group, field: Field, value: Any) -> None:
    """Write one dataset or attribute by its row."""
    if field.attribute:
        if field.form == "names":
            value = " ".join(part or "-" for part in value)
        value = float(value) if field.form == "number" else value
        store_attributes(group.id, {field.attribute: value})
    elif field.form == "text":
        hdf5.store_text(group, field.path, value)
    elif field.form.startswith("JSON"):
        hdf5.store_text(group, field.path, json.dumps(to_json(value)))
    else:
        array = np.atleast_1d(np.asarray(value))
        if array.dtype.str[1:] not in field.types:
            array = array.astype(f"<{field.types[0]}")
        _, *sizes = field.dimensions
        if len(sizes) == 1 and sizes[0].isdecimal():
            array = array.reshape(-1, int(sizes[0]))  # also of none
        checked, packs = field.checksum == "own", field.packing == "large"
        hdf5.store(group, field.path, array, field.axis % array.ndim, checked, packs)


def to_json(value: Any) -> Any:
    """A value as JSON; of a spec without what few of its layers and levels have."""
    document = msgspec.to_builtins(value, order="deterministic")
    if isinstance(value, ModelSpec):
        usual = {"shared": 1, "cuts": False, "parts": 1}.items()
        for part in (*document["levels"], *document["layers"]):
            for name, number in usual:
                if part.get(name) == number:
                    del part[name]
    return document


def read_fields(
    group: h5py.Group, fields: Iterable[Field], sizes: dict[str, int] | None = None
) -> dict[str, Any]:
    """The values of fields by their sources, see nest; None for those that are not there.

    sizes: as of open_field. Raises Refused.
    """
    sizes = {} if sizes is None else sizes
    return nest({field.source: read_field(group, field, sizes) for field in fields})


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted names as dicts in dicts: {"a.b": 1} is {"a": {"b": 1}}."""
    nested: dict[str, Any] = {}
    for source, value in values.items():
        *parents, name = source.split(".")
        inner = nested
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = value
    return nested


def read_field(group: h5py.Group, field: Field, sizes: dict[str, int]) -> Any:
    """What an attribute or a small dataset holds, None for an optional one that is not there.
    Raises Refused."""
    if field.attribute:
        return _read_attribute(group, field)
    if not field.required and not has(group, field.path):
        return None
    if field.form == "text":
        return hdf5.read_text(group, field.path)
    if field.form.startswith("JSON"):
        document = hdf5.read_json(group, field.path)
        document = to_printable(document) if field.form == "JSON" else document
        try:  # keys that a later version may add are passed over
            return msgspec.convert(document, field.document)
        except (msgspec.ValidationError, RecursionError) as error:
            name = hdf5.name_of(group, field.path)
            raise Refused(f"{name} is invalid: {str(error)[:NAME_LIMIT]}") from None
    if field.form == "any":
        values = hdf5.read_numbers(hdf5.open_dataset(group, field.path, field.types))
    else:
        values = hdf5.read_numbers(open_field(group, field, sizes))
    if field.allowed != "any" and not np.all(ALLOWED[field.allowed](values)):
        name = hdf5.name_of(group, field.path)
        raise Refused(f"the numbers of {name} must be {field.allowed}")
    return readonly(values, bool if field.dtypes == "bool" else None)


def open_field(group: h5py.Group, field: Field, sizes: dict[str, int]) -> h5py.Dataset:
    """A dataset that fits its row and is read where it is sliced.

    sizes gives the dimensions known so far and takes those of this dataset. Raises Refused.
    """
    dataset = hdf5.open_dataset(group, field.path, field.types, field.packing)
    dimensions, shape = field.dimensions, dataset.shape
    if len(shape) != len(dimensions):
        many = f"{len(shape)} dimensions instead of {len(dimensions)}"
        raise Refused(f"{dataset.name} has {many}")
    for dimension, size in zip(dimensions, shape, strict=True):
        known = int(dimension) if dimension.isdecimal() else sizes.setdefault(dimension, size)
        if known != size:
            expected = ", ".join(str(sizes.get(name, name)) for name in dimensions)
            there = ", ".join(map(str, shape))
            raise Refused(f"{dataset.name} has the shape ({there}) instead of ({expected})")
    return dataset


_LIKE: dict[str, Any] = {
    "text": "", "names": "", "flag": False, "number": 0.0, "integer": 0, "integers": (),
}  # fmt: skip


def _read_attribute(group: h5py.Group, field: Field) -> Any:
    name = field.attribute
    if not field.required and not h5py.h5a.exists(group.id, name.encode()):
        return None
    value = hdf5.attribute(group, name, _LIKE[field.form])
    if field.form == "names":
        value = tuple(None if part == "-" else part for part in value.split())
    if field.allowed != "any" and not ALLOWED[field.allowed](value):
        what = f"the attribute {name} of {group.name} is {value!r:.40}"
        raise Refused(f"{what}, but must be {field.allowed}")
    return value


def to_printable(value: Any) -> Any:
    """JSON with every text as it can be shown: on one line, not endless, moving no other text."""
    if isinstance(value, str):
        return "".join(char if char.isprintable() else "\ufffd" for char in value[:NAME_LIMIT])
    if isinstance(value, dict):
        return {key: to_printable(part) for key, part in value.items()}
    return type(value)(map(to_printable, value)) if isinstance(value, list | tuple) else value


# --- what a file says of itself -------------------------------------------------------------------


def write_root(file: h5py.File, capture: Capture) -> None:
    """Write what a capture says of itself, of the model and of all its texts."""
    file.attrs["format"] = np.bytes_(CAPTURE)  # first of all: a desktop reads only the beginning
    file.attrs["format_version"] = np.array(CAPTURE_VERSION, "<i4")
    items, streaming = capture.items, capture.streaming
    limit = min(TEXT_LIMIT, 40 + INDEX_LIMIT // max(1, len(items)))  # so that it is read quickly
    index = [[item.number, item.text[:limit], item.tokens, item.label[:LABEL_LIMIT]]
             for item in items]  # fmt: skip
    write_fields(file, CAPTURE_FIELDS["/"], {
        "spec": capture.spec, "off": capture.off, "made": capture.made, "items": index or None,
        "streaming": streaming if streaming.heads else None,
    })  # fmt: skip


def read_root(file: h5py.File) -> dict[str, Any]:
    """What a capture says of itself, by the names of Capture. Raises Refused."""
    root = read_fields(file, CAPTURE_FIELDS["/"])
    spec = check_spec(root["spec"])
    streams = root["streaming"]
    streaming = Streaming(**msgspec.structs.asdict(streams)) if streams else NO_STREAMING
    root["streaming"] = streaming
    causal = {HeadId(layer.index, head)
              for layer in spec.layers if layer.can_stream for head in layer.heads}  # fmt: skip
    require(streaming.heads <= causal, "its streaming heads are not in causal layers")
    root["items"] = items = tuple(
        Item(number, words, tokens, to_printable(label))
        for number, words, tokens, label in root["items"] or ()
    )
    for at, item in enumerate(items):
        require(item.number == at, f"text {at} of its index is invalid")
    return root


def check_spec(spec: ModelSpec) -> ModelSpec:
    """The spec itself. Raises Refused where its parts contradict each other."""
    for index, level in enumerate(spec.levels):
        good = level.index == index and (level.stride is None or level.stride >= 1)
        good = good and 0 <= level.shift < 1 << 31 and level.apart in (0, 1) and level.parts >= 1
        require(good, f"level {index} of its spec is invalid: {level!r:.90}")
    for index, layer in enumerate(spec.layers):
        name, heads = f"layer {index} of its spec", layer.heads
        require(layer.index == index, f"{name} has the number {layer.index}")
        for at in (layer.level, layer.key_level):
            require(0 <= at < len(spec.levels), f"{name} is on level {at} of {len(spec.levels)}")
        require(layer.shared >= 1, f"{name} has {layer.shared} heads that share keys")
        good = len({*heads}) == len(heads) and min(heads, default=0) >= 0
        require(good, f"{name} has invalid head numbers")
        good = len(layer.activations) == len(heads) and {*layer.activations} <= {*ACTIVATIONS}
        require(good, f"{name} has activations that this hgviz does not support")
    return spec


# --- texts, levels and answers --------------------------------------------------------------------


def write_texts(group: h5py.Group, capture: Capture) -> None:
    """Write what the model read, and the positions it made of it."""
    write_fields(group.create_group("prompt"), CAPTURE_FIELDS["/prompt"], capture.prompt)
    if capture.target is not None:
        write_fields(group.create_group("target"), CAPTURE_FIELDS["/prompt"], capture.target)
    for level, positions in enumerate(capture.spans):
        inner = group.require_group(f"levels/{level}")
        write_fields(inner, CAPTURE_FIELDS["/levels/0"], {"spans": positions})


def read_texts(
    group: h5py.Group, spec: ModelSpec
) -> tuple[Prompt, Prompt | None, tuple[Integers, ...]]:
    """The text, a decoder's where there are two, and the tokens behind every position of every
    level, each of its own text. Raises Refused."""
    prompt = _read_prompt(subgroup(group, "prompt"))
    two = has(group, "target")
    require(two == spec.two_texts, "only one of its spec and its texts has a second text")
    target = _read_prompt(subgroup(group, "target")) if two else None
    limits = {"source": len(prompt), "target": len(target or ())}
    levels = []
    for level in spec.levels:
        inner = subgroup(group, f"levels/{level.index}")
        spans = read_fields(inner, CAPTURE_FIELDS["/levels/0"])["spans"]
        _check_spans(spans, limits.get(level.sequence, len(spans)))  # slots are no tokens
        levels.append(spans)
    return prompt, target, tuple(levels)


def _read_prompt(group: h5py.Group) -> Prompt:
    sizes: dict[str, int] = {}
    values = read_fields(group, CAPTURE_FIELDS["/prompt"], sizes)
    tokens = sizes["tokens"]
    require(len(values["pieces"]) == tokens, "it does not have a piece for every token")
    _check_spans(values["spans"], len(values["text"]))
    signal = values.pop("signal")
    if (array := signal["values"]) is None:
        return Prompt(**values)
    good = 1 <= array.ndim <= 3 and signal["seconds"] is not None
    require(good, "its picture or sound has an invalid shape")
    signal["seconds"] = seconds = float(signal["seconds"][0])
    require(0 <= seconds < 1e6, f"its sound has an invalid length of {seconds} s")
    if signal["grid"] is not None:
        signal["grid"] = rows, columns = tuple(map(int, signal["grid"]))
        good = 0 < rows <= tokens and columns > 0 and rows * columns <= tokens
        require(good, "the patches of its picture do not match its tokens")
    return Prompt(**values, signal=Signal(**signal))


def _check_spans(spans: Integers, limit: int) -> None:
    start, end = spans[:, 0], spans[:, 1]
    good = ((start == -1) & (end == -1)) | ((start >= 0) & (start <= end) & (end <= limit))
    require(good.all(), "it refers to text or tokens that do not exist")


def read_logits(group: h5py.Group, path: str, spec: ModelSpec) -> Any:
    """What the model answered, None where it was not kept; large ones stay in the file. Raises
    Refused."""
    if not has(group, "output/logits"):
        return None
    (field,) = CAPTURE_FIELDS["/output"]
    forms = {"classes": "classes", "tags": "positions classes", "ends": "2 positions"}
    field = replace(field, form=forms.get(spec.goal, "positions vocabulary"))
    sizes = {"classes": len(spec.labels)} if spec.labels else {}
    dataset = open_field(subgroup(group, "output"), field, sizes)
    if dataset.chunks is not None and dataset.nbytes > LOGITS_IN_MEMORY:
        return hdf5.Stored(dataset, path)
    return readonly(hdf5.read_numbers(dataset))
