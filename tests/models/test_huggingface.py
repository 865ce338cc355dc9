"""Models of the package transformers, each tiny and random, give what that package computes.

The reference is transformers itself with attn_implementation "eager" and output_attentions.
"""

import tracemalloc
import warnings

import numpy as np
import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.maps import TILE, DenseMap, Grouped, LazyMap
from hgviz.models import open_model, pruning
from hgviz.models.attention import ROWS
from hgviz.models.huggingface import Transformers, attention
from hgviz.store import describe, open_capture
from tests.closeness import scaled_error
from tests.models import zoo
from tests.models.zoo import write

LAZY = """
llama LlamaForCausalLM, mistral MistralForCausalLM, gemma2 Gemma2ForCausalLM,
gpt_oss GptOssForCausalLM, deepseek_v3 DeepseekV3ForCausalLM, gpt_neox GPTNeoXForCausalLM,
opt OPTForCausalLM, qwen3_next Qwen3NextForCausalLM, roberta RobertaForSequenceClassification,
distilbert DistilBertForSequenceClassification, albert AlbertForMaskedLM,
modernbert ModernBertForMaskedLM, t5 T5ForConditionalGeneration, bamba BambaForCausalLM,
qwen3_vl Qwen3VLModel, t5gemma T5GemmaForConditionalGeneration
"""
DENSE = """
bloom BloomForCausalLM, falcon FalconForCausalLM, deberta-v2 DebertaV2ForSequenceClassification,
xlnet XLNetLMHeadModel
"""  # with attention code of their own: their softmaxes are observed
TOKENS, WRITTEN = 23, 17  # of a text, longer than every window, and of what a decoder writes


def rows(text):
    return [tuple(row.split()) for row in text.replace("\n", " ").split(",")]


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


@pytest.mark.parametrize(("kind", "name"), rows(
    "t5 T5ForConditionalGeneration, gpt_oss GptOssForCausalLM"
))  # fmt: skip
def test_rows_that_see_no_key_are_those_of_transformers(folder, tmp_path, kind, name):
    """The mean over all keys, where nothing but a sink takes it."""
    path, ids, keep = folder(kind, name), ids_of(9), np.zeros(9, bool)
    model = open_model(path)
    written = ids_of(4, 2) if model.spec.two_texts else None
    target = None if written is None else model.from_ids(written)
    tasks.capture(model, model.from_ids(ids, keep), out=tmp_path / "a.h5", target=target)
    capture = open_capture(tmp_path / "a.h5")
    logits, maps = theirs(path, name, ids, written, keep)
    assert scaled_error(capture.logits, logits) < 1e-5
    for one, wanted in zip(capture.maps, maps, strict=True):
        assert one.verify_max_abs < 1e-5 and np.abs(stacked(one) - wanted).max() < 1e-5


@pytest.mark.parametrize(("kind", "name", "activation"), [
    ("roberta", "RobertaForMaskedLM", "ymish"), ("mistral", "MistralForCausalLM", "topk:4"),
])  # fmt: skip
def test_another_activation_weighs_in_place_of_softmax(folder, kind, name, activation):
    path = folder(kind, name)
    model, plain = open_model(path, activation=activation), open_model(path)
    capture = captured(model, ids_of(TOKENS))
    names = {name for layer in model.spec.layers for name in layer.activations}
    assert names == {activation.partition(":")[0]}
    assert model.spec.digest != plain.spec.digest and activation in model.spec.name
    assert max(one.verify_max_abs for one in capture.maps) < 1e-5
    assert np.abs(capture.logits - captured(plain, ids_of(TOKENS)).logits).max() > 1e-3


# --- BERT and GPT-2: batches, texts and settings --------------------------------------------------


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """name -> (reference, folder), each built when it is first asked for."""
    built = {}

    def find(name):
        if name not in built:
            model = zoo.make_theirs(*{**zoo.CASES, **FUNNELS}[name])
            path = tmp_path_factory.mktemp("models") / name.replace(" ", "-")
            model.save_pretrained(path)
            built[name] = model, path
        return built[name]

    return find


