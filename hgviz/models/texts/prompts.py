"""From what a person gives, texts or ids, to the one or two prompts that a model reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hgviz.core import HgvizError, Prompt
from hgviz.models.inputs import READS, TAKEN, require_none
from hgviz.models.model import Model
from hgviz.models.texts.boundaries import cut
from hgviz.models.texts.text import Ids, read_ids, read_text

Given = tuple[Prompt, Prompt | None]
STATES = (
    'Give --ids F.json with "input_ids", its own tokens, and "encoder_hidden_states", what it '
    "looks at"
)
BOTH = 'Give --ids F.json with "input_ids" and "decoder_input_ids"'


def from_text(model: Model, text: str, pair: str | None = None, target: str | None = None) -> Given:
    """The prompts of a text, of a pair, or of a text and the decoder's.

    Errors: HgvizError where the model takes others, naming the option that it needs.
    """
    if model.spec.modality != "text":
        raise HgvizError(
            f"this model reads {READS[model.spec.modality]} and no text: "
            f"its family is {model.spec.family}",
            TAKEN.format(model.spec.modality),
        )
    if model.takes_states:
        raise HgvizError(
            "this model cannot start from a text alone: "
            "it is a decoder that looks at the states of an encoder which is not part of it",
            STATES,
        )
    if model.spec.needs_target and target is None:
        raise HgvizError(
            "this model needs a second text: its encoder reads one and its decoder writes another",
            "Give the decoder's text with --target",
        )
    if target is None:
        own = model.tokenize(text, pair)
        return own, model.twice(own) if model.spec.reads_twice else None
    again = model.spec.two_texts and model.spec.goal == "classes"
    if again or not model.spec.two_texts:
        raise HgvizError(
            "this model has no use for a target: "
            + (
                "its decoder reads the same text"
                if again
                else "it reads one text, as only an encoder-decoder has two"
            ),
            "Leave --target out",
        )
    return model.tokenize(text, pair), _named("the target: ", model, target)


def _of_signal(
    model: Model,
    signal: str | Path,
    target: str | None,
    ids: str | Path | None,
    writes: bool,
) -> Given:
    """The prompts of a picture or a sound, and of what a decoder writes about it."""
    own = model.from_signal(signal)
    if not model.spec.two_texts:
        require_none({"target": target, "input_ids": ids}, model.spec.family)
        return own, None
    if ids is not None:
        given = read_ids(ids)
        return own, model.from_ids(given.input_ids, given.attention_mask)
    if target is not None:
        return own, _named("the target: ", model, target)
    if writes:
        return own, model.beginning()
    raise HgvizError(
        "this model needs a text for its decoder: "
        f"its encoder reads {READS[model.spec.modality]}, and its decoder writes",
        "Give it with --target or --ids, or let the model write it: --generate N",
    )


def _named(name: str, model: Model, text: str) -> Prompt:
    try:
        return model.tokenize_target(text)
    except HgvizError as error:
        raise HgvizError(name + error.what, error.do) from None


def from_file(model: Model, path: str | Path) -> Given:
    """The prompts of a file of ids; see Ids for its keys.

    Errors: HgvizError for a key that this model has no use for, or needs and lacks.
    """
    given = read_ids(path)
    both = model.spec.form == "encoder-decoder"
    foreign = {
        "decoder_input_ids": None if both else given.decoder_input_ids,
        "encoder_hidden_states": None if model.takes_states else given.encoder_hidden_states,
    }
    require_none(foreign, model.spec.family)
    own = model.from_ids(
        given.input_ids,
        given.attention_mask,
        given.token_type_ids,
        given.boundaries,
        given.position_ids,
    )
    if model.takes_states:
        return _states(model, given), own
    if not both:
        return own, None
    if given.decoder_input_ids is None and model.spec.reads_twice:
        return own, model.twice(own)
    if given.decoder_input_ids is None:
        raise HgvizError(
            "this model needs decoder_input_ids: "
            "its encoder reads the input_ids and its decoder writes a second text",
            BOTH,
        )
    return own, model.from_ids(given.decoder_input_ids, given.decoder_attention_mask)


def _states(model: Model, given: Ids) -> Prompt:
    if given.encoder_hidden_states is None:
        raise HgvizError(
            "this model needs encoder_hidden_states: "
            "it is a decoder that looks at the states of an encoder which is not part of it",
            STATES,
        )
    states = np.array(given.encoder_hidden_states, np.float64)
    return model.from_states(states, given.encoder_attention_mask)


def given(
    model: Model,
    text: str | None = None,
    text_file: str | Path | None = None,
    ids_file: str | Path | None = None,
    pair: str | None = None,
    target: str | None = None,
    boundaries: str = "",
    signal_file: str | Path | None = None,
    writes: bool = False,
) -> Given:
    """The prompts of whichever of the four is given; pair and target belong to a text.

    signal_file: a picture or a sound, for a model that reads these; a target, or the input_ids of
    ids_file, are then its decoder's. writes: the model goes on with its target, which may be left
    out: it begins with the token that its decoder begins with.

    boundaries: as boundaries.cut reads them, "" for the model's own; of a text alone.
    """
    if signal_file is not None:
        require_none({"a second text": pair, "boundaries": boundaries or None}, model.spec.family)
        return _of_signal(model, signal_file, target, ids_file, writes)
    if ids_file is not None:
        own, other = from_file(model, ids_file)
    else:
        found = read_text(text_file) if text_file is not None else text or ""
        begins = writes and target is None and model.spec.form == "encoder-decoder"
        if begins and model.spec.modality == "text":
            own, other = model.tokenize(found, pair), model.beginning()
        else:
            own, other = from_text(model, found, pair, target)
    return (cut(model, own, boundaries) if boundaries else own), other


__all__ = ["Given", "from_file", "from_text", "given"]
