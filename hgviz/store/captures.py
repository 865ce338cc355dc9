"""Captures on disk: opened complete or interrupted, written layer by layer or from the arrays of
any program, and described.

While a capture is made, the folder OUT.h5.part holds root.h5 (what is captured, all but layers and
output) and a file for each layer that is done. That of a corpus holds a file for
each text that is done; a long text grows in a folder of its own inside.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz import errors
from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.core import Capture, Item, Layer, Level, Map, ModelSpec, Prompt, readonly
from hgviz.errors import HgvizError
from hgviz.files import TEMPORARY, folder_lock, require_there, sync_folder
from hgviz.maps import DenseMap, Factors, LazyMap, Rule, with_statistics
from hgviz.maps.lazy import add_sinks
from hgviz.maps.rule import proof_rows
from hgviz.maps.tiles import Blocks, tile_blocks
from hgviz.store import hdf5, schema
from hgviz.store.hdf5 import attribute, has, open_file, reading, require, subgroup, writing
from hgviz.store.layers import read_layer, write_layer

IDENTITY = "identity"  # in the root of a folder: what an unfinished capture is of
LONG_TEXT = 2048  # tokens from which a text of a corpus is kept layer by layer
EMPTY_PROMPT = Prompt("", np.empty(0, np.int64), (), np.empty((0, 2), np.int64))


# --- opening --------------------------------------------------------------------------------------


def open_capture(path: str | Path, item: int = 0) -> Capture:
    """A capture whose maps are read from the file when they are sliced.

    item: which text, of a corpus that was captured in one file. Opens OUT.h5 and, of an
    interrupted capture, the folder OUT.h5.part: layers that were not committed are None, texts
    that were not begun are not listed, and a folder without any reads as a capture with no layers.
    Raises HgvizError for everything that is not a capture, damaged, or unsafe.
    """
    path = str(path)
    require_there(path)
    with reading(path):
        return _open_part(Path(path), item) if os.path.isdir(path) else _open_file(path, item)


def is_capture(path: str | Path) -> bool:
    """Whether a path is, or tries to be, a capture: its own format, or HDF5 that cannot be read."""
    path = str(path)
    if os.path.isdir(path):
        root = os.path.join(path, schema.ROOT)
        return path.rstrip("/").endswith(schema.PART) or bool(hdf5.has_format(root, schema.CAPTURE))
    return hdf5.has_format(path, schema.CAPTURE) is not False  # opening says why it cannot be read


def _open_file(path: str, item: int = 0) -> Capture:
    with _opened(path) as file:
        require(attribute(file, "complete", 0) == 1, "it was never completed")
        return _read_capture(file, path, item)


@contextmanager
def _opened(path: str | Path) -> Iterator[h5py.File]:
    """Open the file of a capture, which stays open for maps that are read from it later, but is
    closed after an error."""
    file = open_file(str(path))
    try:
        hdf5.check_format(file, schema.CAPTURE, schema.CAPTURE_VERSION, "capture")
        yield file
    except BaseException:
        file.close()
        raise


def _read_capture(file: h5py.File, path: str, item: int = 0, part: Path | None = None) -> Capture:
    """A text of an open file; part: the folder of its layers if they are not in the file."""
    root = schema.read_root(file)
    spec, items = root["spec"], root["items"]
    _require_item(path, item, items)
    group = subgroup(file, f"items/{schema.ITEM.format(item)}") if items else file
    prompt, target, spans = schema.read_texts(group, spec)
    maps: list[Map | None] = []
    for layer in spec.layers:
        name = f"layers/{layer.index:03}"
        inner = _layer_group(part, layer.index) if part else subgroup(group, name)
        positions = len(spans[layer.level])
        maps.append(None if inner is None else read_layer(inner, path, layer, positions))
    logits = schema.read_logits(group, path, spec)
    return Capture(
        **root, prompt=prompt, spans=spans, maps=tuple(maps), logits=logits, path=path,
        target=target, item=item,
    )  # fmt: skip


def _require_item(path: str, number: int, items: Iterable[Item], so_far: str = "") -> None:
    """Raise HgvizError for a text that is not there, with those that are."""
    numbers = [item.number for item in items] or [0]
    first, last, single = min(numbers), max(numbers), len(numbers) == 1
    texts = (
        f"1 text{so_far}, numbered {first:,}"
        if single
        else (f"{len(numbers):,} texts{so_far}, numbered {first:,} to {last:,}")
    )
    what = f"there is no text {number:,} in {path}: it holds {texts}"
    do = f"Choose text {first:,}" if single else "Choose one of them"
    errors.require(number in numbers, what, do)


# --- folders of captures that were interrupted ----------------------------------------------------


def _open_part(part: Path, item: int) -> Capture:
    finished = _finished_file(part)
    if finished is not None:
        return _open_file(str(finished), item)
    nothing = Capture(ModelSpec("", "", (), (), 0, 0), EMPTY_PROMPT, (), (), path=str(part))
    if not (part / schema.ROOT).is_file():
        is_empty = part.name.endswith(schema.PART) and not any(part.glob("*.h5"))
        require(is_empty, f"there is no {schema.ROOT} in this folder")
        return nothing
    with _opened(part / schema.ROOT) as file:
        if not has(file, "index"):
            return _read_capture(file, str(part), item, part)
        items = schema.read_root(file)["items"]
    file.close()

    def place_of(number: int) -> Path:
        file = part / schema.ITEM_FILE.format(number)
        return file if file.exists() else part_of(file)

    begun = tuple(text for text in items if place_of(text.number).exists())
    if not begun:
        return nothing
    _require_item(str(part), item, begun, " so far")
    place = place_of(item)
    capture = _open_part(place, 0) if place.is_dir() else _open_file(str(place))
    return replace(capture, path=str(part), item=item, items=begun)


def _layer_group(part: Path, index: int) -> h5py.Group | None:
    """The group of a layer in a folder, None where it is not there, damaged or not complete."""
    path = part / schema.LAYER_FILE.format(index)
    return subgroup(open_file(str(path)), "layer") if _is_complete(path) else None


def _read_identity(part: Path) -> dict[str, Any]:
    """What an unfinished capture is of; empty where nothing says so."""
    root = str(part / schema.ROOT)
    with suppress(HgvizError), reading(root), open_file(root) as file:
        identity = hdf5.read_json(file, IDENTITY)
        return identity if isinstance(identity, dict) else {}
    return {}


def _finished_file(part: Path) -> Path | None:
    """The finished file of a folder that was not removed, as when the process is killed between
    the two; None for a folder that still has something to give."""
    file, root = part.with_name(part.name.removesuffix(schema.PART)), part / schema.ROOT
    if file == part or not _is_complete(file):
        return None
    if not root.exists():  # its removal had begun
        return file
    with suppress(HgvizError):
        return file if _root_of(file) == _root_of(root) else None
    return None


def _root_of(path: Path) -> dict[str, Any]:
    """What a file of a capture says of itself, but how long it took."""
    with reading(str(path)), open_file(str(path)) as file:
        root = schema.read_root(file)
        return root | {"made": replace(root["made"], seconds=0.0)}


def _is_complete(path: Path) -> bool:
    """Whether a file of a capture, of a layer or of a text is there, complete and not damaged."""
    with suppress(HgvizError), reading(str(path)), open_file(str(path)) as file:
        return bool(attribute(file, "complete", 0) == 1)
    return False


def _has_layers(part: Path) -> bool:
    """Whether a folder holds anything to resume from: a layer, or a text of a corpus."""
    if any(part.glob("layer-*.h5")):
        return True
    return any(not text.is_dir() or _has_layers(text) for text in part.glob("item-*"))


def remove_part(part: Path) -> None:
    """Remove our own files and the folder, if nothing else is in it.

    The root goes first: without it, whatever is left after a kill is never resumed.
    """
    (part / schema.ROOT).unlink(missing_ok=True)
    for folder in part.glob("item-*.h5" + schema.PART):
        remove_part(folder)
    for pattern in ("item-*.h5", "layer-*.h5", schema.WHOLE, f"*{TEMPORARY}"):
        for file in part.glob(pattern):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        part.rmdir()


def part_of(path: Path) -> Path:
    """The folder in which a file grows."""
    return path.with_name(path.name + schema.PART)


def refuse_existing(path: Path, force: bool) -> None:
    """Raise HgvizError where there is a file already, unless force, or a folder; parts that stay
    beside a finished file, since the process that wrote it was killed, are removed."""
    part = part_of(path)
    if part.is_dir() and _finished_file(part):
        remove_part(part)
    hdf5.require_free(path, force, "capture")


# --- writing --------------------------------------------------------------------------------------


class _GrowingFile:
    """A file on its way: the folder that it grows in is begun, resumed, merged and removed.

    capture: what model, texts and settings it is of, its maps not looked at. texts: a digest of
    what is read, by its name in errors. committed: the numbers of the layers or texts that are on
    the disk. Raises HgvizError when the file exists (unless force), when the folder holds layers of
    another capture (unless force, which removes them), and when the disk is full or not writable.
    """

    noun, piece = "", ""  # what it grows by, and the name of the file of each

    def __init__(
        self,
        path: str | Path,
        capture: Capture,
        force: bool,
        texts: Mapping[str, str | None],
        wanted: Iterable[int],
    ) -> None:
        self.path = Path(path)
        self.part = part_of(self.path)
        self.capture, made = capture, capture.made
        self.wanted, self.committed = {*wanted}, set[int]()
        refuse_existing(self.path, force)
        model = json.dumps(schema.to_json(capture.spec), sort_keys=True)
        identity = {  # in words for people
            "format": schema.CAPTURE,
            "format version": list(schema.CAPTURE_VERSION),
            "model": hashlib.sha256(model.encode()).hexdigest(),
            "set of heads switched off": sorted(map(str, capture.off)),
            "set of heads that stream": capture.streaming.to_dict(),
            "masking": made.masking,
            "number format": made.dtype,
            "kind of maps": "weights" if made.dense else "factors",
            **texts,
        }
        with writing(self.path), ExitStack() as self._hold:
            if self._can_resume(identity, force):
                self.committed = {
                    number for number in self.wanted
                    if _is_complete(self.part / self.piece.format(number))
                }  # fmt: skip
                with suppress(HgvizError):
                    created = _root_of(self.part / schema.ROOT)["made"].created
                    self.capture = replace(capture, made=replace(made, created=created))
            else:
                self._begin(identity)
            self._hold = self._hold.pop_all()  # until it is finished

    def _can_resume(self, identity: Mapping[str, Any], force: bool) -> bool:
        """Whether the folder is that of the same capture; one of another is removed."""
        if not self.part.is_dir():
            return False
        self._hold.enter_context(folder_lock(self.part))
        for file in self.part.glob(f"*{TEMPORARY}"):
            file.unlink()
        if before := _read_identity(self.part):
            others = [name for name in identity if before.get(name) != identity[name]]
            if not others:
                return True
            if not force and _has_layers(self.part):
                raise HgvizError(
                    f"{self.part} is an unfinished capture with another "
                    f"{' and another '.join(others)}: it cannot be resumed with this one",
                    "Finish that one, choose another name, or start over with --force",
                )
        remove_part(self.part)  # or killed before there was anything to resume
        self._hold.close()
        return False

    def _begin(self, identity: Mapping[str, Any]) -> None:
        errors.require(
            self.part.is_dir() or not self.part.exists(),
            f"{self.part} is a file: an unfinished capture needs a folder of that name",
            "Move it, or choose another name",
        )
        self.part.mkdir(exist_ok=True)
        self._hold.enter_context(folder_lock(self.part))
        try:
            with hdf5.whole_hdf5(self.part / schema.ROOT) as file:
                self._write_root(file)
                hdf5.store_text(file, IDENTITY, json.dumps(identity))
        except BaseException:
            remove_part(self.part)
            raise

    def _write_root(self, file: h5py.File) -> None:
        schema.write_root(file, self.capture)

    @contextmanager
    def _write(self, path: Path) -> Iterator[h5py.File]:
        """Open a file that is written whole or not at all; an error says what stays on the disk."""
        done = f"{len(self.committed):,} of {len(self.wanted):,} {self.noun}"
        stays = f"{done} are saved in {self.part.name}" if self.committed else "nothing was saved"
        with writing(self.path, stays), hdf5.whole_hdf5(path) as file:
            yield file

    @contextmanager
    def _merge(self, seconds: float) -> Iterator[h5py.File]:
        """Open the finished file to write, all but layers in it; the folder is removed once it is
        there. Raises ValueError where layers or texts are missing."""
        _require_all(self.wanted, self.committed)
        made = replace(self.capture.made, seconds=seconds)
        self.capture = replace(self.capture, made=made)
        with self._write(self.part / schema.WHOLE) as file:
            self._write_root(file)
            yield file
            file.attrs["complete"] = 1
        with writing(self.path):
            os.replace(self.part / schema.WHOLE, self.path)
            sync_folder(self.path.parent)
            remove_part(self.part)
            self._hold.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not _has_layers(self.part):
            remove_part(self.part)
        self._hold.close()


class LayerWriter:
    """A text that layers are added to, in any order."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.committed: set[int] = set()
        self._layers = {layer.index: layer for layer in layers}

    def _new_group(self, index: int) -> AbstractContextManager[h5py.Group]:
        raise NotImplementedError

    def add(
        self,
        index: int,
        layer: Factors | DenseMap,
        settle: bool = False,
        blocks: Blocks = tile_blocks,
    ) -> None:
        """Write a layer; a Writer's is on the disk when this returns.

        settle: with the statistics that hgviz.maps.recompute_statistics gives, at no extra cost.
        blocks: how weights are computed, such as by a device that is faster.
        """
        with self._new_group(index) as group:
            write_layer(group, self._layers[index], layer, settle, blocks)
        self.committed.add(index)


