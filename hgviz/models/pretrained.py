"""Folders that save_pretrained of the package transformers writes: from config.json and tensors to
a model with its attention layers, and back.

Files are read by hgviz's own bounded readers and checked against the class before it is built.
Layers are found by a pass over a few tokens: every call for attention is one. The linear layer that
is given as many numbers as a context has, and zeros where a head is off, is its output projection.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from inspect import signature
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
from msgspec import structs
from torch import Tensor, nn

from hgviz.core import Goal, HeadId, HgvizError, Layer, Modality, Role
from hgviz.errors import require
from hgviz.files import first_line, printable, quoted, read_object, short_path
from hgviz.language import counted
from hgviz.models.config import parse_keys, require_activations
from hgviz.models.devices import require_room, room
from hgviz.models.huggingface import (
    CAPTURE_ADVICE,
    DIFFERENTIAL,
    LENGTH_DEPENDENT,
    MODALITIES,
    NAME,
    SOURCE,
    TARGET,
    ActivePass,
    LayerShape,
    Transformers,
    activation_error,
    library,
    library_errors,
    modules_of,
    own_forwards,
    quiet,
    residual_blocks,
    unseen,
    vocabulary_table,
)
from hgviz.models.layers import Network, Tokens
from hgviz.models.patches import Patches
from hgviz.models.pretrained_config import (
    ENTRY,
    Entry,
    Pooling,
    RemainingHeads,
    TransformersConfig,
    why_hgviz_only,
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

BLOCK_SPARSE = "block_sparse"  # how BigBird attends to long texts, of which hgviz has no maps
TOWERS = ("text_model", "vision_model", "audio_model")  # ends of types, and prefixes of tensors
PROVED, TOLERANCE = 33, 1e-3  # tokens of the proof that outputs are those of eager code
PART_LIMIT = 2**14  # layers, heads or experts that a model may have besides one for each tensor
LABEL_LIMIT = 100_000
OWN_CONFIG = "Use the config.json that came with these weights"
LARGER = "Open it on a machine with more memory"
SIZE_LIMIT = 2**24  # of positions, frames and windows; no known model has more than 10,485,760
DEPTHS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
HEADS = ("num_heads", "n_heads", "num_attention_heads")  # of a module or its configuration
GROUPS = ("num_key_value_heads", "num_kv_heads")
# keys of config.json whose sizes tensors show, or which are no sizes
VISIBLE = r"theta|base|seed|token|_id$|_index$|vocab|(hidden|intermediate)(_\w+)?_(size|dim)"
COUNTS = "^(?!.*vocab).*(layer|depth|block|head|expert)(?!.*(size|dim|width|rank|id|channels)s?$)"
BUFFERS = (  # ends of names of tensors that are no weights
    "position_ids", "token_type_ids", ".masked_bias", ".attn.bias", "rotary_emb.inv_freq",
    "num_batches_tracked", "relative_position_index",
)  # fmt: skip
GOALS: dict[str, Goal] = {  # by what the name of a class ends with
    "ForCausalLM": "next", "LMHeadModel": "next", "ForConditionalGeneration": "next",
    "MTModel": "next", "ForMaskedLM": "masked", "ForPreTraining": "states",
    "ForSequenceClassification": "classes", "ForImageClassification": "classes",
    "ForAudioClassification": "classes", "ForTokenClassification": "tags",
    "ForQuestionAnswering": "ends", "ForQuestionAnsweringSimple": "ends",
}  # fmt: skip
TASKS = {  # goals of a training, and the tables of transformers with a class for each type
    "next": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "classes": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
}  # fmt: skip


class PrunedHeads(msgspec.Struct, frozen=True):
    """The heads that a config.json of transformers before 5 lists as pruned, by layer."""

    pruned_heads: dict[str, list[int]] | None = None


# --- read -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Folder:
    """A folder that is read: its config.json and what transformers reads of it, the model type, and
    the tensors of its weights file, with their names in it by those without wrappers' prefixes."""

    config: Path
    weights: Path
    keys: dict[str, Any]
    kind: str
    tensors: dict[str, Tensor]
    names: dict[str, str]

    def misfit(self, why: str) -> HgvizError:
        """The error for tensors that are not those of config.json."""
        return HgvizError(
            f"{short_path(self.weights)} does not fit its config.json: {why}", OWN_CONFIG
        )


def read(path: Path, modality: Modality = "text") -> Checkpoint:
    """The checkpoint of a folder that save_pretrained wrote.

    modality: which model of a folder such as CLIP's is opened. Raises HgvizError for what is
    missing, damaged, unknown or does not fit together.
    """
    folder, entry = _read_folder(path)
    net_config = _checked_config(folder)
    model_class = getattr(library(), _class_name(folder))
    if (tower := _tower(model_class, modality)) is not None:
        part, model_class = tower
        folder.kind = model_class.config_class.model_type
        folder.keys = {
            **folder.keys.get(part, {}),
            "architectures": [model_class.__name__], "model_type": folder.kind,
        }  # fmt: skip
        entry, net_config = Entry(), _checked_config(folder)
    class_kind = getattr(model_class.config_class, "model_type", folder.kind)
    require(
        class_kind == folder.kind or model_class.__name__ in _classes(folder.kind),
        f"{short_path(folder.config)} is contradictory: its model_type is {quoted(folder.kind)}, "
        f"but {model_class.__name__} is of type {class_kind}",
        OWN_CONFIG,
    )

    with _explain_errors(folder.config, folder.keys, partial(_rebuild, model_class)):
        net = outline(model_class, net_config)
    _keep_tower(folder, net)
    _require_once(folder, model_class)
    size = sum(buffer.nbytes for buffer in net.buffers())
    require_room(f"the model of {short_path(folder.config)}", size, LARGER)
    remaining = entry.layers or _pruned_heads(net, folder)
    config = _describe(net, folder.kind, folder.keys).replace(
        uses_interface=_uses_interface(model_class), remaining=remaining,
        hgviz_only=_require_shapes(folder, net, remaining),
        transposed=frozenset(bare_name(net, f"{name}.weight") for name, part in net.named_modules()
                             if type(part).__name__ == "Conv1D"),
    )  # fmt: skip
    tensors = to_file_layout(config, folder.tensors)
    if remaining and not config.uses_interface:
        raise folder.misfit(f"it lists remaining heads, which {folder.kind} does not support")
    with _explain_errors(folder.config, folder.keys):
        network, unused = _open_network(folder, config, tensors)
        _find_layers(network, tensors)
    config = network.config = network.config.replace(**entry.activation_keys())
    require_activations(config, short_path(folder.config))
    sources = {
        name: Source(folder.names[name], 0, 1, bare_name(net, name) in config.transposed)
        for name in tensors
    }
    parts = Counter(bare_name(net, name).split(".")[0] for name in unused)
    rest = tuple(f"{printable(part)} ({counted(count, 'tensor')})" for part, count in parts.items())
    digest, weights = digest_of(config, tensors), folder.weights
    return Checkpoint(config, tensors, digest, weights, sources, unused=rest, network=network)


