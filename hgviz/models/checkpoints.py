"""Checkpoints of every format: a table of readers, and checkpoints written to folders.

To import this takes no torch, so that a window can list the formats before it is loaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from hgviz.core import HgvizError, Modality, ModelSpec
from hgviz.errors import require
from hgviz.files import (
    CONFIG,
    INDEX_SUFFIX,
    WEIGHT_SUFFIXES,
    find_path,
    model_name,
    path_errors,
    quoted,
    read_object,
    short_path,
    write_atomic,
)
from hgviz.models.text import (
    MOST_TOKENIZER,
    SETTINGS,
    TOKENIZER,
    Bare,
    Pieces,
    read_bytes,
    tokenizer_file,
    tokenizer_of,
)

if TYPE_CHECKING:  # torch takes a second
    from torch import Tensor

    from hgviz.models.layers import Configuration
    from hgviz.models.pretrained_config import TransformersConfig
    from hgviz.models.tensors import Checkpoint

FOLDER_SUFFIXES = (*WEIGHT_SUFFIXES, INDEX_SUFFIX)
OTHER_WEIGHTS = (  # ends of files that may hold other weights, graphs or states of the same model
    *FOLDER_SUFFIXES, ".pth", ".ckpt", ".h5", ".msgpack", ".npz", ".onnx", ".onnx_data", ".data",
    ".ot", ".gguf", ".tflite", ".mlmodel", ".pb", ".pkl",
)  # fmt: skip
FOREIGN_FOLDERS = (".git", ".cache", ".locks", "__pycache__")  # no part of a model
COPY_LIMIT = 1000  # files beside weights


@dataclass(frozen=True, slots=True)
class Reader:
    """A checkpoint format.

    name: its model_type in config.json, where it has one. label: its name in file dialogs.
    suffixes: of files of weights. recognises: whether a path is of this format, by its content.
    read: the checkpoint at a path; of a folder such as CLIP's, the model of a modality.
    """

    name: str
    label: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Path], bool]
    read: Callable[[Path, Modality], Checkpoint]


def _read_hgviz(path: Path, _: Modality) -> Checkpoint:
    from hgviz.models.config import parse_config
    from hgviz.models.tensors import config_file, fit_checkpoint, read_weights, weights_of

    where, weights = config_file(path), weights_of(path)
    tensors, keys = read_weights(weights), read_object(where)
    positions = tensors.get("embed.position.weight")
    if positions is not None and positions.dim() == 2 and keys.get("max_positions") is None:
        keys["max_positions"] = len(positions)
    return fit_checkpoint(parse_config(keys, short_path(where)), tensors, weights)


def _foreign() -> Any:
    from hgviz.models import foreign  # imports torch

    return foreign


def _read_transformers(path: Path, modality: Modality) -> Checkpoint:
    from hgviz.models import pretrained

    return pretrained.read(path, modality)


READERS: tuple[Reader, ...] = (
    Reader(
        "hgviz", "hgviz", FOLDER_SUFFIXES, lambda path: model_type(path) == "hgviz", _read_hgviz,
    ),
    Reader(
        "hourglass-transformer-pytorch", "Hourglass (.pt, .safetensors)", FOLDER_SUFFIXES,
        lambda path: model_type(path) == "hourglass-transformer-pytorch",
        lambda path, _: _foreign().read_lucidrains(path),
    ),
    Reader(
        "dynamic-pooling", "Dynamic pooling (.pt)", WEIGHT_SUFFIXES,
        lambda path: model_type(path) == "dynamic-pooling" or bool(_foreign().nawrot_file(path)),
        lambda path, _: _foreign().read_nawrot(path),
    ),
    Reader(
        "", "trax (.npz)", (".npz",), lambda path: path.suffix == ".npz",
        lambda path, _: _foreign().read_trax(path),
    ),
    Reader(
        "", "Transformers (Hugging Face)", FOLDER_SUFFIXES,
        lambda path: isinstance(model_type(path), str), _read_transformers,
    ),
)  # fmt: skip


def file_suffixes() -> tuple[str, ...]:
    """What the names of files that hold a checkpoint end in."""
    return tuple(dict.fromkeys(suffix for reader in READERS for suffix in reader.suffixes))


def recognises(path: str | Path) -> bool:
    """Whether a path looks like a checkpoint, even a broken one; read says what is wrong."""
    path = find_path(path)
    with path_errors(path):
        if path.is_dir():
            files = (file.name for file in path.iterdir())
            return any(name == CONFIG or name.endswith(FOLDER_SUFFIXES) for name in files)
        return path.name == CONFIG or path.name.endswith(file_suffixes())


def read(path: str | Path, modality: Modality = "text") -> Checkpoint:
    """Read a checkpoint: a folder, the weights file or the config.json in it, or the name of a
    model in the local Hugging Face cache.

    modality: which model of a folder such as CLIP's, with one for texts and one for images or
    sounds. Raises HgvizError for whatever is missing, damaged or does not fit together.
    """
    path = find_path(path)
    for reader in READERS:
        if reader.recognises(path):
            return reader.read(path, modality)
    from hgviz.models.huggingface import CAPTURE_ADVICE
    from hgviz.models.tensors import config_file, require_no_adapter

    where, names = config_file(path), [reader.name for reader in READERS if reader.name]
    quoted_names = ", ".join(f'"{name}"' for name in names)
    with path_errors(where):
        if not where.is_file():
            require_no_adapter(where.parent)
            raise HgvizError(
                f"{short_path(where)} is missing: the architecture cannot be read from weights",
                f'Create one with its "model_type": {quoted_names}, or one of transformers',
            )
    raise HgvizError(
        f"{short_path(where)} has an unsupported architecture: its model_type is "
        f"{quoted(read_object(where).get('model_type'))}, and hgviz supports {', '.join(names)}",
        CAPTURE_ADVICE,
    )


def model_type(path: Path) -> Any:
    """What the config.json of a folder or of a weights file says as model_type, or else as its
    first class, as BERT's first files do; None without such a file."""
    with path_errors(path):
        is_folder = path.is_dir()
        config = path / CONFIG if is_folder else path.parent / CONFIG
        if not (is_folder or path.name == CONFIG or path.name.endswith(FOLDER_SUFFIXES)):
            return None
        if not path.exists() or not config.is_file():
            return None
    data = read_object(config)
    classes = data.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes else None
    return data.get("model_type", first)


