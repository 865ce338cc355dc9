"""Heads off, gates of 0, zeroed columns of W_O and removed weights give the same logits.

Own families: bit for bit where the products have the same shape, 1e-12 in float64 where they are
smaller. Models of transformers: 1e-12 in float64, beside transformers itself without the columns.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from scipy.special import log_softmax

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, parse_heads
from hgviz.examples import classification_examples, masked_token_examples, next_token_examples
from hgviz.models import checkpoints, open_model, pruning, trials
from hgviz.models.layers import Tokens
from hgviz.models.model import batch_tokens, module_of
from hgviz.models.pruning import (
    add_to_biases,
    fit_gates,
    mean_contexts,
    remove_heads,
    write_pruned,
    zero_heads,
)
from hgviz.models.run import Observer, Run
from hgviz.models.tensors import Checkpoint
from hgviz.models.text import Bytes
from hgviz.models.trials import CACHE_BYTES, BlockAblation, HeadAblation, Trials, predictions_of
from tests.closeness import scaled_error
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    texts_for,
    write_bert,
    write_checkpoint,
    write_gpt2,
    write_module,
    write_transformer,
)
from tests.models.zoo import model_of

LEVELS = "1@1 1@2 1@4 1@2 1@1"
WINDOWED = {"form": "windowed", "positions": "learned", "max_positions": 40}
CLASSES = {"form": "encoder", "goal": "classes", "labels": ["a", "b"]}
SLOTS = {"slots": 4, "max_positions": 20}
FAMILIES = {
    "hourglass": {"hierarchy": LEVELS, "n_heads": 3},
    "mixed hourglass": {"n_heads": 4, "activations": ["softmax", "ymish", "tanh", "linear"]},
    "narrower inside, windowed": {"widths": (12, 8), "masking": "compat", **WINDOWED},
    "windowed, linear down": {"hierarchy": LEVELS, "downsampling": "linear", **WINDOWED},
    "shared": {**CLASSES, "n_heads": 3, "shared_width": 7},
    "linformer": {
        "form": "encoder", "goal": "masked", **SLOTS, "slots_sharing": "none", "slots_bias": True,
    },
    "synthesizer": {"form": "decoder", "max_positions": 20, "rank": 3,
                    "scores": ["dense+random", "dot+factorised+fixed"]},
    "wide cls": {**CLASSES, "cls": 2, "cls_width": 20, "norm_first": True, **SLOTS},
    "encoder-decoder": {"form": "encoder-decoder"},
    "decoder": {"form": "decoder", "n_layers": 3, "norm_first": False},
    "bert": {"family": "bert", "max_positions": 16, "pooler": "shared", "goal": "classes",
             "labels": ["a", "b", "c"]},
    "own gpt2": {"family": "gpt2", "max_positions": 16},
    "yubert": {"family": "yubert", "labels": ["a", "b"], "slots": 5, "max_positions": 16,
               "norms": {"ymish": "l2"}, "activations": "ymish"},
    "ragged": {**CLASSES, "n_layers": 3, "n_heads": 3, "kept": ((0, 2), (), (1,))},
    "nothing to read": {**CLASSES, "n_heads": 3, "kept": ((0, 2), ())},
}  # fmt: skip
CROSS = {"form": "decoder", "cross": True, "positions": "rotary"}  # reads states
EQUAL = ("own gpt2", "bert", "decoder", "nothing to read")  # pass through code that others use


def is_hourglass(keys):
    return not {"form", "family"} & keys.keys() or keys.get("form") == "windowed"


def made(keys):
    """A float64 model of such keys."""
    if is_hourglass(keys):
        return make_hourglass(make_config(**keys))
    return make_transformer(**keys)


MODELS = {name: made(keys).requires_grad_(False) for name, keys in FAMILIES.items()}
KINDS = {  # name: what writes such a folder
    "classifier": write_bert,
    "gpt2": write_gpt2,
    **{
        name: lambda folder, keys=keys: write_module(folder, made(keys))
        for name, keys in {**FAMILIES, "decoder with cross": CROSS}.items()
        if name not in EQUAL
    },
}
PRETRAINED = [  # type, class, what the names of the products behind heads end with
    ("gemma2", "Gemma2ForCausalLM", "o_proj"),
    ("gpt_neox", "GPTNeoXForCausalLM", "attention.dense"),
    ("distilbert", "DistilBertForSequenceClassification", "out_lin"),
    ("modernbert", "ModernBertForMaskedLM", "attn.Wo"),
    ("deepseek_v3", "DeepseekV3ForCausalLM", "o_proj"), ("gpt_oss", "GptOssForCausalLM", "o_proj"),
    ("t5", "T5ForConditionalGeneration", "Attention.o"),
    ("bloom", "BloomForCausalLM", "self_attention.dense"),
]  # fmt: skip
OWN_CODE = ("bloom",)  # attention code of its own: no weights are removed
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
    ("opt", "OPTForCausalLM", "float64"), ("xlnet", "XLNetForSequenceClassification", "float32"),
    ("albert", "AlbertForMaskedLM", "float64"),
    ("t5", "T5ForConditionalGeneration", "float64"),
    ("diffllama", "DiffLlamaForCausalLM", "float64"),
    ("qwen3_next", "Qwen3NextForCausalLM", "float32"), ("bloom", "BloomForCausalLM", "float32"),
]  # fmt: skip
ROUGH = ("diffllama",)  # norms or angles in float32


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


@pytest.mark.parametrize("name", MODELS)
def test_each_head_off_in_own_families(name, monkeypatch):
    model, tokens, starts = MODELS[name], tokens_of(MODELS[name]), []
    require_each_alone(model, tokens, 1e-12)
    # the same where the feed-forward begins with products of the baseline
    first_product = BlockAblation._first_product
    monkeypatch.setattr(
        BlockAblation, "_first_product", lambda *given: starts.append(1) or first_product(*given)
    )
    monkeypatch.setattr(trials, "saves_time", lambda *given: True)
    for off in (frozenset(), frozenset({HeadId(0, 0)})):
        ablation = HeadAblation(model, off)
        for heads, variants in ablation.ablate_each(ablation.baseline(tokens)[0]):
            for head, found in zip(heads, variants, strict=True):
                with torch.inference_mode():
                    wanted = model(tokens, Run(off | {head}))
                assert head not in off and largest(found, wanted) <= 1e-10
    assert bool(starts) != ("wide cls" in name)  # whose blocks return two streams


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

    slopes, _ = HeadAblation(module).gate_gradients(tokens, losses)
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
    excerpt = (1, min(trials.EXCERPT, shape[1]))
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


# --- activation patching --------------------------------------------------------------------------

CLEAN, CORRUPTED, ANSWER, WRONG = [3, 5, 7, 3, 5], [4, 5, 8, 3, 6], 7, 9
CONFIG = transformers.LlamaConfig(
    vocab_size=20, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
)  # fmt: skip


def logit_difference(net, ids, layer=None, head=None, contexts=None):
    """The logit difference, with one head's part of the output projection's input exchanged."""
    outputs = [part for name, part in net.named_modules() if name.endswith("self_attn.o_proj")]
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


def test_every_head_is_patched_as_by_hooks(tmp_path):
    torch.manual_seed(3)
    net = transformers.AutoModelForCausalLM.from_config(CONFIG)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    net.save_pretrained(tmp_path)
    net = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, attn_implementation="eager", dtype=torch.float64
    ).eval()
    model = open_model(tmp_path, dtype="float64")
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
    assert [row["denoised"] for row in found.to_rows()] == sorted(found.denoised, reverse=True)


# --- compensation ---------------------------------------------------------------------------------


def checkpoint_of(module):
    """The checkpoint of a module."""
    return Checkpoint(module.config, module.state_dict(), "", Path("model.safetensors"))


def module_from(checkpoint):
    return module_of(checkpoint.config, checkpoint.tensors, "cpu", torch.float64)


def batches_of(config, count=23, lengths=(9, 6)):
    """Batches of two texts; the second is padded."""
    made = torch.Generator().manual_seed(3)
    found = []
    for length in lengths:
        ids = torch.randint(5, count, (2, length), generator=made)
        keep = torch.arange(length) < torch.tensor([[length], [length - 2]])
        both = getattr(config, "form", "") == "encoder-decoder"
        one = Tokens(ids, keep)
        found.append(Tokens(ids[:, :5], source=one) if both else one)
    return found


COMPENSATED = {
    "encoder": lambda: make_transformer(form="encoder", goal="states", n_heads=3),
    "encoder-decoder": lambda: make_transformer(n_heads=3),
    "hourglass": lambda: make_hourglass(make_config(hierarchy="1@1 1@2 1@4 1@2 1@1", n_heads=3)),
}


def texts_alone(batches):
    """Every text of some batches by itself, and none padded."""
    for batch in batches:
        read = batch.source or batch
        for row, length in enumerate(read.keep.sum(1).tolist()):
            text = Tokens(read.ids[row : row + 1, :length])
            both = batch.source is not None
            yield Tokens(batch.ids[row : row + 1], source=text) if both else text


@torch.no_grad()
@pytest.mark.parametrize("kind", COMPENSATED)
def test_folded_means_are_mean_ablation(kind):
    module = COMPENSATED[kind]()
    config, spec = module.config, module.config.spec("", "", 0)
    off, each = chosen(spec, empty=False), batches_of(config)
    found = mean_contexts(module, spec, off, each)
    alone, contexts = [*texts_alone(each)], {head: [] for head in found}
    for text in alone:
        seen = Contexts()
        module(text, Run(observers=[seen]))
        for layer, place in found:
            stride = spec.levels[spec.layers[layer].level].stride or 1
            real = None if text.source is not None else -(-text.ids.shape[1] // stride)
            contexts[layer, place].append(seen.found[layer, place][:real])
    for head, mean in found.items():
        assert torch.allclose(mean, torch.cat(contexts[head]).mean(0), atol=1e-12)
    small = module_from(remove_heads(add_to_biases(checkpoint_of(module), found), off))
    means = {head: mean[None] for head, mean in found.items()}
    for text in alone:
        ablated = module(text, Run(observers=[Contexts(means)]))
        assert torch.allclose(small(text), ablated, atol=1e-12)


GATED = [
    ("llama", "LlamaForCausalLM"),
    ("qwen3_next", "Qwen3NextForCausalLM"),  # a gate of its own comes between heads and product
]


def contexts_in(net, names, factors, each):
    """What goes into the products behind heads (P, H, D), by layer, when its heads are multiplied
    there by factors: rows of real tokens of all texts."""
    found, hooks = [[] for _ in names], []
    for at, name in enumerate(names):

        def changed(module, arguments, at=at):
            x = arguments[0].unflatten(-1, (4, -1)) * factors[at][:, None].to(arguments[0])
            found[at].append(x.double())
            return (x.flatten(-2),)

        hooks.append(net.get_submodule(name).register_forward_pre_hook(changed))
    for one in each:
        with torch.no_grad():
            net(input_ids=one.ids, attention_mask=one.keep.long(), use_cache=False)
    for hook in hooks:
        hook.remove()
    rows = [one.keep for one in each]
    return [torch.cat([x[keep] for x, keep in zip(one, rows, strict=True)]) for one in found]


@pytest.mark.parametrize("kind, name", GATED, ids=lambda one: one)
def test_gates_are_the_damped_least_squares_of_each_layer(folder, kind, name):
    path = folder(kind, name)
    dtype = "float32" if kind == "qwen3_next" else "float64"  # experts know no other
    model = open_model(path, dtype=dtype)
    each, names = batches_of(model.config, 110, (11, 7)), model.config.output_modules
    last = model.spec.layers[-1].index
    off = frozenset({HeadId(0, 1), HeadId(last, 0), HeadId(last, 2)})
    found = fit_gates(model.module, model.spec, off, each)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(transformers, name)
        net = made.from_pretrained(path, attn_implementation="eager", dtype=dtype).eval()

    # a solver that is given a column for each head, layer by layer
    factors = torch.ones(len(names), 4).double()
    whole = contexts_in(net, names, factors, each)
    for head in off:
        factors[head.layer, head.head] = 0
    for at, product in enumerate(names):
        weight = net.get_submodule(product).weight.detach().double().unflatten(1, (4, -1))
        pruned = contexts_in(net, names, factors, each)[at]
        kept = [head for head in range(4) if HeadId(at, head) not in off]
        columns = torch.einsum("phe,dhe->hpd", pruned, weight)[kept].flatten(1).T
        aims = torch.einsum("phe,dhe->pd", whole[at], weight).flatten()
        one = torch.eye(len(kept)).double()  # damp 1, towards gates of 1
        rows, aims = torch.cat([columns, one]), torch.cat([aims, one.sum(1)])
        factors[at, kept] = torch.linalg.lstsq(rows, aims).solution
    wanted = {head: float(factors[head.layer, head.head]) for head in found}
    assert found == pytest.approx(wanted, abs=1e-5)
    assert set(found) == {*model.spec.heads} - off
    assert max(abs(one - 1) for one in wanted.values()) > 1e-3


# --- models of transformers without some heads ----------------------------------------------------

STATED = [  # their config.json says how wide a head is, or has other numbers of it
    ("llama", "LlamaForCausalLM"), ("phi3", "Phi3ForCausalLM"),
    ("deepseek_v3", "DeepseekV3ForCausalLM"),
]  # fmt: skip
ROBERTA, T5 = ("roberta", "RobertaModel"), ("t5", "T5ForConditionalGeneration")
ALL = frozenset(range(4))
GROUP = [{2, 3}]
LEFT = [  # heads of each layer that are left, and whether transformers opens such a model
    (STATED[0], [{0, 2}], True), (STATED[1], GROUP, True),
    (STATED[0], [{0, 2, 3}, {3}], False), (STATED[0], [ALL, set()], False),
    (STATED[2], [{0, 2, 3}], True),  # keys of its own
    (ROBERTA, GROUP, False), (T5, GROUP, False),  # the width of a head is derived
]  # fmt: skip
TEXT_IDS = np.arange(7, 30)


def logits_of(model, off=frozenset(), ids=TEXT_IDS):
    more = {"decoder_ids": TEXT_IDS[:17]} if model.spec.two_texts else {}
    return model.run(ids, off=off, **more).logits


def small(path, off, out):
    """Written without a proof; gives the model in float32, and why transformers does not open."""
    write_pruned(checkpoints.read(path), frozenset(off), "smaller", out)
    found = open_model(out)
    return found, found.config.hgviz_only


@pytest.mark.parametrize("which, left, opens", LEFT)
def test_transformers_opens_what_its_class_can_have(folder, tmp_path, which, left, opens):
    path, made = folder(*which), getattr(transformers, which[1])
    whole = open_model(path)
    off = frozenset(
        HeadId(layer.index, head)
        for layer in whole.spec.layers
        for head in ALL - left[min(layer.index, len(left) - 1)]
    )
    masked = logits_of(whole, off)
    found, alone = small(path, off, tmp_path / "out")
    assert scaled_error(logits_of(found), masked) < 1e-5
    assert np.abs(logits_of(whole) - masked).max() > 1e-3
    assert found.spec.heads == tuple(head for head in whole.spec.heads if head not in off)
    assert (alone == "") == opens and (which != T5 or "relative position table" in alone)
    if alone:
        with pytest.raises((RuntimeError, ValueError)):
            made.from_pretrained(tmp_path / "out")
    else:
        with torch.no_grad():
            other = made.from_pretrained(tmp_path / "out").eval()
            expected = other(torch.as_tensor(TEXT_IDS)[None]).logits[0].numpy()
        assert scaled_error(expected, masked) < 1e-5


def test_everything_else_of_the_folder_comes_along(folder, tmp_path):
    copy = tmp_path / "copy"
    model_of("llama", "LlamaForCausalLM").save_pretrained(copy, max_shard_size="20KB")
    (copy / "tokenizer_config.json").write_text("{}")
    (copy / "notes").mkdir()
    (copy / "notes" / "read.md").write_text("as it was")
    assert len([*copy.glob("model-*.safetensors")]) > 2
    off = {HeadId(layer, head) for layer in (0, 1) for head in (2, 3)}
    masked = logits_of(open_model(copy), off)
    found, alone = small(copy, off, tmp_path / "out")
    assert not alone and scaled_error(logits_of(found), masked) < 1e-5
    ends = copy, tmp_path / "out"
    before, after = ({str(one.relative_to(at)) for one in at.rglob("*")} for at in ends)
    assert before == after
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 4 * found.spec.parameters
    before, after = (json.loads((at / "config.json").read_text()) for at in ends)
    changed = {key for key in after if after[key] != before.get(key)}
    assert changed == {"num_attention_heads", "num_key_value_heads", "hgviz"}


@pytest.mark.parametrize("kind, name, words", [
    ("albert", "AlbertForMaskedLM", "shares its weights with other layers"),
    ("olmo2", "Olmo2ForCausalLM", "are not separate for each head"),
    ("bloom", "BloomForCausalLM", "has its own attention code"),
])  # fmt: skip
def test_weights_that_do_not_go_by_heads_are_refused(folder, tmp_path, kind, name, words):
    with pytest.raises(HgvizError, match=words) as error:
        tasks.prune(folder(kind, name), "0.1", tmp_path / "out")
    assert "Choose --form zeroed" in str(error.value) and not (tmp_path / "out").exists()
    assert pruning.head_costs(open_model(folder(kind, name)).module) is None


# --- what config.json may say ---------------------------------------------------------------------


def layers_of(count=2, **changes):
    rows = [
        {"name": f"model.layers.{at}.self_attn", "heads": [0, 2, 3], "of": 4, "groups": 2}
        for at in range(count)
    ]
    rows[0] |= changes
    return {"layers": rows}


MANY = 2**16
ENTRIES = [
    7, {"layers": [1, 2]}, layers_of(1), layers_of(3),
    *(layers_of(name=name) for name in ("lm_head", "no.such.module")),
    *(layers_of(heads=heads) for heads in ([0, 2], [2, 0, 3], [0, 0, 3], [0, 2, 4], [-1, 2, 3])),
    layers_of(of=3), layers_of(of=10**9), layers_of(groups=3), layers_of(groups=0),
    layers_of(more=1),
    layers_of(heads=[*range(MANY // 2)], of=MANY, groups=MANY),  # soon, however many
]  # fmt: skip


def test_an_entry_that_does_not_fit_is_one_clear_line(folder, tmp_path):
    narrow = tmp_path / "narrow"
    small(folder("llama", "LlamaForCausalLM"), {HeadId(0, 1), HeadId(1, 1)}, narrow)
    config = narrow / "config.json"
    data = json.loads(config.read_text())
    assert data["hgviz"] == layers_of()
    for entry in ENTRIES:
        config.write_text(json.dumps({**data, "hgviz": entry}))
        with pytest.raises(HgvizError) as error:
            open_model(narrow)
        assert "\n" not in str(error.value) and len(str(error.value)) < 600
