"""Texts become prompts whose spans point into them; vocabulary files make the tokenizers that
transformers makes of them."""

import json
import socket
import threading
from dataclasses import replace
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from hgviz.core import HgvizError, Signal
from hgviz.models import open_model
from hgviz.models.checkpoints import read, tokenizer_json
from hgviz.models.prompts import read_ids
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
from tests.models import zoo
from tests.models.building import byte_level, vocabulary
from tests.models.zoo import write

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


# --- bytes ----------------------------------------------------------------------------------------


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


# --- tokenizer.json -------------------------------------------------------------------------------


def words(folder, pattern=None, **vocabulary):
    """A tokenizer.json of a few words between <s> and </s>, cutting off after two."""
    vocabulary = {"<s>": 0, "</s>": 1, "?": 2, "the": 3, "café": 4, **vocabulary}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    splitter = Regex(pattern) if pattern else None
    whole = pre_tokenizers.Whitespace()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(splitter, "isolated") if splitter else whole
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


@pytest.mark.parametrize("tokenizer, text, labels, counts", [
    (pieces_of(None, SPACED), "한글 한", [" ", "한", "글", " ", "한"], [0, 3, 3, 1, 3]),
    (pieces_of(PREPENDED, bytes_="fallback"), "é  é",
     [" ", "<C3>", "<A9>", " ", " ", "<C3>", "<A9>"], [0, 1, 1, 1, 1, 1, 1]),
    (pieces_of(bytes_="level"), "한글",
     [" ", "<ED>", "<95>", "<9C><EA>", "<B8>", "<80>"], [0, 1, 1, 2, 1, 1]),
    (pieces_of(NFC), "마실까Bär", ["마", "실", "까", "B", "ä", "r"], [3, 3, 3, 1, 2, 1]),
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


@given(st.lists(st.binary(max_size=5), max_size=8))
def test_bytes_of_tokens_make_a_text_that_their_spans_cover(parts):
    text, spans = join_bytes(parts)
    assert [one[0] >= 0 for one in spans] == [bool(part) for part in parts]
    assert {i for a, b in spans if a >= 0 for i in range(a, b)} == {*range(len(text))}
    assert text.replace("\ufffd", "") == b"".join(parts).decode(errors="replace").replace(
        "\ufffd", ""
    )


def test_a_damaged_tokenizer_is_one_error(tmp_path):
    for data in (b"", b"{}", b"\xff", b'{"model": {"type": "BPE"}}', b"[" * 9999):
        (tmp_path / "tokenizer.json").write_bytes(data)
        with pytest.raises(HgvizError, match=r"tokenizer\.json could not be read"):
            tokenizer_of(tmp_path, 256)


def test_a_pattern_that_never_ends_is_waited_for_only_so_long(tmp_path, monkeypatch):
    tokenizer = Pieces(words(tmp_path, pattern=r"a*a*a*\d\b"), 10)
    monkeypatch.setattr("hgviz.models.text.TIMEOUT", 0.05)
    with pytest.raises(HgvizError, match="it took more than 0 seconds"):
        tokenizer.encode("a" * 300)
    for thread in threading.enumerate():
        if thread.name == "with a timeout":
            thread.join()


def test_an_empty_or_too_long_text_is_one_line():
    with pytest.raises(HgvizError, match="the text is empty"):
        Bytes().encode("")
    with pytest.raises(HgvizError, match="give token ids to hgviz capture"):
        Bare().encode("a")
    with pytest.raises(HgvizError, match="5,000 bytes, and the maximum is 4,096"):
        require_room(5000, 4096, "byte")
    require_room(4096, 4096)
    require_room(10**6, None)


NO_IDS = (
    "", "[1, 2]", "{}", '{"input_ids": "abc"}', '{"input_ids": [1.5]}', '{"input_ids": [true]}',
    '{"input_ids": [1], "boundaries": [0, 1]}', '{"input_ids": [1], "attention_mask": [2]}',
    '{"input_ids": [1], "attention_mask": [1, 1]}', '{"input_ids": [99999999999999999999]}',
    "[" * 99_999,
)  # fmt: skip


def test_ids_of_another_shape_are_refused(tmp_path):
    for data in NO_IDS:
        (tmp_path / "ids.json").write_text(data)
        with pytest.raises(HgvizError, match=r"ids\.json"):
            read_ids(tmp_path / "ids.json")


# --- vocabulary files, as transformers reads them -------------------------------------------------

TEXTS = (
    "", "the cat sat.", "The CAT, unaffables", "나는 이, 있.", "a [MASK] of\tthe [SEP]",
    "cafe\u0301 é", "中文 x", "zzz 😀", "\u200bthe\u00a0cat\n", "the<|endoftext|> <s> the",
)  # fmt: skip
OTHERWISE = "Add a tokenizer.json to this folder, or give token ids to hgviz capture --ids"


def written(folder, **settings):
    """vocab.txt and what stands beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary()) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def merged(folder, more=(), **settings):
    """vocab.json and merges.txt of the bytes, a few merges and more tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    found = json.loads(byte_level().to_str())["model"]
    vocab = {**found["vocab"], **{one: len(found["vocab"]) + i for i, one in enumerate(more)}}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    lines = [" ".join(pair) for pair in found["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), encoding="utf-8")
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


@pytest.mark.parametrize("files, kind, settings", [
    (written, "electra", {"do_lower_case": True, "strip_accents": False}),
    (written, "bert", {"do_lower_case": False, "strip_accents": True,
                       "tokenize_chinese_chars": False}),
    (written, "mpnet", {"tokenizer_class": "BertTokenizerFast", "sep_token": "."}),
    (merged, "gpt_neo", {"add_prefix_space": True}),
    (merged, "roberta", {"tokenizer_class": "RobertaTokenizer"}),
    (merged, "opt", {"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>"}),
    (merged, "qwen2", {}),
])  # fmt: skip
def test_they_are_read_as_transformers_reads_them(tmp_path, files, kind, settings):
    more = {"more": ("<s>", "</s>", "<pad>", "<unk>", "<mask>")} if files is merged else {}
    folder = of(files(tmp_path, **more, **settings), kind)
    ours = tokenizer_of(folder, 300)
    theirs = zoo.library().AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        for texts in ((text,), (text, "the 나")):
            found = theirs(*texts, return_token_type_ids=True)
            prompt = ours.encode(*texts)
            assert prompt.ids.tolist() == found["input_ids"]
        assert prompt.token_type_ids.tolist() == found["token_type_ids"]


@pytest.mark.parametrize("kind, settings", [
    ("bert", {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False}),
    ("bert", {"tokenizer_class": "PreTrainedTokenizerFast"}), ("gpt2", {"add_prefix_space": True}),
    ("gpt2", {"split_special_tokens": True}), ("gpt2", {"extra_special_tokens": ["the"]}),
    ("gpt2", {"tokenizer_file": "/nowhere.json", "vocab": "/nowhere.txt"}),
])  # fmt: skip
def test_settings_beside_a_tokenizer_json_are_followed_as_transformers_does(
    tmp_path, kind, settings
):
    auto = zoo.library().AutoTokenizer
    folder = of((written if kind == "bert" else merged)(tmp_path), kind)
    auto.from_pretrained(folder).save_pretrained(folder)
    for file in ("vocab.txt", "vocab.json", "merges.txt"):
        (folder / file).unlink(missing_ok=True)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    ours, theirs = tokenizer_of(folder, 400), auto.from_pretrained(folder)
    for text in TEXTS[1:]:
        assert ours.encode(text).ids.tolist() == theirs(text)["input_ids"]


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


def test_a_model_without_a_fast_tokenizer_opens_and_takes_ids(tmp_path):
    folder = write(tmp_path, "distilbert", "DistilBertForMaskedLM")
    written(folder, tokenizer_class="BertJapaneseTokenizer")
    model = open_model(folder)
    assert isinstance(model.tokenizer, Bare)
    assert model.run(np.arange(5)).logits.shape == (5, 120)
    assert "BertJapaneseTokenizer" in refused(folder)
    with pytest.raises(HgvizError, match=r"vocab\.txt"):
        tokenizer_json(read(folder))


SETTINGS = [
    ({"auto_map": {"AutoTokenizer": ["code.Tokens", None]}}, "needs custom code"),
    ({"tokenizer_class": "TokensOfMine"}, "has no class TokensOfMine"),
    ({"tokenizer_class": "T5Tokenizer"}, "T5Tokenizer needs spiece.model, which is missing"),
    ({"unk_token": "<what>"}, "its unk_token <what> is missing"),
    ({"do_lower_case": "yes"}, "could not be read"),
]


def test_settings_that_make_no_tokenizer_are_one_line(tmp_path):
    (tmp_path / "code.py").write_text("raise SystemExit")
    for settings, words in SETTINGS:
        assert words in refused(written(tmp_path, **settings))


def test_no_network_is_asked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **named: asked.append(given))
    monkeypatch.setattr(socket.socket, "connect", lambda *given: asked.append(given))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    assert tokenizer_of(of(merged(tmp_path), "gpt2"), 300).encode("the").pieces == ("t", "he")
    assert not asked


DAMAGED = [
    ("vocab.json", b"{}"), ("vocab.json", b"[]"), ("vocab.json", b'{"a": 1e9}'),
    ("vocab.json", b'{"a": 4294967296}'), ("merges.txt", b"a b c\n"), ("merges.txt", b"one\n"),
    ("merges.txt", "없 는\n".encode()), ("merges.txt", b"\xff\xfe"),
    ("tokenizer_config.json", b"{"), ("added_tokens.json", b"[1]"), ("config.json", b"["),
]  # fmt: skip


def test_damaged_files_are_one_line(tmp_path):
    for at, (name, data) in enumerate(DAMAGED):
        folder = merged(tmp_path / f"{at}", add_prefix_space=False)
        (folder / name).write_bytes(data)
        assert isinstance(tokenizer_of(folder, 300), Bare)
        with pytest.raises(HgvizError) as caught:
            tokenizer_of(folder, 300).encode("the")
        assert "\n" not in str(caught.value)
