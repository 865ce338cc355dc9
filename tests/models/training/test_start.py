"""What a new model begins with."""

import pytest
import torch

from hgviz.models.families import build
from hgviz.models.formats.own import parse_config
from hgviz.models.training import initialise, read_plan
from hgviz.resources import resource


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
