"""What an output can depend on, for every own family: later tokens, padding, other texts, and how
far models reach."""

import numpy as np
import pytest
import torch

from hgviz.core import HgvizError
from hgviz.models import attribution, open_model
from hgviz.models.generation import Writing, choose_token
from hgviz.models.hourglass import Hourglass
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.tasks import reach
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    make_unattending,
    opened,
)

ONE, NESTED, DEEP = "1@1 1@3 1@1", "1@1 1@3 1@6 1@3 1@1", "1@1 1@2 1@4 1@8 1@4 1@2 1@1"
PLAIN = {"downsampling": "average", "upsampling": "repeat"}
LINEAR = {"downsampling": "linear", "upsampling": "linear"}
LEARNED = {"positions": "learned", "max_positions": 40}
WINDOWED = {"form": "windowed", **LEARNED}
HOURGLASSES = {
    "flat": {"hierarchy": "2@1"},
    "official": {"hierarchy": ONE},
    "nested": {"hierarchy": NESTED},
    "deep": {"hierarchy": DEEP},
    "average": {"hierarchy": NESTED, **PLAIN},
    "linear": {"hierarchy": NESTED, **LINEAR},
    "attention on linear": {"hierarchy": NESTED, "attention_downsampling": "linear"},
    "attention on repeat": {"hierarchy": ONE, "attention_upsampling": "repeat"},
    "attention on nothing": {"hierarchy": NESTED, "attention_upsampling": "none"},
    "rotary": {"hierarchy": NESTED, "positions": "rotary"},
    "learned": {"hierarchy": NESTED, **LEARNED},
    "ymish": {"hierarchy": ONE, "activations": "ymish"},
    "wider inside": {"hierarchy": NESTED, "widths": (12, 16, 20)},
    "windowed": {"hierarchy": ONE, **WINDOWED},
    "windowed, compat": {"hierarchy": NESTED, "masking": "compat", **WINDOWED},
    "windowed, linear": {"hierarchy": NESTED, "attention_downsampling": "linear", **WINDOWED},
    "windowed, wider inside": {"hierarchy": NESTED, "widths": (12, 16, 8), **WINDOWED},
    "windowed, no attention": {"hierarchy": NESTED, **PLAIN, **WINDOWED},
    "windowed, linear, no attention": {"hierarchy": ONE, **LINEAR, **WINDOWED},
}
SEGMENTS = ("fixed", "whitespace", "learned", "entropy", "unigram")
DYNAMIC = {"family": "dynamic", "n_layers": [2, 2, 1], "whitespace_id": 3, "n_heads": 2}
CAUSAL = {  # those of transformers and the rest; all read every token before
    **{f"decoder, {positions}, {'pre' if first else 'post'}-norm, {activation}": {
        "form": "decoder", "positions": positions, "norm_first": first, "activations": activation,
        "max_positions": 40, "top_k": 9,
    } for positions, first, activation in (
        ("learned", False, "softmax"), ("learned", True, "ymish"), ("sinusoidal", True, "tanh"),
        ("sinusoidal", False, "linear"), ("rotary", False, "softmax"), ("rotary", True, "rbf"),
        ("none", True, "softmax"), ("none", False, "selu"), ("quadratic", True, "softmax"),
    )},
    "gpt2": {"family": "gpt2", "max_positions": 40},
    "lstm": {"family": "lstm"},
    "window": {"family": "window", "window": 21, "n_layers": 1},
    **{f"segments, {kind}": {**DYNAMIC, "boundaries": kind, "shorten_factor": 3}
       for kind in SEGMENTS},
}  # fmt: skip
PADDED = {  # the first four read both ways
    "bert": {"family": "bert", "max_positions": 40, "goal": "masked"},
    "classifier": {"family": "bert", "goal": "classes", "labels": ["a", "b"]},
    "states": {"form": "encoder", "goal": "states", "positions": "rotary"},
    "no positions": {"form": "encoder", "goal": "masked", "positions": "none"},
    "topk": {"form": "encoder", "goal": "masked", "positions": "none", "activations": "topk",
             "top_k": 3},
    **{kind: {**DYNAMIC, "boundaries": kind, "shorten_factor": 3} for kind in SEGMENTS},
    "lstm": {"family": "lstm"},
    "window": {"family": "window", "window": 3},
    "window, both ways": {"family": "window", "window": 5, "causal": False},
}  # fmt: skip
IDS = np.arange(19) * 5 % 23


