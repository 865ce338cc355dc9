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
from tests.models.folders import own_bert, write_bert, write_gpt2
from tests.models.trainings import KINDS, log, plan, train_twice, write_data
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


def plan_again(folder):
    """A plan that goes on from folder/ours, as it is."""
    tables = msgspec.toml.decode((folder / "plan.toml").read_bytes())
    return plan(folder, {**tables, "model": {"from": "ours"}})


def theirs(folder, name, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(transformers, name).from_pretrained(folder, **more).eval()


# --- own checkpoints ------------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path):
    write_data(tmp_path)
    train(plan(tmp_path, KINDS["classes"]), tmp_path / "softmax")
    return tmp_path


def continued(folder, model, **recipe):
    tables = {**KINDS["classes"], "model": {"from": "softmax", **model}}
    return plan(folder, tables, tokenizer=None, recipe={"steps": 40, "rate": 3e-3, **recipe})


def test_softmax_becomes_ymish_with_all_three_accuracies_logged(trained):
    report = train(continued(trained, {"activations": "ymish"}), trained / "ymish")
    original, exchanged = (report.before[name]["accuracy"] for name in ("original", "exchanged"))
    assert original > 0.95 and exchanged < original and report.value > exchanged
    first, *_, last = log(trained / "ymish")
    assert first["original"] == report.before["original"]
    assert (last["original_accuracy"], last["exchanged_accuracy"]) == (original, exchanged)
    assert last["stored_accuracy"] == report.value
    assert open_model(trained / "ymish").spec.layers[0].activations == ("ymish",) * 6


def test_other_labels_get_a_new_classifier_and_the_body_is_kept(trained):
    text = (trained / "train.tsv").read_text().replace("\tann", "\tzoe")
    for name in ("train", "dev"):
        (trained / f"{name}.tsv").write_text(text)
    start = begin(continued(trained, {}), trained)
    assert start.model.config.labels == ("bob", "zoe") and start.before == {}
    assert set(start.fresh) == {"head.classifier.weight", "head.classifier.bias"}
    kept, name = open_model(trained / "softmax").module.state_dict(), "head.pooler.weight"
    assert torch.equal(start.model.state_dict()[name], kept[name])


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


SEVERAL = {"goal": "classes", "activations": ["softmax", "ymish", "tanh"]}


def test_own_and_other_berts_become_classifiers_with_several_activations(tmp_path):
    for name, make, more in (
        ("theirs", write_bert, {"architectures": ["BertForMaskedLM"]}),
        ("own", own_bert, {"goal": "masked"}),
    ):
        make(tmp_path / name, **more)
        cls = {} if name == "theirs" else {"cls": 3}
        train(plan_from(tmp_path, "rows.tsv", **SEVERAL, **cls, **{"from": name}), tmp_path / "out")
        ours = open_model(tmp_path / "out")
        assert ours.spec.goal == "classes" and ours.spec.labels == ("against", "for")
        assert ours.spec.layers[1].activations == ("softmax", "ymish", "tanh")
        pieces = ("[CLS]",) * cls.get("cls", 1)
        assert ours.tokenize("cat").pieces == (*pieces, "cat", "[SEP]")
        (tmp_path / "out").rename(tmp_path / f"{name}-out")


def test_a_bert_classifier_keeps_its_classes_and_a_gpt2_its_weights(tmp_path):
    write_bert(tmp_path / "theirs")
    report = train(plan_from(tmp_path, "rows.tsv", activations="ymish"), tmp_path / "ours")
    assert set(report.before) == {"original", "exchanged"}
    model, rows = open_model(tmp_path / "theirs"), [line.split("\t") for line in ROWS.splitlines()]
    right = [model.spec.labels[model.run(model.tokenize(text).ids).logits.argmax()] == label
             for text, label in rows[1:]]  # fmt: skip
    assert report.before["original"]["accuracy"] == sum(right) / len(right)
    write_gpt2(tmp_path / "gpt2")
    keys = {"from": "gpt2", "activations": "topk", "top_k": 4}
    report = train(plan_from(tmp_path, "text.txt", **keys), tmp_path / "again")
    assert report.before["original"] != report.before["exchanged"]
    assert open_model(tmp_path / "again").spec.layers[0].activations == ("topk",) * 3


# --- models of transformers -----------------------------------------------------------------------

CLASSIFIERS = [
    ("roberta", "RobertaForMaskedLM", "RobertaForSequenceClassification"),
    ("distilbert", "DistilBertModel", "DistilBertForSequenceClassification"),
    ("electra", "ElectraForSequenceClassification", "ElectraForSequenceClassification"),
    ("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXForSequenceClassification"),
    ("deberta-v2", "DebertaV2Model", "DebertaV2ForSequenceClassification"),
]


@pytest.mark.parametrize(("kind", "name", "made"), CLASSIFIERS)
def test_a_model_becomes_a_classifier_that_transformers_opens(tmp_path, kind, name, made):
    changes, recipe = {"id2label": {0: "x", 1: "y", 2: "z"}}, {"steps": 40, "rate": 3e-3}
    start = plan_of(tmp_path, kind, name, recipe, changes=changes, goal="classes")
    if kind in ("roberta", "distilbert"):  # new parameters are those that transformers draws
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
    ("kind", "name"),
    [("llama", "LlamaForCausalLM"), ("gpt_neox", "GPTNeoXForCausalLM"), ("opt", "OPTForCausalLM")],
)
def test_a_language_model_goes_on_with_another_activation(tmp_path, kind, name):
    recipe = {"steps": 30, "store": "bfloat16" if kind == "opt" else "float32"}
    report = train(
        plan_of(tmp_path, kind, name, recipe, activations=["softmax", "ymish"]), tmp_path / "ours"
    )
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
    again = train(plan_again(tmp_path), tmp_path / "again")
    assert again.before["original"] == report.figures


