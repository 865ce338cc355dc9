"""Attributions beside captum, gradients of scores beside dense maps, costs counted by hand, and how
far models reach: later tokens, padding, other texts."""

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients, LayerConductance

from hgviz.core import HeadId, HgvizError, Prompt
from hgviz.models import attribution, open_model
from hgviz.models.attribution import (
    AnswerLogit,
    AttributionPath,
    ScoreGradients,
    log_odds,
    mixing_costs,
)
from hgviz.models.config import parse_config
from hgviz.models.hourglass import Hourglass
from hgviz.models.layers import Tokens, attention_modules
from hgviz.models.model import Model
from hgviz.models.run import Run
from hgviz.tasks import reach
from tests.models.building import (
    PLAIN,
    make_config,
    make_hourglass,
    make_transformer,
    make_unattending,
    opened,
)
from tests.models.references import (
    dense_context,
    dense_maps,
    dense_scores,
    head_map,
    visible_cells,
)
from tests.models.test_heads_off import MODELS, tokens_of

LABELS = {"goal": "classes", "labels": ["a", "b", "c"]}
SOME = ("windowed, linear down", "decoder", "encoder-decoder", "nothing to read")


def prompt_of(length, seed=0, mask=None):
    ids = np.random.default_rng(seed).integers(0, 23, length)
    spans = np.array([(i, i + 1) for i in range(length)])
    return Prompt("a" * length, ids, ("a",) * length, spans, attention_mask=mask)


def model_of(name):
    module = MODELS[name]
    return Model(module, module.config.spec("tiny", "", 1), None, "cpu", "float64")


# --- integrated gradients -------------------------------------------------------------------------


@pytest.fixture(params=SOME)
def case(request):
    """A model, its text (two where it reads two), and an answer of it."""
    model = model_of(request.param)
    classes = model.spec.goal == "classes"
    answer = AnswerLogit(1) if classes else AnswerLogit(5, 7)
    mask = np.array([True] * 9 + [False] * 2) if classes else None
    text = prompt_of(11, mask=mask)
    return model, text, (prompt_of(8, 1) if model.spec.two_texts else None), answer


def plainly(model, text, target, answer):
    """The answer as a function of embeddings, which captum is given, with both ends of the path."""
    module, main = model.module, text if target is None else target
    hourglass = isinstance(module, Hourglass)
    table = (module.embed["token"] if hourglass else module.embed.token).weight

    def repeated(values, count):
        return None if values is None else torch.tensor(values).expand(count, -1)

    def forward(*xs):
        count, run = len(xs[0]), Run()
        keep = repeated(main.attention_mask, count)
        if hourglass:
            logits = module(Tokens(keep=keep, embedded=xs[0]), run)
        else:
            source = None
            if target is not None:
                source = Tokens(repeated(text.ids, count), embedded=xs[1])
            tokens = Tokens(repeated(main.ids, count), keep, source=source)
            logits = module.from_embeddings(module.embed.add_positions(xs[0]), tokens, run)
        if answer.position is None:
            return logits[:, answer.number]
        return logits[:, answer.position, answer.number]

    texts = [main] if target is None else [target, text]
    ends = tuple(table[torch.tensor(one.ids)][None] for one in texts)
    return forward, ends, tuple(table.mean(0).expand_as(end) for end in ends)


def near(found, wanted, exact=2e-6):
    """captum keeps the sizes of its steps in float32."""
    wanted = np.asarray(wanted)
    return np.abs(found - wanted).max(initial=0) <= exact * max(1e-3, np.abs(wanted).max(initial=0))


def test_tokens_and_heads_are_those_of_captum(case, monkeypatch):
    monkeypatch.setattr(attribution, "POINTS_TOKENS", 40)  # some points at a time
    model, text, target, answer = case
    found = AttributionPath(model, text, answer, target).integrate(steps=9)
    forward, ends, starts = plainly(*case)
    wanted = IntegratedGradients(forward).attribute(ends, starts, n_steps=9)
    for mine, one in zip((found.tokens, found.source), wanted, strict=False):
        assert near(mine, one.detach().sum(-1)[0])
    assert (found.source is None) == (target is None)
    assert found.value == pytest.approx(float(forward(*ends)), abs=1e-12)
    assert found.baseline == pytest.approx(float(forward(*starts)), abs=1e-12)
    heads = []
    for layer in (one for one in attention_modules(model.module) if one.layer.heads):
        one = LayerConductance(forward, layer.o).attribute(
            ends, starts, n_steps=8, attribute_to_layer_input=True
        )
        heads += one.detach().unflatten(-1, (-1, layer.d_head)).sum((0, 1, 3)).tolist()
    assert len(found.heads) == len(model.spec.heads)
    assert near(found.heads, heads)


# --- gradients of scores and weights --------------------------------------------------------------

