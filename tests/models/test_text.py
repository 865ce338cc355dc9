"""Texts become prompts whose spans point into them, whatever they are made of."""

import json
import os
import threading
from dataclasses import replace
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from hgviz.core import HgvizError, Signal
from hgviz.examples import next_token_examples
from hgviz.models.prompts import read_ids, read_text
from hgviz.models.signals import prompt_of_signal
from hgviz.models.text import (
    ALPHABET,
    Bare,
    Bytes,
    Pieces,
    join_bytes,
    prompt_of,
    require_room,
    tokenizer_of,
)
from tests.models.folders import byte_level

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


# --- bytes ----------------------------------------------------------------------------------------


def test_the_bytes_of_one_character_share_its_span():
    prompt = Bytes().encode("a한\n😀")
    assert prompt.ids.tolist() == list("a한\n😀".encode())
    assert prompt.spans[:, 0].tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 3]
    assert (prompt.spans[:, 1] == prompt.spans[:, 0] + 1).all()
    assert prompt.pieces == ("a", "<ED>", "<95>", "<9C>", "↵", "<F0>", "<9F>", "<98>", "<80>")
    assert [prompt.label(i) for i in (0, 1, 4, 8)] == ["a", "<ED>", "\n", "<80>"]
    assert prompt.words(1, 4) == "한"


def test_a_space_a_tab_and_controls_have_pieces_to_see():
    assert Bytes().encode(" \t\r\x00\x7f~").pieces == ("␣", "⇥", "␍", "<00>", "<7F>", "~")


@given(TEXT)
def test_every_text_comes_back_from_its_bytes(text):
    prompt = Bytes().encode(text)
    again = Bytes().decode(prompt.ids)
    assert again.text == text
    assert again.pieces == prompt.pieces
    assert (again.spans == prompt.spans).all()
    assert "".join(text[a:b] for a, b in np.unique(prompt.spans, axis=0)) == text


@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_have_a_text_that_their_spans_cover(data):
    prompt = Bytes().decode(np.frombuffer(data, np.uint8).astype(np.int64))
    assert prompt.text.replace("\ufffd", "") == data.decode(errors="replace").replace("\ufffd", "")
    assert len(prompt.spans) == len(prompt.pieces) == len(data)
    assert prompt.spans[0, 0] == 0
    assert prompt.spans[-1, 1] == len(prompt.text)
    assert set(np.diff(prompt.spans[:, 0])) <= {0, 1}


def test_bytes_that_are_no_text_are_replaced_one_by_one():
    prompt = Bytes().decode(np.array([0x61, 0xED, 0x95, 0x62, 0xFF, 0xE2, 0x82, 0xAC]))
    assert prompt.text == "a\ufffd\ufffdb\ufffd€"


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(HgvizError, match="the text is not Unicode"):
        Bytes().encode("a\ud800")


# --- tokenizer.json -------------------------------------------------------------------------------


def words(folder, pattern=None, **vocabulary):
    """A tokenizer.json of a few words between <s> and </s>, cutting off after two."""
    vocabulary = {"<s>": 0, "</s>": 1, "?": 2, "the": 3, "café": 4, **vocabulary}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    splitter = Regex(pattern) if pattern else None
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Split(splitter, "isolated") if splitter else pre_tokenizers.Whitespace()
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=64)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def test_pieces_point_into_the_text_and_are_never_cut_or_padded(tmp_path):
    prompt = Pieces(words(tmp_path), 10).encode("The CAFÉ, the 한")
    assert prompt.ids.tolist() == [0, 3, 4, 2, 3, 2, 1]
    assert [prompt.label(i) for i in range(7)] == ["<s>", "The", "CAFÉ", ",", "the", "한", "</s>"]
    assert prompt.spans[[0, -1]].tolist() == [[-1, -1], [-1, -1]]


SPACED = pre_tokenizers.Metaspace()
PREPENDED = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
FALLBACK = {name: at for at, name in enumerate(["▁", *(f"<0x{one:02X}>" for one in range(256))])}


