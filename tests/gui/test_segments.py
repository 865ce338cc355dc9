"""Segments of unequal length, a Funnel and a Byte Latent Transformer in the window and on paper."""

from functools import cache

import pytest
import torch

from hgviz import tasks
from hgviz.core import Selection
from hgviz.gui import program
from hgviz.gui.follow import FollowOptions, follow, lay_out
from hgviz.gui.layouts import stages
from hgviz.gui.map import MapView
from hgviz.gui.panels import TopKeysPanel
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, CellTexts, null_box
from hgviz.gui.view import VIEWS
from hgviz.gui.view import view as view_of
from hgviz.models import open_model
from tests.analysis.planting import SEGMENT_ENDS, SENTENCE
from tests.analysis.planting import funnel as make_funnel
from tests.analysis.planting import segmented as make_segmented
from tests.gui.screen import shown, shows_no_error
from tests.models import zoo
from tests.models.building import make_transformer

TEXT = "the glass has run and is turned now"
SPACES = frozenset(at for at, character in enumerate(TEXT) if character == " ")
KEYS = {"family": "dynamic", "n_layers": [1, 2, 1], "vocab_size": 256, "boundaries": "learned"}
WIDE = (1600, 188)
SIZES = (2, 2, 2)
RIVER = "The river broke its banks."

funnel = cache(make_funnel)


@cache
def segmented(name="words"):
    return make_segmented(name)


def lay(capture, token):
    texts = [CellTexts.of_tokens(capture.prompt_of(one.index), 12) for one in capture.spec.levels]
    return lay_out(capture, stages(capture.spec), token, texts, (1200, 800))


def chips(capture, token):
    options = FollowOptions(Selection(0, 0, token), {}, {})
    return follow(capture, stages(capture.spec), token, options, str).chips


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with random weights that finds some ends and not others."""
    from hgviz.models.checkpoints import save

    made = make_transformer(**KEYS)
    with torch.no_grad():
        scores = []
        made.down[0].boundary.register_forward_hook(lambda *found: scores.append(found[2]))
        made(torch.tensor([[*TEXT.encode()]]))
        made.down[0].boundary["out"].bias -= scores[0].quantile(0.7)
    path = tmp_path_factory.mktemp("segments") / "dynamic"
    save(path, made.config, made.state_dict())
    return open_model(path)


@pytest.fixture(scope="module")
def own(model):
    """A capture between the segments that the model finds."""
    return tasks.capture(model, model.tokenize(TEXT))


@pytest.fixture(scope="module")
def given(model):
    """One between words, whose last is in no segment."""
    ends = [at in SPACES for at in range(len(TEXT))]
    return tasks.capture(model, model.cut(model.tokenize(TEXT), ends))


# --- the strip ------------------------------------------------------------------------------------


def test_segments_stand_under_their_tokens(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 20)) as (view, _):
        strip = view.strip
        tokens, segments = strip.rows
        assert (tokens.name, segments.name) == ("1:1", "segments") and segments.null
        assert segments.cells.tolist() == given.spans[1].tolist()
        assert segments.chosen == tuple(given.spans[1][given.position(1, 20)])
        assert null_box(strip.bands[1]).right() < LEFT - 3  # no token is as far left


# --- every view -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def capture_of(model, tmp_path_factory):
    """(kind) -> a capture of segments, of a Funnel or of a Byte Latent Transformer."""

    @cache
    def find(kind):
        if kind.startswith("cut"):
            ends = {"cut nowhere": (), "cut once": (0,), "cut everywhere": range(35)}[kind]
            bits = [at in ends for at in range(len(TEXT))]
            return tasks.capture(model, model.cut(model.tokenize(TEXT), bits))
        if kind.startswith("funnel"):
            return make_funnel((2, 2, 1) if kind == "funnel without stay" else SIZES,
                               **({"after": None} if kind == "funnel base" else {}))  # fmt: skip
        folder = zoo.write_blt(
            tmp_path_factory.mktemp("blt") / "m", "BltForCausalLM", **zoo.MODES[kind]
        )
        reader = open_model(folder)
        return tasks.capture(reader, reader.tokenize("a" if kind == "no patcher" else RIVER))

    return find


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(
    ("kind", "layer"),
    [
        ("cut nowhere", 3), ("cut once", 1), ("cut everywhere", 3),
        ("funnel", 2), ("funnel base", 2), ("funnel without stay", 2),
        ("two parts", 4), ("one part", 5), ("no patcher", 2), ("all layers look down", 3),
    ],
)  # fmt: skip
def test_views_show_any_segments(app, capture_of, name, kind, layer):
    capture = capture_of(kind)
    refused = name == "across" and kind.startswith("funnel")  # its levels are not composed
    chosen = Selection(layer, 0, len(capture.prompt) - 1)
    with shown(view_of(name), (900, 500), capture=capture, selection=chosen) as (view, _):
        assert shows_no_error(view) is not refused
        if name == "hourglass":
            assert ("in the middle" in view.head.note.text()) is (kind != "funnel base")


# --- the null group has a name --------------------------------------------------------------------


def test_the_null_group_is_named_in_every_pane(app, given):
    chosen = Selection(1, 0, 1, 1)  # before any end
    assert "query 0 (null group)" in program.selection_words(given, chosen)
    with shown(MapView, capture=given, selection=chosen) as (view, _):
        names = view.canvas.panes[0].scene.rows
        assert (names.glyph(0), names.place(0)) == ("∅", "null group: not part of the text")
        assert names.glyph(1) == "the·"
    with shown(TopKeysPanel, (304, 200), capture=given, selection=chosen) as (view, _):
        assert view.query.text() == "∅" and "null group" in view.where.full


# --- a token on its way ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "tokens"),
    [
        *((lambda name=name: segmented(name), (0, 1, 20, len(SENTENCE) - 1))
          for name in SEGMENT_ENDS),
        (lambda: funnel(SIZES), (0, 1, 4, 5, 17)),
    ],
)  # fmt: skip
def test_a_token_is_followed_to_its_position_and_back(make, tokens):
    capture = make()
    for token in tokens:
        layout, inner = lay(capture, token), stages(capture.spec)[-2].level
        position = capture.position(inner, token)
        cell, back = layout.strips[-2].cell(position), layout.gaps[-1].others
        if inner == 1 and position == 0 or cell is None:  # nothing is read of the null group
            continue
        readers = [t for t in range(len(capture.prompt)) if capture.position(inner, t) == position]
        ends = [one for t in readers if (one := layout.strips[-1].cell(t))]
        assert back == (*cell, ends[0][0], ends[-1][1])


def test_tokens_that_are_in_no_group_say_so(given, capture_of):
    assert "“w” is not in a segment yet" in chips(given, 34)[0]
    assert "“r” is pooled" in chips(given, 14)[0]
    for token, back in ((0, True), (28, True), (29, False), (30, False)):
        left_out = "was left out" in chips(funnel(SIZES), token)[-1]
        thread = lay(funnel(SIZES), token).gaps[-1].thread
        assert (thread is not None) is back is not left_out
    capture = capture_of("two parts")
    way = stages(capture.spec)
    assert [(one.level, one.layers) for one in way] == [(0, (2, 3)), (2, (5, 6)), (0, (8, 10))]
    last = len(capture.prompt) - 1
    words = chips(capture, last)
    assert ("not in a segment yet" in words[0]) is (int(capture.spans[2][-1, 1]) <= last)
    assert "attends most to" in words[1]
