"""The format "hgviz-capture": one row for each name in a file, which writes, reads and checks it.

docs/file-format.md describes the layout of the file; its tables are made from the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, TypeVar

import h5py
import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.core import (
    NO_STREAMING,
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
from hgviz.store.arrays import Stored, store, store_json, store_text
from hgviz.store.hdf5 import (
    Packing,
    Refused,
    Row,
    dataset,
    has,
    numbers,
    parsed,
    plain_dataset,
    require,
    subgroup,
    text,
)

FORMAT, VERSION = "hgviz-capture", (1, 8)
MANIFEST, ROOT, LAYER_FILE = "manifest.json", "root.h5", "layer-{:03}.h5"  # of a folder OUT.part
PART, ITEM, ITEM_FILE = ".part", "{:05}", "item-{:05}.h5"
ITEM_GROUPS = ("prompt", "target", "levels", "layers", "output")  # what each text has of its own
ITEM_LIMIT = 100_000
NAME_LIMIT = 200  # characters of the name of a model, layer, class or version
TEXT_LIMIT, LABEL_LIMIT, INDEX_LIMIT = 2000, 200, 6_000_000  # characters that an index keeps
LOGITS_IN_MEMORY = 64 << 20  # bytes; larger ones stay in the file

Built = TypeVar("Built")
Kind = Literal["", "lazy", "dense"]


@dataclass(frozen=True, slots=True)
class Field:
    """A dataset: where it lies, what it holds, and which attribute of which object that is.

    form: "JSON", "text", or the dimensions by name; those of one name agree, a number is a size.
    dtypes: as h5py names them, the first is written unless the values have another of them; "bool"
    is kept as u1. source: an attribute, seen from the object that its group describes. kind: only
    in layers of that kind. axis: the one that large datasets are cut along. checksum: "own", its
    crc32 (chunks have their own); "heads" and "summary", part of an attribute of the layer.
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

    @property
    def row(self) -> Row:
        """Dimensions, types and whether it is required, as hdf5.dataset checks them."""
        return _row(self.form, self.dtypes, self.required)


