"""Train a byte-level Hourglass language model on text files, on one machine, resumable.

AdamW with decoupled weight decay on matrices only (Loshchilov, Hutter 2019), linear warm-up then
cosine, gradient clipping. Windows may grow while training: short ones first are much cheaper.
"""

from __future__ import annotations

import json
import math
import os
import time
import tomllib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from hgviz.core import HgvizError, Step, Task
from hgviz.models.checkpoint import save
from hgviz.models.hourglass import Hourglass
from hgviz.models.own import parse_config


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From this share of the training on, windows of so many bytes, so many at a time."""

    start: float
    length: int
    batch: int


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text files; weights: how often a window is drawn from each training file."""

    train: list[str]
    valid: str
    weights: list[float] = []


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how fast. Give steps, or minutes of wall time to spread the schedule over."""

    steps: int = 0
    minutes: float = 0.0
    rate: float = 1e-3
    floor: float = 0.02
    warmup: int = 100
    decay: float = 0.1
    clip: float = 1.0
    dropout: float = 0.0
    seed: int = 0
    stages: tuple[Stage, ...] = (Stage(0.0, 256, 16),)
    autocast: bool = False
    threads: int = 0
    device: str = "cpu"
    save_every: int = 200
    evaluate_every: int = 200
    evaluate_bytes: int = 65_536
    evaluate_length: int = 1024
    store: str = "float32"


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole TOML file: [model], [data] and [recipe]."""

    model: dict[str, Any]
    data: Data
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Report:
    """What came out: bits per byte on the whole held-out file, with the weights as stored."""

    folder: str
    bits_per_byte: float
    steps: int
    seconds: float


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read and check a training file; paths in it are relative to it. Errors: HgvizError."""
    try:
        with open(path, "rb") as file:
            plan = msgspec.convert(tomllib.load(file), Plan)
    except OSError as error:
        raise HgvizError(f"cannot read {path}", error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise HgvizError(
            f"{path} is not a training file",
            str(error),
            "It has the tables [model], [data] and [recipe]; see docs/training.md",
        ) from error
    _check(plan)
    here = Path(path).resolve().parent
    data = msgspec.structs.replace(
        plan.data,
        train=[str(here / one) for one in plan.data.train],
        valid=str(here / plan.data.valid),
    )
    return msgspec.structs.replace(plan, data=data)


def _check(plan: Plan) -> None:
    recipe, data = plan.recipe, plan.data
    wrong = [
        (not data.train, "data.train names no file"),
        (data.weights and len(data.weights) != len(data.train), "data.weights needs one per file"),
        ((recipe.steps > 0) == (recipe.minutes > 0), "recipe needs either steps or minutes"),
        (not recipe.stages or recipe.stages[0].start != 0, "recipe.stages must begin at start 0"),
        (any(s.length < 2 or s.batch < 1 for s in recipe.stages), "a stage is empty"),
        (min(recipe.save_every, recipe.evaluate_every, recipe.evaluate_length) < 1, "a period < 1"),
        (recipe.store not in ("float32", "bfloat16"), "recipe.store is float32 or bfloat16"),
    ]
    for failed, why in wrong:
        if failed:
            raise HgvizError("this training file cannot be used", why, "Change it and start again")


def train(plan: Plan, folder: str | os.PathLike[str]) -> Task[Report]:
    """Train and write folder/config.json, model.safetensors and log.jsonl.

    Stopped or killed, it goes on from folder/state.pt when started again with the same plan.
    Steps carry {"step", "loss", "held_out"} in bits per byte.
    """
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    recipe = plan.recipe
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)
    config = parse_config({"model_type": "hgviz", **plan.model}, "[model]")
    model = Hourglass(config).to(recipe.device)
    initialise(model)
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = recipe.dropout
    optimiser = torch.optim.AdamW(_groups(model, recipe), lr=recipe.rate, betas=(0.9, 0.99))
    texts = [_bytes(path, recipe) for path in plan.data.train]
    valid = _bytes(plan.data.valid, recipe)
    state = _resume(out, plan, model, optimiser)
    model.train()
    yield from _loop(plan, out, model, optimiser, texts, valid, state)
    dtype = torch.bfloat16 if recipe.store == "bfloat16" else torch.float32
    stored = {name: value.to(dtype) for name, value in model.state_dict().items()}
    save(out, config, stored)
    model.load_state_dict(stored)
    model.eval()
    yield Step(1, 1, "measuring the stored file on the whole held-out text")
    bits = bits_per_byte(model, valid, recipe.evaluate_length)
    _log(out, {"step": state["step"], "stored_bits_per_byte": bits, "seconds": state["seconds"]})
    (out / "state.pt").unlink(missing_ok=True)
    return Report(str(out), bits, state["step"], state["seconds"])


def _loop(
    plan: Plan,
    out: Path,
    model: Hourglass,
    optimiser: torch.optim.Optimizer,
    texts: list[Tensor],
    valid: Tensor,
    state: dict[str, Any],
) -> Generator[Step, None, None]:
    recipe = plan.recipe
    held_out = math.nan
    last = time.monotonic()
    while (done := _progress(recipe, state)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * schedule(done, state["step"], recipe)
        ids = draw(texts, plan.data.weights, _stage(recipe, done), state["step"], recipe.seed)
        loss = _step(model, optimiser, ids.to(recipe.device), recipe)
        state["step"] += 1
        if state["step"] % recipe.evaluate_every == 0:
            with _evaluating(model):
                part = valid[: recipe.evaluate_bytes]
                held_out = bits_per_byte(model, part, recipe.evaluate_length)
        now = time.monotonic()
        state["seconds"], last = state["seconds"] + now - last, now
        if state["step"] % recipe.evaluate_every == 0:
            _log(out, {**state, "loss": loss, "held_out": held_out, "rate": group["lr"]})
        if state["step"] % recipe.save_every == 0:
            _snapshot(out, plan, model, optimiser, state)
        words = f"step {state['step']:,}, {loss:.3f} bits per byte, held out {held_out:.3f}"
        yield Step(done, 1.0, words, {"step": state["step"], "loss": loss, "held_out": held_out})
    _snapshot(out, plan, model, optimiser, state)


def _step(model: Hourglass, optimiser: torch.optim.Optimizer, ids: Tensor, recipe: Recipe) -> float:
    """One update on ids (batch, length + 1); gives the loss in bits per byte."""
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=recipe.autocast):
        logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    if not torch.isfinite(loss):
        raise HgvizError(
            "training has diverged: the loss is no longer a number",
            f"the learning rate {recipe.rate} may be too high",
            "Lower recipe.rate and start again",
        )
    optimiser.step()
    return loss.item() / math.log(2)


def draw(texts: list[Tensor], weights: list[float], stage: Stage, step: int, seed: int) -> Tensor:
    """The windows of one step, (batch, length + 1); depends only on the seed and the step."""
    random = torch.Generator().manual_seed(seed * 1_000_003 + step)
    odds = torch.tensor(weights or [float(len(text)) for text in texts])
    chosen = torch.multinomial(odds, stage.batch, replacement=True, generator=random)
    rows = []
    for which in chosen.tolist():
        text = texts[which]
        start = torch.randint(0, len(text) - stage.length, (1,), generator=random).item()
        rows.append(text[int(start) : int(start) + stage.length + 1])
    return torch.stack(rows).long()


@torch.inference_mode()
def bits_per_byte(model: Hourglass, text: Tensor, length: int, batch_bytes: int = 8192) -> float:
    """Mean of -log2 p of every byte but the first of each window, windows side by side.

    text (bytes,) uint8; each window of `length` + 1 bytes shares one byte with the next, so every
    byte of the text but the very first is predicted exactly once, from at most `length` before it.
    """
    device = next(model.parameters()).device
    starts = list(range(0, len(text) - 1, length))
    bits, count, batch = 0.0, 0, max(1, batch_bytes // length)
    whole = [start for start in starts if start + length < len(text)]
    groups = [whole[i : i + batch] for i in range(0, len(whole), batch)]
    groups += [[start] for start in starts[len(whole) :]]
    for group in groups:
        ids = torch.stack([text[start : start + length + 1] for start in group]).long().to(device)
        logits = model(ids[:, :-1]).float()
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
        bits += loss.item() / math.log(2)
        count += ids[:, 1:].numel()
    return bits / max(count, 1)


def initialise(model: Hourglass) -> None:
    """Normal weights of 0.02, residual outputs 1 / sqrt(2 layers) of it (GPT-2)."""
    layers = len(model.config.layers)
    for name, parameter in model.named_parameters():
        if name.endswith(("attn.o.weight", "ff.out.weight")):
            torch.nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers))
        elif parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
        elif name.endswith("bias"):
            torch.nn.init.zeros_(parameter)


def schedule(done: float, step: int, recipe: Recipe) -> float:
    """The learning rate as a share of its peak: linear warm-up, then half a cosine to the floor."""
    warm = min(1.0, (step + 1) / max(recipe.warmup, 1))
    return warm * (recipe.floor + (1 - recipe.floor) * 0.5 * (1 + math.cos(math.pi * done)))


def _progress(recipe: Recipe, state: dict[str, Any]) -> float:
    if recipe.steps:
        return float(state["step"] / recipe.steps)
    return float(state["seconds"] / (60 * recipe.minutes))


def _stage(recipe: Recipe, done: float) -> Stage:
    return [stage for stage in recipe.stages if stage.start <= done][-1]


def _groups(model: Hourglass, recipe: Recipe) -> list[dict[str, Any]]:
    matrices = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    return [
        {"params": matrices, "weight_decay": recipe.decay},
        {"params": rest, "weight_decay": 0.0},
    ]


def _bytes(path: str, recipe: Recipe) -> Tensor:
    longest = max(stage.length for stage in recipe.stages)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise HgvizError(f"cannot read {path}", error.strerror or str(error)) from error
    if len(data) <= longest + 1:
        raise HgvizError(
            f"{path} is too short to train on",
            f"it has {len(data):,} bytes and the longest window is {longest:,}",
            "Give a longer text or a shorter window",
        )
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@contextmanager
def _evaluating(model: Hourglass) -> Iterator[None]:
    model.eval()
    try:
        yield
    finally:
        model.train()


def _log(out: Path, row: dict[str, Any]) -> None:
    with open(out / "log.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _snapshot(
    out: Path,
    plan: Plan,
    model: Hourglass,
    optimiser: torch.optim.Optimizer,
    state: dict[str, Any],
) -> None:
    part = out / "state.pt.part"
    torch.save(
        {
            "plan": msgspec.json.encode(plan).decode(),
            "model": model.state_dict(),
            "optimiser": optimiser.state_dict(),
            "state": dict(state),
            "random": torch.get_rng_state(),
        },
        part,
    )
    part.replace(out / "state.pt")


def _resume(
    out: Path, plan: Plan, model: Hourglass, optimiser: torch.optim.Optimizer
) -> dict[str, Any]:
    path = out / "state.pt"
    if not path.exists():
        if (out / "model.safetensors").exists():
            raise HgvizError(
                f"{out} already holds a trained model", "", "Choose another folder with -o"
            )
        return {"step": 0, "seconds": 0.0}
    found = torch.load(path, weights_only=True, map_location="cpu")
    if found["plan"] != msgspec.json.encode(plan).decode():
        raise HgvizError(
            f"{path} belongs to a training with other settings",
            "it can only be continued as it was begun",
            "Put the settings back, or choose another folder with -o",
        )
    model.load_state_dict(found["model"])
    optimiser.load_state_dict(found["optimiser"])
    torch.set_rng_state(found["random"])
    state: dict[str, Any] = found["state"]
    return state
