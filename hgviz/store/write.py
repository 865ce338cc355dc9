"""Writing captures: layer by layer while the model runs, one file at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.core import (
    Capture,
    HgvizError,
    Integers,
    ModelSpec,
    Off,
    Prompt,
    Provenance,
)
from hgviz.maps import DenseMap, Factors, LazyMap
from hgviz.store import schema
from hgviz.store.contents import mark, store, store_json, write_layer, write_root
from hgviz.store.files import TEMPORARY, whole_hdf5, whole_text, writing
from hgviz.store.given import capture_of
from hgviz.store.read import committed_layers, read_manifest


class Writer:
    """A capture on its way to a file: OUT.part holds every layer that was added.

    Opened on the OUT.part of an interrupted capture of the same model, text, masking, number
    format and heads switched off, it goes on where that one ended; `committed` says which layers
    are there. Raises HgvizError when OUT exists (unless force), when OUT.part is of another
    capture (unless force, which starts anew), and when the disk is full or not writable.
    """

    def __init__(
        self,
        path: str | Path,
        spec: ModelSpec,
        prompt: Prompt,
        spans: tuple[Integers, ...],
        off: Off = frozenset(),
        made: Provenance | None = None,
        force: bool = False,
        target: Prompt | None = None,
    ) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(self.path.name + schema.PART)
        self.spec, self.made = spec, made or Provenance()
        self.committed: set[int] = set()
        self._layers = {layer.index: layer for layer in spec.layers}
        _refuse_existing(self.path, force)
        identity = _identity(spec, prompt, off, self.made, target)
        with writing(self.path):
            if not self._resumed(identity, force):
                self.part.mkdir(exist_ok=True)
                with whole_hdf5(self.part / schema.ROOT) as file:
                    write_root(file, spec, prompt, spans, off, self.made, target)
                whole_text(self.part / schema.MANIFEST, json.dumps(identity, indent=2))

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not self.committed:
            _remove(self.part)  # there is nothing in it to go on with

    def add(self, index: int, layer: Factors | DenseMap, settle: bool = False) -> None:
        """Commit a layer: it is on the disk when this returns.

        settle: with the statistics that hgviz.maps.settled gives, which cost no pass of their own.
        """
        heads = self._layers[index].heads
        maps = LazyMap(layer, heads) if isinstance(layer, Factors) else layer
        if maps.heads != heads:
            raise ValueError(f"layer {index} has the heads {heads}, not {maps.heads}")
        target = self.part / schema.LAYER.format(index)
        with writing(self.path, self._kept()), whole_hdf5(target) as file:
            write_layer(file.create_group("layer"), self._layers[index], maps, settle)
        self.committed.add(index)

    def finish(self, logits: NDArray[Any] | None = None, seconds: float = 0.0) -> Path:
        """Merge all layers into OUT and remove OUT.part. Errors: HgvizError, ValueError."""
        missing = sorted(set(self._layers) - self.committed)
        if missing:
            raise ValueError(f"layers {missing} were not added")
        scratch = self.part / (self.path.name + TEMPORARY)
        with writing(self.path, self._kept()), whole_hdf5(self.path, scratch) as file:
            self._merge(file, replace(self.made, seconds=seconds))
            if logits is not None:
                values = np.asarray(logits)
                if values.dtype != np.float64:
                    values = values.astype(np.float32)
                store(file, "output/logits", values, axis=0)
            file.attrs["complete"] = 1
        _remove(self.part)
        return self.path

    def _merge(self, file: h5py.File, made: Provenance) -> None:
        """Copy root and layers; HDF5 copies chunks as they are, without unpacking them."""
        with h5py.File(self.part / schema.ROOT, "r") as root:
            for name in root:
                if name != "made":
                    root.copy(root[name], file, name=name)
            mark(file)
        store_json(file, "made", asdict(made))
        layers = file.require_group("layers")
        for index in sorted(self.committed):
            with h5py.File(self.part / schema.LAYER.format(index), "r") as part:
                part.copy(part["layer"], layers, name=f"{index:03}")

    def _resumed(self, identity: dict[str, Any], force: bool) -> bool:
        """Whether OUT.part can be gone on with; what cannot is refused, or removed by force."""
        if not self.part.is_dir():
            return False
        for left in self.part.glob(f"*{TEMPORARY}"):
            left.unlink()
        found = read_manifest(self.part)
        if found is None:  # killed before there was anything to go on with
            return False
        other = [name for name in identity if found.get(name) != identity[name]]
        if not other:
            self.committed = committed_layers(self.part, len(self.spec.layers))
            return True
        if force:
            _remove(self.part)
            return False
        raise HgvizError(
            f"{self.part} holds an unfinished capture with another {' and another '.join(other)}",
            "going on with it would mix the two",
            "Finish that one, choose another name, or start anew with --force",
        )

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
        _refuse_existing(Path(path), force)  # before anything is computed
        capture = capture_of(tokens, layers, name, logits)
    if not capture.complete:
        raise HgvizError(
            "this capture is not complete",
            f"{sum(one is None for one in capture.maps)} of its layers are missing",
            "Capture the text again to the end, then save it",
        )
    made, parts = capture.made, (capture.spec, capture.prompt, capture.spans, capture.off)
    with Writer(path, *parts, made, force, capture.target) as writer:
        for index, one in enumerate(capture.maps):
            if index not in writer.committed:
                writer.add(index, one.factors if isinstance(one, LazyMap) else _dense(one))
        return writer.finish(capture.logits, made.seconds)


def _dense(one: Any) -> DenseMap:
    if not isinstance(one, DenseMap):
        raise TypeError(f"a {type(one).__name__} cannot be stored")
    return one


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise HgvizError(f"{path} is a folder", "a capture is one file", "Give the file a name")
    if path.exists() and not force:
        raise HgvizError(
            f"{path} exists already", "it was not touched", "Choose another name, or use --force"
        )


def _identity(
    spec: ModelSpec, prompt: Prompt, off: Off, made: Provenance, target: Prompt | None
) -> dict[str, Any]:
    """What two captures must have in common to be one; the names are shown to people."""
    return {
        "format": schema.FORMAT,
        "format version": list(schema.VERSION),
        "model": hashlib.sha256(json.dumps(asdict(spec), sort_keys=True).encode()).hexdigest(),
        "text": _fingerprint(prompt),
        "text of the decoder": None if target is None else _fingerprint(target),
        "set of heads switched off": sorted(map(str, off)),
        "masking": made.masking,
        "number format": made.dtype,
    }


def _fingerprint(prompt: Prompt) -> str:
    return hashlib.sha256((prompt.digest + prompt.text).encode(errors="replace")).hexdigest()


def _remove(part: Path) -> None:
    """Remove our own files and the folder, if nothing else is in it."""
    for pattern in (schema.LAYER.replace("{:03}", "*"), schema.ROOT, schema.MANIFEST):
        for file in part.glob(pattern):
            file.unlink(missing_ok=True)
    for file in part.glob(f"*{TEMPORARY}"):
        file.unlink(missing_ok=True)
    with suppress(OSError):
        part.rmdir()
