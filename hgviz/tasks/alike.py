"""Captures of the text that another capture is of, by another model or by the same one changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgviz.core import NO_STREAMING, Capture, HeadSet, HgvizError, Prompt, Streaming, progress
from hgviz.tasks.capturing import capture

if TYPE_CHECKING:
    from hgviz.models.model import Model


def capture_alike(
    model: Model, like: Capture, off: HeadSet = frozenset(), streaming: Streaming = NO_STREAMING
) -> Capture:
    """Run a model on the text of a capture, in memory; the progress carries the Capture so far.

    Token by token the same where the model's tokenizer agrees, else the text as it reads it: a
    model of one text reads what a decoder wrote, one without token types a pair as one text. A
    picture or a sound is read as Model.again says.
    Errors: HgvizError where it cannot be read.
    """
    progress(0, 1, "reading the text")
    prompt, target = prompts_like(model, like)
    return capture(model, prompt, off=off, target=target, streaming=streaming)


def prompts_like(model: Model, like: Capture) -> tuple[Prompt, Prompt | None]:
    """What a model reads of the texts of a capture; see capture_alike."""
    if model.takes_states:
        if like.prompt.states is None or like.target is None:
            raise HgvizError(
                "B cannot read the text of A: "
                "it is a decoder that looks at the states of an encoder which is not part of it",
                "Choose a model that reads texts",
            )
        return like.prompt, _same(model, like.target) or _read(model, like.target)
    if (like.prompt.signal is None) != (model.spec.modality == "text"):
        from hgviz.models.model import READS

        raise HgvizError(
            "B cannot read what A read: "
            f"A reads {READS[like.spec.modality]} and B {READS[model.spec.modality]}",
            "Choose two models of one kind",
        )
    if like.prompt.signal is not None:
        return _signal(model, like)
    if model.spec.needs_target:
        source, target = like.prompt, like.prompt if like.target is None else like.target
        return _same(model, source) or _read(model, source), _target(model, target)
    main = like.main  # of two texts the one that the model speaks about
    same = None if like.target is not None and main.text else _same(model, main)
    return same or _read(model, main, _second(model, like)), None


def _signal(model: Model, like: Capture) -> tuple[Prompt, Prompt | None]:
    """A picture or a sound, and where a decoder writes about it, what A's wrote."""
    own = model.again(like.prompt)
    if not model.spec.two_texts:
        return own, None
    return own, model.beginning() if like.target is None else _target(model, like.target)


def _target(model: Model, prompt: Prompt) -> Prompt:
    """What the decoder of an encoder-decoder reads of a text that another model read."""
    start, same = model.decoder_start, _same(model, prompt)
    if same is not None and (not prompt.text or start is None or same.ids[0] == start):
        return same
    if prompt.text and prompt.states is None:
        return model.tokenize_target(prompt.text)
    return model.with_decoder_start(_read(model, prompt))


def _same(model: Model, prompt: Prompt) -> Prompt | None:
    """The prompt itself where its ids stand for the same pieces in the model, else None."""
    limit = model.spec.max_positions
    if prompt.states is not None or (limit is not None and len(prompt) > limit):
        return None
    if prompt.token_type_ids is not None and not getattr(model.config, "segments", 0):
        return None
    ids = prompt.ids
    if len(ids) and not (ids.min() >= 0 and ids.max() < model.spec.vocabulary):
        return None
    return prompt if model.tokenizer.decode(ids).pieces == prompt.pieces else None


def _second(model: Model, like: Capture) -> str:
    """The second text of a pair, "" where the model reads no pairs or there is none."""
    if like.target is not None or not getattr(model.config, "segments", 0) > 1:
        return ""
    return like.texts[1]


def _read(model: Model, prompt: Prompt, second: str = "") -> Prompt:
    """A text, or a pair, as a model's own tokenizer has it; ids where there is no text."""
    if prompt.states is not None:
        raise HgvizError(
            "B cannot read the text of A: there is none: A was given the states of an encoder",
            "Choose a model that takes states, or open a capture",
        )
    if not prompt.text:
        return model.from_ids(prompt.ids, prompt.attention_mask)
    if second:
        first = prompt.text[: len(prompt.text) - len(second) - 1]
        return model.tokenize(first, second)
    return model.tokenize(prompt.text)


__all__ = ["capture_alike", "prompts_like"]
