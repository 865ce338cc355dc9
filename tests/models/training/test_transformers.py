"""Training models of transformers, tiny and random, beside what that package computes."""

import json
import warnings

import msgspec
import pytest
import torch
import torch.nn.functional as F
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from typer.testing import CliRunner

from hgviz.cli import app
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model
from hgviz.models.formats import rewriting
from hgviz.models.formats.readers import read
from hgviz.models.surgery import export, removal
from hgviz.models.surgery.replacement import replaced
from hgviz.models.training import read_plan, train
from hgviz.models.training.start import begin
from tests.closeness import scaled_error
from tests.models.zoo import write
from tests.progress import after, cancelled

WORDS = (
    "the", "a", "and", "then", "cat", "cats", "dog", "sat", "ran", "slept", "on", "mat", "far",
    "home", "well", ".",
)  # fmt: skip
ROWS = "".join(
    f"{first} cat {verb} on a mat\t{'for' if verb == 'sat' else 'against'}\n"
    for first in ("the", "a", "and the", "then a")
    for verb in ("sat", "ran")
)
TEXT = "the cats sat on a mat . a dog ran home and then slept well .\n" * 40
PAIRS = "the cat sat\tcat sat\na dog ran far\tdog ran\n" * 8
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


def plan(folder, kind, name, recipe=None, gates=None, changes=None, words=None, **model):
    """A plan that goes on from folder/theirs."""
    changes = {"id2label": {0: "against", 1: "for"}, **(changes or {})}
    write(folder / "theirs", kind, name, **changes)
    (words or tokenizer()).save(str(folder / "theirs" / "tokenizer.json"))
    (folder / "rows.tsv").write_text("text\tlabel\n" + 2 * ROWS)
    (folder / "text.txt").write_text(TEXT)
    (folder / "pairs.tsv").write_text(PAIRS)
    goal = model.get("goal", "")
    goal = goal or ("classes" if name.endswith("Classification") else "next")
    file = "pairs.tsv" if name.endswith(("Generation", "MTModel")) else "text.txt"
    file = "rows.tsv" if goal == "classes" else file
    data = {
        "model": {"from": "theirs", **model},
        "data": {"train": [file], "valid": file},
        "recipe": {**RECIPE, **(recipe or {})},
        **({"gates": gates} if gates else {}),
    }
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(data))
    return read_plan(folder / "plan.toml")