def _read_folder(path: Path) -> tuple[_Folder, Entry]:
    where, weights = config_file(path), weights_of(path)
    data = read_object(where)
    kind = _model_type(data, short_path(where))
    # RoBERTa as a bert has tensors of the same names, and positions that begin elsewhere
    marks = {"max_position_embeddings": 514, "pad_token_id": 1, "type_vocab_size": 1}
    signs = [f"{key} {value}" for key, value in marks.items() if data.get(key) == value]
    require(
        kind != "bert" or len(signs) < 2,
        f"{short_path(where)} says bert but describes RoBERTa: {' and '.join(signs)} are "
        "RoBERTa's, whose positions are offset",
        OWN_CONFIG,
    )
    stored = read_weights(weights, lambda name: name.endswith(BUFFERS))
    require_finite(weights, stored)
    size = 4 * sum(tensor.numel() for tensor in stored.values() if tensor.dtype != torch.float32)
    require_room(f"the model of {short_path(where)} in float32", size, LARGER)
    names = dict(zip(strip_prefixes(stored), stored, strict=True))
    keys = {key: value for key, value in data.items() if key != ENTRY}
    tensors = {name: stored[name_in_file] for name, name_in_file in names.items()}
    entry = parse_keys(data.get(ENTRY, {}), Entry, short_path(where))
    return _Folder(where, weights, keys, kind, tensors, names), entry


def _open_network(
    folder: _Folder, config: TransformersConfig, tensors: Mapping[str, Tensor]
) -> tuple[Transformers, list[str]]:
    """A model with these tensors, and the names of those that it does not use.

    Raises HgvizError for tensors that it lacks, and for others of its layers.
    """
    try:
        net, missing, unused = _load(config, tensors, torch.float32)
    except KeyError:  # a part looks attention up in a table of its own
        config = config.replace(uses_interface=False)
        net, missing, unused = _load(config, tensors, torch.float32)
    if missing and len(unused) == len(tensors):
        raise folder.misfit(f"none of its tensors belongs to {config.class_name}")
    # older files keep what modelling code makes: frequencies of rotary positions and masks
    masks = {name for name, tensor in tensors.items() if tensor.dim() == 4 and tensor.numel()
             and tensor.shape[:2] == (1, 1)}  # fmt: skip
    ends = ("inv_freq", "causal_mask")
    unused = [name for name in unused if name not in masks and not name.endswith(ends)]
    # heads of other tasks may be left over; tensors of a stack of layers mean that it computes
    # something else, as BERT with relative positions or with a layer less does
    stacks = (name for name, part in net.named_modules() if isinstance(part, nn.ModuleList))
    places = tuple(f"{bare_name(net, name)}." for name in stacks)
    if inside := [name for name in unused if bare_name(net, name).startswith(places)]:
        raise folder.misfit(f"{config.class_name} does not use {_first_name(inside)}")
    network = Transformers(net, config)
    if missing and (needed := _required_parameters(network, missing)):
        raise folder.misfit(f"missing tensor {_first_name(needed)}")
    return network, unused


def _required_parameters(network: Transformers, missing: Sequence[str]) -> list[str]:
    """Of parameters that a file lacks, those that the outputs depend on: the pooler of many
    sentence encoders is none."""
    parameters = dict(network.net.named_parameters())
    lacking = {name: parameters[name].requires_grad_() for name in missing if name in parameters}
    slopes: Sequence[Tensor | None] = [None] * len(lacking)
    with torch.enable_grad():
        output = network.compute(network.example(SOURCE, TARGET), ActivePass())
        if output.requires_grad:
            slopes = torch.autograd.grad(output.sum(), [*lacking.values()], allow_unused=True)
    network.net.requires_grad_(False)
    used = {name for name, slope in zip(lacking, slopes, strict=True) if slope is not None}
    return [name for name in missing if name in used or name not in parameters]


def _keep_tower(folder: _Folder, net: nn.Module) -> None:
    """Keep the tensors of one tower, by their names in it, where a folder has several."""
    stem = next((f"{name}." for name in TOWERS if folder.kind.endswith(name)), "")
    if not stem or not any(name.startswith(stem) for name in folder.tensors):
        return
    cut = "" if any(name.startswith(stem) for name in net.state_dict()) else stem
    of_tower = [name for name in folder.tensors if name.startswith(stem)]
    folder.names = {name.removeprefix(cut): folder.names[name] for name in of_tower}
    folder.tensors = {name.removeprefix(cut): folder.tensors[name] for name in of_tower}


def _require_once(folder: _Folder, model_class: Any) -> None:
    """Raise HgvizError for a tensor with and without the bare model's name before its own."""
    for name in folder.names:
        bare = bare_name(model_class, name)
        require(
            bare == name or bare not in folder.names,
            f"{short_path(folder.weights)} contains one tensor twice: "
            f"{printable(bare)} and {printable(name)} are the same in this model",
            "Remove one of them",
        )


# --- which class ----------------------------------------------------------------------------------


def _model_type(data: Mapping[str, Any], where: str) -> str:
    """The model type of a config.json. Raises HgvizError for unknown ones and code of its own."""
    require(
        not data.get("auto_map"),
        f"{where} needs custom code: "
        "its auto_map names Python files, and hgviz does not run code from model folders",
        "Use an architecture that transformers itself supports",
    )
    kind, known = data.get("model_type"), [*library().CONFIG_MAPPING.keys()]
    if kind is None:  # BERT's first files say it by their class alone
        kind = _type_of_class(_architecture(data))
    if isinstance(kind, str) and kind in known:
        return kind
    near = difflib.get_close_matches(str(kind), known, 1, 0.6)
    raise HgvizError(
        f"{where} has an unsupported architecture: its model_type is {quoted(kind)}, which "
        f"transformers {library().__version__} does not support",
        f"Did you mean {near[0]!r}?" if near else CAPTURE_ADVICE,
    )


