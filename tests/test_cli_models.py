"""The verbs on models of other people: opened by path or name, changed, and converted."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz import cli
from hgviz.models import open_model
from hgviz.store import open_capture
from tests.models.folders import write_bert, write_gpt2
from tests.models.test_cache import cached
from tests.models.zoo import write


@pytest.fixture
def run(capfd, monkeypatch):
    """Run a command line on the CPU; gives exit code, standard output and standard error."""
    monkeypatch.setenv("HGVIZ_DEVICE", "cpu")

    def call(*arguments):
        code = cli.main([str(one) for one in arguments], cli.Window(None, None))
        return code, *capfd.readouterr()

    return call


def failed(answer):
    code, said, error = answer
    assert (code, said) == (1, "")
    assert len(error.splitlines()) == 1
    return error


def test_a_model_is_named_in_place_of_a_path(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    cached(tmp_path / "hub", "org/small")
    facts = json.loads(run("info", "org/small", "--json")[1])
    assert (facts["name"], facts["family"]) == ("org/small", "bert")
    assert run("capture", "small", "--text", "the 나", "-o", "a.h5")[0] == 0
    assert open_capture("a.h5").spec.name == "org/small"
    assert run("convert", "org/small", "-o", "out") == (0, "out: bert, 11,698 parameters.\n", "")
    error = failed(run("capture", "org/other", "--text", "a", "-o", "b.h5"))
    assert error.startswith("There is no org/other. No file or folder has that name, and")


def test_info_names_adapters_value_heads_and_other_weights_that_are_not_read(run, tmp_path):
    folder = write_gpt2(tmp_path / "gpt2")
    assert "not_read" not in json.loads(run("info", folder, "--json")[1])
    weights = load_file(folder / "model.safetensors")
    (folder / "pytorch_model.bin").write_bytes(b"")
    save_file(weights | {"v_head.summary.bias": torch.ones(1)}, folder / "model.safetensors")
    save_file({"lora_A.weight": torch.ones(1)}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
    assert json.loads(run("info", folder, "--json")[1])["not_read"] == [
        "v_head (1 tensor)", "adapter_config.json", "adapter_model.safetensors (an adapter)",
        "pytorch_model.bin",
    ]  # fmt: skip
    assert "\nnot read: v_head (1 tensor), adapter_config.json" in run("info", folder)[1]
    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / name).unlink()
    assert "is an adapter of PEFT" in failed(run("info", folder))
    (folder / "config.json").unlink()
    assert "Its base model is 'org/base'. Merge" in failed(run("info", folder))


def test_a_capture_with_another_activation_shows_it(run, tmp_path):
    folder = write_bert(tmp_path / "bert")
    out = tmp_path / "a.h5"
    asked = ("capture", folder, "--text", "the cat", "-o", out)
    assert run(*asked, "--activation", "softmax,ymish,tanh")[0] == 0
    facts = json.loads(run("info", out, "--json")[1])
    assert facts["name"] == "bert with softmax,ymish,tanh"
    assert facts["layers"][0]["activations"] == ["softmax", "ymish", "tanh"]
    assert "there is no activation 'relu'" in failed(
        run(*asked, "--force", "--activation", "relu")
    ).replace("There", "there")
    assert "divides the 3 heads" in failed(run(*asked, "--force", "--activation", "tanh,ymish"))


def test_what_is_converted_gives_the_same_logits(run, tmp_path):
    folder, out = write_gpt2(tmp_path / "gpt2"), tmp_path / "out"
    assert run("convert", folder, "-o", out)[0] == 0
    ids = np.arange(9)
    assert np.array_equal(open_model(folder).run(ids).logits, open_model(out).run(ids).logits)
    assert "is there and not empty" in failed(run("convert", folder, "-o", out))
    assert run("convert", folder, "-o", out, "--force")[0] == 0
    assert run("convert", folder)[0] == 2


def test_a_model_of_transformers_is_converted_to_one_of_its_folders(run, tmp_path):
    folder = write(tmp_path / "roberta", "roberta", "RobertaForMaskedLM")
    out = tmp_path / "out"
    code, said, error = run("convert", folder, "-o", out)
    assert (code, error) == (0, "") and said.startswith(f"{out}: roberta, ")
    ids = np.arange(3, 9)
    assert np.array_equal(open_model(folder).run(ids).logits, open_model(out).run(ids).logits)
    assert "is the model itself" in failed(run("convert", out, "-o", out, "--force"))


def test_no_tokens_are_one_line_and_special_ones_are_enough(run, tmp_path):
    bert, gpt2 = write_bert(tmp_path / "bert"), write_gpt2(tmp_path / "gpt2")
    out = tmp_path / "a.h5"
    assert run("capture", bert, "--text", "", "-o", out)[0] == 0
    assert open_capture(out).prompt.pieces == ("[CLS]", "[SEP]")
    assert failed(run("capture", gpt2, "--text", "", "-o", out, "--force")) == (
        "The text is empty. It has no tokens. Give some text.\n"
    )


def test_a_folder_is_no_capture(run, tmp_path):
    folder = write_bert(tmp_path / "bert")
    for verb in (("map", "--layer", 0, "--head", 0), ("rollout",)):
        error = failed(run(verb[0], folder, *verb[1:], "-o", tmp_path / "a.npy"))
        assert error.startswith(f"{folder} is no capture. It is a folder, and a capture is a file")


def test_wrong_use_ends_in_one_sentence_of_its_own(run, tmp_path):
    folder = write_bert(tmp_path / "bert")
    code, _, error = run("capture", folder, "--text", "a", "-o", "a.h5", "--dtype", "int8")
    assert code == 2 and "'--dtype': 'int8' is not one of" in error
    code, _, error = run("map", "a.h5", "--layer", -1, "--head", 0, "-o", "a.npy")
    assert code == 2 and "equal to 0. `hgviz map --help` shows what it takes.\n" in error
