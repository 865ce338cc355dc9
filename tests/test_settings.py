"""Settings survive a round trip and a broken file never stops the program."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz import settings
from hgviz.settings import Settings

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def test_without_a_file_everything_is_at_its_default(tmp_path):
    assert settings.load(tmp_path / "none.toml") == Settings()


@given(words, words, st.sampled_from(["auto", "light", "dark"]))
def test_settings_survive_the_round_trip(tmp_path_factory, folder, device, theme):
    path = tmp_path_factory.mktemp("settings") / "deep" / "settings.toml"
    chosen = Settings(folder=folder, device=device, theme=theme)
    settings.save(chosen, path)
    assert settings.load(path) == chosen
    assert [file.name for file in path.parent.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize("content", [b"theme = ", b'theme = "blue"', b"\xff\xfe", b"folder = 3"])
def test_a_broken_file_gives_defaults_and_is_kept_aside(tmp_path, content):
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    assert settings.load(path) == Settings()
    assert (tmp_path / "settings.toml.broken").read_bytes() == content
    assert not path.exists()


def test_a_setting_of_another_version_is_ignored(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('theme = "dark"\nfuture = 1\n')
    assert settings.load(path) == Settings(theme="dark")


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        Settings().theme = "dark"
    assert msgspec.structs.replace(Settings(), theme="dark").theme == "dark"


def test_the_file_lies_in_the_users_own_folder():
    assert settings.location().name == "settings.toml"
    assert "hgviz" in settings.location().parts
