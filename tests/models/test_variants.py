"""Variants of a model with heads off, the trials that score them, and slopes."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hgviz import examples
from hgviz.analysis.scores import surprise
from hgviz.core import HeadId, HgvizError
from hgviz.examples import classification_examples, next_token_examples
from hgviz.models import open_model
from hgviz.models.layers import Attention, Tokens
from hgviz.models.measures import gradients
from hgviz.models.measures.trials import KEEP, PIECE, Trials
from hgviz.models.measures.variants import BlockAblation, HeadAblation, attention_modules
from hgviz.models.run import Run
from hgviz.models.texts.text import Bytes
from tests.closeness import scaled_error
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    write_checkpoint,
    write_transformer,
)

LABELS = {"goal": "classes", "labels": ["a", "b", "c"]}


def hourglasses():
    """Every way to shorten and to grow."""
    downs = ({}, {"downsampling": "linear"}, {"attention_downsampling": "average"})
    for form, down in itertools.product(("official", "windowed"), downs):
        config = make_config(form=form, hierarchy="1@1 1@2 1@4 1@2 1@1", causal=True, **down)
        yield f"{form} {down or ''}", make_hourglass(config)


def transformers():
    """Encoder, classifier, decoder and both, pre- and post-norm, several activations."""
    for first in (True, False):
        yield f"encoder {first}", make_transformer(form="encoder", goal="masked", norm_first=first)
        yield (
            f"classifier {first}",
            make_transformer(form="encoder", norm_first=first, n_layers=3, cls=2, **LABELS),
        )
        yield f"decoder {first}", make_transformer(form="decoder", norm_first=first, n_layers=3)
        yield f"both {first}", make_transformer(form="encoder-decoder", norm_first=first)
    yield "ymish", make_transformer(form="encoder", activations="ymish", **LABELS)
    yield "bert", make_transformer(family="bert", max_positions=16, pooler="shared", **LABELS)
    yield "gpt2", make_transformer(family="gpt2", max_positions=16)
    slots = {"slots": 5, "max_positions": 16, "norms": {"ymish": "l2"}, "activations": "ymish"}
    yield "yubert", make_transformer(family="yubert", **slots, **LABELS)
    yield "rotary", make_transformer(form="encoder", positions="rotary", **LABELS)
    kept = ((0, 2), (), (1,))
    yield "ragged", make_transformer(form="encoder", n_layers=3, n_heads=3, kept=kept, **LABELS)
    kept = ((0, 2), ())
    yield "nothing to read", make_transformer(form="encoder", n_heads=3, kept=kept, **LABELS)


MODELS = [*hourglasses(), *transformers()]


def tokens_of(model, batch=3, length=11):
    """A padded batch, two texts where the model reads two."""
    random = torch.Generator().manual_seed(1)

    def text(length):
        ids = torch.randint(0, 23, (batch, length), generator=random)
        ends = torch.tensor([length, length - 2, length - 5])
        return Tokens(ids, torch.arange(length) < ends[:, None])

    if getattr(model.config, "form", "") != "encoder-decoder":
        return text(length)
    target, source = text(length), text(length - 3)
    return Tokens(target.ids, target.keep, source=source)


def masked(model, tokens, off):
    """A whole pass with heads off."""
    with torch.inference_mode():
        return model(tokens, Run(frozenset(off)))


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_each_head_by_itself_is_what_a_masked_pass_gives(name, model):
    tokens, variants, seen = tokens_of(model), HeadAblation(model), set()
    whole, logits = variants.baseline(tokens)
    assert (logits - masked(model, tokens, ())).abs().max() <= 1e-12
    for heads, logits in variants.ablate_each(whole):
        for head, found in zip(heads, logits, strict=True):
            assert (found - masked(model, tokens, {head})).abs().max() <= 1e-12
            seen.add(head)
    assert seen == set(variants.heads)


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_a_feed_forward_is_begun_from_the_whole_pass(name, model, monkeypatch):
    begun, hidden = [], BlockAblation._hidden
    monkeypatch.setattr(BlockAblation, "_hidden", lambda *given: begun.append(1) or hidden(*given))
    monkeypatch.setattr("hgviz.models.measures.variants._pays", lambda *given: True)
    tokens, variants = tokens_of(model), HeadAblation(model)
    for heads, logits in variants.ablate_each(variants.baseline(tokens)[0]):
        for head, found in zip(heads, logits, strict=True):
            assert (found - masked(model, tokens, {head})).abs().max() <= 1e-10
    assert begun


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_any_heads_together_are_what_a_masked_pass_gives(name, model):
    tokens, variants = tokens_of(model), HeadAblation(model)
    (whole, _), heads = variants.baseline(tokens), variants.heads
    for off in ({heads[0]}, {heads[-1], heads[1]}, set(heads[1::2]), set(heads), set()):
        assert (variants.ablate(whole, off) - masked(model, tokens, off)).abs().max() <= 1e-12


@pytest.mark.parametrize(("name", "model"), MODELS[::3], ids=[name for name, _ in MODELS[::3]])
def test_a_head_alone_is_what_is_left_when_the_others_of_its_layer_are_off(name, model):
    tokens, variants = tokens_of(model), HeadAblation(model)
    for heads, logits in variants.ablate_each(variants.baseline(tokens)[0], alone=True):
        for head, found in zip(heads, logits, strict=True):
            others = {one for one in variants.heads if one.layer == head.layer and one != head}
            assert (found - masked(model, tokens, others)).abs().max() <= 1e-12


@pytest.mark.parametrize(("name", "model"), MODELS[::3], ids=[name for name, _ in MODELS[::3]])
def test_heads_that_are_off_already_stay_off(name, model):
    tokens, head = tokens_of(model), HeadId(0, 1)
    variants = HeadAblation(model, frozenset({head}))
    whole, _ = variants.baseline(tokens)
    for heads, logits in variants.ablate_each(whole):
        assert head not in heads
        for one, found in zip(heads, logits, strict=True):
            assert (found - masked(model, tokens, {head, one})).abs().max() <= 1e-12


def test_single_precision_changes_no_answer():
    model = make_transformer(
        form="encoder", d_model=48, d_ff=96, n_heads=4, n_layers=4, **LABELS
    ).float()
    tokens, variants = tokens_of(model), HeadAblation(model)
    for heads, logits in variants.ablate_each(variants.baseline(tokens)[0]):
        for head, found in zip(heads, logits, strict=True):
            expected = masked(model, tokens, {head})
            assert scaled_error(found, expected) <= 1e-5
            assert torch.equal(found.argmax(-1), expected.argmax(-1))


def losses(model):
    """(B,) of logits: the surprise of class or token 1 everywhere."""

    def of(logits):
        flat = logits.flatten(0, -2)
        each = F.cross_entropy(flat, torch.ones(len(flat), dtype=torch.long), reduction="none")
        return each.unflatten(0, (len(logits), -1)).sum(1)

    return of


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[name for name, _ in MODELS])
def test_the_gradient_of_a_gate_is_its_central_difference(name, model):
    model.requires_grad_(False)
    tokens, variants, loss = tokens_of(model), HeadAblation(model), losses(model)
    found = variants.gate_gradients(tokens, loss).gates
    layers = {p.layer.index: p.layer for p in model.modules() if isinstance(p, Attention)}
    step = 1e-5
    for at, head in list(enumerate(variants.heads))[:: max(1, len(variants.heads) // 4)]:
        ends = []
        for sign in (1, -1):
            gates = torch.ones(3, len(layers[head.layer].heads), dtype=torch.float64)
            gates[:, layers[head.layer].heads.index(head.head)] += sign * step
            run = Run(gates={head.layer: gates}, readout=True)
            ends.append(loss(model(tokens, run)))
        difference = (ends[0] - ends[1]) / (2 * step)
        assert (found[:, at] - difference).abs().max() <= 1e-6 * max(1, found.abs().max())


@pytest.mark.parametrize(("name", "model"), MODELS[::3], ids=[name for name, _ in MODELS[::3]])
def test_a_layer_whose_absence_changes_nothing_is_found(name, model):
    tokens, variants = tokens_of(model), HeadAblation(model)
    assert variants.find_unused_layer(tokens) is None

    class Deaf(HeadAblation):
        def ablate(self, baseline, off):
            return super().ablate(baseline, ())

    assert Deaf(model).find_unused_layer(tokens) == 0


# --- trials ---------------------------------------------------------------------------------------


TEXT = "the cat sat on the mat and the dog sat on the log. " * 9


def prompts():
    random = np.random.default_rng(3)
    return [Bytes().encode(TEXT[:length]) for length in random.integers(3, 30, 50)]


def classifier(folder):
    write_transformer(
        folder, vocab_size=256, form="encoder", goal="classes", labels=["a", "b"], n_layers=3
    )
    wanted = np.random.default_rng(4).integers(0, 2, 50)
    return classification_examples(prompts(), list(wanted), ("a", "b"), None)


def hourglass(folder):
    write_checkpoint(folder, vocab_size=256, causal=True, hierarchy="1@1 2@2 1@1")
    return next_token_examples([Bytes().encode(TEXT)], length=64)


def encoder(folder):
    write_transformer(folder, vocab_size=256, form="encoder", goal="masked")
    return examples.masked_token_examples([Bytes().encode(TEXT)], 0)


@pytest.fixture(params=[classifier, hourglass, encoder])
def case(request, tmp_path):
    """A model in float64 and what it is scored on."""
    examples = request.param(tmp_path / "model")
    return open_model(tmp_path / "model", dtype="float64"), examples


def by_run(model, batch, off):
    logits = model.run(batch.ids, batch.mask if not batch.mask.all() else None, off=off).logits
    asked = batch.asked
    return surprise(logits[asked], batch.wanted[asked]), logits[asked].argmax(-1)


@pytest.mark.parametrize("keep", [KEEP, 0])
def test_an_answer_with_heads_off_is_that_of_a_whole_run(case, keep):
    model, examples = case
    trials = Trials(model, examples, keep=keep)
    heads = trials.heads
    for off in (set(), {heads[-1]}, {heads[0], heads[3]}, set(heads)):
        for block in trials.blocks:
            for batch in block:
                loss, given = trials.without(batch, off)
                expected, likeliest = by_run(model, batch, off)
                assert scaled_error(loss, expected) <= 1e-6
                assert (given == likeliest).all()


def test_heads_off_from_the_start_are_off_in_the_whole(case):
    model, examples = case
    first = HeadId(0, 0)
    trials = Trials(model, examples, frozenset({first}))
    assert first not in trials.heads
    batch = trials.blocks[0][0]
    assert scaled_error(trials.whole(batch)[0], by_run(model, batch, {first})[0]) <= 1e-6
    other = trials.heads[2]
    found = trials.without(batch, {other})[0]
    assert scaled_error(found, by_run(model, batch, {first, other})[0]) <= 1e-6


def test_the_slopes_of_a_batch_are_those_of_its_summed_losses(case):
    model, examples = case
    trials = Trials(model, examples)
    batch = trials.blocks[0][0]
    slopes, sizes = trials.slopes(batch)
    assert slopes.shape == sizes.shape == (len(batch.rows), len(trials.heads))
    assert (np.abs(slopes) <= sizes * (1 + 1e-6) + 1e-9).all()
    # one text by itself has the slopes that it has among others
    alone = examples.batch(batch.rows[:1])
    assert np.abs(trials.slopes(alone)[0] - slopes[:1]).max() <= 1e-5 * np.abs(slopes).max()


def test_what_is_kept_of_earlier_passes_stays_within_its_limit(case):
    model, examples = case
    trials = Trials(model, examples, keep=1)
    for block in trials.blocks:
        for batch in block:
            trials.whole(batch)
    kept = [one.outputs for one, _ in trials._kept.values()]
    assert not any(kept)


def test_each_place_is_answered_once(case):
    _, examples = case
    seen = np.zeros(len(examples.wanted), int)
    for block in examples.blocks():
        for batch in block:
            seen[examples.where(batch)] += 1
            assert (examples.wanted[examples.where(batch)] == batch.wanted[batch.asked]).all()
    assert (seen == 1).all()


def test_batches_that_come_and_go_are_told_apart(case):
    model, examples = case
    trials = Trials(model, examples)
    for row in range(min(len(examples), 12)):  # each may lie where the one before it lay
        batch = examples.batch([row])
        assert scaled_error(trials.whole(batch)[0], by_run(model, batch, set())[0]) <= 1e-6
        del batch


@pytest.mark.parametrize("deaf", [None, 1, 999])
def test_a_piece_of_one_text_proves_that_heads_do_something(case, deaf, monkeypatch):
    model, examples = case
    trials, seen, without = Trials(model, examples), [], HeadAblation.ablate

    def watched(variants, whole, off):  # heads that do nothing in so many passes
        seen.append(whole.tokens.ids.shape)
        return without(variants, whole, () if deaf and len(seen) <= deaf else off)

    monkeypatch.setattr(HeadAblation, "ablate", watched)
    if deaf == 999:
        with pytest.raises(HgvizError, match="switching off layer 0 changes nothing"):
            trials.require_effect()
    else:
        trials.require_effect()
    texts, length = trials.blocks[0][0].ids.shape
    layers = sum(1 for layer in model.spec.layers if layer.heads)
    short = (1, min(PIECE, length))
    if deaf is None:
        assert seen == [short] * layers
    else:
        assert seen[0] == short
        assert seen[-1] == (texts, length)


# --- slopes ---------------------------------------------------------------------------------------


ACTIVATIONS = [
    "softmax", "topk", "softmax1", "softpick", "sigmoid", "tanh", "swish", "selu", "elu",
    "leaky_relu", "ymish", "linear",
]  # fmt: skip
SOME = [
    *MODELS[::2],
    *(
        (name, make_transformer(form="encoder", activations=name, top_k=3, **LABELS))
        for name in ACTIVATIONS
    ),
    (
        "normed",
        make_transformer(form="encoder", activations="ymish", norms={"ymish": "l2"}, **LABELS),
    ),
    ("relative", make_hourglass(make_config(causal=True, positions="relative"))),
]
NAMES = [name for name, _ in SOME]


def text(model, length=11):
    """One text with padding at its end, two where the model reads two."""
    random = torch.Generator().manual_seed(2)

    def one(length):
        ids = torch.randint(0, 23, (1, length), generator=random)
        return Tokens(ids, (torch.arange(length) < length - 2)[None])

    if getattr(model.config, "form", "") != "encoder-decoder":
        return one(length)
    target, source = one(length), one(length - 3)
    return Tokens(target.ids, target.keep, source=source)


def asked(logits):
    """Some number that depends on every logit."""
    return (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum()


def plain(model, tokens, quantity, monkeypatch, off=frozenset()):
    """{layer: (scores, weights, dL/dS, dL/dA)} by autograd through dense maps, nothing else."""
    kept = {}

    def attend(q, k, v, rule, *, keep=None, relative=None, **_):
        from hgviz.models.attention import head_groups, weigh

        rows, maps, leaves = torch.arange(q.shape[2]), [None] * q.shape[1], []
        scores = [None] * q.shape[1]
        for one in head_groups(q, k, rule, relative):
            found, seen = one.scores(rows, keep)
            for at, place in enumerate(one.heads):
                noise = torch.zeros(found.shape[-2:], dtype=q.dtype, requires_grad=True)
                shifted = found[:, at] + noise
                scores[place] = torch.where(seen[:, 0], found[:, at], 0.0)[0].detach()
                weights = weigh(shifted, seen[:, 0], one.activation, one.norm, one.rule.top_k_of(0))
                more = torch.zeros_like(noise, requires_grad=True)
                leaves.append((place, noise, more, seen[0, 0]))
                maps[place] = weights + more * seen[:, 0]
        kept[len(kept)] = (leaves, scores, [one[0].detach() for one in maps])
        context = torch.stack(maps, 1) @ v if maps else torch.zeros_like(q)
        if keep is not None and rule.empty_rows == "uniform":
            from hgviz.models.attention import _empty_rows

            context = torch.where(
                _empty_rows(rule, q.shape[-2], keep), v.mean(-2, keepdim=True), context
            )
        return context

    with monkeypatch.context() as patch:
        patch.setattr("hgviz.models.run.attend", attend)
        value = quantity(model(tokens, Run(off)))
    found = {}
    for layer, (leaves, scores, maps) in kept.items():
        if not leaves:
            continue
        flat = [part for _, noise, more, _ in leaves for part in (noise, more)]
        slopes = torch.autograd.grad(value, flat, retain_graph=True, allow_unused=True)
        for at, (place, noise, _, _) in enumerate(leaves):
            zero = torch.zeros_like(noise)
            pair = [zero if one is None else one for one in slopes[2 * at : 2 * at + 2]]
            found[layer, place] = (scores[place], maps[place], *pair)
    return float(value.detach()), found


@pytest.mark.parametrize(("name", "model"), SOME, ids=NAMES)
def test_slopes_are_those_of_autograd_through_dense_maps(name, model, monkeypatch):
    model.requires_grad_(False)
    tokens = text(model)
    value, expected = plain(model, tokens, asked, monkeypatch)
    found = gradients.Gradients(model, tokens, asked)
    assert abs(found.value - value) <= 1e-9 * max(1, abs(value))
    seen = set()
    for layer in found.layers:
        heads = attention_modules(model)[layer].layer.heads
        for block in found.blocks(layer):
            for at, head in enumerate(block.heads):
                wanted = expected[layer, heads.index(head)]
                rows = slice(block.rows.start, block.rows.stop)
                for one, other in zip(
                    (block.scores, block.weights, block.at_scores, block.at_weights),
                    wanted,
                    strict=True,
                ):
                    other = other.numpy()[rows]
                    assert np.abs(one[at] - other).max() <= 1e-9 * (1 + np.abs(other).max())
                seen.add((layer, head))
    assert seen == {
        (one.layer.index, h) for one in attention_modules(model) for h in one.layer.heads
    }


def test_blocks_of_a_few_rows_give_what_all_rows_together_give(monkeypatch):
    model = make_transformer(form="decoder", activations="ymish", n_layers=2).requires_grad_(False)
    found = gradients.Gradients(model, text(model, 40), asked)
    monkeypatch.setattr("hgviz.models.attention.ROWS", 16)
    blocks = list(found.blocks(1))
    assert len(blocks) == 3
    for head in (0, 1):
        whole = found.head(HeadId(1, head))
        for name in ("scores", "weights", "at_scores", "at_weights"):
            parts = np.concatenate([getattr(one, name)[head] for one in blocks])
            assert np.abs(parts - getattr(whole, name)[0]).max() <= 1e-12
    some = found.head(HeadId(1, 1), range(5, 9))
    assert np.abs(some.at_scores[0] - found.head(HeadId(1, 1)).at_scores[0][5:9]).max() <= 1e-12


@pytest.mark.parametrize("activation", ["ymish", "topk", "swish"])
def test_maps_too_large_to_keep_are_computed_again_on_the_way_back(activation, monkeypatch):
    model = make_transformer(
        form="decoder", activations=activation, top_k=4, n_layers=2
    ).requires_grad_(False)
    tokens = text(model, 40)
    kept = gradients.Gradients(model, tokens, asked)
    monkeypatch.setattr("hgviz.models.attention.ROWS", 16)
    monkeypatch.setattr("hgviz.models.attention.RECOMPUTE_CELLS", 1)
    again = gradients.Gradients(model, tokens, asked)
    assert again.value == pytest.approx(kept.value, rel=1e-12)
    for head in (HeadId(0, 0), HeadId(1, 1)):
        one, other = kept.head(head), again.head(head)
        assert np.abs(one.at_scores - other.at_scores).max() <= 1e-12
        assert np.abs(one.at_weights - other.at_weights).max() <= 1e-12


def test_a_small_step_changes_the_loss_as_the_slope_says():
    model = make_transformer(form="encoder", activations="ymish", **LABELS).requires_grad_(False)
    tokens, part = text(model), attention_modules(model)[0]
    found = gradients.Gradients(model, tokens, asked)
    slopes = found.head(HeadId(0, 1))
    # scores of head 1 grow with its queries: dL/dq = scale dL/dS k
    with torch.inference_mode():
        call = found._calls[0]
        step = torch.zeros_like(part.q.bias)
        step[part.d_head :] = 1e-6
        expected = part.rule.scale_of(1) * np.einsum(
            "qk,kd->", slopes.at_scores[0], call.k[0, 1].numpy()
        )
        part.q.bias += step
        more = float(asked(model(tokens, Run())))
        part.q.bias -= 2 * step
        less = float(asked(model(tokens, Run())))
    assert abs((more - less) / 2e-6 - expected) <= 1e-5 * (1 + abs(expected))


def test_the_slope_of_softmax_is_its_jacobian_and_sums_to_nothing():
    model = make_transformer(form="encoder", **LABELS).requires_grad_(False)
    found = gradients.Gradients(model, text(model), asked).head(HeadId(1, 0))
    a, g = found.weights[0], found.at_weights[0]
    assert np.abs(found.at_scores[0] - a * (g - (a * g).sum(1, keepdims=True))).max() <= 1e-12
    assert np.abs(found.at_scores[0].sum(1)).max() <= 1e-12


def test_the_slope_of_ymish_is_its_derivative():
    kind = {"activations": "ymish", "norms": {"ymish": "none"}}
    model = make_transformer(form="encoder", **kind, **LABELS).requires_grad_(False)
    found = gradients.Gradients(model, text(model), asked).head(HeadId(0, 0))
    s = np.abs(found.scores[0])
    expected = found.at_weights[0] * (np.tanh(s) + s / np.cosh(s) ** 2)
    assert np.abs(found.at_scores[0] - expected).max() <= 1e-12


def test_nothing_goes_through_a_head_that_is_off(monkeypatch):
    model = make_transformer(form="encoder", n_layers=2, **LABELS).requires_grad_(False)
    tokens, off = text(model), frozenset({HeadId(0, 1)})
    found = gradients.Gradients(model, tokens, asked, off)
    assert not found.head(HeadId(0, 1)).at_scores.any()
    _, expected = plain(model, tokens, asked, monkeypatch, off)
    assert np.abs(found.head(HeadId(0, 0)).at_scores[0] - expected[0, 0][2].numpy()).max() <= 1e-10


def test_what_can_be_asked():
    logits = torch.randn(1, 5, 7, dtype=torch.float64)
    assert gradients.logit(3)(logits) == logits[0, -1, 3]
    assert gradients.logit(3, 1)(logits) == logits[0, 1, 3]
    assert gradients.logit(2)(logits[:, 0]) == logits[0, 0, 2]
    ids = np.array([4, 1, 2, 6, 0])
    expected = -torch.log_softmax(logits[0], -1)[range(4), ids[1:]].sum()
    assert abs(gradients.next_token(ids)(logits) - expected) <= 1e-12
    p = torch.softmax(logits[0], -1)[range(4), ids[1:]]
    odds = gradients.log_odds(np.append(ids[1:], -100))(logits)
    assert abs(odds - torch.log(p / (1 - p)).sum()) <= 1e-12
    expected = -torch.log_softmax(logits[0, 0], -1)[5]
    assert abs(gradients.loss(5)(logits[:, 0]) - expected) <= 1e-12


@pytest.mark.parametrize(
    "quantity",
    [gradients.logit(9), gradients.logit(0, 8), gradients.loss(9), gradients.loss([1, 2])],
)
def test_what_a_model_does_not_give_is_said(quantity):
    with pytest.raises(HgvizError):
        quantity(torch.zeros(1, 5, 7) if quantity is not None else None)


def test_heads_and_rows_that_are_not_there_are_said():
    model = make_transformer(form="encoder", **LABELS).requires_grad_(False)
    found = gradients.Gradients(model, text(model), asked)
    for head, rows in ((HeadId(0, 7), None), (HeadId(9, 0), None), (HeadId(0, 0), range(0, 99))):
        with pytest.raises(HgvizError):
            found.head(head, rows)
