"""The house plan, held by tests: who imports what, how long, how light, and where tables live."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import requires
from pathlib import Path

import pytest

from hgviz.store import write_capture
from tests.budget import circles

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "hgviz").rglob("*.py"))
COLOUR = re.compile(r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
COLOUR_MODULES = {"hgviz/gui/theme.py", "hgviz/palettes.py"}
TABLES = (
    "ACTIVATIONS", "PALETTES", "FIGURES", "READERS", "METRICS", "VIEWS", "PANELS", "ACTIONS",
    "VERBS",
)  # fmt: skip


def name(path):
    return path.relative_to(ROOT).as_posix()


class Seen:
    """What the tests look for in a module, read once: its whole tree would be large to keep."""

    def __init__(self, path):
        tree = ast.parse(path.read_text())
        self.colours, self.imports, self.tables = [], set(), []
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str) and COLOUR.search(node.value):
                    self.colours.append((node.lineno, node.value))
            elif isinstance(node, ast.Call):
                made = ast.unparse(node.func).rpartition(".")[2] in ("QColor", "qRgb", "qRgba")
                if made and node.args and all(isinstance(one, ast.Constant) for one in node.args):
                    self.colours.append((node.lineno, ast.unparse(node)))
            elif isinstance(node, ast.Import):
                self.imports |= {one.name.partition(".")[0].lower() for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.imports.add(node.module.partition(".")[0].lower())
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self.tables += [(one.id, node.value) for one in targets if is_table(one)]


def is_table(target):
    return isinstance(target, ast.Name) and target.id in TABLES


seen = cache(Seen)


def run(*arguments):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_after(code):
    """The top-level modules that a fresh interpreter has after running some code."""
    shown = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    return set(run("-c", f"{code}\n{shown}").splitlines()[-1].split())


def test_no_modules_import_each_other_in_a_circle():
    assert circles() == 0


def test_the_packages_import_each_other_as_the_contracts_allow():
    run("-c", "import sys; from importlinter.cli import lint_imports as lint; sys.exit(lint())")


def test_a_module_has_at_most_1200_lines():
    """And 1,600 in the window, whose rooms were merged and wait for their rebuilding."""
    for path in MODULES:
        limit = 1600 if "gui" in path.parts else 1200
        assert len(path.read_text().splitlines()) <= limit, path


def test_the_nouns_are_light():
    heavy = {"torch", "matplotlib", "PySide6", "h5py", "typer", "rich"}
    assert not loaded_after("import hgviz.core, hgviz.activations") & heavy


@pytest.mark.parametrize("words", [["--help"], ["study", "run", "--help"]])
def test_the_help_is_light(words):
    heavy = {"numpy", "torch", "matplotlib", "PySide6", "h5py", "tokenizers", "msgspec", "dask"}
    help_ = f"from hgviz.__main__ import main; assert main({words}) == 0"
    assert not loaded_after(help_) & (heavy | {"distributed"})


def test_captures_are_viewed_and_compared_without_torch(tmp_path, capture):
    path = write_capture(tmp_path / "one.h5", capture)
    view = (
        "from hgviz.store import open_capture\n"
        f"seen = open_capture({str(path)!r})\n"
        "seen.maps[0].read(seen.spec.layers[0].heads[0])"
    )
    assert not loaded_after(view) & {"torch", "matplotlib", "PySide6", "tokenizers"}
    compare = (
        f"from hgviz.__main__ import main; assert main(['compare', *[{str(path)!r}] * 2]) == 0"
    )
    run("-c", f"import sys; sys.modules['torch'] = None\n{compare}")


def test_the_command_line_works_without_graphics_libraries():
    run("-c", "import sys; sys.modules['PySide6'] = None; import hgviz.cli, hgviz.tasks")


def test_jobs_and_settings_need_no_numpy():
    loaded = loaded_after("import hgviz.jobs, hgviz.settings, hgviz.files")
    assert not loaded & {"numpy", "torch", "PySide6"}


def test_colours_are_named_in_theme_and_palettes_only():
    for path in MODULES:
        assert name(path) in COLOUR_MODULES or not seen(path).colours, path


def test_a_table_is_written_out_in_one_place():
    """No directory scans, no registration by import: a reader sees the list."""
    for table in TABLES:
        found = [value for path in MODULES for name, value in seen(path).tables if name == table]
        assert len(found) == 1, table
        (value,) = found
        rows = value.generators[0].iter if isinstance(value, ast.DictComp) else value
        assert isinstance(rows, ast.Tuple | ast.Dict), table


def test_every_dependency_is_used():
    # msgspec writes TOML with one, palettes are named in the other, the last is imported as PIL
    used = {"tomli_w", "cmap", "pillow"}
    for path in MODULES:
        used |= seen(path).imports
    named = {
        re.split(r"[<>=; ]", line)[0].removesuffix("-essentials").replace("-", "_")
        for line in requires("hgviz") or []
        if "extra ==" not in line
    }
    assert named <= used


def test_the_pins_lie_within_the_ranges():
    from packaging.requirements import Requirement

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().split("==") for line in lines if line and line[0] != "#")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"] + project["optional-dependencies"]["test"]:
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate():
            assert pins[wanted.name.lower()] in wanted.specifier, text


def test_pyside_keeps_its_references():
    """6.12.0 on Python 3.11 loses a reference on every void call and aborts before this ends."""
    run(
        "-c",
        "from PySide6.QtCore import QObject\n"
        "one = QObject()\n"
        "for _ in range(100_000): one.setObjectName('a')",
    )


def test_a_widget_is_painted_inside_a_with():
    # an error that leaves a painter open on a widget takes the whole program down
    for path in (ROOT / "hgviz/gui").rglob("*.py"):
        assert not re.search(r"= QPainter\(self", path.read_text()), path
