"""Checkpoints open from every place, say what is wrong in one error, run nothing, and become one
folder that gives the same logits bit for bit."""

import json
import os
import pickle
import socket
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import huggingface_hub.file_download  # noqa: F401  (before a test takes sockets away)
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.files import is_model_name, path_exists
from hgviz.models import checkpoints, open_model
from hgviz.models.checkpoints import Reader, read, recognises, save
from hgviz.models.pruning import write_pruned
from hgviz.models.tensors import fit_checkpoint
from tests.models import package, reference
from tests.models.building import (
    make_config,
    make_hourglass,
    write_checkpoint,
    write_transformer,
)
from tests.models.folders import write_bert, write_gpt2
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
    return package.build(**ARGUMENTS)


@pytest.fixture
def theirs(tmp_path, lucidrains):
    return package.write(tmp_path / "theirs", lucidrains, GIVEN)


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


# --- what opens -----------------------------------------------------------------------------------


def test_listing_formats_and_looking_up_names_needs_no_torch():
    code = (
        "import sys, hgviz.models.checkpoints as c, hgviz.files as f; c.recognises('.'); "
        "f.path_exists('a/b'); sys.exit('torch' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=100).returncode == 0


def test_a_folder_opens_from_itself_from_its_files_and_through_links(tmp_path):
    folder = write_checkpoint(tmp_path / "mine")
    (tmp_path / "linked").mkdir()
    for file in folder.iterdir():
        (tmp_path / "linked" / file.name).symlink_to(file)
    digests = set()
    for inner in ("", "config.json", SAFE):
        assert recognises(folder / inner)
        spec = open_model(folder / inner).spec
        assert (spec.name, spec.family) == ("mine", "hourglass")
        digests |= {spec.digest, open_model(tmp_path / "linked" / inner).spec.digest}
    assert len(digests) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_what_is_saved_is_read_back(tmp_path, dtype):
    config = make_config(activations=["tanh", "ymish"], positions="rotary", causal=False)
    tensors = {name: one.to(dtype) for name, one in make_hourglass(config).state_dict().items()}
    save(tmp_path, config, tensors)
    checkpoint = read(tmp_path)
    assert checkpoint.config == config
    assert checkpoint.tensors.keys() == tensors.keys()
    assert all(torch.equal(checkpoint.tensors[name], tensors[name]) for name in tensors)
    assert sorted(os.listdir(tmp_path)) == ["config.json", SAFE]
    assert {one.dtype for one in open_model(tmp_path).module.parameters()} == {torch.float32}
    (tmp_path / "file").write_text("")
    with pytest.raises(HgvizError, match="could not be written"):
        save(tmp_path / "file", config, tensors)


def test_what_a_config_leaves_out_has_a_default(tmp_path):
    folder = write_checkpoint(tmp_path / "a", hierarchy="2@1 1@2 1@1", causal=True)
    digest = open_model(folder).spec.digest
    keys = ("model_type", "hierarchy", "vocab_size", "d_model", "n_heads", "d_ff")
    data = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({name: data[name] for name in keys}))
    assert open_model(folder).spec.digest == digest
    split = configured(folder, hierarchy="1@2", vanilla_layers=[2, 1])
    assert open_model(split).spec.digest == digest
    folder = write_checkpoint(tmp_path / "b", positions="learned", max_positions=16)
    assert open_model(configured(folder, max_positions=None)).spec.max_positions == 16


def test_a_reader_from_outside_is_asked_for_its_files(tmp_path, monkeypatch):
    def read_raw(path, modality):
        config = make_config()
        return fit_checkpoint(config, make_hourglass(config).state_dict(), path)

    row = Reader("raw", "Raw (.raw)", (".raw",), lambda path: path.suffix == ".raw", read_raw)
    monkeypatch.setattr(checkpoints, "READERS", (*checkpoints.READERS, row))
    (tmp_path / "one.raw").write_bytes(b"")
    assert recognises(tmp_path / "one.raw") and ".raw" in checkpoints.file_suffixes()
    assert tasks.kind_of(tmp_path / "one.raw") == "checkpoint"
    assert open_model(tmp_path / "one.raw").spec.family == "hourglass"
    assert "is no checkpoint" in str(refusal(write_bytes(tmp_path / "two.txt")))


# --- what does not fit ----------------------------------------------------------------------------


