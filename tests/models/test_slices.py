"""Models of transformers written without some heads, beside the whole ones with heads off.

The references: the masked model in float64, transformers itself, and the rows that a fused
projection has by its class.
"""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from hgviz import tasks
from hgviz.analysis.importance import METHODS, importance
from hgviz.analysis.orders import costs, saved
from hgviz.core import HeadId, HgvizError
from hgviz.examples import classification_examples, next_token_examples
from hgviz.models import checkpoints, open_model
from hgviz.models.measures.trials import Trials
from hgviz.models.surgery import export, removal
from hgviz.models.surgery.removal import head_weights
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.test_transformers import TOKENS, WRITTEN, folder, ids_of
from tests.models.zoo import model_of

assert folder  # a fixture

STATED = [  # their config.json says how wide a head is, or has other numbers of it
    ("llama", "LlamaForCausalLM"), ("mistral", "MistralForCausalLM"),
    ("qwen2", "Qwen2ForCausalLM"), ("qwen3", "Qwen3ForCausalLM"), ("gemma2", "Gemma2ForCausalLM"),
    ("phi3", "Phi3ForCausalLM"), ("gpt_oss", "GptOssForCausalLM"),
    ("deepseek_v3", "DeepseekV3ForCausalLM"),
]  # fmt: skip
DERIVED = [  # or is it the width of the model over the number of heads
    ("gpt_neox", "GPTNeoXForCausalLM"), ("opt", "OPTForCausalLM"),
    ("roberta", "RobertaForSequenceClassification"), ("roberta", "RobertaModel"),
    ("distilbert", "DistilBertForSequenceClassification"),
    ("electra", "ElectraForSequenceClassification"), ("modernbert", "ModernBertForMaskedLM"),
    ("t5", "T5ForConditionalGeneration"), ("bart", "BartForConditionalGeneration"),
]  # fmt: skip
WHOLE = frozenset(range(4))
LEFT = {  # of each layer, whether all layers have equally many in equal groups of two
    "one of each group": ([{0, 2}], True),
    "one group": ([{2, 3}], True),
    "unequal layers": ([{0, 2, 3}, {3}], False),
    "unequal groups": ([{0, 2, 3}], False),
    "a smaller last group": ([{0, 1, 3}], False),
    "a layer without": ([WHOLE, set()], False),
}


def off_of(model, left):
    """The heads that go; what is said of the last layer goes for those after it."""
    layers = [left[min(one.index, len(left) - 1)] for one in model.spec.layers]
    return frozenset(
        HeadId(at, head) for at, kept in enumerate(layers) for head in WHOLE - set(kept)
    )


def run(model, off=frozenset()):
    more = {"decoder_ids": ids_of(WRITTEN, 2)} if model.spec.two_texts else {}
    return model.run(ids_of(TOKENS), off=off, **more).logits


def small(path, off, out):
    """Written without a proof; gives the model in float32, and why transformers does not open."""
    export.written(checkpoints.read(path), frozenset(off), "smaller", out)
    found = open_model(out)
    return found, found.config.alone


@pytest.mark.parametrize("kind, name", STATED + DERIVED, ids=lambda one: one)
@pytest.mark.parametrize("case", LEFT)
def test_it_gives_what_the_masked_model_gives(folder, tmp_path, kind, name, case):
    import transformers

    path, (left, even) = folder(kind, name), LEFT[case]
    dtype = "float64"
    whole = open_model(path, dtype=dtype)
    off = off_of(whole, left)
    masked = run(whole, off)
    found, alone = small(path, off, tmp_path / "out")
    close = 1e-5 if dtype == "float32" else 1e-9
    assert np.abs(run(open_model(tmp_path / "out", dtype=dtype)) - masked).max() < close
    assert np.abs(run(whole) - masked).max() > 1e-3
    assert found.spec.parameters < whole.spec.parameters
    assert [set(one.heads) for one in found.spec.layers] == [
        {head for head in one.heads if HeadId(one.index, head) not in off}
        for one in whole.spec.layers
    ]
    if kind == "deepseek_v3":  # every head has keys of its own
        even = case != "a layer without" and case != "unequal layers"
    assert (alone == "") == (even and (kind, name) in STATED)
    made = getattr(transformers, name)
    assert kind != "t5" or not even or "table of relative positions" in alone
    if alone:
        with pytest.raises((RuntimeError, ValueError)):
            made.from_pretrained(tmp_path / "out")
        return
    given = {"input_ids": torch.as_tensor(ids_of(TOKENS))[None]}
    with torch.no_grad():
        other = made.from_pretrained(tmp_path / "out").eval()
        assert scaled_error(other(**given).logits[0].numpy(), masked) < 1e-5


