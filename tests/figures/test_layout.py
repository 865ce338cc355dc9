"""Nothing overlaps and nothing is cut, whatever the text, model and width; labels say the text."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.core import Display, Selection
from hgviz.figures import WIDTHS, Spec, labels, points
from hgviz.figures.labels import (
    BOX,
    Mark,
    axis_marks,
    elide,
    size_for,
    thin,
    token_marks,
    visible,
    word_marks,
)
from hgviz.figures.output import compose
from hgviz.figures.page import Page
from tests.figures.flaws import flaws, seen
from tests.figures.pages import EVERY_WIDTH, page_of, selections, some_pages
from tests.figures.texts import HOSTILE, MAKERS, byte_prompt, capture_of, plain


@pytest.mark.parametrize("name", MAKERS)
def test_no_figure_of_any_text_has_a_flaw(name):
    for kind, width, page in some_pages(name):
        assert page.width == pytest.approx(points(width), abs=0.01)
        assert flaws(page) == [], (kind, width)


def test_every_width_is_drawn_for_every_kind():
    drawn = {(kind, (5 * name + 2 * kind) % len(EVERY_WIDTH)) for name in range(len(MAKERS))
             for kind in range(6)}  # fmt: skip
    assert len(drawn) == 6 * len(EVERY_WIDTH) == 6 * (len(WIDTHS) + 2)


PAGE = (100.0, 60.0)
RASTER = np.zeros((200, 1, 3), np.uint8)
WRONG = {
    "'abc' lies over 'x'": lambda page: page.text(12, 50, "x"),
    "'long' is 10": lambda page: page.text(95, 20, "long"),
    "'abc' lies over a raster": lambda page: page.image(RASTER, 5, 40, 10, 10),
    "'abc' lies over a fill": lambda page: page.box(5, 40, 10, 10, fill="red"),
    "'abc' lies over a fill.": lambda page: page.polygon([(0, 60), (20, 60), (20, 30)], "red"),
    "'abc' is crossed by a line": lambda page: page.lines([[(0, 48), (90, 48)]], "red"),
    "'abc' is crossed by a line.": lambda page: page.marks([(14, 48)], "o", "red", 3),
    "'abc' is crossed by a line..": lambda page: page.hatch(0, 30, 50, 29, None),
    "'a line' is": lambda page: page.marks([(99.5, 8)], "o", "red", 3),
    "'a line' is.": lambda page: page.box(50, 10, 50, 10, edge="red", line=1),
    "'a fill' is": lambda page: page.box(50, 10, 60, 10, fill="red"),
    "a colour bar": lambda page: (
        page.box(20, 5, 30, 30, edge="red"), page.image(RASTER, 60, 5.2, 7, 30)
    ),
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


@pytest.mark.parametrize("name", ["sea", "Hangul", "words", "long names", "many and one", "long"])
@pytest.mark.parametrize("width", ["acl", "neurips"])
def test_the_labels_of_a_map_are_those_of_its_axes_and_no_others(name, width):
    capture = capture_of(name)
    chosen = selections(capture)[1]
    with labels.figure_settings():
        page = compose(Spec("map", chosen, width=width), capture)
        left, right, bottom, top = page.axes.images[0].get_extent()
    found = [one for one in page.axes.texts if one.get_size() < labels.TITLE]
    spans = capture.query_spans(chosen.layer)
    cell = (bottom - top) / len(spans)
    size = size_for(cell)
    room = min(0.24 * page.width, 64.0)
    prompt = capture.query_prompt(chosen.layer)
    row = capture.row(chosen.layer, chosen.query)
    marks = axis_marks(prompt, spans, cell, size, room, row)
    drawn = {(t.get_text(), round(t.get_position()[1], 3)) for t in found
             if t.get_ha() == "right" and t.get_rotation() == 0}  # fmt: skip
    wanted = {(m.words, round(top + m.middle * cell + 0.36 * size, 3)) for m in marks}
    assert drawn == wanted
    if cell >= size * 1.18:  # each token has one, whole or elided
        for mark, (start, end) in zip(marks, spans, strict=False):
            whole = visible(prompt.words(int(start), int(end)).strip())
            assert mark.words == whole or whole.startswith(mark.words[:-1]) or not whole


@pytest.mark.parametrize("name", ["sea", "ragged", "two texts", "many layers", "windowed"])
def test_a_wall_has_no_holes_but_where_heads_are_missing(name):
    capture = capture_of(name)
    with labels.figure_settings():
        page = compose(Spec("wall", Selection(), Display(shared=False), "neurips"), capture)
    heads = [(layer, head) for layer in capture.spec.layers for head in layer.heads]
    boxes = [one.get_extent() for one in page.axes.images]  # left, right, bottom, top
    assert len(boxes) == len(heads)
    rows = {}
    for (layer, head), box in zip(heads, boxes, strict=True):
        rows.setdefault(layer.index, []).append((head, box))
    before = None
    for row in rows.values():
        (_, (left, right, bottom, top)), *_ = row
        places = np.array([(head, (box[0] + box[1]) / 2) for head, box in row])
        steps = np.unique(np.round(np.diff(places[:, 1]) / np.diff(places[:, 0]), 3))
        side = max(right - left, bottom - top)
        assert len(steps) <= 1 and all(right - left <= steps) and all(steps <= 1.3 * side + 3)
        assert before is None or 0 <= top - before <= 24.01  # two levels and two texts meet
        before = bottom


@pytest.mark.parametrize("kind", ["map", "links", "wall", "levels", "compare", "rollout"])
def test_a_figure_without_a_title_has_no_hole_where_it_was(kind):
    with_, without = (page_of(kind, "words", number, "icml") for number in (0, 2))
    assert without.height < with_.height - 8
    drawn = seen(without)
    highest = max(drawn.boxes[:, 3].max(), drawn.segments[..., 1].max())
    assert without.height - highest < 12


def test_the_colour_bar_is_as_tall_as_the_map():
    with labels.figure_settings():
        page = compose(Spec("map", Selection(12, 2), width="acl"), capture_of("sea"))
    data, bar = page.axes.images
    assert data.get_extent()[2:] == bar.get_extent()[2:]
    left, right, bottom, top = data.get_extent()
    assert right - left == pytest.approx(bottom - top)  # square cells


# --- labels ---------------------------------------------------------------------------------------


def spans_of(count):
    return np.stack([np.arange(count), np.arange(count) + 1], axis=1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the", "the"),
        ("a b", "a·b"),
        ("\n", "↵"),
        ("\t", "⇥"),
        ("\x00", "\\x00"),
        ("\u202e", BOX),
        ("\u200b", BOX),
        ("❤\ufe0f", "❤"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("\ue000", BOX),
        ("$x$", "$x$"),
    ],
)
def test_every_character_has_a_sign(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("👩\u200d👩\u200d👧", BOX),
        ("👍🏽!", f"{BOX}!"),
        ("👍👍", BOX * 2),
        ("a\u200db", f"a{BOX}b"),
    ],
)
def test_what_no_font_has_becomes_a_box(text, shown, monkeypatch):
    monkeypatch.setattr(labels, "has_glyph", str.isascii)
    assert visible(text) == shown


@settings(max_examples=200, deadline=None)  # fonts load on the first one
@given(st.text(min_size=1, max_size=30))
def test_what_is_shown_can_be_drawn_and_is_never_empty(text):
    shown = visible(text)
    assert shown
    for character in shown:
        assert labels.has_glyph(character)
        kind = unicodedata.category(character)
        assert kind != "Cc"
        assert kind not in ("Cf", "Cs") or character in labels.JOINERS


@settings(deadline=None)
@given(st.text("abc fgW", min_size=1, max_size=60), st.floats(8, 200))
def test_an_elided_label_fits_and_keeps_its_beginning(text, room):
    found = elide(text, room, 7.0)
    assert found == text or found.endswith("…")
    assert text.startswith(found.removesuffix("…"))
    assert labels.text_width(found, 7.0) <= room or found == "…"


def test_the_chosen_label_is_bold_only_where_that_takes_no_letter_of_it():
    words = "wonderful"
    plain_room, bold_room = labels.text_width(words, 6.5), labels.text_width(words, 6.5, bold=True)
    assert plain_room < bold_room
    for room, bold in ((bold_room, True), (plain_room, False), (plain_room / 2, True)):
        (mark,) = labels.axis_marks(byte_prompt(words), spans_of(9), 1.0, 6.5, room, 4)
        assert mark.chosen and mark.bold == bold
        assert (mark.words == words) == (room >= plain_room)


def test_words_are_the_positions_of_their_newest_tokens():
    prompt = byte_prompt("The sand ran.")
    found = [(m.start, m.end, m.words) for m in word_marks(prompt, spans_of(13))]
    assert found == [(0, 3, "The"), (4, 8, "sand"), (9, 13, "ran.")]
    pairs = np.array([(max(2 * g - 1, 0), 2 * g + 1) for g in range(7)])
    assert [m.words for m in word_marks(prompt, pairs)] == ["The", "sand", "ran."]


def test_pieces_of_a_word_share_its_label_and_special_tokens_keep_their_names():
    capture = plain(["hour-", "glass", "sea"])
    found = [(m.start, m.end, m.words) for m in word_marks(capture.prompt, spans_of(5))]
    assert found == [(0, 1, "[CLS]"), (1, 3, "hour-glass"), (3, 4, "sea"), (4, 5, "[SEP]")]


def test_the_bytes_of_one_character_share_a_label():
    found = token_marks(byte_prompt("a한b"), spans_of(5))
    assert [(m.start, m.end, m.words) for m in found] == [(0, 1, "a"), (1, 4, "한"), (4, 5, "b")]


def test_positions_without_tokens_have_no_label():
    spans = np.array([(-1, -1), (0, 1), (1, 2), (-1, -1)])
    assert [m.start for m in token_marks(byte_prompt("ab"), spans)] == [1, 2]
    assert [m.start for m in word_marks(byte_prompt("ab"), spans)] == [1]


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60, unique=True),
    st.floats(0.1, 9),
    st.floats(5, 12),
)
def test_thinned_labels_keep_their_distance_and_the_chosen_one(starts, cell, need):
    marks = [Mark(at, at + 1, "w", at == max(starts)) for at in starts]
    kept = thin(marks, cell, need)
    assert [mark for mark in kept if mark.chosen]
    middles = [mark.middle * cell for mark in kept]
    assert np.diff(middles).min(initial=need) >= need - 1e-6


def test_a_crowded_axis_counts_tokens():
    text = " ".join(f"w{n:03}" for n in range(800))
    found = labels.axis_marks(byte_prompt(text), spans_of(len(text)), 0.05, 6.5, 60.0, 2502)
    assert [m.words for m in found if not m.chosen] == ["0", "1,000", "2,000", "3,000"]
    assert [m.words for m in found if m.chosen] == ["w500"]


def test_letters_are_called_letters():
    assert byte_prompt(HOSTILE).unit == "letter"
    assert plain(["hour-", "glass"]).prompt.unit == "token"


def test_a_token_of_millions_of_characters_is_cut_before_it_is_measured():
    long = "ab$<b>\u202e" * 600_000
    assert len(visible(long)) <= labels.LONGEST + 1
    assert visible(long).endswith("…") and "\u202e" not in visible(long)
    prompt = plain(["x ", "a" * 4_000_000, " y"]).prompt
    for mark in (*token_marks(prompt, spans_of(3)), *word_marks(prompt, spans_of(3))):
        assert len(mark.words) <= 2 * labels.LONGEST + 1


@given(st.lists(st.text("Wi가 ", min_size=1, max_size=9), min_size=1, max_size=9), st.floats(1, 60))
def test_level_labels_lie_over_their_axis_and_apart(words, cell):
    marks = [Mark(at, at + 1, one) for at, one in enumerate(words)]
    length = cell * len(words)
    places = labels.level_places(marks, cell, length, 6.5)
    if places is None:
        return
    half = np.array([labels.text_width(one, 6.5) / 2 for one in words])
    ends = np.stack([places - half, places + half], 1)
    assert ends.min() >= -labels.BEYOND - 1e-6
    assert ends.max() <= length + labels.BEYOND + 1e-6
    assert (ends[1:, 0] - ends[:-1, 1] >= labels.APART - 1e-6).all()
    middles = cell * (np.arange(len(words)) + 0.5)
    assert np.abs(places - middles).max() <= labels.ASIDE + 1e-6


@given(st.floats(0.1, 60))
def test_labels_are_as_small_as_all_of_them_need_but_can_be_read(cell):
    size = labels.size_for(cell)
    assert labels.LEAST <= size <= labels.SMALL
    assert size == labels.SMALL or size * labels.LINE <= cell + 1e-9