class Writer(LayerWriter, _GrowingFile):
    """A capture on its way to a file: OUT.part holds every layer that was added.

    Opened on the OUT.part of an interrupted capture of the same model, text, masking, number
    format and heads that are switched off or stream, it resumes that. Raises HgvizError when OUT
    exists (unless force), when OUT.part holds another capture (unless force, which starts anew),
    and when the disk is full or not writable.
    """

    noun, piece = "layers", schema.LAYER_FILE

    def __init__(self, path: str | Path, capture: Capture, force: bool = False) -> None:
        LayerWriter.__init__(self, capture.spec.layers)
        target = capture.target
        texts = {
            "text": _fingerprint(capture.prompt),
            "text of the decoder": None if target is None else _fingerprint(target),
        }
        capture = replace(capture, items=())  # also of a text of a corpus
        _GrowingFile.__init__(self, path, capture, force, texts, self._layers)

    def _write_root(self, file: h5py.File) -> None:
        super()._write_root(file)
        schema.write_texts(file, self.capture)

    @contextmanager
    def _new_group(self, index: int) -> Iterator[h5py.Group]:
        with self._write(self.part / self.piece.format(index)) as file:
            yield file.create_group("layer")
            file.attrs["complete"] = 1

    def finish(self, logits: NDArray[Any] | None = None, seconds: float = 0.0) -> Path:
        """Merge all layers into OUT and remove OUT.part. Raises HgvizError, and ValueError where
        layers are missing."""
        with self._merge(seconds) as file:
            layers = file.require_group("layers")
            for index in sorted(self.committed):
                # HDF5 copies chunks as they are, without unpacking them
                with h5py.File(self.part / schema.LAYER_FILE.format(index), "r") as part:
                    part.copy(part["layer"], layers, name=f"{index:03}")
            _finish_text(file, logits)
        return self.path


