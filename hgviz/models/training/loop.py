"""The loop: optimiser, schedule, log, and going on after a stop.

AdamW with decoupled weight decay on matrices only (Loshchilov, Hutter 2019), linear warm-up then
cosine, gradient clipping. Windows may grow while training: short ones first are much cheaper.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch

from hgviz.core import HeadSet, HgvizError, progress
from hgviz.files import TEMPORARY, first_line, open_atomic
from hgviz.models.formats.checkpoint import digest_of, save
from hgviz.models.huggingface import Transformers
from hgviz.models.layers import Network
from hgviz.models.model import module_of
from hgviz.models.training.gating import Gated
from hgviz.models.training.learned import write_gates
from hgviz.models.training.objectives import Figures
from hgviz.models.training.plan import Plan, Recipe
from hgviz.models.training.start import Start, begin
from hgviz.models.training.transformers import tensors_of

STATE, LOG = "state.pt", "log.jsonl"


@dataclass(frozen=True, slots=True)
class Report:
    """What came out: figures on the whole held-out data, with the weights as stored.

    metric: the figure that counts; before: as in Start; roles: heads by what learnt gates say they
    do, such as open and closed.
    """

    folder: str
    metric: str
    figures: Figures
    steps: int
    seconds: float
    before: dict[str, Figures] = field(default_factory=dict)
    roles: dict[str, HeadSet] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The figure that counts."""
        return self.figures[self.metric]


def train(
    plan: Plan,
    folder: str | os.PathLike[str],
    keep: bool = False,
) -> Report:
    """Train and write folder/config.json, model.safetensors, tokenizer.json and log.jsonl.

    Stopped or killed, it goes on from folder/state.pt when started again with the same plan.
    keep: state.pt stays until who asked has the report where it is safe; with it the end is done
    again in a moment. The progress carries {"step", "loss", "held_out"}.
    """
    out = Path(folder)
    made = [one for one in (out, *out.parents) if not one.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        if plan.recipe.threads:
            torch.set_num_threads(plan.recipe.threads)
        found = _found(out, plan)
        progress(0, 1, "reading the data", {"step": 0, "loss": math.nan, "held_out": math.nan})
        start = begin(plan, out, found["state"]["before"] if found else None)
        optimiser = _optimiser(start, plan)
    except BaseException:  # nothing is begun: no empty folder stays
        with suppress(OSError):
            for one in made:
                one.rmdir()
        raise
    if found:
        state = _resume(found, start, optimiser)
    else:
        start.coder.save(out)
        state = {"step": 0, "seconds": 0.0, "before": start.before}
        if start.before or start.fresh:
            _log(out, {"step": 0, **start.before, "fresh": list(start.fresh)})
    start.model.train()
    _loop(plan, out, start, optimiser, state)
    progress(1, 1, "measuring the stored file on all held-out data")
    report = _finished(plan, out, start, state)
    for left in out.glob(f".*{TEMPORARY}"):  # of tries that were killed while they wrote it
        left.unlink(missing_ok=True)
    if not keep:
        (out / STATE).unlink(missing_ok=True)
    return report


def _loop(
    plan: Plan,
    out: Path,
    start: Start,
    optimiser: torch.optim.Optimizer,
    state: dict[str, Any],
) -> None:
    recipe, model, objective = plan.recipe, start.model, start.objective
    steps = recipe.steps or math.ceil(recipe.epochs * objective.per_epoch)
    held_out = math.nan
    last = time.monotonic()
    while (done := _progress(recipe, steps, state)) < 1:
        share = schedule(done, state["step"], recipe)
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * share
        loss, shown = objective.loss(model, state["step"], done)
        _update(optimiser, loss, recipe)
        state["step"] += 1
        due = state["step"] % recipe.evaluate_every == 0
        figures: Figures = {}
        if due:
            with _evaluating(model):
                figures = objective.measure(model, False)
            held_out = figures[objective.metric]
        now = time.monotonic()
        state["seconds"], last = state["seconds"] + now - last, now
        if due:
            times = {key: state[key] for key in ("step", "seconds")}
            extra = {f"held_out_{key}": one for key, one in figures.items()
                     if key != objective.metric}  # fmt: skip
            rate = recipe.rate * share
            _log(out, {**times, "loss": shown, "held_out": held_out, **extra, "rate": rate})
        if state["step"] % recipe.save_every == 0:
            _snapshot(out, plan, start, optimiser, state)
        words = f"step {state['step']:,}, loss {shown:.3f}"
        if math.isfinite(held_out):  # nothing is measured before its first turn
            words += f", held out {held_out:.3f}"
        told = {"step": state["step"], "loss": shown, "held_out": held_out}
        progress(done, 1.0, words, told)
    _snapshot(out, plan, start, optimiser, state)


def _update(optimiser: torch.optim.Optimizer, loss: torch.Tensor, recipe: Recipe) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    parameters = [one for group in optimiser.param_groups for one in group["params"]]
    torch.nn.utils.clip_grad_norm_(parameters, recipe.clip)
    if not torch.isfinite(loss):
        raise HgvizError(
            "training has diverged: the loss is no longer a number: "
            f"the learning rate {recipe.rate} may be too high",
            "Lower recipe.rate and start again",
        )
    optimiser.step()


def _finished(plan: Plan, out: Path, start: Start, state: dict[str, Any]) -> Report:
    """Store the weights, and measure them as they are stored."""
    model, objective, recipe = start.model.eval(), start.objective, plan.recipe
    dtype = torch.bfloat16 if recipe.store == "bfloat16" else torch.float32
    told: dict[str, Any] | None = None
    roles: dict[str, HeadSet] = {}
    tensors = {name: value.cpu() for name, value in model.state_dict().items()}
    if isinstance(objective, Gated):
        if objective.gates is not None:
            told, roles = objective.written(model), objective.roles()
        tensors, objective = objective.folded(tensors), objective.inner
    if isinstance(model, Transformers):
        model.load_state_dict(tensors)
        tensors = tensors_of(model, out)
    stored = {name: value.to(dtype) for name, value in tensors.items()}
    save(out, start.config, stored)
    if told is not None:
        write_gates(out, told, (start.digest, digest_of(start.config, stored)))
    model = module_of(start.config, stored, recipe.device, torch.float32)
    figures = objective.measure(model, True)
    row: dict[str, Any] = {"step": state["step"], "seconds": state["seconds"]}
    row |= {f"{name}_{objective.metric}": one[objective.metric]
            for name, one in state["before"].items()}  # fmt: skip
    row |= {f"stored_{name}": value for name, value in figures.items()}
    _log(out, row)
    return Report(
        str(out), objective.metric, figures, state["step"], state["seconds"], state["before"],
        roles,
    )  # fmt: skip


def schedule(done: float, step: int, recipe: Recipe) -> float:
    """The learning rate as a share of its peak: linear warm-up, then half a cosine to the floor."""
    warm = min(1.0, (step + 1) / max(recipe.warmup, 1))
    return warm * (recipe.floor + (1 - recipe.floor) * 0.5 * (1 + math.cos(math.pi * done)))


def _progress(recipe: Recipe, steps: int, state: dict[str, Any]) -> float:
    if steps:
        return float(state["step"] / steps)
    return float(state["seconds"] / (60 * recipe.minutes))


def _optimiser(start: Start, plan: Plan) -> torch.optim.Optimizer:
    recipe, learnt = plan.recipe, start.learnt
    weights = [one for one in learnt["model"].parameters() if one.requires_grad]
    gates = [*learnt["gates"].parameters()] if "gates" in learnt else []
    gates_rate = plan.gates.rate if plan.gates is not None else 0.0
    parts = (
        ([one for one in weights if one.dim() > 1], recipe.rate, recipe.decay),
        ([one for one in weights if one.dim() <= 1], recipe.rate, 0.0),
        (gates, gates_rate, 0.0),
    )
    groups: list[dict[str, Any]] = [
        {"params": some, "peak": peak, "weight_decay": decay} for some, peak, decay in parts if some
    ]
    # a vocabulary's matrix is most of a small model: one pass over it instead of ten
    fused = recipe.device != "mps"
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.99), fused=fused)


