"""Attributions beside captum, gradients of scores beside dense maps, and costs counted by hand."""

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients, LayerConductance, LayerIntegratedGradients

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Prompt
from hgviz.files import resource
from hgviz.models import attribution, open_model
from hgviz.models.attribution import (
    COMPLETE,
    STEPS,
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
from tests.models.building import (
    PLAIN,
    make_config,
    make_hourglass,
    make_transformer,
    write_unattending,
)
from tests.models.dense import (
    dense_context,
    dense_maps,
    dense_scores,
    head_map,
    visible_cells,
)
from tests.models.test_heads_off import MODELS, tokens_of
from tests.progress import steps_of

LABELS = {"goal": "classes", "labels": ["a", "b", "c"]}
SOME = (
    "hourglass", "windowed, linear down", "several cls", "decoder", "encoder-decoder", "ymish",
    "bert", "own gpt2", "yubert", "ragged", "nothing to read",
)  # fmt: skip
REVIEW = "A truly wonderful film, with a plot that never bores anyone."
SEA = "The hourglass was"


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


def test_layers_are_those_of_captum_and_add_up_to_an_exchange(case):
    model, text, target, answer = case
    path = AttributionPath(model, text, answer, target)
    forward, ends, starts = plainly(*case)
    for mine, layer in zip(path.integrate_layers(steps=60), path.layers, strict=True):
        one = LayerIntegratedGradients(forward, layer).attribute(ends, starts, n_steps=60)
        assert near(mine, float(one.sum()))
        outputs = []
        with torch.no_grad():
            hook = layer.register_forward_hook(lambda _, __, out, x=outputs: x.append(out))
            forward(*starts)
            hook.remove()
            hook = layer.register_forward_hook(lambda _, __, out, x=outputs: x[0])
            exchanged = float(forward(*ends))
            hook.remove()
        assert mine == pytest.approx(float(forward(*ends)) - exchanged, rel=3e-2, abs=2e-3)


@pytest.mark.parametrize(
    ("name", "text", "position"),
    [
        ("softmax", REVIEW, None), ("ymish", REVIEW, None), ("mixed", REVIEW, None),
        ("hourglass", SEA, len(SEA) - 1),
    ],
)  # fmt: skip
def test_a_path_has_as_many_steps_as_completeness_needs(name, text, position):
    model = open_model(resource(f"sample/{name}"))
    prompt = model.tokenize(text)
    logits = model.run(prompt.ids).logits
    row = logits if position is None else logits[position]
    answer = AnswerLogit(int(row.argmax()), position)
    path = AttributionPath(model, prompt, answer, baseline="blank")
    found = path.integrate_until_complete()
    change = found.value - found.baseline
    assert found.value == pytest.approx(float(row.max()), abs=1e-4)
    assert abs(found.tokens.sum() - change) < COMPLETE * abs(change)
    if found.steps > STEPS[0]:
        assert path.integrate(STEPS[STEPS.index(found.steps) - 1]).error >= COMPLETE
    layer = path.layers[0]
    with torch.no_grad():
        outputs = []
        for ends, hook in ((path.starts, lambda *got: outputs.append(got[2])),
                           (path.ends, lambda *_: outputs[0])):  # fmt: skip
            handle = layer.register_forward_hook(hook)
            exchanged = float(path.answers(*ends)[0])
            handle.remove()
    missing = path.integrate_layers()[0] - (found.value - exchanged)
    assert abs(missing) < COMPLETE * abs(change)


def test_tokens_after_the_answer_of_a_causal_model_count_nothing():
    model, answer = model_of("own gpt2"), AnswerLogit(3, 4)
    found = AttributionPath(model, prompt_of(11), answer).integrate(steps=6)
    assert found.tokens.shape == (11,) and not found.tokens[5:].any() and found.tokens[:5].all()
    forward, ends, starts = plainly(model, prompt_of(11), None, answer)
    wanted = IntegratedGradients(forward).attribute(ends, starts, n_steps=6)[0]
    assert near(found.tokens, wanted.detach().sum(-1)[0])


def test_baselines():
    model = open_model(resource("sample/softmax"))
    prompt, table = model.tokenize(REVIEW), model.module.embed.token.weight
    zero, mean, blank = (
        AttributionPath(model, prompt, AnswerLogit(0), baseline=name).starts[0][0]
        for name in ("zero", "mean", "blank")
    )
    assert not zero.any() and torch.allclose(mean, table.mean(0))
    named = model.tokenizer.encode("[MASK]")
    mask = dict(zip(named.pieces, named.ids.tolist(), strict=True))["[MASK]"]
    assert torch.equal(blank[0], table[prompt.ids[0]])  # [CLS] stays
    assert torch.equal(blank[3], table[mask])
    with pytest.raises(HgvizError, match="unknown baseline 'noise'"):
        AttributionPath(model, prompt, AnswerLogit(0), baseline="noise")


def test_heads_that_are_off_answers_that_are_not_there_and_progress():
    model, off = model_of("bert"), frozenset({HeadId(0, 1), HeadId(1, 0)})
    path = AttributionPath(model, prompt_of(9), AnswerLogit(0), off=off)
    heads = dict(zip(model.spec.heads, path.integrate(steps=6).heads, strict=True))
    assert {head for head, value in heads.items() if value == 0} == off
    assert [step.done for step in steps_of(path.integrate, 4)] == [4]
    assert [step.done for step in steps_of(path.integrate_layers, 4)] == [1, 2]
    with pytest.raises(HgvizError, match="1 steps"):
        path.integrate(1)
    for name, answer, words in (
        ("bert", AnswerLogit(9), "no class 9"),
        ("own gpt2", AnswerLogit(23, 0), "no token 23"),
        ("own gpt2", AnswerLogit(3, 11), "no position 11"),
        ("own gpt2", AnswerLogit(3), "no position None"),
    ):
        with pytest.raises(HgvizError, match=words):
            AttributionPath(model_of(name), prompt_of(11), answer)


# --- gradients of scores and weights --------------------------------------------------------------


ACTIVATIONS = (
    "softmax", "topk", "softmax1", "softpick", "sigmoid", "tanh", "swish", "selu", "elu",
    "leaky_relu", "ymish", "linear",
)  # fmt: skip
SCORED = {
    **{name: MODELS[name] for name in list(MODELS)[::2]},
    **{
        name: make_transformer(form="encoder", activations=name, top_k=3, **LABELS)
        for name in ACTIVATIONS
    },
    "normed": make_transformer(
        form="encoder", activations="ymish", norms={"ymish": "l2"}, **LABELS
    ),
    "relative": make_hourglass(make_config(causal=True, positions="relative")),
}


def every_logit(logits):
    """Some number that depends on every logit."""
    return (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum()[None]


def by_dense_maps(model, tokens, monkeypatch, off=frozenset()):
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
        value = every_logit(model(tokens, Run(off)))
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


@pytest.mark.parametrize("activation", ["ymish", "topk", "swish"])
def test_maps_too_large_to_keep_are_computed_again_on_the_way_back(activation, monkeypatch):
    model = make_transformer(form="decoder", activations=activation, top_k=4).requires_grad_(False)
    tokens = tokens_of(model, 1, 40)
    kept = ScoreGradients(model, tokens, every_logit)
    monkeypatch.setattr("hgviz.models.attention.ROWS", 16)
    monkeypatch.setattr("hgviz.models.attention.RECOMPUTE_CELLS", 1)
    again = ScoreGradients(model, tokens, every_logit)
    assert again.value == pytest.approx(kept.value, rel=1e-12)
    for head in (HeadId(0, 0), HeadId(1, 1)):
        one, other = kept.head(head), again.head(head)
        assert np.abs(one.at_scores - other.at_scores).max() <= 1e-12
        assert np.abs(one.at_weights - other.at_weights).max() <= 1e-12


def test_heads_that_are_off_have_no_gradients(monkeypatch):
    model, off = MODELS["pre-norm"], frozenset({HeadId(0, 1)})
    tokens = tokens_of(model, 1)
    found = ScoreGradients(model, tokens, every_logit, off)
    assert not found.head(HeadId(0, 1)).at_scores.any()
    _, expected = by_dense_maps(model, tokens, monkeypatch, off)
    assert np.abs(found.head(HeadId(0, 0)).at_scores[0] - expected[0, 0][2].numpy()).max() <= 1e-10


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
    (GPT2, ("1:1", 2, 1, 1, "n² d", 2 * 2 * 100 * 100 * 12)),
    ({**GPT2, "kept": [[0, 1], [0]]}, ("1:1", 2, 1, 1, "n² d", 2 * 100 * 100 * (12 + 6))),
    ({**GPT2, "activations": "linear"}, ("1:1", 2, 1, 1, "n d_head d", 2 * 200 * 12 * 6)),
    (YUBERT, ("4 slots", 1, 1, 1, "n r d", 2 * 100 * 4 * 12)),
])  # fmt: skip
def test_work_of_models_whose_layers_are_alike(keys, expected):
    assert counted(100, **keys) == [expected]


