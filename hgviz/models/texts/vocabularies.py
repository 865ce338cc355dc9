"""Tokenizers made of the files that models had before tokenizer.json: vocab.txt (WordPiece), and
vocab.json with merges.txt (byte-level BPE)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hgviz.core import HgvizError
from hgviz.models.formats.readers import line_of, plain, read_config

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCAB, VOCAB_JSON, MERGES = "vocab.txt", "vocab.json", "merges.txt"
SETTINGS, ADDED = "tokenizer_config.json", "added_tokens.json"
MOST = 64 * 2**20
# what BertTokenizer calls its special tokens where tokenizer_config.json does not
SPECIAL = {
    "unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}  # fmt: skip
END = "<|endoftext|>"


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What tokenizer_config.json says of a vocabulary; transformers' own defaults."""

    tokenizer_class: str | None = None
    do_lower_case: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True
    add_prefix_space: bool = False
    added_tokens_decoder: dict[str, dict[str, Any]] = {}
    unk_token: Any = None
    sep_token: Any = None
    pad_token: Any = None
    cls_token: Any = None
    mask_token: Any = None
    bos_token: Any = None
    eos_token: Any = None


def vocabulary_of(folder: Path) -> Path | None:
    """The file of a folder that a tokenizer can be made of, where there is one."""
    if (folder / VOCAB).exists():
        return folder / VOCAB
    both = (folder / VOCAB_JSON).exists() and (folder / MERGES).exists()
    return folder / VOCAB_JSON if both else None


def made(file: Path) -> Tokenizer:
    """The tokenizer of a vocab.txt or vocab.json, as transformers makes it of them.

    Errors: HgvizError for files that are damaged or lack what the tokenizer needs.
    """
    settings = _settings(file.parent)
    tokenizer = (_wordpiece if file.name == VOCAB else _byte_level)(file, settings)
    _add(tokenizer, _added(file.parent, settings), file)
    return tokenizer


# --- WordPiece ------------------------------------------------------------------------------------


def _wordpiece(file: Path, settings: _Settings) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    if settings.tokenizer_class not in (None, "BertTokenizer", "BertTokenizerFast"):
        raise HgvizError(
            f"{file.name} belongs to a tokenizer that hgviz cannot make",
            f"{SETTINGS} says it is {plain(settings.tokenizer_class)[:60]}",
            "Put a tokenizer.json beside it",
        )
    text = re.sub(r"\r\n?", "\n", _text(file)).removesuffix("\n")
    ids = {token: i for i, token in enumerate(text.split("\n"))}
    names = {key: _content(getattr(settings, key)) or name for key, name in SPECIAL.items()}
    for key in ("unk_token", "cls_token", "sep_token"):
        if names[key] not in ids:
            raise HgvizError(
                f"{file.name} is no vocabulary of BERT",
                f"it lacks {plain(names[key])[:40]}, its {key}",
                "Use the vocab.txt or tokenizer.json the model came with",
            )
    found = Tokenizer(models.WordPiece(ids, unk_token=names["unk_token"]))
    found.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.tokenize_chinese_chars,
        strip_accents=settings.strip_accents,
        lowercase=settings.do_lower_case,
    )
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.decoder = decoders.WordPiece(prefix="##")
    found.add_special_tokens([name for name in names.values() if name in ids])
    first, last = names["cls_token"], names["sep_token"]
    found.post_processor = processors.BertProcessing((last, ids[last]), (first, ids[first]))
    return found


# --- byte-level BPE -------------------------------------------------------------------------------


def _byte_level(file: Path, settings: _Settings) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    ids = _numbers(file, read_config(file, MOST))
    lines = re.sub(r"\r\n?", "\n", _text(file.parent / MERGES)).split("\n")
    pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    if wrong := next((pair for pair in pairs if len(pair) != 2), None):
        raise HgvizError(
            f"{MERGES} is no list of merges",
            f"{plain(' '.join(wrong))[:40]!r} is no pair of tokens",
            "Copy or download it again",
        )
    found = Tokenizer(models.BPE(ids, pairs))  # type: ignore[arg-type]
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=settings.add_prefix_space)
    found.decoder = decoders.ByteLevel()
    found.post_processor = processors.ByteLevel(trim_offsets=False)
    named = (settings.unk_token, settings.bos_token, settings.eos_token)
    special = {_content(one) or END for one in named}
    found.add_special_tokens([name for name in sorted(special) if name in ids])
    return found


# --- what the files say ---------------------------------------------------------------------------


def _settings(folder: Path) -> _Settings:
    if not (folder / SETTINGS).exists():
        return _Settings()
    data = read_config(folder / SETTINGS, MOST)
    try:
        return msgspec.convert(data, _Settings)
    except msgspec.ValidationError as error:
        raise HgvizError(
            f"{SETTINGS} does not describe a tokenizer",
            plain(line_of(error).replace("`", "")),
            f"Correct {SETTINGS}, or put a tokenizer.json beside it",
        ) from None


def _content(token: Any) -> str:
    """A special token: its text, or a table that holds it."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else ""


def _added(folder: Path, settings: _Settings) -> dict[str, int]:
    """Tokens beside the vocabulary, with their ids."""
    found = {
        _content(token): int(key)
        for key, token in settings.added_tokens_decoder.items()
        if _content(token) and key.isascii() and key.isdecimal() and len(key) < 10
    }
    if (folder / ADDED).exists():
        found |= _numbers(folder / ADDED, read_config(folder / ADDED, MOST))
    return found


def _add(tokenizer: Tokenizer, added: Mapping[str, int], file: Path) -> None:
    from tokenizers import AddedToken

    for token, number in sorted(added.items(), key=lambda one: one[1]):
        if tokenizer.token_to_id(token) is None:
            tokenizer.add_tokens([AddedToken(token, normalized=False)])
        if tokenizer.token_to_id(token) != number:
            raise HgvizError(
                f"the tokens added to {file.name} do not fit it",
                f"{plain(token)[:40]!r} should have the id {number:,} and would have "
                f"{tokenizer.token_to_id(token):,}",
                "Put the model's own tokenizer.json beside it",
            )


def _numbers(file: Path, data: Mapping[str, Any]) -> dict[str, int]:
    for token, number in data.items():
        if type(number) is not int or not 0 <= number < 2**31:
            raise HgvizError(
                f"{file.name} is no vocabulary",
                f"{plain(token)[:40]!r} has no id there but {plain(repr(number))[:40]}",
                "Copy or download it again",
            )
    return dict(data)


def _text(file: Path) -> str:
    from hgviz.models.texts.text import decoded, read_regular

    return decoded(file, read_regular(file, MOST))