class CorpusWriter(_GrowingFile):
    """Captures of many texts on their way to one file: OUT.part holds every text that is done.

    capture: its items are all texts there are to be, numbered from 0. digest: of all that is read,
    texts, pairs and targets. Opened on the OUT.part of the same, it resumes that. Raises
    HgvizError, as Writer, and for more texts than a file takes.
    """

    noun, piece = "texts", schema.ITEM_FILE

    def __init__(
        self, path: str | Path, capture: Capture, digest: str, force: bool = False
    ) -> None:
        count = len(capture.items)
        errors.require(
            0 < count <= schema.ITEM_LIMIT,
            f"cannot capture {count:,} texts in one file: it takes 1 to {schema.ITEM_LIMIT:,}",
            "Use several files",
        )
        super().__init__(path, capture, force, {"corpus": digest}, range(count))

    @contextmanager
    def item(self, number: int, capture: Capture) -> Iterator[Writer | _ShortText]:
        """What takes the layers of one text; after its finish the text is on the disk."""
        path = self.part / schema.ITEM_FILE.format(number)
        capture = replace(capture, made=self.capture.made, items=())
        if max(len(capture.prompt), len(capture.target or ())) < LONG_TEXT:
            with self._write(path) as file:
                schema.write_root(file, capture)
                schema.write_texts(file, capture)
                yield _ShortText(file, capture.spec.layers)
        else:
            with Writer(path, capture, force=True) as writer:
                yield writer
        self.committed.add(number)

    def finish(self, seconds: float = 0.0) -> Path:
        """Merge all texts into OUT and remove OUT.part. Raises HgvizError, and ValueError where
        texts are missing."""
        with self._merge(seconds) as file:
            items = file.create_group("items")
            for number in sorted(self.committed):
                group = items.create_group(schema.ITEM.format(number))
                with h5py.File(self.part / schema.ITEM_FILE.format(number), "r") as text:
                    for name in schema.ITEM_GROUPS:
                        if name in text:
                            text.copy(text[name], group, name=name)
                for index, layer in group["layers"].items():
                    _share("relative", layer, items[schema.ITEM.format(0)]["layers"][index])
        return self.path


