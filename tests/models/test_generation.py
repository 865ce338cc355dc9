"""What a model writes token by token is what it says of the whole text, and what transformers
writes; and heads that stream beside dense masks."""

import json
import shutil
import warnings

import h5py
import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Streaming
from hgviz.maps import Rule
from hgviz.models import open_model
from hgviz.models.generation import Writing, choose_token
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.models.text import Bytes, Pieces, continue_prompt
from hgviz.models.trials import Trials
from hgviz.store import describe, open_capture, write_capture
from tests.closeness import scaled_error
from tests.models.building import (
    FAMILIES,
    WIDTHS,
    build,
    make_transformer,
    opened,
    write_checkpoint,
    write_transformer,
)
from tests.models.references import dense_maps, visible_cells

DECODER = {"family": "gpt2", "form": "decoder", "max_positions": 40}
OFF = frozenset({HeadId(0, 1)})


@pytest.mark.parametrize("family", ["hourglass", "decoder", "both", "cross"])
def test_logits_are_those_of_a_pass_over_the_text_so_far(tmp_path, family):
    model = opened(tmp_path, build(family, "softmax"), "float64")
    random = np.random.default_rng(5)
    ids, other = random.integers(0, 23, 12), None
    if model.takes_states:
        other = model.from_states(random.normal(size=(7, model.spec.width)))
    elif model.spec.two_texts:
        other = model.from_ids(random.integers(0, 23, 7))
    given = model.from_ids(ids[:5])
    writing = Writing(model, *((given, None) if other is None else (other, given)), OFF)
    for at in range(5, 12):
        text = model.from_ids(ids[:at])
        pair = (text, None) if other is None else (other, text)
        assert np.array_equal(writing.logits, model.trace(*pair, off=OFF)[-1])
        writing.add(int(ids[at]))
    assert writing.text.ids.tolist() == ids.tolist() and writing.added == ids[5:].tolist()


def test_the_likeliest_token_follows_or_one_is_drawn():
    logits = np.array([0.0, 2.0, 1.0, -np.inf], np.float32)
    assert choose_token(logits, None, 1.0) == 1
    drawn = np.random.default_rng(0)
    tokens = [choose_token(logits, drawn, 0.5) for _ in range(4000)]
    counts = np.bincount(tokens, minlength=4) / 4000
    expected = np.exp(logits / 0.5) / np.exp(logits / 0.5).sum()
    assert np.abs(counts - expected).max() < 0.03 and counts[3] == 0
    assert {choose_token(logits, drawn, 1e-3) for _ in range(50)} == {1}
    for bad in (np.nan, np.inf):
        with pytest.raises(HgvizError, match="NaN or infinite"):
            choose_token(np.array([0.0, bad], np.float32), None, 1.0)


CANNOT_GO_ON = [  # keys of a model, a mask, why
    ({"family": "bert", "goal": "classes", "labels": ["a", "b"]}, None, "classifier"),
    ({"family": "bert", "goal": "masked"}, None, "it is bidirectional"),
    ({**DECODER, "goal": "states"}, None, "hidden states"),
    (FAMILIES["slots"], None, "a projected sequence mixes in later tokens"),
    (DECODER, [0, 0, 1], "2 of its tokens are masked"),
]  # fmt: skip


def test_what_cannot_be_continued_is_one_error(tmp_path):
    for at, (keys, mask, why) in enumerate(CANNOT_GO_ON):
        model = opened(tmp_path / f"{at}", make_transformer(**{**WIDTHS, **keys}))
        with pytest.raises(HgvizError, match=why):
            Writing(model, model.from_ids([1, 2, 3], mask))


# --- going on with a text -------------------------------------------------------------------------

TEXTS = ("나는 😀 고양이", "naïve café ☕️ zur Straße", "a b  c\n\td", "👩‍👩‍👧 가각", "the cat")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """Tokenizers of every kind of decoder, from files."""
    folder = tmp_path_factory.mktemp("tokenizers")
    found = {"bytes": Bytes()}
    for name, made in (
        ("trained", trained()),
        ("fallback", fallback()),
    ):
        at = folder / name
        at.mkdir()
        made.save(str(at / "tokenizer.json"))
        found[name] = Pieces(at / "tokenizer.json", 5000)
    return found


