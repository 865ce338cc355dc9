"""Opening what a path holds, and reading what is said of it: texts and heads by name."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hgviz.core import (
    HeadSet,
    HgvizError,
    Modality,
    ModelSpec,
    Prompt,
    Streaming,
    parse_heads,
    progress,
)
from hgviz.errors import no_attention_error

if TYPE_CHECKING:
    from hgviz.core import Capture
    from hgviz.models.model import Model
    from hgviz.study import Study

Path_ = str | Path
Unattending = tuple[tuple[str, str], ...]  # layers by name, and what they are made of


def kind_of(path: Path_) -> Literal["checkpoint", "capture", "study", "sweep"]:
    """What a path holds, judged by content. Errors: HgvizError naming what can be opened."""
    from hgviz.files import find_path, path_errors
    from hgviz.models.checkpoints import recognises
    from hgviz.store import is_capture, is_study
    from hgviz.store.studies import is_sweep

    path = find_path(path)
    if not os.path.lexists(path):
        raise HgvizError(f"there is no {path}: no file or folder has that name", "Check the path")
    if os.path.isfile(path):
        with path_errors(path), open(path, "rb"):
            pass  # else what cannot be read is taken for nothing known
    if is_capture(path):
        return "capture"
    if is_study(path):
        return "study"
    if is_sweep(path):
        return "sweep"
    _require_no_sweep(path)
    if recognises(path):
        return "checkpoint"
    raise HgvizError(
        f"{path} cannot be opened: "
        "it is no capture (.h5), no study (.h5), no folder of a study of many runs and no "
        "checkpoint folder with config.json",
        "Choose the folder that holds config.json, or a file that hgviz wrote",
    )


def _require_no_sweep(path: Path_) -> None:
    """Errors: HgvizError for the file or folder of a study of many runs, where one thing is asked
    for."""
    from hgviz.store.studies import MODELS, is_sweep

    if is_sweep(path):
        raise HgvizError(
            f"{path} is the folder of a study of many runs: "
            f"its models lie in {Path(path) / MODELS}, what was measured beside them",
            f"Open one of these, or see how it stands: hgviz study status {path}",
        )
    if str(path).lower().endswith(".toml") and os.path.isfile(path):
        raise HgvizError(
            f"{path} is a file that asks for runs: it holds no model and nothing measured",
            f"Run a study file: hgviz study run {path} -o DIR; a training file: hgviz train",
        )


def capture_at(path: Path_, item: int = 0) -> Capture:
    """A text of a capture, as it lies in its file. Errors: HgvizError for what is no capture."""
    from hgviz.store import is_capture, is_study, open_capture

    _require_no_sweep(path)
    if os.path.isfile(path) and is_study(path):
        raise HgvizError(
            f"{path} is no capture: it is a study, what was measured of all heads",
            f"Give a capture, or draw it: hgviz figure {path} --kind scores -o FIG.pdf",
        )
    if os.path.isdir(path) and not is_capture(path):
        raise HgvizError(
            f"{path} is no capture: "
            "it is a folder, and a capture is a file that hgviz capture wrote",
            f"Capture a text first: hgviz capture {path} --text T -o OUT.h5",
        )
    return open_capture(path, item)


def study_at(path: Path_) -> Study:
    """The study that lies in a file. Errors: HgvizError for what is no study."""
    from hgviz.store import is_study, open_study

    if os.path.isfile(path) and not is_study(path):
        raise HgvizError(
            f"{path} is no study: figures of this kind show what was measured of all heads",
            "Measure them first: hgviz importance MODEL --data D -o STUDY.h5",
        )
    return open_study(path)


def load(
    path: Path_,
    device: str = "auto",
    dtype: str = "float32",
    masking: str | None = None,
    activation: str | None = None,
    reads: Modality = "text",
) -> Model:
    """Open a checkpoint; activation: another one for all its heads, see models.replacement.

    reads: which model of a folder such as CLIP's, with one for texts and one for images.
    """
    _require_no_sweep(path)
    progress(0, 1, "loading torch")
    from hgviz.models import open_model

    progress(0.5, 1, f"reading {Path(path).name}")
    return open_model(path, device, dtype, masking, activation, reads)


def info(path: Path_) -> dict[str, Any]:
    """What a path holds, as `hgviz info --json` prints it."""
    kind = kind_of(path)
    if kind == "capture":
        from hgviz.store import describe

        return describe(path)
    if kind == "study":
        from hgviz.store import open_study

        return _of_study(open_study(path))
    if kind == "sweep":
        return _of_sweep(path)
    from hgviz.models import open_model

    model = open_model(path)
    spec = model.spec
    others = [{"name": name, "made_of": parts} for name, parts in unattending(model)]
    return {
        "kind": "checkpoint", **_of_spec(spec),
        **({"unattending_blocks": others} if others else {}),
        "reads": spec.modality, "width": spec.width,
        **{key: value for key in ("widths", "cls_width")
           if (value := getattr(model.config, key, 0))},
        "vocabulary": spec.vocabulary,
        "parameters": spec.parameters, **({"not_read": list(model.unread)} if model.unread else {}),
        "max_positions": spec.max_positions, "items": 0, "complete": True,
        "masking": model.masking, "provenance": {"checkpoint": spec.digest},
    }  # fmt: skip


def unattending(model: Model) -> Unattending:
    """By name what those layers of a model are made of that have no map, as Mamba's."""
    found: Unattending = getattr(model.config, "unattending", ())
    return found