def test_an_hourglass_pays_by_the_square_of_its_factor_and_lags():
    config = make_config(hierarchy="1@1 2@4 1@1", downsampling="average", upsampling="repeat")
    rows = mixing_costs(config, 100)
    assert [(one.at, one.layers, one.order, one.work, one.lag) for one in rows] == [
        ("1:1", 1, "n² d", 2 * 100 * 100 * 12, 0),
        ("1:4", 2, "(n/4)² d", 2 * 2 * 25 * 25 * 12, 3),
        ("1:1", 1, "n² d", 2 * 100 * 100 * 12, 0),
    ]
    resampled = mixing_costs(make_config(hierarchy="1@1 1@4 1@1"), 100)
    assert [(one.at, one.order) for one in resampled][1::2] == [
        ("1:1 → 1:4", "n/4 · n d"), ("1:4 → 1:1", "n · n/4 d"),
    ]  # fmt: skip
    both = mixing_costs(make_config(hierarchy="1@1 1@4 1@1", causal=False), 100)
    assert not any(one.lag for one in both)
    windowed = make_config(hierarchy="1@1 1@4 1@1", form="windowed", positions="none")
    within = mixing_costs(windowed, 100)
    assert [(one.way, one.work) for one in within][1] == ("attention within 4", 2 * 100 * 12)