def trained():
    """A byte-level BPE of these texts, with tokens of parts of characters and of several."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    found.train_from_iterator(list(TEXTS) * 3, trainer)
    return found


def fallback():
    """As Llama's: spaces as a mark, and bytes for what is in no vocabulary."""
    words = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁the", "▁cat",
             "t", "h", "e", "c", "a", "나", "는", "▁a", "b"]  # fmt: skip
    ids = {token: i for i, token in enumerate(words)}
    model = models.BPE(ids, [("▁", "a")], unk_token="<unk>", byte_fallback=True)
    found = Tokenizer(model)
    found.pre_tokenizer = pre_tokenizers.Metaspace()
    found.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)]
    )  # fmt: skip
    found.add_special_tokens(["</s>"])
    return found


def sound(prompt):
    """Spans lie in the text and follow each other; every character belongs to a token."""
    spans = prompt.spans[prompt.spans[:, 0] >= 0]
    assert (spans[:, 0] <= spans[:, 1]).all() and (np.diff(spans[:, 0]) >= 0).all()
    assert spans.max(initial=0) <= len(prompt.text)
    assert len(prompt.pieces) == len(prompt.ids) == len(prompt.spans)


@pytest.mark.parametrize("name", ["bytes", "trained", "fallback"])
@pytest.mark.parametrize("text", TEXTS[:3])
def test_a_text_cut_anywhere_comes_back_whole(pieces, name, text):
    tokenizer = pieces[name]
    whole = tokenizer.encode(text)
    ids = whole.ids
    for at in range(1, len(ids)):
        again = continue_prompt(tokenizer, tokenizer.decode(ids[:at]), ids[at:])
        sound(again)
        assert np.array_equal(again.ids, ids) and again.pieces == whole.pieces
        if name != "fallback":
            assert again.text == text and np.array_equal(again.spans, tokenizer.decode(ids).spans)
    if name == "fallback" and "\n" not in text:
        after = continue_prompt(tokenizer, tokenizer.encode("the"), ids)
        assert after.text == f"the {text}"


# --- models of transformers, with their own cache -------------------------------------------------

