"""Checkpoints that are trained on: own ones, and models of transformers beside that package."""

import json
import warnings
from dataclasses import replace

import msgspec
import pytest
import torch
import torch.nn.functional as F
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.nn.utils.rnn import pad_sequence

from hgviz.core import HeadId, HgvizError
from hgviz.models import checkpoints, open_model
from hgviz.models.checkpoints import read
from hgviz.models.model import with_activation
from hgviz.models.pruning import opened_by, remove_heads
from hgviz.models.training import begin, train
from tests.closeness import scaled_error
from tests.models.building import KINDS, log, plan, train_twice, write_data
from tests.models.zoo import write

WORDS = (
    "the", "a", "and", "then", "cat", "cats", "dog", "sat", "ran", "slept", "on", "mat", "far",
    "home", "well", ".",
)  # fmt: skip
ROWS = "text\tlabel\n" + 2 * "".join(
    f"{first} cat {verb} on a mat\t{'for' if verb == 'sat' else 'against'}\n"
    for first in ("the", "a", "and the", "then a")
    for verb in ("sat", "ran")
)
FILES = {
    "rows.tsv": ROWS,
    "text.txt": "the cats sat on a mat . a dog ran home and then slept well .\n" * 40,
    "pairs.tsv": "the cat sat\tcat sat\na dog ran far\tdog ran\n" * 8,
}
RECIPE = {
    "steps": 6, "batch": 4, "rate": 1e-3, "warmup": 1, "threads": 1, "evaluate_length": 12,
    "stages": [{"start": 0.0, "length": 12, "batch": 4}],
}  # fmt: skip


