"""A program whose settings nobody else reads or writes."""

import pytest


@pytest.fixture(autouse=True)
def clean_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def kept(tmp_path, capture):
    """A capture in a file."""
    from hgviz.store import write_capture

    path = tmp_path / "kept.h5"
    write_capture(path, capture)
    return path
