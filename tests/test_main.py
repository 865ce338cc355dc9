"""Which face gets what, where files that come with hgviz are found, settings that survive, and
signals that end every command in one way."""

import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hgviz
from hgviz import __main__ as program
from hgviz import files, settings
from hgviz.cli import terminal
from hgviz.cli.terminal import Stopped
from hgviz.core import progress
from hgviz.jobs import interrupt_on_signals
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
        (["./map"], ("window", "map")),
        (["demo"], ("demo", "None")),
        (["demo", "--headless", "out"], ("demo", "out")),
        (["selftest"], ("selftest",)),
    ],
)
def test_with_a_display_paths_open_the_window(arguments, call, app, display, here):
    assert program.main(arguments) == 0
    assert asked_for(app) == [call]


def test_without_a_display_the_demo_works_off_screen(app, no_display, here, capsys, monkeypatch):
    assert program.main([]) == program.main(["demo"]) == 0
    assert asked_for(app) == [("demo", "hgviz-demo")] * 2
    assert program.main(["one.h5"]) == 1
    assert "no display" in capsys.readouterr().err.splitlines()[0]
    monkeypatch.setenv("HGVIZ_EXIT_AFTER_PAINT", "1")  # a frame that is timed needs no display
    assert program.main([]) == 0
    assert asked_for(app)[2:] == [("window",)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gone.h5"], 1, "gone.h5"),
        (["one.h5", "no/where.h5"], 1, "no/where.h5"),
        ([f"./{'a' * 300}.h5"], 1, "aaa.h5"),
        (["map"], 2, "Missing argument"),  # a file named like a verb needs ./
        (["captuer"], 2, "captuer"),
    ],
)
def test_what_is_neither_verb_nor_file_is_one_line(
    app, display, here, capsys, arguments, code, said
):
    assert program.main(arguments) == code and app.calls == []
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


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


def test_resources_lie_at_the_root_of_a_checkout_and_inside_a_wheel(tmp_path, monkeypatch):
    root = Path(files.__file__).parents[1]
    assert files.resource("icons") == root / "resources" / "icons"
    inside = tmp_path / "hgviz" / "resources"
    inside.mkdir(parents=True)
    monkeypatch.setattr(files, "__file__", str(tmp_path / "hgviz" / "files.py"))
    assert files.resource("icons/open.svg") == inside / "icons/open.svg"


def test_samples_are_named_from_every_folder_and_own_files_go_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("sample/hourglass", "sample/first.h5", "sample/reviews.tsv"):
        assert files.find_sample(name) == files.resource(name)
        assert files.find_sample(Path(name)).exists()
    for name in ("sample/none", "sample/../icons", "icons/open.svg", "my.h5", "", "/sample/a.h5"):
        assert files.find_sample(name) == Path(name)
    assert program.main(["info", "sample/mixed"]) == 0
    assert "family: yubert" in capsys.readouterr().out
    assert len(hgviz.figure("sample/first.h5").capture.main) == 136
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/first.h5").symlink_to(tmp_path / "gone.h5")  # a link that leads nowhere
    assert files.find_sample("sample/first.h5") == Path("sample/first.h5")
    assert files.find_sample("sample/hourglass") == files.resource("sample/hourglass")


# --- settings -------------------------------------------------------------------------------------


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


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


def test_settings_have_defaults_ignore_other_versions_and_cannot_be_changed_in_place(tmp_path):
    path = tmp_path / "settings.toml"
    assert settings.load(path) == Settings()
    path.write_text('theme = "dark"\nfuture = 1\n')
    assert settings.load(path) == Settings(theme="dark")
    with pytest.raises(AttributeError):
        Settings().theme = "dark"
    assert msgspec.structs.replace(Settings(), theme="dark").theme == "dark"
    assert settings.settings_path().name == "settings.toml"
    assert "hgviz" in settings.settings_path().parts


# --- signals --------------------------------------------------------------------------------------


posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
TEXT = "The hourglass reads letters, then pairs, then words. " * 200
TRAINING = """
[model]
hierarchy = "1@1 1@2 1@1"
d_model = 32
n_heads = 2
d_ff = 64
[data]
train = ["text.txt"]
valid = "text.txt"
[recipe]
steps = 100000
save_every = 2
"""


