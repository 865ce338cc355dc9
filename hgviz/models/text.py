"""Texts as models read them: tokenizers, files of texts and ids, and how a text goes on.

A tokenizer turns a text into a `Prompt`: ids, what each token is called, and the characters of the
text that it stands for. Three kinds: UTF-8 bytes, a tokenizer.json or the vocabulary files that
transformers makes one of, and none at all, for models that are given ids.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, cast
from unicodedata import normalize

import msgspec
import numpy as np

from hgviz.core import HgvizError, Integers, Prompt, readonly
from hgviz.errors import file_error, require
from hgviz.files import CONFIG, first_line, printable, read_object

if TYPE_CHECKING:
    import tokenizers
    from tokenizers import Encoding

Result = TypeVar("Result")

MOST_TEXT = 64 * 2**20
MOST_IDS = 256 * 2**20
MOST_TOKENIZER = 64 * 2**20
TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"
VOCABULARIES = (  # what transformers makes tokenizers of: each a file, and what it needs beside it
    ("vocab.txt",), ("vocab.json", "merges.txt"), ("tokenizer.model",), ("spiece.model",),
    ("sentencepiece.bpe.model",), ("spm.model",), ("tiktoken.model",), ("tekken.json",),
)  # fmt: skip
READ_BY = ("sentencepiece", "tiktoken")  # packages that read .model files
TOKENS = ("added_tokens.json", "special_tokens_map.json")  # and what else it reads of them
CLASSES = {"vocab.txt": "BertTokenizer", "vocab.json": "GPT2Tokenizer"}  # where nobody says which
OTHERWISE = "Put a tokenizer.json beside it, or give token ids with --ids"
PATIENCE = 5.0  # seconds for any text, and
LAST_LATIN = 0x2FF  # the last character before those that compose with the one before them
SLOWEST = 50_000  # characters a second; a tokenizer reads some millions
SAYING_ENDS = (CONFIG, "generation_config.json")  # files that name the tokens that end a text
CONTEXT = 6  # how many tokens a decoder is shown before the first that it is asked about


# --- tokens of bytes ------------------------------------------------------------------------------

SIGNS = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥"}


def _name(byte: int) -> str:
    char = chr(byte)
    return SIGNS.get(char) or (char if byte < 128 and char.isprintable() else f"<{byte:02X}>")


NAMES = tuple(_name(byte) for byte in range(256))
# byte-level BPE writes a byte as itself where that can be seen, the others from U+0100 on
_SEEN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_UNSEEN = [byte for byte in range(256) if byte not in _SEEN]
ALPHABET = {chr(byte): byte for byte in _SEEN} | {
    chr(0x100 + i): byte for i, byte in enumerate(_UNSEEN)
}


def token_bytes(token: str) -> bytes | None:
    """The bytes that a token of byte-level BPE writes; None where it is no such token."""
    if not all(char in ALPHABET for char in token):
        return None
    return bytes(ALPHABET[char] for char in token)


def show_bytes(data: bytes) -> str:
    """Bytes as people see them: by their characters, or one by one where they make none."""
    try:
        return "".join(SIGNS.get(char, char) for char in data.decode())
    except UnicodeDecodeError:
        return "".join(NAMES[byte] for byte in data)


def split_characters(data: bytes) -> Iterator[bytes]:
    """The bytes of each character; a byte that starts none stands alone."""
    start = 0
    while start < len(data):
        first = data[start]
        size = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        part = data[start : start + size]
        try:
            part.decode()
        except UnicodeDecodeError:
            part = part[:1]
        yield part
        start += len(part)


def join_bytes(parts: Sequence[bytes]) -> tuple[str, Integers]:
    """The text that the bytes of tokens make, and which characters each token has a byte of:
    (tokens, 2), (-1, -1) for a token without bytes. What is not UTF-8 becomes U+FFFD."""
    found = list(split_characters(b"".join(parts)))
    char = np.repeat(np.arange(len(found)), [len(one) for one in found])
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    spans = np.full((len(parts), 2), -1, np.int64)
    for i, (part, end) in enumerate(zip(parts, ends, strict=True)):
        if part:
            spans[i] = char[end - len(part)], char[end - 1] + 1
    return "".join(one.decode(errors="replace") for one in found), spans


# --- tokenizers -----------------------------------------------------------------------------------


class Tokenizer(Protocol):
    """Turns texts into prompts, and ids back into what can be shown of them."""

    unit: str  # what one token is called: "byte", "token"

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text, or of two; spans are character offsets into it, or into both
        joined by a line break."""
        ...

    def decode(self, ids: Integers) -> Prompt:
        """The prompt of ids alone, with as much text as they stand for."""
        ...


