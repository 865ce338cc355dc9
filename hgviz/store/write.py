"""Writing captures: layer by layer while the model runs, one file at the end."""

from __future__ import annotations

import hashlib
import json
import zlib
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
    Layer,
    ModelSpec,
    Off,
    Prompt,
    Provenance,
)
from hgviz.maps import DenseMap, Factors, LazyMap
from hgviz.store import schema
from hgviz.store.files import TEMPORARY, whole_hdf5, whole_text, writing
from hgviz.store.read import committed_layers, read_manifest

CHUNK_BYTES = 64 << 10
TILE_CHUNK = 256


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
    ) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(self.path.name + schema.PART)
        self.spec, self.made = spec, made or Provenance()
        self.committed: set[int] = set()
        self._layers = {layer.index: layer for layer in spec.layers}
        _refuse_existing(self.path, force)
        identity = _identity(spec, prompt, off, self.made)
        with writing(self.path):
            if not self._resumed(identity, force):
                self.part.mkdir(exist_ok=True)
                with whole_hdf5(self.part / schema.ROOT) as file:
                    _write_root(file, spec, prompt, spans, off, self.made)
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

    def add(self, index: int, layer: Factors | DenseMap) -> None:
        """Commit a layer: it is on the disk when this returns."""
        heads = self._layers[index].heads
        maps = LazyMap(layer, heads) if isinstance(layer, Factors) else layer
        if maps.heads != heads:
            raise ValueError(f"layer {index} has the heads {heads}, not {maps.heads}")
        target = self.part / schema.LAYER.format(index)
        with writing(self.path, self._kept()), whole_hdf5(target) as file:
            _write_layer(file.create_group("layer"), self._layers[index], maps)
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
                values = np.asarray(logits, np.float32)
                _store(file, "output/logits", values, axis=0)
            file.attrs["complete"] = 1
        _remove(self.part)
        return self.path

    def _merge(self, file: h5py.File, made: Provenance) -> None:
        """Copy root and layers; HDF5 copies chunks as they are, without unpacking them."""
        with h5py.File(self.part / schema.ROOT, "r") as root:
            for name in root:
                if name != "made":
                    root.copy(root[name], file, name=name)
            _mark(file)
        _store_json(file, "made", asdict(made))
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


def write_capture(path: str | Path, capture: Capture, force: bool = False) -> Path:
    """Write a capture to one file. Errors: HgvizError, also for a capture that is not complete."""
    if not capture.complete:
        raise HgvizError(
            "this capture is not complete",
            f"{sum(one is None for one in capture.maps)} of its layers are missing",
            "Capture the text again to the end, then save it",
        )
    made = capture.made
    with Writer(
        path, capture.spec, capture.prompt, capture.spans, capture.off, made, force
    ) as writer:
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


def _identity(spec: ModelSpec, prompt: Prompt, off: Off, made: Provenance) -> dict[str, Any]:
    """What two captures must have in common to be one; the names are shown to people."""
    return {
        "format": schema.FORMAT,
        "format version": list(schema.VERSION),
        "model": hashlib.sha256(spec.to_json().encode()).hexdigest(),
        "text": hashlib.sha256((prompt.digest + prompt.text).encode(errors="replace")).hexdigest(),
        "set of heads switched off": sorted(map(str, off)),
        "masking": made.masking,
        "number format": made.dtype,
    }


def _remove(part: Path) -> None:
    """Remove our own files and the folder, if nothing else is in it."""
    for pattern in (schema.LAYER.replace("{:03}", "*"), schema.ROOT, schema.MANIFEST):
        for file in part.glob(pattern):
            file.unlink(missing_ok=True)
    for file in part.glob(f"*{TEMPORARY}"):
        file.unlink(missing_ok=True)
    with suppress(OSError):
        part.rmdir()


# --- what is where --------------------------------------------------------------------------------


def _mark(file: h5py.File) -> None:
    file.attrs["format"] = np.bytes_(schema.FORMAT)
    file.attrs["format_version"] = np.array(schema.VERSION, "<i4")


def _write_root(
    file: h5py.File,
    spec: ModelSpec,
    prompt: Prompt,
    spans: tuple[Integers, ...],
    off: Off,
    made: Provenance,
) -> None:
    _mark(file)
    _store_json(file, "spec", json.loads(spec.to_json()))
    _store_json(file, "off", sorted(off))
    _store_json(file, "made", asdict(made))
    _store_text(file, "prompt/text", prompt.text)
    _store_json(file, "prompt/pieces", prompt.pieces)
    _store(file, "prompt/ids", np.asarray(prompt.ids, "<i8"))
    _store(file, "prompt/spans", np.asarray(prompt.spans, "<i8").reshape(-1, 2))
    if prompt.attention_mask is not None:
        _store(file, "prompt/attention_mask", np.asarray(prompt.attention_mask, "u1"))
    if prompt.token_type_ids is not None:
        _store(file, "prompt/token_type_ids", np.asarray(prompt.token_type_ids, "<i8"))
    for level, one in enumerate(spans):
        _store(file, f"levels/{level}/spans", np.asarray(one, "<i8").reshape(-1, 2))


