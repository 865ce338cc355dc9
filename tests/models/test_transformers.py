"""Models of the package transformers, each tiny and random, beside what that package computes.

The reference is transformers itself with attn_implementation "eager" and output_attentions.
"""

import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.masking_utils import causal_mask_function

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, progress
from hgviz.maps import DenseMap, Grouped, LazyMap
from hgviz.models import open_model
from hgviz.models.huggingface import attention, mask
from hgviz.models.prompts import from_file
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.zoo import write
from tests.progress import cancelled

LAZY = [
    ("llama", "LlamaForCausalLM"), ("qwen2", "Qwen2ForCausalLM"), ("qwen3", "Qwen3ForCausalLM"),
    ("mistral", "MistralForCausalLM"), ("mixtral", "MixtralForCausalLM"),
    ("gemma2", "Gemma2ForCausalLM"), ("gemma3_text", "Gemma3ForCausalLM"),
    ("phi3", "Phi3ForCausalLM"), ("gpt_oss", "GptOssForCausalLM"), ("olmo2", "Olmo2ForCausalLM"),
    ("cohere2", "Cohere2ForCausalLM"), ("granite", "GraniteForCausalLM"),
    ("smollm3", "SmolLM3ForCausalLM"), ("glm4", "Glm4ForCausalLM"),
    ("deepseek_v3", "DeepseekV3ForCausalLM"), ("gpt_neox", "GPTNeoXForCausalLM"),
    ("opt", "OPTForCausalLM"), ("qwen3_next", "Qwen3NextForCausalLM"),
    ("roberta", "RobertaForSequenceClassification"), ("roberta", "RobertaForMaskedLM"),
    ("roberta", "RobertaModel"), ("distilbert", "DistilBertForSequenceClassification"),
    ("albert", "AlbertForMaskedLM"), ("electra", "ElectraForSequenceClassification"),
    ("modernbert", "ModernBertForMaskedLM"), ("xlm-roberta", "XLMRobertaForMaskedLM"),
    ("t5", "T5ForConditionalGeneration"), ("bart", "BartForConditionalGeneration"),
    ("marian", "MarianMTModel"), ("pegasus", "PegasusForConditionalGeneration"),
    ("bamba", "BambaForCausalLM"),  # a number that JSON lacks
    ("llava", "LlavaForConditionalGeneration"),  # as its language model; fewer patches than tokens
    ("qwen3_vl", "Qwen3VLModel"),  # which is no dual encoder
    ("internlm3", "LlamaForCausalLM"),  # a class of another type
    ("t5gemma", "T5GemmaForConditionalGeneration"),  # masks what looks like padding
]  # fmt: skip
DENSE = [  # with attention code of their own: their softmaxes are seen on their way
    ("gptj", "GPTJForCausalLM"), ("bloom", "BloomForCausalLM"), ("falcon", "FalconForCausalLM"),
    ("deberta-v2", "DebertaV2ForSequenceClassification"), ("mpnet", "MPNetForMaskedLM"),
    ("xlnet", "XLNetLMHeadModel"),
    ("xglm", "XGLMForCausalLM"),  # heads of all texts side by side
]  # fmt: skip
TOKENS, WRITTEN = 23, 17  # of a text, longer than every window, and of what a decoder writes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model once."""
    kept = {}

    def made(kind, name, **changes):
        key = (kind, name, *sorted(changes.items()))
        if key not in kept:
            kept[key] = write(tmp_path_factory.mktemp(kind) / kind, kind, name, **changes)
        return kept[key]

    return made


def theirs(folder, name, ids, written=None, keep=None):
    """Logits and maps, layer after layer, as transformers gives them."""
    import transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(transformers, name)
        model = made.from_pretrained(folder, attn_implementation="eager").eval()
        given = {"input_ids": torch.as_tensor(ids)[None]}
        if keep is not None:
            given["attention_mask"] = torch.as_tensor(keep)[None].long()
        if written is not None:
            given["decoder_input_ids"] = torch.as_tensor(written)[None]
        with torch.no_grad():
            out = model(**given, output_attentions=True)
    logits = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
    if written is None:
        maps = [one for one in out.attentions if one is not None]
    else:
        both = zip(out.decoder_attentions, out.cross_attentions, strict=True)
        maps = [*out.encoder_attentions, *(one for pair in both for one in pair)]
    return logits[0].numpy(), [one[0].numpy() for one in maps]


