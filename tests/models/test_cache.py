"""Models are found in the local Hugging Face cache by their names, and nothing is downloaded."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import huggingface_hub.file_download  # noqa: F401  (before sockets are taken away)
import pytest

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.files import is_model_name, path_exists
from hgviz.models import open_model
from tests.models.folders import write_bert, write_gpt2

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
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


@pytest.mark.parametrize("name", ["gpt2", "a.b_c/d-e.f_1"])
def test_a_model_is_opened_by_its_name(hub, name):
    store = cached(hub, name, write_gpt2)
    spec = open_model(name).spec
    assert (spec.name, spec.family) == (name, "gpt2")
    assert open_model(store / "snapshots" / COMMIT / "config.json").spec.name == name
    assert tasks.kind_of(name) == "checkpoint"
    assert tasks.info(name)["name"] == name
    assert tasks.load(Path(name), "cpu").tokenize("the").pieces == ("t", "he")


def test_the_commit_of_refs_main_is_opened(hub):
    cached(hub, "a/b", commit="1" * 40, seed=1)
    first = open_model("a/b").spec.digest
    store = cached(hub, "a/b", commit="2" * 40, seed=2)
    assert open_model("a/b").spec.digest != first
    (store / "refs" / "main").write_text("1" * 40)
    assert open_model("a/b").spec.digest == first


def test_a_model_that_moved_into_an_organisation_is_found_by_its_old_name(hub):
    cached(hub, "google-bert/bert-base-uncased")
    assert open_model("bert-base-uncased").spec.name == "google-bert/bert-base-uncased"
    cached(hub, "someone/bert-base-uncased")
    assert not path_exists("bert-base-uncased")
    cached(hub, "bert-base-uncased")
    assert open_model("bert-base-uncased").spec.name == "bert-base-uncased"


def test_a_folder_of_that_name_comes_first(hub, tmp_path):
    cached(hub, "a/b")
    write_gpt2(tmp_path / "a" / "b")
    assert open_model("a/b").spec.family == "gpt2"


def test_a_name_that_is_nowhere_is_one_line_that_says_what_to_do(hub):
    for find in (open_model, tasks.kind_of, tasks.info):
        with pytest.raises(HgvizError) as caught:
            find("org/name")
        assert str(caught.value) == (
            "there is no org/name: no file or folder has that name, and the Hugging Face cache "
            f"({hub}) holds no config.json of such a model. Check the name, or fetch the model "
            "with `hf download org/name`: hgviz downloads nothing."
        )


def test_a_model_without_weights_says_so(hub):
    store = cached(hub, "a/b")
    (store / "snapshots" / COMMIT / "model.safetensors").unlink()
    with pytest.raises(HgvizError, match="^a/b holds no weights"):
        open_model("a/b")


@pytest.mark.parametrize("ref", ["../../../x", "..", "", "/etc", "a/b", "x" * 9999, "f" * 40])
def test_a_ref_is_never_a_path(hub, ref):
    store = cached(hub, "a/b")
    write_bert(hub / "x")
    (store / "refs" / "main").write_text(ref)
    with pytest.raises(HgvizError, match="holds no config.json of such a model"):
        open_model("a/b")


@pytest.mark.parametrize(
    "name", ["../a", "a/../b", "/a/b", "a/b/c", "./..", "a--b", "-a", ".a", "a\\b", "~", "",
             "a" * 200, "a\nb", "a b", "a/..b"],
)  # fmt: skip
def test_a_name_is_never_a_path(hub, tmp_path, name):
    assert not is_model_name(name)
    assert path_exists(name) == (tmp_path / name).exists()


def test_looking_names_up_needs_no_torch():
    code = "import sys, hgviz.files as f; f.path_exists('a/b'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0
