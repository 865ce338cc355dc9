"""Vocabulary files make the tokenizers that transformers makes of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.formats.conversion import tokenizer_json
from hgviz.models.formats.readers import read
from hgviz.models.texts.text import Bytes, Pieces, tokenizer_of
from tests.models import reference
from tests.models.folders import byte_level, vocabulary, write_bert, write_gpt2

TEXTS = (
    "", "the cat sat.", "The CAT, unaffables", "나는 이, 있.", "a [MASK] of\tthe [SEP]",
    "cafe\u0301 é", "中文 x", "zzz 😀", "\u200bthe\u00a0cat\n",
)  # fmt: skip


def written(folder, tokens=None, added=None, **settings):
    """vocab.txt and what stands beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens or vocabulary()) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if added:
        (folder / "added_tokens.json").write_text(json.dumps(added))
    return folder


def merged(folder, **settings):
    """vocab.json and merges.txt of the bytes and a few merges."""
    folder.mkdir(parents=True, exist_ok=True)
    found = json.loads(byte_level().to_str())["model"]
    (folder / "vocab.json").write_text(json.dumps(found["vocab"]))
    lines = [" ".join(pair) for pair in found["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


# --- as transformers makes them -------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False},
        {"tokenizer_class": "BertTokenizerFast", "cls_token": {"content": "cat"}, "sep_token": "."},
    ],
)
def test_a_vocab_txt_is_read_as_transformers_reads_it(tmp_path, settings):
    ours = tokenizer_of(written(tmp_path, **settings), 43)
    given = {name: one for name, one in settings.items() if name != "tokenizer_class"}
    given = {name: one["content"] if isinstance(one, dict) else one for name, one in given.items()}
    ids = {token: i for i, token in enumerate(vocabulary())}
    theirs = reference.library().BertTokenizer(ids, **given)
    for text in TEXTS:
        found = theirs(text, return_token_type_ids=True)
        assert ours.encode(text).ids.tolist() == found["input_ids"]
        found = theirs(text, "the 나", return_token_type_ids=True)
        prompt = ours.encode(text, "the 나")
        assert prompt.ids.tolist() == found["input_ids"]
        assert prompt.token_type_ids.tolist() == found["token_type_ids"]


@pytest.mark.parametrize("settings", [{}, {"add_prefix_space": True}])
def test_a_vocab_json_with_merges_is_read_as_transformers_reads_it(tmp_path, settings):
    ours = tokenizer_of(merged(tmp_path, **settings), 300)
    model = json.loads(byte_level().to_str())["model"]
    pairs = [tuple(pair) for pair in model["merges"]]
    theirs = reference.library().GPT2Tokenizer(model["vocab"], pairs, **settings)
    for text in (*TEXTS, "the<|endoftext|> the"):
        assert ours.encode(text).ids.tolist() == theirs(text)["input_ids"]


def test_spans_point_into_the_text(tmp_path):
    prompt = tokenizer_of(written(tmp_path), 43).encode("The 나는 있", "sat")
    assert [prompt.label(i) for i in range(len(prompt))] == [
        "[CLS]", "The", "나", "는", "있", "있", "[SEP]", "sat", "[SEP]",
    ]  # fmt: skip


def test_lines_may_end_as_windows_ends_them(tmp_path):
    plain = tokenizer_of(written(tmp_path / "a"), 43).encode("the cat").ids
    folder = written(tmp_path / "b")
    text = (folder / "vocab.txt").read_bytes().replace(b"\n", b"\r\n")
    (folder / "vocab.txt").write_bytes(text)
    assert np.array_equal(tokenizer_of(folder, 43).encode("the cat").ids, plain)


def test_added_tokens_have_their_ids(tmp_path):
    decoder = {"43": {"content": "<new>"}, "0": {"content": "[PAD]", "special": True}}
    folder = written(tmp_path, added={"<newer>": 44}, added_tokens_decoder=decoder)
    prompt = tokenizer_of(folder, 45).encode("the<new> <newer>")
    assert prompt.ids.tolist() == [2, 5, 43, 44, 3]
    with pytest.raises(HgvizError, match="it has 45 tokens and the model has 43"):
        tokenizer_of(folder, 43)
    with pytest.raises(HgvizError, match="'<new>' should have the id 99 and would have 43"):
        tokenizer_of(written(tmp_path / "b", added={"<new>": 99}), 100)


