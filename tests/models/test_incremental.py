"""Models of the package transformers read each token that they write with their own cache, and say
what they would of the whole text.

The reference is transformers' own greedy generation, and a pass over the text that came out.
"""

import warnings

import numpy as np
import pytest
import torch

from hgviz.core import HeadId
from hgviz.models import checkpoints, open_model, pruning
from hgviz.models.generation import Writing, choose_token
from tests.models.building import write_transformer
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
    ("falcon_h1", "FalconH1ForCausalLM", {}),  # recurrent states beside heads
]  # fmt: skip
SINGLE = ("gpt_oss", "llama4_text", "falcon_h1")  # experts compute, or are weighed, in float32
AGAIN = [
    ("bloom", "BloomForCausalLM", {}),  # attends by code of its own
    ("mpt", "MptForCausalLM", {}),
    ("qwen3_next", "Qwen3NextForCausalLM", {}),  # blocks with recurrent states
    ("deepseek_v32", "DeepseekV32ForCausalLM", {}),  # an indexer that chooses among keys
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
    model.module.token_embedding.register_forward_hook(
        lambda _, given, out: passes.append(out.shape[1])
    )
    return model, passes


def written(model, tokens=None, off=frozenset()):
    """A text under way; logits of every step. Without tokens the likeliest follow."""
    ids = np.random.default_rng(1).integers(5, 110, BEGIN) if tokens is None else tokens[:BEGIN]
    writing = Writing(model, model.from_ids(ids), off=off)
    found = [writing.logits]
    for at in range(ADDED):
        likeliest = choose_token(writing.logits, None, 1.0)
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
    """Logits after every token from the last of the beginning on, of one pass."""
    return model.run(ids, off=off).logits[BEGIN - 1 :]


def differ(one, two):
    """The largest difference, beside the largest number."""
    return np.abs(one - two).max() / max(1.0, np.abs(two).max())


def row_by_row(passes):
    """Whether it read one token after the other, but for the pass that proves the first."""
    return passes == [BEGIN, 1, BEGIN + 1, *[1] * (ADDED - 1)]


@pytest.mark.parametrize(("kind", "name", "changes"), LINE, ids=lambda one: str(one))
def test_each_token_is_read_alone_and_the_text_is_that_of_transformers(folder, kind, name, changes):
    path, dtype = folder(kind, name, **changes), "float32" if kind in SINGLE else "float64"
    close = 1e-5 if dtype == "float32" else 1e-9
    model, passes = opened(path, dtype)
    writing, logits = written(model)
    assert row_by_row(passes)
    ids = writing.text.ids
    tokens, expected = theirs(path, name, ids[:BEGIN], getattr(torch, dtype))
    assert ids.tolist() == tokens
    assert differ(logits, expected) < max(close, 1e-6)
    assert differ(logits, whole(model, ids)) < close


@pytest.mark.parametrize("positions", ["none", "learned", "sinusoidal", "rotary"])
@pytest.mark.parametrize("off", [frozenset(), frozenset({HeadId(0, 1), HeadId(1, 0)})])
def test_linear_attention_goes_on_from_its_state(tmp_path, positions, off):
    path = write_transformer(
        tmp_path / "linear", form="decoder", activations="linear", positions=positions,
        vocab_size=120, max_positions=64,
    )  # fmt: skip
    model, passes = open_model(path, "cpu", "float64"), []
    model.module.embed.token.register_forward_hook(lambda *given: passes.append(given[2].shape[1]))
    writing, logits = written(model, off=off)
    assert row_by_row(passes) == (positions != "rotary")  # which turn what the state sums
    ids = writing.text.ids
    assert differ(logits, whole(model, ids, off)) < 1e-9
    states = writing._cache.state[1] if positions != "rotary" else {}
    assert all(one.shape == (1, 2, 6, 7) for one in states.values())  # however long the text is


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
        assert differ(logits, whole(model, writing.text.ids)) > 1e-3


@pytest.mark.parametrize("left", [{HeadId(0, 1)}, {HeadId(1, head) for head in range(4)}])
def test_a_model_without_some_heads_writes_as_it_reads(llama, tmp_path, left):
    """Groups of keys with unequally many heads, and a layer without any."""
    pruning.write_pruned(checkpoints.read(llama), frozenset(left), "smaller", tmp_path / "small")
    model, passes = opened(tmp_path / "small")
    writing, logits = written(model)
    assert row_by_row(passes)
    expected = whole(model, writing.text.ids)
    assert differ(logits, expected) < 1e-9


@pytest.mark.parametrize("activation", ["softmax1", "linear", "ymish", "softmax,sigmoid", "topk:3"])
def test_other_activations_write_as_they_read(llama, activation):
    model, passes = opened(llama, activation=activation)
    writing, logits = written(model)
    assert row_by_row(passes)
    expected = whole(model, writing.text.ids)
    assert differ(logits, expected) < 1e-9


def test_half_precision_goes_on_at_one_row_a_token(llama):
    model, passes = opened(llama, "bfloat16")
    writing, logits = written(model)
    assert row_by_row(passes)
    assert differ(logits, model.run(writing.text.ids).logits[BEGIN - 1 :]) < 0.05


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
    assert model.module.can_cache == (kind == "deepseek_v32")


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
    assert passes[:4] == [BEGIN, 1, BEGIN + 1, BEGIN + 2] and reads_again(passes)
    assert differ(logits, whole(model, writing.text.ids)) < 1e-9
