"""Every checkpoint becomes hgviz's own folder, which gives the same logits bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz import tasks
from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from tests.models import package
from tests.models.building import write_checkpoint, write_transformer
from tests.models.folders import write_bert, write_gpt2
from tests.models.test_checkpoint import ARGUMENTS, GIVEN
from tests.models.test_huggingface_files import split
from tests.models.test_vocabularies import written

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
    spec = finish(tasks.convert(source, tmp_path / "out"))
    before, after = open_model(source, dtype=dtype), open_model(tmp_path / "out", dtype=dtype)
    assert np.array_equal(bits(before), bits(after))
    assert after.spec == spec
    assert (before.spec.digest, before.spec.layers) == (spec.digest, spec.layers)
    assert (before.spec.family, before.spec.labels) == (spec.family, spec.labels)
    assert before.masking == after.masking


def test_the_tokenizer_goes_along(tmp_path):
    written(tmp_path / "source")
    write_bert(tmp_path / "source", tokenizer=False)
    finish(tasks.convert(tmp_path / "source", tmp_path / "out"))
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip
    one, other = (open_model(tmp_path / name).tokenize("the 있") for name in ("source", "out"))
    assert np.array_equal(one.ids, other.ids)
    assert np.array_equal(one.spans, other.spans)


def test_shards_become_one_file(tmp_path):
    split(write_gpt2(tmp_path / "source"))
    finish(tasks.convert(tmp_path / "source", tmp_path / "out"))
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found["middle.0.attn.q.weight"].shape == (24, 24)


def test_nothing_is_replaced_unasked(tmp_path):
    bert, gpt2 = write_bert(tmp_path / "bert"), write_gpt2(tmp_path / "gpt2", tokenizer=False)
    out = tmp_path / "out"
    out.mkdir()
    finish(tasks.convert(bert, out))
    with pytest.raises(HgvizError, match="out is there and not empty"):
        finish(tasks.convert(gpt2, out))
    assert open_model(out).spec.family == "bert"
    finish(tasks.convert(gpt2, out, force=True))
    assert open_model(out).spec.family == "gpt2"
    assert not (out / "tokenizer.json").exists()


def test_a_model_is_not_written_over_itself(tmp_path):
    bert = write_bert(tmp_path / "bert")
    (tmp_path / "link").symlink_to(bert)
    for out in (bert, tmp_path / "link"):
        with pytest.raises(HgvizError, match="is the model itself"):
            finish(tasks.convert(bert, out, force=True))
    assert open_model(bert).spec.family == "bert"


def test_what_cannot_be_converted_leaves_nothing_behind(tmp_path):
    bert = write_bert(tmp_path / "bert")
    out = tmp_path / "out"
    (bert / "tokenizer.json").write_text("{}")
    with pytest.raises(HgvizError, match=r"tokenizer\.json could not be read"):
        finish(tasks.convert(bert, out))
    tensors = load_file(bert / "model.safetensors")
    del tensors["classifier.bias"]
    save_file(tensors, bert / "model.safetensors")
    with pytest.raises(HgvizError, match="does not fit"):
        finish(tasks.convert(bert, out))
    assert not out.exists()
    out.write_text("")
    with pytest.raises(HgvizError, match="out is no folder"):
        finish(tasks.convert(bert, out, force=True))
