"""Which weights belong to which head: what a head costs, how it is cut out, what it compares by.

In hgviz's own families the rows of W_Q, W_K and W_V go by heads. For models of transformers
gradients say which rows of which weight belong to a head: where a query does not change with a row,
the row is not the head's, and its gradient is exactly zero, whatever the numbers. So fused
projections, biases, gates and norms by head are all found in one way, without names.

Shapes: B texts, H heads, G key groups, Q queries, D head width, R terms, d model width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import HeadCost, HeadSet, HgvizError, Layer
from hgviz.models.config import outline
from hgviz.models.huggingface import ActivePass, Transformers
from hgviz.models.layers import Attention, Network, attention_modules
from hgviz.models.pretrained import build, name_among, standard_keys
from hgviz.models.pretrained_config import RemainingHeads, TransformersConfig, why_hgviz_only
from hgviz.models.tensors import Checkpoint

PROBE_TOKENS = 5  # of the text whose gradients say which weights a head has
NO_COST = HeadCost((0, 0), (0, 0), 0)


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


# --- heads cut out of a model of transformers ----------------------------------------------------


class _ProbeDone(Exception):
    """A pass has come as far as it is needed."""


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
            raise _ProbeDone

    output = network.projections[layer.index]
    assert output is not None
    module = network.net.get_submodule(layer.name).requires_grad_(True)
    hook = output.register_forward_pre_hook(end_pass)
    try:
        with suppress(_ProbeDone), torch.enable_grad():
            example = network.example(PROBE_TOKENS, PROBE_TOKENS)
            network.compute(example, ActivePass(network, watch=watch))
    finally:
        hook.remove()
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
            name: _places_along_axes(slope)
            for name, slope in zip(names, slopes, strict=False)
            if slope is not None and slope.any()
        }
    probed.module.requires_grad_(False)
    return dependencies


def _places_along_axes(slope: Tensor) -> list[Tensor]:
    """By axis, at which places there is a slope (bool)."""
    return [
        (slope != 0).movedim(axis, 0).reshape(size, -1).any(1)
        for axis, size in enumerate(slope.shape)
    ]


# --- what heads compare by ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryKeyProducts:
    """W_QK of the heads of a layer, q^T diag(mix_h) k: q (R, d), mix (H, R), k (R, d), float64.

    R is H * D for ordinary heads. width: of the queries of all its heads together. notes: what W_QK
    leaves out of the scores.
    """

    layer: Layer
    q: NDArray[np.float64]
    mix: NDArray[np.float64]
    k: NDArray[np.float64]
    width: int
    notes: tuple[str, ...] = ()


def query_key_products(checkpoint: Checkpoint) -> tuple[QueryKeyProducts, ...]:
    """The W_QK of every layer of an own family that makes scores of queries and keys."""

    def array(tensor: Tensor) -> Any:
        return tensor.detach().double().cpu().numpy()

    products, tensors = [], checkpoint.tensors
    modules = outline(checkpoint.config).named_modules()
    parts = {part.layer.index: (name, part) for name, part in modules
             if isinstance(part, Attention)}  # fmt: skip
    for _, (name, part) in sorted(parts.items()):
        heads = len(part.layer.heads)
        if not heads or f"{name}.k.weight" not in tensors:
            continue
        mix = np.repeat(np.eye(heads), part.d_head, axis=1)
        if f"{name}.mix" in tensors:
            mix = array(tensors[f"{name}.mix"])
        q, k = (array(tensors[f"{name}.{side}.weight"]) for side in "qk")
        features = any(ACTIVATIONS[activation].features for activation in part.rule.activations)
        notes = {
            "queries and keys are taken before the rotary position embedding": part.rotary,
            "position scores are not included": part.relative or part.places is not None,
            "synthesised scores are not included": part.synthesis is not None,
            "linear attention uses features of queries and keys": features,
        }
        left_out = tuple(note for note, holds in notes.items() if holds)
        products.append(QueryKeyProducts(part.layer, q, mix, k, heads * part.d_head, left_out))
    return tuple(products)
