"""Gates that are learnt in every kind of training, their closed forms, and gates.json."""

import itertools
import json
import math

import msgspec
import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.importance import importance
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model
from hgviz.models.formats.checkpoint import save
from hgviz.models.formats.readers import read
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.models.surgery import removal
from hgviz.models.training import read_plan, train
from hgviz.models.training.gates import (
    Causal,
    Concrete,
    Subset,
    hard_concrete,
    heat,
    odds_of_open,
    settled_concrete,
    subset,
    top,
)
from hgviz.models.training.gating import Gated, asked, gated
from hgviz.models.training.learned import read_learned
from hgviz.models.training.plan import Gating
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    write_checkpoint,
    write_transformer,
)
from tests.models.folders import own_bert
from tests.models.training.planting import (
    CAUSAL,
    INTERFERES,
    PLANTED,
    SOLVES,
    gates_of,
    plan,
    train_twice,
)
from tests.models.training.test_pairs import PLAN as PAIRS

# --- what they find -------------------------------------------------------------------------------


def test_the_planted_model_is_what_it_is_meant_to_be(planted):
    model = open_model(planted / "model")
    right = []
    for line in (planted / "dev.tsv").read_text().splitlines()[1:]:
        text, label = line.split("\t")
        ids = model.tokenize(text).ids
        whole, alone = (
            model.run(ids, off=off).logits.argmax()
            for off in ((), {head for head in model.spec.heads if head != SOLVES})
        )
        right.append((model.spec.labels[whole] == label, model.spec.labels[alone] == label))
    shares = np.mean(right, 0)
    assert shares[0] < 0.9
    assert shares[1] == 1


def test_hard_concrete_gates_keep_the_head_that_solves_the_task(planted, tmp_path):
    start = plan(planted, {"method": "gates", "lambda": 0.05}, recipe={"steps": 150})
    report = train(start, tmp_path / "out")
    assert report.roles["closed"] == {HeadId(0, 0), INTERFERES, HeadId(0, 3)}
    assert report.value == 1
    told = gates_of(tmp_path / "out")
    assert told["off"] == "0.0,0.2,0.3"
    assert told["learned"]["gates"]["0.1"] > 0.5


@pytest.mark.parametrize("freeze", [True, False])
def test_a_subset_of_one_is_the_head_that_solves_the_task(planted, tmp_path, freeze):
    gates = {"method": "subset", "keep": 1, "freeze": freeze}
    report = train(plan(planted, gates), tmp_path / "out")
    assert report.roles["closed"] == {HeadId(0, 0), INTERFERES, HeadId(0, 3)}
    assert report.value == 1
    (learned,), off = read_learned([tmp_path / "out"], open_model(tmp_path / "out").spec)
    assert (learned.method, learned.runs.argmax(), off) == ("subset", 1, report.roles["closed"])


def test_causal_gates_tell_what_facilitates_interferes_and_does_not_matter(planted, tmp_path):
    report = train(plan(planted, CAUSAL), tmp_path / "out")
    spec = open_model(planted / "model").spec
    learned, off = read_learned([tmp_path / "out" / "gates.json"], spec)
    assert [one.method for one in learned] == ["causal-on", "causal-off"]
    on, pushed_off = (one.runs[0] for one in learned)
    assert pushed_off[1] > 0.8
    assert on[2] < 0.2
    for head in (0, 3):
        assert on[head] > 0.8
        assert pushed_off[head] < 0.2
    assert off == {INTERFERES}
    assert report.roles == {
        "facilitating": {SOLVES}, "interfering": {INTERFERES},
        "irrelevant": {HeadId(0, 0), HeadId(0, 3)},
    }  # fmt: skip
    figures = gates_of(tmp_path / "out")["figures"]
    assert figures["causal-on"]["accuracy"] == figures["causal-off"]["accuracy"] == 1
    assert report.value == report.before["original"]["accuracy"] < 0.9


def test_causal_gates_leave_the_weights_as_they_are(planted, tmp_path):
    train(plan(planted, CAUSAL, recipe={"steps": 6}), tmp_path / "out")
    before, after = (open_model(one).module.state_dict()
                     for one in (planted / "model", tmp_path / "out"))  # fmt: skip
    assert all(torch.equal(before[name], after[name]) for name in before)