def _of_spec(spec: ModelSpec) -> dict[str, Any]:
    apart = any(one.apart for one in spec.levels)
    parts = any(one.parts > 1 for one in spec.levels)
    levels = [
        {"index": one.index, "stride": one.stride, "key_shift": one.shift,
         "sequence": one.sequence, **({"apart": one.apart} if apart else {}),
         **({"parts": one.parts} if parts else {})}
        for one in spec.levels
    ]  # fmt: skip
    synthesised = any(one.scores != "dot" for one in spec.layers)
    grouped = any(one.shared > 1 for one in spec.layers)
    layers = [
        {
            "index": one.index, "name": one.name, "role": one.role, "level": one.level,
            "key_level": one.key_level, "heads": len(one.heads),
            **({"key_groups": len(one.groups)} if grouped else {}), "queries": None, "keys": None,
            "activations": list(one.activations),
            **({"scores": one.scores} if synthesised else {}),
        }
        for one in spec.layers
    ]  # fmt: skip
    return {
        "family": spec.family, "name": spec.name, "form": spec.form, "goal": spec.goal,
        "labels": list(spec.labels), "levels": levels, "layers": layers,
    }  # fmt: skip


def _of_study(study: Study) -> dict[str, Any]:
    from hgviz.analysis.importance import METHODS

    shares = study.measured()
    seen = study.answered
    return {
        "kind": "study", **_of_spec(study.spec),
        "data": study.data, "asked": study.asked, "items": len(study), "places": len(study.wanted),
        "complete": all(one == 1 for one in shares.values()),
        "right": float(study.right[seen].mean()) if seen.any() else None,
        "loss": float(study.loss[seen].mean(dtype=float)) if seen.any() else None,
        "off": [str(head) for head in sorted(study.off)], "seed": study.seed,
        "measured": [{"what": name, "share": share} for name, share in shares.items()],
        "methods": [name for name, one in METHODS.items() if one.is_measured(study)],
        "curves": [
            {
                "method": one.method, "seed": one.seed,
                "heads": len(one.order), "points": len(one.removed), "examples": len(one.rows),
            }
            for one in study.curves
        ],
        "masks": [{"name": one.name, "off": [*map(str, sorted(one.off))]} for one in study.masks],
        "provenance": {
            **asdict(study.made), "versions": dict(study.made.versions),
            "model": study.spec.digest, "data": study.data_digest,
        },
    }  # fmt: skip


def _of_sweep(path: Path_) -> dict[str, Any]:
    from hgviz.store.studies import SweepFolder

    sweep = SweepFolder(path).sweep()
    works = dict.fromkeys(one.cell.work for one in sweep.standings)
    return {
        "kind": "sweep", "title": sweep.title, "question": sweep.asked.question,
        "cells": len(sweep.standings), "complete": sweep.complete, "items": sweep.counts["done"],
        **{state: count for state, count in sweep.counts.items() if state != "done"},
        "models": list(sweep.names("model")), "activations": list(sweep.names("activation")),
        "seeds": list(sweep.names("seed")), "data": list(sweep.names("data")),
        "methods": list(sweep.names("method")), "changed": sweep.changed,
        "works": [{"work": work, "cells": len(sweep.of(work))} for work in works],
    }  # fmt: skip


def prompt_from(
    model: Model,
    text: str | None = None,
    text_file: Path_ | None = None,
    ids_file: Path_ | None = None,
    pair: str | None = None,
    target: str | None = None,
    boundaries: str = "",
    signal_file: Path_ | None = None,
    writes: bool = False,
) -> tuple[Prompt, Prompt | None]:
    """What a model is to read: the text and, where there is a decoder with a second, its text.

    One of text, text_file, ids_file and signal_file (an image or a sound) is given; pair is a
    second text for the same input. For a decoder over given states the first is what stands for
    these. boundaries: where segments end, see with_boundaries. Errors: HgvizError naming what
    is wrong, and what a model of this form needs.
    """
    from hgviz.models import prompts

    return prompts.read_prompts(
        model, text, text_file, ids_file, pair, target, boundaries, signal_file, writes
    )


def heads_from(text: str, spec: ModelSpec) -> HeadSet:
    """The heads named by "3.5,4.*,5.g1"; the empty string names none.

    Raises HgvizError for a name that is no head of this model.
    """
    return parse_heads(text, spec.layers)


def require_attention(spec: ModelSpec) -> None:
    """Errors: HgvizError for a model none of whose layers attends, such as an LSTM."""
    if not spec.layers:
        raise no_attention_error(spec.family)


def require_causal(spec: ModelSpec, streaming: Streaming) -> None:
    """Errors: HgvizError for heads whose rows have no latest key."""
    for layer in spec.layers:
        if streaming.places(layer.index, layer.heads) and not layer.can_stream:
            raise HgvizError(
                f"heads of layer {layer.index} cannot stream: "
                + (
                    "its queries see windows" if layer.window else "its queries see keys after them"
                ),
                "Name heads of causal layers",
            )


def convert(
    path: Path_,
    out: Path_,
    force: bool = False,
    hierarchy: str | None = None,
    attention_upsampling: Literal["repeat", "none"] | None = None,
    tokenizer: Path | None = None,
) -> ModelSpec:
    """Write any checkpoint as one folder, hgviz's own or that of transformers; force: into one that
    is not empty.

    The rest says what weights of trax do not show, see hgviz.models.foreign.read_trax.
    """
    progress(0, 2, "loading torch")
    from hgviz.models import checkpoints

    checkpoints.require_free(Path(out), force)
    if hierarchy or attention_upsampling or tokenizer:
        from hgviz.models.foreign import read_trax

        found = read_trax(Path(path), hierarchy, attention_upsampling, tokenizer)
    else:
        found = checkpoints.read(path)
    progress(1, 2, f"writing {Path(out).name}")
    return checkpoints.convert(found, Path(out))
