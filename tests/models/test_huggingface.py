"""Models of the package transformers, each tiny and random, give what that package computes.

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
import transformers
from transformers.masking_utils import causal_mask_function

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.maps import DenseMap, Grouped, LazyMap
from hgviz.models import open_model
from hgviz.models.checkpoints import read
from hgviz.models.huggingface import attention
from hgviz.models.masks import mask
from hgviz.models.prompts import from_file
from hgviz.models.pruning import write_pruned
from hgviz.store import describe, open_capture
from tests.closeness import scaled_error
from tests.models import reference
from tests.models.folders import byte_level, wordpiece
from tests.models.zoo import write

LAZY = """
llama LlamaForCausalLM, qwen2 Qwen2ForCausalLM, qwen3 Qwen3ForCausalLM, mistral MistralForCausalLM,
mixtral MixtralForCausalLM, gemma2 Gemma2ForCausalLM, gemma3_text Gemma3ForCausalLM,
phi3 Phi3ForCausalLM, gpt_oss GptOssForCausalLM, olmo2 Olmo2ForCausalLM, cohere2 Cohere2ForCausalLM,
granite GraniteForCausalLM, smollm3 SmolLM3ForCausalLM, glm4 Glm4ForCausalLM,
deepseek_v3 DeepseekV3ForCausalLM, gpt_neox GPTNeoXForCausalLM, opt OPTForCausalLM,
qwen3_next Qwen3NextForCausalLM, roberta RobertaForSequenceClassification,
roberta RobertaForMaskedLM, roberta RobertaModel, distilbert DistilBertForSequenceClassification,
albert AlbertForMaskedLM, electra ElectraForSequenceClassification,
modernbert ModernBertForMaskedLM,
xlm-roberta XLMRobertaForMaskedLM, t5 T5ForConditionalGeneration, bart BartForConditionalGeneration,
marian MarianMTModel, pegasus PegasusForConditionalGeneration, bamba BambaForCausalLM,
llava LlavaForConditionalGeneration, qwen3_vl Qwen3VLModel, internlm3 LlamaForCausalLM,
t5gemma T5GemmaForConditionalGeneration
"""
DENSE = """
gptj GPTJForCausalLM, bloom BloomForCausalLM, falcon FalconForCausalLM,
deberta-v2 DebertaV2ForSequenceClassification, mpnet MPNetForMaskedLM, xlnet XLNetLMHeadModel,
xglm XGLMForCausalLM
"""  # with attention code of their own: their softmaxes are observed
TOKENS, WRITTEN = 23, 17  # of a text, longer than every window, and of what a decoder writes


def rows(text):
    return [tuple(row.split()) for row in text.replace("\n", " ").split(",")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model once."""
    written = {}

    def make(kind, name, **changes):
        key = (kind, name, *sorted(map(str, changes.items())))
        if key not in written:
            written[key] = write(tmp_path_factory.mktemp(kind) / kind, kind, name, **changes)
        return written[key]

    return make


