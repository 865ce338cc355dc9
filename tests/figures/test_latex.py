"""Figures for LaTeX: nothing in a text is a command, and LaTeX takes what is written."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import HgvizError, Selection
from hgviz.figures import Spec, format_of, points
from hgviz.figures.files import latex
from tests.figures.every import KINDS
from tests.figures.every import draw as draw_any
from tests.figures.texts import HOSTILE, SEA, draw
from tests.making import make_capture

CAPTURE = make_capture(SEA)
SOME = Selection(12, 2, 60, 29)
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


def test_a_figure_for_latex_needs_no_latex(tmp_path):
    spec = Spec("map", SOME, title="\\input{x} $%&_#^~ ok")
    text = draw(spec, CAPTURE, tmp_path / "f.pgf").read_text()
    assert r"\textbackslash{}input\{x\}" in text
    code = [line for line in text.splitlines() if not line.startswith("%")]
    assert r"\input{" not in "\n".join(code)
    assert r"\$\%\&\_\#\^{}\textasciitilde{}" in text
    rasters = re.findall(r"\\hgvizfolder (f-pgf\d+\.png)\}", text)
    assert len(rasters) == 2
    assert {one.name for one in tmp_path.iterdir()} == {"f.pgf", *rasters}
    assert "% layer: 12 (post.0.1)" in text and f"% text: {CAPTURE.prompt.digest}" in text
    for raster in rasters:
        assert r"\input" not in raster


def test_another_ending_is_no_format():
    assert format_of("a.b.PGF") == "pgf"
    with pytest.raises(HgvizError, match="the formats are"):
        format_of("f.tex")


def test_rasters_are_named_as_latex_takes_it(tmp_path):
    file = "50 %#$그림{x}.y.pgf"
    text = draw(Spec("map", width="acl"), make_capture("ab"), tmp_path / file).read_text()
    found = re.findall(r"\\hgvizfolder (.*?\.png)\}", text)
    assert found and all(re.fullmatch(r"[\w-]+\.png", one, re.ASCII) for one in found)
    assert all((tmp_path / one).exists() for one in found)
    names = {latex.raster(tmp_path / one, 0) for one in ("a b.pgf", "a_b.pgf", "a-b.pgf")}
    assert len(names) == 3


# --- LaTeX itself ---------------------------------------------------------------------------------


def compiled(folder, body, program="pdflatex", preamble=""):
    """What LaTeX says of a document that has only \\usepackage{pgf}."""
    (folder / "page.tex").write_text(
        rf"\documentclass{{article}}{preamble}\usepackage{{pgf}}\newbox\one\begin{{document}}"
        "\n" + body + "\n\\end{document}"
    )
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=100
    )
    assert run.returncode == 0, run.stdout[-2000:]
    return run.stdout


@needs_latex
def test_latex_takes_every_kind_as_wide_as_asked(tmp_path):
    (tmp_path / "a folder").mkdir()
    body = []
    for number, kind in enumerate(KINDS):
        draw_any(kind, tmp_path / "a folder" / f"f{number}.pgf")
        file = f'"a folder/f{number}.pgf"'
        body.append(
            rf"\setbox\one\hbox{{\input{{{file}}}}}\typeout{{W{number}:\the\wd\one}}\box\one"
        )
    said = compiled(tmp_path, "\n\n".join(body))
    widths = {int(n): float(w) for n, w in re.findall(r"W(\d+):([\d.]+)pt", said)}
    for number, kind in enumerate(KINDS):
        assert widths[number] * 72 / 72.27 == pytest.approx(points("acl"), abs=0.5), kind


@needs_latex
@pytest.mark.parametrize("program", ["pdflatex", "lualatex", "xelatex"])
def test_latex_takes_any_text(program, tmp_path):
    if not shutil.which(program):
        pytest.skip(f"{program} is not here")
    title = "50 % of $x_1$ & \\more <b> |x| \"q\" ``c'' --off 한국 어 مرحبا ½ ŵ Ω 👩 ∑"
    spec = Spec("map", Selection(12, 2), title=title, width="7in")
    draw(spec, make_capture(HOSTILE[:60]), tmp_path / "f.pgf")
    compiled(tmp_path, r"\input{f.pgf}", program)
    if shutil.which("pdftotext") and program == "pdflatex":
        words = subprocess.run(
            ["pdftotext", "page.pdf", "-"], cwd=tmp_path, capture_output=True, timeout=100
        )
        assert words.stdout.decode().count("50 % of $x") == 1
