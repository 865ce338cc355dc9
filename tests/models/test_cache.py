"""Models are found in the local Hugging Face cache by their names, and nothing is downloaded."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.formats import cache
from tests.models.folders import write_bert, write_gpt2

COMMIT = "0123456789abcdef0123456789abcdef01234567"
VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def hub(tmp_path, monkeypatch):
    """An empty cache; a socket would be an error."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
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


# --- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "someone/gpt2-small", "a.b_c/d-e.f_1"])
def test_a_model_is_opened_by_its_name(hub, name):
    cached(hub, name, write_gpt2)
    spec = open_model(name).spec
    assert (spec.name, spec.family) == (name, "gpt2")
    assert tasks.kind_of(name) == "checkpoint"
    assert tasks.info(name)["name"] == name
    model = tasks.load(Path(name), "cpu")
    assert model.tokenize("the").pieces == ("t", "he")


def test_the_commit_of_refs_main_is_opened(hub):
    cached(hub, "a/b", commit="1" * 40, seed=1)
    old = open_model("a/b").spec.digest
    store = cached(hub, "a/b", commit="2" * 40, seed=2)
    new = open_model("a/b").spec.digest
    assert old != new
    assert open_model(store / "snapshots" / ("1" * 40)).spec.digest == old
    (store / "refs" / "main").write_text("1" * 40 + "\n")
    assert open_model("a/b").spec.digest == old


def test_the_only_snapshot_is_opened_where_no_ref_is_kept(hub):
    store = cached(hub, "a/b")
    (store / "refs" / "main").unlink()
    assert open_model("a/b").spec.name == "a/b"


def test_a_snapshot_opened_by_its_path_has_the_models_name(hub):
    store = cached(hub, "a/b")
    assert open_model(store / "snapshots" / COMMIT / "config.json").spec.name == "a/b"


def test_a_model_that_moved_into_an_organisation_is_found_by_its_old_name(hub):
    cached(hub, "google-bert/bert-base-uncased")
    assert open_model("bert-base-uncased").spec.name == "google-bert/bert-base-uncased"
    cached(hub, "someone/bert-base-uncased")
    with pytest.raises(HgvizError, match="several models are called bert-base-uncased"):
        open_model("bert-base-uncased")
    cached(hub, "bert-base-uncased")
    assert open_model("bert-base-uncased").spec.name == "bert-base-uncased"


def test_a_folder_of_that_name_comes_first(hub, tmp_path):
    cached(hub, "a/b")
    write_gpt2(tmp_path / "a" / "b")
    assert open_model("a/b").spec.family == "gpt2"


@pytest.mark.parametrize(
    "variables, place",
    [
        ({"HF_HUB_CACHE": "/x", "HF_HOME": "/y"}, "/x"),
        ({"HUGGINGFACE_HUB_CACHE": "/x", "HF_HOME": "/y"}, "/x"),
        ({"HF_HOME": "/y", "XDG_CACHE_HOME": "/z"}, "/y/hub"),
        ({"XDG_CACHE_HOME": "/z"}, "/z/huggingface/hub"),
        ({"HF_HUB_CACHE": ""}, "~/.cache/huggingface/hub"),
        ({"HF_HOME": "~/q"}, "~/q/hub"),
    ],
)
def test_the_cache_lies_where_the_variables_say(monkeypatch, variables, place):
    monkeypatch.delenv("HF_HUB_CACHE")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.place() == Path(place).expanduser()


# --- what is not ----------------------------------------------------------------------------------


def test_what_is_nowhere_is_one_line_that_says_what_to_do(hub):
    for find in (open_model, tasks.kind_of, tasks.info):
        with pytest.raises(HgvizError) as caught:
            find("org/name")
        assert str(caught.value) == (
            "there is no org/name: no file or folder has that name, and the Hugging Face cache "
            f"({hub}) holds no such model. Check the name, or fetch the model with "
            "`hf download org/name`: hgviz downloads nothing."
        )


def test_a_model_that_is_there_in_part_says_so(hub):
    store = cached(hub, "a/b")
    (store / "refs" / "main").write_text("f" * 40)
    with pytest.raises(HgvizError, match="a/b is in the Hugging Face cache only in part"):
        open_model("a/b")
    (store / "refs" / "main").write_text(COMMIT)
    (store / "snapshots" / COMMIT / "model.safetensors").unlink()
    with pytest.raises(HgvizError, match="^a/b holds no weights"):
        open_model("a/b")
    (store / "snapshots" / COMMIT / "config.json").unlink()
    with pytest.raises(HgvizError, match=r"^a/b/config\.json is missing"):
        open_model("a/b")


@pytest.mark.parametrize("ref", ["../../../x", "..", "", "/etc", "a/b", "\0", "x" * 9999])
def test_a_ref_is_never_a_path(hub, ref):
    store = cached(hub, "a/b")
    (hub / "x").mkdir()
    (store / "refs" / "main").write_text(ref)
    with pytest.raises(HgvizError, match="only in part"):
        open_model("a/b")


@pytest.mark.parametrize(
    "name", ["../a", "a/../b", "/a/b", "a/b/c", "./..", "a--b", "-a", ".a", "a/", "a\\b", "~", "",
             "a" * 200, "a\nb", "a b", "a/..b"],
)  # fmt: skip
def test_a_name_is_never_a_path(hub, tmp_path, name):
    assert not cache.is_name(name) or name == "a/"
    assert cache.is_there(name) == (tmp_path / name).exists()


def test_looking_names_up_needs_no_torch():
    code = "import sys, hgviz.models.formats.cache; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0