# --- how they are trained -------------------------------------------------------------------------

EVERY = ({"method": "gates", "lambda": 0.05}, {"method": "subset", "keep": 2}, CAUSAL,
         {"method": "gates", "lambda": 0.05, "freeze": False})  # fmt: skip


@pytest.mark.parametrize("gates", EVERY, ids=lambda one: " ".join(map(str, one.values())))
def test_a_stopped_training_of_gates_goes_on_to_the_same_gates(planted, tmp_path, gates):
    one = plan(planted, gates, recipe={"steps": 8, "dropout": 0.1, "save_every": 1})
    train_twice(one, tmp_path, 2, 5, files=("gates.json", "model.safetensors"))


def test_gates_depend_on_the_seed_alone(planted, tmp_path):
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        train(plan(planted, EVERY[0], {"steps": 6, "seed": seed}), tmp_path / name)
    one, again, two = (gates_of(tmp_path / name) for name in ("one", "again", "two"))
    assert one == again
    assert one["learned"] != two["learned"]
    spec = open_model(planted / "model").spec
    (learned,), off = read_learned([tmp_path / name for name in ("one", "two")], spec)
    assert learned.runs.shape == (2, 4)
    assert learned.note == "one (seed 1), two (seed 2)"
    assert off == frozenset()


def test_the_log_says_how_many_heads_are_not_closed(planted, tmp_path):
    train(plan(planted, EVERY[1], {"steps": 4, "evaluate_every": 2}), tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert [one["held_out_heads"] for one in lines if "held_out" in one] == [2, 2]


# --- gates are factors of columns -----------------------------------------------------------------

MODELS = {
    "hourglass": make_hourglass(make_config(hierarchy="1@1 1@2 1@1")),
    "encoder": make_transformer(form="encoder", goal="classes", labels=["a", "b"]),
    "both": make_transformer(form="encoder-decoder"),
}


def under(model, off=frozenset(), factors=None):
    """Logits of a pass with gates of these factors, other heads' 1."""
    texts = Tokens(torch.arange(18).view(2, 9), source=Tokens(torch.arange(14).view(2, 7)))
    layers = model.config.layers
    gates = {
        layer.index: torch.tensor(
            [[factors.get(HeadId(layer.index, head), 1.0) for head in layer.heads]] * 2,
            dtype=torch.float64,
        )
        for layer in (layers if factors else ())
    }
    with torch.inference_mode():
        return model(texts, Run(frozenset(off), gates=gates))


def heads_of(model):
    return [HeadId(layer.index, head) for layer in model.config.layers for head in layer.heads]


@pytest.mark.parametrize("name", MODELS)
def test_gates_of_0_and_1_are_a_mask(name):
    model = MODELS[name]
    some = heads_of(model)[1::2]
    gap = under(model, some) - under(model, factors=dict.fromkeys(some, 0.0))
    assert gap.abs().max() <= 1e-12
    assert (under(model, some) - under(model)).abs().max() > 1e-3


class Task:
    """An objective that is as good as any."""

    metric, per_epoch = "none", 1.0

    def loss(self, model, step, done):
        loss = model(torch.arange(18).view(2, 9)).square().sum()
        return loss, loss.item()


@pytest.mark.parametrize("name", MODELS)
def test_gates_are_folded_into_the_columns_of_w_o(name):
    model, heads = MODELS[name], heads_of(MODELS[name])
    off, table = frozenset(heads[:1]), Gating("gates", pressure=0.1)
    objective = gated(Task(), model.config, off, 0, table)
    with torch.no_grad():
        objective.gates.values.copy_(torch.linspace(-3, 3, len(heads) - 1))
    settled = settled_concrete(objective.gates.wide[0]).tolist()
    assert min(settled) == 0
    assert max(settled) == 1
    gates = under(model, factors=dict(zip(heads, [0.0, *settled], strict=True)))
    before = {name: one.clone() for name, one in model.state_dict().items()}
    model.load_state_dict(objective.folded(before))
    folded = under(model)
    model.load_state_dict(before)
    assert (gates - folded).abs().max() <= 1e-12


@pytest.mark.parametrize("name", MODELS)
def test_every_pass_of_a_model_can_be_asked_for_heads_off(name):
    model = MODELS[name]
    texts = Tokens(torch.arange(18).view(2, 9), source=Tokens(torch.arange(14).view(2, 7)))
    given = texts if name == "both" else texts.ids
    some = heads_of(model)[1::2]
    with torch.inference_mode():
        expected, whole = under(model, some), under(model)
        with asked(model, lambda count: Run(frozenset(some))):
            assert torch.equal(model(given), expected)
        assert torch.equal(model(given), whole)


# --- heads that stay off --------------------------------------------------------------------------


def test_no_gradient_reaches_the_weights_of_heads_that_are_off():
    model = make_transformer(form="encoder", goal="classes", labels=["a", "b"])
    layers, off = model.config.layers, frozenset({HeadId(0, 1), HeadId(1, 0)})
    Gated(Task(), model.config, off, 0).loss(model, 0, 0.0)[0].backward()
    for layer in layers:
        attention = model.middle[str(layer.index)].attn
        for head in (0, 1):
            rows = slice(6 * head, 6 * head + 6)
            slopes = [getattr(attention, part).weight.grad[rows] for part in "qkv"]
            slopes.append(attention.o.weight.grad[:, rows])
            assert all(one.any() != (HeadId(layer.index, head) in off) for one in slopes)


def test_heads_stay_off_while_a_model_is_fine_tuned_and_after(planted, tmp_path):
    start = plan(planted, None, {"steps": 10, "rate": 1e-2}, off="0.0, 0.2")
    report = train(start, tmp_path / "out")
    assert report.before["original"]["accuracy"] < report.before["pruned"]["accuracy"] == 1
    model = open_model(tmp_path / "out")
    columns = model.module.middle["0"].attn.o.weight.unflatten(1, (4, 2))
    assert [bool(columns[:, head].any()) for head in range(4)] == [False, True, False, True]
    ids = model.tokenize(">accdc").ids
    off = {HeadId(0, 0), INTERFERES}
    assert np.array_equal(model.run(ids).logits, model.run(ids, off=off).logits)
    theirs = open_model(planted / "model")
    assert not np.array_equal(model.run(ids).logits, theirs.run(ids, off=off).logits)


def test_a_subset_is_of_the_heads_that_are_on(planted, tmp_path):
    start = plan(planted, {"method": "subset", "keep": 1}, off="0.0")
    report = train(start, tmp_path / "out")
    assert report.roles == {"open": {SOLVES}, "closed": {INTERFERES, HeadId(0, 3)}}


def test_gates_of_heads_that_are_off_are_not_learnt(planted, tmp_path):
    gates = {"method": "subset", "keep": 1}
    report = train(plan(planted, gates, off="0.1"), tmp_path / "out")
    spec = open_model(tmp_path / "out").spec
    (learned,), off = read_learned([tmp_path / "out"], spec)
    assert np.isnan(learned.runs).tolist() == [[False, True, False, False]]
    assert SOLVES in off
    assert off == report.roles["closed"] | {SOLVES}
    assert len(off) == 3


@pytest.mark.parametrize("kept", [[[0], [0, 1]], [[1], []]])
def test_a_checkpoint_with_fewer_heads_is_fine_tuned_as_it_is(planted, tmp_path, kept):
    keys = {**PLANTED, "d_model": 12, "n_heads": 2, "n_layers": 2, "kept": kept}
    write_transformer(tmp_path / "model", **keys, dtype=torch.float32)
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_bytes((planted / f"{name}.tsv").read_bytes())
    train(plan(tmp_path, None, {"steps": 4, "rate": 1e-2}), tmp_path / "out")
    spec = open_model(tmp_path / "out").spec
    assert [list(layer.heads) for layer in spec.layers] == kept
    gates = {"method": "gates", "lambda": 0.05, "freeze": False}
    train(plan(tmp_path, gates, {"steps": 4}), tmp_path / "gated")
    assert gates_of(tmp_path / "gated")["heads"] == list(map(str, spec.heads))


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "model", "message"),
    [
        ({"method": "gate"}, {}, "no method 'gate'; methods are gates, subset and causal"),
        ({"method": "gates"}, {}, r"gates\.lambda is a number above 0"),
        ({"method": "causal", "lambda": float("nan")}, {}, r"gates\.lambda is a number above 0"),
        ({"method": "gates", "lambda": float("inf")}, {}, r"gates\.lambda is a number above 0"),
        ({"method": "gates", "lambda": 0.1, "keep": 3}, {}, r"gates\.keep does not go with"),
        ({"method": "subset"}, {}, r"needs gates\.keep"),
        ({"method": "subset", "keep": 2, "lambda": 0.1}, {}, r"lambda does not go with"),
        ({"method": "subset", "keep": 5}, {}, r"so few heads: 4 are on and gates\.keep is 5"),
        ({"method": "subset", "keep": 2}, {"off": "0.0,0.1,0.2"}, "1 are on and"),
        ({"method": "causal", "lambda": 1}, {"off": "0.*"}, "for no heads"),
        ({"method": "causal", "lambda": 1, "freeze": False}, {}, "stays as it is"),
        ({"method": "subset", "keep": 2, "rate": -1}, {}, r"gates\.rate is a number above 0"),
        ({"method": "subset", "keep": 2, "temperature": 1}, {}, "unknown field `temperature`"),
        ({"keep": 2}, {}, "missing required field `method`"),
        (None, {"off": "7.1"}, r"no head 7\.1"),
        (None, {"off": "seven"}, "'seven' does not name a head"),
        (None, {"off": ["0.1"]}, r"model\.off names heads as"),
    ],
)
def test_what_gates_cannot_be_is_one_clear_line(planted, tmp_path, gates, model, message):
    with pytest.raises(HgvizError, match=message) as caught:
        train(plan(planted, gates, **model), tmp_path / "out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("table", ['[gates]\nmethod = "subset"\nkeep = 2\n', ""])
def test_gates_and_heads_off_are_of_a_model_that_is_there(tmp_path, table):
    text = '[model]\nfamily = "bert"\n[data]\ntrain = ["a"]\nvalid = "b"\n[recipe]\nsteps = 1\n'
    text = text.replace("[data]", "[data]" if table else 'off = "0.1"\n[data]')
    (tmp_path / "plan.toml").write_text(text + table)
    with pytest.raises(HgvizError, match=r"model\.from"):
        read_plan(tmp_path / "plan.toml")


# --- gates.json -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gates", [CAUSAL, {"method": "gates", "lambda": 0.05}])
def test_learnt_gates_are_scores_of_a_study(planted, tmp_path, gates):
    for seed in (1, 2):
        recipe = {"seed": seed, "steps": 60}
        train(plan(planted, gates, recipe), tmp_path / str(seed))
    model = open_model(planted / "model")
    trials = tasks.trials_of(model, planted / "dev.tsv")
    measured = tasks.importance(trials, {"loss_change"})
    for _ in range(2):  # again: the same runs, not more of them
        both = tasks.learned([tmp_path / "1", tmp_path / "2" / "gates.json"], model.spec)
        measured = tasks.with_learned(measured, both)
    assert {len(one.runs) for one in measured.learned} == {2}
    found, exact = (importance(measured, one) for one in (gates["method"], "loo"))
    assert found.heads[int(np.argmin(found.rank))] == SOLVES
    assert exact.least[0] == INTERFERES
    assert found.rank[1] == exact.rank[1] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "holds no gates"),
        ("not json", "holds no gates"),
        ('{"gates_version": 9, "method": "gates", "heads": [], "off": "", "learned": {}, '
         '"models": []}', "newer version"),
        ('{"gates_version": 1, "method": "gates", "heads": ["0.0"], "off": "", "learned": {}, '
         '"models": []}', "of another model"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_gates_of_a_model_is_one_clear_line(planted, tmp_path, text, message):
    (tmp_path / "gates.json").write_text(text)
    with pytest.raises(HgvizError, match=message) as caught:
        read_learned([tmp_path], open_model(planted / "model").spec)
    assert "\n" not in str(caught.value)


def test_gates_that_are_not_there_are_one_clear_line(planted, tmp_path):
    with pytest.raises(HgvizError, match="cannot read"):
        read_learned([tmp_path], open_model(planted / "model").spec)


# --- other kinds of models ------------------------------------------------------------------------


TEXT = "the cats sat , un the cat .\n" * 60
STAGES = [{"start": 0.0, "length": 12, "batch": 4}]
BYTES = {"vocab_size": 256, "hierarchy": "1@1 1@2 1@4 1@2 1@1", "positions": "relative"}
GATES = ({"method": "gates", "lambda": 0.1, "freeze": False}, {"method": "subset", "keep": 3},
         {"method": "causal", "lambda": 0.1})  # fmt: skip


def hourglass_in(folder):
    write_checkpoint(folder / "model", dtype=torch.float32, **BYTES)
    return ["text.txt"], "text.txt"


def masked_in(folder):
    own_bert(folder / "model", goal="masked")
    return ["text.txt"], "text.txt"


def pairs_in(folder):
    (folder / "rows.tsv").write_text("source\ttarget\n" + "one two\teins zwei\ntwo\tzwei\n" * 20)
    text = PAIRS.replace("train.tsv", "rows.tsv").replace("dev.tsv", "rows.tsv")
    (folder / "first.toml").write_text(text.replace("steps = 40", "steps = 2"))
    train(read_plan(folder / "first.toml"), folder / "model")
    return ["rows.tsv"], "rows.tsv"


def plan_of(folder, make, gates=None, **model):
    """Three steps from what make wrote into folder/model."""
    (folder / "text.txt").write_text(TEXT)
    train, valid = make(folder)
    data = {
        "model": {"from": "model", **model},
        "data": {"train": train, "valid": valid},
        "recipe": {"steps": 3, "batch": 4, "rate": 1e-2, "decay": 0.0, "stages": STAGES,
                   "evaluate_every": 2, "evaluate_length": 12},
        **({"gates": gates} if gates else {}),
    }  # fmt: skip
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(data))
    return read_plan(folder / "plan.toml")


