"""Every checkpoint becomes one folder, which gives the same logits bit for bit: hgviz's own, or, of
a model of transformers, one that transformers opens."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.models import open_model
from tests.models import package, reference
from tests.models.building import write_checkpoint, write_transformer
from tests.models.folders import write_bert, write_gpt2
from tests.models.test_checkpoint import ARGUMENTS, GIVEN
from tests.models.test_huggingface_files import split
from tests.models.test_vocabularies import merged, written
from tests.models.zoo import write

MASKED = {"architectures": ["BertForMaskedLM"]}
KINDS = {
    "hourglass": write_checkpoint,
    "bfloat16": lambda at: write_checkpoint(at, dtype=torch.bfloat16),
    "rotary": lambda at: write_checkpoint(at, positions="rotary", activations=["tanh", "ymish"]),
    "package": lambda at: package.write(at, package.build(**ARGUMENTS), GIVEN),
    "bert": write_bert,
    "masked": lambda at: write_bert(at, **MASKED),
    "untied": lambda at: write_transformer(at, family="bert", tied=False, n_heads=3),
    "gpt2": write_gpt2,
    "yubert": lambda at: write_transformer(
        at, family="yubert", labels=["a", "b"], slots=4, max_positions=20, vocab_size=23
    ),
    "encoder-decoder": write_transformer,
}


def bits(model, **rest):
    """Logits of a batch with padding."""
    ids = np.arange(16).reshape(2, 8) % 20
    mask = np.arange(8) < np.array([[8], [5]])
    both = {"decoder_ids": ids[:, :5]} if model.spec.form == "encoder-decoder" else {}
    return model.run(ids, mask, **both).logits


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_logits_stay_the_same_bit_for_bit(tmp_path, kind, dtype):
    source = KINDS[kind](tmp_path / "source")
    spec = tasks.convert(source, tmp_path / "out")
    before, after = open_model(source, dtype=dtype), open_model(tmp_path / "out", dtype=dtype)
    assert np.array_equal(bits(before), bits(after))
    assert after.spec == spec
    assert (before.spec.digest, before.spec.layers) == (spec.digest, spec.layers)
    assert (before.spec.family, before.spec.labels) == (spec.family, spec.labels)
    assert before.masking == after.masking


def test_the_tokenizer_goes_along(tmp_path):
    written(tmp_path / "source")
    write_bert(tmp_path / "source", tokenizer=False)
    tasks.convert(tmp_path / "source", tmp_path / "out")
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json", "vocab.txt",
    ]  # fmt: skip
    one, other = (open_model(tmp_path / name).tokenize("the 있") for name in ("source", "out"))
    assert np.array_equal(one.ids, other.ids)
    assert np.array_equal(one.spans, other.spans)


def test_shards_become_one_file(tmp_path):
    split(write_gpt2(tmp_path / "source"))
    tasks.convert(tmp_path / "source", tmp_path / "out")
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found["transformer.h.0.attn.c_attn.weight"].shape == (24, 72)
    assert {one.name for one in (tmp_path / "out").glob("*.safetensors*")} == {"model.safetensors"}


def test_nothing_is_replaced_unasked(tmp_path):
    bert, gpt2 = write_bert(tmp_path / "bert"), write_gpt2(tmp_path / "gpt2", tokenizer=False)
    out = tmp_path / "out"
    out.mkdir()
    tasks.convert(bert, out)
    with pytest.raises(HgvizError, match="out is there and not empty"):
        tasks.convert(gpt2, out)
    assert open_model(out).spec.family == "bert"
    tasks.convert(gpt2, out, force=True)
    assert open_model(out).spec.family == "gpt2"
    assert not (out / "tokenizer.json").exists()


def test_a_model_is_not_written_over_itself(tmp_path):
    bert = write_bert(tmp_path / "bert")
    (tmp_path / "link").symlink_to(bert)
    for out in (bert, tmp_path / "link"):
        with pytest.raises(HgvizError, match="is the model itself"):
            tasks.convert(bert, out, force=True)
    assert open_model(bert).spec.family == "bert"


def test_what_cannot_be_converted_leaves_nothing_behind(tmp_path):
    bert = write_bert(tmp_path / "bert")
    out = tmp_path / "out"
    (bert / "tokenizer.json").write_text("{}")
    with pytest.raises(HgvizError, match=r"tokenizer\.json could not be read"):
        tasks.convert(bert, out)
    tensors = load_file(bert / "model.safetensors")
    del tensors["classifier.bias"]
    save_file(tensors, bert / "model.safetensors")
    with pytest.raises(HgvizError, match="does not fit"):
        tasks.convert(bert, out)
    assert not out.exists()
    out.write_text("")
    with pytest.raises(HgvizError, match="out is no folder"):
        tasks.convert(bert, out, force=True)


# --- models of transformers -----------------------------------------------------------------------


def as_it_is(folder, tensors):
    save_file(tensors, folder / "model.safetensors")


def sharded(folder, tensors):
    as_it_is(folder, tensors)
    split(folder)


def without_prefix(folder, tensors):
    as_it_is(folder, {name.removeprefix("gpt_neox."): one for name, one in tensors.items()})


def old(folder, tensors):
    """A pytorch_model.bin with old names, and with a tied tensor under both its names."""
    tied = {"lm_head.decoder.weight": tensors["roberta.embeddings.word_embeddings.weight"]}
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    found = {}
    for name, tensor in {**tensors, **tied}.items():
        for new, before in names.items():
            name = name.replace(new, before)
        found[name] = tensor
    torch.save(found, folder / "pytorch_model.bin")


def mixed(folder, tensors):
    as_it_is(folder, {name: one.half() if "norm" in name else one.bfloat16()
                      for name, one in tensors.items()})  # fmt: skip


FILES = {
    "distilbert": ("distilbert", "DistilBertForSequenceClassification", as_it_is, {}),
    "roberta": ("roberta", "RobertaForMaskedLM", old, {"vocab_size": 300}),
    "llama": ("llama", "LlamaForCausalLM", sharded, {}),
    "precisions": ("llama", "LlamaForCausalLM", mixed, {}),
    "prefix": ("gpt_neox", "GPTNeoXForCausalLM", without_prefix, {}),
    "experts": ("mixtral", "MixtralForCausalLM", sharded, {}),
    "tied": ("t5", "T5ForConditionalGeneration", sharded, {"tie_word_embeddings": True}),
    "sinusoids": ("marian", "MarianMTModel", sharded, {}),
}


@pytest.fixture(params=FILES)
def foreign(request, tmp_path):
    """A model as transformers saves it, and the same in other files."""
    kind, name, files, changes = FILES[request.param]
    saved = write(tmp_path / "saved", kind, name, **changes)
    tensors = load_file(saved / "model.safetensors")
    source = tmp_path / "source"
    source.mkdir()
    for one in saved.glob("*.json"):
        (source / one.name).write_bytes(one.read_bytes())
    (source / "optimizer.bin").write_bytes(b"")
    (source / "README.md").write_text("of this model")
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text("{}")
    files(source, tensors)
    if files is mixed:
        tensors = load_file(source / "model.safetensors")
    return source, tensors


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_of_transformers_becomes_one_folder_of_it(foreign, tmp_path, dtype):
    source, tensors = foreign
    out = tmp_path / "out"
    spec = tasks.convert(source, out)
    found = load_file(out / "model.safetensors")
    assert found.keys() == tensors.keys()  # the names that save_pretrained gives
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor)
    names = {str(one.relative_to(source)) for one in source.rglob("*")}
    kept = {one for one in names if not one.endswith((".bin", ".safetensors", ".index.json"))}
    assert {str(one.relative_to(out)) for one in out.rglob("*")} == {*kept, "model.safetensors"}
    before, after = open_model(source, dtype=dtype), open_model(out, dtype=dtype)
    assert np.array_equal(bits(before), bits(after))
    assert after.spec == spec and after.spec.layers == before.spec.layers


def test_transformers_opens_what_was_written(foreign, tmp_path):
    source, _ = foreign
    tasks.convert(source, tmp_path / "out")
    made = getattr(reference.library(), json.loads(
        (source / "config.json").read_bytes())["architectures"][0])  # fmt: skip
    ids = torch.arange(3, 12)[None]
    given = {"decoder_input_ids": ids[:, :4]} if made.__name__ in (
        "MarianMTModel", "T5ForConditionalGeneration") else {}  # fmt: skip
    logits = []
    for folder in (source, tmp_path / "out"):
        net, told = made.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
        assert not told["missing_keys"]
        with torch.inference_mode():
            logits.append(net.eval()(ids, **given).logits)
    assert not told["unexpected_keys"]
    assert torch.equal(*logits)


def test_the_digest_stays_where_no_name_changes(tmp_path):
    source = write(tmp_path / "source", "llama", "LlamaForCausalLM")
    split(source)
    spec = tasks.convert(source, tmp_path / "out")
    assert spec.digest == open_model(source).spec.digest


@pytest.mark.parametrize("kind, name, files, more", [
    ("distilbert", "DistilBertForMaskedLM", written, {"do_lower_case": False}),
    ("roberta", "RobertaForMaskedLM", merged,
     {"more": ("<s>", "</s>", "<pad>", "<unk>", "<mask>"), "tokenizer_class": "RobertaTokenizer"}),
])  # fmt: skip
def test_vocabulary_files_become_a_tokenizer_json_for_both(tmp_path, kind, name, files, more):
    source = files(write(tmp_path / "source", kind, name, vocab_size=300), **more)
    out = tmp_path / "out"
    tasks.convert(source, out)
    auto, text = reference.library().AutoTokenizer, "The cat, 나는 <mask> [MASK]é"
    wanted = auto.from_pretrained(source)(text)["input_ids"]
    assert auto.from_pretrained(out)(text)["input_ids"] == wanted
    for one in source.glob("*.txt"):
        (out / one.name).unlink()
    prompt, before = open_model(out).tokenize(text), open_model(source).tokenize(text)
    assert prompt.ids.tolist() == before.ids.tolist() == wanted
    assert np.array_equal(prompt.spans, before.spans)


def test_vocabulary_files_that_make_no_tokenizer_are_copied(tmp_path):
    source = write(tmp_path / "source", "distilbert", "DistilBertForMaskedLM")
    written(source, tokenizer_class="BertJapaneseTokenizer")
    tasks.convert(source, tmp_path / "out")
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (source / "vocab.txt").read_bytes()
    assert not (tmp_path / "out" / "tokenizer.json").exists()


def test_a_pruned_model_is_converted_where_transformers_opens_it(tmp_path):
    source = write(tmp_path / "source", "llama", "LlamaForCausalLM")
    for off, even in (("0.0,0.1,1.0,1.1", True), ("0.1", False)):
        pruned, out = tmp_path / f"pruned-{even}", tmp_path / f"out-{even}"
        tasks.prune(source, off, pruned)
        if even:
            tasks.convert(pruned, out)
            assert np.array_equal(bits(open_model(pruned)), bits(open_model(out)))
            continue
        with pytest.raises(HgvizError, match="opens in hgviz alone, since some") as caught:
            tasks.convert(pruned, out)
        assert "\n" not in str(caught.value) and not out.exists()