BEGIN, ADDED = 3, 18  # tokens there are, and more; windows are 5 wide
LINE = [
    ("gemma2", "Gemma2ForCausalLM", {}),  # a window, and scores that are capped
    ("gpt_oss", "GptOssForCausalLM", {}),  # sinks
    ("llama4_text", "Llama4ForCausalLM", {"attention_chunk_size": 6, "layer_types": [
        "chunked_attention", "full_attention"]}),
    ("gemma3n_text", "Gemma3nForCausalLM", {}),  # layers with the keys of others
    ("falcon_h1", "FalconH1ForCausalLM", {}),  # recurrent states beside heads
]  # fmt: skip
SINGLE = ("gpt_oss", "llama4_text", "falcon_h1")  # experts compute, or are weighed, in float32
AGAIN = [
    ("bloom", "BloomForCausalLM", {}),  # attends by code of its own
    ("deepseek_v32", "DeepseekV32ForCausalLM", {}),  # an indexer that chooses among keys
    ("llama", "LlamaForCausalLM", {"rope_parameters": {
        "rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}, "max_position_embeddings": 8}),
]  # fmt: skip


@pytest.fixture(scope="module")
def llama(folder):
    return folder("llama", "LlamaForCausalLM")


def opened_counting(path, dtype="float64", **more):
    """A model, and how many tokens each of its passes reads."""
    model, passes = open_model(path, "cpu", dtype, **more), []
    model.module.token_embedding.register_forward_hook(
        lambda _, given, out: passes.append(out.shape[1])
    )
    return model, passes


def written(model, off=frozenset()):
    """A text under way of the likeliest tokens; logits of every step."""
    ids = np.random.default_rng(1).integers(5, 110, BEGIN)
    writing = Writing(model, model.from_ids(ids), off=off)
    found = [writing.logits]
    for _ in range(ADDED):
        writing.add(choose_token(writing.logits, None, 1.0))
        found.append(writing.logits)
    return writing, np.stack(found)


def theirs(path, name, ids, dtype):
    """The tokens that transformers goes on with, and the logits of each step in float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(transformers, name)
        model = made.from_pretrained(path, attn_implementation="eager", dtype=dtype).eval()
        out = model.generate(
            torch.as_tensor(ids)[None], max_new_tokens=ADDED + 1, do_sample=False,
            eos_token_id=None, pad_token_id=0, return_dict_in_generate=True, output_logits=True,
        )  # fmt: skip
    return out.sequences[0, :-1].tolist(), torch.cat(out.logits).double().numpy()


def whole_pass(model, ids, off=frozenset()):
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
    model, passes = opened_counting(path, dtype)
    writing, logits = written(model)
    assert row_by_row(passes)
    ids = writing.text.ids
    tokens, expected = theirs(path, name, ids[:BEGIN], getattr(torch, dtype))
    assert ids.tolist() == tokens
    assert differ(logits, expected) < max(close, 1e-6)
    assert differ(logits, whole_pass(model, ids)) < close


@pytest.mark.parametrize("positions", ["none", "learned", "rotary"])
def test_linear_attention_goes_on_from_its_state(tmp_path, positions):
    off = frozenset({HeadId(0, 1), HeadId(1, 0)})
    path = write_transformer(
        tmp_path / "linear", form="decoder", activations="linear", positions=positions,
        vocab_size=120, max_positions=64,
    )  # fmt: skip
    model, passes = open_model(path, "cpu", "float64"), []
    model.module.embed.token.register_forward_hook(lambda *given: passes.append(given[2].shape[1]))
    writing, logits = written(model, off=off)
    assert row_by_row(passes) == (positions != "rotary")  # which turn what the state sums
    ids = writing.text.ids
    assert differ(logits, whole_pass(model, ids, off)) < 1e-9
    states = writing._cache.state[1] if positions != "rotary" else {}
    assert all(one.shape == (1, 2, 6, 7) for one in states.values())  # however long the text is


def reads_again(passes, since=0):
    """Whether passes, from the one that added so many tokens on, are of the whole text."""
    return passes[-(ADDED - since) :] == [BEGIN + 1 + at for at in range(since, ADDED)]


@pytest.mark.parametrize(("kind", "name", "changes"), AGAIN, ids=lambda one: str(one))
def test_a_model_that_cannot_go_on_by_rows_reads_the_whole_text(folder, kind, name, changes):
    path = folder(kind, name, **changes)
    model, passes = opened_counting(path, "float32")
    writing, logits = written(model)
    assert reads_again(passes)
    ids = writing.text.ids
    for at in (BEGIN, BEGIN + 9, len(ids)):
        assert differ(logits[at - BEGIN], model.run(ids[:at]).logits[-1]) < 1e-5
    assert model.module.can_cache == (kind == "deepseek_v32")


def test_the_first_token_proves_whether_rows_are_those_of_the_whole_text(llama):
    """A model that forgets where it is in a text, which no look at it tells."""
    model, passes = opened_counting(llama)
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
    assert differ(logits, whole_pass(model, writing.text.ids)) < 1e-9


# --- heads that stream ----------------------------------------------------------------------------

N, WINDOW = 37, {"sink": 2, "recent": 5}


def logits(module, ids, keep=None, **options):
    with torch.inference_mode():
        tokens = Tokens(torch.as_tensor(ids), None if keep is None else torch.as_tensor(keep))
        return module(tokens, Run(**options))


def row_of_ids(count, seed=0, most=23):
    return np.random.default_rng(seed).integers(3, most, (1, count))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "own"
    keys = {"positions": "rotary", "max_positions": 60, "vocab_size": 256}
    return write_transformer(folder, form="decoder", **keys)


def test_llama_streams_as_by_a_mask_of_transformers(llama):
    module, ids, places = (
        open_model(llama, dtype="float64").module,
        row_of_ids(N, most=120),
        (0, 1, 3),
    )
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


def test_a_score_is_of_what_streams_and_tells_what_the_cache_keeps(own, text, output):
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
    said = output("evaluate", own, *options, "--off", "0.0")
    assert "Streaming heads: 2. At 60 tokens the cache keeps 0.350 of its keys" in said


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
        logits(module, row_of_ids(9, most=120), streaming=Streaming(frozenset({HeadId(1, 2)})))


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


# --- hostile files --------------------------------------------------------------------------------

UNKNOWN = "a rule that this hgviz does not support"
WRONG = [  # attribute of a layer, its value, None for none
    *(("near", near, UNKNOWN) for near in (
        [2, 5] * 5, [-1, 5] * 4, [2, 0] * 4, [1 << 40, 1] * 4,
    )),
    ("causal", np.int32(0), UNKNOWN), ("windowed", np.int32(1), UNKNOWN),
    ("near", None, "the attribute near of /layers/001 is missing"),
]  # fmt: skip
SAID = [  # the data set streaming, as JSON
    ([], "Expected `object`, got `array`"),
    ({"heads": [[0, 0]], "sink": -1, "recent": 4}, "`int` >= 0"),
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