@cache
def _row(form: str, dtypes: str, required: bool) -> Row:
    return tuple(form.split()), tuple(dtypes.replace("bool", "u1").split()), required


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the group of a layer, with the object that it comes from, as in Field.

    form: "text", "names" (one a head, separated by spaces, "-" for None), "flag", "number",
    "integer", "positive" (an integer of at least 1) or "integers".
    """

    name: str
    form: Literal["text", "names", "flag", "number", "integer", "positive", "integers"]
    source: str
    meaning: str
    required: bool = True
    kind: Kind = ""


_OPERANDS = "f2 f4 f8 u2"
_HEADS: dict[str, Any] = {"kind": "lazy", "axis": 1, "checksum": "heads", "packing": "large"}
_TERMS: dict[str, Any] = {**_HEADS, "required": False}
_SUMMARY: dict[str, Any] = {"axis": 1, "checksum": "summary", "packing": "large"}

FIELDS: dict[str, tuple[Field, ...]] = {
    "/": (
        Field("spec", "JSON", "", "spec", "the model: family, name, levels, layers, width, ..."),
        Field("off", "JSON", "", "off", "heads switched off while capturing, [[layer, head], ...]"),
        Field("streaming", "JSON", "", "streaming", "heads that saw only so many of the first keys "
              "(sink) and of the latest (recent)", required=False),
        Field("made", "JSON", "", "made", "producer, created, device, dtype, seed, versions, "
              "checkpoint, masking, generated (what the model itself wrote of the text, and how)"),
        Field("index", "JSON", "", "items", "in files of many texts, [[number, text, tokens, "
              "label], ...] from 0; long texts are cut", required=False),
    ),
    "/prompt": (
        Field("text", "text", "", "text", "the text"),
        Field("pieces", "JSON", "", "pieces", "the tokens as the tokenizer names them"),
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
              "picture (channels, height, width), a sound (mel bins, frames) or (samples,)", False),
        Field("picture", "height width 3", "u1", "signal.picture", "what is seen of a picture",
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
        Field("threshold", "heads queries", "f4 f8", "factors.threshold", "with top_k: the least "
              "scaled score that weighs, -inf where all do, +inf where kept lists the keys",
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
        Field("value_norms", "heads keys", "f4", "map.value_norms", "what a key adds to the stream "
              "at weight 1, |v_j W_O|", False, axis=1, packing="large"),
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
    ),
    "/output": (
        Field("logits", "as the goal says", "f4 f8", "logits", "what the model answered: (classes,)"
              ', (2, positions) of "ends", else (positions, vocabulary, classes or width)', False),
    ),
}  # fmt: skip

ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("kind", "text", "kind", '"lazy", "streaming" (lazy, of which some heads stream) or '
              '"dense"'),
    Attribute("name", "text", "layer.name", "as the spec says it, with the next four"),
    Attribute("role", "text", "layer.role", '"self", "down", "up" or "cross"'),
    Attribute("level", "integer", "layer.level", "the level of the queries"),
    Attribute("key_level", "integer", "layer.key_level", "the level of the keys"),
    Attribute("heads", "integers", "layer.heads", "the heads' numbers"),
    Attribute("signed", "flag", "map.signed", "whether weights may be negative"),
    Attribute("causal", "flag", "causal", "whether later keys are hidden"),
    Attribute("stride_q", "positive", "rule.stride_q", "tokens a row stands for", kind="lazy"),
    Attribute("stride_k", "positive", "rule.stride_k", "tokens a column stands for", kind="lazy"),
    Attribute("scale", "number", "rule.scale", "what q . k is multiplied by", kind="lazy"),
    Attribute("windowed", "flag", "rule.windowed", "whether a row sees only its own group of "
              "max(stride_q, stride_k) tokens", kind="lazy"),
    Attribute("empty_rows", "text", "rule.empty_rows", 'what a row without a key reads: "zeros" or '
              '"uniform"', kind="lazy"),
    Attribute("activations", "names", "rule.activations", "one a head", kind="lazy"),
    Attribute("norms", "names", "rule.norms", 'one a head, "-" for none', kind="lazy"),
    Attribute("top_k", "positive", "rule.top_k", "how many keys a row of the activation topk has",
              False, "lazy"),
    Attribute("band", "integers", "rule.band", "(behind, ahead): a row sees columns from i - "
              "behind to i + ahead", False, "lazy"),
    Attribute("chunk", "positive", "rule.chunk", "a row sees its own chunk of so many columns",
              False, "lazy"),
    Attribute("softcap", "number", "rule.softcap", "c: a scaled score s becomes c tanh(s / c)",
              False, "lazy"),
    Attribute("near", "integers", "near", "two numbers for each head, see below; 0 0 for one that "
              "sees all", False, "lazy"),
    Attribute("unit", "integer", "unit", "of relative positions, -1 for distances backwards",
              False, "lazy"),
    Attribute("verify_max_abs", "number", "difference", "the largest difference between the proof "
              "rows and the tiles of the program that wrote the file", kind="lazy"),
    Attribute("crc32", "integers", "crc32", "one a head: over its q, k, stat, norm, threshold and "
              "relative terms, in this order, those that are there", kind="lazy"),
    Attribute("summary32", "integers", "summary32", "one a head: over its thumb, rowmax, entropy "
              "and hist", False),
    Attribute("committed", "integer", "committed", "1, written last"),
)  # fmt: skip


# --- rows at work ---------------------------------------------------------------------------------


def value_of(target: Any, source: str) -> Any:
    """The attribute that a dotted source names, None where there is none on the way."""
    for part in source.split("."):
        target = getattr(target, part, None)
    return target


def write_fields(group: h5py.Group, fields: Iterable[Field], target: Any) -> None:
    """Write the fields that an object has, in the order of their rows."""
    for field in fields:
        if (value := value_of(target, field.source)) is not None:
            write_field(group, field, value)


def write_field(group: h5py.Group, field: Field, value: Any) -> None:
    """Write one dataset by its row."""
    if field.form == "text":
        store_text(group, field.path, value)
        return
    if field.form == "JSON":
        store_json(group, field.path, value)
        return
    dimensions, dtypes, _ = field.row
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.str[1:] not in dtypes:
        array = array.astype(f"<{dtypes[0]}")
    if len(dimensions) == 2 and dimensions[1].isdecimal():
        array = array.reshape(-1, int(dimensions[1]))  # also of none
    packs = field.packing == "large"
    store(group, field.path, array, field.axis, field.checksum == "own", packs)


def read_fields(
    group: h5py.Group, fields: Iterable[Field], sizes: dict[str, int]
) -> dict[str, Any]:
    """The values of fields by their sources, None for those that are not there. Raises Refused."""
    values: dict[str, Any] = {}
    for field in fields:
        if not field.required and not has(group, field.path):
            values[field.source] = None
        elif field.form == "text":
            values[field.source] = text(group, field.path)
        elif field.form == "JSON":
            values[field.source] = parsed(group, field.path)
        elif field.form == "any":
            stored = plain_dataset(group, field.path, field.row[1])
            values[field.source] = readonly(numbers(stored))
        else:
            stored = dataset(group, field.path, field.row, sizes)
            dtype = bool if field.dtypes == "bool" else None
            values[field.source] = readonly(numbers(stored), dtype)
    return values


# --- the model, and how a capture was made --------------------------------------------------------


def plain(value: Any) -> Any:
    """JSON with every text as it can be shown: on one line, not endless, moving no other text."""
    if isinstance(value, str):
        return "".join(char if char.isprintable() else "\ufffd" for char in value[:NAME_LIMIT])
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


def convert(value: Any, kind: type[Built], noun: str) -> Built:
    """JSON as a value of a type; keys that a later version may add are passed over. Raises Refused
    that names the first part that does not fit."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Refused(f"{noun} does not fit: {str(error)[:NAME_LIMIT]}") from None