def ids_of(count, seed=1):
    return np.random.default_rng(seed).integers(5, 110, count)


def captured(model, ids, written=None, **more):
    target = None if written is None else model.from_ids(written)
    return tasks.capture(model, model.from_ids(ids, **more), target=target)


@pytest.mark.parametrize(("kind", "name"), LAZY, ids=lambda one: one)
def test_outputs_and_every_map_are_those_of_transformers(folder, kind, name):
    path, ids = folder(kind, name), ids_of(TOKENS)
    model = open_model(path)
    written = ids_of(WRITTEN, 2) if model.spec.two_texts else None
    capture = captured(model, ids, written)
    logits, maps = theirs(path, name, ids, written)
    assert scaled_error(capture.logits, logits) < 1e-5
    assert len(capture.maps) == len(maps)
    for one, theirs_ in zip(capture.maps, maps, strict=True):
        assert isinstance(one, LazyMap) and one.verify_max_abs < 1e-5
        found = np.stack([one.read(head) for head in one.heads])
        assert scaled_error(found, theirs_) < 1e-5


@pytest.mark.parametrize(("kind", "name"), DENSE, ids=lambda one: one)
def test_of_models_with_code_of_their_own_the_weights_are_kept(folder, tmp_path, kind, name):
    path, ids = folder(kind, name), ids_of(TOKENS)
    model = open_model(path)
    logits, maps = theirs(path, name, ids)
    capture = captured(model, ids)
    assert scaled_error(capture.logits, logits) < 1e-6
    for one, theirs_ in zip(capture.maps, maps, strict=True):
        assert isinstance(one, DenseMap)
        found = np.stack([one.read(head) for head in one.heads])
        assert scaled_error(found, theirs_) < 1e-6
    off = frozenset({HeadId(0, 1), HeadId(1, 2)})
    masked = model.run(ids, off=off).logits
    assert np.abs(masked - model.run(ids).logits).max() > 1e-3
    if all(model.config.output_weights):
        _written(path, off, tmp_path / "out")
        assert scaled_error(open_model(tmp_path / "out").run(ids).logits, masked) < 1e-5
    tasks.capture(model, model.from_ids(ids), out=tmp_path / "a.h5")
    assert open_capture(tmp_path / "a.h5").complete
    with pytest.raises(HgvizError, match="cannot be exchanged"):
        open_model(path, activation="ymish")


EIGHT = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 4}


def test_a_head_of_differential_attention_is_both_its_softmaxes(folder, tmp_path):
    import transformers

    name = "DiffLlamaForCausalLM"
    path, ids = folder("diffllama", name, **EIGHT), ids_of(TOKENS)
    logits, maps = theirs(path, name, ids)
    model, other = open_model(path), getattr(transformers, name).from_pretrained(path).eval()
    assert [(one.heads, one.shared) for one in model.spec.layers] == [((0, 1, 2, 3), 2)] * 2
    capture = captured(model, ids)
    assert np.abs(capture.logits - logits).max() < 1e-5 * np.abs(logits).max()
    for one, part, softmaxes in zip(capture.maps, other.model.layers, maps, strict=True):
        at = part.self_attn
        pairs = ((at.lambda_q1, at.lambda_k1), (at.lambda_q2, at.lambda_k2))
        plus, minus = ((q * k).sum().exp().item() for q, k in pairs)
        wanted = softmaxes[:4] - (plus - minus + at.lambda_init) * softmaxes[4:]
        found = np.stack([one.read(head) for head in one.heads])
        assert one.signed and wanted.min() < -0.1 and np.abs(found - wanted).max() < 1e-5
    off = frozenset({HeadId(0, 1), HeadId(0, 2), HeadId(1, 0), HeadId(1, 3)})
    masked = model.run(ids, off=off).logits
    for heads, out in ((off, "smaller"), (off | {HeadId(0, 3)}, "uneven")):
        proof = tasks.prune(path, heads, tmp_path / out)
        assert ("in transformers" in proof.opens) == (out == "smaller")
    for layer, head in off:
        part = other.model.layers[layer].self_attn
        part.o_proj.weight.data[:, 16 * head : 16 * head + 16] = 0
    again = getattr(transformers, name).from_pretrained(tmp_path / "smaller").eval()
    for one in (other, again):
        with torch.no_grad():
            found = one(torch.as_tensor(ids)[None]).logits[0].numpy()
        assert np.abs(found - masked).max() < 1e-5 * np.abs(masked).max()
    tasks.capture(model, model.from_ids(ids), out=tmp_path / "a.h5")
    assert open_capture(tmp_path / "a.h5").maps[0].signed
    with pytest.raises(HgvizError, match="difference of two softmaxes"):
        open_model(path, activation="ymish").run(ids)


