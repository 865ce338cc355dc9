"""Heads removed from a checkpoint for good, compensated for, written, and proved.

What a layer adds to the stream is sum over heads of c_h W_O^h + b_O. A head whose columns of W_O
are zero is a head that is off, and so is one whose rows of W_Q, W_K and W_V are gone together with
these columns; b_O stays. Either gives the same logits as the whole model with the heads off, and a
proof measures that before a folder is kept.

Shapes: B texts, P positions of all texts, Q queries, H heads, G key groups, D head width, R terms,
d model width.
"""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, cast

import numpy as np
import torch
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import HeadCost, HeadId, HeadSet, HgvizError, Layer, ModelSpec, progress
from hgviz.errors import require
from hgviz.examples import Asked, Examples, describe_sample
from hgviz.files import CONFIG, path_errors
from hgviz.models import checkpoints
from hgviz.models.config import outline
from hgviz.models.huggingface import ActivePass, Transformers
from hgviz.models.layers import (
    Attention,
    Configuration,
    ExternalLayer,
    Network,
    Tokens,
    attention_modules,
    output_projections,
    require_attention,
)
from hgviz.models.model import Model, batch_tokens, module_of
from hgviz.models.pretrained import build, name_among, standard_keys
from hgviz.models.pretrained_config import RemainingHeads, TransformersConfig, why_hgviz_only
from hgviz.models.run import PassEnded, Run
from hgviz.models.tensors import WEIGHTS, Checkpoint, digest_of

Form = Literal["smaller", "zeroed"]
Compensation = Literal["none", "mean", "lsq"]
Runner = Callable[[Tokens], Tensor]  # texts to logits, on the CPU

DAMPING = 1.0  # as Kwon et al.: gates stay at 1 where the texts say nothing
COMPENSATION_TOKENS = 1 << 16
MAX_DIFFERENCE = 1e-5  # between logits of the masked model and of the export
TIMED_BATCHES = (1, 16)
TIMED_TOKENS = 128  # of a text
ROUNDS, SECONDS = (5, 60), 2.0  # of timing: at least, at most; as many as take so long in between
LOGITS_AT_ONCE = 1 << 26
RANDOM_TEXTS = 16
PROBE_TOKENS = 5  # of the text whose gradients say which weights a head has
NO_COST = HeadCost((0, 0), (0, 0), 0)
DTYPES = {"float32": torch.float32, "float64": torch.float64}


# --- heads taken out of a checkpoint --------------------------------------------------------------


def remove_heads(checkpoint: Checkpoint, off: HeadSet) -> Checkpoint:
    """The checkpoint without these heads: fewer numbers, in hgviz's own form or, for a model of
    transformers, in its own.

    The heads that stay keep their numbers, and so do layers, even without heads. Biases of relative
    attention that all layers share stay whole. Raises HgvizError for unknown heads, and for models
    of transformers whose weights do not go by heads.
    """
    layers = _output_weights(checkpoint.config, off)
    if isinstance(checkpoint.config, TransformersConfig):
        return _with_tensors(checkpoint, *slice_layers(checkpoint.config, checkpoint.tensors, off))
    tensors, kept = dict(checkpoint.tensors), []
    for layer, output, of_all_heads in layers:
        places = [at for at, head in enumerate(layer.heads) if (layer.index, head) not in off]
        kept.append(tuple(layer.heads[place] for place in places))
        if len(places) == len(layer.heads):
            continue
        sizes, module, weight = (len(layer.heads), -1), output.removesuffix("o."), f"{output}weight"
        for name in checkpoint.tensors:
            part = name.removeprefix(module)
            if part != name and part.split(".")[0] not in of_all_heads:
                tensors[name] = tensors[name].unflatten(0, sizes)[places].flatten(0, 1)
        tensors[weight] = tensors[weight].unflatten(1, sizes)[:, places].flatten(1)
    own: Any = require_attention(checkpoint.config)
    return _with_tensors(checkpoint, own.replace(kept=tuple(kept)), tensors)


def zero_heads(checkpoint: Checkpoint, off: HeadSet) -> Checkpoint:
    """The checkpoint with zeros in the columns of W_O that belong to these heads.

    Raises HgvizError for unknown heads, and for layers that share these columns with others whose
    heads stay.
    """
    zeroed = scale_heads(checkpoint, dict.fromkeys(off, 0.0))
    if isinstance(checkpoint.config, TransformersConfig):
        outputs = checkpoint.config.output_weights
        for head in sorted(off):
            for other, name in enumerate(outputs):
                require(
                    name != outputs[head.layer] or (other, head.head) in off,
                    f"head {head} of this model cannot be removed alone: "
                    f"layer {head.layer} shares its weights with layer {other}",
                    f"Remove {other}.{head.head} too",
                )
    return zeroed