def spec_row(spec: ModelSpec) -> dict[str, Any]:
    """A spec as JSON, without those values of layers and levels that few models have."""
    data = asdict(spec)
    rare = {"shared": 1, "cuts": False, "parts": 1}
    for part in (*data["levels"], *data["layers"]):
        for name, usual in rare.items():
            if part.get(name, None) == usual:
                del part[name]
    return data


def read_spec(file: h5py.File) -> ModelSpec:
    """The model, checked. Raises Refused."""
    spec = convert(plain(parsed(file, "spec")), ModelSpec, "its spec")
    for index, level in enumerate(spec.levels):
        good = level.index == index and (level.stride is None or level.stride >= 1)
        good = good and 0 <= level.shift < 1 << 31 and level.apart in (0, 1) and level.parts >= 1
        require(good, f"level {index} of its spec does not fit: {level!r:.90}")
    for index, layer in enumerate(spec.layers):
        name = f"layer {index} of its spec"
        require(layer.index == index, f"{name} says that it is number {layer.index}")
        for at in (layer.level, layer.key_level):
            require(0 <= at < len(spec.levels), f"{name} is on level {at} of {len(spec.levels)}")
        require(layer.shared >= 1, f"{name} has {layer.shared} heads that share keys")
        good = len({*layer.heads}) == len(layer.heads) and min(layer.heads, default=0) >= 0
        require(good, f"{name} does not number its heads")
        good = len(layer.activations) == len(layer.heads) and {*layer.activations} <= {*ACTIVATIONS}
        require(good, f"{name} has other activations than this hgviz knows")
    return spec


def read_off(file: h5py.File) -> HeadSet:
    """The heads switched off. Raises Refused."""
    return convert(parsed(file, "off"), frozenset[HeadId], "its list of heads switched off")


def read_streaming(file: h5py.File, spec: ModelSpec) -> Streaming:
    """The heads that saw only the first keys and the latest. Raises Refused."""
    if not has(file, "streaming"):
        return NO_STREAMING
    noun, document = "its list of streaming heads", parsed(file, "streaming")
    streaming = convert(document, Streaming, noun)
    require({"heads", "sink", "recent"} <= {*document}, f"{noun} does not fit: a key is missing")
    sink, recent = streaming.window
    good = 0 <= sink < 1 << 31 and 1 <= recent < 1 << 31
    require(good, f"its heads that stream see {sink} first and {recent} latest keys")
    causal = {
        HeadId(layer.index, head)
        for layer in spec.layers if layer.can_stream for head in layer.heads
    }  # fmt: skip
    require(streaming.heads <= causal, "its heads that stream are not those of a causal layer")
    return streaming


def read_made(file: h5py.File) -> Provenance:
    """How the capture was made. Raises Refused."""
    return convert(plain(parsed(file, "made")), Provenance, "its provenance")


