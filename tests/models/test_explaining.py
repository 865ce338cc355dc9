"""Where answers come from, beside captum."""

import numpy as np
import pytest
import torch
from captum.attr import (
    FeatureAblation,
    IntegratedGradients,
    LayerConductance,
    LayerIntegratedGradients,
    Saliency,
)

from hgviz.core import HeadId, HgvizError, Prompt
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.families.hourglass import Hourglass
from hgviz.models.layers import Tokens
from hgviz.models.measures import explaining
from hgviz.models.measures.explaining import Answer, Path
from hgviz.models.measures.variants import HeadAblation, attention_modules
from hgviz.models.model import Model
from hgviz.models.run import Run
from tests.models.test_variants import MODELS, losses, tokens_of
from tests.progress import steps_of

SOME = {name: model for name, model in MODELS if name in (
    "official {}", "windowed {'downsampling': 'linear'}", "classifier True", "decoder False",
    "both True", "ymish", "bert", "gpt2", "yubert", "ragged", "nothing to read",
)}  # fmt: skip
REVIEW = "A truly wonderful film, with a plot that never bores anyone."
SEA = "The hourglass was"


def prompt_of(length, seed=0, mask=None):
    ids = np.random.default_rng(seed).integers(0, 23, length)
    spans = np.array([(i, i + 1) for i in range(length)])
    return Prompt("a" * length, ids, ("a",) * length, spans, attention_mask=mask)


def model_of(module):
    module.requires_grad_(False)
    return Model(module, module.config.spec("tiny", "", 1), None, "cpu", "float64")


@pytest.fixture(params=SOME.values(), ids=SOME.keys())
def case(request):
    """A model, its text (two where it reads two), and an answer of it."""
    model = model_of(request.param)
    classes = model.spec.goal == "classes"
    answer = Answer(1) if classes else Answer(5, 7)
    mask = np.array([True] * 9 + [False] * 2) if classes else None
    text = prompt_of(11, mask=mask)
    return model, text, (prompt_of(8, 1) if model.spec.two_texts else None), answer


def plainly(model, text, target, answer, off=frozenset()):
    """The answer as a function of embeddings, which captum is given, with both ends of the path."""
    module, main = model.module, text if target is None else target
    hourglass = isinstance(module, Hourglass)
    table = (module.embed["token"] if hourglass else module.embed.token).weight

    def repeated(values, count):
        return None if values is None else torch.tensor(values).expand(count, -1)

    def forward(*xs):
        count, run = len(xs[0]), Run(off)
        keep = repeated(main.attention_mask, count)
        if hourglass:
            logits = module(Tokens(keep=keep, embedded=xs[0]), run)
        else:
            source = None
            if target is not None:
                source = Tokens(repeated(text.ids, count), embedded=xs[1])
            tokens = Tokens(repeated(main.ids, count), keep, source=source)
            logits = module.from_embeddings(module.embed.placed(xs[0]), tokens, run)
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


def test_tokens_are_those_of_captum_used_plainly(case):
    model, text, target, answer = case
    found = Path(model, text, answer, target).walk(steps=9)
    forward, ends, starts = plainly(*case)
    wanted = IntegratedGradients(forward).attribute(ends, starts, n_steps=9)
    for mine, one in zip((found.tokens, found.source), wanted, strict=False):
        assert near(mine, one.detach().sum(-1)[0])
    assert (found.source is None) == (target is None)
    assert found.value == pytest.approx(float(forward(*ends)), abs=1e-12)
    assert found.baseline == pytest.approx(float(forward(*starts)), abs=1e-12)


def test_heads_have_the_conductance_of_captum_used_plainly(case, monkeypatch):
    model, text, target, answer = case
    monkeypatch.setattr(explaining, "MOST_TOKENS", 40)  # a few points at a time
    found = Path(model, text, answer, target).walk(steps=9)
    forward, ends, starts = plainly(*case)
    wanted = []
    for layer in (one for one in attention_modules(model.module) if one.layer.heads):
        method = LayerConductance(forward, layer.o)
        one = method.attribute(ends, starts, n_steps=8, attribute_to_layer_input=True)
        wanted += one.detach().unflatten(-1, (-1, layer.d_head)).sum((0, 1, 3)).tolist()
    assert len(found.heads) == len(model.spec.heads)
    assert near(found.heads, wanted)


def test_layers_are_those_of_captum_and_add_up_to_an_exchange(case):
    model, text, target, answer = case
    path = Path(model, text, answer, target)
    found = path.each_layer(steps=60)
    forward, ends, starts = plainly(*case)
    for mine, layer in zip(found, path.layers, strict=True):
        one = LayerIntegratedGradients(forward, layer).attribute(ends, starts, n_steps=60)
        assert near(mine, float(one.sum()))
        kept = []
        with torch.no_grad():
            hook = layer.register_forward_hook(lambda _, __, out, kept=kept: kept.append(out))
            forward(*starts)
            hook.remove()
            hook = layer.register_forward_hook(lambda _, __, out, kept=kept: kept[0])
            change = float(forward(*ends))
            hook.remove()
            change = float(forward(*ends)) - change
        assert mine == pytest.approx(change, rel=3e-2, abs=1e-3)