@pytest.mark.parametrize("biased", [False, True])
def test_numbers_that_no_rule_can_say_are_added_to_scores(biased):
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, heads, 7, 8, generator=draw) for heads in (4, 2, 2))
    added = torch.randn(2, 4, 7, 7, generator=draw)
    added[:, :, :, 2] = torch.finfo(torch.float32).min
    added[0, :, 5] = torch.finfo(torch.float32).min  # a row that sees nothing
    bias = torch.randn(1, 4, 7, 7, generator=draw) if biased else None
    sinks = torch.randn(4, generator=draw)
    found, none = attention(
        None, q, k, v, added, scaling=0.3, softcap=2.0, position_bias=bias, s_aux=sinks
    )
    scores = (0.3 * q.double() @ k.double().repeat_interleave(2, 1).mT / 2).tanh() * 2
    scores = (scores + added + (0 if bias is None else bias)).clamp(min=-1e30)
    column = sinks.double()[:, None, None].expand(2, 4, 7, 1)
    weights = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    wanted = (weights @ v.double().repeat_interleave(2, 1)).transpose(1, 2)
    assert none is None and scaled_error(found, wanted) < 1e-5


@pytest.mark.parametrize("kind, name", [
    ("llama", "LlamaForCausalLM"), ("gemma2", "Gemma2ForCausalLM"),
    ("gpt_oss", "GptOssForCausalLM"), ("roberta", "RobertaForMaskedLM"),
    ("modernbert", "ModernBertForMaskedLM"),
])  # fmt: skip
def test_padding_is_seen_by_nobody(folder, kind, name):
    path, ids = folder(kind, name), ids_of(TOKENS)
    keep = np.ones(TOKENS, bool)
    keep[-6:] = False
    capture = captured(open_model(path), ids, attention_mask=keep)
    logits, maps = theirs(path, name, ids, keep=keep)
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, theirs_ in zip(capture.maps, maps, strict=True):
        found = np.stack([one.read(head) for head in one.heads])
        assert np.abs(found - theirs_).max() < 1e-5
        assert not found[:, keep][:, :, ~keep].any()


@pytest.mark.parametrize(("kind", "name"), [
    ("t5", "T5ForConditionalGeneration"), ("bart", "BartForConditionalGeneration"),
    ("gemma2", "Gemma2ForCausalLM"), ("gpt_oss", "GptOssForCausalLM"),
])  # fmt: skip
@pytest.mark.parametrize("real", [0, 3])
def test_rows_that_see_no_key_are_those_of_transformers(folder, tmp_path, kind, name, real):
    """The mean over all keys, where nothing but a sink takes it."""
    path, ids, keep = folder(kind, name), ids_of(9), np.arange(9) >= 9 - real
    model, written = open_model(path), None
    if model.spec.two_texts:
        written = ids_of(4, 2)
    prompt, target = model.from_ids(ids, keep), None if written is None else model.from_ids(written)
    tasks.capture(model, prompt, out=tmp_path / "a.h5", target=target)
    capture = open_capture(tmp_path / "a.h5")
    logits, maps = theirs(path, name, ids, written, keep)
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, theirs_ in zip(capture.maps, maps, strict=True):
        found = np.stack([one.read(head) for head in one.heads])
        assert one.verify_max_abs < 1e-5 and np.abs(found - theirs_).max() < 1e-5