class _ShortText(LayerWriter):
    """A text of a corpus that is written in one go: its file has its name once it is complete."""

    def __init__(self, file: h5py.File, layers: Sequence[Layer]) -> None:
        super().__init__(layers)
        self._file = file

    def _new_group(self, index: int) -> AbstractContextManager[h5py.Group]:
        return nullcontext(self._file.create_group(f"layers/{index:03}"))

    def finish(self, logits: NDArray[Any] | None = None, seconds: float = 0.0) -> None:
        """Say that the text is complete. Raises ValueError where layers are missing."""
        _require_all({*self._layers}, self.committed)
        _finish_text(self._file, logits)
        self._file.attrs["complete"] = 1


def _require_all(wanted: set[int], committed: set[int]) -> None:
    if missing := sorted(wanted - committed):
        raise ValueError(f"{missing} were not added")


def _finish_text(group: h5py.Group, logits: NDArray[Any] | None) -> None:
    """Write the logits; of mixtures that layers have in common only the first stays, and links."""
    layers = group.require_group("layers")
    mixed = [layer for layer in layers.values() if "mixture" in layer]
    for layer in mixed[1:]:
        _share("mixture", layer, mixed[0])
    if logits is not None:
        output, fields = group.require_group("output"), schema.CAPTURE_FIELDS["/output"]
        schema.write_fields(output, fields, {"logits": np.asarray(logits)})


