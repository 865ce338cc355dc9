"""Answers of a model with heads off: the same as run gives, whatever is kept of earlier passes."""

import numpy as np
import pytest

from hgviz.analysis.scores import surprise
from hgviz.core import HeadId, HgvizError
from hgviz.examples import following, labelled, masked
from hgviz.models import open_model
from hgviz.models.measures.trials import KEEP, PIECE, Trials
from hgviz.models.measures.variants import Variants
from hgviz.models.texts.text import Bytes
from tests.closeness import scaled_error
from tests.models.building import write_checkpoint, write_transformer

TEXT = "the cat sat on the mat and the dog sat on the log. " * 9


def prompts():
    random = np.random.default_rng(3)
    return [Bytes().encode(TEXT[:length]) for length in random.integers(3, 30, 50)]


def classifier(folder):
    write_transformer(
        folder, vocab_size=256, form="encoder", goal="classes", labels=["a", "b"], n_layers=3
    )
    wanted = np.random.default_rng(4).integers(0, 2, 50)
    return labelled(prompts(), list(wanted), ("a", "b"), None)


def hourglass(folder):
    write_checkpoint(folder, vocab_size=256, causal=True, hierarchy="1@1 2@2 1@1")
    return following([Bytes().encode(TEXT)], length=64)


def encoder(folder):
    write_transformer(folder, vocab_size=256, form="encoder", goal="masked")
    return masked([Bytes().encode(TEXT)], 0)


@pytest.fixture(params=[classifier, hourglass, encoder])
def case(request, tmp_path):
    """A model in float64 and what it is scored on."""
    examples = request.param(tmp_path / "model")
    return open_model(tmp_path / "model", dtype="float64"), examples


def by_run(model, batch, off):
    logits = model.run(batch.ids, batch.mask if not batch.mask.all() else None, off=off).logits
    asked = batch.asked
    return surprise(logits[asked], batch.wanted[asked]), logits[asked].argmax(-1)


@pytest.mark.parametrize("keep", [KEEP, 0])
def test_an_answer_with_heads_off_is_that_of_a_whole_run(case, keep):
    model, examples = case
    trials = Trials(model, examples, keep=keep)
    heads = trials.heads
    for off in (set(), {heads[-1]}, {heads[0], heads[3]}, set(heads)):
        for block in trials.blocks:
            for batch in block:
                loss, given = trials.without(batch, off)
                expected, likeliest = by_run(model, batch, off)
                assert scaled_error(loss, expected) <= 1e-6
                assert (given == likeliest).all()


def test_heads_off_from_the_start_are_off_in_the_whole(case):
    model, examples = case
    first = HeadId(0, 0)
    trials = Trials(model, examples, frozenset({first}))
    assert first not in trials.heads
    batch = trials.blocks[0][0]
    assert scaled_error(trials.whole(batch)[0], by_run(model, batch, {first})[0]) <= 1e-6
    other = trials.heads[2]
    found = trials.without(batch, {other})[0]
    assert scaled_error(found, by_run(model, batch, {first, other})[0]) <= 1e-6


def test_the_slopes_of_a_batch_are_those_of_its_summed_losses(case):
    model, examples = case
    trials = Trials(model, examples)
    batch = trials.blocks[0][0]
    slopes, sizes = trials.slopes(batch)
    assert slopes.shape == sizes.shape == (len(batch.rows), len(trials.heads))
    assert (np.abs(slopes) <= sizes * (1 + 1e-6) + 1e-9).all()
    # one text by itself has the slopes that it has among others
    alone = examples.batch(batch.rows[:1])
    assert np.abs(trials.slopes(alone)[0] - slopes[:1]).max() <= 1e-5 * np.abs(slopes).max()


def test_what_is_kept_of_earlier_passes_stays_within_its_limit(case):
    model, examples = case
    trials = Trials(model, examples, keep=1)
    for block in trials.blocks:
        for batch in block:
            trials.whole(batch)
    kept = [one.known.outputs for one, _ in trials._kept.values()]
    assert not any(kept)


def test_each_place_is_answered_once(case):
    _, examples = case
    seen = np.zeros(len(examples.wanted), int)
    for block in examples.blocks():
        for batch in block:
            seen[examples.where(batch)] += 1
            assert (examples.wanted[examples.where(batch)] == batch.wanted[batch.asked]).all()
    assert (seen == 1).all()


def test_batches_that_come_and_go_are_told_apart(case):
    model, examples = case
    trials = Trials(model, examples)
    for row in range(min(len(examples), 12)):  # each may lie where the one before it lay
        batch = examples.batch([row])
        assert scaled_error(trials.whole(batch)[0], by_run(model, batch, set())[0]) <= 1e-6
        del batch


@pytest.mark.parametrize("deaf", [None, 1, 999])
def test_a_piece_of_one_text_proves_that_heads_do_something(case, deaf, monkeypatch):
    model, examples = case
    trials, seen, without = Trials(model, examples), [], Variants.without

    def watched(variants, whole, off):  # heads that do nothing in so many passes
        seen.append(whole.tokens.ids.shape)
        return without(variants, whole, () if deaf and len(seen) <= deaf else off)

    monkeypatch.setattr(Variants, "without", watched)
    if deaf == 999:
        with pytest.raises(HgvizError, match="switching off layer 0 changes nothing"):
            trials.require_effect()
    else:
        trials.require_effect()
    texts, length = trials.blocks[0][0].ids.shape
    layers = sum(1 for layer in model.spec.layers if layer.heads)
    short = (1, min(PIECE, length))
    if deaf is None:
        assert seen == [short] * layers
    else:
        assert seen[0] == short
        assert seen[-1] == (texts, length)
