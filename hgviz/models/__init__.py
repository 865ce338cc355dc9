"""Models: text or ids in, logits and attention out. torch lives here and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

# Before torch is loaded: threads that wait for each other must sleep, not spin. On a busy machine
# of two cores a small model took 25 times as long with spinning ones.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from hgviz.core import Modality
    from hgviz.models.model import Model


def open_model(
    path: str | Path,
    device: str = "cpu",
    dtype: str = "float32",
    masking: str | None = None,
    activation: str | None = None,
    reads: Modality = "text",
) -> Model:
    """Open a checkpoint, see hgviz.models.model.open_model; imports torch when called."""
    from hgviz.models import model

    return model.open_model(path, device, dtype, masking, activation, reads)


__all__ = ["open_model"]
