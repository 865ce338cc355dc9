"""Folders that save_pretrained of the package transformers wrote: from a config.json and tensors to
a model with its layers as they attend.

Files are read by hgviz's own bounded readers, and compared with what the class wants before any of
it is made. Layers are found by a short pass: whatever asks for attention is one, in order of
computation, and what heads go through after it is found by values and proved by zeros.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from hgviz.core import Goal, HeadId, HgvizError, Layer, Modality, Role
from hgviz.models.blocks import Pass, Tokens
from hgviz.models.config.huggingface import ENTRY, Entry, Kept, TransformersConfig
from hgviz.models.devices import require_room, room
from hgviz.models.formats.checkpoint import Checkpoint, digest_of
from hgviz.models.formats.files import require_finite
from hgviz.models.formats.readers import (
    BRING,
    converted,
    line_of,
    located,
    plain,
    quoted,
    read_config,
    shown,
    weights_of,
)
from hgviz.models.formats.shards import read_weights
from hgviz.models.formats.source import Source
from hgviz.models.huggingface import (
    NAME,
    OTHERWISE,
    SOURCE,
    TARGET,
    Found,
    Running,
    Transformers,
    blocks,
    library,
    parts,
    quiet,
    table_of,
    unexchanged,
    unseen,
)

PROVED, SAME = 33, 1e-3  # tokens that outputs are compared on, and how far they may be off
MOST_PARTS = 1024  # layers, heads or experts that a model may have besides one for each tensor
HEADS = ("num_heads", "n_heads", "num_attention_heads")  # how many a module or its config has
GROUPS = ("num_key_value_heads", "num_kv_heads")
COUNTS = "(layer|depth|block|head|expert)(?!.*(size|dim|width|rank|id|channels)s?$)"
BUFFERS = (
    "position_ids", "token_type_ids", ".masked_bias", ".attn.bias", "rotary_emb.inv_freq",
    "num_batches_tracked", "relative_position_index",
)  # fmt: skip
GOALS: tuple[tuple[str, Goal], ...] = (  # what the name of a class ends with, and what it gives
    ("ForCausalLM", "next"), ("LMHeadModel", "next"), ("ForConditionalGeneration", "next"),
    ("MTModel", "next"), ("ForMaskedLM", "masked"), ("ForPreTraining", "states"),
    ("ForSequenceClassification", "classes"), ("ForImageClassification", "classes"),
    ("ForAudioClassification", "classes"),
    ("ForTokenClassification", "tags"), ("ForQuestionAnswering", "ends"),
)  # fmt: skip
NAMED = ("classes", "tags")  # goals whose answers have names
MODALITIES: dict[str, Modality] = {  # by what a class calls its main input
    "pixel_values": "image", "input_values": "audio", "input_features": "audio",
}  # fmt: skip


def random_model(folder: Path) -> Path:
    """Write a Gemma 2 of two layers and random weights, which reads bytes, into a folder; gives
    that folder. It is there to see whether transformers works."""
    made = library()
    torch.manual_seed(0)
    sizes = made.Gemma2Config(
        vocab_size=256, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, intermediate_size=48, sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    with quiet():
        made.Gemma2ForCausalLM(sizes).save_pretrained(folder)
    return folder


def known_types() -> dict[str, str]:
    """The model types that transformers knows, each with the name of its configuration."""
    library()
    from transformers.models.auto import configuration_auto

    found: Any = configuration_auto
    return dict(found.CONFIG_MAPPING_NAMES)


def require_known(data: Mapping[str, Any], where: str) -> str:
    """The model type of a config.json. Errors: HgvizError for code of its own, and unknown ones."""
    if data.get("auto_map"):
        raise HgvizError(
            f"{where} asks for code of its own",
            "its auto_map names Python files, and hgviz runs nothing that comes with a model",
            "Use a model of an architecture that transformers itself has",
        )
    kind, known = data.get("model_type"), known_types()
    if isinstance(kind, str) and kind in known:
        return kind
    near = difflib.get_close_matches(str(kind), known, 3, 0.6)
    stated, version = quoted(kind), library().__version__
    why = f"its model_type is {stated}, which transformers {version} does not know"
    if near:
        names = ", ".join(near)
        why = f"transformers {version} does not know {stated}; the nearest it knows are {names}"
    raise HgvizError(f"{where} is of a model that hgviz cannot run", why, BRING)


def classes_of(kind: str | None = None) -> set[str]:
    """The names of every class, or of those of a model type."""
    from transformers.models.auto import modeling_auto

    every: set[str] = set()
    for name in dir(modeling_auto):
        if name.endswith("_MAPPING_NAMES"):
            for key, one in getattr(modeling_auto, name).items():
                if kind in (None, key):
                    every |= {one} if isinstance(one, str) else set(one)
    return every


def class_of(data: Mapping[str, Any], kind: str) -> str:
    """The name of the class that a config.json names, else of the bare model of its type."""
    from transformers.models.auto import modeling_auto

    stated = data.get("architectures")
    first = stated[0] if isinstance(stated, list) and stated else None
    if isinstance(first, str) and first in classes_of() and hasattr(library(), first):
        return first
    of = getattr(getattr(library(), str(first), None), "config_class", None)
    if getattr(of, "model_type", None) == kind:  # a part that no task names, as a tower of SigLIP
        return str(first)
    bare = modeling_auto.MODEL_MAPPING_NAMES.get(kind)
    if isinstance(bare, str):
        return bare
    raise HgvizError(
        f"hgviz does not know which model {kind} is",
        f"its config.json names the architecture {quoted(first)}",
        "Save it again by transformers, as one of its own classes",
    )


def read(path: Path) -> Checkpoint:
    """A folder that save_pretrained wrote: its tensors as in its files, and its layers as they
    attend.

    Its files are read by hgviz's own bounded readers. Errors: HgvizError for whatever is missing,
    damaged, not known or does not fit together.
    """
    where, weights = located(path)[0], weights_of(path)
    data = read_config(where)
    kind = require_known(data, shown(where))
    made = getattr(library(), class_of(data, kind))
    own = getattr(made.config_class, "model_type", kind)
    if own != kind and made.__name__ not in classes_of(kind):
        raise HgvizError(
            f"{shown(where)} says two things",
            f"its model_type is {quoted(kind)}, and {made.__name__} is of the type {own}",
            "Put the config.json beside the weights that came with them",
        )
    held = read_weights(weights, lambda name: name.endswith(BUFFERS))
    require_finite(weights, held)
    size = 4 * sum(one.numel() for one in held.values() if one.dtype != torch.float32)
    require_room(f"the model of {shown(where)} in float32", size, "Open it on a machine with more")
    kept = converted(data[ENTRY], Entry, shown(where)).layers if ENTRY in data else ()
    whole = {key: value for key, value in data.items() if key != ENTRY}
    stated = _stated(whole, kind, where, weights, held)
    alone = _fitting(made, stated, where, weights, held, kept)
    try:
        asks = _asks(made)
        if kept and not asks:
            raise HgvizError(
                f"{shown(where)} says two things",
                f"it lists heads that are left, and no {kind} is written without some",
                "Put the config.json beside the weights that came with them",
            )
        try:
            net, missing = _loaded(made, stated, held, torch.float32, asks, kept)
        except KeyError:  # a part looks attention up in a table of its own
            asks = False
            net, missing = _loaded(made, stated, held, torch.float32, asks, kept)
        if missing:
            raise _unfit(where, weights, f"the file lacks {_listed(missing)}")
        told = _config(net, kind, made.__name__, data)
        network = Transformers(net, replace(told, asks=asks, kept=kept, alone=alone))
        config = network.config = _layers(network, held)
        if not alone:
            _require_same(network)
    except HgvizError:
        raise
    except Exception as error:  # transformers raises whatever its parts do
        raise _in_towers(made, stated) or _unbuilt(where, error) from None
    config.box[:] = [network, held]
    sources = {name: Source(name) for name in held}
    return Checkpoint(config, held, digest_of(config, held), weights, sources)


def build(
    config: TransformersConfig, tensors: Mapping[str, Tensor], device: str, dtype: torch.dtype
) -> Transformers:
    """The model of a configuration with these tensors, by the names of its files.

    Errors: HgvizError for another activation where its softmaxes are its own.
    """
    if not config.asks and config.activations != ("softmax",):
        raise unexchanged("its model has attention code of its own")
    if config.box and config.box[1] is tensors and dtype == torch.float32:
        network = cast(Transformers, config.box[0])
        config.box.clear()
        network.config = config
    else:
        made = getattr(library(), config.made)
        with quiet():
            stated = made.config_class.from_dict(_numbered(config.stated))
        net, _ = _loaded(made, stated, tensors, dtype, config.asks, config.kept)
        network = Transformers(net, config)
    with room(device, f"the model has {sum(map(Tensor.numel, tensors.values())):,} parameters"):
        return network.to(device)


def _asks(made: Any) -> bool:
    """Whether a class asks transformers for attention, by what it says of itself."""
    told = getattr(made, "_can_set_attn_implementation", None)
    return bool(told()) if told is not None else True


def _loaded(
    made: Any,
    stated: Any,
    tensors: Mapping[str, Tensor],
    dtype: torch.dtype,
    asks: bool,
    kept: Sequence[Kept] = (),
) -> tuple[Any, list[str]]:
    """A model with these tensors, and the names of those it lacks. kept: what is left of its layers
    where tensors are smaller than its class has them."""
    with (
        quiet(),
        room("cpu", f"its tensors take {sum(t.nbytes for t in tensors.values()):,} bytes"),
    ):
        net, told = made.from_pretrained(
            None, config=stated, state_dict=dict(tensors), dtype=dtype,
            attn_implementation=NAME if asks else "eager", output_loading_info=True,
            ignore_mismatched_sizes=bool(kept),
        )  # fmt: skip
        if smaller := [name for name, *_ in told["mismatched_keys"]]:
            for name in smaller:
                _put(net, name, tensors[same(net, name, tensors)].to(dtype))
            for one in kept:
                _count(net.get_submodule(one.name), one)
    missing = [one for one in told["missing_keys"] if not one.endswith(BUFFERS)]
    return net.eval().requires_grad_(False), sorted(missing)


def _put(net: nn.Module, name: str, tensor: Tensor) -> None:
    """Another parameter in place of one of another size."""
    parent, _, own = name.rpartition(".")
    module = net.get_submodule(parent)
    setattr(module, own, nn.Parameter(tensor, requires_grad=False))
    if isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape


def _count(module: Any, kept: Kept) -> None:
    """Tell a module how many heads it has, where it computes with that."""
    if hasattr(module, "config"):
        module.config = copy.copy(module.config)
    for names, count in zip((HEADS, GROUPS), kept.sizes, strict=True):
        for holder in (module, getattr(module, "config", None)):
            for name in names:
                if isinstance(getattr(holder, name, None), int):
                    setattr(holder, name, count)


def _stated(
    data: dict[str, Any], kind: str, where: Path, weights: Path, held: Mapping[str, Tensor]
) -> Any:
    """What a config.json says, as transformers reads it; never more layers than there are tensors,
    since to make each takes its time."""
    library()
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for key, value in _counts(data):
        if value > max(MOST_PARTS, len(held)):
            raise _unfit(where, weights, f"it holds {len(held):,} tensors, and {key} is {value:,}")
    try:
        with quiet():
            return CONFIG_MAPPING[kind].from_dict(_numbered(data))
    except Exception as error:
        raise _unbuilt(where, error) from None


def _numbered(data: Any) -> Any:
    """What a config.json says, with the numbers that JSON lacks, as transformers writes them."""
    if isinstance(data, Mapping):
        if data.keys() == {"__float__"}:
            return float(data["__float__"])
        return {key: _numbered(one) for key, one in data.items()}
    return [*map(_numbered, data)] if isinstance(data, list) else data


def _counts(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """How many layers, heads and experts a config.json wants, its parts' too."""
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _counts(value)
        elif type(value) is int and re.search(COUNTS, key):
            yield key, value


