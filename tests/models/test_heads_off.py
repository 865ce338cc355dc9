"""Heads off, gates of 0, zeroed columns of W_O and removed weights give the same logits.

Own families: bit for bit where the products have the same shape, 1e-12 in float64 where they are
smaller. Models of transformers: 1e-12 in float64, beside transformers itself without the columns.
"""

import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from captum.attr import FeatureAblation, Saliency
from scipy.special import log_softmax

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, parse_heads
from hgviz.examples import classification_examples, masked_token_examples, next_token_examples
from hgviz.models import checkpoints, open_model, trials
from hgviz.models.layers import Tokens, attention_modules
from hgviz.models.model import module_of
from hgviz.models.pruning import remove_heads, zero_heads
from hgviz.models.run import Observer, Run
from hgviz.models.text import Bytes
from hgviz.models.trials import (
    CACHE_BYTES,
    EXCERPT,
    BlockAblation,
    HeadAblation,
    Trials,
    batch_tokens,
    predictions_of,
)
from tests.closeness import scaled_error
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    texts_for,
    write_bert,
    write_checkpoint,
    write_gpt2,
    write_transformer,
)
from tests.models.zoo import write

LEVELS = "1@1 1@2 1@4 1@2 1@1"
MIXED = {"n_heads": 4, "activations": ["softmax", "ymish", "tanh", "linear"]}
WINDOWED = {"form": "windowed", "positions": "learned", "max_positions": 40}
CLASSES = {"form": "encoder", "goal": "classes", "labels": ["a", "b"]}
SLOTS = {"slots": 4, "max_positions": 20}
HOURGLASSES = {
    "hourglass": {"hierarchy": LEVELS, "n_heads": 3},
    "mixed hourglass": MIXED,
    "plain up": {"attention_upsampling": "none", "positions": "rotary"},
    "without resampling": {"downsampling": "average", "upsampling": "repeat"},
    "windowed": {"hierarchy": LEVELS, "n_heads": 3, **WINDOWED},
    "wider inside": {"hierarchy": LEVELS, "widths": (12, 16, 24)},
    "narrower inside, windowed": {"widths": (12, 8), "masking": "compat", **WINDOWED},
}
TRANSFORMERS = {
    "encoder": {"form": "encoder", "goal": "masked"},
    "pre-norm": {**CLASSES, "norm_first": True, **MIXED},
    "shared": {**CLASSES, "n_heads": 3, "shared_width": 7},
    "topk": {"form": "encoder", "goal": "states", "activations": ["topk", "softmax"], "top_k": 2},
    "slots": {"family": "yubert", "labels": ["a", "b"], **SLOTS},
    "linformer": {
        "form": "encoder", "goal": "masked", **SLOTS, "slots_sharing": "none", "slots_bias": True,
    },
    "synthesizer": {"form": "decoder", "max_positions": 20, "rank": 3,
                    "scores": ["dense+random", "dot+factorised+fixed"]},
    "wide cls": {**CLASSES, "cls": 2, "cls_width": 20, "norm_first": True, **SLOTS},
    "encoder-decoder": {},
    "decoder with cross": {"form": "decoder", "cross": True, "positions": "rotary"},
}  # fmt: skip
KINDS = {  # name: what writes such a folder
    "classifier": write_bert,
    "gpt2": write_gpt2,
    **{k: functools.partial(write_checkpoint, **keys) for k, keys in HOURGLASSES.items()},
    **{k: functools.partial(write_transformer, **keys) for k, keys in TRANSFORMERS.items()},
}
MORE_HOURGLASSES = {
    "linear down": {"hierarchy": LEVELS, "downsampling": "linear"},
    "windowed, linear down": {"hierarchy": LEVELS, "downsampling": "linear", **WINDOWED},
}
MORE_TRANSFORMERS = {
    "several cls": {**CLASSES, "n_layers": 3, "cls": 2},
    "decoder": {"form": "decoder", "n_layers": 3, "norm_first": False},
    "ymish": {**CLASSES, "activations": "ymish"},
    "bert": {"family": "bert", "max_positions": 16, "pooler": "shared", "goal": "classes",
             "labels": ["a", "b", "c"]},
    "own gpt2": {"family": "gpt2", "max_positions": 16},
    "yubert": {"family": "yubert", "labels": ["a", "b"], "slots": 5, "max_positions": 16,
               "norms": {"ymish": "l2"}, "activations": "ymish"},
    "ragged": {**CLASSES, "n_layers": 3, "n_heads": 3, "kept": ((0, 2), (), (1,))},
    "nothing to read": {**CLASSES, "n_heads": 3, "kept": ((0, 2), ())},
}  # fmt: skip
MODELS = {  # in float64
    name: model.requires_grad_(False)
    for name, model in (
        *((k, make_hourglass(make_config(**x))) for k, x in HOURGLASSES.items()),
        *((k, make_hourglass(make_config(**x))) for k, x in MORE_HOURGLASSES.items()),
        *((k, make_transformer(**x)) for k, x in {**TRANSFORMERS, **MORE_TRANSFORMERS}.items()),
    )
    if name != "decoder with cross"
}
every_model = pytest.mark.parametrize("name", MODELS)
PRETRAINED = [  # type, class, what the names of the products behind heads end with
    ("llama", "LlamaForCausalLM", "o_proj"), ("gemma2", "Gemma2ForCausalLM", "o_proj"),
    ("phi3", "Phi3ForCausalLM", "o_proj"), ("gpt_neox", "GPTNeoXForCausalLM", "attention.dense"),
    ("roberta", "RobertaForMaskedLM", "attention.output.dense"),
    ("distilbert", "DistilBertForSequenceClassification", "out_lin"),
    ("modernbert", "ModernBertForMaskedLM", "attn.Wo"),
    ("deepseek_v3", "DeepseekV3ForCausalLM", "o_proj"), ("gpt_oss", "GptOssForCausalLM", "o_proj"),
    ("t5", "T5ForConditionalGeneration", "Attention.o"),
    ("deberta-v2", "DebertaV2ForSequenceClassification", "attention.output.dense"),
    ("bloom", "BloomForCausalLM", "self_attention.dense"),
]  # fmt: skip
OWN_CODE = ("bloom", "deberta-v2")  # attention code of their own: no weights are removed
SINGLE = ("gpt_oss", "deepseek_v3")  # experts know no float64


