"""Captures of many texts in one file."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.core import NO_STREAMING, Capture, HeadSet, HgvizError, Item, Streaming, progress
from hgviz.tasks.capturing import provenance, run
from hgviz.tasks.opening import Path_, require_attention, require_causal

if TYPE_CHECKING:
    from hgviz.maps import DenseMap, Factors
    from hgviz.models.data import Corpus
    from hgviz.models.model import Model
    from hgviz.store import CorpusWriter

LIVELY = 0.1  # seconds between two steps, so that who shows them need not


def capture_corpus(
    model: Model,
    corpus: Path_,
    out: Path_,
    off: HeadSet = frozenset(),
    force: bool = False,
    dense: bool = False,
    streaming: Streaming = NO_STREAMING,
) -> Capture:
    """Run a model on every text of a file and keep what every layer attended with, in one file.

    A text that cannot be read is refused before anything is captured. What was done when it is
    interrupted stays in OUT.part, and the same call goes on from there. dense, streaming: as
    capture. Returns the first text's capture, which lists them all.
    Errors: HgvizError, naming the line of a text.
    """
    from hgviz.models.prompts import read_corpus_for
    from hgviz.store import CorpusWriter, open_capture
    from hgviz.store.captures import EMPTY_PROMPT, refuse_existing

    require_attention(model.spec)
    require_causal(model.spec, streaming)
    started = time.perf_counter()
    refuse_existing(Path(out), force)  # before anything is read
    progress(0, 1, f"reading {Path(corpus).name}")
    read = read_corpus_for(model, corpus)
    items = _items(model, read)
    total, made = len(items), replace(provenance(model), dense=dense)
    maps = (None,) * len(model.spec.layers)
    blank = Capture(
        model.spec, EMPTY_PROMPT, (), maps, off, made=made, items=items, streaming=streaming
    )
    with CorpusWriter(out, blank, read.digest, force) as writer:
        for number in range(total):
            if number not in writer.committed:
                _one_text(model, read, number, writer, total)
            progress(number + 1, total, f"text {number + 1:,} of {total:,}")
        progress(total, total, f"putting {total:,} texts into one file")
        path = writer.finish(time.perf_counter() - started)
    return open_capture(path)


def _items(model: Model, read: Corpus) -> tuple[Item, ...]:
    """What the index says of every text; the first that a model cannot read ends it all."""
    from hgviz.models.prompts import corpus_prompts

    items, told = [], time.monotonic()
    for number, one in enumerate(read.texts):
        prompt, target = corpus_prompts(model, read, number)
        tokens = len(prompt if target is None else target)
        if not tokens:
            raise HgvizError(f"{read.name}, line {one.line:,} has no tokens", "Take it out")
        items.append(Item(number, one.text, tokens, one.label))
        if time.monotonic() - told > LIVELY:
            told = time.monotonic()
            progress(0, len(read.texts), f"reading text {number + 1:,}")
    return tuple(items)


def _one_text(model: Model, read: Corpus, number: int, writer: CorpusWriter, total: int) -> None:
    """Capture a text into the folder of its corpus."""
    from hgviz.models.device_maps import blocks_on
    from hgviz.models.prompts import corpus_prompts

    blocks = blocks_on(model.device)
    prompt, target = corpus_prompts(model, read, number)
    whole = writer.capture
    spans = model.spans(model.segmented(prompt, whole.off, whole.streaming), target)
    blank = replace(whole, prompt=prompt, spans=spans, target=target, items=())
    told = time.monotonic()
    with writer.item(number, blank) as one:

        def write(index: int, found: Factors | DenseMap) -> None:
            nonlocal told
            if index not in one.committed:
                one.add(index, found, settle=True, blocks=blocks)
            if time.monotonic() - told > LIVELY:
                told = time.monotonic()
                note = f"text {number + 1:,} of {total:,}, layer {index}"
                progress(number + (index + 1) / len(blank.maps), total, note)

        one.finish(run(model, blank, write))
