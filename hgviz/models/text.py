"""Tokenizers: opening and training them, and the prompts that they make of texts and ids.

A tokenizer turns a text into a `Prompt`: ids, the name of each token, and the characters of the
text that it stands for. Three kinds: UTF-8 bytes, a tokenizer.json or the vocabulary files that
transformers makes one of, and none at all, for models that read ids. Needs no torch.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, cast
from unicodedata import normalize

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import HgvizError, Integers, Prompt, readonly
from hgviz.errors import file_error, require
from hgviz.files import (
    CONFIG,
    first_line,
    path_errors,
    printable,
    read_object,
    short_path,
    write_atomic,
)

if TYPE_CHECKING:  # tokenizers takes a moment to load
    import tokenizers
    from tokenizers import Encoding

Result = TypeVar("Result")

MOST_TOKENIZER = 64 * 2**20  # bytes
TIMEOUT = 5.0  # seconds that a tokenizer may take for any text, and
BATCH = 256  # texts that are tokenized at once
SLOWEST = 50_000  # characters a second; most read some millions
TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"
VOCABULARIES = (  # what transformers makes tokenizers of: each a file, and what it needs beside it
    ("vocab.txt",), ("vocab.json", "merges.txt"), ("tokenizer.model",), ("spiece.model",),
    ("sentencepiece.bpe.model",), ("spm.model",), ("tiktoken.model",), ("tekken.json",),
)  # fmt: skip
READ_BY = ("sentencepiece", "tiktoken")  # packages that read .model files
TOKENS = ("added_tokens.json", "special_tokens_map.json")  # and what else it reads of them
CLASSES = {"vocab.txt": "BertTokenizer", "vocab.json": "GPT2Tokenizer"}  # where nobody says which
ADVICE = "Use the tokenizer.json that came with the model"
OTHERWISE = "Add a tokenizer.json to this folder, or give token ids to hgviz capture --ids"
LAST_LATIN = 0x2FF  # the last character before those that compose with the one before them
CONTEXT = 6  # how many tokens a decoder is shown before the first that it is asked about
PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
ALIASES = {PAD: "<pad>", UNKNOWN: "<unk>", MASK: "<mask>"}  # of RoBERTa, T5 and others


# --- tokens of bytes ------------------------------------------------------------------------------

SIGNS = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥"}
NAMES = tuple(
    SIGNS.get(chr(byte)) or (chr(byte) if 0x20 < byte < 0x7F else f"<{byte:02X}>")
    for byte in range(256)
)
# byte-level BPE writes a byte as itself where that can be seen, the others from U+0100 on
_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _VISIBLE]
ALPHABET = {chr(byte): byte for byte in _VISIBLE} | {
    chr(0x100 + i): byte for i, byte in enumerate(_OTHERS)
}


def token_bytes(token: str) -> bytes | None:
    """The bytes that a token of byte-level BPE stands for; None where it is no such token."""
    is_bytes = all(char in ALPHABET for char in token)
    return bytes(ALPHABET[char] for char in token) if is_bytes else None


def split_characters(data: bytes) -> list[bytes]:
    """The bytes of each character; a byte that is part of none stands alone."""
    text = data.decode(errors="surrogateescape")
    return [char.encode(errors="surrogateescape") for char in text]


def join_bytes(parts: Sequence[bytes]) -> tuple[str, Integers]:
    """The text of the bytes of tokens, and the characters that each has a byte of.

    (tokens, 2), (-1, -1) for a token without bytes. What is not UTF-8 becomes U+FFFD.
    """
    characters = split_characters(b"".join(parts))
    char = np.repeat(np.arange(len(characters)), [len(part) for part in characters])
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    spans = np.full((len(parts), 2), -1, np.int64)
    for i, (part, end) in enumerate(zip(parts, ends, strict=True)):
        if part:
            spans[i] = char[end - len(part)], char[end - 1] + 1
    return "".join(part.decode(errors="replace") for part in characters), spans


def _token_name(token: str, is_byte_level: bool) -> str:
    """A token as people see it: one of bytes by its characters, or else by its bytes."""
    data = token_bytes(token) if is_byte_level else None
    if data is None:
        return token
    try:
        return "".join(SIGNS.get(char, char) for char in data.decode())
    except UnicodeDecodeError:
        return "".join(NAMES[byte] for byte in data)


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


class Bytes:
    """UTF-8: one token per byte; the bytes of one character share its span."""

    unit = "byte"
    size, pad, specials = 256, 0, ()

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text. Raises HgvizError for an empty text, surrogates and pairs."""
        what = "a model of bytes cannot read text pairs: there is no separator"
        require(pair is None, what, "Give one text")
        require(text, "the text is empty", "Give some text")
        try:
            return self._prompt(text, [char.encode() for char in text])
        except UnicodeEncodeError:
            raise HgvizError(
                "the text is not valid Unicode, as of a wrongly decoded file", "Use UTF-8"
            ) from None

    def decode(self, ids: Integers) -> Prompt:
        """The prompt of bytes; what is not UTF-8 becomes U+FFFD, byte by byte."""
        parts = split_characters(bytes(ids.astype(np.uint8)))
        return self._prompt("".join(part.decode(errors="replace") for part in parts), parts)

    @staticmethod
    def _prompt(text: str, parts: Sequence[bytes]) -> Prompt:
        starts = np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts])
        ids = np.frombuffer(b"".join(parts), np.uint8)
        spans = np.stack([starts, starts + 1], axis=1)
        names = tuple(NAMES[byte] for byte in ids)
        return Prompt(text, readonly(ids, np.int64), names, readonly(spans))

    def encode_rows(self, texts: Sequence[str], longest: int | None) -> list[list[int]]:
        """The bytes of each text, at most the longest."""
        return [list(text.encode()[:longest]) for text in texts]

    def encode_stream(self, data: bytes, path: Path) -> tuple[NDArray[Any], int]:
        """The bytes of a file (n,), and the number of those after the first."""
        return np.frombuffer(bytearray(data), np.uint8), len(data) - 1

    def frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens before and after every text: none."""
        return (), ()

    def id_of(self, token: str) -> int | None:
        """The id of a special token: bytes have none."""


class Pieces:
    """A tokenizer.json, or vocabulary files.

    vocabulary: how many tokens the model has. The tokenizer may have more, and only a text that
    uses one of those is refused; None: as many as the tokenizer. data: what the file holds, where
    that is known.
    """

    unit = "token"

    def __init__(self, file: Path, vocabulary: int | None = None, data: bytes | None = None):
        self._name = file.name
        do = ADVICE if file.name == TOKENIZER or data is not None else OTHERWISE
        with _tokenizer_errors(f"{file.name} could not be read", do):
            self._tokenizer = _open_tokenizer(file, data)
            self._tokenizer.no_truncation()  # a text is never cut in silence
            self._tokenizer.no_padding()
            self.is_byte_level = _is_byte_level(self._tokenizer)
        self._vocabulary = self.size if vocabulary is None else vocabulary

    @property
    def size(self) -> int:
        """How many ids there are, special tokens included."""
        return self._tokenizer.get_vocab_size()

    @property
    def json(self) -> bytes:
        """The tokenizer as a tokenizer.json."""
        with _tokenizer_errors(f"{self._name} could not be written"):
            return self._tokenizer.to_str(pretty=True).encode()

    def save(self, folder: Path) -> None:
        """Write tokenizer.json into a folder."""
        with path_errors(folder, "could not be written"):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / TOKENIZER, self.json)

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
                f"its id in {self._name} is {last:,}, and the largest id of the model is "
                f"{self._vocabulary - 1:,}",
                "Remove this token, or use the tokenizer that the model was trained with",
            )

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text or two; special tokens have the span (-1, -1)."""
        texts = text if pair is None else (text, pair)
        (encoding,) = self._encode([texts], len(text) + len(pair or ""), "this text")
        return prompt_of(self._tokenizer, encoding, text, pair)

    def encode_all(self, texts: Sequence[str]) -> list[Prompt]:
        """The prompts of texts, each as by encode(), in a quarter of the time."""
        prompts: list[Prompt] = []
        for start in range(0, len(texts), BATCH):
            batch = [*texts[start : start + BATCH]]
            encodings = self._encode(batch, sum(map(len, batch)), "one of these texts")
            prompts += map(partial(prompt_of, self._tokenizer), encodings, batch)
        return prompts

    def _encode(self, texts: list[Any], characters: int, name: str) -> list[Encoding]:
        what, limit = f"{self._name} could not read {name}", TIMEOUT + characters / SLOWEST
        with _tokenizer_errors(what):
            # encode, for one text, would let no other thread run meanwhile
            work = partial(self._tokenizer.encode_batch, texts)
            encodings = run_with_timeout(limit, what, work)
            for encoding in encodings:
                self.require_fit(encoding.ids)
        return encodings

    def decode(self, ids: Integers) -> Prompt:
        """The prompt of ids: their token strings, and the text that tokens of bytes make."""
        tokens = [self._tokenizer.id_to_token(int(number)) for number in ids]
        names = tuple(
            str(number) if token is None else _token_name(token, self.is_byte_level)
            for number, token in zip(ids, tokens, strict=True)
        )
        if not self.is_byte_level:
            return _prompt_of_ids(ids, names)
        added = self._tokenizer.get_added_tokens_decoder()
        parts = [
            b"" if token is None or int(number) in added else token_bytes(token) or b""
            for number, token in zip(ids, tokens, strict=True)
        ]
        text, spans = join_bytes(parts)
        return Prompt(text, readonly(ids, np.int64), names, readonly(spans))

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that its own decoder makes of some ids; special tokens have none."""
        with _tokenizer_errors(f"{self._name} could not decode tokens"):
            return self._tokenizer.decode_batch([list(ids)], skip_special_tokens=True)[0]

    def id_of(self, token: str) -> int | None:
        """The id of a token by its name, or a special one by its name in other models."""
        ids = map(self._tokenizer.token_to_id, (token, ALIASES.get(token, token)))
        return next((number for number in ids if number is not None), None)

    @property
    def pad(self) -> int | None:
        """The id that pads texts, None where there is none."""
        return self.id_of(PAD)

    @property
    def specials(self) -> tuple[int, ...]:
        """The ids of special tokens, in ascending order."""
        added = self._tokenizer.get_added_tokens_decoder()
        return tuple(sorted(number for number, token in added.items() if token.special))

    def frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens before and after every text."""
        ids = self._tokenizer.encode("").ids
        return tuple(ids[:-1]), tuple(ids[-1:])

    def encode_rows(self, texts: Sequence[str], longest: int | None) -> list[list[int]]:
        """The ids of each text with its special tokens, cut to the longest."""
        if longest is not None:
            self._tokenizer.enable_truncation(longest)
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        self._tokenizer.no_truncation()
        return [encoding.ids for encoding in encodings]

    def encode_stream(self, data: bytes, path: Path) -> tuple[NDArray[Any], int]:
        """A file as ids (n,) without special tokens, and the bytes of UTF-8 after the first token.

        Raises HgvizError for what is not UTF-8.
        """
        lines = decode_utf8(path, data).splitlines(keepends=True)  # one long text would be slow
        encodings = self._tokenizer.encode_batch(lines, add_special_tokens=False)
        ids = np.fromiter(chain.from_iterable(part.ids for part in encodings), np.int32)
        for at, encoding in enumerate(encodings):
            if encoding.ids:
                first = prompt_of(self._tokenizer, encoding, lines[at]).byte_counts()[0]
                return ids, len("".join(lines[at:]).encode()) - int(first)
        return ids, 0


