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
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from inspect import signature
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
from msgspec import structs
from torch import Tensor, nn

from hgviz.core import Goal, HeadId, HgvizError, Layer, Modality, Role
from hgviz.files import first_line, printable, quoted, read_object, short_path
from hgviz.language import counted
from hgviz.models import differential, longformer
from hgviz.models.config import parse_keys, require_activations
from hgviz.models.devices import require_room, room
from hgviz.models.huggingface import (
    CAPTURE_ADVICE,
    MODALITIES,
    NAME,
    OTHERWISE,
    SOURCE,
    TARGET,
    Found,
    Running,
    Transformers,
    blocks,
    library,
    own_forwards,
    parts,
    quiet,
    table_of,
    unexchanged,
    unseen,
)
from hgviz.models.layers import Network, Tokens
from hgviz.models.patches import Patches
from hgviz.models.pretrained_config import (
    ENTRY,
    Entry,
    Pooling,
    RemainingHeads,
    TransformersConfig,
)
from hgviz.models.run import Run
from hgviz.models.tensors import (
    Checkpoint,
    Source,
    config_file,
    digest_of,
    read_weights,
    require_finite,
    strip_prefixes,
    weights_of,
)

SPARSE = "block_sparse"  # how BigBird attends to long texts, of which hgviz has no maps
TOWERS = ("text_model", "vision_model", "audio_model")  # ends of types, and what tensors begin by
FUNNEL_TYPES = 3  # of tokens: those of two texts, and [CLS], which is of both
PROVED, SAME = 33, 1e-3  # tokens that outputs are compared on, and how far they may be off
MOST_PARTS = 2**14  # layers, heads or experts that a model may have besides one for each tensor
DEPTHS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
HEADS = ("num_heads", "n_heads", "num_attention_heads")  # how many a module or its config has
GROUPS = ("num_key_value_heads", "num_kv_heads")
MOST_LABELS = 100_000
MOST_SIZE = 2**24  # positions, frames, windows: the most of any model known are 10,485,760
SHOWN = (  # names of what tensors show, or of no size
    r"theta|base|seed|token|_id$|_index$|vocab|(hidden|intermediate)(_\w+)?_(size|dim)"
)
COUNTS = "^(?!.*vocab).*(layer|depth|block|head|expert)(?!.*(size|dim|width|rank|id|channels)s?$)"
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
    ("ForQuestionAnsweringSimple", "ends"),
)  # fmt: skip
TASKS = {  # goals that a model may be given, and where transformers lists the classes for each
    "next": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "classes": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
}  # fmt: skip
NAMED = ("classes", "tags")  # goals whose answers have names


class Pruned(msgspec.Struct, frozen=True):
    """The heads that a config.json of transformers before 5 lists as pruned, by layer."""

    pruned_heads: dict[str, list[int]]


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
            f"{where} asks for code of its own: "
            "its auto_map names Python files, and hgviz runs nothing that comes with a model",
            "Use a model of an architecture that transformers itself has",
        )
    kind, known = data.get("model_type"), known_types()
    if kind is None:  # BERT's first files say it by their class alone
        kind = _type_of(_architecture(data))
    if isinstance(kind, str) and kind in known:
        return kind
    near = difflib.get_close_matches(str(kind), known, 3, 0.6)
    stated, version = quoted(kind), library().__version__
    why = f"its model_type is {stated}, which transformers {version} does not know"
    if near:
        names = ", ".join(near)
        why = f"transformers {version} does not know {stated}; the nearest it knows are {names}"
    raise HgvizError(f"{where} is of a model that hgviz cannot run: {why}", CAPTURE_ADVICE)


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


def _architecture(data: Mapping[str, Any]) -> Any:
    """The first class that a config.json names, None where it names none."""
    stated = data.get("architectures")
    return stated[0] if isinstance(stated, list) and stated else None


def _type_of(name: Any) -> Any:
    """The model type of a class, None where there is no such class."""
    of = getattr(getattr(library(), str(name), None), "config_class", None)
    return getattr(of, "model_type", None)


def class_of(data: Mapping[str, Any], kind: str, held: Mapping[str, Tensor]) -> str:
    """The name of the class that a config.json names, else of the one that its tensors are of."""
    from transformers.models.auto import modeling_auto

    first = _architecture(data)
    if isinstance(first, str) and first in classes_of() and hasattr(library(), first):
        return first
    if _type_of(first) == kind:  # a part that no task names, as a tower of SigLIP
        return str(first)
    bare = modeling_auto.MODEL_MAPPING_NAMES.get(kind)
    if isinstance(bare, str):
        return bare if first is not None else _class_by(data, kind, bare, held)
    raise HgvizError(
        f"hgviz does not know which model {kind} is: its config.json names {quoted(first)}",
        "Save it again by transformers, as one of its own classes",
    )


def _tower(made: type, reads: Modality) -> tuple[str, Any] | None:
    """The key in config.json and the class of the model that reads texts, images or sounds, of a
    class with one for texts and another, as CLIP's; None for any other class."""
    start, names = made.__name__.removesuffix("Model"), dir(library())
    if not hasattr(made, "get_text_features") or start == made.__name__:
        return None  # a language model that sees has no features of texts
    parts = {
        "image": ("vision_config", f"{start}VisionModel"),
        "audio": ("audio_config", f"{start}AudioModel"),
        "text": ("text_config", f"{start}TextModel"),
    }
    there = {name: part for name, part in parts.items() if part[1] in names}
    if len(there) < 2 or "text" not in there:
        return None
    key, name = there.get(reads, there["text"])
    return key, getattr(library(), name)