def tokenizer_of(folder: Path, vocabulary: int, own: bytes | None = None) -> Tokenizer:
    """The tokenizer of a checkpoint's folder: tokenizer.json, as transformers reads it where a
    tokenizer_config.json lies beside it, else what transformers makes of its vocabulary files;
    without them, bytes for 256 ids, else none. own: the tokenizer.json of its weights themselves.

    Errors: HgvizError for a tokenizer.json that is damaged. Vocabulary files that make no
    tokenizer leave the model its ids, and are an error where a text is read.
    """
    if own is not None:
        return Pieces(folder / TOKENIZER, vocabulary, own)
    file = tokenizer_file(folder)
    if file is None:
        return Bytes() if vocabulary == 256 else Bare()
    try:
        return Pieces(file, vocabulary)
    except HgvizError as error:
        if file.name == TOKENIZER:
            raise
        return Bare(error)


def tokenizer_file(folder: Path) -> Path | None:
    """tokenizer.json, or the first of the vocabulary files that is there with what it needs."""
    for names in ((TOKENIZER,), *VOCABULARIES):
        if all(os.path.lexists(folder / name) for name in names):
            return folder / names[0]
    return None


class Bytes:
    """UTF-8: one token per byte; the bytes of one character share its span."""

    unit = "byte"

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text. Errors: HgvizError for an empty text, surrogates and pairs."""
        if pair is not None:
            raise HgvizError(
                "bytes have no pairs of texts: no byte stands between the two", "Give one text"
            )
        try:
            parts = [char.encode() for char in require_text(text)]
        except UnicodeEncodeError:
            raise HgvizError(
                "the text is not Unicode: "
                "it holds bytes that no character has, as a wrongly decoded file does",
                "Give it as UTF-8",
            ) from None
        return _bytes_prompt(text, parts)

    def decode(self, ids: Integers) -> Prompt:
        """The prompt of bytes; what is not UTF-8 becomes U+FFFD, byte by byte."""
        data = bytes(ids.astype(np.uint8))
        parts = list(split_characters(data))
        return _bytes_prompt("".join(part.decode(errors="replace") for part in parts), parts)


class Pieces:
    """A tokenizer.json, or vocabulary files. vocabulary: how many tokens the model has; the
    tokenizer may have more, and only a text that uses one of those is refused. data: what the file
    holds, where that is known."""

    unit = "token"

    def __init__(self, file: Path, vocabulary: int, data: bytes | None = None) -> None:
        self._name = file.name
        own = file.name == TOKENIZER or data is not None
        with _tokenizer_errors(f"{file.name} could not be read", *(() if own else (OTHERWISE,))):
            self._tokenizer = _open_tokenizer(file, data)
            self._tokenizer.no_truncation()  # a text is never cut in silence
            self._tokenizer.no_padding()
            self.is_byte_level = _is_byte_level(self._tokenizer)
        self._vocabulary = vocabulary

    def require_fit(self, ids: Sequence[int] | None = None) -> None:
        """Check that the model has an embedding for these tokens (default: all of the tokenizer).

        Raises HgvizError naming the token with the largest id where it has none.
        """
        if ids is None:
            ids = [*self._tokenizer.get_vocab(with_added_tokens=True).values()]
        last = max(ids, default=0)
        if last >= self._vocabulary:
            token = json.dumps((self._tokenizer.id_to_token(last) or "")[:40], ensure_ascii=False)
            raise HgvizError(
                f"the model has no embedding for the token {printable(token)}: "
                f"its id in {self._name} is {last:,}, the model's ids end at "
                f"{self._vocabulary - 1:,}",
                "Leave this token out, or use the tokenizer that the model was trained with",
            )

    @property
    def json(self) -> bytes:
        """The tokenizer as a tokenizer.json."""
        with _tokenizer_errors(f"{self._name} could not be written"):
            return self._tokenizer.to_str(pretty=True).encode()

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text or two; special tokens have the span (-1, -1)."""
        with _tokenizer_errors(f"{self._name} could not read this text"):
            encoding = self._encode(text, pair)
            self.require_fit(encoding.ids)
        return prompt_of(self._tokenizer, encoding, text, pair)

    def _encode(self, text: str, pair: str | None) -> Encoding:
        """What the tokenizer makes of it. A pattern may take longer than anyone can wait."""
        limit = PATIENCE + (len(text) + len(pair or "")) / SLOWEST
        given = text if pair is None else (text, pair)
        try:
            # a batch of one, since encode lets no other thread run meanwhile
            return run_with_timeout(limit, lambda: self._tokenizer.encode_batch([given])[0])
        except TimeoutError:
            raise HgvizError(
                f"{self._name} could not read this text: "
                f"it was not done after {limit:.0f} seconds, as with a pattern that runs away",
                "Use the tokenizer.json the model came with, or a shorter text",
            ) from None

    def decode(self, ids: Integers) -> Prompt:
        """The prompt of ids: their token strings, and the text that tokens of bytes make."""
        tokens = [self._tokenizer.id_to_token(int(one)) for one in ids]
        pieces = [
            str(one) if token is None else _piece(token, self.is_byte_level)
            for one, token in zip(ids, tokens, strict=True)
        ]
        if not self.is_byte_level:
            return _prompt_of_ids(ids, pieces)
        added = self._tokenizer.get_added_tokens_decoder()
        parts = [
            b"" if token is None or int(one) in added else token_bytes(token) or b""
            for one, token in zip(ids, tokens, strict=True)
        ]
        text, spans = join_bytes(parts)
        return Prompt(text, readonly(ids, np.int64), tuple(pieces), readonly(spans))

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that its own decoder makes of some ids; special tokens have none."""
        with _tokenizer_errors(f"{self._name} could not say what tokens mean"):
            return self._tokenizer.decode_batch([list(ids)], skip_special_tokens=True)[0]

    def id_of(self, token: str) -> int | None:
        """The id of a token by its name."""
        return self._tokenizer.token_to_id(token)


class Bare:
    """No tokenizer: such a model is given ids. error: what is wrong with its vocabulary files,
    where there are some."""

    unit = "token"

    def __init__(self, error: HgvizError | None = None) -> None:
        self.error = error

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """Errors: always HgvizError."""
        raise self.error or HgvizError(
            "this model cannot read text: "
            "there is no tokenizer.json beside it, and only a vocabulary of 256 is read as bytes",
            "Put its tokenizer.json into the folder, or give token ids with --ids",
        )

    def decode(self, ids: Integers) -> Prompt:
        """The prompt of ids, named by their numbers."""
        return _prompt_of_ids(ids, [str(one) for one in ids])


def require_text(text: str) -> str:
    """The text itself. Errors: HgvizError where it is empty."""
    require(text, "the text is empty: there is nothing to attend to", "Give some text")
    return text


def require_room(tokens: int, limit: int | None, unit: str = "token") -> None:
    """Errors: HgvizError where there are no tokens, or more than the model's positions."""
    require(tokens != 0, "the text is empty: it has no tokens", "Give some text")
    if limit is not None and tokens > limit:
        raise HgvizError(
            f"the text is too long: {tokens:,} {unit}s: this model has positions for {limit:,}",
            f"Shorten the text to {limit:,} {unit}s",
        )


