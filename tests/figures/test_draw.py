"""A figure in a file, for LaTeX and on a screen: the same bytes, exact widths, where it is from."""

import errno
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hgviz import tasks
from hgviz.core import Display, HeadId, HgvizError, Selection
from hgviz.figures import Looked, Spec, format_of, labels, output, pgf, points
from hgviz.figures.cells import seen_cells
from hgviz.figures.labels import BOX
from hgviz.figures.levels import stages_of
from hgviz.figures.output import compose, without_folders
from hgviz.figures.spec import bare_name
from hgviz.palettes import colours, paint, palette_coordinates
from hgviz.tasks import drawing
from tests.figures import every
from tests.figures.texts import HOSTILE, KINDS, SEA, Dense, draw, plain, ragged
from tests.making import make_capture

poppler = pytest.mark.skipif(not shutil.which("pdffonts"), reason="poppler-utils is not here")
CAPTURE = make_capture(SEA)
SOME = Selection(12, 2, 60, 29)


def told(*command, **more):
    more = {"timeout": 100, **more}
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


@pytest.mark.parametrize("width", ["icml", "8.9 cm"])
def test_widths_are_exact_in_every_format(width, tmp_path):
    spec = Spec("map", SOME, width=width)
    pdf = draw(spec, CAPTURE, tmp_path / "f.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)
    assert float(box[1]) == pytest.approx(points(width), abs=0.5)
    svg = draw(spec, CAPTURE, tmp_path / "f.svg").read_text()
    assert float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)[1]) == pytest.approx(
        points(width), abs=0.5
    )
    with Image.open(draw(spec, CAPTURE, tmp_path / "f.png")) as image:
        assert image.width / labels.DOTS * 72 == pytest.approx(points(width), abs=0.5)
        assert image.info["dpi"][0] == pytest.approx(labels.DOTS, abs=0.1)


def test_presets_are_as_wide_as_they_say():
    assert points("neurips") == 396
    assert points("icml") == 234
    assert points("acl") == pytest.approx(218.16)
    assert points("nature") == pytest.approx(252.28, abs=0.01)
    assert points("nature2") == pytest.approx(518.74, abs=0.01)
    same = {"3.25": "icml", "3.25in": "icml", "89mm": "nature", "8.9 cm": "nature", "252pt": "ieee"}
    for width, name in same.items():
        assert points(width) == pytest.approx(points(name))


@pytest.mark.parametrize("width", ["wide", "", "-3in", "0", "3 parsec", "nan", "1e9", "0.5in"])
def test_what_is_no_width_is_said(width):
    with pytest.raises(HgvizError):
        points(width)


@poppler
def test_fonts_of_hostile_texts_are_embedded_truetype_only(tmp_path):
    path = draw(Spec("map", Selection(12, 2)), make_capture(HOSTILE), tmp_path / "f.pdf")
    fonts = told("pdffonts", path).splitlines()[2:]
    assert fonts
    for line in fonts:
        assert "TrueType" in line and "Type 3" not in line
        assert re.search(r"yes yes yes\s+\d+\s+\d+$", line)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_give_a_sound_svg_that_holds_them_as_text(kind, tmp_path):
    capture = make_capture(HOSTILE[:40])
    path = draw(Spec(kind, title="</text><script>\x00\u202e"), capture, tmp_path / "f.svg")
    root = ElementTree.parse(path).getroot()
    assert not [one for one in root.iter() if one.tag.endswith("script")]
    assert f"</text><script>\\x00{BOX}" in {one.text for one in root.iter()}


def test_the_file_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    made = replace(CAPTURE, path="/home/ann/secret/sea.h5")
    spec = Spec("map", SOME, width="icml")
    with Image.open(draw(spec, made, tmp_path / "f.png")) as image:
        said, title = image.info["Description"], image.info["Title"]
    assert title == f"Map of one head: {CAPTURE.spec.name}"
    for part in ("checkpoint: " + "0" * 64, "layer: 12 (post.0.1)", "head: 2", "query: 60",
                 f"text: {CAPTURE.prompt.digest}", "program: hgviz ",
                 "command: hgviz figure sea.h5 --kind map --layer 12 --head 2"):  # fmt: skip
        assert part in said
    svg = draw(spec, made, tmp_path / "f.svg").read_text()
    assert f"text: {CAPTURE.prompt.digest}" in svg
    again = "--kind map --layer 12 --head 2 --query 60 --key 29 --width icml -o f.svg"
    assert f"hgviz figure sea.h5 {again}" in svg
    assert "2023-11-14" in svg
    pdf = draw(spec, made, tmp_path / "f.pdf").read_bytes()
    assert b"/CreationDate (D:20231114" in pdf
    assert b"command: hgviz figure sea.h5" in pdf
    for file in tmp_path.iterdir():
        assert b"/home" not in file.read_bytes()
        assert b"secret" not in file.read_bytes()