@pytest.mark.parametrize(("kind", "name", "warns"), [
    ("gpt2", "GPT2LMHeadModel", 1), ("gpt_neo", "GPTNeoForCausalLM", 1),
    ("gpt_bigcode", "GPTBigCodeForCausalLM", 1), ("bert", "BertForMaskedLM", 1),
    ("opt", "OPTForCausalLM", 0), ("xglm", "XGLMForCausalLM", 0), ("llama", "LlamaForCausalLM", 0),
])  # fmt: skip
def test_positions_of_left_padded_ids_count_from_the_first_real_token(folder, kind, name, warns):
    model, ids = open_model(folder(kind, name)), ids_of(9)
    padded, keep = np.concatenate([[5, 5, 5], ids]), np.arange(12) >= 3
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        prompt = model.from_ids(padded, keep)
    assert [str(one.message)[:41] for one in said] == warns * [
        "Positions count from the first real token"
    ]
    capture, alone = tasks.capture(model, prompt), captured(model, ids)
    assert scaled_error(capture.logits[3:], alone.logits) < 1e-5
    for one, other in zip(capture.maps, alone.maps, strict=True):
        assert np.abs(one.read(1)[3:, 3:] - other.read(1)).max() < 1e-5


def test_positions_that_are_given_are_those_that_the_model_reads(folder, tmp_path):
    import transformers

    path, ids, places = folder("gpt2", "GPT2LMHeadModel"), ids_of(9), np.arange(9)[::-1] + 7
    model = open_model(path)
    file = tmp_path / "ids.json"
    file.write_text(json.dumps({"input_ids": ids.tolist(), "position_ids": places.tolist()}))
    prompt, _ = from_file(model, file)
    tasks.capture(model, prompt, out=tmp_path / "a.h5")
    capture = open_capture(tmp_path / "a.h5")
    assert capture.prompt.digest == prompt.digest != model.from_ids(ids).digest
    theirs_ = transformers.GPT2LMHeadModel.from_pretrained(path).eval()
    with torch.no_grad():
        given = torch.as_tensor(places.copy())[None]
        out = theirs_(input_ids=torch.as_tensor(ids)[None], position_ids=given)
    assert scaled_error(capture.logits, out.logits[0].numpy()) < 1e-5
    with pytest.raises(HgvizError, match="one from 0 to 63 for each"):
        model.from_ids(ids, position_ids=places + 60)
    with pytest.raises(HgvizError, match="does not take position_ids"):
        open_model(folder("t5", "T5ForConditionalGeneration")).from_ids(ids, position_ids=places)


@pytest.mark.parametrize("kind, name", [
    ("llama", "LlamaForCausalLM"), ("mistral", "MistralForCausalLM"),
    ("roberta", "RobertaForMaskedLM"), ("opt", "OPTForCausalLM"), ("bart", "BartModel"),
])  # fmt: skip
def test_in_float64_outputs_are_those_of_sdpa(folder, kind, name):
    import transformers

    path, ids = folder(kind, name), ids_of(TOKENS)
    model = open_model(path, dtype="float64")
    written = {"decoder_ids": ids_of(WRITTEN, 2)} if model.spec.two_texts else {}
    other = getattr(transformers, name).from_pretrained(path, dtype=torch.float64).eval()
    given = {}
    if written:
        given["decoder_input_ids"] = torch.as_tensor(written["decoder_ids"])[None]
    with torch.no_grad():
        out = other(input_ids=torch.as_tensor(ids)[None], **given)
    logits = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
    # rotary angles are float32 in transformers, whatever the model computes in
    assert np.abs(model.run(ids, **written).logits - logits[0].numpy()).max() < 1e-9


