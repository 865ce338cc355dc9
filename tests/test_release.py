"""What is given to others: licences of all that is in it, and words for desktops that are true."""

import configparser
import re
import shutil
import sys
import tomllib
import xml.etree.ElementTree as ET
from importlib.metadata import Distribution
from pathlib import Path

import pytest
import yaml
from PIL import Image

import hgviz
import release
from hgviz.store import write_capture
from hgviz.store.schema import STUDY

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


def test_icons_are_drawn_in_every_size(tmp_path):
    release.icons(tmp_path)
    for side in release.ICONS:
        with Image.open(tmp_path / f"{side}x{side}" / "apps" / "hgviz.png") as image:
            assert image.size == (side, side)
            assert image.getpixel((0, 0))[3] == 0 < image.getpixel((side // 2, side // 2))[3]


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


def test_make_has_the_packages_that_check():
    made = (ROOT / "Makefile").read_text()
    named = re.search(r"^RELEASE_PACKAGES := (.*)$", made, re.MULTILINE)
    assert named and set(named[1].split()) == {package for package, _ in release.CHECKS}
