"""An open model: arrays in and out, dtypes, devices, what it refuses; surveys on a device; texts as
prompts, and vocabulary files as the tokenizers that transformers makes of them."""

import json
import threading
from dataclasses import replace
from unicodedata import normalize
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Signal
from hgviz.maps import LazyMap, Rule
from hgviz.maps.tiles import SurveyRequest, survey
from hgviz.models import device_maps, open_model
from hgviz.models.checkpoints import read, tokenizer_json
from hgviz.models.device_maps import DeviceHead, blocks_on
from hgviz.models.model import device_of
from hgviz.models.prompts import read_ids
from hgviz.models.run import CaptureRecorder
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
from hgviz.tasks import capture
from tests.closeness import scaled_error
from tests.maps.test_lazy import layers, make
from tests.models import zoo
from tests.models.building import (
    byte_level,
    vocabulary,
    write_checkpoint,
    write_gpt2,
)

NESTED = {"hierarchy": "1@1 1@2 1@4 1@2 1@1", "positions": "rotary"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("model") / "small", **NESTED)


@pytest.fixture
def model(folder):
    return open_model(folder, dtype="float64")


@pytest.mark.parametrize(
    "write, head", [(write_checkpoint, "lm_head"), (write_gpt2, "net.lm_head")]
)
def test_a_capture_without_logits_never_makes_them(tmp_path, write, head):
    model, outputs = open_model(write(tmp_path / "model")), []
    model.module.get_submodule(head).register_forward_hook(lambda *parts: outputs.append(parts))
    prompt = model.from_ids(np.arange(2, 9))
    without = capture(model, prompt, logits=False)
    assert without.logits is None and not outputs
    found = capture(model, prompt)
    assert found.logits is not None and len(outputs) == 1
    for one, other in zip(found.maps, without.maps, strict=True):
        assert all((one.read(head) == other.read(head)).all() for head in one.heads)
    assert tasks.roles_of_text(model, prompt) and len(outputs) == 1


REFUSED = [
    ({"ids": []}, "the text is empty"),
    ({"ids": [1, 23]}, "there is no token 23: the ids of this model are 0 to 22"),
    ({"ids": [1.0, 2.0]}, "the ids must be integers, not float64"),
    ({"ids": 3}, "the ids must have 1 or 2 dimensions, not 0"),
    ({"ids": [[1, 2], [3]]}, "the ids are not an array: their rows differ in length"),
    ({"ids": [1, 2], "attention_mask": [1]}, "the attention_mask does not fit the ids"),
    ({"ids": [1], "token_type_ids": [0]}, "this model does not accept token_type_ids"),
    ({"ids": [1], "off": [HeadId(9, 0)]}, "this model has no head 9.0"),
]


def test_what_cannot_be_run_is_one_error(model):
    for arguments, words in REFUSED:
        with pytest.raises(HgvizError) as caught:
            model.run(**arguments)
        assert words in str(caught.value)


LACKING = (
    MemoryError(), RuntimeError("CUDA out of memory. Tried 3 GiB"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
)  # fmt: skip


def test_too_little_memory_is_one_error_with_a_way_out_and_other_faults_are_not(model, monkeypatch):
    for error, raised, words in (
        *((error, HgvizError, "out of memory on cpu: the text has 3 tokens")
          for error in LACKING),
        (RuntimeError("a bug"), RuntimeError, "a bug"),
    ):  # fmt: skip
        monkeypatch.setattr(model.module, "forward", Mock(side_effect=error))
        with pytest.raises(raised, match=words):
            model.run([1, 2, 3])


# --- devices --------------------------------------------------------------------------------------


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.delenv("HGVIZ_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def test_auto_takes_the_best_device_there_is(no_gpu, monkeypatch):
    assert device_of("auto") == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device_of("auto") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of("auto") == "cuda"
    monkeypatch.setenv("HGVIZ_DEVICE", "cpu")
    assert device_of("auto") == "cpu"
    assert device_of("cuda") == "cuda"


ABSENT = [  # options, HGVIZ_DEVICE, what is said
    ({"device": "tpu"}, "", "unknown device 'tpu'. Choose from auto, cpu, cuda, mps."),
    ({"device": "cuda"}, "", "cuda is not available: torch "),
    ({"device": "auto"}, "gpu", "unknown HGVIZ_DEVICE 'gpu'. Choose from auto, cpu"),
    ({"dtype": "int8"}, "", "unknown dtype 'int8'. Choose from float64"),
    ({"masking": "loose"}, "", "unknown masking 'loose'. Choose from compat, strict"),
    ({"masking": "compat"}, "", "this model only supports strict masking"),
]


def test_devices_dtypes_and_maskings_that_are_not_there(folder, no_gpu, monkeypatch):
    for options, variable, message in ABSENT:
        monkeypatch.setenv("HGVIZ_DEVICE", variable)
        with pytest.raises(HgvizError) as caught:
            open_model(folder, **options)
        assert str(caught.value).startswith(message)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("form", ["official", "windowed"])
def test_cuda_computes_what_the_cpu_does(tmp_path, form):
    """Logits and tiles within 1e-4 in float32, TF32 off."""
    torch.backends.cuda.matmul.allow_tf32 = False
    folder = write_checkpoint(tmp_path, form=form, **NESTED)
    ids, found = np.random.default_rng(0).integers(0, 23, 301), {}
    for device in ("cpu", "cuda"):
        tapped = {}
        model = open_model(folder, device=device)
        model.trace(model.from_ids(ids), observers=[CaptureRecorder(tapped.__setitem__)])
        tiles = [LazyMap(one, (0, 1)).read(1) for one in tapped.values()]
        found[device] = [model.run(ids).logits, *tiles]
    for one, other in zip(found["cpu"], found["cuda"], strict=True):
        assert scaled_error(one, other) <= 1e-4


# --- surveys of maps on a device ------------------------------------------------------------------

BY_TORCH = "cpu:0"  # the CPU under a name that numpy does not answer to


@pytest.fixture(autouse=True, scope="module")
def small_maps_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_maps, "LEAST", 0)
        yield


FINDINGS = "total", "top", "entropy", "cells", "sums", "rows"


def agree(one, other, tolerance=2e-5):
    """Two surveys within the rounding of float32; entropies are sums of many."""
    for name in FINDINGS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.shape == b.shape and a.dtype == b.dtype, name
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=tolerance, err_msg=name)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(layers())
def test_a_map_of_any_rule_is_surveyed_by_torch_or_numpy(factors):
    maps = LazyMap(factors, tuple(range(len(factors.q))))
    wanted = SurveyRequest(2, 3, (0, maps.shape[1] - 1))
    for place in range(len(maps.heads)):
        one, other = survey(maps, place, wanted, blocks_on(BY_TORCH)), survey(maps, place, wanted)
        size = np.abs(other.top).max()
        agree(one, other, 1e-5 * max(1, size))


