"""`make release`: what is given to others, made, tried where nothing else is, and measured.

dist/ gets the source, the wheel and the bundle, as one folder and as one file that installs it. The
wheel is tried in an empty environment, from an empty folder; the bundle without Python, a home or
any setting. A library in the bundle whose licence text is not found ends it. Some ten minutes.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackagePath, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hgviz import __version__

ROOT = Path(__file__).resolve().parent
DIST, WORK = ROOT / "dist", ROOT / "build" / "release"
LICENCES, DESKTOP = ROOT / "resources" / "licenses", ROOT / "resources" / "desktop"
SYSTEM = f"{platform.system().lower()}-{platform.machine()}"
ICONS = (16, 24, 32, 48, 64, 128, 256, 512)  # px
ROUNDS = 5
TASKS = (["selftest"], ["info", "sample/hourglass"], ["demo", "--headless", "out"])
CHECKS = (  # of a folder `share`; the Debian package that has the program
    ("desktop-file-utils", ["desktop-file-validate", "applications/hgviz.desktop"]),
    (
        "appstream",
        ["appstreamcli", "validate", "--no-net", "metainfo/org.hgviz.hgviz.metainfo.xml"],
    ),
    ("shared-mime-info", ["update-mime-database", "mime"]),
)
TOOLS = {"binutils", "makeself"}  # the Debian packages that have strip and makeself


def main() -> int:
    """All of it, and a table of sizes."""
    shutil.rmtree(WORK, ignore_errors=True)
    wheel, source = packages()
    python = environment(wheel)
    tried([str(python.with_name("hgviz"))])
    bundle = bundled(python)
    desktop(bundle / "share")
    tried([str(bundle / "hgviz")])
    packed = installer(bundle)
    print(f"\nhgviz {__version__}, {SYSTEM}")
    for path in (source, wheel, bundle, packed):
        print(f"  {size(path) / 1e6:8.1f} MB  {path.relative_to(ROOT)}")
    print(f"  {started(bundle / 'hgviz'):8.2f} s   until the bundle's window is painted")
    return 0


def say(words: str) -> None:
    """What comes next."""
    print(f"== {words}", flush=True)


def run(*words: str | Path, **given: Any) -> None:
    """Run a program; the end of the release where it fails."""
    code = subprocess.run([str(one) for one in words], **given).returncode
    if code:
        raise SystemExit(f"{Path(words[0]).name} ended with code {code}: no release")


# --- wheel and source -----------------------------------------------------------------------------


def packages() -> tuple[Path, Path]:
    """The wheel, made from the source distribution, and that. A checkout makes the same wheel."""
    say("source and wheel")
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", WORK, ROOT)
    name = f"hgviz-{__version__}-py3-none-any.whl"
    if (DIST / name).read_bytes() != (WORK / name).read_bytes():
        raise SystemExit(
            "The source distribution makes another wheel than the checkout: no release"
        )
    return DIST / name, DIST / f"hgviz-{__version__}.tar.gz"


def environment(wheel: Path) -> Path:
    """The Python of a new environment that has the wheel and what it needs."""
    say("an empty environment")
    run(sys.executable, "-m", "venv", WORK / "env")
    python = WORK / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    return python


def tried(program: Sequence[str]) -> None:
    """Prove a program: from an empty folder, with an empty home and nothing else set."""
    say(f"trying {Path(program[0]).relative_to(ROOT)}")
    for words in TASKS:
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
            settings = {"HOME": home, "PATH": "/nonexistent", "LANG": "C.UTF-8"}
            run(*program, *words, cwd=folder, env=settings)


# --- bundle ---------------------------------------------------------------------------------------


def bundled(python: Path) -> Path:
    """The one-folder bundle of what is in an environment; hgviz.spec says of what it consists."""
    say("bundle")
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "pyinstaller")
    places = ("--distpath", DIST, "--workpath", WORK / "pyinstaller")
    run(
        python,
        "-m",
        "PyInstaller",
        "--noconfirm",
        "--log-level",
        "WARN",
        *places,
        ROOT / "hgviz.spec",
    )
    for library in (DIST / "hgviz/_internal/torch/lib").iterdir():
        run("strip", "--strip-unneeded", library)  # a fifth of libtorch is names for debuggers
    return DIST / "hgviz"


def installer(bundle: Path) -> Path:
    """The bundle as one file that unpacks itself, installs the bundle and starts it; tried with a
    home of its own."""
    say("one file that installs the bundle")
    shutil.copy(DESKTOP / "install.sh", bundle)
    path = DIST / f"hgviz-{__version__}-{SYSTEM}.run"
    words = ("--quiet", "--nox11", "--sha256", "--tar-quietly")
    run("makeself", *words, bundle, path, f"hgviz {__version__}", "./install.sh")
    with tempfile.TemporaryDirectory() as home:
        run(path, "--quiet", env={"HOME": home, "PATH": os.defpath})
        run(Path(home, ".local/bin/hgviz"), "--version", env={"HOME": home})
    return path


def size(path: Path) -> int:
    """Bytes of a file, or of all in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(one.lstat().st_size for one in path.rglob("*") if not one.is_dir())


