"""Texts to ids while training: tokenizers trained here, taken from a file, or bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hgviz.core import HgvizError
from hgviz.files import path_errors, short_path
from hgviz.models.texts.text import Pieces, prompt_of, tokenizer_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from hgviz.models.training.plan import Vocabulary

TOKENIZER = "tokenizer.json"
ANY = 2**31  # a vocabulary that every tokenizer fits
PRIVATE = 0x100000  # a plane of letters that no text should have; of one that has, no piece
MOST = 65_534  # letters there; words with one beyond the first so many are no pieces either
PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
ALSO = {PAD: "<pad>", UNKNOWN: "<unk>", MASK: "<mask>"}  # what RoBERTa, T5 and others call them


@dataclass(frozen=True, slots=True)
class Coder:
    """What turns texts into ids: a tokenizer, or bytes where there is none.

    specials: the ids that stand for no text, which are neither masked nor dropped.
    """

    tokenizer: Tokenizer | None = None
    specials: tuple[int, ...] = field(default=())

    @property
    def size(self) -> int:
        """How many ids there are."""
        return 256 if self.tokenizer is None else self.tokenizer.get_vocab_size()

    def id_of(self, name: str) -> int | None:
        """The id of a special token, by either of its names; None where there is none."""
        if self.tokenizer is None:
            return None
        ids = map(self.tokenizer.token_to_id, (name, ALSO.get(name, name)))
        return next((one for one in ids if one is not None), None)

    @property
    def pad(self) -> int | None:
        """The id that texts are padded with: of bytes 0; None where a tokenizer names none."""
        return 0 if self.tokenizer is None else self.id_of(PAD)

    def rows(self, texts: list[str], longest: int | None) -> list[list[int]]:
        """The ids of each text with its special tokens, cut to the longest."""
        if self.tokenizer is None:
            return [list(text.encode()[:longest]) for text in texts]
        if longest is not None:
            self.tokenizer.enable_truncation(longest)
        try:
            return [one.ids for one in self.tokenizer.encode_batch_fast(texts)]
        finally:
            self.tokenizer.no_truncation()

    def stream(self, data: bytes, name: str) -> tuple[Tensor, int]:
        """A whole text as ids (n,), no special tokens, and how many bytes follow the first id.

        Errors: HgvizError for what is not UTF-8.
        """
        if self.tokenizer is None:
            return torch.frombuffer(bytearray(data), dtype=torch.uint8), len(data) - 1
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise HgvizError(
                f"{name} is not a UTF-8 text: "
                f"byte {error.start:,} (0x{data[error.start]:02X}) cannot be decoded",
                "Save it as UTF-8",
            ) from None
        lines = text.splitlines(keepends=True)  # one long text would be slow
        found = self.tokenizer.encode_batch(lines, add_special_tokens=False)
        ids = [i for one in found for i in one.ids]
        size = len(text.encode())
        for line, one in zip(lines, found, strict=True):
            if one.ids:
                size -= int(prompt_of(self.tokenizer, one, line).byte_counts()[0])
                break
            size -= len(line.encode())
        return torch.tensor(ids, dtype=torch.int32), size

    def frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens before and after every text."""
        if self.tokenizer is None:
            return (), ()
        ids = self.tokenizer.encode("").ids
        return tuple(ids[:-1]), tuple(ids[-1:])

    def save(self, folder: Path) -> None:
        """Write tokenizer.json, where there is one."""
        if self.tokenizer is not None:
            with path_errors(folder, "could not be written"):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / TOKENIZER).write_text(self.tokenizer.to_str(pretty=True), "utf-8")


def read_coder(path: Path, cls: int = 1, most: int = ANY) -> Coder:
    """The tokenizer of a folder, or a tokenizer.json; cls > 1: it begins with so many [CLS].

    Errors: HgvizError where there is none, it cannot be read, or it has more ids than `most`.
    """
    file = tokenizer_file(path) if path.is_dir() else path
    if file is None:
        raise HgvizError(
            f"{short_path(path)} has no {TOKENIZER}: training needs to know how texts become ids",
            "Put the model's own tokenizer.json there",
        )
    tokenizer = Pieces(file, most)
    tokenizer.require_fit()
    return coder_of(tokenizer.json, cls)


