"""Which face gets what: paths and nothing at all the window, verbs the command line."""

import sys
from types import ModuleType

import pytest

from hgviz import __main__ as program


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
    monkeypatch.setenv("HF_HUB_CACHE", str(here / "hub"))
    (here / "hub" / "models--org--small" / "snapshots" / ("a" * 40)).mkdir(parents=True)
    assert program.main(["small"]) == program.main(["org/small"]) == 0
    assert asked_for(app) == [("window", "small"), ("window", "org/small")]
    assert program.main(["org/other"]) == 1


def test_stopped_before_a_face_is_there_is_one_line(app, display, monkeypatch, capsys):
    def stopped(paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "window", stopped)
    assert program.main([]) == 130
    assert capsys.readouterr().err == "Stopped.\n"
