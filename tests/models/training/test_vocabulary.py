"""Tokenizers that are trained: the same texts give the same pieces, in any process."""

import json
import os
import subprocess
import sys

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from hgviz.files import resource
from hgviz.models.training import Vocabulary
from hgviz.models.training import vocabulary as place
from hgviz.models.training.vocabulary import PRIVATE, train_coder

SAID = """
import sys
from hgviz.models.training import Vocabulary
from hgviz.models.training.vocabulary import train_coder
from hgviz.files import resource
texts = resource("sample/reviews.tsv").read_text("utf-8").splitlines()
sys.stdout.write(train_coder(Vocabulary(size=300), texts, 1).tokenizer.to_str())
"""


TEXTS = resource("sample/reviews.tsv").read_text("utf-8").splitlines()


def pieces(coder):
    """Its vocabulary without special tokens."""
    return {one for one in coder.tokenizer.get_vocab() if not one.startswith("[")}


def test_two_processes_make_the_same_bytes():
    apart = subprocess.run(
        [sys.executable, "-c", SAID], capture_output=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "1"},
    ).stdout  # fmt: skip
    here = train_coder(Vocabulary(size=300), TEXTS, 1).tokenizer.to_str()
    assert len(json.loads(here)["model"]["vocab"]) == 300 and apart.decode() == here


@pytest.mark.parametrize("size", [200, 500])
def test_pieces_are_those_of_the_usual_trainer_but_for_ties(size):
    usual = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    usual.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    usual.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    usual.train_from_iterator(
        TEXTS,
        trainers.WordPieceTrainer(
            vocab_size=size, min_frequency=2, special_tokens=special, show_progress=False
        ),
    )
    ours = train_coder(Vocabulary(size=size), TEXTS, 1).tokenizer.get_vocab()
    theirs = usual.get_vocab()
    assert len(ours) == len(theirs) == size and [ours[one] for one in special] == [0, 1, 2, 3, 4]
    # in two runs theirs differ by as much
    assert len(ours.keys() - theirs.keys()) <= 0.1 * size


def test_pieces_within_words_say_so_and_put_words_together():
    coder = train_coder(Vocabulary(size=60, least=1), ["abab abab abc", "cab ab"] * 5, 1)
    assert {"ab", "abab", "##ab", "a", "##b", "c"} <= pieces(coder)
    assert coder.tokenizer.encode("abab cab", add_special_tokens=False).tokens == ["abab", "cab"]
    assert coder.tokenizer.encode("acab", add_special_tokens=False).tokens[0] == "a"
    assert sorted(coder.tokenizer.get_vocab().values()) == list(range(coder.size))


@pytest.mark.parametrize("text", ["ab\U00100000 ab", "a\U0010fffdb ab", "ab ab\U0010fffd"])
def test_letters_that_stand_for_others_are_never_taken_from_a_text(text):
    coder = train_coder(Vocabulary(size=60, least=1), [text] * 3, 1)
    assert pieces(coder) <= {"a", "b", "ab", "##b", "##a"} and "ab" in pieces(coder)
    assert coder.tokenizer.encode(f"x{chr(PRIVATE)}", add_special_tokens=False).tokens == ["[UNK]"]


def test_more_letters_than_can_be_told_apart_lose_the_last(monkeypatch):
    monkeypatch.setattr(place, "MOST", 3)
    coder = train_coder(Vocabulary(size=60, least=1), ["abc abd dab ab"] * 3, 1)
    assert "abc" in pieces(coder) and not any("d" in one for one in pieces(coder))


def test_texts_without_a_word_make_special_tokens_alone():
    for texts in ([], ["", "  "], [chr(PRIVATE)]):
        assert not pieces(train_coder(Vocabulary(size=60), texts, 1))


def test_letters_of_any_writing_are_pieces():
    coder = train_coder(Vocabulary(size=200, least=1), ["나는 있다 中文 Ünï İst ß"] * 3, 1)
    assert "[UNK]" not in coder.tokenizer.encode("나는 있다 中文 ünï İST ß").tokens