@pytest.mark.parametrize("kind, name", [
    *STATED, *DERIVED, ("gpt_bigcode", "GPTBigCodeForCausalLM"), ("gpt2", "GPT2LMHeadModel"),
    ("diffllama", "DiffLlamaForCausalLM"),
], ids=lambda one: one)  # fmt: skip
def test_what_heads_cost_is_what_removing_them_saves(folder, kind, name):
    path = folder(kind, name)
    model, found = open_model(path), checkpoints.read(path)
    parameters, flops = costs(model.spec, head_weights(model.module), np.array([TOKENS]))
    group = {HeadId(0, head) for head in next(iter(model.spec.layers[0].groups.values()))}
    last = {HeadId(model.spec.layers[-1].index, head) for head in (0, 3)} & {*model.spec.heads}
    layer = {head for head in model.spec.heads if head.layer == 1}
    for off in ({HeadId(0, 1)}, group, group | last | {HeadId(0, 1)}, layer | last):
        left = export.parameters(removal.smaller(found, frozenset(off)))
        assert saved(parameters, model.spec, sorted(off))[-1] == export.parameters(found) - left
    assert (saved(flops, model.spec, model.spec.heads)[1:] > 0).all()


def test_fused_projections_are_cut_as_their_classes_lay_them_out(folder, tmp_path):
    path = folder("gpt_neox", "GPTNeoXForCausalLM")
    small(path, {HeadId(0, 1), HeadId(1, 0)}, tmp_path / "neox")
    name = "gpt_neox.layers.0.attention.query_key_value.weight"
    before, after = (
        load_file(one / "model.safetensors")[name] for one in (path, tmp_path / "neox")
    )
    wanted = before.view(4, 3 * 8, 32)[[0, 2, 3]].flatten(0, 1)
    assert torch.equal(after, wanted)

    path = folder("phi3", "Phi3ForCausalLM")
    small(path, {HeadId(0, 0), HeadId(0, 1), HeadId(0, 2)}, tmp_path / "phi")
    name = "model.layers.0.self_attn.qkv_proj.weight"
    before, after = (load_file(one / "model.safetensors")[name] for one in (path, tmp_path / "phi"))
    q, k, v = before.split((32, 16, 16))
    assert torch.equal(after, torch.cat([q[24:], k[8:], v[8:]]))


def test_gates_and_sinks_of_heads_go_with_them(folder, tmp_path):
    path = folder("qwen3_next", "Qwen3NextForCausalLM")
    masked = run(open_model(path), {HeadId(0, 0), HeadId(0, 3)})
    found, _ = small(path, {HeadId(0, 0), HeadId(0, 3)}, tmp_path / "gated")
    assert scaled_error(run(found), masked) < 1e-5
    name = "self_attn.q_proj.weight"
    kept = next(one for key, one in found.module.net.state_dict().items() if key.endswith(name))
    assert len(kept) == 2 * 2 * 8  # queries and gates of two heads

    path = folder("gpt_oss", "GptOssForCausalLM")
    small(path, {HeadId(0, 1)}, tmp_path / "sinks")
    name = "model.layers.0.self_attn.sinks"
    before, after = (
        load_file(one / "model.safetensors")[name] for one in (path, tmp_path / "sinks")
    )
    assert torch.equal(after, before[[0, 2, 3]])


