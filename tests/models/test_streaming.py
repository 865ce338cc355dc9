"""Heads that stream: what they see, what they score, and captures of them."""

import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Streaming
from hgviz.maps import Grouped, Rule
from hgviz.models import open_model
from hgviz.models.attention import weights
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.models.trials import Trials
from hgviz.store import describe, open_capture, write_capture
from hgviz.store.corpus import CorpusWriter
from tests.closeness import scaled_error
from tests.models import zoo
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    write_checkpoint,
    write_transformer,
)
from tests.progress import cancelled

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
        return module(tokens, Run(**options))


def ids_of(count, seed=0, most=23):
    return np.random.default_rng(seed).integers(3, most, (1, count))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("every", [2, 1])
def test_a_model_whose_heads_stream_is_one_of_dense_masks(monkeypatch, name, every):
    module = OWN[name]
    heads = frozenset(heads_of(module)[::every])
    streaming, off = Streaming(heads, **EVERY), frozenset(heads_of(module)[1:2])
    found = logits(module, ids_of(N), off=off, streaming=streaming)

    def dense(q, k, v, rule, *, keep, relative, row_sums):
        places = [place for place, near in enumerate(rule.near) if near is not None]
        plain = replace(rule, near=())
        return by_mask(q, k, v, plain, keep, relative, places, *streaming.window)

    monkeypatch.setattr("hgviz.models.run.attend", dense)
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
    """A model in which two heads share their keys."""
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
    seen[list(places)] = mask(rule, N, N, None, *streaming.window)
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


def test_a_score_is_of_what_streams_and_tells_what_the_cache_keeps(tmp_path, text, facts, output):
    folder = write_transformer(
        tmp_path / "model", form="decoder", positions="rotary", max_positions=60, vocab_size=256
    )
    model = open_model(folder)
    streaming = Streaming(frozenset({HeadId(0, 1), HeadId(1, 0)}), 3, 9)
    whole = tasks.evaluate(model, text)
    found = tasks.evaluate(model, text, streaming=streaming)
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
    told = facts("evaluate", folder, *given_)
    assert told["loss"] == pytest.approx(found.loss, rel=1e-5)
    assert told["streaming"] == ["0.1", "1.0"] and (told["sink"], told["recent"]) == (3, 9)
    said = output("evaluate", folder, *given_, "--off", "0.0")
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


def test_heads_that_see_what_comes_later_are_refused_in_one_line(tmp_path, text, refusal):
    folder = write_transformer(
        tmp_path / "encoder", family="bert", goal="classes", labels=["a", "b"], vocab_size=256
    )
    error = refusal("evaluate", folder, "--data", text, "--streaming", "1.0")
    assert "layer 1 cannot stream" in error and "keys after them" in error
    nested = write_checkpoint(tmp_path / "both", causal=False, vocab_size=256)
    with pytest.raises(HgvizError, match="cannot stream"):
        tasks.evaluate(open_model(nested), text, streaming=Streaming({HeadId(0, 0)}))


def test_what_is_only_looked_at_does_not_stream(tmp_path):
    path = zoo.write(tmp_path / "gptj", "gptj", "GPTJForCausalLM")
    module = open_model(path).module
    with pytest.raises(HgvizError, match="layer 1 cannot stream.*\\n?.*code of its own"):
        logits(module, ids_of(9, most=120), streaming=Streaming(frozenset({HeadId(1, 2)})))


# --- captures -------------------------------------------------------------------------------------


def mask_of(n, near, keep=None):
    """bool (n, n): by counting the keys that are kept one by one."""
    out = np.zeros((n, n), bool)
    for i in range(n):
        there = [j for j in range(i + 1) if keep is None or keep[j]]
        if near is not None:
            there = [*there[: near[0]], *there[-near[1] :]]
        out[i, there] = True
    return out


