"""Longformers beside transformers, whose weights are given by their place in the band."""

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.maps import DenseMap, LazyMap
from hgviz.models import open_model
from hgviz.models.attribution import REACH_SEED
from hgviz.models.layers import Tokens
from hgviz.models.trials import HeadAblation
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.zoo import write

WINDOWS = (4, 8)  # of the two layers: half of each to either side
SEPARATOR = 3
BANDS, GLOBALS = (
    ("LongformerModel", "LongformerForMaskedLM", "LongformerForTokenClassification"),
    ("LongformerForSequenceClassification", "LongformerForQuestionAnswering"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model once."""
    kept = {}

    def made(name):
        if name not in kept:
            kept[name] = write(
                tmp_path_factory.mktemp("longformer") / name, "longformer", name,
                attention_window=list(WINDOWS), sep_token_id=SEPARATOR, max_position_embeddings=100,
            )  # fmt: skip
        return kept[name]

    return made


def ids_of(count=23, question=True):
    ids = np.random.default_rng(0).integers(5, 110, count)
    if question:
        ids[[6, 7, count - 1]] = SEPARATOR
    return ids


def theirs(path, name, ids, keep=None, dtype=torch.float32):
    """Outputs, and whole maps (H, n, n) put together of the band, of the keys of global tokens and
    of their rows."""
    import transformers

    net = getattr(transformers, name).from_pretrained(path, dtype=dtype).eval()
    given = {"input_ids": torch.as_tensor(ids)[None]}
    if keep is not None:
        given["attention_mask"] = torch.as_tensor(keep)[None].long()
    with torch.no_grad():
        out = net(**given, output_attentions=True)
    if out.get("start_logits") is not None:
        found = torch.stack([out.start_logits[0], out.end_logits[0]])
    else:
        found = (out.last_hidden_state if out.get("logits") is None else out.logits)[0]
    globals_ = (
        range(6) if name.endswith("Answering") else [0] * name.endswith("quenceClassification")
    )
    rows = out.get("global_attentions") or [None] * len(WINDOWS)
    count, maps = len(ids), []
    for window, near, far in zip(WINDOWS, out.attentions, rows, strict=True):
        whole = torch.zeros(near.shape[1], count, count, dtype=near.dtype)
        for i in range(count):
            for at, j in enumerate(globals_):
                whole[:, i, j] += near[0, :, i, at]
            for at in range(window + 1):
                if 0 <= (j := i - window // 2 + at) < count and j not in globals_:
                    whole[:, i, j] += near[0, :, i, len(globals_) + at]
        for at, i in enumerate(globals_):
            whole[:, i] = far[0, :, :count, at]
        maps.append(whole.numpy())
    return found.numpy(), maps


def captured(model, ids, **more):
    return tasks.capture(model, model.from_ids(ids, **more))


def whole(one):
    return np.stack([one.read(head) for head in one.heads])


@pytest.mark.parametrize("padded", [0, 5])
@pytest.mark.parametrize("name", [*BANDS, *GLOBALS])
def test_outputs_and_maps_are_those_of_transformers(folder, name, padded):
    path, ids = folder(name), ids_of()
    keep = np.arange(len(ids)) < len(ids) - padded
    if name.endswith("Answering"):
        ids[[-1, -1 - padded]] = 9, SEPARATOR
    found = captured(open_model(path), ids, attention_mask=keep)
    outputs, maps = theirs(path, name, ids, keep)
    seen = keep if outputs.shape[0] == len(ids) else slice(None)
    apart = np.abs(found.logits - outputs)
    assert (apart[:, keep] if name.endswith("Answering") else apart[seen]).max() < 1e-5
    for one, wanted in zip(found.maps, maps, strict=True):
        assert isinstance(one, LazyMap if name in BANDS else DenseMap)
        assert np.abs(whole(one) - wanted)[:, keep].max() < 1e-5


@pytest.mark.parametrize("name", [BANDS[1], GLOBALS[0]])
def test_in_float64_outputs_are_the_same(folder, name):
    path, ids = folder(name), ids_of()
    outputs, _ = theirs(path, name, ids, dtype=torch.float64)
    # transformers takes these softmaxes in float32 whatever it computes in
    assert scaled_error(open_model(path, dtype="float64").run(ids).logits, outputs) < 1e-6


def test_the_band_is_a_rule_and_nothing_is_kept_beside_it(folder, tmp_path):
    model = open_model(folder(BANDS[1]))
    tasks.capture(model, model.from_ids(ids_of()), out=tmp_path / "a.h5")
    found = [one.factors.rule for one in open_capture(tmp_path / "a.h5").maps]
    assert [one.band for one in found] == [(2, 2), (4, 4)] and not any(one.causal for one in found)
    other = captured(open_model(folder(BANDS[1]), activation="ymish"), ids_of())
    assert other.maps[0].signed
    with pytest.raises(HgvizError, match="cannot be exchanged"):
        captured(open_model(folder(GLOBALS[0]), activation="ymish"), ids_of())


@pytest.mark.parametrize("name", [BANDS[1], *GLOBALS])
def test_a_head_that_is_off_gives_zeros_to_the_product_behind_it(folder, name):
    model, ids, head = open_model(folder(name), dtype="float64"), ids_of(), HeadId(1, 2)
    product = model.module.net.get_submodule(model.config.output_modules[1])
    width = product.in_features // 4

    def zeros(module, given):
        first = given[0].clone()
        first[..., 2 * width : 3 * width] = 0
        return (first, *given[1:])

    hook = product.register_forward_pre_hook(zeros)
    wanted = model.run(ids).logits
    hook.remove()
    off = model.run(ids, off={head}).logits
    assert np.abs(off - wanted).max() < 1e-12 and np.abs(off - model.run(ids).logits).max() > 1e-4
    variants = HeadAblation(model.module)
    kept, _ = variants.baseline(Tokens(torch.as_tensor(ids)[None]))
    alone = {}
    for heads, every in variants.ablate_each(kept):
        alone |= dict(zip(heads, every, strict=True))
    assert np.abs(alone[head].squeeze(0).numpy() - off).max() < 1e-12


def test_texts_of_a_batch_are_read_as_alone(folder):
    model, ids = open_model(folder(GLOBALS[1])), np.stack([ids_of(), ids_of()])
    ids[1, [2, 6]] = SEPARATOR, 11  # a shorter question
    both = model.run(ids).logits
    for one, alone in zip(both, ids, strict=True):
        assert scaled_error(model.run(alone).logits, one) < 1e-5


def test_a_text_without_three_separators_has_no_question(folder):
    model, ids = open_model(folder(GLOBALS[1])), ids_of(question=False)
    first, place = captured(model, ids).maps[0], np.arange(len(ids))
    assert isinstance(first, LazyMap)
    rows = whole(first)
    assert not rows[:, np.abs(place[:, None] - place) > WINDOWS[0] // 2].any()


@pytest.mark.parametrize("name", [BANDS[1], GLOBALS[0]])
@pytest.mark.parametrize("form", ["zeroed", "smaller"])
def test_a_pruned_one_opens_with_the_outputs_of_the_masked_one(folder, tmp_path, name, form):
    model, off = open_model(folder(name)), frozenset({HeadId(0, 1), HeadId(1, 2)})
    wanted = model.run(ids_of(), off=off).logits
    tasks.prune(folder(name), off, tmp_path / "out", form=form)
    assert scaled_error(open_model(tmp_path / "out").run(ids_of()).logits, wanted) < 1e-5


@pytest.mark.parametrize("name", [BANDS[1], GLOBALS[0]])
def test_a_layer_that_has_lost_all_heads_is_written_and_opens(folder, tmp_path, name):
    off = frozenset(HeadId(0, head) for head in range(4))
    tasks.prune(folder(name), off, tmp_path / "out")
    left = open_model(tmp_path / "out")
    wanted = open_model(folder(name)).run(ids_of(), off=off).logits
    assert scaled_error(left.run(ids_of()).logits, wanted) < 1e-5
    assert len(left.spec.layers[0].heads) == 0


@pytest.mark.parametrize("name", GLOBALS)
def test_the_reach_of_tokens_is_the_gradient_that_transformers_has(folder, name):
    import transformers

    model = open_model(folder(name), dtype="float64")
    ids = ids_of(11, question=False)
    found = tasks.reach(model, model.from_ids(ids))
    net = getattr(transformers, name).from_pretrained(folder(name), dtype=torch.float64).eval()
    leaf = net.longformer.embeddings.word_embeddings(torch.as_tensor(ids)[None]).detach()
    leaf.requires_grad_()
    states = name.endswith("Classification")
    mask = torch.zeros(1, len(ids), dtype=torch.long)
    mask[:, 0] = states
    out = net(inputs_embeds=leaf, global_attention_mask=mask, output_hidden_states=True)
    given = (
        out.hidden_states[-1][0]
        if states
        else torch.stack([out.start_logits[0], out.end_logits[0]], 1)
    )
    generator = torch.Generator().manual_seed(REACH_SEED)
    v = torch.randn(given.shape[-1], generator=generator, dtype=torch.float64)
    wanted = [
        torch.autograd.grad(one @ v, leaf, retain_graph=True)[0][0].norm(dim=-1).numpy()
        for one in given[: len(ids)]
    ]
    known = np.isfinite(wanted)  # its chunks without a global token have slopes that are none
    assert known.sum() > 70
    # transformers takes these softmaxes in float32 whatever it computes in
    assert np.abs(found.own - wanted)[known].max() < 1e-4
