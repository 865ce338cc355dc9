"""A disk that is full at any byte of what a command writes: one clear line, and nothing is left."""

import io
import resource
import shlex
import shutil
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from hgviz.__main__ import main

PLAN = """
[model]
d_model = 32
n_heads = 2
hierarchy = "1@1"
vocab_size = 256
[data]
train = ["text.txt"]
valid = "text.txt"
[recipe]
steps = 2
evaluate_bytes = 256
evaluate_length = 64
[[recipe.stages]]
start = 0.0
length = 32
batch = 2
"""
COMMANDS = {  # what is run, its main file
    "train": ("train plan.toml -o out", "out/model.safetensors"),
    "zeroed": ("prune sample/softmax --off 0.0 --form zeroed -o out", "out/model.safetensors"),
    "prune": ("prune sample/softmax --off 0.0 -o out", "out/model.safetensors"),
    "convert": ("convert sample/softmax -o out", "out/model.safetensors"),
    "figure": ("figure sample/first.h5 --kind map --head 5.4 -o out.pdf", "out.pdf"),
    "attribute": ('attribute sample/softmax --text "a film" --steps 8 -o out.csv', "out.csv"),
}


@contextmanager
def files_of_at_most(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


def call(words):
    """Exit status and what was written on stderr; capturing to files would meet the limit, too."""
    sys.argv, errors = ["hgviz", *shlex.split(words)], io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        return main(), errors.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_one_line_and_leaves_no_file(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "text.txt").write_text("The sand had run down. " * 40)
    given = files(tmp_path)
    words, made = COMMANDS[command]
    assert call(words)[0] == 0
    size = (tmp_path / made).stat().st_size
    for path in files(tmp_path) - given:
        path.unlink()
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    for room in (0, 1, size // 3, size * 2 // 3, size - 1):
        with files_of_at_most(room):
            status, error = call(words)
        assert status == 1 and "could not be written: File too large" in error, error
        assert ".out.new" not in error  # the folder that becomes out
        assert files(tmp_path) == given
