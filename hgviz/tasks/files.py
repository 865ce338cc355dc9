"""What a path holds, and opening it: checkpoints, captures, studies, folders of studies."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hgviz.analysis.importance import METHODS
from hgviz.core import Capture, HgvizError, Modality, ModelSpec, progress
from hgviz.errors import require
from hgviz.files import find_path, path_errors, require_there, short_path
from hgviz.models import checkpoints, open_model
from hgviz.models.data import is_table, read_rows
from hgviz.models.text import Bare
from hgviz.store import describe, is_capture, is_study, open_capture, open_study
from hgviz.store.captures import describe_model
from hgviz.store.hdf5 import MAGIC
from hgviz.store.studies import MODELS, SweepFolder, is_sweep
from hgviz.study import Study

if TYPE_CHECKING:
    from hgviz.models.model import Model

Kind = Literal["checkpoint", "capture", "study", "sweep"]


def kind_of(path: str | Path) -> Kind:
    """What a path holds, by its content. Raises HgvizError naming what can be opened."""
    path = find_path(path)
    require_there(path)
    if os.path.isfile(path):
        with path_errors(path), open(path, "rb"):
            pass  # a file that cannot be read would be taken for an unknown kind
    if is_capture(path):
        return "capture"
    if is_study(path):
        return "study"
    if is_sweep(path):
        return "sweep"
    _require_no_sweep(path)
    if checkpoints.recognises(path):
        return "checkpoint"
    if path.suffix.lower() in (".h5", ".hdf5") and path.is_file():
        with open(path, "rb") as file:
            require(
                file.read(len(MAGIC)) == MAGIC,
                f"{short_path(path)} is damaged: it is not an HDF5 file of hgviz",
                "Capture the text again, or get a fresh copy",
            )
    raise HgvizError(
        f"{path} is not a file that hgviz can open",
        "Choose a checkpoint folder with config.json, a capture or study (.h5), or a session",
    )


def text_of(path: str | Path) -> str:
    """The text of a file, or an empty string for a table of labelled texts. Raises HgvizError."""
    from hgviz.models.prompts import read_text

    progress(0, 1, f"reading {Path(path).name}")
    if is_table(path):
        with suppress(HgvizError):
            read_rows(path)
            return ""
    return read_text(path)


def _require_no_sweep(path: str | Path) -> None:
    """Raise HgvizError for the file or the folder of a study of many runs."""
    require(
        not is_sweep(path),
        f"{path} is the folder of a study with many runs: its models are in {Path(path) / MODELS}",
        f"Open one of these, or run: hgviz study status {path}",
    )
    require(
        not (str(path).lower().endswith(".toml") and os.path.isfile(path)),
        f"{path} is a configuration file, without a model or measurements",
        f"For a study file, run: hgviz study run {path} -o DIR; for a training file: hgviz train",
    )


def capture_at(path: str | Path, item: int = 0) -> Capture:
    """A text of a capture file. Raises HgvizError for a file that is not a capture."""
    _require_no_sweep(path)
    require(
        not (os.path.isfile(path) and is_study(path)),
        f"{path} is not a capture: it is a study",
        f"Give a capture, or draw the study: hgviz figure {path} --kind scores -o FIG.pdf",
    )
    require(
        is_capture(path) or not os.path.isdir(path),
        f"{path} is not a capture: it is a folder",
        f"Capture a text first: hgviz capture {path} --text T -o OUT.h5",
    )
    return open_capture(path, item)


def study_at(path: str | Path) -> Study:
    """The study of a file. Raises HgvizError for a file that is not a study."""
    require(
        is_study(path) or not os.path.isfile(path),
        f"{path} is not a study",
        "Measure head importance first: hgviz importance MODEL --data D -o STUDY.h5",
    )
    return open_study(path)


def load(
    path: str | Path,
    device: str = "auto",
    dtype: str = "float32",
    masking: str | None = None,
    activation: str | None = None,
    reads: Modality = "text",
) -> Model:
    """Open a checkpoint; see models.open_model for the arguments and errors."""
    _require_no_sweep(path)
    progress(0, 1, f"reading {Path(path).name}")
    return open_model(path, device, dtype, masking, activation, reads)


def convert(
    path: str | Path,
    out: str | Path,
    force: bool = False,
    hierarchy: str | None = None,
    attention_upsampling: Literal["repeat", "none"] | None = None,
    tokenizer: Path | None = None,
) -> ModelSpec:
    """Write any checkpoint as a folder of hgviz, or of transformers where it is one of its models.

    force: also into a folder that is not empty. The other arguments say what weights of trax do
    not show; see models.foreign.read_trax.
    """
    progress(0, 2, "loading torch")
    checkpoints.require_free(Path(out), force)
    if hierarchy or attention_upsampling or tokenizer:
        from hgviz.models.foreign import read_trax

        checkpoint = read_trax(Path(path), hierarchy, attention_upsampling, tokenizer)
    else:
        checkpoint = checkpoints.read(path)
    progress(1, 2, f"writing {Path(out).name}")
    return checkpoints.convert(checkpoint, Path(out))


def digest_of(path: str | Path) -> str:
    """The digest of a checkpoint's weights. Raises HgvizError for what cannot be read as one."""
    progress(0, 1, f"reading {Path(path).name}")
    return checkpoints.read(path).digest


