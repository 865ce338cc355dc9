"""The dynamic-pooling Hourglass against plain loops, its causality, and its boundaries."""

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.resolution import rollout
from hgviz.core import HgvizError
from hgviz.models.checkpoints import save
from hgviz.models.config import config_json, parse_config
from hgviz.models.dynamic import find_spikes, segment_means
from hgviz.models.layers import Tokens
from hgviz.models.model import open_model
from hgviz.models.run import CaptureRecorder, Run
from tests.models.building import make_transformer, write_checkpoint, write_transformer
from tests.models.segments import forward

SMALL = {"family": "dynamic", "n_layers": [2, 2, 1], "whitespace_id": 3}
KINDS = {
    "fixed": {"boundaries": "fixed", "shorten_factor": 3},
    "whitespace": {"boundaries": "whitespace"},
    "learned": {"boundaries": "learned", "feed_forward": "gelu"},
    "entropy": {"boundaries": "entropy", "d_head": 4},
    "unigram": {"boundaries": "unigram"},
}
N = 26
IDS = np.random.default_rng(5).integers(0, 23, (3, N))
IDS[:, 4::7] = 3  # some whitespace


def make(kind, seed=5, **changes):  # whose predictors close some segments in every text
    return make_transformer(seed, **{**SMALL, **KINDS[kind], **changes})


def run(model, ids, **more):
    with torch.no_grad():
        return model(Tokens(torch.as_tensor(ids), **more)).numpy()


def tapped(model, ids):
    """The maps of one text, as hgviz gives them to be kept."""
    from hgviz.maps import LazyMap

    found = {}
    tokens = Tokens(torch.as_tensor(ids)[None])
    with torch.no_grad():
        model(tokens, Run(observers=[CaptureRecorder(found.__setitem__)]))
    layers = model.config.layers
    return [
        np.stack([LazyMap(found[one.index], one.heads).read(head) for head in one.heads])
        for one in layers
    ]