def pieces_of(normalizer=None, splitter=None, bytes_=""):
    """A tokenizer of single letters, or of bytes: by fallback or as GPT-2 writes them."""
    if bytes_ == "level":
        letters = {char: at for at, char in enumerate(sorted(ALPHABET))}
        found = Tokenizer(models.BPE({**letters, "ľê": 256}, [("ľ", "ê")]))
        splitter = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
        found.decoder = decoders.ByteLevel()
    elif bytes_:
        found = Tokenizer(models.BPE(FALLBACK, [], byte_fallback=True, unk_token="▁"))
    else:
        letters = "▁한글마실까éBärabfi1." + normalize("NFD", "가")
        found = Tokenizer(models.Unigram([("?", 0.0), *((one, -2.0) for one in letters)], 0))
    if normalizer is not None:
        found.normalizer = normalizer
    if splitter is not None:
        found.pre_tokenizer = splitter
    return found


NFC, NFD, NFKC = normalizers.NFC(), normalizers.NFD(), normalizers.NFKC()
STRIPPED = normalizers.BertNormalizer(lowercase=True)
SPLIT = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), SPACED])


@pytest.mark.parametrize("tokenizer, text, labels, counts", [
    (pieces_of(None, SPACED), "한글 한", [" ", "한", "글", " ", "한"], [0, 3, 3, 1, 3]),
    (pieces_of(None, SPLIT), "b  한", [" ", "b", " ", "한"], [0, 1, 2, 3]),
    (pieces_of(PREPENDED, bytes_="fallback"), "é  é",
     [" ", "<C3>", "<A9>", " ", " ", "<C3>", "<A9>"], [0, 1, 1, 1, 1, 1, 1]),
    (pieces_of(PREPENDED, bytes_="fallback"), " é", [" ", " ", "<C3>", "<A9>"], [0, 1, 1, 1]),
    (pieces_of(bytes_="level"), "한글",
     [" ", "<ED>", "<95>", "<9C><EA>", "<B8>", "<80>"], [0, 1, 1, 2, 1, 1]),
    (pieces_of(NFC), "마실까Bär", ["마", "실", "까", "B", "ä", "r"], [3, 3, 3, 1, 2, 1]),
    (pieces_of(NFC), normalize("NFD", "마실까Bär"), ["마", "실", "까", "B", "ä", "r"],
     [6, 9, 6, 1, 3, 1]),
    (pieces_of(NFKC), normalize("NFD", "마éa"), ["마", "é", "a"], [6, 3, 1]),
    (pieces_of(NFKC), "ﬁ…a", ["f", "i", ".", ".", ".", "a"], [1.5, 1.5, 1, 1, 1, 1]),
    (pieces_of(NFD), "가b", [*normalize("NFD", "가"), "b"], [1.5, 1.5, 1]),
    (pieces_of(STRIPPED), normalize("NFD", "Bäé"), ["B", "ä", "é"], [1, 3, 3]),
])  # fmt: skip
def test_labels_and_bytes_are_what_each_token_reads(tokenizer, text, labels, counts):
    prompt = prompt_of(tokenizer, tokenizer.encode(text), text)
    found = [normalize("NFC", prompt.label(at)) for at in range(len(prompt))]
    assert found == [normalize("NFC", one) for one in labels]
    assert prompt.byte_counts() == pytest.approx(counts)
    assert sum(counts) == len(text.encode())


def test_the_last_position_is_none_of_the_padding():
    text = replace(Bytes().encode("abcd"), attention_mask=np.array([1, 1, 1, 0], bool))
    assert (text.last, Bytes().encode("abcd").last) == (2, 3)
    mel = np.random.default_rng(0).normal(size=(8, 300)).astype(np.float32)
    assert prompt_of_signal(Signal(mel, seconds=3.0), 150).last == 149
    mel[:, 31:] = -1.5
    for values in (mel, mel.T):
        sound = prompt_of_signal(Signal(values, seconds=3.0), 150)
        assert sound.pieces[sound.last] == "0.30s"
    assert prompt_of_signal(Signal(np.zeros(400, np.float32), seconds=1.0), 40).last == 39


