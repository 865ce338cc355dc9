"""Language models that are trained, what they begin with, and the published Hourglass."""

import json
import math
import re
from pathlib import Path

import msgspec
import pytest
import torch

from hgviz.core import HgvizError
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.config import HourglassConfig
from hgviz.models.families import build
from hgviz.models.families.hourglass import Hourglass
from hgviz.models.formats.checkpoint import shapes_of
from hgviz.models.formats.own import parse_config
from hgviz.models.hierarchy import parse_hierarchy
from hgviz.models.training import (
    Recipe,
    Stage,
    bits_per_byte,
    draw,
    initialise,
    read_plan,
    schedule,
    train,
)
from tests.models.training.planting import interrupt, train_twice

PLAN = """
[model]
hierarchy = "1@1 1@2 1@1"
vocab_size = 256
d_model = 16
n_heads = 2
positions = "rotary"

[data]
train = ["a.txt"]
valid = "b.txt"

[recipe]
steps = 6
warmup = 2
rate = 1e-2
dropout = 0.1
save_every = 2
evaluate_every = 3
evaluate_length = 32
stages = [{start = 0.0, length = 16, batch = 2}, {start = 0.5, length = 24, batch = 1}]
"""


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "a.txt").write_text("the cat sat on the mat and the dog sat on the log. " * 20)
    (tmp_path / "b.txt").write_text("the dog sat on the mat. " * 20)
    (tmp_path / "plan.toml").write_text(PLAN)
    return read_plan(tmp_path / "plan.toml")


def weights(folder):
    model = open_model(folder)
    return torch.tensor(model.run([1, 2, 3, 4]).logits)


def test_training_learns_and_writes_a_checkpoint_that_opens(plan, tmp_path):
    plan = msgspec.structs.replace(
        plan, recipe=msgspec.structs.replace(plan.recipe, steps=60, dropout=0.0)
    )
    report = train(plan, tmp_path / "out")
    assert report.value < 5.0
    rows = [json.loads(line) for line in (tmp_path / "out/log.jsonl").read_text().splitlines()]
    assert rows[-1]["stored_bits_per_byte"] == report.value
    assert rows[0]["loss"] > rows[-2]["loss"]
    assert weights(tmp_path / "out").shape == (4, 256)
    assert not (tmp_path / "out/state.pt").exists()


def test_a_stopped_training_goes_on_to_the_same_weights(plan, tmp_path):
    train_twice(plan, tmp_path, 3, 5)
    assert torch.equal(weights(tmp_path / "whole"), weights(tmp_path / "stopped"))


def test_a_training_is_not_continued_with_other_settings(plan, tmp_path):
    interrupt(plan, tmp_path / "out", 3)
    other = msgspec.structs.replace(plan, recipe=msgspec.structs.replace(plan.recipe, rate=1e-3))
    with pytest.raises(HgvizError, match="other settings"):
        train(other, tmp_path / "out")


def test_a_finished_training_is_not_overwritten(plan, tmp_path):
    train(plan, tmp_path / "out")
    with pytest.raises(HgvizError, match="already holds a trained model"):
        train(plan, tmp_path / "out")


def test_a_uniform_model_needs_exactly_eight_bits_for_every_byte():
    config = HourglassConfig(256, 8, 2, parse_hierarchy("1@1 1@2 1@1"), positions="rotary")
    model = Hourglass(config)
    torch.nn.init.zeros_(model.lm_head.weight)
    torch.nn.init.zeros_(model.lm_head.bias)
    text = torch.arange(101, dtype=torch.uint8)
    assert bits_per_byte(model, text, 10) == pytest.approx(8.0, abs=1e-5)


def test_every_byte_but_the_first_is_predicted_exactly_once():
    config = HourglassConfig(256, 8, 2, parse_hierarchy("1@1 1@2 1@1"), positions="none")
    model = Hourglass(config).eval()
    torch.nn.init.normal_(model.lm_head.bias)  # then bits depend on which bytes are predicted
    torch.nn.init.zeros_(model.lm_head.weight)
    text = torch.randint(0, 256, (57,), dtype=torch.uint8)
    surprise = -torch.log_softmax(model.lm_head.bias, -1)[text[1:].long()].mean() / math.log(2)
    for length in (5, 8, 56, 100):
        assert bits_per_byte(model, text, length) == pytest.approx(surprise.item(), rel=1e-5)


def test_windows_depend_only_on_seed_and_step():
    text = [torch.arange(200, dtype=torch.uint8)]
    stage = Stage(0.0, 10, 4)
    one, two = draw(text, [], stage, 7, 1), draw(text, [], stage, 7, 1)
    assert torch.equal(one, two)
    assert not torch.equal(one, draw(text, [], stage, 8, 1))
    assert torch.equal(one[:, 1:], one[:, :-1] + 1)