# --- files ----------------------------------------------------------------------------------------


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file. Errors: HgvizError for anything else, and for an empty one."""
    path = Path(path)
    data = read_bytes(path, MOST_TEXT)
    if not data:
        raise HgvizError(f"{path.name} is empty: there is nothing to attend to", "Give some text")
    return decode_utf8(path, data)


def decode_utf8(path: Path, data: bytes) -> str:
    """The text of a UTF-8 file's bytes. Errors: HgvizError naming the first byte that is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HgvizError(
            f"{path.name} is not a UTF-8 text: "
            f"byte {error.start:,} (0x{data[error.start]:02X}) cannot be decoded",
            "Save it as UTF-8",
        ) from None


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


_BESIDE = (  # each has one entry for each entry of another
    ("attention_mask", "input_ids"),
    ("token_type_ids", "input_ids"),
    ("position_ids", "input_ids"),
    ("decoder_attention_mask", "decoder_input_ids"),
    ("encoder_attention_mask", "encoder_hidden_states"),
    ("boundaries", "input_ids"),
)


def read_ids(path: str | Path) -> Ids:
    """The ids of a JSON file. Errors: HgvizError for another shape, type or unequal lengths."""
    path = Path(path)
    try:
        ids = msgspec.json.decode(read_bytes(path, MOST_IDS), type=Ids)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HgvizError(
            f"{path.name} does not hold token ids: {first_line(error)}",
            'Write {"input_ids": [1, 2, 3]}, with "attention_mask" where tokens are padding',
        ) from None
    for name, beside in _BESIDE:
        given, whole = getattr(ids, name), getattr(ids, beside)
        if given is not None and (whole is None or len(given) != len(whole)):
            need = f"one for each of the {len(whole):,} {beside}" if whole else beside
            raise HgvizError(f"the {name} in {path.name} does not fit: it needs {need}")
    if len({len(row) for row in ids.encoder_hidden_states or ()}) > 1:
        raise HgvizError(
            f"the encoder_hidden_states in {path.name} are no matrix: their rows differ in length"
        )
    return ids


