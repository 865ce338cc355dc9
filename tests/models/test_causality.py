"""No causal form sees the future, exactly; the same check finds a leak where there is one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hgviz.core import HeadId
from hgviz.models import open_model
from hgviz.models.attention import rotate
from hgviz.models.families.hourglass import finish_steps
from tests.models.building import make_config, make_hourglass, write_checkpoint

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
    """R[i, j]: how much output i depends on the embedding of token j; models.md A.3."""
    model = make_hourglass(config)
    ids = torch.arange(length)[None] * 7 % config.vocab_size
    embedded = model.embed["token"](ids).detach().requires_grad_()
    logits = finish_steps(model.steps_from(embedded))[0]
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
def test_one_shift_less_leaks_and_the_check_finds_it(name):
    config = replace(make_config(**FORMS[name]), shift_offset=-1)
    assert leak(influence(config, 13)) > 1e-3


@pytest.mark.parametrize("name", [one for one in LEAKING if FORMS[one]["hierarchy"] == ONE])
def test_no_shift_leaks_and_the_check_finds_it(name):
    config = replace(make_config(**FORMS[name]), shift_offset=-2)
    assert leak(influence(config, 13)) > 1e-3


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
    for _ in model.trace(model.from_ids(np.full(36, 3)), tap=tapped.__setitem__):
        pass
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
