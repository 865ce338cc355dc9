"""A model that is open: numpy in, numpy out, on any device."""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hgviz.core import (
    HeadId,
    HgvizError,
    Integers,
    ModelSpec,
    Off,
    Prompt,
    readonly,
)
from hgviz.models.attention import Tap
from hgviz.models.config import HourglassConfig
from hgviz.models.hourglass import Hourglass, Pass, Steps
from hgviz.models.readers import read
from hgviz.models.text import Tokenizer, require_room, require_text, tokenizer_of

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
MASKINGS = ("compat", "strict")

Trace = Generator[int, None, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Result:
    """logits (n, vocabulary), or (batch, n, vocabulary) for a batch: float64 from a float64
    model, else float32."""

    logits: NDArray[Any]


class Model:
    """A checkpoint with its tokenizer, on a device; made by open_model."""

    def __init__(
        self, module: Hourglass, spec: ModelSpec, tokenizer: Tokenizer, device: str, dtype: str
    ) -> None:
        self.module, self.spec, self.tokenizer = module, spec, tokenizer
        self.device, self.dtype = device, dtype

    @property
    def masking(self) -> str:
        """strict, or compat: masks as the package computes them that the model comes from."""
        return self.module.config.masking

    def tokenize(self, text: str) -> Prompt:
        """The prompt of a text. Errors: HgvizError where it is empty or too long."""
        prompt = self.tokenizer.encode(require_text(text))
        require_room(len(prompt), self.spec.max_positions, self.tokenizer.unit)
        return prompt

    def from_ids(self, ids: Any, attention_mask: Any = None) -> Prompt:
        """The prompt of ids (n,), with as much text as they stand for. Errors as run."""
        found, mask = self._checked(ids, attention_mask)
        if found.ndim != 1:
            raise HgvizError("a prompt is one text", f"these ids have the shape {found.shape}")
        kept = None if mask is None else readonly(mask)
        return replace(self.tokenizer.decode(found), attention_mask=kept)

    def run(
        self,
        ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        decoder_ids: Any = None,
        encoder_states: Any = None,
        encoder_mask: Any = None,
        off: Collection[HeadId] = frozenset(),
    ) -> Result:
        """Logits of ids (n,) or (batch, n); attention_mask of the same shape, True where real.

        off: heads whose part of the layer's output is zero. Errors: HgvizError for ids outside
        the vocabulary, a text too long, unknown heads, and arguments this family does not have.
        """
        foreign = {
            "token_type_ids": token_type_ids,
            "decoder_ids": decoder_ids,
            "encoder_states": encoder_states,
            "encoder_mask": encoder_mask,
        }
        _require_none(foreign, self.spec.family)
        found, mask = self._checked(ids, attention_mask)
        trace = self._trace(np.atleast_2d(found), mask, Pass(self._off(off)))
        logits = _last(trace)
        return Result(logits if found.ndim == 2 else logits[0])

    def trace(
        self,
        ids: Any,
        *,
        attention_mask: Any = None,
        off: Collection[HeadId] = frozenset(),
        tap: Tap | None = None,
    ) -> Trace:
        """One text, layer by layer: yields the index of each layer when it is done.

        ids (n,); tap(index, factors) gets what each layer attended with. Returns the logits
        (n, vocabulary). Errors as run, from the first step.
        """
        found, mask = self._checked(ids, attention_mask)
        if found.ndim != 1:
            raise HgvizError("one text is traced at a time", f"ids have the shape {found.shape}")
        logits = yield from self._trace(found[None], mask, Pass(self._off(off), tap))
        return logits[0]

    def _trace(self, ids: Integers, mask: NDArray[np.bool_] | None, run: Pass) -> Trace:
        keep = None if mask is None else torch.tensor(np.atleast_2d(mask), device=self.device)
        steps = self.module.steps(torch.tensor(ids, device=self.device), keep, run)
        while True:
            with _room(self.device, f"the text has {ids.shape[-1]:,} tokens"):
                found = _advance(steps)
            if isinstance(found, Tensor):
                return _logits(found)
            yield found

    def _checked(self, ids: Any, attention_mask: Any) -> tuple[Integers, NDArray[np.bool_] | None]:
        """Ids and mask as arrays of the same shape, (n,) or (batch, n)."""
        found = _integers(ids, "ids")
        require_room(found.shape[-1] if found.size else 0, self.spec.max_positions)
        low, high = int(found.min()), int(found.max())
        if low < 0 or high >= self.spec.vocabulary:
            raise HgvizError(
                f"there is no token {low if low < 0 else high}",
                f"this model's ids go from 0 to {self.spec.vocabulary - 1:,}",
                "Use the tokenizer the model was trained with",
            )
        if attention_mask is None:
            return readonly(found), None
        mask = _integers(attention_mask, "attention_mask")
        if mask.shape != found.shape or not np.isin(mask, (0, 1)).all():
            raise HgvizError(
                "the attention_mask does not fit the ids",
                f"it needs one 0 or 1 for each: ids {found.shape}, mask {mask.shape}",
            )
        return readonly(found), mask.astype(bool)

    def _off(self, off: Collection[HeadId]) -> Off:
        chosen = frozenset(HeadId(*one) for one in off)
        if unknown := sorted(chosen.difference(self.spec.heads)):
            raise HgvizError(
                f"this model has no head {unknown[0]}",
                f"its layers are 0 to {len(self.spec.layers) - 1}",
                "Run `hgviz info` on it to see every layer",
            )
        return chosen


def open_model(
    path: str | Path, device: str = "cpu", dtype: str = "float32", masking: str | None = None
) -> Model:
    """Open a checkpoint: a folder, or the weights file or the config.json within it.

    device: auto (HGVIZ_DEVICE, else cuda, mps, cpu), cpu, cuda or mps. dtype: float64, float32,
    bfloat16 or float16. masking: compat, strict, or None for what the checkpoint says.
    Errors: HgvizError.
    """
    place, kind = device_of(device), _dtype(dtype)
    if place == "mps" and kind == torch.float64:
        raise HgvizError("mps has no float64", "", "Use --dtype float32, or --device cpu")
    found = read(path)
    config = _masked(found.config, masking)
    module = _module(config, found.tensors, place, kind)
    spec = ModelSpec(
        family="hourglass",
        name=found.folder.resolve().name,
        levels=config.levels,
        layers=config.layers,
        width=config.d_model,
        vocabulary=config.vocab_size,
        digest=found.digest,
        parameters=sum(tensor.numel() for tensor in found.tensors.values()),
        max_positions=config.max_positions,
        form=config.form,
        upsampling=(
            config.attention_upsampling if config.upsampling == "attention" else config.upsampling
        ),
    )
    tokenizer = tokenizer_of(found.folder, config.vocab_size)
    return Model(module, spec, tokenizer, place, dtype)


# --- inside ---------------------------------------------------------------------------------------


def _module(
    config: HourglassConfig, tensors: dict[str, Tensor], device: str, dtype: torch.dtype
) -> Hourglass:
    with torch.device("meta"):
        module = Hourglass(config)
    with _room(device, f"the model has {sum(t.numel() for t in tensors.values()):,} parameters"):
        moved = {name: tensor.to(device, dtype) for name, tensor in tensors.items()}
    module.load_state_dict(moved, assign=True)
    return module.requires_grad_(False).eval()


def device_of(name: str) -> str:
    """The device that a name stands for here. Errors: HgvizError for none, or one not there."""
    asked = os.environ.get("HGVIZ_DEVICE", "auto") if name == "auto" else name
    source = "HGVIZ_DEVICE" if name == "auto" else "device"
    if asked not in DEVICES:
        raise HgvizError(f"there is no {source} {asked!r}", f"it is one of {', '.join(DEVICES)}")
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if asked == "auto":
        return next((one for one, there in here.items() if there), "cpu")
    if not here.get(asked, True):
        raise HgvizError(
            f"this machine has no {asked}", f"torch {torch.__version__} finds none", "Use cpu"
        )
    return asked


def _dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise HgvizError(f"there is no dtype {name!r}", f"it is one of {', '.join(DTYPES)}")
    return DTYPES[name]


def _masked(config: HourglassConfig, masking: str | None) -> HourglassConfig:
    chosen = masking or config.masking
    if chosen not in MASKINGS:
        raise HgvizError(f"there is no masking {chosen!r}", f"it is {' or '.join(MASKINGS)}")
    if chosen == "compat" and config.form != "windowed":
        raise HgvizError(
            "this model is always masked strictly",
            "compat masking repeats what hourglass-transformer-pytorch does",
            "Leave masking out",
        )
    return replace(config, masking=chosen)  # type: ignore[arg-type]


@torch.inference_mode()
def _advance(steps: Steps) -> int | Tensor:
    """The next layer's index, or the logits; inference mode must not outlive a step."""
    try:
        return next(steps)
    except StopIteration as end:
        logits: Tensor = end.value
        return logits


def _last(trace: Trace) -> NDArray[Any]:
    while True:
        try:
            next(trace)
        except StopIteration as end:
            logits: NDArray[Any] = end.value
            return logits


def _logits(logits: Tensor) -> NDArray[Any]:
    wide = logits.dtype if logits.dtype == torch.float64 else torch.float32
    found: NDArray[Any] = logits.to("cpu", wide).numpy()
    return found


def _integers(values: Any, name: str) -> Integers:
    try:
        found = np.asarray(values)
    except ValueError:
        raise HgvizError(f"the {name} are no array", "their rows differ in length") from None
    if found.size and found.dtype.kind not in "iub":
        raise HgvizError(f"the {name} are no integers", f"they are {found.dtype}")
    if found.ndim not in (1, 2):
        raise HgvizError(f"the {name} are no sequence", f"they have {found.ndim} dimensions")
    return found.astype(np.int64)


def _require_none(arguments: dict[str, Any], family: str) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise HgvizError(
                f"this model does not take {name}", f"its family is {family}", f"Leave {name} out"
            )


@contextmanager
def _room(device: str, why: str) -> Iterator[None]:
    """Turn each library's way of running out of memory into one error."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        do = "Shorten the text" if device == "cpu" else "Shorten the text, or use --device cpu"
        raise HgvizError(f"the {device} has too little memory", why, do) from None