@pytest.mark.parametrize("gates", GATES, ids=[one["method"] for one in GATES])
@pytest.mark.parametrize("make", [hourglass_in, masked_in, pairs_in])
def test_gates_are_learned_in_every_kind_of_training(tmp_path, make, gates):
    train(plan_of(tmp_path, make, gates), tmp_path / "out")
    told = json.loads((tmp_path / "out" / "gates.json").read_text())
    heads = [str(head) for head in open_model(tmp_path / "out").spec.heads]
    assert told["heads"] == heads
    assert all(list(values) == heads for values in told["learned"].values())
    # a layer's heads are not treated alike, so each gate has met its own head
    assert all(len({*values.values()}) > len(heads) // 2 for values in told["learned"].values())


@pytest.mark.parametrize("make", [hourglass_in, masked_in, pairs_in])
def test_heads_stay_off_in_every_kind_of_training(tmp_path, make):
    train(plan_of(tmp_path, make, off="0.1,1.*"), tmp_path / "out")
    before, after = (read(tmp_path / name) for name in ("model", "out"))
    off = {HeadId(0, 1), *(HeadId(1, head) for head in before.config.layers[1].heads)}
    for layer, name in ((one, one.name) for one in before.config.layers):
        name += "" if layer.role == "cross" else ".attn"
        for place, head in enumerate(layer.heads):
            values, columns = (
                [one.tensors[f"{name}.{part}.weight"].float() for one in (before, after)]
                for part in "vo"
            )
            rows = [one.unflatten(0, (len(layer.heads), -1))[place] for one in values]
            there = HeadId(layer.index, head) not in off
            assert torch.equal(*rows) != there
            assert bool(columns[1].unflatten(1, (len(layer.heads), -1))[:, place].any()) == there


@pytest.mark.parametrize("make", [hourglass_in, masked_in, pairs_in])
def test_a_smaller_checkpoint_is_trained_with_an_empty_layer_too(tmp_path, make):
    start = plan_of(tmp_path, make, GATES[0])
    found = read(tmp_path / "model")
    off = {HeadId(0, 1), *(HeadId(1, head) for head in found.config.layers[1].heads)}
    one = removal.smaller(found, frozenset(off))
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).unlink()
    save(tmp_path / "model", one.config, one.tensors)
    report = train(start, tmp_path / "out")
    assert report.before["original"]
    heads = open_model(tmp_path / "out").spec.heads
    assert set(heads) == set(open_model(tmp_path / "model").spec.heads)
    assert HeadId(0, 0) in heads
    assert not off & set(heads)


