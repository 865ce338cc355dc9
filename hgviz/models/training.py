"""Train small models on one machine from a TOML file: new ones, and checkpoints that go on.

AdamW with decoupled weight decay on matrices only (Loshchilov, Hutter 2019), linear warm-up then
cosine, gradient clipping. A training that was stopped or killed continues where it was.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import numpy as np
import torch
from msgspec import structs
from torch import nn

from hgviz.core import HeadSet, HgvizError, ModelSpec, parse_heads, progress
from hgviz.errors import HgvizWarning, file_error, require
from hgviz.files import (
    TEMPORARY,
    find_sample,
    first_line,
    folder_lock,
    open_atomic,
    path_errors,
    write_atomic,
)
from hgviz.maskfile import MARK, read_heads
from hgviz.models import pretrained
from hgviz.models.baselines import LSTMConfig
from hgviz.models.checkpoints import read, save, weight_errors
from hgviz.models.config import config_json, parse_config, wrong_key
from hgviz.models.data import LabelledTexts, label_indices
from hgviz.models.devices import device_of, has_bfloat16
from hgviz.models.huggingface import Transformers, library_errors, quiet
from hgviz.models.layers import Configuration, Network
from hgviz.models.model import module_of
from hgviz.models.objectives import (
    Data,
    Figures,
    HardConcrete,
    Objective,
    Positive,
    Recipe,
    TrainedHeads,
    make_objective,
    read_data,
)
from hgviz.models.pretrained_config import TransformersConfig
from hgviz.models.pruning import scale_heads
from hgviz.models.tensors import WEIGHTS, Checkpoint, digest_of, read_weights
from hgviz.models.text import (
    TOKENIZER,
    Bytes,
    Pieces,
    TokenizerPlan,
    read_tokenizer,
    tokenizer_file,
    train_tokenizer,
)
from hgviz.models.transformer import PRESETS
from hgviz.study import LearnedImportance

GUIDE = "See `hgviz docs how-to/train`"
STATE, LOG, GATES = "state.pt", "log.jsonl", "gates.json"

# --- the training file ----------------------------------------------------------------------------


class Gating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hard-concrete gates of heads to learn.

    cost, in the file lambda: nats of an open gate; rate: the learning rate of gates; freeze: false
    where the weights learn too.
    """

    method: str
    cost: Positive = msgspec.field(name="lambda")
    rate: Positive = 0.1
    freeze: bool = True


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A training file: [model], [data], [recipe] and, where needed, [tokenizer] and [gates]."""

    model: dict[str, Any]
    data: Data
    recipe: Recipe
    tokenizer: TokenizerPlan | None = None
    gates: Gating | None = None


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read and check a training file; paths in it are relative to it. Raises HgvizError."""
    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HgvizError(f"{path} is not a training file: {error}", GUIDE) from error
    return parse_plan(tables, Path(path).resolve().parent, str(path))


def parse_plan(tables: dict[str, Any], folder: Path, name: str = "this") -> Plan:
    """The plan of TOML tables whose paths are relative to a folder. Raises HgvizError."""
    try:
        plan = msgspec.convert(tables, Plan)
    except msgspec.ValidationError as error:
        raise HgvizError(f"{name} is invalid: {wrong_key(error)}", GUIDE) from error
    recipe, data, model, gates = plan.recipe, plan.data, plan.model, plan.gates
    lengths = (recipe.steps, recipe.epochs, recipe.minutes)
    rules = [
        (data.train, "data.train names no file"),
        (len(data.weights) in (0, len(data.train)), "data.weights needs one per file"),
        (sum(map(bool, lengths)) == 1, "recipe needs one of steps, minutes and epochs"),
        (recipe.stages and recipe.stages[0].start == 0, "recipe.stages must begin at start 0"),
        (isinstance(model.get("from", ""), str), "model.from must be the path of a checkpoint"),
        (not plan.tokenizer or "from" not in model, "[tokenizer] cannot be used with model.from"),
        (isinstance(model.get("off", ""), str), 'model.off must be heads such as "3.5,4.*", or a '
         'mask file as "@FILE"'),
        ("off" not in model or "from" in model, "model.off needs model.from"),
        (not gates or gates.method == "gates", 'gates.method must be "gates"'),
        (not gates or "from" in model, "gates need model.from"),
    ]  # fmt: skip
    for condition, why in rules:
        require(condition, f"this training file is invalid: {why}", "Correct it and start again")

    def locate(key: str, name: str) -> str:
        path = folder / name
        is_text = key == "valid" or key.startswith("train ")
        return str(path if path.exists() or not is_text else folder / find_sample(name))

    plan = _locate_files(plan, locate)
    off = plan.model.get("off", "")
    if not off.startswith(MARK):
        return plan
    checkpoint = read(plan.model["from"])
    spec = checkpoint.config.spec("", checkpoint.digest, 0)
    heads = read_heads(f"{MARK}{folder / off[len(MARK) :]}", spec)
    names = ",".join(map(str, sorted(heads)))
    return structs.replace(plan, model={**plan.model, "off": names})