def test_a_row_counts_the_bytes_after_its_first_token():
    for tokenizer, text, size in (
        (pieces_of(None, SPACED), "한글", 6),
        (pieces_of(bytes_="level"), "한글", 6),
        (pieces_of(PREPENDED, bytes_="fallback"), "한", 3),
        (Bytes(), "한", 2),
    ):
        prompt = tokenizer.encode(text)
        prompt = prompt if isinstance(tokenizer, Bytes) else prompt_of(tokenizer, prompt, text)
        assert next_token_examples([prompt]).rows[0].size == pytest.approx(size)


def test_ids_have_the_names_of_their_tokens(tmp_path):
    prompt = Pieces(words(tmp_path), 10).decode(np.array([3, 4, 9]))
    assert (prompt.text, prompt.pieces) == ("", ("the", "café", "9"))
    assert prompt.label(0) == "the"


def test_only_a_text_that_uses_a_token_without_an_embedding_is_refused(tmp_path):
    tokenizer = Pieces(words(tmp_path), 4)
    assert tokenizer.encode("the").ids.tolist() == [0, 3, 1]
    with pytest.raises(HgvizError, match='no embedding for the token "café".* is 4, .* end at 3'):
        tokenizer.encode("the café")


def test_ids_of_bytes_have_a_text_again(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    tokenizer = tokenizer_of(tmp_path, 300)
    text = "the the\n나 😀<|endoftext|>é"
    prompt = tokenizer.encode(text)
    again = tokenizer.decode(prompt.ids)
    assert again.text == text.replace("<|endoftext|>", "")
    assert again.pieces == prompt.pieces
    assert [again.label(i) for i in range(len(again))] == [
        prompt.label(i) for i in range(len(prompt))
    ]
    unknown = tokenizer.decode(np.array([65, 290, 66]))
    assert (unknown.text, unknown.pieces[1], unknown.spans[1, 0]) == ("bc", "290", -1)


@given(st.lists(st.binary(max_size=5), max_size=8))
def test_bytes_of_tokens_make_a_text_that_their_spans_cover(parts):
    text, spans = join_bytes(parts)
    assert [one[0] >= 0 for one in spans] == [bool(part) for part in parts]
    assert {i for a, b in spans if a >= 0 for i in range(a, b)} == {*range(len(text))}
    assert text.replace("\ufffd", "") == b"".join(parts).decode(errors="replace").replace(
        "\ufffd", ""
    )


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b'{"model": {"type": "BPE"}}', b"[" * 9999])
def test_a_damaged_tokenizer_is_one_error(tmp_path, data):
    (tmp_path / "tokenizer.json").write_bytes(data)
    with pytest.raises(HgvizError, match=r"tokenizer\.json could not be read"):
        tokenizer_of(tmp_path, 256)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are of POSIX systems")
