"""The text of one capture, read by another model."""

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.checkpoints import save
from hgviz.models.hourglass import Hourglass, HourglassConfig
from hgviz.tasks.alike import prompts_like
from tests.gui.kinds import listener, translator

TEXT = "The fish was not wonderful, but the evening was."


@pytest.fixture(scope="module")
def reviews():
    """A classifier that reads word pieces."""
    return open_model(resource("sample/softmax"))


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """A small hourglass that reads bytes."""
    torch.manual_seed(0)
    config = HourglassConfig(
        vocab_size=256, d_model=16, n_heads=2, hierarchy="1@1 1@2 1@1", positions="rotary"
    )
    folder = tmp_path_factory.mktemp("models") / "letters"
    save(folder, config, Hourglass(config).state_dict())
    return open_model(folder)


def captured(model, text=TEXT):
    """A text captured in memory."""
    prompt, _ = tasks.prompt_from(model, text)
    return tasks.capture(model, prompt)


def test_the_same_tokenizer_gives_the_very_same_tokens(reviews):
    a = captured(reviews)
    b = tasks.capture_alike(open_model(resource("sample/ymish")), a)
    assert b.prompt is a.prompt and b.spec.name != a.spec.name


def test_another_tokenizer_reads_the_text_in_its_own_way(reviews, letters):
    a = captured(reviews)
    b = tasks.capture_alike(letters, a)
    assert b.prompt.text == TEXT and len(b.prompt) == len(TEXT.encode())
    back = tasks.capture_alike(reviews, b)
    assert back.prompt.pieces == a.prompt.pieces


def test_heads_that_are_off_stay_off(letters):
    a = captured(letters)
    whole = tasks.capture_alike(letters, a)
    without = tasks.capture_alike(letters, a, frozenset({HeadId(0, 0)}))
    assert np.array_equal(whole.logits, a.logits) and without.off == {HeadId(0, 0)}
    assert not np.array_equal(without.logits, a.logits)


def test_a_model_of_one_text_reads_what_the_decoder_wrote(letters):
    a = translator()
    prompt, target = prompts_like(letters, a)
    assert target is None and prompt.text == a.target.text


def test_states_are_no_text(letters):
    a = listener()
    prompt, _ = prompts_like(letters, a)  # the decoder's own
    assert prompt.text == a.target.text


def test_ids_without_a_text_are_read_as_ids(reviews, letters):
    a = tasks.capture(letters, letters.from_ids(np.array([65, 66, 67])))
    prompt, _ = prompts_like(letters, a)
    assert prompt is a.prompt and [*prompt.ids] == [65, 66, 67]


def test_a_text_that_is_too_long_is_refused_in_one_line(reviews, letters):
    a = captured(letters, "good " * 400)
    with pytest.raises(HgvizError, match="too long"):
        prompts_like(reviews, a)
