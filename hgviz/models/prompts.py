"""The one or two prompts that a model reads, from texts, corpora, files of ids, images and sounds.

A boundary is a token that closes a segment of a model that reads segments of unequal length.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HgvizError, Prompt
from hgviz.errors import require
from hgviz.files import first_line
from hgviz.models.data import Corpus, read_corpus
from hgviz.models.model import READS, TAKEN, Model, require_none
from hgviz.models.text import decode_utf8, read_bytes

Prompts = tuple[Prompt, Prompt | None]  # the second is what a decoder reads

MOST_TEXT, MOST_IDS = 64 * 2**20, 256 * 2**20  # bytes
NO_ENCODER = "it is a decoder that attends to the states of a separate encoder"
STATES = 'Use --ids F.json with "input_ids" (its own tokens) and "encoder_hidden_states"'


def read_prompts(
    model: Model,
    text: str | None = None,
    text_file: str | Path | None = None,
    ids_file: str | Path | None = None,
    pair: str | None = None,
    target: str | None = None,
    boundaries: str = "",
    signal_file: str | Path | None = None,
    writes: bool = False,
) -> Prompts:
    """The prompts of a text, a file of one or of ids, or an image or a sound.

    pair and target belong to a text; a target, or the input_ids of ids_file, also to an image or a
    sound. writes: the model continues its target, which may be missing: it then begins with the
    token that its decoder begins with. boundaries: as with_boundaries reads them, "" for the
    model's own; of a text alone. Raises HgvizError for what the model does not take or lacks.
    """
    if signal_file is not None:
        require_none({"a second text": pair, "boundaries": boundaries or None}, model.spec.family)
        return _from_signal(model, signal_file, target, ids_file, writes)
    if ids_file is not None:
        own, second = from_file(model, ids_file)
    else:
        content = read_text(text_file) if text_file is not None else text or ""
        begins = writes and target is None and model.spec.form == "encoder-decoder"
        if begins and model.spec.modality == "text":
            own, second = model.tokenize(content, pair), model.beginning()
        else:
            own, second = from_text(model, content, pair, target)
    return (with_boundaries(model, own, boundaries) if boundaries else own), second


def from_text(
    model: Model, text: str, pair: str | None = None, target: str | None = None
) -> Prompts:
    """The prompts of a text, of a pair, or of a text and the decoder's.

    Raises HgvizError where the model takes others, naming the option that it needs.
    """
    spec = model.spec
    require(
        spec.modality == "text",
        f"this model reads {READS[spec.modality]}, not text: its family is {spec.family}",
        TAKEN.format(spec.modality),
    )
    what = f"this model cannot run on text alone: {NO_ENCODER}"
    require(not model.takes_states, what, STATES)
    require(
        target is not None or not spec.needs_target,
        "this model needs a second text: it has an encoder and a decoder",
        "Give the decoder's text with --target",
    )
    if target is None:
        own = model.tokenize(text, pair)
        return own, model.decoder_prompt(own) if spec.reads_twice else None
    if not spec.two_texts or spec.goal == "classes":
        why = "its decoder reads the same text"
        if not spec.two_texts:
            why = "it reads one text, and only an encoder-decoder reads two"
        raise HgvizError(f"this model does not accept a target: {why}", "Leave --target out")
    return model.tokenize(text, pair), _tokenize_target(model, target)


def _from_signal(
    model: Model, signal: str | Path, target: str | None, ids: str | Path | None, writes: bool
) -> Prompts:
    """The prompts of a picture or a sound, and of what a decoder writes about it."""
    own = model.from_signal(signal)
    if not model.spec.two_texts:
        require_none({"target": target, "input_ids": ids}, model.spec.family)
        return own, None
    if ids is not None:
        content = read_ids(ids)
        return own, model.from_ids(content.input_ids, content.attention_mask)
    require(
        target is not None or writes,
        "this model needs a text for its decoder: "
        f"its encoder reads {READS[model.spec.modality]}, and its decoder reads text",
        "Give it with --target or --ids, or generate it with --generate N",
    )
    return own, model.beginning() if target is None else _tokenize_target(model, target)


def _tokenize_target(model: Model, text: str) -> Prompt:
    try:
        return model.tokenize_target(text)
    except HgvizError as error:
        raise HgvizError(f"the target is invalid: {error.what}", error.do) from None


def from_file(model: Model, path: str | Path) -> Prompts:
    """The prompts of a file of ids; see Ids for its keys.

    Raises HgvizError for a key that this model has no use for, or needs and lacks.
    """
    content, has_encoder = read_ids(path), model.spec.form == "encoder-decoder"
    foreign = {
        "decoder_input_ids": None if has_encoder else content.decoder_input_ids,
        "encoder_hidden_states": None if model.takes_states else content.encoder_hidden_states,
    }
    require_none(foreign, model.spec.family)
    own = model.from_ids(
        content.input_ids, content.attention_mask, content.token_type_ids, content.boundaries,
        content.position_ids,
    )  # fmt: skip
    if model.takes_states:
        what = f"this model needs encoder_hidden_states: {NO_ENCODER}"
        require(content.encoder_hidden_states is not None, what, STATES)
        states = np.array(content.encoder_hidden_states, np.float64)
        return model.from_states(states, content.encoder_attention_mask), own
    if not has_encoder:
        return own, None
    if content.decoder_input_ids is None and model.spec.reads_twice:
        return own, model.decoder_prompt(own)
    require(
        content.decoder_input_ids is not None,
        "this model needs decoder_input_ids: it has an encoder and a decoder",
        'Use --ids F.json with "input_ids" and "decoder_input_ids"',
    )
    return own, model.from_ids(content.decoder_input_ids, content.decoder_attention_mask)


# --- corpora --------------------------------------------------------------------------------------


def read_corpus_for(model: Model, path: str | Path) -> Corpus:
    """Read the texts of a file with what the model reads beside them.

    Raises HgvizError as read_corpus does, and for a model of images or sounds.
    """
    if (modality := model.spec.modality) != "text":
        target = " --target TEXT" if model.spec.two_texts else ""
        raise HgvizError(
            f"this model reads {READS[modality]}, not a corpus of texts: "
            f"its family is {model.spec.family}",
            f"Use `hgviz capture` with --{modality} FILE{target}, one at a time",
        )
    return read_corpus(path, model.spec.needs_target, model.reads_pairs)


def corpus_prompts(model: Model, corpus: Corpus, number: int) -> Prompts:
    """The prompts of a text of a corpus. Raises HgvizError naming its line."""
    text = corpus.texts[number]
    try:
        return from_text(model, text.text, text.pair, text.target)
    except HgvizError as error:
        raise HgvizError(f"{corpus.name}, line {text.line:,}: {error.what}", error.do) from None


# --- the text of another capture ------------------------------------------------------------------


def prompts_like(model: Model, like: Capture) -> Prompts:
    """What a model reads of the text of a capture, which another model may have read.

    The same token ids where both tokenizers agree on them, else the text as the model's own
    tokenizer splits it. A model of one text reads what a decoder wrote; one without token types
    reads a pair as one text. Raises HgvizError where the model cannot read it.
    """
    main, target = like.prompt, like.target
    if model.takes_states:
        what = f"B cannot read the text of A: {NO_ENCODER}"
        require(
            main.states is not None and target is not None, what, "Choose a model that reads texts"
        )
        assert target is not None
        return main, _read_again(model, target)
    require(
        (main.signal is None) == (model.spec.modality == "text"),
        "B cannot read the input of A: "
        f"A reads {READS[like.spec.modality]}, B reads {READS[model.spec.modality]}",
        "Choose two models of the same kind",
    )
    if main.signal is not None:
        own = model.reread(main)
        if not model.spec.two_texts:
            return own, None
        return own, model.beginning() if target is None else _target_like(model, target)
    if model.spec.needs_target:
        return _read_again(model, main), _target_like(model, main if target is None else target)
    if target is not None and like.main.text:
        return _tokenize_again(model, like.main), None
    pair = like.texts[1] if target is None and getattr(model.config, "segments", 0) > 1 else ""
    return _read_again(model, like.main, pair), None


def _target_like(model: Model, prompt: Prompt) -> Prompt:
    """What the decoder of an encoder-decoder reads of a text that another model read."""
    start, same = model.decoder_start, _same_ids(model, prompt)
    if same is not None and (not prompt.text or start is None or same.ids[0] == start):
        return same
    if prompt.text and prompt.states is None:
        return model.tokenize_target(prompt.text)
    return model.with_decoder_start(_tokenize_again(model, prompt))


def _read_again(model: Model, prompt: Prompt, pair: str = "") -> Prompt:
    return _same_ids(model, prompt) or _tokenize_again(model, prompt, pair)


def _same_ids(model: Model, prompt: Prompt) -> Prompt | None:
    """The prompt itself where its ids are the same pieces of text in the model, else None."""
    limit, ids = model.spec.max_positions, prompt.ids
    if prompt.states is not None or (limit is not None and len(prompt) > limit):
        return None
    if prompt.token_type_ids is not None and not getattr(model.config, "segments", 0):
        return None
    if len(ids) and not (ids.min() >= 0 and ids.max() < model.spec.vocabulary):
        return None
    return prompt if model.tokenizer.decode(ids).pieces == prompt.pieces else None


def _tokenize_again(model: Model, prompt: Prompt, pair: str = "") -> Prompt:
    """A text, or a pair, as the model's own tokenizer splits it; the ids where there is no text."""
    require(
        prompt.states is None,
        "B cannot read the input of A, which is the states of an encoder",
        "Choose a model that accepts states, or open a capture",
    )
    if not prompt.text:
        return model.from_ids(prompt.ids, prompt.attention_mask)
    if pair:
        return model.tokenize(prompt.text[: -len(pair) - 1], pair)
    return model.tokenize(prompt.text)


