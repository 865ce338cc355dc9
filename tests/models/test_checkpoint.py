"""Checkpoints open from every place, say what is wrong in one error, and do no harm."""

import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.families import build
from hgviz.models.formats.checkpoint import outline, save, shapes_of
from hgviz.models.formats.own import parse_config
from hgviz.models.formats.readers import read, recognises
from tests.models import package
from tests.models.building import PLAIN, make_config, make_hourglass, write_checkpoint
from tests.models.folders import write_gpt2

GIVEN = {
    "num_tokens": 23, "dim": 16, "max_seq_len": 32, "depth": [1, [1, 1, 1], 1],
    "shorten_factor": [2, 2], "heads": 2, "dim_head": 8, "attn_resampling": True,
    "updown_sample_type": "linear", "causal": True,
}  # fmt: skip
ARGUMENTS = {**GIVEN, "depth": (1, (1, 1, 1), 1), "shorten_factor": (2, 2)}


@pytest.fixture(scope="module")
def reference():
    return package.build(**ARGUMENTS)


def refusal(path, **options):
    """What opening says; anything but an HgvizError fails the test."""
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


def test_listing_the_readers_needs_no_torch():
    code = "import sys, hgviz.models.formats.readers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


@pytest.mark.parametrize("inner", ["", "config.json", "model.safetensors"])
def test_a_folder_opens_from_itself_and_from_its_files(tmp_path, inner):
    folder = write_checkpoint(tmp_path / "mine")
    assert recognises(folder / inner)
    model = open_model(folder / inner)
    assert model.spec.name == "mine"
    assert model.spec.family == "hourglass"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_what_is_saved_is_read_back(tmp_path, dtype):
    config = make_config(activations=["tanh", "ymish"], positions="rotary", causal=False)
    tensors = {name: one.to(dtype) for name, one in make_hourglass(config).state_dict().items()}
    save(tmp_path, config, tensors)
    found = read(tmp_path)
    assert found.config == config
    assert found.tensors.keys() == tensors.keys()
    assert all(torch.equal(found.tensors[name], tensors[name]) for name in tensors)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]


def test_bfloat16_weights_are_upcast_when_loaded(tmp_path):
    model = open_model(write_checkpoint(tmp_path, dtype=torch.bfloat16))
    assert {one.dtype for one in model.module.parameters()} == {torch.float32}


def test_what_a_config_leaves_out_has_a_default(tmp_path):
    folder = write_checkpoint(tmp_path)
    kept = ("model_type", "hierarchy", "vocab_size", "d_model", "n_heads", "d_ff")
    whole = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({name: whole[name] for name in kept}))
    assert open_model(folder).spec.digest == open_model(configured(folder, causal=True)).spec.digest


def test_vanilla_layers_complete_a_hierarchy(tmp_path):
    folder = write_checkpoint(tmp_path, hierarchy="2@1 1@2 1@1")
    split = configured(folder, hierarchy="1@2", vanilla_layers=[2, 1])
    assert [layer.name for layer in open_model(split).spec.layers] == [
        "pre.0.0", "pre.0.1", "down.0", "middle.0", "up.0", "post.0.0",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["model.pt", "weights.pt", "model.safetensors"])
@pytest.mark.parametrize("prefix", ["", "net.", "module.", "module.net."])
def test_state_dicts_open_whatever_wrapped_them(tmp_path, reference, name, prefix):
    folder = package.write(tmp_path / "theirs", reference, GIVEN, prefix, name)
    for path in (folder, folder / name):
        ours = open_model(path, dtype="float64").run(np.arange(11)).logits
        assert np.abs(ours - package.logits(reference, np.arange(11)[None])[0]).max() < 1e-9


def test_the_digest_is_of_what_was_read_not_of_the_file(tmp_path, reference):
    digests = {
        open_model(package.write(tmp_path / str(i), reference, GIVEN, prefix, name)).spec.digest
        for i, (prefix, name) in enumerate([("", "a.pt"), ("net.", "b.safetensors")])
    }
    other = package.write(tmp_path / "other", package.build(seed=1, **ARGUMENTS), GIVEN)
    assert len(digests) == 1
    assert open_model(other).spec.digest not in digests


