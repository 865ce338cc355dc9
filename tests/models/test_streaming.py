"""Heads that stream: whole models beside dense masks, scores, captures and their files."""

import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
import transformers

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Streaming
from hgviz.maps import Rule
from hgviz.models import open_model
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.models.trials import Trials
from hgviz.store import describe, open_capture, write_capture
from tests.closeness import scaled_error
from tests.models.building import (
    make_config,
    make_hourglass,
    make_transformer,
    write_checkpoint,
    write_transformer,
)
from tests.models.references import dense_maps, visible_cells
from tests.progress import cancelled

N, WINDOW = 37, {"sink": 2, "recent": 5}
DECODER = {"form": "decoder", "max_positions": 40}
OWN = {
    "learned": make_transformer(**DECODER),
    "rotary, unlike": make_transformer(**DECODER, positions="rotary", activations=["rbf", "tanh"]),
    "quadratic": make_transformer(**DECODER, positions="quadratic"),
    "hourglass": make_hourglass(make_config(causal=True, positions="relative")),
}


def heads_of(module):
    return [HeadId(layer.index, head) for layer in module.config.layers for head in layer.heads]


def logits(module, ids, keep=None, **options):
    with torch.inference_mode():
        tokens = Tokens(torch.as_tensor(ids), None if keep is None else torch.as_tensor(keep))
        return module(tokens, Run(**options))


def ids_of(count, seed=0, most=23):
    return np.random.default_rng(seed).integers(3, most, (1, count))


@pytest.mark.parametrize("name", OWN)
def test_a_model_whose_heads_stream_is_one_of_dense_masks(monkeypatch, name):
    module = OWN[name]
    streaming = Streaming(frozenset(heads_of(module)[::2]), **WINDOW)
    off = frozenset(heads_of(module)[1:2])
    found = logits(module, ids_of(N), off=off, streaming=streaming)

    def dense(q, k, v, rule, *, keep, relative, row_sums):
        return dense_maps(q, k, rule, keep, relative) @ v

    with monkeypatch.context() as patch:
        patch.setattr("hgviz.models.run.attend", dense)
        wanted = logits(module, ids_of(N), off=off, streaming=streaming)
    assert (found - wanted).abs().max() < 1e-12
    assert (found - logits(module, ids_of(N), off=off)).abs().max() > 1e-6
    far = replace(streaming, sink=4, recent=N)  # an Hourglass fills its groups up
    assert torch.equal(logits(module, ids_of(N), streaming=far), logits(module, ids_of(N)))


@pytest.fixture(scope="module")
def llama(folder):
    """A model in which two heads share their keys."""
    return folder("llama", "LlamaForCausalLM")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "own"
    keys = {"positions": "rotary", "max_positions": 60, "vocab_size": 256}
    return write_transformer(folder, form="decoder", **keys)


def test_llama_streams_as_by_a_mask_of_transformers(llama):
    module, ids, places = open_model(llama, dtype="float64").module, ids_of(N, most=120), (0, 1, 3)
    heads = frozenset(HeadId(layer, head) for layer in range(2) for head in places)
    streaming = Streaming(heads, **WINDOW)
    found = logits(module, ids, streaming=streaming)
    other = transformers.LlamaForCausalLM.from_pretrained(
        llama, dtype=torch.float64, attn_implementation="sdpa",  # eager softmaxes are float32
    ).eval()  # fmt: skip
    rule = Rule(1.0, ("softmax",) * 4, (None,) * 4, causal=True).with_streaming(places, (2, 5))
    mask = torch.zeros(1, 4, N, N).double()
    mask.masked_fill_(~visible_cells(rule, N, N, None), torch.finfo(torch.float64).min)
    with torch.no_grad():
        wanted = other(torch.as_tensor(ids), attention_mask=mask).logits
    assert (found - wanted).abs().max() < 1e-12
    assert (found - logits(module, ids)).abs().max() > 1e-3


# --- scores ---------------------------------------------------------------------------------------


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat sat on the mat and the dog sat on the log. " * 6, "utf-8")
    return path


