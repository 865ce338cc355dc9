"""What a token can depend on: causality, and how far models reach."""

import numpy as np
import pytest
import torch

from hgviz.core import HeadId, HgvizError
from hgviz.models import attribution, open_model
from hgviz.models.hourglass import Hourglass
from hgviz.models.layers import Tokens
from hgviz.models.mechanisms import rotate
from hgviz.models.run import CaptureRecorder, Run
from hgviz.tasks import reach
from tests.models.building import (
    make_config,
    make_hourglass,
    write_checkpoint,
    write_transformer,
    write_unattending,
)

ONE, NESTED, DEEP = "1@1 1@3 1@1", "1@1 1@3 1@6 1@3 1@1", "1@1 1@2 1@4 1@8 1@4 1@2 1@1"
PLAIN = {"downsampling": "average", "upsampling": "repeat"}
LINEAR = {"downsampling": "linear", "upsampling": "linear"}
WINDOWED = {"form": "windowed", "positions": "learned", "max_positions": 40}
FORMS = {
    "flat": {"hierarchy": "2@1"},
    "official": {"hierarchy": ONE},
    "official, nested": {"hierarchy": NESTED},
    "official, deep": {"hierarchy": DEEP},
    "official, average": {"hierarchy": NESTED, **PLAIN},
    "official, linear": {"hierarchy": NESTED, **LINEAR},
    "official, attention on linear": {"hierarchy": NESTED, "attention_downsampling": "linear"},
    "official, attention on repeat": {"hierarchy": ONE, "attention_upsampling": "repeat"},
    "official, attention on nothing": {"hierarchy": NESTED, "attention_upsampling": "none"},
    "official, rotary": {"hierarchy": NESTED, "positions": "rotary"},
    "official, learned": {"hierarchy": NESTED, "positions": "learned", "max_positions": 40},
    "official, ymish": {"hierarchy": ONE, "activations": "ymish"},
    "windowed": {"hierarchy": ONE, **WINDOWED},
    "windowed, compat": {"hierarchy": NESTED, "masking": "compat", **WINDOWED},
    "windowed, linear": {"hierarchy": NESTED, "attention_downsampling": "linear", **WINDOWED},
    "windowed, no attention": {"hierarchy": NESTED, **PLAIN, **WINDOWED},
    "windowed, linear, no attention": {"hierarchy": ONE, **LINEAR, **WINDOWED},
}
LEAKING = [name for name in FORMS if name != "flat"]


def influence(config, length):
    """R[i, j]: how much output i depends on the embedding of token j."""
    model = make_hourglass(config)
    ids = torch.arange(length)[None] * 7 % config.vocab_size
    embedded = model.embed["token"](ids).detach().requires_grad_()
    logits = model(Tokens(embedded=embedded))[0]
    voice = torch.randn(config.vocab_size, generator=torch.Generator().manual_seed(1)).double()
    rows = []
    for i in range(length):
        (gradient,) = torch.autograd.grad(logits[i] @ voice, embedded, retain_graph=True)
        rows.append(gradient[0].abs().amax(-1))
    return torch.stack(rows).numpy()


def leak(seen):
    """The largest influence of a later token."""
    return np.triu(seen, 1).max()


@pytest.mark.parametrize("length", [12, 13])
@pytest.mark.parametrize("changes", FORMS.values(), ids=FORMS.keys())
def test_no_output_depends_on_a_later_token(changes, length):
    seen = influence(make_config(**changes), length)
    assert leak(seen) == 0.0
    assert seen[np.tril_indices(length)].min() > 0.0


@pytest.mark.parametrize("name", LEAKING)
def test_one_shift_less_leaks_and_the_check_finds_it(name, monkeypatch):
    monkeypatch.setattr(Hourglass, "shift", lambda self, factor: factor - 2)
    assert leak(influence(make_config(**FORMS[name]), 13)) > 1e-3


@pytest.mark.parametrize("name", [one for one in LEAKING if FORMS[one]["hierarchy"] == ONE])
def test_no_shift_leaks_and_the_check_finds_it(name, monkeypatch):
    monkeypatch.setattr(Hourglass, "shift", lambda self, factor: factor - 3)
    assert leak(influence(make_config(**FORMS[name]), 13)) > 1e-3


def test_reading_both_ways_sees_everything():
    assert influence(make_config(hierarchy=NESTED, causal=False), 13).min() > 0.0


@pytest.mark.parametrize("changes", FORMS.values(), ids=FORMS.keys())
def test_a_prefix_reads_the_same_alone(tmp_path, changes):
    model = open_model(write_checkpoint(tmp_path, **changes), dtype="float64")
    ids = np.arange(19) * 5 % 23
    whole = model.run(ids).logits
    for end in range(1, 19):
        assert np.abs(model.run(ids[:end]).logits - whole[:end]).max() < 1e-10