def chosen(spec, empty=True):
    """Every other head, and in one layer of each role all of them."""
    off, roles = set(), set()
    for layer in spec.layers:
        whole = empty and layer.role not in roles and layer.index != 0
        roles |= {layer.role} if whole else set()
        heads = layer.heads if whole else layer.heads[layer.index % 2 :: 2]
        off |= {HeadId(layer.index, head) for head in heads}
    return frozenset(off)


def logits(path, off=frozenset(), dtype="float64"):
    model = open_model(path, dtype=dtype)
    return model.run(**texts_for(model), off=off).logits


def tokens_for(model):
    """The same as Tokens."""
    texts = texts_for(model)
    ids, keep = torch.from_numpy(texts["ids"]), torch.from_numpy(texts["attention_mask"])
    if "encoder_states" in texts:
        return Tokens(ids, keep, source=Tokens(states=torch.from_numpy(texts["encoder_states"])))
    if "decoder_ids" in texts:
        return Tokens(torch.from_numpy(texts["decoder_ids"]), source=Tokens(ids, keep))
    return Tokens(ids, keep)


def gates_of(module, spec, off):
    """Gates (2, H) by layer, 0 for heads that are off."""
    like = next(module.parameters())
    return {
        layer.index: like.new_tensor(
            [[(layer.index, head) not in off for head in layer.heads]] * 2
        )
        for layer in spec.layers
        if layer.heads
    }  # fmt: skip


def largest(a, b):
    return float((a - b).abs().max())


