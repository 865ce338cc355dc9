"""Checkpoints open from every place, say what is wrong in one error, run nothing, and become one
folder that gives the same logits bit for bit."""

import json
import os
import pickle
import shutil
import socket
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import huggingface_hub.file_download  # noqa: F401  (before a test takes sockets away)
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.files import is_model_name, path_exists
from hgviz.models import devices, open_model, tensors
from hgviz.models.checkpoints import recognises
from tests.closeness import scaled_error
from tests.models import references, zoo
from tests.models.building import (
    split,
    write_bert,
    write_checkpoint,
    write_gpt2,
    write_transformer,
)
from tests.models.zoo import write

SAFE = "model.safetensors"
# a state dict of hourglass-transformer-pytorch, for files that are no .safetensors
GIVEN = {
    "num_tokens": 23, "dim": 16, "max_seq_len": 32, "depth": [1, [1, 1, 1], 1],
    "shorten_factor": [2, 2], "heads": 2, "dim_head": 8, "attn_resampling": True,
    "updown_sample_type": "linear", "causal": True,
}  # fmt: skip
ARGUMENTS = {**GIVEN, "depth": (1, (1, 1, 1), 1), "shorten_factor": (2, 2)}


@pytest.fixture(scope="module")
def lucidrains():
    return references.build_package(**ARGUMENTS)


@pytest.fixture
def theirs(tmp_path, lucidrains):
    return references.write_package(tmp_path / "theirs", lucidrains, GIVEN)


def refusal(path, **options):
    """What opening says; anything but an HgvizError of one short line fails the test."""
    with pytest.raises(HgvizError) as caught:
        open_model(path, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    return caught.value


def configured(folder, **changes):
    """The same folder with other keys in its config.json; None removes one."""
    path = folder / "config.json"
    data = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: one for name, one in data.items() if one is not None}))
    return folder


# --- what does not fit ----------------------------------------------------------------------------


def test_missing_left_over_and_unlike_tensors_are_named_in_a_table(mine):
    tensors = load_file(mine / SAFE)
    tensors |= {"lm_head.weight": torch.zeros(7, 12), "extra": torch.zeros(3)}
    del tensors["lm_head.bias"]
    save_file(tensors, mine / SAFE)
    error = refusal(mine)
    assert "lm_head.weight is 7 × 12, and config.json says 23 × 12" in str(error)
    assert [line.split() for line in error.details.splitlines()] == [
        ["tensor", "expected", "found"],
        ["lm_head.weight", "23", "×", "12", "7", "×", "12"],
        ["lm_head.bias", "23", "none"],
        ["extra", "none", "3"],
    ]


CONFIGURATIONS = [
    ({"hierarchy": "1000000@1"}, "at most 1,000 layers"),
    ({"hierarchy": "1@1 " * 9_999}, "is not a multiple of"),
    ({"vocab_size": -1}, "vocab_size: Expected int >= 1"),
    ({"form": "b" * 10**5}, "form: Invalid enum value 'bbb"),
    ({"a\x1b[2J\u202e": 1}, "unknown key a\ufffd[2J\ufffd"),
    ({"d_model": None}, "missing key d_model"),
    ({"model_type": "bert"}, "none of its tensors belongs to BertModel"),
    *((data, "is not a JSON object") for data in (b"[]", b"\xff\xfe", b"[" * 100_000)),
    (b" " * (2**20 + 1), "is too large"),
]  # fmt: skip