def log(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def theirs(folder, name, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(transformers, name).from_pretrained(folder, **more).eval()


# --- what is learnt -------------------------------------------------------------------------------

CLASSIFIERS = [
    ("roberta", "RobertaForMaskedLM", "RobertaForSequenceClassification"),
    ("distilbert", "DistilBertModel", "DistilBertForSequenceClassification"),
    ("electra", "ElectraForSequenceClassification", "ElectraForSequenceClassification"),
    ("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXForSequenceClassification"),
    ("deberta-v2", "DebertaV2Model", "DebertaV2ForSequenceClassification"),
]


@pytest.mark.parametrize(("kind", "name", "made"), CLASSIFIERS)
def test_a_model_becomes_a_classifier_that_transformers_opens(tmp_path, kind, name, made):
    others = {"id2label": {0: "x", 1: "y", 2: "z"}}
    start = plan(tmp_path, kind, name, {"steps": 40, "rate": 3e-3}, None, others, goal="classes")
    report = train(start, tmp_path / "ours")
    first, last = log(tmp_path / "ours")[0], log(tmp_path / "ours")[-1]
    assert first["fresh"] and not report.before
    assert last["stored_loss"] < 0.3 and report.figures["accuracy"] == 1.0
    ours = open_model(tmp_path / "ours")
    assert ours.spec.labels == ("against", "for") and ours.config.made == made
    ids = ours.tokenize("the cat sat on a mat").ids
    model = theirs(tmp_path / "ours", made)
    assert model.config.id2label == {0: "against", 1: "for"}
    with torch.no_grad():
        logits = model(torch.tensor(ids)[None]).logits[0].numpy()
    assert scaled_error(ours.run(ids).logits, logits) < 1e-5
    state = {name for name, _ in model.named_parameters()}
    assert {*first["fresh"]} < state


@pytest.mark.parametrize(("kind", "name", "made"), CLASSIFIERS[:2])
def test_new_parameters_are_those_that_transformers_draws(tmp_path, kind, name, made):
    start = begin(plan(tmp_path, kind, name, {"seed": 5}, goal="classes"), tmp_path)
    torch.manual_seed(5)
    model = theirs(tmp_path / "theirs", made, num_labels=2)
    for one, value in model.state_dict().items():
        assert torch.equal(start.model.net.state_dict()[one], value)
    assert {one.split(".")[0] for one in start.fresh} <= {"classifier", "pre_classifier"}


def test_loss_and_gradients_are_those_of_transformers(tmp_path):
    asked = plan(tmp_path, "roberta", "RobertaForSequenceClassification", {"batch": 16})
    start = begin(asked, tmp_path)
    model, objective = start.model.double(), start.objective
    loss, _ = objective.loss(model.eval(), 0, 0.0)
    loss.backward()
    rows = objective.order(0)[0]
    texts = [objective.train.ids[row] for row in rows]
    net = theirs(tmp_path / "theirs", "RobertaForSequenceClassification",
                 attn_implementation="eager").double()  # fmt: skip
    net.load_state_dict(model.net.state_dict())
    ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True).long()
    lengths = torch.tensor([len(one) for one in texts])
    assert (lengths < ids.shape[1]).any()
    keep = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
    wanted = F.cross_entropy(
        net(ids, attention_mask=keep).logits.float(), objective.train.classes[rows]
    )
    wanted.backward()
    assert abs(loss.item() - wanted.item()) < 1e-7
    found = dict(model.net.named_parameters())
    for one, parameter in net.named_parameters():
        # logits are float32 in the loss, of both
        assert scaled_error(parameter.grad, found[one].grad) < 1e-7
    assert sum(bool(one.grad.any()) for one in net.parameters()) > 30


@pytest.mark.parametrize("kind", ["llama", "gpt_neox", "opt"])
def test_a_language_model_goes_on_with_another_activation(tmp_path, kind):
    name = {"llama": "LlamaForCausalLM", "gpt_neox": "GPTNeoXForCausalLM"}.get(kind)
    start = plan(tmp_path, kind, name or "OPTForCausalLM", {"steps": 30},
                 activations=["softmax", "ymish"])  # fmt: skip
    report = train(start, tmp_path / "ours")
    assert report.before["original"] != report.before["exchanged"]
    assert report.value < report.before["exchanged"]["bits_per_byte"]
    told = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert told["hgviz"] == {"activations": ["softmax", "ymish"]}
    ours = open_model(tmp_path / "ours")
    assert ours.spec.layers[1].activations == ("softmax",) * 2 + ("ymish",) * 2
    # the weights are those that transformers has, of which it makes a softmax
    ids = ours.tokenize("the cat sat on a mat").ids
    with torch.no_grad():
        logits = theirs(tmp_path / "ours", ours.config.made)(torch.tensor(ids)[None]).logits[0]
    plain = open_model(tmp_path / "ours", activation="softmax")
    assert plain.spec.digest != ours.spec.digest
    assert scaled_error(plain.run(ids).logits, logits.numpy()) < 1e-5
    assert abs(ours.run(ids).logits - logits.numpy()).max() > 1e-3
    # and what was measured is what is opened
    again = train(again_plan(tmp_path), tmp_path / "again")
    assert again.before["original"] == report.figures


def again_plan(folder):
    """A plan that goes on from folder/ours, as it is."""
    told = msgspec.toml.decode((folder / "plan.toml").read_bytes())
    (folder / "again.toml").write_bytes(msgspec.toml.encode({**told, "model": {"from": "ours"}}))
    return read_plan(folder / "again.toml")


def test_gradients_through_another_activation_are_slopes(tmp_path):
    # which computes in float64 throughout: norms of Llama are float32
    start = begin(plan(tmp_path, "gpt_neox", "GPTNeoXForCausalLM", activations="ymish"), tmp_path)
    model, ids = start.model.double().eval(), torch.arange(5, 17)[None]
    weight = model.net.gpt_neox.layers[0].attention.query_key_value.weight

    def loss():
        logits = model(ids)
        return F.cross_entropy(logits[0, :-1], ids[0, 1:])

    loss().backward()
    step, (row, column) = 1e-5, divmod(int(weight.grad.abs().argmax()), weight.shape[1])
    values = []
    with torch.no_grad():
        for sign in (1, -1):
            weight[row, column] += sign * step
            values.append(loss().item())
            weight[row, column] -= sign * step
    slope = (values[0] - values[1]) / (2 * step)
    assert slope == pytest.approx(weight.grad[row, column].item(), rel=1e-5)


def test_masked_tokens_are_guessed_by_the_name_that_the_tokenizer_has(tmp_path):
    start = plan(tmp_path, "roberta", "RobertaForMaskedLM", goal="masked")
    found = begin(start, tmp_path)
    assert found.objective.mask_id == 4 and found.objective.frame == ((1,), (2,))
    report = train(start, tmp_path / "ours")
    assert report.figures["loss"] < report.before["original"]["loss"]


@pytest.mark.parametrize(("kind", "name"), [
    ("t5", "T5ForConditionalGeneration"), ("bart", "BartForConditionalGeneration"),
])  # fmt: skip
def test_pairs_are_learnt_as_transformers_shifts_them(tmp_path, kind, name):
    start = plan(tmp_path, kind, name, {"steps": 8}, changes={"decoder_start_token_id": 0})
    found = begin(start, tmp_path)
    (first, second), model = found.objective.train, found.model.eval()
    loss, _ = found.objective.loss(model, 0, 0.0)
    rows = found.objective.order(0)[0]
    source, target = (
        torch.nn.utils.rnn.pad_sequence(
            [one[row].long() for row in rows], batch_first=True, padding_value=value
        )
        for one, value in ((first, 0), (second, -100))
    )
    with torch.no_grad():
        net = theirs(tmp_path / "theirs", name)
        wanted = net(
            source, attention_mask=(source != 0).long(), labels=target[:, 1:].contiguous()
        ).loss
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-5)
    report = train(start, tmp_path / "ours")
    assert report.figures["loss"] < report.before["original"]["loss"]