ACTIVATIONS = ("topk", "softmax1", "softpick", "sigmoid", "selu", "linear")
SCORED_FAMILIES = ("hourglass", "narrower inside, windowed", "shared", "synthesizer", "linformer")
SCORED = {
    **{name: MODELS[name] for name in SCORED_FAMILIES},
    "activations": make_transformer(
        form="encoder", n_heads=6, activations=list(ACTIVATIONS), top_k=3, **LABELS
    ),
    "ymish": make_transformer(form="encoder", activations="ymish", norms={"ymish": "l2"}, **LABELS),
}


def every_logit(logits):
    """Some number that depends on every logit."""
    return (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum()[None]


def by_dense_maps(model, tokens, monkeypatch):
    """The value and {(layer, place): (scores, weights, dL/dS, dL/dA)}: dL/dA of a cell is its value
    times the gradient of its row's context, dL/dS that through the formula of the weights."""
    calls = []

    def attend(q, k, v, rule, *, keep=None, relative=None, **_):
        context = dense_context(dense_maps(q, k, rule, keep, relative), v, rule, keep)
        leaf = torch.zeros_like(context, requires_grad=True)
        calls.append((leaf, q, k, v, rule, keep, relative))
        return context + leaf

    with monkeypatch.context() as patch:
        patch.setattr("hgviz.models.run.attend", attend)
        value = every_logit(model(tokens))
    leaves = [call[0] for call in calls]
    slopes = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    found = {}
    for layer, (slope, (_, q, k, v, rule, keep, relative)) in enumerate(
        zip(slopes, calls, strict=True)
    ):
        cells = visible_cells(rule, q.shape[2], k.shape[2], keep)
        for place in range(q.shape[1]):
            seen = cells[:, place]
            scores = dense_scores(q[:, place], k[:, place], rule, relative, place)
            scores = torch.where(seen, scores, 0.0).detach().requires_grad_()
            weights = head_map(scores, rule, place, seen)
            at_weights = torch.where(seen, slope[:, place] @ v[:, place].mT, 0.0).detach()
            (at_scores,) = torch.autograd.grad(weights, scores, at_weights)
            parts = scores, weights, torch.where(seen, at_scores, 0.0), at_weights
            found[layer, place] = tuple(part[0].detach() for part in parts)
    return float(value.detach()), found


@pytest.mark.parametrize("name", SCORED)
def test_gradients_are_those_of_autograd_through_dense_maps(name, monkeypatch):
    model = SCORED[name].requires_grad_(False)
    tokens = tokens_of(model, 1)
    value, wanted = by_dense_maps(model, tokens, monkeypatch)
    found = ScoreGradients(model, tokens, every_logit)
    assert abs(found.value - value) <= 1e-9 * max(1, abs(value))
    places = set()
    for layer in found.layers:
        heads, queries, _ = found.shape(layer)
        if not heads:
            continue
        slopes = found.rows(layer, range(queries))
        for at, _ in enumerate(slopes.heads):
            ours = (slopes.scores, slopes.weights, slopes.at_scores, slopes.at_weights)
            for one, other in zip(ours, wanted[layer, at], strict=True):
                assert np.abs(one[at] - other.numpy()).max() <= 1e-9 * (1 + other.abs().max())
            places.add((layer, at))
    assert places == set(wanted)


def test_some_rows_are_rows_of_the_whole():
    model = make_transformer(form="decoder", n_heads=4, activations=["ymish", "softmax"] * 2)
    found = ScoreGradients(model.requires_grad_(False), tokens_of(model, 1, 40), every_logit)
    assert found.shape(1) == (4, 40, 40)
    for rows in (range(0, 16), range(5, 9), range(39, 40)):
        slopes = found.rows(1, rows)
        for head in slopes.heads:
            whole, part = found.head(HeadId(1, head)), found.head(HeadId(1, head), rows)
            for name in ("scores", "weights", "at_scores", "at_weights"):
                wanted = getattr(whole, name)[0][rows.start : rows.stop]
                assert np.abs(getattr(slopes, name)[head] - wanted).max() <= 1e-12
                assert np.abs(getattr(part, name)[0] - wanted).max() <= 1e-12
    for head, rows in ((HeadId(0, 7), None), (HeadId(9, 0), None), (HeadId(0, 0), range(0, 99)),
                       (HeadId(0, 0), range(0, 9, 2)), (HeadId(0, 0), range(4, 4))):  # fmt: skip
        with pytest.raises(HgvizError):
            found.head(head, rows)


def test_log_odds():
    logits = torch.randn(1, 5, 7, dtype=torch.float64)
    wanted = [1, 2, 6, 0, -100]
    p = torch.softmax(logits[0], -1)[range(4), wanted[:4]]
    assert abs(log_odds(wanted)(logits) - torch.log(p / (1 - p)).sum()) <= 1e-12
    p = torch.softmax(logits[0, 0], -1)[5]
    assert abs(log_odds(5)(logits[:, 0]) - torch.log(p / (1 - p))) <= 1e-12
    for unknown in (9, [1, 2], [1, 2, 3, 4, 7]):
        with pytest.raises(HgvizError):
            log_odds(unknown)(logits)


# --- costs of mixing, counted by hand -------------------------------------------------------------


def counted(n, **keys):
    """The rows of a model, but the fields that a test says nothing of."""
    rows = mixing_costs(parse_config({"vocab_size": 23, "d_model": 12, **keys}), n)
    return [(one.at, one.layers, one.path, one.sequential, one.order, one.work) for one in rows]


GPT2 = {**PLAIN, "family": "gpt2"}
YUBERT = {**PLAIN, "family": "yubert", "labels": ["a", "b"], "slots": 4, "n_layers": 1}


@pytest.mark.parametrize("keys, expected", [
    ({"family": "lstm", "n_layers": 2}, ("1:1", 2, 99, 100, "n d²", 2 * 8 * 100 * 12 * 12)),
    *(({"family": "window", "n_layers": 3, "window": window, "causal": causal},
       ("1:1", 3, path, 1, "n w d²", 3 * 100 * window * 12 * 12))
      for window, causal, path in ((5, True, 25), (5, False, 50), (100, True, 1), (2, True, 99))),
    ({**GPT2, "kept": [[0, 1], [0]]}, ("1:1", 2, 1, 1, "n² d", 2 * 100 * 100 * (12 + 6))),
    ({**GPT2, "activations": "linear"}, ("1:1", 2, 1, 1, "n d_head d", 2 * 200 * 12 * 6)),
    (YUBERT, ("4 slots", 1, 1, 1, "n r d", 2 * 100 * 4 * 12)),
])  # fmt: skip
def test_work_of_models_whose_layers_are_alike(keys, expected):
    assert counted(100, **keys) == [expected]


# --- what an output can depend on -----------------------------------------------------------------

NESTED = "1@1 1@3 1@6 1@3 1@1"
AVERAGE = {"downsampling": "average", "upsampling": "repeat"}
WINDOWED = {"form": "windowed", "positions": "learned", "max_positions": 40}
HOURGLASSES = [
    {"hierarchy": NESTED, "attention_downsampling": "linear", "positions": "rotary"},
    {"hierarchy": NESTED, "attention_upsampling": "none", "widths": (12, 16, 20)},
    {"hierarchy": NESTED, "masking": "compat", **WINDOWED},
    {"hierarchy": NESTED, **AVERAGE, **WINDOWED},
]  # fmt: skip
DYNAMIC = {"family": "dynamic", "n_layers": [2, 2, 1], "whitespace_id": 3, "shorten_factor": 3}
SEGMENTS = [{**DYNAMIC, "boundaries": kind} for kind in ("whitespace", "learned", "entropy")]
CAUSAL = [  # those of transformers and the rest; all read every token before
    {"form": "decoder", "positions": "learned", "norm_first": True, "activations": "ymish",
     "max_positions": 40},
    {"form": "decoder", "positions": "sinusoidal", "norm_first": False, "activations": "linear"},
    {"form": "decoder", "positions": "quadratic", "activations": "softmax"},
    {"family": "lstm"}, {"family": "window", "window": 21, "n_layers": 1}, *SEGMENTS,
]  # fmt: skip
PADDED = [  # encoders read both ways
    {"family": "bert", "goal": "classes", "labels": ["a", "b"]},
    {"form": "encoder", "goal": "masked", "positions": "none", "activations": "topk", "top_k": 3},
    *SEGMENTS, {"family": "lstm"},
    {"family": "window", "window": 5, "causal": False},
]  # fmt: skip
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


@pytest.mark.parametrize("keys", [*HOURGLASSES, *CAUSAL], ids=str)
def test_no_output_depends_on_a_later_token_and_all_on_earlier_ones(tmp_path, keys):
    """By gradients, by prefixes read alone, and bit for bit by other endings in float32."""
    found = measured(tmp_path / "a", keys)
    assert found.later == 0.0 and found.is_causal and found.is_full and found.of == "logits"
    assert (found.own[np.tril_indices(13)] > 0).all() and not np.triu(found.own, 1).any()
    assert (found.lag, found.farthest, found.fades(0.0)) == (0, 12, None)
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


@pytest.mark.parametrize("keys", PADDED, ids=str)
def test_padding_changes_nothing_that_is_not_padding(keys):
    """Behind a text; before it and within it where places do not count."""
    model, random = make(keys), np.random.default_rng(3)
    ids = torch.as_tensor(np.stack([random.permutation(23)[:11] for _ in range(2)]))  # no ties
    keep = torch.ones(2, 11, dtype=torch.bool)
    keep[0, 7:] = False
    if keys.get("positions") in ("none", "rotary") or keys.get("family") in ("lstm", "window"):
        keep[1, :3] = False
    if keys.get("positions") == "none" or keys.get("family") == "lstm":
        keep[1, 5] = False
    other = ids.where(keep, (ids + 1) % 23)
    one, two = model(Tokens(ids, keep)), model(Tokens(other, keep))
    if one.ndim == 2:  # a classifier reads [CLS]
        one, two = one[:, None].expand(-1, 11, -1), two[:, None].expand(-1, 11, -1)
    assert torch.equal(one[keep], two[keep])
    for row in (0, 1):
        alone = model(ids[row : row + 1, keep[row]])[0]
        assert (one[row, keep[row]] - alone).abs().max() < 1e-12


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