def plan_with_files(tables: dict[str, Any], paths: Mapping[str, str]) -> Plan:
    """A checked plan as msgspec writes it, with its files at paths: "train 0", "valid", "from" ...

    Raises HgvizError where its device is not here.
    """
    plan = msgspec.convert(tables, Plan)
    names = [name for name in paths if name.startswith("train ")]
    plan = structs.replace(plan, data=structs.replace(plan.data, train=names))
    return _locate_files(plan, lambda key, name: paths.get(key, name))


def _locate_files(plan: Plan, locate: Callable[[str, str], str]) -> Plan:
    """The plan with locate(key, name) for each file, and the device that its name stands for."""
    data, model, vocabulary = plan.data, dict(plan.model), plan.tokenizer
    train = [locate(f"train {at}", name) for at, name in enumerate(data.train)]
    data = structs.replace(data, train=train, valid=locate("valid", data.valid))
    if "from" in model:
        model["from"] = locate("from", model["from"])
    if vocabulary is not None:
        file = vocabulary.file and locate("tokenizer", vocabulary.file)
        vocabulary = structs.replace(vocabulary, file=file)
    recipe = structs.replace(plan.recipe, device=device_of(plan.recipe.device))
    return Plan(model, data, recipe, vocabulary, plan.gates)


def goal_of(model: Mapping[str, Any]) -> str:
    """What a new model with these keys learns: next, masked, classes, states or pairs."""
    family = model.get("family", "hourglass")
    if family not in PRESETS:
        is_masked = family == "window" and model.get("causal") is False
        return "masked" if is_masked else "next"
    keys = {"form": "encoder-decoder", "goal": "next", **PRESETS[family], **model}
    return "pairs" if keys["form"] == "encoder-decoder" else str(keys["goal"])


# --- what a training begins with ------------------------------------------------------------------

EXCHANGED = ("activations", "norms", "top_k")  # keys of [model] that change how a checkpoint weighs
CHANGED = (*EXCHANGED, "goal", "labels", "cls", "pooler")  # all that model.from may be given
OWN = ("cls", "pooler")  # of these, what models of transformers do not have
MIXED = {"projection", "mixtures"}  # parts of names: mixtures of tokens keep the scale of torch


@dataclass(frozen=True, slots=True)
class Start:
    """What a training begins with.

    before: figures of a checkpoint as it was ("original"), with its activations exchanged
    ("exchanged") and with heads off ("pruned"); fresh: the parameters that the checkpoint lacks.
    digest: the checkpoint's.
    """

    model: Network
    objective: Objective
    tokenizer: Bytes | Pieces
    heads: TrainedHeads
    before: dict[str, Figures] = field(default_factory=dict)
    fresh: tuple[str, ...] = ()
    digest: str = ""

    @property
    def learned(self) -> nn.ModuleDict:
        """All that has parameters to learn."""
        gates = self.heads.gates
        return nn.ModuleDict({"model": self.model} | ({} if gates is None else {"gates": gates}))


