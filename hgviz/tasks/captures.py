"""Captures of one text, of a corpus, and of a text that a model writes."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz import __version__
from hgviz.core import (
    NO_STREAMING,
    Capture,
    HeadSet,
    HgvizError,
    Item,
    Map,
    ModelSpec,
    Prompt,
    Provenance,
    Step,
    Streaming,
    listening,
    progress,
    progress_as,
    progress_within,
)
from hgviz.errors import no_attention_error, require
from hgviz.language import counted, duration, format_size
from hgviz.maps import ROUNDED, DenseMap, Factors, LazyMap, recompute_statistics
from hgviz.maps.tiles import release_memory
from hgviz.study import Study

if TYPE_CHECKING:
    from hgviz.models.data import Corpus
    from hgviz.models.model import Model
    from hgviz.store.captures import LayerWriter

Prompts = tuple[Prompt, Prompt | None]  # the second is what a decoder reads


def capture(
    model: Model,
    prompt: Prompt,
    out: str | Path | None = None,
    off: HeadSet = frozenset(),
    force: bool = False,
    target: Prompt | None = None,
    made: Provenance | None = None,
    dense: bool = False,
    streaming: Streaming = NO_STREAMING,
    logits: bool = True,
) -> Capture:
    """Run a model on a prompt and return what every layer attended with.

    Args:
        out: the file to write; every layer goes to OUT.part at once, so that the same call
            continues an interrupted capture. Without it the capture stays in memory, and the
            progress carries the layers that are done.
        off: heads that are switched off.
        target: what the decoder of an encoder-decoder reads.
        made: the provenance to record in place of `provenance(model)`.
        dense: store the weights as the model computed them, not the factors behind them.
        streaming: heads that attend to the first and the latest keys only.
        logits: whether the model's output is computed and stored.

    Raises HgvizError for models without attention, for streaming heads that are not causal and,
    with dense, for maps that do not fit the memory.
    """
    require_attention(model.spec, streaming)
    started = time.perf_counter()
    blank = read_capture(model, prompt, target, off, streaming)
    blank = replace(blank, made=replace(made or provenance(model), dense=dense))
    if out is None:
        return _capture_in_memory(model, blank, started, logits)
    from hgviz.store import Writer, open_capture

    def report(index: int) -> None:
        if len(prompt) > SMALL:
            release_memory()
        progress(index + 1, len(blank.maps), f"layer {index} saved")

    with Writer(Path(out), blank, force) as writer:
        output = _write_layers(model, blank, writer, report, logits)
        path = writer.finish(output, seconds=time.perf_counter() - started)
    return open_capture(path)


def read_capture(
    model: Model,
    prompt: Prompt,
    target: Prompt | None = None,
    off: HeadSet = frozenset(),
    streaming: Streaming = NO_STREAMING,
) -> Capture:
    """A capture of a prompt before any layer has run: its texts and levels, without a map."""
    if target is None and model.spec.reads_twice:
        target = model.decoder_prompt(prompt)
    spans = model.spans(model.add_boundaries(prompt, off, streaming), target)
    maps = (None,) * len(model.spec.layers)
    return Capture(model.spec, prompt, spans, maps, off, target=target, streaming=streaming)


def token_rows(capture: Capture) -> list[dict[str, Any]]:
    """A row for each token: its text's name where there are two, position, id, piece, characters
    (start, end; None for a special token), and its position on each shortened level."""
    texts = {"source": capture.prompt} | ({"target": capture.target} if capture.target else {})
    levels = [level for level in capture.spec.levels if level.stride != 1]
    rows = []
    for name, prompt in texts.items():
        for at, (start, end) in enumerate(prompt.spans.tolist()):
            places = {
                f"level_{level.index}": capture.position(level.index, at)
                if level.sequence == name else None
                for level in levels if level.sequence != "slots"
            }  # fmt: skip
            rows.append({
                **({"text": name} if len(texts) > 1 else {}), "position": at,
                "id": int(prompt.ids[at]), "piece": prompt.pieces[at],
                "start": None if start < 0 else start, "end": None if start < 0 else end, **places,
            })  # fmt: skip
    return rows


def require_attention(spec: ModelSpec, streaming: Streaming = NO_STREAMING) -> None:
    """Raise HgvizError for a model without attention, and as require_causal."""
    if not spec.layers:
        raise no_attention_error(spec.family)
    require_causal(spec, streaming)


def require_causal(spec: ModelSpec, streaming: Streaming) -> None:
    """Raise HgvizError for streaming heads whose queries have no latest key."""
    for layer in spec.layers:
        reason = "its attention is windowed" if layer.window else "it is not causal"
        require(
            layer.can_stream or not streaming.places(layer.index, layer.heads),
            f"heads of layer {layer.index} cannot be streaming heads: {reason}",
            "Name heads of causal layers",
        )


def _capture_in_memory(model: Model, blank: Capture, started: float, logits: bool) -> Capture:
    from hgviz.models.device_maps import blocks_on

    maps: list[Map | None] = list(blank.maps)
    blocks = blocks_on(model.device)

    def on_layer(index: int, layer: Factors | DenseMap) -> None:
        if isinstance(layer, Factors):
            # half-precision kernels round exponentials coarsely; float64 tiles need better row sums
            tolerance = ROUNDED if layer.dtype == "float32" else None
            factors = recompute_statistics(layer, tolerance, blocks)
            maps[index] = LazyMap(factors, model.spec.layers[index].heads)
        else:
            maps[index] = layer
        progress(index + 1, len(maps), f"layer {index}", replace(blank, maps=tuple(maps)))

    output = _run(model, blank, on_layer, logits)
    made = replace(blank.made, seconds=time.perf_counter() - started)
    return replace(blank, maps=tuple(maps), logits=output, made=made)


def _write_layers(
    model: Model,
    blank: Capture,
    writer: LayerWriter,
    report: Callable[[int], None],
    logits: bool = True,
) -> NDArray[Any] | None:
    """Run a model on the texts of a capture and write each layer that is not written yet; report is
    called after each. Returns as _run."""
    from hgviz.models.device_maps import blocks_on

    blocks = blocks_on(model.device)

    def on_layer(index: int, layer: Factors | DenseMap) -> None:
        if index not in writer.committed:
            writer.add(index, layer, settle=True, blocks=blocks)
        report(index)

    return _run(model, blank, on_layer, logits)


def _run(
    model: Model,
    blank: Capture,
    on_layer: Callable[[int, Factors | DenseMap], None],
    logits: bool,
) -> NDArray[Any] | None:
    """Run a model on the texts of a capture; on_layer receives every layer while the pass goes on.

    Returns the model's output, or None without logits.
    """
    from hgviz.models.run import CaptureRecorder

    def on_record(index: int, record: Any) -> None:
        if not isinstance(record, Factors):
            record = DenseMap(
                record.values, model.spec.layers[index].heads, record.signed, record.causal,
                value_norms=record.value_norms, mixture=record.mixture,
            )  # fmt: skip
        on_layer(index, record)

    return (model.trace if logits else model.observe)(
        model.add_boundaries(blank.prompt, blank.off, blank.streaming),
        blank.target,
        off=blank.off,
        observers=(CaptureRecorder(on_record, blank.made.dense),),
        streaming=blank.streaming,
    )


def read_prompts(model: Model, text: str | None = None, **inputs: Any) -> Prompts:
    """The one or two prompts of a model; arguments and errors as in models.prompts."""
    from hgviz.models import prompts

    return prompts.read_prompts(model, text, **inputs)


def capture_like(
    model: Model, like: Capture, off: HeadSet = frozenset(), streaming: Streaming = NO_STREAMING
) -> Capture:
    """Capture, in memory, the text of another capture; see models.prompts.prompts_like."""
    from hgviz.models.prompts import prompts_like

    progress(0, 1, "reading the text")
    prompt, target = prompts_like(model, like)
    return capture(model, prompt, off=off, target=target, streaming=streaming)


def save(what: Capture | Study, path: str | Path, force: bool = False) -> str:
    """Write a capture or a study that is in memory to a file; returns its path."""
    from hgviz.store import write_capture, write_study

    progress(0, 1, f"writing {Path(path).name}")
    if isinstance(what, Study):
        return str(write_study(path, what, force=force))
    return str(write_capture(path, what, force=force))


def versions() -> tuple[tuple[str, str], ...]:
    """The versions of Python and of the packages that compute numbers."""
    packages = ("torch", "numpy", "h5py")
    return ("python", platform.python_version()), *((name, version(name)) for name in packages)


def provenance(model: Model) -> Provenance:
    """What a capture of this model, made now, records of where it comes from."""
    return Provenance(
        producer=f"hgviz {__version__}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        device=model.device,
        dtype=model.dtype,
        versions=versions(),
        checkpoint=model.spec.digest,
        masking=model.masking,
    )


# --- corpora --------------------------------------------------------------------------------------


def capture_corpus(
    model: Model,
    corpus: str | Path,
    out: str | Path,
    off: HeadSet = frozenset(),
    force: bool = False,
    dense: bool = False,
    streaming: Streaming = NO_STREAMING,
) -> Capture:
    """Capture every text of a file into one file; returns the capture of the first text.

    All texts are tokenized before the first is captured. An interrupted call keeps its texts in
    OUT.part, and the same call continues. dense, streaming: as in capture.
    Raises HgvizError naming the line of a text that cannot be read.
    """
    from hgviz.models.prompts import corpus_prompts
    from hgviz.store import CorpusWriter, open_capture
    from hgviz.store.captures import EMPTY_PROMPT, refuse_existing

    require_attention(model.spec, streaming)
    started = time.perf_counter()
    refuse_existing(Path(out), force)  # before anything is read
    read, lengths = read_corpus(model, corpus)
    items = tuple(
        Item(number, text.text, length, text.label)
        for number, (text, length) in enumerate(zip(read.texts, lengths, strict=True))
    )
    blank = Capture(
        model.spec, EMPTY_PROMPT, (), (None,) * len(model.spec.layers), off,
        made=replace(provenance(model), dense=dense), items=items, streaming=streaming,
    )  # fmt: skip
    total = len(items)
    with CorpusWriter(out, blank, read.digest, force) as writer:
        for number in range(total):
            note = f"text {number + 1:,} of {total:,}"

            def report(index: int, note: str = note) -> None:
                progress(index + 1, len(blank.maps), f"{note}, layer {index}")

            if number not in writer.committed:
                text = read_capture(model, *corpus_prompts(model, read, number), off, streaming)
                text = replace(text, made=blank.made)
                with writer.item(number, text) as item, progress_within(number, number + 1, total):
                    item.finish(_write_layers(model, text, item, report))
            progress(number + 1, total, note)
        progress(total, total, f"combining {total:,} texts in one file")
        path = writer.finish(time.perf_counter() - started)
    return open_capture(path)


def read_corpus(model: Model, path: str | Path) -> tuple[Corpus, list[int]]:
    """The texts of a file, and the number of tokens that a model reads of each.

    Raises HgvizError naming the line of a text that the model cannot read, or without tokens.
    """
    from hgviz.models.prompts import corpus_prompts, read_corpus_for

    progress(0, 1, f"reading {Path(path).name}")
    corpus, lengths = read_corpus_for(model, path), []
    for number, text in enumerate(corpus.texts):
        progress(0, len(corpus.texts), f"reading text {number + 1:,}")
        prompt, target = corpus_prompts(model, corpus, number)
        lengths.append(len(prompt if target is None else target))
        what = f"{corpus.name}, line {text.line:,} has no tokens"
        require(lengths[-1], what, "Delete the line")
    return corpus, lengths


# --- generated texts ------------------------------------------------------------------------------


def generate(
    model: Model,
    prompt: Prompt,
    count: int,
    out: str | Path | None = None,
    off: HeadSet = frozenset(),
    force: bool = False,
    target: Prompt | None = None,
    seed: int | None = None,
    temperature: float = 1.0,
    dense: bool = False,
) -> Capture:
    """Let a model write up to count tokens after a text, and capture the text that results.

    Without a seed the likeliest token follows; with one it is drawn from softmax(logits /
    temperature). Writing stops early after a token that ends the text and where the model's
    positions end; made.generated says so. With a target that text grows. While the model writes,
    the progress carries the text so far, as a Prompt; the capture is then made as by `capture`.
    Raises HgvizError for a model that cannot write, a count below 1, a temperature that is not
    above 0, and as capture.
    """
    require_attention(model.spec)
    if out is not None:
        from hgviz.store.captures import refuse_existing

        refuse_existing(Path(out), force)  # before anything is computed
    text, first, stopped = write(model, prompt, count, target, seed, temperature, off)
    source, added = None if target is None else prompt, len(text) - first
    with progress_as(lambda step: Step(added + step.done, added + step.total, step.note)):
        return capture_written(
            model, text, first, source, seed, temperature, stopped,
            out=out, off=off, force=force, dense=dense,
        )  # fmt: skip


def capture_written(
    model: Model,
    text: Prompt,
    first: int,
    source: Prompt | None = None,
    seed: int | None = None,
    temperature: float = 1.0,
    stopped: str = "",
    **options: Any,
) -> Capture:
    """Capture a text that a model wrote from the token `first` on, and record that.

    source: what an encoder-decoder read. stopped: why the text is shorter than was asked for.
    options: those of `capture`.
    """
    how = "greedy" if seed is None else f"seed {seed}, temperature {temperature:g}"
    generated = f"{counted(len(text) - first, 'token')} after {first:,}, {how}{stopped}"
    made = replace(provenance(model), seed=seed, generated=generated)
    main, target = (text, None) if source is None else (source, text)
    return capture(model, main, target=target, made=made, **options)


def write(
    model: Model,
    prompt: Prompt,
    count: int,
    target: Prompt | None = None,
    seed: int | None = None,
    temperature: float = 1.0,
    off: HeadSet = frozenset(),
) -> tuple[Prompt, int, str]:
    """The text that a model writes, with its beginning, the first token that it wrote, and why it
    stopped early, "" where it did not; also of models without attention.

    Arguments and errors as in generate.
    """
    from hgviz.models.generation import Writing, choose_token

    require(count > 0, f"cannot generate {count} tokens", "Give 1 or more")
    what = f"the temperature cannot be {temperature:g}"
    require(temperature > 0 and isfinite(temperature), what, "Give a number above 0")
    require(seed is None or seed >= 0, f"the seed cannot be {seed}", "Give 0 or more")
    progress(0, count, "reading the text")
    writing = Writing(model, prompt, target, off)
    random = None if seed is None else np.random.default_rng(seed)
    shown_at, stopped = -SHOWN_EVERY, ""
    for done in range(1, count + 1):
        if writing.room == 0:
            stopped = f"; stopped at its maximum length of {model.spec.max_positions:,}"
            break
        token = choose_token(writing.logits, random, temperature)
        writing.add(token)
        is_due = time.monotonic() - shown_at >= SHOWN_EVERY
        shown_at = time.monotonic() if is_due else shown_at
        progress(done, count, f"token {done:,} of {count:,}", writing.text if is_due else None)
        if token in model.ends and done < count:
            stopped = "; stopped at its end token"
            break
    return writing.text, len(writing.start), stopped


# --- what a capture will take ---------------------------------------------------------------------

SHOWN_EVERY = 0.1  # seconds between two reports of a growing text: decoding it takes time
SMALL = 4096  # tokens: freed memory of shorter texts is not worth returning to the system
QUICK = 8192  # tokens: shorter texts are not worth an estimate
LENGTHS = (1024, 4096)  # tokens of the two captures that an estimate extrapolates
SAMPLE = 1 << 16  # characters whose tokens are counted, of a longer text
TOKEN_BYTES = 400  # of memory for a token's text, id and span
STREAMS = 10  # copies of the residual stream that exist in the middle of a layer
SAFE = 0.9  # of the free memory


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the capture of a text will take: seconds, bytes kept, bytes of memory at the peak.

    most: the tokens that fit the free memory, None where it is not known. All but the tokens are 0
    for a text too short to be estimated.
    """

    tokens: int
    seconds: float = 0.0
    kept: int = 0
    memory: int = 0
    most: int | None = None

    @property
    def words(self) -> str:
        """Such as "about 40 min, 3.1 GB"."""
        return f"about {self.time}, {self.size}"

    @property
    def time(self) -> str:
        """The seconds, in a unit that suits them."""
        return duration(max(1, round(self.seconds)))

    @property
    def size(self) -> str:
        """The bytes kept, in a unit that suits them."""
        return format_size(self.kept)