def test_a_score_is_of_what_streams_and_tells_what_the_cache_keeps(own, text, facts, output):
    model = open_model(own)
    streaming = Streaming(frozenset({HeadId(0, 1), HeadId(1, 0)}), 3, 9)
    whole = tasks.evaluate(model, text)
    score = tasks.evaluate(model, text, streaming=streaming)
    assert whole.cached == 1 and "cached" not in whole.to_dict()
    trials = Trials(model, tasks.scoring.examples_from(model, text), streaming=streaming)
    nats = []
    for batch in (batch for block in trials.blocks for batch in block):
        rows = logits(model.module, batch.ids, batch.mask, streaming=streaming).double()
        losses = -rows.log_softmax(-1)[torch.tensor(batch.asked)]
        nats += losses.gather(1, torch.tensor(batch.wanted[batch.asked])[:, None])[:, 0].tolist()
    assert score.loss == pytest.approx(np.mean(nats), rel=1e-6)
    assert score.loss != pytest.approx(whole.loss, rel=1e-6)
    assert (score.longest, score.cached) == (60, (2 * 60 + 2 * 12) / (4 * 60))
    options = ("--data", text, "--streaming", "0.1,1.0", "--sink", 3, "--recent", 9)
    told = facts("evaluate", own, *options)
    assert told["loss"] == pytest.approx(score.loss, rel=1e-5)
    assert told["streaming"] == ["0.1", "1.0"] and (told["sink"], told["recent"]) == (3, 9)
    said = output("evaluate", own, *options, "--off", "0.0")
    assert "Streaming heads: 2. At 60 tokens the cache keeps 0.350 of its keys" in said


@pytest.mark.parametrize("off, streams, share", [
    ([], [0], 1), ([], [0, 1], 130 / 160), ([1], [0], 130 / 160), ([0, 1], [0], 0.75),
])  # fmt: skip
def test_keys_that_heads_share_stay_while_one_of_them_needs_them(llama, off, streams, share):
    off, heads = (frozenset(HeadId(0, head) for head in each) for each in (off, streams))
    cached = tasks.scoring._cached_share(
        open_model(llama), np.arange(40), off, Streaming(heads, 2, 8)
    )
    assert cached == share


def test_layers_that_cannot_stream_are_refused_in_one_line(tmp_path, text, folder, refusal):
    keys = {"goal": "classes", "labels": ["a", "b"], "vocab_size": 256}
    encoder = write_transformer(tmp_path / "encoder", family="bert", **keys)
    error = refusal("evaluate", encoder, "--data", text, "--streaming", "1.0")
    assert "layer 1 cannot be streaming heads: it is not causal" in error
    nested = write_checkpoint(tmp_path / "both", causal=False, vocab_size=256)
    with pytest.raises(HgvizError, match="cannot be streaming"):
        tasks.evaluate(open_model(nested), text, streaming=Streaming({HeadId(0, 0)}))
    options = ("--text", "the cat", "--streaming", "0.0", "-o", tmp_path / "a.h5")
    assert "cannot be streaming" in refusal("capture", nested, *options)
    assert not (tmp_path / "a.h5.part").exists()
    module = open_model(folder("gptj", "GPTJForCausalLM")).module
    with pytest.raises(HgvizError, match="layer 1 cannot stream.*own attention code"):
        logits(module, ids_of(9, most=120), streaming=Streaming(frozenset({HeadId(1, 2)})))


# --- captures -------------------------------------------------------------------------------------


def captured(folder, out=None, **options):
    model = open_model(folder, dtype="float64")
    prompt = model.from_ids(np.random.default_rng(0).integers(3, 23, N))
    return tasks.capture(model, prompt, out, **options)


def streams(folder, places=(0, 1, 3)):
    spec = open_model(folder).spec
    return Streaming(frozenset(head for head in spec.heads if head.head in places), **WINDOW)