@pytest.mark.parametrize("kind, name", [
    ("llama", "LlamaForCausalLM"), ("roberta", "RobertaForSequenceClassification"),
])  # fmt: skip
def test_what_is_left_is_looked_at_scored_and_pruned_again(folder, tmp_path, kind, name):
    path = folder(kind, name, vocab_size=256)
    off = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 1)})
    proof = tasks.prune(path, off, tmp_path / "a")
    assert proof.difference < 1e-5 and proof.parameters[1] < proof.parameters[0]
    assert proof.opens == "opens in hgviz alone: layers keep different numbers of heads"
    assert len(proof.latency) == 2 and proof.facts()["opens"] == proof.opens
    whole, model = open_model(path), open_model(tmp_path / "a")

    # maps have the numbers and the weights of the heads of the masked model
    ids = ids_of(TOKENS)
    seen = tasks.capture(whole, whole.from_ids(ids), off=off)
    tasks.capture(model, model.from_ids(ids), out=tmp_path / "c.h5")
    kept = open_capture(tmp_path / "c.h5")
    assert kept.spec.layers == model.spec.layers
    for mine, theirs in zip(kept.maps, seen.maps, strict=True):
        for head in mine.heads:
            assert scaled_error(mine.read(head), theirs.read(head)) < 1e-5

    # scores of the heads that are left are those beside the others off
    prompts = [model.from_ids(ids_of(9, seed)) for seed in range(4)]
    rows = (
        classification_examples(prompts, [0, 1, 1, 0], ("a", "b"), None)
        if kind == "roberta"
        else None
    )
    rows = rows or next_token_examples(prompts, length=9)
    needs = {METHODS[name].needs for name in ("loo", "michel")}
    study = tasks.importance(Trials(model, rows), needs)
    beside = tasks.importance(Trials(whole, rows, off), needs)
    assert study.heads == model.spec.heads
    for name in ("loo", "michel"):
        mine, theirs = importance(study, name), importance(beside, name)
        scores = dict(zip(theirs.heads, theirs.score, strict=True))
        wanted = [scores[head] for head in mine.heads]
        assert scaled_error(mine.score, wanted) < 1e-5

    # again: numbers are those of the whole model, and a layer can end without any
    again = tasks.prune(tmp_path / "a", "0.2,1.*", tmp_path / "b")
    if kind == "roberta":  # biases take over what heads give on the mean, beside an empty layer
        by_mean = tasks.prune(tmp_path / "b", "0.0", tmp_path / "m", compensate="mean")
        assert by_mean.difference < 1e-5
    last = open_model(tmp_path / "b")
    assert [one.heads for one in last.spec.layers] == [(0, 3), ()]
    every = off | {HeadId(0, 2), HeadId(1, 2), HeadId(1, 3)}
    assert scaled_error(run(last), run(whole, every)) < 1e-5
    assert again.empty == (1,)
    tasks.prune(tmp_path / "b", "0.3", tmp_path / "d", form="zeroed")
    assert scaled_error(run(open_model(tmp_path / "d")), run(last, {HeadId(0, 3)})) < 1e-6
    with pytest.raises(HgvizError, match="this model has no head 1.0"):
        tasks.prune(tmp_path / "b", "1.0", tmp_path / "e")