class Bare:
    """No tokenizer: such a model reads ids. error: why its vocabulary files make none."""

    unit = "token"

    def __init__(self, error: HgvizError | None = None) -> None:
        self.error = error

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """Raises HgvizError always."""
        raise self.error or HgvizError(
            "this model cannot read text: its folder has no tokenizer.json",
            "Add its tokenizer.json to the folder, or give token ids to hgviz capture --ids",
        )

    def decode(self, ids: Integers) -> Prompt:
        """The prompt of ids, named by their numbers."""
        return _prompt_of_ids(ids, tuple(map(str, ids)))


def _prompt_of_ids(ids: Integers, names: tuple[str, ...]) -> Prompt:
    spans = np.full((len(ids), 2), -1, np.int64)
    return Prompt("", readonly(ids, np.int64), names, readonly(spans))


def require_room(tokens: int, limit: int | None, unit: str = "token") -> None:
    """Raise HgvizError where there are no tokens, or more than the model has positions for."""
    require(tokens != 0, "the text is empty: it has no tokens", "Give some text")
    if limit is not None and tokens > limit:
        what = f"the text is too long: {tokens:,} {unit}s, and the maximum is {limit:,}"
        raise HgvizError(what, f"Shorten the text to {limit:,} {unit}s")


# --- prompts of encodings -------------------------------------------------------------------------


