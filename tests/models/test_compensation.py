"""Gates on heads that stay in models of transformers, beside transformers itself."""

import warnings

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.models import checkpoints, open_model
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.models.surgery import export
from hgviz.models.surgery.compensation import gates, means
from hgviz.models.surgery.removal import scaled
from tests.models.test_transformers import folder, ids_of

assert folder  # a fixture

KINDS = [
    ("llama", "LlamaForCausalLM"), ("roberta", "RobertaForSequenceClassification"),
    ("gpt_neox", "GPTNeoXForCausalLM"),
    ("qwen3_next", "Qwen3NextForCausalLM"),  # a gate of its own comes between heads and product
    ("bloom", "BloomForCausalLM"),  # attention code of its own
]  # fmt: skip


def texts():
    """Two batches of two texts; the second is padded."""
    found = []
    for length in (11, 7):
        keep = torch.arange(length) < torch.tensor([[length], [length - 3]])
        found.append(Tokens(torch.from_numpy(ids_of(2 * length)).view(2, length), keep))
    return found


def chosen(spec):
    """A head of the first layer, and two of the last."""
    last = spec.layers[-1].index
    return frozenset({HeadId(0, 1), HeadId(last, 0), HeadId(last, 2)})


def given(net, names, factors):
    """What goes into the products behind heads (P, H, D), by layer, when its heads are multiplied
    there by factors: rows of real tokens of all texts."""
    found = {at: [] for at, _ in enumerate(names)}
    hooks = []
    for at, name in enumerate(names):

        def changed(module, arguments, at=at):
            x = arguments[0].unflatten(-1, (4, -1)) * factors[at][:, None].to(arguments[0])
            found[at].append(x.double())
            return (x.flatten(-2),)

        hooks.append(net.get_submodule(name).register_forward_pre_hook(changed))
    for one in texts():
        with torch.no_grad():
            net(input_ids=one.ids, attention_mask=one.keep.long(), use_cache=False)
    for hook in hooks:
        hook.remove()
    keep = [one.keep for one in texts()]
    return {
        at: torch.cat([x[rows] for x, rows in zip(each, keep, strict=True)])
        for at, each in found.items()
    }


def fitted(net, names, off):
    """Gates by a least-squares solver that is given a column for each head, layer by layer."""
    whole = given(net, names, torch.ones(len(names), 4).double())
    factors = torch.ones(len(names), 4).double()
    for one in off:
        factors[one.layer, one.head] = 0
    for at, name in enumerate(names):
        weight = net.get_submodule(name).weight.detach().double().unflatten(1, (4, -1))  # (d, H, D)
        pruned = given(net, names, factors)[at]
        kept = [head for head in range(4) if HeadId(at, head) not in off]
        columns = torch.einsum("phe,dhe->hpd", pruned, weight)[kept].flatten(1).T
        aims = torch.einsum("phe,dhe->pd", whole[at], weight).flatten()
        one = torch.eye(len(kept)).double()  # damp 1, towards gates of 1
        rows, aims = torch.cat([columns, one]), torch.cat([aims, one.sum(1)])
        factors[at, kept] = torch.linalg.lstsq(rows, aims).solution
    return {
        HeadId(at, head): float(factors[at, head])
        for at, _ in enumerate(names)
        for head in range(4)
        if HeadId(at, head) not in off
    }


@pytest.mark.parametrize("kind, name", KINDS, ids=lambda one: one)
def test_gates_are_the_damped_least_squares_of_each_layer(folder, kind, name):
    import transformers

    path = folder(kind, name)
    dtype = "float32" if kind == "qwen3_next" else "float64"  # experts know no other
    model = open_model(path, dtype=dtype)
    off = chosen(model.spec)
    *_, found = gates(model.module, model.spec, off, texts())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(transformers, name)
        net = made.from_pretrained(path, attn_implementation="eager", dtype=dtype).eval()
    wanted = fitted(net, model.config.products, off)
    assert found == pytest.approx(wanted, abs=1e-5)
    assert max(abs(one - 1) for one in wanted.values()) > 0.05


@pytest.mark.parametrize("form", ["smaller", "zeroed"])
@pytest.mark.parametrize("kind, name", KINDS[:3], ids=lambda one: one)
def test_what_is_written_with_gates_is_the_gated_model(folder, tmp_path, kind, name, form):
    path = folder(kind, name)
    model = open_model(path, dtype="float64")
    off = chosen(model.spec)
    *_, found = gates(model.module, model.spec, off, texts())
    export.written(scaled(checkpoints.read(path), found), off, form, tmp_path / "out")
    factors = {
        one.index: torch.tensor([[found.get(HeadId(one.index, head), 1.0) for head in one.heads]])
        for one in model.spec.layers
    }
    written = open_model(tmp_path / "out", dtype="float64")
    for one in texts():
        with torch.inference_mode():
            wanted = model.module(one, Run(off, gates=factors))
            logits = written.module(one, Run())
            masked = model.module(one, Run(off))
        rows = one.keep if wanted.ndim == 3 else ...
        assert (logits - wanted)[rows].abs().max() < 1e-5  # weights are kept in float32
        assert (masked - wanted)[rows].abs().max() > 1e-3


@pytest.mark.parametrize("kind, name", [KINDS[0], KINDS[4]], ids=lambda one: one)
def test_a_pruned_model_with_gates_proves_itself(folder, tmp_path, kind, name):
    path = folder(kind, name, vocab_size=256)
    off = frozenset({HeadId(0, 1), HeadId(1, 2)})
    made = tasks.prune(path, off, tmp_path / "out", form="zeroed", compensate="lsq")
    found = made
    assert found.difference <= 1e-5 and found.compensation == "lsq"
    ids = ids_of(9)
    masked = open_model(path).run(ids, off=off).logits
    assert np.abs(open_model(tmp_path / "out").run(ids).logits - masked).max() > 1e-3


def test_products_that_several_layers_share_are_one_clear_line(folder):
    model = open_model(folder("albert", "AlbertForMaskedLM"))
    for fit in (gates, means):
        with pytest.raises(HgvizError, match=r"what layer 0 loses .* this layer's alone") as error:
            list(fit(model.module, model.spec, frozenset({HeadId(0, 1)}), texts()))
        assert "\n" not in str(error.value)
