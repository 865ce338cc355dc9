"""Models of the package transformers as a training begins with them, and as it writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from hgviz.core import HgvizError
from hgviz.files import first_line
from hgviz.models.config.huggingface import Entry, TransformersConfig
from hgviz.models.formats.checkpoint import Checkpoint
from hgviz.models.formats.own import require_activations
from hgviz.models.formats.readers import WEIGHTS, converted
from hgviz.models.formats.shards import read_weights
from hgviz.models.formats.transformers import BUFFERS, build, retargeted
from hgviz.models.huggingface import Transformers, quiet
from hgviz.models.layers import Network
from hgviz.models.training.objectives import Objective

LEARNED = ("next", "masked", "classes")  # goals that a model of one text is trained for


def require_learned(config: TransformersConfig, goal: str) -> None:
    """Errors: HgvizError for a model that is not trained for this goal."""
    why = f"its answers are {goal}"
    if config.modality != "text":
        why = "it reads no texts"
    elif config.form == "encoder-decoder" and (config.goal, goal) != ("next", "next"):
        why = "of models that read one text and write another only those that write are trained"
    elif goal in LEARNED:
        return
    raise HgvizError(
        f"this {config.family} cannot be trained: {why}",
        "Choose a model of texts, and a goal of next, masked or classes",
    )


def begun(
    found: Checkpoint, keys: Mapping[str, Any], goal: str, labels: Sequence[str], pad: int | None,
    store: str,
) -> tuple[Transformers, tuple[str, ...]]:  # fmt: skip
    """The module that goes on from a checkpoint, and its parameters that the checkpoint lacks.

    keys: of [model], which may exchange activations; pad: the token that pads texts, for a model
    that names none; store: the precision its config.json is to state. Errors: HgvizError.
    """
    found, fresh = retargeted(found, goal, labels, pad)
    config = cast(TransformersConfig, found.config)
    given = {key: keys[key] for key in Entry.__struct_fields__ if key in keys}
    exchanged = converted({**config.entry.written(), **given}, Entry, "[model]").exchanged()
    data = {key: one for key, one in config.data.items() if key != "torch_dtype"}
    config = replace(config, data={**data, "dtype": store}, box=[], **exchanged)
    require_activations(config, "[model]")
    # training changes tensors in place, and those of the checkpoint are not its own
    tensors = {name: one.clone() for name, one in found.tensors.items()}
    return build(config, tensors, "cpu", torch.float32), fresh


def pad_of(model: Transformers) -> int | None:
    """The id that its config.json says pads texts."""
    told: Any = model.net.config
    found = told.get_text_config(decoder=True).pad_token_id
    return found if isinstance(found, int) and found >= 0 else None


def with_dropout(model: Transformers, share: float) -> None:
    """Let the parts of a model drop this share that keep it as a number of their own; none of them
    leaves a layer out, since heads are counted by layers."""
    for part in model.net.modules():
        for name, value in vars(part).items():
            if "drop" in name and type(value) in (int, float) and 0 <= value < 1:
                setattr(part, name, 0.0 if "layer" in name or "path" in name else share)


def require_runs(model: Network, objective: Objective) -> None:
    """Errors: HgvizError where a model cannot be given the first batch of a training."""
    try:
        objective.loss(model.eval(), 0, 0.0)
    except HgvizError:
        raise
    except Exception as error:  # transformers raises whatever its parts do
        raise HgvizError(f"this {model.config.family} cannot be trained: "
f"transformers says: {first_line(error)}",
"Choose another model, or another goal") from None  # fmt: skip


def tensors_of(model: Transformers, out: Path) -> dict[str, Tensor]:
    """Its tensors by the names that transformers writes them by; it does so within out. None is
    transposed, as files may have them."""
    net: Any = model.net
    with quiet(), tempfile.TemporaryDirectory(dir=out) as folder:
        net.save_pretrained(folder, max_shard_size="1000TB")
        found = read_weights(Path(folder) / WEIGHTS, lambda name: name.endswith(BUFFERS))
        return {name: one.clone() for name, one in found.items()}