def is_of_transformers(config: Configuration) -> TypeGuard[TransformersConfig]:
    """Whether a configuration is of a model of transformers."""
    from hgviz.models.pretrained_config import TransformersConfig

    return isinstance(config, TransformersConfig)


# --- written as one folder ------------------------------------------------------------------------


@contextmanager
def weight_errors(path: Path) -> Iterator[None]:
    """Raise what goes wrong while weights are written as HgvizError.

    torch and safetensors raise errors of their own over those of the system.
    """
    from safetensors import SafetensorError

    with path_errors(path, "could not be written"):
        try:
            yield
        except SafetensorError as error:
            if number := re.search(r"os error (\d+)", str(error)):
                raise OSError(int(number[1]), os.strerror(int(number[1]))) from None
            raise
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise


def save(
    folder: str | Path,
    config: Configuration,
    tensors: Mapping[str, Tensor],
    tokenizer: bytes | None = None,
) -> None:
    """Write hgviz's own folder, or that of a model of transformers: config.json, and
    model.safetensors in the tensors' own dtypes.

    tokenizer: the content of tokenizer.json; None writes none. Each file is written whole or not at
    all. Raises HgvizError where the folder cannot be written.
    """
    from safetensors.torch import save as serialize

    from hgviz.models.config import config_json
    from hgviz.models.tensors import WEIGHTS

    folder, metadata = Path(folder), None
    if is_of_transformers(config):
        from hgviz.models.pretrained import to_file_layout

        tensors, keys, metadata = to_file_layout(config, tensors), config.keys(), {"format": "pt"}
    else:
        keys = config_json(config)
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with path_errors(folder, "could not be written"):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / WEIGHTS, serialize(contiguous, metadata))
        if tokenizer is not None:
            write_atomic(folder / TOKENIZER, tokenizer)
        write_atomic(folder / CONFIG, json.dumps(keys, indent=2) + "\n")


