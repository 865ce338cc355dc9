"""Training files, tokenizers, objectives and gates; trainings of own models, what they learn, write
and resume; and models of transformers that are trained on, beside that package."""

import json
import math
import random
import warnings
from types import SimpleNamespace

import msgspec
import pytest
import torch
import torch.nn.functional as F
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.nn.utils.rnn import pad_sequence

from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model
from hgviz.models.checkpoints import read, save
from hgviz.models.config import parse_config
from hgviz.models.objectives import (
    HardConcrete,
    Recipe,
    TrainedHeads,
    bits_per_byte,
    mask_tokens,
)
from hgviz.models.training import begin, read_learned, schedule, train
from tests.closeness import scaled_error
from tests.models.building import (
    KINDS,
    interrupt,
    log,
    make_config,
    make_hourglass,
    make_transformer,
    plan,
    train_twice,
    write_data,
)
from tests.models.zoo import write


@pytest.fixture
def folder(tmp_path):
    write_data(tmp_path)
    return tmp_path


# --- what is learned ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, metric, low", [
    ("masked", "masked_accuracy", 0.7),
    ("pairs", "token_accuracy", 0.75),  # without the first text one word of four is right
])  # fmt: skip
def test_every_kind_learns_and_writes_a_checkpoint_that_opens(folder, kind, metric, low):
    report = train(plan(folder, KINDS[kind]), folder / "out")
    assert report.metric == metric and low < report.value <= 1
    assert log(folder / "out")[-1][f"stored_{metric}"] == report.value
    assert not (folder / "out" / "state.pt").exists()
    model = open_model(folder / "out")
    if kind == "masked":
        prompt = model.tokenize("three three [MASK] three three three")
        guess = model.run(prompt.ids).logits[prompt.pieces.index("[MASK]")].argmax()
        assert model.from_ids([int(guess)]).pieces == ("three",)
    else:
        source, start = model.tokenize("three"), model.tokenize("drei")
        logits = model.run(source.ids, decoder_ids=start.ids[:1]).logits
        assert model.from_ids([int(logits[-1].argmax())]).pieces == ("drei",)


@pytest.mark.parametrize("kind", ["next", "segments"])
def test_models_of_bytes_learn(folder, kind):
    report, rows = train(plan(folder, KINDS[kind]), folder / "out"), log(folder / "out")
    assert report.metric == "bits_per_byte" and report.value < 5
    assert rows[1]["held_out"] < rows[0]["held_out"] < 8.5 and rows[0]["loss"] > rows[-2]["loss"]
    assert open_model(folder / "out").run([1, 2]).logits.shape == (2, 256)


# --- stops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_training_goes_on_to_the_same_weights(folder, kind):
    recipe = {"steps": 6, "dropout": 0.1, "save_every": 2}
    if kind == "classes":
        recipe |= {"token_dropout": 0.2, "label_smoothing": 0.1}
    whole, stopped = train_twice(plan(folder, KINDS[kind], recipe=recipe), folder, 3, 5)
    assert whole.figures == stopped.figures


def test_a_training_is_continued_only_as_it_was_begun(folder):
    start, out = plan(folder, KINDS["next"], recipe={"steps": 4}), folder / "out"
    interrupt(start, out, 2)
    with pytest.raises(HgvizError, match="other settings"):
        train(plan(folder, KINDS["next"], recipe={"steps": 4, "rate": 1e-3}), out)
    train(start, out)
    with pytest.raises(HgvizError, match="already holds a trained model"):
        train(start, out)
    (out / "state.pt").write_bytes(b"not a snapshot")
    with pytest.raises(HgvizError, match=r"state\.pt is damaged.*Delete it") as caught:
        train(start, out)
    assert "\n" not in str(caught.value)


# --- training files -------------------------------------------------------------------------------