def _write_layer(group: h5py.Group, layer: Layer, maps: LazyMap | DenseMap) -> None:
    attributes: dict[str, Any] = {
        "name": layer.name, "role": layer.role, "level": layer.level,
        "key_level": layer.key_level, "heads": layer.heads, "signed": maps.signed,
        "causal": layer.causal,
    }  # fmt: skip
    if isinstance(maps, LazyMap):
        attributes |= {"kind": "lazy", **_write_factors(group, maps)}
    elif isinstance(maps, DenseMap):
        attributes |= {"kind": "dense", "causal": maps.causal}
        _write_weights(group, maps)
    _write_summaries(group, maps)
    for name, value in attributes.items():
        group.attrs[name] = _plain(value)
    group.attrs["committed"] = 1


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return np.bytes_(value.encode())
    if isinstance(value, bool):
        return int(value)  # h5py would make an enumeration of it
    return np.array(value, "<i8") if isinstance(value, tuple) else value


def _write_factors(group: h5py.Group, maps: LazyMap) -> dict[str, Any]:
    """q, k, statistic, relative terms and proof; returns the attributes that go with them."""
    factors, rule = maps.factors, maps.factors.rule
    crc = [0] * len(maps.heads)
    for name, values in (("q", factors.q), ("k", factors.k), ("stat", factors.stat)):
        _store_heads(group, name, values, crc)
        group[name].attrs["dtype"] = np.bytes_(factors.dtype if name != "stat" else "float32")
    if rule.keep is not None:
        _store(group, "keep", np.asarray(rule.keep, "u1"))
    if rule.relative is not None:
        for name in ("weight", "bias", "content", "position"):
            _store_heads(group, f"relative/{name}", getattr(rule.relative, name), crc)
    _store(group, "proof/rows", np.asarray(factors.proof_rows[...], "<i8"))
    _store(group, "proof/values", np.asarray(factors.proof_values[...], "<f4"), axis=2)
    return {
        "stride_q": rule.stride_q, "stride_k": rule.stride_k, "scale": float(rule.scale),
        "causal": rule.causal, "windowed": rule.windowed, "empty_rows": rule.empty_rows,
        "activations": " ".join(rule.activations),
        "norms": " ".join(norm or "-" for norm in rule.norms),
        "unit": rule.relative.unit if rule.relative is not None else 1,
        "verify_max_abs": maps.verify_max_abs,
        "crc32": tuple(crc),
    }  # fmt: skip


def _write_summaries(group: h5py.Group, maps: LazyMap | DenseMap) -> None:
    found = [maps.summary(head) for head in maps.heads]
    limit = np.finfo(np.float16).max
    shape = (0, 0)
    if found:
        shape = found[0].thumb.shape
    thumbs = np.array([one.thumb for one in found], np.float32).reshape(len(found), *shape)
    # one chunk, so that a wall of heads is one read per layer
    _store(group, "thumb", np.clip(thumbs, -limit, limit).astype("<f2"), chunks=thumbs.shape)
    queries = maps.shape[1]
    for name in ("rowmax", "entropy"):
        rows = np.array([getattr(one, name) for one in found], "<f4").reshape(len(found), queries)
        _store(group, name, rows)


def _write_weights(group: h5py.Group, maps: DenseMap) -> None:
    """Tiles of a dense map; those above the diagonal of a causal one are never written."""
    array = maps.array
    side = min(TILE_CHUNK, max(1, *array.shape[1:]))
    target = group.create_dataset(
        "weights", array.shape, array.dtype.newbyteorder("<"),
        chunks=(1, side, side), shuffle=True, compression="gzip", compression_opts=1,
    )  # fmt: skip
    for place in range(array.shape[0]):
        for top in range(0, array.shape[1], side):
            right = min(top + side, array.shape[2]) if maps.causal else array.shape[2]
            for left in range(0, right, side):
                at = (place, slice(top, top + side), slice(left, left + side))
                target[at] = array[at]


# --- datasets -------------------------------------------------------------------------------------


def _store(
    group: h5py.Group,
    name: str,
    values: NDArray[Any],
    axis: int = -1,
    chunks: tuple[int, ...] | None = None,
) -> None:
    """A dataset with checksums, cut along one axis; an empty one needs none."""
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    if little.size == 0:
        group.create_dataset(name, data=little)
        return
    shape = chunks or _chunks(little.shape, axis % little.ndim, little.dtype.itemsize)
    group.create_dataset(name, data=little, chunks=shape, fletcher32=True)


def _store_heads(group: h5py.Group, name: str, values: Any, crc: list[int]) -> None:
    """(heads, rows, ...) head by head; each head's checksum goes on."""
    dtype = np.dtype(values.dtype).newbyteorder("<")
    axis = 1 if name in ("q", "k", "stat") else len(values.shape) - 1
    chunks = _chunks((1, *values.shape[1:]), axis, dtype.itemsize)
    target = group.create_dataset(
        name, values.shape, dtype, chunks=chunks if 0 not in values.shape else None,
        fletcher32=0 not in values.shape,
    )  # fmt: skip
    for place in range(values.shape[0]):
        part = np.ascontiguousarray(values[place], dtype)
        target[place] = part
        crc[place] = zlib.crc32(part.data, crc[place])


def _chunks(shape: tuple[int, ...], axis: int, itemsize: int) -> tuple[int, ...]:
    """Equal runs along an axis of about CHUNK_BYTES, with less than one row to spare in each."""
    others = int(np.prod(shape)) // max(1, shape[axis]) * itemsize
    runs = -(-shape[axis] // max(1, CHUNK_BYTES // max(1, others)))
    run = -(-shape[axis] // max(1, runs))
    return (*shape[:axis], max(1, run), *shape[axis + 1 :])


def _store_text(group: h5py.Group, name: str, text: str) -> None:
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    _store(group, name, data)


def _store_json(group: h5py.Group, name: str, value: Any) -> None:
    _store_text(group, name, json.dumps(value))
