"""Sheets: several figures as one, from what is written down of them in a FIG.toml."""

import shlex

import numpy as np
import pytest
from PIL import Image

from hgviz import cli, tasks
from hgviz.core import Display, HeadId, Selection, finish, replace
from hgviz.figures import Sheet, Spec, composed_sheet
from hgviz.figures.content.charts import Band
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import Axes, band
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.sheet import placed
from hgviz.figures.plan import read, table
from hgviz.maps.links import Linking
from hgviz.store import open_capture
from tests.figures.test_commands import WINDOW, files, run, said  # noqa: F401
from tests.figures.texts import mixed, plain
from tests.making import make_capture

TWO = """
width = "icml2"
[[panel]]
of = ["my text.h5"]
kind = "map"
layer = 3
head = 1
[[panel]]
of = ["my text.h5", "-b.h5"]
kind = "compare"
beside = "4.2"
[[panel]]
of = ["s.h5"]
kind = "curve"
span = 2
"""


@pytest.fixture
def sources(files, tmp_path):  # noqa: F811
    """A folder with two captures, a corpus and two studies, and room for a FIG.toml."""
    for one in files.iterdir():
        (tmp_path / one.name).symlink_to(one)
    return tmp_path


def write(folder, text, name="fig 1.toml"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("suffix", [".pdf", ".svg"])
def test_the_command_in_a_sheet_remakes_it_to_the_byte(suffix, sources, monkeypatch):
    plan, out = write(sources, f"share = true\n{TWO}"), sources / f"out{suffix}"
    assert run("figure", plan, "-o", out) == 0
    before = out.read_bytes()
    words = said(out)
    assert words == f"hgviz figure 'fig 1.toml' -o out{suffix}"
    out.unlink()
    monkeypatch.chdir(sources)
    assert cli.main(shlex.split(words)[1:], WINDOW) == 0
    assert out.read_bytes() == before
    assert str(sources).encode() not in before


def test_a_sheet_says_what_it_is_made_of(sources):
    plan = write(sources, TWO)
    with Image.open(finish(tasks.sheet_at(plan, sources / "f.png"))) as image:
        told = image.info["Description"]
    assert f"sheet: {read(plan).sheet.digest}" in told
    for part in (
        "kind: sheet", "a.kind: map", "a.layer: 3", "b.kind: compare", "c.kind: curve",
        "a.command: hgviz figure 'my text.h5' --kind map --layer 3 --head 1 --width 236pt",
        "-o a-f.png", "b.command: hgviz figure 'my text.h5' ./-b.h5 --kind compare --beside 4.2",
    ):  # fmt: skip
        assert part in told
    changed = write(sources, TWO.replace("span = 2", "span = 1"))
    assert read(changed).sheet.digest not in told


def test_one_panel_without_a_letter_is_the_figure_itself(sources):
    write(sources, '[[panel]]\nof = ["my text.h5"]\nkind = "levels"\nquery = 5\n')
    finish(tasks.sheet_at(sources / "fig 1.toml", sources / "sheet.png"))
    capture = open_capture(sources / "my text.h5")
    spec = Spec("levels", Selection(query=5))
    finish(tasks.figure(spec, capture, sources / "alone.png"))
    sheet, alone = (np.asarray(Image.open(sources / f"{n}.png")) for n in ("sheet", "alone"))
    np.testing.assert_array_equal(sheet, alone)


def test_a_lone_panel_has_a_letter_if_it_is_asked_for(sources):
    one = '[[panel]]\nof = ["my text.h5"]\nkind = "wall"\n'
    assert not read(write(sources, one)).sheet.lettered
    assert read(write(sources, "letters = true\n" + one)).sheet.lettered
    assert read(write(sources, one + one)).sheet.lettered


def test_the_panel_that_a_command_prints_draws_what_the_command_draws(sources, capsys):
    words = ["figure", sources / "my text.h5", "--kind", "links", "--heads", "5.1,3.0",
             "--queries", "3,5:8", "--mass", "0.8", "--no-special", "--title", TITLE]  # fmt: skip
    assert run(*words, "--toml") == 0
    plan = write(sources, capsys.readouterr().out)
    finish(tasks.sheet_at(plan, sources / "sheet.png"))
    assert run(*words, "-o", sources / "alone.png") == 0
    sheet, alone = (np.asarray(Image.open(sources / f"{n}.png")) for n in ("sheet", "alone"))
    np.testing.assert_array_equal(sheet, alone)


def test_a_panel_is_written_in_few_lines():
    links = Linking(heads=(HeadId(3, 0),), queries=(3, 5, 6), least=0.1, special=False)
    spec = Spec("links", Selection(3, 0), width="acl", format="pdf", links=links)
    assert table(spec, ["a.h5"], 2) == (
        '[[panel]]\nof = ["a.h5"]\nkind = "links"\nheads = "3.0"\nqueries = "3,5:7"\nleast = 0.1\n'
        "most = 10\nspecial = false\nitem = 2\n"
    )
    curve = Spec("curve", methods=("loo", "michel"))
    assert 'of = ["a.h5", "b.h5"]\nkind = "curve"\nmethod = ["loo", "michel"]\n' in table(
        curve, ["a.h5", "b.h5"]
    )


TITLE = 'a "b"\\ 모 \x7f'
PANEL = '[[panel]]\nof = ["my text.h5"]\nkind = "map"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no panel. It can have 1 to 26"),
        (PANEL * 27, "has 27 panels. It can have 1 to 26"),
        ("panel = 3", "is no list of panels"),
        (PANEL.replace("[[panel]]", "[panel]"), "is no list of panels"),
        ("width = ", "is no TOML"),
        ("colums = 2\n" + PANEL, "unknown key 'colums'. A sheet takes width, columns, letters"),
        ("columns = 0\n" + PANEL, "columns in FIG cannot be 0"),
        ("columns = 2.0\n" + PANEL, "columns in FIG cannot be 2.0. It takes a whole number"),
        ("columns = true\n" + PANEL, "columns in FIG cannot be True"),
        ('share = "yes"\n' + PANEL, "share in FIG cannot be 'yes'. It takes true or false"),
        ('width = "wide"\n' + PANEL, "'wide' is no width"),
        ("width = 3\n" + PANEL, "width in FIG cannot be 3. It takes a text"),
        ('[[panel]]\nof = "my text.h5"', "Panel 1 of FIG has no kind. It is one of map, links"),
        (PANEL.replace('"map"', '"pie"'), "kind in Panel 1 of FIG cannot be 'pie'"),
        ('[[panel]]\nkind = "map"', "Panel 1 of FIG is of no file"),
        (PANEL.replace('["my text.h5"]', "[3]"), "of in Panel 1 of FIG cannot be [3]"),
        (PANEL.replace("my text.h5", "x.toml"), "cannot be of x.toml"),
        (PANEL.replace("my text", "none"), "Panel 1 of FIG: there is no"),
        (PANEL + PANEL + "layr = 3", "Panel 2 of FIG has an unknown key 'layr'"),
        (PANEL + "most = 3", "unknown key 'most'. A figure of kind map takes of, kind, span, item"),
        (PANEL + 'width = "acl"', "unknown key 'width'"),
        (PANEL + 'layer = "3"', "Panel 1 of FIG: layer cannot be '3'. It takes a whole number"),
        (PANEL + "layer = 99", "Panel 1 of FIG: this capture has no layer 99"),
        (PANEL + "span = 3", "span in Panel 1 of FIG cannot be 3. The sheet has 2 columns"),
        (PANEL + "span = 0", "span in Panel 1 of FIG cannot be 0"),
        (PANEL + "item = [0, 1]", "item in Panel 1 of FIG cannot be [0, 1]"),
        (PANEL + "item = -1", "item in Panel 1 of FIG cannot be -1"),
        (PANEL + "limits = [1, 0]", "Panel 1 of FIG: limits cannot be 1:0"),
        (PANEL.replace("map", "compare"), "Panel 1 of FIG: a figure of kind compare is of two"),
        (PANEL.replace("map", "curve"), "Panel 1 of FIG: "),
        (PANEL.replace("my text", "s"), "Panel 1 of FIG: "),
        ("columns = 12\n" + PANEL * 12, "12 columns have no room in 5.5 in"),
    ],
)
def test_what_is_wrong_in_a_sheet_is_one_clear_line(text, message, sources, capfd):
    plan = write(sources, text, "FIG.toml")
    assert run("figure", plan, "-o", sources / "out.pdf") == 1
    told = capfd.readouterr().err
    assert len(told.splitlines()) == 1 and "nobody foresaw" not in told
    assert message.replace("FIG", "FIG.toml") in told.replace(f"{sources}/", "")
    assert not (sources / "out.pdf").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["FIG", "FIG", "-o", "x.pdf"], "A sheet is one FIG.toml"),
        (["FIG", "my text.h5", "-o", "x.pdf"], "A sheet is one FIG.toml"),
        (["FIG"], "-o is missing"),
        (["FIG", "--layer", "0", "-o", "x.pdf"], "A sheet says itself what --layer would"),
        (["FIG", "--kind", "map", "-o", "x.pdf"], "A sheet says itself what --kind would"),
        (["FIG", "--toml"], "A sheet says itself what --toml would"),
        (["my text.h5", "-o", "x.pdf"], "--kind is missing; there are map,"),
        (["my text.h5", "--kind", "map"], "-o is missing"),
        (["my text.h5", "--kind", "map", "--item", "0,1", "-o", "x.pdf"], "--item cannot be '0,1'"),
    ],
)
def test_wrong_use_of_sheets_is_said(words, message, sources, capfd, monkeypatch):
    write(sources, PANEL, "FIG.toml")
    monkeypatch.chdir(sources)
    assert run("figure", *["FIG.toml" if one == "FIG" else one for one in words]) == 2
    assert message in capfd.readouterr().err


