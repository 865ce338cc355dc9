"""Classifiers: they learn, see the same batches whatever their activation, and can be continued."""

import json
import random
import tomllib

import msgspec
import pytest
import torch

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.texts.labelled import read_rows
from hgviz.models.training import Plan, read_plan, row_batches, train
from hgviz.models.training.start import begin
from tests.models.training.planting import train_twice

PLAN = """
[model]
family = "bert"
goal = "classes"
d_model = 24
d_ff = 32
n_heads = 6
n_layers = 1
max_positions = 16
segments = 0
activations = "softmax"

[tokenizer]
kind = "words"
size = 40

[data]
train = ["train.tsv"]
valid = "dev.tsv"

[recipe]
steps = 60
batch = 16
rate = 1e-2
warmup = 5
seed = 3
save_every = 2
evaluate_every = 30
"""
SIX = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]


def sentences(count, seed):
    """Which of two names comes first: no bag of words can tell."""
    dice = random.Random(seed)
    for _ in range(count):
        names = dice.sample(["ann", "bob"], 2)
        words = [*names, *dice.choices(["and", "or", "so"], k=dice.randrange(4))]
        yield f"{words[0]} {' '.join(words[2:])} {words[1]}", names[0]


@pytest.fixture
def folder(tmp_path):
    for name, count in (("train", 300), ("dev", 60)):
        rows = [f"{text}\t{label}" for text, label in sentences(count, count)]
        (tmp_path / f"{name}.tsv").write_text("sentence\tlabel\n" + "\n".join(rows) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def changed(folder, name="other.toml", **tables):
    """The plan with other keys in some tables."""
    data = tomllib.loads(PLAN)
    for table, keys in tables.items():
        data[table] = {**data.get(table, {}), **keys}
    path = folder / name
    path.write_bytes(msgspec.toml.encode({k: v for k, v in data.items() if v is not None}))
    return read_plan(path)


def logs(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_a_classifier_learns_an_order_of_words_and_opens(folder):
    report = train(read_plan(folder / "plan.toml"), folder / "out")
    assert (report.metric, report.value) == ("accuracy", report.figures["accuracy"])
    assert report.value > 0.95
    assert logs(folder / "out")[-1]["stored_accuracy"] == report.value
    model = open_model(folder / "out")
    assert model.spec.labels == ("ann", "bob")
    rows = read_rows(folder / "dev.tsv")
    right = [
        model.spec.labels[model.run(model.tokenize(text).ids).logits.argmax()] == label
        for text, label in zip(rows.texts, rows.labels, strict=True)
    ]
    assert sum(right) / len(right) == report.value


def test_a_stopped_classifier_goes_on_to_the_same_weights(folder):
    plan = changed(
        folder, recipe={"steps": 8, "dropout": 0.1, "token_dropout": 0.2, "label_smoothing": 0.1}
    )
    train_twice(plan, folder, 3, 6)


def test_a_damaged_snapshot_is_one_clear_line(folder):
    (folder / "out").mkdir()
    (folder / "out" / "state.pt").write_bytes(b"not a snapshot")
    with pytest.raises(HgvizError, match=r"state\.pt is damaged.*Delete it") as caught:
        train(read_plan(folder / "plan.toml"), folder / "out")
    assert "\n" not in str(caught.value)


def test_trainings_that_differ_in_activation_see_the_same_batches_and_weights(folder):
    starts = [
        begin(changed(folder, model={"activations": one}), folder / "none")
        for one in ("softmax", "ymish", SIX)
    ]
    first, *others = (one.model.state_dict() for one in starts)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)
    batches = [one.objective.order(1) for one in starts]
    assert batches[0] == batches[1] == batches[2]
    words = [one.coder.tokenizer.to_str() for one in starts]
    assert words[0] == words[1] == words[2]


def test_every_row_comes_once_an_epoch_among_rows_of_its_length():
    lengths = [random.Random(i).randrange(1, 40) for i in range(1000)]
    batches = row_batches(lengths, 16, 1, 0)
    assert sorted(row for batch in batches for row in batch) == list(range(1000))
    padding = sum(
        max(lengths[row] for row in batch) - lengths[row] for batch in batches for row in batch
    )
    assert padding < 0.05 * sum(lengths)
    assert batches != row_batches(lengths, 16, 1, 1)
    assert batches != row_batches(lengths, 16, 2, 0)


@pytest.mark.parametrize("keys", [{"activations": SIX}, {"family": "yubert", "cls": 3, "slots": 6}])
def test_every_family_of_classifier_can_be_trained(folder, keys):
    plan = changed(folder, model=keys, recipe={"steps": 3, "evaluate_every": 2})
    train(plan, folder / "out")
    model = open_model(folder / "out")
    pieces = model.tokenize("ann and bob").pieces
    assert pieces[: model.config.cls] == ("[CLS]", "[CLS2]", "[CLS3]")[: model.config.cls]
    assert pieces[-1] == "[SEP]"


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_tokenizers_of_pieces_are_trained_too(folder, kind):
    plan = changed(folder, tokenizer={"kind": kind, "size": 300}, recipe={"steps": 2})
    train(plan, folder / "out")
    prompt = open_model(folder / "out").tokenize("ann or zoë")
    assert prompt.pieces[0] == "[CLS]"
    assert [prompt.label(i) for i in range(1, 3)] == ["ann", "or" if kind != "bpe" else " or"]


# --- from a checkpoint ----------------------------------------------------------------------------


@pytest.fixture
def trained(folder):
    train(read_plan(folder / "plan.toml"), folder / "softmax")
    return folder


def continued(folder, model, **recipe):
    data = tomllib.loads(PLAN)
    plan = {
        "model": {"from": str(folder / "softmax"), **model},
        "data": data["data"],
        "recipe": {**data["recipe"], "steps": 40, "rate": 3e-3, **recipe},
    }
    path = folder / "fine.toml"
    path.write_bytes(msgspec.toml.encode(plan))
    return read_plan(path)


def test_softmax_becomes_ymish_with_all_three_accuracies_logged(trained):
    before = train(continued(trained, {"activations": "ymish"}), trained / "ymish")
    figures = before.before
    assert figures["original"]["accuracy"] > 0.95
    assert figures["exchanged"]["accuracy"] < figures["original"]["accuracy"]
    assert before.value > figures["exchanged"]["accuracy"]
    first, *_, last = logs(trained / "ymish")
    assert first["original"] == figures["original"]
    assert last["original_accuracy"] == figures["original"]["accuracy"]
    assert last["exchanged_accuracy"] == figures["exchanged"]["accuracy"]
    assert last["stored_accuracy"] == before.value
    assert open_model(trained / "ymish").spec.layers[0].activations == ("ymish",) * 6


def test_a_stopped_fine_tuning_goes_on_with_the_figures_it_began_with(trained):
    plan = continued(trained, {"activations": "ymish"}, steps=6)
    whole, stopped = train_twice(plan, trained, 3)
    assert stopped.before == whole.before


def test_other_labels_get_a_new_classifier_and_the_body_is_kept(trained):
    text = (trained / "train.tsv").read_text().replace("\tann", "\tzoe")
    (trained / "train.tsv").write_text(text)
    (trained / "dev.tsv").write_text(text)
    start = begin(continued(trained, {}), trained / "none")
    assert start.config.labels == ("bob", "zoe")
    assert set(start.fresh) == {"head.classifier.weight", "head.classifier.bias"}
    assert start.before == {}
    kept = open_model(trained / "softmax").module.state_dict()
    assert torch.equal(start.model.state_dict()["head.pooler.weight"], kept["head.pooler.weight"])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"d_model": 48}, "d_model cannot be changed"),
        ({"activations": "softmux"}, "no activation 'softmux'"),
        ({"from": "nowhere"}, "could not be opened|cannot be opened|is missing"),
        ({"goal": "next"}, "no token is the next|none is the next"),
    ],
)
def test_what_a_checkpoint_cannot_become_is_one_clear_line(trained, model, message):
    with pytest.raises(HgvizError, match=message) as caught:
        train(continued(trained, model), trained / "out")
    assert "\n" not in str(caught.value)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"recipe": {"epochs": 1}}, "either steps or minutes or epochs"),
        ({"recipe": {"dropout": 1.5}}, "dropout and smoothing"),
        ({"recipe": {"rate": -1.0}}, "recipe.rate and recipe.clip"),
        ({"recipe": {"device": "abacus"}}, "no device 'abacus'"),
        ({"data": {"label_column": "mood"}}, "no column 'mood'"),
        ({"data": {"train": ["none.tsv"]}}, "could not be read"),
        ({"tokenizer": {"file": "none.json"}}, "could not be read"),
        ({"tokenizer": {"size": 2}}, "tokenizer.size"),
        ({"model": {"vocab_size": 5}}, "ids and the model 5"),
        ({"model": {"labels": ["ann"]}}, "label 'bob' is unknown"),
    ],
)
def test_a_wrong_plan_is_one_clear_line(folder, tables, message):
    with pytest.raises(HgvizError, match=message) as caught:
        train(changed(folder, **tables), folder / "out")
    assert "\n" not in str(caught.value)


def test_a_held_out_label_unseen_in_training_is_named(folder):
    with (folder / "dev.tsv").open("a") as file:
        file.write("cid and ann\tcid\n")
    with pytest.raises(HgvizError, match="line 62, column label: the label 'cid' is unknown"):
        train(read_plan(folder / "plan.toml"), folder / "out")


def test_ids_without_a_tokenizer_are_asked_for_one(folder):
    data = tomllib.loads(PLAN)
    plan = msgspec.convert(
        {**data, "tokenizer": None, "model": {**data["model"], "vocab_size": 99}}, Plan
    )
    files = msgspec.structs.replace(
        plan.data, train=[str(folder / "train.tsv")], valid=str(folder / "dev.tsv")
    )
    with pytest.raises(HgvizError, match="no tokenizer for 99 ids"):
        train(msgspec.structs.replace(plan, data=files), folder / "out")