def dense(factors, place, near, keep=None):
    """The map (queries, keys) of a head in float64: a softmax with the mask written out."""
    k = factors.k[place]
    scores = np.asarray(factors.q[place], np.float64) @ np.asarray(k, np.float64).T
    seen = mask_of(len(scores), near, keep)
    scores = np.where(seen, scores * factors.rule.scale, -np.inf)
    top = scores.max(1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def tile(one, place):
    """A small map as it is computed, before it becomes float32."""
    return one.weights(place, 0, 0)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "own"
    more = {"positions": "rotary", "max_positions": 60, "vocab_size": 256}
    return write_transformer(path, form="decoder", **more)


def captured(folder, dtype="float64", out=None, **options):
    model = open_model(folder, dtype=dtype)
    prompt = model.from_ids(np.random.default_rng(0).integers(3, 23, N))
    return model, tasks.capture(model, prompt, out, **options)


def some(spec, places=(0, 1, 3)):
    heads = (one for one in spec.heads if one.head in places)
    return Streaming(frozenset(heads), **EVERY)


@pytest.mark.parametrize("name", ["llama", "own"])
def test_what_is_captured_is_what_heads_that_stream_do(request, name):
    model = open_model(request.getfixturevalue(name), dtype="float64")
    few, off = some(model.spec), frozenset({HeadId(1, 1)})
    _, found = captured(request.getfixturevalue(name), streaming=few, off=off)
    assert (found.streaming, found.off) == (few, off)
    for layer, one in zip(found.spec.layers, found.maps, strict=True):
        for place, head in enumerate(layer.heads):
            near = few.window if HeadId(layer.index, head) in few.heads else None
            expected = dense(one.factors, place, near)
            assert np.abs(tile(one, place) - expected).max() < 1e-12
            assert scaled_error(one.read(head), expected) < 1e-6
            peaks = one.read(head, zoom=2)
            for a in range(0, N, 4):
                for b in range(0, N, 4):
                    peak = expected[a : a + 4, b : b + 4].max()
                    assert abs(peaks[a // 4, b // 4] - peak) < 1e-6
            summary = one.summary(head)
            assert scaled_error(summary.rowmax, expected.max(1)) < 1e-6
        assert one.verify_max_abs < 1e-6
    _, weights = captured(request.getfixturevalue(name), streaming=few, off=off, dense=True)
    for a, b in zip(found.maps, weights.maps, strict=True):
        for head in a.heads:
            assert scaled_error(a.read(head), b.read(head)) < 1e-6
    assert np.abs(found.logits - weights.logits).max() < 1e-9
    whole = captured(request.getfixturevalue(name), off=off)[1]
    assert np.abs(found.logits - whole.logits).max() > 1e-6


def test_keys_that_heads_share_are_kept_once_though_one_of_them_streams(llama):
    _, found = captured(llama, streaming=some(open_model(llama).spec, (0,)))
    keys = found.maps[0].factors.k
    assert isinstance(keys, Grouped) and keys.stored.shape[0] == 2
    whole = captured(llama)[1].maps[0].factors.k
    assert np.array_equal(keys.stored, whole.stored)


def test_what_flows_back_is_that_of_the_maps(llama):
    few = some(open_model(llama).spec)
    _, found = captured(llama, streaming=few)
    rolled = tasks.rollout(found)
    rows = np.eye(N)
    for one in found.maps:
        mean = np.mean([one.read(head) for head in one.heads], axis=0, dtype=np.float64)
        rows = (0.5 * mean + 0.5 * np.eye(N)) @ rows
    assert scaled_error(rolled, rows) < 1e-5


# --- files ----------------------------------------------------------------------------------------


def test_a_file_keeps_which_heads_stream_and_how(tmp_path, llama):
    few = some(open_model(llama).spec)
    memory = captured(llama, streaming=few)[1]
    _, found = captured(llama, out=tmp_path / "a.h5", streaming=few)
    again = open_capture(write_capture(tmp_path / "b.h5", found))
    for one in (found, again):
        assert one.streaming == few
        assert one.maps[0].factors.rule.near == ((2, 5), (2, 5), None, (2, 5))
        for a, b in zip(one.maps, memory.maps, strict=True):
            for head in a.heads:
                assert scaled_error(a.read(head), b.read(head)) < 1e-6
    told = describe(tmp_path / "b.h5")
    assert told["streaming"] == sorted(map(str, few.heads)) and told["recent"] == 5
    with h5py.File(tmp_path / "a.h5") as file:  # a program before 1.8 refuses what it would misread
        assert file["layers/000"].attrs["kind"] == b"streaming"


def test_a_text_that_is_short_is_seen_whole_and_said_to_be_of_heads_that_stream(tmp_path, llama):
    few = replace(some(open_model(llama).spec), recent=N)
    _, found = captured(llama, out=tmp_path / "a.h5", streaming=few)
    whole = captured(llama)[1]
    assert found.streaming == few and not any(found.maps[0].factors.rule.near)
    assert np.array_equal(found.logits, whole.logits)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["layers/000"].attrs["kind"] == b"lazy"


def test_an_interrupted_capture_goes_on_with_the_same_heads_alone(tmp_path, llama):
    model = open_model(llama, dtype="float64")
    few, prompt = some(model.spec), model.from_ids(np.arange(3, 20))
    cancelled(tasks.capture, model, prompt, tmp_path / "a.h5", streaming=few)
    with pytest.raises(HgvizError, match="another set of heads that stream"):
        tasks.capture(model, prompt, tmp_path / "a.h5")
    other = replace(few, recent=6)
    with pytest.raises(HgvizError, match="another set of heads that stream"):
        tasks.capture(model, prompt, tmp_path / "a.h5", streaming=other)
    assert tasks.capture(model, prompt, tmp_path / "a.h5", streaming=few).streaming == few


def test_a_folder_that_a_program_before_began_is_gone_on_with(tmp_path, llama):
    model, prompt = open_model(llama), open_model(llama).from_ids(np.arange(3, 20))
    cancelled(tasks.capture, model, prompt, tmp_path / "a.h5")
    manifest = tmp_path / "a.h5.part" / "manifest.json"
    said = json.loads(manifest.read_text())
    del said["set of heads that stream"]
    manifest.write_text(json.dumps({**said, "format version": [1, 7]}))
    assert tasks.capture(model, prompt, tmp_path / "a.h5").complete
    cancelled(tasks.capture, model, prompt, tmp_path / "b.h5")
    manifest = tmp_path / "b.h5.part" / "manifest.json"
    manifest.write_text(json.dumps({**said, "format version": [1, 7]}))
    with pytest.raises(HgvizError, match="another set of heads that stream"):
        tasks.capture(model, prompt, tmp_path / "b.h5", streaming=some(model.spec))


def test_the_texts_of_a_corpus_stream_all(tmp_path, own):
    model = open_model(own)
    few = some(model.spec, (0,))
    (tmp_path / "texts.txt").write_text("the cat sat on the mat.\nthe dog sat on the log.\n")
    path = tmp_path / "corpus.h5"
    tasks.capture_corpus(model, tmp_path / "texts.txt", path, streaming=few)
    for item in (0, 1):
        found = open_capture(path, item)
        one = found.maps[1]
        assert found.streaming == few and one.factors.rule.near[0] == few.window
        assert scaled_error(one.read(0), dense(one.factors, 0, few.window)) < 1e-6
    with pytest.raises(HgvizError):  # another corpus of that name
        CorpusWriter(path, model.spec, found.items, "digest")


@pytest.fixture
def path(tmp_path_factory, tmp_path, own):
    place = tmp_path_factory.getbasetemp() / "streamed.h5"
    if not place.exists():
        captured(own, out=place, streaming=some(open_model(own).spec))
    return shutil.copy(place, tmp_path / "a.h5")


@pytest.mark.parametrize(
    "near",
    [[2, 5], [2, 5] * 5, [-1, 5] * 4, [2, 0] * 4, [0, -5] * 4, [1 << 40, 1] * 4, [1 << 31, 1]],
)
def test_rules_that_no_head_streams_by_are_refused(path, near):
    with h5py.File(path, "r+") as file:
        group = file["layers/001"]
        del group.attrs["near"]
        group.attrs["near"] = np.array(near)
    with pytest.raises(HgvizError, match="a rule that this hgviz does not know"):
        open_capture(path)


@pytest.mark.parametrize("name,value", [("causal", False), ("windowed", True)])
def test_layers_without_latest_keys_do_not_stream(path, name, value):
    with h5py.File(path, "r+") as file:
        file["layers/001"].attrs[name] = np.int32(value)
    with pytest.raises(HgvizError, match="a rule that this hgviz does not know"):
        open_capture(path)


def test_a_layer_that_streams_without_saying_how_is_refused(path):
    with h5py.File(path, "r+") as file:
        del file["layers/001"].attrs["near"]
    with pytest.raises(HgvizError, match="the attribute near of /layers/001 is missing"):
        open_capture(path)


@pytest.mark.parametrize(
    "said,why",
    [
        ([], "not a table"),
        ({}, "first and"),
        ({"heads": [[0, 0]], "sink": -1, "recent": 4}, "first and"),
        ({"heads": [[0, 0]], "sink": 1, "recent": 0}, "first and"),
        ({"heads": [[0, 0]], "sink": True, "recent": 4}, "first and"),
        ({"heads": [[0, 0]], "sink": 1, "recent": 1 << 31}, "first and"),
        ({"heads": [[0, 0.5]], "sink": 1, "recent": 4}, "no list of heads"),
        ({"heads": "all", "sink": 1, "recent": 4}, "no list of heads"),
        ({"heads": [[9, 0]], "sink": 1, "recent": 4}, "not those of a causal layer"),
    ],
)
def test_heads_that_cannot_stream_are_refused(path, said, why):
    with h5py.File(path, "r+") as file:
        del file["streaming"]
        file["streaming"] = np.frombuffer(json.dumps(said).encode(), np.uint8)
    with pytest.raises(HgvizError, match=why):
        open_capture(path)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_captures_heads_that_stream(tmp_path, own, refusal, facts, output):
    given = ("--text", "the cat sat on the mat", "--streaming", "0.*,1.1")
    out = tmp_path / "a.h5"
    output("capture", own, *given, "--sink", 1, "--recent", 3, "-o", out)
    found = open_capture(out)
    heads = frozenset({*(HeadId(0, head) for head in range(4)), HeadId(1, 1)})
    assert found.streaming == Streaming(heads & frozenset(found.spec.heads), 1, 3)
    assert facts("info", out)["sink"] == 1
    error = refusal("capture", own, *given, "--generate", 4, "-o", tmp_path / "b.h5", code=2)
    assert "not with --generate" in error


def test_the_command_refuses_layers_that_see_what_comes_later(tmp_path, refusal):
    folder = write_checkpoint(tmp_path / "both", causal=False, vocab_size=256)
    given = ("--text", "the cat", "--streaming", "0.0")
    assert "cannot stream" in refusal("capture", folder, *given, "-o", tmp_path / "a.h5")
    assert not (tmp_path / "a.h5.part").exists()
