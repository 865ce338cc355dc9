"""Which face gets what, where what comes with hgviz is found, and settings that survive."""

import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz import __main__ as program
from hgviz import files, settings
from hgviz.settings import Settings


@pytest.fixture
def app(monkeypatch):
    """Stands in for the window and notes what it was asked for."""
    asked = ModuleType("hgviz.gui.app")
    asked.calls = []
    for name in ("window", "demo", "selftest"):
        monkeypatch.setattr(
            asked, name, lambda *given, name=name: asked.calls.append((name, *given)) or 0, False
        )
    monkeypatch.setattr(program, "_app", lambda: asked)
    return asked


@pytest.fixture
def display(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":9")


@pytest.fixture
def no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "HGVIZ_EXIT_AFTER_PAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.h5").touch()
    (tmp_path / "model").mkdir()
    (tmp_path / "map").touch()
    return tmp_path


def asked_for(app):
    return [
        (name, *map(str, given[0] if name == "window" else given)) for name, *given in app.calls
    ]


def test_shells_complete_commands_and_options(app, display, monkeypatch, capsys):
    for words, number, completed in (("hgviz ev", 1, "evaluate"), ("hgviz map --he", 2, "--head")):
        monkeypatch.setenv(program.COMPLETION, "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(number))
        with pytest.raises(SystemExit) as done:
            program.main([])
        assert done.value.code == 0 and completed in capsys.readouterr().out.split()
    for shell in ("bash", "zsh", "fish"):
        monkeypatch.setenv(program.COMPLETION, f"source_{shell}")
        with pytest.raises(SystemExit) as done:
            program.main([])
        assert done.value.code == 0 and program.COMPLETION in capsys.readouterr().out
    assert not app.calls


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        ([], ("window",)),
        (["one.h5"], ("window", "one.h5")),
        (["one.h5", "model"], ("window", "one.h5", "model")),
        (["model"], ("window", "model")),
        (["./map"], ("window", "map")),
        (["demo"], ("demo", "None")),
        (["demo", "--headless", "out"], ("demo", "out")),
        (["selftest"], ("selftest",)),
    ],
)
def test_with_a_display_paths_open_the_window(arguments, call, app, display, here):
    assert program.main(arguments) == 0
    assert asked_for(app) == [call]


@pytest.mark.parametrize("arguments", [[], ["demo"]])
def test_without_a_display_the_demo_works_off_screen(arguments, app, no_display, here):
    assert program.main(arguments) == 0
    assert asked_for(app) == [("demo", "hgviz-demo")]


def test_without_a_display_a_path_gives_one_line(app, no_display, here, capsys):
    assert program.main(["one.h5"]) == 1
    assert app.calls == []
    assert "no display" in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize(
    "arguments", [["gone.h5"], ["one.h5", "no/where.h5"], [f"./{'a' * 300}.h5"]]
)
def test_a_missing_path_gives_one_line(arguments, app, display, here, capsys):
    assert program.main(arguments) == 1
    assert app.calls == []
    (line,) = capsys.readouterr().err.splitlines()
    assert arguments[-1] in line


def test_a_file_named_like_a_verb_needs_a_dot_and_a_slash(app, display, here, capsys):
    assert program.main(["map"]) == 2
    assert app.calls == []
    assert "Missing argument" in capsys.readouterr().err


def test_a_word_that_is_neither_verb_nor_file_is_wrong_use(app, display, here, capsys):
    assert program.main(["captuer"]) == 2
    assert "captuer" in capsys.readouterr().err


def test_a_frame_that_is_timed_needs_no_display(app, no_display, here, monkeypatch):
    monkeypatch.setenv("HGVIZ_EXIT_AFTER_PAINT", "1")
    assert program.main([]) == 0
    assert asked_for(app) == [("window",)]


def test_a_missing_system_library_is_one_line_with_the_command_that_helps(monkeypatch, capsys):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name == "hgviz.gui.app":
                raise ImportError("libEGL.so.1: cannot open shared object file: No such file")

    monkeypatch.delitem(sys.modules, "hgviz.gui.app", raising=False)
    monkeypatch.delattr("hgviz.gui.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        program.selftest()
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "libEGL.so.1" in line and "apt-get install" in line and "libegl1" in line


def test_names_of_models_in_the_cache_open_in_the_window(app, display, here, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(here / "hub"))
    store = here / "hub" / "models--org--small"
    for file, text in (("refs/main", "a" * 40), (f"snapshots/{'a' * 40}/config.json", "{}")):
        (store / file).parent.mkdir(parents=True)
        (store / file).write_text(text)
    assert program.main(["small"]) == program.main(["org/small"]) == 0
    assert asked_for(app) == [("window", "small"), ("window", "org/small")]
    assert program.main(["org/other"]) == 1


def test_stopped_before_a_face_is_there_is_one_line(app, display, monkeypatch, capsys):
    def stopped(paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "window", stopped)
    assert program.main([]) == 130
    assert capsys.readouterr().err == "Stopped.\n"


# --- what comes with hgviz ------------------------------------------------------------------------


def test_a_checkout_keeps_resources_at_its_root():
    root = Path(files.__file__).parents[1]
    assert files.resource("icons") == root / "resources" / "icons"


def test_a_wheel_and_a_bundle_carry_them_inside_the_package(tmp_path, monkeypatch):
    inside = tmp_path / "hgviz" / "resources"
    inside.mkdir(parents=True)
    monkeypatch.setattr(files, "__file__", str(tmp_path / "hgviz" / "files.py"))
    assert files.resource("icons/open.svg") == inside / "icons/open.svg"


@pytest.mark.parametrize("name", ["sample/hourglass", "sample/first.h5", "sample/reviews.tsv"])
def test_what_comes_with_hgviz_is_named_from_every_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert files.find_sample(name) == files.resource(name)
    assert files.find_sample(Path(name)).exists()


def test_a_file_of_the_reader_goes_before_what_comes_with_hgviz(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/first.h5").symlink_to(
        tmp_path / "gone.h5"
    )  # also a link that leads nowhere
    assert files.find_sample("sample/first.h5") == Path("sample/first.h5")
    assert files.find_sample("sample/hourglass") == files.resource("sample/hourglass")


@pytest.mark.parametrize(
    "name", ["sample/none", "sample/../icons", "icons/open.svg", "my.h5", "", "/sample/first.h5"]
)
def test_other_names_stay_what_they_are(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert files.find_sample(name) == Path(name)


def test_every_door_knows_the_bundled_names(tmp_path, monkeypatch, capsys):
    import hgviz
    from hgviz.cli import Window, main

    monkeypatch.chdir(tmp_path)
    assert main(["info", "sample/first.h5"], Window(lambda path: 0, lambda: 0)) == 0
    assert main(["info", "sample/mixed"], Window(lambda path: 0, lambda: 0)) == 0
    assert "family: yubert" in capsys.readouterr().out
    assert len(hgviz.figure("sample/first.h5").capture.main) == 136


# --- settings -------------------------------------------------------------------------------------


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
    assert settings.settings_path().name == "settings.toml"
    assert "hgviz" in settings.settings_path().parts
