"""One layer that attends, by every rule, beside its dense maps in float64; and the activations."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.maps import (
    Diagonals,
    Grouped,
    LazyMap,
    Quadratic,
    Relative,
    Rule,
    pool,
    with_statistics,
)
from hgviz.maps.tiles import SurveyRequest, survey
from hgviz.models import attention, run
from hgviz.models.attention import attend, factors, weigh, weights
from hgviz.models.layers import Attention
from hgviz.models.mechanisms import Mixtures
from hgviz.models.run import AttentionCall, attend_by_maps
from tests.closeness import scaled_error
from tests.models.building import attended, build, captured_layer, opened
from tests.models.references import dense_context, dense_maps, fill_empty

NORMS = [None, "l2", "l2-literal"]
quick = settings(max_examples=100, deadline=None, derandomize=True)


def draw(*shape, seed=0):
    """Float64 numbers around 0."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- every rule -----------------------------------------------------------------------------------

N = 37
COLUMNS = {
    "heads": [
        *((name,) * 4 for name in ACTIVATIONS),
        ("softmax", "topk", "softmax", "topk"), ("linear", "softmax", "ymish", "rbf"),
        ("softmax1", "tanh", "tanh", "raw"),
    ],
    "norm": [*NORMS, "of ymish"],
    "cells": [
        {}, {"causal": True}, {"causal": True, "near": (2, 5)}, {"causal": True, "near": (0, 1)},
        {"causal": True, "band": (4, 0)}, {"band": (3, 6)}, {"chunk": 5},
        {"causal": True, "chunk": 5}, {"causal": True, "band": (9, 0), "near": (3, 4)},
        {"stride_q": 3}, {"causal": True, "stride_q": 3}, {"causal": True, "stride_k": 4},
        {"stride_q": 4, "windowed": True}, {"stride_k": 3, "windowed": True},
        {"stride_q": 4, "windowed": True, "causal": True},
    ],
    "keep": ["all", "holes", "padded at the left", "padded at the right", "nothing"],
    "distance": [None, "relative", "quadratic", "diagonals"],
    "key groups": [4, 2, 1],
    "extra": [{}, {"softcap": 9.0}, {"sinks": np.array([-1.0, 0.5, 1.0, 0.0])}],
    "empty_rows": ["zeros", "uniform"],
    "dtype": [torch.float64, torch.float32, torch.bfloat16, torch.float16],
}  # fmt: skip


def allowed(row):
    """Whether some model has such a rule."""
    cells, strides = row["cells"], {"stride_q", "stride_k"} & row["cells"].keys()
    narrow = {"near", "band", "chunk"} & cells.keys()
    return (
        (row["distance"] != "diagonals" or not strides)
        and (row["distance"] is None or "windowed" not in cells)
        and (row["empty_rows"] == "zeros" or not narrow)
        and (row["distance"] is None or row["key groups"] == 4)
    )