def test_what_weights_show_need_not_be_said(tmp_path, reference):
    silent = {name: GIVEN[name] for name in ("heads", "causal")}
    folder = package.write(tmp_path / "silent", reference, silent)
    full = package.write(tmp_path / "full", reference, GIVEN)
    assert read(folder).config == read(full).config
    swapped = package.write(tmp_path / "swapped", reference, {"dim_head": 8, "causal": True})
    assert read(swapped).config == read(full).config


@pytest.mark.parametrize(
    "arguments",
    [
        {"depth": 2},
        {"depth": [0, 1, 2], "shorten_factor": 2},
        {"depth": [1, 2, 0], "shorten_factor": 3, "attn_resampling": False},
        {"depth": [1, [0, [1, 1, 2], 1], 2], "shorten_factor": [2, 3, 2]},
    ],
)
def test_depths_are_counted_from_the_weights(tmp_path, arguments):
    given = {**arguments, "num_tokens": 23, "dim": 16, "max_seq_len": 32, "heads": 2, "dim_head": 8}
    model = package.build(**{name: _tuples(one) for name, one in given.items()})
    factor = {name: one for name, one in arguments.items() if name == "shorten_factor"}
    folder = package.write(tmp_path / "one", model, {"heads": 2, "causal": True, **factor})
    ours = open_model(folder, dtype="float64").run(np.arange(13)).logits
    assert np.abs(ours - package.logits(model, np.arange(13)[None])[0]).max() < 1e-9


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def test_links_to_files_are_followed(tmp_path):
    folder = write_checkpoint(tmp_path / "real")
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in ("config.json", "model.safetensors"):
        (linked / name).symlink_to(folder / name)
    (tmp_path / "whole").symlink_to(folder)
    digests = {open_model(path).spec.digest for path in (folder, linked, tmp_path / "whole")}
    assert len(digests) == 1


# --- what does not fit ----------------------------------------------------------------------------


def test_missing_left_over_and_unlike_tensors_are_named_in_a_table(tmp_path):
    folder = write_checkpoint(tmp_path / "mine")
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = torch.zeros(7, 12)
    tensors["extra"] = torch.zeros(3)
    del tensors["lm_head.bias"]
    save_file(tensors, folder / "model.safetensors")
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


SLOTS = {"form": "encoder", "goal": "states", "max_positions": 9, "slots": 4}


@pytest.mark.parametrize(
    "config",
    [
        make_config(positions="learned", max_positions=9),
        parse_config({**PLAIN, "family": "transformer", **SLOTS}),
    ],
    ids=["hourglass", "projected"],
)
def test_the_outline_of_a_model_has_its_shapes_and_draws_no_number(monkeypatch, config):
    shapes = {name: tuple(one.shape) for name, one in build(config).state_dict().items()}
    for drawn in ("normal_", "uniform_"):
        monkeypatch.setattr(torch.Tensor, drawn, None)
    assert shapes_of(config) == shapes
    assert all(one.is_meta for one in outline(config).state_dict().values())


def test_more_layers_than_tensors_are_refused_before_they_are_built(tmp_path, monkeypatch):
    folder = write_checkpoint(tmp_path / "mine")
    theirs = write_gpt2(tmp_path / "theirs", n_layer=1)
    monkeypatch.setattr("hgviz.models.formats.checkpoint.build", None)
    configured(folder, hierarchy="400@1 1@2 400@1")
    assert "tensors, and config.json says 803 layers" in str(refusal(folder))
    monkeypatch.setattr("hgviz.models.formats.transformers._outline", None)
    assert "16 tensors, and n_layer is 1,000" in str(refusal(configured(theirs, n_layer=1000)))


def test_a_wrong_number_in_config_json_is_named_with_the_right_one(tmp_path, reference):
    error = refusal(package.write(tmp_path / "theirs", reference, {**GIVEN, "dim": 20}))
    assert str(error) == (
        "theirs/model.pt does not fit its config.json: config.json says dim 20; "
        'token_emb.weight is 23 × 16. Set "dim" to 16 in config.json, or choose another file.'
    )
    assert error.details.splitlines()[-1].startswith("and ")


