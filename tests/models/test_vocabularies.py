"""Vocabulary files make the tokenizers that transformers makes of them."""

import json
import os
import socket
import sys

import numpy as np
import pytest

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.checkpoints import read, tokenizer_json
from hgviz.models.text import Bare, Bytes, Pieces, tokenizer_of
from tests.models import reference
from tests.models.folders import byte_level, vocabulary, write_bert, write_gpt2
from tests.models.zoo import write

TEXTS = (
    "", "the cat sat.", "The CAT, unaffables", "나는 이, 있.", "a [MASK] of\tthe [SEP]",
    "cafe\u0301 é", "中文 x", "zzz 😀", "\u200bthe\u00a0cat\n", "the<|endoftext|> <s> the",
)  # fmt: skip
OTHERWISE = "Put a tokenizer.json beside it, or give token ids with --ids"


def written(folder, tokens=None, added=None, **settings):
    """vocab.txt and what stands beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens or vocabulary()) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if added:
        (folder / "added_tokens.json").write_text(json.dumps(added))
    return folder


def merged(folder, more=(), **settings):
    """vocab.json and merges.txt of the bytes, a few merges and more tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    found = json.loads(byte_level().to_str())["model"]
    vocab = {**found["vocab"], **{one: len(found["vocab"]) + i for i, one in enumerate(more)}}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    lines = [" ".join(pair) for pair in found["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def of(folder, kind):
    """The same folder with a config.json of a model type."""
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    return folder


def refused(folder):
    """What is said of a text where the vocabulary files make no tokenizer: one line."""
    with pytest.raises(HgvizError) as caught:
        tokenizer_of(folder, 300).encode("the")
    assert "\n" not in str(caught.value)
    assert caught.value.do == OTHERWISE
    return str(caught.value)


# --- as transformers makes them -------------------------------------------------------------------


@pytest.mark.parametrize("files, kind, settings", [
    (written, "bert", {}),
    (written, "distilbert", {"do_lower_case": False}),
    (written, "electra", {"do_lower_case": True, "strip_accents": False}),
    (written, "bert", {"do_lower_case": False, "strip_accents": True,
                       "tokenize_chinese_chars": False}),
    (written, "mpnet", {"tokenizer_class": "BertTokenizerFast", "sep_token": "."}),
    (merged, "gpt2", {}), (merged, "gpt_neo", {"add_prefix_space": True}),
    (merged, "roberta", {}), (merged, "roberta", {"tokenizer_class": "RobertaTokenizer"}),
    (merged, "opt", {"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>"}),
    (merged, "qwen2", {}),
])  # fmt: skip
def test_they_are_read_as_transformers_reads_them(tmp_path, files, kind, settings):
    more = {"more": ("<s>", "</s>", "<pad>", "<unk>", "<mask>")} if files is merged else {}
    folder = of(files(tmp_path, **more, **settings), kind)
    ours = tokenizer_of(folder, 300)
    theirs = reference.library().AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        for given in ((text,), (text, "the 나")):
            found = theirs(*given, return_token_type_ids=True)
            prompt = ours.encode(*given)
            assert prompt.ids.tolist() == found["input_ids"]
        assert prompt.token_type_ids.tolist() == found["token_type_ids"]


@pytest.mark.parametrize("kind, settings", [
    ("bert", {"do_lower_case": False}), ("bert", {"strip_accents": False}),
    ("bert", {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False}),
    ("bert", {"tokenizer_class": "PreTrainedTokenizerFast"}), ("bert", {"tokenizer_class": "None"}),
    ("gpt2", {"add_prefix_space": True}), ("gpt2", {"add_bos_token": True}),
    ("gpt2", {"split_special_tokens": True}), ("gpt2", {"extra_special_tokens": ["the"]}),
    ("gpt2", {"tokenizer_file": "/nowhere.json", "vocab": "/nowhere.txt"}),
])  # fmt: skip
def test_settings_beside_a_tokenizer_json_are_followed_as_transformers_does(
    tmp_path, kind, settings
):
    auto = reference.library().AutoTokenizer
    folder = of((written if kind == "bert" else merged)(tmp_path), kind)
    auto.from_pretrained(folder).save_pretrained(folder)
    for file in ("vocab.txt", "vocab.json", "merges.txt"):
        (folder / file).unlink(missing_ok=True)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    ours, theirs = tokenizer_of(folder, 400), auto.from_pretrained(folder)
    for text in TEXTS[1:]:
        assert ours.encode(text).ids.tolist() == theirs(text)["input_ids"]


def test_settings_that_transformers_does_not_read_leave_a_tokenizer_json_as_it_is(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    file = tmp_path / "tokenizer_config.json"
    file.write_text('{"auto_map": {"AutoTokenizer": ["code.Tokens", null]}}')
    assert tokenizer_of(tmp_path, 300).encode("the").pieces == ("t", "he")
    file.write_text("{")
    with pytest.raises(HgvizError, match=r"tokenizer_config\.json is not a JSON object"):
        tokenizer_of(tmp_path, 300)


def test_files_say_by_themselves_what_they_are_where_no_model_does(tmp_path):
    ours = tokenizer_of(of(written(tmp_path / "a"), "hgviz"), 43)
    assert ours.encode("the CAT").ids.tolist() == [2, 5, 6, 3]
    assert tokenizer_of(merged(tmp_path / "b"), 300).encode("the").pieces == ("t", "he")


def test_spans_point_into_the_text(tmp_path):
    prompt = tokenizer_of(written(tmp_path), 43).encode("The 나는 있", "sat")
    assert [prompt.label(i) for i in range(len(prompt))] == [
        "[CLS]", "The", "나", "는", "이", "ᆻ", "[SEP]", "sat", "[SEP]",
    ]  # fmt: skip


@pytest.mark.parametrize("files, name", [(written, "vocab.txt"), (merged, "merges.txt")])
def test_lines_may_end_as_windows_ends_them(tmp_path, files, name):
    plain = tokenizer_of(files(tmp_path / "a"), 300).encode("the cat").ids
    folder = files(tmp_path / "b")
    (folder / name).write_bytes((folder / name).read_bytes().replace(b"\n", b"\r\n"))
    assert np.array_equal(tokenizer_of(folder, 300).encode("the cat").ids, plain)


def test_added_tokens_have_their_ids(tmp_path):
    decoder = {"43": {"content": "<new>"}, "0": {"content": "[PAD]", "special": True}}
    folder = written(tmp_path / "a", added_tokens_decoder=decoder)
    assert tokenizer_of(folder, 44).encode("the<new> the").ids.tolist() == [2, 5, 43, 5, 3]
    folder = written(tmp_path / "b", added={"<newer>": 43})
    assert tokenizer_of(folder, 44).encode("the<newer>").ids.tolist() == [2, 5, 43, 3]
    with pytest.raises(HgvizError, match='no embedding for the token "<newer>"'):
        tokenizer_of(folder, 43).encode("the<newer>")


def sentencepiece(folder):
    """A spiece.model of a few tokens."""
    form = pytest.importorskip("transformers.utils.sentencepiece_model_pb2_new")
    model = form.ModelProto()
    for piece, score, kind in (
        ("<pad>", 0, 3), ("</s>", 0, 3), ("<unk>", 0, 2), ("▁", -2, 1), ("▁the", -3, 1),
        ("▁ca", -4, 1), ("t", -5, 1),
    ):  # fmt: skip
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type, model.trainer_spec.unk_id = 1, 2
    (folder / "spiece.model").write_bytes(model.SerializeToString())
    (folder / "tokenizer_config.json").write_text('{"extra_ids": 0}')
    return of(folder, "t5")


def test_a_sentencepiece_model_is_read(tmp_path):
    pytest.importorskip("sentencepiece")
    prompt = tokenizer_of(sentencepiece(tmp_path), 300).encode("the cat")
    assert prompt.ids.tolist() == [4, 5, 6, 1]
    assert [prompt.label(i) for i in range(4)] == ["the", "ca", "t", "</s>"]


def test_a_sentencepiece_model_says_what_package_it_needs(tmp_path, monkeypatch):
    folder = sentencepiece(tmp_path)
    for name in ("sentencepiece", "tiktoken"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "read by the package sentencepiece or tiktoken" in refused(folder)


# --- which files there are ------------------------------------------------------------------------


def test_the_first_of_the_files_is_used(tmp_path):
    assert isinstance(tokenizer_of(tmp_path, 256), Bytes)
    merged(tmp_path)
    (tmp_path / "vocab.json").rename(tmp_path / "v")
    assert isinstance(tokenizer_of(tmp_path, 256), Bytes)  # merges alone are nothing
    (tmp_path / "v").rename(tmp_path / "vocab.json")
    assert tokenizer_of(tmp_path, 300).encode("the").pieces == ("t", "he")
    written(tmp_path, tokenizer_class="BertTokenizer")
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


def test_a_model_without_a_fast_tokenizer_opens_and_takes_ids(tmp_path):
    folder = write(tmp_path, "distilbert", "DistilBertForMaskedLM")
    written(folder, tokenizer_class="BertJapaneseTokenizer")
    model = open_model(folder)
    assert isinstance(model.tokenizer, Bare)
    assert model.run(np.arange(5)).logits.shape == (5, 120)
    assert "BertJapaneseTokenizer" in refused(folder)
    with pytest.raises(HgvizError, match=r"vocab\.txt"):
        tokenizer_json(read(folder))


@pytest.mark.parametrize("settings, words", [
    ({"auto_map": {"AutoTokenizer": ["code.Tokens", None]}}, "asks for code of its own"),
    ({"tokenizer_class": "TokensOfMine"}, "knows no class TokensOfMine"),
    ({"tokenizer_class": "T5Tokenizer"}, "T5Tokenizer reads spiece.model, which is not there"),
    ({"unk_token": "<what>"}, "it lacks <what>, its unk_token"),
    ({"do_lower_case": "yes"}, "could not be read"),
])  # fmt: skip
def test_settings_that_make_no_tokenizer_are_one_line(tmp_path, settings, words):
    (tmp_path / "code.py").write_text("raise SystemExit")
    assert words in refused(written(tmp_path, **settings))


def test_what_is_not_known_of_a_token_is_not_printed(tmp_path, capfd):
    token = {"0": {"content": "[PAD]", "special": True, "None": 1}}
    folder = written(tmp_path / "a", added_tokens_decoder=token)
    assert len(tokenizer_of(folder, 60).encode("the cat"))
    assert capfd.readouterr() == ("", "")


def test_no_network_is_asked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **named: asked.append(given))
    monkeypatch.setattr(socket.socket, "connect", lambda *given: asked.append(given))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    assert tokenizer_of(of(merged(tmp_path), "gpt2"), 300).encode("the").pieces == ("t", "he")
    assert not asked


def test_settings_name_no_files_elsewhere(tmp_path):
    other = written(tmp_path / "other", tokens=["[UNK]", "[CLS]", "[SEP]", "the"])
    folder = written(tmp_path / "a", vocab=str(other / "vocab.txt"))
    assert tokenizer_of(folder, 43).encode("the").ids.tolist() == [2, 5, 3]


@pytest.mark.parametrize("name, data", [
    ("vocab.json", b"{}"), ("vocab.json", b"[]"), ("vocab.json", b'{"a": 1e9}'),
    ("vocab.json", b'{"a": 4294967296}'), ("merges.txt", b"a b c\n"), ("merges.txt", b"one\n"),
    ("merges.txt", "없 는\n".encode()), ("merges.txt", b"\xff\xfe"),
    ("tokenizer_config.json", b"{"), ("added_tokens.json", b"[1]"),
    ("config.json", b"["),
])  # fmt: skip
def test_damaged_files_are_one_line(tmp_path, name, data):
    merged(tmp_path, add_prefix_space=False)
    (tmp_path / name).write_bytes(data)
    assert isinstance(tokenizer_of(tmp_path, 300), Bare)
    with pytest.raises(HgvizError) as caught:
        tokenizer_of(tmp_path, 300).encode("the")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[PAD]\n\n[CLS]\n"])
def test_a_damaged_vocab_txt_is_one_line(tmp_path, data):
    (tmp_path / "vocab.txt").write_bytes(data)
    assert refused(tmp_path).startswith("vocab.txt")


def test_a_file_beyond_the_limit_and_a_link_to_nothing_are_one_line(tmp_path, monkeypatch):
    folder = written(tmp_path)
    monkeypatch.setattr("hgviz.models.text.MOST_TOKENIZER", 100)
    with pytest.raises(HgvizError, match=r"vocab\.txt is too large"):
        tokenizer_of(folder, 300).encode("the")
    (folder / "vocab.txt").unlink()
    os.symlink("nowhere", folder / "vocab.txt")
    assert "vocab.txt" in refused(folder)