def test_everything_else_of_the_folder_comes_along(folder, tmp_path):
    copy = tmp_path / "copy"
    model_of("llama", "LlamaForCausalLM").save_pretrained(copy, max_shard_size="20KB")
    (copy / "tokenizer_config.json").write_text("{}")
    (copy / "notes").mkdir()
    (copy / "notes" / "read.md").write_text("as it was")
    assert len([*copy.glob("model-*.safetensors")]) > 2
    off = {HeadId(layer, head) for layer in (0, 1) for head in (2, 3)}
    masked = run(open_model(copy), off)
    found, alone = small(copy, off, tmp_path / "out")
    assert not alone and scaled_error(run(found), masked) < 1e-5
    names = {str(one.relative_to(copy)) for one in copy.rglob("*")}
    assert names == {
        str(one.relative_to(tmp_path / "out")) for one in (tmp_path / "out").rglob("*")
    }
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 4 * found.spec.parameters
    before, after = (
        json.loads((one / "config.json").read_text()) for one in (copy, tmp_path / "out")
    )
    changed = {key for key in after if after[key] != before.get(key)}
    assert changed == {"num_attention_heads", "num_key_value_heads", "hgviz"}

    torch.save(load_file(folder("llama", "LlamaForCausalLM") / "model.safetensors"),
               tmp_path / "pytorch_model.bin")  # fmt: skip
    other = tmp_path / "bin"
    other.mkdir()
    shutil.move(tmp_path / "pytorch_model.bin", other)
    shutil.copy(copy / "config.json", other)
    found, _ = small(other, off, tmp_path / "pickled")
    assert scaled_error(run(found), masked) < 1e-5


def test_curves_are_timed_with_models_that_lack_their_heads(folder):
    model = open_model(folder("roberta", "RobertaModel"))
    off = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 1)})
    from hgviz.models.layers import Tokens

    ids = torch.as_tensor(ids_of(TOKENS))[None]
    found = export.in_memory(model, off)(Tokens(ids))
    assert scaled_error(found[0].numpy(), run(model, off)) < 1e-5


@pytest.mark.parametrize("kind, name, words", [
    ("albert", "AlbertForMaskedLM", "shares its weights with other layers"),
    ("olmo2", "Olmo2ForCausalLM", "are not made head by head"),
    ("bloom", "BloomForCausalLM", "has attention code of its own"),
])  # fmt: skip
def test_weights_that_do_not_go_by_heads_are_refused(folder, tmp_path, kind, name, words):
    with pytest.raises(HgvizError, match=words) as error:
        tasks.prune(folder(kind, name), "0.1", tmp_path / "out")
    assert "Choose --form zeroed" in str(error.value) and not (tmp_path / "out").exists()


# --- what config.json may say ---------------------------------------------------------------------


def layers_of(count=2, **changes):
    rows = [
        {"name": f"model.layers.{at}.self_attn", "heads": [0, 2, 3], "of": 4, "groups": 2}
        for at in range(count)
    ]
    rows[0] |= changes
    return {"layers": rows}


@pytest.mark.parametrize("entry", [
    7, [], None, "layers", {}, {"layers": 3}, {"layers": []}, {"layers": [1, 2]},
    {"layers": [{}] * 20_000}, layers_of(1), layers_of(3), layers_of(name="lm_head"),
    layers_of(name="no.such.module"), layers_of(name=7), layers_of(name=""), layers_of(heads=7),
    layers_of(heads=[0, 2]), layers_of(heads=[0, 1, 2, 3]), layers_of(heads=[2, 0, 3]),
    layers_of(heads=[0, 0, 3]), layers_of(heads=[0, 2, 4]), layers_of(heads=[-1, 2, 3]),
    layers_of(heads=[0.5, 2, 3]), layers_of(heads=[0, 2, 10**12]), layers_of(heads=[]),
    layers_of(heads=[*range(60_000)]), layers_of(of=3), layers_of(of=0), layers_of(of=10**9),
    layers_of(groups=0), layers_of(groups=3), layers_of(groups=4), layers_of(groups=1),
    layers_of(groups="2"), layers_of(more=1), {**layers_of(), "more": 1},
])  # fmt: skip
def test_an_entry_that_does_not_fit_is_one_clear_line(folder, tmp_path, entry):
    copy = tmp_path / "copy"
    small(folder("llama", "LlamaForCausalLM"), {HeadId(0, 1), HeadId(1, 1)}, copy)
    data = json.loads((copy / "config.json").read_text())
    assert data["hgviz"] == layers_of()
    (copy / "config.json").write_text(json.dumps({**data, "hgviz": entry}))
    with pytest.raises(HgvizError) as error:
        open_model(copy)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