def prompt_of(
    tokenizer: tokenizers.Tokenizer, encoding: Encoding, text: str, pair: str | None = None
) -> Prompt:
    """The prompt of a text or two that a tokenizer has encoded."""
    spans = np.array(encoding.offsets, np.int64).reshape(-1, 2)
    is_second = np.array([number == 1 for number in encoding.sequence_ids], bool)
    spans[is_second] += len(text) + 1
    spans[np.array(encoding.special_tokens_mask, bool)] = -1
    joined, is_byte_level = text if pair is None else f"{text}\n{pair}", _is_byte_level(tokenizer)
    _correct_spans(joined, spans, encoding.tokens, is_byte_level)
    return Prompt(
        text=joined,
        ids=readonly(encoding.ids, np.int64),
        pieces=tuple(_token_name(token, is_byte_level) for token in encoding.tokens),
        spans=readonly(spans),
        token_type_ids=None if pair is None else readonly(encoding.type_ids, np.int64),
    )


def _correct_spans(text: str, spans: Integers, tokens: Sequence[str], is_byte_level: bool) -> None:
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
        start, end = (int(edge) for edge in (starts[at], ends[at]))
        while end < following[at] and _composes(text[start:end], text[end]):
            end += 1
        spans[plain[at], 1] = end
    before = np.maximum.accumulate(np.append(0, spans[plain, 1]))
    for place, token in enumerate(plain.tolist()):
        if tokens[token].strip(space):
            continue
        start, end = spans[token].tolist()
        read = text[start:end]
        if read and not any(char.isspace() or char == space for char in read):
            is_free = start > before[place] and text[start - 1].isspace()
            spans[token] = (start - is_free, start)


