"""Figures as files: always the same bytes, fonts every printer has, texts that can be found."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.figures.every import KINDS

ROOT = Path(__file__).parents[2]
TEXT = "sand of the 모래 é $x\\input{y}$ مرحبا 👩"
SHORT = len("sand of the 모래 é")  # of most kinds: fonts of many scripts take their time
DATE = "1700000000"
DRAW = """
import os, sys
from hgviz.figures import FORMATS
from tests.figures.every import KINDS, draw
kinds = KINDS if sys.argv[2] == "1" else KINDS[::-1]  # nothing depends on what was drawn before
for dated in ("", sys.argv[3]):
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    os.environ.update({"SOURCE_DATE_EPOCH": dated} if dated else {})
    folder = "dated" if dated else "undated"
    os.mkdir(folder)
    for kind in kinds if not dated else ("scores",):
        for form in FORMATS if kind in ("map", "curve") else ("pdf", "svg", "png"):
            text = sys.argv[1] if kind == "map" else sys.argv[1][: int(sys.argv[4])]
            draw(kind, f"{folder}/{KINDS.index(kind)}.{form}", "2.2in", text)
"""
pytestmark = pytest.mark.timeout(400)  # two processes draw everything there is
poppler = pytest.mark.skipif(not shutil.which("pdffonts"), reason="poppler-utils is not here")


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Two folders: every figure in every format, by two processes that share nothing."""
    folders, runs = [], []
    for seed in ("1", "2"):
        folder = tmp_path_factory.mktemp(f"run{seed}")
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", DRAW, TEXT, seed, DATE, str(SHORT)]
        runs.append(subprocess.Popen(command, cwd=folder, env=env))
        folders.append(folder)
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    return folders


def test_every_figure_has_the_same_bytes_in_every_run(twice):
    found = [{str(p.relative_to(one)): p.read_bytes() for p in one.rglob("*.*")} for one in twice]
    assert len(found[0]) > len(KINDS) * 3
    assert set(found[0]) == set(found[1])
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
    for content in found[0].values():
        assert str(twice[0]).encode() not in content and b"/tmp" not in content


def test_a_date_is_in_a_figure_only_where_it_was_asked_for(twice):
    def files(folder):
        name = str(KINDS.index("scores"))
        return ((twice[0] / folder / f"{name}.{form}").read_bytes() for form in ("pdf", "svg"))

    pdf, svg = files("dated")
    assert b"/CreationDate (D:20231114" in pdf and b"2023-11-14" in svg
    pdf, svg = files("undated")
    assert b"/CreationDate" not in pdf and b"<dc:date>" not in svg


@pytest.mark.parametrize("kind", KINDS)
def test_fonts_of_a_pdf_are_embedded_truetype(twice, kind):
    content = (twice[0] / "undated" / f"{KINDS.index(kind)}.pdf").read_bytes()
    subtypes = re.findall(rb"/Type /Font\b[^>]*?/Subtype /(\w+)|/Subtype /(\w+)[^>]*?/Type /Font\b",
                          content)  # fmt: skip
    assert {one or other for one, other in subtypes} <= {b"Type0", b"CIDFontType2", b"TrueType"}
    assert b"/Type3" not in content and b"/FontFile3" not in content
    assert content.count(b"/FontFile2") == content.count(b"/Type /FontDescriptor") > 0
    assert b"/ToUnicode" in content


@poppler
@pytest.mark.parametrize("kind", ["map", "links", "levels", "rollout", "compare"])
def test_the_tokens_can_be_selected(twice, kind):
    path = twice[0] / "undated" / f"{KINDS.index(kind)}.pdf"
    words = subprocess.run(
        ["pdftotext", "-raw", path, "-"], capture_output=True, check=True, timeout=100
    ).stdout
    said = "".join(words.decode().split())
    assert "sand" in said or set("sand") <= set(said)
    sand, accent = ("<EB>", "<C3>") if kind == "links" else ("모", "é")  # bytes are tokens
    assert sand in said
    assert accent in said or kind == "map"  # which has room for some words only
    assert kind != "map" or set("مرحبا") & set(said)
    svg = (twice[0] / "undated" / f"{KINDS.index(kind)}.svg").read_text()
    assert html.escape(sand) in svg and "<text" in svg