def convert(checkpoint: Checkpoint, out: Path) -> ModelSpec:
    """Write a checkpoint as one folder: config.json, model.safetensors, tokenizer.json if any.

    The folder is hgviz's own; of a model of transformers it is one that transformers opens, with
    all that lies beside the model and is no weights. Opened from there, the model gives the same
    logits, bit for bit. Raises HgvizError where the folder cannot be written, or is the model's
    own, and for a model without some heads that nothing but hgviz opens.
    """
    folder, files = checkpoint.folder, list[Path]()
    with path_errors(out, "could not be written"):
        require(
            not (out.exists() and out.samefile(folder)),
            f"{short_path(out)} is the model itself and would be overwritten",
            "Choose another folder",
        )
    if is_of_transformers(checkpoint.config):
        from hgviz.models.pretrained import rename_tensors

        written = (Path(CONFIG), Path(checkpoint.weights.name))
        files = [file for file in files_beside(checkpoint, out)[0] if file not in written]
        tokenizer = None  # vocabulary files that make none are copied, as a tokenizer.json is
        if checkpoint.config.vocab_size and (folder / TOKENIZER).exists():
            tokenizer_of(folder, checkpoint.config.vocab_size)  # raises for a damaged one
        elif checkpoint.config.vocab_size:
            with suppress(HgvizError):
                tokenizer = tokenizer_json(checkpoint)
        checkpoint = rename_tensors(checkpoint)
    else:
        tokenizer = tokenizer_json(checkpoint)
    with path_errors(out, "could not be written"):
        (out / CONFIG).unlink(missing_ok=True)  # killed from here on, out is no checkpoint
        while out.is_dir() and (old := tokenizer_file(out)) is not None:
            old.unlink()
        _copy_files(folder, out, files)
    save(out, checkpoint.config, checkpoint.tensors, tokenizer)
    parameters = sum(tensor.numel() for tensor in checkpoint.tensors.values())
    return checkpoint.config.spec(model_name(out), checkpoint.digest, parameters)


def tokenizer_json(checkpoint: Checkpoint) -> bytes | None:
    """The tokenizer of a checkpoint as a tokenizer.json; None for bytes and for none.

    Raises HgvizError for one that does not fit the model's vocabulary, and for vocabulary files
    that make none.
    """
    if checkpoint.tokenizer is not None:
        return checkpoint.tokenizer
    tokenizer = tokenizer_of(checkpoint.folder, checkpoint.config.vocab_size)
    if isinstance(tokenizer, Bare) and tokenizer.error is not None:
        raise tokenizer.error
    if not isinstance(tokenizer, Pieces):
        return None
    file = checkpoint.folder / TOKENIZER
    is_complete = file.exists() and not (checkpoint.folder / SETTINGS).exists()
    return read_bytes(file, MOST_TOKENIZER) if is_complete else tokenizer.json


def require_free(
    out: Path, force: bool = False, do: str = "Choose another folder, or add --force"
) -> None:
    """Raise HgvizError where there is something that a new folder would replace."""
    with path_errors(out):
        exists, name = os.path.lexists(out), short_path(out)
        what = f"{name} is a file, and a checkpoint is written to a folder"
        require(not exists or out.is_dir(), what, "Choose a folder")
        is_empty = not exists or force or not any(out.iterdir())
        require(is_empty, f"the folder {name} is not empty", do)


# --- written again as it was ----------------------------------------------------------------------


def rewrite(checkpoint: Checkpoint, out: Path) -> Path:
    """Write the files that a checkpoint was read from, with its tensors as they are now.

    Whatever opens the original opens the copy: names and precision stay, and all files beside the
    weights are copied but for other weights, which would be those of the original. Returns the
    weights file, or the index of shards, in `out`. Raises HgvizError where that fails.
    """
    require(
        checkpoint.sources,
        f"{short_path(checkpoint.weights)} cannot be rewritten in its own format: "
        "it contains more than tensors",
        "Choose --form smaller, or convert it first with hgviz convert",
    )
    with weight_errors(out):
        _copy_files(checkpoint.folder, out, files_beside(checkpoint, out)[0])
        for file, names in _names_by_file(checkpoint).items():
            _rewrite_file(checkpoint, names, checkpoint.folder / file, out / file)
        if is_of_transformers(checkpoint.config):
            _rewrite_config(checkpoint.config, out)
    return out / checkpoint.weights.name


