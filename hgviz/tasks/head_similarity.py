"""How similar the heads of a layer are, by their weights or their maps, and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.metrics import HeadDistances, ratio
from hgviz.analysis.statistics import finite_or_none
from hgviz.analysis.tokens import Layout, TokenReading
from hgviz.core import Capture, HeadId, Layer, progress, progress_within
from hgviz.errors import require
from hgviz.language import sentence
from hgviz.models import checkpoints

if TYPE_CHECKING:
    from hgviz.models.model import Model

Doubles = NDArray[np.float64]

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
class ModelRedundancy:
    """How similar the heads of a model are, for each layer that has heads to compare."""

    name: str
    digest: str
    layers: tuple[Redundancy, ...]

    @property
    def is_of_weights(self) -> bool:
        """Whether measured on weights; otherwise on maps."""
        return self.layers[0].cosines

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers leave out, as sentences."""
        return tuple(map(sentence, dict.fromkeys(n for layer in self.layers for n in layer.notes)))

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz redundancy --json` prints it."""
        return {
            "kind": "weights" if self.is_of_weights else "maps",
            "model": self.name, "checkpoint": self.digest,
            "layers": [layer.to_dict() for layer in self.layers],
        }  # fmt: skip


def redundancy(model: str | Path | Model) -> ModelRedundancy:
    """How similar the heads of every layer are, by the weights of a checkpoint or an open model.

    Raises HgvizError where no layer computes scores from queries and keys.
    """
    progress(0, 1, "loading torch")
    from hgviz.models.pruning import checkpoint_of, query_key_products

    if isinstance(model, str | PathLike):
        name, checkpoint = Path(model).name, checkpoints.read(model)
    else:
        name, checkpoint = model.spec.name, checkpoint_of(model)
    products, layers = query_key_products(checkpoint), []
    for done, product in enumerate(products):
        progress(done, len(products), f"layer {product[0].index}")
        layers.append(redundancy_of_weights(*product))
    return _model_redundancy(name, checkpoint.digest, layers)


def redundancy_of_captures(captures: Sequence[Capture]) -> ModelRedundancy:
    """How similar the heads of every layer are, by their maps over all texts of some captures.

    Raises HgvizError for captures of several models, and for captures without maps.
    """
    from hgviz.store import open_capture

    require(
        len({capture.spec.digest for capture in captures}) == 1,
        "these captures are of several models",
        "Give captures of one model",
    )
    texts = [
        (capture, number)
        for capture in captures
        for number in ([item.number for item in capture.items] or [capture.item])
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
    layers = [
        Redundancy(spec.layers[layer], between.distances(), rows=between.rows)
        for layer, between in sorted(distances.items())
    ]
    return _model_redundancy(spec.name, spec.digest, layers)


def _model_redundancy(name: str, digest: str, layers: Sequence[Redundancy]) -> ModelRedundancy:
    require(
        layers,
        f"{name} has no heads that can be compared: no layer computes scores from queries and keys",
        "Choose a model with such layers",
    )
    return ModelRedundancy(name, digest, tuple(layers))


def redundancy_of_weights(
    layer: Layer, q: Doubles, mix: Doubles, k: Doubles, width: int, notes: tuple[str, ...] = ()
) -> Redundancy:
    """The redundancy of W_QK^(h) = q^T diag(mix_h) k of a layer: q (R, d), mix (H, R), k (R, d).

    width: H times the width of a head. No d x d matrix is formed.
    """
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
