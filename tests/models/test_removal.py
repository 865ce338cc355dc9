"""Heads removed for good, and other activations in the place of a model's own."""

from pathlib import Path

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.orders import costs, saved
from hgviz.core import HeadId, HgvizError
from hgviz.models import checkpoints, open_model
from hgviz.models.checkpoints import save
from hgviz.models.layers import Attention, Tokens
from hgviz.models.measures.variants import BaselinePass
from hgviz.models.model import module_of
from hgviz.models.run import Run
from hgviz.models.surgery.compensation import gates, means
from hgviz.models.surgery.removal import head_weights, scaled, shifted, smaller, zeroed
from hgviz.models.surgery.replacement import with_activation
from hgviz.models.tensors import Checkpoint
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    write_checkpoint,
    write_transformer,
)
from tests.models.folders import write_bert, write_gpt2

MIXED = {"n_heads": 4, "activations": ["softmax", "ymish", "tanh", "linear"]}
TWO = "1@1 1@2 1@4 1@2 1@1"
WINDOWED = {"form": "windowed", "positions": "learned", "max_positions": 40}
KINDS = {
    "encoder": lambda at: write_transformer(at, form="encoder", goal="masked"),
    "classifier": write_bert,
    "pre-norm": lambda at: write_transformer(
        at, form="encoder", goal="classes", labels=["a", "b"], norm_first=True, **MIXED
    ),
    "shared": lambda at: write_transformer(
        at, form="encoder", goal="classes", labels=["a", "b"], n_heads=3, shared_width=7
    ),
    "topk": lambda at: write_transformer(
        at, form="encoder", goal="states", activations=["topk", "softmax"], top_k=2
    ),
    "gpt2": write_gpt2,
    "slots": lambda at: write_transformer(
        at, family="yubert", labels=["a", "b"], slots=4, max_positions=20, vocab_size=23
    ),
    "linformer": lambda at: write_transformer(
        at, form="encoder", goal="masked", slots=4, max_positions=20, slots_sharing="none",
        slots_bias=True,
    ),
    "synthesizer": lambda at: write_transformer(
        at, form="decoder", max_positions=20, rank=3,
        scores=["dense+random", "dot+factorised+fixed"],
    ),
    "encoder-decoder": write_transformer,
    "rotary": lambda at: write_transformer(at, positions="rotary"),
    "decoder with cross": lambda at: write_transformer(at, form="decoder", cross=True),
    "hourglass": lambda at: write_checkpoint(at, hierarchy=TWO, n_heads=3),
    "mixed hourglass": lambda at: write_checkpoint(at, **MIXED),
    "rotary hourglass": lambda at: write_checkpoint(at, positions="rotary"),
    "plain up": lambda at: write_checkpoint(at, attention_upsampling="none"),
    "without resampling": lambda at: write_checkpoint(
        at, downsampling="average", upsampling="repeat"
    ),
    "windowed": lambda at: write_checkpoint(at, hierarchy=TWO, n_heads=3, **WINDOWED),
    "compat": lambda at: write_checkpoint(at, masking="compat", **WINDOWED),
}  # fmt: skip


def chosen(spec, empty=True):
    """Every other head, and in one layer of each role all of them."""
    off, roles = set(), set()
    for layer in spec.layers:
        whole = empty and layer.role not in roles and layer.index != 0
        roles |= {layer.role} if whole else set()
        heads = layer.heads if whole else layer.heads[layer.index % 2 :: 2]
        off |= {HeadId(layer.index, head) for head in heads}
    return frozenset(off)


def given(model):
    """What any model reads: two texts, one with padding."""
    ids = np.random.default_rng(0).integers(0, 20, (2, 11))
    mask = np.arange(11) < np.array([[11], [6]])
    if model.takes_states:
        states = np.random.default_rng(1).normal(size=(2, 7, model.spec.width))
        return {"ids": ids, "attention_mask": mask, "encoder_states": states}
    both = {"decoder_ids": ids[:, :5]} if model.spec.form == "encoder-decoder" else {}
    return {"ids": ids, "attention_mask": mask, **both}


def logits(path, off=frozenset(), dtype="float64"):
    model = open_model(path, dtype=dtype)
    return model.run(**given(model), off=off).logits


def kept(checkpoint, folder):
    save(folder, checkpoint.config, checkpoint.tensors)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_slicing_is_masking(tmp_path, kind):
    path = KINDS[kind](tmp_path / "whole")
    spec = open_model(path).spec
    off = chosen(spec)
    small = kept(smaller(checkpoints.read(path), off), tmp_path / "small")
    masked = logits(path, off)
    assert np.abs(logits(path) - masked).max() > 1e-3
    assert np.abs(logits(small) - masked).max() < 1e-12
    after = open_model(small).spec
    assert after.heads == tuple(head for head in spec.heads if head not in off)
    assert [one.name for one in after.layers] == [one.name for one in spec.layers]
    assert after.parameters < spec.parameters