# --- closed forms ---------------------------------------------------------------------------------


SEVERAL = torch.tensor([-3.0, -1.0, 0.0, 0.7, 2.5], dtype=torch.float64)
TEMPERATURES = (1e3, 10.0, 1.0, 0.1, 1e-3, 1e-8)


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def beyond(log_a, t):
    """P(g > t) of 0 <= t < 1: the share of u whose s, stretched, is above t."""
    s = (t + 0.1) / 1.2
    return torch.sigmoid(log_a - 0.33 * math.log(s / (1 - s)))


# --- hard-concrete gates --------------------------------------------------------------------------


def test_a_drawn_gate_is_0_and_1_as_often_as_its_distribution_says():
    count = 100_000
    drawn = hard_concrete(SEVERAL, uniform(count, len(SEVERAL)))
    assert ((drawn >= 0) & (drawn <= 1)).all()
    closed, opened = 1 - beyond(SEVERAL, 0.0), torch.sigmoid(SEVERAL - 0.33 * math.log(11))
    for found, wanted in (((drawn == 0), closed), ((drawn == 1), opened)):
        error = (wanted * (1 - wanted) / count).sqrt()
        assert ((found.double().mean(0) - wanted).abs() < 4 * error).all()


def test_the_mean_of_a_drawn_gate_is_the_integral_over_its_distribution():
    count, grid = 100_000, (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    drawn = hard_concrete(SEVERAL, uniform(count, len(SEVERAL), seed=1))
    wanted = torch.stack([
        torch.sigmoid(one - 0.33 * torch.logit((grid + 0.1) / 1.2)).mean() for one in SEVERAL
    ])  # fmt: skip
    assert ((drawn.mean(0) - wanted).abs() < 4 * drawn.std(0) / count**0.5).all()


def test_what_an_open_gate_costs_is_the_probability_that_it_is_not_0():
    assert torch.allclose(odds_of_open(SEVERAL), beyond(SEVERAL, 0.0), rtol=1e-14, atol=0)
    assert math.isclose(odds_of_open(torch.tensor(0.0)).item(), 1 / (1 + math.exp(-0.7913)),
                        rel_tol=1e-4)  # fmt: skip
    table = Gating("gates", pressure=0.3)
    gates = Concrete(table, 5)
    with torch.no_grad():
        gates.values.copy_(SEVERAL)
    assert torch.isclose(gates.penalty(0.5), 0.3 * beyond(SEVERAL, 0.0).sum(), rtol=1e-6)


def test_at_test_time_a_gate_is_0_up_to_minus_ln_11_and_1_from_ln_11():
    edge = math.log(11)
    assert round(edge, 3) == 2.398
    log_a = torch.tensor([-9, -edge - 1e-9, -edge + 1e-6, edge - 1e-6, edge + 1e-9, 9]).double()
    found = settled_concrete(log_a)
    assert found[:2].tolist() == [0, 0]
    assert found[-2:].tolist() == [1, 1]
    assert ((found[2:4] > 0) & (found[2:4] < 1)).all()
    assert settled_concrete(torch.zeros(1)).item() == 0.5


def test_the_slope_of_a_drawn_gate_is_its_central_difference():
    log_a = SEVERAL.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: hard_concrete(x, uniform(5, seed=3)), log_a)