def entry(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


HEADERS = [  # of a .safetensors file with 64 bytes of data, or only their length
    ({"a": entry([0, 2**62], 0, 0)}, "a has the shape"),
    ({"a": entry([2**20, 2**20, 2**20, 2**20], 0, 64)}, "are stored"),
    ({"a": entry([1] * 5000, 0, 4)}, "a has the shape"),
    ({"a": entry([16], 16, 80)}, "a ends at byte 80 of 64"),
    ({"a": entry([16], 0, 64), "b": entry([16], 0, 64)}, "its tensors overlap"),
    ({"a": entry([8], 0, 64, "I64")}, "a is I64"),
    ({"a": entry([16], 0, 64, "\n\0\u202e")}, "a is \ufffd\ufffd\ufffd, and"),
    ({"../../etc/passwd": entry([16], 0, 64)}, "does not fit"),
    ({"a\nb": entry([16], 0, 64)}, "a tensor named"),
    (b'{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 4]}}', "its header is invalid"),
    (b"[" * 50_000, "its header is invalid"),
    *((length, "is damaged") for length in (2**63, 10_000, 0, 1)),
]  # fmt: skip


class Evil:
    """What a stranger's pickle would like to do."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


ZEROS = torch.zeros(3)
PICKLES = [  # what is saved as model.pt
    ([ZEROS], "it contains list"),
    ({"a": 3}, "a is not a tensor"),
    ({3: ZEROS}, "keys that are not names"),
    ({"a": torch.zeros(3, dtype=torch.int64)}, "a is int64"),
    ({"a": torch.eye(3).to_sparse()}, "a is float32"),
    ({"a": torch.zeros(3, device="meta")}, "a needs"),
    ({"a": torch.zeros(1).expand(2**40)}, "a needs 4,398,046,511,104 bytes, and 4 are stored"),
    ({f"a{i}": one for one in [torch.zeros(10_000)] for i in range(1000)},
     "its tensors are larger than the file"),
]  # fmt: skip


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The folder of an Hourglass, which tests copy before they change it."""
    return write_checkpoint(tmp_path_factory.mktemp("own") / "mine")


@pytest.fixture
def mine(own, tmp_path):
    return Path(shutil.copytree(own, tmp_path / "mine"))


def test_a_config_that_cannot_be_is_refused_in_one_line(mine):
    path = mine / "config.json"
    before = path.read_bytes()
    for content, words in CONFIGURATIONS:
        path.write_bytes(content if isinstance(content, bytes) else before)
        if isinstance(content, dict):
            configured(mine, **content)
        assert words in str(refusal(mine))


def test_a_hostile_safetensors_header_is_refused(mine):
    for header, words in HEADERS:
        data = b"" if isinstance(header, int) else header
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        start = struct.pack("<Q", header if isinstance(header, int) else len(data))
        (mine / SAFE).write_bytes(start + data + b"\0" * 64)
        assert words in str(refusal(mine))


def test_what_is_no_state_dict_is_refused(theirs):
    for content, words in PICKLES:
        torch.save(content, theirs / "model.pt")
        assert (theirs / "model.pt").stat().st_size < 10**6
        assert words in str(refusal(theirs))


def test_no_code_in_a_pickle_is_run_and_other_files_are_refused_by_name(tmp_path, theirs):
    file, evil = theirs / "model.pt", Evil(tmp_path / "gotcha")
    for content in (evil, {"token_emb.weight": evil}):
        torch.save(content, file)
        assert "only tensors are loaded" in str(refusal(theirs))
        file.write_bytes(pickle.dumps(content))
        assert "could not be read" in str(refusal(theirs))
    bert = write_bert(tmp_path / "bert")
    index = split(bert, "pytorch_model", ".bin", 1)
    torch.save({"wte.weight": evil}, bert / "pytorch_model-00001-of-00001.bin")
    index.write_text('{"weight_map": {"wte.weight": "pytorch_model-00001-of-00001.bin"}}')
    assert "only tensors are loaded" in str(refusal(bert))
    assert not (tmp_path / "gotcha").exists()
    torch.save({"a": torch.zeros(2**22)}, file)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert file.stat().st_size < 50_000
    assert "it declares 16,7" in str(refusal(theirs))
    torch.save({"a": ZEROS}, file, _use_new_zipfile_serialization=False)
    assert "written by torch before 1.6" in str(refusal(theirs))
    with zipfile.ZipFile(file, "w") as program:
        for name in ("x/constants.pkl", "x/data.pkl", "x/code/__torch__.py"):
            program.writestr(name, b"x" * 100)
    assert "is a TorchScript program" in str(refusal(theirs))


def test_what_is_not_there_is_said(tmp_path, mine):
    (tmp_path / "a.txt").write_bytes(b"a")
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("nowhere", "does not exist"), ("empty", "config.json is missing"),
        ("a.txt", "is not a checkpoint"),
    ):  # fmt: skip
        assert words in str(refusal(tmp_path / name)) and not recognises(tmp_path / name)
    (mine / SAFE).rename(mine / "a.pt")
    (mine / "b.pt").write_bytes(b"")
    assert "contains 2 weights files, such as a.pt and b.pt" in str(refusal(mine))
    (mine / "a.pt").unlink()
    (mine / "b.pt").rename(mine / "b.gguf")
    assert "contains b.gguf, a weights format that hgviz does not support" in str(refusal(mine))
    (mine / "b.gguf").unlink()
    assert "mine contains no weights" in str(refusal(mine))
    os.mkfifo(mine / SAFE)
    assert "is not a file" in str(refusal(mine))
    (mine / "config.json").unlink()
    os.mkfifo(mine / "config.json")
    assert "config.json is missing" in str(refusal(mine))