# --- against the formulas -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_logits_maps_and_boundaries_are_those_of_the_formulas(kind):
    model = make(kind)
    tensors = {name: one.numpy() for name, one in model.state_dict().items()}
    config = config_json(model.config)
    logits = run(model, IDS)  # of all three, whose segments differ in number
    ends = model.boundaries(Tokens(torch.as_tensor(IDS))).numpy()
    assert ((ends.sum(1) > 3) & (ends.sum(1) < N - 3)).all()
    for ids, found, closes in zip(IDS, logits, ends, strict=True):
        wanted, maps, boundaries = forward(tensors, config, ids)
        np.testing.assert_array_equal(closes, boundaries)
        np.testing.assert_allclose(found, wanted, atol=1e-9)
        for one, other in zip(tapped(model, ids), maps, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_the_formulas_composed_are_the_rollout_of_a_capture(opened, kind):
    model, module = opened(kind)
    tensors = {name: one.numpy() for name, one in module.state_dict().items()}
    _, maps, closes = forward(tensors, config_json(model.config), IDS[0])
    groups = np.cumsum([0, *closes])  # the segment, from 1 on, that a token is in
    shares = np.array([groups[:-1] == one - 1 for one in range(1, groups[-1] + 1)], float)
    shares = np.vstack([np.zeros(N), shares / shares.sum(1, keepdims=True)])  # null group first
    read = np.eye(len(shares))[groups[1:]]

    def layers(found, size):
        whole = np.eye(size)
        for one in found:
            whole = (one.mean(0) + np.eye(size)) / 2 @ whole
        return whole

    def even(rows):
        total = rows.sum(1, keepdims=True)
        return rows / np.where(total > 0, total, 1)

    before = layers(maps[:2], N)
    below = layers(maps[2:4], len(shares)) @ shares @ before
    wanted = layers(maps[4:], N) @ even(before / 2 + even(read @ below) / 2)
    found = rollout(tasks.capture(model, model.from_ids(IDS[0])))
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_without_segments_it_is_a_plain_stack():
    model = make("learned", n_layers=[3])
    tensors = {name: one.numpy() for name, one in model.state_dict().items()}
    wanted, _, _ = forward(tensors, config_json(model.config), IDS[0])
    np.testing.assert_allclose(run(model, IDS)[0], wanted, atol=1e-9)
    assert not model.config.shortens and len(model.config.levels) == 1
    same = parse_config({**config_json(model.config), "n_layers": [3, 0, 0]})
    assert [one.name for one in same.layers] == ["middle.0", "middle.1", "middle.2"]


@pytest.mark.parametrize("ends", [[], [0], [25], [0, 1, 2, 3], [9, 10, 24], list(range(26))])
def test_given_boundaries_are_taken_whatever_the_model_thinks(ends):
    model = make("learned")
    tensors = {name: one.numpy() for name, one in model.state_dict().items()}
    closes = np.zeros((3, N), bool)
    closes[:, ends] = True
    found = run(model, IDS, boundaries=torch.as_tensor(closes))
    wanted, _, _ = forward(tensors, config_json(model.config), IDS[1], closes[1])
    np.testing.assert_allclose(found[1], wanted, atol=1e-9)


def test_fixed_boundaries_align_as_a_shift_by_one_less_than_the_factor():
    # group g of an Hourglass stands for the tokens gk - k + 1 .. gk, and is read from token gk on
    for factor in (2, 3, 5):
        model = make("fixed", shorten_factor=factor)
        ends = model.boundaries(Tokens(torch.as_tensor(IDS[:1])))[0].numpy()
        spans = model.config.spans(N, boundaries=ends)[1]
        assert spans[0].tolist() == [-1, -1]
        for group, (start, stop) in enumerate(spans[1:]):
            assert (start, stop) == (max(0, group * factor - factor + 1), group * factor + 1)


# --- causality ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefix_gives_what_it_gives_within_the_whole_text(kind):
    model = make(kind)
    whole = run(model, IDS)
    for n in range(1, N):
        np.testing.assert_allclose(run(model, IDS[:, :n]), whole[:, :n], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_another_ending_changes_nothing_before_it(kind):
    model, random = make(kind), np.random.default_rng(0)
    whole = run(model, IDS)
    for n in range(1, N, 2):
        other = IDS.copy()
        other[:, n:] = random.integers(0, 23, other[:, n:].shape)
        np.testing.assert_allclose(run(model, other)[:, :n], whole[:, :n], atol=1e-12)
        assert abs(run(model, other)[:, n:] - whole[:, n:]).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_comes_from_a_later_token(kind):
    model = make(kind).requires_grad_(False)
    ids = torch.as_tensor(IDS[:1])
    embedded = model.token_embedding(ids).requires_grad_()
    logits = model(Tokens(ids, embedded=embedded))
    weights = torch.randn(23, dtype=torch.float64)
    reach = np.zeros((N, N))
    for i in range(N):
        (slope,) = torch.autograd.grad(logits[0, i] @ weights, embedded, retain_graph=True)
        reach[i] = slope[0].abs().amax(-1)
    assert (np.triu(reach, 1) == 0).all() and (reach[np.tril_indices(N)] > 0).all()


def test_a_segment_that_was_read_before_its_end_would_be_seen():
    # what makes it causal: a mean is read from the boundary on, not within its segment
    model = make("fixed")
    closes = torch.zeros(1, N, dtype=torch.bool)
    closes[0, 9] = True
    whole = run(model, IDS[:1], boundaries=closes)
    other = IDS[:1].copy()
    other[0, 9] = (other[0, 9] + 1) % 23
    changed = abs(run(model, other, boundaries=closes) - whole).max(-1)[0]
    assert (changed[:9] < 1e-12).all() and (changed[9:] > 1e-9).all()


# --- masks, batches, heads ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_padding_at_the_end_changes_nothing(kind):
    model = make(kind)
    keep = torch.ones(3, N, dtype=torch.bool)
    keep[1, 17:] = keep[2, 5:] = False
    found = run(model, IDS, keep=keep)
    for row, count in enumerate((N, 17, 5)):
        wanted = run(model, IDS[row : row + 1, :count])[0]
        np.testing.assert_allclose(found[row, :count], wanted, atol=1e-12)


def test_what_is_masked_is_in_no_mean():
    x = torch.arange(1.0, 7).double()[None, :, None]
    closes, keep = torch.tensor([[0, 0, 1, 0, 1, 0.0]]), torch.tensor([[1, 0, 1, 1, 1, 1]]).bool()
    means = segment_means(x, closes.double(), keep)[0, :, 0]
    np.testing.assert_allclose(means, [2, 4.5], atol=1e-8)
    assert segment_means(x, torch.zeros(1, 6)).shape == (1, 0, 1)


# --- learning -------------------------------------------------------------------------------------


def test_means_have_the_gradient_of_the_dense_matrix():
    # of the boundaries, too: weights 1 - (s - number of the segment), divided by their sums
    torch.manual_seed(0)
    x = torch.randn(2, 9, 4, dtype=torch.float64)
    soft = torch.tensor([[0, 1, 0, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 0, 0, 0, 0, 1]]).double()
    one, other = soft.clone().requires_grad_(), soft.clone().requires_grad_()
    behind = other.cumsum(1) - other
    apart = torch.arange(4)[None, None] - behind[..., None]
    shares = torch.where(apart == 0, 1 - apart, 0.0)
    shares = shares / (shares.sum(1, keepdim=True) + 1e-9)
    wanted, found = torch.einsum("bns,bnd->bsd", shares, x), segment_means(x, one)
    np.testing.assert_allclose(found.detach(), wanted.detach(), atol=1e-12)
    slopes = torch.randn_like(found)
    (found * slopes).sum().backward()
    (wanted * slopes).sum().backward()
    assert other.grad.abs().max() > 0.01
    np.testing.assert_allclose(one.grad, other.grad, atol=1e-12)


def test_boundaries_that_are_learned_are_drawn_while_training_and_certain_after():
    model = make("learned").requires_grad_(True).train()
    ids = torch.as_tensor(IDS)
    torch.manual_seed(0)
    logits, cost = model.learn(ids)
    again, _ = model.learn(ids)
    assert not torch.equal(logits, again) and cost > 0
    cost.backward()
    assert model.down[0].boundary["in"].weight.grad.abs().max() > 0
    model.eval()
    assert torch.equal(model(ids), model(ids))


def test_as_many_boundaries_as_the_prior_wants_cost_least():
    model = make("learned", prior=0.25).train()
    model.down[0].boundary["out"].weight.data.zero_()
    costs = {}
    for logit in (-9.0, -1.1, 9.0):  # about none, a quarter, all
        model.down[0].boundary["out"].bias.data.fill_(logit)
        costs[logit] = model.learn(torch.as_tensor(IDS).repeat(20, 1))[1].item()
    assert costs[-1.1] < costs[-9.0] < costs[9.0]
    # -log P of none of 26 at 1/4, over 26
    assert costs[-9.0] == pytest.approx(-np.log(0.75), abs=0.02)


def test_entropy_rises_where_it_is_above_all_of_the_tokens_before():
    values = np.array([[1.0, 2, 2, 3, 1, 2, 4]])
    assert find_spikes(values, 1).astype(int).tolist() == [[1, 1, 0, 1, 0, 1, 1]]
    assert find_spikes(values, 2).astype(int).tolist() == [[1, 1, 0, 1, 0, 0, 1]]
    assert find_spikes(values[:, :1], 2).tolist() == [[True]]
    model = make("entropy").requires_grad_(True).train()
    logits, cost = model.learn(torch.as_tensor(IDS))
    cost.backward()
    assert model.down[0].boundary["out"].bias.grad is not None and cost > 0
    with pytest.raises(HgvizError, match="cannot be learned"):
        make("unigram").train().learn(torch.as_tensor(IDS))


# --- the folder -----------------------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path):
    def opening(kind, **changes):
        model = make(kind, **changes)
        save(tmp_path / kind, model.config, model.state_dict())
        return open_model(tmp_path / kind, dtype="float64"), model

    return opening


def test_its_own_folder_gives_the_same_logits(opened):
    for kind in KINDS:
        model, module = opened(kind)
        np.testing.assert_array_equal(model.run(IDS).logits, run(module, IDS))


def test_a_prompt_is_told_its_segments(opened):
    model, _ = opened("learned")
    prompt = model.from_ids(IDS[0])
    assert prompt.boundaries is None
    found = model.segmented(prompt)
    spans = model.spans(prompt)
    assert found.boundaries.sum() == len(spans[1]) - 1 and spans[1][0].tolist() == [-1, -1]
    assert model.segmented(found) is found
    ends = np.zeros(N, int)
    ends[[3, 11]] = 1
    cut = model.cut(prompt, ends)
    assert model.spans(cut)[1].tolist() == [[-1, -1], [0, 4], [4, 12]]
    given = model.run(IDS[0], boundaries=ends).logits
    np.testing.assert_array_equal(model.trace(cut), given)
    assert abs(given - model.run(IDS[0]).logits).max() > 1e-6
    assert prompt.digest != cut.digest


@pytest.mark.parametrize("wrong", [[1, 0], np.full(N, 2), np.ones((2, N), int), np.ones(N) / 2])
def test_boundaries_that_do_not_fit_are_one_error(opened, wrong):
    model, _ = opened("fixed")
    with pytest.raises(HgvizError, match="boundaries"):
        model.run(IDS[0], boundaries=wrong)


def test_other_models_take_no_boundaries(tmp_path):
    for folder in (
        write_checkpoint(tmp_path / "a"),
        write_transformer(tmp_path / "b", form="encoder", goal="states"),
    ):
        model = open_model(folder)
        with pytest.raises(HgvizError, match="does not take boundaries"):
            model.run([1, 2], boundaries=[0, 1])
        with pytest.raises(HgvizError, match="does not take boundaries"):
            model.cut(model.from_ids([1, 2]), [0, 1])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"n_layers": [1, 2]}, "three numbers"),
        ({"n_layers": [0, 0, 0]}, "a layer"),
        ({"n_layers": [2, 0, 1]}, "no layer reads"),
        ({"d_model": 9, "n_heads": 3}, "even width"),
        ({"boundaries": "whitespace", "whitespace_id": None}, "whitespace_id"),
        ({"whitespace_id": 23}, "ids end at 22"),
        ({"boundaries": "guessed"}, "boundaries"),
        ({"prior": 1.5}, "prior"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_is_refused(keys, said):
    base = {"vocab_size": 23, "d_model": 12, "n_heads": 2, **SMALL}
    with pytest.raises(HgvizError) as error:
        parse_config({**base, **keys})
    assert said in error.value.what