def coder_of(data: bytes, cls: int = 1) -> Coder:
    """The same of what a tokenizer.json holds."""
    from tokenizers import Tokenizer

    found = Tokenizer.from_buffer(data)
    if cls > 1 and _leading(found) != cls:
        _begin(found, [CLS] * cls)
    return _coder(found)


def train_coder(plan: Vocabulary, texts: Iterable[str], cls: int) -> Coder:
    """A tokenizer of the texts; a text begins with cls special tokens and ends with one, or, where
    cls is 0, has neither (models.md B.4)."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    leading = [CLS, *(f"[CLS{i}]" for i in range(2, cls + 1))][:cls]
    special = [PAD, UNKNOWN, *leading, *((SEP, MASK) if cls else ())]
    shared: dict[str, Any] = {
        "vocab_size": plan.size, "special_tokens": special, "show_progress": False,
        "min_frequency": plan.least,
    }  # fmt: skip
    if plan.kind == "bpe":
        found = Tokenizer(models.BPE())
        found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        found.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(**shared, initial_alphabet=alphabet)
    elif plan.kind == "words":
        found = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
        found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordLevelTrainer(**shared)
    else:
        found = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
        found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        found.decoder = decoders.WordPiece()
        trainer = None
    plain = [normalizers.NFC(), *([normalizers.Lowercase()] if plan.lowercase else [])]
    found.normalizer = normalizers.Sequence(plain)
    if trainer is None:
        vocabulary = _wordpieces(found, texts, shared)
        found.model = models.WordPiece(vocabulary, unk_token=UNKNOWN)
        found.add_special_tokens(special)
    else:
        found.train_from_iterator(texts, trainer)
    if cls:
        _begin(found, leading)
    return _coder(found)


def _wordpieces(found: Tokenizer, texts: Iterable[str], shared: dict[str, Any]) -> dict[str, int]:
    """The pieces of WordPiece, the same for the same texts.

    They are merged as byte pairs are (tokenizers 0.22 does so, too), but its own trainer numbers
    letters within words in the order of a hash table, another in each run, and numbers settle ties.
    Here such a letter is a letter of its own, from the private use planes, and in the alphabet.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    words: Counter[str] = Counter()
    for text in texts:
        plain = found.normalizer.normalize_str(text)
        every = (word for word, _ in found.pre_tokenizer.pre_tokenize_str(plain))
        words.update(word for word in every if max(word) < chr(PRIVATE))
    letters = sorted(set[str]().union(*words))[:MOST]
    within = {letter: chr(PRIVATE + at) for at, letter in enumerate(letters)}
    words = Counter({word: count for word, count in words.items() if within.keys() >= set(word)})
    plain_of = {mark: letter for letter, mark in within.items()}
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    alphabet = [*sorted({word[0] for word in words}),
                *sorted({within[letter] for word in words for letter in word[1:]})]  # fmt: skip
    trainer = trainers.BpeTrainer(**shared, initial_alphabet=alphabet)
    marked = (word[0] + "".join(within[letter] for letter in word[1:]) for word in words.elements())
    pairs.train_from_iterator(marked, trainer)
    pieces: dict[str, int] = {}
    for piece, number in sorted(pairs.get_vocab().items(), key=lambda one: one[1]):
        begins = "##" if piece[0] in plain_of else ""
        pieces[begins + "".join(plain_of.get(letter, letter) for letter in piece)] = number
    return pieces


def _begin(tokenizer: Tokenizer, leading: list[str]) -> None:
    """Let texts begin with these special tokens and end with [SEP]."""
    from tokenizers import processors

    known = [(name, tokenizer.token_to_id(name)) for name in dict.fromkeys([*leading, SEP])]
    if any(number is None for _, number in known):
        raise HgvizError(
            "the tokenizer has no [CLS] and [SEP]: a classifier's texts begin and end with them",
            "Train one, or choose a BERT's",
        )
    start = " ".join(f"{name}:0" for name in leading)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A:0 {SEP}:0",
        pair=f"{start} $A:0 {SEP}:0 $B:1 {SEP}:1",
        special_tokens=known,
    )


def _leading(tokenizer: Tokenizer) -> int:
    """How many special tokens a text begins with."""
    marks = tokenizer.encode("a").special_tokens_mask
    return marks.index(0) if 0 in marks else len(marks)


def _coder(tokenizer: Tokenizer) -> Coder:
    special = tokenizer.get_added_tokens_decoder()
    return Coder(tokenizer, tuple(sorted(i for i, one in special.items() if one.special)))