def test_what_weights_do_not_show_is_asked_for_by_name(tmp_path, reference):
    missing = {name: one for name, one in GIVEN.items() if name not in ("heads", "dim_head")}
    del missing["causal"]
    error = refusal(package.write(tmp_path / "theirs", reference, missing))
    assert str(error) == (
        "theirs/config.json does not say heads and causal: the weights do not show them. "
        'Add "heads": 8 (or as many as there were), "causal": true or false.'
    )
    naive = package.build(**{**ARGUMENTS, "updown_sample_type": "naive"})
    silent = {"heads": 2, "causal": True}
    error = refusal(package.write(tmp_path / "naive", naive, silent))
    assert "does not say shorten_factor" in str(error)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"heads": 3, "dim_head": None}, "heads 3 does not divide the width of the heads"),
        ({"heads": 0}, "heads: Expected int >= 1"),
        ({"heads": 10**9}, "heads: Expected int <="),
        ({"dim": 10**9}, "dim: Expected int <="),
        ({"depth": [1, [1, 10**9, 1], 1]}, "all have at most 1,000"),
        ({"depth": [1, 2]}, "a depth is a number or (before, inner, after)"),
        ({"depth": "deep"}, "depth: Expected"),
        ({"depth": json.loads("[1," * 40 + "1" + ",1]" * 40)}, "nested more than 16 deep"),
        ({"shorten_factor": [2]}, "shorten_factor [2] is no number >= 2 for each of its 2 levels"),
        ({"shorten_factor": 10**9}, "shortens by more than 65,536"),
        ({"shorten_factor": [2, 3]}, "does not fit"),
        ({"depth": 4}, "gives a shorten_factor to a model that does not shorten"),
        ({"causal": "yes"}, "causal: Expected bool"),
        ({"heds": 3}, "hgviz knows no heds"),
        ({"masking": "loose"}, "masking: Invalid enum value 'loose'"),
        ({"masking": "b" * 10**5}, "masking: Invalid enum value 'bbb"),
        ({"a\x1b[2J\u202e": 1}, "hgviz knows no a\ufffd[2J\ufffd"),
        ({"model_type": "bert"}, "holds the weights of another model"),
        ({"model_type": "roberta"}, "holds the weights of another model"),
        ({"model_type": None}, "is of a model that hgviz cannot run"),
        ({"model_type": ["hgviz"]}, "is of a model that hgviz cannot run"),
    ],
)
def test_a_config_of_the_package_is_checked(tmp_path, reference, changes, words):
    folder = package.write(tmp_path / "theirs", reference, GIVEN)
    assert words in str(refusal(configured(folder, **changes)))


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"n_heads": 5, "d_head": 0}, "5 heads do not divide the width 12"),
        ({"hierarchy": "1000000@1"}, "all have at most 1,000"),
        ({"hierarchy": "1@1 1@2"}, "the number of stages is even"),
        ({"hierarchy": "1@1 " * 9_999}, "is not 2, 3, ... times"),
        ({"hierarchy": 3}, "hierarchy: Expected str"),
        ({"d_model": 1e9}, "d_model: Expected int"),
        ({"d_model": True}, "d_model: Expected int, got bool"),
        ({"vocab_size": -1}, "vocab_size: Expected int >= 1"),
        ({"form": "dynamic"}, "form: Invalid enum value 'dynamic'"),
        ({"activations": "relu"}, "there is no activation 'relu'"),
        ({"activations": ["tanh", "tanh", "tanh"]}, "a number of names that divides the 2 heads"),
        ({"activations": [["tanh"]]}, "one list for each of the 5 layers"),
        ({"positions": "learned"}, "learned positions need max_positions"),
        ({"masking": "compat"}, "always masked strictly"),
        ({"colour": 1}, "hgviz knows no colour"),
        ({"d_model": None}, "it lacks d_model"),
    ],
)
def test_a_config_of_our_own_is_checked(tmp_path, changes, words):
    assert words in str(refusal(configured(write_checkpoint(tmp_path), **changes)))


def test_the_longest_text_is_read_off_the_weights_where_the_config_is_silent(tmp_path):
    folder = write_checkpoint(tmp_path, vocab_size=256, positions="learned", max_positions=16)
    assert open_model(configured(folder, max_positions=None)).spec.max_positions == 16