def test_folders_are_left_out_of_a_command():
    assert bare_name("/home/ann/a b.h5") == "a b.h5"
    assert bare_name("C:\\Users\\ann\\f.pdf") == "f.pdf"
    assert bare_name("--kind") == "--kind"
    assert without_folders("hgviz figure '/x/a b.h5' -o ../f.pdf") == (
        "hgviz figure 'a b.h5' -o f.pdf"
    )
    assert "ann" not in without_folders("hgviz figure /home/ann/'unclosed")


# --- what is drawn --------------------------------------------------------------------------------


def raster(spec, capture, number=0):
    with labels.figure_settings():
        page = compose(spec, capture)
    return np.asarray(page.axes.images[number].get_array()), page


def test_the_map_shows_every_weight_in_its_colour():
    shown, _ = raster(Spec("map", Selection(12, 2)), CAPTURE)
    weights = CAPTURE.maps[12].read(2)
    expected = paint(palette_coordinates(weights, (0, weights.max())), colours("viridis"))
    seen = seen_cells(CAPTURE, 12)
    np.testing.assert_array_equal(shown[seen], expected[seen])
    assert (shown[~seen] == (0xF0, 0xF2, 0xF4)).all()


def test_signed_weights_are_symmetric_about_zero():
    capture = make_capture(SEA, signed=True)
    weights = capture.maps[12].read(2)
    reach = np.abs(weights).max()
    shown, _ = raster(Spec("map", Selection(12, 2)), capture)
    seen = seen_cells(capture, 12)
    expected = paint(
        palette_coordinates(weights, (-reach, reach), signed=True), colours("blue-red")
    )
    np.testing.assert_array_equal(shown[seen], expected[seen])


def test_a_wall_shares_one_maximum_or_gives_each_head_its_own():
    capture = plain(["a", "b", "c"])
    faint = Dense(capture.maps[0].weights / 10, capture.maps[0].heads)
    capture = replace(capture, maps=(faint, *capture.maps[1:]))
    own, _ = raster(Spec("wall", display=Display(shared=False)), capture)
    shared, _ = raster(Spec("wall", display=Display(shared=True)), capture)
    top = max(one.weights.max() for one in capture.maps)
    expected = paint(palette_coordinates(faint.weights[0], (0, top)), colours("viridis"))
    np.testing.assert_array_equal(shared, expected)
    assert own.astype(int).sum() > shared.astype(int).sum()


def test_missing_heads_leave_gaps_in_the_wall():
    with labels.figure_settings():
        page = compose(Spec("wall"), ragged())
    lefts = [round(image.get_extent()[0], 3) for image in page.axes.images]
    assert len(lefts) == 6
    assert lefts[4:] == [lefts[1], lefts[3]]


def test_resampling_rows_keep_their_proportion():
    with labels.figure_settings():
        page = compose(Spec("wall"), make_capture(SEA[:64]))
    sizes = [(abs(a - b), abs(c - d)) for a, b, c, d in (i.get_extent() for i in page.axes.images)]
    down, up = sizes[2 * 6], sizes[10 * 6]
    assert down[0] / down[1] == pytest.approx(2, rel=0.01)
    assert up[1] / up[0] == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_is_off_is_never_drawn_as_zero(kind):
    off = replace(CAPTURE, off=frozenset({HeadId(0, 0)}))
    with labels.figure_settings():
        whole, less = (compose(Spec(kind, Selection(0, 0)), one) for one in (CAPTURE, off))
    drawn = [len(page.axes.images) + len(page.axes.patches) for page in (whole, less)]
    assert drawn[1] < drawn[0] or kind == "wall"
    assert len(less.axes.images) < len(whole.axes.images) or kind in ("levels", "links")
    assert any("off" in text.get_text().split(": ")[0] for text in less.axes.texts)