WRONG = [
    ("next", {"date": {}}, "unknown key date"),
    ("next", {"data": {"train": ["none.txt"]}}, "cannot read"),
    ("next", {"recipe": {"stages": [{"start": 0, "length": 9999, "batch": 1}]}}, "is too short"),
    ("next", {"model": {"vocab_size": 99}}, "99 needs a tokenizer"),
    ("masked", {"tokenizer": None}, r"needs a tokenizer with \[MASK\]"),
    ("pairs", {"model": {"form": "decoder", "cross": True}}, "cannot be trained alone"),
    ("classes", {"recipe": {"dropout": 1.5}}, r"recipe\.dropout: Expected float < 1\.0"),
    ("classes", {"data": {"valid": "other.tsv"}}, "line 2, column label: the label 'cid' is unkn"),
    ("masked", {"data": {"valid": "binary.txt"}}, "is not UTF-8 text"),
]


def test_a_wrong_training_file_is_one_clear_line(folder):
    (folder / "other.tsv").write_text("sentence\tlabel\ncid and ann\tcid\n")
    (folder / "binary.txt").write_bytes(b"one \xff")
    for kind, changes, message in WRONG:
        with pytest.raises(HgvizError, match=message) as caught:
            train(plan(folder, KINDS[kind], **changes), folder / "new" / "out")
        assert "\n" not in str(caught.value) and not (folder / "new").exists()


# --- whole texts ----------------------------------------------------------------------------------


def flat_hourglass():
    """A model whose answers are those of its last bias, whatever it reads."""
    model = parse_config({"vocab_size": 256, "d_model": 8, "n_heads": 2, "hierarchy": "1@1"})
    model = model.build().eval()
    torch.nn.init.zeros_(model.lm_head.weight)
    torch.nn.init.zeros_(model.lm_head.bias)
    return model


def test_bits_per_byte_are_those_of_every_byte_but_the_first():
    model, text = flat_hourglass(), torch.randint(0, 256, (57,), dtype=torch.uint8)
    assert bits_per_byte(model, text, 10) == pytest.approx(8.0, abs=1e-5)
    torch.nn.init.normal_(model.lm_head.bias)  # then bits depend on which bytes are predicted
    surprise = -torch.log_softmax(model.lm_head.bias, -1)[text[1:].long()].mean() / math.log(2)
    for length in (5, 8, 56, 100):
        assert bits_per_byte(model, text, length) == pytest.approx(surprise.item(), rel=1e-5)
    assert bits_per_byte(model, text[:1], 5) == 0


def test_a_language_model_over_pieces_is_measured_in_bits_per_byte(tmp_path):
    write_data(tmp_path)
    model = {"family": "gpt2", "d_model": 16, "n_heads": 2, "n_layers": 1, "max_positions": 32}
    tables = {**KINDS["next"], "model": model, "tokenizer": {"kind": "bpe", "size": 300}}
    start = begin(plan(tmp_path, tables), tmp_path)
    ids, size = start.tokenizer.encode_stream((tmp_path / "b.txt").read_bytes(), tmp_path / "b.txt")
    with torch.no_grad():  # equal odds for every piece
        start.model.embed.token.weight.zero_()
    bits = start.objective.measure(start.model.eval(), True)["bits_per_byte"]
    assert bits == pytest.approx((len(ids) - 1) * math.log2(start.tokenizer.size) / size, rel=1e-5)


def test_the_rate_warms_up_and_falls_to_its_floor():
    recipe = Recipe(steps=100, warmup=10, floor=0.1)
    cosine = 0.1 + 0.9 * 0.5 * (1 + math.cos(0.1 * math.pi))
    assert schedule(0.0, 0, recipe) == pytest.approx(0.1)
    assert schedule(0.1, 10, recipe) == pytest.approx(cosine)
    assert schedule(1.0, 100, recipe) == pytest.approx(0.1)