# --- differentiable subsets -----------------------------------------------------------------------


@pytest.mark.parametrize("tau", TEMPERATURES)
@pytest.mark.parametrize("keep", [1, 3, 7])
def test_a_subset_sums_to_what_is_kept_at_every_temperature(tau, keep):
    w = torch.linspace(-10, 10, 9, dtype=torch.float64)
    for some in (w, torch.zeros_like(w)):
        soft = subset(some, keep, tau, uniform(50, 9))
        assert torch.allclose(soft.sum(-1), torch.full((50,), float(keep)).double(), atol=1e-12)
        assert (soft >= 0).all()


def test_a_cold_subset_is_the_hard_top_of_weights_with_gumbels_noise():
    w, u = torch.linspace(-10, 10, 9, dtype=torch.float64), uniform(200, 9)
    for keep in (1, 4, 8):
        wanted = [top(one, keep) for one in w - (-u.log()).log()]
        assert torch.equal(subset(w, keep, 1e-8, u), torch.stack(wanted))


def test_a_hot_subset_gives_every_head_the_same():
    found = subset(torch.linspace(-10, 10, 8).double(), 2, 1e3 * 1e6, uniform(8))
    assert torch.allclose(found, torch.full((8,), 0.25).double(), atol=1e-6)


def test_a_cold_subset_draws_heads_without_putting_them_back():
    w, count = torch.tensor([0.0, 1.0, -1.0, 0.5]).double(), 50_000
    odds, drawn = torch.softmax(w, 0), subset(w, 2, 1e-6, uniform(count, 4))
    wanted = odds.clone()  # first, or second after another one
    for first, then in itertools.permutations(range(4), 2):
        wanted[then] += odds[first] * odds[then] / (1 - odds[first])
    assert ((drawn.mean(0) - wanted).abs() < 4 * (wanted * (1 - wanted) / count).sqrt()).all()