def test_what_is_captured_is_what_heads_that_stream_do(llama, tmp_path):
    streaming, off = streams(llama), frozenset({HeadId(1, 1)})
    capture = captured(llama, tmp_path / "a.h5", streaming=streaming, off=off)
    dense = captured(llama, streaming=streaming, off=off, dense=True)
    copy = open_capture(write_capture(tmp_path / "b.h5", capture))
    whole = captured(llama, off=off)
    for number, maps in enumerate(capture.maps):
        q, k = (
            torch.tensor(np.stack([part[place] for place in range(len(maps.heads))]))[None]
            for part in (maps.factors.q, maps.factors.k)
        )
        wanted = dense_maps(q, k, maps.factors.rule)[0].numpy()
        for place, head in enumerate(maps.heads):
            is_streaming = HeadId(number, head) in streaming.heads
            assert (maps.factors.rule.streaming[place] is not None) == is_streaming
            for found in (maps, dense.maps[number], copy.maps[number]):
                assert scaled_error(found.read(head), wanted[place]) < 1e-6
            assert scaled_error(maps.summary(head).rowmax, wanted[place].max(1)) < 1e-6
        assert maps.verify_max_abs < 1e-6
    assert np.abs(capture.logits - dense.logits).max() < 1e-9
    assert np.abs(capture.logits - whole.logits).max() > 1e-6
    assert (copy.streaming, capture.streaming, capture.off) == (streaming, streaming, off)
    told = describe(tmp_path / "b.h5")
    assert told["streaming"] == sorted(map(str, streaming.heads)) and told["recent"] == 5
    with h5py.File(tmp_path / "a.h5") as file:  # a program before 1.8 refuses what it would misread
        assert file["layers/000"].attrs["kind"] == b"streaming"


def test_an_interrupted_capture_goes_on_with_the_same_heads_alone(tmp_path, llama):
    streaming, path = streams(llama), tmp_path / "a.h5"
    cancelled(captured, llama, path, streaming=streaming)
    for other in ({}, {"streaming": replace(streaming, recent=6)}):
        with pytest.raises(HgvizError, match="another set of heads that stream"):
            captured(llama, path, **other)
    assert captured(llama, path, streaming=streaming).streaming == streaming


# --- hostile files --------------------------------------------------------------------------------

UNKNOWN = "a rule that this hgviz does not support"
WRONG = [  # attribute of a layer, its value, None for none
    *(("near", near, UNKNOWN) for near in (
        [2, 5], [2, 5] * 5, [-1, 5] * 4, [2, 0] * 4, [0, -5] * 4, [1 << 40, 1] * 4, [1 << 31, 1],
    )),
    ("causal", np.int32(0), UNKNOWN), ("windowed", np.int32(1), UNKNOWN),
    ("near", None, "the attribute near of /layers/001 is missing"),
]  # fmt: skip
SAID = [  # the data set streaming, as JSON
    ([], "Expected `object`, got `array`"), ({}, "missing required field"),
    ({"heads": [[0, 0]], "sink": -1, "recent": 4}, "`int` >= 0"),
    ({"heads": [[0, 0]], "sink": 1, "recent": 0}, "`int` >= 1"),
    ({"heads": [[0, 0]], "sink": True, "recent": 4}, "Expected `int`, got `bool`"),
    ({"heads": [[0, 0]], "sink": 1, "recent": 1 << 31}, "`int` <"),
    ({"heads": [[0, 0.5]], "sink": 1, "recent": 4}, "/streaming is invalid"),
    ({"heads": [[9, 0]], "sink": 1, "recent": 4}, "not in causal layers"),
]  # fmt: skip


def test_files_that_say_wrongly_which_heads_stream_are_refused(tmp_path, own):
    captured(own, tmp_path / "whole.h5", streaming=streams(own))
    for name, value, words in [*WRONG, *(("", *row) for row in SAID)]:
        path = shutil.copy(tmp_path / "whole.h5", tmp_path / "a.h5")
        with h5py.File(path, "r+") as file:
            if name:
                attributes = file["layers/001"].attrs
                del attributes[name]
                if value is not None:
                    attributes[name] = np.array(value)
            else:
                del file["streaming"]
                file["streaming"] = np.frombuffer(json.dumps(value).encode(), np.uint8)
        with pytest.raises(HgvizError, match=words):
            open_capture(path)
