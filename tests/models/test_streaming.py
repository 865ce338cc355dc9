"""Heads that see the first keys and the latest: beside dense masks, cell by cell in float64."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz import cli, tasks
from hgviz.core import HeadId, HgvizError, Streaming, finish
from hgviz.maps import Rule
from hgviz.models import blocks, open_model, weighing
from hgviz.models.attention import attend, weights
from hgviz.models.blocks import Pass, Tokens, finish_steps
from hgviz.models.measures.trials import Trials
from hgviz.models.positions import Biases
from tests.models import zoo
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    write_checkpoint,
    write_transformer,
)

N = 37


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def mask(rule, queries, keys, keep, sink, recent):
    """bool (B, queries, keys): by counting the real keys one by one."""
    keep = np.ones((1, keys), bool) if keep is None else np.asarray(keep)
    out = np.zeros((len(keep), queries, keys), bool)
    for text, real in enumerate(keep):
        for i in range(queries):
            before = [j for j in range(keys) if j * rule.stride_k < (i + 1) * rule.stride_q]
            before = [j for j in before if real[j]]
            for j in {*before[-recent:], *[j for j in np.flatnonzero(real)[:sink] if j in before]}:
                out[text, i, j] = True
    return torch.tensor(out)


def by_mask(q, k, v, rule, keep, relative, places, sink, recent):
    """Context of whole maps, of which only the cells seen are left; softmaxes are shared anew."""
    k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], 1) for one in (k, v))
    maps = weights(q, k, rule, keep, relative)
    seen = mask(rule, q.shape[2], k.shape[2], keep, sink, recent)
    for place in places:
        left = maps[:, place] * seen
        if rule.activations[place] in ("softmax", "rbf"):
            total = left.sum(-1, keepdim=True)
            left = left / torch.where(total > 0, total, 1.0)
        maps[:, place] = left
    return maps @ v


@st.composite
def layers(draw):
    """What a layer attends with, and which of its four heads stream how far."""
    n, groups = draw(st.integers(1, 40)), draw(st.sampled_from([1, 2, 4]))
    seed, texts = draw(st.integers(0, 2**20)), draw(st.integers(1, 3))
    random = np.random.default_rng(seed)
    q, k, v = (torch.tensor(random.normal(size=(texts, h, n, 5))) for h in (4, groups, groups))
    some = st.sampled_from(["softmax", "rbf", "tanh", "raw"])
    names = tuple(draw(st.lists(some, min_size=4, max_size=4)))
    band = draw(st.none() | st.integers(0, 20).map(lambda wide: (wide, 0)))
    rule = Rule(0.5, names, (None,) * 4, causal=True, band=band)
    keep = torch.tensor(random.random((texts, n)) < 0.7) if draw(st.booleans()) else None
    bias = None
    if draw(st.booleans()):
        bias = Biases(torch.tensor(random.normal(size=(4, 2 * n - 1))), 1 - n)
    places = tuple(sorted(draw(st.sets(st.integers(0, 3), min_size=1))))
    return q, k, v, rule, keep, bias, places, draw(st.integers(0, 9)), draw(st.integers(1, 12))


@given(layers())
@settings(max_examples=200, deadline=None)
def test_the_weights_are_those_of_a_dense_mask(layer):
    q, k, v, rule, keep, bias, places, sink, recent = layer
    found = attend(
        q, k, v, rule, keep=keep, relative=bias, streaming=places, near=(sink, recent)
    )  # fmt: skip
    expected = by_mask(*layer)
    assert (found - expected).abs().max() < 1e-12
    whole = attend(q, k, v, rule, keep=keep, relative=bias)
    for place in {*range(4)} - {*places}:
        assert (found[:, place] - whole[:, place]).abs().max() < 1e-13


def test_blocks_of_rows_hold_the_keys_that_some_row_of_them_sees(monkeypatch):
    held = []

    def watched(one, rows, keep, reach=None, columns=None):
        found = weighing.scored(one, rows, keep, reach, columns)
        held.append(found[0].shape[-1])
        return found

    q, k, v = (draw(1, 2, 400, 4, seed=seed) for seed in range(3))
    rule = Rule(0.5, ("softmax",) * 2, (None,) * 2, causal=True)
    monkeypatch.setattr(weighing, "ROWS", 16)
    monkeypatch.setattr("hgviz.models.attention.scored", watched)
    found = attend(q, k, v, rule, streaming=(0, 1), near=(3, 8))
    assert max(held) == 3 + 8 + 15 and len(held) == 25
    assert (found - by_mask(q, k, v, rule, None, None, (0, 1), 3, 8)).abs().max() < 1e-12


# --- whole models ---------------------------------------------------------------------------------

DECODER = {"form": "decoder", "max_positions": 40}
OWN = {
    "learned": make_transformer(**DECODER),
    "rotary, unlike": make_transformer(**DECODER, positions="rotary", activations=["rbf", "tanh"]),
    "quadratic": make_transformer(**DECODER, positions="quadratic"),
    "hourglass": make_hourglass(make_config(causal=True, positions="relative")),
}  # fmt: skip
EVERY = {"sink": 2, "recent": 5}


def heads_of(module):
    return [HeadId(one.index, head) for one in module.config.layers for head in one.heads]


def logits(module, ids, keep=None, **options):
    with torch.inference_mode():
        tokens = Tokens(torch.as_tensor(ids), None if keep is None else torch.as_tensor(keep))
        return finish_steps(module.steps(tokens, Pass(**options)))


def ids_of(count, seed=0, most=23):
    return np.random.default_rng(seed).integers(3, most, (1, count))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("every", [2, 1])
def test_a_model_whose_heads_stream_is_one_of_dense_masks(monkeypatch, name, every):
    module = OWN[name]
    heads = frozenset(heads_of(module)[::every])
    streaming, off = Streaming(heads, **EVERY), frozenset(heads_of(module)[1:2])
    found = logits(module, ids_of(N), off=off, streaming=streaming)

    def dense(q, k, v, rule, *, keep, relative, off, streaming, near, tap=None):
        out = by_mask(q, k, v, rule, keep, relative, streaming, *near)
        return out.index_fill(1, torch.tensor(sorted(off), dtype=torch.int64), 0.0)

    monkeypatch.setattr(blocks, "attend", dense)
    assert (found - logits(module, ids_of(N), off=off, streaming=streaming)).abs().max() < 1e-12
    monkeypatch.undo()
    assert (found - logits(module, ids_of(N), off=off)).abs().max() > 1e-6
    far = replace(streaming, sink=4, recent=N)  # an Hourglass fills its groups up
    assert torch.equal(logits(module, ids_of(N), streaming=far), logits(module, ids_of(N)))


def test_texts_of_a_batch_stream_as_each_alone():
    module = OWN["learned"]
    streaming = Streaming(frozenset(heads_of(module)), **EVERY)
    ids = np.concatenate([ids_of(N), ids_of(N, 1)])
    keep = np.arange(N) < np.array([[N], [N - 9]])
    found = logits(module, ids, keep, streaming=streaming)
    for text, length in enumerate((N, N - 9)):
        alone = logits(module, ids[text : text + 1, :length], streaming=streaming)
        assert (found[text, :length] - alone[0]).abs().max() < 1e-12


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return zoo.write(tmp_path_factory.mktemp("llama") / "llama", "llama", "LlamaForCausalLM")


def test_llama_streams_as_by_a_mask_of_transformers(llama):
    import transformers

    model = open_model(llama, dtype="float64")
    ids, places = ids_of(N, most=120), (0, 1, 3)
    heads = frozenset(HeadId(layer, head) for layer in range(2) for head in places)
    streaming = Streaming(heads, **EVERY)
    found = logits(model.module, ids, streaming=streaming)
    other = transformers.LlamaForCausalLM.from_pretrained(
        llama,
        dtype=torch.float64,
        attn_implementation="sdpa",  # eager softmaxes are float32
    ).eval()
    seen = torch.ones(4, N, N).tril().bool()
    rule = Rule(1.0, (), (), causal=True)
    seen[list(places)] = mask(rule, N, N, None, *streaming.near)
    added = torch.zeros(1, 4, N, N).double().masked_fill(~seen, torch.finfo(torch.float64).min)
    with torch.no_grad():
        expected = other(torch.as_tensor(ids), attention_mask=added).logits
    assert (found - expected).abs().max() < 1e-12
    assert (found - logits(model.module, ids)).abs().max() > 1e-3
    far = replace(streaming, sink=4, recent=N - 4)
    assert torch.equal(logits(model.module, ids, streaming=far), logits(model.module, ids))


@pytest.mark.parametrize("side", ["left", "right"])
def test_llama_streams_in_a_batch_with_padding_on_either_side(llama, side):
    module, length = open_model(llama, dtype="float64").module, N - 9
    heads = frozenset(HeadId(layer, head) for layer in range(2) for head in (0, 2))
    streaming = Streaming(heads, **EVERY)
    ids = np.concatenate([ids_of(N, most=120), ids_of(N, 1, most=120)])
    real = slice(N - length, N) if side == "left" else slice(0, length)
    keep = np.ones((2, N), bool)
    keep[1] = False
    keep[1, real] = True
    found = logits(module, ids, keep, streaming=streaming)
    alone = logits(module, ids[1:, real], streaming=streaming)
    # it turns by distances alone, but by angles in float32
    assert (found[1, real] - alone[0]).abs().max() < (1e-5 if side == "left" else 1e-12)
    assert (found[0] - logits(module, ids[:1], streaming=streaming)[0]).abs().max() < 1e-12


# --- scores ---------------------------------------------------------------------------------------


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat sat on the mat and the dog sat on the log. " * 6, "utf-8")
    return path


def nobody(*_):
    raise AssertionError("this verb needs no window")


def run(*arguments):
    return cli.main([str(one) for one in arguments], cli.Window(nobody, nobody))


def test_a_score_is_of_what_streams_and_tells_what_the_cache_keeps(tmp_path, text, capfd):
    folder = write_transformer(
        tmp_path / "model", form="decoder", positions="rotary", max_positions=60, vocab_size=256
    )
    model = open_model(folder)
    streaming = Streaming(frozenset({HeadId(0, 1), HeadId(1, 0)}), 3, 9)
    whole = finish(tasks.evaluate(model, text))
    found = finish(tasks.evaluate(model, text, streaming=streaming))
    assert whole.cached == 1 and "cached" not in whole.facts()
    examples = tasks.scoring.examples_from(model, text)
    trials, nats = Trials(model, examples, streaming=streaming), []
    for batch in (one for block in trials.blocks for one in block):
        rows = logits(model.module, batch.ids, batch.mask, streaming=streaming).double()
        losses = -rows.log_softmax(-1)[torch.tensor(batch.asked)]
        nats += losses.gather(1, torch.tensor(batch.wanted[batch.asked])[:, None])[:, 0].tolist()
    assert found.loss == pytest.approx(np.mean(nats), rel=1e-6)
    assert found.loss != pytest.approx(whole.loss, rel=1e-6)
    assert (found.longest, found.cached) == (60, (2 * 60 + 2 * 12) / (4 * 60))
    given_ = ("--data", text, "--streaming", "0.1,1.0", "--sink", 3, "--recent", 9)
    assert run("evaluate", folder, *given_, "--device", "cpu", "--json") == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["loss"] == pytest.approx(found.loss, rel=1e-5)
    assert facts["streaming"] == ["0.1", "1.0"] and (facts["sink"], facts["recent"]) == (3, 9)
    assert run("evaluate", folder, *given_, "--off", "0.0", "--device", "cpu") == 0
    said = capfd.readouterr().out
    assert "Heads that stream: 2. Of 60 tokens the cache keeps 0.350 of its keys" in said


def test_keys_that_heads_share_stay_while_one_of_them_needs_them(tmp_path, text, llama):
    model = open_model(llama)
    ids = np.arange(40)
    cached = tasks.scoring._cached
    one = Streaming(frozenset({HeadId(0, 0)}), 2, 8)  # of two that share
    both = Streaming(frozenset({HeadId(0, 0), HeadId(0, 1)}), 2, 8)
    none = frozenset()
    assert cached(model, ids, none, one) == 1
    assert cached(model, ids, none, both) == (3 * 40 + 10) / 160
    assert cached(model, ids, frozenset({HeadId(0, 1)}), one) == (3 * 40 + 10) / 160
    assert cached(model, ids, frozenset({HeadId(0, 0), HeadId(0, 1)}), one) == 0.75


def test_heads_that_see_what_comes_later_are_refused_in_one_line(tmp_path, text, capfd):
    folder = write_transformer(
        tmp_path / "encoder", family="bert", goal="classes", labels=["a", "b"], vocab_size=256
    )
    code = run("evaluate", folder, "--data", text, "--streaming", "1.0", "--device", "cpu")
    err = capfd.readouterr().err
    assert code == 1 and err.count("\n") == 1
    assert "layer 1 cannot stream" in err and "keys after them" in err
    nested = write_checkpoint(tmp_path / "both", causal=False, vocab_size=256)
    with pytest.raises(HgvizError, match="cannot stream"):
        finish(tasks.evaluate(open_model(nested), text, streaming=Streaming({HeadId(0, 0)})))


def test_what_is_only_looked_at_does_not_stream(tmp_path):
    path = zoo.write(tmp_path / "gptj", "gptj", "GPTJForCausalLM")
    module = open_model(path).module
    with pytest.raises(HgvizError, match="layer 1 cannot stream.*\\n?.*code of its own"):
        logits(module, ids_of(9, most=120), streaming=Streaming(frozenset({HeadId(1, 2)})))
