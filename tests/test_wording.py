"""The words that people see: all strings of the program and its help pages, without house words.

python -m tests.test_wording     print place and text of each, one a line, to be read
"""

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

ROOT = Path(__file__).parents[1]
HOUSE_WORDS = {  # what readers stumbled over: what to write
    r"(?<!\.)\bbeside\b": "next to, compared with",
    r"\b(is|are|was|were|be) told\b|\btold apart\b": "reported, significantly different",
    r"\bat hand\b": "available",
    r"\b(is|are|was|were) asked for\b": "requested",
    r"\bgo(es)? on\b|\bgone on\b": "resume, continue",
    r"\black(s|ed)?\b": "has no",
    r"\banew\b|\bonce more\b": "again",
    r"\bunasked\b|\bof its own\b|\ba moment\b": "without asking, its own, nothing",
    r"\bwhole models?\b": "full model",
    r"\bheads? (can |that )?go\b|\bworth of\b|\bheads are worth\b": "removed, importance",
    r"(?<!there )\b(is|are) no (?!longer\b|more\b|better\b)\w+": "is not a",
    r"\bexchanged?\b": "replaced",
    r"\bverbs?\b": "command",
    r"\bmend(s|ed)?\b": "fix",
    r"\bby turns\b|\bso many\b": "in turn, N",
}


def text_of(node: ast.expr) -> str:
    """The text of a string or an f-string, with {} for its fields; "" for anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def strings_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string with words in a module; docstrings and field names left out."""
    tree = ast.parse(source)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {*map(id, node.values)}
        elif isinstance(node, ast.Expr):
            skipped.add(id(node.value))
    for node in ast.walk(tree):
        text = text_of(node) if isinstance(node, ast.expr) and id(node) not in skipped else ""
        if (" " in text.strip() or text.istitle()) and re.search("[a-z]{2}", text):
            yield node.lineno, re.sub(r"\{\w+\}", "{}", " ".join(text.split()))


def catalogue() -> Iterator[tuple[str, str]]:
    """Place and text of everything that people see."""
    for path in sorted(ROOT.glob("hgviz/**/*.py")):
        for line, text in strings_of(path.read_text("utf-8")):
            yield f"{path.relative_to(ROOT)}:{line}", text
    for path in sorted([*ROOT.glob("resources/help/*.md"), *ROOT.glob("resources/report/*.html")]):
        for line, text in enumerate(path.read_text("utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{line}", text


def test_no_string_has_a_house_word():
    found = [
        f"{place}: {text} (write: {better})"
        for place, text in catalogue()
        for words, better in HOUSE_WORDS.items()
        if re.search(words, text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def test_the_catalogue_has_every_string_with_words():
    source = 'f("Open {x}", f"{a} of {b} texts", """Two\\n  lines""", "name", tr("{n} off"))'
    assert [text for _, text in strings_of(source)] == [
        "Open {}", "{} of {} texts", "Two lines", "{} off",
    ]  # fmt: skip
    assert len([*catalogue()]) > 5000


if __name__ == "__main__":
    for place, text in catalogue():
        print(place, text, sep="\t")


# --- Korean in the window -------------------------------------------------------------------------


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