def _fitting(
    made: Any,
    stated: Any,
    where: Path,
    weights: Path,
    held: Mapping[str, Tensor],
    kept: Sequence[Kept],
) -> str:
    """Why the class does not fit a model without some heads, "" where it does.

    Errors: HgvizError for tensors of another size than the model's, of which none is made.
    """
    try:
        wanted = _shapes(made, stated)
    except Exception as error:
        raise _unbuilt(where, error) from None
    narrow = False
    for name, tensor in held.items():
        shape = wanted.get(same(made, name, wanted))
        if shape is not None and shape != tuple(tensor.shape):
            if kept and _narrower(tensor.shape, shape):
                narrow = True
                continue
            sizes = " x ".join(map(str, shape)), " x ".join(map(str, tensor.shape))
            raise _unfit(
                where, weights, f"{plain(name)} is {sizes[1]} in it, and {sizes[0]} by config.json"
            )
    return why_alone(kept) if narrow else ""


def _shapes(made: Any, stated: Any) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a class; none is made."""
    with quiet(), torch.device("meta"):
        return {name: tuple(one.shape) for name, one in made(stated).state_dict().items()}


def _narrower(found: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether one shape is another that has fewer along one axis."""
    if len(found) != len(whole):
        return False
    return [a < b for a, b in zip(found, whole, strict=True) if a != b] == [True]


