"""How much heads repeat each other: measured, and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import Capture, HgvizError, progress, progress_within
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.analysis.metrics import Redundancy
    from hgviz.figures import Panel, Spec
    from hgviz.figures.charts import Line, Plot
    from hgviz.models.model import Model

WEIGHTS = "Cosine of what two heads compare tokens by, W_QK: 0 nothing in common, 1 the same"
MAPS = "Jensen-Shannon distance of the maps of two heads: 0 alike, 1 nothing in common"


@dataclass(frozen=True, slots=True)
class Repeating:
    """How much the heads of a model repeat each other, layer by layer; at least one is there."""

    name: str
    digest: str
    layers: tuple[Redundancy, ...]

    @property
    def of_weights(self) -> bool:
        """Whether by its weights, else by maps."""
        return self.layers[0].cosines

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers leave out, as sentences."""
        every = dict.fromkeys(note for one in self.layers for note in one.notes)
        return tuple(f"{note[0].upper()}{note[1:]}." for note in every)

    def facts(self) -> dict[str, Any]:
        """What JSON says of it."""
        return {
            "kind": "weights" if self.of_weights else "maps",
            "model": self.name, "checkpoint": self.digest,
            "layers": [one.facts() for one in self.layers],
        }  # fmt: skip


def redundancy(given: Path_ | Model) -> Repeating:
    """How much the heads of every layer repeat each other, by the weights of a checkpoint or a
    model that is open.

    Errors: HgvizError where no layer has heads that make scores of queries and keys.
    """
    progress(0, 1, "loading torch")
    from hgviz.analysis.metrics import redundancy_of_weights
    from hgviz.models import checkpoints
    from hgviz.models.head_weights import query_key_products
    from hgviz.models.pruning import checkpoint_of

    if isinstance(given, str | PathLike):
        name, read = Path(given).name, checkpoints.read(given)
    else:
        name, read = given.spec.name, checkpoint_of(given)
    every, found = query_key_products(read), []
    for done, one in enumerate(every):
        progress(done, len(every), f"layer {one.layer.index}")
        found.append(redundancy_of_weights(one.layer, one.q, one.mix, one.k, one.width, one.notes))
    return _required(name, read.digest, found)


def redundancy_of_captures(captures: Sequence[Capture]) -> Repeating:
    """The same by the maps of some captures of one model, and of all texts of each.

    Errors: HgvizError for captures of several models, and for one without maps of any head.
    """
    from hgviz.analysis.metrics import MapRedundancy
    from hgviz.store import open_capture

    if len({one.spec.digest for one in captures}) > 1:
        raise HgvizError(
            "these captures are of several models: "
            "the distances of one model's heads are taken over all texts",
            "Give captures of one",
        )
    every = [(one, item.number) for one in captures for item in one.items] or [
        (one, one.item) for one in captures
    ]
    found = MapRedundancy()
    for done, (capture, number) in enumerate(every):
        one = capture if number == capture.item else open_capture(capture.path, number)
        progress(done, len(every), f"text {done + 1}")
        with progress_within(done, done + 1, len(every)):
            found.add(one)
    spec = captures[0].spec
    return _required(spec.name, spec.digest, found.layers())


def redundancy_panel(spec: Spec, found: Repeating, sources: Sequence[Path_] = ()) -> Panel:
    """A figure of what was measured, ready to be drawn; sources: the checkpoint or the captures."""
    from hgviz.figures import Panel
    from hgviz.figures.charts import Plots
    from hgviz.figures.matrices import Grid, Grids, Repeats
    from hgviz.figures.spec import bare_name

    grids = []
    for one in found.layers:
        heads = tuple(str(head.head) for head in one.heads)
        grids.append(Grid(f"Layer {one.layer.index}", one.alike, heads, heads, "Head", "Head"))
    unit, limits, lines, ribbon = MAPS, (0.0, 1.0), _of_maps(found.layers), ""
    if found.of_weights:
        unit, limits, lines = WEIGHTS, (-1.0, 1.0), _of_weights(found.layers)
        ribbon = "Shaded: from the least to the most of all layers."
    content = Repeats(
        Grids(tuple(grids), unit, limits=limits),
        Plots(lines, ribbon=ribbon if len(grids) > 1 else ""),
        title="How much heads repeat each other", more=bare_name(found.name), notes=found.notes,
        about={"model": bare_name(found.name), "checkpoint": found.digest},
    )  # fmt: skip
    return Panel(spec, content, tuple(map(str, sources)))


# --- inside ---------------------------------------------------------------------------------------


def _required(name: str, digest: str, found: Sequence[Redundancy]) -> Repeating:
    if not found:
        raise HgvizError(
            f"{name} has no heads that can be compared: "
            "no layer of it makes scores of queries and keys",
            "Choose a model that has such layers",
        )
    return Repeating(name, digest, tuple(found))


def _of_weights(found: Sequence[Redundancy]) -> tuple[Plot, ...]:
    """How many dimensions hold how much: layer by layer, and as a spectrum."""
    from hgviz.analysis.metrics import SHARES
    from hgviz.figures.charts import Plot

    spectra = [one.stacked for one in found if one.stacked is not None]
    named: dict[str, list[float]] = {"there are": [one.most for one in spectra]}
    for share in SHARES[::-1]:
        named[f"hold {100 * share:.0f} %"] = [one.ranks()[share] for one in spectra]
    layers = Plot("Dimensions of all heads", "Layer", "Dimensions",
                  tuple(_line(found, name, values) for name, values in named.items()),
                  _ticks(found))  # fmt: skip
    longest = max(len(one.values) for one in spectra)
    held = np.stack([np.pad(one.captured, (0, longest - len(one.values)), mode="edge")
                     for one in spectra])  # fmt: skip
    return layers, Plot("What the largest hold", "Dimensions, largest first", "Share of energy",
                        (_mean(held),), most=1.0)  # fmt: skip


def _mean(held: np.ndarray) -> Line:
    from hgviz.figures.charts import Line

    numbers = np.arange(1, held.shape[1] + 1, dtype=float)
    ends = (held.min(0), held.max(0)) if len(held) > 1 else (None, None)
    return Line("mean of layers", numbers, held.mean(0), *ends)


def _of_maps(found: Sequence[Redundancy]) -> tuple[Plot, ...]:
    """How far apart the heads of each layer are, and the two that are nearest."""
    from hgviz.figures.charts import Plot

    named = {
        "mean of two heads": [one.mean for one in found],
        "the two most alike": [one.pairs[0][2] if one.pairs else np.nan for one in found],
    }
    return tuple(
        Plot(f"{name[0].upper()}{name[1:]}", "Layer", "Distance", (_line(found, name, values),),
             _ticks(found), most=1.0)
        for name, values in named.items()
    )  # fmt: skip


def _line(found: Sequence[Redundancy], name: str, values: Sequence[float]) -> Line:
    from hgviz.figures.charts import Line

    return Line(name, np.array([one.layer.index for one in found], float), np.array(values, float))


def _ticks(found: Sequence[Redundancy]) -> tuple[tuple[float, str], ...]:
    """The numbers of at most a dozen layers."""
    numbers = [one.layer.index for one in found]
    return tuple((float(at), str(at)) for at in numbers[:: -(-len(numbers) // 12)])