def ways_off(path, off, dtype="float64"):
    """Logits with heads off, gated by 0, begun from the baseline, zeroed and removed; and of the
    whole model."""
    model, checkpoint = open_model(path, dtype=dtype), checkpoints.read(path)
    tokens, module = tokens_for(model), model.module
    ablation, changed = HeadAblation(module), {"zeroed": zero_heads(checkpoint, off)}
    if model.spec.family not in OWN_CODE:
        changed["removed"] = remove_heads(checkpoint, off)
    with torch.inference_mode():
        yield "whole", module(tokens, Run(readout=True))
        yield "off", module(tokens, Run(off, readout=True))
        yield "gates", module(tokens, Run(gates=gates_of(module, model.spec, off), readout=True))
        yield "begun", ablation.ablate(ablation.baseline(tokens)[0], off)
        for name, pruned in changed.items():
            module = module_of(pruned.config, pruned.tensors, "cpu", getattr(torch, dtype))
            yield name, module(tokens, Run(readout=True))


@pytest.mark.parametrize("kind", KINDS)
def test_heads_off_in_own_families(tmp_path, kind):
    path = KINDS[kind](tmp_path / "model")
    spec = open_model(path).spec
    for off in (chosen(spec), frozenset(spec.heads)):
        found = dict(ways_off(path, off))
        assert largest(found["off"], found["whole"]) > 1e-3
        for way in ("gates", "begun", "zeroed"):
            assert torch.equal(found[way], found["off"]), way
        assert largest(found["removed"], found["off"]) < 1e-12


@pytest.mark.parametrize("kind, name, output", PRETRAINED, ids=lambda one: one)
def test_heads_off_in_models_of_transformers(folder, kind, name, output):
    path = folder(kind, name)
    dtype, close = ("float32", 1e-5) if kind in SINGLE else ("float64", 1e-12)
    spec = open_model(path).spec
    heads = parse_heads("0.*,1.0", spec.layers)  # a layer without any, and half a key group
    found = dict(ways_off(path, heads, dtype))
    assert largest(found["off"], found["whole"]) > 1e-3
    assert ("removed" in found) == (kind not in OWN_CODE)
    for way, other in found.items():
        assert way == "whole" or largest(other, found["off"]) < close, way

    other = getattr(transformers, name).from_pretrained(
        path, dtype=getattr(torch, dtype),
        # its own code for soft caps weighs in float32
        **({"attn_implementation": "hgviz"} if kind == "gemma2" else {}),
    ).eval()  # fmt: skip
    outputs = [module for key, module in other.named_modules() if key.endswith(output)]
    assert len(outputs) == len(spec.layers)
    texts = texts_for(open_model(path))
    read = {"input_ids": torch.from_numpy(texts["ids"][:1])}
    if "decoder_ids" in texts:
        read["decoder_input_ids"] = torch.from_numpy(texts["decoder_ids"][:1])
    with torch.no_grad():
        for layer, head in heads:
            width = outputs[layer].in_features // 4
            outputs[layer].weight[:, head * width : (head + 1) * width] = 0
        expected = other(**read).logits[0]
    assert largest(found["off"][0], expected) < close


# --- each head by itself --------------------------------------------------------------------------

EACH = [  # type, class, dtype: experts know no float64, nor is all exact where weights are watched
    ("llama", "LlamaForCausalLM", "float64"), ("opt", "OPTForCausalLM", "float64"),
    ("gpt_neox", "GPTNeoXForCausalLM", "float64"), ("albert", "AlbertForMaskedLM", "float64"),
    ("roberta", "RobertaForSequenceClassification", "float64"),
    ("t5", "T5ForConditionalGeneration", "float64"),
    ("diffllama", "DiffLlamaForCausalLM", "float64"),
    ("qwen3_next", "Qwen3NextForCausalLM", "float32"), ("bloom", "BloomForCausalLM", "float32"),
    ("xlnet", "XLNetForSequenceClassification", "float32"),
]  # fmt: skip
ROUGH = ("llama", "diffllama")  # norms or angles in float32


def require_each_alone(module, tokens, close):
    """ablate_each gives what a whole pass without each head gives, and alone without the others."""
    ablation = HeadAblation(module)
    baseline, whole = ablation.baseline(tokens)
    with torch.inference_mode():
        assert torch.equal(ablation.ablate(baseline, ()), whole)
        for alone in (False, True):
            seen = set()
            for heads, variants in ablation.ablate_each(baseline, alone):
                for head, found in zip(heads, variants, strict=True):
                    others = {one for one in ablation.heads if one.layer == head.layer} - {head}
                    off = frozenset(others if alone else {head})
                    assert largest(found, module(tokens, Run(off, readout=True))) < close
                    seen.add(head)
            assert seen == set(ablation.heads)


