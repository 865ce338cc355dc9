"""Writing captures of many texts into one file: text by text, merged at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from hgviz.core import (
    NO_STREAMING,
    HeadSet,
    HgvizError,
    Integers,
    Item,
    ModelSpec,
    Prompt,
    Provenance,
    Streaming,
)
from hgviz.files import TEMPORARY
from hgviz.maps import DenseMap, Factors
from hgviz.maps.tiles import Blocks, tile_blocks
from hgviz.store import schema
from hgviz.store.arrays import store_json
from hgviz.store.contents import (
    layer_maps,
    share_mixtures,
    write_layer,
    write_output,
    write_root,
    write_texts,
)
from hgviz.store.growing import (
    begin,
    begun_at,
    identity_of,
    let_go,
    part_of,
    refuse_existing,
    remove,
)
from hgviz.store.hdf5 import whole_hdf5, writing
from hgviz.store.interrupted import committed_items
from hgviz.store.items import index_of
from hgviz.store.write import Writer

LONG = 2048  # tokens from which a text is worth being gone on with layer by layer


class CorpusWriter:
    """Captures of many texts on their way to one file: OUT.part holds every text that was done.

    items: all texts there are to be, numbered from 0; digest: of all that is read, texts, pairs
    and targets; `done` has the numbers of the texts that are there. Opened on the OUT.part of the
    same, it goes on where that one ended. Errors: HgvizError, as Writer, and for more texts than a
    file takes.
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
        self.path = Path(path)
        self.part = part_of(self.path)
        self.spec, self.off, self.made = spec, off, made or Provenance()
        self.items, self.streaming = tuple(items), streaming
        self.done: set[int] = set()
        if not 0 < len(items) <= schema.MOST_ITEMS:
            raise HgvizError(
                f"{len(items):,} texts are not captured in one file: "
                f"it takes 1 to {schema.MOST_ITEMS:,}",
                "Capture them in several",
            )
        refuse_existing(self.path, force)
        with writing(self.path):
            identity = identity_of(spec, off, self.made, streaming, corpus=digest)
            if begin(self.path, identity, force, self._write_root):
                self.done = committed_items(self.part, range(len(items)))
                self.made = replace(self.made, created=begun_at(self.part, self.made.created))

    @contextmanager
    def item(
        self,
        number: int,
        prompt: Prompt,
        spans: tuple[Integers, ...],
        target: Prompt | None = None,
    ) -> Iterator[Writer | _Short]:
        """What takes the layers of one text; after its finish the text is on the disk."""
        path = self.part / schema.ITEM_FILE.format(number)
        parts = (self.spec, prompt, spans, self.off, self.made)
        if max(len(prompt), len(target or ())) < LONG:
            with writing(self.path, self._kept()), whole_hdf5(path) as file:
                yield _Short(file, *parts, target, self.streaming)
        else:
            more: dict[str, Any] = {"target": target, "streaming": self.streaming}
            with Writer(path, *parts, force=True, **more) as writer:
                yield writer
        self.done.add(number)

    def _kept(self) -> str:
        done = len(self.done)
        return f"{done:,} of {len(self.items):,} texts stay in {self.part.name}" if done else ""

    def __enter__(self) -> CorpusWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            let_go(self.part)

    def _write_root(self, file: h5py.File) -> None:
        write_root(file, self.spec, self.off, self.made, self.streaming)
        store_json(file, "index", index_of(self.items))

    def finish(self, seconds: float = 0.0) -> Path:
        """Merge all texts into OUT and remove OUT.part. Errors: HgvizError, ValueError."""
        if missing := len(self.items) - len(self.done):
            raise ValueError(f"{missing} texts were not added")
        scratch = self.part / (self.path.name + TEMPORARY)
        with writing(self.path, self._kept()), whole_hdf5(self.path, scratch) as file:
            made = replace(self.made, seconds=seconds)
            write_root(file, self.spec, self.off, made, self.streaming)
            store_json(file, "index", index_of(self.items))
            whole = file.create_group("items")
            for number in range(len(self.items)):
                with h5py.File(self.part / schema.ITEM_FILE.format(number), "r") as one:
                    _copy_item(one, whole.create_group(schema.ITEM.format(number)), whole)
            file.attrs["complete"] = 1
        remove(self.part)
        return self.path


def _copy_item(source: h5py.File, target: h5py.Group, whole: h5py.Group) -> None:
    """All that a text has of its own; the terms that all texts share are linked to the first's."""
    for name in schema.OF_ITEM:
        if name in source:
            source.copy(source[name], target, name=name)
    first = whole[schema.ITEM.format(0)]
    if first == target:
        return
    for index, layer in target["layers"].items():
        if "relative" in layer and _alike(layer["relative"], first["layers"][index]["relative"]):
            del layer["relative"]
            layer["relative"] = first["layers"][index]["relative"]


def _alike(a: h5py.Group, b: h5py.Group) -> bool:
    return all(name in b and (a[name][...] == b[name][...]).all() for name in a)


class _Short:
    """A text that is captured in one go: its file has its name once all of it is there."""

    def __init__(
        self,
        file: h5py.File,
        spec: ModelSpec,
        prompt: Prompt,
        spans: tuple[Integers, ...],
        off: HeadSet,
        made: Provenance,
        target: Prompt | None,
        streaming: Streaming,
    ) -> None:
        self.committed: set[int] = set()
        self._file, self._layers = file, {layer.index: layer for layer in spec.layers}
        write_root(file, spec, off, made, streaming)
        write_texts(file, prompt, spans, target)

    def add(
        self,
        index: int,
        layer: Factors | DenseMap,
        settle: bool = False,
        blocks: Blocks = tile_blocks,
    ) -> None:
        """Write a layer; see Writer.add."""
        one = self._layers[index]
        group = self._file.create_group(f"layers/{index:03}")
        write_layer(group, one, layer_maps(one, layer), settle, blocks)
        self.committed.add(index)

    def finish(self, logits: NDArray[Any] | None = None, seconds: float = 0.0) -> None:
        """Say that all of it is there. Errors: ValueError."""
        if missing := sorted(set(self._layers) - self.committed):
            raise ValueError(f"layers {missing} were not added")
        share_mixtures(self._file.require_group("layers"))
        write_output(self._file, logits)
        self._file.attrs["complete"] = 1
