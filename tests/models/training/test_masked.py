"""Masked tokens and tokenizers' language models: what is hidden, what is measured, what resumes."""

import math
import tomllib

import msgspec
import pytest
import torch

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.training import masked, read_plan, train
from hgviz.models.training.start import begin
from hgviz.models.training.vocabulary import Coder, train_coder
from tests.models.training.planting import train_twice

PLAN = """
[model]
family = "bert"
d_model = 24
d_ff = 32
n_heads = 2
n_layers = 1
max_positions = 20
segments = 0

[tokenizer]
kind = "words"
size = 30

[data]
train = ["a.txt"]
valid = "b.txt"

[recipe]
steps = 80
warmup = 5
rate = 2e-2
save_every = 2
evaluate_every = 40
evaluate_length = 16
stages = [{start = 0.0, length = 12, batch = 8}]
"""
GPT2 = {"family": "gpt2", "d_model": 16, "n_heads": 2, "n_layers": 1, "max_positions": 32}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("one two three four five six seven .\n" * 60)
    (tmp_path / "b.txt").write_text("one two three four five six seven .\n" * 20)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def changed(folder, **tables):
    data = {**tomllib.loads(PLAN), **tables}
    path = folder / "other.toml"
    path.write_bytes(msgspec.toml.encode(data))
    return read_plan(path)


def test_masked_tokens_are_hidden_as_bert_hides_them():
    ids = torch.randint(10, 1000, (400, 50))
    ids[:, 0], ids[:, -1] = 2, 3
    random = torch.Generator().manual_seed(1)
    given, wanted = masked(ids, 4, 1000, (2, 3, 4), 0.15, random)
    asked = wanted != -100
    assert not asked[:, [0, -1]].any()
    assert torch.equal(wanted[asked], ids[asked])
    assert torch.equal(given[~asked], ids[~asked])
    share = asked[:, 1:-1].double().mean().item()
    assert share == pytest.approx(0.15, abs=0.01)
    hidden = (given[asked] == 4).double().mean().item()
    same = (given[asked] == ids[asked]).double().mean().item()
    assert hidden == pytest.approx(0.8, abs=0.03)
    assert same == pytest.approx(0.1, abs=0.03)


def test_at_least_one_token_is_asked_for():
    ids = torch.tensor([[2, 9, 3]])
    given, wanted = masked(ids, 4, 10, (2, 3, 4), 1e-9, torch.Generator().manual_seed(0))
    assert wanted.tolist() == [[-100, 9, -100]]


def test_a_masked_language_model_learns_to_fill_in(folder):
    # the same word over and over: whoever looks at any other token knows it
    for name in ("a", "b"):
        words = ["one", "two", "three", "four", "five"]
        text = "\n".join(" ".join([word] * 60) for word in words * 2)
        (folder / f"{name}.txt").write_text(text)
    report = train(read_plan(folder / "plan.toml"), folder / "out")
    assert report.metric == "masked_accuracy"
    assert report.value > 0.7
    model = open_model(folder / "out")
    prompt = model.tokenize("three three [MASK] three three three")
    hidden = prompt.pieces.index("[MASK]")
    guess = int(model.run(prompt.ids).logits[hidden].argmax())
    assert model.from_ids([guess]).pieces == ("three",)


@pytest.mark.parametrize("goal", ["masked", "next"])
def test_windows_longer_than_the_positions_are_cut_to_them(folder, goal):
    model = GPT2 if goal == "next" else tomllib.loads(PLAN)["model"]
    recipe = {"steps": 2, "stages": [{"start": 0.0, "length": 60, "batch": 2}]}
    plan = changed(folder, model=model, recipe=recipe)  # evaluate_length is 1024
    assert math.isfinite(train(plan, folder / "out").value)


def test_a_stopped_masked_training_goes_on_to_the_same_weights(folder):
    plan = changed(folder, recipe={**tomllib.loads(PLAN)["recipe"], "steps": 6, "dropout": 0.1})
    train_twice(plan, folder, 3)


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_a_language_model_over_pieces_is_measured_in_bits_per_byte(folder, kind):
    recipe = {**tomllib.loads(PLAN)["recipe"], "steps": 2, "dropout": 0.0}
    plan = changed(folder, model=GPT2, tokenizer={"kind": kind, "size": 300}, recipe=recipe)
    start = begin(plan, folder / "none")
    ids, size = start.coder.stream((folder / "b.txt").read_bytes(), "b.txt")
    with torch.no_grad():  # equal odds for every piece
        start.model.embed.token.weight.zero_()
    bits = start.objective.measure(start.model.eval(), True)["bits_per_byte"]
    assert bits == pytest.approx((len(ids) - 1) * math.log2(start.coder.size) / size, rel=1e-5)
    train(plan, folder / "out")
    assert open_model(folder / "out").tokenize("one two").pieces[0] == "one"


def test_a_stream_of_pieces_counts_the_bytes_after_the_first(folder):
    coder = train_coder(read_plan(folder / "plan.toml").tokenizer, ["añb cd añb cd"], 0)
    ids, size = coder.stream("añb cd\nañb".encode(), "x")
    assert len(ids) == 3
    assert size == len(" cd\nañb".encode())
    assert Coder().stream(b"abc", "x")[1] == 2


def test_several_cls_are_pieces_of_their_own(folder):
    words = read_plan(folder / "plan.toml").tokenizer
    coder = train_coder(words, ["one two one two"], 3)
    pieces = coder.tokenizer.encode("one", "two").tokens
    assert pieces == ["[CLS]", "[CLS2]", "[CLS3]", "one", "[SEP]", "two", "[SEP]"]
    assert coder.tokenizer.encode("one", "two").type_ids == [0, 0, 0, 0, 0, 1, 1]
    assert coder.frame() == ((2, 3, 4), (5,))


def test_bytes_cannot_be_masked(folder):
    plan = msgspec.structs.replace(read_plan(folder / "plan.toml"), tokenizer=None)
    with pytest.raises(HgvizError, match=r"needs a tokenizer with \[MASK\]"):
        train(plan, folder / "out")


def test_a_text_that_is_not_utf8_is_one_clear_line(folder):
    (folder / "b.txt").write_bytes(b"one \xff")
    with pytest.raises(HgvizError, match="is not a UTF-8 text") as caught:
        train(read_plan(folder / "plan.toml"), folder / "out")
    assert "\n" not in str(caught.value)