def _share(name: str, layer: h5py.Group, first: h5py.Group) -> None:
    """Have a layer share what lies under a name with the first one, where that is the same."""
    if layer == first or name not in layer or name not in first:
        return
    both = (group[name] for group in (layer, first))
    arrays = ([one] if isinstance(one, h5py.Dataset) else [*one.values()] for one in both)
    if all(map(np.array_equal, *arrays)):
        del layer[name]
        layer[name] = first[name]


def _fingerprint(prompt: Prompt) -> str:
    return hashlib.sha256((prompt.digest + prompt.text).encode(errors="replace")).hexdigest()


def write_capture(
    path: str | Path,
    capture: Capture | None = None,
    force: bool = False,
    *,
    tokens: Sequence[str] = (),
    layers: Sequence[Mapping[str, Any]] = (),
    name: str = "model",
    logits: Any = None,
) -> Path:
    """Write a capture to one file: a complete one, or the arrays of any program (see
    capture_of). Raises HgvizError, also for a capture that is not complete."""
    if capture is None:
        refuse_existing(Path(path), force)  # before anything is computed
        capture = capture_of(tokens, layers, name, logits)
    errors.require(
        capture.complete,
        "this capture is not complete: "
        f"{sum(maps is None for maps in capture.maps)} of its layers are missing",
        "Complete the capture, then save it",
    )
    with Writer(path, capture, force) as writer:
        for index, maps in enumerate(capture.maps):
            if index in writer.committed:
                continue
            if not isinstance(maps, LazyMap | DenseMap):
                raise TypeError(f"a {type(maps).__name__} cannot be stored")
            writer.add(index, maps.factors if isinstance(maps, LazyMap) else maps)
        return writer.finish(capture.logits, capture.made.seconds)


# --- captures from any program --------------------------------------------------------------------

KEYS = ("q", "k", "weights", "scale", "activation", "norm", "causal", "keep", "name")
NORMS = (None, "l2", "l2-literal")
FROM_SCORES = tuple(name for name in ACTIVATIONS if name != "topk")  # whose choices are its own


