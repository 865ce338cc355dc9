"""The reach of models, measured, where it is known in closed form."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.blocks import Pass, Tokens, finish_steps
from hgviz.models.measures import reaching
from hgviz.tasks import reach
from tests.models.building import write_checkpoint, write_transformer, write_unattending

IDS = np.arange(13) * 5 % 23
CAUSAL = {
    "lstm": (write_unattending, {"family": "lstm"}),
    "gpt2": (write_transformer, {"family": "gpt2", "max_positions": 20}),
    "ymish": (write_transformer, {"form": "decoder", "activations": "ymish"}),
    "linear": (write_transformer, {"form": "decoder", "activations": "linear"}),
    "hourglass": (write_checkpoint, {"hierarchy": "1@1 1@2 1@6 1@2 1@1"}),
    "segments": (
        write_unattending,
        {
            "family": "dynamic",
            "n_heads": 2,
            "n_layers": [1, 1, 1],
            "boundaries": "fixed",
            "shorten_factor": 3,
        },
    ),
    "windowed": (
        write_checkpoint,
        {"hierarchy": "1@1 1@3 1@1", "form": "windowed", "positions": "none"},
    ),
}
BOTH_WAYS = {
    "bert": {"family": "bert", "max_positions": 20},
    "classifier": {"family": "bert", "max_positions": 20, "goal": "classes", "labels": ["a", "b"]},
    "states": {"form": "encoder", "goal": "states", "positions": "rotary"},
}


def measured(folder, write=write_unattending, ids=IDS, target=None, **keys):
    """The reach of a model with random weights."""
    model = open_model(write(folder, **keys), dtype="float64")
    second = None if target is None else model.from_ids(target)
    return finish(reach(model, model.from_ids(ids), second))


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_models_reach_all_before_and_exactly_nothing_later(tmp_path, name):
    write, keys = CAUSAL[name]
    found = measured(tmp_path, write, **keys)
    assert found.later == 0.0 and found.causal and found.whole
    assert (found.own[np.tril_indices(13)] > 0).all()
    assert (found.lag, found.farthest, found.fades(0.0), found.of) == (0, 12, None, "logits")


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_models_that_read_both_ways_reach_everything(tmp_path, name):
    found = measured(tmp_path, write_transformer, **BOTH_WAYS[name])
    assert (found.own > 0).all() and found.whole and not found.causal
    assert found.of == ("states" if name == "classifier" else "logits")


@pytest.mark.parametrize(("window", "depth"), [(2, 1), (2, 4), (4, 2), (5, 3)])
def test_causal_windows_reach_layers_times_radius_back_and_no_further(tmp_path, window, depth):
    found = measured(tmp_path, family="window", window=window, n_layers=depth)
    rows, columns = np.indices(found.own.shape)
    band = (columns <= rows) & (rows - columns <= depth * (window - 1))
    assert np.array_equal(found.own > 0, band)
    assert found.farthest == min(depth * (window - 1), 12)
    assert found.fades(0.0) == (found.farthest + 1 if found.farthest < 12 else None)


@pytest.mark.parametrize(("window", "depth"), [(3, 1), (3, 3), (5, 2)])
def test_windows_both_ways_reach_as_far_to_either_side(tmp_path, window, depth):
    found = measured(tmp_path, family="window", window=window, n_layers=depth, causal=False)
    rows, columns = np.indices(found.own.shape)
    assert np.array_equal(found.own > 0, abs(rows - columns) <= depth * (window - 1) // 2)
    assert not found.causal and found.farthest == depth * (window - 1) // 2


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_an_hourglass_without_layers_around_its_waist_lags(tmp_path, factor):
    """Token j reaches output i where its group is complete at i, or where i is j (models A.3)."""
    keys = {"hierarchy": f"0@1 2@{factor} 0@1", "downsampling": "average", "upsampling": "repeat"}
    found = measured(tmp_path, write_checkpoint, **keys)
    rows, columns = np.indices(found.own.shape)
    heard = (columns <= rows // factor * factor) | (rows == columns)
    assert np.array_equal(found.own > 0, heard)
    # of the newest k - 1 the output's own token comes beside the waist
    assert found.causal and found.lag == factor - 2


def test_a_shift_too_short_is_found(tmp_path):
    model = open_model(write_checkpoint(tmp_path, hierarchy="1@1 1@3 1@1"), dtype="float64")
    model.module.config = replace(model.module.config, shift_offset=-1)
    found = finish(reach(model, model.from_ids(IDS)))
    assert not found.causal and found.later > 1e-3


def test_a_decoder_reaches_its_own_text_back_and_the_other_whole(tmp_path):
    keys = {"form": "encoder-decoder", "ids": IDS[:7], "target": IDS[:5]}
    found = measured(tmp_path, write_transformer, **keys)
    assert found.own.shape == (5, 5) and found.source.shape == (5, 7) and found.causal
    assert (found.source > 0).all() and found.matrix.shape == (5, 12)


def test_a_decoder_over_states_reaches_them(tmp_path):
    write_transformer(tmp_path, form="decoder", cross=True)
    model = open_model(tmp_path, dtype="float64")
    states = model.from_states(np.random.default_rng(0).normal(size=(6, 12)))
    found = finish(reach(model, states, model.from_ids(IDS[:4])))
    assert found.causal and found.own.shape == (4, 4) and (found.source > 0).all()


def test_numbers_are_those_of_one_gradient_after_the_other(tmp_path, monkeypatch):
    model = open_model(write_transformer(tmp_path, form="decoder"), dtype="float64")
    embedded = model.module.table(torch.tensor(IDS)[None])
    voice = torch.randn(23, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def spoken(x):
        tokens = Tokens(torch.tensor(IDS)[None], embedded=x)
        return finish_steps(model.module.steps(tokens, Pass()))[0] @ voice

    wanted = torch.autograd.functional.jacobian(spoken, embedded)[:, 0].norm(dim=-1)
    for room in (reaching.ROOM, 1, 40_000):  # all at once, one by one, and some
        monkeypatch.setattr(reaching, "ROOM", room)
        found = finish(reach(model, model.from_ids(IDS)))
        assert np.abs(found.own - wanted.numpy()).max() < 1e-9


def test_padding_reaches_nothing(tmp_path):
    model = open_model(write_unattending(tmp_path, family="window", window=3), dtype="float64")
    prompt = model.from_ids(IDS, attention_mask=[1] * 6 + [0] + [1] * 6)
    own = finish(reach(model, prompt)).own
    assert not own[np.arange(13) != 6, 6].any()


def test_texts_too_long_are_refused_before_any_work(tmp_path):
    model = open_model(write_unattending(tmp_path, family="lstm"))
    with pytest.raises(HgvizError, match="1,025 tokens"):
        finish(reach(model, model.from_ids(np.zeros(1025, int))))