def why_alone(kept: Sequence[Kept]) -> str:
    """Why no class of transformers has what is left of these layers."""
    if len({one.sizes for one in kept}) > 1:
        return "layers keep different numbers of heads"
    if not all(one.even for one in kept):
        return "groups of keys keep different numbers of heads"
    return "its class has no such number of heads of this width"


def restated(config: TransformersConfig, tensors: Mapping[str, Tensor]) -> dict[str, Any] | None:
    """The config.json by which its class itself has these tensors, of layers that keep equally many
    heads; None where there is none."""
    if len(sizes := {one.sizes for one in config.kept}) > 1 or not all(
        one.even for one in config.kept
    ):
        return None
    (heads, groups), data = next(iter(sizes)), config.stated
    made = getattr(library(), config.made)
    try:
        with quiet():
            before = made.config_class.from_dict(data)
        width = getattr(before, "head_dim", None) or config.d_head
        wanted = {"num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": width}
        for name, value in wanted.items():
            own = made.config_class.attribute_map.get(name, name)
            if own == name == "head_dim" or hasattr(before, own):
                data[own] = value
        with quiet():
            shapes = _shapes(made, made.config_class.from_dict(data))
    except Exception:  # transformers raises whatever its parts do
        return None
    named = ((shapes.get(same(made, name, shapes)), one) for name, one in tensors.items())
    return data if all(shape in (None, tuple(one.shape)) for shape, one in named) else None


