"""What trainings lower and are measured by: closed forms, batches, masks, gates of heads."""

import math
import random

import pytest
import torch

from hgviz.models.hourglass import HourglassConfig
from hgviz.models.layers import Tokens
from hgviz.models.objectives import (
    HardConcrete,
    Recipe,
    Stage,
    TrainedHeads,
    bits_per_byte,
    draw_windows,
    mask_tokens,
    row_batches,
)
from hgviz.models.pruning import scale_heads
from hgviz.models.run import Run
from hgviz.models.tensors import Checkpoint
from hgviz.models.training import begin, schedule
from tests.models.building import make_config, make_hourglass, make_transformer
from tests.models.trainings import KINDS, plan, write_data

# --- whole texts ----------------------------------------------------------------------------------


def flat_hourglass():
    """A model whose answers are those of its last bias, whatever it reads."""
    model = (
        HourglassConfig(vocab_size=256, d_model=8, n_heads=2, hierarchy="1@1 1@2 1@1")
        .build()
        .eval()
    )
    torch.nn.init.zeros_(model.lm_head.weight)
    torch.nn.init.zeros_(model.lm_head.bias)
    return model


def test_a_uniform_model_needs_exactly_eight_bits_for_every_byte():
    text = torch.arange(101, dtype=torch.uint8)
    assert bits_per_byte(flat_hourglass(), text, 10) == pytest.approx(8.0, abs=1e-5)


def test_every_byte_but_the_first_is_predicted_exactly_once():
    model = flat_hourglass()
    torch.nn.init.normal_(model.lm_head.bias)  # then bits depend on which bytes are predicted
    text = torch.randint(0, 256, (57,), dtype=torch.uint8)
    surprise = -torch.log_softmax(model.lm_head.bias, -1)[text[1:].long()].mean() / math.log(2)
    for length in (5, 8, 56, 100):
        assert bits_per_byte(model, text, length) == pytest.approx(surprise.item(), rel=1e-5)
    assert bits_per_byte(model, text[:1], 5) == 0


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_a_language_model_over_pieces_is_measured_in_bits_per_byte(tmp_path, kind):
    write_data(tmp_path)
    model = {"family": "gpt2", "d_model": 16, "n_heads": 2, "n_layers": 1, "max_positions": 32}
    tables = {**KINDS["next"], "model": model, "tokenizer": {"kind": kind, "size": 300}}
    start = begin(plan(tmp_path, tables), tmp_path)
    ids, size = start.tokenizer.encode_stream((tmp_path / "b.txt").read_bytes(), tmp_path / "b.txt")
    with torch.no_grad():  # equal odds for every piece
        start.model.embed.token.weight.zero_()
    bits = start.objective.measure(start.model.eval(), True)["bits_per_byte"]
    assert bits == pytest.approx((len(ids) - 1) * math.log2(start.tokenizer.size) / size, rel=1e-5)


def test_windows_depend_only_on_seed_and_step():
    text, stage = [torch.arange(200, dtype=torch.uint8)], Stage(0.0, 10, 4)
    one, two = (draw_windows(text, [], stage, 7, 1) for _ in range(2))
    assert torch.equal(one, two) and torch.equal(one[:, 1:], one[:, :-1] + 1)
    assert not torch.equal(one, draw_windows(text, [], stage, 8, 1))


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


def test_at_least_one_token_is_asked_for():
    ids, generator = torch.tensor([[2, 9, 3]]), torch.Generator().manual_seed(0)
    assert mask_tokens(ids, 4, 10, (2, 3, 4), 1e-9, generator)[1].tolist() == [[-100, 9, -100]]


# --- rows -----------------------------------------------------------------------------------------


def test_every_row_comes_once_an_epoch_among_rows_of_its_length():
    lengths = [random.Random(i).randrange(1, 40) for i in range(1000)]
    batches = row_batches(lengths, 16, 1, 0)
    assert sorted(row for batch in batches for row in batch) == list(range(1000))
    sizes = [[lengths[row] for row in batch] for batch in batches]
    assert sum(max(batch) - size for batch in sizes for size in batch) < 0.05 * sum(lengths)
    assert batches != row_batches(lengths, 16, 1, 1) and batches != row_batches(lengths, 16, 2, 0)


def test_trainings_that_differ_in_activation_see_the_same_batches_and_weights(tmp_path):
    write_data(tmp_path)
    six = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]
    starts = [begin(plan(tmp_path, KINDS["classes"], model={"activations": one}), tmp_path)
              for one in ("softmax", "ymish", six)]  # fmt: skip
    first, *others = starts
    weights = first.model.state_dict()
    for other in others:
        assert all(torch.equal(weights[name], x) for name, x in other.model.state_dict().items())
        assert other.objective.batches(1) == first.objective.batches(1)
        assert other.tokenizer.json == first.tokenizer.json


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


# --- heads off, and gates of heads ----------------------------------------------------------------

MODELS = {
    "hourglass": make_hourglass(make_config(hierarchy="1@1 1@2 1@1")),
    "encoder": make_transformer(form="encoder", goal="classes", labels=["a", "b"]),
    "both": make_transformer(form="encoder-decoder"),
}
TEXTS = Tokens(torch.arange(18).view(2, 9), source=Tokens(torch.arange(14).view(2, 7)))


def logits_under(model, off=frozenset(), factors=None):
    """Logits of a pass with heads off and gates of these factors, of all others 1."""
    by_layer = {}
    for layer in model.config.layers if factors else ():
        row = [factors.get(head, 1.0) for head in TrainedHeads((layer,)).ids]
        by_layer[layer.index] = torch.tensor([row] * 2, dtype=torch.float64)
    with torch.inference_mode():
        return model(TEXTS, Run(frozenset(off), gates=by_layer))


@pytest.mark.parametrize("name", MODELS)
def test_gates_are_factors_and_are_folded_into_the_columns_of_w_o(name):
    model = MODELS[name]
    heads = TrainedHeads(model.config.layers).ids
    plain, off = logits_under(model), logits_under(model, heads[1::2])
    zero = logits_under(model, factors=dict.fromkeys(heads[1::2], 0.0))
    assert (off - zero).abs().max() <= 1e-12 and (off - plain).abs().max() > 1e-3

    trained = TrainedHeads(
        model.config.layers, frozenset(heads[:1]), gates_of(torch.linspace(-3, 3, len(heads) - 1))
    )
    factors = trained.factors()
    assert min(factors.values()) == 0 and max(factors.values()) == 1
    before = {name: one.clone() for name, one in model.state_dict().items()}
    folded = scale_heads(Checkpoint(model.config, before, "", None), factors).tensors
    model.load_state_dict(folded)
    after = logits_under(model)
    model.load_state_dict(before)
    assert (logits_under(model, factors=factors) - after).abs().max() <= 1e-12


@pytest.mark.parametrize("name", MODELS)
def test_every_pass_of_a_model_runs_with_heads_off(name):
    model, texts = MODELS[name], TEXTS if name == "both" else TEXTS.ids
    off = frozenset(TrainedHeads(model.config.layers).ids[1::2])
    plain, without = logits_under(model), logits_under(model, off)
    with torch.inference_mode():
        with TrainedHeads(model.config.layers, off).apply(model):
            assert torch.equal(model(texts), without)
        assert torch.equal(model(texts), plain)