def test_what_eager_code_adds_or_leaves_out_itself_is_weighed_too():
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, heads, 7, 8, generator=draw) for heads in (4, 2, 2))
    seen = mask(1, 7, 7, mask_function=causal_mask_function, dtype=torch.float32)
    scores = q.double() @ k.double().repeat_interleave(2, 1).mT / 8**0.5
    later = torch.ones(7, 7, dtype=torch.bool).triu(1)

    def weighed(scores, **more):
        found, _ = attention(None, q, k, v, seen, **more)
        weights = scores.masked_fill(later, -1e30)
        wanted = weights.softmax(-1)[..., :7] @ v.double().repeat_interleave(2, 1)
        assert scaled_error(found, wanted.transpose(1, 2)) < 1e-5

    bias = torch.randn(1, 4, 7, 7, generator=draw)
    weighed(scores + bias, position_bias=bias)
    chosen = torch.stack([torch.randperm(7, generator=draw)[:3] for _ in range(7)])[None]
    chosen[..., 0] = 0  # a key that every row may see
    among = torch.zeros(1, 7, 7, dtype=torch.bool).scatter(-1, chosen, True)[:, None]
    weighed(scores.masked_fill(~among, -1e30), indices=chosen)
    sinks = torch.randn(1, 4, 7, 1, generator=draw)
    found, _ = attention(None, q, k, v, seen, s_aux=sinks)
    every = torch.cat([scores.masked_fill(later, -1e30), sinks.double()], -1).softmax(-1)
    wanted = (every[..., :7] @ v.double().repeat_interleave(2, 1)).transpose(1, 2)
    assert scaled_error(found, wanted) < 1e-5


@pytest.mark.parametrize("kind, name, others", [
    ("jamba", "JambaForCausalLM", {"model.layers.0": "JambaMambaMixer, JambaMLP"}),
    ("longt5", "LongT5ForConditionalGeneration", {
        f"encoder.block.{at}": "LongT5LayerLocalSelfAttention, LongT5LayerFF" for at in (0, 1)
    }),
    ("led", "LEDForConditionalGeneration", {
        f"led.encoder.layers.{at}.self_attn.longformer_self_attn":
        "attention to something else than the tokens of a text" for at in (0, 1)
    }),
])  # fmt: skip
def test_what_has_no_map_is_said_and_all_else_is_as_in_transformers(folder, kind, name, others):
    path, ids = folder(kind, name), ids_of(TOKENS)
    model = open_model(path)
    written = ids_of(WRITTEN, 2) if model.spec.two_texts else None
    capture = captured(model, ids, written)
    logits, maps = theirs(path, name, ids, written)
    if others_maps := len(maps) - len(capture.maps):
        maps = maps[others_maps:]  # those of the encoder
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, theirs_ in zip(capture.maps, maps, strict=True):
        found = np.stack([one.read(head) for head in one.heads])
        assert scaled_error(found, theirs_) < 1e-5
    facts = tasks.info(path)["unattending_blocks"]
    assert {one["name"]: one["made_of"] for one in facts} == others
    off = {HeadId(model.spec.layers[-1].index, 1)}
    given = {} if written is None else {"decoder_ids": written}
    assert np.abs(model.run(ids, off=off, **given).logits - logits).max() > 1e-4


def test_what_attends_to_short_texts_otherwise_is_refused(folder):
    path = folder("canine", "CanineForSequenceClassification")
    with pytest.raises(HgvizError, match="to short texts otherwise than to long ones"):
        captured(open_model(path), ids_of(TOKENS))
    wide = {"block_size": 4, "num_random_blocks": 1}
    path = folder("big_bird", "BigBirdForMaskedLM", **wide)
    capture = captured(open_model(path), ids_of(TOKENS))
    assert capture.spec.max_positions == 28  # as many as are read without blocks
    logits, _ = theirs(path, "BigBirdForMaskedLM", ids_of(TOKENS))
    assert np.abs(capture.logits - logits).max() < 1e-5 * np.abs(logits).max()


def test_where_an_answer_starts_and_where_it_ends_is_given_over_all_tokens(folder):
    import transformers

    path, ids = folder("roberta", "RobertaForQuestionAnswering"), ids_of(TOKENS)
    other = transformers.RobertaForQuestionAnswering.from_pretrained(path).eval()
    with torch.no_grad():
        out = other(torch.as_tensor(ids)[None])
    wanted = torch.stack([out.start_logits[0], out.end_logits[0]]).numpy()
    assert scaled_error(open_model(path).run(ids).logits, wanted) < 1e-5


