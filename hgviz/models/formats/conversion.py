"""Any checkpoint written as hgviz's own folder."""

from __future__ import annotations

import os
from pathlib import Path

from hgviz.core import HgvizError, ModelSpec
from hgviz.models.config import TransformersConfig
from hgviz.models.formats.cache import called
from hgviz.models.formats.checkpoint import Checkpoint, save
from hgviz.models.formats.readers import CONFIG, path_errors, shown
from hgviz.models.texts.text import (
    MOST_TOKENIZER,
    TOKENIZER,
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
            raise HgvizError(f"{shown(out)} is no folder", "a checkpoint is one", "Choose another")
        if taken and not force and any(out.iterdir()):
            raise HgvizError(
                f"{shown(out)} is there and not empty",
                "nothing is replaced unasked",
                do,
            )


def write(found: Checkpoint, out: Path) -> ModelSpec:
    """Write config.json, model.safetensors and, where there is one, tokenizer.json into out.

    Opened from there, the model gives the same logits, bit for bit. Errors: HgvizError where the
    folder cannot be written, or is the model's own.
    """
    if isinstance(found.config, TransformersConfig):
        raise HgvizError(
            f"{found.config.family} is a model of transformers, and stays one",
            "hgviz's own folder has no such layers",
            "Open it as it is; hgviz prune writes it without some heads",
        )
    with path_errors(out, "could not be written"):
        if out.exists() and out.samefile(found.folder):
            raise HgvizError(
                f"{shown(out)} is the model itself",
                "converting it would overwrite it",
                "Choose another folder",
            )
        tokenizer = tokenizer_json(found)
        (out / CONFIG).unlink(missing_ok=True)  # killed from here on, out is no checkpoint
        while out.is_dir() and (old := tokenizer_file(out)) is not None:
            old.unlink()
    save(out, found.config, found.tensors, tokenizer)
    parameters = sum(tensor.numel() for tensor in found.tensors.values())
    return found.config.spec(called(out), found.digest, parameters)


def tokenizer_json(found: Checkpoint) -> bytes | None:
    """The tokenizer of a checkpoint as a tokenizer.json; None for bytes and for none.

    Errors: HgvizError for one that does not fit a model of so many tokens.
    """
    if found.tokenizer is not None:
        return found.tokenizer
    tokenizer = tokenizer_of(found.folder, found.config.vocab_size)
    if not isinstance(tokenizer, Pieces):
        return None
    file = found.folder / TOKENIZER
    return read_bytes(file, MOST_TOKENIZER) if file.exists() else tokenizer.json
