"""Models of transformers without some heads, in their own format: narrower weights.

Which rows of which weight a head is made of is not told by names but by slopes: where what a head
asks with does not change with a row, that row is not the head's (its slope is exactly zero,
whatever the numbers are). So fused projections, biases, gates and norms by head are found alike.
Shapes: B batch, H heads, G groups of keys, Q queries, D head width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from hgviz.core import HeadCost, HeadId, HeadSet, HgvizError, Layer
from hgviz.models.config.huggingface import Kept, TransformersConfig
from hgviz.models.huggingface import Running, Transformers
from hgviz.models.pretrained import build, restated, same, why_alone

TOKENS = 5  # of the texts that slopes are of
NO_WEIGHTS = HeadCost((0, 0), (0, 0), 0)


@dataclass(slots=True)
class Asked:
    """What a layer asks with, and the module that does: q (B, H, Q, D), k and v (B, G, K, D), sinks
    (H,), and what then goes on to the product behind its heads, given (B, Q, H * D)."""

    module: nn.Module
    q: Tensor
    k: Tensor
    v: Tensor
    sinks: Tensor | None
    given: list[Tensor] = field(default_factory=list)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many heads and groups of keys."""
        return self.q.shape[1], self.k.shape[1]


class _Enough(Exception):
    """A pass has shown what it was for."""


def smaller(
    config: TransformersConfig, tensors: Mapping[str, Tensor], layers: Sequence[Layer], off: HeadSet
) -> tuple[TransformersConfig, dict[str, Tensor]]:
    """The configuration and tensors without these heads.

    Errors: HgvizError where weights of these heads are not theirs alone.
    """
    if not off:
        return config, dict(tensors)
    if not config.asks:
        _refuse(config, "its class has attention code of its own")
    network = build(config, tensors, "cpu", torch.float32)
    changed, kept = dict(tensors), []
    for layer in layers:
        now = config.kept[layer.index] if config.kept else _whole(layer)
        heads = tuple(head for head in layer.heads if HeadId(layer.index, head) not in off)
        kept.append(Kept(now.name, heads, now.of, now.groups))
        if heads != layer.heads:
            _slice(network, changed, layer, now, heads)
    made = replace(config, kept=tuple(kept), box=[])
    data = restated(made, changed)
    alone = "" if data is not None else why_alone(kept, changed)
    return replace(made, data=data or config.stated, alone=alone), changed


