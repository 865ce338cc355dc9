"""Models without attention: an LSTM beside its equations, windows beside a convolution."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.generation import Writing, chosen
from hgviz.models.layers import Tokens
from hgviz.models.model import with_activation
from tests.models.building import make_unattending, write_unattending

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2]])
KINDS = {
    "lstm": {"family": "lstm"},
    "window": {"family": "window", "window": 3},
    "window, silu": {"family": "window", "window": 4, "feed_forward": "silu"},
    "window, both ways": {"family": "window", "window": 5, "causal": False},
}


def test_an_lstm_computes_what_its_equations_say():
    model = make_unattending(family="lstm", n_layers=2)
    x, width = model.token_embedding.weight[IDS], model.config.d_model
    for layer in range(2):
        into, again = (getattr(model.lstm, f"weight_{name}_l{layer}") for name in ("ih", "hh"))
        bias = getattr(model.lstm, f"bias_ih_l{layer}") + getattr(model.lstm, f"bias_hh_l{layer}")
        hidden = cell = torch.zeros(len(x), width, dtype=torch.float64)
        states = []
        for at in range(x.shape[1]):
            gates = x[:, at] @ into.T + hidden @ again.T + bias
            entered, kept, new, shown = gates.chunk(4, dim=1)
            cell = kept.sigmoid() * cell + entered.sigmoid() * new.tanh()
            hidden = shown.sigmoid() * cell.tanh()
            states.append(hidden)
        x = torch.stack(states, dim=1)
    assert (model(IDS) - model.lm_head(x)).abs().max() < 1e-9


@pytest.mark.parametrize("name", [one for one in KINDS if one != "lstm"])
def test_a_window_mixes_its_positions_side_by_side(name):
    """The linear map of the concatenated neighbours, position by position; and as a convolution."""
    model = make_unattending(**KINDS[name])
    config = model.config
    radius, act = config.radius, F.silu if config.feed_forward == "silu" else F.gelu
    x = model.token_embedding.weight[IDS]
    for layer in model.middle:
        normed = F.pad(layer.ln(x), (0, 0, radius, 0 if config.causal else radius))
        beside = [normed[:, at : at + config.window].flatten(1) for at in range(x.shape[1])]
        mixed = torch.stack([layer.mix(one) for one in beside], dim=1)
        kernel = layer.mix.weight.unflatten(1, (config.window, -1)).transpose(1, 2)  # (d, d, w)
        convolved = F.conv1d(normed.transpose(1, 2), kernel, layer.mix.bias).transpose(1, 2)
        assert (mixed - convolved).abs().max() < 1e-9
        x = x + act(mixed)
    assert (model(IDS) - model.lm_head(model.ln_f(x))).abs().max() < 1e-9


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS.keys())
def test_what_is_masked_changes_nothing_that_is_not(changes):
    """Padding after a text, before it and within it leaves the others as they are without it."""
    model = make_unattending(**changes)
    keep = torch.ones_like(IDS, dtype=torch.bool)
    keep[0, 7:], keep[1, :3] = False, False
    if changes["family"] == "lstm":
        keep[1, 5] = False  # windows keep the distances, an LSTM has none
    other = IDS.where(keep, (IDS + 1) % 23)
    one, two = model(Tokens(IDS, keep)), model(Tokens(other, keep))
    assert torch.equal(one[keep], two[keep])
    for row in (0, 1):
        alone = model(IDS[row : row + 1, keep[row]])[0]
        assert (one[row, keep[row]] - alone).abs().max() < 1e-12


@pytest.mark.parametrize("family", ["lstm", "window"])
def test_a_text_under_way_is_read_as_a_whole_one(tmp_path, family):
    model = open_model(write_unattending(tmp_path, **KINDS[family]), dtype="float64")
    writing = Writing(model, model.from_ids(IDS[0, :4].numpy()))
    for _ in range(9):
        writing.add(chosen(writing.logits, None, 1.0))
    whole = model.run(np.concatenate([IDS[0, :4], writing.added])).logits
    assert np.abs(whole[-1] - writing.logits).max() < 1e-12
    assert [int(one.argmax()) for one in whole[3:-1]] == writing.added


def test_a_window_that_reads_both_ways_cannot_write(tmp_path):
    model = open_model(write_unattending(tmp_path, **KINDS["window, both ways"]))
    assert model.spec.goal == "masked"
    with pytest.raises(HgvizError, match="cannot write"):
        Writing(model, model.from_ids([1, 2]))


def test_what_is_no_model_is_said():
    for wrong, said in [
        ({"family": "window", "window": 4, "causal": False}, "no middle"),
        ({"family": "window"}, "window"),
        ({"family": "lstm", "n_heads": 2}, "n_heads"),
        ({"family": "lstm", "causal": False}, "causal"),
    ]:
        with pytest.raises(HgvizError, match=said):
            make_unattending(**wrong)
    with pytest.raises(HgvizError, match="longest|at most 8"):
        make_unattending(family="lstm", max_positions=8)(IDS)
    with pytest.raises(HgvizError, match="does not attend"):
        with_activation(make_unattending(family="lstm").config, "ymish")
