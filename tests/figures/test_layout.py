"""Nothing overlaps and nothing is cut, whatever the text, model and width; labels say the text."""

import unicodedata
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.core import Display, HeadId, HgvizError, Selection
from hgviz.figures import WIDTHS, CaptureFacts, Spec, labels, points
from hgviz.figures.charts import Grid, Grids, Line, Plot, Plots, Strip, Strips
from hgviz.figures.labels import (
    BOX,
    JOINERS,
    axis_marks,
    elide,
    size_for,
    text_width,
    token_marks,
    unit_spans,
    visible,
    word_marks,
)
from hgviz.figures.output import compose
from hgviz.figures.page import Page
from hgviz.maps.links import LinkOptions
from hgviz.tasks.charts import activation_chart, profile_chart
from tests.figures.flaws import flaws
from tests.figures.making import (
    HOSTILE,
    MAKERS,
    SEA,
    STUDIES,
    WAYS,
    answer_panel,
    capture_of,
    plain,
    selections,
)
from tests.gui import kinds
from tests.making import byte_prompt, make_capture

EVERY_WIDTH = ("1.6in", *WIDTHS, "12in")
TITLES = (
    None,
    "",
    "What a head of the last layer that reads whole words does with $x^2$ and モデル",
)
DRAWN = ("map", "links", "wall", "levels", "rollout", "compare")  # of any capture


@cache
def _content(kind, name, chosen):
    capture = capture_of(name)
    if kind in ("map", "links", "wall", "levels"):
        return CaptureFacts(capture)
    if kind == "compare":
        return tasks.panel(Spec(kind, replace(chosen, query=None)), [capture] * 2).content
    return tasks.panel(Spec(kind, Selection(0, 0, chosen.query)), capture).content


