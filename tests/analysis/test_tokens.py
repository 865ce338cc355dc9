"""How the tokens of a text are read: words, sentences, special tokens, repetitions."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis.tokens import Lexicon, TokenReading
from hgviz.core import Prompt, slot_prompt
from tests.analysis.planting import letters, pieces, spaced, tagged
from tests.making import byte_prompt


def marked(flags, text):
    return "".join(letter for letter, flag in zip(text, flags, strict=True) if flag)


def test_sentences_begin_after_full_stops_and_not_after_abbreviations():
    text = "It fell, e.g. by 3.5 m. Then it stopped! Why? 天気。明日。\nend"
    found = TokenReading(letters(text))
    assert marked(found.starts_sentence, text) == "ITW天明e"
    assert found.sentence_first[text.index("stopped")] == text.index("Then")


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        (pieces("The", " old", " clock", ".", " It", " rang"),
         {"unit": "token", "starts_word": [1, 1, 1, 0, 1, 1], "is_stop": [0, 0, 0, 1, 0, 0],
          "starts_sentence": [1, 0, 0, 0, 1, 0], "is_capital": [1, 0, 0, 0, 1, 0]}),
        (byte_prompt("né là"),
         {"has_characters": True, "word": [0, 0, 0, -1, 1, 1, 1],
          "starts_word": [1, 0, 0, 0, 1, 0, 0]}),
        (tagged("[CLS]", "Hi", "[SEP]"),
         {"unit": "token", "word": [-1, 0, -1], "is_capital": [0, 1, 0], "is_space": [0, 0, 0],
          "special": [1, 0, 1], "opening": [1, 0, 0], "separator": [0, 0, 1]}),
        (replace(tagged("[CLS]", "a", "[SEP]"), text="", spans=np.full((3, 2), -1)),
         {"special": [1, 0, 1]}),  # ids without a text: known by their names
        (replace(tagged("[CLS]", "a", "[SEP]", "[PAD]"), attention_mask=np.arange(4) < 3),
         {"separator": [0, 0, 1, 0], "end": 2}),
        (tagged("[CLS]", "[CLS]", "a", "[SEP]"), {"opening": [1, 1, 0, 0]}),
        (tagged("[CLS]", "이", "##다", "[SEP]"), {"has_characters": False}),
        (tagged("a", "##b"), {"has_characters": False}),
        (replace(letters("ab"), spans=np.full((2, 2), -1)), {"has_characters": False}),
        (slot_prompt(3), {"unit": "slot", "ids": [-1, -1, -1]}),
        (letters("abcab"), {"same_before": [-1, -1, -1, 0, 1]}),
        (Prompt("one two three four", np.arange(3), ("one two ", "three", " four"),
                np.array([[0, 8], [8, 13], [13, 18]])),  # a token of two words starts one
         {"word": [0, 1, 2], "starts_word": [1, 1, 1], "spelling": [0, 2, 3]}),
        (letters(""), {"word": [], "sentence_first": []}),
    ],
)  # fmt: skip
def test_tokens_count_for_what_they_hold(prompt, wanted):
    found = TokenReading(prompt)
    for name, value in wanted.items():
        own = getattr(found, name)
        assert (own.tolist() if isinstance(own, np.ndarray) else own) == value, name


def test_in_a_causal_map_the_rarest_word_is_the_rarest_so_far():
    prompt = spaced(["the", "the", "odd", "the", "odder", "the"])
    lexicon = Lexicon(["the the the odd odd odder"], common=1)
    first, end = TokenReading(prompt, lexicon).rarest_word(causal=True)
    assert first.tolist() == [-1, -1, 2, 2, 4, 4] and end.tolist() == [-1, -1, 3, 3, 5, 5]
    first, _ = TokenReading(prompt, lexicon).rarest_word(causal=False)
    assert first.tolist() == [4] * 6
    assert TokenReading(prompt).rarest_word(causal=False)[0].tolist() == [-1] * 6
    assert TokenReading(letters(""), lexicon).rarest_word(causal=True)[0].tolist() == []