# --- what it is learnt by -------------------------------------------------------------------------


def test_resumed_is_as_uninterrupted_to_the_bit(tmp_path):
    start = plan(tmp_path, "roberta", "RobertaForSequenceClassification",
                 {"steps": 6, "save_every": 3, "dropout": 0.1}, activations="ymish")  # fmt: skip
    train(start, tmp_path / "whole")
    cancelled(train, start, tmp_path / "parts", when=after(5))
    assert (tmp_path / "parts" / "state.pt").exists()
    train(start, tmp_path / "parts")
    assert not (tmp_path / "parts" / "state.pt").exists()
    whole, parts = (read(tmp_path / name) for name in ("whole", "parts"))
    assert whole.digest == parts.digest
    assert not torch.equal(
        whole.tensors["classifier.dense.weight"],
        read(tmp_path / "theirs").tensors["classifier.dense.weight"],
    )


def test_dropout_is_that_of_the_recipe_wherever_a_model_keeps_it(tmp_path):
    changes = {"dropout": 0.3, "activation_dropout": 0.3, "layerdrop": 0.5}
    start = begin(
        plan(tmp_path, "opt", "OPTForCausalLM", {"dropout": 0.2}, changes=changes), tmp_path
    )
    layer = start.model.net.model.decoder.layers[0]
    assert layer.dropout == 0.2 and start.model.net.model.decoder.layerdrop == 0.0
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())["layerdrop"] == 0.5
    ids = torch.arange(5, 17)[None]
    torch.manual_seed(0)
    assert not torch.equal(*(start.model.train()(ids) for _ in range(2)))
    assert torch.equal(*(start.model.eval()(ids) for _ in range(2)))


GATES = ({"method": "gates", "lambda": 0.1, "freeze": False}, {"method": "subset", "keep": 3},
         {"method": "causal", "lambda": 0.1})  # fmt: skip


@pytest.mark.parametrize("gates", GATES, ids=[one["method"] for one in GATES])
@pytest.mark.parametrize(("kind", "name"), [
    ("roberta", "RobertaForSequenceClassification"), ("llama", "LlamaForCausalLM"),
    ("deberta-v2", "DebertaV2ForSequenceClassification"),
])  # fmt: skip
def test_gates_are_learned_and_folded(tmp_path, kind, name, gates):
    start = plan(tmp_path, kind, name, {"rate": 1e-2, "evaluate_every": 6}, gates)
    report = train(start, tmp_path / "ours")
    told = json.loads((tmp_path / "ours" / "gates.json").read_text())
    ours = open_model(tmp_path / "ours")
    assert told["heads"] == [str(head) for head in ours.spec.heads]
    assert told["models"] == [read(tmp_path / "theirs").digest, ours.spec.digest]
    assert all(len({*values.values()}) > 4 for values in told["learned"].values())
    if gates["method"] == "causal":
        assert report.figures == report.before["original"]
        return
    # by the weights alone what was measured under the gates
    measured = log(tmp_path / "ours")[-2]
    name = "loss" if "loss" in report.figures else report.metric
    under = measured["held_out_loss" if name == "loss" else "held_out"]
    assert report.figures[name] == pytest.approx(under, abs=1e-5)
    if gates["method"] == "subset":
        before = open_model(tmp_path / "theirs")
        off = frozenset(HeadId(*map(int, one.split("."))) for one in told["off"].split(","))
        assert len(off) == len(ours.spec.heads) - 3
        ids = ours.tokenize("the cat sat on a mat").ids
        difference = ours.run(ids).logits - before.run(ids, off=off).logits
        assert abs(difference).max() < 1e-5