def _class_by(data: Mapping[str, Any], kind: str, bare: str, held: Mapping[str, Tensor]) -> str:
    """The class of a type that has most of these tensors, and lacks fewest."""
    library()
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    def fit(name: str) -> int:
        made = getattr(library(), name)
        wanted = {*_outline(made, stated).state_dict()}
        if getattr(stated, "tie_word_embeddings", False):
            wanted -= {*(getattr(made, "_tied_weights_keys", None) or ())}
        found = sum(bool(same(made, one, held)) for one in wanted)
        return 2 * found - len(wanted)

    with quiet():
        stated = CONFIG_MAPPING[kind].from_dict(_numbered(data))
    ends = [end for end, _ in GOALS]
    named = [name for end in ends for name in sorted(classes_of(kind)) if name.endswith(end)]
    return max((bare, *named), key=fit)


def read(path: Path, reads: Modality = "text") -> Checkpoint:
    """A folder that save_pretrained wrote: its tensors as in its files, and its layers as they
    attend.

    reads: which of the two models of a folder such as CLIP's is opened. Its files are read by
    hgviz's own bounded readers. Errors: HgvizError for whatever is missing, damaged, not known or
    does not fit together.
    """
    where, weights = config_file(path), weights_of(path)
    said_by = short_path(where)
    data = read_object(where)
    kind = require_known(data, said_by)
    whole = {key: value for key, value in data.items() if key != ENTRY}
    _require_own_positions(whole, kind, said_by)
    held = read_weights(weights, lambda name: name.endswith(BUFFERS))
    require_finite(weights, held)
    size = 4 * sum(one.numel() for one in held.values() if one.dtype != torch.float32)
    require_room(f"the model of {said_by} in float32", size, "Open it on a machine with more")
    stated = _stated(whole, kind, where, weights, held)
    names = dict(zip(strip_prefixes(held), held, strict=True))
    held = {name: held[file] for name, file in names.items()}
    made = getattr(library(), class_of(whole, kind, held))
    if (tower := _tower(made, reads)) is not None:
        part, made = tower
        kind = made.config_class.model_type
        whole = {**whole.get(part, {}), "architectures": [made.__name__], "model_type": kind}
        data, stated = whole, _stated(whole, kind, where, weights, held)
    own = getattr(made.config_class, "model_type", kind)
    if own != kind and made.__name__ not in classes_of(kind):
        raise HgvizError(
            f"{said_by} says two things: "
            f"its model_type is {quoted(kind)}, and {made.__name__} is of the type {own}",
            "Put the config.json beside the weights that came with them",
        )
    _require_once(made, weights, held)
    try:
        outline = _outline(made, stated)
    except Exception as error:

        def build(some: Any) -> Any:
            return _outline(made, made.config_class.from_dict(_numbered(some)))

        raise _unbuilt(where, error, whole, build) from None
    stem = next((f"{one}." for one in TOWERS if kind.endswith(one)), "")
    if stem and any(name.startswith(stem) for name in held):
        cut = "" if any(name.startswith(stem) for name in outline.state_dict()) else stem
        names = {name.removeprefix(cut): names[name] for name in held if name.startswith(stem)}
        held = {name.removeprefix(cut): one for name, one in held.items() if name.startswith(stem)}
    tables = sum(one.nbytes for one in outline.buffers())
    require_room(f"the model of {said_by}", tables, "Open it on a machine with more")
    entry = parse_keys(data.get(ENTRY, {}), Entry, said_by)
    kept = entry.layers or _pruned(outline, whole, said_by)
    alone = _fitting(outline, where, weights, held, kept)
    turned = _turned(outline)
    held = {name: one.T if unprefixed(made, name) in turned else one for name, one in held.items()}
    try:
        asks = _asks(made)
        if kept and not asks:
            raise HgvizError(
                f"{said_by} says two things: "
                f"it lists heads that are left, and no {kind} is written without some",
                "Put the config.json beside the weights that came with them",
            )
        try:
            net, missing, unused = _loaded(made, stated, held, torch.float32, asks, kept, turned)
        except KeyError:  # a part looks attention up in a table of its own
            asks = False
            net, missing, unused = _loaded(made, stated, held, torch.float32, asks, kept, turned)
        if missing and len(unused) == len(held):
            raise HgvizError(
                f"{short_path(weights)} holds the weights of another model: "
                f"none of its tensors is one of {made.__name__}",
                "Put the config.json beside them that came with these weights",
            )
        if within := _within(net, [name for name in unused if not _made(name, held)]):
            raise _unfit(where, weights, f"{made.__name__} has no use for {_listed(within)}")
        told = _config(net, kind, made.__name__, data)
        told = told.replace(
            uses_interface=asks, remaining=kept, hgviz_only=alone, transposed=turned
        )
        network = Transformers(net, told)
        if missing and (needed := _needed(network, missing)):
            raise _unfit(where, weights, f"the file lacks {_listed(needed)}")
        config = network.config = _layers(network, held)
        if not alone:
            _require_same(network)
        config = network.config = config.replace(**entry.exchanged())
    except HgvizError:
        raise
    except Exception as error:  # transformers raises whatever its parts do
        raise _not_run(where, error, whole) from None
    require_activations(config, said_by)
    sources = {name: Source(names[name], 0, 1, unprefixed(made, name) in turned) for name in held}
    parts = Counter(
        unprefixed(made, name).split(".")[0] for name in unused if not _made(name, held)
    )
    rest = tuple(f"{printable(part)} ({counted(count, 'tensor')})" for part, count in parts.items())
    return Checkpoint(
        config, held, digest_of(config, held), weights, sources, unused=rest, network=network
    )