def test_masked_tokens_are_hidden_as_bert_hides_them():
    ids = torch.randint(10, 1000, (400, 50))
    ids[:, 0], ids[:, -1] = 2, 3
    read, targets = mask_tokens(ids, 4, 1000, (2, 3, 4), 0.15, torch.Generator().manual_seed(1))
    asked = targets != -100
    assert not asked[:, [0, -1]].any()
    assert torch.equal(targets[asked], ids[asked]) and torch.equal(read[~asked], ids[~asked])
    assert asked[:, 1:-1].double().mean().item() == pytest.approx(0.15, abs=0.01)
    assert (read[asked] == 4).double().mean().item() == pytest.approx(0.8, abs=0.03)
    assert (read[asked] == ids[asked]).double().mean().item() == pytest.approx(0.1, abs=0.03)


# --- hard-concrete gates --------------------------------------------------------------------------

LOG_A = torch.tensor([-3.0, -1.0, 0.0, 0.7, 2.5], dtype=torch.float64)


def gates_of(log_a, cost=1.0):
    gates = HardConcrete(len(log_a), cost)
    gates.log_a = torch.nn.Parameter(log_a.clone())
    return gates


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def beyond(log_a, t):
    """P(g > t) of 0 <= t < 1: the share of u whose s, stretched, is above t."""
    s = (t + 0.1) / 1.2
    return torch.sigmoid(log_a - 0.33 * math.log(s / (1 - s)))