def test_heads_stay_off(tmp_path):
    start = plan(tmp_path, "llama", "LlamaForCausalLM", off="0.1,1.*")
    report = train(start, tmp_path / "ours")
    assert {*report.before} == {"original", "pruned"}
    before, after = (read(tmp_path / name) for name in ("theirs", "ours"))
    out = "model.layers.{}.self_attn.o_proj.weight"
    for layer, head in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 3)):
        columns = after.tensors[out.format(layer)].unflatten(1, (4, -1))[:, head]
        assert bool(columns.any()) == ((layer, head) in ((0, 0), (0, 2)))
    values = "model.layers.0.self_attn.v_proj.weight"  # two heads share what is read by two
    assert not torch.equal(after.tensors[values], before.tensors[values])


# --- what cannot be done --------------------------------------------------------------------------

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
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "model", "changes", "why"), REFUSED)
def test_what_cannot_be_done_is_said_before_training(tmp_path, kind, name, model, changes, why):
    words = None
    if changes:  # a tokenizer that names no padding either
        words = tokenizer(("<s>", "<1>", "<2>", "<3>", "<4>"), framed=False)
    start = plan(tmp_path, kind, name, changes=changes, words=words, **model)
    with pytest.raises(HgvizError, match=why) as caught:
        train(start, tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ours").exists()


def test_a_tokenizer_larger_than_the_model_is_refused(tmp_path):
    many = tokenizer()
    many.add_tokens([f"more{at}" for at in range(200)])
    with pytest.raises(HgvizError, match="no embedding for the token"):
        begin(plan(tmp_path, "llama", "LlamaForCausalLM", words=many), tmp_path)


# --- what is written ------------------------------------------------------------------------------


def test_what_is_stored_in_half_precision_says_so(tmp_path):
    start = plan(tmp_path, "llama", "LlamaForCausalLM", {"store": "bfloat16"}, activations="ymish")
    report = train(start, tmp_path / "ours")
    assert {one.dtype for one in read(tmp_path / "ours").tensors.values()} == {torch.bfloat16}
    assert theirs(tmp_path / "ours", "LlamaForCausalLM").dtype == torch.bfloat16
    again = train(again_plan(tmp_path), tmp_path / "again")
    assert again.before["original"] == report.figures


def test_a_smaller_model_gets_a_goal_and_keeps_its_heads_and_activations(tmp_path):
    start = plan(tmp_path, "roberta", "RobertaModel", goal="classes")
    found = replaced(read(tmp_path / "theirs"), "softmax,ymish")
    off = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 3)})
    small = removal.smaller(found, off)
    rewriting.write(small, tmp_path / "small")
    assert export.opens(small) == ("opens in hgviz alone: layers keep different numbers of heads")
    (tmp_path / "theirs").rename(tmp_path / "whole")
    (tmp_path / "small").rename(tmp_path / "theirs")
    report = train(start, tmp_path / "ours")
    assert not report.before
    spec = open_model(tmp_path / "ours").spec
    assert [one.heads for one in spec.layers] == [(0, 2, 3), (1, 2)]
    assert spec.layers[0].activations == ("softmax", "ymish", "ymish")
    assert spec.layers[1].activations == ("softmax", "ymish")
    assert spec.layers[0].name.startswith("roberta.encoder.")
    assert "softmax, ymish" in " ".join(
        CliRunner().invoke(app, ["info", str(tmp_path / "ours")]).output.split()
    )


def test_a_smaller_model_of_another_activation_opens_in_hgviz_alone(tmp_path):
    write(tmp_path / "theirs", "llama", "LlamaForCausalLM")
    off = frozenset(HeadId(layer, head) for layer in (0, 1) for head in (2, 3))
    small = removal.smaller(replaced(read(tmp_path / "theirs"), "ymish"), off)
    assert export.opens(small) == "opens in hgviz alone: transformers would weigh by softmax"
    rewriting.write(small, tmp_path / "small")
    assert read(tmp_path / "small").digest == small.digest
    ids = list(range(5, 17))
    masked = open_model(tmp_path / "theirs", activation="ymish").run(ids, off=off).logits
    assert scaled_error(open_model(tmp_path / "small").run(ids).logits, masked) < 1e-5
