"""Quadratic positions: Gaussians over distance, and the convolutions that they can become."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgviz import tasks
from hgviz.analysis import habits
from hgviz.core import HeadId, HgvizError
from hgviz.maps import LazyMap, Rule
from hgviz.maps.rule import Quadratic
from hgviz.models.attention import weights
from hgviz.models.checkpoints import read
from hgviz.models.config import parse_config
from hgviz.models.model import module_of
from hgviz.models.pruning import remove_heads
from hgviz.models.run import Run
from hgviz.models.trials import GateGradientRecorder
from hgviz.store import open_capture
from tests.models.building import PLAIN, make_transformer, write_transformer
from tests.models.test_capturing import attended, close, exact_map, opened, rounding

__all__ = ["attended"]  # a fixture

KEYS = {"d_model": 24, "n_heads": 6, "positions": "quadratic"}
FORMS = {
    "decoder": {"form": "decoder"},
    "encoder": {"form": "encoder", "goal": "masked"},
    "both": {"form": "encoder-decoder", "n_layers": 1},
}
KINDS = [
    "softmax",
    "rbf",
    "poly2",
    "raw",
    "ymish",
    ["softmax", "rbf", "topk", "tanh", "rbf", "elu"],
]


def model_of(form, content=True, **keys):
    return make_transformer(**KEYS, **FORMS[form], content=content, top_k=3, **keys)


def gaussian(n, alpha, centre, causal):
    """(n, n): exp(-alpha (delta - centre)^2) over the sum of its row."""
    far = torch.arange(n)[None] - torch.arange(n)[:, None].double()
    found = torch.exp(-alpha * (far - centre) ** 2)
    found = found.tril() if causal else found
    return found / found.sum(-1, keepdim=True)


@pytest.mark.parametrize("causal", [False, True])
def test_without_content_a_head_is_the_gaussian_over_its_sum(causal):
    alpha, centre = torch.tensor([1.7, 0.02, 0.5]).double(), torch.tensor([2.0, -3.5, 0]).double()
    rule = Rule(0.35, ("softmax",) * 3, (None,) * 3, causal=causal)
    nothing = torch.zeros(1, 3, 11, 1).double()
    terms = Quadratic(torch.stack([alpha / 0.35, centre], -1))
    found = weights(nothing, nothing, rule, relative=terms)[0]
    for head in range(3):
        wanted = gaussian(11, alpha[head], centre[head], causal)
        assert (found[head] - wanted).abs().max() < 1e-12


@pytest.mark.parametrize("form", ["encoder", "decoder"])
def test_a_layer_of_places_alone_is_its_gaussians_over_their_sums(form):
    attention = model_of(form, content=False).middle["0"].attn
    x, recorder = torch.zeros(1, 11, 24).double(), GateGradientRecorder()
    attention(x, x, None, None, Run(observers=[recorder]))
    call = recorder.calls[0]
    found = weights(call.q, call.k, attention.rule, relative=call.relative)[0]
    sides = zip(attention.places.spread, attention.places.centre, strict=True)
    for head, (spread, centre) in enumerate(sides):  # a spread is 1 / sigma
        wanted = gaussian(11, spread**2 / 2, centre, form == "decoder")
        assert (found[head] - wanted).abs().max() < 1e-9


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name, kernel", [
    ("softmax", lambda q, k: torch.exp(q @ k.mT / 2)),
    ("rbf", lambda q, k: torch.exp(-torch.cdist(q, k) ** 2 / 4)),
])  # fmt: skip
def test_with_content_it_is_the_product_of_two_kernels(name, kernel, causal):
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 2, 9, 4, generator=draw, dtype=torch.float64) for _ in range(2))
    curve = torch.tensor([[0.6, -1.0], [0.1, 2.5]]).double()
    rule = Rule(0.5, (name,) * 2, (None,) * 2, causal=causal)
    found = weights(q, k, rule, relative=Quadratic(curve))[0]
    for head, (a, c) in enumerate(curve):
        far = torch.arange(9)[None] - torch.arange(9)[:, None].double()
        both = kernel(q[0, head], k[0, head]) * torch.exp(-a / 2 * (far - c) ** 2)
        both = both.tril() if causal else both
        assert (found[head] - both / both.sum(-1, keepdim=True)).abs().max() < 1e-12


@pytest.mark.parametrize("form", ["encoder", "decoder"])
def test_narrow_heads_are_a_convolution(form):
    """As many taps as heads, W_O W_V of a head each (Cordonnier et al. 2020, theorem 1); where a
    tap falls out of the text, it takes the token at the edge."""
    model = model_of(form, content=False)
    attention = model.middle["0"].attn
    centres = [-4, -2, -1, 0, -3, -5] if form == "decoder" else [-1, 0, 1, 2, -2, 3]
    with torch.no_grad():
        attention.places.spread.fill_(1e3)
        attention.places.centre.copy_(torch.tensor(centres))
    x = torch.randn(2, 17, 24, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = attention(x, x, None, None, Run())
    v, o = (part.weight.unflatten(axis, (6, 4)) for part, axis in
            ((attention.v, 0), (attention.o, 1)))  # fmt: skip
    taps = torch.einsum("ohd,hdi->hoi", o, v)  # (H, d, d)
    bias = attention.o.bias + attention.o.weight @ attention.v.bias
    order = sorted(range(6), key=lambda head: centres[head])
    left, right = -min(centres), max(centres)
    padded = F.pad(x.mT, (left, right), mode="replicate")
    wanted = F.conv1d(padded, taps[order].permute(1, 2, 0), bias).mT
    assert [centres[head] for head in order] == list(range(-left, right + 1))
    assert (found - wanted).abs().max() < 1e-9


@pytest.mark.parametrize("content", [True, False])
@pytest.mark.parametrize("activation", KINDS, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_tiles_are_the_weights_of_the_model(tmp_path, attended, form, activation, content):
    model = opened(tmp_path / "model", model_of(form, content, activations=activation))
    random, mask = np.random.default_rng(0), np.arange(22) >= 3
    prompt, target = model.from_ids(random.integers(0, 23, 22), mask), None
    if form == "both":
        target = model.from_ids(random.integers(0, 23, 13), np.arange(13) < 11)
    capture = tasks.capture(model, prompt, tmp_path / "a.h5", target=target)
    again = open_capture(tmp_path / "a.h5")
    for call, one, maps in zip(attended, capture.maps, again.maps, strict=True):
        assert isinstance(maps, LazyMap) and maps.verify_max_abs < 1e-4
        layer = model.spec.layers[capture.maps.index(one)]
        assert isinstance(maps.factors.rule.relative, Quadratic) == (layer.role == "self")
        assert maps.factors.q.shape[-1] == (4 if content or layer.role == "cross" else 1)
        for head in maps.heads:
            (exact, sound), open_ = exact_map(call, head), rounding(call, head)
            open_ = open_ + 2.0**-20 * spread_of(call, head)
            assert close(maps.read(head)[sound], exact[sound], open_[sound]), (layer, head)


def spread_of(call, head):
    """What float32 leaves open of the square of a distance."""
    relative = call[4]["relative"]
    if relative is None:
        return 0.0
    a, c = relative.curve[head].tolist()
    return abs(a) * call[3].scale * (22 + abs(c)) ** 2


def test_heads_of_places_alone_are_convolutions_around_their_centres(tmp_path):
    centres, spread = [0.0, -1.0, -2.0, -3.0, -1.5, -2.5], 2.0
    module = model_of("decoder", content=False, max_positions=200)
    for layer in module.middle.values():
        with torch.no_grad():
            layer.attn.places.spread.fill_(spread)
            layer.attn.places.centre.copy_(torch.tensor(centres))
    model = opened(tmp_path, module)
    random = np.random.default_rng(0)
    texts = [tasks.capture(model, model.from_ids(random.integers(0, 23, n))) for n in (150, 90)]
    found = habits.measure(texts.__getitem__, range(2))
    deltas = np.arange(-30, 1)
    for one in found.facts.values():
        kernel = np.exp(-(spread**2) / 2 * (deltas - centres[one.head.head]) ** 2)
        kernel /= kernel.sum()
        centre = (kernel * deltas).sum()
        width = np.sqrt((kernel * (deltas - centre) ** 2).sum())
        assert one.metrics["convolution"] > 0.99 and one.metrics["variance"] < 1e-12
        assert one.metrics["centre"] == pytest.approx(centre, abs=0.05)
        assert one.metrics["width"] == pytest.approx(width, abs=0.15)  # the first rows lack keys
        assert "convolution" in [each.name for each in one.named]


def test_a_file_without_a_head_has_lost_its_place_as_well(tmp_path):
    found = read(write_transformer(tmp_path / "a", **KEYS, form="decoder", content=False))
    off = frozenset({HeadId(0, 1), HeadId(1, 4)})
    less = remove_heads(found, off)
    assert less.tensors["middle.0.attn.places.centre"].shape == (5,)
    ids = torch.arange(12)[None]
    one = module_of(found.config, found.tensors, "cpu", torch.float64)(ids, Run(off=off))
    two = module_of(less.config, less.tensors, "cpu", torch.float64)(ids)
    assert (one - two).abs().max() < 1e-12


def test_widths_and_centres_learn():
    model = model_of("decoder").requires_grad_(True)
    model(torch.arange(12)[None]).square().sum().backward()
    for layer in model.middle.values():
        assert (layer.attn.places.spread.grad != 0).all()
        assert (layer.attn.places.centre.grad != 0).all()


@pytest.mark.parametrize("keys, why", [
    ({"activations": "linear"}, "features of tokens"),
    ({"form": "encoder", "goal": "masked", "slots": 4, "max_positions": 9}, "no distance to"),
    ({"positions": "rotary", "content": False}, "without content"),
])  # fmt: skip
def test_what_cannot_be_built_says_why(keys, why):
    with pytest.raises(HgvizError, match=why):
        parse_config({**PLAIN, "family": "transformer", "positions": "quadratic", **keys})
    with pytest.raises(HgvizError, match="features of tokens"):
        model_of("decoder").config.replace(activations=("linear",))