def test_a_device_out_of_memory_leaves_the_head_to_numpy(monkeypatch):
    monkeypatch.setattr(device_maps, "CELLS", 1)
    weights, calls = DeviceHead.weights, []

    def full(self, rows, columns):
        calls.append(columns)
        if len(calls) == 2:  # with a part of it found already
            raise RuntimeError("MPS backend out of memory")
        return weights(self, rows, columns)

    monkeypatch.setattr(DeviceHead, "weights", full)
    rule = Rule(0.125, ("softmax",), (None,))
    maps, wanted = LazyMap(make(rule, 600, 300, width=64), (0,)), SurveyRequest(3, 4, (599,))
    one, other = survey(maps, 0, wanted, blocks_on(BY_TORCH)), survey(maps, 0, wanted)
    assert len(calls) == 2
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FINDINGS)


# --- texts: bytes ---------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(TEXT)
def test_every_text_comes_back_from_its_bytes(text):
    prompt = Bytes().encode(text)
    again = Bytes().decode(prompt.ids)
    assert again.text == text
    assert again.pieces == prompt.pieces
    assert (again.spans == prompt.spans).all()
    assert "".join(text[a:b] for a, b in np.unique(prompt.spans, axis=0)) == text


# --- tokenizer.json -------------------------------------------------------------------------------


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


NFKC = normalizers.NFKC()
STRIPPED = normalizers.BertNormalizer(lowercase=True)


@pytest.mark.parametrize("tokenizer, text, labels, counts", [
    (pieces_of(None, SPACED), "한글 한", [" ", "한", "글", " ", "한"], [0, 3, 3, 1, 3]),
    (pieces_of(PREPENDED, bytes_="fallback"), "é  é",
     [" ", "<C3>", "<A9>", " ", " ", "<C3>", "<A9>"], [0, 1, 1, 1, 1, 1, 1]),
    (pieces_of(bytes_="level"), "한글",
     [" ", "<ED>", "<95>", "<9C><EA>", "<B8>", "<80>"], [0, 1, 1, 2, 1, 1]),
    (pieces_of(NFKC), normalize("NFD", "마éa"), ["마", "é", "a"], [6, 3, 1]),
    (pieces_of(NFKC), "ﬁ…a", ["f", "i", ".", ".", ".", "a"], [1.5, 1.5, 1, 1, 1, 1]),
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
    for data in (b"", b"\xff", b'{"model": {"type": "BPE"}}', b"[" * 9999):
        (tmp_path / "tokenizer.json").write_bytes(data)
        with pytest.raises(HgvizError, match=r"tokenizer\.json could not be read"):
            tokenizer_of(tmp_path, 256)


def test_a_pattern_that_never_ends_is_waited_for_only_so_long(tmp_path, monkeypatch):
    slow = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    slow.pre_tokenizer = pre_tokenizers.Split(Regex(r"a*a*a*\d\b"), "isolated")
    slow.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Pieces(tmp_path / "tokenizer.json", 10)
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
    "", "[1, 2]", "{}", '{"input_ids": "abc"}', '{"input_ids": [1.5]}', "[" * 99_999,
    '{"input_ids": [1], "boundaries": [0, 1]}', '{"input_ids": [1], "attention_mask": [2]}',
    '{"input_ids": [99999999999999999999]}',
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
    (written, "bert", {"do_lower_case": False, "strip_accents": True,
                       "tokenize_chinese_chars": False}),
    (written, "mpnet", {"tokenizer_class": "BertTokenizerFast", "sep_token": "."}),
    (merged, "gpt_neo", {"add_prefix_space": True}),
    (merged, "opt", {"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>"}),
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


def test_a_model_without_a_fast_tokenizer_opens_and_takes_ids(tmp_path):
    folder = zoo.write(tmp_path, "distilbert", "DistilBertForMaskedLM")
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
    for keys, words in SETTINGS:
        assert words in refused(written(tmp_path, **keys))