def read_bytes(path: Path, most: int) -> bytes:
    """What a file holds, at most so many bytes. Errors: HgvizError for more, or no such file."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise file_error(f"{path.name} could not be read", error) from None
    if len(data) > most:
        raise HgvizError(f"{path.name} is too large: the limit is {most // 2**20:,} MB")
    return data


def read_regular(path: Path, most: int) -> bytes:
    """As read_bytes, and nothing but a regular file: to open a pipe is to wait for its writer."""
    if path.exists() and not path.is_file():
        raise HgvizError(f"{path.name} could not be read: it is no file", "Put a file there")
    return read_bytes(path, most)


# --- prompts of encodings -------------------------------------------------------------------------


def prompt_of(
    tokenizer: tokenizers.Tokenizer, encoding: Encoding, text: str, pair: str | None = None
) -> Prompt:
    """The prompt of a text or two that a tokenizer has encoded."""
    spans = np.array(encoding.offsets, np.int64).reshape(-1, 2)
    second = np.array([one == 1 for one in encoding.sequence_ids], bool)
    spans[second] += len(text) + 1
    spans[np.array(encoding.special_tokens_mask, bool)] = -1
    kinds = None if pair is None else readonly(encoding.type_ids, np.int64)
    whole, is_byte_level = text if pair is None else f"{text}\n{pair}", _is_byte_level(tokenizer)
    _read_fully(whole, spans, encoding.tokens, is_byte_level)
    return Prompt(
        text=whole,
        ids=readonly(encoding.ids, np.int64),
        pieces=tuple(_piece(token, is_byte_level) for token in encoding.tokens),
        spans=readonly(spans),
        token_type_ids=kinds,
    )


def _read_fully(text: str, spans: Integers, tokens: Sequence[str], is_byte_level: bool) -> None:
    """Correct the spans (tokens, 2) that tokenizers give, in place.

    Of characters that a normalizer composes to one they name the first alone. A space of the
    tokenizer's own, before a text or a word, has the span of the character after it: it gets that
    of the space which it stands for, or an empty one.
    """
    space = "Ġ" if is_byte_level else "▁"
    plain = np.flatnonzero(spans[:, 0] >= 0)
    starts, ends = spans[plain].T
    following = np.append(starts[1:], len(text))
    codes = np.frombuffer(f"{text}\0".encode("utf-32-le", "surrogatepass"), np.uint32)
    for at in np.flatnonzero((ends < following) & (codes[ends] > LAST_LATIN)):
        start, end = (int(one) for one in (starts[at], ends[at]))
        while end < following[at] and _composes(text[start:end], text[end]):
            end += 1
        spans[plain[at], 1] = end
    before = np.maximum.accumulate(np.append(0, spans[plain, 1]))
    for place, token in enumerate(plain.tolist()):
        if tokens[token].strip(space):
            continue
        start, end = spans[token].tolist()
        read = text[start:end]
        if read and not any(one.isspace() or one == space for one in read):
            free = start > before[place] and text[start - 1].isspace()
            spans[token] = (start - free, start)


def _composes(read: str, following: str) -> bool:
    """Whether a character becomes one with those before it where they are normalized."""
    alone, whole = (len(normalize("NFKC", one)) for one in (read, read + following))
    return whole <= alone


def _is_byte_level(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether the tokens of a tokenizer are written byte by byte."""
    return type(tokenizer.decoder).__name__ == "ByteLevel"