@pytest.fixture
def start(tmp_path):
    """Start hgviz in a folder of its own, with signals that are ignored where it starts from."""
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "plan.toml").write_text(TRAINING)
    started = []

    def begin(*words: str, ignored: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        def ignore() -> None:
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        process = subprocess.Popen(
            [sys.executable, "-m", "hgviz", *words], cwd=tmp_path, text=True, preexec_fn=ignore,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def opens(ending, process, folder):
    """Whether a process has a file with this ending open."""
    with suppress(OSError):
        links = [os.readlink(one) for one in Path(f"/proc/{process.pid}/fd").iterdir()]
        return any(one.endswith(ending) for one in links)
    return False


def computes(process, folder):
    """Whether it has loaded torch, and so is past its imports."""
    maps = Path(f"/proc/{process.pid}/maps")
    return "libtorch_cpu" in maps.read_text() if maps.exists() else True


def there(name, process, folder):
    return (folder / name).exists()


CAPTURE = ("capture", "sample/hourglass", "--text-file", "text.txt", "-o", "a.h5")
SECOND = partial(there, "a.h5.part/layer-001.h5")  # a capture has begun its second layer
STUDY = ("importance", "sample/softmax", "--data", "sample/reviews.tsv", "-o", "a.h5", "--method",
         "shapley")  # fmt: skip
TRAIN = ("train", "plan.toml", "-o", "out")
PRUNE = ("prune", "sample/hourglass", "--off", "0.0", "--data", "text.txt", "-o", "out")
IGNORED = (signal.SIGINT, signal.SIGQUIT)  # by a shell, of what a script puts in the background


@posix
@pytest.mark.parametrize(
    ("words", "begun", "number", "ignored", "kept", "left"),
    [
        (CAPTURE, SECOND, signal.SIGINT, IGNORED, "a.h5.part", {"a.h5.part"}),
        (CAPTURE, SECOND, signal.SIGHUP, (), "a.h5.part", {"a.h5.part"}),
        (STUDY, computes, signal.SIGTERM, (), "", None),
        (TRAIN, partial(there, "out/state.pt"), signal.SIGTERM, IGNORED, "out", {"out"}),
        (PRUNE, partial(there, ".out.new"), signal.SIGTERM, (), "Nothing was saved in out", set()),
    ],
    ids=["capture-int", "capture-hup", "importance", "train", "prune"],
)
def test_a_command_stops_says_what_is_kept_and_ends_as_shells_expect(
    start, tmp_path, words, begun, number, ignored, kept, left
):
    process, end = start(*words, ignored=ignored), time.monotonic() + 90
    while not begun(process, tmp_path) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    last = said.splitlines()[-1]  # on a slow machine lines before it tell how far it is
    assert last.startswith("Stopped.") and kept in last and "Traceback" not in said
    if left is not None:
        assert {one.name for one in tmp_path.iterdir()} - {"text.txt", "plan.toml"} == left


@posix
def test_what_nohup_starts_outlives_its_terminal(start):
    process = start("info", "sample/hourglass", ignored=(signal.SIGHUP,))
    while process.poll() is None:
        process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    assert process.returncode == 0


@posix
def test_the_window_closes_in_order_and_keeps_what_is_open(start, tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("DISPLAY", ":none")
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    process, end = start(ignored=IGNORED), time.monotonic() + 60
    begun = partial(opens, ".h5", process, tmp_path)  # its sample
    while not begun() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1)  # between the file that is opened and the window that has it
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + signal.SIGINT, "")
    assert [one.name for one in (tmp_path / "home").rglob("last.hgviz")]


@posix
def test_a_stop_that_python_loses_stops_all_the_same_and_signals_are_as_before():
    """What is raised in the callback of a weak reference goes nowhere."""
    ended = []
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    class Kept:
        pass

    def task():
        for number in range(3):
            one = Kept()
            weakref.finalize(one, lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(0.1)))
            del one
            ended.append(number)
            progress(number, 3)

    with interrupt_on_signals() as came, pytest.raises(Stopped, match="Half of it is kept"):
        terminal.run(task, "Working", "Half of it is kept")
    assert ended == [0] and not came
    with pytest.raises(KeyboardInterrupt), interrupt_on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    assert before == {one: signal.getsignal(one) for one in before}