def page_of(kind, name, number, width):
    """A page; number: which of the selections, titles and ways to draw it has. None where maps
    over slots cannot be composed."""
    chosen = selections(capture_of(name))[number % 3]
    try:
        content = _content(kind, name, chosen)
    except HgvizError:
        assert kind == "rollout"
        return None
    if kind == "rollout":
        chosen = Selection(0, 0, chosen.query)
    display, across = Display(shared=number % 2 == 1), LinkOptions(across=number % 2 == 0)
    return compose(Spec(kind, chosen, display, width, links=across, title=TITLES[number // 2 % 3]),
                   content)  # fmt: skip


def require_sound(page, width, *what):
    """Require a page as wide as asked that has no flaw."""
    if page is not None:
        assert page.width == pytest.approx(points(width), abs=0.01), what
        assert flaws(page) == [], (*what, width)


@pytest.mark.parametrize("name", MAKERS)
def test_no_figure_of_any_text_has_a_flaw(name):
    """Each kind at one of the widths, a different one for each name: every pair is drawn."""
    for at, kind in enumerate(DRAWN):
        number = 5 * list(MAKERS).index(name) + 2 * at
        width = EVERY_WIDTH[number % len(EVERY_WIDTH)]
        require_sound(page_of(kind, name, number // 2, width), width, kind)


# --- charts and answers ---------------------------------------------------------------------------


def _profiles(name):
    if name == "two shapes":
        return [capture_of("sea"), make_capture(SEA, strides=(1, 2), heads=3), capture_of("words")]
    if name == "hostile names":
        captures = plain(HOSTILE.split()), plain(["a"]), plain(["b"] * 40)
        return [replace(one, spec=replace(one.spec, name=f"{HOSTILE}{at}"))
                for at, one in enumerate(captures)]  # fmt: skip
    return [capture_of(name)]


def _plots(values):
    x = np.arange(9.0)
    lines = tuple(Line(f"model {n}", x, y) for n, y in enumerate((values, values / 2)))
    plot = Plot("Where scores lie", "|score|", "Cells, %", lines)
    return Plots((plot, plot), "Shaded.", title="A title", more="of two", notes=("A note.",))


def _strips():
    nothing, one = np.full(4, np.nan), (np.nan, -np.inf, np.inf)
    strips = (
        Strip("Entropy of |A|", "nats", (np.ones(4), nothing), ((1.0, 0.9, 1.1), one)),
        Strip("Row sum", "", (np.ones(4), -np.arange(4.0)), ((1, 1, 1), (-1.5, -2, -1))),
        Strip("Mean |dM/dS|", "nats", (np.zeros(3), np.zeros(2)), ((0, 0, 0), (0, 0, 0))),
    )
    return Strips(strips, ("softmax", "x" * 200), notes=("A note.",))


def _grids(heads):
    names = tuple(f"{n // 6}.{n % 6}" for n in range(heads))
    values = np.random.default_rng(0).random((heads, heads))
    values[0, 0] = np.nan
    grid = Grid("Within A", values, names, names, "Head of A", "Head of A")
    return Grids((grid, grid, grid), "Distance")


def _studies(name):
    kind, studies, more = STUDIES[name]()
    return tasks.study_chart(kind, studies, **more)


LINKS = {
    "several": LinkOptions(queries=(2, 4, 9), heads=(HeadId(0, 1), HeadId(1, 2)), most=3),
    "all heads": LinkOptions(heads=tuple(HeadId(1, n) for n in range(6)), most=2),
    "words": LinkOptions(words=True, special=False, mass=0.7, most=0),
    "every query": LinkOptions(queries=tuple(range(12)), most=2),
}
NUMBERS = np.zeros(9), 1e-7 * np.arange(9), np.r_[np.nan, 5e4 * np.ones(8)]
ODD = "one letter", "many layers", "ragged", "states"
CHARTS = [
    *((name, "curve", _studies, name) for name in STUDIES),
    *((f"profile {name}", "profile", lambda name: profile_chart(_profiles(name)), name)
      for name in (*ODD, "two texts", "two shapes", "hostile names")),
    *((f"plots {at}", "activation", _plots, values) for at, values in enumerate(NUMBERS)),
    ("strips", "activation", lambda _: _strips(), None),
    *((f"grids {heads}", "activation", _grids, heads) for heads in (1, 90)),
    ("activations", "activation", activation_chart, ["softmax", "ymish", "linear", "topk"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "make", "given"), [row[1:] for row in CHARTS],
                         ids=[row[0] for row in CHARTS])  # fmt: skip
def test_no_chart_has_a_flaw(kind, make, given, request):
    chart = make(given)
    number = len(request.node.name)
    narrow = 240 / 72 if kind == "activation" else 1.6  # reports are never narrower
    width = (f"{narrow}in", "icml", f"{narrow}in", "nature2")[number % 4]
    require_sound(compose(Spec(kind, width=width), chart), width)


@pytest.mark.parametrize("name", ["hostile", "two texts", "ragged"])
def test_no_answer_has_a_flaw(name):
    wide = "neurips" if len(name) % 2 else "acl"
    for way, width in zip(WAYS, ("1.6in", wide, wide, "1.6in"), strict=True):
        panel = answer_panel(capture_of(name), way, width)
        require_sound(compose(panel.spec, panel.content), width, way)


@pytest.mark.parametrize("name", ["sea", "hostile", "relative"])
def test_no_neurons_have_a_flaw(name):
    capture = capture_of(name)
    for layer, width in zip(capture.spec.layers[::12], ("1.6in", "icml"), strict=True):
        last = len(capture.query_prompt(layer.index)) - 1
        spec = Spec("neurons", Selection(layer.index, layer.heads[-1], last // 2), width=width)
        require_sound(compose(spec, tasks.panel(spec, capture).content), width)


def test_no_links_have_a_flaw():
    for at, (name, options) in enumerate(LINKS.items()):
        options = replace(options, across=at % 2 == 0)
        spec = Spec("links", Selection(0, 1, 4), width="acl2", links=options)
        require_sound(compose(spec, kinds.bert()), "acl2", name)


# --- the tests can fail ---------------------------------------------------------------------------

PAGE = (100.0, 60.0)
RASTER = np.zeros((200, 1, 3), np.uint8)
WRONG = {
    "'abc' lies over 'x'": lambda page: page.text(12, 50, "x"),
    "'long' is 10": lambda page: page.text(95, 20, "long"),
    "'abc' lies over a raster": lambda page: page.image(RASTER, 5, 40, 10, 10),
    "'abc' lies over a fill": lambda page: page.box(5, 40, 10, 10, fill="red"),
    "'abc' is crossed by a line": lambda page: page.lines([[(0, 48), (90, 48)]], "red"),
    "'abc' is crossed by a line.": lambda page: page.marks([(14, 48)], "o", "red", 3),
    "'a line' is": lambda page: page.marks([(99.5, 8)], "o", "red", 3),
    "no font has": lambda page: page.text(50, 20, "\U0001f9ff"),
    "there is text of 4": lambda page: page.text(50, 20, "small", size=4),
    "the smallest text": lambda page: page.axes.text(50, 20, "x", size=5.5),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("flaw", WRONG)
def test_a_flaw_is_found(flaw):
    with labels.figure_settings():
        page = Page(PAGE[0])
        page.text(10, 50, "abc", size=7)
        WRONG[flaw](page)
        page.close(PAGE[1])
        assert any(one.startswith(flaw.rstrip(".")) for one in flaws(page))


# --- where things lie -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "width"),
    [("sea", "acl"), ("Hangul", "neurips"), ("words", "acl"), ("long names", "neurips"),
     ("many and one", "acl")],
)  # fmt: skip
def test_the_labels_of_a_map_are_those_of_its_axes_and_no_others(name, width):
    capture = capture_of(name)
    chosen = selections(capture)[1]
    page = compose(Spec("map", chosen, width=width), capture)
    left, right, bottom, top = page.axes.images[0].get_extent()
    found = [one for one in page.axes.texts if one.get_size() < labels.TITLE]
    spans, prompt = capture.query_spans(chosen.layer), capture.query_prompt(chosen.layer)
    cell = (bottom - top) / len(spans)
    assert name != "sea" or right - left == pytest.approx(bottom - top)  # its cells are squares
    size, room = size_for(cell), min(0.24 * page.width, 64.0)
    marks = axis_marks(prompt, spans, cell, size, room, capture.row(chosen.layer, chosen.query))
    drawn = {(t.get_text(), round(t.get_position()[1], 3)) for t in found
             if t.get_ha() == "right" and t.get_rotation() == 0}  # fmt: skip
    assert drawn == {(m.words, round(top + m.middle * cell + 0.36 * size, 3)) for m in marks}
    if cell >= size * 1.18:  # each token has one, whole or elided
        for mark, (start, end) in zip(marks, spans, strict=False):
            whole = visible(prompt.words(int(start), int(end)).strip())
            assert mark.words == whole or whole.startswith(mark.words[:-1]) or not whole


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [("the", "the"), ("a b", "a·b"), ("\n", "↵"), ("\t", "⇥"), ("\x00", "\\x00"), ("\u202e", BOX),
     ("\u200b", BOX), ("❤\ufe0f", "❤"), ("\u0301", "◌\u0301"), ("e\u0301", "e\u0301"),
     ("\ue000", BOX), ("$x$", "$x$")],
)  # fmt: skip
def test_every_character_has_a_sign(text, shown):
    assert visible(text) == shown


@settings(max_examples=200, deadline=None)  # fonts load on the first one
@given(st.text(min_size=1, max_size=30))
def test_what_is_shown_can_be_drawn_and_is_never_empty(text):
    shown = visible(text)
    assert shown
    for character in shown:
        assert labels.has_glyph(character)
        category = unicodedata.category(character)
        assert category != "Cc" and (category not in ("Cf", "Cs") or character in JOINERS)


@settings(deadline=None)
@given(st.text("abc fgW", min_size=1, max_size=60), st.floats(8, 200))
def test_an_elided_label_fits_and_keeps_its_beginning(text, room):
    found = elide(text, room, 7.0)
    assert found == text or found.endswith("…")
    assert text.startswith(found.removesuffix("…"))
    assert text_width(found, 7.0) <= room or found == "…"


PAIRS = np.array([(max(2 * g - 1, 0), 2 * g + 1) for g in range(7)])
PADDED = np.array([(-1, -1), (0, 1), (1, 2), (-1, -1)])


@pytest.mark.parametrize(
    ("marks", "prompt", "spans", "found"),
    [
        (word_marks, byte_prompt("The sand ran."), unit_spans(13),
         [(0, 3, "The"), (4, 8, "sand"), (9, 13, "ran.")]),
        (word_marks, byte_prompt("The sand ran."), PAIRS,
         [(0, 2, "The"), (2, 4, "sand"), (5, 7, "ran.")]),
        (word_marks, plain(["hour-", "glass", "sea"]).prompt, unit_spans(5),
         [(0, 1, "[CLS]"), (1, 3, "hour-glass"), (3, 4, "sea"), (4, 5, "[SEP]")]),
        (token_marks, byte_prompt("a한b"), unit_spans(5), [(0, 1, "a"), (1, 4, "한"), (4, 5, "b")]),
        (word_marks, byte_prompt("ab"), PADDED, [(1, 3, "ab")]),
    ],
)  # fmt: skip
def test_positions_share_the_label_of_their_word_or_character(marks, prompt, spans, found):
    assert [(mark.start, mark.end, mark.words) for mark in marks(prompt, spans)] == found