def checkpoint_formats() -> list[str]:
    """The formats of checkpoints that can be opened, in words."""
    return [reader.label for reader in checkpoints.READERS]


def checkpoint_suffixes() -> tuple[str, ...]:
    """The endings of files of weights."""
    return tuple(checkpoints.file_suffixes())


# --- hgviz info -----------------------------------------------------------------------------------


def info(path: str | Path) -> dict[str, Any]:
    """What a path holds, as `hgviz info --json` prints it."""
    return {
        "capture": describe,
        "study": lambda path: _describe_study(open_study(path)),
        "sweep": _describe_sweep,
        "checkpoint": _describe_checkpoint,
    }[kind_of(path)](path)


def _describe_checkpoint(path: str | Path) -> dict[str, Any]:
    model = open_model(path)
    spec = model.spec
    optional = {
        "unattending_blocks": [
            {"name": name, "made_of": parts} for name, parts in blocks_without_attention(model)
        ],
        "reads": "token ids" if isinstance(model.tokenizer, Bare) else spec.modality,
        "width": spec.width,
        "widths": getattr(model.config, "widths", 0),
        "cls_width": getattr(model.config, "cls_width", 0),
    }  # fmt: skip
    return {
        "kind": "checkpoint", **_describe_spec(spec),
        **{key: value for key, value in optional.items() if value},
        "vocabulary": spec.vocabulary,
        "parameters": spec.parameters, **({"not_read": list(model.unread)} if model.unread else {}),
        "max_positions": spec.max_positions, "items": 0, "complete": True,
        "masking": model.masking, "provenance": {"checkpoint": spec.digest},
    }  # fmt: skip


def blocks_without_attention(model: Model) -> tuple[tuple[str, str], ...]:
    """The names of the blocks of a model that do not attend, such as Mamba's, and their kinds."""
    blocks: tuple[tuple[str, str], ...] = getattr(model.config, "unattending", ())
    return blocks


def _describe_spec(spec: ModelSpec) -> dict[str, Any]:
    has_scores = any(layer.scores != "dot" for layer in spec.layers)
    has_groups = any(layer.shared > 1 for layer in spec.layers)
    is_pruned = any(layer.heads != tuple(range(len(layer.heads))) for layer in spec.layers)
    layers = [
        {
            "index": layer.index, "name": layer.name, "role": layer.role, "level": layer.level,
            "key_level": layer.key_level, "heads": len(layer.heads),
            **({"head_numbers": list(layer.heads)} if is_pruned else {}),
            **({"key_groups": len(layer.groups)} if has_groups else {}), "queries": None,
            "keys": None, "activations": list(layer.activations),
            **({"scores": layer.scores} if has_scores else {}),
        }
        for layer in spec.layers
    ]  # fmt: skip
    return {**describe_model(spec), "layers": layers}


def _describe_study(study: Study) -> dict[str, Any]:
    shares, answered = study.measured(), study.answered
    return {
        "kind": "study", **_describe_spec(study.spec),
        "data": study.data, "asked": study.asked, "items": len(study), "places": len(study.wanted),
        "complete": all(share == 1 for share in shares.values()),
        "right": float(study.right[answered].mean()) if answered.any() else None,
        "loss": float(study.loss[answered].mean(dtype=float)) if answered.any() else None,
        "off": [str(head) for head in sorted(study.off)], "seed": study.seed,
        "measured": [{"what": name, "share": share} for name, share in shares.items()],
        "methods": [name for name, method in METHODS.items() if method.is_measured(study)],
        "curves": [
            {
                "method": curve.method, "seed": curve.seed,
                "heads": len(curve.order), "points": len(curve.removed),
                "examples": len(curve.rows),
            }
            for curve in study.curves
        ],
        "masks": [
            {"name": mask.name, "off": [*map(str, sorted(mask.off))]} for mask in study.masks
        ],
        "provenance": {
            **asdict(study.made), "versions": dict(study.made.versions),
            "model": study.spec.digest, "data": study.data_digest,
        },
    }  # fmt: skip


def _describe_sweep(path: str | Path) -> dict[str, Any]:
    sweep = SweepFolder(path).sweep()
    works = dict.fromkeys(standing.cell.work for standing in sweep.standings)
    return {
        "kind": "sweep", "title": sweep.title, "question": sweep.asked.question,
        "cells": len(sweep.standings), "complete": sweep.complete, "items": sweep.counts["done"],
        **{state: count for state, count in sweep.counts.items() if state != "done"},
        "models": list(sweep.names("model")), "activations": list(sweep.names("activation")),
        "seeds": list(sweep.names("seed")), "data": list(sweep.names("data")),
        "methods": list(sweep.names("method")), "changed": sweep.changed,
        "works": [{"work": work, "cells": len(sweep.of(work))} for work in works],
    }  # fmt: skip