def capture_of(
    tokens: Sequence[str],
    layers: Sequence[Mapping[str, Any]],
    name: str = "model",
    logits: Any = None,
) -> Capture:
    """A capture of one text from any program.

    tokens: what each position reads, with its spaces where it has some. layers: one dict each, in
    order of computation, with either "q" (heads, n, d_head) and "k" (heads or fewer, n, d_head),
    the operands of the product after rotation, or "weights" (heads, n, n). Beside q and k: "scale"
    (1 / sqrt(d_head)), "activation" (softmax), "norm" (l2 for ymish, else none), "causal" (False)
    and "keep" (n,), False for padded keys; "name" for either. logits (n, vocabulary) or None.
    Raises HgvizError naming the layer that does not fit.
    """
    pieces = [*map(str, tokens)]
    count, enough = len(pieces), bool(len(tokens) and len(layers))
    errors.require(enough, "there is nothing to save: tokens or layers are empty", "Give both")
    answers, has_logits = _array(logits), logits is not None
    fits = answers.dtype.kind in "fiu" and answers.shape[:-1] == (count,)
    why = f"they are {answers.dtype} {answers.shape}, for {count:,} tokens"
    do = "Give an array (tokens, vocabulary)"
    errors.require(fits or not has_logits, f"the logits cannot be saved: {why}", do)
    made, maps = [], []
    for index, arrays in enumerate(layers):
        try:
            layer_map = _map_of(arrays, count)
        except HgvizError as error:
            what = f"layer {index} cannot be saved: {error.what}"
            raise HgvizError(what, error.do) from None
        is_lazy = isinstance(layer_map, LazyMap)
        activation = arrays.get("activation", "softmax") if is_lazy else "softmax"
        activations = (str(activation),) * len(layer_map.heads)
        named, causal = arrays.get("name", f"layer.{index}"), bool(arrays.get("causal", False))
        made.append(
            Layer(index, _one_line(named), "self", 0, 0, layer_map.heads, activations, causal)
        )
        maps.append(layer_map)
    lazy = [layer_map for layer_map in maps if isinstance(layer_map, LazyMap)]
    widths = [len(layer_map.heads) * layer_map.factors.q.shape[2] for layer_map in lazy]
    spec = ModelSpec(
        family="given", name=_one_line(name), levels=(Level(0),), layers=tuple(made),
        width=max(widths, default=0), vocabulary=answers.shape[1] if has_logits else 0,
    )  # fmt: skip
    # one token after the other; with a space between where none brings its own
    between = "" if any(piece != piece.strip() for piece in pieces) else " "
    lengths = np.array([*map(len, pieces)], np.int64)
    ends = np.cumsum(lengths + len(between)) - len(between)
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    ids = readonly(np.array([vocabulary[piece] for piece in pieces], np.int64))
    spans = readonly(np.stack([ends - lengths, ends], axis=1))
    prompt = Prompt(between.join(pieces), ids, tuple(pieces), spans)
    places = np.arange(count, dtype=np.int64)
    own = readonly(np.stack([places, places + 1], axis=1))
    return Capture(spec, prompt, (own,), tuple(maps), logits=answers if has_logits else None)


def _one_line(name: Any) -> str:
    return "".join(char if char.isprintable() else " " for char in str(name)[: schema.NAME_LIMIT])


def _map_of(arrays: Mapping[str, Any], tokens: int) -> LazyMap | DenseMap:
    fits = isinstance(arrays, Mapping)
    errors.require(fits, f"it is a {type(arrays).__name__}", "Give a dict with q and k")
    unknown = sorted(map(str, arrays.keys() - {*KEYS}))
    errors.require(not unknown, f"it has unknown keys {unknown[:1]}; known are {', '.join(KEYS)}")
    causal = arrays.get("causal", False)
    errors.require(isinstance(causal, bool | np.bool_), "causal is neither True nor False")
    if "weights" not in arrays:
        factors = _factors_of(arrays, tokens, bool(causal))
        return LazyMap(factors, tuple(range(len(factors.q))))
    weights = _head_array(arrays, "weights")
    fits = weights.shape[1:] == (tokens, tokens)
    errors.require(fits, f"weights are {weights.shape}, for {tokens:,} tokens")
    heads, signed = tuple(range(len(weights))), bool((weights < 0).any())
    return DenseMap(weights, heads, signed=signed, causal=bool(causal))