def estimate(model: Model, text: str, into_file: bool = False) -> Estimate:
    """What the capture of a text will take, measured on its beginning where it is long.

    Raises HgvizError for a text that does not fit the free memory.
    """
    from hgviz.models.devices import free_memory

    tokens = 0 if model.takes_states else count_tokens(model, text)
    limit = model.spec.max_positions
    if tokens <= QUICK or (limit is not None and limit < tokens):
        return Estimate(tokens)  # a text that is too long for the model is refused when it is read
    beginning, times = model.tokenize(text[:SAMPLE]), []
    for length in (LENGTHS[0], *LENGTHS):  # the first capture warms up
        progress(0, 1, f"estimating the time for {tokens:,} tokens")
        prompt = beginning.first(length)
        with listening(None):
            captured = capture(model, prompt, target=prompt if model.spec.two_texts else None)
        times.append((len(prompt), captured.made.seconds))
    (n, short), (m, long) = times[1:]
    square = max(0.0, long / m - short / n) / max(1, m - n)
    linear = max(0.0, short / n - square * n)
    layers = [_map_bytes(layer) / m for layer in captured.maps]
    peak: float = TOKEN_BYTES + STREAMS * model.spec.width * 4
    peak += 2 * max(layers) if into_file else sum(layers)
    peak += 0 if captured.logits is None else 2 * captured.logits.nbytes / m
    free = free_memory()
    most = None if free is None else int(SAFE * free / peak)
    memory = int(tokens * peak)
    if free is not None and most is not None and tokens > most:
        raise HgvizError(
            f"a text of about {tokens:,} tokens does not fit in memory: "
            f"its capture needs about {format_size(memory)}, and {format_size(free)} are free",
            f"Use a shorter text: up to about {most // 1000 * 1000:,} tokens fit",
        )
    seconds = tokens * (linear + square * tokens)
    return Estimate(tokens, seconds, int(tokens * sum(layers)), memory, most)


def count_tokens(model: Model, text: str) -> int:
    """The number of tokens of a text; of a long text about, by its beginning."""
    sample = text[:SAMPLE]
    count = len(model.tokenizer.encode(sample))
    return count if len(sample) == len(text) else round(count * len(text) / len(sample))


def _map_bytes(layer: Map | None) -> int:
    """The bytes of the arrays that a map is computed from."""
    factors = getattr(layer, "factors", None)
    arrays = (getattr(factors, name, None) for name in ("q", "k", "stat", "value_norms", "mixture"))
    return sum(array.nbytes for array in arrays if array is not None)