def test_a_rule_says_what_each_layer_sees_and_keys_are_kept_once(folder, tmp_path):
    def rules(kind, name):
        capture = captured(open_model(folder(kind, name)), ids_of(TOKENS))
        return [one.factors.rule for one in capture.maps], capture

    found, _ = rules("gemma2", "Gemma2ForCausalLM")
    assert [one.band for one in found] == [(4, 0), None] and found[0].softcap == 50.0
    found, _ = rules("modernbert", "ModernBertForMaskedLM")
    assert [one.band for one in found] == [None, (3, 3)] and not found[1].causal
    found, capture = rules("gpt_oss", "GptOssForCausalLM")
    assert found[0].sinks.shape == (4,) and found[0].band == (4, 0)
    assert capture.maps[0].read(0).sum(axis=1).max() < 1
    assert isinstance(capture.maps[0].factors.k, Grouped)
    model = open_model(folder("gpt_oss", "GptOssForCausalLM"))
    prompt = model.from_ids(ids_of(TOKENS))
    again = tasks.capture(model, prompt, out=tmp_path / "a.h5")
    stored = open_capture(tmp_path / "a.h5").maps[1]
    assert stored.factors.k.stored.shape[0] == 2 and stored.factors.rule.causal
    for head in range(4):
        assert scaled_error(stored.read(head), capture.maps[1].read(head)) < 1e-6
    assert again.complete


@pytest.mark.parametrize(
    "activation", ["ymish", "topk:4", "tanh", "softmax1", "softpick", "sigmoid"]
)
@pytest.mark.parametrize("kind, name", [
    ("llama", "LlamaForCausalLM"), ("roberta", "RobertaForMaskedLM"),
    ("mistral", "MistralForCausalLM"),
])  # fmt: skip
def test_another_activation_weighs_in_place_of_softmax(folder, kind, name, activation):
    model = open_model(folder(kind, name), activation=activation)
    whole = open_model(folder(kind, name))
    capture = captured(model, ids_of(TOKENS))
    assert {one for layer in model.spec.layers for one in layer.activations} == {
        activation.partition(":")[0]
    }
    assert model.spec.digest != whole.spec.digest and activation in model.spec.name
    assert max(one.verify_max_abs for one in capture.maps) < 1e-5
    assert np.abs(capture.logits - captured(whole, ids_of(TOKENS)).logits).max() > 1e-3


@pytest.mark.parametrize("kind, name", [
    ("llama", "LlamaForCausalLM"), ("roberta", "RobertaForSequenceClassification"),
    ("roberta", "RobertaModel"), ("mistral", "MistralForCausalLM"),
    ("gemma3_text", "Gemma3ForCausalLM"),
])  # fmt: skip
def test_pruned_with_zeros_it_opens_in_transformers_and_gives_what_the_mask_gave(
    folder, tmp_path, kind, name
):
    import transformers

    path, ids = folder(kind, name), ids_of(TOKENS)
    off = {HeadId(0, 1), HeadId(1, 0), HeadId(1, 2)}
    masked = open_model(path).run(ids, off=off).logits
    data = tmp_path / "ids.txt"
    data.write_text("the sand ran down " * 40)
    model = open_model(path)
    found = (
        tasks.prune(path, frozenset(off), tmp_path / "out", form="zeroed")
        if model.tokenizer.unit == "byte"
        else _written(path, off, tmp_path / "out")
    )
    assert found is None or found.difference < 1e-6
    assert scaled_error(open_model(tmp_path / "out").run(ids).logits, masked) < 1e-6
    with torch.no_grad():
        other = getattr(transformers, name).from_pretrained(tmp_path / "out").eval()
        out = other(input_ids=torch.as_tensor(ids)[None])
    logits = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
    assert scaled_error(logits[0].numpy(), masked) < 1e-5


def _written(path, off, out):
    """Without a proof."""
    from hgviz.models import checkpoints, pruning

    progress(0, 1)
    pruning.write_pruned(checkpoints.read(path), frozenset(off), "zeroed", out)