def build(
    config: TransformersConfig,
    tensors: Mapping[str, Tensor],
    device: str,
    dtype: torch.dtype,
    network: Network | None = None,
) -> Transformers:
    """The model of a configuration with these tensors, by the names of its files.

    network: one that has them already, in float32.

    Errors: HgvizError for another activation where its softmaxes are its own.
    """
    if not config.uses_interface and config.exchanged:
        raise unexchanged("its model has attention code of its own")
    if network is None or dtype != torch.float32:
        made = getattr(library(), config.class_name)
        with quiet():
            stated = made.config_class.from_dict(_numbered(config.stated))
        net, *_ = _loaded(
            made, stated, tensors, dtype, config.uses_interface, config.remaining, config.transposed
        )  # fmt: skip
        network = Transformers(net, config)
    network.config = config
    with room(device, f"the model has {sum(map(Tensor.numel, tensors.values())):,} parameters"):
        return cast(Transformers, network).to(device)


def retargeted(
    found: Checkpoint, goal: str, labels: Sequence[str], pad: int | None
) -> tuple[Checkpoint, tuple[str, ...]]:
    """A checkpoint as the class of its type for a goal, with these labels of its classes, and the
    names of the parameters that it lacks: they are new ones, drawn as transformers draws them.

    pad: the token that pads texts, of a classifier that names none. Errors: HgvizError where
    transformers has no such class.
    """
    config, held = cast(TransformersConfig, found.config), dict(found.tensors)
    made = _class_for(config, goal)
    data = {**config.stated, "architectures": [made.__name__]}
    others = goal == "classes" and tuple(labels) != config.labels
    if others:
        names = {str(at): one for at, one in enumerate(labels)}
        data |= {"id2label": names, "label2id": {one: int(at) for at, one in names.items()}}
        data.pop("num_labels", None)
    try:
        with quiet():
            stated = made.config_class.from_dict(_numbered(data))
        unpadded = getattr(stated, "pad_token_id", None) is None and goal == "classes"
        if unpadded and pad is not None:
            data["pad_token_id"] = stated.pad_token_id = pad
        if data == {**config.stated, "architectures": [config.class_name]}:
            return found, ()
        if others:  # what classes have is what would be larger with one more
            bare = {key: one for key, one in data.items() if key not in ("id2label", "label2id")}
            sizes = [
                _shapes(
                    _outline(
                        made, made.config_class.from_dict(_numbered({**bare, "num_labels": count}))
                    )
                )
                for count in (len(labels), len(labels) + 1)
            ]
            known = {name for name, one in sizes[0].items() if sizes[1][name] == one}
            held = {name: one for name, one in held.items()
                    if (own := same(made, name, sizes[0])) in known or not own}  # fmt: skip
        kept = config.remaining
        if kept:
            modules = dict(_outline(made, stated).named_modules())
            kept = tuple(structs.replace(one, name=same(made, one.name, modules)) for one in kept)
        net, fresh, _ = _loaded(
            made, stated, held, torch.float32, config.uses_interface, kept, config.transposed
        )  # fmt: skip
        values = net.state_dict()
        held |= {name: values[name] for name in fresh}
        told = _config(net, config.family, made.__name__, data)
        told = told.replace(
            uses_interface=config.uses_interface,
            remaining=kept,
            hgviz_only=config.hgviz_only,
            transposed=config.transposed,
        )
        network = Transformers(net, told)
        new = network.config = _layers(network, held)
        if not config.hgviz_only:
            _require_same(network)
    except HgvizError:
        raise
    except Exception as error:  # transformers raises whatever its parts do
        raise _not_for(config, goal, f"transformers says: {first_line(error)}") from None
    if new.goal != goal:
        raise _not_for(config, goal, "each of its tokens sees those after it")
    new = new.replace(**config.entry.exchanged())
    return replace(found, config=new, tensors=held, network=None), tuple(fresh)


def _class_for(config: TransformersConfig, goal: str) -> Any:
    """The class for a goal, of the same type."""
    made = getattr(library(), config.class_name)
    if goal == config.goal:
        return made
    from transformers.models.auto import modeling_auto

    table = getattr(modeling_auto, TASKS[goal]) if goal in TASKS else {}
    for kind in (config.family, made.config_class.model_type):
        name = table.get(kind)
        if isinstance(name, str) and hasattr(library(), name):
            return getattr(library(), name)
    raise _not_for(config, goal, "transformers has no such class of this type")


def _not_for(config: TransformersConfig, goal: str, why: str) -> HgvizError:
    return HgvizError(
        f"a {config.family} cannot be trained for the goal {printable(goal)}: {why}",
        "Choose another goal, or a model of another type",
    )