def test_missing_left_over_and_unlike_tensors_are_named_in_a_table(tmp_path):
    folder = write_checkpoint(tmp_path / "mine")
    tensors = load_file(folder / SAFE)
    tensors |= {"lm_head.weight": torch.zeros(7, 12), "extra": torch.zeros(3)}
    del tensors["lm_head.bias"]
    save_file(tensors, folder / SAFE)
    error = refusal(folder)
    assert str(error) == (
        "mine/model.safetensors does not fit its config.json: lm_head.weight is 7 × 12, and "
        "config.json says 23 × 12. Correct config.json, or choose another file."
    )
    assert [line.split() for line in error.details.splitlines()] == [
        ["tensor", "expected", "found"],
        ["lm_head.weight", "23", "×", "12", "7", "×", "12"],
        ["lm_head.bias", "23", "none"],
        ["extra", "none", "3"],
    ]


def test_more_layers_than_tensors_are_refused_before_they_are_built(tmp_path, monkeypatch):
    folder, theirs = write_checkpoint(tmp_path / "a"), write_gpt2(tmp_path / "b", n_layer=1)
    monkeypatch.setattr("hgviz.models.tensors.shapes_of", None)
    configured(folder, hierarchy="400@1 1@2 400@1")
    assert "tensors, and config.json says 803 layers" in str(refusal(folder))
    monkeypatch.setattr("hgviz.models.pretrained.outline", None)
    assert "16 tensors, and n_layer is 1,000" in str(refusal(configured(theirs, n_layer=1000)))


CONFIGURATIONS = [
    ({"n_heads": 5, "d_head": 0}, "5 heads do not divide the width 12"),
    ({"hierarchy": "1000000@1"}, "all have at most 1,000"),
    ({"hierarchy": "1@1 1@2"}, "the number of stages is even"),
    ({"hierarchy": "1@1 " * 9_999}, "is not 2, 3, ... times"),
    ({"hierarchy": 3}, "hierarchy: Expected str"),
    ({"d_model": 1e9}, "d_model: Expected int"),
    ({"d_model": True}, "d_model: Expected int, got bool"),
    ({"vocab_size": -1}, "vocab_size: Expected int >= 1"),
    ({"form": "dynamic"}, "form: Invalid enum value 'dynamic'"),
    ({"form": "b" * 10**5}, "form: Invalid enum value 'bbb"),
    ({"activations": "relu"}, "there is no activation 'relu'"),
    ({"activations": ["tanh", "tanh", "tanh"]}, "a number of names that divides the 2 heads"),
    ({"activations": [["tanh"]]}, "one list for each of the 5 layers"),
    ({"positions": "learned"}, "learned positions need max_positions"),
    ({"masking": "compat"}, "always masked strictly"),
    ({"colour": 1}, "hgviz knows no colour"),
    ({"a\x1b[2J\u202e": 1}, "hgviz knows no a\ufffd[2J\ufffd"),
    ({"d_model": None}, "it lacks d_model"),
    ({"family": "b" * 100}, "family: it is 'bbb"),
    ({"model_type": "bert"}, "none of its tensors is one of BertModel"),
    ({"model_type": None}, "its model_type is not there, and hgviz runs hgviz, hourglass"),
    ({"model_type": ["hgviz"]}, "is of a model that hgviz cannot run"),
    *((data, "is not a JSON object") for data in (
        b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b'{"model_type": NaN}')),
    (b" " * (2**20 + 1), "is too large"),
]  # fmt: skip


