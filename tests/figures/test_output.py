"""A figure in a file: the same bytes, exact widths, where it is from; for LaTeX and on a screen."""

import errno
import html
import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hgviz import tasks
from hgviz.core import Display, Selection
from hgviz.errors import HgvizError, HgvizWarning
from hgviz.figures import Spec, format_of, labels, output, points
from hgviz.figures.cells import seen_cells
from hgviz.figures.labels import BOX
from hgviz.figures.page import MOST_ACROSS, dots_per_inch
from tests.figures.making import (
    HOSTILE,
    KINDS,
    OF_CAPTURE,
    SEA,
    draw,
    panel_of,
    plain,
)
from tests.making import make_capture

ROOT = Path(__file__).parents[2]
CAPTURE = make_capture(SEA)
CHOSEN = Selection(12, 2, 60, 29)
poppler = pytest.mark.skipif(not shutil.which("pdffonts"), reason="poppler-utils is not here")
needs_latex = pytest.mark.skipif(not shutil.which("pdflatex"), reason="LaTeX is not here")
pytestmark = pytest.mark.timeout(400)  # two processes draw everything there is


def run(*command, **more):
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=100, **more
    ).stdout


# --- the same bytes -------------------------------------------------------------------------------

TEXT = "sand of the 모래 é $x\\input{y}$ مرحبا 👩"
SHORT = len("sand of the 모래 é")  # of most kinds: fonts of many scripts take their time
DRAW = """
import os, sys
from hgviz.figures import FORMATS
from hgviz.figures.output import draw
from tests.figures.making import KINDS, panel_of
kinds = KINDS if sys.argv[2] == "1" else KINDS[::-1]  # nothing depends on what was drawn before
for dated in ("", "1700000000"):
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    os.environ.update({"SOURCE_DATE_EPOCH": dated} if dated else {})
    folder = "dated" if dated else "undated"
    os.mkdir(folder)
    for kind in kinds if not dated else ("scores",):
        for form in FORMATS if kind in ("map", "curve") else ("pdf", "svg"):
            text = sys.argv[1] if kind == "map" else sys.argv[1][: int(sys.argv[3])]
            draw(panel_of(kind, "2.2in", text), f"{folder}/{kind}.{form}")
"""


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Two folders: every figure in every format, by two processes that share nothing."""
    folders, runs = [], []
    for seed in ("1", "2"):
        folder = tmp_path_factory.mktemp(f"run{seed}")
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", DRAW, TEXT, seed, str(SHORT)]
        runs.append(subprocess.Popen(command, cwd=folder, env=env))
        folders.append(folder)
    assert [process.wait(timeout=300) for process in runs] == [0, 0]
    return folders


def test_every_figure_has_the_same_bytes_in_every_run(twice):
    found = [{str(p.relative_to(one)): p.read_bytes() for p in one.rglob("*.*")} for one in twice]
    assert len(found[0]) > len(KINDS) * 2 and set(found[0]) == set(found[1])
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
    for content in found[0].values():
        assert str(twice[0]).encode() not in content and b"/tmp" not in content


def test_a_date_is_in_a_figure_only_where_it_was_asked_for(twice):
    for folder, is_dated in (("dated", True), ("undated", False)):
        for form, date, tag in (("pdf", b"D:20231114", b"/CreationDate"),
                                ("svg", b"2023-11-14", b"<dc:date>")):  # fmt: skip
            content = (twice[0] / folder / f"scores.{form}").read_bytes()
            assert (tag in content, date in content) == (is_dated, is_dated)


def test_fonts_of_a_pdf_are_embedded_truetype(twice):
    for path in (twice[0] / "undated").glob("*.pdf"):
        content = path.read_bytes()
        fonts = re.findall(rb"<<[^<>]*/Type /Font\b[^<>]*>>", content)
        subtypes = {re.search(rb"/Subtype /(\w+)", font)[1] for font in fonts}
        assert subtypes and subtypes <= {b"Type0", b"CIDFontType2", b"TrueType"}, path.name
        assert content.count(b"/FontFile2") == content.count(b"/Type /FontDescriptor") > 0
        assert b"/ToUnicode" in content


@poppler
@pytest.mark.parametrize("kind", ["map", "links", "levels"])
def test_the_tokens_can_be_selected(twice, kind):
    path = twice[0] / "undated" / f"{kind}.pdf"
    text = "".join(run("pdftotext", "-raw", path, "-").split())
    sand, accent = ("<EB>", "<C3>") if kind == "links" else ("모", "é")  # bytes are tokens
    assert sand in text and ("sand" in text or set("sand") <= set(text))
    assert accent in text or kind == "map"  # which has room for some words only
    assert kind != "map" or set("مرحبا") & set(text)
    svg = (twice[0] / "undated" / f"{kind}.svg").read_text()
    assert html.escape(sand) in svg and "<text" in svg


# --- widths ---------------------------------------------------------------------------------------


def test_widths_are_exact_in_every_format(tmp_path):
    spec = Spec("map", CHOSEN, width="8.9 cm")
    pdf = draw(spec, CAPTURE, tmp_path / "f.pdf").read_bytes()
    svg = draw(spec, CAPTURE, tmp_path / "f.svg").read_text()
    found = [float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)[1]),
             float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)[1])]  # fmt: skip
    with Image.open(draw(spec, CAPTURE, tmp_path / "f.png")) as image:
        found.append(image.width / labels.DOTS * 72)
        assert image.info["dpi"][0] == pytest.approx(labels.DOTS, abs=0.1)
    assert found == pytest.approx([89 * 72 / 25.4] * 3, abs=0.5)


def test_a_width_is_a_preset_or_a_length_and_nothing_else():
    widths = {"neurips": 396, "acl": 218.16, "3.25": 234, "89mm": 252.28, "252pt": 252}
    for name, width in widths.items():
        assert points(name) == pytest.approx(width, abs=0.01)
    assert dots_per_inch(864) == 300 and dots_per_inch(2880) * 40 == pytest.approx(MOST_ACROSS)
    for wrong in ("wide", "", "-3in", "0", "3 parsec", "nan", "1e9", "0.5in"):
        with pytest.raises(HgvizError):
            points(wrong)


# --- what a file says -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OF_CAPTURE)
def test_hostile_texts_give_a_sound_svg_that_holds_them_as_text(kind, tmp_path):
    spec = Spec(kind, title="</text><script>\x00\u202e")
    path = draw(spec, make_capture(HOSTILE[:40]), tmp_path / "f.svg")
    root = ElementTree.parse(path).getroot()
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    assert f"</text><script>\\x00{BOX}" in {node.text for node in root.iter()}


def test_a_character_without_a_font_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "has_glyph", str.isascii)
    with pytest.warns(HgvizWarning, match=r"f.svg: no installed font has U\+BAA8.*printed as □"):
        draw(Spec("map", title="모"), plain(["a"]), tmp_path / "f.svg")


def test_the_file_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    capture = replace(CAPTURE, path="/home/ann/secret/sea.h5")
    spec = Spec("map", CHOSEN, width="icml")
    with Image.open(draw(spec, capture, tmp_path / "f.png")) as image:
        record, title = image.info["Description"], image.info["Title"]
    assert title == f"Attention map of one head: {CAPTURE.spec.name}"
    for part in ("checkpoint: " + "0" * 64, "layer: 12 (post.0.1)", "head: 2", "query: 60",
                 f"text: {CAPTURE.prompt.digest}", "program: hgviz ",
                 "command: hgviz figure sea.h5 --kind map --layer 12 --head 2"):  # fmt: skip
        assert part in record
    draw(spec, capture, tmp_path / "f.svg"), draw(spec, capture, tmp_path / "f.pdf")
    for file in tmp_path.iterdir():
        assert b"/home" not in file.read_bytes() and b"secret" not in file.read_bytes()
    assert "ann" not in output.without_folders("hgviz figure /home/ann/'unclosed")


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "name", "error"),
    [
        (Spec("pie"), "f.pdf", "unknown kind of figure .*map, links, wall, levels"),
        (Spec("map"), "f.gif", "the formats are pdf"),
        (Spec("map", width="wide"), "f.pdf", "not a figure width"),
        (Spec("map", Selection(99, 0)), "f.pdf", "no layer 99"),
        (Spec("map", Selection(0, 0, 10_000)), "f.pdf", "no token 10000"),
        (Spec("map"), "no/such/folder/f.pdf", "does not exist"),
        (Spec("map"), "folder.pdf", "is a folder"),
        (Spec("rollout"), "f.pdf", "is not an attention rollout"),
        (Spec("image"), "f.pdf", "not of an image with patches"),
        (Spec("map", Selection(13, 0)), "f.pdf", "layer 13 is not in this capture"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_said_in_words(spec, name, error, tmp_path):
    (tmp_path / "folder.pdf").mkdir()
    capture = make_capture(SEA[:40])
    if spec.selection.layer == 13:
        layer = replace(capture.spec.layers[12], index=13)
        spec_ = replace(capture.spec, layers=(*capture.spec.layers, layer))
        capture = replace(capture, spec=spec_, maps=(*capture.maps, None))
    with pytest.raises(HgvizError, match=f"(?i){error}"):
        draw(spec, capture, tmp_path / name)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_full_disk_leaves_the_old_figure(tmp_path, monkeypatch):
    path = tmp_path / "f.pdf"
    path.write_bytes(b"before")

    def fail(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(HgvizError, match="(?i)no space left.*free some space"):
        draw(Spec("map"), CAPTURE, path)
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == b"before"


def test_figures_are_light_until_one_is_drawn_and_never_load_pyplot(tmp_path):
    code = (
        "import sys, hgviz.figures as f; f.Spec(); f.points('icml'); f.format_of('x.svg');"
        "print(sorted({'matplotlib', 'PIL', 'torch', 'PySide6', 'cmap'} & set(sys.modules)));"
        "from tests.figures.making import draw; from tests.making import make_capture;"
        "draw(f.Spec(), make_capture('abc'), sys.argv[1]);"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert run(sys.executable, "-c", code, str(tmp_path / "f.pdf")).split() == ["[]", "False"]


# --- LaTeX ----------------------------------------------------------------------------------------

COMMANDS = {*re.findall(r"\\(?:[A-Za-z]+|.)", " ".join(output.LATEX_SIGNS.values()))}
COMMANDS |= {rf"\{accent}" for accent in output.LATEX_ACCENTS.values()}
COMMANDS |= {r"\i", r"\j", r"\kern", r"\ ", r"\hgvizother", r"\hgvizleftward"}


@given(st.text(max_size=30) | st.text(alphabet="\\{}$&#%_^~`'\"-,<>|!? éßœŁ한م\u0301", max_size=12))
def test_nothing_in_a_text_is_a_command(words):
    written = output.latex_text(words)
    written.encode()
    assert set(re.findall(r"\\(?:[A-Za-z]+|.)", written, re.DOTALL)) <= COMMANDS
    bare = re.sub(r"\\(?:[A-Za-z]+|.)", "", written, flags=re.DOTALL)
    assert not set(bare) & set("$&#%_^~\\\n\r\t\0")
    depth = np.cumsum([(sign == "{") - (sign == "}") for sign in bare])
    assert not len(depth) or (depth.min() >= 0 and depth[-1] == 0)


B = output.LATEX_BOX


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("é Ç ŵ ł ß “x” a–b", r"\'{e} \c{C} \^{w} \l{} \ss{} \textquotedblleft{}x"
         r"\textquotedblright{} a\textendash{}b"),
        ("--off ''a''", r"-\kern0pt -off '\kern0pt 'a'\kern0pt '"),
        ("a 한국 어 b", rf"a \hgvizother{{{B}{B}\ {B}}}{{한국 어}} b"),
        ("سلام", rf"\hgvizleftward{{\hgvizother{{{4 * B}}}{{سلام}}}}"),
        ("नमस्ते", rf"\hgvizother{{{4 * B}}}{{नमस्ते}}"),  # marks have no box of their own
    ],
)  # fmt: skip
def test_what_every_latex_has_is_ascii_and_the_rest_stands_beside_boxes(words, written):
    assert output.latex_text(words) == written


def test_a_figure_for_latex_needs_no_latex_and_names_its_rasters_as_latex_takes_it(tmp_path):
    spec, name = Spec("map", CHOSEN, title="\\input{x} $%&_#^~ ok"), "50 %#$그림{x}.y.pgf"
    text = draw(spec, CAPTURE, tmp_path / name).read_text()
    assert r"\textbackslash{}input\{x\}" in text
    assert not [line for line in text.splitlines() if r"\input{" in line and line[0] != "%"]
    assert r"\$\%\&\_\#\^{}\textasciitilde{}" in text
    rasters = re.findall(r"\\hgvizfolder (.*?\.png)\}", text)
    assert len(rasters) == 2 and all(re.fullmatch(r"[\w-]+\.png", one, re.ASCII) for one in rasters)
    assert {path.name for path in tmp_path.iterdir()} == {name, *rasters}
    assert "% layer: 12 (post.0.1)" in text and f"% text: {CAPTURE.prompt.digest}" in text
    assert format_of("a.b.PGF") == "pgf"
    assert len({output.raster_name(Path(one), 0) for one in ("a b.pgf", "a_b.pgf", "a-b.pgf")}) == 3


def compiled(folder, body):
    """What LaTeX says of a document that has only \\usepackage{pgf}."""
    (folder / "page.tex").write_text(
        r"\documentclass{article}\usepackage{pgf}\newbox\one\begin{document}"
        "\n" + body + "\n\\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    return run(*command, cwd=folder, errors="replace")


@needs_latex
def test_latex_takes_any_text_and_every_kind_as_wide_as_asked(tmp_path):
    (tmp_path / "a folder").mkdir()
    title = "50 % of $x_1$ & \\more <b> |x| \"q\" ``c'' --off 한국 어 مرحبا ½ ŵ Ω 👩 ∑"
    spec = Spec("map", Selection(12, 2), title=title, width="7in")
    draw(spec, make_capture(HOSTILE[:60]), tmp_path / "any text.pgf")
    body = [r'\input{"any text.pgf"}']
    for number, kind in enumerate(KINDS):
        output.draw(panel_of(kind), tmp_path / "a folder" / f"f{number}.pgf")
        file = f'"a folder/f{number}.pgf"'
        body.append(
            rf"\setbox\one\hbox{{\input{{{file}}}}}\typeout{{W{number}:\the\wd\one}}\box\one"
        )
    log = compiled(tmp_path, "\n\n".join(body))
    widths = {int(n): float(w) for n, w in re.findall(r"W(\d+):([\d.]+)pt", log)}
    for number, kind in enumerate(KINDS):
        assert widths[number] * 72 / 72.27 == pytest.approx(points("acl"), abs=0.5), kind


# --- maps as pages of HTML ------------------------------------------------------------------------


LONG_TEXT = "A page that is sent: </script><b>&amp; “it” still reads. " * 3


def page_of(capture, path, **spec):
    panel = tasks.panel(Spec("map", Selection(1, 0), **spec), capture)
    tasks.draw(panel, path)
    text = path.read_text("utf-8")
    (script,) = re.findall(r"const data = (\{.*\});\n", text)
    return text, json.loads(script)


@pytest.mark.parametrize("signed", [False, True])
def test_the_page_holds_every_weight_name_and_colour(tmp_path, signed):
    capture = make_capture(LONG_TEXT[:128], strides=(1, 2), heads=2, signed=signed)
    text, data = page_of(capture, tmp_path / "m.html", display=Display(palette="viridis"))
    expected = capture.maps[1].read(0)
    weights = np.frombuffer(b64decode(data["weights"]), "<f4").reshape(expected.shape)
    np.testing.assert_array_equal(weights, expected.astype(np.float32))
    bits = np.unpackbits(np.frombuffer(b64decode(data["seen"]), np.uint8))[: expected.size]
    np.testing.assert_array_equal(bits.reshape(expected.shape), seen_cells(capture, 1, head=0))
    picture = Image.open(BytesIO(b64decode(data["picture"])))
    assert picture.size == expected.shape[::-1]
    assert (len(data["rows"]), len(data["columns"])) == expected.shape
    assert "hgviz figure" in data["record"] and data["title"] == "Head 1.0"
    assert len(text.encode()) < 300_000
    assert not re.search(r"https?:|src=\"|import |fetch\(", text)
    assert text.count("</script>") == 1  # that of a token is written in another way


def test_what_no_page_can_show_is_refused(tmp_path, monkeypatch):
    capture = make_capture("Sand runs. ", strides=(1,), heads=1)
    panel = tasks.panel(Spec("map", Selection(0, 0)), capture)
    other = replace(panel, spec=replace(panel.spec, kind="links"))
    for one, path, said in (
        (other, tmp_path / "l.html", "of kind links"),
        (panel, tmp_path / "none" / "m.html", "does not exist"),
    ):
        with pytest.raises(HgvizError, match=said):
            tasks.draw(one, path)
    monkeypatch.setattr("hgviz.figures.output.MOST_POSITIONS", 4)
    with pytest.raises(HgvizError, match="the limit for HTML is 4"):
        tasks.draw(panel, tmp_path / "m.html")
    assert not [*tmp_path.iterdir()]
