"""Captures of one text, of a corpus and of a text that a model goes on with."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz import __version__
from hgviz.core import Capture, Map, Off, Prompt, Provenance, Step, Task
from hgviz.tasks.opening import Path_, require_attention

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hgviz.maps import DenseMap, Factors
    from hgviz.models.model import Model


def capture(
    model: Model,
    prompt: Prompt,
    out: Path_ | None = None,
    off: Off = frozenset(),
    force: bool = False,
    target: Prompt | None = None,
    made: Provenance | None = None,
    dense: bool = False,
) -> Task[Capture]:
    """Run a model on a prompt and keep what every layer attended with.

    Without `out` everything stays in memory and each Step carries the Capture so far; with it each
    layer goes to OUT.part at once, and the finished file is opened. A stopped capture loses
    nothing it had committed. made: its provenance, where there is more to say of it. dense: keep
    the weights themselves, as the model computed them in its own precision, in place of what they
    are computed from. Errors: HgvizError, for dense also where maps would not fit the memory.
    """
    require_attention(model.spec)
    started = time.perf_counter()
    blank = Capture(
        spec=model.spec,
        prompt=prompt,
        spans=model.spans(model.segmented(prompt, off), target),
        maps=(None,) * len(model.spec.layers),
        off=off,
        made=replace(made or provenance(model), dense=dense),
        target=target,
    )
    if out is None:
        return (yield from _capture_in_memory(model, blank, started))
    return (yield from _capture_to_file(model, blank, Path(out), force, started))


def _capture_in_memory(model: Model, blank: Capture, started: float) -> Task[Capture]:
    from hgviz.maps import ROUNDED, Factors, LazyMap, settled
    from hgviz.models.surveying import adder

    maps: list[Map | None] = list(blank.maps)
    layers, totals = Traced(model, blank), adder(model.device)
    for index, one in layers:
        if isinstance(one, Factors):
            # kernels of half precision take exponentials roughly; of float64 tiles more is expected
            rounded = ROUNDED if one.dtype == "float32" else None
            factors = settled(one, rounded, totals)
            maps[index] = LazyMap(factors, model.spec.layers[index].heads)
        else:
            maps[index] = one
        so_far = replace(blank, maps=tuple(maps))
        yield Step(index + 1, len(maps), f"layer {index}", so_far)
    made = replace(blank.made, seconds=time.perf_counter() - started)
    return replace(blank, maps=tuple(maps), logits=layers.logits, made=made)


def _capture_to_file(
    model: Model, blank: Capture, out: Path, force: bool, started: float
) -> Task[Capture]:
    from hgviz.models.surveying import surveyor
    from hgviz.store import Writer, open_capture

    total, survey = len(blank.maps), surveyor(model.device)
    with Writer(
        out, blank.spec, blank.prompt, blank.spans, blank.off, blank.made, force, blank.target
    ) as writer:
        layers = Traced(model, blank)
        for index, one in layers:
            if index not in writer.committed:
                writer.add(index, one, settle=True, survey=survey)
            del one  # before the next layer is computed
            yield Step(index + 1, total, f"layer {index} is on disk")
        path = writer.finish(layers.logits, seconds=time.perf_counter() - started)
    return open_capture(path)


class Traced:
    """The layers of one forward pass as they are done; logits when the last one was."""

    def __init__(self, model: Model, blank: Capture) -> None:
        self.model, self.blank = model, blank
        self.logits: NDArray[Any] | None = None

    def __iter__(self) -> Iterator[tuple[int, Factors | DenseMap]]:
        tapped: dict[int, Any] = {}
        blank, dense = self.blank, self.blank.made.dense
        read = self.model.segmented(blank.prompt, blank.off)  # between the spans of the capture
        steps = self.model.trace(
            read, blank.target, off=blank.off, tap=tapped.__setitem__, dense=dense
        )
        while True:
            try:
                index = next(steps)
            except StopIteration as end:
                self.logits = end.value
                return
            # held by nobody here: it would stay while the next layer is computed
            yield index, self._kept(index, tapped.pop(index))

    def _kept(self, index: int, found: Any) -> Factors | DenseMap:
        from hgviz.maps import DenseMap

        if not self.blank.made.dense:
            return found  # type: ignore[no-any-return]
        heads = self.model.spec.layers[index].heads
        return DenseMap(
            found.values, heads, found.signed, found.causal, value_norms=found.value_norms,
            mixture=found.mixture,
        )  # fmt: skip


def versions() -> tuple[tuple[str, str], ...]:
    """Of Python and of the packages that numbers come from."""
    packages = ("torch", "numpy", "h5py")
    return ("python", platform.python_version()), *((one, version(one)) for one in packages)


def provenance(model: Model) -> Provenance:
    """What made a capture of a model here and now."""
    return Provenance(
        producer=f"hgviz {__version__}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        device=model.device,
        dtype=model.dtype,
        versions=versions(),
        checkpoint=model.spec.digest,
        masking=model.masking,
    )


def save(capture: Capture, path: Path_, force: bool = False) -> Task[str]:
    """Write a capture that is in memory to a file."""
    from hgviz.store import write_capture

    yield Step(0, 1, f"writing {Path(path).name}")
    return str(write_capture(path, capture, force=force))
