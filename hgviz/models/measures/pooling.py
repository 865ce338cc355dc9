"""How a checkpoint weighs the places of a group where it pools them by a linear map."""

from __future__ import annotations

from typing import cast

from torch import nn

from hgviz.models.families.hourglass import Hourglass
from hgviz.models.model import Model


def pooling_norms(model: Model) -> tuple[tuple[float, ...] | None, ...]:
    """For each shortening, outside in, the part of each place in the group; None: all alike.

    The Frobenius norms of the (width, width) blocks of the linear map, divided by their sum;
    models.md A.8, "weight norms". A linear map that grows a position back has one source for each
    place, so that its norms change nothing.
    """
    module = model.module
    if not isinstance(module, Hourglass):
        return ()
    return tuple(_parts(one) for one in module.down)


def _parts(down: nn.Module) -> tuple[float, ...] | None:
    if not hasattr(down, "proj"):
        return None
    weight = cast(nn.Linear, down.proj).weight.detach().double()  # (d, k d)
    norms = weight.unflatten(1, (-1, len(weight))).norm(dim=(0, 2))
    return tuple(float(one) for one in norms / norms.sum())