SAMPLES = [
    ("softmax", REVIEW, None), ("ymish", REVIEW, None), ("hourglass", SEA, len(SEA) - 1)
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "position"), SAMPLES, ids=[one[0] for one in SAMPLES])
def test_integrated_gradients_of_the_samples_are_complete(name, text, position):
    model = open_model(resource(f"sample/{name}"))
    prompt = model.tokenize(text)
    logits = model.run(prompt.ids).logits
    row = logits if position is None else logits[position]
    answer = Answer(int(row.argmax()), position)
    found = Path(model, prompt, answer, baseline="blank").walk(steps=256)
    change = found.value - found.baseline
    assert found.value == pytest.approx(float(row.max()), abs=1e-4)
    assert abs(found.tokens.sum() - change) <= 1e-3 * abs(change)


def test_what_comes_after_the_answer_is_not_read_and_counts_nothing():
    model = model_of(dict(MODELS)["gpt2"])
    whole, cut = prompt_of(11), prompt_of(11)
    found = Path(model, whole, Answer(3, 4)).walk(steps=6)
    assert found.tokens.shape == (11,) and not found.tokens[5:].any() and found.tokens[:5].all()
    forward, ends, starts = plainly(model, cut, None, Answer(3, 4))
    wanted = IntegratedGradients(forward).attribute(ends, starts, n_steps=6)[0]
    assert near(found.tokens, wanted.detach().sum(-1)[0])


def test_heads_that_are_off_conduct_nothing():
    model = model_of(dict(MODELS)["bert"])
    off = frozenset({HeadId(0, 1), HeadId(1, 0)})
    found = Path(model, prompt_of(9), Answer(0), off=off).walk(steps=6)
    heads = dict(zip(model.spec.heads, found.heads, strict=True))
    assert all(heads[one] == 0 for one in off)
    assert all(heads[one] != 0 for one in heads if one not in off)


def test_baselines_are_what_they_are_called():
    model = open_model(resource("sample/softmax"))
    prompt = model.tokenize(REVIEW)
    table = model.module.embed.token.weight
    zero, mean, blank = (
        Path(model, prompt, Answer(0), baseline=name).starts[0][0]
        for name in ("zero", "mean", "blank")
    )
    assert not zero.any()
    assert torch.allclose(mean, table.mean(0))
    mask = next(i for i, p in zip(*_named(model, "[MASK]"), strict=True) if p == "[MASK]")
    assert torch.equal(blank[0], table[prompt.ids[0]])  # [CLS] stays
    assert torch.equal(blank[3], table[mask])
    with pytest.raises(HgvizError, match="unknown baseline 'noise'"):
        Path(model, prompt, Answer(0), baseline="noise")


def _named(model, text):
    found = model.tokenizer.encode(text)
    return found.ids.tolist(), found.pieces


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("bert", Answer(9), "no class 9"),
        ("gpt2", Answer(23, 0), "no token 23"),
        ("gpt2", Answer(3, 11), "no position 11"),
        ("gpt2", Answer(3), "no position None"),
    ],
)
def test_answers_that_are_not_there(name, answer, said):
    with pytest.raises(HgvizError, match=said):
        Path(model_of(dict(MODELS)[name]), prompt_of(11), answer)


def test_a_walk_needs_two_steps_and_says_how_far_it_is():
    path = Path(model_of(dict(MODELS)["bert"]), prompt_of(9), Answer(0))
    with pytest.raises(HgvizError, match="1 steps"):
        path.walk(1)
    assert [step.done for step in steps_of(path.walk, 4)] == [4]
    assert [step.done for step in steps_of(path.each_layer, 4)] == [1, 2]


# --- passes of pruning beside captum --------------------------------------------------------------


THIRD = MODELS[::3]


@pytest.fixture(params=THIRD, ids=[name for name, _ in THIRD])
def variants_case(request):
    """Variants of a model, a padded batch of three texts, and their losses."""
    model = request.param[1].requires_grad_(False)
    return HeadAblation(model), tokens_of(model), losses(model)


def by_gates(variants, tokens, loss):
    """What plain captum would be given: a whole pass with real gates."""
    layers = [(one.layer.index, len(one.layer.heads)) for one in attention_modules(variants.module)]

    def forward(gates):
        parts = gates.double().split([heads for _, heads in layers], dim=1)
        run = Run(gates={
            layer: part.expand(3, -1) for (layer, _), part in zip(layers, parts, strict=True)
        })  # fmt: skip
        return loss(variants.module(tokens, run))[None]

    return forward


def test_ablation_by_captum_is_minus_what_leave_one_out_finds(variants_case):
    variants, tokens, loss = variants_case
    gates = torch.ones(1, len(variants.heads), dtype=torch.float64)
    found = FeatureAblation(by_gates(variants, tokens, loss)).attribute(gates)
    found = found.reshape(3, len(variants.heads))
    whole, logits = variants.baseline(tokens)
    for heads, each in variants.ablate_each(whole):
        for head, one in zip(heads, each, strict=True):
            column = found[:, variants.heads.index(head)]
            assert (column - (loss(logits) - loss(one))).abs().max() <= 1e-11 * (
                1 + found.abs().max()
            )


def test_saliency_by_captum_is_the_slope_of_the_gate(variants_case):
    variants, tokens, loss = variants_case
    through = by_gates(variants, tokens, loss)
    slopes = variants.gate_gradients(tokens, loss).gates
    for row in range(3):
        gates = torch.ones(1, len(variants.heads), dtype=torch.float64, requires_grad=True)
        found = Saliency(lambda given, row=row: through(given)[:, row]).attribute(gates, abs=False)
        assert (found[0] - slopes[row]).abs().max() <= 1e-11 * max(1, slopes.abs().max())