def make(keys):
    """A float64 model of the family that the keys are of."""
    if "hierarchy" in keys:
        return make_hourglass(make_config(**keys))
    if keys.get("family") in ("lstm", "window"):
        return make_unattending(**keys)
    return make_transformer(**keys)


def measured(tmp_path, keys, ids=IDS[:13], target=None):
    """The reach of a model with random weights."""
    model = opened(tmp_path, make(keys), "float64")
    return reach(model, model.from_ids(ids), None if target is None else model.from_ids(target))


@pytest.mark.parametrize("keys", [*HOURGLASSES.values(), *CAUSAL.values()],
                         ids=[*HOURGLASSES, *CAUSAL])  # fmt: skip
def test_no_output_depends_on_a_later_token_and_all_on_earlier_ones(tmp_path, keys):
    """By gradients, by prefixes read alone, and bit for bit by other endings in float32."""
    for length in (12, 13):
        found = measured(tmp_path / f"{length}", keys, IDS[:length])
        assert found.later == 0.0 and found.is_causal and found.is_full
        assert (found.own[np.tril_indices(length)] > 0).all() and not np.triu(found.own, 1).any()
        assert (found.lag, found.farthest, found.fades(0.0)) == (0, length - 1, None)
        assert found.of == "logits"
    model = opened(tmp_path / "m", make(keys), "float64")
    whole = model.run(IDS).logits
    for end in range(1, 19):
        assert np.abs(model.run(IDS[:end]).logits - whole[:end]).max() < 1e-10
    model = open_model(tmp_path / "m")
    for start in (1, 7, 12, 18):
        other = np.concatenate([IDS[:start], (IDS[start:] + 1) % 23])
        same, changed = (model.run(ids).logits for ids in (IDS, other))
        if keys.get("family") == "dynamic":  # whose segments differ in number
            assert np.abs(same[:start] - changed[:start]).max() < 1e-5
        else:
            assert np.array_equal(same[:start], changed[:start])
        assert np.abs(same[start:] - changed[start:]).max() > 1e-3


LEAKS = [
    (name, shift)
    for name, keys in HOURGLASSES.items()
    for shift in ((2, 3) if keys["hierarchy"] == ONE else (2,))
    if name != "flat"
]


@pytest.mark.parametrize("name, shift", LEAKS)
def test_a_shorter_shift_leaks_and_the_check_finds_it(tmp_path, name, shift, monkeypatch):
    monkeypatch.setattr(Hourglass, "shift", lambda self, factor: factor - shift)
    found = measured(tmp_path, HOURGLASSES[name])
    assert not found.is_causal and found.later > 1e-3


@pytest.mark.parametrize("name", ["bert", "classifier", "states", "no positions", "hourglass"])
def test_models_that_read_both_ways_reach_everything(tmp_path, name):
    keys = PADDED.get(name, {"hierarchy": NESTED, "causal": False})
    found = measured(tmp_path, keys)
    assert (found.own > 0).all() and found.is_full and not found.is_causal
    assert found.of == ("states" if name == "classifier" else "logits")


@pytest.mark.parametrize("name", PADDED)
def test_padding_changes_nothing_that_is_not_padding(name):
    """Behind a text; before it and within it where places do not count."""
    keys = PADDED[name]
    model, random = make(keys), np.random.default_rng(3)
    ids = torch.as_tensor(np.stack([random.permutation(23)[:11] for _ in range(2)]))  # no ties
    keep = torch.ones(2, 11, dtype=torch.bool)
    keep[0, 7:] = False
    if keys.get("positions") in ("none", "rotary") or keys.get("family") in ("lstm", "window"):
        keep[1, :3] = False
    if keys.get("positions") == "none" or name == "lstm":
        keep[1, 5] = False
    other = ids.where(keep, (ids + 1) % 23)
    one, two = model(Tokens(ids, keep)), model(Tokens(other, keep))
    if one.ndim == 2:  # a classifier reads [CLS]
        one, two = one[:, None].expand(-1, 11, -1), two[:, None].expand(-1, 11, -1)
    assert torch.equal(one[keep], two[keep])
    for row in (0, 1):
        alone = model(ids[row : row + 1, keep[row]])[0]
        assert (one[row, keep[row]] - alone).abs().max() < 1e-12