def scale_heads(checkpoint: Checkpoint, gates: Mapping[HeadId, float]) -> Checkpoint:
    """The checkpoint with the contexts of heads multiplied by gates, in the columns of W_O."""
    tensors = dict(checkpoint.tensors)
    for layer, output, _ in _output_weights(checkpoint.config, frozenset(gates)):
        factors = [gates.get(HeadId(layer.index, head), 1.0) for head in layer.heads]
        if set(factors) <= {1.0}:
            continue
        weight = tensors[f"{output}weight"]
        columns = weight.double().unflatten(1, (len(factors), -1))  # (d, H, D)
        columns = columns * torch.tensor(factors, dtype=torch.float64)[:, None]
        tensors[f"{output}weight"] = columns.flatten(1).to(weight.dtype)
    return _with_tensors(checkpoint, checkpoint.config, tensors)


def add_to_biases(checkpoint: Checkpoint, contexts: Mapping[HeadId, Tensor]) -> Checkpoint:
    """The checkpoint with W_O^h c_h added to b_O for each of these contexts c (D,).

    Raises HgvizError for a layer without such a bias.
    """
    tensors = dict(checkpoint.tensors)
    for layer, output, _ in _output_weights(checkpoint.config, frozenset(contexts)):
        places = [at for at, head in enumerate(layer.heads) if (layer.index, head) in contexts]
        if not places:
            continue
        weight, bias = tensors[f"{output}weight"], tensors.get(f"{output}bias")
        if bias is None:
            raise HgvizError(
                "the mean output of heads cannot be added to a bias: "
                f"the output projection of layer {layer.index} has none",
                "Choose --compensate lsq or none",
            )
        columns = weight.double().unflatten(1, (len(layer.heads), -1))
        added = sum(
            columns[:, place] @ contexts[HeadId(layer.index, layer.heads[place])].double()
            for place in places
        )
        tensors[f"{output}bias"] = (bias.double() + added).to(bias.dtype)
    return _with_tensors(checkpoint, checkpoint.config, tensors)


def _output_weights(
    config: Configuration, heads: Collection[HeadId]
) -> list[tuple[Layer, str, tuple[str, ...]]]:
    """Every layer; what the names of its W_O and b_O begin with, such as middle.0.attention.o.; and
    the parts of its attention that do not go by heads. Raises HgvizError for unknown heads."""
    names: dict[int, tuple[str, tuple[str, ...]]]
    if isinstance(config, TransformersConfig):
        outputs = config.output_weights
        for head in sorted(heads):
            require(
                outputs[head.layer],
                f"layer {head.layer} of this model cannot be changed: "
                "hgviz did not find the output projection of its heads",
                "Leave its heads on",
            )
        names = {at: (name.removesuffix("weight"), ()) for at, name in enumerate(outputs)}
    else:
        names = {
            part.layer.index: (f"{name}.o.", part.shared_parts)
            for name, part in outline(config).named_modules()
            if isinstance(part, Attention)
        }
    known = {HeadId(layer.index, head) for layer in config.layers for head in layer.heads}
    if unknown := sorted({*heads} - known):
        raise HgvizError(
            f"this model has no head {unknown[0]}: its layers are 0 to {len(config.layers) - 1}",
            "Run `hgviz info` on it to see every layer",
        )
    return [(layer, *names[layer.index]) for layer in config.layers]


def _with_tensors(
    checkpoint: Checkpoint, config: Configuration, tensors: dict[str, Tensor]
) -> Checkpoint:
    digest = digest_of(config, tensors)
    return replace(checkpoint, config=config, tensors=tensors, digest=digest, network=None)


# --- which weights belong to which head ----------------------------------------------------------
#
# In hgviz's own families the rows of W_Q, W_K and W_V go by heads. For models of transformers
# gradients say which rows of which weight belong to a head: where a query does not change with a
# row, the row is not the head's, and its gradient is exactly zero, whatever the numbers. So fused
# projections, biases, gates and norms by head are all found in one way, without names.


def head_costs(network: Network) -> tuple[HeadCost, ...] | None:
    """The weights of one head of each layer, as pruning removes them; None where weights do not go
    by heads."""
    if isinstance(network.config, TransformersConfig):
        with suppress(HgvizError):
            return _external_head_costs(cast(Transformers, network))
        return None
    return tuple(map(_own_head_cost, attention_modules(network)))


def _own_head_cost(attention: Attention) -> HeadCost:
    """Of a layer of an own family, where each head has keys of its own."""
    queries, keys = [0, 0], [0, 0]  # parameters, FLOPs per position
    for name, tensor in attention.state_dict().items():
        part = name.split(".")[0]
        if part not in attention.shared_parts or name == "o.weight":
            side = keys if part in ("k", "v", "mixtures") else queries
            size = tensor.numel() // max(1, len(attention.layer.heads))
            side[0] += size
            side[1] += size * min(2, tensor.dim())  # a bias is only added
    return HeadCost((queries[0], queries[1]), (keys[0], keys[1]), 2 * attention.d_head)


def _external_head_costs(network: Transformers) -> tuple[HeadCost, ...]:
    config = network.config
    if not config.uses_interface:
        _refuse(config, "its class has its own attention code")
    if len({*config.output_weights}) < len(config.output_weights):
        _refuse(config, "its layers share their weights")
    known, costs = dict[Any, HeadCost](), []
    for layer in config.layers:
        module, output = network.net.get_submodule(layer.name), network.projections[layer.index]
        if output is None:
            _refuse(config, f"hgviz did not find the output projection of {layer.name}")
        kind = type(module), len(layer.heads), *(one.shape for one in module.parameters())
        if kind not in known:
            known[kind] = _external_head_cost(network, layer, output) if layer.heads else NO_COST
        costs.append(known[kind])
    return tuple(costs)


