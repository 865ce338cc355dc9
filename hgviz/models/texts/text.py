"""Texts as models read them: tokenizers, and the files that --text-file and --ids name."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, TypeVar, cast
from unicodedata import normalize

import msgspec
import numpy as np

from hgviz.core import HgvizError, Integers, Prompt, readonly
from hgviz.errors import file_error, require
from hgviz.files import CONFIG, first_line, printable, read_object
from hgviz.models.texts.spelling import NAMES, characters, joined, shown, spelled

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
        parts = list(characters(data))
        return _bytes_prompt("".join(part.decode(errors="replace") for part in parts), parts)


class Pieces:
    """A tokenizer.json, or vocabulary files. vocabulary: how many tokens the model has; the
    tokenizer may have more, and only a text that uses one of those is refused. data: what the file
    holds, where that is known."""

    unit = "token"

    def __init__(self, file: Path, vocabulary: int, data: bytes | None = None) -> None:
        self._name = file.name
        own = file.name == TOKENIZER or data is not None
        with _guarded(f"{file.name} could not be read", *(() if own else (OTHERWISE,))):
            self._tokenizer = _opened(file, data)
            self._tokenizer.no_truncation()  # a text is never cut in silence
            self._tokenizer.no_padding()
            self.spells = _spells(self._tokenizer)
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
        with _guarded(f"{self._name} could not be written"):
            return self._tokenizer.to_str(pretty=True).encode()

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text or two; special tokens have the span (-1, -1)."""
        with _guarded(f"{self._name} could not read this text"):
            encoding = self._encoded(text, pair)
            self.require_fit(encoding.ids)
        return prompt_of(self._tokenizer, encoding, text, pair)

    def _encoded(self, text: str, pair: str | None) -> Encoding:
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
            str(one) if token is None else _piece(token, self.spells)
            for one, token in zip(ids, tokens, strict=True)
        ]
        if not self.spells:
            return _bare(ids, pieces)
        added = self._tokenizer.get_added_tokens_decoder()
        parts = [
            b"" if token is None or int(one) in added else spelled(token) or b""
            for one, token in zip(ids, tokens, strict=True)
        ]
        text, spans = joined(parts)
        return Prompt(text, readonly(ids, np.int64), tuple(pieces), readonly(spans))

    def said(self, ids: Sequence[int]) -> str:
        """The text that its own decoder makes of some ids; special tokens have none."""
        with _guarded(f"{self._name} could not say what tokens mean"):
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
        return _bare(ids, [str(one) for one in ids])


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
    return decoded(path, data)


def decoded(path: Path, data: bytes) -> str:
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


# --- inside ---------------------------------------------------------------------------------------


def prompt_of(
    tokenizer: tokenizers.Tokenizer, encoding: Encoding, text: str, pair: str | None = None
) -> Prompt:
    """The prompt of a text or two that a tokenizer has encoded."""
    spans = np.array(encoding.offsets, np.int64).reshape(-1, 2)
    second = np.array([one == 1 for one in encoding.sequence_ids], bool)
    spans[second] += len(text) + 1
    spans[np.array(encoding.special_tokens_mask, bool)] = -1
    kinds = None if pair is None else readonly(encoding.type_ids, np.int64)
    whole, spells = text if pair is None else f"{text}\n{pair}", _spells(tokenizer)
    _read_fully(whole, spans, encoding.tokens, spells)
    return Prompt(
        text=whole,
        ids=readonly(encoding.ids, np.int64),
        pieces=tuple(_piece(token, spells) for token in encoding.tokens),
        spans=readonly(spans),
        token_type_ids=kinds,
    )


def _read_fully(text: str, spans: Integers, tokens: Sequence[str], spells: bool) -> None:
    """Correct the spans (tokens, 2) that tokenizers give, in place.

    Of characters that a normalizer composes to one they name the first alone. A space of the
    tokenizer's own, before a text or a word, has the span of the character after it: it gets that
    of the space which it stands for, or an empty one.
    """
    space = "Ġ" if spells else "▁"
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