def test_what_a_model_says_is_followed_back_to_tokens_and_heads(folder):
    model = open_model(folder("llama", "LlamaForCausalLM", vocab_size=256), "cpu", "float64")
    prompt, _ = tasks.prompt_from(model, "the sand ran")
    seen = tasks.capture(model, prompt)
    question = tasks.question_of(model.spec.goal, seen.logits, prompt, None)
    found = tasks.explain(model, prompt, replace(question, steps=64))
    assert found.total == pytest.approx(found.change, rel=1e-3)
    for one in seen.maps:
        v = one.value_norms
        assert v.shape == (4, len(prompt)) and (v > 0).all()


def test_a_text_is_gone_on_with_as_transformers_does(folder):
    import transformers

    path, ids = folder("llama", "LlamaForCausalLM", vocab_size=256), ids_of(9)
    model = open_model(path)
    capture = tasks.generate(model, model.from_ids(ids), 6)
    other = transformers.LlamaForCausalLM.from_pretrained(path).eval()
    wanted = other.generate(
        torch.as_tensor(ids)[None], max_new_tokens=6, do_sample=False, eos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    assert capture.prompt.ids.tolist() == wanted[0].tolist()
    assert capture.maps[0].shape[1] == len(capture.prompt)


def test_a_capture_that_is_stopped_keeps_its_layers(folder, tmp_path):
    model = open_model(folder("llama", "LlamaForCausalLM"))
    cancelled(tasks.capture, model, model.from_ids(ids_of(TOKENS)), out=tmp_path / "a.h5")
    assert not (tmp_path / "a.h5").exists() and (tmp_path / "a.h5.part").exists()
    tasks.capture(model, model.from_ids(ids_of(TOKENS)), out=tmp_path / "a.h5")
    assert open_capture(tmp_path / "a.h5").complete


def test_other_models_in_the_process_compute_as_before(folder):
    import transformers

    path, ids = folder("llama", "LlamaForCausalLM"), torch.as_tensor(ids_of(TOKENS))[None]
    other = transformers.LlamaForCausalLM.from_pretrained(path).eval()
    with torch.no_grad():
        before = other(ids).logits
        open_model(path).run(ids[0].numpy())
        assert torch.equal(other(ids).logits, before)
    assert other.config._attn_implementation == "sdpa"


# --- what cannot be opened ------------------------------------------------------------------------


def changed(folder, tmp_path, **changes):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder("llama", "LlamaForCausalLM"), copy)
    data = json.loads((copy / "config.json").read_text())
    data.update(changes)
    (copy / "config.json").write_text(json.dumps(data))
    return copy


@pytest.mark.parametrize("changes, words", [
    ({"auto_map": {"AutoModel": "code.Model"}}, "asks for code of its own"),
    ({"model_type": "lama"}, "the nearest it knows are llama"),
    ({"model_type": "nothing like it"}, "does not know"),
    ({"num_hidden_layers": 3}, "lacks model.layers.2"),
    ({"num_hidden_layers": 10**9}, "does not fit"),
    ({"hidden_size": 64}, "is 120 x 32 in it, and 120 x 64 by config.json"),
    ({"vocab_size": 10**12}, "does not fit"),
    ({"num_attention_heads": -1}, "can be built|does not fit"),
    ({"num_attention_heads": 10**8}, "does not fit"),
    ({"hidden_act": "nothing"}, "can be built"),
    ({"rope_parameters": 7}, "can be built"),
])  # fmt: skip
def test_what_does_not_fit_is_one_clear_line(folder, tmp_path, changes, words):
    with pytest.raises(HgvizError, match=words) as error:
        open_model(changed(folder, tmp_path, **changes))
    assert "orrect its model_type" not in str(error.value) and "\n" not in str(error.value)


def test_weights_that_are_damaged_or_not_there_are_one_clear_line(folder, tmp_path):
    copy = changed(folder, tmp_path)
    whole = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(HgvizError):
        open_model(copy)
    (copy / "model.safetensors").unlink()
    with pytest.raises(HgvizError, match="holds no weights"):
        open_model(copy)


