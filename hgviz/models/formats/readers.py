"""Which checkpoint formats there are, and where their parts lie; needs no torch.

Files come from strangers: a config.json is bounded, and nothing but regular files is opened.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hgviz.core import HgvizError
from hgviz.files import (
    CONFIG,
    INDEX_SUFFIX,
    JSON_LIMIT,
    WEIGHT_SUFFIXES,
    find_path,
    model_name,
    path_errors,
    printable,
    quoted,
    read_object,
    short_path,
)

if TYPE_CHECKING:
    from hgviz.core import Modality
    from hgviz.models.formats.checkpoint import Checkpoint

WEIGHTS = "model.safetensors"
TRAX, ARRAYS = "trax", ".npz"
FIRST = (WEIGHTS, WEIGHTS + INDEX_SUFFIX, "pytorch_model.bin", "pytorch_model.bin" + INDEX_SUFFIX)
PACKAGE = "hourglass-transformer-pytorch"
POOLING = "dynamic-pooling"
SAVED, PARTS = "checkpoint_last.pt", (b"model_config", b"model_state")  # by its training
ADAPTER = "adapter_config.json"  # of PEFT: beside it lie weights that are added to a model's
OTHERS = (  # ends of names of weights that may lie beside those that are read
    *WEIGHT_SUFFIXES, INDEX_SUFFIX, ADAPTER, ".pth", ".ckpt", ".gguf", ".msgpack", ".onnx",
    ".ot", "tf_model.h5",
)  # fmt: skip

Config = TypeVar("Config")


# what whoever has a model that hgviz cannot run does instead
BRING = (
    "To look at its attention, run it yourself and write its queries and keys with "
    "hgviz.store.write_capture"
)


@dataclass(frozen=True, slots=True)
class Reader:
    """One checkpoint format: label is what file dialogs and error texts call it. stated: whether a
    config.json says its name, as model_type."""

    name: str
    label: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path, Modality], Checkpoint]
    stated: bool = True


def _own(path: Path, _: Modality) -> Checkpoint:
    from hgviz.models.formats import checkpoint

    return checkpoint.read_own(path)


def _package(path: Path, _: Modality) -> Checkpoint:
    from hgviz.models.formats import checkpoint

    return checkpoint.read_package(path)


def _dynamic(path: Path, _: Modality) -> Checkpoint:
    from hgviz.models.formats import dynamic

    return dynamic.read_dynamic(path)


def _trax(path: Path, _: Modality) -> Checkpoint:
    from hgviz.models.formats import trax

    return trax.read_trax(path)


def _transformers(path: Path, reads: Modality) -> Checkpoint:
    from hgviz.models.formats import transformers

    return transformers.read(path, reads)


READERS: tuple[Reader, ...] = (
    Reader("hgviz", "hgviz", lambda path: _model_type(path) == "hgviz", _own),
    Reader(PACKAGE, "Hourglass (.pt, .safetensors)", lambda p: _model_type(p) == PACKAGE, _package),
    Reader(POOLING, "Dynamic pooling (.pt)", lambda p: _model_type(p) == POOLING, _dynamic),
    Reader(TRAX, "trax (.npz)", lambda path: _model_type(path) == TRAX, _trax, stated=False),
    Reader(
        "transformers", "Transformers (Hugging Face)",
        lambda path: isinstance(_model_type(path), str), _transformers, stated=False,
    ),
)  # fmt: skip


def recognises(path: str | Path) -> bool:
    """Whether a path looks like a checkpoint, even a broken one; read says what is wrong."""
    path = find_path(path)
    with path_errors(path):
        if path.is_dir():
            return (path / CONFIG).exists() or any(_weighs(one) for one in path.iterdir())
        return path.name == CONFIG or _weighs(path) or path.suffix == ARRAYS


def read(path: str | Path, reads: Modality = "text") -> Checkpoint:
    """Read a checkpoint: a folder, or the weights file or the config.json within it.

    A name that is no path is looked for in the local Hugging Face cache. reads: which model of a
    folder such as CLIP's, with one for texts and one for images or sounds.
    Errors: HgvizError for whatever is missing, damaged or does not fit together.
    """
    path = find_path(path)
    for reader in READERS:
        if reader.recognises(path):
            return reader.read(path, reads)
    known = ", ".join(reader.name for reader in READERS if reader.stated)
    stated = _model_type(path)
    raise HgvizError(
        f"{short_path(located(path)[0])} is of a model that hgviz cannot run: "
        f"its model_type is {quoted(stated)}, and hgviz runs {known}",
        BRING,
    )


# --- where things lie -----------------------------------------------------------------------------


def located(path: Path) -> tuple[Path, Path | None]:
    """The config.json that belongs to a path, and the weights file if the path names one."""
    with path_errors(path):
        if path.is_dir():
            return path / CONFIG, None
        if not path.exists():
            what = f"{short_path(path)} could not be opened"
            raise HgvizError(f"{what}: there is no such file", "Check the path")
        if path.name == CONFIG:
            return path, None
        if _weighs(path):
            return path.parent / CONFIG, path
    raise HgvizError(
        f"{short_path(path)} is no checkpoint: weights are in {' or '.join(WEIGHT_SUFFIXES)} files",
        "Open a checkpoint's folder, its weights file or its config.json",
    )


def self_contained(path: Path) -> Path | None:
    """The file of a path that holds its own configuration, as dynamic-pooling saves it; None where
    a config.json lies there, which says how its weights are read."""
    folder = path if path.is_dir() else path.parent
    file = path / SAVED if path.is_dir() else path
    if (folder / CONFIG).exists() or file.suffix not in WEIGHT_SUFFIXES[1:] or not file.is_file():
        return None
    with suppress(OSError, zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, KeyError):
        with zipfile.ZipFile(file) as archive:
            name = next((one for one in archive.namelist() if one.endswith("/data.pkl")), "")
            with archive.open(name) as pickle:
                start = pickle.read(JSON_LIMIT)
        return file if all(one in start for one in PARTS) else None
    return None


def _weighs(path: Path) -> bool:
    return path.suffix in WEIGHT_SUFFIXES or path.name.endswith(INDEX_SUFFIX)


def _model_type(path: Path) -> Any:
    if path.suffix == ARRAYS:
        return TRAX
    config = located(path)[0]
    if self_contained(path):
        return POOLING
    with path_errors(config):
        if not config.is_file() and (config.parent / ADAPTER).is_file():
            raise _adapter_alone(config.parent)
        if not config.is_file():
            raise HgvizError(
                f"{short_path(config)} is missing: "
                "the weights alone do not say how the model computes",
                'Write one with its "model_type": '
                + ", ".join(f'"{r.name}"' for r in READERS if r.stated)
                + ", or that of a model of transformers",
            )
    data = read_object(config)
    first = data.get("architectures")
    if "model_type" not in data and isinstance(first, list) and first:
        return first[0]  # BERT's first files do not say it otherwise
    return data.get("model_type")


def weights_of(path: Path) -> Path:
    """The weights file that belongs to a path, or the index of several.

    Errors: HgvizError for none, or several without an index.
    """
    config, named = located(path)
    folder = config.parent
    if named is not None:
        index = folder / (re.sub(r"-\d+-of-\d+(?=\.\w+$)", "", named.name) + INDEX_SUFFIX)
        with path_errors(index):
            return index if index.name != named.name + INDEX_SUFFIX and index.exists() else named
    with path_errors(folder):
        for first in FIRST:
            if os.path.lexists(folder / first):
                return folder / first
        # training leaves other .bin files beside the weights: those are only opened by their name
        found = sorted(one for one in folder.iterdir() if one.suffix in WEIGHT_SUFFIXES[:2]
                       and not one.name.startswith("adapter_"))  # fmt: skip
    if len(found) > 1:
        raise HgvizError(
            f"{model_name(folder)} holds {len(found)} weights files: "
            f"such as {found[0].name} and {found[1].name}",
            "Open the one you mean",
        )
    if not found and (folder / ADAPTER).is_file():
        raise _adapter_alone(folder)
    if not found:
        raise _no_weights(folder)
    return found[0]


def _no_weights(folder: Path) -> HgvizError:
    """What is said of a folder without weights that are read, with those of other programs."""
    why = f"there is no {WEIGHTS}, {FIRST[2]} or .pt file beside its config.json"
    if other := unread_files(folder / WEIGHTS, ()):
        why, do = f"it holds {other[0]}, which hgviz does not read", f"Convert it to {WEIGHTS}"
    else:
        do = "Copy or download the weights into it"
    return HgvizError(f"{model_name(folder)} holds no weights: {why}", do)


def _adapter_alone(folder: Path) -> HgvizError:
    """What is said of a folder that holds an adapter and no model."""
    base = read_object(folder / ADAPTER).get("base_model_name_or_path")
    return HgvizError(
        f"{model_name(folder)} is an adapter of PEFT, not a whole model: "
        + (f"its base model is {quoted(base)}" if base else ""),
        "Merge the two and open the result: AutoPeftModelForCausalLM.from_pretrained(DIR)"
        ".merge_and_unload().save_pretrained(OUT)",
    )


def unread_files(weights: Path, read: Collection[str]) -> list[str]:
    """Names of other weights and adapters beside a checkpoint's weights file.

    read: the weights files that the model was read from.
    """
    names = sorted(one.name for one in weights.parent.iterdir() if one.is_file())
    return [
        f"{name} (an adapter)" if name.startswith("adapter_model.") else name
        for name in map(printable, names)
        if name not in read and name.endswith(OTHERS)
    ]


# --- what files say -------------------------------------------------------------------------------


def converted(data: dict[str, Any], kind: type[Config], where: str) -> Config:
    """What a config.json says, checked. Errors: HgvizError naming the first key that is wrong."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        why, _, key = str(error).partition(" - at `$")
        place = f"{key.strip('.`')}: " if key else ""
        raise HgvizError(
            f"{where} does not describe a model hgviz can build: {place + _plain(why)}",
            f"Correct {where}",
        ) from None


def _plain(words: str) -> str:
    words = words.replace("`", "").replace("Object missing required field", "it lacks")
    return printable(words.replace("Object contains unknown field", "hgviz knows no"))
