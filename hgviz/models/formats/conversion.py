"""Any checkpoint written as one folder: hgviz's own, or that of transformers."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from hgviz.core import HgvizError, ModelSpec
from hgviz.files import CONFIG, model_name, path_errors, short_path
from hgviz.models.config import TransformersConfig
from hgviz.models.formats import rewriting
from hgviz.models.formats.checkpoint import Checkpoint, save
from hgviz.models.texts.text import (
    MOST_TOKENIZER,
    SETTINGS,
    TOKENIZER,
    Bare,
    Pieces,
    read_bytes,
    tokenizer_file,
    tokenizer_of,
)


def require_free(
    out: Path, force: bool = False, do: str = "Choose another folder, or add --force"
) -> None:
    """Errors: HgvizError where there is something that a new folder would replace."""
    with path_errors(out):
        taken = os.path.lexists(out)
        if taken and not out.is_dir():
            raise HgvizError(
                f"{short_path(out)} is no folder: a checkpoint is one", "Choose another"
            )
        if taken and not force and any(out.iterdir()):
            raise HgvizError(
                f"{short_path(out)} is there and not empty: nothing is replaced unasked", do
            )


def write(found: Checkpoint, out: Path) -> ModelSpec:
    """Write config.json, model.safetensors and, where there is one, tokenizer.json into out.

    The folder is hgviz's own; of a model of transformers it is one that transformers opens, with
    all that lies beside the model and is no weights. Opened from there, the model gives the same
    logits, bit for bit. Errors: HgvizError where the folder cannot be written, or is the model's
    own, and for a model without some heads that nothing but hgviz opens.
    """
    with path_errors(out, "could not be written"):
        if out.exists() and out.samefile(found.folder):
            raise HgvizError(
                f"{short_path(out)} is the model itself: converting it would overwrite it",
                "Choose another folder",
            )
    files: tuple[Path, ...] = ()
    if isinstance(found.config, TransformersConfig):
        from hgviz.models.formats.transformers import renamed

        files, tokenizer = _others(found, out), _tokenizer_made(found)
        folder, found = found.folder, renamed(found)
    else:
        folder, tokenizer = found.folder, tokenizer_json(found)
    with path_errors(out, "could not be written"):
        (out / CONFIG).unlink(missing_ok=True)  # killed from here on, out is no checkpoint
        while out.is_dir() and (old := tokenizer_file(out)) is not None:
            old.unlink()
        for one in files:
            (out / one).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / one, out / one)
    save(out, found.config, found.tensors, tokenizer)
    parameters = sum(tensor.numel() for tensor in found.tensors.values())
    return found.config.spec(model_name(out), found.digest, parameters)


def _others(found: Checkpoint, out: Path) -> tuple[Path, ...]:
    """What lies beside a model, but for its config.json and an index of its weights."""
    copied, _ = rewriting.beside(found, out)
    return tuple(one for one in copied if one not in (Path(CONFIG), Path(found.weights.name)))


def _tokenizer_made(found: Checkpoint) -> bytes | None:
    """The tokenizer.json of vocabulary files; None where one is there, which is copied, and where
    they make none, since they are copied, too."""
    if not found.config.vocab_size:
        return None
    if (found.folder / TOKENIZER).exists():
        tokenizer_of(found.folder, found.config.vocab_size)  # refuses a damaged one
        return None
    with suppress(HgvizError):
        return tokenizer_json(found)
    return None


def tokenizer_json(found: Checkpoint) -> bytes | None:
    """The tokenizer of a checkpoint as a tokenizer.json; None for bytes and for none.

    Errors: HgvizError for one that does not fit a model of so many tokens, and for vocabulary files
    that make none.
    """
    if found.tokenizer is not None:
        return found.tokenizer
    tokenizer = tokenizer_of(found.folder, found.config.vocab_size)
    if isinstance(tokenizer, Bare) and tokenizer.error is not None:
        raise tokenizer.error
    if not isinstance(tokenizer, Pieces):
        return None
    file = found.folder / TOKENIZER
    whole = file.exists() and not (found.folder / SETTINGS).exists()
    return read_bytes(file, MOST_TOKENIZER) if whole else tokenizer.json