def test_a_state_dict_of_another_model_is_named(tmp_path, reference):
    folder = package.write(tmp_path / "theirs", reference, GIVEN)
    for state in ({"wte.weight": torch.zeros(3, 3)}, {"token_emb.weight": torch.zeros(3)}):
        torch.save(state, folder / "model.pt")
        assert "these weights are of another model" in str(refusal(folder))
    (folder / "model.pt").unlink()
    save_file({}, folder / "model.safetensors")
    assert "these weights are of another model" in str(refusal(folder))


@pytest.mark.parametrize("name", ["to_q", "to_kv"])
def test_a_number_in_place_of_a_matrix_is_refused(tmp_path, reference, name):
    folder = package.write(tmp_path / "theirs", reference, {"heads": 2, "causal": True})
    state = {
        key: torch.tensor(1.0) if name in key else one
        for key, one in reference.state_dict().items()
    }
    torch.save(state, folder / "model.pt")
    assert "theirs/" in str(refusal(folder))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(tmp_path, value):
    folder = write_checkpoint(tmp_path / "mine")
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.bias"][4] = value
    save_file(tensors, folder / "model.safetensors")
    assert str(refusal(folder)).startswith(
        "mine/model.safetensors holds weights that are no numbers: lm_head.bias has 1 NaN"
    )


# --- places and damage ----------------------------------------------------------------------------


def test_what_is_not_there_is_said(tmp_path):
    assert "there is no such file" in str(refusal(tmp_path / "nowhere"))
    assert "config.json is missing" in str(refusal(tmp_path))
    (tmp_path / "a.txt").write_text("a")
    assert "is no checkpoint" in str(refusal(tmp_path / "a.txt"))
    folder = write_checkpoint(tmp_path / "mine")
    (folder / "model.safetensors").rename(folder / "a.pt")
    (folder / "b.pt").write_bytes(b"")
    assert "holds 2 weights files" in str(refusal(folder))
    (folder / "a.pt").unlink()
    (folder / "b.pt").unlink()
    assert "mine holds no weights" in str(refusal(folder))
    assert not recognises(tmp_path / "a.txt")
    assert not recognises(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b'{"model_type": NaN}']
)
def test_a_config_that_is_no_json_object_is_refused(tmp_path, data):
    folder = write_checkpoint(tmp_path)
    (folder / "config.json").write_bytes(data)
    assert "is not a JSON object" in str(refusal(folder))


def test_a_huge_config_is_refused_unread(tmp_path):
    folder = write_checkpoint(tmp_path)
    (folder / "config.json").write_bytes(b" " * (2**20 + 1))
    assert "is too large" in str(refusal(folder))


def test_nothing_but_regular_files_is_opened(tmp_path):
    folder = write_checkpoint(tmp_path / "mine")
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    assert "it is no file" in str(refusal(folder))
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert "config.json is missing" in str(refusal(folder))


