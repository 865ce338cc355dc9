"""A prompt is read as a person would read it."""

import numpy as np

from hgviz.analysis.reading import Reading
from hgviz.core import Prompt
from tests.analysis.planting import letters, pieces
from tests.making import byte_prompt


def marked(flags, text):
    return "".join(one for one, flag in zip(text, flags, strict=True) if flag)


def test_words_begin_and_end_where_letters_do():
    text = "Don't stop: it's 12 o'clock"
    found = Reading(letters(text))
    assert marked(found.starts_word, text) == "Dsi1o"
    assert [text[found.word_first[i] : found.word_end[i]] for i in (2, 8, 14, 18, 25)] == [
        "Don't", "stop", "it's", "12", "o'clock",
    ]  # fmt: skip
    assert found.word_first[5] == -1 and found.word[5] == -1


def test_equal_words_are_spelled_alike_whatever_their_capitals():
    found = Reading(letters("The cat and the dog"))
    assert found.spelling[0] == found.spelling[12] != found.spelling[4]


def test_sentences_begin_after_full_stops_and_not_after_abbreviations():
    text = "It fell, e.g. by 3.5 m. Then it stopped! Why? 天気。明日。\nend"
    found = Reading(letters(text))
    assert marked(found.starts_sentence, text) == "ITW天明e"
    assert found.sentence_first[text.index("stopped")] == text.index("Then")


def test_a_token_counts_for_what_it_holds():
    found = Reading(pieces("The", " old", " clock", ".", " It", " rang"))
    assert found.unit == "token"
    assert list(found.starts_word) == [True, True, True, False, True, True]
    assert list(found.starts_sentence) == [True, False, False, False, True, False]
    assert list(found.stop) == [False, False, False, True, False, False]
    assert list(found.capital) == [True, False, False, False, True, False]


def test_bytes_of_one_character_are_letters_of_one_word():
    found = Reading(byte_prompt("né là"))
    assert found.unit == "letter"
    assert list(found.word) == [0, 0, 0, -1, 1, 1, 1]
    assert list(found.starts_word) == [True, False, False, False, True, False, False]


def test_special_tokens_are_outside_of_everything():
    spans = np.array([[-1, -1], [0, 2], [-1, -1]])
    found = Reading(Prompt("Hi", np.array([0, 5, 1]), ("[CLS]", "Hi", "[SEP]"), spans))
    assert list(found.word) == [-1, 0, -1]
    assert not (found.space | found.stop | found.capital)[[0, 2]].any()


def test_the_last_same_letter_and_the_last_letters_together():
    found = Reading(letters("abcab"))
    assert list(found.same_before) == [-1, -1, -1, 0, 1]
    assert found.grams[2][1] == found.grams[2][4] != found.grams[2][2]
    assert found.grams[2][0] == -1 and (found.grams[3][2:] >= 0).all()


def test_an_empty_text_has_nothing():
    found = Reading(letters(""))
    assert len(found.word) == len(found.sentence_first) == len(found.grams[3]) == 0


def test_a_token_of_many_words_starts_one():
    prompt = Prompt(
        text="one two three four", ids=np.array([0, 1, 2]), pieces=("one two ", "three", " four"),
        spans=np.array([[0, 8], [8, 13], [13, 18]]),
    )  # fmt: skip
    found = Reading(prompt)
    assert found.word.tolist() == [0, 1, 2]
    assert found.starts_word.all()
    assert found.spelling.tolist() == [0, 2, 3]


def test_a_word_of_a_million_letters_is_read_once():
    text = "A" * 1_000_000 + " " + "a" * 1_000_000
    spans = np.array([[0, 1_000_000], [1_000_001, 2_000_001]])
    found = Reading(Prompt(text, np.array([0, 1]), ("A", "a"), spans))
    assert found.spelling.tolist() == [0, 0]
