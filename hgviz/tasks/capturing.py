"""Captures of one text, of a corpus and of a text that a model goes on with."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz import __version__
from hgviz.core import (
    NO_STREAMING,
    Capture,
    HeadSet,
    HgvizError,
    Map,
    Prompt,
    Provenance,
    Step,
    Streaming,
    progress,
    progress_as,
)
from hgviz.language import duration, format_size
from hgviz.tasks.opening import Path_, require_attention, require_causal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hgviz.maps import DenseMap, Factors
    from hgviz.models.model import Model


def capture(
    model: Model,
    prompt: Prompt,
    out: Path_ | None = None,
    off: HeadSet = frozenset(),
    force: bool = False,
    target: Prompt | None = None,
    made: Provenance | None = None,
    dense: bool = False,
    streaming: Streaming = NO_STREAMING,
    logits: bool = True,
) -> Capture:
    """Run a model on a prompt and keep what every layer attended with.

    Without `out` everything stays in memory and the progress carries the Capture so far; with it
    each layer goes to OUT.part at once, and the finished file is opened. A stopped capture loses
    nothing it had committed. made: its provenance, where there is more to say of it. dense: keep
    the weights themselves, as the model computed them in its own precision, in place of what they
    are computed from. streaming: heads that see the first keys and the latest, of causal layers.
    logits: whether the model's output is kept; without it, it is not even computed.
    Errors: HgvizError, for dense also where maps would not fit the memory.
    """
    require_attention(model.spec)
    require_causal(model.spec, streaming)
    started = time.perf_counter()
    if target is None and model.spec.reads_twice:
        target = model.twice(prompt)
    blank = Capture(
        spec=model.spec,
        prompt=prompt,
        spans=model.spans(model.segmented(prompt, off, streaming), target),
        maps=(None,) * len(model.spec.layers),
        off=off,
        made=replace(made or provenance(model), dense=dense),
        target=target,
        streaming=streaming,
    )
    if out is None:
        return _capture_in_memory(model, blank, started, logits)
    return _capture_to_file(model, blank, Path(out), force, started, logits)


def _capture_in_memory(model: Model, blank: Capture, started: float, keep_logits: bool) -> Capture:
    from hgviz.maps import ROUNDED, Factors, LazyMap, recompute_statistics
    from hgviz.models.device_maps import blocks_on

    maps: list[Map | None] = list(blank.maps)
    blocks = blocks_on(model.device)

    def keep(index: int, found: Factors | DenseMap) -> None:
        if isinstance(found, Factors):
            # kernels of half precision take exponentials roughly; of float64 tiles more is expected
            rounded = ROUNDED if found.dtype == "float32" else None
            maps[index] = LazyMap(
                recompute_statistics(found, rounded, blocks), model.spec.layers[index].heads
            )
        else:
            maps[index] = found
        progress(index + 1, len(maps), f"layer {index}", replace(blank, maps=tuple(maps)))

    logits = run(model, blank, keep, keep_logits)
    made = replace(blank.made, seconds=time.perf_counter() - started)
    return replace(blank, maps=tuple(maps), logits=logits, made=made)


def _capture_to_file(
    model: Model, blank: Capture, out: Path, force: bool, started: float, keep_logits: bool
) -> Capture:
    from hgviz.maps.tiles import release_memory
    from hgviz.models.device_maps import blocks_on
    from hgviz.store import Writer, open_capture

    total, blocks = len(blank.maps), blocks_on(model.device)
    with Writer(out, blank, force) as writer:

        def write(index: int, found: Factors | DenseMap) -> None:
            if index not in writer.committed:
                writer.add(index, found, settle=True, blocks=blocks)
            if len(blank.prompt) > SMALL:
                release_memory()
            progress(index + 1, total, f"layer {index} is on disk")

        logits = run(model, blank, write, keep_logits)
        path = writer.finish(logits, seconds=time.perf_counter() - started)
    return open_capture(path)


def run(
    model: Model,
    blank: Capture,
    keep: Callable[[int, Factors | DenseMap], None],
    logits: bool = True,
) -> NDArray[Any] | None:
    """Run a model on the texts of a capture and return its output, or None without logits.

    keep is called with each layer's number and what is kept of it, while the pass goes on.
    """
    from hgviz.models.run import CaptureRecorder

    heads = [layer.heads for layer in model.spec.layers]
    recorder = CaptureRecorder(
        lambda index, found: keep(index, kept(found, heads[index])), blank.made.dense
    )
    return (model.trace if logits else model.observe)(
        model.segmented(blank.prompt, blank.off, blank.streaming),  # as the spans of the capture
        blank.target,
        off=blank.off,
        observers=(recorder,),
        streaming=blank.streaming,
    )


def kept(found: Any, heads: tuple[int, ...]) -> Factors | DenseMap:
    """What is kept of a layer that was tapped: factors, or a map of weights."""
    from hgviz.maps import DenseMap, Factors

    if isinstance(found, Factors):
        return found
    return DenseMap(
        found.values, heads, found.signed, found.causal, value_norms=found.value_norms,
        mixture=found.mixture,
    )  # fmt: skip


# --- what it will take ----------------------------------------------------------------------------

SMALL = 4096  # tokens whose layers leave little behind
QUICK = 8192  # tokens: shorter texts are not worth an estimate
LENGTHS = (1024, 4096)  # tokens of the captures that an estimate is made from
COUNTED = 1 << 16  # characters whose tokens are counted, of a longer text
TEXT = 400  # bytes of memory that a token of a text takes, with its name and its place
STREAMS = 10  # times that what is known of every token is held in the middle of a layer
SAFE = 0.9  # of the memory that is free


@dataclass(frozen=True, slots=True)
class Estimate:
    """About what a capture of a text takes: seconds, bytes that are kept, bytes of memory at its
    peak, and for how many tokens the memory that is free would do, None where that is not known.
    All but the tokens are 0 of a text so short that nobody need know."""

    tokens: int
    seconds: float = 0.0
    kept: int = 0
    memory: int = 0
    most: int | None = None

    @property
    def words(self) -> str:
        """About 40 min, 3.1 GB."""
        return f"about {self.time}, {self.size}"

    @property
    def time(self) -> str:
        """Seconds, minutes, hours or days."""
        return duration(max(1, round(self.seconds)))

    @property
    def size(self) -> str:
        """What is kept."""
        return format_size(self.kept)


def estimate(model: Model, text: str, into_file: bool = False) -> Estimate:
    """What a capture of a text will take, measured on its beginning where it is long.

    Errors: HgvizError for one that the model has no positions for, or the machine no memory.
    """
    from hgviz.models.devices import free_memory

    tokens = 0 if model.takes_states else tokens_of(model, text)
    limit = model.spec.max_positions
    if tokens <= QUICK or (limit is not None and limit < tokens):
        return Estimate(tokens)  # one that is too long for the model is refused when it is read
    part, timed = model.tokenize(text[:COUNTED]), []
    for length in (LENGTHS[0], *LENGTHS):  # the first one warms up
        progress(0, 1, f"seeing how long {tokens:,} tokens take")
        prompt = Prompt(part.text, part.ids[:length], part.pieces[:length], part.spans[:length])
        target = prompt if model.spec.two_texts else None
        with progress_as(lambda step: Step(0, 1)):
            found = capture(model, prompt, target=target)
        timed.append((len(prompt), found.made.seconds))
    (n, short), (m, long) = timed[1:]
    square = max(0.0, long / m - short / n) / max(1, m - n)
    linear = max(0.0, short / n - square * n)
    layers = [_held(one) / m for one in found.maps]
    given = 0 if found.logits is None else 2 * found.logits.nbytes / m
    each = TEXT + STREAMS * model.spec.width * 4 + given
    each += 2 * max(layers) if into_file else sum(layers)
    free = free_memory()
    most = None if free is None else int(SAFE * free / each)
    made = Estimate(
        tokens, tokens * (linear + square * tokens), int(tokens * sum(layers)), int(tokens * each),
        most,
    )  # fmt: skip
    if most is not None and tokens > most:
        assert free is not None
        fitting = most // 1000 * 1000
        raise HgvizError(
            f"a text of about {tokens:,} tokens does not fit this machine's memory: "
            f"its capture takes about {format_size(made.memory)}, and {format_size(free)} are free",
            f"Take a shorter text: up to about {fitting:,} tokens fit",
        )
    return made


def tokens_of(model: Model, text: str) -> int:
    """How many tokens a text has; of a long one about, by its beginning."""
    some = text[:COUNTED]
    count = len(model.tokenizer.encode(some))
    return count if len(some) == len(text) else round(count * len(text) / len(some))


def _held(one: Map | None) -> int:
    """Bytes of what a map is computed from."""
    factors = getattr(one, "factors", None)
    parts = ("q", "k", "stat", "value_norms", "mixture")
    held = [getattr(factors, name, None) for name in parts]
    return sum(array.nbytes for array in held if array is not None)


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


def save(capture: Capture, path: Path_, force: bool = False) -> str:
    """Write a capture that is in memory to a file."""
    from hgviz.store import write_capture

    progress(0, 1, f"writing {Path(path).name}")
    return str(write_capture(path, capture, force=force))