def _piece(token: str, is_byte_level: bool) -> str:
    """A token as people see it: one of bytes by its characters, or by its bytes."""
    data = token_bytes(token) if is_byte_level else None
    return token if data is None else show_bytes(data)


def _bytes_prompt(text: str, parts: Sequence[bytes]) -> Prompt:
    lengths = [len(part) for part in parts]
    starts = np.repeat(np.arange(len(parts), dtype=np.int64), lengths)
    data = b"".join(parts)
    return Prompt(
        text=text,
        ids=readonly(np.frombuffer(data, np.uint8), np.int64),
        pieces=tuple(NAMES[byte] for byte in data),
        spans=readonly(np.stack([starts, starts + 1], axis=1)),
    )


def _prompt_of_ids(ids: Integers, pieces: Sequence[str]) -> Prompt:
    spans = np.full((len(ids), 2), -1, np.int64)
    return Prompt("", readonly(ids, np.int64), tuple(pieces), readonly(spans))


# --- opening a tokenizer --------------------------------------------------------------------------


def _open_tokenizer(file: Path, data: bytes | None) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer

    if data is None and file.name != TOKENIZER:
        return _make_tokenizer(file)
    if data is None and os.path.lexists(file.parent / SETTINGS):
        read_object(file.parent / SETTINGS, MOST_TOKENIZER)
        with suppress(Exception):  # where transformers reads no text, the file says what it says
            return _make_tokenizer(file)
    return Tokenizer.from_buffer(read_regular(file, MOST_TOKENIZER) if data is None else data)


