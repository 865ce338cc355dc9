"""A person's folders, of whom nothing outside is touched."""

import tempfile

import pytest

from hgviz import settings
from tests.soak.larder import Larder


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder that everything goes to which is written where nobody was asked."""
    for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        place = tmp_path / name.lower()
        place.mkdir()
        monkeypatch.setenv(name, str(place))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "xdg_cache_home"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "home")
    settings.save(settings.Settings(folder=str(tmp_path / "home")))
    return tmp_path


@pytest.fixture
def larder(home):
    """Files of every kind."""
    (home / "larder").mkdir()
    return Larder.fill(home / "larder")
