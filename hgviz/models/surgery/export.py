"""A pruned model written in one of its forms, and opened again to be proved."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from hgviz.core import HeadSet, HgvizError
from hgviz.files import CONFIG, path_errors, short_path
from hgviz.models import checkpoints
from hgviz.models.config import TransformersConfig
from hgviz.models.model import Model, module_of
from hgviz.models.surgery.proof import Form, Runner, runner
from hgviz.models.surgery.removal import smaller, zeroed
from hgviz.models.tensors import WEIGHTS, Checkpoint

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def written(found: Checkpoint, off: HeadSet, form: Form, out: Path) -> Path:
    """Write a checkpoint without these heads into a folder; gives the file of its weights.

    smaller: hgviz's own folder, of models of transformers their own, narrower. zeroed: the files it
    was read from, zeros in W_O. Errors: HgvizError where the folder cannot be made.
    """
    if form == "smaller" and isinstance(found.config, TransformersConfig):
        return checkpoints.rewrite(smaller(found, off), out)
    if form == "smaller":
        checkpoints.convert(smaller(found, off), out)
        return out / WEIGHTS
    return checkpoints.rewrite(zeroed(found, off), out)


def masked(found: Checkpoint, off: HeadSet, dtype: str) -> Runner:
    """The model of a checkpoint with heads switched off: what an export has to agree with."""
    return runner(module_of(found.config, found.tensors, "cpu", DTYPES[dtype]), off)


def in_memory(model: Model, off: HeadSet) -> Runner:
    """An open model that really lacks these heads, on the CPU in float32; nothing is written.

    Errors: HgvizError where it cannot be made smaller, or there is no memory for it.
    """
    module: Any = getattr(model.module, "net", model.module)
    tensors = {name: one.cpu() for name, one in module.state_dict().items()}
    found = Checkpoint(model.config, tensors, model.spec.digest, Path())
    return masked(smaller(found, off), frozenset(), "float32")


def opened(path: Path, dtype: str) -> Runner:
    """What was written, read again from its file. Errors: HgvizError as for any checkpoint."""
    found = checkpoints.read(path)
    return runner(module_of(found.config, found.tensors, "cpu", DTYPES[dtype]))


def opens(left: Checkpoint) -> str:
    """What opens a model of transformers without some heads, and why nothing else; else ""."""
    if not isinstance(left.config, TransformersConfig) or not left.config.kept:
        return ""
    alone = left.config.alone
    if not alone and left.config.exchanged:
        alone = "transformers would weigh by softmax"
    return f"opens in hgviz alone: {alone}" if alone else "opens in transformers"


def parameters(found: Checkpoint) -> int:
    """How many numbers a checkpoint has."""
    return sum(one.numel() for one in found.tensors.values())


def size(found: Checkpoint) -> int:
    """Bytes of a checkpoint's tensors, in their own precision."""
    return sum(one.nbytes for one in found.tensors.values())


@contextmanager
def kept_if_proved(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` where nothing fails, and else is not there."""
    out = out.absolute()
    checkpoints.require_free(out, do="Choose another folder")
    fresh = out.with_name(f".{out.name}.new")
    above = [one for one in out.parents if not one.exists()]
    with path_errors(fresh, "could not be written"):
        if fresh.exists():  # of a run that was killed
            shutil.rmtree(fresh)
        fresh.mkdir(parents=True)
    try:
        yield fresh
        with path_errors(out, "could not be written"):
            if not out.exists():
                fresh.rename(out)
                return
            for one in sorted(fresh.iterdir(), key=lambda one: one.name == CONFIG):
                one.rename(out / one.name)  # config.json last: before it, this is no checkpoint
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        with suppress(OSError):  # they are not empty where all went well
            for one in above:
                one.rmdir()


def require_some(found: Checkpoint, off: HeadSet) -> None:
    """Errors: HgvizError where nothing is to be removed."""
    if not off:
        raise HgvizError(
            f"no head is named: {short_path(found.folder)} would only be copied",
            "Name heads by --off, such as 3.5,4.*",
        )