def layer_of(row, seed=0):
    """q (2, 4, Q, 6), k and v (2, G, K, 6), the rule, keep (2, K) or None, and relative terms."""
    cells, names = dict(row["cells"]), row["heads"]
    near = cells.pop("near", None)
    queries = -(-N // cells.get("stride_q", 1))
    keys = queries * cells["stride_q"] if "stride_q" in cells else -(-N // cells.get("stride_k", 1))
    norms = [row["norm"] if row["norm"] in NORMS else ACTIVATIONS[name].norm for name in names]
    rule = Rule(
        0.4, names, tuple(norms), top_k=3, empty_rows=row["empty_rows"], **cells, **row["extra"]
    )
    if near is not None:
        rule = rule.with_streaming((0, 1, 3), near)
    q = draw(2, 4, queries, 6, seed=seed)
    k, v = draw(2, 2, row["key groups"], keys, 6, seed=seed + 1)
    places = torch.arange(keys)[None]
    keep = {
        "all": None, "holes": places % 7 > torch.tensor([[1], [2]]),
        "padded at the left": places >= torch.tensor([[0], [keys // 3]]),
        "padded at the right": places < torch.tensor([[keys // 2], [keys]]),
        "nothing": places < torch.tensor([[0], [2]]),
    }[row["keep"]]  # fmt: skip
    shapes = (4, 6, 8), (4, 6), (4, 6), (4, 6)
    terms = {
        None: lambda: None,
        "relative": lambda: Relative(*(draw(*one, seed=9) for one in shapes),
                                     cells.get("stride_k", 1)),
        "quadratic": lambda: Quadratic(draw(4, 2, seed=9).abs() * torch.tensor([0.05, -3.0])),
        "diagonals": lambda: Diagonals(draw(4, 2 * N - 1, seed=9), 1 - N),
    }[row["distance"]]()  # fmt: skip
    return q, k, v, rule, keep, terms


def drawn(count):
    """So many rows that are allowed, each of one value of every column."""
    random = np.random.default_rng(0)
    while count:
        row = {name: values[random.integers(len(values))] for name, values in COLUMNS.items()}
        if allowed(row):
            count -= 1
            yield row


BASE = {name: values[0] for name, values in COLUMNS.items()} | {"norm": None}
ROWS = [
    *drawn(150),
    *({**BASE, name: value} for name, values in COLUMNS.items() for value in values),
    *({**BASE, "heads": ("linear",) * 4, "cells": cells} for cells in COLUMNS["cells"]),
]
# rows of a block, and cells from which on a map is computed in parts, or again on the way back
SMALL = {
    "ROWS": 7, "LINEAR_ROWS": 3, "LEAST_ROWS": 5, "LONG_CELLS": 1, "RECOMPUTE_CELLS": 1,
    "LEAST_CELLS": 1, "CACHE_ROWS": 7,
}  # fmt: skip


@pytest.mark.parametrize("heads", COLUMNS["heads"], ids="-".join)
def test_every_rule_gives_the_maps_the_context_and_the_slopes_of_its_formulas(heads, monkeypatch):
    for row in (row for row in ROWS if row["heads"] == heads):
        q, k, v, rule, keep, terms = layer_of(row)
        maps = dense_maps(q, k, rule, keep, terms)
        assert (weights(q, k, rule, keep, terms) - maps).abs().max() < 1e-11, row
        wanted = dense_context(maps, v, rule, keep)
        inputs = [part.requires_grad_() for part in (q, k, v)]
        loss = draw(*wanted.shape, seed=5)
        slopes = torch.autograd.grad(
            (dense_context(dense_maps(q, k, rule, keep, terms), v, rule, keep) * loss).sum(), inputs
        )
        for limits in ({}, SMALL):
            with monkeypatch.context() as patch:
                for name, value in limits.items():
                    patch.setattr(attention, name, value)
                with torch.no_grad():
                    off = attended(q, k, v, rule, keep=keep, relative=terms, off=(1, 2))
                context = attend(q, k, v, rule, keep=keep, relative=terms)
                found = torch.autograd.grad((context * loss).sum(), inputs, allow_unused=True)
            assert scaled_error(context, wanted) < 1e-11, row
            assert not off[:, 1:3].any() and scaled_error(off[:, ::3], wanted[:, ::3]) < 1e-11
            for one, other in zip(found, slopes, strict=True):
                assert scaled_error(one, other) < 1e-9, row


@pytest.mark.parametrize("heads", COLUMNS["heads"], ids="-".join)
def test_every_rule_is_captured_as_factors_and_as_weights(heads, monkeypatch):
    for row in (row for row in ROWS if row["heads"] == heads):
        q, k, v, rule, keep, terms = layer_of(row, seed=3)
        exact = row["dtype"]
        q, k, v = (part[:1].to(exact) for part in (q, k, v))
        keep = None if keep is None else keep[:1]
        terms = terms if terms is None else terms.map(lambda part: part.to(exact))  # noqa: B023
        with torch.no_grad():
            maps = fill_empty(dense_maps(q, k, rule, keep, terms), rule, keep)[0].numpy()
        monkeypatch.setattr(attention, "ROWS", 11)
        context, record = captured_layer(q, k, v, rule, keep=keep, relative=terms)
        shared = row["key groups"] < 4 and len({*zip(heads, rule.norms, strict=True)}) == 1
        assert isinstance(record.k, Grouped) == shared
        lazy = LazyMap(record, range(4))
        dense_of, saved = attend_by_maps(AttentionCall(0, q, k, v, rule, keep, terms))
        rounding = {torch.bfloat16: 2**-8, torch.float16: 2**-11}.get(exact, 1e-6)
        assert lazy.verify_max_abs < 1e-4 * max(1, np.abs(maps).max()), row
        stored = torch.as_tensor(saved.values.astype(np.int32) << 16).view(torch.float32) if (
            exact == torch.bfloat16) else torch.as_tensor(saved.values)  # fmt: skip
        for head in range(4):
            close = 1e-6 if exact == torch.float64 else 1e-4
            if heads[head] == "linear":  # features are rounded too
                close = max(close, rounding)
            if heads[head] != "topk" or exact == torch.float64:  # of near ties either may win
                assert scaled_error(lazy.read(head), maps[head]) < close, row
            pooled = pool(np.abs(lazy.read(head)), 1)
            assert scaled_error(np.abs(lazy.read(head, zoom=1)), pooled) < 1e-6, row
            assert scaled_error(stored[head].double(), maps[head]) < rounding, row
        assert saved.signed == any(ACTIVATIONS[name].signed for name in heads)
        fills = row["empty_rows"] == "uniform" and keep is not None
        square = rule.stride_q == rule.stride_k
        assert saved.causal == (rule.causal and square and not fills)  # nothing above the diagonal
        if exact == torch.float64:
            assert scaled_error(context[0], dense_of[0]) < 1e-11


# --- activations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_masked_scores_weigh_nothing_and_extreme_scores_stay_finite(name):
    """Under every mask and norm; what is masked weighs 0 and changes nothing, bit for bit."""
    count, rows = 3 if name == "topk" else None, torch.arange(5) % 2 == 0
    masks = {
        "some": (torch.arange(7) > 2) | rows[:, None],
        "rows without keys": rows[:, None].expand(5, 7),
        "nothing": torch.zeros(5, 7, dtype=torch.bool), "all": torch.ones(5, 7, dtype=torch.bool),
    }  # fmt: skip
    for norm in NORMS:
        for keep in masks.values():
            scores = draw(2, 5, 7) * 3 if name != "linear" else draw(2, 5, 7).abs() + 0.1
            found = weigh(scores, keep, name, norm, count)
            other = torch.where(keep, scores, 1e30)
            assert torch.equal(weigh(other, keep, name, norm, count), found)
            for extreme in (0 * scores, torch.full_like(scores, -900.0).float()):
                extreme.requires_grad_()
                flat = weigh(extreme, keep, name, norm, count)
                assert flat.isfinite().all() and not flat[~keep.expand_as(flat)].any()
                flat.sum().backward()
                assert extreme.grad.isfinite().all()
            keys = keep[0]
            alone = weigh(scores[:, :1, keys], None, name, norm, count) if keys.any() else 0.0
            assert scaled_error(found[:, :1, keys], alone * torch.ones(1)) < 1e-14


wide = st.lists(st.floats(-80, 80, width=64), min_size=1, max_size=40)


@quick
@given(wide)
def test_softpick_and_softmax1_are_those_of_their_authors(row):
    """softpick within its epsilon, which their code adds after the largest score was taken away;
    softmax1 is softmax with a key of score 0 more, or a sink of 0."""
    s = torch.tensor(row).double()[None]
    excess = s.expm1() * (-s.max()).exp()
    theirs = excess.relu() / (excess.abs().sum() + 1e-8)
    assert (weigh(s, None, "softpick") - theirs).abs().max() < 2e-8
    found = weigh(s, None, "softmax1")
    with_key = F.pad(s, (0, 1)).softmax(-1)[:, :-1]
    assert torch.allclose(found, with_key, rtol=1e-13, atol=0)
    assert torch.allclose(found, weigh(s, None, "softmax", sinks=torch.zeros(1, 1)), 1e-13, 0)


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "linear"])
def test_the_k_largest_are_kept_of_any_activation_and_ties_with_them(name):
    scores = torch.tensor([[0.5, -3.0, 2.0, -0.1, 1.0, -2.0]]).double()
    kept = weigh(scores, None, name, k=3)[0] != 0
    wanted = [0, 2, 4] if ACTIVATIONS[name].statistic == "lse" else [1, 2, 5]  # by magnitude
    assert kept.nonzero()[:, 0].tolist() == wanted
    if ACTIVATIONS[name].statistic == "none":  # the norm is that of all keys
        some, every = (weigh(scores, None, name, "l2", k)[0] for k in (3, 6))
        assert torch.equal(some[kept], every[kept])
    ties = torch.tensor([[3.0, 1.0, 2.0, 2.0, 0.5]]).double()
    assert (weigh(ties, None, name, k=2) != 0).tolist() == [[True, False, True, True, False]]
    assert torch.equal(weigh(ties, None, name, k=9), weigh(ties, None, name, k=5))


def test_keys_that_tie_for_the_last_place_are_all_attended_to():
    q, v = draw(1, 2, 9, 4), draw(1, 2, 20, 4, seed=2)
    k = draw(1, 2, 10, 4, seed=1).repeat_interleave(2, 2)
    rule = Rule(0.5, ("topk",) * 2, (None,) * 2, top_k=3)
    wanted = dense_context(dense_maps(q, k, rule), v, rule, None)
    with torch.no_grad():
        assert scaled_error(attend(q, k, v, rule), wanted) < 1e-11


@pytest.mark.parametrize("step", [0.0, 1e-7, 3e-6])
def test_keys_that_score_nearly_alike_are_listed(step):
    """A threshold between them would let either side of the gap through when it is recomputed."""
    random = torch.Generator().manual_seed(0)
    q = torch.randn(1, 1, 300, 16, generator=random)
    k = torch.randn(1, 1, 150, 16, generator=random).repeat_interleave(2, dim=2)
    k[:, :, 1::2] *= 1 + step
    rule = Rule(0.25, ("topk",), (None,), causal=True, top_k=5)
    record = factors(q, k, rule, None, None)
    wanted, tiles = weights(q, k, rule)[0, 0].numpy(), LazyMap(record, (0,))
    assert ((tiles.read(0) > 0) == (wanted > 0)).all()
    assert scaled_error(tiles.read(0), wanted) < 1e-5 and tiles.verify_max_abs < 1e-5
    assert np.array_equal(tiles.read(0, zoom=3), pool(tiles.read(0), 3))
    if step == 1e-7:
        assert len(record.kept) > 100 and np.isinf(record.threshold).sum() > 100


# --- what cannot be -------------------------------------------------------------------------------

SCORES = torch.zeros(1, 2, 3, 3)
RULE = Rule(0.5, ("softmax",) * 2, (None,) * 2)
TEXTS = SCORES.expand(3, 2, 2, 3, 3)
LONG = torch.zeros(1, 1, 1, 4).expand(1, 12, 30_000, 4)
REFUSED = {
    "unknown attention activation 'relu'": lambda: weigh(SCORES, None, "relu"),
    "unknown norm 'l3'. Choose from l2, l2-literal": lambda: weigh(SCORES, None, "tanh", "l3"),
    "topk needs k": lambda: weigh(SCORES, None, "topk"),
    "topk needs k, the": lambda: weigh(SCORES, None, "topk", None, 0),
    "a mask of keys must be boolean": lambda: weigh(SCORES, SCORES, "softmax"),
    "only one text can be captured": lambda: factors(*TEXTS[:2], RULE, None, None),
    "one text can be captured at a time": lambda: captured_layer(*TEXTS, RULE, dense=True),
    "need 43.2 GB, and 1.0 GB are free": lambda: attend_by_maps(
        AttentionCall(0, LONG, LONG, LONG, Rule(0.5, ("softmax",) * 12, (None,) * 12))
    ),
}


def test_what_cannot_be_is_one_line(monkeypatch):
    monkeypatch.setattr(run, "free_memory", lambda: 10**9)
    for words, call in REFUSED.items():
        with pytest.raises(HgvizError) as error:
            call()
        assert words in str(error.value) and "\n" not in str(error.value)


# --- maps longer than a tile ----------------------------------------------------------------------


@pytest.mark.parametrize("near, padded", [
    ((5, 150), True), ((300, 150), False), ((0, 1), False), ((5, 258), False),
])  # fmt: skip
def test_tiles_of_long_maps_of_heads_that_stream(near, padded):
    n = 900
    q, k = draw(1, 2, n, 8), draw(1, 2, n, 8, seed=1)
    keep = (draw(n, seed=2) < 0.8)[None] if padded else None
    rule = Rule(0.4, ("softmax",) * 2, (None,) * 2, causal=True)
    _, record = captured_layer(q, k, k, rule, keep=keep, streaming=(1,), near=near)
    maps = LazyMap(with_statistics(record), (0, 1))
    exact = dense_maps(q, k, rule.with_streaming((1,), near), keep)[0].numpy()
    for place, wanted in enumerate(exact):
        found = survey(maps, place, SurveyRequest(3))
        for i, j in np.ndindex(4, 4):
            cells = maps.weights(place, i, j)
            part = wanted[i * 256 : (i + 1) * 256, j * 256 : (j + 1) * 256]
            assert np.abs((0.0 if cells is None else cells) - part).max() < 1e-12
        peaks = pool(wanted, 3)
        assert scaled_error(maps.read(place, zoom=3), peaks) < 1e-6
        assert scaled_error(found.cells, peaks) < 1e-6
        assert scaled_error(found.total, wanted.sum(1)) < 1e-5
    assert maps.verify_max_abs < 1e-6
    # between the first keys and the latest there is nothing to compute; row 768 has 258 from 511 on
    assert (maps.weights(1, 3, 1) is None) == (near[0] < 256 and near[1] < 258)


# --- captures of whole models ---------------------------------------------------------------------


def prompts(model, tokens=22):
    """A text whose first three tokens are padding, and the decoder's where there is one."""
    random, mask = np.random.default_rng(0), np.arange(tokens) >= 3
    if model.spec.family == "dynamic":
        mask = np.arange(tokens) < tokens - 3
    if model.takes_states:
        states = random.normal(size=(tokens, 24)).astype(np.float32)
        prompt = model.from_states(states, mask)
    else:
        prompt = model.from_ids(random.integers(0, 23, tokens), mask)
    if not model.spec.two_texts:
        return prompt, None
    return prompt, model.from_ids(random.integers(0, 23, 13), np.arange(13) < 11)


def captured_prompts(model, out=None, **options):
    """A capture of the prompts."""
    prompt, target = prompts(model)
    return tasks.capture(model, prompt, out, target=target, **options)


def lengths_of_values(model, prompt, target):
    """By layers: the norm of each value behind its head's rows of W_O, by hooks and numpy."""
    values, hooks = {}, []
    for part in model.module.modules():
        if isinstance(part, Attention):

            def note(_, __, out, part=part):
                values[part.layer.index] = part, out[0].double()

            hooks.append(part.v.register_forward_hook(note))
    tasks.capture(model, prompt, target=target)
    for hook in hooks:
        hook.remove()
    lengths = {}
    for index, (part, v) in values.items():
        owners = [one for one in model.module.modules() if getattr(one, "attn", None) is part]
        mixtures = next((one.projection for one in owners if hasattr(one, "projection")), None)
        heads = v.unflatten(1, (-1, part.d_head)).transpose(0, 1)  # (H, n, D)
        if isinstance(mixtures, Mixtures):  # values of slots, made of those of real tokens
            keep = torch.tensor(prompt.attention_mask)[:, None]
            heads = copy.deepcopy(mixtures.value_mixture).double()((heads * keep)[None])[0]
        out = part.o.weight.double().unflatten(1, (-1, part.d_head))
        behind = torch.einsum("hkd,ehd->hke", heads, out)
        lengths[index] = behind.norm(dim=-1).detach().numpy()
    return lengths


@pytest.mark.parametrize("family", ["hourglass", "windowed", "both", "slots", "linformer"])
def test_keys_are_kept_with_the_lengths_of_what_they_give(family, tmp_path):
    model = opened(tmp_path, build(family, "softmax"))
    prompt, target = prompts(model)
    wanted = lengths_of_values(model, prompt, target)
    for dense in (False, True):
        for number, maps in enumerate(captured_prompts(model, dense=dense).maps):
            assert maps.value_norms.dtype == np.float32
            np.testing.assert_allclose(maps.value_norms[...], wanted[number], 1e-5, 1e-6)