def renamed(found: Checkpoint) -> Checkpoint:
    """The same checkpoint as transformers writes such a model today: tensors by the names of its
    class, those that are tied once, each in the precision that it has in its file.

    Errors: HgvizError for a model without some heads that no class of transformers has.
    """
    library()
    from transformers.core_model_loading import revert_weight_conversion
    from transformers.modeling_utils import remove_tied_weights_from_state_dict

    config, held = cast(TransformersConfig, found.config), found.tensors
    if config.hgviz_only:
        raise HgvizError(
            f"{short_path(found.folder)} opens in hgviz alone, since some of its heads are gone: "
            f"{config.hgviz_only}",
            "Open it as it is, or convert the whole model",
        )
    widest = reduce(torch.promote_types, {one.dtype for one in held.values()})
    made = getattr(library(), config.class_name)
    with quiet(), room("cpu", f"its tensors take {sum(t.nbytes for t in held.values()):,} bytes"):
        net, told = made.from_pretrained(
            None, config=made.config_class.from_dict(_numbered(config.stated)), dtype=widest,
            state_dict=filed(config, held), attn_implementation="eager", output_loading_info=True,
        )  # fmt: skip
        net._weight_conversions = None  # else its files' old names would come back
        whole = remove_tied_weights_from_state_dict(net.state_dict(), net)
        made_up = {*told["missing_keys"], *(net._keys_to_ignore_on_save or ())}  # such as sinusoids
        wide = revert_weight_conversion(
            net,
            {
                name: one
                for name, one in whole.items()
                if name not in made_up or same(net, name, held)
            },
        )
    files = {name: held.get(same(net, name, held)) for name in wide}
    tensors = {
        name: one if (file := files[name]) is None else one.to(file.dtype)
        for name, one in wide.items()
    }
    tensors = filed(config, tensors)  # as they are computed with
    return replace(found, tensors=tensors, digest=digest_of(config, tensors), network=None)


def _asks(made: Any) -> bool:
    """Whether a class asks transformers for attention, by what it says of itself, or hgviz has
    attention of its own for it."""
    if made.config_class.model_type == longformer.FAMILY:
        return True
    if made.config_class.model_type == "bigbird_pegasus":  # of which only the decoder asks
        return bool(made.__name__.endswith("ForCausalLM"))
    told = getattr(made, "_can_set_attn_implementation", None)
    return bool(told()) if told is not None else True