def files_beside(checkpoint: Checkpoint, out: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Paths, from the folder of the weights on, that are copied when they are written into `out`,
    and those that are left out: other weights, links to folders, and what is no file.

    Folders of parts of sentence-transformers, such as 2_Dense, are copied whole. Raises HgvizError
    for a folder that holds so much that it is no model's own.
    """
    copied, left_out = list[Path](), list[Path]()
    top, weights = checkpoint.folder.absolute(), checkpoint.weights.name
    written = {*_names_by_file(checkpoint), weights}

    def fail(error: OSError) -> None:
        raise error

    with path_errors(top):
        for path, folders, files in os.walk(top, onerror=fail):
            inner = Path(path).relative_to(top)
            links = {name for name in folders if (Path(path) / name).is_symlink()}
            left_out += [inner / name for name in links]
            target = {name for name in folders if Path(path) / name == out.absolute()}
            folders[:] = sorted({*folders} - links - target - {*FOREIGN_FOLDERS})
            for name in sorted(files):
                file = inner / name
                if inner == Path() and name in written:
                    copied += [file] if name.endswith(INDEX_SUFFIX) else []
                    continue
                is_part = re.match(r"\d+_", file.parts[0]) or not name.endswith(OTHER_WEIGHTS)
                (copied if is_part and (top / file).is_file() else left_out).append(file)
            require(
                len(copied) <= COPY_LIMIT,
                f"{short_path(top)} contains more than a model: "
                f"it has over {COPY_LIMIT:,} files, and all would be copied",
                "Move the model to a separate folder",
            )
    return tuple(copied), tuple(sorted(left_out))


def _copy_files(folder: Path, out: Path, files: tuple[Path, ...] | list[Path]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for file in files:
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / file, out / file)


def _names_by_file(checkpoint: Checkpoint) -> dict[str, list[str]]:
    """The names of the neutral tensors in each file of weights."""
    from hgviz.models.tensors import shard_places

    weights = checkpoint.weights
    places = shard_places(weights) if weights.name.endswith(INDEX_SUFFIX) else {}
    files: dict[str, list[str]] = {file: [] for file in places.values()}
    for name, source in checkpoint.sources.items():
        files.setdefault(places.get(source.name, weights.name), []).append(name)
    return files


def _rewrite_file(checkpoint: Checkpoint, names: list[str], path: Path, out: Path) -> None:
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    from hgviz.models.tensors import read_tensors

    sources = {name: checkpoint.sources[name] for name in names}
    needed = {source.name for source in sources.values()}
    stored = read_tensors(path, lambda name: name not in needed)
    changed: dict[str, Tensor] = {}
    for name, source in sources.items():
        if not torch.equal(source.take(stored[source.name]), checkpoint.tensors[name]):
            tensor = changed.get(source.name, stored[source.name])
            changed[source.name] = source.put(tensor, checkpoint.tensors[name])
    if not changed:
        shutil.copyfile(path, out)
    elif path.suffix == ".safetensors":
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            save_file(tensors | changed, out, file.metadata())
    else:
        state = torch.load(path, map_location="cpu", weights_only=True)
        state.update(changed)
        with out.open("wb") as file:
            torch.save(state, file)


def _rewrite_config(config: TransformersConfig, out: Path) -> None:
    """Let config.json describe the model as it is now, and an index the size of its shards."""
    from hgviz.models.tensors import read_weights

    keys = config.keys()
    if json.loads((out / CONFIG).read_bytes()) == keys:
        return
    text = json.dumps(keys, indent=2, ensure_ascii=False)
    (out / CONFIG).write_text(text + "\n", "utf-8")
    for file in out.glob(f"*{INDEX_SUFFIX}"):
        index, tensors = json.loads(file.read_bytes()), read_weights(file).values()
        sizes = {
            "total_size": sum(tensor.nbytes for tensor in tensors),
            "total_parameters": sum(tensor.numel() for tensor in tensors),
        }
        index["metadata"] |= {key: sizes[key] for key in sizes if key in index["metadata"]}
        file.write_text(json.dumps(index, indent=2) + "\n", "utf-8")