@pytest.mark.parametrize("changes", FORMS.values(), ids=FORMS.keys())
def test_another_end_changes_nothing_before_it(tmp_path, changes):
    model = open_model(write_checkpoint(tmp_path, **changes), dtype="float32")
    ids = np.arange(19) * 5 % 23
    for start in (1, 7, 12, 18):
        other = np.concatenate([ids[:start], (ids[start:] + 1) % 23])
        same, changed = (model.run(each).logits[:start] for each in (ids, other))
        assert np.array_equal(same, changed)


# --- rotary positions -----------------------------------------------------------------------------


def test_turned_products_depend_only_on_the_distance():
    torch.manual_seed(0)
    x, y = torch.randn(2, 1, 8, dtype=torch.float64)
    product = [
        float(rotate(x, torch.tensor([at])) @ rotate(y, torch.tensor([at - 5])).T)
        for at in (5, 6, 100, 100_000)
    ]
    assert np.ptp(product) < 1e-9
    closer = float(rotate(x, torch.tensor([5])) @ rotate(y, torch.tensor([1])).T)
    assert abs(closer - product[0]) > 1e-3


def test_rotary_scores_depend_only_on_the_distance_in_tokens(tmp_path):
    """On one letter again and again every score is a function of how far apart two tokens are."""
    changes = {"hierarchy": NESTED, "positions": "rotary"}
    model = open_model(write_checkpoint(tmp_path, **changes), dtype="float64")
    tapped = {}
    model.trace(model.from_ids(np.full(36, 3)), observers=[CaptureRecorder(tapped.__setitem__)])
    for name, first in (("pre.0.0", 0), ("down.0", 1)):  # the first group averages zeros too
        layer = next(one for one in model.spec.layers if one.name == name)
        factors = tapped[layer.index]
        shift = model.spec.levels[layer.level].shift if layer.role == "down" else 0
        scores = factors.q[:, first:] @ factors.k[:, shift:].transpose(0, 2, 1)
        rows, columns = np.arange(first, factors.q.shape[1]), np.arange(scores.shape[2])
        distance = rows[:, None] * factors.rule.stride_q - columns
        for step in np.unique(distance):
            assert np.ptp(scores[:, distance == step], axis=-1).max() < 1e-9
        assert np.ptp(scores) > 0.1


# --- heads switched off ---------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [FORMS["official, nested"], FORMS["windowed, compat"]])
def test_a_head_switched_off_is_a_head_without_output_columns(tmp_path, changes):
    folder = write_checkpoint(tmp_path, **changes)
    model = open_model(folder, dtype="float64")
    ids, width = np.arange(13), model.module.config.d_head
    whole = model.run(ids).logits
    for layer in model.spec.layers:
        off = frozenset({HeadId(layer.index, 1)})
        cut = open_model(folder, dtype="float64")
        columns = cut.module.get_parameter(f"{layer.name}.attn.o.weight")
        columns[:, width : 2 * width] = 0.0
        changed = model.run(ids, off=off).logits
        assert np.abs(changed - cut.run(ids).logits).max() < 1e-12
        assert np.abs(changed - whole).max() > 1e-6
    everything = model.run(ids, off=frozenset(model.spec.heads)).logits
    assert np.isfinite(everything).all()
    assert np.array_equal(model.run(ids).logits, whole)


# --- how far models reach -------------------------------------------------------------------------


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
    return reach(model, model.from_ids(ids), second)


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


def test_a_shift_too_short_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(Hourglass, "shift", lambda self, factor: factor - 2)
    model = open_model(write_checkpoint(tmp_path, hierarchy="1@1 1@3 1@1"), dtype="float64")
    found = reach(model, model.from_ids(IDS))
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
    found = reach(model, states, model.from_ids(IDS[:4]))
    assert found.causal and found.own.shape == (4, 4) and (found.source > 0).all()


def test_numbers_are_those_of_one_gradient_after_the_other(tmp_path, monkeypatch):
    model = open_model(write_transformer(tmp_path, form="decoder"), dtype="float64")
    embedded = model.module.token_embedding(torch.tensor(IDS)[None])
    voice = torch.randn(23, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def spoken(x):
        tokens = Tokens(torch.tensor(IDS)[None], embedded=x)
        return model.module(tokens, Run())[0] @ voice

    wanted = torch.autograd.functional.jacobian(spoken, embedded)[:, 0].norm(dim=-1)
    for room in (attribution.REACH_NUMBERS, 1, 40_000):  # all at once, one by one, and some
        monkeypatch.setattr(attribution, "REACH_NUMBERS", room)
        found = reach(model, model.from_ids(IDS))
        assert np.abs(found.own - wanted.numpy()).max() < 1e-9


def test_padding_reaches_nothing(tmp_path):
    model = open_model(write_unattending(tmp_path, family="window", window=3), dtype="float64")
    prompt = model.from_ids(IDS, attention_mask=[1] * 6 + [0] + [1] * 6)
    own = reach(model, prompt).own
    assert not own[np.arange(13) != 6, 6].any()


def test_texts_too_long_are_refused_before_any_work(tmp_path):
    model = open_model(write_unattending(tmp_path, family="lstm"))
    with pytest.raises(HgvizError, match="1,025 tokens"):
        reach(model, model.from_ids(np.zeros(1025, int)))