@contextmanager
def _evaluating(model: Network) -> Iterator[None]:
    model.eval()
    try:
        yield
    finally:
        model.train()


# --- what stays on disk ---------------------------------------------------------------------------


def _log(out: Path, row: dict[str, Any]) -> None:
    with open(out / LOG, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _snapshot(
    out: Path, plan: Plan, start: Start, optimiser: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    told = {
        "plan": msgspec.json.encode(plan).decode(),
        "learnt": start.learnt.state_dict(),
        "optimiser": optimiser.state_dict(),
        "state": dict(state),
        "random": torch.get_rng_state(),
    }
    with open_atomic(out / STATE) as file:
        torch.save(told, file)


def _found(out: Path, plan: Plan) -> dict[str, Any] | None:
    """What a stopped training left, if it did. Errors: HgvizError where it cannot be gone on."""
    path = out / STATE
    if not path.exists():
        if (out / "model.safetensors").exists():
            raise HgvizError(
                f"{out} already holds a trained model", "Choose another folder with -o"
            )
        return None
    try:
        found: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # zip files, pickles and streams each fail in their own way
        raise HgvizError(
            f"{path} is damaged: {first_line(error)}", "Delete it to begin again from the start"
        ) from None
    if not isinstance(found, dict) or found.get("plan") != msgspec.json.encode(plan).decode():
        raise HgvizError(
            f"{path} belongs to a training with other settings: "
            "it can only be continued as it was begun",
            "Put the settings back, or choose another folder with -o",
        )
    return found


def _resume(
    found: dict[str, Any], start: Start, optimiser: torch.optim.Optimizer
) -> dict[str, Any]:
    start.learnt.load_state_dict(found["learnt"])
    optimiser.load_state_dict(found["optimiser"])
    torch.set_rng_state(found["random"])
    state: dict[str, Any] = found["state"]
    return state