@pytest.mark.parametrize(("name", "side"), [
    ("masked", "right"), ("classes", "right"), ("crossed", "left"), ("gpt2", "left"),
    ("gpt2 crossed", "right"),
])  # fmt: skip
def test_padded_batches_and_maps_are_those_of_transformers(references, name, side):
    net, path = references(name)
    ids, keep = zoo.padded(net.config.vocab_size, side)
    random, crossed = np.random.default_rng(2), zoo.crossed(net)
    types = None if name.startswith("gpt2") else random.integers(0, 2, ids.shape)
    states = states_mask = None
    if crossed:
        states = random.normal(size=(3, 7, net.config.hidden_size))
        states_mask = np.arange(7) < np.array([[7], [2], [4]])
    for dtype, tolerance in (("float64", 1e-6), ("float32", 5e-5)):
        try:
            wanted = zoo.run_theirs(
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
    _, maps = zoo.run_theirs(
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


# --- single architectures -------------------------------------------------------------------------


def test_a_head_of_differential_attention_is_both_its_softmaxes(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))  # timing as short as can be
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


def whole_maps(out, globals_):
    """Maps (H, n, n) of each layer, put together of its band and of its global keys and rows."""
    for window, near, far in zip(WINDOWS, out.attentions, out.global_attentions, strict=True):
        count = near.shape[2]
        whole = torch.zeros(near.shape[1], count, count)
        for i in range(count):
            whole[:, i, :globals_] += near[0, :, i, :globals_]
            for at in range(window + 1):
                if globals_ <= (j := i - window // 2 + at) < count:
                    whole[:, i, j] += near[0, :, i, globals_ + at]
        whole[:, :globals_] = far[0, :, :count, :globals_].mT
        yield whole.numpy()


@pytest.mark.parametrize("name, globals_", [
    ("LongformerForMaskedLM", 0), ("LongformerForSequenceClassification", 1),
    ("LongformerForQuestionAnswering", 6),  # the question, as far as two separators
])  # fmt: skip
def test_a_longformer_is_that_of_transformers(folder, name, globals_):
    sizes = {"sep_token_id": SEPARATOR, "max_position_embeddings": 100}
    path = folder("longformer", name, attention_window=list(WINDOWS), **sizes)
    ids, keep = np.random.default_rng(0).integers(5, 110, 23), np.arange(23) < 18
    ids[[6, 7, 17]] = SEPARATOR
    capture = captured(open_model(path), ids, attention_mask=keep)
    net, given = getattr(transformers, name).from_pretrained(path).eval(), torch.as_tensor(ids)
    with torch.no_grad():
        out = net(given[None], torch.as_tensor(keep)[None].long(), output_attentions=True)
    if globals_ == 6:
        wanted = torch.stack([out.start_logits[0], out.end_logits[0]])[:, keep].numpy()
        assert scaled_error(capture.logits[:, keep], wanted) < 1e-5
    else:
        real = slice(None) if globals_ else keep
        assert scaled_error(capture.logits[real], out.logits[0].numpy()[real]) < 1e-5
    if not globals_:
        out["global_attentions"] = [torch.zeros(1, 4, 23, 0)] * 2
    for one, wanted in zip(capture.maps, whole_maps(out, globals_), strict=True):
        assert isinstance(one, DenseMap if globals_ else LazyMap)
        assert np.abs(stacked(one) - wanted)[:, keep].max() < 1e-5


@pytest.mark.parametrize(("kind", "name", "others"), [
    ("jamba", "JambaForCausalLM", {"model.layers.0": "JambaMambaMixer, JambaMLP"}),
    ("longt5", "LongT5ForConditionalGeneration", {
        f"encoder.block.{at}": "LongT5LayerLocalSelfAttention, LongT5LayerFF" for at in (0, 1)
    }),
    ("led", "LEDForConditionalGeneration", {
        f"led.encoder.layers.{at}.self_attn.longformer_self_attn":
        "attention to something other than tokens" for at in (0, 1)
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
    with pytest.raises(HgvizError, match="differs between short and long texts"):
        captured(open_model(path), ids_of(TOKENS))
    path = folder("big_bird", "BigBirdForMaskedLM", block_size=4, num_random_blocks=1)
    capture = captured(open_model(path), ids_of(TOKENS))
    assert capture.spec.max_positions == 28  # as many as are read without blocks
    logits, _ = theirs(path, "BigBirdForMaskedLM", ids_of(TOKENS))
    assert scaled_error(capture.logits, logits) < 1e-5


# --- Funnel-Transformers --------------------------------------------------------------------------

FUNNEL = {
    "vocab_size": 43, "block_sizes": [2, 1, 2], "num_decoder_layers": 2, "d_model": 16,
    "n_head": 3, "d_head": 6, "d_inner": 20, "attention_type": "factorized",
}  # fmt: skip
FUNNELS = {  # name: (class, configuration)
    name: (kind, {**FUNNEL, **options})
    for name, kind, options in (
        ("full", "FunnelModel", {}), ("base", "FunnelBaseModel", {}),
        ("largest", "FunnelModel", {"pooling_type": "max"}),
        ("all alike", "FunnelModel", {"separate_cls": False}),
        ("none of it", "FunnelForMaskedLM", {
            "pool_q_only": False, "separate_cls": False, "truncate_seq": False,
            "tie_word_embeddings": False, "hidden_act": "relu",
        }),
        ("repeated", "FunnelModel", {"block_repeats": [1, 2, 1]}),
        ("shifted", "FunnelModel", {"attention_type": "relative_shift"}),  # no short texts there
    )
}  # fmt: skip
LENGTHS = (3, 17)


def asked(length, seed=0):
    """A batch with less and less that counts, of three token types."""
    random = np.random.default_rng(seed)
    ids, types = random.integers(0, 43, (3, length)), random.integers(0, 3, (3, length))
    counts = np.array([length, max(1, length - 2), max(1, length // 2)])
    return ids, np.arange(length) < counts[:, None], types


@pytest.mark.parametrize("name", FUNNELS)
def test_outputs_and_maps_are_those_of_transformers(references, name):
    theirs, folder = references(name)
    ours = open_model(folder, dtype="float64")
    for length in LENGTHS if name != "shifted" else LENGTHS[1:]:
        ids, mask, types = asked(length)
        wanted, maps = zoo.run_theirs(theirs, ids, mask, types, maps=True)
        found = ours.run(ids, mask, types).logits
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 1e-9
        made = tasks.capture(ours, ours.from_ids(ids[1], mask[1], types[1]))
        assert len(made.maps) == len(maps) == len(made.spec.layers)
        sizes = [len(one) for one in made.spans]
        for layer, one, other in zip(made.spec.layers, made.maps, maps, strict=True):
            assert one.shape[1:] == (sizes[layer.level], sizes[layer.key_level])
            for head in layer.heads:
                np.testing.assert_allclose(one.read(head), other[1, head], atol=1e-5)


# --- what captures of long texts hold and compute -------------------------------------------------

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
LONG, HEADS, LAYERS = 8192, 4, 2


class Watch(TorchDispatchMode):
    """Keeps the size of the largest tensor that any operation gives, and counts cells of maps."""

    def __init__(self):
        super().__init__()
        self.largest, self.cells = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else (found,):
            # an expanded tensor is no larger than what it was expanded from
            if isinstance(one, torch.Tensor) and one.device.type == "cpu":
                self.largest = max(self.largest, one.untyped_storage().nbytes())
        if func is KERNEL:
            q, k = args[:2]
            self.cells += q.shape[:-1].numel() * k.shape[-2]
        return found


def test_no_part_of_a_capture_is_as_large_as_a_map(tmp_path, monkeypatch, window=300):
    """And of a window only what it shows is computed."""
    watch, tiles, logits, logs = Watch(), [], Transformers.compute, LazyMap.logs

    def watched(self, tokens, running):  # in whatever thread it runs
        with watch:
            return logits(self, tokens, running)

    monkeypatch.setattr(Transformers, "compute", watched)
    monkeypatch.setattr(LazyMap, "logs", lambda *given: tiles.append(given[1:]) or logs(*given))
    sizes = {"max_position_embeddings": LONG, "head_dim": 8, "num_attention_heads": HEADS}
    made = write(tmp_path / "m", "mistral", "MistralForCausalLM", sliding_window=window, **sizes)
    model = open_model(made)
    ids = np.random.default_rng(0).integers(0, 120, LONG)
    watch.largest = watch.cells = 0
    tracemalloc.start()
    try:
        found = tasks.capture(model, model.from_ids(ids), tmp_path / "a.h5")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    factors, one, blocks = found.maps[1].factors, LONG * LONG, LONG // TILE  # cells of a head
    assert factors.q.shape == (HEADS, LONG, 8) and factors.k.stored.shape[0] == 2
    assert 4 * LONG * 120 <= watch.largest < 4 * one // 50  # bytes: those of logits are seen
    assert most < 4 * one // 8  # all that numpy held at the same time
    assert factors.rule.band == (window - 1, 0)
    assert 0 < watch.cells <= LAYERS * HEADS * LONG * (window + ROWS)
    assert len(tiles) <= LAYERS * HEADS * blocks * (-(-window // TILE) + 1)
    row = found.maps[1].read(3, (5000, 5001))[0]
    assert np.flatnonzero(row).tolist() == list(range(5001 - window, 5001))
    assert row.sum() == pytest.approx(1, abs=1e-6)
