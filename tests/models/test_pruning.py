"""Heads removed for good: what makes up for them, folders of transformers without some, and other
activations. That logits stay those of the masked model is in test_heads_off."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from hgviz import tasks
from hgviz.analysis.importance import METHODS, importance, removal_costs, savings
from hgviz.core import HeadId, HgvizError, parse_heads
from hgviz.examples import classification_examples
from hgviz.models import checkpoints, open_model
from hgviz.models.head_weights import head_costs
from hgviz.models.layers import Attention, Tokens
from hgviz.models.model import module_of
from hgviz.models.pruning import (
    add_to_biases,
    count_parameters,
    fit_gates,
    mean_contexts,
    remove_heads,
    runner_without,
    scale_heads,
    write_pruned,
)
from hgviz.models.run import Run
from hgviz.models.tensors import Checkpoint
from hgviz.models.trials import BaselinePass, Trials
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
)
from tests.models.test_heads_off import chosen
from tests.models.zoo import model_of

# --- compensation ---------------------------------------------------------------------------------


def of(module):
    """The checkpoint of a module."""
    return Checkpoint(module.config, module.state_dict(), "", Path("model.safetensors"))


def opened(checkpoint):
    return module_of(checkpoint.config, checkpoint.tensors, "cpu", torch.float64)


def texts(config, count=23, lengths=(9, 6)):
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


MODELS = {
    "encoder": lambda: make_transformer(form="encoder", goal="states", n_heads=3),
    "encoder-decoder": lambda: make_transformer(n_heads=3),
    "hourglass": lambda: make_hourglass(make_config(hierarchy="1@1 1@2 1@4 1@2 1@1", n_heads=3)),
}


def real_contexts(module, spec, layer, each):
    """(P, H, D) of the rows that stand for real tokens, one text at a time and none padded."""
    found = []
    for text in each:
        read = text.source if text.source is not None else text
        for row in range(len(text.ids)):
            alone = read.ids[row : row + 1, : int(read.keep[row].sum())]
            one = Tokens(alone)
            if text.source is not None:
                one = Tokens(text.ids[row : row + 1], source=one)
            recorder = BaselinePass(one)
            module(one, Run(observers=[recorder]))
            rows = -(-alone.shape[1] // (spec.levels[spec.layers[layer].level].stride or 1))
            context = recorder.contexts[layer][0].transpose(0, 1)
            found.append(context[:rows] if text.source is None else context)
    return torch.cat(found)


@torch.no_grad()
@pytest.mark.parametrize("kind", MODELS)
def test_folded_means_are_mean_ablation(kind):
    module = MODELS[kind]()
    config, spec = module.config, module.config.spec("", "", 0)
    off, each = chosen(spec, empty=False), texts(config)
    found = mean_contexts(module, spec, off, each)
    for head, mean in found.items():
        contexts = real_contexts(module, spec, head.layer, each)
        at = spec.layers[head.layer].heads.index(head.head)
        assert torch.allclose(mean, contexts[:, at].mean(0), atol=1e-12)
    small = opened(remove_heads(add_to_biases(of(module), found), off))

    def ablated(part, arguments):
        """What goes into W_O, the means in place of what these heads give."""
        blocks = arguments[0].unflatten(-1, (len(spec.layers[part.index].heads), -1)).clone()
        for head, mean in found.items():
            if head.layer == part.index:
                blocks[:, :, head.head] = mean
        return (blocks.flatten(2),)

    for part in module.modules():
        if isinstance(part, Attention):
            part.o.index = part.layer.index
            part.o.register_forward_pre_hook(ablated)
    for text in each:
        assert torch.allclose(small(text), module(text), atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("kind", MODELS)
def test_gates_are_scaled_columns(kind):
    module = MODELS[kind]()
    spec, random = module.config.spec("", "", 0), np.random.default_rng(0)
    values = {head: float(random.normal()) for head in spec.heads}
    gates = {
        layer.index: torch.tensor([[values[HeadId(layer.index, head)] for head in layer.heads]],
                                  dtype=torch.float64)
        for layer in spec.layers
    }  # fmt: skip
    folded = opened(scale_heads(of(module), values))
    for text in texts(module.config):
        assert torch.allclose(folded(text), module(text, Run(gates=gates)), atol=1e-12)


GATED = [
    ("llama", "LlamaForCausalLM"), ("roberta", "RobertaForSequenceClassification"),
    ("qwen3_next", "Qwen3NextForCausalLM"),  # a gate of its own comes between heads and product
    ("bloom", "BloomForCausalLM"),  # attention code of its own
]  # fmt: skip


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
    each, names = texts(model.config, 110, (11, 7)), model.config.output_modules
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
DERIVED = [  # or is it the width of the model over the number of heads
    ("roberta", "RobertaModel"), ("t5", "T5ForConditionalGeneration"),
]  # fmt: skip
ALL = frozenset(range(4))
LEFT = {  # of each layer, whether all layers have equally many in equal groups of two
    "one of each group": ([{0, 2}], True),
    "one group": ([{2, 3}], True),
    "unequal layers": ([{0, 2, 3}, {3}], False),
    "unequal groups": ([{0, 2, 3}], False),
    "a layer without": ([ALL, set()], False),
}
IDS = np.arange(7, 30)


def run(model, off=frozenset(), ids=IDS):
    more = {"decoder_ids": IDS[:17]} if model.spec.two_texts else {}
    return model.run(ids, off=off, **more).logits


def small(path, off, out):
    """Written without a proof; gives the model in float32, and why transformers does not open."""
    write_pruned(checkpoints.read(path), frozenset(off), "smaller", out)
    found = open_model(out)
    return found, found.config.hgviz_only


@pytest.mark.parametrize("kind, name", STATED + DERIVED, ids=lambda one: one)
@pytest.mark.parametrize("case", LEFT)
def test_transformers_opens_what_its_class_can_have(folder, tmp_path, kind, name, case):
    path, (left, even) = folder(kind, name), LEFT[case]
    whole, made = open_model(path), getattr(transformers, name)
    off = frozenset(
        HeadId(layer.index, head)
        for layer in whole.spec.layers
        for head in ALL - left[min(layer.index, len(left) - 1)]
    )
    masked = run(whole, off)
    found, alone = small(path, off, tmp_path / "out")
    assert scaled_error(run(found), masked) < 1e-5 and np.abs(run(whole) - masked).max() > 1e-3
    assert found.spec.heads == tuple(head for head in whole.spec.heads if head not in off)
    if kind == "deepseek_v3":  # every head has keys of its own
        even = case not in ("a layer without", "unequal layers")
    assert (alone == "") == (even and (kind, name) in STATED)
    assert kind != "t5" or not even or "relative position table" in alone
    if alone:
        with pytest.raises((RuntimeError, ValueError)):
            made.from_pretrained(tmp_path / "out")
    else:
        with torch.no_grad():
            other = made.from_pretrained(tmp_path / "out").eval()
            assert scaled_error(other(torch.as_tensor(IDS)[None]).logits[0].numpy(), masked) < 1e-5


@pytest.mark.parametrize("kind, name", [
    *STATED, *DERIVED, ("gpt2", "GPT2LMHeadModel"), ("diffllama", "DiffLlamaForCausalLM"),
], ids=lambda one: one)  # fmt: skip
def test_removed_heads_save_what_they_cost(folder, kind, name):
    path = folder(kind, name)
    model, found = open_model(path), checkpoints.read(path)
    parameters, flops = removal_costs(model.spec, head_costs(model.module), np.array([23]))
    group = {HeadId(0, head) for head in next(iter(model.spec.layers[0].groups.values()))}
    last = {HeadId(model.spec.layers[-1].index, head) for head in (0, 3)} & {*model.spec.heads}
    layer = {head for head in model.spec.heads if head.layer == 1}
    for off in ({HeadId(0, 1)}, group, group | last | {HeadId(0, 1)}, layer | last):
        removed = count_parameters(found) - count_parameters(remove_heads(found, frozenset(off)))
        assert savings(parameters, model.spec, sorted(off))[-1] == removed
    assert (savings(flops, model.spec, model.spec.heads)[1:] > 0).all()


def test_what_is_left_is_captured_scored_and_pruned_again(folder, tmp_path):
    path = folder("roberta", "RobertaForSequenceClassification", vocab_size=256)
    off = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 1)})
    proof = tasks.prune(path, off, tmp_path / "a")
    assert proof.difference < 1e-5 and proof.parameters[1] < proof.parameters[0]
    assert proof.opens == "opens in hgviz only: layers keep different numbers of heads"
    assert len(proof.latency) == 2 and proof.to_dict()["opens"] == proof.opens
    whole, model = open_model(path), open_model(tmp_path / "a")
    text = Tokens(torch.as_tensor(IDS)[None])
    assert scaled_error(runner_without(whole, off)(text)[0].numpy(), run(whole, off)) < 1e-5

    # maps have the numbers and the weights of the heads of the masked model
    masked = tasks.capture(whole, whole.from_ids(IDS), off=off)
    tasks.capture(model, model.from_ids(IDS), out=tmp_path / "c.h5")
    kept = open_capture(tmp_path / "c.h5")
    assert kept.spec.layers == model.spec.layers
    for mine, theirs in zip(kept.maps, masked.maps, strict=True):
        for head in mine.heads:
            assert scaled_error(mine.read(head), theirs.read(head)) < 1e-5

    # scores of the heads that are left are those beside the others off
    prompts = [model.from_ids(IDS[seed : seed + 9]) for seed in range(4)]
    rows = classification_examples(prompts, [0, 1, 1, 0], ("a", "b"), None)
    needs = {METHODS[name].needs for name in ("loo", "michel")}
    study = tasks.importance(Trials(model, rows), needs)
    beside = tasks.importance(Trials(whole, rows, off), needs)
    assert study.heads == model.spec.heads
    for name in ("loo", "michel"):
        mine, theirs = importance(study, name), importance(beside, name)
        scores = dict(zip(theirs.heads, theirs.score, strict=True))
        assert scaled_error(mine.score, [scores[head] for head in mine.heads]) < 1e-5

    # again: numbers are those of the whole model, and a layer can end without any
    again = tasks.prune(tmp_path / "a", "0.2,1.*", tmp_path / "b")
    last = open_model(tmp_path / "b")
    assert [layer.heads for layer in last.spec.layers] == [(0, 3), ()] and again.empty == (1,)
    every = off | {HeadId(0, 2), HeadId(1, 2), HeadId(1, 3)}
    assert scaled_error(run(last), run(whole, every)) < 1e-5


def test_everything_else_of_the_folder_comes_along(folder, tmp_path):
    copy = tmp_path / "copy"
    model_of("llama", "LlamaForCausalLM").save_pretrained(copy, max_shard_size="20KB")
    (copy / "tokenizer_config.json").write_text("{}")
    (copy / "notes").mkdir()
    (copy / "notes" / "read.md").write_text("as it was")
    assert len([*copy.glob("model-*.safetensors")]) > 2
    off = {HeadId(layer, head) for layer in (0, 1) for head in (2, 3)}
    masked = run(open_model(copy), off)
    found, alone = small(copy, off, tmp_path / "out")
    assert not alone and scaled_error(run(found), masked) < 1e-5
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
    assert head_costs(open_model(folder(kind, name)).module) is None


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
    7, None, {}, {"layers": 3}, {"layers": []}, {"layers": [1, 2]},
    {"layers": [{}] * 20_000}, layers_of(1), layers_of(3),
    *(layers_of(name=name) for name in ("lm_head", "no.such.module", 7, "")),
    *(layers_of(heads=heads) for heads in (
        7, [0, 2], [0, 1, 2, 3], [2, 0, 3], [0, 0, 3], [0, 2, 4], [-1, 2, 3], [0.5, 2, 3],
        [0, 2, 10**12], [], [*range(60_000)])),
    *(layers_of(of=count) for count in (3, 0, 10**9)),
    *(layers_of(groups=count) for count in (0, 3, 4, 1, "2")),
    layers_of(more=1), {**layers_of(), "more": 1},
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


def test_heads_of_a_key_group_keep_its_number(folder, tmp_path):
    path = folder("llama", "LlamaForCausalLM")
    model = open_model(path)
    assert parse_heads("0.g1,1.2", model.spec.layers) == {HeadId(0, 2), HeadId(0, 3), HeadId(1, 2)}
    for text, words in [
        ("0.g2", "this model has no head 0.g2"), ("0.g0,0.1", "head 0.1 is named twice"),
        ("0.g", "does not name a head"), ("0.gg1", "does not name a head"),
    ]:  # fmt: skip
        with pytest.raises(HgvizError, match=words):
            parse_heads(text, model.spec.layers)
    found, _ = small(path, {HeadId(0, 0), HeadId(0, 1)}, tmp_path / "a")
    assert parse_heads("0.g1", found.spec.layers) == {HeadId(0, 2), HeadId(0, 3)}
    with pytest.raises(HgvizError, match="no head 0.g0"):
        parse_heads("0.g0", found.spec.layers)
    assert [one["key_groups"] for one in tasks.info(tmp_path / "a")["layers"]] == [1, 2]
