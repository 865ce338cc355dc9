"""The house plan, held by tests: who imports what, how long, how light, and where tables live;
and what is given to others: licences, and words for desktops that are true."""

import ast
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from functools import cache
from importlib.metadata import Distribution, requires
from pathlib import Path

import pytest
import yaml

import hgviz
import release
from hgviz.store import write_capture
from hgviz.store.schema import STUDY
from tests.budget import circles

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "hgviz").rglob("*.py"))
COLOUR = re.compile(r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
COLOUR_MODULES = {"hgviz/gui/theme.py", "hgviz/palettes.py"}
TABLES = (
    "ACTIVATIONS", "PALETTES", "FIGURES", "READERS", "METRICS", "VIEWS", "PANELS", "MENU_ACTIONS",
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


def test_a_module_has_at_most_1200_lines():
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 1200, path


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


def test_a_widget_is_painted_inside_a_with():
    # an error that leaves a painter open on a widget takes the whole program down
    for path in (ROOT / "hgviz/gui").rglob("*.py"):
        assert not re.search(r"= QPainter\(self", path.read_text()), path


# --- what is given to others ----------------------------------------------------------------------


ROOT = Path(__file__).parents[1]
DESKTOP = ROOT / "resources" / "desktop"
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"


# --- licences -------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A library that pip has installed; install(licence="") leaves its text out."""
    monkeypatch.setattr(release, "WORK", tmp_path / "work")

    def install(licence="The text."):
        facts = tmp_path / "thing-1.2.dist-info"
        facts.mkdir()
        names = ["thing.py", "thing-1.2.dist-info/METADATA"]
        (tmp_path / "thing.py").touch()
        (facts / "METADATA").write_text(
            "Metadata-Version: 2.4\nName: thing\nVersion: 1.2\nLicense-Expression: MIT\n"
            "Project-URL: Source, https://thing.org/source\n"
        )
        if licence:
            (facts / "licenses").mkdir()
            (facts / "licenses" / "LICENSE.txt").write_text(licence)
            names.append("thing-1.2.dist-info/licenses/LICENSE.txt")
        (facts / "RECORD").write_text("".join(f"{name},,\n" for name in names))
        monkeypatch.setattr(release, "distributions", lambda: [Distribution.at(facts)])
        return str(tmp_path / "thing.py")

    return install


def test_a_library_is_bundled_with_its_licence_and_a_row_of_the_table(installed):
    pairs = dict(release.notices([installed()]))
    assert Path(pairs["thing/LICENSE.txt"]).read_text() == "The text."
    assert Path(pairs["LICENSE"]) == ROOT / "LICENSE"
    row = "| thing | 1.2 | MIT | https://thing.org/source | thing/ |"
    assert row in Path(pairs["bundled.md"]).read_text()
    (part,) = json.loads(Path(pairs["sbom.cdx.json"]).read_text())["components"]
    assert part["purl"] == "pkg:pypi/thing@1.2"
    assert part["licenses"] == [{"license": {"name": "MIT"}}]


def test_there_is_no_release_without_a_licence_text_or_an_owner(installed, tmp_path, monkeypatch):
    stray = tmp_path / "stray.so"
    stray.touch()
    with pytest.raises(SystemExit, match="stray"):
        release.notices([installed(), str(stray)])
    shutil.rmtree(tmp_path / "thing-1.2.dist-info")
    library = installed(licence="")
    with pytest.raises(SystemExit, match="for thing: no release"):
        release.notices([library])
    monkeypatch.setattr(release, "KEPT", {"thing": ("LGPL-3.0.txt",)})  # a text kept here
    pairs = dict(release.notices([library, tomllib.__file__, hgviz.__file__]))
    assert "LESSER GENERAL PUBLIC" in Path(pairs["thing/LGPL-3.0.txt"]).read_text()
    assert any(name.startswith(("Python/", "libpython")) for name in pairs)


def test_every_text_that_is_kept_is_there():
    for texts in release.KEPT.values():
        for name in texts:
            assert len((release.LICENCES / name).read_text("utf-8")) > 5000
    said = (release.LICENCES / "README.md").read_text("utf-8")
    kept = {path.name for path in release.LICENCES.iterdir()} - {"README.md", "Apache-2.0.txt"}
    assert kept == set(re.findall(r"`([\w.-]+\.txt)`", said))


# --- desktop --------------------------------------------------------------------------------------


def test_the_bundle_installs_itself_over_an_older_one(tmp_path):
    home = tmp_path / "home of mine"
    for version in ("old", "new"):
        bundle = tmp_path / "unpacked"
        shutil.copytree(DESKTOP, bundle / "share/applications")
        shutil.copy(DESKTOP / "install.sh", bundle)
        (bundle / "hgviz").write_text(f"#!/bin/sh\necho {version} $1\n")
        (bundle / "hgviz").chmod(0o755)
        (bundle / version).touch()
        environment = {"HOME": str(home), "PATH": os.defpath, "DISPLAY": ":0"}
        told = subprocess.check_output([bundle / "install.sh"], env=environment, text=True)
        assert told.splitlines()[-1].strip() == version  # it started
    app = home / ".local/opt/hgviz"
    assert not (app / "old").exists()
    assert not bundle.exists()
    said = subprocess.check_output([home / ".local/bin/hgviz", "again"], text=True)
    assert said == "new again\n"
    entry = (home / ".local/share/applications/hgviz.desktop").read_text()
    assert f'Exec="{app}/hgviz" %F' in entry


def mime_types():
    root = ET.parse(DESKTOP / "hgviz.mime.xml").getroot()
    return {one.get("type"): one for one in root.iter(f"{MIME}mime-type")}


def test_entry_metainfo_and_mime_types_say_the_same():
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(DESKTOP / "hgviz.desktop", "utf-8")
    said = entry["Desktop Entry"]
    meta = ET.parse(DESKTOP / "org.hgviz.hgviz.metainfo.xml").getroot()
    assert said["MimeType"].rstrip(";").split(";") == list(mime_types())
    assert [one.text for one in meta.iter("mediatype")] == list(mime_types())
    assert meta.findtext("launchable") == "hgviz.desktop"
    assert meta.findtext("name") == said["Name"] == "hgviz"
    assert meta.findtext("summary") == said["Comment"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert said["Exec"].split()[0] == meta.findtext("provides/binary") == next(iter(scripts))
    icons = {one.get("name") for one in ET.parse(DESKTOP / "hgviz.mime.xml").iter(f"{MIME}icon")}
    for name in {said["Icon"], *icons}:
        assert (ROOT / "resources" / "icons" / f"{name}.svg").exists()


def test_metainfo_and_citation_are_of_this_version():
    meta = ET.parse(DESKTOP / "org.hgviz.hgviz.metainfo.xml").getroot()
    assert next(meta.iter("release")).get("version") == hgviz.__version__
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == hgviz.__version__
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()


def test_a_file_is_recognised_by_its_beginning(tmp_path):
    weights = [[[1.0, 0.0], [0.5, 0.5]]]
    path = write_capture(tmp_path / "one.h5", tokens=["a", "b"], layers=[{"weights": weights}])
    start = path.read_bytes()
    for kind in ("capture", "study"):
        magic = mime_types()[f"application/x-hgviz-{kind}"].find(f"{MIME}magic/{MIME}match")
        inner = magic.find(f"{MIME}match")
        low, high = map(int, inner.get("offset").split(":"))
        first = magic.get("value").encode().decode("unicode_escape").encode("latin-1")
        assert start.startswith(first)
        if kind == "study":
            assert inner.get("value") == STUDY
        else:
            assert low <= start.index(inner.get("value").encode()) <= high


def test_a_check_that_cannot_be_made_is_named_and_one_that_fails_ends_the_release(
    tmp_path, monkeypatch, capsys
):
    with monkeypatch.context() as patch:
        patch.setattr(release.shutil, "which", lambda name: None)
        release.desktop(tmp_path / "share")
    said = capsys.readouterr().out
    for package, words in release.CHECKS:
        assert f"{words[0]} is not here" in said and package in said
        assert (tmp_path / "share" / words[-1]).exists()
    fails = [sys.executable, "-c", "raise SystemExit(3)"]
    monkeypatch.setattr(release, "CHECKS", [("none", fails)])
    with pytest.raises(SystemExit, match="ended with code 3: no release"):
        release.desktop(tmp_path / "share")


# --- packages -------------------------------------------------------------------------------------


def test_what_the_packages_are_made_from_is_there():
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel, source = targets["targets"]["wheel"], targets["targets"]["sdist"]["include"]
    for path in (*wheel["force-include"], *wheel["shared-data"]):
        assert (ROOT / path).exists()
    for name in ("hgviz", "resources", "release.py", "hgviz.spec", "constraints.txt", "LICENSE"):
        assert f"/{name}" in source and (ROOT / name).exists()
    for page in (ROOT / "docs").glob("*.md"):
        guide = f"hgviz/resources/guide/{page.name}"
        assert wheel["force-include"][f"docs/{page.name}"] == guide


def test_make_has_the_packages_of_a_release():
    made = (ROOT / "Makefile").read_text()
    named = re.search(r"^RELEASE_PACKAGES := (.*)$", made, re.MULTILINE)
    checks = {package for package, _ in release.CHECKS}
    assert named and set(named[1].split()) == checks | release.TOOLS