def _unfit(where: Path, weights: Path, why: str) -> HgvizError:
    do = "Put the config.json beside them that came with these weights"
    return HgvizError(f"{shown(weights)} does not fit its config.json", why, do)


def _unbuilt(where: Path, error: Exception) -> HgvizError:
    why = f"transformers says: {line_of(error)}"
    return HgvizError(f"{shown(where)} does not describe a model that can be built", why,
                      "Copy or download it again")  # fmt: skip


def _in_towers(made: Any, stated: Any) -> HgvizError | None:
    """What is said of a model that reads an image and a text each by a model of its own, as CLIP
    does; None for any other."""
    start = made.__name__.removesuffix("Model")
    towers = [f"{start}VisionModel", f"{start}TextModel"]
    if start == made.__name__ or not all(hasattr(library(), one) for one in towers):
        return None
    return HgvizError(
        f"{stated.model_type} is two models, one of images and one of texts",
        "neither looks at what the other reads",
        f"Save the one that is meant, and open that: {towers[0]}.from_pretrained(DIR)"
        f".save_pretrained(OUT), or {towers[1]}",
    )


def _listed(names: Sequence[str]) -> str:
    return plain(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _config(net: Any, kind: str, name: str, data: Mapping[str, Any]) -> TransformersConfig:
    told, text = net.config, _text_config(net)
    goal: Goal = next((goal for end, goal in GOALS if name.endswith(end)), "states")
    labels = tuple(plain(str(one)) for _, one in sorted((told.id2label or {}).items()))
    both = bool(getattr(told, "is_encoder_decoder", False))
    modality = MODALITIES.get(net.main_input_name, "text")
    table = table_of(net) if both or modality == "text" else None
    stated = (getattr(text, one, None) for one in ("hidden_size", "d_model"))
    width = next((one for one in stated if isinstance(one, int)), 0)
    if not width and table is not None:
        width = table.weight.shape[1]
    types = int(getattr(told, "type_vocab_size", 0) or 0)
    return TransformersConfig(
        family=kind, made=name, data=data, width=width,
        vocab_size=0 if table is None else int(table.weight.shape[0]),
        max_positions=None, goal=goal,
        labels=labels if goal in NAMED else (), form="encoder-decoder" if both else "",
        segments=types if types > 1 and "token_type_ids" in signature(net.forward).parameters
        else 0, modality=modality,
    )  # fmt: skip


def _text_config(net: Any) -> Any:
    told = net.config
    return told.get_text_config(decoder=True) if hasattr(told, "get_text_config") else told


def _positions(used: Mapping[nn.Module, str], config: Any) -> int | None:
    """How many positions the tables of them have, of all modules that were used with their names;
    None where they are turned or biased."""
    stated = getattr(config, "max_position_embeddings", None)
    tables = [
        one.num_embeddings - (0 if one.padding_idx is None else one.padding_idx + 1)
        for one, name in used.items()
        if isinstance(one, nn.Embedding) and ("pos" in name.rpartition(".")[2] or "wpe" in name)
    ]
    if not tables:
        return None
    return min(*tables, stated) if isinstance(stated, int) and stated > 0 else min(tables)


def _layers(network: Transformers, held: Mapping[str, Tensor]) -> TransformersConfig:
    """The configuration with what attends, in order, and with the tensors that heads are put
    together by: told by a pass over a few tokens."""
    config, running, outputs = network.config, Running(met=[]), dict[int, str]()
    both = config.form == "encoder-decoder"
    names = {module: name for name, module in network.net.named_modules()}
    path, stack, used = dict[int, str](), list[str](), dict[nn.Module, str]()
    stacked, silent = dict.fromkeys(blocks(network.net), 0), list[tuple[str, str]]()
    given = network.example(SOURCE, TARGET)

    def before(module: nn.Module, given: tuple[Any, ...]) -> None:
        stack.append(names[module])
        used[module] = names[module]
        if module in stacked:
            stacked[module] = running.count
        if not isinstance(module, nn.Linear) or not running.given:
            return
        wanted, running.given = running.given, 0
        first = given[0] if given else None
        # of a softmax only the number of heads is known, as a negative one
        fits = isinstance(first, Tensor) and (
            first.numel() == wanted or (wanted < 0 and not module.in_features % -wanted)
        )
        if fits:
            outputs[running.count - 1] = names[module]

    def after(module: nn.Module, given: Any, found: Any) -> None:
        stack.pop()
        first = found[0] if isinstance(found, tuple) and found else found
        kinds = [type(one).__name__ for one in parts(module)]
        whole = module in stacked and isinstance(first, Tensor) and first.dim() == 3 and kinds
        if whole and stacked[module] == running.count:
            mixers = [one for one in kinds if not re.search("Norm|Dropout", one)]
            silent.append((names[module], ", ".join(dict.fromkeys(mixers))))

    running.after = lambda index: path.__setitem__(index, stack[-1] if stack else "")
    hooks = [one.register_forward_pre_hook(before) for one in names]
    hooks += [one.register_forward_hook(after, always_call=True) for one in names]
    try:
        with torch.inference_mode():
            network._logits(given, running)
    finally:
        for hook in hooks:
            hook.remove()
    if {*network.net.modules()} != {*names}:  # as BigBird does
        raise unseen(config.family, OTHERWISE)
    met, kept = running.met or [], config.kept
    outputs = _proved(network, given, met, outputs)
    source = met[0].queries if met and config.modality != "text" else SOURCE
    found, places = list[Layer](), list[int]()
    lengths = (source, TARGET) if both else (source,)
    for call, one in enumerate(met):
        role: Role = "self"
        if both and one.queries == TARGET and one.keys == source:
            role = "cross"
        elif one.queries != one.keys or one.queries not in lengths:
            silent.append((path[call], "attention to something else than the tokens of a text"))
            continue
        elif one.batch > 1:
            raise unseen(config.family, f"{path[call]} attends within parts of what it reads")
        level, left = int(both and one.queries == TARGET), [*kept][len(found) : len(found) + 1]
        heads = left[0].heads if left else tuple(range(one.heads))
        shared = left[0].shared if left else one.heads // max(1, one.groups)
        places.append(call)
        found.append(
            Layer(
                len(found), path[call] or f"layer.{call}", role, level,
                0 if role == "cross" else level, heads, ("softmax",) * len(heads), one.causal,
                shared=shared,
            )
        )  # fmt: skip
    if not found and running.met:
        raise unseen(config.family, f"{path[0]} weighs other keys than those of its text")
    if not found:
        raise unseen(config.family, "it neither asks transformers for it nor weighs by a softmax")
    form = config.form or ("decoder" if any(one.causal for one in found) else "encoder")
    if form == "encoder" and config.goal == "next":  # as XLNet, which sees the token that it says
        config = replace(config, goal="states")
    if kept and [one.name for one in kept] != [one.name for one in found]:
        raise HgvizError(
            f"what config.json says under {ENTRY} is of another model",
            f"it names {_listed([one.name for one in kept])}, and its layers are "
            + _listed([one.name for one in found]),
            "Put the config.json beside the weights that came with them",
        )
    products = tuple(outputs.get(at, "") for at in places)
    files = tuple(_filed(network.net, one, held) for one in products)
    positions = _positions(used, _text_config(network.net)) if config.vocab_size else None
    return replace(
        config, own=tuple(found), form=form, products=products, outputs=files,
        max_positions=positions, unattending=tuple(dict(silent).items()),
        apart=frozenset({*range(len(met))} - {*places}),
    )  # fmt: skip


def _proved(
    network: Transformers, given: Tokens, met: Sequence[Found], outputs: Mapping[int, str]
) -> dict[int, str]:
    """Of the products that seemed to come after heads, those that are given zeros where the first
    head of their layer is off."""
    zeros: dict[int, bool] = {}
    kept = network.config.kept
    outputs = {index: name for index, name in outputs.items() if met[index].heads}

    def looked(index: int, module: nn.Module, given: tuple[Any, ...]) -> None:
        width = given[0].shape[-1] // met[index].heads
        zeros[index] = zeros.get(index, True) and not bool(given[0][..., :width].any())

    hooks = [
        network.net.get_submodule(name).register_forward_pre_hook(partial(looked, index))
        for index, name in outputs.items()
    ]
    off = frozenset(HeadId(at, kept[at].heads[0] if kept else 0) for at in outputs)
    try:
        with torch.inference_mode():
            network._logits(given, Running(run=Pass(off)))
    finally:
        for hook in hooks:
            hook.remove()
    return {index: name for index, name in outputs.items() if zeros.get(index)}


def _require_same(network: Transformers) -> None:
    """Errors: HgvizError where a model gives something else by our attention than by its own, so
    that its maps would not be what it does."""
    config = network.config
    if not config.asks:
        return
    length = min(PROVED, config.max_positions or PROVED)
    given = network.example(length, max(1, length // 2))
    net: Any = network.net
    with torch.inference_mode(), quiet():
        ours = network._logits(given, Running())
        net.set_attn_implementation("eager")
        theirs = network._logits(given, Running())
        net.set_attn_implementation(NAME)
    apart, largest = float((ours - theirs).abs().max()), float(theirs.abs().max())
    if not apart <= SAME * max(1.0, largest):
        raise unseen(
            config.family, f"by hgviz's attention its outputs are {apart:.1e} off, so it has more "
            "to it than hgviz knows",
        )  # fmt: skip


def _filed(net: nn.Module, product: str, held: Mapping[str, Tensor]) -> str:
    """What the file calls the weights of a product; "" where they are not in it as they are."""
    if not product:
        return ""
    name, weight = f"{product}.weight", cast(Tensor, net.get_submodule(product).weight)
    if found := same(net, name, held):
        return found
    # transformers gives tensors of older files other names
    alike = [key for key, one in held.items() if one.shape == weight.shape
             and torch.equal(one.to(weight), weight)]  # fmt: skip
    return alike[0] if len(alike) == 1 else ""


def same(net: Any, tensor: str, known: Collection[str]) -> str:
    """What a tensor is called among others: with or without the name of the bare model before it;
    "" where it is not there. So files and modules name one and the same."""
    prefix = f"{getattr(net, 'base_model_prefix', '')}."
    every = (tensor, prefix + tensor, tensor.removeprefix(prefix))
    return next((one for one in every if tensor and one in known), "")
