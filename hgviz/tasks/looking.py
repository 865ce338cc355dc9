"""What is found out of a capture or a study: measures, and the model it is of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import Capture, HeadId, HgvizError, Prompt, progress
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hgviz.analysis.roles import HeadRole
    from hgviz.models.model import Model
    from hgviz.study import Study


def measure(capture: Capture) -> dict[HeadId, HeadRole]:
    """What every head does, in numbers and words."""
    from hgviz.analysis.roles import roles

    return roles(capture)


def answers(model: Model, prompt: Prompt, target: Prompt | None = None) -> NDArray[Any]:
    """What a model gives: logits of tokens or classes, or its last states. Errors: HgvizError."""
    progress(0, 1, "running the model")
    return model.trace(prompt, target)


def model_of(study: Study, paths: Iterable[Path_]) -> str:
    """The first of some checkpoints that a study measured, "" for none; by digest, so they are
    read whole. Paths that are no checkpoint, or cannot be read, are none."""
    for path in map(str, paths):
        progress(0, 1, f"looking at {Path(path).name}")
        try:
            if _digest(path) == study.spec.digest:
                return path
        except HgvizError:
            continue
    return ""


def require_model_of(study: Study, path: Path_) -> str:
    """The path of a checkpoint that a study measured. Errors: HgvizError for any other."""
    progress(0, 1, f"looking at {Path(path).name}")
    if _digest(path) != study.spec.digest:
        raise HgvizError(
            f"{Path(path).name} is not the model of this study: "
            f"it measured {study.spec.name or 'another'}, whose weights are others",
            "Choose the checkpoint it was made with",
        )
    return str(path)


def _digest(path: Path_) -> str:
    from hgviz.models import checkpoints

    return checkpoints.read(path).digest if checkpoints.recognises(path) else ""
