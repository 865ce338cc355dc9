"""Segments of unequal length in the window: their marks, and the null group."""

from functools import cache

import numpy as np
import pytest
import torch
from PySide6.QtCore import QPointF

from hgviz import tasks
from hgviz.core import HeadId, Selection
from hgviz.figures import Spec
from hgviz.figures.cells import seen_cells, unseen_reason
from hgviz.figures.spec import options_of
from hgviz.gui import follow as trace
from hgviz.gui import program, theme
from hgviz.gui.follow import FollowOptions, FollowView, follow, lay_out
from hgviz.gui.grid import rule_of
from hgviz.gui.hourglass import HourglassView
from hgviz.gui.layouts import HourglassRoom as Space
from hgviz.gui.layouts import hourglass_layout, level_stays, stages
from hgviz.gui.map import MapView
from hgviz.gui.panels import TopKeysPanel
from hgviz.gui.text import TextStrip, segment_ends
from hgviz.gui.textrows import LEFT, TOP, CellTexts, null_box
from hgviz.gui.view import VIEWS
from hgviz.gui.view import view as view_of
from hgviz.models import open_model
from hgviz.models.checkpoints import save
from hgviz.session import Session
from hgviz.store import write_capture
from tests.analysis.planting import SEGMENT_ENDS, SENTENCE
from tests.analysis.planting import funnel as make_funnel
from tests.analysis.planting import segmented as make_segmented
from tests.gui.screen import colour_at, shown, shows_no_error
from tests.making import make_capture
from tests.models import patches as blt
from tests.models.building import make_transformer
from tests.test_families import call