def tokens_of(model, batch=3, length=11):
    """A padded batch, two texts where the model reads two."""
    random = torch.Generator().manual_seed(1)

    def text(length):
        ids = torch.randint(0, 23, (batch, length), generator=random)
        ends = torch.tensor([length, length - 2, length - 5])[:batch]
        return Tokens(ids, torch.arange(length) < ends[:, None])

    if getattr(model.config, "form", "") != "encoder-decoder":
        return text(length)
    target, source = text(length), text(length - 3)
    return Tokens(target.ids, target.keep, source=source)


def without(model, tokens, off):
    """A whole pass with heads off."""
    with torch.inference_mode():
        return model(tokens, Run(frozenset(off)))


def each_off(ablation, tokens):
    """(head, logits) of every head off by itself."""
    for heads, variants in ablation.ablate_each(ablation.baseline(tokens)[0]):
        yield from zip(heads, variants, strict=True)


@every_model
def test_each_head_off_in_own_families(name, monkeypatch):
    model, tokens, starts = MODELS[name], tokens_of(MODELS[name]), []
    require_each_alone(model, tokens, 1e-12)
    # the same where the feed-forward begins with products of the baseline
    first_product = BlockAblation._first_product
    monkeypatch.setattr(
        BlockAblation, "_first_product", lambda *given: starts.append(1) or first_product(*given)
    )
    monkeypatch.setattr(trials, "saves_time", lambda *given: True)
    off = HeadId(0, 0)
    for head, found in each_off(HeadAblation(model), tokens):
        assert largest(found, without(model, tokens, {head})) <= 1e-10
    assert bool(starts) != ("wide cls" in name)  # whose blocks return two streams
    for head, found in each_off(HeadAblation(model, frozenset({off})), tokens):
        assert head != off and largest(found, without(model, tokens, {head, off})) <= 1e-10


def losses(logits):
    """(B,) The surprise of class or token 1 everywhere."""
    flat = logits.flatten(0, -2)
    nats = F.cross_entropy(flat, torch.ones(len(flat), dtype=torch.long), reduction="none")
    return nats.unflatten(0, (len(logits), -1)).sum(1)