def test_the_command_line_does_not_import_transformers_before_it_is_wanted():
    code = (
        "import sys\n"
        "from hgviz import cli\n"
        "from hgviz.models import open_model\n"
        "from hgviz.files import resource\n"
        "open_model(resource('sample/softmax'))\n"
        "assert 'transformers' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_narrows_a_layer_is_said_where_it_is_described(folder, tmp_path):
    from hgviz.gui.panels import _limits
    from hgviz.store import describe

    def captured_as(kind, name):
        model = open_model(folder(kind, name))
        tasks.capture(model, model.from_ids(ids_of(TOKENS)), out=tmp_path / f"{kind}.h5")
        return describe(tmp_path / f"{kind}.h5")["layers"], open_capture(tmp_path / f"{kind}.h5")

    layers, capture = captured_as("gpt_oss", "GptOssForCausalLM")
    assert max(one["verify_max_abs"] for one in layers) < 1e-6
    for head in range(4):
        found = capture.maps[1].read(head)
        assert np.allclose(capture.maps[1].summary(head).rowmax, found.max(1), atol=1e-6)
    assert layers[0]["window"] == "4 back" and layers[1]["window"] is None
    sums = np.stack([capture.maps[1].read(head).sum(1) for head in range(4)])
    assert layers[1]["sink_share"] == pytest.approx(1 - sums.mean(), abs=1e-5)
    share = capture.maps[1].factors.sink_share(2)
    assert share == pytest.approx(1 - sums[2].mean(), abs=1e-5)
    assert _limits(capture.maps[0], 1)[0] == "Window: 4 back"
    assert _limits(capture.maps[1], 2)[-1].startswith(f"Sink logit: {100 * share:.1f} % of a row")
    layers, capture = captured_as("gemma2", "Gemma2ForCausalLM")
    assert layers[0]["softcap"] == 50.0 and _limits(capture.maps[1], 0) == ("Scores capped at ±50",)
    layers, capture = captured_as("modernbert", "ModernBertForMaskedLM")
    assert layers[1]["window"] == "3 both ways"
    assert _limits(capture.maps[1], 0) == ("Window: 3 back, 3 ahead",)
    layers, _ = captured_as("llama", "LlamaForCausalLM")
    assert not {"window", "chunk", "softcap", "sink_share"} & {*layers[0]}


@pytest.mark.parametrize("free", [1000, 50_000])
def test_a_model_that_does_not_fit_is_refused_before_it_is_read(
    folder, tmp_path, monkeypatch, free
):
    from hgviz.models import devices, tensors

    path = folder("llama", "LlamaForCausalLM")
    monkeypatch.setattr(devices, "free_memory", lambda: free)
    monkeypatch.setattr(tensors, "read_tensors", lambda *_: pytest.fail("it was read"))
    with pytest.raises(HgvizError, match="does not fit the memory: it takes"):
        open_model(path)


def test_masks_and_frequencies_that_older_files_keep_are_no_weights(tmp_path):
    """As those of GPT-Neo do."""
    path = write(tmp_path / "m", "gpt_neo", "GPTNeoForCausalLM")
    held = load_file(path / "model.safetensors")
    model, ids = open_model(path), np.arange(1, 9)
    whole = model.run(ids).logits
    old = {
        "transformer.h.0.attn.attention.bias": torch.ones(1, 1, 64, 64, dtype=torch.uint8),
        "transformer.h.0.attn.attention.masked_bias": torch.tensor(-1e9),
        "transformer.h.1.attn.attention.rotary.inv_freq": torch.ones(4),
    }
    save_file({**held, **old}, path / "model.safetensors")
    assert np.array_equal(open_model(path).run(ids).logits, whole)
    (path / "model.safetensors").unlink()
    torch.save({**held, **old}, path / "pytorch_model.bin")
    assert np.array_equal(open_model(path).run(ids).logits, whole)
    extra = {"transformer.h.1.attn.attention.gate.weight": torch.ones(4, 4)}
    save_file({**held, **extra}, path / "model.safetensors")
    with pytest.raises(HgvizError, match="has no use for transformer.h.1.attn.attention.gate"):
        open_model(path)


def test_models_whose_weights_are_kept_go_on_with_a_text(folder):
    model = open_model(folder("bloom", "BloomForCausalLM"))
    made = tasks.generate(model, model.from_ids(ids_of(7)), 3)
    assert len(made.prompt) == 10 and all(isinstance(one, DenseMap) for one in made.maps)
