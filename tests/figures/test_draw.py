"""A figure in a file: the same bytes every time, exact in width, and it says where it is from."""

import errno
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from hgviz.core import Display, HeadId, HgvizError, Selection, replace
from hgviz.figures import Looked, Spec, composed, points
from hgviz.figures.content.unseen import seen_cells
from hgviz.figures.files import export
from hgviz.figures.paper import style
from hgviz.figures.paper.labels import BOX
from hgviz.figures.provenance import bare_name, without_folders
from hgviz.palettes import colours, paint, place
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
        assert image.width / style.DOTS * 72 == pytest.approx(points(width), abs=0.5)
        assert image.info["dpi"][0] == pytest.approx(style.DOTS, abs=0.1)


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
        assert "TrueType" in line
        assert "Type 3" not in line
        assert re.search(r"yes yes yes\s+\d+\s+\d+$", line)


@poppler
def test_the_text_can_be_selected(tmp_path):
    words = told("pdftotext", draw(Spec("map", SOME), CAPTURE, tmp_path / "f.pdf"), "-")
    for word in ("hourglass", "sand", "Head 12.2", "not seen: comes after the query"):
        assert word in words
    cells = draw(Spec("levels"), make_capture("The sand ran."), tmp_path / "g.pdf")
    assert "".join(told("pdftotext", "-raw", cells, "-").split()).count("sand") >= 2


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
    with style.dressed():
        page = composed(spec, capture)
    return np.asarray(page.axes.images[number].get_array()), page


def test_the_map_shows_every_weight_in_its_colour():
    shown, _ = raster(Spec("map", Selection(12, 2)), CAPTURE)
    weights = CAPTURE.maps[12].read(2)
    expected = paint(place(weights, (0, weights.max())), colours("viridis"))
    seen = seen_cells(CAPTURE, 12)
    np.testing.assert_array_equal(shown[seen], expected[seen])
    assert (shown[~seen] == (0xF0, 0xF2, 0xF4)).all()


def test_signed_weights_are_symmetric_about_zero():
    capture = make_capture(SEA, signed=True)
    weights = capture.maps[12].read(2)
    reach = np.abs(weights).max()
    shown, _ = raster(Spec("map", Selection(12, 2)), capture)
    seen = seen_cells(capture, 12)
    expected = paint(place(weights, (-reach, reach), signed=True), colours("blue-red"))
    np.testing.assert_array_equal(shown[seen], expected[seen])


def test_a_wall_shares_one_maximum_or_gives_each_head_its_own():
    capture = plain(["a", "b", "c"])
    faint = Dense(capture.maps[0].weights / 10, capture.maps[0].heads)
    capture = replace(capture, maps=(faint, *capture.maps[1:]))
    own, _ = raster(Spec("wall", display=Display(shared=False)), capture)
    shared, _ = raster(Spec("wall", display=Display(shared=True)), capture)
    top = max(one.weights.max() for one in capture.maps)
    expected = paint(place(faint.weights[0], (0, top)), colours("viridis"))
    np.testing.assert_array_equal(shared, expected)
    assert own.astype(int).sum() > shared.astype(int).sum()


def test_missing_heads_leave_gaps_in_the_wall():
    with style.dressed():
        page = composed(Spec("wall"), ragged())
    lefts = [round(image.get_extent()[0], 3) for image in page.axes.images]
    assert len(lefts) == 6
    assert lefts[4:] == [lefts[1], lefts[3]]


def test_resampling_rows_keep_their_proportion():
    with style.dressed():
        page = composed(Spec("wall"), make_capture(SEA[:64]))
    sizes = [(abs(a - b), abs(c - d)) for a, b, c, d in (i.get_extent() for i in page.axes.images)]
    down, up = sizes[2 * 6], sizes[10 * 6]
    assert down[0] / down[1] == pytest.approx(2, rel=0.01)
    assert up[1] / up[0] == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_is_off_is_never_drawn_as_zero(kind):
    off = replace(CAPTURE, off=frozenset({HeadId(0, 0)}))
    with style.dressed():
        whole, less = (composed(Spec(kind, Selection(0, 0)), one) for one in (CAPTURE, off))
    drawn = [len(page.axes.images) + len(page.axes.patches) for page in (whole, less)]
    assert drawn[1] < drawn[0] or kind == "wall"
    assert len(less.axes.images) < len(whole.axes.images) or kind in ("levels", "links")
    assert any("off" in text.get_text().split(": ")[0] for text in less.axes.texts)


def test_levels_show_the_weights_of_each_stage_over_its_tokens():
    capture = make_capture("The sand ran down.")
    query = 9
    with style.dressed():
        page = composed(Spec("levels", Selection(12, 2, query)), capture)
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
    for colour in paint(place(stage[: query + 1], (0, top)), colours("viridis")):
        assert tuple(map(float, colour)) in painted


def test_levels_take_the_heads_chosen_else_the_clearest():
    class Fact:
        def __init__(self, score):
            self.role, self.score = "previous letter", score

    facts = {head: Fact(head.head == 3) for head in CAPTURE.spec.heads}
    spec = Spec("levels", Selection(12, 2, 5), heads=(HeadId(3, 1),))
    with style.dressed():
        words = [text.get_text() for text in composed(spec, Looked(CAPTURE, facts)).axes.texts]
    assert [one for one in words if one.startswith("head ")] == [
        "head 0.3", "head 3.1", "head 5.3", "head 9.3", "head 12.2",
    ]  # fmt: skip
    assert any("previous" in one for one in words)


def test_a_title_can_be_given_or_left_out():
    for title, expected in ((None, "Head 12.2"), ("Mine $x$", "Mine $x$"), ("", None)):
        with style.dressed():
            page = composed(Spec("map", SOME, title=title), CAPTURE)
        words = [text.get_text() for text in page.axes.texts]
        assert expected is None or expected in words
        assert title is None or "Head 12.2" not in words


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "name", "said"),
    [
        (Spec("pie"), "f.pdf", "the kinds are map, links, wall, levels"),
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

    monkeypatch.setattr(export.os, "fsync", fail)
    with pytest.raises(HgvizError, match=f"(?i){said}"):
        draw(Spec("map"), CAPTURE, path)
    assert [p.name for p in tmp_path.iterdir()] == ["f.pdf"]
    assert path.read_bytes() == b"before"


def test_figures_are_light_until_one_is_drawn():
    code = (
        "import sys, hgviz.figures as f; f.Spec(); f.points('icml'); f.format_of('x.svg');"
        "print(sorted({'matplotlib', 'PIL', 'torch', 'PySide6', 'cmap'} & set(sys.modules)))"
    )
    assert told(sys.executable, "-c", code).strip() == "[]"


def test_drawing_never_loads_pyplot(tmp_path):
    code = (
        "import sys; from hgviz.figures import Spec; from tests.figures.texts import draw;"
        "from tests.making import make_capture;"
        "draw(Spec(), make_capture('abc'), sys.argv[1]); print('matplotlib.pyplot' in sys.modules)"
    )
    assert told(sys.executable, "-c", code, str(tmp_path / "f.pdf")).strip() == "False"


def test_the_settings_of_this_machine_are_left_alone(tmp_path):
    import matplotlib

    with matplotlib.rc_context({"font.size": 31.0, "text.usetex": True}):
        before = dict(matplotlib.rcParams)
        first = draw(Spec("map", SOME), CAPTURE, tmp_path / "a.png").read_bytes()
        assert dict(matplotlib.rcParams) == before
    again = draw(Spec("map", SOME), CAPTURE, tmp_path / "a.png").read_bytes()
    assert first == again