def _external_head_cost(network: Transformers, layer: Layer, output: nn.Linear) -> HeadCost:
    probed = _probe(network, layer)
    size = output.weight.numel() // probed.heads
    queries, keys = [size, 2 * size], [0, 0]  # parameters, FLOPs per position
    for name, axis, owners in _rows_by_head(network, layer, probed, limit=2):
        parameter = network.net.get_parameter(name)
        for unit, side in ((0, queries), (probed.heads, keys)):
            if unit in owners:
                size = int(owners[unit].sum()) * parameter.numel() // parameter.shape[axis]
                side[0] += size
                side[1] += size * min(2, parameter.dim())  # a bias is only added
    width = probed.q.shape[-1] + probed.v.shape[-1]
    return HeadCost((queries[0], queries[1]), (keys[0], keys[1]), width, keeps_one=True)


def _refuse(config: TransformersConfig, why: str) -> NoReturn:
    raise HgvizError(
        f"heads of this {config.family} cannot be removed: {why}", "Choose --form zeroed"
    )


def query_key_products(checkpoint: Checkpoint) -> list[tuple[Any, ...]]:
    """W_QK^(h) = q^T diag(mix_h) k of the heads of each layer of an own family that makes scores of
    queries and keys, in float64.

    Of each layer: the Layer, q (R, d), mix (H, R), k (R, d), the width of all its queries together,
    and notes on what W_QK leaves out of the scores. R is H * D for ordinary heads.
    """

    def array(name: str) -> Any:
        return checkpoint.tensors[name].detach().double().cpu().numpy()

    products = []
    modules = outline(checkpoint.config).named_modules()
    parts = {part.layer.index: (name, part) for name, part in modules
             if isinstance(part, Attention)}  # fmt: skip
    for _, (name, part) in sorted(parts.items()):
        heads = len(part.layer.heads)
        if not heads or f"{name}.k.weight" not in checkpoint.tensors:
            continue
        mix = np.repeat(np.eye(heads), part.d_head, axis=1)
        if f"{name}.mix" in checkpoint.tensors:
            mix = array(f"{name}.mix")
        features = any(ACTIVATIONS[activation].features for activation in part.rule.activations)
        notes = {
            "queries and keys are taken before the rotary position embedding": part.rotary,
            "position scores are not included": part.relative or part.places is not None,
            "synthesised scores are not included": part.synthesis is not None,
            "linear attention uses features of queries and keys": features,
        }
        q, k = array(f"{name}.q.weight"), array(f"{name}.k.weight")
        left_out = tuple(note for note, holds in notes.items() if holds)
        products.append((part.layer, q, mix, k, heads * part.d_head, left_out))
    return products


@dataclass(slots=True)
class _ProbedLayer:
    """What a layer attends with on a few tokens, differentiable by the parameters of its module:
    q (B, H, Q, D), k and v (B, G, K, D), sinks (H,), and the input (B, Q, H * D) of the product
    behind its heads."""

    module: nn.Module
    q: Tensor
    k: Tensor
    v: Tensor
    sinks: Tensor | None
    inputs: list[Tensor] = field(default_factory=list)

    @property
    def heads(self) -> int:
        """How many heads there are; the key groups are numbered after them."""
        return self.q.shape[1]


# name, axis, and by head (then by key group, numbered after all heads) its places along the axis
_HeadRows = tuple[str, int, dict[int, Tensor]]