def test_the_rate_warms_up_and_falls_to_its_floor():
    recipe = Recipe(steps=100, warmup=10, floor=0.1)
    assert schedule(0.0, 0, recipe) == pytest.approx(0.1)
    assert schedule(0.1, 10, recipe) == pytest.approx(
        0.1 + 0.9 * 0.5 * (1 + math.cos(0.1 * math.pi))
    )
    assert schedule(1.0, 100, recipe) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("steps = 6", ""), "either steps or minutes"),
        (("[data]", "[date]"), "not a training file"),
        (('hierarchy = "1@1 1@2 1@1"', 'hierarchy = "1@1 1@2"'), "hierarchy"),
        (("n_heads = 2", "n_heads = 3"), "3 heads do not divide"),
        (('"a.txt"', '"none.txt"'), "cannot read"),
        (("length = 24", "length = 240000"), "too short to train on"),
    ],
)
def test_a_wrong_training_file_is_one_clear_line(plan, tmp_path, change, message):
    (tmp_path / "wrong.toml").write_text(PLAN.replace(*change))
    with pytest.raises(HgvizError, match=message) as caught:
        train(read_plan(tmp_path / "wrong.toml"), tmp_path / "new" / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_every_sample_says_how_it_was_trained():
    plans = sorted(resource("sample").glob("*/training.toml"))
    assert plans
    for path in plans:
        plan = read_plan(path)
        assert "d_model" in plan.model, path


# --- new weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("std", [0.02, 0.1])
def test_new_weights_have_the_spread_that_is_asked_for(std):
    keys = {"family": "bert", "vocab_size": 500, "d_model": 64, "n_heads": 4, "n_layers": 2}
    model = build(parse_config(keys))
    torch.manual_seed(0)
    initialise(model, std)
    found = dict(model.named_parameters())
    assert found["embed.token.weight"].std().item() == pytest.approx(std, rel=0.02)
    assert found["middle.0.attn.q.weight"].std().item() == pytest.approx(std, rel=0.05)
    # what is added to the residual stream is smaller by the root of twice the layers
    assert found["middle.0.attn.o.weight"].std().item() == pytest.approx(std / 2, rel=0.05)
    assert found["middle.0.attn.q.bias"].abs().max() == 0


def test_an_lstm_keeps_the_scales_of_torch():
    model = build(parse_config({"family": "lstm", "vocab_size": 99, "d_model": 16, "n_layers": 1}))
    before = {name: one.clone() for name, one in model.named_parameters()}
    initialise(model, 0.02)
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters())


def test_a_plan_may_name_a_sample_and_a_file_beside_it_comes_first(tmp_path):
    (tmp_path / "plan.toml").write_text(
        '[model]\n[data]\ntrain = ["sample/reviews.tsv", "other.txt"]\n'
        'valid = "sample/reviews.tsv"\n[recipe]\nsteps = 1\n'
    )
    data = read_plan(tmp_path / "plan.toml").data
    assert data.valid == data.train[0] == str(resource("sample/reviews.tsv"))
    assert data.train[1] == str(tmp_path / "other.txt")
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "reviews.tsv").touch()
    assert read_plan(tmp_path / "plan.toml").data.valid == str(tmp_path / "sample/reviews.tsv")


# --- the published Hourglass ----------------------------------------------------------------------


PAGE = (Path(__file__).parents[3] / "docs" / "training.md").read_text("utf-8")
SECTION = PAGE.partition("## The published Hourglasses\n")[2].partition("\n## ")[0]


def table():
    """Each row of the table by its name, a cell for every model."""
    lines = [line for line in SECTION.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: cells for name, *cells in rows}


def test_the_plan_of_the_page_is_one_that_is_read(tmp_path):
    (tmp_path / "plan.toml").write_text(re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)[0])
    plan, rows = read_plan(tmp_path / "plan.toml"), table()
    stated = {"attention_downsampling": "average", **plan.model}
    for name in ("hierarchy", "vocab_size", "attention_downsampling", "attention_upsampling"):
        assert str(stated[name]) == rows[name][0]
    recipe, stage = plan.recipe, plan.recipe.stages[0]
    assert (
        f"{recipe.rate:.1e}".replace("e-0", "e-") + f", {recipe.warmup}" == rows["rate, warmup"][0]
    )
    assert [str(recipe.steps), str(recipe.dropout)] == [rows["steps"][0], rows["dropout"][0]]
    assert f"{stage.length}, {stage.batch}" == rows["length, batch"][0]


def test_the_models_of_the_table_have_as_many_parameters():
    rows = table()
    for number, said in enumerate(rows["parameters"]):
        d_model, d_ff, n_heads = map(int, rows["d_model, d_ff, n_heads"][number].split(", "))
        keys = {
            name: rows[name][number]
            for name in ("hierarchy", "attention_downsampling", "attention_upsampling")
        }
        config = parse_config(
            {"vocab_size": int(rows["vocab_size"][number]), "d_model": d_model, "d_ff": d_ff,
             "n_heads": n_heads, **keys}
        )  # fmt: skip
        assert f"{sum(map(math.prod, shapes_of(config).values())):,}" == said
