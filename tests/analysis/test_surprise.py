"""Bits per byte of a captured text, against torch's cross-entropy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgviz.analysis.surprise import bits_per_byte
from tests.gui.kinds import bert, classifier, gpt2, translator
from tests.making import make_capture


def nats(logits, ids):
    """What torch says all tokens but the first cost."""
    rows = torch.tensor(np.array(logits[:-1]), dtype=torch.float64)
    return F.cross_entropy(rows, torch.tensor(np.array(ids[1:])), reduction="sum").item()


def test_of_bytes_it_is_the_mean_over_all_but_the_first():
    capture = make_capture("The hourglass was used at sea. " * 20)  # more than a block of rows
    wanted = nats(capture.logits, capture.prompt.ids) / np.log(2) / (len(capture.prompt) - 1)
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_characters_of_several_bytes_count_all_of_them():
    capture = make_capture("한국어 🙂 é")
    size = len("한국어 🙂 é".encode()) - 1
    wanted = nats(capture.logits, capture.prompt.ids) / np.log(2) / size
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_of_word_pieces_it_counts_the_bytes_they_stand_for():
    capture = gpt2()
    prompt = capture.prompt
    size = len(prompt.text[prompt.spans[0, 1] :].encode())
    wanted = nats(capture.logits, prompt.ids) / np.log(2) / size
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_of_two_texts_it_is_the_decoder_s():
    capture = translator()
    assert capture.target is not None
    target = capture.target
    real = target.spans[1:][target.spans[1:, 0] >= 0]
    size = len(target.text[: real[:, 1].max()].encode())
    wanted = nats(capture.logits, target.ids) / np.log(2) / size
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_there_is_none_where_nothing_was_foretold():
    assert bits_per_byte(make_capture("The sea.", logits=False)) is None
    assert bits_per_byte(bert()) is None and bits_per_byte(classifier()) is None
    assert bits_per_byte(make_capture("a")) is None
    one = make_capture("The sea.")
    assert bits_per_byte(replace(one, logits=one.logits[:3])) is None
    broken = np.array(one.logits)
    broken[2] = np.nan
    assert bits_per_byte(replace(one, logits=broken)) is None
