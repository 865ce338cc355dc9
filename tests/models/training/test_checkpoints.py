"""Fine-tuning what others trained: BERT and GPT-2 folders as transformers writes them."""

import json

import msgspec
import pytest

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.training import read_plan, train
from tests.models.folders import own_bert, write_bert, write_gpt2

ROWS = "the cat sat .\t{0}\nthe cats sat , un\t{1}\nunaffable cat\t{1}\ncats .\t{0}\n"


def plan(folder, labels=("for", "against"), recipe=None, **model):
    """A plan that goes on from folder/theirs."""
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + 4 * ROWS.format(*labels))
    data = {
        "model": {"from": "theirs", **model},
        "data": {"train": ["train.tsv"], "valid": "dev.tsv"},
        "recipe": {"steps": 4, "batch": 4, "rate": 1e-3, "threads": 1, **(recipe or {})},
    }
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(data))
    return read_plan(folder / "plan.toml")


def first_log(folder):
    return json.loads((folder / "log.jsonl").read_text().splitlines()[0])


def test_a_bert_classifier_keeps_its_classes_and_is_measured_before(tmp_path):
    write_bert(tmp_path / "theirs")
    report = train(plan(tmp_path, activations="ymish"), tmp_path / "ours")
    assert set(report.before) == {"original", "exchanged"}
    ours = open_model(tmp_path / "ours")
    assert ours.spec.labels == ("against", "for")
    assert ours.tokenize("the cats").pieces == ("[CLS]", "the", "cat", "##s", "[SEP]")
    theirs = open_model(tmp_path / "theirs")
    right = [
        theirs.spec.labels[theirs.run(theirs.tokenize(text).ids).logits.argmax()] == label
        for text, label in (line.split("\t") for line in ROWS.format("for", "against").splitlines())
    ]
    assert report.before["original"]["accuracy"] == sum(right) / 4


def test_other_classes_get_a_new_head_whose_figures_are_not_made_up(tmp_path):
    write_bert(tmp_path / "theirs")
    report = train(plan(tmp_path, labels=("a", "b")), tmp_path / "ours")
    assert report.before == {}
    assert first_log(tmp_path / "ours")["fresh"] == ["classifier.bias", "classifier.weight"]
    assert open_model(tmp_path / "ours").spec.labels == ("a", "b")


def test_a_masked_language_model_becomes_a_classifier_with_several_activations(tmp_path):
    write_bert(tmp_path / "theirs", architectures=["BertForMaskedLM"])
    start = plan(tmp_path, goal="classes", activations=["softmax", "ymish", "tanh"])
    train(start, tmp_path / "ours")
    ours = open_model(tmp_path / "ours")
    assert ours.spec.goal == "classes"
    assert ours.spec.layers[1].activations == ("softmax", "ymish", "tanh")


def test_hgvizs_own_bert_becomes_a_classifier_with_several_cls(tmp_path):
    own_bert(tmp_path / "theirs", goal="masked")
    start = plan(tmp_path, goal="classes", cls=3, activations=["softmax", "ymish", "tanh"])
    train(start, tmp_path / "ours")
    ours = open_model(tmp_path / "ours")
    assert ours.tokenize("cat").pieces == ("[CLS]", "[CLS]", "[CLS]", "cat", "[SEP]")
    assert ours.spec.goal == "classes"
    assert ours.spec.layers[1].activations == ("softmax", "ymish", "tanh")


def test_a_bert_of_transformers_has_one_cls(tmp_path):
    write_bert(tmp_path / "theirs", architectures=["BertForMaskedLM"])
    with pytest.raises(HgvizError, match="cls"):
        train(plan(tmp_path, goal="classes", cls=3), tmp_path / "ours")


def test_a_gpt2_goes_on_as_a_language_model(tmp_path):
    write_gpt2(tmp_path / "theirs")
    stages = [{"start": 0.0, "length": 16, "batch": 2}]
    start = plan(tmp_path, recipe={"stages": stages, "evaluate_length": 16}, activations="topk",
                 top_k=4)  # fmt: skip
    report = train(start, tmp_path / "ours")
    assert report.metric == "bits_per_byte"
    assert report.before["original"] != report.before["exchanged"]
    assert open_model(tmp_path / "ours").spec.layers[0].activations == ("topk",) * 3


def test_a_checkpoint_without_a_tokenizer_cannot_be_trained(tmp_path):
    write_bert(tmp_path / "theirs", tokenizer=False)
    with pytest.raises(HgvizError, match=r"theirs has no tokenizer\.json"):
        train(plan(tmp_path), tmp_path / "ours")


def test_a_gpt2_without_a_token_for_padding_becomes_no_classifier(tmp_path):
    write_gpt2(tmp_path / "theirs")
    with pytest.raises(HgvizError, match="no padding token is defined"):
        train(plan(tmp_path, goal="classes"), tmp_path / "ours")