def test_levels_show_the_weights_of_each_stage_over_its_tokens():
    capture = make_capture("The sand ran down.")
    query = 9
    with labels.figure_settings():
        page = compose(Spec("levels", Selection(12, 2, query)), capture)
    words = [text.get_text() for text in page.axes.texts]
    assert [one for one in words if one in ("1:1", "1:2", "1:4")] == [
        "1:1", "1:2", "1:4", "1:2", "1:1",
    ]  # fmt: skip
    assert "head 12.2" in words
    painted = {tuple(np.rint(np.array(p.get_facecolor()[:3]) * 255)) for p in page.axes.patches}
    stage = capture.maps[12].read(2, rows=(query, query + 1))[0]
    heads = {0: 0, 3: 0, 5: 0, 9: 0, 12: 2}
    top = max(
        capture.maps[n].read(h, rows=(r := capture.row(n, query), r + 1)).max()
        for n, h in heads.items()
    )
    for colour in paint(palette_coordinates(stage[: query + 1], (0, top)), colours("viridis")):
        assert tuple(map(float, colour)) in painted


def test_levels_take_the_heads_chosen_else_the_clearest():
    class Fact:
        def __init__(self, score):
            self.role, self.score = "previous letter", score

    facts = {head: Fact(head.head == 3) for head in CAPTURE.spec.heads}
    spec = Spec("levels", Selection(12, 2, 5), heads=(HeadId(3, 1),))
    with labels.figure_settings():
        words = [text.get_text() for text in compose(spec, Looked(CAPTURE, facts)).axes.texts]
    assert [one for one in words if one.startswith("head ")] == [
        "head 0.3", "head 3.1", "head 5.3", "head 9.3", "head 12.2",
    ]  # fmt: skip
    assert any("previous" in one for one in words)