def write_root(
    file: h5py.File,
    spec: ModelSpec,
    off: HeadSet,
    made: Provenance,
    streaming: Streaming = NO_STREAMING,
    items: Iterable[Item] = (),
) -> None:
    """Write what a file says of itself, of the model and of all its texts."""
    mark_format(file)
    store_json(file, "spec", spec_row(spec))
    store_json(file, "off", sorted(off))
    if streaming.heads:
        store_json(file, "streaming", asdict(streaming) | {"heads": sorted(streaming.heads)})
    store_json(file, "made", asdict(made))
    if rows := list(items):
        limit = min(TEXT_LIMIT, 40 + INDEX_LIMIT // len(rows))  # so that it is read in a moment
        index = [[row.number, row.text[:limit], row.tokens, row.label[:LABEL_LIMIT]]
                 for row in rows]  # fmt: skip
        store_json(file, "index", index)


def mark_format(file: h5py.File) -> None:
    """Say that a file is a capture; first of all, since a desktop reads only its beginning."""
    file.attrs["format"] = np.bytes_(FORMAT)
    file.attrs["format_version"] = np.array(VERSION, "<i4")


def read_items(file: h5py.File) -> tuple[Item, ...]:
    """The texts that an index lists; none in a file of one text. Raises Refused."""
    if not has(file, "index"):
        return ()
    rows = convert(parsed(file, "index"), list[tuple[int, str, int, str]], "its index")
    require(len(rows) <= ITEM_LIMIT, f"its index lists more than {ITEM_LIMIT:,} texts")
    for at, (number, _, tokens, _) in enumerate(rows):
        require(number == at and tokens >= 0, f"text {at} of its index does not fit")
    return tuple(Item(number, words, tokens, plain(label)) for number, words, tokens, label in rows)


# --- texts, levels and answers --------------------------------------------------------------------


def write_texts(
    group: h5py.Group, prompt: Prompt, spans: Iterable[Integers], target: Prompt | None = None
) -> None:
    """Write what the model read, and the positions it made of it."""
    for name, words in (("prompt", prompt), ("target", target)):
        if words is not None:
            write_fields(group.create_group(name), FIELDS["/prompt"], words)
    (field,) = FIELDS["/levels/0"]
    for level, positions in enumerate(spans):
        write_field(group.require_group(f"levels/{level}"), field, positions)


def read_prompt(group: h5py.Group, name: str = "prompt") -> Prompt:
    """A text and its tokens. Raises Refused."""
    sizes: dict[str, int] = {}
    values = read_fields(subgroup(group, name), FIELDS["/prompt"], sizes)
    pieces = convert(values["pieces"], tuple[str, ...], "its list of tokens")
    require(len(pieces) == sizes["tokens"], "it does not name every token")
    _check_spans(values["spans"], len(values["text"]))
    parts = {
        source.removeprefix("signal."): values.pop(source)
        for source in [*values] if source.startswith("signal.")
    }  # fmt: skip
    signal = None
    if (array := parts["values"]) is not None:
        require(1 <= array.ndim <= 3 and parts["seconds"] is not None,
                "its picture or sound has other axes than one can have")  # fmt: skip
        require(np.isfinite(array).all(), "its picture or sound is no numbers")
        seconds = float(parts["seconds"][0])
        require(0 <= seconds < 1e6, f"its sound is {seconds} s long")
        if (grid := parts["grid"]) is not None:
            rows, columns = grid = tuple(map(int, grid))
            good = 0 < rows <= sizes["tokens"] and columns > 0 and rows * columns <= sizes["tokens"]
            require(good, "the patches of its picture are not its tokens")
        signal = Signal(**{**parts, "seconds": seconds, "grid": grid})
    return Prompt(**{**values, "pieces": pieces, "signal": signal})


def read_target(group: h5py.Group, spec: ModelSpec) -> Prompt | None:
    """The decoder's text, None where there is one text only. Raises Refused."""
    there = has(group, "target")
    require(there == spec.two_texts, "its spec and its texts disagree about a second text")
    return read_prompt(group, "target") if there else None


def read_levels(
    group: h5py.Group, spec: ModelSpec, prompt: Prompt, target: Prompt | None
) -> tuple[Integers, ...]:
    """The tokens behind every position of every level, each of its own text. Raises Refused."""
    tokens = {"source": len(prompt), "target": 0 if target is None else len(target)}
    found = []
    for level in spec.levels:
        inner = subgroup(group, f"levels/{level.index}")
        spans = read_fields(inner, FIELDS["/levels/0"], {})["spans"]
        # slots are no tokens: as many as there are
        _check_spans(spans, tokens.get(level.sequence, len(spans)))
        found.append(spans)
    return tuple(found)


def _check_spans(spans: Integers, limit: int) -> None:
    start, end = spans[:, 0], spans[:, 1]
    good = ((start == -1) & (end == -1)) | ((start >= 0) & (start <= end) & (end <= limit))
    require(good.all(), "it points at text or tokens that are not there")


def write_logits(group: h5py.Group, logits: NDArray[Any] | None) -> None:
    """Write what the model answered."""
    if logits is not None:
        values = np.asarray(logits)
        (field,) = FIELDS["/output"]
        write_field(
            group.require_group("output"), field,
            values if values.dtype == np.float64 else values.astype(np.float32),
        )  # fmt: skip


def read_logits(group: h5py.Group, path: str, spec: ModelSpec) -> Any:
    """What the model answered, None where it was not kept; large ones stay in the file. Raises
    Refused."""
    if not has(group, "output/logits"):
        return None
    shape = {"classes": ("classes",), "tags": ("positions", "classes"), "ends": ("2", "positions")}
    sizes = {"classes": len(spec.labels)} if spec.labels else {}
    (field,) = FIELDS["/output"]
    row = shape.get(spec.goal, ("positions", "vocabulary")), field.row[1], True
    stored = dataset(subgroup(group, "output"), field.path, row, sizes)
    assert stored is not None
    if stored.chunks is not None and stored.nbytes > LOGITS_IN_MEMORY:
        return Stored(stored, path)
    return readonly(numbers(stored))