# --- files ----------------------------------------------------------------------------------------


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file. Raises HgvizError for anything else, and for an empty one."""
    data = read_bytes(Path(path), MOST_TEXT)
    require(data, f"{Path(path).name} is empty", "Choose a file with text")
    return decode_utf8(Path(path), data)


def read_standard_input() -> str:
    """The text on standard input. Raises HgvizError as read_text does."""
    source = Path("standard input")
    data = sys.stdin.buffer.read(MOST_TEXT + 1)
    require(data, f"{source} is empty", "Give some text")
    require(len(data) <= MOST_TEXT, f"{source} is too long: the limit is {MOST_TEXT >> 20} MB")
    return decode_utf8(source, data)


_Id = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_Bit = Literal[0, 1]


class Ids(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sequence as --ids gives it, and what else a model may take with it.

    Token ids, 1 for each real token, token types, positions; the decoder's ids where input_ids are
    an encoder's; an encoder's states (positions, width) where input_ids are a decoder's own;
    boundaries, 1 for each token that closes a segment.
    """

    input_ids: list[_Id]
    attention_mask: list[_Bit] | None = None
    token_type_ids: list[_Id] | None = None
    position_ids: list[_Id] | None = None
    decoder_input_ids: list[_Id] | None = None
    decoder_attention_mask: list[_Bit] | None = None
    encoder_hidden_states: list[list[float]] | None = None
    encoder_attention_mask: list[_Bit] | None = None
    boundaries: list[_Bit] | None = None


