"""What is said about a letter on its way is what the maps hold."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hgviz.core import HeadId, Selection, Step, finish
from hgviz.gui import sentences
from hgviz.gui.attribution import said
from hgviz.gui.follow import Wish, follow, quoted_token
from hgviz.gui.layouts import stages
from hgviz.models.texts.text import Bytes, Pieces
from tests.gui.kinds import gpt2
from tests.making import make_capture
from tests.models.folders import byte_level

SEA = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
WISH = Wish(Selection(12, 5, 60), {0: HeadId(12, 5), 1: HeadId(9, 4), 2: HeadId(5, 1)}, {})


@pytest.fixture(scope="module")
def capture():
    return make_capture(SEA)


def trace(capture, token=60, **wish):
    return finish(follow(capture, stages(capture.spec), token, replace(WISH, **wish), str))


def test_each_stage_reads_the_row_of_the_letter(capture):
    found = trace(capture)
    for stage, look in zip(stages(capture.spec), found.looks, strict=True):
        row = capture.position(stage.level, 60)
        whole = capture.maps[look.head.layer].read(look.head.head)
        assert np.allclose(look.weights, whole[row], atol=1e-6)
        assert look.seen == row + 1
        best = [key for key, _ in look.top]
        assert best == list(np.argsort(-whole[row], kind="stable")[: len(best)])
        assert look.most == pytest.approx(whole[row].max(), abs=1e-6)


def test_a_stage_shows_the_selected_head_or_the_one_last_opened_there(capture):
    heads = [look.head for look in trace(capture).looks]
    assert heads[1:] == [HeadId(3, 0), HeadId(5, 1), HeadId(9, 4), HeadId(12, 5)]
    assert heads[0].layer in (0, 1)
    chosen = trace(capture, selection=Selection(1, 4, 60)).looks
    assert chosen[0].head == HeadId(1, 4) and chosen[4].head == HeadId(12, 5)


def test_heads_that_are_off_are_left_out(capture):
    off = frozenset(HeadId(3, head) for head in range(5))
    assert trace(replace(capture, off=off)).looks[1].head == HeadId(3, 5)


def test_windowed_resampling_names_its_shares():
    capture = make_capture(SEA, windowed=True)
    chips = trace(capture).chips
    weights = np.mean([capture.maps[2].read(head)[30] for head in range(6)], axis=0)
    a, b = (f"{one:.2f}" for one in weights[60:62])
    first, second = (quoted_token(capture.prompt.label(token)) for token in (59, 60))
    assert chips[0] == f"{first} {a} + {second} {b}"
    assert chips[2].endswith("and the next two") and "goes to" in chips[2]
    assert chips[3].endswith("and the next letter")


def test_resampling_over_everything_names_the_strongest_position(capture):
    chips = trace(capture).chips
    weights = np.mean([capture.maps[2].read(head)[30] for head in range(6)], axis=0)
    best = int(weights.argmax())
    start, end = capture.key_spans(2)[best]
    named = quoted_token(capture.prompt.words(start, end)) if start >= 0 else "the empty start"
    own = quoted_token(capture.prompt.words(*capture.spans[1][30]))
    assert chips[0] == f"{own} takes most from {named} {weights[best]:.2f}"


def test_a_letter_that_joins_the_next_position_is_told_so(capture):
    chips = trace(capture, token=61).chips
    assert chips[0].endswith(f"; {quoted_token(SEA[61])} joins the next")
    assert "joins" not in chips[3]


def test_without_resampling_attention_the_pooled_letters_are_named(capture):
    maps = tuple(
        None if capture.spec.layers[n].role in ("down", "up") else one
        for n, one in enumerate(capture.maps)
    )
    found = trace(replace(capture, maps=maps))
    assert found.chips[0] == f"{quoted_token(SEA[59])} + {quoted_token(SEA[60])}"
    assert found.together is None and "every layer" in found.sentence


def test_the_last_row_is_the_rollout_and_says_where_it_comes_from(capture):
    from hgviz.analysis.resolution import rollout

    found = trace(capture)
    row = rollout(capture, (60, 61))[0]
    assert np.array_equal(found.together, row)
    assert found.sentence.startswith("All maps multiplied, residual paths included.")
    assert f"itself {row[60]:.2f}" in found.sentence


def test_the_expected_letters_are_the_softmax_of_the_logits(capture):
    odds = np.exp(capture.logits[60].astype(np.float64))
    odds /= odds.sum()
    found = trace(capture).expected
    assert [int(name) for name, _ in found] == list(np.argsort(-odds)[:4])
    assert [share for _, share in found] == pytest.approx(sorted(odds)[::-1][:4])
    assert trace(replace(capture, logits=None)).expected == ()


def test_the_picture_is_there_before_the_last_row(capture):
    steps = []
    task = follow(capture, stages(capture.spec), 60, WISH, str)
    steps = [step for step in task if isinstance(step, Step) and step.value is not None]
    assert steps and steps[-1].value.together is None
    assert len(steps[0].value.looks) == 5


def test_a_partial_capture_shows_what_is_there(capture):
    maps = tuple(one if n < 6 else None for n, one in enumerate(capture.maps))
    found = trace(replace(capture, maps=maps, logits=None))
    assert [look.weights is None for look in found.looks] == [False, False, False, True, True]
    assert found.looks[3].role == "not captured"


def test_signed_weights_keep_their_sign():
    capture = make_capture(SEA, signed=True)
    found = trace(capture)
    assert all(look.signed for look in found.looks)
    for look in found.looks:
        sizes = [abs(weight) for _, weight in look.top]
        assert sizes == sorted(sizes, reverse=True)


def test_tokens_that_are_not_in_the_text_have_the_names_of_the_tokenizer(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    model = SimpleNamespace(tokenizer=Pieces(tmp_path / "tokenizer.json", 300))
    capture = replace(gpt2(), prompt=model.tokenizer.encode("the cat"))
    number, space = (model.tokenizer.id_of(one) for one in ("z", "Ġ"))
    assert (sentences.namer(capture)(number), said(capture, number)) == (
        f"#{number}",
        f"token {number}",
    )
    assert (sentences.namer(capture, model)(number), said(capture, number, model)) == ("z", "“z”")
    assert sentences.namer(capture, model)(space) == "space"
    other = replace(capture, prompt=Bytes().encode("the cat"))
    assert sentences.namer(other, model)(number) == f"#{number}"  # of another tokenizer