@pytest.mark.parametrize("name", [SAFE, "model.pt"])
def test_files_that_are_cut_short_or_have_a_flipped_byte_are_refused_or_harmless(
    tmp_path, lucidrains, name
):
    path = references.write_package(tmp_path / "theirs", lucidrains, GIVEN, name=name) / name
    data, random = path.read_bytes(), np.random.default_rng(0)
    for share in (0.0, 0.001, 0.3, 0.9, 0.999):
        path.write_bytes(data[: int(share * len(data))])
        assert "theirs/model" in str(refusal(path))
    for place in [*random.integers(0, 3000, 25), *random.integers(len(data) - 3000, len(data), 25)]:
        broken = bytearray(data)
        broken[place] ^= 1 << int(random.integers(8))
        path.write_bytes(broken)
        try:
            open_model(path)
        except HgvizError as error:
            assert "\n" not in str(error)


# --- names in the Hugging Face cache --------------------------------------------------------------

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty cache; a socket would be an error."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


def cached(hub, name, write=write_bert, commit=COMMIT, **changes):
    """A model as huggingface_hub keeps it: links into blobs."""
    store = hub / f"models--{name.replace('/', '--')}"
    snapshot = write(store / "snapshots" / commit, **changes)
    (store / "blobs").mkdir(exist_ok=True)
    (store / "refs").mkdir(exist_ok=True)
    (store / "refs" / "main").write_text(commit)
    for file in snapshot.iterdir():
        blob = store / "blobs" / f"{commit}-{file.stat().st_ino}"
        file.rename(blob)
        file.symlink_to(os.path.relpath(blob, snapshot))
    return store


def test_models_are_opened_by_their_names_in_the_cache(hub, tmp_path):
    name = "a.b_c/d-e.f_1"
    store = cached(hub, name, write_gpt2)
    assert open_model(name).spec.name == name
    assert open_model(store / "snapshots" / COMMIT / "config.json").spec.name == name
    assert tasks.kind_of(name) == "checkpoint" and tasks.info(name)["name"] == name
    assert tasks.load(Path(name), "cpu").tokenize("the").pieces == ("t", "he")
    cached(hub, "a/b", commit="1" * 40, seed=1)
    first = open_model("a/b").spec.digest
    store = cached(hub, "a/b", commit="2" * 40, seed=2)
    assert open_model("a/b").spec.digest != first
    (store / "refs" / "main").write_text("1" * 40)
    assert open_model("a/b").spec.digest == first
    (store / "snapshots" / ("1" * 40) / SAFE).unlink()
    assert str(refusal("a/b")).startswith("a/b contains no weights")
    write_gpt2(tmp_path / "a" / "b")  # a folder of that name comes first
    assert open_model("a/b").spec.family == "gpt2"
    # one that moved into an organisation is found by its old name
    cached(hub, "google-bert/bert-base-uncased")
    assert open_model("bert-base-uncased").spec.name == "google-bert/bert-base-uncased"
    cached(hub, "someone/bert-base-uncased")
    assert not path_exists("bert-base-uncased")
    with pytest.raises(HgvizError, match="there is no org/name.*hf download org/name"):
        open_model("org/name")