def _make_tokenizer(file: Path) -> tokenizers.Tokenizer:
    """What transformers makes of a tokenizer.json or vocabulary file and what lies beside it.

    It sees copies of bounded files alone, and their settings without paths and code. Raises
    HgvizError for settings that name code or no class of transformers, and for files that the class
    does not read; whatever transformers raises for damaged ones.
    """
    from hgviz.models.huggingface import library, quiet

    def check(condition: object, why: str) -> None:
        require(condition, f"{file.name} makes no tokenizer: {why}", OTHERWISE)

    folder, auto = file.parent, library().models.auto.tokenization_auto
    config, settings = (
        read_object(folder / name, MOST_TOKENIZER) if os.path.lexists(folder / name) else {}
        for name in (CONFIG, SETTINGS)
    )
    code = settings.get("auto_map")
    check(not code, f"{SETTINGS} asks for code of its own, and nothing in a folder is run")
    readable = file.suffix != ".model" or any(map(find_spec, READ_BY))
    check(readable, f"it is read by the package {' or '.join(READ_BY)}, which is not there")
    kind = config.get("model_type")
    name = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if not name and kind not in auto.TOKENIZER_MAPPING_NAMES:
        name = CLASSES.get(file.name)
    known = any(auto.tokenizer_class_from_name(f"{name}{end}") for end in ("", "Fast"))
    check(known or not name, f"transformers knows no class {printable(str(name))[:60]} for it")
    unsafe = ("vocab", "merges", "gguf_file", "tokenizer_object", "init_inputs")
    settings = {key: value for key, value in settings.items() if key not in unsafe}
    stated = {"model_type": kind} if kind in auto.CONFIG_MAPPING_NAMES else {}
    names = {one for one in (TOKENIZER, *TOKENS, *chain(*VOCABULARIES)) if (folder / one).exists()}
    with TemporaryDirectory() as copies, quiet(), _silence(1):
        for copied in names:
            data = read_regular(folder / copied, MOST_TOKENIZER)
            (Path(copies) / copied).write_bytes(data)
        (Path(copies) / CONFIG).write_text(json.dumps(stated))
        (Path(copies) / SETTINGS).write_text(json.dumps({**settings, "tokenizer_class": name}))
        tokenizer = library().AutoTokenizer.from_pretrained(copies, local_files_only=True)
    class_name, backend = type(tokenizer).__name__, getattr(tokenizer, "backend_tokenizer", None)
    check(backend is not None, f"{class_name} of transformers has no tokenizer.json")
    files = tokenizer.vocab_files_names
    lacking = {files[key] for key in ("vocab_file", "merges_file") if key in files} - names
    whole = {TOKENIZER, "tokenizer.model", "tiktoken.model", "tekken.json"} & names
    check(
        whole or not lacking, f"{class_name} reads {min(lacking, default='')}, which is not there"
    )
    model = cast("tokenizers.Tokenizer", backend).model
    unknown = getattr(model, "unk_token", None)
    is_named = unknown is None or model.token_to_id(unknown) is not None
    check(is_named, f"it lacks {printable(str(unknown))[:40]}, its unk_token")
    return cast("tokenizers.Tokenizer", backend)


@contextmanager
def _tokenizer_errors(
    what: str, do: str = "Use the tokenizer.json the model came with"
) -> Iterator[None]:
    """Turn whatever `tokenizers` throws into one error; its panics are no `Exception`s."""
    try:
        with _silence(2):
            yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, HgvizError):
            raise
        why = first_line(error)
        raise HgvizError(f"{what}: {why}", do) from None


@contextmanager
def _silence(descriptor: int) -> Iterator[None]:
    """Send what libraries write to standard output (1) or error (2), by calls of the system, to
    nowhere."""
    if descriptor == 1 and sys.stdout is not None:  # None in a window without a terminal
        sys.stdout.flush()
    try:
        before = os.dup(descriptor)
    except OSError:  # closed by whoever started this
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, descriptor)
        yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)
        os.close(nowhere)


