"""Captures of a text that a model goes on with."""

from __future__ import annotations

import time
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import Capture, HeadSet, HgvizError, Prompt, Step, progress, progress_as
from hgviz.tasks.capturing import capture, provenance
from hgviz.tasks.opening import Path_, require_attention

if TYPE_CHECKING:
    from hgviz.models.generation import Writing
    from hgviz.models.model import Model

SHOWN_EVERY = 0.1  # seconds between two texts that are reported, at least


def generate(
    model: Model,
    prompt: Prompt,
    count: int,
    out: Path_ | None = None,
    off: HeadSet = frozenset(),
    force: bool = False,
    target: Prompt | None = None,
    seed: int | None = None,
    temperature: float = 1.0,
    dense: bool = False,
) -> Capture:
    """Let a model write up to count tokens after a text, and keep what every layer attended with.

    Without a seed the likeliest token follows, with one it is drawn from softmax(logits /
    temperature). It stops early after a token that ends the text and where the model's positions
    end; made.generated says so. With a second text (target) that one grows.

    While it writes, the progress carries the text so far, as a Prompt. What is returned and written
    to `out` is an ordinary `capture` of the text that came out, so that the file, its exactness and
    going on after an interruption are the same. Errors: HgvizError for a model that cannot write, a
    count below 1, a temperature that is not above 0, and as capture.
    """
    require_attention(model.spec)
    _require_sound(count, seed, temperature)
    if out is not None:
        from hgviz.store.captures import refuse_existing

        refuse_existing(Path(out), force)  # before anything is computed
    from hgviz.models.generation import Writing

    progress(0, count, "reading the text")
    writing = Writing(model, prompt, target, off)
    stopped = _write(writing, count, seed, temperature)
    source, written = None if target is None else prompt, len(writing.added)
    with progress_as(lambda step: Step(written + step.done, written + step.total, step.note)):
        return capture_written(
            model, writing.text, len(writing.start), source, seed, temperature, stopped,
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
    """Capture a text that a model wrote from the token `first` on, and say so in its provenance.

    source: what an encoder-decoder read. stopped: why the text is shorter than was asked for.
    options: those of `capture`.
    """
    written = len(text) - first
    how = "greedy" if seed is None else f"seed {seed}, temperature {temperature:g}"
    tokens = "1 token" if written == 1 else f"{written:,} tokens"
    said = f"{tokens} after {first:,}, {how}{stopped}"
    made = replace(provenance(model), seed=seed, generated=said)
    texts = (text, None) if source is None else (source, text)
    return capture(model, texts[0], target=texts[1], made=made, **options)


def write(
    model: Model,
    prompt: Prompt,
    count: int,
    target: Prompt | None = None,
    seed: int | None = None,
    temperature: float = 1.0,
) -> Prompt:
    """The text that a model goes on with, its beginning included, as generate writes it; of any
    model that says the next token, also of those that do not attend. Errors as generate."""
    _require_sound(count, seed, temperature)
    from hgviz.models.generation import Writing

    progress(0, count, "reading the text")
    writing = Writing(model, prompt, target)
    _write(writing, count, seed, temperature)
    return writing.text


def _require_sound(count: int, seed: int | None, temperature: float) -> None:
    if count < 1:
        raise HgvizError(f"there is nothing to generate: {count} tokens were asked for", "Ask 1")
    if not (temperature > 0 and isfinite(temperature)):
        raise HgvizError(
            f"there is no temperature {temperature:g}: it divides the logits",
            "Give a number above 0",
        )
    if seed is not None and seed < 0:
        raise HgvizError(f"there is no seed {seed}: it counts from 0", "Give 0 or more")


def _write(writing: Writing, count: int, seed: int | None, temperature: float) -> str:
    """Add tokens; returns why it stopped early, "" where it did not."""
    import numpy as np

    from hgviz.models.generation import choose_token

    random = None if seed is None else np.random.default_rng(seed)
    shown = -SHOWN_EVERY
    for done in range(1, count + 1):
        if writing.room == 0:
            return f"; stopped where its {writing.model.spec.max_positions:,} positions end"
        token = choose_token(writing.logits, random, temperature)
        writing.add(token)
        is_due = time.monotonic() - shown >= SHOWN_EVERY
        shown = time.monotonic() if is_due else shown
        note = f"token {done:,} of {count:,}"
        progress(done, count, note, writing.text if is_due else None)
        if token in writing.model.ends and done < count:
            return "; stopped after its end token"
    return ""