def test_two_texts_and_segments_of_unknown_number():
    rows = mixing_costs(parse_config({**PLAIN, "family": "transformer"}), 10, 30)
    assert [(one.at, one.order, one.work) for one in rows] == [
        ("source", "n² d", 2 * 2 * 30 * 30 * 12),
        *[("target", "n² d", 2 * 10 * 10 * 12), ("source → target", "n m d", 2 * 10 * 30 * 12)] * 2,
    ]
    keys = {"family": "dynamic", "vocab_size": 256, "d_model": 12, "n_heads": 2}
    config = parse_config({**keys, "n_layers": [1, 2, 1], "boundaries": "whitespace"})
    rows = mixing_costs(config, 100)
    assert [one.work for one in rows] == [2 * 100 * 100 * 12, None, 2 * 100 * 100 * 12]
    assert [one.order for one in rows] == ["n² d", "s² d", "n² d"]


def test_models_take_turns_at_every_length(tmp_path):
    model = open_model(write_unattending(tmp_path, family="lstm", max_positions=8))
    found = tasks.pass_times([model, model], [4, 8], turns=1)
    assert found.lengths == (4, 8)
    assert [len(row) for row in found.seconds] == [2, 2] and min(map(min, found.seconds)) > 0
    with pytest.raises(HgvizError, match="at most 8"):
        tasks.pass_times([model], [4, 9])
