"""Figures for LaTeX: nothing in a text is a command, and LaTeX takes what is written."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hgviz.core import HgvizError, Selection
from hgviz.figures import Spec, format_of, points
from hgviz.figures.files import latex
from tests.figures.every import EVERY, SHEET
from tests.figures.every import draw as draw_any
from tests.figures.texts import HOSTILE, SEA, draw
from tests.making import make_capture

CAPTURE = make_capture(SEA)
SOME = Selection(12, 2, 60, 29)
LATEX = ("pgf", "tikz.tex")
COMMANDS = {one for sign in latex.SIGNS.values() for one in re.findall(r"\\(?:[A-Za-z]+|.)", sign)}
COMMANDS |= {rf"\{accent}" for accent in latex.ACCENTS.values()}
COMMANDS |= {r"\i", r"\j", r"\kern", r"\ ", r"\hgvizother", r"\hgvizleftward"}

needs_latex = pytest.mark.skipif(not shutil.which("pdflatex"), reason="LaTeX is not here")


# --- texts ----------------------------------------------------------------------------------------


@given(st.text(max_size=30) | st.text(alphabet="\\{}$&#%_^~`'\"-,<>|!? éßœŁ한م\u0301", max_size=12))
def test_nothing_in_a_text_is_a_command(words):
    written = latex.text(words)
    written.encode()
    commands = re.findall(r"\\(?:[A-Za-z]+|.)", written, re.DOTALL)
    assert set(commands) <= COMMANDS
    bare = re.sub(r"\\(?:[A-Za-z]+|.)", "", written, flags=re.DOTALL)
    assert not set(bare) & set("$&#%_^~\\\n\r\t\0")
    depth = np.cumsum([(one == "{") - (one == "}") for one in bare])
    assert not len(depth) or (depth.min() >= 0 and depth[-1] == 0)


def test_what_every_latex_has_is_written_in_ascii():
    assert latex.text("é Ç ŵ ł ß “x” a–b 3 × −2 → …") == (
        r"\'{e} \c{C} \^{w} \l{} \ss{} \textquotedblleft{}x\textquotedblright{} a\textendash{}b "
        r"3 \ensuremath{\times} \ensuremath{-}2 \ensuremath{\rightarrow} ..."
    )
    assert latex.text("e\u0301 ï") == r"\'{e} \" {\i}".replace(" {", "{")
    assert latex.text("a\x00\ud800\ue000") == "a" + 3 * latex.BOX


def test_signs_that_fonts_would_make_one_stay_apart():
    assert latex.text("--off ''a''") == r"-\kern0pt -off '\kern0pt 'a'\kern0pt '"
    assert latex.text("a   b") == r"a \ \ b"


def test_other_scripts_are_kept_beside_the_boxes_that_stand_for_them():
    box = latex.BOX
    assert latex.text("a 한국 어 b") == rf"a \hgvizother{{{box}{box}\ {box}}}{{한국 어}} b"
    assert latex.text("سلام") == rf"\hgvizleftward{{\hgvizother{{{4 * box}}}{{سلام}}}}"
    hindi = latex.text("नमस्ते")
    assert (
        hindi.count(box) == 4 and hindi.count("hgvizother") == 1
    )  # marks have no box of their own
    assert latex.text("한中") == rf"\hgvizother{{{box}}}{{한}}\hgvizother{{{box}}}{{中}}"


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", LATEX)
def test_a_figure_for_latex_needs_no_latex(form, tmp_path):
    spec = Spec("map", SOME, title="\\input{x} $%&_#^~ ok")
    text = draw(spec, CAPTURE, tmp_path / f"f.{form}").read_text()
    assert r"\textbackslash{}input\{x\}" in text
    code = [line for line in text.splitlines() if not line.startswith("%")]
    assert r"\input{" not in "\n".join(code)
    assert r"\$\%\&\_\#\^{}\textasciitilde{}" in text
    rasters = re.findall(r"\\hgvizfolder (f-(?:pgf|tikz)\d+\.png)\}", text)
    assert len(rasters) == 2
    assert {one.name for one in tmp_path.iterdir()} == {f"f.{form}", *rasters}
    assert "% layer: 12 (post.0.1)" in text and f"% text: {CAPTURE.prompt.digest}" in text
    for raster in rasters:
        assert r"\input" not in raster


@pytest.mark.parametrize("width", ["acl", "2880pt"])
def test_a_tikz_is_as_wide_as_asked(width, tmp_path):
    text = draw(Spec("map", SOME, width=width), CAPTURE, tmp_path / "f.tikz.tex").read_text()
    box = re.search(r"\\path\[use as bounding box\] \(0,0\) rectangle \(([\d.]+),([\d.]+)\);", text)
    unit = float(re.search(r"x=([\d.]+)pt", text)[1]) * 72 / 72.27  # in points of 1/72 inch
    sp = 65536 * 72.27 / 72  # TeX counts in these
    assert float(box[1]) * round(unit * sp) / sp == pytest.approx(points(width), abs=0.02)


def test_a_tikz_says_what_the_page_has(tmp_path):
    path = draw(Spec("map", SOME, width="acl"), CAPTURE, tmp_path / "f.tikz.tex")
    text = path.read_text()
    assert re.search(r"\\node\[hg 8 bold, text=hg1A1E23, anchor=base west\] at \S+ \{Head 12\.2\};",
                     text)  # fmt: skip
    assert re.search(
        r"\\node\[hg 6.5, text=hg1A1E23, anchor=base west, rotate=90\] .*\{bell\};", text
    )
    assert r"\tikzset{hg 8 bold/.style={font=\fontsize{8}{9.6}\selectfont\bfseries}}" in text
    assert text.count(r"\begin{scope}") == text.count(r"\end{scope}") >= 2
    hatch = re.search(r"\\path\[draw=hgC9CED6, line width=0.35bp\] (.*?);", text, re.S)
    assert hatch[1].count("--") > 60  # all lines in one
    colours = set(re.findall(r"hg[0-9A-F]{6}", text))
    assert colours == set(re.findall(r"\\definecolor\{(hg[0-9A-F]{6})\}", text))
    with Image.open(tmp_path / "f-tikz0.png") as image:
        assert image.size == (91, 91) or image.size == CAPTURE.maps[12].shape[1:]
    assert max(map(len, text.splitlines())) < 400


def test_dashes_and_faint_lines_are_kept(tmp_path):
    text = draw_any("activation", tmp_path / "a.tikz.tex").read_text()
    assert re.search(r"dash pattern=on [\d.]+bp off [\d.]+bp", text)
    assert "line join=round" in text
    links = draw(Spec("links", SOME, width="acl"), CAPTURE, tmp_path / "l.tikz.tex").read_text()
    assert re.search(r"draw opacity=0\.\d+, line cap=round\] \S+ \.\.\s+controls", links)


@pytest.mark.parametrize(
    ("name", "form"),
    [("f.tikz.tex", "tikz.tex"), ("a.b.TIKZ.TEX", "tikz.tex"),
     ("f.pgf", "pgf"), ("x.tikz.pdf", "pdf")],
)  # fmt: skip
def test_the_ending_says_the_format(name, form):
    assert format_of(name) == form


@pytest.mark.parametrize("name", ["f.tex", "tikz.tex", "f.tikz"])
def test_another_ending_is_no_format(name):
    with pytest.raises(HgvizError, match="tikz.tex"):
        format_of(name)


@pytest.mark.parametrize("form", LATEX)
def test_rasters_are_named_as_latex_takes_it(form, tmp_path):
    file = f"50 %#$그림{{x}}.y.{form}"
    text = draw(Spec("map", width="acl"), make_capture("ab"), tmp_path / file).read_text()
    found = re.findall(r"\\hgvizfolder (.*?\.png)\}", text)
    assert found and all(re.fullmatch(r"[\w-]+\.png", one, re.ASCII) for one in found)
    assert all((tmp_path / one).exists() for one in found)
    assert latex.raster(tmp_path / "a b.pgf", "pgf", 0) != latex.raster(
        tmp_path / "a_b.pgf", "pgf", 0
    )
    assert latex.raster(tmp_path / "a b.pgf", "pgf", 0) != latex.raster(
        tmp_path / "a-b.pgf", "pgf", 0
    )


# --- LaTeX itself ---------------------------------------------------------------------------------


def compiled(folder, body, program="pdflatex", preamble=""):
    """What LaTeX says of a document that has only \\usepackage{tikz}."""
    (folder / "page.tex").write_text(
        rf"\documentclass{{article}}{preamble}\usepackage{{tikz}}\newbox\one\begin{{document}}"
        "\n" + body + "\n\\end{document}"
    )
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=100
    )
    assert run.returncode == 0, run.stdout[-2000:]
    return run.stdout


@needs_latex
@pytest.mark.parametrize("form", LATEX)
def test_latex_takes_every_kind_as_wide_as_asked(form, tmp_path):
    (tmp_path / "a folder").mkdir()
    body = []
    for number, kind in enumerate(EVERY):
        draw_any(kind, tmp_path / "a folder" / f"f{number}.{form}")
        file = f'"a folder/f{number}.{form}"'
        body.append(
            rf"\setbox\one\hbox{{\input{{{file}}}}}\typeout{{W{number}:\the\wd\one}}\box\one"
        )
    said = compiled(tmp_path, "\n\n".join(body))
    widths = {int(n): float(w) for n, w in re.findall(r"W(\d+):([\d.]+)pt", said)}
    for number, kind in enumerate(EVERY):
        wanted = points("neurips" if kind == SHEET else "acl")
        assert widths[number] * 72 / 72.27 == pytest.approx(wanted, abs=0.5), kind


@needs_latex
@pytest.mark.parametrize("program", ["pdflatex", "lualatex", "xelatex"])
def test_latex_takes_any_text(program, tmp_path):
    if not shutil.which(program):
        pytest.skip(f"{program} is not here")
    title = "50 % of $x_1$ & \\more <b> |x| \"q\" ``c'' --off 한국 어 مرحبا ½ ŵ Ω 👩 ∑"
    for form in LATEX:
        spec = Spec("map", Selection(12, 2), title=title, width="7in")
        draw(spec, make_capture(HOSTILE[:60]), tmp_path / f"f.{form}")
    compiled(tmp_path, r"\input{f.pgf}\newpage\input{f.tikz.tex}", program)
    if shutil.which("pdftotext") and program == "pdflatex":
        words = subprocess.run(
            ["pdftotext", "page.pdf", "-"], cwd=tmp_path, capture_output=True, timeout=100
        )
        assert words.stdout.decode().count("50 % of $x") == 2
