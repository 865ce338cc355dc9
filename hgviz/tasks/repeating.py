"""How much heads repeat each other: measured by weights or by maps, and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HeadId, HgvizError, Layer, progress, progress_within

if TYPE_CHECKING:
    from hgviz.figures import Panel, Spec
    from hgviz.figures.charts import Line, Plot
    from hgviz.models.model import Model

Doubles = NDArray[np.float64]

WEIGHTS = "Cosine of what two heads compare tokens by, W_QK: 0 nothing in common, 1 the same"
MAPS = "Jensen-Shannon distance of the maps of two heads: 0 alike, 1 nothing in common"
SHARES = (0.9, 0.95, 0.99)  # of the energy, the sum of squares of singular values
NEGLIGIBLE = 1e-6  # of the largest singular value
MAP_ROWS = 512  # of each text


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Singular values (p,) from the largest on; most: how many there could be."""

    values: Doubles
    most: int

    @property
    def captured(self) -> Doubles:
        """(p,) the share of the energy that the largest so many hold."""
        energy = np.cumsum(self.values**2)
        return energy / (energy[-1] if energy[-1:] > 0 else 1.0)

    @property
    def rank(self) -> int:
        """How many are more than rounding."""
        return int((self.values > NEGLIGIBLE * self.values.max(initial=0.0)).sum())

    def ranks(self) -> dict[float, int]:
        """How many hold each of SHARES of the energy; 0 where there is none."""
        captured = self.captured
        if not captured[-1:].any():
            return dict.fromkeys(SHARES, 0)
        return {share: int(np.searchsorted(captured, share - 1e-12) + 1) for share in SHARES}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        ranks = {f"rank_{100 * share:.0f}": rank for share, rank in self.ranks().items()}
        return {"of": self.most, "rank": self.rank, **ranks, "values": self.values.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class Redundancy:
    """How similar the heads of a layer are, by their weights or by their maps.

    alike (H, H): cosines of vec(W_QK), W_QK^(h) = W_Q^(h)T W_K^(h) (Cordonnier, Loukas and Jaggi
    2020, section 3), or distances of maps; NaN where there is none. Of weights, stacked is the
    spectrum of all W_QK one below the other (H d, d), over_heads that of vec(W_QK) one below the
    other (H, d^2). Of maps, rows are how many were compared.
    """

    layer: Layer
    alike: Doubles
    stacked: Spectrum | None = None
    over_heads: Spectrum | None = None
    rows: int = 0
    notes: tuple[str, ...] = ()

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """The heads in the order of alike."""
        return tuple(HeadId(self.layer.index, head) for head in self.layer.heads)

    @property
    def cosines(self) -> bool:
        """Whether alike holds cosines, of which 1 is the same, else distances, of which 0 is."""
        return self.stacked is not None

    @property
    def pairs(self) -> list[tuple[HeadId, HeadId, float]]:
        """Every two heads, the most alike first; those without a number are left out."""
        numbered = [
            (self.heads[row], self.heads[column], float(self.alike[row, column]))
            for row, column in zip(*np.triu_indices(len(self.heads), 1), strict=True)
            if np.isfinite(self.alike[row, column])
        ]
        return sorted(numbered, key=lambda pair: -abs(pair[2]) if self.cosines else pair[2])

    @property
    def mean(self) -> float:
        """The mean of the sizes of alike over all pairs, NaN for a single head."""
        values = [abs(value) for *_, value in self.pairs]
        return float(np.mean(values)) if values else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        from hgviz.analysis.statistics import finite_or_none

        alike = [[finite_or_none(float(value)) for value in row] for row in self.alike]
        spectra = {"stacked": self.stacked, "over_heads": self.over_heads}
        return {
            "layer": self.layer.index, "name": self.layer.name, "heads": list(self.layer.heads),
            **{key: values.to_dict() for key, values in spectra.items() if values is not None},
            "mean": finite_or_none(self.mean),
            **({"cosines": alike} if self.cosines else {"distances": alike, "rows": self.rows}),
            "notes": list(self.notes),
        }  # fmt: skip


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
        every = dict.fromkeys(note for layer in self.layers for note in layer.notes)
        return tuple(f"{note[0].upper()}{note[1:]}." for note in every)

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz redundancy --json` prints it."""
        return {
            "kind": "weights" if self.of_weights else "maps",
            "model": self.name, "checkpoint": self.digest,
            "layers": [layer.to_dict() for layer in self.layers],
        }  # fmt: skip


def redundancy(given: str | Path | Model) -> Repeating:
    """How much the heads of every layer repeat each other, by the weights of a checkpoint or a
    model that is open.

    Errors: HgvizError where no layer has heads that make scores of queries and keys.
    """
    progress(0, 1, "loading torch")
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
    from hgviz.analysis.metrics import HeadDistances
    from hgviz.analysis.tokens import Layout, TokenReading
    from hgviz.store import open_capture

    if len({capture.spec.digest for capture in captures}) > 1:
        raise HgvizError(
            "these captures are of several models: "
            "the distances of one model's heads are taken over all texts",
            "Give captures of one",
        )
    texts = [(capture, item.number) for capture in captures for item in capture.items] or [
        (capture, capture.item) for capture in captures
    ]
    distances: dict[int, HeadDistances] = {}
    for done, (source, number) in enumerate(texts):
        capture = source if number == source.item else open_capture(source.path, number)
        progress(done, len(texts), f"text {done + 1}")
        readings: dict[str, TokenReading] = {}
        for layer, maps in enumerate(capture.maps):
            if maps is not None and maps.heads:
                heads = [HeadId(layer, head) for head in maps.heads]
                between = distances.setdefault(layer, HeadDistances(heads, MAP_ROWS))
                start = done + layer / len(capture.maps)
                with progress_within(start, start + 1 / len(capture.maps), len(texts)):
                    between.add([maps], Layout(capture, layer, readings))
    spec = captures[0].spec
    return _required(
        spec.name, spec.digest,
        [Redundancy(spec.layers[layer], between.distances(), rows=between.rows)
         for layer, between in sorted(distances.items())],
    )  # fmt: skip


def redundancy_panel(spec: Spec, found: Repeating, sources: Sequence[str | Path] = ()) -> Panel:
    """A figure of what was measured, ready to be drawn; sources: the checkpoint or the captures."""
    from hgviz.figures import Panel
    from hgviz.figures.charts import Grid, Grids, Plots, Repeats
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


def redundancy_of_weights(
    layer: Layer, q: Doubles, mix: Doubles, k: Doubles, width: int, notes: tuple[str, ...] = ()
) -> Redundancy:
    """The redundancy of W_QK^(h) = q^T diag(mix_h) k of a layer: q (R, d), mix (H, R), k (R, d).

    width: H times the width of a head. No d x d matrix is formed.
    """
    from hgviz.analysis.metrics import ratio

    core = np.linalg.qr(k.T)[1]  # (p, R)
    squares = np.linalg.eigvalsh(core @ ((q @ q.T) * (mix.T @ mix)) @ core.T)[::-1]
    grams = mix @ ((q @ q.T) * (k @ k.T)) @ mix.T  # (H, H) inner products of the W_QK
    sizes = np.sqrt(np.maximum(np.diag(grams), 0.0))
    cosines = ratio(grams, np.outer(sizes, sizes), np.nan)
    over_heads = np.sqrt(np.maximum(np.linalg.eigvalsh(grams)[::-1], 0.0))
    return Redundancy(
        layer, np.clip(cosines, -1.0, 1.0), Spectrum(np.sqrt(np.maximum(squares, 0.0)), width),
        Spectrum(over_heads, len(grams)), notes=notes,
    )  # fmt: skip


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