def test_a_drawn_gate_is_0_and_1_as_often_as_its_distribution_says():
    count, grid = 100_000, (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    drawn = gates_of(LOG_A).draw(uniform(count, len(LOG_A)))
    assert ((drawn >= 0) & (drawn <= 1)).all()
    closed, opened = 1 - beyond(LOG_A, 0.0), torch.sigmoid(LOG_A - 0.33 * math.log(11))
    for share, wanted in (((drawn == 0), closed), ((drawn == 1), opened)):
        error = (wanted * (1 - wanted) / count).sqrt()
        assert ((share.double().mean(0) - wanted).abs() < 4 * error).all()
    # its mean is the integral over its distribution
    logits = 0.33 * torch.logit((grid + 0.1) / 1.2)
    wanted = torch.stack([torch.sigmoid(one - logits).mean() for one in LOG_A])
    assert ((drawn.mean(0) - wanted).abs() < 4 * drawn.std(0) / count**0.5).all()


def test_what_an_open_gate_costs_is_the_probability_that_it_is_not_0():
    wanted = 0.3 * beyond(LOG_A, 0.0).sum()
    assert torch.allclose(gates_of(LOG_A, 0.3).penalty(), wanted, rtol=1e-14, atol=0)
    penalty = gates_of(torch.zeros(1)).penalty().item()
    assert math.isclose(penalty, 1 / (1 + math.exp(-0.7913)), rel_tol=1e-4)


def test_at_test_time_a_gate_is_0_up_to_minus_ln_11_and_1_from_ln_11():
    edge = math.log(11)
    ends = [-9, -edge - 1e-9, -edge + 1e-6, 0.0, edge - 1e-6, edge + 1e-9, 9]
    final = gates_of(torch.tensor(ends).double()).final()
    assert final[:2].tolist() == [0, 0] and final[-2:].tolist() == [1, 1]
    assert ((final[2:5] > 0) & (final[2:5] < 1)).all() and final[3].item() == pytest.approx(0.5)


def test_the_slope_of_a_drawn_gate_is_its_central_difference():
    gates = gates_of(LOG_A)
    assert torch.autograd.gradcheck(lambda _: gates.draw(uniform(5, seed=3)), gates.log_a)


# --- gates that are learned, and heads that stay off ----------------------------------------------

PLANTED = {
    "vocab_size": 256, "d_model": 8, "n_heads": 4, "n_layers": 1, "d_ff": 8, "form": "encoder",
    "goal": "classes", "labels": ["a", "b"], "pooler": "none", "positions": "none",
    "norm_first": True,
}  # fmt: skip
SOLVES, INTERFERES = HeadId(0, 1), HeadId(0, 2)
GATES = {"method": "gates", "lambda": 0.05}
TABLES = {
    "model": {"from": "model"},
    "data": {"train": ["train.tsv"], "valid": "dev.tsv"},
    "recipe": {"steps": 100, "batch": 32, "warmup": 5, "seed": 1, "threads": 1,
               "evaluate_every": 1000},
}  # fmt: skip


def plant(folder):
    """A classifier of bytes whose head 0.1 tells a from b; 0.2 is swayed by c and d, which mean
    nothing, and what the others give is never read."""
    model = make_transformer(**PLANTED)
    model.requires_grad_(False)
    for name, parameter in model.named_parameters():
        parameter.fill_(float("ln" in name and name.endswith("weight")))
    pair = torch.tensor([1.0, -1.0], dtype=torch.float64)
    embed, attention = model.embed.token.weight, model.middle["0"].attn
    for letters, first in (("ab", 0), ("cd", 2), (">", 4)):
        for sign, letter in zip((1, -1), letters, strict=False):
            embed[ord(letter), first : first + 2] = sign * pair
    # every head attends to all tokens alike: a value in its first row, written by its first column
    for head, reads, writes in ((0, 0, 4), (1, 0, 6), (2, 2, 6), (3, 2, 4)):
        attention.v.weight[2 * head, reads : reads + 2] = pair
        attention.o.weight[writes : writes + 2, 2 * head] = 4 * pair
    model.head.classifier.weight[0, 6:] = pair
    model.head.classifier.weight[1, 6:] = -pair
    save(folder, model.config, model.state_dict())


def write_rows(folder):
    """Texts of one a or b, which is their label, among letters that say nothing."""
    dice = random.Random(0)
    for name, count in (("train", 160), ("dev", 80)):
        rows = ["text\tlabel"]
        for _ in range(count):
            letters = [label := dice.choice("ab"), *dice.choices("cd", k=5)]
            dice.shuffle(letters)
            rows.append(f">{''.join(letters)}\t{label}")
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n")


@pytest.fixture
def planted(tmp_path):
    plant(tmp_path / "model")
    write_rows(tmp_path)
    return tmp_path


def gates_file(folder):
    return json.loads((folder / "gates.json").read_text())


def test_gates_keep_the_head_that_solves_the_task(planted):
    recipe = {"steps": 150, "evaluate_every": 50}
    report = train(plan(planted, TABLES, gates=GATES, recipe=recipe), planted / "out")
    closed = {HeadId(0, 0), INTERFERES, HeadId(0, 3)}
    assert report.roles == {"open": {SOLVES}, "closed": closed} and report.value == 1
    content, spec = gates_file(planted / "out"), open_model(planted / "model").spec
    assert content["off"] == content["roles"]["closed"] == "0.0,0.2,0.3"
    assert content["models"] == [spec.digest, open_model(planted / "out").spec.digest]
    assert content["learned"]["gates"]["0.1"] > 0.5
    assert [row["held_out_heads"] for row in log(planted / "out")[1:-1]] == [2, 1, 1]


@pytest.fixture
def start_from(tmp_path):
    """A plan that goes on for three steps from a model of a kind."""
    write_data(tmp_path)

    def make(kind, gates=None, **model):
        tables = KINDS[kind]
        short = {"steps": 2, "evaluate_every": 2, "decay": 0.0}
        layers = {} if kind == "next" else {"n_layers": 2}
        train(plan(tmp_path, tables, model=layers, recipe=short), tmp_path / "model")
        keys = {**tables, "model": {"from": "model", **model}}
        return plan(tmp_path, keys, tokenizer=None, gates=gates, recipe={**short, "steps": 3})

    return make


@pytest.mark.parametrize("kind", ["next", "pairs"])
def test_heads_stay_off_in_every_kind_of_training(start_from, tmp_path, kind):
    train(start_from(kind, off="0.1,1.*"), tmp_path / "out")
    before, after = (read(tmp_path / name) for name in ("model", "out"))
    off = {HeadId(0, 1), *(HeadId(1, head) for head in before.config.layers[1].heads)}
    for layer in before.config.layers:
        name = layer.name + ("" if layer.role == "cross" else ".attn")
        for place, head in enumerate(layer.heads):
            shape = (len(layer.heads), -1)
            old, new = (found.tensors[f"{name}.v.weight"].float() for found in (before, after))
            columns = after.tensors[f"{name}.o.weight"].float().unflatten(1, shape)[:, place]
            is_on = HeadId(layer.index, head) not in off
            rows = (values.unflatten(0, shape)[place] for values in (old, new))
            assert torch.equal(*rows) != is_on and bool(columns.any()) == is_on


WRONG_GATES = [  # the tables gates and model
    ({"method": "subset", "lambda": 1}, {}, 'gates.method must be "gates"'),
    ({"method": "gates"}, {}, "missing key lambda"),
    ({**GATES, "lambda": float("nan")}, {}, r"gates\.lambda: Expected float > 0\.0"),
    (GATES, {"off": "0.*"}, "all heads are off"), (None, {"off": "7.1"}, r"no head 7\.1"),
    (None, {"off": ["0.1"]}, r"model\.off must be heads"),
]  # fmt: skip


def test_what_gates_cannot_be_is_one_clear_line(planted):
    for gates, model, message in WRONG_GATES:
        with pytest.raises(HgvizError, match=message) as caught:
            train(plan(planted, TABLES, gates=gates, model=model), planted / "out")
        assert "\n" not in str(caught.value)


CONTENT = '{"gates_version": 1, "heads": ["0.0"], "learned": {"gates": {}}, "models": []}'


def test_a_file_that_holds_no_gates_of_a_model_is_one_clear_line(planted):
    spec = open_model(planted / "model").spec
    for text, message in (
        (None, "cannot read"), ("{}", "contains no gates"), ("not json", "contains no gates"),
        (CONTENT.replace("1", "9"), "contains no gates"), (CONTENT, "to another model"),
    ):  # fmt: skip
        if text is not None:
            (planted / "gates.json").write_text(text)
        with pytest.raises(HgvizError, match=message) as caught:
            read_learned([planted], spec)
        assert "\n" not in str(caught.value)


def test_a_level_is_dropped_from_whole_texts_while_a_model_learns():
    model = make_hourglass(make_config(hierarchy="2@1 1@2 1@1"))
    heads, runs = TrainedHeads(model.config.layers), []
    forward = model.forward
    model.forward = lambda ids, run: (runs.append(run), forward(ids, run))[1]
    objective = SimpleNamespace(
        recipe=Recipe(steps=1, level_dropout=(0.4,), seed=2),
        loss=lambda model, step, done: (model(torch.zeros(200, 4, dtype=int)).sum(), 0.0),
    )
    heads.loss(objective, model, 0, 0.0)
    heads.loss(objective, model, 0, 0.0)  # the same step draws the same
    gates = runs[0].gates
    outer = [gates[layer.index] for layer in model.config.layers if not layer.level]
    own = [one for one in outer if (one != 1).any()]
    assert len(own) == 3 and all(torch.equal(one, own[0]) for one in own)  # pre.0, pre.1, post.0
    assert set(own[0].unique().tolist()) == {0, 1} and (own[0][:, :1] == own[0]).all()
    assert 0.3 < 1 - own[0].mean() < 0.5
    assert all(torch.equal(gates[at], runs[1].gates[at]) for at in gates)
    assert all((gates[layer.index] == 1).all() for layer in model.config.layers if layer.level)


# --- checkpoints that are trained on --------------------------------------------------------------

TOKENS = (
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
SHORT_RECIPE = {
    "steps": 6, "batch": 4, "rate": 1e-3, "warmup": 1, "threads": 1, "evaluate_length": 12,
    "stages": [{"start": 0.0, "length": 12, "batch": 4}],
}  # fmt: skip


def tokenizer(marks=("<pad>", "<s>", "</s>", "<unk>", "<mask>"), framed=True):
    names = {name: at for at, name in enumerate((*marks, *TOKENS))}
    made = Tokenizer(models.WordLevel(names, unk_token=marks[3]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(list(marks))
    if framed:
        made.post_processor = processors.TemplateProcessing(
            single=f"{marks[1]} $A {marks[2]}", special_tokens=[(marks[1], 1), (marks[2], 2)]
        )
    return made


def plan_of(folder, kind, name, recipe=None, gates=None, changes=None, words=None, **model):
    """A plan that goes on from a random model of transformers."""
    changes = {"id2label": {0: "against", 1: "for"}, **(changes or {})}
    write(folder / "theirs", kind, name, **changes)
    (words or tokenizer()).save(str(folder / "theirs" / "tokenizer.json"))
    is_classifier = model.get("goal", "") == "classes" or name.endswith("Classification")
    file = "pairs.tsv" if name.endswith("Generation") else "text.txt"
    file = "rows.tsv" if is_classifier else file
    for other, text in FILES.items():
        (folder / other).write_text(text)
    tables = {
        "model": {"from": "theirs", **model}, "data": {"train": [file], "valid": file},
        "recipe": {**SHORT_RECIPE, **(recipe or {})},
    }  # fmt: skip
    return plan(folder, tables, gates=gates)


def theirs(folder, name, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(transformers, name).from_pretrained(folder, **more).eval()


# --- models of transformers -----------------------------------------------------------------------


def test_a_model_becomes_a_classifier_that_transformers_opens(tmp_path):
    changes, recipe = {"id2label": {0: "x", 1: "y", 2: "z"}}, {"steps": 40, "rate": 3e-3}
    start = plan_of(
        tmp_path, "distilbert", "DistilBertModel", recipe, changes=changes, goal="classes"
    )
    made, begun = "DistilBertForSequenceClassification", begin(start, tmp_path)
    torch.manual_seed(0)  # new parameters are those that transformers draws
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


def test_a_language_model_goes_on_with_another_activation(tmp_path):
    name, recipe = "OPTForCausalLM", {"steps": 30, "store": "bfloat16"}
    start = plan_of(tmp_path, "opt", name, recipe, activations=["softmax", "ymish"])
    report = train(start, tmp_path / "ours")
    assert report.before["original"] != report.before["exchanged"]
    assert report.value < report.before["exchanged"]["bits_per_byte"]
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["hgviz"] == {"activations": ["softmax", "ymish"]}
    ours, dtype = open_model(tmp_path / "ours"), torch.bfloat16
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


CANNOT_TRAIN = [
    ("roberta", "RobertaForMaskedLM", {"goal": "next"}, {}, "it is bidirectional"),
    ("deberta-v2", "DebertaV2ForSequenceClassification", {"activations": "ymish"}, {},
     "cannot be replaced"),
    ("llama", "LlamaForCausalLM", {"goal": "classes"}, {"pad_token_id": None}, "no padding token"),
    ("llama", "LlamaForCausalLM", {}, {"vocab_size": 9}, "no embedding for the token"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "model", "changes", "why"), CANNOT_TRAIN)
def test_what_cannot_be_done_is_said_before_training(tmp_path, kind, name, model, changes, why):
    words = None
    if changes and "pad_token_id" in changes:  # a tokenizer that names no padding either
        words = tokenizer(("<s>", "<1>", "<2>", "<3>", "<4>"), framed=False)
    start = plan_of(tmp_path, kind, name, changes=changes, words=words, **model)
    with pytest.raises(HgvizError, match=why) as caught:
        train(start, tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ours").exists()