def run_with_timeout(seconds: float, work: Callable[[], Result]) -> Result:
    """Call work and return or raise what it does; TimeoutError where it takes longer.

    The work must let other threads run. It cannot be stopped: after the error it goes on in a
    thread that nobody waits for, not even the end of the program.
    """
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # panics of Rust are no Exceptions
            failures.append(error)

    thread = threading.Thread(target=run, name="with a timeout", daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise TimeoutError
    return results[0]


# --- how a text goes on ---------------------------------------------------------------------------


def continue_prompt(tokenizer: Tokenizer, prompt: Prompt, ids: Sequence[int]) -> Prompt:
    """The prompt with ids after it, and their text after its own.

    The ids are what the model was given and gives, whatever a tokenizer would make of the text:
    each new token has the characters that it is, or is part of. Special tokens have none, as
    everywhere; bytes that make no character become U+FFFD.
    """
    if not len(ids):
        return prompt
    new = np.asarray(ids, np.int64)
    every = np.concatenate([prompt.ids, new])
    whole = tokenizer.decode(every)
    if not _same(tokenizer.decode(prompt.ids), prompt) or _needs_decoder(tokenizer):
        # what the text was is kept, such as the spaces that its tokenizer takes away
        text, spans = _continuation(tokenizer, prompt.ids, new)
        moved = np.where(spans < 0, spans, spans + len(prompt.text))
        whole = Prompt(
            text=prompt.text + text,
            ids=readonly(every),
            pieces=(*prompt.pieces, *whole.pieces[len(prompt) :]),
            spans=readonly(np.concatenate([prompt.spans, moved])),
        )
    mask, kinds = prompt.attention_mask, prompt.token_type_ids
    return replace(
        whole,
        attention_mask=None if mask is None else readonly(np.pad(mask, (0, len(new)), "edge")),
        token_type_ids=None if kinds is None else readonly(np.pad(kinds, (0, len(new)), "edge")),
    )


def _same(one: Prompt, other: Prompt) -> bool:
    return one.text == other.text and np.array_equal(one.spans, other.spans)


def _needs_decoder(tokenizer: Tokenizer) -> bool:
    """Whether only the tokenizer's own decoder knows what its tokens say."""
    return isinstance(tokenizer, Pieces) and not tokenizer.is_byte_level


def _continuation(tokenizer: Tokenizer, before: Integers, new: Integers) -> tuple[str, Integers]:
    """The text of new ids after others, and the characters of each: (ids, 2)."""
    if not (isinstance(tokenizer, Pieces) and _needs_decoder(tokenizer)):
        found = tokenizer.decode(new)
        return found.text, found.spans
    limit = PATIENCE + len(new) / 100
    try:
        parts = run_with_timeout(
            limit, lambda: list(_text_runs(tokenizer, before.tolist(), new.tolist()))
        )
    except TimeoutError:
        raise HgvizError(
            "the tokenizer could not say what tokens mean: "
            f"it was not done after {limit:.0f} seconds, as with a pattern that runs away",
            "Use the tokenizer.json the model came with",
        ) from None
    spans, text = np.full((len(new), 2), -1, np.int64), ""
    for first, stop, more in parts:
        spans[first:stop] = len(text), len(text) + len(more)
        text += more
    return text, spans


def _text_runs(
    tokenizer: Pieces, before: list[int], new: list[int]
) -> Iterator[tuple[int, int, str]]:
    """Runs of new tokens (first, stop) and the characters that they make together.

    A decoder looks at what stands before a token, for a space between words, and after it, for
    the rest of a character: it is shown a few tokens at a time.
    """
    ids, start, done = before + new, max(0, len(before) - CONTEXT), len(before)
    known = tokenizer.text_of(ids[start:done])
    for stop in range(done + 1, len(ids) + 1):
        more = tokenizer.text_of(ids[start:stop])[len(known) :]
        if not more and stop - done == 1:
            done = stop  # a special token is no part of what follows
        if not more or (more.endswith("\N{REPLACEMENT CHARACTER}") and stop < len(ids)):
            continue
        yield done - len(before), stop - len(before), more
        start, done = done, stop
        known = tokenizer.text_of(ids[start:done])


def end_tokens(folder: Path, tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that end a text, by what lies beside a checkpoint: eos_token_id in its
    configurations, eos_token of its tokenizer. What is damaged or not there says nothing."""
    found: set[int] = set()
    for name in SAYING_ENDS:
        stated = _settings(folder / name).get("eos_token_id")
        for one in stated if isinstance(stated, list) else [stated]:
            if type(one) is int:
                found.add(one)
    if isinstance(tokenizer, Pieces):
        token = _settings(folder / SETTINGS).get("eos_token")
        token = token.get("content") if isinstance(token, dict) else token
        number = tokenizer.id_of(token) if isinstance(token, str) else None
        found |= set() if number is None else {number}
    return frozenset(found)


def _settings(file: Path) -> dict[str, Any]:
    with suppress(HgvizError):
        return read_object(file, MOST_TOKENIZER)
    return {}