@pytest.mark.parametrize("keys", [{"family": "lstm"}, {"family": "window", "window": 3}], ids=str)
def test_a_text_under_way_is_read_as_a_whole_one(tmp_path, keys):
    model = opened(tmp_path, make(keys), "float64")
    writing = Writing(model, model.from_ids(IDS[:4]))
    for _ in range(9):
        writing.add(choose_token(writing.logits, None, 1.0))
    whole = model.run(np.concatenate([IDS[:4], writing.added])).logits
    assert np.abs(whole[-1] - writing.logits).max() < 1e-12
    assert [int(row.argmax()) for row in whole[3:-1]] == writing.added


# --- how far models reach -------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "depth", "causal"), [
    (2, 1, True), (2, 4, True), (4, 2, True), (5, 3, True), (3, 1, False), (3, 3, False),
    (5, 2, False),
])  # fmt: skip
def test_windows_reach_layers_times_radius_and_no_further(tmp_path, window, depth, causal):
    keys = {"family": "window", "window": window, "n_layers": depth, "causal": causal}
    found, (rows, columns) = measured(tmp_path, keys), np.indices((13, 13))
    far = depth * (window - 1) // (1 if causal else 2)
    band = (abs(rows - columns) <= far) & (~np.array(causal) | (columns <= rows))
    assert np.array_equal(found.own > 0, band) and found.is_causal == causal
    assert found.farthest == min(far, 12)
    assert not causal or found.fades(0.0) == (far + 1 if far < 12 else None)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_an_hourglass_without_layers_around_its_waist_lags(tmp_path, factor):
    """Token j reaches output i where its group is complete at i, or where i is j (models A.3)."""
    found = measured(tmp_path, {"hierarchy": f"0@1 2@{factor} 0@1", **PLAIN})
    rows, columns = np.indices(found.own.shape)
    wanted = (columns <= rows // factor * factor) | (rows == columns)
    assert np.array_equal(found.own > 0, wanted)
    # of the newest k - 1 the output's own token comes beside the waist
    assert found.is_causal and found.lag == factor - 2


def test_a_decoder_reaches_its_own_text_back_and_the_other_whole(tmp_path):
    found = measured(tmp_path / "a", {"form": "encoder-decoder"}, IDS[:7], IDS[:5])
    assert found.own.shape == (5, 5) and found.source.shape == (5, 7) and found.is_causal
    assert (found.source > 0).all() and found.matrix.shape == (5, 12)
    model = opened(tmp_path / "b", make({"form": "decoder", "cross": True}), "float64")
    states = model.from_states(np.random.default_rng(0).normal(size=(6, 12)))
    found = reach(model, states, model.from_ids(IDS[:4]))
    assert found.is_causal and found.own.shape == (4, 4) and (found.source > 0).all()


def test_numbers_are_those_of_one_gradient_after_the_other(tmp_path, monkeypatch):
    model, ids = opened(tmp_path, make({"form": "decoder"}), "float64"), torch.tensor(IDS[:13])
    embedded = model.module.token_embedding(ids[None])
    voice = torch.randn(23, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def spoken(x):
        return model.module(Tokens(ids[None], embedded=x), Run())[0] @ voice

    wanted = torch.autograd.functional.jacobian(spoken, embedded)[:, 0].norm(dim=-1)
    for room in (attribution.REACH_NUMBERS, 1, 40_000):  # all at once, one by one, and some
        monkeypatch.setattr(attribution, "REACH_NUMBERS", room)
        found = reach(model, model.from_ids(ids.numpy()))
        assert np.abs(found.own - wanted.numpy()).max() < 1e-9


def test_padding_reaches_nothing_and_long_texts_are_refused_before_any_work(tmp_path):
    model = opened(tmp_path, make({"family": "window", "window": 3}), "float64")
    prompt = model.from_ids(IDS[:13], attention_mask=[1] * 6 + [0] + [1] * 6)
    assert not reach(model, prompt).own[np.arange(13) != 6, 6].any()
    with pytest.raises(HgvizError, match="1,025 tokens"):
        reach(model, model.from_ids(np.zeros(1025, int)))