def test_a_title_can_be_given_or_left_out():
    for title, expected in ((None, "Head 12.2"), ("Mine $x$", "Mine $x$"), ("", None)):
        with labels.figure_settings():
            page = compose(Spec("map", SOME, title=title), CAPTURE)
        words = [text.get_text() for text in page.axes.texts]
        assert expected is None or expected in words
        assert title is None or "Head 12.2" not in words


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "name", "said"),
    [
        (Spec("pie"), "f.pdf", "unknown kind of figure .*map, links, wall, levels"),
        (Spec("map"), "f.gif", "the formats are pdf"),
        (Spec("map"), "figure", "the formats are pdf"),
        (Spec("map", width="wide"), "f.pdf", "no width"),
        (Spec("map", Selection(99, 0)), "f.pdf", "no layer 99"),
        (Spec("map", Selection(0, 99)), "f.pdf", "no head 99"),
        (Spec("map", Selection(0, 0, 10_000)), "f.pdf", "no token 10000"),
        (Spec("levels", Selection(0, 0, 10_000)), "f.pdf", "no token 10000"),
        (Spec("map"), "no/such/folder/f.pdf", "no folder"),
        (Spec("map"), "f.pdf", "is a folder"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_words(spec, name, said, tmp_path):
    if said == "is a folder":
        (tmp_path / name).mkdir()
    with pytest.raises(HgvizError, match=f"(?i){said}"):
        draw(spec, CAPTURE, tmp_path / name)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_that_is_not_there_yet_is_said(kind, tmp_path):
    partial = replace(CAPTURE, maps=(*CAPTURE.maps[:12], None))
    with pytest.raises(HgvizError, match="layer 12 is not in this capture"):
        draw(Spec(kind, Selection(12, 0)), partial, tmp_path / "f.pdf")
    assert not list(tmp_path.iterdir())
    if kind == "map":
        assert draw(Spec(kind, Selection(11, 0)), partial, tmp_path / "f.pdf").exists()


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EACCES, "may write to")]
)
def test_a_full_disk_leaves_the_old_figure(number, said, tmp_path, monkeypatch):
    path = tmp_path / "f.pdf"
    path.write_bytes(b"before")

    def fail(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(HgvizError, match=f"(?i){said}"):
        draw(Spec("map"), CAPTURE, path)
    assert [p.name for p in tmp_path.iterdir()] == ["f.pdf"]
    assert path.read_bytes() == b"before"


def test_figures_are_light_until_one_is_drawn_and_never_load_pyplot(tmp_path):
    code = (
        "import sys, hgviz.figures as f; f.Spec(); f.points('icml'); f.format_of('x.svg');"
        "print(sorted({'matplotlib', 'PIL', 'torch', 'PySide6', 'cmap'} & set(sys.modules)));"
        "from tests.figures.texts import draw; from tests.making import make_capture;"
        "draw(f.Spec(), make_capture('abc'), sys.argv[1]);"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    said = told(sys.executable, "-c", code, str(tmp_path / "f.pdf"))
    assert said.split() == ["[]", "False"]


def test_the_settings_of_this_machine_are_left_alone(tmp_path):
    import matplotlib

    with matplotlib.rc_context({"font.size": 31.0, "text.usetex": True}):
        before = dict(matplotlib.rcParams)
        first = draw(Spec("map", SOME), CAPTURE, tmp_path / "a.png").read_bytes()
        assert dict(matplotlib.rcParams) == before
    again = draw(Spec("map", SOME), CAPTURE, tmp_path / "a.png").read_bytes()
    assert first == again


# --- LaTeX ----------------------------------------------------------------------------------------


COMMANDS = {one for sign in pgf.SIGNS.values() for one in re.findall(r"\\(?:[A-Za-z]+|.)", sign)}
COMMANDS |= {rf"\{accent}" for accent in pgf.ACCENTS.values()}
COMMANDS |= {r"\i", r"\j", r"\kern", r"\ ", r"\hgvizother", r"\hgvizleftward"}

needs_latex = pytest.mark.skipif(not shutil.which("pdflatex"), reason="LaTeX is not here")


# --- texts ----------------------------------------------------------------------------------------


@given(st.text(max_size=30) | st.text(alphabet="\\{}$&#%_^~`'\"-,<>|!? éßœŁ한م\u0301", max_size=12))
def test_nothing_in_a_text_is_a_command(words):
    written = pgf.latex_text(words)
    written.encode()
    commands = re.findall(r"\\(?:[A-Za-z]+|.)", written, re.DOTALL)
    assert set(commands) <= COMMANDS
    bare = re.sub(r"\\(?:[A-Za-z]+|.)", "", written, flags=re.DOTALL)
    assert not set(bare) & set("$&#%_^~\\\n\r\t\0")
    depth = np.cumsum([(one == "{") - (one == "}") for one in bare])
    assert not len(depth) or (depth.min() >= 0 and depth[-1] == 0)


def test_what_every_latex_has_is_written_in_ascii():
    assert pgf.latex_text("é Ç ŵ ł ß “x” a–b 3 × −2 → …") == (
        r"\'{e} \c{C} \^{w} \l{} \ss{} \textquotedblleft{}x\textquotedblright{} a\textendash{}b "
        r"3 \ensuremath{\times} \ensuremath{-}2 \ensuremath{\rightarrow} ..."
    )
    assert pgf.latex_text("e\u0301 ï") == r"\'{e} \" {\i}".replace(" {", "{")
    assert pgf.latex_text("a\x00\ud800\ue000") == "a" + 3 * pgf.BOX


def test_signs_that_fonts_would_make_one_stay_apart():
    assert pgf.latex_text("--off ''a''") == r"-\kern0pt -off '\kern0pt 'a'\kern0pt '"
    assert pgf.latex_text("a   b") == r"a \ \ b"


def test_other_scripts_are_kept_beside_the_boxes_that_stand_for_them():
    box = pgf.BOX
    assert pgf.latex_text("a 한국 어 b") == rf"a \hgvizother{{{box}{box}\ {box}}}{{한국 어}} b"
    assert pgf.latex_text("سلام") == rf"\hgvizleftward{{\hgvizother{{{4 * box}}}{{سلام}}}}"
    hindi = pgf.latex_text("नमस्ते")
    assert (
        hindi.count(box) == 4 and hindi.count("hgvizother") == 1
    )  # marks have no box of their own
    assert pgf.latex_text("한中") == rf"\hgvizother{{{box}}}{{한}}\hgvizother{{{box}}}{{中}}"


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
    names = {pgf.raster_name(tmp_path / one, 0) for one in ("a b.pgf", "a_b.pgf", "a-b.pgf")}
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
    for number, kind in enumerate(every.KINDS):
        every.draw(kind, tmp_path / "a folder" / f"f{number}.pgf")
        file = f'"a folder/f{number}.pgf"'
        body.append(
            rf"\setbox\one\hbox{{\input{{{file}}}}}\typeout{{W{number}:\the\wd\one}}\box\one"
        )
    said = compiled(tmp_path, "\n\n".join(body))
    widths = {int(n): float(w) for n, w in re.findall(r"W(\d+):([\d.]+)pt", said)}
    for number, kind in enumerate(every.KINDS):
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


# --- previews -------------------------------------------------------------------------------------


def pixels(png):
    with Image.open(BytesIO(png)) as image:
        return np.array(image.convert("RGB"))


def previewed(spec, dots):
    return tasks.preview(tasks.panel(spec, CAPTURE), dots)


@pytest.mark.parametrize("kind", ["map", "links", "wall", "levels"])
def test_at_the_dots_of_a_file_a_preview_is_its_picture(kind, tmp_path):
    spec = Spec(kind, SOME, width="acl")
    seen = previewed(spec, labels.DOTS)
    tasks.figure(spec, CAPTURE, tmp_path / "one.png")
    assert np.array_equal(pixels(seen.png), pixels((tmp_path / "one.png").read_bytes()))
    assert seen.width == pytest.approx(3.03 * 72) and seen.smallest and seen.smallest >= 5


def test_a_preview_has_the_size_of_the_page_at_any_dots():
    coarse, fine = (previewed(Spec("map", SOME, width="89mm"), dots) for dots in (96.0, 220.0))
    assert (coarse.width, coarse.height) == (fine.width, fine.height)
    for seen in (coarse, fine):
        height, width, _ = pixels(seen.png).shape
        assert width == pytest.approx(seen.width / 72 * seen.dots, abs=1)
        assert height == pytest.approx(seen.height / 72 * seen.dots, abs=1)


def test_a_preview_of_a_poster_has_fewer_dots_and_the_same_page(monkeypatch):
    spec = Spec("map", SOME, width="acl")
    whole = previewed(spec, 100.0)
    monkeypatch.setattr(output, "PREVIEW_PIXELS", 20_000.0)
    small = previewed(spec, 100.0)
    height, width, _ = pixels(small.png).shape
    assert height * width < 21_000 and small.dots < whole.dots
    assert (small.width, small.height) == (whole.width, whole.height)


def test_of_all_levels_only_heads_that_may_be_shown_are_measured():
    capture = CAPTURE
    first, *rest = stages_of(capture)
    chosen = [HeadId(one[-1], 1) for one in rest]
    spec = Spec("levels", Selection(chosen[0].layer, 1, 60, 29), heads=tuple(chosen[1:]))
    ready = tasks.panel(spec, capture)
    facts = ready.content.facts
    assert {one.layer for one in facts} == {*first, *(one.layer for one in chosen)}
    assert len(rest) > 1 and len(facts) < len(capture.spec.heads)
    whole = tasks.measure(capture)
    assert all(repr(fact) == repr(whole[head]) for head, fact in facts.items())


def test_of_a_long_text_only_a_stage_without_a_choice_is_measured(monkeypatch):
    """What is known already makes no other figure."""
    capture = CAPTURE
    monkeypatch.setattr(drawing, "ROLES", len(capture.main) - 1)
    first, *rest = stages_of(capture)
    chosen = [HeadId(one[0], 1) for one in rest]
    spec = Spec("levels", Selection(chosen[0].layer, 1, 60, 29), heads=tuple(chosen[1:]))
    for known in (None, tasks.measure(capture)):
        some = tasks.panel(spec, capture, known).content.facts
        assert {one.layer for one in some} == set(first)
        every = replace(spec, heads=(*spec.heads, HeadId(first[0], 0)))
        assert tasks.panel(every, capture, known).content.facts == {}