def _classes(kind: str | None = None) -> set[str]:
    """The names of the classes of a model type, or of all types."""
    modeling_auto, names = library().models.auto.modeling_auto, set[str]()
    for table in (name for name in dir(modeling_auto) if name.endswith("_MAPPING_NAMES")):
        for key, value in getattr(modeling_auto, table).items():
            if kind in (None, key):
                names |= {value} if isinstance(value, str) else set(value)
    return names


def _architecture(data: Mapping[str, Any]) -> Any:
    """The first class that a config.json names, None where it names none."""
    classes = data.get("architectures")
    return classes[0] if isinstance(classes, list) and classes else None


def _type_of_class(name: Any) -> Any:
    model_class = getattr(library(), str(name), None)
    return getattr(getattr(model_class, "config_class", None), "model_type", None)


def _class_name(folder: _Folder) -> str:
    """The class that config.json names; where it names none, that of its type which has most of the
    tensors and lacks fewest."""
    name, kind = _architecture(folder.keys), folder.kind
    if isinstance(name, str) and name in _classes() and hasattr(library(), name):
        return name
    if _type_of_class(name) == kind:  # a part that no task names, as a tower of SigLIP
        return str(name)
    bare = library().models.auto.modeling_auto.MODEL_MAPPING_NAMES.get(kind)
    require(
        isinstance(bare, str),
        f"the class of this {kind} model is unknown: its config.json names {quoted(name)}",
        "Save it again with transformers, as one of its classes",
    )
    if name is not None:
        return str(bare)
    net_config = _net_config(kind, folder.keys)

    def fit(name: str) -> int:
        model_class = getattr(library(), name)
        with _explain_errors(folder.config, folder.keys, partial(_rebuild, model_class)):
            needed = {*outline(model_class, net_config).state_dict()}
        if getattr(net_config, "tie_word_embeddings", False):
            needed -= {*(getattr(model_class, "_tied_weights_keys", None) or ())}
        present = sum(bool(name_among(model_class, key, folder.tensors)) for key in needed)
        return 2 * present - len(needed)

    names = [name for end in GOALS for name in sorted(_classes(kind)) if name.endswith(end)]
    return max((str(bare), *names), key=fit)


def _tower(model_class: type, modality: Modality) -> tuple[str, Any] | None:
    """The key in config.json and the class of the model that reads a modality, of a class with one
    for texts and another, as CLIP's; None for any other class."""
    start = model_class.__name__.removesuffix("Model")
    if not hasattr(model_class, "get_text_features") or start == model_class.__name__:
        return None  # a language model that sees has no features of texts
    names = dir(library())  # takes a quarter of a second
    towers = {
        "image": ("vision_config", f"{start}VisionModel"),
        "audio": ("audio_config", f"{start}AudioModel"),
        "text": ("text_config", f"{start}TextModel"),
    }
    present = {name: tower for name, tower in towers.items() if tower[1] in names}
    if len(present) < 2 or "text" not in present:
        return None
    key, name = present.get(modality, present["text"])
    return key, getattr(library(), name)


def _uses_interface(model_class: Any) -> bool:
    """Whether a class asks transformers for attention, or hgviz has attention of its own for it."""
    kind = model_class.config_class.model_type
    if kind == "longformer":
        return True
    if kind == "bigbird_pegasus":  # of which only the decoder asks
        return bool(model_class.__name__.endswith("ForCausalLM"))
    says = getattr(model_class, "_can_set_attn_implementation", None)
    return says is None or bool(says())


# --- what config.json says ------------------------------------------------------------------------


def _net_config(kind: str, keys: Mapping[str, Any]) -> Any:
    """The configuration in transformers of a model type with these keys."""
    with quiet():
        return library().CONFIG_MAPPING[kind].from_dict(_numbers_of_json(keys))


def _numbers_of_json(data: Any) -> Any:
    """A config.json with the numbers that JSON lacks, as transformers writes them."""
    if isinstance(data, Mapping):
        if data.keys() == {"__float__"}:
            return float(data["__float__"])
        return {key: _numbers_of_json(value) for key, value in data.items()}
    return [*map(_numbers_of_json, data)] if isinstance(data, list) else data


def _checked_config(folder: _Folder) -> Any:
    """The configuration in transformers of a folder.

    Raises HgvizError for more layers than tensors, and for sizes that no model has: to make them
    takes time and memory.
    """
    count = len(folder.tensors)
    for key, value in _fields(folder.keys):
        name = key.rpartition(".")[2]
        if type(value) is int and "label2id." not in key and re.search(COUNTS, name):
            limit = count if name in DEPTHS else max(PART_LIMIT, count)
            if value > limit:
                raise folder.misfit(f"it has {count:,} tensors, but {name} is {value:,}")
    labels = folder.keys.get("num_labels")
    if type(labels) is int and labels > LABEL_LIMIT:
        raise folder.misfit(f"num_labels is {labels:,}, and the limit is {LABEL_LIMIT:,}")
    known: set[str] = set()
    with suppress(Exception):  # some types have no configuration without arguments
        fields = _fields(_net_config(folder.kind, {}).to_dict())
        known = {key.rpartition(".")[2] for key, _ in fields}
    require_sizes(folder.keys, known, folder.config)
    build = partial(_net_config, folder.kind)
    with _explain_errors(folder.config, folder.keys, build):
        return build(folder.keys)