def _loaded(
    made: Any,
    stated: Any,
    tensors: Mapping[str, Tensor],
    dtype: torch.dtype,
    asks: bool,
    kept: Sequence[RemainingHeads] = (),
    turned: Collection[str] = (),
) -> tuple[Any, list[str], list[str]]:
    """A model with these tensors, and the names of those it lacks and of those it has no use for.

    kept: what is left of its layers where tensors are smaller than its class has them; turned: as
    TransformersConfig has it.
    """
    state = {
        name: one.T if unprefixed(made, name) in turned else one for name, one in tensors.items()
    }
    with (
        quiet(),
        room("cpu", f"its tensors take {sum(t.nbytes for t in tensors.values()):,} bytes"),
    ):
        net, told = made.from_pretrained(
            None, config=stated, state_dict=state, dtype=dtype,
            attn_implementation=NAME if asks else "eager", output_loading_info=True,
            ignore_mismatched_sizes=bool(kept),
        )  # fmt: skip
        if dtype == torch.float64:  # grouped products of experts know no float64
            net.set_experts_implementation("eager")
        _straighten(net)
        for part in [*net.modules()]:  # as BigBird does by itself, of all that it reads by these
            if getattr(part, "attention_type", "") == SPARSE and not getattr(part, "is_decoder", 0):
                part.set_attention_type("original_full")
        if smaller := [name for name, *_ in told["mismatched_keys"]]:
            for name in smaller:
                whole = net.get_parameter(name).shape
                tensor = tensors[same(net, name, tensors)].to(dtype)
                if not tensor.numel():  # of a layer without heads: zeros of one
                    sizes = zip(tensor.shape, whole, strict=True)
                    tensor = tensor.new_zeros([n or w // kept[0].of for n, w in sizes])
                _put(net, name, tensor)
            for one in kept:
                _count(net.get_submodule(one.name), one)
    missing = [one for one in told["missing_keys"] if not one.endswith(BUFFERS)]
    unused = sorted({*told["unexpected_keys"]})
    return net.eval().requires_grad_(False), sorted(missing), unused


def _straighten(net: nn.Module) -> None:
    """Put linear layers in the place of those that keep their weights transposed, as GPT-2 does, so
    that all products behind heads are alike."""
    from transformers.pytorch_utils import Conv1D

    for part in [*net.modules()]:
        for name, child in [*part.named_children()]:
            if isinstance(child, Conv1D):
                made = nn.Linear(child.nx, child.nf, device="meta")
                made.weight, made.bias = nn.Parameter(child.weight.T), child.bias
                setattr(part, name, made)


def _turned(net: nn.Module) -> frozenset[str]:
    """The weights that a class keeps transposed, without the bare model's name before them."""
    from transformers.pytorch_utils import Conv1D

    names = (name for name, part in net.named_modules() if isinstance(part, Conv1D))
    return frozenset(unprefixed(net, f"{name}.weight") for name in names)


def filed(config: TransformersConfig, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as files keep them: transposed again where the class has them so."""
    made = getattr(library(), config.class_name)
    return {
        name: one.T.contiguous() if unprefixed(made, name) in config.transposed else one
        for name, one in tensors.items()
    }


def unprefixed(net: Any, name: str) -> str:
    """What a tensor is called in the bare model."""
    return name.removeprefix(f"{getattr(net, 'base_model_prefix', '')}.")


def _require_once(made: Any, weights: Path, names: Mapping[str, Any]) -> None:
    """Errors: HgvizError for a tensor with and without the bare model's name before its own."""
    for name in names:
        if (bare := unprefixed(made, name)) != name and bare in names:
            raise HgvizError(
                f"{short_path(weights)} holds one tensor twice: "
                f"{printable(bare)} and {printable(name)} are the same to this model",
                "Leave out the one that is not meant",
            )


def _made(name: str, held: Mapping[str, Tensor]) -> bool:
    """Whether a tensor holds what modelling code makes itself, as older files keep it: frequencies
    of rotary positions, and masks (1, 1, n, n)."""
    found = held.get(name)
    mask = found is not None and found.dim() == 4 and found.shape[:2] == (1, 1)
    return mask or name.endswith(("inv_freq", "causal_mask"))


def _within(net: nn.Module, unused: Sequence[str]) -> list[str]:
    """Of tensors that a model has no use for, those of its stacks of layers: without them it
    computes something else than what was saved, as BERT with relative positions or with a layer
    less. Heads of other tasks are often saved along."""
    stacks = (name for name, part in net.named_modules() if isinstance(part, nn.ModuleList))
    places = tuple(f"{unprefixed(net, name)}." for name in stacks)
    return [name for name in unused if unprefixed(net, name).startswith(places)]


def _needed(network: Transformers, missing: Sequence[str]) -> list[str]:
    """Of parameters that a file lacks, those that the outputs depend on: a pooler that nothing
    reads, as of many sentence encoders, is none."""
    named = dict(network.net.named_parameters())
    some = {name: named[name].requires_grad_(True) for name in missing if name in named}
    with torch.enable_grad():
        out = network._logits(network.example(SOURCE, TARGET), Running())
        slopes: Sequence[Tensor | None] = [None] * len(some)
        if out.requires_grad:
            slopes = torch.autograd.grad(out.sum(), [*some.values()], allow_unused=True)
    network.net.requires_grad_(False)
    used = {name for name, slope in zip(some, slopes, strict=True) if slope is not None}
    return [name for name in missing if name in used or name not in named]


def _require_own_positions(data: Mapping[str, Any], kind: str, where: str) -> None:
    """Errors: HgvizError for RoBERTa and its kin under the name bert: their tensors have BERT's
    names, but positions count from behind the padding token, so that every output would be wrong.
    """
    marks = {"max_position_embeddings": 514, "pad_token_id": 1, "type_vocab_size": 1}
    found = [f"{key} {value}" for key, value in marks.items() if data.get(key) == value]
    if kind == "bert" and len(found) > 1:
        raise HgvizError(
            f"{where} says bert, and describes RoBERTa: "
            f"{' and '.join(found)} are RoBERTa's, whose positions begin behind the padding token",
            "Use the config.json that came with these weights",
        )


def _pruned(net: nn.Module, data: dict[str, Any], where: str) -> tuple[RemainingHeads, ...]:
    """What pruned_heads leaves of each layer, as transformers before 5 wrote it: it counts layers
    of self-attention; cross-attention between them keeps every head. () where none is pruned.

    Errors: HgvizError for heads that there are not.
    """
    if not data.get("pruned_heads"):
        return ()
    pruned = parse_keys(data, Pruned, where).pruned_heads
    found, own = list[RemainingHeads](), 0
    for name, part in net.named_modules():
        counts = (getattr(part, one, None) for one in HEADS)
        count = next((one for one in counts if type(one) is int), 0)
        if not count:
            continue
        gone = set[int]()
        if "cross" not in name:
            gone, own = {*pruned.pop(str(own), ())}, own + 1
        if not gone <= {*range(count)}:
            pruned[str(own - 1)] = sorted(gone)
            break
        left = tuple(head for head in range(count) if head not in gone)
        found.append(RemainingHeads(name, left, count, count))
    if pruned:
        layer, heads = next(iter(pruned.items()))
        raise HgvizError(
            f"the pruned_heads in {where} cannot be used: "
            f"the model has no such heads as {printable(layer)}: {quoted(heads)}",
            "Use the config.json that came with these weights",
        )
    return tuple(found)


def _put(net: nn.Module, name: str, tensor: Tensor) -> None:
    """Another parameter in place of one of another size."""
    parent, _, own = name.rpartition(".")
    module = net.get_submodule(parent)
    setattr(module, own, nn.Parameter(tensor, requires_grad=False))
    if isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape


def _count(module: Any, kept: RemainingHeads) -> None:
    """Tell a module how many heads it has, where it computes with that."""
    if hasattr(module, "config"):
        module.config = copy.copy(module.config)
    if hasattr(module, "split_size"):  # of GPT-2: where its fused product parts
        module.split_size = kept.sizes[0] * module.head_dim
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
        if value > (len(held) if key in DEPTHS else max(MOST_PARTS, len(held))):
            raise _unfit(where, weights, f"it holds {len(held):,} tensors, and {key} is {value:,}")
    if type(labels := data.get("num_labels")) is int and labels > MOST_LABELS:
        raise _unfit(
            where, weights, f"num_labels is {labels:,}, and up to {MOST_LABELS:,} are read"
        )
    known: Collection[str] = ()
    with quiet(), suppress(Exception):  # some types have no configuration without arguments
        known = {*_keys(CONFIG_MAPPING[kind]().to_dict())}
    _require_sizes(data, known, where)
    try:
        with quiet():
            return CONFIG_MAPPING[kind].from_dict(_numbered(data))
    except Exception as error:
        raise _unbuilt(
            where, error, data, lambda some: CONFIG_MAPPING[kind].from_dict(_numbered(some))
        ) from None


def _keys(data: Any) -> Iterator[str]:
    """The keys of a config.json and of its parts."""
    for key, value in data.items() if isinstance(data, Mapping) else ():
        yield str(key)
        yield from _keys(value)


def _require_sizes(data: Mapping[str, Any], known: Collection[str], where: Path) -> None:
    """Check sizes that no tensor shows, such as max_position_embeddings, before tables, masks or
    loops of that size are made. Raises HgvizError naming the first that no model has.

    known: the keys that the type of model reads, and some that it may read by other names.
    """
    for key, value in data.items():
        if isinstance(value, dict):
            _require_sizes(value, known, where)
        sizes = [one for one in (value if isinstance(value, list) else [value]) if type(one) is int]
        if max(sizes, default=0) <= MOST_SIZE or re.search(SHOWN, key):
            continue
        if key in known or re.search("position|n_ctx", key):
            raise HgvizError(
                f"{short_path(where)} describes a model that is too large: "
                f"{printable(key)} is {max(sizes):,}, and up to {MOST_SIZE:,} are read",
                f"Correct {printable(key)} in {short_path(where)}",
            )


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
        if isinstance(value, dict) and key != "label2id":
            yield from _counts(value)
        elif type(value) is int and re.search(COUNTS, key):
            yield key, value


def _fitting(
    outline: nn.Module,
    where: Path,
    weights: Path,
    held: Mapping[str, Tensor],
    kept: Sequence[RemainingHeads],
) -> str:
    """Why the class does not fit a model without some heads, "" where it does.

    Errors: HgvizError for tensors of another size than the model's, of which none is made.
    """
    wanted, narrow = _shapes(outline), False
    for name, tensor in held.items():
        shape = wanted.get(same(outline, name, wanted))
        if shape is not None and shape != tuple(tensor.shape):
            if kept and _narrower(tensor.shape, shape):
                narrow = True
                continue
            sizes = " x ".join(map(str, shape)), " x ".join(map(str, tensor.shape))
            why = f"{printable(name)} is {sizes[1]} in it, and {sizes[0]} by config.json"
            raise _unfit(where, weights, why)
    return why_alone(kept, held) if narrow else ""


def _outline(made: Any, stated: Any) -> nn.Module:
    """A model of a class, its tensors without room for a number."""
    with quiet(), torch.device("meta"):
        return cast(nn.Module, made(stated))


def _shapes(outline: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(one.shape) for name, one in outline.state_dict().items()}


def _narrower(found: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether one shape is another that has fewer along one axis."""
    if len(found) != len(whole):
        return False
    return [a < b for a, b in zip(found, whole, strict=True) if a != b] == [True]


def why_alone(kept: Sequence[RemainingHeads], names: Collection[str]) -> str:
    """Why no class of transformers has what is left of these layers; names: of all tensors."""
    if len({one.sizes for one in kept}) > 1:
        return "layers keep different numbers of heads"
    if not all(one.is_even for one in kept):
        return "groups of keys keep different numbers of heads"
    if any(name.endswith("relative_attention_bias.weight") for name in names):
        return "its table of relative positions keeps all heads, which several layers read"
    return "its class has no such number of heads of this width"


def restated(config: TransformersConfig, tensors: Mapping[str, Tensor]) -> dict[str, Any] | None:
    """The config.json by which its class itself has these tensors, of layers that keep equally many
    heads; None where there is none."""
    if len(sizes := {one.sizes for one in config.remaining}) > 1 or not all(
        one.is_even for one in config.remaining
    ):
        return None
    (heads, groups), data = next(iter(sizes)), config.stated
    made = getattr(library(), config.class_name)
    try:
        with quiet():
            before = made.config_class.from_dict(data)
        width = getattr(before, "head_dim", None) or config.d_head
        each = 2 if differential.parts(_outline(made, before)) else 1  # softmaxes of a head
        wanted = {
            "num_attention_heads": each * heads, "num_key_value_heads": each * groups,
            "head_dim": width,
        }  # fmt: skip
        for name, value in wanted.items():
            own = made.config_class.attribute_map.get(name, name)
            if own == name == "head_dim" or hasattr(before, own):
                data[own] = value
        with quiet():
            shapes = _shapes(_outline(made, made.config_class.from_dict(data)))
    except Exception:  # transformers raises whatever its parts do
        return None
    named = ((shapes.get(same(made, name, shapes)), one) for name, one in tensors.items())
    return data if all(shape in (None, tuple(one.shape)) for shape, one in named) else None


def _unfit(where: Path, weights: Path, why: str) -> HgvizError:
    do = "Put the config.json beside them that came with these weights"
    return HgvizError(f"{short_path(weights)} does not fit its config.json: {why}", do)


def _reason(error: Exception) -> str:
    """What transformers says, in a line: the last one, since what it is about stands above it."""
    if isinstance(error, ImportError):  # which ends with how a notebook is started again
        return f"transformers says: {first_line(ValueError(str(error).strip()))}"
    last = str(error).strip().rpartition("\n")[2].lstrip(" )")
    return f"transformers says: {first_line(ValueError(last) if last else error)}"


def _unbuilt(
    where: Path, error: Exception, data: Mapping[str, Any], build: Callable[[Any], Any]
) -> HgvizError:
    """What is said where transformers makes no model of a config.json, with the field it is about.

    build: makes the model of the content of a config.json, or raises.
    """
    if isinstance(error, ImportError):
        return _not_run(where, error, data)
    field, value = _field_in_message(data, error), None
    if not field:
        field, value = _field_at_fault(data, error, build)
    named = f"{field} is {quoted(value)}; " if field and field not in str(error) else ""
    return HgvizError(
        f"{short_path(where)} does not describe a model that can be built: "
        f"{named + _reason(error)}",
        f"Correct {field or 'what it names'} in {short_path(where)}",
    )


def _field_at_fault(
    data: Mapping[str, Any], error: Exception, build: Callable[[Any], Any]
) -> tuple[str, Any]:
    """The first field without which a model could be built, else the one whose number the error
    says, and its value; ("", None) for none."""
    for key, value in data.items():
        for inner in [*value] if isinstance(value, dict) else []:
            rest = {name: one for name, one in value.items() if name != inner}
            with quiet(), suppress(Exception):
                build({**data, key: rest})
                return printable(f"{key}.{inner}"), value[inner]
        with quiet(), suppress(Exception):
            build({name: one for name, one in data.items() if name != key})
            return printable(key), value
    # where two fields do not fit each other, and neither fits the usual value of the other
    numbers = {*re.findall(r"\d+", str(error))}
    alike = {key: one for key, one in data.items() if type(one) is int and str(one) in numbers}
    counts = Counter(alike.values())
    return min(alike.items(), key=lambda one: counts[one[1]], default=("", None))


def _field_in_message(data: Mapping[str, Any], error: Exception) -> str:
    """The longest field of a config.json that an error names; "" for none."""
    fields = sorted((one for one in {*_keys(data)} if len(one) > 2), key=len, reverse=True)
    return next((one for one in fields if re.search(rf"\b{re.escape(one)}\b", str(error))), "")


def _not_run(where: Path, error: Exception, data: Mapping[str, Any]) -> HgvizError:
    """What is said where a model is built, and transformers fails to run it."""
    field = _field_in_message(data, error)
    do = f"Correct {field} in {short_path(where)}" if field else (
        "Run it by transformers alone to see whether the model or hgviz is at fault")  # fmt: skip
    if isinstance(error, ImportError):
        do = "Install the package that it names"
    return HgvizError(
        f"transformers cannot run the model of {short_path(where)}: {_reason(error)}", do
    )


def _listed(names: Sequence[str]) -> str:
    return printable(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _config(net: Any, kind: str, name: str, data: Mapping[str, Any]) -> TransformersConfig:
    told, text = net.config, _text_config(net)
    goal: Goal = next((goal for end, goal in GOALS if name.endswith(end)), "states")
    named = told.id2label or {}
    labels = tuple(printable(str(named.get(at, f"LABEL_{at}"))) for at in range(len(named)))
    takes = signature(net.forward).parameters
    both = bool(getattr(told, "is_encoder_decoder", False)) and "decoder_input_ids" in takes
    cross = bool(getattr(told, "add_cross_attention", False)) and "encoder_hidden_states" in takes
    modality = MODALITIES.get(net.main_input_name, "text")
    table = table_of(net) if both or modality == "text" else None
    stated = (getattr(text, one, None) for one in ("hidden_size", "d_model"))
    width = next((one for one in stated if isinstance(one, int)), 0)
    if not width and table is not None:
        width = table.weight.shape[1]
    types, pooling = int(getattr(told, "type_vocab_size", 0) or 0), _pooling(net)
    form = "encoder-decoder" if both else "decoder" if cross else ""
    if pooling is not None:
        form, types = "base" if pooling.after is None else "funnel", FUNNEL_TYPES
    form = "patches" if (patches := _patches(net)) is not None else form
    return TransformersConfig(
        family=kind, class_name=name, data=data, d_model=width,
        vocab_size=0 if table is None else int(table.weight.shape[0]),
        max_positions=None, goal=goal,
        labels=labels if goal in NAMED else (), form=form, pooling=pooling, patches=patches,
        segments=types if types > 1 and "token_type_ids" in takes else 0, modality=modality,
        cross=cross and not both,
    )  # fmt: skip


def _pooling(net: Any) -> Pooling | None:
    """How a Funnel-Transformer pools its text; None of any other model."""
    told = net.config
    if told.model_type != "funnel":
        return None
    every = zip(told.block_sizes, told.block_repeats, strict=True)
    decodes = any(name.split(".")[-1] == "decoder" for name, _ in net.named_modules())
    return Pooling(
        tuple(size * times for size, times in every),
        told.num_decoder_layers if decodes else None,
        queries=told.pool_q_only, separate_cls=told.separate_cls, truncated=told.truncate_seq,
    )  # fmt: skip


def _patches(net: Any) -> Patches | None:
    """How a Byte Latent Transformer reads patches; None of any other model."""
    told = net.config
    if told.model_type != "blt":
        return None
    parts = (told.patcher_config, told.encoder_config, told.global_config, told.decoder_config)
    patcher, encoder, between, decoder = (one.num_hidden_layers for one in parts)
    return Patches(
        patcher if told.patch_in_forward and told.patching_mode == "entropy" else None,
        encoder, between, decoder, down=bool(told.encoder_config.cross_attn_all_layers),
        up=bool(told.decoder_config.cross_attn_all_layers), parts=told.cross_attn_k,
    )  # fmt: skip


def _text_config(net: Any) -> Any:
    told = net.config
    return told.get_text_config(decoder=True) if hasattr(told, "get_text_config") else told


def _positions(used: Mapping[nn.Module, str], config: Any) -> int | None:
    """How many positions the tables of them have, of all modules that were used with their names;
    None where they are turned or biased."""
    stated = getattr(config, "max_position_embeddings", None)
    if getattr(config, "attention_type", "") == SPARSE:  # longer texts are read by blocks
        full = (5 + 2 * config.num_random_blocks) * config.block_size
        stated = min(full, stated or full)
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
    names = {module: name for name, module in network.net.named_modules()}
    path, stack, used = dict[int, str](), list[str](), dict[nn.Module, str]()
    stacked, silent = dict.fromkeys(blocks(network.net), 0), list[tuple[str, str]]()
    given = network.example(PROVED if config.pooling else SOURCE, TARGET)

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

    running.on_layer = lambda index: path.__setitem__(index, stack[-1] if stack else "")
    hooks = [one.register_forward_pre_hook(before) for one in names]
    hooks += [one.register_forward_hook(after, always_call=True) for one in names]
    try:
        with torch.inference_mode():
            logits = network._logits(given, running)
    finally:
        for hook in hooks:
            hook.remove()
    if {*network.net.modules()} != {*names}:  # as BigBird does
        raise unseen(config.family, OTHERWISE)
    met, kept, patches = running.met or [], config.remaining, config.patches
    outputs = _proved(network, given, met, outputs)
    others = (
        one.queries for one in met if one.queries != TARGET or config.form != "encoder-decoder"
    )
    source = next(others, SOURCE) if config.modality != "text" else SOURCE
    found, places = list[Layer](), list[int]()
    for call, (one, place) in enumerate(zip(met, _places(config, met, source), strict=True)):
        if place is None:
            silent.append((path[call], "attention to something else than the tokens of a text"))
            continue
        if one.batch > 1:
            raise unseen(config.family, f"{path[call]} attends within parts of what it reads")
        left = [*kept][len(found) : len(found) + 1]
        heads = left[0].heads if left else tuple(range(one.heads))
        shared = left[0].shared if left else one.heads // max(1, one.groups)
        places.append(call)
        found.append(
            Layer(
                len(found), path[call] or f"layer.{call}", *place, heads,
                ("softmax",) * len(heads), one.causal or (bool(patches) and place[0] != "self"),
                shared=shared, cuts=patches is not None and call < (patches.patcher or 0),
            )
        )  # fmt: skip
    if not found and running.met:
        raise unseen(config.family, f"{path[0]} weighs other keys than those of its text")
    if not found:
        raise unseen(config.family, "it neither asks transformers for it nor weighs by a softmax")
    form = config.form or ("decoder" if any(one.causal for one in found) else "encoder")
    config = config.replace(goal=_goal(config, form, logits))
    if kept and [one.name for one in kept] != [one.name for one in found]:
        raise HgvizError(
            f"what config.json says under {ENTRY} is of another model: "
            f"it names {_listed([one.name for one in kept])}, and its layers are "
            f"{_listed([one.name for one in found])}",
            "Put the config.json beside the weights that came with them",
        )
    products = tuple(outputs.get(at, "") for at in places)
    files = tuple(_filed(network.net, one, held) for one in products)
    positions = _positions(used, _text_config(network.net)) if config.vocab_size else None
    return config.replace(
        own_layers=tuple(found), form=form, output_modules=products, output_weights=files,
        max_positions=positions, unattending=tuple(dict(silent).items()),
        skipped_calls=frozenset({*range(len(met))} - {*places}),
    )  # fmt: skip


def _goal(config: TransformersConfig, form: str, logits: Tensor) -> Goal:
    """What a model of a form is for that gives such logits: the name of its class says it, but for
    language models that see all tokens, and for pre-training, of which it may be any."""
    stated = config.goal
    if stated == "next" and form == "encoder":  # but not XLNet, which sees the token that it says
        masks = any(name.endswith("ForMaskedLM") for name in classes_of(config.family))
        return "masked" if masks else "states"
    if config.class_name.endswith("ForPreTraining") and logits.shape[-1] == config.vocab_size:
        return "masked" if form == "encoder" else "states"
    return stated


def _places(
    config: TransformersConfig, met: Sequence[Found], source: int
) -> list[tuple[Role, int, int] | None]:
    """By call for attention: its role, its level and that of its keys; None where it attends to
    something else than a text of so many tokens and the decoder's."""
    if config.pooling is not None:
        every = config.pooling.places
        return [("self" if level == keys else "down", level, keys) for level, keys in every]
    if config.patches is not None:
        return [*config.patches.places]
    known: dict[tuple[int, int], tuple[Role, int, int]] = {(source, source): ("self", 0, 0)}
    if config.cross:
        known = {(TARGET, TARGET): ("self", 1, 1), (TARGET, source): ("cross", 1, 0)}
    if config.form == "encoder-decoder":
        known |= {(TARGET, TARGET): ("self", 1, 1), (TARGET, source): ("cross", 1, 0)}
    return [known.get((one.queries, one.keys)) for one in met]


def _proved(
    network: Transformers, given: Tokens, met: Sequence[Found], outputs: Mapping[int, str]
) -> dict[int, str]:
    """Of the products that seemed to come after heads, those that are given zeros where the first
    head of their layer is off."""
    zeros: dict[int, bool] = {}
    kept = network.config.remaining
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
            network._logits(given, Running(run=Run(off)))
    finally:
        for hook in hooks:
            hook.remove()
    return {index: name for index, name in outputs.items() if zeros.get(index)}


def _require_same(network: Transformers) -> None:
    """Errors: HgvizError where a model gives something else by our attention than by its own, so
    that its maps would not be what it does."""
    config = network.config
    if not config.uses_interface:
        return
    length = min(PROVED, config.max_positions or PROVED)
    given = network.example(length, max(1, length // 2))
    net: Any = network.net
    with torch.inference_mode(), quiet():
        ours = network._logits(given, Running())
        net.set_attn_implementation("eager")
        with own_forwards(net):
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
