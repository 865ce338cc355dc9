"""Heads off, gates of 0, zeroed columns of W_O and removed weights give the same logits.

Own families: bit for bit where the products have the same shape, 1e-12 in float64 where they are
smaller. Models of transformers: 1e-12 in float64, beside transformers itself without the columns.
"""

import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from captum.attr import FeatureAblation, Saliency

from hgviz.analysis.importance import removal_costs, savings
from hgviz.core import HeadId, HgvizError, parse_heads
from hgviz.models import checkpoints, open_model, trials
from hgviz.models.checkpoints import save
from hgviz.models.head_weights import head_costs
from hgviz.models.layers import Tokens, attention_modules
from hgviz.models.model import module_of
from hgviz.models.pruning import remove_heads, zero_heads
from hgviz.models.run import Run
from hgviz.models.trials import BlockAblation, HeadAblation
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    texts_for,
    write_checkpoint,
    write_transformer,
)
from tests.models.folders import write_bert, write_gpt2
from tests.models.zoo import write

LEVELS = "1@1 1@2 1@4 1@2 1@1"
MIXED = {"n_heads": 4, "activations": ["softmax", "ymish", "tanh", "linear"]}
WINDOWED = {"form": "windowed", "positions": "learned", "max_positions": 40}
CLASSES = {"form": "encoder", "goal": "classes", "labels": ["a", "b"]}
SLOTS = {"slots": 4, "max_positions": 20}
HOURGLASSES = {
    "hourglass": {"hierarchy": LEVELS, "n_heads": 3},
    "mixed hourglass": MIXED,
    "rotary hourglass": {"positions": "rotary"},
    "plain up": {"attention_upsampling": "none"},
    "without resampling": {"downsampling": "average", "upsampling": "repeat"},
    "windowed": {"hierarchy": LEVELS, "n_heads": 3, **WINDOWED},
    "compat": {"masking": "compat", **WINDOWED},
    "wider inside": {"hierarchy": LEVELS, "widths": (12, 16, 24)},
    "narrower inside, windowed": {"widths": (12, 8), **WINDOWED},
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
    "wide cls": {**CLASSES, "cls_width": 20, **SLOTS},
    "two wide cls": {**CLASSES, "cls": 2, "cls_width": 20, "norm_first": True},
    "encoder-decoder": {},
    "rotary": {"positions": "rotary"},
    "decoder with cross": {"form": "decoder", "cross": True},
}  # fmt: skip
KINDS = {  # name: what writes such a folder
    "classifier": write_bert,
    "gpt2": write_gpt2,
    **{k: functools.partial(write_checkpoint, **keys) for k, keys in HOURGLASSES.items()},
    **{k: functools.partial(write_transformer, **keys) for k, keys in TRANSFORMERS.items()},
}
MORE_HOURGLASSES = {
    "linear down": {"hierarchy": LEVELS, "downsampling": "linear"},
    "attention on averages": {"hierarchy": LEVELS, "attention_downsampling": "average"},
    "windowed, linear down": {"hierarchy": LEVELS, "downsampling": "linear", **WINDOWED},
}
MORE_TRANSFORMERS = {
    "several cls": {**CLASSES, "n_layers": 3, "cls": 2},
    "decoder": {"form": "decoder", "n_layers": 3, "norm_first": False},
    "both, post-norm": {"norm_first": False},
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
some_models = pytest.mark.parametrize("name", list(MODELS)[::3])

PRETRAINED = [  # type, class, what the names of the products behind heads end with
    ("llama", "LlamaForCausalLM", "o_proj"), ("mistral", "MistralForCausalLM", "o_proj"),
    ("qwen3", "Qwen3ForCausalLM", "o_proj"), ("gemma2", "Gemma2ForCausalLM", "o_proj"),
    ("phi3", "Phi3ForCausalLM", "o_proj"), ("gpt_neox", "GPTNeoXForCausalLM", "attention.dense"),
    ("opt", "OPTForCausalLM", "out_proj"),
    ("roberta", "RobertaForMaskedLM", "attention.output.dense"),
    ("distilbert", "DistilBertForSequenceClassification", "out_lin"),
    ("electra", "ElectraForSequenceClassification", "attention.output.dense"),
    ("modernbert", "ModernBertForMaskedLM", "attn.Wo"),
    ("deepseek_v3", "DeepseekV3ForCausalLM", "o_proj"), ("gpt_oss", "GptOssForCausalLM", "o_proj"),
    ("t5", "T5ForConditionalGeneration", "Attention.o"),
    ("bart", "BartForConditionalGeneration", "attn.out_proj"),
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
    ablation = HeadAblation(module)
    changed = {"zeroed": zero_heads(checkpoint, off)}
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
@pytest.mark.parametrize("every", [False, True], ids=["some", "every"])
def test_heads_off_in_own_families(tmp_path, kind, every):
    path = KINDS[kind](tmp_path / "model")
    spec = open_model(path).spec
    off = frozenset(spec.heads) if every else chosen(spec)
    found = dict(ways_off(path, off))
    assert largest(found["off"], found["whole"]) > 1e-3
    for way in ("gates", "begun", "zeroed"):
        assert torch.equal(found[way], found["off"]), way
    assert largest(found["removed"], found["off"]) < 1e-12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model of transformers once."""
    return functools.cache(
        lambda kind, name, **changes: write(tmp_path_factory.mktemp(kind) / kind, kind, name,
                                            **changes)
    )  # fmt: skip


@pytest.mark.parametrize("kind, name, output", PRETRAINED, ids=lambda one: one)
def test_heads_off_in_models_of_transformers(folder, kind, name, output):
    import transformers

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
    tokens = tokens_for(open_model(path))
    source = tokens if tokens.source is None else tokens.source
    read = {"input_ids": source.ids[:1]}
    if tokens.source is not None:
        read["decoder_input_ids"] = tokens.ids[:1]
    with torch.no_grad():
        for layer, head in heads:
            width = outputs[layer].in_features // 4
            outputs[layer].weight[:, head * width : (head + 1) * width] = 0
        expected = other(**read).logits[0]
    assert largest(found["off"][0], expected) < close


# --- each head by itself --------------------------------------------------------------------------


EACH = [  # type, class, dtype: experts know no float64, nor is all exact where weights are watched
    ("llama", "LlamaForCausalLM", "float64"), ("mistral", "MistralForCausalLM", "float64"),
    ("gemma2", "Gemma2ForCausalLM", "float64"), ("opt", "OPTForCausalLM", "float64"),
    ("gpt_neox", "GPTNeoXForCausalLM", "float64"), ("albert", "AlbertForMaskedLM", "float64"),
    ("roberta", "RobertaForSequenceClassification", "float64"),
    ("electra", "ElectraForSequenceClassification", "float64"),
    ("modernbert", "ModernBertForMaskedLM", "float64"),
    ("t5", "T5ForConditionalGeneration", "float64"),
    ("diffllama", "DiffLlamaForCausalLM", "float64"),
    ("qwen3_next", "Qwen3NextForCausalLM", "float32"), ("bloom", "BloomForCausalLM", "float32"),
    ("gptj", "GPTJForCausalLM", "float32"), ("xlnet", "XLNetForSequenceClassification", "float32"),
]  # fmt: skip
ROUGH = (
    "t5",
    "llama",
    "mistral",
    "gemma2",
    "modernbert",
    "diffllama",
)  # norms or angles in float32


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


@some_models
def test_a_layer_whose_absence_changes_nothing_is_found(name, monkeypatch):
    model, tokens = MODELS[name], tokens_of(MODELS[name])
    assert HeadAblation(model).find_unused_layer(tokens) is None
    ablate = HeadAblation.ablate
    monkeypatch.setattr(HeadAblation, "ablate", lambda one, base, off: ablate(one, base, ()))
    assert HeadAblation(model).find_unused_layer(tokens) == 0


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


# --- what is left ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_removed_heads_save_what_they_cost(tmp_path, kind):
    path = KINDS[kind](tmp_path / "whole")
    model, checkpoint = open_model(path), checkpoints.read(path)
    off = chosen(model.spec)
    small = remove_heads(checkpoint, off)
    parameters, _ = removal_costs(model.spec, head_costs(model.module), np.array([9]))
    sizes = [sum(x.numel() for x in one.tensors.values()) for one in (checkpoint, small)]
    assert savings(parameters, model.spec, sorted(off))[-1] == sizes[0] - sizes[1] > 0
    save(tmp_path / "small", small.config, small.tensors)
    spec = open_model(tmp_path / "small").spec
    assert spec.heads == tuple(head for head in model.spec.heads if head not in off)
    assert [layer.name for layer in spec.layers] == [layer.name for layer in model.spec.layers]
    assert zero_heads(checkpoint, off).config == checkpoint.config


@pytest.mark.parametrize("kind", ["classifier", "hourglass", "encoder-decoder"])
def test_heads_removed_in_two_steps(tmp_path, kind):
    path = KINDS[kind](tmp_path / "whole")
    # of a layer without heads a model of transformers keeps zeros of whichever went last
    off = sorted(chosen(open_model(path).spec, empty=kind != "classifier"))
    first = remove_heads(checkpoints.read(path), frozenset(off[::2]))
    save(tmp_path / "first", first.config, first.tensors)
    second = remove_heads(checkpoints.read(tmp_path / "first"), frozenset(off[1::2]))
    assert second.digest == remove_heads(checkpoints.read(path), frozenset(off)).digest
    with pytest.raises(HgvizError, match=f"this model has no head {off[0]}: its layers are 0 to"):
        remove_heads(second, frozenset(off[:1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("change", [remove_heads, zero_heads])
def test_half_precision_stays_and_is_exact(tmp_path, dtype, change):
    path = write_checkpoint(tmp_path / "whole", dtype=dtype, n_heads=4)
    off = chosen(open_model(path).spec)
    made = change(checkpoints.read(path), off)
    assert {tensor.dtype for tensor in made.tensors.values()} == {dtype}
    save(tmp_path / "changed", made.config, made.tensors)
    assert np.abs(logits(tmp_path / "changed") - logits(path, off)).max() < 1e-12