@pytest.mark.parametrize("kind", KINDS)
def test_what_heads_cost_is_what_slicing_saves(tmp_path, kind):
    KINDS[kind](tmp_path)
    model, found = open_model(tmp_path), checkpoints.read(tmp_path)
    parameters, _ = costs(model.spec, head_weights(model.module), np.array([9]))
    off = chosen(model.spec)
    left = sum(one.numel() for one in smaller(found, off).tensors.values())
    whole = sum(one.numel() for one in found.tensors.values())
    assert saved(parameters, model.spec, sorted(off))[-1] == whole - left


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_in_the_output_are_masking(tmp_path, kind):
    path = KINDS[kind](tmp_path / "whole")
    found = checkpoints.read(path)
    off = chosen(open_model(path).spec)
    same = kept(zeroed(found, off), tmp_path / "zeroed")
    assert np.abs(logits(same) - logits(path, off)).max() < 1e-12
    assert open_model(same).spec.heads == open_model(path).spec.heads


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_any_head_reads_and_says_what_a_mask_says(tmp_path, kind):
    path = KINDS[kind](tmp_path / "whole")
    off = frozenset(open_model(path).spec.heads)
    none = kept(smaller(checkpoints.read(path), off), tmp_path / "none")
    assert np.abs(logits(none) - logits(path, off)).max() < 1e-12
    assert open_model(none).spec.heads == ()


def test_an_empty_layer_gives_its_bias():
    model = make_transformer(n_heads=2, form="encoder", goal="states", norm_first=True, n_layers=1)
    found = of(model)
    none = smaller(found, frozenset(HeadId(0, head) for head in range(2)))
    module = module_of(none.config, none.tensors, "cpu", torch.float64)
    ids = torch.arange(6)[None]
    block, x = module.middle["0"], module.embed(Tokens(ids))
    x = x + block.attn.o.bias
    assert torch.allclose(module(ids), x + block.ff(block.ln_ff(x)), atol=1e-13)