def test_gradients_through_another_activation_are_slopes(tmp_path):
    # which computes in float64 throughout: norms of Llama are float32
    start = plan_of(tmp_path, "gpt_neox", "GPTNeoXForCausalLM", activations="ymish")
    model, ids = begin(start, tmp_path).model.double().eval(), torch.arange(5, 17)[None]
    weight = model.net.gpt_neox.layers[0].attention.query_key_value.weight

    def loss():
        return F.cross_entropy(model(ids)[0, :-1], ids[0, 1:])

    loss().backward()
    step, (row, column), values = 1e-5, divmod(int(weight.grad.abs().argmax()), len(weight[0])), []
    with torch.no_grad():
        for sign in (1, -2):
            weight[row, column] += sign * step
            values.append(loss().item())
    slope = (values[0] - values[1]) / (2 * step)
    assert slope == pytest.approx(weight.grad[row, column].item(), rel=1e-5)


def test_masked_tokens_are_guessed_by_the_name_that_the_tokenizer_has(tmp_path):
    start = plan_of(tmp_path, "roberta", "RobertaForMaskedLM", goal="masked")
    objective = begin(start, tmp_path).objective
    assert objective.mask_id == 4 and objective.frame == ((1,), (2,))
    report = train(start, tmp_path / "ours")
    assert report.figures["loss"] < report.before["original"]["loss"]


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_pairs_are_learned_as_transformers_shifts_them(tmp_path, kind):
    name = f"{kind.title() if kind == 'bart' else 'T5'}ForConditionalGeneration"
    changes = {"decoder_start_token_id": 0}
    start = plan_of(tmp_path, kind, name, {"steps": 8}, changes=changes)
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