# --- which files there are ------------------------------------------------------------------------


def test_the_first_of_the_files_is_used(tmp_path):
    assert isinstance(tokenizer_of(tmp_path, 256), Bytes)
    merged(tmp_path)
    (tmp_path / "vocab.json").rename(tmp_path / "v")
    assert isinstance(tokenizer_of(tmp_path, 256), Bytes)  # merges alone are nothing
    (tmp_path / "v").rename(tmp_path / "vocab.json")
    assert tokenizer_of(tmp_path, 300).encode("the").pieces == ("t", "he")
    written(tmp_path)
    assert tokenizer_of(tmp_path, 300).encode("the").pieces == ("[CLS]", "the", "[SEP]")
    byte_level().save(str(tmp_path / "tokenizer.json"))
    assert tokenizer_of(tmp_path, 300).encode("the").pieces == ("t", "he")


@pytest.mark.parametrize("files, write", [(written, write_bert), (merged, write_gpt2)])
def test_models_open_with_them_and_they_become_a_tokenizer_json(tmp_path, files, write):
    model = open_model(write(files(tmp_path), tokenizer=False))
    prompt = model.tokenize("the cat 나는")
    size = model.spec.vocabulary
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json(read(tmp_path)))
    again = Pieces(tmp_path / "tokenizer.json", size).encode("the cat 나는")
    assert np.array_equal(again.ids, prompt.ids)
    assert np.array_equal(again.spans, prompt.spans)


def test_a_tokenizer_json_stays_as_it_is_and_bytes_have_none(tmp_path):
    found = read(write_gpt2(tmp_path))
    assert tokenizer_json(found) == (tmp_path / "tokenizer.json").read_bytes()
    (tmp_path / "tokenizer.json").unlink()
    assert tokenizer_json(found) is None


# --- what is wrong with them ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda at: written(at, tokens=["[PAD]", "[CLS]", "[SEP]"]), "it lacks [UNK], its unk_tok"),
        (lambda at: written(at, cls_token="<s>"), "it lacks <s>, its cls_token"),
        (lambda at: written(at, tokenizer_class="BertJapaneseTokenizer"), "BertJapaneseTokenizer"),
        (lambda at: written(at, do_lower_case="yes"), "Expected bool"),
        (lambda at: written(at, added={"a": "b"}), "'a' has no id there but 'b'"),
        (lambda at: written(at, added={"a": -1}), "'a' has no id there but -1"),
    ],
)
def test_a_vocab_txt_that_makes_no_tokenizer_is_one_error(tmp_path, make, words):
    with pytest.raises(HgvizError) as caught:
        tokenizer_of(make(tmp_path), 43)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name, data",
    [
        ("vocab.json", b"{}"),
        ("vocab.json", b"[]"),
        ("vocab.json", b'{"a": 1e9}'),
        ("vocab.json", b'{"a": true}'),
        ("vocab.json", b'{"a": 4294967296}'),
        ("merges.txt", b"a b c\n"),
        ("merges.txt", b"one\n"),
        ("merges.txt", "없 는\n".encode()),
        ("merges.txt", b"\xff\xfe"),
        ("tokenizer_config.json", b"{"),
    ],
)
def test_damaged_files_are_one_error(tmp_path, name, data):
    merged(tmp_path, add_prefix_space=False)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(HgvizError) as caught:
        tokenizer_of(tmp_path, 300)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[UNK]\n\n[CLS]\n"])
def test_a_damaged_vocab_txt_is_one_error(tmp_path, data):
    (tmp_path / "vocab.txt").write_bytes(data)
    with pytest.raises(HgvizError, match=r"vocab\.txt"):
        tokenizer_of(tmp_path, 300)


def test_an_id_beyond_the_vocabulary_is_refused_though_there_are_few_tokens(tmp_path):
    merged(tmp_path)
    ids = json.loads((tmp_path / "vocab.json").read_text())
    (tmp_path / "vocab.json").write_text(json.dumps({**ids, "<|endoftext|>": 7_000}))
    with pytest.raises(HgvizError, match=r'"<\|endoftext\|>" has the id 7,000, the model\'s end'):
        tokenizer_of(tmp_path, 300)