def test_of_ever_so_many_heads_nothing_takes_long(folder, tmp_path):
    copy, many = tmp_path / "copy", 2**16
    small(folder("llama", "LlamaForCausalLM"), {HeadId(0, 1), HeadId(1, 1)}, copy)
    data = json.loads((copy / "config.json").read_text())
    heads = list(range(many // 2))
    data["hgviz"] = layers_of(heads=heads, of=many, groups=many)
    (copy / "config.json").write_text(json.dumps(data, separators=(",", ":")))

    with pytest.raises(HgvizError, match="32768 heads in 32768 groups of keys by config.json"):
        open_model(copy)


def test_classes_with_attention_code_of_their_own_have_no_such_entry(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder("bloom", "BloomForCausalLM"), copy)
    data = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**data, "hgviz": layers_of()}))
    with pytest.raises(HgvizError, match="no bloom is written without some"):
        open_model(copy)


def test_without_its_entry_narrow_weights_do_not_fit(folder, tmp_path):
    copy = tmp_path / "copy"
    small(folder("llama", "LlamaForCausalLM"), {HeadId(0, 1)}, copy)
    data = json.loads((copy / "config.json").read_text())
    del data["hgviz"]
    (copy / "config.json").write_text(json.dumps(data))
    with pytest.raises(HgvizError, match="does not fit its config.json"):
        open_model(copy)


# --- groups of keys -------------------------------------------------------------------------------


def test_heads_of_a_key_group_are_named_at_once(folder, tmp_path):
    model = open_model(folder("llama", "LlamaForCausalLM"))
    assert tasks.heads_from("0.g1,1.2", model.spec) == {HeadId(0, 2), HeadId(0, 3), HeadId(1, 2)}
    for text, words in [
        ("0.g2", "this model has no head 0.g2"), ("0.g0,0.1", "head 0.1 is named twice"),
        ("0.g", "does not name a head"), ("0.g*", "does not name a head"),
        ("0.gg1", "does not name a head"), ("3.g0", "this model has no head 3.g0"),
    ]:  # fmt: skip
        with pytest.raises(HgvizError, match=words):
            tasks.heads_from(text, model.spec)
    # they keep their number where others are gone
    found, _ = small(
        folder("llama", "LlamaForCausalLM"), {HeadId(0, 0), HeadId(0, 1)}, tmp_path / "a"
    )
    assert tasks.heads_from("0.g1", found.spec) == {HeadId(0, 2), HeadId(0, 3)}
    with pytest.raises(HgvizError, match="no head 0.g0"):
        tasks.heads_from("0.g0", found.spec)
    assert [one["key_groups"] for one in tasks.info(tmp_path / "a")["layers"]] == [1, 2]


def test_captures_keep_which_heads_share_keys(folder, tmp_path):
    model = open_model(folder("llama", "LlamaForCausalLM"))
    tasks.capture(model, model.from_ids(ids_of(TOKENS)), out=tmp_path / "a.h5")
    found = open_capture(tmp_path / "a.h5")
    assert [one.shared for one in found.spec.layers] == [2, 2]
    assert found.spec.layers[0].groups == {0: (0, 1), 1: (2, 3)}
    assert [one["key_groups"] for one in tasks.info(tmp_path / "a.h5")["layers"]] == [2, 2]
    plain = open_model(folder("roberta", "RobertaModel"))
    assert "key_groups" not in tasks.info(folder("roberta", "RobertaModel"))["layers"][0]
    assert plain.spec.layers[0].groups == {head: (head,) for head in range(4)}