@every_model
def test_gradients_of_gates_are_central_differences_and_those_of_captum(name):
    model, tokens, step = MODELS[name], tokens_of(MODELS[name]), 1e-5
    layers, ablation = [part.layer for part in attention_modules(model)], HeadAblation(model)
    count = len(ablation.heads)

    def forward(gates):  # (1, heads) of all heads, in a whole pass
        parts = gates.double().split([len(layer.heads) for layer in layers], dim=1)
        by_layer = {x.index: part.expand(3, -1) for x, part in zip(layers, parts, strict=True)}
        return losses(model(tokens, Run(gates=by_layer)))[None]

    slopes = ablation.gate_gradients(tokens, losses).gates
    for at in range(0, count, max(1, count // 4)):
        more, less = torch.ones(2, 1, count, dtype=torch.float64)
        more[0, at] += step
        less[0, at] -= step
        difference = (forward(more) - forward(less))[0] / (2 * step)
        assert largest(slopes[:, at], difference) <= 1e-6 * max(1, slopes.abs().max())
    if name not in list(MODELS)[::3]:
        return
    whole, gates = losses(without(model, tokens, ())), torch.ones(1, count, dtype=torch.float64)
    ablated = FeatureAblation(forward).attribute(gates).reshape(3, -1)
    for head, found in each_off(ablation, tokens):
        column = ablated[:, ablation.heads.index(head)]
        assert largest(column, whole - losses(found)) <= 1e-11 * (1 + ablated.abs().max())
    for row in range(3):
        saliency = Saliency(lambda x, row=row: forward(x)[:, row])
        found = saliency.attribute(gates.requires_grad_(), abs=False)[0]
        assert largest(found, slopes[row]) <= 1e-11 * max(1, slopes.abs().max())


@pytest.mark.parametrize("kind, name, dtype", EACH, ids=lambda one: one)
def test_each_head_off_in_models_of_transformers(folder, kind, name, dtype):
    model = open_model(folder(kind, name), dtype=dtype)
    module = model.module
    tokens = Tokens(torch.randint(5, 110, (2, 9), generator=torch.Generator().manual_seed(0)))
    if model.spec.two_texts:
        tokens = Tokens(tokens.ids[:, :5], source=tokens)
    require_each_alone(module, tokens, 1e-5 if dtype == "float32" else 1e-12)
    if kind in ("qwen3_next", "t5"):  # with experts that may change, and norms in float32
        return

    def losses(logits):
        return logits.flatten(1).tanh().sum(1)

    slopes = HeadAblation(module).gate_gradients(tokens, losses).gates
    step, close = (1e-2, 3e-2) if kind in ROUGH or dtype == "float32" else (1e-5, 1e-5)
    for at, head in enumerate(model.spec.heads[:8]):
        ends = []
        for sign in (1, -1):
            gates = gates_of(module, model.spec, ())[head.layer]
            gates[:, model.spec.layers[head.layer].heads.index(head.head)] += sign * step
            with torch.inference_mode():
                ends.append(losses(module(tokens, Run(gates={head.layer: gates}))))
        numeric = (ends[0] - ends[1]) / (2 * step)
        assert torch.allclose(slopes[:, at], numeric, atol=close * 10, rtol=close)


# --- scores of examples ---------------------------------------------------------------------------

TEXT = "the cat sat on the mat and the dog sat on the log. " * 9


def classified(folder):
    random = np.random.default_rng(3)
    write_transformer(
        folder, vocab_size=256, form="encoder", goal="classes", labels=["a", "b"], n_layers=3
    )
    prompts = [Bytes().encode(TEXT[:length]) for length in random.integers(3, 30, 50)]
    return classification_examples(prompts, list(random.integers(0, 2, 50)), ("a", "b"), None)


def modelled(folder):
    write_checkpoint(folder, vocab_size=256, causal=True, hierarchy="1@1 2@2 1@1")
    return next_token_examples([Bytes().encode(TEXT)], length=64)


def filled_in(folder):
    write_transformer(folder, vocab_size=256, form="encoder", goal="masked")
    return masked_token_examples([Bytes().encode(TEXT)], 0)


@pytest.fixture(params=[classified, modelled, filled_in])
def case(request, tmp_path):
    """A model in float64 and what it is scored on."""
    examples = request.param(tmp_path / "model")
    return open_model(tmp_path / "model", dtype="float64"), examples


def by_run(model, batch, off):
    logits = model.run(batch.ids, batch.mask if not batch.mask.all() else None, off=off).logits
    asked = batch.asked
    chances = log_softmax(logits[asked].astype(float), -1)
    loss = -np.take_along_axis(chances, batch.wanted[asked][:, None], -1)[:, 0]
    return loss, logits[asked].argmax(-1)


def batches(one):
    return [batch for block in one.blocks for batch in block]


@pytest.mark.parametrize("cache_bytes", [CACHE_BYTES, 1])
def test_predictions_with_heads_off_are_those_of_a_whole_run(case, cache_bytes):
    model, examples = case
    one = Trials(model, examples, cache_bytes=cache_bytes)
    seen = np.zeros(len(examples.wanted), int)
    for batch in batches(one):
        for off in (set(), {one.heads[-1]}, {one.heads[0], one.heads[3]}, set(one.heads)):
            loss, answers = one.without(batch, off)
            expected, likeliest = by_run(model, batch, off)
            assert scaled_error(loss, expected) <= 1e-6
            assert (answers == likeliest).all()
        seen[examples.where(batch)] += 1
    assert (seen == 1).all()
    assert any(baseline.outputs for baseline, _ in one._cache.values()) == (cache_bytes > 1)
    for row in range(min(len(examples), 12)):  # each may lie in memory where another lay
        batch = examples.batch([row])
        assert scaled_error(one.baseline(batch)[0], by_run(model, batch, set())[0]) <= 1e-6
        del batch


@pytest.mark.parametrize("without_effect", [0, 1, 999])
def test_an_excerpt_proves_that_heads_have_an_effect(case, without_effect, monkeypatch):
    model, examples = case
    one, seen, ablate = Trials(model, examples), [], HeadAblation.ablate

    def watched(ablation, baseline, off):  # heads that do nothing in so many passes
        seen.append(tuple(baseline.tokens.ids.shape))
        return ablate(ablation, baseline, () if len(seen) <= without_effect else off)

    monkeypatch.setattr(HeadAblation, "ablate", watched)
    if without_effect == 999:
        with pytest.raises(HgvizError, match="heads of layer 0 has no effect"):
            one.require_effect()
    else:
        one.require_effect()
    shape = one.blocks[0][0].ids.shape
    excerpt = (1, min(EXCERPT, shape[1]))
    layers = sum(1 for layer in model.spec.layers if layer.heads)
    assert seen == [excerpt] * layers if not without_effect else seen[0] == excerpt
    assert not without_effect or seen[-1] == shape


class Contexts(Observer):
    """Records the contexts (queries, D) of every head of a text, or puts others in their place."""

    def __init__(self, others=None):
        self.found, self.others = {}, others or {}

    def on_attention(self, call, context):
        context = context.clone()
        for (layer, place), other in self.others.items():
            if layer == call.layer:
                context[0, place] = other[np.arange(context.shape[2]) % len(other)]
        self.found |= {(call.layer, place): one for place, one in enumerate(context[0])}
        return context


def read_by_itself(model, examples, row, others=None):
    """The losses and the contexts of one text, of no batch and by no short cut."""
    batch, seen = examples.batch([row]), Contexts(others)
    with torch.inference_mode():
        logits = model.module(batch_tokens(batch, "cpu"), Run(observers=[seen]))
    return predictions_of(logits, batch)[0], seen.found


@pytest.mark.parametrize(
    ("ablation", "cache_bytes"), [("mean", CACHE_BYTES), ("resample", CACHE_BYTES), ("resample", 1)]
)
def test_means_and_other_examples_take_the_place_of_heads_that_are_off(case, ablation, cache_bytes):
    model, examples = case
    if len(examples) == 1:  # the text of a masked language model, in parts
        examples = masked_token_examples([Bytes().encode(TEXT[at:90]) for at in (0, 20, 43)], 0)
    one = Trials(model, examples, frozenset({HeadId(0, 0)}), cache_bytes, ablation=ablation, seed=4)
    whole = [read_by_itself(model, examples, row)[1] for row in range(len(examples))]
    means = {head: torch.cat([text[head] for text in whole]).mean(0)[None] for head in whole[0]}
    offs = [set(), {one.heads[1]}, {one.heads[-1], one.heads[2]}]
    for batch in batches(one)[:2]:
        each = dict(one.without_each(batch))
        alone = dict(one.without_each(batch, alone=True))
        others = [{HeadId(1, head) for head in model.spec.layers[1].heads} - {HeadId(1, 1)}]
        found = [one.without(batch, off)[0] for off in offs]
        found += [each[one.heads[1]][0], each[one.heads[-1]][0], alone[HeadId(1, 1)][0]]
        places = np.cumsum([0, *np.diff(examples.places)[batch.rows]])
        for at, row in list(enumerate(batch.rows))[:5]:
            source = means if ablation == "mean" else whole[one._partners[row]]
            for values, off in zip(found, [*offs, offs[1], {one.heads[-1]}, *others], strict=True):
                replaced = {head: source[head] for head in {(0, 0), *map(tuple, off)}}
                expected, _ = read_by_itself(model, examples, int(row), replaced)
                got = values[places[at] : places[at + 1]]
                assert scaled_error(got, expected) <= 1e-6
    assert sorted(one._partners) == [*range(len(examples))]
    assert (one._partners != np.arange(len(examples))).all()


def test_slopes_towards_the_mean_are_the_change_of_the_loss_with_a_gate(case):
    model, examples = case
    one = Trials(model, examples, ablation="mean")
    batch, head = batches(one)[0], one.heads[2]
    slopes, _ = one.gate_gradients(batch)
    tokens, found = one._tokens(batch), []
    gates = torch.ones(1, len(model.spec.layers[head.layer].heads), dtype=torch.float64)
    for gate in (1.001, 0.999):
        gates[0, head.head] = gate
        run = Run(gates={head.layer: gates}, replacement=one._replacement(batch))
        found.append(predictions_of(model.module(tokens, run).detach(), batch)[0].sum(dtype=float))
    assert slopes[:, 2].sum() == pytest.approx((found[0] - found[1]) / 0.002, rel=1e-3, abs=1e-4)


def test_what_cannot_be_replaced_is_said_in_one_line(case, tmp_path):
    model, examples = case
    single = Trials(model, examples.part(np.arange(1)), ablation="resample")
    with pytest.raises(HgvizError, match="at least two examples"):
        single.without(batches(single)[0], {single.heads[0]})
    bloom = open_model(write(tmp_path / "bloom", "bloom", "BloomForCausalLM", vocab_size=256))
    own = Trials(bloom, next_token_examples([Bytes().encode(TEXT)], length=32), ablation="mean")
    with pytest.raises(HgvizError, match="heads of layer 0 can only be set to zero"):
        own.without(batches(own)[0], {own.heads[0]})


# --- activation patching --------------------------------------------------------------------------

CLEAN, CORRUPTED, ANSWER, WRONG = [3, 5, 7, 3, 5], [4, 5, 8, 3, 6], 7, 9
CONFIGS = {
    "gpt2": transformers.GPT2Config(
        vocab_size=20, n_embd=24, n_layer=2, n_head=3, n_positions=16, bos_token_id=1,
        eos_token_id=1,
    ),
    "llama": transformers.LlamaConfig(
        vocab_size=20, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=CONFIGS)
def patched_models(request, tmp_path_factory):
    """A model in transformers, in float64, and the same model open."""
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("patched") / request.param
    net = transformers.AutoModelForCausalLM.from_config(CONFIGS[request.param])
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    net.save_pretrained(folder)
    plain = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float64
    ).eval()
    return plain, open_model(folder, dtype="float64")


def logit_difference(net, ids, layer=None, head=None, contexts=None):
    """The logit difference, with one head's part of the output projection's input exchanged."""
    outputs = [part for name, part in net.named_modules()
               if name.endswith(("self_attn.o_proj", "attn.c_proj"))]  # fmt: skip
    width = net.config.hidden_size // net.config.num_attention_heads
    found, hooks = {}, []

    def hook(index, part, args):
        x = args[0].clone()
        found[index] = args[0].clone()
        if index == layer:
            place = slice(head * width, (head + 1) * width)
            x[..., place] = contexts[index][..., place]
        return (x,)

    for index, part in enumerate(outputs):
        hooks.append(part.register_forward_pre_hook(lambda p, a, i=index: hook(i, p, a)))
    with torch.no_grad():
        logits = net(torch.tensor([ids])).logits[0, -1]
    for one in hooks:
        one.remove()
    return float(logits[ANSWER] - logits[WRONG]), found


def test_every_head_is_patched_as_by_hooks(patched_models):
    net, model = patched_models
    found = tasks.patching(model, model.from_ids(CLEAN), model.from_ids(CORRUPTED), ANSWER, WRONG)
    clean, clean_contexts = logit_difference(net, CLEAN)
    corrupted, corrupted_contexts = logit_difference(net, CORRUPTED)
    assert (found.clean, found.corrupted) == pytest.approx((clean, corrupted), abs=1e-6)
    for at, (layer, head) in enumerate(found.heads):
        back, _ = logit_difference(net, CORRUPTED, layer, head, clean_contexts)
        lost, _ = logit_difference(net, CLEAN, layer, head, corrupted_contexts)
        span = found.clean - found.corrupted  # in logits: transformers rotates in float32
        assert span * found.denoised[at] == pytest.approx(back - corrupted, abs=1e-6)
        assert span * found.noised[at] == pytest.approx(clean - lost, abs=1e-6)
    assert len(found.heads) == len(model.spec.heads) and np.ptp(found.denoised) > 0.01
    rows = found.to_rows()
    assert [row["denoised"] for row in rows] == sorted(found.denoised, reverse=True)