def test_refs_and_names_are_never_paths(hub, tmp_path):
    store = cached(hub, "a/b")
    write_bert(hub / "x")
    for ref in ("../../../x", "..", "", "/etc", "a/b", "x" * 9999, "f" * 40):
        (store / "refs" / "main").write_text(ref)
        assert "has no config.json of such a model" in str(refusal("a/b"))
    for name in (
        "../a", "a/../b", "/a/b", "a/b/c", "./..", "a--b", "-a", ".a", "a\\b", "~", "", "a" * 200,
        "a\nb", "a b", "a/..b", "capture.h5",
    ):  # fmt: skip
        assert not is_model_name(name)
        assert path_exists(name) == (tmp_path / name).exists()


# --- converted to one folder ----------------------------------------------------------------------

CONVERTED = {
    "hourglass": write_checkpoint,
    "package": lambda at: references.write_package(
        at, references.build_package(**ARGUMENTS), GIVEN
    ),
    "yubert": lambda at: write_transformer(
        at, family="yubert", labels=["a", "b"], slots=4, max_positions=20, vocab_size=23
    ),
    "bert": write_bert,
    "encoder-decoder": write_transformer,
}


def bits(model):
    """Logits of a batch with padding."""
    ids = np.arange(16).reshape(2, 8) % 20
    mask = np.arange(8) < np.array([[8], [5]])
    both = {"decoder_ids": ids[:, :5]} if model.spec.form == "encoder-decoder" else {}
    return model.run(ids, mask, **both).logits


@pytest.mark.parametrize("kind", CONVERTED)
def test_a_converted_model_gives_the_same_logits_bit_for_bit(tmp_path, kind):
    source = CONVERTED[kind](tmp_path / "source")
    spec = tasks.convert(source, tmp_path / "out")
    for dtype in ("float32", "bfloat16"):
        before, after = open_model(source, dtype=dtype), open_model(tmp_path / "out", dtype=dtype)
        assert np.array_equal(bits(before), bits(after))
        assert after.spec == spec == replace(before.spec, name=spec.name)
        assert before.masking == after.masking