_ALIGNED = {  # each has one entry for each entry of another
    "attention_mask": "input_ids", "token_type_ids": "input_ids", "position_ids": "input_ids",
    "decoder_attention_mask": "decoder_input_ids", "boundaries": "input_ids",
    "encoder_attention_mask": "encoder_hidden_states",
}  # fmt: skip


def read_ids(path: str | Path) -> Ids:
    """The ids of a JSON file. Raises HgvizError for another shape, type or unequal lengths."""
    path = Path(path)
    try:
        ids = msgspec.json.decode(read_bytes(path, MOST_IDS), type=Ids)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HgvizError(
            f"{path.name} does not contain token ids: {first_line(error)}",
            'Write {"input_ids": [1, 2, 3]}, with "attention_mask" if tokens are padding',
        ) from None
    for name, other in _ALIGNED.items():
        values, others = getattr(ids, name), getattr(ids, other)
        need = f"one for each of the {len(others):,} {other}" if others else other
        is_aligned = values is None or (others is not None and len(values) == len(others))
        require(is_aligned, f"the {name} in {path.name} does not fit: it needs {need}")
    require(
        len({len(row) for row in ids.encoder_hidden_states or ()}) < 2,
        f"the encoder_hidden_states in {path.name} are not a matrix: their rows differ in length",
    )
    return ids


# --- boundaries -----------------------------------------------------------------------------------


def with_boundaries(model: Model, prompt: Prompt, boundaries: str) -> Prompt:
    """A prompt with boundaries: "fixed:3" for every third token from the first on, "whitespace" for
    every token that ends with white space, or a file of a 0 or 1 for each token, as JSON or one
    after the other.

    Raises HgvizError for models that read no segments, and for what cannot be read or done.
    """
    name, colon, count = boundaries.partition(":")
    if not model.shortens:
        return model.set_boundaries(prompt, boundaries)  # which says that it takes none
    if name == "fixed" and colon:
        require(
            count.isascii() and count.isdecimal() and len(count) < 9 and int(count),
            f"the boundaries {boundaries[:80]!r} are invalid: fixed needs a number of tokens, "
            "at least 1",
            "Write it as fixed:3",
        )
        # from the first on, which aligns segments as a shift of count - 1
        return model.set_boundaries(prompt, np.arange(len(prompt)) % int(count) == 0)
    if boundaries == "whitespace":
        require(
            (prompt.spans[:, 0] >= 0).any(),
            "whitespace boundaries need text, and these ids have none",
            "Use a text, or give the boundaries themselves",
        )
        labels = map(prompt.label, range(len(prompt)))
        ends = np.array([label[-1:].isspace() for label in labels], bool)
        return model.set_boundaries(prompt, ends)
    return model.set_boundaries(prompt, read_boundaries(boundaries))


def read_boundaries(path: str | Path) -> NDArray[np.int64]:
    """(tokens,) The 0s and 1s of a file: a JSON list, or one after the other.

    Raises HgvizError for anything else.
    """
    path = Path(path)
    require(
        path.exists(),
        f"there is no boundaries file {str(path)[:80]!r}",
        "Use a file with 0 or 1 for each token, fixed:K or whitespace",
    )
    data = read_bytes(path, MOST_IDS)
    try:
        if data[:1] == b"[":
            return np.array(msgspec.json.decode(data, type=list[int]), np.int64)
        digits = b"".join(data.split())
        if others := {*digits} - {*b"01"}:
            raise ValueError(f"it contains {chr(min(others))!r}, which is neither 0 nor 1")
        return np.frombuffer(digits, np.uint8).astype(np.int64) - ord("0")
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise HgvizError(
            f"{path.name} does not contain boundaries: {first_line(error)}",
            "Write [1, 0, 0, 1] or 1001",
        ) from None
