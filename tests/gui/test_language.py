"""Korean in the window: no string lacks it, fields stay, and the window shows it."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from hgviz.gui import language
from hgviz.gui.language import choose, tr

ROOT = Path(__file__).parents[2]
TS = ROOT / "resources/translations/hgviz_ko.ts"
TABLES = ("settings", "palettes", "analysis/metrics")  # of words that the window passes to tr
# calls whose strings nobody reads in the window
UNSEEN = {
    "print", "setStyleSheet", "ValueError", "TypeError", "RuntimeError", "LookupError", "pen",
    "setShortcut", "QKeySequence", "setObjectName", "read_prompts",
}  # fmt: skip


def words_of(path: Path) -> Iterator[str]:
    """The strings of a module that the window shows: those passed to tr, and all others of more
    than one word or with a capital."""
    tree = ast.parse(path.read_text("utf-8"))
    parents, skipped = {}, set()
    for node in ast.walk(tree):
        parents |= dict.fromkeys(ast.iter_child_nodes(node), node)
        if isinstance(node, ast.JoinedStr):
            skipped |= {*node.values}
        elif isinstance(node, ast.Expr):
            skipped.add(node.value)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or node in skipped or not isinstance(node.value, str):
            continue
        text, calls, above = node.value, set(), node
        while above in parents and not isinstance(above, ast.FunctionDef | ast.ClassDef):
            above = parents[above]
            if isinstance(above, ast.Call):
                calls.add(ast.unparse(above.func).rpartition(".")[2])
        is_phrase = " " in text.strip() or (text[:1].isupper() and text[1:].islower())
        if calls & UNSEEN or not ("tr" in calls or is_phrase) or not re.search("[a-z]{2}", text):
            continue
        yield text


@pytest.fixture(scope="module")
def korean() -> dict[str, str]:
    """The translations by their source."""
    messages = ET.parse(TS).getroot().iter("message")
    return {one.findtext("source", ""): one.findtext("translation", "") for one in messages}


@pytest.fixture
def in_korean(tmp_path, monkeypatch):
    monkeypatch.setattr(language, "_translator", None)
    monkeypatch.setattr(language, "resource", lambda name: tmp_path / Path(name).name)
    lrelease = Path(sys.executable).with_name("pyside6-lrelease")
    subprocess.run([lrelease, "-silent", TS, "-qm", tmp_path / "hgviz_ko.qm"], check=True)
    choose("ko")


def test_no_string_of_the_window_lacks_korean(korean):
    paths = [*ROOT.glob("hgviz/gui/*.py"), *(ROOT / f"hgviz/{name}.py" for name in TABLES)]
    missing = {text for path in paths for text in words_of(path) if not korean.get(text)}
    assert not missing


def test_translations_have_the_fields_of_their_sources(korean):
    wrong = [
        source for source, words in korean.items()
        if sorted(re.findall(r"{.*?}", source)) != sorted(re.findall(r"{.*?}", words))
    ]  # fmt: skip
    assert not wrong


def test_words_are_those_of_the_language(in_korean):
    assert tr("Theme") == "테마" and tr("no such words") == "no such words"
    assert tr("Previous {unit}", unit="토큰") == "이전 토큰"
    assert tr("\udcff.h5") == "\udcff.h5"  # the name of a file that is not valid UTF-8
    choose("en")
    assert tr("Theme") == "Theme"