def entry(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


HEADERS = [  # of a .safetensors file with 64 bytes of data, or only their length
    ({"a": entry([0, 2**62], 0, 0)}, "a has the shape"),
    ({"a": entry([2**20, 2**20, 2**20, 2**20], 0, 64)}, "are stored"),
    ({"a": entry([2**62], 0, 2**64)}, "a has the shape"),
    ({"a": entry([-4], 0, 64)}, "a has the shape"),
    ({"a": entry([1] * 5000, 0, 4)}, "a has the shape"),
    ({"a": entry([16], 16, 80)}, "a ends after 80 bytes of 64"),
    ({"a": entry([16], 64, 0)}, "are stored"),
    ({"a": entry([16], 0, 64), "b": entry([16], 0, 64)}, "its tensors overlap"),
    ({"a": entry([8], 0, 64, "I64")}, "a is I64"),
    ({"a": entry([16], 0, 64, "X" * 10_000)}, "holds something else than weights"),
    ({"a": entry([16], 0, 64, "\n\0\u202e")}, "a is \ufffd\ufffd\ufffd, and"),
    ({"../../etc/passwd": entry([16], 0, 64)}, "does not fit"),
    ({"a\nb": entry([16], 0, 64)}, "a tensor named"),
    ({"a" * 1000: entry([16], 0, 64)}, "a tensor named"),
    ({"\u202ea": entry([16], 0, 64)}, "a tensor named"),
    ({"a": {"dtype": "F32", "shape": [float("1e9")], "data_offsets": [0, 64]}}, "its header"),
    ({"a": {"dtype": "F32"}}, "its header is wrong"),
    ({"a": None}, "its header is wrong"),
    (b'{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 4]}}', "its header is wrong"),
    (b"[" * 50_000, "its header is wrong"),
    (b"\xff" * 20, "its header is wrong"),
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
    ([ZEROS], "it holds list"),
    (ZEROS, "it holds Tensor"),
    ({}, "it holds dict"),
    ({"a": 3}, "it holds a, which is no tensor"),
    ({"model": {"a": ZEROS}}, "it holds model, which is no tensor"),
    ({3: ZEROS}, "keys that are no names"),
    ({"a": torch.zeros(3, dtype=torch.int64)}, "a is int64"),
    ({"a": torch.zeros(3, dtype=torch.complex64)}, "a is complex64"),
    ({"a": torch.eye(3).to_sparse()}, "a is float32"),
    ({"a": torch.zeros(3, device="meta")}, "a needs"),
    ({"a": torch.zeros(0, 2**40)}, "a needs"),
    ({"a": torch.zeros(1).expand(2**40)}, "a needs 4,398,046,511,104 bytes and 4 are stored"),
    ({f"a{i}": one for one in [torch.zeros(10_000)] for i in range(1000)},
     "its tensors are larger than the file"),
]  # fmt: skip


def write_bytes(path, data=b"a"):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("content, words", CONFIGURATIONS)
def test_a_config_that_cannot_be_is_refused_in_one_line(tmp_path, content, words):
    folder = write_checkpoint(tmp_path / "mine")
    if isinstance(content, bytes):
        write_bytes(folder / "config.json", content)
    else:
        configured(folder, **content)
    assert words in str(refusal(folder))


@pytest.mark.parametrize("header, words", HEADERS)
def test_a_hostile_safetensors_header_is_refused(tmp_path, header, words):
    folder, length = write_checkpoint(tmp_path / "x"), None
    if isinstance(header, int):
        header, length = {}, header
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = struct.pack("<Q", len(header) if length is None else length)
    write_bytes(folder / SAFE, start + header + b"\0" * 64)
    assert words in str(refusal(folder))


@pytest.mark.parametrize("content, words", PICKLES)
def test_what_is_no_state_dict_is_refused(theirs, content, words):
    torch.save(content, theirs / "model.pt")
    assert (theirs / "model.pt").stat().st_size < 10**6
    assert words in str(refusal(theirs))


def test_no_code_in_a_pickle_is_run_and_other_files_are_refused_by_name(tmp_path, theirs):
    file, evil = theirs / "model.pt", Evil(tmp_path / "gotcha")
    for content in (evil, {"token_emb.weight": evil}):
        torch.save(content, file)
        assert "only tensors are loaded" in str(refusal(theirs))
        write_bytes(file, pickle.dumps(content))
        assert "could not be read" in str(refusal(theirs))
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


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    folder = write_checkpoint(tmp_path / "mine")
    tensors = load_file(folder / SAFE)
    for value in (float("nan"), float("inf")):
        tensors["lm_head.bias"][4] = value
        save_file(tensors, folder / SAFE)
        start = "mine/model.safetensors holds weights that are no numbers: lm_head.bias has 1 NaN"
        assert str(refusal(folder)).startswith(start)


def test_what_is_not_there_is_said(tmp_path):
    assert "there is no such file" in str(refusal(tmp_path / "nowhere"))
    assert "config.json is missing" in str(refusal(tmp_path))
    assert "is no checkpoint" in str(refusal(write_bytes(tmp_path / "a.txt")))
    assert not recognises(tmp_path / "a.txt") and not recognises(tmp_path / "nowhere")
    folder = write_checkpoint(tmp_path / "mine")
    (folder / SAFE).rename(folder / "a.pt")
    (folder / "b.pt").write_bytes(b"")
    assert "holds 2 weights files: such as a.pt and b.pt" in str(refusal(folder))
    (folder / "a.pt").unlink()
    (folder / "b.pt").rename(folder / "b.gguf")
    assert "it holds b.gguf, which hgviz does not read" in str(refusal(folder))
    (folder / "b.gguf").unlink()
    assert "mine holds no weights" in str(refusal(folder))
    os.mkfifo(folder / SAFE)
    assert "it is no file" in str(refusal(folder))
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert "config.json is missing" in str(refusal(folder))


@pytest.mark.parametrize("name", [SAFE, "model.pt"])
def test_files_that_are_cut_short_or_have_a_flipped_byte_are_refused_or_harmless(
    tmp_path, lucidrains, name
):
    path = package.write(tmp_path / "theirs", lucidrains, GIVEN, name=name) / name
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
    for name in ("gpt2", "a.b_c/d-e.f_1"):
        store = cached(hub, name, write_gpt2)
        spec = open_model(name).spec
        assert (spec.name, spec.family) == (name, "gpt2")
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
    assert str(refusal("a/b")).startswith("a/b holds no weights")
    write_gpt2(tmp_path / "a" / "b")  # a folder of that name comes first
    assert open_model("a/b").spec.family == "gpt2"
    # one that moved into an organisation is found by its old name
    cached(hub, "google-bert/bert-base-uncased")
    assert open_model("bert-base-uncased").spec.name == "google-bert/bert-base-uncased"
    cached(hub, "someone/bert-base-uncased")
    assert not path_exists("bert-base-uncased")
    cached(hub, "bert-base-uncased")
    assert open_model("bert-base-uncased").spec.name == "bert-base-uncased"
    for find in (open_model, tasks.kind_of, tasks.info):
        with pytest.raises(HgvizError) as error:
            find("org/name")
        assert str(error.value) == (
            "there is no org/name: no file or folder has that name, and the Hugging Face cache "
            f"({hub}) holds no config.json of such a model. Check the name, or fetch the model "
            "with `hf download org/name`: hgviz downloads nothing."
        )


def test_refs_and_names_are_never_paths(hub, tmp_path):
    store = cached(hub, "a/b")
    write_bert(hub / "x")
    for ref in ("../../../x", "..", "", "/etc", "a/b", "x" * 9999, "f" * 40):
        (store / "refs" / "main").write_text(ref)
        assert "holds no config.json of such a model" in str(refusal("a/b"))
    for name in (
        "../a", "a/../b", "/a/b", "a/b/c", "./..", "a--b", "-a", ".a", "a\\b", "~", "", "a" * 200,
        "a\nb", "a b", "a/..b", "capture.h5",
    ):  # fmt: skip
        assert not is_model_name(name)
        assert path_exists(name) == (tmp_path / name).exists()


# --- converted to one folder ----------------------------------------------------------------------


KINDS = {
    "hourglass": write_checkpoint,
    "bfloat16": lambda at: write_checkpoint(at, dtype=torch.bfloat16),
    "rotary": lambda at: write_checkpoint(at, positions="rotary", activations=["tanh", "ymish"]),
    "package": lambda at: package.write(at, package.build(**ARGUMENTS), GIVEN),
    "bert": write_bert,
    "masked": lambda at: write_bert(at, architectures=["BertForMaskedLM"]),
    "untied": lambda at: write_transformer(at, family="bert", tied=False, n_heads=3),
    "yubert": lambda at: write_transformer(
        at, family="yubert", labels=["a", "b"], slots=4, max_positions=20, vocab_size=23
    ),
    "encoder-decoder": write_transformer,
}


def bits(model):
    """Logits of a batch with padding."""
    ids = np.arange(16).reshape(2, 8) % 20
    mask = np.arange(8) < np.array([[8], [5]])
    both = {"decoder_ids": ids[:, :5]} if model.spec.form == "encoder-decoder" else {}
    return model.run(ids, mask, **both).logits


@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_model_gives_the_same_logits_bit_for_bit(tmp_path, kind):
    source = KINDS[kind](tmp_path / "source")
    spec = tasks.convert(source, tmp_path / "out")
    for dtype in ("float32", "float64", "bfloat16"):
        before, after = open_model(source, dtype=dtype), open_model(tmp_path / "out", dtype=dtype)
        assert np.array_equal(bits(before), bits(after))
        assert after.spec == spec == replace(before.spec, name=spec.name)
        assert before.masking == after.masking


def test_nothing_is_replaced_unasked_and_nothing_is_left_behind(tmp_path):
    bert, gpt2 = write_bert(tmp_path / "bert"), write_gpt2(tmp_path / "gpt2", tokenizer=False)
    out = tmp_path / "out"
    out.mkdir()
    tasks.convert(bert, out)
    with pytest.raises(HgvizError, match="out is there and not empty"):
        tasks.convert(gpt2, out)
    assert open_model(out).spec.family == "bert"
    tasks.convert(gpt2, out, force=True)
    assert open_model(out).spec.family == "gpt2" and not (out / "tokenizer.json").exists()
    (tmp_path / "link").symlink_to(bert)
    (tmp_path / "file").write_text("")
    tensors = load_file(bert / SAFE)
    for path, words in (
        (bert, "is the model itself"), (tmp_path / "link", "is the model itself"),
        (tmp_path / "file", "file is no folder"),
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


def as_it_is(folder, tensors):
    save_file(tensors, folder / SAFE)


def sharded(folder, tensors):
    names = [*tensors]
    places = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
    for shard in {*places.values()}:
        save_file({n: tensors[n] for n in names if places[n] == shard}, folder / shard)
    (folder / f"{SAFE}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def without_prefix(folder, tensors):
    as_it_is(folder, {name.removeprefix("gpt_neox."): one for name, one in tensors.items()})


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


def mixed(folder, tensors):
    as_it_is(folder, {name: one.half() if "norm" in name else one.bfloat16()
                      for name, one in tensors.items()})  # fmt: skip


FILES = {
    "distilbert": ("distilbert", "DistilBertForSequenceClassification", as_it_is, {}),
    "roberta": ("roberta", "RobertaForMaskedLM", old, {"vocab_size": 300}),
    "precisions": ("llama", "LlamaForCausalLM", mixed, {}),
    "prefix": ("gpt_neox", "GPTNeoXForCausalLM", without_prefix, {}),
    "experts": ("mixtral", "MixtralForCausalLM", sharded, {}),
    "tied": ("t5", "T5ForConditionalGeneration", sharded, {"tie_word_embeddings": True}),
    "sinusoids": ("marian", "MarianMTModel", sharded, {}),
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
    tensors = load_file(source / SAFE) if files is mixed else tensors
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
    made, logits = getattr(reference.library(), name), []
    ids = torch.arange(3, 12)[None]
    both = {"decoder_input_ids": ids[:, :4]} if "decoder" in spec.form and spec.two_texts else {}
    for folder in (source, out):
        net, told = made.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
        assert not told["missing_keys"]
        with torch.inference_mode():
            logits.append(net.eval()(ids, **both).logits)
    assert not told["unexpected_keys"] and torch.equal(*logits)


def test_a_pruned_model_is_converted_where_transformers_opens_it(tmp_path):
    whole = read(write(tmp_path / "source", "llama", "LlamaForCausalLM"))
    even = frozenset(HeadId(layer, head) for layer in (0, 1) for head in (0, 1))
    pruned, out = write_pruned(whole, even, "smaller", tmp_path / "even").parent, tmp_path / "out"
    tasks.convert(pruned, out)
    assert np.array_equal(bits(open_model(pruned)), bits(open_model(out)))
    pruned = write_pruned(whole, frozenset({HeadId(0, 1)}), "smaller", tmp_path / "uneven").parent
    with pytest.raises(HgvizError, match="opens in hgviz alone, since some") as error:
        tasks.convert(pruned, tmp_path / "new")
    assert "\n" not in str(error.value) and not (tmp_path / "new").exists()


def test_vocabulary_files_become_a_tokenizer_json_or_are_copied(tmp_path):
    from tests.models.test_vocabularies import merged, written

    auto, text = reference.library().AutoTokenizer, "The cat, 나는 <mask> [MASK]é"
    special = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
    for kind, name, files, more in (
        ("distilbert", "DistilBertForMaskedLM", written, {"do_lower_case": False}),
        ("roberta", "RobertaForMaskedLM", merged,
         {"more": special, "tokenizer_class": "RobertaTokenizer"}),
    ):  # fmt: skip
        out = tmp_path / f"{kind}-out"
        source = files(write(tmp_path / kind, kind, name, vocab_size=300), **more)
        tasks.convert(source, out)
        ids = auto.from_pretrained(source)(text)["input_ids"]
        assert auto.from_pretrained(out)(text)["input_ids"] == ids
        for one in source.glob("*.txt"):
            (out / one.name).unlink()
        after, before = open_model(out).tokenize(text), open_model(source).tokenize(text)
        assert after.ids.tolist() == before.ids.tolist() == ids
        assert np.array_equal(after.spans, before.spans)
    source = write(tmp_path / "odd", "distilbert", "DistilBertForMaskedLM")
    written(source, tokenizer_class="BertJapaneseTokenizer")
    tasks.convert(source, tmp_path / "odd-out")
    vocabulary = (tmp_path / "odd-out" / "vocab.txt").read_bytes()
    assert vocabulary == (source / "vocab.txt").read_bytes()
    assert not (tmp_path / "odd-out" / "tokenizer.json").exists()
