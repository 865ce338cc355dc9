"""Writing captures: layer by layer while the model runs, one file at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
from numpy.typing import NDArray

from hgviz.core import (
    NO_STREAMING,
    Capture,
    HeadSet,
    HgvizError,
    Integers,
    ModelSpec,
    Prompt,
    Provenance,
    Streaming,
)
from hgviz.files import TEMPORARY
from hgviz.maps import DenseMap, Factors, LazyMap
from hgviz.maps.tiles import Blocks, tile_blocks
from hgviz.store import schema
from hgviz.store.arrays import store_json
from hgviz.store.contents import (
    layer_maps,
    mark,
    share_mixtures,
    write_layer,
    write_output,
    write_root,
    write_texts,
)
from hgviz.store.given import capture_of
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
from hgviz.store.interrupted import committed_layers


class Writer:
    """A capture on its way to a file: OUT.part holds every layer that was added.

    Opened on the OUT.part of an interrupted capture of the same model, text, masking, number
    format and heads that are switched off or stream, it goes on where that one ended; `committed`
    says which layers are there. Raises HgvizError when OUT exists (unless force), when OUT.part is
    of another capture (unless force, which starts anew), and when the disk is full or not writable.
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
        self.path = Path(path)
        self.part = part_of(self.path)
        self.spec, self.made = spec, made or Provenance()
        self.committed: set[int] = set()
        self._layers = {layer.index: layer for layer in spec.layers}
        refuse_existing(self.path, force)
        texts = {
            "text": _fingerprint(prompt),
            "text of the decoder": None if target is None else _fingerprint(target),
        }
        identity = identity_of(spec, off, self.made, streaming, **texts)

        def write_beginning(file: h5py.File) -> None:
            write_root(file, spec, off, self.made, streaming)
            write_texts(file, prompt, spans, target)

        with writing(self.path):
            if begin(self.path, identity, force, write_beginning):
                self.committed = committed_layers(self.part, len(spec.layers))
                created = begun_at(self.part, self.made.created)
                self.made = replace(self.made, created=created)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            let_go(self.part)

    def add(
        self,
        index: int,
        layer: Factors | DenseMap,
        settle: bool = False,
        blocks: Blocks = tile_blocks,
    ) -> None:
        """Commit a layer: it is on the disk when this returns.

        settle: with the statistics that hgviz.maps.settled gives, which cost no pass of their own.
        blocks: how their weights are computed, such as by a device that is faster.
        """
        one = self._layers[index]
        maps = layer_maps(one, layer)
        target = self.part / schema.LAYER.format(index)
        with writing(self.path, self._kept()), whole_hdf5(target) as file:
            write_layer(file.create_group("layer"), one, maps, settle, blocks)
        self.committed.add(index)

    def finish(self, logits: NDArray[Any] | None = None, seconds: float = 0.0) -> Path:
        """Merge all layers into OUT and remove OUT.part. Errors: HgvizError, ValueError."""
        missing = sorted(set(self._layers) - self.committed)
        if missing:
            raise ValueError(f"layers {missing} were not added")
        scratch = self.part / (self.path.name + TEMPORARY)
        with writing(self.path, self._kept()), whole_hdf5(self.path, scratch) as file:
            self._merge(file, replace(self.made, seconds=seconds))
            write_output(file, logits)
            file.attrs["complete"] = 1
        remove(self.part)
        return self.path

    def _merge(self, file: h5py.File, made: Provenance) -> None:
        """Copy root and layers; HDF5 copies chunks as they are, without unpacking them."""
        mark(file)  # before all else, near the start of the file: a desktop reads no further
        with h5py.File(self.part / schema.ROOT, "r") as root:
            for name in root:
                if name != "made":
                    root.copy(root[name], file, name=name)
        store_json(file, "made", asdict(made))
        layers = file.require_group("layers")
        for index in sorted(self.committed):
            with h5py.File(self.part / schema.LAYER.format(index), "r") as part:
                part.copy(part["layer"], layers, name=f"{index:03}")
        share_mixtures(layers)

    def _kept(self) -> str:
        done = len(self.committed)
        return f"{done} of {len(self._layers)} layers stay in {self.part.name}" if done else ""


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
    """Write a capture to one file: a whole one, or what any program has (see capture_of).

    Errors: HgvizError, also for a capture that is not complete.
    """
    if capture is None:
        refuse_existing(Path(path), force)  # before anything is computed
        capture = capture_of(tokens, layers, name, logits)
    if not capture.complete:
        raise HgvizError(
            "this capture is not complete: "
            f"{sum(one is None for one in capture.maps)} of its layers are missing",
            "Capture the text again to the end, then save it",
        )
    made, parts = capture.made, (capture.spec, capture.prompt, capture.spans, capture.off)
    with Writer(path, *parts, made, force, capture.target, capture.streaming) as writer:
        for index, one in enumerate(capture.maps):
            if index not in writer.committed:
                writer.add(index, one.factors if isinstance(one, LazyMap) else _dense(one))
        return writer.finish(capture.logits, made.seconds)


def _dense(one: Any) -> DenseMap:
    if not isinstance(one, DenseMap):
        raise TypeError(f"a {type(one).__name__} cannot be stored")
    return one


def _fingerprint(prompt: Prompt) -> str:
    return hashlib.sha256((prompt.digest + prompt.text).encode(errors="replace")).hexdigest()