def begin(plan: Plan, out: Path, before: Mapping[str, Figures] | None = None) -> Start:
    """Read what a plan names and make its model; nothing but the plan's seed decides its weights.

    out: where a stopped training left its tokenizer; before: as in Start, where it is known.
    Raises HgvizError for data, tokenizers and checkpoints that cannot be used.
    """
    torch.manual_seed(plan.recipe.seed)
    if "from" in plan.model:
        return _begin_from_checkpoint(plan, before or {})
    goal = goal_of(plan.model)
    data = read_data(plan.data, goal)
    tokenizer = _new_tokenizer(plan, goal, data, out)
    keys = {"model_type": "hgviz", "vocab_size": tokenizer.size, **plan.model}
    if goal == "classes":
        keys.setdefault("labels", list(data[0].classes))
    config = parse_config(keys, "[model]")
    require(
        isinstance(tokenizer, Pieces) or config.vocab_size == 256,
        f"a vocabulary of {config.vocab_size:,} needs a tokenizer: without one it is 256 bytes",
        "Add the table [tokenizer], or set vocab_size = 256",
    )
    require(
        config.vocab_size >= tokenizer.size,
        f"the tokenizer has {tokenizer.size:,} ids, but the model has {config.vocab_size:,}",
        "Remove vocab_size from [model]",
    )
    objective = make_objective(plan.recipe, plan.data, goal, data, config, tokenizer, tokenizer.pad)
    model = config.build()
    initialise(model, plan.recipe.initial)
    return Start(_prepare(model, plan.recipe), objective, tokenizer, TrainedHeads(config.layers))


def _begin_from_checkpoint(plan: Plan, before: Mapping[str, Figures]) -> Start:
    recipe, checkpoint = plan.recipe, read(plan.model["from"])
    keys = {key: value for key, value in plan.model.items() if key not in ("from", "off")}
    is_transformers = isinstance(checkpoint.config, TransformersConfig)
    known = [key for key in CHANGED if not (is_transformers and key in OWN)]
    unknown = sorted(keys.keys() - known)
    require(
        not unknown,
        f"{''.join(unknown[:1])} of a checkpoint cannot be changed: "
        f"with model.from, [model] may set {', '.join(known)}",
        "Remove it, or train a new model without model.from",
    )
    goal = keys.get("goal", getattr(checkpoint.config, "goal", "next"))
    if isinstance(checkpoint.config, TransformersConfig):
        _require_trainable(checkpoint.config, goal)
    if getattr(checkpoint.config, "form", "") == "encoder-decoder":
        goal = "pairs"
    data = read_data(plan.data, goal)
    if goal == "classes":  # the checkpoint's own labels where they name all classes of the rows
        own, classes = getattr(checkpoint.config, "labels", ()), data[0].classes
        own = own if label_indices(own).keys() >= {*classes} else classes
        keys |= {"goal": goal, "labels": [*map(str, keys.get("labels", own))]}
    model: Network
    if is_transformers:
        tokenizer = _checkpoint_tokenizer(checkpoint, checkpoint.config)
        model, fresh, pad = pretrained.open_for_training(
            checkpoint, keys, tokenizer.pad, recipe.store
        )
    else:
        tokenizer, model, fresh = _open_own(checkpoint, keys)
        pad = tokenizer.pad
    config, off = model.config, parse_heads(plan.model.get("off", ""), model.config.layers)
    objective = make_objective(recipe, plan.data, goal, data, config, tokenizer, pad)
    heads = TrainedHeads(config.layers, off)
    if plan.gates is not None:
        require(heads.on, "gates cannot be trained: all heads are off", "Remove model.off")
        heads = replace(heads, gates=HardConcrete(len(heads.on), plan.gates.cost))
    if isinstance(config, TransformersConfig):
        pretrained.require_own_projections(config, [head.layer for head in heads.factors()])
    _prepare(model, recipe).eval()
    if is_transformers:
        what = f"this {config.family} cannot be trained"
        with library_errors(what, "Choose another model, or another goal"):
            objective.loss(model, 0, 0.0)
    figures = dict(before)
    if not figures and not fresh:
        figures["original"] = _measure_original(checkpoint, model, objective)
        if any(key in keys for key in EXCHANGED):
            figures["exchanged"] = objective.measure(model, True)
        if off:
            figures["pruned"] = replace(heads, gates=None).measure(objective, model, True)
    torch.manual_seed(recipe.seed)
    model.requires_grad_(plan.gates is None or not plan.gates.freeze)
    return Start(model, objective, tokenizer, heads, figures, fresh, checkpoint.digest)