TEXT = "the glass has run and is turned now"
SPACES = frozenset(at for at, letter in enumerate(TEXT) if letter == " ")
KEYS = {"family": "dynamic", "n_layers": [1, 2, 1], "vocab_size": 256, "boundaries": "learned"}
WIDE = (1600, 188)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with random weights that finds some ends and not others."""
    made = make_transformer(**KEYS)
    ids = torch.tensor([[*TEXT.encode()]])
    with torch.no_grad():
        at = made.down[0].boundary["out"].bias
        scores = []
        made.down[0].boundary.register_forward_hook(lambda *found: scores.append(found[2]))
        made(ids)
        at -= scores[0].quantile(0.7)
    path = tmp_path_factory.mktemp("segments") / "dynamic"
    save(path, made.config, made.state_dict())
    return path


@pytest.fixture(scope="module")
def model(folder):
    return open_model(folder)


@pytest.fixture(scope="module")
def own(model):
    """A capture between the segments that the model finds."""
    return tasks.capture(model, model.tokenize(TEXT))


@pytest.fixture(scope="module")
def given(model):
    """One between words, whose last is in no segment."""
    ends = [at in SPACES for at in range(len(TEXT))]
    return tasks.capture(model, model.cut(model.tokenize(TEXT), ends))


# --- what is shown --------------------------------------------------------------------------------


def test_the_model_finds_some_ends_and_the_given_ends_are_the_spaces(own, given):
    found = set(segment_ends(own).tolist())
    assert 3 < len(found) < len(TEXT) - 3 and found != SPACES
    assert set(segment_ends(given).tolist()) == SPACES
    assert segment_ends(make_capture(TEXT)) is None


def test_segments_are_as_wide_as_their_tokens_and_stand_under_them(app, given):
    chosen = Selection(3, 0, 20)
    with shown(TextStrip, WIDE, capture=given, selection=chosen) as (view, _):
        strip = view.strip
        tokens, segments = strip.rows
        assert (tokens.name, segments.name) == ("1:1", "segments")
        assert segments.cells.tolist() == given.spans[1].tolist() and segments.null
        first, last = given.spans[1][2]
        band = strip.bands[1]
        box = strip.box(segments.cells[2], band)
        assert (box.left(), box.right()) == tuple(
            LEFT + round(strip.ruler.x(one)) for one in (first, last)
        )
        assert segments.chosen == tuple(given.spans[1][given.position(1, 20)])
        assert null_box(band).right() < LEFT - 3  # no token is as far left


def test_a_letter_before_any_end_reads_the_null_group(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 2)) as (view, _):
        assert view.strip.rows[1].chosen == (-1, -1)
        edge = null_box(view.strip.bands[1])
        found = colour_at(view.strip, edge.left(), edge.center().y())
        assert found == theme.current().mark.getRgb()[:3]


def test_letters_after_the_last_end_are_in_no_segment(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 34)) as (view, _):
        strip, last = view.strip, max(SPACES)
        top, height = strip.row_layout.tops[1]
        x = LEFT + strip.ruler.x(last + 2)
        assert strip.unit_at(QPointF(x, TOP + top + height / 2)) is None
        image = strip.grab().toImage()
        row = {image.pixel(round(x) + dx, TOP + top + 4) for dx in range(12)}
        assert len(row) > 1  # hatched


def test_marks_stand_where_segments_end(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 20)) as (view, _):
        strip = view.strip
        assert set(strip.segment_ends.tolist()) == SPACES
        assert "▾ A segment ends." in view.legend.full
        top, height = strip.row_layout.lane
        image, ink = strip.grab().toImage(), theme.current().text.getRgb()[:3]
        y = TOP + top + height - 4
        for token in range(1, len(TEXT)):
            x = round(LEFT + strip.ruler.x(token + 1))
            near = {image.pixelColor(x + dx, y).getRgb()[:3] for dx in (-1, 0)}
            assert (ink in near) == (token in SPACES)


def test_heads_that_are_switched_off_do_not_move_ends_that_were_given(app, own, given):
    for capture, again in ((own, True), (given, False)):
        session = Session()
        session.put(capture=capture, checkpoint="x", off=frozenset({HeadId(1, 0)}))
        assert session.outdated == again


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("ends", [(), (0,), (34,), tuple(range(35))])
def test_every_segmentation_is_drawn_in_every_look(app, model, dark, ends):
    theme.apply(app, dark)
    bits = [at in ends for at in range(len(TEXT))]
    capture = tasks.capture(model, model.cut(model.tokenize(TEXT), bits))
    views = [view_of(name) for name in VIEWS] if ends == (0,) else [TextStrip]
    for kind in views:
        for layer, query in ((1, 0), (3, 34)):
            fields = {"capture": capture, "selection": Selection(layer, 0, query, 0)}
            with shown(kind, (900, 400), **fields) as (view, _):
                assert shows_no_error(view)


# --- the null group has a name --------------------------------------------------------------------


def test_the_null_group_is_named_in_every_pane(app, given):
    chosen = Selection(1, 0, 1, 1)  # before any end
    assert "query 0 (null group)" in program.selection_words(given, chosen)
    with shown(MapView, capture=given, selection=chosen) as (view, _):
        names = view.canvas.panes[0].scene.rows
        assert (names.glyph(0), names.place(0)) == ("∅", "null group: no part of the text")
        assert names.glyph(1) == "the·"
        view.canvas.pointed.emit((0, 1))
        assert "null group" in view.canvas.panes[0].card.text
    with shown(TopKeysPanel, (304, 200), capture=given, selection=chosen) as (view, _):
        assert view.query.text() == "∅" and "null group" in view.where.full
        assert [(one.glyph, one.before) for one in view.list.rows] == [("∅", "null group")]


@pytest.mark.parametrize("kind", ["map", "links"])
def test_the_null_group_is_named_in_figures(given, tmp_path, kind):
    out = tmp_path / "figure.svg"
    tasks.figure(Spec(kind, Selection(1, 0, 20)), given, out)
    assert ">∅<" in out.read_text()


@pytest.mark.parametrize(
    ("token", "said"), [(34, "“w” is in no segment yet"), (14, "“r” is pooled")]
)
def test_following_a_letter_after_the_last_end_says_it_joins_no_segment(given, token, said):
    wish = trace.FollowOptions(Selection(3, 0, token), {}, {})
    way = stages(given.spec)
    assert said in trace.follow(given, way, token, wish, str).chips[0]


def texts_of(capture):
    return [CellTexts.of_tokens(capture.prompt_of(one.index), 12) for one in capture.spec.levels]


# --- segments of unequal length in the window, and on paper ---------------------------------------


@cache
def segmented(name="words"):
    return make_segmented(name)


def test_the_stage_of_segments_is_the_waist():
    capture = segmented()
    way = stages(capture.spec)
    assert [one.kind for one in way] == ["first", "waist", "last"]
    assert way[1].title(capture.spec) == "Shortened to segments"
    layout = hourglass_layout(capture.spec, [len(one) for one in capture.spans], Space(600, 900))
    outer, inner, again = (one.box.width() for one in layout.bands)
    assert inner < outer == again
    assert [one.level for one in layout.residuals] == [0]


@pytest.mark.parametrize("name", SEGMENT_ENDS)
def test_a_letter_is_followed_to_its_segment_and_back(name):
    capture = segmented(name)
    for token in (0, 1, len(SENTENCE) // 2, len(SENTENCE) - 1):
        course = lay_out(capture, stages(capture.spec), token, texts_of(capture), (1200, 800))
        position = capture.position(1, token)
        cell = course.strips[1].cell(position)
        if position == 0 or cell is None:  # nothing is read of the null group
            continue
        back = course.gaps[1].others
        assert back is not None and back[:2] == cell
        readers = [t for t in range(len(SENTENCE)) if capture.position(1, t) == position]
        ends = [course.strips[2].cell(t) for t in readers]
        inside = [one for one in ends if one is not None]
        assert back[2:] == (inside[0][0], inside[-1][1])


def test_every_segment_stands_in_the_text_strip(app):
    capture = segmented()
    fields = {"capture": capture, "selection": Selection(3, 1, 30)}
    with shown(TextStrip, (1600, 188), **fields) as (view, session):
        line = next(one for one in view.strip.rows if one.head and one.head.layer == 3)
        assert line.cells.tolist() == capture.spans[1].tolist()
        session.put(selection=Selection(3, 1, 0))  # which reads the null group alone
        view.settle()
        assert shows_no_error(view)


@pytest.mark.parametrize("kind", [HourglassView, FollowView])
@pytest.mark.parametrize("name", ["words", "none", "every token"])
def test_views_show_any_segments(app, kind, name):
    fields = {"capture": segmented(name), "selection": Selection(2, 1, 5)}
    with shown(kind, (900, 700), **fields) as (view, _):
        assert shows_no_error(view)


def test_the_null_group_looks_at_itself_and_is_called_none():
    capture = segmented()
    seen = seen_cells(capture, 2)
    np.testing.assert_array_equal(seen, np.tri(len(seen), dtype=bool))
    assert unseen_reason(capture, [HeadId(2, 0)]) == "not seen: comes after the query"


@pytest.mark.parametrize("kind", ["map", "levels", "links", "wall"])
def test_figures_show_segments(tmp_path, kind):
    write_capture(tmp_path / "c.h5", segmented())
    out = tmp_path / "figure.svg"
    head = () if kind == "wall" else ("--layer", 3, "--head", 1)
    assert call("figure", tmp_path / "c.h5", "--kind", kind, *head, "-o", out) == 0
    words = out.read_text()
    assert "segments" in words and (kind == "wall" or ">every<" in words or ">e<" in words)


# --- a Funnel: levels with [CLS] apart, and tokens that are left out ------------------------------

SIZES, N = (2, 2, 2), 31


@cache
def funnel():
    return make_funnel(SIZES)


@cache
def base():
    return make_funnel(SIZES, after=None)


@cache
def no_stay():
    """Nothing but the layer that looks down at the last level."""
    return make_funnel((2, 2, 1))


def course(token):
    return lay_out(funnel(), stages(funnel().spec), token, texts_of(funnel()), (1200, 800))


@pytest.mark.parametrize("token", [0, 1, 4, 5, 17])
def test_a_letter_is_followed_to_its_positions_and_back(token):
    way, found = stages(funnel().spec), course(token)
    assert [one.level for one in way] == [0, 1, 2, 0]
    back = found.gaps[-1].others
    own = found.strips[2].cell(funnel().position(2, token))
    assert back is not None and back[:2] == own
    together = [at for at in range(N) if funnel().position(2, at) == funnel().position(2, token)]
    ends = [one for at in together if (one := found.strips[3].cell(at))]
    assert back[2:] == (ends[0][0], ends[-1][1])
    assert found.strips[1].before == 0  # no zeros of a shift


def test_a_letter_that_is_left_out_gets_nothing_back():
    assert funnel().spans[2][-1].tolist() == [25, 29]
    for token, back in ((0, True), (28, True), (29, False), (30, False)):
        wish = FollowOptions(Selection(0, 0, token), {}, {})
        said = follow(funnel(), stages(funnel().spec), token, wish, str).chips[-1]
        assert (course(token).gaps[-1].thread is not None) is back
        assert ("was left out" not in said) is back


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("capture", [funnel, base, no_stay])
def test_views_show_a_funnel(app, kind, capture):
    fields = {"capture": capture(), "selection": Selection(2, 1, N - 1)}
    refused = kind == "across"  # its levels are not composed
    with shown(view_of(kind), (900, 700), **fields) as (view, _):
        assert shows_no_error(view) is not refused


def test_only_with_its_decoder_a_text_grows_back(app):
    for capture, said in ((funnel(), True), (base(), False)):
        with shown(HourglassView, (900, 700), capture=capture) as (view, _):
            assert ("in the middle" in view.head.note.text()) is said


@pytest.mark.parametrize("kind", ["map", "levels", "links", "wall"])
def test_figures_show_a_funnel(tmp_path, kind):
    write_capture(tmp_path / "c.h5", funnel())
    out = tmp_path / "f.svg"
    options = {"layer": 2, "head": 1, "query": N - 1}
    words = [word for name in options_of(kind) if name in options
             for word in (f"--{name}", options[name])]  # fmt: skip
    assert call("figure", tmp_path / "c.h5", "--kind", kind, *words, "-o", out) == 0
    assert out.stat().st_size > 1000


# --- a Byte Latent Transformer in the window: bytes, patches and bytes as an hourglass ------------

RIVER = "The river broke its banks."


@pytest.fixture(scope="module")
def blt_capture(tmp_path_factory):
    """(mode, text) -> a capture."""

    @cache
    def find(mode="two parts", text=RIVER):
        folder = blt.write(
            tmp_path_factory.mktemp("blt") / "m", "BltForCausalLM", **blt.MODES[mode]
        )
        model = open_model(folder)
        return tasks.capture(model, model.tokenize(text))

    return find


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("mode, text, layer", [
    ("two parts", RIVER, 4), ("two parts", RIVER, 7), ("one part", RIVER, 5), ("two parts", "a", 9),
    ("no patcher", RIVER, 2), ("all layers look down", RIVER, 3),
])  # fmt: skip
def test_views_show_a_byte_latent_transformer(app, blt_capture, kind, mode, text, layer):
    capture = blt_capture(mode, text)
    chosen = Selection(layer, 1, len(text) - 1)
    with shown(view_of(kind), (900, 700), capture=capture, selection=chosen) as (view, _):
        assert shows_no_error(view)


def test_every_layer_has_a_row_from_bytes_to_patches_and_back(app, blt_capture):
    capture = blt_capture()
    assert [(one.level, len(one.rows)) for one in level_stays(capture.spec)] == [
        (0, 4), (1, 0), (2, 2), (0, 3),
    ]  # fmt: skip
    layout = hourglass_layout(capture.spec, [len(one) for one in capture.spans], Space(900, 700))
    assert [one.layer for one in layout.rows] == list(range(11))
    again = layout.row(9)  # a map from bytes to patches, in the middle of a stay at bytes
    assert again.kind == "full" and again.cells[0][1].width() < again.cells[0][1].height()
    with shown(HourglassView, (900, 700), capture=capture) as (view, _):
        assert "in the middle" in view.head.note.text()


def test_a_letter_is_followed_past_what_cuts_the_text(blt_capture):
    capture = blt_capture()
    way = stages(capture.spec)
    assert [(one.level, one.layers) for one in way] == [(0, (2, 3)), (2, (5, 6)), (0, (8, 10))]
    last = len(capture.prompt) - 1
    told = follow(capture, way, last, FollowOptions(Selection(5, 0, last), {}, {}), str)
    closed = int(capture.spans[2][-1, 1])
    assert ("in no segment yet" in told.chips[0]) is (closed <= last)
    assert "attends most to" in told.chips[1]


@pytest.mark.parametrize("mode", ["one part", "two parts"])
def test_no_cell_of_a_map_between_levels_counts_as_unseen_that_has_weight(blt_capture, mode):
    capture = blt_capture(mode)
    for layer in capture.spec.layers:
        one, rule = capture.maps[layer.index], rule_of(capture, HeadId(layer.index, 0))
        seen = np.ones(one.shape[1:], bool)
        seen = np.tril(seen) if rule.causal else seen
        assert not one.read(0)[~seen].any(), layer.name