def test_nothing_is_replaced_unasked_and_nothing_is_left_behind(tmp_path):
    bert, gpt2 = write_bert(tmp_path / "bert"), write_gpt2(tmp_path / "gpt2", tokenizer=False)
    out = tmp_path / "out"
    out.mkdir()
    tasks.convert(bert, out)
    with pytest.raises(HgvizError, match="out is not empty"):
        tasks.convert(gpt2, out)
    assert open_model(out).spec.family == "bert"
    tasks.convert(gpt2, out, force=True)
    assert open_model(out).spec.family == "gpt2" and not (out / "tokenizer.json").exists()
    (tmp_path / "link").symlink_to(bert)
    (tmp_path / "file").write_text("")
    tensors = load_file(bert / SAFE)
    for path, words in (
        (tmp_path / "link", "is the model itself"), (tmp_path / "file", "file is a file"),
    ):  # fmt: skip
        with pytest.raises(HgvizError, match=words):
            tasks.convert(bert, path, force=True)
    (bert / "tokenizer.json").write_text("{}")
    with pytest.raises(HgvizError, match=r"tokenizer\.json could not be read"):
        tasks.convert(bert, tmp_path / "new")
    del tensors["classifier.bias"]
    save_file(tensors, bert / SAFE)
    with pytest.raises(HgvizError, match="does not fit"):
        tasks.convert(bert, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def sharded(folder, tensors):
    save_file(tensors, folder / SAFE)
    split(folder, count=2)


def old(folder, tensors):
    """A pytorch_model.bin with old names, and with a tied tensor under both its names."""
    tied = {"lm_head.decoder.weight": tensors["roberta.embeddings.word_embeddings.weight"]}
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    found = {}
    for name, tensor in {**tensors, **tied}.items():
        for new, before in names.items():
            name = name.replace(new, before)
        found[name] = tensor
    torch.save(found, folder / "pytorch_model.bin")


FILES = {
    "old names": ("roberta", "RobertaForMaskedLM", old, {"vocab_size": 300}),
    "tied": ("t5", "T5ForConditionalGeneration", sharded, {"tie_word_embeddings": True}),
}


@pytest.mark.parametrize("case", FILES)
def test_a_model_of_transformers_becomes_one_folder_that_transformers_opens(tmp_path, case):
    kind, name, files, changes = FILES[case]
    saved, source, out = (tmp_path / one for one in ("saved", "source", "out"))
    tensors = load_file(write(saved, kind, name, **changes) / SAFE)
    (source / "1_Pooling").mkdir(parents=True)
    beside = {"optimizer.bin": b"", "README.md": b"words", "1_Pooling/config.json": b"{}"}
    for file, data in {**{one.name: one.read_bytes() for one in saved.glob("*.json")},
                       **beside}.items():  # fmt: skip
        (source / file).write_bytes(data)
    files(source, tensors)
    spec = tasks.convert(source, out)
    stored = load_file(out / SAFE)
    assert stored.keys() == tensors.keys()  # the names that save_pretrained gives
    for key, tensor in tensors.items():
        assert stored[key].dtype == tensor.dtype and torch.equal(stored[key], tensor)
    names = {str(one.relative_to(source)) for one in source.rglob("*")}
    kept = {one for one in names if not one.endswith((".bin", ".safetensors", ".index.json"))}
    assert {str(one.relative_to(out)) for one in out.rglob("*")} == {*kept, SAFE}
    for dtype in ("float32", "bfloat16"):
        before, after = open_model(source, dtype=dtype), open_model(out, dtype=dtype)
        assert np.array_equal(bits(before), bits(after))
        assert after.spec == spec and after.spec.layers == before.spec.layers
    made, logits = getattr(zoo.library(), name), []
    ids = torch.arange(3, 12)[None]
    both = {"decoder_input_ids": ids[:, :4]} if spec.two_texts else {}
    for folder in (source, out):
        net, told = made.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
        assert not told["missing_keys"]
        with torch.inference_mode():
            logits.append(net.eval()(ids, **both).logits)
    assert not told["unexpected_keys"] and torch.equal(*logits)


# --- folders of save_pretrained -------------------------------------------------------------------

IDS = np.array([2, 5, 6, 7, 3])


def weights(folder):
    return load_file(folder / SAFE)


def replaced(folder, change, name=SAFE):
    """The same folder with weights that are changed, in a file of that name."""
    held = change(weights(folder))
    (folder / SAFE).unlink()
    (save_file if name.endswith(".safetensors") else torch.save)(held, folder / name)
    return folder


def logits_of(path):
    logits = open_model(path, dtype="float64").run(IDS).logits
    assert np.abs(logits).max() > 0.1
    return logits


def same(path, expected):
    return scaled_error(logits_of(path), expected) < 1e-6


def test_files_of_every_kind_hold_the_same_model(tmp_path):
    plain = write_bert(tmp_path / "whole")
    expected = logits_of(plain)

    def copied(name):
        return Path(shutil.copytree(plain, tmp_path / name))

    def wrapped(held):
        return {f"module.{name}": one for name, one in held.items()}

    assert same(write_bert(tmp_path / "bare", prefix=""), expected)
    assert same(replaced(copied("bin"), dict, "pytorch_model.bin"), expected)
    assert same(replaced(copied("wrapped"), wrapped), expected)
    for name, ending in (("model", ".safetensors"), ("pytorch_model", ".bin")):
        index = split(copied(name), name, ending)
        shard = next(one for one in index.parent.iterdir() if "-of-" in one.name)
        for path in (index.parent, index, shard):
            assert recognises(path)
        assert same(index.parent if name == "model" else shard, expected)


def test_a_repeated_embedding_is_tied_and_another_matrix_is_not(tmp_path):
    plain, head, inner = write_gpt2(tmp_path / "plain"), "lm_head.weight", "transformer.wte.weight"
    expected, parameters = logits_of(plain), open_model(plain).spec.parameters

    def changed(name, change):
        return replaced(Path(shutil.copytree(plain, tmp_path / name)), change)

    assert same(changed("repeated", lambda t: {**t, head: t[inner].clone()}), expected)
    other = changed("other", lambda t: {**t, head: t[inner] + 1})
    assert not np.allclose(logits_of(other), expected)
    assert open_model(other).spec.parameters > parameters
    untied = configured(changed("untied", dict), tie_word_embeddings=False)
    assert "missing tensor lm_head" in refusal(untied).what


@pytest.mark.parametrize(
    ("pruned", "left"), [({0: [1], 1: [0, 2]}, [(0, 2), (1,)]), ({0: [0, 1, 2]}, [(), (0, 1, 2)])]
)
def test_pruned_heads_are_gone_and_the_others_keep_their_numbers(tmp_path, pruned, left):
    """As transformers before 5 wrote them: the rows of their q, k, v and the columns of their o."""
    net = zoo.make_theirs(*zoo.CASES["gpt2"])
    net.save_pretrained(tmp_path)
    held, state = weights(tmp_path), net.state_dict()
    for layer, heads in pruned.items():
        kept = [i for i in range(24) if i // 8 not in heads]
        own = f"transformer.h.{layer}.attn"
        thirds = [third * 24 + i for third in range(3) for i in kept]
        held[f"{own}.c_attn.weight"] = held[f"{own}.c_attn.weight"][:, thirds]
        held[f"{own}.c_attn.bias"] = held[f"{own}.c_attn.bias"][thirds]
        held[f"{own}.c_proj.weight"] = held[f"{own}.c_proj.weight"][kept]
        state[f"{own}.c_proj.weight"][[i for i in range(24) if i // 8 in heads]] = 0
    save_file({key: one.contiguous() for key, one in held.items()}, tmp_path / SAFE)
    configured(tmp_path, pruned_heads={str(layer): heads for layer, heads in pruned.items()})
    model = open_model(tmp_path, dtype="float64")
    assert [layer.heads for layer in model.spec.layers] == left
    assert scaled_error(model.run(IDS).logits, zoo.run_theirs(net, IDS[None])[0]) < 1e-6


REFUSED = [  # kind, changes of config.json, what is said
    *(("bert", {"pruned_heads": x}, "pruned_heads") for x in ({"5": [0]}, {"0": 1})),
    ("bert", {"pruned_heads": {"0": [1]}}, "0.attention.self has 3 heads"),
    ("bert", {"model_type": "roberta"}, "BertForSequenceClassification is of type bert"),
    ("bert", {"hidden_act": "geluu"}, "is 'geluu'; transformers says: 'geluu'. Correct hidden_act"),
    ("bert", {"num_attention_heads": "3"}, "'num_attention_heads' expected int"),
    ("bert", {"pad_token_id": 10**6}, "is 1000000; transformers says: Padding_idx must"),
    ("bert", {"hidden_size": 25}, "(25) is not a multiple of the number of attention heads (3)"),
    # without a class, that of all which fits best is looked for
    ("bert", {"architectures": None, "hidden_size": 25}, "is not a multiple of the number of"),
    ("bert", {"num_hidden_layers": 10**9}, "num_hidden_layers is 1,000,000,000"),
    ("llama", {"max_position_embeddings": 10**9}, "max_position_embeddings is 1,000,000,000"),
    ("bert", {"vocab_size": 2**40}, "43 x 24, and config.json says 1099511627776 x 24"),
    ("bert", {"add_cross_attention": True}, "should be used as a decoder model"),
    ("bert", {"id2label": {"0": "a", "1": "b", "2": "c"}}, "classifier.bias is 2, and config"),
    ("bert", {"auto_map": {"AutoModel": "code.Model"}}, "needs custom code"),
    ("bert", {"model_type": "bret"}, "Did you mean 'bert'?"),
    ("bert", {"model_type": "nothing like it"}, "does not support"),
    ("gpt2", {"n_positions": 65}, "wpe.weight is 64 x 24, and config.json says 65 x 24"),
    ("funnel", {"pooling_type": "min"}, "pooling_type"),
]  # fmt: skip


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    home = tmp_path_factory.mktemp("folders")
    zoo.write(home / "llama", "llama", "LlamaForCausalLM")
    zoo.write(home / "funnel", "funnel", "FunnelForMaskedLM")
    write_bert(home / "bert")
    write_gpt2(home / "gpt2")
    return home


def test_a_config_that_does_not_fit_is_one_clear_line(untouched, tmp_path):
    folder = tmp_path / "theirs"
    for kind, changes, words in REFUSED:
        shutil.copytree(untouched / kind, folder)
        error = refusal(configured(folder, **changes))
        assert words in str(error) + error.details and "download" not in error.do
        assert len(error.do) < 300
        shutil.rmtree(folder)


def test_roberta_under_the_name_of_bert_is_refused(tmp_path):
    """Its tensors have BERT's names, and its positions begin at 2: it must not open, and wrong."""
    net_class = zoo.library().RobertaModel
    config = net_class.config_class(
        vocab_size=43, hidden_size=24, num_hidden_layers=1, num_attention_heads=3,
        intermediate_size=12, max_position_embeddings=40, type_vocab_size=1,
    )  # fmt: skip
    net_class(config).save_pretrained(tmp_path)
    configured(tmp_path, model_type="bert", architectures=["BertModel"])
    error = refusal(tmp_path)
    assert "config.json that came with" in error.do and "orrect" not in error.do
    assert "pad_token_id 1 and type_vocab_size 1 are RoBERTa's" in error.what
    configured(tmp_path, max_position_embeddings=514, type_vocab_size=2)
    assert "max_position_embeddings 514 and pad_token_id 1" in refusal(tmp_path).what
    folder = configured(write_bert(tmp_path / "bert"), pad_token_id=1)
    assert open_model(folder).spec.family == "bert"


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(untouched, monkeypatch):
    monkeypatch.setattr(devices, "free_memory", lambda: 50_000)
    monkeypatch.setattr(tensors, "read_tensors", lambda *_: pytest.fail("it was read"))
    assert "does not fit in memory: it needs" in refusal(untouched / "llama").what


SHARDS = (
    "../theirs/other.safetensors", "/etc/passwd", "a\\b.safetensors", "..", "x.pkl", "a\0.bin", 3,
)  # fmt: skip
INDICES = (b"{}", b"[]", b"", b'{"weight_map": []}', b'{"weight_map": {}}')


def test_a_shard_is_never_a_path_and_an_index_that_is_none_is_refused(tmp_path):
    index = split(write_gpt2(tmp_path / "theirs"))
    data = json.loads(index.read_text())
    for shard in SHARDS:
        data["weight_map"][next(iter(data["weight_map"]))] = shard
        index.write_text(json.dumps(data))
        assert "which is not a weights file in the same folder" in str(refusal(index.parent))
    for content in INDICES:
        index.write_bytes(content)
        assert "model.safetensors.index.json is n" in str(refusal(index.parent))