@pytest.mark.parametrize("kind", ["classifier", "hourglass", "encoder-decoder"])
def test_what_was_sliced_is_sliced_again(tmp_path, kind):
    path = KINDS[kind](tmp_path / "whole")
    # of a layer without heads a model of transformers keeps zeros of whichever went last
    off = sorted(chosen(open_model(path).spec, empty=kind != "classifier"))
    first, rest = frozenset(off[::2]), frozenset(off[1::2])
    once = smaller(checkpoints.read(path), first)
    twice = smaller(checkpoints.read(kept(once, tmp_path / "once")), rest)
    at_once = smaller(checkpoints.read(path), frozenset(off))
    assert twice.digest == at_once.digest
    assert np.abs(logits(kept(twice, tmp_path / "twice")) - logits(path, off)).max() < 1e-12
    with pytest.raises(HgvizError, match=f"this model has no head {off[0]}: its layers are 0 to"):
        smaller(twice, frozenset(off[:1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_and_is_exact(tmp_path, dtype):
    path = write_checkpoint(tmp_path / "whole", dtype=dtype, n_heads=4)
    off = chosen(open_model(path).spec)
    for change in (smaller, zeroed):
        made = change(checkpoints.read(path), off)
        assert {one.dtype for one in made.tensors.values()} == {dtype}
        folder = kept(made, tmp_path / change.__name__)
        assert np.abs(logits(folder) - logits(path, off)).max() < 1e-12


# --- what makes up for them -----------------------------------------------------------------------


def of(module):
    """The checkpoint of a module."""
    return Checkpoint(module.config, module.state_dict(), "", Path("model.safetensors"))


def texts(config, padded=True):
    """Batches of two texts; the second is padded."""
    made = torch.Generator().manual_seed(3)
    found = []
    for length in (9, 6):
        ids = torch.randint(23, (2, length), generator=made)
        keep = torch.arange(length) < torch.tensor([[length], [length - 2]])
        one = Tokens(ids, keep if padded else None)
        both = getattr(config, "form", "") == "encoder-decoder"
        found.append(Tokens(ids[:, :5], source=one) if both else one)
    return found


MODELS = {
    "encoder": lambda: make_transformer(form="encoder", goal="states", n_heads=3),
    "encoder-decoder": lambda: make_transformer(n_heads=3),
    "hourglass": lambda: make_hourglass(make_config(hierarchy=TWO, n_heads=3)),
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
    off = chosen(spec, empty=False)
    each = texts(config)
    *_, found = means(module, spec, off, each)
    for head, mean in found.items():
        contexts = real_contexts(module, spec, head.layer, each)
        at = spec.layers[head.layer].heads.index(head.head)
        assert torch.allclose(mean, contexts[:, at].mean(0), atol=1e-12)
    folded = smaller(shifted(of(module), found), off)
    small = module_of(folded.config, folded.tensors, "cpu", torch.float64)

    def ablated(part, arguments):
        """What goes into W_O, the means in place of what these heads give."""
        (x,) = arguments
        blocks = x.unflatten(-1, (len(spec.layers[part.index].heads), -1)).clone()
        for head, mean in found.items():
            if head.layer == part.index:
                blocks[:, :, head.head] = mean
        return (blocks.flatten(2),)

    hooks = []
    for part in module.modules():
        if isinstance(part, Attention):
            part.o.index = part.layer.index
            hooks.append(part.o.register_forward_pre_hook(ablated))
    expected = [module(text, Run()) for text in each]
    for text, wanted in zip(each, expected, strict=True):
        assert torch.allclose(small(text, Run()), wanted, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("kind", MODELS)
def test_gates_are_scaled_columns(kind):
    module = MODELS[kind]()
    spec = module.config.spec("", "", 0)
    random = np.random.default_rng(0)
    values = {head: float(random.normal()) for head in spec.heads}
    factors = {
        layer.index: torch.tensor(
            [[values[HeadId(layer.index, one)] for one in layer.heads]], dtype=torch.float64
        )
        for layer in spec.layers
    }
    made = scaled(of(module), values)
    folded = module_of(made.config, made.tensors, "cpu", torch.float64)
    for text in texts(module.config):
        gated = module(text, Run(gates=factors))
        assert torch.allclose(folded(text, Run()), gated, atol=1e-12)


@torch.no_grad()
def test_gates_are_the_damped_least_squares_of_their_layer():
    module = MODELS["encoder"]()
    spec = module.config.spec("", "", 0)
    off = frozenset({HeadId(0, 1), HeadId(1, 2)})
    each = texts(module.config)
    *_, found = gates(module, spec, off, each)
    assert set(found) == {HeadId(0, 0), HeadId(0, 2), HeadId(1, 0), HeadId(1, 1)}
    columns, aims = [], []
    before = torch.tensor([[found[HeadId(0, 0)], 1.0, found[HeadId(0, 2)]]], dtype=torch.float64)
    for text in each:
        whole, pruned = BaselinePass(text), BaselinePass(text)
        module(text, Run(observers=[whole]))
        module(text, Run(off, gates={0: before}, observers=[pruned]))
        weight = module.middle["1"].attn.o.weight.unflatten(1, (3, -1))
        gives = torch.einsum("bhqe,dhe->bqdh", pruned.contexts[1], weight)[text.keep]
        columns.append(gives[..., :2].flatten(0, 1))
        aims.append(torch.einsum("bhqe,dhe->bqd", whole.contexts[1], weight)[text.keep].flatten())
    rows = torch.cat([*columns, torch.eye(2).double()])  # damp 1, towards gates of 1
    wanted = torch.linalg.lstsq(rows, torch.cat([*aims, torch.ones(2).double()])).solution
    solved = [found[HeadId(1, 0)], found[HeadId(1, 1)]]
    assert solved == pytest.approx(wanted.tolist(), abs=1e-10)


def attended(module, text, off=frozenset()):
    """What the first layer of an encoder adds to the stream."""
    found = []
    hook = module.middle["0"].attn.register_forward_hook(lambda *call: found.append(call[2]))
    module(text, Run(off))
    hook.remove()
    return found[0]


@torch.no_grad()
def test_compensation_brings_layers_nearer_to_what_they_gave():
    module = MODELS["encoder"]()
    spec = module.config.spec("", "", 0)
    off, each = frozenset({HeadId(0, 1)}), texts(module.config)
    *_, mean = means(module, spec, off, each)
    *_, gate = gates(module, spec, off, each)

    def error(checkpoint):
        part = module_of(checkpoint.config, checkpoint.tensors, "cpu", torch.float64)
        total = 0.0
        for text in each:
            apart = (attended(module, text) - attended(part, text, off))[text.keep]
            total += float((apart**2).sum())
        return total

    plain = error(of(module))
    assert error(shifted(of(module), mean)) < plain
    assert error(scaled(of(module), gate)) < plain


# --- replaced activations -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("models") / "bert", num_attention_heads=4)


def activations(model):
    return [layer.activations for layer in model.spec.layers]


# --- what is written and what it means ------------------------------------------------------------


@pytest.mark.parametrize(
    "text, names, norms, top_k",
    [
        ("ymish", ("ymish",), {}, None),
        ("ymish:l2-literal", ("ymish",), {"ymish": "l2-literal"}, None),
        ("ymish:none", ("ymish",), {"ymish": "none"}, None),
        ("tanh:l2", ("tanh",), {"tanh": "l2"}, None),
        ("topk:8", ("topk",), {}, 8),
        ("softmax,ymish", ("softmax", "ymish"), {}, None),
        (" softmax , topk:3,ymish:l2-literal,ymish:l2-literal",
         ("softmax", "topk", "ymish", "ymish"), {"ymish": "l2-literal"}, 3),
    ],
)  # fmt: skip
def test_a_text_names_activations_norms_and_keys(text, names, norms, top_k):
    config = with_activation(make_config(n_heads=4), text)
    assert (config.activations, dict(config.norms), config.top_k) == (names, norms, top_k)


@pytest.mark.parametrize(
    "text, words",
    [
        ("relu", "there is no activation 'relu'; there are softmax"),
        ("", "there is no activation ''"),
        ("softmax,", "there is no activation ''"),
        ("topk", "needs a number of keys"),
        ("topk:0", "needs a number of keys"),
        ("topk:-1", "needs a number of keys"),
        ("topk:1e9", "needs a number of keys"),
        ("topk:9999999999", "needs a number of keys"),
        ("ymish:l3", "the norms are none, l2, l2-literal, and there is no 'l3'"),
        ("ymish:", "there is no ''"),
        ("topk:2,topk:3,tanh,tanh", "topk stands there in two ways"),
        ("ymish,ymish:none", "ymish stands there in two ways"),
        ("tanh,ymish,elu", "a number of names that divides the 4 heads"),
        ("x" * 10_000, "there is no activation 'xxx"),
    ],
)
def test_what_cannot_be_read_is_one_error(text, words):
    with pytest.raises(HgvizError) as caught:
        with_activation(make_config(n_heads=4), text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


# --- models ---------------------------------------------------------------------------------------


def test_a_list_goes_over_the_heads_in_equal_blocks(folder):
    model = open_model(folder, activation="softmax,ymish")
    assert activations(model) == [("softmax", "softmax", "ymish", "ymish")] * 2
    four = open_model(folder, activation="tanh,elu,topk:2,ymish")
    assert activations(four) == [("tanh", "elu", "topk", "ymish")] * 2


def test_the_model_is_another_one_and_says_so(folder):
    plain, other = open_model(folder), open_model(folder, activation="ymish")
    assert other.spec.name == "bert with ymish"
    assert other.spec.digest != plain.spec.digest
    ids = np.array([2, 5, 6, 3])
    assert np.abs(other.run(ids).logits - plain.run(ids).logits).max() > 1e-3


def test_what_a_model_has_already_changes_nothing_but_its_name(folder):
    plain, same = open_model(folder), open_model(folder, activation="softmax")
    assert same.spec.digest == plain.spec.digest
    ids = np.array([2, 5, 6, 3])
    assert np.array_equal(same.run(ids).logits, plain.run(ids).logits)


def test_norms_make_different_models(folder):
    digests = {
        open_model(folder, activation=text).spec.digest
        for text in ("ymish", "ymish:none", "ymish:l2-literal", "topk:2", "topk:3")
    }
    assert len(digests) == 5


def test_other_families_take_one_too(tmp_path):
    gpt2 = open_model(write_gpt2(tmp_path / "gpt2"), activation="ymish,softmax,tanh")
    assert activations(gpt2) == [("ymish", "softmax", "tanh")] * 2
    hourglass = open_model(write_checkpoint(tmp_path / "own"), activation="tanh")
    assert {name for one in activations(hourglass) for name in one} == {"tanh"}


def test_heads_that_were_pruned_keep_the_activation_of_their_number(tmp_path):
    from hgviz.models.checkpoints import save
    from hgviz.models.config import parse_config
    from hgviz.models.families import build

    kept = [[1, 3], [0, 1, 2, 3]]
    config = parse_config(
        {"vocab_size": 9, "d_model": 8, "n_heads": 4, "n_layers": 2, "family": "gpt2", "kept": kept}
    )
    save(tmp_path, config, build(config).state_dict())
    model = open_model(tmp_path, activation="softmax,tanh,elu,ymish")
    assert activations(model)[0] == ("tanh", "ymish")


def test_captures_show_it(folder, tmp_path):
    model = tasks.load(folder, "cpu", activation="softmax,ymish")
    path = tmp_path / "a.h5"
    tasks.capture(model, model.tokenize("the cat sat."), path)
    opened = open_capture(path)
    assert opened.spec.name == "bert with softmax,ymish"
    assert opened.spec.layers[0].activations == ("softmax", "softmax", "ymish", "ymish")
    assert opened.spec.digest == model.spec.digest
    assert scaled_error(opened.maps[0].read(0).sum(-1), 1) < 1e-5
    total = np.abs(opened.maps[0].read(3)).sum(-1)
    assert ((total > np.tanh(1) - 1e-5) & (total < 1 + 1e-5)).all()
