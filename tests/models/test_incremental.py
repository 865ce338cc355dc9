"""Models of the package transformers go on with a text at one row a token, and say what they would
of the whole text.

The reference is transformers' own greedy generation, and a capture of the text that came out.
"""

import threading
import warnings

import numpy as np
import pytest
import torch

from hgviz.core import HeadId
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.cache import NewRows
from hgviz.models.formats import readers
from hgviz.models.generation import Writing, chosen
from hgviz.models.huggingface import THREAD
from hgviz.models.surgery import export
from tests.models.test_generation import same_rows
from tests.models.zoo import write

BEGIN, ADDED = 3, 18  # tokens there are, and more; windows are 5 wide
LINE = [
    ("llama", "LlamaForCausalLM", {}),
    ("llama", "LlamaForCausalLM", {"num_key_value_heads": 4}),
    ("llama", "LlamaForCausalLM", {"num_key_value_heads": 1}),
    ("qwen2", "Qwen2ForCausalLM", {}),
    ("gemma2", "Gemma2ForCausalLM", {}),  # a window, and scores that are capped
    ("mistral", "MistralForCausalLM", {}),  # windows
    ("cohere2", "Cohere2ForCausalLM", {}),  # windows, and layers without positions
    ("gpt_oss", "GptOssForCausalLM", {}),  # sinks
    ("gpt_neox", "GPTNeoXForCausalLM", {}),
    ("opt", "OPTForCausalLM", {}),  # learnt positions
    ("llama4_text", "Llama4ForCausalLM", {"attention_chunk_size": 6, "layer_types": [
        "chunked_attention", "full_attention"]}),
    ("gemma3n_text", "Gemma3nForCausalLM", {}),  # layers with the keys of others
]  # fmt: skip
SINGLE = ("gpt_oss", "llama4_text")  # experts compute, or are weighed, in float32
AGAIN = [
    ("bloom", "BloomForCausalLM", {}),  # attends by code of its own
    ("mpt", "MptForCausalLM", {}),
    ("qwen3_next", "Qwen3NextForCausalLM", {}),  # blocks with recurrent states
    ("falcon_h1", "FalconH1ForCausalLM", {}),  # such states beside heads
    ("deepseek_v32", "DeepseekV32ForCausalLM", {}),  # keys that an indexer chooses
    ("llama", "LlamaForCausalLM", {"rope_parameters": {
        "rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}, "max_position_embeddings": 8}),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model."""

    def made(kind, name, **changes):
        return write(tmp_path_factory.mktemp(kind) / kind, kind, name, **changes)

    return made


@pytest.fixture(scope="module")
def llama(folder):
    return folder("llama", "LlamaForCausalLM")


def opened(path, dtype="float64", **more):
    """A model, and how many tokens each of its passes reads."""
    model, passes = open_model(path, "cpu", dtype, **more), []
    model.module.table.register_forward_hook(lambda _, given, out: passes.append(out.shape[1]))
    return model, passes


def written(model, tokens=None, off=frozenset()):
    """A text under way; logits of every step. Without tokens the likeliest follow."""
    ids = np.random.default_rng(1).integers(5, 110, BEGIN) if tokens is None else tokens[:BEGIN]
    writing = Writing(model, model.from_ids(ids), off=off)
    for _ in writing.read():
        pass
    found = [writing.logits]
    for at in range(ADDED):
        likeliest = chosen(writing.logits, None, 1.0)
        writing.add(likeliest if tokens is None else int(tokens[BEGIN + at]))
        found.append(writing.logits)
    return writing, np.stack(found)


def theirs(path, name, ids, dtype):
    """The tokens that transformers goes on with, and the logits of each step in float32."""
    import transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(transformers, name)
        model = made.from_pretrained(path, attn_implementation="eager", dtype=dtype).eval()
        out = model.generate(
            torch.as_tensor(ids)[None], max_new_tokens=ADDED + 1, do_sample=False,
            eos_token_id=None, pad_token_id=0, return_dict_in_generate=True, output_logits=True,
        )  # fmt: skip
    return out.sequences[0, :-1].tolist(), torch.cat(out.logits).double().numpy()


def whole(model, ids, off=frozenset()):
    """Logits after every token from the last of the beginning on, and factors, of one pass."""
    tapped = {}
    trace = model.trace(model.from_ids(ids), off=off, tap=tapped.__setitem__)
    while True:
        try:
            next(trace)
        except StopIteration as end:
            return end.value[BEGIN - 1 :], tapped


def differ(one, two):
    """The largest difference, beside the largest number."""
    return np.abs(one - two).max() / max(1.0, np.abs(two).max())


def row_by_row(passes):
    """Whether it read one token after the other, but for the pass that proves the first."""
    return passes == [BEGIN, 1, BEGIN + 1, *[1] * (ADDED - 1)]


@pytest.mark.parametrize(("kind", "name", "changes"), LINE, ids=lambda one: str(one))
def test_a_token_more_is_one_row_and_all_else_is_that_of_the_whole_text(
    folder, kind, name, changes
):
    path, dtype = folder(kind, name, **changes), "float32" if kind in SINGLE else "float64"
    close = 1e-5 if dtype == "float32" else 1e-9
    model, passes = opened(path, dtype)
    writing, logits = written(model)
    assert row_by_row(passes)
    ids = writing.text.ids
    tokens, expected = theirs(path, name, ids[:BEGIN], getattr(torch, dtype))
    assert ids.tolist() == tokens
    assert differ(logits, expected) < max(close, 1e-6)
    logits_of_one, factors = whole(model, ids)
    assert differ(logits, logits_of_one) < close
    for layer in model.spec.layers:
        one, two = writing.factors(layer.index), factors[layer.index]
        same_rows(one, two, layer, close)
        assert type(one.k) is type(two.k)
        for part in ("band", "chunk", "softcap", "causal"):
            assert getattr(one.rule, part) == getattr(two.rule, part)
        assert np.array_equal(one.rule.sinks, two.rule.sinks)
        assert differ(one.value_norms, two.value_norms) < 1e-5


@pytest.mark.parametrize("kind", ["llama", "gemma2", "opt"])
def test_heads_that_are_off_are_off_in_every_row(folder, kind):
    name = {"llama": "Llama", "gemma2": "Gemma2", "opt": "OPT"}[kind] + "ForCausalLM"
    model, passes = opened(folder(kind, name))
    for off in ({HeadId(0, 1), HeadId(1, 2)}, {HeadId(1, head) for head in range(4)}):
        passes.clear()
        writing, logits = written(model, off=frozenset(off))
        assert row_by_row(passes)
        expected = model.run(writing.text.ids, off=off).logits[BEGIN - 1 :]
        assert differ(logits, expected) < 1e-9
        assert differ(logits, whole(model, writing.text.ids)[0]) > 1e-3


@pytest.mark.parametrize("left", [{HeadId(0, 1)}, {HeadId(1, head) for head in range(4)}])
def test_a_model_without_some_heads_writes_as_it_reads(llama, tmp_path, left):
    """Groups of keys with unequally many heads, and a layer without any."""
    export.written(readers.read(llama), frozenset(left), "smaller", tmp_path / "small")
    model, passes = opened(tmp_path / "small")
    writing, logits = written(model)
    assert row_by_row(passes)
    expected, factors = whole(model, writing.text.ids)
    assert differ(logits, expected) < 1e-9
    for layer in model.spec.layers:
        same_rows(writing.factors(layer.index), factors[layer.index], layer, 1e-9)


@pytest.mark.parametrize("activation", ["softmax1", "linear", "ymish", "softmax,sigmoid", "topk:3"])
def test_other_activations_write_as_they_read(llama, activation):
    model, passes = opened(llama, activation=activation)
    writing, logits = written(model)
    assert row_by_row(passes)
    expected, factors = whole(model, writing.text.ids)
    assert differ(logits, expected) < 1e-9
    for layer in model.spec.layers:
        same_rows(writing.factors(layer.index), factors[layer.index], layer, 1e-9)


def test_half_precision_goes_on_at_one_row_a_token(llama):
    model, passes = opened(llama, "bfloat16")
    writing, logits = written(model)
    assert row_by_row(passes)
    assert differ(logits, model.run(writing.text.ids).logits[BEGIN - 1 :]) < 0.05
    assert writing.factors(0).dtype == "bfloat16"
    assert LazyMap(writing.factors(0), (0, 1, 2, 3)).read(0).sum(-1) == pytest.approx(1, abs=0.02)


def test_a_reading_that_is_left_ends_its_thread(llama):
    model, _ = opened(llama)
    reading = Writing(model, model.from_ids([5, 6, 7])).read()
    assert next(reading) == 0
    reading.close()
    assert THREAD not in [one.name for one in threading.enumerate()]


# --- what reads the whole text again --------------------------------------------------------------


def reads_again(passes, since=0):
    """Whether passes, from the one that added so many tokens on, are of the whole text."""
    return passes[-(ADDED - since) :] == [BEGIN + 1 + at for at in range(since, ADDED)]


@pytest.mark.parametrize(("kind", "name", "changes"), AGAIN, ids=lambda one: str(one))
def test_a_model_that_cannot_go_on_by_rows_reads_the_whole_text(folder, kind, name, changes):
    path = folder(kind, name, **changes)
    model, passes = opened(path, "float32")
    writing, logits = written(model)
    assert reads_again(passes)
    ids = writing.text.ids
    for at in (BEGIN, BEGIN + 9, len(ids)):
        assert differ(logits[at - BEGIN], model.run(ids[:at]).logits[-1]) < 1e-5
    assert model.module.incremental == (kind in ("falcon_h1", "deepseek_v32"))


def test_the_first_token_proves_whether_rows_are_those_of_the_whole_text(llama):
    """A model that forgets where it is in a text, which no look at it tells."""
    model, passes = opened(llama)
    net, forward = model.module.net, model.module.net.forward

    def forgetful(**given):
        if given.get("past_key_values") is not None:
            places = torch.arange(given["input_ids"].shape[1])[None]
            given["position_ids"] = places
        return forward(**given)

    model.module.takes  # noqa: B018  # of the model itself
    net.forward = forgetful
    writing, logits = written(model)
    assert passes[:4] == [BEGIN, 1, BEGIN + 1, BEGIN + 1] and reads_again(passes)
    assert differ(logits, whole(model, writing.text.ids)[0]) < 1e-9


def test_a_mask_that_comes_to_be_numbers_is_never_taken_for_a_rule(llama):
    """Text under way goes on by whole passes from the token on whose mask no rule says."""
    model, passes = opened(llama)
    forward, tokens = model.module.net.forward, np.arange(7, 7 + BEGIN + ADDED)

    def masked(**given):
        past, count = given.get("past_key_values"), given["input_ids"].shape[1]
        length = count + (0 if past is None else past.length)
        if length > 12:  # of what stands there, and so of a longer text too, the second is unseen
            seen = torch.ones(length, length, dtype=torch.bool).tril()
            seen[12:, 1] = False
            given["attention_mask"] = seen[None, None, -count:]
        return forward(**given)

    model.module.takes  # noqa: B018  # of the model itself
    model.module.net.forward = masked
    writing, logits = written(model, tokens)
    assert passes.count(1) == 13 - BEGIN and reads_again(passes, 12 - BEGIN)
    for at in (11, 12, 13, len(tokens)):
        assert differ(logits[at - BEGIN], model.run(tokens[:at]).logits[-1]) < 1e-9


def test_a_mask_for_other_rows_is_not_taken(llama, monkeypatch):
    """Model code that counts tokens from 0 again, once their first was proved."""
    model, passes = opened(llama)
    monkeypatch.setattr(
        NewRows, "get_query_offset", lambda self, layer_idx=0: self.length if self.length < 9 else 0
    )
    writing, logits = written(model)
    assert passes.count(1) == 10 - BEGIN and reads_again(passes, 9 - BEGIN)
    assert differ(logits, whole(model, writing.text.ids)[0]) < 1e-9