def _composes(text: str, following: str) -> bool:
    """Whether a character becomes one with those before it where they are normalized."""
    alone, joined = (len(normalize("NFKC", part)) for part in (text, text + following))
    return joined <= alone


def _is_byte_level(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether the tokens of a tokenizer are written byte by byte."""
    return type(tokenizer.decoder).__name__ == "ByteLevel"


# --- opening a tokenizer --------------------------------------------------------------------------


def tokenizer_of(folder: Path, vocabulary: int, own: bytes | None = None) -> Tokenizer:
    """The tokenizer of a checkpoint's folder.

    tokenizer.json, as transformers reads it where a tokenizer_config.json lies beside it, else what
    transformers makes of its vocabulary files; without them, bytes for 256 ids, else none. own: the
    tokenizer.json of its weights themselves. Raises HgvizError for a damaged tokenizer.json.
    Vocabulary files that make no tokenizer leave the model its ids, and raise where a text is read.
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


def end_tokens(folder: Path, tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that end a text, by what lies beside a checkpoint: eos_token_id in its
    configurations, eos_token of its tokenizer. What is damaged or not there says nothing."""

    def settings(name: str) -> dict[str, Any]:
        with suppress(HgvizError):
            return read_object(folder / name, MOST_TOKENIZER)
        return {}

    ids: list[Any] = []
    for name in (CONFIG, "generation_config.json"):
        stated = settings(name).get("eos_token_id")
        ids += stated if isinstance(stated, list) else [stated]
    if isinstance(tokenizer, Pieces):
        token = settings(SETTINGS).get("eos_token")
        token = token.get("content") if isinstance(token, dict) else token
        ids.append(tokenizer.id_of(token) if isinstance(token, str) else None)
    return frozenset(number for number in ids if type(number) is int)


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
        require(condition, f"{file.name} cannot be used as a tokenizer: {why}", OTHERWISE)

    folder, auto = file.parent, library().models.auto.tokenization_auto
    config, settings = (
        read_object(folder / name, MOST_TOKENIZER) if os.path.lexists(folder / name) else {}
        for name in (CONFIG, SETTINGS)
    )
    code = settings.get("auto_map")
    check(not code, f"{SETTINGS} needs custom code, and code in model folders is not run")
    is_readable = file.suffix != ".model" or any(map(find_spec, READ_BY))
    check(is_readable, f"it needs the package {' or '.join(READ_BY)}, which is not installed")
    kind = config.get("model_type")
    name = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if not name and kind not in auto.TOKENIZER_MAPPING_NAMES:
        name = CLASSES.get(file.name)
    is_known = any(auto.tokenizer_class_from_name(f"{name}{end}") for end in ("", "Fast"))
    check(is_known or not name, f"transformers has no class {printable(str(name))[:60]}")
    unsafe = ("vocab", "merges", "gguf_file", "tokenizer_object", "init_inputs")
    settings = {key: value for key, value in settings.items() if key not in unsafe}
    stated = {"model_type": kind} if kind in auto.CONFIG_MAPPING_NAMES else {}
    names = {part for part in (TOKENIZER, *TOKENS, *chain(*VOCABULARIES))
             if (folder / part).exists()}  # fmt: skip
    with TemporaryDirectory() as copies, quiet(), _silence(1):
        for part in names:
            data = read_regular(folder / part, MOST_TOKENIZER)
            (Path(copies) / part).write_bytes(data)
        (Path(copies) / CONFIG).write_text(json.dumps(stated))
        (Path(copies) / SETTINGS).write_text(json.dumps({**settings, "tokenizer_class": name}))
        tokenizer = library().AutoTokenizer.from_pretrained(copies, local_files_only=True)
    class_name, backend = type(tokenizer).__name__, getattr(tokenizer, "backend_tokenizer", None)
    check(backend is not None, f"{class_name} of transformers has no fast tokenizer")
    files = tokenizer.vocab_files_names
    lacking = {files[key] for key in ("vocab_file", "merges_file") if key in files} - names
    is_complete = {TOKENIZER, "tokenizer.model", "tiktoken.model", "tekken.json"} & names
    reads = f"{class_name} needs {min(lacking, default='')}, which is missing"
    check(is_complete or not lacking, reads)
    model = cast("tokenizers.Tokenizer", backend).model
    unknown = getattr(model, "unk_token", None)
    is_named = unknown is None or model.token_to_id(unknown) is not None
    check(is_named, f"its unk_token {printable(str(unknown))[:40]} is missing")
    return cast("tokenizers.Tokenizer", backend)


@contextmanager
def _tokenizer_errors(what: str, do: str = ADVICE) -> Iterator[None]:
    """Turn whatever `tokenizers` throws into one error; its panics are no `Exception`s."""
    try:
        with _silence(2):
            yield
    except HgvizError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise HgvizError(f"{what}: {first_line(error)}", do) from None


@contextmanager
def _silence(descriptor: int) -> Iterator[None]:
    """Discard what libraries write to standard output (1) or error (2) by calls of the system."""
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


def run_with_timeout(seconds: float, what: str, work: Callable[[], Result]) -> Result:
    """Call work and return or raise what it does; HgvizError(what ...) where it takes longer.

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
    why = f"it took more than {seconds:.0f} seconds"
    require(results, f"{what}: {why}", f"{ADVICE}, or a shorter text")
    return results[0]


# --- how a text goes on ---------------------------------------------------------------------------


def continue_prompt(tokenizer: Tokenizer, prompt: Prompt, ids: Sequence[int]) -> Prompt:
    """The prompt with ids after it, and their text after its own.

    The ids are what the model reads and writes, whatever a tokenizer would make of the text: each
    new token has the characters that it is, or is part of. Special tokens have none; bytes that
    make no character become U+FFFD.
    """
    if not len(ids):
        return prompt
    new = np.asarray(ids, np.int64)
    every = np.concatenate([prompt.ids, new])
    joined, before = tokenizer.decode(every), tokenizer.decode(prompt.ids)
    has_decoder = isinstance(tokenizer, Pieces) and not tokenizer.is_byte_level
    is_same = before.text == prompt.text and np.array_equal(before.spans, prompt.spans)
    if has_decoder or not is_same:
        # the text stays as it was, such as the spaces that its tokenizer takes away
        if isinstance(tokenizer, Pieces) and has_decoder:
            text, spans = _decode_after(tokenizer, prompt.ids.tolist(), new.tolist())
        else:
            decoded = tokenizer.decode(new)
            text, spans = decoded.text, decoded.spans
        spans = np.where(spans < 0, spans, spans + len(prompt.text))
        joined = Prompt(
            text=prompt.text + text,
            ids=readonly(every),
            pieces=(*prompt.pieces, *joined.pieces[len(prompt) :]),
            spans=readonly(np.concatenate([prompt.spans, spans])),
        )
    mask, kinds = (
        None if values is None else readonly(np.pad(values, (0, len(new)), "edge"))
        for values in (prompt.attention_mask, prompt.token_type_ids)
    )
    return replace(joined, attention_mask=mask, token_type_ids=kinds)


def _decode_after(tokenizer: Pieces, before: list[int], new: list[int]) -> tuple[str, Integers]:
    """The text of new ids after others, by the tokenizer's own decoder, and spans (ids, 2)."""
    what, limit = "the tokenizer could not decode tokens", TIMEOUT + len(new) / 100
    runs = run_with_timeout(limit, what, lambda: [*_text_runs(tokenizer, before, new)])
    spans, text = np.full((len(new), 2), -1, np.int64), ""
    for first, stop, more in runs:
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
    decoded = tokenizer.text_of(ids[start:done])
    for stop in range(done + 1, len(ids) + 1):
        more = tokenizer.text_of(ids[start:stop])[len(decoded) :]
        if not more and stop - done == 1:
            done = stop  # a special token is no part of what follows
        if not more or (more.endswith("\N{REPLACEMENT CHARACTER}") and stop < len(ids)):
            continue
        yield done - len(before), stop - len(before), more
        start, done = done, stop
        decoded = tokenizer.text_of(ids[start:done])


# --- training a tokenizer -------------------------------------------------------------------------


class TokenizerPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tokenizer trained on the training texts, or taken from a file or folder.

    size: the most pieces, special ones included; least: how often a piece must occur.
    """

    kind: Literal["wordpiece", "bpe", "words"] = "wordpiece"
    size: Annotated[int, msgspec.Meta(ge=8)] = 8000
    least: int = 2
    lowercase: bool = True
    file: str = ""


def train_tokenizer(plan: TokenizerPlan, texts: Iterable[str], cls: int) -> Pieces:
    """Train a tokenizer on texts.

    It lets them begin with cls special tokens and end with [SEP]; with neither where cls is 0.
    """
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, trainers
    from tokenizers.models import BPE, WordLevel

    leading = [CLS, *(f"[CLS{number}]" for number in range(2, cls + 1))][:cls]
    special = [PAD, UNKNOWN, *leading, *((SEP, MASK) if cls else ())]
    options: dict[str, Any] = {
        "vocab_size": plan.size, "min_frequency": plan.least, "special_tokens": special,
        "show_progress": False,
    }  # fmt: skip
    tokenizer = Tokenizer(BPE() if plan.kind == "bpe" else WordLevel(unk_token=UNKNOWN))
    lower = [normalizers.Lowercase()] if plan.lowercase else []
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), *lower])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if plan.kind == "wordpiece":
        tokenizer.decoder = decoders.WordPiece()
        tokenizer.model = _train_wordpieces(tokenizer, options, texts)
        tokenizer.add_special_tokens(special)
    elif plan.kind == "bpe":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(initial_alphabet=alphabet, **options)
        tokenizer.train_from_iterator(texts, trainer)
    else:
        tokenizer.train_from_iterator(texts, trainers.WordLevelTrainer(**options))
    return _frame_texts(tokenizer, leading) if leading else _pieces_of(tokenizer)


def _train_wordpieces(
    tokenizer: tokenizers.Tokenizer, options: dict[str, Any], texts: Iterable[str]
) -> Any:
    """The pieces of WordPiece, which are the same for the same texts.

    The trainer numbers letters within words ("##a") by a hash table, otherwise in each process, and
    numbers settle ties. So they are named to it, and letters that begin no word are left out after.
    """
    from tokenizers import Tokenizer, pre_tokenizers, trainers
    from tokenizers.models import WordPiece

    words: Counter[str] = Counter()
    for text in texts:
        normal = tokenizer.normalizer.normalize_str(text)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    first = {word[0] for word in words}
    within = {letter for word in words for letter in word[1:]}
    letters = [*sorted(first), *(f"##{letter}" for letter in sorted(within))]
    pieces = Tokenizer(WordPiece())
    pieces.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special, size = [*options["special_tokens"], *letters], options["vocab_size"]
    options = {**options, "special_tokens": special, "vocab_size": size + len(within - first)}
    pieces.train_from_iterator(words.elements(), trainers.WordPieceTrainer(**options))
    ids = pieces.get_vocab()
    names = [piece for piece in sorted(ids, key=ids.__getitem__) if piece not in within - first]
    return WordPiece({piece: number for number, piece in enumerate(names)}, unk_token=UNKNOWN)


def read_tokenizer(path: Path, cls: int = 1, vocabulary: int | None = None) -> Pieces:
    """The tokenizer of a folder, or a tokenizer.json, whose texts begin with so many [CLS].

    cls: 1 for as many as its texts have already. Raises HgvizError where there is none, it cannot
    be read, or it has ids beyond a vocabulary.
    """
    file = tokenizer_file(path) if path.is_dir() else path
    if file is None:
        what = f"{short_path(path)} has no {TOKENIZER}, which training needs"
        raise HgvizError(what, "Add the model's tokenizer.json")
    pieces = Pieces(file, vocabulary)
    pieces.require_fit()
    tokenizer = pieces._tokenizer
    marks = tokenizer.encode("a").special_tokens_mask
    leading = marks.index(0) if 0 in marks else len(marks)
    return pieces if cls in (1, leading) else _frame_texts(tokenizer, [CLS] * cls)


def _frame_texts(tokenizer: tokenizers.Tokenizer, leading: list[str]) -> Pieces:
    """The tokenizer, which lets texts begin with these special tokens and end with [SEP]."""
    from tokenizers import processors

    ids = [(name, tokenizer.token_to_id(name)) for name in dict.fromkeys([*leading, SEP])]
    require(
        all(number is not None for _, number in ids),
        "the tokenizer has no [CLS] and [SEP], which a classifier needs",
        "Train a tokenizer, or use that of a BERT",
    )
    single = f"{' '.join(f'{name}:0' for name in leading)} $A:0 {SEP}:0"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=f"{single} $B:1 {SEP}:1", special_tokens=ids
    )
    return _pieces_of(tokenizer)


def _pieces_of(tokenizer: tokenizers.Tokenizer) -> Pieces:
    return Pieces(Path(TOKENIZER), data=tokenizer.to_str().encode())


# --- files ----------------------------------------------------------------------------------------


def decode_utf8(path: Path, data: bytes) -> str:
    """The text of a UTF-8 file's bytes. Raises HgvizError naming the first byte that is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HgvizError(
            f"{path.name} is not UTF-8 text: "
            f"byte {error.start:,} (0x{data[error.start]:02X}) cannot be decoded",
            "Save it as UTF-8",
        ) from None


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a file. Raises HgvizError for more than `most` bytes, or no such file."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise file_error(f"{path.name} could not be read", error) from None
    require(len(data) <= most, f"{path.name} is too large: the limit is {most // 2**20:,} MB")
    return data


def read_regular(path: Path, most: int) -> bytes:
    """As read_bytes, and nothing but a regular file: to open a pipe is to wait for its writer."""
    if path.exists() and not path.is_file():
        raise HgvizError(f"{path.name} is not a file", "Replace it with a file")
    return read_bytes(path, most)
