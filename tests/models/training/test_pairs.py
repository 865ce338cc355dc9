"""An encoder and a decoder that learn to write a second text."""

import random

import pytest

from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.training import read_plan, train

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
    report = finish(train(read_plan(folder / "plan.toml"), folder / "out"))
    assert report.metric == "token_accuracy"
    assert report.value > 0.75  # without the first text a word is right in one of four
    model = open_model(folder / "out")
    source, start = model.tokenize("three"), model.tokenize("drei")
    logits = model.run(source.ids, decoder_ids=start.ids[:1]).logits
    assert model.from_ids([int(logits[-1].argmax())]).pieces == ("drei",)


def test_a_stopped_training_of_pairs_goes_on_to_the_same_weights(folder):
    text = PLAN.replace("steps = 40", "steps = 6\ndropout = 0.1")
    (folder / "plan.toml").write_text(text)
    plan = read_plan(folder / "plan.toml")
    finish(train(plan, folder / "whole"))
    steps = train(plan, folder / "killed")
    while next(steps).value["step"] != 3:
        pass
    steps.close()
    finish(train(plan, folder / "killed"))
    files = [(folder / one / "model.safetensors").read_bytes() for one in ("whole", "killed")]
    assert files[0] == files[1]


def test_a_decoder_that_waits_for_states_cannot_be_trained(folder):
    text = PLAN.replace("n_layers = 1", 'n_layers = 1\nform = "decoder"\ncross = true')
    (folder / "plan.toml").write_text(text)
    with pytest.raises(HgvizError, match="cannot be trained by itself"):
        finish(train(read_plan(folder / "plan.toml"), folder / "out"))
