"""Labels say the text: nothing dropped, nothing hidden, nothing that overlaps."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.figures.paper import labels, style
from hgviz.figures.paper.labels import BOX, Mark, elide, singles, thinned, visible, words_of
from tests.figures.texts import HOSTILE, byte_prompt, plain


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
    monkeypatch.setattr(style, "drawable", str.isascii)
    assert visible(text) == shown


@settings(max_examples=200, deadline=None)  # fonts load on the first one
@given(st.text(min_size=1, max_size=30))
def test_what_is_shown_can_be_drawn_and_is_never_empty(text):
    shown = visible(text)
    assert shown
    for character in shown:
        assert style.drawable(character)
        kind = unicodedata.category(character)
        assert kind != "Cc"
        assert kind not in ("Cf", "Cs") or character in labels.JOINERS


@settings(deadline=None)
@given(st.text("abc fgW", min_size=1, max_size=60), st.floats(8, 200))
def test_an_elided_label_fits_and_keeps_its_beginning(text, room):
    found = elide(text, room, 7.0)
    assert found == text or found.endswith("…")
    assert text.startswith(found.removesuffix("…"))
    assert style.extent(found, 7.0) <= room or found == "…"


def test_the_chosen_label_is_bold_only_where_that_takes_no_letter_of_it():
    words = "wonderful"
    plain_room, bold_room = style.extent(words, 6.5), style.extent(words, 6.5, bold=True)
    assert plain_room < bold_room
    for room, bold in ((bold_room, True), (plain_room, False), (plain_room / 2, True)):
        (mark,) = labels.axis_marks(byte_prompt(words), spans_of(9), 1.0, 6.5, room, 4)
        assert mark.chosen and mark.bold == bold
        assert (mark.words == words) == (room >= plain_room)


def test_words_are_the_positions_of_their_newest_tokens():
    prompt = byte_prompt("The sand ran.")
    found = [(m.start, m.end, m.words) for m in words_of(prompt, spans_of(13))]
    assert found == [(0, 3, "The"), (4, 8, "sand"), (9, 13, "ran.")]
    pairs = np.array([(max(2 * g - 1, 0), 2 * g + 1) for g in range(7)])
    assert [m.words for m in words_of(prompt, pairs)] == ["The", "sand", "ran."]


def test_pieces_of_a_word_share_its_label_and_special_tokens_keep_their_names():
    capture = plain(["hour-", "glass", "sea"])
    found = [(m.start, m.end, m.words) for m in words_of(capture.prompt, spans_of(5))]
    assert found == [(0, 1, "[CLS]"), (1, 3, "hour-glass"), (3, 4, "sea"), (4, 5, "[SEP]")]


def test_the_bytes_of_one_character_share_a_label():
    found = singles(byte_prompt("a한b"), spans_of(5))
    assert [(m.start, m.end, m.words) for m in found] == [(0, 1, "a"), (1, 4, "한"), (4, 5, "b")]


def test_positions_without_tokens_have_no_label():
    spans = np.array([(-1, -1), (0, 1), (1, 2), (-1, -1)])
    assert [m.start for m in singles(byte_prompt("ab"), spans)] == [1, 2]
    assert [m.start for m in words_of(byte_prompt("ab"), spans)] == [1]


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60, unique=True),
    st.floats(0.1, 9),
    st.floats(5, 12),
)
def test_thinned_labels_keep_their_distance_and_the_chosen_one(starts, cell, need):
    marks = [Mark(at, at + 1, "w", at == max(starts)) for at in starts]
    kept = thinned(marks, cell, need)
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
    for mark in (*singles(prompt, spans_of(3)), *words_of(prompt, spans_of(3))):
        assert len(mark.words) <= 2 * labels.LONGEST + 1


@given(st.lists(st.text("Wi가 ", min_size=1, max_size=9), min_size=1, max_size=9), st.floats(1, 60))
def test_level_labels_lie_over_their_axis_and_apart(words, cell):
    marks = [Mark(at, at + 1, one) for at, one in enumerate(words)]
    length = cell * len(words)
    places = labels.level(marks, cell, length, 6.5)
    if places is None:
        return
    half = np.array([style.extent(one, 6.5) / 2 for one in words])
    ends = np.stack([places - half, places + half], 1)
    assert ends.min() >= -labels.BESIDE - 1e-6
    assert ends.max() <= length + labels.BESIDE + 1e-6
    assert (ends[1:, 0] - ends[:-1, 1] >= labels.APART - 1e-6).all()
    middles = cell * (np.arange(len(words)) + 0.5)
    assert np.abs(places - middles).max() <= labels.ASIDE + 1e-6


@given(st.floats(0.1, 60))
def test_labels_are_as_small_as_all_of_them_need_but_can_be_read(cell):
    size = labels.size_for(cell)
    assert labels.LEAST <= size <= style.SMALL
    assert size == style.SMALL or size * labels.LINE <= cell + 1e-9
