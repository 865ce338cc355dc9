"""A checkpoint trained for a while longer, with another activation."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.core import Step, Task
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.models.training import Report

LEFT = ("train.jsonl", "held-out.jsonl", "train.txt", "held-out.txt")
KEPT = ("model.safetensors", "state.pt")


def tune(
    checkpoint: Path_,
    data: Path_,
    out: Path_,
    activation: str = "",
    minutes: float = 2.0,
    steps: int = 0,
    rate: float = 3e-4,
    device: str = "auto",
    enough: Callable[[], bool] = lambda: False,
) -> Task[Report]:
    """Train a checkpoint with its activation exchanged, on a file of which a tenth is held out.

    Into the folder out, which is not there yet or empty: a checkpoint, its log, and what it learnt
    from and was measured on. enough: asked before each step whether to end with what is learnt by
    then. Steps as hgviz.models.training.train; the report has what the checkpoint reached before,
    as it was and exchanged. Where nothing came of it, nothing stays. Errors: HgvizError.
    """
    yield Step(0, 1, "loading torch")
    from hgviz.models import training
    from hgviz.models.formats import conversion
    from hgviz.models.training.tuning import plan_of

    folder = Path(out)
    conversion.require_free(folder, do="Choose another folder")
    try:
        yield Step(0, 1, f"reading {Path(data).name}")
        plan = plan_of(checkpoint, data, folder, activation, minutes, steps, rate, device)
        return (yield from training.train(plan, folder, enough))
    finally:
        if not any(os.path.exists(folder / name) for name in KEPT):  # of any name, however long
            _clear(folder)


def _clear(folder: Path) -> None:
    """Take away what was written for a training that never was."""
    for name in (*LEFT, "tokenizer.json", "log.jsonl"):
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()