def slice_layers(
    config: TransformersConfig, tensors: Mapping[str, Tensor], off: HeadSet
) -> tuple[TransformersConfig, dict[str, Tensor]]:
    """The configuration and tensors of a model of transformers without these heads.

    Raises HgvizError where weights of these heads are not theirs alone.
    """
    if not off:
        return config, dict(tensors)
    if not config.uses_interface:
        _refuse(config, "its class has its own attention code")
    network, sliced, remaining = build(config, tensors, "cpu", torch.float32), dict(tensors), []
    for layer in config.layers:
        if config.remaining:
            before = config.remaining[layer.index]
        else:
            count = len(layer.heads)
            before = RemainingHeads(layer.name, layer.heads, count, count // layer.shared)
        heads = tuple(head for head in layer.heads if (layer.index, head) not in off)
        remaining.append(RemainingHeads(before.name, heads, before.of, before.groups))
        if heads != layer.heads:
            _slice_layer(network, sliced, layer, before, heads)
    smaller = config.replace(remaining=tuple(remaining))
    keys = standard_keys(smaller, sliced)
    hgviz_only = "" if keys is not None else why_hgviz_only(remaining, sliced)
    return smaller.replace(data=keys or config.data, hgviz_only=hgviz_only), sliced


def _slice_layer(
    network: Transformers,
    tensors: dict[str, Tensor],
    layer: Layer,
    before: RemainingHeads,
    heads: Sequence[int],
) -> None:
    """Keep the weights of these heads of a layer, and those that all heads use."""
    config, probed = network.config, _probe(network, layer)
    places = [before.heads.index(head) for head in heads] or [0]  # no class computes without any
    staying = {*places, *(probed.heads + before.keys[place] for place in places)}
    for name, axis, owners in _rows_by_head(network, layer, probed):
        removed = [rows for unit, rows in owners.items() if unit not in staying]
        if not removed:
            continue
        own, shape = name_among(network.net, name, tensors), network.net.get_parameter(name).shape
        if not own or tensors[own].shape != shape:
            _refuse(config, f"{name} has another shape in its file")
        left = (~torch.stack(removed).any(0)).nonzero()[:, 0]
        tensors[own] = tensors[own].index_select(axis, left).contiguous()
    output = name_among(network.net, config.output_weights[layer.index], tensors)
    weight = tensors[output].unflatten(1, (probed.heads, -1))[:, places]
    tensors[output] = (weight if heads else torch.zeros_like(weight)).flatten(1).contiguous()


def _probe(network: Transformers, layer: Layer) -> _ProbedLayer:
    """What a layer attends with on a few tokens, differentiable by its own parameters."""
    found: list[_ProbedLayer] = []

    def watch(index: int, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, sinks: Any) -> Any:
        if index != layer.index:
            return None
        found.append(_ProbedLayer(module, q, k, v, sinks))
        batch, heads, queries, _ = q.shape
        return _random_like(v, batch, queries, heads, v.shape[-1])

    def end_pass(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if found:
            found[0].inputs.append(inputs[0])
            raise PassEnded

    output = network.projections[layer.index]
    assert output is not None
    module = network.net.get_submodule(layer.name).requires_grad_(True)
    with output.register_forward_pre_hook(end_pass), suppress(PassEnded), torch.enable_grad():
        example = network.example(PROBE_TOKENS, PROBE_TOKENS)
        network.compute(example, ActivePass(network, watch=watch))
    if not found or found[0].module is not module or not found[0].inputs:
        _refuse(network.config, f"hgviz did not find the heads of {layer.name}")
    return found[0]


def _random_like(like: Tensor, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(like)


def _rows_by_head(
    network: Transformers, layer: Layer, probed: _ProbedLayer, limit: int = 2**16
) -> list[_HeadRows]:
    """The parameters of a layer that go by heads or key groups, at most so many of each.

    Raises HgvizError where its queries do not go by heads.
    """
    config = network.config
    if config.output_weights.count(config.output_weights[layer.index]) > 1:
        _refuse(config, f"{layer.name} shares its weights with other layers")
    dependencies, rows = _dependencies(probed, limit), []
    queries_by_head = probed.heads == 1
    for name, _ in probed.module.named_parameters():
        places = {unit: axes[name] for unit, axes in dependencies.items() if name in axes}
        if len(places) < 2:
            continue
        dimensions = len(next(iter(places.values())))
        for axis in range(dimensions):  # along which no place belongs to two heads
            owners = {unit: axes[axis] for unit, axes in places.items()}
            if int(torch.stack([*owners.values()]).sum(0).max()) <= 1:
                rows.append((f"{layer.name}.{name}", axis, owners))
                queries_by_head |= min(owners) < probed.heads and dimensions > 1
                break
    if not queries_by_head:
        _refuse(config, f"the queries of {layer.name} are not separate for each head")
    return rows


def _dependencies(probed: _ProbedLayer, limit: int) -> dict[int, dict[str, list[Tensor]]]:
    """By head and then by key group: each parameter that it depends on, with the places (bool)
    along each axis. The gradients of the probe are used up."""
    heads, groups = probed.heads, probed.k.shape[1]
    (inputs,) = probed.inputs
    units: dict[int, list[Tensor]] = {}
    for head in range(min(heads, limit)):
        sinks = [] if probed.sinks is None else [probed.sinks.reshape(-1)[head]]
        units[head] = [probed.q[:, head], inputs.unflatten(-1, (heads, -1))[..., head, :], *sinks]
    if groups > 1:  # one group stays as long as there is a head
        for group in range(min(groups, limit)):
            units[heads + group] = [probed.k[:, group], probed.v[:, group]]
    names, parameters = zip(*probed.module.named_parameters(), strict=True)
    dependencies: dict[int, dict[str, list[Tensor]]] = {}
    for unit, outputs in units.items():
        outputs = [output for output in outputs if output.requires_grad]
        slopes: Sequence[Tensor | None] = torch.autograd.grad(
            outputs, parameters, [_random_like(output, *output.shape) for output in outputs],
            retain_graph=True, allow_unused=True,
        ) if outputs else ()  # fmt: skip
        dependencies[unit] = {
            name: [
                (slope != 0).movedim(axis, 0).reshape(size, -1).any(1)
                for axis, size in enumerate(slope.shape)
            ]
            for name, slope in zip(names, slopes, strict=False)
            if slope is not None and slope.any()
        }
    probed.module.requires_grad_(False)
    return dependencies


# --- compensation ---------------------------------------------------------------------------------


def compensate(
    checkpoint: Checkpoint, model: Model, off: HeadSet, texts: Sequence[Tokens], how: Compensation
) -> Checkpoint:
    """The checkpoint changed to make up for heads that go: "mean" adds their mean contribution to
    b_O, "lsq" multiplies the heads that stay by gates (see fit_gates). Looks at the first texts, up
    to COMPENSATION_TOKENS. Raises HgvizError where the weights cannot be changed so."""
    if how == "none":
        return checkpoint
    tokens, few = 0, []
    for text in texts:
        if tokens < COMPENSATION_TOKENS:
            few.append(text)
        tokens += math.prod(text.shape)
    if how == "mean":
        return add_to_biases(checkpoint, mean_contexts(model.module, model.spec, off, few))
    return scale_heads(checkpoint, fit_gates(model.module, model.spec, off, few))


@torch.inference_mode()
def mean_contexts(
    module: Network, spec: ModelSpec, off: HeadSet, texts: Sequence[Tokens]
) -> dict[HeadId, Tensor]:
    """Mean contexts (D,) of these heads in the whole model, over all real positions; float64.

    Raises HgvizError where the product behind the heads of a layer is not known.
    """
    layers = [layer for layer in spec.layers if any(head.layer == layer.index for head in off)]
    parts = _own_projections(module, [layer.index for layer in layers])
    sums: dict[HeadId, Any] = dict.fromkeys(off, 0.0)
    counts = dict.fromkeys(off, 0)
    for done, text in enumerate(texts, 1):
        inputs = _projection_inputs(module, text, Run(), parts)
        for layer, x in zip(layers, inputs, strict=True):
            contexts = _real_rows(x, spec, layer, text).unflatten(-1, (len(layer.heads), -1))
            for head in (head for head in off if head.layer == layer.index):
                place = layer.heads.index(head.head)
                sums[head] = sums[head] + contexts[:, place].double().sum(0)
                counts[head] += len(contexts)
        progress(done, len(texts), "computing means")
    return {head: total / max(1, counts[head]) for head, total in sums.items()}


@torch.inference_mode()
def fit_gates(
    module: Network, spec: ModelSpec, off: HeadSet, texts: Sequence[Tokens]
) -> dict[HeadId, float]:
    """Gates of the heads that stay, from the first layer on that loses one, layer after layer.

    They minimise |sum_h x_h c_h W_O^h - a|^2 + |x - 1|^2 over the positions of the texts, with
    contexts c behind layers that are pruned and gated already, and a the same sum in the whole
    model (Kwon et al. 2022, section 4.3: what LSMR with damp 1 converges to). Raises HgvizError
    where the product behind the heads of such a layer is not known.
    """
    first = min(head.layer for head in off)
    remaining = {
        layer.index: [head for head in layer.heads if (layer.index, head) not in off]
        for layer in spec.layers[first:]
    }
    layers = [layer for layer in spec.layers[first:] if remaining[layer.index]]
    parts = _own_projections(module, [layer.index for layer in layers])
    gates: dict[HeadId, float] = {}
    like = next(module.parameters())
    for done, (layer, part) in enumerate(zip(layers, parts, strict=True), 1):
        heads = remaining[layer.index]
        places = [layer.heads.index(head) for head in heads]
        factors = {
            other.index: like.new_tensor(
                [[gates.get(HeadId(other.index, head), 1.0) for head in other.heads]]
            )
            for other in layers[: done - 1]
        }
        pruned = Run(off, gates=factors)
        solution = _solve_gates(module, spec, part, places, pruned, texts)
        gates |= {HeadId(layer.index, head): x for head, x in zip(heads, solution, strict=True)}
        progress(done, len(layers), "fitting gates")
    return gates


def _solve_gates(
    module: Network,
    spec: ModelSpec,
    part: Attention | ExternalLayer,
    places: Sequence[int],
    pruned: Run,
    texts: Sequence[Tokens],
) -> list[float]:
    """The gates of the heads at some places of a layer, by the normal equations."""
    layer, width, whole = part.layer, part.d_head, part.o.weight.double()
    columns = [place * width + i for place in places for i in range(width)]
    weight = whole[:, columns]  # (d, h * D)
    inner = weight.new_zeros(len(columns), len(columns))
    cross = weight.new_zeros(len(columns), weight.shape[0])
    for text in texts:
        a, c = (
            _real_rows(_projection_inputs(module, text, run, [part])[0], spec, layer, text).double()
            for run in (Run(), pruned)
        )
        inner += c[:, columns].T @ c[:, columns]
        cross += c[:, columns].T @ (a @ whole.T)

    def sums_by_head(x: Tensor) -> Tensor:  # (h * D, h * D) -> (h, h)
        return x.unflatten(0, (-1, width)).unflatten(2, (-1, width)).sum((1, 3))

    gram = sums_by_head(inner * (weight.T @ weight))  # of the heads' contributions
    aims = (cross * weight.T).unflatten(0, (-1, width)).sum((1, 2))
    damped = gram + DAMPING**2 * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    solution: list[float] = (1 + torch.linalg.solve(damped, aims - gram.sum(1))).tolist()
    return solution


def _own_projections(module: Network, layers: Sequence[int]) -> list[Attention | ExternalLayer]:
    """These layers, each with an output projection of its own. Raises HgvizError for others."""
    parts = output_projections(module)
    outputs = [part.o for part in parts]
    own = {part.layer.index: part for part in parts if outputs.count(part.o) == 1}
    for layer in layers:
        _require_compensable(layer in own, layer)
    return [own[layer] for layer in layers]


def _require_compensable(condition: bool, layer: int) -> None:
    require(
        condition,
        f"layer {layer} cannot be compensated: "
        "hgviz did not find an output projection of this layer alone",
        "Choose --compensate none",
    )


def _projection_inputs(
    module: Network, text: Tokens, run: Run, parts: Sequence[Attention | ExternalLayer]
) -> list[Tensor]:
    """What goes into the output projection of each layer, (B, Q, H * D); the pass ends with the
    last of them."""
    pieces: dict[nn.Module, list[Tensor]] = {part.o: [] for part in parts}

    def record(projection: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        pieces[projection].append(inputs[0])

    def end_pass(*_: Any) -> None:
        raise PassEnded

    last = parts[-1]  # an own layer reads a long text in pieces
    end = last if isinstance(last, Attention) else last.o
    with ExitStack() as hooks, suppress(PassEnded):
        for part in parts:
            hooks.enter_context(part.o.register_forward_pre_hook(record))
        hooks.enter_context(end.register_forward_hook(end_pass))
        module(text, run)
    inputs = [torch.cat(pieces[part.o], -2) for part in parts]
    for part, x in zip(parts, inputs, strict=True):  # else arranged otherwise
        _require_compensable(x.dim() == 3 and len(x) == text.shape[0], part.layer.index)
    return inputs


def _real_rows(x: Tensor, spec: ModelSpec, layer: Layer, text: Tokens) -> Tensor:
    """(B, Q, ...) -> (P, ...): the rows of a layer's queries that stand for real tokens."""
    level = spec.levels[layer.level]
    if spec.two_texts and level.sequence == "source" and text.source is not None:
        text = text.source
    keep = text.keep
    if keep is None:
        keep = torch.ones(text.shape, dtype=torch.bool, device=x.device)
    # a group begins with a real token, or has none
    first = (torch.arange(x.shape[1], device=keep.device) - level.apart) * (level.stride or 1)
    first, last = (first + level.apart).clamp(min=0), keep.shape[1] - 1
    return x[keep[:, first.clamp(max=last)] & (first <= last)]


# --- a folder of its own --------------------------------------------------------------------------


def write_pruned(checkpoint: Checkpoint, off: HeadSet, form: Form, folder: Path) -> Path:
    """Write a checkpoint without these heads into a folder; the file of its weights.

    smaller: hgviz's own format, of models of transformers their own with fewer numbers. zeroed: the
    files it was read from, with zeros in W_O. Raises HgvizError where it cannot be written.
    """
    if form == "zeroed":
        return checkpoints.rewrite(zero_heads(checkpoint, off), folder)
    smaller = remove_heads(checkpoint, off)
    if isinstance(checkpoint.config, TransformersConfig):
        return checkpoints.rewrite(smaller, folder)
    checkpoints.convert(smaller, folder)
    return folder / WEIGHTS


@contextmanager
def staged_folder(out: Path, force: bool = False) -> Iterator[Path]:
    """A folder to write into, which becomes `out` where nothing fails, and else disappears.

    force: `out` may hold a checkpoint, which is replaced as a whole at the end. Raises HgvizError
    where it is not empty otherwise, or cannot be made.
    """
    out = out.absolute()
    replaces = force and (out / CONFIG).is_file()
    do = "Choose another folder" if force else "Choose another folder, or replace it with --force"
    checkpoints.require_free(out, replaces, do)
    stage = out.with_name(f".{out.name}.new")
    missing = [parent for parent in out.parents if not parent.exists()]
    with path_errors(out, "could not be written"):
        if stage.exists():  # of a run that was killed
            shutil.rmtree(stage)
        stage.mkdir(parents=True)
    try:
        try:
            yield stage
        except HgvizError as error:  # people know the folder by its own name
            what = error.what.replace(stage.name, out.name)
            raise HgvizError(what, error.do, error.details) from None
        with path_errors(out, "could not be written"):
            if replaces:
                replaced = out.with_name(f".{out.name}.old")
                out.rename(replaced)
                stage.rename(out)
                shutil.rmtree(replaced, ignore_errors=True)
                return
            if not out.exists():
                stage.rename(out)
                return
            for path in sorted(stage.iterdir(), key=lambda path: path.name == CONFIG):
                path.rename(out / path.name)  # config.json last: before it, this is no checkpoint
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        with suppress(OSError):  # they are not empty where all went well
            for parent in missing:
                parent.rmdir()


# --- proof ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Latency:
    """Median processor time of one pass on one thread, in milliseconds."""

    batch: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.before / self.after

    def to_dict(self) -> dict[str, Any]:
        """All fields and the ratio."""
        return {**asdict(self), "ratio": self.ratio}


@dataclass(frozen=True, slots=True)
class ProofTexts:
    """What logits are compared on: batches of texts from a source that has so many examples; a
    language model's are windows of so many texts."""

    batches: tuple[Tokens, ...] = field(repr=False)
    source: str
    asked: Asked
    examples: int
    texts: int = 0

    @property
    def count(self) -> int:
        """How many texts are in the batches."""
        return sum(batch.shape[0] for batch in self.batches)

    @property
    def amount(self) -> str:
        """How many texts of the source are in the batches, in words."""
        return describe_sample(self.asked, self.examples, self.texts, self.count)


@dataclass(frozen=True, slots=True)
class Proof:
    """A pruned model compared with the whole model whose heads are off.

    difference: the largest absolute difference of their logits, computed in dtype, on the texts
    that were read; rough: the same in float32 where dtype is float64, because logits this large
    agree no better in float32. largest: the largest logit. limit: the largest difference that is
    allowed. parameters, size and latency:
    before (the whole model, nothing off) and after; latency is of passes in float32, none of zeroed
    weights, which take as long as others; size is bytes of tensors in the checkpoint's precision.
    empty: layers without any head left. opens: what opens a smaller model of transformers.
    left_out: files that are not copied since they may hold weights of the whole model.
    """

    form: Form
    path: Path
    spec: ModelSpec
    off: HeadSet
    compensation: str
    difference: float
    largest: float
    dtype: str
    parameters: tuple[int, int]
    size: tuple[int, int]
    latency: tuple[Latency, ...]
    read: ProofTexts
    empty: tuple[int, ...] = ()
    opens: str = ""
    left_out: tuple[str, ...] = ()
    rough: float | None = None
    limit: ClassVar[float] = MAX_DIFFERENCE

    def to_dict(self) -> dict[str, Any]:
        """The proof as JSON values."""
        return {
            "form": self.form, "path": str(self.path), "off": sorted(map(str, self.off)),
            "heads": len(self.spec.heads) - len(self.off), "compensation": self.compensation,
            "difference": self.difference, "largest": self.largest, "dtype": self.dtype,
            "texts": self.read.count, "source": self.read.source, "compared": self.read.amount,
            "parameters": list(self.parameters), "bytes": list(self.size),
            "latency": [latency.to_dict() for latency in self.latency],
            "runtime": "PyTorch", "timed": "float32", "threads": 1,
            "empty_layers": list(self.empty), "left_out": list(self.left_out),
            **({"opens": self.opens} if self.opens else {}),
        }  # fmt: skip


def prove(
    before: Checkpoint,
    changed: Checkpoint,
    weights: Path,
    model: Model,
    off: HeadSet,
    texts: ProofTexts,
    form: Form,
    compensation: Compensation,
    path: Path,
) -> Proof:
    """Compare a pruned model, read again from its file of weights, with the masked model.

    before: the checkpoint of the open model; changed: the same with its compensation, which the
    masked model has as well; path: where the folder will be. Raises HgvizError where logits differ
    by more than MAX_DIFFERENCE.
    """
    rough, dtype = None, ""
    exported = runner_of(checkpoints.read(weights), "float32")
    for dtype in DTYPES:
        after = exported if dtype == "float32" else runner_of(checkpoints.read(weights), dtype)
        masked = runner_of(changed, dtype, off)
        difference, largest = largest_difference(
            masked, after, texts.batches, f"comparing logits in {dtype}"
        )
        if difference <= MAX_DIFFERENCE:
            break
        rough = rough or difference  # float32 adds up in another order
    require(
        difference <= MAX_DIFFERENCE,
        f"the logits of the pruned model differ from the masked model by {difference:.1e}, "
        f"more than {MAX_DIFFERENCE:.0e}: nothing was saved",
        "Report this model as a bug",
    )
    left = before if form == "zeroed" else remove_heads(before, off)
    latency: tuple[Latency, ...] = ()
    if form == "smaller":  # zeros are multiplied like other numbers
        whole = runner(model.module)
        note = "measuring speed"
        for count in TIMED_BATCHES:
            batch = timed_batch(texts.batches[0], count)
            latency += (measure_latency(whole, exported, batch, note),)
    opens = opened_by(left) if form == "smaller" else ""
    own_files = opens or form == "zeroed"
    left_out = checkpoints.files_beside(before, weights.parent)[1] if own_files else ()
    proof = Proof(
        form, path, model.spec, off, compensation, difference, largest, dtype,
        read=texts, parameters=(count_parameters(before), count_parameters(left)),
        size=(count_bytes(before), count_bytes(left)),
        latency=latency,
        empty=tuple(layer.index for layer in model.spec.layers
                    if {HeadId(layer.index, head) for head in layer.heads} <= off),
        opens=opens, left_out=tuple(map(str, left_out)), rough=rough,
    )  # fmt: skip
    progress(1, 1, "saving")  # cancelled here, nothing is saved: the folder has no name yet
    return proof


def runner(module: Network, off: HeadSet = frozenset()) -> Runner:
    """A function from texts to the logits of a model with these heads off; states and signals are
    converted to the precision of its weights."""
    dtype = next(module.parameters()).dtype

    @torch.inference_mode()
    def run(text: Tokens) -> Tensor:
        text = text.map(lambda x: x.to(dtype) if x.is_floating_point() else x)
        return module(text, Run(off))

    return run


def runner_of(checkpoint: Checkpoint, dtype: str, off: HeadSet = frozenset()) -> Runner:
    """The runner of a checkpoint, on the CPU."""
    config, tensors, network = checkpoint.config, checkpoint.tensors, checkpoint.network
    return runner(module_of(config, tensors, "cpu", DTYPES[dtype], network), off)


def runner_without(model: Model, off: HeadSet) -> Runner:
    """The runner of an open model that really lacks these heads, on the CPU in float32.

    Nothing is written. Raises HgvizError where it cannot be made smaller.
    """
    return runner_of(remove_heads(checkpoint_of(model), off), "float32")


def checkpoint_of(model: Model) -> Checkpoint:
    """The weights of an open model as a checkpoint without a file; on the CPU nothing is copied."""
    module: Any = getattr(model.module, "net", model.module)
    tensors = {name: tensor.cpu() for name, tensor in module.state_dict().items()}
    return Checkpoint(model.config, tensors, model.spec.digest, Path())


def count_parameters(checkpoint: Checkpoint) -> int:
    """How many numbers a checkpoint has."""
    return sum(tensor.numel() for tensor in checkpoint.tensors.values())


def count_bytes(checkpoint: Checkpoint) -> int:
    """Bytes of a checkpoint's tensors, in their own precision."""
    return sum(tensor.nbytes for tensor in checkpoint.tensors.values())


def largest_difference(
    first: Runner, second: Runner, texts: Sequence[Tokens], note: str = ""
) -> tuple[float, float]:
    """The largest absolute difference of two models' logits, and the first's largest logit.

    Rows of padding do not count; where rows are positions of several tokens, all do. NaN differs
    infinitely.
    """
    difference, largest = 0.0, 0.0
    for done, text in enumerate(texts, 1):
        for row, (a, b) in enumerate(zip(first(text), second(text), strict=True)):
            keep = None if text.keep is None or a.ndim == 1 else text.keep[row]
            real = ... if keep is None or len(keep) != len(a) else keep
            apart = float((a[real] - b[real]).abs().max())
            difference = math.inf if math.isnan(apart) else max(difference, apart)
            largest = max(largest, float(a[real].abs().max()))
        progress(done, len(texts), note)
    return difference, largest


def measure_latency(before: Runner, after: Runner, text: Tokens, note: str) -> Latency:
    """How long passes of two models over a batch take, by turns on one thread: medians of processor
    time, which is what one waits for on a quiet machine. Reports progress after each round."""
    times: tuple[list[float], list[float]] = ([], [])
    least, most = ROUNDS
    threads = torch.get_num_threads()
    start = time.thread_time()
    for done in range(most + 1):  # the first round warms up
        torch.set_num_threads(1)
        try:
            clock = [time.thread_time()]
            for run in (before, after):
                run(text)
                clock.append(time.thread_time())
        finally:
            torch.set_num_threads(threads)
        if done == 0:
            start = clock[-1]
            continue
        times[0].append(clock[1] - clock[0])
        times[1].append(clock[2] - clock[1])
        progress(done, most, note)
        if done >= least and time.thread_time() - start > SECONDS:
            break
    first, second = (1e3 * statistics.median(values) for values in times)
    return Latency(text.shape[0], first, second)


def opened_by(left: Checkpoint) -> str:
    """What opens a model of transformers without some heads, and why nothing else does; else ""."""
    if not isinstance(left.config, TransformersConfig) or not left.config.remaining:
        return ""
    why = left.config.hgviz_only
    if not why and left.config.replaces_softmax:
        why = "transformers would use softmax"
    return f"opens in hgviz only: {why}" if why else "opens in transformers"


# --- texts that models are compared on ------------------------------------------------------------


def example_batches(examples: Examples, spec: ModelSpec, limit: int) -> list[Tokens]:
    """Examples as batches, in their random order, until they have so many tokens."""
    batches: list[Tokens] = []
    for batch in (batch for block in examples.blocks() for batch in block):
        logits = 1 if examples.asked == "classes" else batch.ids.shape[1] * max(1, spec.vocabulary)
        size, tokens = max(1, LOGITS_AT_ONCE // logits), batch_tokens(batch, "cpu")
        for start in range(0, len(batch.rows), size):
            batches.append(tokens.map(itemgetter(slice(start, start + size))))
        limit -= int(batch.mask.sum())
        if limit <= 0:
            break
    return batches


def random_batch(spec: ModelSpec) -> Tokens:
    """RANDOM_TEXTS texts of random tokens, for whatever a model of texts reads."""
    count, generator = RANDOM_TEXTS, torch.Generator().manual_seed(0)
    length = min(TIMED_TOKENS, spec.max_positions or TIMED_TOKENS)

    def tokens() -> Tokens:
        return Tokens(torch.randint(spec.vocabulary, (count, length), generator=generator))

    if not spec.two_texts:
        return tokens()
    if spec.form == "encoder-decoder":
        return replace(tokens(), source=tokens())
    states = torch.randn(count, length, spec.width, generator=generator, dtype=torch.float64)
    return replace(tokens(), source=Tokens(states=states))


def timed_batch(texts: Tokens, count: int) -> Tokens:
    """So many texts from the first of a batch, over and over, of at most TIMED_TOKENS tokens."""

    def repeat(x: Tensor) -> Tensor:
        return x.repeat(-(-count // len(x)), *[1] * (x.ndim - 1))[:count]

    return texts.map(repeat).truncate(TIMED_TOKENS)