def _fields(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a config.json and of its parts, as (part.field, value)."""
    for key, value in data.items():
        yield f"{prefix}{key}", value
        if isinstance(value, Mapping):
            yield from _fields(value, f"{prefix}{key}.")


def require_sizes(data: Mapping[str, Any], known: Collection[str], where: Path) -> None:
    """Raise HgvizError for a size of config.json that no tensor shows and no model has, such as
    max_position_embeddings, before tables, masks or loops of that size are made.

    known: the keys that the model type reads; others count where they name positions.
    """
    for field_path, value in _fields(data):
        key = field_path.rpartition(".")[2]
        values = value if isinstance(value, list) else [value]
        largest = max((size for size in values if type(size) is int), default=0)
        is_size = not re.search(VISIBLE, key) and (
            key in known or re.search("position|n_ctx", key) is not None
        )
        require(
            not is_size or largest <= SIZE_LIMIT,
            f"{short_path(where)} describes a model that is too large: "
            f"{printable(key)} is {largest:,}, and the limit is {SIZE_LIMIT:,}",
            f"Correct {printable(key)} in {short_path(where)}",
        )


def _pruned_heads(net: nn.Module, folder: _Folder) -> tuple[RemainingHeads, ...]:
    """What pruned_heads leaves of each layer, as transformers before 5 wrote it; () for none.

    It counts layers of self-attention; cross-attention between them keeps every head. Raises
    HgvizError for heads that the model does not have.
    """
    pruned = parse_keys(folder.keys, PrunedHeads, short_path(folder.config)).pruned_heads
    if not pruned:
        return ()
    heads_of: dict[str, int] = {}
    for name, module in net.named_modules():
        counts = (getattr(module, key, None) for key in HEADS)
        if count := next((count for count in counts if type(count) is int), 0):
            heads_of[name] = count
    own, gone = [name for name in heads_of if "cross" not in name], dict[str, set[int]]()
    for layer, heads in pruned.items():
        name = own[int(layer)] if layer.isdecimal() and int(layer) < len(own) else ""
        gone[name] = {*heads}
        require(
            gone[name] <= {*range(heads_of.get(name, 0))},
            f"the pruned_heads in {short_path(folder.config)} are invalid: "
            f"the model has no heads {printable(layer)}: {quoted(heads)}",
            OWN_CONFIG,
        )
    return tuple(
        RemainingHeads(name, tuple(sorted({*range(count)} - gone.get(name, set()))), count, count)
        for name, count in heads_of.items()
    )


def _describe(net: Any, kind: str, data: Mapping[str, Any]) -> TransformersConfig:
    """What a class and its configuration in transformers say of a model."""
    net_config, name = net.config, type(net).__name__
    text = _text_config(net)
    goal: Goal = next((goal for end, goal in GOALS.items() if name.endswith(end)), "states")
    named = net_config.id2label or {}
    labels = tuple(printable(str(named.get(at, f"LABEL_{at}"))) for at in range(len(named)))
    takes = signature(net.forward).parameters
    is_pair = (
        bool(getattr(net_config, "is_encoder_decoder", False)) and "decoder_input_ids" in takes
    )
    cross = bool(getattr(net_config, "add_cross_attention", False))
    cross = cross and "encoder_hidden_states" in takes
    modality = MODALITIES.get(net.main_input_name, "text")
    table = vocabulary_table(net) if is_pair or modality == "text" else None
    widths = (getattr(text, key, None) for key in ("hidden_size", "d_model"))
    width = next((width for width in widths if isinstance(width, int)), 0)
    types, pooling, patches = int(getattr(net_config, "type_vocab_size", 0) or 0), None, None
    form = "encoder-decoder" if is_pair else "decoder" if cross else ""
    if kind == "funnel":
        pooling = Pooling.of(net)
        form, types = "base" if pooling.after is None else "funnel", 3  # [CLS] has one of its own
    if kind == "blt":
        patches, form = Patches.of(net_config), "patches"
    return TransformersConfig(
        family=kind, class_name=name, data=data,
        d_model=width or (0 if table is None else table.weight.shape[1]),
        vocab_size=0 if table is None else int(table.weight.shape[0]), goal=goal,
        labels=labels if goal in ("classes", "tags") else (), form=form, pooling=pooling,
        patches=patches, segments=types if types > 1 and "token_type_ids" in takes else 0,
        modality=modality, cross=cross and not is_pair,
    )  # fmt: skip


def _text_config(net: Any) -> Any:
    config = net.config
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


# --- tensors --------------------------------------------------------------------------------------


def outline(model_class: Any, net_config: Any) -> nn.Module:
    """A model of a class, its tensors without memory (on "meta")."""
    with quiet(), torch.device("meta"):
        return cast(nn.Module, model_class(net_config))


def _rebuild(model_class: Any, keys: Mapping[str, Any]) -> nn.Module:
    """The outline of a model with other keys in its config.json."""
    return outline(model_class, model_class.config_class.from_dict(_numbers_of_json(keys)))


def build(
    config: TransformersConfig,
    tensors: Mapping[str, Tensor],
    device: str,
    dtype: torch.dtype,
    network: Network | None = None,
) -> Transformers:
    """The model of a configuration with these tensors.

    network: one that has them already, in float32. Raises HgvizError for another activation where
    the model has attention code of its own.
    """
    if not config.uses_interface and config.replaces_softmax:
        raise activation_error("its model has its own attention code")
    if network is None or dtype != torch.float32:
        network = Transformers(_load(config, tensors, dtype)[0], config)
    network.config = config
    with room(device, f"the model has {sum(map(Tensor.numel, tensors.values())):,} parameters"):
        return cast(Transformers, network).to(device)


def _from_pretrained(
    config: TransformersConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype, attention: str
) -> tuple[Any, Any]:
    """A model in transformers with these tensors, and what it reports of them."""
    size = sum(tensor.nbytes for tensor in tensors.values())
    with quiet(), room("cpu", f"its tensors take {size:,} bytes"):
        return getattr(library(), config.class_name).from_pretrained(
            None, config=_net_config(config.family, config.data), dtype=dtype,
            state_dict=to_file_layout(config, tensors), attn_implementation=attention,
            output_loading_info=True, ignore_mismatched_sizes=bool(config.remaining),
        )  # fmt: skip


def _load(
    config: TransformersConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype
) -> tuple[Any, list[str], list[str]]:
    """A model in transformers with these tensors, and the names of those that it lacks and of those
    that it does not use."""
    remaining = config.remaining
    net, report = _from_pretrained(
        config, tensors, dtype, NAME if config.uses_interface else "eager"
    )
    with quiet():
        if dtype == torch.float64:  # grouped products of experts know no float64
            net.set_experts_implementation("eager")
        _replace_conv1d(net)
        for module in [*net.modules()]:  # BigBird does so itself for the texts that hgviz reads
            is_sparse = getattr(module, "attention_type", "") == BLOCK_SPARSE
            if is_sparse and not getattr(module, "is_decoder", False):
                module.set_attention_type("original_full")
        smaller = [name for name, *_ in report["mismatched_keys"]]
        for name in smaller:
            shape = net.get_parameter(name).shape
            tensor = tensors[name_among(net, name, tensors)].to(dtype)
            if not tensor.numel():  # of a layer without heads: zeros of one
                sizes = zip(tensor.shape, shape, strict=True)
                tensor = tensor.new_zeros([n or whole // remaining[0].of for n, whole in sizes])
            _put(net, name, tensor)
        for layer in remaining if smaller else ():
            _set_head_counts(net.get_submodule(layer.name), layer)
    missing = sorted(name for name in report["missing_keys"] if not name.endswith(BUFFERS))
    return net.eval().requires_grad_(False), missing, sorted({*report["unexpected_keys"]})


def _replace_conv1d(net: nn.Module) -> None:
    """Put linear layers in place of those that keep their weights transposed, as GPT-2's, so that
    the columns of all output projections go by heads."""
    for part in [*net.modules()]:
        for name, child in [*part.named_children()]:
            if type(child).__name__ == "Conv1D":
                linear: Any = nn.Linear(cast(Any, child).nx, cast(Any, child).nf, device="meta")
                linear.weight, linear.bias = nn.Parameter(cast(Any, child).weight.T), child.bias
                setattr(part, name, linear)


def to_file_layout(config: TransformersConfig, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as files keep them, transposed where the class has them so, or back again."""
    model_class = getattr(library(), config.class_name)
    return {
        name: tensor.T if bare_name(model_class, name) in config.transposed else tensor
        for name, tensor in tensors.items()
    }


def bare_name(net: Any, name: str) -> str:
    """The name of a tensor in the bare model."""
    return name.removeprefix(f"{getattr(net, 'base_model_prefix', '')}.")


def name_among(net: Any, name: str, known: Collection[str]) -> str:
    """The name of a tensor among others, with or without that of the bare model before it; "" where
    it is not there."""
    prefix = f"{getattr(net, 'base_model_prefix', '')}."
    variants = (name, prefix + name, name.removeprefix(prefix))
    return next((variant for variant in variants if name and variant in known), "")


def _put(net: nn.Module, name: str, tensor: Tensor) -> None:
    """Put a parameter in place of one of another size."""
    parent, _, own = name.rpartition(".")
    module = net.get_submodule(parent)
    setattr(module, own, nn.Parameter(tensor, requires_grad=False))
    if isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape


def _set_head_counts(module: Any, layer: RemainingHeads) -> None:
    """Set the numbers of heads that a module computes with."""
    if hasattr(module, "config"):
        module.config = copy.copy(module.config)
    if hasattr(module, "split_size"):  # of GPT-2: where its fused product parts
        module.split_size = layer.sizes[0] * module.head_dim
    for names, count in zip((HEADS, GROUPS), layer.sizes, strict=True):
        for owner in (module, getattr(module, "config", None)):
            for name in names:
                if isinstance(getattr(owner, name, None), int):
                    setattr(owner, name, count)


def _shapes(net: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}


def _require_shapes(folder: _Folder, net: nn.Module, remaining: Sequence[RemainingHeads]) -> str:
    """Why no class of transformers has these tensors, "" where its own class does.

    Raises HgvizError for a tensor of another size than the model's; those of a pruned model may
    have fewer places along one axis.
    """
    expected, is_smaller = _shapes(net), False
    for name, tensor in folder.tensors.items():
        shape, stored = expected.get(name_among(net, name, expected)), tuple(tensor.shape)
        if shape is None or shape == stored:
            continue
        fewer = [a < b for a, b in zip(stored, shape, strict=False) if a != b]
        if not remaining or fewer != [True] or len(stored) != len(shape):
            sizes = " x ".join(map(str, stored)), " x ".join(map(str, shape))
            raise folder.misfit(f"{printable(name)} is {sizes[0]}, and config.json says {sizes[1]}")
        is_smaller = True
    return why_hgviz_only(remaining, folder.tensors) if is_smaller else ""


def standard_keys(
    config: TransformersConfig, tensors: Mapping[str, Tensor]
) -> dict[str, Any] | None:
    """The config.json by which the class itself has these tensors of a pruned model; None where
    there is none, as where layers keep different numbers of heads."""
    remaining, keys = config.remaining, dict(config.data)
    if len({layer.sizes for layer in remaining}) > 1 or not all(x.is_even for x in remaining):
        return None
    heads, groups = remaining[0].sizes
    model_class = getattr(library(), config.class_name)
    with suppress(Exception):  # transformers raises whatever its parts do
        before = _net_config(config.family, keys)
        width = getattr(before, "head_dim", None) or config.d_head
        softmaxes = 2 if modules_of(outline(model_class, before), DIFFERENTIAL) else 1  # of a head
        sizes = {
            "num_attention_heads": softmaxes * heads, "num_key_value_heads": softmaxes * groups,
            "head_dim": width,
        }  # fmt: skip
        for name, value in sizes.items():
            own = model_class.config_class.attribute_map.get(name, name)
            if own == name == "head_dim" or hasattr(before, own):
                keys[own] = value
        shapes = _shapes(outline(model_class, _net_config(config.family, keys)))
        if all(
            shapes.get(name_among(model_class, name, shapes)) in (None, tuple(tensor.shape))
            for name, tensor in tensors.items()
        ):
            return keys
    return None


def rename_tensors(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint as transformers writes it today: tensors by the names of its class, tied ones
    once, each in the precision that it has in its file.

    Raises HgvizError for a pruned model that no class of transformers has.
    """
    library()
    from transformers.core_model_loading import revert_weight_conversion
    from transformers.modeling_utils import remove_tied_weights_from_state_dict

    config, tensors = cast(TransformersConfig, checkpoint.config), checkpoint.tensors
    require(
        not config.hgviz_only,
        f"{short_path(checkpoint.folder)} is pruned in a way that only hgviz can open: "
        f"{config.hgviz_only}",
        "Open it directly, or convert the full model",
    )
    widest = reduce(torch.promote_types, {tensor.dtype for tensor in tensors.values()})
    net, report = _from_pretrained(config, tensors, widest, "eager")
    with quiet():
        net._weight_conversions = None  # else its files' old names would come back
        untied = remove_tied_weights_from_state_dict(net.state_dict(), net)
        computed = {*report["missing_keys"], *(net._keys_to_ignore_on_save or ())}  # sinusoids
        state = revert_weight_conversion(net, {
            name: tensor for name, tensor in untied.items()
            if name not in computed or name_among(net, name, tensors)
        })  # fmt: skip
    stored = {name: tensors.get(name_among(net, name, tensors)) for name in state}
    renamed = {
        name: tensor if (file := stored[name]) is None else tensor.to(file.dtype)
        for name, tensor in state.items()
    }
    renamed = to_file_layout(config, renamed)
    digest = digest_of(config, renamed)
    return replace(checkpoint, tensors=renamed, digest=digest, network=None)


def random_model(folder: Path) -> Path:
    """Write a small random Gemma 2, which reads bytes, into a folder; returns the folder."""
    transformers = library()
    torch.manual_seed(0)
    net_config = transformers.Gemma2Config(
        vocab_size=256, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, intermediate_size=48, sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    with quiet():
        transformers.Gemma2ForCausalLM(net_config).save_pretrained(folder)
    return folder


# --- layers ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Probe:
    """What a pass over a few tokens shows of a model.

    tokens: its input. shapes, paths, outputs: by call for attention, its sizes, the module that
    called, and the module that the context was given to. used: the modules that computed, with
    their names. unattending: (name, parts) of blocks that do not attend. output: of the model.
    """

    tokens: Tokens
    shapes: list[LayerShape] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    outputs: dict[int, str] = field(default_factory=dict)
    used: dict[nn.Module, str] = field(default_factory=dict)
    unattending: list[tuple[str, str]] = field(default_factory=list)
    output: Tensor | None = None


def _probe(network: Transformers) -> _Probe:
    net, running = network.net, list[str]()
    probe = _Probe(network.example(PROVED if network.config.pooling else SOURCE, TARGET))
    names = {module: name for name, module in net.named_modules()}
    blocks, active = dict.fromkeys(residual_blocks(net), 0), ActivePass(shapes=probe.shapes)
    active.on_layer = lambda index: probe.paths.append(running[-1] if running else "")

    def before(module: nn.Module, args: tuple[Any, ...]) -> None:
        running.append(names[module])
        probe.used[module] = names[module]
        if module in blocks:
            blocks[module] = active.layers
        if not isinstance(module, nn.Linear) or not active.context_size:
            return
        size, active.context_size = active.context_size, 0
        first = args[0] if args else None
        # of an observed softmax the number of heads alone is known, as a negative size
        if isinstance(first, Tensor) and (
            first.numel() == size or (size < 0 and module.in_features % -size == 0)
        ):
            probe.outputs[active.layers - 1] = names[module]

    def after(module: nn.Module, args: Any, output: Any) -> None:
        running.pop()
        stream = output[0] if isinstance(output, tuple) and output else output
        parts = [type(part).__name__ for part in _unlisted_children(module)]
        is_block = module in blocks and isinstance(stream, Tensor) and stream.dim() == 3 and parts
        if is_block and blocks[module] == active.layers:
            mixers = [part for part in parts if not re.search("Norm|Dropout", part)]
            probe.unattending.append((names[module], ", ".join(dict.fromkeys(mixers))))

    with ExitStack() as hooks, torch.inference_mode():
        for module in names:
            hooks.enter_context(module.register_forward_pre_hook(before))
            hooks.enter_context(module.register_forward_hook(after, always_call=True))
        probe.output = network.compute(probe.tokens, active)
    if {*net.modules()} != {*names}:  # as BigBird does
        raise unseen(network.config.family, LENGTH_DEPENDENT)
    return probe


def _unlisted_children(module: nn.Module) -> Iterator[nn.Module]:
    """The children of a module, and those of its lists of modules."""
    for part in module.children():
        yield from _unlisted_children(part) if isinstance(part, nn.ModuleList) else (part,)


def _find_layers(network: Transformers, tensors: Mapping[str, Tensor]) -> None:
    """Set the attention layers and their output projections in the configuration of a model.

    Raises HgvizError for a model none of whose layers attends to its text, and for one that
    computes something else by our attention than by its own.
    """
    config, probe = network.config, _probe(network)
    shapes, paths, remaining = probe.shapes, probe.paths, config.remaining
    outputs = _proved_outputs(network, probe)
    unattending, layers, calls = dict(probe.unattending), list[Layer](), list[int]()
    for call, (shape, place) in enumerate(zip(shapes, _places(config, shapes), strict=True)):
        if place is None:
            unattending[paths[call]] = "attention to something other than tokens"
            continue
        if shape.batch > 1:
            raise unseen(config.family, f"{paths[call]} attends within parts of its input")
        left = remaining[len(layers)] if len(layers) < len(remaining) else None
        heads = tuple(range(shape.heads)) if left is None else left.heads
        patches = config.patches
        layers.append(
            Layer(
                len(layers), paths[call] or f"layer.{call}", *place, heads,
                ("softmax",) * len(heads),
                shape.causal or (patches is not None and place[0] != "self"),
                shared=shape.heads // max(1, shape.groups) if left is None else left.shared,
                cuts=patches is not None and call < (patches.patcher or 0),
            )
        )  # fmt: skip
        calls.append(call)
    if not layers:
        why = "it uses neither the attention interface of transformers nor a softmax"
        if shapes:
            why = f"{paths[0]} attends to keys that are not tokens of its text"
        raise unseen(config.family, why)
    names = [layer.name for layer in layers]
    require(
        not remaining or [layer.name for layer in remaining] == names,
        f"the entry {ENTRY} in config.json belongs to another model: "
        f"the layers of this one are {_first_name(names)}",
        OWN_CONFIG,
    )
    form = config.form or ("decoder" if any(layer.causal for layer in layers) else "encoder")
    output_modules = tuple(outputs.get(call, "") for call in calls)
    network.config = config.replace(
        own_layers=tuple(layers), form=form, goal=_goal(config, form, cast(Tensor, probe.output)),
        output_modules=output_modules,
        output_weights=tuple(_name_in_file(network.net, name, tensors) for name in output_modules),
        max_positions=_max_positions(probe.used, _text_config(network.net))
        if config.vocab_size else None,
        unattending=tuple(unattending.items()),
        skipped_calls=frozenset({*range(len(shapes))} - {*calls}),
    )  # fmt: skip
    if config.uses_interface and not config.hgviz_only:
        _require_same_outputs(network)


def _places(
    config: TransformersConfig, shapes: Sequence[LayerShape]
) -> list[tuple[Role, int, int] | None]:
    """By call for attention: its role, its level and that of its keys; None where it attends to
    something else than the text or the decoder's."""
    if config.pooling is not None:
        places = config.pooling.places
        return [("self" if level == keys else "down", level, keys) for level, keys in places]
    if config.patches is not None:
        return [*config.patches.places]
    source = SOURCE
    if config.modality != "text":  # the positions that a first layer makes of an image or sound
        is_pair = config.form == "encoder-decoder"
        lengths = (shape.queries for shape in shapes if shape.queries != TARGET or not is_pair)
        source = next(lengths, SOURCE)
    places_of: dict[tuple[int, int], tuple[Role, int, int]] = {(source, source): ("self", 0, 0)}
    if config.two_texts:
        places_of |= {(TARGET, TARGET): ("self", 1, 1), (TARGET, source): ("cross", 1, 0)}
    if config.cross:
        del places_of[source, source]
    return [places_of.get((shape.queries, shape.keys)) for shape in shapes]


def _proved_outputs(network: Transformers, probe: _Probe) -> dict[int, str]:
    """Those outputs of a probe that are given zeros where the first head of their layer is off."""
    are_zero: dict[int, bool] = {}
    remaining = network.config.remaining
    outputs = {call: name for call, name in probe.outputs.items() if probe.shapes[call].heads}

    def check(call: int, module: nn.Module, args: tuple[Any, ...]) -> None:
        width = args[0].shape[-1] // probe.shapes[call].heads
        are_zero[call] = are_zero.get(call, True) and not bool(args[0][..., :width].any())

    off = frozenset(HeadId(at, remaining[at].heads[0] if remaining else 0) for at in outputs)
    with ExitStack() as hooks, torch.inference_mode():
        for call, name in outputs.items():
            module = network.net.get_submodule(name)
            hooks.enter_context(module.register_forward_pre_hook(partial(check, call)))
        network.compute(probe.tokens, ActivePass(run=Run(off)))
    return {call: name for call, name in outputs.items() if are_zero.get(call)}


def _goal(config: TransformersConfig, form: str, output: Tensor) -> Goal:
    """The goal that the name of the class says, but for language models that see all tokens, and
    for pre-training, of which it may be any."""
    if config.goal == "next" and form == "encoder":  # XLNet sees the token that it predicts
        is_masked = any(name.endswith("ForMaskedLM") for name in _classes(config.family))
        return "masked" if is_masked else "states"
    if config.class_name.endswith("ForPreTraining") and output.shape[-1] == config.vocab_size:
        return "masked" if form == "encoder" else "states"
    return config.goal


def _max_positions(used: Mapping[nn.Module, str], net_config: Any) -> int | None:
    """The size of the smallest table of positions among the modules that computed; None where
    positions are not learned."""
    stated = getattr(net_config, "max_position_embeddings", None)
    if getattr(net_config, "attention_type", "") == BLOCK_SPARSE:  # longer texts are read by blocks
        full = (5 + 2 * net_config.num_random_blocks) * net_config.block_size
        stated = min(full, stated or full)
    tables = [
        table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        for table, name in used.items()
        if isinstance(table, nn.Embedding) and re.search("pos[^.]*$|wpe", name)
    ]
    if not tables:
        return None
    return min(*tables, stated) if isinstance(stated, int) and stated > 0 else min(tables)


def _require_same_outputs(network: Transformers) -> None:
    """Raise HgvizError for a model that computes something else by our attention than by its own,
    so that its maps would not be what it does."""
    config, net = network.config, cast(Any, network.net)
    length = min(PROVED, config.max_positions or PROVED)
    tokens = network.example(length, max(1, length // 2))
    with torch.inference_mode(), quiet():
        ours = network.compute(tokens, ActivePass())
        net.set_attn_implementation("eager")
        with own_forwards(net):
            eager = network.compute(tokens, ActivePass())
        net.set_attn_implementation(NAME)
    difference, largest = float((ours - eager).abs().max()), float(eager.abs().max())
    if not difference <= TOLERANCE * max(1.0, largest):
        raise unseen(
            config.family, f"recomputed by hgviz, its outputs differ by {difference:.1e}",
        )  # fmt: skip


def _name_in_file(net: nn.Module, module: str, tensors: Mapping[str, Tensor]) -> str:
    """The name in the file of the weights of a module; "" where they are not there as they are."""
    if not module:
        return ""
    weight = cast(Tensor, net.get_submodule(module).weight)
    if name := name_among(net, f"{module}.weight", tensors):
        return name
    # transformers gives tensors of older files other names
    equal = [name for name, tensor in tensors.items() if tensor.shape == weight.shape
             and torch.equal(tensor.to(weight), weight)]  # fmt: skip
    return equal[0] if len(equal) == 1 else ""


# --- training -------------------------------------------------------------------------------------


def open_for_training(
    checkpoint: Checkpoint, keys: Mapping[str, Any], pad: int | None, store: str
) -> tuple[Transformers, tuple[str, ...], int | None]:
    """A model with what the [model] of a training file changes; the names of its new parameters;
    and the token that pads texts, by its config.json.

    pad: that of the tokenizer. store: the dtype in which it will be written. Raises HgvizError for
    a goal that its type has no class for, and for activations that it cannot have.
    """
    goal = keys.get("goal", getattr(checkpoint.config, "goal", "next"))
    checkpoint, new = set_goal(checkpoint, goal, keys.get("labels", ()), pad)
    config = cast(TransformersConfig, checkpoint.config)
    changes = {key: keys[key] for key in Entry.__struct_fields__ if key in keys}
    entry = parse_keys({**config.entry.to_dict(), **changes}, Entry, "[model]")
    data = {key: value for key, value in config.data.items() if key != "torch_dtype"}
    config = config.replace(data={**data, "dtype": store}, **entry.activation_keys())
    require_activations(config, "[model]")
    # training changes tensors in place, and those of the checkpoint are not its own
    tensors = {name: tensor.clone() for name, tensor in checkpoint.tensors.items()}
    model = build(config, tensors, "cpu", torch.float32)
    own_pad = cast(Any, model.net.config).get_text_config(decoder=True).pad_token_id
    return model, new, own_pad if isinstance(own_pad, int) and own_pad >= 0 else None


def require_own_projections(config: TransformersConfig, layers: Iterable[int]) -> None:
    """Raise HgvizError for a layer whose gates cannot be folded into an output projection that is
    its alone."""
    for layer in sorted({*layers}):
        module = config.output_modules[layer]
        why = f"the output projection of layer {layer} was not found"
        if module:
            why = f"layer {layer} shares its weights with other layers"
        require(
            module and config.output_modules.count(module) == 1,
            f"this model cannot be saved with heads off or scaled: {why}",
            "Remove [gates] and model.off from the training file",
        )


def set_goal(
    checkpoint: Checkpoint, goal: str, labels: Sequence[str], pad: int | None
) -> tuple[Checkpoint, tuple[str, ...]]:
    """A checkpoint as the class of its type for a goal, with these labels, and the names of the
    parameters that it lacked: they are drawn as transformers draws them.

    pad: the token that pads texts, for a classifier that names none. Raises HgvizError where
    transformers has no such class.
    """
    config, tensors = cast(TransformersConfig, checkpoint.config), dict(checkpoint.tensors)
    advice = "Choose another goal, or a model of another type"
    refusal = f"a {config.family} cannot be trained for the goal {printable(goal)}"
    model_class = _class_for(config, goal)
    require(model_class, f"{refusal}: transformers has no class for it", advice)
    data = {**config.data, "architectures": [model_class.__name__]}
    has_new_labels = goal == "classes" and tuple(labels) != config.labels
    if has_new_labels:
        names = {str(at): label for at, label in enumerate(labels)}
        data |= {"id2label": names, "label2id": {label: int(at) for at, label in names.items()}}
        data.pop("num_labels", None)
    with library_errors(refusal, advice):
        net_config = _net_config(config.family, data)
        names_pad = getattr(net_config, "pad_token_id", None) is not None
        if goal == "classes" and not names_pad and pad is not None:
            data["pad_token_id"] = pad
        if data == {**config.data, "architectures": [config.class_name]}:
            return checkpoint, ()
        if has_new_labels:
            # weights of labels are those that would be larger with a label more
            bare = {
                key: value for key, value in data.items() if key not in ("id2label", "label2id")
            }
            fewer, more = (
                _shapes(outline(model_class, _net_config(config.family, {**bare, "num_labels": n})))
                for n in (len(labels), len(labels) + 1)
            )
            new = {name for name, shape in fewer.items() if more[name] != shape}
            tensors = {
                name: tensor for name, tensor in tensors.items()
                if not name_among(model_class, name, new)
            }  # fmt: skip
        net = outline(model_class, _net_config(config.family, data))
        modules = dict(net.named_modules())
        described = _describe(net, config.family, data).replace(
            uses_interface=config.uses_interface, hgviz_only=config.hgviz_only,
            transposed=config.transposed, remaining=tuple(
                structs.replace(layer, name=name_among(model_class, layer.name, modules))
                for layer in config.remaining
            ),
        )  # fmt: skip
        net, missing, _ = _load(described, tensors, torch.float32)
        values, network = net.state_dict(), Transformers(net, described)
        tensors |= {name: values[name] for name in missing}
        _find_layers(network, tensors)
    require(network.config.goal == goal, f"{refusal}: it is bidirectional", advice)
    changed = network.config.replace(**config.entry.activation_keys())
    return replace(checkpoint, config=changed, tensors=tensors, network=None), tuple(missing)


def _class_for(config: TransformersConfig, goal: str) -> Any:
    """The class for a goal, of the same type; None where there is none."""
    model_class = getattr(library(), config.class_name)
    if goal == config.goal:
        return model_class
    table = getattr(library().models.auto.modeling_auto, TASKS.get(goal, ""), {})
    for kind in (config.family, model_class.config_class.model_type):
        if isinstance(table.get(kind), str) and hasattr(library(), table[kind]):
            return getattr(library(), table[kind])
    return None


# --- errors ---------------------------------------------------------------------------------------


@contextmanager
def _explain_errors(
    where: Path, keys: Mapping[str, Any], build: Callable[[Mapping[str, Any]], Any] | None = None
) -> Iterator[None]:
    """Within, what transformers raises becomes an HgvizError that names the field at fault of a
    config.json with these keys.

    build: makes a model of the keys, where that is what is done; None where a model is run.
    """
    try:
        yield
    except HgvizError:
        raise
    except Exception as error:  # transformers raises whatever its parts do
        name, fault, value = short_path(where), "", None
        what = f"transformers cannot run the model of {name}: "
        says, do = str(error).strip(), "Install the package named here"
        if not isinstance(error, ImportError):  # whose last line is of how to start again
            says = says.rpartition("\n")[2].lstrip(" )")  # what it is about stands above it
            # the longest field that the error names
            names = {path.rpartition(".")[2] for path, _ in _fields(keys)}
            words = {*re.findall(r"\w+", str(error))}
            fault = max((name for name in names & words if len(name) > 2), key=len, default="")
            fault = printable(fault)
            do = f"Correct {fault} in {name}"
            if build is not None:
                what = f"{name} is invalid: "
                if not fault:
                    fault, value = _field_at_fault(keys, build)
                do = f"Correct {fault or 'this'} in {name}"
            elif not fault:
                do = "Run it in transformers alone to see whether the model or hgviz is at fault"
        what += f"{fault} is {quoted(value)}; " if value is not None else ""
        reason = first_line(ValueError(says) if says else error)
        raise HgvizError(f"{what}transformers says: {reason}", do) from None


def _field_at_fault(
    keys: Mapping[str, Any], build: Callable[[Mapping[str, Any]], Any]
) -> tuple[str, Any]:
    """The first field of a config.json, or of one of its parts, without which a model can be built,
    and its value; ("", None) for none."""
    for key, value in keys.items():
        for inner in [*value] if isinstance(value, dict) else []:
            rest = {name: field for name, field in value.items() if name != inner}
            with quiet(), suppress(Exception):
                build({**keys, key: rest})
                return printable(f"{key}.{inner}"), value[inner]
        with quiet(), suppress(Exception):
            build({name: field for name, field in keys.items() if name != key})
            return printable(key), value
    return "", None


def _first_name(names: Sequence[str]) -> str:
    return printable(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")