def tokenizer(marks=("<pad>", "<s>", "</s>", "<unk>", "<mask>"), framed=True):
    names = {name: at for at, name in enumerate((*marks, *WORDS))}
    made = Tokenizer(models.WordLevel(names, unk_token=marks[3]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(list(marks))
    if framed:
        made.post_processor = processors.TemplateProcessing(
            single=f"{marks[1]} $A {marks[2]}", special_tokens=[(marks[1], 1), (marks[2], 2)]
        )
    return made


def plan_from(folder, file, recipe=None, gates=None, **model):
    """A plan that goes on from folder/theirs with one of FILES."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    tables = {
        "model": {"from": "theirs", **model}, "data": {"train": [file], "valid": file},
        "recipe": {**RECIPE, **(recipe or {})},
    }  # fmt: skip
    return plan(folder, tables, gates=gates)


def plan_of(folder, kind, name, recipe=None, gates=None, changes=None, words=None, **model):
    """A plan that goes on from a random model of transformers."""
    changes = {"id2label": {0: "against", 1: "for"}, **(changes or {})}
    write(folder / "theirs", kind, name, **changes)
    (words or tokenizer()).save(str(folder / "theirs" / "tokenizer.json"))
    is_classifier = model.get("goal", "") == "classes" or name.endswith("Classification")
    file = "pairs.tsv" if name.endswith("Generation") else "text.txt"
    return plan_from(folder, "rows.tsv" if is_classifier else file, recipe, gates, **model)


def theirs(folder, name, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(transformers, name).from_pretrained(folder, **more).eval()


# --- own checkpoints ------------------------------------------------------------------------------


def test_softmax_becomes_ymish_with_all_three_accuracies_logged(tmp_path):
    write_data(tmp_path)
    train(plan(tmp_path, KINDS["classes"]), tmp_path / "softmax")
    tables = {**KINDS["classes"], "model": {"from": "softmax", "activations": "ymish"}}
    goes_on = plan(tmp_path, tables, tokenizer=None, recipe={"steps": 40, "rate": 3e-3})
    report = train(goes_on, tmp_path / "ymish")
    original, exchanged = (report.before[name]["accuracy"] for name in ("original", "exchanged"))
    assert original > 0.95 and exchanged < original and report.value > exchanged
    first, *_, last = log(tmp_path / "ymish")
    assert first["original"] == report.before["original"]
    assert (last["original_accuracy"], last["exchanged_accuracy"]) == (original, exchanged)
    assert last["stored_accuracy"] == report.value
    assert open_model(tmp_path / "ymish").spec.layers[0].activations == ("ymish",) * 6


# --- models of transformers -----------------------------------------------------------------------

CLASSIFIERS = [
    ("distilbert", "DistilBertModel", "DistilBertForSequenceClassification"),
    ("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXForSequenceClassification"),
]


@pytest.mark.parametrize(("kind", "name", "made"), CLASSIFIERS)
def test_a_model_becomes_a_classifier_that_transformers_opens(tmp_path, kind, name, made):
    changes, recipe = {"id2label": {0: "x", 1: "y", 2: "z"}}, {"steps": 40, "rate": 3e-3}
    start = plan_of(tmp_path, kind, name, recipe, changes=changes, goal="classes")
    if kind == "distilbert":  # new parameters are those that transformers draws
        begun = begin(start, tmp_path)
        torch.manual_seed(0)
        for one, value in theirs(tmp_path / "theirs", made, num_labels=2).state_dict().items():
            assert torch.equal(begun.model.net.state_dict()[one], value)
    report = train(start, tmp_path / "ours")
    first, *_, last = log(tmp_path / "ours")
    assert first["fresh"] and not report.before
    assert last["stored_loss"] < 0.3 and report.figures["accuracy"] == 1.0
    ours, model = open_model(tmp_path / "ours"), theirs(tmp_path / "ours", made)
    assert ours.spec.labels == ("against", "for") and ours.config.class_name == made
    assert model.config.id2label == {0: "against", 1: "for"}
    ids = ours.tokenize("the cat sat on a mat").ids
    with torch.no_grad():
        logits = model(torch.tensor(ids)[None]).logits[0].numpy()
    assert scaled_error(ours.run(ids).logits, logits) < 1e-5
    assert {*first["fresh"]} < {name for name, _ in model.named_parameters()}


def test_loss_and_gradients_are_those_of_transformers(tmp_path):
    name = "RobertaForSequenceClassification"
    start = begin(plan_of(tmp_path, "roberta", name, {"batch": 16}), tmp_path)
    model, objective = start.model.double(), start.objective
    loss, _ = objective.loss(model.eval(), 0, 0.0)
    loss.backward()
    rows = objective.batches(0)[0]
    net = theirs(tmp_path / "theirs", name, attn_implementation="eager").double()
    net.load_state_dict(model.net.state_dict())
    texts = [objective.train[0][row] for row in rows]
    ids, lengths = pad_sequence(texts, batch_first=True).long(), torch.tensor([*map(len, texts)])
    keep = torch.arange(ids.shape[1]) < lengths[:, None]
    assert not keep.all()
    logits = net(ids, attention_mask=keep.long()).logits
    wanted = F.cross_entropy(logits.float(), objective.train[1][rows])
    wanted.backward()
    assert abs(loss.item() - wanted.item()) < 1e-7
    slopes = dict(model.net.named_parameters())
    for one, parameter in net.named_parameters():
        # logits are float32 in the loss, of both
        assert scaled_error(parameter.grad, slopes[one].grad) < 1e-7
    assert sum(bool(one.grad.any()) for one in net.parameters()) > 30


@pytest.mark.parametrize(
    ("kind", "name"), [("llama", "LlamaForCausalLM"), ("opt", "OPTForCausalLM")]
)
def test_a_language_model_goes_on_with_another_activation(tmp_path, kind, name):
    recipe = {"steps": 30, "store": "bfloat16" if kind == "opt" else "float32"}
    start = plan_of(tmp_path, kind, name, recipe, activations=["softmax", "ymish"])
    report = train(start, tmp_path / "ours")
    assert report.before["original"] != report.before["exchanged"]
    assert report.value < report.before["exchanged"]["bits_per_byte"]
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["hgviz"] == {"activations": ["softmax", "ymish"]}
    ours, dtype = open_model(tmp_path / "ours"), getattr(torch, recipe["store"])
    assert ours.spec.layers[1].activations == ("softmax",) * 2 + ("ymish",) * 2
    assert {one.dtype for one in read(tmp_path / "ours").tensors.values()} == {dtype}
    # the weights are those that transformers has, of which it makes a softmax
    ids, net = ours.tokenize("the cat sat on a mat").ids, theirs(tmp_path / "ours", name)
    assert net.dtype == dtype
    with torch.no_grad():
        logits = net.float()(torch.tensor(ids)[None]).logits[0].numpy()
    plain = open_model(tmp_path / "ours", activation="softmax")
    assert plain.spec.digest != ours.spec.digest
    assert scaled_error(plain.run(ids).logits, logits) < 1e-5
    assert abs(ours.run(ids).logits - logits).max() > 1e-3
    # and what was measured is what is opened
    tables = msgspec.toml.decode((tmp_path / "plan.toml").read_bytes())
    again = train(plan(tmp_path, {**tables, "model": {"from": "ours"}}), tmp_path / "again")
    assert again.before["original"] == report.figures


def test_pairs_are_learned_as_transformers_shifts_them(tmp_path):
    name, changes = "T5ForConditionalGeneration", {"decoder_start_token_id": 0}
    start = plan_of(tmp_path, "t5", name, {"steps": 8}, changes=changes)
    begun = begin(start, tmp_path)
    (first, second), rows = begun.objective.train, begun.objective.batches(0)[0]
    loss, _ = begun.objective.loss(begun.model.eval(), 0, 0.0)
    source = pad_sequence([first[row].long() for row in rows], batch_first=True)
    target = pad_sequence([second[row].long()[1:] for row in rows], True, -100)
    with torch.no_grad():
        net = theirs(tmp_path / "theirs", name)
        wanted = net(source, attention_mask=(source != 0).long(), labels=target).loss
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-5)
    report = train(start, tmp_path / "ours")
    assert report.figures["loss"] < report.before["original"]["loss"]


def test_resumed_is_as_uninterrupted_to_the_bit(tmp_path):
    recipe, name = {"save_every": 3, "dropout": 0.1}, "RobertaForSequenceClassification"
    start = plan_of(tmp_path, "roberta", name, recipe, activations="ymish")
    train_twice(start, tmp_path, 4, files=("model.safetensors", "config.json"))
    before, after = (read(tmp_path / one).tensors for one in ("theirs", "whole"))
    assert not torch.equal(*(one["classifier.dense.weight"] for one in (before, after)))


def test_gates_are_learned_and_folded(tmp_path):
    gates = {"method": "gates", "lambda": 0.1, "freeze": False}
    recipe = {"rate": 1e-2, "evaluate_every": 6}
    start = plan_of(tmp_path, "llama", "LlamaForCausalLM", recipe, gates)
    report, ours = train(start, tmp_path / "ours"), open_model(tmp_path / "ours")
    content = json.loads((tmp_path / "ours" / "gates.json").read_text())
    assert content["models"] == [read(tmp_path / "theirs").digest, ours.spec.digest]
    assert len({*content["learned"]["gates"].values()}) > 4
    # by the weights alone what was measured under the gates
    measured = log(tmp_path / "ours")[-2]
    assert report.value == pytest.approx(measured["held_out"], abs=1e-5)


REFUSED = [
    ("roberta", "RobertaForMaskedLM", {"goal": "next"}, {}, "it is bidirectional"),
    ("llama", "LlamaForCausalLM", {"goal": "masked"}, {}, "transformers has no class for it"),
    ("roberta", "RobertaForTokenClassification", {"goal": "tags"}, {}, "its goal is tags"),
    ("deberta-v2", "DebertaV2ForSequenceClassification", {"activations": "ymish"}, {},
     "cannot be replaced"),
    ("bart", "BartForConditionalGeneration", {"goal": "classes"}, {}, "cannot be trained"),
    ("vit", "ViTForImageClassification", {"goal": "classes"}, {}, "it does not read text"),
    ("llama", "LlamaForCausalLM", {"goal": "classes"}, {"pad_token_id": None}, "no padding token"),
    ("llama", "LlamaForCausalLM", {}, {"vocab_size": 9}, "no embedding for the token"),
    ("llama", "LlamaForCausalLM", {}, None, r"theirs has no tokenizer\.json"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "model", "changes", "why"), REFUSED)
def test_what_cannot_be_done_is_said_before_training(tmp_path, kind, name, model, changes, why):
    words = None
    if changes and "pad_token_id" in changes:  # a tokenizer that names no padding either
        words = tokenizer(("<s>", "<1>", "<2>", "<3>", "<4>"), framed=False)
    start = plan_of(tmp_path, kind, name, changes=changes, words=words, **model)
    if changes is None:
        (tmp_path / "theirs" / "tokenizer.json").unlink()
    with pytest.raises(HgvizError, match=why) as caught:
        train(start, tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ours").exists()


def test_a_smaller_model_gets_a_goal_and_keeps_its_heads_and_activations(tmp_path):
    start = plan_of(tmp_path, "roberta", "RobertaModel", goal="classes")
    whole = read(tmp_path / "theirs")
    whole = replace(whole, config=with_activation(whole.config, "softmax,ymish"))
    small = remove_heads(whole, frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 3)}))
    checkpoints.rewrite(small, tmp_path / "small")
    assert opened_by(small) == "opens in hgviz only: layers keep different numbers of heads"
    (tmp_path / "theirs").rename(tmp_path / "whole")
    (tmp_path / "small").rename(tmp_path / "theirs")
    assert not train(start, tmp_path / "ours").before
    spec = open_model(tmp_path / "ours").spec
    assert [one.heads for one in spec.layers] == [(0, 2, 3), (1, 2)]
    assert spec.layers[0].activations == ("softmax", "ymish", "ymish")
    assert spec.layers[1].activations == ("softmax", "ymish")
    assert spec.layers[0].name.startswith("roberta.encoder.")