def theirs(path, name, ids, target=None, keep=None, dtype=None, **arguments):
    """Output and maps, layer after layer, as transformers gives them."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        made = getattr(transformers, name)
        net = made.from_pretrained(path, attn_implementation="eager", dtype=dtype).eval()
        arguments |= {"input_ids": ids, "attention_mask": keep, "decoder_input_ids": target}
        arrays = {
            key: torch.as_tensor(np.array(x))[None] for key, x in arguments.items() if x is not None
        }
        if keep is not None:
            arrays["attention_mask"] = arrays["attention_mask"].long()
        out = net(**arrays, output_attentions=True)
    output = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
    maps = [x for x in out.get("attentions") or () if x is not None]
    if target is not None:
        pairs = zip(out.decoder_attentions, out.cross_attentions, strict=True)
        maps = [*out.encoder_attentions, *(one for pair in pairs for one in pair)]
    return output[0].numpy(), [x[0].numpy() for x in maps if x.dim() == 4]


def ids_of(count, seed=1):
    return np.random.default_rng(seed).integers(5, 110, count)


def captured(model, ids, written=None, **more):
    target = None if written is None else model.from_ids(written)
    return tasks.capture(model, model.from_ids(ids, **more), target=target)


def stacked(one):
    return np.stack([one.read(head) for head in one.heads])


def written_for(model):
    return ids_of(WRITTEN, 2) if model.spec.two_texts else None


# --- every kind of model --------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [*rows(LAZY), *rows(DENSE)])
def test_outputs_and_every_map_are_those_of_transformers(folder, kind, name):
    path, ids = folder(kind, name), ids_of(TOKENS)
    model = open_model(path)
    written = written_for(model)
    capture, (logits, maps) = captured(model, ids, written), theirs(path, name, ids, written)
    assert scaled_error(capture.logits, logits) < 1e-5
    assert len(capture.maps) == len(maps)
    for one, wanted in zip(capture.maps, maps, strict=True):
        assert isinstance(one, DenseMap if (kind, name) in rows(DENSE) else LazyMap)
        assert isinstance(one, DenseMap) or one.verify_max_abs < 1e-5
        assert scaled_error(stacked(one), wanted) < 1e-5


@pytest.mark.parametrize(("kind", "name"), rows(DENSE))
def test_heads_of_models_with_code_of_their_own_are_switched_off(folder, tmp_path, kind, name):
    path, ids, off = folder(kind, name), ids_of(TOKENS), frozenset({HeadId(0, 1), HeadId(1, 2)})
    model = open_model(path)
    masked = model.run(ids, off=off).logits
    assert np.abs(masked - model.run(ids).logits).max() > 1e-3
    if all(model.config.output_weights):
        write_pruned(read(path), off, "zeroed", tmp_path / "out")
        assert scaled_error(open_model(tmp_path / "out").run(ids).logits, masked) < 1e-5
    tasks.capture(model, model.from_ids(ids), out=tmp_path / "a.h5")
    assert open_capture(tmp_path / "a.h5").complete
    with pytest.raises(HgvizError, match="cannot be exchanged"):
        open_model(path, activation="ymish")


@pytest.mark.parametrize(("kind", "name"), rows(
    "llama LlamaForCausalLM, gemma2 Gemma2ForCausalLM, gpt_oss GptOssForCausalLM, "
    "roberta RobertaForMaskedLM, modernbert ModernBertForMaskedLM"
))  # fmt: skip
def test_padding_is_seen_by_nobody(folder, kind, name):
    path, ids, keep = folder(kind, name), ids_of(TOKENS), np.arange(TOKENS) < TOKENS - 6
    capture = captured(open_model(path), ids, attention_mask=keep)
    logits, maps = theirs(path, name, ids, keep=keep)
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, wanted in zip(capture.maps, maps, strict=True):
        weights = stacked(one)
        assert np.abs(weights - wanted).max() < 1e-5 and not weights[:, keep][:, :, ~keep].any()


@pytest.mark.parametrize(("kind", "name"), rows(
    "t5 T5ForConditionalGeneration, bart BartForConditionalGeneration, gemma2 Gemma2ForCausalLM, "
    "gpt_oss GptOssForCausalLM"
))  # fmt: skip
@pytest.mark.parametrize("real", [0, 3])
def test_rows_that_see_no_key_are_those_of_transformers(folder, tmp_path, kind, name, real):
    """The mean over all keys, where nothing but a sink takes it."""
    path, ids, keep = folder(kind, name), ids_of(9), np.arange(9) >= 9 - real
    model = open_model(path)
    written = ids_of(4, 2) if model.spec.two_texts else None
    target = None if written is None else model.from_ids(written)
    tasks.capture(model, model.from_ids(ids, keep), out=tmp_path / "a.h5", target=target)
    capture, (logits, maps) = (
        open_capture(tmp_path / "a.h5"),
        theirs(path, name, ids, written, keep),
    )
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, wanted in zip(capture.maps, maps, strict=True):
        assert one.verify_max_abs < 1e-5 and np.abs(stacked(one) - wanted).max() < 1e-5


@pytest.mark.parametrize(("kind", "name"), rows(
    "llama LlamaForCausalLM, mistral MistralForCausalLM, roberta RobertaForMaskedLM, "
    "opt OPTForCausalLM, bart BartModel"
))  # fmt: skip
def test_in_float64_outputs_are_those_of_transformers(folder, kind, name):
    path, ids = folder(kind, name), ids_of(TOKENS)
    model = open_model(path, dtype="float64")
    written = written_for(model)
    more = {} if written is None else {"decoder_ids": written}
    net = getattr(transformers, name).from_pretrained(path, dtype=torch.float64).eval()
    arguments = {} if written is None else {"decoder_input_ids": torch.as_tensor(written)[None]}
    with torch.no_grad():
        out = net(input_ids=torch.as_tensor(ids)[None], **arguments)
    logits = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
    # rotary angles are float32 in transformers, whatever the model computes in
    assert np.abs(model.run(ids, **more).logits - logits[0].numpy()).max() < 1e-9


ACTIVATIONS = ("ymish", "topk:4", "tanh", "softmax1", "softpick", "sigmoid")


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("kind", "name"), rows(
    "llama LlamaForCausalLM, roberta RobertaForMaskedLM, mistral MistralForCausalLM"
))  # fmt: skip
def test_another_activation_weighs_in_place_of_softmax(folder, kind, name, activation):
    model, plain = (
        open_model(folder(kind, name), activation=activation),
        open_model(folder(kind, name)),
    )
    capture = captured(model, ids_of(TOKENS))
    names = {name for layer in model.spec.layers for name in layer.activations}
    assert names == {activation.partition(":")[0]}
    assert model.spec.digest != plain.spec.digest and activation in model.spec.name
    assert max(one.verify_max_abs for one in capture.maps) < 1e-5
    assert np.abs(capture.logits - captured(plain, ids_of(TOKENS)).logits).max() > 1e-3


@pytest.mark.parametrize(("kind", "name"), rows(
    "llama LlamaForCausalLM, roberta RobertaForSequenceClassification, roberta RobertaModel, "
    "mistral MistralForCausalLM, gemma3_text Gemma3ForCausalLM"
))  # fmt: skip
def test_pruned_with_zeros_it_opens_in_transformers(folder, tmp_path, kind, name):
    path, ids = folder(kind, name), ids_of(TOKENS)
    off = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 2)})
    masked = open_model(path).run(ids, off=off).logits
    write_pruned(read(path), off, "zeroed", tmp_path / "out")
    assert scaled_error(open_model(tmp_path / "out").run(ids).logits, masked) < 1e-6
    assert scaled_error(theirs(tmp_path / "out", name, ids)[0], masked) < 1e-5


# --- BERT and GPT-2: batches, texts and settings --------------------------------------------------


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """name -> (reference, folder), each built when it is first asked for."""
    built = {}

    def find(name):
        if name not in built:
            model = reference.make(*reference.CASES[name])
            path = tmp_path_factory.mktemp("models") / name.replace(" ", "-")
            model.save_pretrained(path)
            tokenizer = byte_level() if name.startswith("gpt2") else wordpiece()
            tokenizer.save(str(path / "tokenizer.json"))
            built[name] = model, path
        return built[name]

    return find


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", reference.CASES)
def test_padded_batches_and_maps_are_those_of_transformers(references, name, side):
    net, path = references(name)
    ids, keep = reference.padded(net.config.vocab_size, side)
    random, crossed = np.random.default_rng(2), reference.crossed(net)
    types = None if name.startswith("gpt2") else random.integers(0, 2, ids.shape)
    states = states_mask = None
    if crossed:
        states = random.normal(size=(3, 7, net.config.hidden_size))
        states_mask = np.arange(7) < np.array([[7], [2], [4]])
    for dtype, tolerance in (("float64", 1e-6), ("float32", 5e-5)):
        try:
            wanted = reference.answer(
                net.to(getattr(torch, dtype)), ids, keep, types, states, states_mask
            )
        finally:
            net.double()
        ours = open_model(path, dtype=dtype)
        logits = ours.run(ids, keep, types, encoder_states=states, encoder_mask=states_mask).logits
        # a classifier reads the first token, padded or not: what it looks at is never padding
        real = keep if logits.ndim == 3 else slice(None)
        assert logits.dtype == dtype and logits.shape == wanted.shape
        assert np.abs(logits[real] - wanted[real]).max() < tolerance
    one = slice(1, 2)
    _, maps = reference.answer(
        net, ids[one], keep[one], None if types is None else types[one],
        None if states is None else states[one], None if states is None else states_mask[one], True,
    )  # fmt: skip
    ours = open_model(path, dtype="float64")
    prompt = ours.from_ids(ids[1], keep[1], None if types is None else types[1])
    source, target = prompt, None
    if crossed:
        source, target = ours.from_states(states[1], states_mask[1]), prompt
    capture = tasks.capture(ours, source, target=target)
    assert len(capture.maps) == len(maps) == len(capture.spec.layers)
    for ours_, wanted in zip(capture.maps, maps, strict=True):
        assert np.abs(stacked(ours_) - wanted[0])[:, keep[1]].max() < 1e-5


TEXTS = (
    "the cat sat.",
    "나는 이, 있.",
    "The unaffables 나는 sat",
    "1 😀 ?",
    "",
    " the the",
    "\n\t",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("pair", [None, "sat 있"])
@pytest.mark.parametrize("name", ["classes", "masked", "gpt2"])
def test_texts_and_pairs_are_read_as_transformers_reads_them(references, name, text, pair):
    net, path = references(name)
    if name == "gpt2" and (pair or not text):
        return
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"))
    encoded = tokenizer(text, pair, return_token_type_ids=True)
    ours = open_model(path, dtype="float64")
    prompt = ours.tokenize(text, pair)
    assert prompt.ids.tolist() == encoded["input_ids"]
    types = None if name == "gpt2" else np.array([encoded["token_type_ids"]])
    wanted = reference.answer(net, [encoded["input_ids"]], types=types)[0]
    assert scaled_error(tasks.capture(ours, prompt).logits, wanted) < 1e-6


def test_parts_of_characters_are_labelled_by_what_they_read(references):
    prompt = open_model(references("base")[1]).tokenize("나는 있.", "이")
    labels = ["[CLS]", "나", "는", "이", "\u11bb", ".", "[SEP]", "이", "[SEP]"]
    assert [prompt.label(i) for i in range(len(prompt))] == labels
    assert prompt.text == "나는 있.\n이"
    assert prompt.token_type_ids.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1]
    model = open_model(references("gpt2")[1])
    prompt = model.tokenize("a the 나")
    assert prompt.pieces == ("a", "␣the", "␣", "<EB>", "<82>", "<98>")
    assert [prompt.label(i) for i in range(6)] == ["a", " the", " ", "<EB>", "<82>", "<98>"]
    with pytest.raises(HgvizError, match="the text is empty"):
        model.tokenize("")


@pytest.mark.parametrize(("name", "changes"), [
    *(("BertForMaskedLM", {"hidden_act": act})
      for act in ("gelu_new", "gelu_pytorch_tanh", "relu", "silu", "gelu_fast")),
    ("BertModel", {"layer_norm_eps": 1e-2, "type_vocab_size": 1}),
    ("BertForMaskedLM", {"tie_word_embeddings": False}), ("BertForMaskedLM", {"is_decoder": True}),
    ("BertLMHeadModel", {"is_decoder": False}),
    ("GPT2LMHeadModel", {"scale_attn_weights": False}),
    ("GPT2LMHeadModel", {"scale_attn_by_inverse_layer_idx": True, "n_layer": 3}),
    ("GPT2LMHeadModel", {"n_inner": 31, "layer_norm_epsilon": 1e-2}),
    ("GPT2LMHeadModel", {"activation_function": "relu", "tie_word_embeddings": False}),
    ("GPT2LMHeadModel", {"reorder_and_upcast_attn": False, "n_positions": 9}),
])  # fmt: skip
def test_every_setting_computes_as_transformers_does(tmp_path, name, changes):
    options = reference.GPT2 if name.startswith("GPT2") else reference.BERT
    net = reference.make(name, {**options, **changes})
    net.save_pretrained(tmp_path)
    ids, _ = reference.padded(net.config.vocab_size, "right")
    model = open_model(tmp_path, dtype="float64")
    assert scaled_error(model.run(ids).logits, reference.answer(net, ids)) < 1e-6


# --- what the rule of a layer says ----------------------------------------------------------------


def test_a_rule_says_what_each_layer_sees_and_keys_are_kept_once(folder, tmp_path):
    def described(kind, name):
        model = open_model(folder(kind, name))
        tasks.capture(model, model.from_ids(ids_of(TOKENS)), out=tmp_path / f"{kind}.h5")
        capture = open_capture(tmp_path / f"{kind}.h5")
        layers = describe(tmp_path / f"{kind}.h5")["layers"]
        assert max(layer["verify_max_abs"] for layer in layers) < 1e-5
        return [one.factors.rule for one in capture.maps], capture, layers

    rules, _, layers = described("gemma2", "Gemma2ForCausalLM")
    assert [rule.band for rule in rules] == [(4, 0), None] and rules[0].softcap == 50.0
    assert layers[0]["softcap"] == 50.0
    rules, _, layers = described("modernbert", "ModernBertForMaskedLM")
    assert [rule.band for rule in rules] == [None, (3, 3)] and not rules[1].causal
    assert layers[1]["window"] == "3 both ways"
    rules, capture, layers = described("gpt_oss", "GptOssForCausalLM")
    assert rules[0].sinks.shape == (4,) and rules[0].band == (4, 0) and rules[1].causal
    assert isinstance(capture.maps[0].factors.k, Grouped)
    assert capture.maps[1].factors.k.stored.shape[0] == 2
    assert layers[0]["window"] == "4 back" and layers[1]["window"] is None
    sums = stacked(capture.maps[1]).sum(2)
    assert sums.max() < 1 and layers[1]["sink_share"] == pytest.approx(1 - sums.mean(), abs=1e-5)
    assert capture.maps[1].factors.sink_share(2) == pytest.approx(1 - sums[2].mean(), abs=1e-5)
    for head in range(4):
        largest = capture.maps[1].read(head).max(1)
        assert np.allclose(capture.maps[1].summary(head).rowmax, largest, atol=1e-6)
    _, _, layers = described("llama", "LlamaForCausalLM")
    assert not {"window", "chunk", "softcap", "sink_share"} & {*layers[0]}


def test_what_a_panel_says_narrows_a_layer(folder):
    from hgviz.gui.panels import limit_words

    def limits(kind, name, layer, head):
        return limit_words(
            captured(open_model(folder(kind, name)), ids_of(TOKENS)).maps[layer], head
        )

    assert limits("gpt_oss", "GptOssForCausalLM", 0, 1)[0] == "Window: 4 back"
    assert limits("gpt_oss", "GptOssForCausalLM", 1, 2)[-1].startswith("Sink logit: ")
    assert limits("gemma2", "Gemma2ForCausalLM", 1, 0) == ("Scores capped at ±50",)
    expected = ("Window: 3 back, 3 ahead",)
    assert limits("modernbert", "ModernBertForMaskedLM", 1, 0) == expected


@pytest.mark.parametrize("biased", [False, True])
def test_numbers_that_no_rule_can_say_are_added_to_scores(biased):
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, heads, 7, 8, generator=draw) for heads in (4, 2, 2))
    added = torch.randn(2, 4, 7, 7, generator=draw)
    added[:, :, :, 2] = torch.finfo(torch.float32).min
    added[0, :, 5] = torch.finfo(torch.float32).min  # a row that sees nothing
    bias = torch.randn(1, 4, 7, 7, generator=draw) if biased else None
    sinks = torch.randn(4, generator=draw)
    context, weights = attention(
        None, q, k, v, added, scaling=0.3, softcap=2.0, position_bias=bias, s_aux=sinks
    )
    scores = (0.3 * q.double() @ k.double().repeat_interleave(2, 1).mT / 2).tanh() * 2
    scores = (scores + added + (0 if bias is None else bias)).clamp(min=-1e30)
    column = sinks.double()[:, None, None].expand(2, 4, 7, 1)
    expected = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    wanted = (expected @ v.double().repeat_interleave(2, 1)).transpose(1, 2)
    assert weights is None and scaled_error(context, wanted) < 1e-5


def test_what_eager_code_adds_or_leaves_out_itself_is_weighed_too():
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, heads, 7, 8, generator=draw) for heads in (4, 2, 2))
    values = v.double().repeat_interleave(2, 1)
    causal = mask(1, 7, 7, mask_function=causal_mask_function, dtype=torch.float32)
    scores = q.double() @ k.double().repeat_interleave(2, 1).mT / 8**0.5
    later = torch.ones(7, 7, dtype=torch.bool).triu(1)
    bias = torch.randn(1, 4, 7, 7, generator=draw)
    chosen = torch.stack([torch.randperm(7, generator=draw)[:3] for _ in range(7)])[None]
    chosen[..., 0] = 0  # a key that every row may see
    among = torch.zeros(1, 7, 7, dtype=torch.bool).scatter(-1, chosen, True)[:, None]
    sinks = torch.randn(1, 4, 7, 1, generator=draw)
    for more, expected in (
        ({"position_bias": bias}, scores + bias),
        ({"indices": chosen}, scores.masked_fill(~among, -1e30)),
        ({"s_aux": sinks}, torch.cat([scores.masked_fill(later, -1e30), sinks.double()], -1)),
    ):
        if expected.shape[-1] == 7:
            expected = expected.masked_fill(later, -1e30)
        wanted = (expected.softmax(-1)[..., :7] @ values).transpose(1, 2)
        assert scaled_error(attention(None, q, k, v, causal, **more)[0], wanted) < 1e-5


# --- positions ------------------------------------------------------------------------------------


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
    expected = warns * ["Positions count from the first real token"]
    assert [str(one.message)[:41] for one in said] == expected
    capture, alone = tasks.capture(model, prompt), captured(model, ids)
    assert scaled_error(capture.logits[3:], alone.logits) < 1e-5
    for one, other in zip(capture.maps, alone.maps, strict=True):
        assert np.abs(one.read(1)[3:, 3:] - other.read(1)).max() < 1e-5


def test_positions_that_are_given_are_those_that_the_model_reads(folder, tmp_path):
    path, ids, places = folder("gpt2", "GPT2LMHeadModel"), ids_of(9), np.arange(9)[::-1] + 7
    model, file = open_model(path), tmp_path / "ids.json"
    file.write_text(json.dumps({"input_ids": ids.tolist(), "position_ids": places.tolist()}))
    prompt, _ = from_file(model, file)
    tasks.capture(model, prompt, out=tmp_path / "a.h5")
    capture = open_capture(tmp_path / "a.h5")
    assert capture.prompt.digest == prompt.digest != model.from_ids(ids).digest
    logits, _ = theirs(path, "GPT2LMHeadModel", ids, position_ids=places)
    assert scaled_error(capture.logits, logits) < 1e-5
    with pytest.raises(HgvizError, match="each id needs one from 0 to 63"):
        model.from_ids(ids, position_ids=places + 60)
    with pytest.raises(HgvizError, match="does not take position_ids"):
        open_model(folder("t5", "T5ForConditionalGeneration")).from_ids(ids, position_ids=places)


# --- single architectures -------------------------------------------------------------------------


def test_a_head_of_differential_attention_is_both_its_softmaxes(folder, tmp_path):
    name, ids = "DiffLlamaForCausalLM", ids_of(TOKENS)
    sizes = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 4}
    path = folder("diffllama", name, **sizes)
    logits, maps = theirs(path, name, ids)
    model, net = open_model(path), getattr(transformers, name).from_pretrained(path).eval()
    assert [(one.heads, one.shared) for one in model.spec.layers] == [((0, 1, 2, 3), 2)] * 2
    capture = captured(model, ids)
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, part, softmaxes in zip(capture.maps, net.model.layers, maps, strict=True):
        at = part.self_attn
        pairs = ((at.lambda_q1, at.lambda_k1), (at.lambda_q2, at.lambda_k2))
        plus, minus = ((q * k).sum().exp().item() for q, k in pairs)
        wanted = softmaxes[:4] - (plus - minus + at.lambda_init) * softmaxes[4:]
        assert one.signed and wanted.min() < -0.1 and np.abs(stacked(one) - wanted).max() < 1e-5
    off = frozenset({HeadId(0, 1), HeadId(0, 2), HeadId(1, 0), HeadId(1, 3)})
    masked = model.run(ids, off=off).logits
    for heads, out in ((off, "smaller"), (off | {HeadId(0, 3)}, "uneven")):
        proof = tasks.prune(path, heads, tmp_path / out)
        assert ("in transformers" in proof.opens) == (out == "smaller")
    assert scaled_error(theirs(tmp_path / "smaller", name, ids)[0], masked) < 1e-5
    with pytest.raises(HgvizError, match="difference of two softmaxes"):
        open_model(path, activation="ymish").run(ids)


WINDOWS, SEPARATOR = (4, 8), 3  # of a Longformer's two layers: half of each to either side
BANDS = ("LongformerModel", "LongformerForMaskedLM", "LongformerForTokenClassification")
GLOBALS = ("LongformerForSequenceClassification", "LongformerForQuestionAnswering")


@pytest.fixture(scope="module")
def longformer(folder):
    sizes = {"sep_token_id": SEPARATOR, "max_position_embeddings": 100}
    return lambda name: folder("longformer", name, attention_window=list(WINDOWS), **sizes)


def longformer_ids(count=23, question=True):
    ids = np.random.default_rng(0).integers(5, 110, count)
    ids[[6, 7, count - 1]] = SEPARATOR if question else 9
    return ids


def whole_maps(path, name, ids, keep):
    """Outputs, and maps (H, n, n) put together of the band and of global keys and rows."""
    net = getattr(transformers, name).from_pretrained(path).eval()
    with torch.no_grad():
        kept = torch.as_tensor(keep)[None].long()
        out = net(torch.as_tensor(ids)[None], kept, output_attentions=True)
    if out.get("start_logits") is not None:
        output = torch.stack([out.start_logits[0], out.end_logits[0]], 1)
    else:
        output = (out.last_hidden_state if out.get("logits") is None else out.logits)[0]
    globals_ = [*range(6 if "Answering" in name else int("SequenceClassification" in name))]
    rows_, count, maps = out.get("global_attentions") or [None] * 2, len(ids), []
    for window, near, far in zip(WINDOWS, out.attentions, rows_, strict=True):
        whole = torch.zeros(near.shape[1], count, count)
        for i in range(count):
            for at, j in enumerate(globals_):
                whole[:, i, j] += near[0, :, i, at]
            for at in range(window + 1):
                if 0 <= (j := i - window // 2 + at) < count and j not in globals_:
                    whole[:, i, j] += near[0, :, i, len(globals_) + at]
        for at, i in enumerate(globals_):
            whole[:, i] = far[0, :, :count, at]
        maps.append(whole.numpy())
    return output.numpy(), maps


@pytest.mark.parametrize("padded", [0, 5])
@pytest.mark.parametrize("name", [*BANDS, *GLOBALS])
def test_a_longformer_is_that_of_transformers(longformer, name, padded):
    path, ids = longformer(name), longformer_ids()
    keep = np.arange(len(ids)) < len(ids) - padded
    if "Answering" in name:
        ids[[-1, -1 - padded]] = 9, SEPARATOR
    capture, (outputs, maps) = captured(open_model(path), ids, attention_mask=keep), whole_maps(
        path, name, ids, keep
    )  # fmt: skip
    output = capture.logits.T if "Answering" in name else capture.logits
    real = keep if len(outputs) == len(ids) else slice(None)
    assert np.abs(output - outputs)[real].max() < 1e-5
    for one, wanted in zip(capture.maps, maps, strict=True):
        assert isinstance(one, LazyMap if name in BANDS else DenseMap)
        assert np.abs(stacked(one) - wanted)[:, keep].max() < 1e-5


def test_the_band_of_a_longformer_is_a_rule(longformer):
    capture = captured(open_model(longformer(BANDS[1])), longformer_ids())
    rules = [one.factors.rule for one in capture.maps]
    assert [rule.band for rule in rules] == [(2, 2), (4, 4)] and not any(x.causal for x in rules)
    model = open_model(longformer(BANDS[1]), activation="ymish")
    assert captured(model, longformer_ids()).maps[0].signed
    with pytest.raises(HgvizError, match="cannot be exchanged"):
        captured(open_model(longformer(GLOBALS[0]), activation="ymish"), longformer_ids())
    model = open_model(longformer(GLOBALS[1]))
    assert isinstance(captured(model, longformer_ids(question=False)).maps[0], LazyMap)
    ids = np.stack([longformer_ids(), longformer_ids()])
    ids[1, [2, 6]] = SEPARATOR, 11  # a shorter question
    for one, alone in zip(model.run(ids).logits, ids, strict=True):
        assert scaled_error(model.run(alone).logits, one) < 1e-5


@pytest.mark.parametrize("name", [BANDS[1], *GLOBALS])
def test_heads_of_a_longformer_are_off_and_pruned(longformer, tmp_path, name):
    model, ids, off = open_model(longformer(name), dtype="float64"), longformer_ids(), HeadId(1, 2)
    product = model.module.net.get_submodule(model.config.output_modules[1])
    width = product.in_features // 4

    def zeros(module, args):
        context = args[0].clone()
        context[..., 2 * width : 3 * width] = 0
        return (context, *args[1:])

    hook = product.register_forward_pre_hook(zeros)
    wanted = model.run(ids).logits
    hook.remove()
    masked = model.run(ids, off={off}).logits
    assert np.abs(masked - wanted).max() < 1e-12
    assert np.abs(masked - model.run(ids).logits).max() > 1e-4
    for form, heads in (
        ("zeroed", {HeadId(0, 1), off}), ("smaller", {HeadId(0, 1), off}),
        ("smaller", {HeadId(0, head) for head in range(4)}),
    ):  # fmt: skip
        out = tmp_path / f"{form}{len(heads)}"
        tasks.prune(longformer(name), frozenset(heads), out, form=form)
        wanted = model.run(ids, off=heads).logits
        assert scaled_error(open_model(out).run(ids).logits, wanted) < 1e-5


@pytest.mark.parametrize(("kind", "name", "others"), [
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
    written = written_for(model)
    capture, (logits, maps) = captured(model, ids, written), theirs(path, name, ids, written)
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, wanted in zip(capture.maps, maps[len(maps) - len(capture.maps) :], strict=True):
        assert scaled_error(stacked(one), wanted) < 1e-5
    blocks = tasks.info(path)["unattending_blocks"]
    assert {one["name"]: one["made_of"] for one in blocks} == others
    off = {HeadId(model.spec.layers[-1].index, 1)}
    more = {} if written is None else {"decoder_ids": written}
    assert np.abs(model.run(ids, off=off, **more).logits - logits).max() > 1e-4


def test_what_attends_to_short_texts_otherwise_is_refused(folder):
    path = folder("canine", "CanineForSequenceClassification")
    with pytest.raises(HgvizError, match="to short texts otherwise than to long ones"):
        captured(open_model(path), ids_of(TOKENS))
    path = folder("big_bird", "BigBirdForMaskedLM", block_size=4, num_random_blocks=1)
    capture = captured(open_model(path), ids_of(TOKENS))
    assert capture.spec.max_positions == 28  # as many as are read without blocks
    logits, _ = theirs(path, "BigBirdForMaskedLM", ids_of(TOKENS))
    assert scaled_error(capture.logits, logits) < 1e-5


def test_where_an_answer_starts_and_ends_is_given_over_all_tokens(folder):
    path, ids = folder("roberta", "RobertaForQuestionAnswering"), ids_of(TOKENS)
    net = transformers.RobertaForQuestionAnswering.from_pretrained(path).eval()
    with torch.no_grad():
        out = net(torch.as_tensor(ids)[None])
    wanted = torch.stack([out.start_logits[0], out.end_logits[0]]).numpy()
    assert scaled_error(open_model(path).run(ids).logits, wanted) < 1e-5


# --- verbs and the process ------------------------------------------------------------------------


def test_an_answer_is_attributed_and_a_text_written(folder):
    path, ids = folder("llama", "LlamaForCausalLM", vocab_size=256), ids_of(9)
    model = open_model(path, "cpu", "float64")
    prompt, _ = tasks.read_prompts(model, "the sand ran")
    capture = tasks.capture(model, prompt)
    question = tasks.default_question(model.spec.goal, capture.logits, prompt, None)
    explained = tasks.attribute(model, prompt, replace(question, steps=64))
    assert explained.total == pytest.approx(explained.change, rel=1e-3)
    assert all(one.value_norms.shape == (4, len(prompt)) for one in capture.maps)
    model = open_model(path)
    capture = tasks.generate(model, model.from_ids(ids), 6)
    net = transformers.LlamaForCausalLM.from_pretrained(path).eval()
    wanted = net.generate(
        torch.as_tensor(ids)[None], max_new_tokens=6, do_sample=False, eos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    assert capture.prompt.ids.tolist() == wanted[0].tolist()
    model = open_model(folder("bloom", "BloomForCausalLM"))
    made = tasks.generate(model, model.from_ids(ids_of(7)), 3)
    assert len(made.prompt) == 10 and all(isinstance(one, DenseMap) for one in made.maps)


def test_other_models_in_the_process_compute_as_before(folder):
    path, ids = folder("llama", "LlamaForCausalLM"), torch.as_tensor(ids_of(TOKENS))[None]
    net = transformers.LlamaForCausalLM.from_pretrained(path).eval()
    with torch.no_grad():
        before = net(ids).logits
        open_model(path).run(ids[0].numpy())
        assert torch.equal(net(ids).logits, before)
    assert net.config._attn_implementation == "sdpa"


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