def started(program: Path) -> float:
    """Seconds from start to end of a program that leaves when its window is painted, median."""
    settings = os.environ | {"HGVIZ_EXIT_AFTER_PAINT": "1", "QT_QPA_PLATFORM": "offscreen"}
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        run(program, env=settings)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


# --- desktop --------------------------------------------------------------------------------------


def desktop(share: Path) -> None:
    """Write what a desktop wants to know, as folders that go below ~/.local; check it."""
    say("desktop entry, metainfo, MIME types, icons")
    places = {
        "hgviz.desktop": "applications/hgviz.desktop",
        "org.hgviz.hgviz.metainfo.xml": "metainfo/org.hgviz.hgviz.metainfo.xml",
        "hgviz.mime.xml": "mime/packages/hgviz.xml",
        "../icons/hgviz.svg": "icons/hicolor/scalable/apps/hgviz.svg",
    }
    for name, place in places.items():
        (share / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DESKTOP / name, share / place)
    icons(share / "icons" / "hicolor")
    with tempfile.TemporaryDirectory() as folder:  # one of the checks leaves files behind
        copy = shutil.copytree(share, Path(folder) / "share")
        for package, words in CHECKS:
            if shutil.which(words[0]):
                run(*words, cwd=copy, env=os.environ | {"XDG_DATA_DIRS": str(copy)})
            else:
                print(f"{words[0]} is not here: {words[-1]} is not checked ({package} has it)")


def icons(folder: Path) -> None:
    """The icon in pixels, in every size that is asked for."""
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    drawn = QSvgRenderer(str(ROOT / "resources" / "icons" / "hgviz.svg"))
    for side in ICONS:
        image = QImage(side, side, QImage.Format.Format_ARGB32)
        image.fill(Qt.GlobalColor.transparent)
        with QPainter(image) as painter:
            drawn.render(painter)
        path = folder / f"{side}x{side}" / "apps" / "hgviz.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not image.save(str(path)):
            raise SystemExit(f"{path} could not be written: no release")


# --- licences -------------------------------------------------------------------------------------

# Installed without the text of their licence, which resources/licenses has
KEPT = {
    "pyside6-essentials": ("LGPL-3.0.txt", "GPL-3.0.txt", "qt-third-party.txt"),
    "shiboken6": ("LGPL-3.0.txt", "GPL-3.0.txt"),
    "tokenizers": ("Apache-2.0.txt",),
}
TEXT = re.compile(r"(^|/)(licen[cs]es?|sboms)/|(licen[cs]e|copying|notice|copyright|authors)", re.I)
COMMON = Path("/usr/share/common-licenses")  # where Debian's notices refer to


@dataclass(frozen=True)
class Notice:
    """What is said of a library in the bundle. texts: each with its name below its folder."""

    name: str
    version: str
    licence: str
    source: str
    texts: tuple[tuple[str, Path], ...]
    package: str = "generic"  # its kind in a package URL


def notices(sources: Iterable[str]) -> list[tuple[str, str]]:
    """The licences of all that a bundle is made from, as pairs of (name below licenses, file).

    SystemExit, naming them, where any has no text; an owner is looked for of every file.
    """
    found = list(of_files({Path(one) for one in sources}))
    missing = sorted(one.name for one in found if not one.texts)
    if missing:
        raise SystemExit(
            f"No text of a licence was found for {', '.join(missing)}: no release. "
            "Put it into resources/licenses and name it in KEPT of release.py."
        )
    pairs = [(f"{one.name}/{name}", str(text)) for one in found for name, text in one.texts]
    table, bill = WORK / "bundled.md", WORK / "sbom.cdx.json"
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text("\n".join(rows(found)) + "\n", "utf-8")
    bill.write_text(json.dumps(bill_of_materials(found), indent=1), "utf-8")
    own = (table, bill, ROOT / "LICENSE")
    return [*pairs, *((path.name, str(path)) for path in own)]


def rows(found: Iterable[Notice]) -> Iterator[str]:
    """The table of what is bundled, in Markdown."""
    yield "# What the bundle is made of\n"
    yield "| name | version | licence | source | texts |\n|---|---|---|---|---|"
    for one in sorted(found, key=lambda one: one.name.lower()):
        yield f"| {one.name} | {one.version} | {one.licence} | {one.source} | {one.name}/ |"