def _whole(layer: Layer) -> Kept:
    heads = len(layer.heads)
    return Kept(layer.name, layer.heads, heads, heads // layer.shared)


# --- which rows are whose -------------------------------------------------------------------------


def _asked(network: Transformers, layer: Layer) -> Asked:
    """What a layer asks with on a few tokens, with slopes by the parameters of its module alone."""
    found: list[Asked] = []

    def watch(index: int, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, sinks: Any) -> Any:
        if index != layer.index:
            return None
        found.append(Asked(module, q, k, v, sinks))
        batch, heads, queries, _ = q.shape
        return _random_like(v, batch, queries, heads, v.shape[-1])

    def before(module: nn.Module, given: tuple[Any, ...]) -> None:
        if found:
            found[0].given.append(given[0])
            raise _Enough

    out = network.projections[layer.index]
    assert out is not None
    module = network.net.get_submodule(layer.name).requires_grad_(True)
    hook = out.register_forward_pre_hook(before)
    try:
        with torch.enable_grad():
            network._logits(network.example(TOKENS, TOKENS), Running(network, watch=watch))
    except _Enough:
        pass
    finally:
        hook.remove()
    if not found or found[0].module is not module or not found[0].given:
        _refuse(network.config, f"hgviz did not see what the heads of {layer.name} are made of")
    return found[0]


def _random_like(like: Tensor, *shape: int) -> Tensor:
    """Random numbers of a shape, of the precision and device of a tensor."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(like)


def _owners(asked: Asked, most: int) -> dict[int, dict[str, list[Tensor]]]:
    """By the number of a head, and that of a group of keys after all heads, at most so many of
    each: of each parameter that it depends on, by axis, on which places (bool). No more slopes are
    to be had by the module then."""
    heads, groups = asked.sizes
    names, parameters = zip(*asked.module.named_parameters(), strict=True)
    units = dict[int, list[Tensor]]()
    for head in range(min(heads, most)):
        given = asked.given[0].unflatten(-1, (heads, -1))[..., head, :]
        sinks = [] if asked.sinks is None else [asked.sinks.reshape(-1)[head]]
        units[head] = [asked.q[:, head], given, *sinks]
    if groups > 1:  # one group stays as long as there is a head
        for group in range(min(groups, most)):
            units[heads + group] = [asked.k[:, group], asked.v[:, group]]
    found = {}
    for unit, parts in units.items():
        sloped = [one for one in parts if one.requires_grad]
        slopes: Sequence[Tensor | None] = torch.autograd.grad(
            sloped, parameters, [_random_like(one, *one.shape) for one in sloped],
            retain_graph=True, allow_unused=True,
        ) if sloped else ()  # fmt: skip
        pairs = zip(names, slopes, strict=False)
        found[unit] = {
            name: _places(slope) for name, slope in pairs if slope is not None and slope.any()
        }
    asked.module.requires_grad_(False)
    return found


def _places(slope: Tensor) -> list[Tensor]:
    """By axis, at which places there is a slope (bool)."""
    axes = range(slope.dim())
    others = [[one for one in axes if one != axis] for axis in axes]
    return [(slope != 0).any(other) if other else slope != 0 for other in others]


def _rows(places: Mapping[int, list[Tensor]]) -> tuple[int, dict[int, Tensor]] | None:
    """Along which axis a parameter goes by heads, and which places are whose; None where it
    belongs to several at once."""
    for axis, _ in enumerate(next(iter(places.values()))):
        whose = {unit: one[axis] for unit, one in places.items()}
        if int(torch.stack([*whose.values()]).sum(0).max()) <= 1:
            return axis, whose
    return None


def _by_heads(
    network: Transformers, layer: Layer, asked: Asked, most: int = 2**16
) -> list[tuple[str, int, dict[int, Tensor]]]:
    """The parameters of a layer that go by heads: name, axis, and the rows (bool) along it of each
    head and then of each key group, at most so many of each.

    Errors: HgvizError where its queries do not go by heads.
    """
    config, heads = network.config, asked.sizes[0]
    if config.outputs.count(config.outputs[layer.index]) > 1:
        _refuse(config, f"{layer.name} shares its weights with other layers")
    owners, queries, found = _owners(asked, most), heads == 1, []
    for name, _ in asked.module.named_parameters():
        owned = {unit: one[name] for unit, one in owners.items() if name in one}
        rows = _rows(owned) if len(owned) > 1 else None
        if rows is None:
            continue
        axis, whose = rows
        queries = queries or (min(whose) < heads and len(next(iter(owned.values()))) > 1)
        found.append((f"{layer.name}.{name}", axis, whose))
    if not queries:
        _refuse(config, f"the queries of {layer.name} are not made head by head")
    return found


def head_weights(network: Transformers) -> tuple[HeadCost, ...]:
    """The weights of one head of each layer, as `smaller` removes them.

    Errors: HgvizError as smaller.
    """
    config, alike = network.config, dict[Any, HeadCost]()
    if not config.asks:
        _refuse(config, "its class has attention code of its own")
    if len({*config.outputs}) < len(config.outputs):
        _refuse(config, "its layers share their weights")
    found = []
    for layer in config.layers:
        module, out = network.net.get_submodule(layer.name), network.projections[layer.index]
        if out is None:
            _refuse(config, f"hgviz did not see what the heads of {layer.name} are put together by")
        kind = type(module), len(layer.heads), *(one.shape for one in module.parameters())
        if kind not in alike:
            alike[kind] = _weights_of_one(network, layer, out) if layer.heads else NO_WEIGHTS
        found.append(alike[kind])
    return tuple(found)


def _weights_of_one(network: Transformers, layer: Layer, out: nn.Linear) -> HeadCost:
    asked = _asked(network, layer)
    heads, sides = asked.sizes[0], [[0, 0], [0, 0]]
    sides[0] = [out.weight.numel() // heads, 2 * out.weight.numel() // heads]
    for name, axis, whose in _by_heads(network, layer, asked, most=2):
        parameter = network.net.get_parameter(name)
        for unit, side in ((0, sides[0]), (heads, sides[1])):
            if unit in whose:
                size = int(whose[unit].sum()) * parameter.numel() // parameter.shape[axis]
                side[0] += size
                side[1] += size * min(2, parameter.dim())  # a bias is only added
    queries, keys = ((size, flops) for size, flops in sides)
    return HeadCost(queries, keys, asked.q.shape[-1] + asked.v.shape[-1], keeps_one=True)


def _slice(
    network: Transformers,
    tensors: dict[str, Tensor],
    layer: Layer,
    now: Kept,
    left: Sequence[int],
) -> None:
    """Take out of the tensors what only heads have that are not left of a layer."""
    config, asked = network.config, _asked(network, layer)
    heads, places = asked.sizes[0], [now.heads.index(head) for head in left] or [0]
    staying = {*places, *(heads + now.keys[place] for place in places)}
    for name, axis, whose in _by_heads(network, layer, asked):
        gone = [one for unit, one in whose.items() if unit not in staying]
        if gone:
            _take(network, tensors, name, axis, ~torch.stack(gone).any(0))
    out = same(network.net, config.outputs[layer.index], tensors)
    weight = tensors[out].unflatten(1, (heads, -1))[:, places]
    tensors[out] = (weight if left else torch.zeros_like(weight)).flatten(1).contiguous()


def _take(
    network: Transformers, tensors: dict[str, Tensor], name: str, axis: int, stay: Tensor
) -> None:
    """Some rows alone of a tensor, which is called so in the model."""
    own, shape = same(network.net, name, tensors), network.net.get_parameter(name).shape
    if not own or tensors[own].shape != shape:
        _refuse(network.config, f"{name} is not in its file as it is computed with")
    tensors[own] = tensors[own].index_select(axis, stay.nonzero()[:, 0]).contiguous()


def _refuse(config: TransformersConfig, why: str) -> NoReturn:
    raise HgvizError(
        f"this {config.family} is not written without heads: {why}", "Choose --form zeroed"
    )