def _open_own(
    checkpoint: Checkpoint, keys: dict[str, Any]
) -> tuple[Bytes | Pieces, Network, tuple[str, ...]]:
    """A checkpoint's tokenizer, a model with its weights and what [model] changes, and the names of
    the parameters that the checkpoint lacks."""
    config = parse_config({**config_json(checkpoint.config), **keys}, "[model]")
    tokenizer, model = _checkpoint_tokenizer(checkpoint, config), config.build()
    initialise(model)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if getattr(checkpoint.config, "labels", ()) != getattr(config, "labels", ()):
        shapes |= {name: None for name in shapes if name.startswith("head.classifier")}
    weights = {name: tensor.float() for name, tensor in checkpoint.tensors.items()
            if tensor.shape == shapes.get(name)}  # fmt: skip
    model.load_state_dict(weights, strict=False)
    return tokenizer, model, tuple(name for name in shapes if name not in weights)


def _checkpoint_tokenizer(checkpoint: Checkpoint, config: Configuration) -> Bytes | Pieces:
    if checkpoint.tokenizer is not None:
        return Pieces(Path(TOKENIZER), data=checkpoint.tokenizer)
    if config.vocab_size == 256 and tokenizer_file(checkpoint.folder) is None:
        return Bytes()
    return read_tokenizer(checkpoint.folder, getattr(config, "cls", 1), config.vocab_size)


def _measure_original(checkpoint: Checkpoint, model: Network, objective: Objective) -> Figures:
    """The figures of a checkpoint with the activations that it has itself."""
    changed: Any = model.config
    own = {key: getattr(checkpoint.config, key) for key in EXCHANGED if hasattr(changed, key)}
    config = changed.replace(**own)
    if not isinstance(model, Transformers):
        device = objective.recipe.device
        return objective.measure(module_of(config, checkpoint.tensors, device, torch.float32), True)
    model.config = config
    try:
        return objective.measure(model, True)
    finally:
        model.config = changed


def _require_trainable(config: TransformersConfig, goal: str) -> None:
    why = "" if goal in ("next", "masked", "classes") else f"its goal is {goal}"
    if config.modality != "text":
        why = "it does not read text"
    elif config.form == "encoder-decoder" and (config.goal, goal) != ("next", "next"):
        why = "encoder-decoders are only trained to predict the next token"
    require(
        not why,
        f"this {config.family} cannot be trained: {why}",
        "Choose a text model, and the goal next, masked or classes",
    )


def initialise(model: Network, std: float = 0.02) -> None:
    """Normal weights of std, residual outputs 1 / sqrt(2 layers) of it (GPT-2). An LSTM, in which
    nothing is normed, keeps the scales that torch gives it, as do mixtures of tokens."""
    if isinstance(model.config, LSTMConfig):
        return
    residual = std / math.sqrt(2 * max(len(model.config.layers), 1))
    for name, parameter in model.named_parameters():
        if not parameter.numel():
            continue  # a layer without heads
        if name.endswith(("attn.o.weight", "cross.o.weight", "ff.out.weight")):
            nn.init.normal_(parameter, std=residual)
        elif MIXED.intersection(name.split(".")):
            continue
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=std)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