@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_a_pipe_is_no_tokenizer(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(HgvizError, match="it is no file"):
        tokenizer_of(tmp_path, 300).encode("the")


def test_a_runaway_pattern_is_one_error_and_says_nothing_more(tmp_path, capfd):
    tokenizer = Pieces(words(tmp_path, pattern=r"(a|aa)+$"), 10)
    with pytest.raises(HgvizError, match="could not read this text"):
        tokenizer.encode("a" * 60 + "b")
    assert capfd.readouterr().err == ""


def test_a_pattern_that_never_ends_is_waited_for_only_so_long(tmp_path, monkeypatch):
    tokenizer = Pieces(words(tmp_path, pattern=r"a*a*a*\d\b"), 10)
    monkeypatch.setattr("hgviz.models.text.TIMEOUT", 0.05)
    with pytest.raises(HgvizError, match="it was not done after 0 seconds"):
        tokenizer.encode("a" * 300)
    for thread in threading.enumerate():
        if thread.name == "with a timeout":
            thread.join()


def test_what_a_library_says_is_told_in_one_line_that_can_be_shown(tmp_path, monkeypatch):
    tokenizer = Pieces(words(tmp_path), 10)

    class Failing:
        def encode_batch(self, texts):
            raise ValueError("type \0\x1b\u202e\nof" + "x" * 1000)

    monkeypatch.setattr(tokenizer, "_tokenizer", Failing())
    with pytest.raises(HgvizError) as caught:
        tokenizer.encode("a")
    assert caught.value.what.endswith("type \ufffd\ufffd\ufffd")


def test_stopping_is_not_taken_for_a_panic(tmp_path, monkeypatch):
    tokenizer = Pieces(words(tmp_path), 10)

    class Stopped:
        def encode_batch(self, texts):
            raise KeyboardInterrupt

    monkeypatch.setattr(tokenizer, "_tokenizer", Stopped())
    with pytest.raises(KeyboardInterrupt):
        tokenizer.encode("a")


def test_which_tokenizer_a_folder_has(tmp_path):
    assert isinstance(tokenizer_of(tmp_path, 256), Bytes)
    assert isinstance(tokenizer_of(tmp_path, 300), Bare)
    words(tmp_path)
    assert isinstance(tokenizer_of(tmp_path, 256), Pieces)


def test_without_a_tokenizer_ids_are_asked_for():
    with pytest.raises(HgvizError, match="give token ids with --ids"):
        Bare().encode("a")
    assert Bare().decode(np.array([7, 300])).pieces == ("7", "300")


# --- limits and files -----------------------------------------------------------------------------


def test_an_empty_or_too_long_text_is_one_line():
    with pytest.raises(HgvizError, match="the text is empty"):
        Bytes().encode("")
    with pytest.raises(HgvizError, match="the text is empty"):
        require_room(0, None)
    with pytest.raises(HgvizError) as caught:
        require_room(5000, 4096, "byte")
    assert str(caught.value) == (
        "the text is too long: 5,000 bytes: this model has positions for 4,096. "
        "Shorten the text to 4,096 bytes."
    )
    require_room(4096, 4096)
    require_room(10**6, None)


def test_a_text_file_is_read_as_utf_8(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffשלום 😀\r\n".encode())
    assert read_text(path) == "שלום 😀\r\n"


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "a.txt is empty"),
        ("café".encode("latin-1"), r"a.txt is not a UTF-8 text: byte 3 \(0xE9\)"),
        ("a".encode("utf-16"), "is not a UTF-8 text"),
        (None, "a.txt could not be read: No such file"),
        ("folder", "Is a directory"),
        ("large", "a.txt is too large"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path, data, words):
    path = tmp_path / "a.txt"
    if data == "folder":
        path.mkdir()
    elif data == "large":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif data is not None:
        path.write_bytes(data)
    with pytest.raises(HgvizError, match=words):
        read_text(path)


def test_ids_are_read_with_their_mask(tmp_path):
    path = tmp_path / "ids.json"
    path.write_text(json.dumps({"input_ids": [5, 6, 7], "attention_mask": [1, 1, 0]}))
    ids = read_ids(path)
    assert (ids.input_ids, ids.attention_mask) == ([5, 6, 7], [1, 1, 0])
    path.write_text('{"input_ids": [5]}')
    assert read_ids(path).attention_mask is None


@pytest.mark.parametrize(
    "data",
    [
        "", "[1, 2]", "{}", '{"input_ids": "abc"}', '{"input_ids": [1.5]}', '{"input_ids": [true]}',
        '{"input_ids": [1], "boundaries": [0, 1]}', '{"input_ids": [1], "attention_mask": [2]}',
        '{"input_ids": [1], "attention_mask": [1, 1]}', '{"input_ids": [99999999999999999999]}',
        "[" * 99_999,
    ],
)  # fmt: skip
def test_ids_of_another_shape_are_refused(tmp_path, data):
    (tmp_path / "ids.json").write_text(data)
    with pytest.raises(HgvizError, match=r"ids\.json"):
        read_ids(tmp_path / "ids.json")