def test_bytes_that_are_no_text_are_no_toml(sources, capfd):
    (sources / "x.toml").write_bytes(b"\xff\xfe")
    assert run("figure", sources / "x.toml", "-o", sources / "x.pdf") == 1
    assert "is no TOML" in capfd.readouterr().err


def test_files_lie_beside_the_plan_or_come_with_hgviz(sources, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    second = PANEL.replace("my text.h5", "sample/first.h5")
    plan = write(sources, PANEL + second + "layer = 5\n")
    told = finish(tasks.sheet_at(plan, sources / "f.svg"))
    assert "--kind map" in (sources / "f.svg").read_text("utf-8") and told.endswith("f.svg")


# --- shared ranges --------------------------------------------------------------------------------


def panel(spec, *of):
    return finish(tasks.panel(spec, list(of)))


def limits(panels):
    return [one.spec.display.limits for one in placed(Sheet("icml2", shared=True), panels)]


def test_unsigned_maps_share_a_range_from_0_to_the_largest():
    a, b = make_capture("Sand ran.", (1, 2), 3), make_capture("It ran.", (1, 2), 3, seed=3)
    panels = [panel(Spec("map", Selection(1, 0)), a), panel(Spec("map", Selection(3, 2)), b)]
    largest = max(float(a.maps[1].read(0).max()), float(b.maps[3].read(2).max()))
    assert limits(panels) == [(0.0, largest)] * 2


def test_signed_and_unsigned_maps_share_the_largest_magnitude():
    capture = mixed(["a", "b", "c"])
    panels = [panel(Spec("map", Selection(0, head)), capture) for head in range(4)]
    largest = max(float(np.abs(capture.maps[0].read(head)).max()) for head in range(4))
    assert limits(panels) == [(0.0, pytest.approx(largest))] * 4
    with style.dressed():
        page = composed_sheet(Sheet("icml2", shared=True), panels)
    words = [text.get_text() for axes in page.figure.axes for text in axes.texts]
    top = f"{largest:.3g}"
    assert words.count(top) == 1 and words.count(f"+{top}") == words.count(f"−{top}") == 3


def test_every_kind_of_map_has_the_range_of_its_weights():
    a = make_capture("Sand ran.", (1, 2), 3)
    b = make_capture("Sand ran.", (1, 2), 3, seed=5)
    wall = panel(Spec("wall"), a)
    every = max(float(one.read(head).max()) for one in a.maps for head in one.heads)
    assert limits([wall]) == [(0.0, pytest.approx(every))]
    pair = panel(Spec("compare", Selection(1, 0)), a, b)
    most = max(float(one.maps[1].read(0).max()) for one in (a, b))
    assert limits([pair]) == [(0.0, pytest.approx(most))]
    [shared] = placed(Sheet(shared=True, columns=1), [pair])
    apart = np.abs(a.maps[1].read(0) - b.maps[1].read(0)).max()
    assert shared.content.apart == pytest.approx(float(apart), abs=1e-6)
    levels = panel(Spec("levels", Selection(query=8)), a)
    whole = panel(Spec("rollout"), a)
    assert limits([levels])[0][1] <= every + 1e-6
    assert limits([whole]) == [
        (0.0, pytest.approx(float(whole.content.capture.maps[0].read(0).max())))
    ]
    assert len(set(limits([wall, pair, levels, whole]))) == 1


def test_limits_of_its_own_a_panel_keeps():
    capture = make_capture("Sand ran.", (1, 2), 3)
    spec = Spec("map", Selection(1, 0))
    own = replace(spec, display=Display(limits=(0.0, 7.0)))
    found = limits([panel(own, capture), panel(spec, capture)])
    assert found == [(0.0, 7.0), (0.0, float(capture.maps[1].read(0).max()))]


def test_charts_of_one_unit_share_their_axis(files):  # noqa: F811
    one, two = (tasks.study_at(files / name) for name in ("s.h5", "t's.h5"))
    panels = [panel(Spec("curve", methods=("loo",)), one), panel(Spec("curve"), two),
              panel(Spec("scores"), one), panel(Spec("scores"), two),
              panel(Spec("map"), make_capture("Sand.", (1, 2), 3))]  # fmt: skip
    curves, curves_too, scores, scores_too, _ = limits(panels)
    assert curves == curves_too and scores == scores_too and curves != scores
    alone = [limits([one])[0] for one in panels]
    assert curves == (min(alone[0][0], alone[1][0]), max(alone[0][1], alone[1][1]))
    assert limits(panels[-1:]) == limits(panels)[-1:]


def test_activations_share_the_axes_that_say_the_same():
    plain, signed = make_capture("ab", (1,), 1), make_capture("ab", (1,), 1, signed=True)
    panels = [panel(Spec("activation"), one) for one in (plain, signed)]
    first, second = (one.content for one in placed(Sheet(shared=True), panels))
    assert [one.limits for one in first.plots] == [one.limits for one in second.plots]
    assert first.plots[0].limits != first.plots[1].limits


def test_metrics_share_the_axes_of_the_same_metric():
    first, second = make_capture("Sand ran.", (1, 2), 3), make_capture("It ran down.", (1, 2), 3)
    spec = Spec("profile", metrics=("entropy", "distance"))
    a, b = (
        one.content for one in placed(Sheet(shared=True), [panel(spec, first), panel(spec, second)])
    )
    assert [one.limits for one in a.metrics] == [one.limits for one in b.metrics]
    alone = [panel(spec, one).content.metrics[0].values for one in (first, second)]
    top = max(float(np.nanmax(values[0])) for values in alone)
    low, high = a.metrics[0].limits
    assert low == 0 and top < high < 1.1 * top


def test_nothing_is_shared_where_nobody_asks():
    capture = make_capture("Sand ran.", (1, 2), 3)
    panels = [panel(Spec("map", Selection(layer)), capture) for layer in (0, 1)]
    assert [one.spec.display.limits for one in placed(Sheet(), panels)] == [None, None]


# --- limits of charts, and rows -------------------------------------------------------------------


def test_a_line_is_cut_where_it_leaves_the_axes():
    axes = Axes(0, 0, 100, 100, 0, 4, 0.0, 1.0)
    x, y = np.arange(5.0), np.array([0.5, 2.5, 0.5, -0.5, 0.5])
    parts = axes.inside(x, y)
    found = [list(zip(a.tolist(), b.tolist(), strict=True)) for a, b in parts]
    assert found == [[(0.0, 0.5), (0.25, 1.0)], [(1.75, 1.0), (2.0, 0.5), (2.5, 0.0)],
                     [(3.5, 0.0), (4.0, 0.5)]]  # fmt: skip
    flat = axes.inside(np.array([0.0, 1.0, 2.0]), np.array([3.0, 3.0, 0.5]))
    assert [one.tolist() for one in flat[0]] == [[1.8, 2.0], [1.0, 0.5]]
    assert axes.inside(x, y + 9) == []
    (same,) = axes.inside(x, np.array([0.0, 1.0, np.nan, 0.5, 0.2]))
    assert same[0] is x  # numbers that are none are left as they are


def test_a_band_ends_where_the_axes_do():
    page, axes = Page(100), Axes(0, 0, 100, 100, 0, 4, 0.0, 1.0)
    x, low = np.arange(5.0), np.array([-1.0, 0.0, 0.5, 0.5, 3.5])
    band(page, axes, Band(x, low, low + 0.5, low + 1.0))
    (drawn,) = page.axes.patches
    corners = {(round(a / 25, 6), round(1 - b / 100, 6)) for a, b in drawn.get_xy()}
    leaves = round(3 + 0.5 / 3, 6)
    wanted = {(0, 0), (1, 0), (2, 0.5), (3, 0.5), (leaves, 1), (4, 1), (1, 1), (2, 1), (3, 1)}
    assert corners == wanted
    inside = [line.get_ydata() for line in page.axes.lines]
    assert len(inside) == 1 and min(inside[0]) >= 0 and max(inside[0]) <= 100


@pytest.mark.parametrize("kind", ["curve", "scores", "activation"])
def test_a_chart_goes_as_far_as_it_is_asked_to(kind, files):  # noqa: F811
    of = make_capture("ab", (1,), 1) if kind == "activation" else tasks.study_at(files / "s.h5")
    spec = Spec(kind, display=Display(limits=(0.2, 0.4)))
    with style.dressed():
        page = composed_sheet(Sheet(columns=1, lettered=False), [panel(spec, of)])
    ink = [line for axes in page.figure.axes for line in axes.lines]
    assert ink
    if kind == "scores":
        words = [text.get_text() for axes in page.figure.axes for text in axes.texts]
        assert any("beyond the axis" in one for one in words)


def test_maps_of_a_row_begin_level():
    short, long = plain(["a"] * 12), plain(["hourglasses"] * 12)
    panels = [panel(Spec("map", title=""), one) for one in (short, long)]
    with style.dressed():
        beside = composed_sheet(Sheet("icml2"), panels)
        below = composed_sheet(Sheet("icml2", columns=1), panels)

    def begins(page):
        return [min(axes.images[0].get_extent()[2:]) for axes in page.figure.axes if axes.images]

    assert begins(beside)[0] == begins(beside)[1]
    assert begins(below)[0] != begins(below)[1]
    assert len(beside.figure.axes) == 3  # what was drawn again is gone


@pytest.mark.parametrize("words", ["a", "hourglasses"])
def test_a_map_begins_level_with_those_that_are_compared_beside_it(words):
    one, other = plain([words] * 12), plain(["a"] * 12)
    panels = [panel(Spec("compare", title=""), one, one), panel(Spec("map", title=""), other)]
    with style.dressed():
        page = composed_sheet(Sheet("icml2"), panels)
    begins = [
        min(image.get_extent()[3] for image in axes.images)
        for axes in page.figure.axes if axes.images
    ]  # fmt: skip
    assert begins[0] == pytest.approx(begins[1])
