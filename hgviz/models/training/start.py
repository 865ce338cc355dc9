"""What a training begins with: data, tokenizer, and a model, new or from a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from msgspec import structs
from torch import Tensor, nn

from hgviz.core import HeadSet, HgvizError, parse_heads
from hgviz.models.config import PRESETS, Config, LSTMConfig, TransformersConfig
from hgviz.models.families import build
from hgviz.models.formats.checkpoint import Checkpoint
from hgviz.models.formats.own import config_json, parse_config
from hgviz.models.formats.readers import read
from hgviz.models.huggingface import Transformers
from hgviz.models.layers import Network
from hgviz.models.texts.labelled import Rows, numbers_of
from hgviz.models.texts.text import tokenizer_file
from hgviz.models.training import transformers
from hgviz.models.training.batches import Epochs, Windows
from hgviz.models.training.data import Material, read_material, work_of, work_of_config
from hgviz.models.training.gating import Gated, gated
from hgviz.models.training.objectives import (
    Classes,
    Figures,
    Labelled,
    MaskedTokens,
    NextToken,
    Objective,
)
from hgviz.models.training.pairs import Pairs, epochs_of, paired
from hgviz.models.training.plan import Plan, Recipe
from hgviz.models.training.vocabulary import (
    MASK,
    TOKENIZER,
    UNKNOWN,
    Coder,
    coder_of,
    read_coder,
    train_coder,
)

EXCHANGED = ("activations", "norms", "top_k")
CHANGED = (*EXCHANGED, "goal", "labels", "cls", "pooler")
OWN = ("cls", "pooler")  # of these, what models of transformers have not
BESIDE = ("from", "off")  # of [model], and no keys of a configuration
MIXED = {"projection", "mixtures"}  # parts of names: mixtures of tokens have their own scale


@dataclass(frozen=True, slots=True)
class Start:
    """What a training begins with.

    before: figures of a checkpoint as it was ("original"), with its activations exchanged
    ("exchanged") and with heads off ("pruned"); fresh: the parameters that the checkpoint does not
    have. digest: the checkpoint's.
    """

    config: Config
    model: Network
    objective: Objective
    coder: Coder
    before: dict[str, Figures] = field(default_factory=dict)
    fresh: tuple[str, ...] = ()
    digest: str = ""

    @property
    def learnt(self) -> nn.ModuleDict:
        """All that has parameters: the model, and gates where they are learnt."""
        gates = self.objective.gates if isinstance(self.objective, Gated) else None
        return nn.ModuleDict({"model": self.model} | ({} if gates is None else {"gates": gates}))


def begin(plan: Plan, out: Path, measured: Mapping[str, Figures] | None = None) -> Start:
    """Read what a plan names and make its model; nothing but the plan's seed decides its weights.

    out: where a stopped training left its tokenizer; measured: `before`, if it is known already.
    Errors: HgvizError for data, tokenizers and checkpoints that cannot be used.
    """
    torch.manual_seed(plan.recipe.seed)
    if "from" in plan.model:
        return _from_checkpoint(plan, measured)
    data = read_material(plan, work_of(plan.model))
    coder = _coder(plan, data, out)
    config = _new_config(plan, coder, data)
    objective = _objective(plan, config, coder, data, coder.pad)
    model = build(config)
    initialise(model, plan.recipe.initial)
    return Start(config, _placed(model, plan), objective, coder)


def initialise(model: Network, std: float = 0.02) -> None:
    """Normal weights of std, residual outputs 1 / sqrt(2 layers) of it (GPT-2). An LSTM, in which
    nothing is normed, keeps the scales that torch gives it."""
    if isinstance(model.config, LSTMConfig):
        return
    layers = len(model.config.layers)
    for name, parameter in model.named_parameters():
        if not parameter.numel():
            continue  # a layer without heads
        if name.endswith(("attn.o.weight", "cross.o.weight", "ff.out.weight")):
            nn.init.normal_(parameter, std=std / math.sqrt(2 * layers))
        elif MIXED.intersection(name.split(".")):
            continue  # a mixture of tokens has its own scale
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=std)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


# --- a new model ----------------------------------------------------------------------------------


def _coder(plan: Plan, data: Material, out: Path) -> Coder:
    words = plan.tokenizer
    if words is None:
        return Coder()
    family = plan.model.get("family")
    preset = PRESETS.get(family, {}) if isinstance(family, str) else {}
    cls = {**preset, **plan.model}.get("cls", 1)
    cls = cls if isinstance(cls, int) and work_of(plan.model) != "next" else 0
    if (out / "state.pt").exists() and (out / TOKENIZER).exists():
        return read_coder(out)
    if words.file:
        return read_coder(Path(words.file), cls)
    return train_coder(words, data.lines(), cls)


def _new_config(plan: Plan, coder: Coder, data: Material) -> Config:
    keys = {"model_type": "hgviz", "vocab_size": coder.size, **plan.model}
    if data.train is not None and not data.pairs:
        keys.setdefault("labels", list(data.train.classes))
    config = parse_config(keys, "[model]")
    if coder.tokenizer is None and config.vocab_size != coder.size:
        raise HgvizError(
            f"there is no tokenizer for {config.vocab_size:,} ids: "
            "without the table [tokenizer] a model reads bytes, and there are 256",
            "Add [tokenizer], or set vocab_size = 256",
        )
    if config.vocab_size < coder.size:
        raise HgvizError(
            f"the tokenizer has {coder.size:,} ids and the model {config.vocab_size:,}: "
            "each needs its embedding",
            "Leave vocab_size out of [model]",
        )
    return config


# --- a checkpoint ---------------------------------------------------------------------------------


def _from_checkpoint(plan: Plan, measured: Mapping[str, Figures] | None) -> Start:
    keys = {key: value for key, value in plan.model.items() if key not in BESIDE}
    found = read(plan.model["from"])
    theirs = isinstance(found.config, TransformersConfig)
    known = [key for key in CHANGED if not (theirs and key in OWN)]
    if unknown := sorted({*keys} - {*known}):
        raise HgvizError(
            f"a checkpoint's {unknown[0]} cannot be changed: "
            f"{'with model.from, [model] may exchange ' + ', '.join(known)}",
            "Take it out, or train a new model without model.from",
        )
    goal = keys.get("goal", getattr(found.config, "goal", "next"))
    if isinstance(found.config, TransformersConfig):
        transformers.require_learned(found.config, goal)
    data = read_material(plan, work_of_config(found.config, goal))
    labels = _labels(found.config, goal, keys, data)
    coder, model, fresh, pad = _continued(plan, found, keys, goal, labels)
    config = model.config
    objective = _objective(plan, config, coder, data, pad)
    off = parse_heads(plan.model.get("off", ""), config.layers)
    learnt = _gated(objective, config, off, plan)
    if isinstance(model, Transformers):
        transformers.require_runs(_placed(model, plan), objective)
    before = dict(measured or {})
    if not measured and not fresh:
        before["original"] = _measured(found, model, plan, objective)
        if any(key in keys for key in EXCHANGED):
            before["exchanged"] = objective.measure(_placed(model, plan).eval(), True)
        if off:
            pruned = Gated(objective, config, off, plan.recipe.seed)
            before["pruned"] = pruned.measure(_placed(model, plan).eval(), True)
    torch.manual_seed(plan.recipe.seed)
    model = _placed(model, plan).requires_grad_(plan.gates is None or not plan.gates.freeze)
    return Start(config, model, learnt, coder, before, fresh, found.digest)


def _gated(objective: Objective, config: Config, off: HeadSet, plan: Plan) -> Objective:
    """The objective, under heads that are off and gates that are learnt if there are any."""
    seed = plan.recipe.seed
    if plan.gates is None and not off:
        return objective
    found = Gated(objective, config, off, seed)
    if plan.gates is not None:
        found = gated(objective, config, off, seed, plan.gates)
    found.require_folds()
    return found


def _labels(config: Config, goal: str, keys: dict[str, Any], data: Material) -> tuple[str, ...]:
    """A checkpoint's own classes where the rows have no others, else the rows' classes."""
    if goal != "classes" or data.train is None:
        return ()
    if "labels" in keys:
        return tuple(map(str, keys["labels"]))
    own: tuple[str, ...] = getattr(config, "labels", ())
    known = numbers_of(own)
    return own if all(label in known for label in data.train.classes) else data.train.classes


def _checkpoints_coder(found: Checkpoint, config: Config) -> Coder:
    if found.tokenizer is not None:
        return coder_of(found.tokenizer)
    if config.vocab_size == 256 and tokenizer_file(found.folder) is None:
        return Coder()
    return read_coder(found.folder, getattr(config, "cls", 1), config.vocab_size)


def _continued(
    plan: Plan, found: Checkpoint, keys: dict[str, Any], goal: str, labels: tuple[str, ...]
) -> tuple[Coder, Network, tuple[str, ...], int | None]:
    """A checkpoint's tokenizer, a model with its weights and what [model] changes, the names of the
    parameters that the checkpoint does not have, and the token that pads texts."""
    if isinstance(found.config, TransformersConfig):
        coder = _checkpoints_coder(found, found.config)
        theirs, fresh = transformers.begun(found, keys, goal, labels, coder.pad, plan.recipe.store)
        return coder, theirs, fresh, transformers.pad_of(theirs)
    changes = {**keys, "goal": goal, "labels": list(labels)} if goal == "classes" else keys
    config = parse_config({**config_json(found.config), **changes}, "[model]")
    coder, model = _checkpoints_coder(found, config), build(config)
    initialise(model)
    own = model.state_dict()
    kept = {
        name: tensor.float()
        for name, tensor in found.tensors.items()
        if name in own and own[name].shape == tensor.shape
    }
    if getattr(found.config, "labels", ()) != getattr(config, "labels", ()):
        kept = {name: one for name, one in kept.items() if not name.startswith("head.classifier")}
    model.load_state_dict(kept, strict=False)
    return coder, model, tuple(name for name in own if name not in kept), coder.pad


def _measured(found: Checkpoint, model: Network, plan: Plan, objective: Objective) -> Figures:
    """The figures of a checkpoint as it is, of which this model goes on."""
    changed: Any = model.config
    own = {key: getattr(found.config, key) for key in EXCHANGED if hasattr(changed, key)}
    config = replace(changed, **own)
    if isinstance(model, Transformers):
        model.config = config
        try:
            return objective.measure(_placed(model, plan).eval(), True)
        finally:
            model.config = changed
    model = build(config)
    model.load_state_dict({name: one.float() for name, one in found.tensors.items()})
    return objective.measure(_placed(model, plan).eval(), True)


# --- what is learnt -------------------------------------------------------------------------------


def _objective(
    plan: Plan, config: Config, coder: Coder, data: Material, pad: int | None
) -> Objective:
    recipe, padding = plan.recipe, pad or 0
    if data.train is not None and data.valid is not None:
        if data.pairs:
            both = paired(data.train, config, coder, recipe.length)
            valid = paired(data.valid, config, coder, recipe.length)
            return Pairs(recipe, both, valid, padding, epochs_of(both, recipe))
        train = _labelled(data.train, config, coder, recipe.length)
        return Classes(
            recipe, train, _labelled(data.valid, config, coder, recipe.length),
            pad=padding, unknown=coder.id_of(UNKNOWN), specials=coder.specials,
            order=Epochs([len(one) for one in train.ids], recipe.batch, recipe.seed),
        )  # fmt: skip
    if getattr(config, "two_texts", False) or getattr(config, "goal", "next") == "states":
        raise HgvizError(
            "this model cannot be trained by itself: "
            "it needs the states of an encoder, or answers nothing that could be right or wrong",
            'Choose form = "encoder-decoder", or the goal next, masked or classes',
        )
    masked = getattr(config, "goal", "next") == "masked"
    recipe = _fitting(recipe, config, sum(map(len, coder.frame())) if masked else 0)
    longest = max(stage.length for stage in recipe.stages)
    streams = [
        _stream(coder, text, name, longest)
        for text, name in zip(data.texts, plan.data.train, strict=True)
    ]
    windows = Windows([ids for ids, _ in streams], plan.data.weights)
    ids, count = _stream(coder, data.held_out, plan.data.valid, longest)
    if not masked:
        return NextToken(recipe, windows, ids, count)
    mask = coder.id_of(MASK)
    if mask is None:
        raise HgvizError(
            f"a masked language model needs a tokenizer with {MASK}: bytes have no such token",
            "Add the table [tokenizer]",
        )
    return MaskedTokens(recipe, windows, ids, mask, coder.size, coder.specials, coder.frame())


def _fitting(recipe: Recipe, config: Config, framed: int) -> Recipe:
    """With windows that the model has positions for, beside so many special tokens."""
    if config.max_positions is None:
        return recipe
    most = max(1, config.max_positions - framed)
    stages = [structs.replace(one, length=min(one.length, most)) for one in recipe.stages]
    length = min(recipe.evaluate_length, most)
    return structs.replace(recipe, stages=tuple(stages), evaluate_length=length)


def _labelled(rows: Rows, config: Config, coder: Coder, length: int) -> Labelled:
    limits = [one for one in (length, config.max_positions) if one]
    ids = coder.rows(list(rows.texts), min(limits, default=None))
    numbers = rows.numbers(getattr(config, "labels", ()))
    return Labelled(
        tuple(torch.tensor(one, dtype=torch.int32) for one in ids), torch.tensor(numbers)
    )


def _stream(coder: Coder, data: bytes, path: str, longest: int) -> tuple[Tensor, int]:
    unit = "bytes" if coder.tokenizer is None else "tokens"
    ids, count = coder.stream(data, path) if data else (torch.zeros(0), 0)
    if len(ids) <= longest + 1:
        raise HgvizError(
            f"{path} is too short to train on: "
            f"it has {len(ids):,} {unit} and the longest window is {longest:,}",
            "Give a longer text or a shorter window",
        )
    return ids, count


def _placed(model: Network, plan: Plan) -> Network:
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = plan.recipe.dropout
    if isinstance(model, Transformers):
        transformers.with_dropout(model, plan.recipe.dropout)
    return model.to(plan.recipe.device)