def _spells(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether the tokens of a tokenizer are written byte by byte."""
    return type(tokenizer.decoder).__name__ == "ByteLevel"


def _piece(token: str, spells: bool) -> str:
    """A token as people see it: one of bytes by its characters, or by its bytes."""
    data = spelled(token) if spells else None
    return token if data is None else shown(data)


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


def _bare(ids: Integers, pieces: Sequence[str]) -> Prompt:
    spans = np.full((len(ids), 2), -1, np.int64)
    return Prompt("", readonly(ids, np.int64), tuple(pieces), readonly(spans))


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


def _opened(file: Path, data: bytes | None) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer

    if data is None and file.name != TOKENIZER:
        return _made(file)
    if data is None and os.path.lexists(file.parent / SETTINGS):
        read_object(file.parent / SETTINGS, MOST_TOKENIZER)
        with suppress(Exception):  # where transformers reads no text, the file says what it says
            return _made(file)
    return Tokenizer.from_buffer(read_regular(file, MOST_TOKENIZER) if data is None else data)


@contextmanager
def _unprinted() -> Iterator[None]:
    """What the package tokenizers prints of settings that it does not know, by calls of the
    system, stays out of what a command prints."""
    if sys.stdout is not None:  # as in a window without a terminal
        sys.stdout.flush()
    with Path(os.devnull).open("wb") as nowhere:
        try:
            before = os.dup(1)
        except OSError:  # closed by whoever started this
            yield
            return
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(before, 1)
            os.close(before)


def _made(file: Path) -> tokenizers.Tokenizer:
    """What transformers makes of a tokenizer.json or vocabulary file and what lies beside it.

    It sees copies of bounded files alone, and what their settings say but for paths and code.
    Errors: HgvizError for settings that name code or no class of its own, and for files that its
    class does not read; whatever transformers raises for damaged ones.
    """
    from hgviz.models.huggingface import library, quiet

    folder, auto = file.parent, library().models.auto.tokenization_auto
    config, said = (
        read_object(folder / name, MOST_TOKENIZER) if os.path.lexists(folder / name) else {}
        for name in (CONFIG, SETTINGS)
    )
    if said.get("auto_map"):
        raise _unmade(file, f"{SETTINGS} asks for code of its own, and nothing in a folder is run")
    if file.suffix == ".model" and not any(map(find_spec, READ_BY)):
        raise _unmade(file, f"it is read by the package {' or '.join(READ_BY)}, which is not there")
    kind = config.get("model_type")
    name = said.get("tokenizer_class") or config.get("tokenizer_class")
    if not name and kind not in auto.TOKENIZER_MAPPING_NAMES:
        name = CLASSES.get(file.name)
    if name and not any(auto.tokenizer_class_from_name(f"{name}{end}") for end in ("", "Fast")):
        raise _unmade(file, f"transformers knows no class {printable(str(name))[:60]} for it")
    paths = ("vocab", "merges", "gguf_file", "tokenizer_object", "init_inputs")
    said = {key: one for key, one in said.items() if key not in paths}
    stated = {"model_type": kind} if kind in auto.CONFIG_MAPPING_NAMES else {}
    every = {TOKENIZER, *TOKENS, *chain(*VOCABULARIES)}
    names = [one for one in every if (folder / one).exists()]
    with TemporaryDirectory() as bare, quiet(), _unprinted():
        for one in names:
            (Path(bare) / one).write_bytes(read_regular(folder / one, MOST_TOKENIZER))
        (Path(bare) / CONFIG).write_text(json.dumps(stated))
        (Path(bare) / SETTINGS).write_text(json.dumps({**said, "tokenizer_class": name}))
        found = library().AutoTokenizer.from_pretrained(bare, local_files_only=True)
    backend = getattr(found, "backend_tokenizer", None)
    if backend is None:
        raise _unmade(file, f"{type(found).__name__} of transformers has no tokenizer.json")
    files = found.vocab_files_names
    lacking = {files[key] for key in ("vocab_file", "merges_file") if key in files} - {*names}
    if lacking and not {*names} & {TOKENIZER, "tokenizer.model", "tiktoken.model", "tekken.json"}:
        raise _unmade(file, f"{type(found).__name__} reads {min(lacking)}, which is not there")
    unknown = getattr(backend.model, "unk_token", None)
    if unknown is not None and backend.model.token_to_id(unknown) is None:
        raise _unmade(file, f"it lacks {printable(unknown)[:40]}, its unk_token")
    return cast("tokenizers.Tokenizer", backend)


def _unmade(file: Path, why: str) -> HgvizError:
    return HgvizError(f"{file.name} makes no tokenizer: {why}", OTHERWISE)


@contextmanager
def _guarded(what: str, do: str = "Use the tokenizer.json the model came with") -> Iterator[None]:
    """Turn whatever `tokenizers` throws into one error; its panics are no `Exception`s."""
    try:
        with _silent():
            yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, HgvizError):
            raise
        why = first_line(error)
        raise HgvizError(f"{what}: {why}", do) from None


@contextmanager
def _silent() -> Iterator[None]:
    # a panic prints a backtrace to file descriptor 2 before Python hears of it
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


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