def _factors_of(arrays: Mapping[str, Any], tokens: int, causal: bool) -> Factors:
    q, k = _head_array(arrays, "q"), _head_array(arrays, "k")
    fits = q.shape[1] == tokens and k.shape[1:] == q.shape[1:] and len(q) % max(1, len(k)) == 0
    errors.require(fits, f"q is {q.shape} and k {k.shape}, for {tokens:,} tokens")
    k = np.repeat(k, len(q) // len(k), axis=0)  # grouped heads share their keys
    activation = str(arrays.get("activation", "softmax"))
    errors.require(
        activation in FROM_SCORES,
        f"{activation!r} cannot be computed from q and k; {', '.join(FROM_SCORES)} can",
        "Give weights in place of q and k",
    )
    act = ACTIVATIONS[activation]
    norm = arrays.get("norm", act.norm)
    errors.require(norm in NORMS, f"unknown norm {norm!r}; choose l2 or l2-literal")
    keep: Any = None if arrays.get("keep") is None else _array(arrays["keep"])
    fits = keep is None or keep.shape == (tokens,)
    errors.require(fits, f"keep is {np.shape(keep)}, for {tokens:,} tokens")
    if act.features is not None:
        q, k = act.features(q, np), act.features(k, np)
    scale = _array(arrays.get("scale", q.shape[2] ** -0.5))
    finite = scale.ndim == 0 and scale.dtype.kind in "fiu" and np.isfinite(scale)
    errors.require(finite, "its scale is not a finite number")
    longest = [np.linalg.norm(part.astype(np.float64), axis=2).max() for part in (q, k)]
    dtype = np.float64 if q.dtype == np.float64 else np.float32
    with np.errstate(over="ignore"):  # no score is larger than this (Cauchy-Schwarz)
        largest = longest[0] * longest[1] * max(1.0, abs(float(scale)))
    fits = largest < np.finfo(dtype).max
    errors.require(fits, f"products of q and k are too large for {np.dtype(dtype)}")
    heads = len(q)
    keep = None if keep is None else keep.astype(bool)
    rule = Rule(float(scale), (activation,) * heads, (norm,) * heads, causal=causal, keep=keep)
    rows = proof_rows(tokens, tokens)
    proof = np.stack([_exact_rows(q, k, rule, place, rows) for place in range(heads)])
    return with_statistics(Factors(q, k, np.zeros(q.shape[:2]), rule, rows, proof, q.dtype.name))


def _exact_rows(
    q: NDArray[Any], k: NDArray[Any], rule: Rule, place: int, rows: NDArray[Any]
) -> NDArray[np.float32]:
    """The weights (rows, keys) of rows of one head, computed in float64."""
    act, norm = ACTIVATIONS[rule.activations[place]], rule.norms[place]
    keys = k[place].astype(np.float64)
    scores = q[place, rows].astype(np.float64) @ keys.T
    if act.of_keys is not None:
        scores = scores + act.of_keys(keys, np)
    seen = rule.sees(rows, np.arange(k.shape[1]))
    scores = np.where(seen, scores * rule.scale_of(place), 0.0)
    length = np.linalg.norm(scores, axis=1, keepdims=True)
    if norm == "l2":
        scores = scores / (length + NORM_EPSILON)
    elif norm == "l2-literal":
        scores = scores / np.where(length > 0, length, 1.0) + NORM_EPSILON
    stat = length if norm else np.zeros_like(length)
    if act.statistic == "lse":
        scores, terms = act.split(scores, np)
        top = np.where(seen, terms, -np.inf).max(1, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        sums = np.where(seen, np.exp(terms - top), 0.0).sum(1, keepdims=True)
        with np.errstate(divide="ignore"):
            stat = np.where(sums > 0, top + np.log(sums), np.inf)
        stat = add_sinks(stat, rule, place)
    elif act.statistic == "sum":
        stat = (np.where(seen, scores, 0.0) ** act.power).sum(1, keepdims=True)
    return np.where(seen, act.apply(scores, stat, np), 0.0).astype(np.float32)


def _head_array(arrays: Mapping[str, Any], name: str) -> NDArray[Any]:
    """An array (heads, n, n or d_head) of finite floats. Raises HgvizError."""
    errors.require(name in arrays, f"it has no {name!r}: a layer needs q and k, or weights")
    values = _array(arrays[name])
    why = f"{name} is a {type(arrays[name]).__name__} that numpy cannot read"
    do = "Give an array or a tensor"
    errors.require(values.dtype != object, why, do)
    good = values.ndim == 3 and values.dtype.name in ("float16", "float32", "float64")
    why = f"{name} is {values.dtype} {values.shape}, not floats by head and row"
    errors.require(good and values.size, why)
    finite = np.isfinite(values).all() and np.abs(values).max() <= np.finfo(np.float32).max
    errors.require(finite, f"{name} has numbers that are not finite in float32")
    return values


def _array(value: Any) -> NDArray[Any]:
    """A value or a tensor as an array, of the type object where numpy makes none of it."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if "bfloat16" in str(value.dtype) else value
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return np.array(None)


# --- describing -----------------------------------------------------------------------------------


def describe(path: str | Path) -> dict[str, Any]:
    """What a capture holds, as `hgviz info --json` prints it. Raises HgvizError."""
    capture = open_capture(path)
    spec, made, target = capture.spec, capture.made, capture.target
    segments = any(level.stride is None for level in spec.levels)
    chosen = "found by the model" if capture.prompt.boundaries is None else "given"
    rules = [maps.factors.rule for maps in capture.maps if isinstance(maps, LazyMap)]
    uniform = any(rule.empty_rows == "uniform" for rule in rules)
    return {
        "kind": "capture",
        **describe_model(spec),
        "layers": _describe_layers(capture),
        "items": max(1, len(capture.items)),
        "tokens": len(capture.prompt),
        "tokens_of_items": sum(item.tokens for item in capture.items) or None,
        "target_tokens": None if target is None else len(target),
        "complete": capture.complete and not os.path.isdir(capture.path),
        "off": sorted(map(str, capture.off)),
        **capture.streaming.to_dict(),
        "boundaries": chosen if segments else None,
        "masking": made.masking,
        "empty_rows": "uniform" if uniform else "zeros",
        "provenance": asdict(made) | {
            "versions": dict(made.versions), "model": spec.digest, "text": capture.prompt.digest,
            "target": None if target is None else target.digest,
        },
    }  # fmt: skip


def describe_model(spec: ModelSpec) -> dict[str, Any]:
    """The names, the goal, the labels and the levels of a model, for JSON."""
    rare = [name for name, usual in (("apart", 0), ("parts", 1))
            if any(getattr(level, name) != usual for level in spec.levels)]  # fmt: skip
    return {
        **{name: getattr(spec, name) for name in ("family", "name", "form", "goal")},
        "labels": list(spec.labels),
        "levels": [
            {"index": level.index, "stride": level.stride, "key_shift": level.shift,
             "sequence": level.sequence, **{name: getattr(level, name) for name in rare}}
            for level in spec.levels
        ],
    }  # fmt: skip


def _describe_layers(capture: Capture) -> list[dict[str, Any]]:
    """A row for each layer; columns that only some captures have stand last."""
    layers = capture.spec.layers
    is_grouped = any(layer.shared > 1 for layer in layers)
    is_synthesised = any(layer.scores != "dot" for layer in layers)
    rows, limits = [], []
    for layer, maps in zip(layers, capture.maps, strict=True):
        _, queries, keys = (None, None, None) if maps is None else maps.shape
        source = "weights" if isinstance(maps, DenseMap) else "q, k"
        rows.append({
            "index": layer.index, "name": layer.name, "role": layer.role, "level": layer.level,
            "key_level": layer.key_level, "heads": len(layer.heads), "queries": queries,
            "keys": keys, "activations": list(layer.activations),
            "computed_from": None if maps is None else source,
            "verify_max_abs": maps.verify_max_abs if isinstance(maps, LazyMap) else None,
        })  # fmt: skip
        limits.append({
            "key_groups": len(layer.groups) if is_grouped else None,
            "scores": layer.scores if is_synthesised else None,
            **(_describe_limits(maps) if isinstance(maps, LazyMap) else {}),
        })  # fmt: skip
    shown = [name for name in {name: 0 for limit in limits for name in limit}
             if any(limit.get(name) is not None for limit in limits)]  # fmt: skip
    return [row | {name: limit.get(name) for name in shown}
            for row, limit in zip(rows, limits, strict=True)]  # fmt: skip


def _describe_limits(maps: LazyMap) -> dict[str, Any]:
    """What else a layer's rule says: its window, such as "4 back" or "3 both ways", the size of
    chunks, the cap of scores, and the mean share of a row that sink logits take."""
    rule, window = maps.factors.rule, None
    if rule.band is not None:
        behind, ahead = rule.band
        both = "both ways" if behind == ahead else f"back, {ahead} ahead"
        window = f"{behind} {'back' if rule.causal or not ahead else both}"
    shares = [maps.factors.sink_share(place) for place in range(len(maps.heads))]
    known = [share for share in shares if share is not None]
    sink_share = float(np.mean(known)) if known else None
    chunk, softcap = rule.chunk, rule.softcap
    return {"window": window, "chunk": chunk, "softcap": softcap, "sink_share": sink_share}
