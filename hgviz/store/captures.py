"""Captures on disk: opened whole or interrupted, described, and written layer by layer.

While a capture is made, the folder OUT.h5.part holds manifest.json (what is captured), root.h5 (all
but layers and output) and a file for each layer that is done. That of a corpus holds a file for
each text that is done; a long text grows in a folder of its own inside.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.core import (
    NO_STREAMING,
    Capture,
    HeadSet,
    HgvizError,
    Integers,
    Item,
    Layer,
    Map,
    ModelSpec,
    Prompt,
    Provenance,
    Streaming,
)
from hgviz.files import TEMPORARY, write_atomic
from hgviz.maps import DenseMap, Factors, LazyMap
from hgviz.maps.tiles import Blocks, tile_blocks
from hgviz.store import schema
from hgviz.store.arrays import store_text
from hgviz.store.hdf5 import (
    Refused,
    attribute,
    check_format,
    has,
    numbers,
    open_file,
    parsed,
    plain_dataset,
    reading,
    require,
    says_format,
    subgroup,
    whole_hdf5,
    writing,
)
from hgviz.store.layers import maps_of, read_layer, share_mixtures, write_layer

MANIFEST_LIMIT = 1 << 20  # bytes
LONG_TEXT = 2048  # tokens from which a text of a corpus is kept layer by layer
EMPTY_SPEC = ModelSpec("", "", (), (), 0, 0)
EMPTY_PROMPT = Prompt("", np.empty(0, np.int64), (), np.empty((0, 2), np.int64))

Identity = dict[str, Any]
GroupOf = Callable[[int], h5py.Group | None]


# --- opening --------------------------------------------------------------------------------------


def open_capture(path: str | Path, item: int = 0) -> Capture:
    """A capture whose maps are read from the file when they are sliced.

    item: which text, of a corpus that was captured in one file. Opens OUT.h5 and, of an
    interrupted capture, the folder OUT.h5.part: layers that were not committed are None, texts
    that were not begun are not listed, and a folder without any reads as a capture with no layers.
    Raises HgvizError for everything that is not a capture, damaged, or unsafe.
    """
    path = str(path)
    if not os.path.lexists(path):
        raise HgvizError(f"there is no {path}: no file or folder has that name", "Check the path")
    with reading(path):
        return _open_part(Path(path), item) if os.path.isdir(path) else _open_file(path, item)


def is_capture(path: str | Path) -> bool:
    """Whether a path is, or tries to be, a capture: its own format, or HDF5 that cannot be read."""
    path = str(path)
    if os.path.isdir(path):
        return path.rstrip("/").endswith(schema.PART) or _read_manifest(Path(path)) is not None
    try:
        return says_format(path, schema.CAPTURE)
    except HgvizError as error:
        return bool(error.details)  # HDF5 could not open it: opening says why


def _open_file(path: str, item: int = 0) -> Capture:
    with _closed_on_error(open_file(path)) as file:
        check_format(file, schema.CAPTURE, schema.CAPTURE_VERSION, "capture")
        require(attribute(file, "complete", 0) == 1, "it was never completed")
        return _read_capture(file, path, item)


def _read_capture(
    file: h5py.File, path: str, item: int = 0, layer_group: GroupOf | None = None
) -> Capture:
    """A text of an open file; layer_group: where its layers lie if they are not in it."""
    root = schema.read_root(file)
    spec, items = root["spec"], root["items"]
    _require_item(path, item, items)
    group = subgroup(file, f"items/{schema.ITEM.format(item)}") if items else file
    prompt, target, spans = schema.read_texts(group, spec)
    if layer_group is None:
        layers = subgroup(group, "layers")
        groups = [subgroup(layers, f"{layer.index:03}") for layer in spec.layers]
    else:
        groups = [layer_group(layer.index) for layer in spec.layers]
    maps = tuple(
        None if inner is None else read_layer(inner, path, layer, len(spans[layer.level]))
        for layer, inner in zip(spec.layers, groups, strict=True)
    )
    logits = schema.read_logits(group, path, spec)
    return Capture(
        **root, prompt=prompt, spans=spans, maps=maps, logits=logits, path=path, target=target,
        item=item,
    )  # fmt: skip


def _require_item(path: str, number: int, items: Iterable[Item], so_far: str = "") -> None:
    """Raise HgvizError for a text that is not there, with those that are."""
    known = [item.number for item in items] or [0]
    if number in known:
        return
    first, last = min(known), max(known)
    texts = "1 text" if len(known) == 1 else f"{len(known):,} texts"
    named = f"{first:,}" if first == last else f"{first:,} to {last:,}"
    raise HgvizError(
        f"there is no text {number:,} in {path}: it holds {texts}{so_far}, numbered {named}",
        "Choose one of them" if len(known) > 1 else f"Choose text {first:,}",
    )


@contextmanager
def _closed_on_error(file: h5py.File) -> Iterator[h5py.File]:
    """A file stays open as long as its maps are in use, but not when there are none."""
    try:
        yield file
    except BaseException:
        file.close()
        raise


# --- folders of captures that were interrupted ----------------------------------------------------


def _open_part(part: Path, item: int) -> Capture:
    finished = _finished_file(part)
    if finished is not None:
        return _open_file(str(finished), item)
    nothing = Capture(EMPTY_SPEC, EMPTY_PROMPT, (), (), path=str(part))
    root = part / schema.ROOT
    if not root.is_file():
        if any(part.glob("*.h5")) or not part.name.endswith(schema.PART):
            raise Refused(f"there is no {schema.ROOT} in this folder")
        return nothing
    with _closed_on_error(open_file(str(root))) as file:
        check_format(file, schema.CAPTURE, schema.CAPTURE_VERSION, "capture")
        if not has(file, "index"):
            return _read_capture(file, str(part), item, lambda index: _layer_group(part, index))
        items = schema.read_root(file)["items"]
    file.close()
    files: dict[int, Path] = {}
    for entry in sorted(os.listdir(part), reverse=True):  # a file comes before its folder
        stem = entry.removesuffix(schema.PART)
        number = stem.removeprefix("item-").removesuffix(".h5")
        if number.isdecimal() and stem == schema.ITEM_FILE.format(int(number)):
            files[int(number)] = part / entry
    begun = tuple(item for item in items if item.number in files)
    if not begun:
        return nothing
    _require_item(str(part), item, begun, " so far")
    text = files[item]
    capture = _open_part(text, 0) if text.is_dir() else _open_file(str(text))
    return replace(capture, path=str(part), item=item, items=begun)


def _layer_group(part: Path, index: int) -> h5py.Group | None:
    """The group of a layer in a folder, None where it is not there, damaged or not committed."""
    path = part / schema.LAYER_FILE.format(index)
    if not path.is_file():
        return None
    try:
        with reading(str(path)), _closed_on_error(open_file(str(path))) as file:
            group = subgroup(file, "layer")
            require(attribute(group, "committed", 0) == 1, "it was never completed")
            return group
    except HgvizError:
        return None


def _is_complete(path: Path) -> bool:
    """Whether a file is there and says that it is complete."""
    try:
        with reading(str(path)), open_file(str(path)) as file:
            return bool(attribute(file, "complete", 0) == 1)
    except HgvizError:
        return False


def _read_manifest(part: Path) -> Identity | None:
    """What an unfinished capture is of; None where there is no manifest to read."""
    manifest = part / schema.MANIFEST
    try:
        if not manifest.is_file() or manifest.stat().st_size > MANIFEST_LIMIT:
            return None
        identity = json.loads(manifest.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    good = isinstance(identity, dict) and identity.get("format") == schema.CAPTURE
    return identity if good and (part / schema.ROOT).is_file() else None


def _finished_file(part: Path) -> Path | None:
    """The finished file of a folder that was not removed, as when the process is killed between
    the two; None for a folder that still has something to give."""
    file = part.with_name(part.name.removesuffix(schema.PART))
    if file == part or not file.is_file() or not _is_complete(file):
        return None
    try:
        with reading(str(file)), open_file(str(file)) as finished:
            root = part / schema.ROOT
            if not root.is_file():
                return None if (part / schema.MANIFEST).exists() else file
            with open_file(str(root)) as begun:
                return file if _contents(finished) == _contents(begun) else None
    except HgvizError:
        return None


def _contents(file: h5py.File) -> list[Any]:
    """What a file says that it is of, and when that was begun."""
    made = {**parsed(file, "made"), "seconds": None}
    names = ("spec", "off", "streaming", "index", "prompt/ids", "prompt/text", "target/ids",
             "target/text")  # fmt: skip
    return [made] + [
        numbers(plain_dataset(file, name, ("u1", "i8"))).tobytes() if has(file, name) else None
        for name in names
    ]


def _has_layers(part: Path) -> bool:
    """Whether a folder holds anything to resume from: a layer, or a text of a corpus."""
    if any(part.glob("layer-*.h5")):
        return True
    return any(not text.is_dir() or _has_layers(text) for text in part.glob("item-*"))


def remove_part(part: Path) -> None:
    """Remove our own files and the folder, if nothing else is in it.

    The manifest goes first: without it, whatever is left after a kill is never resumed.
    """
    (part / schema.MANIFEST).unlink(missing_ok=True)
    for folder in part.glob("item-*.h5" + schema.PART):
        remove_part(folder)
    for pattern in ("item-*.h5", "layer-*.h5", schema.ROOT, f"*{TEMPORARY}"):
        for file in part.glob(pattern):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        part.rmdir()


def part_of(path: Path) -> Path:
    """The folder in which a file grows."""
    return path.with_name(path.name + schema.PART)


def refuse_existing(path: Path, force: bool) -> None:
    """Raise HgvizError where there is a file already, unless force, or a folder."""
    if path.is_dir():
        raise HgvizError(f"{path} is a folder: a capture is one file", "Give the file a name")
    if not path.exists():
        return
    if part_of(path).is_dir() and _finished_file(part_of(path)):
        remove_part(part_of(path))  # the process that finished it was killed before it did
    if not force:
        raise HgvizError(
            f"{path} exists already: it was not touched", "Choose another name, or use --force"
        )


# --- writing --------------------------------------------------------------------------------------


class _GrowingFile:
    """A file on its way: the folder that it grows in is begun, resumed, merged and removed.

    Raises HgvizError when the file exists (unless force), when the folder holds layers of another
    capture (unless force, which removes them), and when the disk is full or not writable.
    """

    def __init__(
        self,
        path: str | Path,
        spec: ModelSpec,
        off: HeadSet,
        made: Provenance | None,
        force: bool,
        streaming: Streaming,
        texts: Identity,
    ) -> None:
        self.path = Path(path)
        self.part = part_of(self.path)
        self.spec, self.off, self.streaming = spec, off, streaming
        self.made = made or Provenance()
        self.resumed = False
        refuse_existing(self.path, force)
        model = json.dumps(schema.to_json(spec), sort_keys=True)
        identity = {  # what two captures must have in common to be one, in words for people
            "format": schema.CAPTURE,
            "format version": list(schema.CAPTURE_VERSION),
            "model": hashlib.sha256(model.encode()).hexdigest(),
            "set of heads switched off": sorted(map(str, off)),
            "set of heads that stream": streaming.to_dict(),
            "masking": self.made.masking,
            "number format": self.made.dtype,
            "kind of maps": "weights" if self.made.dense else "factors",
            **texts,
        }
        with writing(self.path):
            if self._can_resume(identity, force):
                self.resumed = True
                root = str(self.part / schema.ROOT)
                with suppress(HgvizError), reading(root), open_file(root) as file:
                    self.made = replace(self.made, created=schema.read_root(file)["made"].created)
            else:
                self._begin(identity)

    def _can_resume(self, identity: Identity, force: bool) -> bool:
        """Whether the folder is that of the same capture; one of another is removed."""
        if not self.part.is_dir():
            return False
        for file in self.part.glob(f"*{TEMPORARY}"):
            file.unlink()
        before = _read_manifest(self.part)
        if before is not None:
            others = [name for name in identity if before.get(name) != identity[name]]
            if not others:
                return True
            if not force and _has_layers(self.part):
                raise HgvizError(
                    f"{self.part} holds an unfinished capture with another "
                    f"{' and another '.join(others)}: resuming it would mix the two",
                    "Finish that one, choose another name, or start anew with --force",
                )
        remove_part(self.part)  # or killed before there was anything to resume
        return False

    def _begin(self, identity: Identity) -> None:
        if self.part.exists() and not self.part.is_dir():
            raise HgvizError(
                f"{self.part} is in the way: "
                "captures grow in a folder of that name, and it is a file",
                "Move it, or choose another name",
            )
        self.part.mkdir(exist_ok=True)
        try:
            with whole_hdf5(self.part / schema.ROOT) as file:
                self._write_root(file)
            write_atomic(self.part / schema.MANIFEST, json.dumps(identity, indent=2))
        except BaseException:
            remove_part(self.part)
            raise

    def _write_root(self, file: h5py.File) -> None:
        schema.write_root(file, self.spec, self.off, self.made, self.streaming)

    def _remains(self) -> str:
        """What stays in the folder after an error, "" for nothing."""
        raise NotImplementedError

    @contextmanager
    def _merged(self) -> Iterator[h5py.File]:
        """Open the finished file to write; the folder is removed once it is there."""
        scratch = self.part / (self.path.name + TEMPORARY)
        with writing(self.path, self._remains()), whole_hdf5(self.path, scratch) as file:
            yield file
            file.attrs["complete"] = 1
        remove_part(self.part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not _has_layers(self.part):
            remove_part(self.part)


class Writer(_GrowingFile):
    """A capture on its way to a file: OUT.part holds every layer that was added.

    Opened on the OUT.part of an interrupted capture of the same model, text, masking, number
    format and heads that are switched off or stream, it resumes that; `committed` has the numbers
    of the layers that are there. Raises HgvizError when OUT exists (unless force), when OUT.part
    holds another capture (unless force, which starts anew), and when the disk is full or not
    writable.
    """

    def __init__(
        self,
        path: str | Path,
        spec: ModelSpec,
        prompt: Prompt,
        spans: tuple[Integers, ...],
        off: HeadSet = frozenset(),
        made: Provenance | None = None,
        force: bool = False,
        target: Prompt | None = None,
        streaming: Streaming = NO_STREAMING,
    ) -> None:
        self._texts = prompt, spans, target
        self._layers = {layer.index: layer for layer in spec.layers}
        self.committed: set[int] = set()
        texts = {
            "text": _fingerprint(prompt),
            "text of the decoder": None if target is None else _fingerprint(target),
        }
        super().__init__(path, spec, off, made, force, streaming, texts)
        for index in self._layers if self.resumed else ():
            if (group := _layer_group(self.part, index)) is not None:
                group.file.close()
                self.committed.add(index)

    def _write_root(self, file: h5py.File) -> None:
        super()._write_root(file)
        schema.write_texts(file, *self._texts)

    def _remains(self) -> str:
        done = len(self.committed)
        return f"{done} of {len(self._layers)} layers stay in {self.part.name}" if done else ""

    def add(
        self,
        index: int,
        layer: Factors | DenseMap,
        settle: bool = False,
        blocks: Blocks = tile_blocks,
    ) -> None:
        """Commit a layer: it is on the disk when this returns.

        settle: with the statistics that hgviz.maps.recompute_statistics gives, at no extra cost.
        blocks: how weights are computed, such as by a device that is faster.
        """
        maps = maps_of(self._layers[index], layer)
        target = self.part / schema.LAYER_FILE.format(index)
        with writing(self.path, self._remains()), whole_hdf5(target) as file:
            write_layer(file.create_group("layer"), self._layers[index], maps, settle, blocks)
        self.committed.add(index)

    def finish(self, logits: NDArray[Any] | None = None, seconds: float = 0.0) -> Path:
        """Merge all layers into OUT and remove OUT.part. Raises HgvizError, and ValueError where
        layers are missing."""
        _require_all(self._layers, self.committed)
        with self._merged() as file:
            schema.mark_format(file, schema.CAPTURE, schema.CAPTURE_VERSION)
            # HDF5 copies chunks as they are, without unpacking them
            with h5py.File(self.part / schema.ROOT, "r") as root:
                for name in root:
                    if name != "made":
                        root.copy(root[name], file, name=name)
            made = replace(self.made, seconds=seconds)
            store_text(file, "made", json.dumps(schema.to_json(made)))
            layers = file.require_group("layers")
            for index in sorted(self.committed):
                with h5py.File(self.part / schema.LAYER_FILE.format(index), "r") as part:
                    part.copy(part["layer"], layers, name=f"{index:03}")
            share_mixtures(layers)
            schema.write_logits(file, logits)
        return self.path


class CorpusWriter(_GrowingFile):
    """Captures of many texts on their way to one file: OUT.part holds every text that is done.

    items: all texts there are to be, numbered from 0; digest: of all that is read, texts, pairs
    and targets; `done` has the numbers of the texts that are there. Opened on the OUT.part of the
    same, it resumes that. Raises HgvizError, as Writer, and for more texts than a file takes.
    """

    def __init__(
        self,
        path: str | Path,
        spec: ModelSpec,
        items: Sequence[Item],
        digest: str,
        off: HeadSet = frozenset(),
        made: Provenance | None = None,
        force: bool = False,
        streaming: Streaming = NO_STREAMING,
    ) -> None:
        self.items = tuple(items)
        self.done: set[int] = set()
        if not 0 < len(items) <= schema.ITEM_LIMIT:
            raise HgvizError(
                f"{len(items):,} texts are not captured in one file: "
                f"it takes 1 to {schema.ITEM_LIMIT:,}",
                "Capture them in several",
            )
        super().__init__(path, spec, off, made, force, streaming, {"corpus": digest})
        for number in range(len(items)) if self.resumed else ():
            file = self.part / schema.ITEM_FILE.format(number)
            if file.is_file() and _is_complete(file):
                self.done.add(number)

    def _write_root(self, file: h5py.File) -> None:
        schema.write_root(file, self.spec, self.off, self.made, self.streaming, self.items)

    def _remains(self) -> str:
        done = len(self.done)
        return f"{done:,} of {len(self.items):,} texts stay in {self.part.name}" if done else ""

    @contextmanager
    def item(
        self,
        number: int,
        prompt: Prompt,
        spans: tuple[Integers, ...],
        target: Prompt | None = None,
    ) -> Iterator[Writer | _ShortText]:
        """What takes the layers of one text; after its finish the text is on the disk."""
        path = self.part / schema.ITEM_FILE.format(number)
        if max(len(prompt), len(target or ())) < LONG_TEXT:
            with writing(self.path, self._remains()), whole_hdf5(path) as file:
                schema.write_root(file, self.spec, self.off, self.made, self.streaming)
                schema.write_texts(file, prompt, spans, target)
                yield _ShortText(file, self.spec.layers)
        else:
            with Writer(
                path, self.spec, prompt, spans, self.off, self.made, True, target, self.streaming
            ) as writer:
                yield writer
        self.done.add(number)

    def finish(self, seconds: float = 0.0) -> Path:
        """Merge all texts into OUT and remove OUT.part. Raises HgvizError, and ValueError where
        texts are missing."""
        _require_all(range(len(self.items)), self.done)
        self.made = replace(self.made, seconds=seconds)
        with self._merged() as file:
            self._write_root(file)
            items = file.create_group("items")
            for number in range(len(self.items)):
                with h5py.File(self.part / schema.ITEM_FILE.format(number), "r") as text:
                    group = items.create_group(schema.ITEM.format(number))
                    for name in schema.ITEM_GROUPS:
                        if name in text:
                            text.copy(text[name], group, name=name)
                _share_relative(items[schema.ITEM.format(0)]["layers"], group["layers"])
        return self.path


class _ShortText:
    """A text of a corpus that is written in one go: its file has its name once it is complete."""

    def __init__(self, file: h5py.File, layers: Sequence[Layer]) -> None:
        self.committed: set[int] = set()
        self._file, self._layers = file, {layer.index: layer for layer in layers}

    def add(
        self,
        index: int,
        layer: Factors | DenseMap,
        settle: bool = False,
        blocks: Blocks = tile_blocks,
    ) -> None:
        """Write a layer; see Writer.add."""
        group = self._file.create_group(f"layers/{index:03}")
        described = self._layers[index]
        write_layer(group, described, maps_of(described, layer), settle, blocks)
        self.committed.add(index)

    def finish(self, logits: NDArray[Any] | None = None, seconds: float = 0.0) -> None:
        """Say that the text is complete. Raises ValueError where layers are missing."""
        _require_all(self._layers, self.committed)
        share_mixtures(self._file.require_group("layers"))
        schema.write_logits(self._file, logits)
        self._file.attrs["complete"] = 1


def _require_all(numbers: Iterable[int], done: set[int]) -> None:
    if missing := sorted({*numbers} - done):
        raise ValueError(f"{missing} were not added")


def _share_relative(first: h5py.Group, layers: h5py.Group) -> None:
    """Link relative terms of layers to those of the first text where they are equal."""
    for index, layer in layers.items() if layers != first else ():
        if "relative" not in layer:
            continue
        mine, theirs = layer["relative"], first[index]["relative"]
        if all(name in theirs and (mine[name][...] == theirs[name][...]).all() for name in mine):
            del layer["relative"]
            layer["relative"] = theirs


def _fingerprint(prompt: Prompt) -> str:
    return hashlib.sha256((prompt.digest + prompt.text).encode(errors="replace")).hexdigest()


def save_capture(path: str | Path, capture: Capture, force: bool = False) -> Path:
    """Write a complete capture to one file. Raises HgvizError."""
    if not capture.complete:
        raise HgvizError(
            "this capture is not complete: "
            f"{sum(maps is None for maps in capture.maps)} of its layers are missing",
            "Capture the text again to the end, then save it",
        )
    made, parts = capture.made, (capture.spec, capture.prompt, capture.spans, capture.off)
    with Writer(path, *parts, made, force, capture.target, capture.streaming) as writer:
        for index, maps in enumerate(capture.maps):
            if index in writer.committed:
                continue
            if not isinstance(maps, LazyMap | DenseMap):
                raise TypeError(f"a {type(maps).__name__} cannot be stored")
            writer.add(index, maps.factors if isinstance(maps, LazyMap) else maps)
        return writer.finish(capture.logits, made.seconds)


# --- describing -----------------------------------------------------------------------------------


def describe(path: str | Path) -> dict[str, Any]:
    """What a capture holds, as `hgviz info --json` prints it. Raises HgvizError."""
    capture = open_capture(path)
    spec = capture.spec
    layers = [_describe_layer(layer, maps)
              for layer, maps in zip(spec.layers, capture.maps, strict=True)]  # fmt: skip
    limits = [_describe_limits(maps) for maps in capture.maps]
    optional = dict.fromkeys(name for layer in limits for name in layer)
    grouped = any(layer.shared > 1 for layer in spec.layers)
    synthesised = any(layer.scores != "dot" for layer in spec.layers)
    for row, layer, known in zip(layers, spec.layers, limits, strict=True):
        row |= {"key_groups": len(layer.groups)} if grouped else {}
        row |= {"scores": layer.scores} if synthesised else {}
        row |= {name: known.get(name) for name in optional}
    segments = any(level.stride is None for level in spec.levels)
    chosen = "found by the model" if capture.prompt.boundaries is None else "given"
    rules = [maps.factors.rule for maps in capture.maps if isinstance(maps, LazyMap)]
    return {
        "kind": "capture",
        "family": spec.family,
        "name": spec.name,
        "form": spec.form,
        "goal": spec.goal,
        "labels": list(spec.labels),
        "levels": _describe_levels(spec),
        "layers": layers,
        "items": max(1, len(capture.items)),
        "tokens": len(capture.prompt),
        "tokens_of_items": sum(item.tokens for item in capture.items) or None,
        "target_tokens": None if capture.target is None else len(capture.target),
        "complete": capture.complete and not os.path.isdir(capture.path),
        "off": sorted(map(str, capture.off)),
        **capture.streaming.to_dict(),
        "boundaries": chosen if segments else None,
        "masking": capture.made.masking,
        "empty_rows": "uniform" if any(r.empty_rows == "uniform" for r in rules) else "zeros",
        "provenance": {
            **asdict(capture.made),
            "versions": dict(capture.made.versions),
            "model": spec.digest,
            "text": capture.prompt.digest,
            "target": None if capture.target is None else capture.target.digest,
        },
    }


def _describe_levels(spec: ModelSpec) -> list[dict[str, Any]]:
    apart = any(level.apart for level in spec.levels)
    parts = any(level.parts > 1 for level in spec.levels)
    return [
        {
            "index": level.index,
            "stride": level.stride,
            "key_shift": level.shift,
            "sequence": level.sequence,
            **({"apart": level.apart} if apart else {}),
            **({"parts": level.parts} if parts else {}),
        }
        for level in spec.levels
    ]


def _describe_layer(layer: Layer, maps: Map | None) -> dict[str, Any]:
    source = "weights" if isinstance(maps, DenseMap) else "q, k"
    return {
        "index": layer.index,
        "name": layer.name,
        "role": layer.role,
        "level": layer.level,
        "key_level": layer.key_level,
        "heads": len(layer.heads),
        "queries": None if maps is None else maps.shape[1],
        "keys": None if maps is None else maps.shape[2],
        "activations": list(layer.activations),
        "computed_from": None if maps is None else source,
        "verify_max_abs": maps.verify_max_abs if isinstance(maps, LazyMap) else None,
    }


def _describe_limits(maps: Map | None) -> dict[str, Any]:
    """What else a layer's rule says: its window, such as "4 back" or "3 both ways", the size of
    chunks, the cap of scores, and the mean share of a row that sink logits take."""
    if not isinstance(maps, LazyMap):
        return {}
    rule, band = maps.factors.rule, maps.factors.rule.band
    window = None
    if band is not None:
        both = "both ways" if band[0] == band[1] else f"back, {band[1]} ahead"
        window = f"{band[0]} {'back' if rule.causal or not band[1] else both}"
    shares = [maps.factors.sink_share(place) for place in range(len(maps.heads))]
    known = [share for share in shares if share is not None]
    limits = {
        "window": window,
        "chunk": rule.chunk,
        "softcap": rule.softcap,
        "sink_share": float(np.mean(known)) if known else None,
    }
    return {name: value for name, value in limits.items() if value is not None}
