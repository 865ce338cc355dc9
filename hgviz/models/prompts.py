"""The one or two prompts that a model reads, from what a person gives: texts, ids or a signal.

A boundary is a token that closes a segment of a model that reads segments of unequal length.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import HgvizError, Prompt
from hgviz.errors import require
from hgviz.files import first_line
from hgviz.models.data import Corpus, read_corpus
from hgviz.models.inputs import READS, TAKEN, require_none
from hgviz.models.model import Model
from hgviz.models.text import MOST_IDS, Ids, read_bytes, read_ids, read_text

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


def read_corpus_for(model: Model, path: str | Path) -> Corpus:
    """Read the texts of a file with what the model reads beside them.

    Raises HgvizError as read_corpus does, and for a model of images or sounds.
    """
    if (modality := model.spec.modality) != "text":
        target = " --target TEXT" if model.spec.two_texts else ""
        raise HgvizError(
            f"this model reads {READS[modality]}, and no corpus of texts: "
            f"its family is {model.spec.family}",
            f"Use `hgviz capture` on one at a time, with --{modality} FILE{target}",
        )
    return read_corpus(path, model.spec.needs_target, model.reads_pairs)


def corpus_prompts(model: Model, corpus: Corpus, number: int) -> Given:
    """The prompts of a text of a corpus. Raises HgvizError naming its line."""
    text = corpus.texts[number]
    try:
        return from_text(model, text.text, text.pair, text.target)
    except HgvizError as error:
        raise HgvizError(f"{corpus.name}, line {text.line:,}: {error.what}", error.do) from None


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

    boundaries: as with_boundaries reads them, "" for the model's own; of a text alone.
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
    return (with_boundaries(model, own, boundaries) if boundaries else own), other


# --- boundaries -----------------------------------------------------------------------------------


def with_boundaries(model: Model, prompt: Prompt, how: str) -> Prompt:
    """A prompt with the boundaries that a text says: "fixed:3" for every third token from the first
    on, "whitespace" for every token that ends with white space, or the path of a file of a 0 or 1
    for each token, as JSON or one after the other.

    Errors: HgvizError for models that read no segments, and for what cannot be read or done.
    """
    if not model.shortens:
        return model.cut(prompt, how)  # which says that it takes none
    name, colon, count = how.partition(":")
    if name == "fixed" and colon:
        return model.cut(prompt, fixed(len(prompt), _count(how, count)))
    if how == "whitespace":
        return model.cut(prompt, whitespace(prompt))
    return model.cut(prompt, read_boundaries(how))


def fixed(tokens: int, factor: int) -> NDArray[np.bool_]:
    """Every factor-th token from the first on, which aligns segments as a shift of factor - 1."""
    return np.arange(tokens) % factor == 0


def whitespace(prompt: Prompt) -> NDArray[np.bool_]:
    """Tokens whose last character is white space. Errors: HgvizError where there is no text."""
    _require_text(prompt)
    return np.array([prompt.label(at)[-1:].isspace() for at in range(len(prompt))], bool)


def read_boundaries(path: str | Path) -> NDArray[np.int64]:
    """(tokens,) The 0s and 1s of a file: a JSON list, or one after the other.

    Errors: HgvizError for anything else.
    """
    path = Path(path)
    if not path.exists():
        raise HgvizError(
            f"there are no boundaries {str(path)[:80]!r}: no file has that name",
            "Name a file of 0 and 1 for each token, or fixed:K, whitespace",
        )
    data = read_bytes(path, MOST_IDS)
    try:
        bits = msgspec.json.decode(data, type=list[int]) if data[:1] == b"[" else _read_digits(data)
        return np.array(bits, np.int64)
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise HgvizError(
            f"{path.name} does not hold boundaries: {first_line(error)}",
            "Write [1, 0, 0, 1] or 1001",
        ) from None


def _read_digits(data: bytes) -> list[int]:
    marks = b"".join(data.split())
    if other := set(marks) - {*b"01"}:
        raise ValueError(f"it holds {chr(min(other))!r}, which is neither 0 nor 1")
    return [mark - ord("0") for mark in marks]


def _count(how: str, text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 9 and int(text):
        return int(text)
    raise HgvizError(
        f"the boundaries {how[:80]!r} cannot be used: fixed needs a number of tokens, at least 1",
        "Write it as fixed:3",
    )


def _require_text(prompt: Prompt) -> None:
    require(
        (prompt.spans[:, 0] >= 0).any(),
        "these ids have no text: such boundaries are found by characters",
        "Give a text, or the boundaries themselves",
    )