def test_dropout_is_that_of_the_recipe_wherever_a_model_keeps_it(tmp_path):
    changes = {"dropout": 0.3, "activation_dropout": 0.3, "layerdrop": 0.5}
    start = plan_of(tmp_path, "opt", "OPTForCausalLM", {"dropout": 0.2}, changes=changes)
    model, ids = begin(start, tmp_path).model, torch.arange(5, 17)[None]
    decoder = model.net.model.decoder
    assert decoder.layers[0].dropout == 0.2 and decoder.layerdrop == 0.0
    torch.manual_seed(0)
    assert not torch.equal(*(model.train()(ids) for _ in range(2)))
    assert torch.equal(*(model.eval()(ids) for _ in range(2)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("roberta", "RobertaForSequenceClassification"),
        ("llama", "LlamaForCausalLM"),
        ("deberta-v2", "DebertaV2ForSequenceClassification"),
    ],
)
def test_gates_are_learned_and_folded(tmp_path, kind, name):
    gates = {"method": "gates", "lambda": 0.1, "freeze": False}
    start = plan_of(tmp_path, kind, name, {"rate": 1e-2, "evaluate_every": 6}, gates)
    report, ours = train(start, tmp_path / "ours"), open_model(tmp_path / "ours")
    content = json.loads((tmp_path / "ours" / "gates.json").read_text())
    assert content["models"] == [read(tmp_path / "theirs").digest, ours.spec.digest]
    assert len({*content["learned"]["gates"].values()}) > 4
    # by the weights alone what was measured under the gates
    measured = log(tmp_path / "ours")[-2]
    figure = "loss" if "loss" in report.figures else report.metric
    under = measured["held_out_loss" if figure == "loss" else "held_out"]
    assert report.figures[figure] == pytest.approx(under, abs=1e-5)


def test_heads_stay_off(tmp_path):
    start = plan_of(tmp_path, "llama", "LlamaForCausalLM", off="0.1,1.*")
    assert {*train(start, tmp_path / "ours").before} == {"original", "pruned"}
    before, after = (read(tmp_path / name).tensors for name in ("theirs", "ours"))
    for layer, head in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 3)):
        weight = after[f"model.layers.{layer}.self_attn.o_proj.weight"]
        assert bool(weight.unflatten(1, (4, -1))[:, head].any()) == (
            (layer, head) in ((0, 0), (0, 2))
        )
    values = "model.layers.0.self_attn.v_proj.weight"  # two heads share what is read by two
    assert not torch.equal(after[values], before[values])


REFUSED = [
    ("roberta", "RobertaForMaskedLM", {"goal": "next"}, {}, "sees those after it"),
    ("llama", "LlamaForCausalLM", {"goal": "masked"}, {}, "transformers has no such class"),
    ("roberta", "RobertaForTokenClassification", {"goal": "tags"}, {}, "its answers are tags"),
    ("roberta", "RobertaForMaskedLM", {"cls": 2}, {}, "a checkpoint's cls cannot be changed"),
    ("deberta-v2", "DebertaV2ForSequenceClassification", {"activations": "ymish"}, {},
     "cannot be exchanged"),
    ("llama", "LlamaForCausalLM", {"activations": "maxout"}, {}, "no activation 'maxout'"),
    ("bart", "BartForConditionalGeneration", {"goal": "classes"}, {}, "cannot be trained"),
    ("vit", "ViTForImageClassification", {"goal": "classes"}, {}, "it reads no texts"),
    ("albert", "AlbertForMaskedLM", {"off": "0.1", "goal": "masked"}, {}, "shares its weights"),
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
    assert opened_by(small) == "opens in hgviz alone: layers keep different numbers of heads"
    (tmp_path / "theirs").rename(tmp_path / "whole")
    (tmp_path / "small").rename(tmp_path / "theirs")
    assert not train(start, tmp_path / "ours").before
    spec = open_model(tmp_path / "ours").spec
    assert [one.heads for one in spec.layers] == [(0, 2, 3), (1, 2)]
    assert spec.layers[0].activations == ("softmax", "ymish", "ymish")
    assert spec.layers[1].activations == ("softmax", "ymish")
    assert spec.layers[0].name.startswith("roberta.encoder.")


def test_a_smaller_model_of_another_activation_opens_in_hgviz_alone(tmp_path):
    write(tmp_path / "theirs", "llama", "LlamaForCausalLM")
    off = frozenset(HeadId(layer, head) for layer in (0, 1) for head in (2, 3))
    whole = read(tmp_path / "theirs")
    small = remove_heads(replace(whole, config=with_activation(whole.config, "ymish")), off)
    assert opened_by(small) == "opens in hgviz alone: transformers would weigh by softmax"
    checkpoints.rewrite(small, tmp_path / "small")
    assert read(tmp_path / "small").digest == small.digest
    ids = list(range(5, 17))
    masked = open_model(tmp_path / "theirs", activation="ymish").run(ids, off=off).logits
    assert scaled_error(open_model(tmp_path / "small").run(ids).logits, masked) < 1e-5