@pytest.mark.parametrize("tau", TEMPERATURES)
def test_the_slopes_of_a_subset_are_finite_at_every_temperature(tau):
    for spread in (0, 1, 10):
        w = torch.linspace(-spread, spread, 9, dtype=torch.float64).requires_grad_()
        (subset(w, 4, tau, uniform(50, 9)) * uniform(9, seed=5)).sum().backward()
        assert torch.isfinite(w.grad).all()
    w = SEVERAL.clone().requires_grad_()
    if tau >= 0.1:
        assert torch.autograd.gradcheck(lambda x: subset(x, 3, tau, uniform(5)), w)


def test_the_temperature_falls_from_1000_to_1e_8_by_equal_factors():
    assert heat(0.0) == 1e3
    assert math.isclose(heat(1.0), 1e-8)
    assert math.isclose(heat(0.25) / heat(0.5), heat(0.5) / heat(0.75))


def test_weights_stay_where_no_head_can_be_drawn_twice():
    gates = Subset(Gating("subset", keep=2), 3)
    with torch.no_grad():
        gates.values.copy_(torch.tensor([[500.0, -500.0, 0.0]]))
    drawn = gates.drawn(0, uniform(100, 3), 1.0)
    assert drawn.max() == 1
    assert gates.settled().tolist() == [1, 0, 1]


# --- causal gates ---------------------------------------------------------------------------------


def test_causal_gates_are_pushed_apart_by_lambda_after_a_fit_of_their_own():
    gates = Causal(Gating("causal", pressure=0.3), 4)
    assert gates.passes(0.2) == 1
    assert gates.penalty(0.2).item() == 0
    assert gates.passes(0.5) == 2
    with torch.no_grad():
        gates.values.copy_(torch.tensor([[0.0, 1.0, 3.9, 4.1], [0.0, -1.0, -3.9, -4.1]]))
    gates.penalty(0.5).backward()
    wanted = torch.tensor([[-0.3, -0.3, -0.3, 0], [0.3, 0.3, 0.3, 0]])
    assert torch.allclose(gates.values.grad, wanted)


def test_causal_gates_learn_the_same_until_they_are_pushed():
    gates = Causal(Gating("causal", pressure=0.3), 4)
    drawn = gates.drawn(0, uniform(5, 4), 0.1)
    assert torch.equal(drawn, torch.full((5, 4), 0.5).double())
    (drawn * torch.arange(4)).sum().backward()
    assert torch.equal(gates.values.grad[0], gates.values.grad[1])
    assert gates.values.grad[0, 1:].all()