@pytest.mark.parametrize("name", ["model.safetensors", "model.pt"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_file_cut_short_is_refused(tmp_path, reference, name, share):
    path = package.write(tmp_path / "theirs", reference, GIVEN, name=name) / name
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert "theirs/model" in str(refusal(path))


@pytest.mark.parametrize("name", ["model.safetensors", "model.pt"])
def test_any_flipped_byte_is_refused_or_harmless(tmp_path, reference, name):
    path = package.write(tmp_path / "theirs", reference, GIVEN, name=name) / name
    data, random = path.read_bytes(), np.random.default_rng(0)
    places = [*random.integers(0, 3000, 25), *random.integers(len(data) - 3000, len(data), 25)]
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1 << int(random.integers(8))
        path.write_bytes(broken)
        try:
            open_model(path)
        except HgvizError as error:
            assert "\n" not in str(error)


# --- hostile safetensors --------------------------------------------------------------------------


def hostile_safetensors(folder, entries, data=b"\0" * 64, length=None):
    write_checkpoint(folder)
    header = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    size = len(header) if length is None else length
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", size) + header + data)
    return folder


def entry(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    "entries, words",
    [
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
    ],
)
def test_a_hostile_safetensors_header_is_refused(tmp_path, entries, words):
    assert words in str(refusal(hostile_safetensors(tmp_path / "x", entries)))


def test_a_header_longer_than_the_file_is_refused(tmp_path):
    for length in (2**63, 10_000, 0, 1):
        folder = hostile_safetensors(tmp_path / str(length), {}, length=length)
        assert "is damaged" in str(refusal(folder))


# --- hostile pickles ------------------------------------------------------------------------------


class Evil:
    """What a stranger's pickle would like to do."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def theirs(tmp_path, reference):
    return package.write(tmp_path / "theirs", reference, GIVEN)


@pytest.mark.parametrize("wrap", [lambda evil: evil, lambda evil: {"token_emb.weight": evil}])
def test_no_code_in_a_pickle_is_run(tmp_path, theirs, wrap):
    torch.save(wrap(Evil(tmp_path / "gotcha")), theirs / "model.pt")
    assert "only tensors are loaded" in str(refusal(theirs))
    with open(theirs / "model.pt", "wb") as file:
        pickle.dump(wrap(Evil(tmp_path / "gotcha")), file)
    assert "could not be read" in str(refusal(theirs))
    assert not (tmp_path / "gotcha").exists()


def test_a_tensor_larger_than_its_storage_is_refused(theirs, reference):
    state = reference.state_dict()
    state["token_emb.weight"] = torch.zeros(1).expand(2**40)
    torch.save(state, theirs / "model.pt")
    assert (theirs / "model.pt").stat().st_size < 10**6
    assert "token_emb.weight needs 4,398,046,511,104 bytes and 4 are stored" in str(refusal(theirs))


def test_many_tensors_in_one_storage_are_refused(theirs):
    one = torch.zeros(10_000)
    torch.save({f"a{i}": one for i in range(1000)}, theirs / "model.pt")
    assert "its tensors are larger than the file" in str(refusal(theirs))


def test_a_zip_that_declares_far_more_than_it_holds_is_refused(theirs):
    torch.save({"a": torch.zeros(2**22)}, theirs / "model.pt")
    with zipfile.ZipFile(theirs / "model.pt") as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(theirs / "model.pt", "w", zipfile.ZIP_DEFLATED) as small:
        for name, data in parts.items():
            small.writestr(name, data)
    assert (theirs / "model.pt").stat().st_size < 50_000
    assert "it declares 16,7" in str(refusal(theirs))


@pytest.mark.parametrize(
    "content, words",
    [
        ([torch.zeros(3)], "it holds list"),
        (torch.zeros(3), "it holds Tensor"),
        ({}, "it holds dict"),
        ({"a": 3}, "it holds a, which is no tensor"),
        ({"model": {"a": torch.zeros(3)}}, "it holds model, which is no tensor"),
        ({3: torch.zeros(3)}, "keys that are no names"),
        ({"a": torch.zeros(3, dtype=torch.int64)}, "a is int64"),
        ({"a": torch.zeros(3, dtype=torch.complex64)}, "a is complex64"),
        ({"a": torch.eye(3).to_sparse()}, "a is float32"),
        ({"a": torch.zeros(3, device="meta")}, "a needs"),
        ({"a": torch.zeros(0, 2**40)}, "a needs"),
    ],
)
def test_what_is_no_state_dict_is_refused(theirs, content, words):
    torch.save(content, theirs / "model.pt")
    assert words in str(refusal(theirs))


def test_old_torch_files_and_programs_are_refused_by_name(theirs):
    state = {"a": torch.zeros(3)}
    torch.save(state, theirs / "model.pt", _use_new_zipfile_serialization=False)
    assert "written by torch before 1.6" in str(refusal(theirs))
    with zipfile.ZipFile(theirs / "model.pt", "w") as program:
        for name in ("x/constants.pkl", "x/data.pkl", "x/code/__torch__.py"):
            program.writestr(name, b"x" * 100)
    assert "is a TorchScript program" in str(refusal(theirs))


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path):
    (tmp_path / "file").write_text("")
    config = make_config()
    with pytest.raises(HgvizError, match="could not be written"):
        save(tmp_path / "file", config, make_hourglass(config).state_dict())