def bill_of_materials(found: Iterable[Notice]) -> dict[str, Any]:
    """The same as a software bill of materials, in CycloneDX 1.6."""
    components = [
        {
            "type": "library",
            "name": one.name,
            "version": one.version,
            "purl": f"pkg:{one.package}/{quote(one.name.lower())}@{quote(one.version)}",
            "licenses": [{"license": {"name": one.licence}}],
            "externalReferences": [{"type": "website", "url": one.source}],
        }
        for one in sorted(found, key=lambda one: one.name.lower())
    ]
    program = {"type": "application", "name": "hgviz", "version": __version__}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": program},
        "components": components,
    }


def of_files(files: set[Path]) -> Iterator[Notice]:
    """One notice for each library that some files are of; without a text for those of nobody."""
    rest = {one.resolve(): one for one in files if one.is_absolute()}
    for each in distributions():
        own = {Path(str(each.locate_file(name))).resolve() for name in each.files or ()}
        if own & rest.keys():
            yield of_distribution(each)
            rest = {path: one for path, one in rest.items() if path not in own}
    libraries = Path(sysconfig.get_path("purelib")).resolve()
    rest = {
        path: one
        for path, one in rest.items()
        if path.is_relative_to(libraries) or not path.is_relative_to(ROOT)
    }
    packages = debian(rest)
    for package in sorted(set(packages.values())):
        yield of_debian(package)
    python = Path(sys.base_prefix).resolve()
    alone = [path for path in rest if path not in packages]
    if any(path.is_relative_to(python) for path in alone):
        text = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
        texts = ((text.name, text),) if text.exists() else ()
        yield Notice("Python", platform.python_version(), "PSF-2.0", "https://python.org", texts)
    for path in alone:
        if not path.is_relative_to(python):
            yield Notice(path.name, "", "", str(path), ())


def of_distribution(one: Distribution) -> Notice:
    """The notice of what pip installed: the texts beside its metadata, or those kept here."""
    facts, name = one.metadata, one.metadata["Name"]
    texts = [
        (inside(path), Path(str(one.locate_file(path))))
        for path in one.files or ()
        if path.parts[0].endswith(".dist-info") and TEXT.search("/".join(path.parts[1:]))
    ]
    kept = KEPT.get(re.sub(r"[-_.]+", "-", name).lower(), ())
    texts += [(text, LICENCES / text) for text in kept]
    licence = facts.get("License-Expression") or (facts.get("License") or "").strip()
    said = [
        one.rpartition(":: ")[2] for one in facts.get_all("Classifier") or () if "License" in one
    ]
    if not licence or "\n" in licence:
        licence = ", ".join(said) or "see its text"
    links = dict(one.split(", ", 1) for one in facts.get_all("Project-URL") or ())
    known = {label.lower(): link for label, link in links.items()}
    wanted = ("source", "source code", "repository", "github", "homepage")
    link = next((known[label] for label in wanted if label in known), facts.get("Home-page"))
    return Notice(
        name, one.version, licence, link or f"https://pypi.org/project/{name}", tuple(texts), "pypi"
    )


def inside(path: PackagePath) -> str:
    """The name of a text below the folder of its library."""
    parts = path.parts[1:]
    return "/".join(parts[1:] if parts[0] == "licenses" and len(parts) > 1 else parts)


def debian(paths: Iterable[Path]) -> dict[Path, str]:
    """The Debian packages that files are of, for those that are of any."""
    # merged /usr: packages may list /lib for what lies in /usr/lib
    names = {str(path): path for path in paths}
    names |= {
        name.removeprefix("/usr"): path for name, path in names.items() if name.startswith("/usr/")
    }
    if not names or not shutil.which("dpkg-query"):
        return {}
    told = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True).stdout
    lines = (
        line.rpartition(": ") for line in told.splitlines() if not line.startswith("diversion")
    )
    return {names[name]: package for package, _, name in lines if name in names}


def of_debian(package: str) -> Notice:
    """The notice of a package of the system, with the common licences it refers to."""
    words = ["dpkg-query", "-W", "-f", "${Package}\n${Version}\n${Homepage}", package]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    name, version, home = (told + "\n\n").split("\n")[:3]
    text = Path("/usr/share/doc") / name / "copyright"
    if not text.exists():
        return Notice(name, version, "", home, (), "deb/debian")
    said = text.read_text("utf-8", errors="replace")
    licences = dict.fromkeys(re.findall(r"^License: *(\S.*)$", said, re.MULTILINE))
    common = {one.rstrip(".") for one in re.findall(rf"{COMMON}/([\w.+-]+)", said)}
    texts = [(text.name, text), *((one, COMMON / one) for one in sorted(common))]
    texts = [(label, path) for label, path in texts if path.exists()]
    source = home or f"https://packages.debian.org/source/{name}"
    licence = "; ".join(licences) or "see its text"
    return Notice(name, version, licence, source, tuple(texts), "deb/debian")


if __name__ == "__main__":
    sys.exit(main())
