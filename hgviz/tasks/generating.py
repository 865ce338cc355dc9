"""Captures of a text that a model goes on with."""

from __future__ import annotations

import time
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.core import Capture, HgvizError, Off, Prompt, Step, current_listener, listening, progress
from hgviz.tasks.capturing import capture, kept, provenance
from hgviz.tasks.opening import Path_, require_attention

if TYPE_CHECKING:
    from hgviz.models.generation import Writing
    from hgviz.models.model import Model

SHOWN_EVERY = 0.1  # seconds between two captures of a text under way, at least
SHARE = 4  # and this many times what it took to make the last one


def generate(
    model: Model,
    prompt: Prompt,
    count: int,
    out: Path_ | None = None,
    off: Off = frozenset(),
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

    While it writes, the progress may carry the Capture so far, whose maps grow by rows. What is
    returned and written to `out` is an ordinary `capture` of the text that came out, so that the
    file, its exactness and going on after an interruption are the same. Errors: HgvizError for a
    model that     cannot write, a count below 1, a temperature that is not above 0, and as capture.
    """
    require_attention(model.spec)
    _require_sound(count, seed, temperature)
    if out is not None:
        from hgviz.store.growing import refuse_existing

        refuse_existing(Path(out), force)  # before anything is computed
    from hgviz.models.generation import Writing

    writing = Writing(model, prompt, target, off)
    stopped = _written(writing, count, seed, temperature)
    text, written = writing.text, len(writing.added)
    how = "greedy" if seed is None else f"seed {seed}, temperature {temperature:g}"
    tokens = "1 token" if written == 1 else f"{written:,} tokens"
    said = f"{tokens} after {len(writing.given):,}, {how}{stopped}"
    made = replace(provenance(model), seed=seed, generated=said)
    texts = (text, None) if target is None else (prompt, text)
    tell = current_listener()

    def after(step: Step) -> None:  # without its value, which has less than was shown
        tell(Step(written + step.done, written + step.total, step.note))

    with listening(after):
        return capture(model, texts[0], out, off, force, texts[1], made=made, dense=dense)


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

    writing = Writing(model, prompt, target)
    _written(writing, count, seed, temperature)
    return writing.text


def _require_sound(count: int, seed: int | None, temperature: float) -> None:
    if count < 1:
        raise HgvizError("there is nothing to generate", f"{count} tokens were asked for", "Ask 1")
    if not (temperature > 0 and isfinite(temperature)):
        raise HgvizError(
            f"there is no temperature {temperature:g}",
            "it divides the logits",
            "Give a number above 0",
        )
    if seed is not None and seed < 0:
        raise HgvizError(f"there is no seed {seed}", "it counts from 0", "Give 0 or more")


def _written(writing: Writing, count: int, seed: int | None, temperature: float) -> str:
    """Write; returns why it stopped early, "" where it did not."""
    import numpy as np

    from hgviz.models.generation import chosen

    random = None if seed is None else np.random.default_rng(seed)
    blank = Capture(
        spec=writing.model.spec,
        prompt=writing.prompt,
        spans=(),
        maps=(),
        off=writing.off,
        made=provenance(writing.model),
        target=writing.target,
    )
    for layer in writing.read():
        progress(0, count, f"reading, layer {layer}")
    shown = _Shown(writing, blank)
    progress(0, count, "read", shown.now())
    for done in range(1, count + 1):
        if writing.room == 0:
            return f"; stopped where its {writing.model.spec.max_positions:,} positions end"
        token = chosen(writing.logits, random, temperature)
        writing.add(token)
        progress(done, count, f"token {done:,} of {count:,}", shown.due())
        if token in writing.model.ends and done < count:
            return "; stopped after its end token"
    return ""


class _Shown:
    """Captures of a text under way, no more of them than can be seen."""

    def __init__(self, writing: Writing, blank: Capture) -> None:
        self.writing, self.blank = writing, blank
        self._next = 0.0

    def due(self) -> Capture | None:
        """The capture so far, None where the last one is new enough."""
        return self.now() if time.monotonic() >= self._next else None

    def now(self) -> Capture:
        """The capture so far: maps over views of what grows, nothing is copied."""
        from hgviz.maps import Factors, LazyMap

        began, writing, blank = time.monotonic(), self.writing, self.blank
        text = writing.text
        prompt, target = (text, None) if blank.target is None else (blank.prompt, text)
        seen = [(kept(writing.factors(one.index), one.heads), one) for one in blank.spec.layers]
        maps = tuple(
            LazyMap(one, layer.heads) if isinstance(one, Factors) else one for one, layer in seen
        )
        spans = writing.model.spans(writing.segmented(prompt), target)
        ended = time.monotonic()
        self._next = ended + max(SHOWN_EVERY, SHARE * (ended - began))
        return replace(blank, prompt=prompt, target=target, spans=spans, maps=maps)