def _prepare(model: Network, recipe: Recipe) -> Network:
    """The model with the recipe's dropout, on its device. Models of transformers keep dropout as
    numbers of their own; none leaves a layer out, since heads are counted by layers."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = recipe.dropout
        elif isinstance(model, Transformers):
            for name, value in vars(part).items():
                if "drop" in name and type(value) in (int, float) and 0 <= value < 1:
                    drops_layers = "layer" in name or "path" in name
                    setattr(part, name, 0.0 if drops_layers else recipe.dropout)
    return model.to(recipe.device)


def _new_tokenizer(plan: Plan, goal: str, data: list[Any], out: Path) -> Bytes | Pieces:
    """The tokenizer of a new model: of a stopped training, of a file, or a trained one."""
    if plan.tokenizer is None:
        return Bytes()
    if (out / STATE).exists() and (out / TOKENIZER).exists():
        return read_tokenizer(out)
    cls = {**PRESETS.get(plan.model.get("family", ""), {}), **plan.model}.get("cls", 1)
    cls = cls if isinstance(cls, int) and goal != "next" else 0
    if plan.tokenizer.file:
        return read_tokenizer(Path(plan.tokenizer.file), cls)
    if isinstance(data[0], LabelledTexts):
        lines = chain(data[0].texts, data[0].labels if goal == "pairs" else ())
    else:
        lines = chain(*(text.decode("utf-8", "replace").splitlines() for text in data[:-1]))
    return train_tokenizer(plan.tokenizer, lines, cls)


# --- the loop -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Report:
    """What came out: figures on all held-out data, with the weights as stored.

    metric: the figure that counts; before: as in Start; roles: the heads whose learned gates are
    "open" and "closed".
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

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz train --json` prints it."""
        roles = {role: [*map(str, sorted(heads))] for role, heads in self.roles.items()}
        return {**asdict(self), "value": self.value, "roles": roles}


def train(plan: Plan, folder: str | os.PathLike[str], keep_state: bool = False) -> Report:
    """Train and write folder/config.json, model.safetensors, tokenizer.json and log.jsonl.

    Stopped or killed, it continues from folder/state.pt when started again with the same plan.
    keep_state: leave state.pt until the caller has stored the report; with it the end is done
    again in a moment. Raises HgvizError where another process trains into the folder. The progress
    carries {"step", "loss", "held_out"}.
    """
    out = Path(folder)
    missing = [path for path in (out, *out.parents) if not path.exists()]
    out.mkdir(parents=True, exist_ok=True)
    with folder_lock(out):
        try:
            if plan.recipe.threads:
                torch.set_num_threads(plan.recipe.threads)
            if plan.recipe.autocast and not has_bfloat16(plan.recipe.device):
                what = "bfloat16 is much slower than float32 on this processor"
                warnings.warn(f"{what}; turn autocast off", HgvizWarning, stacklevel=2)
            snapshot = _read_snapshot(out, plan)
            progress(0, 1, "reading the data", {"step": 0, "loss": math.nan, "held_out": math.nan})
            start = begin(plan, out, snapshot["state"]["before"] if snapshot else None)
            optimiser = _optimiser(start, plan)
        except BaseException:  # nothing has begun: leave no empty folder
            with suppress(OSError):
                for path in missing:
                    path.rmdir()
            raise
        if snapshot:
            start.learned.load_state_dict(snapshot["learned"])
            optimiser.load_state_dict(snapshot["optimiser"])
            torch.set_rng_state(snapshot["random"])
            state = snapshot["state"]
        else:
            if isinstance(start.tokenizer, Pieces):
                start.tokenizer.save(out)
            state = {"step": 0, "seconds": 0.0, "before": start.before}
            if start.before or start.fresh:
                _log(out, {"step": 0, **start.before, "fresh": list(start.fresh)})
        _run_steps(plan, out, start, optimiser, state)
        progress(1, 1, "evaluating the saved model on all held-out data")
        report = _store(plan, out, start, state)
        for leftover in out.glob(f".*{TEMPORARY}"):  # of runs that were killed while they wrote it
            leftover.unlink(missing_ok=True)
        if not keep_state:
            (out / STATE).unlink(missing_ok=True)
        return report


def _run_steps(
    plan: Plan, out: Path, start: Start, optimiser: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    recipe, model, objective, heads = plan.recipe, start.model, start.objective, start.heads
    steps = recipe.steps or math.ceil(recipe.epochs * objective.steps_per_epoch)
    held_out, last = math.nan, time.monotonic()
    model.train()
    while (done := state["step"] / steps if steps else state["seconds"] / 60 / recipe.minutes) < 1:
        share = schedule(done, state["step"], recipe)
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * share
        loss, value = heads.loss(objective, model, state["step"], done)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        parameters = chain.from_iterable(group["params"] for group in optimiser.param_groups)
        nn.utils.clip_grad_norm_(parameters, recipe.clip)
        require(
            torch.isfinite(loss),
            "training has diverged: the loss is NaN or infinite; "
            f"the learning rate {recipe.rate} may be too high",
            "Lower recipe.rate and start again",
        )
        optimiser.step()
        state["step"] += 1
        is_due = state["step"] % recipe.evaluate_every == 0
        figures = {}
        if is_due:
            figures = heads.measure(objective, model.eval(), False)
            held_out = figures.pop(objective.metric)
            model.train()
        now = time.monotonic()
        state["seconds"], last = state["seconds"] + now - last, now
        if is_due:
            row = {"step": state["step"], "seconds": state["seconds"], "loss": value}
            row |= {"held_out": held_out} | {f"held_out_{key}": x for key, x in figures.items()}
            _log(out, row | {"rate": recipe.rate * share})
        if state["step"] % recipe.save_every == 0:
            _snapshot(plan, out, start, optimiser, state)
        words = f"step {state['step']:,}, loss {value:.3f}"
        if math.isfinite(held_out):
            words += f", held out {held_out:.3f}"
        figure = {"step": state["step"], "loss": value, "held_out": held_out}
        progress(done, 1.0, words, figure)
    _snapshot(plan, out, start, optimiser, state)


def schedule(done: float, step: int, recipe: Recipe) -> float:
    """The learning rate as a share of its peak: linear warm-up, then half a cosine to the floor."""
    warm = min(1.0, (step + 1) / max(recipe.warmup, 1))
    return warm * (recipe.floor + (1 - recipe.floor) * 0.5 * (1 + math.cos(math.pi * done)))


def _optimiser(start: Start, plan: Plan) -> torch.optim.Optimizer:
    recipe = plan.recipe
    weights = [weight for weight in start.model.parameters() if weight.requires_grad]
    matrices = [weight for weight in weights if weight.dim() > 1]
    vectors = [weight for weight in weights if weight.dim() <= 1]
    groups = [(matrices, recipe.rate, recipe.decay), (vectors, recipe.rate, 0.0)]
    if plan.gates is not None and start.heads.gates is not None:
        groups.append(([start.heads.gates.log_a], plan.gates.rate, 0.0))
    # a vocabulary's matrix is most of a small model: fused, one pass over it instead of ten
    return torch.optim.AdamW(
        [{"params": params, "peak": rate, "weight_decay": decay}
         for params, rate, decay in groups if params],
        lr=recipe.rate, betas=(0.9, 0.99), fused=recipe.device != "mps",
    )  # fmt: skip


def _store(plan: Plan, out: Path, start: Start, state: dict[str, Any]) -> Report:
    """Write the weights, gates in the columns of W_O, and measure them as they are stored."""
    model, objective, recipe = start.model.eval(), start.objective, plan.recipe
    config, folded, factors = model.config, model.config, start.heads.factors()
    tensors = {name: value.cpu() for name, value in model.state_dict().items()}
    if factors:
        if isinstance(folded, TransformersConfig):  # the names are a module's, not a file's
            names = tuple(f"net.{product}.weight" for product in folded.output_modules)
            folded = folded.replace(output_weights=names)
        tensors = scale_heads(Checkpoint(folded, tensors, "", Path()), factors).tensors
    if isinstance(model, Transformers):  # by the names, and in the layout, of its own files
        model.load_state_dict(tensors)
        with quiet(), weight_errors(out), tempfile.TemporaryDirectory(dir=out) as folder:
            cast(Any, model.net).save_pretrained(folder, max_shard_size="1000TB")
            file = Path(folder) / WEIGHTS
            written = read_weights(file, lambda name: name.endswith(pretrained.BUFFERS))
            tensors = {name: tensor.clone() for name, tensor in written.items()}
    dtype = torch.bfloat16 if recipe.store == "bfloat16" else torch.float32
    tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    save(out, config, tensors)
    if plan.gates is not None:
        _write_gates(out, plan, start.heads, [start.digest, digest_of(config, tensors)])
    figures = objective.measure(module_of(config, tensors, recipe.device, torch.float32), True)
    step, seconds, before = state["step"], state["seconds"], state["before"]
    metric = objective.metric
    row = {f"{name}_{metric}": earlier[metric] for name, earlier in before.items()}
    row |= {f"stored_{name}": value for name, value in figures.items()}
    _log(out, {"step": step, "seconds": seconds, **row})
    roles = start.heads.roles()
    return Report(str(out), objective.metric, figures, step, seconds, before, roles)


# --- what stays on disk ---------------------------------------------------------------------------


def _log(out: Path, row: dict[str, Any]) -> None:
    with path_errors(out / LOG, "could not be written"), (out / LOG).open("a") as file:
        file.write(json.dumps(row) + "\n")  # ASCII


def _snapshot(
    plan: Plan, out: Path, start: Start, optimiser: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    parts = {
        "plan": msgspec.json.encode(plan).decode(), "learned": start.learned.state_dict(),
        "optimiser": optimiser.state_dict(), "state": state, "random": torch.get_rng_state(),
    }  # fmt: skip
    with weight_errors(out / STATE), open_atomic(out / STATE) as file:
        torch.save(parts, file)


def _read_snapshot(out: Path, plan: Plan) -> dict[str, Any] | None:
    """What a stopped training left, if it did. Raises HgvizError where it cannot continue."""
    path = out / STATE
    if not path.exists():
        require(
            not (out / WEIGHTS).exists(),
            f"{out} already holds a trained model",
            "Choose another folder with -o",
        )
        return None
    try:
        snapshot: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # zip files, pickles and streams each fail in their own way
        raise HgvizError(
            f"{path} is damaged: {first_line(error)}", "Delete it to start again"
        ) from None
    require(
        isinstance(snapshot, dict) and snapshot.get("plan") == msgspec.json.encode(plan).decode(),
        f"{path} is of a run with other settings: it can only be resumed with the same",
        "Restore the settings, or choose another folder with -o",
    )
    return snapshot


class _LearnedGates(msgspec.Struct, frozen=True):
    gates: dict[str, float]


class _GatesFile(msgspec.Struct, frozen=True):
    """What a reader needs of gates.json; other keys are for people."""

    gates_version: Literal[1]
    heads: list[str]
    learned: _LearnedGates
    models: list[str]
    seed: int = 0


def _write_gates(out: Path, plan: Plan, heads: TrainedHeads, models: list[str]) -> None:
    """Write folder/gates.json; models: digests of the model it began from and of the stored one."""
    roles, factors = heads.roles(), heads.factors()
    content = {
        "gates_version": 1, "models": models, **msgspec.to_builtins(plan.gates),
        "seed": plan.recipe.seed, "heads": [str(head) for head in heads.ids],
        "off": _head_list(heads.off | roles["closed"]),
        "roles": {role: _head_list(members) for role, members in roles.items()},
        "learned": {"gates": {str(head): factors[head] for head in heads.on}},
    }  # fmt: skip
    write_atomic(out / GATES, json.dumps(content, indent=1) + "\n")


def _head_list(heads: HeadSet) -> str:
    """Heads as parse_heads reads them."""
    return ",".join(map(str, sorted(heads)))


def read_learned(
    paths: Sequence[str | os.PathLike[str]], spec: ModelSpec
) -> tuple[LearnedImportance, ...]:
    """The gates that trainings gave the heads of a model, a run each.

    paths: gates.json, or the folders they lie in. Heads that were off all along are NaN. Raises
    HgvizError for files that hold no gates, and for gates of other models.
    """
    runs, notes = [], []
    for path in map(Path, paths):
        file = path / GATES if path.is_dir() else path
        try:
            content = msgspec.json.decode(file.read_bytes(), type=_GatesFile)
        except OSError as error:
            raise file_error(f"cannot read {file}", error) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            what = f"{file} contains no gates: {str(error)}"
            raise HgvizError(what, f"Choose a {GATES} written by hgviz train") from error
        require(
            content.heads == [*map(str, spec.heads)] and spec.digest in content.models,
            f"{file} belongs to another model: its gates are of other weights or heads",
            "Choose the gates.json of this model, or the model it was trained for",
        )
        runs.append([content.learned.gates.get(head, np.nan) for head in content.heads])
        notes.append(f"{file.parent.name} (seed {content.seed})")
    return (LearnedImportance("gates", np.array(runs, np.float32), ", ".join(notes)),)
