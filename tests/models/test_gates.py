"""Gates that are learned in every kind of training, heads that stay off, and gates.json."""

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.importance import importance
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model
from hgviz.models.checkpoints import read, save
from hgviz.models.objectives import Recipe, TrainedHeads
from hgviz.models.pruning import remove_heads
from hgviz.models.training import read_learned, train
from tests.models.building import make_config, make_hourglass, make_transformer
from tests.models.trainings import KINDS, log, plan, train_twice, write_data

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


# --- the planted model ----------------------------------------------------------------------------


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


@pytest.mark.parametrize("freeze", [True, False])
def test_a_stopped_training_of_gates_goes_on_to_the_same_gates(planted, freeze):
    recipe = {"steps": 8, "dropout": 0.1, "save_every": 1}
    stopped = plan(planted, TABLES, gates={**GATES, "freeze": freeze}, recipe=recipe)
    train_twice(stopped, planted, 2, 5, files=("gates.json", "model.safetensors"))


def test_gates_depend_on_the_seed_alone_and_are_scores_of_a_study(planted):
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        train(
            plan(planted, TABLES, gates=GATES, recipe={"seed": seed, "steps": 60}), planted / name
        )
    one, again, two = (gates_file(planted / name) for name in ("one", "again", "two"))
    assert one == again and one["learned"] != two["learned"]

    model = open_model(planted / "model")
    measured = tasks.importance(tasks.trials_of(model, planted / "dev.tsv"), {"loss_change"})
    for _ in range(2):  # again: the same runs, not more of them
        learned = tasks.learned([planted / "one", planted / "two" / "gates.json"], model.spec)
        measured = tasks.with_learned(measured, learned)
    assert [len(one.runs) for one in measured.learned] == [2]
    assert measured.learned[0].note == "one (seed 1), two (seed 2)"
    gates, exact = (importance(measured, name) for name in ("gates", "loo"))
    assert gates.heads[int(np.argmin(gates.rank))] == SOLVES
    assert exact.least_needed[0] == INTERFERES and gates.rank[1] == exact.rank[1] == 1


# --- heads that stay off --------------------------------------------------------------------------


def test_heads_stay_off_while_a_model_is_fine_tuned_and_after(planted):
    start = plan(planted, TABLES, model={"off": "0.0, 0.2"}, recipe={"steps": 10, "rate": 1e-2})
    report = train(start, planted / "out")
    assert report.before["original"]["accuracy"] < report.before["pruned"]["accuracy"] == 1
    model = open_model(planted / "out")
    columns = model.module.middle["0"].attn.o.weight.unflatten(1, (4, 2))
    assert [bool(columns[:, head].any()) for head in range(4)] == [False, True, False, True]
    ids, off = model.tokenize(">accdc").ids, {HeadId(0, 0), INTERFERES}
    assert np.array_equal(model.run(ids).logits, model.run(ids, off=off).logits)
    before = open_model(planted / "model").run(ids, off=off).logits
    assert not np.array_equal(model.run(ids).logits, before)


def test_gates_of_heads_that_are_off_are_not_learned(planted):
    start = plan(planted, TABLES, model={"off": "0.1"}, gates=GATES, recipe={"steps": 4})
    report = train(start, planted / "out")
    (learned,) = read_learned([planted / "out"], open_model(planted / "out").spec)
    assert np.isnan(learned.runs).tolist() == [[False, True, False, False]]
    assert SOLVES not in report.roles["open"] | report.roles["closed"]
    assert "0.1" in gates_file(planted / "out")["off"].split(",")


# --- every kind of training -----------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", ["next", "masked", "pairs"])
def test_gates_are_learned_in_every_kind_of_training(start_from, tmp_path, kind):
    train(start_from(kind, {**GATES, "freeze": False}), tmp_path / "out")
    content = gates_file(tmp_path / "out")
    heads, values = (
        [*map(str, open_model(tmp_path / "out").spec.heads)],
        content["learned"]["gates"],
    )
    assert content["heads"] == heads == [*values]
    # a layer's heads are not treated alike, so each gate has met its own head
    assert len({*values.values()}) > len(heads) // 2


@pytest.mark.parametrize("kind", ["next", "masked", "pairs"])
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


@pytest.mark.parametrize("kind", ["next", "masked", "pairs"])
def test_a_smaller_checkpoint_is_trained_with_an_empty_layer_too(start_from, tmp_path, kind):
    start, whole = start_from(kind, {**GATES, "freeze": False}), read(tmp_path / "model")
    off = {HeadId(0, 1), *(HeadId(1, head) for head in whole.config.layers[1].heads)}
    small = remove_heads(whole, frozenset(off))
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).unlink()
    save(tmp_path / "model", small.config, small.tensors)
    assert train(start, tmp_path / "out").before["original"]
    heads = {*open_model(tmp_path / "out").spec.heads}
    assert HeadId(0, 0) in heads and not off & heads
    assert heads == {*open_model(tmp_path / "model").spec.heads}


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "model", "message"),
    [
        ({"method": "subset", "lambda": 1}, {}, 'gates.method is "gates"'),
        ({"method": "gates"}, {}, "missing required field `lambda`"),
        ({"lambda": 0.1}, {}, "missing required field `method`"),
        ({**GATES, "keep": 3}, {}, "unknown field `keep`"),
        ({**GATES, "lambda": 0.0}, {}, r"> 0\.0 - at `\$\.gates\.lambda`"),
        ({**GATES, "lambda": float("nan")}, {}, r"> 0\.0 - at `\$\.gates\.lambda`"),
        ({**GATES, "lambda": float("inf")}, {}, r"at `\$\.gates\.lambda`"),
        ({**GATES, "rate": -1}, {}, r"at `\$\.gates\.rate`"),
        (GATES, {"off": "0.*"}, "for no heads"),
        (None, {"off": "7.1"}, r"no head 7\.1"),
        (None, {"off": "seven"}, "'seven' does not name a head"),
        (None, {"off": ["0.1"]}, r"model\.off names heads as"),
    ],
)
def test_what_gates_cannot_be_is_one_clear_line(planted, gates, model, message):
    with pytest.raises(HgvizError, match=message) as caught:
        train(plan(planted, TABLES, gates=gates, model=model), planted / "out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("changes", [{"gates": GATES}, {"model": {"off": "0.1"}}])
def test_gates_and_heads_off_are_of_a_model_that_is_there(tmp_path, changes):
    with pytest.raises(HgvizError, match=r"model\.from"):
        plan(tmp_path, {**TABLES, "model": {"family": "bert"}}, **changes)


CONTENT = '{"gates_version": 1, "heads": ["0.0"], "learned": {"gates": {}}, "models": []}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read"),
        ("{}", "holds no gates"),
        ("not json", "holds no gates"),
        (CONTENT.replace("1", "9"), "holds no gates"),
        (CONTENT, "of another model"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_gates_of_a_model_is_one_clear_line(planted, text, message):
    if text is not None:
        (planted / "gates.json").write_text(text)
    with pytest.raises(HgvizError, match=message) as caught:
        read_learned([planted], open_model(planted / "model").spec)
    assert "\n" not in str(caught.value)


# --- levels that are dropped ----------------------------------------------------------------------


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
