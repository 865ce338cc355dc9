"""An encoder and a decoder, and models of segments, that are trained."""

import json
import random

import pytest

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.training import read_plan, train
from tests.models.training.planting import train_twice

PLAN = """
[model]
family = "transformer"
d_model = 32
d_ff = 64
n_heads = 4
n_layers = 1
norm_first = true
final_norm = true
positions = "learned"
max_positions = 8
activations = ["softmax", "ymish"]

[tokenizer]
kind = "words"
size = 20

[data]
train = ["train.tsv"]
valid = "dev.tsv"

[recipe]
steps = 40
batch = 16
rate = 1e-2
warmup = 5
save_every = 3
evaluate_every = 20
"""
ENGLISH, GERMAN = ("one", "two", "three", "four"), ("eins", "zwei", "drei", "vier")


@pytest.fixture
def folder(tmp_path):
    for name, count in (("train", 200), ("dev", 40)):
        dice = random.Random(count)
        lines = []
        for _ in range(count):
            chosen = [dice.randrange(4)] * dice.randrange(1, 4)
            first, second = (" ".join(words[i] for i in chosen) for words in (ENGLISH, GERMAN))
            lines.append(f"{first}\t{second}")
        (tmp_path / f"{name}.tsv").write_text("source\ttarget\n" + "\n".join(lines) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_words_are_learnt_through_cross_attention(folder):
    report = train(read_plan(folder / "plan.toml"), folder / "out")
    assert report.metric == "token_accuracy"
    assert report.value > 0.75  # without the first text a word is right in one of four
    model = open_model(folder / "out")
    source, start = model.tokenize("three"), model.tokenize("drei")
    logits = model.run(source.ids, decoder_ids=start.ids[:1]).logits
    assert model.from_ids([int(logits[-1].argmax())]).pieces == ("drei",)


def test_a_stopped_training_of_pairs_goes_on_to_the_same_weights(folder):
    text = PLAN.replace("steps = 40", "steps = 6\ndropout = 0.1")
    (folder / "plan.toml").write_text(text)
    train_twice(read_plan(folder / "plan.toml"), folder, 3)


def test_a_decoder_that_waits_for_states_cannot_be_trained(folder):
    text = PLAN.replace("n_layers = 1", 'n_layers = 1\nform = "decoder"\ncross = true')
    (folder / "plan.toml").write_text(text)
    with pytest.raises(HgvizError, match="cannot be trained by itself"):
        train(read_plan(folder / "plan.toml"), folder / "out")


# --- segments -------------------------------------------------------------------------------------


TEXT = "the cat sat on the mat and the dog sat on the log. "
SEGMENTS = """
[model]
family = "dynamic"
vocab_size = 256
d_model = 16
d_ff = 24
n_heads = 2
n_layers = [1, 1, 1]
boundaries = "{kind}"

[data]
train = ["a.txt"]
valid = "b.txt"

[recipe]
steps = 40
warmup = 4
rate = 1e-2
dropout = 0.05
initial = 0.2
save_every = 20
evaluate_every = 20
evaluate_length = 48
stages = [{{start = 0.0, length = 40, batch = 4}}]
"""


@pytest.fixture
def plan_of(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT * 20)
    (tmp_path / "b.txt").write_text("the dog sat on the mat. " * 20)

    def reading(kind):
        (tmp_path / "plan.toml").write_text(SEGMENTS.format(kind=kind))
        return read_plan(tmp_path / "plan.toml")

    return reading


@pytest.mark.parametrize("kind", ["learned", "fixed", "whitespace", "entropy"])
def test_the_loss_falls_and_the_model_opens(plan_of, kind, tmp_path):
    report = train(plan_of(kind), tmp_path / "m")
    rows = [json.loads(line) for line in (tmp_path / "m" / "log.jsonl").read_text().splitlines()]
    assert rows[1]["held_out"] < rows[0]["held_out"] < 8 and report.value < 4.5
    model = open_model(tmp_path / "m")
    assert model.config.boundaries == kind and model.run([*TEXT.encode()]).logits.shape == (51, 256)


def test_a_stop_changes_nothing_though_boundaries_are_drawn(plan_of, tmp_path):
    whole, stopped = train_twice(plan_of("learned"), tmp_path, 25)
    assert stopped.figures == whole.figures


def test_boundaries_of_a_tokenizer_are_not_learned_here(plan_of, tmp_path):
    with pytest.raises(HgvizError, match="cannot be learned"):
        train(plan_of("unigram"), tmp_path / "m")
