"""A model rewritten so that all heads of a layer mix the same queries and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import ModelSpec, Score, Step, Task
from hgviz.tasks.opening import Path_, load
from hgviz.tasks.removing import last, proof_texts
from hgviz.tasks.scoring import evaluate

if TYPE_CHECKING:
    from hgviz.models.formats.checkpoint import Checkpoint
    from hgviz.models.surgery.sharing import Given, Products


@dataclass(frozen=True, slots=True)
class Collaboration:
    """A model whose heads share queries and keys, beside the one it was made of.

    width: how many terms they share in each layer. errors: by layers, how far the products W_QK are
    off, |T - T'| / |T|; 0 where they are what they were. difference: the largest of logits on so
    many texts from source, computed in dtype; largest: the largest logit. parameters: before and
    after; scores: the same on labelled data or a text, () without.
    """

    path: Path
    spec: ModelSpec
    width: int
    errors: Mapping[int, float]
    difference: float
    largest: float
    dtype: str
    texts: int
    source: str
    parameters: tuple[int, int]
    scores: tuple[Score, ...] = ()

    def facts(self) -> dict[str, Any]:
        """What JSON says of it."""
        return {
            "path": str(self.path), "width": self.width,
            "layers": [
                {"layer": index, "name": self.spec.layers[index].name, "error": error}
                for index, error in self.errors.items()
            ],
            "difference": self.difference, "largest": self.largest, "dtype": self.dtype,
            "texts": self.texts, "source": self.source, "parameters": list(self.parameters),
            "scores": [
                {"metric": one.metric, "value": one.value, "low": _finite(one.low),
                 "high": _finite(one.high)}
                for one in self.scores
            ],
        }  # fmt: skip


def collaborate(
    path: Path_,
    out: Path_,
    width: int = 0,
    data: Path_ | None = None,
    text_column: str = "",
    label_column: str = "",
) -> Task[Collaboration]:
    """Write a checkpoint whose heads share queries and keys of a width into an empty folder.

    width 0: as wide as changes nothing, which is proved before the folder is kept. Logits are
    compared on data, or on texts of the sample; on data both are scored as well. Errors: HgvizError
    for models whose scores are more than products of queries and keys.
    """
    yield Step(0, 1, "loading torch")
    from hgviz.models import open_model
    from hgviz.models.formats import conversion, readers
    from hgviz.models.surgery import export, proof, sharing

    with export.kept_if_proved(Path(out)) as fresh:
        model, found = open_model(path), readers.read(path)
        wide = sharing.require_shareable(found, width)
        read = proof_texts(model, data, text_column, label_column)
        texts = read.batches
        layers = sharing.products(found)
        terms, errors = yield from _terms(layers, wide)
        changed = sharing.shared(found, wide, terms)
        yield Step(0, 1, f"writing {Path(out).name}")
        conversion.write(changed, fresh)
        exact = not any(errors.values())
        apart, largest, dtype = yield from _apart(found, fresh, texts, exact)
        if exact:
            proof.require_close(apart)
        scores: list[Score] = []
        if data is not None:
            for each in (path, fresh):
                opened = yield from load(each, "cpu")
                answered = yield from evaluate(opened, data, text_column, label_column)
                scores.append(answered.score)
        return Collaboration(
            Path(out), model.spec, wide, errors, apart, largest, dtype,
            sum(map(proof.count, texts)), read.source,
            (export.parameters(found), export.parameters(changed)), tuple(scores),
        )  # fmt: skip


# --- inside ---------------------------------------------------------------------------------------


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _terms(
    every: Sequence[Products], width: int
) -> Task[tuple[list[Given | None], dict[int, float]]]:
    """Of each layer the terms that are left, None where they stay as they are, and by its number
    how far the products are off then."""
    from hgviz.analysis.parafac import Terms, compressed

    given: list[Given | None] = []
    errors = {}
    for done, one in enumerate(every):
        given.append(None)
        errors[one.layer.index] = 0.0
        if width < one.mix.shape[1]:
            for terms, error in compressed(Terms(one.q, one.mix, one.k), width):
                given[-1], errors[one.layer.index] = (terms.a, terms.mix, terms.b), error
                yield Step(done, len(every), f"layer {one.layer.index}, {100 * error:.2f} % off")
    return given, errors


def _apart(
    found: Checkpoint, fresh: Path, texts: Sequence[Any], exact: bool
) -> Task[tuple[float, float, str]]:
    """The largest difference of logits, the largest logit, and in which precision: float64 where
    float32 is too rough to tell that nothing changed."""
    from hgviz.models.formats import readers
    from hgviz.models.surgery import export, proof

    for dtype in ("float32", "float64"):
        before = export.masked(found, frozenset(), dtype)
        after = export.opened(fresh / readers.WEIGHTS, dtype)
        parts = proof.differences(before, after, texts)
        apart, largest = yield from last(parts, len(texts), f"comparing logits in {dtype}")
        if apart <= proof.MOST or not exact:
            break
    return apart, largest, dtype
